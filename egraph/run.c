/* Running rules: iterations, schedulers, limits, reports.
 *
 * Each rule remembers the stamp up to which its matches were applied (seen), so that a search is
 * for what changed since.  The simple scheduler needs no more.  Backoff decides by the number of
 * all matches: a rule keeps its old ones in a list (known, complete up to the same stamp), from
 * which those that died or changed are dropped and to which the new ones are added; a banned rule
 * loses its list and is counted afresh after the ban. */
#define _POSIX_C_SOURCE 199309L
#include "egraph/apply.h"

#include <string.h>

typedef struct rule_state {
  uint32_t seen;    /* stamp up to which matches were applied */
  uint32_t seen_id; /* the same for classes, for bare rules */
  eg_vec known;     /* backoff: matches up to seen */
  bool known_ok;
  eg_vec found;                /* this iteration's new ones */
  eg_lot lot;                  /* more of them */
  size_t last;                 /* words of the last ones */
  eg_vec held;                 /* waiting for a condition */
  uint64_t held_at;            /* what the conditions read, as a version */
  uint64_t known_at, swept_at; /* versions of the graph when known and held were swept */
  uint32_t banned_until, bans;
  bool active, skipped;
  uint32_t since;
  tarn_eg_rule_stats stats;
} rule_state;

struct tarn_eg_runner {
  tarn_egraph *g;
  const tarn_eg_rules *rs;
  eg_searcher search;
  eg_applier apply;
  rule_state *rule;
  uint32_t n;
  size_t rule_cap;
  tarn_eg_iteration *it;
  uint32_t n_it;
  size_t it_cap;
  uint32_t epoch;
  eg_sink *sink;
  uint32_t *group, *first_id;
  size_t sink_cap, group_cap, first_id_cap;
  /* the run at work */
  const tarn_eg_run_config *c;
  double start;
  double per_union; /* seconds that rebuilding took for each union, lately */
  uint64_t unions;  /* that the applier had made when the graph was last rebuilt */
  bool late, interrupted;
  uint32_t blocks; /* applied so far */
  uint32_t *rest;  /* of apply_blocks() */
  size_t rest_cap;
  tarn_eg_iteration *now;
};

#define GROW(r, field, need)                                                                       \
  (eg_grow(&(r)->g->mem, (void **)&(r)->field, &(r)->field##_cap, (need), sizeof *(r)->field))

/* ---- time ---- */

static double seconds(const tarn_eg_runner *r) {
  if (r->c->clock) return r->c->clock(r->c->user);
  return tarn_now();
}

/* Whether time is over when what has been joined is to be rebuilt yet. */
static bool is_late(void *user) {
  tarn_eg_runner *r = user;
  if (!r->late && r->c->interrupted && r->c->interrupted(r->c->user))
    r->late = r->interrupted = true;
  if (r->late || !(r->c->max_seconds > 0)) return r->late;
  double rebuild = r->per_union * (double)(r->apply.unions - r->unions);
  r->late = seconds(r) - r->start + rebuild >= r->c->max_seconds;
  return r->late;
}

/* Graphs that have grown take longer for each union: a third more than last time is expected. */
static void learn_rebuild(tarn_eg_runner *r, double took) {
  uint64_t n = r->apply.unions - r->unions;
  if (n >= 1000 && took > 0) r->per_union = took / (double)n * 4 / 3;
  r->unions = r->apply.unions;
}

/* ---- making one ---- */

tarn_eg_runner *tarn_eg_runner_new(tarn_egraph *g, const tarn_eg_rules *rs) {
  tarn_eg_runner *r = eg_resize(&g->mem, NULL, 0, sizeof *r);
  if (!r) return NULL;
  memset(r, 0, sizeof *r);
  r->g = g, r->rs = rs, r->epoch = g->epoch;
  r->per_union = 2e-7;
  eg_searcher_init(&r->search, g, rs);
  r->search.hurry = is_late, r->search.user = r;
  r->apply.g = g;
  return r;
}

void tarn_eg_runner_free(tarn_eg_runner *r) {
  if (!r) return;
  eg_mem *m = &r->g->mem;
  for (uint32_t i = 0; i < r->n; i++) {
    eg_vec_free(m, &r->rule[i].known), eg_vec_free(m, &r->rule[i].found);
    eg_vec_free(m, &r->rule[i].held), eg_lot_free(m, &r->rule[i].lot);
  }
  eg_searcher_free(&r->search);
  eg_applier_free(&r->apply);
  eg_release(m, r->rule, r->rule_cap * sizeof *r->rule);
  eg_release(m, r->it, r->it_cap * sizeof *r->it);
  eg_release(m, r->sink, r->sink_cap * sizeof *r->sink);
  eg_release(m, r->group, r->group_cap * sizeof *r->group);
  eg_release(m, r->first_id, r->first_id_cap * sizeof *r->first_id);
  eg_release(m, r->rest, r->rest_cap * sizeof *r->rest);
  eg_release(m, r, sizeof *r);
}

static bool copy_vec(eg_mem *m, eg_vec *to, const eg_vec *from) {
  eg_vec v = {0};
  bool ok = !from->n || eg_vec_reserve(m, &v, from->n);
  if (ok && from->n) memcpy(v.p, from->p, from->n * sizeof *v.p), v.n = from->n;
  *to = v;
  return ok;
}

tarn_eg_runner *tarn_eg_runner_copy(const tarn_eg_runner *from, tarn_egraph *copy) {
  tarn_eg_runner *r = tarn_eg_runner_new(copy, from->rs);
  if (!r) return NULL;
  bool ok = GROW(r, rule, from->n) && GROW(r, it, from->n_it);
  r->per_union = from->per_union, r->epoch = from->epoch;
  r->unions = from->unions, r->apply.unions = from->apply.unions,
  r->apply.refused = from->apply.refused;
  if (ok && from->n_it) memcpy(r->it, from->it, from->n_it * sizeof *r->it);
  r->n_it = ok ? from->n_it : 0;
  for (; ok && r->n < from->n; r->n++) {
    rule_state *s = &r->rule[r->n];
    *s = from->rule[r->n];
    s->found = s->known = s->held = (eg_vec){0}, s->lot = (eg_lot){0};
    ok = copy_vec(&copy->mem, &s->known, &from->rule[r->n].known) &&
         copy_vec(&copy->mem, &s->held, &from->rule[r->n].held);
  }
  if (ok) return r;
  tarn_eg_runner_free(r);
  return NULL;
}

uint32_t tarn_eg_iteration_count(const tarn_eg_runner *r) { return r->n_it; }
tarn_eg_iteration tarn_eg_iteration_at(const tarn_eg_runner *r, uint32_t i) { return r->it[i]; }
tarn_eg_rule_stats tarn_eg_stats(const tarn_eg_runner *r, uint32_t rule) {
  if (rule >= r->n) return (tarn_eg_rule_stats){0};
  tarn_eg_rule_stats s = r->rule[rule].stats;
  s.held = r->rule[rule].held.n / r->rs->rule[rule].n_words;
  return s;
}

const char *tarn_eg_stop_name(tarn_eg_stop s) {
  static const char *const name[] = {"saturated", "iterations", "nodes",  "bytes", "seconds",
                                     "goal",      "conflict",   "memory", "error", "interrupted"};
  return (size_t)s < sizeof name / sizeof *name ? name[s] : "?";
}

/* ---- searching ---- */

/* Drops tuples that hold a dead, pruned or changed node: changed ones will be found again as new.
 */
static void sweep(const tarn_egraph *g, const eg_rule *r, eg_vec *v, uint32_t seen) {
  size_t to = 0;
  uint32_t w = r->n_words;
  for (size_t i = 0; i < v->n; i += w) {
    const uint32_t *t = v->p + i;
    bool keep = true;
    if (r->bare) keep = g->uf[t[0]] & UF_ROOT;
    for (uint32_t a = 0; keep && a < r->n_atoms; a++)
      keep = g->stamp[t[a]] && g->stamp[t[a]] <= seen;
    if (!keep) continue;
    if (to != i) memmove(v->p + to, t, w * sizeof *t);
    to += w;
  }
  v->n = to;
}

static uint64_t rule_threshold(const tarn_eg_runner *r, uint32_t rule) {
  uint64_t limit = r->rs->rule[rule].match_limit;
  if (!limit) limit = r->c->match_limit ? r->c->match_limit : 1000;
  uint32_t shift = r->rule[rule].bans;
  return shift > 40 ? UINT64_MAX / 2 : limit << shift;
}

static void ban(tarn_eg_runner *r, uint32_t rule, uint32_t iteration) {
  rule_state *s = &r->rule[rule];
  uint64_t length = r->rs->rule[rule].ban_length;
  if (!length) length = r->c->ban_length ? r->c->ban_length : 5;
  length = s->bans > 25 ? UINT32_MAX / 2 : length << s->bans;
  uint64_t until = iteration + length;
  s->banned_until = until > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)until;
  s->bans++, s->stats.bans++;
  s->skipped = true, s->known_ok = false;
  eg_vec_free(&r->g->mem, &s->known), eg_vec_free(&r->g->mem, &s->found);
  eg_lot_free(&r->g->mem, &s->lot);
}

static void prepare_rule(tarn_eg_runner *r, uint32_t rule, uint32_t iteration) {
  rule_state *s = &r->rule[rule];
  const eg_rule *er = &r->rs->rule[rule];
  bool backoff = r->c->scheduler == TARN_EG_BACKOFF;
  s->skipped = backoff && iteration < s->banned_until;
  s->found.n = 0;
  s->since = s->seen;
  if (s->skipped) return;
  /* Now, not when they are tried: what other rules do meanwhile must not take a match away from
   * this iteration. */
  if (s->held.n && s->swept_at != r->g->version) sweep(r->g, er, &s->held, s->seen);
  s->swept_at = r->g->version;
  if (!backoff) return;
  if (s->known_ok) {
    if (s->known_at != r->g->version) sweep(r->g, er, &s->known, s->seen);
  } else {
    s->since = 0, s->known.n = 0;
  }
  s->known_at = r->g->version;
}

/* Rules that look for changes since the same stamp are searched together. */
static bool search_group(tarn_eg_runner *r, uint32_t since, uint32_t n, bool only_count) {
  for (uint32_t i = 0; i < n; i++) {
    rule_state *s = &r->rule[r->group[i]];
    bool backoff = r->c->scheduler == TARN_EG_BACKOFF;
    r->sink[i] = (eg_sink){.found = only_count ? NULL : &s->found,
                           .lot = &s->lot,
                           .seen = only_count ? 0 : s->seen,
                           .limit = UINT64_MAX};
    r->sink[i].last = s->last;
    r->first_id[i] = since ? s->seen_id : 0;
    if (!backoff) continue;
    r->sink[i].known = &s->known;
    r->sink[i].count = s->known.n / r->rs->rule[r->group[i]].n_words;
    r->sink[i].limit = rule_threshold(r, r->group[i]);
    r->sink[i].full = r->sink[i].count > r->sink[i].limit;
  }
  return eg_search(&r->search, r->group, r->sink, n, since, r->first_id);
}

static void take_counts(tarn_eg_runner *r, uint32_t n, uint32_t iteration, bool only_count,
                        double each) {
  bool backoff = r->c->scheduler == TARN_EG_BACKOFF, counting = r->c->count_matches || backoff;
  for (uint32_t i = 0; i < n; i++) {
    rule_state *s = &r->rule[r->group[i]];
    s->stats.search += each;
    if (backoff && r->sink[i].count > r->sink[i].limit) {
      ban(r, r->group[i], iteration);
      continue;
    }
    if (counting && !backoff && !only_count) continue;
    s->stats.matches += r->sink[i].count;
    r->now->matches += r->sink[i].count;
  }
}

static bool search_rules(tarn_eg_runner *r, const uint32_t *active, uint32_t n, uint32_t iteration,
                         bool only_count) {
  uint32_t left = n, since = 0;
  for (uint32_t i = 0; i < n; i++) r->rule[active[i]].active = true;
  while (left) { /* groups by ascending stamp */
    uint32_t m = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
      const rule_state *s = &r->rule[active[i]];
      uint32_t at = only_count ? 0 : s->since;
      if (s->active && at < least) least = at;
    }
    since = least;
    for (uint32_t i = 0; i < n; i++) {
      rule_state *s = &r->rule[active[i]];
      if (!s->active || (only_count ? 0 : s->since) != since) continue;
      s->active = false, left--;
      if (!s->skipped) r->group[m++] = active[i];
    }
    if (!m) continue;
    double t = seconds(r);
    if (!search_group(r, since, m, only_count)) return false;
    take_counts(r, m, iteration, only_count, (seconds(r) - t) / m);
  }
  return true;
}

/* ---- applying ---- */

/* A number that changes whenever what the conditions read does. */
static uint64_t condition_version(const tarn_eg_runner *r, const eg_rule *er) {
  uint64_t reads = 0, v = 1;
  for (uint32_t i = 0; i < er->n_cond; i++) reads |= er->cond[i].reads;
  if (reads & TARN_EG_READS_GRAPH) return r->g->version + 1;
  for (uint32_t a = 0; a < r->g->n_analyses; a++)
    if (reads >> a & 1) v += r->g->data_version[a];
  return v;
}

/* Applies tuples; those whose condition does not hold, or that are to be applied again, go to held.
 */
static bool apply_all(tarn_eg_runner *r, uint32_t rule, eg_span v, eg_vec *held) {
  rule_state *s = &r->rule[rule];
  uint32_t w = r->rs->rule[rule].n_words;
  for (size_t i = 0, k = 0; i < v.n; i += w, k++) {
    if ((k & 15) == 15 && is_late(r)) return false;
    eg_outcome o = eg_apply(&r->apply, rule, v.p + i);
    if (o == EG_STOPPED) return false;
    if (o == EG_HELD || (o == EG_APPLIED && r->rs->rule[rule].again)) {
      if (!eg_vec_reserve(&r->g->mem, held, w)) return false;
      memcpy(held->p + held->n, v.p + i, w * sizeof *v.p);
      held->n += w;
    }
    if (o == EG_APPLIED) s->stats.applied++, r->now->applied++;
  }
  return true;
}

/* One block of at most EG_BLOCK tuples, with as many as ahead behind it. */
static bool apply_block(tarn_eg_runner *r, uint32_t rule, const uint32_t *p, uint32_t n,
                        uint32_t ahead) {
  rule_state *s = &r->rule[rule];
  uint64_t refused = r->apply.refused;
  if ((++r->blocks & 15) == 0 && is_late(r)) return false;
#if defined(EG_WIDE)
  bool ok = r->g->wide ? eg_apply_block_wide(&r->apply, rule, p, n, ahead)
                       : eg_apply_block(&r->apply, rule, p, n, ahead);
#else
  bool ok = eg_apply_block(&r->apply, rule, p, n, ahead);
#endif
  if (!ok) return false;
  n -= (uint32_t)(r->apply.refused - refused);
  s->stats.applied += n, r->now->applied += n;
  return true;
}

/* Tuples of a span in blocks, after those that the spans before left over (*left of them, in
 * r->rest).  Blocks are full but for the last of all, so that ids are the same however many threads
 * have searched. */
static bool apply_blocks(tarn_eg_runner *r, uint32_t rule, eg_span v, uint32_t *left, bool last) {
  uint32_t w = r->rs->rule[rule].n_words;
  const uint32_t *p = v.p;
  for (size_t n = v.n / w; n || (last && *left);) {
    bool carried = *left > 0;
    uint32_t room = EG_BLOCK - *left, take = n < room ? (uint32_t)n : room;
    bool full = take == room || last;
    if (take && (carried || !full)) {
      memcpy(r->rest + (size_t)*left * w, p, (size_t)take * w * sizeof *p);
      *left += take;
    }
    p += (size_t)take * w, n -= take;
    if (!full) return true;
    uint32_t size = carried ? *left : take, ahead = n < EG_BLOCK ? (uint32_t)n : EG_BLOCK;
    if (carried) *left = 0;
    if (!apply_block(r, rule, carried ? r->rest : p - (size_t)take * w, size, carried ? 0 : ahead))
      return false;
  }
  return true;
}

static bool apply_held(tarn_eg_runner *r, uint32_t rule) {
  rule_state *s = &r->rule[rule];
  const eg_rule *er = &r->rs->rule[rule];
  uint64_t v = condition_version(r, er);
  if (!s->held.n || v == s->held_at) return true;
  eg_vec old = s->held;
  s->held = (eg_vec){0};
  bool ok = apply_all(r, rule, (eg_span){old.p, old.n}, &s->held);
  if (ok) {
    eg_vec_free(&r->g->mem, &old);
  } else { /* all are kept: applying one again does no harm */
    eg_vec_free(&r->g->mem, &s->held);
    s->held = old;
  }
  return ok;
}

static void keep(eg_vec *known, eg_span v) {
  if (v.n) memcpy(known->p + known->n, v.p, v.n * sizeof *v.p);
  known->n += v.n;
}

static size_t found_words(const rule_state *s) {
  size_t n = s->found.n;
  for (size_t i = 0; i < s->lot.n_span; i++) n += s->lot.span[i].n;
  return n;
}

/* What was found is known from now on; false: no memory. */
static bool keep_found(eg_mem *m, rule_state *s) {
  if (!eg_vec_reserve(m, &s->known, s->last)) return false;
  keep(&s->known, (eg_span){s->found.p, s->found.n});
  for (size_t i = 0; i < s->lot.n_span; i++) keep(&s->known, s->lot.span[i]);
  return true;
}

/* The rule has seen everything up to stamp. */
static void settle(tarn_eg_runner *r, uint32_t rule, uint32_t stamp, uint32_t n_ids) {
  enum { KEPT = 1 << 13 }; /* words: less is soon asked for again */
  rule_state *s = &r->rule[rule];
  eg_mem *m = &r->g->mem;
  s->seen = stamp, s->seen_id = n_ids, s->last = found_words(s);
  s->known_ok = r->c->scheduler == TARN_EG_BACKOFF && keep_found(m, s);
  if (r->c->scheduler != TARN_EG_BACKOFF) eg_vec_free(m, &s->known);
  if (s->found.cap > KEPT) eg_vec_free(m, &s->found);
  s->found.n = 0;
  eg_lot_free(m, &s->lot);
}

/* Nothing to apply. */
static bool is_idle(const tarn_eg_runner *r, uint32_t rule) {
  const rule_state *s = &r->rule[rule];
  return !s->found.n && !s->lot.n_span && !s->held.n;
}

/* Those that wait for a condition first. */
static bool apply_found(tarn_eg_runner *r, uint32_t rule) {
  rule_state *s = &r->rule[rule];
  bool bulk = eg_is_bulk(&r->apply, rule);
  if (!bulk && !apply_held(r, rule)) return false;
  uint32_t left = 0;
  for (size_t i = 0; i <= s->lot.n_span; i++) {
    eg_span v = i ? s->lot.span[i - 1] : (eg_span){s->found.p, s->found.n};
    bool last = i == s->lot.n_span;
    if (!(bulk ? apply_blocks(r, rule, v, &left, last) : apply_all(r, rule, v, &s->held)))
      return false;
  }
  return true;
}

static bool apply_rules(tarn_eg_runner *r, const uint32_t *active, uint32_t n, uint32_t stamp,
                        uint32_t n_ids) {
  for (uint32_t i = 0; i < n; i++) {
    rule_state *s = &r->rule[active[i]];
    if (s->skipped) continue;
    if (is_idle(r, active[i])) {
      settle(r, active[i], stamp, n_ids);
      continue;
    }
    double t = seconds(r);
    uint64_t before = r->apply.unions, refused = r->apply.refused;
    const eg_rule *er = &r->rs->rule[active[i]];
    uint64_t read = condition_version(r, er);
    bool ok = apply_found(r, active[i]);
    /* What is applied again may have read what a later match changed. */
    s->held_at = er->again ? read : condition_version(r, er);
    s->stats.apply += seconds(r) - t;
    s->stats.unions += r->apply.unions - before, s->stats.refused += r->apply.refused - refused;
    r->now->unions += r->apply.unions - before;
    if (!ok) return false;
    settle(r, active[i], stamp, n_ids);
  }
  return true;
}

/* ---- one iteration ---- */

static tarn_eg_stop why_stopped(const tarn_eg_runner *r) {
  const tarn_egraph *g = r->g;
  if (g->has_conflict) return TARN_EG_STOP_CONFLICT;
  if (r->late) return r->interrupted ? TARN_EG_STOP_INTERRUPTED : TARN_EG_STOP_SECONDS;
  if (g->mem.st == TARN_NO_RESULT)
    return g->live >= g->max_nodes ? TARN_EG_STOP_NODES : TARN_EG_STOP_BYTES;
  return g->mem.st == TARN_MEMORY ? TARN_EG_STOP_MEMORY : TARN_EG_STOP_ERROR;
}

/* Nothing is banned: true. Else lets the ban that ends first end now. */
static bool scheduler_agrees(tarn_eg_runner *r, const uint32_t *active, uint32_t n,
                             uint32_t iteration) {
  uint32_t least = UINT32_MAX;
  if (r->c->scheduler != TARN_EG_BACKOFF) return true;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t until = r->rule[active[i]].banned_until;
    if (until > iteration && until < least) least = until;
  }
  if (least == UINT32_MAX) return true;
  for (uint32_t i = 0; i < n; i++) {
    rule_state *s = &r->rule[active[i]];
    if (s->banned_until > iteration) s->banned_until -= least - iteration;
  }
  return false;
}

static void new_epoch(tarn_eg_runner *r) {
  if (r->epoch == r->g->epoch) return;
  r->epoch = r->g->epoch;
  for (uint32_t i = 0; i < r->n; i++) {
    rule_state *s = &r->rule[i];
    s->seen = s->seen_id = 0;
    s->known_ok = false;
    s->held.n = s->known.n = 0;
  }
}

static void drop_found(tarn_eg_runner *r) {
  for (uint32_t i = 0; i < r->n; i++) {
    eg_vec_free(&r->g->mem, &r->rule[i].found);
    eg_lot_free(&r->g->mem, &r->rule[i].lot);
  }
}

/* true: go on. */
static bool iterate(tarn_eg_runner *r, const uint32_t *active, uint32_t n, tarn_eg_stop *stop) {
  tarn_egraph *g = r->g;
  uint32_t iteration = r->n_it - 1, classes = g->classes, nodes = g->live;
  double t0 = seconds(r);
  uint32_t stamp = eg_advance(g), n_ids = g->n_ids;
  new_epoch(r);
  for (uint32_t i = 0; i < n; i++) prepare_rule(r, active[i], iteration);
  bool backoff = r->c->scheduler == TARN_EG_BACKOFF;
  bool ok = eg_searcher_prepare(&r->search) && search_rules(r, active, n, iteration, false) &&
            (backoff || !r->c->count_matches || search_rules(r, active, n, iteration, true));
  double t1 = seconds(r);
  ok = ok && apply_rules(r, active, n, stamp, n_ids);
  if (!ok) {
    *stop = why_stopped(r);
    drop_found(r); /* room for rebuilding */
  }
  double t2 = seconds(r);
  tarn_status st = tarn_eg_rebuild(g);
  double t3 = seconds(r);
  learn_rebuild(r, t3 - t2);
  tarn_eg_iteration *it = r->now;
  it->search = t1 - t0, it->apply = t2 - t1, it->rebuild = t3 - t2;
  it->nodes = g->live, it->classes = g->classes;
  for (uint32_t i = 0; i < n; i++) it->banned += r->rule[active[i]].skipped;
  if (!ok && g->has_conflict) *stop = TARN_EG_STOP_CONFLICT;
  if (!ok) return false;
  if (st != TARN_OK || g->has_conflict) {
    *stop = why_stopped(r);
    return false;
  }
  *stop = TARN_EG_STOP_SATURATED;
  return it->unions || !scheduler_agrees(r, active, n, iteration) || g->live != nodes ||
         g->classes != classes;
}

static bool prepare_run(tarn_eg_runner *r) {
  uint32_t n = r->rs->n;
  if (!GROW(r, rule, n) || !GROW(r, sink, n + 1u) || !GROW(r, group, n + 1u) ||
      !GROW(r, first_id, n + 1u) || !GROW(r, rest, EG_BLOCK * (r->rs->max_words + (size_t)1)))
    return false;
  if (n > r->n) memset(r->rule + r->n, 0, (n - r->n) * sizeof *r->rule);
  r->n = n;
  return eg_applier_init(&r->apply, r->g, r->rs);
}

static tarn_eg_stop run_active(tarn_eg_runner *r, const uint32_t *active, uint32_t n) {
  const tarn_eg_run_config *c = r->c;
  tarn_eg_stop stop = TARN_EG_STOP_ITERATIONS;
  for (uint32_t k = 0; !c->max_iterations || k < c->max_iterations; k++) {
    if (is_late(r)) return why_stopped(r);
    if (!GROW(r, it, r->n_it + 1u)) return why_stopped(r);
    r->now = &r->it[r->n_it++];
    *r->now = (tarn_eg_iteration){.nodes = r->g->live, .classes = r->g->classes};
    bool goal = c->before && !c->before(c->user, r->g, k);
    bool go = tarn_eg_rebuild(r->g) == TARN_OK && !goal && iterate(r, active, n, &stop);
    if (goal) stop = TARN_EG_STOP_GOAL;
    if (c->after) c->after(c->user, r->g, r->now);
    if (!go) return stop;
  }
  return TARN_EG_STOP_ITERATIONS;
}

tarn_eg_stop tarn_eg_run(tarn_eg_runner *r, const tarn_eg_run_config *config) {
  tarn_egraph *g = r->g;
  r->c = config, r->late = r->interrupted = false;
  r->search.threads = config->threads;
  tarn_eg_clear_status(g);
  g->has_conflict = false;
  r->start = seconds(r);
  if (!prepare_run(r)) return why_stopped(r);
  eg_vec all = {0};
  const uint32_t *active = config->active;
  uint32_t n = config->n_active;
  bool ok = true;
  if (!active) {
    n = r->n;
    for (uint32_t i = 0; ok && i < n; i++) ok = eg_push(&g->mem, &all, i);
    active = all.p;
  }
  for (uint32_t i = 0; ok && i < n; i++)
    if (active[i] >= r->n) {
      eg_fail(&g->mem, TARN_USAGE, "egraph: there is no rule %u", active[i]);
      ok = false;
    }
  tarn_eg_stop stop =
      ok && tarn_eg_rebuild(g) == TARN_OK ? run_active(r, active, n) : why_stopped(r);
  drop_found(r);
  eg_vec_free(&g->mem, &all);
  return stop;
}
