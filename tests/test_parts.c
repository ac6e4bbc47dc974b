/* Reductions over parts: a program compiled for several units matches the network in float64, with
 * one part for each unit, and the proof replays. Reductions with enough results for all units stay
 * as they are. Of several stages of one kernel that read the same
 * operand, one prefetches it. */
#include <math.h>

#include "tests/context.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"

#define UNITS 4
typedef struct net {
  const char *name, *text;
  int64_t parts; /* 0: it must not be taken apart */
} net;
static const net nets[] = {
    {"2-norm of a matrix", "in a f32 40,25\nnode ReduceL2 r a -> y : axes=0,1 keepdims=0\nout y\n",
     4},
    {"greatest, and a map behind",
     "in a f32 36,5\nin b f32 1,1\nnode ReduceMax r a -> m\nnode Add s m b -> y\nout y\n", 4},
    {"least of two rows", "in a f32 2,3,32\nnode ReduceMin r a -> y : axes=1,2 keepdims=0\nout y\n",
     2},
    {"product of integers", "in a i32 1,24\nnode ReduceProd r a -> y\nout y\n", 4},
    {"product of floats", "in a f32 1,24\nnode ReduceProd r a -> y\nout y\n", 0},
    {"two vectors", "in a f32 1,64\nin b f32 64,1\nnode MatMul m a b -> y\nout y\n", 4},
    {"mean of three channels", "in a f32 1,3,8,5\nnode GlobalAveragePool p a -> y\nout y\n", 2},
    {"results enough", "in a f32 4,64\nnode ReduceMax r a -> y : axes=1,1 keepdims=0\nout y\n", 0},
    {"parts of different lengths",
     "in a f32 7,27\nnode ReduceL2 r a -> y : axes=0,1 keepdims=0\nout y\n", 4},
};

/* This machine with some units that take no time to join. */
static tarn_hw *machine(tarn_lang *L) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_buf text = pipeline_host(cx);
  tarn_hw *hw =
      tarn_copy(cx, tarn_hw_parse(L, tarn_sx_read(cx, text.p, text.n, "host")), sizeof *hw);
  hw->units = UNITS;
  hw->barrier = hw->launch = 0;
  return hw;
}
static int64_t results(const tarn_nest *n) {
  int64_t points = 1;
  const tarn_stage *s = &n->stage[n->nstage - 1];
  for (uint32_t d = 0; d < n->depth; d++) points *= n->shared[d];
  for (uint32_t d = 0; d < s->nown; d++) points *= s->own[d];
  return points;
}
/* A kernel is the cheaper the more results it has. */
static double many_results(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                           const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)user, (void)hw, (void)s, (void)threads;
  return 1e-9 * (1 + analytic->flops) / (double)results(tarn_nest_get(L, k->nest));
}

static void compiled(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_price price = {.name = "many", .seconds = many_results};
  tarn_program *p = kit_model(L, n->text);
  pipeline *r = pipeline_extract(
      p, machine(L),
      (tarn_kgraph_options){.method = TARN_SEL_EXACT, .threads = 2, .price = &price});
  int64_t most = 0, last = tarn_type_count(tarn_type_get(L, p->out[0].type));
  for (uint32_t i = 0; i < r->kprog->nker; i++) {
    int64_t each = results(tarn_nest_get(L, r->kprog->ker[i].nest));
    if (each > most) most = each;
  }
  ck_assert_msg(most == last * (n->parts ? n->parts : 1), "%s: a kernel of %ld results", n->name,
                (long)most);
  tarn_binding in[3];
  uint64_t seed = 3;
  for (uint32_t i = 0; i < p->nin; i++)
    in[i] = (tarn_binding){p->in[i].name, kit_values(cx, tarn_type_get(L, p->in[i].type), &seed)};
  pipeline_try(r, in, n->name);
}
START_TEST(test_compiled) { in_context(compiled, (void *)(uintptr_t)&nets[_i]); }
END_TEST

/* By the analytic price: for two threads a long sum goes in parts, for one it may be left. */
static void chosen(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_hw *hw = machine(L);
  hw->units = 2, hw->barrier = 1e-6;
  tarn_program *p =
      kit_model(L, "in a f32 1024,1024\nnode ReduceL2 r a -> y : axes=0,1 keepdims=0\nout y\n");
  pipeline *r =
      pipeline_extract(p, hw, (tarn_kgraph_options){.method = TARN_SEL_EXACT, .threads = 2});
  ck_assert_uint_eq(r->kprog->nker, 2);
  ck_assert_int_eq(results(tarn_nest_get(L, r->kprog->ker[0].nest)), 2);
  ck_assert_int_eq(r->kprog->ker[0].sched->stage[0].level[0].kind, TARN_PARALLEL);
}
START_TEST(test_chosen) { in_context(chosen, NULL); }
END_TEST

/* Kernels of several stages cost next to nothing. */
static double several_stages(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                             const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)user, (void)hw, (void)s, (void)threads;
  return analytic->seconds * (tarn_nest_get(L, k->nest)->nstage > 3 ? 1e-3 : 1);
}
/* Softmax of long rows: of the two stages that read a row the one with the exponentials asks for
 * the next one, so many lines as its copies read, and for those that the last stage, a product an
 * element, writes, where the second memory does not hold both and vectors are halves of lines. */
static void one_asks(tarn_ctx *cx, void *arg) {
  const uint64_t *second = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_hw *hw = machine(L);
  const tarn_hw_memory mem[] = {
      {.name = "l1",
       .capacity = 32768,
       .instances = 1,
       .serves = 1,
       .line = 64,
       .read = 128,
       .write = 64,
       .latency = 5},
      {.name = "l2",
       .capacity = *second,
       .instances = 1,
       .serves = 1,
       .line = 64,
       .read = 32,
       .write = 16,
       .latency = 15},
      {.name = "l3",
       .capacity = 1 << 24,
       .instances = 1,
       .serves = 1,
       .line = 64,
       .read = 12,
       .write = 6,
       .latency = 60},
      {.name = "dram", .serves = 1, .line = 64, .read = 6, .write = 3, .latency = 300}};
  hw->nmem = 4, hw->mem = mem;
  if (hw->vector_bits > 256) hw->vector_bits = 256;
  tarn_program *p = kit_model(L, "in a f32 96,1024\nnode Softmax s a -> y : axis=-1\nout y\n");
  const tarn_price price = {.name = "several", .seconds = several_stages};
  pipeline *r = pipeline_extract(
      p, hw, (tarn_kgraph_options){.method = TARN_SEL_EXACT, .threads = 1, .price = &price});
  ck_assert_uint_eq(r->kprog->nker, 1);
  const char *dir = pipeline_folder(cx);
  tarn_lower_options o = {
      .emit = TARN_EMIT_LL, .dir = dir, .name = "model", .contract = true, .opt = 0};
  tarn_lower_cpu(planned_program(r->kprog, o.contract), tarn_memory_plan_make(r->kprog, 64), &o);
  size_t size;
  const char *text = tarn_read_file(cx, tarn_format(cx, "%s/model.ll", dir), &size), *at = text,
             *line;
  uint32_t reads = 0, writes = 0;
  for (; (line = strstr(at, "call void @llvm.prefetch")) != NULL; at = line + 1)
    if (strstr(line, ", i32 1, i32 ") && strstr(line, ", i32 1, i32 ") < strchr(line, '\n'))
      writes++;
    else reads++;
  ck_assert_uint_gt(reads, 0);
  ck_assert_uint_le(reads, 16);
  ck_assert_uint_le(writes, reads);
  ck_assert_uint_eq(writes > 0, 2 * 4 * 96 * 1024 > *second);
}
START_TEST(test_one_asks) {
  in_context(one_asks, &(uint64_t){131072});
  in_context(one_asks, &(uint64_t){1 << 20});
}
END_TEST

/* Weights packed in blocks, the last of them ragged, are read whole. */
static void ragged(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, "in x f32 4,64\nrand w 64,1000\nnode MatMul n x w -> y\nout y\n");
  pipeline *r = pipeline_extract(p, machine(L),
                                 (tarn_kgraph_options){.method = TARN_SEL_EXACT, .threads = 1});
  double reads = 0;
  for (uint32_t i = 0; i < r->kprog->nker; i++) reads += r->kprog->ker[i].reads;
  ck_assert_msg(reads >= 4 * 64 * 1000, "%g bytes are read", reads);
}
START_TEST(test_ragged) { in_context(ragged, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("parts");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, test_compiled, 0, (int)(sizeof nets / sizeof *nets));
  tcase_add_test(t, test_chosen);
  tcase_add_test(t, test_one_asks);
  tcase_add_test(t, test_ragged);
  return run_checks("parts", t);
}
