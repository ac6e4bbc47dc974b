/* DLPack's structures, version 0.8, whose layout is its interface
 * (https://dmlc.github.io/dlpack/latest/c_api.html). */
#ifndef TARN_PYTHON_DLPACK_H
#define TARN_PYTHON_DLPACK_H
#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA_HOST = 3 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };
typedef struct dl_device {
  int32_t type, id;
} dl_device;
typedef struct dl_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} dl_dtype;
typedef struct dl_tensor {
  void *data;
  dl_device device;
  int32_t n;
  dl_dtype dtype;
  int64_t *dim, *stride; /* stride NULL: row-major */
  uint64_t offset;       /* bytes */
} dl_tensor;
typedef struct dl_managed {
  dl_tensor tensor;
  void *user;
  void (*deleter)(struct dl_managed *self);
} dl_managed;

#endif
