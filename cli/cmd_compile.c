/* tarn compile MODEL */
#include "cli/cli.h"
#include <string.h>

static const char *folder_of(tarn_ctx *cx, const char *model) {
  const char *base = strrchr(model, '/');
  base = base ? base + 1 : model;
  const char *dot = strrchr(base, '.');
  return tarn_format(cx, "%.*s", (int)(dot && dot != base ? (size_t)(dot - base) : strlen(base)),
                     base);
}
int tarn_cmd_compile(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0};
  const char *usage = "compile MODEL [-o DIR] [options]";
  if (cli_parse(cx, usage, cli_compile_options(cx, &c), argc, argv, &words)) return 0;
  if (words.n != 1) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  c.model = words.p[0];
  if (!c.dir) {
    c.dir = folder_of(cx, c.model);
    if (!strcmp(c.dir, c.model)) c.dir = tarn_format(cx, "%s.out", c.dir);
  }
  const cli_compiled *r = cli_build(cx, &c);
  const tarn_sat_report *s = tarn_sat_result(r->sat);
  if (!c.json)
    fprintf(
        stderr,
        "%s: %u kernels, %u copies, predicted %.4g ms; %u e-nodes in %u iterations (%s); %.2f s\n",
        tarn_shown(cx, c.dir), r->graph.kernels, r->graph.copies, 1e3 * r->graph.price, s->nodes,
        s->iterations, s->stop, r->import_s + r->saturate_s + r->extract_s + r->lower_s);
  return 0;
}
