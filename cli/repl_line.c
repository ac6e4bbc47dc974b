/* Lines of a session: with editing, history and completion on a terminal (libedit), plain from a
 * pipe. A command goes on while a bracket is open. */
#include "cli/repl.h"
#include <dirent.h>
#include <histedit.h>
#include <stdlib.h>
#include <string.h>

struct repl_lines {
  session *s;
  EditLine *el;
  History *past;
  char *text; /* the command so far */
  size_t n, cap;
  char *line; /* of a pipe */
  size_t line_cap;
  uint32_t read;
  bool more, dropped;
};

/* Whether the text so far is a whole command. */
static bool is_whole(const char *text) {
  int depth = 0;
  bool quoted = false;
  for (const char *c = text; *c; c++) {
    if (quoted && *c == '\\' && c[1]) c++;
    else if (*c == '"') quoted = !quoted;
    else if (!quoted && *c == ';') c += strcspn(c, "\n") - 1;
    else if (!quoted) depth += (*c == '(') - (*c == ')');
  }
  return depth <= 0 && !quoted;
}

/* ---- completion ---- */
typedef struct found {
  tarn_ctx *cx;
  const char *start;
  size_t n;
  TARN_VEC(const char *) word;
} found;
static void offer(found *f, const char *word) {
  for (uint32_t i = 0; i < f->word.n; i++)
    if (!strcmp(f->word.p[i], word)) return;
  if (!strncmp(word, f->start, f->n)) tarn_push(f->cx, &f->word, tarn_strdup(f->cx, word));
}
static void offer_files(found *f) {
  const char *slash = NULL;
  for (const char *c = f->start; c < f->start + f->n; c++)
    if (*c == '/') slash = c;
  const char *folder = slash ? tarn_strndup(f->cx, f->start, (size_t)(slash - f->start) + 1) : "";
  DIR *d = opendir(*folder ? folder : ".");
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    offer(f, tarn_format(f->cx, "%s%s%s", folder, e->d_name, e->d_type == DT_DIR ? "/" : ""));
  }
  if (d) closedir(d);
}
/* Operators that stand in the graph or in rules, behind the bracket that opens them. */
static void offer_operators(found *f, session *s) {
  explore_view v;
  char name[256];
  while (f->n && *f->start == '(') f->start++, f->n--;
  s->kind->view(s, &v);
  for (uint32_t c = v.g ? tarn_eg_next_class(v.g, TARN_NONE) : TARN_NONE; c != TARN_NONE;
       c = tarn_eg_next_class(v.g, c))
    TARN_EG_NODES(v.g, c, n) {
      tarn_eg_node e = tarn_eg_node_at(v.g, n);
      v.name(v.user, e.op, e.payload, name, sizeof name);
      name[strcspn(name, " ")] = 0;
      offer(f, name);
    }
  for (uint32_t i = 0; s->kind == &repl_typed && i < TARN_OP_COUNT; i++)
    offer(f, tarn_op_info(i)->text);
}
static void offer_rules(found *f, const tarn_ruleset *rs) {
  for (uint32_t i = 0; rs && i < tarn_ruleset_count(rs); i++) {
    offer(f, tarn_ruleset_at(rs, i).name);
    offer(f, tarn_ruleset_at(rs, i).family);
  }
}
typedef struct completing {
  repl_lines *in;
  const char *text;
  size_t n;
  found f;
} completing;
static void complete_raises(tarn_ctx *cx, void *arg) {
  completing *k = arg;
  session *s = k->in->s;
  size_t at = k->n, first = strspn(k->text, " ");
  while (at > 0 && !strchr(" \t", k->text[at - 1])) at--;
  k->f = (found){.cx = cx, .start = k->text + at, .n = k->n - at};
  repl_words takes = REPL_COMMANDS, of;
  const char *name;
  for (uint32_t i = 0; at > first && (name = repl_command(i, &of)); i++)
    if (strlen(name) == strcspn(k->text + first, " ") &&
        !strncmp(name, k->text + first, strlen(name)))
      takes = of;
  if (k->f.n && *k->f.start == '(') takes = REPL_TERMS;
  if (takes == REPL_COMMANDS)
    for (uint32_t i = 0; (name = repl_command(i, &of)); i++) offer(&k->f, name);
  if (takes == REPL_SETTINGS)
    for (uint32_t i = 0; (name = repl_setting(i)); i++) offer(&k->f, name);
  if (takes == REPL_FILES) offer_files(&k->f);
  if (takes == REPL_RULES) offer_rules(&k->f, s->kind->set(s));
  if (takes == REPL_TERMS) offer_operators(&k->f, s);
}
static unsigned char complete(EditLine *el, int key) {
  completing k = {0};
  const LineInfo *li = el_line(el);
  (void)key;
  el_get(el, EL_CLIENTDATA, &k.in);
  tarn_ctx *cx = k.in->s->cx;
  k.n = (size_t)(li->cursor - li->buffer);
  char *copy = malloc(k.n + 1);
  if (!copy) return CC_ERROR;
  memcpy(copy, li->buffer, k.n);
  copy[k.n] = 0, k.text = copy;
  tarn_status st = tarn_protect(cx, complete_raises, &k);
  unsigned char result = CC_ERROR;
  if (!st && k.f.word.n) {
    size_t common = strlen(k.f.word.p[0]);
    for (uint32_t i = 1; i < k.f.word.n; i++)
      while (strncmp(k.f.word.p[0], k.f.word.p[i], common)) common--;
    char rest[512];
    bool whole = k.f.word.n == 1 && (!common || k.f.word.p[0][common - 1] != '/');
    snprintf(rest, sizeof rest, "%.*s%s", (int)(common - k.f.n), k.f.word.p[0] + k.f.n,
             whole ? " " : "");
    result = CC_REFRESH;
    if (*rest) el_insertstr(el, rest);
    else {
      printf("\n");
      for (uint32_t i = 0; i < k.f.word.n; i++)
        printf("%s%s", k.f.word.p[i], i + 1 == k.f.word.n ? "\n" : "  ");
      result = CC_REDISPLAY;
    }
  }
  free(copy);
  return result;
}
/* Ctrl-C: what was typed so far is dropped, lines before it too. */
static unsigned char drop(EditLine *el, int c) {
  repl_lines *in;
  (void)c;
  el_get(el, EL_CLIENTDATA, &in);
  in->dropped = true;
  el_insertstr(el, " "); /* an empty line would be the end */
  printf("^C\n");
  return CC_NEWLINE;
}
static char *prompt(EditLine *el) {
  static char first[] = "tarn> ", next[] = "  ... ";
  repl_lines *in;
  el_get(el, EL_CLIENTDATA, &in);
  return in->more ? next : first;
}

/* ---- lines ---- */
static void close_lines(void *arg) {
  repl_lines *in = arg;
  if (in->el) el_end(in->el);
  if (in->past) history_end(in->past);
  free(in->text);
  free(in->line);
}
static void edit(repl_lines *in) {
  HistEvent ev;
  in->el = el_init("tarn", stdin, stdout, stderr);
  in->past = history_init();
  if (!in->el || !in->past)
    tarn_raise(in->s->cx, TARN_MEMORY, "explore: the terminal cannot be edited");
  history(in->past, &ev, H_SETSIZE, 1000);
  el_set(in->el, EL_CLIENTDATA, in);
  el_set(in->el, EL_PROMPT, prompt);
  el_set(in->el, EL_EDITOR, "emacs");
  el_set(in->el, EL_SIGNAL, 1);
  el_set(in->el, EL_HIST, history, in->past);
  el_wset(in->el, EL_ADDFN, L"tarn-complete", L"complete a command, an operator, a rule or a file",
          complete);
  el_set(in->el, EL_BIND, "^I", "tarn-complete", NULL);
  el_set(in->el, EL_SETTY, "-d", "-isig", NULL); /* while a line is edited, Ctrl-C is a key */
  el_wset(in->el, EL_ADDFN, L"tarn-drop", L"drop the line", drop);
  el_set(in->el, EL_BIND, "^C", "tarn-drop", NULL);
}
repl_lines *repl_lines_open(session *s) {
  repl_lines *in = TARN_NEW(s->cx, repl_lines);
  in->s = s;
  tarn_defer(s->cx, close_lines, in);
  if (s->tty) edit(in);
  return in;
}
static const char *one_line(repl_lines *in) {
  int n = 0;
  if (in->el) return el_gets(in->el, &n);
  return getline(&in->line, &in->line_cap, stdin) < 0 ? NULL : in->line;
}
const char *repl_next(repl_lines *in) {
  in->n = 0;
  in->more = false;
  for (const char *line; (line = one_line(in));) {
    size_t n = strlen(line);
    if (in->dropped) {
      in->dropped = in->more = false, in->n = 0;
      continue;
    }
    if (in->n + n + 1 > in->cap) {
      in->cap = 2 * (in->n + n + 1);
      char *p = realloc(in->text, in->cap);
      if (!p) tarn_raise(in->s->cx, TARN_MEMORY, "explore: out of memory");
      in->text = p;
    }
    memcpy(in->text + in->n, line, n + 1);
    in->n += n;
    in->read++;
    if (!in->more) in->s->line = in->read;
    in->more = !is_whole(in->text);
    if (in->more) continue;
    HistEvent ev;
    if (in->past && in->text[strspn(in->text, " \n")]) history(in->past, &ev, H_ENTER, in->text);
    return in->text;
  }
  return in->more ? in->more = false, in->text : NULL;
}
