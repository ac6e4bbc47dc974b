/* access: what its files share and nobody else includes.
 *
 * Interning.  Every kind of thing has one tarn_table: a key (64-bit words that determine the thing
 * completely) to a dense id, and id to the thing.  A thing is a separate arena block that never
 * moves, so pointers returned by the _get functions stay valid as long as the tarn_lang.  A thing
 * is built fully before its key is added: a raise in between (out of memory) leaves the tables
 * consistent.
 *
 * Scopes.  Within one (scope.c) the language holds all that it held before, under the same ids, and
 * what is added lies in the scope's context: nests, terms, payloads, index maps. What is new of the
 * rest stays, and lies in its table's context.
 *
 * Scratch.  Nothing may be interned between tarn_arena_mark() and tarn_release(): tables grow in
 * the arena.
 */
#ifndef TARN_ACCESS_INTERNAL_H
#define TARN_ACCESS_INTERNAL_H
#include "access/access.h"

typedef struct tarn_table {
  tarn_ctx *cx;                /* where its things lie */
  tarn_intern *ids;            /* key words -> id */
  TARN_VEC(const void *) item; /* by id */
} tarn_table;

/* What a scope has of its own is listed in scope.c: names, types and scalar functions it has not.
 */
struct tarn_lang {
  tarn_ctx *cx;
  TARN_VEC(uint64_t)
  key;             /* the key being built: tarn_key_begin … tarn_table_find/add; not re-entrant */
  tarn_table type; /* tarn_type */
  tarn_table fx;   /* tarn_fx */
  tarn_table ix;   /* tarn_ix     (map.c) */
  tarn_table map;  /* tarn_imap   (map.c) */
  tarn_table reducer; /* tarn_reducer */
  tarn_table fn;      /* tarn_func */
  tarn_table nest;    /* tarn_nest   (nest.c) */
  tarn_table payload; /* tarn_payload */
  tarn_table term;    /* tarn_node */
  tarn_table name;    /* char: memory spaces */
  tarn_map *label;    /* name id of a constant's label -> its payload */
  struct tarn_constants
      *constants;           /* while a program is read: where its constants lie (program.c) */
  struct tarn_fxwork *work; /* scratch of fx.c */
  struct tarn_termwork {    /* scratch of tarn_term_reachable */
    uint32_t epoch;
    TARN_VEC(uint32_t) mark; /* by term: the epoch that last saw it */
    TARN_VEC(uint32_t) order;
  } * walk;
  TARN_VEC(const tarn_call_def *) call; /* meanings of calls (call.c) */
  TARN_VEC(tarn_written *) written;     /* kernels written by hand (written.c) */
  tarn_map *normal;                     /* term -> its normal form + 1 (normalise.c) */
  uint64_t scopes, scope;               /* how many there were; which one this is, 0: none */
  tarn_map *inverted;                   /* map << 32 | ns -> its inverse, or TARN_NONE (mapinv.c) */
  tarn_map *identity;                   /* type -> identity map (map.c) */
  tarn_map *composed; /* outer << 32 | inner -> composed map, or TARN_NONE (map.c) */
};

/* ---- tables (lang.c); all raise TARN_MEMORY ----
 * Usage:  tarn_key_begin(L); tarn_key(L, a); tarn_key(L, b);
 *         id = tarn_table_find(L, &L->ix); if (id != TARN_NONE) return id;
 *         copy the thing to the arena;  return tarn_table_add(L, &L->ix, thing);
 * Between begin and add nothing else may be interned (the key is in L->key). */
void tarn_key_begin(tarn_lang *L);
void tarn_key(tarn_lang *L, uint64_t word);
void tarn_key_bytes(tarn_lang *L, const void *p, size_t n); /* length first, padded to words */
uint32_t tarn_table_find(const tarn_lang *L, const tarn_table *t);
uint32_t tarn_table_add(tarn_lang *L, tarn_table *t,
                        const void *item); /* item: arena memory, complete */
static inline const void *tarn_table_get(const tarn_table *t, uint32_t id) { return t->item.p[id]; }
static inline uint32_t tarn_table_count(const tarn_table *t) { return t->item.n; }

/* As the thing is, without bringing it into normal form: it is in that, of another scope. */
uint32_t tarn_ix_add_as_is(tarn_lang *L, const tarn_ix *x);    /* ix.c */
uint32_t tarn_map_add_as_is(tarn_lang *L, const tarn_imap *m); /* map.c */

/* ---- numbers (dtype.c) ---- */
double tarn_round_to(tarn_dtype t,
                     double v);   /* a float type: rounded once to nearest even; NaN canonical */
double tarn_round_tf32(double v); /* to nearest, ties away from zero; infinite beyond 2^128 */
double tarn_round_toward(tarn_dtype t, double v,
                         bool up); /* up or down; infinite only where nearest is */
double tarn_dtype_ulp(tarn_dtype t,
                      double v); /* from |v|, rounded to the float type, to the next number above */
int64_t
tarn_wrap_to(tarn_dtype t,
             int64_t v); /* an integer type: modulo 2^bits; bool: v != 0. u64 keeps its bits */
unsigned tarn_dtype_bits(tarn_dtype t); /* bool: 1 */
/* Float to integer: toward zero, saturating, NaN gives 0. Integer to float rounds once. Both ways
 * of cast. */
tarn_value tarn_cast_value(tarn_dtype from, tarn_dtype to, tarn_value v, tarn_mode mode);
double tarn_canonical_nan(void);
static inline bool tarn_same_number(double a, double b) {
  return a == b || (a != a && b != b);
} /* or both are NaN */
uint64_t tarn_nan_bits(tarn_dtype t); /* the canonical NaN of a float type, as stored */
bool tarn_mul64(int64_t a, int64_t b, int64_t *out); /* false on overflow; a, b >= 0 */
bool tarn_count_dims(uint32_t n, const int64_t *dim,
                     int64_t *out); /* product; false on overflow (0 extents never hide one) */

/* ---- compiled scalar expressions (fx.c): the interpreter's inner loop ----
 * Steps in evaluation order, each once; slot i holds step i's value. */
typedef struct tarn_fxstep {
  uint8_t op;       /* tarn_fxop */
  uint8_t dtype;    /* of the operands (CAST: of its operand); of the value for HOLE and CONST */
  uint8_t out;      /* of the result */
  uint32_t hole;    /* HOLE */
  uint32_t kid[3];  /* slots */
  tarn_value value; /* CONST */
} tarn_fxstep;
typedef struct tarn_fxcode {
  uint32_t n, nroot;
  const tarn_fxstep *step;
  const uint32_t *root; /* slots */
} tarn_fxcode;
/* Several roots over the same holes (a reducer's step of a tuple state). In the arena. Raises
 * TARN_BAD_INPUT when an expression does not type. */
tarn_fxcode *tarn_fx_compile(const tarn_lang *L, const uint32_t *root, uint32_t nroot,
                             const tarn_dtype *types, uint32_t ntypes);
/* slot: c->n values of scratch; out: c->nroot values. */
void tarn_fx_run(const tarn_fxcode *c, const tarn_value *holes, tarn_mode mode, tarn_value *slot,
                 tarn_value *out);
static inline tarn_dtype tarn_fxcode_type(const tarn_fxcode *c, uint32_t root) {
  return (tarn_dtype)c->step[c->root[root]].out;
}
/* A constant's value as the interpreter holds it. f: a CONST. */
tarn_value tarn_fx_value(const tarn_lang *L, uint32_t f);

/* ---- typing of functions (func.c) ----
 * Result dtype of a function over operands (nops, then nepi) of these dtypes; false and
 * tarn_message when ill-typed. In the tuple form nops is 1 and all members of the tuple have that
 * operand's dtype. */
bool tarn_fn_type(tarn_lang *L, uint32_t fn, const tarn_dtype *dt, uint32_t ndt, tarn_dtype *out);
/* Dtypes of a reducer's state (r->ns of them) and of its result. False and tarn_message when
 * ill-typed. */
bool tarn_reducer_type(tarn_lang *L, uint32_t red, tarn_dtype *state, tarn_dtype *result);

/* ---- names ---- */
uint32_t tarn_name_find(const tarn_lang *L,
                        const char *s); /* TARN_NONE when never interned (lang.c) */
uint32_t
tarn_const_find(const tarn_lang *L,
                const char *label); /* CONST payload of that label, or TARN_NONE (payload.c) */

/* ---- types (type.c) ---- */
bool tarn_type_same_dims(const tarn_type *a,
                         const tarn_type *b); /* all dims equal, the split may differ */

/* ---- nests (nest.c) ----
 * Type of nest over children of these types; TARN_NONE and tarn_message when ill-typed. typing.c
 * calls it. */
uint32_t tarn_nest_type(tarn_lang *L, uint32_t nest, const uint32_t *kid_types, uint32_t n);

/* ---- calls (call.c) ----
 * Is the payload's type right for these operands? False and tarn_message when not; true when NAME
 * is not defined. */
bool tarn_call_types(tarn_lang *L, const tarn_payload *p, const uint32_t *kid_types, uint32_t n);

/* ---- terms (term.c) ----
 * What the roots use, themselves included, ascending (kids before parents); valid until the next
 * call. */
uint32_t tarn_term_reachable(const tarn_lang *L, const tarn_term *root, uint32_t nroot,
                             const tarn_term **terms);

/* ---- text ----
 * Printing writes one form without spaces around it; payloads put a space before each of their
 * parts. */
void tarn_name_print(tarn_buf *b,
                     const char *name); /* an atom, or a string where needed (text.c) */
const char *tarn_name_parse(tarn_lang *L,
                            const tarn_sx *s); /* atom, number as written, or string */
void tarn_number_print(tarn_buf *b, tarn_dtype t,
                       tarn_value v); /* shortest text that reads back to v */
tarn_value tarn_number_parse(tarn_lang *L, const tarn_sx *s, tarn_dtype t); /* also true, false */
int64_t tarn_int_parse(tarn_lang *L, const tarn_sx *s);
tarn_dtype tarn_dtype_read(tarn_lang *L, const tarn_sx *s);
const tarn_sx *tarn_sx_at(tarn_lang *L, const tarn_sx *s, uint32_t i,
                          const char *what); /* element i, or an error naming it */
uint32_t tarn_ints_parse(tarn_lang *L, const tarn_sx *list, uint32_t max,
                         int64_t *out);                          /* (1 2 3) */
void tarn_ints_print(tarn_buf *b, uint32_t n, const int64_t *v); /* (1 2 3) */
void tarn_shape_print(tarn_buf *b, const tarn_type *t);          /* ((2 3) (4)) */
#define TARN_INLINE_MAX 64 /* constants of at most so many elements are printed inline */
extern const char *const tarn_red_names[TARN_RED_CUSTOM], *const tarn_reduce_names[TARN_RED_CUSTOM];
void tarn_fn_print(const tarn_lang *L, tarn_buf *b,
                   uint32_t fn); /* print.c, and what it prints: parse.c */
uint32_t tarn_fn_parse(tarn_lang *L, const tarn_sx *s);
void tarn_ix_print(const tarn_lang *L, tarn_buf *b, uint32_t ix); /* index.c */
void tarn_imap_print(const tarn_lang *L, tarn_buf *b, uint32_t map);
void tarn_nest_print(const tarn_lang *L, tarn_buf *b, uint32_t nest);
uint32_t tarn_nest_parse(tarn_lang *L, const tarn_sx *s);

/* ---- naming shared parts of a DAG when printing (lets.c) ---- */
typedef uint32_t tarn_kids_fn(const tarn_lang *L, uint32_t id, const uint32_t **kid);
typedef struct tarn_lets {
  uint32_t n, nbound;
  const uint32_t *id; /* ascending, kids before parents */
  uint32_t *label;    /* per id: the number of its let, or TARN_NONE */
} tarn_lets;
/* Binds what is used twice (being a root is a use) and is no leaf, and every 64th of a chain (so
 * that nothing nests deeply). id is copied. */
tarn_lets tarn_lets_choose(const tarn_lang *L, uint32_t n, const uint32_t *id, tarn_kids_fn *kids,
                           const uint32_t *root, uint32_t nroot);
uint32_t tarn_lets_label(const tarn_lets *l, uint32_t id);
uint32_t tarn_term_kids(const tarn_lang *L, uint32_t id, const uint32_t **kid); /* print.c */
void tarn_term_node_print(const tarn_lang *L, tarn_buf *b, const tarn_lets *l, tarn_term t);
void tarn_term_ref_print(const tarn_lang *L, tarn_buf *b, const tarn_lets *l,
                         tarn_term t); /* %k where bound */

/* Does each index of a map that is not interned stay in range, as far as it is shown? */
bool tarn_imap_inside(tarn_lang *L, const tarn_imap *map);
#endif
