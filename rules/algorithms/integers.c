/* Sums of products of dequantised tensors as sums of products of the 8-bit integers themselves:
 *
 *   Σ s·(a - z) · t·(b - y)  =  s·t · (Σ a·b - z·Σb - y·Σa + K·z·y)
 *
 * for scales and zero points that are the same along the reduction of K elements. The sums of one
 * tensor are kernels of their own; those of constants are computed at compile time. On integers
 * this holds modulo 2^32, as they wrap; on floats it is a matter of rounding, as long as no sum of
 * integers can overflow. Operands may be moved by 128 from i8 to u8, or back, where a unit of the
 * description, or of a machine that it hangs on, takes that type (cf. Jacob et al., "Quantization
 * and training of neural networks for efficient integer-arithmetic-only inference", CVPR 2018). In
 * C because it opens both operands, whose scales and zero points may stand in many ways, and what
 * is padded becomes the zero point. */
#include "rules/algorithms/integers.h"
#include <string.h>

static bool eight_bits(tarn_dtype t) { return t == TARN_I8 || t == TARN_U8; }

/* ---------------------------------------------------------------- what an operand is */

static bool is_element(factor *f, uint32_t x) {
  const tarn_fx *h = tarn_fx_get(f->p.L, x);
  const kstage *st = &f->p.stage[0];
  if (h->op != TARN_FX_HOLE || st->read[h->hole].stage) return false;
  f->hole = h->hole, f->type = kern_leaf_type(&f->p, st->read[h->hole].src)->dtype;
  return eight_bits(f->type);
}

static bool read_factor(factor *f, uint32_t e);
static bool times_factor(factor *f, uint32_t e, uint32_t c) {
  if (!read_factor(f, e) || !f->real || tarn_fx_uses(f->p.L, c, f->hole)) return false;
  f->scale = f->scale == TARN_NONE ? c : tarn_fx_op(f->p.L, TARN_FX_MUL, f->scale, c, 0);
  return true;
}
static bool read_factor(factor *f, uint32_t e) {
  tarn_lang *L = f->p.L;
  const tarn_fx x = *tarn_fx_get(L, e);
  switch (x.op) {
  case TARN_FX_CAST:
    if (x.dtype != TARN_I32 && x.dtype != TARN_F32) return false;
    if (!is_element(f, x.kid[0]) && (x.dtype != TARN_F32 || !read_factor(f, x.kid[0]) || f->real))
      return false;
    f->real = x.dtype == TARN_F32;
    return true;
  case TARN_FX_SUB:
    if (!read_factor(f, x.kid[0]) || f->real || f->zero != TARN_NONE ||
        tarn_fx_uses(L, x.kid[1], f->hole))
      return false;
    f->zero = x.kid[1];
    return true;
  case TARN_FX_MUL: {
    const factor before = {.hole = 0, .zero = TARN_NONE, .scale = TARN_NONE};
    if (times_factor(f, x.kid[0], x.kid[1])) return true;
    f->hole = before.hole, f->zero = before.zero, f->scale = before.scale, f->real = false;
    return times_factor(f, x.kid[1], x.kid[0]);
  }
  default: return false;
  }
}
static void drop_zero(const tarn_lang *L, factor *f) {
  const tarn_fx *z = f->zero == TARN_NONE ? NULL : tarn_fx_get(L, f->zero);
  if (z && z->op == TARN_FX_CONST && z->ivalue == 0) f->zero = TARN_NONE;
}
static bool find_factor(factor *f) {
  f->zero = f->scale = TARN_NONE, f->real = false;
  if (!read_factor(f, f->p.stage[0].body)) return false;
  drop_zero(f->p.L, f);
  return true;
}
static bool dequantises(const kern *p) {
  factor f = {.p = *p};
  return kern_is_map(p) && find_factor(&f);
}

static bool literal(const tarn_lang *L, uint32_t f) {
  return f == TARN_NONE || tarn_fx_holes(L, f) == 0;
}

/* The element that stands for a padded 0: the zero point. */
static bool padded(tarn_lang *L, const factor *f, uint32_t fill, uint32_t *out) {
  const tarn_fx *x = tarn_fx_get(L, fill);
  int64_t z = f->zero == TARN_NONE ? 0 : tarn_fx_get(L, f->zero)->ivalue;
  bool zero =
      x->op == TARN_FX_CONST && (tarn_dtype_is_float(x->dtype) ? x->value == 0 : x->ivalue == 0);
  if (!zero || !literal(L, f->zero)) return false;
  if (z < (f->type == TARN_I8 ? -128 : 0) || z > (f->type == TARN_I8 ? 127 : 255)) return false;
  *out = tarn_fx_iconst(L, f->type, z);
  return true;
}

/* ---------------------------------------------------------------- the product */

static uint32_t reduce_loops(const product *p) {
  return ((1u << p->ndim) - 1) & ~((1u << p->nacc) - 1);
}

/* Where the kernel reads what the map reads as operand h, padding aside: a padded element is the
 * zero point, whatever the scale. TARN_NONE: outside of it somewhere. */
static uint32_t beside(product *p, const factor *f, uint32_t through, uint32_t h) {
  tarn_lang *L = p->k.L;
  uint32_t map = tarn_map_compose(L, through, f->p.stage[0].read[h].map);
  if (map == TARN_NONE || tarn_imap_get(L, map)->nguard == 0) return map;
  tarn_imap m = *tarn_imap_get(L, map);
  for (uint32_t a = 0; a < m.nin; a++) {
    int64_t lo, hi;
    tarn_ix_range(L, m.e[a], m.dim, &lo, &hi);
    if (lo < 0 || hi >= m.in[a]) return TARN_NONE;
  }
  m.nguard = 0, m.fill = TARN_NONE;
  return tarn_map_intern(L, &m);
}

/* Are zero point and scale the same along the reduction, and everywhere where the tensor is padded?
 */
static bool steady(product *p, uint32_t i) {
  tarn_lang *L = p->k.L;
  const factor *f = &p->f[i];
  const kstage *ps = &f->p.stage[0];
  uint32_t through = p->k.stage[0].read[i].map, fill;
  const tarn_imap *m = tarn_imap_get(L, through);
  if (m->nguard && !padded(L, f, m->fill, &fill)) return false;
  for (uint32_t h = 0; h < ps->nb; h++) {
    bool used = (f->zero != TARN_NONE && tarn_fx_uses(L, f->zero, h)) ||
                (f->scale != TARN_NONE && tarn_fx_uses(L, f->scale, h));
    if (!used) continue;
    uint32_t c = beside(p, f, through, h);
    if (c == TARN_NONE || (map_uses(L, c) & reduce_loops(p))) return false;
  }
  return true;
}

bool product_find(rsite *s, product *p, tarn_dtype sum) {
  const kstage *st = &p->k.stage[0];
  if (!site_root(s, &p->k) || !kern_is_product(&p->k, sum)) return false;
  p->ndim = kern_dims(&p->k, st, true, p->dim), p->nacc = st->nown;
  if (p->ndim > 31) return false;
  p->steps = points(p->dim + p->nacc, p->ndim - p->nacc);
  return p->steps > 1 && p->steps < (sum == TARN_F32 ? INT32_MAX / (255 * 255) : INT32_MAX);
}
static bool find_factors(rsite *s, product *p, tarn_dtype sum) {
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t id = p->k.leaf[p->k.stage[0].read[i].src], at = 0;
    while (at < s->n && s->kid[at].id != id) at++;
    if (at == s->n || !site_open(s, at, &p->f[i].p, dequantises) || !find_factor(&p->f[i]))
      return false;
    if (p->f[i].real != (sum == TARN_F32)) return false;
  }
  return true;
}

/* ---------------------------------------------------------------- moving an operand */

/* The 8-bit tensor that it scales. */
static uint32_t bytes_of(const factor *f) { return f->p.leaf[f->p.stage[0].read[f->hole].src]; }
static tarn_dtype other(tarn_dtype t) { return t == TARN_I8 ? TARN_U8 : TARN_I8; }
/* The tensor in the other 8-bit type, by 128; the zero point with it. */
static uint32_t moved(const kern *k, factor *f, uint32_t leaf) {
  tarn_lang *L = k->L;
  uint32_t h = tarn_fx_cast(L, TARN_I32, tarn_fx_hole(L, 0)),
           by = tarn_fx_iconst(L, TARN_I32, f->type == TARN_I8 ? 128 : -128);
  f->type = other(f->type);
  f->zero = f->zero == TARN_NONE ? by : tarn_fx_op(L, TARN_FX_ADD, f->zero, by, 0);
  drop_zero(L, f);
  uint32_t body = tarn_fx_cast(L, f->type, tarn_fx_op(L, TARN_FX_ADD, h, by, 0));
  return kern_of_tensor(k, leaf, TARN_NONE, body);
}

/* ---------------------------------------------------------------- the new kernel */

/* Σ of one tensor's elements over the reduction, for each point of the loops that it depends on; a
 * read of it for the epilogue. */
static bool summed(product *p, const tarn_read *of, uint32_t *hole) {
  kern *k = &p->k;
  tarn_lang *L = k->L;
  uint32_t axis[2 * TARN_MAX_DIMS], n = 0, nred = p->ndim - p->nacc, used = map_uses(L, of->map);
  for (uint32_t d = 0; d < p->ndim; d++)
    if (d >= p->nacc || (used >> d & 1)) axis[n++] = d;
  n -= nred;
  uint32_t id =
      kern_reduced(k, p->dim, p->ndim, axis, n, nred, tarn_reducer_of(L, TARN_RED_SUM, TARN_I32),
                   tarn_fx_cast(L, TARN_I32, tarn_fx_hole(L, 0)), TARN_NONE, *of);
  uint32_t leaf = id == TARN_NONE ? id : kern_leaf(k, id);
  if (leaf == TARN_NONE) return false;
  uint32_t at =
      kern_add_read(&k->stage[0], false,
                    (tarn_read){.src = leaf, .map = map_project(L, p->dim, p->nacc, axis, n)});
  *hole = at == TARN_NONE ? at : tarn_fx_hole(L, at + 1);
  return at != TARN_NONE;
}

/* A zero point or scale over the epilogue's holes. */
static uint32_t outside(product *p, const factor *f, uint32_t through, uint32_t e) {
  kern *k = &p->k;
  tarn_lang *L = k->L;
  uint32_t with[K_READS], axis[2 * TARN_MAX_DIMS];
  for (uint32_t d = 0; d < p->nacc; d++) axis[d] = d;
  uint32_t own = map_embed(L, p->dim, p->ndim, axis, p->nacc);
  for (uint32_t h = 0; h < f->p.stage[0].nb; h++) {
    with[h] = TARN_NONE;
    if (!tarn_fx_uses(L, e, h)) continue;
    const tarn_read *r = &f->p.stage[0].read[h];
    uint32_t map = beside(p, f, through, h), leaf = kern_leaf(k, f->p.leaf[r->src]);
    if (map == TARN_NONE || (map = tarn_map_compose(L, own, map)) == TARN_NONE || leaf == TARN_NONE)
      return TARN_NONE;
    uint32_t at = kern_add_read(&k->stage[0], false, (tarn_read){.src = leaf, .map = map});
    if (at == TARN_NONE) return TARN_NONE;
    with[h] = tarn_fx_hole(L, at + 1);
  }
  return tarn_fx_subst(L, e, with, f->p.stage[0].nb);
}

/* The 8-bit tensors take the operands' places; through: how the kernel read them before. */
static bool take_elements(product *p, const uint32_t *leaf, uint32_t *through) {
  kern *k = &p->k;
  kstage *st = &k->stage[0];
  for (uint32_t i = 0; i < 2; i++) {
    const factor *f = &p->f[i];
    uint32_t map = through[i] = st->read[i].map, fill = TARN_NONE;
    const tarn_imap *m = tarn_imap_get(k->L, map);
    if (m->nguard && !padded(k->L, f, m->fill, &fill)) return false;
    uint32_t at = kern_leaf(k, leaf[i]);
    map = tarn_map_compose(k->L, m->nguard ? map_with_fill(k->L, map, fill) : map,
                           f->p.stage[0].read[f->hole].map);
    if (map == TARN_NONE || at == TARN_NONE) return false;
    st->read[i] = (tarn_read){.src = at, .map = map};
  }
  return true;
}
/* What the sum of products of elements has to become. */
static bool corrected(product *p, const uint32_t *through, uint32_t *out) {
  tarn_lang *L = p->k.L;
  uint32_t z[2], sum[2], e = tarn_fx_hole(L, 0), scale = TARN_NONE;
  const tarn_read elements[2] = {p->k.stage[0].read[0], p->k.stage[0].read[1]};
  for (uint32_t i = 0; i < 2; i++) {
    const factor *f = &p->f[i];
    z[i] = f->zero == TARN_NONE ? TARN_NONE : outside(p, f, through[i], f->zero);
    if (f->zero == TARN_NONE) continue;
    if (z[i] == TARN_NONE || !summed(p, &elements[1 - i], &sum[i])) return false;
    e = tarn_fx_op(L, TARN_FX_SUB, e, tarn_fx_op(L, TARN_FX_MUL, z[i], sum[i], 0), 0);
  }
  if (z[0] != TARN_NONE && z[1] != TARN_NONE) {
    uint32_t both = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_iconst(L, TARN_I32, p->steps), z[0], 0);
    e = tarn_fx_op(L, TARN_FX_ADD, e, tarn_fx_op(L, TARN_FX_MUL, both, z[1], 0), 0);
  }
  for (uint32_t i = 0; i < 2; i++) {
    if (p->f[i].scale == TARN_NONE) continue;
    uint32_t s = outside(p, &p->f[i], through[i], p->f[i].scale);
    if (s == TARN_NONE) return false;
    scale = scale == TARN_NONE ? s : tarn_fx_op(L, TARN_FX_MUL, scale, s, 0);
  }
  if (p->f[0].real) e = tarn_fx_cast(L, TARN_F32, e);
  *out = scale == TARN_NONE ? e : tarn_fx_op(L, TARN_FX_MUL, e, scale, 0);
  return true;
}

uint32_t product_of_bytes(product *p, const uint32_t *leaf) {
  uint32_t through[2], value, with[K_READS + 1];
  if (!steady(p, 0) || !steady(p, 1) || !take_elements(p, leaf, through)) return TARN_NONE;
  tarn_lang *L = p->k.L;
  kstage *st = &p->k.stage[0];
  uint32_t epi = st->epi, h0 = tarn_fx_hole(L, 0);
  st->body = units_product(L, TARN_I32);
  st->reducer = tarn_reducer_of(L, TARN_RED_SUM, TARN_I32);
  if (!corrected(p, through, &value)) return TARN_NONE;
  for (uint32_t h = 0; h <= K_READS; h++) with[h] = TARN_NONE;
  with[0] = value;
  st->epi = epi != TARN_NONE ? tarn_fx_subst(L, epi, with, K_READS + 1)
            : value == h0    ? TARN_NONE
                             : value;
  return kern_store(&p->k);
}

/* Are both read at sums of loops? A tensor that is spread out (transposed convolution) gets holes
 * that are no zeros once a zero point is taken from it, and its sum has no residue class left to go
 * through (residue.c): there the price decides. */
static bool plainly_read(const kern *k) {
  for (uint32_t r = 0; r < 2; r++) {
    const tarn_imap *m = tarn_imap_get(k->L, k->stage[0].read[r].map);
    for (uint32_t i = 0; i < m->nin; i++)
      if (!tarn_ix_affine(k->L, m->e[i])) return false;
    for (uint32_t i = 0; i < m->nguard; i++)
      if (!tarn_ix_affine(k->L, m->guard[i].e)) return false;
  }
  return true;
}

/* ---------------------------------------------------------------- where it is wanted */

/* Which operands go over to the other 8-bit type, as a set (bit i: operand i). */
enum { NO_WAY = 4 };

/* The set with which the machine sums the products: the smallest one; of two of one type the
 * constant operand moves, else the first, and of two types u8 before i8. */
static uint32_t best(rsite *s, const product *p, const tarn_hw *hw) {
  uint32_t body = units_product(p->k.L, TARN_I32), one = p->f[1].type == TARN_U8;
  if (p->f[0].type == p->f[1].type)
    one = !site_const(s, bytes_of(&p->f[0])) && site_const(s, bytes_of(&p->f[1]));
  const uint32_t way[] = {0, 1u << one, 2u >> one, 3};
  for (uint32_t w = 0; w < sizeof way / sizeof *way; w++) {
    tarn_dtype type[2];
    for (uint32_t i = 0; i < 2; i++) type[i] = way[w] >> i & 1 ? other(p->f[i].type) : p->f[i].type;
    if (units_hw_sums(hw, &p->k, TARN_I32, body, type)) return way[w];
  }
  return NO_WAY;
}

/* Does a dot-product instruction widen one of these in registers? Then the price decides. */
static bool widened(const product *p, const tarn_hw *hw, uint32_t set) {
  tarn_lang *L = p->k.L;
  tarn_dtype type[2];
  for (uint32_t i = 0; i < 2; i++) type[i] = set >> i & 1 ? other(p->f[i].type) : p->f[i].type;
  return units_widens(hw, &p->k, units_product(L, TARN_I32),
                      tarn_reducer_of(L, TARN_RED_SUM, TARN_I32), type);
}
/* Does every machine that takes the product want it so? What others need must not be subsumed. */
static bool agreed(rsite *s, const product *p, uint32_t set) {
  if (!s->e->hw) return true;
  const tarn_machines m = tarn_hw_machines(s->e->hw);
  for (uint32_t i = 0; i < m.n; i++) {
    uint32_t way = best(s, p, m.hw[i]);
    if (way != NO_WAY && (way != set || widened(p, m.hw[i], set))) return false;
  }
  return true;
}
/* By some machine. */
static bool wanted(rsite *s, tarn_dtype sum) {
  product p;
  if (!s->e->hw || (s->root != TARN_NONE && site_const(s, s->root))) return false;
  if (!product_find(s, &p, sum) || !find_factors(s, &p, sum)) return false;
  const tarn_machines m = tarn_hw_machines(s->e->hw);
  for (uint32_t i = 0; i < m.n; i++)
    if (best(s, &p, m.hw[i]) == s->arg.i) return true;
  return false;
}

/* ---------------------------------------------------------------- the rules */

/* (build NAME SET) */
static uint32_t build(rsite *s, tarn_dtype sum) {
  product p;
  uint32_t leaf[2], set = (uint32_t)s->arg.i;
  if (!product_find(s, &p, sum) || !find_factors(s, &p, sum)) return TARN_NONE;
  bool only = agreed(s, &p, set);
  for (uint32_t i = 0; i < 2; i++) {
    leaf[i] = bytes_of(&p.f[i]);
    if ((set >> i & 1) && (leaf[i] = moved(&p.k, &p.f[i], leaf[i])) == TARN_NONE) return TARN_NONE;
  }
  s->replaced = s->elsewhere = only && plainly_read(&p.k);
  return product_of_bytes(&p, leaf);
}
bool when_integers(rsite *s) { return wanted(s, TARN_I32); }
bool when_quantised(rsite *s) { return wanted(s, TARN_F32); }
uint32_t build_integers(rsite *s) { return build(s, TARN_I32); }
uint32_t build_quantised(rsite *s) { return build(s, TARN_F32); }
