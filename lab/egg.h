/* Programs in egglog's language: what the files egg_*.c share.
 *
 * A program is read and carried out command by command. Its tables lie in one e-graph of the
 * engine: a constructor's row is an e-node, whose class is the value; a row of a relation is an
 * e-node of its arguments, and one of a function an e-node of its arguments and its value. A value
 * of a primitive sort is a leaf, whose payload is 1 + its number among E->value. A function's rows
 * are found again by their arguments through a table of our own (egg_table.c), which merges rows
 * that come to have the same arguments.
 *
 * Source: Zhang et al., Better Together: Unifying Datalog and Equality Saturation (PLDI 2023). */
#ifndef TARN_LAB_EGG_H
#define TARN_LAB_EGG_H
#include "lab/big.h"
#include "lab/lab.h"

/* ---- sorts and values ---- */
typedef enum {
  EGG_EQ, /* of terms */
  EGG_I64,
  EGG_F64,
  EGG_BOOL,
  EGG_STRING,
  EGG_UNIT,
  EGG_BIGINT,
  EGG_BIGRAT,
  EGG_SET,
  EGG_VEC,
  EGG_MULTISET,
  EGG_MAP
} egg_base;
typedef struct egg_sort {
  const char *name;
  egg_base base;
  uint32_t elem, to; /* of containers: sorts; to: of a map's values */
} egg_sort;
/* Sorts that every program has, in this order. */
enum { SORT_I64, SORT_F64, SORT_BOOL, SORT_STRING, SORT_UNIT, SORT_BIGINT, SORT_BIGRAT };

typedef struct egg_value {
  uint32_t sort;
  int64_t i; /* I64, BOOL */
  double f;
  const char *s; /* STRING, of n bytes */
  bigrat q;      /* BIGRAT; BIGINT: its numerator */
  /* Containers: n numbers of values. SET: ascending; MULTISET too, each as often as it is in it;
   * MAP: a key and its value by turns, keys ascending. */
  const uint32_t *elem;
  uint32_t n;
} egg_value;

/* ---- declarations ---- */
struct egg_expr;
typedef enum { EGG_CONSTRUCTOR, EGG_RELATION, EGG_FUNCTION } egg_kind;
typedef struct egg_row {
  uint32_t node; /* TARN_NONE: taken out */
} egg_row;
typedef struct egg_table { /* of a function: rows by their arguments, open addressing */
  TARN_VEC(egg_row) row;
  uint32_t *slot; /* 1 + row; 0: free */
  uint32_t n_slots, live;
} egg_table;
typedef struct egg_decl {
  const char *name;
  egg_kind kind;
  bool global; /* (let NAME …): a function without arguments */
  bool hidden; /* :unextractable */
  bool moves;  /* a row may change when terms are united: a sort in it is one of terms */
  uint32_t op, n, out;
  uint32_t *arg; /* sorts */
  double cost;
  struct egg_expr *merge; /* FUNCTION; NULL: two values that differ are an error */
  egg_table table;
} egg_decl;

/* ---- programs as trees ---- */
struct tarn_egg;
typedef const egg_value *const *egg_values;
typedef bool egg_fn(struct tarn_egg *E, egg_values a, uint32_t n, egg_value *out);
#define EGG_UNUSED __attribute__((unused))
#define EGG_PRIM(name)                                                                             \
  static bool name(EGG_UNUSED struct tarn_egg *E, EGG_UNUSED egg_values a, EGG_UNUSED uint32_t n,  \
                   EGG_UNUSED egg_value *out)
/* One letter a sort: i f b s u, z BigInt, q BigRat; c a container, e what is in it, k and v of a
 * map; a * repeats the last. */
typedef struct egg_prim {
  const char *name, *sig;
  egg_fn *fn; /* false: it has no value */
} egg_prim;

typedef enum { EX_LITERAL, EX_VAR, EX_CALL, EX_PRIM, EX_DIFFERS } egg_expr_kind;
typedef struct egg_expr {
  egg_expr_kind kind;
  uint32_t value, var;
  egg_decl *decl;
  const char *name; /* PRIM */
  const egg_prim *prim;
  uint32_t sort; /* TARN_NONE: not known yet */
  uint32_t n;
  struct egg_expr **kid;
  const tarn_sx *at;
} egg_expr;

typedef struct egg_vars {
  TARN_VEC(const char *) name;
  TARN_VEC(uint32_t) sort;
  TARN_VEC(const tarn_sx *) at; /* where it was met first */
  bool open;                    /* a name that is not known becomes one: in queries */
} egg_vars;

typedef enum { ACT_EXPR, ACT_LET, ACT_SET, ACT_UNION, ACT_DELETE, ACT_SUBSUME, ACT_PANIC } egg_act;
typedef struct egg_action {
  egg_act act;
  uint32_t var; /* LET */
  egg_expr *a, *b;
  const char *text; /* PANIC */
  const tarn_sx *at;
} egg_action;

/* A query flattened: atoms that the engine joins, then steps over what they bound. */
typedef struct egg_ref { /* a variable, or (var NONE) a value */
  uint32_t var, value;
} egg_ref;
typedef struct egg_atom {
  const egg_decl *decl;
  egg_ref *arg; /* decl->n */
  egg_ref out;  /* var and value NONE: none */
} egg_atom;
typedef struct egg_step {
  const egg_prim *prim; /* NULL: the two arguments must differ */
  egg_ref *arg;
  uint32_t n;
  egg_ref out; /* what it must be, where that is bound, else what is bound to it */
  bool binds;
  uint32_t sort; /* of the result */
  const tarn_sx *at;
} egg_step;
typedef struct egg_query {
  struct tarn_egg *E;
  egg_vars vars;
  TARN_VEC(egg_atom) atom;
  TARN_VEC(egg_step) step;
  TARN_VEC(egg_ref) same;    /* by variable: what it was found to be, itself at first */
  TARN_VEC(uint32_t) engine; /* by variable: the engine's number, or NONE */
  uint32_t n_engine;
  uint32_t *slot; /* scratch of a match */
} egg_query;
typedef struct egg_rule {
  egg_query q;
  const char *name, *ruleset;
  TARN_VEC(egg_action) action;
  uint32_t number; /* in E->rules */
  const tarn_sx *at;
} egg_rule;

typedef struct egg_ruleset {
  const char *name;
  TARN_VEC(const char *) part; /* names of others: (unstable-combined-ruleset …) */
} egg_ruleset;

/* What (push) remembers. */
typedef struct egg_saved {
  tarn_egraph *g;
  tarn_eg_runner *runner;
  uint32_t n_sorts, n_decls, n_rules, n_rulesets;
  egg_table *table; /* by declaration */
} egg_saved;

enum { OP_UNIT, OP_PRIM, OP_DECL }; /* the engine's operators: OP_DECL + number of a declaration */

struct tarn_egg {
  tarn_ctx *cx;
  tarn_egg_options o;
  tarn_egraph *g;
  tarn_eg_rules *rules;
  tarn_eg_runner *runner;
  TARN_VEC(egg_sort) sort;
  TARN_VEC(egg_decl *) decl;
  tarn_intern *names;         /* of declarations */
  TARN_VEC(uint32_t) decl_of; /* by name: the last one's number */
  TARN_VEC(egg_rule *) rule;
  TARN_VEC(egg_ruleset) ruleset;
  TARN_VEC(egg_value) value; /* by number */
  tarn_intern *known;        /* values by their bytes -> number */
  tarn_buf key;              /* scratch of egg_number() */
  TARN_VEC(egg_saved) saved;
  TARN_VEC(uint32_t) root; /* what was extracted last */
  bool dirty;              /* something was united since the tables were looked at */
  tarn_status failed;      /* raised inside a call of the engine */
  const egg_query *until;  /* of the run at work */
  double start;
  bool updated; /* did a schedule change anything? */
};

/* ---- values (egg_value.c, egg_prim.c) ---- */
uint32_t egg_number(tarn_egg *E, const egg_value *v); /* equal values have one */
uint32_t egg_value_at(const tarn_egg *E, uint32_t cls);
bool egg_literal(tarn_egg *E, const tarn_sx *s, egg_value *out);
void egg_print_value(tarn_egg *E, tarn_buf *b, uint32_t value);
static inline bool egg_is_term(const tarn_egg *E, uint32_t sort) {
  return E->sort.p[sort].base == EGG_EQ;
}
static inline bool egg_is(const egg_value *v, egg_value *out) {
  *out = *v;
  return true;
}
static inline bool egg_int_is(int64_t i, egg_value *out) {
  *out = (egg_value){.sort = SORT_I64, .i = i};
  return true;
}
static inline bool egg_unit_if(bool b, egg_value *out) {
  *out = (egg_value){.sort = SORT_UNIT};
  return b;
}
/* The primitive of this name over these sorts (NONE: not known), and the sort of its result. wanted
 * NONE or what the result is to be. NULL: there is none, or not enough is known. */
const egg_prim *egg_primitive(const tarn_egg *E, const char *name, const uint32_t *sort, uint32_t n,
                              uint32_t wanted, uint32_t *result);
bool egg_is_primitive(const char *name);
enum { EGG_FEW = 8 };
/* Room for n numbers: few, or the arena's. */
static inline uint32_t *egg_room(tarn_egg *E, uint32_t *few, uint32_t n) {
  return n > EGG_FEW ? TARN_ARRAY(E->cx, uint32_t, n) : few;
}
/* Of numbers of values; out->sort is the result's. */
bool egg_apply_primitive(tarn_egg *E, const egg_prim *p, const uint32_t *arg, uint32_t n,
                         egg_value *out);

/* ---- reading (egg_read.c) ---- */
uint32_t egg_sort_named(const tarn_egg *E, const tarn_sx *s);  /* raises */
egg_decl *egg_decl_named(const tarn_egg *E, const char *name); /* NULL */
egg_decl *egg_declare(tarn_egg *E, const tarn_sx *at, egg_kind kind, const char *name, uint32_t n,
                      const uint32_t *arg, uint32_t out);
egg_expr *egg_read(tarn_egg *E, egg_vars *v, const tarn_sx *s);
/* Sorts of all that is in it, as far as they follow; wanted NONE or its sort. Did it learn any? */
bool egg_infer(tarn_egg *E, egg_vars *v, egg_expr *x, uint32_t wanted);
void egg_check_typed(tarn_egg *E, const egg_vars *v, const egg_expr *x); /* raises */
egg_expr *egg_read_typed(tarn_egg *E, egg_vars *v, const tarn_sx *s, uint32_t wanted);
void egg_read_actions(tarn_egg *E, egg_vars *v, const tarn_sx *list, uint32_t from, egg_rule *r);
uint32_t egg_var(tarn_egg *E, egg_vars *v, const char *name, const tarn_sx *at);

/* ---- queries and rules (egg_query.c, egg_rule.c) ---- */
void egg_query_read(tarn_egg *E, egg_query *q, const tarn_sx *facts);
/* Adds facts, then flattens. Raises. */
void egg_query_close(egg_query *q);
tarn_eg_root *egg_query_roots(const egg_query *q, uint32_t *n);
const tarn_eg_pat *egg_pattern_ref(const egg_query *q, egg_ref r);
egg_ref egg_ref_of(const egg_query *q, uint32_t var);
/* What a match binds, by variable: classes of terms, numbers of values. False: a step fails. */
bool egg_query_slots(const egg_query *q, const tarn_eg_match *m, uint32_t *slot);
bool egg_query_holds(tarn_egg *E, const egg_query *q); /* is there a match? */
void egg_rule_add(tarn_egg *E, egg_rule *r);
TARN_NORETURN void egg_rules_failed(tarn_egg *E, const tarn_eg_rules *rs, const tarn_sx *at);

/* ---- doing (egg_table.c, egg_eval.c) ---- */
/* The value of an expression: a class or the number of a value. Raises TARN_NO where there is
 * none. changes NULL: nothing may be added. */
uint32_t egg_eval(tarn_egg *E, const egg_expr *x, const uint32_t *slot, int *changes);
void egg_act_on(tarn_egg *E, const egg_action *a, uint32_t *slot, uint32_t rule, int *changes);
uint32_t egg_class(tarn_egg *E, uint32_t sort, uint32_t id); /* of what egg_eval() gives */
uint32_t egg_id(const tarn_egg *E, uint32_t sort, uint32_t cls);
/* The class of the value of a row, or NONE; the arguments are classes. */
uint32_t egg_look_up(tarn_egg *E, egg_decl *d, const uint32_t *arg);
void egg_set(tarn_egg *E, egg_decl *d, const uint32_t *arg, uint32_t out, int *changes);
void egg_remove_row(tarn_egg *E, egg_decl *d, const uint32_t *arg, int *changes);
void egg_settle(tarn_egg *E); /* congruence, and the tables */
egg_table egg_table_copy(tarn_ctx *cx, const egg_table *t);
TARN_NORETURN void egg_graph_failed(tarn_egg *E);

/* ---- commands (egg_declare.c, egg_run.c, egg_show.c) ---- */
void egg_declare_sort(tarn_egg *E, const tarn_sx *s);
void egg_declare_datatype(tarn_egg *E, const tarn_sx *s);
void egg_declare_datatypes(tarn_egg *E, const tarn_sx *s);
void egg_declare_constructor(tarn_egg *E, const tarn_sx *s);
void egg_declare_relation(tarn_egg *E, const tarn_sx *s);
void egg_declare_function(tarn_egg *E, const tarn_sx *s);
void egg_declare_rule(tarn_egg *E, const tarn_sx *s);
void egg_declare_rewrite(tarn_egg *E, const tarn_sx *s);
void egg_declare_ruleset(tarn_egg *E, const tarn_sx *s);
void egg_schedule(tarn_egg *E, const tarn_sx *s);
void egg_extract(tarn_egg *E, const tarn_sx *s);
void egg_print_size(tarn_egg *E, const tarn_sx *s);
void egg_print_function(tarn_egg *E, const tarn_sx *s);
void egg_command(tarn_egg *E, const tarn_sx *s);
#endif
