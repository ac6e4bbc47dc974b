/* Instances of derived rules on the kernel level: a product of the function that the rule's call
 * has tiles of, in kernel form.  (NAME-nest: the product; -onto: something added to it; -then:
 * another epilogue.) */
#include "rules/check/check.h"
#include <string.h>

/* Dims of the two sides: shared ones, each side's own, reduced ones. */
typedef struct sides {
  uint32_t n[2], ns[2];
  int64_t dim[2][TARN_MAX_DIMS];
  uint32_t shared;
} sides;

static sides some_sides(gen *g) {
  sides s = {.shared = draw(g, 2)};
  uint32_t own[2] = {draw(g, 3), draw(g, 3)}, nk = 1 + draw(g, 2);
  int64_t d[2], k[2];
  for (uint32_t i = 0; i < s.shared; i++) d[i] = some_extent(g, 5);
  for (uint32_t i = 0; i < nk; i++) k[i] = some_extent(g, nk == 1 ? 1 : 4);
  for (uint32_t i = 0; i < 2; i++) {
    s.ns[i] = s.shared + own[i], s.n[i] = s.ns[i] + nk;
    memcpy(s.dim[i], d, s.shared * sizeof *d);
    for (uint32_t j = s.shared; j < s.ns[i]; j++) s.dim[i][j] = some_extent(g, own[i] == 1 ? 1 : 4);
    memcpy(s.dim[i] + s.ns[i], k, nk * sizeof *k);
  }
  return s;
}

static tarn_term new_leaf(gen *g, const char *name, uint32_t var, uint32_t type) {
  leaf f = {.var = var, .kind = F_WILD, .term = tarn_input(g->L, name, type)};
  if (g->nleaf < R_CLASSES) g->leaf[g->nleaf++] = f;
  return f.term;
}

/* $0 is the product, $1 what the epilogue reads. */
static uint32_t some_epilogue(gen *g, const tarn_hw_form *f, bool onto) {
  tarn_lang *L = g->L;
  uint32_t h0 = tarn_fx_hole(L, 0), h1 = tarn_fx_hole(L, 1);
  if (onto && draw(g, 2))
    return tarn_fx_subst(L, tarn_reducer_get(L, f->red)->merge[0], (uint32_t[]){h1, h0}, 2);
  if (onto) return tarn_reducer_get(L, f->red)->merge[0];
  return tarn_fx_op(L, TARN_FX_MAX, tarn_fx_op(L, TARN_FX_MUL, h1, h0, 0),
                    tarn_fx_op(L, TARN_FX_NEG, h0, 0, 0), 0);
}

/* The call that the rule is named after, and the form of its meaning. */
static const tarn_call_def *call_of(gen *g, tarn_hw_form *f) {
  const char *end = strstr(g->r->name, "-nest");
  const tarn_call_def *d =
      end ? tarn_call_find(g->L, tarn_strndup(g->cx, g->r->name, (size_t)(end - g->r->name)))
          : NULL;
  if (!d) return NULL;
  tarn_hw_meaning m = {
      .call = d->name, .term = d->meaning, .nin = d->nin, .in = d->in, .acc = d->acc};
  return tarn_hw_form_of(g->L, &m, f) && f->product ? d : NULL;
}

/* Binds the pattern's kids to the children of the nest. */
static bool bind(gen *g, const rpat *p, const tarn_node *x, made *m) {
  m->n = x->n;
  memcpy(m->kid, x->kid, x->n * sizeof *m->kid);
  for (uint32_t i = 0; i < p->n; i++) {
    const rpat *k = p->kid[i];
    if (k->kind == RP_SEG) {
      memcpy(g->segs[k->var], x->kid + i, (x->n - i) * sizeof *x->kid);
      g->e.seg[k->var] = (rseg){g->segs[k->var], x->n - i};
      return true;
    }
    if (i >= x->n) return false;
    g->e.cls[k->var] = x->kid[i];
  }
  return p->n == x->n;
}

/* The sum over some neighbouring dims of what the only operand, a pattern, gives. */
static bool sum_of(gen *g, const rpat *p, made *m, uint32_t *nest) {
  tarn_lang *L = g->L;
  uint32_t at[TARN_MAX_DIMS], k = 0;
  if (!gen_pattern(g, p->kid[0], &want_any, &m->kid[0])) return false;
  const tarn_type *t = type_at(g, m->kid[0]);
  if (!t->n || t->dtype == TARN_BOOL) return false;
  uint32_t from = draw(g, t->n), n = 1 + draw(g, t->n - from);
  for (uint32_t d = 0; d < t->n; d++)
    if (d < from || d >= from + n) at[k++] = d;
  for (uint32_t d = from; d < from + n; d++) at[k++] = d;
  tarn_term x = tarn_access(L, t->n, m->kid[0]);
  x = tarn_access(L, t->n - n, tarn_transpose(L, at, x));
  uint32_t sum = tarn_reducer_of(L, TARN_RED_SUM, t->dtype);
  x = tarn_compute(L, tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, sum), &x, 1);
  const tarn_node *form = tarn_term_get(L, tarn_kernel_form(L, x));
  if (form->op != TARN_OP_NEST || form->n != 1 || form->kid[0] != m->kid[0]) return false;
  *nest = tarn_payload_get(L, form->payload)->id;
  m->n = 1;
  return true;
}

bool gen_nest(gen *g, const rpat *p, made *m, uint32_t *nest) {
  if (p->n == 1 && p->kid[0]->kind == RP_NODE) return sum_of(g, p, m, nest);
  tarn_hw_form f;
  tarn_lang *L = g->L;
  const tarn_call_def *d = call_of(g, &f);
  bool more = p->n > 2, onto = more && p->kid[2]->kind == RP_VAR;
  if (!d || p->n < 2) return false;
  sides s = some_sides(g);
  tarn_term kid[2];
  for (uint32_t i = 0; i < 2; i++) {
    tarn_dtype t = tarn_term_type(L, d->in[f.operand[i]])->dtype;
    kid[i] = new_leaf(g, i ? "b" : "a", p->kid[i]->var,
                      tarn_type_tensor(L, t, s.ns[i], s.n[i], s.dim[i]));
  }
  tarn_func fn = {
      .ntuple = 2, .nops = 1, .nepi = more, .body = f.body, .red = f.red, .epi = TARN_NONE};
  if (more) fn.epi = some_epilogue(g, &f, onto);
  else if (chance(g, 4)) fn.epi = tarn_fx_op(L, TARN_FX_NEG, tarn_fx_hole(L, 0), 0, 0);
  tarn_term both[2] = {tarn_cart(L, s.shared, kid[0], kid[1])};
  const tarn_type *y = tarn_term_type(L, both[0]);
  if (more)
    both[1] =
        new_leaf(g, "p", TARN_NONE,
                 tarn_type_tensor(L, tarn_reducer_get(L, f.red)->dtype, y->ns, y->ns, y->dim));
  const tarn_node *x = tarn_term_get(
      L, tarn_kernel_form(L, tarn_compute(L, tarn_fn_intern(L, &fn), both, 1u + more)));
  if (x->op != TARN_OP_NEST || x->n != 2u + more || x->kid[0] != kid[0] || x->kid[1] != kid[1])
    return false;
  *nest = tarn_payload_get(L, x->payload)->id;
  return bind(g, p, x, m);
}
