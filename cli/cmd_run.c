/* tarn run DIR|MODEL, tarn check DIR|MODEL */
#include "cli/cli.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* The reference interpreter on the model of a compiled folder. */
static tarn_tensor **reference(tarn_ctx *cx, const tarn_program *p, tarn_tensor *const *in, tarn_mode mode) {
  tarn_binding *b = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout + 1);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  for (uint32_t i = 0; i < p->nin; i++) b[i] = (tarn_binding){p->in[i].name, in[i]};
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  tarn_eval(p->L, root, p->nout, b, p->nin, mode, tarn_opaque_eval, out);
  return out;
}

static void print_shape(cli_json *j, const tarn_tensor *t) {
  cli_json_open(j, "shape", '[');
  for (uint32_t d = 0; d < t->n; d++) cli_json_int(j, NULL, t->dim[d]);
  cli_json_close(j, ']');
}
static void show_tensor(const char *name, const tarn_tensor *t) {
  int64_t n = tarn_tensor_count(t);
  printf("%s %s(", name, tarn_dtype_name(t->dtype));
  for (uint32_t d = 0; d < t->n; d++) printf(d ? ",%lld" : "%lld", (long long)t->dim[d]);
  printf(")");
  for (int64_t i = 0; i < n && i < 8; i++) {
    tarn_value v = tarn_tensor_get(t, i);
    if (tarn_dtype_is_float(t->dtype)) printf(" %.7g", v.d);
    else if (t->dtype == TARN_U64) printf(" %llu", (unsigned long long)v.i);
    else printf(" %lld", (long long)v.i);
  }
  printf(n > 8 ? " …\n" : "\n");
}
static const char *file_name(tarn_ctx *cx, const char *dir, const char *name) {
  char *f = tarn_format(cx, "%s/%s.npy", dir, name);
  for (char *p = f + strlen(dir) + 1; *p; p++)
    if (*p == '/') *p = '_';
  return f;
}

int tarn_cmd_run(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, given = {0};
  const char *out_dir = NULL;
  bool ref = false;
  uint64_t threads = 0;
  const char *usage = "run DIR|MODEL [-i NAME=FILE]… [-o DIR] [--reference] [--threads T]";
  const cli_opt opts[] = {
      {"--input", "-i", CLI_LIST, &given, "NAME=FILE", ".npy or TensorProto for an input (random when absent)"},
      {"--output", "-o", CLI_STR, &out_dir, "DIR", "write the outputs as .npy files there"},
      {"--reference", NULL, CLI_FLAG, &ref, NULL, "run the model in the reference interpreter instead"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "threads (default: all)"},
      {"--seed", NULL, CLI_UINT, &c.seed, "K", "seed of random inputs"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS", "bind a dynamic shape of MODEL"},
      {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  const tarn_port *ip, *op;
  uint32_t nin, nout;
  tarn_tensor **out, **in;
  struct stat st;
  if (ref) {
    if (!stat(words.p[0], &st) && S_ISDIR(st.st_mode)) cli_folder(cx, words.p[0], &c);
    else c.model = words.p[0];
    tarn_program *p = cli_reload(tarn_lang_new(cx), &c, NULL);
    nin = cli_ports(p, false, &ip), nout = cli_ports(p, true, &op);
    in = cli_inputs(cx, nin, ip, &given, c.seed);
    out = reference(cx, p, in, TARN_STRICT);
  } else {
    tarn_loaded *m = cli_load(cx, words.p[0], &c);
    nin = tarn_loaded_ports(m, false, &ip), nout = tarn_loaded_ports(m, true, &op);
    in = cli_inputs(cx, nin, ip, &given, c.seed);
    out = cli_outputs(cx, m);
    tarn_loaded_run(m, (const tarn_tensor *const *)in, out, (uint32_t)threads);
  }
  if (out_dir && mkdir(out_dir, 0777) && errno != EEXIST) tarn_raise(cx, TARN_IO, "%s: %s", out_dir, strerror(errno));
  cli_json *j = cli_json_new(cx);
  cli_json_open(j, "outputs", '{');
  for (uint32_t i = 0; i < nout; i++) {
    const char *file = out_dir ? file_name(cx, out_dir, op[i].name) : NULL;
    if (file) tarn_tensor_write(cx, file, out[i]);
    cli_json_open(j, op[i].name, '{');
    print_shape(j, out[i]);
    cli_json_str(j, "file", file);
    cli_json_close(j, '}');
    if (!c.json) show_tensor(op[i].name, out[i]);
  }
  cli_json_close(j, '}');
  if (c.json) cli_json_print(j);
  return 0;
}

/* ---- check ---- */
typedef struct difference {
  double max_abs, max_rel;
  bool nonfinite;
} difference;
/* max_rel: the largest difference over the largest |reference|. A NaN or infinity must be there in both. */
static void compare(const tarn_tensor *a, const tarn_tensor *r, difference *d) {
  double top = 0, worst = 0;
  bool f = tarn_dtype_is_float(r->dtype), same = a->n == r->n; /* the wide reference holds f64 */
  for (uint32_t i = 0; same && i < r->n; i++) same = a->dim[i] == r->dim[i];
  if (!same) { /* no number is like it */
    d->nonfinite = true;
    return;
  }
  for (int64_t i = 0, n = tarn_tensor_count(r); i < n; i++) {
    tarn_value x = tarn_tensor_get(a, i), y = tarn_tensor_get(r, i);
    double u = f ? x.d : (double)x.i, v = f ? y.d : (double)y.i;
    if (isnan(v) || isinf(v) || isnan(u) || isinf(u)) {
      if (!(isnan(u) && isnan(v)) && u != v) d->nonfinite = true;
      continue;
    }
    if (fabs(v) > top) top = fabs(v);
    if (fabs(u - v) > worst) worst = fabs(u - v);
  }
  double rel = top > 0 ? worst / top : worst > 0 ? INFINITY : 0;
  if (worst > d->max_abs) d->max_abs = worst;
  if (rel > d->max_rel) d->max_rel = rel;
}
int tarn_cmd_check(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, given = {0};
  uint64_t samples = 1, threads = 0;
  double rtol = 1e-4;
  const char *usage = "check DIR|MODEL [--samples N] [--rtol X]";
  const cli_opt opts[] = {{"--samples", NULL, CLI_U32, &samples, "N", "random inputs to compare on (default 1)"},
                          {"--rtol", NULL, CLI_REAL, &rtol, "X", "tolerance times the largest reference value (default 1e-4)"},
                          {"--input", "-i", CLI_LIST, &given, "NAME=FILE", "compare on this input"},
                          {"--threads", NULL, CLI_THREADS, &threads, "T", "threads (default: all)"},
                          {"--seed", NULL, CLI_UINT, &c.seed, "K", "seed of random inputs"},
                          {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS", "bind a dynamic shape of MODEL"},
                          {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
                          {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1 || !samples) tarn_raise(cx, TARN_USAGE, "usage: tarn %s; N is at least 1", usage);
  tarn_loaded *m = cli_load(cx, words.p[0], &c);
  tarn_program *p = cli_reload(tarn_lang_new(cx), &c, NULL);
  const tarn_port *ip;
  uint32_t nin = tarn_loaded_ports(m, false, &ip);
  difference d = {0};
  for (uint64_t s = 0; s < samples; s++) {
    tarn_tensor **in = cli_inputs(cx, nin, ip, &given, c.seed + s), **out = cli_outputs(cx, m);
    tarn_loaded_run(m, (const tarn_tensor *const *)in, out, (uint32_t)threads);
    tarn_tensor **ref = reference(cx, p, in, TARN_WIDE);
    for (uint32_t i = 0; i < p->nout; i++) compare(out[i], ref[i], &d);
  }
  bool ok = !d.nonfinite && d.max_rel <= rtol;
  if (c.json) {
    cli_json *j = cli_json_new(cx);
    cli_json_num(j, "max_abs", d.max_abs);
    cli_json_num(j, "max_rel", d.max_rel);
    cli_json_bool(j, "ok", ok);
    cli_json_print(j);
  } else {
    printf("%s: largest difference %.3g, %.3g of the largest value%s\n", ok ? "ok" : "WRONG", d.max_abs, d.max_rel,
           d.nonfinite ? "; another shape, or NaN or infinity where the reference has none" : "");
  }
  return ok ? 0 : TARN_NO;
}
