/* Sums of products of floats on operands of bytes. In C because it makes several kernels, whose
 * loops follow from which dims of an operand a sum walks.
 *
 * Each operand x becomes s·(q - z) with q = round(x / s) + z in u8 (z = 128) or i8 (z =
 * 0) and s = max |x| / 127. The largest magnitude is taken over all that one sum may read: s
 * depends on those dims of the operand that no reduce loop walks, so that it is a factor of the sum
 * and goes behind it (integers.c). Of weights that is computed at compile time, a scale for
 * each filter; of activations in kernels of their own, a scale for each row of a matrix, one for an
 * image that windows are read from.
 *
 * Error. |x - s(q - z)| <= s/2 = max |x| / 254, so that a sum of K products is off by at most
 *   K · max |a| · max |b| · (2 / 254 + 1 / 254²) < 0.008 · K · max |a| · max |b|. */
#include "rules/algorithms/integers.h"
#include <string.h>

typedef struct operand { /* of the product: a child through a map */
  uint32_t id, map;
  const tarn_type *type;
  uint32_t nkept, kept[TARN_MAX_DIMS], nrest,
      rest[TARN_MAX_DIMS]; /* dims with a scale of their own; the others */
} operand;

/* Is the dim read by loops of the result alone, and everywhere within the operand? */
static bool keeps(const kern *k, const tarn_imap *m, uint32_t a) {
  int64_t lo, hi;
  tarn_ix_range(k->L, m->e[a], m->dim, &lo, &hi);
  return lo >= 0 && hi < m->in[a] && !(tarn_ix_dims(k->L, m->e[a]) >> k->stage[0].nown);
}
static bool find_operand(const kern *k, uint32_t i, operand *o) {
  const tarn_read *r = &k->stage[0].read[i];
  const tarn_imap *m = tarn_imap_get(k->L, r->map);
  int64_t summed = 1;
  *o = (operand){.id = k->leaf[r->src], .map = r->map, .type = kern_leaf_type(k, r->src)};
  if (o->type->dtype != TARN_F32) return false;
  for (uint32_t a = 0; a < m->nin; a++)
    if (keeps(k, m, a)) o->kept[o->nkept++] = a;
    else o->rest[o->nrest++] = a, summed *= m->in[a];
  return summed > 1;
}

/* ---------------------------------------------------------------- kernels */

/* The largest f of a tensor over its dims `red`, for each of the dims `own`; least: then. TARN_NONE
 * on failure. */
static uint32_t reduced(const kern *like, uint32_t id, const tarn_type *t, const uint32_t *own,
                        uint32_t nown, const uint32_t *red, uint32_t nred, uint32_t f,
                        uint32_t least) {
  kern k = {.host = like->host, .L = like->L, .nleaf = 1, .leaf = {id}};
  uint32_t axis[2 * TARN_MAX_DIMS];
  for (uint32_t i = 0; i < nown + nred; i++) axis[i] = i < nown ? own[i] : red[i - nown];
  return kern_reduced(&k, t->dim, t->n, axis, nown, nred,
                      tarn_reducer_of(k.L, TARN_RED_MAX, TARN_F32), f, least,
                      (tarn_read){.map = map_same(k.L, t->dim, t->n)});
}
/* A map over the dims of the operand: of a tensor of its shape and of one over its kept dims. */
static kern *mapped(const kern *like, const operand *o, uint32_t id, uint32_t by, uint32_t body) {
  kern *k = TARN_NEW(tarn_lang_ctx(like->L), kern);
  kstage *st = &k->stage[0];
  uint32_t n = o->type->n;
  k->host = like->host, k->L = like->L, k->nstage = 1, k->out_ns = o->type->ns;
  *st = (kstage){
      .nown = n, .nb = 2, .body = body, .reducer = TARN_NONE, .epi = TARN_NONE, .out = true};
  memcpy(st->own, o->type->dim, n * sizeof *st->own);
  st->read[0] = (tarn_read){.src = kern_leaf(k, id), .map = map_same(k->L, st->own, n)};
  st->read[1] =
      (tarn_read){.src = kern_leaf(k, by), .map = map_project(k->L, st->own, n, o->kept, o->nkept)};
  return k;
}

static uint32_t f32_constant(const kern *k, double v) { return tarn_fx_const(k->L, TARN_F32, v); }

/* The largest magnitude over the dims that are not kept, at least 2^-118, so that neither it over
 * 127 nor 127 over it leaves the normal numbers. Where there is one for the whole tensor, first
 * along one dim, so that threads can share, and that is what a product over this dim alone needs of
 * the same tensor. */
static uint32_t largest(const kern *k, const operand *o) {
  uint32_t h0 = tarn_fx_hole(k->L, 0), body = tarn_fx_op(k->L, TARN_FX_ABS, h0, 0, 0), first = 0;
  uint32_t least = tarn_fx_op(k->L, TARN_FX_MAX, h0, f32_constant(k, 0x1p-118), 0),
           own[TARN_MAX_DIMS], axis[TARN_MAX_DIMS], n = 0;
  int64_t kept = 1, after = 1;
  for (uint32_t i = 0; i < o->nkept; i++) kept *= o->type->dim[o->kept[i]];
  while (first < o->nrest && o->type->dim[o->rest[first]] == 1) first++;
  for (uint32_t i = 0; i < o->nrest; i++) after *= i == first ? 1 : o->type->dim[o->rest[i]];
  if (kept > 1 || after == 1)
    return reduced(k, o->id, o->type, o->kept, o->nkept, o->rest, o->nrest, body, least);
  tarn_type t = {.dtype = TARN_F32, .n = (uint8_t)(o->type->n - 1)};
  for (uint32_t a = 0; a < o->type->n; a++)
    if (a != o->rest[first]) own[n] = a, t.dim[n++] = o->type->dim[a];
  uint32_t part = reduced(k, o->id, o->type, own, n, &o->rest[first], 1, body, least),
           red[TARN_MAX_DIMS], nkept = 0, nred = 0;
  for (uint32_t i = 0, at = 0; i < n; i++)
    if (at < o->nkept && own[i] == o->kept[at]) axis[nkept++] = i, at++;
    else red[nred++] = i;
  return part == TARN_NONE ? part : reduced(k, part, &t, axis, nkept, red, nred, h0, least);
}

/* The operand rounded to bytes, which are returned, and in f how they are read back. */
static uint32_t rounded(const kern *k, const operand *o, tarn_dtype type, factor *f) {
  tarn_lang *L = k->L;
  uint32_t h0 = tarn_fx_hole(L, 0), h1 = tarn_fx_hole(L, 1), most = largest(k, o);
  uint32_t inverse = tarn_fx_op(L, TARN_FX_DIV, f32_constant(k, 127), h0, 0);
  uint32_t by = most == TARN_NONE ? most : kern_of_tensor(k, most, TARN_NONE, inverse);
  if (by == TARN_NONE) return TARN_NONE;
  uint32_t x = tarn_fx_op(L, TARN_FX_ROUND, tarn_fx_op(L, TARN_FX_MUL, h0, h1, 0), 0, 0);
  if (type == TARN_U8) x = tarn_fx_op(L, TARN_FX_ADD, x, f32_constant(k, 128), 0);
  uint32_t q = kern_store(mapped(k, o, o->id, by, tarn_fx_cast(L, type, x)));
  if (q == TARN_NONE) return q;
  *f = (factor){.p = *mapped(k, o, q, most, h0), .type = type, .real = true};
  f->zero = type == TARN_U8 ? tarn_fx_iconst(L, TARN_I32, 128) : TARN_NONE;
  f->scale = tarn_fx_op(L, TARN_FX_MUL, h1, f32_constant(k, 1.0 / 127), 0);
  return q;
}

/* ---------------------------------------------------------------- the rule */

/* Which operand becomes u8: the one that is no constant, else the first. */
static uint32_t unsigned_one(const rsite *s, const operand *o) {
  return site_const(s, o[0].id) && !site_const(s, o[1].id);
}

static bool find(rsite *s, product *p, operand *o) {
  return product_find(s, p, TARN_F32) && find_operand(&p->k, 0, &o[0]) &&
         find_operand(&p->k, 1, &o[1]) && !(site_const(s, o[0].id) && site_const(s, o[1].id));
}

bool when_narrow(rsite *s) {
  product p;
  operand o[2];
  return find(s, &p, o) && units_sum(s->e, &p.k, TARN_I32, units_product(p.k.L, TARN_I32),
                                     (tarn_dtype[]){TARN_U8, TARN_I8});
}

uint32_t build_narrow(rsite *s) {
  product p;
  operand o[2];
  uint32_t leaf[2];
  if (!find(s, &p, o)) return TARN_NONE;
  uint32_t first = unsigned_one(s, o);
  for (uint32_t i = 0; i < 2; i++)
    if ((leaf[i] = rounded(&p.k, &o[i], i == first ? TARN_U8 : TARN_I8, &p.f[i])) == TARN_NONE)
      return TARN_NONE;
  return product_of_bytes(&p, leaf);
}
