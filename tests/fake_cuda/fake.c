/* libcuda.so.1 without a GPU, for tests: the functions of CUDA's driver API that tarn calls, their
 * kernels run in the executor of PTX (sim/ptx.h).
 *
 * It refuses what the real one refuses: calls before cuInit(), without a current context or with
 * one that is gone, null arguments, handles that were freed or belong to another context, copies
 * beyond an allocation, memory freed twice, launches that no block fits, copies of the host's
 * memory while a stream is captured, PTX for a newer driver or a newer device. A kernel that does
 * something wrong is found when the stream is waited for, and spoils the context, as on a GPU.
 *
 * What it lacks: one module a context, loaded before memory is allocated; streams are in order, and
 * run when something is put into them.
 *
 * FAKE_CUDA, or fake_cuda_is() from the process itself, says what it is: words of `option` below.
 */
#include "base/base.h"
#include "runtime/cuda_driver.h"
#include "sim/ptx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- what it is */
static struct {
  long devices, driver, capability, memory, nocapture, noreset, threads;
  char wild[128];   /* a kernel that accesses what it may not */
  char refuse[128]; /* a kernel that no launch is possible of */
} is;
static const struct option {
  const char *name;
  long *number;
  char *text;
} options[] = {{"devices=", &is.devices, NULL},
               {"driver=", &is.driver, NULL},
               {"capability=", &is.capability, NULL},
               {"memory=", &is.memory, NULL},
               {"nocapture=", &is.nocapture, NULL},
               {"noreset=", &is.noreset, NULL},
               {"wild=", NULL, is.wild},
               {"refuse=", NULL, is.refuse}};
#define OPTIONS (sizeof options / sizeof *options)

void fake_cuda_is(const char *words);
void fake_cuda_is(const char *words) {
  memset(&is, 0, sizeof is);
  is.devices = 1, is.driver = 12040, is.capability = 80, is.memory = 1L << 34;
  for (const char *at = words; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
    for (size_t i = 0; i < OPTIONS; i++) {
      size_t n = strlen(options[i].name), m = strcspn(at, " ");
      if (strncmp(at, options[i].name, n)) continue;
      if (options[i].number) *options[i].number = strtol(at + n, NULL, 10);
      else snprintf(options[i].text, 128, "%.*s", (int)(m - n), at + n);
    }
}

/* ---------------------------------------------------------------- what has been done */
static struct { long graphs, graph_launches, launches, copied, allocations, contexts; } done;
static const struct counter {
  const char *name;
  long *n;
} counters[] = {
    {"graphs", &done.graphs},           {"graph_launches", &done.graph_launches},
    {"launches", &done.launches},       {"copied", &done.copied},      /* bytes to the device */
    {"allocations", &done.allocations}, {"contexts", &done.contexts}}; /* there now */
long fake_cuda_count(const char *name);
long fake_cuda_count(const char *name) {
  for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
    if (!strcmp(name, counters[i].name)) return *counters[i].n;
  return -1;
}

/* ---------------------------------------------------------------- objects */
typedef enum kind { CONTEXT = 1, MODULE, FUNCTION, STREAM, EVENT, GRAPH, EXEC } kind;
typedef struct node { /* of a graph */
  uint32_t entry, grid[3], block[3], shared;
  char param[1024];
} node;
/* Never freed, so that a handle which is no longer good is told. */
typedef struct object {
  kind kind;
  bool alive;
  struct object *context;
  /* CONTEXT */
  tarn_ctx *cx;
  tarn_ptx *ptx;
  tarn_ptx_device *d;
  int error; /* sticky */
  long users;
  tarn_ptx_counts counts;
  /* FUNCTION */
  uint32_t entry;
  int dynamic;
  /* STREAM */
  struct object *graph; /* that is captured */
  bool spoilt;
  /* EVENT */
  int64_t at;
  bool recorded;
  /* GRAPH, EXEC */
  TARN_VEC(node) node;
  struct object *before; /* of all that were made */
} object;
typedef struct allocation {
  object *context;
  uint64_t at;
  size_t bytes;
  bool alive;
} allocation;

static bool started;
static object *primary, *made, *stack[16];
static int depth;
static tarn_ctx *all; /* of what outlives contexts */
static TARN_VEC(allocation) memory;

static object *object_new(kind k, object *context) {
  object *o = calloc(1, sizeof *o);
  *o = (object){.kind = k, .alive = true, .context = context, .before = made};
  made = o;
  return o;
}
static bool good(const void *handle, kind k, const object *context) {
  const object *o = handle;
  return o && o->kind == k && o->alive && (k == CONTEXT || o->context == context);
}
static object *current(int *error) {
  object *c = depth ? stack[depth - 1] : NULL;
  *error = !started ? CU_NOT_INITIALIZED : !c || !c->alive ? CU_INVALID_CONTEXT : c->error;
  return c;
}
#define CURRENT(c)                                                                                 \
  int error_;                                                                                      \
  object *c = current(&error_);                                                                    \
  if (error_) return error_
#define NEEDS(condition, error)                                                                    \
  if (!(condition)) return error

/* ---------------------------------------------------------------- the driver, devices */
int cuInit(unsigned flags);
int cuInit(unsigned flags) {
  NEEDS(!flags, CU_INVALID_VALUE);
  if (!is.driver) fake_cuda_is(getenv("FAKE_CUDA"));
  if (!all) all = tarn_ctx_new(NULL);
  NEEDS(is.devices > 0, CU_NO_DEVICE);
  started = true;
  return CU_OK;
}
int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version) {
  NEEDS(version, CU_INVALID_VALUE);
  *version = (int)is.driver;
  return CU_OK;
}
static const struct named {
  int error;
  const char *name, *text;
} errors[] = {
    {CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CU_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available"},
    {CU_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CU_UNSUPPORTED_PTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported toolchain"},
    {CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CU_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested"},
    {CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not while capturing"}};
static int describe(int error, const char **to, bool name) {
  NEEDS(to, CU_INVALID_VALUE);
  *to = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == error) *to = name ? errors[i].name : errors[i].text;
  return *to ? CU_OK : CU_INVALID_VALUE;
}
int cuGetErrorName(int error, const char **name);
int cuGetErrorName(int error, const char **name) { return describe(error, name, true); }
int cuGetErrorString(int error, const char **text);
int cuGetErrorString(int error, const char **text) { return describe(error, text, false); }
int cuDeviceGetCount(int *n);
int cuDeviceGetCount(int *n) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(n, CU_INVALID_VALUE);
  *n = (int)is.devices;
  return CU_OK;
}
int cuDeviceGet(int *device, int i);
int cuDeviceGet(int *device, int i) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(device, CU_INVALID_VALUE);
  NEEDS(i >= 0 && i < is.devices, CU_INVALID_DEVICE);
  *device = i;
  return CU_OK;
}
int cuDeviceGetName(char *name, int n, int device);
int cuDeviceGetName(char *name, int n, int device) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(name && n > 0, CU_INVALID_VALUE);
  NEEDS(device == 0, CU_INVALID_DEVICE);
  snprintf(name, (size_t)n, "an executor of PTX");
  return CU_OK;
}
int cuDeviceGetAttribute(int *v, int attribute, int device);
int cuDeviceGetAttribute(int *v, int attribute, int device) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(v, CU_INVALID_VALUE);
  NEEDS(device == 0, CU_INVALID_DEVICE);
  if (attribute == CU_MAJOR) *v = (int)is.capability / 10;
  else if (attribute == CU_MINOR) *v = (int)is.capability % 10;
  else if (attribute == CU_L2_BYTES) *v = 4096;
  else return CU_INVALID_VALUE;
  return CU_OK;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(bytes, CU_INVALID_VALUE);
  NEEDS(device == 0, CU_INVALID_DEVICE);
  *bytes = (size_t)is.memory;
  return CU_OK;
}

/* ---------------------------------------------------------------- contexts */
int cuDevicePrimaryCtxRetain(object **c, int device);
int cuDevicePrimaryCtxRetain(object **c, int device) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(c, CU_INVALID_VALUE);
  NEEDS(device == 0, CU_INVALID_DEVICE);
  if (!primary) {
    primary = object_new(CONTEXT, NULL);
    primary->cx = tarn_ctx_new(NULL);
    done.contexts++;
  }
  primary->users++;
  *c = primary;
  return CU_OK;
}
static void destroy(object *c) {
  for (uint32_t i = 0; i < memory.n; i++)
    if (memory.p[i].context == c && memory.p[i].alive)
      memory.p[i].alive = false, done.allocations--;
  c->alive = false;
  tarn_ctx_free(c->cx);
  primary = NULL;
  done.contexts--;
}
static long reset_users; /* who had retained the context that was reset */
int cuDevicePrimaryCtxReset_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(device == 0, CU_INVALID_DEVICE);
  NEEDS(!is.noreset, CU_NOT_SUPPORTED);
  if (!primary) return CU_OK;
  reset_users += primary->users;
  destroy(primary);
  return CU_OK;
}
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(device == 0, CU_INVALID_DEVICE);
  if (reset_users > 0) return reset_users--, CU_OK;
  NEEDS(primary, CU_INVALID_CONTEXT);
  if (--primary->users == 0 && !is.noreset) destroy(primary);
  return CU_OK;
}
int cuCtxPushCurrent_v2(object *c);
int cuCtxPushCurrent_v2(object *c) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(good(c, CONTEXT, NULL) && depth < 16, CU_INVALID_CONTEXT);
  stack[depth++] = c;
  return CU_OK;
}
int cuCtxPopCurrent_v2(object **c);
int cuCtxPopCurrent_v2(object **c) {
  NEEDS(started, CU_NOT_INITIALIZED);
  NEEDS(depth, CU_INVALID_CONTEXT);
  depth--;
  if (c) *c = stack[depth];
  return CU_OK;
}

/* ---------------------------------------------------------------- memory */
static size_t used(void) {
  size_t sum = 0;
  for (uint32_t i = 0; i < memory.n; i++)
    if (memory.p[i].alive) sum += memory.p[i].bytes;
  return sum;
}
int cuMemGetInfo_v2(size_t *left, size_t *total);
int cuMemGetInfo_v2(size_t *left, size_t *total) {
  CURRENT(c);
  (void)c;
  NEEDS(left && total, CU_INVALID_VALUE);
  *total = (size_t)is.memory;
  *left = *total - used();
  return CU_OK;
}
typedef struct mapping {
  object *c;
  size_t bytes;
  uint64_t at;
} mapping;
static void map(tarn_ctx *cx, void *arg) {
  mapping *m = arg;
  void *data = tarn_new_aligned(cx, m->bytes + 64, 256);
  memset(data, 0xa5, m->bytes);
  m->at =
      tarn_ptx_map(m->c->d, "memory of the device", data, (int64_t)m->bytes, TARN_PTX_UNDEFINED);
  tarn_push(all, &memory, ((allocation){m->c, m->at, m->bytes, true}));
}
int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int cuMemAlloc_v2(uint64_t *at, size_t bytes) {
  CURRENT(c);
  mapping m = {c, bytes, 0};
  NEEDS(at && bytes, CU_INVALID_VALUE);
  NEEDS(bytes <= (size_t)is.memory - used(), CU_OUT_OF_MEMORY);
  NEEDS(c->d, CU_NOT_SUPPORTED); /* see above */
  NEEDS(tarn_protect(c->cx, map, &m) == TARN_OK, CU_OUT_OF_MEMORY);
  *at = m.at;
  done.allocations++;
  return CU_OK;
}
int cuMemFree_v2(uint64_t at);
int cuMemFree_v2(uint64_t at) {
  CURRENT(c);
  for (uint32_t i = 0; i < memory.n; i++) {
    allocation *a = &memory.p[i];
    if (a->at != at || a->context != c || !a->alive) continue;
    a->alive = false;
    tarn_ptx_unmap(c->d, at);
    done.allocations--;
    return CU_OK;
  }
  return CU_INVALID_VALUE;
}
/* Device memory lies low, the host's high. *ok: it is the host's, or all of it is allocated. */
static char *reach(const object *c, uint64_t at, size_t bytes, bool *device, bool *ok) {
  *device = at >= (UINT64_C(1) << 32) && at < (UINT64_C(1) << 43);
  *ok = at != 0;
  if (!*device) return (char *)(uintptr_t)at;
  for (uint32_t i = 0; i < memory.n; i++) {
    const allocation *a = &memory.p[i];
    if (a->context != c || !a->alive || at < a->at || at - a->at > a->bytes) continue;
    *ok = a->bytes - (at - a->at) >= bytes;
    return tarn_ptx_data(c->d, at);
  }
  *ok = false;
  return NULL;
}
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, object *s);
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, object *s) {
  CURRENT(c);
  bool there, here, ok[2];
  NEEDS(good(s, STREAM, c), CU_INVALID_HANDLE);
  char *t = reach(c, to, bytes, &there, &ok[0]), *f = reach(c, from, bytes, &here, &ok[1]);
  NEEDS(ok[0] && ok[1], CU_INVALID_VALUE);
  if (s->graph) return s->spoilt = true, CU_CAPTURE_UNSUPPORTED;
  memmove(t, f, bytes);
  if (there) tarn_ptx_mark(c->d, to, (int64_t)bytes, TARN_PTX_WRITTEN);
  if (there && !here) done.copied += (long)bytes;
  return CU_OK;
}
int cuMemsetD8Async(uint64_t at, unsigned char v, size_t bytes, object *s);
int cuMemsetD8Async(uint64_t at, unsigned char v, size_t bytes, object *s) {
  CURRENT(c);
  bool device, ok;
  NEEDS(good(s, STREAM, c), CU_INVALID_HANDLE);
  char *to = reach(c, at, bytes, &device, &ok);
  NEEDS(ok && device, CU_INVALID_VALUE);
  if (s->graph) return s->spoilt = true, CU_CAPTURE_UNSUPPORTED;
  memset(to, v, bytes);
  tarn_ptx_mark(c->d, at, (int64_t)bytes, TARN_PTX_WRITTEN);
  return CU_OK;
}

/* ---------------------------------------------------------------- modules */
static long number(const char *text, const char *word) {
  const char *at = strstr(text, word);
  long v = 0;
  for (at = at ? at + strlen(word) : ""; (*at >= '0' && *at <= '9') || *at == '.'; at++)
    if (*at != '.') v = 10 * v + (*at - '0');
  return v;
}
typedef struct reading {
  object *c;
  const char *text;
} reading;
static void read_module(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  r->c->ptx = tarn_ptx_read(cx, r->text, strlen(r->text), "ptx");
  r->c->d = tarn_ptx_device_new(cx, r->c->ptx);
}
static void log_error(const char *line, unsigned n, const int *option, void **value) {
  size_t room = 0;
  for (unsigned i = 0; i < n; i++)
    if (option[i] == CU_JIT_ERRORS_BYTES) room = (size_t)(uintptr_t)value[i];
  for (unsigned i = 0; i < n; i++)
    if (option[i] == CU_JIT_ERRORS && room) snprintf(value[i], room, "%s", line);
}
int cuModuleLoadDataEx(object **m, const void *image, unsigned n, int *option, void **value);
int cuModuleLoadDataEx(object **m, const void *image, unsigned n, int *option, void **value) {
  CURRENT(c);
  reading r = {c, image};
  NEEDS(m && image && (!n || (option && value)), CU_INVALID_VALUE);
  long isa = number(image, ".version "), needs = 1000 * (isa / 10 + 4) + 10 * (isa % 10);
  NEEDS(needs <= is.driver, CU_UNSUPPORTED_PTX);
  NEEDS(number(image, ".target sm_") <= is.capability, CU_NO_BINARY);
  NEEDS(!c->ptx, CU_NOT_SUPPORTED); /* see above */
  if (tarn_protect(c->cx, read_module, &r) != TARN_OK) {
    log_error(tarn_message(c->cx), n, option, value);
    return CU_INVALID_PTX;
  }
  *m = object_new(MODULE, c);
  return CU_OK;
}
static int release(object *o, kind k) {
  CURRENT(c);
  NEEDS(good(o, k, c), CU_INVALID_HANDLE);
  o->alive = false;
  return CU_OK;
}
int cuModuleUnload(object *m);
int cuModuleUnload(object *m) {
  int error = release(m, MODULE);
  if (!error) m->context->ptx = NULL;
  return error;
}
int cuModuleGetFunction(object **f, object *m, const char *name);
int cuModuleGetFunction(object **f, object *m, const char *name) {
  CURRENT(c);
  NEEDS(f && name, CU_INVALID_VALUE);
  NEEDS(good(m, MODULE, c), CU_INVALID_HANDLE);
  uint32_t entry = tarn_ptx_find(c->ptx, name);
  NEEDS(entry != TARN_NONE, CU_NOT_FOUND);
  *f = object_new(FUNCTION, c);
  (*f)->entry = entry;
  return CU_OK;
}
/* Of a block, where its kernel was allowed to have it: A100's and H100's. */
static int most_shared(void) { return (is.capability < 90 ? 163 : 227) << 10; }
int cuFuncSetAttribute(object *f, int attribute, int v);
int cuFuncSetAttribute(object *f, int attribute, int v) {
  CURRENT(c);
  NEEDS(good(f, FUNCTION, c), CU_INVALID_HANDLE);
  NEEDS(attribute == CU_DYNAMIC_SHARED && v >= 0 && v <= most_shared(), CU_INVALID_VALUE);
  f->dynamic = v;
  return CU_OK;
}

/* ---------------------------------------------------------------- launches */
typedef struct running {
  object *c;
  const node *n;
} running;
static void run_node(tarn_ctx *cx, void *arg) {
  const running *r = arg;
  tarn_ptx_launch l = {.entry = r->n->entry, .shared = r->n->shared, .param = r->n->param};
  memcpy(l.grid, r->n->grid, sizeof l.grid), memcpy(l.block, r->n->block, sizeof l.block);
  if (!strcmp(tarn_ptx_entry_at(r->c->ptx, l.entry)->name, is.wild))
    tarn_raise(cx, TARN_BAD_INPUT, "%s runs wild", is.wild);
  tarn_ptx_run(r->c->d, &l, &r->c->counts);
}
static void run_now(object *c, const node *n) {
  running r = {c, n};
  done.launches++;
  if (c->error || tarn_protect(c->cx, run_node, &r) == TARN_OK) return;
  fprintf(stderr, "fake CUDA: %s\n", tarn_message(c->cx));
  c->error = CU_ILLEGAL_ADDRESS;
}
static int check_launch(const object *c, const object *f, const node *n) {
  const tarn_ptx_entry *e = tarn_ptx_entry_at(c->ptx, f->entry);
  uint64_t threads = (uint64_t)n->block[0] * n->block[1] * n->block[2];
  uint64_t most =
      (uint64_t)e->most[0] * (e->most[1] ? e->most[1] : 1) * (e->most[2] ? e->most[2] : 1);
  NEEDS(threads && threads <= 1024 && (!most || threads <= most), CU_INVALID_VALUE);
  NEEDS(n->grid[0] && n->grid[1] && n->grid[2], CU_INVALID_VALUE);
  NEEDS(n->grid[1] <= 65535 && n->grid[2] <= 65535 && n->grid[0] <= INT32_MAX, CU_INVALID_VALUE);
  NEEDS(n->shared <= (48u << 10) || n->shared <= (uint32_t)f->dynamic, CU_INVALID_VALUE);
  NEEDS(e->shared + n->shared <= (uint32_t)most_shared() && e->shared <= (48u << 10),
        CU_INVALID_VALUE);
  NEEDS(strcmp(e->name, is.refuse) != 0, CU_OUT_OF_RESOURCES);
  NEEDS(e->param_bytes <= sizeof n->param, CU_NOT_SUPPORTED);
  return CU_OK;
}
int cuLaunchKernel(object *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, object *s, void **param, void **extra);
int cuLaunchKernel(object *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, object *s, void **param, void **extra) {
  CURRENT(c);
  NEEDS(good(f, FUNCTION, c) && good(s, STREAM, c), CU_INVALID_HANDLE);
  NEEDS(!extra, CU_NOT_SUPPORTED);
  node n = {.entry = f->entry, .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared};
  int error = check_launch(c, f, &n);
  const tarn_ptx_entry *e = tarn_ptx_entry_at(c->ptx, f->entry);
  NEEDS(!error, error);
  NEEDS(param || !e->nparam, CU_INVALID_VALUE);
  for (uint32_t i = 0; i < e->nparam; i++) {
    NEEDS(param[i], CU_INVALID_VALUE);
    memcpy(n.param + e->param[i].offset, param[i], e->param[i].bytes);
  }
  if (s->graph) tarn_push(c->cx, &s->graph->node, n);
  else run_now(c, &n);
  return CU_OK;
}

/* ---------------------------------------------------------------- streams, graphs */
int cuStreamCreate(object **s, unsigned flags);
int cuStreamCreate(object **s, unsigned flags) {
  CURRENT(c);
  NEEDS(s && flags <= CU_NON_BLOCKING, CU_INVALID_VALUE);
  *s = object_new(STREAM, c);
  return CU_OK;
}
int cuStreamDestroy_v2(object *s);
int cuStreamDestroy_v2(object *s) { return release(s, STREAM); }
int cuStreamSynchronize(object *s);
int cuStreamSynchronize(object *s) {
  CURRENT(c);
  NEEDS(good(s, STREAM, c), CU_INVALID_HANDLE);
  if (s->graph) return s->spoilt = true, CU_CAPTURE_UNSUPPORTED;
  return CU_OK;
}
int cuStreamBeginCapture_v2(object *s, int mode);
int cuStreamBeginCapture_v2(object *s, int mode) {
  CURRENT(c);
  NEEDS(good(s, STREAM, c), CU_INVALID_HANDLE);
  NEEDS(mode >= 0 && mode <= 2 && !s->graph, CU_INVALID_VALUE);
  NEEDS(!is.nocapture, CU_NOT_SUPPORTED);
  s->graph = object_new(GRAPH, c), s->spoilt = false;
  return CU_OK;
}
int cuStreamEndCapture(object *s, object **g);
int cuStreamEndCapture(object *s, object **g) {
  CURRENT(c);
  NEEDS(good(s, STREAM, c), CU_INVALID_HANDLE);
  NEEDS(g && s->graph, CU_INVALID_VALUE);
  *g = s->spoilt ? NULL : s->graph;
  s->graph = NULL;
  return s->spoilt ? CU_CAPTURE_UNSUPPORTED : CU_OK;
}
int cuGraphInstantiateWithFlags(object **x, object *g, unsigned long long flags);
int cuGraphInstantiateWithFlags(object **x, object *g, unsigned long long flags) {
  CURRENT(c);
  NEEDS(x && !flags && good(g, GRAPH, c), CU_INVALID_VALUE);
  *x = object_new(EXEC, c);
  for (uint32_t i = 0; i < g->node.n; i++) tarn_push(c->cx, &(*x)->node, g->node.p[i]);
  done.graphs++;
  return CU_OK;
}
int cuGraphDestroy(object *g);
int cuGraphDestroy(object *g) { return release(g, GRAPH); }
int cuGraphExecDestroy(object *x);
int cuGraphExecDestroy(object *x) { return release(x, EXEC); }
int cuGraphLaunch(object *x, object *s);
int cuGraphLaunch(object *x, object *s) {
  CURRENT(c);
  NEEDS(good(x, EXEC, c) && good(s, STREAM, c), CU_INVALID_HANDLE);
  NEEDS(!s->graph, CU_CAPTURE_UNSUPPORTED);
  for (uint32_t i = 0; i < x->node.n; i++) run_now(c, &x->node.p[i]);
  done.graph_launches++;
  return CU_OK;
}

/* ---------------------------------------------------------------- events: time is instructions */
int cuEventCreate(object **e, unsigned flags);
int cuEventCreate(object **e, unsigned flags) {
  CURRENT(c);
  NEEDS(e && !flags, CU_INVALID_VALUE);
  *e = object_new(EVENT, c);
  return CU_OK;
}
int cuEventDestroy_v2(object *e);
int cuEventDestroy_v2(object *e) { return release(e, EVENT); }
int cuEventRecord(object *e, object *s);
int cuEventRecord(object *e, object *s) {
  CURRENT(c);
  NEEDS(good(e, EVENT, c) && good(s, STREAM, c), CU_INVALID_HANDLE);
  e->at = c->counts.instructions, e->recorded = true;
  return CU_OK;
}
int cuEventElapsedTime(float *ms, object *from, object *to);
int cuEventElapsedTime(float *ms, object *from, object *to) {
  CURRENT(c);
  NEEDS(good(from, EVENT, c) && good(to, EVENT, c), CU_INVALID_HANDLE);
  NEEDS(ms && from->recorded && to->recorded, CU_INVALID_VALUE);
  *ms = 1e-6f * (float)(to->at - from->at);
  return CU_OK;
}
