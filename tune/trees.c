/* See trees.h. The format: "Introduction to Model IO" in XGBoost's documentation. */
#include "tune/trees.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

typedef struct reading {
  tarn_ctx *cx;
  const char *name;
  TARN_VEC(uint32_t) root;
  TARN_VEC(tree_node) node;
} reading;

static yajl_val get(yajl_val v, const char *a, const char *b) {
  const char *path[] = {a, b, NULL};
  return yajl_tree_get(v, path, yajl_t_any);
}
TARN_NORETURN static void wrong(const reading *r, const char *what) {
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s: %s", r->name, what);
}
static size_t length(const reading *r, yajl_val v, const char *what) {
  if (!YAJL_IS_ARRAY(v)) wrong(r, tarn_format(r->cx, "no list %s", what));
  return YAJL_GET_ARRAY(v)->len;
}
static double number(const reading *r, yajl_val v, size_t i) {
  yajl_val x = YAJL_GET_ARRAY(v)->values[i];
  if (YAJL_IS_NUMBER(x)) return strtod(x->u.number.r, NULL);
  wrong(r, "a tree holds something that is no number");
}

static void read_tree(reading *r, yajl_val t) {
  yajl_val left = get(t, "left_children", NULL), right = get(t, "right_children", NULL);
  yajl_val split = get(t, "split_indices", NULL), at = get(t, "split_conditions", NULL);
  size_t n = length(r, left, "left_children");
  if (!n || n > 1u << 20 || length(r, right, "right_children") != n || length(r, split, "split_indices") != n ||
      length(r, at, "split_conditions") != n)
    wrong(r, "a tree whose lists differ in length");
  uint32_t base = r->node.n;
  tarn_push(r->cx, &r->root, base);
  for (size_t i = 0; i < n; i++) {
    double l = number(r, left, i), x = number(r, right, i), f = number(r, split, i);
    tree_node d = {.feature = TARN_NONE, .at = (float)number(r, at, i)};
    if (l >= 0) { /* children stand behind their parent: no walk can go round */
      if (!(l > (double)i && l < (double)n && x > (double)i && x < (double)n && f >= 0 && f < TARN_FEATURES))
        wrong(r, "a tree that leads out of itself");
      d.feature = (uint32_t)f, d.left = base + (uint32_t)l, d.right = base + (uint32_t)x;
    }
    tarn_push(r->cx, &r->node, d);
  }
}

typedef struct source {
  const char *name, *text;
  const trees *out;
  yajl_val v;
} source;
static void drop_tree(void *v) { yajl_tree_free(v); }

/* ---- what features are ----
 * A price corrects the analytic one and was learned on features as they were then. Three kernels, scheduled by hand, whose
 * features change when the way they are computed does: a product, a maximum over a window with borders, a transposition. */
static const char *const probes[][2] = {
    {"(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 196 1024) (reduce 256) (red sum (mul $0 $1))"
     " (child 1 (index ((196 1024) (256)) (262144) ((+ d1 (* 1024 d2))))) (child 0 (index ((196 1024) (256)) (50176)"
     " ((+ d0 (* 196 d2))))) out)))(in f32 (50176) (1))(const f32 (262144) (1))(out f32 (196 1024) (1024 1)))",
     "(schedule (stage (acc 2) (serial 1 32) (serial 0 12) (serial 2 1) (unroll 0 1) (unroll 1 16) (vector 1 1)))"},
    {"(kernel (nest (stages (children 1) (shared) (split 3) (stage (own 64 56 56) (reduce 3 3) reduceMax (child 0 (index"
     " ((64 56 56) (3 3)) (802816) ((+ (* 12544 d0) (* 224 d1) (* 2 d2) (* 112 d3) d4 -113)) (fill -inf ((+ (* 2 d1) d3) 1"
     " 113) ((+ (* 2 d2) d4) 1 113)))) out)))(in f32 (802816) (1))(out f32 (64 56 56) (3136 56 1)))",
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 2) (serial 2 16) (serial 3 1) (serial 4 1) (unroll 1 1) (vector 2 1)))"},
    {"(kernel (nest (stages (children 1) (shared) (split 2) (stage (own 512 784) (reduce) (map $0) (child 0 (index ((512 784)"
     " ()) (401408) ((+ d0 (* 512 d1))))) out)))(in f32 (401408) (1))(out f32 (512 784) (784 1)))",
     "(schedule (stage (acc 5) (serial 0 32) (serial 1 12) (unroll 1 1) (unroll 0 16) (vector 0 1)))"}};
static uint64_t probe(tarn_lang *L, const tarn_hw *hw, const char *const text[2], uint64_t h) {
  tarn_ksig k;
  tarn_cost c;
  float f[TARN_FEATURES];
  tarn_ksig_parse(L, text[0], strlen(text[0]), &k);
  const tarn_schedule *s = tarn_schedule_parse(L, tarn_nest_get(L, k.nest), text[1], strlen(text[1]));
  tarn_cost_of(L, hw, &k, s, 1, &c);
  tarn_features(L, hw, &k, s, 1, &c, f);
  for (uint32_t i = 0; i < TARN_FEATURES; i++) h = tarn_hash_mix(h, (uint64_t)(int64_t)llround(1e3 * (double)f[i]));
  return h;
}
const char *trees_features(tarn_ctx *cx) {
  uint64_t h = TARN_FEATURES;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  for (uint32_t i = 0; i < TARN_FEATURES; i++) h = tarn_hash_bytes(tarn_feature_name(i), strlen(tarn_feature_name(i)), h);
  for (uint32_t i = 0; i < sizeof probes / sizeof *probes; i++) h = probe(L, hw, probes[i], h);
  return tarn_format(cx, "%u features %016" PRIx64, TARN_FEATURES, h);
}

static const char *attribute(const reading *r, yajl_val learner, const char *key) {
  yajl_val v = get(learner, "attributes", key);
  return YAJL_IS_STRING(v) ? tarn_strdup(r->cx, v->u.string) : "";
}
static void read_model(tarn_ctx *cx, void *arg) {
  source *s = arg;
  reading r = {.cx = cx, .name = s->name};
  char error[256];
  yajl_val v = yajl_tree_parse(s->text, error, sizeof error);
  if (!v) {
    error[strcspn(error, "\n")] = 0;
    wrong(&r, error[0] ? error : "not JSON");
  }
  tarn_defer(cx, drop_tree, v);
  yajl_val learner = get(v, "learner", NULL), booster = get(learner, "gradient_booster", "model");
  yajl_val base = get(learner, "learner_model_param", "base_score"), list = get(booster, "trees", NULL);
  size_t n = length(&r, list, "trees");
  if (!YAJL_IS_STRING(base)) wrong(&r, "no base_score");
  for (size_t i = 0; i < n; i++) read_tree(&r, YAJL_GET_ARRAY(list)->values[i]);
  double between = strtod(attribute(&r, learner, "between"), NULL), within = strtod(attribute(&r, learner, "within"), NULL);
  trees *t = TARN_NEW(cx, trees);
  *t = (trees){.ntree = r.root.n,
               .nnode = r.node.n,
               .root = r.root.p,
               .node = r.node.p,
               .base = strtod(base->u.string, NULL),
               .hw = attribute(&r, learner, "hw"),
               .features = attribute(&r, learner, "features"),
               .trust = {between > 0 ? fmin(between, 1) : 0, within > 0 ? fmin(within, 1) : 0},
               .threads = strtoull(attribute(&r, learner, "threads"), NULL, 16)};
  if (!t->threads) t->threads = UINT64_MAX; /* not said: trees of a search, used on what they were learned from */
  s->out = t;
}
const trees *trees_read(tarn_ctx *cx, const char *name, const char *text, size_t n) {
  source s = {.name = name, .text = tarn_strndup(cx, text, n)};
  tarn_status st = tarn_protect(cx, read_model, &s); /* so that the JSON is dropped here */
  if (st != TARN_OK) tarn_reraise(cx, st);
  return s.out;
}

double trees_predict(const trees *t, const float f[TARN_FEATURES]) {
  float sum = 0; /* in the order and width of the library */
  for (uint32_t i = 0; i < t->ntree; i++) {
    const tree_node *n = &t->node[t->root[i]];
    while (n->feature != TARN_NONE) n = &t->node[f[n->feature] < n->at ? n->left : n->right];
    sum += n->at;
  }
  return t->base + (double)sum;
}
