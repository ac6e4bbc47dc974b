/* tarn hw show|check|derive NAME|FILE, tarn hw fit NAME|FILE MEASUREMENTS, tarn hw import
 * vta|gemmini FILE, tarn hw export timeloop NAME|FILE, tarn hw peaks */
#include "cli/peaks.h"
#include "cli/sim.h"
#include "plan/unit.h"
#include <string.h>

/* ---- show ---- */
static void memories_json(tarn_json *j, const tarn_hw *h) {
  tarn_json_open(j, "memories", '[');
  for (uint32_t i = 0; i < h->nmem; i++) {
    const tarn_hw_memory *m = &h->mem[i];
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "name", m->name, "capacity", m->capacity, "instances", m->instances, "serves",
                  m->serves, "line", m->line, "align", m->align);
    tarn_json_put(j, "banks", m->banks, "ways", m->ways, "read", m->read, "write", m->write,
                  "latency", m->latency, "managed", m->managed);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
static void intrinsics_json(tarn_json *j, const tarn_hw *h) {
  tarn_json_open(j, "intrinsics", '[');
  for (uint32_t i = 0; i < h->nintrin; i++) {
    const tarn_hw_intrinsic *in = &h->intrin[i];
    tarn_json_object(j, NULL, "name", in->name, "type", tarn_dtype_name(in->op[0].dtype), "latency",
                     in->latency, "throughput", in->throughput, "ops", in->ops);
  }
  tarn_json_close(j, ']');
}
/* What most want to know, and the whole description as text. */
static void show_json(tarn_ctx *cx, const tarn_hw *h, const char *text) {
  static const char *const kind[] = {"cpu", "gpu", "dsa"};
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "name", h->name, "kind", kind[h->kind], "triple", h->triple, "cpu", h->cpu,
                "features", h->features, "clock", h->clock, "units", h->units, "vector_bits",
                h->vector_bits, "vector_regs", h->vector_regs);
  memories_json(j, h), intrinsics_json(j, h);
  tarn_json_str(j, "text", text);
  cli_json_print(j);
}
static void show(tarn_ctx *cx, tarn_lang *L, const char *name, bool measure, bool json) {
  const tarn_hw *h = !strcmp(name, "host") ? tarn_hw_host(L, measure) : tarn_hw_load(L, name);
  tarn_buf b = {.cx = cx};
  tarn_hw_print(h, &b);
  if (json) show_json(cx, h, b.p);
  else printf("%s\n", b.p);
}

/* ---- check, derive ---- */
/* The element type that the fastest intrinsic multiplies. */
static tarn_dtype fastest(const tarn_hw *h) {
  const tarn_hw_intrinsic *best = NULL;
  for (uint32_t i = 0; i < h->nintrin; i++)
    if (!best || h->intrin[i].ops * h->intrin[i].throughput > best->ops * best->throughput)
      best = &h->intrin[i];
  return best ? best->op[0].dtype : TARN_F32;
}
/* Reading is half of it; the other half is that every intrinsic has a meaning. */
static void check(tarn_ctx *cx, tarn_lang *L, const char *name, bool json) {
  const tarn_hw *h = cli_hardware(L, name);
  uint32_t n = tarn_ruleset_derive(tarn_ruleset_new(L), h);
  tarn_dtype t = fastest(h);
  double peak = 2e-9 * tarn_hw_peak(h, t, h->units);
  if (!json) {
    printf("%s: ok, %u memories, %u intrinsics, %u derived rules, %.4g G%s/s in %s on all units\n",
           h->name, h->nmem, h->nintrin, n, peak, tarn_dtype_is_float(t) ? "FLOP" : "op",
           tarn_dtype_name(t));
    return;
  }
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "name", h->name, "ok", (bool)true, "memories", h->nmem, "intrinsics", h->nintrin,
                "rules", n, "peak_gflops", peak, "peak_type", tarn_dtype_name(t));
  cli_json_print(j);
}
static const char *level_name(tarn_rule_info r) {
  return r.level == TARN_RULE_KERNEL ? "kernel" : "surface";
}
/* Nests that the rules find to equal the meaning of an instruction, for each of a model that is one
 * of them; as their signatures. */
typedef void found_nest(void *user, const tarn_hw_intrinsic *x, const char *signature);
static void each_nest(tarn_lang *L, const tarn_hw *h, found_nest *f, void *user) {
  tarn_compile_options o = tarn_compile_defaults();
  o.hw = h;
  const tarn_hw *with = tarn_compile_units(L, &o);
  for (uint32_t i = 0; i < with->nintrin; i++)
    for (uint32_t w = 0; w < with->intrin[i].nwhole; w++) {
      tarn_ksig k;
      if (!tarn_unit_known(L, with, i, w, &k)) continue;
      f(user, &with->intrin[i], tarn_ksig_text(L, tarn_lang_ctx(L), &k));
    }
}
static void put_nest(void *user, const tarn_hw_intrinsic *x, const char *signature) {
  tarn_buf_fmt(user, "; %s computes %s\n", x->name, signature);
}
static void put_nest_json(void *user, const tarn_hw_intrinsic *x, const char *signature) {
  tarn_json *j = user;
  tarn_json_object(j, NULL, "intrinsic", x->name, "kernel", signature);
}
static void derive_json(tarn_ctx *cx, tarn_lang *L, const tarn_hw *h, const tarn_ruleset *rs) {
  uint32_t n = tarn_ruleset_count(rs);
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "rules", '[');
  for (uint32_t i = 0; i < n; i++) {
    tarn_rule_info r = tarn_ruleset_at(rs, i);
    tarn_buf b = {.cx = cx};
    tarn_rule_print(rs, i, &b);
    tarn_json_object(j, NULL, "name", r.name, "family", r.family, "level", level_name(r), "text",
                     b.p);
  }
  tarn_json_close(j, ']');
  tarn_json_open(j, "nests", '[');
  each_nest(L, h, put_nest_json, j);
  tarn_json_close(j, ']');
  cli_json_print(j);
}
static void derive(tarn_ctx *cx, tarn_lang *L, const char *name, bool json) {
  tarn_ruleset *rs = tarn_ruleset_new(L);
  const tarn_hw *h = cli_hardware(L, name);
  cli_derive_rules(rs, h);
  uint32_t n = tarn_ruleset_count(rs);
  if (json) return derive_json(cx, L, h, rs);
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < n; i++) {
    tarn_buf_fmt(&b, "(family %s :level %s\n", tarn_ruleset_at(rs, i).family,
                 level_name(tarn_ruleset_at(rs, i)));
    tarn_rule_print(rs, i, &b), tarn_buf_str(&b, ")\n");
  }
  each_nest(L, h, put_nest, &b);
  printf("%s", b.n ? b.p : "; no intrinsic of this description gives a rule\n");
}

static void peaks(tarn_ctx *cx, uint32_t threads, bool json) {
  cli_peaks p;
  cli_peaks_measure(cx, threads, SIZE_MAX, &p);
  if (!json) return cli_peaks_text(&p);
  tarn_json *j = cli_json_new(cx);
  cli_peaks_json(j, &p);
  cli_json_print(j);
}

/* ---- import, export ---- */
static void import(tarn_ctx *cx, tarn_lang *L, const char *from, const char *path) {
  size_t n;
  const char *text = tarn_read_file(cx, path, &n), *out = NULL;
  if (!strcmp(from, "vta")) out = tarn_hw_import_vta(cx, text, n, path);
  else if (!strcmp(from, "gemmini")) out = tarn_hw_import_gemmini(cx, text, n, path);
  else tarn_raise(cx, TARN_USAGE, "hw import %s: vta or gemmini is expected", from);
  tarn_hw_parse(L, tarn_sx_read(cx, out, strlen(out), path)); /* it is possible */
  printf("%s", out);
}
static void export(tarn_ctx *cx, tarn_lang *L, const char *to, const char *name) {
  if (strcmp(to, "timeloop")) tarn_raise(cx, TARN_USAGE, "hw export %s: timeloop is expected", to);
  tarn_buf b = {.cx = cx};
  tarn_hw_timeloop(L, cli_hardware(L, name), &b);
  printf("%s", b.p);
}

int tarn_cmd_hw(tarn_ctx *cx, int argc, char **argv) {
  cli_list words = {0};
  bool measure = false, json = false;
  uint64_t threads = 0;
  const char *out = NULL;
  const char *usage = "hw show|check|derive HW, hw fit HW FILE, hw import vta|gemmini FILE, "
                      "hw export timeloop HW, or hw peaks";
  const cli_opt opts[] = {
      {"--measure", NULL, CLI_FLAG, &measure, NULL,
       "show host: measure rates instead of using typical ones"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "peaks: number of threads (default: all)"},
      {"--output", "-o", CLI_STR, &out, "FILE", "fit: write the description with fitted costs"},
      {"--json", NULL, CLI_FLAG, &json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n == 1 && !strcmp(words.p[0], "peaks")) return peaks(cx, (uint32_t)threads, json), 0;
  if (words.n == 3 && !measure && !strcmp(words.p[0], "fit"))
    return cli_hw_fit(cx, tarn_lang_new(cx), words.p[1], words.p[2], out, json), 0;
  if (out) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  bool third = words.n == 3 && !json && !measure;
  if (third && !strcmp(words.p[0], "import"))
    return import(cx, tarn_lang_new(cx), words.p[1], words.p[2]), 0;
  if (third && !strcmp(words.p[0], "export"))
    return export(cx, tarn_lang_new(cx), words.p[1], words.p[2]), 0;
  if (words.n != 2) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  tarn_lang *L = tarn_lang_new(cx);
  if (!strcmp(words.p[0], "show")) show(cx, L, words.p[1], measure, json);
  else if (!strcmp(words.p[0], "check")) check(cx, L, words.p[1], json);
  else if (!strcmp(words.p[0], "derive")) derive(cx, L, words.p[1], json);
  else tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  return 0;
}
