/* A worker's bench: measures one job at a time in a child process, in turns with a kernel that is
 * always the same. It knows nothing of NATS. */
#ifndef TARN_FLEET_BENCH_H
#define TARN_FLEET_BENCH_H
#include "fleet/fleet.h"
#include "fleet/record.h"
#include "tune/child.h"

#define FLEET_THREADS 1024
typedef struct fleet_bench {
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_worker_options *o;
  tarn_limits limits;
  cpu_set_t cores;
  double at_first[FLEET_THREADS + 1]; /* of the calibration kernel on so many threads; 0: not yet */
  /* Called several times a second while something is measured; false: give it up. */
  bool (*tick)(void *user);
  void *user;
} fleet_bench;
/* Reads the options and warms the machine up. Raises for a word of them that makes no sense, and
 * when the calibration kernel cannot be measured here. */
void fleet_bench_open(fleet_bench *b);
/* Sets seconds, calibration, drifted and reason; false: it was given up. */
bool fleet_bench_measure(fleet_bench *b, const fleet_job *j, tarn_answer *x);
/* "0-3,8" as a set; raises. */
void fleet_cores(tarn_ctx *cx, const char *list, cpu_set_t *set);
#endif
