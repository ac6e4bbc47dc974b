/* Folders that were compiled for a GPU: run in the executor of sim/ptx.h. */
#ifndef TARN_CLI_PTX_H
#define TARN_CLI_PTX_H
#include "cli/cli.h"
#include "sim/ptx.h"

/* Is it such a folder? */
bool cli_is_ptx(tarn_ctx *cx, const char *dir);
typedef struct cli_ptx {
  tarn_ptx_program *p;
  tarn_lang *L;
  const tarn_kprog *kernels;
} cli_ptx;
cli_ptx *cli_ptx_load(tarn_ctx *cx, const char *dir);
uint32_t cli_ptx_ports(tarn_ctx *cx, const cli_ptx *x, bool outputs, const tarn_port **ports);
/* Kernels that are no PTX run in the interpreter. */
void cli_ptx_run(cli_ptx *x, tarn_tensor *const *in, tarn_tensor *const *out);
/* tarn sim DIR: one run on random or given inputs, its outputs to files, and what was counted. */
void cli_ptx_sim(tarn_ctx *cx, const char *dir, const cli_list *given, const char *to, bool check,
                 bool json);
#endif
