/* tarn: one program, one table of commands. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

typedef struct command {
  const char *name;
  int (*run)(tarn_ctx *cx, int argc, char **argv);
  const char *what;
} command;
static const command commands[] = {
    {"compile", tarn_cmd_compile, "compile a model for a CPU"},
    {"inspect", tarn_cmd_inspect, "show what a model holds and what of it is not supported"},
    {"run", tarn_cmd_run, "run a compiled folder or a model on tensors"},
    {"check", tarn_cmd_check, "compare a compiled model with the reference interpreter"},
    {"bench", tarn_cmd_bench, "time each kernel"},
    {"kernel", tarn_cmd_kernel, "show one kernel: schedules, plan, code"},
    {"explore", tarn_cmd_explore, "saturate terms and show growth, rules and proofs"},
    {"equal", tarn_cmd_equal, "decide whether two terms or models are equal"},
    {"extract", tarn_cmd_extract, "extract from a serialized e-graph, compare methods"},
    {"rules", tarn_cmd_rules, "list, check or learn rewrite rules"},
    {"proof", tarn_cmd_proof, "check a chain of rewrites"},
    {"tune", tarn_cmd_tune, "measure kernels, learn the price"},
    {"worker", tarn_cmd_worker, "measure for tuners on other machines"},
    {"fleet", tarn_cmd_fleet, "show the workers and queues of a fleet"},
    {"sim", tarn_cmd_sim, "run an accelerator's instruction stream"},
    {"quantize", tarn_cmd_quantize, "quantise an f32 model to ONNX in bytes"},
    {"hw", tarn_cmd_hw, "show or check a description of hardware"},
};
#define COMMANDS (sizeof commands / sizeof *commands)

typedef struct call {
  const command *c;
  int argc, result;
  char **argv;
} call;
static void run(tarn_ctx *cx, void *arg) {
  call *k = arg;
  k->result = k->c->run(cx, k->argc, k->argv);
}
static void overview(FILE *f) {
  fprintf(
      f,
      "usage: tarn COMMAND …   (tarn COMMAND --help, or tarn help COMMAND, shows its options)\n\n");
  for (size_t i = 0; i < COMMANDS; i++)
    fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].what);
}
static int no_command(const char *name) {
  fprintf(stderr, "tarn: no command %s; tarn --help lists them\n", name);
  return TARN_USAGE;
}

/* ---- messages ---- */
/* FILE:LINE:COL: at the head of a message; false: there is none. */
static bool place_of(tarn_ctx *cx, const char *message, const char **file, unsigned long *line,
                     unsigned long *col) {
  for (const char *p = message; (p = strchr(p, ':')); p++) {
    char *end, *last;
    *line = strtoul(p + 1, &end, 10);
    *col = *end == ':' ? strtoul(end + 1, &last, 10) : 0;
    if (end == p + 1 || !*col || *last != ':') continue;
    *file = tarn_strndup(cx, message, (size_t)(p - message));
    return true;
  }
  return false;
}
/* Its line number `line`, NUL-terminated; a tab is one place. */
static char *line_of(tarn_ctx *cx, const char *file, unsigned long line) {
  size_t n;
  const char *p = tarn_read_file(cx, file, &n), *end = p + n;
  while (--line && p < end) {
    const char *next = memchr(p, '\n', (size_t)(end - p));
    p = next ? next + 1 : end;
  }
  char *s = tarn_strndup(cx, p, (size_t)(end - p));
  s[strcspn(s, "\r\n")] = 0;
  for (char *t = s; *t; t++)
    if (*t == '\t') *t = ' ';
  return s;
}
/* The line of a comprehension that the message is about, and where in it. */
static void show_place(tarn_ctx *cx, void *none) {
  (void)none;
  const char *file;
  unsigned long line, col;
  if (!place_of(cx, tarn_strdup(cx, tarn_message(cx)), &file, &line, &col)) return;
  if (strlen(file) < 3 || strcmp(file + strlen(file) - 3, ".tc")) return;
  const char *s = line_of(cx, file, line);
  fprintf(stderr, "  %s\n  ", tarn_shown(cx, s));
  for (const char *p = s; *p && p < s + col - 1; p++)
    if ((*p & 0xc0) != 0x80) fputc(' ', stderr);
  fputs("^\n", stderr);
}

int main(int argc, char **argv) {
  char asked[] = "--help"; /* tarn help COMMAND is tarn COMMAND --help */
  if (argc == 3 && !strcmp(argv[1], "help")) {
    argv[1] = argv[2];
    argv[2] = asked;
  }
  if (argc < 2 || !strcmp(argv[1], asked) || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
    overview(argc < 2 ? stderr : stdout);
    return argc < 2 ? TARN_USAGE : 0;
  }
  if (!strcmp(argv[1], "--version")) {
    printf("tarn %s\n", TARN_VERSION);
    return 0;
  }
  call k = {0};
  for (size_t i = 0; i < COMMANDS; i++)
    if (!strcmp(argv[1], commands[i].name)) k.c = &commands[i];
  if (!k.c) return no_command(argv[1]);
  if (cli_hands_over(argv)) return cli_hand_over(argv);
  k.argc = argc - 2, k.argv = argv + 2;
  tarn_ctx *cx = tarn_ctx_new(NULL);
  if (!cx) {
    fprintf(stderr, "tarn: out of memory\n");
    return TARN_BAD_INPUT;
  }
  tarn_status st = tarn_protect(cx, run, &k);
  for (size_t i = 0; i < tarn_warning_count(cx); i++)
    fprintf(stderr, "tarn: warning: %s\n", tarn_warning(cx, i));
  if (st != TARN_OK) {
    fprintf(stderr, "tarn: %s\n", tarn_message(cx));
    tarn_protect(cx, show_place, NULL);
  }
  tarn_ctx_free(cx);
  if (st == TARN_OK && (fflush(stdout) || ferror(stdout))) {
    perror("tarn: standard output");
    return TARN_BAD_INPUT;
  }
  return st == TARN_OK ? k.result : st > TARN_NO_RESULT ? TARN_BAD_INPUT : (int)st;
}
