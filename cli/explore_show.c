/* What was explored, as text and as JSON. */
#include "cli/explore.h"
#include <string.h>

/* ---- JSON ---- */
static void iteration_json(tarn_json *j, const tarn_eg_iteration *it) {
  tarn_json_object(j, NULL, "nodes", it->nodes, "classes", it->classes, "matches",
                   (int64_t)it->matches, "applied", (int64_t)it->applied, "unions",
                   (int64_t)it->unions, "banned", it->banned, "search", it->search, "apply",
                   it->apply, "rebuild", it->rebuild);
}
static void rule_json(tarn_json *j, const tarn_sat_rule *r) {
  tarn_json_object(j, NULL, "name", r->name, "family", r->family, "matches",
                   (int64_t)r->count.matches, "applied", (int64_t)r->count.applied, "unions",
                   (int64_t)r->count.unions, "held", (int64_t)r->count.held, "refused",
                   (int64_t)r->count.refused, "bans", r->count.bans, "search", r->count.search,
                   "apply", r->count.apply);
}
static void chain_json(tarn_json *j, const tarn_chain *c) {
  tarn_json_str(j, "from", c->from);
  if (c->nodes) tarn_json_str(j, "from_name", c->from_name);
  if (c->nodes) tarn_json_str(j, "nodes", c->nodes);
  tarn_json_open(j, "steps", '[');
  for (uint32_t i = 0; i < c->n; i++) {
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "rule", c->step[i].rule, "forward", c->step[i].forward, "term",
                  c->step[i].term);
    if (!c->step[i].term)
      tarn_json_put(j, "name", c->step[i].name, "way", c->step[i].way, "part", c->step[i].part);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
static void making_json(tarn_json *j, const cli_explore *x) {
  tarn_json_open(j, "existence", '[');
  for (uint32_t i = 0; i < x->making.n; i++)
    tarn_json_object(j, NULL, "rule", x->making.p[i].rule, "left", x->making.p[i].left, "right",
                     x->making.p[i].right);
  tarn_json_close(j, ']');
}
static void proof_json(tarn_json *j, const cli_explore *x) {
  if (!x->prove[0] || x->conflict) tarn_json_str(j, "proof", NULL);
  if (!x->prove[0] && !x->conflict) return;
  tarn_json_open(j, x->conflict ? "conflict" : "proof", '{');
  if (x->conflict) tarn_json_str(j, "why", x->conflict);
  else tarn_json_bool(j, "found", x->proved);
  if (x->proof_text) tarn_json_str(j, "text", x->proof_text);
  if (x->proof.n_lemma) tarn_json_open(j, "lemmas", '[');
  for (uint32_t i = 0; i < x->proof.n_lemma; i++) {
    tarn_json_open(j, NULL, '{');
    chain_json(j, &x->proof.lemma[i]);
    tarn_json_close(j, '}');
  }
  if (x->proof.n_lemma) tarn_json_close(j, ']');
  if (x->proof.chain.from) chain_json(j, &x->proof.chain);
  tarn_json_close(j, '}');
}
void explore_show_json(tarn_ctx *cx, const cli_explore *x) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "stop", x->stop, "seconds", x->took, "nodes", x->n_nodes, "classes",
                x->n_classes, "peak_bytes", (int64_t)x->peak_bytes);
  tarn_json_open(j, "iterations", '[');
  for (uint32_t i = 0; i < x->iteration.n; i++) iteration_json(j, &x->iteration.p[i]);
  tarn_json_close(j, ']');
  tarn_json_open(j, "rules", '[');
  for (uint32_t i = 0; i < x->rule.n; i++) rule_json(j, &x->rule.p[i]);
  tarn_json_close(j, ']');
  tarn_json_open(j, "best", '[');
  for (uint32_t i = 0; i < x->best.n; i++)
    tarn_json_object(j, NULL, "cost", x->best.p[i].cost, "term", x->best.p[i].term);
  tarn_json_close(j, ']');
  if (x->choice.shared) {
    tarn_json_open(j, "shared", '{');
    tarn_json_put(j, "dag_cost", x->choice.dag, "lower_bound", x->choice.bound, "optimal",
                  x->choice.optimal, "tree_dag_cost", x->choice.tree_dag);
    tarn_json_open(j, "terms", '[');
    for (uint32_t i = 0; i < x->shared.n; i++) tarn_json_str(j, NULL, x->shared.p[i]);
    tarn_json_close(j, ']');
    tarn_json_close(j, '}');
  }
  if (x->goal) tarn_json_bool(j, "goal", x->goal_reached);
  proof_json(j, x);
  if (x->existence) making_json(j, x);
  cli_json_print(j);
}

/* ---- text ---- */
void explore_show_growth(const cli_explore *x, uint32_t from) {
  printf("%4s %10s %10s %11s %11s %10s %10s %10s\n", "", "e-nodes", "classes", "matches", "unions",
         "search ms", "apply ms", "rebuild ms");
  for (uint32_t i = from; i < x->iteration.n; i++) {
    const tarn_eg_iteration *it = &x->iteration.p[i];
    printf("%4u %10u %10u %11llu %11llu %10.3f %10.3f %10.3f\n", i + 1, it->nodes, it->classes,
           (unsigned long long)it->matches, (unsigned long long)it->unions, 1e3 * it->search,
           1e3 * it->apply, 1e3 * it->rebuild);
  }
}
void explore_show_size(const cli_explore *x) {
  if (x->stop) printf("stopped: %s; ", x->stop);
  printf("%u e-nodes, %u classes, %.3f s, %.1f MiB\n", x->n_nodes, x->n_classes, x->took,
         (double)x->peak_bytes / 1048576);
}
void explore_show_rules(const cli_explore *x, bool all) {
  printf("%-28s %11s %11s %11s %5s %10s %10s\n", "rule", "matches", "applied", "unions", "bans",
         "search ms", "apply ms");
  for (uint32_t i = 0; i < x->rule.n; i++) {
    const tarn_eg_rule_stats *c = &x->rule.p[i].count;
    if (all || c->matches || c->bans)
      printf("%-28s %11llu %11llu %11llu %5u %10.3f %10.3f\n", x->rule.p[i].name,
             (unsigned long long)c->matches, (unsigned long long)c->applied,
             (unsigned long long)c->unions, c->bans, 1e3 * c->search, 1e3 * c->apply);
  }
}
/* With sharing, where that says more than the trees: each class once over all roots. */
void explore_show_shared(const cli_explore *x) {
  const explore_choice *c = &x->choice;
  if (!c->shared) return;
  printf("with sharing %.15g%s; the cheapest tree, with sharing %.15g\n", c->dag,
         c->optimal ? " (optimal)" : "", c->tree_dag);
  for (uint32_t i = 0; i < x->shared.n && c->dag < c->tree_dag; i++)
    printf("%10s  %s\n", "", x->shared.p[i] ? x->shared.p[i] : "(too large to print)");
}
void explore_show_best(const cli_explore *x) {
  for (uint32_t i = 0; i < x->best.n; i++)
    printf("%10.15g  %s\n", x->best.p[i].cost,
           x->best.p[i].term ? x->best.p[i].term : "(too large to print)");
}
static void show_steps(const tarn_chain *c) {
  printf("  %s\n", c->from);
  for (uint32_t i = 0; i < c->n; i++) {
    const tarn_chain_step *s = &c->step[i];
    const char *back = s->forward ? "" : ", right to left";
    if (s->term) printf("= %s   by %s%s\n", s->term, s->rule, back);
    else printf("= … %s   by %s%s, in depth %u\n", s->part, s->rule, back, s->depth);
  }
}
void explore_show_making(const cli_explore *x) {
  if (!x->existence) return;
  if (!x->making.n) printf("\nnot in the graph: %s\n", x->existence);
  for (uint32_t i = 0; i < x->making.n; i++) {
    const explore_making *m = &x->making.p[i];
    if (m->rule) printf("  %s\n    => %s   by %s\n", m->left, m->right, m->rule);
    else if (!i) printf("\n%s is there since\n  %s   was given\n", x->existence, m->left);
  }
}
void explore_show_proof(const cli_explore *x) {
  if (x->proof_text) printf("%s\n", x->proof_text);
  if (!x->proof.chain.from) return;
  printf("%s in %u steps:\n", x->conflict ? "in conflict" : "proved", x->proof.chain.n);
  show_steps(&x->proof.chain);
  if (x->proof.n_lemma) printf("what its rules ask:\n");
  for (uint32_t i = 0; i < x->proof.n_lemma; i++) show_steps(&x->proof.lemma[i]);
}
