/* Rules over scalar expressions: what fits is replaced wherever it stands in a nest, until nothing
 * fits. */
#include "rules/lang/loops.h"
#include <string.h>

enum { MOST = K_FX }; /* steps */

typedef struct rewriting {
  const rule *r;
  bool any, failed;
} rewriting;

/* An operator over kids. */
uint32_t loops_op(renv *e, const lx *x, const uint32_t *kid) {
  tarn_dtype t = x->type;
  if (x->op != TARN_FX_CAST) return tarn_fx_op(e->L, (tarn_fxop)x->op, kid[0], kid[1], kid[2]);
  if (x->var != TARN_NONE && !tarn_dtype_parse(e->attr[x->var].name, &t)) return TARN_NONE;
  return tarn_fx_cast(e->L, t, kid[0]);
}
uint32_t loops_number(renv *e, const lx *x) {
  rv v = {0};
  if (x->counted && !rx_eval(e, x->counted, &v)) return TARN_NONE;
  if (v.kind == 'x') return v.id;
  double is = x->counted ? (double)v.i : x->value;
  tarn_dtype t = e->loops->type;
  return tarn_dtype_is_float(t) ? tarn_fx_const(e->L, t, is) : tarn_fx_iconst(e->L, t, (int64_t)is);
}
/* One step, of what the variables stand for now. */
static bool first(void *arg, renv *e) {
  rewriting *w = arg;
  lmatch *m = e->loops;
  kstage *st = &m->k.stage[m->part / 2];
  uint32_t with = loops_in_place(e, w->r->loops->right), *f = m->part % 2 ? &st->epi : &st->body;
  if (with == TARN_NONE || with == m->at) return true;
  uint32_t now = fx_replace(e->L, *f, &m->at, &with, 1);
  w->failed |= now == TARN_NONE;
  w->any |= now != *f;
  if (!w->failed) *f = now;
  return false;
}

static bool step(void *arg, renv *e) {
  rewriting *w = arg;
  return !tarn_r_conditions(e, w->r, TARN_NONE) || !r_guards(e, w->r) || first(w, e);
}

static void unbind(renv *e, const rule *r) {
  for (uint32_t i = 0; i < r->nattr; i++)
    if (r->attr_type[i] == 'e' || r->attr_type[i] == 'y') e->attr[i].kind = 0;
}

uint32_t loops_anywhere(rsite *s, const rule *r) {
  renv *e = s->e;
  rewriting w = {.r = r};
  rv saved[R_ATTRS];
  lmatch was = *e->loops;
  memcpy(saved, e->attr, sizeof saved);
  first(&w, e);
  bool more = w.any;
  for (uint32_t i = 0; more && !w.failed && i < MOST; i++) {
    unbind(e, r);
    w.any = false;
    loops_ways(e, r, step, &w);
    more = w.any;
    w.any = true;
  }
  uint32_t id = w.any && !w.failed ? kern_store(&e->loops->k) : TARN_NONE;
  *e->loops = was;
  loops_forget(e->loops);
  memcpy(e->attr, saved, sizeof saved);
  return id;
}
