/* The folder of a program for an accelerator, loaded with the simulator in its place. */
#include "compile/compile.h"
#include "runtime/rt.h"
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
