/* Register transposes: a vector's elements belong to rows far apart in memory, while the unrolled
 * copies of the body compute neighbours of each row. The copies are kept until a block is complete,
 * transposed in registers (Eklundh, "A fast computer method for matrix transposing", IEEE Trans.
 * Comput. 1972) and stored row by row. */
#include "lower/nest.h"

/* Which block this copy belongs to: all that is known but its place in the row. */
static uint64_t block_key(const low_fn *E, const low_stage *st) {
  uint64_t key = 1;
  for (uint32_t v = 0; v < PLAN_MAX_VARS; v++)
    if (v != st->p->rows->var && (st->result.p->deps >> v & 1) &&
        E->env[v].kind == TARN_PLAN_NUMBER)
      key = key * (uint64_t)(E->space->hi[v] + 1) + (uint64_t)E->env[v].c;
  return key;
}

/* w: size vectors of as many elements, NULL where nothing is; w[i][j] becomes w[j][i]. */
static void turn(low_module *M, LLVMValueRef *w, uint32_t size) {
  int lo[TARN_TRANSPOSE_LANES], hi[TARN_TRANSPOSE_LANES];
  for (uint32_t d = 1; d < size; d *= 2) {
    for (uint32_t p = 0; p < size; p++) {
      lo[p] = (int)(p & d ? size + (p ^ d) : p);
      hi[p] = (int)(p & d ? size + p : p | d);
    }
    for (uint32_t r = 0; r < size; r++) {
      LLVMValueRef a = w[r], b = w[r ^ d];
      if (r & d || !a) continue;
      if (!b) b = LLVMGetPoison(LLVMTypeOf(a));
      if (w[r ^ d]) w[r] = low_shuffle(M, a, b, lo, size);
      w[r ^ d] = low_shuffle(M, a, b, hi, size);
    }
  }
}

static uint32_t power_of_two(uint32_t n) {
  uint32_t p = 1;
  while (p < n) p *= 2;
  return p;
}
/* Copies first … first + n - 1 of a whole block. */
static void store_rows(low_fn *E, const low_access *a, const low_off *at, LLVMValueRef *v,
                       uint32_t first, uint32_t n) {
  low_module *M = E->M;
  uint32_t size = power_of_two(E->lanes > n ? E->lanes : n);
  LLVMValueRef w[TARN_TRANSPOSE_LANES] = {0};
  LLVMTypeRef t = low_memory_type(M, a->p->dtype);
  for (uint32_t i = 0; i < n; i++) w[i] = low_resized(M, v[first + i], E->lanes, size);
  turn(M, w, size);
  for (uint32_t i = 0; i < E->lanes; i++) {
    low_off o = {.v = at->v, .c = at->c + first + (int64_t)i * at->stride};
    LLVMValueRef c = low_off_scalar(E, &o);
    low_store_at(E, a, LLVMBuildInBoundsGEP2(M->b, t, a->base, &c, 1, ""),
                 low_resized(M, w[i], size, n));
  }
}

static low_block_of_rows *block_of(low_nest *N, low_fn *E, low_stage *st, uint32_t level) {
  uint64_t key = block_key(E, st);
  for (uint32_t i = 0; i < st->block.n; i++)
    if (st->block.p[i].key == key) return &st->block.p[i];
  tarn_push(N->M->cx, &st->block,
            ((low_block_of_rows){.key = key, .at = *low_access_at(&st->result, level)}));
  return &st->block.p[st->block.n - 1];
}

void low_store_transposed(low_nest *N, low_fn *E, low_stage *st, uint32_t level, LLVMValueRef v) {
  low_access *a = &st->result;
  if (E->lanes < 2 || low_access_at(a, level)->vec) {
    low_store(E, &st->result, level, v);
    return;
  }
  uint32_t want = (uint32_t)N->last[st->p->rows->var] + 1, most = power_of_two(E->lanes);
  low_block_of_rows *b = block_of(N, E, st, level);
  b->v[b->n++] = low_to_memory(E->M, a->p->dtype, v);
  if (b->n < want) return;
  for (uint32_t i = 0; i < want; i += most)
    store_rows(E, a, &b->at, b->v, i, want - i < most ? want - i : most);
  *b = st->block.p[--st->block.n];
}
