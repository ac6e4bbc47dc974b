/* --html: one page that opens from disk and fetches nothing. Growth, rules and terms are plain; the
 * e-graph is drawn by page.js from what stands in the page as JSON. */
#include "cli/explore.h"
#include <math.h>
#include <string.h>

extern const tarn_embedded cli_page_js[];

/* Reasons are worked out for this many e-nodes, and e-nodes of one class are held up to this many.
 */
enum { REASONS = 400, NODES_OF_CLASS = 200 };

/* ---- growth ---- */
static double height(double v, double most) {
  return 200 - 180 * log10(v + 1) / log10(most + 1 < 10 ? 10 : most + 1);
}
static void line(FILE *f, const cli_explore *x, bool classes, double most) {
  uint32_t n = x->iteration.n;
  fprintf(f, "<polyline class=\"%s\" points=\"", classes ? "classes" : "nodes");
  for (uint32_t i = 0; i < n; i++) {
    double v = classes ? x->iteration.p[i].classes : x->iteration.p[i].nodes;
    fprintf(f, "%.1f,%.1f ", 50 + 600.0 * (i + 1) / (n + 1), height(v, most));
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

/* ---- the e-graph as JSON ---- */
typedef struct page {
  tarn_ctx *cx;
  const cli_explore *x;
  const explore_view *v;
  TARN_VEC(uint32_t) order; /* classes, those of the roots first */
  bool *chosen;             /* by class: is it in one of the least terms? */
  uint32_t reasons;
} page;

static uint32_t pick_of(const page *p, uint32_t c) {
  return p->x->choice.pick && p->chosen[c] ? p->x->choice.pick[c] : TARN_NONE;
}
/* Breadth first, the classes of the least terms before others. */
static void reach(page *p, bool *seen, bool only_chosen) {
  for (uint32_t i = 0; i < p->order.n; i++)
    for (uint32_t n = tarn_eg_next_node(p->v->g, p->order.p[i], TARN_NONE); n != TARN_NONE;
         n = tarn_eg_next_node(p->v->g, p->order.p[i], n)) {
      if (only_chosen && n != pick_of(p, p->order.p[i])) continue;
      tarn_eg_node e = tarn_eg_node_at(p->v->g, n);
      for (uint32_t k = 0; k < e.n; k++) {
        uint32_t c = tarn_eg_find(p->v->g, e.kids[k]);
        if (only_chosen) p->chosen[c] = true;
        if (!seen[c]) seen[c] = true, tarn_push(p->cx, &p->order, c);
      }
    }
}
static void sort_out(page *p) {
  tarn_egraph *g = p->v->g;
  bool *seen = TARN_ARRAY(p->cx, bool, tarn_eg_id_count(g) + 1);
  p->chosen = TARN_ARRAY(p->cx, bool, tarn_eg_id_count(g) + 1);
  for (uint32_t i = 0; i < p->v->n; i++) {
    uint32_t c = tarn_eg_find(g, p->v->root[i]);
    p->chosen[c] = true;
    if (!seen[c]) seen[c] = true, tarn_push(p->cx, &p->order, c);
  }
  if (p->x->choice.pick) reach(p, seen, true);
  reach(p, seen, false);
  for (uint32_t c = tarn_eg_next_class(g, TARN_NONE); c != TARN_NONE; c = tarn_eg_next_class(g, c))
    if (!seen[c]) tarn_push(p->cx, &p->order, c);
}

/* The rules of the chain between two e-nodes of a class, in words. */
static void free_proof(void *p) { tarn_eg_proof_free(p); }
static const char *reason(page *p, uint32_t first, uint32_t node) {
  if (p->reasons == REASONS) return NULL;
  p->reasons++;
  tarn_eg_proof *q = tarn_eg_explain(p->v->g, first, node);
  if (!q) {
    tarn_eg_clear_status(p->v->g);
    return NULL;
  }
  tarn_defer(p->cx, free_proof, q);
  tarn_eg_lemma l = tarn_eg_proof_lemma(q, tarn_eg_proof_lemmas(q) - 1);
  tarn_buf b = {.cx = p->cx};
  for (uint32_t i = 0; i < l.n && i < 12; i++)
    tarn_buf_fmt(&b, "%s%s", i ? ", " : "",
                 p->v->why(p->v->user, tarn_eg_proof_step(q, l.first + i).rule));
  if (l.n > 12) tarn_buf_fmt(&b, " and %u more", l.n - 12);
  return b.n ? b.p : NULL;
}
static void node_json(page *p, tarn_json *j, uint32_t first, uint32_t node) {
  char name[256];
  tarn_eg_node e = tarn_eg_node_at(p->v->g, node);
  p->v->name(p->v->user, e.op, e.payload, name, sizeof name);
  tarn_json_open(j, NULL, '{');
  tarn_json_str(j, "op", name);
  tarn_json_open(j, "kids", '[');
  for (uint32_t i = 0; i < e.n; i++)
    tarn_json_int(j, NULL, tarn_eg_find(p->v->g, tarn_eg_node_at(p->v->g, node).kids[i]));
  tarn_json_close(j, ']');
  const char *why = node == first ? NULL : reason(p, first, node);
  if (why) tarn_json_str(j, "why", why);
  tarn_json_close(j, '}');
}
static void class_json(page *p, tarn_json *j, uint32_t c) {
  tarn_buf b = {.cx = p->cx};
  uint32_t k = 0, left = 0, chosen = TARN_NONE, first = tarn_eg_next_node(p->v->g, c, TARN_NONE),
           pick = pick_of(p, c);
  p->v->facts(p->v->user, c, &b);
  tarn_json_open(j, NULL, '{');
  tarn_json_int(j, "id", c);
  if (b.n) tarn_json_str(j, "facts", b.p);
  tarn_json_open(j, "nodes", '[');
  if (pick != TARN_NONE)
    chosen = 0, k = 1, node_json(p, j, first, pick); /* the chosen one stands first */
  for (uint32_t n = first; n != TARN_NONE; n = tarn_eg_next_node(p->v->g, c, n)) {
    if (n == pick) continue;
    if (k++ < NODES_OF_CLASS) node_json(p, j, first, n);
    else left++;
  }
  tarn_json_close(j, ']');
  if (chosen != TARN_NONE) tarn_json_int(j, "chosen", chosen);
  if (left) tarn_json_int(j, "left", left);
  tarn_json_close(j, '}');
}
/* What ends a script may not stand in it. */
static void put_script(FILE *f, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (s[i] == '<') fputs("\\u003c", f);
    else fputc(s[i], f);
}
static void graph(FILE *f, page *p) {
  uint64_t most = p->x->html_classes ? p->x->html_classes : UINT64_MAX;
  tarn_json *j = cli_json_new(p->cx);
  sort_out(p);
  tarn_json_int(j, "total", p->order.n);
  tarn_json_open(j, "roots", '[');
  for (uint32_t i = 0; i < p->v->n; i++)
    tarn_json_int(j, NULL, tarn_eg_find(p->v->g, p->v->root[i]));
  tarn_json_close(j, ']');
  tarn_json_open(j, "classes", '[');
  for (uint32_t i = 0; i < p->order.n && i < most; i++) class_json(p, j, p->order.p[i]);
  tarn_json_close(j, ']');
  size_t n;
  const char *text = tarn_json_text(j, &n);
  fputs("<p id=\"count\">The e-graph is drawn by a script.</p>\n"
        "<p><button id=\"more\">40 more</button> <button id=\"all\">all</button> <button "
        "id=\"in\">+</button> <button "
        "id=\"out\">−</button> "
        "<button id=\"fit\">fit</button> <label><input type=\"checkbox\" id=\"best\" checked> the "
        "least terms</label> "
        "<input id=\"find\" type=\"search\" placeholder=\"operator or #class\"> <span "
        "id=\"hits\"></span></p>\n"
        "<div id=\"both\"><svg id=\"graph\"></svg><div id=\"panel\">A click on a class opens "
        "it.</div></div>\n",
        f);
  if (p->reasons == REASONS)
    fprintf(f, "<p>Reasons stand beside the first %d e-nodes; tarn explore - explains any.</p>\n",
            REASONS);
  fputs("<script type=\"application/json\" id=\"data\">", f);
  put_script(f, text, n);
  fprintf(f, "</script>\n<script>\n%s</script>\n", cli_page_js[0].text);
}

static const char style[] =
    "<style>body{max-width:none}#growth{width:46em;max-width:100%}#growth path{stroke:#ddd}#growth "
    "text{font-size:11px;text-anchor:end}"
    "polyline{fill:none;stroke-width:2}polyline.nodes{stroke:#4878a8}polyline.classes{stroke:#"
    "c07030}text.nodes{fill:#4878a8}"
    "text.classes{fill:#c07030}"
    "#both{display:flex;gap:1em}#graph{flex:3;height:70vh;border:1px solid "
    "#ccc;touch-action:none;cursor:grab}"
    "#panel{flex:1;max-height:70vh;overflow:auto;min-width:16em}#graph text{font:11px "
    "monospace}#graph .id{fill:#777}#graph "
    ".more{fill:#999}"
    "#graph rect{fill:#fff;stroke:#aaa}#graph .best rect{stroke:#2a7a3a;stroke-width:2}#graph "
    ".found rect{fill:#fff3b0}#graph "
    ".open rect{stroke:#b03030;stroke-width:3}"
    "#graph path{fill:none;stroke:#bbb}#graph "
    "path.pick{stroke:#2a7a3a}.pick{fill:#2a7a3a;color:#2a7a3a;font-weight:bold}</style>\n";

void explore_page(tarn_ctx *cx, const cli_explore *x, const explore_view *v) {
  if (!x->html) return;
  page p = {.cx = cx, .x = x, .v = v};
  FILE *f = cli_page_open(cx, x->html,
                          x->file       ? x->file
                          : x->prove[0] ? x->prove[0]
                                        : "tarn explore");
  fputs(style, f);
  fprintf(f, "<p>Stopped: %s. %u e-nodes, %u classes, %.3f s, %.1f MiB.</p>\n",
          x->stop ? x->stop : "not run", x->n_nodes, x->n_classes, x->took,
          (double)x->peak_bytes / 1048576);
  fputs("<h2>Growth</h2>\n", f), growth(f, x);
  fputs("<h2>Terms</h2>\n", f), terms(f, x);
  fputs("<h2>The e-graph</h2>\n", f), graph(f, &p);
  fputs("<h2>Rules</h2>\n", f), rules(f, x);
  cli_page_close(cx, f, x->html);
}
