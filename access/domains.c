/* Finds the values that integer inputs of a program may have: the largest range for which every
 * index lies within its axis, by the arithmetic of intervals over the normal form; else what
 * constants they are compared with, their type, or a few small numbers.
 *
 * Intervals of a larger range hold those of a smaller one, so the ends are found by bisection.
 * Negative numbers are tried by themselves: what is added to them is then told from what is not.
 * Where 0 is not allowed, such as for a mask whose sum is a length, the range grows from 1, or from
 * a constant that what depends on the input is compared with. */
#include "access/fx_internal.h"
#include "access/judge.h"
#include <math.h>
#include <string.h>

#define INPUTS 64   /* integer inputs that are followed */
#define FEW    4096 /* floats of a constant that are looked at */
#define FAR    1e6  /* a constant beyond this says nothing */
#define SMALL  8    /* of an input of which nothing is known */
#define STARTS 32   /* numbers from which its range may grow */

typedef tarn_span span;

typedef struct fact {
  span is;
  uint64_t of;   /* integer inputs it depends on, a bit each */
  uint32_t same; /* the integer input whose values it moves; TARN_NONE: it makes others */
  const tarn_fxcode *body, *epi;
} fact;

typedef struct site { /* a value that must lie in a range */
  tarn_term index;
  span within;
  bool unknown; /* intervals say too little of it */
} site;

typedef struct domains {
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_opaque_index_fn *opaque;
  uint32_t n, nin;
  const tarn_term *term; /* ascending */
  fact *at;              /* by term */
  TARN_VEC(site) site;
  span in[INPUTS], soft[INPUTS];
  double from[INPUTS]; /* an allowed number */
  double start[INPUTS][STARTS];
  uint32_t nstart[INPUTS];
  const char *name[INPUTS];
  tarn_dtype type[INPUTS];
  span *slot; /* of the longest function */
  uint32_t most;
} domains;

static bool is_followed(tarn_dtype t) { return !tarn_dtype_is_float(t) && t != TARN_BOOL; }

/* ---------------------------------------------------------------- intervals */

static span span_of_type(tarn_dtype t) {
  int bits = (int)tarn_dtype_bits(t);
  if (tarn_dtype_is_float(t)) return (span){-INFINITY, INFINITY};
  if (tarn_dtype_is_signed(t)) return (span){-ldexp(1, bits - 1), ldexp(1, bits - 1) - 1};
  return (span){0, ldexp(1, bits) - 1};
}
static bool inside(span a, span b) { return a.lo >= b.lo && a.hi <= b.hi; }
static span hull(span a, span b) { return (span){fmin(a.lo, b.lo), fmax(a.hi, b.hi)}; }
static bool finite_span(span a) { return isfinite(a.lo) && isfinite(a.hi); }
/* Integers that leave their type wrap. */
static span fit(tarn_dtype t, span a) { return inside(a, span_of_type(t)) ? a : span_of_type(t); }

static span cast(tarn_dtype from, tarn_dtype to, span a) {
  span w = span_of_type(to);
  if (to == TARN_BOOL)
    return a.lo > 0 || a.hi < 0 ? (span){1, 1} : (span){0, a.lo == 0 && a.hi == 0 ? 0 : 1};
  if (tarn_dtype_is_float(to) || !tarn_dtype_is_float(from)) return fit(to, a);
  if (!finite_span(a)) a = hull(a, (span){0, 0}); /* it may be NaN */
  return (span){fmin(fmax(trunc(a.lo), w.lo), w.hi), fmax(fmin(trunc(a.hi), w.hi), w.lo)};
}

/* Is NaN possible where the interval of the result would not show it? */
static bool hides_nan(uint32_t op, const span *of) {
  const tarn_fxinfo *row = tarn_fx_info(op);
  bool finite = true;
  for (uint32_t k = 0; k < row->arity; k++) finite &= finite_span(of[k]);
  return !inside(of[0], row->domain) ||
         (!finite && (row->rounds == TARN_FXR_LIB || row->error == TARN_FXE_PRODUCT ||
                      tarn_fx_gives_bool(op)));
}
static span step_span(const tarn_fxstep *s, const span *of) {
  tarn_dtype t = (tarn_dtype)s->dtype, out = (tarn_dtype)s->out;
  if (s->op == TARN_FX_CAST) return cast(t, out, of[0]);
  return hides_nan(s->op, of) ? span_of_type(out) : fit(out, tarn_fx_span(s->op, t, of, false));
}

static span code_span(domains *r, const tarn_fxcode *code, const span *hole) {
  span *slot = r->slot;
  for (uint32_t i = 0; i < code->n; i++) {
    const tarn_fxstep *s = &code->step[i];
    double v = tarn_dtype_is_float((tarn_dtype)s->out) ? s->value.d : (double)s->value.i;
    if (s->op == TARN_FX_HOLE) slot[i] = hole[s->hole];
    else if (s->op == TARN_FX_CONST)
      slot[i] = isnan(v) ? span_of_type((tarn_dtype)s->out) : (span){v, v};
    else {
      const span of[3] = {slot[s->kid[0]], slot[s->kid[1]], slot[s->kid[2]]};
      slot[i] = step_span(s, of);
    }
  }
  return slot[code->root[0]];
}

/* ---------------------------------------------------------------- terms */

static span of_tensor(const tarn_tensor *t) {
  int64_t n = tarn_tensor_count(t);
  if (n == 0 || (tarn_dtype_is_float(t->dtype) && n > FEW)) return span_of_type(t->dtype);
  span r = {INFINITY, -INFINITY};
  for (int64_t i = 0; i < n; i++) {
    double v = tarn_tensor_number(t, i);
    if (isnan(v)) return span_of_type(t->dtype);
    r = hull(r, (span){v, v});
  }
  return r;
}

static span of_fill(domains *r, uint32_t fill) {
  const tarn_fx *x = tarn_fx_get(r->L, fill);
  double v = tarn_dtype_is_float(x->dtype) ? x->value : (double)x->ivalue;
  return isnan(v) ? span_of_type(x->dtype) : (span){v, v};
}

static uint32_t input_of(const domains *r, const tarn_node *x) {
  const char *name = tarn_payload_get(r->L, x->payload)->name;
  for (uint32_t i = 0; i < r->nin; i++)
    if (strcmp(r->name[i], name) == 0) return i;
  return TARN_NONE;
}

static span of_input(const domains *r, const tarn_node *x, tarn_dtype t) {
  uint32_t i = input_of(r, x);
  if (i != TARN_NONE) return r->in[i];
  return tarn_dtype_is_float(t) ? (span){-1, 1} : span_of_type(t);
}

/* Of n elements of body's range. */
static span reduced(const tarn_reducer *red, span body, int64_t n) {
  switch (red->kind) {
  case TARN_RED_SUM: return fit(red->dtype, (span){(double)n * body.lo, (double)n * body.hi});
  case TARN_RED_MAX:
  case TARN_RED_MIN: return n ? body : span_of_type(red->dtype);
  default: return span_of_type(red->dtype);
  }
}

static span of_compute(domains *r, const tarn_node *x, const fact *f) {
  const tarn_func *fn = tarn_fn_get(r->L, tarn_payload_get(r->L, x->payload)->id);
  const tarn_type *t = tarn_term_type(r->L, x->kid[0]);
  span hole[2 * (UINT8_MAX + 1)];
  for (uint32_t i = 0; i < fn->nops; i++) hole[i] = r->at[x->kid[i]].is;
  span body = code_span(r, f->body, hole);
  if (fn->red == TARN_NONE) return body;
  int64_t n = 1;
  for (uint32_t d = t->ns; d < t->n; d++) n *= t->dim[d];
  hole[0] = reduced(tarn_reducer_get(r->L, fn->red), body, n);
  for (uint32_t i = 0; i < fn->nepi; i++) hole[i + 1] = r->at[x->kid[fn->nops + i]].is;
  return f->epi ? code_span(r, f->epi, hole) : hole[0];
}

static span of_term(domains *r, tarn_term term) {
  const tarn_node *x = tarn_term_get(r->L, term);
  const tarn_payload *p = tarn_payload_get(r->L, x->payload);
  const tarn_type *t = tarn_type_get(r->L, x->type);
  if (t->tuple) return span_of_type(TARN_F64);
  if (r->at[term].body) return of_compute(r, x, &r->at[term]);
  if (x->op == TARN_OP_INPUT) return of_input(r, x, t->dtype);
  if (x->op == TARN_OP_CONST) return r->at[term].is;
  tarn_opvalues from = tarn_op_info(x->op)->values;
  if (from == TARN_OPV_NEW) return span_of_type(t->dtype);
  span s = r->at[x->kid[0]].is;
  for (uint32_t i = 1; from == TARN_OPV_ALL && i < x->n; i++) s = hull(s, r->at[x->kid[i]].is);
  const tarn_imap *m = x->op == TARN_OP_VIEW ? tarn_imap_get(r->L, p->id) : NULL;
  return m && m->nguard ? hull(s, of_fill(r, m->fill)) : s;
}

/* ---------------------------------------------------------------- what is known before */

static const tarn_fxcode *code_of(domains *r, uint32_t f, const tarn_dtype *type, uint32_t n) {
  const tarn_fxcode *code = tarn_fx_compile(r->L, &f, 1, type, n);
  if (code->n > r->most) r->most = code->n, r->slot = TARN_ARRAY(r->cx, span, code->n);
  return code;
}

static void compile(domains *r, const tarn_node *x, fact *f) {
  const tarn_func *fn = tarn_fn_get(r->L, tarn_payload_get(r->L, x->payload)->id);
  tarn_dtype type[2 * (UINT8_MAX + 1)], state[TARN_MAX_STATE];
  if (fn->ntuple) return;
  for (uint32_t i = 0; i < fn->nops; i++) type[i] = tarn_term_type(r->L, x->kid[i])->dtype;
  if (fn->epi != TARN_NONE && fn->red != TARN_NONE) {
    tarn_dtype over[UINT8_MAX + 2];
    if (!tarn_reducer_type(r->L, fn->red, state, &over[0])) return;
    for (uint32_t i = 0; i < fn->nepi; i++)
      over[i + 1] = tarn_term_type(r->L, x->kid[fn->nops + i])->dtype;
    f->epi = code_of(r, fn->epi, over, fn->nepi + 1u);
  }
  f->body = code_of(r, fn->body, type, fn->nops);
}

/* An index along an axis of so many elements. */
static void add_index(domains *r, tarn_term index, int64_t extent) {
  double n = (double)extent;
  bool below = tarn_dtype_is_signed(tarn_term_type(r->L, index)->dtype);
  tarn_push(r->cx, &r->site, ((site){index, {below ? -n : 0, n - 1}, false}));
}
static void add_sites(domains *r, const tarn_node *x) {
  const tarn_payload *p = tarn_payload_get(r->L, x->payload);
  if (x->op == TARN_OP_GATHER)
    add_index(r, x->kid[1], tarn_term_type(r->L, x->kid[0])->dim[p->ints[0]]);
  for (uint32_t i = 0; x->op == TARN_OP_NEST && i < x->n; i++) {
    int64_t rows = tarn_nest_rows(r->L, tarn_nest_get(r->L, p->id), i);
    if (rows) add_index(r, x->kid[i], rows);
  }
  for (uint32_t i = 0; x->op == TARN_OP_OPAQUE && i < x->n; i++) {
    tarn_domain in;
    if (r->opaque && r->opaque(r->L, x, i, &in))
      tarn_push(r->cx, &r->site, ((site){x->kid[i], {(double)in.lo, (double)in.hi}, false}));
  }
}

/* Does it give its only operand's values, perhaps in another type? */
static bool moves(const fact *f) {
  return !f->epi && f->body && f->body->n == 2 && f->body->step[1].op == TARN_FX_CAST &&
         f->body->step[1].out != TARN_BOOL;
}

static void learn(domains *r, tarn_term term) {
  const tarn_node *x = tarn_term_get(r->L, term);
  fact *f = &r->at[term];
  f->same = TARN_NONE;
  if (x->op == TARN_OP_COMPUTE) compile(r, x, f);
  if (x->op == TARN_OP_CONST) f->is = of_tensor(tarn_payload_get(r->L, x->payload)->tensor);
  for (uint32_t i = 0; i < x->n; i++) f->of |= r->at[x->kid[i]].of;
  if (x->op == TARN_OP_INPUT) f->same = input_of(r, x);
  if (f->same != TARN_NONE) f->of = (uint64_t)1 << f->same;
  if (tarn_op_is_view(x->op) || x->op == TARN_OP_MATERIALISE ||
      (x->op == TARN_OP_COMPUTE && moves(f)))
    f->same = r->at[x->kid[0]].same;
  add_sites(r, x);
}

/* ---------------------------------------------------------------- constants beside inputs */

/* An input and what stands beside it in a step: constants, to which numbers of this kind are
 * compared. */
static void beside(domains *r, uint32_t input, span c) {
  if (input == TARN_NONE || !(fabs(c.lo) <= FAR && fabs(c.hi) <= FAR)) return;
  span s = {fmin(0, floor(c.lo)), fmax(0, floor(c.hi) + 1)};
  r->soft[input] = hull(r->soft[input], s);
}

static void add_start(domains *r, uint32_t input, double v) {
  for (uint32_t k = 0; k < r->nstart[input]; k++)
    if (r->start[input][k] == v) return;
  if (r->nstart[input] < STARTS && fabs(v) <= FAR) r->start[input][r->nstart[input]++] = v;
}
/* What depends on these inputs is compared with such constants. */
static void compared(domains *r, uint64_t of, span c) {
  for (uint32_t i = 0; i < r->nin; i++) {
    if (!(of >> i & 1) || !finite_span(c)) continue;
    for (int by = -1; by <= 1; by++)
      add_start(r, i, floor(c.lo) + by), add_start(r, i, floor(c.hi) + by);
  }
}

/* The steps of a function: which hold an input's values, which are constant. */
static void look_at(domains *r, const tarn_node *x, const tarn_fxcode *code) {
  uint32_t *same = TARN_ARRAY(r->cx, uint32_t, code->n);
  uint64_t *of = TARN_ARRAY(r->cx, uint64_t, code->n);
  span *is = TARN_ARRAY(r->cx, span, code->n);
  bool *constant = TARN_ARRAY(r->cx, bool, code->n);
  for (uint32_t i = 0; i < code->n; i++) {
    const tarn_fxstep *s = &code->step[i];
    uint32_t a = s->kid[0], b = s->kid[1];
    same[i] = TARN_NONE;
    for (uint32_t k = 0; s->op != TARN_FX_HOLE && k < tarn_fx_info(s->op)->arity; k++)
      of[i] |= of[s->kid[k]];
    if (s->op == TARN_FX_CONST) {
      double v = tarn_dtype_is_float((tarn_dtype)s->out) ? s->value.d : (double)s->value.i;
      constant[i] = true, is[i] = (span){v, v};
    } else if (s->op == TARN_FX_HOLE) {
      const fact *f = &r->at[x->kid[s->hole]];
      same[i] = f->same, is[i] = f->is, of[i] = f->of;
      constant[i] = !f->of && finite_span(f->is);
    } else if (s->op == TARN_FX_CAST) {
      same[i] = same[a], is[i] = is[a], constant[i] = constant[a];
      if (s->out == TARN_BOOL) beside(r, same[a], (span){0, 0});
    } else if (s->op == TARN_FX_EQ || s->op == TARN_FX_LT || s->op == TARN_FX_LE) {
      if (constant[b]) beside(r, same[a], is[b]), compared(r, of[a], is[b]);
      if (constant[a]) beside(r, same[b], is[a]), compared(r, of[b], is[a]);
    } else if (s->op == TARN_FX_SUB && constant[a] && is[a].lo == 1 && is[a].hi == 1) {
      beside(r, same[b], (span){0, 0}); /* 1 - x: a mask */
    }
  }
}

/* ---------------------------------------------------------------- the search */

static void start(domains *r, const tarn_program *p) {
  tarn_term *root = TARN_ARRAY(r->cx, tarn_term, p->nout + 1);
  for (uint32_t i = 0; i < p->nin && r->nin < INPUTS; i++) {
    tarn_dtype t = tarn_type_get(r->L, p->in[i].type)->dtype;
    if (!is_followed(t)) continue;
    r->name[r->nin] = p->in[i].name, r->type[r->nin] = t;
    r->soft[r->nin++] = (span){INFINITY, -INFINITY};
  }
  if (!r->nin) return;
  for (uint32_t i = 0; i < p->nout; i++)
    root[i] = tarn_normalise(r->L, tarn_call_expand(r->L, root[i] = p->out[i].term));
  const tarn_term *terms;
  r->n = tarn_term_reachable(r->L, root, p->nout, &terms);
  r->term = tarn_copy(r->cx, terms, (r->n + 1) * sizeof *terms);
  r->at = TARN_ARRAY(r->cx, fact, tarn_term_count(r->L) + 1);
  for (uint32_t i = 0; i < r->n; i++) {
    learn(r, r->term[i]);
    r->at[r->term[i]].is = of_term(r, r->term[i]);
  }
  for (uint32_t i = 0; i < r->n; i++) {
    const fact *f = &r->at[r->term[i]];
    if (f->body && f->of) look_at(r, tarn_term_get(r->L, r->term[i]), f->body);
  }
}

/* Every site that depends on an input of `of` holds, or (weak) all that are known too little of are
 * marked. */
static bool hold(domains *r, uint64_t of, bool mark) {
  bool good = true;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->at[r->term[i]].of & of) r->at[r->term[i]].is = of_term(r, r->term[i]);
  for (uint32_t i = 0; i < r->site.n; i++) {
    site *s = &r->site.p[i];
    if (!(r->at[s->index].of & of) || s->unknown || inside(r->at[s->index].is, s->within)) continue;
    good = false;
    if (mark) s->unknown = true;
  }
  return good;
}

/* How many sites that depend on the input do not hold where it is this number. */
static uint32_t broken(domains *r, uint32_t input, double v) {
  uint32_t n = 0;
  r->in[input] = (span){v, v};
  (void)hold(r, (uint64_t)1 << input, false);
  for (uint32_t i = 0; i < r->site.n; i++) {
    const site *s = &r->site.p[i];
    n += r->at[s->index].of >> input & 1 && !inside(r->at[s->index].is, s->within);
  }
  return n;
}
/* The number with which most of them do; the first of several. */
static void settle(domains *r, uint32_t input) {
  uint32_t least = broken(r, input, 0);
  double best = 0;
  add_start(r, input, 1);
  for (uint32_t k = 0; least && k < r->nstart[input]; k++) {
    double v = r->start[input][k];
    if (!inside((span){v, v}, span_of_type(r->type[input]))) continue;
    uint32_t n = broken(r, input, v);
    if (n >= least) continue;
    least = n;
    best = v;
  }
  r->from[input] = best;
  (void)broken(r, input, best);
}

static bool holds(domains *r, uint32_t input, double lo, double hi) {
  r->in[input] = (span){lo, hi};
  return hold(r, (uint64_t)1 << input, false);
}

/* The farthest end from an allowed number on, upwards or downwards where `to` is allowed too. */
static double grown(domains *r, uint32_t input, double from, double to, bool down, double most) {
  double good = 0, bad = most + 1;
  while (bad - good > 1) {
    double mid = good + floor((bad - good) / 2);
    bool ok = down ? holds(r, input, from - mid, to) : holds(r, input, from, from + mid);
    if (ok) good = mid;
    else bad = mid;
  }
  return down ? from - good : from + good;
}
/* From 0 (of negative numbers: from -1) to most. */
static double farthest(domains *r, uint32_t input, bool negative, double most) {
  return fabs(grown(r, input, 0, negative ? -1 : 0, negative, most));
}

/* How far indices that depend on it go, or constants that it is compared with; 0: there are no
 * such indices. */
static double reach(const domains *r, uint32_t input) {
  double most = 0;
  for (uint32_t i = 0; i < r->site.n; i++) {
    const site *s = &r->site.p[i];
    if (!s->unknown && r->at[s->index].of >> input & 1)
      most = fmax(most, fmax(-s->within.lo, s->within.hi + 1));
  }
  return most > 0 ? fmax(most, r->soft[input].hi) : 0;
}

static span usual(const domains *r, uint32_t i) {
  span w = span_of_type(r->type[i]), s = r->soft[i];
  if (tarn_dtype_bits(r->type[i]) == 8) return w;
  if (s.lo > s.hi) s = w.lo < 0 ? (span){-SMALL, SMALL} : (span){0, 2 * SMALL};
  return (span){fmax(s.lo, w.lo), fmin(s.hi, w.hi)};
}

static void search(domains *r, uint32_t i, double most) {
  span w = span_of_type(r->type[i]);
  double hi = r->from[i], lo = hi;
  for (uint32_t k = 0; hi != 0 && k < r->nstart[i]; k++) most = fmax(most, fabs(r->start[i][k]));
  if (hi != 0 && holds(r, i, hi, hi)) {
    hi = grown(r, i, lo, 0, false, fmin(2 * most, w.hi - hi));
    lo = grown(r, i, lo, hi, true, fmin(2 * most, lo - w.lo));
  } else if (hi == 0 && holds(r, i, 0, 0)) { /* else what others have leaves it no choice */
    hi = farthest(r, i, false, fmin(2 * most, w.hi));
    lo = -farthest(r, i, true, fmin(2 * most, -w.lo));
  }
  holds(r, i, lo, hi);
}

void tarn_input_domains(const tarn_program *p, tarn_opaque_index_fn *opaque, tarn_domain *out) {
  domains *r = TARN_NEW(tarn_lang_ctx(p->L), domains);
  *r = (domains){.L = p->L, .cx = tarn_lang_ctx(p->L), .opaque = opaque};
  start(r, p);
  bool zero = hold(r, UINT64_MAX, false);
  for (uint32_t i = 0; i < r->nin && !zero; i++) settle(r, i);
  hold(r, UINT64_MAX, true);
  for (uint32_t i = 0; i < r->nin; i++)
    if (reach(r, i) == 0) r->in[i] = usual(r, i);
  for (uint32_t i = 0; i < r->nin; i++)
    if (reach(r, i) > 0) search(r, i, reach(r, i));
  for (uint32_t i = 0, k = 0; i < p->nin; i++) {
    tarn_dtype t = tarn_type_get(p->L, p->in[i].type)->dtype;
    span s = t == TARN_BOOL ? span_of_type(t) : (span){0, 0};
    if (is_followed(t) && k < r->nin) s = r->in[k++];
    else if (is_followed(t)) s = (span){0, 1};
    out[i] = (tarn_domain){(int64_t)s.lo, (int64_t)s.hi};
  }
}

tarn_tensor *tarn_random_tensor(tarn_ctx *cx, tarn_dtype t, uint32_t n, const int64_t *dim,
                                tarn_domain in, uint64_t *state) {
  tarn_tensor *x = tarn_tensor_new(cx, t, n, dim);
  uint64_t many = (uint64_t)in.hi - (uint64_t)in.lo + 1; /* 0: all of 64 bits */
  for (int64_t i = 0, count = tarn_tensor_count(x); i < count; i++) {
    tarn_value v;
    if (tarn_dtype_is_float(t)) v.d = tarn_random_unit(state);
    else v.i = (int64_t)((uint64_t)in.lo + (many ? tarn_random(state) % many : tarn_random(state)));
    tarn_tensor_set(x, i, v);
  }
  return x;
}
