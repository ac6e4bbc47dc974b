/* sim/: machines whose hardware orders what conflicts, and one that does one instruction after
 * another. */
#include "tests/sim_kit.h"

/* y = relu(x · w), 16 × 16 f32, the sum in `tiles` tiles of 16, in `slots` slots of a scratchpad.
 */
enum { TILES = 6 };
typedef struct made {
  tarn_sim_program p;
  tarn_sim_buffer buffer[4]; /* x, w, uop, y; a tile after the other */
  int64_t slots;
  const char *hw; /* text, or NULL: systolic-f32 */
} made;

static void place(made *m, uint32_t i, const char *name, tarn_sim_role role, int64_t n) {
  tarn_sim_buffer *b = &m->buffer[i];
  *b = (tarn_sim_buffer){.name = name, .role = role, .base = m->p.size, .bytes = n * 4};
  b->array = (tarn_tensor){.dtype = TARN_F32, .n = 1, .dim = {n}};
  m->p.size += tarn_ceildiv(b->bytes, 1024) * 1024;
}
static void fill(tarn_ctx *c, made *m) {
  place(m, 0, "x", TARN_SIM_INPUT, TILES * 256), place(m, 1, "w", TARN_SIM_CONSTANT, TILES * 256);
  place(m, 2, "uop", TARN_SIM_CONSTANT, 64), place(m, 3, "y", TARN_SIM_OUTPUT, 256);
  m->p.dram = tarn_new_aligned(c, (size_t)m->p.size, 64);
  memset(m->p.dram, 0, (size_t)m->p.size);
  m->p.buffer = m->buffer, m->p.nbuffer = 4;
  for (uint32_t i = 0; i < 4; i++) m->buffer[i].array.data = m->p.dram + m->buffer[i].base;
  float *x = m->buffer[0].array.data, *w = m->buffer[1].array.data;
  for (int32_t i = 0; i < TILES * 256; i++) {
    x[i] = (float)(i * 7 % 11 - 5);
    w[i] = (float)(i * 5 % 13 - 6);
  }
}
static void micro_ops(const made *m) {
  const tarn_hw *hw = m->p.hw;
  uint32_t f = 0;
  while (strcmp(hw->format[f].name, "micro-op")) f++;
  uint8_t *at = m->p.dram + m->buffer[2].base;
  for (int64_t s = 0; s < m->slots; s++) { /* the product of a slot */
    put(&hw->format[f], at + 8 * s, field_of(&hw->format[f], "a"), 32 * s);
    put(&hw->format[f], at + 8 * s, field_of(&hw->format[f], "b"), 32 * s + 16);
  }
  put(&hw->format[f], at + 8 * m->slots, field_of(&hw->format[f], "a"), 0);
  put(&hw->format[f], at + 8 * m->slots, field_of(&hw->format[f], "b"), 16); /* a tile of zeros */
}
static void runs(assembler *a, const char *name, int64_t step, int64_t clear, int64_t times) {
  emit(a, name,
       SETS({"begin", step}, {"end", step + 1}, {"outer", times}, {"inner", 1}, {"clear", clear},
            {"c-outer", 16}));
}
static void assemble(assembler *a, const made *m) {
  const tarn_sim_buffer *b = m->buffer;
  emit(a, "load-uop", SETS({"main", b[2].base / 8}, {"entries", m->slots + 1}));
  runs(a, "array", m->slots, 1, 2);
  for (int64_t k = 0; k < TILES; k++) {
    int64_t slot = k % m->slots;
    emit(a, "load",
         SETS({"local", 32 * slot}, {"main", b[0].base / 64 + 16 * k}, {"rows", 1},
              {"entries", 16}));
    emit(a, "load",
         SETS({"local", 32 * slot + 16}, {"main", b[1].base / 64 + 16 * k}, {"rows", 1},
              {"entries", 16}));
    emit(a, "array", SETS({"begin", slot}, {"end", slot + 1}, {"outer", 1}, {"inner", 1}));
  }
  emit(a, "max",
       SETS({"begin", m->slots}, {"end", m->slots + 1}, {"outer", 16}, {"inner", 1}, {"c-outer", 1},
            {"a-outer", 1}));
  emit(a, "store", SETS({"main", b[3].base / 64}, {"rows", 1}, {"entries", 16}));
  emit(a, "stop", SETS({0}));
}
static void make(tarn_ctx *c, void *arg) {
  made *m = arg;
  const char *text = m->hw;
  m->p.hw = text ? tarn_hw_parse(L, tarn_sx_read(c, text, strlen(text), "m.hw"))
                 : tarn_hw_load(L, "systolic-f32");
  assembler a = {.hw = m->p.hw, .bytes = m->p.hw->format[0].bits / 8};
  a.stream = TARN_ARRAY(c, uint8_t, 64 * a.bytes);
  fill(c, m), micro_ops(m), assemble(&a, m);
  m->p.dir = "t", m->p.stream = a.stream, m->p.count = a.n;
}
static bool is_right(const made *m) {
  const float *x = m->buffer[0].array.data, *w = m->buffer[1].array.data;
  const float *y = m->buffer[3].array.data;
  bool right = true;
  for (int32_t i = 0; i < 256; i++) {
    float sum = 0;
    for (int32_t k = 0; k < 16 * TILES; k++)
      sum += x[k / 16 * 256 + i / 16 * 16 + k % 16] * w[k * 16 + i % 16];
    right &= y[i] == (sum > 0 ? sum : 0);
  }
  return right;
}
static tarn_sim_result result;
static void run(tarn_ctx *c, void *arg) {
  (void)c;
  made *m = arg;
  result = tarn_sim_run(L, &m->p, 100);
}

/* Loads of 164 cycles; products of 64, clearing two tiles takes 80; the maximum 18. */
START_TEST(hazards) {
  made m = {.slots = _i + 1};
  must(make, &m), must(run, &m);
  ck_assert(is_right(&m));
  ck_assert_double_eq(result.compute_cycles, TILES * 16);
  double ops = 100 + (double)m.slots + 1, loads = 2 * TILES * 164;
  const tarn_sim_use *load = &result.queue[0], *execute = &result.queue[1];
  ck_assert_int_eq(load->instructions, 2 * TILES + 1);
  ck_assert_double_eq(load->busy, ops + loads);
  ck_assert_double_eq(execute->busy, 80 + TILES * 64 + 18);
  /* one slot: the next load of x waits for the product, the second of w no more */
  ck_assert_double_eq(load->wait[1], _i ? 0 : (TILES - 1) * 64);
  ck_assert_double_eq(result.cycles, ops + loads + load->wait[1] + 64 + 18 + 164);
  ck_assert(execute->wait[0] > 0 && result.queue[2].wait[1] > 0);
}
END_TEST

/* The same machine without queues, or tokens: times add up. */
static const char *in_order(void) {
  tarn_buf b = {.cx = cx};
  made m = {.slots = 1};
  must(make, &m);
  tarn_hw_print(m.p.hw, &b);
  char *s = b.p, *at;
  static const char *const cut[] = {"(queue load)",
                                    "(queue execute)",
                                    "(queue store)",
                                    "(queue load (depth 16))",
                                    "(queue store (depth 16))",
                                    "(queue execute (depth 16))",
                                    "(hazards hardware)"};
  for (uint32_t i = 0; i < 7; i++)
    while ((at = strstr(s, cut[i]))) memset(at, ' ', strlen(cut[i]));
  return s;
}
START_TEST(one_after_another) {
  made m = {.slots = 2, .hw = in_order()};
  must(make, &m), must(run, &m);
  ck_assert(is_right(&m));
  ck_assert(m.p.hw->nqueue == 1 && m.p.hw->in_order);
  ck_assert_str_eq(m.p.hw->queue[0].name, "systolic-f32");
  ck_assert_double_eq(result.cycles, 103 + 2 * TILES * 164 + 80 + TILES * 64 + 18 + 164);
  ck_assert_double_eq(result.queue[0].busy, result.cycles);
}
END_TEST

START_TEST(refused) {
  made m = {.slots = 1};
  must(make, &m);
  uint8_t *bits = (uint8_t *)(uintptr_t)m.p.stream + 4 * 24; /* the first product */
  put(&m.p.hw->format[1], bits, field_of(&m.p.hw->format[1], "b-inner"), 5);
  put(&m.p.hw->format[1], bits, field_of(&m.p.hw->format[1], "inner"), 2);
  ck_assert_int_eq(tarn_protect(cx, run, &m), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx), "t/stream.bin: instruction 4 (array): reads entry 32 of spad, "
                                     "which nothing has written");
}
END_TEST

int main(void) {
  const looped tests[] = {{hazards, 2}, {one_after_another, 1}, {refused, 1}};
  return run_suite("sim_hazards", tests, sizeof tests / sizeof *tests);
}
