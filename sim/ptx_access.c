/* Loads, stores, atomics and asynchronous copies. */
#include "sim/ptx_internal.h"
#include <string.h>

void ptx_addresses(const ptx_run *r, const ptx_op *x, uint32_t base, uint64_t *at) {
  const char *file = r->w->file;
  uint64_t by = (uint64_t)x->offset;
  if (x->wide_a == 8) {
    const uint64_t *a = (const uint64_t *)(const void *)(file + base);
    for (uint32_t l = 0; l < PTX_LANES; l++) at[l] = a[l] + by;
  } else {
    const uint32_t *a = (const uint32_t *)(const void *)(file + base);
    for (uint32_t l = 0; l < PTX_LANES; l++) at[l] = (uint32_t)(a[l] + (uint32_t)by);
  }
}
static uint64_t element(const uint8_t *p, ptx_type t) {
  uint8_t b1;
  uint16_t b2;
  uint32_t b4;
  uint64_t b8;
  bool sign = ptx_type_signed(t);
  switch (ptx_type_bytes(t)) {
  case 1: memcpy(&b1, p, 1); return sign ? (uint64_t)(int64_t)(int8_t)b1 : b1;
  case 2: memcpy(&b2, p, 2); return sign ? (uint64_t)(int64_t)(int16_t)b2 : b2;
  case 4: memcpy(&b4, p, 4); return sign ? (uint64_t)(int64_t)(int32_t)b4 : b4;
  default: memcpy(&b8, p, 8); return b8;
  }
}
/* Parameters are the same for all threads. */
static void load_param(ptx_run *r, const ptx_op *x, const uint64_t *at, uint32_t mask) {
  uint32_t each = ptx_type_bytes((ptx_type)x->type), end = r->e->p.param_bytes;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    if (at[l] > end || end - at[l] < each * x->n)
      ptx_fault(r, l, "bytes %llu on of the parameters, which have %u", (unsigned long long)at[l],
                end);
    for (uint32_t i = 0; i < x->n; i++)
      ptx_put(r->w->file, x->v[i], x->wide_d, l,
              element((const uint8_t *)r->l->param + at[l] + i * each, (ptx_type)x->type));
  }
}
void ptx_load(ptx_run *r, const ptx_op *x, uint32_t mask) {
  uint64_t at[PTX_LANES];
  uint8_t *where[PTX_LANES];
  uint32_t each = ptx_type_bytes((ptx_type)x->type);
  ptx_addresses(r, x, x->a, at);
  if (x->space == PTX_PARAM) {
    load_param(r, x, at, mask);
    return;
  }
  ptx_touches(r, (ptx_space)x->space, at, mask, each * x->n, PTX_READ, where);
  if (mask == PTX_ALL && each == 4 && x->wide_d == 4) {
    for (uint32_t i = 0; i < x->n; i++)
      for (uint32_t l = 0; l < PTX_LANES; l++)
        memcpy(&ptx_u32(r->w->file, x->v[i])[l], where[l] + 4 * i, 4);
    return;
  }
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t m = mask; m; m &= m - 1) {
      uint32_t l = (uint32_t)__builtin_ctz(m);
      ptx_put(r->w->file, x->v[i], x->wide_d, l, element(where[l] + i * each, (ptx_type)x->type));
    }
}
void ptx_store(ptx_run *r, const ptx_op *x, uint32_t mask) {
  uint64_t at[PTX_LANES];
  uint8_t *where[PTX_LANES];
  uint32_t each = ptx_type_bytes((ptx_type)x->type);
  ptx_addresses(r, x, x->a, at);
  r->doubtful = 0;
  ptx_touches(r, (ptx_space)x->space, at, mask, each * x->n, PTX_WRITE, where);
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t m = mask; m; m &= m - 1) {
      uint32_t l = (uint32_t)__builtin_ctz(m);
      uint64_t v = ptx_get(r->w->file, x->v[i], x->wide_d, l);
      if (r->doubtful >> l & 1 && memcmp(where[l] + i * each, &v, each) != 0)
        ptx_fault(r, l, "other bytes than another thread wrote with no barrier between");
      memcpy(where[l] + i * each, &v, each); /* little-endian, as the GPU is */
    }
}

/* ---------------------------------------------------------------- atomics */
static uint64_t sum(const ptx_op *x, uint64_t a, uint64_t b) {
  if (x->type == PTX_F32) {
    float f, g;
    uint32_t p = (uint32_t)a, q = (uint32_t)b;
    memcpy(&f, &p, 4), memcpy(&g, &q, 4);
    f += g;
    memcpy(&p, &f, 4);
    return p;
  }
  if (x->type == PTX_F64) {
    double f, g;
    memcpy(&f, &a, 8), memcpy(&g, &b, 8);
    f += g;
    memcpy(&a, &f, 8);
    return a;
  }
  return a + b;
}
static bool below(const ptx_op *x, uint64_t a, uint64_t b) {
  if (x->type == PTX_S32) return (int32_t)a < (int32_t)b;
  return x->type == PTX_S64 ? (int64_t)a < (int64_t)b : a < b;
}
static uint64_t updated(const ptx_op *x, uint64_t old, uint64_t b, uint64_t c) {
  switch (x->code) {
  case 0: return sum(x, old, b);
  case 1: return below(x, b, old) ? b : old;
  case 2: return below(x, old, b) ? b : old;
  case 3: return old & b;
  case 4: return old | b;
  case 5: return old ^ b;
  case 6: return b;
  default: return old == b ? c : old;
  }
}
void ptx_atom(ptx_run *r, const ptx_op *x, uint32_t mask) {
  uint64_t at[PTX_LANES];
  uint8_t *where[PTX_LANES];
  char *file = r->w->file;
  ptx_addresses(r, x, x->a, at);
  ptx_touches(r, (ptx_space)x->space, at, mask, x->wide_d, PTX_UPDATE, where);
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    uint64_t old = 0, b = ptx_get(file, x->b, x->wide_d, l);
    memcpy(&old, where[l], x->wide_d);
    uint64_t v = updated(x, old, b, ptx_get(file, x->c, x->wide_d, l));
    memcpy(where[l], &v, x->wide_d);
    ptx_put(file, x->d, x->wide_d, l, old);
  }
}

/* ---------------------------------------------------------------- asynchronous copies */
void ptx_copy_begin(ptx_run *r, const ptx_op *x, uint32_t mask) {
  uint64_t to[PTX_LANES], from[PTX_LANES];
  uint8_t *where[PTX_LANES], *source[PTX_LANES];
  char *file = r->w->file;
  uint32_t some = 0;
  ptx_addresses(r, x, x->a, to);
  for (uint32_t l = 0; l < PTX_LANES; l++) {
    from[l] = ptx_get(file, x->b, x->wide_d, l) + ptx_get(file, x->v[0], 8, l);
    if (to[l] >= PTX_SHARED_AT) to[l] -= PTX_SHARED_AT;
    if ((mask >> l & 1) && ptx_get(file, x->v[1], 4, l) > 0) some |= 1u << l;
  }
  if (some) ptx_touches(r, PTX_GLOBAL, from, some, x->n, PTX_READ, source);
  ptx_touches(r, PTX_SHARED, to, mask, x->n, PTX_BEGIN_COPY, where);
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    uint64_t n = ptx_get(file, x->v[1], 4, l);
    ptx_copy c = {.at = to[l], .bytes = x->n, .group = r->w->group, .lane = l};
    if (n) memcpy(c.data, source[l], n < x->n ? n : x->n);
    tarn_push(r->cx, &r->w->copy, c);
  }
}
/* All but the last so many groups are there; offset < 0: all, what is in no group too. */
void ptx_copy_wait(ptx_run *r, const ptx_op *x) {
  ptx_warp *w = r->w;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < w->copy.n; i++) {
    const ptx_copy *c = &w->copy.p[i];
    if (x->offset < 0 || (c->group < w->group && c->group + x->offset < w->group))
      ptx_arrives(r, c);
    else w->copy.p[kept++] = *c;
  }
  w->copy.n = kept;
}
