/* Checking free rules over an interpretation: all assignments where these are few, else the corners
 * of the domain and random values. A rule is wrong where its conditions hold and one side has
 * another value than the other, or one has a value and the other none; where neither has one it
 * says nothing. */
#include "base/limit.h"
#include "base/progress.h"
#include "lab/meaning.h"
#include <string.h>

enum { ALL = 1 << 16, CORNERS = 4096, SAMPLES = 1000, TRIES = 60, POINTS = 32 };

typedef enum { FC_VACUOUS, FC_HOLDS, FC_DIFFERS, FC_TOO_LARGE } outcome;
typedef struct freecheck {
  tarn_ruleset *rs;
  const meaning *m;
  const mrule *r;
  uint32_t skip; /* a condition (then a guard) left out; TARN_NONE */
  bool generic;  /* no condition is looked at */
  uint32_t nvar, nfree;
  uint32_t free[R_CLASSES]; /* variables that are chosen; the others are what a root says */
  mval var[R_CLASSES], left, right;
  uint32_t side; /* the root that differs */
} freecheck;

/* ---------------------------------------------------------------- one assignment */

static bool conditions(freecheck *c) {
  for (uint32_t i = 0; i < c->r->ncond && !c->generic; i++)
    if (i != c->skip && !m_truth(meaning_eval(c->m, c->r->cond[i], c->var))) return false;
  return true;
}
/* Values of the left roots; a root's variable that another pattern uses as well must have that
 * value. */
static outcome lefts(freecheck *c) {
  for (uint32_t i = 0; i < c->r->nlhs; i++) {
    mval v = mterm_eval(c->m, c->r->lhs[i].term, c->var);
    uint32_t x = c->r->lhs[i].var;
    if (v.d == M_UNKNOWN) return FC_TOO_LARGE;
    if (x == TARN_NONE) c->left = v;
    else if (!m_has(v) || (m_has(c->var[x]) && !m_equal(c->m, v, c->var[x]))) return FC_VACUOUS;
    else c->var[x] = v;
    if (i == 0) c->left = v;
  }
  return FC_HOLDS;
}
static outcome attempt(freecheck *c) {
  outcome o = lefts(c), all = FC_VACUOUS;
  if (o != FC_HOLDS) return o;
  if (!conditions(c)) return FC_VACUOUS;
  for (uint32_t i = 0; i < c->r->nrhs; i++) {
    uint32_t x = c->r->rhs[i].var;
    mval want = x == TARN_NONE ? c->left : c->var[x],
         got = mterm_eval(c->m, c->r->rhs[i].term, c->var);
    if (got.d == M_UNKNOWN) return FC_TOO_LARGE;
    if (!m_has(want) && !m_has(got)) continue;
    all = FC_HOLDS;
    if (m_equal(c->m, want, got)) continue;
    c->left = want, c->right = got, c->side = i;
    return FC_DIFFERS;
  }
  return all;
}
static outcome with(freecheck *c, const mval *chosen) {
  for (uint32_t i = 0; i < c->nvar; i++) c->var[i] = (mval){0, M_NONE};
  for (uint32_t i = 0; i < c->nfree; i++) c->var[c->free[i]] = chosen[i];
  return attempt(c);
}

/* ---------------------------------------------------------------- many */

static uint64_t power_of(uint64_t base, uint32_t n, uint64_t most) {
  uint64_t p = 1;
  for (; n && p && p <= most; n--) p *= base;
  return p;
}
/* The k-th of all assignments, or of all assignments of corners, or a random one. False: there are
 * no more. */
static bool choose(const freecheck *c, uint64_t k, uint64_t *state, mval *out) {
  uint32_t corners = 0;
  mval v;
  while (m_corner(c->m, corners, &v)) corners++;
  uint64_t all = m_values(c->m) ? power_of(m_values(c->m), c->nfree, ALL) : 0;
  uint64_t of_corners = power_of(corners, c->nfree, CORNERS),
           base = all && all <= ALL ? m_values(c->m) : corners;
  if (all && all <= ALL) {
    if (k >= all) return false;
    for (uint32_t i = 0; i < c->nfree; i++, k /= base) out[i] = (mval){(int64_t)(k % base), 1};
    return true;
  }
  bool corner = corners && of_corners <= CORNERS && k < of_corners;
  for (uint32_t i = 0; i < c->nfree; i++, k /= base ? base : 1)
    if (corner || (corners && tarn_random(state) % 4 == 0))
      m_corner(c->m, (uint32_t)((corner ? k : tarn_random(state)) % corners), &out[i]);
    else out[i] = m_random(c->m, state);
  return true;
}

/* Simpler values, as long as the sides still differ; then fewer different ones. */
static void shrink(freecheck *c, mval *v) {
  bool any = true;
  while (any) {
    any = false;
    for (uint32_t i = 0; i < c->nfree; i++) {
      mval had = v[i];
      for (uint32_t k = 0; m_simpler(c->m, had, k, &v[i]); k++)
        if (with(c, v) == FC_DIFFERS) break;
      if (with(c, v) == FC_DIFFERS && (v[i].n != had.n || v[i].d != had.d)) any = true;
      else v[i] = had;
    }
  }
  with(c, v);
}
static const char *describe(freecheck *c) {
  tarn_buf b = {.cx = c->rs->cx};
  const rule *r = c->r->r;
  tarn_buf_fmt(&b, "  %s:%u: ", r->at->file, r->at->line);
  for (uint32_t i = 0; i < c->nvar; i++) {
    tarn_buf_fmt(&b, "%s%s = ", i ? ", " : "", r->cls_name[i]);
    meaning_print(c->m, c->var[i], &b);
  }
  tarn_buf_str(&b, c->nvar ? ": " : "");
  tarn_sx_print(&b, r->rhs[c->side].var == TARN_NONE ? r->lhs[0].pat->at : r->rhs[c->side].pat->at,
                0);
  tarn_buf_str(&b, r->rhs[c->side].var == TARN_NONE ? " = " : " should be ");
  meaning_print(c->m, c->left, &b);
  tarn_buf_str(&b, r->rhs[c->side].var == TARN_NONE ? ", " : ", is ");
  if (r->rhs[c->side].var == TARN_NONE)
    tarn_sx_print(&b, r->rhs[c->side].pat->at, 0), tarn_buf_str(&b, " = ");
  meaning_print(c->m, c->right, &b);
  return b.p;
}

static void try_all(freecheck *c, uint64_t samples, uint64_t seed, tarn_rule_result *res) {
  mval v[R_CLASSES];
  for (uint64_t k = 0;
       res->samples < samples && k < TRIES * samples + CORNERS && choose(c, k, &seed, v); k++) {
    res->tried++;
    outcome o = with(c, v);
    res->samples += o == FC_HOLDS || o == FC_DIFFERS;
    if (o != FC_DIFFERS) continue;
    shrink(c, v);
    res->counterexample = describe(c);
    return;
  }
}
/* Are the sides one rational function? Asked modulo a prime at random points (Schwartz, "Fast
 * probabilistic algorithms for verification of polynomial identities", 1980; Zippel 1979): of
 * degree d, the answer yes is wrong with a probability of at most (d / 2^61)^POINTS. Operators that
 * are no field's, such as an absolute value, have no meaning there. */
static bool identity(freecheck *c, uint64_t seed) {
  meaning m = *c->m;
  mval v[R_CLASSES];
  if (m.domain != M_RATIONAL) return false;
  m.prime = true;
  freecheck p = *c;
  p.m = &m, p.generic = true;
  for (uint32_t k = 0; k < POINTS; k++) {
    for (uint32_t i = 0; i < p.nfree; i++) v[i] = m_random(&m, &seed);
    if (with(&p, v) != FC_HOLDS) return false;
  }
  return true;
}
/* Variables that no left root gives a value to. */
static void variables(freecheck *c) {
  c->nvar = c->r->r->ncls, c->nfree = 0;
  for (uint32_t i = 0; i < c->nvar; i++) {
    bool root = false;
    for (uint32_t k = 0; k < c->r->nlhs; k++) root |= c->r->lhs[k].var == i;
    if (!root) c->free[c->nfree++] = i;
  }
}

static tarn_rule_result check_one(tarn_ruleset *rs, const tarn_rules_check_options *o,
                                  const rule *r, uint32_t skip) {
  tarn_rule_result res = {
      .name = r->name, .family = r->family, .stated = r->numeric, .found = r->numeric};
  freecheck c = {.rs = rs, .m = free_of(rs)->meaning, .skip = skip};
  uint64_t samples = o->samples ? o->samples : SAMPLES;
  uint64_t seed = tarn_hash_bytes(r->name, strlen(r->name), o->seed);
  c.r = mrule_make(rs, r, &res.unchecked);
  res.ok = true;
  if (!c.r) return res;
  variables(&c);
  bool few = m_values(c.m) && power_of(m_values(c.m), c.nfree, ALL) <= ALL;
  try_all(&c, few ? ALL : samples, seed, &res);
  res.all = few && !res.counterexample;
  res.ok = !res.counterexample && (few || res.samples >= samples);
  res.identity = res.ok && identity(&c, seed);
  if (skip == TARN_NONE) return res;
  tarn_buf b = {.cx = rs->cx};
  bool guard = skip >= r->ncond;
  if (guard) tarn_buf_str(&b, ":when ");
  tarn_sx_print(&b, (guard ? r->guard[skip - r->ncond] : r->cond[skip])->at, 0);
  res.deleted = b.p;
  res.ok = guard == (res.counterexample == NULL);
  return res;
}

uint32_t free_check(tarn_ruleset *rs, const tarn_rules_check_options *o,
                    const tarn_rule_result **out) {
  TARN_VEC(tarn_rule_result) v = {0};
  if (!free_of(rs)->meaning)
    tarn_raise(
        rs->cx, TARN_USAGE,
        "rules check: no (interpretation …) says what the operators of these free rules mean");
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    const rule *r = rs->rule.p[i];
    if (o->only && strcmp(o->only, r->name) && strcmp(o->only, r->family)) continue;
    uint32_t n = o->mutate ? r->ncond + r->nguard : 1;
    tarn_progress(rs->cx, "checking rules", i, rs->rule.n, "rules");
    for (uint32_t k = 0; k < n; k++) {
      tarn_rule_result res = {
          .name = r->name, .family = r->family, .stated = r->numeric, .ok = true};
      if (tarn_late(rs->cx)) res.unchecked = "the limit of time";
      else res = check_one(rs, o, r, o->mutate ? k : TARN_NONE);
      tarn_push(rs->cx, &v, res);
    }
  }
  tarn_progress_end(rs->cx);
  *out = v.p;
  return v.n;
}
