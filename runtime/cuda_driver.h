/* What tarn calls of CUDA's driver API, declared here so that nothing of CUDA is needed to build.
 *
 * Source: NVIDIA, "CUDA Driver API": the names, the order of the arguments and the numbers are part
 * of its binary interface. */
#ifndef TARN_RUNTIME_CUDA_DRIVER_H
#define TARN_RUNTIME_CUDA_DRIVER_H
#include <stddef.h>
#include <stdint.h>

typedef uint64_t cu_address;
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphExec_st *cu_graph_exec;

enum { /* results */
       CU_OK = 0,
       CU_INVALID_VALUE = 1,
       CU_OUT_OF_MEMORY = 2,
       CU_NOT_INITIALIZED = 3,
       CU_NO_DEVICE = 100,
       CU_INVALID_DEVICE = 101,
       CU_INVALID_CONTEXT = 201,
       CU_NO_BINARY = 209,
       CU_INVALID_PTX = 218,
       CU_UNSUPPORTED_PTX = 222,
       CU_INVALID_HANDLE = 400,
       CU_NOT_FOUND = 500,
       CU_ILLEGAL_ADDRESS = 700,
       CU_OUT_OF_RESOURCES = 701,
       CU_LAUNCH_FAILED = 719,
       CU_NOT_SUPPORTED = 801,
       CU_CAPTURE_UNSUPPORTED = 900
};
enum {
  CU_L2_BYTES = 38, /* attributes of a device */
  CU_MAJOR = 75,
  CU_MINOR = 76,
  CU_DYNAMIC_SHARED = 8, /* attribute of a function */
  CU_JIT_ERRORS = 5,     /* options of a module */
  CU_JIT_ERRORS_BYTES = 6,
  CU_NON_BLOCKING = 1, /* of a stream */
  CU_CAPTURE_OWN_THREAD = 1
};

/* Name in the library, name here, arguments. */
#define CU_FUNCTIONS(X)                                                                            \
  X("cuInit", init, (unsigned flags))                                                              \
  X("cuDriverGetVersion", driver_version, (int *version))                                          \
  X("cuGetErrorName", error_name, (int error, const char **name))                                  \
  X("cuGetErrorString", error_text, (int error, const char **text))                                \
  X("cuDeviceGetCount", device_count, (int *n))                                                    \
  X("cuDeviceGet", device_get, (int *device, int i))                                               \
  X("cuDeviceGetName", device_name, (char *name, int n, int device))                               \
  X("cuDeviceGetAttribute", device_attribute, (int *v, int attribute, int device))                 \
  X("cuDeviceTotalMem_v2", device_memory, (size_t * bytes, int device))                            \
  X("cuDevicePrimaryCtxRetain", context_retain, (cu_context * c, int device))                      \
  X("cuDevicePrimaryCtxRelease_v2", context_release, (int device))                                 \
  X("cuDevicePrimaryCtxReset_v2", context_reset, (int device))                                     \
  X("cuCtxPushCurrent_v2", context_push, (cu_context c))                                           \
  X("cuCtxPopCurrent_v2", context_pop, (cu_context * c))                                           \
  X("cuMemGetInfo_v2", memory_info, (size_t * free, size_t * total))                               \
  X("cuMemAlloc_v2", memory_new, (cu_address * at, size_t bytes))                                  \
  X("cuMemFree_v2", memory_free, (cu_address at))                                                  \
  X("cuMemcpyAsync", copy, (cu_address to, cu_address from, size_t bytes, cu_stream s))            \
  X("cuMemsetD8Async", set, (cu_address at, unsigned char v, size_t bytes, cu_stream s))           \
  X("cuModuleLoadDataEx", module_load,                                                             \
    (cu_module * m, const void *image, unsigned n, int *option, void **value))                     \
  X("cuModuleUnload", module_unload, (cu_module m))                                                \
  X("cuModuleGetFunction", function_get, (cu_function * f, cu_module m, const char *name))         \
  X("cuFuncSetAttribute", function_set, (cu_function f, int attribute, int v))                     \
  X("cuLaunchKernel", launch,                                                                      \
    (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,  \
     unsigned shared, cu_stream s, void **param, void **extra))                                    \
  X("cuStreamCreate", stream_new, (cu_stream * s, unsigned flags))                                 \
  X("cuStreamDestroy_v2", stream_free, (cu_stream s))                                              \
  X("cuStreamSynchronize", stream_wait, (cu_stream s))                                             \
  X("cuStreamBeginCapture_v2", capture_begin, (cu_stream s, int mode))                             \
  X("cuStreamEndCapture", capture_end, (cu_stream s, cu_graph * g))                                \
  X("cuGraphInstantiateWithFlags", graph_make,                                                     \
    (cu_graph_exec * x, cu_graph g, unsigned long long flags))                                     \
  X("cuGraphDestroy", graph_free, (cu_graph g))                                                    \
  X("cuGraphExecDestroy", graph_exec_free, (cu_graph_exec x))                                      \
  X("cuGraphLaunch", graph_launch, (cu_graph_exec x, cu_stream s))                                 \
  X("cuEventCreate", event_new, (cu_event * e, unsigned flags))                                    \
  X("cuEventDestroy_v2", event_free, (cu_event e))                                                 \
  X("cuEventRecord", event_record, (cu_event e, cu_stream s))                                      \
  X("cuEventElapsedTime", event_elapsed, (float *ms, cu_event from, cu_event to))

typedef struct cu_driver {
#define CU_MEMBER(symbol, name, args) int(*name) args;
  CU_FUNCTIONS(CU_MEMBER)
#undef CU_MEMBER
  void *handle; /* of dlopen */
} cu_driver;
#endif
