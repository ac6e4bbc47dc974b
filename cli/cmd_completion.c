/* tarn completion bash|zsh: what completes commands, options and their values, from the tables of
 * main.c and of each command, which is called with CLI_COMPLETES and prints its part. */
#include "cli/cli.h"
#include <ctype.h>
#include <string.h>

/* ---- what an option takes ---- */
typedef enum { NOTHING, WORDS, FOLDERS, FILES, HARDWARE, OTHER } taken;
/* "so|o|ll": all small letters. */
static bool is_words(const char *arg) {
  if (!strchr(arg, '|')) return false;
  for (; *arg; arg++)
    if (!islower((unsigned char)*arg) && *arg != '|') return false;
  return true;
}
static taken takes(const cli_opt *o) {
  if (o->kind == CLI_FLAG) return NOTHING;
  if (o->kind == CLI_UINT || o->kind == CLI_U32 || o->kind == CLI_THREADS || o->kind == CLI_REAL)
    return OTHER;
  if (!strcmp(o->name, "--hw")) return HARDWARE;
  if (is_words(o->arg)) return WORDS;
  if (!strcmp(o->arg, "DIR")) return FOLDERS;
  return strstr(o->arg, "FILE") || !strcmp(o->arg, "F") || !strcmp(o->arg, "STORE") ? FILES : OTHER;
}
static void print_hardware(void) {
  const char *name[64];
  uint32_t n = tarn_hw_shipped(name, 64);
  printf("host cuda");
  for (uint32_t i = 0; i < n && i < 64; i++) printf(" %s", name[i]);
}
static void print_words(const char *words) {
  for (; *words; words++) putchar(*words == '|' ? ' ' : *words);
}
/* Of "hw show|check NAME, hw import …": the words behind the command, if they are all small
 * letters. */
static char *second_words(tarn_ctx *cx, const char *usage) {
  size_t n = strcspn(usage, " ");
  const char *command = tarn_strndup(cx, usage, n + 1); /* with the space */
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "");
  for (const char *p = usage; p; p = strstr(p + 1, command)) {
    size_t k = strcspn(p + n + 1, " ,");
    if (strspn(p + n + 1, "abcdefghijklmnopqrstuvwxyz|") != k || !k) continue;
    if (b.n) tarn_buf_str(&b, "|");
    tarn_buf_add(&b, p + n + 1, k);
  }
  return b.p;
}

/* ---- bash ---- */
static void bash_values(const cli_opt *o) {
  taken t = takes(o);
  if (t == NOTHING) return;
  printf("    %s%s%s) ", o->name, o->brief ? "|" : "", o->brief ? o->brief : "");
  if (t == WORDS) {
    printf("words='");
    print_words(o->arg);
    printf("'");
  } else if (t == HARDWARE) printf("words=$hardware files=f");
  else if (t == FOLDERS || t == FILES) printf("files=%c", t == FILES ? 'f' : 'd');
  else printf(":");
  printf(" ;;\n");
}
static void bash_part(tarn_ctx *cx, const char *usage, const cli_opt *opts) {
  printf("  %.*s)\n    options='--help", (int)strcspn(usage, " "), usage);
  for (const cli_opt *o = opts; o->name; o++) printf(" %s", o->name);
  printf("'\n    case $previous in\n");
  for (const cli_opt *o = opts; o->name; o++) bash_values(o);
  printf("    *) files=f words='");
  print_words(second_words(cx, usage));
  printf("' ;;\n    esac ;;\n");
}
static void bash(tarn_ctx *cx) {
  printf(
      "# Completes tarn's commands in bash. Made by tarn completion bash, version %s.\n_tarn() {\n"
      "  local word=$2 previous=$3 options= words= files= commands hardware\n"
      "  [ \"$word\" != = ] || word=\n"
      "  [ \"$previous\" != = ] || previous=${COMP_WORDS[COMP_CWORD-3]}\n"
      "  hardware='",
      TARN_VERSION);
  print_hardware();
  printf("'\n  commands='help");
  for (const cli_command *c = cli_commands; c->name; c++) printf(" %s", c->name);
  printf("'\n  COMPREPLY=()\n  if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$word\"))\n"
         "    return\n  fi\n  case ${COMP_WORDS[1]} in\n  help) words=$commands ;;\n");
  cli_each_command(cx, "bash");
  printf("  esac\n  if [[ $word == -* ]]; then words=$options files=; fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  [ -z \"$files\" ] || COMPREPLY+=($(compgen -\"$files\" -- \"$word\"))\n}\n"
         "complete -o filenames -F _tarn tarn\n");
}

/* ---- zsh ---- */
/* Within '…' of an option's description: quotes, brackets and colons would end it. */
static void zsh_text(const char *s) {
  for (; *s; s++) {
    if (*s == '\'') printf("'\\''");
    else printf(strchr("[]:\\", *s) ? "\\%c" : "%c", *s);
  }
}
static void zsh_option(const cli_opt *o) {
  taken t = takes(o);
  if (o->kind == CLI_LIST) printf("    '*'");
  else if (o->brief) printf("    '(%s %s)'", o->brief, o->name);
  else printf("    ");
  if (o->brief) printf("{%s,%s}", o->brief, o->name);
  else printf("%s", o->name);
  printf("'[");
  zsh_text(o->help);
  printf("]");
  if (t != NOTHING) {
    printf(":");
    zsh_text(o->arg);
    printf(":");
  }
  if (t == WORDS) {
    printf("(");
    print_words(o->arg);
    printf(")");
  } else if (t == HARDWARE) printf("->hardware");
  else if (t == FILES || t == FOLDERS) printf(t == FILES ? "_files" : "_files -/");
  printf("' \\\n");
}
static void zsh_part(tarn_ctx *cx, const char *usage, const cli_opt *opts) {
  const char *words = second_words(cx, usage);
  printf("  %.*s) _arguments -C '(- *)'{-h,--help}'[show its options]' \\\n",
         (int)strcspn(usage, " "), usage);
  for (const cli_opt *o = opts; o->name; o++) zsh_option(o);
  if (*words) {
    printf("    '1:what:(");
    print_words(words);
    printf(")' \\\n");
  }
  printf("    '*:file:_files' ;;\n");
}
static void zsh(tarn_ctx *cx) {
  printf("#compdef tarn\n# Made by tarn completion zsh, version %s.\n_tarn() {\n"
         "  local state\n  local -a commands=(\n",
         TARN_VERSION);
  for (const cli_command *c = cli_commands; c->name; c++) {
    printf("    '%s:", c->name);
    zsh_text(c->what);
    printf("'\n");
  }
  printf("  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
         "  local command=$words[2]\n  shift words; (( CURRENT-- ))\n  case $command in\n"
         "  help) _describe command commands ;;\n");
  cli_each_command(cx, "zsh");
  printf("  esac\n  if [[ $state == hardware ]]; then _values hardware ");
  print_hardware();
  printf("; _files; fi\n}\n_tarn \"$@\"\n");
}

void cli_complete(tarn_ctx *cx, const char *shell, const char *usage, const cli_opt *opts) {
  (!strcmp(shell, "zsh") ? zsh_part : bash_part)(cx, usage, opts);
}
int tarn_cmd_completion(tarn_ctx *cx, int argc, char **argv) {
  cli_list words = {0};
  const char *usage = "completion bash|zsh";
  const cli_opt opts[] = {{0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  bool is_zsh = words.n == 1 && !strcmp(words.p[0], "zsh");
  if (words.n != 1 || (!is_zsh && strcmp(words.p[0], "bash") != 0))
    tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  if (is_zsh) zsh(cx);
  else bash(cx);
  return 0;
}
