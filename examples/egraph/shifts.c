/* The e-graph of libtarn without tensors: own operators, rules, analyses and cost. Prints (<< x 2), at cost 4. */
#include <egraph/egraph.h>
#include <stdio.h>

enum { NUM, VAR, ADD, MUL, SHIFT }; /* operators; the payload of NUM is 1 + the number */
static const char *const name[] = {"", "x", "+", "*", "<<"};
static const uint64_t weight[] = {1, 1, 2, 8, 2}; /* what each costs */

/* Analysis 0: 0, or 1 + the number that a class is known to be; then the class holds that number. */
static bool fold(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *v) {
  (void)user;
  *v = n->op == NUM ? n->payload : 0;
  if (n->op != ADD && n->op != MUL) return true;
  uint64_t a = tarn_eg_data(g, 0, n->kids[0]), b = tarn_eg_data(g, 0, n->kids[1]);
  if (a && b) *v = n->op == ADD ? a + b - 1 : (a - 1) * (b - 1) + 1;
  return true;
}
static unsigned agree(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user, (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  if (*a && b) return TARN_EG_JOIN_FAIL; /* a rule is wrong */
  return b ? (*a = b, TARN_EG_JOIN_A) : TARN_EG_JOIN_B;
}
static void literal(void *user, tarn_egraph *g, uint32_t cls, uint32_t cause) {
  uint64_t v = tarn_eg_data(g, 0, cls);
  (void)user, (void)cause;
  if (v) tarn_eg_union(g, cls, tarn_eg_add(g, NUM, (uint32_t)v, NULL, 0), TARN_EG_RULE_ANALYSIS, 0);
}
/* Analysis 1: the least that a term of the class costs. */
static bool cost(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *v) {
  (void)user;
  *v = weight[n->op];
  for (uint32_t i = 0; i < n->n; i++) *v += tarn_eg_data(g, 1, n->kids[i]);
  return true;
}
static unsigned less(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user, (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  return b < *a ? (*a = b, TARN_EG_JOIN_A) : TARN_EG_JOIN_B;
}
static void print(const tarn_egraph *g, uint32_t cls) {
  uint64_t v;
  for (uint32_t n = tarn_eg_next_node(g, cls, TARN_NONE); n != TARN_NONE; n = tarn_eg_next_node(g, cls, n)) {
    tarn_eg_node e = tarn_eg_node_at(g, n);
    if (cost(NULL, g, &e, &v), v != tarn_eg_data(g, 1, cls)) continue;
    if (e.op == NUM) printf("%u", e.payload - 1);
    else printf("%s%s", e.n ? "(" : "", name[e.op]);
    for (uint32_t i = 0; i < e.n; i++) printf(" "), print(g, tarn_eg_find(g, e.kids[i]));
    printf("%s", e.n ? ")" : "");
    return;
  }
}

#define V(i) (&(tarn_eg_pat){.kind = TARN_EG_PAT_VAR, .var = (i)})
#define N(k) (&(tarn_eg_pat){.kind = TARN_EG_PAT_NODE, .var = TARN_NONE, .op = NUM, .payload = (k) + 1})
#define P(o, a, b)                                                                                                             \
  (&(tarn_eg_pat){.kind = TARN_EG_PAT_NODE, .var = TARN_NONE, .op = (o), .kids = (const tarn_eg_pat *[]){a, b}, .n = 2})

int main(void) {
  tarn_egraph *g = tarn_eg_new(NULL, NULL);
  tarn_eg_rules *rules = tarn_eg_rules_new(NULL);
  tarn_eg_add_analysis(g, &(tarn_eg_analysis){"value", NULL, fold, agree, literal});
  tarn_eg_add_analysis(g, &(tarn_eg_analysis){"cost", NULL, cost, less, NULL});
  const tarn_eg_pat *side[][2] = {{P(MUL, V(0), V(1)), P(MUL, V(1), V(0))},
                                  {P(MUL, P(MUL, V(0), V(1)), V(2)), P(MUL, V(0), P(MUL, V(1), V(2)))},
                                  {P(MUL, V(0), N(2)), P(SHIFT, V(0), N(1))},
                                  {P(SHIFT, P(SHIFT, V(0), N(1)), N(1)), P(SHIFT, V(0), N(2))}};
  for (uint32_t i = 0; i < 4; i++) {
    tarn_eg_root l = {TARN_NONE, side[i][0]}, r = {TARN_NONE, side[i][1]};
    tarn_eg_rules_add(rules, &(tarn_eg_rule){.name = "rule", .id = i, .lhs = &l, .n_lhs = 1, .rhs = &r, .n_rhs = 1});
  }
  uint32_t x = tarn_eg_add(g, VAR, 0, NULL, 0), one = tarn_eg_add(g, NUM, 2, NULL, 0), two = tarn_eg_add(g, NUM, 3, NULL, 0);
  uint32_t sum = tarn_eg_add(g, ADD, 0, (uint32_t[]){one, one}, 2), twice = tarn_eg_add(g, MUL, 0, (uint32_t[]){x, two}, 2);
  uint32_t root = tarn_eg_add(g, MUL, 0, (uint32_t[]){twice, sum}, 2); /* (x * 2) * (1 + 1) */
  tarn_eg_runner *run = tarn_eg_runner_new(g, rules);
  tarn_eg_stop stop = tarn_eg_run(run, &(tarn_eg_run_config){.max_iterations = 10});
  print(g, tarn_eg_find(g, root));
  printf("  cost %llu, %s\n", (unsigned long long)tarn_eg_data(g, 1, root), tarn_eg_stop_name(stop));
  tarn_eg_runner_free(run), tarn_eg_rules_free(rules), tarn_eg_free(g);
  return 0;
}
