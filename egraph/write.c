/* Writing a graph out: egraph-serialize JSON, Graphviz.  Piece by piece, without memory of its own:
 * a graph that has used all there is can still be written. */
#include "egraph/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct out {
  const tarn_egraph *g;
  const tarn_eg_writer *w;
  tarn_status st;
} out;

static void print(out *o, const char *s, size_t n) {
  if (n && !o->st && !o->w->write(o->w->user, s, n)) o->st = TARN_IO;
}

static void name_of(const out *o, uint32_t node, char *buf, size_t n) {
  tarn_eg_node v = tarn_eg_node_at(o->g, node);
  if (o->w->name) o->w->name(o->w->user, v.op, v.payload, buf, n);
  else if (v.payload) snprintf(buf, n, "%u.%u", v.op, v.payload);
  else snprintf(buf, n, "%u", v.op);
}

static void put(out *o, const char *s) { print(o, s, strlen(s)); }

enum { NAME = 512 }; /* longer ones are cut */

/* As the inside of a string. */
static void put_name(out *o, tarn_as as, uint32_t node) {
  char name[NAME], all[NAME * TARN_ESCAPED], *to = all;
  name_of(o, node, name, sizeof name);
  for (size_t n = strlen(name), i = 0; i < n; to += strlen(to))
    i += tarn_escape(as, name + i, n - i, to);
  print(o, all, (size_t)(to - all));
}

/* Whatever the decimal point is where the program runs. */
static void json_number(out *o, double x) {
  char buf[40];
  snprintf(buf, sizeof buf, "%.17g", x);
  bool whole = true;
  for (char *c = buf; *c; c++) {
    if (*c == 'e') whole = false;
    else if (!strchr("+-0123456789", *c)) *c = '.', whole = false;
  }
  put(o, buf);
  if (whole) put(o, ".0");
}

/* The id of the first node of a class: where all are subsumed, of one of these. */
static void first_id(const out *o, uint32_t cls, char *buf, size_t n) {
  uint32_t node = tarn_eg_next_node(o->g, cls, NONE);
  for (uint32_t i = 0; node == NONE && i < o->g->n_ids; i++)
    if (tarn_eg_is_subsumed(o->g, i) && eg_find(o->g, i) == cls) {
      snprintf(buf, n, "%u.s%u", cls, i);
      return;
    }
  snprintf(buf, n, "%u.0", cls);
}

static void json_node(out *o, uint32_t cls, uint32_t node, const char *k) {
  char buf[160], id[32];
  tarn_eg_node v = tarn_eg_node_at(o->g, node);
  snprintf(buf, sizeof buf, "\"%u.%s\":{\"op\":\"", cls, k);
  put(o, buf);
  put_name(o, TARN_AS_JSON, node);
  put(o, "\",\"children\":[");
  for (uint32_t i = 0; i < v.n; i++) {
    first_id(o, v.kids[i], id, sizeof id);
    snprintf(buf, sizeof buf, "%s\"%s\"", i ? "," : "", id);
    put(o, buf);
  }
  snprintf(buf, sizeof buf, "],\"eclass\":\"%u\",\"cost\":", cls);
  put(o, buf);
  double cost = o->w->cost ? o->w->cost(o->w->user, o->g, node) : 1.0;
  o->st = isfinite(cost) ? o->st : TARN_USAGE;
  json_number(o, cost);
  put(o, tarn_eg_is_subsumed(o->g, node) ? ",\"subsumed\":true}" : "}");
}

static void json_graph(out *o, const uint32_t *roots, uint32_t n_roots) {
  const tarn_egraph *g = o->g;
  const char *comma = "";
  put(o, "{\"nodes\":{");
  for (uint32_t c = tarn_eg_next_class(g, NONE); c != NONE && !o->st;
       c = tarn_eg_next_class(g, c)) {
    uint32_t k = 0;
    for (uint32_t n = tarn_eg_next_node(g, c, NONE); n != NONE && !o->st;
         n = tarn_eg_next_node(g, c, n)) {
      char id[16];
      snprintf(id, sizeof id, "%u", k++);
      put(o, comma), comma = ",";
      json_node(o, c, n, id);
    }
  }
  for (uint32_t n = 0; g->n_gone && n < g->n_ids && !o->st; n++) {
    char id[16];
    if (!tarn_eg_is_subsumed(g, n)) continue;
    snprintf(id, sizeof id, "s%u", n);
    put(o, comma), comma = ",";
    json_node(o, eg_find(g, n), n, id);
  }
  put(o, "},\"root_eclasses\":[");
  for (uint32_t i = 0; i < n_roots; i++) {
    char buf[16];
    snprintf(buf, sizeof buf, "%s\"%u\"", i ? "," : "", eg_find(g, roots[i]));
    put(o, buf);
  }
  put(o, "],\"class_data\":{}}");
}

static bool writable(const tarn_egraph *g, const uint32_t *roots, uint32_t n_roots,
                     const tarn_eg_writer *w) {
  for (uint32_t i = 0; i < n_roots; i++)
    if (roots[i] >= g->n_ids) return false;
  return w && w->write && !g->dirty;
}

tarn_status tarn_eg_write_json(const tarn_egraph *g, const uint32_t *roots, uint32_t n_roots,
                               const tarn_eg_writer *w) {
  if (!writable(g, roots, n_roots, w)) return TARN_USAGE;
  out o = {g, w, TARN_OK};
  json_graph(&o, roots, n_roots);
  return o.st;
}

/* ---- Graphviz ---- */

static uint32_t last_drawn(const tarn_egraph *g, uint32_t max) {
  uint32_t last = NONE, k = 0;
  for (uint32_t c = tarn_eg_next_class(g, NONE); c != NONE && (!max || k < max);
       c = tarn_eg_next_class(g, c), k++)
    last = c;
  return last;
}

static void dot_class(out *o, uint32_t c, bool root) {
  char buf[160];
  snprintf(buf, sizeof buf, "  subgraph cluster_%u {\n    label=\"%u\"; style=%s;\n", c, c,
           root ? "\"rounded,bold\"" : "\"rounded,dotted\"");
  put(o, buf);
  uint32_t k = 0;
  for (uint32_t n = tarn_eg_next_node(o->g, c, NONE); n != NONE;
       n = tarn_eg_next_node(o->g, c, n), k++) {
    snprintf(buf, sizeof buf, "    n%u_%u [label=\"", c, k);
    put(o, buf);
    put_name(o, TARN_AS_DOT, n);
    put(o, "\"];\n");
  }
  if (!k) {
    snprintf(buf, sizeof buf, "    n%u_0 [label=\"(empty)\"];\n", c);
    put(o, buf);
  }
  put(o, "  }\n");
}

static void dot_edges(out *o, uint32_t c, uint32_t last) {
  char buf[160];
  uint32_t k = 0;
  for (uint32_t n = tarn_eg_next_node(o->g, c, NONE); n != NONE;
       n = tarn_eg_next_node(o->g, c, n), k++) {
    tarn_eg_node v = tarn_eg_node_at(o->g, n);
    for (uint32_t i = 0; i < v.n; i++) {
      if (v.kids[i] > last) continue;
      snprintf(buf, sizeof buf, "  n%u_%u -> n%u_0 [lhead=cluster_%u, label=\"%u\"];\n", c, k,
               v.kids[i], v.kids[i], i);
      put(o, buf);
    }
  }
}

tarn_status tarn_eg_write_dot(const tarn_egraph *g, const uint32_t *roots, uint32_t n_roots,
                              uint32_t max_classes, const tarn_eg_writer *w) {
  if (!writable(g, roots, n_roots, w)) return TARN_USAGE;
  out o = {g, w, TARN_OK};
  char buf[160];
  uint32_t last = last_drawn(g, max_classes);
  put(&o, "digraph egraph {\n  compound=true; clusterrank=local; node [shape=box];\n");
  if (max_classes && max_classes < g->classes) {
    snprintf(buf, sizeof buf, "  label=\"%u of %u classes are shown\";\n", max_classes, g->classes);
    put(&o, buf);
  }
  for (uint32_t c = tarn_eg_next_class(g, NONE); c != NONE && c <= last && !o.st;
       c = tarn_eg_next_class(g, c)) {
    bool root = false;
    for (uint32_t i = 0; i < n_roots; i++) root |= eg_find(g, roots[i]) == c;
    dot_class(&o, c, root);
    dot_edges(&o, c, last);
  }
  put(&o, "}\n");
  return o.st;
}
