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
/* (for ((on ?e)) E): E as a tensor over the loops on which it depends, read where it stands. */
static uint32_t tensor(renv *e, uint32_t f) {
  lmatch *m = e->loops;
  kern *k = &m->k;
  kstage *st = &k->stage[m->part / 2];
  bool body = m->part % 2 == 0;
  fxwalk w;
  tarn_read read[K_READS];
  uint32_t with[K_READS + 1], axis[2 * TARN_MAX_DIMS], n = 0, naxis = 0, uses = 0;
  if (f == TARN_NONE || !fx_walk(e->L, f, &w)) return TARN_NONE;
  for (uint32_t i = 0; i <= K_READS; i++) with[i] = TARN_NONE;
  for (uint32_t i = 0; i < w.n; i++) {
    const tarn_fx *x = tarn_fx_get(e->L, w.id[i]);
    const tarn_read *r = x->op == TARN_FX_HOLE ? loops_read_of(m, m->part, x->hole) : NULL;
    if (x->op != TARN_FX_HOLE) continue;
    if (!r || r->stage) return TARN_NONE;
    with[x->hole] = tarn_fx_hole(e->L, n), read[n++] = *r, uses |= map_uses(e->L, r->map);
  }
  for (uint32_t d = 0; d < m->n; d++)
    if (uses >> d & 1) axis[naxis++] = d;
  f = tarn_fx_subst(e->L, f, with, K_READS + 1);
  uint32_t c = n ? kern_part(k, m->dim, m->n, axis, naxis, f, read, n) : TARN_NONE,
           leaf = c == TARN_NONE ? c : kern_leaf(k, c);
  if (leaf == TARN_NONE) return TARN_NONE;
  tarn_read r = {false, leaf, map_project(e->L, m->dim, m->n, axis, naxis)};
  uint32_t at = kern_add_read(st, body, r);
  return at == TARN_NONE ? at : tarn_fx_hole(e->L, at + !body);
}
static bool of_its_loops(const lx *x) {
  return x->nloop == 1 && x->loop[0].kind == LL_ON && x->loop[0].n == 0;
}
/* The right side, of what the variables stand for. */
uint32_t loops_scalar(renv *e, const lx *x) {
  uint32_t kid[3] = {0};
  if (x->kind == LX_FOR) return of_its_loops(x) ? tensor(e, loops_scalar(e, x->kid[0])) : TARN_NONE;
  if (x->kind == LX_ANY) return e->attr[x->var].id;
  if (x->kind == LX_NUMBER) return loops_number(e, x);
  if (x->kind != LX_OP) return TARN_NONE;
  for (uint32_t i = 0; i < x->n; i++)
    if ((kid[i] = loops_scalar(e, x->kid[i])) == TARN_NONE) return TARN_NONE;
  return loops_op(e, x, kid);
}

/* One step, of what the variables stand for now. */
static bool first(void *arg, renv *e) {
  rewriting *w = arg;
  lmatch *m = e->loops;
  kstage *st = &m->k.stage[m->part / 2];
  uint32_t with = loops_scalar(e, w->r->loops->right), *f = m->part % 2 ? &st->epi : &st->body;
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
  memcpy(e->attr, saved, sizeof saved);
  return id;
}
