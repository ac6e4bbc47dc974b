/* tarn check DIR|MODEL */
#include "cli/subject.h"

/* The worst of all outputs and samples. */
typedef struct worst {
  tarn_verdict v;
  const char *name;
  const tarn_tensor *of;
  uint64_t seed;
  double max_abs, max_rel;
  const char *nan; /* the first output that is NaN everywhere, as it should be; NULL */
} worst;

static void note(const char *name, const tarn_tensor *of, tarn_verdict v, uint64_t seed, worst *w) {
  if (v.max_abs > w->max_abs) w->max_abs = v.max_abs;
  if (v.max_rel > w->max_rel) w->max_rel = v.max_rel;
  if (!w->nan && v.got_nan && v.want_nan) w->nan = name;
  if (w->name && v.share <= w->v.share) return;
  *w = (worst){v, name, of, seed, w->max_abs, w->max_rel, w->nan};
}

static void show_json(tarn_ctx *cx, const worst *w) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "max_abs", w->max_abs, "max_rel", w->max_rel, "ok", w->v.ok);
  if (w->nan) tarn_json_str(j, "nan", w->nan);
  if (w->v.wrong) tarn_json_str(j, "wrong", tarn_verdict_text(cx, &w->v, w->name, w->of));
  if (w->v.at >= 0) {
    int64_t index[TARN_MAX_DIMS];
    tarn_tensor_index(w->of, w->v.at, index);
    tarn_json_open(j, "worst", '{');
    tarn_json_str(j, "output", w->name);
    tarn_json_open(j, "index", '[');
    for (uint32_t d = 0; d < w->of->n; d++) tarn_json_int(j, NULL, index[d]);
    tarn_json_close(j, ']');
    tarn_json_put(j, "got", w->v.got, "wanted", w->v.wanted, "allowed", w->v.allowed, "seed",
                  (int64_t)w->seed);
    tarn_json_close(j, '}');
  }
  cli_json_print(j);
}

static void show_text(tarn_ctx *cx, const worst *w) {
  if (w->v.ok) {
    if (w->max_abs > 0)
      printf("ok: largest difference %.3g, %.3g of the largest value; the worst element is off by "
             "%.2g %% of its bound\n",
             w->max_abs, w->max_rel, 100 * w->v.share);
    else printf("ok: no difference\n");
    if (w->nan)
      printf("but %s is NaN everywhere, in the program and in the model: it says nothing\n",
             w->nan);
    return;
  }
  printf("WRONG: %s; largest difference %.3g, %.3g of the largest value\n",
         tarn_verdict_text(cx, &w->v, w->name, w->of), w->max_abs, w->max_rel);
}

/* The model may have changed since. */
static void same_ports(tarn_ctx *cx, const cli_subject *m, const tarn_program *p,
                       const cli_compile *c) {
  const tarn_port *port;
  if (cli_subject_ports(m, false, &port) != p->nin || cli_subject_ports(m, true, &port) != p->nout)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: has not as many inputs and outputs as %s", c->dir,
               c->model);
}

/* ---- one size ---- */
typedef struct checking {
  tarn_ctx *cx;
  cli_compile *c;
  const cli_subject *m;
  const cli_list *given;
  uint64_t samples, threads;
  double rtol;
} checking;
/* What is compiled against the interpreter, as many times as asked for. */
static void check_one(const checking *k, worst *w) {
  tarn_ctx *cx = k->cx;
  const cli_compile *c = k->c;
  const tarn_program *p = cli_reload(tarn_lang_new(cx), c);
  const tarn_port *ip;
  same_ports(cx, k->m, p, c);
  uint32_t nin = cli_subject_ports(k->m, false, &ip);
  tarn_tolerance t = tarn_rules_tolerance(c->is.numerics, c->is.bound);
  for (uint64_t s = 0; s < k->samples; s++) {
    tarn_progress(cx, "comparing with the interpreter", s, k->samples, "samples");
    tarn_tensor **in = cli_inputs(cx, c, nin, ip, k->given, c->seed + s);
    tarn_tensor **out = cli_subject_run(cx, k->m, in, (uint32_t)k->threads);
    t.noise.seed = c->seed + s;
    tarn_expected *want = tarn_expect(p->L, cli_roots(p), p->nout, cli_bindings(p, in), p->nin,
                                      t.runs, t.noise, tarn_opaque_eval);
    for (uint32_t i = 0; i < p->nout; i++) {
      tarn_verdict v = tarn_expected_judge(want, i, out[i], t.times, k->rtol);
      note(p->out[i].name, out[i], v, c->seed + s, w);
    }
  }
  tarn_progress_end(cx);
}
#define TRIED_PROGRAMS 16 /* of a folder for more sizes */
/* A folder for several sizes: some of them, which are printed unless JSON is. */
static void check_sizes(const checking *k, worst *w) {
  const int64_t **size;
  uint32_t n = cli_some_sizes(k->cx, k->m->m, TRIED_PROGRAMS, k->c->seed, &size);
  for (uint32_t i = 0; i < n && w->v.ok; i++) {
    cli_select(k->cx, k->m->m, k->c, size[i]);
    check_one(k, w);
    if (!k->c->json) printf("%s: %s\n", cli_size_text(k->cx, k->m->m), w->v.ok ? "ok" : "WRONG");
  }
}

int tarn_cmd_check(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, given = {0};
  bool simulate = false;
  checking k = {.cx = cx, .c = &c, .given = &given, .samples = 1, .rtol = TARN_JUDGE_RTOL};
  const char *usage = "check DIR|MODEL [--samples N] [--rtol X] [--simulate]";
  const cli_opt opts[] = {
      {"--samples", NULL, CLI_U32, &k.samples, "N", "random inputs to compare on (default 1)"},
      {"--rtol", NULL, CLI_REAL, &k.rtol, "X",
       "tolerance besides rounding, relative to the element (default 1e-5)"},
      {"--input", "-i", CLI_LIST, &given, "NAME=FILE", "compare on this input"},
      {"--simulate", NULL, CLI_FLAG, &simulate, NULL,
       "a GPU's program: in the executor, whether there is a GPU or not"},
      {"--hw", NULL, CLI_STR, &c.hw, "NAME|FILE", "hardware that MODEL is compiled for"},
      {"--threads", NULL, CLI_THREADS, &k.threads, "T", "threads (default: all)"},
      {"--seed", NULL, CLI_UINT, &c.seed, "K", "seed of random inputs"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS",
       "bind a dynamic shape of MODEL, or choose one of several sizes of DIR"},
      CLI_SET(c),
      CLI_OUTPUTS(c),
      {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1 || !k.samples)
    tarn_raise(cx, TARN_USAGE, "usage: tarn %s; N is at least 1", usage);
  cli_subject m = cli_open_subject(cx, words.p[0], &c, simulate ? CLI_SIMULATED : CLI_EITHER);
  worst w = {.v.ok = true};
  k.m = &m;
  if (!cli_select_asked(cx, m.m, &c, &given) && c.programs.n) check_sizes(&k, &w);
  else check_one(&k, &w);
  if (c.json) show_json(cx, &w);
  else show_text(cx, &w);
  return w.v.ok ? 0 : TARN_NO;
}
