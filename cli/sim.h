/* What the files of tarn sim share. */
#ifndef TARN_CLI_SIM_H
#define TARN_CLI_SIM_H
#include "cli/cli.h"
#include "sim/sim.h"

/* A page for a browser: p has been run, traced; the figures of each segment. */
void cli_sim_page(tarn_ctx *cx, const tarn_sim_program *p, const tarn_sim_result *each,
                  const char *path);
#endif
