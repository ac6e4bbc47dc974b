/* An independent checker of explanations: knows rules only as text and terms only as the proof
 * gives them. */
#ifndef TARN_TESTS_EGRAPH_PROOF_H
#define TARN_TESTS_EGRAPH_PROOF_H

#include "tests/egraph_lab.h"
#include "tests/suite.h"

typedef struct judge {
  const lab *l;
  const tarn_eg_proof *p;
  const char *const (*rule)[2]; /* by rule id */
  uint32_t n_rules;
  /* says whether a step by something else than these rules is right; NULL: never */
  bool (*other)(const struct judge *j, const tarn_eg_step *s);
  const uint32_t (*given)[2]; /* by note: the ids of unions that were given */
  uint32_t n_given;
  uint32_t bound[16];
  char name[16][24];
  uint32_t n_bound;
} judge;

static inline const char *judge_op(const judge *j, uint32_t term) {
  return j->l->name[tarn_eg_proof_term(j->p, term).op];
}

/* Matches text at *s against a term; binds variables. */
static inline bool judge_match(judge *j, const char **s, uint32_t term) {
  tarn_eg_node t = tarn_eg_proof_term(j->p, term);
  *s = lab_skip(*s);
  bool list = **s == '(';
  if (list) *s = lab_skip(*s + 1);
  size_t w = lab_word(*s);
  const char *word = *s;
  *s += w;
  if (*word == '?') {
    for (uint32_t i = 0; i < j->n_bound; i++)
      if (strlen(j->name[i]) == w && !memcmp(j->name[i], word, w)) return j->bound[i] == term;
    memcpy(j->name[j->n_bound], word, w);
    j->name[j->n_bound][w] = 0;
    j->bound[j->n_bound++] = term;
    return true;
  }
  const char *op = judge_op(j, term);
  if (strlen(op) != w || memcmp(op, word, w) != 0) return false;
  uint32_t i = 0;
  while (list && *(*s = lab_skip(*s)) != ')')
    if (i >= t.n || !judge_match(j, s, t.kids[i++])) return false;
  if (list) ++*s;
  return i == t.n;
}

/* Is it the term of this id, node by node? */
static inline bool judge_is(const judge *j, uint32_t term, uint32_t id) {
  tarn_eg_node t = tarn_eg_proof_term(j->p, term), e = tarn_eg_term_at(j->l->g, id);
  if (t.op != e.op || t.payload != e.payload || t.n != e.n) return false;
  for (uint32_t i = 0; i < t.n; i++)
    if (!judge_is(j, t.kids[i], e.kids[i])) return false;
  return true;
}

static inline bool judge_rule(judge *j, const tarn_eg_step *s) {
  if (s->rule == TARN_EG_RULE_GIVEN && s->note < j->n_given)
    return judge_is(j, s->before, j->given[s->note][!s->forward]) &&
           judge_is(j, s->after, j->given[s->note][s->forward]);
  if (s->rule >= j->n_rules || !j->rule[s->rule][0]) return j->other && j->other(j, s);
  uint32_t left = s->forward ? s->before : s->after, right = s->forward ? s->after : s->before;
  const char *l = j->rule[s->rule][0], *r = j->rule[s->rule][1];
  j->n_bound = 0;
  return judge_match(j, &l, left) && judge_match(j, &r, right);
}

static inline bool judge_congruence(const judge *j, const tarn_eg_step *s, uint32_t lemma) {
  tarn_eg_node a = tarn_eg_proof_term(j->p, s->before), b = tarn_eg_proof_term(j->p, s->after);
  if (a.op != b.op || a.payload != b.payload || a.n != b.n) return false;
  for (uint32_t i = 0; i < a.n; i++) {
    uint32_t l = s->lemmas[i], from = s->forward ? a.kids[i] : b.kids[i],
             to = s->forward ? b.kids[i] : a.kids[i];
    if (l == TARN_NONE) {
      if (from != to) return false;
      continue;
    }
    if (l >= lemma) return false;
    tarn_eg_lemma m = tarn_eg_proof_lemma(j->p, l);
    if (m.from != from || m.to != to) return false;
  }
  return true;
}

/* TARN_NONE: right; else the lemma that is wrong. */
static inline uint32_t judge_proof(judge *j) {
  for (uint32_t i = 0; i < tarn_eg_proof_lemmas(j->p); i++) {
    tarn_eg_lemma l = tarn_eg_proof_lemma(j->p, i);
    uint32_t at = l.from;
    for (uint32_t k = l.first; k < l.first + l.n; k++) {
      tarn_eg_step s = tarn_eg_proof_step(j->p, k);
      bool ok = s.before == at && (s.rule == TARN_EG_RULE_CONGRUENCE ? judge_congruence(j, &s, i)
                                                                     : judge_rule(j, &s));
      if (!ok) return i;
      at = s.after;
    }
    if (at != l.to) return i;
  }
  return TARN_NONE;
}

/* ---- all that a graph found ---- */

static inline uint32_t judge_random(uint64_t *s, uint32_t n) {
  *s = *s * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*s >> 33) % n;
}

static inline bool judge_walk(void *user, const tarn_eg_proof *p, const tarn_eg_flat *f) {
  (void)p;
  *(uint32_t *)user = f->whole;
  return true;
}

/* The number of steps of the one chain, after judging the proof. */
static inline uint64_t judge_length(judge *j, tarn_eg_proof *p) {
  j->p = p;
  ck_assert_uint_eq(judge_proof(j), TARN_NONE);
  tarn_eg_lemma last = tarn_eg_proof_lemma(p, tarn_eg_proof_lemmas(p) - 1);
  uint32_t end = last.from;
  uint64_t n = tarn_eg_proof_flatten(p, 100000, judge_walk, &end);
  ck_assert(n == UINT64_MAX || end == last.to);
  return n;
}

/* Random pairs of equal ids, as many as asked or as are met soon; the sum of the chains' lengths.
 */
static inline uint64_t judge_pairs(judge *j, tarn_egraph *g, uint32_t pairs) {
  enum { TRIES = 100000 };
  uint64_t s = 7, total = 0;
  for (uint32_t k = 0, tried = 0; k < pairs && tried < TRIES; tried++) {
    uint32_t a = judge_random(&s, tarn_eg_id_count(g)), c = tarn_eg_find(g, a),
             b = tarn_eg_next_node(g, c, TARN_NONE);
    for (uint32_t skip = judge_random(&s, 50), n;
         skip && (n = tarn_eg_next_node(g, c, b)) != TARN_NONE; skip--)
      b = n;
    if (b == TARN_NONE || a == b) continue;
    tarn_eg_proof *p = tarn_eg_explain(g, a, b);
    ck_assert_msg(p != NULL, "%s", tarn_eg_message(g));
    uint64_t n = judge_length(j, p), was = n;
    if (tarn_eg_proof_shorten(p, 3000000)) {
      n = judge_length(j, p);
      ck_assert(n < was || was == UINT64_MAX);
      was = n;
    }
    total += n;
    tarn_eg_proof_free(p);
    k++;
  }
  return total;
}

/* Some of what a graph with reasons found, proved by the rules that lab_rule() was given and by
 * other. */
static inline void judge_found(lab *l, uint32_t pairs,
                               bool (*other)(const judge *j, const tarn_eg_step *s)) {
  judge j = {
      .l = l, .rule = (const char *const(*)[2])l->side, .n_rules = l->next_id, .other = other};
  ck_assert_uint_gt(judge_pairs(&j, l->g, pairs), 0);
}

#endif
