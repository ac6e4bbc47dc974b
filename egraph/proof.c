/* Reading proofs, and unfolding them into one chain. */
#include "egraph/proof.h"

#include <string.h>

/* ---- terms ---- */

static uint64_t term_hash(uint32_t op, uint32_t payload, const uint32_t *kids, uint32_t n) {
  uint64_t h = tarn_hash_mix(tarn_hash_mix(op + 1, payload), n);
  for (uint32_t i = 0; i < n; i++) h = tarn_hash_mix(h, kids[i]);
  return h;
}

static bool same_term(const tarn_eg_proof *p, uint32_t t, uint32_t op, uint32_t payload,
                      const uint32_t *kids, uint32_t n) {
  const pf_term *x = &p->term[t];
  return x->op == op && x->payload == payload && x->n == n &&
         (n == 0 || memcmp(p->kids.p + x->kids, kids, n * sizeof *kids) == 0);
}

static uint32_t *term_slot(const tarn_eg_proof *p, uint64_t h, uint32_t op, uint32_t payload,
                           const uint32_t *kids, uint32_t n) {
  size_t m = p->table.n - 1, i = (size_t)h & m;
  while (p->table.p[i] != NONE && !same_term(p, p->table.p[i], op, payload, kids, n))
    i = (i + 1) & m;
  return &p->table.p[i];
}

static bool grow_table(tarn_eg_proof *p) {
  size_t n = p->table.n ? p->table.n * 2 : 64;
  if (!eg_vec_reserve(&p->mem, &p->table, n - p->table.n)) return false;
  p->table.n = n;
  memset(p->table.p, 0xFF, n * sizeof *p->table.p);
  for (uint32_t t = 0; t < p->n_terms; t++) {
    const pf_term *x = &p->term[t];
    const uint32_t *k = p->kids.p + x->kids;
    *term_slot(p, term_hash(x->op, x->payload, k, x->n), x->op, x->payload, k, x->n) = t;
  }
  return true;
}

uint32_t pf_intern(tarn_eg_proof *p, uint32_t op, uint32_t payload, const uint32_t *kids,
                   uint32_t n) {
  if ((size_t)p->n_terms * 2 >= p->table.n && !grow_table(p)) return NONE;
  uint32_t *slot = term_slot(p, term_hash(op, payload, kids, n), op, payload, kids, n);
  if (*slot != NONE) return *slot;
  if (!eg_vec_reserve(&p->mem, &p->kids, n + (size_t)1) ||
      !eg_grow(&p->mem, (void **)&p->term, &p->term_cap, p->n_terms + 1u, sizeof *p->term))
    return NONE;
  if (n) memcpy(p->kids.p + p->kids.n, kids, n * sizeof *kids);
  p->term[p->n_terms] = (pf_term){op, payload, n, (uint32_t)p->kids.n};
  p->kids.n += n;
  return *slot = p->n_terms++;
}

/* ---- reading ---- */

void tarn_eg_proof_free(tarn_eg_proof *p) {
  if (!p) return;
  eg_mem *m = &p->mem;
  eg_release(m, p->term, p->term_cap * sizeof *p->term);
  eg_release(m, p->step, p->step_cap * sizeof *p->step);
  eg_release(m, p->known, p->known_cap * sizeof *p->known);
  eg_release(m, p->lemma, p->lemma_cap * sizeof *p->lemma);
  eg_vec_free(m, &p->kids), eg_vec_free(m, &p->table), eg_vec_free(m, &p->kid_lemmas);
  tarn_allocator a = m->a;
  a.realloc(a.user, p, sizeof *p, 0);
}

uint32_t tarn_eg_proof_terms(const tarn_eg_proof *p) { return p->n_terms; }
uint32_t tarn_eg_proof_lemmas(const tarn_eg_proof *p) { return p->n_lemmas; }
uint32_t tarn_eg_proof_steps(const tarn_eg_proof *p) { return p->n_steps; }
tarn_eg_lemma tarn_eg_proof_lemma(const tarn_eg_proof *p, uint32_t lemma) {
  return p->lemma[lemma];
}

tarn_eg_node tarn_eg_proof_term(const tarn_eg_proof *p, uint32_t term) {
  const pf_term *t = &p->term[term];
  return (tarn_eg_node){t->op, t->payload, t->n, p->kids.p + t->kids};
}

tarn_eg_step tarn_eg_proof_step(const tarn_eg_proof *p, uint32_t step) {
  const pf_step *s = &p->step[step];
  bool cong = s->rule == TARN_EG_RULE_CONGRUENCE;
  uint32_t n;
  const uint32_t *premises = pf_premises(p, s, &n);
  return (tarn_eg_step){s->rule,   s->note,  s->forward,
                        s->before, s->after, cong ? p->kid_lemmas.p + s->lemmas : NULL,
                        premises,  n};
}

tarn_status tarn_eg_proof_status(const tarn_eg_proof *p) { return p->mem.st; }

/* ---- adding ---- */

uint32_t tarn_eg_proof_find_term(const tarn_eg_proof *p, uint32_t op, uint32_t payload,
                                 const uint32_t *kids, uint32_t n) {
  return p->table.n ? *term_slot(p, term_hash(op, payload, kids, n), op, payload, kids, n) : NONE;
}

uint32_t tarn_eg_proof_add_term(tarn_eg_proof *p, uint32_t op, uint32_t payload,
                                const uint32_t *kids, uint32_t n) {
  return pf_intern(p, op, payload, kids, n);
}

bool tarn_eg_proof_add_step(tarn_eg_proof *p, uint32_t rule, uint32_t note, uint32_t left,
                            uint32_t right) {
  if (!eg_grow(&p->mem, (void **)&p->known, &p->known_cap, p->n_known + 1u, sizeof *p->known))
    return false;
  p->known[p->n_known++] = (pf_step){rule, note, left, right, 0, true};
  return true;
}

/* ---- one chain ---- */

enum { MOST_DEPTH = 400000, STACK = 1 << 28 }; /* of a path; for as many levels */

typedef struct unfold {
  tarn_eg_proof *p;
  eg_vec path;  /* kid numbers */
  eg_vec spine; /* the terms along the path, root first; one more than path */
  eg_vec kids;
  uint64_t n, max;
  bool whole;
  uint32_t lemma;
  bool ok;
  tarn_eg_flat_fn *fn;
  void *user;
} unfold;

/* The term at depth d of the path, over that below it as it is now. */
static bool rebuild_at(unfold *u, size_t d) {
  tarn_eg_proof *p = u->p;
  pf_term t = p->term[u->spine.p[d]];
  if (p->kids.p[t.kids + u->path.p[d]] == u->spine.p[d + 1]) return true;
  u->kids.n = 0;
  if (!eg_vec_reserve(&p->mem, &u->kids, t.n)) return false;
  memcpy(u->kids.p, p->kids.p + t.kids, t.n * sizeof *u->kids.p);
  u->kids.p[u->path.p[d]] = u->spine.p[d + 1];
  u->spine.p[d] = pf_intern(p, t.op, t.payload, u->kids.p, t.n);
  return u->spine.p[d] != NONE;
}

/* Puts term at the end of the path; those above it follow when the path is left, or now. */
static bool replace(unfold *u, uint32_t term) {
  u->spine.p[u->path.n] = term;
  for (size_t d = u->path.n; u->whole && d-- > 0;)
    if (!rebuild_at(u, d)) return false;
  return true;
}

static bool unfold_lemma(unfold *u, uint32_t lemma, bool back);

static bool unfold_congruence(unfold *u, const pf_step *s, bool forward) {
  uint32_t n = u->p->term[s->before].n;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t l = u->p->kid_lemmas.p[s->lemmas + i];
    if (l == NONE) continue;
    if (u->path.n == MOST_DEPTH) return false;
    pf_term top = u->p->term[u->spine.p[u->path.n]];
    if (!eg_push(&u->p->mem, &u->path, i)) return false;
    if (!eg_push(&u->p->mem, &u->spine, u->p->kids.p[top.kids + i])) return false;
    if (!unfold_lemma(u, l, !forward) || !rebuild_at(u, u->path.n - 1)) return false;
    u->path.n--, u->spine.n--;
  }
  return true;
}

static bool unfold_step(unfold *u, const pf_step *s, bool back) {
  bool forward = s->forward != back;
  if (s->rule == TARN_EG_RULE_CONGRUENCE) return unfold_congruence(u, s, forward);
  uint32_t before = back ? s->after : s->before, after = back ? s->before : s->after;
  if (++u->n > u->max || !replace(u, after)) return false;
  uint32_t n;
  const uint32_t *premises = pf_premises(u->p, s, &n);
  tarn_eg_flat f = {s->rule,   s->note,
                    forward,   before,
                    after,     u->whole ? u->spine.p[0] : NONE,
                    u->path.p, (uint32_t)u->path.n,
                    premises,  n};
  return !u->fn || u->fn(u->user, u->p, &f);
}

static bool unfold_lemma(unfold *u, uint32_t lemma, bool back) {
  tarn_eg_lemma l = u->p->lemma[lemma];
  for (uint32_t i = 0; i < l.n; i++) {
    pf_step s = u->p->step[back ? l.first + l.n - 1 - i : l.first + i];
    if (!unfold_step(u, &s, back)) return false;
  }
  return true;
}

static void unfold_all(void *user) {
  unfold *u = user;
  u->ok = unfold_lemma(u, u->lemma, false);
}

uint64_t tarn_eg_proof_flatten(tarn_eg_proof *p, uint64_t max_steps, tarn_eg_flat_fn *fn,
                               void *user) {
  return tarn_eg_proof_flatten_lemma(p, p->n_lemmas - 1, true, max_steps, fn, user);
}

uint64_t tarn_eg_proof_flatten_lemma(tarn_eg_proof *p, uint32_t lemma, bool whole,
                                     uint64_t max_steps, tarn_eg_flat_fn *fn, void *user) {
  unfold u = {.p = p, .max = max_steps, .whole = whole, .lemma = lemma, .fn = fn, .user = user};
  bool ok = eg_push(&p->mem, &u.spine, p->lemma[lemma].from) && tarn_deep(STACK, unfold_all, &u);
  ok = ok && u.ok;
  eg_vec_free(&p->mem, &u.path), eg_vec_free(&p->mem, &u.spine), eg_vec_free(&p->mem, &u.kids);
  return ok ? u.n : UINT64_MAX;
}
