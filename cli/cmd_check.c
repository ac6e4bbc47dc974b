/* tarn check DIR|MODEL */
#include "cli/subject.h"

/* The worst of all outputs and samples. */
typedef struct worst {
  tarn_verdict v;
  const char *name;
  const tarn_tensor *of;
  uint64_t seed;
  double max_abs, max_rel;
} worst;

static void judge(const char *name, const tarn_rounding *want, tarn_verdict v, uint64_t seed,
                  worst *w) {
  if (v.max_abs > w->max_abs) w->max_abs = v.max_abs;
  if (v.max_rel > w->max_rel) w->max_rel = v.max_rel;
  if (w->name && v.share <= w->v.share) return;
  *w = (worst){v, name, want->strict, seed, w->max_abs, w->max_rel};
}

static void show_json(tarn_ctx *cx, const worst *w) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_num(j, "max_abs", w->max_abs);
  tarn_json_num(j, "max_rel", w->max_rel);
  tarn_json_bool(j, "ok", w->v.ok);
  if (w->v.wrong) tarn_json_str(j, "wrong", tarn_verdict_text(cx, &w->v, w->name, w->of));
  if (w->v.at >= 0) {
    int64_t index[TARN_MAX_DIMS];
    tarn_tensor_index(w->of, w->v.at, index);
    tarn_json_open(j, "worst", '{');
    tarn_json_str(j, "output", w->name);
    tarn_json_open(j, "index", '[');
    for (uint32_t d = 0; d < w->of->n; d++) tarn_json_int(j, NULL, index[d]);
    tarn_json_close(j, ']');
    tarn_json_num(j, "got", w->v.got);
    tarn_json_num(j, "wanted", w->v.wanted);
    tarn_json_num(j, "allowed", w->v.allowed);
    tarn_json_int(j, "seed", (int64_t)w->seed);
    tarn_json_close(j, '}');
  }
  cli_json_print(j);
}

static void show_text(tarn_ctx *cx, const worst *w) {
  if (w->v.ok) {
    printf(
        "ok: largest difference %.3g, %.3g of the largest value; at most %.2g of what is allowed\n",
        w->max_abs, w->max_rel, w->v.share);
    return;
  }
  printf("WRONG: %s; largest difference %.3g, %.3g of the largest value\n",
         tarn_verdict_text(cx, &w->v, w->name, w->of), w->max_abs, w->max_rel);
}

/* The model may have changed since. */
static void same_ports(tarn_ctx *cx, const cli_subject *m, const tarn_program *p,
                       const cli_compile *c) {
  const tarn_port *port;
  if (cli_subject_ports(cx, m, false, &port) != p->nin ||
      cli_subject_ports(cx, m, true, &port) != p->nout)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: has not as many inputs and outputs as %s", c->dir,
               c->model);
}

int tarn_cmd_check(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, given = {0};
  uint64_t samples = 1, threads = 0;
  double rtol = TARN_JUDGE_RTOL;
  bool simulate = false;
  const char *usage = "check DIR|MODEL [--samples N] [--rtol X] [--simulate]";
  const cli_opt opts[] = {
      {"--samples", NULL, CLI_U32, &samples, "N", "random inputs to compare on (default 1)"},
      {"--rtol", NULL, CLI_REAL, &rtol, "X",
       "tolerance besides rounding, relative to the element (default 1e-5)"},
      {"--input", "-i", CLI_LIST, &given, "NAME=FILE", "compare on this input"},
      {"--simulate", NULL, CLI_FLAG, &simulate, NULL,
       "a GPU's program: in the executor, whether there is a GPU or not"},
      {"--hw", NULL, CLI_STR, &c.hw, "NAME|FILE", "hardware that MODEL is compiled for"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "threads (default: all)"},
      {"--seed", NULL, CLI_UINT, &c.seed, "K", "seed of random inputs"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS", "bind a dynamic shape of MODEL"},
      CLI_SET(c),
      {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1 || !samples)
    tarn_raise(cx, TARN_USAGE, "usage: tarn %s; N is at least 1", usage);
  cli_subject m = cli_open_subject(cx, words.p[0], &c, simulate ? CLI_SIMULATED : CLI_EITHER);
  tarn_program *p = cli_reload(tarn_lang_new(cx), &c);
  same_ports(cx, &m, p, &c);
  tarn_rounding *want = TARN_ARRAY(cx, tarn_rounding, p->nout + 1);
  const tarn_port *ip;
  uint32_t nin = cli_subject_ports(cx, &m, false, &ip);
  worst w = {.v.ok = true};
  tarn_tolerance t = tarn_rules_tolerance(c.used, c.bound);
  for (uint64_t s = 0; s < samples; s++) {
    tarn_tensor **in = cli_inputs(cx, &c, nin, ip, &given, c.seed + s);
    tarn_tensor **out = cli_subject_run(cx, &m, in, (uint32_t)threads);
    t.noise.seed = c.seed + s;
    tarn_eval_rounding(p->L, cli_roots(p), p->nout, cli_bindings(p, in), p->nin, t.runs, t.noise,
                       tarn_opaque_eval, want);
    for (uint32_t i = 0; i < p->nout; i++)
      judge(p->out[i].name, &want[i], tarn_judge(out[i], &want[i], t.times, rtol), c.seed + s, &w);
  }
  if (c.json) show_json(cx, &w);
  else show_text(cx, &w);
  return w.v.ok ? 0 : TARN_NO;
}
