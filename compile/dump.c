/* What stands between two steps of a compile, as text. */
#include "compile/internal.h"
#include <string.h>

static const char *const names[] = {"terms",     "form", "phases", "graph",
                                    "schedules", "plan", "offload"};
#define DUMPS (sizeof names / sizeof *names)

unsigned tarn_dump_parse(tarn_ctx *cx, const char *list) {
  unsigned set = 0;
  for (const char *s = list; s && *s;) {
    size_t n = strcspn(s, ",");
    size_t i = 0;
    while (i < DUMPS && (strlen(names[i]) != n || strncmp(names[i], s, n) != 0)) i++;
    if (i == DUMPS)
      tarn_raise(
          cx, TARN_USAGE,
          "--dump %s: terms, form, phases, graph, schedules, plan or offload is expected, with "
          "commas between",
          list);
    set |= 1u << i;
    s += n + (s[n] == ',');
  }
  return set;
}
bool comp_dumps(const tarn_compiled *c, tarn_dump d) { return c->o->sink && c->o->dump & d; }
void comp_dump(const tarn_compiled *c, tarn_dump d, const tarn_buf *text) {
  const char *name = names[__builtin_ctz(d)];
  if (comp_dumps(c, d)) c->o->sink(c->o->user, name, text->p ? text->p : "", text->n);
}

void comp_dump_program(const tarn_compiled *c) {
  const tarn_program *p = c->program;
  tarn_buf terms = {.cx = tarn_lang_ctx(c->L)};
  tarn_buf form = terms;
  if (comp_dumps(c, TARN_DUMP_TERMS)) tarn_program_print(p, &terms);
  comp_dump(c, TARN_DUMP_TERMS, &terms);
  for (uint32_t i = 0; i < p->nout && comp_dumps(c, TARN_DUMP_FORM); i++) {
    tarn_term_print(p->L, &form, tarn_kernel_form(p->L, p->out[i].term));
    tarn_buf_str(&form, "\n");
  }
  comp_dump(c, TARN_DUMP_FORM, &form);
}

void comp_dump_iteration(tarn_buf *b, const tarn_eg_iteration *it) {
  tarn_buf_fmt(b, "(iteration (nodes %u) (classes %u) (applied %llu) (unions %llu))\n", it->nodes,
               it->classes, (unsigned long long)it->applied, (unsigned long long)it->unions);
}
void comp_dump_rules(tarn_buf *b, const tarn_sat_report *s) {
  for (uint32_t i = 0; i < s->nrule; i++) {
    const tarn_eg_rule_stats *n = &s->rule[i].count;
    if (n->matches)
      tarn_buf_fmt(b, "(rule %s (matches %llu) (applied %llu) (unions %llu))\n", s->rule[i].name,
                   (unsigned long long)n->matches, (unsigned long long)n->applied,
                   (unsigned long long)n->unions);
  }
}

static void print_schedule(const tarn_kprog *p, const tarn_kernel *k, tarn_buf *b) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_buf_fmt(b, "; %s: %.4g us\n", k->name, 1e6 * k->price);
  if (k->kind != TARN_K_NEST) return;
  tarn_buf_fmt(b, "%s\n", tarn_ksig_text(p->L, cx, k->sig));
  tarn_buf_fmt(b, "%s\n", tarn_schedule_text(cx, k->chosen));
}
void comp_dump_kernels(const tarn_compiled *c) {
  const tarn_kprog *p = c->kernels;
  tarn_buf schedules = {.cx = tarn_lang_ctx(c->L)};
  tarn_buf plans = schedules;
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_kernel *k = &p->ker[i];
    if (comp_dumps(c, TARN_DUMP_SCHEDULES)) print_schedule(p, k, &schedules);
    if (!comp_dumps(c, TARN_DUMP_PLAN) || k->kind != TARN_K_NEST) continue;
    tarn_buf_fmt(&plans, "; %s\n", k->name);
    if (k->plan->unit) tarn_unit_print(k->plan->unit, &plans);
    else tarn_plan_print(k->plan->nest, &plans);
  }
  comp_dump(c, TARN_DUMP_SCHEDULES, &schedules);
  comp_dump(c, TARN_DUMP_PLAN, &plans);
}
