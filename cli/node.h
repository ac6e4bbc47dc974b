/* Folders that were compiled for WebAssembly: run in node. */
#ifndef TARN_CLI_NODE_H
#define TARN_CLI_NODE_H
#include "cli/cli.h"

/* Is it such a folder? */
bool cli_is_wasm(tarn_ctx *cx, const char *dir);
/* One run of the program p, which lies in dir. Raises TARN_IO where there is no node. */
tarn_tensor **cli_node_run(tarn_ctx *cx, const char *dir, const tarn_program *p,
                           tarn_tensor *const *in);
#endif
