/* What the reference kernels share. */
#ifndef TARN_REF_INTERNAL_H
#define TARN_REF_INTERNAL_H
#include "runtime/ref.h"
#include <stdbool.h>

/* Each kernel, and the table in ref.c: REF(ONNX name, function). */
#define TARN_REF_KERNELS(REF)                                                                      \
  REF(Det, ref_det)                                                                                \
  REF(GRU, ref_gru)                                                                                \
  REF(GatherElements, ref_gather_elements)                                                         \
  REF(GatherND, ref_gather_nd)                                                                     \
  REF(GridSample, ref_grid_sample)                                                                 \
  REF(LSTM, ref_lstm)                                                                              \
  REF(MaxUnpool, ref_max_unpool)                                                                   \
  REF(RNN, ref_rnn)                                                                                \
  REF(ReverseSequence, ref_reverse_sequence)                                                       \
  REF(RoiAlign, ref_roi_align)                                                                     \
  REF(ScatterElements, ref_scatter_elements)                                                       \
  REF(ScatterND, ref_scatter_nd)                                                                   \
  REF(TopK, ref_top_k)

#define REF(name, function) tarn_ref_kernel function;
TARN_REF_KERNELS(REF)
#undef REF

int ref_fail(tarn_ref_call *c, const char *why); /* sets the message; TARN_REF_FAILED */
int ref_outside(tarn_ref_call *c,
                const char *what); /* "an index", "a length" … is out of range; TARN_REF_INDEX */
const tarn_ref_attr *ref_attr(const tarn_ref_call *c, const char *name);
int64_t ref_int(const tarn_ref_call *c, const char *name, int64_t otherwise);
double ref_real(const tarn_ref_call *c, const char *name, double otherwise);
const char *ref_str(const tarn_ref_call *c, const char *name, const char *otherwise);
/* Input i, NULL when absent. */
const tarn_ref_tensor *ref_in(const tarn_ref_call *c, uint32_t i);
int64_t ref_count(const tarn_ref_tensor *t);
size_t ref_size(int32_t dtype);                            /* bytes of an element */
double ref_get(const tarn_ref_tensor *t, int64_t at);      /* any numeric type */
int64_t ref_get_int(const tarn_ref_tensor *t, int64_t at); /* integers exactly */
void ref_set(const tarn_ref_tensor *t, int64_t at, double v);
void ref_set_int(const tarn_ref_tensor *t, int64_t at, int64_t v);
/* Product of dims from .. to-1. */
int64_t ref_span(const tarn_ref_tensor *t, int32_t from, int32_t to);
int32_t ref_axis(const tarn_ref_call *c, int64_t otherwise,
                 int32_t rank); /* attribute axis; -1 when out of range */
/* Element i of index; a negative one counts from the end. False when it is outside. */
bool ref_index(const tarn_ref_tensor *index, int64_t i, int64_t extent, int64_t *at);

#endif
