/* Kernels whose stages run over blocks of their shared loops: depthwise and pointwise, attention,
 * two products in one. The compiled program must compute the network, and its proof must replay. */

#include "kernel/maps.h"
#include "price/gpu.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include "tests/context.h"

typedef struct net {
  const char *name, *text;
  int64_t points; /* of the loops that the stages would share without blocks */
} net;
static const net nets[] = {
    {"depthwise and pointwise",
     "in x f32 1,8,10,12\nrand w 8,1,3,3\nrand v 20,8,1,1\nrand b 8\nnode Conv d x w b -> t : "
     "pads=1,1,1,1 group=8\n"
     "node Relu r t -> u\nnode Conv p u v -> y\nout y\n",
     120},
    {"with a stride, and a sum behind",
     "in x f32 1,12,9,14\nin z f32 1,7,5,7\nrand w 12,1,3,3\nrand v 7,12,1,1\n"
     "node Conv d x w -> t : pads=1,1,1,1 strides=2,2 group=12\nnode Relu r t -> u\nnode Conv p u "
     "v -> s\n"
     "node Add a s z -> y\nout y\n",
     35},
    {"attention",
     "in q f32 1,2,12,8\nin k f32 1,2,12,8\nin v f32 1,2,12,8\ninit h f32 1 : 0.25\n"
     "node Transpose t k -> kt : perm=0,1,3,2\nnode MatMul m q kt -> s\nnode Mul c s h -> u\n"
     "node Softmax f u -> p : axis=-1\nnode MatMul o p v -> y\nout y\n",
     24},
    {"softmax of short rows", "in x f32 48,320\nnode Softmax f x -> y : axis=-1\nout y\n", 48},
    {"two products",
     "in x f32 24,16\nrand w 16,40\nrand v 40,20\nrand b 40\nnode MatMul m x w -> t\nnode Add a t "
     "b -> s\n"
     "node Tanh g s -> u\nnode MatMul n u v -> y\nout y\n",
     24},
};

static void run(tarn_fn *fn, const net *n) { in_context_of(n->name, fn, n); }

/* Kernels of several stages cost next to nothing, the dearer the more points their stages share. */
static double cheap_stages(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                           const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)user, (void)hw, (void)s, (void)threads;
  return analytic->seconds * (tarn_nest_get(L, k->nest)->nstage > 1 ? 1e-3 : 1);
}
/* Points of the shared loops of the kernel with most stages; 0: none has several. */
static int64_t shared_points(const tarn_kprog *p, uint32_t *stages) {
  int64_t points = 0;
  *stages = 1;
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_nest *n = tarn_nest_get(p->L, p->ker[i].nest);
    if (p->ker[i].kind != TARN_K_NEST || n->nstage <= *stages) continue;
    *stages = n->nstage, points = 1;
    for (uint32_t d = 0; d < n->depth; d++) points *= n->shared[d];
  }
  return points;
}
/* Is there a stage that only copies what a later one reads? */
static bool gathers(tarn_lang *L, const tarn_nest *n) {
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_func *f = tarn_fn_get(L, n->stage[i].fn);
    if (!n->stage[i].out && f->red == TARN_NONE && f->nops == 1 && f->body == tarn_fx_hole(L, 0) &&
        !n->stage[i].read[0].stage)
      return true;
  }
  return false;
}
/* The same, and an operand gathered first for less still. */
static double cheap_gathering(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  double t = cheap_stages(user, L, hw, k, s, threads, analytic);
  return gathers(L, tarn_nest_get(L, k->nest)) ? 1e-3 * t : t;
}
static void compiled_as(tarn_ctx *cx, const net *n, const tarn_price *cheap, bool gathering) {
  tarn_buf text = pipeline_host(cx);
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, n->text);
  tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 2, .price = cheap};
  pipeline *r = pipeline_extract(p, tarn_hw_parse(L, tarn_sx_read(cx, text.p, text.n, "host")), o);
  uint32_t stages;
  int64_t points = shared_points(r->kprog, &stages);
  ck_assert_msg(stages > 1 && points > 0 && points < n->points && n->points % points == 0,
                "%s: %u stages over %ld points", n->name, stages, (long)points);
  bool any = false;
  for (uint32_t i = 0; i < r->kprog->nker; i++)
    any |=
        r->kprog->ker[i].kind == TARN_K_NEST && gathers(L, tarn_nest_get(L, r->kprog->ker[i].nest));
  ck_assert_msg(any || !gathering, "%s: nothing is gathered", n->name);
  uint64_t seed = 3;
  tarn_binding in[3];
  for (uint32_t i = 0; i < p->nin; i++)
    in[i] = (tarn_binding){p->in[i].name, kit_values(cx, tarn_type_get(L, p->in[i].type), &seed)};
  pipeline_try(r, in, n->name);
}
static void compiled(tarn_ctx *cx, void *arg) {
  const tarn_price cheap = {.name = "cheap", .seconds = cheap_stages};
  compiled_as(cx, arg, &cheap, false);
}
START_TEST(test_compiled) { run(compiled, &nets[_i]); }
END_TEST

/* Queries and keys as they stand, so that lanes along the queries find them in steps. */
static const net stepped[] = {
    {"attention",
     "in q f32 1,2,12,8\nin k f32 1,2,16,8\nin v f32 1,2,16,8\nnode Transpose t k -> kt : "
     "perm=0,1,3,2\n"
     "node MatMul m q kt -> s\nnode Softmax f s -> p : axis=-1\nnode MatMul o p v -> y\nout y\n",
     24},
    {"attention, all of it from one product",
     "in x f32 1,12,10\nrand w 10,48\nnode MatMul n x w -> t\nnode Split z t -> a b c : "
     "axis=2\ninit h i64 4 : 1 12 2 8\n"
     "node Reshape g a h -> q\nnode Reshape i b h -> k\nnode Reshape j c h -> v\nnode Transpose d "
     "q -> qt : perm=0,2,1,3\n"
     "node Transpose e k -> kt : perm=0,2,3,1\nnode Transpose l v -> vt : perm=0,2,1,3\nnode "
     "MatMul m qt kt -> s\n"
     "node Softmax f s -> p : axis=-1\nnode MatMul o p vt -> y\nout y\n",
     24},
};
static void gathered(tarn_ctx *cx, void *arg) {
  const tarn_price cheap = {.name = "cheap", .seconds = cheap_gathering};
  compiled_as(cx, arg, &cheap, true);
}
START_TEST(test_gathered) { run(gathered, &stepped[_i]); }
END_TEST

/* Products whose columns are no constant and copied block by block: ragged rows, several matrices,
 * what is done with the result, a result in another order than the rows, blocks of one panel,
 * columns of two dims. */
static const net packed[] = {
    {"a product", "in a f32 10,12\nin b f32 12,1024\nnode MatMul m a b -> y\nout y\n", 1024},
    {"of three matrices, and what is done with it",
     "in a f32 3,13,24\nin b f32 3,24,768\nin c f32 768\nnode MatMul m a b -> t\nnode Add s t c -> "
     "u\nnode Relu r u -> y\nout "
     "y\n",
     3 * 768},
    {"one matrix for all", "in a f32 3,7,24\nin b f32 24,960\nnode MatMul m a b -> y\nout y\n",
     960},
    {"a matrix that stands the other way",
     "in a f32 24,9\nin b f32 24,640\nnode Gemm m a b -> y : transA=1\nout y\n", 640},
    {"long columns", "in a f32 5,2600\nin b f32 2600,576\nnode MatMul m a b -> y\nout y\n", 576},
    {"half a page from row to row",
     "in a f32 10,12\nin b f32 12,512\nnode MatMul m a b -> y\nout y\n", 512},
    {"images by channels, whose rows are too short by themselves",
     "in x f32 2,12,24,48\nrand w 7,12,1,1\nrand b 7\nnode Conv m x w b -> t\nnode Relu r t -> "
     "y\nout y\n",
     2 * 24 * 48},
};
START_TEST(test_packed) { run(gathered, &packed[_i]); }
END_TEST

/* Where it pays by the analytic price: what lies between is larger than the caches keep. */
static const net large[] = {
    {"attention over 512",
     "in q f32 1,8,512,64\nin k f32 1,8,512,64\nin v f32 1,8,512,64\nnode Transpose t k -> kt : "
     "perm=0,1,3,2\n"
     "node MatMul m q kt -> s\nnode Softmax f s -> p : axis=-1\nnode MatMul o p v -> y\nout y\n",
     8 * 512},
    {"a product of two variables",
     "in a f32 1024,1024\nin b f32 1024,1024\nnode MatMul m a b -> y\nout y\n", 1024},
    {"a 1x1 convolution of images by channels",
     "in x f32 1,64,16,56,56\nrand w 64,64,1,1,1\nnode Conv m x w -> y\nout y\n", 16 * 56 * 56},
};
static void chosen(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 1};
  pipeline *r = pipeline_extract(kit_model(L, n->text), tarn_hw_load(L, "x86-64-v3"), o);
  uint32_t stages;
  int64_t points = shared_points(r->kprog, &stages);
  ck_assert_msg(stages > 1 && points > 0 && points <= n->points / 4,
                "%s: %u stages over %ld points", n->name, stages, (long)points);
}
START_TEST(test_chosen) { run(chosen, &large[_i]); }
END_TEST

/* Blocks stand for single rows, but not where there are too few of them to share among the threads
 * evenly. */
static double cheap_rows(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                         const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  double t = cheap_stages(user, L, hw, k, s, threads, analytic);
  for (uint32_t d = 0; d < n->depth; d++) t /= (double)n->shared[d];
  return t;
}
static void uneven(tarn_ctx *cx, void *arg) {
  const tarn_price cheap = {.name = "cheap rows", .seconds = cheap_rows};
  const net *n = arg;
  for (uint32_t threads = 2; threads <= 5; threads++) { /* two blocks of twelve rows */
    tarn_lang *L = tarn_lang_new(cx);
    tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = threads, .price = &cheap};
    pipeline *r = pipeline_extract(kit_model(L, n->text), tarn_hw_load(L, "x86-64-v3"), o);
    uint32_t stages;
    int64_t points = shared_points(r->kprog, &stages);
    ck_assert_msg(stages > 1 && (threads == 2 ? points < n->points : points == n->points),
                  "%u threads: %u stages over %ld", threads, stages, (long)points);
  }
}
START_TEST(test_uneven) { run(uneven, &nets[sizeof nets / sizeof *nets - 1]); }
END_TEST

/* A result that others read too is written, and nothing is computed twice. */
static void read_twice(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 1};
  pipeline *r = pipeline_extract(kit_model(L, n->text), tarn_hw_load(L, "x86-64-v3"), o);
  double flops = 0, want = 2.0 * 112 * 112 * 64 * (24 + 9 + 16) * 1.05;
  for (uint32_t i = 0; i < r->kprog->nker; i++) flops += r->kprog->ker[i].flops;
  ck_assert_msg(flops <= want, "%g operations, more than %g", flops, want);
}
static const net twice = {
    "read twice",
    "in x f32 1,24,112,112\nrand w 64,24,1,1\nrand v 64,1,3,3\nrand u 16,64,1,1\nnode Conv p x w "
    "-> t\n"
    "node Conv d t v -> s : pads=1,1,1,1 group=64\nnode Conv e t u -> z\nout s\nout z\n",
    0};
START_TEST(test_read_twice) { run(read_twice, &twice); }
END_TEST

/* ---- on a GPU ---- */
/* Copies of at least so many elements between stages: a block's keys, its values. */
static uint32_t copies_of(tarn_lang *L, const tarn_nest *n, int64_t least) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < n->nstage; i++) {
    int64_t elems = 1;
    for (uint32_t d = 0; d < n->stage[i].nown; d++) elems *= n->stage[i].own[d];
    tarn_nest one = *n;
    one.nstage = 1;
    one.stage = &n->stage[i];
    found += elems >= least && gathers(L, &one);
  }
  return found;
}
static void held(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_kgraph_options o = {.solver = tarn_gpu_solver};
  pipeline *r = pipeline_extract(kit_model(L, n->text), tarn_hw_load(L, "cuda-sm80"), o);
  uint32_t most = 0;
  for (uint32_t i = 0; i < r->kprog->nker; i++)
    if (r->kprog->ker[i].kind == TARN_K_NEST)
      most = (uint32_t)tarn_max(most,
                                copies_of(L, tarn_nest_get(L, r->kprog->ker[i].nest), n->points));
  ck_assert_uint_eq(most, 2);
}
static const net keys = {"attention on a GPU",
                         "in q f32 1,4,128,64\nin k f32 1,4,128,64\nin v f32 1,4,128,64\n"
                         "node Transpose t k -> kt : perm=0,1,3,2\nnode MatMul m q kt -> s\n"
                         "node Softmax f s -> p : axis=-1\nnode MatMul o p v -> y\nout y\n",
                         128 * 64};
START_TEST(test_held) { run(held, &keys); }
END_TEST
/* Threads of a warp that share a sum read a constant that lies along it. */
static void summed(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_kgraph_options o = {.solver = tarn_gpu_solver};
  pipeline *r = pipeline_extract(kit_model(L, n->text), tarn_hw_load(L, "cuda-sm80"), o);
  ck_assert_uint_eq(r->kprog->nker, 1);
  const tarn_kernel *x = &r->kprog->ker[0];
  const tarn_stage *st = &tarn_nest_get(L, x->nest)->stage[0];
  const tarn_stage_sched *s = &x->sched->stage[0];
  ck_assert_int_eq(s->level[s->nlevel - 1].kind, TARN_VECTOR);
  ck_assert_uint_eq(st->nred, 1);
  for (uint32_t i = 0; i < 2; i++) {
    const tarn_imap *m = tarn_imap_get(L, st->read[i].map);
    uint32_t at = imap_address(L, m, &x->in_layout[st->read[i].src]);
    ck_assert_int_eq(tarn_ix_coef(L, at, st->nown), 1);
  }
}
static const net vector = {"a vector by a matrix",
                           "in x f32 1,512\nrand w 512,240\nnode MatMul m x w -> y\nout y\n", 0};
START_TEST(test_summed) { run(summed, &vector); }
END_TEST

int main(void) {
  TCase *t = tcase_create("blocks");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, test_compiled, 0, (int)(sizeof nets / sizeof *nets));
  tcase_add_loop_test(t, test_gathered, 0, (int)(sizeof stepped / sizeof *stepped));
  tcase_add_loop_test(t, test_packed, 0, (int)(sizeof packed / sizeof *packed));
  tcase_add_loop_test(t, test_chosen, 0, (int)(sizeof large / sizeof *large));
  tcase_add_test(t, test_uneven);
  tcase_add_test(t, test_read_twice);
  tcase_add_test(t, test_held);
  tcase_add_test(t, test_summed);
  return run_checks("blocks", t);
}
