/* Sums weighted by exponentials over parts of their axis: attention and similar networks. The
 * compiled program matches the network in float64, even where a part of the keys is fully masked;
 * the proof replays; networks that only look similar stay as they are. */
#include <math.h>

#include "tests/context.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"

typedef struct net {
  const char *name, *text;
  uint32_t sums; /* results of each part beside the maximum; 0: it must not be taken apart */
  double scale;  /* of the operands */
} net;
#define ATTENTION(more)                                                                            \
  "in q f32 2,6,8\nin k f32 2,16,8\nin v f32 2,16,5\nin m f32 1,6,16\nnode Transpose t k -> kt : " \
  "perm=0,2,1\n"                                                                                   \
  "node MatMul p q kt -> s\nnode Add a s m -> u\nnode Softmax f u -> w : axis=-1\n" more
static const net nets[] = {
    {"attention", ATTENTION("node MatMul o w v -> y\nout y\n"), 2, 1},
    {"attention, scores beyond what exp takes", ATTENTION("node MatMul o w v -> y\nout y\n"), 2,
     60},
    {"a sum weighted by softmax",
     "in x f32 6,32\nin v f32 32,3\nnode Softmax f x -> w : axis=-1\nnode MatMul o w v -> y\nout "
     "y\n",
     2, 1},
    {"weighted, and a map behind",
     "in x f32 6,32\nin v f32 32,3\nin b f32 6,3\nnode Softmax f x -> w : axis=-1\nnode MatMul o w "
     "v -> s\nnode Add a s b -> "
     "t\n"
     "node Tanh g t -> y\nout y\n",
     2, 1},
    {"an axis without halves",
     "in x f32 6,33\nin v f32 33,3\nnode Softmax f x -> w : axis=-1\nnode MatMul o w v -> y\nout "
     "y\n",
     0, 1},
    {"weights squared",
     "in x f32 6,32\nin v f32 32,3\nnode Softmax f x -> w : axis=-1\nnode Mul a w w -> z\nnode "
     "MatMul o z v -> y\nout y\n",
     0, 1},
    {"another maximum taken off",
     "in x f32 6,32\nin v f32 32,3\ninit a i64 1 : 1\nnode Abs b x -> z\nnode ReduceMax r z -> m : "
     "axes=1,1\n"
     "node Sub d x m -> e\nnode Exp f e -> w\nnode MatMul o w v -> y\nout y\n",
     0, 1},
};

/* Kernels that give the results of parts cost next to nothing, others what they compute. */
static double cheap_parts(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                          const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)user, (void)L, (void)hw, (void)s, (void)threads;
  return 1e-9 * (1 + analytic->flops) * (k->nout > 1 ? 1e-6 : 1);
}

/* This machine with an L2 in which next to nothing fits. */
static const tarn_hw *small_machine(tarn_lang *L) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_buf text = pipeline_host(cx);
  const tarn_hw *hw = tarn_hw_parse(L, tarn_sx_read(cx, text.p, text.n, "host"));
  tarn_hw *copy = tarn_copy(cx, hw, sizeof *hw);
  tarn_hw_memory *mem = tarn_copy(cx, hw->mem, hw->nmem * sizeof *mem);
  ck_assert_uint_gt(hw->nmem, 1);
  mem[1].capacity = 1024;
  copy->mem = mem;
  return copy;
}

static pipeline *made(tarn_lang *L, const char *text) {
  const tarn_price cheap = {.name = "cheap", .seconds = cheap_parts};
  tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 2, .price = &cheap};
  return pipeline_extract(kit_model(L, text), small_machine(L), o);
}
/* Results of the kernel that has most. */
static uint32_t most_results(const tarn_kprog *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->nker; i++)
    if (p->ker[i].nout > n) n = p->ker[i].nout;
  return n;
}
static void scaled(tarn_tensor *t, double by) {
  for (int64_t i = 0; i < tarn_tensor_count(t); i++)
    tarn_tensor_set(t, i, (tarn_value){.d = (double)(float)(by * tarn_tensor_get(t, i).d)});
}
static void bind(tarn_ctx *cx, tarn_program *p, double scale, tarn_binding *in) {
  uint64_t seed = 3;
  for (uint32_t i = 0; i < p->nin; i++) {
    tarn_tensor *t = kit_values(cx, tarn_type_get(p->L, p->in[i].type), &seed);
    scaled(t, scale);
    in[i] = (tarn_binding){p->in[i].name, t};
  }
}

static void compiled(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  pipeline *r = made(L, n->text);
  tarn_program *p = r->program;
  uint32_t results = most_results(r->kprog);
  ck_assert_msg(results == n->sums + 1, "%s: a kernel of %u results", n->name, results);
  tarn_binding in[4];
  bind(cx, p, n->scale, in);
  pipeline_try(r, in, n->name);
}
START_TEST(test_compiled) { in_context(compiled, (void *)(uintptr_t)&nets[_i]); }
END_TEST

/* Keys masked by -inf: the first parts of some rows, the last ones of others, every second key, all
 * of the last row, which is no number then. */
static bool masked(int64_t row, int64_t key) {
  static const int64_t first[] = {4, 0, 9, 0, 0, 16}, last[] = {16, 5, 16, 16, 12, 16};
  return key < first[row] || key >= last[row] || (row == 3 && key % 2);
}
static void mask(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  pipeline *r = made(L, n->text);
  tarn_program *p = r->program;
  ck_assert_uint_eq(most_results(r->kprog), 3);
  tarn_binding in[4];
  tarn_tensor *wide, *out[2];
  bind(cx, p, 1, in);
  for (uint32_t i = 0; i < p->nin; i++)
    for (int64_t j = 0; !strcmp(p->in[i].name, "m") && j < 6 * 16; j++)
      if (masked(j / 16, j % 16))
        tarn_tensor_set((tarn_tensor *)(uintptr_t)in[i].value, j, (tarn_value){.d = -INFINITY});
  tarn_eval(L, &p->out[0].term, 1, in, p->nin, TARN_WIDE, NULL, &wide);
  tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, NULL, &out[0]);
  pipeline_run(pipeline_compile(r, pipeline_folder(cx)), p, in, &out[1]);
  for (int64_t i = 0; i < tarn_tensor_count(wide); i++) {
    double want = tarn_tensor_get(wide, i).d;
    ck_assert_int_eq(isnan(want) != 0, i / 5 % 6 == 5);
    for (int o = 0; o < 2; o++) {
      double got = tarn_tensor_get(out[o], i).d;
      ck_assert_msg(isnan(want) ? isnan(got) : fabs(got - want) < 1e-5,
                    "element %ld of %d: %g, not %g", (long)i, o, got, want);
    }
  }
}
START_TEST(test_mask) { in_context(mask, (void *)(uintptr_t)&nets[0]); }
END_TEST

/* On a large machine nothing is gained by parts as long as what a row needs fits: short rows stay
 * as they are, and local buffers do not grow with the number of keys. */
static int64_t longest_buffer(const tarn_kprog *p) {
  int64_t most = 0;
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_nest *n = p->ker[i].kind == TARN_K_NEST ? tarn_nest_get(p->L, p->ker[i].nest) : NULL;
    for (uint32_t s = 0; n && s < n->nstage; s++) {
      int64_t elements = 1;
      for (uint32_t d = 0; d < n->stage[s].nown; d++) elements *= n->stage[s].own[d];
      if (!n->stage[s].out && elements > most) most = elements;
    }
  }
  return most;
}
static void lengths(tarn_ctx *cx, void *arg) {
  (void)arg;
  int64_t most[2];
  for (int i = 0; i < 2; i++) {
    tarn_lang *L = tarn_lang_new(cx);
    const char *keys = i ? "16384" : "4096";
    tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 1};
    pipeline *r =
        pipeline_extract(kit_model(L, tarn_format(cx,
                                                  "in q f32 1,%s,64\nin k f32 1,%s,64\nin v f32 "
                                                  "1,%s,64\nnode Transpose t k -> kt : perm=0,2,1\n"
                                                  "node MatMul m q kt -> s\nnode Softmax f s -> p "
                                                  ": axis=-1\nnode MatMul o p v -> y\nout y\n",
                                                  keys, keys, keys)),
                         tarn_hw_load(L, "x86-64-vnni"), o);
    ck_assert_uint_eq(most_results(r->kprog), 3);
    most[i] = longest_buffer(r->kprog);
  }
  ck_assert_int_gt(most[0], 0);
  ck_assert_int_le(most[1], most[0]);
}
START_TEST(test_lengths) { in_context(lengths, NULL); }
END_TEST
static void short_rows(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_price cheap = {.name = "cheap", .seconds = cheap_parts};
  tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 2, .price = &cheap};
  pipeline *r = pipeline_extract(kit_model(L, n->text), tarn_hw_load(L, "x86-64-vnni"), o);
  ck_assert_uint_eq(most_results(r->kprog), 1);
}
START_TEST(test_short) { in_context(short_rows, (void *)(uintptr_t)&nets[0]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("online");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, test_compiled, 0, (int)(sizeof nets / sizeof *nets));
  tcase_add_test(t, test_mask);
  tcase_add_test(t, test_lengths);
  tcase_add_test(t, test_short);
  return run_checks("online", t);
}
