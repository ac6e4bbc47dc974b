/* Operations of a kernel are those of taps inside the tensor: beside the interpreter, which sums as
 * many ones as there are taps. */

#include "tests/context.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"

/* Kernels that compute what the model says: Winograd's algorithm and others are not exact. */
static tarn_kprog *exact(tarn_program *p, const tarn_hw *hw) {
  tarn_kgraph_options ko = {.method = TARN_SEL_GREEDY, .strict = true};
  return pipeline_extract_as(p, hw, ko, TARN_RULE_EXACT)->kprog;
}

/* The sum of what the program makes of ones. */
static double sum_of_ones(tarn_program *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const tarn_type *t = tarn_type_get(p->L, p->in[0].type);
  tarn_tensor *x = tarn_tensor_new(cx, t->dtype, t->n, t->dim), *y;
  for (int64_t i = 0; i < tarn_tensor_count(x); i++)
    tarn_tensor_set(x, i,
                    tarn_dtype_is_float(t->dtype) ? (tarn_value){.d = 1} : (tarn_value){.i = 1});
  tarn_binding in = {p->in[0].name, x};
  tarn_eval(p->L, &p->out[0].term, 1, &in, 1, TARN_WIDE, tarn_opaque_eval, &y);
  double sum = 0;
  for (int64_t i = 0; i < tarn_tensor_count(y); i++) sum += tarn_tensor_number(y, i);
  return sum;
}
static double flops(const tarn_kprog *p) {
  double sum = 0;
  for (uint32_t i = 0; i < p->nker; i++) sum += p->ker[i].flops;
  return sum;
}

typedef struct shape {
  bool transposed;
  uint32_t nd;
  int64_t group, in, out, x[2], k[2], s[2], d[2], before[2], after[2];
} shape;
static uint64_t seed;
static int64_t below(int64_t n) { return (int64_t)(kit_random(&seed) % (uint64_t)n); }
static shape random_shape(void) {
  shape c = {.transposed = below(3) == 0, .nd = 1 + (uint32_t)below(2), .group = 1 + below(3)};
  c.in = 1 + below(3), c.out = 1 + below(3);
  if (below(4) == 0) c.group = 4, c.in = c.out = 1; /* depthwise */
  for (uint32_t i = 0; i < c.nd; i++) {
    c.k[i] = 1 + below(4), c.s[i] = 1 + below(3), c.d[i] = 1 + below(2);
    c.before[i] = below(c.k[i]), c.after[i] = below(c.k[i]);
    c.x[i] = 5 + (c.k[i] - 1) * c.d[i] + below(5);
  }
  return c;
}
static void list(tarn_buf *b, const char *head, uint32_t n, const int64_t *v, const int64_t *w) {
  tarn_buf_fmt(b, " %s=", head);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, "%lld,", (long long)v[i]);
  for (uint32_t i = 0; i < n && w; i++) tarn_buf_fmt(b, "%lld,", (long long)w[i]);
}
/* ones: the weights, so that results count products; else no rule finds a pattern in them */
static const char *text_of(tarn_ctx *cx, const shape *c, bool ones) {
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "in x f32 1,%lld", (long long)(c->group * c->in));
  for (uint32_t i = 0; i < c->nd; i++) tarn_buf_fmt(&b, ",%lld", (long long)c->x[i]);
  int64_t first = c->transposed ? c->group * c->in : c->group * c->out, n = first;
  int64_t second = c->transposed ? c->out : c->in;
  tarn_buf_fmt(&b, "\ninit w f32 %lld,%lld", (long long)first, (long long)second);
  n *= second;
  for (uint32_t i = 0; i < c->nd; i++) tarn_buf_fmt(&b, ",%lld", (long long)c->k[i]), n *= c->k[i];
  tarn_buf_str(&b, " :");
  for (; n-- > 0;) tarn_buf_fmt(&b, " %g", ones ? 1 : 0.5 + 0.37 * (double)((n * n) % 101));
  tarn_buf_fmt(&b, "\nnode %s c x w -> y : group=%lld", c->transposed ? "ConvTranspose" : "Conv",
               (long long)c->group);
  list(&b, "strides", c->nd, c->s, NULL);
  list(&b, "dilations", c->nd, c->d, NULL);
  list(&b, "pads", c->nd, c->before, c->after);
  tarn_buf_str(&b, "\nout y\n");
  return b.p;
}
static void run_random(tarn_ctx *cx, void *arg) {
  seed = 1000 + (uint64_t) * (const int *)arg;
  shape c = random_shape();
  const char *text = text_of(cx, &c, false);
  tarn_lang *L = tarn_lang_new(cx);
  double want = 2 * sum_of_ones(kit_model(L, text_of(cx, &c, true)));
  double have = flops(exact(kit_model(L, text), tarn_hw_load(L, "x86-64-v3")));
  ck_assert_msg(have == want, "%s%g operations, %g counted", text, want, have);
}
START_TEST(random_convolutions) { in_context(run_random, &_i); }
END_TEST

typedef struct fixed {
  const char *text;
  double flops;
} fixed;
static const fixed cases[] = {
    /* 5 rows of 3 taps, of which the first and the last have 2 */
    {"in x f32 1,1,5\ninit w f32 1,1,3 : 1 1 1\nnode Conv c x w -> y : pads=1,1\nout y\n", 26},
    /* maxima: 5 × 3 - 2 taps, one operation each */
    {"in x f32 1,1,5\nnode MaxPool c x -> y : kernel_shape=3, pads=1,1\nout y\n", 13},
    /* sums, and one product for each result */
    {"in x f32 1,1,5\nnode AveragePool c x -> y : kernel_shape=3, pads=1,1 count_include_pad=1\n"
     "out y\n",
     18},
    /* bytes with a zero point, which padding holds: 13 taps of 5 operations, its mask's too */
    {"in x u8 1,1,5\ninit w i8 1,1,3 : 1 1 1\ninit z u8 - : 3\nnode ConvInteger c x w z -> y : "
     "pads=1,1\nout y\n",
     65},
};
static void run_fixed(tarn_ctx *cx, void *arg) {
  const fixed *c = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, c->text);
  double have = flops(exact(p, tarn_hw_load(L, "x86-64-v3")));
  ck_assert_double_eq(have, c->flops);
}
START_TEST(known_counts) { in_context(run_fixed, (void *)(uintptr_t)&cases[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("taps");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, random_convolutions, 0, 300);
  tcase_add_loop_test(t, known_counts, 0, sizeof cases / sizeof *cases);
  return run_checks("taps", t);
}
