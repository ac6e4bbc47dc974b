/* Small programs of one operator for every scalar type, compiled and compared with the interpreter
 * bit for bit: hostile values, processors with and without vectors, and the comparison. */
#ifndef TARN_TESTS_TYPES_KIT_H
#define TARN_TESTS_TYPES_KIT_H
#include "access/internal.h"
#include "tests/pipeline.h"
#include "tests/random_fx.h"
#include "tests/suite.h"
#include "model/model.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- values */

/* The ends of every integer type and their neighbours, ties, counts of shifts, bounds of what f16,
 * bf16 and f32 hold. */
/* clang-format off */
static const double ty_reals[] = {
    0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 1.5, 2.5, -2.5, -3.5, 0.1, -0.1, 7, 100, 1e-3,
    (double)INFINITY, -(double)INFINITY, (double)NAN,
    127.5, 128, -128.5, -129, 255.5, 256, 32767.5, -32769, 65535.5, 2147483647.5, 2147483648., -2147483649.,
    4294967295.5, 4294967296., 9.2233720368547758e18, -9.2233720368547758e18, 1.8446744073709552e19,
    65504, 65519, 65520, 16777217, 9007199254740993., 1.00390625, 1.0039063, 1.00048828125, 1.000488281250001,
    3.3895314e38, 3.39e38, FLT_MAX, DBL_MAX, -DBL_MAX, 1e30, -1e30, 88.8, -104, 710,
    6.1e-5, 6e-8, 2.98e-8, FLT_MIN, 1e-30, 1e-45, -1e-45, 7e-46, 9.1835496e-41, DBL_MIN, 4.9e-324};
static const int64_t ty_integers[] = {
    0, 1, -1, 2, -2, 3, -3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 62, 63, 64, 65, 100, -100, 127, 128, -128, -129,
    255, 256, 32767, 32768, -32768, 65535, 65536, 16777217, INT32_MAX, (int64_t)INT32_MAX + 1, INT32_MIN,
    UINT32_MAX, (int64_t)UINT32_MAX + 1, ((int64_t)1 << 53) + 1, ((int64_t)1 << 62) + 1,
    INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1};
/* clang-format on */
#define TY_COUNT(a) (uint32_t)(sizeof(a) / sizeof *(a))

static inline uint32_t ty_hostile(tarn_dtype t) {
  return t == TARN_BOOL ? 2 : tarn_dtype_is_float(t) ? TY_COUNT(ty_reals) : TY_COUNT(ty_integers);
}
static inline tarn_value ty_value(tarn_dtype t, uint32_t i) {
  tarn_value v;
  if (tarn_dtype_is_float(t)) v.d = ty_reals[i % TY_COUNT(ty_reals)];
  else v.i = t == TARN_BOOL ? i % 2 : ty_integers[i % TY_COUNT(ty_integers)];
  return v;
}
/* A hostile value, a small one, or any bits. */
static inline void ty_put(tarn_tensor *x, int64_t at, uint64_t *s) {
  uint32_t how = below(s, 8);
  tarn_value v = ty_value(x->dtype, below(s, ty_hostile(x->dtype)));
  if (how < 2 && tarn_dtype_is_float(x->dtype))
    v.d = (double)(int64_t)(tarn_random(s) % 2001 - 1000) / 64;
  if (how < 2 && !tarn_dtype_is_float(x->dtype)) v.i = (int64_t)(tarn_random(s) % 21) - 10;
  if (how != 2 || x->dtype == TARN_BOOL) {
    tarn_tensor_set(x, at, v);
    return;
  }
  uint64_t bits = tarn_random(s);
  size_t size = tarn_dtype_size(x->dtype);
  memcpy((char *)x->data + (size_t)at * size, &bits, size);
}
static inline uint32_t ty_constant(tarn_lang *L, tarn_dtype t, uint64_t *s) {
  tarn_tensor *x = tarn_tensor_new(tarn_lang_ctx(L), t, 0, NULL);
  ty_put(x, 0, s);
  tarn_value v = tarn_tensor_get(x, 0);
  return tarn_dtype_is_float(t) ? tarn_fx_const(L, t, v.d) : tarn_fx_iconst(L, t, v.i);
}

/* ---------------------------------------------------------------- processors */

typedef struct ty_target {
  const char *name, *hw; /* a shipped description; NULL: this machine */
  int bits; /* >= 0: the first processor of its kind, with vectors of so many; 0: without vectors */
  const char *needs; /* a feature of this machine's */
} ty_target;
static const ty_target ty_targets[] = {{"host", NULL, -1, ""},
                                       {"plain", NULL, 0, ""},
                                       {"first", NULL, 128, ""},
                                       {"x86-64-v3", "x86-64-v3", -1, "+avx2"},
                                       {"x86-64-vnni", "x86-64-vnni", -1, "+avx512vnni"},
                                       {"x86-64-bf16", "x86-64-bf16", -1, "+avx512bf16"},
                                       {"aarch64", "aarch64", -1, "+neon"},
                                       {"aarch64-dotprod", "aarch64-dotprod", -1, "+dotprod"}};

/* NULL: this machine does not run it. */
static inline const tarn_hw *ty_hw(tarn_lang *L, const ty_target *t) {
  const tarn_hw *host = tarn_hw_host(L, false);
  bool x86 = strstr(host->triple, "x86_64") != NULL;
  if ((*t->needs && !strstr(host->features, t->needs)) || (t->bits > 0 && !x86)) return NULL;
  if (t->hw) return tarn_hw_load(L, t->hw);
  if (t->bits < 0) return host;
  tarn_hw *h = TARN_NEW(tarn_lang_ctx(L), tarn_hw);
  *h = *host;
  h->name = t->name, h->cpu = x86 ? "x86-64" : "generic", h->features = "";
  h->vector_bits = (uint32_t)t->bits, h->vector_regs = t->bits ? 16 : 0;
  h->spreads = h->moves = false, h->nintrin = 0;
  return h;
}

/* ---------------------------------------------------------------- programs */

#define TY_MOST 128
typedef struct ty_program {
  tarn_program p;
  tarn_io in[TY_MOST], out[TY_MOST];
} ty_program;

static inline ty_program *ty_program_new(tarn_lang *L) {
  ty_program *q = TARN_NEW(tarn_lang_ctx(L), ty_program);
  q->p = (tarn_program){.L = L, .in = q->in, .out = q->out};
  return q;
}
static inline tarn_term ty_input(ty_program *q, const char *name, uint32_t type) {
  for (uint32_t i = 0; i < q->p.nin; i++)
    if (!strcmp(q->in[i].name, name)) return q->in[i].term;
  tarn_term t = tarn_input(q->p.L, name, type);
  q->in[q->p.nin++] = (tarn_io){tarn_strdup(tarn_lang_ctx(q->p.L), name), t, type};
  return t;
}
static inline void ty_output(ty_program *q, tarn_term t) {
  for (uint32_t i = 0; i < q->p.nout; i++)
    if (q->out[i].term == t) return;
  const char *name = tarn_format(tarn_lang_ctx(q->p.L), "y%u", q->p.nout);
  if (q->p.nout < TY_MOST) q->out[q->p.nout++] = (tarn_io){name, t, tarn_term_get(q->p.L, t)->type};
}

/* ---------------------------------------------------------------- comparing */

static inline bool ty_same(const tarn_tensor *a, const tarn_tensor *b, int64_t i) {
  size_t size = tarn_dtype_size(a->dtype);
  if (!memcmp((const char *)a->data + (size_t)i * size, (const char *)b->data + (size_t)i * size,
              size))
    return true;
  return tarn_dtype_is_float(a->dtype) && isnan(tarn_tensor_get(a, i).d) &&
         isnan(tarn_tensor_get(b, i).d);
}
static inline void ty_show(tarn_buf *b, const tarn_tensor *t, int64_t i) {
  tarn_number_print(b, t->dtype, tarn_tensor_get(t, i));
}
/* Of an elementwise program: what was given at element i. */
static inline void ty_given(tarn_buf *b, const ty_program *q, const tarn_binding *in, int64_t n,
                            int64_t i) {
  for (uint32_t k = 0; k < q->p.nin; k++) {
    if (tarn_tensor_count(in[k].value) != n) continue;
    tarn_buf_fmt(b, " %s=", in[k].name);
    ty_show(b, in[k].value, i);
  }
}
typedef struct ty_report {
  tarn_buf text; /* the first element of each output that differs */
  uint32_t n;
  uint64_t seen[TY_MOST / 64];
} ty_report;
static inline void ty_compare(ty_report *r, const ty_program *q, const tarn_binding *in, uint32_t o,
                              const tarn_tensor *got, const tarn_tensor *want, const char *target) {
  if (r->seen[o / 64] >> o % 64 & 1) return;
  int64_t n = tarn_tensor_count(want);
  for (int64_t i = 0; i < n; i++) {
    if (ty_same(got, want, i)) continue;
    r->seen[o / 64] |= (uint64_t)1 << o % 64, r->n++;
    tarn_buf_fmt(&r->text, "\n%s: [%lld] compiled ", target, (long long)i);
    ty_show(&r->text, got, i);
    tarn_buf_str(&r->text, ", interpreted ");
    ty_show(&r->text, want, i);
    tarn_buf_str(&r->text, ":");
    ty_given(&r->text, q, in, n, i);
    tarn_buf_str(&r->text, " in ");
    tarn_term_print(q->p.L, &r->text, q->out[o].term);
    return;
  }
}

typedef void ty_fill(tarn_tensor *x, uint32_t input, uint32_t run, void *user, uint64_t *seed);
typedef struct ty_run {
  uint32_t runs, threads;
  tarn_rule_class numerics;
  ty_fill *fill; /* NULL: any values */
  void *user;
} ty_run;

/* The folder that holds it. */
static inline const char *ty_emit(ty_program *q, const tarn_hw *hw, tarn_rule_class numerics,
                                  uint32_t threads, unsigned emit) {
  tarn_ctx *cx = tarn_lang_ctx(q->p.L);
  bool exact = numerics == TARN_RULE_EXACT;
  tarn_kgraph_options ko = {.method = TARN_SEL_GREEDY, .strict = exact, .threads = threads};
  pipeline *r = pipeline_extract_as(&q->p, hw, ko, numerics);
  const char *dir = pipeline_folder(cx);
  tarn_lower_options o = {.emit = emit, .dir = dir, .name = "model", .contract = !exact, .opt = 3};
  tarn_lower_cpu(planned_program(r->kprog, o.contract), tarn_memory_plan_make(r->kprog, 64), &o);
  return dir;
}

/* Compiles q and compares its outputs on random inputs: all of them where numerics is exact, else
 * integers. */
static inline void ty_try(ty_program *q, const ty_target *t, const ty_run *run, ty_report *r,
                          uint64_t *seed) {
  tarn_ctx *cx = tarn_lang_ctx(q->p.L);
  const tarn_hw *hw = ty_hw(q->p.L, t);
  if (!hw || !q->p.nout) return;
  tarn_loaded *m = tarn_load(cx, ty_emit(q, hw, run->numerics, run->threads, TARN_EMIT_SO));
  tarn_binding in[TY_MOST];
  tarn_term root[TY_MOST];
  const tarn_tensor *given[TY_MOST];
  tarn_tensor *want[TY_MOST], *got[TY_MOST];
  const tarn_port *port;
  r->text.cx = cx;
  memset(r->seen, 0, sizeof r->seen);
  for (uint32_t o = 0; o < q->p.nout; o++) root[o] = q->out[o].term;
  for (uint32_t k = 0; k < run->runs; k++) {
    for (uint32_t i = 0; i < q->p.nin; i++) {
      const tarn_type *ty = tarn_type_get(q->p.L, q->in[i].type);
      tarn_tensor *x = tarn_tensor_new(cx, ty->dtype, ty->n, ty->dim);
      for (int64_t e = 0; e < tarn_tensor_count(x); e++) ty_put(x, e, seed);
      if (run->fill) run->fill(x, i, k, run->user, seed);
      in[i] = (tarn_binding){q->in[i].name, given[i] = x};
    }
    tarn_eval(q->p.L, root, q->p.nout, in, q->p.nin, TARN_STRICT, tarn_opaque_eval, want);
    uint32_t n = tarn_loaded_ports(m, true, &port);
    for (uint32_t o = 0; o < n; o++)
      got[o] = tarn_tensor_new(cx, port[o].dtype, port[o].n, port[o].dim);
    tarn_loaded_run(m, given, got, run->threads);
    for (uint32_t o = 0; o < n; o++) {
      bool settled = run->numerics == TARN_RULE_EXACT || !tarn_dtype_is_float(want[o]->dtype);
      if (settled) ty_compare(r, q, in, o, got[o], want[o], t->name);
    }
  }
  tarn_unload(m);
}

/* fn with arg in a context of its own; nothing that it compares may differ. */
static inline void ty_judge(tarn_fn *fn, void *arg, const ty_report *r, const ty_target *target,
                            tarn_dtype t) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, fn, arg);
  ck_assert_msg(st == TARN_OK, "%s, %s: %s", target->name, tarn_dtype_name(t), tarn_message(cx));
  ck_assert_msg(!r->n, "%s, %s: %u operators differ:%s", target->name, tarn_dtype_name(t), r->n,
                r->text.p);
  tarn_ctx_free(cx);
}

#endif
