/* What the files of tarn sim share. */
#ifndef TARN_CLI_SIM_H
#define TARN_CLI_SIM_H
#include "cli/cli.h"
#include "sim/sim.h"

/* A page for a browser: p has been run, traced; the figures of each segment. */
void cli_sim_page(tarn_ctx *cx, const tarn_sim_program *p, const tarn_sim_result *each,
                  const char *path);
/* tarn hw fit: prints the terms and what is left of each program; out: NULL, or where the fitted
 * description goes. */
void cli_hw_fit(tarn_ctx *cx, tarn_lang *L, const char *name, const char *measurements,
                const char *out, bool json);
#endif
