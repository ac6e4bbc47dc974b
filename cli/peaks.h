/* The machine's measured peaks and what they bound. */
#ifndef TARN_CLI_PEAKS_H
#define TARN_CLI_PEAKS_H
#include "cli/cli.h"

typedef struct cli_peaks {
  tarn_host_peaks host;
  double start; /* seconds to start and join that many threads */
} cli_peaks;
/* As tarn_host_measure; threads 0: all. Raises. */
void cli_peaks_measure(tarn_ctx *cx, uint32_t threads, size_t reach, cli_peaks *out);
void cli_peaks_json(tarn_json *j, const cli_peaks *p); /* members of the open object */
void cli_peaks_text(const cli_peaks *p);

/* The least seconds that this work takes. Its vector instructions at the rate at which they are
 * issued, and its multiply-adds at their peak; its operands and results, each moved once, at the
 * rate that going over so many bytes again and again has. The larger of these binds ("fma" or the
 * level's name that most of the bytes come from), and one start comes on top. */
typedef struct cli_bound {
  double seconds;
  const char *binds;
} cli_bound;
/* Operations as multiply-adds of f32 do them, two a lane: an instruction that sums several products
 * of small numbers in a lane counts as one of these, so that nothing is above the peak. */
double cli_f32_ops(const cli_work *w);
cli_bound cli_bound_of(const cli_peaks *p, const cli_work *w);

#endif
