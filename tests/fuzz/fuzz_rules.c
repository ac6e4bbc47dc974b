/* Whatever text comes as a rule file, it is read, over access patterns and loops or over operators
 * of any name, or a placed message says why not. What was read prints, and runs within limits. */
#include <string.h>

#include "lab/lab.h"
#include "rules/rules.h"
#include "tests/fuzz/fuzz.h"

static void print_all(tarn_ctx *cx, const tarn_ruleset *rs) {
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_buf b = {.cx = cx};
    tarn_rule_print(rs, i, &b);
    FUZZ_CHECK(b.n > 0 && tarn_ruleset_at(rs, i).name);
  }
}

/* A product behind a map and a sum of squares: what rules over loops and access patterns match. */
static const char network[] =
    "(compute (map (tanh (mul $0 2.0))) (compute dotProd (cartProd (access 1 (compute (map (max $0 "
    "0.0)) (input x ((4 6) ()) f32))) (access 1 (transpose (1 0) (input w ((6 4) ()) f32))))))";

static void run_typed(tarn_ctx *cx, const tarn_ruleset *rs, tarn_lang *L) {
  tarn_program *p = TARN_NEW(cx, tarn_program);
  tarn_term t = tarn_term_parse(L, tarn_sx_read(cx, network, sizeof network - 1, "n")->kid[0]);
  *p = (tarn_program){.L = L, .nout = 1};
  p->out = TARN_NEW(cx, tarn_io);
  p->out[0] = (tarn_io){"y", t, tarn_term_get(L, t)->type};
  tarn_sat_options o = tarn_sat_defaults();
  o.max_nodes = o.max_surface_nodes = 200;
  o.max_iterations = o.max_surface_iterations = 3;
  o.max_seconds = 0.5;
  o.surface_first = true;
  tarn_saturate(p, rs, &o);
}

/* Leaves of every kind of value, of which operators that the rules speak of may be made. */
static const char values[] =
    "(f 'ab \"'c d\" ') (g {1,1,'x,{2}} {}) (cat 'ab 'b) (of {1,2} 2 -1/2) (put 'k {'a} (f 3 x))";
static void drop_graph(void *g) { tarn_eg_free(g); }
static void drop_runner(void *r) { tarn_eg_runner_free(r); }
static void run_free(tarn_ctx *cx, const tarn_ruleset *rs) {
  tarn_eg_rules *rules = tarn_free_rules(rs);
  tarn_egraph *g = tarn_eg_new(tarn_ctx_allocator(cx),
                               &(tarn_eg_config){.max_nodes = 200, .max_bytes = 1 << 22});
  FUZZ_CHECK(g);
  tarn_defer(cx, drop_graph, g);
  tarn_free_prepare(rs, g);
  const tarn_sx *s = tarn_sx_read(cx, values, sizeof values - 1, "v");
  for (uint32_t i = 0; i < s->n; i++) tarn_free_add(rs, g, s->kid[i]);
  tarn_eg_runner *r = tarn_eg_runner_new(g, rules);
  FUZZ_CHECK(r);
  tarn_defer(cx, drop_runner, r);
  tarn_eg_run_config c = {.max_iterations = 4, .max_seconds = 0.5};
  tarn_eg_run(r, &c);
}

static void read_rules(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  bool free = in->with;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = free ? tarn_free_ruleset_new(L) : tarn_ruleset_new(L);
  tarn_ruleset_read(rs, in->bytes, in->n, "input");
  print_all(cx, rs);
  if (free) run_free(cx, rs);
  else run_typed(cx, rs, L);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const bool free = true;
  fuzz_read(data, n, NULL, read_rules, NULL, "input:");
  fuzz_read(data, n, NULL, read_rules, &free, "input:");
  return 0;
}
