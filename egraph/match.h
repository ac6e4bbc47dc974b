/* Searching: match.c runs the plans, search.c says from where, join.c what comes next where rules
 * have several roots. */
#ifndef TARN_EGRAPH_MATCH_H
#define TARN_EGRAPH_MATCH_H

#include "egraph/pattern.h"

/* Tuples that other threads found, as they left them: they come behind those of the sink's own
 * list. */
typedef struct eg_span {
  const uint32_t *p;
  size_t n; /* words */
} eg_span;
typedef struct eg_lot {
  eg_vec *list; /* what the spans lie in */
  eg_span *span;
  size_t n_list, list_cap, n_span, span_cap;
} eg_lot;
void eg_lot_free(eg_mem *m, eg_lot *l);

/* Where the matches of one rule go. */
typedef struct eg_sink {
  eg_vec *found; /* tuples with a node stamped after seen; NULL: only count */
  eg_lot *lot;   /* more of them; NULL: all are put into found */
  eg_vec *known; /* the others; NULL: only count */
  uint32_t seen;
  size_t last;    /* words that were found the last time */
  uint64_t count; /* all */
  uint64_t limit; /* stop when count passes it */
  bool full;      /* stopped */
} eg_sink;

/* The class that an atom was last looked for in by one of its kids. */
typedef struct eg_keyed {
  const eg_instr *at; /* by which instruction; NULL: none */
  uint32_t cls;
  uint8_t mode;
  bool is_long, is_huge, sorted;
  uint64_t *pair; /* when sorted: kid << 32 | node */
  size_t n, pair_cap;
} eg_keyed;

/* Nodes that a test accepts and that have a class at a place: uses.c. */
typedef struct eg_kind {
  uint32_t test, cls, slot, cls2, slot2; /* the last two NONE, or another class at another place */
  uint32_t start, n;
  bool in_use;
} eg_kind;
typedef struct eg_kinds {
  eg_kind *at; /* a hash table of cap places, cap a power of two */
  size_t n, cap, held;
  eg_vec list; /* what start and n are of */
  uint64_t *pair, *pair2;
  size_t pair_cap, pair2_cap;
} eg_kinds;

/* What a search may take for an atom. */
enum { ANY, OLD, CHANGED, FIXED };

/* What all searches of a graph with a rule set share; kept between searches. */
typedef struct eg_searcher {
  tarn_egraph *g;
  const tarn_eg_rules *rs;
  eg_mem *mem;
  unsigned threads; /* 0 is 1 */
  uint8_t *ok;      /* per test, per head: may it match */
  size_t ok_cap, ok_stride;
  uint32_t ok_heads, ok_tests;
  uint32_t *leaf; /* per test: the node, for tests of one leaf */
  size_t leaf_cap;
  eg_vec order;         /* changed nodes, by head */
  eg_vec head_at;       /* where each head's begin in order */
  eg_vec classes;       /* classes that hold changed nodes, with the ops of those: pairs */
  eg_vec trig, trig_at; /* of search.c: triggers; per head of a parent, where they begin and which
                           ops they are about */
  uint16_t wanted;      /* ops that some trigger is about */
  eg_vec possible;      /* per rule searched for: 0, or 1 + the root to begin from */
  size_t last_roots;    /* nodes that the last search began from */
  bool (*hurry)(void *user); /* true: give up (time is over); asked now and then */
  void *user;
  uint32_t patience;
  bool gave_up;
  /* scratch, of each thread its own */
  uint32_t *tuple, *fixed;
  uint8_t *mode;
  eg_keyed *keyed; /* per atom */
  eg_kinds kinds;
  /* of a rule that is joined: */
  bool *done;      /* atoms that have a node */
  eg_src *met;     /* by number, as I_MEET has them: where it was met first; atom NONE: not yet */
  uint32_t *trail; /* the numbers that were met, in order */
  uint32_t n_trail, left; /* left: atoms that are not done */
  size_t done_cap, met_cap, trail_cap;
  size_t tuple_cap, fixed_cap, mode_cap, keyed_cap;
  uint64_t *pairs, *pairs2; /* for sorting: key << 32 | node */
  size_t pairs_cap, pairs2_cap;
  /* the rule at work */
  const eg_rule *r;
  const eg_instr *code;
  uint32_t len;
  uint32_t since, require;
  eg_sink *sink;
} eg_searcher;

static inline bool head_ok(const eg_searcher *s, uint32_t test, uint32_t rec_head) {
  uint32_t h = rec_head & (HEAD_HIDDEN | HEAD_BITS);
  return h < s->ok_heads && s->ok[test * s->ok_stride + h];
}

void eg_searcher_init(eg_searcher *s, tarn_egraph *g, const tarn_eg_rules *rs);
void eg_searcher_free(eg_searcher *s);
/* Before searching, and again whenever the graph has changed. */
bool eg_searcher_prepare(eg_searcher *s);
/* search.c: all matches of the rules with a node stamped after since (0: all), each once. first_id:
 * only classes from this id on, for bare rules. sinks[i] belongs to rules[i]. false: out of memory
 * or gave up. */
bool eg_search(eg_searcher *s, const uint32_t *rules, eg_sink *sinks, uint32_t n, uint32_t since,
               const uint32_t *first_id);

static inline bool eg_mode_allows(const eg_searcher *s, uint32_t atom, uint32_t node) {
  uint16_t st = s->g->stamp[node];
  switch (s->mode[atom]) {
  case OLD: return st <= s->since;
  case CHANGED: return st > s->since;
  case FIXED: return node == s->fixed[atom];
  default: return true;
  }
}
/* looked: nodes, since it was asked the last time. */
bool eg_out_of_time(eg_searcher *s, uint32_t looked);

bool eg_scratch_prepare(eg_searcher *s);
void eg_scratch_free(eg_searcher *s);

typedef struct eg_search_job {
  const uint32_t *rules;
  uint32_t n;
  bool scan; /* all nodes in order of ids */
  uint32_t pieces;
} eg_search_job;
bool eg_search_piece(eg_searcher *s, const eg_search_job *j, eg_sink *sinks, uint32_t k);
/* parallel.c: s->threads threads, of which the caller is one; NULL: no memory. A team searches
 * once, all pieces, or not at all, and is gone then. more: how much larger the search is than the
 * last one. */
typedef struct eg_team eg_team;
eg_team *eg_team_start(eg_searcher *s);
bool eg_team_search(eg_team *t, const eg_search_job *j, eg_sink *sinks, double more);
void eg_team_send_home(eg_team *t); /* NULL allowed */

/* The nodes of a class (slot is SLOT_SELF), or those that have it as a kid there: one after the
 * other, among others that eg_walk() passes over as NONE. */
typedef struct eg_walker {
  uint32_t cls, slot, at;
} eg_walker;
static inline eg_walker eg_walk_from(const tarn_egraph *g, uint32_t cls, uint32_t slot) {
  return (eg_walker){cls, slot, slot == (uint32_t)SLOT_SELF ? cls : eg_use_head(g, cls)};
}
static inline bool eg_walk(const tarn_egraph *g, eg_walker *w, uint32_t *node) {
  if (w->at == USE_END) return false;
  if (w->slot == (uint32_t)SLOT_SELF) {
    *node = w->at;
    w->at = g->rec[w->at].next;
    if (w->at == w->cls) w->at = USE_END;
    return true;
  }
  uint32_t owner = eg_use_owner(g, w->at);
  bool right = eg_visible(g, owner) && eg_use_slot(g, w->at, owner) == w->slot;
  *node = right ? owner : NONE;
  w->at = *eg_use_next(g, w->at);
  return true;
}

/* uses.c: the nodes that the test accepts of those that eg_walk() goes through, in that order;
 * NULL: gave up. Slot NONE: of all classes. _again: the same, where that was noted before; NULL: it
 * was not, or gave up. _note: without looking for them. */
enum { FEW_USES = 64 };
bool eg_has_few_uses(const tarn_egraph *g, uint32_t cls);
const eg_kind *eg_kind_of(eg_searcher *s, uint32_t test, uint32_t cls, uint32_t slot);
const eg_kind *eg_kind_again(eg_searcher *s, uint32_t test, uint32_t cls, uint32_t slot);
bool eg_kind_note(eg_searcher *s, uint32_t test, uint32_t cls, uint32_t slot);
/* Of these, those that also have cls2 at slot2; NULL: none, or gave up. */
const eg_kind *eg_kind_both(eg_searcher *s, const eg_kind *of, uint32_t cls2, uint32_t slot2);
/* search.c: sorts n pairs by their keys below n_keys, keeping the order of equal ones. */
void eg_sort_by_key(uint64_t *p, uint64_t *tmp, size_t n, uint32_t n_keys);
void eg_kinds_forget(eg_kinds *k);
void eg_kinds_free(eg_mem *m, eg_kinds *k);

/* The plan of s->code with its first atom bound to node. false: stop searching. */
bool eg_run_from(eg_searcher *s, uint32_t root, uint32_t node);

/* join.c: begin: before the plan of an atom of a joined rule. next: all ways to go on from the
 * atoms that are done; false: stop searching. undo: what was met since the trail was that long. */
void eg_join_begin(eg_searcher *s, uint32_t atom);
bool eg_join_next(eg_searcher *s);
static inline void eg_join_undo(eg_searcher *s, uint32_t mark) {
  while (s->n_trail > mark) s->met[s->trail[--s->n_trail]].atom = NONE;
}

/* Reading a tuple as the caller sees it. Buffers sized by the rule set. */
typedef struct eg_reader {
  uint32_t *vars, *payloads, *ops;
  tarn_eg_slice *segs;
  eg_vec kids; /* what the slices point to */
  size_t vars_cap, payloads_cap, ops_cap, segs_cap;
} eg_reader;
bool eg_reader_init(eg_reader *rd, eg_mem *m, const tarn_eg_rules *rs);
void eg_reader_free(eg_reader *rd, eg_mem *m);
bool eg_read(eg_reader *rd, tarn_egraph *g, const eg_rule *r, uint32_t number,
             const uint32_t *tuple, tarn_eg_match *out);

#endif
