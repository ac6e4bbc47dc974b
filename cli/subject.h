/* A compiled model that is to be run: on this machine, on its GPU, a GPU's in the executor, or a
 * WebAssembly module in node. */
#ifndef TARN_CLI_SUBJECT_H
#define TARN_CLI_SUBJECT_H
#include "cli/ptx.h"

typedef struct cli_subject {
  tarn_loaded *m;
  tarn_executed *x; /* or in the executor of its PTX */
  const char *wasm; /* or in node: the folder, and what it holds */
  const tarn_program *p;
} cli_subject;
typedef enum cli_where {
  CLI_DEVICE,   /* a GPU's program needs one */
  CLI_EITHER,   /* on a GPU where there is one, else in the executor */
  CLI_SIMULATED /* in the executor */
} cli_where;
/* Of DIR|MODEL, as cli_load(). */
cli_subject cli_open_subject(tarn_ctx *cx, const char *what, cli_compile *c, cli_where where);
uint32_t cli_subject_ports(const cli_subject *s, bool outputs, const tarn_port **ports);
tarn_tensor **cli_subject_run(tarn_ctx *cx, const cli_subject *s, tarn_tensor *const *in,
                              uint32_t threads);
#endif
