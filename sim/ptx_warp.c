/* What lanes of a warp do together: shuffles, votes, matrices.
 *
 * A fragment of a matrix: lane l holds rows l / 4 and l / 4 + 8, and words l % 4 and l % 4 + 4 of
 * the sum's dim, a word being 32 bits: one, two or four elements. Source: PTX ISA, "Matrix
 * fragments for mma.m16n8k…". */
#include "access/access.h"
#include "sim/ptx_internal.h"
#include <string.h>

static void members(const ptx_run *r, uint32_t mask, uint32_t given) {
  if (given & ~mask)
    ptx_fault(r, (uint32_t)__builtin_ctz(given & ~mask),
              "waits for lanes 0x%x, and lanes 0x%x are here", given, mask);
  if (mask & ~given)
    ptx_fault(r, (uint32_t)__builtin_ctz(mask & ~given), "a lane that its mask 0x%x leaves out",
              given);
}
void ptx_shuffle(ptx_run *r, const ptx_op *x, uint32_t mask) {
  char *file = r->w->file;
  uint32_t from[PTX_LANES], valid = 0;
  const uint32_t *b = ptx_u32(file, x->b), *c = ptx_u32(file, x->c);
  uint32_t first = (uint32_t)__builtin_ctz(mask);
  members(r, mask, ptx_u32(file, x->v[0])[first]);
  memcpy(from, file + x->a, sizeof from);
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m), by = b[l] & 31, clamp = c[l] & 31;
    uint32_t segment = c[l] >> 8 & 31, most = (l & segment) | (clamp & ~segment);
    uint32_t least = l & segment, j;
    bool ok;
    if (x->code == 0) j = l - by, ok = (int32_t)j >= (int32_t)most;
    else if (x->code == 1) j = l + by, ok = j <= most;
    else if (x->code == 2) j = l ^ by, ok = j <= most;
    else j = least | (by & ~segment), ok = j <= most;
    if (!ok) j = l;
    if (!(mask >> j & 1)) ptx_fault(r, l, "the value of lane %u, which is not here", j);
    ptx_u32(file, x->d)[l] = from[j];
    valid |= (uint32_t)ok << l;
  }
  if (x->d2 != TARN_NONE) {
    uint32_t *p = ptx_u32(file, x->d2);
    *p = (*p & ~mask) | valid;
  }
}
void ptx_vote(ptx_run *r, const ptx_op *x, uint32_t mask) {
  char *file = r->w->file;
  uint32_t p = *ptx_u32(file, x->a), yes = (x->not_c ? ~p : p) & mask;
  if (x->code >= 3) {
    for (uint32_t m = mask; m; m &= m - 1)
      ptx_u32(file, x->d)[__builtin_ctz(m)] = x->code == 3 ? yes : mask;
    return;
  }
  bool all = yes == mask, holds = x->code == 0 ? all : x->code == 1 ? yes != 0 : all || !yes;
  uint32_t *d = ptx_u32(file, x->d);
  *d = holds ? *d | mask : *d & ~mask;
}
static void whole_warp(const ptx_run *r, uint32_t mask) {
  if (mask != PTX_ALL)
    ptx_fault(r, (uint32_t)__builtin_ctz(~mask), "all lanes of a warp are expected, 0x%x are here",
              mask);
}

/* Lane 8 i + k gives the address of row k of matrix i. */
void ptx_ldmatrix(ptx_run *r, const ptx_op *x, uint32_t mask) {
  uint64_t at[PTX_LANES];
  uint8_t *row[PTX_LANES];
  whole_warp(r, mask);
  ptx_addresses(r, x, x->a, at);
  for (uint32_t l = 0; l < PTX_LANES; l++)
    if (at[l] >= PTX_SHARED_AT) at[l] -= PTX_SHARED_AT;
  uint32_t used = x->n == 4 ? PTX_ALL : (1u << 8 * x->n) - 1;
  ptx_touches(r, PTX_SHARED, at, used, 16, PTX_READ, row);
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t l = 0; l < PTX_LANES; l++) {
      uint32_t word = 0;
      for (uint32_t h = 0; h < 2; h++) {
        uint32_t a = l / 4, b = l % 4 * 2 + h;
        uint16_t v;
        memcpy(&v, row[8 * i + (x->mode ? b : a)] + 2 * (x->mode ? a : b), 2);
        word |= (uint32_t)v << 16 * h;
      }
      ptx_u32(r->w->file, x->v[i])[l] = word;
    }
}

/* ---------------------------------------------------------------- products */
static double part(uint32_t word, uint32_t e, ptx_type t) {
  uint32_t bits = t == PTX_TF32 ? word & ~UINT32_C(0x1fff) : word;
  float f;
  switch (t) {
  case PTX_F16: return tarn_from_f16((uint16_t)(word >> 16 * e));
  case PTX_BF16: return tarn_from_bf16((uint16_t)(word >> 16 * e));
  case PTX_S8: return (int8_t)(word >> 8 * e);
  case PTX_U8: return (uint8_t)(word >> 8 * e);
  default: memcpy(&f, &bits, sizeof f); return f;
  }
}
static void unpack(const ptx_run *r, const ptx_op *x, double a[16][32], double b[32][8]) {
  uint32_t each = x->type == PTX_TF32 ? 1 : ptx_type_bytes((ptx_type)x->type) == 2 ? 2 : 4;
  char *file = r->w->file;
  for (uint32_t l = 0; l < PTX_LANES; l++)
    for (uint32_t e = 0; e < each; e++) {
      for (uint32_t i = 0; i < x->mode; i++)
        a[l / 4 + 8 * (i & 1)][l % 4 * each + e + 4 * each * (i >> 1)] =
            part(ptx_u32(file, x->v[4 + i])[l], e, (ptx_type)x->type);
      for (uint32_t i = 0; i < x->mode / 2u; i++)
        b[l % 4 * each + e + 4 * each * i][l / 4] =
            part(ptx_u32(file, x->v[8 + i])[l], e, (ptx_type)x->from);
    }
}
static uint32_t saturated(double v) {
  return (uint32_t)(int32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
/* The products are summed exactly enough, then rounded once. */
void ptx_mma(ptx_run *r, const ptx_op *x, uint32_t mask) {
  static const uint32_t down[4] = {0, 0, 8, 8}, along[4] = {0, 1, 0, 1};
  double a[16][32], b[32][8];
  char *file = r->w->file;
  whole_warp(r, mask);
  unpack(r, x, a, b);
  uint32_t result[4][PTX_LANES];
  for (uint32_t l = 0; l < PTX_LANES; l++)
    for (uint32_t i = 0; i < 4; i++) {
      uint32_t row = l / 4 + down[i], col = l % 4 * 2 + along[i];
      uint32_t bits = ptx_u32(file, x->v[10 + i])[l];
      float f;
      double sum = 0;
      for (uint32_t k = 0; k < x->n; k++) sum += a[row][k] * b[k][col];
      memcpy(&f, &bits, sizeof f);
      if (ptx_type_float((ptx_type)x->type)) {
        f = (float)(sum + f);
        memcpy(&bits, &f, sizeof f);
      } else if (x->flags & PTX_SAT) bits = saturated((int32_t)bits + sum);
      else bits += (uint32_t)(int32_t)sum;
      result[i][l] = bits;
    }
  for (uint32_t i = 0; i < 4; i++) memcpy(file + x->v[i], result[i], sizeof result[i]);
  r->n->matrix++;
}
