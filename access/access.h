/* tarn access: the term language.
 *
 * An access pattern is a tensor whose dims are split in two: ((S),(C)), iterated over S, computed
 * on over C. Terms are pure, without binders, hash-consed in a tarn_lang.  Source: Smith et al.,
 * "Pure tensor program rewriting via access patterns" (Glenside), MAPS 2021; extended by
 * shared-dimension cartProd, fold, nest, view.
 *
 * Everything interned here (types, maps, expressions, functions, nests, payloads, terms) is
 * immutable, lives as long as the tarn_lang, and equal things have equal ids; ids are dense and
 * deterministic.  An e-graph node of tarn carries the same (op, payload) numbers as a term.
 */
#ifndef TARN_ACCESS_H
#define TARN_ACCESS_H
#include "base/base.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TARN_MAX_DIMS 16 /* dims of an access pattern, S and C together */

/* ---------------------------------------------------------------- types */
typedef enum tarn_dtype { /* X-macro in access/dtype.c gives name, bytes, kind */
                          TARN_F32,
                          TARN_F64,
                          TARN_F16,
                          TARN_BF16,
                          TARN_I8,
                          TARN_U8,
                          TARN_I16,
                          TARN_U16,
                          TARN_I32,
                          TARN_U32,
                          TARN_I64,
                          TARN_U64,
                          TARN_BOOL,
                          TARN_DTYPES
} tarn_dtype;
TARN_API const char *tarn_dtype_name(tarn_dtype t); /* f32 f64 f16 bf16 i8 u8 … bool */
TARN_API char *tarn_dims_text(tarn_ctx *cx, tarn_dtype t, uint32_t n,
                              const int64_t *dim); /* f32[2,3], for messages */
TARN_API bool tarn_dtype_parse(const char *s, tarn_dtype *t);
TARN_API size_t tarn_dtype_size(tarn_dtype t);
TARN_API bool tarn_dtype_is_float(tarn_dtype t);
TARN_API bool tarn_dtype_is_signed(tarn_dtype t); /* i8 i16 i32 i64 */
/* Where index i of type t points on an axis of that extent; negative ones count from the end.
 * False: out of range. */
TARN_API bool tarn_index_in(tarn_dtype t, int64_t i, int64_t extent, int64_t *at);
/* What sums and products of many values of this type are taken in, before one rounding: f32 for f16
 * and bf16, else t. */
TARN_API tarn_dtype tarn_dtype_accumulator(tarn_dtype t);

/* Type of a term: an access pattern, or a tuple of types. */
typedef struct tarn_type {
  bool tuple;
  tarn_dtype dtype;
  uint8_t ns, n;              /* dims 0..ns-1 are S, ns..n-1 are C */
  int64_t dim[TARN_MAX_DIMS]; /* extents, >= 0 (0 is legal: an empty tensor) */
  uint32_t nelem;             /* tuple */
  const uint32_t *elem;       /* type ids */
} tarn_type;

typedef struct tarn_lang tarn_lang;
/* Lives in cx's arena. Raises. */
TARN_API tarn_lang *tarn_lang_new(tarn_ctx *cx);
TARN_API tarn_ctx *tarn_lang_ctx(const tarn_lang *L);
/* Names of memory spaces, interned. */
TARN_API uint32_t tarn_name_intern(tarn_lang *L, const char *s);
TARN_API const char *tarn_name_get(const tarn_lang *L, uint32_t id);

TARN_API uint32_t
tarn_type_intern(tarn_lang *L, const tarn_type *t); /* raises on overflow of the element count */
TARN_API uint32_t tarn_type_tensor(tarn_lang *L, tarn_dtype dt, uint32_t ns, uint32_t n,
                                   const int64_t *dim);
TARN_API uint32_t tarn_type_tuple(tarn_lang *L, uint32_t n, const uint32_t *elem);
TARN_API const tarn_type *tarn_type_get(const tarn_lang *L, uint32_t id);
TARN_API int64_t tarn_type_count(const tarn_type *t); /* elements: product of all dims */

/* ---------------------------------------------------------------- scalar expressions
 * Hash-consed DAGs over positional holes $0 $1 … and constants. Semantics in f32: each operator
 * rounds once to its type. An operator's operands must agree in dtype (insert casts); comparisons
 * give bool. */
typedef enum tarn_fxop { /* a row each in access/fx.def */
#define FX(ID, ...) TARN_FX_##ID,
#include "access/fx.def"
#undef FX
                         TARN_FX_COUNT
} tarn_fxop;
typedef struct tarn_fx {
  uint8_t op;
  tarn_dtype dtype; /* CONST and CAST: the type */
  uint16_t hole;    /* HOLE: its number */
  double value;     /* CONST of a float type or bool */
  int64_t ivalue;   /* CONST of an integer type or bool */
  uint32_t kid[3];
} tarn_fx;
TARN_API uint32_t tarn_fx_hole(tarn_lang *L, uint32_t i);
TARN_API uint32_t
tarn_fx_const(tarn_lang *L, tarn_dtype t,
              double v); /* float types: v rounded to t; NaN is canonical; -0 ≠ 0 */
TARN_API uint32_t tarn_fx_zero(tarn_lang *L, tarn_dtype t);
/* The same operator over other operands. */
TARN_API uint32_t tarn_fx_rebuild(tarn_lang *L, const tarn_fx *x, const uint32_t *kid);
TARN_API uint32_t tarn_fx_iconst(tarn_lang *L, tarn_dtype t, int64_t v);
TARN_API uint32_t tarn_fx_cast(tarn_lang *L, tarn_dtype t, uint32_t x);
/* Interns op(kids); folds constants when all kids are constants and the result is exact to the
 * strict semantics. */
TARN_API uint32_t tarn_fx_op(tarn_lang *L, tarn_fxop op, uint32_t a, uint32_t b, uint32_t c);
TARN_API uint32_t tarn_fx_arity(uint32_t op); /* operands of a tarn_fxop */
TARN_API const tarn_fx *tarn_fx_get(const tarn_lang *L, uint32_t id);
/* Replaces hole i by with[i] for i < n (TARN_NONE: keep). */
TARN_API uint32_t tarn_fx_subst(tarn_lang *L, uint32_t f, const uint32_t *with, uint32_t n);
TARN_API uint32_t tarn_fx_holes(const tarn_lang *L, uint32_t f); /* 1 + highest hole, 0 when none */
TARN_API bool tarn_fx_uses(const tarn_lang *L, uint32_t f, uint32_t hole);
/* Result dtype given the holes' dtypes; false and a message when it does not type. */
TARN_API bool tarn_fx_type(tarn_lang *L, uint32_t f, const tarn_dtype *holes, uint32_t n,
                           tarn_dtype *out);
/* The distinct nodes of f, from the left, each after its operands, and where these are; false: more
 * than `most`, which is below 2^16. */
typedef struct tarn_fxkids {
  uint16_t at[3];
} tarn_fxkids;
TARN_API bool tarn_fx_postorder(const tarn_lang *L, uint32_t f, uint32_t most, uint32_t *id,
                                tarn_fxkids *kid, uint32_t *n);
/* The types of all of these (tarn_dtype); of what does not type, TARN_FX_UNTYPED. */
enum { TARN_FX_UNTYPED = 255 };
TARN_API void tarn_fx_types(const tarn_lang *L, const uint32_t *id, const tarn_fxkids *kid,
                            uint32_t n, const tarn_dtype *holes, uint32_t nhole, uint8_t *type);
TARN_API uint32_t tarn_fx_size(const tarn_lang *L,
                               uint32_t f); /* distinct operators, for pricing */
TARN_API bool tarn_fx_rounds(const tarn_lang *L,
                             uint32_t f); /* may one of its operators round its result? */

/* A value as the interpreter holds it: floats (f32 f64 f16 bf16) in d, integers and bool in i. */
typedef union tarn_value {
  double d;
  int64_t i;
} tarn_value;
typedef enum tarn_mode {
  TARN_STRICT,
  TARN_WIDE
} tarn_mode; /* wide: floats computed in f64 without rounding */
TARN_API tarn_value tarn_fx_eval(const tarn_lang *L, uint32_t f, const tarn_value *holes,
                                 const tarn_dtype *types, tarn_mode mode);

/* ---------------------------------------------------------------- index maps
 * From the dims of a view (S++C) to the dims of what it views; quasi-affine: sums of coef × atom +
 * const, where an atom is a view dim, floor(e / d) or e mod d of another such sum (d > 0, mod is
 * never negative). With guards (lo <= e < hi, all must hold), outside which the value is `fill`.
 * Normal form: like terms merged, div/mod simplified by the ranges of the dims, guards that always
 * hold dropped, sorted. Equal normal forms have equal ids; the normal form is complete for products
 * of permutation, slice, stride, pad, broadcast and for reshapes with matching factors, not for
 * every quasi-affine map. */
typedef enum { TARN_IX_VAR, TARN_IX_DIV, TARN_IX_MOD } tarn_atom_kind;
typedef struct tarn_ixterm {
  int64_t coef;
  tarn_atom_kind kind;
  uint32_t arg;
  int64_t by;
} tarn_ixterm; /* arg: dim (VAR) or ix id */
typedef struct tarn_ix {
  int64_t c;
  uint32_t n;
  const tarn_ixterm *t;
} tarn_ix; /* interned: tarn_ix_get */
TARN_API const tarn_ix *tarn_ix_get(const tarn_lang *L, uint32_t id);
/* Building; extent[i] is the extent of dim i, so that what is built is in normal form. */
TARN_API uint32_t tarn_ix_const(tarn_lang *L, int64_t c);
TARN_API uint32_t tarn_ix_var(tarn_lang *L, uint32_t i, const int64_t *extent);
TARN_API uint32_t tarn_ix_add(tarn_lang *L, uint32_t a, uint32_t b, const int64_t *extent);
TARN_API uint32_t tarn_ix_scale(tarn_lang *L, uint32_t a, int64_t k, const int64_t *extent);
TARN_API uint32_t tarn_ix_div(tarn_lang *L, uint32_t a, int64_t d, const int64_t *extent);
TARN_API uint32_t tarn_ix_mod(tarn_lang *L, uint32_t a, int64_t d, const int64_t *extent);
TARN_API void tarn_ix_range(const tarn_lang *L, uint32_t a, const int64_t *extent, int64_t *lo,
                            int64_t *hi); /* inclusive */
TARN_API int64_t tarn_ix_eval(const tarn_lang *L, uint32_t a, const int64_t *dims);
/* Replaces dim i by sub[i] (in terms of new dims with the given extents). */
TARN_API uint32_t tarn_ix_subst(tarn_lang *L, uint32_t a, const uint32_t *sub,
                                const int64_t *new_extent);
TARN_API bool tarn_ix_affine(const tarn_lang *L, uint32_t a); /* no div or mod */
TARN_API uint32_t tarn_ix_dims(const tarn_lang *L,
                               uint32_t a); /* bit set of the dims that stand in it */
TARN_API int64_t tarn_ix_coef(const tarn_lang *L, uint32_t a,
                              uint32_t dim); /* of the VAR atom; 0 when absent */

typedef struct tarn_guard {
  uint32_t e;
  int64_t lo, hi;
} tarn_guard; /* lo <= e < hi */
typedef struct tarn_imap {
  uint8_t ns, n;              /* the view's split and rank */
  int64_t dim[TARN_MAX_DIMS]; /* the view's extents */
  uint8_t nin;                /* rank of what is viewed */
  int64_t in[TARN_MAX_DIMS];  /* its extents */
  uint32_t e[TARN_MAX_DIMS];  /* ix id per viewed dim; in range wherever the guards hold */
  uint8_t nguard;
  tarn_guard guard[TARN_MAX_DIMS];
  uint32_t fill; /* fx constant id; TARN_NONE iff nguard == 0 */
} tarn_imap;
TARN_API uint32_t tarn_imap_parse(tarn_lang *L, const tarn_sx *s); /* (index ((S) (C)) (IN) (E…)) */
TARN_API uint32_t tarn_map_intern(
    tarn_lang *L, const tarn_imap *m); /* normalises, interns; raises when e may leave `in` */
/* The same for a map made from an interned one by a change of its dims or by composing a layout,
 * whose indices are therefore known to stay in range: they are not shown to again. */
TARN_API uint32_t tarn_map_intern_derived(tarn_lang *L, const tarn_imap *m);
TARN_API bool tarn_map_inside(tarn_lang *L,
                              uint32_t map); /* its indices can be shown to stay in range */
TARN_API const tarn_imap *tarn_imap_get(const tarn_lang *L, uint32_t id);
TARN_API uint32_t tarn_map_identity(tarn_lang *L, uint32_t type);
/* outer ∘ inner: a view (outer) of a view (inner) as one. TARN_NONE when both have guards with
 * different fills, or when there would be too many guards. inner's dims must equal outer's `in`. */
TARN_API uint32_t tarn_map_compose(tarn_lang *L, uint32_t outer, uint32_t inner);
TARN_API bool tarn_map_is_identity(const tarn_lang *L,
                                   uint32_t id); /* of the dims; the split may differ: see type */
/* A bijection without guards (permutations, reshapes and their products): its inverse, else
 * TARN_NONE. `ns` of the inverse = in_ns. */
TARN_API uint32_t tarn_map_invert(tarn_lang *L, uint32_t id, uint32_t in_ns);
/* dims: the view's index; in: the viewed index. False when a guard fails. */
TARN_API bool tarn_map_apply(const tarn_lang *L, uint32_t id, const int64_t *dims, int64_t *in);
/* The map of one transform operator (ACCESS … RESHAPE, BROADCAST, PAD, VIEW) over a child of the
 * given type. Raises. */
TARN_API uint32_t tarn_map_of(tarn_lang *L, uint32_t op, uint32_t payload, uint32_t child_type);

/* ---------------------------------------------------------------- functions of compute
 * A reducer: a fold over the compute dims in row-major order with a tuple state.
 * Holes of step: $0…$(ns-1) state, $ns the element, $(ns+1) its flat index (i64). Of merge: two
 * states one after the other. Of result: the state. */
typedef enum {
  TARN_RED_NONE,
  TARN_RED_SUM,
  TARN_RED_PROD,
  TARN_RED_MAX,
  TARN_RED_MIN,
  TARN_RED_CUSTOM
} tarn_red_kind;
#define TARN_MAX_STATE 4
typedef struct tarn_reducer {
  tarn_red_kind kind;
  tarn_dtype dtype; /* of the element (and, unless CUSTOM, of the state and the result) */
  uint8_t ns;
  uint32_t init[TARN_MAX_STATE], step[TARN_MAX_STATE], merge[TARN_MAX_STATE],
      result;        /* fx ids; CUSTOM only for init/step/merge: filled for all kinds */
  uint32_t identity; /* fx constant of the element's type; TARN_NONE for CUSTOM */
  bool commutative;  /* merge is, and is associative, but for rounding */
} tarn_reducer;
TARN_API uint32_t tarn_reducer_intern(tarn_lang *L, const tarn_reducer *r);
TARN_API uint32_t tarn_reducer_of(tarn_lang *L, tarn_red_kind k,
                                  tarn_dtype t); /* a built-in one; max of floats: identity -inf */
TARN_API const tarn_reducer *tarn_reducer_get(const tarn_lang *L, uint32_t id);
TARN_API uint32_t tarn_reducer_identity(const tarn_lang *L,
                                        uint32_t id); /* fx constant; TARN_NONE for CUSTOM */

/* out[s] = epi(reduce_{c} body(A0[s,c], …, A(k-1)[s,c]), E0[s], …)
 *
 * ntuple == 0: the compute has nops operands ((S),(C)), then nepi operands ((S),()). `red` gives
 * the type of the result. Without red the epilogue operands also have type ((S),(C)), and interning
 * folds epi into body (nepi = 0).
 * ntuple == t > 0: Glenside's tuple form: one operand ((S),(t,C)) whose first compute dim is the
 * tuple; nops = 1, body has t holes.
 * red == TARN_NONE: an elementwise map, result ((S),(C)). With red: result ((S),()).
 * epi: $0 the reduction's result, $1… the epilogue operands; TARN_NONE when absent. */
typedef struct tarn_func {
  uint8_t ntuple, nops, nepi;
  uint32_t body, red, epi;
} tarn_func;
TARN_API uint32_t tarn_fn_intern(tarn_lang *L, const tarn_func *f);
TARN_API const tarn_func *tarn_fn_get(const tarn_lang *L, uint32_t id);
TARN_API uint32_t tarn_fn_map(tarn_lang *L, uint32_t body, uint32_t nops);
TARN_API uint32_t tarn_fn_reduce(tarn_lang *L, uint32_t body, uint32_t nops, uint32_t red);
/* The sum of $0*$1 of this type; of f16 and bf16 the products are taken and summed in f32, and the
 * sum is rounded. */
TARN_API tarn_func tarn_fn_product(tarn_lang *L,
                                   tarn_dtype t);          /* of two operands, to be interned */
TARN_API uint32_t tarn_fn_dot(tarn_lang *L, tarn_dtype t); /* in tuple form */
/* The same function where the accumulator of a sum or product of f16 or bf16 is explicit: the
 * body cast to f32, reduced in f32, the result cast back. Functions of nests are in this form. */
TARN_API uint32_t tarn_fn_widened(tarn_lang *L, uint32_t id);
/* Body is $0*$1 (either form), the factors perhaps cast to the type of the sum; whatever the
 * epilogue. */
TARN_API bool tarn_fn_is_dot(const tarn_lang *L, uint32_t id);

/* ---------------------------------------------------------------- nests
 * Several computes in one kernel. All stages share the first `depth` dims of the output (the loops
 * they are placed in); a stage's iteration space is  P (the shared dims) ++ own dims ++ reduce
 * dims.  A stage's result is a local buffer over its own dims only (one instance per point of P),
 * except for output stages, which are written to memory over P ++ own.  The last stage is always an
 * output. With several outputs the nest's type is a tuple. A read's map goes from P++own++reduce
 * (operands of body) or P++own (operands of epi) to the dims of the source: a child (all its dims),
 * or an earlier stage's local buffer: its `own` dims. Interning splits that map after P++own.
 * Source: loop placement as in Halide's compute_at (Ragan-Kelley et al., PLDI 2013), as a value. */
/* The row of a table that a read is in. The table is a flat buffer (one dim) of `extent` rows,
 * `pitch` elements apart; the read's map gives the element in the first row. Lookup number by - 1
 * of the stage reads the number of the row: an integer, a negative one of a signed type counts from
 * the end, and one out of range is an error of the run. by 0: the read is in no row. */
typedef struct tarn_row {
  uint32_t by;
  int64_t pitch, extent;
} tarn_row;
typedef struct tarn_read {
  bool stage;
  uint32_t src; /* child or stage number */
  uint32_t map;
  tarn_row row;
} tarn_read;
typedef struct tarn_stage {
  uint8_t nown, nred;
  int64_t own[TARN_MAX_DIMS], red[TARN_MAX_DIMS];
  uint32_t fn;           /* n-ary form */
  const tarn_read *read; /* fn.nops + fn.nepi of them, then the lookups */
  uint32_t nlook; /* reads of children that say in which row others are; maps as the body's */
  bool out;
  uint32_t unit; /* 0, or 1 + the name of a described intrinsic whose meaning its reduction is, as
                    HW.INTRINSIC (a mark, which changes no value) */
} tarn_stage;
typedef struct tarn_nest {
  uint8_t depth, out_ns;         /* out_ns: split of the result's type */
  int64_t shared[TARN_MAX_DIMS]; /* extents of P */
  uint32_t nstage, nchild;
  const tarn_stage *stage;
} tarn_nest;
/* Dims of a stage's iteration space, in its order; their number, at most TARN_MAX_DIMS of a nest
 * that is interned. */
TARN_API uint32_t tarn_nest_dims(const tarn_nest *n, const tarn_stage *s, int64_t *dim);
/* Its reads: operands of the body, of the epilogue, lookups. */
TARN_API uint32_t tarn_stage_reads(const tarn_lang *L, const tarn_stage *s);
TARN_API bool tarn_nest_looks_up(const tarn_nest *n); /* has a stage lookups? */
/* Of the fewest rows that lookups of a child name; 0: nothing looks up there. */
TARN_API int64_t tarn_nest_rows(const tarn_lang *L, const tarn_nest *n, uint32_t child);
/* Do all rows that a read of a flat buffer by m may be in lie within it? By ranges, or (at length)
 * by trying indices where these do not show it. */
TARN_API bool tarn_rows_inside(tarn_lang *L, const tarn_imap *m, const tarn_row *row,
                               bool at_length);
/* What a kernel that is priced and emitted may have: children, and reads in each stage. A larger
 * nest is a nest for rules and the interpreter all the same. */
#define TARN_MAX_OPERANDS 64
TARN_API bool tarn_nest_emittable(const tarn_lang *L, uint32_t nest);
TARN_API uint32_t tarn_nest_intern(tarn_lang *L,
                                   const tarn_nest *n); /* copies; raises when ill-formed */
TARN_API const tarn_nest *tarn_nest_get(const tarn_lang *L, uint32_t id);

/* ---------------------------------------------------------------- scopes
 * For work whose results are mostly dropped: within a scope the language is what it was at its
 * ground, and nests, terms, payloads and index maps that are added lie in the scope's own context,
 * which is tarn_lang_ctx() meanwhile. Types, names and scalar functions are the same everywhere. */
typedef struct tarn_ground { /* how much there is of each kind */
  uint32_t ix, map, nest, payload, term, label, normal;
} tarn_ground;
typedef struct tarn_scope tarn_scope;
TARN_API tarn_ground tarn_lang_ground(const tarn_lang *L);
TARN_API tarn_scope *tarn_scope_new(tarn_lang *L, const tarn_ground *g); /* outside of it; raises */
TARN_API void tarn_scope_enter(tarn_scope *s);
TARN_API void tarn_scope_leave(tarn_scope *s);
TARN_API void tarn_scope_free(tarn_scope *s); /* leaves it; with all that lies in it */
/* Which one the language is in: no two have the same number; 0: none. Who remembers ids or what
 * they led to asks for it, and forgets them with the scope. */
TARN_API uint64_t tarn_lang_scope(const tarn_lang *L);
TARN_API tarn_ctx *tarn_scope_ctx(const tarn_scope *s);
/* Outside: what is so called within, added here. TARN_NONE stays. Raise. */
TARN_API uint32_t tarn_scope_nest(tarn_scope *s, uint32_t nest);
TARN_API uint32_t tarn_scope_payload(tarn_scope *s, uint32_t payload);
TARN_API uint32_t tarn_scope_term(tarn_scope *s, uint32_t term);

/* ---------------------------------------------------------------- tensors */
typedef struct tarn_tensor {
  tarn_dtype dtype;
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS];
  void *data; /* row-major, contiguous, aligned to 64 */
} tarn_tensor;
TARN_API tarn_tensor *tarn_tensor_new(tarn_ctx *cx, tarn_dtype t, uint32_t n,
                                      const int64_t *dim); /* zeroed, arena */
TARN_API int64_t tarn_tensor_count(const tarn_tensor *t);
TARN_API size_t tarn_tensor_bytes(const tarn_tensor *t);
TARN_API tarn_value tarn_tensor_get(const tarn_tensor *t, int64_t flat);
/* The same for elements at `data`, which need no tensor. */
TARN_API tarn_value tarn_data_get(const void *data, tarn_dtype type, int64_t i);
TARN_API void tarn_data_set(void *data, tarn_dtype type, int64_t i, tarn_value v);
TARN_API double tarn_tensor_number(const tarn_tensor *t,
                                   int64_t flat); /* as a double, whatever its type */
TARN_API void tarn_tensor_set(tarn_tensor *t, int64_t flat,
                              tarn_value v); /* rounds / wraps to the dtype */
TARN_API void tarn_tensor_index(const tarn_tensor *t, int64_t flat,
                                int64_t *index); /* t->n of them */
/* Conversions to and from the two 16-bit floats (round to nearest even). */
TARN_API uint16_t tarn_to_f16(float x);
TARN_API float tarn_from_f16(uint16_t x);
TARN_API uint16_t tarn_to_bf16(float x);
TARN_API float tarn_from_bf16(uint16_t x);

/* ---------------------------------------------------------------- payloads */
typedef enum tarn_payload_kind {
  TARN_P_NONE,
  TARN_P_INTS,
  TARN_P_SHAPE,
  TARN_P_MAP,
  TARN_P_FN,
  TARN_P_NEST,
  TARN_P_NAME,
  TARN_P_CONST,
  TARN_P_PADV,
  TARN_P_FOLD,
  TARN_P_OPAQUE,
  TARN_P_PLACE,
  TARN_P_CALL
} tarn_payload_kind;
/* Payload ids are interned over all kinds: (kind, contents) -> id; id 0 is NONE. */
typedef enum tarn_attr_kind {
  TARN_A_INT,
  TARN_A_REAL,
  TARN_A_STR,
  TARN_A_INTS,
  TARN_A_REALS
} tarn_attr_kind;
typedef struct tarn_attr {
  const char *name;
  tarn_attr_kind kind;
  int64_t i;
  double r;
  const char *s;
  uint32_t n;
  const int64_t *is;
  const double *rs;
} tarn_attr;
typedef struct tarn_payload {
  tarn_payload_kind kind;
  uint32_t id; /* MAP FN NEST: the interned id; SHAPE: a type id whose dtype is ignored (f32) */
  /* INTS PADV(axis before after) FOLD(axis) CALL(θ). Of INTS: transpose one per dim; windows w… s…
   * δ… (three per compute dim); slice axis l h step (always four); cartProd k (always one);
   * insertAxis i, or i 1; systolicArray* r c; else one. */
  uint32_t n;
  const int64_t *ints;
  uint32_t value;   /* PADV: fx constant; FOLD: reducer id */
  const char *name; /* NAME CONST OPAQUE PLACE CALL */
  uint32_t type; /* NAME (input), CONST, OPAQUE CALL (result type, tuple when several) : type id */
  const tarn_tensor *tensor; /* CONST: its value; interned by contents (hash of bytes) and type, the
                                name is only a label, made unique in L */
  uint32_t nattr;
  const tarn_attr *attr; /* OPAQUE, sorted by name */
} tarn_payload;
TARN_API const tarn_payload *tarn_payload_get(const tarn_lang *L, uint32_t id);
TARN_API uint32_t tarn_payload_intern(
    tarn_lang *L, const tarn_payload *p); /* copies (a CONST's data is not copied: arena memory) */
TARN_API uint32_t tarn_payload_ints(tarn_lang *L, uint32_t n, const int64_t *v);
TARN_API uint32_t tarn_payload_of(tarn_lang *L, tarn_payload_kind k,
                                  uint32_t id); /* SHAPE MAP FN NEST */

/* ---------------------------------------------------------------- operators and terms */
typedef enum tarn_op {
#define OP(ID, ...) TARN_OP_##ID,
#include "access/ops.def"
#undef OP
  TARN_OP_COUNT
} tarn_op;
typedef enum tarn_opkernel {
  TARN_OPK_NONE,
  TARN_OPK_VIEW,
  TARN_OPK_INPUT,
  TARN_OPK_NEST,
  TARN_OPK_COPY,
  TARN_OPK_CONCAT,
  TARN_OPK_OWN,
  TARN_OPK_PART
} tarn_opkernel;
typedef enum tarn_opvalues { TARN_OPV_NEW, TARN_OPV_FIRST, TARN_OPV_ALL } tarn_opvalues;
typedef struct tarn_opinfo { /* a row of access/ops.def, which explains it */
  const char *text;
  int min_kids, max_kids;
  tarn_payload_kind payload;
  uint8_t min_ints, max_ints, kept_ints;
  const char *attrs;
  uint8_t min_attrs;
  tarn_opkernel kernel;
  tarn_opvalues values;
} tarn_opinfo;
TARN_API const tarn_opinfo *tarn_op_info(uint32_t op);
TARN_API uint32_t tarn_op_find(const char *text); /* TARN_NONE when unknown */
/* Moves no data. */
TARN_API bool tarn_op_is_view(uint32_t op);

typedef uint32_t tarn_term;
typedef struct tarn_node {
  uint32_t op, payload, n;
  const tarn_term *kid;
  uint32_t type;
} tarn_node;
/* The type that op(payload) has over kids of these types; TARN_NONE when ill-typed, with the reason
 * in tarn_message (set, not raised). The one typing function: terms, e-graph analysis and rules all
 * use it. */
TARN_API uint32_t tarn_type_of(tarn_lang *L, uint32_t op, uint32_t payload,
                               const uint32_t *kid_types, uint32_t n);
/* Hash-consed, typed at once; raises TARN_BAD_INPUT when ill-typed. */
TARN_API tarn_term tarn_mk(tarn_lang *L, uint32_t op, uint32_t payload, const tarn_term *kids,
                           uint32_t n);
TARN_API const tarn_node *tarn_term_get(const tarn_lang *L,
                                        tarn_term t); /* pointer valid until the next tarn_mk */
TARN_API uint32_t tarn_term_count(const tarn_lang *L);
TARN_API const tarn_type *tarn_term_type(const tarn_lang *L, tarn_term t);

/* Convenience builders (all raise). Axes may not be negative here. */
TARN_API tarn_term tarn_input(tarn_lang *L, const char *name, uint32_t type);
TARN_API tarn_term tarn_constant(tarn_lang *L, const char *name, const tarn_tensor *t, uint32_t ns);
TARN_API tarn_term tarn_scalar(tarn_lang *L, tarn_dtype t, double v); /* rank 0 constant */
TARN_API tarn_term tarn_access(tarn_lang *L, uint32_t d, tarn_term a);
TARN_API tarn_term tarn_transpose(tarn_lang *L, const uint32_t *p,
                                  tarn_term a); /* rank of a entries */
TARN_API tarn_term tarn_windows(tarn_lang *L, const int64_t *w, const int64_t *s, const int64_t *d,
                                tarn_term a);
TARN_API tarn_term tarn_slice(tarn_lang *L, uint32_t axis, int64_t lo, int64_t hi, int64_t step,
                              tarn_term a);
TARN_API tarn_term tarn_pad(tarn_lang *L, uint32_t axis, uint32_t fx_value, int64_t before,
                            int64_t after, tarn_term a);
TARN_API tarn_term tarn_reshape(tarn_lang *L, uint32_t ns, uint32_t n, const int64_t *dim,
                                tarn_term a);
/* Any reshape with the same element count, across the split: (reshape to (S'),() of the tensor
 * accessed at rank). */
TARN_API tarn_term tarn_reshape_all(tarn_lang *L, uint32_t ns, uint32_t n, const int64_t *dim,
                                    tarn_term a);
TARN_API tarn_term tarn_broadcast(tarn_lang *L, uint32_t ns, uint32_t n, const int64_t *dim,
                                  tarn_term a);
TARN_API tarn_term tarn_insert_axis(tarn_lang *L, uint32_t i, tarn_term a);
TARN_API tarn_term tarn_squeeze(tarn_lang *L, uint32_t i, tarn_term a);
TARN_API tarn_term tarn_concat(tarn_lang *L, uint32_t axis, const tarn_term *a, uint32_t n);
TARN_API tarn_term tarn_cart(tarn_lang *L, uint32_t shared, tarn_term a, tarn_term b);
TARN_API tarn_term tarn_compute(tarn_lang *L, uint32_t fn, const tarn_term *a, uint32_t n);
TARN_API tarn_term tarn_view(tarn_lang *L, uint32_t map,
                             tarn_term a); /* identity with same split -> a itself */

/* ---------------------------------------------------------------- calls
 * What (call NAME θ …) stands for, once NAME is defined. Without a definition a call has only its
 * type.
 *   (call NAME () ((T ((S) (R)))) A…)    operand k is ((S),(dims of input k)): the meaning at every
 *                                        point of S
 *   (call NAME (r) ((T ((S) (R)))) A…)   operands are ((S,K),(dims)), r = rank of K: one call after
 *                                        the other over K; each reads and replaces the accumulator,
 *                                        whose operand is ((S),(R))
 * Where the accumulator, the last operand, is left out, it begins as `start` everywhere. */
typedef struct tarn_call_def {
  const char *name;
  uint32_t nin;
  const tarn_term *in; /* the INPUT terms of the meaning, ((dims),()) each */
  tarn_term meaning;
  bool acc; /* the last input is the accumulator: it has the dims and element type of the meaning */
  uint32_t start; /* fx constant, or TARN_NONE: it may not be left out */
} tarn_call_def;
/* Copies. The same again is allowed; raises TARN_BAD_INPUT when NAME means something else already,
 * or the meaning holds an operator that cannot be repeated over access dims (gather, opaque,
 * tuples, an undefined call). */
TARN_API void tarn_call_define(tarn_lang *L, const tarn_call_def *d);
TARN_API const tarn_call_def *tarn_call_find(const tarn_lang *L,
                                             const char *name); /* NULL: not defined */
/* The term with every call that is defined replaced by what it means; equal to it exactly. Raises.
 */
TARN_API tarn_term tarn_call_expand(tarn_lang *L, tarn_term t);

/* ---------------------------------------------------------------- kernels written by hand
 * What a rule file declares of a C function that computes one point of the access dims:
 *
 *   (kernel NAME
 *     (operand x (type f32) (dims 8 K) [(order 1 0)] [(packed)])…
 *     (result (type f32) (dims 8 8) …)
 *     (seconds FORMULA) | (cycles FORMULA) | (measured)     of one call, in the sizes
 *     [(symbol C_NAME)] [(link FILE)])
 *
 * A call of it is (call NAME () ((T ((S) (R)))) A…) with operands ((S),(dims)): the function at
 * every point of S. It means what the function computes. */
typedef struct tarn_written_port {
  const char *name;
  tarn_dtype dtype;
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS];   /* an extent, or -1 - the number of a size */
  uint8_t order[TARN_MAX_DIMS]; /* of the dims in memory, the outermost first */
  bool packed;                  /* without gaps; else only the innermost one is */
} tarn_written_port;
/* One operand at one point of S: strides in elements. */
typedef struct tarn_written_arg {
  tarn_dtype dtype;
  uint32_t n;
  const int64_t *dim, *stride;
  void *data;
} tarn_written_arg;
struct tarn_written;
typedef void tarn_written_fn(tarn_ctx *cx, const struct tarn_written *w, const tarn_written_arg *in,
                             const tarn_written_arg *out); /* raises */
#define TARN_WRITTEN_SIZES 16
typedef struct tarn_written {
  const char *name, *symbol;
  const char *link; /* object, archive or shared object, beside the file that names it; NULL */
  const tarn_sx *at;
  uint32_t nin, nsize;
  const char *size[TARN_WRITTEN_SIZES];
  const tarn_written_port *in;
  tarn_written_port out;
  bool cycles;          /* the price is told in cycles */
  const tarn_sx *price; /* NULL: it is measured */
  uint64_t code;        /* of what is linked, so that a time is that of this code; 0: not known */
  tarn_written_fn *run; /* NULL: the interpreter cannot call it */
  void *function;       /* for `run` */
  const char *absent;   /* why it cannot; NULL: nobody tried */
} tarn_written;
/* Reads and adds one; its name must be new. Raises TARN_BAD_INPUT with the place. */
TARN_API tarn_written *tarn_written_read(tarn_lang *L, const tarn_sx *s);
/* The same declaration in another language; one that is there already stays. */
TARN_API void tarn_written_add(tarn_lang *L, tarn_written *w);
TARN_API tarn_written *tarn_written_find(const tarn_lang *L, const char *name); /* or NULL */
/* What the operands say of the sizes; false, and tarn_message, when they do not fit. */
TARN_API bool tarn_written_sizes(tarn_lang *L, const tarn_written *w, const uint32_t *kid_types,
                                 uint32_t n, int64_t size[TARN_WRITTEN_SIZES]);
/* The type of a call; TARN_NONE, and tarn_message. */
TARN_API uint32_t tarn_written_type(tarn_lang *L, const tarn_written *w, const uint32_t *kid_types,
                                    uint32_t n);
/* What the price formula says, in its unit. */
TARN_API double tarn_written_price(const tarn_written *w, const int64_t *size);
/* The kernel at these sizes, in words: what a measured time is kept under. Arena. */
TARN_API const char *tarn_written_text(tarn_ctx *cx, const tarn_written *w, const int64_t *size);
/* Is the node computed outside of the language: an opaque, or a call of such a kernel? */
TARN_API bool tarn_is_outside(const tarn_lang *L, uint32_t op, uint32_t payload);
/* Do dims of these extents and strides lie as the port asks? */
TARN_API bool tarn_written_lies(const tarn_written_port *p, const int64_t *dim,
                                const int64_t *stride);

/* ---------------------------------------------------------------- normal form of terms
 * Chains of transforms become one view; a view of a view is composed; identities vanish; the tuple
 * form over cartProd or pair becomes the n-ary form over views; elementwise tuple forms alike;
 * systolicArray, call, fold, nest stay. What has no elements is a constant, and a reduction over it
 * the constant that it gives. The result contains only: input const view concat compute(ntuple=0,
 * or over a tuple that is no cart/pair) nest fold materialise to gather tuple nth opaque
 * systolicArray* call.  A term equals its normal form exactly (class exact). */
TARN_API tarn_term tarn_normalise(tarn_lang *L, tarn_term t);
/* A kernel operator as one nest over its children: the uniform form that fusion, the kernel graph,
 * the interpreter and lowering work on. COMPUTE (either form), FOLD, MATERIALISE (a copy), SYSTOLIC
 * and SYSTOLIC_ACC give depth = 0 and one stage; NEST gives its own. Raises for other operators. */
TARN_API uint32_t tarn_nest_of(tarn_lang *L, uint32_t op, uint32_t payload,
                               const uint32_t *kid_types, uint32_t n);

/* ---------------------------------------------------------------- text */
/* Reads one term. Forms: see docs/language.md. (let ((%a TERM) …) TERM) names shared subterms; an
 * atom %a refers to it. */
TARN_API tarn_term tarn_term_parse(tarn_lang *L, const tarn_sx *s);
TARN_API void
tarn_term_print(const tarn_lang *L, tarn_buf *b,
                tarn_term t); /* shared subterms by let when used twice and not leaves */
TARN_API void tarn_type_print(const tarn_lang *L, tarn_buf *b, uint32_t type); /* f32 ((2 3) (4)) */
TARN_API uint32_t tarn_type_parse(tarn_lang *L, const tarn_sx *shape, tarn_dtype dt);
TARN_API void tarn_fx_print(const tarn_lang *L, tarn_buf *b, uint32_t f);
TARN_API uint32_t tarn_fx_parse(tarn_lang *L, const tarn_sx *s,
                                tarn_dtype literal); /* dtype of bare numbers */
TARN_API void tarn_payload_print(
    const tarn_lang *L, tarn_buf *b, uint32_t op,
    uint32_t payload); /* what stands between op and kids, a space before each part */
/* Reads the payload part of (op PAYLOAD… kids…): *used = number of s-expression elements consumed
 * after the head. */
TARN_API uint32_t tarn_payload_parse(tarn_lang *L, uint32_t op, const tarn_sx *s, uint32_t *used);

/* ---------------------------------------------------------------- the reference interpreter
 * Slow and simple; strict: f32 rounded after every operator, reductions left to right in row-major
 * order of the compute dims, no FMA; wide: f64 throughout for float types. Memoised per term; views
 * are not materialised. */
typedef struct tarn_binding {
  const char *name;
  const tarn_tensor *value;
} tarn_binding;
/* How an `opaque` is computed: name, attributes, inputs -> outputs (already allocated). Raises on
 * failure. */
typedef void tarn_opaque_fn(tarn_ctx *cx, const tarn_payload *p, const tarn_tensor *const *in,
                            uint32_t nin, tarn_tensor *const *out, uint32_t nout);
/* Values of the roots (dims S++C); tuple roots are not allowed (take nth). opaque may be NULL (then
 * they raise). Intermediate results are freed when their last use is done. The results live in the
 * arena, in the dtypes of the roots' types, except that in wide mode float results are TARN_F64; a
 * float input may then be given as f64 too. Raises; memory is given back at the end of the
 * enclosing protected call at the latest. */
TARN_API void tarn_eval(tarn_lang *L, const tarn_term *root, uint32_t nroot, const tarn_binding *in,
                        uint32_t nin, tarn_mode mode, tarn_opaque_fn *opaque, tarn_tensor **out);

/* A whole program: named inputs and outputs over one term DAG. */
typedef struct tarn_io {
  const char *name;
  tarn_term term;
  uint32_t type;
} tarn_io;
/* A term that a node of the model made. Terms are hash-consed: several nodes may have made one. */
typedef struct tarn_origin {
  tarn_term term;
  const char *node, *op; /* the node's name, or its output's where it has none; its operator */
} tarn_origin;
typedef struct tarn_program {
  tarn_lang *L;
  uint32_t nin, nout;
  tarn_io *in, *out; /* in[i].term is the INPUT term */
  uint32_t norigin;
  const tarn_origin *origin; /* in an order in which nodes follow what they read; may be empty */
} tarn_program;
/* NumPy's .npy, formats 1.0 to 3.0 (npy.c): big-endian and Fortran order are converted. bfloat16
 * has no type there: it is written as f32, and read from the two opaque bytes that ml_dtypes saves.
 * Raises TARN_BAD_INPUT with `name`. */
TARN_API tarn_tensor *tarn_npy_read_bytes(tarn_ctx *cx, const void *bytes, size_t n,
                                          const char *name);
TARN_API void tarn_npy_write_bytes(tarn_buf *b, const tarn_tensor *t);
/* As a tensor of type want: where that is bfloat16, f32 elements are rounded to the nearest. Other
 * types are left as they are, for the caller to refuse. */
TARN_API tarn_tensor *tarn_tensor_as(tarn_ctx *cx, tarn_tensor *t, tarn_dtype want);

/* (program (inputs (x ((1 3 224 224) ()) f32)…) [(let (%a TERM)…)] (outputs (y TERM)…)), constants
 * inline when they have at most 64 elements, else (const NAME dtype SHAPE) beside a file NAME.npy
 * in dir (NULL: such constants are an error; NAME's bytes other than letters, digits, _ - . stand
 * as %XX). Raises. */
TARN_API tarn_program *tarn_program_parse(tarn_lang *L, const tarn_sx *s, const char *dir);
TARN_API void tarn_program_print(const tarn_program *p, tarn_buf *b);

#ifdef __cplusplus
}
#endif
#endif
