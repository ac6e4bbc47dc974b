/* tarn equal: inputs on which two programs differ.
 *
 * Numbers are drawn in several ways, as no one of them shows everything: small whole numbers, large
 * ones, of one sign, with many that are equal, at the ends of the type. Values are compared in f64,
 * and a difference counts when it is beyond what rounding may do to either side. Then as many
 * numbers as possible become 0, then round ones. */
#include "cli/equal.h"
#include <math.h>
#include <string.h>

/* ---- inputs ---- */
typedef enum { DRAW_UNIFORM, DRAW_WHOLE, DRAW_TIED, DRAW_SPECIAL, DRAW_SCALED } how;
static const struct {
  how how;
  double lo, hi;
} kinds[] = {{DRAW_WHOLE, -2, 2},         {DRAW_UNIFORM, -1, 1}, {DRAW_UNIFORM, -100, 100},
             {DRAW_UNIFORM, -8, 0},       {DRAW_TIED, -1, 1},    {DRAW_UNIFORM, 0, 1e4},
             {DRAW_SPECIAL, 0, 0},        {DRAW_SCALED, -6, 6},  {DRAW_UNIFORM, -1e-3, 1e-3},
             {DRAW_UNIFORM, -3e38, 3e38}, {DRAW_TIED, 0, 70},    {DRAW_SCALED, -30, 30}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static double largest(tarn_dtype t) {
  if (t == TARN_F32 || t == TARN_F64 || t == TARN_BF16) return 3.3e38;
  return t == TARN_F16 ? 65504 : 240;
}
static double unit(uint64_t *seed) {
  return (double)(tarn_random(seed) >> 11) / 9007199254740992.0;
}
static double draw(uint32_t kind, uint64_t *seed) {
  static const double special[] = {0,     -0.0, 1,     -1,   0.5,   2,      6,  -3,   127,
                                   65504, 1e10, -1e10, 1e30, 1e-38, -1e-30, 88, -104, 1e-6};
  double lo = kinds[kind].lo, hi = kinds[kind].hi, u = unit(seed);
  switch (kinds[kind].how) {
  case DRAW_WHOLE: return floor(lo + u * (hi - lo + 1));
  case DRAW_TIED: return u < 0.4 ? lo : u < 0.8 ? hi : (lo + hi) / 2;
  case DRAW_SPECIAL: return special[(size_t)(u * (sizeof special / sizeof *special))];
  case DRAW_SCALED: return (u < 0.5 ? -1 : 1) * pow(10, lo + unit(seed) * (hi - lo));
  default: return lo + u * (hi - lo);
  }
}
static tarn_tensor *floats(const equal_job *k, const tarn_type *t, uint32_t kind, uint64_t *seed) {
  tarn_tensor *x = tarn_tensor_new(k->cx, t->dtype, t->n, t->dim);
  double most = largest(t->dtype);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) {
    tarn_value v = {.d = fmax(-most, fmin(most, draw(kind, seed)))};
    tarn_tensor_set(x, i, v);
  }
  return x;
}

/* ---- what is compared ---- */
typedef struct trial {
  equal_job *k;
  const tarn_term *root; /* n of the first, n of the second */
  uint32_t n;
  tarn_program program; /* of the roots: its inputs are what they read */
  tarn_domain *domain;
  tarn_binding *in;
} trial;
uint32_t equal_terms(equal_job *k, const tarn_term *root, uint32_t n, const tarn_term **out) {
  tarn_map *seen = tarn_map_new(k->cx);
  TARN_VEC(tarn_term) all = {0};
  bool fresh;
  for (uint32_t i = 0; i < n; i++) {
    tarn_map_at(seen, root[i], &fresh);
    if (fresh) tarn_push(k->cx, &all, root[i]);
  }
  for (uint32_t i = 0; i < all.n; i++) {
    const tarn_node *x = tarn_term_get(k->L, all.p[i]);
    for (uint32_t d = 0; d < x->n; d++) {
      tarn_map_at(seen, x->kid[d], &fresh);
      if (fresh) tarn_push(k->cx, &all, x->kid[d]);
    }
  }
  *out = all.p;
  return all.n;
}
static trial trial_of(equal_job *k, const tarn_term *root, uint32_t n_roots) {
  trial t = {k, root, n_roots / 2, {.L = k->L}, NULL, NULL};
  const tarn_term *term;
  uint32_t n = equal_terms(k, root, n_roots, &term);
  t.program.in = TARN_ARRAY(k->cx, tarn_io, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_node *x = tarn_term_get(k->L, term[i]);
    if (x->op == TARN_OP_INPUT)
      t.program.in[t.program.nin++] =
          (tarn_io){tarn_payload_get(k->L, x->payload)->name, term[i], x->type};
  }
  t.program.out = TARN_ARRAY(k->cx, tarn_io, n_roots + 1), t.program.nout = n_roots;
  for (uint32_t i = 0; i < n_roots; i++) {
    t.program.out[i] = (tarn_io){"out", root[i], tarn_term_get(k->L, root[i])->type};
  }
  t.domain = TARN_ARRAY(k->cx, tarn_domain, t.program.nin + 1);
  t.in = TARN_ARRAY(k->cx, tarn_binding, t.program.nin + 1);
  tarn_input_domains(&t.program, tarn_opaque_index, t.domain);
  return t;
}
static void draw_inputs(trial *t, uint64_t sample) {
  uint64_t seed = tarn_hash_mix(t->k->seed + 1, sample);
  for (uint32_t i = 0; i < t->program.nin; i++) {
    const tarn_type *type = tarn_type_get(t->k->L, t->program.in[i].type);
    tarn_tensor *x =
        tarn_dtype_is_float(type->dtype)
            ? floats(t->k, type, (uint32_t)(sample % KINDS), &seed)
            : tarn_random_tensor(t->k->cx, type->dtype, type->n, type->dim, t->domain[i], &seed);
    t->in[i] = (tarn_binding){t->program.in[i].name, x};
  }
}
static tarn_tensor **evaluate(const trial *t, uint32_t n, tarn_mode mode) {
  tarn_tensor **out = TARN_ARRAY(t->k->cx, tarn_tensor *, n + 1);
  tarn_go_on(t->k->cx);
  tarn_eval(t->k->L, t->root, n, t->in, t->program.nin, mode, tarn_opaque_eval, out);
  return out;
}
tarn_tensor **equal_values(equal_job *k, const tarn_term *root, uint32_t n, uint64_t sample) {
  trial t = trial_of(k, root, n);
  draw_inputs(&t, sample);
  return evaluate(&t, n, TARN_WIDE);
}

/* ---- differences ---- */
/* The largest magnitude, by which constants that were rounded move other elements too. */
static double most(const tarn_tensor *t) {
  double m = 0;
  for (int64_t i = 0; i < tarn_tensor_count(t); i++)
    if (isfinite(tarn_tensor_number(t, i))) m = fmax(m, fabs(tarn_tensor_number(t, i)));
  return m;
}
/* Of two tensors, over their largest magnitude. */
static double distance(const tarn_tensor *a, const tarn_tensor *b) {
  double largest_of = fmax(most(a), most(b)), d = 0;
  for (int64_t i = 0; i < tarn_tensor_count(a); i++)
    d = fmax(d, fabs(tarn_tensor_number(a, i) - tarn_tensor_number(b, i)));
  return largest_of > 0 && isfinite(d) ? d / largest_of : 0;
}
/* slack: an infinite one excuses everything. */
static bool apart(double x, double y, double slack) {
  if ((isnan(x) && isnan(y)) || x == y) return false;
  if (isnan(x) || isnan(y) || isinf(x) || isinf(y)) return isfinite(slack);
  return fabs(x - y) > slack;
}
static bool differ_at(const trial *t, tarn_tensor *const *out, uint32_t i, double rtol,
                      int64_t *at) {
  const tarn_tensor *a = out[i], *b = out[t->n + i];
  double slack = tarn_dtype_is_float(a->dtype) && rtol > 0 ? rtol * most(a) : 0;
  for (*at = 0; *at < tarn_tensor_count(a); ++*at)
    if (apart(tarn_tensor_number(a, *at), tarn_tensor_number(b, *at), slack)) return true;
  return false;
}
static bool keep(equal_witness *w, uint32_t output, int64_t at, double a, double b) {
  w->output = output, w->at = at, w->value[0] = a, w->value[1] = b;
  return true;
}
/* Beyond what rounding does to either side? */
static bool confirmed(const trial *t, equal_witness *w) {
  tarn_rounding *r = TARN_ARRAY(t->k->cx, tarn_rounding, 2 * t->n + 1);
  tarn_go_on(t->k->cx);
  tarn_eval_rounding(t->k->L, t->root, 2 * t->n, t->in, t->program.nin, TARN_NOISY_RUNS,
                     (tarn_noise){.seed = 1, .sums = true}, tarn_opaque_eval, r);
  for (uint32_t i = 0; i < t->n; i++) {
    const tarn_rounding *a = &r[i], *b = &r[t->n + i];
    bool real = tarn_dtype_is_float(tarn_term_type(t->k->L, t->root[i])->dtype);
    double least = real ? t->k->rtol * most(a->wide) : 0;
    for (int64_t at = 0; at < tarn_tensor_count(a->wide); at++) {
      double x = tarn_tensor_number(a->wide, at), y = tarn_tensor_number(b->wide, at);
      double off = tarn_tensor_number(a->error, at) + tarn_tensor_number(b->error, at);
      if (apart(x, y, least + TARN_JUDGE_TIMES * off)) return keep(w, i, at, x, y);
    }
  }
  return false;
}
/* By more than 1e-4 of the largest element: no rounding of constants does that alone. */
static void note_hint(const trial *t, tarn_tensor *const *out, uint32_t i) {
  equal_witness *h = &t->k->hint;
  int64_t at;
  t->k->hinted = differ_at(t, out, i, 1e-4, &at);
  if (!t->k->hinted) return;
  keep(h, i, at, tarn_tensor_number(out[i], at), tarn_tensor_number(out[t->n + i], at));
  h->nin = t->program.nin, h->in = t->in;
}
static bool differs(const trial *t, equal_witness *w) {
  bool exact = t->k->numerics == TARN_RULE_EXACT;
  tarn_tensor **out = evaluate(t, 2 * t->n, exact ? TARN_STRICT : TARN_WIDE);
  for (uint32_t i = 0; i < t->n; i++) {
    int64_t at;
    t->k->worst = fmax(t->k->worst, distance(out[i], out[t->n + i]));
    if (!differ_at(t, out, i, exact ? 0 : t->k->rtol, &at)) continue;
    if (!exact) {
      note_hint(t, out, i);
      bool sure = confirmed(t, w);
      t->k->hinted = false;
      return sure;
    }
    return keep(w, i, at, tarn_tensor_number(out[i], at), tarn_tensor_number(out[t->n + i], at));
  }
  return false;
}

/* ---- fewer numbers ---- */
typedef struct shrinking {
  trial *t;
  equal_witness *w;
  tarn_tensor *open; /* is being tried with other elements than before, which are */
  tarn_value *was;
  int64_t first, end;
} shrinking;
static void take_back(shrinking *s) {
  for (int64_t i = s->first; s->open && i < s->end; i++)
    tarn_tensor_set(s->open, i, s->was[i - s->first]);
  s->open = NULL;
}
/* Elements from first to end as to() says, if that still shows a difference. */
static bool try_change(shrinking *s, uint32_t input, int64_t first, int64_t end,
                       double to(double x)) {
  tarn_tensor *x = (tarn_tensor *)(uintptr_t)s->t->in[input].value;
  size_t n = (size_t)(end - first);
  bool any = false;
  s->was = TARN_ARRAY(s->t->k->cx, tarn_value, n + 1), s->first = first, s->end = end;
  for (int64_t i = first; i < end; i++) s->was[i - first] = tarn_tensor_get(x, i);
  s->open = x;
  for (int64_t i = first; i < end; i++) {
    tarn_value v = {.d = to(s->was[i - first].d)};
    any |= v.d != s->was[i - first].d;
    tarn_tensor_set(x, i, v);
  }
  equal_witness w = *s->w;
  bool holds = !any || differs(s->t, &w);
  if (holds) *s->w = w, s->open = NULL;
  else take_back(s);
  return holds;
}
static double nought(double x) {
  (void)x;
  return 0;
}
static double rounded(double x) {
  if (x == 0 || !isfinite(x)) return x;
  double unit_of = pow(10, floor(log10(fabs(x))));
  return round(x / unit_of) * unit_of;
}
static void shrink_in(shrinking *s, uint32_t input, int64_t first, int64_t end, uint32_t *left) {
  if (first >= end || !*left || (--*left, try_change(s, input, first, end, nought))) return;
  if (end - first == 1) {
    if (*left) --*left, try_change(s, input, first, end, rounded);
    return;
  }
  int64_t middle = first + (end - first) / 2;
  shrink_in(s, input, first, middle, left);
  shrink_in(s, input, middle, end, left);
}
static void shrink(tarn_ctx *cx, void *arg) {
  shrinking *s = arg;
  uint32_t left = 100;
  (void)cx;
  for (uint32_t i = 0; i < s->t->program.nin; i++)
    if (tarn_dtype_is_float(s->t->in[i].value->dtype))
      shrink_in(s, i, 0, tarn_tensor_count(s->t->in[i].value), &left);
}

bool equal_differ(equal_job *k, const tarn_term *a, const tarn_term *b, uint32_t n,
                  equal_witness *w) {
  tarn_term *root = TARN_ARRAY(k->cx, tarn_term, 2 * n + 1);
  memcpy(root, a, n * sizeof *a), memcpy(root + n, b, n * sizeof *b);
  trial t = trial_of(k, root, 2 * n);
  for (uint64_t i = 0; i < k->samples; i++) {
    draw_inputs(&t, i);
    bool found = differs(&t, w);
    k->tried++;
    if (!found) continue;
    shrinking s = {.t = &t, .w = w};
    equal_in_time(k, 0.5, shrink, &s);
    take_back(&s);
    w->nin = t.program.nin, w->in = t.in;
    return true;
  }
  return false;
}
