/* model.so of a GPU's program, run by the public interface (runtime/cuda.h) with a driver whose
 * kernels run in the executor of PTX (tests/fake_cuda): values, what is uploaded and captured, what
 * is refused, failures.
 *
 *   test_cuda [--all]      --all: every folder of tests/cases that can be compiled, on its inputs
 *
 * The driver is found as a program finds it, by the loader: a run without LD_LIBRARY_PATH starts
 * itself again with it. */
#include "access/judge.h"
#include "compile/compile.h"
#include "runtime/cuda.h"
#include "runtime/cuda_driver.h"
#include "tests/onnx_text.h"
#include "tests/pipeline.h"
#include "tests/suite.h"
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CASES TARN_TOP "/tests/cases"

/* ---------------------------------------------------------------- the driver */
static struct {
  void (*is)(const char *words);
  long (*count)(const char *name);
  cu_driver d;
} fake;
static void *symbol(void *library, const char *name) {
  void *f = dlsym(library, name);
  ck_assert_msg(f != NULL, "%s", dlerror());
  return f;
}
static void load_fake(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* stays */
  ck_assert_msg(library != NULL, "%s", dlerror());
  *(void **)&fake.is = symbol(library, "fake_cuda_is");
  *(void **)&fake.count = symbol(library, "fake_cuda_count");
#define LOAD(name, member, args) *(void **)&fake.d.member = symbol(library, name);
  CU_FUNCTIONS(LOAD)
#undef LOAD
  fake.is("");
}

/* ---------------------------------------------------------------- a compiled model */
typedef struct subject {
  tarn_ctx *cx;
  const tarn_compiled *c;
  void *so;
  const tarn_rt_model *m;
  tarn_tensor **in, **out;
  const void **from;
  void **to, *workspace;
} subject;
/* rtol: what approximations may be off; 0: none. */
static void compile(tarn_ctx *cx, subject *s, const char *model, const char *hw,
                    const char *const *shapes, double rtol) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options *o = TARN_NEW(cx, tarn_compile_options);
  *o = tarn_compile_defaults();
  o->model = model;
  o->hw = hw ? tarn_hw_load(L, hw) : tarn_hw_host(L, false);
  o->here = tarn_hw_host(L, false);
  o->dir = tarn_format(cx, "%s/out", pipeline_folder(cx));
  for (; shapes && shapes[o->shapes.n]; o->shapes.n++) o->shapes.text = shapes;
  if (rtol > 0) o->numerics = TARN_RULE_APPROX, o->rtol = rtol;
  s->cx = cx;
  s->c = tarn_compile(L, o);
}
static void drop(void *so) { dlclose(so); }
static void open_model(subject *s) {
  s->so = dlopen(tarn_format(s->cx, "%s/model.so", s->c->o->dir), RTLD_NOW | RTLD_LOCAL);
  if (!s->so) tarn_raise(s->cx, TARN_NO, "%s", dlerror());
  tarn_defer(s->cx, drop, s->so);
  s->m = dlsym(s->so, "tarn_model");
  s->workspace = tarn_new_aligned(s->cx, s->m->workspace + 8 * s->m->per_thread + 64, 64);
}
static void make_tensors(subject *s) {
  const tarn_program *p = s->c->program;
  tarn_ctx *cx = s->cx;
  uint64_t seed = 7;
  tarn_domain *range = TARN_ARRAY(cx, tarn_domain, p->nin + 1);
  s->in = TARN_ARRAY(cx, tarn_tensor *, p->nin + 1);
  s->out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  s->from = TARN_ARRAY(cx, const void *, p->nin + 1);
  s->to = TARN_ARRAY(cx, void *, p->nout + 1);
  tarn_input_domains(p, tarn_opaque_index, range);
  for (uint32_t i = 0; i < p->nin; i++) {
    const tarn_type *t = tarn_type_get(p->L, p->in[i].type);
    s->in[i] = tarn_random_tensor(cx, t->dtype, t->n, t->dim, range[i], &seed);
    s->from[i] = s->in[i]->data;
  }
  for (uint32_t i = 0; i < p->nout; i++) {
    const tarn_type *t = tarn_type_get(p->L, p->out[i].type);
    s->out[i] = tarn_tensor_new(cx, t->dtype, t->n, t->dim);
    s->to[i] = s->out[i]->data;
  }
}
static subject subject_of(tarn_ctx *cx, const char *model, const char *const *shapes) {
  subject s = {0};
  compile(cx, &s, model, "cuda-sm80", shapes, 0);
  open_model(&s);
  make_tensors(&s);
  return s;
}
#define DIGITS TARN_TOP "/examples/digits/digits.onnx"
static const char *const digits_shape[] = {"n=1", NULL};
/* For a GPU whose description says something else in one place. */
static subject other_subject(tarn_ctx *cx, const char *model, const char *is, const char *other) {
  subject s = {0};
  size_t n;
  const char *text = tarn_read_file(cx, TARN_TOP "/hw/cuda-sm80.hw", &n), *at = strstr(text, is);
  const char *path = tarn_format(cx, "%s/other.hw", pipeline_folder(cx));
  ck_assert_ptr_nonnull(at);
  const char *all = tarn_format(cx, "%.*s%s%s", (int)(at - text), text, other, at + strlen(is));
  tarn_write_file(cx, path, all, strlen(all));
  compile(cx, &s, model, path, strcmp(model, DIGITS) ? NULL : digits_shape, 0);
  open_model(&s);
  make_tensors(&s);
  return s;
}
static tarn_rt_pool *pool_of(const subject *s) {
  char why[TARN_REF_MESSAGE];
  tarn_rt_pool *pool = tarn_rt_cuda_pool_new(s->m, 1, why);
  if (!pool) tarn_raise(s->cx, TARN_NO, "no pool: %s", why);
  return pool;
}
static int run(const subject *s, tarn_rt_pool *pool) {
  return s->m->run(s->from, s->to, s->workspace, pool);
}
static void run_well(const subject *s, tarn_rt_pool *pool) {
  int code = run(s, pool);
  if (code) tarn_raise(s->cx, TARN_NO, "run: %d, %s", code, pool->message);
}
static void same_as_reference(const subject *s) {
  const tarn_program *p = s->c->program;
  tarn_binding *in = TARN_ARRAY(s->cx, tarn_binding, p->nin + 1);
  for (uint32_t i = 0; i < p->nin; i++) in[i] = (tarn_binding){p->in[i].name, s->in[i]};
  pipeline_want want = pipeline_expect(p, in, s->c->o->numerics, s->c->rewriting->bound);
  const char *wrong = pipeline_wrong(p, &want, s->out);
  if (wrong) tarn_raise(s->cx, TARN_NO, "%s", wrong);
}
static void clear_outputs(const subject *s) {
  for (uint32_t i = 0; i < s->m->nout; i++) memset(s->to[i], 0x5a, s->m->out[i].bytes);
}

/* ---------------------------------------------------------------- values */
static subject digits(tarn_ctx *cx) { return subject_of(cx, DIGITS, digits_shape); }
static const char *case_model(tarn_ctx *cx, const char *name) {
  const char *term = tarn_format(cx, "%s/%s/g.term", CASES, name);
  return access(term, R_OK) ? tarn_format(cx, "%s/%s/model.onnx", CASES, name) : term;
}
static uint64_t uploaded(const subject *s, uint32_t runs) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s->m->gpu->nsegment; i++)
    for (uint32_t k = 0; k < s->m->gpu->segment[i].nto; k++)
      sum += s->m->gpu->segment[i].to[k].bytes;
  return s->m->const_bytes + runs * sum;
}
static uint32_t segments_with_launches(const tarn_rt_gpu *g) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->nsegment; i++) n += g->segment[i].n > 0;
  return n;
}
/* Three runs: the constants go up once, every segment is captured once and launched three times. */
static void values(const subject *s) {
  long copied = fake.count("copied"), graphs = fake.count("graphs");
  long launched = fake.count("graph_launches"), launches = fake.count("launches");
  tarn_rt_pool *pool = pool_of(s);
  for (int i = 0; i < 3; i++) {
    clear_outputs(s);
    run_well(s, pool);
    same_as_reference(s);
  }
  uint32_t n = segments_with_launches(s->m->gpu);
  ck_assert_int_eq(fake.count("copied") - copied, (long)uploaded(s, 3));
  ck_assert_int_eq(fake.count("graphs") - graphs, n);
  ck_assert_int_eq(fake.count("graph_launches") - launched, 3 * n);
  ck_assert_int_eq(fake.count("launches") - launches, 3 * s->m->gpu->nlaunch);
  tarn_rt_pool_free(pool);
  ck_assert_int_eq(fake.count("allocations"), 0);
  ck_assert_int_eq(fake.count("contexts"), 0);
}
/* Kernels on the host at the beginning, between and at the end; outputs that are inputs. */
static const char *const shown[] = {"bf16_sums",           "gather_i8_index",
                                    "onehot_u8",           "f16_lrn",
                                    "convtranspose_edges", "maxpool_index_nan",
                                    "image_near_mean",     "mask_infinite",
                                    "topk_edges",          "resize_axes_policy",
                                    "dynquant_edges"}; /* extremes and scales without dims */
static void try_case(tarn_ctx *cx, void *arg) {
  subject s = subject_of(cx, case_model(cx, arg), NULL);
  values(&s);
}
static void try_small(tarn_ctx *cx, void *arg) {
  const char *model = arg ? case_model(cx, arg) : DIGITS;
  subject s = other_subject(cx, model, "(shared 49152)", "(shared 16)"); /* launches ask for it */
  uint32_t asks = 0;
  for (uint32_t i = 0; i < s.m->gpu->nlaunch; i++) asks += s.m->gpu->launch[i].shared > 16;
  ck_assert_uint_gt(asks, 0);
  values(&s);
}
static void in_context(tarn_fn *f, void *arg) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  fake.is("");
  tarn_status st = tarn_protect(cx, f, arg);
  ck_assert_msg(st == TARN_OK, "%s: %s", arg ? (const char *)arg : "digits", tarn_message(cx));
  tarn_ctx_free(cx);
}
START_TEST(test_values) { in_context(try_case, (void *)(uintptr_t)shown[_i]); }
END_TEST
static const char *const asking[] = {NULL, "attention_masked_row"};
START_TEST(test_asking) { in_context(try_small, (void *)(uintptr_t)asking[_i]); }
END_TEST
static void try_digits(tarn_ctx *cx, void *arg) {
  (void)arg;
  subject s = digits(cx);
  ck_assert_uint_eq(s.m->gpu->nsegment, 1);
  values(&s);
  fake.is("nocapture=1");
  long graphs = fake.count("graphs");
  tarn_rt_pool *pool = pool_of(&s);
  clear_outputs(&s);
  run_well(&s, pool);
  same_as_reference(&s);
  ck_assert_int_eq(fake.count("graphs"), graphs);
  tarn_rt_pool_free(pool);
}
START_TEST(test_digits) { in_context(try_digits, NULL); }
END_TEST

/* Attention under a mask, a kernel whose blocks compute both products with tensor cores; keys are
 * no multiple of what an instruction takes, or are. */
static const char *const keys[] = {"K=37", "K=64"};
static void try_attention(tarn_ctx *cx, void *arg) {
  subject s = {0};
  const char *shapes[] = {"H=8", "Q=64", arg, "D=64", NULL};
  compile(cx, &s, TARN_TOP "/tests/data/attention/masked.tc", "cuda-sm80", shapes, 1e-3);
  open_model(&s);
  make_tensors(&s);
  ck_assert_uint_eq(s.m->gpu->nlaunch, 1);
  const tarn_schedule *x = s.c->kernels->ker[0].sched;
  uint32_t units = 0;
  for (uint32_t i = 0; i < x->nstage; i++) units += x->stage[i].unit != NULL;
  ck_assert_uint_eq(units, 2);
  values(&s);
}
START_TEST(test_attention) { in_context(try_attention, (void *)(uintptr_t)keys[_i]); }
END_TEST

/* ---- inputs and outputs on the device ---- */
static void try_addresses(tarn_ctx *cx, void *arg) {
  (void)arg, (void)cx;
  subject s = digits(cx);
  tarn_rt_pool *pool = pool_of(&s);
  cu_context c;
  cu_stream stream;
  cu_address in, out;
  const cu_driver *d = &fake.d;
  uint64_t nin = s.m->in[0].bytes, nout = s.m->out[0].bytes;
  ck_assert_int_eq(d->context_retain(&c, 0) | d->context_push(c) | d->stream_new(&stream, 0), 0);
  ck_assert_int_eq(d->memory_new(&in, nin) | d->memory_new(&out, nout), 0);
  ck_assert_int_eq(d->copy(in, (uintptr_t)s.from[0], nin, stream), 0);
  const void *from[] = {(void *)(uintptr_t)in};
  void *to[] = {(void *)(uintptr_t)out};
  ck_assert_int_eq(s.m->run(from, to, s.workspace, pool), 0);
  ck_assert_int_eq(d->copy((uintptr_t)s.to[0], out, nout, stream), 0);
  same_as_reference(&s);
  ck_assert_int_eq(d->memory_free(in) | d->memory_free(out) | d->stream_free(stream), 0);
  ck_assert_int_eq(d->context_pop(&c) | d->context_release(0), 0);
  tarn_rt_pool_free(pool);
}
START_TEST(test_addresses) { in_context(try_addresses, NULL); }
END_TEST

/* ---------------------------------------------------------------- what is refused */
static const struct refusal {
  const char *is, *says;
} refusals[] = {
    {"devices=0", "no NVIDIA GPU: the driver shows none"},
    {"driver=11020", "the NVIDIA driver is too old: it knows CUDA 11.2, 11.4 is needed"},
    {"capability=75", "the program is for sm_80, an executor of PTX is sm_75"},
    {"memory=5000", "bytes are wanted, 5000 of 5000 free"},
};
static void try_refusals(tarn_ctx *cx, void *arg) {
  (void)arg;
  subject s = digits(cx);
  char why[TARN_REF_MESSAGE];
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    fake.is(refusals[i].is);
    ck_assert_ptr_null(tarn_rt_cuda_pool_new(s.m, 1, why));
    ck_assert_msg(strstr(why, refusals[i].says), "%s: %s", refusals[i].is, why);
    ck_assert_int_eq(fake.count("contexts"), 0);
  }
  fake.is("");
  tarn_rt_gpu gpu = *s.m->gpu;
  tarn_rt_model m = *s.m;
  m.gpu = &gpu;
  gpu.ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry a() { frob; }\n";
  ck_assert_ptr_null(tarn_rt_cuda_pool_new(&m, 1, why));
  ck_assert_msg(strstr(why, "frob") && strstr(why, "CUDA_ERROR_INVALID_PTX"), "%s", why);
  gpu.ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry a() { ret; }\n";
  ck_assert_ptr_null(tarn_rt_cuda_pool_new(&m, 1, why));
  ck_assert_msg(strstr(why, "kernel ") && strstr(why, "CUDA_ERROR_NOT_FOUND"), "%s", why);
  m.gpu = NULL;
  ck_assert_ptr_null(tarn_rt_cuda_pool_new(&m, 1, why));
  ck_assert_str_eq(why, "the model was not compiled for a GPU");
  ck_assert_int_eq(fake.count("contexts"), 0);
}
START_TEST(test_refusals) { in_context(try_refusals, NULL); }
END_TEST

/* A pool serves its model alone; no pool, or one without a GPU, fails. */
static void try_other_pools(tarn_ctx *cx, void *arg) {
  (void)arg;
  subject s = digits(cx), other = subject_of(cx, case_model(cx, "bf16_sums"), NULL);
  tarn_rt_pool *pool = pool_of(&s), *plain = tarn_rt_pool_new(1);
  ck_assert_int_eq(run(&other, pool), TARN_REF_FAILED);
  ck_assert_str_eq(pool->message, "the pool was made for another model");
  ck_assert_int_eq(run(&s, plain), TARN_REF_FAILED);
  ck_assert_int_eq(run(&s, NULL), TARN_REF_FAILED);
  run_well(&s, pool);
  same_as_reference(&s);
  tarn_rt_pool_free(pool), tarn_rt_pool_free(plain);
}
START_TEST(test_other_pools) { in_context(try_other_pools, NULL); }
END_TEST

/* ---------------------------------------------------------------- failures */
static const char *kernel_of(const subject *s, uint32_t launch) {
  return s->m->kernel_name[s->m->gpu->launch[launch].kernel];
}
static void fails_in(const subject *s, tarn_rt_pool *pool, uint32_t launch, const char *how) {
  ck_assert_int_eq(run(s, pool), TARN_REF_PROGRAM);
  ck_assert_msg(strstr(pool->message, kernel_of(s, launch)) && strstr(pool->message, how), "%s",
                pool->message);
}
static void again(const subject *s, tarn_rt_pool *pool) {
  fake.is("");
  clear_outputs(s);
  run_well(s, pool);
  same_as_reference(s);
}
static void try_failures(tarn_ctx *cx, void *arg) {
  (void)arg;
  subject s = digits(cx);
  uint32_t last = s.m->gpu->nlaunch - 1;
  for (uint32_t i = 0; i <= last; i += last / 2) {
    const char *entry = s.m->gpu->launch[i].entry;
    tarn_rt_pool *pool = pool_of(&s);
    fake.is(tarn_format(cx, "refuse=%s", entry)); /* while it is captured */
    fails_in(&s, pool, i, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    again(&s, pool);
    fake.is(tarn_format(cx, "wild=%s", entry)); /* in the graph: a new context is made */
    fails_in(&s, pool, i, "CUDA_ERROR_ILLEGAL_ADDRESS");
    again(&s, pool);
    fake.is(tarn_format(cx, "noreset=1 wild=%s", entry)); /* none is to be had */
    ck_assert_int_eq(run(&s, pool), TARN_REF_PROGRAM);
    ck_assert_msg(strstr(pool->message, "kernel "), "%s", pool->message);
    ck_assert_int_eq(run(&s, pool), TARN_REF_FAILED);
    ck_assert_str_eq(pool->message, "the GPU's context was lost in an earlier run");
    tarn_rt_pool_free(pool);
    fake.is("");
    cu_context c; /* as a new process would find it */
    ck_assert_int_eq(fake.d.context_retain(&c, 0) | fake.d.context_reset(0), 0);
    while (!fake.d.context_release(0)) continue;
  }
}
START_TEST(test_failures) { in_context(try_failures, NULL); }
END_TEST
/* Where the host works in between, the first and the last kernel of the segment are named. */
static void try_parts(tarn_ctx *cx, void *arg) {
  subject s = subject_of(cx, case_model(cx, arg), NULL);
  const tarn_rt_gpu *g = s.m->gpu;
  ck_assert_uint_gt(g->nsegment, 1);
  tarn_rt_pool *pool = pool_of(&s);
  for (uint32_t i = 0; i < g->nsegment; i++) {
    if (!g->segment[i].n) continue;
    fake.is(tarn_format(cx, "wild=%s", g->launch[g->segment[i].first].entry));
    fails_in(&s, pool, g->segment[i].first, "CUDA_ERROR_ILLEGAL_ADDRESS");
    again(&s, pool);
  }
  tarn_rt_pool_free(pool);
}
START_TEST(test_parts) { in_context(try_parts, (void *)(uintptr_t) "tensor_scatter"); }
END_TEST

/* ---------------------------------------------------------------- copies */
#define FROM_TABLE                                                                                 \
  "(compute (map (neg $0)) (nth 0 (opaque TopK (axis 0) ((f32 ((2 40) ())) (i64 ((2 40) ()))) "    \
  "(compute (map (exp $0)) (input e ((30 40) ()) f32)))))"
static uint64_t in_workspace(const tarn_rt_transfer *t, uint32_t n) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; i++) bytes += t[i].place.at == TARN_RT_WORKSPACE ? t[i].bytes : 0;
  return bytes;
}
/* A table that the device makes, and what the host takes of it, for the device again: each byte has
 * its price, by the description. */
static void try_copies(tarn_ctx *cx, void *arg) {
  (void)arg;
  const char *model = tarn_format(cx, "%s/g.term", pipeline_folder(cx));
  tarn_write_file(cx, model, FROM_TABLE, strlen(FROM_TABLE));
  const subject s[3] = {
      other_subject(cx, model, "(send 31.5e9)", "(send 1e9)"),
      other_subject(cx, model, "(send 31.5e9)", "(send 2e9)"),
      other_subject(cx, model, "(send 31.5e9) (receive 31.5e9)", "(send 2e9) (receive 1e9)")};
  uint64_t to = 0, from = 0;
  for (uint32_t i = 0; i < s->m->gpu->nsegment; i++) {
    const tarn_rt_segment *x = &s->m->gpu->segment[i];
    to += in_workspace(x->to, x->nto), from += in_workspace(x->from, x->nfrom);
  }
  ck_assert_uint_eq(to, 2 * 40 * sizeof(float));
  ck_assert_uint_eq(from, 30 * 40 * sizeof(float));
  double price[3];
  for (int i = 0; i < 3; i++) price[i] = s[i].c->choice.price;
  double sent = (double)to * (1e-9 - 0.5e-9), received = (double)from * (1e-9 - 1 / 31.5e9);
  ck_assert_double_eq_tol(price[0] - price[1], sent, 1e-6 * sent);
  ck_assert_double_eq_tol(price[2] - price[1], received, 1e-6 * received);
  ck_assert_ptr_nonnull(strstr(s->c->report, "\"host_copies\""));
  values(&s[2]);
}
START_TEST(test_copies) { in_context(try_copies, NULL); }
END_TEST

/* ---------------------------------------------------------------- lookups */
#define TWO_TABLES                                                                                 \
  "(compute (map (add $0 $1)) (gather 0 (input e ((30 40) ()) f32) (input n ((3) ()) i32)) "       \
  "(gather "                                                                                       \
  "0 (input f ((9 40) ()) f32) (input m ((3) ()) i32)))"
static void *input_of(const subject *s, const char *name) {
  for (uint32_t i = 0; i < s->m->nin; i++)
    if (!strcmp(s->m->in[i].name, name)) return (void *)(uintptr_t)s->from[i];
  ck_abort_msg("no input %s", name);
}
/* Two segments with lookups, and a kernel of the host between them. */
#define TWO_SEGMENTS                                                                               \
  "(compute (map (add $0 $1)) (nth 0 (opaque TopK (axis 0) ((f32 ((2 40) ())) (i64 ((2 40) ())))"  \
  " (compute (map (exp $0)) (gather 0 (input e ((9 40) ()) f32) (input m ((5) ()) i32)))))"        \
  " (gather 0 (input f ((30 40) ()) f32) (input n ((2) ()) i32)))"
/* The rows are read on the device, which says where there is none. */
static void try_rows(tarn_ctx *cx, void *arg) {
  const char *model = tarn_format(cx, "%s/g.term", pipeline_folder(cx));
  tarn_write_file(cx, model, arg, strlen(arg));
  subject s = subject_of(cx, model, NULL);
  ck_assert_uint_eq(segments_with_launches(s.m->gpu), strcmp(arg, TWO_SEGMENTS) ? 1 : 2);
  values(&s);
  tarn_rt_pool *pool = pool_of(&s);
  int32_t *n = input_of(&s, "n"), was = n[1];
  static const int32_t wrong[] = {30, -31, INT32_MAX, INT32_MIN};
  for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    n[1] = wrong[i];
    ck_assert_int_eq(run(&s, pool), TARN_REF_INDEX);
    ck_assert_msg(strstr(pool->message, ": an index is out of range"), "%s", pool->message);
    n[1] = was;
    again(&s, pool);
  }
  tarn_rt_pool_free(pool);
}
START_TEST(test_rows) {
  static const char *const text[] = {
      "(compute (map (exp $0)) (gather 0 (input e ((30 40) ()) f32) (input n ((3) ()) i32)))",
      TWO_TABLES, TWO_SEGMENTS};
  in_context(try_rows, (void *)(uintptr_t)text[_i]);
}
END_TEST

/* ---------------------------------------------------------------- time */
static void try_time(tarn_ctx *cx, void *arg) {
  (void)arg;
  subject s = digits(cx);
  double t[3], sum = 0, whole[2];
  tarn_rt_pool *pool = pool_of(&s);
  for (uint32_t k = 0; k < s.m->nkernel; k++) {
    ck_assert_int_eq(tarn_rt_cuda_time(pool, s.from, k, 3, t), TARN_REF_OK);
    ck_assert(t[0] > 0 && t[0] == t[1] && t[1] == t[2]); /* time is instructions there */
    sum += t[0];
  }
  ck_assert_int_eq(tarn_rt_cuda_time(pool, NULL, TARN_RT_WHOLE, 2, whole), TARN_REF_OK);
  ck_assert_double_eq_tol(whole[0], sum, 1e-3 * sum);
  fake.is(tarn_format(cx, "wild=%s", s.m->gpu->launch[0].entry));
  ck_assert_int_ne(tarn_rt_cuda_time(pool, NULL, 0, 1, t), TARN_REF_OK);
  ck_assert_msg(strstr(pool->message, kernel_of(&s, 0)), "%s", pool->message);
  tarn_rt_pool_free(pool);
}
START_TEST(test_time) { in_context(try_time, NULL); }
END_TEST
START_TEST(test_info) {
  tarn_rt_cuda_info info;
  char why[TARN_REF_MESSAGE];
  fake.is("capability=90 driver=12080 memory=1000000");
  ck_assert_int_eq(tarn_rt_cuda_info_get(&info, why), TARN_REF_OK);
  ck_assert_uint_eq(info.architecture, 90);
  ck_assert_uint_eq(info.driver, 12080);
  ck_assert_uint_eq(info.memory, 1000000);
  ck_assert_uint_eq(info.free, 1000000);
  fake.is("devices=0");
  ck_assert_int_ne(tarn_rt_cuda_info_get(&info, why), TARN_REF_OK);
}
END_TEST

/* ---------------------------------------------------------------- the driver refuses, too */
static const char store[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                            ".visible .entry k(.param .u64 p) .maxntid 32, 1, 1 {\n"
                            ".reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\n"
                            "st.global.u64 [%rd1], %rd1;\nret;\n}\n";
START_TEST(test_driver) {
  const cu_driver *d = &fake.d;
  cu_context c;
  cu_module m;
  cu_function f;
  cu_stream s;
  cu_address at;
  char host[64];
  void *param[] = {&at}, *none[] = {NULL};
  fake.is("");
  ck_assert_int_eq(d->init(0) | d->context_retain(&c, 0), 0);
  ck_assert_int_eq(d->stream_new(&s, 0), CU_INVALID_CONTEXT);
  ck_assert_int_eq(d->context_push(c) | d->stream_new(&s, 0), 0);
  ck_assert_int_eq(d->module_load(&m, NULL, 0, NULL, NULL), CU_INVALID_VALUE);
  ck_assert_int_eq(d->module_load(&m, store, 0, NULL, NULL) | d->memory_new(&at, 64), 0);
  ck_assert_int_eq(d->function_get(&f, m, "none"), CU_NOT_FOUND);
  ck_assert_int_eq(d->function_get(&f, m, "k"), 0);
  ck_assert_int_eq(d->copy(at + 1, (uintptr_t)host, 64, s), CU_INVALID_VALUE);
  ck_assert_int_eq(d->copy(at, 0, 64, s), CU_INVALID_VALUE);
  ck_assert_int_eq(d->launch(f, 1, 1, 1, 64, 1, 1, 0, s, param, NULL), CU_INVALID_VALUE);
  ck_assert_int_eq(d->launch(f, 1, 1, 1, 1, 1, 1, 0, s, none, NULL), CU_INVALID_VALUE);
  ck_assert_int_eq(d->launch(f, 0, 1, 1, 1, 1, 1, 0, s, param, NULL), CU_INVALID_VALUE);
  ck_assert_int_eq(d->launch(f, 1, 1, 1, 1, 1, 1, 0, s, param, NULL) | d->stream_wait(s), 0);
  ck_assert_int_eq(d->copy((uintptr_t)host, at, 8, s), 0);
  ck_assert(!memcmp(host, &at, 8));
  ck_assert_int_eq(d->memory_free(at), 0);
  ck_assert_int_eq(d->memory_free(at), CU_INVALID_VALUE);
  ck_assert_int_eq(d->copy((uintptr_t)host, at, 8, s), CU_INVALID_VALUE);
  ck_assert_int_eq(d->launch(f, 1, 1, 1, 1, 1, 1, 0, s, param, NULL), 0);
  ck_assert_int_eq(d->stream_wait(s), CU_ILLEGAL_ADDRESS);
  ck_assert_int_eq(d->memory_new(&at, 64), CU_ILLEGAL_ADDRESS);
  ck_assert_int_eq(d->context_reset(0), 0);
  ck_assert_int_eq(d->stream_wait(s), CU_INVALID_CONTEXT);
  ck_assert_int_eq(d->context_pop(&c) | d->context_release(0), 0);
}
END_TEST

/* ---------------------------------------------------------------- all cases */
/* The inputs of a case; numpy has no bfloat16, so such values are stored as f32. */
static void read_inputs(tarn_ctx *cx, subject *s, const char *name) {
  const tarn_program *p = s->c->program;
  for (uint32_t i = 0; i < p->nin; i++) {
    const char *path = tarn_format(cx, "%s/%s/in_%s.npy", CASES, name, p->in[i].name);
    if (access(path, R_OK)) continue;
    const tarn_tensor *t = tarn_tensor_read(cx, path);
    for (int64_t k = 0, n = tarn_tensor_count(t); k < n; k++)
      tarn_tensor_set(s->in[i], k, tarn_tensor_get(t, k));
  }
}
/* What cannot be compiled for a GPU says why; what can gives the right values. */
static void try_any(tarn_ctx *cx, void *arg) {
  char(*left)[256] = arg;
  subject s = {0};
  const char *model = case_model(cx, *left);
  const char *name = tarn_strdup(cx, *left);
  compile(cx, &s, model, "cuda-sm80", NULL, 0);
  (*left)[0] = 0;
  open_model(&s);
  make_tensors(&s);
  read_inputs(cx, &s, name);
  tarn_rt_pool *pool = pool_of(&s);
  run_well(&s, pool);
  same_as_reference(&s);
  tarn_rt_pool_free(pool);
}
START_TEST(test_all) {
  DIR *d = opendir(CASES);
  int run_ = 0, refused = 0;
  fake.is("");
  for (struct dirent *e; d && (e = readdir(d));) {
    char name[256];
    tarn_ctx *cx = tarn_ctx_new(NULL);
    snprintf(name, sizeof name, "%s", e->d_name);
    const char *error = tarn_format(cx, "%s/%s/error.txt", CASES, name);
    if (*name != '.' && access(error, F_OK)) {
      tarn_status st = tarn_protect(cx, try_any, &name);
      ck_assert_msg(st == TARN_OK || *name, "%s: %s", e->d_name, tarn_message(cx));
      run_ += !*name, refused += *name != 0;
      if (*name) printf("%s is not compiled: %s\n", name, tarn_message(cx));
    }
    tarn_ctx_free(cx);
  }
  closedir(d);
  ck_assert_int_gt(run_, 80);
  ck_assert_int_lt(refused, run_ / 10);
}
END_TEST

/* Weights of 16 bits are constants that a unit takes as they are stored: none is widened ahead. */
static void try_halves(tarn_ctx *cx, void *arg) {
  static const char text[] =
      "in x f16 256,384\ninit v f32 3,4 : 1 -2 3 0.5 2 1 -1 4 -3 0.25 5 2\n"
      "init r i64 2 : 128 64\nnode Tile t v r -> u\nnode Cast k u -> w : to=10\n"
      "node MatMul m x w -> y\nout y\n";
  const char *path = tarn_format(cx, "%s/halves.onnx", pipeline_folder(cx));
  subject s = {0};
  (void)arg;
  size_t n;
  const uint8_t *bytes = onnx_model(cx, text, &n);
  tarn_write_file(cx, path, bytes, n);
  compile(cx, &s, path, "cuda-sm80", NULL, 0);
  open_model(&s);
  make_tensors(&s);
  ck_assert_uint_eq(s.m->gpu->nlaunch, 1);
  ck_assert_ptr_nonnull(s.c->kernels->ker[0].sched->stage[0].unit);
  values(&s);
}
START_TEST(test_halves) { in_context(try_halves, NULL); }
END_TEST

static TCase *tests(const char *name) {
  TCase *t = tcase_create(name);
  tcase_set_timeout(t, 600);
  tcase_add_checked_fixture(t, load_fake, NULL);
  return t;
}
int main(int argc, char **argv) {
  bool all = argc > 1 && !strcmp(argv[1], "--all");
  const char *path = getenv("LD_LIBRARY_PATH");
  if (!path || strcmp(path, TARN_BUILD "/fake_cuda") != 0) {
    setenv("LD_LIBRARY_PATH", TARN_BUILD "/fake_cuda", 1);
    execv("/proc/self/exe", argv);
    return 1;
  }
  TCase *t = tests("cuda");
  tcase_add_loop_test(t, test_values, 0, sizeof shown / sizeof *shown);
  tcase_add_loop_test(t, test_asking, 0, sizeof asking / sizeof *asking);
  tcase_add_test(t, test_digits);
  tcase_add_loop_test(t, test_attention, 0, sizeof keys / sizeof *keys);
  tcase_add_test(t, test_halves);
  tcase_add_test(t, test_addresses);
  tcase_add_test(t, test_refusals);
  tcase_add_test(t, test_other_pools);
  tcase_add_test(t, test_failures);
  tcase_add_test(t, test_parts);
  tcase_add_test(t, test_copies);
  tcase_add_loop_test(t, test_rows, 0, 3);
  tcase_add_test(t, test_time);
  tcase_add_test(t, test_info);
  tcase_add_test(t, test_driver);
  if (all) tcase_add_test(t, test_all);
  return run_checks("cuda", t);
}
