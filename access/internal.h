/* access: what its files share and nobody else includes.
 *
 * Interning.  Every kind of thing has one tarn_table: a key (64-bit words that determine the thing completely)
 * to a dense id, and id to the thing.  A thing is a separate arena block that never moves, so pointers returned
 * by the _get functions stay valid as long as the tarn_lang.  A thing is built fully before its key is added:
 * a raise in between (out of memory) leaves the tables consistent.
 *
 * Scratch.  Nothing may be interned between tarn_arena_mark() and tarn_release(): tables grow in the arena.
 */
#ifndef TARN_ACCESS_INTERNAL_H
#define TARN_ACCESS_INTERNAL_H
#include "access/access.h"

typedef struct tarn_table {
  tarn_intern *ids;            /* key words -> id */
  TARN_VEC(const void *) item; /* by id */
} tarn_table;

struct tarn_lang {
  tarn_ctx *cx;
  TARN_VEC(uint64_t) key; /* the key being built: tarn_key_begin … tarn_table_find/add; not re-entrant */
  tarn_table type;        /* tarn_type */
  tarn_table fx;          /* tarn_fx */
  tarn_table ix;          /* tarn_ix     (map.c) */
  tarn_table map;         /* tarn_imap   (map.c) */
  tarn_table reducer;     /* tarn_reducer */
  tarn_table fn;          /* tarn_func */
  tarn_table nest;        /* tarn_nest   (nest.c) */
  tarn_table payload;     /* tarn_payload */
  tarn_table term;        /* tarn_node */
  tarn_table name;        /* char: memory spaces */
  tarn_map *label;        /* name id of a constant's label -> its payload */
  struct tarn_fxwork *work; /* scratch of fx.c */
  tarn_map *normal;       /* term -> its normal form + 1 (normalise.c) */
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
uint32_t tarn_table_add(tarn_lang *L, tarn_table *t, const void *item); /* item: arena memory, complete */
static inline const void *tarn_table_get(const tarn_table *t, uint32_t id) { return t->item.p[id]; }
static inline uint32_t tarn_table_count(const tarn_table *t) { return t->item.n; }

/* ---- numbers (dtype.c) ---- */
double tarn_round_to(tarn_dtype t, double v);    /* a float type: rounded once to nearest even; NaN canonical */
int64_t tarn_wrap_to(tarn_dtype t, int64_t v);   /* an integer type: modulo 2^bits; bool: v != 0. u64 keeps its bits */
bool tarn_dtype_is_signed(tarn_dtype t);         /* i8 i16 i32 i64 */
unsigned tarn_dtype_bits(tarn_dtype t);          /* bool: 1 */
/* Float to integer: toward zero, saturating, NaN gives 0. Integer to float rounds once. Both ways of cast. */
tarn_value tarn_cast_value(tarn_dtype from, tarn_dtype to, tarn_value v, tarn_mode mode);
double tarn_canonical_nan(void);
bool tarn_mul64(int64_t a, int64_t b, int64_t *out); /* false on overflow; a, b >= 0 */
bool tarn_count_dims(uint32_t n, const int64_t *dim, int64_t *out); /* product; false on overflow (0 extents never hide one) */

/* ---- compiled scalar expressions (fx.c): the interpreter's inner loop ----
 * Steps in evaluation order, each once; slot i holds step i's value. */
typedef struct tarn_fxstep {
  uint8_t op;            /* tarn_fxop */
  uint8_t dtype;         /* of the operands (CAST: of its operand); of the value for HOLE and CONST */
  uint8_t out;           /* of the result */
  uint32_t hole;         /* HOLE */
  uint32_t kid[3];       /* slots */
  tarn_value value;      /* CONST */
} tarn_fxstep;
typedef struct tarn_fxcode {
  uint32_t n, nroot;
  const tarn_fxstep *step;
  const uint32_t *root;  /* slots */
} tarn_fxcode;
/* Several roots over the same holes (a reducer's step of a tuple state). In the arena. Raises TARN_BAD_INPUT when
 * an expression does not type. */
tarn_fxcode *tarn_fx_compile(const tarn_lang *L, const uint32_t *root, uint32_t nroot, const tarn_dtype *types,
                             uint32_t ntypes);
/* slot: c->n values of scratch; out: c->nroot values. */
void tarn_fx_run(const tarn_fxcode *c, const tarn_value *holes, tarn_mode mode, tarn_value *slot, tarn_value *out);
static inline tarn_dtype tarn_fxcode_type(const tarn_fxcode *c, uint32_t root) {
  return (tarn_dtype)c->step[c->root[root]].out;
}
/* A constant's value as the interpreter holds it. f: a CONST. */
tarn_value tarn_fx_value(const tarn_lang *L, uint32_t f);

/* ---- typing of functions (func.c) ----
 * Result dtype of a function over operands (nops, then nepi) of these dtypes; false and tarn_message when ill-typed.
 * In the tuple form nops is 1 and all members of the tuple have that operand's dtype. */
bool tarn_fn_type(tarn_lang *L, uint32_t fn, const tarn_dtype *dt, uint32_t ndt, tarn_dtype *out);
/* Dtypes of a reducer's state (r->ns of them) and of its result. False and tarn_message when ill-typed. */
bool tarn_reducer_type(tarn_lang *L, uint32_t red, tarn_dtype *state, tarn_dtype *result);

/* ---- names ---- */
uint32_t tarn_name_find(const tarn_lang *L, const char *s);      /* TARN_NONE when never interned (lang.c) */
uint32_t tarn_const_find(const tarn_lang *L, const char *label); /* CONST payload of that label, or TARN_NONE (payload.c) */

/* ---- types (type.c) ---- */
bool tarn_type_same_dims(const tarn_type *a, const tarn_type *b); /* all dims equal, the split may differ */

/* ---- nests (nest.c) ----
 * Type of nest over children of these types; TARN_NONE and tarn_message when ill-typed. typing.c calls it. */
uint32_t tarn_nest_type(tarn_lang *L, uint32_t nest, const uint32_t *kid_types, uint32_t n);

/* ---- text (text.c) ---- shared by parse.c and print.c */
void tarn_ix_print(const tarn_lang *L, tarn_buf *b, uint32_t ix);
uint32_t tarn_ix_parse(tarn_lang *L, const tarn_sx *s, const int64_t *extent, uint32_t n);
void tarn_imap_print(const tarn_lang *L, tarn_buf *b, uint32_t map);
uint32_t tarn_imap_parse(tarn_lang *L, const tarn_sx *s);
void tarn_nest_print(const tarn_lang *L, tarn_buf *b, uint32_t nest);
uint32_t tarn_nest_parse(tarn_lang *L, const tarn_sx *s);

#endif
