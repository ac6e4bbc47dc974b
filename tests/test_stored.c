/* Weights of few bits: one row is multiplied by them as they are stored, several in a byte, so that
 * memory is asked for few bytes; many rows by weights that are made f32 once. */
#include "tests/pipeline.h"
#include "tests/suite.h"

enum { WIDTH = 1024 };

typedef struct kind {
  int64_t rows;
  tarn_dtype t;
  int64_t low, high;
  int64_t bits; /* of a weight, as it is stored */
  bool steps;   /* made f32, then scaled */
} kind;
static const kind want[] = {{1, TARN_I8, -8, 7, 4, false},       {1, TARN_U8, 0, 15, 4, false},
                            {1, TARN_U8, 0, 3, 2, false},        {1, TARN_I8, 0, 3, 2, false},
                            {1, TARN_I8, -9, 6, 8, false},       {1, TARN_U8, 0, 16, 8, false},
                            {3, TARN_I8, -8, 7, 4, false},       {64, TARN_I8, -8, 7, 32, false},
                            {1, TARN_F32, -100, 100, 32, false}, {1, TARN_U8, 0, 200, 8, true},
                            {1, TARN_I8, -8, 7, 4, true}};

/* The constant, and what a model makes of it: whole numbers times the scale of a row. */
static tarn_term weights(tarn_lang *L, const kind *is, uint64_t *seed) {
  tarn_dtype t = is->t;
  tarn_ctx *cx = tarn_lang_ctx(L);
  const int64_t dim[2] = {WIDTH, WIDTH};
  tarn_tensor *q = tarn_tensor_new(cx, t, 2, dim), *s = tarn_tensor_new(cx, TARN_F32, 1, dim);
  bool real = tarn_dtype_is_float(t);
  for (int64_t i = 0; i < tarn_tensor_count(q); i++) {
    int64_t v = is->low + (int64_t)(tarn_random(seed) % (uint64_t)(is->high - is->low + 1));
    tarn_tensor_set(q, i, real ? (tarn_value){.d = (double)v} : (tarn_value){.i = v});
  }
  for (int64_t i = 0; i < WIDTH; i++)
    tarn_tensor_set(s, i, (tarn_value){.d = 0.25 * (double)(1 + tarn_random(seed) % 3)});
  uint32_t wide = tarn_fx_cast(L, TARN_F32, tarn_fx_hole(L, 0));
  const tarn_term of[2] = {
      tarn_constant(L, "q", q, 2),
      tarn_broadcast(L, 2, 2, dim, tarn_insert_axis(L, 1, tarn_constant(L, "s", s, 1)))};
  tarn_term by[2] = {of[0], of[1]};
  if (is->steps) by[0] = tarn_compute(L, tarn_fn_map(L, wide, 1), of, 1);
  uint32_t value = is->steps ? tarn_fx_hole(L, 0) : wide;
  uint32_t times = tarn_fx_op(L, TARN_FX_MUL, value, tarn_fx_hole(L, 1), 0);
  return tarn_access(L, 1, tarn_compute(L, tarn_fn_map(L, times, 2), by, 2));
}
/* The host with caches that hold few of the weights, and slow memory. */
static const tarn_hw *slow_memory(tarn_ctx *cx, const tarn_hw *host) {
  tarn_hw *hw = tarn_copy(cx, host, sizeof *host);
  tarn_hw_memory *mem = tarn_copy(cx, host->mem, host->nmem * sizeof *mem);
  for (uint32_t i = 1; i < hw->nmem; i++) mem[i].capacity /= 1024;
  mem[hw->nmem - 1].read /= 8;
  hw->mem = mem;
  return hw;
}
static pipeline *model_of(tarn_lang *L, const kind *is, uint64_t *seed) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_program *p = TARN_NEW(cx, tarn_program);
  const int64_t dim[2] = {is->rows, WIDTH};
  uint32_t type = tarn_type_tensor(L, TARN_F32, 2, 2, dim);
  tarn_term pairs =
      tarn_cart(L, 0, tarn_access(L, 1, tarn_input(L, "x", type)), weights(L, is, seed));
  tarn_term y = tarn_compute(L, tarn_fn_dot(L, TARN_F32), &pairs, 1);
  *p = (tarn_program){.L = L, .nin = 1, .nout = 1};
  p->in = tarn_copy(cx, &(tarn_io){.name = "x", .type = type}, sizeof(tarn_io));
  p->out = tarn_copy(cx, &(tarn_io){.name = "y", .term = y}, sizeof(tarn_io));
  return pipeline_optimise(p, slow_memory(tarn_lang_ctx(L), tarn_hw_host(L, false)));
}
static int64_t constant_bytes(const tarn_kprog *p) {
  int64_t n = 0;
  for (uint32_t i = 0; i < p->nbuf; i++)
    if (p->buf[i].kind == TARN_BUF_CONST) n += tarn_buffer_bytes(&p->buf[i]);
  return n;
}
static void try_weights(tarn_ctx *cx, void *arg) {
  const kind *is = &want[*(const int *)arg];
  uint64_t seed = 1;
  int64_t dim[2] = {is->rows, WIDTH}, most = is->bits * WIDTH * WIDTH / 8;
  pipeline *r = model_of(tarn_lang_new(cx), is, &seed);
  int64_t bytes = constant_bytes(r->kprog);
  if (bytes < most || bytes > most + 64 * WIDTH)
    tarn_raise(cx, TARN_NO, "%lld bytes of constants", (long long)bytes);
  tarn_tensor *x = tarn_tensor_new(cx, TARN_F32, 2, dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++)
    tarn_tensor_set(x, i, (tarn_value){.d = (double)((int)(tarn_random(&seed) % 9) - 4)});
  pipeline_try(r, &(tarn_binding){"x", x}, "weights");
}
START_TEST(weights_of_few_bits) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_msg(tarn_protect(cx, try_weights, &_i) == TARN_OK, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("weights");
  tcase_set_timeout(t, 120); /* of a busy machine */
  tcase_add_loop_test(t, weights_of_few_bits, 0, sizeof want / sizeof *want);
  return run_checks("stored", t);
}
