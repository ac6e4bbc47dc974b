/* tarn rules stats MODEL…: of what use each rule of compile is: how often it matches and is
 * applied, and how often it stands in the chain from the model to the program that was chosen. */
#include "cli/rules.h"
#include <stdlib.h>
#include <string.h>

typedef struct use {
  const char *name, *family;
  uint32_t models; /* in which it was applied */
  uint64_t matches, applied, unions, steps;
  double search, apply; /* seconds */
} use;
typedef struct corpus { /* over all models */
  tarn_ctx *cx;
  const rules_job *k;
  const char *model;
  TARN_VEC(use) use;
  uint64_t nodes, steps;
} corpus;

static use *use_of(corpus *c, const char *name, const char *family) {
  for (uint32_t i = 0; i < c->use.n; i++)
    if (!strcmp(c->use.p[i].name, name)) return &c->use.p[i];
  use u = {.name = tarn_strdup(c->cx, name), .family = tarn_strdup(c->cx, family)};
  tarn_push(c->cx, &c->use, u);
  return &c->use.p[c->use.n - 1];
}

/* Steps of a chain: (step NUMBER rule NAME …). */
static void count_steps(corpus *c, const char *text) {
  for (const char *p = text; (p = strstr(p, "(step ")); p++) {
    const char *q = p + 6 + strspn(p + 6, "0123456789");
    if (strncmp(q, " rule ", 6)) continue;
    const char *name = tarn_strndup(c->cx, q + 6, strcspn(q + 6, " )"));
    c->steps++, use_of(c, name, "")->steps++;
  }
}

static void one_model(tarn_ctx *cx, void *arg) {
  corpus *c = arg;
  cli_compile o = {.model = c->model,
                   .hw = c->k->hw,
                   .numerics = c->k->numerics,
                   .shapes = c->k->shapes,
                   .sets = c->k->sets,
                   .def = c->k->def,
                   .copies = c->k->copies,
                   .nodes = c->k->nodes,
                   .iters = c->k->iters,
                   .seconds = c->k->seconds};
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options with = *cli_options(L, &o);
  with.reasons = true;
  tarn_compiled *r = tarn_compile_load(L, &with);
  tarn_compile_optimise(r);
  const tarn_sat_report *s = r->rewriting;
  c->nodes += s->nodes;
  for (uint32_t i = 0; i < s->nrule; i++) {
    const tarn_eg_rule_stats *n = &s->rule[i].count;
    use *u = use_of(c, s->rule[i].name, s->rule[i].family);
    u->models += n->applied > 0, u->matches += n->matches, u->applied += n->applied,
        u->unions += n->unions;
    u->search += n->search, u->apply += n->apply;
  }
  tarn_buf b = {.cx = cx};
  tarn_compile_explain(r, &b);
  count_steps(c, b.p);
}
/* In a context of its own, so that a corpus takes no more memory than its largest model. */
static void run_model(corpus *c, const char *model) {
  tarn_ctx *cx = tarn_ctx_new(tarn_ctx_allocator(c->cx));
  if (!cx) tarn_raise(c->cx, TARN_MEMORY, "out of memory");
  c->model = model;
  tarn_status st = tarn_protect(cx, one_model, c);
  const char *why = st ? tarn_strdup(c->cx, tarn_message(cx)) : NULL;
  for (size_t i = 0; i < tarn_warning_count(cx); i++) tarn_warn(c->cx, "%s", tarn_warning(cx, i));
  tarn_ctx_free(cx);
  if (st && !strncmp(why, model, strlen(model)))
    tarn_raise(c->cx, st, "%s", why); /* it names the file itself */
  if (st) tarn_raise(c->cx, st, "%s: %s", model, why);
}

/* What there is to say of it. */
static const char *verdict(const corpus *c, const use *u) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < c->use.n; i++) all += c->use.p[i].matches;
  if (!u->matches) return "dead";
  if (!u->applied) return "matches only";
  if (!u->steps) return 4 * u->matches > all ? "idle, explosive" : "idle";
  return 4 * u->matches > all ? "explosive" : "";
}
static int by_use(const void *a, const void *b) {
  const use *x = a, *y = b;
  if (x->steps != y->steps) return x->steps < y->steps ? 1 : -1;
  if (x->applied != y->applied) return x->applied < y->applied ? 1 : -1;
  return strcmp(x->name, y->name);
}
static void show_json(tarn_ctx *cx, const corpus *c, const cli_list *models) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "models", '[');
  for (uint32_t i = 0; i < models->n; i++) tarn_json_str(j, NULL, models->p[i]);
  tarn_json_close(j, ']');
  tarn_json_put(j, "nodes", (int64_t)c->nodes, "steps", (int64_t)c->steps);
  tarn_json_open(j, "rules", '[');
  for (uint32_t i = 0; i < c->use.n; i++) {
    const use *u = &c->use.p[i];
    tarn_json_object(j, NULL, "name", u->name, "family", u->family, "models", u->models, "matches",
                     (int64_t)u->matches, "applied", (int64_t)u->applied, "unions",
                     (int64_t)u->unions, "steps", (int64_t)u->steps, "search", u->search, "apply",
                     u->apply, "verdict", verdict(c, u));
  }
  tarn_json_close(j, ']');
  cli_json_print(j);
}
static void show(const corpus *c, uint32_t models) {
  printf("%-20s %-12s %6s %10s %10s %10s %8s %9s %9s\n", "rule", "family", "models", "matches",
         "applied", "unions", "in proof", "search ms", "apply ms");
  for (uint32_t i = 0; i < c->use.n; i++) {
    const use *u = &c->use.p[i];
    printf("%-20s %-12s %6u %10llu %10llu %10llu %8llu %9.2f %9.2f  %s\n", u->name, u->family,
           u->models, (unsigned long long)u->matches, (unsigned long long)u->applied,
           (unsigned long long)u->unions, (unsigned long long)u->steps, 1e3 * u->search,
           1e3 * u->apply, verdict(c, u));
  }
  printf("%u models, %llu e-nodes, %llu steps of rules in their proofs\n", models,
         (unsigned long long)c->nodes, (unsigned long long)c->steps);
}

int rules_stats(tarn_ctx *cx, const rules_job *k) {
  corpus c = {.cx = cx, .k = k};
  if (!k->files.n) tarn_raise(cx, TARN_USAGE, "rules stats: MODELs are expected");
  for (uint32_t i = 0; i < k->files.n; i++) run_model(&c, k->files.p[i]);
  qsort(c.use.p, c.use.n, sizeof *c.use.p, by_use);
  if (k->json) show_json(cx, &c, &k->files);
  else show(&c, k->files.n);
  return 0;
}
