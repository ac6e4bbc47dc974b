/* Compiled rules.
 *
 * An atom is one NODE of a left side, numbered in preorder, root after root.  A match is a tuple of
 * e-nodes, one per atom, followed by the lengths that segments took where they are not implied;
 * substitutions are read off it. That tuple determines the (root class, substitution) pair and is
 * determined by it, because a node is in one class only: so matches are counted by counting tuples.
 */
#ifndef TARN_EGRAPH_PATTERN_H
#define TARN_EGRAPH_PATTERN_H

#include "egraph/internal.h"
#include <stdatomic.h>

/* A kid position of an atom's node: k >= 0 from the front; SLOT_END - k: k-th from the end (0 =
 * last); SLOT_ELEM + e: element e of an atom with several segments; SLOT_SELF: the class of the
 * node itself. */
enum { SLOT_SELF = INT32_MIN, SLOT_END = -1, SLOT_ELEM = 1 << 24 };
typedef struct eg_src {
  uint32_t atom;
  int32_t slot;
} eg_src;

typedef struct eg_test { /* which heads an atom may match; shared between atoms of all rules of a
                            set */
  tarn_eg_how op_how, payload_how;
  uint32_t op, payload;
  bool (*test)(void *user, uint32_t op, uint32_t payload);
  void *user;
  uint32_t n; /* kids; at least so many with segments */
  bool segs;
  uint16_t ops; /* the bits of a class's mask one of which a node that matches has set */
} eg_test;

typedef struct eg_elem { /* a kid pattern of an atom */
  tarn_eg_pat_kind kind;
  uint32_t ref; /* VAR: variable, SEG: segment variable, NODE: atom */
  uint32_t fixed_before, segs_before;
} eg_elem;

typedef struct eg_atom {
  uint32_t test;
  uint32_t parent; /* NONE for a root */
  int32_t slot;    /* in the parent */
  uint32_t block;  /* the root it is under */
  uint32_t n_segs, n_fixed;
  uint32_t choice; /* with several segments: tuple word of the first one's length */
  uint32_t elem, n_elem;
} eg_atom;

/* Where the class of a variable stands in an atom: by it the atom's nodes are found. */
typedef struct eg_place {
  uint32_t var; /* as I_MEET numbers them */
  int32_t slot; /* a kid from the front, or SLOT_SELF */
} eg_place;

typedef enum {
  I_ROOT,    /* atom a: given */
  I_ENUM,    /* atom a: nodes of class x */
  I_KEYED,   /* atom a: nodes of class x whose kid number key is class y */
  I_LEAF,    /* atom a: the leaf, if it is in class x */
  I_SPLIT,   /* lengths of the segments of atom a */
  I_EQ,      /* class x = class y */
  I_PAYLOAD, /* payload of atom x.atom = of y.atom */
  I_OP,
  I_SEG, /* segments x.slot of x.atom and y.slot of y.atom (element numbers) are equal */
  I_MEET /* x is the first of its number a, or equal to that one by the code key */
} eg_opcode;
typedef struct eg_instr {
  eg_opcode code;
  uint32_t a;
  eg_src x, y;
  uint32_t key;
  bool x_near, y_near; /* the source is kid 0 or 1 of a node of at most two kids */
} eg_instr;

typedef struct eg_ref { /* a kid of a right-side node */
  enum { REF_VAR, REF_NODE, REF_SEG } kind;
  uint32_t i;
} eg_ref;
typedef struct eg_tnode { /* right-side node, kids before parents */
  const tarn_eg_pat *pat; /* copied: op, payload, callbacks */
  uint32_t ref, n_ref;
  bool segs;
} eg_tnode;
typedef struct eg_part { /* class of var = right side */
  uint32_t var;          /* NONE: the first root */
  eg_ref result;         /* REF_VAR or REF_NODE */
  uint32_t atom;         /* the left root bound to var, or NONE */
} eg_part;

typedef struct eg_rule {
  const char *name;
  uint32_t id;
  bool bare; /* the left side is one variable: matches are classes */
  uint32_t n_atoms, n_words;
  eg_atom *atom;
  eg_elem *elem;
  bool joined;      /* several roots: join.c takes the atoms in an order it chooses */
  uint32_t n_plans; /* joined: one per atom, of that atom alone; else one of them all */
  const eg_instr **plan;
  uint32_t *plan_len;
  int32_t group_by; /* the root's kid whose class a node with a given kid is looked for in; -1:
                       none, or joined */
  eg_place *place;  /* joined: of atom a from place_at[a] to place_at[a + 1] */
  uint32_t *place_at, n_met;
  uint32_t n_vars, n_payloads, n_ops, n_segs;
  eg_src *var;            /* where each variable is read off */
  uint32_t *payload, *op; /* atoms */
  eg_src *seg;            /* atom, element number */
  tarn_eg_condition *cond;
  uint32_t n_cond;
  eg_tnode *tnode;
  eg_ref *ref;
  eg_part *part;
  uint32_t n_tnode, n_part;
  uint32_t *root_var; /* per left root: the variable that its class is, or NONE */
  int (*apply)(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result);
  void *user;
  uint32_t match_limit, ban_length;
  bool subsume, again;
} eg_rule;

struct tarn_eg_rules {
  eg_mem mem;
  atomic_uint refs;
  struct eg_chunk *chunks;
  eg_rule *rule;
  uint32_t n;
  size_t rule_cap;
  eg_test *test;
  uint32_t n_tests;
  size_t test_cap;
  uint32_t max_words, max_vars, max_payloads, max_ops, max_segs, max_tnodes, max_met;
};

/* Keeps the set alive as long as the graph (its log refers to it); the number of the set in the
 * graph, or NONE. */
uint32_t eg_keep_rules(tarn_egraph *g, const tarn_eg_rules *rs);

/* Searches begin from here: the number of its plan, or NONE. */
static inline uint32_t eg_plan_of(const eg_rule *r, uint32_t atom) {
  return r->joined ? atom : r->atom[atom].parent == NONE ? 0 : NONE;
}

/* Reading a match tuple. */
static inline uint32_t eg_elem_pos(const eg_rule *r, uint32_t atom, const eg_elem *e,
                                   const uint32_t *tuple, uint32_t arity) {
  const eg_atom *a = &r->atom[atom];
  if (!e->segs_before) return e->fixed_before;
  if (a->n_segs == 1) return e->fixed_before + (arity - a->n_fixed);
  uint32_t p = e->fixed_before, sum = 0;
  for (uint32_t s = 0; s < e->segs_before; s++)
    p += s + 1 < a->n_segs ? tuple[a->choice + s] : 0,
        sum += s + 1 < a->n_segs ? tuple[a->choice + s] : 0;
  if (e->segs_before == a->n_segs) p += arity - a->n_fixed - sum;
  return p;
}
static inline uint32_t eg_seg_len(const eg_rule *r, uint32_t atom, const eg_elem *e,
                                  const uint32_t *tuple, uint32_t arity) {
  const eg_atom *a = &r->atom[atom];
  uint32_t rest = arity - a->n_fixed;
  if (a->n_segs == 1) return rest;
  if (e->segs_before + 1 < a->n_segs) return tuple[a->choice + e->segs_before];
  for (uint32_t s = 0; s + 1 < a->n_segs; s++) rest -= tuple[a->choice + s];
  return rest;
}
static inline uint32_t eg_slot_pos(const eg_rule *r, eg_src s, const uint32_t *tuple,
                                   uint32_t arity) {
  if (s.slot >= SLOT_ELEM)
    return eg_elem_pos(r, s.atom, &r->elem[r->atom[s.atom].elem + (uint32_t)(s.slot - SLOT_ELEM)],
                       tuple, arity);
  return s.slot >= 0 ? (uint32_t)s.slot : arity - 1 - (uint32_t)(SLOT_END - s.slot);
}
/* The class at a source, as stored: canonical when the graph is rebuilt. */
static inline uint32_t eg_src_class(const tarn_egraph *g, const eg_rule *r, eg_src s,
                                    const uint32_t *tuple) {
  uint32_t id = tuple[s.atom];
  if (s.slot == SLOT_SELF) return eg_find(g, id);
  const eg_rec *rec = &g->rec[id];
  uint32_t n = g->heads[rec->head & HEAD_BITS].n;
  const uint32_t *k = n <= 2 ? rec->k : g->wkid + rec->k[0];
  return k[s.slot >= 0 && s.slot < SLOT_ELEM ? (uint32_t)s.slot : eg_slot_pos(r, s, tuple, n)];
}

#endif
