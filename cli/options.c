/* Options by table, files, JSON on standard output. */
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

double cli_median(double *v, size_t n) {
  qsort(v, n, sizeof *v, tarn_by_double);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ---- options ---- */
static void help(const char *usage, const cli_opt *opts) {
  printf("usage: tarn %s\n", usage);
  for (const cli_opt *o = opts; o->name; o++) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s%s%s", o->brief ? o->brief : "", o->brief ? ", " : "",
             o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    printf("  %-28s %s\n", left, o->help);
  }
  if (cli_example(usage)) printf("example: tarn %s\n", cli_example(usage));
}
static void take_number(tarn_ctx *cx, const cli_opt *o, const char *v, uint64_t most) {
  char *end;
  errno = 0;
  uint64_t n = strtoull(v, &end, 10);
  if (errno || *end || end == v || *v == '-' || n > most)
    tarn_raise(cx, TARN_USAGE, "%s %s: a whole number%s is expected", o->name, v,
               most == UINT64_MAX ? ""
                                  : tarn_format(cx, " of at most %llu", (unsigned long long)most));
  *(uint64_t *)o->at = n;
}
static void take(tarn_ctx *cx, const cli_opt *o, const char *v) {
  char *end;
  errno = 0;
  switch (o->kind) {
  case CLI_FLAG: *(bool *)o->at = true; return;
  case CLI_STR: *(const char **)o->at = v; return;
  case CLI_LIST: tarn_push(cx, (cli_list *)o->at, v); return;
  case CLI_PAIR: ((const char **)o->at)[((const char **)o->at)[0] != NULL] = v; return;
  case CLI_UINT: take_number(cx, o, v, UINT64_MAX); return;
  case CLI_U32: take_number(cx, o, v, UINT32_MAX); return;
  case CLI_THREADS: take_number(cx, o, v, CLI_MOST_THREADS); return;
  case CLI_REAL:
    *(double *)o->at = strtod(v, &end);
    if (errno || *end || end == v || !(*(double *)o->at >= 0))
      tarn_raise(cx, TARN_USAGE, "%s %s: a number of at least 0 is expected", o->name, v);
    return;
  }
}
bool cli_parse(tarn_ctx *cx, const char *usage, const cli_opt *opts, int argc, char **argv,
               cli_list *words) {
  bool only_words = false;
  size_t n = strlen(CLI_COMPLETES);
  if (argc == 1 && !strncmp(argv[0], CLI_COMPLETES, n)) {
    cli_complete(cx, argv[0] + n, usage, opts);
    return true;
  }
  for (int i = 0; i < argc; i++) {
    const char *a = argv[i];
    if (only_words || a[0] != '-' || !a[1]) {
      tarn_push(cx, words, a);
      continue;
    }
    if (!strcmp(a, "--")) {
      only_words = true;
      continue;
    }
    if (!strcmp(a, "--help") || !strcmp(a, "-h")) {
      help(usage, opts);
      return true;
    }
    const cli_opt *o = opts;
    const char *eq = a[1] == '-' ? strchr(a, '=') : NULL;
    size_t len = eq ? (size_t)(eq - a) : strlen(a);
    while (o->name && !(strlen(o->name) == len && !strncmp(o->name, a, len)) &&
           !(o->brief && !strcmp(o->brief, a)))
      o++;
    if (!o->name) tarn_raise(cx, TARN_USAGE, "%s: no such option; usage: tarn %s", a, usage);
    if (o->kind == CLI_FLAG) {
      if (eq) tarn_raise(cx, TARN_USAGE, "%s takes no value", o->name);
      take(cx, o, NULL);
    } else if (eq && o->kind != CLI_PAIR) {
      take(cx, o, eq + 1);
    } else {
      for (int left = o->kind == CLI_PAIR ? 2 : 1; left > 0; left--) {
        if (++i == argc) tarn_raise(cx, TARN_USAGE, "%s needs a value (%s)", o->name, o->arg);
        take(cx, o, argv[i]);
      }
    }
  }
  return false;
}

/* ---- files ---- */
FILE *cli_open(tarn_ctx *cx, const char *path) {
  FILE *f = fopen(path, "we");
  if (!f) tarn_raise(cx, TARN_IO, "%s: %s", path, strerror(errno));
  return f;
}
void cli_close(tarn_ctx *cx, FILE *f, const char *path) {
  bool bad = fflush(f) || ferror(f);
  int why = errno;
  if ((fclose(f) || bad)) tarn_raise(cx, TARN_IO, "%s: %s", path, strerror(bad ? why : errno));
}

/* ---- JSON ---- */
tarn_json *cli_json_new(tarn_ctx *cx) { return tarn_json_new(cx, CLI_SCHEMA); }
void cli_json_print(tarn_json *j) {
  size_t n;
  const char *p = tarn_json_text(j, &n);
  fwrite(p, 1, n, stdout);
}
