/* The plans of a program's kernels: made once and kept in them, for all that read a plan. Kernels
 * that are planned alike have one plan, and so one function in what is emitted. */
#include "plan/plan.h"
#include <string.h>

struct tarn_planner {
  tarn_lang *L;
  bool contract;
  const tarn_hw *host;
  tarn_intern *keys;
  TARN_VEC(const tarn_plan *) plan; /* by the number of its key */
};

/* ---------------------------------------------------------------- what tells plans apart */
static void key_words(tarn_buf *b, const int64_t *v, uint32_t n) {
  tarn_buf_add(b, (const char *)v, n * sizeof *v);
}
static void key_word(tarn_buf *b, int64_t v) { key_words(b, &v, 1); }
/* aligned: copies of 16 bytes need operands that begin at multiples of them. */
static void key_operand(tarn_buf *b, const tarn_plan_operand *o, bool aligned) {
  const tarn_layout *l = &o->layout;
  const int64_t word[] = {o->dtype, l->n, l->block, l->block ? l->baxis : 0, o->nfew, o->constant};
  key_words(b, word, sizeof word / sizeof *word);
  key_words(b, l->dim, l->n);
  key_words(b, l->stride, l->n);
  if (aligned) key_word(b, l->offset * (int64_t)tarn_dtype_size(o->dtype) % 16);
  if (o->few) tarn_buf_add(b, (const char *)o->few, o->nfew * sizeof *o->few);
}
static void key_levels(tarn_buf *b, const tarn_level *l, uint32_t n) {
  key_word(b, n);
  for (uint32_t i = 0; i < n; i++)
    key_words(b, (const int64_t[]){l[i].dim, l[i].kind, l[i].step}, 3);
}
static void key_unit(tarn_buf *b, const tarn_unit *u) {
  tarn_buf_add(b, u->name, strlen(u->name) + 1);
  key_words(b, (const int64_t[]){u->rows, u->columns, u->sum, u->pairs}, 4);
}
static void key_holds(tarn_buf *b, const tarn_stage_sched *s) {
  key_word(b, s->nhold);
  if (s->unit) key_unit(b, s->unit);
  for (uint32_t i = 0; i < s->nhold; i++) {
    const tarn_hold *h = &s->hold[i];
    const int64_t word[] = {h->what, h->operand,  h->slots, h->at,    h->npart, h->pad,
                            h->skew, h->unpadded, h->gaps,  h->fresh, h->slides};
    key_words(b, word, sizeof word / sizeof *word);
    tarn_buf_add(b, h->memory, strlen(h->memory) + 1);
    for (uint32_t p = 0; p < h->npart; p++)
      key_words(b, (const int64_t[]){h->part[p].dim, h->part[p].div, h->part[p].mod}, 3);
  }
}
static void key_schedule(tarn_buf *b, const tarn_schedule *s) {
  key_words(b, (const int64_t[]){(int64_t)(intptr_t)s->ahead, s->open, s->brief}, 3);
  key_levels(b, s->shared, s->nshared);
  for (uint32_t i = 0; i < s->nstage; i++) {
    const tarn_stage_sched *st = &s->stage[i];
    key_words(b, (const int64_t[]){st->acc, st->open, st->brief}, 3);
    key_levels(b, s->stage[i].level, s->stage[i].nlevel);
    key_holds(b, &s->stage[i]);
  }
}

/* ---------------------------------------------------------------- one kernel */
typedef struct making {
  const tarn_planner *of;
  const tarn_hw *hw;
  const tarn_kernel *k;
  tarn_plan_operand in[TARN_MAX_OPERANDS], out[TARN_MAX_RESULTS];
} making;

static tarn_buf key_of(const making *m) {
  tarn_buf b = {.cx = tarn_lang_ctx(m->of->L)};
  key_words(&b, (const int64_t[]){m->k->machine, m->k->nest}, 2);
  bool aligned = tarn_hw_traits_of(m->hw).blocks;
  for (uint32_t i = 0; i < m->k->nin; i++) key_operand(&b, &m->in[i], aligned);
  for (uint32_t i = 0; i < m->k->nout; i++) key_operand(&b, &m->out[i], aligned);
  key_schedule(&b, m->k->sched);
  return b;
}
static tarn_plan_nest *nest_of(const making *m) {
  const tarn_nest *n = tarn_nest_get(m->of->L, m->k->nest);
  return tarn_plan_make(m->of->L, m->hw, m->of->contract, n, m->k->sched, m->in, m->out);
}
static bool streams(const tarn_plan_nest *N) {
  bool out[TARN_MAX_RESULTS] = {false};
  bool any = false;
  for (uint32_t r = 0; r < tarn_plan_regions(N); r++) any |= tarn_plan_streams_out(N, r, out);
  return any;
}
static void make_nest(const making *m, tarn_plan *p) {
  p->nest = nest_of(m);
  if (!streams(p->nest)) return;
  tarn_plan_nest *through = nest_of(m);
  for (uint32_t i = 0; i < through->nstage; i++) through->stage[i].result.streaming = false;
  p->through = through;
}
static const tarn_plan *plan_nest(tarn_planner *pl, const making *m) {
  tarn_buf key = key_of(m);
  uint32_t id = tarn_intern_add(pl->keys, key.p, key.n);
  if (id < pl->plan.n) return pl->plan.p[id];
  tarn_plan *p = TARN_NEW(tarn_lang_ctx(pl->L), tarn_plan);
  make_nest(m, p);
  tarn_push(tarn_lang_ctx(pl->L), &pl->plan, p);
  return p;
}
static const tarn_plan *plan_unit(const making *m) {
  tarn_ctx *cx = tarn_lang_ctx(m->of->L);
  tarn_plan *p = TARN_NEW(cx, tarn_plan);
  tarn_unit_plan *u = TARN_NEW(cx, tarn_unit_plan);
  const char *why = tarn_unit_make(m->of->L, m->hw, m->k->sig, m->k->chosen, u);
  if (why) tarn_raise(cx, TARN_INTERNAL, "%s: %s", m->k->name, why);
  p->unit = u;
  return p;
}

/* ---------------------------------------------------------------- programs */
tarn_planner *tarn_planner_new(tarn_lang *L, bool contract, const tarn_hw *host) {
  tarn_planner *pl = TARN_NEW(tarn_lang_ctx(L), tarn_planner);
  *pl = (tarn_planner){.L = L, .contract = contract, .host = host};
  pl->keys = tarn_intern_new(tarn_lang_ctx(L));
  return pl;
}
static const tarn_plan *plan_of(tarn_planner *pl, const tarn_kprog *p, const tarn_kernel *k) {
  making m = {.of = pl, .hw = p->machines.n ? p->machines.hw[k->machine] : p->hw, .k = k};
  if (k->nin > TARN_MAX_OPERANDS || k->nout > TARN_MAX_RESULTS)
    tarn_raise(tarn_lang_ctx(p->L), TARN_INTERNAL, "plan: %s: too many operands", k->name);
  if (pl->host && !k->machine) m.hw = pl->host;
  if (!tarn_hw_traits_of(m.hw).any_nest) return plan_unit(&m);
  tarn_plan_operands(p, k, m.in, m.out);
  return plan_nest(pl, &m);
}
void tarn_kprog_plan(tarn_planner *pl, tarn_kprog *p) {
  for (uint32_t i = 0; i < p->nker; i++)
    if (p->ker[i].kind == TARN_K_NEST && !p->ker[i].plan)
      p->ker[i].plan = plan_of(pl, p, &p->ker[i]);
}
