/* tarn hw show|check|derive NAME|FILE, tarn hw peaks */
#include "cli/peaks.h"
#include <string.h>

static void show(tarn_ctx *cx, tarn_lang *L, const char *name, bool measure) {
  const tarn_hw *h = !strcmp(name, "host") ? tarn_hw_host(L, measure) : tarn_hw_load(L, name);
  tarn_buf b = {.cx = cx};
  tarn_hw_print(h, &b);
  printf("%s\n", b.p);
}
/* The element type that the fastest intrinsic multiplies. */
static tarn_dtype fastest(const tarn_hw *h) {
  const tarn_hw_intrinsic *best = NULL;
  for (uint32_t i = 0; i < h->nintrin; i++)
    if (!best || h->intrin[i].ops * h->intrin[i].throughput > best->ops * best->throughput) best = &h->intrin[i];
  return best ? best->op[0].dtype : TARN_F32;
}
/* Reading is half of it; the other half is that every intrinsic has a meaning. */
static void check(tarn_ctx *cx, tarn_lang *L, const char *name) {
  (void)cx;
  const tarn_hw *h = cli_hardware(L, name);
  uint32_t n = tarn_ruleset_derive(tarn_ruleset_new(L, false), h);
  tarn_dtype t = fastest(h);
  printf("%s: ok, %u memories, %u intrinsics, %u derived rules, %.4g G%s/s in %s on all units\n", h->name, h->nmem, h->nintrin,
         n, 2e-9 * tarn_hw_peak(h, t, h->units), tarn_dtype_is_float(t) ? "FLOP" : "op", tarn_dtype_name(t));
}
static void derive(tarn_ctx *cx, tarn_lang *L, const char *name) {
  tarn_ruleset *rs = tarn_ruleset_new(L, false);
  uint32_t n = tarn_ruleset_derive(rs, cli_hardware(L, name));
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < n; i++) {
    tarn_buf_fmt(&b, "(family %s :level %s\n", tarn_ruleset_at(rs, i).family,
                 tarn_ruleset_at(rs, i).level == TARN_RULE_KERNEL ? "kernel" : "surface");
    tarn_rule_print(rs, i, &b), tarn_buf_str(&b, ")\n");
  }
  printf("%s", b.n ? b.p : "; no intrinsic of this description gives a rule\n");
}

static void peaks(tarn_ctx *cx, uint32_t threads, bool json) {
  cli_peaks p;
  cli_peaks_measure(cx, threads, SIZE_MAX, &p);
  if (!json) return cli_peaks_text(&p);
  cli_json *j = cli_json_new(cx);
  cli_peaks_json(j, &p);
  cli_json_print(j);
}

int tarn_cmd_hw(tarn_ctx *cx, int argc, char **argv) {
  cli_list words = {0};
  bool measure = false, json = false;
  uint64_t threads = 0;
  const char *usage = "hw show|check|derive NAME|FILE, or hw peaks";
  const cli_opt opts[] = {
      {"--measure", NULL, CLI_FLAG, &measure, NULL, "show host: measure rates instead of the usual figures"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "peaks: of so many threads (default: all)"},
      {"--json", NULL, CLI_FLAG, &json, NULL, "peaks: print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n == 1 && !strcmp(words.p[0], "peaks")) return peaks(cx, (uint32_t)threads, json), 0;
  if (words.n != 2) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  tarn_lang *L = tarn_lang_new(cx);
  if (!strcmp(words.p[0], "show")) show(cx, L, words.p[1], measure);
  else if (!strcmp(words.p[0], "check")) check(cx, L, words.p[1]);
  else if (!strcmp(words.p[0], "derive")) derive(cx, L, words.p[1]);
  else tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  return 0;
}
