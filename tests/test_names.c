/* extract/knames.c: kernels are named after the model's nodes that they compute. */
#include <ctype.h>

#include "tests/context.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"

typedef struct named {
  const char *model;
  const char *names[8]; /* of the program's kernels, in their order, without k0_, k1_ … */
} named;
#define CONV                                                                                       \
  "in x f32 1,4,8,8\nrand w 4,4,3,3\nrand v 4,4,3,3\nrand s 4\nrand b 4\nrand m 4\npos d 4\n"
static const named cases[] = {
    /* PyTorch's paths: what repeats is left out */
    {CONV "node Conv /l1/l1.0/conv1/Conv x w -> t : pads=1,1,1,1\n"
          "node BatchNormalization /l1/l1.0/bn/BatchNormalization t s b m d -> u\n"
          "node Relu /l1/l1.0/relu/Relu u -> y\nout y\n",
     {"l1.0.conv1+bn+relu"}},
    /* two kernels: each has its own nodes, and the sum is with the second convolution */
    {CONV "node Conv a x w -> t : pads=1,1,1,1\nnode Relu r t -> u\n"
          "node Conv c u v -> q : pads=1,1,1,1\nnode Add p q x -> y\nout y\n",
     {"a+r", "c+p"}},
    /* a long chain: its first node and its last */
    {"in x f32 8,8\nnode Exp the_first_of_them_all x -> a\nnode Neg the_second_of_them_all a -> b\n"
     "node Exp the_third_of_them_all b -> c\nnode Abs last c -> y\nout y\n",
     {"the_first_of_them_all+2more+last"}},
    /* one that moves data gives a name where nothing else does */
    {"in x f32 5,7\nnode Transpose turn x -> y\nout y\n", {"copy_turn"}},
    {"in x f32 5,7\nnode Transpose turn x -> t\nnode Exp e t -> y\nout y\n", {"e"}},
    /* one term, two nodes */
    {"in x f32 5,7\nnode Exp e x -> t\nnode Exp f x -> u\nnode Mul m t u -> y\nout y\n", {"e+f+m"}},
    /* no name but a slash: the operator; what is no letter or digit is replaced */
    {"in x f32 5,7\nnode Exp / x -> a\nnode Exp b/\xc3\xa4\"+(c a -> y\nout y\n", {"Exp+b._____c"}},
    /* a kernel that is no nest */
    {"in x f32 4,9\ninit k i64 1 : 3\nnode TopK top x k -> v i : axis=1\nnode Exp r v -> y\n"
     "out y\nout i\n",
     {"top", "r"}},
};

static bool is_safe(const char *s) {
  for (; *s; s++)
    if (!isalnum((unsigned char)*s) && !strchr("_.+-", *s)) return false;
  return true;
}
static tarn_kprog *program_of(tarn_ctx *cx, const char *text) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, text);
  return pipeline_optimise(p, tarn_hw_load(L, "x86-64-v3"))->kprog;
}
static void run_names(tarn_ctx *cx, void *arg) {
  const named *c = arg;
  const tarn_kprog *p = program_of(cx, c->model);
  for (uint32_t i = 0; i < p->nker; i++) {
    const char *want = tarn_format(cx, "k%u_%s", i, c->names[i] ? c->names[i] : "?");
    ck_assert_str_eq(p->ker[i].name, want);
    ck_assert(is_safe(p->ker[i].name));
  }
  ck_assert(!c->names[p->nker]);
}
START_TEST(names_of_nodes) { in_context(run_names, (void *)(uintptr_t)&cases[_i]); }
END_TEST

/* A function's nodes bear the name of the call, those of a branch their own (bodies.onnx: a
 * function Gate of two nodes, If with a known condition, a sum; and an LSTM of many kernels). */
static void run_bodies(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = tarn_model_load(L, TARN_TOP "/tests/data/names/bodies.onnx", NULL, NULL);
  const tarn_kprog *k = pipeline_optimise(p, tarn_hw_load(L, "x86-64-v3"))->kprog;
  uint32_t gates = 0;
  for (uint32_t i = 0; i < k->nker; i++)
    if (strstr(k->ker[i].name, "_gate1+inner_exp+z")) gates++;
    else ck_assert(k->ker[i].copy || strstr(k->ker[i].name, "lstm"));
  ck_assert_uint_eq(gates, 1);
}
START_TEST(names_of_bodies) { in_context(run_bodies, NULL); }
END_TEST

/* Every kernel of a network has a name that says something, all differ, and none is long. */
static void run_bounds(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "in x f32 1,4,8,8\nrand w 4,4,3,3\nrand f 4,256\n");
  for (int i = 0; i < 6; i++)
    tarn_buf_fmt(&b,
                 "node Conv %0200d/c%d x%s w -> t%d : pads=1,1,1,1\nnode Relu r%d t%d -> x_%d\n", i,
                 i, i ? tarn_format(cx, "_%d", i - 1) : "", i, i, i, i);
  tarn_buf_str(&b, "node GlobalAveragePool g x_5 -> y\nout y\n");
  const tarn_kprog *p = program_of(cx, b.p);
  for (uint32_t i = 0; i < p->nker; i++) {
    ck_assert_uint_le(strlen(p->ker[i].name), 120);
    for (uint32_t j = 0; j < i; j++) ck_assert_str_ne(p->ker[i].name, p->ker[j].name);
    ck_assert(p->ker[i].copy || strstr(p->ker[i].name, "c") || strstr(p->ker[i].name, "g"));
  }
}
START_TEST(names_are_bounded) { in_context(run_bounds, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("names");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, names_of_nodes, 0, sizeof cases / sizeof *cases);
  tcase_add_test(t, names_of_bodies);
  tcase_add_test(t, names_are_bounded);
  return run_checks("names", t);
}
