/* tarn explore -: a session. Each line is a command; a line that begins with a bracket is a rule or
 * a term to add. What goes wrong is said in one line, and the session goes on. */
#include "cli/repl.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct words {
  const tarn_sx *s;
  const char *rest;
} words; /* the line as read, and its text behind the command */

static const char *word(const words *w, uint32_t i) {
  return i + 1 < w->s->n ? w->s->kid[i + 1]->text : NULL;
}
static uint32_t arguments(const words *w) { return w->s->n - 1; }
static void want(session *s, const words *w, uint32_t least, uint32_t most, const char *what) {
  if (arguments(w) < least || arguments(w) > most)
    tarn_raise(s->cx, TARN_USAGE, "expected: %s", what);
}

/* ---- commands ---- */
static void show_growth(session *s, const words *w) {
  explore_view v;
  want(s, w, 0, 0, "growth");
  s->kind->view(s, &v);
  explore_show_growth(s->x, 0);
}
static void do_load(session *s, const words *w) {
  want(s, w, 1, UINT32_MAX, "load FILE…");
  for (uint32_t i = 0; i < arguments(w); i++) s->kind->load(s, word(w, i));
}
static void do_add(session *s, const words *w) {
  want(s, w, 1, UINT32_MAX, "add TERM…");
  for (uint32_t i = 0; i < arguments(w); i++) s->kind->add(s, w->s->kid[i + 1]);
}
static void do_rules(session *s, const words *w) {
  for (uint32_t i = 0; i < arguments(w); i++) s->kind->rules(s, word(w, i), NULL);
  if (arguments(w)) return;
  for (uint32_t i = 0; i < tarn_ruleset_count(s->kind->set(s)); i++) {
    tarn_buf b = {.cx = s->cx};
    const char *name = tarn_ruleset_at(s->kind->set(s), i).name, *colon = strrchr(name, ':');
    if (colon && !strcmp(colon, ":back")) continue; /* printed with the first of both */
    tarn_rule_print(s->kind->set(s), i, &b);
    printf("%s\n", b.p);
  }
}
static void do_run(session *s, const words *w) {
  uint32_t n = 0, from = 0;
  if (arguments(w) && w->s->kid[1]->kind == TARN_SX_INT) {
    if (w->s->kid[1]->i < 1 || w->s->kid[1]->i > UINT32_MAX)
      tarn_raise(s->cx, TARN_USAGE, "expected: run [N] [RULE|FAMILY…]");
    n = (uint32_t)w->s->kid[1]->i, from = 1;
  }
  const char **name = TARN_ARRAY(s->cx, const char *, w->s->n);
  for (uint32_t i = from; i < arguments(w); i++) name[i - from] = word(w, i);
  s->kind->run(s, n, arguments(w) - from, name);
}
static void do_best(session *s, const words *w) {
  const char *was = s->x->cost;
  want(s, w, 0, 1, "best [size|depth|OPERATOR=COST,…]");
  if (arguments(w)) s->x->cost = word(w, 0);
  if (strcmp(s->x->cost, "size") && strcmp(s->x->cost, "depth") && !strchr(s->x->cost, '=')) {
    const char *bad = s->x->cost;
    s->x->cost = was;
    tarn_raise(s->cx, TARN_USAGE, "best %s: size, depth or OPERATOR=COST,… is expected", bad);
  }
  s->kind->best(s);
  explore_show_best(s->x);
}
static void do_prove(session *s, const words *w) {
  want(s, w, 2, 2, "prove TERM TERM");
  s->kind->prove(s, w->s->kid[1], w->s->kid[2]);
}
static void do_explain(session *s, const words *w) {
  want(s, w, 2, 2, "explain TERM TERM");
  s->kind->explain(s, w->s->kid[1], w->s->kid[2]);
}
static void do_goal(session *s, const words *w) {
  want(s, w, 0, 1, "goal [TERM|none]");
  if (arguments(w)) s->kind->goal(s, tarn_sx_atom_is(w->s->kid[1], "none") ? NULL : w->s->kid[1]);
  if (!s->x->goal) printf("no goal\n");
  else printf("goal %s%s\n", s->x->goal, s->x->goal_reached ? ", reached" : "");
}
static void do_match(session *s, const words *w) {
  want(s, w, 1, 1, "match PATTERN");
  s->kind->match(s, w->s->kid[1]);
}
static void need_graph(session *s, explore_view *v) {
  s->kind->view(s, v);
  if (!v->g) tarn_raise(s->cx, TARN_USAGE, "there are no terms; add TERM or load FILE gives some");
}
static void do_size(session *s, const words *w) {
  explore_view v;
  want(s, w, 0, 0, "size");
  need_graph(s, &v);
  printf("%u e-nodes, %u classes, %u iterations, %u terms, %.1f MiB\n", tarn_eg_node_count(v.g),
         tarn_eg_class_count(v.g), s->x->iteration.n, v.n, (double)tarn_eg_bytes(v.g) / 1048576);
}
static void do_stats(session *s, const words *w) {
  explore_view v;
  want(s, w, 0, 0, "stats");
  need_graph(s, &v);
  explore_show_rules(s->x, false);
}
static void show_class(session *s, const explore_view *v, uint32_t c) {
  char name[256];
  tarn_buf b = {.cx = s->cx};
  v->facts(v->user, c, &b);
  printf("#%u%s%s\n", c, b.n ? ": " : "", b.n ? b.p : "");
  TARN_EG_NODES(v->g, c, n) {
    tarn_eg_node e = tarn_eg_node_at(v->g, n);
    v->name(v->user, e.op, e.payload, name, sizeof name);
    printf("  %s%s", e.n ? "(" : "", tarn_shown(s->cx, name));
    for (uint32_t i = 0; i < e.n; i++) printf(" #%u", tarn_eg_find(v->g, e.kids[i]));
    printf("%s\n", e.n ? ")" : "");
  }
}
static void do_class(session *s, const words *w) {
  explore_view v;
  want(s, w, 0, 1, "class [#N]");
  need_graph(s, &v);
  const char *text = arguments(w) ? word(w, 0) : NULL;
  for (uint32_t i = 0; !text && i < v.n; i++) show_class(s, &v, tarn_eg_find(v.g, v.root[i]));
  if (!text) return;
  char *end;
  text += *text == '#';
  unsigned long c = strtoul(text, &end, 10);
  if (*end || end == text || c >= tarn_eg_id_count(v.g))
    tarn_raise(s->cx, TARN_USAGE, "there is no class %s", word(w, 0));
  show_class(s, &v, tarn_eg_find(v.g, (uint32_t)c));
}
static void write_to(session *s, const words *w, const char **slot, const char *what) {
  explore_view v;
  want(s, w, 1, 1, what);
  need_graph(s, &v);
  const char *none[3] = {s->x->dot, s->x->egraph, s->x->html};
  s->x->dot = s->x->egraph = s->x->html = NULL;
  *slot = word(w, 0);
  if (s->x->html) s->kind->best(s);
  if (s->x->html) explore_page(s->cx, s->x, &v);
  else explore_write(s->cx, s->x, &v);
  s->x->dot = none[0], s->x->egraph = none[1], s->x->html = none[2];
}
static void do_dot(session *s, const words *w) { write_to(s, w, &s->x->dot, "dot FILE"); }
static void do_json(session *s, const words *w) { write_to(s, w, &s->x->egraph, "json FILE"); }
static void do_html(session *s, const words *w) { write_to(s, w, &s->x->html, "html FILE"); }

/* ---- settings ---- */
typedef struct setting {
  const char *name;
  size_t at;
  char kind;
  const char *what;
} setting; /* kind: u d s b */
#define AT(field) offsetof(cli_explore, field)
static const setting settings[] = {
    {"nodes", AT(nodes), 'u', "limit of e-nodes, 0: the usual one"},
    {"bytes", AT(bytes), 'u', "limit of memory"},
    {"iters", AT(iters), 'u', "iterations of a run to the end"},
    {"seconds", AT(seconds), 'd', "limit of time of a run"},
    {"scheduler", AT(scheduler), 's', "simple or backoff"},
    {"match-limit", AT(match_limit), 'u', "backoff: matches before a ban"},
    {"ban-length", AT(ban_length), 'u', "backoff: iterations of the first ban"},
    {"threads", AT(threads), 'u', "threads that search"},
    {"count-matches", AT(count_matches), 'b', "all matches, not only new ones: yes or no"},
    {"cost", AT(cost), 's', "what best means"},
    {"numerics", AT(numerics), 's', "typed: exact, reassoc or approx"},
    {"dot-classes", AT(dot_classes), 'u', "classes that dot draws, 0: all"},
    {"html-classes", AT(html_classes), 'u', "classes that html holds, 0: all"},
};
#define SETTINGS (sizeof settings / sizeof *settings)
const char *repl_setting(uint32_t i) { return i < SETTINGS ? settings[i].name : NULL; }
static void set_one(session *s, const setting *o, const char *v) {
  void *at = (char *)s->x + o->at;
  char *end = "";
  if (o->kind == 'u') *(uint64_t *)at = strtoull(v, &end, 10);
  else if (o->kind == 'd') *(double *)at = strtod(v, &end);
  else if (o->kind == 's') *(const char **)at = v;
  else *(bool *)at = !strcmp(v, "yes");
  if (*end || !*v || *v == '-')
    tarn_raise(s->cx, TARN_USAGE, "set %s %s: a number is expected", o->name, v);
}
static void show_setting(const session *s, const setting *o) {
  const void *at = (const char *)s->x + o->at;
  tarn_buf b = {.cx = s->cx};
  if (o->kind == 'u') tarn_buf_fmt(&b, "%llu", *(const unsigned long long *)at);
  else if (o->kind == 'd') tarn_buf_double(&b, *(const double *)at);
  else if (o->kind == 's')
    tarn_buf_str(&b, *(const char *const *)at ? *(const char *const *)at : "-");
  else tarn_buf_str(&b, *(const bool *)at ? "yes" : "no");
  printf("%-14s %-10s %s\n", o->name, b.p, o->what);
}
static void do_set(session *s, const words *w) {
  want(s, w, 0, 2, "set [NAME VALUE]");
  for (size_t i = 0; i < SETTINGS; i++) {
    if (!arguments(w)) show_setting(s, &settings[i]);
    if (arguments(w) != 2 || strcmp(word(w, 0), settings[i].name)) continue;
    cli_explore was = *s->x;
    set_one(s, &settings[i], word(w, 1));
    bool good = (!s->x->scheduler || !strcmp(s->x->scheduler, "simple") ||
                 !strcmp(s->x->scheduler, "backoff")) &&
                s->x->threads <= CLI_MOST_THREADS && s->x->iters <= UINT32_MAX &&
                s->x->match_limit <= UINT32_MAX && s->x->ban_length <= UINT32_MAX;
    if (!good) *s->x = was;
    if (!good)
      tarn_raise(s->cx, TARN_USAGE, "set %s %s: %s", word(w, 0), word(w, 1), settings[i].what);
    s->x->backoff = s->x->scheduler && !strcmp(s->x->scheduler, "backoff");
    explore_view v;
    s->kind->view(s, &v);
    if (v.g && s->kind == &repl_free)
      tarn_eg_set_limits(v.g, s->x->nodes ? s->x->nodes : 1000000, s->x->bytes);
    return;
  }
  if (arguments(w))
    tarn_raise(s->cx, TARN_USAGE, "there is no setting %s; set alone lists them", word(w, 0));
}
static void do_undo(session *s, const words *w) {
  uint32_t n = 1;
  want(s, w, 0, 1, "undo [N]");
  if (arguments(w) && (w->s->kid[1]->kind != TARN_SX_INT || w->s->kid[1]->i < 1))
    tarn_raise(s->cx, TARN_USAGE, "expected: undo [N]");
  if (arguments(w)) n = w->s->kid[1]->i > UNDO_DEPTH ? UNDO_DEPTH + 1 : (uint32_t)w->s->kid[1]->i;
  if (n > s->n_past)
    tarn_raise(s->cx, TARN_USAGE, s->n_past ? "only %u can be undone" : "there is nothing to undo",
               s->n_past);
  while (n--) {
    undo u = s->past[--s->n_past];
    s->kind->back(s, u.kept);
    printf("undone: %s\n", u.what);
  }
}
static void do_new(session *s, const words *w) {
  want(s, w, 0, 1, "new [free|typed]");
  const char *kind = arguments(w) ? word(w, 0) : s->kind == &repl_free ? "free" : "typed";
  if (strcmp(kind, "free") && strcmp(kind, "typed"))
    tarn_raise(s->cx, TARN_USAGE, "expected: new [free|typed]");
  while (s->n_past) s->kind->forget(s, s->past[--s->n_past].kept);
  s->kind->end(s);
  s->kind = !strcmp(kind, "free") ? &repl_free : &repl_typed;
  s->x->goal = s->x->stop = NULL;
  s->x->iteration.n = 0;
  if (arguments(w))
    s->x->rules.n = s->x->only_rules.n = s->x->no_rules.n = 0; /* of the other kind */
  s->kind->start(s);
}
static void do_quit(session *s, const words *w) {
  want(s, w, 0, 0, "quit");
  s->quit = true;
}
static void do_help(session *s, const words *w);

typedef struct command {
  const char *name, *takes, *what;
  void (*run)(session *s, const words *w);
  bool changes; /* can be undone */
  repl_words words;
} command;
static const command commands[] = {
    {"load", "FILE…", "add the terms of a file, or of a model; free: or an e-graph as JSON",
     do_load, true, REPL_FILES},
    {"rules", "[FILE…]", "add the rules of a file; alone: list the rules", do_rules, true,
     REPL_FILES},
    {"add", "TERM…", "add terms (a line that begins with a bracket does so, too)", do_add, true,
     REPL_TERMS},
    {"run", "[N] [RULE|FAMILY…]", "N iterations, or to the end; of these rules only", do_run, true,
     REPL_RULES},
    {"best", "[COST]", "the least term for each that was added: size, depth, OPERATOR=COST,…",
     do_best, false, REPL_NOTHING},
    {"goal", "[TERM|none]", "stop when the first term equals it; free terms may hold ?x", do_goal,
     true, REPL_TERMS},
    {"explain", "A B", "why two terms are equal", do_explain, false, REPL_TERMS},
    {"prove", "A B", "run until they are, and say why", do_prove, true, REPL_TERMS},
    {"match", "PATTERN", "show where a pattern matches, and by what", do_match, false, REPL_TERMS},
    {"size", "", "e-nodes, classes, memory", do_size, false, REPL_NOTHING},
    {"growth", "", "all iterations so far", show_growth, false, REPL_NOTHING},
    {"stats", "", "what each rule did", do_stats, false, REPL_NOTHING},
    {"class", "[#N]", "the e-nodes of a class; alone: those of the terms", do_class, false,
     REPL_NOTHING},
    {"undo", "[N]", "take back the last command that changed something", do_undo, false,
     REPL_NOTHING},
    {"dot", "FILE", "draw the e-graph for Graphviz", do_dot, false, REPL_FILES},
    {"json", "FILE", "write the e-graph as egraph-serialize JSON", do_json, false, REPL_FILES},
    {"html", "FILE", "write a page with growth, rules, terms, the e-graph", do_html, false,
     REPL_FILES},
    {"set", "[NAME VALUE]", "limits, scheduler and more; alone: list them", do_set, false,
     REPL_SETTINGS},
    {"new", "[free|typed]", "start anew", do_new, false, REPL_NOTHING},
    {"help", "[COMMAND]", "this", do_help, false, REPL_COMMANDS},
    {"quit", "", "end the session", do_quit, false, REPL_NOTHING},
};
#define COMMANDS (sizeof commands / sizeof *commands)

const char *repl_command(uint32_t i, repl_words *takes) {
  if (i >= COMMANDS) return NULL;
  *takes = commands[i].words;
  return commands[i].name;
}
static void do_help(session *s, const words *w) {
  want(s, w, 0, 1, "help [COMMAND]");
  bool any = false;
  for (size_t i = 0; i < COMMANDS; i++) {
    if (arguments(w) && strcmp(word(w, 0), commands[i].name)) continue;
    int more = 0; /* bytes that take no room */
    for (const char *c = commands[i].takes; *c; c++) more += (*c & 0xC0) == 0x80;
    printf("%-8s %-*s %s\n", commands[i].name, 20 + more, commands[i].takes, commands[i].what);
    any = true;
  }
  if (!any) tarn_raise(s->cx, TARN_USAGE, "there is no command %s", word(w, 0));
}

/* ---- one line ---- */
static const command adding = {"add", "", "", do_add, true, REPL_TERMS};
static void add_rules(session *s, const words *w) { s->kind->rules(s, NULL, w->rest); }
static const command ruling = {"rules", "", "", add_rules, true, REPL_RULES};

static const command *meant(session *s, const char *text, words *w) {
  static const char *const forms[] = {"rule",     "family",    "phases",
                                      "analysis", "predicate", "interpretation"};
  const char *where = s->tty ? "line" : tarn_format(s->cx, "line %u", s->line);
  w->s = tarn_sx_read(s->cx, text, strlen(text), where);
  w->rest = text;
  if (!w->s->n) return NULL;
  const tarn_sx *first = w->s->kid[0];
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (tarn_sx_is(first, forms[i]) && first->n > 1) return &ruling;
  if (first->kind == TARN_SX_LIST) { /* as if `add` stood before it */
    tarn_sx *all = tarn_copy(s->cx, w->s, sizeof *w->s);
    all->n = w->s->n + 1, all->kid = TARN_ARRAY(s->cx, tarn_sx *, all->n);
    memcpy(all->kid + 1, w->s->kid, w->s->n * sizeof *all->kid);
    w->s = all;
    return &adding;
  }
  for (size_t i = 0; i < COMMANDS; i++)
    if (tarn_sx_atom_is(first, commands[i].name)) return &commands[i];
  tarn_raise(s->cx, TARN_USAGE, "no command is called %s; help lists them", first->text);
}
typedef struct line {
  session *s;
  const char *text;
  void *kept;
  const char *what;
} line;
static void run_line(tarn_ctx *cx, void *arg) {
  line *l = arg;
  words w;
  const command *c = meant(l->s, l->text, &w);
  if (!c) return;
  bool changes = c->changes && (arguments(&w) || c->run == do_run || c == &ruling);
  if (changes) {
    l->what = tarn_strndup(cx, l->text, strcspn(l->text, "\n"));
    l->kept = l->s->kind->keep(l->s);
    if (!l->kept) tarn_warn(cx, "there is no memory for undoing this");
  }
  c->run(l->s, &w);
}
static void remember(session *s, void *kept, const char *what) {
  if (s->n_past == UNDO_DEPTH) {
    s->kind->forget(s, s->past[0].kept);
    memmove(s->past, s->past + 1, --s->n_past * sizeof *s->past);
  }
  s->past[s->n_past++] = (undo){kept, what};
}
/* ---- Ctrl-C: on a terminal it is held back all the time (at the prompt it is a character), from a
 * pipe while a command runs ---- */
static void release(void *arg) { cli_release_interrupts(*(bool *)arg); }
static void hold(session *s) {
  bool *held = TARN_NEW(s->cx, bool);
  *held = cli_hold_interrupts();
  tarn_defer(s->cx, release, held);
}

static void one(session *s, const char *text) {
  line l = {.s = s, .text = tarn_strdup(s->cx, text)};
  bool held = cli_hold_interrupts();
  cli_forget_interrupt();
  tarn_status st = tarn_protect(s->cx, run_line, &l);
  cli_release_interrupts(held);
  fflush(stdout);
  for (; s->warned < tarn_warning_count(s->cx); s->warned++)
    fprintf(stderr, "tarn: warning: %s\n", tarn_warning(s->cx, s->warned));
  if (st && s->tty) fprintf(stderr, "%s\n", tarn_message(s->cx));
  if (st && !s->tty)
    fprintf(stderr, "tarn: %s%s\n",
            strncmp(tarn_message(s->cx), "line ", 5) ? tarn_format(s->cx, "line %u: ", s->line)
                                                     : "",
            tarn_message(s->cx));
  s->failed |= st != TARN_OK;
  if (st && l.kept) s->kind->back(s, l.kept);
  else if (l.kept) remember(s, l.kept, l.what);
}

static void end_session(void *arg) {
  session *s = arg;
  while (s->n_past) s->kind->forget(s, s->past[--s->n_past].kept);
  if (s->state) s->kind->end(s);
}
int explore_session(tarn_ctx *cx, cli_explore *x) {
  session *s = TARN_NEW(cx, session);
  *s = (session){
      .cx = cx, .x = x, .kind = x->free ? &repl_free : &repl_typed, .tty = isatty(STDIN_FILENO)};
  tarn_defer(cx, end_session, s);
  s->kind->start(s);
  repl_lines *in = repl_lines_open(s);
  if (s->tty) hold(s);
  x->interrupted = cli_interrupted;
  if (s->tty)
    printf("tarn explore, %s terms; help lists the commands, new %s starts on the others\n",
           x->free ? "free" : "typed", x->free ? "typed" : "free");
  for (const char *text; !s->quit && (text = repl_next(in));) one(s, text);
  if (s->tty && !s->quit) printf("\n");
  return s->failed && !s->tty ? TARN_BAD_INPUT : 0;
}
