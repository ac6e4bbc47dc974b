/* Concatenations of parts of one tensor and of several: equal slices in any order, repeated,
 * strided, from behind, permuted and padded, with extents of 0 and 1; and blocks of layers that
 * join all results before them. As imported in the interpreter, and compiled.
 *
 *   test_concat [--all]      some graphs, or more of them
 *   test_concat FIRST COUNT  those of COUNT seeds from FIRST, each printed before it is tried */
#include "tests/agree.h"

enum { GRAPHS = 40, ALL_GRAPHS = 400, MOST_PARTS = 9, MOST_RANK = 3 };

typedef struct graph {
  tarn_buf head, body; /* inputs and constants; nodes */
  uint64_t seed;
  uint32_t rank, names;
  int64_t source[MOST_RANK]; /* extents of what parts are taken from */
} graph;

static uint32_t below(graph *g, uint32_t n) { return (uint32_t)(kit_random(&g->seed) >> 20) % n; }
static const char *fresh(graph *g) { return tarn_format(g->body.cx, "v%u", g->names++); }

static const char *dims_text(tarn_ctx *cx, uint32_t n, const int64_t *dim) {
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(&b, "%s%lld", i ? "," : "", (long long)dim[i]);
  return n ? b.p : "-";
}

static const char *integers(graph *g, uint32_t n, const int64_t *v) {
  const char *name = fresh(g);
  tarn_buf_fmt(&g->head, "init %s i64 %u :", name, n);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(&g->head, " %lld", (long long)v[i]);
  tarn_buf_str(&g->head, "\n");
  return name;
}

static const char *unary(graph *g, const char *op, const char *of, const char *attributes) {
  const char *to = fresh(g);
  tarn_buf_fmt(&g->body, "node %s %s %s -> %s%s\n", op, to, of, to, attributes);
  return to;
}

/* `count` elements along an axis from `first` on by `step`. */
static const char *sliced(graph *g, const char *of, int64_t axis, int64_t first, int64_t count,
                          int64_t step) {
  int64_t end = count ? first + step * (count - 1) + (step > 0 ? 1 : -1) : first;
  if (end < 0) end = -1000;
  const char *a = integers(g, 1, &first), *b = integers(g, 1, &end), *c = integers(g, 1, &axis);
  return unary(g, "Slice",
               tarn_format(g->body.cx, "%s %s %s %s %s", of, a, b, c, integers(g, 1, &step)), "");
}

/* Somewhere along an axis of `length`, in order or from behind, every element or every other one.
 */
static const char *sliced_anywhere(graph *g, const char *of, int64_t axis, int64_t length,
                                   int64_t count) {
  int64_t step = count > 1 && 2 * (count - 1) < length ? 1 + below(g, 2) : 1;
  int64_t room = length - (count ? step * (count - 1) + 1 : 0),
          first = below(g, (uint32_t)room + 1);
  bool back = below(g, 4) == 0 && count;
  if (back) first += step * (count - 1);
  return first < length || !count ? sliced(g, of, axis, first, count, back ? -step : step) : of;
}

/* ---------------------------------------------------------------- parts */

static const char *source(graph *g) {
  static const char *const names[] = {"a", "a", "a", "a", "a", "b", "k"};
  return names[below(g, 7)];
}

/* Dims in another order: those of the source are all alike then. */
static const char *permuted(graph *g, const char *of) {
  int64_t perm[MOST_RANK];
  for (uint32_t i = 0; i < g->rank; i++) perm[i] = i;
  for (uint32_t i = g->rank; i-- > 1;) {
    uint32_t j = below(g, i + 1);
    int64_t t = perm[i];
    perm[i] = perm[j], perm[j] = t;
  }
  return unary(g, "Transpose", of,
               tarn_format(g->body.cx, " : perm=%s,", dims_text(g->body.cx, g->rank, perm)));
}

/* A part of these extents, from anywhere. */
static const char *any_part(graph *g, const int64_t *dim) {
  const char *v = source(g);
  if (g->rank > 1 && below(g, 4) == 0) v = permuted(g, v);
  for (uint32_t d = 0; d < g->rank; d++) v = sliced_anywhere(g, v, d, g->source[d], dim[d]);
  return below(g, 8) == 0 ? unary(g, "Neg", v, "") : v;
}

/* The source in equal slices along the axis, drawn in any order; by chance a permutation, its
 * inverse, all one. */
static uint32_t equal_slices(graph *g, uint32_t axis, const char **part, int64_t *each) {
  uint32_t n = 2 + below(g, 4), how = below(g, 4);
  const char *from = source(g);
  *each = g->source[axis] / n;
  if (*each == 0) *each = 1;
  uint32_t room = (uint32_t)(g->source[axis] / *each);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = how == 0 ? room - 1 - i % room : how == 1 ? i % room : below(g, room);
    part[i] = sliced(g, from, axis, at * *each, *each, 1);
  }
  return n;
}

/* One concatenation, and its extents. */
static const char *concat(graph *g, int64_t *dim) {
  const char *part[MOST_PARTS];
  uint32_t axis = below(g, g->rank), n;
  int64_t each, total = 0;
  memcpy(dim, g->source, sizeof g->source);
  if (below(g, 3)) {
    n = equal_slices(g, axis, part, &each);
    total = n * each;
  } else {
    n = 1 + below(g, MOST_PARTS);
    for (uint32_t d = 0; d < g->rank; d++) dim[d] = below(g, 12) ? 1 + below(g, 3) : 0;
    for (uint32_t i = 0; i < n; i++, total += dim[axis]) {
      dim[axis] = below(g, 4);
      part[i] = any_part(g, dim);
    }
  }
  dim[axis] = total;
  tarn_buf list = {.cx = g->body.cx};
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(&list, " %s", part[i]);
  return unary(g, "Concat", list.p, tarn_format(g->body.cx, " : axis=%u", axis));
}

/* ---------------------------------------------------------------- what reads them */

static void output(graph *g, const char *v) { tarn_buf_fmt(&g->body, "out %s\n", v); }

static void reader(graph *g, const char *v, const int64_t *dim) {
  tarn_ctx *cx = g->body.cx;
  uint32_t axis = below(g, g->rank);
  switch (below(g, 6)) {
  case 0: output(g, unary(g, "Exp", v, "")); break;
  case 1: output(g, permuted(g, v)); break;
  case 2:
    output(g, v);
    output(g, unary(g, "Tanh", v, ""));
    break;
  case 3: output(g, unary(g, "Softmax", v, tarn_format(cx, " : axis=%u", axis))); break;
  case 4: output(g, sliced_anywhere(g, v, axis, dim[axis], (dim[axis] + 1) / 2)); break;
  default: {
    int64_t whole[MOST_RANK + 1] = {2};
    memcpy(whole + 1, dim, sizeof *whole * g->rank);
    const char *twice =
        unary(g, "Expand", tarn_format(cx, "%s %s", v, integers(g, g->rank + 1, whole)), "");
    output(g, unary(g, "Add", tarn_format(cx, "%s %s", twice, v), ""));
  }
  }
}

static const char *random_graph(tarn_ctx *cx, uint64_t seed) {
  graph g = {.head = {.cx = cx}, .body = {.cx = cx}, .seed = seed};
  g.rank = 1 + below(&g, MOST_RANK);
  for (uint32_t d = 0; d < g.rank; d++) g.source[d] = 6;
  const char *dims = dims_text(cx, g.rank, g.source);
  tarn_buf_fmt(&g.head, "opset 17\nin a f32 %s\nin b f32 %s\nrand k %s\n", dims, dims, dims);
  int64_t dim[MOST_RANK];
  for (uint32_t i = 1 + below(&g, 2); i-- > 0;) {
    const char *v = concat(&g, dim);
    reader(&g, v, dim);
  }
  tarn_buf_str(&g.head, g.body.p);
  return g.head.p;
}

/* ---------------------------------------------------------------- dense blocks */

/* Layers that each read all results before them, joined by concatenations that hold the one before
 * or list all parts; some also give a part, or a whole, to another reader. */
static const char *dense_block(tarn_ctx *cx, uint64_t seed, uint32_t layers, bool readers) {
  graph g = {.head = {.cx = cx}, .body = {.cx = cx}, .seed = seed};
  uint32_t channels = 2 + below(&g, 3);
  tarn_buf list = {.cx = cx};
  tarn_buf_fmt(&g.head, "opset 17\nin x f32 1,%u,5,5\n", channels);
  tarn_buf_fmt(&g.body, "node Relu r x -> whole\n");
  tarn_buf_str(&list, "whole");
  const char *whole = "whole";
  for (uint32_t i = 0; i < layers; i++) {
    uint32_t grown = 1 + below(&g, 3), way = below(&g, 3);
    const char *made = fresh(&g), *w = fresh(&g);
    tarn_buf_fmt(&g.head, "rand %s %u,%u,3,3\n", w, grown, channels);
    tarn_buf_fmt(&g.body, "node Conv %sc %s %s -> %sc : pads=1,1,1,1\n", made, whole, w, made);
    tarn_buf_fmt(&g.body, "node Tanh %s %sc -> %s\n", made, made, made);
    tarn_buf_fmt(&list, " %s", made);
    const char *parts = way == 0   ? list.p
                        : way == 1 ? tarn_format(cx, "%s %s", made, whole)
                                   : tarn_format(cx, "%s %s", whole, made);
    if (way == 1) { /* its own list from now on */
      list = (tarn_buf){.cx = cx};
      tarn_buf_fmt(&list, "%s %s", made, whole);
    }
    if (readers && below(&g, 4) == 0) output(&g, unary(&g, "Exp", made, ""));
    if (readers && below(&g, 4) == 0) output(&g, unary(&g, "Sin", whole, ""));
    whole = unary(&g, "Concat", parts, " : axis=1");
    channels += grown;
  }
  output(&g, below(&g, 2) ? whole : unary(&g, "Abs", whole, ""));
  tarn_buf_str(&g.head, g.body.p);
  return g.head.p;
}

/* ---------------------------------------------------------------- compared */

typedef struct trial {
  uint64_t seed;
  bool shown;
} trial;

static void try_graph(tarn_ctx *cx, void *arg) {
  const trial *t = arg;
  const char *text = random_graph(cx, t->seed);
  if (t->shown) printf("%s\n", text), fflush(stdout);
  agree(kit_model(tarn_lang_new(cx), text), TARN_RULE_REASSOC);
}

static void try_dense(tarn_ctx *cx, void *arg) {
  const trial *t = arg;
  const char *text = dense_block(cx, t->seed, 6, t->seed % 2);
  if (t->shown) printf("%s\n", text), fflush(stdout);
  agree(kit_model(tarn_lang_new(cx), text), TARN_RULE_REASSOC);
}
/* Each layer is written once, into the largest concatenation: nothing is copied. */
static void no_copies(tarn_ctx *cx, void *arg) {
  const trial *t = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 1};
  const char *text = dense_block(cx, t->seed, 10, false);
  pipeline *r =
      pipeline_extract_as(kit_model(L, text), tarn_hw_load(L, "x86-64-v3"), o, TARN_RULE_REASSOC);
  uint32_t parts = 0;
  for (uint32_t i = 0; i < r->kprog->nker; i++)
    parts += r->kprog->ker[i].copy && r->kprog->buf[r->kprog->ker[i].out[0]].parent != TARN_NONE;
  if (parts > 1) tarn_raise(cx, TARN_NO, "%u parts are copied of %u", parts, r->report.copies);
  if (r->report.kernels > 12) tarn_raise(cx, TARN_NO, "%u kernels", r->report.kernels);
}

static bool good(uint64_t seed, bool shown, void try(tarn_ctx *, void *)) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, try, &(trial){seed, shown});
  if (st != TARN_OK) printf("graph %llu: %s\n", (unsigned long long)seed, tarn_message(cx));
  tarn_ctx_free(cx);
  return st == TARN_OK;
}

static uint64_t first = 1, count = GRAPHS;
static bool listed;

START_TEST(test_graphs) {
  uint32_t bad = 0;
  for (uint64_t i = (uint64_t)_i; i < count; i += 10) bad += !good(first + i, listed, try_graph);
  ck_assert_uint_eq(bad, 0);
}
END_TEST
START_TEST(test_dense_blocks) {
  uint32_t bad = 0;
  for (uint64_t i = (uint64_t)_i; i < count / 2; i += 4) {
    bad += !good(first + i, listed, try_dense);
    if (i < 8) bad += !good(first + i, listed, no_copies);
  }
  ck_assert_uint_eq(bad, 0);
}
END_TEST

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "--all")) count = ALL_GRAPHS;
  if (argc == 3)
    first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10), listed = true;
  TCase *t = tcase_create("graphs");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_graphs, 0, 10);
  tcase_add_loop_test(t, test_dense_blocks, 0, 4);
  return run_checks("concat", t);
}
