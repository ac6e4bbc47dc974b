/* What is tried with a random network, in a process of its own: each step says its name, and the
 * last one that did is where it failed. */
#ifndef TARN_TESTS_RANDOM_TRIALS_H
#define TARN_TESTS_RANDOM_TRIALS_H
#include "tests/pipeline.h"
#include "tests/random_idioms.h"
#include "tests/sizes_kit.h"
#include <time.h>
#include <unistd.h>

typedef struct trial {
  const char *text, *host;
  bool typed;  /* of all types, in three classes */
  double slow; /* seconds of the processor that a step may take */
  int out;     /* the step that begins, then what came of it, a line each */
  uint64_t seed;
  tarn_program *p;
  tarn_binding *in;
  pipeline_want want;
  tarn_tensor **got;
  clock_t began;
} trial;

_Noreturn static void found(const trial *t, const char *what) {
  tarn_raise(tarn_lang_ctx(t->p->L), TARN_NO, "%s", what);
}
static void step(trial *t, const char *name) {
  clock_t now = clock();
  if (t->p && (double)(now - t->began) > t->slow * (double)CLOCKS_PER_SEC) found(t, "slow");
  t->began = now;
  dprintf(t->out, "%s\n", name);
}

/* Of networks of all types a fifth have infinities, NaN, zeros of both signs and the least and
 * largest numbers among their inputs: then `exact` alone says something. */
static void disturb(tarn_tensor *x, uint64_t *seed) {
  static const double number[] = {INFINITY, -INFINITY, NAN, -0.0, 0, 1e-42, -3e38, 60000};
  if (!tarn_dtype_is_float(x->dtype)) return;
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) {
    uint32_t k = (uint32_t)(kit_random(seed) >> 20) % 40;
    if (k < sizeof number / sizeof *number) tarn_tensor_set(x, i, (tarn_value){.d = number[k]});
  }
}
static void reference(trial *t) {
  tarn_lang *L = t->p->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  uint64_t seed = t->seed;
  t->in = TARN_ARRAY(cx, tarn_binding, t->p->nin + 1);
  t->got = TARN_ARRAY(cx, tarn_tensor *, t->p->nout);
  for (uint32_t i = 0; i < t->p->nin; i++) {
    tarn_tensor *x = kit_values(cx, tarn_type_get(L, t->p->in[i].type), &seed);
    if (t->typed && strlen(t->text) % 5 == 0) disturb(x, &seed);
    t->in[i] = (tarn_binding){t->p->in[i].name, x};
  }
  t->want = pipeline_expect(t->p, t->in, TARN_RULE_REASSOC, 0);
}

/* A network that has values which are no numbers says nothing. */
static bool sound(trial *t) {
  for (uint32_t i = 0; i < t->p->nout; i++)
    for (int64_t k = 0; k < tarn_tensor_count(t->want.out[i].error); k++)
      if (!isfinite(tarn_tensor_number(t->want.out[i].error, k)) ||
          !(fabs(tarn_tensor_number(t->want.out[i].strict, k)) <= 1e20))
        return false;
  return true;
}

static void compare(const trial *t) {
  const char *wrong = pipeline_wrong(t->p, &t->want, t->got);
  if (wrong) found(t, tarn_format(tarn_lang_ctx(t->p->L), "wrong: %s", wrong));
}

/* The same number, or both none. */
static bool alike(const tarn_tensor *a, const tarn_tensor *b, int64_t k) {
  if (!tarn_dtype_is_float(a->dtype)) return tarn_tensor_get(a, k).i == tarn_tensor_get(b, k).i;
  double x = tarn_tensor_get(a, k).d, y = tarn_tensor_get(b, k).d;
  return x == y || (isnan(x) && isnan(y));
}

/* As the interpreter has it: to the bit, but for the sign of zeros. */
static void same(const trial *t) {
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  if (!t->typed) compare(t);
  for (uint32_t i = 0; i < t->p->nout; i++)
    for (int64_t k = 0; k < tarn_tensor_count(t->got[i]); k++)
      if (!alike(t->got[i], t->want.out[i].strict, k))
        found(t,
              tarn_format(cx, "wrong: %s[%lld] is not the same", t->p->out[i].name, (long long)k));
}

typedef struct explored {
  tarn_saturation *s;
  const tarn_hw *hw;
  tarn_rule_class numerics;
  uint32_t nroot, *root;
} explored;
static explored saturate(trial *t, const tarn_hw *hw, tarn_rule_class numerics) {
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  tarn_ruleset *rs = tarn_ruleset_new(t->p->L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options so = tarn_sat_defaults();
  so.numerics = numerics, so.hw = hw, so.reasons = TARN_EG_REASONS_ALL;
  explored e = {.s = tarn_saturate(t->p, rs, &so), .hw = hw, .numerics = numerics};
  if (strcmp(tarn_sat_result(e.s)->stop, "saturated") != 0)
    found(t, tarn_format(cx, "stop: %s", tarn_sat_result(e.s)->stop));
  kit_prove(e.s, rs);
  e.nroot = tarn_sat_roots(e.s);
  e.root = TARN_ARRAY(cx, uint32_t, e.nroot + 1);
  for (uint32_t i = 0; i < e.nroot; i++) e.root[i] = tarn_sat_root(e.s, i);
  return e;
}

static tarn_kprog *extract(trial *t, const explored *e, tarn_sel_method method, uint32_t threads,
                           bool all) {
  tarn_kgraph_input in = {.L = t->p->L,
                          .g = tarn_sat_egraph(e->s),
                          .type_of = pipeline_type,
                          .is_constant = pipeline_constant,
                          .user = e->s,
                          .nroot = e->nroot,
                          .root = e->root,
                          .program = t->p};
  if (!all) in.left_out = pipeline_left_out;
  tarn_kgraph_options ko = {
      .hw = e->hw, .method = method, .threads = threads, .strict = e->numerics == TARN_RULE_EXACT};
  tarn_kgraph_report r;
  tarn_kprog *k = tarn_extract(&in, &ko, &r, NULL);
  tarn_kprog_eval(k, t->in, t->p->nin, TARN_STRICT, tarn_opaque_eval, t->got);
  if (ko.strict) same(t);
  else compare(t);
  return k;
}

static void compile(trial *t, const explored *e, tarn_kprog *k, uint32_t threads) {
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  pipeline r = {.program = t->p, .hw = e->hw, .sat = e->s, .kprog = k};
  tarn_loaded *m = pipeline_compile(&r, pipeline_folder(cx));
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, t->p->nin + 1);
  for (uint32_t i = 0; i < t->p->nin; i++) in[i] = t->in[i].value;
  for (uint32_t i = 0; i < t->p->nout; i++) {
    const tarn_tensor *like = t->want.out[i].strict;
    t->got[i] = tarn_tensor_new(cx, like->dtype, like->n, like->dim);
  }
  tarn_loaded_run(m, in, t->got, threads);
  compare(t);
}

static void all_ways(tarn_ctx *cx, void *arg) {
  static const char *const other[] = {"x86-64-v3", "aarch64", "riscv64", "riscv64-v"};
  trial *t = arg;
  tarn_lang *L = tarn_lang_new(cx);
  step(t, "import");
  t->p = kit_model(L, t->text);
  step(t, "reference");
  reference(t);
  if (!sound(t)) {
    step(t, "unsound");
    return;
  }
  step(t, "host: saturate");
  explored e = saturate(t, tarn_hw_parse(L, tarn_sx_read(cx, t->host, strlen(t->host), "host")),
                        TARN_RULE_REASSOC);
  step(t, "host: exact");
  tarn_kprog *exact = extract(t, &e, TARN_SEL_EXACT, 0, false);
  step(t, "host: exact, compiled");
  compile(t, &e, exact, 2);
  step(t, "host: random");
  tarn_kprog *k = extract(t, &e, TARN_SEL_RANDOM, 1, true);
  step(t, "host: random, compiled");
  compile(t, &e, k, 1);
  step(t, "host: worst");
  k = extract(t, &e, TARN_SEL_WORST, 2, true);
  if (strlen(t->text) % 2) step(t, "host: worst, compiled"), compile(t, &e, k, 2);
  step(t, "exact numerics");
  e = saturate(t, e.hw, TARN_RULE_EXACT);
  extract(t, &e, TARN_SEL_GREEDY, 1, false);
  k = extract(t, &e, TARN_SEL_RANDOM, 1, true);
  if (strlen(t->text) % 2 == 0) step(t, "exact numerics, compiled"), compile(t, &e, k, 2);
  const char *name = other[strlen(t->text) % (sizeof other / sizeof *other)];
  step(t, tarn_format(cx, "%s: saturate", name));
  e = saturate(t, tarn_hw_load(L, name), TARN_RULE_REASSOC);
  step(t, tarn_format(cx, "%s: greedy", name));
  extract(t, &e, TARN_SEL_GREEDY, 2, false);
  step(t, tarn_format(cx, "%s: random", name));
  extract(t, &e, TARN_SEL_RANDOM, 1, true);
  step(t, "done");
}

/* A network of all types in each numerics class, as kernels and compiled; exact: to the bit. */
typedef struct class_net {
  pipeline *r;
  pipeline_want want;
  bool sound;
} class_net;
static class_net of_class(trial *t, tarn_rule_class c) {
  tarn_lang *L = t->p->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  const char *class = tarn_rule_class_name(c);
  const tarn_hw *hw = tarn_hw_parse(L, tarn_sx_read(cx, t->host, strlen(t->host), "host"));
  bool exact = c == TARN_RULE_EXACT;
  class_net n = {0};
  step(t, class);
  tarn_kgraph_options ko = {.method = TARN_SEL_GREEDY, .strict = exact};
  n.r = pipeline_extract_as(t->p, hw, ko, c);
  t->want = n.want = pipeline_expect(t->p, t->in, c, tarn_sat_result(n.r->sat)->bound);
  n.sound = exact || sound(t);
  if (!n.sound) return n;
  step(t, tarn_format(cx, "%s, as kernels", class));
  tarn_kprog_eval(n.r->kprog, t->in, t->p->nin, TARN_STRICT, tarn_opaque_eval, t->got);
  (exact ? same : compare)(t);
  return n;
}
/* Both in one artefact, as if they were of two sizes: kernels of both are compiled once. */
static tarn_loaded *compile_both(trial *t, const class_net *n) {
  static const int64_t number[2] = {0, 1};
  static const char *const name = "class";
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  tarn_lower_program row[2];
  const tarn_kprog *p[2];
  tarn_memory_plan *m[2];
  tarn_planner *planner = tarn_planner_new(t->p->L, true, NULL);
  for (int i = 0; i < 2; i++) {
    p[i] = n[i].r->kprog;
    tarn_kprog_plan(planner, n[i].r->kprog);
    m[i] = tarn_memory_plan_make(p[i], 64);
    row[i] = (tarn_lower_program){&number[i], p[i], m[i], NULL};
  }
  tarn_lower_share(p, m, 2, 64);
  tarn_lower_sizes sizes = {.n = 1, .name = &name, .nprogram = 2, .program = row};
  tarn_lower_options o = {.emit = TARN_EMIT_SO, .name = "model", .contract = true, .opt = 2};
  o.dir = pipeline_folder(cx);
  tarn_lower_cpu_sizes(&sizes, &o);
  return tarn_load(cx, o.dir);
}
static void all_classes(tarn_ctx *cx, void *arg) {
  trial *t = arg;
  step(t, "import");
  t->p = kit_model(tarn_lang_new(cx), t->text);
  step(t, "reference");
  reference(t);
  class_net exact = of_class(t, TARN_RULE_EXACT);
  step(t, "exact, compiled");
  pipeline_run(pipeline_compile_as(exact.r, pipeline_folder(cx), false), t->p, t->in, t->got);
  same(t);
  class_net n[2] = {of_class(t, TARN_RULE_REASSOC), of_class(t, TARN_RULE_APPROX)};
  if (n[0].sound && n[1].sound) {
    step(t, "reassoc and approx, compiled");
    tarn_loaded *m = compile_both(t, n);
    for (int64_t i = 0; i < 2; i++) {
      ck_assert(tarn_loaded_select(m, &i));
      pipeline_run(m, t->p, t->in, t->got);
      step(t, i ? "approx, compiled" : "reassoc, compiled");
      t->want = n[i].want;
      compare(t);
    }
  }
  step(t, "done");
}

/* ---- compiled for a GPU or an accelerator, in the executor or the simulator ---- */
static void compile_target(tarn_ctx *cx, void *arg) {
  const tarn_compile_options *o = arg;
  (void)cx;
  tarn_compile(o->user, o);
}
/* Returns the class that it is compiled in: exact is refused where a GPU lacks a function. */
static tarn_rule_class for_target(trial *t, const char *name, const char *dir) {
  tarn_lang *L = t->p->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_compile_options o = tarn_compile_defaults();
  o.onnx = kit_model_bytes(cx, t->text, &o.onnx_n);
  o.model = "random.onnx", o.dir = dir, o.user = L;
  o.hw = tarn_hw_load(L, name);
  o.here = tarn_hw_parse(L, tarn_sx_read(cx, t->host, strlen(t->host), "host"));
  o.numerics = strlen(t->text) % 3 ? TARN_RULE_REASSOC : TARN_RULE_EXACT;
  tarn_status st = tarn_protect(cx, compile_target, &o);
  if (st == TARN_BAD_INPUT && strstr(tarn_message(cx), "is not in PTX")) {
    o.numerics = TARN_RULE_REASSOC;
    st = tarn_protect(cx, compile_target, &o);
  }
  if (st) tarn_reraise(cx, st);
  t->want = pipeline_expect(t->p, t->in, o.numerics, 0);
  return o.numerics;
}
static void run_target(trial *t, const char *dir) {
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, t->p->nin + 1);
  for (uint32_t i = 0; i < t->p->nin; i++) in[i] = t->in[i].value;
  for (uint32_t i = 0; i < t->p->nout; i++) {
    const tarn_tensor *like = t->want.out[i].strict;
    t->got[i] = tarn_tensor_new(cx, like->dtype, like->n, like->dim);
  }
  if (tarn_has_stream(cx, dir)) tarn_loaded_run(tarn_load_simulated(cx, dir), in, t->got, 2);
  else tarn_execute_run(tarn_execute_load(cx, dir), in, t->got);
}
static void all_targets(tarn_ctx *cx, void *arg) {
  static const char *const target[] = {"cuda-sm80", "vta-pynq",        "cuda-sm90",
                                       "cuda-sm80", "gemmini-default", "systolic-f32"};
  trial *t = arg;
  step(t, "import");
  t->p = kit_model(tarn_lang_new(cx), t->text);
  step(t, "reference");
  reference(t);
  const char *name = target[strlen(t->text) % (sizeof target / sizeof *target)];
  const char *dir = tarn_format(cx, "%s/out", pipeline_folder(cx));
  step(t, name);
  tarn_rule_class class = for_target(t, name, dir);
  if (class != TARN_RULE_EXACT && !sound(t)) {
    step(t, "unsound");
    return;
  }
  step(t, tarn_format(cx, "%s: run", name));
  run_target(t, dir);
  (class == TARN_RULE_EXACT ? same : compare)(t);
  step(t, "done");
}

/* ---- one artefact for a range of sizes ---- */
typedef struct sizes_of {
  trial *t;
  tarn_compile_options o;
  const tarn_compiled *c;
  tarn_loaded *m;
} sizes_of;

/* What a size computes is what the interpreter makes of the model at that size. */
static void at_size(const sizes_of *s, const char *what, int64_t size) {
  trial *t = s->t;
  step(t, tarn_format(tarn_lang_ctx(s->c->L), "%s %lld", what, (long long)size));
  sizes_trial x = sizes_at(s->c, s->o, &size, (uint64_t)size);
  t->p = x.p;
  t->want = x.want;
  if (!sound(t)) return;
  if (!tarn_loaded_select(s->m, &size)) found(t, "the size is not there");
  pipeline_run(s->m, x.p, x.in, x.out);
  t->got = x.out;
  compare(t);
}
/* Of a program for many sizes the least, the largest, their neighbours and some between. */
static void of_program(const sizes_of *s, uint32_t i) {
  tarn_size_range r = tarn_loaded_range(s->m, i, 0);
  uint64_t seed = s->t->seed + i;
  const int64_t last = (r.hi - r.lo) / r.step;
  const int64_t some[] = {last, 0, last / 2, 1, last - 1, kit_random(&seed) % (uint64_t)(last + 1)};
  if (!last && i % 8 == 0) at_size(s, "size", r.lo);
  for (uint32_t n = 0; n < sizeof some / sizeof *some && last; n++)
    if (some[n] >= 0) at_size(s, "family", r.lo + r.step * some[n]);
}
#define SIZES_LINE "sizes " /* before the text of such a network: --shape's */
static const char *model_of(const char *text) {
  bool ranged = !strncmp(text, SIZES_LINE, strlen(SIZES_LINE));
  return ranged ? strchr(text, '\n') + 1 : text;
}
static void all_sizes(tarn_ctx *cx, void *arg) {
  trial *t = arg;
  const char *model = model_of(t->text), *given = t->text + strlen(SIZES_LINE);
  const char *shapes[] = {tarn_strndup(cx, given, (size_t)(model - given) - 1), NULL};
  tarn_lang *L = tarn_lang_new(cx);
  sizes_of s = {.t = t, .o = sizes_options(L, model, shapes, pipeline_folder(cx))};
  step(t, "import");
  tarn_compile_options one = s.o;
  one.shapes = tarn_compile_shapes_at(L, &one, &(int64_t){NET_OPEN});
  t->p = tarn_compile_import(L, &one, NULL);
  step(t, "compile");
  s.c = tarn_compile(L, &s.o);
  s.m = tarn_load(cx, s.o.dir);
  for (uint32_t i = 0; i < s.c->sizes->nprogram; i++) of_program(&s, i);
  step(t, "done");
}

#endif
