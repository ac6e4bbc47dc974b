/* Constants packed by the tile: a kernel and the same with its constant in blocks have the same
 * results. */
#include "tests/lower_kit.h" /* before the names that terms.h gives to all */
#include "tests/products.h"
#include "tests/terms.h"

#include "hw/hw.h"
#include "plan/plan.h"
#include <stdlib.h>

/* Blocked by the tile: the same values from a constant put in blocks, `fine` elements of dim `by`
 * to a block. */
typedef struct packing {
  uint32_t constant, dims; /* operand; dims of the loops afterwards */
  int64_t lanes, rows;     /* of the register tile: 5 x 48 results of 7 terms */
} packing;
static double blocked_value(const packing *q, int64_t x, int64_t size) {
  enum { R = 5, C = 48, T = 7 };
  int64_t n = q->constant ? C : R, tile = q->constant ? q->lanes : q->rows;
  int64_t of = x / (T * tile) * tile + x % tile,
          term = x % (T * tile) / tile; /* padded blocks, the dim innermost */
  ck_assert_int_eq(size, (n + tile - 1) / tile * tile * T);
  if (of >= n) return 1e9; /* padding is not read */
  int64_t at = q->constant ? term * C + of : of * T + term;
  return (double)(at * 7 % 23);
}
/* A kernel and the same with its constant in blocks have the same results. value: of element x of
 * an operand of so many, which lies as it is, or packed. */
typedef double operand_value(const void *how, bool packed, uint32_t operand, int64_t x,
                             int64_t elems);
static void check_blocked(tarn_ctx *c, const tarn_ksig *k, const tarn_ksig *b, operand_value *value,
                          const void *how, size_t results) {
  tarn_tensor *out[2];
  for (int v = 0; v < 2; v++) {
    const tarn_ksig *g = v ? b : k;
    tarn_binding in[2];
    tarn_term kid[2];
    for (uint32_t i = 0; i < 2; i++) {
      tarn_tensor *t = tarn_tensor_new(c, TARN_F32, 1, g->in[i].dim);
      for (int64_t x = 0; x < t->dim[0]; x++)
        tarn_tensor_set(t, x, (tarn_value){.d = value(how, v, i, x, t->dim[0])});
      in[i] = (tarn_binding){i ? "b" : "a", t};
      kid[i] = tarn_input(L, in[i].name, tarn_type_tensor(L, TARN_F32, 1, 1, t->dim));
    }
    tarn_term root = tarn_mk(L, TARN_OP_NEST, tarn_payload_of(L, TARN_P_NEST, g->nest), kid, 2);
    tarn_eval(L, &root, 1, in, 2, TARN_STRICT, NULL, &out[v]);
  }
  ck_assert(!memcmp(out[0]->data, out[1]->data, results * sizeof(float)));
}
static double value_of_packing(const void *how, bool packed, uint32_t operand, int64_t x,
                               int64_t elems) {
  const packing *q = how;
  return packed && operand == q->constant ? blocked_value(q, x, elems) : (double)(x * 7 % 23);
}
/* What is written of a constant is what the kernel reads. */
static void check_written(tarn_ctx *c, const packing *q, const tarn_packed *how, const tarn_ksig *k,
                          const tarn_ksig *b) {
  int64_t size = tarn_layout_elems(&b->in[q->constant]);
  tarn_tensor *t = tarn_tensor_new(c, TARN_F32, 1, k->in[q->constant].dim);
  float *to = TARN_ARRAY(c, float, size);
  ck_assert_int_eq(tarn_layout_elems(&how[q->constant].layout), size);
  ck_assert_uint_eq(how[q->constant].view, TARN_NONE);
  ck_assert_uint_eq(how[!q->constant].layout.n, 0);
  for (int64_t x = 0; x < t->dim[0]; x++)
    tarn_tensor_set(t, x, (tarn_value){.d = (double)(x * 7 % 23)});
  tarn_plan_const_lay_out(&how[q->constant].layout, t, (char *)to);
  for (int64_t x = 0; x < size; x++) {
    double want = blocked_value(q, x, size);
    ck_assert(to[x] == (want < 1e9 ? (float)want : 0));
  }
}
static void block_one(tarn_ctx *c, const packing *q) {
  enum { R = 5, C = 48, T = 7 };
  tarn_ksig k = product(R, C, T), b;
  k.in_const[0] = !q->constant, k.in_const[1] = q->constant, b = k;
  tarn_stage_sched st = {.nlevel = 6,
                         .acc = 2,
                         .level = {{1, TARN_SERIAL, q->lanes},
                                   {0, TARN_SERIAL, q->rows},
                                   {2, TARN_SERIAL, 1},
                                   {0, TARN_UNROLL, 1},
                                   {1, TARN_UNROLL, 16},
                                   {1, TARN_VECTOR, 1}}};
  const tarn_schedule whole = {.nstage = 1, .stage = &st}, *s = &whole;
  tarn_packed how[2];
  ck_assert(tarn_ksig_block(L, &b, &s, how));
  tarn_schedule_check(L, tarn_nest_get(L, b.nest), s);
  ck_assert_uint_eq(tarn_nest_get(L, b.nest)->stage->nown, q->dims);
  check_written(c, q, how, &k, &b);
  check_blocked(c, &k, &b, value_of_packing, q, R * C);
}
static void block(tarn_ctx *c, void *arg) {
  (void)arg;
  static const packing all[] = {
      {1, 3, 16, 2}, {1, 2, 32, 2}, {0, 2, 16, 2}, {0, 2, 32, 4}, {0, 2, 16, 3}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) block_one(c, &all[i]);
  tarn_ksig k = product(6, 48, 7), same = k;
  tarn_stage_sched st = {.nlevel = 5,
                         .acc = 3,
                         .level = {{1, TARN_SERIAL, 24},
                                   {1, TARN_SERIAL, 16},
                                   {0, TARN_SERIAL, 1},
                                   {2, TARN_SERIAL, 1},
                                   {1, TARN_VECTOR, 1}}};
  const tarn_schedule whole = {.nstage = 1, .stage = &st}, *s = &whole;
  uint32_t lanes;
  ck_assert(tarn_ksig_block(L, &same, &s, NULL)); /* by 24: tiles of 16 do not divide it */
  ck_assert_int_eq(tarn_schedule_tile(&st, &lanes), 24);
  st.level[0].step = 32, s = &whole, same = k;
  ck_assert_int_eq(tarn_schedule_tile(&st, &lanes),
                   16); /* a tile, not the block of two that a loop outside walks */
  ck_assert(tarn_ksig_block(L, &same, &s, NULL));
  tarn_schedule_check(L, tarn_nest_get(L, same.nest), s);
  ck_assert_int_eq(tarn_nest_get(L, same.nest)->stage->own[2], 16);
  st.level[0].step = 48, st.level[1].step = 48, s = &whole, same = k;
  ck_assert(!tarn_ksig_block(L, &same, &s, NULL) && s == &whole &&
            tarn_ksig_equal(&same, &k)); /* nothing to cut */
  k.in_const[0] = true, k.in_const[1] = false, same = k;
  st.level[1].step = 16,
  s = &whole; /* the constant does not lie along the lanes, and no row is unrolled */
  ck_assert(!tarn_ksig_block(L, &same, &s, NULL) && tarn_ksig_equal(&same, &k));
  k = product(6, 48, 7), k.in_const[0] = true, k.in_const[1] = false, same = k;
  tarn_stage_sched two = {
      .nlevel =
          6, /* rows in blocks of 4, tiles of 2, and tiles of 3 that do not divide the blocks */
      .acc = 3,
      .level = {{0, TARN_SERIAL, 4},
                {0, TARN_SERIAL, 2},
                {1, TARN_SERIAL, 16},
                {2, TARN_SERIAL, 1},
                {0, TARN_UNROLL, 1},
                {1, TARN_VECTOR, 1}}};
  const tarn_schedule rows = {.nstage = 1, .stage = &two};
  s = &rows;
  ck_assert(tarn_ksig_block(L, &same, &s, NULL));
  tarn_schedule_check(L, tarn_nest_get(L, same.nest), s);
  two.level[1].step = 3, s = &rows, same = k;
  ck_assert(!tarn_ksig_block(L, &same, &s, NULL) && tarn_ksig_equal(&same, &k));
}
/* A vector's tiles follow one another as it is: it is not packed, nor made longer. */
static void block_vector(tarn_ctx *c, void *arg) {
  (void)c, (void)arg;
  tarn_ksig k = product(5, 40, 1), same = k;
  tarn_stage_sched st = {.nlevel = 3,
                         .acc = 3,
                         .level = {{1, TARN_SERIAL, 16}, {0, TARN_SERIAL, 1}, {1, TARN_VECTOR, 1}}};
  const tarn_schedule whole = {.nstage = 1, .stage = &st}, *s = &whole;
  ck_assert(!tarn_ksig_block(L, &same, &s, NULL) && s == &whole && tarn_ksig_equal(&same, &k));
}
START_TEST(blocked_vector) { must(block_vector, NULL); }
END_TEST
START_TEST(blocked) { must(block, NULL); }
END_TEST

/* Several products: matrices outside of the blocks lie outside of them, those walked inside lie
 * inside. */
enum { MATRICES = 3, SIDE = 5, COLUMNS = 48, TERMS = 7, PANEL = 16 };
static tarn_ksig products(void) {
  const int64_t dim[] = {MATRICES, SIDE, COLUMNS, TERMS},
                flat[2] = {MATRICES * SIDE * TERMS, MATRICES * TERMS * COLUMNS};
  const int64_t step[2][4] = {{SIDE * TERMS, TERMS, 0, 1}, {TERMS * COLUMNS, 0, 1, COLUMNS}};
  tarn_ksig one = product(SIDE, COLUMNS, TERMS), k = one;
  tarn_nest n = *tarn_nest_get(L, one.nest);
  tarn_stage st = n.stage[0];
  tarn_read read[2];
  for (uint32_t i = 0; i < 2; i++) {
    tarn_imap m = {.ns = 4, .n = 4, .nin = 1, .in = {flat[i]}, .fill = TARN_NONE};
    memcpy(m.dim, dim, sizeof dim), m.e[0] = tarn_ix_const(L, 0);
    for (uint32_t d = 0; d < 4; d++)
      m.e[0] =
          tarn_ix_add(L, m.e[0], tarn_ix_scale(L, tarn_ix_var(L, d, dim), step[i][d], dim), dim);
    read[i] = (tarn_read){.src = i, .map = tarn_map_intern(L, &m)},
    k.in[i] = tarn_layout_row_major(1, &flat[i]);
  }
  st.nown = 3, memcpy(st.own, dim, 3 * sizeof *dim), st.read = read;
  n.out_ns = 3, n.stage = &st, k.nest = tarn_nest_intern(L, &n),
  k.out[0] = tarn_layout_row_major(3, dim);
  tarn_ksig_canonical(L, &k);
  return k;
}
static double value_of_matrices(const void *how, bool packed, uint32_t operand, int64_t x,
                                int64_t elems) {
  int64_t at = x, term = x / PANEL % TERMS, block = x / (PANEL * TERMS), panels = COLUMNS / PANEL;
  bool outside = *(const int *)how;
  int64_t matrix = outside ? block / panels : block % MATRICES,
          panel = outside ? block % panels : block / MATRICES;
  (void)elems;
  if (packed && operand) at = (matrix * TERMS + term) * COLUMNS + panel * PANEL + x % PANEL;
  return (double)(at * 7 % 23);
}
static void block_among_matrices(tarn_ctx *c, void *arg) {
  (void)arg;
  for (int outside = 0; outside < 2; outside++) {
    tarn_stage_sched st = {.nlevel = 6,
                           .acc = 3,
                           .level = {{0, TARN_SERIAL, 1},
                                     {2, TARN_SERIAL, PANEL},
                                     {1, TARN_SERIAL, 1},
                                     {3, TARN_SERIAL, 1},
                                     {2, TARN_UNROLL, 8},
                                     {2, TARN_VECTOR, 1}}};
    if (!outside)
      st.level[0] = (tarn_level){2, TARN_SERIAL, PANEL},
      st.level[1] = (tarn_level){0, TARN_SERIAL, 1};
    const tarn_schedule whole = {.nstage = 1, .stage = &st}, *s = &whole;
    tarn_ksig k = products(), b = k;
    ck_assert(tarn_ksig_block(L, &b, &s, NULL));
    tarn_schedule_check(L, tarn_nest_get(L, b.nest), s);
    check_blocked(c, &k, &b, value_of_matrices, &outside, MATRICES * SIDE * COLUMNS);
  }
}
START_TEST(blocked_matrices) { must(block_among_matrices, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("packing");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, blocked);
  tcase_add_test(t, blocked_matrices);
  tcase_add_test(t, blocked_vector);
  return run_checks("packing", t);
}
