/* rules: what its files share.
 *
 * language.c and patterns.c read text into rules (trees of patterns and expressions); vocab.c holds
 * the functions that conditions and right sides may use; payload.c takes payloads apart into
 * attributes and back; subst.c matches and instantiates rules over a host (terms, or classes of an
 * e-graph), so that saturation and the rule checker say the same.
 *
 * TARN_API stands where lab/ calls, which is a library of its own; this header is not installed. */
#ifndef TARN_RULES_LANG_H
#define TARN_RULES_LANG_H
#include "kernel/edit.h"
#include "rules/rules.h"

/* ---------------------------------------------------------------- values of attributes */

/* One letter a kind, used in signatures: int, list of ints, scalar expression, function, map, nest,
 * shape, reducer, result type of a call, whole payload, class, segment, bool, name, expression over
 * loops, set of loops, loops of a kernel that is read. */
typedef struct rv {
  char kind;   /* i l x f m n s r t p c g b y e o w; 0: unbound */
  uint32_t id; /* x f m n s r t p: interned id; c g: variable number */
  int64_t i;   /* i b */
  uint32_t n;  /* l */
  const int64_t *p;
  const char *name; /* y */
} rv;

enum { R_ATTRS = 48, R_CLASSES = 24, R_SEGS = 8, R_POOL = 2048 };

struct rsite;
typedef struct rseg {
  const uint32_t *id;
  uint32_t n;
} rseg;

/* What kinds of kernels a class holds. Over terms: what the term is. */
enum {
  R_HAS_MAP = 1,
  R_HAS_RED = 2,
  R_HAS_VIEW = 4,
  R_SHARED = 8,    /* the program uses it more than once */
  R_EPILOGUE = 16, /* a map of another kernel's result, which that kernel can do */
  R_ALONE = 32,    /* what made it shared was replaced: one use is left */
  R_SEVERAL = 64   /* surface rules found several ways to compute it */
};
/* Rule id of a step that only compares normal forms of terms. */
#define R_RULE_NORM 0x7FFFFFFEu

/* Where terms live: a tarn_lang, or an e-graph. Ids are terms or classes. */
typedef struct rhost {
  kern_host nest; /* types, making and opening nodes */
  void *user;     /* of the functions below */
  bool graph;     /* ids are classes of an e-graph */
  bool (*is_const)(void *user, uint32_t id);
  uint32_t (*uniform)(void *user, uint32_t id); /* fx constant or TARN_NONE */
  tarn_range (*range)(void *user, uint32_t id);
  bool (*depends)(void *user, uint32_t on,
                  uint32_t id);               /* may a term of `id` contain one of `on`? */
  unsigned (*facts)(void *user, uint32_t id); /* R_HAS_… */
  /* The nodes with this op that have `id` as a kid, one after the other: at = 0, 1, …; false: no
   * more. */
  bool (*user_at)(void *user, uint32_t id, uint32_t op, uint32_t at, uint32_t *payload,
                  const uint32_t **kid, uint32_t *n);
} rhost;

typedef struct renv {
  tarn_lang *L;
  const rhost *host;
  const tarn_hw *hw;       /* demands; NULL: none */
  const struct rule *rule; /* set by tarn_r_env_reset */
  struct rsite *site;      /* of a rule whose right side is built; set by tarn_r_conditions */
  rv attr[R_ATTRS];
  uint32_t cls[R_CLASSES];
  rseg seg[R_SEGS];
  struct lmatch *loops;        /* of a rule over loops: the nest; loops.h */
  bool shape;                  /* conditions whose answers may change are taken to hold */
  uint32_t payload[R_CLASSES]; /* payload of the k-th left NODE, in preorder, root after root */
  uint32_t node[R_CLASSES];    /* its class or term */
  uint32_t used;               /* of pool */
  int64_t pool[R_POOL];
} renv;
int64_t *r_ints(renv *e, uint32_t n); /* scratch until the env is reset; NULL when used up */

/* ---------------------------------------------------------------- rules as trees */

typedef struct rx { /* an expression on attributes */
  enum { RX_LIT, RX_VAR, RX_CLASS, RX_SEG, RX_CALL, RX_FREE } kind;
  char type;
  rv lit;
  uint32_t var;
  const struct rfun *fun;
  uint32_t n;
  struct rx **kid;
  const struct fexpr *free; /* FREE: a condition of a free set */
  const tarn_sx *at;
} rx;

typedef struct rpat { /* a pattern; the same type for left and right sides */
  enum {
    RP_VAR,
    RP_SEG,
    RP_EACH,
    RP_FOR,
    RP_NODE,
    RP_BUILD,
    RP_VALUE,
    RP_FRESH,
    RP_ADD
  } kind;        /* the last three: free sets */
  uint32_t var;  /* VAR: class, SEG and EACH: segment; FOR: attribute; NODE on the left: number in
                    preorder */
  uint32_t item; /* EACH: class variable for one of them */
  uint32_t op;   /* NODE: tarn_op, or symbol of a free set; TARN_NONE: any operator bound to opvar
                    (free) */
  uint32_t opvar;
  uint32_t npay;
  rx **pay;                   /* typed NODE: what stands between operator and kids; FOR: how many */
  const struct rbuild *build; /* BUILD */
  rx *arg;                    /* BUILD: what it is given; NULL */
  const struct fexpr *value;  /* VALUE */
  const char *name;           /* FRESH: what the name begins with */
  bool deletes;               /* ADD: takes these terms' nodes out of the graph instead */
  bool sets; /* ADD: joins value into the one kid's value of the analysis `name` instead */
  uint32_t n;
  struct rpat **kid;
  const tarn_sx *at;
} rpat;

typedef struct rroot {
  uint32_t var;
  rpat *pat;
} rroot; /* var: class variable that the root is, or TARN_NONE */

typedef struct rule {
  const char *name, *family;
  tarn_rule_level level;
  tarn_rule_class numeric;
  double bound;
  const tarn_sx *at;
  bool both, back; /* back: this is NAME:back */
  uint32_t nlhs, nrhs;
  rroot *lhs, *rhs;
  uint32_t ncond;
  rx **cond;
  uint32_t nguard; /* :when, where the rule is wanted; it would hold elsewhere too */
  rx **guard;
  uint32_t nwhere; /* :where and :each (?v EXPR): attribute variable bound after matching, before
                      the conditions */
  uint32_t *where_var;
  bool *where_each; /* one element of a list of integers after the other */
  rx **where;
  uint32_t nattr, ncls, nseg, nnode, nopvar;
  const char *attr_name[R_ATTRS], *cls_name[R_CLASSES], *seg_name[R_SEGS], *opvar_name[R_SEGS];
  char attr_type[R_ATTRS];
  const char *doc;
  const tarn_hw
      *hw; /* NULL, or the description that it was derived from, which says what its calls mean */
  const char *demand;  /* NULL, or the predicate on the description that must hold for it to fire */
  struct loops *loops; /* NULL, or a rule over loops (loops.h) */
  uint32_t nwritten;
  tarn_written **written; /* kernels written by hand that its right side calls */
  bool open; /* its right side may leave the type's range where the left one does not */
  bool dropped;
  bool asked; /* of tarn_ruleset_add() */
  bool shipped;
  bool grows;    /* free: it may make its left side again without end */
  bool subsumes; /* the right side is as good for every use: it subsumes the root's node */
  /* Of a rule with an inner kernel (loops.h). */
  rx *subsumes_if;    /* NULL, or it is where this holds */
  rx *along, *others; /* NULL, or: where the one holds, other kernels of which the other holds go
                         the same way in one step */
  bool first;         /* the first child of the nest for which conditions and guards hold */
  bool wide;          /* the right side may read more tensors than a kernel can */
} rule;

typedef struct rphase {
  const char *name;
  uint32_t nfamily;
  const char **family;
  uint32_t iterations; /* 0: to saturation */
  uint32_t forms;      /* 0, or what a class may hold for its rules to add to it */
  const tarn_sx *at;   /* the names */
  bool shipped; /* of the kernel level: what families of the user's are called is no matter */
} rphase;

/* Does the phase name the rule or its family? */
bool r_in_phase(const rphase *p, const rule *r);
/* Is it in no phase of the set, of which some are for its level? Then it runs before them. */
bool r_unphased(const tarn_ruleset *rs, const rule *r);
/* The user's own phases name what there is; a warning of rules that they leave out. Raises. */
TARN_API void tarn_r_check_phases(const tarn_ruleset *rs);

/* ---------------------------------------------------------------- builders (kernel-level right
 * sides) */

/* What a builder is given: a nest over kids, of which some are opened (nests over leaves
 * themselves). */
typedef struct rkid {
  uint32_t id;
  uint32_t op, payload, n; /* payload TARN_NONE: not opened */
  const uint32_t *leaf;
} rkid;
typedef struct rsite {
  renv *e;
  uint32_t payload, n; /* of the root, a NEST */
  rkid *kid;
  uint32_t slot;   /* the kid that the pattern opened; TARN_NONE */
  rv arg;          /* of (build NAME ARG) */
  uint32_t root;   /* id of the root's class or term */
  uint32_t nextra; /* further terms that the right side uses: chosen by the builder in a graph,
                      given in a proof */
  uint32_t extra[16];
  uint32_t also[2];     /* TARN_NONE, or a second equation of the same rule: also[0] = also[1] */
  bool replaced, worse; /* set by the builder: the root's node is to stand so from now on */
  bool elsewhere;   /* what replaces it reads other tensors, so that uses are to be counted again */
  uint32_t nmore;   /* further equations: more[2k] = more[2k+1] */
  uint32_t more[8]; /* true by comparing normal forms */
} rsite;
typedef struct rbuild {
  const char *name;            /* NAME, or NAME:k with an argument of kind k */
  bool (*when)(rsite *s);      /* NULL, or: is it wanted now? Tried again when facts change */
  uint32_t (*build)(rsite *s); /* an id of the host, or TARN_NONE: it does not apply, ever */
  uint64_t reads;              /* what when() may see change */
  bool replaces; /* the right side is at least as good for every use: it subsumes the root's node */
  const char *doc;
} rbuild;

/* What a rule set's terms are made of, where they are not access patterns: what its files may
 * declare beside rules, and what reading a rule asks. NULL in a set over access patterns. */
struct fexpr;
typedef struct rtheory {
  const char *forms;                                /* that a file may hold, for messages */
  bool (*form)(tarn_ruleset *rs, const tarn_sx *s); /* reads one; false: it is none of them */
  uint32_t (*symbol)(tarn_ruleset *rs, const char *name, size_t n); /* an operator's number */
  struct fexpr *(*condition)(tarn_ruleset *rs, rule *r,
                             const tarn_sx *s); /* NULL: it cannot be computed */
  struct fexpr *(*computed)(tarn_ruleset *rs, rule *r,
                            const tarn_sx *s); /* a value on a right side */
  void (*size)(const tarn_ruleset *rs, tarn_ruleset_mark *m);
  void (*shrink)(tarn_ruleset *rs, const tarn_ruleset_mark *to);
  uint32_t (*check)(tarn_ruleset *rs, const tarn_rules_check_options *o,
                    const tarn_rule_result **out);
} rtheory;
typedef const rbuild *rbuild_fn(const char *name); /* NULL: there is none */
/* An empty set. */
TARN_API tarn_ruleset *tarn_r_ruleset(tarn_lang *L, const rtheory *theory, rbuild_fn *builder);

struct tarn_ruleset {
  tarn_lang *L;
  tarn_ctx *cx;
  const rtheory *theory;
  rbuild_fn *builder; /* what (build NAME) names */
  TARN_VEC(rule *) rule;
  TARN_VEC(rphase) phase;
  void *declared;          /* the theory's: what the files declare */
  const tarn_hw *deriving; /* while rules are derived from it */
};

/* Adds what forms of a file say: (family …), (rule …), (phases …). */
void r_read_all(tarn_ruleset *rs, const tarn_sx *all, const char *file);

/* ---------------------------------------------------------------- vocabulary */

typedef bool rfun_fn(renv *e, const rv *a,
                     rv *out); /* false: it has no value, so the rule does not apply */
typedef struct rfun {
  const char *name, *sig; /* "ci:i": kinds of the arguments, then of the result */
  rfun_fn *fn;
  uint64_t reads; /* what it may see change: bits of the analyses below */
  const char *doc;
} rfun;
/* The function of this name that takes arguments of these kinds; NULL. */
const rfun *rfun_find(const char *name, const char *kinds, bool *known);
bool rx_eval(renv *e, const rx *x, rv *out);
bool rv_equal(const rv *a, const rv *b);
uint64_t rx_reads(const rx *x); /* what it may see change */

/* Analyses of a saturation, in this order. */
enum { RA_TYPE, RA_FACTS, RA_COUNT };
#define R_READS_FACTS (UINT64_C(1) << RA_FACTS)

/* ---------------------------------------------------------------- payloads (payload.c) */

/* Kinds of what stands between the operator and its kids, e.g. "iii" for slice; least: how many
 * must be there. */
const char *r_payload_spec(uint32_t op, uint32_t *least);
/* Takes payload apart: out[0…] by the spec, all optional ones filled in. Number of values. */
uint32_t r_payload_split(renv *e, uint32_t op, uint32_t payload, rv *out);
/* The payload of these values; n may be less than the spec's length. TARN_NONE: they make none. */
uint32_t r_payload_join(renv *e, uint32_t op, const rv *v, uint32_t n);

/* ---------------------------------------------------------------- matching and building (subst.c)
 */

TARN_API void tarn_r_env_reset(renv *e, const rule *r);
/* Binds the attributes of the k-th left node from its payload; false: does not match. */
bool r_bind_payload(renv *e, const rpat *p, uint32_t payload);
/* After all nodes are bound, for each way to choose what :each leaves open: where-clauses bound, fn
 * called, which returns false to stop. Was it stopped? A rule without :each has one way. */
typedef bool r_choice_fn(void *arg, renv *e);
TARN_API bool tarn_r_choices(renv *e, const rule *r, r_choice_fn *fn, void *arg);
bool r_has_choices(const rule *r);
/* Of a rule over loops whose left side is bound: is this :each evaluated only then? Calls fn for
 * each choice of those, once where there is none; false: fn said so. */
bool r_late(const rule *r, uint32_t where);
bool r_late_choices(renv *e, const rule *r, uint32_t from, r_choice_fn *fn, void *arg);
/* After all nodes are bound (and what :each leaves open chosen): deferred payload expressions,
 * where, conditions, guards. skip: a condition left out, or TARN_NONE. */
TARN_API bool tarn_r_conditions(renv *e, const rule *r, uint32_t skip);
bool r_guards(renv *e, const rule *r);
/* A left side alone, which a term may be. language.c */
TARN_API rule *tarn_r_left_pattern(tarn_ruleset *rs, const tarn_sx *s);
/* A pattern of bound variables. language.c */
TARN_API rpat *tarn_r_right_pattern(tarn_ruleset *rs, rule *r, const tarn_sx *s);
/* The rule over another language. language.c */
rule *r_read_again(tarn_ruleset *rs, const rule *r);
/* Builds a right side (or a left one, all payload variables bound). TARN_NONE: the rule does not
 * apply after all. */
TARN_API uint32_t tarn_r_instantiate(renv *e, const rule *r, const rpat *p);
/* Kids of a pattern node, segments spliced in, at most. */
enum { R_KIDS = KERN_KIDS };

/* Matches a rule's left root over terms; calls fn for each way; fn returns false to stop. */
typedef bool r_match_fn(void *arg, renv *e);
TARN_API bool tarn_r_match_term(renv *e, const rule *r, uint32_t root, tarn_term t, r_match_fn *fn,
                                void *arg);
/* The host of plain terms. terms.c */
TARN_API rhost tarn_r_term_host(tarn_lang *L);
/* What it takes to know the value of a term of constants, and with it its range and whether it is
 * uniform: what saturation computes at once; any value; that and what a proof states of constants
 * whose values are not known. */
typedef enum { R_AT_ONCE, R_COMPUTED, R_STATED } r_effort;
void r_term_effort(rhost *host, r_effort effort); /* R_AT_ONCE until then */
/* What is stated: input that stands for a constant -> its two bounds (const double *). */
void r_term_bounds(rhost *host, tarn_map *bounds);
/* Of which of them the bounds were used since r_term_effort(R_STATED). */
const tarn_map *r_term_asked(const rhost *host);
enum {
  R_SMALL = 4096, /* bytes: constants up to this are computed at once, and written in proofs */
  R_FOLD_KIDS = 16
};
/* An operator over constants, given by their payloads; NULL: it is not computed at once. Raises
 * what evaluating it raises. */
const tarn_tensor *r_fold(tarn_lang *L, uint32_t op, uint32_t payload, uint32_t type,
                          const uint32_t *value, uint32_t n);
/* R_HAS_MAP, R_HAS_RED, or 0 for several outputs. */
unsigned r_nest_kinds(const tarn_lang *L, uint32_t nest);
/* Of an operator that only moves elements: the one value that all of them have, as rhost.uniform
 * says it of the kids; else TARN_NONE. */
uint32_t r_uniform_moved(const tarn_lang *L, uint32_t op, uint32_t payload, const uint32_t *kid,
                         uint32_t n, uint32_t (*uniform)(void *user, uint32_t id), void *user);

/* A constant that does not stay in the description's L2 from run to run, is made of less than half
 * its bytes, as weights of few bits are, and is read hardly more than once: memory then takes
 * longer than making it where it is read. */
bool r_is_stored(const renv *e, double bytes, double made_of, double reads);

/* ---------------------------------------------------------------- the sites of builders */
/* The site of a match; false: the left side is no nest over terms and nests. */
bool r_site(renv *e, const rule *r, rsite *s, rkid *kids, uint32_t *leaves);
/* The left side as the site now has it, opened kids and all. */
uint32_t r_site_left(rsite *s);
/* The left side of any rule, payloads as bound. */
uint32_t r_left(renv *e, const rule *r, const rpat *p);

#endif
