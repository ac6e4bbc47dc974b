/* Runs a compiled model.so. The first run makes the pool and the workspace, which are kept. */
#include "lower/loaded.h"
#include "runtime/cuda.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void drop_pool(tarn_loaded *m) {
  tarn_rt_pool_free(m->pool);
  free(m->workspace);
  m->pool = NULL, m->workspace = NULL;
}
static void drop_shared(tarn_loaded *m) {
  for (uint32_t i = 0; m->shared && i < m->m->nout; i++) free(m->shared[i]);
  m->shared = NULL;
}

void low_loaded_drop(tarn_loaded *m) {
  free(m->workspace);
  m->workspace = NULL;
  drop_shared(m);
}
void tarn_unload(tarn_loaded *m) {
  if (!m->so) return;
  drop_pool(m);
  drop_shared(m);
  dlclose(m->so);
  if (m->weights) munmap(m->weights, m->weight_bytes);
  m->weights = NULL;
  if (m->file) close(m->file - 1);
  m->so = NULL, m->m = NULL;
}
static void unload(void *m) { tarn_unload(m); }

static tarn_port *ports(tarn_ctx *cx, const tarn_rt_port *p, uint32_t n) {
  tarn_port *out = TARN_ARRAY(cx, tarn_port, n);
  for (uint32_t i = 0; i < n; i++)
    out[i] = (tarn_port){p[i].name, (tarn_dtype)p[i].dtype, (uint32_t)p[i].n, p[i].dim};
  return out;
}

void tarn_loaded_device(tarn_loaded *m, tarn_device_fn *f, void *user) {
  m->device = f;
  m->device_user = user;
  drop_pool(m);
}
tarn_loaded *tarn_load(tarn_ctx *cx, const char *dir) {
  return tarn_load_file(cx, dir, "model.so");
}
/* A description of an object that has none: its one function. */
static const tarn_rt_model *described(tarn_loaded *m, const tarn_rt_model *like) {
  void *run = like ? dlsym(m->so, "tarn_run") : NULL;
  tarn_rt_model *x = TARN_NEW(m->cx, tarn_rt_model);
  if (!run) return NULL;
  *x = *like;
  memcpy(&x->run, &run, sizeof run);
  return x;
}
void low_loaded_describe(tarn_loaded *m) {
  m->port[0] = ports(m->cx, m->m->in, m->m->nin);
  m->port[1] = ports(m->cx, m->m->out, m->m->nout);
  m->in = TARN_ARRAY(m->cx, const void *, m->m->nin);
  m->out = TARN_ARRAY(m->cx, void *, m->m->nout);
}
static bool of_this_version(const tarn_loaded *m) {
  if (m->sizes) return m->sizes->version == TARN_RT_VERSION;
  return m->m && m->m->version == TARN_RT_VERSION;
}
/* model.weights, beside the object. */
static void map_weights(tarn_loaded *m, const char *so) {
  const tarn_rt_model *x = m->sizes ? m->sizes->program[0].model : m->m;
  const char *end = strrchr(so, '/');
  if (!x->weights || !x->const_bytes) return;
  const char *path =
      tarn_format(m->cx, "%.*s/model.weights", (int)(end ? end - so : 1), end ? so : ".");
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool ok = fd >= 0 && !fstat(fd, &st), right = ok && (uint64_t)st.st_size == x->const_bytes;
  void *p = right ? mmap(NULL, x->const_bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  int error = errno;
  if (fd >= 0) close(fd);
  if (ok && !right)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: has %lld bytes, %s needs %llu", path,
               (long long)st.st_size, so, (unsigned long long)x->const_bytes);
  if (p == MAP_FAILED) tarn_raise(m->cx, TARN_IO, "%s: %s", path, strerror(error));
  m->weights = p, m->weight_bytes = x->const_bytes;
  *x->weights = p;
}
/* like: of an object that has no description. */
static tarn_loaded *opened(tarn_ctx *cx, const char *path, const char *name,
                           const tarn_rt_model *like) {
  tarn_loaded *m = TARN_NEW(cx, tarn_loaded);
  m->cx = cx;
  m->so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!m->so) tarn_raise(cx, TARN_BAD_INPUT, "%s: %s", name, dlerror());
  tarn_defer(cx, unload, m);
  m->sizes = dlsym(m->so, "tarn_sizes");
  if (!m->sizes) m->m = dlsym(m->so, "tarn_model");
  if (!m->sizes && !m->m) m->m = described(m, like);
  if (!of_this_version(m))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: not a model compiled by this version", name);
  map_weights(m, path);
  if (m->sizes) low_loaded_first(m);
  else low_loaded_describe(m);
  return m;
}
tarn_loaded *tarn_load_file(tarn_ctx *cx, const char *dir, const char *file) {
  const char *path = tarn_format(cx, "%s%s/%s", *dir == '/' ? "" : "./", dir, file);
  return opened(cx, path, path, NULL);
}

/* Writes to a file in memory, which stays open as long as the object is loaded: its path is the
 * object's name, by which dlopen() knows it. */
static void fill_file(tarn_ctx *cx, int fd, const char *so, size_t n, const char *name) {
  for (size_t done = 0; done < n;) {
    ssize_t k = write(fd, so + done, n - done);
    if (k < 0 && errno != EINTR) tarn_raise(cx, TARN_IO, "%s: %s", name, strerror(errno));
    if (k > 0) done += (size_t)k;
  }
}
typedef struct memory_file {
  const char *so, *name;
  size_t n;
  int fd;
  const tarn_rt_model *like;
  tarn_loaded *m;
} memory_file;
static void load_file(tarn_ctx *cx, void *arg) {
  memory_file *f = arg;
  fill_file(cx, f->fd, f->so, f->n, f->name);
  f->m = opened(cx, tarn_format(cx, "/proc/self/fd/%d", f->fd), f->name, f->like);
  tarn_keep(cx, f->m);
}
static tarn_loaded *from_memory(tarn_ctx *cx, memory_file f) {
  f.fd = memfd_create("tarn", MFD_CLOEXEC);
  if (f.fd < 0) tarn_raise(cx, TARN_IO, "%s: %s", f.name, strerror(errno));
  tarn_status st = tarn_protect(cx, load_file, &f);
  if (st != TARN_OK) {
    close(f.fd);
    tarn_reraise(cx, st);
  }
  f.m->file = f.fd + 1;
  tarn_defer(cx, unload, f.m);
  return f.m;
}
tarn_loaded *tarn_load_bytes(tarn_ctx *cx, const void *so, size_t n, const char *name) {
  return from_memory(cx, (memory_file){.so = so, .n = n, .name = name});
}

static const tarn_rt_port *rt_ports(tarn_ctx *cx, const tarn_port *p, uint32_t n) {
  tarn_rt_port *out = TARN_ARRAY(cx, tarn_rt_port, n + 1);
  for (uint32_t i = 0; i < n; i++)
    out[i] = (tarn_rt_port){
        .name = p[i].name, .dtype = (int32_t)p[i].dtype, .n = (int32_t)p[i].n, .dim = p[i].dim};
  return out;
}
tarn_loaded *tarn_load_function(tarn_ctx *cx, const void *so, size_t n, const char *name,
                                const tarn_port *in, uint32_t nin, const tarn_port *out,
                                uint32_t nout) {
  tarn_rt_model *like = TARN_NEW(cx, tarn_rt_model);
  *like = (tarn_rt_model){.version = TARN_RT_VERSION, .nin = nin, .nout = nout};
  like->in = rt_ports(cx, in, nin);
  like->out = rt_ports(cx, out, nout);
  return from_memory(cx, (memory_file){.so = so, .n = n, .name = name, .like = like});
}

tarn_model_fn *tarn_loaded_function(const tarn_loaded *m) { return m->m->run; }
uint64_t tarn_loaded_workspace(const tarn_loaded *m, uint32_t threads) {
  if (m->sizes) return m->sizes->workspace(m->size, threads);
  return m->m->workspace + threads * m->m->per_thread;
}

uint32_t tarn_loaded_ports(const tarn_loaded *m, bool outputs, const tarn_port **p) {
  if (p) *p = m->port[outputs];
  return outputs ? m->m->nout : m->m->nin;
}
uint32_t tarn_loaded_kernels(const tarn_loaded *m) { return m->m->nkernel; }
const char *tarn_loaded_kernel_name(const tarn_loaded *m, uint32_t i) {
  return m->m->kernel_name[i];
}

static void check_port(tarn_loaded *m, const char *what, const tarn_port *p, const tarn_tensor *t) {
  bool same = t->dtype == p->dtype && t->n == p->n;
  for (uint32_t i = 0; same && i < p->n; i++) same = t->dim[i] == p->dim[i];
  if (same) return;
  tarn_raise(m->cx, TARN_BAD_INPUT, "%s %s: expects %s, given %s", what, p->name,
             tarn_dims_text(m->cx, p->dtype, p->n, p->dim),
             tarn_dims_text(m->cx, t->dtype, t->n, t->dim));
}

void tarn_loaded_constants_huge(tarn_loaded *m) { (void)tarn_rt_constants_huge(m->m); }

static void make_pool(tarn_loaded *m, uint32_t threads) {
  char why[TARN_REF_MESSAGE] = "";
  bool gpu = m->m->gpu && !m->device;
  m->pool = gpu ? tarn_rt_cuda_pool_new(m->m, threads, why) : tarn_rt_pool_new(threads);
  if (!m->pool && gpu) tarn_raise(m->cx, TARN_BAD_INPUT, "run: %s", why);
  if (!m->pool)
    tarn_raise(m->cx, TARN_MEMORY, "run: no memory or no threads for a pool of %u", threads);
  if (gpu) return;
  m->pool->device = m->device;
  m->pool->device_user = m->device_user;
}
/* ---- inputs that lie in outputs ---- */
/* Between a row-major tensor and the rows that it has of the buffer. */
static void move_rows(const tarn_rt_port *p, const tarn_tensor *t, char *buffer, bool to_buffer) {
  int64_t blocks = 1, row = (int64_t)tarn_dtype_size(t->dtype);
  for (uint32_t d = 0; d < p->axis; d++) blocks *= t->dim[d];
  for (uint32_t d = p->axis + 1; d < t->n; d++) row *= t->dim[d];
  int64_t have = t->dim[p->axis] * row;
  for (int64_t i = 0; i < blocks; i++) {
    char *at = buffer + i * p->rows * row, *of = (char *)t->data + i * have;
    memcpy(to_buffer ? at : of, to_buffer ? of : at, (size_t)have);
  }
}
static size_t shared_bytes(const tarn_loaded *m, uint32_t output) {
  const tarn_rt_port *p = &m->m->out[output];
  const tarn_port *t = &m->port[1][output];
  size_t bytes = tarn_dtype_size(t->dtype);
  for (uint32_t d = 0; d < t->n; d++) bytes *= (size_t)(d == p->axis ? p->rows : t->dim[d]);
  return bytes;
}
/* The tensors of a call are apart: a buffer of this program's own stands for those of a pair. */
static void enter_shared(tarn_loaded *m, const tarn_tensor *const *in) {
  if (!m->shared) m->shared = TARN_ARRAY(m->cx, void *, m->m->nout + 1);
  for (uint32_t o = 0; o < m->m->nout; o++) {
    const tarn_rt_port *p = &m->m->out[o];
    if (!p->pair) continue;
    if (!m->shared[o]) m->shared[o] = calloc(shared_bytes(m, o) + 1, 1);
    if (!m->shared[o]) tarn_raise(m->cx, TARN_MEMORY, "run: no memory for %s", p->name);
    move_rows(p, in[p->pair - 1], m->shared[o], true);
    m->out[o] = m->shared[o];
  }
}
static void leave_shared(tarn_loaded *m, tarn_tensor *const *out) {
  for (uint32_t o = 0; o < m->m->nout; o++)
    if (m->m->out[o].pair) move_rows(&m->m->out[o], out[o], m->shared[o], false);
}
bool tarn_loaded_in_place(const tarn_loaded *m, bool output, uint32_t port, tarn_in_place *x) {
  const tarn_rt_port *p = output ? &m->m->out[port] : &m->m->in[port];
  if (!p->pair) return false;
  uint32_t in = output ? p->pair - 1 : port, out = output ? port : p->pair - 1;
  *x = (tarn_in_place){.in = in, .out = out, .axis = p->axis, .rows = p->rows};
  x->filled = m->port[0][in].dim[p->axis];
  x->added = m->port[1][out].dim[p->axis] - x->filled;
  return true;
}

/* Checks the tensors, makes pool and workspace. */
static void prepare(tarn_loaded *m, const tarn_tensor *const *in, tarn_tensor *const *out,
                    uint32_t threads) {
  if (!m->m) tarn_raise(m->cx, TARN_INTERNAL, "run: the model is unloaded");
  for (uint32_t i = 0; i < m->m->nin; i++)
    check_port(m, "input", &m->port[0][i], in[i]), m->in[i] = in[i]->data;
  for (uint32_t i = 0; i < m->m->nout; i++)
    check_port(m, "output", &m->port[1][i], out[i]), m->out[i] = out[i]->data;
  enter_shared(m, in);
  if (m->pool) m->pool->message[0] = 0;
  if (m->pool && m->threads == threads && m->workspace) return;
  if (!m->pool || m->threads != threads) {
    drop_pool(m);
    m->threads = threads;
    make_pool(m, threads);
  }
  uint64_t bytes = tarn_loaded_workspace(m, m->pool->threads);
  m->workspace = tarn_rt_workspace_new(bytes);
  if (m->workspace) return;
  drop_pool(m);
  tarn_raise(m->cx, TARN_MEMORY, "run: no memory for a workspace of %llu bytes",
             (unsigned long long)bytes);
}

/* An index out of range is the input's fault, as the interpreter has it; so are instructions that
 * an accelerator refuses. */
static void settle(tarn_loaded *m, int code) {
  if (code == TARN_REF_OK) return;
  bool bad = code == TARN_REF_INDEX || code == TARN_REF_PROGRAM;
  tarn_status st = bad ? TARN_BAD_INPUT : TARN_NO_RESULT;
  tarn_raise(m->cx, st, "run: %s", m->pool->message[0] ? m->pool->message : "a kernel failed");
}

void tarn_loaded_run(tarn_loaded *m, const tarn_tensor *const *in, tarn_tensor *const *out,
                     uint32_t threads) {
  prepare(m, in, out, threads);
  if (m->sizes) settle(m, m->sizes->run(m->size, m->in, m->out, m->workspace, m->pool));
  else settle(m, m->m->run(m->in, m->out, m->workspace, m->pool));
  leave_shared(m, out);
}

/* Launches of a GPU are timed there. */
static bool on_gpu(const tarn_loaded *m, uint32_t k) {
  const tarn_rt_gpu *gpu = m->device ? NULL : m->m->gpu;
  for (uint32_t i = 0; gpu && i < gpu->nlaunch; i++)
    if (gpu->launch[i].kernel == k || k == TARN_RT_WHOLE) return true;
  return false;
}
static double timed(tarn_loaded *m, uint32_t k) {
  double t = tarn_now();
  if (on_gpu(m, k)) {
    settle(m, tarn_rt_cuda_time(m->pool, m->in, k, 1, &t));
    return t;
  }
  const tarn_rt_family *f = m->family;
  if (f) settle(m, f->kernel[k](m->in, m->out, m->workspace, m->pool, m->size));
  else settle(m, m->m->kernel[k](m->in, m->out, m->workspace, m->pool));
  return tarn_now() - t;
}
bool tarn_loaded_time(tarn_loaded *m, const tarn_tensor *const *in, tarn_tensor *const *out,
                      uint32_t kernel, uint32_t rounds, double *seconds) {
  prepare(m, in, out, 1);
  if (!on_gpu(m, kernel)) return false;
  settle(m, tarn_rt_cuda_time(m->pool, m->in, kernel, rounds, seconds));
  return true;
}
double tarn_loaded_kernel(tarn_loaded *m, const tarn_tensor *const *in, tarn_tensor *const *out,
                          uint32_t threads, uint32_t i) {
  prepare(m, in, out, threads);
  if (i >= m->m->nkernel) tarn_raise(m->cx, TARN_INTERNAL, "run: no kernel %u", i);
  return timed(m, i);
}
void tarn_loaded_profile(tarn_loaded *m, const tarn_tensor *const *in, tarn_tensor *const *out,
                         uint32_t threads, double *seconds) {
  prepare(m, in, out, threads);
  for (uint32_t k = 0; k < m->m->nkernel; k++) seconds[k] = timed(m, k);
}
