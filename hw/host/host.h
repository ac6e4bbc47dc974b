/* tarn hw/host: the description of the machine this runs on (in libtarn-tune).
 *
 * Topology and cache sizes come from hwloc, the processor's name and features from LLVM. Rates
 * (clock, bytes a cycle of each level) are what the machine states of itself and the usual figures
 * of a processor of that vector width, so that one machine always gives one description; with
 * measure they are timed. */
#ifndef TARN_HW_HOST_H
#define TARN_HW_HOST_H
#include "hw/hw.h"
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
/* This machine; measure: its rates timed, which takes a second or two. Raises. */
TARN_API const tarn_hw *tarn_hw_host(tarn_lang *L, bool measure);
/* What one core reaches: multiply-adds in f32 (FLOP a second, 2 each), and bytes a second read from
 * a buffer of n bytes. */
TARN_API double tarn_host_fma_peak(void);
TARN_API double tarn_host_read_rate(tarn_ctx *cx, size_t n);
TARN_API double tarn_host_clock(void); /* Hz, rounded to 50 MHz */

/* What so many threads reach together, timed now. A level's capacity is that of all instances they
 * use (threads 0, or more than there are cores: all); main memory, the last level, has capacity
 * SIZE_MAX. Rates are in bytes a second; a copy counts what it reads and what it writes. A loop
 * that goes over its data again and again does not find as much of it in a level as that holds:
 * what comes next has been driven out just before. So rates are timed for sizes from half of the
 * first level on, in small steps up to four times the second one; those of a level are the curve's
 * at a size that lies well inside of it. */
typedef struct tarn_host_rate {
  double bytes; /* that are gone over, of all threads, a part each */
  double read, write, copy;
} tarn_host_rate;
typedef struct tarn_host_level {
  const char *name;
  size_t capacity;
  double read, write, copy;
} tarn_host_level;
#define TARN_HOST_RATES 64
typedef struct tarn_host_peaks {
  uint32_t threads;
  double flops; /* f32, a multiply-add is two */
  double slots; /* 32-bit lanes of vector instructions of whatever kind */
  uint32_t nlevel;
  tarn_host_level level[4]; /* l1 l2 l3 dram, those that exist */
  uint32_t nrate;
  tarn_host_rate rate[TARN_HOST_RATES]; /* by rising size */
} tarn_host_peaks;
/* Nothing is timed for more than what `reach` bytes need, and levels beyond have rates of 0: main
 * memory takes a second. Raises. */
TARN_API void tarn_host_measure(tarn_ctx *cx, uint32_t threads, size_t reach, tarn_host_peaks *out);
/* The rates at a size: between two that were timed along its logarithm, beyond them those at the
 * end. Pure. */
TARN_API tarn_host_rate tarn_host_rate_at(const tarn_host_peaks *p, double bytes);
#ifdef __cplusplus
}
#endif
#endif
