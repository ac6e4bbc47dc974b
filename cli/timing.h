/* What tarn bench measures, and the page that shows it. */
#ifndef TARN_CLI_TIMING_H
#define TARN_CLI_TIMING_H
#include "cli/peaks.h"

typedef struct cli_timed {
  const char *name;
  double seconds;       /* median */
  double peak_fraction; /* of the multiply-adds that the machine can do */
  cli_work work;
  cli_bound bound;
} cli_timed;
typedef struct cli_timing {
  double median, least, gflop, peak_fraction;
  double bound; /* seconds: the sum of the kernels' */
  cli_peaks peaks;
  uint32_t n;
  cli_timed *kernel;
} cli_timing;
/* One self-contained page: the kernels in a table, along a time axis, and in a roofline plot. */
void cli_timing_sections(FILE *f, const cli_timing *t);
void cli_timing_page(tarn_ctx *cx, const cli_timing *t, const char *title, const char *path);
/* Times a loaded CPU program of one size, and what the machine reaches now. */
cli_timing cli_time(tarn_ctx *cx, const cli_compile *c, tarn_loaded *m, const cli_list *given,
                    uint32_t threads, uint64_t repeat);

/* report.json, the chain of rewrites and times, as a page; chain, t: NULL where there are none. */
void cli_report_page(tarn_ctx *cx, const char *report, size_t n, const char *chain,
                     const cli_timing *t, const char *path);
#endif
