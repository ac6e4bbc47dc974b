/* Shrinks counterexamples: shortens the tape and lowers its numbers while the rule still fails. */
#include "rules/check/check.h"
#include <string.h>

enum {
  MOST_RUNS = 1500,
  ONE_RUN = 64
}; /* a large instance counts as one for each so many elements */

typedef struct shrinker {
  job *j;
  uint32_t *best, *next; /* tapes */
  uint32_t n, runs;
  verdict first;
} shrinker;

/* Is the tape shorter, or as long and lower? */
static bool smaller(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb) {
  if (na != nb) return na < nb;
  for (uint32_t i = 0; i < na; i++)
    if (a[i] != b[i]) return a[i] < b[i];
  return false;
}

/* Tries next[0 … n-1]; keeps what it really drew when that fails too, and is smaller. */
static bool keep(shrinker *s, uint32_t n) {
  if (s->j->g->sizes && n && s->next[0] > s->best[0]) s->next[0] = s->best[0]; /* no larger size */
  s->runs += 1 + (uint32_t)(s->j->g->far / ONE_RUN);
  if (s->runs > MOST_RUNS || !job_run(s->j, 0, s->next, n) || !check_bad(s->j->r, &s->j->v))
    return false;
  const tape *t = &s->j->g->t;
  if ((s->j->v.why != NULL) != (s->first.why != NULL) || !smaller(t->v, t->n, s->best, s->n))
    return false;
  memcpy(s->best, t->v, t->n * sizeof *t->v);
  s->n = t->n;
  return true;
}

static bool cut(shrinker *s, uint32_t at, uint32_t len) {
  uint32_t rest = s->n - at - len;
  memcpy(s->next, s->best, at * sizeof *s->next);
  memcpy(s->next + at, s->best + at + len, rest * sizeof *s->next);
  return keep(s, at + rest);
}

static bool clear(shrinker *s, uint32_t at, uint32_t len) {
  bool any = false;
  memcpy(s->next, s->best, s->n * sizeof *s->next);
  for (uint32_t i = at; i < at + len; i++) any |= s->next[i] != 0, s->next[i] = 0;
  return any && keep(s, s->n);
}

static bool lower(shrinker *s, uint32_t at) {
  bool any = false;
  for (uint32_t cutoff = 2; at < s->n && s->best[at] > 0 && cutoff; cutoff--) {
    memcpy(s->next, s->best, s->n * sizeof *s->next);
    s->next[at] = cutoff == 2 ? s->best[at] / 2 : s->best[at] - 1;
    while (keep(s, s->n)) {
      any = true;
      if (at >= s->n || s->best[at] == 0) return any;
      memcpy(s->next, s->best, s->n * sizeof *s->next);
      s->next[at] = cutoff == 2 ? s->best[at] / 2 : s->best[at] - 1;
    }
  }
  return any;
}

/* One number lower, and one or two of those after it gone, as where a rank becomes less. */
static bool lower_and_cut(shrinker *s, uint32_t at) {
  enum { FAR = 8, LEN = 2 };
  for (uint32_t len = 1; len <= LEN && s->best[at]; len++)
    for (uint32_t from = at + 1; from < at + FAR && from + len <= s->n; from++) {
      memcpy(s->next, s->best, from * sizeof *s->next);
      memcpy(s->next + from, s->best + from + len, (s->n - from - len) * sizeof *s->next);
      s->next[at]--;
      if (keep(s, s->n - len)) return true;
    }
  return false;
}
static bool pass_of_two(shrinker *s) {
  bool any = false;
  for (uint32_t at = 0; at < s->n && s->runs < MOST_RUNS; at++) any |= lower_and_cut(s, at);
  return any;
}
static bool pass(shrinker *s) {
  bool any = false;
  for (uint32_t len = 64; len; len /= 4)
    for (uint32_t at = 0; at + len <= s->n && s->runs < MOST_RUNS;) {
      bool shorter = cut(s, at, len);
      bool lower_now = !shorter && at + len <= s->n && clear(s, at, len);
      any |= shorter | lower_now;
      at += shorter ? 0 : len;
    }
  for (uint32_t at = 0; at < s->n && s->runs < MOST_RUNS; at++) any |= lower(s, at);
  return any;
}

const char *check_shrink(job *j) {
  tarn_buf b = {.cx = j->outer};
  shrinker s = {.j = j, .first = j->v, .n = j->g->t.n};
  s.best = TARN_ARRAY(j->outer, uint32_t, C_TAPE);
  s.next = TARN_ARRAY(j->outer, uint32_t, C_TAPE);
  memcpy(s.best, j->g->t.v, s.n * sizeof *s.best);
  while (s.runs < MOST_RUNS && (pass(&s) || pass_of_two(&s)))
    ;
  tarn_buf_str(&b, "");
  j->print = &b;
  job_run(j, 0, s.best, s.n);
  j->print = NULL;
  return b.p;
}
