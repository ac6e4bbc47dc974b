/* sim/: a double-buffered product for the described VTA, put together here from the description's
 * tables alone; its values and cycles; every token that is left out; damaged streams. */
#include "tests/sim_kit.h"

/* ---------------------------------------------------------------- the product */
/* rows × 16 blocks of 16 sums of `chunks` × `chunk` blocks of 16, in `slots` slots. */
typedef struct shape {
  int64_t rows, out, chunks, chunk, slots, shift;
} shape;
typedef struct made {
  shape s;
  tarn_sim_program p;
  tarn_sim_buffer buffer[4]; /* x, w, uop, y */
} made;

static tarn_sim_buffer buffer(made *m, const char *name, tarn_sim_role role, tarn_dtype t,
                              int64_t n) {
  tarn_sim_buffer b = {.name = name, .layout = "", .role = role, .base = m->p.size};
  b.bytes = n * (int64_t)tarn_dtype_size(t);
  b.array = (tarn_tensor){.dtype = t, .n = 1, .dim = {n}};
  m->p.size += tarn_ceildiv(b.bytes, 256) * 256;
  return b;
}
static void fill(made *m) {
  const shape *s = &m->s;
  int64_t sum = s->chunks * s->chunk;
  m->buffer[0] = buffer(m, "x", TARN_SIM_INPUT, TARN_I8, sum * s->rows * 16);
  m->buffer[1] = buffer(m, "w", TARN_SIM_CONSTANT, TARN_I8, s->out * sum * 256);
  m->buffer[2] = buffer(m, "uop", TARN_SIM_CONSTANT, TARN_U32, s->slots * s->out * s->chunk);
  m->buffer[3] = buffer(m, "y", TARN_SIM_OUTPUT, TARN_I8, s->out * s->rows * 16);
  m->p.dram = tarn_new_aligned(cx, (size_t)m->p.size, 64);
  memset(m->p.dram, 0, (size_t)m->p.size);
  uint64_t state = 7;
  for (uint32_t b = 0; b < 4; b++) {
    m->buffer[b].array.data = m->p.dram + m->buffer[b].base;
    for (int64_t i = 0; b < 2 && i < m->buffer[b].bytes; i++)
      m->p.dram[m->buffer[b].base + i] = (uint8_t)(tarn_random(&state) >> 9);
  }
  m->p.buffer = m->buffer, m->p.nbuffer = 4;
}
static void micro_ops(made *m, const tarn_hw *hw) {
  const shape *s = &m->s;
  const tarn_hw_format *f = NULL;
  for (uint32_t i = 0; i < hw->nformat; i++)
    if (!strcmp(hw->format[i].name, "micro-op")) f = &hw->format[i];
  uint8_t *at = m->p.dram + m->buffer[2].base;
  for (int64_t slot = 0; slot < s->slots; slot++)
    for (int64_t k = 0; k < s->chunk; k++)
      for (int64_t o = 0; o < s->out; o++, at += 4) {
        put(f, at, field_of(f, "dst"), o * s->rows);
        put(f, at, field_of(f, "src"), (slot * s->chunk + k) * s->rows);
        put(f, at, field_of(f, "wgt"), (slot * s->out + o) * s->chunk + k);
      }
}
static void chunk_of(assembler *a, const made *m, int64_t c) {
  const shape *s = &m->s;
  int64_t slot = c % s->slots, sum = s->chunks * s->chunk, each = s->out * s->chunk;
  emit(a, "load-inp",
       SETS({"pop-next", 1}, {"sram", slot * s->chunk * s->rows},
            {"dram", m->buffer[0].base / 16 + c * s->chunk * s->rows}, {"y-size", 1},
            {"x-size", s->chunk * s->rows}, {"x-stride", s->chunk * s->rows}));
  emit(a, "load-wgt",
       SETS({"push-next", 1}, {"sram", slot * each},
            {"dram", m->buffer[1].base / 256 + c * s->chunk}, {"y-size", s->out},
            {"x-size", s->chunk}, {"x-stride", sum}));
  emit(a, "gemm",
       SETS({"pop-prev", 1}, {"push-prev", c + s->slots < s->chunks}, {"begin", slot * each},
            {"end", (slot + 1) * each}, {"out", s->rows}, {"in", 1}, {"dst-out", 1},
            {"src-out", 1}));
}
static void alu(assembler *a, const made *m, const char *name, int64_t imm, bool last) {
  emit(a, name,
       SETS({"push-next", last}, {"begin", 0}, {"end", m->s.out}, {"out", m->s.rows}, {"in", 1},
            {"dst-out", 1}, {"imm", imm}));
}
static void assemble(assembler *a, const made *m) {
  const shape *s = &m->s;
  int64_t results = s->out * s->rows;
  emit(a, "load-uop",
       SETS({"push-prev", 1}, {"dram", m->buffer[2].base / 4},
            {"x-size", s->slots * s->out * s->chunk}));
  emit(a, "gemm",
       SETS({"push-prev", s->slots == 2}, {"reset", 1}, {"begin", 0}, {"end", s->out},
            {"out", s->rows}, {"in", 1}, {"dst-out", 1}));
  for (int64_t c = 0; c < s->chunks; c++) chunk_of(a, m, c);
  alu(a, m, "add-imm", -3, false), alu(a, m, "shr-imm", s->shift, false);
  alu(a, m, "max-imm", -100, false), alu(a, m, "min-imm", 100, true);
  emit(a, "store",
       SETS({"pop-prev", 1}, {"push-prev", 1}, {"dram", m->buffer[3].base / 16}, {"y-size", 1},
            {"x-size", results}, {"x-stride", results}));
  emit(a, "finish", SETS({"pop-next", 1}));
}
static const shape small = {.rows = 4, .out = 4, .chunks = 8, .chunk = 1, .slots = 2, .shift = 5};

typedef struct making {
  shape s;
  const char *hw;
  made *m;
} making;
static void make(tarn_ctx *c, void *arg) {
  making *g = arg;
  made *m = TARN_NEW(c, made);
  m->s = g->s;
  const tarn_hw *hw = tarn_hw_load(L, g->hw);
  assembler a = {.hw = hw, .bytes = hw->format[hw->instruction[0].format].bits / 8};
  a.stream = TARN_ARRAY(c, uint8_t, 200 * a.bytes);
  fill(m), micro_ops(m, hw), assemble(&a, m);
  m->p.hw = hw, m->p.dir = "t", m->p.stream = a.stream, m->p.count = a.n;
  g->m = m;
}
static made *product(shape s, const char *hw) {
  making g = {s, hw, NULL};
  must(make, &g);
  return g.m;
}

typedef struct running {
  tarn_sim_program *p;
  double latency;
  tarn_sim_result v;
} running;
static void run(tarn_ctx *c, void *arg) {
  (void)c;
  running *r = arg;
  r->v = tarn_sim_run(L, r->p, r->latency);
}

/* ---------------------------------------------------------------- values */
static int8_t wanted(const made *m, int64_t row, int64_t out) {
  const shape *s = &m->s;
  int64_t blocks = s->chunks * s->chunk;
  const int8_t *x = m->buffer[0].array.data, *w = m->buffer[1].array.data;
  int32_t sum = -3;
  for (int64_t k = 0; k < blocks * 16; k++)
    sum += x[(k / 16 * s->rows + row) * 16 + k % 16] *
           w[((out / 16 * blocks + k / 16) * 16 + out % 16) * 16 + k % 16];
  sum >>= s->shift;
  return (int8_t)(sum < -100 ? -100 : sum > 100 ? 100 : sum);
}
static bool is_right(const made *m) {
  const int8_t *y = m->buffer[3].array.data;
  bool right = true;
  for (int64_t row = 0; row < m->s.rows; row++)
    for (int64_t o = 0; o < m->s.out * 16; o++)
      right &= y[(o / 16 * m->s.rows + row) * 16 + o % 16] == wanted(m, row, o);
  return right;
}
START_TEST(values) {
  made *m = product(small, "vta-pynq");
  running r = {.p = &m->p, .latency = -1};
  must(run, &r);
  ck_assert_uint_eq(m->p.count, 32);
  ck_assert(is_right(m));
  ck_assert_int_eq(r.v.read, m->buffer[0].bytes + m->buffer[1].bytes + m->buffer[2].bytes);
  ck_assert_int_eq(r.v.written, m->buffer[3].bytes);
  ck_assert_int_eq(r.v.bound, r.v.read + r.v.written);
  ck_assert_int_eq(r.v.unread, 0);
  ck_assert_double_eq(r.v.compute_cycles, 4 * 4 * 8);
  ck_assert(r.v.cycles > r.v.compute_cycles && r.v.utilisation < 1);
}
END_TEST

static const char *refusal(made *m) {
  running r = {.p = &m->p, .latency = -1};
  if (tarn_protect(cx, run, &r) == TARN_OK) return NULL;
  ck_assert_msg(!strncmp(tarn_message(cx), "t/stream.bin: ", 14) && !strchr(tarn_message(cx), '\n'),
                "%s", tarn_message(cx));
  return tarn_strdup(cx, tarn_message(cx));
}
/* The same program twice, one behind the other: two segments; what the first wrote in a scratchpad
 * is gone in the second. */
static made *twice(void) {
  made *m = product(small, "vta-pynq");
  uint32_t n = m->p.count;
  uint8_t *both = TARN_ARRAY(cx, uint8_t, (size_t)n * 32);
  memcpy(both, m->p.stream, n * 16u), memcpy(both + n * 16u, m->p.stream, n * 16u);
  tarn_sim_segment *s = TARN_ARRAY(cx, tarn_sim_segment, 2);
  s[0] = (tarn_sim_segment){"one", 0, n}, s[1] = (tarn_sim_segment){"two", n, n};
  m->p.stream = both, m->p.count = 2 * n, m->p.segment = s, m->p.nsegment = 2;
  return m;
}
/* An entry more than is read, first once, then written twice. */
START_TEST(unread) {
  made *m = product(small, "vta-pynq");
  running r = {.p = &m->p, .latency = -1};
  uint8_t *load = (uint8_t *)(uintptr_t)m->p.stream + 2 * 16;
  load[10] = 4 + 3; /* x-size: three more, into the slot that is loaded next */
  must(run, &r);
  ck_assert(is_right(m));
  ck_assert_int_eq(r.v.unread, 3 * 16);
}
END_TEST
static void run_second(tarn_ctx *c, void *arg) {
  (void)c;
  running *r = arg;
  r->v = tarn_sim_run_segment(L, r->p, 1, r->latency);
}
START_TEST(segments) {
  made *m = twice(), *one = product(small, "vta-pynq");
  running r = {.p = &m->p, .latency = -1}, alone = {.p = &one->p, .latency = -1};
  must(run, &r), must(run, &alone);
  ck_assert(is_right(m));
  ck_assert_uint_eq(tarn_sim_segments(&m->p), 2);
  ck_assert_double_eq(r.v.cycles, 2 * alone.v.cycles);
  ck_assert_int_eq(r.v.read, 2 * alone.v.read);
  ck_assert_int_eq(r.v.bound, alone.v.bound);
  memset(m->buffer[3].array.data, 0, (size_t)m->buffer[3].bytes);
  must(run_second, &r);
  ck_assert(is_right(m));
  ck_assert_double_eq(r.v.cycles, alone.v.cycles);
  uint8_t *load = (uint8_t *)(uintptr_t)m->p.stream + 34 * 16;
  load[0] ^= 32u; /* push-prev is none of its flags */
  ck_assert_str_eq(refusal(m), "t/stream.bin: instruction 34 (load-inp): field push-prev is 1, it "
                               "does not use it");
  load[0] ^= 32u | 16u; /* nor waits it for a free slot */
  ck_assert_ptr_nonnull(strstr(refusal(m), "instruction 40 (load-inp): writes entry 0 of inp"));
  load[0] ^= 16u, load[10] = 0; /* nothing is loaded */
  ck_assert_ptr_nonnull(strstr(refusal(m), "reads entry 0 of inp, which nothing has written"));
}
END_TEST

/* Figures of an RTL simulation of the hardware made from C++. */
static const struct timing {
  int64_t slots;
  double latency, cycles;
} timings[] = {{1, 0, 101562}, {1, 30, 103969}, {1, 64, 106791},
               {2, 0, 61276},  {2, 30, 61508},  {2, 64, 61780}};
START_TEST(cycles) {
  const struct timing *t = &timings[_i];
  shape s = {.rows = 196, .out = 4, .chunks = 16, .chunk = 4, .slots = t->slots, .shift = 8};
  made *m = product(s, "vta-hls-timing");
  running r = {.p = &m->p, .latency = t->latency};
  must(run, &r);
  ck_assert(is_right(m));
  ck_assert_double_eq(r.v.compute_cycles, 50176);
  ck_assert_msg(r.v.cycles > 0.9 * t->cycles && r.v.cycles < 1.1 * t->cycles,
                "%g cycles, measured %g", r.v.cycles, t->cycles);
}
END_TEST

/* ---------------------------------------------------------------- costs from measurements */
static const shape measured[] = {
    {.rows = 16, .out = 1, .chunks = 4, .chunk = 1, .slots = 2, .shift = 5},
    {.rows = 4, .out = 8, .chunks = 8, .chunk = 2, .slots = 1, .shift = 5},
    {.rows = 64, .out = 2, .chunks = 8, .chunk = 1, .slots = 1, .shift = 5},
    {.rows = 100, .out = 4, .chunks = 2, .chunk = 4, .slots = 2, .shift = 5},
    {.rows = 4, .out = 4, .chunks = 16, .chunk = 1, .slots = 1, .shift = 5},
    {.rows = 8, .out = 2, .chunks = 16, .chunk = 1, .slots = 2, .shift = 5},
    {.rows = 32, .out = 4, .chunks = 4, .chunk = 1, .slots = 1, .shift = 5}};
enum { MEASURED = sizeof measured / sizeof *measured };
/* The machine that is measured: vta-pynq, but for these costs. */
static const struct truth {
  double startup, row, latency, noise;
  uint32_t terms;
} truths[] = {{.terms = 0},
              {.startup = 13, .terms = 1},
              {.startup = 13, .noise = 0.003, .terms = 1},
              {.startup = 8, .row = 40, .terms = 2},
              {.latency = 25, .terms = 1}};
typedef struct fitting {
  const tarn_hw *hw;
  tarn_sim_measured m[MEASURED];
  tarn_sim_fitted out;
} fitting;
static const tarn_hw *true_machine(const tarn_hw *hw, const struct truth *t) {
  tarn_hw *out = tarn_copy(cx, hw, sizeof *hw);
  tarn_hw_intrinsic *n = tarn_copy(cx, hw->intrin, hw->nintrin * sizeof *n);
  tarn_hw_transfer *by = tarn_copy(cx, hw->transfer, hw->ntransfer * sizeof *by);
  tarn_hw_memory *m = tarn_copy(cx, hw->mem, hw->nmem * sizeof *m);
  for (uint32_t i = 0; i < hw->nintrin; i++) n[i].startup += t->startup;
  for (uint32_t i = 0; i < hw->ntransfer; i++) by[i].row += t->row;
  m[hw->nmem - 1].latency += t->latency;
  out->intrin = n, out->transfer = by, out->mem = m;
  return out;
}
static void fit(tarn_ctx *c, void *arg) {
  (void)c;
  fitting *f = arg;
  f->out = tarn_sim_fit(L, f->hw, f->m, MEASURED - 1);
}
/* As few terms as the machine differs in; a program that was not among the measured ones is
 * predicted by them. */
START_TEST(fitted) {
  const struct truth *t = &truths[_i];
  fitting f = {.hw = tarn_hw_load(L, "vta-pynq")};
  for (uint32_t i = 0; i < MEASURED; i++) {
    made *m = product(measured[i], "vta-pynq");
    m->p.hw = true_machine(f.hw, t);
    running r = {.p = &m->p, .latency = -1};
    must(run, &r);
    f.m[i] = (tarn_sim_measured){&m->p, r.v.cycles * (1 + (i % 2 ? t->noise : -t->noise))};
  }
  must(fit, &f);
  ck_assert_uint_eq(f.out.nterm, t->terms);
  ck_assert((*f.out.forms == '\0') == (t->terms == 0));
  for (uint32_t i = 0; i + 1 < MEASURED; i++)
    ck_assert(fabs(f.out.cycles[i] / f.m[i].cycles - 1) < 0.002 + 3 * t->noise);
  running left_out = {.p = f.m[MEASURED - 1].program, .latency = -1};
  left_out.p->hw = f.m[0].program->hw;
  must(run, &left_out);
  ck_assert_msg(fabs(left_out.v.cycles / f.m[MEASURED - 1].cycles - 1) < 0.005 + 3 * t->noise,
                "%g cycles, measured %g", left_out.v.cycles, f.m[MEASURED - 1].cycles);
}
END_TEST

/* ---------------------------------------------------------------- what is wrong */
START_TEST(every_token) {
  made *m = product(small, "vta-pynq");
  uint32_t flags = 0, deadlocks = 0, conflicts = 0, left = 0;
  for (uint32_t i = 0; i < m->p.count; i++)
    for (uint32_t bit = 3; bit < 7; bit++) {
      uint8_t *word = (uint8_t *)(uintptr_t)m->p.stream + i * 16;
      if (!(word[0] >> bit & 1)) continue;
      word[0] = (uint8_t)(word[0] ^ 1u << bit);
      const char *why = refusal(m);
      ck_assert_msg(why != NULL, "instruction %u works without its flag %u", i, bit);
      deadlocks += strstr(why, "deadlock: ") != NULL, left += strstr(why, "left over") != NULL;
      conflicts += strstr(why, "no token orders") != NULL;
      word[0] = (uint8_t)(word[0] ^ 1u << bit);
      flags++;
    }
  ck_assert_uint_eq(flags, 36);
  ck_assert_uint_eq(deadlocks + conflicts + left, flags);
  ck_assert(deadlocks >= 18 && conflicts > 0);
}
END_TEST

/* Each flag moved to the next or last instruction of its queue that is without: refused, or still
 * right, with transfers as early and as late as tokens allow. */
static int queue_at(uint32_t i) { return i == 30 ? 2 : i >= 2 && i < 26 && (i - 2) % 3 < 2; }
static uint32_t neighbour(const made *m, uint32_t i, uint32_t step) {
  uint32_t k = i + step;
  while (k < m->p.count && queue_at(k) != queue_at(i)) k += step;
  return k;
}
START_TEST(every_token_moved) {
  made *m = product(small, "vta-pynq");
  uint8_t *bits = (uint8_t *)(uintptr_t)m->p.stream;
  uint32_t caught = 0, right = 0;
  for (uint32_t i = 0; i < 8 * m->p.count; i++) {
    uint32_t at = i / 8, k = neighbour(m, at, i & 1 ? 1u : UINT32_MAX);
    uint8_t flag = (uint8_t)(8u << (i / 2 % 4));
    if (k >= m->p.count || !(bits[at * 16] & flag) || bits[k * 16] & flag) continue;
    bits[at * 16] ^= flag, bits[k * 16] ^= flag;
    bool refused = false;
    for (m->p.pace = TARN_SIM_EVEN; !refused && m->p.pace <= TARN_SIM_LATE; m->p.pace++) {
      memset(m->buffer[3].array.data, 0x55, (size_t)m->buffer[3].bytes);
      refused = refusal(m) != NULL;
      ck_assert_msg(!(refused && m->p.pace), "%s", tarn_message(cx));
      ck_assert_msg(refused || is_right(m), "flag %u of instruction %u moved to %u", flag, at, k);
    }
    caught += refused, right += !refused;
    bits[at * 16] ^= flag, bits[k * 16] ^= flag;
  }
  ck_assert_msg(caught > 10 && right > 0, "%u caught, %u right", caught, right);
}
END_TEST

/* One field of one instruction changed. */
static const struct change {
  uint32_t at;
  const char *field;
  int64_t v;
  const char *why;
} changes[] = {
    {2, "sram", 2046, "entries 2046 to 2049 of inp, which has 2048"},
    {2, "dram", 1 << 30, "its place in dram"},
    {2, "x-size", 4000, "entries 0 to 3999 of inp"},
    {3, "pad-top", 1, "field pad-top is 1, it does not use it"},
    {0, "y-size", 2, "instruction 0: these bits are no instruction of vta-pynq"},
    {4, "end", 60, "reads entry 8 of uop, which nothing has written"},
    {4, "end", 0, "no trips or no micro-ops"},
    {4, "src-out", 9, "reads entry 9 of inp, which nothing has written"},
    {5, "sram", 0, "no token orders them"},
    {27, "imm", 16, "immediate 16, shr-imm takes 0 to 15"},
    {30, "dram", 0, "writes buffer x"},
    {30, "x-size", 17, "bytes at byte 0 of buffer y"},
    {30, "sram", 1, "reads entry 16 of acc, which nothing has written"},
    {31, "opcode", 2, "the last one, and no other, ends a program"},
    {31, "opcode", 7, "instruction 31: these bits are no instruction"},
};
START_TEST(changed) {
  const struct change *c = &changes[_i];
  made *m = product(small, "vta-pynq");
  const tarn_hw *hw = m->p.hw;
  static const char *const format[] = {"memory", "gemm", "alu"};
  uint8_t *word = (uint8_t *)(uintptr_t)m->p.stream + c->at * 16;
  uint32_t k = (word[0] & 7) < 2 ? 0 : (word[0] & 7) < 4 ? 1 : 2, f = 0;
  while (strcmp(hw->format[f].name, format[k])) f++;
  put(&hw->format[f], word, field_of(&hw->format[f], c->field), c->v);
  const char *why = refusal(m);
  ck_assert_msg(why && strstr(why, c->why), "says %s\n  not  %s", why ? why : "ok", c->why);
}
END_TEST

/* Values that only some models of the hardware agree on. */
START_TEST(quirks) {
  made *m = product(small, "vta-pynq");
  assembler a = {.hw = m->p.hw, .bytes = 16, .stream = TARN_ARRAY(cx, uint8_t, 64)};
  const set store[] = {{"pop-prev", 1},  {"dram", m->buffer[3].base / 16},
                       {"y-size", 1},    {"x-size", 1},
                       {"push-prev", 1}, {0}};
  emit(&a, "load-acc", SETS({"push-next", 1}, {"y-size", 1}, {"x-size", 1}));
  emit(&a, "store", store), emit(&a, "finish", SETS({"pop-next", 1}));
  m->p.stream = a.stream, m->p.count = a.n;
  ck_assert_ptr_nonnull(strstr(refusal(m), "store-needs-compute-write"));
  a.n = 0, memset(a.stream, 0, 64);
  emit(&a, "load-uop", SETS({"dram", m->buffer[2].base / 4}, {"x-size", 1}));
  emit(&a, "gemm", SETS({"push-next", 1}, {"reset", 1}, {"end", 1}, {"out", 1}, {"in", 1}));
  emit(&a, "store", store), emit(&a, "finish", SETS({"pop-next", 1}));
  m->p.count = a.n;
  ck_assert_ptr_nonnull(strstr(refusal(m), "reset-before-accumulation"));
  a.n = 0, memset(a.stream, 0, 64);
  emit(&a, "load-uop", SETS({"dram", m->buffer[2].base / 4}, {"x-size", 1}));
  emit(&a, "load-acc", SETS({"y-size", 1}, {"x-size", 1}));
  emit(&a, "max-imm", SETS({"push-next", 1}, {"end", 1}, {"out", 2}, {"in", 1}));
  emit(&a, "finish", SETS({"pop-next", 1}));
  m->p.count = a.n;
  ck_assert_ptr_nonnull(
      strstr(refusal(m), "entry 0 of acc is used again after less than 3 issues"));
}
END_TEST
/* A kernel whose tiles are known touches nothing else, and reads what it has written. */
static const struct placed {
  uint32_t first; /* instruction */
  tarn_sim_place inp, wgt, acc;
  const char *why;
} placed[] = {
    {0, {"x", 2, 0, 4, 2}, {"w", 0, 0, 4, 2}, {"y", 1, 0, 16, 1}, NULL},
    {0, {"x", 2, 0, 3, 2}, {"w", 0, 0, 4, 2}, {"y", 1, 0, 16, 1}, "beyond a tile of x of kernel k"},
    {0, {"x", 2, 0, 4, 2}, {"w", 0, 0, 4, 1}, {"y", 1, 0, 16, 1}, "of wgt, which is no tile of"},
    {0, {"x", 2, 0, 4, 2}, {"w", 0, 0, 4, 2}, {"y", 1, 1, 16, 1}, "entry 0 of acc, which is no"},
    {4, {"x", 2, 0, 4, 2}, {"w", 0, 0, 4, 2}, {"y", 1, 0, 16, 1}, "wrote before kernel k began"},
};
START_TEST(tiles_of_kernels) {
  const struct placed *t = &placed[_i];
  made *m = product(small, "vta-pynq");
  const tarn_sim_place place[] = {t->inp, t->wgt, t->acc};
  const tarn_sim_kernel k = {"k", t->first, m->p.count - t->first, 3, place};
  for (uint32_t i = 0; i < 3; i++)
    ck_assert_str_eq(m->p.hw->mem[place[i].memory].name, i ? i > 1 ? "acc" : "wgt" : "inp");
  m->p.kernel = &k, m->p.nkernel = 1;
  const char *why = refusal(m);
  ck_assert_msg(t->why ? why && strstr(why, t->why) : !why, "says %s", why ? why : "ok");
}
END_TEST
START_TEST(circular) {
  made *m = product(small, "vta-pynq");
  assembler a = {.hw = m->p.hw, .bytes = 16, .stream = TARN_ARRAY(cx, uint8_t, 64)};
  emit(&a, "load-inp", SETS({"pop-next", 1}, {"push-next", 1}));
  emit(&a, "finish", SETS({"pop-prev", 1}, {"push-prev", 1}));
  m->p.stream = a.stream, m->p.count = a.n;
  ck_assert_str_eq(refusal(m),
                   "t/stream.bin: deadlock: queue load waits at instruction 0 (load-inp) for token "
                   "c2l from queue compute; queue compute waits at instruction 1 (finish) for "
                   "token l2c from queue load");
}
END_TEST
/* Whatever bits are damaged, there is a result or a message. */
START_TEST(damaged) {
  made *m = product(small, "vta-pynq");
  uint8_t *bits = (uint8_t *)(uintptr_t)m->p.stream;
  uint32_t total = m->p.count * 128, refused = 0;
  for (uint32_t bit = (uint32_t)_i; bit < total; bit += 16) {
    bits[bit / 8] = (uint8_t)(bits[bit / 8] ^ 1u << bit % 8);
    running r = {.p = &m->p, .latency = -1};
    tarn_status st = tarn_protect(cx, run, &r);
    ck_assert(st == TARN_OK || st == TARN_BAD_INPUT);
    refused += st != TARN_OK;
    bits[bit / 8] = (uint8_t)(bits[bit / 8] ^ 1u << bit % 8);
  }
  ck_assert_uint_gt(refused, total / 16 / 2);
}
END_TEST

START_TEST(disassembled) {
  made *m = product(small, "vta-pynq");
  tarn_buf b = {.cx = cx};
  tarn_sim_disassemble(L, &m->p, &b);
  ck_assert_ptr_nonnull(strstr(b.p, "\n3 load load-wgt push:l2c dram="));
  ck_assert_ptr_nonnull(strstr(b.p, "\n26 compute add-imm end=4 out=4 in=1 dst-out=1 imm=-3\n"));
  ck_assert_ptr_nonnull(strstr(b.p, "\n31 compute finish pop:s2c\n"));
}
END_TEST

/* ---------------------------------------------------------------- a folder, for cli/sim.sh */
static void write_folder(tarn_ctx *c, void *arg) {
  const char *dir = arg;
  static const char *const role[] = {"input", "constant", "constant", "output"};
  static const char *const type[] = {"i8", "i8", "u32", "i8"};
  L = tarn_lang_new(c);
  making g = {small, "vta-pynq", NULL};
  make(c, &g);
  made *m = g.m;
  tarn_buf b = {.cx = c};
  tarn_buf_fmt(&b,
               "{\"schema\": 1, \"hw\": \"vta-pynq\", \"entry\": 0, \"instructions\": %u,\n"
               " \"buffers\": [",
               m->p.count);
  for (uint32_t i = 0; i < 4; i++)
    tarn_buf_fmt(&b,
                 "%s\n  {\"name\": \"%s\", \"role\": \"%s\", \"base\": %lld, \"bytes\": %lld, "
                 "\"type\": \"%s\", \"shape\": [%lld], \"layout\": \"\"}",
                 i ? "," : "", m->buffer[i].name, role[i], (long long)m->buffer[i].base,
                 (long long)m->buffer[i].bytes, type[i], (long long)m->buffer[i].array.dim[0]);
  tarn_buf_str(&b, "]}\n");
  tarn_write_file(c, tarn_format(c, "%s/memory.json", dir), b.p, b.n);
  tarn_write_file(c, tarn_format(c, "%s/stream.bin", dir), m->p.stream, m->p.count * 16);
  tarn_write_file(c, tarn_format(c, "%s/dram.bin", dir), m->p.dram, (size_t)m->p.size);
  for (int64_t o = 0; o < m->s.out * 16; o++)
    for (int64_t row = 0; row < m->s.rows; row++)
      ((int8_t *)m->buffer[3].array.data)[(o / 16 * m->s.rows + row) * 16 + o % 16] =
          wanted(m, row, o);
  tarn_write_file(c, tarn_format(c, "%s/wanted", dir), m->buffer[3].array.data,
                  (size_t)m->buffer[3].bytes);
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--write")) {
    cx = tarn_ctx_new(NULL);
    return 2 * !cx + (int)tarn_protect(cx, write_folder, argv[2]);
  }
  const looped tests[] = {{values, 1},
                          {segments, 1},
                          {unread, 1},
                          {cycles, COUNT(timings)},
                          {fitted, COUNT(truths)},
                          {every_token, 1},
                          {every_token_moved, 1},
                          {changed, COUNT(changes)},
                          {quirks, 1},
                          {tiles_of_kernels, COUNT(placed)},
                          {circular, 1},
                          {damaged, 16},
                          {disassembled, 1}};
  return run_suite("sim", tests, sizeof tests / sizeof *tests);
}
