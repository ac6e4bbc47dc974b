/* hw/host/: the description of this machine is plausible, and the same each time. */
#include "tests/terms.h"

#include <math.h>

#include "base/base.h"
#include "hw/host/internal.h"
#include "hw/hw.h"

static void describe(tarn_ctx *c, void *arg) {
  (void)c;
  *(const tarn_hw **)arg = tarn_hw_host(L, false);
}
static const tarn_hw *host(void) {
  const tarn_hw *h = NULL;
  must(describe, &h);
  return h;
}

START_TEST(possible) {
  const tarn_hw *h = host();
  ck_assert_int_eq(h->kind, TARN_HW_CPU);
  ck_assert(*h->triple && *h->cpu);
  ck_assert(h->clock > 2e8 && h->clock < 1e10 && h->units >= 1);
  ck_assert(h->vector_bits >= 64 && h->vector_regs >= 8);
  ck_assert_uint_ge(h->nmem, 1);
  ck_assert_int_eq(h->mem[h->nmem - 1].capacity, 0);
  for (uint32_t i = 0; i + 2 < h->nmem; i++)
    ck_assert_int_lt(h->mem[i].capacity, h->mem[i + 1].capacity);
  for (uint32_t i = 0; i + 1 < h->nmem; i++) {
    ck_assert(h->mem[i].read >= h->mem[i + 1].read && h->mem[i].latency < h->mem[i + 1].latency);
    ck_assert(h->mem[i].instances >= h->mem[i + 1].instances && h->mem[i].line >= 16);
  }
  double peak = tarn_hw_peak(h, TARN_F32, 1);
  ck_assert(peak >= h->clock * tarn_hw_lanes(h, TARN_F32));
}
END_TEST

START_TEST(reads_back) {
  const tarn_hw *h = host();
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  tarn_hw_print(h, &a);
  tarn_hw_print(tarn_hw_parse(L, tarn_sx_read(cx, a.p, a.n, "host.hw")), &b);
  ck_assert_str_eq(a.p, b.p);
}
END_TEST

/* Features stand in any order, and some names begin like others; a virtual machine's model may be
 * older than its core. */
START_TEST(features) {
  ck_assert_uint_eq(tarn_host_vectors("+avx512fp16,-xop,+avx2,+avx512f").bits, 512);
  ck_assert_uint_eq(tarn_host_vectors("+avx2,-avx512f,+avx").bits, 256);
  ck_assert_uint_eq(tarn_host_vectors("+avx512fp16,+avx").regs, 16);
  ck_assert(tarn_host_vectors("+avx2,-avx512f,+avx").spreads &&
            !tarn_host_vectors("+avx2,+avx512f").spreads);
  ck_assert(!tarn_host_vectors("+neon").spreads);
  ck_assert_uint_eq(tarn_host_vectors("+vfp4").bits, 64);
  ck_assert_str_eq(tarn_host_core("rocketlake", "+avx2,+avx512fp16,+avx512f"), "sapphirerapids");
  ck_assert_str_eq(tarn_host_core("rocketlake", "+avx2,-avx512fp16,+avx512f"), "rocketlake");
  ck_assert_str_eq(tarn_host_core("graniterapids", "+avx512fp16"), "graniterapids");
}
END_TEST

/* Nothing is timed unless asked: one machine, one description. */
START_TEST(twice) {
  const tarn_hw *a = host(), *b = host();
  ck_assert(a->nmem == b->nmem && a->units == b->units && a->vector_bits == b->vector_bits);
  for (uint32_t i = 0; i < a->nmem; i++)
    ck_assert(a->mem[i].capacity == b->mem[i].capacity && a->mem[i].read == b->mem[i].read);
  ck_assert(a->clock == b->clock);
}
END_TEST

/* What is timed are vectors as wide as the description says; compilers take wider ones apart. */
START_TEST(as_wide) {
#if defined(__x86_64__) /* with AVX alone, whole numbers have 128 bits */
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    ck_assert_uint_eq(32 * tarn_host_loops_of()->lanes, host()->vector_bits);
#endif
}
END_TEST

START_TEST(measured) {
  double peak = tarn_host_fma_peak(), near = tarn_host_read_rate(cx, 16384);
  ck_assert(peak > 1e8 && peak < 1e13);
  ck_assert(near > 1e8 && near < 1e13);
}
END_TEST

static void measure(tarn_ctx *c, void *arg) { tarn_host_measure(c, 1, 1, arg); }
START_TEST(peaks) {
  tarn_host_peaks p = {0};
  must(measure, &p);
  ck_assert(p.threads == 1 && p.flops > 1e8 && p.flops < 1e13 && p.nlevel >= 1);
  ck_assert(p.level[p.nlevel - 1].capacity == SIZE_MAX);
  ck_assert(p.slots >= p.flops / 2);
  ck_assert(p.nrate >= 1 && p.nrate <= TARN_HOST_RATES);
  for (uint32_t i = 0; i < p.nrate; i++) {
    const tarn_host_rate *r = &p.rate[i];
    ck_assert(i == 0 || r->bytes > r[-1].bytes);
    ck_assert(r->read > 1e8 && r->write > 1e8 && r->copy > 1e8);
  }
  for (uint32_t i = 0; i < p.nlevel; i++) {
    const tarn_host_level *l = &p.level[i];
    ck_assert(i == 0 || l->capacity > l[-1].capacity);
    if (i) ck_assert(l->read == 0 && l->copy == 0); /* out of reach */
    else ck_assert(l->read > 1e8 && l->write > 1e8 && l->copy > 1e8 && l->read < 1e13);
  }
}
END_TEST

/* Between two sizes along the logarithm, beyond them those at the end. */
START_TEST(rates) {
  tarn_host_peaks p = {.nrate = 2, .rate = {{1e6, 100, 50, 80}, {4e6, 20, 10, 40}}};
  tarn_host_rate at = tarn_host_rate_at(&p, 2e6);
  ck_assert(fabs(at.read - 60) < 1e-9 && fabs(at.write - 30) < 1e-9 && fabs(at.copy - 60) < 1e-9);
  ck_assert(tarn_host_rate_at(&p, 1e3).read == 100 && tarn_host_rate_at(&p, 1e9).copy == 40);
  p.nrate = 1;
  ck_assert(tarn_host_rate_at(&p, 1e9).write == 50);
}
END_TEST

int main(void) {
  const looped tests[] = {{possible, 1}, {reads_back, 1}, {features, 1}, {twice, 1},
                          {as_wide, 1},  {measured, 1},   {peaks, 1},    {rates, 1}};
  return run_suite("hw_host", tests, sizeof tests / sizeof *tests);
}
