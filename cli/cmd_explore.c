/* tarn explore [FILE.term|MODEL]: saturate, and show how the e-graph grew, what the rules did, what was found. */
#include "cli/explore.h"
#include <string.h>

/* ---- options ---- */
void explore_options(tarn_ctx *cx, cli_explore *x) {
  if (!x->cost) x->cost = "size";
  if (strcmp(x->cost, "size") && strcmp(x->cost, "depth") && strcmp(x->cost, "none"))
    tarn_raise(cx, TARN_USAGE, "--cost %s: size, depth or none is expected", x->cost);
  if (x->scheduler && strcmp(x->scheduler, "simple") && strcmp(x->scheduler, "backoff"))
    tarn_raise(cx, TARN_USAGE, "--scheduler %s: simple or backoff is expected", x->scheduler);
  x->backoff = x->scheduler && !strcmp(x->scheduler, "backoff");
  if (!x->file && !x->prove[0])
    tarn_raise(cx, TARN_USAGE, "explore: a file is needed, or --prove A B (there is no interactive session yet)");
  if (x->free && !x->rules.n && !x->only_rules.n) tarn_raise(cx, TARN_USAGE, "--free needs --rules FILE");
  if (x->free && x->kernel) tarn_raise(cx, TARN_USAGE, "--free and --kernel exclude each other");
}

/* ---- JSON ---- */
static void iteration_json(cli_json *j, const tarn_eg_iteration *it) {
  cli_json_open(j, NULL, '{');
  cli_json_int(j, "nodes", it->nodes);
  cli_json_int(j, "classes", it->classes);
  cli_json_int(j, "matches", (int64_t)it->matches);
  cli_json_int(j, "applied", (int64_t)it->applied);
  cli_json_int(j, "unions", (int64_t)it->unions);
  cli_json_int(j, "banned", it->banned);
  cli_json_num(j, "search", it->search);
  cli_json_num(j, "apply", it->apply);
  cli_json_num(j, "rebuild", it->rebuild);
  cli_json_close(j, '}');
}
static void rule_json(cli_json *j, const tarn_sat_rule *r) {
  cli_json_open(j, NULL, '{');
  cli_json_str(j, "name", r->name);
  cli_json_str(j, "family", r->family);
  cli_json_int(j, "matches", (int64_t)r->count.matches);
  cli_json_int(j, "applied", (int64_t)r->count.applied);
  cli_json_int(j, "unions", (int64_t)r->count.unions);
  cli_json_int(j, "held", (int64_t)r->count.held);
  cli_json_int(j, "refused", (int64_t)r->count.refused);
  cli_json_int(j, "bans", r->count.bans);
  cli_json_num(j, "search", r->count.search);
  cli_json_num(j, "apply", r->count.apply);
  cli_json_close(j, '}');
}
static void proof_json(cli_json *j, const cli_explore *x) {
  if (!x->prove[0]) {
    cli_json_str(j, "proof", NULL);
    return;
  }
  cli_json_open(j, "proof", '{');
  cli_json_bool(j, "found", x->proved);
  if (x->proof_text) cli_json_str(j, "text", x->proof_text);
  if (x->proof_from) cli_json_str(j, "from", x->proof_from);
  if (x->proof_from) cli_json_open(j, "steps", '[');
  for (uint32_t i = 0; i < x->step.n; i++) {
    cli_json_open(j, NULL, '{');
    cli_json_str(j, "rule", x->step.p[i].rule);
    cli_json_bool(j, "forward", x->step.p[i].forward);
    cli_json_str(j, "term", x->step.p[i].term);
    cli_json_close(j, '}');
  }
  if (x->proof_from) cli_json_close(j, ']');
  cli_json_close(j, '}');
}
static void show_json(tarn_ctx *cx, const cli_explore *x) {
  cli_json *j = cli_json_new(cx);
  cli_json_str(j, "stop", x->stop);
  cli_json_num(j, "seconds", x->took);
  cli_json_int(j, "nodes", x->n_nodes);
  cli_json_int(j, "classes", x->n_classes);
  cli_json_int(j, "peak_bytes", (int64_t)x->peak_bytes);
  cli_json_open(j, "iterations", '[');
  for (uint32_t i = 0; i < x->iteration.n; i++) iteration_json(j, &x->iteration.p[i]);
  cli_json_close(j, ']');
  cli_json_open(j, "rules", '[');
  for (uint32_t i = 0; i < x->rule.n; i++) rule_json(j, &x->rule.p[i]);
  cli_json_close(j, ']');
  cli_json_open(j, "best", '[');
  for (uint32_t i = 0; i < x->best.n; i++) {
    cli_json_open(j, NULL, '{');
    cli_json_num(j, "cost", x->best.p[i].cost);
    cli_json_str(j, "term", x->best.p[i].term);
    cli_json_close(j, '}');
  }
  cli_json_close(j, ']');
  if (x->goal) cli_json_bool(j, "goal", x->goal_reached);
  proof_json(j, x);
  cli_json_print(j);
}

/* ---- text ---- */
static void show_growth(const cli_explore *x) {
  printf("%4s %10s %10s %11s %11s %10s %10s %10s\n", "", "e-nodes", "classes", "matches", "unions", "search ms",
         "apply ms", "rebuild ms");
  for (uint32_t i = 0; i < x->iteration.n; i++) {
    const tarn_eg_iteration *it = &x->iteration.p[i];
    printf("%4u %10u %10u %11llu %11llu %10.3f %10.3f %10.3f\n", i + 1, it->nodes, it->classes,
           (unsigned long long)it->matches, (unsigned long long)it->unions, 1e3 * it->search, 1e3 * it->apply,
           1e3 * it->rebuild);
  }
  printf("stopped: %s; %u e-nodes, %u classes, %.3f s, %.1f MiB\n", x->stop, x->n_nodes, x->n_classes, x->took,
         (double)x->peak_bytes / 1048576);
}
static void show_rules(const cli_explore *x) {
  printf("\n%-28s %11s %11s %11s %5s %10s %10s\n", "rule", "matches", "applied", "unions", "bans", "search ms", "apply ms");
  for (uint32_t i = 0; i < x->rule.n; i++) {
    const tarn_eg_rule_stats *c = &x->rule.p[i].count;
    printf("%-28s %11llu %11llu %11llu %5u %10.3f %10.3f\n", x->rule.p[i].name, (unsigned long long)c->matches,
           (unsigned long long)c->applied, (unsigned long long)c->unions, c->bans, 1e3 * c->search, 1e3 * c->apply);
  }
}
static void show_proof(const cli_explore *x) {
  if (!x->prove[0]) return;
  if (!x->proved) printf("\nnot proved\n");
  if (x->proof_text) printf("\n%s\n", x->proof_text);
  if (!x->proof_from) return;
  printf("\nproved in %u steps:\n  %s\n", x->step.n, x->proof_from);
  for (uint32_t i = 0; i < x->step.n; i++)
    printf("= %s   by %s%s\n", x->step.p[i].term, x->step.p[i].rule, x->step.p[i].forward ? "" : ", right to left");
}
static void show(const cli_explore *x) {
  show_growth(x);
  show_rules(x);
  if (x->best.n) printf("\nleast %s:\n", x->cost);
  for (uint32_t i = 0; i < x->best.n; i++)
    printf("%10.15g  %s\n", x->best.p[i].cost, x->best.p[i].term ? x->best.p[i].term : "(too large to print)");
  if (x->goal) printf("\ngoal %s\n", x->goal_reached ? "reached" : "not reached");
  show_proof(x);
}

/* Growth of the graph, the rules and what was found. */
static void write_page(tarn_ctx *cx, const cli_explore *x) {
  static const char *const growth[] = {"iteration", "e-nodes", "", "classes", "matches", "search ms", "apply ms", "rebuild ms"};
  static const char *const rules[] = {"rule", "matches", "applied", "unions", "search ms", "apply ms"};
  if (!x->html) return;
  FILE *f = cli_page_open(cx, x->html, x->file ? x->file : x->prove[0]);
  fprintf(f, "<p>Stopped: %s. %u e-nodes, %u classes, %.3f s, %.1f MiB.</p>\n", x->stop, x->n_nodes, x->n_classes, x->took,
          (double)x->peak_bytes / 1048576);
  cli_page_head(f, growth, 8);
  for (uint32_t i = 0; i < x->iteration.n; i++) {
    const tarn_eg_iteration *it = &x->iteration.p[i];
    fprintf(f, "<tr><td>%u</td><td>%u</td>", i + 1, it->nodes);
    cli_page_bar(f, (double)it->nodes / (x->n_nodes ? x->n_nodes : 1));
    fprintf(f, "<td>%u</td><td>%llu</td><td>%.3f</td><td>%.3f</td><td>%.3f</td></tr>\n", it->classes,
            (unsigned long long)it->matches, 1e3 * it->search, 1e3 * it->apply, 1e3 * it->rebuild);
  }
  fputs("</table>\n", f);
  cli_page_head(f, rules, 6);
  for (uint32_t i = 0; i < x->rule.n; i++) {
    const tarn_eg_rule_stats *c = &x->rule.p[i].count;
    fputs("<tr><td>", f);
    cli_page_text(f, x->rule.p[i].name);
    fprintf(f, "</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%.3f</td><td>%.3f</td></tr>\n",
            (unsigned long long)c->matches, (unsigned long long)c->applied, (unsigned long long)c->unions, 1e3 * c->search,
            1e3 * c->apply);
  }
  fputs("</table>\n", f);
  for (uint32_t i = 0; i < x->best.n; i++) {
    fprintf(f, "<p>Least %s: %.15g</p><pre>", x->cost, x->best.p[i].cost);
    cli_page_text(f, x->best.p[i].term ? x->best.p[i].term : "(too large to print)");
    fputs("</pre>\n", f);
  }
  cli_page_close(cx, f, x->html);
}

/* Free chains: (proof FROM (step RULE forward|backward TERM)…). */
static void write_proof(tarn_ctx *cx, const cli_explore *x) {
  if (!x->proof_file || !x->proved) return;
  FILE *f = cli_open(cx, x->proof_file);
  if (x->proof_text) fprintf(f, "%s\n", x->proof_text);
  else {
    fprintf(f, "(proof %s", x->proof_from);
    for (uint32_t i = 0; i < x->step.n; i++)
      fprintf(f, "\n  (step %s %s %s)", x->step.p[i].rule, x->step.p[i].forward ? "forward" : "backward",
              x->step.p[i].term);
    fprintf(f, ")\n");
  }
  cli_close(cx, f, x->proof_file);
}

/* 1: the graph is saturated without it; 4: a limit struck first. */
static int verdict(const cli_explore *x) {
  bool failed = (x->goal && !x->goal_reached) || (x->prove[0] && !x->proved);
  if (!failed) return 0;
  return strcmp(x->stop, tarn_eg_stop_name(TARN_EG_STOP_SATURATED)) ? TARN_NO_RESULT : TARN_NO;
}

int tarn_cmd_explore(tarn_ctx *cx, int argc, char **argv) {
  cli_explore x = {.iters = 100, .dot_classes = 200};
  cli_list words = {0};
  const char *usage = "explore [FILE.term|MODEL] [options]";
  const cli_opt opts[] = {
      {"--rules", NULL, CLI_LIST, &x.rules, "FILE", "add the rules of a file"},
      {"--no-rules", NULL, CLI_LIST, &x.no_rules, "FAMILY", "leave out a family or a rule"},
      {"--only-rules", NULL, CLI_LIST, &x.only_rules, "FILE", "these rules instead of the shipped ones"},
      {"--free", NULL, CLI_FLAG, &x.free, NULL, "operators of any name, no types; FILE.term may hold several terms"},
      {"--kernel", NULL, CLI_FLAG, &x.kernel, NULL, "terms in kernel form and the rules of compile"},
      {"--goal", NULL, CLI_STR, &x.goal, "T", "stop when the first root equals T"},
      {"--prove", NULL, CLI_PAIR, x.prove, "A B", "stop when A equals B, and show the rewrites"},
      {"--explain", NULL, CLI_STR, &x.proof_file, "FILE", "write the proof there (typed: for tarn proof check)"},
      {"--count-matches", NULL, CLI_FLAG, &x.count_matches, NULL, "count every match of an iteration, not only new ones"},
      {"--scheduler", NULL, CLI_STR, &x.scheduler, "NAME", "simple (default) or backoff"},
      {"--match-limit", NULL, CLI_U32, &x.match_limit, "N", "backoff: matches before a ban (default 1000)"},
      {"--ban-length", NULL, CLI_U32, &x.ban_length, "N", "backoff: iterations of the first ban (default 5)"},
      {"--nodes", NULL, CLI_UINT, &x.nodes, "N", "limit of e-nodes (default 200,000; with --free 1,000,000)"},
      {"--iters", NULL, CLI_U32, &x.iters, "N", "limit of iterations (default 100)"},
      {"--bytes", NULL, CLI_UINT, &x.bytes, "N", "limit of memory (default: none)"},
      {"--seconds", NULL, CLI_REAL, &x.seconds, "S", "limit of time (default: none)"},
      {"--threads", NULL, CLI_THREADS, &x.threads, "T", "threads that search (default 1); changes no result"},
      {"--numerics", NULL, CLI_STR, &x.numerics, "CLASS", "exact, reassoc (default) or approx"},
      {"--hw", NULL, CLI_STR, &x.hw, "NAME|FILE", "description whose demands exploratory rules serve"},
      {"--shape", NULL, CLI_LIST, &x.shapes, "NAME=DIMS", "bind a dynamic shape of MODEL"},
      {"--cost", NULL, CLI_STR, &x.cost, "NAME", "what best means: size (default), depth, none"},
      {"--html", NULL, CLI_STR, &x.html, "FILE", "a page with growth, rules and the best terms"},
      {"--dot", NULL, CLI_STR, &x.dot, "FILE", "the e-graph for Graphviz"},
      {"--dot-classes", NULL, CLI_U32, &x.dot_classes, "N", "how many classes of it (default 200; 0: all)"},
      {"--egraph", NULL, CLI_STR, &x.egraph, "FILE", "the e-graph as egraph-serialize JSON"},
      {"--json", NULL, CLI_FLAG, &x.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n > 1) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  x.file = words.n ? words.p[0] : NULL;
  explore_options(cx, &x);
  if (x.free) explore_free(cx, &x);
  else explore_typed(cx, &x);
  write_proof(cx, &x);
  write_page(cx, &x);
  if (x.json) show_json(cx, &x);
  else show(&x);
  return verdict(&x);
}
