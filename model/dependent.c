/* Operators whose output's shape depends on values: computed while importing, where these are
 * constant.  NonMaxSuppression is ONNX Runtime's: of equal scores the first box comes first, and a
 * box without an area suppresses nothing. */
#include "model/import.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

im_handler im_do_data_dependent;

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

/* ---------------------------------------------------------------- the operators */

static const struct {
  const char *op;
  im_handler *run;
} folded[] = {{"NonZero", non_zero}, {"NonMaxSuppression", non_max_suppression}};

void im_do_data_dependent(im_node *n) {
  bool known = true;
  for (uint32_t i = 0; i < n->nin; i++) known &= !n->in[i] || n->in[i]->fixed;
  if (!known) im_bad(n, "the shape of its output depends on values that are not constant");
  for (size_t i = 0; i < sizeof folded / sizeof *folded; i++)
    if (strcmp(folded[i].op, n->op) == 0) {
      folded[i].run(n);
      return;
    }
  im_bad(n, "the shape of its output depends on its values");
}
