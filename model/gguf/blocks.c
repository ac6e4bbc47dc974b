/* Types of elements in GGUF files.  A block holds the next elements of a row: numbers of a few
 * bits, and their scales.  A tensor of blocks is taken apart into one tensor for each field, which
 * keeps its bytes; what the numbers mean is the operator Dequantize of the domain ggml, in terms.
 * Only scales of 6 bits become bytes here.
 *
 * Source: ggml-common.h (block_q4_0 …) and dequantize_row_* of ggml-quants.c. */
#include "model/gguf/gguf.h"
#include "model/import.h"
#include <math.h>
#include <string.h>

enum { PACKED = 12, UNPACKED = 8 }; /* bytes of eight scales and eight minima of 6 bits */
#define PLAIN(name, code, dtype, bytes)                                                            \
  {                                                                                                \
    name, code, 1, bytes, dtype, {                                                                 \
      { 0 }                                                                                        \
    }                                                                                              \
  }
#define NAMED(name, code)                                                                          \
  {                                                                                                \
    name, code, 0, 0, TARN_U8, {                                                                   \
      { 0 }                                                                                        \
    }                                                                                              \
  }
#define BLOCK(name, code, elements, bytes, ...)                                                    \
  {                                                                                                \
    name, code, elements, bytes, TARN_U8, { __VA_ARGS__ }                                          \
  }
#define FIELD(role, dtype, at, bytes)                                                              \
  { role, dtype, at, bytes, 0, 0 }
#define FEW(role, at, bytes, bits, run)                                                            \
  { role, TARN_U8, at, bytes, bits, run }
#define SCALE_AT(at) FIELD(SCALE, TARN_F16, at, 2)
#define LEAST_AT(at) FIELD(LEAST, TARN_F16, at, 2)
#define SIX_BITS     FEW(SCALES, 4, PACKED, 6, 0), FEW(LEASTS, 4, PACKED, 6, 0)
static const gguf_type types[] = {
    PLAIN("F32", 0, TARN_F32, 4),
    PLAIN("F16", 1, TARN_F16, 2),
    PLAIN("BF16", 30, TARN_BF16, 2),
    PLAIN("F64", 28, TARN_F64, 8),
    PLAIN("I8", 24, TARN_I8, 1),
    PLAIN("I16", 25, TARN_I16, 2),
    PLAIN("I32", 26, TARN_I32, 4),
    PLAIN("I64", 27, TARN_I64, 8),
    BLOCK("Q4_0", 2, 32, 18, SCALE_AT(0), FEW(BITS, 2, 16, 4, 16)),
    BLOCK("Q4_1", 3, 32, 20, SCALE_AT(0), LEAST_AT(2), FEW(BITS, 4, 16, 4, 16)),
    BLOCK("Q5_0", 6, 32, 22, SCALE_AT(0), FEW(HIGH, 2, 4, 1, 1), FEW(BITS, 6, 16, 4, 16)),
    BLOCK("Q5_1", 7, 32, 24, SCALE_AT(0), LEAST_AT(2), FEW(HIGH, 4, 4, 1, 1),
          FEW(BITS, 8, 16, 4, 16)),
    BLOCK("Q8_0", 8, 32, 34, SCALE_AT(0), FIELD(BITS, TARN_I8, 2, 32)),
    BLOCK("Q4_K", 12, 256, 144, SCALE_AT(0), LEAST_AT(2), SIX_BITS, FEW(BITS, 16, 128, 4, 32)),
    BLOCK("Q5_K", 13, 256, 176, SCALE_AT(0), LEAST_AT(2), SIX_BITS, FEW(HIGH, 16, 32, 1, 32),
          FEW(BITS, 48, 128, 4, 32)),
    BLOCK("Q6_K", 14, 256, 210, FEW(BITS, 0, 128, 4, 64), FEW(HIGH, 128, 64, 2, 32),
          FIELD(SCALES, TARN_I8, 192, 16), SCALE_AT(208)),
    NAMED("Q8_1", 9),
    NAMED("Q2_K", 10),
    NAMED("Q3_K", 11),
    NAMED("Q8_K", 15),
    NAMED("IQ2_XXS", 16),
    NAMED("IQ2_XS", 17),
    NAMED("IQ3_XXS", 18),
    NAMED("IQ1_S", 19),
    NAMED("IQ4_NL", 20),
    NAMED("IQ3_S", 21),
    NAMED("IQ2_S", 22),
    NAMED("IQ4_XS", 23),
    NAMED("IQ1_M", 29),
    NAMED("TQ1_0", 34),
    NAMED("TQ2_0", 35),
    NAMED("MXFP4", 39),
    NAMED("NVFP4", 40),
};

const gguf_type *gguf_type_find(uint32_t code) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == code) return &types[i];
  return NULL;
}

/* ---------------------------------------------------------------- taking blocks apart */

/* Scales 0 to 3 are the low 6 bits of bytes 0 to 3; of 4 to 7, bytes 8 to 11 have the low 4 bits
 * and bytes 0 to 3 the others. Minima likewise, from byte 4 on, with the high half of 8 to 11. */
static void six_bits(const uint8_t *from, uint8_t *to, bool minima) {
  const uint8_t *own = from + (minima ? 4 : 0), *rest = from + 8;
  unsigned half = minima ? 4 : 0;
  for (unsigned i = 0; i < 4; i++) {
    to[i] = own[i] & 63;
    to[4 + i] = (uint8_t)((rest[i] >> half & 15) | (own[i] >> 6) << 4);
  }
}

tarn_tensor *gguf_part(tarn_ctx *cx, const gguf_tensor *t, const gguf_field *field) {
  bool six = field->bits == 6;
  uint64_t blocks = gguf_blocks(t);
  unsigned bytes = six ? UNPACKED : field->bytes;
  tarn_tensor *r = TARN_NEW(cx, tarn_tensor);
  *r = (tarn_tensor){.dtype = field->dtype, .n = t->n + 1};
  memcpy(r->dim, t->dim, t->n * sizeof *t->dim);
  r->dim[t->n - 1] /= t->type->elements;
  r->dim[t->n] = bytes / (int64_t)tarn_dtype_size(field->dtype);
  uint8_t *to = tarn_new_aligned(cx, blocks * bytes + 1, 64);
  r->data = to;
  for (uint64_t i = 0; i < blocks; i++, to += bytes) {
    const uint8_t *from = t->data + i * t->type->bytes + field->at;
    if (six) six_bits(from, to, field->role == LEASTS);
    else memcpy(to, from, bytes);
  }
  return r;
}

tarn_tensor *gguf_plain(tarn_ctx *cx, const gguf_tensor *t) {
  size_t bytes = gguf_blocks(t) * t->type->bytes;
  tarn_tensor *r = TARN_NEW(cx, tarn_tensor);
  *r = (tarn_tensor){.dtype = t->type->dtype, .n = t->n};
  memcpy(r->dim, t->dim, t->n * sizeof *t->dim);
  r->data = tarn_new_aligned(cx, bytes + 1, 64);
  memcpy(r->data, t->data, bytes);
  return r;
}

/* ---------------------------------------------------------------- the operator */

typedef struct blocks {
  im_node *n;
  const gguf_type *type;
  tarn_term part[GGUF_ROLES]; /* (dims…, blocks, numbers) */
  const gguf_field *field[GGUF_ROLES];
} blocks;

static const gguf_type *type_called(im_node *n) {
  const char *name = im_attr_str(n, "type", "");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].field[0].role && strcmp(types[i].name, name) == 0) return &types[i];
  im_bad(n, "type '%s' is none of blocks", name);
}

static void take_parts(blocks *b) {
  im_node *n = b->n;
  uint32_t i = 0;
  im_dims first = im_shape(n, im_arg(n, 0));
  for (; i < GGUF_FIELDS && b->type->field[i].role; i++) {
    const gguf_field *f = &b->type->field[i];
    im_dims d = im_shape(n, im_arg(n, i));
    int64_t numbers = (f->bits == 6 ? UNPACKED : f->bytes) / (int64_t)tarn_dtype_size(f->dtype);
    bool fits = d.n >= 2 && d.n == first.n && d.d[d.n - 1] == numbers;
    for (uint32_t k = 0; fits && k + 1 < d.n; k++) fits = d.d[k] == first.d[k];
    if (!fits || n->given[i] != f->dtype)
      im_bad(n, "input %u is not (…,blocks,%lld) of %s", i, (long long)numbers,
             tarn_dtype_name(f->dtype));
    b->part[f->role] = im_arg(n, i), b->field[f->role] = f;
  }
  if (n->nin != i) im_bad(n, "%u inputs, %s has %u fields", n->nin, b->type->name, i);
}

/* A field as (dims…, blocks, groups, numbers of a group), so that it broadcasts to the elements. */
static tarn_term spread(const blocks *b, tarn_term t, bool groups) {
  im_dims d = im_shape(b->n, t);
  d.d[d.n] = groups ? 1 : d.d[d.n - 1];
  d.d[d.n - 1] = groups ? d.d[d.n - 1] : 1;
  return im_reshape(b->n, t, d.n + 1, d.d);
}

/* One of its own, times one for each group where there are such. */
static tarn_term scale_of(const blocks *b, gguf_role one, gguf_role groups) {
  tarn_term t = spread(b, im_cast(b->n, b->part[one], TARN_F32), false);
  if (!b->field[groups]) return t;
  tarn_term g = spread(b, b->part[groups], true);
  return im_el(b->n, "(mul $0 (cast f32 $1))", 2, t, g);
}

static tarn_term numbers_of(const blocks *b, gguf_role role) {
  const gguf_field *f = b->field[role];
  return f->bits ? im_unpacked(b->n, b->part[role], f->bits, f->run, b->type->elements)
                 : b->part[role];
}

/* The elements' numbers, with a sign: (dims…, blocks, elements). */
static tarn_term whole_numbers(const blocks *b) {
  im_node *n = b->n;
  tarn_term q = numbers_of(b, BITS);
  const gguf_field *low = b->field[BITS], *high = b->field[HIGH];
  im_param p[] = {{"by", 0, low->bits},
                  {"middle", ldexp(1, low->bits + (high ? high->bits : 0) - 1), 0}};
  if (high) q = im_elp(n, "(or $0 (shl $1 by))", p, 1, 2, q, numbers_of(b, HIGH));
  q = im_cast(n, q, TARN_F32);
  bool centred = low->bits && !b->field[LEAST];
  return centred ? im_elp(n, "(sub $0 middle)", p, 2, 1, q) : q;
}

/* number · scale, and the block's least element, which those of several groups take away. */
void im_do_ggml_dequantize(im_node *n) {
  blocks b = {.n = n, .type = type_called(n)};
  take_parts(&b);
  const gguf_field *groups = b.field[SCALES];
  im_dims d = im_shape(n, b.part[BITS]), all = d;
  int64_t count = groups ? im_shape(n, b.part[SCALES]).d[d.n - 1] : 1;
  d.d[d.n - 1] = count, d.d[d.n] = b.type->elements / count;
  all.n--, all.d[all.n - 1] *= b.type->elements;
  tarn_term q = im_reshape(n, whole_numbers(&b), d.n + 1, d.d);
  tarn_term y = im_el(n, "(mul $1 $0)", 2, q, scale_of(&b, SCALE, SCALES));
  if (b.field[LEAST])
    y = im_el(n, groups ? "(sub $0 $1)" : "(add $0 $1)", 2, y, scale_of(&b, LEAST, LEASTS));
  im_set(n, 0, im_reshape(n, y, all.n, all.d));
}
