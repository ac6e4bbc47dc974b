/* Steps between the terms of a proof that the e-graph did not take: every rule is tried at every
 * term, and where what it makes is a term of the proof too, or is no larger than what it is made
 * from, there is a step. */
#include "lab/free_terms.h"
#include <string.h>

enum {
  MOST_TERMS = 20000,
  MOST_NEW = 4000,
  MOST_KIDS = 64,
  MOST_CHAIN = 10000,
  MOST_SPINES = 1000000,
  MOST_WORK = 1000000000
};

typedef struct finding {
  const tarn_ruleset *rs;
  free_state *f;
  tarn_ctx *cx;
  tarn_eg_proof *p;
  TARN_VEC(const tarn_sx *) text; /* per term */
  TARN_VEC(uint32_t) size;
  tarn_map *term; /* text -> term + 1 */
  uint32_t first; /* terms of the proof as it was given */
  bool grow;
  free_texts granted; /* what steps of the proof take for granted already: others may, too */
} finding;

/* ---- terms as text; equal terms are one pointer ---- */
static void take_terms(finding *x) {
  for (uint32_t t = x->text.n; t < tarn_eg_proof_terms(x->p); t++) {
    tarn_eg_node e = tarn_eg_proof_term(x->p, t);
    const tarn_sx **kid = TARN_ARRAY(x->cx, const tarn_sx *, e.n + 1);
    for (uint32_t i = 0; i < e.n; i++) kid[i] = x->text.p[e.kids[i]];
    size_t len;
    const char *name = tarn_intern_key(x->f->symbol, e.op, &len);
    const tarn_sx *s = free_term_make(x->f->terms, name, len, kid, e.n);
    tarn_push(x->cx, &x->text, s);
    tarn_push(x->cx, &x->size, free_term_of(s)->size);
    *tarn_map_at(x->term, (uint64_t)(uintptr_t)s, NULL) = t + UINT64_C(1);
  }
}
static uint32_t number_of(const finding *x, const tarn_sx *s) {
  const uint64_t *t = tarn_map_get(x->term, (uint64_t)(uintptr_t)s);
  return t ? (uint32_t)(*t - 1) : TARN_NONE;
}
/* The term, which is made when that is wanted. */
static uint32_t node_of(finding *x, uint32_t op, const uint32_t *kids, uint32_t n) {
  uint32_t t = tarn_eg_proof_find_term(x->p, op, 0, kids, n);
  if (t != TARN_NONE || !x->grow) return t;
  t = tarn_eg_proof_add_term(x->p, op, 0, kids, n);
  if (t == TARN_NONE) tarn_raise(x->cx, TARN_MEMORY, "out of memory");
  take_terms(x);
  return t;
}

/* ---- what a right side makes ---- */
static uint32_t instance(finding *x, const fcheck *k, const rpat *p);
static bool add_kids(finding *x, const fcheck *k, const rpat *p, uint32_t *kid, uint32_t *n) {
  for (uint32_t j = 0; j < (p->kind == RP_SEG ? k->seg[p->var].n : 1); j++) {
    if (*n == MOST_KIDS) return false;
    kid[*n] = p->kind == RP_SEG ? number_of(x, k->seg[p->var].p[j]) : instance(x, k, p);
    if (kid[(*n)++] == TARN_NONE) return false;
  }
  return true;
}
static uint32_t instance(finding *x, const fcheck *k, const rpat *p) {
  uint32_t kid[MOST_KIDS], n = 0, op = p->op;
  if (p->kind == RP_VAR) return k->cls[p->var] ? number_of(x, k->cls[p->var]) : TARN_NONE;
  if (p->kind != RP_NODE)
    return TARN_NONE; /* values are found as steps of the analysis; fresh names are the graph's */
  if (op == TARN_NONE)
    op = tarn_intern_find(free_of(x->rs)->symbol, k->op[p->opvar]->text, k->op[p->opvar]->len);
  for (uint32_t i = 0; i < p->n; i++)
    if (!add_kids(x, k, p->kid[i], kid, &n)) return TARN_NONE;
  return op == TARN_NONE ? TARN_NONE : node_of(x, op, kid, n);
}
/* How large it will be; 0: not known. */
static uint64_t instance_size(const finding *x, const fcheck *k, const rpat *p) {
  uint64_t size = 1;
  if (p->kind == RP_VAR) return k->cls[p->var] ? x->size.p[number_of(x, k->cls[p->var])] : 0;
  if (p->kind != RP_NODE) return 0;
  for (uint32_t i = 0; i < p->n; i++) {
    uint64_t kid = instance_size(x, k, p->kid[i]);
    if (!kid) return 0;
    size += kid;
  }
  return size;
}

/* ---- steps ---- */
static void put(finding *x, uint32_t by, uint32_t note, uint32_t left, uint32_t right) {
  if (right == TARN_NONE || right == left) return;
  if (!tarn_eg_proof_add_step(x->p, by, note, left, right))
    tarn_raise(x->cx, TARN_MEMORY, "out of memory");
}
static void try_rule(finding *x, uint32_t number, uint32_t t) {
  const rule *r = x->rs->rule.p[number];
  const rpat *left = r->lhs[0].pat, *right = r->rhs[0].pat;
  if (left->kind == RP_NODE && left->op != TARN_NONE && left->op != tarn_eg_proof_term(x->p, t).op)
    return;
  free_texts texts = {0};
  fcheck k = {.f = x->f, .r = r, .assumes = &texts};
  if (!free_term_match(&k, left, x->text.p[t]) || free_term_conditions(&k) == FREE_REFUTED) return;
  for (uint32_t i = 0; i < texts.n; i++)
    if (!free_texts_has(&x->granted, texts.p[i])) return;
  uint64_t size = instance_size(x, &k, right);
  x->grow = size && size <= x->size.p[t] && x->text.n < x->first + MOST_NEW;
  put(x, number, 0, t, instance(x, &k, right));
}
static bool fits(const rule *r) {
  return !r->dropped && r->nlhs == 1 && r->nrhs == 1 && !r->nguard && !r->nwhere &&
         r->rhs[0].var == TARN_NONE && r->rhs[0].pat->kind != RP_ADD;
}
static void try_value(finding *x, uint32_t t) {
  fval v;
  if (!tarn_eg_proof_term(x->p, t).n || !free_term_value(x->text.p[t], &v)) return;
  x->grow = x->text.n < x->first + MOST_NEW;
  put(x, TARN_EG_RULE_ANALYSIS, x->f->constants, t,
      node_of(x, free_value_symbol(x->f, &v), NULL, 0));
}

/* What the whole terms of the chain will take. */
static bool add_depth(void *user, const tarn_eg_proof *p, const tarn_eg_flat *step) {
  (void)p;
  *(uint64_t *)user += step->n_path + 1;
  return *(uint64_t *)user <= MOST_SPINES;
}
static void add_whole_terms(tarn_eg_proof *p) {
  uint64_t depths = 0;
  uint32_t last = tarn_eg_proof_lemmas(p) - 1;
  if (tarn_eg_proof_flatten_lemma(p, last, false, MOST_CHAIN, add_depth, &depths) != UINT64_MAX)
    tarn_eg_proof_flatten(p, MOST_CHAIN, NULL, NULL);
}
static void look_at_steps(finding *x) {
  for (uint32_t i = 0; i < tarn_eg_proof_steps(x->p); i++) {
    tarn_eg_step s = tarn_eg_proof_step(x->p, i);
    if (s.rule >= x->rs->rule.n || !x->rs->rule.p[s.rule]->ncond) continue;
    const tarn_sx *left = x->text.p[s.forward ? s.before : s.after],
                  *right = x->text.p[s.forward ? s.after : s.before];
    free_step_assumes(x->f, x->rs->rule.p[s.rule], left, right, &x->granted);
  }
}

void tarn_free_shorten(const tarn_ruleset *rs, tarn_eg_proof *p) {
  finding x = {.rs = rs,
               .f = free_of(rs),
               .cx = rs->cx,
               .p = p,
               .first = tarn_eg_proof_terms(p),
               .term = tarn_map_new(rs->cx)};
  free_terms_new(x.f);
  take_terms(&x);
  look_at_steps(&x);
  add_whole_terms(p);
  tarn_eg_proof_shorten(p, MOST_WORK);
  take_terms(&x);
  for (uint32_t t = 0; t < x.text.n && t < MOST_TERMS; t++) {
    try_value(&x, t);
    for (uint32_t i = 0; i < rs->rule.n; i++)
      if (fits(rs->rule.p[i])) try_rule(&x, i, t);
  }
  tarn_eg_proof_shorten(p, MOST_WORK);
  if (tarn_eg_proof_status(p)) tarn_raise(rs->cx, TARN_MEMORY, "explain: out of memory");
}
