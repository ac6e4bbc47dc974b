/* Programs for many sizes: their samples have the same kernels and schedules, in numbers that are
 * polynomials of the sizes, and each size computes what it should.
 *
 *   test_families [--all]      --all: further models */
#include "tests/sizes_kit.h"
#include "tests/suite.h"
#include <string.h>

typedef struct ranged {
  const char *model;
  const char *shapes[4];
  uint32_t programs, families; /* expected, at most and at least; 0: none */
  bool longer;                 /* tried by --all alone */
} ranged;

/* Every token sees every other one, in two heads. */
#define ATTENTION                                                                                  \
  "in x f32 S,32\nrand wq 32,32\nrand wk 32,32\nrand wv 32,32\nrand wo 32,32\n"                    \
  "init split i64 3 : -1 2 16\ninit join i64 2 : -1 32\n"                                          \
  "node MatMul mq x wq -> q0\nnode Reshape rq q0 split -> q1\n"                                    \
  "node Transpose tq q1 -> q : perm=1,0,2\nnode MatMul mk x wk -> k0\n"                            \
  "node Reshape rk k0 split -> k1\nnode Transpose tk k1 -> k : perm=1,2,0\n"                       \
  "node MatMul mv x wv -> v0\nnode Reshape rv v0 split -> v1\n"                                    \
  "node Transpose tv v1 -> v : perm=1,0,2\nnode MatMul sc q k -> s\n"                              \
  "node Softmax sm s -> p : axis=-1\nnode MatMul o p v -> o0\n"                                    \
  "node Transpose ot o0 -> o1 : perm=1,0,2\nnode Reshape jo o1 join -> o2\n"                       \
  "node MatMul mo o2 wo -> o3\nnode Add ha x o3 -> y\nout y\n"
/* Two heads whose scores s0 a mask makes scores s, with the number of tokens as len. */
#define MASKED(mask)                                                                               \
  "in x f32 S,32\nrand wq 32,32\nrand wk 32,32\nrand wv 32,32\n"                                   \
  "init split i64 3 : -1 2 16\ninit join i64 2 : -1 32\ninit ones i64 1 : 1\n"                     \
  "init first i64 1 : 0\ninit axis i64 1 : 1\ninit neg f32 1 : -10000\n"                           \
  "node MatMul mq x wq -> q0\nnode Reshape rq q0 split -> q1\n"                                    \
  "node Transpose tq q1 -> q : perm=1,0,2\nnode MatMul mk x wk -> k0\n"                            \
  "node Reshape rk k0 split -> k1\nnode Transpose tk k1 -> k : perm=1,2,0\n"                       \
  "node MatMul mv x wv -> v0\nnode Reshape rv v0 split -> v1\n"                                    \
  "node Transpose tv v1 -> v : perm=1,0,2\nnode MatMul sc q k -> s0\n"                             \
  "node Shape sh x -> dims\nnode Gather gl dims first -> "                                         \
  "len1\n" mask "node Softmax sm s -> p : axis=-1\nnode MatMul o p v -> o0\n"                      \
  "node Transpose ot o0 -> o1 : perm=1,0,2\nnode Reshape jo o1 join -> y\nout y\n"
static const ranged cases[] = {
    /* a mask of any pattern, cut from a tensor that is stored */
    {MASKED("rand t 200,200\ninit zero f32 1 : 0\nnode Slice sa t first len1 first -> t1\n"
            "node Slice sb t1 first len1 axis -> t2\nnode Greater gr t2 zero -> b\n"
            "node Where wh b s0 neg -> s\n"),
     {"S=1..190"},
     4,
     1,
     false},
    /* a triangle of factors, and of what is taken off */
    {MASKED(
         "init unit f32 1 : 1\ninit big f32 1 : 10000\nnode Concat cc len1 len1 -> both : axis=0\n"
         "node Expand ex unit both -> full\nnode Trilu tr full -> t : upper=0\n"
         "node Mul ml s0 t -> sm0\nnode Sub sb unit t -> n\nnode Mul mb n big -> nb\n"
         "node Sub sd sm0 nb -> s\n"),
     {"S=1..190"},
     12,
     1,
     true},
    /* positions compared */
    {MASKED("node Squeeze s0 first -> at\nnode Squeeze s1 ones -> one\nnode Squeeze sq len1 -> "
            "len\nnode Range rg at len one -> r\nnode Unsqueeze us r axis -> c\n"
            "node LessOrEqual le r c -> b\nnode Where wh b s0 neg -> s\n"),
     {"S=1..190"},
     4,
     1,
     true},
    /* positions counted from the end: the mask of a smaller size is no part of a larger one */
    {"in x f32 2,S,S\ninit first i64 1 : 0\ninit ones i64 1 : 1\ninit axis i64 1 : 1\n"
     "init neg f32 1 : -10000\nnode Shape sh x -> dims\nnode Gather gl dims ones -> len1\n"
     "node Squeeze sz first -> at\nnode Squeeze so ones -> one\nnode Squeeze sq len1 -> len\n"
     "node Range rg at len one -> r\nnode Unsqueeze us r axis -> c\nnode Add ad r c -> i\n"
     "node Less le i len -> b\nnode Where wh b x neg -> u\nnode Softmax sm u -> y : axis=-1\n"
     "out y\n",
     {"S=100..163"},
     64,
     0,
     false},
    {ATTENTION, {"S=1..190"}, 4, 1, true},
    {SIZES_CACHED "node Reshape jo o1 join -> y\nout y\nout K\nout V\n", {"P=0..180"}, 4, 1, false},
    /* a sum over all rows, and an output in the other order */
    {"in x f32 N,32\nrand w 32,8\nnode MatMul m x w -> t\nnode Softmax s t -> u : axis=0\n"
     "node Transpose o u -> y : perm=1,0\nout y\n",
     {"N=3..200"},
     3,
     1,
     false},
    /* windows over a side of any length */
    {"in x f32 1,3,H,9\nrand w 4,3,3,3\nnode Conv c x w -> t : pads=1,1,1,1 strides=2,2\n"
     "node Relu r t -> y\nout y\n",
     {"H=90..260"},
     3,
     1,
     false},
    /* images of any height and width: padding, a stride, channels alone, and their means */
    {"in x f32 1,3,H,V\nrand w 8,3,3,3\nrand v 8,1,3,3\nrand u 12,8,1,1\nrand f 12,5\n"
     "node Conv c x w -> c1 : pads=1,1,1,1 strides=2,2\nnode Relu r c1 -> c2\n"
     "node Conv d c2 v -> c3 : pads=1,1,1,1 group=8\nnode Conv e c3 u -> c4\n"
     "node Relu q c4 -> z\nnode GlobalAveragePool g z -> p\nnode Flatten l p -> o\n"
     "node MatMul m o f -> y\nout y\nout z\n",
     {"H=20..200:2", "V=16..150:2"},
     1,
     1,
     false},
    /* as high as windows are, or higher */
    {"in x f32 1,3,H,9\nrand w 4,3,3,3\nrand v 4,4,3,3\nnode Conv c x w -> t : pads=1,1,1,1\n"
     "node Relu r t -> u\nnode Conv d u v -> y : pads=1,1,1,1\nout y\n",
     {"H=1..60"},
     6,
     1,
     false},
    /* means over the size, and of squares */
    {"in x f32 N,32\nrand w 32,8\ninit two f32 1 : 2\ninit e f32 1 : 0.00001\n"
     "node MatMul m x w -> t\nnode ReduceMean a t -> mean : axes=0, keepdims=1\n"
     "node Sub d t mean -> c\nnode Pow p c two -> q\n"
     "node ReduceMean b q -> var : axes=0, keepdims=1\nnode Add f var e -> g\n"
     "node Sqrt s g -> h\nnode Div i c h -> u\nnode Transpose o u -> y : perm=1,0\nout y\n",
     {"N=3..200"},
     6,
     1,
     false},
    /* the last element along the size, which lies elsewhere in a line of memory each time */
    {"in x f32 8,S\ninit b i64 1 : -1\ninit e i64 1 : 9999999\ninit a i64 1 : 1\n"
     "node Tanh t x -> u\nnode Slice c u b e a -> y\nout y\n",
     {"S=60..190"},
     2,
     1,
     false},
    /* pooled over all places */
    {"in x f32 1,3,H,9\nrand w 4,3,3,3\nrand v 4,6\nnode Conv c x w -> t : pads=1,1,1,1 "
     "strides=2,2\n"
     "node Relu r t -> u\nnode GlobalAveragePool g u -> p\nnode Flatten f p -> q\n"
     "node MatMul m q v -> y\nout y\n",
     {"H=90..260"},
     3,
     1,
     true},
    /* a product of two sizes, each halved: every second size has a program */
    {"in z f32 1,1,H,V,12\ninit s f32 1 : 3\n"
     "node MaxPool p z -> t : kernel_shape=2,2,1 strides=2,2,1\nnode Mul m t s -> y\nout y\n",
     {"H=9..31", "V=9..40"},
     4,
     4,
     false},
    /* batches of sentences: products of two sizes */
    {"in x f32 B,S,24\nrand v 24,24\nrand u 24\nnode MatMul m x v -> t\n"
     "node LayerNormalization l t u -> q : axis=-1\nnode Transpose a q -> k : perm=0,2,1\n"
     "node MatMul s q k -> p\nnode Softmax f p -> w : axis=-1\nnode MatMul o w q -> y\nout y\n",
     {"B=2..12", "S=5..60"},
     2,
     1,
     false},
    /* a layer of an encoder: what gives queries, keys and values could be one kernel or three */
    {"in x f32 B,S,32\nrand wq 32,32\nrand wk 32,32\nrand wv 32,32\nrand wo 32,32\n"
     "rand bq 32\nrand bk 32\nrand bv 32\nrand g 32\ninit h i64 4 : 0 0 2 16\n"
     "init j i64 3 : 0 0 32\n"
     "node MatMul mq x wq -> q0\nnode Add aq q0 bq -> q1\nnode Reshape rq q1 h -> q2\n"
     "node Transpose tq q2 -> q : perm=0,2,1,3\nnode MatMul mk x wk -> k0\n"
     "node Add ak k0 bk -> k1\nnode Reshape rk k1 h -> k2\n"
     "node Transpose tk k2 -> k : perm=0,2,3,1\nnode MatMul mv x wv -> v0\n"
     "node Add av v0 bv -> v1\nnode Reshape rv v1 h -> v2\n"
     "node Transpose tv v2 -> v : perm=0,2,1,3\nnode MatMul sc q k -> s\n"
     "node Softmax sm s -> p : axis=-1\nnode MatMul o p v -> o0\n"
     "node Transpose ot o0 -> o1 : perm=0,2,1,3\nnode Reshape jo o1 j -> o2\n"
     "node MatMul mo o2 wo -> o3\nnode Add ha x o3 -> t\n"
     "node LayerNormalization l t g -> y : axis=-1\nout y\n",
     {"B=1..16", "S=1..300"},
     6,
     4,
     false},
    /* the last 16 rows, fewer where there are fewer; from 32 rows on, half of them, no more than
     * these are computed; a floor */
    {"in x f32 N,8\ninit b i64 1 : -16\ninit e i64 1 : 9999999\ninit a i64 1 : 0\n"
     "node Tanh t x -> u\nnode Slice c u b e a -> y\nout y\n",
     {"N=3..61"},
     4,
     1,
     false},
    {"in x f32 1,4,L,2\nnode MaxPool p x -> q : kernel_shape=3,1 strides=3,1\nnode Exp e q -> y\n"
     "out y\n",
     {"L=7..71"},
     3,
     3,
     false},
    /* five tokens see all others; what the size has no part in */
    {"in q f32 2,5,8\nin k f32 2,S,8\nin v f32 2,S,8\nin z f32 7,9\nrand w 9,11\n"
     "node Transpose c k -> u : perm=0,2,1\n"
     "node MatMul d q u -> s\nnode Softmax e s -> p : axis=-1\nnode MatMul f p v -> t\n"
     "node Transpose g t -> y : perm=1,0,2\nnode MatMul h z w -> r\nnode Softmax i r -> o : "
     "axis=-1\nout y\nout o\n",
     {"S=1..99"},
     4,
     1,
     true},
    /* tokens by number, with positions */
    {"in x i64 S\nrand w 20,24\nrand p 300,24\nrand g 24\ninit zero i64 1 : 0\n"
     "node Shape a x -> n\nnode Slice b p zero n -> q\nnode Gather c w x -> t\n"
     "node Add d t q -> u\nnode LayerNormalization l u g -> y : axis=-1\nout y\nout x\n",
     {"S=1..250"},
     4,
     1,
     false},
    /* how many there are, as an integer that others are compared with */
    {"in x f32 N,5\ninit z i64 1 : 0\nnode Shape a x -> n\nnode Gather g n z -> r\n"
     "node Cast c x -> i : to=7\nnode Sub s i r -> t\nnode Cast d t -> y : to=1\nout y\n",
     {"N=2..250"},
     8,
     1,
     false},
    /* an operator of libtarn-rt, which is told its dims */
    {"in x f32 S,9\ninit k i64 1 : 3\nnode TopK t x k -> v i : axis=1\nnode Exp e v -> y\nout y\n",
     {"S=1..80"},
     4,
     1,
     false},
    /* elements as the square of the size */
    {"in x f32 S,S\ninit f i64 1 : -1\nnode Exp e x -> t\nnode Reshape r t f -> y\nout y\n",
     {"S=1..70"},
     4,
     1,
     false},
    /* half precision; means over the size in double */
    {"in x f16 N,32\nin z f64 N,5\nrand w 32,8\nnode Cast k x -> u : to=1\n"
     "node MatMul m u w -> t\nnode Softmax s t -> p : axis=0\n"
     "node Transpose c p -> y : perm=1,0\nnode ReduceMean r z -> q : axes=0, keepdims=0\n"
     "out y\nout q\n",
     {"N=1..90"},
     12,
     1,
     false},
    /* rows of any number, of any length */
    {"in x f32 N,S\nin z f32 3,S\nnode Softmax a x -> y : axis=1\nnode Exp e z -> u\nout y\n"
     "out u\n",
     {"S=4..99", "N=1..13"},
     4,
     1,
     false},
    /* a step, and sizes that matter */
    {"in x f32 N,24\nrand w 24,8\nnode MatMul m x w -> y\nout y\n",
     {"N=32..640:32@64,512"},
     3,
     2,
     false},
    /* with other sizes beside it */
    {"in x f32 B,N,8\nrand w 8,8\nnode MatMul m x w -> t\nnode Softmax s t -> y : axis=1\nout y\n",
     {"B=1,3", "N=40..180"},
     4,
     2,
     false},
};

/* ---- the same but for numbers ---- */
static tarn_ksig as_signature(const tarn_kprog *p, const tarn_kernel *k) {
  tarn_ksig s = {.nest = k->nest, .nin = k->nin, .nout = k->nout};
  for (uint32_t i = 0; i < k->nin; i++) {
    s.in[i] = k->in_layout[i];
    s.in_type[i] = p->buf[k->in[i]].dtype;
    s.in_const[i] = p->buf[k->in[i]].kind == TARN_BUF_CONST;
  }
  for (uint32_t i = 0; i < k->nout; i++) {
    s.out[i] = k->out_layout[i];
    s.out_type[i] = p->buf[k->out[i]].dtype;
  }
  return s;
}
static void same_kernel(const tarn_lower_family *f, uint32_t number) {
  const tarn_kprog *first = f->sample[0];
  tarn_lang *L = first->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_buf want = {.cx = cx};
  tarn_numbers all[TARN_FAMILY_SAMPLES] = {0};
  const tarn_kernel *a = &first->ker[number];
  for (uint32_t i = 0; i < f->at.n; i++) {
    const tarn_kprog *p = f->sample[i];
    const tarn_kernel *b = &p->ker[number];
    tarn_buf form = {.cx = cx};
    ck_assert_uint_eq(a->kind, b->kind);
    ck_assert(a->nin == b->nin && !memcmp(a->in, b->in, a->nin * sizeof *a->in));
    ck_assert(a->nout == b->nout && !memcmp(a->out, b->out, a->nout * sizeof *a->out));
    if (a->kind != TARN_K_NEST) continue;
    tarn_ksig sig = as_signature(p, b);
    tarn_ksig_form(L, &sig, &form, &all[i]);
    if (!i) want = form;
    ck_assert(form.n == want.n && !memcmp(form.p, want.p, want.n));
    ck_assert_str_eq(tarn_schedule_text(cx, a->sched), tarn_schedule_text(cx, b->sched));
  }
  for (uint32_t x = 0; x < all[0].n; x++) {
    int64_t v[TARN_FAMILY_SAMPLES];
    tarn_poly poly;
    for (uint32_t i = 0; i < f->at.n; i++) v[i] = all[i].p[x];
    ck_assert(tarn_poly_through(&f->at, v, &poly));
  }
}
/* Bytes that all have, or the begin of the largest, or boxes of the same. */
static void same_constant(const tarn_layout *a, const tarn_layout *b) {
  ck_assert(tarn_layout_gaps(a) == tarn_layout_gaps(b));
  ck_assert_mem_eq(a->stride, b->stride, a->n * sizeof *a->stride);
}
static void same_buffer(const tarn_lower_family *f, uint32_t number) {
  const tarn_buffer *a = &f->sample[0]->buf[number];
  for (uint32_t i = 1; i < f->at.n; i++) {
    const tarn_buffer *b = &f->sample[i]->buf[number];
    ck_assert(a->kind == b->kind && a->dtype == b->dtype && a->parent == b->parent);
    ck_assert_uint_eq(a->layout.n, b->layout.n);
    if (a->kind == TARN_BUF_INPUT || a->kind == TARN_BUF_OUTPUT) ck_assert_str_eq(a->name, b->name);
    if (a->kind == TARN_BUF_CONST) same_constant(&a->layout, &b->layout);
  }
}
static void alike(const tarn_lower_family *f) {
  const tarn_kprog *first = f->sample[0];
  size_t bytes = f->at.sizes * sizeof(int64_t);
  ck_assert_mem_eq(f->at.at[f->at.n - 1], f->at.hi, bytes);
  bool least = false;
  for (uint32_t i = 0; i < f->at.n; i++) {
    least |= !memcmp(f->at.at[i], f->at.lo, bytes);
    ck_assert(first->nker == f->sample[i]->nker && first->nbuf == f->sample[i]->nbuf);
  }
  ck_assert(least);
  for (uint32_t k = 0; k < first->nker; k++) same_kernel(f, k);
  for (uint32_t b = 0; b < first->nbuf; b++) same_buffer(f, b);
}

/* ---- and right ---- */
/* The sample's program by itself, compiled; the interpreter says what is right. */
static void try_sample(tarn_compile_options o, const tarn_lower_family *f, uint32_t number,
                       const tarn_compiled *c) {
  sizes_trial x = sizes_at(c, o, f->at.at[number], 11);
  pipeline r = {.program = x.p, .kprog = (tarn_kprog *)f->sample[number]};
  pipeline_run(pipeline_compile(&r, pipeline_folder(tarn_lang_ctx(c->L))), x.p, x.in, x.out);
  sizes_right(&x);
}
#define SOME 10 /* sizes of each program */
static void run_case(tarn_ctx *cx, void *arg) {
  const ranged *s = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = sizes_options(L, s->model, s->shapes, pipeline_folder(cx));
  const tarn_compiled *c = tarn_compile(L, &o);
  tarn_loaded *m = tarn_load(cx, o.dir);
  uint32_t families = 0;
  for (uint32_t i = 0; i < c->sizes->nprogram; i++) {
    const tarn_lower_family *f = c->sizes->program[i].family;
    sizes_try_program(m, o, c, i, SOME);
    if (!f) continue;
    alike(f);
    for (uint32_t k = 0; k < f->at.n && !families; k++) try_sample(o, f, k, c);
    families++;
  }
  bool expected = s->families ? families >= s->families : !families;
  ck_assert_msg(c->sizes->nprogram <= s->programs && expected, "%u programs, %u families",
                c->sizes->nprogram, families);
}
static bool all;
START_TEST(samples_agree) {
  if (all || !cases[_i].longer) in_context(run_case, (void *)(uintptr_t)&cases[_i]);
}
END_TEST

/* ---- memory ---- */
#define BYTES 6000000 /* that further programs may add to the most that is held */
typedef struct held {
  const char *shapes[3];
  uint32_t families;
  size_t peak;
} held;
static void hold(tarn_ctx *cx, void *arg) {
  held *h = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = sizes_options(L,
                                         "in x f32 B,N,8\nrand w 8,8\nnode MatMul m x w -> t\n"
                                         "node Softmax s t -> y : axis=1\nout y\n",
                                         h->shapes, pipeline_folder(cx));
  const tarn_compiled *c = tarn_compile(L, &o);
  for (uint32_t i = 0; i < c->sizes->nprogram; i++)
    h->families += c->sizes->program[i].family != NULL;
  h->peak = tarn_ctx_peak(cx);
}
/* What was looked at for one goes before the next one is compiled. */
START_TEST(a_family_adds_what_stays_of_it) {
  held one = {.shapes = {"B=1", "N=48..191"}}, two = {.shapes = {"B=1,3,5,7", "N=48..191"}};
  in_context(hold, &one);
  in_context(hold, &two);
  ck_assert_uint_gt(one.families, 0);
  ck_assert_uint_gt(two.families, one.families);
  ck_assert_msg(two.peak < one.peak + BYTES, "%zu and %zu bytes", one.peak, two.peak);
}
END_TEST

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "--all");
  TCase *t = tcase_create("families");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, samples_agree, 0, sizeof cases / sizeof *cases);
  tcase_add_test(t, a_family_adds_what_stays_of_it);
  return run_checks("families", t);
}
