/* tarn report DIR */
#include "cli/ptx.h"
#include "cli/timing.h"
#include <string.h>

/* A program of one size that this machine can run as it is. */
static bool is_timed(tarn_ctx *cx, const cli_compile *c) {
  return !cli_is_ptx(cx, c->dir) && !tarn_has_stream(cx, c->dir) && !c->programs.n;
}
int tarn_cmd_report(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, none = {0};
  uint64_t repeat = 20, threads = 0;
  bool plain = false;
  size_t n;
  const char *usage = "report DIR|MODEL [-o PAGE] [--chain FILE] [--plain]", *page = NULL,
             *chain = NULL;
  const cli_opt opts[] = {
      {"--output", "-o", CLI_STR, &page, "PAGE", "the page (default: report.html in DIR)"},
      {"--chain", NULL, CLI_STR, &chain, "FILE", "the rewrites that compile --explain FILE wrote"},
      {"--plain", NULL, CLI_FLAG, &plain, NULL, "measure nothing"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "threads that are measured (default: all)"},
      {"--repeat", NULL, CLI_U32, &repeat, "R", "timed runs (default 20)"},
      {"--hw", NULL, CLI_STR, &c.hw, "NAME|FILE", "hardware that MODEL is compiled for"},
      {"--seed", NULL, CLI_UINT, &c.seed, "K", "seed of random inputs"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS", "bind a dynamic shape of MODEL"},
      CLI_SET(c),
      CLI_OUTPUTS(c),
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1 || !repeat) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  const char *dir = cli_folder(cx, words.p[0], &c);
  if (!page && dir != words.p[0])
    tarn_raise(cx, TARN_USAGE, "report MODEL: -o says where to write");
  if (!page) page = tarn_format(cx, "%s/report.html", dir);
  const char *report = tarn_read_file(cx, tarn_format(cx, "%s/report.json", dir), &n);
  const char *steps = chain ? tarn_read_file(cx, chain, &(size_t){0}) : NULL;
  cli_timing t = {0};
  bool timed = !plain && is_timed(cx, &c);
  if (timed) t = cli_time(cx, &c, cli_load_folder(cx, dir, &c), &none, (uint32_t)threads, repeat);
  cli_report_page(cx, report, n, steps, timed ? &t : NULL, page);
  return 0;
}
