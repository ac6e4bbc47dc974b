/* tarn worker: measures for the tuners of a fleet. */
#include "cli/fleet.h"
#include "tune/child.h"
#include <signal.h>
#include <string.h>

/* Ctrl-C and SIGTERM are held back, by every thread, so that a job in hand goes to another worker
 * at once. */
static bool stopped(void *user) {
  sigset_t waiting;
  return cli_interrupted(user) || (!sigpending(&waiting) && sigismember(&waiting, SIGTERM) == 1);
}
static void hold_signals(void) {
  sigset_t set;
  sigemptyset(&set), sigaddset(&set, SIGINT), sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

static void report(tarn_ctx *cx, const tarn_worker_report *r, bool json) {
  if (!json) {
    printf("%u jobs, %u of them failed, %u while the machine's speed had changed, %u set aside; %u "
           "malformed\n",
           r->done, r->failed, r->drifted, r->aside, r->dropped);
    return;
  }
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "done", r->done, "failed", r->failed, "drifted", r->drifted, "aside", r->aside,
                "dropped", r->dropped);
  cli_json_print(j);
}

int tarn_cmd_worker(tarn_ctx *cx, int argc, char **argv) {
  cli_fleet f = {0};
  cli_list words = {0};
  tarn_worker_options o = {.stop = stopped};
  const char *hw = NULL;
  uint64_t memory = 0, jobs = 0;
  bool json = false;
  const char *usage = "worker --fleet URL [--hw host|NAME|FILE] [--cores LIST] [--simulate]";
  const cli_opt opts[] = {
      {"--fleet", NULL, CLI_STR, &f.url, "URL", "nats://HOST or tls://HOST"},
      {"--hw", NULL, CLI_STR, &hw, "NAME|FILE", "hardware that it measures for: host (default)"},
      {"--cores", NULL, CLI_STR, &o.cores, "LIST", "cores that kernels run on, as 0-3,8"},
      {"--name", NULL, CLI_STR, &o.name, "NAME", "what it is called (default: host and process)"},
      {"--user", NULL, CLI_STR, &o.user, "NAME",
       "where it is root, run kernels as this user (default nobody)"},
      {"--memory", NULL, CLI_U32, &memory, "MIB", "that a job may have (default 16384)"},
      {"--limit", NULL, CLI_REAL, &o.limit, "S", "seconds that a job may take (default 60)"},
      {"--simulate", NULL, CLI_FLAG, &o.simulate, NULL,
       "take the analytic price, or a simulator's cycles, for a time"},
      {"--pace", NULL, CLI_REAL, &o.pace, "S", "with --simulate: take so long for each job"},
      {"--jobs", NULL, CLI_U32, &jobs, "N", "end after N jobs"},
      {"--idle", NULL, CLI_REAL, &o.idle, "S", "end after S seconds without a job"},
      CLI_FLEET(f),
      {"--json", NULL, CLI_FLAG, &json, NULL, "print JSON when it ends"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n || !f.url) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  if (o.pace > 0 && !o.simulate) tarn_raise(cx, TARN_USAGE, "--pace: only with --simulate");
  o.memory = memory << 20, o.jobs = (uint32_t)jobs;
  tarn_folder_watch(cx);
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *here = cli_hosted(L, cli_hardware(L, hw));
  hold_signals();
  tarn_worker_report r = tarn_worker_run(cli_fleet_open(cx, &f), L, here, &o);
  report(cx, &r, json);
  return 0;
}
