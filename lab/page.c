/* The e-graph as JSON, and page.js, which draws it. */
#include "lab/page.h"
#include "base/json.h"
#include "base/limit.h"
#include <string.h>

extern const tarn_embedded lab_page_js[];

/* Reasons are worked out for this many e-nodes, as each goes through all ids of the graph for so
 * many ids together, and while there is time; e-nodes of one class are held up to this many. */
enum { REASONS = 400, WORK = 1 << 25, NODES_OF_CLASS = 200 };

/* ---- the e-graph as JSON ---- */
typedef struct page {
  tarn_ctx *cx;
  const tarn_page_graph *v;
  TARN_VEC(uint32_t) order; /* classes, those of the roots first */
  bool *chosen;             /* by class: is it in one of the least terms? */
  uint32_t reasons;
  uint64_t work;
  bool cut; /* some were left out */
} page;

static uint32_t pick_of(const page *p, uint32_t c) {
  return p->v->pick && p->chosen[c] ? p->v->pick[c] : TARN_NONE;
}
/* Breadth first, the classes of the least terms before others. */
static void reach(page *p, bool *seen, bool only_chosen) {
  for (uint32_t i = 0; i < p->order.n; i++)
    TARN_EG_NODES(p->v->g, p->order.p[i], n) {
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
  if (p->v->pick) reach(p, seen, true);
  reach(p, seen, false);
  TARN_EG_CLASSES(g, c)
    if (!seen[c]) tarn_push(p->cx, &p->order, c);
}

/* The rules of the chain between two e-nodes of a class, in words. */
static void free_proof(void *p) { tarn_eg_proof_free(p); }
static const char *reason(page *p, uint32_t first, uint32_t node) {
  p->cut |= p->reasons == REASONS || p->work > WORK || tarn_late(p->cx);
  if (p->cut) return NULL;
  p->reasons++, p->work += tarn_eg_id_count(p->v->g);
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
static void put_script(tarn_buf *out, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (s[i] == '<') tarn_buf_str(out, "\\u003c");
    else tarn_buf_add(out, s + i, 1);
}
static const char *as_json(page *p, size_t *n) {
  uint64_t most = p->v->classes ? p->v->classes : UINT64_MAX;
  tarn_json *j = tarn_json_new(p->cx, 1);
  tarn_json_int(j, "total", p->order.n);
  tarn_json_open(j, "roots", '[');
  for (uint32_t i = 0; i < p->v->n; i++)
    tarn_json_int(j, NULL, tarn_eg_find(p->v->g, p->v->root[i]));
  tarn_json_close(j, ']');
  tarn_json_open(j, "classes", '[');
  for (uint32_t i = 0; i < p->order.n && i < most; i++) class_json(p, j, p->order.p[i]);
  tarn_json_close(j, ']');
  return tarn_json_text(j, n);
}
static const char controls[] =
    "<p id=\"count\">The e-graph is drawn by a script.</p>\n"
    "<p><button id=\"more\">40 more</button> <button id=\"all\">all</button> <button "
    "id=\"in\">+</button> <button id=\"out\">−</button> "
    "<button id=\"fit\">fit</button> <label><input type=\"checkbox\" id=\"best\" checked> the "
    "least terms</label> <label><input type=\"checkbox\" id=\"near\"> the open class and its "
    "neighbours alone</label> <input id=\"find\" type=\"search\" placeholder=\"operator or "
    "#class\"> "
    "<span id=\"hits\"></span></p>\n"
    "<div id=\"both\"><svg id=\"graph\"></svg><div id=\"panel\">A click on a class opens "
    "it.</div></div>\n";
void tarn_page_graph_print(const tarn_page_graph *v, tarn_buf *out) {
  page p = {.cx = out->cx, .v = v};
  size_t n;
  sort_out(&p);
  const char *text = as_json(&p, &n);
  tarn_buf_str(out, controls);
  if (p.cut)
    tarn_buf_fmt(out,
                 "<p>Reasons stand beside the first %u e-nodes; tarn explore - explains any.</p>\n",
                 p.reasons);
  tarn_buf_str(out, "<script type=\"application/json\" id=\"data\">");
  put_script(out, text, n);
  tarn_buf_str(out, "</script>\n<script>\n");
  tarn_buf_str(out, lab_page_js[0].text);
  tarn_buf_str(out, "</script>\n");
}

static const char style[] =
    "<style>#both{display:flex;gap:1em}#graph{flex:3;height:70vh;border:1px solid "
    "#ccc;touch-action:none;cursor:grab}"
    "#panel{flex:1;max-height:70vh;overflow:auto;min-width:16em}#panel "
    "td{white-space:normal}#graph text{font:11px "
    "monospace}#graph .id{fill:#777}#graph .more{fill:#999}"
    "#graph rect{fill:#fff;stroke:#aaa}#graph .best rect{stroke:#2a7a3a;stroke-width:2}#graph "
    ".found rect{fill:#fff3b0}#graph .open rect{stroke:#b03030;stroke-width:3}"
    "#graph path{fill:none;stroke:#bbb}#graph "
    "path.pick{stroke:#2a7a3a}.pick{fill:#2a7a3a;color:#2a7a3a;font-weight:bold}</style>\n";
const char *tarn_page_graph_style(void) { return style; }
