/* Makes a proof readable: each lemma occurs once, in the direction in which its rules are read, and
 * repeated parts become one lemma with parameters.
 *
 * A run of steps becomes such a lemma by putting parameters for the terms that all its steps leave
 * unchanged, and for unknown tensors. The proof checker then checks the steps again, so this file
 * knows no rules. */
#include "rules/proof/proof.h"
#include <string.h>

enum { LEVELS = 6 };

tarn_term pf_subst(tarn_lang *L, tarn_term t, tarn_map *with) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(cx, &todo, t);
  while (todo.n) {
    tarn_term top = todo.p[todo.n - 1];
    tarn_node x = *tarn_term_get(L, top);
    uint32_t have = todo.n;
    if (!tarn_map_get(with, top))
      for (uint32_t i = 0; i < x.n; i++)
        if (!tarn_map_get(with, x.kid[i])) tarn_push(cx, &todo, x.kid[i]);
    if (todo.n > have) continue;
    todo.n--;
    if (tarn_map_get(with, top)) continue;
    tarn_term *kid = TARN_ARRAY(cx, tarn_term, x.n ? x.n : 1), now;
    for (uint32_t i = 0; i < x.n; i++) kid[i] = (tarn_term)(*tarn_map_get(with, x.kid[i]) - 1);
    now = x.n ? tarn_mk(L, x.op, x.payload, kid, x.n) : top;
    *tarn_map_at(with, top, NULL) = (uint64_t)now + 1;
  }
  return (tarn_term)(*tarn_map_get(with, t) - 1);
}

typedef struct tidying {
  const tarn_ruleset *rs;
  tarn_lang *L;
  tarn_ctx *cx;
  const pf_proof *raw;
  pf_proof *p;
  pf_judge *judge;
  pf_walks walks;
  uint32_t *as;                 /* raw lemma -> 2 * lemma + backwards; TARN_NONE: it says nothing */
  tarn_map *known;              /* from, to -> 2 * lemma + backwards + 1 */
  tarn_intern *scheme;          /* steps over parameters -> which one */
  TARN_VEC(uint32_t) uses;      /* of a scheme */
  TARN_VEC(uint32_t) scheme_of; /* lemma + 1 of a scheme, 0: not written yet */
} tidying;

static uint64_t pair(tarn_term a, tarn_term b) { return (uint64_t)a << 32 | b; }

/* ---------------------------------------------------------------- direction */

static pf_step turned(tidying *w, const pf_step *s) {
  pf_step t = *s;
  t.before = s->after, t.after = s->before;
  t.forward = !s->forward;
  if (s->kind != PF_CONGRUENCE) return t;
  uint32_t *l = tarn_copy(w->cx, s->lemma, (s->nlemma ? s->nlemma : 1) * sizeof *l);
  for (uint32_t i = 0; i < s->nlemma; i++)
    if (l[i] != TARN_NONE) l[i] ^= 1;
  t.lemma = l;
  return t;
}

static bool reads_backwards(const pf_step *s, uint32_t n) {
  uint32_t there = 0, back = 0;
  for (uint32_t i = 0; i < n; i++)
    if (s[i].kind == PF_RULE || s[i].kind == PF_LEMMA) s[i].forward ? there++ : back++;
  return back > there;
}

static pf_step *turned_all(tidying *w, const pf_step *s, uint32_t n) {
  pf_step *t = TARN_ARRAY(w->cx, pf_step, n ? n : 1);
  for (uint32_t i = 0; i < n; i++) t[i] = turned(w, &s[n - 1 - i]);
  return t;
}

/* ---------------------------------------------------------------- parameters */

/* A tensor that no rule looks into. */
static bool opaque_leaf(const tidying *w, tarn_term t) {
  const tarn_node *x = tarn_term_get(w->L, t);
  if (x->op == TARN_OP_INPUT) return true;
  if (x->op != TARN_OP_CONST) return false;
  const tarn_tensor *v = tarn_payload_get(w->L, x->payload)->tensor;
  return tarn_tensor_count(v) > PF_WRITTEN &&
         w->judge->host.uniform(w->judge->host.user, t) == TARN_NONE;
}

static pf_cut where_to_cut(void *user, tarn_term t) {
  const tidying *w = user;
  return opaque_leaf(w, t)                             ? PF_ALWAYS
         : tarn_term_get(w->L, t)->op == TARN_OP_CONST ? PF_NEVER
                                                       : PF_COMMON;
}

typedef struct scheme {
  uint32_t n;
  pf_step *step;
  TARN_VEC(tarn_term) param;
  TARN_VEC(tarn_term) arg;
} scheme;

/* Parameters for the leaves, in the order in which they are met from t on. */
static void abstract(tidying *w, tarn_term t, const tarn_map *leaf, tarn_map *with, tarn_map *seen,
                     scheme *out) {
  TARN_VEC(tarn_term) todo = {0};
  bool fresh;
  tarn_push(w->cx, &todo, t);
  while (todo.n) {
    tarn_term u = todo.p[--todo.n];
    tarn_map_at(seen, u, &fresh);
    if (!fresh) continue;
    const tarn_node *x = tarn_term_get(w->L, u);
    for (uint32_t i = x->n; i-- > 0 && !tarn_map_get(leaf, u);) tarn_push(w->cx, &todo, x->kid[i]);
    if (!tarn_map_get(leaf, u)) continue;
    const char *kind = w->judge->host.is_const(w->judge->host.user, u) ? PF_CONST "?" : "?";
    tarn_term p = tarn_input(w->L, tarn_format(w->cx, "%s%u", kind, out->param.n), x->type);
    *tarn_map_at(with, u, NULL) = (uint64_t)p + 1;
    tarn_push(w->cx, &out->arg, u);
    tarn_push(w->cx, &out->param, p);
  }
}

static pf_step abstracted(tidying *w, const pf_step *s, tarn_map *with) {
  pf_step t = *s;
  tarn_term *extra = TARN_ARRAY(w->cx, tarn_term, s->nextra + 1u);
  t.before = pf_subst(w->L, s->before, with);
  t.after = pf_subst(w->L, s->after, with);
  if (s->at != TARN_NONE) t.at = pf_subst(w->L, s->at, with);
  for (uint32_t i = 0; i < s->nextra; i++) extra[i] = pf_subst(w->L, s->extra[i], with);
  t.extra = extra;
  return t;
}

static scheme scheme_over(tidying *w, const pf_step *s, uint32_t n, const tarn_map *leaf) {
  scheme out = {.n = n, .step = TARN_ARRAY(w->cx, pf_step, n)};
  tarn_map *with = tarn_map_new(w->cx), *seen = tarn_map_new(w->cx);
  abstract(w, s[0].before, leaf, with, seen, &out);
  for (uint32_t i = 0; i < n; i++) {
    abstract(w, s[i].after, leaf, with, seen, &out);
    if (s[i].at != TARN_NONE) abstract(w, s[i].at, leaf, with, seen, &out);
    for (uint32_t k = 0; k < s[i].nextra; k++) abstract(w, s[i].extra[k], leaf, with, seen, &out);
  }
  for (uint32_t i = 0; i < n; i++) out.step[i] = abstracted(w, &s[i], with);
  return out;
}

static bool scheme_holds(tidying *w, const scheme *c) {
  const char *why;
  for (uint32_t i = 0; i < c->n; i++)
    if (!pf_holds(w->judge, w->p, 0, &c->step[i], &why)) return false;
  return true;
}

static scheme scheme_of(tidying *w, const pf_step *s, uint32_t n, bool *holds) {
  pf_frontier f = {
      .L = w->L, .walks = &w->walks, .cut = where_to_cut, .user = w, .opened = tarn_map_new(w->cx)};
  TARN_VEC(tarn_term) all = {0};
  scheme c;
  tarn_push(w->cx, &all, s[0].before);
  for (uint32_t i = 0; i < n; i++) {
    tarn_push(w->cx, &all, s[i].after);
    if (s[i].at != TARN_NONE) tarn_push(w->cx, &all, s[i].at);
  }
  for (int level = 0, more = 1; more; level++) {
    pf_cut_off(&f, all.p, all.n);
    c = scheme_over(w, s, n, f.leaf);
    *holds = scheme_holds(w, &c);
    more = !*holds && level < LEVELS && pf_open_more(&f);
  }
  return c;
}

static uint32_t key_of(tidying *w, const scheme *c) {
  TARN_VEC(uint64_t) k = {0};
  for (uint32_t i = 0; i < c->n; i++) {
    const pf_step *s = &c->step[i];
    tarn_push(w->cx, &k, s->kind * 2u + s->forward);
    tarn_push(w->cx, &k, s->rule ? tarn_ruleset_find(w->rs, s->rule) : TARN_NONE);
    tarn_push(w->cx, &k, pair(s->before, s->after));
    tarn_push(w->cx, &k, pair(s->at, s->slot));
    tarn_push(w->cx, &k, pair(s->nopen, s->nextra));
    for (uint32_t j = 0; j < s->nopen; j++) tarn_push(w->cx, &k, s->open[j]);
    for (uint32_t j = 0; j < s->nextra; j++) tarn_push(w->cx, &k, s->extra[j]);
  }
  return tarn_intern_add(w->scheme, k.p, k.n * sizeof *k.p);
}

/* ---------------------------------------------------------------- runs of steps */

static bool local(const pf_step *s) { return s->kind == PF_RULE || s->kind == PF_NORM; }

static uint32_t run_at(const pf_step *s, uint32_t n) {
  uint32_t k = 0;
  while (k < n && local(&s[k])) k++;
  return k;
}

typedef struct run {
  scheme c;
  uint32_t key;
  bool back, holds;
} run;

static run read_run(tidying *w, const pf_step *s, uint32_t n) {
  run r = {.back = reads_backwards(s, n)};
  r.c = scheme_of(w, r.back ? turned_all(w, s, n) : s, n, &r.holds);
  r.key = key_of(w, &r.c);
  while (w->uses.n <= r.key) {
    tarn_push(w->cx, &w->uses, 0);
    tarn_push(w->cx, &w->scheme_of, 0);
  }
  return r;
}

static uint32_t add_lemma(tidying *w, pf_lemma l, const pf_step *s, uint32_t n) {
  l.first = w->p->step.n, l.n = n;
  for (uint32_t i = 0; i < n; i++) {
    tarn_push(w->cx, &w->p->step, s[i]);
    w->p->step.p[w->p->step.n - 1].number = w->p->step.n;
  }
  tarn_push(w->cx, &w->p->lemma, l);
  return w->p->lemma.n - 1;
}

/* The step that uses the scheme of a run, whose lemma is written when it is new. */
static pf_step instance_of(tidying *w, const run *r, tarn_term before, tarn_term after) {
  const scheme *c = &r->c;
  if (!w->scheme_of.p[r->key]) {
    pf_lemma l = {.from = c->step[0].before,
                  .to = c->step[c->n - 1].after,
                  .nparam = c->param.n,
                  .param = c->param.p};
    w->scheme_of.p[r->key] = add_lemma(w, l, c->step, c->n) + 1;
  }
  uint32_t *ref = tarn_copy(w->cx, &(uint32_t){2 * (w->scheme_of.p[r->key] - 1)}, sizeof *ref);
  return (pf_step){.kind = PF_LEMMA,
                   .forward = !r->back,
                   .before = before,
                   .after = after,
                   .nlemma = 1,
                   .lemma = ref,
                   .at = TARN_NONE,
                   .slot = TARN_NONE,
                   .nextra = c->arg.n,
                   .extra = c->arg.p};
}

/* ---------------------------------------------------------------- lemmas */

static bool is_new(tarn_map *seen, const pf_lemma *l) {
  bool there, back;
  tarn_map_at(seen, pair(l->from, l->to), &there);
  tarn_map_at(seen, pair(l->to, l->from), &back);
  return there && back;
}

static void count_runs(tidying *w) {
  tarn_map *seen = tarn_map_new(w->cx);
  for (uint32_t k = 0; k < w->raw->lemma.n; k++) {
    const pf_lemma *l = &w->raw->lemma.p[k];
    if (!is_new(seen, l)) continue;
    const pf_step *s = w->raw->step.p + l->first;
    for (uint32_t i = 0, n; i < l->n; i += n ? n : 1)
      if ((n = run_at(s + i, l->n - i))) {
        run r = read_run(w, s + i, n);
        w->uses.p[r.key] += r.holds;
      }
  }
}

/* In the raw proof lemmas are plain numbers, and a congruence as a whole may go backwards. */
static pf_step with_known_lemmas(tidying *w, const pf_step *s) {
  pf_step t = *s;
  uint32_t *l = TARN_ARRAY(w->cx, uint32_t, s->nlemma + 1u);
  for (uint32_t i = 0; i < s->nlemma; i++) {
    l[i] = s->lemma[i] == TARN_NONE ? TARN_NONE : w->as[s->lemma[i]];
    if (l[i] != TARN_NONE) l[i] ^= !s->forward;
  }
  t.lemma = l;
  t.forward = true;
  if (s->kind == PF_LEMMA) t.forward = !(l[0] & 1), l[0] &= ~1u;
  return t;
}

static void tidy_lemma(tidying *w, uint32_t k, bool last) {
  const pf_lemma *l = &w->raw->lemma.p[k];
  const uint64_t *known = tarn_map_get(w->known, pair(l->from, l->to));
  w->as[k] = known ? (uint32_t)*known - 1 : TARN_NONE;
  if (!last && (known || l->from == l->to)) return;
  TARN_VEC(pf_step) out = {0};
  const pf_step *s = w->raw->step.p + l->first;
  for (uint32_t i = 0, n; i < l->n; i += n ? n : 1) {
    n = run_at(s + i, l->n - i);
    if (n == 0) {
      tarn_push(w->cx, &out, with_known_lemmas(w, &s[i]));
      continue;
    }
    run r = read_run(w, s + i, n);
    if (w->uses.p[r.key] > 1)
      tarn_push(w->cx, &out, instance_of(w, &r, s[i].before, s[i + n - 1].after));
    for (uint32_t j = 0; j < n && w->uses.p[r.key] < 2; j++) tarn_push(w->cx, &out, s[i + j]);
  }
  bool back = !last && reads_backwards(out.p, out.n);
  pf_lemma to = {.from = back ? l->to : l->from, .to = back ? l->from : l->to};
  uint32_t at = add_lemma(w, to, back ? turned_all(w, out.p, out.n) : out.p, out.n);
  w->as[k] = 2 * at + back;
  *tarn_map_at(w->known, pair(l->from, l->to), NULL) = 2 * (uint64_t)at + back + 1;
  *tarn_map_at(w->known, pair(l->to, l->from), NULL) = 2 * (uint64_t)at + !back + 1;
}

/* ---------------------------------------------------------------- what the theorem needs */

static void mark_needed(const pf_proof *p, bool *need) {
  if (p->lemma.n) need[p->lemma.n - 1] = true;
  for (uint32_t k = p->lemma.n; k-- > 0;)
    for (uint32_t i = 0; need[k] && i < p->lemma.p[k].n; i++) {
      const pf_step *s = &p->step.p[p->lemma.p[k].first + i];
      for (uint32_t j = 0; j < s->nlemma; j++)
        if (s->lemma[j] != TARN_NONE) need[s->lemma[j] / 2] = true;
    }
}

static pf_proof *without_the_rest(tidying *w) {
  const pf_proof *p = w->p;
  bool *need = TARN_ARRAY(w->cx, bool, p->lemma.n + 1u);
  uint32_t *to = TARN_ARRAY(w->cx, uint32_t, p->lemma.n + 1u);
  pf_proof *q = TARN_NEW(w->cx, pf_proof);
  *q = (pf_proof){.L = w->L, .from = p->from, .to = p->to, .range = p->range, .output = p->output};
  mark_needed(p, need);
  w->p = q;
  for (uint32_t k = 0; k < p->lemma.n; k++) {
    const pf_lemma *l = &p->lemma.p[k];
    if (!need[k]) continue;
    const pf_step *old = p->step.p + l->first;
    pf_step *s = TARN_ARRAY(w->cx, pf_step, l->n + 1u);
    for (uint32_t i = 0; i < l->n; i++) s[i] = old[i];
    for (uint32_t i = 0; i < l->n; i++) {
      if (!s[i].nlemma) continue;
      uint32_t *ref = tarn_copy(w->cx, s[i].lemma, s[i].nlemma * sizeof *ref);
      for (uint32_t j = 0; j < s[i].nlemma; j++)
        if (ref[j] != TARN_NONE) ref[j] = 2 * to[ref[j] / 2] + ref[j] % 2;
      s[i].lemma = ref;
    }
    to[k] = add_lemma(w, *l, s, l->n);
  }
  return q;
}

pf_proof *pf_tidy(const tarn_ruleset *rs, const pf_proof *raw) {
  tarn_ctx *cx = tarn_lang_ctx(raw->L);
  pf_proof *p = TARN_NEW(cx, pf_proof);
  tidying w = {.rs = rs,
               .L = raw->L,
               .cx = cx,
               .raw = raw,
               .p = p,
               .judge = pf_judge_new(rs),
               .as = TARN_ARRAY(cx, uint32_t, raw->lemma.n + 1u),
               .known = tarn_map_new(cx),
               .scheme = tarn_intern_new(cx)};
  *p = (pf_proof){
      .L = raw->L, .from = raw->from, .to = raw->to, .range = raw->range, .output = raw->output};
  count_runs(&w);
  for (uint32_t k = 0; k < raw->lemma.n; k++) tidy_lemma(&w, k, k + 1 == raw->lemma.n);
  pf_proof *q = without_the_rest(&w);
  for (uint32_t i = 0; i < q->step.n; i++) pf_bind_step(w.judge, &q->step.p[i]);
  return q;
}
