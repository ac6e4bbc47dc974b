/* JSON out: results and graphs. Written to a file beside the target, then renamed. */
#include "extract/select/internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put_string(tarn_buf *b, const char *s) {
  tarn_buf_add(b, "\"", 1);
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') tarn_buf_add(b, "\\", 1);
    if (c < 0x20) tarn_buf_fmt(b, "\\u%04x", c);
    else tarn_buf_add(b, s, 1);
  }
  tarn_buf_add(b, "\"", 1);
}

static void put_number(tarn_buf *b, double x) {
  if (isfinite(x)) tarn_buf_double(b, x);
  else tarn_buf_str(b, "null");
}

typedef const char *namer(const tarn_sel_graph *g, uint32_t id, char *buf, size_t n);
static void put_name(tarn_buf *b, const tarn_sel_graph *g, namer *name, uint32_t id) {
  char buf[1024];
  put_string(b, name(g, id, buf, sizeof buf));
}

typedef struct write_args {
  tarn_sel_graph *g;
  const tarn_sel_result *r;
  const char *method, *path;
} write_args;

static void put_choices(tarn_buf *b, const write_args *a) {
  const char *sep = "\n  ";
  tarn_buf_str(b, ",\n \"choices\":{");
  for (uint32_t c = 0; c < a->r->n_classes; c++) {
    if (a->r->choice[c] == NONE || tarn_sel_is_link(a->g, a->r->choice[c])) continue;
    tarn_buf_str(b, sep);
    put_name(b, a->g, tarn_sel_class_name, c);
    tarn_buf_str(b, ": ");
    put_name(b, a->g, tarn_sel_node_name, a->r->choice[c]);
    sep = ",\n  ";
  }
  tarn_buf_str(b, "}}\n");
}

static void write_result(tarn_ctx *cx, void *arg) {
  const write_args *a = arg;
  tarn_mark m = tarn_arena_mark(cx);
  tarn_buf b = {.cx = cx};
  const struct {
    const char *key;
    double x;
  } field[] = {{"tree_cost", a->r->tree_cost},
               {"dag_cost", a->r->dag_cost},
               {"lower_bound", a->r->lower_bound},
               {"seconds", a->r->seconds}};
  tarn_buf_str(&b, "{\"schema\":1, \"method\":");
  put_string(&b, a->method);
  for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
    tarn_buf_fmt(&b, ", \"%s\":", field[i].key);
    put_number(&b, field[i].x);
  }
  tarn_buf_fmt(&b, ", \"optimal\":%s, \"stop\":\"%s\"", a->r->optimal ? "true" : "false",
               a->r->stop);
  put_choices(&b, a);
  tarn_write_file(cx, a->path, b.p, b.n);
  tarn_release(cx, m);
}

tarn_status tarn_sel_write_result(tarn_sel_graph *g, const tarn_sel_result *r, const char *method,
                                  const char *path) {
  write_args a = {g, r, method, path};
  return tarn_protect(g->cx, write_result, &a);
}

/* A child is written as the chosen node of its class, or the first. */
static void put_node(tarn_buf *b, tarn_sel_graph *g, const tarn_sel_view *v, uint32_t n,
                     const uint32_t *choice) {
  put_name(b, g, tarn_sel_node_name, n);
  tarn_buf_str(b, ": {\"op\":");
  put_name(b, g, tarn_sel_node_op, n);
  tarn_buf_str(b, ", \"eclass\":");
  put_name(b, g, tarn_sel_class_name, v->node_class[n]);
  tarn_buf_str(b, ", \"cost\":");
  put_number(b, v->cost[n]);
  tarn_buf_str(b, ", \"children\":[");
  for (uint32_t i = v->kid_first[n]; i < v->kid_first[n + 1]; i++) {
    uint32_t c = choice ? tarn_sel_past_links(g, choice, v->kid[i]) : v->kid[i];
    if (v->class_first[c] == v->class_first[c + 1])
      tarn_raise(g->cx, TARN_USAGE,
                 "selection: class %" PRIu32 " has no node: the format cannot name it", c);
    if (i > v->kid_first[n]) tarn_buf_add(b, ",", 1);
    put_name(b, g, tarn_sel_node_name, choice ? choice[c] : v->class_node[v->class_first[c]]);
  }
  tarn_buf_str(b, "]}");
}

static void write_graph(tarn_ctx *cx, void *arg) {
  const write_args *a = arg;
  tarn_sel_view v;
  sel_graph_view(a->g, &v);
  tarn_mark m = tarn_arena_mark(cx);
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "{\"nodes\":{");
  const uint32_t *choice = a->r ? a->r->choice : NULL;
  bool first = true;
  for (uint32_t n = 0; n < v.n_nodes; n++) {
    if (choice && (choice[v.node_class[n]] != n || tarn_sel_is_link(a->g, n))) continue;
    tarn_buf_str(&b, first ? "\n  " : ",\n  ");
    put_node(&b, a->g, &v, n, choice);
    first = false;
  }
  tarn_buf_str(&b, "},\n \"root_eclasses\":[");
  for (uint32_t i = 0; i < v.n_roots; i++) {
    if (i) tarn_buf_add(&b, ",", 1);
    uint32_t root = choice ? tarn_sel_past_links(a->g, choice, v.root[i]) : v.root[i];
    put_name(&b, a->g, tarn_sel_class_name, root);
  }
  tarn_buf_str(&b, "]}\n");
  tarn_write_file(cx, a->path, b.p, b.n);
  tarn_release(cx, m);
}

tarn_status tarn_sel_write_json(tarn_sel_graph *g, const char *path) {
  write_args a = {.g = g, .path = path};
  return tarn_protect(g->cx, write_graph, &a);
}

tarn_status tarn_sel_write_chosen(tarn_sel_graph *g, const tarn_sel_result *r, const char *path) {
  write_args a = {.g = g, .r = r, .path = path};
  return tarn_protect(g->cx, write_graph, &a);
}
