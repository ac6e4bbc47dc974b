/* A program compiled for an accelerator, in a host program of its own. The accelerator is the
 * simulator here; a driver of real hardware takes its place by another `device`.
 *
 *   tarn compile digits8.onnx --shape n=1 --hw vta-pynq -o digits --name digits
 *   cc digits.c digits/here.so -Idigits $(pkg-config --cflags --libs tarn-sim tarn-rt)
 *   ./a.out digits
 *
 * Prints ten probabilities for an image of zeros. */
#include "model.h"
#include <runtime/rt.h>
#include <sim/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct accelerator {
  tarn_ctx *cx;
  const char *dir;
  tarn_lang *L;
  tarn_sim_program *p;
  uint32_t segment;
} accelerator;
static void load(tarn_ctx *cx, void *arg) {
  accelerator *a = arg;
  a->L = tarn_lang_new(cx);
  a->p = tarn_sim_load(a->L, a->dir, NULL);
}
static void run(tarn_ctx *cx, void *arg) {
  accelerator *a = arg;
  (void)cx;
  tarn_sim_run_segment(a->L, a->p, a->segment, -1);
}
/* Where the host has a buffer of the image: the workspace is one, inputs and outputs of the model
 * that the accelerator touches are others. */
static void *of_host(const tarn_sim_buffer *b, const void *const *in, void *const *out,
                     void *workspace) {
  if (b->role == TARN_SIM_SCRATCH) return workspace;
  for (uint32_t i = 0; i < DIGITS_INPUTS; i++)
    if (!strcmp(b->name, digits_model.in[i].name)) return (void *)(uintptr_t)in[i];
  for (uint32_t i = 0; i < DIGITS_OUTPUTS; i++)
    if (!strcmp(b->name, digits_model.out[i].name)) return out[i];
  return NULL; /* constants: they lie in the image */
}
static int device(void *user, uint32_t segment, const void *const *in, void *const *out,
                  void *workspace, char *message) {
  accelerator *a = user;
  a->segment = segment;
  for (uint32_t i = 0; i < a->p->nbuffer; i++) {
    const tarn_sim_buffer *b = &a->p->buffer[i];
    const void *host = of_host(b, in, out, workspace);
    if (host) memcpy(b->array.data, host, (size_t)b->bytes);
  }
  if (tarn_protect(a->cx, run, a) != TARN_OK) {
    snprintf(message, TARN_REF_MESSAGE, "%s", tarn_message(a->cx));
    return TARN_REF_FAILED;
  }
  for (uint32_t i = 0; i < a->p->nbuffer; i++) {
    const tarn_sim_buffer *b = &a->p->buffer[i];
    void *host = b->role == TARN_SIM_INPUT ? NULL : of_host(b, in, out, workspace);
    if (host) memcpy(host, b->array.data, (size_t)b->bytes);
  }
  return 0;
}
int main(int argc, char **argv) {
  static const float image[DIGITS_IN0_BYTES / sizeof(float)];
  float probability[DIGITS_OUT0_BYTES / sizeof(float)];
  accelerator a = {.cx = tarn_ctx_new(NULL)};
  tarn_rt_pool *pool = tarn_rt_pool_new(1);
  void *workspace = tarn_rt_workspace_new(digits_workspace(1));
  if (argc != 2 || !a.cx || !pool || !workspace) return 1;
  a.dir = argv[1];
  int failed = tarn_protect(a.cx, load, &a) != TARN_OK;
  if (failed) fprintf(stderr, "%s\n", tarn_message(a.cx));
  pool->device = device;
  pool->device_user = &a;
  if (!failed)
    failed =
        digits_run((const void *const[]){image}, (void *const[]){probability}, workspace, pool);
  if (failed && pool->message) fprintf(stderr, "%s\n", pool->message);
  for (size_t i = 0; !failed && i < sizeof probability / sizeof *probability; i++)
    printf("%.4f ", (double)probability[i]);
  printf("\n");
  free(workspace);
  tarn_rt_pool_free(pool);
  tarn_ctx_free(a.cx);
  return failed;
}
