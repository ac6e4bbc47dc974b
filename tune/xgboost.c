/* Learns trees with XGBoost; no other file uses that library.
 *
 * What it has learned is read from the JSON that it gives ("Introduction to Model IO" in its
 * documentation), which holds floats exactly. */
#include "base/limit.h"
#include "hw/yajl.h"
#include "tune/trees.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

typedef struct learner {
  tarn_ctx *cx;
  DMatrixHandle data;
  BoosterHandle booster;
} learner;
static void drop_learner(void *p) {
  learner *l = p;
  if (l->booster) XGBoosterFree(l->booster);
  if (l->data) XGDMatrixFree(l->data);
  l->booster = NULL, l->data = NULL;
}
static void ok(learner *l, int status) {
  if (!status) return;
  const char *e = XGBGetLastError();
  tarn_raise(l->cx, TARN_INTERNAL, "xgboost: %.*s", (int)strcspn(e, "\n"), e);
}

/* A schedule counts by its speed beside the fastest of its kernel: which of the slow ones is slower
 * does not matter. */
static void load_weights(learner *l, const tarn_sample *x, uint32_t n, float *weight) {
  tarn_map *first = tarn_map_new(l->cx); /* kernel -> 1 + its fastest */
  for (uint32_t i = 0; i < n; i++) {
    uint64_t *at = tarn_map_at(first, trees_group(&x[i]), &(bool){false});
    if (!*at || x[i].seconds < x[*at - 1].seconds) *at = i + 1;
  }
  for (uint32_t i = 0; i < n; i++)
    weight[i] =
        (float)(0.05 + x[*tarn_map_get(first, trees_group(&x[i])) - 1].seconds / x[i].seconds);
}
static void load_rows(learner *l, const tarn_sample *x, uint32_t n) {
  float *row = TARN_ARRAY(l->cx, float, (size_t)n *TARN_FEATURES),
        *label = TARN_ARRAY(l->cx, float, n);
  float *weight = TARN_ARRAY(l->cx, float, n);
  for (uint32_t i = 0; i < n; i++) {
    memcpy(row + (size_t)i * TARN_FEATURES, x[i].feature, sizeof x[i].feature);
    label[i] = (float)log2(x[i].seconds / x[i].analytic);
  }
  ok(l, XGDMatrixCreateFromMat(row, n, TARN_FEATURES, NAN, &l->data));
  load_weights(l, x, n, weight);
  ok(l, XGDMatrixSetFloatInfo(l->data, "label", label, n));
  ok(l, XGDMatrixSetFloatInfo(l->data, "weight", weight, n));
}
static void train(learner *l, const tarn_sample *x, uint32_t n, uint64_t seed, uint32_t rounds) {
  const char *const set[][2] = {
      {"objective", "reg:squarederror"},
      {"tree_method", "hist"},
      {"max_depth", rounds < TREES_ROUNDS ? "5" : "7"},
      {"eta", rounds < TREES_ROUNDS ? "0.25" : "0.1"},
      {"min_child_weight", "3"},
      {"subsample", "0.8"},
      {"num_parallel_tree", rounds < TREES_ROUNDS ? "1" : "2"}, /* each step the mean of two */
      {"colsample_bytree", "0.6"},
      {"lambda", "2"},
      {"nthread", "1"},
      {"base_score", "0"},
      {"verbosity", "0"},
      {"seed", tarn_format(l->cx, "%u", (unsigned)(seed & 0x7fffffff))}};
  load_rows(l, x, n);
  ok(l, XGBoosterCreate(&l->data, 1, &l->booster));
  for (size_t i = 0; i < sizeof set / sizeof *set; i++)
    ok(l, XGBoosterSetParam(l->booster, set[i][0], set[i][1]));
  const char *name[TARN_FEATURES];
  for (uint32_t i = 0; i < TARN_FEATURES; i++) name[i] = tarn_feature_name(i);
  ok(l, XGBoosterSetStrFeatureInfo(l->booster, "feature_name", name, TARN_FEATURES));
  for (uint32_t i = 0; i < rounds && !(i && tarn_late(l->cx)); i++)
    ok(l, XGBoosterUpdateOneIter(l->booster, (int)i, l->data));
}

/* ---- what it has learned ---- */
typedef struct reading {
  tarn_ctx *cx;
  TARN_VEC(uint32_t) root;
  TARN_VEC(tree_node) node;
  TARN_VEC(uint32_t) order; /* nodes of the tree that is read, breadth first */
} reading;
TARN_NORETURN static void strange(tarn_ctx *cx) {
  tarn_raise(cx, TARN_INTERNAL, "xgboost: trees of another form than expected");
}
static double number_of(tarn_ctx *cx, yajl_val x) {
  if (!YAJL_IS_NUMBER(x)) strange(cx);
  return strtod(x->u.number.r, NULL);
}
static void read_tree(reading *r, yajl_val tree) {
  static const char *const key[] = {"left_children", "right_children", "split_indices",
                                    "split_conditions"};
  enum { LEFT, RIGHT, FEATURE, AT };
  yajl_val *of[4];
  uint32_t n = 0;
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t before = n;
    n = tarn_yajl_list(r->cx, "xgboost", tree, key[i], &of[i]);
    if (i && n != before) strange(r->cx);
  }
  uint32_t base = r->node.n;
  tarn_push(r->cx, &r->root, base);
  r->order.n = 0;
  tarn_push(r->cx, &r->order, 0u);
  for (uint32_t i = 0; i < r->order.n; i++) {
    uint32_t from = r->order.p[i];
    if (from >= n || r->order.n > n) strange(r->cx);
    tree_node d = {.at = (float)number_of(r->cx, of[AT][from])};
    double left = number_of(r->cx, of[LEFT][from]);
    if (left >= 0) {
      uint32_t feature = (uint32_t)number_of(r->cx, of[FEATURE][from]);
      if (feature >= TARN_FEATURES || base + r->order.n > TREES_LEFT) strange(r->cx);
      d = tree_split(d.at, base + r->order.n, feature);
      tarn_push(r->cx, &r->order, (uint32_t)left);
      tarn_push(r->cx, &r->order, (uint32_t)number_of(r->cx, of[RIGHT][from]));
    }
    tarn_push(r->cx, &r->node, d);
  }
}
static void read_trees(learner *l, trees *t) {
  static const char *const path[] = {"learner", "gradient_booster", "model"};
  const char *text;
  bst_ulong size;
  yajl_val *tree;
  reading r = {.cx = l->cx};
  ok(l, XGBoosterSaveModelToBuffer(l->booster, "{\"format\": \"json\"}", &size, &text));
  yajl_val v = tarn_yajl_parse(l->cx, "xgboost", text, size);
  for (uint32_t i = 0; v && i < sizeof path / sizeof *path; i++)
    v = tarn_yajl_get(v, path[i], yajl_t_object);
  uint32_t n = v ? tarn_yajl_list(l->cx, "xgboost", v, "trees", &tree) : 0;
  if (!n) strange(l->cx);
  for (uint32_t i = 0; i < n; i++) read_tree(&r, tree[i]);
  t->ntree = r.root.n, t->root = r.root.p, t->nnode = r.node.n, t->node = r.node.p;
}
static void read_shares(learner *l, trees *t) {
  bst_ulong n, dims;
  const bst_ulong *shape;
  const char **name;
  const float *gain;
  double sum = 0;
  float *share = TARN_ARRAY(l->cx, float, TARN_FEATURES);
  ok(l, XGBoosterFeatureScore(l->booster, "{\"importance_type\": \"total_gain\"}", &n, &name, &dims,
                              &shape, &gain));
  for (bst_ulong i = 0; i < n; i++) sum += (double)gain[i];
  for (bst_ulong i = 0; i < n; i++)
    for (uint32_t f = 0; f < TARN_FEATURES; f++)
      if (!strcmp(name[i], tarn_feature_name(f))) share[f] = (float)((double)gain[i] / sum);
  t->nfeature = TARN_FEATURES, t->share = share;
}

typedef struct lesson {
  const tarn_sample *x;
  uint32_t n, rounds;
  uint64_t seed;
  trees *out;
} lesson;
static void learn(tarn_ctx *cx, void *arg) {
  lesson *a = arg;
  learner *l = TARN_NEW(cx, learner);
  l->cx = cx;
  tarn_defer(cx, drop_learner, l);
  train(l, a->x, a->n, a->seed, a->rounds);
  trees *t = TARN_NEW(cx, trees);
  *t = (trees){.hw = "", .features = "", .threads = UINT64_MAX};
  read_trees(l, t);
  read_shares(l, t);
  a->out = t;
}
trees *trees_train(tarn_ctx *cx, const tarn_sample *x, uint32_t n, uint64_t seed, uint32_t rounds) {
  lesson a = {x, n, rounds, seed, NULL};
  tarn_status st = tarn_protect(cx, learn, &a); /* so that the library's memory goes here */
  if (st != TARN_OK) tarn_reraise(cx, st);
  return a.out;
}
