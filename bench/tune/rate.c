/* How many schedules a second a learned price prices on one core, features included.
 *
 *   rate PRICE [N]      N: schedules priced, default 200,000 */
#include "hw/host/host.h"
#include "tune/tune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The row-major product of 128x64 by constant 64x256, canonical. */
static tarn_ksig product(tarn_lang *L) {
  enum { ROWS = 128, COLS = 256, TERMS = 64 };
  int64_t dim[] = {ROWS, COLS, TERMS}, size[] = {ROWS * TERMS, TERMS * COLS};
  const int64_t step[2][3] = {{TERMS, 0, 1}, {0, 1, COLS}};
  tarn_read read[2];
  tarn_ksig k = {.nin = 2, .nout = 1};
  for (uint32_t i = 0; i < 2; i++) {
    tarn_imap m = {
        .ns = 3, .n = 3, .nin = 1, .in = {size[i]}, .fill = TARN_NONE, .e = {tarn_ix_const(L, 0)}};
    memcpy(m.dim, dim, sizeof dim);
    for (uint32_t d = 0; d < 3; d++)
      m.e[0] =
          tarn_ix_add(L, m.e[0], tarn_ix_scale(L, tarn_ix_var(L, d, dim), step[i][d], dim), dim);
    read[i] = (tarn_read){.src = i, .map = tarn_map_intern(L, &m)};
    k.in[i] = tarn_layout_row_major(1, &size[i]), k.in_type[i] = TARN_F32;
  }
  tarn_func f = {.nops = 2,
                 .body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0),
                 .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32),
                 .epi = TARN_NONE};
  tarn_stage st = {.nown = 2,
                   .nred = 1,
                   .own = {ROWS, COLS},
                   .red = {TERMS},
                   .read = read,
                   .out = true,
                   .space = TARN_NONE,
                   .fn = tarn_fn_intern(L, &f)};
  tarn_nest n = {.out_ns = 2, .nstage = 1, .nchild = 2, .stage = &st};
  k.nest = tarn_nest_intern(L, &n), k.in_const[1] = true;
  k.out[0] = tarn_layout_row_major(2, dim), k.out_type[0] = TARN_F32;
  tarn_ksig_canonical(L, &k);
  return k;
}

static void rate(tarn_ctx *cx, void *arg) {
  char **argv = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *hw = tarn_hw_host(L, false);
  const char *why;
  const tarn_price *p = tarn_learned(cx, hw, argv[1], &why);
  if (!p) tarn_raise(cx, TARN_BAD_INPUT, "%s", why);
  tarn_ksig k = product(L);
  tarn_cost cost;
  const tarn_schedule *s = tarn_solve(tarn_solver_new(L, hw, 1), &k, &cost);
  long n = argv[2] ? atol(argv[2]) : 200000;
  double sum = 0;
  clock_t begin = clock();
  for (long i = 0; i < n; i++) sum += p->seconds(p->user, L, hw, &k, s, 1, &cost);
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  printf("%.0f schedules a second (each priced at %.3g s)\n", (double)n / seconds, sum / (double)n);
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: rate PRICE [N]\n"), 2;
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = cx ? tarn_protect(cx, rate, argv) : TARN_MEMORY;
  if (st != TARN_OK) fprintf(stderr, "rate: %s\n", cx ? tarn_message(cx) : "no memory");
  tarn_ctx_free(cx);
  return (int)st;
}
