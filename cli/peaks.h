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
void cli_peaks_json(cli_json *j, const cli_peaks *p); /* members of the open object */
void cli_peaks_text(const cli_peaks *p);

/* The least seconds that this work takes. Its operations at the peak of multiply-adds; its operands
 * and results, each moved once, at the rate of every level, less what the levels nearer to the unit
 * may still hold from the run before. The largest of these binds ("fma" or the level's name), and
 * one start comes on top. */
typedef struct cli_bound {
  double seconds;
  const char *binds;
} cli_bound;
cli_bound cli_bound_of(const cli_peaks *p, const cli_work *w);

#endif
