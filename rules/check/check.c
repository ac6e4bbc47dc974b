/* Checks rules on random instances. */
#include "base/progress.h"
#include "rules/check/net.h"
#include "rules/check/prove.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- the tape */

/* A tape that has run out gives the simplest choices. */
uint32_t draw(gen *g, uint32_t n) {
  tape *t = &g->t;
  uint32_t v = 0;
  if (t->silent) return n ? (uint32_t)(tarn_random(&t->seed) >> 32) % n : 0;
  if (t->replay) v = t->at < t->end ? t->from[t->at] : 0;
  else v = (uint32_t)(tarn_random(&t->seed) >> 32);
  t->at++;
  if (t->n == C_TAPE) tarn_raise(g->cx, TARN_BAD_INPUT, "rules check: the instance is too large");
  v = n ? v % n : 0;
  t->v[t->n++] = v;
  return v;
}

uint32_t draw_as(gen *g, uint32_t n, uint32_t v) {
  uint64_t seed = g->t.seed;
  uint32_t drawn = draw(g, n);
  if (g->t.replay) return drawn;
  g->t.seed = seed;
  return g->t.v[g->t.n - 1] = v;
}

/* ---------------------------------------------------------------- one instance */

/* Of a rule over loops a proof is the same for all instances. */
static void try_proof(job *j) {
  if (j->g->r->loops && j->tried) return;
  j->tried = true, j->which = 0;
  j->proved = prove_instance(j->g, &j->which, j->why, sizeof j->why);
}
static void instance(tarn_ctx *cx, void *arg) {
  job *j = arg;
  gen *g = j->g;
  (void)cx;
  if (!gen_left(g)) return;
  j->v.made = true;
  if (!gen_right(g)) return;
  j->v.applied = true;
  check_compare(g, &j->v);
  if (j->prove && j->v.differs) try_proof(j);
  j->apart = j->prove && j->v.differs && j->proved && check_bad(g->r, &j->v) &&
             (g->r->numeric == TARN_RULE_EXACT || j->v.why || check_apart(g) > 1e-3);
  if (j->print) check_print(g, &j->v, j->print);
}

enum { FEW = 7 }; /* the largest of the small extents */

/* The rule again, over a language of its own, which is thrown away with all that instances made. */
static void prepare(tarn_ctx *cx, void *arg) {
  job *j = arg;
  j->L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_r_ruleset(j->L, NULL, j->builder);
  j->r = r_read_again(rs, j->given);
  gen *g = j->g = TARN_NEW(cx, gen);
  *g = (gen){.cx = cx, .L = j->L, .r = j->r, .skip = j->skip, .max_extent = j->max_extent};
  if (g->skip == CHECK_OPEN) g->skip = TARN_NONE, g->closed = true;
  if (j->max_extent == FEW) g->sizes = sizes_of(cx, j->r);
  g->host = check_host(g);
  g->e = (renv){.L = j->L, .host = &g->host};
  g->t.v = TARN_ARRAY(cx, uint32_t, C_TAPE);
}

/* A failure inside the instances' context that is no property of an instance. */
static void failed(job *j, tarn_status st) {
  const char *why = tarn_strdup(j->outer, tarn_message(j->cx));
  tarn_raise(j->outer, st, "%s", why);
}

static void renew(job *j) {
  tarn_ctx_free(j->cx);
  j->cx = tarn_ctx_new(tarn_ctx_allocator(j->outer));
  if (!j->cx) tarn_raise(j->outer, TARN_MEMORY, "rules check: out of memory");
  tarn_status st = tarn_protect(j->cx, prepare, j);
  if (st) failed(j, st);
}

bool job_run(job *j, uint64_t seed, const uint32_t *from, uint32_t n) {
  if (!j->cx || tarn_ctx_bytes(j->cx) > (size_t)48 << 20) renew(j);
  tape *t = &j->g->t;
  j->g->only_f32 = j->only_f32;
  j->g->turn = j->turn;
  *t = (tape){.seed = seed, .replay = from != NULL, .from = from, .end = n, .v = t->v};
  j->v = (verdict){0};
  tarn_status st = tarn_protect(j->cx, instance, j);
  if (st == TARN_MEMORY || st == TARN_INTERNAL) failed(j, st);
  if (st) j->v = (verdict){0};
  return j->v.made;
}

static void job_end(void *arg) {
  job *j = arg;
  tarn_ctx_free(j->cx);
  j->cx = NULL;
}

/* ---------------------------------------------------------------- one rule */

typedef struct checking {
  tarn_ctx *cx;
  const tarn_rules_check_options *o;
  rbuild_fn *builder;
  TARN_VEC(tarn_rule_result) out;
} checking;

enum { PATIENCE = 60 }; /* a mutated rule may fire that many times as often before it is believed */

/* What a mutation may delete. */
static uint32_t parts_of(const rule *r) { return r->ncond + r->nguard + r->open; }
static uint32_t part_of(const rule *r, uint32_t k) {
  return k < r->ncond + r->nguard ? k : CHECK_OPEN;
}
/* A condition, a guard, or that the rule is open. Is it a guard? */
static bool print_deleted(tarn_buf *b, const rule *r, uint32_t which) {
  bool guard = which != CHECK_OPEN && which >= r->ncond;
  if (guard) tarn_buf_str(b, ":when ");
  if (which == CHECK_OPEN) tarn_buf_str(b, ":open true");
  else tarn_sx_print(b, rule_cond(r, which)->at, 0);
  return guard;
}
/* What became of the rule without condition `skip`; a guard is one without which the rule still
 * holds. */
static void without(checking *c, const rule *r, uint32_t skip, tarn_rule_result *res) {
  tarn_buf b = {.cx = c->cx};
  bool guard = print_deleted(&b, r, skip);
  res->deleted = b.p;
  res->ok = guard == (res->counterexample == NULL);
}

/* A rule is proved if each of its instances is, at its ranks and axes. A prover that shows what an
 * instance of the same case refutes is wrong; but of a rule that reorders it shows that the sides
 * are equal in real arithmetic, not that rounding does no more to the right one. */
static void note_proof(const checking *c, const job *j, tarn_rule_result *res, tarn_map *cases) {
  bool fresh, bad = check_bad(j->r, &j->v), worse = j->proved && bad && !j->apart;
  uint64_t *at = tarn_map_at(cases, j->which, &fresh);
  if (fresh) *at = 0;
  if (j->proved) *at |= 1;
  if (bad && !worse) *at |= 2;
  if (*at == 3)
    tarn_raise(c->cx, TARN_INTERNAL, "rules check: %s is proved, and an instance refutes it",
               res->name);
  res->proved = j->proved && (res->samples == 1 || res->proved);
  res->cases = tarn_map_count(cases);
  if (worse) res->proved = false, res->unproved = "rounding may do more to the right side";
  if (!j->proved && !res->unproved) res->unproved = tarn_strdup(c->cx, j->why);
}

/* Instances with a large size come when small ones have been tried, and between them where the rule
 * does not fire in these. */
typedef struct turns {
  uint64_t seed;
  uint32_t samples, tried, fired, wanted; /* wanted: known once a language is there */
} turns;
enum { EACH = 4, TRIES = 25, IN_VAIN = 1000 }; /* TRIES: for each that is wanted */
static bool turns_left(const turns *t) {
  return t->fired < t->wanted && t->tried < TRIES * t->wanted;
}
static uint32_t next_turn(turns *t, const job *j, const tarn_rule_result *res) {
  bool vain = res->tried > IN_VAIN && (!res->samples || t->fired) && res->tried % EACH == 0;
  if (!t->samples || !j->g || !j->g->sizes || (res->samples < t->samples && !vain)) return 0;
  return sizes_turn(j->g->sizes, t->tried++, t->seed);
}
static void start_turns(turns *t, const job *j) {
  if (t->samples && j->g && j->g->sizes) t->wanted = sizes_wanted(j->g->sizes, t->samples);
}

/* Instances until the rule has fired often enough, or a counterexample is found. */
static void check_rule(checking *c, const rule *r, uint32_t skip) {
  uint32_t samples = c->o->samples ? c->o->samples : 100;
  uint64_t most = 800ull * samples + 20000,
           seed = tarn_hash_bytes(r->name, strlen(r->name), c->o->seed);
  tarn_rule_result res = {
      .name = r->name, .family = r->family, .stated = r->numeric, .loops = r->loops != NULL};
  bool exact = true, real = true, fits_other = false;
  uint32_t other = 0; /* tries of other types than f32 */
  tarn_map *cases = tarn_map_new(c->cx);
  char never[256] = ""; /* why the right side of a call does not apply */
  job *j = TARN_NEW(c->cx, job);
  *j = (job){.outer = c->cx,
             .given = r,
             .builder = c->builder,
             .skip = skip,
             .max_extent = c->o->max_extent ? c->o->max_extent : FEW,
             .prove = c->o->prove};
  tarn_defer(c->cx, job_end, j);
  if (skip < r->ncond || skip == CHECK_OPEN) samples *= PATIENCE;
  else if (skip != TARN_NONE)
    samples = samples / 4 + 1, most = 50ull * samples; /* a guard: rarely is anything wrong */
  turns far = {.seed = seed, .samples = skip == TARN_NONE || skip < r->ncond ? samples : 0};
  while (res.tried < most + far.tried && !res.counterexample &&
         (res.samples < samples || turns_left(&far))) {
    res.tried++;
    tarn_go_on(c->cx);
    j->turn = next_turn(&far, j, &res);
    bool there = job_run(j, tarn_hash_mix(seed, res.tried), NULL, 0);
    start_turns(&far, j);
    if (!there || !j->v.applied || !j->v.differs) {
      other += j->g->dtype != TARN_F32;
      if (j->v.made && !j->v.applied && r->nwritten && !strstr(never, "of the kernel"))
        snprintf(never, sizeof never, "%s", tarn_message(j->cx));
      j->only_f32 = !fits_other && other > 400;
      continue;
    }
    fits_other |= j->g->dtype != TARN_F32;
    res.samples++;
    far.fired += j->turn != 0;
    exact &= j->v.exact, real &= j->v.real;
    res.worst = fmax(res.worst, j->v.error);
    if (j->prove) note_proof(c, j, &res, cases);
    if (check_bad(j->r, &j->v)) res.counterexample = check_shrink(j);
  }
  res.found = exact ? TARN_RULE_EXACT : real ? TARN_RULE_REASSOC : TARN_RULE_APPROX;
  if (skip == TARN_NONE) res.ok = !res.counterexample && res.samples >= samples;
  else without(c, r, skip, &res);
  if (skip == TARN_NONE && !res.samples && *never)
    res.counterexample = tarn_format(c->cx, "  its right side never applies: %s", never);
  job_end(j);
  tarn_push(c->cx, &c->out, res);
}

/* ---------------------------------------------------------------- within the limit of time */

/* False: the time was over before it had ended. */
static bool in_time(const checking *c, void (*fn)(tarn_ctx *, void *), void *arg) {
  tarn_status st = tarn_late(c->cx) ? TARN_NO_RESULT : tarn_protect(c->cx, fn, arg);
  if (st && (st != TARN_NO_RESULT || !tarn_late(c->cx))) tarn_reraise(c->cx, st);
  return !st;
}
static void push_unchecked(checking *c, const rule *r, const char *why) {
  tarn_rule_result res = {.name = r->name, .family = r->family, .stated = r->numeric, .ok = true};
  res.unchecked = why;
  tarn_push(c->cx, &c->out, res);
}
typedef struct trial {
  checking *c;
  const rule *r;
  uint32_t skip;
} trial;
static void try_rule(tarn_ctx *cx, void *arg) {
  trial *t = arg;
  (void)cx;
  check_rule(t->c, t->r, t->skip);
}
static void check_in_time(checking *c, const rule *r, uint32_t skip) {
  trial t = {c, r, skip};
  if (!in_time(c, try_rule, &t)) push_unchecked(c, r, check_no_time(c->cx));
}

/* ---------------------------------------------------------------- the kernel level */

/* A rule that calls what cannot be called here is not tried. */
static bool push_absent(checking *c, const rule *r) {
  for (uint32_t i = 0; i < r->nwritten; i++) {
    const tarn_written *w = r->written[i];
    if (w->run) continue;
    push_unchecked(c, r, w->absent ? w->absent : tarn_format(c->cx, "%s is not loaded", w->symbol));
    return true;
  }
  return false;
}
static bool chosen(const checking *c, const rule *r) {
  return !c->o->only || strcmp(c->o->only, r->name) == 0 || strcmp(c->o->only, r->family) == 0;
}

static void push_kernel(checking *c, const kernel_result *k, uint32_t tried, bool ok,
                        const char *deleted) {
  tarn_rule_result res = {.name = k->rule->name,
                          .family = k->rule->family,
                          .stated = k->rule->numeric,
                          .tried = tried,
                          .samples = k->samples,
                          .ok = ok,
                          .deleted = deleted,
                          .counterexample = k->counterexample,
                          .worst = k->worst};
  res.found = !k->real ? TARN_RULE_APPROX : k->exact ? k->rule->numeric : TARN_RULE_REASSOC;
  tarn_push(c->cx, &c->out, res);
}

/* Of a rule that networks show to be wrong: in place of what its own instances say, if there is
 * any. */
static void push_extra(checking *c, const kernel_result *k, uint32_t tried) {
  uint32_t n = c->out.n, i = 0;
  if (!k->counterexample) return;
  push_kernel(c, k, tried, false, NULL);
  while (i < n && strcmp(c->out.p[i].name, k->rule->name)) i++;
  if (i < n) c->out.p[i] = c->out.p[n], c->out.n = n;
}
static void try_networks(tarn_ctx *cx, void *arg) {
  (void)cx;
  check_kernel(arg);
}
static void on_networks(checking *c, tarn_ruleset *rs, uint32_t samples, kernel_result *res,
                        uint32_t n) {
  kernel_check k = {
      .rs = rs, .o = c->o, .samples = samples, .most = 150 * samples, .res = res, .n = n};
  const char *late = in_time(c, try_networks, &k) ? NULL : check_no_time(c->cx);
  for (uint32_t i = 0; i < n; i++) {
    bool bad = res[i].counterexample, enough = res[i].samples >= samples;
    if (res[i].extra) push_extra(c, &res[i], k.tried);
    else if (late && !bad && !enough) push_unchecked(c, res[i].rule, late);
    else push_kernel(c, &res[i], k.tried, !bad && enough, NULL);
  }
}
/* Kernel rules that are asked for, those with builders, or any other ones, which may be found to be
 * at fault. How many. */
static uint32_t kernel_rules(const checking *c, const tarn_ruleset *rs, bool extra,
                             kernel_result *res) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    const rule *r = rs->rule.p[i];
    if (r->level == TARN_RULE_KERNEL && !r->hw && (r->loops || !chosen(c, r)) == extra)
      res[n++] = (kernel_result){.rule = r, .extra = extra, .exact = true, .real = true};
  }
  return n;
}
static void check_kernel_rules(checking *c, tarn_ruleset *rs) {
  kernel_result *res = TARN_ARRAY(c->cx, kernel_result, rs->rule.n + 1);
  uint32_t n = kernel_rules(c, rs, false, res), samples = c->o->samples ? c->o->samples : 100;
  if (!n) return;
  if (!c->o->mutate) {
    on_networks(c, rs, samples, res, n + kernel_rules(c, rs, true, res + n));
    return;
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0, all = parts_of(res[i].rule); k < all; k++) {
      kernel_result one = res[i];
      tarn_buf b = {.cx = c->cx};
      uint32_t which = part_of(one.rule, k);
      bool guard = print_deleted(&b, one.rule, which);
      kernel_check try = {.rs = rs,
                          .o = c->o,
                          .samples = guard ? 3 : samples,
                          .most = guard ? 60 : 10 * samples,
                          .changed = one.rule,
                          .skip = which,
                          .res = &one,
                          .n = 1};
      if (!in_time(c, try_networks, &try)) push_unchecked(c, one.rule, check_no_time(c->cx));
      else push_kernel(c, &one, try.tried, guard == (one.counterexample == NULL), b.p);
    }
}

uint32_t tarn_rules_check(tarn_ruleset *rs, const tarn_rules_check_options *o,
                          const tarn_rule_result **out) {
  checking c = {.cx = rs->cx, .o = o, .builder = rs->builder};
  if (rs->theory) return rs->theory->check(rs, o, out);
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    const rule *r = rs->rule.p[i];
    if ((r->level != TARN_RULE_SURFACE && !r->hw && !r->loops) || !chosen(&c, r)) continue;
    if (push_absent(&c, r)) continue;
    tarn_progress(rs->cx, "checking rules", i, rs->rule.n, "rules");
    if (!o->mutate) check_in_time(&c, r, TARN_NONE);
    for (uint32_t k = 0; o->mutate && k < parts_of(r); k++) check_in_time(&c, r, part_of(r, k));
  }
  check_kernel_rules(&c, rs);
  tarn_progress_end(rs->cx);
  *out = c.out.p;
  return c.out.n;
}

/* ---------------------------------------------------------------- one rule, quickly */

const char *tarn_rule_trust_name(tarn_rule_trust t) {
  static const char *const names[] = {"proved", "sampled", "refuted"};
  return names[t];
}
tarn_rule_trust tarn_rule_trusted(const tarn_ruleset *rs, uint32_t number, const char **why) {
  enum { SAMPLES = 12 };
  const rule *r = rs->rule.p[number];
  tarn_rules_check_options o = {.samples = SAMPLES, .prove = true};
  checking c = {.cx = rs->cx, .o = &o, .builder = rs->builder};
  trial t = {&c, r, TARN_NONE};
  *why = "it calls what C computes";
  if ((r->level != TARN_RULE_SURFACE && !r->loops) || r->nwritten) return TARN_RULE_SAMPLED;
  *why = check_no_time(rs->cx);
  if (!in_time(&c, try_rule, &t)) return TARN_RULE_SAMPLED;
  const tarn_rule_result *res = &c.out.p[0];
  *why = res->counterexample ? res->counterexample : res->unproved;
  if (res->counterexample) return TARN_RULE_REFUTED;
  return res->proved ? TARN_RULE_PROVED : TARN_RULE_SAMPLED;
}
