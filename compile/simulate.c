/* The folder of a program for an accelerator, loaded with the simulator in its place; and that of a
 * GPU, run in the executor of PTX. */
#include "compile/compile.h"
#include "runtime/rt.h"
#include "sim/ptx.h"
#include "sim/sim.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct device {
  tarn_ctx *cx;
  tarn_lang *L;
  tarn_sim_program *p;
  tarn_loaded *m;
  const void *const *in;
  void *const *out;
  void *workspace;
  uint32_t segment;
} device;

static uint32_t port_of(const tarn_loaded *m, bool outputs, const char *name) {
  const tarn_port *port;
  uint32_t n = tarn_loaded_ports(m, outputs, &port);
  for (uint32_t i = 0; i < n; i++)
    if (!strcmp(port[i].name, name)) return i;
  return TARN_NONE;
}
/* Where the host's code has a buffer of the image; NULL: it does not. */
static void *of_host(const device *d, const tarn_sim_buffer *b) {
  bool output = b->role == TARN_SIM_OUTPUT;
  if (b->role == TARN_SIM_SCRATCH) return d->workspace;
  if (b->role == TARN_SIM_CONSTANT) return NULL;
  uint32_t i = port_of(d->m, output, b->name);
  if (i == TARN_NONE) return NULL;
  return output ? d->out[i] : (void *)(uintptr_t)d->in[i];
}
static void exchange(const device *d, bool back) {
  for (uint32_t i = 0; i < d->p->nbuffer; i++) {
    const tarn_sim_buffer *b = &d->p->buffer[i];
    void *host = of_host(d, b);
    if (host && !back) memcpy(b->array.data, host, (size_t)b->bytes);
    if (host && back && b->role != TARN_SIM_INPUT) memcpy(host, b->array.data, (size_t)b->bytes);
  }
}
static void run_protected(tarn_ctx *cx, void *arg) {
  (void)cx;
  device *d = arg;
  exchange(d, false);
  tarn_sim_run_segment(d->L, d->p, d->segment, -1);
  exchange(d, true);
}
static int run(void *user, uint32_t segment, const void *const *in, void *const *out,
               void *workspace, char *message) {
  device *d = user;
  d->segment = segment;
  d->in = in;
  d->out = out;
  d->workspace = workspace;
  tarn_status st = tarn_protect(d->cx, run_protected, d);
  if (st != TARN_OK) snprintf(message, TARN_REF_MESSAGE, "%s", tarn_message(d->cx));
  return st == TARN_OK ? TARN_REF_OK : st == TARN_BAD_INPUT ? TARN_REF_PROGRAM : TARN_REF_FAILED;
}
bool tarn_has_stream(tarn_ctx *cx, const char *dir) {
  return !access(tarn_format(cx, "%s/memory.json", dir), F_OK);
}
tarn_loaded *tarn_load_simulated(tarn_ctx *cx, const char *dir) {
  device *d = TARN_NEW(cx, device);
  struct stat st; /* nothing there: all of it runs on the host */
  *d = (device){.cx = cx, .L = tarn_lang_new(cx)};
  d->m = tarn_load_file(cx, dir, "here.so");
  if (stat(tarn_format(cx, "%s/stream.bin", dir), &st) || !st.st_size) return d->m;
  d->p = tarn_sim_load(d->L, dir, NULL);
  tarn_loaded_device(d->m, run, d);
  return d->m;
}

/* ---------------------------------------------------------------- a GPU's */
struct tarn_executed {
  tarn_ptx_program *p;
  tarn_lang *L;
  const tarn_kprog *kernels;
};
tarn_executed *tarn_execute_load(tarn_ctx *cx, const char *dir) {
  tarn_executed *x = TARN_NEW(cx, tarn_executed);
  x->L = tarn_lang_new(cx);
  x->p = tarn_ptx_load(cx, dir);
  const tarn_hw *hw = tarn_hw_load(x->L, x->p->hw);
  const char *path = tarn_format(cx, "%s/program.tarn", dir);
  const tarn_sx *all = tarn_sx_read_file(cx, path);
  x->kernels = tarn_kprog_parse(x->L, hw, all->n == 1 ? all->kid[0] : all);
  if (x->kernels->nbuf != x->p->nbuffer)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %u buffers, launch.json has %u", path, x->kernels->nbuf,
               x->p->nbuffer);
  return x;
}
uint32_t tarn_execute_ports(const tarn_executed *x, bool outputs, const tarn_port **ports) {
  uint32_t n = outputs ? x->p->nout : x->p->nin;
  const tarn_ptx_port *from = outputs ? x->p->out : x->p->in;
  tarn_port *to = TARN_ARRAY(tarn_lang_ctx(x->L), tarn_port, n + 1);
  for (uint32_t i = 0; i < n; i++)
    to[i] = (tarn_port){from[i].name, from[i].dtype, from[i].n, from[i].dim};
  *ports = to;
  return n;
}

/* Kernels on the host. */
static int64_t elements_of(const tarn_kprog *p, uint32_t root) {
  int64_t n = 0;
  for (uint32_t b = 0; b < p->nbuf; b++) {
    uint32_t r = b;
    while (p->buf[r].parent != TARN_NONE) r = p->buf[r].parent;
    if (r == root) n = tarn_max(n, tarn_layout_elems(&p->buf[b].layout) + p->buf[b].layout.offset);
  }
  return n;
}
static void on_host(void *user, const char *kernel, void *const *buffer, int64_t *written) {
  const tarn_executed *x = user;
  const tarn_kprog *p = x->kernels;
  tarn_ctx *cx = tarn_lang_ctx(x->L);
  uint32_t k = 0;
  while (k < p->nker && strcmp(p->ker[k].name, kernel)) k++;
  if (k == p->nker)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: program.tarn has no kernel %s", x->p->dir, kernel);
  tarn_tensor **mem = TARN_ARRAY(cx, tarn_tensor *, p->nbuf);
  for (uint32_t b = 0; b < p->nbuf; b++) {
    if (p->buf[b].parent != TARN_NONE || !buffer[b]) continue;
    mem[b] = TARN_NEW(cx, tarn_tensor);
    *mem[b] = (tarn_tensor){.dtype = p->buf[b].dtype, .n = 1, .data = buffer[b]};
    mem[b]->dim[0] = elements_of(p, b);
  }
  tarn_kprog_step(p, k, mem, TARN_STRICT, tarn_opaque_eval);
  for (uint32_t i = 0; i < p->ker[k].nout; i++) {
    uint32_t b = p->ker[k].out[i];
    while (p->buf[b].parent != TARN_NONE) b = p->buf[b].parent;
    written[b] = elements_of(p, b) * (int64_t)tarn_dtype_size(p->buf[b].dtype);
  }
}
void tarn_execute_run(tarn_executed *x, const tarn_tensor *const *in, tarn_tensor *const *out) {
  tarn_ptx_program_run(tarn_lang_ctx(x->L), x->p, in, out, on_host, x);
}
const tarn_ptx_program *tarn_execute_program(const tarn_executed *x) { return x->p; }
