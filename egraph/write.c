/* Writing a graph out: egraph-serialize JSON, Graphviz. */
#include "egraph/internal.h"

#include <stdio.h>
#include <string.h>
#include <yajl/yajl_gen.h>

/* yajl forgets sizes: each block carries its own in front. */
enum { FRONT = 16 };

static void *json_realloc(void *ctx, void *p, size_t n) {
  eg_mem *m = ctx;
  char *base = p ? (char *)p - FRONT : NULL;
  size_t old = base ? *(size_t *)(void *)base : 0;
  char *q = eg_resize(m, base, old, n + FRONT);
  if (!q) return NULL;
  *(size_t *)(void *)q = n + FRONT;
  return q + FRONT;
}
static void *json_malloc(void *ctx, size_t n) { return json_realloc(ctx, NULL, n); }
static void json_free(void *ctx, void *p) {
  if (!p) return;
  char *base = (char *)p - FRONT;
  eg_release(ctx, base, *(size_t *)(void *)base);
}

typedef struct out {
  const tarn_egraph *g;
  const tarn_eg_writer *w;
  bool ok;
} out;

static void print(void *ctx, const char *s, size_t n) {
  out *o = ctx;
  o->ok = o->ok && o->w->write(o->w->user, s, n);
}

static void name_of(const out *o, uint32_t node, char *buf, size_t n) {
  tarn_eg_node v = tarn_eg_node_at(o->g, node);
  if (o->w->name) o->w->name(o->w->user, v.op, v.payload, buf, n);
  else if (v.payload) snprintf(buf, n, "%u.%u", v.op, v.payload);
  else snprintf(buf, n, "%u", v.op);
}

static void text(yajl_gen j, const char *s) {
  yajl_gen_string(j, (const unsigned char *)s, strlen(s));
}

static void json_node(const out *o, yajl_gen j, uint32_t cls, uint32_t node, uint32_t k) {
  char buf[512];
  tarn_eg_node v = tarn_eg_node_at(o->g, node);
  snprintf(buf, sizeof buf, "%u.%u", cls, k);
  text(j, buf);
  yajl_gen_map_open(j);
  text(j, "op");
  name_of(o, node, buf, sizeof buf);
  text(j, buf);
  text(j, "children");
  yajl_gen_array_open(j);
  for (uint32_t i = 0; i < v.n; i++) {
    snprintf(buf, sizeof buf, "%u.0", v.kids[i]);
    text(j, buf);
  }
  yajl_gen_array_close(j);
  text(j, "eclass");
  snprintf(buf, sizeof buf, "%u", cls);
  text(j, buf);
  text(j, "cost");
  yajl_gen_double(j, o->w->cost ? o->w->cost(o->w->user, o->g, node) : 1.0);
  yajl_gen_map_close(j);
}

static void json_graph(const out *o, yajl_gen j, const uint32_t *roots, uint32_t n_roots) {
  const tarn_egraph *g = o->g;
  yajl_gen_map_open(j);
  text(j, "nodes");
  yajl_gen_map_open(j);
  for (uint32_t c = tarn_eg_next_class(g, NONE); c != NONE && o->ok; c = tarn_eg_next_class(g, c)) {
    uint32_t k = 0;
    for (uint32_t n = tarn_eg_next_node(g, c, NONE); n != NONE; n = tarn_eg_next_node(g, c, n))
      json_node(o, j, c, n, k++);
  }
  yajl_gen_map_close(j);
  text(j, "root_eclasses");
  yajl_gen_array_open(j);
  for (uint32_t i = 0; i < n_roots; i++) {
    char buf[16];
    snprintf(buf, sizeof buf, "%u", eg_find(g, roots[i]));
    text(j, buf);
  }
  yajl_gen_array_close(j);
  text(j, "class_data");
  yajl_gen_map_open(j);
  yajl_gen_map_close(j);
  yajl_gen_map_close(j);
}

static bool writable(const tarn_egraph *g, const uint32_t *roots, uint32_t n_roots, const tarn_eg_writer *w) {
  for (uint32_t i = 0; i < n_roots; i++)
    if (roots[i] >= g->n_ids) return false;
  return w && w->write && !g->dirty;
}

tarn_status tarn_eg_write_json(const tarn_egraph *g, const uint32_t *roots, uint32_t n_roots,
                               const tarn_eg_writer *w) {
  if (!writable(g, roots, n_roots, w)) return TARN_USAGE;
  eg_mem m;
  eg_mem_init(&m, &g->mem.a);
  yajl_alloc_funcs f = {json_malloc, json_realloc, json_free, &m};
  out o = {g, w, true};
  yajl_gen j = yajl_gen_alloc(&f);
  if (!j) return TARN_MEMORY;
  yajl_gen_config(j, yajl_gen_print_callback, print, &o);
  json_graph(&o, j, roots, n_roots);
  yajl_gen_free(j);
  return m.st != TARN_OK ? m.st : o.ok ? TARN_OK : TARN_IO;
}

/* ---- Graphviz ---- */

static void put(out *o, const char *s) { print(o, s, strlen(s)); }

/* As the inside of a double-quoted string. */
static void put_escaped(out *o, const char *s) {
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') print(o, "\\", 1);
    print(o, *s == '\n' ? " " : s, 1);
  }
}

static uint32_t last_drawn(const tarn_egraph *g, uint32_t max) {
  uint32_t last = NONE, k = 0;
  for (uint32_t c = tarn_eg_next_class(g, NONE); c != NONE && (!max || k < max); c = tarn_eg_next_class(g, c), k++)
    last = c;
  return last;
}

static void dot_class(out *o, uint32_t c, bool root) {
  char buf[512];
  snprintf(buf, sizeof buf, "  subgraph cluster_%u {\n    label=\"%u\"; style=%s;\n", c, c,
           root ? "\"rounded,bold\"" : "\"rounded,dotted\"");
  put(o, buf);
  uint32_t k = 0;
  for (uint32_t n = tarn_eg_next_node(o->g, c, NONE); n != NONE; n = tarn_eg_next_node(o->g, c, n), k++) {
    snprintf(buf, sizeof buf, "    n%u_%u [label=\"", c, k);
    put(o, buf);
    name_of(o, n, buf, sizeof buf);
    put_escaped(o, buf);
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
  for (uint32_t n = tarn_eg_next_node(o->g, c, NONE); n != NONE; n = tarn_eg_next_node(o->g, c, n), k++) {
    tarn_eg_node v = tarn_eg_node_at(o->g, n);
    for (uint32_t i = 0; i < v.n; i++) {
      if (v.kids[i] > last) continue;
      snprintf(buf, sizeof buf, "  n%u_%u -> n%u_0 [lhead=cluster_%u, label=\"%u\"];\n", c, k, v.kids[i],
               v.kids[i], i);
      put(o, buf);
    }
  }
}

tarn_status tarn_eg_write_dot(const tarn_egraph *g, const uint32_t *roots, uint32_t n_roots,
                              uint32_t max_classes, const tarn_eg_writer *w) {
  if (!writable(g, roots, n_roots, w)) return TARN_USAGE;
  out o = {g, w, true};
  char buf[160];
  uint32_t last = last_drawn(g, max_classes);
  put(&o, "digraph egraph {\n  compound=true; clusterrank=local; node [shape=box];\n");
  if (max_classes && max_classes < g->classes) {
    snprintf(buf, sizeof buf, "  label=\"%u of %u classes are shown\";\n", max_classes, g->classes);
    put(&o, buf);
  }
  for (uint32_t c = tarn_eg_next_class(g, NONE); c != NONE && c <= last && o.ok; c = tarn_eg_next_class(g, c)) {
    bool root = false;
    for (uint32_t i = 0; i < n_roots; i++) root |= eg_find(g, roots[i]) == c;
    dot_class(&o, c, root);
    dot_edges(&o, c, last);
  }
  put(&o, "}\n");
  return o.ok ? TARN_OK : TARN_IO;
}
