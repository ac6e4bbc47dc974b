/* What the files of the PTX executor share.
 *
 * ptx_read.c     text to names, registers and statements    ptx_decode.c  statements to ops
 * ptx_operand.c  where operands lie                         ptx_flow.c    where lanes that part
 * meet ptx_run.c      blocks, warps, branches                    ptx_lanes.c   what an op computes
 * ptx_cvt.c      conversions                                ptx_memory.c  addresses, races, sectors
 * ptx_access.c   loads, stores, copies                      ptx_warp.c    shuffles, matrices
 *
 * A register is 32 lanes side by side in a warp's file; a predicate is one bit a lane. Numbers in
 * the text are registers that hold them in every lane, and so are %tid and its kind. */
#ifndef TARN_PTX_INTERNAL_H
#define TARN_PTX_INTERNAL_H
#include "sim/ptx.h"

#define PTX_LANES   32
#define PTX_ALL     0xffffffffu
#define PTX_THREADS 1024 /* most of a block */

typedef enum ptx_type {
  PTX_NOTYPE,
  PTX_PRED,
  PTX_B8,
  PTX_B16,
  PTX_B32,
  PTX_B64,
  PTX_U8,
  PTX_U16,
  PTX_U32,
  PTX_U64,
  PTX_S8,
  PTX_S16,
  PTX_S32,
  PTX_S64,
  PTX_F16,
  PTX_BF16,
  PTX_F16X2,
  PTX_BF16X2,
  PTX_TF32,
  PTX_F32,
  PTX_F64,
  PTX_TYPES
} ptx_type;
uint32_t ptx_type_bytes(ptx_type t); /* 0 of PRED */
bool ptx_type_float(ptx_type t);
bool ptx_type_signed(ptx_type t);
ptx_type ptx_type_named(const char *s); /* NOTYPE: none */

typedef enum ptx_space {
  PTX_GENERIC,
  PTX_GLOBAL,
  PTX_SHARED,
  PTX_LOCAL,
  PTX_CONST,
  PTX_PARAM
} ptx_space;
/* Generic addresses of shared and local memory. */
#define PTX_SHARED_AT (UINT64_C(1) << 45)
#define PTX_LOCAL_AT  (UINT64_C(1) << 46)
#define PTX_GLOBAL_AT (UINT64_C(1) << 32)
#define PTX_WINDOW    (UINT64_C(1) << 30)

/* ---- text ---- */
typedef struct ptx_variable {
  const char *name;
  ptx_space space;
  uint32_t line, align;
  bool dynamic; /* of shared memory, what a launch asks for: it begins at the body's shared_end */
  int64_t bytes;
  uint64_t at;         /* address in its space; of PARAM: offset */
  const uint8_t *data; /* NULL: no contents */
} ptx_variable;
typedef struct ptx_register {
  const char *name;
  ptx_type type;
  uint32_t at;                /* in the file */
  bool written, read, packed; /* packed: read as one of several parts */
} ptx_register;
typedef enum ptx_operand_kind {
  PTX_REGISTER,
  PTX_INTEGER,
  PTX_REAL,
  PTX_NAME,    /* a variable or a label */
  PTX_SPECIAL, /* %tid.x */
  PTX_ADDRESS, /* [base + offset] */
  PTX_VECTOR,  /* {a, b} */
  PTX_SINK     /* _ */
} ptx_operand_kind;
typedef struct ptx_operand {
  ptx_operand_kind kind;
  bool negated;  /* !p */
  uint32_t no;   /* register; ADDRESS: of its base, or TARN_NONE */
  uint32_t also; /* a|b: the register b; or TARN_NONE */
  int64_t i;     /* INTEGER; offset */
  double f;      /* REAL */
  const char *name;
  uint32_t n; /* VECTOR */
  struct ptx_operand *part;
} ptx_operand;
#define PTX_WORDS    12
#define PTX_OPERANDS 8
typedef struct ptx_statement {
  uint32_t line;
  const char *op; /* as written */
  uint32_t nword;
  const char *word[PTX_WORDS]; /* op, cut at its dots */
  uint32_t guard;              /* register or TARN_NONE */
  bool guard_not;
  uint32_t noperand;
  ptx_operand operand[PTX_OPERANDS];
} ptx_statement;

/* ---- ops ---- */
typedef enum ptx_what {
  PTX_DO_ALU,
  PTX_DO_SETP,
  PTX_DO_SELP,
  PTX_DO_LOGIC, /* of predicates */
  PTX_DO_CVT,
  PTX_DO_PACK,
  PTX_DO_UNPACK,
  PTX_DO_LOAD,
  PTX_DO_STORE,
  PTX_DO_ATOM,
  PTX_DO_COPY, /* cp.async */
  PTX_DO_COMMIT,
  PTX_DO_WAIT,
  PTX_DO_BRANCH,
  PTX_DO_EXIT,
  PTX_DO_BARRIER,
  PTX_DO_WARP_BARRIER,
  PTX_DO_NOTHING,
  PTX_DO_SHUFFLE,
  PTX_DO_VOTE,
  PTX_DO_LDMATRIX,
  PTX_DO_MMA
} ptx_what;
enum { PTX_FTZ = 1, PTX_SAT = 2 };
typedef struct ptx_op {
  uint8_t what;       /* ptx_what */
  uint8_t flags;      /* FTZ, SAT */
  uint8_t type, from; /* ptx_type; CVT: of the source */
  uint16_t code;    /* ALU: row of the table; SETP: comparison; ATOM, SHUFFLE, VOTE, LOGIC: which */
  uint8_t space, n; /* LOAD, STORE: elements a lane */
  uint8_t round, mode;
  bool guarded, guard_not, not_c;
  uint8_t wide_d, wide_a;         /* bytes of a lane's register */
  uint32_t guard, d, a, b, c, d2; /* d2: another result, or a fourth operand */
  const uint32_t *v;              /* further registers */
  int64_t offset;                 /* of an address; BRANCH: target */
  uint32_t meet;                  /* BRANCH: where its lanes meet again */
  uint32_t line;
  const char *name;
} ptx_op;
#define PTX_NOWHERE UINT32_MAX
/* Special registers, by number. */
#define PTX_SPECIALS(X)                                                                            \
  X("%tid.x")                                                                                      \
  X("%tid.y")                                                                                      \
  X("%tid.z")                                                                                      \
  X("%ntid.x")                                                                                     \
  X("%ntid.y")                                                                                     \
  X("%ntid.z")                                                                                     \
  X("%ctaid.x")                                                                                    \
  X("%ctaid.y")                                                                                    \
  X("%ctaid.z")                                                                                    \
  X("%nctaid.x")                                                                                   \
  X("%nctaid.y")                                                                                   \
  X("%nctaid.z")                                                                                   \
  X("%laneid") X("%warpid") X("%lanemask_eq") X("%lanemask_lt") X("%lanemask_le")
enum { PTX_TID, PTX_NTID = 3, PTX_CTAID = 6, PTX_NCTAID = 9, PTX_LANEID = 12, PTX_SPECIAL_N = 17 };
typedef struct ptx_number { /* a register that holds the same in every lane of every warp */
  uint32_t at, bytes;
  uint64_t bits;
} ptx_number;
typedef struct ptx_entry {
  tarn_ptx_entry p;
  uint32_t nop, file; /* bytes of a warp's registers */
  ptx_op *op;
  TARN_VEC(ptx_number) number;
  uint32_t special[PTX_SPECIAL_N]; /* where it lies in the file; 0: not read */
  uint32_t line;
} ptx_entry;
struct tarn_ptx {
  tarn_ctx *cx;
  const char *file;
  TARN_VEC(ptx_entry *) entry;
  TARN_VEC(ptx_variable *) variable; /* of the module */
  uint64_t end;                      /* behind its variables in global memory */
  uint32_t dynamic; /* alignment of what launches ask for; 0: no name for it has been read */
  uint32_t granule; /* the fewest bytes that a kernel reads or writes at once, at most 4 */
};
TARN_NORETURN void ptx_refuse(tarn_ctx *cx, const char *file, uint32_t line, const char *fmt, ...)
    TARN_PRINTF(4, 5);

/* A kernel while it is read. */
typedef struct ptx_body {
  tarn_ctx *cx;
  tarn_ptx *p;
  ptx_entry *e;
  TARN_VEC(ptx_register) reg;
  tarn_intern *names; /* scope and name, to a register or a variable */
  TARN_VEC(uint32_t) named;
  TARN_VEC(ptx_variable *) variable;
  TARN_VEC(ptx_statement) statement;
  tarn_intern *labels;
  TARN_VEC(uint32_t) label; /* the statement that it stands before; TARN_NONE: not yet */
  tarn_intern *numbers;
  uint32_t shared_end, local_end;
} ptx_body;
const ptx_variable *ptx_variable_of(const ptx_body *b, const char *name); /* NULL */
void ptx_decode(ptx_body *b);
void ptx_meets(tarn_ctx *cx, ptx_entry *e);
/* A row of the table of lanes (ptx_lanes.c): its number, or TARN_NONE; bytes of d and its operands,
 * 0: none. */
uint32_t ptx_alu_find(const char *name);
const uint8_t *ptx_alu_bytes(uint32_t row);
void ptx_alu(const ptx_op *x, char *file, uint32_t mask);
uint32_t ptx_setp(const ptx_op *x, const char *file); /* the lanes where it holds */
bool ptx_compare_named(const char *s, uint16_t *code);
bool ptx_test_named(const char *s, uint8_t *no); /* of testp: ptx_op.n of a SETP */
void ptx_cvt(const ptx_op *x, char *file, uint32_t mask);

/* ---- running ---- */
typedef struct ptx_touch { /* when, and by which thread, counted from 1; see PTX_MANY */
  uint32_t epoch;
  uint16_t sync, thread;
} ptx_touch;
/* Threads of a touch: several of a block; of several blocks; atomics; a copy under way. */
enum { PTX_MANY = 0xffff, PTX_BLOCKS = 0xfffe, PTX_ATOMIC = 0xfffd, PTX_PENDING = 0xfffc };
typedef struct ptx_part { /* of memory */
  const char *name;
  uint64_t at;
  int64_t bytes;
  uint8_t *data;
  ptx_touch *wrote, *read; /* of each granule; NULL: constant */
} ptx_part;
#define PTX_FIRST 2 /* the first epoch of kernels; 1: the host's */
struct tarn_ptx_device {
  tarn_ctx *cx;
  tarn_ptx *p;
  TARN_VEC(ptx_part) part;
  uint64_t next;
  uint32_t epoch;
};
typedef struct ptx_copy { /* cp.async: until it is waited for */
  uint64_t at;
  uint32_t bytes, group, lane;
  uint8_t data[16];
} ptx_copy;
typedef struct ptx_level {
  uint32_t pc, meet, mask;
} ptx_level;
#define PTX_DEPTH 256
typedef struct ptx_warp {
  char *file;
  uint32_t live, depth, first; /* lanes that have not ended; its first thread */
  uint32_t waits;              /* op number of the barrier, or PTX_NOWHERE */
  uint16_t sync;               /* counts barriers of the warp */
  uint32_t group;              /* of asynchronous copies: the next */
  TARN_VEC(ptx_copy) copy;
  ptx_level level[PTX_DEPTH];
} ptx_warp;
typedef struct ptx_run {
  tarn_ctx *cx;
  tarn_ptx_device *d;
  const ptx_entry *e;
  const tarn_ptx_launch *l;
  tarn_ptx_counts *n;
  uint32_t threads, block[3]; /* of a block; its coordinates */
  uint32_t launch, began;     /* epochs in which the launch, and this block, began */
  ptx_part shared, local;     /* local: of all threads, one after the other */
  uint32_t *hint;             /* of each op, the part that it accessed last */
  uint32_t nwarp;
  uint32_t doubtful;  /* lanes that must store what is there already: l->agreed */
  ptx_warp *warp, *w; /* the one at work */
  const ptx_op *x;    /* the op at work */
} ptx_run;
TARN_NORETURN void ptx_fault(const ptx_run *r, uint32_t lane, const char *fmt, ...)
    TARN_PRINTF(3, 4);
typedef enum ptx_access { PTX_READ, PTX_WRITE, PTX_UPDATE, PTX_BEGIN_COPY } ptx_access;
/* Checks and counts what the lanes of the mask access, and says where it lies. */
void ptx_touches(ptx_run *r, ptx_space space, const uint64_t *at, uint32_t mask, uint32_t bytes,
                 ptx_access how, uint8_t **where);
/* The bytes that a copy under way goes to are there now. */
void ptx_arrives(ptx_run *r, const ptx_copy *c);
void ptx_load(ptx_run *r, const ptx_op *x, uint32_t mask);
void ptx_store(ptx_run *r, const ptx_op *x, uint32_t mask);
void ptx_atom(ptx_run *r, const ptx_op *x, uint32_t mask);
void ptx_copy_begin(ptx_run *r, const ptx_op *x, uint32_t mask);
void ptx_copy_wait(ptx_run *r, const ptx_op *x);
void ptx_addresses(const ptx_run *r, const ptx_op *x, uint32_t base, uint64_t *at);
void ptx_shuffle(ptx_run *r, const ptx_op *x, uint32_t mask);
void ptx_vote(ptx_run *r, const ptx_op *x, uint32_t mask);
void ptx_ldmatrix(ptx_run *r, const ptx_op *x, uint32_t mask);
void ptx_mma(ptx_run *r, const ptx_op *x, uint32_t mask);

static inline uint32_t *ptx_u32(char *file, uint32_t at) { return (uint32_t *)(void *)(file + at); }
static inline uint64_t *ptx_u64(char *file, uint32_t at) { return (uint64_t *)(void *)(file + at); }
static inline uint16_t *ptx_u16(char *file, uint32_t at) { return (uint16_t *)(void *)(file + at); }
/* Bits of one lane's register of 2, 4 or 8 bytes. */
static inline uint64_t ptx_get(const char *file, uint32_t at, uint32_t bytes, uint32_t lane) {
  const char *p = file + at;
  if (bytes == 8) return ((const uint64_t *)(const void *)p)[lane];
  if (bytes == 4) return ((const uint32_t *)(const void *)p)[lane];
  return ((const uint16_t *)(const void *)p)[lane];
}
static inline void ptx_put(char *file, uint32_t at, uint32_t bytes, uint32_t lane, uint64_t v) {
  if (bytes == 8) ptx_u64(file, at)[lane] = v;
  else if (bytes == 4) ptx_u32(file, at)[lane] = (uint32_t)v;
  else ptx_u16(file, at)[lane] = (uint16_t)v;
}
#endif
