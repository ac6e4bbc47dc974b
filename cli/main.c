/* tarn: one program, one table of commands. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

const cli_command cli_commands[] = {
    {"compile", tarn_cmd_compile, "compile a model for a CPU, a GPU or an accelerator",
     "compile model.onnx --shape batch=1 -o model"},
    {"inspect", tarn_cmd_inspect, "show what a model holds and what of it is not supported",
     "inspect model.onnx --shape batch=1"},
    {"run", tarn_cmd_run, "run a compiled folder or a model on tensors",
     "run model -i image=image.npy -o results"},
    {"check", tarn_cmd_check, "compare a compiled model with the reference interpreter",
     "check model --samples 3"},
    {"bench", tarn_cmd_bench, "time each kernel", "bench model --threads 1 --html page.html"},
    {"report", tarn_cmd_report, "write a page of a compile: kernels, rewrites, memory, times",
     "report model --chain chain -o report.html"},
    {"kernel", tarn_cmd_kernel, "show one kernel: schedules, plan, code",
     "kernel kernel.txt --hw x86-64-v3 --emit asm"},
    {"explore", tarn_cmd_explore, "saturate terms and show growth, rules and proofs",
     "explore --free --rules algebra.rules a.term --prove '(+ a b)' '(+ b a)'"},
    {"equal", tarn_cmd_equal, "decide whether two terms or models are equal",
     "equal model.onnx exported-again.onnx --shape batch=1"},
    {"extract", tarn_cmd_extract, "extract from a serialized e-graph, compare methods",
     "extract egraph.json --method exact"},
    {"rules", tarn_cmd_rules, "list, check or learn rewrite rules", "rules check my.rules --prove"},
    {"proof", tarn_cmd_proof, "check a chain of rewrites",
     "proof check chain --model model.onnx --shape batch=1"},
    {"tune", tarn_cmd_tune, "measure kernels, learn the price",
     "tune model.onnx --shape batch=1 --trials 500 --db tarn.db"},
    {"worker", tarn_cmd_worker, "measure for tuners on other machines",
     "worker --fleet nats://server:4222 --cores 0-3"},
    {"fleet", tarn_cmd_fleet, "show the workers and queues of a fleet",
     "fleet status nats://server:4222"},
    {"sim", tarn_cmd_sim, "run an accelerator's instruction stream", "sim model --html page.html"},
    {"quantize", tarn_cmd_quantize, "quantise an f32 model to ONNX in bytes",
     "quantize model.onnx -i samples --shape batch=8 -o model8.onnx"},
    {"hw", tarn_cmd_hw, "show or check a description of hardware", "hw check my.hw"},
    {"completion", tarn_cmd_completion, "print what completes commands in a shell",
     "completion bash >~/.local/share/bash-completion/completions/tarn"},
    {0}};

typedef struct call {
  const cli_command *c;
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
  for (const cli_command *c = cli_commands; c->name; c++)
    fprintf(f, "  %-10s %s\n", c->name, c->what);
}
static const cli_command *command_of(const char *name, size_t n) {
  for (const cli_command *c = cli_commands; c->name; c++)
    if (strlen(c->name) == n && !strncmp(c->name, name, n)) return c;
  return NULL;
}
const char *cli_example(const char *usage) {
  const cli_command *c = command_of(usage, strcspn(usage, " "));
  return c ? c->example : NULL;
}
void cli_each_command(tarn_ctx *cx, const char *shell) {
  char *argv[] = {tarn_format(cx, "%s%s", CLI_COMPLETES, shell), NULL};
  for (const cli_command *c = cli_commands; c->name; c++) c->run(cx, 1, argv);
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
  call k = {.c = command_of(argv[1], strlen(argv[1]))};
  if (!k.c) return no_command(argv[1]);
  if (cli_hands_over(argv)) return cli_hand_over(argv);
  k.argc = argc - 2, k.argv = argv + 2;
  tarn_ctx *cx = tarn_ctx_new(NULL);
  if (!cx) {
    fprintf(stderr, "tarn: out of memory\n");
    return TARN_BAD_INPUT;
  }
  cli_progress_begin(cx);
  tarn_status st = tarn_protect(cx, run, &k);
  cli_progress_end();
  for (size_t i = 0; i < tarn_warning_count(cx); i++)
    fprintf(stderr, "tarn: warning: %s\n", cli_spoken(cx, tarn_warning(cx, i)));
  if (st != TARN_OK) {
    fprintf(stderr, "tarn: %s\n", cli_spoken(cx, tarn_message(cx)));
    tarn_protect(cx, show_place, NULL);
  }
  tarn_ctx_free(cx);
  if (st == TARN_OK && (fflush(stdout) || ferror(stdout))) {
    perror("tarn: standard output");
    return TARN_BAD_INPUT;
  }
  return st == TARN_OK ? k.result : st > TARN_NO_RESULT ? TARN_BAD_INPUT : (int)st;
}
