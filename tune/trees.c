/* See trees.h. A price is kept in a file of its own format, version 1: lines of text, then bytes.
 * Numbers among the bytes are little-endian and unsigned, f32 are IEEE's.
 *
 *   tarn-price 1           the format and its version
 *   hw KEY                 what it was learned on (tarn_hw_key)
 *   features WORD          of the features and the analytic price (trees_features)
 *   threads HEX            bit n - 1: kernels of n threads are judged
 *   between X, within X    tarn_trust; a line each, left out where 0
 *   trees N
 *                          (an empty line)
 *   u16                    number of features; then of each:
 *     u16                  thresholds that trees compare it with, at most 256
 *     f32                  share of the gain
 *     f32 …                each threshold, ascending
 *   of each tree:
 *     u16                  splits s
 *     u8 …                 each of its 2s + 1 nodes, breadth first: a split's feature; 255: a leaf
 *     u8 …                 each split's threshold, its number in the feature's list
 *     f32 …                each leaf's value
 * Nothing follows the last tree.
 *
 * The children of a tree's k-th split are its nodes 2k + 1 and 2k + 2, so no number of a node is
 * kept. Trees of XGBoost's method "hist" compare a feature with 256 thresholds at most, so that
 * nothing is lost. */
#include "compile/target.h"
#include "tune/trees.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KIND       "tarn-price "
#define VERSION    1
#define LEAF       255
#define THRESHOLDS 256
#define MOST_TREES (1u << 16)

/* ---- what features are ----
 * A price corrects the analytic one and was learned on features as they were then. Three kernels,
 * scheduled by hand, whose features change when the way they are computed does: a product, a
 * maximum over a window with borders, a transposition. */
static const char *const probes[][2] = {
    {"(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 196 1024) (reduce 256) "
     "(red sum (mul $0 $1))"
     " (child 1 (index ((196 1024) (256)) (262144) ((+ d1 (* 1024 d2))))) (child 0 (index ((196 "
     "1024) (256)) (50176)"
     " ((+ d0 (* 196 d2))))) out)))(in f32 (50176) (1))(const f32 (262144) (1))(out f32 (196 1024) "
     "(1024 1)))",
     "(schedule (stage (acc 2) (serial 1 32) (serial 0 12) (serial 2 1) (unroll 0 1) (unroll 1 16) "
     "(vector 1 1)))"},
    {"(kernel (nest (stages (children 1) (shared) (split 3) (stage (own 64 56 56) (reduce 3 3) "
     "reduceMax (child 0 (index"
     " ((64 56 56) (3 3)) (802816) ((+ (* 12544 d0) (* 224 d1) (* 2 d2) (* 112 d3) d4 -113)) (fill "
     "-inf ((+ (* 2 d1) d3) 1"
     " 113) ((+ (* 2 d2) d4) 1 113)))) out)))(in f32 (802816) (1))(out f32 (64 56 56) (3136 56 "
     "1)))",
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 2) (serial 2 16) (serial 3 1) (serial 4 1) "
     "(unroll 1 1) (vector 2 1)))"},
    {"(kernel (nest (stages (children 1) (shared) (split 2) (stage (own 512 784) (reduce) (map $0) "
     "(child 0 (index ((512 784)"
     " ()) (401408) ((+ d0 (* 512 d1))))) out)))(in f32 (401408) (1))(out f32 (512 784) (784 1)))",
     "(schedule (stage (acc 5) (serial 0 32) (serial 1 12) (unroll 1 1) (unroll 0 16) (vector 0 "
     "1)))"}};
static uint64_t probe(tarn_lang *L, const tarn_hw *hw, const char *const text[2], uint64_t h) {
  tarn_ksig k;
  tarn_cost c;
  float f[TARN_FEATURES];
  tarn_ksig_parse(L, text[0], strlen(text[0]), &k);
  const tarn_schedule *s =
      tarn_schedule_parse(L, tarn_nest_get(L, k.nest), text[1], strlen(text[1]));
  tarn_target_price(L, hw, &k, s, 1, &c);
  tarn_features(L, hw, &k, s, 1, &c, f);
  for (uint32_t i = 0; i < TARN_FEATURES; i++)
    h = tarn_hash_mix(h, (uint64_t)(int64_t)llround(1e3 * (double)f[i]));
  return h;
}
const char *trees_features(tarn_ctx *cx) {
  uint64_t h = TARN_FEATURES;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  for (uint32_t i = 0; i < TARN_FEATURES; i++)
    h = tarn_hash_bytes(tarn_feature_name(i), strlen(tarn_feature_name(i)), h);
  for (uint32_t i = 0; i < sizeof probes / sizeof *probes; i++) h = probe(L, hw, probes[i], h);
  return tarn_format(cx, "%u features %016" PRIx64, TARN_FEATURES, h);
}

/* Trees are walked this many at a time: each step waits for the memory of one node only. */
#define ABREAST 8
static void leaves_of(const trees *t, const float *f, const uint32_t *root, uint32_t at[ABREAST]) {
  memcpy(at, root, ABREAST * sizeof *at);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < ABREAST; i++) {
      const tree_node *n = &t->node[at[i]];
      uint32_t child = n->left + !(f[n->feature] < n->at);
      at[i] = n->left ? child : at[i];
      more |= n->left != 0;
    }
  }
}
double trees_predict(const trees *t, const float *f) {
  float sum = 0; /* in the order and width of XGBoost */
  uint32_t at[ABREAST];
  for (uint32_t i = 0; i < t->ntree; i += ABREAST) {
    uint32_t n = t->ntree - i < ABREAST ? t->ntree - i : ABREAST, root[ABREAST];
    for (uint32_t j = 0; j < ABREAST; j++) root[j] = t->root[j < n ? i + j : i];
    leaves_of(t, f, root, at);
    for (uint32_t j = 0; j < n; j++) sum += t->node[at[j]].at;
  }
  return (double)sum;
}

/* ---- writing ---- */
static void put(tarn_buf *b, uint32_t x, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++, x >>= 8) tarn_buf_add(b, &(char){(char)(x & 255)}, 1);
}
static void put_real(tarn_buf *b, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  put(b, bits, 4);
}
static void put_head(tarn_buf *b, const trees *t) {
  tarn_buf_fmt(b, KIND "%d\nhw %s\nfeatures %s\nthreads %" PRIx64 "\n", VERSION, t->hw, t->features,
               t->threads);
  if (t->trust.between > 0) tarn_buf_fmt(b, "between %.3g\n", t->trust.between);
  if (t->trust.within > 0) tarn_buf_fmt(b, "within %.3g\n", t->trust.within);
  tarn_buf_fmt(b, "trees %u\n\n", t->ntree);
}

typedef struct table { /* the thresholds of one feature */
  float at[THRESHOLDS];
  uint32_t n;
} table;
/* The number of the first threshold that is not below x, or n. */
static uint32_t find(const table *c, float x) {
  uint32_t low = 0, high = c->n;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (c->at[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}
static table *tables_of(tarn_ctx *cx, const trees *t) {
  table *c = TARN_ARRAY(cx, table, t->nfeature);
  for (uint32_t i = 0; i < t->nnode; i++) {
    const tree_node *n = &t->node[i];
    if (!n->left) continue;
    table *of = &c[n->feature];
    uint32_t k = find(of, n->at);
    if (k < of->n && !(n->at < of->at[k])) continue;
    if (of->n == THRESHOLDS)
      tarn_raise(cx, TARN_INTERNAL, "a price compares a feature with more than %d numbers",
                 THRESHOLDS);
    of->at[of->n++] = n->at;
    qsort(of->at, of->n, sizeof *of->at, tarn_by_float);
  }
  return c;
}
static void put_tree(tarn_buf *b, const table *c, const tree_node *node, uint32_t n) {
  put(b, n / 2, 2);
  for (uint32_t i = 0; i < n; i++) put(b, node[i].left ? node[i].feature : LEAF, 1);
  for (uint32_t i = 0; i < n; i++)
    if (node[i].left) put(b, find(&c[node[i].feature], node[i].at), 1);
  for (uint32_t i = 0; i < n; i++)
    if (!node[i].left) put_real(b, node[i].at);
}
void trees_print(tarn_buf *b, const trees *t) {
  const table *c = tables_of(b->cx, t);
  put_head(b, t);
  put(b, t->nfeature, 2);
  for (uint32_t i = 0; i < t->nfeature; i++) {
    put(b, c[i].n, 2);
    put_real(b, t->share[i]);
    for (uint32_t k = 0; k < c[i].n; k++) put_real(b, c[i].at[k]);
  }
  for (uint32_t i = 0; i < t->ntree; i++) {
    uint32_t end = i + 1 < t->ntree ? t->root[i + 1] : t->nnode;
    put_tree(b, c, t->node + t->root[i], end - t->root[i]);
  }
}

/* ---- reading ---- */
typedef struct reading {
  tarn_ctx *cx;
  const char *name;
  const uint8_t *p, *end;
  trees *t;
  const table *table;
  TARN_VEC(uint32_t) root;
  TARN_VEC(tree_node) node;
} reading;
TARN_NORETURN static void wrong(const reading *r, const char *what) {
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s: %s", r->name, what);
}
static const uint8_t *take(reading *r, size_t n) {
  if ((size_t)(r->end - r->p) < n) wrong(r, "a learned price that ends too early");
  r->p += n;
  return r->p - n;
}
static uint32_t read_number(reading *r, uint32_t bytes) {
  const uint8_t *p = take(r, bytes);
  uint32_t x = 0;
  for (uint32_t i = bytes; i-- > 0;) x = x << 8 | p[i];
  return x;
}
static float real(reading *r) {
  uint32_t bits = read_number(r, 4);
  float x;
  memcpy(&x, &bits, sizeof x);
  if (!isfinite(x)) wrong(r, "a learned price with a number that is not finite");
  return x;
}
/* The next line of text, of printable characters, without its end. */
static char *line(reading *r) {
  const uint8_t *from = r->p;
  while (r->p < r->end && *r->p >= ' ' && *r->p <= '~') r->p++;
  if (r->p == r->end || *r->p != '\n') wrong(r, "not a learned price");
  return tarn_strndup(r->cx, (const char *)from, (size_t)(r->p++ - from));
}
static double share(const reading *r, const char *text) {
  char *end;
  double x = strtod(text, &end);
  if (!(x >= 0 && x <= 1) || *end || end == text)
    wrong(r, tarn_format(r->cx, "%s where a number from 0 to 1 is expected", text));
  return x;
}
static uint64_t parse_integer(const reading *r, const char *text, int base, uint64_t most) {
  char *end;
  uint64_t x = strtoull(text, &end, base);
  if (*end || end == text || x > most)
    wrong(r, tarn_format(r->cx, "%s where a number is expected", text));
  return x;
}
static void read_head(reading *r) {
  trees *t = r->t;
  size_t kind = strlen(KIND);
  const char *first = line(r);
  if (strncmp(first, KIND, kind)) wrong(r, "not a learned price");
  if (parse_integer(r, first + kind, 10, UINT32_MAX) != VERSION)
    wrong(r, tarn_format(r->cx, "a learned price of version %s; this program reads %d",
                         first + kind, VERSION));
  for (char *s; *(s = line(r));) {
    char *value = s + strcspn(s, " ");
    if (*value) *value++ = 0;
    if (!strcmp(s, "hw")) t->hw = value;
    else if (!strcmp(s, "features")) t->features = value;
    else if (!strcmp(s, "threads")) t->threads = parse_integer(r, value, 16, UINT64_MAX);
    else if (!strcmp(s, "between")) t->trust.between = share(r, value);
    else if (!strcmp(s, "within")) t->trust.within = share(r, value);
    else if (!strcmp(s, "trees")) t->ntree = (uint32_t)parse_integer(r, value, 10, MOST_TREES);
    else wrong(r, tarn_format(r->cx, "a learned price with a line that is not known: %.40s", s));
  }
}
static void read_tables(reading *r) {
  uint32_t n = read_number(r, 2);
  if (n > LEAF) wrong(r, "a learned price of more than 255 features");
  table *c = TARN_ARRAY(r->cx, table, n);
  float *gain = TARN_ARRAY(r->cx, float, n);
  for (uint32_t i = 0; i < n; i++) {
    c[i].n = read_number(r, 2);
    gain[i] = real(r);
    if (c[i].n > THRESHOLDS) wrong(r, "a learned price with a feature of more than 256 thresholds");
    for (uint32_t k = 0; k < c[i].n; k++) {
      c[i].at[k] = real(r);
      if (k && !(c[i].at[k - 1] < c[i].at[k]))
        wrong(r, "a learned price with thresholds out of order");
    }
  }
  r->t->nfeature = n, r->t->share = gain, r->table = c;
}
static void read_tree(reading *r) {
  uint32_t base = r->node.n, splits = read_number(r, 2), n = 2 * splits + 1,
           seen = 1; /* nodes that have a parent, and the root */
  const uint8_t *kind = take(r, n), *cut = take(r, splits);
  if (base + n > TREES_LEFT) wrong(r, "a learned price of more than 16 million nodes");
  tarn_push(r->cx, &r->root, base);
  for (uint32_t i = 0; i < n; i++) {
    tree_node d = {0};
    if (i == seen) wrong(r, "a learned price with a tree in pieces");
    if (kind[i] == LEAF) d.at = real(r);
    else {
      if (seen + 2 > n) wrong(r, "a learned price with a tree of more splits than it says");
      if (kind[i] >= r->t->nfeature || *cut >= r->table[kind[i]].n)
        wrong(r, "a learned price that compares with nothing");
      d = tree_split(r->table[kind[i]].at[*cut++], base + seen, kind[i]);
      seen += 2;
    }
    tarn_push(r->cx, &r->node, d);
  }
}
const trees *trees_read(tarn_ctx *cx, const char *name, const void *bytes, size_t n) {
  trees *t = TARN_NEW(cx, trees);
  reading r = {.cx = cx, .name = name, .p = bytes, .end = (const uint8_t *)bytes + n, .t = t};
  *t = (trees){.hw = "", .features = ""};
  read_head(&r);
  read_tables(&r);
  for (uint32_t i = 0; i < t->ntree; i++) read_tree(&r);
  if (r.p != r.end) wrong(&r, "a learned price with something behind its last tree");
  t->root = r.root.p, t->node = r.node.p, t->nnode = r.node.n;
  return t;
}
