/* --html. */
#include "cli/explore.h"

/* Growth of the graph, the rules and what was found. */
void explore_page(tarn_ctx *cx, const cli_explore *x, const explore_view *v) {
  (void)v;
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

