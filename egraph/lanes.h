/* The same step for many matches: with vectors of 512 bits where what includes this is compiled for
 * them, else one by one. */
#ifndef TARN_EGRAPH_LANES_H
#define TARN_EGRAPH_LANES_H

#include "egraph/table.h"
#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512DQ__)
enum { EG_LANES = 16, EG_SIDE_BY_SIDE = true };
static inline __mmask16 eg_lanes(uint32_t left) {
  return (__mmask16)(left >= EG_LANES ? 0xFFFF : (1u << left) - 1);
}
static inline __m512i eg_take(__mmask16 k, __m512i at, const void *base, int scale) {
  __m512i none = _mm512_setzero_si512();
  return scale == 4 ? _mm512_mask_i32gather_epi32(none, k, at, base, 4)
                    : _mm512_mask_i32gather_epi32(none, k, at, base, 8);
}

/* Every step-th of n words. */
static inline void eg_gather(const uint32_t *from, uint32_t step, uint32_t *to, uint32_t n) {
  if (step == 1) {
    memcpy(to, from, n * sizeof *to);
    return;
  }
  __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (uint32_t m = 0; step == 2 && m < n; m += EG_LANES, from += 2 * EG_LANES) {
    uint32_t left = 2 * (n - m) - 1;
    __m512i a = _mm512_maskz_loadu_epi32(eg_lanes(left), from);
    __m512i b =
        _mm512_maskz_loadu_epi32(left > EG_LANES ? eg_lanes(left - EG_LANES) : 0, from + EG_LANES);
    _mm512_mask_storeu_epi32(to + m, eg_lanes(n - m),
                             _mm512_permutex2var_epi32(a, _mm512_slli_epi32(lane, 1), b));
  }
  if (step == 2) return;
  __m512i at = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)step));
  for (uint32_t m = 0; m < n; m += EG_LANES, from += (size_t)EG_LANES * step)
    _mm512_mask_storeu_epi32(to + m, eg_lanes(n - m), eg_take(eg_lanes(n - m), at, from, 4));
}

/* The kids of nodes at a place, instead of the nodes. */
static inline void eg_gather_kids(const eg_rec *rec, uint32_t slot, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m += EG_LANES) {
    __mmask16 k = eg_lanes(n - m);
    __m512i at = _mm512_slli_epi32(_mm512_maskz_loadu_epi32(k, to + m),
                                   1); /* 16 bytes each, in steps of 8 */
    _mm512_mask_storeu_epi32(to + m, k, eg_take(k, at, &rec->k[slot], 8));
  }
}

/* The classes of ids: most are roots or one step from one.  At most 32, so that both halves wait
 * together. */
static inline void eg_find_all(tarn_egraph *g, const uint32_t *x, uint32_t *to, uint32_t n) {
  const uint32_t *uf = g->uf;
  __mmask16 k = eg_lanes(n), l = n > EG_LANES ? eg_lanes(n - EG_LANES) : 0;
  __m512i a = _mm512_maskz_loadu_epi32(k, x), b = _mm512_maskz_loadu_epi32(l, x + EG_LANES);
  __m512i up = eg_take(k, a, uf, 4), vp = eg_take(l, b, uf, 4);
  __mmask16 i = (__mmask16)(k & ~_mm512_movepi32_mask(up)),
            j = (__mmask16)(l & ~_mm512_movepi32_mask(vp));
  while (i | j) {
    a = _mm512_mask_mov_epi32(a, i, up), b = _mm512_mask_mov_epi32(b, j, vp);
    up = eg_take(i, a, uf, 4), vp = eg_take(j, b, uf, 4);
    i = (__mmask16)(i & ~_mm512_movepi32_mask(up)), j = (__mmask16)(j & ~_mm512_movepi32_mask(vp));
  }
  _mm512_mask_storeu_epi32(to, k, a), _mm512_mask_storeu_epi32(to + EG_LANES, l, b);
}

/* Bits where they are not the same; n is at most 32. */
static inline uint32_t eg_differ(const uint32_t *a, const uint32_t *b, uint32_t n) {
  uint32_t bits = 0;
  for (uint32_t m = 0; m < n; m += EG_LANES) {
    __mmask16 k = _mm512_mask_cmpneq_epi32_mask(eg_lanes(n - m), _mm512_loadu_si512(a + m),
                                                _mm512_loadu_si512(b + m));
    bits |= (uint32_t)k << m;
  }
  return bits;
}

static inline __m512i eg_times(__m256i x, uint64_t c) {
  return _mm512_mullo_epi64(_mm512_cvtepu32_epi64(x), _mm512_set1_epi64((long long)c));
}
/* eg_hash2() */
static inline void eg_hash_all(uint32_t head, const uint32_t *k0, const uint32_t *k1, uint64_t *h,
                               uint32_t n) {
  __m512i base = _mm512_set1_epi64((long long)eg_hash_head(head));
  for (uint32_t m = 0; m < n; m += EG_LANES / 2) {
    __m512i x = eg_times(_mm256_loadu_si256((const void *)(k0 + m)), EG_HASH_0);
    x = _mm512_add_epi64(_mm512_add_epi64(x, base),
                         eg_times(_mm256_loadu_si256((const void *)(k1 + m)), EG_HASH_1));
    x = _mm512_xor_epi64(x, _mm512_srli_epi64(x, 32));
    _mm512_storeu_si512(h + m, _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)EG_HASH_END)));
  }
}
/* eg_table_peek() for each; bits where there is none. */
static inline uint32_t eg_peek_all(const tarn_egraph *g, const uint64_t *h, uint32_t *ids,
                                   uint32_t n) {
  const eg_table *t = &g->table;
  enum { MOST = 2 * EG_LANES };
  uint64_t at[MOST];
  uint32_t tag[MOST], like[MOST], none = 0;
  __m512i mask = _mm512_set1_epi32((int)~t->ids), buckets = _mm512_set1_epi64(t->mask);
  for (uint32_t m = 0; m < n; m += EG_LANES / 2) {
    __m512i x = _mm512_loadu_si512(h + m),
            home = _mm512_and_si512(_mm512_srl_epi64(x, _mm_cvtsi32_si128((int)t->shift)), buckets);
    _mm512_storeu_si512(at + m, _mm512_slli_epi64(home, 4));
    _mm256_storeu_si256((void *)(tag + m), _mm512_cvtepi64_epi32(x));
  }
  for (uint32_t m = 0; m < n; m++) {
    const uint32_t *b = t->slots + at[m];
    __m512i other = _mm512_xor_si512(_mm512_load_si512(b), _mm512_set1_epi32((int)tag[m]));
    like[m] = _mm512_testn_epi32_mask(other, mask);
    ids[m] = b[eg_lowest(like[m] | 1u << (EG_BUCKET - 1))];
  }
  for (uint32_t m = 0; m < n; m += EG_LANES) {
    __m512i s = _mm512_loadu_si512(ids + m), some = _mm512_loadu_si512(like + m);
    __mmask16 k = eg_lanes(n - m),
              is = _mm512_mask_cmplt_epu32_mask(k, s, _mm512_set1_epi32((int)TOMB));
    is = _mm512_mask_test_epi32_mask(is, some, some);
    _mm512_mask_storeu_epi32(ids + m, k, _mm512_maskz_andnot_epi32(is, mask, s));
    none |= (uint32_t)(__mmask16)(k & ~is) << m;
  }
  return none;
}

/* Bits for the ids that are not the nodes with those keys; step 0: all of one head. */
static inline uint32_t eg_wrong(const eg_rec *rec, const uint32_t *ids, const uint32_t *head,
                                uint32_t step, const uint32_t *k0, const uint32_t *k1, uint32_t n) {
  uint32_t wrong = 0;
  for (uint32_t m = 0; m < n; m += EG_LANES) {
    __mmask16 k = eg_lanes(n - m);
    __m512i at = _mm512_slli_epi32(_mm512_maskz_loadu_epi32(k, ids + m), 1);
    __m512i h = _mm512_and_si512(eg_take(k, at, &rec->head, 8), _mm512_set1_epi32(HEAD_BITS));
    __m512i want = step ? _mm512_loadu_si512(head + m) : _mm512_set1_epi32((int)*head);
    __mmask16 w = _mm512_mask_cmpneq_epi32_mask(k, h, want);
    w |=
        _mm512_mask_cmpneq_epi32_mask(k, eg_take(k, at, &rec->k[0], 8), _mm512_loadu_si512(k0 + m));
    w |=
        _mm512_mask_cmpneq_epi32_mask(k, eg_take(k, at, &rec->k[1], 8), _mm512_loadu_si512(k1 + m));
    wrong |= (uint32_t)w << m;
  }
  return wrong;
}
#else
enum { EG_SIDE_BY_SIDE = false }; /* then it pays only to wait for memory together */
static inline uint32_t eg_peek_all(const tarn_egraph *g, const uint64_t *h, uint32_t *ids,
                                   uint32_t n) {
  uint32_t none = 0;
  for (uint32_t m = 0; m < n; m++) {
    uint32_t is;
    ids[m] = eg_table_peek(g, h[m], &is);
    none |= (uint32_t)!is << m;
  }
  return none;
}
static inline uint32_t eg_wrong(const eg_rec *rec, const uint32_t *ids, const uint32_t *head,
                                uint32_t step, const uint32_t *k0, const uint32_t *k1, uint32_t n) {
  uint32_t wrong = 0;
  for (uint32_t m = 0; m < n; m++) {
    const eg_rec *r = &rec[ids[m]];
    uint32_t other =
        (r->k[0] ^ k0[m]) | (r->k[1] ^ k1[m]) | ((r->head & HEAD_BITS) ^ head[m * step]);
    wrong |= (uint32_t)(other != 0) << m;
  }
  return wrong;
}
static inline void eg_gather(const uint32_t *from, uint32_t step, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m++) to[m] = from[m * (size_t)step];
}
static inline void eg_gather_kids(const eg_rec *rec, uint32_t slot, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m++) to[m] = rec[to[m]].k[slot];
}
static inline void eg_find_all(tarn_egraph *g, const uint32_t *x, uint32_t *to, uint32_t n) {
  for (uint32_t m = 0; m < n; m++) to[m] = eg_find_mut(g, x[m]);
}
static inline void eg_hash_all(uint32_t head, const uint32_t *k0, const uint32_t *k1, uint64_t *h,
                               uint32_t n) {
  for (uint32_t m = 0; m < n; m++) h[m] = eg_hash2(head, k0[m], k1[m]);
}
static inline uint32_t eg_differ(const uint32_t *a, const uint32_t *b, uint32_t n) {
  uint32_t bits = 0;
  for (uint32_t m = 0; m < n; m++) bits |= (uint32_t)(a[m] != b[m]) << m;
  return bits;
}
#endif

#endif
