/* extract/: from a saturated network to its program. Every chosen program computes the network,
 * shared kernels run once, concatenations are written in place, and the methods' prices are ordered
 * as they must be. */

#include "extract/extract.h"
#include "hw/hw.h"
#include "model/model.h"
#include "rules/rules.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include "tests/context.h"

typedef struct net {
  const char *name, *text;
} net;
static const net nets[] = {
    {"two convolutions", "in x f32 1,3,8,8\nrand w 8,3,3,3\nrand v 16,8,3,3\nnode Conv c x w -> t "
                         ": pads=1,1,1,1\nnode Relu r t -> u\n"
                         "node Conv d u v -> y : pads=1,1,1,1 strides=2,2\nout y\n"},
    {"the result under two names",
     "in x f32 4,6\nrand w 6,5\nnode MatMul m x w -> y\nnode Identity i y -> z\nout y\nout z\n"},
    {"an input handed through",
     "in x f32 4,6\nin z f32 3\nnode Identity i x -> y\nnode Relu r z -> u\nout y\nout u\n"},
    {"a constant result",
     "in x f32 2\nrand w 3,4\nnode Relu r w -> y\nnode Neg n x -> z\nout y\nout z\n"},
    {"an output reshaped", "in x f32 1,3,4,4\nrand w 10,3,1,1\ninit s i64 2 : 1 -1\nnode Conv c x "
                           "w -> t\nnode GlobalAveragePool g t -> u\n"
                           "node Reshape r u s -> y\nout y\n"},
    {"an output transposed",
     "in x f32 5,7\nrand w 7,4\nnode MatMul m x w -> t\nnode Transpose p t -> y\nout y\nout t\n"},
    {"branches joined", "in x f32 1,4,6,6\nrand a 8,4,1,1\nrand b 8,4,3,3\nrand c 6,16,1,1\nnode "
                        "Conv p x a -> s\nnode Conv q x b -> t : "
                        "pads=1,1,1,1\n"
                        "node Relu r s -> s1\nnode Relu u t -> t1\nnode Concat k s1 t1 -> v : "
                        "axis=1\nnode Conv o v c -> y\nout y\n"},
    {"a part joined twice",
     "in x f32 2,3\nnode Exp e x -> t\nnode Concat k t t -> y : axis=1\nout y\n"},
    {"an input joined",
     "in x f32 2,3\nnode Exp e x -> t\nnode Concat k x t x -> y : axis=0\nout y\n"},
    {"softmax of a product",
     "in x f32 6,8\nrand w 8,10\nnode MatMul m x w -> t\nnode Softmax s t -> y : axis=-1\nout y\n"},
    {"divided and multiplied by what a row has one of",
     "in x f32 6,8\ninit a i64 1 : 1\ninit h f32 1 : 3\nnode ReduceMax m x a -> r\nnode Abs a r -> "
     "b\nnode Add p b h -> s\n"
     "node Div d x s -> q\nnode Mul e x s -> v\nnode Add f q v -> y\nout y\n"},
    {"gathered", "in x i64 4\nrand w 9,5\nnode Gather g w x -> t\nnode Relu r t -> y\nout y\n"},
    {"split and summed",
     "in x f32 4,6\nnode Split s x -> a b : axis=1\nnode Mul m a b -> y\nout y\n"},
    {"transposed convolution", "in x f32 1,6,5,5\nrand w 6,4,4,4\nrand b 4\nnode ConvTranspose c x "
                               "w b -> y : strides=2,2 pads=1,1,1,1\nout y\n"},
    {"a stride that does not divide", "in x f32 1,3,4,5\nrand w 3,2,3,3\nnode ConvTranspose c x w "
                                      "-> y : strides=3,2 pads=1,0,0,1\nout y\n"},
    {"sums backwards, of two axes",
     "in x f32 2,3,4\ninit a i64 1 : 1\ninit b i64 1 : 2\nnode CumSum c x a -> t : exclusive=1 "
     "reverse=1\n"
     "node CumSum d t b -> y : exclusive=1 reverse=1\nout t\nout y\n"},
    {"long sums of all up to a place, from both ends, with and without it",
     "in x f32 2,300\nin v f32 331,2\ninit a i64 - : 1\ninit b i64 - : 0\n"
     "node CumSum c x a -> p : exclusive=1\nnode CumSum d x a -> q : reverse=1\n"
     "node CumSum e v b -> r : exclusive=1 reverse=1\nnode Exp f v -> w\n"
     "node CumSum g w b -> s\nout p\nout q\nout r\nout s\n"},
    {"padded twice, with different values",
     "in x f32 1,3,8\ninit p i64 6 : 0 0 1 0 0 2\ninit k f32 - : 0.75\nnode Pad a x p k -> t\n"
     "node Pad b t p -> y\nout y\n"},
    {"most elements of rows", "in x f32 4,9\nnode TopK t x k -> v i : axis=1\ninit k i64 1 : "
                              "3\nnode Relu r v -> y\nout y\nout i\n"},
    {"an output backwards, in another shape, transposed",
     "in x f32 2,31,4,1\ninit i i64 1 : 1\ninit s i64 5 : 1 31 1 2 -1\n"
     "node CumSum c x i -> t : exclusive=0 reverse=1\nnode Reshape r t s -> u\n"
     "node Transpose p u -> y : perm=3,0,4,1,2\nout y\n"},
};

static pipeline solve(tarn_ctx *cx, const char *text, const char *hw, tarn_kgraph_options ko) {
  tarn_lang *L = tarn_lang_new(cx);
  pipeline *v = pipeline_extract(kit_model(L, text), tarn_hw_load(L, hw), ko);
  for (uint32_t i = 0; i < tarn_sat_roots(v->sat); i++)
    ck_assert_uint_ne(tarn_extract_pick(v->picks, tarn_sat_root(v->sat, i)), TARN_NONE);
  return *v;
}
/* The program's values against the network's. */
static void same_values(tarn_ctx *cx, const char *name, const pipeline *v) {
  tarn_lang *L = v->program->L;
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, v->program->nin + 1);
  tarn_tensor **got = TARN_ARRAY(cx, tarn_tensor *, v->program->nout);
  uint64_t seed = 5;
  for (uint32_t i = 0; i < v->program->nin; i++)
    in[i] = (tarn_binding){v->program->in[i].name,
                           kit_values(cx, tarn_type_get(L, v->program->in[i].type), &seed)};
  tarn_kprog_eval(v->kprog, in, v->program->nin, TARN_STRICT, tarn_opaque_eval, got);
  pipeline_want want = pipeline_expect(v->program, in, tarn_sat_result(v->sat)->used,
                                       tarn_sat_result(v->sat)->bound);
  const char *wrong = pipeline_wrong(v->program, &want, got);
  ck_assert_msg(!wrong, "%s: %s", name, wrong);
}

typedef struct way {
  const char *hw;
  tarn_kgraph_options o;
} way;
static const way ways[] = {
    {"x86-64-v3", {.method = TARN_SEL_EXACT}},
    {"x86-64-v3", {.method = TARN_SEL_EXACT, .strict = true}},
    {"aarch64", {.method = TARN_SEL_TREE, .max_orders = 1}},
    {"riscv64", {.method = TARN_SEL_GREEDY, .max_orders = 8, .max_views = 1}},
    {"x86-64-v3", {.method = TARN_SEL_WORST, .threads = 2}},
    {"x86-64-v3", {.method = TARN_SEL_RANDOM}}};
#define WAYS (int)(sizeof ways / sizeof *ways)
typedef struct pair {
  const net *n;
  const way *w;
} pair;

static void compare(tarn_ctx *cx, void *arg) {
  const pair *p = arg;
  pipeline v = solve(cx, p->n->text, p->w->hw, p->w->o);
  same_values(cx, p->n->name, &v);
}
static void run(tarn_fn *body, void *arg, const char *name) { in_context_of(name, body, arg); }
START_TEST(values) {
  pair p = {&nets[_i / WAYS], &ways[_i % WAYS]};
  run(compare, &p, p.n->name);
}
END_TEST

/* ---- sharing ---- */
/* A convolution read as it is and through an activation: fused into that one consumer alone, it
 * would be computed twice. */
static const char raw_and_activated[] =
    "in x f32 1,16,12,12\nrand w 16,16,3,3\nrand a 16,16,1,1\nrand b 16,16,1,1\nnode Conv c x w -> "
    "t : pads=1,1,1,1\n"
    "node Relu r t -> u\nnode Conv d u a -> p\nnode Conv e t b -> q\nnode Add s p q -> y\nout y\n";
static double flops(const tarn_kprog *p) {
  double sum = 0;
  for (uint32_t i = 0; i < p->nker; i++) sum += p->ker[i].flops;
  return sum;
}
static void computed_once(tarn_ctx *cx, void *arg) {
  const tarn_sel_method *m = arg;
  pipeline v = solve(cx, raw_and_activated, "x86-64-v3", (tarn_kgraph_options){.method = *m});
  same_values(cx, "raw and activated", &v);
  double conv = 2.0 * 144 * 16 * 144, small = 2.0 * 144 * 16 * 16;
  ck_assert_double_lt(flops(v.kprog), conv + 2 * small + 8 * 144 * 16);
  ck_assert_double_ge(v.report.tree_price, v.report.price * (1 - 1e-9));
  /* blind to sharing both consumers look cheaper with the convolution in them */
  pipeline blind =
      solve(cx, raw_and_activated, "x86-64-v3", (tarn_kgraph_options){.method = TARN_SEL_TREE});
  ck_assert_double_ge(flops(blind.kprog), 2 * conv);
}
START_TEST(shared) {
  tarn_sel_method m = _i ? TARN_SEL_GREEDY : TARN_SEL_EXACT;
  run(computed_once, &m, "shared");
}
END_TEST

static bool warned_of_gap(const tarn_ctx *cx) {
  for (size_t i = 0; i < tarn_warning_count(cx); i++)
    if (strstr(tarn_warning(cx, i), "proven")) return true;
  return false;
}
static void ordered(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  pipeline exact = solve(cx, n->text, "x86-64-v3", (tarn_kgraph_options){.method = TARN_SEL_EXACT});
  pipeline greedy =
      solve(cx, n->text, "x86-64-v3", (tarn_kgraph_options){.method = TARN_SEL_GREEDY});
  ck_assert_msg(!warned_of_gap(cx), "%s: chosen best, and warned of", n->name);
  pipeline worst = solve(cx, n->text, "x86-64-v3", (tarn_kgraph_options){.method = TARN_SEL_WORST});
  double slack = 1e-9 * exact.report.price;
  ck_assert(exact.report.optimal);
  ck_assert_double_le(exact.report.price_bound, exact.report.price + slack);
  ck_assert_double_ge(exact.report.price_bound, exact.report.price - slack);
  ck_assert_double_le(exact.report.price, greedy.report.price + slack);
  ck_assert_double_le(greedy.report.price, worst.report.price + slack);
  ck_assert_double_le(exact.report.price, exact.report.tree_price + slack);
  double sum = 0; /* the price of the program is that of its kernels */
  for (uint32_t i = 0; i < exact.kprog->nker; i++) sum += exact.kprog->ker[i].price;
  ck_assert_double_le(fabs(sum - exact.report.price), slack + 1e-12);
  ck_assert_uint_eq(exact.report.kernels + exact.report.copies, exact.kprog->nker);
}
static void told(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_kgraph_options o = {.method = TARN_SEL_EXACT};
  solve(cx, raw_and_activated, "x86-64-v3", o);
  ck_assert(!warned_of_gap(cx));
  o.seconds = 1e-9;
  solve(cx, raw_and_activated, "x86-64-v3", o);
  ck_assert(warned_of_gap(cx));
}
START_TEST(wide_gap) { run(told, NULL, "wide gap"); }
END_TEST
START_TEST(prices) { run(ordered, (void *)(uintptr_t)&nets[_i], nets[_i].name); }
END_TEST

/* ---- concatenation ---- */
static void in_place(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  pipeline v = solve(cx, n->text, "x86-64-v3", (tarn_kgraph_options){.method = TARN_SEL_EXACT});
  uint32_t parts = 0;
  for (uint32_t b = 0; b < v.kprog->nbuf; b++) parts += v.kprog->buf[b].parent != TARN_NONE;
  ck_assert_uint_eq(v.report.copies, 0);
  ck_assert_uint_ge(parts, 2);
}
/* A part of a concatenation that is cheapest as a view of something larger (tiles of 4 over 23
 * rows) is computed in its place, whole tiles, where rows lie as far apart as they need. */
static const char view_joined[] = "in x f32 1,8,23,23\nrand s 16,8,1,1\nrand a 48,16,1,1\nrand b "
                                  "48,16,3,3\nrand c 4,96,1,1\nnode Conv m x s -> n\n"
                                  "node Conv p n a -> t\nnode Conv q n b -> z : pads=1,1,1,1\nnode "
                                  "Relu r z -> u\nnode Concat k t u -> v : axis=1\nnode Conv "
                                  "o v c -> y\nout y\n";
/* Windows of 3 by 3 read directly are dear: Winograd's way is taken wherever it can be. */
static double dear_windows(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                           const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)user, (void)hw, (void)s, (void)threads;
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  int64_t terms = 1;
  for (uint32_t d = 0; d < n->stage[0].nred; d++) terms *= n->stage[0].red[d];
  return analytic->seconds * (n->nstage == 1 && terms == 9 * 16 ? 100 : 1);
}
/* Its copies and how many parts hold more than what the whole reads of them. */
static void joined(tarn_ctx *cx, const char *text, uint32_t *copies, uint32_t *larger) {
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_price dear = {.name = "dear", .seconds = dear_windows};
  tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 1, .price = &dear};
  pipeline *v =
      pipeline_extract_as(kit_model(L, text), tarn_hw_load(L, "x86-64-v3"), o, TARN_RULE_APPROX);
  uint32_t nests = 0;
  *copies = *larger = 0;
  for (uint32_t k = 0; k < v->kprog->nker; k++) {
    *copies += v->kprog->ker[k].copy;
    nests += tarn_nest_get(L, v->kprog->ker[k].nest)->nstage > 1;
  }
  for (uint32_t b = 0; b < v->kprog->nbuf; b++) {
    const tarn_buffer *p = &v->kprog->buf[b];
    if (p->parent == TARN_NONE) continue;
    const tarn_layout *whole = &v->kprog->buf[p->parent].layout;
    *larger +=
        tarn_layout_elems(&p->layout) + p->layout.offset > tarn_layout_elems(whole) + whole->offset;
  }
  ck_assert_uint_ge(nests, 1);
  same_values(cx, "a view joined", v);
}
static void view_in_place(tarn_ctx *cx, void *arg) {
  uint32_t copies, larger;
  (void)arg;
  joined(cx, view_joined, &copies, &larger);
  ck_assert_uint_eq(copies, 0);
  ck_assert_uint_eq(larger, 1);
}
START_TEST(view_joined_in_place) { run(view_in_place, NULL, "a view joined"); }
END_TEST
/* Not where the whole is the output, beyond which nothing may be written, nor where what is left
 * out would fall on the next part. */
static const char output_joined[] = "in x f32 1,16,23,23\nrand a 48,16,1,1\nrand b 48,16,3,3\nnode "
                                    "Conv p x a -> t\nnode Conv q x b -> z : pads=1,1,1,1\nnode "
                                    "Relu r z -> u\nnode Concat k t u -> y : axis=1\nout y\n";
static const char rows_joined[] = "in x f32 1,8,23,23\nrand s 16,8,1,1\nrand a 48,16,1,1\nrand b "
                                  "48,16,3,3\nrand c 4,48,1,1\nnode Conv m x s -> n\n"
                                  "node Conv p n a -> t\nnode Conv q n b -> z : pads=1,1,1,1\nnode "
                                  "Relu r z -> u\nnode Concat k u t -> v : axis=2\nnode Conv "
                                  "o v c -> y\nout y\n";
static void view_copied(tarn_ctx *cx, void *arg) {
  uint32_t copies, larger;
  joined(cx, arg, &copies, &larger);
  ck_assert_uint_ge(copies, 1);
  ck_assert_uint_eq(larger, 0);
}
START_TEST(view_joined_by_copy) {
  run(view_copied, (void *)(uintptr_t)(_i ? rows_joined : output_joined), "a view copied");
}
END_TEST

START_TEST(joined_in_place) { run(in_place, (void *)(uintptr_t)&nets[6], nets[6].name); }
END_TEST

/* ---- the price in use is the one that was given ---- */
static double dear_sums(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                        const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)hw, (void)s, (void)threads, (void)L, (void)k;
  ++*(uint32_t *)user;
  return 1 + analytic->seconds;
}
static void other_price(tarn_ctx *cx, void *arg) {
  (void)arg;
  uint32_t asked = 0;
  const tarn_price p = {.name = "dear", .user = &asked, .seconds = dear_sums};
  pipeline v = solve(cx, nets[0].text, "x86-64-v3",
                     (tarn_kgraph_options){.method = TARN_SEL_EXACT, .price = &p});
  ck_assert_uint_gt(asked, 0);
  ck_assert_str_eq(v.report.price_name, "dear");
  ck_assert_double_ge(v.report.price,
                      v.kprog->nker); /* a second for each kernel: as few as can be */
  ck_assert_uint_eq(v.kprog->nker, 2);
  same_values(cx, nets[0].name, &v);
}
START_TEST(given_price) { run(other_price, NULL, "price"); }
END_TEST

/* A transposed operand whose rows would lie a multiple of one way's sets apart lies a line further
 * apart. */
static void rows_apart(tarn_ctx *cx, void *arg) {
  static const char text[] = "in a f32 256,64\nin b f32 512,64\nnode Transpose t b -> u : "
                             "perm=1,0\nnode MatMul m a u -> y\nout y\n";
  pipeline v =
      solve(cx, text, "x86-64-v3", (tarn_kgraph_options){.method = TARN_SEL_EXACT, .threads = 1});
  int64_t step = 0;
  (void)arg;
  for (uint32_t i = 0; i < v.kprog->nbuf; i++) {
    const tarn_layout *l = &v.kprog->buf[i].layout;
    if (v.kprog->buf[i].kind == TARN_BUF_TEMP)
      step = l->stride[0] == 1 ? l->stride[1] : l->stride[0];
  }
  ck_assert_int_eq(step, 512 + 16);
  same_values(cx, "rows apart", &v);
}
START_TEST(apart) { run(rows_apart, NULL, "rows apart"); }
END_TEST

/* ---- memory ---- */
/* Layers that each read all results before them. */
static const char *dense_layers(tarn_ctx *cx, uint32_t n) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "in x0 f32 1,16,12,12\n");
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(&b, "rand w%u 8,%u,3,3\n", i, 16 + 8 * i);
  for (uint32_t i = 0; i < n; i++)
    tarn_buf_fmt(&b,
                 "node Conv c%u x%u w%u -> t%u : pads=1,1,1,1\nnode Relu r%u t%u -> u%u\n"
                 "node Concat k%u x%u u%u -> x%u : axis=1\n",
                 i, i, i, i, i, i, i, i, i, i, i + 1);
  tarn_buf_fmt(&b, "out x%u\n", n);
  return b.p;
}
typedef struct room {
  uint32_t layers;
  double bytes, candidates;
} room;
static void room_of(tarn_ctx *cx, void *arg) {
  room *r = arg;
  pipeline v = solve(cx, dense_layers(cx, r->layers), "x86-64-v3",
                     (tarn_kgraph_options){.method = TARN_SEL_GREEDY, .threads = 1});
  r->candidates = v.report.candidates;
  r->bytes = (double)tarn_ctx_peak(cx);
}
#define BYTES 11000 /* of a candidate, with all that grows beside it: weights, terms, e-nodes */
START_TEST(candidates_are_small) {
  room few = {.layers = 16}, many = {.layers = 32};
  in_context(room_of, &few);
  in_context(room_of, &many);
  double each = (many.bytes - few.bytes) / (many.candidates - few.candidates);
  ck_assert_msg(each < BYTES, "%g bytes for each", each);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("kgraph");
  int n = (int)(sizeof nets / sizeof *nets);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, values, 0, n * WAYS);
  tcase_add_loop_test(t, shared, 0, 2);
  tcase_add_test(t, wide_gap);
  tcase_add_loop_test(t, prices, 0, n);
  tcase_add_test(t, joined_in_place);
  tcase_add_test(t, apart);
  tcase_add_test(t, view_joined_in_place);
  tcase_add_loop_test(t, view_joined_by_copy, 0, 2);
  tcase_add_test(t, given_price);
  tcase_add_test(t, candidates_are_small);
  return run_checks("kgraph", t);
}
