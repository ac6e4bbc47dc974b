/* rules/strassen.rules: the products it applies to, equality of the result, and the bound of
 * its error in f32 against real arithmetic, in the interpreter and as code. */
#include "model/model.h"
#include "rules/rules.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include "tests/context.h"

#define RULE  "strassen-halves"
#define BOUND 1e-5

typedef struct product {
  const char *name, *text;
  bool taken;
} product;
static const product products[] = {
    {"a product", "in x f32 64,128\nrand w 128,128\nnode MatMul m x w -> y\nout y\n", true},
    {"of a batch, and what is done with it",
     "in x f32 1,66,130\nrand w 130,134\nrand b 134\nin r f32 1,66,134\nnode MatMul m x w -> "
     "t\nnode Add a t b -> u\n"
     "node Add c u r -> v\nnode Relu d v -> y\nout y\n",
     true},
    {"rows in two dims", "in x f32 5,16,128\nrand w 128,130\nnode MatMul m x w -> y\nout y\n",
     true},
    {"images by channels, an odd height",
     "in x f32 1,136,9,10\nrand w 128,136,1,1\nrand b 128\nnode Conv c x w b -> t\nnode Relu r t "
     "-> y\nout y\n",
     true},
    {"the other factor turned",
     "in x f32 64,128\nrand w 130,128\nrand b 130\nnode Gemm g x w b -> y : transB=1\nout y\n",
     true},
    {"many steps", "in x f32 64,1000\nrand w 1000,128\nnode MatMul m x w -> y\nout y\n", true},
    {"odd rows", "in x f32 65,128\nrand w 128,128\nnode MatMul m x w -> y\nout y\n", false},
    {"odd columns", "in x f32 64,128\nrand w 128,129\nnode MatMul m x w -> y\nout y\n", false},
    {"odd steps", "in x f32 64,129\nrand w 129,128\nnode MatMul m x w -> y\nout y\n", false},
    {"few rows", "in x f32 48,128\nrand w 128,128\nnode MatMul m x w -> y\nout y\n", false},
    {"few columns", "in x f32 64,128\nrand w 128,96\nnode MatMul m x w -> y\nout y\n", false},
    {"few steps", "in x f32 64,64\nrand w 64,128\nnode MatMul m x w -> y\nout y\n", false},
    {"two variables", "in x f32 64,128\nin w f32 128,128\nnode MatMul m x w -> y\nout y\n", false},
    {"windows that overlap",
     "in x f32 1,32,12,12\nrand w 128,32,5,5\nnode Conv c x w -> y : pads=2,2,2,2\nout y\n", false},
    {"a matrix for each of a batch",
     "in x f32 3,64,128\nrand w 3,128,128\nnode MatMul m x w -> y\nout y\n", false},
};
#define COUNT (sizeof products / sizeof *products)

static tarn_saturation *saturate(tarn_program *p, tarn_rule_class numerics) {
  tarn_ruleset *rs = tarn_ruleset_new(p->L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  o.numerics = numerics;
  o.reasons = TARN_EG_REASONS_ALL;
  tarn_saturation *s = tarn_saturate(p, rs, &o);
  kit_prove(s, rs);
  ck_assert_str_eq(tarn_sat_result(s)->stop, "saturated");
  return s;
}
static void run(void (*fn)(tarn_ctx *cx, void *arg), const product *p) {
  in_context_of(p->name, fn, p);
}

static void classes(tarn_ctx *cx, void *arg) {
  const product *c = arg;
  kit_classes k = {.s = saturate(kit_model(tarn_lang_new(cx), c->text), TARN_RULE_APPROX),
                   .seed = 11};
  ck_assert_msg(kit_fired(k.s, RULE) == c->taken, "%s", c->name);
  kit_check(&k);
}
START_TEST(test_classes) { run(classes, &products[_i]); }
END_TEST
/* Without approx, nothing of it. */
static void left_out(tarn_ctx *cx, void *arg) {
  const product *c = arg;
  ck_assert(!kit_fired(saturate(kit_model(tarn_lang_new(cx), c->text), TARN_RULE_REASSOC), RULE));
}
START_TEST(test_left_out) { run(left_out, &products[0]); }
END_TEST

/* Whatever goes over seven products costs next to nothing. */
static bool of_seven(const tarn_nest *n) {
  bool any = false;
  for (uint32_t i = 0; i < n->nstage; i++) {
    for (uint32_t d = 0; d < n->stage[i].nown; d++) any |= n->stage[i].own[d] == 7;
    for (uint32_t d = 0; d < n->stage[i].nred; d++) any |= n->stage[i].red[d] == 7;
  }
  return any;
}
static double cheap(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                    const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)user, (void)hw, (void)s, (void)threads;
  return analytic->seconds * (of_seven(tarn_nest_get(L, k->nest)) ? 1e-4 : 1);
}
static void compiled(tarn_ctx *cx, void *arg) {
  const product *c = arg;
  if (!c->taken) return;
  tarn_buf text = pipeline_host(cx);
  tarn_program *p = kit_model(tarn_lang_new(cx), c->text);
  tarn_hw hw = *tarn_hw_parse(p->L, tarn_sx_read(cx, text.p, text.n, "host"));
  tarn_hw_memory *mem = tarn_copy(cx, hw.mem, hw.nmem * sizeof *mem);
  for (uint32_t i = 0; i < hw.nmem; i++)
    mem[i].capacity = i == 1 ? 1 << 20 : mem[i].capacity; /* it says what is taken */
  hw.mem = mem;
  const tarn_price price = {.name = "cheap", .seconds = cheap};
  pipeline *r =
      pipeline_extract_as(p, &hw, (tarn_kgraph_options){.price = &price}, TARN_RULE_APPROX);
  uint32_t seven = 0;
  for (uint32_t i = 0; i < r->kprog->nker; i++)
    seven += r->kprog->ker[i].kind == TARN_K_NEST &&
             of_seven(tarn_nest_get(p->L, r->kprog->ker[i].nest));
  ck_assert_msg(seven >= 2, "%s: %u kernels", c->name, seven);
  tarn_binding b[2];
  uint64_t seed = 17;
  for (uint32_t i = 0; i < p->nin; i++)
    b[i] = (tarn_binding){p->in[i].name, kit_values(cx, tarn_type_get(p->L, p->in[i].type), &seed)};
  tarn_tensor *wide, *kept, *made;
  tarn_eval(p->L, &p->out[0].term, 1, b, p->nin, TARN_WIDE, NULL, &wide);
  tarn_kprog_eval(r->kprog, b, p->nin, TARN_STRICT, NULL, &kept);
  pipeline_run(pipeline_compile(r, pipeline_folder(cx)), p, b, &made);
  ck_assert_msg(kit_distance(wide, kept) <= BOUND, "%s: as kernels %g", c->name,
                kit_distance(wide, kept));
  ck_assert_msg(kit_distance(wide, made) <= BOUND, "%s: compiled %g", c->name,
                kit_distance(wide, made));
  if (getenv("TARN_TEST_SHOW"))
    printf("%-40s %g %g\n", c->name, kit_distance(wide, kept), kit_distance(wide, made));
}
START_TEST(test_compiled) { run(compiled, &products[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("rules");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, test_classes, 0, COUNT);
  tcase_add_loop_test(t, test_compiled, 0, COUNT);
  tcase_add_test(t, test_left_out);
  return run_checks("strassen", t);
}
