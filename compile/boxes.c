/* Constants that grow with the size, in programs of a family.
 *
 * A causal mask has a row for each token. Packed, its rows are as far apart as the size says, and
 * each size needs a constant of its own. With the rows of every size as far apart as those of the
 * largest, the mask of a smaller size is a box of the largest one's, and one constant serves all.
 * The samples of a family that failed show which constants grow; the family is then tried once
 * more, and later families know them. lower/same.c compares the elements. */
#include "compile/sizes.h"
#include <string.h>

#define ROW 16 /* rows begin at multiples of so many elements */

static bool same_dims(const tarn_box *a, const tarn_box *b) {
  return a->dtype == b->dtype && a->n == b->n && !memcmp(a->dim, b->dim, a->n * sizeof *a->dim);
}
/* A dim that is v[i] in sample i; false: it is not affine in the size. */
static bool growing(const tarn_lower_family *f, const int64_t *v, tarn_growing_dim *g) {
  int64_t c[3];
  if (!tarn_numbers_fit(f->at, v, f->n, c) || c[2] || c[1] < 0) return false;
  *g = (tarn_growing_dim){c[1], c[0] * f->step - c[1] * f->from, f->step};
  int64_t by = tarn_gcd(tarn_gcd(g->by, g->plus), g->over);
  g->by /= by;
  g->plus /= by;
  g->over /= by;
  return true;
}
/* As the kernel reads it, before tiles are packed; NULL: buffer b of sample i is no such constant.
 */
static const tarn_type *type_of(const tarn_lower_family *f, uint32_t i, uint32_t b) {
  const tarn_buffer *s = &f->sample[i]->buf[b];
  if (s->kind != TARN_BUF_CONST || s->term == TARN_NONE || s->value) return NULL;
  return tarn_term_type(f->sample[i]->L, s->term);
}
/* Buffer b of the samples: a constant whose rows grow. */
static bool box_of(const tarn_lower_family *f, uint32_t b, tarn_box *x) {
  int64_t v[TARN_FAMILY_SAMPLES];
  bool outer = false, rows = false;
  for (uint32_t i = 0; i < f->n; i++) {
    const tarn_type *t = type_of(f, i, b);
    if (!t || t->n != type_of(f, 0, b)->n) return false;
  }
  memset(x, 0, sizeof *x);
  x->n = type_of(f, 0, b)->n;
  x->dtype = type_of(f, 0, b)->dtype;
  for (uint32_t d = 0; d < x->n; d++) {
    for (uint32_t i = 0; i < f->n; i++) v[i] = type_of(f, i, b)->dim[d];
    if (!growing(f, v, &x->dim[d])) return false;
    rows |= outer && x->dim[d].by;
    outer |= v[f->n - 1] > 1;
  }
  return rows;
}
/* Somewhat more than the largest needs, so that the constant has gaps there too. */
static void reach(tarn_box *x, int64_t largest) {
  for (uint32_t d = 0; d < x->n; d++) {
    const tarn_growing_dim *g = &x->dim[d];
    x->most[d] = (g->by * largest + g->plus) / g->over;
    if (g->by) x->most[d] += d + 1 < x->n ? 1 : ROW - x->most[d] % ROW;
  }
}
bool comp_boxes_learn(tarn_ctx *cx, comp_box_list *known, const tarn_lower_family *f,
                      int64_t largest) {
  uint32_t had = known->n;
  for (uint32_t i = 1; i < f->n; i++)
    if (f->sample[i]->nbuf != f->sample[0]->nbuf) return false;
  for (uint32_t b = 0; b < f->sample[0]->nbuf; b++) {
    tarn_box x;
    bool is = box_of(f, b, &x);
    for (uint32_t i = 0; i < known->n && is; i++) is = !same_dims(&known->p[i], &x);
    if (!is) continue;
    reach(&x, largest);
    tarn_push(cx, known, x);
  }
  return known->n > had;
}
