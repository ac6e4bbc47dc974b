/* tarn run DIR|MODEL */
#include "cli/subject.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The reference interpreter on the model of a compiled folder. */
static tarn_tensor **reference(tarn_ctx *cx, const tarn_program *p, tarn_tensor *const *in) {
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  tarn_eval(p->L, cli_roots(p), p->nout, cli_bindings(p, in), p->nin, TARN_STRICT, tarn_opaque_eval,
            out);
  return out;
}

static void print_shape(tarn_json *j, const tarn_tensor *t) {
  tarn_json_open(j, "shape", '[');
  for (uint32_t d = 0; d < t->n; d++) tarn_json_int(j, NULL, t->dim[d]);
  tarn_json_close(j, ']');
}
static void show_tensor(tarn_ctx *cx, const char *name, const tarn_tensor *t) {
  int64_t n = tarn_tensor_count(t);
  printf("%s %s(", tarn_shown(cx, name), tarn_dtype_name(t->dtype));
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
/* ---- files of outputs ---- */
enum { LONGEST = 200 }; /* bytes of a name that becomes a file's, with what is put behind it */
static bool is_taken(const char *const *stem, uint32_t n, const char *s) {
  for (uint32_t i = 0; i < n; i++)
    if (stem[i] && !strcmp(stem[i], s)) return true;
  return false;
}
/* The name with / as _; NULL: it is empty, too long, or not all of it can be seen. */
static char *stem_of(tarn_ctx *cx, const char *name) {
  size_t n = strlen(name);
  char *s = tarn_strdup(cx, name);
  if (!n || n > LONGEST || strcmp(tarn_shown(cx, name), name) != 0) return NULL;
  for (char *p = s; *p; p++)
    if (*p == '/') *p = '_';
  return s;
}
/* Each its own. First the names that may stay as they are, then those that had a /, then output_K
 * for the rest. */
static const char **file_stems(tarn_ctx *cx, const tarn_port *p, uint32_t n) {
  const char **stem = TARN_ARRAY(cx, const char *, n + 1);
  for (int changed = 0; changed < 2; changed++)
    for (uint32_t i = 0; i < n; i++) {
      const char *s = stem[i] ? NULL : stem_of(cx, p[i].name);
      if (s && (strcmp(s, p[i].name) != 0) == changed && !is_taken(stem, n, s)) stem[i] = s;
    }
  for (uint32_t i = 0; i < n; i++) {
    if (stem[i]) continue;
    const char *s = tarn_format(cx, "output_%u", i);
    while (is_taken(stem, n, s)) s = tarn_format(cx, "%s_", s);
    stem[i] = s;
  }
  return stem;
}

int tarn_cmd_run(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, given = {0};
  const char *out_dir = NULL;
  bool ref = false, simulate = false;
  uint64_t threads = 0;
  const char *usage =
      "run DIR|MODEL [-i NAME=FILE]… [-o DIR] [--reference|--simulate] [--threads T]";
  const cli_opt opts[] = {
      {"--input", "-i", CLI_LIST, &given, "NAME=FILE",
       ".npy or TensorProto for an input (random when absent)"},
      {"--output", "-o", CLI_STR, &out_dir, "DIR", "write the outputs as .npy files there"},
      {"--reference", NULL, CLI_FLAG, &ref, NULL,
       "run the model in the reference interpreter instead"},
      {"--simulate", NULL, CLI_FLAG, &simulate, NULL,
       "a program for a GPU or an accelerator: without the device"},
      {"--hw", NULL, CLI_STR, &c.hw, "NAME|FILE", "hardware that MODEL is compiled for"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "threads (default: all)"},
      {"--seed", NULL, CLI_UINT, &c.seed, "K", "seed of random inputs"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS",
       "bind a dynamic shape of MODEL, or choose one of several sizes of DIR"},
      CLI_SET(c),
      CLI_OUTPUTS(c),
      {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1 || (ref && simulate)) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  const tarn_port *ip, *op;
  uint32_t nin, nout;
  tarn_tensor **out, **in;
  struct stat st;
  if (ref) {
    if (!stat(words.p[0], &st) && S_ISDIR(st.st_mode)) cli_folder(cx, words.p[0], &c);
    else c.model = words.p[0];
    if (c.programs.n) cli_select_asked(cx, cli_load_folder(cx, c.dir, &c), &c, &given);
    tarn_program *p = cli_reload(tarn_lang_new(cx), &c);
    cli_domains(p, &c);
    nin = cli_ports(p, false, &ip), nout = cli_ports(p, true, &op);
    in = cli_inputs(cx, &c, nin, ip, &given, c.seed);
    out = reference(cx, p, in);
  } else {
    cli_subject m = cli_open_subject(cx, words.p[0], &c, simulate ? CLI_SIMULATED : CLI_DEVICE);
    cli_select_asked(cx, m.m, &c, &given);
    nin = cli_subject_ports(&m, false, &ip), nout = cli_subject_ports(&m, true, &op);
    in = cli_inputs(cx, &c, nin, ip, &given, c.seed);
    out = cli_subject_run(cx, &m, in, (uint32_t)threads);
  }
  if (out_dir && mkdir(out_dir, 0777) && errno != EEXIST)
    tarn_raise(cx, TARN_IO, "%s: %s", out_dir, strerror(errno));
  const char **stem = file_stems(cx, op, nout);
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "outputs", '{');
  for (uint32_t i = 0; i < nout; i++) {
    const char *file = out_dir ? tarn_format(cx, "%s/%s.npy", out_dir, stem[i]) : NULL;
    if (file) tarn_tensor_write(cx, file, out[i]);
    tarn_json_open(j, op[i].name, '{');
    print_shape(j, out[i]);
    tarn_json_str(j, "file", file);
    tarn_json_close(j, '}');
    if (!c.json) show_tensor(cx, op[i].name, out[i]);
  }
  tarn_json_close(j, '}');
  if (c.json) cli_json_print(j);
  return 0;
}
