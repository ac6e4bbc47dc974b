/* A loaded program, for the files that load and run one. */
#ifndef TARN_LOWER_LOADED_H
#define TARN_LOWER_LOADED_H
#include "lower/lower.h"
#include "runtime/rt.h"

struct tarn_loaded {
  tarn_ctx *cx;
  void *so;
  int file; /* 1 + what it was loaded from; 0: nothing that is still open */
  const tarn_rt_model *m;
  const tarn_rt_sizes *sizes;   /* NULL: it has one program */
  uint32_t program;             /* of them, selected */
  int64_t *size;                /* that are selected */
  const tarn_rt_family *family; /* NULL, or that the selected program serves */
  tarn_port *port[2];
  tarn_rt_pool *pool;
  uint32_t threads; /* asked for when the pool was made */
  tarn_device_fn *device;
  void *device_user;
  void *workspace;
  void *weights; /* of a file of their own, mapped; NULL */
  size_t weight_bytes;
  const void **in;
  void **out;
  void **shared; /* by output: the buffer that it and an input lie in, NULL */
};

/* load.c: m->m has just been set. */
void low_loaded_describe(tarn_loaded *m);
/* Of the program that is selected: its workspace and buffers. */
void low_loaded_drop(tarn_loaded *m);
/* load_sizes.c: selects sizes of the first program. */
void low_loaded_first(tarn_loaded *m);
#endif
