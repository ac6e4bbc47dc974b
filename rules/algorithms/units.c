/* Products as units of a description take them.
 *
 * zero-pad     a maximum of what is never below 0 may be padded with 0 instead of the least number
 *
 * In C because whether every window has an element follows from counting. */
#include "rules/algorithms/build.h"
#include "rules/lang/range.h"
#include <string.h>

static bool integers(const kern *k) {
  const kstage *st = &k->stage[0];
  return st->reducer != TARN_NONE &&
         !tarn_dtype_is_float(tarn_reducer_get(k->L, st->reducer)->dtype);
}

/* Into the reduction that reads it: what computes something, no padding of what units read. */
bool when_inline_rest(rsite *s) {
  kern p;
  return site_kid(s, s->slot, &p) && kern_is_map(&p) &&
         tarn_fx_get(p.L, p.stage[0].body)->op != TARN_FX_HOLE && when_inline_reduction(s);
}

/* ---------------------------------------------------------------- padding */

/* Is, for each index of the result, one of the window's elements within the guard? */
static bool meets(tarn_lang *L, const tarn_imap *m, const tarn_guard *g, uint32_t nown) {
  int64_t at[2 * TARN_MAX_DIMS] = {0};
  uint32_t dims = tarn_ix_dims(L, g->e), own = TARN_NONE, red = TARN_NONE;
  for (uint32_t d = 0; d < m->n; d++) {
    if (!(dims >> d & 1)) continue;
    uint32_t *of = d < nown ? &own : &red;
    if (*of != TARN_NONE) return false;
    *of = d;
  }
  for (int64_t i = 0, n = own == TARN_NONE ? 1 : m->dim[own]; i < n; i++) {
    bool any = false;
    if (own != TARN_NONE) at[own] = i;
    for (int64_t j = 0, w = red == TARN_NONE ? 1 : m->dim[red]; j < w && !any; j++) {
      if (red != TARN_NONE) at[red] = j;
      int64_t e = tarn_ix_eval(L, g->e, at);
      any = e >= g->lo && e < g->hi;
    }
    if (!any) return false;
  }
  return true;
}
/* Guards on loops of their own, so that each may be met by itself. */
static bool always_meets(tarn_lang *L, const tarn_imap *m, uint32_t nown) {
  uint32_t seen = 0, reduced = ~((1u << nown) - 1);
  for (uint32_t i = 0; i < m->nguard; i++) {
    uint32_t dims = tarn_ix_dims(L, m->guard[i].e) & reduced;
    if ((seen & dims) || !meets(L, m, &m->guard[i], nown)) return false;
    seen |= dims;
  }
  return true;
}

uint32_t build_zero_pad(rsite *s) {
  kern k;
  if (!site_root(s, &k) || !kern_single(&k) || k.depth || !integers(&k)) return TARN_NONE;
  kstage *st = &k.stage[0];
  tarn_read *r = &st->read[0];
  const tarn_fx *x = tarn_fx_get(k.L, st->body);
  uint32_t hole = x->op == TARN_FX_CAST ? x->kid[0] : st->body;
  if (tarn_reducer_get(k.L, st->reducer)->kind != TARN_RED_MAX || st->nb != 1 || r->stage ||
      hole != tarn_fx_hole(k.L, 0))
    return TARN_NONE;
  const tarn_imap *m = tarn_imap_get(k.L, r->map);
  const tarn_dtype t = kern_leaf_type(&k, r->src)->dtype;
  const tarn_range range = s->e->host->range(s->e->host->user, k.leaf[r->src]);
  if (m->nguard == 0 || tarn_fx_get(k.L, m->fill)->ivalue >= 0 || range.lo < 0) return TARN_NONE;
  if (tarn_dtype_is_float(t) || !always_meets(k.L, m, st->nown)) return TARN_NONE;
  r->map = map_with_fill(k.L, r->map, tarn_fx_iconst(k.L, t, 0));
  return kern_store(&k);
}
