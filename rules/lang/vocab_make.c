/* The vocabulary, constructors: functions from functions, constants, tile sizes. */
#include "rules/lang/vocab.h"
#include <string.h>

enum { MOST = 32, SIZES = 128, COMPUTED = 4096 /* elements of a constant that a rule computes */ };

/* ---------------------------------------------------------------- questions */
static bool f_count(renv *e, const rv *a, rv *out) { return rv_int(out, e->seg[a->id].n); }
static bool f_same(renv *e, const rv *a, rv *out) {
  return rv_bool(out, e->cls[a[0].id] == e->cls[a[1].id]);
}
static bool f_elementwise(renv *e, const rv *a, rv *out) {
  return rv_bool(out, rv_func(e, a)->red == TARN_NONE && rv_func(e, a)->ntuple == 0);
}
static bool f_keeps_prefix(renv *e, const rv *a, rv *out) {
  (void)e;
  for (int64_t i = 0; i < a[1].i && i < a[0].n; i++)
    if (a[0].p[i] >= a[1].i) return rv_bool(out, false);
  return rv_bool(out, true);
}
static bool any_node(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n) {
  (void)arg, (void)payload, (void)kid, (void)n;
  return true;
}
static bool f_is_a(renv *e, const rv *a, rv *out) {
  uint32_t op = tarn_op_find(a[1].name), payload, n;
  const uint32_t *kid;
  if (op == TARN_NONE) return false;
  return rv_bool(out, e->host->nest.open(e->host->nest.user, e->cls[a[0].id], op, any_node, NULL,
                                         &payload, &kid, &n));
}
/* $0 times a constant, or -$0 */
static bool f_scales(renv *e, const rv *a, rv *out) {
  const tarn_func *f = rv_func(e, a);
  const tarn_fx *x = tarn_fx_get(e->L, f->body);
  uint32_t hole = tarn_fx_hole(e->L, 0);
  if (f->red != TARN_NONE || f->ntuple || f->nops != 1) return rv_bool(out, false);
  if (x->op == TARN_FX_NEG) return rv_bool(out, x->kid[0] == hole);
  if (x->op != TARN_FX_MUL) return rv_bool(out, false);
  uint32_t other = x->kid[0] == hole ? x->kid[1] : x->kid[0];
  return rv_bool(out, (x->kid[0] == hole || x->kid[1] == hole) &&
                          tarn_fx_get(e->L, other)->op == TARN_FX_CONST);
}

/* ---------------------------------------------------------------- functions */
/* The reduction f, its operand k computed by the map g. */
static bool f_prologue(renv *e, const rv *a, rv *out) {
  tarn_func f = *rv_func(e, a), g = *rv_func(e, a + 2);
  uint32_t with[MOST], inner[MOST], k = (uint32_t)a[1].i, n = f.nops - 1u + g.nops;
  if (f.ntuple || g.ntuple || f.red == TARN_NONE || g.red != TARN_NONE) return false;
  if (a[1].i < 0 || k >= f.nops || n > MOST) return false;
  for (uint32_t i = 0; i < g.nops; i++) inner[i] = tarn_fx_hole(e->L, i + k);
  for (uint32_t i = 0; i < f.nops; i++) with[i] = tarn_fx_hole(e->L, i < k ? i : i - 1 + g.nops);
  with[k] = tarn_fx_subst(e->L, g.body, inner, g.nops);
  f.body = tarn_fx_subst(e->L, f.body, with, f.nops);
  f.nops = (uint8_t)n;
  return rv_func_made(e, out, &f);
}
/* A sum times the constant c, as one function. */
static bool f_scaled_sum(renv *e, const rv *a, rv *out) {
  uint32_t sum = tarn_reducer_of(e->L, TARN_RED_SUM, TARN_F32), hole = tarn_fx_hole(e->L, 0);
  return rv_func_made(e, out,
                      &(tarn_func){.nops = 1,
                                   .body = hole,
                                   .red = sum,
                                   .epi = tarn_fx_op(e->L, TARN_FX_MUL, hole, a->id, 0)});
}
static bool f_factor_of(renv *e, const rv *a, rv *out) {
  const tarn_func *f = rv_func(e, a);
  if (f->epi == TARN_NONE) return false;
  const tarn_fx *x = tarn_fx_get(e->L, f->epi);
  rv c = {.kind = 'x', .id = x->kid[1]}, same;
  if (x->op != TARN_FX_MUL || tarn_fx_get(e->L, c.id)->op != TARN_FX_CONST) return false;
  if (!f_scaled_sum(e, &c, &same) || same.id != a->id) return false;
  *out = c;
  return true;
}

/* ---------------------------------------------------------------- constants */
static bool f_uniform_value(renv *e, const rv *a, rv *out) {
  *out = (rv){.kind = 'x', .id = e->host->uniform(e->host->user, e->cls[a->id])};
  return out->id != TARN_NONE;
}

static bool constant(renv *e, const tarn_tensor *t, uint32_t ns, const char *label, rv *out) {
  const char *name = tarn_format(tarn_lang_ctx(e->L), "%s%u", label, tarn_term_count(e->L));
  tarn_term c = tarn_constant(e->L, name, t, ns);
  *out = (rv){.kind = 'p', .id = tarn_term_get(e->L, c)->payload};
  return true;
}
static bool f_uniform(renv *e, const rv *a, rv *out) {
  const tarn_type *t = tarn_type_get(e->L, a[1].id);
  const tarn_fx *x = tarn_fx_get(e->L, a[0].id);
  if (x->op != TARN_FX_CONST || tarn_type_count(t) > COMPUTED) return false;
  tarn_tensor *v = tarn_tensor_new(tarn_lang_ctx(e->L), x->dtype, t->n, t->dim);
  tarn_value value =
      tarn_dtype_is_float(x->dtype) ? (tarn_value){.d = x->value} : (tarn_value){.i = x->ivalue};
  for (int64_t i = 0; i < tarn_tensor_count(v); i++) tarn_tensor_set(v, i, value);
  return constant(e, v, t->ns, "uniform", out);
}

/* The value of the left side, whose leaves are all constants: it is made again as a term and
 * evaluated. */
static bool f_computed(renv *e, const rv *a, rv *out) {
  (void)a;
  tarn_term t;
  tarn_tensor *v;
  renv *plain = TARN_NEW(tarn_lang_ctx(e->L), renv);
  rhost host = tarn_r_term_host(e->L);
  *plain = *e;
  plain->host = &host;
  if ((t = r_left(plain, e->rule, e->rule->lhs[0].pat)) == TARN_NONE) return false;
  const tarn_type *type = tarn_term_type(e->L, t);
  if (type->tuple || tarn_type_count(type) > COMPUTED) return false;
  tarn_eval(e->L, &t, 1, NULL, 0, TARN_STRICT, NULL, &v);
  return constant(e, v, type->ns, "computed", out);
}

/* ---------------------------------------------------------------- sizes */
/* Extents that the description's intrinsics want an axis to be cut into. Without one, which is
 * where rules and proofs are checked, all of them: a rule may not depend on which are wanted. */
static bool f_tile_sizes(renv *e, const rv *a, rv *out) {
  const tarn_type *t = rv_type(e, a);
  int64_t v[SIZES];
  uint32_t n = SIZES, fit = 0;
  if (a[1].i < 0 || a[1].i >= t->n) return false;
  if (e->hw) n = tarn_hw_tiles(e->L, e->hw, t->dtype, v, 4);
  else
    for (uint32_t i = 0; i < SIZES; i++) v[i] = 2 + (int64_t)i;
  while (fit < n && v[fit] < t->dim[a[1].i]) fit++;
  return rv_list(e, out, v, fit);
}

/* Has the axis an extent that the description's intrinsics want? */
static bool f_is_tile(renv *e, const rv *a, rv *out) {
  const tarn_type *t = rv_type(e, a);
  int64_t v[SIZES];
  bool is = false;
  if (a[1].i < 0 || a[1].i >= t->n) return false;
  uint32_t n = e->hw ? tarn_hw_tiles(e->L, e->hw, t->dtype, v, 4) : 0;
  for (uint32_t i = 0; i < n; i++) is |= v[i] == t->dim[a[1].i];
  return rv_bool(out, is);
}

const rfun rfun_make_table[] = {
    {"count", "g:i", f_count, 0, "how many terms a row has"},
    {"same", "cc:b", f_same, TARN_EG_READS_GRAPH, "one and the same term"},
    {"is-a", "cy:b", f_is_a, TARN_EG_READS_GRAPH,
     "(is-a ?A concat): is some form of the term by this operator?"},
    {"elementwise", "f:b", f_elementwise, 0, "a map, not in tuple form"},
    {"keeps-prefix", "li:b", f_keeps_prefix, 0,
     "does the permutation move the first k axes among themselves?"},
    {"scales", "f:b", f_scales, 0, "the map $0 times a constant"},
    {"prologue", "fif:f", f_prologue, 0,
     "(prologue f k g): the reduction f with operand k computed by the map g"},
    {"scaled-sum", "x:f", f_scaled_sum, 0, "the sum, times a constant"},
    {"factor-of", "f:x", f_factor_of, 0, "the constant of a scaled sum; none for other functions"},
    {"uniform-value", "c:x", f_uniform_value, R_READS_FACTS,
     "the one value of all elements; none when they differ"},
    {"uniform", "xs:p", f_uniform, 0, "a constant tensor of one value"},
    {"computed", ":p", f_computed, 0,
     "the value of the left side, all of whose leaves are constants"},
    {"tile-sizes", "ci:l", f_tile_sizes, 0,
     "extents that the description wants an axis to be cut into"},
    {"is-tile", "ci:b", f_is_tile, 0, "the axis has an extent that the description wants"},
};
const uint32_t rfun_make_count = sizeof rfun_make_table / sizeof *rfun_make_table;
