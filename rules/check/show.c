/* A counterexample as text: both sides with their types, what was given to them, and the element in
 * which they differ, with its bits where its digits do not tell. */
#include "rules/check/check.h"
#include "rules/proof/points.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 24 };

/* ---------------------------------------------------------------- elements */

/* As many digits as tell it from its neighbours in its type. */
static void print_value(tarn_buf *b, tarn_dtype t, tarn_value x) {
  if (!tarn_dtype_is_float(t)) {
    tarn_buf_fmt(b, "%lld", (long long)x.i);
    return;
  }
  char text[48];
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x.d);
    double back = strtod(text, NULL);
    if (t == TARN_F64 ? back == x.d : (float)back == (float)x.d) break;
  }
  tarn_buf_str(b, isnan(x.d) ? "nan" : text);
}
static void print_some(tarn_buf *b, const tarn_tensor *t, tarn_dtype as, int64_t from) {
  int64_t n = tarn_tensor_count(t), to = n < from + SHOWN ? n : from + SHOWN;
  if (from) tarn_buf_fmt(b, " (from element %lld)", (long long)from);
  for (int64_t i = from; i < to; i++) {
    tarn_buf_str(b, " ");
    print_value(b, as, tarn_tensor_get(t, i));
  }
  if (to < n || from) tarn_buf_fmt(b, "%s (%lld in all)", to < n ? " …" : "", (long long)n);
}
void check_print_elements(tarn_buf *b, const tarn_tensor *t) { print_some(b, t, t->dtype, 0); }

static void print_leaves(const gen *g, tarn_buf *b) {
  for (uint32_t i = 0; i < g->nleaf; i++) {
    const leaf *f = &g->leaf[i];
    const tarn_tensor *x = f->value;
    const tarn_node *t = tarn_term_get(g->L, f->term);
    if (!x || t->op != TARN_OP_INPUT) continue;
    tarn_buf_fmt(b, "    %s:", tarn_payload_get(g->L, t->payload)->name);
    check_print_elements(b, x);
    tarn_buf_str(b, "\n");
  }
}

/* ---------------------------------------------------------------- what rounding may do */

void check_print_bound(tarn_buf *b, const pvalue *v) {
  const char *why = rounding_why(&v->r);
  tarn_buf_fmt(b, " %.9g, off by up to %.3g", v->v.d, rounding_total(&v->r, v->v.d) * 0x1p-24);
  if (why) tarn_buf_fmt(b, " (%s)", why);
  tarn_buf_str(b, "\n");
}

/* The worst element, and what rounding may do to it on either side. */
static void print_bounds(gen *g, tarn_buf *b, const tarn_term *t) {
  tarn_map *given = check_given(g);
  tarn_tensor *strict[2];
  int64_t at = 0, n;
  double x = check_against_bound(g, t[0], t[1], &at);
  check_evaluate(g, TARN_STRICT, t, 2, strict);
  tarn_buf_fmt(b, "    element %lld, %.3g times what rounding may do to the left side:\n",
               (long long)at, x);
  for (int k = 0; k < 2; k++) {
    if (k && g->r->nwritten) {
      tarn_buf_fmt(b, "      right, computed: %.9g\n", tarn_tensor_get(strict[k], at).d);
      return;
    }
    const pvalue *v = check_bounds(g, given, t[k], &n) + at;
    if (n == 0 || !tarn_dtype_is_float(strict[k]->dtype)) return;
    tarn_buf_fmt(b, "      %s, in its type %.9g:", k ? "right" : "left",
                 tarn_tensor_get(strict[k], at).d);
    check_print_bound(b, v);
  }
}

/* ---------------------------------------------------------------- where they differ */

static uint64_t bits_of(tarn_dtype t, tarn_value x) {
  float f = (float)x.d;
  uint32_t word;
  uint64_t all;
  memcpy(&word, &f, sizeof word);
  memcpy(&all, &x.d, sizeof all);
  return t == TARN_F64 ? all : word;
}
static const char *how_they_differ(tarn_dtype t, tarn_value x, tarn_value y) {
  if (!tarn_dtype_is_float(t)) return "";
  if (isnan(x.d) || isnan(y.d)) return ", one is no number";
  if (x.d == 0 && y.d == 0) return ", zeros of different sign";
  if (isinf(x.d) || isinf(y.d)) return ", one is infinite";
  return "";
}
/* By how much: the first element for a rule that keeps every bit, else the one farthest off. */
static int64_t differs_at(const gen *g, tarn_tensor *const *x) {
  int64_t n = tarn_tensor_count(x[0]), at = 0;
  if (g->r->numeric != TARN_RULE_EXACT) {
    check_distance(x[0], x[1], &at);
    return at;
  }
  for (; at < n; at++) {
    tarn_value a = tarn_tensor_get(x[0], at), b = tarn_tensor_get(x[1], at);
    bool nan = tarn_dtype_is_float(x[0]->dtype) && isnan(a.d) && isnan(b.d);
    if (!nan && a.i != b.i) return at;
  }
  return -1;
}
static void print_index(tarn_buf *b, const tarn_tensor *x, int64_t flat) {
  int64_t below = tarn_tensor_count(x);
  tarn_buf_str(b, "(");
  for (uint32_t d = 0; d < x->n; d++) {
    below /= x->dim[d];
    tarn_buf_fmt(b, d ? " %lld" : "%lld", (long long)(flat / below % x->dim[d]));
  }
  tarn_buf_str(b, ")");
}
static void print_difference(tarn_buf *b, tarn_tensor *const *x, tarn_dtype as, int64_t at) {
  tarn_value v = tarn_tensor_get(x[0], at), w = tarn_tensor_get(x[1], at);
  tarn_buf_str(b, "    element ");
  print_index(b, x[0], at);
  tarn_buf_str(b, ": left ");
  print_value(b, as, v);
  tarn_buf_str(b, ", right ");
  print_value(b, as, w);
  tarn_buf_str(b, how_they_differ(as, v, w));
  if (as == x[0]->dtype && tarn_dtype_is_float(as))
    tarn_buf_fmt(b, " (bits %0*llx and %0*llx)", as == TARN_F64 ? 16 : 8,
                 (unsigned long long)bits_of(as, v), as == TARN_F64 ? 16 : 8,
                 (unsigned long long)bits_of(as, w));
  tarn_buf_str(b, "\n");
}
static void print_values(gen *g, tarn_buf *b, uint32_t i) {
  tarn_rule_class of = g->r->numeric;
  tarn_term t[2] = {check_left(g, i), g->right[i]};
  tarn_tensor *x[2];
  check_evaluate(g, of == TARN_RULE_EXACT ? TARN_STRICT : TARN_WIDE, t, 1, x);
  check_evaluate(g, of == TARN_RULE_REASSOC ? TARN_WIDE : TARN_STRICT, t + 1, 1, x + 1);
  tarn_dtype as = of == TARN_RULE_EXACT ? x[0]->dtype : TARN_F64;
  if (!tarn_dtype_is_float(x[0]->dtype)) as = x[0]->dtype;
  int64_t at = differs_at(g, x), from = at < SHOWN / 2 ? 0 : at - SHOWN / 2;
  for (int k = 0; k < 2; k++) {
    tarn_buf_fmt(b, "    %s:", k ? "right" : "left");
    print_some(b, x[k], as, tarn_tensor_count(x[0]) <= SHOWN ? 0 : from);
    tarn_buf_str(b, "\n");
  }
  if (of == TARN_RULE_REASSOC) print_bounds(g, b, t);
  else if (at >= 0 && at < tarn_tensor_count(x[0])) print_difference(b, x, as, at);
}

static void print_side(gen *g, tarn_buf *b, const char *side, tarn_term t) {
  tarn_buf_str(b, side);
  tarn_term_print(g->L, b, t);
  tarn_buf_str(b, "\n    ; ");
  tarn_type_print(g->L, b, tarn_term_get(g->L, t)->type);
  tarn_buf_str(b, "\n");
}
void check_print(gen *g, const verdict *v, tarn_buf *b) {
  const char *how = g->r->numeric == TARN_RULE_EXACT     ? "strict f32"
                    : g->r->numeric == TARN_RULE_REASSOC ? "real arithmetic"
                                                         : "strict f32 against real arithmetic";
  tarn_buf_fmt(b, "  %s (%s:%u): %s\n", g->r->name, g->r->at->file, g->r->at->line,
               v->why ? v->why : "the sides have different values");
  for (uint32_t i = 0; i < g->r->nrhs; i++) {
    print_side(g, b, "  left  ", check_left(g, i));
    print_side(g, b, "  right ", g->right[i]);
  }
  if (v->why) return;
  tarn_buf_fmt(b, "  values (%s)\n", how);
  print_leaves(g, b);
  for (uint32_t i = 0; i < g->r->nrhs; i++) print_values(g, b, i);
}
