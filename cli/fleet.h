/* What the commands that speak to a fleet share. */
#ifndef TARN_CLI_FLEET_H
#define TARN_CLI_FLEET_H
#include "cli/cli.h"
#include "fleet/fleet.h"

typedef struct cli_fleet {
  const char *url, *creds, *tlsca;
  bool insecure;
  double silence, patience;
} cli_fleet;
/* Rows of their tables. */
#define CLI_FLEET(x)                                                                               \
  {"--creds", NULL, CLI_STR, &(x).creds, "FILE", "credentials for NATS, as its tools write them"}, \
      {"--tlsca", NULL, CLI_STR, &(x).tlsca, "FILE", "speak TLS and trust these authorities"},     \
      {"--insecure", NULL, CLI_FLAG, &(x).insecure, NULL, "in the clear to other machines too"}, { \
    "--silence", NULL, CLI_REAL, &(x).silence, "S",                                                \
        "a worker not heard for S seconds has died (default 30)"                                   \
  }
/* Connects; what a person should know meanwhile goes to stderr. */
tarn_fleet *cli_fleet_open(tarn_ctx *cx, const cli_fleet *o);

/* A search that is measured by a fleet. */
typedef struct cli_fleet_run {
  const tarn_measurer *by;
  const char *db; /* a store of this search alone, which begins with what was known before it */
} cli_fleet_run;
/* run: names the search; the same one goes on where it was. watch as in fleet/fleet.h. */
cli_fleet_run cli_fleet_begin(tarn_ctx *cx, const cli_fleet *o, const tarn_hw *hw, const char *db,
                              const char *run, void (*watch)(void *, const tarn_fleet_view *),
                              void *user);
#endif
