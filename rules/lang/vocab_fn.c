/* The vocabulary, second half: functions of compute. */
#include "rules/lang/vocab.h"
#include <string.h>

/* $0 … $(n-1) renumbered to $(by) …, into with[]. */
static void holes(renv *e, uint32_t *with, uint32_t n, uint32_t by) {
  for (uint32_t i = 0; i < n; i++) with[i] = tarn_fx_hole(e->L, i + by);
}

enum { MOST = 32 }; /* operands that a composed function may have */

/* ---------------------------------------------------------------- questions */
static bool f_is_map(renv *e, const rv *a, rv *out) {
  return rv_bool(out, rv_func(e, a)->red == TARN_NONE);
}
static bool f_is_dot(renv *e, const rv *a, rv *out) {
  return rv_bool(out, tarn_fn_is_dot(e->L, a->id));
}
static bool f_arity(renv *e, const rv *a, rv *out) { return rv_int(out, rv_func(e, a)->nops); }
static bool f_tuple(renv *e, const rv *a, rv *out) { return rv_int(out, rv_func(e, a)->ntuple); }
static bool f_plain(renv *e, const rv *a, rv *out) {
  return rv_bool(out, rv_func(e, a)->epi == TARN_NONE && rv_func(e, a)->nepi == 0);
}

static tarn_red_kind kind_of(renv *e, const rv *a) {
  const tarn_func *f = rv_func(e, a);
  return f->red == TARN_NONE ? TARN_RED_NONE : tarn_reducer_get(e->L, f->red)->kind;
}
static bool f_is_sum(renv *e, const rv *a, rv *out) {
  return rv_bool(out, kind_of(e, a) == TARN_RED_SUM);
}
static bool f_is_extreme(renv *e, const rv *a, rv *out) {
  tarn_red_kind k = kind_of(e, a);
  return rv_bool(out, k == TARN_RED_MAX || k == TARN_RED_MIN);
}
/* A built-in reduction: its states merge by its own operator, in any order. */
static bool f_merges(renv *e, const rv *a, rv *out) {
  tarn_red_kind k = kind_of(e, a);
  return rv_bool(out, k != TARN_RED_NONE && k != TARN_RED_CUSTOM);
}
static bool f_commutes(renv *e, const rv *a, rv *out) {
  const tarn_func *f = rv_func(e, a);
  return rv_bool(out, f->red != TARN_NONE && tarn_reducer_get(e->L, f->red)->commutative);
}
/* The body is $0 alone: the reduction of the elements themselves. */
static bool f_bare(renv *e, const rv *a, rv *out) {
  return rv_bool(out, rv_func(e, a)->body == tarn_fx_hole(e->L, 0) && rv_func(e, a)->nops == 1 &&
                          !rv_func(e, a)->ntuple);
}
static bool f_is_add(renv *e, const rv *a, rv *out) {
  const tarn_func *f = rv_func(e, a);
  uint32_t h0 = tarn_fx_hole(e->L, 0), h1 = tarn_fx_hole(e->L, 1);
  return rv_bool(out, f->red == TARN_NONE && f->body == tarn_fx_op(e->L, TARN_FX_ADD, h0, h1, 0));
}

/* ---------------------------------------------------------------- values */
/* f of constants: the map's value where all its operands are x. None when it depends on more. */
static bool f_apply(renv *e, const rv *a, rv *out) {
  const tarn_func *f = rv_func(e, a);
  uint32_t with[MOST], n = f->ntuple ? f->ntuple : f->nops;
  if (f->red != TARN_NONE || n > MOST) return false;
  for (uint32_t i = 0; i < n; i++) with[i] = a[1].id;
  *out = (rv){.kind = 'x', .id = tarn_fx_subst(e->L, f->body, with, n)};
  return tarn_fx_get(e->L, out->id)->op == TARN_FX_CONST;
}
/* x is the identity of f's reduction of f's body there: body(x, …) = identity. */
static bool f_fill_is_identity(renv *e, const rv *a, rv *out) {
  const tarn_func *f = rv_func(e, a + 1);
  uint32_t with[MOST], n = f->ntuple ? f->ntuple : f->nops;
  if (f->red == TARN_NONE || n > MOST) return false;
  for (uint32_t i = 0; i < n; i++) with[i] = a[0].id;
  uint32_t v = tarn_fx_subst(e->L, f->body, with, n);
  return rv_bool(out, v == tarn_reducer_identity(e->L, f->red));
}
static bool f_is_zero(renv *e, const rv *a, rv *out) {
  const tarn_fx *x = tarn_fx_get(e->L, a->id);
  if (x->op != TARN_FX_CONST) return rv_bool(out, false);
  return rv_bool(out, tarn_dtype_is_float(x->dtype) ? x->value == 0 : x->ivalue == 0);
}

/* ---------------------------------------------------------------- new functions */
/* g with operand k replaced by f of f's operands; g, f maps in n-ary form: operands g<k, f, g>k. */
static bool inline_at(renv *e, const tarn_func *g, uint32_t k, const tarn_func *f, rv *out) {
  uint32_t with[MOST], inner[MOST];
  uint32_t n = g->nops - 1u + f->nops;
  if (g->ntuple || f->ntuple || f->red != TARN_NONE || g->red != TARN_NONE || n > MOST ||
      k >= g->nops)
    return false;
  holes(e, inner, f->nops, k);
  holes(e, with, k, 0);
  with[k] = tarn_fx_subst(e->L, f->body, inner, f->nops);
  for (uint32_t i = k + 1; i < g->nops; i++) with[i] = tarn_fx_hole(e->L, i - 1 + f->nops);
  return rv_func_made(e, out,
                      &(tarn_func){.nops = (uint8_t)n,
                                   .red = TARN_NONE,
                                   .epi = TARN_NONE,
                                   .body = tarn_fx_subst(e->L, g->body, with, g->nops)});
}
static bool f_inline(renv *e, const rv *a, rv *out) {
  return a[1].i >= 0 && inline_at(e, rv_func(e, a), (uint32_t)a[1].i, rv_func(e, a + 2), out);
}
/* A map g after a map f in any form: g's only operand. */
static bool f_compose(renv *e, const rv *a, rv *out) {
  tarn_func g = *rv_func(e, a), f = *rv_func(e, a + 1);
  if (g.ntuple || g.nops != 1 || g.red != TARN_NONE || f.red != TARN_NONE) return false;
  f.body = tarn_fx_subst(e->L, g.body, &f.body, 1);
  return rv_func_made(e, out, &f);
}
/* The reduction f with the map g after it; g's operand k is f's result, the others become epilogue
 * operands in order, behind those that f has. */
static bool f_epilogue(renv *e, const rv *a, rv *out) {
  tarn_func g = *rv_func(e, a), f = *rv_func(e, a + 2);
  uint32_t with[MOST], k = (uint32_t)a[1].i, at = f.nepi + 1u;
  if (g.ntuple || g.red != TARN_NONE || f.red == TARN_NONE || a[1].i < 0 || k >= g.nops)
    return false;
  if (g.nops + f.nepi > MOST) return false;
  for (uint32_t i = 0; i < g.nops; i++)
    with[i] =
        i == k ? (f.epi == TARN_NONE ? tarn_fx_hole(e->L, 0) : f.epi) : tarn_fx_hole(e->L, at++);
  f.epi = tarn_fx_subst(e->L, g.body, with, g.nops);
  f.nepi = (uint8_t)(at - 1);
  return rv_func_made(e, out, &f);
}
static bool f_map_part(renv *e, const rv *a, rv *out) {
  tarn_func f = *rv_func(e, a);
  f.red = f.epi = TARN_NONE;
  f.nepi = 0;
  return rv_func_made(e, out, &f);
}
static bool f_red_part(renv *e, const rv *a, rv *out) {
  const tarn_func *f = rv_func(e, a);
  return f->red != TARN_NONE && rv_func_made(e, out,
                                             &(tarn_func){.nops = 1,
                                                          .body = tarn_fx_hole(e->L, 0),
                                                          .red = f->red,
                                                          .epi = TARN_NONE});
}
/* Joins two results of the reduction f: a map of two operands. */
static bool f_merge_of(renv *e, const rv *a, rv *out) {
  const tarn_func *f = rv_func(e, a);
  if (f->red == TARN_NONE) return false;
  const tarn_reducer *r = tarn_reducer_get(e->L, f->red);
  return r->kind != TARN_RED_CUSTOM &&
         rv_func_made(
             e, out,
             &(tarn_func){.nops = 2, .body = r->merge[0], .red = TARN_NONE, .epi = TARN_NONE});
}

/* ---------------------------------------------------------------- nests */
static const tarn_nest *nest(renv *e, const rv *a) { return tarn_nest_get(e->L, a->id); }
static bool stage_reduces(renv *e, const tarn_stage *s) {
  return tarn_fn_get(e->L, s->fn)->red != TARN_NONE;
}

static bool f_nest_map(renv *e, const rv *a, rv *out) {
  return rv_bool(out, nest(e, a)->nstage == 1 && !stage_reduces(e, nest(e, a)->stage));
}
static bool f_nest_reduces(renv *e, const rv *a, rv *out) {
  const tarn_nest *n = nest(e, a);
  uint32_t outs = 0;
  for (uint32_t i = 0; i < n->nstage; i++) outs += n->stage[i].out;
  return rv_bool(out, outs == 1 && (n->nstage > 1 || stage_reduces(e, n->stage)));
}
static bool f_nest_single(renv *e, const rv *a, rv *out) {
  return rv_bool(out, nest(e, a)->nstage == 1);
}
static bool f_nest_stages(renv *e, const rv *a, rv *out) {
  return rv_bool(out, nest(e, a)->nstage >= a[1].i);
}

/* A nest of one child, a gather along that axis by indices of so many dims, and its loops over
 * samples. */
static bool load_gathering(renv *e, const rv *a, uint32_t child, kern *k, uint32_t *samples) {
  if (nest(e, a)->nchild != 1 || !kern_load(k, &e->host->nest, a[0].id, &child, 1)) return false;
  *samples = kern_samples(k, (uint32_t)a[1].i, (uint32_t)a[2].i);
  return *samples;
}
static bool f_beside(renv *e, const rv *a, rv *out) {
  kern k, p;
  uint32_t payload, n, m;
  if (!load_gathering(e, a, 0, &k, &n) || !load_gathering(e, a + 3, 1, &p, &m)) return false;
  if (!kern_beside(&k, &p, n < m ? n : m) || !kern_payload(&k, &payload)) return false;
  *out = (rv){.kind = 'n', .id = tarn_payload_get(e->L, payload)->id};
  return true;
}

const rfun rfun_fn_table[] = {
    {"nest-map", "n:b", f_nest_map, 0, "one elementwise stage"},
    {"nest-reduces", "n:b", f_nest_reduces, 0, "one result, and a reduction or several stages"},
    {"nest-single", "n:b", f_nest_single, 0, "one stage"},
    {"nest-stages", "ni:b", f_nest_stages, 0, "at least that many stages"},
    {"beside", "niinii:n", f_beside, 0,
     "two nests, each of one gather along that axis by indices of so many dims, as one of two "
     "results, whose shared loops are those over samples; none where they have none"},
    {"is-map", "f:b", f_is_map, 0, "elementwise, no reduction"},
    {"is-dot", "f:b", f_is_dot, 0, "sum of $0 * $1, in either form"},
    {"is-sum", "f:b", f_is_sum, 0, "reduces by adding"},
    {"is-extreme", "f:b", f_is_extreme, 0, "reduces by max or min"},
    {"is-add", "f:b", f_is_add, 0, "the map $0 + $1"},
    {"merges", "f:b", f_merges, 0, "reduces by a built-in operator"},
    {"commutes", "f:b", f_commutes, 0, "the reduction may take its elements in any order"},
    {"bare", "f:b", f_bare, 0, "the body is the element itself"},
    {"plain", "f:b", f_plain, 0, "has no epilogue"},
    {"arity", "f:i", f_arity, 0, "number of operands"},
    {"tuple", "f:i", f_tuple, 0, "length of the tuple in tuple form, else 0"},
    {"apply", "fx:x", f_apply, 0, "the map's value on a constant"},
    {"fill-is-identity", "xf:b", f_fill_is_identity, 0,
     "is the body, where all operands are this constant, the identity of the reduction?"},
    {"is-zero", "x:b", f_is_zero, 0, ""},
    {"inline", "fif:f", f_inline, 0, "a map with operand k computed by another map"},
    {"compose", "ff:f", f_compose, 0, "(compose g f): a map after a map"},
    {"epilogue", "fif:f", f_epilogue, 0,
     "(epilogue g k f): a map of a reduction's result and other operands"},
    {"map-part", "f:f", f_map_part, 0, "the body as a map"},
    {"red-part", "f:f", f_red_part, 0, "the reduction of the elements themselves"},
    {"merge-of", "f:f", f_merge_of, 0, "the map that joins two partial results"},
};
const uint32_t rfun_fn_count = sizeof rfun_fn_table / sizeof *rfun_fn_table;
