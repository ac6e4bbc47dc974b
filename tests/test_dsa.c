/* Programs for an accelerator: products and convolutions of many shapes, compiled for described
 * machines, run in the simulator, which refuses what the machine could compute wrongly; results are
 * those of the interpreter, bit for bit, and cycles those that were predicted. */
#include "price/unit.h"
#include "tests/accelerator.h"
#include "tests/context.h"

/* ---------------------------------------------------------------- models */
typedef struct conv {
  int64_t in, out, size, kernel, stride, pad;
  int64_t shift, low;
  bool residual;
} conv;
typedef enum { SHIFTED, REAL, SCALED, ENDINGS } ending; /* what makes the result of the sums */
static int64_t result_size(const conv *c) {
  return (c->size + 2 * c->pad - c->kernel) / c->stride + 1;
}
static void epilogue(tarn_buf *b, const conv *c, ending how) {
  if (how == SCALED) {
    const char *sum = c->residual ? "(add (cast i32 $2) (add $0 $1))" : "(add $0 $1)";
    tarn_buf_fmt(b,
                 "(compute (map (cast i8 (min (max (round (mul (cast f32 %s) (f32 %.9g))) "
                 "(f32 %lld)) (f32 127))))",
                 sum, 1.0 / (double)(1 << c->shift), (long long)c->low);
    return;
  }
  if (how == REAL) {
    const char *sum = c->residual ? "(add $2 (add $0 $1))" : "(add $0 $1)";
    tarn_buf_fmt(b, "(compute (map (max %s (f32 %lld)))", sum, (long long)c->low);
    return;
  }
  tarn_buf_fmt(b, "(compute (map (cast i8 (min (max ");
  if (c->residual) tarn_buf_str(b, "(add (cast i32 $2) ");
  tarn_buf_fmt(b, "(shr (add (add $0 $1) (i32 %lld)) (i32 %lld))", (long long)1 << (c->shift - 1),
               (long long)c->shift);
  if (c->residual) tarn_buf_str(b, ")");
  tarn_buf_fmt(b, " (i32 %lld)) (i32 127))))", (long long)c->low);
}
/* clip((convolution + bias + 2^(shift-1)) >> shift), or of that and another tensor. x: what it
 * convolves; NULL: an input. REAL: in f32 without a shift, the numbers are whole. SCALED: the sum
 * times 2^-shift, rounded to even. */
static const char *term_of(tarn_ctx *cx, const conv *c, ending how, uint64_t seed, const char *x) {
  tarn_buf b = {.cx = cx};
  long long o = (long long)result_size(c), ci = (long long)c->in, co = (long long)c->out,
            s = (long long)c->size, k = (long long)c->kernel, p = (long long)c->pad;
  bool real = how == REAL;
  const char *sum = real ? "f32" : "i32";
  const char *type = real ? "f32" : "i8";
  epilogue(&b, c, how);
  tarn_buf_fmt(&b, " (transpose (1 0 2 3) (compute (dotProd %s) (cartProd (access 1 ", sum);
  tarn_buf_fmt(&b, "(compute (map (cast %s $0)) (const %s ((%lld %lld %lld %lld) ())", sum, type,
               co, ci, k, k);
  numbers(&b, c->out * c->in * c->kernel * c->kernel, -16, 15, &seed);
  tarn_buf_fmt(&b, "))) (squeeze 1 (windows (%lld %lld %lld) (1 %lld %lld) (access 1 ", ci, k, k,
               (long long)c->stride, (long long)c->stride);
  if (p) tarn_buf_fmt(&b, "(pad 3 (%s 0) %lld %lld (pad 2 (%s 0) %lld %lld ", sum, p, p, sum, p, p);
  if (x) tarn_buf_fmt(&b, "(compute (map (cast %s $0)) %s)", sum, x);
  else
    tarn_buf_fmt(&b, "(compute (map (cast %s $0)) (input x ((1 %lld %lld %lld) ()) %s))", sum, ci,
                 s, s, type);
  if (p) tarn_buf_str(&b, "))");
  tarn_buf_fmt(&b, ")))))) (broadcast ((1 %lld %lld %lld) ()) (const %s ((1 %lld 1 1) ())", co, o,
               o, sum, co);
  numbers(&b, c->out, -3000, 3000, &seed);
  tarn_buf_str(&b, "))");
  if (c->residual) tarn_buf_fmt(&b, " (input r ((1 %lld %lld %lld) ()) %s)", co, o, o, type);
  tarn_buf_str(&b, ")\n");
  return b.p;
}

/* ---------------------------------------------------------------- one model on one machine */
/* Kernels of the machine; or those of them that are products. */
static uint32_t on_machine(const tarn_compiled *c, bool products) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->kernels->nker; i++) {
    tarn_unit_plan p;
    const tarn_kernel *k = &c->kernels->ker[i];
    if (!k->machine) continue;
    ck_assert(tarn_unit_match(c->L, c->o->hw, k->sig, &p, NULL));
    n += !products || p.way == TARN_UNIT_MULTIPLIES;
  }
  return n;
}

static const conv convs[] = {
    {32, 32, 28, 1, 1, 0, 4, -128, false},  {64, 32, 14, 1, 1, 0, 7, 0, false},
    {32, 48, 14, 3, 1, 1, 8, 0, false},     {64, 64, 28, 3, 1, 1, 9, 0, true},
    {32, 64, 14, 3, 2, 1, 8, -128, false},  {64, 128, 14, 1, 2, 0, 7, 0, false},
    {128, 40, 7, 3, 1, 1, 10, -128, false}, {512, 1000, 1, 1, 1, 0, 9, -128, false},
    {512, 16, 5, 1, 1, 0, 9, 0, true},      {16, 16, 9, 5, 1, 2, 8, 0, false},
    {48, 16, 10, 2, 2, 0, 12, -128, true},  {256, 256, 7, 3, 1, 1, 10, 0, false},
    {24, 40, 20, 1, 1, 0, 7, 0, false},     {40, 24, 20, 3, 1, 1, 9, -128, true},
    {3, 5, 10, 3, 1, 1, 8, -128, false},    {5, 3, 11, 3, 1, 1, 7, 0, true},
    {12, 20, 10, 3, 1, 1, 9, -128, false},  {20, 12, 9, 3, 1, 1, 8, 0, true},
    {1, 12, 12, 3, 1, 1, 6, -128, false},   {3, 16, 20, 7, 2, 3, 9, 0, false},
    {16, 1, 12, 3, 1, 1, 7, -128, false},   {5, 1, 10, 3, 1, 1, 7, 0, false},
    {70, 10, 1, 1, 1, 0, 7, -128, false},   {20, 1, 10, 3, 1, 1, 7, 0, false},
};
typedef struct work {
  const conv *c, *next; /* convolutions; next: of the result, or NULL */
  const char *hw;
  ending how;
} work;
/* A sum of floats that is no whole number of units stays on the host: what fills the last one may
 * be no number. */
static bool is_ragged(const work *w) { return w->how == REAL && w->c->in % 16; }
static void run_one(tarn_ctx *cx, void *arg) {
  const work *w = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const char *text = term_of(cx, w->c, w->how, 3, NULL);
  if (w->next) text = term_of(cx, w->next, w->how, 4, text);
  const tarn_compiled *c = compiled(L, text, on_slow_host(L, w->hw), NULL);
  uint32_t n = on_machine(c, true);
  same_values(cx, c, tarn_load_simulated(cx, c->o->dir));
  ck_assert_msg(n == (is_ragged(w) ? 0 : w->next ? 2 : 1), "%u products on the accelerator", n);
  if (on_machine(c, false)) same_cycles(cx, c);
}
#define CONVS (sizeof convs / sizeof *convs)
static const struct machine {
  const char *hw;
  ending ending;
} machines[] = {{"vta-pynq", SHIFTED},
                {"vta-hls-timing", SHIFTED},
                {"systolic-f32", REAL},
                {"gemmini-default", SCALED}};
#define MACHINES (sizeof machines / sizeof *machines)
static void run_work(work *w) { in_context(run_one, w); }
START_TEST(products_are_right) {
  const struct machine *m = &machines[(size_t)_i / CONVS];
  size_t i = (size_t)_i % CONVS;
  work w = {.c = &convs[i], .hw = m->hw, .how = m->ending};
  run_work(&w);
}
END_TEST
/* Products of two inputs: heads × rows × sum by heads × columns × sum, or × sum × columns. The
 * second factor is brought into the machine's order by the host, where it does not lie so. */
static const struct two {
  int heads, rows, columns, sum;
  bool across; /* the second factor lies along the columns */
} twos[] = {{1, 48, 32, 64, false},
            {1, 20, 16, 16, true},
            {3, 24, 48, 32, false},
            {2, 33, 64, 48, true},
            {1, 48, 32, 40, false}};
#define TWOS (sizeof twos / sizeof *twos)
static void run_two(tarn_ctx *cx, void *arg) {
  const int which = *(int *)arg;
  const struct machine *m = &machines[(size_t)which / TWOS];
  const struct two *s = &twos[(size_t)which % TWOS];
  tarn_lang *L = tarn_lang_new(cx);
  bool real = m->ending == REAL;
  const char *wide = real ? "(input %s ((%d %d %d) ()) f32)"
                          : "(compute (map (cast i32 $0)) (input %s ((%d %d %d) ()) i8))";
  const char *end = m->ending == SHIFTED
                        ? "(map (cast i8 (min (max (shr $0 (i32 7)) (i32 -128)) (i32 127))))"
                    : real ? "(map (max $0 (f32 0)))"
                           : "(map (cast i8 (min (max (round (mul (cast f32 $0) (f32 0.01))) (f32 "
                             "-128)) (f32 127))))";
  const char *x = tarn_format(cx, wide, "x", s->heads, s->rows, s->sum);
  const char *y = s->across ? tarn_format(cx, "(transpose (0 2 1) %s)",
                                          tarn_format(cx, wide, "y", s->heads, s->sum, s->columns))
                            : tarn_format(cx, wide, "y", s->heads, s->columns, s->sum);
  const char *text = tarn_format(
      cx, "(compute %s (compute (dotProd %s) (cartProd 1 (access 2 %s) (access 2 %s))))\n", end,
      real ? "f32" : "i32", x, y);
  const tarn_compiled *c = compiled(L, text, on_slow_host(L, m->hw), NULL);
  same_values(cx, c, tarn_load_simulated(cx, c->o->dir));
  ck_assert_uint_eq(on_machine(c, true), s->sum % 16 == 0);
  if (s->sum % 16 == 0) same_cycles(cx, c);
}
START_TEST(two_inputs_are_multiplied) { in_context(run_two, &_i); }
END_TEST
/* A sum of which the shift leaves nothing is not computed. */
static void drop_sum(tarn_ctx *cx, void *arg) {
  static const conv none = {48, 16, 10, 2, 2, 0, 20, -128, true};
  tarn_lang *L = tarn_lang_new(cx);
  (void)arg;
  const char *text = term_of(cx, &none, SHIFTED, 3, NULL);
  const tarn_compiled *c = compiled(L, text, on_slow_host(L, "vta-pynq"), NULL);
  for (uint32_t i = 0; i < c->kernels->nker; i++) {
    const tarn_ksig *k = c->kernels->ker[i].sig;
    ck_assert(!k || tarn_ksig_products(L, c->o->hw, k) == 0);
  }
  same_values(cx, c, tarn_load_simulated(cx, c->o->dir));
}
START_TEST(nothing_is_left) { in_context(drop_sum, NULL); }
END_TEST
/* What one kernel writes to main memory the next one reads, in one segment. */
START_TEST(chains_are_right) {
  static const conv two[] = {{32, 64, 14, 3, 1, 1, 9, 0, false},
                             {64, 32, 14, 1, 1, 0, 8, 0, false}};
  const struct machine *m = &machines[_i];
  work w = {.c = &two[0], .next = &two[1], .hw = m->hw, .how = m->ending};
  run_work(&w);
}
END_TEST

/* ---------------------------------------------------------------- scales that are no shifts */
/* What makes the result of the sums $0 and the bias $1: as a machine that scales its sums, as
 * QuantizeLinear and DequantizeLinear, with a relu between. */
static const char *const scaled[] = {
    "(compute (map (cast i8 (min (max (round (mul (cast f32 (add $0 $1)) (f32 0.0037))) (f32 "
    "-128)) "
    "(f32 127))))",
    "(compute (map (cast i8 (min (max (round (mul (add (mul (cast f32 $0) (f32 0.00021)) (mul "
    "(cast "
    "f32 $1) (f32 0.00021))) (f32 21.7))) (f32 -128)) (f32 127))))",
    "(compute (map (cast i8 (min (max (round (mul (max (add (mul (cast f32 $0) (f32 0.0013)) (mul "
    "(cast f32 $1) (f32 0.0013))) (f32 0)) (f32 1.9))) (f32 -128)) (f32 127))))"};
typedef struct rescaled {
  const char *end;
  bool approximate;
} rescaled;
/* With approx a factor has nine digits, and the result is off by one step at most; otherwise the
 * host makes it of the sums. */
static void run_scaled(tarn_ctx *cx, void *arg) {
  const rescaled *w = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  const char *text = term_of(cx, &convs[2], SHIFTED, 3, NULL);
  const char *rest = strstr(text, " (transpose");
  if (w->approximate) o.numerics = TARN_RULE_APPROX;
  o.rtol = 0.01;
  text = tarn_format(cx, "%s%s", w->end, rest);
  const tarn_compiled *c = compiled_with(L, text, on_slow_host(L, "vta-pynq"), NULL, &o);
  uint32_t whole = 0; /* kernels of the accelerator whose result is bytes */
  for (uint32_t i = 0; i < c->kernels->nker; i++)
    whole += c->kernels->ker[i].machine && c->kernels->ker[i].sig->out_type[0] == TARN_I8;
  ck_assert_uint_eq(whole, w->approximate);
  near_values(cx, c, tarn_load_simulated(cx, c->o->dir), w->approximate);
}
START_TEST(scales_are_near) {
  rescaled w = {scaled[_i / 2], _i % 2};
  in_context(run_scaled, &w);
}
END_TEST

/* ---------------------------------------------------------------- epilogues that end early */
/* Behind a product and its bias, which the machine does, something that its vector unit has not. */
static const char *const rests[] = {"(tanh $0)", "(min (max $0 (f32 0)) (f32 6))"};
static void run_rest(tarn_ctx *cx, void *arg) {
  tarn_lang *L = tarn_lang_new(cx);
  const char *rest = *(const char *const *)arg;
  const char *text =
      tarn_format(cx, "(compute (map %s) %s)", rest, term_of(cx, &convs[0], REAL, 3, NULL));
  const tarn_compiled *c = compiled(L, text, on_slow_host(L, "systolic-f32"), NULL);
  ck_assert_uint_eq(on_machine(c, true), 1);
  near_values(cx, c, tarn_load_simulated(cx, c->o->dir), 1);
  same_cycles(cx, c);
}
START_TEST(floats_are_split) { in_context(run_rest, &rests[_i]); }
END_TEST

/* ---------------------------------------------------------------- maxima over windows */
/* Bytes by the identity; f32 where a transfer brings windows, with padding or none, and so many
 * pixels that no memory has them all at once. */
typedef struct pool {
  const char *type, *hw;
  int channels, size, kernel, stride, pad;
} pool;
static const pool pools[] = {
    {"i8", "vta-pynq", 32, 20, 5, 1, 0},      {"i8", "vta-pynq", 48, 21, 7, 2, 0},
    {"i8", "vta-pynq", 24, 13, 4, 1, 0},      {"i8", "vta-pynq", 16, 30, 6, 1, 0},
    {"i8", "vta-pynq", 16, 60, 60, 1, 0},     {"f32", "systolic-f32", 32, 20, 5, 1, 0},
    {"f32", "systolic-f32", 64, 30, 3, 2, 1}, {"f32", "systolic-f32", 16, 56, 5, 1, 2},
    {"f32", "systolic-f32", 48, 14, 2, 2, 0}, {"f32", "systolic-f32", 32, 90, 90, 1, 0},
    {"f32", "systolic-f32", 16, 90, 4, 3, 1}};
static void run_pool(tarn_ctx *cx, void *arg) {
  const pool *p = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const char *text = tarn_format(cx, "(transpose (0 3 1 2) (input x ((1 %d %d %d) ()) %s))",
                                 p->size, p->size, p->channels, p->type);
  for (int d = 2; d < 4 && p->pad; d++)
    text = tarn_format(cx, "(pad %d (f32 -inf) %d %d %s)", d, p->pad, p->pad, text);
  text = tarn_format(
      cx, "(transpose (0 2 3 1) (compute (reduceMax %s) (windows (%d %d) (%d %d) (access 2 %s))))",
      p->type, p->kernel, p->kernel, p->stride, p->stride, text);
  const tarn_compiled *c = compiled(L, text, on_slow_host(L, p->hw), NULL);
  /* ragged channels cost the host copies, and it does rows and columns apart */
  ck_assert(on_machine(c, false) >= 1 || p->channels % 16);
  same_values(cx, c, tarn_load_simulated(cx, c->o->dir));
  if (on_machine(c, false)) same_cycles(cx, c);
}
START_TEST(maxima_are_right) { in_context(run_pool, &pools[_i]); }
END_TEST

/* ---------------------------------------------------------------- rows that roll */
/* Row after row of the result, and in each the rows of its windows one after another. */
static void roll(tarn_unit_plan *p, uint32_t slots) {
  const tarn_coordinate *c = p->tensor[0].at;
  while (!c->clipped) c++;
  bool second = c->dim[0] >= p->nacc;
  p->nloop = 2;
  p->loop[0] = (tarn_unit_loop){c->dim[second], 1};
  p->loop[1] = (tarn_unit_loop){c->dim[!second], 1};
  for (uint32_t t = 0; t < p->ntensor; t++) p->tensor[t].at_loop = t < p->sums ? 2 : 1;
  p->tensor[0].slots = slots;
  p->tensor[1].slots = 3;
}
static void run_rolling(tarn_ctx *cx, void *arg) {
  const uint32_t slots = *(const uint32_t *)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_unit_plan p;
  tarn_unit_cost cost;
  const char *text = term_of(cx, &convs[2], SHIFTED, 3, NULL);
  const tarn_hw *hw = on_slow_host(L, "vta-pynq");
  const tarn_compiled *c = compiled(L, text, hw, NULL);
  uint32_t k = 0;
  while (k < c->kernels->nker && !c->kernels->ker[k].machine) k++;
  ck_assert_uint_lt(k, c->kernels->nker);
  const tarn_ksig *sig = c->kernels->ker[k].sig;
  ck_assert(tarn_unit_match(L, hw, sig, &p, NULL) && tarn_unit_unpad(&p));
  roll(&p, slots);
  const tarn_schedule *s = tarn_unit_scheduled(&p);
  tarn_unit_schedule(&p, s);
  ck_assert(tarn_unit_cost_of(&p, &cost));
  ck_assert((cost.bytes[0] == tarn_unit_once(&p, 0)) == (slots > 1));
  ck_assert_int_eq(cost.bytes[1], tarn_unit_once(&p, 1));
  const char *given =
      tarn_format(cx, "%s %s", tarn_ksig_text(L, cx, sig), tarn_schedule_text(cx, s));
  c = compiled(L, text, hw, given);
  same_values(cx, c, tarn_load_simulated(cx, c->o->dir));
  same_cycles(cx, c);
}
START_TEST(rows_roll) {
  uint32_t slots = (uint32_t)_i + 1;
  in_context(run_rolling, &slots);
}
END_TEST

/* ---------------------------------------------------------------- maps alone */
/* A relu, a sum of two tensors, a relu of one with a bias: nothing is multiplied. */
static const char *const shapes[] = {"(28 28 64)", "(7 9 48)", "(4096)", "(5 160)"};
static const char *const inputs[ENDINGS] = {"i8", "f32", "i8"};
static const char *const maps[][ENDINGS] = {
    {"(cast i8 (min (max (cast i32 $0) (i32 3)) (i32 100)))", "(max $0 (f32 3))",
     "(cast i8 (min (max (round (mul (cast f32 $0) (f32 0.75))) (f32 0)) (f32 127)))"},
    {"(cast i8 (min (max (shr (add (add (cast i32 $0) (cast i32 $1)) (i32 1)) (i32 1)) (i32 -128)) "
     "(i32 127)))",
     "(add $0 $1)",
     "(cast i8 (min (max (round (mul (cast f32 (add (cast i32 $0) (cast i32 $1))) (f32 0.3))) (f32 "
     "-128)) (f32 127)))"},
    {"(cast i8 (min (max (add (cast i32 $0) (cast i32 $1)) (i32 0)) (i32 127)))",
     "(max (add $0 $1) (f32 0))",
     "(cast i8 (min (max (round (mul (cast f32 (add (cast i32 $1) (cast i32 $0))) (f32 1.5))) (f32 "
     "0)) (f32 127)))"}};
#define SHAPES (sizeof shapes / sizeof *shapes)
#define MAPS   (sizeof maps / sizeof *maps)
typedef struct map {
  const struct machine *m;
  const char *f, *shape;
} map;
static void run_map(tarn_ctx *cx, void *arg) {
  const map *w = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const char *type = inputs[w->m->ending];
  const char *text =
      tarn_format(cx, "(compute (map %s) (input x (%s ()) %s)", w->f, w->shape, type);
  if (strstr(w->f, "$1")) text = tarn_format(cx, "%s (input r (%s ()) %s)", text, w->shape, type);
  text = tarn_format(cx, "%s)", text);
  const tarn_compiled *c = compiled(L, text, on_slow_host(L, w->m->hw), NULL);
  ck_assert_msg(on_machine(c, false) == 1, "%s of %s stays on the host", w->f, w->shape);
  same_values(cx, c, tarn_load_simulated(cx, c->o->dir));
  same_cycles(cx, c);
}
START_TEST(maps_are_right) {
  const struct machine *m = &machines[(size_t)_i / (MAPS * SHAPES)];
  map w = {m, maps[(size_t)_i / SHAPES % MAPS][m->ending], shapes[(size_t)_i % SHAPES]};
  in_context(run_map, &w);
}
END_TEST

/* ---------------------------------------------------------------- coarse units */
#define COARSE TARN_TOP "/tests/data/hw/coarse.hw"
/* What an LSTM cell gives, of its gates; forget: what the cell $3 keeps by gate $1. */
#define GATES                                                                                      \
  "(compute (map (add $0 $1)) (compute (dotProd f32) (cartProd (access 2 (input w ((4 16 32) ()) " \
  "f32)) (access 0 (input x ((32) ()) f32)))) (access 2 (input b ((4 16) ()) f32)))"
#define GATE(from, to) "(squeeze 0 (slice 0 " #from " " #to " " GATES "))"
#define OUTPUT_OF(forget)                                                                          \
  "(compute (map (mul (div (f32 1) (add (f32 1) (exp (neg $1)))) (tanh $0))) (compute (map "       \
  "(add " forget " (mul (div (f32 1) (add (f32 1) (exp (neg $0)))) (tanh $2)))) " GATE(            \
      0, 1) " " GATE(1, 2) " " GATE(2, 3) " (access 1 (input c ((16) ()) f32))) " GATE(3, 4) ")"
/* So many queries attend to eight keys. */
#define SCORES(n)                                                                                  \
  "(compute (dotProd f32) (cartProd (access 1 (input q ((" #n " 16) ()) f32)) (access 1 (input k " \
  "((8 16) ()) f32))))"
#define OF_ROW(n, reduce, x)                                                                       \
  "(access 2 (broadcast ((" #n " 8) ()) (reshape ((" #n " 1) ()) (compute (" reduce                \
  " f32) (access 1 " x ")))))"
#define POWERS(n)                                                                                  \
  "(compute (map (exp (sub $0 $1))) (access 2 " SCORES(n) ") " OF_ROW(n, "reduceMax", SCORES(n)) ")"
#define ATTENTION(n)                                                                               \
  "(compute (dotProd f32) (cartProd (access 1 (compute (map (div $0 $1)) " POWERS(n) " " OF_ROW(   \
      n, "reduceSum", POWERS(n)) ")) (access 1 (transpose (1 0) (input v ((8 16) "                 \
                                 "()) f32)))))"
/* The output of an LSTM cell for several sequences. */
#define GATES_OF(n, from, to)                                                                      \
  "(squeeze 1 (slice 1 " #from " " #to " (input g ((" #n " 4 16) ()) f32)))"
#define OUTPUTS(n)                                                                                 \
  "(compute (map (mul (div (f32 1) (add (f32 1) (exp (neg $1)))) (tanh $0))) (compute (map (add "  \
  "(mul (div (f32 1) (add (f32 1) (exp (neg $1)))) $3) (mul (div (f32 1) (add (f32 1) (exp (neg "  \
  "$0)))) (tanh $2)))) " GATES_OF(n, 0, 1) " " GATES_OF(n, 1, 2) " " GATES_OF(                     \
      n, 2, 3) " (access 2 (input c ((" #n " 16) ()) f32))) " GATES_OF(n, 3, 4) ")"
/* Kernels of several stages are compared with the nests that the rules find for a meaning.
 * A convolution whose weights are constants or an input, channels last in its result or first, and
 * maxima over windows: of the sizes that an instruction has, one computes them; of others the host
 * does. */
static const struct whole {
  const char *text;
  int64_t weights; /* constants in the place of %s; 0: none */
  uint32_t taken;
} wholes[] = {
    {"(compute (dotProd f32) (cartProd (access 1 (const f32 ((4 8 3 3) ())%s)) (squeeze 0 (windows "
     "(8 3 3) (1 1 1) (access 0 (input x ((8 10 10) ()) f32))))))",
     288, 1},
    {"(compute (dotProd f32) (cartProd (access 1 (input r ((4 8 3 3) ()) f32)) (squeeze 0 (windows "
     "(8 3 3) (1 1 1) (access 0 (input x ((8 10 10) ()) f32))))))",
     0, 1},
    {"(compute (dotProd f32) (cartProd (access 1 (const f32 ((4 8 3 3) ())%s)) (squeeze 0 (windows "
     "(8 3 3) (1 1 1) (access 0 (input x ((8 11 11) ()) f32))))))",
     288, 0},
    {"(compute (reduceMax i8) (windows (2 2) (2 2) (access 1 (input x ((4 8 8) ()) i8))))", 0, 1},
    /* several times as much of the result: filters, images, channels; part by part */
    {"(compute (dotProd f32) (cartProd (access 1 (const f32 ((12 8 3 3) ())%s)) (squeeze 0 "
     "(windows (8 3 3) (1 1 1) (access 0 (input x ((8 10 10) ()) f32))))))",
     864, 1},
    {"(transpose (1 0 2 3) (compute (dotProd f32) (cartProd (access 1 (const f32 ((8 8 3 3) "
     "())%s)) "
     "(squeeze 1 (windows (8 3 3) (1 1 1) (access 1 (input x ((5 8 10 10) ()) f32)))))))",
     576, 1},
    {"(compute (dotProd f32) (cartProd (access 1 (const f32 ((6 8 3 3) ())%s)) (squeeze 0 "
     "(windows (8 3 3) (1 1 1) (access 0 (input x ((8 10 10) ()) f32))))))",
     432, 0},
    {"(compute (reduceMax i8) (windows (2 2) (2 2) (access 1 (input x ((48 8 8) ()) i8))))", 0, 1},
    {"(compute (reduceMax i8) (windows (2 2) (2 2) (access 1 (input x ((3 24 8) ()) i8))))", 0, 0},
    {"(compute (reduceMax i8) (windows (2 2) (1 1) (access 1 (input x ((4 8 8) ()) i8))))", 0, 0},
    /* an attention of the size that there is, with a query more, with three times as many; the
     * output of an LSTM cell, its factors and terms in two orders */
    {ATTENTION(8), 0, 1},
    {ATTENTION(9), 0, 0},
    {ATTENTION(24), 0, 1},
    {OUTPUTS(3), 0, 1},
    {OUTPUT_OF("(mul (div (f32 1) (add (f32 1) (exp (neg $1)))) $3)"), 0, 1},
    {OUTPUT_OF("(mul $3 (div (f32 1) (add (exp (neg $1)) (f32 1))))"), 0, 1}};
static void run_whole(tarn_ctx *cx, void *arg) {
  const struct whole *w = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_buf b = {.cx = cx};
  uint64_t seed = 7;
  const char *hole = strstr(w->text, "%s");
  tarn_buf_add(&b, w->text, hole ? (size_t)(hole - w->text) : strlen(w->text));
  numbers(&b, w->weights, -16, 15, &seed);
  if (hole) tarn_buf_str(&b, hole + 2);
  tarn_buf_str(&b, "\n");
  const tarn_compiled *c = compiled(L, b.p, on_slow_host(L, COARSE), NULL);
  bool real = tarn_dtype_is_float(tarn_type_get(L, c->program->out[0].type)->dtype);
  ck_assert_uint_eq(on_machine(c, false), w->taken);
  near_values(cx, c, tarn_load_simulated(cx, c->o->dir), real);
  if (w->taken) same_cycles(cx, c);
}
START_TEST(coarse_units_are_matched) {
  struct whole w = wholes[_i];
  in_context(run_whole, &w);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("dsa");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, products_are_right, 0, (int)(MACHINES * CONVS));
  tcase_add_loop_test(t, two_inputs_are_multiplied, 0, (int)(MACHINES * TWOS));
  tcase_add_test(t, nothing_is_left);
  tcase_add_loop_test(t, maxima_are_right, 0, (int)(sizeof pools / sizeof *pools));
  tcase_add_loop_test(t, floats_are_split, 0, (int)(sizeof rests / sizeof *rests));
  tcase_add_loop_test(t, rows_roll, 0, 3);
  tcase_add_loop_test(t, chains_are_right, 0, MACHINES);
  tcase_add_loop_test(t, coarse_units_are_matched, 0, (int)(sizeof wholes / sizeof *wholes));
  tcase_add_loop_test(t, scales_are_near, 0, 2 * (int)(sizeof scaled / sizeof *scaled));
  tcase_add_loop_test(t, maps_are_right, 0, (int)(MACHINES * MAPS * SHAPES));
  return run_checks("dsa", t);
}
