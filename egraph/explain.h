/* What the files of explanations share: the log as a graph of edges between ids (explain_path.c),
 * terms, chains and the instances of rules' sides (explain_side.c), and what puts them together
 * (explain.c). */
#ifndef TARN_EGRAPH_EXPLAIN_H
#define TARN_EGRAPH_EXPLAIN_H

#include "egraph/proof.h"

typedef struct edge {
  uint32_t x, y;
  size_t at; /* record */
} edge;

typedef struct chain {
  pf_step *p;
  uint32_t n;
  size_t cap;
} chain;

typedef struct front {
  eg_vec dist, via, mark; /* per id; via = edge * 2 + (entered backwards) */
  eg_vec heap;            /* pairs (distance, id) */
  uint64_t work;          /* edges looked at */
} front;

typedef struct explainer {
  tarn_egraph *g;
  tarn_eg_proof *p;
  eg_mem *m; /* the proof's: scratch is counted there too */
  edge *e;
  uint32_t n_e;
  size_t e_cap;
  eg_vec off, adj; /* edges of each id */
  eg_vec cost;     /* of each edge that was looked at; 0: not yet */
  eg_vec term;     /* per id, NONE = not yet made */
  front side[2];   /* of the search at work: from either end */
  uint32_t round, meet;
  uint64_t work_left; /* edges that may still be looked at */
  eg_vec todo;
  eg_vec cache; /* triples (a, b, lemma) by hash; a = NONE: empty */
  uint32_t cached;
  uint32_t depth;
} explainer;

enum { MAX_DEPTH = 50000, MAX_STEPS = 4000000, CONFLICT_WORK = 50000000 };
enum { STACK = 1 << 28 }; /* of MAX_DEPTH chains in one another */

typedef struct use { /* one application of a rule, as the log has it */
  const eg_rule *r;
  const uint32_t *tuple, *made;
  uint32_t part, n_made;
  uint32_t limit;  /* edges below may be used */
  uint64_t leaves; /* analyses whose values its step is to show by leaves */
} use;

/* What happens to the kids in one congruence step. */
typedef struct kid_work {
  eg_vec term, lemma;
} kid_work;

/* ---- explain_path.c ---- */
bool ex_read_log(explainer *x);
bool ex_index_edges(explainer *x);
bool ex_look_for(explainer *x, uint32_t a, uint32_t b, uint32_t limit);
bool ex_find_path(explainer *x, uint32_t a, uint32_t b, uint32_t limit, eg_vec *path);
use ex_read_use(const explainer *x, uint32_t e);
const uint32_t *ex_origin(const explainer *x, uint32_t id);
uint32_t ex_var_id(const explainer *x, const use *u, uint32_t v);
void ex_rule_ends(const explainer *x, const use *u, uint32_t *from, uint32_t *to);
bool ex_filled(explainer *x, eg_vec *v, size_t n, int byte);

/* ---- explain_side.c ---- */
uint32_t ex_term_of(explainer *x, uint32_t id);
bool ex_add_step(explainer *x, chain *c, pf_step s);
void ex_drop(explainer *x, chain *c);
bool ex_add_reversed(explainer *x, chain *c, const chain *from);
bool ex_finish(explainer *x, chain *c, uint32_t *lemma);
bool ex_kid_done(explainer *x, kid_work *w, uint32_t term, chain *sub);
bool ex_kids_done(explainer *x, chain *c, kid_work *w, uint32_t head, uint32_t other, bool forward,
                  uint32_t *made);
bool ex_to_left(explainer *x, chain *c, const use *u, uint32_t atom, uint32_t *made);
bool ex_to_right(explainer *x, chain *c, const use *u, uint32_t t, uint32_t *made);
bool ex_to_var(explainer *x, chain *c, const use *u, uint32_t id, uint32_t v, uint32_t *made);
bool ex_premises(explainer *x, const use *u, uint32_t by, uint32_t *place);
uint32_t ex_telling_leaf(const tarn_egraph *g, uint32_t id, uint64_t analyses);

/* ---- explain_exists.c ---- */
bool ex_existence(explainer *x, uint32_t id, uint32_t given);

/* ---- explain.c ---- */
bool ex_explain(explainer *x, chain *c, uint32_t a, uint32_t b, uint32_t limit);

#endif
