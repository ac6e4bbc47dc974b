/* A session of tarn explore: commands on a graph that is kept, from a terminal or a pipe. */
#ifndef TARN_CLI_REPL_H
#define TARN_CLI_REPL_H
#include "cli/explore.h"

typedef struct session session;

/* What a graph of one kind can do. All raise; what was there before stays as it was when they do.
 */
typedef struct repl_kind {
  void (*start)(session *s); /* an empty graph */
  void (*load)(session *s, const char *file);
  void (*add)(session *s, const tarn_sx *term);
  void (*rules)(session *s, const char *file, const char *text); /* one of both */
  void (*drop)(session *s, const char *name);
  void (*run)(session *s, uint32_t iterations, uint32_t n,
              const char *const *names); /* 0: to the end; no names: all rules */
  void (*best)(session *s);              /* into s->x->best */
  void (*prove)(session *s, const tarn_sx *a, const tarn_sx *b);   /* runs until they are equal */
  void (*explain)(session *s, const tarn_sx *a, const tarn_sx *b); /* why they are */
  void (*goal)(session *s, const tarn_sx *t);                      /* NULL: none */
  void (*match)(session *s, const tarn_sx *pattern);
  void (*view)(session *s, explore_view *v);
  const tarn_ruleset *(*set)(session *s);
  /* Undoing: what is there now, kept aside; back to it; forgotten. */
  void *(*keep)(session *s);
  void (*back)(session *s, void *kept);
  void (*forget)(session *s, void *kept);
  void (*end)(session *s);
} repl_kind;
extern const repl_kind repl_free, repl_typed;

enum { UNDO_DEPTH = 16 };
typedef struct undo {
  void *kept;
  const char *what;
} undo;

struct session {
  tarn_ctx *cx;
  cli_explore *x;
  const repl_kind *kind;
  void *state; /* of the kind */
  undo past[UNDO_DEPTH];
  uint32_t n_past;
  uint32_t warned; /* warnings shown */
  bool tty, quit, failed;
  uint32_t line;
};

/* ---- lines (repl_line.c) ---- */
typedef struct repl_lines repl_lines;
repl_lines *repl_lines_open(session *s);
const char *repl_next(repl_lines *in); /* the next command, one line or more; NULL: no more */

/* ---- commands (repl.c), for completion ---- */
typedef enum {
  REPL_NOTHING,
  REPL_FILES,
  REPL_RULES,
  REPL_TERMS,
  REPL_SETTINGS,
  REPL_COMMANDS
} repl_words;
const char *repl_command(uint32_t i, repl_words *takes); /* the i-th name; NULL: no more */
const char *repl_setting(uint32_t i);
#endif
