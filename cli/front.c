/* The program that stands in the path: commands on terms, e-graphs, rules and proofs, which need no
 * LLVM, start in a few milliseconds; for all others it becomes tarn-full, which has every command.
 */
#include "cli/explore.h"
#include "cli/cli.h"
#include "cli/rules.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_egg(char **argv) {
  for (; *argv; argv++)
    if (explore_is_egg(*argv)) return true;
  return false;
}
static bool has(char **argv, const char *word) {
  for (; *argv; argv++)
    if (!strncmp(*argv, word, strlen(word))) return true;
  return false;
}
bool cli_hands_over(char **argv) {
  static const char *const here[] = {"explore", "extract", "inspect", "proof", "rules"};
  bool mine = false;
  for (size_t i = 0; i < sizeof here / sizeof *here; i++) mine |= !strcmp(argv[1], here[i]);
  if (!mine || has(argv + 2, "--hw") || has(argv + 2, "--model")) return true;
  if (!strcmp(argv[1], "explore")) /* typed terms of a file may be a model */
    return !has(argv + 2, "--free") && !has(argv + 2, "--prove") && !has(argv + 2, "--help") &&
           !has_egg(argv + 2);
  return !strcmp(argv[1], "rules") && has(argv + 2, "stats");
}

/* Beside this program, as it is built; where libraries of programs lie, as it is installed. */
static const char *const places[] = {"/libexec/tarn-full", "/../libexec/tarn/tarn-full"};
int cli_hand_over(char **argv) {
  enum { MOST = 4096 };
  char path[MOST + 64];
  ssize_t n = readlink("/proc/self/exe", path, MOST);
  path[n > 0 ? n : 0] = 0;
  char *end = strrchr(path, '/');
  for (size_t i = 0; end && i < sizeof places / sizeof *places; i++) {
    strcpy(end, places[i]);
    execv(path, argv);
  }
  fprintf(stderr, "tarn: %s: %s\n", path, strerror(errno));
  return TARN_IO;
}

/* ---- what is asked for in the middle of a session on free terms ---- */
_Noreturn static void elsewhere(tarn_ctx *cx, const char *what) {
  tarn_raise(cx, TARN_USAGE, "%s: start the session on typed terms, tarn explore", what);
}
const tarn_hw *cli_hardware(tarn_lang *L, const char *name) { elsewhere(tarn_lang_ctx(L), name); }
tarn_program *cli_reload(tarn_lang *L, const cli_compile *c) {
  elsewhere(tarn_lang_ctx(L), c->model);
}
int rules_stats(tarn_ctx *cx, const rules_job *k) {
  (void)k;
  elsewhere(cx, "rules stats");
}
#define ELSEWHERE(name)                                                                            \
  int tarn_cmd_##name(tarn_ctx *cx, int argc, char **argv) {                                       \
    (void)argc, (void)argv;                                                                        \
    elsewhere(cx, #name);                                                                          \
  }
ELSEWHERE(compile)
ELSEWHERE(equal)
ELSEWHERE(run)
ELSEWHERE(check)
ELSEWHERE(bench)
ELSEWHERE(report)
ELSEWHERE(kernel)
ELSEWHERE(hw)
ELSEWHERE(sim)
ELSEWHERE(quantize)
ELSEWHERE(tune)
ELSEWHERE(worker)
ELSEWHERE(fleet)
