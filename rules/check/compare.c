/* Both sides of an instance, evaluated and compared; the instance as text. */
#include "rules/check/check.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- the work that an evaluation costs */

/* Elements of all results and operands below the terms; more than C_WORK are too many. */
static int64_t work_of(const gen *g, tarn_map *seen, tarn_term t) {
  bool fresh;
  tarn_map_at(seen, t, &fresh);
  if (!fresh) return 0;
  const tarn_node *x = tarn_term_get(g->L, t);
  const tarn_type *type = tarn_type_get(g->L, x->type);
  int64_t sum = type->tuple ? 0 : tarn_type_count(type);
  for (uint32_t i = 0; i < x->n && sum <= C_WORK; i++) sum += work_of(g, seen, x->kid[i]);
  return sum;
}
static bool affordable(const gen *g) {
  tarn_map *seen = tarn_map_new(g->cx);
  int64_t sum = 0;
  for (uint32_t i = 0; i < g->nroot; i++) sum += work_of(g, seen, g->left[i]);
  for (uint32_t i = 0; i < g->r->nrhs; i++) sum += work_of(g, seen, g->right[i]);
  return sum <= C_WORK;
}

/* ---------------------------------------------------------------- evaluation */

/* The left root that right side i rewrites. */
static uint32_t left_of(const gen *g, uint32_t i) {
  const rule *r = g->r;
  for (uint32_t k = 0; k < r->nlhs && r->rhs[i].var != TARN_NONE; k++)
    if (r->lhs[k].var == r->rhs[i].var) return g->left[k];
  return r->rhs[i].var != TARN_NONE ? g->e.cls[r->rhs[i].var] : g->left[0];
}

static void give_values(gen *g, bool wide) {
  for (uint32_t i = 0; i < g->nleaf; i++) {
    leaf *f = &g->leaf[i];
    if (f->kind == F_CONST || f->kind == F_DERIVED) continue;
    tarn_tensor **to = wide ? &f->wide : &f->strict;
    *to = some_values(g, type_at(g, f->term), f, !wide);
  }
}

static void evaluate(gen *g, tarn_mode mode, bool wide_values, const tarn_term *t, uint32_t n, tarn_tensor **out) {
  tarn_binding in[R_CLASSES];
  uint32_t nin = 0;
  for (uint32_t i = 0; i < g->nleaf; i++) {
    const leaf *f = &g->leaf[i];
    const tarn_node *x = tarn_term_get(g->L, f->term);
    if (x->op != TARN_OP_INPUT) continue;
    in[nin++] = (tarn_binding){tarn_payload_get(g->L, x->payload)->name, wide_values ? f->wide : f->strict};
  }
  tarn_eval(g->L, t, n, in, nin, mode, NULL, out);
}

/* ---------------------------------------------------------------- comparison */

bool check_same_bits(const tarn_tensor *a, const tarn_tensor *b) {
  int64_t n = tarn_tensor_count(a);
  bool real = tarn_dtype_is_float(a->dtype);
  for (int64_t i = 0; i < n; i++) {
    tarn_value x = tarn_tensor_get(a, i), y = tarn_tensor_get(b, i);
    if (real && isnan(x.d) && isnan(y.d)) continue;
    if (x.i != y.i) return false;
  }
  return true;
}

double check_distance(const tarn_tensor *a, const tarn_tensor *b, int64_t *where) {
  int64_t n = tarn_tensor_count(a);
  double most = 0, diff = 0;
  if (!tarn_dtype_is_float(a->dtype)) return check_same_bits(a, b) ? 0 : INFINITY;
  for (int64_t i = 0; i < n; i++) {
    double x = tarn_tensor_get(a, i).d, y = tarn_tensor_get(b, i).d, d = fabs(x - y);
    if (!isfinite(x) || x == y) continue;
    if (isnan(d)) d = INFINITY;
    if (d > diff) diff = d, *where = i;
    most = fmax(most, fabs(x));
  }
  return diff == 0 ? 0 : diff / fmax(most, 1e-3);
}

/* Would replacing every root by its right side make a term contain itself? */
static bool cyclic(const gen *g) {
  const rule *r = g->r;
  if (r->nlhs < 2) return false;
  for (uint32_t i = 0; i < r->nrhs; i++)
    for (uint32_t k = 0; k < g->nroot; k++)
      if (g->plain.depends(g->plain.user, g->left[k], g->right[i]) && !(g->r->lhs[k].pat->kind == RP_VAR)) return true;
  return false;
}

static bool same_types(const gen *g) {
  for (uint32_t i = 0; i < g->r->nrhs; i++)
    if (tarn_term_get(g->L, left_of(g, i))->type != tarn_term_get(g->L, g->right[i])->type) return false;
  return true;
}

void check_compare(gen *g, verdict *v) {
  tarn_term t[2 * R_SEGS];
  tarn_tensor *strict[2 * R_SEGS], *wide[2 * R_SEGS], *rounded[2 * R_SEGS];
  uint32_t n = g->r->nrhs;
  int64_t where = 0;
  v->exact = v->real = true;
  for (uint32_t i = 0; i < n; i++) {
    t[i] = left_of(g, i), t[n + i] = g->right[i];
    v->differs |= t[i] != t[n + i];
  }
  if (!v->differs) return;
  if (!same_types(g)) v->why = "the sides differ in type";
  else if (cyclic(g)) v->why = "the right side contains what it replaces";
  if (v->why) {
    v->exact = v->real = false;
    v->error = INFINITY;
    return;
  }
  if (!affordable(g) || tarn_term_type(g->L, t[0])->tuple) {
    v->applied = false;
    return;
  }
  give_values(g, false);
  evaluate(g, TARN_STRICT, false, t, 2 * n, strict);
  for (uint32_t i = 0; i < n; i++) v->exact &= check_same_bits(strict[i], strict[n + i]);
  if (v->exact && g->r->numeric == TARN_RULE_EXACT) return;
  give_values(g, true);
  evaluate(g, TARN_WIDE, true, t, 2 * n, wide);
  evaluate(g, TARN_STRICT, true, t + n, n, rounded);
  for (uint32_t i = 0; i < n; i++) {
    if (check_distance(wide[i], wide[n + i], &where) > 1e-9) v->real = false;
    v->error = fmax(v->error, check_distance(wide[i], rounded[i], &where));
  }
}

bool check_bad(const rule *r, const verdict *v) {
  if (!v->made || !v->applied || !v->differs) return false;
  if (v->why) return true;
  if (r->numeric == TARN_RULE_EXACT) return !v->exact;
  if (r->numeric == TARN_RULE_REASSOC) return !v->real;
  return v->error > r->bound;
}

/* ---------------------------------------------------------------- text */

void check_print_elements(tarn_buf *b, const tarn_tensor *t) {
  int64_t n = tarn_tensor_count(t), shown = n < 24 ? n : 24;
  for (int64_t i = 0; i < shown; i++) {
    tarn_value x = tarn_tensor_get(t, i);
    tarn_buf_str(b, " ");
    if (tarn_dtype_is_float(t->dtype)) tarn_buf_double(b, t->dtype == TARN_F32 ? (double)(float)x.d : x.d);
    else tarn_buf_fmt(b, "%lld", (long long)x.i);
  }
  if (shown < n) tarn_buf_fmt(b, " … (%lld in all)", (long long)n);
}

static void print_leaves(const gen *g, tarn_buf *b, bool wide) {
  for (uint32_t i = 0; i < g->nleaf; i++) {
    const leaf *f = &g->leaf[i];
    const tarn_tensor *x = wide ? f->wide : f->strict;
    if (!x || f->var == TARN_NONE || f->kind == F_CONST || f->kind == F_DERIVED) continue;
    tarn_buf_fmt(b, "    %s:", g->r->cls_name[f->var] + 1);
    check_print_elements(b, x);
    tarn_buf_str(b, "\n");
  }
}

static void print_values(gen *g, const verdict *v, tarn_buf *b, uint32_t i) {
  bool strict = g->r->numeric == TARN_RULE_EXACT;
  tarn_term t[2] = {left_of(g, i), g->right[i]};
  tarn_tensor *x[2];
  if (v->why) return;
  evaluate(g, strict ? TARN_STRICT : TARN_WIDE, !strict, t, 1, x);
  evaluate(g, strict || g->r->numeric == TARN_RULE_APPROX ? TARN_STRICT : TARN_WIDE, !strict, t + 1, 1, x + 1);
  for (int k = 0; k < 2; k++) {
    tarn_buf_fmt(b, "    %s:", k ? "right" : "left");
    check_print_elements(b, x[k]);
    tarn_buf_str(b, "\n");
  }
}

void check_print(gen *g, const verdict *v, tarn_buf *b) {
  const char *how = g->r->numeric == TARN_RULE_EXACT     ? "strict f32"
                    : g->r->numeric == TARN_RULE_REASSOC ? "real arithmetic"
                                                         : "strict f32 against real arithmetic";
  tarn_buf_fmt(b, "  %s (%s:%u): %s\n", g->r->name, g->r->at->file, g->r->at->line,
               v->why ? v->why : "the sides have different values");
  for (uint32_t i = 0; i < g->r->nrhs; i++) {
    for (int k = 0; k < 2; k++) {
      tarn_term t = k ? g->right[i] : left_of(g, i);
      tarn_buf_str(b, k ? "  right " : "  left  ");
      tarn_term_print(g->L, b, t);
      tarn_buf_str(b, "\n    ; ");
      tarn_type_print(g->L, b, tarn_term_get(g->L, t)->type);
      tarn_buf_str(b, "\n");
    }
  }
  if (v->why) return;
  tarn_buf_fmt(b, "  values (%s)\n", how);
  print_leaves(g, b, g->r->numeric != TARN_RULE_EXACT);
  for (uint32_t i = 0; i < g->r->nrhs; i++) print_values(g, v, b, i);
}
