/* The same step for many matches: with vectors of 512 bits where what includes this is compiled for them, else one by one. */
#ifndef TARN_EGRAPH_LANES_H
#define TARN_EGRAPH_LANES_H

#include "egraph/table.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
enum { EG_LANES = 16 };
static inline __mmask16 eg_lanes(uint32_t left) { return (__mmask16)(left >= EG_LANES ? 0xFFFF : (1u << left) - 1); }
static inline __m512i eg_take(__mmask16 k, __m512i at, const void *base, int scale) {
  __m512i none = _mm512_setzero_si512();
  return scale == 4 ? _mm512_mask_i32gather_epi32(none, k, at, base, 4) : _mm512_mask_i32gather_epi32(none, k, at, base, 8);
}

/* Every step-th of n words. */
static inline void eg_gather(const uint32_t *from, uint32_t step, uint32_t *to, uint32_t n) {
  __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i at = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)step));
  for (uint32_t m = 0; m < n; m += EG_LANES, from += (size_t)EG_LANES * step)
    _mm512_mask_storeu_epi32(to + m, eg_lanes(n - m), eg_take(eg_lanes(n - m), at, from, 4));
}

/* The kids of nodes at a place, instead of the nodes. */
static inline void eg_gather_kids(const eg_rec *rec, uint32_t slot, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m += EG_LANES) {
    __mmask16 k = eg_lanes(n - m);
    __m512i at = _mm512_slli_epi32(_mm512_maskz_loadu_epi32(k, to + m), 1); /* 16 bytes each, in steps of 8 */
    _mm512_mask_storeu_epi32(to + m, k, eg_take(k, at, &rec->k[slot], 8));
  }
}

/* The classes of ids: most are roots or one step from one. */
static inline void eg_find_all(tarn_egraph *g, const uint32_t *x, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m += EG_LANES) {
    __mmask16 k = eg_lanes(n - m);
    __m512i at = _mm512_maskz_loadu_epi32(k, x + m), up = eg_take(k, at, g->uf, 4);
    __mmask16 low = (__mmask16)(k & ~_mm512_movepi32_mask(up));
    for (; low; low = (__mmask16)(low & ~_mm512_movepi32_mask(up))) {
      at = _mm512_mask_mov_epi32(at, low, up);
      up = eg_take(low, at, g->uf, 4);
    }
    _mm512_mask_storeu_epi32(to + m, k, at);
  }
}

static inline __m512i eg_times(__m256i x, uint64_t c) {
  return _mm512_mullo_epi64(_mm512_cvtepu32_epi64(x), _mm512_set1_epi64((long long)c));
}
/* eg_hash2() */
static inline void eg_hash_all(uint32_t head, const uint32_t *k0, const uint32_t *k1, uint64_t *h, uint32_t n) {
  __m512i base = _mm512_set1_epi64((long long)eg_hash_head(head));
  for (uint32_t m = 0; m < n; m += EG_LANES / 2) {
    __m512i x = eg_times(_mm256_loadu_si256((const void *)(k0 + m)), EG_HASH_0);
    x = _mm512_add_epi64(_mm512_add_epi64(x, base), eg_times(_mm256_loadu_si256((const void *)(k1 + m)), EG_HASH_1));
    x = _mm512_xor_epi64(x, _mm512_srli_epi64(x, 32));
    _mm512_storeu_si512(h + m, _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)EG_HASH_END)));
  }
}
#else
static inline void eg_gather(const uint32_t *from, uint32_t step, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m++) to[m] = from[m * (size_t)step];
}
static inline void eg_gather_kids(const eg_rec *rec, uint32_t slot, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m++) to[m] = rec[to[m]].k[slot];
}
static inline void eg_find_all(tarn_egraph *g, const uint32_t *x, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m++) to[m] = eg_find_mut(g, x[m]);
}
static inline void eg_hash_all(uint32_t head, const uint32_t *k0, const uint32_t *k1, uint64_t *h, uint32_t n) {
  for (uint32_t m = 0; m < n; m++) h[m] = eg_hash2(head, k0[m], k1[m]);
}
#endif

#endif
