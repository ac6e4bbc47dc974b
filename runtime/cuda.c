/* A GPU as the device of a pool: see cuda.h.
 *
 * A pool has one context, stream and module, one piece of device memory for all that kernels touch,
 * and a graph for each segment, captured when it runs first. Every function returns true, or false
 * with a line in `why`. */
#include "runtime/cuda.h"
#include "runtime/cuda_driver.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST 11040 /* the driver that knows all of what is called here */
#define ALIGN  256   /* of everything on the device */

typedef struct cuda {
  cu_driver d;
  const tarn_rt_model *m;
  const tarn_rt_gpu *gpu;
  int device;
  cu_context context;
  cu_stream stream;
  cu_module module;
  cu_function *function; /* of each launch */
  cu_graph_exec *graph;  /* of each segment; NULL: not captured yet */
  cu_address memory, constants, workspace, flags, *in, *out;
  uint32_t *flag; /* of launches with lookups, as a run has left them */
  uint32_t nflag;
  cu_address *argument; /* of a launch, and where each lies */
  void **param;
  bool *plain; /* segments that could not be captured */
  bool lost;   /* the context is gone, and no new one could be had */
  int code;    /* of what failed last */
  char *why;   /* TARN_REF_MESSAGE bytes */
} cuda;

/* ---------------------------------------------------------------- messages */
__attribute__((format(printf, 2, 3))) static bool fails(char *why, const char *fmt, ...) {
  va_list a;
  va_start(a, fmt);
  vsnprintf(why, TARN_REF_MESSAGE, fmt, a);
  va_end(a);
  return false;
}
/* "WHAT: CUDA_ERROR_…: text" */
static bool failed(const cuda *g, int error, const char *what) {
  const char *name = NULL, *text = NULL;
  if (g->d.error_name(error, &name) || !name) name = "unknown error";
  if (g->d.error_text(error, &text) || !text) text = "";
  return fails(g->why, "%s: %s: %s", what, name, text);
}
#define TRY(g, call, what)                                                                         \
  do {                                                                                             \
    int error_ = (g)->d.call;                                                                      \
    if (error_) return failed(g, error_, what);                                                    \
  } while (0)
static const char *kernel_of(const cuda *g, const tarn_rt_launch *l) {
  return g->m->kernel_name[l->kernel];
}
static bool kernel_failed(cuda *g, const tarn_rt_launch *l, int error) {
  char what[TARN_REF_MESSAGE];
  g->code = TARN_REF_PROGRAM;
  snprintf(what, sizeof what, "kernel %.80s", kernel_of(g, l));
  return failed(g, error, what);
}

/* ---------------------------------------------------------------- the driver */
static bool load(cuda *g) {
  static const char *const name[] = {
#define NAME(symbol, member, args) symbol,
      CU_FUNCTIONS(NAME)
#undef NAME
  };
  g->d.handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!g->d.handle) return fails(g->why, "no NVIDIA driver: %s", dlerror());
  for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
    void *f = dlsym(g->d.handle, name[i]);
    if (!f) return fails(g->why, "the NVIDIA driver is too old: it has no %s", name[i]);
    memcpy((char *)&g->d + i * sizeof f, &f, sizeof f);
  }
  return true;
}
static bool find_device(cuda *g) {
  int n = 0, error = g->d.init(0);
  if (error == CU_NO_DEVICE) return fails(g->why, "no NVIDIA GPU: the driver shows none");
  if (error) return failed(g, error, "the NVIDIA driver does not start");
  TRY(g, device_count(&n), "counting GPUs");
  if (n < 1) return fails(g->why, "no NVIDIA GPU: the driver shows none");
  TRY(g, device_get(&g->device, 0), "the first GPU");
  return true;
}
static bool describe(const cuda *g, tarn_rt_cuda_info *info) {
  int major = 0, minor = 0, driver = 0;
  size_t memory = 0;
  TRY(g, driver_version(&driver), "version of the driver");
  TRY(g, device_name(info->name, sizeof info->name, g->device), "name of the GPU");
  TRY(g, device_attribute(&major, CU_MAJOR, g->device), "architecture of the GPU");
  TRY(g, device_attribute(&minor, CU_MINOR, g->device), "architecture of the GPU");
  TRY(g, device_memory(&memory, g->device), "memory of the GPU");
  info->name[sizeof info->name - 1] = 0;
  info->architecture = (uint32_t)(10 * major + minor);
  info->driver = (uint32_t)driver;
  info->memory = memory;
  return true;
}
/* The CUDA that first knew a version of PTX: 7.0 is of 11.0, 8.0 of 12.0, 9.0 of 13.0. */
static uint32_t driver_for(uint32_t isa) {
  uint32_t major = isa / 10 + 4, minor = isa % 10;
  uint32_t needed = 1000 * major + 10 * minor;
  return needed > OLDEST ? needed : OLDEST;
}
static bool fits(const cuda *g, const tarn_rt_cuda_info *info) {
  uint32_t need = driver_for(g->gpu->isa);
  if (info->driver < need)
    return fails(g->why, "the NVIDIA driver is too old: it knows CUDA %u.%u, %u.%u is needed",
                 info->driver / 1000, info->driver % 1000 / 10, need / 1000, need % 1000 / 10);
  if (info->architecture < g->gpu->architecture)
    return fails(g->why, "the program is for sm_%u, %.60s is sm_%u", g->gpu->architecture,
                 info->name, info->architecture);
  return true;
}

/* ---------------------------------------------------------------- memory */
static uint64_t round_up(uint64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }
static uint64_t bytes_of(const tarn_rt_port *p, uint32_t n) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += round_up(p[i].bytes);
  return sum;
}
static uint64_t spread(const tarn_rt_port *p, uint32_t n, uint64_t at, cu_address *to) {
  for (uint32_t i = 0; i < n; i++) {
    to[i] = at;
    at += round_up(p[i].bytes);
  }
  return at;
}
static bool allocate(cuda *g) {
  const tarn_rt_model *m = g->m;
  size_t have = 0, all = 0;
  uint64_t want = round_up(m->const_bytes) + round_up(g->gpu->workspace) + bytes_of(m->in, m->nin) +
                  bytes_of(m->out, m->nout) + round_up(g->nflag * TARN_RT_FLAG) + ALIGN;
  TRY(g, memory_info(&have, &all), "free memory of the GPU");
  int error = want > have ? CU_OUT_OF_MEMORY : g->d.memory_new(&g->memory, want);
  if (error == CU_OUT_OF_MEMORY)
    return fails(g->why, "too little memory on the GPU: %llu bytes are wanted, %llu of %llu free",
                 (unsigned long long)want, (unsigned long long)have, (unsigned long long)all);
  if (error) return failed(g, error, "memory on the GPU");
  g->constants = g->memory;
  uint64_t at = spread(m->in, m->nin, g->constants + round_up(m->const_bytes), g->in);
  g->flags = spread(m->out, m->nout, at, g->out);
  g->workspace = g->flags + round_up(g->nflag * TARN_RT_FLAG);
  return true;
}
static bool upload_constants(const cuda *g) {
  if (!g->m->const_bytes) return true;
  TRY(g, copy(g->constants, (uintptr_t)g->m->consts, g->m->const_bytes, g->stream),
      "copying constants to the GPU");
  TRY(g, stream_wait(g->stream), "copying constants to the GPU");
  return true;
}
static cu_address address(const cuda *g, const tarn_rt_place *x) {
  switch (x->at) {
  case TARN_RT_INPUT: return g->in[x->index] + x->offset;
  case TARN_RT_OUTPUT: return g->out[x->index] + x->offset;
  case TARN_RT_CONSTANTS: return g->constants + x->offset;
  case TARN_RT_FLAGS: return g->flags + x->offset;
  default: return g->workspace + x->offset;
  }
}

/* ---------------------------------------------------------------- the module */
static bool load_module(cuda *g) {
  char log[1024] = "";
  int option[2] = {CU_JIT_ERRORS, CU_JIT_ERRORS_BYTES};
  void *value[2] = {log, (void *)(uintptr_t)sizeof log};
  int error = g->d.module_load(&g->module, g->gpu->ptx, 2, option, value);
  if (!error) return true;
  log[sizeof log - 1] = 0;
  log[strcspn(log, "\n")] = 0;
  return failed(g, error, *log ? log : "the program's PTX");
}
static bool find_functions(cuda *g) {
  for (uint32_t i = 0; i < g->gpu->nlaunch; i++) {
    const tarn_rt_launch *l = &g->gpu->launch[i];
    int error = g->d.function_get(&g->function[i], g->module, l->entry);
    if (!error && l->shared)
      error = g->d.function_set(g->function[i], CU_DYNAMIC_SHARED, (int)l->shared);
    if (error) return kernel_failed(g, l, error);
  }
  return true;
}
/* The context and all that lies in it. */
static bool enter(cuda *g) {
  TRY(g, context_push(g->context), "the GPU's context");
  return true;
}
static void leave(const cuda *g) {
  cu_context c;
  (void)g->d.context_pop(&c);
}
static bool fill_context(cuda *g) {
  TRY(g, stream_new(&g->stream, CU_NON_BLOCKING), "a stream of the GPU");
  return load_module(g) && find_functions(g) && allocate(g) && upload_constants(g);
}
static bool open_context(cuda *g) {
  TRY(g, context_retain(&g->context, g->device), "the GPU's context");
  if (!enter(g)) return false;
  bool ok = fill_context(g);
  leave(g);
  return ok;
}
static void drop_graphs(cuda *g) {
  for (uint32_t i = 0; i < g->gpu->nsegment; i++)
    if (g->graph && g->graph[i]) (void)g->d.graph_exec_free(g->graph[i]), g->graph[i] = NULL;
}
static void close_context(cuda *g) {
  if (!g->context) return;
  if (!g->d.context_push(g->context)) {
    drop_graphs(g);
    if (g->memory) (void)g->d.memory_free(g->memory);
    if (g->module) (void)g->d.module_unload(g->module);
    if (g->stream) (void)g->d.stream_free(g->stream);
    leave(g);
  }
  (void)g->d.context_release(g->device);
  g->context = NULL, g->module = NULL, g->stream = NULL, g->memory = 0;
}

/* ---------------------------------------------------------------- launches */
static int launch(const cuda *g, uint32_t i) {
  const tarn_rt_launch *l = &g->gpu->launch[i];
  for (uint32_t a = 0; a < l->narg; a++) {
    g->argument[a] = address(g, &l->arg[a]);
    g->param[a] = &g->argument[a];
  }
  return g->d.launch(g->function[i], l->grid, 1, 1, l->block, 1, 1, l->shared, g->stream, g->param,
                     NULL);
}
static bool launch_all(cuda *g, const tarn_rt_segment *s) {
  for (uint32_t i = s->first; i < s->first + s->n; i++) {
    int error = launch(g, i);
    if (error) return kernel_failed(g, &g->gpu->launch[i], error);
  }
  return true;
}
/* The segment's launches as a graph; where the driver captures none they are launched each time. */
static bool capture(cuda *g, uint32_t segment) {
  cu_graph graph = NULL;
  if (g->d.capture_begin(g->stream, CU_CAPTURE_OWN_THREAD)) return g->plain[segment] = true;
  bool ok = launch_all(g, &g->gpu->segment[segment]);
  int error = g->d.capture_end(g->stream, &graph);
  if (ok && !error) error = g->d.graph_make(&g->graph[segment], graph, 0);
  if (graph) (void)g->d.graph_free(graph);
  if (error) g->plain[segment] = true, g->graph[segment] = NULL;
  return ok;
}
/* *lost: the error is of the device, so that the context is gone. */
static bool start(cuda *g, uint32_t segment, int *lost) {
  const tarn_rt_segment *s = &g->gpu->segment[segment];
  if (!s->n) return true;
  if (!g->graph[segment] && !g->plain[segment] && !capture(g, segment)) return false;
  if (g->plain[segment]) return launch_all(g, s);
  return !(*lost = g->d.graph_launch(g->graph[segment], g->stream));
}

/* ---------------------------------------------------------------- copies */
typedef struct ports {
  const void *const *in;
  void *const *out;
  void *workspace;
} ports;
static uintptr_t on_host(const tarn_rt_model *m, const ports *p, const tarn_rt_place *x) {
  switch (x->at) {
  case TARN_RT_INPUT: return (uintptr_t)p->in[x->index] + x->offset;
  case TARN_RT_OUTPUT: return (uintptr_t)p->out[x->index] + x->offset;
  case TARN_RT_CONSTANTS: return (uintptr_t)m->consts + x->offset;
  default: return (uintptr_t)p->workspace + x->offset;
  }
}
static const char *copied(const cuda *g, const tarn_rt_place *x, char *text, size_t n) {
  const char *name = x->at == TARN_RT_INPUT    ? g->m->in[x->index].name
                     : x->at == TARN_RT_OUTPUT ? g->m->out[x->index].name
                                               : "an intermediate result";
  snprintf(text, n, "copying %.80s", name);
  return text;
}
static bool exchange(const cuda *g, const ports *p, const tarn_rt_transfer *t, uint32_t n,
                     bool back) {
  char what[100];
  for (uint32_t i = 0; i < n; i++) {
    cu_address there = address(g, &t[i].place);
    uintptr_t here = on_host(g->m, p, &t[i].place);
    if (!t[i].bytes) continue;
    TRY(g, copy(back ? here : there, back ? there : here, t[i].bytes, g->stream),
        copied(g, &t[i].place, what, sizeof what));
  }
  return true;
}

/* ---------------------------------------------------------------- lookups */
static bool looks_up(const cuda *g, const tarn_rt_segment *s) {
  for (uint32_t i = s->first; i < s->first + s->n; i++)
    if (g->gpu->launch[i].rows) return true;
  return false;
}
static bool clear_flags(const cuda *g, const tarn_rt_segment *s) {
  if (looks_up(g, s))
    TRY(g, set(g->flags, 0, g->nflag * TARN_RT_FLAG, g->stream), "clearing the flags of lookups");
  return true;
}
static bool fetch_flags(const cuda *g, const tarn_rt_segment *s) {
  if (looks_up(g, s))
    TRY(g, copy((uintptr_t)g->flag, g->flags, g->nflag * TARN_RT_FLAG, g->stream),
        "copying the flags of lookups");
  return true;
}
/* The segment has ended, and its flags are here. */
static bool all_inside(cuda *g, const tarn_rt_segment *s) {
  for (uint32_t i = s->first; i < s->first + s->n; i++) {
    const tarn_rt_launch *l = &g->gpu->launch[i];
    if (!l->rows || !g->flag[l->arg[l->narg - 1].offset / TARN_RT_FLAG]) continue;
    g->code = TARN_REF_INDEX;
    if (l->rows == TARN_RT_ANY_ROWS)
      return fails(g->why, "%.80s: an index is out of range", kernel_of(g, l));
    return fails(g->why, "%.80s: an index is out of range, the axis has %u elements",
                 kernel_of(g, l), l->rows);
  }
  return true;
}

/* ---------------------------------------------------------------- failures of the device */
static bool reopen(cuda *g) {
  for (uint32_t i = 0; i < g->gpu->nsegment; i++) g->graph[i] = NULL;
  (void)g->d.context_reset(g->device);
  (void)g->d.context_release(g->device);
  g->context = NULL, g->module = NULL, g->stream = NULL, g->memory = 0;
  return open_context(g);
}
/* The first launch of the segment that fails when each is waited for; what it read is gone, so the
 * inputs are copied again, which is all there is where there is one segment. */
static bool find_failed(cuda *g, const ports *p, const tarn_rt_segment *s, const char *first) {
  if (!exchange(g, p, s->to, s->nto, false)) return false;
  for (uint32_t i = s->first; i < s->first + s->n; i++) {
    int error = launch(g, i);
    if (!error) error = g->d.stream_wait(g->stream);
    if (error) return kernel_failed(g, &g->gpu->launch[i], error);
  }
  return fails(g->why, "%s; one by one the kernels ran", first);
}
/* A kernel has taken the context with it. Leaves why it failed in g->why, and a new context where
 * one is to be had. */
static void diagnose(cuda *g, const ports *p, uint32_t segment, int error) {
  const tarn_rt_segment *s = &g->gpu->segment[segment];
  char first[TARN_REF_MESSAGE], what[TARN_REF_MESSAGE];
  const tarn_rt_launch *l = &g->gpu->launch[s->first];
  if (s->n < 2) snprintf(what, sizeof what, "kernel %.80s", s->n ? kernel_of(g, l) : "");
  else
    snprintf(what, sizeof what, "kernel %.40s, or one behind it up to %.40s", kernel_of(g, l),
             kernel_of(g, &g->gpu->launch[s->first + s->n - 1]));
  failed(g, error, what);
  g->code = TARN_REF_PROGRAM;
  memcpy(first, g->why, sizeof first);
  leave(g);
  g->lost = !reopen(g) || !enter(g);
  if (!g->lost && g->gpu->nsegment == 1 && s->n > 1) {
    find_failed(g, p, s, first);
    memcpy(first, g->why, sizeof first);
    leave(g);
    g->lost = !reopen(g) || !enter(g);
  }
  memcpy(g->why, first, sizeof first);
}

/* ---------------------------------------------------------------- a run */
static bool run(cuda *g, uint32_t segment, const ports *p) {
  const tarn_rt_segment *s = &g->gpu->segment[segment];
  int lost = 0;
  bool ok = exchange(g, p, s->to, s->nto, false) && clear_flags(g, s) && start(g, segment, &lost) &&
            fetch_flags(g, s) && exchange(g, p, s->from, s->nfrom, true);
  int error = g->d.stream_wait(g->stream);
  if (!lost && error) lost = error;
  if (lost) diagnose(g, p, segment, lost);
  return ok && !lost && all_inside(g, s);
}
static int device(void *user, uint32_t segment, const void *const *in, void *const *out,
                  void *workspace, char *message) {
  cuda *g = user;
  ports p = {in, out, workspace};
  g->why = message, g->code = TARN_REF_FAILED;
  if (g->lost)
    return fails(message, "the GPU's context was lost in an earlier run"), TARN_REF_FAILED;
  if (!enter(g)) return TARN_REF_FAILED;
  bool ok = run(g, segment, &p);
  if (!g->lost) leave(g);
  return ok ? TARN_REF_OK : g->code;
}

/* ---------------------------------------------------------------- pools */
static void drop(void *user) {
  cuda *g = user;
  if (!g->lost) close_context(g);
  if (g->d.handle) dlclose(g->d.handle);
  free(g->function), free(g->graph), free(g->plain), free(g->in), free(g->out), free(g->flag);
  free(g->argument), free(g->param);
  free(g);
}
static bool make_lists(cuda *g) {
  const tarn_rt_model *m = g->m;
  uint32_t most = 1;
  for (uint32_t i = 0; i < g->gpu->nlaunch; i++) {
    if (g->gpu->launch[i].narg > most) most = g->gpu->launch[i].narg;
    g->nflag += g->gpu->launch[i].rows != 0;
  }
  g->flag = calloc(g->nflag + 1, sizeof *g->flag);
  g->argument = calloc(most, sizeof *g->argument), g->param = calloc(most, sizeof *g->param);
  g->function = calloc(g->gpu->nlaunch + 1, sizeof *g->function);
  g->graph = calloc(g->gpu->nsegment + 1, sizeof *g->graph);
  g->plain = calloc(g->gpu->nsegment + 1, sizeof *g->plain);
  g->in = calloc(m->nin + 1, sizeof *g->in), g->out = calloc(m->nout + 1, sizeof *g->out);
  return g->flag && g->function && g->graph && g->plain && g->in && g->out && g->argument &&
         g->param;
}
static bool open_all(cuda *g) {
  tarn_rt_cuda_info info = {0};
  g->gpu = g->m->version >= 3 ? g->m->gpu : NULL;
  if (!g->gpu) return fails(g->why, "the model was not compiled for a GPU");
  if (g->m->version > TARN_RT_VERSION)
    return fails(g->why, "the model is of version %u, this runtime knows %d", g->m->version,
                 TARN_RT_VERSION);
  if (!make_lists(g)) return fails(g->why, "out of memory");
  return load(g) && find_device(g) && describe(g, &info) && fits(g, &info) && open_context(g);
}
tarn_rt_pool *tarn_rt_cuda_pool_new(const tarn_rt_model *model, uint32_t threads,
                                    char message[TARN_REF_MESSAGE]) {
  cuda *g = calloc(1, sizeof *g);
  message[0] = 0;
  tarn_rt_pool *pool = g ? tarn_rt_pool_new(threads) : NULL;
  if (!pool) {
    free(g);
    return fails(message, "no memory or no threads for a pool of %u", threads), NULL;
  }
  g->m = model, g->why = message;
  if (!open_all(g)) {
    drop(g);
    tarn_rt_pool_free(pool);
    return NULL;
  }
  pool->device = device, pool->device_user = g, pool->device_free = drop;
  pool->device_program = g->gpu;
  return pool;
}
int tarn_rt_cuda_info_get(tarn_rt_cuda_info *info, char message[TARN_REF_MESSAGE]) {
  cuda g = {.why = message};
  cu_context c;
  size_t have = 0, all = 0;
  *info = (tarn_rt_cuda_info){0};
  bool ok = load(&g) && find_device(&g) && describe(&g, info);
  if (ok && !g.d.context_retain(&g.context, g.device)) {
    if (!g.d.context_push(g.context)) {
      if (!g.d.memory_info(&have, &all)) info->free = have;
      (void)g.d.context_pop(&c);
    }
    (void)g.d.context_release(g.device);
  }
  if (g.d.handle) dlclose(g.d.handle);
  return ok ? TARN_REF_OK : TARN_REF_FAILED;
}

/* ---------------------------------------------------------------- time */
typedef struct clock {
  cu_event begin, end;
  cu_address flushed;
  size_t bytes; /* more than the L2 cache holds */
} clock;
static bool wind(const cuda *g, clock *c) {
  int l2 = 0;
  TRY(g, device_attribute(&l2, CU_L2_BYTES, g->device), "the L2 cache of the GPU");
  c->bytes = 2 * (size_t)l2;
  if (c->bytes) TRY(g, memory_new(&c->flushed, c->bytes), "memory to overwrite the L2 cache with");
  TRY(g, event_new(&c->begin, 0), "an event of the GPU");
  TRY(g, event_new(&c->end, 0), "an event of the GPU");
  return true;
}
static void unwind(const cuda *g, clock *c) {
  if (c->flushed) (void)g->d.memory_free(c->flushed);
  if (c->begin) (void)g->d.event_free(c->begin);
  if (c->end) (void)g->d.event_free(c->end);
}
static bool reads(const tarn_rt_launch *l, uint32_t kernel, uint32_t input) {
  bool yes = false;
  for (uint32_t a = 0; a < l->narg; a++)
    yes |= l->arg[a].at == TARN_RT_INPUT && l->arg[a].index == input;
  return yes && (kernel == TARN_RT_WHOLE || l->kernel == kernel);
}
static bool needs(const cuda *g, uint32_t kernel, uint32_t input) {
  bool yes = false;
  for (uint32_t i = 0; i < g->gpu->nlaunch; i++) yes |= reads(&g->gpu->launch[i], kernel, input);
  return yes && g->m->in[input].bytes;
}
static bool upload(const cuda *g, uint32_t kernel, const void *const *in) {
  for (uint32_t i = 0; in && i < g->m->nin; i++)
    if (needs(g, kernel, i))
      TRY(g, copy(g->in[i], (uintptr_t)in[i], g->m->in[i].bytes, g->stream), "copying inputs");
  return true;
}
static bool start_kernel(cuda *g, uint32_t kernel) {
  for (uint32_t i = 0; i < g->gpu->nlaunch; i++) {
    int error = g->gpu->launch[i].kernel == kernel ? launch(g, i) : CU_OK;
    if (error) return kernel_failed(g, &g->gpu->launch[i], error);
  }
  return true;
}
static bool start_whole(cuda *g) {
  int error = 0;
  for (uint32_t s = 0; s < g->gpu->nsegment; s++)
    if (!start(g, s, &error)) return error ? failed(g, error, "a graph of the GPU") : false;
  return true;
}
static bool round_of(cuda *g, const clock *c, uint32_t kernel, double *seconds) {
  float ms = 0;
  if (c->bytes) TRY(g, set(c->flushed, 0, c->bytes, g->stream), "overwriting the L2 cache");
  TRY(g, event_record(c->begin, g->stream), "an event of the GPU");
  if (!(kernel == TARN_RT_WHOLE ? start_whole(g) : start_kernel(g, kernel))) return false;
  int error = g->d.event_record(c->end, g->stream);
  if (!error) error = g->d.stream_wait(g->stream);
  if (error && kernel < g->m->nkernel) return failed(g, error, g->m->kernel_name[kernel]);
  if (error) return failed(g, error, "a kernel");
  TRY(g, event_elapsed(&ms, c->begin, c->end), "the time between two events");
  *seconds = 1e-3 * (double)ms;
  return true;
}
int tarn_rt_cuda_time(tarn_rt_pool *pool, const void *const *in, uint32_t kernel, uint32_t rounds,
                      double *seconds) {
  cuda *g = pool->device_user;
  clock c = {0};
  double warm;
  g->why = pool->message;
  if (!enter(g)) return TARN_REF_FAILED;
  bool ok = wind(g, &c) && upload(g, kernel, in) && round_of(g, &c, kernel, &warm);
  for (uint32_t i = 0; i < rounds && ok; i++) ok = round_of(g, &c, kernel, &seconds[i]);
  unwind(g, &c);
  leave(g);
  return ok ? TARN_REF_OK : TARN_REF_FAILED;
}
