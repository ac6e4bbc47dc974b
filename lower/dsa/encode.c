/* Instructions as bits, and as text. */
#include "lower/dsa/dsa.h"
#include <string.h>

void dsa_put(const tarn_hw_format *f, uint8_t *bits, uint32_t field, int64_t v) {
  const tarn_hw_field *w = &f->field[field];
  for (uint32_t i = 0; i < w->width; i++) {
    uint8_t bit = (uint8_t)(1u << ((w->at + i) % 8));
    uint8_t *at = &bits[(w->at + i) / 8];
    *at = (uint8_t)((*at & ~bit) | ((v >> i & 1) ? bit : 0));
  }
}
static bool fits(const tarn_hw_field *w, int64_t v) {
  if (w->width >= 63) return true;
  if (!w->is_signed) return v >= 0 && v < (int64_t)1 << w->width;
  int64_t half = (int64_t)1 << (w->width - 1);
  return v >= -half && v < half;
}
static void encode_one(const dsa_stream *s, uint32_t i, uint8_t *bits) {
  const dsa_instruction *x = &s->x.p[i];
  const tarn_hw_format *f = &s->hw->format[x->is->format];
  for (uint32_t k = 0; k < f->nfield; k++) {
    if (!fits(&f->field[k], x->field[k]))
      tarn_raise(s->cx, TARN_BAD_INPUT,
                 "%s: instruction %u (%s): field %s of %u bits holds no %lld", s->hw->name, i,
                 x->is->name, f->field[k].name, f->field[k].width, (long long)x->field[k]);
    dsa_put(f, bits, k, x->field[k]);
  }
  for (uint32_t k = 0; k < x->is->npop; k++)
    if (x->pops >> k & 1) dsa_put(f, bits, x->is->pop[k].field, 1);
  for (uint32_t k = 0; k < x->is->npush; k++)
    if (x->pushes >> k & 1) dsa_put(f, bits, x->is->push[k].field, 1);
}
void dsa_encode(const dsa_stream *s, tarn_buf *out) {
  for (uint32_t i = 0; i < s->x.n; i++) {
    uint8_t bits[64] = {0};
    uint32_t bytes = s->hw->format[s->x.p[i].is->format].bits / 8;
    if (bytes > sizeof bits)
      tarn_raise(s->cx, TARN_BAD_INPUT, "%s: instructions of %u bytes", s->hw->name, bytes);
    encode_one(s, i, bits);
    tarn_buf_add(out, (const char *)bits, bytes);
  }
}
static void tokens(const tarn_hw *hw, const tarn_hw_flag *f, uint32_t n, uint32_t set,
                   const char *word, tarn_buf *out) {
  for (uint32_t k = 0; k < n; k++)
    if (set >> k & 1) tarn_buf_fmt(out, " %s %s", word, hw->token[f[k].token].name);
}
void dsa_text(const dsa_stream *s, tarn_buf *out) {
  for (uint32_t i = 0; i < s->x.n; i++) {
    const dsa_instruction *x = &s->x.p[i];
    const tarn_hw_format *f = &s->hw->format[x->is->format];
    tarn_buf_fmt(out, "%6u %-8s %s", i, s->hw->queue[x->is->queue].name, x->is->name);
    tokens(s->hw, x->is->pop, x->is->npop, x->pops, "pop", out);
    tokens(s->hw, x->is->push, x->is->npush, x->pushes, "push", out);
    for (uint32_t k = 0; k < f->nfield; k++) {
      bool is = false;
      for (uint32_t w = 0; w < x->is->nis; w++) is |= x->is->is[w].field == k;
      if (x->field[k] && !is)
        tarn_buf_fmt(out, " %s=%lld", f->field[k].name, (long long)x->field[k]);
    }
    tarn_buf_str(out, "\n");
  }
}
