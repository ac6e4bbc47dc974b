/* Operators whose output's shape depends on values: computed while importing, where these are
 * constant.  NonMaxSuppression is ONNX Runtime's: of equal scores the first box comes first, and a
 * box without an area suppresses nothing. */
#include "model/import.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- NonZero */

static void non_zero(im_node *n) {
  const tarn_tensor *x = im_known(n, n->in[0], "its input");
  int64_t count = tarn_tensor_count(x), found = 0, at = 0;
  bool real = tarn_dtype_is_float(x->dtype);
  for (int64_t i = 0; i < count; i++) {
    tarn_value v = tarn_tensor_get(x, i);
    found += real ? v.d != 0 : v.i != 0;
  }
  int64_t dim[] = {x->n, found};
  tarn_tensor *t = im_new(n, TARN_I64, 2, dim);
  for (int64_t i = 0; i < count; i++) {
    tarn_value v = tarn_tensor_get(x, i);
    if (real ? v.d == 0 : v.i == 0) continue;
    int64_t rest = i;
    for (uint32_t k = x->n; k-- > 0; rest /= x->dim[k])
      tarn_tensor_set(t, k * found + at, (tarn_value){.i = rest % x->dim[k]});
    at++;
  }
  n->m->nfolded++;
  im_set_tensor(n, 0, t);
}

/* ---------------------------------------------------------------- NonMaxSuppression */

typedef struct box {
  float lo[2], hi[2];
} box;

typedef struct candidate {
  float score;
  int64_t at; /* its box */
} candidate;

typedef struct suppression {
  const tarn_tensor *boxes, *scores; /* (batch,boxes,4), (batch,classes,boxes) */
  int64_t batches, classes, n, most; /* of a class */
  float overlap, score;              /* thresholds */
  bool scored;                       /* there is one for scores */
  bool centred;                      /* a box is its middle and its sizes; else two corners */
  box *box;                          /* of the batch */
  candidate *best;
  TARN_VEC(int64_t) found; /* batch, class, box */
} suppression;

static float element(const tarn_tensor *t, int64_t i) { return (float)tarn_tensor_get(t, i).d; }

static box read_box(const suppression *s, int64_t at) {
  box b;
  for (int64_t i = 0; i < 2; i++) {
    float u = element(s->boxes, at * 4 + i), v = element(s->boxes, at * 4 + 2 + i);
    float lo = u < v ? u : v, hi = u < v ? v : u;
    b.lo[i] = s->centred ? u - v / 2 : lo;
    b.hi[i] = s->centred ? u + v / 2 : hi;
  }
  return b;
}

static float area(const box *b) { return (b->hi[0] - b->lo[0]) * (b->hi[1] - b->lo[1]); }

static bool overlaps(const box *a, const box *b, float most) {
  box c;
  for (int i = 0; i < 2; i++) {
    c.lo[i] = a->lo[i] > b->lo[i] ? a->lo[i] : b->lo[i];
    c.hi[i] = a->hi[i] < b->hi[i] ? a->hi[i] : b->hi[i];
    if (c.hi[i] <= c.lo[i]) return false;
  }
  float both = area(&c), one = area(a), other = area(b), all = one + other - both;
  return both > 0 && one > 0 && other > 0 && all > 0 && both / all > most;
}

static int by_score(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  bool nan = isnan(x->score);
  if (nan != isnan(y->score)) return nan ? 1 : -1; /* last */
  if (!nan && x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* The best boxes of one class that do not overlap. */
static void suppress(im_node *n, suppression *s, int64_t batch, int64_t class) {
  int64_t count = 0, kept = 0;
  for (int64_t i = 0; i < s->n; i++) {
    float v = element(s->scores, (batch * s->classes + class) * s->n + i);
    if (!s->scored || v > s->score) s->best[count++] = (candidate){v, i};
  }
  qsort(s->best, (size_t)count, sizeof *s->best, by_score);
  for (int64_t i = 0; i < count && kept < s->most; i++) {
    int64_t k = 0;
    while (k < kept && !overlaps(&s->box[s->best[i].at], &s->box[s->best[k].at], s->overlap)) k++;
    if (k < kept) continue;
    s->best[kept++] = s->best[i];
    tarn_push(n->cx, &s->found, batch);
    tarn_push(n->cx, &s->found, class);
    tarn_push(n->cx, &s->found, s->best[kept - 1].at);
  }
}

static suppression read_suppression(im_node *n) {
  suppression s = {.boxes = im_known(n, n->in[0], "boxes"),
                   .scores = im_known(n, n->in[1], "scores")};
  const tarn_tensor *b = s.boxes, *c = s.scores;
  if (b->n != 3 || c->n != 3 || b->dim[2] != 4 || b->dim[0] != c->dim[0] ||
      b->dim[1] != c->dim[2] || b->dtype != TARN_F32 || c->dtype != TARN_F32)
    im_bad(n, "boxes and scores do not fit");
  s.batches = c->dim[0], s.classes = c->dim[1], s.n = c->dim[2];
  s.most = im_opt(n, 2) != TARN_NONE ? im_int(n, 2, "max_output_boxes_per_class") : 0;
  s.overlap = im_opt(n, 3) != TARN_NONE ? (float)im_real(n, 3, "iou_threshold") : 0;
  s.scored = im_opt(n, 4) != TARN_NONE;
  s.score = s.scored ? (float)im_real(n, 4, "score_threshold") : 0;
  s.centred = im_attr_int(n, "center_point_box", 0) != 0;
  if (!(s.overlap >= 0 && s.overlap <= 1)) im_bad(n, "iou_threshold is not between 0 and 1");
  int64_t kept = s.most < s.n ? s.most : s.n, work = tarn_tensor_count(c);
  if (kept > 0 && work > IM_MAX_WORK / kept)
    im_bad(n, "its boxes take too long to compare while importing");
  s.box = TARN_ARRAY(n->cx, box, s.n + 1);
  s.best = TARN_ARRAY(n->cx, candidate, s.n + 1);
  return s;
}

static void non_max_suppression(im_node *n) {
  suppression s = read_suppression(n);
  for (int64_t i = 0; i < s.batches; i++) {
    for (int64_t k = 0; k < s.n; k++) s.box[k] = read_box(&s, i * s.n + k);
    for (int64_t c = 0; c < s.classes; c++) suppress(n, &s, i, c);
  }
  int64_t dim[] = {s.found.n / 3, 3};
  tarn_tensor *t = im_new(n, TARN_I64, 2, dim);
  for (uint32_t i = 0; i < s.found.n; i++) tarn_tensor_set(t, i, (tarn_value){.i = s.found.p[i]});
  n->m->nfolded++;
  im_set_tensor(n, 0, t);
}

/* ---------------------------------------------------------------- Unique */

/* Parts of a tensor: its elements, or its slices along an axis. Part i, element k of it stands at
 * i · by + k / inner · outer + k % inner. */
typedef struct parts {
  const tarn_tensor *x;
  int64_t count, size, by, inner, outer;
} parts;

static parts parts_of(im_node *n) {
  const tarn_tensor *x = im_known(n, n->in[0], "its input");
  parts p = {.x = x, .count = tarn_tensor_count(x), .size = 1, .by = 1, .inner = 1};
  if (!im_attr(n, "axis")) return p;
  uint32_t axis = im_axis(n, im_attr_int(n, "axis", 0), x->n);
  p.count = x->dim[axis];
  p.size = 1;
  for (uint32_t i = 0; i < x->n; i++) {
    if (i != axis) p.size *= x->dim[i];
    if (i > axis) p.inner *= x->dim[i];
  }
  p.by = p.inner;
  p.outer = p.inner * p.count;
  return p;
}

static int64_t place(const parts *p, int64_t part, int64_t k) {
  return part * p->by + k / p->inner * p->outer + k % p->inner;
}

/* A NaN comes last, and is like any other. */
static int by_value(tarn_dtype t, tarn_value a, tarn_value b) {
  if (t == TARN_U64) return (uint64_t)a.i < (uint64_t)b.i ? -1 : (uint64_t)a.i > (uint64_t)b.i;
  if (!tarn_dtype_is_float(t)) return a.i < b.i ? -1 : a.i > b.i;
  if (isnan(a.d) || isnan(b.d)) return isnan(a.d) - isnan(b.d);
  return a.d < b.d ? -1 : a.d > b.d;
}

static int by_part(const parts *p, int64_t a, int64_t b) {
  int order = 0;
  for (int64_t k = 0; k < p->size && !order; k++)
    order = by_value(p->x->dtype, tarn_tensor_get(p->x, place(p, a, k)),
                     tarn_tensor_get(p->x, place(p, b, k)));
  return order;
}

/* Numbers of the parts in ascending order, of equals the first one first: merged runs. */
static int64_t *ascending(im_node *n, const parts *p) {
  int64_t *from = TARN_ARRAY(n->cx, int64_t, p->count + 1),
          *to = TARN_ARRAY(n->cx, int64_t, p->count + 1);
  for (int64_t i = 0; i < p->count; i++) from[i] = i;
  for (int64_t run = 1; run < p->count; run *= 2) {
    for (int64_t lo = 0; lo < p->count; lo += 2 * run) {
      int64_t middle = lo + run < p->count ? lo + run : p->count,
              hi = middle + run < p->count ? middle + run : p->count, a = lo, b = middle;
      for (int64_t k = lo; k < hi; k++)
        to[k] =
            a < middle && (b == hi || by_part(p, from[a], from[b]) <= 0) ? from[a++] : from[b++];
    }
    int64_t *other = from;
    from = to, to = other;
  }
  return from;
}

typedef struct kinds {
  int64_t count;
  int64_t *of;    /* by part */
  int64_t *first; /* part of each kind, and how many there are of it */
  int64_t *times;
} kinds;

static kinds new_kinds(im_node *n, int64_t many) {
  return (kinds){0, TARN_ARRAY(n->cx, int64_t, many + 1), TARN_ARRAY(n->cx, int64_t, many + 1),
                 TARN_ARRAY(n->cx, int64_t, many + 1)};
}

/* Parts that are equal; the kinds ascend. */
static kinds kinds_of(im_node *n, const parts *p) {
  const int64_t *at = ascending(n, p);
  kinds k = new_kinds(n, p->count);
  for (int64_t i = 0; i < p->count; i++) {
    if (i == 0 || by_part(p, at[i - 1], at[i]) != 0) k.first[k.count++] = at[i];
    k.of[at[i]] = k.count - 1;
    k.times[k.count - 1]++;
  }
  return k;
}

/* The kinds in the order in which they come. */
static kinds in_order(im_node *n, const kinds *k, int64_t many) {
  kinds to = new_kinds(n, many);
  int64_t *number = TARN_ARRAY(n->cx, int64_t, k->count + 1);
  for (int64_t i = 0; i < many; i++) {
    int64_t kind = k->of[i];
    if (k->first[kind] == i) {
      to.first[to.count] = i;
      to.times[to.count] = k->times[kind];
      number[kind] = to.count++;
    }
    to.of[i] = number[kind];
  }
  return to;
}

static void set_numbers(im_node *n, uint32_t output, const int64_t *v, int64_t count) {
  tarn_tensor *t = im_new(n, TARN_I64, 1, &count);
  for (int64_t i = 0; i < count; i++) tarn_tensor_set(t, i, (tarn_value){.i = v[i]});
  im_set_tensor(n, output, t);
}

static tarn_tensor *kept(im_node *n, const parts *p, const kinds *k) {
  int64_t dim[TARN_MAX_DIMS] = {k->count};
  bool whole = im_attr(n, "axis") != NULL;
  if (whole) memcpy(dim, p->x->dim, sizeof dim);
  if (whole) dim[im_axis(n, im_attr_int(n, "axis", 0), p->x->n)] = k->count;
  tarn_tensor *t = im_new(n, p->x->dtype, whole ? p->x->n : 1, dim);
  parts to = *p;
  to.outer = p->inner * k->count;
  for (int64_t i = 0; i < k->count; i++)
    for (int64_t e = 0; e < p->size; e++)
      tarn_tensor_set(t, place(&to, i, e), tarn_tensor_get(p->x, place(p, k->first[i], e)));
  return t;
}

static void unique(im_node *n) {
  parts p = parts_of(n);
  if (p.count > IM_MAX_MADE) im_bad(n, "its %lld parts take too long to sort", (long long)p.count);
  kinds k = kinds_of(n, &p);
  if (!im_attr_int(n, "sorted", 1)) k = in_order(n, &k, p.count);
  n->m->nfolded++;
  im_set_tensor(n, 0, kept(n, &p, &k));
  set_numbers(n, 1, k.first, k.count);
  set_numbers(n, 2, k.of, p.count);
  set_numbers(n, 3, k.times, k.count);
}

/* ---------------------------------------------------------------- the operators */

static const struct {
  const char *op;
  im_handler *run;
} folded[] = {
    {"NonZero", non_zero}, {"NonMaxSuppression", non_max_suppression}, {"Unique", unique}};

void im_do_data_dependent(im_node *n) {
  if (!im_all_known(n))
    im_bad(n, "the shape of its output depends on values that are not constant");
  for (size_t i = 0; i < sizeof folded / sizeof *folded; i++)
    if (strcmp(folded[i].op, n->op) == 0) {
      folded[i].run(n);
      return;
    }
  im_bad(n, "the shape of its output depends on its values");
}
