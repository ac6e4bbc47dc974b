/* Explanations from the log.
 *
 * The records of the log are edges between ids, in order of time.  A chain from a to b is a
 * cheapest path in that graph; what an edge needs (kids that were matched through other members of
 * their class, kids of congruent nodes) is explained by edges older than it.  Such a chain always
 * exists, because the classes were equal when the record was written; and going back in time ends.
 * Finished chains are kept as lemmas and used again. */
#include "egraph/explain.h"

#include <string.h>

/* ---- edges as steps ---- */

static bool rule_step(explainer *x, chain *c, uint32_t rule, uint32_t note, uint32_t before,
                      uint32_t after, uint32_t place) {
  if (before == NONE || after == NONE) return false;
  return ex_add_step(x, c, (pf_step){rule, note, before, after, place, true});
}

static bool rule_into(explainer *x, chain *c, uint32_t e) {
  use u = ex_read_use(x, e);
  uint32_t from, to, left = NONE, right = NONE;
  ex_rule_ends(x, &u, &from, &to);
  const eg_part *part = u.part == PART_FUNCTION ? NULL : &u.r->part[u.part];
  uint32_t atom = u.r->bare ? NONE : part ? part->atom : 0;
  chain tail = {0};
  uint32_t place = 0;
  bool ok = atom != NONE ? ex_to_left(x, c, &u, atom, &left) : (left = ex_term_of(x, from)) != NONE;
  if (ok && part && part->result.kind == REF_NODE) {
    ok = ex_to_right(x, &tail, &u, part->result.i, &right);
  } else if (ok && part) { /* a variable: from its term to that of the id */
    chain there = {0};
    ok = ex_to_var(x, &there, &u, to, part->result.i, &right) && ex_add_reversed(x, &tail, &there);
    ex_drop(x, &there);
  } else if (ok) {
    right = ex_term_of(x, to);
  }
  ok = ok && ex_premises(x, &u, atom, &place) && rule_step(x, c, u.r->id, 0, left, right, place);
  for (uint32_t i = 0; ok && i < tail.n; i++) ok = ex_add_step(x, c, tail.p[i]);
  ex_drop(x, &tail);
  return ok;
}

/* From the term of node to op(kids). */
static bool respell(explainer *x, chain *c, uint32_t node, const uint32_t *kids, uint32_t limit,
                    uint32_t *made) {
  uint32_t n = eg_arity(x->g, node), from = ex_term_of(x, node);
  kid_work w = {0};
  bool ok = from != NONE;
  for (uint32_t i = 0; ok && i < n; i++) {
    chain sub = {0};
    ok = ex_explain(x, &sub, ex_origin(x, node)[i], kids[i], limit);
    ok = ex_kid_done(x, &w, ok ? ex_term_of(x, kids[i]) : NONE, &sub);
  }
  if (!ok) {
    eg_vec_free(x->m, &w.term), eg_vec_free(x->m, &w.lemma);
    return false;
  }
  return ex_kids_done(x, c, &w, eg_head_of(x->g, node), from, true, made);
}

static bool edge_into(explainer *x, chain *c, uint32_t e) {
  const uint32_t *p = x->g->log.p + x->e[e].at;
  uint32_t left;
  switch (p[0] & 3) {
  case LOG_CONG: return respell(x, c, x->e[e].x, ex_origin(x, x->e[e].y), e, &left);
  case LOG_PLAIN: return rule_step(x, c, p[3], p[4], ex_term_of(x, p[1]), ex_term_of(x, p[2]), 0);
  case LOG_AT:
    return respell(x, c, p[1], p + 5, e, &left) &&
           rule_step(x, c, p[3], p[4], left, ex_term_of(x, p[2]), 0);
  default: return rule_into(x, c, e);
  }
}

/* ---- lemmas that are used again ---- */

static size_t cache_slot(const explainer *x, uint32_t a, uint32_t b) {
  size_t m = x->cache.n / 3 - 1, i = (size_t)tarn_hash_mix(a, b) & m;
  while (x->cache.p[3 * i] != NONE && (x->cache.p[3 * i] != a || x->cache.p[3 * i + 1] != b))
    i = (i + 1) & m;
  return 3 * i;
}

static bool cache_put(explainer *x, uint32_t a, uint32_t b, uint32_t lemma) {
  if ((x->cached + 1) * 6 > x->cache.n) {
    eg_vec old = x->cache;
    x->cache = (eg_vec){0};
    if (!ex_filled(x, &x->cache, old.n ? old.n * 2 : 3 * 64, 0xFF)) {
      x->cache = old;
      return false;
    }
    for (size_t i = 0; i < old.n; i += 3)
      if (old.p[i] != NONE)
        memcpy(x->cache.p + cache_slot(x, old.p[i], old.p[i + 1]), old.p + i, 3 * sizeof *old.p);
    eg_vec_free(x->m, &old);
  }
  uint32_t *p = x->cache.p + cache_slot(x, a, b);
  if (p[0] == NONE) x->cached++;
  p[0] = a, p[1] = b, p[2] = lemma;
  return true;
}

static bool copy_lemma(explainer *x, chain *c, uint32_t lemma) {
  tarn_eg_lemma l = x->p->lemma[lemma];
  for (uint32_t i = 0; i < l.n; i++)
    if (!ex_add_step(x, c, x->p->step[l.first + i])) return false;
  return true;
}

static bool walk_path(explainer *x, chain *c, const eg_vec *path) {
  for (size_t i = path->n; i-- > 0;) {
    uint32_t v = path->p[i];
    if (!(v & 1)) {
      if (!edge_into(x, c, v / 2)) return false;
      continue;
    }
    chain there = {0};
    bool ok = edge_into(x, &there, v / 2) && ex_add_reversed(x, c, &there);
    ex_drop(x, &there);
    if (!ok) return false;
  }
  return true;
}

/* Appends steps from the term of a to that of b, using edges below limit only. */
bool ex_explain(explainer *x, chain *c, uint32_t a, uint32_t b, uint32_t limit) {
  uint32_t ta = ex_term_of(x, a), tb = ex_term_of(x, b);
  if (ta == NONE || tb == NONE) return false;
  if (ta == tb) return true;
  if (x->cache.n) {
    size_t s = cache_slot(x, a, b);
    if (x->cache.p[s] != NONE) return copy_lemma(x, c, x->cache.p[s + 2]);
  }
  if (++x->depth > MAX_DEPTH) {
    eg_fail(x->m, TARN_NO_RESULT, "egraph: the explanation nests deeper than %d", MAX_DEPTH);
    return false;
  }
  eg_vec path = {0};
  chain whole = {0};
  uint32_t lemma;
  bool ok = ex_find_path(x, a, b, limit, &path) && walk_path(x, &whole, &path) &&
            ex_finish(x, &whole, &lemma);
  ok = ok && (lemma == NONE || (cache_put(x, a, b, lemma) && copy_lemma(x, c, lemma)));
  ex_drop(x, &whole);
  eg_vec_free(x->m, &path);
  x->depth--;
  return ok;
}

/* ---- */

static void free_scratch(explainer *x) {
  eg_release(x->m, x->e, x->e_cap * sizeof *x->e);
  eg_vec *v[] = {&x->off, &x->adj, &x->cost, &x->term, &x->todo, &x->cache};
  for (size_t i = 0; i < sizeof v / sizeof *v; i++) eg_vec_free(x->m, v[i]);
  for (front *f = x->side; f < x->side + 2; f++)
    eg_vec_free(x->m, &f->dist), eg_vec_free(x->m, &f->via), eg_vec_free(x->m, &f->mark),
        eg_vec_free(x->m, &f->heap);
}

/* The last lemma is the answer, even when there is nothing to do or it was found before. */
static bool last_lemma(explainer *x, uint32_t a, uint32_t b) {
  tarn_eg_proof *p = x->p;
  chain c = {0};
  uint32_t lemma = NONE;
  bool ok = ex_explain(x, &c, a, b, x->n_e);
  tarn_eg_lemma have = p->n_lemmas ? p->lemma[p->n_lemmas - 1] : (tarn_eg_lemma){NONE, NONE, 0, 0};
  bool there = ok && c.n && have.from == c.p[0].before && have.to == c.p[c.n - 1].after;
  ok = ok && (there || ex_finish(x, &c, &lemma));
  ex_drop(x, &c);
  if (!ok || there || lemma != NONE) return ok;
  if (!eg_grow(x->m, (void **)&p->lemma, &p->lemma_cap, p->n_lemmas + 1u, sizeof *p->lemma))
    return false;
  p->lemma[p->n_lemmas++] = (tarn_eg_lemma){ex_term_of(x, a), ex_term_of(x, b), p->n_steps, 0};
  return true;
}

typedef struct asking {
  explainer *x;
  uint32_t a, b;
  bool exists; /* why a is there, where ids below b are given; else from a to b */
  bool ok;
} asking;
static void ask(void *arg) {
  asking *k = arg;
  k->ok = ex_read_log(k->x) && ex_index_edges(k->x) &&
          (k->exists ? ex_existence(k->x, k->a, k->b) : last_lemma(k->x, k->a, k->b));
}

static tarn_eg_proof *explain_asked(tarn_egraph *g, asking k, uint64_t work) {
  if (!eg_index_origins(g)) return NULL;
  tarn_eg_proof *p = eg_resize(&g->mem, NULL, 0, sizeof *p);
  if (!p) return NULL;
  g->mem.bytes -= sizeof *p; /* the proof counts for itself */
  memset(p, 0, sizeof *p);
  eg_mem_init(&p->mem, &g->mem.a);
  explainer x = {.g = g, .p = p, .m = &p->mem, .work_left = work};
  k.x = &x;
  if (!tarn_deep(STACK, ask, &k)) eg_fail(&p->mem, TARN_MEMORY, "egraph: no stack to explain on");
  free_scratch(&x);
  if (k.ok) return p;
  eg_fail(&g->mem, p->mem.st == TARN_OK ? TARN_MEMORY : p->mem.st, "%s", p->mem.msg);
  tarn_eg_proof_free(p);
  return NULL;
}

/* A path between any two ids. */
static tarn_eg_proof *explain_ids(tarn_egraph *g, uint32_t a, uint32_t b, uint64_t work) {
  return explain_asked(g, (asking){.a = a, .b = b}, work);
}

tarn_eg_proof *tarn_eg_explain_existence(tarn_egraph *g, uint32_t id, uint32_t given) {
  if (id >= g->n_ids || !g->reasons) {
    eg_fail(&g->mem, TARN_USAGE,
            "egraph: explain_existence needs an id and a graph that keeps reasons");
    return NULL;
  }
  return explain_asked(g, (asking){.a = id, .b = given, .exists = true}, UINT64_MAX);
}

tarn_eg_proof *tarn_eg_explain(tarn_egraph *g, uint32_t a, uint32_t b) {
  if (a >= g->n_ids || b >= g->n_ids || !g->reasons) {
    eg_fail(&g->mem, TARN_USAGE, "egraph: explain needs two ids and a graph that keeps reasons");
    return NULL;
  }
  if (eg_find(g, a) != eg_find(g, b)) {
    eg_fail(&g->mem, TARN_NO, "egraph: %u and %u are not equal", a, b);
    return NULL;
  }
  return explain_ids(g, a, b, UINT64_MAX);
}

/* ---- conflicts: what was not joined is put behind the log as if it had been ---- */

/* The node whose value is not that of its class, over leaves that show the values it was computed
 * from, is b. */
static bool log_value(tarn_egraph *g, uint32_t b) {
  uint32_t node = g->conflict.b, n = eg_arity(g, node), len = 5 + n;
  if (n > 10000 || !eg_log_reserve(g, len)) return false;
  uint32_t *p = g->log.p + g->log.n;
  p[0] = LOG_AT | len << 2, p[1] = node, p[2] = b, p[3] = TARN_EG_RULE_ANALYSIS,
  p[4] = g->conflict.analysis;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t kid = eg_find(g, eg_kids(g, node, n)[i]),
             leaf = ex_telling_leaf(g, kid, UINT64_C(1) << g->conflict.analysis);
    p[5 + i] = leaf != NONE ? leaf : kid;
  }
  g->log.n += len;
  return true;
}

static bool log_conflict(tarn_egraph *g, uint32_t b) {
  uint32_t said[5] = {LOG_PLAIN | 5u << 2, g->conflict.a, b, TARN_EG_RULE_GIVEN, 0};
  const eg_vec *r = &g->refused;
  bool is_said = g->conflict_how == CONFLICT_SAID;
  if (g->conflict_how == CONFLICT_JOINED) return true; /* the log has it */
  if (g->conflict_how == CONFLICT_NODE) return log_value(g, b);
  size_t n = is_said ? 5 : r->n;
  if (!n || !eg_log_reserve(g, n)) return false;
  memcpy(g->log.p + g->log.n, is_said ? said : r->p, n * sizeof *said);
  g->log.n += n;
  return true;
}

tarn_eg_proof *tarn_eg_explain_conflict(tarn_egraph *g, uint32_t a, uint32_t b) {
  size_t at = g->log.n;
  if (a >= g->n_ids || b >= g->n_ids || !g->reasons || !g->has_conflict) {
    eg_fail(&g->mem, TARN_USAGE,
            "egraph: explain_conflict needs a conflict, two ids and a graph that keeps reasons");
    return NULL;
  }
  tarn_eg_proof *p = log_conflict(g, b) ? explain_ids(g, a, b, CONFLICT_WORK) : NULL;
  if (!p) eg_fail(&g->mem, TARN_NO_RESULT, "egraph: the conflict cannot be explained");
  g->log.n = at;
  return p;
}
