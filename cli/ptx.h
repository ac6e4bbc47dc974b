/* Folders that were compiled for a GPU: run in the executor of sim/ptx.h. */
#ifndef TARN_CLI_PTX_H
#define TARN_CLI_PTX_H
#include "cli/cli.h"

/* Is it such a folder? */
bool cli_is_ptx(tarn_ctx *cx, const char *dir);
/* tarn sim DIR: one run on random or given inputs, its outputs to files, and what was counted. */
void cli_ptx_sim(tarn_ctx *cx, const char *dir, const cli_list *given, const char *to, bool check,
                 bool json);
#endif
