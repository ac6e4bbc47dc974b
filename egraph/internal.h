/* What the files of egraph/ share.
 *
 * Layout.  Everything per id lives in flat arrays indexed by id (see tarn_egraph).  An e-node is 16
 * bytes: an interned head (op, payload, arity), two kids, and the link of its class's circular node
 * list.  Nodes with more than two kids keep them in the wide arrays.  A class is named by its root
 * id; the root's union-find word holds the head of the class's use list instead of a parent.
 *
 * Use entries.  A use list links kid positions: entry 2*node+slot for the two inline kids,
 * WIDE|index for a position in the wide arrays.
 *
 * Stamps.  stamp[node] is the value of g->now when the node was made or last changed (its kids or
 * its class), 0 when it is dead or pruned.  A matcher that has seen everything up to stamp s only
 * needs nodes stamped later. In a class list the nodes after the first are in order of descending
 * stamp. */
#ifndef TARN_EGRAPH_INTERNAL_H
#define TARN_EGRAPH_INTERNAL_H

#include "egraph/egraph.h"

#define NONE TARN_NONE

/* Asks for memory that will be needed soon. */
#if defined(__GNUC__)
#define EG_FETCH(p) __builtin_prefetch((p))
#define EG_RARE(x)  __builtin_expect((x), 0)
#define EG_APART    __attribute__((noinline)) /* what is called from there stays short */
#else
#define EG_FETCH(p) ((void)(p))
#define EG_RARE(x)  (x)
#define EG_APART
#endif

/* ---- memory: counted, limited, with the status of the object that owns it ---- */
typedef struct eg_mem {
  tarn_allocator a;
  uint64_t bytes, peak, limit;
  bool pages;  /* the allocator is the C library's: large blocks are mapped */
  bool urgent; /* rebuilding: may use the last eighth of the limit, which is kept for it */
  tarn_status st;
  char msg[240];
} eg_mem;

void eg_mem_init(eg_mem *m, const tarn_allocator *a);
void eg_fail(eg_mem *m, tarn_status st, const char *fmt, ...) TARN_PRINTF(3, 4);
void *eg_resize(eg_mem *m, void *p, size_t old, size_t n); /* n > 0; NULL: failed, status set */
void eg_release(eg_mem *m, void *p, size_t n);             /* NULL allowed */
void *eg_pages(const tarn_allocator *a, void *p, size_t old,
               size_t n); /* pages.c; as a's realloc */

typedef struct eg_vec { /* of u32 */
  uint32_t *p;
  size_t n, cap;
} eg_vec;
bool eg_vec_reserve(eg_mem *m, eg_vec *v, size_t extra);
void eg_vec_free(eg_mem *m, eg_vec *v);
/* Pairs of a number and an id, the least number first. */
bool eg_heap_put(eg_mem *m, eg_vec *heap, uint32_t d, uint32_t id);
uint32_t eg_heap_take(eg_vec *heap, uint32_t *d);
static inline bool eg_push(eg_mem *m, eg_vec *v, uint32_t x) {
  if (v->n == v->cap && !eg_vec_reserve(m, v, 1)) return false;
  v->p[v->n++] = x;
  return true;
}
/* Grows *p (of *cap items of size each) to hold need items. */
bool eg_grow(eg_mem *m, void **p, size_t *cap, size_t need, size_t each);

/* ---- the graph ---- */
typedef struct eg_rec {
  uint32_t head; /* with the flag bits below */
  uint32_t k[2]; /* kids; k[0] is the base in the wide arrays when there are more than two */
  uint32_t next; /* circular list of the class's visible nodes (and its root) */
} eg_rec;
#define HEAD_HIDDEN 0x80000000u /* dead or pruned */
#define HEAD_DEAD   0x40000000u /* a congruent copy of another node, or an alias */
#define HEAD_SAVED  0x20000000u /* the original kids are in the origin log */
#define HEAD_GONE   0x10000000u /* subsumed: hidden for good, with what becomes congruent to it */
#define HEAD_BITS   0x0FFFFFFFu

typedef struct eg_link {
  uint32_t next[2]; /* use lists of the two inline kids */
} eg_link;
#define UF_ROOT    0x80000000u
#define USE_END    0x7FFFFFFFu /* no entry */
#define USE_WIDE   0x40000000u
#define MAX_IDS    0x1FFFFFF0u
#define CLS_QUEUED 0x8000u /* in mask: the class waits for repair */

typedef struct eg_head {
  uint32_t op, payload, n;
  uint32_t live; /* visible nodes */
  uint16_t bit;  /* eg_op_bit(op) */
} eg_head;

typedef struct eg_use_list { /* uses of a class that lost a union, to be made canonical */
  uint32_t head;
  uint32_t loser;
  uint32_t remake; /* bits: analyses whose value of the class changed by the union */
} eg_use_list;

typedef struct eg_op { /* live nodes per op */
  uint32_t op, live;
} eg_op;

typedef struct eg_table { /* of nodes by what they are: see table.c */
  uint32_t *slots;        /* buckets of EG_BUCKET slots, each one line of the cache, in block */
  void *block;
  size_t bytes;   /* of block */
  uint32_t mask;  /* number of buckets - 1 */
  unsigned shift; /* of the hash: what lies above says in which bucket to look first */
  uint32_t ids;   /* the low bits of a slot that hold an id; those above hold as much of the hash */
  uint32_t used, live; /* slots with ids and tombstones; with ids */
  uint32_t room;       /* used may grow to this before more buckets are needed */
} eg_table;

struct tarn_egraph {
  eg_mem mem;
  tarn_eg_reasons reasons;
  uint64_t max_nodes;

  /* per id */
  uint32_t n_ids;
  size_t ids_cap; /* all arrays below hold at least this many */
  eg_rec *rec;
  eg_link *link;
  uint32_t *uf; /* UF_ROOT | head of the use list, or the parent */
  uint16_t *stamp;
  uint16_t *mask; /* per class: ops present, a Bloom filter of 15 bits; CLS_QUEUED */
  uint32_t *lost; /* a bit per id: it is no root; small enough to stay near the processor where uf
                     is not */
  size_t rec_cap, link_cap, uf_cap, stamp_cap, mask_cap, lost_cap;
  uint64_t **data;  /* per analysis, per class */
  uint32_t **cause; /* the node that gave the value; only with reasons */
  size_t *data_cap, *cause_cap;

  /* kids beyond two: parallel arrays, one item per kid position */
  uint32_t *wkid, *wnext, *wowner;
  size_t n_wide, wkid_cap, wnext_cap, wowner_cap;

  /* heads */
  eg_head *heads;
  uint32_t n_heads;
  size_t heads_cap;
  uint32_t *head_slots; /* open addressing, NONE = empty */
  uint32_t head_mask;
  struct { /* the last ones asked for, by op */
    uint32_t op, payload, n, head;
  } recent[16];

  eg_table table;

  uint32_t now;   /* the stamp of changes made now */
  bool now_used;  /* some node has it */
  uint32_t epoch; /* advanced when stamps start over */
  uint32_t live, classes;
  uint32_t n_gone; /* nodes that were subsumed */
  uint64_t version;
  uint64_t *data_version; /* per analysis: changes of values */

  eg_use_list *pending;
  size_t pending_at, n_pending, pending_cap; /* from pending_at on they wait */
  eg_vec changed; /* pairs (class, analyses bits): values that changed, to carry upward */
  eg_vec queued;  /* classes to repair */
  bool dirty;     /* something to rebuild */
  bool making;    /* inside make or join: no changes allowed */
  bool wide;      /* the processor can do what wide.c holds */

  tarn_eg_analysis *analyses;
  uint32_t n_analyses;
  tarn_eg_conflict conflict;
  bool has_conflict;
  enum {
    CONFLICT_UNION,
    CONFLICT_JOINED,
    CONFLICT_NODE,
    CONFLICT_SAID
  } conflict_how; /* see note_conflict() */
  eg_vec refused; /* the record of the union that was refused */

  /* reasons */
  eg_vec log;    /* records, see explain.c */
  eg_vec origin; /* id, kids…: original kids of nodes whose kids have changed */
  uint32_t cur_rule, cur_note;
  struct tarn_eg_rules **sets; /* rule sets that the log refers to */
  uint32_t n_sets;
  size_t sets_cap;
  eg_vec origin_index; /* hash table over origin, built on demand */
  size_t origin_indexed;
};

static inline uint32_t eg_find(const tarn_egraph *g, uint32_t x) {
  uint32_t w;
  while (!((w = g->uf[x]) & UF_ROOT)) x = w;
  return x;
}
/* The same, shortening the path. */
static inline uint32_t eg_find_mut(tarn_egraph *g, uint32_t x) {
  uint32_t w = g->uf[x];
  while (!(w & UF_ROOT)) {
    uint32_t v = g->uf[w];
    if (v & UF_ROOT) return w;
    g->uf[x] = v;
    x = w, w = v;
  }
  return x;
}
/* Whether x is a root, the name of its class. */
static inline bool eg_is_root(const tarn_egraph *g, uint32_t x) {
  return !(g->lost[x / 32] >> (x % 32) & 1);
}
static inline void eg_set_parent(tarn_egraph *g, uint32_t x, uint32_t parent) {
  g->uf[x] = parent;
  g->lost[x / 32] |= 1u << (x % 32);
}
static inline uint32_t eg_head_of(const tarn_egraph *g, uint32_t id) {
  return g->rec[id].head & HEAD_BITS;
}
static inline uint32_t eg_arity(const tarn_egraph *g, uint32_t id) {
  return g->heads[eg_head_of(g, id)].n;
}
static inline uint32_t *eg_kids(const tarn_egraph *g, uint32_t id, uint32_t n) {
  return n <= 2 ? g->rec[id].k : g->wkid + g->rec[id].k[0];
}
static inline bool eg_visible(const tarn_egraph *g, uint32_t id) {
  return !(g->rec[id].head & HEAD_HIDDEN);
}
enum { ANY_OP = 0x7FFF };
static inline uint16_t eg_op_bit(uint32_t op) { return (uint16_t)(1u << (op % 15)); }

/* use entries */
static inline uint32_t *eg_use_next(const tarn_egraph *g, uint32_t e) {
  return e & USE_WIDE ? &g->wnext[e & ~USE_WIDE] : &g->link[e >> 1].next[e & 1];
}
static inline uint32_t eg_use_owner(const tarn_egraph *g, uint32_t e) {
  return e & USE_WIDE ? g->wowner[e & ~USE_WIDE] : e >> 1;
}
static inline uint32_t eg_use_slot(const tarn_egraph *g, uint32_t e, uint32_t owner) {
  return e & USE_WIDE ? (e & ~USE_WIDE) - g->rec[owner].k[0] : e & 1;
}
static inline uint32_t eg_use_head(const tarn_egraph *g, uint32_t root) {
  return g->uf[root] & ~UF_ROOT;
}

/* graph.c */
/* Room for n nodes of at most two kids, and no limit that they would pass; false: add them one by
 * one. */
bool eg_reserve_nodes(tarn_egraph *g, uint32_t n);
uint32_t eg_intern_head(tarn_egraph *g, uint32_t op, uint32_t payload,
                        uint32_t n); /* NONE: failed */
/* kids as given; the node's id or NONE. exact: as tarn_eg_add_exact(). */
uint32_t eg_add_head(tarn_egraph *g, uint32_t head, const uint32_t *kids, uint32_t n, bool exact);
void eg_hide(tarn_egraph *g, uint32_t id, uint32_t flags); /* from counts */
/* A new stamp for changes to come; what was stamped until now is at or below the result. */
uint32_t eg_advance(tarn_egraph *g);

/* rebuild.c */
int eg_join(tarn_egraph *g, uint32_t a, uint32_t b, uint32_t rule, uint32_t note);
bool eg_make_all(tarn_egraph *g, uint32_t head, const uint32_t *kids, uint32_t n, uint64_t *out);
void eg_modify_all(tarn_egraph *g, uint32_t cls);

/* log.c */
enum { LOG_CONG, LOG_PLAIN, LOG_AT, LOG_RULE };
enum { PART_FUNCTION = 0xFFF }; /* instead of a right side's number: the result of a function */
/* The first word of a LOG_RULE record: kind, 8 bits of length, 4 of part, 12 of rule, 6 of rule
 * set.  A record that does not fit has length 0 there, then the length, the rule set, and rule |
 * part << 20. */
enum { LOG_FUNCTION = 15 }; /* the part that stands for PART_FUNCTION */
bool eg_log_reserve(tarn_egraph *g, size_t words);
/* A union was not made: what was written from there on is taken back, and kept where it tells of a
 * conflict. */
void eg_log_take_back(tarn_egraph *g, size_t at);
void eg_log_congruent(tarn_egraph *g, uint32_t x, uint32_t y); /* two words, that were reserved */
bool eg_save_origin(tarn_egraph *g, uint32_t id, const uint32_t *kids, uint32_t n);
/* The original kids of id (its present ones when they never changed); NULL: no memory, which cannot
 * be when nothing was saved since eg_index_origins(). */
bool eg_index_origins(tarn_egraph *g);
const uint32_t *eg_origin(tarn_egraph *g, uint32_t id, uint32_t n);

#endif
