/* The e-graph of libtarn without tensors: own operators, analysis, cost. Prints (<< x 2), at
 * cost 4. */
#include <egraph/egraph.h>
#include <stdio.h>

enum { NUM, VAR, ADD, MUL, SHIFT };
static const tarn_eg_names names = {(const char *const[]){"number", "x", "+", "*", "<<", NULL},
                                    NUM};

/* Analysis: 0, or 1 + the number that a class is known to be; then the class gets that number. */
static bool value(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *v) {
  *v = n->op == NUM ? n->payload : 0;
  if (n->op != ADD && n->op != MUL) return true;
  uint64_t a = tarn_eg_data(g, 0, n->kids[0]), b = tarn_eg_data(g, 0, n->kids[1]);
  if (a && b) *v = n->op == ADD ? a + b - 1 : (a - 1) * (b - 1) + 1;
  return true;
}
static void number(void *user, tarn_egraph *g, uint32_t cls, uint32_t cause) {
  uint64_t v = tarn_eg_data(g, 0, cls);
  if (v) tarn_eg_union(g, cls, tarn_eg_add(g, NUM, (uint32_t)v, NULL, 0), TARN_EG_RULE_ANALYSIS, 0);
}
static double cost(void *user, const tarn_egraph *g, const tarn_eg_node *n, const double *kid) {
  double c = (const double[]){1, 1, 2, 8, 2}[n->op];
  for (uint32_t i = 0; i < n->n; i++) c += kid[i];
  return c;
}
int main(void) {
  static const char *const rule[] = {"(* ?a ?b) => (* ?b ?a)",
                                     "(* (* ?a ?b) ?c) => (* ?a (* ?b ?c))",
                                     "(* ?a 2) => (<< ?a 1)", "(<< (<< ?a 1) 1) => (<< ?a 2)"};
  char text[80];
  tarn_egraph *g = tarn_eg_new(NULL, NULL);
  tarn_eg_rules *rules = tarn_eg_rules_new(NULL);
  tarn_eg_add_analysis(
      g, &(tarn_eg_analysis){
             .name = "value", .make = value, .join = tarn_eg_join_known, .modify = number});
  for (int i = 0; i < 4; i++) tarn_eg_rules_add_text(rules, &names, NULL, rule[i], NULL, 0);
  uint32_t root = tarn_eg_add_text(g, &names, "(* (* x 2) (+ 1 1))");
  tarn_eg_runner *run = tarn_eg_runner_new(g, rules);
  tarn_eg_stop stop = tarn_eg_run(run, &(tarn_eg_run_config){.max_iterations = 10});
  tarn_eg_best *best = tarn_eg_best_new(g, cost, NULL);
  if (tarn_eg_best_text(best, &names, root, text, sizeof text))
    printf("%s  cost %g, %s\n", text, tarn_eg_best_cost(best, root), tarn_eg_stop_name(stop));
  tarn_eg_best_free(best), tarn_eg_runner_free(run), tarn_eg_rules_free(rules), tarn_eg_free(g);
}
