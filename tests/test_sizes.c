/* One artefact for several sizes: every size computes what a program of that size alone does, and
 * what all have in common is there once. */
#include "hw/host/host.h"
#include "runtime/rt.h"
#include "tests/sizes_kit.h"
#include "tests/suite.h"
#include <string.h>

typedef struct sized {
  const char *model;
  const char *shapes[5];
  uint32_t programs; /* expected, at most */
} sized;

#define MLP                                                                                        \
  "rand w 24,40\nrand v 40,10\nrand b 40\n"                                                        \
  "node MatMul m x w -> t\nnode Add a t b -> u\nnode Relu r u -> q\nnode MatMul n q v -> y\nout "  \
  "y\n"
static const sized cases[] = {
    {"in x f32 N,24\n" MLP, {"N=1,4,16"}, 3},
    {"in x f32 N,M,24\n" MLP, {"N=1,3", "M=2,5"}, 4},
    {"in x f32 N,M,24\n" MLP, {"N=2", "M=2..4,7"}, 4},
    {"in x f32 ?,24\n" MLP, {"x=2..4,24"}, 3},
    /* windows over a side of any length */
    {"in x f32 1,3,H,9\nrand w 4,3,3,3\nnode Conv c x w -> t : pads=1,1,1,1 strides=2,2\n"
     "node Relu r t -> y\nout y\n",
     {"H=3..8"},
     6},
    /* every token sees every other one */
    {"in x f32 S,16\nrand q 16,16\nrand k 16,16\nnode MatMul a x q -> s\nnode MatMul b x k -> t\n"
     "node Transpose c t -> u : perm=1,0\nnode MatMul d s u -> v\nnode Softmax e v -> p : axis=-1\n"
     "node MatMul f p x -> y\nout y\n",
     {"S=1..9"},
     9},
    {SIZES_DECODER, {"P=0..6"}, 7},
    /* rows of any number */
    {"in x f32 N,24\n" MLP, {"N=1..40"}, 6},
    {"in x f32 N,24\n" MLP, {"N=0..9"}, 4},
    {"in x f32 N,M,24\n" MLP, {"N=3..20", "M=2,5"}, 10},
    {"in x f32 M,N,24\n" MLP, {"N=3..9", "M=2,5"}, 8}, /* not the first dim */
    {"in x f32 ?,24\n" MLP, {"x=2..11,24"}, 4},
    {"in x f32 N,3,9,7\nrand w 4,3,3,3\nrand g 4\nrand b 4\nrand m 4\npos d 4\nrand f 16,5\n"
     "node Conv c x w -> t : pads=1,1,1,1 strides=2,2\nnode BatchNormalization n t g b m d -> u\n"
     "node Relu r u -> v\nnode MaxPool p v -> q : kernel_shape=2,2 strides=2,2\n"
     "node Flatten l q -> z\nnode MatMul e z f -> y\nout y\nout v\n",
     {"N=1..7"},
     3},
    /* attention in batches: rows are of the second dim between, and part of a dim at times */
    {"in x f32 N,6,8\nin a f32 6,8\nrand q 8,8\nrand k 8,8\ninit s i64 2 : -1 8\n"
     "init o i64 3 : -1 6 8\nnode Add w x a -> b\nnode Reshape f b s -> c\n"
     "node MatMul g c q -> d\nnode Reshape h d o -> e\nnode Transpose i e -> t : perm=1,0,2\n"
     "node Transpose j t -> u : perm=1,2,0\nnode MatMul l x u -> v\n"
     "node Softmax m v -> p : axis=-1\nnode MatMul n p x -> y\nout y\nout c\n",
     {"N=2..13"},
     4},
    /* tokens of one sentence, each by itself */
    {"in x f32 1,S,24\nin g f32 1,S,1\nnode Mul k x g -> z\nrand v 24,24\nrand u 24\n"
     "node MatMul m z v -> t\nnode LayerNormalization l t u -> q : axis=-1\n"
     "node Add a x q -> y\nout y\n",
     {"S=1..17"},
     5},
    /* a row that is summed, and an output that has none */
    {"in x f32 N,12\nin z f32 5\nnode LogSoftmax a x -> y : axis=1\nnode Exp c z -> q\nout y\n"
     "out q\n",
     {"N=4..8"},
     4},
    /* the rows of a table that each sample names */
    {"in i i64 N,3\nrand t 40,16\nrand w 16,8\nnode Gather g t i -> r\n"
     "node ReduceMean m r -> q : axes=1, keepdims=0\nnode MatMul k q w -> y\nout y\n",
     {"N=1..40"},
     6},
    /* a token before each sample's, the same in all; and the size cut in two */
    {"in x f32 N,3,8\nrand c 1,1,8\nrand w 8,8\ninit i i64 1 : 0\ninit o i64 1 : 1\n"
     "node Shape s x -> d\nnode Gather g d i -> n\nnode Concat k n o o -> e : axis=0\n"
     "node Expand b c e -> t\nnode Concat j t x -> q : axis=1\nnode MatMul m q w -> u\n"
     "node Softmax f u -> y : axis=1\nout y\n",
     {"N=1..9"},
     4},
    {"in x f32 N,8\nrand c 2,8\nnode Concat j x c -> u : axis=0\nnode Exp e u -> y\nout y\n",
     {"N=1..6"},
     6},
    /* a sum over the batch */
    {"in x f32 N,12\nnode Softmax a x -> y : axis=0\nout y\n", {"N=2..7"}, 6},
    /* an output that is an input, and a length that is 0 */
    {"in x f32 N,5\nnode Exp e x -> y\nout y\nout x\n", {"N=0,2"}, 2},
};

static tarn_compile_options options(tarn_lang *L, const sized *c, const char *dir) {
  return sizes_options(L, c->model, c->shapes, dir);
}
/* The description of the object: a size that is not there is refused, by both functions. */
static void refuse_others(const tarn_loaded *m, tarn_loaded *n) {
  uint32_t sizes = tarn_loaded_sizes(m);
  int64_t size[4] = {0};
  for (uint32_t i = 0; i < sizes; i++) size[i] = 1000;
  ck_assert(!tarn_loaded_select(n, size));
}
/* Beside the ends of all programs. */
static void refuse_next(tarn_loaded *m, const tarn_compiled *c, uint32_t program) {
  int64_t size[4] = {0};
  uint32_t sizes = tarn_loaded_sizes(m);
  for (uint32_t k = 0; k < sizes; k++) size[k] = tarn_loaded_range(m, program, k).hi;
  for (uint32_t k = 0; k < sizes; k++) {
    int64_t most = 0;
    for (uint32_t i = 0; i < c->sizes->nprogram; i++)
      most = tarn_max(most, tarn_loaded_range(m, i, k).hi);
    int64_t was = size[k];
    size[k] = most + 1;
    ck_assert(!tarn_loaded_select(m, size));
    size[k] = -1;
    ck_assert(!tarn_loaded_select(m, size));
    size[k] = was;
  }
}
#define SOME 8
static void run_case(tarn_ctx *cx, void *arg) {
  const sized *s = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, s, pipeline_folder(cx));
  const tarn_compiled *c = tarn_compile(L, &o);
  uint32_t n = c->sizes->nprogram;
  ck_assert_msg(n <= s->programs, "%u programs", n);
  tarn_loaded *m = tarn_load(cx, o.dir);
  ck_assert_uint_eq(tarn_loaded_programs(m), n);
  for (uint32_t i = 0; i < n; i++) sizes_try_program(m, o, c, i, SOME);
  for (uint32_t i = 0; i < n; i++) refuse_next(m, c, i);
  refuse_others(m, m);
}
START_TEST(every_size) { in_context(run_case, (void *)(uintptr_t)&cases[_i]); }
END_TEST

/* ---- a generation ---- */
typedef struct generation {
  tarn_compile_options o;
  const tarn_compiled *c;
  tarn_loaded *m;
  const tarn_tensor *in[3]; /* the token, keys, values */
} generation;
/* One token; its keys and values are what the next one is given. */
static void step(tarn_ctx *cx, generation *g, int64_t past) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = g->o;
  o.shapes = tarn_compile_shapes_at(L, &o, &past);
  const tarn_program *p = tarn_compile_import(L, &o, NULL);
  tarn_binding in[3];
  tarn_tensor *out[3];
  for (uint32_t i = 0; i < 3; i++) in[i] = (tarn_binding){p->in[i].name, g->in[i]};
  ck_assert(tarn_loaded_select_for(g->m, g->in));
  ck_assert_int_eq(*tarn_loaded_size(g->m), past);
  pipeline_run(g->m, p, in, out);
  pipeline_want want = pipeline_expect(p, in, g->c->o->numerics, g->c->rewriting->bound);
  const char *wrong = pipeline_wrong(p, &want, out);
  ck_assert_msg(!wrong, "past=%lld: %s", (long long)past, wrong);
  for (uint32_t i = 0; i < 3; i++) g->in[i] = out[i];
}
/* Each step reads what the one before has written; apart, or in a buffer of 16 rows. */
static const sized generations[] = {{SIZES_DECODER, {"P=0..9"}, 10},
                                    {SIZES_DECODER, {"P=1..9"}, 9}};
static void generate(tarn_ctx *cx, void *arg) {
  const int in_place = *(int *)arg;
  const sized decoder = generations[in_place];
  tarn_lang *L = tarn_lang_new(cx);
  generation g = {.o = options(L, &decoder, pipeline_folder(cx))};
  uint64_t seed = 5;
  tarn_in_place x;
  g.o.cache_rows = in_place ? 16 : 0;
  g.c = tarn_compile(L, &g.o);
  g.m = tarn_load(cx, g.o.dir);
  ck_assert_uint_le(g.c->sizes->nprogram, decoder.programs);
  ck_assert_int_eq(tarn_loaded_in_place(g.m, false, 1, &x), in_place);
  const tarn_program *first = g.c->programs[0]->program;
  for (uint32_t i = 0; i < 3; i++)
    g.in[i] = kit_values(cx, tarn_type_get(L, first->in[i].type), &seed);
  for (int64_t past = in_place; past < 10; past++) step(cx, &g, past);
  ck_assert(!tarn_loaded_select_for(g.m, g.in));
}
START_TEST(one_artefact_generates) { in_context(generate, &_i); }
END_TEST

/* ---- constants ---- */
/* Weights that every program reads in one order lie there once; so do equal ones of one program. */
static void share(tarn_ctx *cx, void *arg) {
  (void)arg;
  static const sized three = {
      "in x f32 N,24\nrand w 24,40\nnode MatMul m x w -> y\nout y\n", {"N=1,4,16"}, 3};
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, &three, pipeline_folder(cx));
  const tarn_compiled *c = tarn_compile(L, &o);
  int64_t all = 0, most = 0;
  for (uint32_t i = 0; i < c->sizes->nprogram; i++) {
    const tarn_kprog *p = c->sizes->program[i].p;
    int64_t own = tarn_memory_plan_make(p, 64)->const_bytes;
    all += own;
    if (own > most) most = own;
    ck_assert_int_eq(c->sizes->program[i].plan->const_bytes, c->memory->const_bytes);
  }
  ck_assert_int_ge(c->memory->const_bytes, most);
  ck_assert_int_lt(c->memory->const_bytes, all);
}
START_TEST(constants_once) { in_context(share, NULL); }
END_TEST

/* The kernels of a size as they are chosen when nothing else is compiled. */
static const char *kernels_alone(tarn_ctx *cx, tarn_compile_options o, int64_t size) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_buf b = {.cx = cx};
  o.hw = tarn_hw_load(L, "x86-64-v3");
  o.shapes = tarn_compile_shapes_at(L, &o, &size);
  o.caches = (tarn_texts){1, (const char *const[]){"none"}};
  tarn_compiled *c = tarn_compile_load(L, &o);
  tarn_compile_optimise(c);
  tarn_kprog_print(c->kernels, &b);
  return b.p;
}
/* Rules are read once, and a kernel that two sizes have in common is priced once; that changes no
 * choice. */
static void price_once(tarn_ctx *cx, void *arg) {
  (void)arg;
  static const sized decoder = {SIZES_DECODER, {"P=4..6"}, 3};
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, &decoder, pipeline_folder(cx));
  const tarn_compiled *c = tarn_compile(L, &o);
  uint64_t first = c->programs[0]->choice.signatures;
  for (uint32_t i = 1; i < 3; i++) {
    ck_assert_ptr_eq(c->programs[i]->rules, c->programs[0]->rules);
    ck_assert_uint_lt(c->programs[i]->choice.signatures, first);
    tarn_buf b = {.cx = cx};
    tarn_kprog_print(c->programs[i]->kernels, &b);
    ck_assert_str_eq(b.p, kernels_alone(cx, o, 4 + i));
  }
}
START_TEST(prices_once) { in_context(price_once, NULL); }
END_TEST

/* ---- what is refused ---- */
typedef struct refusal {
  const char *shape[3], *hw, *words;
} refusal;
static const refusal refusals[] = {
    {{"N=4..2"}, "x86-64-v3", "a range goes upwards"},
    {{"N=1..2..3"}, "x86-64-v3", "numbers and ranges"},
    {{"N=1,,3"}, "x86-64-v3", "numbers and ranges"},
    {{"N=-1..3"}, "x86-64-v3", "numbers and ranges"},
    {{"N=1.5"}, "x86-64-v3", "numbers and ranges"},
    {{"N=1,"}, "x86-64-v3", "numbers and ranges"},
    {{"N=2", "M=2", "Q=1,2"}, "x86-64-v3", "no such input or dim"},
    {{"N=1,4"}, "cuda-sm80", "a program for cuda-sm80 (GPU) has one size"},
    {{"N=1..9:0"}, "x86-64-v3", "a step of 0"},
    {{"N=1..9:"}, "x86-64-v3", "numbers and ranges"},
    {{"N=1..9@"}, "x86-64-v3", "numbers and ranges"},
    {{"N=1..9@3;4"}, "x86-64-v3", "numbers and ranges"},
    {{"N=1..99999999"}, "x86-64-v3", "sizes are at most 16777216"},
    /* a root of the size */
    {{"N=1..300"}, "x86-64-v3", "no one serves N="},
};
typedef struct refusing {
  const refusal *r;
  tarn_lang *L;
} refusing;
static void compile_refused(tarn_ctx *cx, void *arg) {
  refusing *x = arg;
  const refusal *r = x->r;
  sized s = {"in x f32 N,M,24\nin z f32 M,N\nrand w 24,3\nnode MatMul m x w -> y\n"
             "node ReduceMean e z -> q : axes=0,1\nnode Shape s z -> n\nnode Cast c n -> f : to=1\n"
             "node Sqrt r f -> g\nnode Div d q g -> o\nout y\nout o\n",
             {r->shape[0], r->shape[1] ? r->shape[1] : "M=2", r->shape[2]},
             0};
  tarn_lang *L = x->L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, &s, pipeline_folder(cx));
  o.hw = tarn_hw_load(L, r->hw);
  if (o.hw->kind == TARN_HW_GPU) o.here = tarn_hw_host(L, false);
  tarn_compile(L, &o);
}
START_TEST(refused) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  refusing x = {.r = &refusals[_i]};
  tarn_status st = tarn_protect(cx, compile_refused, &x);
  ck_assert_int_ne(st, TARN_OK);
  ck_assert_ptr_eq(tarn_lang_ctx(x.L), cx); /* in no scope */
  ck_assert_msg(strstr(tarn_message(cx), refusals[_i].words) != NULL, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("sizes");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, every_size, 0, sizeof cases / sizeof *cases);
  tcase_add_loop_test(t, one_artefact_generates, 0, 2);
  tcase_add_test(t, constants_once);
  tcase_add_test(t, prices_once);
  tcase_add_loop_test(t, refused, 0, sizeof refusals / sizeof *refusals);
  return run_checks("sizes", t);
}
