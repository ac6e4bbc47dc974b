/* tarn hw/host: the description of the machine this runs on (in libtarn-tune).
 *
 * Topology and cache sizes come from hwloc, the processor's name and features from LLVM. Rates (clock,
 * bytes a cycle of each level) are what the machine states of itself and the usual figures of a processor of that vector
 * width, so that one machine always gives one description; with measure they are timed. */
#ifndef TARN_HW_HOST_H
#define TARN_HW_HOST_H
#include "hw/hw.h"
#ifdef __cplusplus
extern "C" {
#endif
/* This machine; measure: its rates timed, which takes a second or two. Raises. */
TARN_API const tarn_hw *tarn_hw_host(tarn_lang *L, bool measure);
/* What one core reaches: multiply-adds in f32 (FLOP a second, 2 each), and bytes a second read from a buffer of n bytes. */
TARN_API double tarn_host_fma_peak(void);
TARN_API double tarn_host_read_rate(tarn_ctx *cx, size_t n);
TARN_API double tarn_host_clock(void); /* Hz, rounded to 50 MHz */
#ifdef __cplusplus
}
#endif
#endif
