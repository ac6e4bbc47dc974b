/* tarn explore FILE.egg: a program in egglog's language. */
#include "cli/explore.h"
#include <math.h>
#include <string.h>

bool explore_is_egg(const char *file) {
  size_t n = file ? strlen(file) : 0;
  return n > 4 && !strcmp(file + n - 4, ".egg");
}

typedef struct telling {
  tarn_ctx *cx;
  TARN_VEC(const char *) said; /* for JSON */
  bool json;
} telling;
static void say(void *user, const char *text) {
  telling *t = user;
  if (t->json) tarn_push(t->cx, &t->said, tarn_strdup(t->cx, text));
  else fputs(text, stdout);
}

/* ---- the e-graph as a file ---- */
typedef struct writing {
  FILE *f;
  const tarn_egg *E;
} writing;
static bool put(void *user, const char *text, size_t n) {
  return fwrite(text, 1, n, ((writing *)user)->f) == n;
}
static void name_of(void *user, uint32_t op, uint32_t payload, char *buf, size_t n) {
  tarn_egg_name(((writing *)user)->E, op, payload, buf, n);
}
static double cost_of(void *user, const tarn_egraph *g, uint32_t node) {
  double c = tarn_egg_cost(((writing *)user)->E, tarn_eg_node_at(g, node).op);
  return fmin(c, 1e30); /* JSON has no infinity */
}
static void write_graph(tarn_ctx *cx, tarn_egg *E, const char *path, uint64_t dot_classes) {
  uint32_t n;
  const uint32_t *root = tarn_egg_roots(E, &n);
  writing to = {cli_open(cx, path), E};
  tarn_eg_writer w = {.write = put, .name = name_of, .cost = cost_of, .user = &to};
  const tarn_egraph *g = tarn_egg_graph(E);
  tarn_status st = dot_classes == UINT64_MAX
                       ? tarn_eg_write_json(g, root, n, &w)
                       : tarn_eg_write_dot(g, root, n, (uint32_t)dot_classes, &w);
  cli_close(cx, to.f, path);
  if (st) tarn_raise(cx, st, "%s: %s", path, tarn_eg_message(g));
}

static void print_json(const telling *t, tarn_egg *E) {
  tarn_json *j = cli_json_new(t->cx);
  tarn_json_open(j, "outputs", '[');
  for (uint32_t i = 0; i < t->said.n; i++) tarn_json_str(j, NULL, t->said.p[i]);
  tarn_json_close(j, ']');
  tarn_json_put(j, "nodes", tarn_eg_node_count(tarn_egg_graph(E)), "classes",
                tarn_eg_class_count(tarn_egg_graph(E)));
  cli_json_print(j);
}
int explore_egg(tarn_ctx *cx, const cli_explore *x) {
  telling t = {.cx = cx, .json = x->json};
  tarn_egg_options o = {.max_nodes = x->nodes,
                        .max_bytes = x->bytes,
                        .max_seconds = x->seconds,
                        .threads = (unsigned)x->threads,
                        .interrupted = cli_interrupted,
                        .say = say,
                        .user = &t};
  size_t n;
  const char *text = tarn_read_file(cx, x->file, &n);
  if (x->rules.n || x->only_rules.n || x->goal || x->prove[0] || x->html || x->proof_file)
    tarn_raise(cx, TARN_USAGE,
               "explore: a .egg file says itself what is run; only limits, --json, "
               "--egraph and --dot go with it");
  tarn_egg *E = tarn_egg_new(cx, &o);
  tarn_egg_run(E, text, n, x->file);
  cli_writes();
  if (x->egraph) write_graph(cx, E, x->egraph, UINT64_MAX);
  if (x->dot) write_graph(cx, E, x->dot, x->dot_classes);
  if (x->json) print_json(&t, E);
  return 0;
}
