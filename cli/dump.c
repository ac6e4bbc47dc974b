/* tarn compile --dump: what stands between two steps of a compile, as text on standard output. */
#include "cli/cli.h"
#include "plan/plan.h"
#include <string.h>

static const char *const names[] = {"terms", "form", "phases", "graph", "schedules", "plan"};

unsigned cli_dump_parse(tarn_ctx *cx, const char *list) {
  unsigned set = 0;
  for (const char *s = list; s && *s;) {
    size_t n = strcspn(s, ",");
    size_t i = 0;
    while (i < CLI_DUMPS && (strlen(names[i]) != n || strncmp(names[i], s, n) != 0)) i++;
    if (i == CLI_DUMPS)
      tarn_raise(cx, TARN_USAGE,
                 "--dump %s: terms, form, phases, graph, schedules or plan is expected, with "
                 "commas between",
                 list);
    set |= 1u << i;
    s += n + (s[n] == ',');
  }
  return set;
}
static void put(const char *name, const tarn_buf *b) {
  printf(";; %s\n", name);
  fwrite(b->p, 1, b->n, stdout);
}

void cli_dump_program(const tarn_program *p, unsigned set) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  if (set >> CLI_DUMP_TERMS & 1) {
    tarn_buf b = {.cx = cx};
    tarn_program_print(p, &b);
    put("terms", &b);
  }
  if (set >> CLI_DUMP_FORM & 1) {
    tarn_buf b = {.cx = cx};
    for (uint32_t i = 0; i < p->nout; i++) {
      tarn_term_print(p->L, &b, tarn_kernel_form(p->L, p->out[i].term));
      tarn_buf_str(&b, "\n");
    }
    put("form", &b);
  }
}
void cli_dump_iteration(void *user, tarn_egraph *g, const tarn_eg_iteration *it) {
  (void)user;
  (void)g;
  printf("(iteration (nodes %u) (classes %u) (applied %llu) (unions %llu))\n", it->nodes,
         it->classes, (unsigned long long)it->applied, (unsigned long long)it->unions);
}
void cli_dump_rules(const tarn_sat_report *s) {
  for (uint32_t i = 0; i < s->nrule; i++) {
    const tarn_eg_rule_stats *c = &s->rule[i].count;
    if (c->matches)
      printf("(rule %s (matches %llu) (applied %llu) (unions %llu))\n", s->rule[i].name,
             (unsigned long long)c->matches, (unsigned long long)c->applied,
             (unsigned long long)c->unions);
  }
}

static void print_schedule(const tarn_kprog *p, const tarn_kernel *k, tarn_buf *b) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_buf_fmt(b, "; %s: %.4g us\n", k->name, 1e6 * k->price);
  if (k->kind != TARN_K_NEST) return;
  if (k->sig) tarn_buf_fmt(b, "%s\n", tarn_ksig_text(p->L, cx, k->sig));
  tarn_buf_fmt(b, "%s\n", tarn_schedule_text(p->L, cx, tarn_nest_get(p->L, k->nest), k->sched));
}
void cli_dump_kernels(const tarn_kprog *p, bool contract, unsigned set) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_buf schedules = {.cx = cx};
  tarn_buf plans = {.cx = cx};
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_kernel *k = &p->ker[i];
    if (set >> CLI_DUMP_SCHEDULES & 1) print_schedule(p, k, &schedules);
    if (!(set >> CLI_DUMP_PLAN & 1) || k->kind != TARN_K_NEST) continue;
    tarn_buf_fmt(&plans, "; %s\n", k->name);
    tarn_plan_print(tarn_plan_of_kernel(p, k, contract), &plans);
  }
  if (set >> CLI_DUMP_SCHEDULES & 1) put("schedules", &schedules);
  if (set >> CLI_DUMP_PLAN & 1) put("plan", &plans);
}
