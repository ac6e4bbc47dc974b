/* tarn explore [FILE.term|MODEL]: saturate, and show how the e-graph grew, what the rules did, what
 * was found. */
#include "cli/explore.h"
#include <string.h>
#include <unistd.h>

#define RULES 0.85 /* of --seconds; the rest is for what is chosen and written */

/* ---- options ---- */
void explore_options(tarn_ctx *cx, cli_explore *x) {
  if (!x->cost) x->cost = "size";
  if (strcmp(x->cost, "size") && strcmp(x->cost, "depth") && strcmp(x->cost, "none") &&
      !strchr(x->cost, '='))
    tarn_raise(cx, TARN_USAGE, "--cost %s: size, depth, none or OPERATOR=COST,… is expected",
               x->cost);
  if (x->scheduler && strcmp(x->scheduler, "simple") && strcmp(x->scheduler, "backoff"))
    tarn_raise(cx, TARN_USAGE, "--scheduler %s: simple or backoff is expected", x->scheduler);
  x->backoff = x->scheduler && !strcmp(x->scheduler, "backoff");
  if (x->session) return;
  if (!x->file && !x->prove[0])
    tarn_raise(cx, TARN_USAGE, "explore: a file is needed, --prove A B, or - for a session");
  if (x->free && !x->rules.n && !x->only_rules.n)
    tarn_raise(cx, TARN_USAGE, "--free needs --rules FILE");
  if (x->proof_file && !x->prove[0] && !x->free)
    tarn_raise(cx, TARN_USAGE, "--explain needs --prove A B");
  if (x->existence && !x->free) tarn_raise(cx, TARN_USAGE, "--existence goes with --free");
  if (x->free && x->kernel) tarn_raise(cx, TARN_USAGE, "--free and --kernel exclude each other");
}

static void write_proof(tarn_ctx *cx, const cli_explore *x) {
  if (!x->proof_file || !(x->proof_text || x->proof.chain.from)) return;
  if (!x->proof_text && !x->proof.chain.whole)
    tarn_raise(cx, TARN_NO_RESULT, "%s: not written, the chain is too long", x->proof_file);
  FILE *f = cli_open(cx, x->proof_file);
  tarn_buf b = {.cx = cx};
  if (!x->proof_text) tarn_free_proof_print(&b, &x->proof);
  fprintf(f, "%s", x->proof_text ? x->proof_text : b.p);
  if (x->proof_text) fprintf(f, "\n");
  cli_close(cx, f, x->proof_file);
}

static void show(const cli_explore *x) {
  explore_show_growth(x, 0);
  explore_show_size(x);
  printf("\n");
  explore_show_rules(x, true);
  if (x->conflict) printf("\n");
  if (x->best.n) printf("\nleast %s:\n", x->cost);
  explore_show_best(x);
  explore_show_shared(x);
  if (x->goal) printf("\ngoal %s\n", x->goal_reached ? "reached" : "not reached");
  if (x->prove[0] && !x->conflict) printf(x->proved ? "\n" : "\nnot proved\n");
  explore_show_making(x);
  explore_show_proof(x);
}

/* 1: the graph is saturated without it; 4: a limit struck first. */
static int verdict(const cli_explore *x) {
  bool failed = (x->goal && !x->goal_reached) || (x->prove[0] && !x->proved) ||
                (x->existence && !x->making.n);
  if (!failed) return 0;
  return strcmp(x->stop, tarn_eg_stop_name(TARN_EG_STOP_SATURATED)) ? TARN_NO_RESULT : TARN_NO;
}

int tarn_cmd_explore(tarn_ctx *cx, int argc, char **argv) {
  cli_explore x = {.iters = 100, .dot_classes = 200, .html_classes = 2000};
  cli_list words = {0};
  const char *usage = "explore [FILE.term|MODEL|FILE.egg|-] [options]";
  const cli_opt opts[] = {
      {"--rules", NULL, CLI_LIST, &x.rules, "FILE", "add the rules of a file"},
      {"--no-rules", NULL, CLI_LIST, &x.no_rules, "FAMILY", "leave out a family or a rule"},
      {"--only-rules", NULL, CLI_LIST, &x.only_rules, "FILE",
       "these rules instead of the shipped ones"},
      {"--free", NULL, CLI_FLAG, &x.free, NULL,
       "operators of any name, no types; FILE may hold several terms, or egraph-serialize JSON"},
      {"--meet", NULL, CLI_STR, &x.meet, "FILE",
       "--free: only what the e-graph has in common with this one"},
      {"--kernel", NULL, CLI_FLAG, &x.kernel, NULL,
       "terms in kernel form and the rules of compile"},
      {"--goal", NULL, CLI_STR, &x.goal, "T", "stop when the first root equals T"},
      {"--prove", NULL, CLI_PAIR, x.prove, "A B", "stop when A equals B, and show the rewrites"},
      {"--existence", NULL, CLI_STR, &x.existence, "T",
       "--free: why a term or pattern is in the graph, back to what was given"},
      {"--explain", NULL, CLI_STR, &x.proof_file, "FILE",
       "write the proof there (--free alone: of the least term)"},
      {"--count-matches", NULL, CLI_FLAG, &x.count_matches, NULL,
       "count every match of an iteration, not only new ones"},
      {"--scheduler", NULL, CLI_STR, &x.scheduler, "simple|backoff", "default: simple"},
      {"--match-limit", NULL, CLI_U32, &x.match_limit, "N",
       "backoff: matches before a ban (default 1000)"},
      {"--ban-length", NULL, CLI_U32, &x.ban_length, "N",
       "backoff: iterations of the first ban (default 5)"},
      {"--nodes", NULL, CLI_UINT, &x.nodes, "N",
       "limit of e-nodes (default 200,000; with --free 1,000,000)"},
      {"--iters", NULL, CLI_U32, &x.iters, "N", "limit of iterations (default 100)"},
      {"--bytes", NULL, CLI_UINT, &x.bytes, "N", "limit of memory (default 4 GiB)"},
      {"--seconds", NULL, CLI_REAL, &x.seconds, "S",
       "limit of time (default: none); rules have 0.85 of it"},
      {"--threads", NULL, CLI_THREADS, &x.threads, "T",
       "threads for searching (default 1); results stay the same"},
      {"--numerics", NULL, CLI_STR, &x.numerics, "exact|reassoc|approx", "default: reassoc"},
      {"--hw", NULL, CLI_STR, &x.hw, "NAME|FILE",
       "description whose intrinsics exploratory rules serve"},
      {"--shape", NULL, CLI_LIST, &x.shapes, "NAME=DIMS", "bind a dynamic shape of MODEL"},
      CLI_SET(x),
      {"--cost", NULL, CLI_STR, &x.cost, "NAME",
       "cost of a term: size (default), depth, none, or OPERATOR=COST,… (others cost 1)"},
      {"--html", NULL, CLI_STR, &x.html, "FILE",
       "a page: growth, rules, the best terms, the e-graph"},
      {"--html-classes", NULL, CLI_U32, &x.html_classes, "N",
       "number of classes in it (default 2,000; 0: all)"},
      {"--dot", NULL, CLI_STR, &x.dot, "FILE", "the e-graph for Graphviz"},
      {"--dot-classes", NULL, CLI_U32, &x.dot_classes, "N",
       "number of classes in it (default 200; 0: all)"},
      {"--egraph", NULL, CLI_STR, &x.egraph, "FILE", "the e-graph as egraph-serialize JSON"},
      {"--json", NULL, CLI_FLAG, &x.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n > 1 && (!x.free || x.meet)) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  x.file = words.n ? words.p[0] : NULL;
  for (uint32_t i = 1; i < words.n; i++) tarn_push(cx, &x.more, words.p[i]);
  if (x.meet && (!x.free || !x.file))
    tarn_raise(cx, TARN_USAGE, "--meet goes with --free and an e-graph");
  x.session = x.file ? !strcmp(x.file, "-") : !x.prove[0] && isatty(STDIN_FILENO);
  if (!x.session) {
    cli_limit(cx, x.seconds);
    cli_ends_early(cx);
  }
  if (explore_is_egg(x.file)) return explore_egg(cx, &x);
  explore_options(cx, &x);
  if (x.session) return explore_session(cx, &x);
  x.seconds *= RULES;
  x.interrupted = cli_interrupted;
  if (x.free) explore_free(cx, &x);
  else explore_typed(cx, &x);
  write_proof(cx, &x);
  if (x.json) explore_show_json(cx, &x);
  else show(&x);
  if (x.conflict) tarn_raise(cx, TARN_BAD_INPUT, "explore: %s", x.conflict);
  return verdict(&x);
}
