/* Places: a described machine that hangs on a host by a link. Kernels run where they cost least,
 * copies between the two memories are counted once, and go when the link is dear. */
#include <math.h>

#include "tests/context.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"

#define FAR TARN_TOP "/tests/data/hw/far.hw"

typedef struct net {
  const char *name, *text;
} net;
#define BIG                                                                                        \
  "in x f32 1,64,28,28\nrand w 64,64,3,3\nrand v 64,64,3,3\n"                                      \
  "node Conv c x w -> t : pads=1,1,1,1\nnode Relu r t -> u\n"
static const net deep = {"two convolutions in a row",
                         BIG "node Conv d u v -> y : pads=1,1,1,1\nout y\n"};
static const net shared = {
    "one input of two convolutions",
    BIG "rand o 64,64,3,3\nnode Conv d x o -> z : dilations=2,2 pads=2,2,2,2\nout u\nout z\n"};
static const net small[] = {
    {"branches joined", "in x f32 1,4,6,6\nrand a 8,4,1,1\nrand b 8,4,3,3\nrand c 6,16,1,1\nnode "
                        "Conv p x a -> s\nnode Conv q x b -> t : pads=1,1,1,1\n"
                        "node Relu r s -> s1\nnode Relu u t -> t1\nnode Concat k s1 t1 -> v : "
                        "axis=1\nnode Conv o v c -> y\nout y\n"},
    {"an input handed through",
     "in x f32 4,6\nin z f32 3\nnode Identity i x -> y\nnode Relu r z -> u\nout y\nout u\n"},
    {"an input joined",
     "in x f32 2,3\nnode Exp e x -> t\nnode Concat k x t x -> y : axis=0\nout y\n"},
    {"an output transposed",
     "in x f32 5,7\nrand w 7,4\nnode MatMul m x w -> t\nnode Transpose p t -> y\nout y\nout t\n"},
    {"most elements of rows", "in x f32 4,9\nnode TopK t x k -> v i : axis=1\ninit k i64 1 : "
                              "3\nnode Relu r v -> y\nout y\nout i\n"},
    {"gathered", "in x i64 4\nrand w 9,5\nnode Gather g w x -> t\nnode Relu r t -> y\nout y\n"},
    {"split and summed",
     "in x f32 4,6\nnode Split s x -> a b : axis=1\nnode Mul m a b -> y\nout y\n"},
    {"softmax of a product",
     "in x f32 6,8\nrand w 8,10\nnode MatMul m x w -> t\nnode Softmax s t -> y : axis=-1\nout y\n"},
    {"a constant result",
     "in x f32 2\nrand w 3,4\nnode Relu r w -> y\nnode Neg n x -> z\nout y\nout z\n"}};

/* ---------------------------------------------------------------- what is looked at */
static unsigned moves(const tarn_kprog *p, uint32_t to) {
  unsigned n = 0;
  for (uint32_t i = 0; i < p->nker; i++)
    n += p->ker[i].kind == TARN_K_MOVE && p->buf[p->ker[i].out[0]].place == to;
  return n;
}
static unsigned kernels_on(const tarn_kprog *p, uint32_t machine) {
  unsigned n = 0;
  for (uint32_t i = 0; i < p->nker; i++)
    n += p->ker[i].kind != TARN_K_MOVE && p->ker[i].machine == machine;
  return n;
}
/* The interpreter's values of the program of kernels beside those of the network, and its text. */
static void judge(tarn_ctx *cx, const net *n, const pipeline *v) {
  tarn_lang *L = v->program->L;
  tarn_program *p = v->program;
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  tarn_tensor **got = TARN_ARRAY(cx, tarn_tensor *, p->nout), *want;
  uint64_t seed = 5;
  for (uint32_t i = 0; i < p->nin; i++)
    in[i] = (tarn_binding){p->in[i].name, kit_values(cx, tarn_type_get(L, p->in[i].type), &seed)};
  tarn_kprog_eval(v->kprog, in, p->nin, TARN_STRICT, tarn_opaque_eval, got);
  for (uint32_t o = 0; o < p->nout; o++) {
    tarn_eval(L, &p->out[o].term, 1, in, p->nin, TARN_WIDE, tarn_opaque_eval, &want);
    for (int64_t i = 0; i < tarn_tensor_count(want); i++) {
      double a = tarn_tensor_number(got[o], i), b = tarn_tensor_number(want, i);
      ck_assert_msg(fabs(a - b) <= 1e-3 * (1 + fabs(b)), "%s: output %u: %g, not %g", n->name, o, a,
                    b);
    }
  }
  tarn_buf text = {.cx = cx}, again = {.cx = cx};
  tarn_kprog_print(v->kprog, &text);
  const tarn_sx *s = tarn_sx_read(cx, text.p, text.n, "program.tarn");
  tarn_kprog_print(tarn_kprog_parse(L, v->hw, s->kid[0]), &again);
  ck_assert_str_eq(text.p, again.p);
}
static pipeline *solve(tarn_lang *L, const net *n, const tarn_hw *hw, tarn_sel_method method) {
  return pipeline_extract(kit_model(L, n->text), hw, (tarn_kgraph_options){.method = method});
}

/* ---------------------------------------------------------------- choices */
static void run_choice(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *far = tarn_hw_load(L, FAR);
  const pipeline *v = solve(L, &deep, far, TARN_SEL_EXACT);
  ck_assert_uint_eq(v->kprog->machines.n, 2);
  ck_assert(moves(v->kprog, 1) == 1 && moves(v->kprog, 0) == 1);
  ck_assert(kernels_on(v->kprog, 1) >= 2);
  judge(cx, &deep, v);
  /* one copy for two readers; each result comes back */
  v = solve(L, &shared, far, TARN_SEL_EXACT);
  ck_assert(moves(v->kprog, 1) == 1 && moves(v->kprog, 0) == 2);
  double all = 0;
  for (uint32_t i = 0; i < v->kprog->nker; i++) all += v->kprog->ker[i].price;
  ck_assert_double_eq_tol(v->report.price, all, 1e-12);
  judge(cx, &shared, v);
}
START_TEST(copies_pay_and_are_shared) { in_context(run_choice, NULL); }
END_TEST

static void run_dear(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_hw dear = *tarn_hw_load(L, FAR), near = dear, near_host = *dear.host;
  dear.link.start = 1;
  const pipeline *v = solve(L, &deep, &dear, TARN_SEL_EXACT);
  const pipeline *host = solve(L, &deep, tarn_hw_load(L, "x86-64-v3"), TARN_SEL_EXACT);
  ck_assert_uint_eq(moves(v->kprog, 0) + moves(v->kprog, 1) + kernels_on(v->kprog, 1), 0);
  ck_assert_double_eq(v->report.price, host->report.price);
  judge(cx, &deep, v);
  /* without a link it works in the host's memory: nothing is copied, and constants lie there too */
  near.link = (tarn_hw_link){0};
  v = solve(L, &deep, &near, TARN_SEL_EXACT);
  ck_assert_uint_eq(moves(v->kprog, 0) + moves(v->kprog, 1), 0);
  ck_assert_uint_ge(kernels_on(v->kprog, 1), 2);
  for (uint32_t i = 0; i < v->kprog->nbuf; i++) ck_assert_uint_eq(v->kprog->buf[i].place, 0);
  judge(cx, &deep, v);
  /* three in a row: what goes to the last passes the one between */
  near_host = dear, near_host.name = "between", near_host.link.start = 1e-6;
  dear.host = &near_host, dear.link.start = 1e-6, near_host.clock = 1e3;
  v = solve(L, &deep, &dear, TARN_SEL_EXACT);
  ck_assert(moves(v->kprog, 0) == 1 && moves(v->kprog, 1) == 2 && moves(v->kprog, 2) == 1);
  judge(cx, &deep, v);
}
START_TEST(dear_links_are_left_alone) { in_context(run_dear, NULL); }
END_TEST

/* What only the host can run comes back for it. */
static void run_split(tarn_ctx *cx, void *arg) {
  (void)arg;
  static const net n = {"a function of the host's between",
                        "in x f32 2048,256\nrand w 256,256\nrand v 8,512\ninit k i64 1 : 8\n"
                        "node MatMul m x w -> t\nnode TopK top t k -> s i : axis=1\n"
                        "node MatMul o s v -> y\nout y\n"};
  tarn_lang *L = tarn_lang_new(cx);
  tarn_hw dsa = *tarn_hw_load(L, FAR);
  dsa.kind = TARN_HW_DSA;
  const pipeline *v = solve(L, &n, &dsa, TARN_SEL_EXACT);
  for (uint32_t i = 0; i < v->kprog->nker; i++)
    ck_assert(v->kprog->ker[i].kind != TARN_K_OPAQUE || v->kprog->ker[i].machine == 0);
  ck_assert(kernels_on(v->kprog, 1) >= 1 && moves(v->kprog, 0) >= 1);
  judge(cx, &n, v);
}
START_TEST(functions_stay_on_the_host) { in_context(run_split, NULL); }
END_TEST

/* Every choice is a right one: also those that copy to and fro for nothing. */
static void run_any(tarn_ctx *cx, void *arg) {
  static const tarn_sel_method methods[] = {TARN_SEL_WORST, TARN_SEL_RANDOM, TARN_SEL_EXACT};
  const net *n = arg;
  for (int i = 0; i < 3; i++) {
    tarn_lang *L = tarn_lang_new(cx);
    judge(cx, n, solve(L, n, tarn_hw_load(L, FAR), methods[i]));
  }
}
START_TEST(any_choice) { in_context(run_any, (void *)(uintptr_t)&small[_i]); }
END_TEST

/* ---------------------------------------------------------------- refusals */
typedef struct refusal {
  const char *text, *why;
} refusal;
#define REST "(kind cpu) (triple \"t\") (clock 1) (memory ram (capacity 0) (read 1) (write 1))"
static const refusal bad[] = {
    {"(hw a " REST " (link (send 1) (receive 1)))", "which is not given"},
    {"(hw a " REST " (host nowhere))", "nowhere: no such description"},
    {"(hw a " REST " (host none))", "is of accelerators alone"},
    {"(hw a " REST " (host ./nowhere.hw))", "nowhere.hw"},
    {"(hw a " REST " (host riscv64) (link (send 1)))", "(receive B)"},
    {"(hw a " REST " (host riscv64) (link (send 1) (receive 1) (speed 1)))", "unknown form speed"},
    {"(hw a " REST " (host riscv64) (host aarch64))", "given twice"},
    {"(hw a " REST " (host \"" TARN_TOP "/tests/data/hw/plain.hw\"))", "is no cpu"},
    {"(hw riscv64 " REST " (host riscv64))", "the same name"},
    {"(hw a " REST " (host riscv64) (link (send 0) (receive 1)))", "out of range"},
};
static void run_bad(tarn_ctx *cx, void *arg) {
  const refusal *b = arg;
  tarn_hw_parse(tarn_lang_new(cx), tarn_sx_read(cx, b->text, strlen(b->text), "m.hw"));
}
START_TEST(refused) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_int_ne(tarn_protect(cx, run_bad, (void *)(uintptr_t)&bad[_i]), TARN_OK);
  ck_assert_msg(strstr(tarn_message(cx), bad[_i].why) != NULL, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

/* A program whose kernels reach into another memory is refused, as is the emission of one that has
 * several machines. */
static void run_emit(tarn_ctx *cx, void *arg) {
  const pipeline *v = arg;
  tarn_lower_options o = {.dir = "/nowhere", .name = "model"};
  (void)cx;
  tarn_lower_cpu(v->kprog, NULL, &o);
}
static void run_eval(tarn_ctx *cx, void *arg) {
  const pipeline *v = arg;
  (void)cx;
  tarn_kprog_check(v->kprog);
}
static void run_wrong(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  pipeline *v = solve(L, &deep, tarn_hw_load(L, FAR), TARN_SEL_EXACT);
  ck_assert_int_eq(tarn_protect(cx, run_emit, v), TARN_BAD_INPUT);
  ck_assert(strstr(tarn_message(cx), "is of another machine") != NULL);
  uint32_t i = 0;
  while (v->kprog->ker[i].kind == TARN_K_MOVE) i++;
  v->kprog->ker[i].machine = 0;
  ck_assert_int_eq(tarn_protect(cx, run_eval, v), TARN_BAD_INPUT);
  ck_assert(strstr(tarn_message(cx), "lies in the memory of far") != NULL);
}
START_TEST(wrong_programs) { in_context(run_wrong, NULL); }
END_TEST

/* ---------------------------------------------------------------- program.tarn */
static const char written[] =
    "(kernels (hw far) (inputs b0) (outputs b1)\n"
    " (buffer b0 input f32 (name \"x\") (place x86-64-v3) (dims 4) (strides 1))\n"
    " (buffer b1 output f32 (name \"y\") (place x86-64-v3) (dims 4) (strides 1))\n"
    " (buffer b2 temp f32 (place far) (dims 4) (strides 1))\n"
    " (kernel k0_to_far (on far) (in b0) (out b2) (price 1e-6) (copy) (move)\n"
    "  (operand (dims 4) (strides 1)) (result (dims 4) (strides 1)))\n"
    " (kernel k1_to_x86-64-v3 (on far) (in b2) (out b1) (price 1e-6) (copy) (move)\n"
    "  (operand (dims 4) (strides 1)) (result (dims 4) (strides 1))))\n";
typedef struct edit {
  const char *from, *to, *why; /* NULL: as it is written */
} edit;
static const edit edits[] = {
    {NULL, NULL, NULL},
    {"(hw far)", "(hw near)", "a program for near"},
    {"(place far)", "(place near)", "no machine of far"},
    {"(place far)", "(place x86-64-v3)", "no link"},
    {"(name \"y\") (place x86-64-v3)", "(name \"y\") (place far)", "not in the host's"},
    {"(name \"x\")", "", "needs its (name"},
    {"(out b2)", "(out b3)", "b0 to b2"},
    {"(out b2)", "(out b2 b2)", "buffers and their layouts"},
    {"(copy) (move)", "(copy)", "what it does"},
    {"(operand (dims 4)", "(operand (dims 5)", "beyond b0"},
    {"(operand (dims 4) (strides 1))", "(operand (dims 4) (strides -1))", "below 0"},
    {"temp f32 (place far)", "temp f32 (in b2) (place far)", "lies in itself"},
    {"temp f32 (place far)", "temp f32 (in b0) (place far)", "in another place"},
    {"(dims 4) (strides 1))\n (kernel k0",
     "(dims 1099511627776 9999999) (strides 9999999 1))\n "
     "(kernel k0",
     "too many elements"},
};
static void run_edit(tarn_ctx *cx, void *arg) {
  const edit *e = arg;
  tarn_buf b = {.cx = cx}, again = {.cx = cx};
  const char *at = e->from ? strstr(written, e->from) : written;
  tarn_buf_fmt(&b, "%.*s%s%s", (int)(at - written), written, e->from ? e->to : "",
               at + (e->from ? strlen(e->from) : 0));
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_sx *s = tarn_sx_read(cx, b.p, b.n, "program.tarn");
  tarn_kprog_print(tarn_kprog_parse(L, tarn_hw_load(L, FAR), s->kid[0]), &again);
  ck_assert(!e->why && strstr(again.p, "(place far)") && strstr(again.p, "(on far)"));
}
START_TEST(read_programs) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  const edit *e = &edits[_i];
  tarn_status st = tarn_protect(cx, run_edit, (void *)(uintptr_t)e);
  ck_assert_int_eq(st, e->why ? TARN_BAD_INPUT : TARN_OK);
  ck_assert_msg(!e->why || strstr(tarn_message(cx), e->why), "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("places");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, copies_pay_and_are_shared);
  tcase_add_test(t, dear_links_are_left_alone);
  tcase_add_test(t, functions_stay_on_the_host);
  tcase_add_loop_test(t, any_choice, 0, sizeof small / sizeof *small);
  tcase_add_loop_test(t, refused, 0, sizeof bad / sizeof *bad);
  tcase_add_test(t, wrong_programs);
  tcase_add_loop_test(t, read_programs, 0, sizeof edits / sizeof *edits);
  return run_checks("places", t);
}
