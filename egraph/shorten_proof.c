/* Shorter proofs: lemma by lemma, those that others use first.
 *
 * For a run of steps of a lemma, the terms they lead through, the terms of the lemmas they use, and
 * the subterms of all are put together, as many as there is room for; the steps among them and the
 * finished lemmas give distances; and the run becomes the hops of the shortest way.  A lemma that
 * is short leaves room for more in those that use it, so it is done again until nothing changes. */
#include "egraph/shorten.h"

#include <string.h>

enum { ROOM = 1000, PASSES = 4, MOST_DEPTH = 50000, STACK = 1 << 28 };
enum { WORK = 10000000 }; /* of one run of steps */

typedef struct shortener {
  tarn_eg_proof *p;
  eg_mem *m;
  near near;
  /* the new proof */
  pf_step *step;
  uint32_t n_steps;
  size_t step_cap;
  tarn_eg_lemma *lemma;
  uint32_t n_lemmas;
  size_t lemma_cap;
  eg_vec kid_lemmas;
  eg_vec length;           /* of each new lemma, unfolded; no more than NONE - 1 */
  eg_vec now;              /* per old lemma: the new one, or NONE */
  eg_vec needed;           /* per old lemma */
  eg_vec known_off, known; /* p->known by either end */
  eg_vec seen,
      queue; /* new lemmas that are put together: per lemma the last round that did; the lemmas */
  uint32_t round;
  const struct part *run; /* the lemma at work, over new lemmas */
  uint64_t work;          /* left */
  uint32_t depth;
} shortener;

static bool filled(shortener *s, eg_vec *v, size_t n, int byte) {
  if (v->cap < n && !eg_vec_reserve(s->m, v, n - v->n)) return false;
  v->n = n;
  if (n) memset(v->p, byte, n * sizeof *v->p);
  return true;
}

static uint32_t sum(uint64_t a, uint64_t b) { return a + b >= NONE ? NONE - 1 : (uint32_t)(a + b); }

static uint32_t step_length(const shortener *s, const pf_step *t, const eg_vec *kid_lemmas) {
  if (t->rule != TARN_EG_RULE_CONGRUENCE) return 1;
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->p->term[t->before].n; i++) {
    uint32_t l = kid_lemmas->p[t->lemmas + i];
    if (l != NONE) n = sum(n, s->length.p[l]);
  }
  return n;
}

/* ---- the new proof ---- */

static bool put_step(shortener *s, pf_step t) {
  if (!eg_grow(s->m, (void **)&s->step, &s->step_cap, s->n_steps + 1u, sizeof *s->step))
    return false;
  s->step[s->n_steps++] = t;
  return true;
}

static uint32_t end_lemma(shortener *s, uint32_t from, uint32_t to, uint32_t first,
                          uint32_t length) {
  if (!eg_grow(s->m, (void **)&s->lemma, &s->lemma_cap, s->n_lemmas + 1u, sizeof *s->lemma))
    return NONE;
  if (!eg_push(s->m, &s->length, length) || !eg_push(s->m, &s->seen, 0)) return NONE;
  s->lemma[s->n_lemmas] = (tarn_eg_lemma){from, to, first, s->n_steps - first};
  return s->n_lemmas++;
}

typedef struct part { /* steps that are not yet those of a lemma */
  pf_step *p;
  uint32_t n, length;
  size_t cap;
} part;

static bool part_put(shortener *s, part *c, pf_step t) {
  if (!eg_grow(s->m, (void **)&c->p, &c->cap, c->n + 1u, sizeof *c->p)) return false;
  c->p[c->n++] = t;
  c->length = sum(c->length, step_length(s, &t, &s->kid_lemmas));
  return true;
}

/* Makes the steps a lemma and frees them. NONE: out of memory. */
static uint32_t part_end(shortener *s, part *c, uint32_t from, uint32_t to, bool ok) {
  uint32_t first = s->n_steps;
  for (uint32_t i = 0; ok && i < c->n; i++) ok = put_step(s, c->p[i]);
  uint32_t made = ok ? end_lemma(s, from, to, first, c->length) : NONE;
  eg_release(s->m, c->p, c->cap * sizeof *c->p);
  *c = (part){0};
  return made;
}

static pf_step turned(pf_step t) {
  uint32_t b = t.before;
  t.before = t.after, t.after = b, t.forward = !t.forward;
  return t;
}

static bool append_hops(shortener *s, part *c, uint32_t from, uint32_t to);

static uint32_t lemma_between(shortener *s, uint32_t from, uint32_t to) {
  near_pair *k = near_pair_of(&s->near, from, to);
  bool back = s->near.local.p[from] != k->lo;
  if (k->lemma[back] != NONE) return k->lemma[back];
  part c = {0};
  uint32_t made = part_end(s, &c, from, to, append_hops(s, &c, from, to));
  return near_pair_of(&s->near, from, to)->lemma[back] = made;
}

/* The congruence from a to b; the lemmas of its kids are written before. */
static bool append_kids(shortener *s, part *c, uint32_t a, uint32_t b) {
  uint32_t n = s->p->term[a].n;
  eg_vec made = {0};
  bool ok = true;
  for (uint32_t i = 0; ok && i < n; i++) {
    uint32_t x = s->p->kids.p[s->p->term[a].kids + i], y = s->p->kids.p[s->p->term[b].kids + i];
    uint32_t l = x == y ? NONE : lemma_between(s, x, y);
    ok = (x == y || l != NONE) && eg_push(s->m, &made, l);
  }
  pf_step t = {TARN_EG_RULE_CONGRUENCE, 0, a, b, (uint32_t)s->kid_lemmas.n, true};
  for (size_t i = 0; ok && i < made.n; i++) ok = eg_push(s->m, &s->kid_lemmas, made.p[i]);
  eg_vec_free(s->m, &made);
  return ok && part_put(s, c, t);
}

/* A finished lemma's steps, in either direction. */
static bool append_lemma(shortener *s, part *c, uint32_t lemma, bool back) {
  tarn_eg_lemma l = s->lemma[lemma];
  for (uint32_t i = 0; i < l.n; i++) {
    pf_step t = s->step[back ? l.first + l.n - 1 - i : l.first + i];
    if (!part_put(s, c, back ? turned(t) : t)) return false;
  }
  return true;
}

static bool append_hop(shortener *s, part *c, uint32_t a, uint32_t b) {
  const near_pair *k = near_pair_of(&s->near, a, b);
  if (k->how == NEAR_KIDS) return append_kids(s, c, a, b);
  if (k->how == NEAR_LEMMA) return append_lemma(s, c, k->via, s->lemma[k->via].from != a);
  pf_step t = k->how == NEAR_KNOWN ? s->p->known[k->via]
              : k->how == NEAR_RUN ? s->run->p[k->via]
                                   : s->step[k->via];
  return part_put(s, c, t.before == a ? t : turned(t));
}

static bool append_hops(shortener *s, part *c, uint32_t from, uint32_t to) {
  eg_vec path = {0};
  bool ok = ++s->depth <= MOST_DEPTH && near_walk(&s->near, from, to, &path);
  for (size_t i = 0; ok && i < path.n; i += 2) ok = append_hop(s, c, path.p[i], path.p[i + 1]);
  eg_vec_free(s->m, &path);
  s->depth--;
  return ok;
}

/* ---- putting together ---- */

/* The lemmas that a step uses, to be looked at later. */
static bool enqueue(shortener *s, const pf_step *t) {
  if (t->rule != TARN_EG_RULE_CONGRUENCE) return true;
  for (uint32_t i = 0; i < s->p->term[t->before].n; i++) {
    uint32_t l = s->kid_lemmas.p[t->lemmas + i];
    if (l == NONE || s->seen.p[l] == s->round) continue;
    s->seen.p[l] = s->round;
    if (!eg_push(s->m, &s->queue, l)) return false;
  }
  return true;
}

/* Terms of the lemmas in the queue, and of those that they use, while there is room. */
static bool take_lemmas(shortener *s) {
  for (size_t q = 0; q < s->queue.n; q++) {
    tarn_eg_lemma l = s->lemma[s->queue.p[q]];
    for (uint32_t i = l.first; i < l.first + l.n && s->near.term.n < ROOM; i++)
      if (!near_term(&s->near, s->step[i].after) || !enqueue(s, &s->step[i])) return false;
  }
  return true;
}

/* And where the steps known besides lead from what is there. */
static bool take_known(shortener *s) {
  size_t n = s->near.term.n;
  for (size_t i = 0; i < n; i++) {
    uint32_t t = s->near.term.p[i];
    for (uint32_t k = s->known_off.p[t]; k < s->known_off.p[t + 1] && s->near.term.n < ROOM; k++) {
      const pf_step *x = &s->p->known[s->known.p[k]];
      if (!near_term(&s->near, x->before) || !near_term(&s->near, x->after)) return false;
    }
  }
  return true;
}

static bool offer_all(shortener *s, uint32_t first, uint32_t n) {
  for (uint32_t i = first; i < first + n; i++) {
    const pf_step *t = &s->run->p[i];
    if (!near_offer(&s->near, t->before, t->after, step_length(s, t, &s->kid_lemmas), NEAR_RUN, i))
      return false;
  }
  for (size_t q = 0; q < s->queue.n; q++) {
    tarn_eg_lemma l = s->lemma[s->queue.p[q]];
    for (uint32_t i = l.first; i < l.first + l.n; i++) {
      const pf_step *t = &s->step[i];
      if (t->rule != TARN_EG_RULE_CONGRUENCE &&
          !near_offer(&s->near, t->before, t->after, 1, NEAR_STEP, i))
        return false;
    }
    if (!near_offer(&s->near, l.from, l.to, s->length.p[s->queue.p[q]], NEAR_LEMMA, s->queue.p[q]))
      return false;
  }
  for (size_t i = 0; i < s->near.term.n; i++) {
    uint32_t t = s->near.term.p[i];
    for (uint32_t k = s->known_off.p[t]; k < s->known_off.p[t + 1]; k++) {
      const pf_step *x = &s->p->known[s->known.p[k]];
      if (!near_offer(&s->near, x->before, x->after, 1, NEAR_KNOWN, s->known.p[k])) return false;
    }
  }
  return true;
}

/* Whether there is a way from the first of these steps to the last that is shorter. */
static bool find_shorter(shortener *s, uint32_t first, uint32_t n, uint32_t length, bool *shorter) {
  uint32_t from = s->run->p[first].before, to = s->run->p[first + n - 1].after;
  *shorter = false;
  if (s->near.term.n > 2 * ROOM || length < 2 || !s->work || from == to) return true;
  s->near.most = length - 1, s->near.work = s->work < WORK ? s->work : WORK;
  uint64_t had = s->near.work;
  if (!take_lemmas(s) || !take_known(s) || !take_known(s) || !near_begin(&s->near) ||
      !offer_all(s, first, n) || !near_find(&s->near, from, to))
    return false;
  s->work -= had - s->near.work;
  *shorter = near_pair_of(&s->near, from, to) != NULL;
  return true;
}

/* The steps first… of the lemma at work, as many as there is room for, made shorter and appended to
 * out. How many they were; 0: out of memory. */
static uint32_t shorten_run(shortener *s, uint32_t first, part *out) {
  const pf_step *t = s->run->p;
  uint32_t n = 0, length = 0;
  bool shorter = false, ok = near_clear(&s->near) && near_term(&s->near, t[first].before);
  s->queue.n = 0, s->round++;
  for (; ok && first + n < s->run->n && (!n || s->near.term.n < ROOM); n++) {
    ok = near_term(&s->near, t[first + n].after) && enqueue(s, &t[first + n]);
    length = sum(length, step_length(s, &t[first + n], &s->kid_lemmas));
  }
  ok = ok && find_shorter(s, first, n, length, &shorter);
  if (ok && t[first].before == t[first + n - 1].after) return n;
  if (ok && shorter) ok = append_hops(s, out, t[first].before, t[first + n - 1].after);
  for (uint32_t i = 0; ok && !shorter && i < n; i++) ok = part_put(s, out, t[first + i]);
  return ok ? n : 0;
}

/* ---- lemma by lemma ---- */

/* The steps of an old lemma, over new lemmas. */
static bool take_steps(shortener *s, tarn_eg_lemma l, part *c) {
  for (uint32_t i = l.first; i < l.first + l.n; i++) {
    pf_step t = s->p->step[i];
    bool congruence = t.rule == TARN_EG_RULE_CONGRUENCE;
    uint32_t at = (uint32_t)s->kid_lemmas.n, n = s->p->term[t.before].n;
    const uint32_t *old = congruence ? s->p->kid_lemmas.p + t.lemmas : pf_premises(s->p, &t, &n);
    if (old && !congruence && !eg_push(s->m, &s->kid_lemmas, n)) return false;
    for (uint32_t k = 0; old && k < n; k++)
      if (!eg_push(s->m, &s->kid_lemmas, old[k] == NONE ? NONE : s->now.p[old[k]])) return false;
    if (old) t.lemmas = congruence ? at : at + 1;
    if (!part_put(s, c, t)) return false;
  }
  return true;
}

static bool shorten_lemma(shortener *s, uint32_t lemma) {
  tarn_eg_lemma l = s->p->lemma[lemma];
  part old = {0}, out = {0};
  bool ok = take_steps(s, l, &old);
  s->run = &old;
  for (uint32_t i = 0, n; ok && i < old.n; i += n) ok = (n = shorten_run(s, i, &out)) > 0;
  s->run = NULL;
  eg_release(s->m, old.p, old.cap * sizeof *old.p);
  s->now.p[lemma] = part_end(s, &out, l.from, l.to, ok);
  return s->now.p[lemma] != NONE;
}

/* Lemmas that the last one needs. */
static bool mark_needed(shortener *s) {
  const tarn_eg_proof *p = s->p;
  if (!filled(s, &s->needed, p->n_lemmas, 0) || !filled(s, &s->now, p->n_lemmas, 0xFF))
    return false;
  s->needed.p[p->n_lemmas - 1] = 1;
  for (uint32_t l = p->n_lemmas; l-- > 0;)
    for (uint32_t i = p->lemma[l].first; s->needed.p[l] && i < p->lemma[l].first + p->lemma[l].n;
         i++) {
      const pf_step *t = &p->step[i];
      bool congruence = t->rule == TARN_EG_RULE_CONGRUENCE;
      uint32_t n = p->term[t->before].n;
      const uint32_t *kid = congruence ? p->kid_lemmas.p + t->lemmas : pf_premises(p, t, &n);
      for (uint32_t k = 0; kid && k < n; k++)
        if (kid[k] != NONE) s->needed.p[kid[k]] = 1;
    }
  return true;
}

static bool index_known(shortener *s) {
  const tarn_eg_proof *p = s->p;
  if (!filled(s, &s->known_off, p->n_terms + (size_t)2, 0) ||
      !filled(s, &s->known, 2 * (size_t)p->n_known, 0))
    return false;
  uint32_t *off = s->known_off.p;
  for (uint32_t i = 0; i < p->n_known; i++)
    off[p->known[i].before + 2]++, off[p->known[i].after + 2]++;
  for (uint32_t t = 0; t < p->n_terms; t++) off[t + 2] += off[t + 1];
  for (uint32_t i = 0; i < p->n_known; i++)
    s->known.p[off[p->known[i].before + 1]++] = i, s->known.p[off[p->known[i].after + 1]++] = i;
  return true;
}

static bool one_pass(shortener *s) {
  if (!mark_needed(s) || !index_known(s) || !near_open(&s->near, s->p, s->m)) return false;
  for (uint32_t l = 0; l < s->p->n_lemmas; l++)
    if (s->needed.p[l] && !shorten_lemma(s, l)) return false;
  return true;
}

/* ---- */

static void free_new(shortener *s) {
  eg_release(s->m, s->step, s->step_cap * sizeof *s->step);
  eg_release(s->m, s->lemma, s->lemma_cap * sizeof *s->lemma);
  eg_vec_free(s->m, &s->kid_lemmas);
}

static void free_scratch(shortener *s) {
  eg_vec *v[] = {&s->length, &s->now, &s->needed, &s->known_off, &s->known, &s->seen, &s->queue};
  for (size_t i = 0; i < sizeof v / sizeof *v; i++) eg_vec_free(s->m, v[i]);
  near_close(&s->near);
}

static void take_over(shortener *s) {
  tarn_eg_proof *p = s->p;
  eg_release(s->m, p->step, p->step_cap * sizeof *p->step);
  eg_release(s->m, p->lemma, p->lemma_cap * sizeof *p->lemma);
  eg_vec_free(s->m, &p->kid_lemmas);
  p->step = s->step, p->n_steps = s->n_steps, p->step_cap = s->step_cap;
  p->lemma = s->lemma, p->n_lemmas = s->n_lemmas, p->lemma_cap = s->lemma_cap;
  p->kid_lemmas = s->kid_lemmas;
}

/* In rule steps, without unfolding it. */
static bool length_of(tarn_eg_proof *p, uint64_t *length) {
  shortener s = {.p = p, .m = &p->mem};
  bool ok = true;
  for (uint32_t l = 0; ok && l < p->n_lemmas; l++) {
    uint32_t n = 0;
    for (uint32_t i = p->lemma[l].first; i < p->lemma[l].first + p->lemma[l].n; i++)
      n = sum(n, step_length(&s, &p->step[i], &p->kid_lemmas));
    ok = eg_push(s.m, &s.length, n);
    *length = n;
  }
  eg_vec_free(s.m, &s.length);
  return ok;
}

typedef struct shortening {
  tarn_eg_proof *p;
  uint64_t max_work;
  bool shorter;
} shortening;
static bool shorten_all(tarn_eg_proof *p, uint64_t max_work) {
  uint64_t work = max_work ? max_work : UINT64_MAX;
  bool shorter = false;
  for (int pass = 0; pass < PASSES && work; pass++) {
    shortener s = {.p = p, .m = &p->mem, .work = work};
    uint64_t was = 0;
    bool ok = length_of(p, &was) && one_pass(&s);
    uint64_t now = ok ? s.length.p[s.n_lemmas - 1] : UINT64_MAX;
    work = s.work;
    free_scratch(&s);
    if (!ok || now >= was) {
      free_new(&s);
      return shorter;
    }
    take_over(&s);
    shorter = true;
  }
  return shorter;
}

static void shorten_apart(void *user) {
  shortening *k = user;
  k->shorter = shorten_all(k->p, k->max_work);
}

bool tarn_eg_proof_shorten(tarn_eg_proof *p, uint64_t max_work) {
  shortening k = {p, max_work, false};
  return tarn_deep(STACK, shorten_apart, &k) && k.shorter;
}
