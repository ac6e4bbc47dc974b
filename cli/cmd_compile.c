/* tarn compile MODEL */
#include "cli/timing.h"
#include <dirent.h>
#include <string.h>
#include <unistd.h>

static const char *folder_of(tarn_ctx *cx, const char *model) {
  const char *base = strrchr(model, '/');
  base = base ? base + 1 : model;
  const char *dot = strrchr(base, '.');
  return tarn_format(cx, "%.*s", (int)(dot && dot != base ? (size_t)(dot - base) : strlen(base)),
                     base);
}
static void show(tarn_ctx *cx, const tarn_compiled *r) {
  const tarn_sat_report *s = r->rewriting;
  double took = r->seconds.import + r->seconds.saturate + r->seconds.extract + r->seconds.lower;
  fprintf(
      stderr,
      "%s: %u kernels, %u copies, predicted %.4g ms; %u e-nodes in %u iterations (%s); %.2f s\n",
      tarn_shown(cx, r->o->dir), r->choice.kernels, r->choice.copies, 1e3 * r->choice.price,
      s->nodes, s->iterations, s->stop, took);
}
/* Of a program of several machines: who runs what. */
static void show_machines(tarn_ctx *cx, const tarn_compiled *r) {
  const tarn_kprog *p = r->kernels;
  uint32_t on[2] = {0};
  if (p->machines.n < 2) return;
  for (uint32_t i = 0; i < p->nker; i++)
    on[p->machines.hw[p->ker[i].machine] == r->o->hw] += !p->ker[i].copy;
  fprintf(stderr, "%s: %u kernels on %s, %u on %s; --dump offload says why\n",
          tarn_shown(cx, r->o->dir), on[1], r->o->hw->name, on[0], r->o->hw->host->name);
}
/* Of a rule that is not proved: what was tried here. */
static void show_trust(tarn_ctx *cx, const tarn_compiled *r, uint32_t rule) {
  const tarn_sat_use *u = &r->uses[rule];
  tarn_rule_info x = tarn_ruleset_at(r->rules, rule);
  if (r->trust[rule] == TARN_RULE_SAMPLED)
    fprintf(stderr,
            "rule %s: only sampled, not proved for all sizes; evaluated in %u of its %u "
            "different steps here\n",
            tarn_shown(cx, x.name), u->replayed, u->replayed + u->skipped + u->left);
  if (r->trust[rule] == TARN_RULE_REFUTED)
    fprintf(stderr,
            "tarn: warning: rule %s (%s:%u) is wrong elsewhere: tarn rules check shows a "
            "counterexample\n",
            tarn_shown(cx, x.name), tarn_shown(cx, x.file), x.line);
}
/* What rules that were asked for did; why, where that is nothing. */
static void show_rules(tarn_ctx *cx, const tarn_compiled *r) {
  const tarn_sat_report *s = r->rewriting;
  for (uint32_t i = 0; i < s->nrule; i++) {
    const tarn_eg_rule_stats *n = &s->rule[i].count;
    if (!tarn_ruleset_at(r->rules, s->rule[i].number).asked || !n->unions) continue;
    fprintf(stderr, "rule %s: %llu matches, %llu applied%s, %sin the chosen program\n",
            tarn_shown(cx, s->rule[i].name), (unsigned long long)n->matches,
            (unsigned long long)n->applied,
            tarn_ruleset_unphased(r->rules, s->rule[i].number) ? " before the first phase" : "",
            r->uses[s->rule[i].number].steps ? "" : "not ");
    if (r->uses[s->rule[i].number].steps) show_trust(cx, r, s->rule[i].number);
  }
  for (uint32_t i = 0; i < s->nidle; i++) {
    tarn_rule_info x = tarn_ruleset_at(r->rules, s->idle[i].number);
    fprintf(stderr, "tarn: warning: rule %s (%s:%u) did nothing: %s\n", tarn_shown(cx, x.name),
            tarn_shown(cx, x.file), x.line, tarn_shown(cx, s->idle[i].why));
  }
}
static void show_unmeasured(tarn_ctx *cx, const tarn_compiled *r) {
  const tarn_kgraph_report *g = &r->choice;
  for (uint32_t i = 0; i < g->nunmeasured; i++) {
    const tarn_written *w = g->unmeasured[i].w;
    tarn_buf b = {.cx = cx};
    for (uint32_t k = 0; k < w->nsize; k++)
      tarn_buf_fmt(&b, "%s%s = %lld", k ? ", " : " at ", w->size[k],
                   (long long)g->unmeasured[i].size[k]);
    fprintf(stderr,
            "tarn: warning: %s:%u: the price of the kernel %s%s is not measured yet, so nothing "
            "calls it; tarn tune --rules FILE --db STORE measures it\n",
            tarn_shown(cx, w->at->file), w->at->line, tarn_shown(cx, w->name), b.p ? b.p : "");
  }
}
static void show_page(tarn_ctx *cx, const cli_compile *c, const tarn_compiled *r) {
  size_t n;
  cli_report_page(cx, r->report, r->report_n, tarn_read_file(cx, c->explain, &n), NULL, c->html);
}
/* Budgets of memory, and what they cost. */
static void show_room(const tarn_compiled *r) {
  if (r->nbudget < 2) return;
  fprintf(stderr, "%12s %12s %12s %12s %12s\n", "budget", "workspace", "predicted ms", "MB moved",
          "Mflop");
  for (uint32_t i = 0; i < r->nbudget; i++) {
    const tarn_budgeted *x = &r->budget[i];
    fprintf(stderr, "%12lld %12lld %12.4g %12.4g %12.4g%s\n", (long long)x->budget,
            (long long)x->bytes, 1e3 * x->seconds, 1e-6 * x->traffic, 1e-6 * x->flops,
            x->bytes > x->budget ? "  does not fit" : "");
  }
}
/* A folder that no compile wrote. */
static bool holds_others(tarn_ctx *cx, const char *dir) {
  DIR *d = opendir(dir);
  bool any = false;
  for (const struct dirent *e; d && (e = readdir(d));)
    any |= strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  if (d) closedir(d);
  return any && access(tarn_format(cx, "%s/report.json", dir), F_OK);
}
int tarn_cmd_compile(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0};
  const char *usage = "compile MODEL [-o DIR] [options]";
  if (cli_parse(cx, usage, cli_compile_options(cx, &c), argc, argv, &words)) return 0;
  if (words.n != 1) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  c.model = words.p[0];
  if (!c.dir) {
    c.dir = folder_of(cx, c.model);
    if (!strcmp(c.dir, c.model)) c.dir = tarn_format(cx, "%s.out", c.dir);
    if (holds_others(cx, c.dir))
      tarn_raise(cx, TARN_USAGE, "%s holds other files: -o says where to write", c.dir);
  }
  tarn_lang *L = tarn_lang_new(cx);
  if (c.html && !c.explain)
    c.explain = tarn_format(cx, "%s/chain", cli_scratch_folder(cx, "the chain"));
  const tarn_compiled *r = tarn_compile(L, cli_options(L, &c));
  if (c.html) show_page(cx, &c, r);
  if (c.json) fwrite(r->report, 1, r->report_n, stdout);
  if (!c.json) show(cx, r);
  show_rules(cx, r);
  show_unmeasured(cx, r);
  if (c.json) return 0;
  show_machines(cx, r);
  show_room(r);
  return 0;
}
