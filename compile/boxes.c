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

static bool same_poly(const tarn_poly *a, const tarn_poly *b) {
  return a->n == b->n && a->over == b->over && !memcmp(a->t, b->t, a->n * sizeof *a->t);
}
static bool same_dims(const tarn_box *a, const tarn_box *b) {
  bool same = a->dtype == b->dtype && a->n == b->n;
  for (uint32_t d = 0; d < a->n && same; d++) same = same_poly(&a->dim[d], &b->dim[d]);
  return same;
}
/* A dim that is v[i] in sample i; false: it is none that rises with the sizes. */
static bool growing(const tarn_lower_family *f, const int64_t *v, tarn_poly *p) {
  return tarn_poly_through(&f->at, v, p) && tarn_poly_rises(p, &f->at);
}
static bool is_fixed(const tarn_poly *p) {
  static const uint8_t constant[TARN_MOST_SIZES];
  return !p->n || (p->n == 1 && !memcmp(p->t[0].power, constant, sizeof constant));
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
  for (uint32_t i = 0; i < f->at.n; i++) {
    const tarn_type *t = type_of(f, i, b);
    if (!t || t->n != type_of(f, 0, b)->n) return false;
  }
  memset(x, 0, sizeof *x);
  x->n = type_of(f, 0, b)->n;
  x->dtype = type_of(f, 0, b)->dtype;
  for (uint32_t d = 0; d < x->n; d++) {
    for (uint32_t i = 0; i < f->at.n; i++) v[i] = type_of(f, i, b)->dim[d];
    if (!growing(f, v, &x->dim[d])) return false;
    rows |= outer && !is_fixed(&x->dim[d]);
    outer |= v[f->at.n - 1] > 1;
  }
  return rows;
}
/* Somewhat more than the largest needs, so that the constant has gaps there too. */
static void reach(tarn_box *x, const int64_t *largest) {
  for (uint32_t d = 0; d < x->n; d++) {
    x->most[d] = tarn_poly_at(&x->dim[d], largest);
    if (!is_fixed(&x->dim[d])) x->most[d] += d + 1 < x->n ? 1 : ROW - x->most[d] % ROW;
  }
}
bool comp_boxes_learn(tarn_ctx *cx, comp_box_list *known, const tarn_lower_family *f,
                      const int64_t *largest) {
  uint32_t had = known->n;
  for (uint32_t i = 1; i < f->at.n; i++)
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
