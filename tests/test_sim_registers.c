/* sim/: machines whose instructions set registers that later ones use; entries that are computed
 * while they move; operands of several entries. */
#include "tests/sim_kit.h"

/* y = relu(scale × (x · w + bias)): 16 × 32 by 32 × 16, bytes, on Gemmini. */
enum { ROWS = 16, SUM = 32 };
typedef struct made {
  tarn_sim_program p;
  tarn_sim_buffer buffer[5]; /* x, w, bias, add, y */
  const char *bias;          /* the instruction that brings it: 32 bits a number or 8 */
  bool late;                 /* the weights are overwritten behind the preload */
} made;

static void place(made *m, uint32_t i, const char *name, tarn_sim_role role, tarn_dtype t,
                  int64_t n) {
  tarn_sim_buffer *b = &m->buffer[i];
  *b = (tarn_sim_buffer){.name = name, .role = role, .base = m->p.size};
  b->bytes = n * (int64_t)tarn_dtype_size(t);
  b->array = (tarn_tensor){.dtype = t, .n = 1, .dim = {n}};
  m->p.size += tarn_ceildiv(b->bytes, 64) * 64;
}
static void fill(tarn_ctx *c, made *m) {
  place(m, 0, "x", TARN_SIM_INPUT, TARN_I8, ROWS * SUM);
  place(m, 1, "w", TARN_SIM_CONSTANT, TARN_I8, SUM * 16);
  place(m, 2, "bias", TARN_SIM_CONSTANT, TARN_I32, 16);
  place(m, 3, "add", TARN_SIM_INPUT, TARN_I8, ROWS * 16);
  place(m, 4, "y", TARN_SIM_OUTPUT, TARN_I8, ROWS * 16);
  m->p.dram = tarn_new_aligned(c, (size_t)m->p.size, 64);
  m->p.buffer = m->buffer, m->p.nbuffer = 5;
  uint64_t state = 3;
  for (int64_t i = 0; i < m->p.size; i++) m->p.dram[i] = (uint8_t)(tarn_random(&state) >> 9);
  for (uint32_t i = 0; i < 5; i++) m->buffer[i].array.data = m->p.dram + m->buffer[i].base;
  for (int32_t i = 0; i < 16; i++) ((int32_t *)m->buffer[2].array.data)[i] = 1000 - 150 * i;
}
static int64_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}
static void ld(assembler *a, int64_t state, int64_t stride, int64_t block, int64_t narrow) {
  const char *name = tarn_format(cx, "config-ld%d", (int)state);
  emit(a, name,
       SETS({"scale", bits_of(1)}, {"stride", stride}, {"block", block}, {"narrow", narrow}));
}
static void in(assembler *a, const char *name, int64_t at, int64_t row, int64_t columns,
               int64_t rows) {
  emit(a, name, SETS({"dram", at}, {"row", row}, {"columns", columns}, {"rows", rows}));
}
static void sum(assembler *a, const made *m, int64_t k) {
  const int64_t w = 1000 + 16 * k;
  emit(a, "preload", SETS({"b", w}, {"c", 32}, {"c-accumulate", 1}));
  if (m->late && k) in(a, "mvin2", m->buffer[1].base, w, 16, 16);
  emit(a, "compute", SETS({"a", 16 * k}));
}
static void assemble(assembler *a, const made *m) {
  int64_t base[5];
  for (uint32_t i = 0; i < 5; i++) base[i] = m->buffer[i].base;
  bool wide = !strcmp(m->bias, "mvin-wide");
  emit(a, "config-ex", SETS({"stationary", 1}));
  ld(a, 0, SUM, 16, 0), ld(a, 1, 16, 16, 0), ld(a, 2, wide ? 16 : 0, 16, wide);
  emit(a, "config-st", SETS({"stride", 16}, {"scale", bits_of(1.0f / 64)}, {"relu", !wide}));
  in(a, "mvin", base[0], 0, SUM, ROWS); /* two blocks of columns, each 16 entries */
  in(a, "mvin2", base[1], 1000, 16, 16), in(a, "mvin2", base[1] + 256, 1016, 16, 16);
  in(a, m->bias, base[wide ? 3 : 2], 32, 16, ROWS);
  sum(a, m, 0), sum(a, m, 1);
  if (!wide) ld(a, 2, 16, 16, 1), in(a, "mvin-wide-add", base[3], 32, 16, ROWS);
  emit(a, wide ? "mvout" : "mvout-relu",
       SETS({"dram", base[4]}, {"row", 32}, {"columns", 16}, {"rows", ROWS}));
  emit(a, "flush", SETS({0}));
}
static void make(tarn_ctx *c, void *arg) {
  made *m = arg;
  m->p.hw = tarn_hw_load(L, "gemmini-default");
  assembler a = {.hw = m->p.hw, .bytes = m->p.hw->format[0].bits / 8};
  a.stream = TARN_ARRAY(c, uint8_t, 64 * a.bytes);
  fill(c, m), assemble(&a, m);
  m->p.dir = "t", m->p.stream = a.stream, m->p.count = a.n;
}
static int8_t wanted(const made *m, int32_t i) {
  const int8_t *x = m->buffer[0].array.data, *w = m->buffer[1].array.data;
  bool wide = !strcmp(m->bias, "mvin-wide");
  int32_t s = ((const int8_t *)m->buffer[3].array.data)[i];
  if (!wide) s += ((const int32_t *)m->buffer[2].array.data)[i % 16];
  for (int32_t k = 0; k < SUM; k++) s += x[i / 16 * SUM + k] * w[k * 16 + i % 16];
  double v = rint((double)s / 64), least = wide ? -128 : 0;
  return (int8_t)(v < least ? least : v > 127 ? 127 : v);
}
static tarn_sim_result result;
static void run(tarn_ctx *c, void *arg) {
  (void)c;
  made *m = arg;
  result = tarn_sim_run(L, &m->p, -1);
}
START_TEST(values) {
  made m = {.bias = _i ? "mvin-wide" : "mvin-acc"};
  must(make, &m), must(run, &m);
  const int8_t *y = m.buffer[4].array.data;
  for (int32_t i = 0; i < ROWS * 16; i++) ck_assert_int_eq(y[i], wanted(&m, i));
  ck_assert_double_eq(result.compute_cycles, 32);
  ck_assert_int_eq(result.read, ROWS * SUM + SUM * 16 + (_i ? 256 : 16 * 64 + 256));
  ck_assert(result.queue[1].wait[0] > 0 && result.queue[2].wait[_i] > 0);
}
END_TEST

static const char *refusal(made *m) {
  ck_assert_int_eq(tarn_protect(cx, run, m), TARN_BAD_INPUT);
  return tarn_message(cx);
}
START_TEST(named_too_early) {
  made m = {.bias = "mvin-acc", .late = true};
  must(make, &m);
  ck_assert_str_eq(refusal(&m),
                   "t/stream.bin: instruction 13 (compute): reads entry 1016 of spad, which "
                   "instruction 11 named; instruction 12 writes it in between");
}
END_TEST

/* One field of one instruction changed. */
static const struct change {
  uint32_t at;
  const char *format, *field;
  int64_t v;
  const char *why;
} changes[] = {
    {0, "config-ex", "stationary", 0, "instruction 10: these bits are no instruction"},
    {1, "config-ld", "state", 1, "instruction 5 (mvin): it uses register ld0-stride, which none"},
    {1, "config-ld", "stride", 17, "instruction 5 (mvin): stride: 17 is no multiple of 16"},
    {4, "config-st", "scale", 0x7f800000, "immediate inf, mvout-relu takes 0 to 1024"},
    {5, "move", "columns", 20, "instruction 5 (mvin): entries: 20 is no multiple of 16"},
    {5, "move", "columns", 80, "a row of 5 entries, mvin has at most 64 bytes"},
    {5, "move", "rows", 17, "17 rows, mvin has at most 16"},
    {5, "move", "row", 16370, "entries 16386 to 16386 of spad, which has 16384"},
    {9, "preload", "b-rows", 8, "instruction 9: these bits are no instruction"},
    {9, "preload", "c", 1010, "instruction 10 (compute): entries 1010 to 1025 of acc"},
    {10, "compute", "a", 24, "reads entry 32 of spad, which nothing has written"},
};
START_TEST(changed) {
  const struct change *c = &changes[_i];
  made m = {.bias = "mvin-acc"};
  must(make, &m);
  const tarn_hw *hw = m.p.hw;
  uint32_t f = 0;
  while (strcmp(hw->format[f].name, c->format)) f++;
  put(&hw->format[f], (uint8_t *)(uintptr_t)m.p.stream + c->at * 20,
      field_of(&hw->format[f], c->field), c->v);
  const char *why = refusal(&m);
  ck_assert_msg(strstr(why, c->why) != NULL, "says %s\n  not  %s", why, c->why);
}
END_TEST

START_TEST(damaged) {
  made m = {.bias = "mvin-acc"};
  must(make, &m);
  uint8_t *bits = (uint8_t *)(uintptr_t)m.p.stream;
  for (uint32_t bit = (uint32_t)_i; bit < m.p.count * 160; bit += 8) {
    bits[bit / 8] = (uint8_t)(bits[bit / 8] ^ 1u << bit % 8);
    tarn_status st = tarn_protect(cx, run, &m);
    ck_assert(st == TARN_OK || st == TARN_BAD_INPUT);
    bits[bit / 8] = (uint8_t)(bits[bit / 8] ^ 1u << bit % 8);
  }
}
END_TEST

int main(void) {
  const looped tests[] = {
      {values, 2}, {named_too_early, 1}, {changed, COUNT(changes)}, {damaged, 8}};
  return run_suite("sim_registers", tests, sizeof tests / sizeof *tests);
}
