/* --html: one page that opens from disk and fetches nothing. Growth, rules and terms are plain; the
 * e-graph is that of lab/page.h. */
#include "cli/explore.h"
#include "lab/page.h"
#include <math.h>
#include <string.h>

/* ---- growth ---- */
static double height(double v, double most) {
  return 200 - 180 * log10(v + 1) / log10(most + 1 < 10 ? 10 : most + 1);
}
static void line(FILE *f, const cli_explore *x, bool classes, double most) {
  uint32_t n = x->iteration.n;
  fprintf(f, "<polyline class=\"%s\" points=\"", classes ? "classes" : "nodes");
  for (uint32_t i = 0; i < n; i++) {
    double v = classes ? x->iteration.p[i].classes : x->iteration.p[i].nodes;
    fprintf(f, "%.1f,%.1f ", 50 + 600.0 * i / (n > 1 ? n - 1 : 1), height(v, most));
  }
  fputs("\"/>\n", f);
}
static void plot(FILE *f, const cli_explore *x) {
  double most = 1;
  for (uint32_t i = 0; i < x->iteration.n; i++) most = fmax(most, x->iteration.p[i].nodes);
  fputs("<svg id=\"growth\" viewBox=\"0 0 660 230\">\n", f);
  for (double v = 1; v <= most; v *= 10)
    fprintf(f, "<path d=\"M50 %.1fH650\"/><text x=\"45\" y=\"%.1f\">%.0f</text>\n", height(v, most),
            height(v, most) + 4, v);
  line(f, x, false, most), line(f, x, true, most);
  fprintf(f,
          "<text x=\"650\" y=\"222\">%u iterations</text><text class=\"nodes\" x=\"130\" "
          "y=\"222\">e-nodes</text>"
          "<text class=\"classes\" x=\"200\" y=\"222\">classes</text></svg>\n",
          x->iteration.n);
}
static void growth(FILE *f, const cli_explore *x) {
  static const char *const head[] = {"iteration", "e-nodes",  "classes",    "matches", "unions",
                                     "search ms", "apply ms", "rebuild ms", "banned"};
  plot(f, x);
  fputs("<details><summary>iteration by iteration</summary>\n", f);
  cli_page_head(f, head, 9);
  for (uint32_t i = 0; i < x->iteration.n; i++) {
    const tarn_eg_iteration *it = &x->iteration.p[i];
    fprintf(f,
            "<tr><td>%u</td><td>%u</td><td>%u</td><td>%llu</td><td>%llu</td><td>%.3f</td><td>%.3f</"
            "td><td>%.3f</td><td>%u</"
            "td></tr>\n",
            i + 1, it->nodes, it->classes, (unsigned long long)it->matches,
            (unsigned long long)it->unions, 1e3 * it->search, 1e3 * it->apply, 1e3 * it->rebuild,
            it->banned);
  }
  fputs("</table></details>\n", f);
}
static void rules(FILE *f, const cli_explore *x) {
  static const char *const head[] = {"rule", "matches",   "applied", "unions",
                                     "bans", "search ms", "apply ms"};
  cli_page_head(f, head, 7);
  for (uint32_t i = 0; i < x->rule.n; i++) {
    const tarn_eg_rule_stats *c = &x->rule.p[i].count;
    fputs("<tr><td>", f);
    cli_page_text(f, x->rule.p[i].name);
    fprintf(
        f,
        "</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%u</td><td>%.3f</td><td>%.3f</td></tr>\n",
        (unsigned long long)c->matches, (unsigned long long)c->applied,
        (unsigned long long)c->unions, c->bans, 1e3 * c->search, 1e3 * c->apply);
  }
  fputs("</table>\n", f);
}
static void terms(FILE *f, const cli_explore *x) {
  for (uint32_t i = 0; i < x->best.n; i++) {
    fprintf(f, "<p>Least %s: %.15g</p><pre>", x->cost, x->best.p[i].cost);
    cli_page_text(f, x->best.p[i].term ? x->best.p[i].term : "(too large to print)");
    fputs("</pre>\n", f);
  }
}

static tarn_page_graph shown(const cli_explore *x, const explore_view *v) {
  return (tarn_page_graph){v->g,    v->root,  v->n,   x->choice.pick, x->html_classes,
                           v->name, v->facts, v->why, v->user};
}
static void graph(tarn_ctx *cx, FILE *f, const cli_explore *x, const explore_view *v) {
  tarn_buf b = {.cx = cx};
  tarn_page_graph p = shown(x, v);
  tarn_page_graph_print(&p, &b);
  fwrite(b.p, 1, b.n, f);
}

static const char style[] =
    "<style>body{max-width:none}#growth{width:46em;max-width:100%}#growth path{stroke:#ddd}#growth "
    "text{font-size:11px;text-anchor:end}"
    "polyline{fill:none;stroke-width:2}polyline.nodes{stroke:#4878a8}polyline.classes{stroke:#"
    "c07030}text.nodes{fill:#4878a8}"
    "text.classes{fill:#c07030}</style>\n";

void explore_page(tarn_ctx *cx, const cli_explore *x, const explore_view *v) {
  if (!x->html) return;
  FILE *f = cli_page_open(cx, x->html,
                          x->file       ? x->file
                          : x->prove[0] ? x->prove[0]
                                        : "tarn explore");
  fputs(style, f), fputs(tarn_page_graph_style(), f);
  fprintf(f, "<p>Stopped: %s. %u e-nodes, %u classes, %.3f s, %.1f MiB.</p>\n",
          x->stop ? x->stop : "not run", x->n_nodes, x->n_classes, x->took,
          (double)x->peak_bytes / 1048576);
  fputs("<h2>Growth</h2>\n", f), growth(f, x);
  fputs("<h2>Terms</h2>\n", f), terms(f, x);
  fputs("<h2>The e-graph</h2>\n", f), graph(cx, f, x, v);
  fputs("<h2>Rules</h2>\n", f), rules(f, x);
  cli_page_close(cx, f, x->html);
}
