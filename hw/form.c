/* A meaning as one loop nest: its views composed, its maps substituted, at most one reduction. */
#include "hw/internal.h"
#include <string.h>

enum { READS = 16, REDUCED = 30 }; /* REDUCED: the hole that stands for the reduction's result */

typedef struct walk {
  tarn_lang *L;
  const tarn_hw_meaning *m;
  bool inner; /* inside the reduction */
  uint32_t n, operand[READS],
      map[READS]; /* what is read: map from the loops to the operand's dims */
  tarn_term red;  /* the reduction, and the map from the loops to its dims */
  uint32_t red_map;
} walk;

static uint32_t read_hole(walk *w, tarn_term t, uint32_t map) {
  uint32_t k = 0, i = 0;
  while (k < w->m->nin && w->m->in[k] != t) k++;
  while (i < w->n && (w->operand[i] != k || w->map[i] != map)) i++;
  if (i == READS || k == w->m->nin) return TARN_NONE;
  w->operand[i] = k, w->map[i] = map;
  if (i == w->n) w->n++;
  return tarn_fx_hole(w->L, i);
}

static uint32_t constant(const walk *w, const tarn_node *x) {
  const tarn_tensor *t = tarn_payload_get(w->L, x->payload)->tensor;
  if (tarn_tensor_count(t) != 1) return TARN_NONE;
  tarn_value v = tarn_tensor_get(t, 0);
  return tarn_dtype_is_float(t->dtype) ? tarn_fx_const(w->L, t->dtype, v.d)
                                       : tarn_fx_iconst(w->L, t->dtype, v.i);
}

static uint32_t reduced(walk *w, tarn_term t, uint32_t map) {
  if (w->inner || (w->red != TARN_NONE && (w->red != t || w->red_map != map))) return TARN_NONE;
  w->red = t, w->red_map = map;
  return tarn_fx_hole(w->L, REDUCED);
}

/* The element of t at a point of the loops; map: loops -> dims of t. TARN_NONE: t is of another
 * form. */
static uint32_t scalar(walk *w, tarn_term t, uint32_t map) {
  tarn_lang *L = w->L;
  const tarn_node *x = tarn_term_get(L, t);
  const tarn_payload *p = tarn_payload_get(L, x->payload);
  uint32_t with[READS];
  switch (x->op) {
  case TARN_OP_INPUT: return read_hole(w, t, map);
  case TARN_OP_CONST: return constant(w, x);
  case TARN_OP_VIEW:
    map = tarn_map_compose(L, map, p->id);
    return map == TARN_NONE || tarn_imap_get(L, map)->nguard ? TARN_NONE
                                                             : scalar(w, x->kid[0], map);
  case TARN_OP_MATERIALISE: return scalar(w, x->kid[0], map);
  case TARN_OP_COMPUTE: break;
  case TARN_OP_FOLD:
  case TARN_OP_SYSTOLIC:
  case TARN_OP_SYSTOLIC_ACC: return reduced(w, t, map);
  default: return TARN_NONE;
  }
  const tarn_func *f = tarn_fn_get(L, p->id);
  if (f->ntuple || x->n > READS) return TARN_NONE;
  if (f->red != TARN_NONE) return reduced(w, t, map);
  for (uint32_t i = 0; i < x->n; i++)
    if ((with[i] = scalar(w, x->kid[i], map)) == TARN_NONE) return TARN_NONE;
  return tarn_fx_subst(L, f->body, with, x->n);
}

static bool reads_all(const walk *w, uint32_t read) {
  return w->map[read] == tarn_map_identity(w->L, tarn_term_get(w->L, w->m->term)->type) ||
         tarn_map_is_identity(w->L, w->map[read]);
}

static bool map_form(walk *w, uint32_t body, tarn_hw_form *out) {
  uint32_t with[READS];
  for (uint32_t i = 0; i < w->n; i++) {
    if (!reads_all(w, i) && !(w->m->immediate >> w->operand[i] & 1)) return false;
    with[i] = tarn_fx_hole(w->L, w->operand[i]);
  }
  *out = (tarn_hw_form){.body = tarn_fx_subst(w->L, body, with, w->n),
                        .red = TARN_NONE,
                        .epi = TARN_NONE,
                        .m = 1,
                        .n = 1,
                        .k = 1};
  return true;
}

/* ---------------------------------------------------------------- reductions */
/* The one loop that an index follows; TARN_NONE when the index is 0 on a dim of extent 1, or of
 * another kind (*ok false). */
static uint32_t loop_of(tarn_lang *L, const tarn_imap *m, uint32_t j, bool *ok) {
  const tarn_ix *x = tarn_ix_get(L, m->e[j]);
  bool unit = m->in[j] == 1 && x->n == 0;
  *ok &= unit || (x->n == 1 && x->c == 0 && x->t[0].kind == TARN_IX_VAR && x->t[0].coef == 1 &&
                  m->dim[x->t[0].arg] == m->in[j]);
  return unit || !*ok ? TARN_NONE : x->t[0].arg;
}

/* Which dim of the operand follows each loop. */
static bool loops_read(tarn_lang *L, uint32_t map, uint32_t *dim) {
  const tarn_imap *m = tarn_imap_get(L, map);
  bool ok = m->nguard == 0;
  for (uint32_t i = 0; i < m->n; i++) dim[i] = TARN_NONE;
  for (uint32_t j = 0; j < m->nin && ok; j++) {
    uint32_t v = loop_of(L, m, j, &ok);
    if (v == TARN_NONE || !ok) continue;
    ok = dim[v] == TARN_NONE;
    dim[v] = j;
  }
  return ok;
}

/* Gives loop v its role; false when another loop has that role already. */
static bool take(int64_t *tile, int64_t extent) {
  bool free = *tile == 1;
  *tile = extent;
  return free;
}

static bool roles(const walk *body, const tarn_stage *s, const walk *top, tarn_hw_form *f) {
  tarn_lang *L = body->L;
  uint32_t a[TARN_MAX_DIMS], b[TARN_MAX_DIMS], y[TARN_MAX_DIMS];
  const tarn_imap *back = tarn_imap_get(L, top->red_map);
  if (!loops_read(L, body->map[0], a) || !loops_read(L, body->map[1], b)) return false;
  bool ok = back->nguard == 0;
  for (uint32_t v = 0; v < s->nown && ok; v++) y[v] = loop_of(L, back, v, &ok);
  for (uint32_t v = 0; v < (uint32_t)s->nown + s->nred && ok; v++) {
    int64_t extent = v < s->nown ? s->own[v] : s->red[v - s->nown];
    bool red = v >= s->nown, in_a = a[v] != TARN_NONE, in_b = b[v] != TARN_NONE;
    tarn_hw_role r = red ? TARN_HW_K : in_b ? TARN_HW_N : TARN_HW_M;
    if (extent == 1) continue;
    ok = take(red ? &f->k : in_b ? &f->n : &f->m, extent) && (red ? in_a && in_b : in_a || in_b);
    if (in_a && (red || !in_b)) f->role[0][a[v]] = r;
    if (in_b) f->role[1][b[v]] = r;
    if (ok && !red) f->role[2][y[v]] = r;
  }
  return ok;
}

/* The result of the reduction and the accumulator, as an fx of $0 and $1. */
static bool epilogue(walk *top, const tarn_nest *nest, const tarn_node *x, uint32_t value,
                     tarn_hw_form *f) {
  tarn_lang *L = top->L;
  const tarn_stage *s = nest->stage;
  const tarn_func *fn = tarn_fn_get(L, s->fn);
  uint32_t with[REDUCED + 1], inner[READS] = {tarn_fx_hole(L, REDUCED)};
  if (fn->nepi >= READS) return false;
  for (uint32_t i = 0; i < fn->nepi; i++) {
    const tarn_read *r = &s->read[fn->nops + i];
    uint32_t map = tarn_map_compose(L, top->red_map, r->map);
    if (map == TARN_NONE || (inner[i + 1] = scalar(top, x->kid[r->src], map)) == TARN_NONE)
      return false;
  }
  for (uint32_t i = 0; i < REDUCED; i++) with[i] = TARN_NONE;
  with[REDUCED] = fn->epi == TARN_NONE ? inner[0] : tarn_fx_subst(L, fn->epi, inner, fn->nepi + 1u);
  value = tarn_fx_subst(L, value, with, REDUCED + 1);
  if (top->n > 1 ||
      (top->n && (!top->m->acc || top->operand[0] != top->m->nin - 1 || !reads_all(top, 0))))
    return false;
  with[0] = tarn_fx_hole(L, 1), with[REDUCED] = tarn_fx_hole(L, 0);
  value = tarn_fx_subst(L, value, with, REDUCED + 1);
  f->epi = value == tarn_fx_hole(L, 0) ? TARN_NONE : value;
  return true;
}

static bool chains(tarn_lang *L, const tarn_hw_form *f) {
  const tarn_reducer *r = tarn_reducer_get(L, f->red);
  uint32_t swap[] = {tarn_fx_hole(L, 1), tarn_fx_hole(L, 0)};
  if (r->kind == TARN_RED_CUSTOM || f->epi == TARN_NONE) return false;
  return f->epi == r->merge[0] || f->epi == tarn_fx_subst(L, r->merge[0], swap, 2);
}

static bool product_form(walk *top, uint32_t value, tarn_hw_form *f) {
  tarn_lang *L = top->L;
  const tarn_node *x = tarn_term_get(L, top->red);
  uint32_t types[READS], with[READS];
  for (uint32_t i = 0; i < x->n; i++) types[i] = tarn_term_get(L, x->kid[i])->type;
  const tarn_nest *nest = tarn_nest_get(L, tarn_nest_of(L, x->op, x->payload, types, x->n));
  const tarn_stage *s = nest->stage;
  const tarn_func *fn = tarn_fn_get(L, s->fn);
  if (nest->nstage != 1 || nest->depth || fn->red == TARN_NONE) return false;
  walk body = {.L = L, .m = top->m, .inner = true, .red = TARN_NONE};
  for (uint32_t i = 0; i < fn->nops; i++)
    if ((with[i] = scalar(&body, x->kid[s->read[i].src], s->read[i].map)) == TARN_NONE)
      return false;
  *f = (tarn_hw_form){.product = true,
                      .body = tarn_fx_subst(L, fn->body, with, fn->nops),
                      .red = fn->red,
                      .m = 1,
                      .n = 1,
                      .k = 1};
  if (body.n != 2 || body.operand[0] == body.operand[1] || !epilogue(top, nest, x, value, f))
    return false;
  for (uint32_t i = 0; i < 2; i++) f->operand[i] = body.operand[i];
  f->chains = chains(L, f);
  return !(top->m->acc &&
           (body.operand[0] == top->m->nin - 1 || body.operand[1] == top->m->nin - 1)) &&
         roles(&body, s, top, f);
}

bool tarn_hw_form_of(tarn_lang *L, const tarn_hw_meaning *m, tarn_hw_form *out) {
  walk top = {.L = L, .m = m, .red = TARN_NONE};
  tarn_term t = tarn_normalise(L, m->term);
  uint32_t value = scalar(&top, t, tarn_map_identity(L, tarn_term_get(L, t)->type));
  if (value == TARN_NONE) return false;
  return top.red == TARN_NONE ? map_form(&top, value, out) : product_form(&top, value, out);
}
bool tarn_hw_sums_products(tarn_lang *L, const tarn_hw *hw, uint32_t intrinsic, tarn_hw_form *out) {
  if (hw->intrin[intrinsic].nop != 3) return false;
  const tarn_hw_meaning m = tarn_hw_meaning_of(L, hw, intrinsic);
  return m.acc && tarn_hw_form_of(L, &m, out) && out->product && out->chains;
}

uint32_t tarn_hw_filler(tarn_lang *L, const tarn_hw_form *f, tarn_dtype t) {
  uint32_t unit = tarn_reducer_identity(L, f->red);
  uint32_t zero = tarn_dtype_is_float(t) ? tarn_fx_const(L, t, 0) : tarn_fx_iconst(L, t, 0);
  const uint32_t with[][2] = {{zero, zero}, {unit, unit}};
  for (uint32_t i = 0; i < 2 && unit != TARN_NONE; i++)
    if (tarn_fx_get(L, with[i][0])->dtype == t && tarn_fx_subst(L, f->body, with[i], 2) == unit)
      return with[i][0];
  return TARN_NONE;
}

static uint32_t put_sorted(int64_t *out, uint32_t n, uint32_t max, int64_t v) {
  uint32_t at = 0;
  while (at < n && out[at] < v) at++;
  if (v < 2 || n == max || (at < n && out[at] == v)) return n;
  memmove(out + at + 1, out + at, (n - at) * sizeof *out);
  out[at] = v;
  return n + 1;
}

uint32_t tarn_hw_tiles(tarn_lang *L, const tarn_hw *hw, tarn_dtype t, int64_t *out, uint32_t max) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    tarn_hw_form f;
    tarn_hw_meaning m = tarn_hw_meaning_of(L, hw, i);
    if (!tarn_hw_form_of(L, &m, &f) || !f.product ||
        tarn_term_type(L, m.in[f.operand[0]])->dtype != t)
      continue;
    const int64_t tile[] = {f.m, f.n, f.k};
    for (uint32_t k = 0; k < 3; k++) n = put_sorted(out, n, max, tile[k]);
  }
  bool vectors = n == 0;
  for (uint32_t k = 1; vectors && k <= 4; k *= 2)
    n = put_sorted(out, n, max, (int64_t)tarn_hw_lanes(hw, t) * k);
  return n;
}
