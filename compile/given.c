/* Schedules handed in as text: read, checked, and looked for among the kernels of the program. */
#include "compile/internal.h"
#include <string.h>

/* ---- reading ---- */
typedef struct reader {
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_machines machines;
  TARN_VEC(tarn_given) given;
  TARN_VEC(const tarn_sx *) at; /* where each stands */
} reader;

typedef struct checking {
  const reader *r;
  const tarn_ksig *k;
  const tarn_schedule *s;
} checking;
static void check(tarn_ctx *cx, void *arg) {
  const checking *c = arg;
  const tarn_machines *m = &c->r->machines;
  const tarn_hw *hw = m->hw[tarn_schedule_machine(m, c->s)];
  tarn_target_of(cx, hw)->check(c->r->L, hw, c->k, c->s);
}
static const tarn_schedule *read_schedule(reader *r, const tarn_sx *s, const tarn_ksig *k) {
  checking c = {r, k, tarn_schedule_read(r->L, tarn_nest_get(r->L, k->nest), s)};
  tarn_status st = tarn_protect(r->cx, check, &c);
  if (st == TARN_BAD_INPUT) tarn_sx_error(r->cx, s, "%s", tarn_strdup(r->cx, tarn_message(r->cx)));
  if (st != TARN_OK) tarn_reraise(r->cx, st);
  return c.s;
}
static const char *text_of(const reader *r, const tarn_plan_choice *k) {
  return tarn_schedule_text(r->cx, k->sched);
}
/* Kernels that are alike are printed each, with the same schedule. */
static bool is_known(const reader *r, const tarn_plan_choice *k, const tarn_sx *at) {
  for (uint32_t i = 0; i < r->given.n; i++) {
    const tarn_plan_choice *was = &r->given.p[i].k;
    bool same = tarn_schedule_machine(&r->machines, was->sched) ==
                tarn_schedule_machine(&r->machines, k->sched);
    if (!same || !tarn_ksig_equal(was->sig, k->sig)) continue;
    if (strcmp(text_of(r, was), text_of(r, k)) != 0)
      tarn_sx_error(r->cx, at, "another schedule for this signature stands in line %u",
                    r->at.p[i]->line);
    return true;
  }
  return false;
}
static void read_pair(reader *r, const tarn_sx *sig, const tarn_sx *sched) {
  tarn_ksig *k = TARN_NEW(r->cx, tarn_ksig);
  tarn_ksig_read(r->L, sig, k);
  if (!sched) tarn_sx_error(r->cx, sig, "no schedule follows this signature");
  tarn_given g = {.k = {k, read_schedule(r, sched, k)}};
  if (is_known(r, &g.k, sched)) return;
  g.where = tarn_format(r->cx, "%s:%u:%u", sig->file, sig->line, sig->col);
  tarn_push(r->cx, &r->given, g);
  tarn_push(r->cx, &r->at, sched);
}
uint32_t tarn_given_read(tarn_lang *L, const tarn_hw *hw, const char *text, size_t n,
                         const char *file, const tarn_given **out) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  reader r = {.L = L, .cx = cx, .machines = tarn_hw_machines(hw)};
  tarn_target_of(cx, hw);
  const tarn_sx *all = tarn_sx_read(cx, text, n, file);
  for (uint32_t i = 0; i < all->n; i += 2)
    read_pair(&r, all->kid[i], i + 1 < all->n ? all->kid[i + 1] : NULL);
  *out = r.given.p;
  return r.given.n;
}

/* ---- among the kernels ---- */
const tarn_plan_choice *comp_given(const tarn_compiled *c) {
  tarn_plan_choice *k = TARN_ARRAY(tarn_lang_ctx(c->L), tarn_plan_choice, c->o->ngiven + 1);
  for (uint32_t i = 0; i < c->o->ngiven; i++) k[i] = c->o->given[i].k;
  return k;
}
void comp_given_used(const tarn_compiled *c) {
  const tarn_kprog *p = c->kernels;
  for (uint32_t i = 0; i < c->o->ngiven; i++) {
    const tarn_given *g = &c->o->given[i];
    const tarn_machines m = tarn_hw_machines(c->o->hw);
    uint32_t machine = tarn_schedule_machine(&m, g->k.sched);
    bool used = false;
    for (uint32_t k = 0; k < p->nker; k++)
      used |=
          p->ker[k].sig && p->ker[k].machine == machine && tarn_ksig_equal(p->ker[k].sig, g->k.sig);
    if (!used)
      tarn_raise(tarn_lang_ctx(c->L), TARN_BAD_INPUT,
                 "%s: no kernel of the program%s%s has this signature", g->where,
                 m.n > 1 ? " on " : "", m.n > 1 ? m.hw[machine]->name : "");
  }
}
