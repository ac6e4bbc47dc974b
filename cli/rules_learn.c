/* tarn rules learn FILE, tarn rules derive A B */
#include "lab/lab.h"
#include "cli/rules.h"
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 100 }; /* of the list of rules, R1 … */

/* ---- learn ---- */

/* What the file declares, and the rules that were found. */
static void write_rules(tarn_ctx *cx, FILE *f, const rules_job *k, const tarn_ruleset *rs,
                        const tarn_learn_report *r) {
  const tarn_sx *all = tarn_sx_read_file(cx, k->files.p[0]);
  fprintf(f,
          "; %u rules learned from %s; tarn rules check --free and tarn explore --free read this "
          "file.\n",
          r->rules, k->files.p[0]);
  for (uint32_t i = 0; i < all->n; i++) {
    tarn_buf b = {.cx = cx};
    if (tarn_sx_is(all->kid[i], "learn")) continue;
    tarn_sx_print(&b, all->kid[i], 100);
    fprintf(f, "%s\n", b.p);
  }
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_buf b = {.cx = cx};
    if (strchr(tarn_ruleset_at(rs, i).name, ':')) continue;
    tarn_rule_print(rs, i, &b);
    fprintf(f, "%s\n", b.p);
  }
}
static void learn_json(tarn_ctx *cx, const tarn_ruleset *rs, const tarn_learn_report *r,
                       double took) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "rules", '[');
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_buf b = {.cx = cx};
    if (strchr(tarn_ruleset_at(rs, i).name, ':')) continue;
    tarn_rule_print(rs, i, &b);
    tarn_json_str(j, NULL, b.p);
  }
  tarn_json_close(j, ']');
  tarn_json_put(j, "conditional", r->conditional, "terms", r->terms, "values", r->values,
                "candidates", r->candidates, "followed", r->followed, "refuted", r->refuted,
                "redundant", r->redundant, "too_large", r->too_large, "runs", r->runs);
  tarn_json_put(j, "stop", r->late ? "seconds" : "done", "seconds", took);
  cli_json_print(j);
}
static int learn_free(tarn_ctx *cx, const rules_job *k) {
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_load(rs, k->files.p[0]);
  tarn_learn_options o = {.size = (uint32_t)k->size,
                          .variables = (uint32_t)k->vars,
                          .operators = k->ops,
                          .seed = k->seed,
                          .seconds = k->seconds};
  double t = tarn_now();
  tarn_learn_report r = tarn_rules_learn(rs, &o);
  t = tarn_now() - t;
  if (k->json) learn_json(cx, rs, &r, t);
  if (k->out) {
    FILE *f = cli_open(cx, k->out);
    write_rules(cx, f, k, rs, &r);
    cli_close(cx, f, k->out);
  } else if (!k->json) write_rules(cx, stdout, k, rs, &r);
  if (!k->json)
    fprintf(stderr,
            "%u rules, %u of them conditional, from %u terms of %u values: %u candidates, %u "
            "followed, %u refuted, %u "
            "redundant; %u runs, %.2f s%s\n",
            r.rules, r.conditional, r.terms, r.values, r.candidates, r.followed, r.refuted,
            r.redundant, r.runs, t, r.late ? ", cut short" : "");
  return r.late && !r.rules ? TARN_NO_RESULT : 0;
}

/* ---- learn, typed ---- */

/* The numbers R1, R2 … that a rule's doc names, as bits. */
static void numbers(const char *doc, bool *number) {
  for (const char *p = doc; (p = strchr(p, 'R')); p++)
    if (p[1] > '0' && p[1] <= '9' && atoi(p + 1) < NUMBERS) number[atoi(p + 1)] = true;
}
static void typed_json(tarn_ctx *cx, const tarn_ruleset *rs, const tarn_terms_report *r,
                       uint32_t shipped, double took) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "rules", '[');
  for (uint32_t i = shipped; i < tarn_ruleset_count(rs); i++) {
    tarn_buf b = {.cx = cx};
    tarn_rule_print(rs, i, &b);
    tarn_json_str(j, NULL, b.p);
  }
  tarn_json_close(j, ']');
  tarn_json_put(j, "terms", r->terms, "values", r->values, "equations", r->equations, "forms",
                r->forms, "asked", r->asked, "followed", r->followed, "local", r->local);
  tarn_json_open(j, "found", '[');
  for (uint32_t i = 0; i < r->nfound; i++) {
    tarn_rule_info info = tarn_ruleset_at(rs, r->found[i].rule);
    tarn_json_object(j, NULL, "rule", info.name, "doc", info.doc, "left", r->found[i].left, "right",
                     r->found[i].right);
  }
  tarn_json_close(j, ']');
  tarn_json_put(j, "stop", r->late ? "seconds" : "done", "seconds", took);
  cli_json_print(j);
}
static void typed_text(tarn_ctx *cx, FILE *f, const tarn_ruleset *rs, const tarn_terms_report *r,
                       uint32_t shipped) {
  bool seen[NUMBERS] = {0}, number[NUMBERS] = {0};
  const char *sep = "";
  for (uint32_t i = 0; i < r->nfound; i++) {
    tarn_rule_info info = tarn_ruleset_at(rs, r->found[i].rule);
    numbers(info.doc, seen);
    fprintf(f, "; %s: %s = %s\n", info.name, r->found[i].left, r->found[i].right);
  }
  for (uint32_t i = 0; i < shipped; i++) numbers(tarn_ruleset_at(rs, i).doc, number);
  fprintf(f, "; found again:");
  for (int i = 1; i < NUMBERS; i++)
    if (seen[i]) fprintf(f, " R%d", i);
  fprintf(f, "\n; of rules with other numbers no instance was met:");
  for (int i = 1; i < NUMBERS; i++)
    if (number[i] && !seen[i]) fprintf(f, "%s R%d", sep, i), sep = ",";
  fprintf(f, "\n; %u rules that do not follow:\n", r->rules);
  for (uint32_t i = shipped; i < tarn_ruleset_count(rs); i++) {
    tarn_buf b = {.cx = cx};
    tarn_rule_print(rs, i, &b);
    fprintf(f, "%s\n", b.p);
  }
}
static int learn_typed(tarn_ctx *cx, const rules_job *k, const tarn_sx *terms) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_ship(rs, NULL, TARN_RULE_SURFACE);
  for (uint32_t i = 1; i < k->files.n; i++) tarn_ruleset_load(rs, k->files.p[i]);
  uint32_t shipped = tarn_ruleset_count(rs);
  tarn_learn_options o = {.size = (uint32_t)k->size, .seed = k->seed, .seconds = k->seconds};
  double t = tarn_now();
  tarn_terms_report r = tarn_rules_learn_terms(rs, terms, &o);
  t = tarn_now() - t;
  if (k->json) typed_json(cx, rs, &r, shipped, t);
  FILE *f = k->out ? cli_open(cx, k->out) : stdout;
  if (k->out || !k->json) typed_text(cx, f, rs, &r, shipped);
  if (k->out) cli_close(cx, f, k->out);
  if (!k->json)
    fprintf(stderr,
            "%u terms of %u values, %u equations of %u forms: %u rules found again; %u equations "
            "asked for, %u follow, %u hold "
            "here only, %u new rules; %.2f s%s\n",
            r.terms, r.values, r.equations, r.forms, r.nfound, r.asked, r.followed, r.local,
            r.rules, t, r.late ? ", cut short" : "");
  return 0;
}

int rules_learn(tarn_ctx *cx, const rules_job *k) {
  if (!k->files.n)
    tarn_raise(cx, TARN_USAGE,
               "rules learn: a FILE with (interpretation …) or (terms …) is expected");
  const tarn_sx *all = tarn_sx_read_file(cx, k->files.p[0]);
  for (uint32_t i = 0; i < all->n; i++)
    if (tarn_sx_is(all->kid[i], "terms")) return learn_typed(cx, k, all->kid[i]);
  if (k->files.n > 1) tarn_raise(cx, TARN_USAGE, "rules learn: one FILE is expected");
  return learn_free(cx, k);
}

/* ---- derive ---- */

typedef struct side {
  const char *file;
  tarn_ruleset *rs;
  bool *follows;
  uint32_t n, count;
} side;

/* <=> is one equation. */
static void count(side *s) {
  for (uint32_t i = 0; i < tarn_ruleset_count(s->rs); i++) {
    if (strchr(tarn_ruleset_at(s->rs, i).name, ':')) continue;
    s->count++, s->n += s->follows[i];
  }
}
static void derive_side(tarn_ctx *cx, const rules_job *k, side *s, side *from, tarn_json *j) {
  uint32_t struck = 0;
  tarn_derive_options o = {.iterations = (uint32_t)k->iters,
                           .nodes = (uint32_t)k->nodes,
                           .lax = k->lax,
                           .seed = k->seed,
                           .bytes = k->bytes,
                           .seconds = k->seconds,
                           .struck = &struck};
  s->follows = TARN_ARRAY(cx, bool, tarn_ruleset_count(s->rs) + 1);
  tarn_rules_derive(from->rs, s->rs, &o, s->follows);
  count(s);
  tarn_json_open(j, NULL, '{');
  tarn_json_put(j, "rules", s->file, "from", from->file, "follow", s->n, "of", s->count, "at_limit",
                struck);
  tarn_json_open(j, "not", '[');
  if (!k->json)
    printf("%u of the %u rules of %s follow from %s\n", s->n, s->count, s->file, from->file);
  if (!k->json && struck) printf("  at %u of them a limit of bytes or time struck\n", struck);
  for (uint32_t i = 0; i < tarn_ruleset_count(s->rs); i++) {
    tarn_buf b = {.cx = cx};
    if (s->follows[i] || strchr(tarn_ruleset_at(s->rs, i).name, ':')) continue;
    tarn_rule_print(s->rs, i, &b);
    tarn_json_str(j, NULL, b.p);
    if (!k->json) printf("  not: %s\n", b.p);
  }
  tarn_json_close(j, ']');
  tarn_json_close(j, '}');
}
int rules_derive(tarn_ctx *cx, const rules_job *k) {
  side s[2] = {{0}};
  tarn_json *j = cli_json_new(cx);
  if (k->files.n != 2) tarn_raise(cx, TARN_USAGE, "rules derive: two FILEs of rules are expected");
  for (uint32_t i = 0; i < 2; i++) {
    s[i] = (side){.file = k->files.p[i], .rs = tarn_free_ruleset_new(tarn_lang_new(cx))};
    tarn_ruleset_load(s[i].rs, s[i].file);
  }
  tarn_json_open(j, "derive", '[');
  derive_side(cx, k, &s[1], &s[0], j);
  derive_side(cx, k, &s[0], &s[1], j);
  tarn_json_close(j, ']');
  if (k->json) cli_json_print(j);
  return 0;
}
