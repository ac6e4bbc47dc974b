/* tarn hw: descriptions of hardware, in the same words for a CPU, a GPU and an accelerator.
 *
 * A description is text (.hw, s-expressions; docs/hardware.md lists every form).  This module
 * reads, checks and prints it; it discovers nothing (that is hw/host, in libtarn-tune).  Everything
 * that a rule, a price or an emitter needs to know of a machine comes from here: no sizes in code.
 */
#ifndef TARN_HW_H
#define TARN_HW_H
#include "access/access.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_hw_kind { TARN_HW_CPU, TARN_HW_GPU, TARN_HW_DSA } tarn_hw_kind;

/* A memory level, nearest the units first. The last one is main memory (capacity 0 = unbounded). */
typedef struct tarn_hw_memory {
  const char *name;   /* reg l1 l2 l3 dram | smem global | inp wgt acc … */
  int64_t capacity;   /* bytes of one instance */
  uint32_t instances; /* how many of them (an L2 per core: cores) */
  uint32_t serves;    /* units that it serves at its rates at once, each; the number of instances at
                         least */
  uint32_t line, align, banks; /* bytes, bytes, count */
  uint32_t ways;               /* lines that one set of a cache holds; 0: not known */
  double read, write;          /* bytes a cycle, to one unit */
  double latency;              /* cycles */
  double hidden;  /* share of the time of transfers from or to it that goes by beside computing */
  bool managed;   /* software-managed (scratchpad), not a cache */
  uint32_t entry; /* bytes an address steps by; 1 when byte-addressed */
  const char *shadow_of; /* NULL or the memory it mirrors */
  uint32_t nkeep;
  const char *const *keep; /* operand classes it may hold; 0 = any */
} tarn_hw_memory;

/* What a unit can do in one go. Its meaning is a term in which ?NAME stands for the operand of that
 * name, ((dims),()). The last operand is the result; where the meaning reads it too, it is an
 * accumulator that is replaced in place. */
typedef struct tarn_hw_operand {
  const char *name, *memory;
  tarn_dtype dtype;
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS];
  bool immediate; /* one number of the instruction itself, from lo to hi */
  int64_t lo, hi;
  /* Lies in registers of all lanes of a warp: an index map from (lane, register, place within it)
   * to the dims, each element once; TARN_NONE: not so. */
  uint32_t fragment;
} tarn_hw_operand;
typedef struct tarn_hw_intrinsic {
  const char *name;       /* fma  vnni  mma  gemm … */
  const tarn_sx *meaning; /* as written; tarn_hw_meaning_of() reads it */
  const tarn_sx *source;  /* (intrinsic …) as written, constraints included */
  uint32_t nop;
  const tarn_hw_operand *op;  /* the last one is the result */
  double latency, throughput; /* cycles until the result; issues a cycle (per unit of execution) */
  double ops;                 /* scalar multiply-adds (or operations) of one issue */
  double startup;             /* cycles before the first issue of an instruction */
  uint32_t reuse; /* an instruction may touch an entry of the result again so many issues later;
                     0: at once */
  const char *encoding; /* LLVM intrinsic, PTX, or instruction family; NULL: plain IR */
  /* Nests over its operands (INPUT terms) that are known to equal its meaning; who compiles for it
   * finds them, a description has none. */
  uint32_t nwhole;
  const tarn_term *whole;
} tarn_hw_intrinsic;

/* Cost of a scalar operator, in cycles per vector, by its name in access/fx.def. */
typedef struct tarn_hw_latency {
  const char *fx;
  double cycles;
} tarn_hw_latency;

/* Between a host's memory and that of a machine that hangs on it. */
typedef struct tarn_hw_link {
  double send, receive;  /* bytes a second: from the host's memory, and back to it; 0: no link */
  double latency, start; /* seconds until the first byte is there; to begin a transfer */
} tarn_hw_link;

/* ---- accelerators: docs/accelerators.md. Parts are named by their number in these arrays; an
 * absent one is TARN_NONE. ---- */

/* Instructions of a queue start in their order, one after another. */
typedef struct tarn_hw_queue {
  const char *name;
  uint32_t depth; /* instructions that may wait in it; 0: any number */
} tarn_hw_queue;
/* A counter between two queues: an instruction of one waits for what one of the other has pushed.
 */
typedef struct tarn_hw_token {
  const char *name;
  uint32_t from, to; /* queues: who pushes, who pops */
  uint32_t capacity; /* 0: any number */
} tarn_hw_token;
/* Rows of entries between main memory and another. Cycles: startup + rows × row + entries × entry,
 * and the latency of main memory, once or for each row. */
typedef struct tarn_hw_transfer {
  const char *name;
  uint32_t from, to;   /* memories, one of them main memory */
  uint32_t intrinsic;  /* what becomes of an entry on the way, or TARN_NONE: on the way in it may
                          read the entry that it goes to */
  uint32_t rank;       /* 1: one row; 2: rows at a stride */
  int64_t stride, pad; /* the largest: entries between rows, rows or entries of zeros on a side */
  int64_t row_bytes;   /* of the longest row; 0: any */
  int64_t most_rows;   /* 0: any number */
  double startup, row, entry;
  bool row_latency; /* each row waits for main memory, not the first alone */
} tarn_hw_transfer;
typedef struct tarn_hw_field {
  const char *name;
  uint32_t at, width; /* bits; bit 0 is the lowest of the first byte */
  bool is_signed;
} tarn_hw_field;
/* A word of bits: an instruction, or a micro-op. */
typedef struct tarn_hw_format {
  const char *name;
  uint32_t bits, nfield;
  const tarn_hw_field *field;
} tarn_hw_format;
/* A number that instructions set, and later ones use. */
typedef struct tarn_hw_register {
  const char *name;
  uint32_t bits;
} tarn_hw_register;
/* Where an instruction has a number: a field of its format, or a register: this plus its number. */
#define TARN_HW_REGISTER 0x40000000u
static inline bool tarn_hw_is_register(uint32_t place) {
  return place != TARN_NONE && (place & TARN_HW_REGISTER);
}
typedef struct tarn_hw_set {
  uint32_t reg, field;
} tarn_hw_set;
typedef struct tarn_hw_flag { /* a field of one bit: pops or pushes the token */
  uint32_t field, token;
} tarn_hw_flag;
typedef struct tarn_hw_is { /* of an instruction: the field, or register, has this value */
  uint32_t field;
  int64_t value;
} tarn_hw_is;
#define TARN_HW_LOOPS 4
/* First entry of an operand: field of the micro-op + sum over the loops of trip × factor. It has as
 * many entries as its bytes need. */
typedef struct tarn_hw_index {
  uint32_t operand, field;        /* of the intrinsic; of the micro-op's format, or where there are
                                     none a place of the instruction */
  uint32_t factor[TARN_HW_LOOPS]; /* fields of the instruction, a loop each */
} tarn_hw_index;
typedef enum tarn_hw_does {
  TARN_HW_MOVES, /* a transfer */
  TARN_HW_RUNS,  /* an intrinsic, for each trip of the loops, outermost first, and each micro-op */
  TARN_HW_ENDS,  /* the program */
  TARN_HW_SETS   /* registers alone; the others may do so too */
} tarn_hw_does;
typedef enum tarn_hw_pads { TARN_HW_TOP, TARN_HW_BOTTOM, TARN_HW_LEFT, TARN_HW_RIGHT } tarn_hw_pads;
/* One row of the decoder's table; the numbers are fields of its format. */
typedef struct tarn_hw_instruction {
  const char *name;
  uint32_t format, queue;
  uint32_t nis, npop, npush, nset;
  const tarn_hw_set *set;
  const tarn_hw_is *is;
  const tarn_hw_flag *pop, *push;
  tarn_hw_does does;
  uint32_t transfer; /* MOVES */
  uint32_t local, main, rows, entries, stride, pad[4];
  bool bytes;        /* main is an address in bytes, not in entries of the other memory */
  bool stride_bytes; /* and so is stride */
  int64_t units;     /* entries counts parts of one: so many of them */
  uint32_t block; /* entry x of row y lies x × this + y behind the first; TARN_NONE: the rows lie
                     one behind the other */
  uint32_t intrinsic;               /* RUNS */
  uint32_t steps, begin, end, step; /* memory of the micro-ops, first one, behind the last, format;
                                       TARN_NONE: none, one issue in each trip */
  uint32_t nloop, loop[TARN_HW_LOOPS];
  uint32_t nindex;
  const tarn_hw_index *index;
  uint32_t immediate;  /* field of the intrinsic's immediate operand */
  uint32_t clear;      /* a flag: the result becomes 0 instead */
  uint32_t accumulate; /* a flag: unless it is set, the result's entry counts as 0 */
  const tarn_sx *source;
} tarn_hw_instruction;
/* What programs must keep besides; the simulator refuses those that do not. */
typedef enum tarn_hw_quirk {
  TARN_HW_STORE_NEEDS_COMPUTE = 1, /* an entry is only stored after an intrinsic has written it */
  TARN_HW_CLEAR_BEFORE_ACCUMULATE = 2 /* a cleared entry is accumulated into before it is stored */
} tarn_hw_quirk;

/* Threads of a GPU. */
typedef struct tarn_hw_warps {
  uint32_t lanes;     /* threads that run in step; 0: it is no GPU */
  uint32_t resident;  /* most warps of a unit at once */
  uint32_t block;     /* most threads of a block */
  uint32_t registers; /* of 32 bits, of a unit, for the threads of all its warps */
  uint32_t integers;  /* bits of what one instruction adds: 32 or 64 */
  uint32_t issue;     /* instructions of warps that a unit begins in a cycle */
  uint32_t own;       /* most registers of a thread; 0: as many as there are */
  uint32_t shared;    /* most bytes of the nearest memory that a block holds; 0: all */
  uint32_t dynamic;   /* and that it holds where its launch asks for them; 0: no more */
  uint32_t matrix;   /* bytes of a row of the matrices of eight rows that a warp loads from there, a
                        lane four of them; 0: it has no such instruction */
  uint32_t async;    /* most bytes that a thread copies there at once without waiting for them, a
                        power of two from 4 on; 0: it has to wait */
  uint32_t sector;   /* bytes that one access to memory moves at least */
  uint32_t reserved; /* bytes of the nearest memory that each block takes besides */
} tarn_hw_warps;

/* What a core does at once with memory. */
typedef struct tarn_hw_core {
  double overlap; /* transfers in flight, each of one piece of memory */
  double far;     /* of them from main memory, each on a page of its own */
  double streams; /* that its prefetcher follows */
  uint32_t page;  /* bytes */
  double pages;   /* that its last table of translations holds */
  double restart; /* cycles lost at a loop's begin: a mispredicted branch, addresses */
} tarn_hw_core;
/* Where nothing is said: fitted to measured schedules of three processors (bench/notes/tuning.md).
 */
#define TARN_HW_CORE                                                                               \
  ((tarn_hw_core){                                                                                 \
      .overlap = 10, .far = 3, .streams = 32, .page = 4096, .pages = 512, .restart = 12})

typedef struct tarn_hw {
  const char *name;
  tarn_hw_kind kind;
  const char *triple, *cpu, *features; /* for LLVM; "" when none */
  double clock;                        /* Hz */
  uint32_t units;                      /* cores | multiprocessors | 1 */
  uint32_t vector_bits;                /* of one register; 0 when there is no vector unit */
  uint32_t vector_regs;                /* architectural registers */
  tarn_hw_warps warps;
  tarn_hw_core core;
  bool spreads; /* what all lanes share is loaded into a register of its own before it is multiplied
                 */
  bool moves; /* moving lanes from two registers into one costs less than a load that crosses a line
               */
  bool flushes; /* its vectors take subnormal numbers of f32 for 0 */
  double trip;  /* cycles of a trip of an innermost loop, beside its work */
  uint32_t nmem;
  const tarn_hw_memory *mem;
  uint32_t nintrin;
  const tarn_hw_intrinsic *intrin;
  const struct tarn_hw *host; /* the machine that it hangs on, in whose memory a model's inputs and
                                 outputs lie; NULL: it is its own */
  bool alone;                 /* (host none): every kernel is its own, a host only starts them */
  tarn_hw_link link;          /* to the host's memory; none: it works in that */
  double launch, barrier;     /* seconds to start a kernel on one unit, to join all units */
  uint32_t nlatency;
  const tarn_hw_latency *latency; /* 1 cycle where absent */
  uint32_t nqueue, ntoken, ntransfer, nformat, nregister, ninstruction;
  const tarn_hw_register *reg;
  const tarn_hw_queue *queue;
  const tarn_hw_token *token;
  const tarn_hw_transfer *transfer;
  const tarn_hw_format *format;
  const tarn_hw_instruction *instruction; /* all of as many bits */
  uint32_t quirks;                        /* set of tarn_hw_quirk */
  bool in_order; /* no queue is described: one, with the machine's name, takes all instructions */
  bool hazards;  /* the hardware orders conflicting instructions by itself: no tokens */
  int64_t instructions,
      buffer;            /* limits: instructions of a program, bytes of one buffer; 0: none */
  uint32_t address_bits; /* of main memory; 0: not limited */
  const tarn_sx *source;
} tarn_hw;

/* All raise; messages FILE:LINE:COL: …. Checks that the description is possible (sizes positive,
 * names resolve…). */
TARN_API const tarn_hw *tarn_hw_parse(tarn_lang *L, const tarn_sx *s);
TARN_API const tarn_hw *tarn_hw_load(
    tarn_lang *L,
    const char *name_or_path); /* a shipped name (aarch64, riscv64, x86-64-v3 …) or a file */
TARN_API uint32_t tarn_hw_shipped(const char **names,
                                  uint32_t max); /* how many; the first max of them */
TARN_API void tarn_hw_print(const tarn_hw *hw, tarn_buf *b);
/* A description as it is written, but with these forms, which change it as those behind (like NAME)
 * do. */
TARN_API void tarn_hw_print_with(tarn_lang *L, const char *name_or_path, const char *forms,
                                 tarn_buf *b);
/* Bytes of one way of a cache, a power of two: lines at multiples of it want the same set. */
TARN_API int64_t tarn_hw_way(const tarn_hw_memory *m);
#define TARN_HW_HIDDEN 0.8 /* where nothing is said */
#define TARN_HW_WAYS   12  /* of a cache whose ways are not known, at least */
/* Lines that one set holds, TARN_HW_WAYS at most. */
TARN_API uint32_t tarn_hw_ways(const tarn_hw_memory *m);
TARN_API const tarn_hw_memory *tarn_hw_memory_find(const tarn_hw *hw, const char *name); /* NULL */
/* Entries of a memory; 0 when it is unbounded. Bytes of an operand. */
TARN_API int64_t tarn_hw_depth(const tarn_hw_memory *m);
TARN_API int64_t tarn_hw_operand_bytes(const tarn_hw_operand *o);
/* Bytes of main memory that an entry of a transfer is there. */
TARN_API int64_t tarn_hw_transfer_bytes(const tarn_hw *hw, const tarn_hw_transfer *t);
/* Bits of the numbers, not negative, that a place holds. */
TARN_API uint32_t tarn_hw_place_bits(const tarn_hw *hw, const tarn_hw_format *f, uint32_t place);
TARN_API double tarn_hw_peak(const tarn_hw *hw, tarn_dtype t,
                             uint32_t units); /* multiply-adds a second on that many units */
/* Cycles of an expression per vector, shared subexpressions once. Pure. */
TARN_API double tarn_fx_cycles(tarn_lang *L, const tarn_hw *hw, uint32_t f);
/* What machines of a kind have in common. Outside of hw/, compile/target.c and lower/cpu.c nothing
 * asks for the kind itself. */
typedef struct tarn_hw_traits {
  bool any_nest; /* computes every loop nest; if not, only what the described units do */
  bool calls;    /* its programs call functions of the runtime */
  bool lookups;  /* kernels read rows of tables that integers in memory name */
  bool links;    /* … and functions of C that are linked with them */
  bool pads;     /* units read operands that were brought near them, and short ones with zeros */
  bool blocks; /* threads of a block share memory that the program manages, and wait for another */
  bool hides;  /* other threads run while one waits for memory: nothing is prefetched */
  bool hosted; /* it has memory of its own, and its host is implied */
} tarn_hw_traits;
TARN_API tarn_hw_traits tarn_hw_traits_of(const tarn_hw *hw);
/* Memories by what they are to a unit. A CPU has L1, mostly L2 and a last-level cache, and main
 * memory. */
typedef enum tarn_hw_level {
  TARN_HW_L1,        /* the nearest */
  TARN_HW_L2,        /* behind L1; main memory where nothing lies between */
  TARN_HW_BEHIND_L2, /* what L2 is filled from */
  TARN_HW_LLC,       /* in front of main memory; NULL where there is L1 alone */
  TARN_HW_MAIN
} tarn_hw_level;
/* Bytes of its nearest memory that a GPU's block may hold: all that it asks for at its launch. */
TARN_API int64_t tarn_hw_block_memory(const tarn_hw *hw);
/* Room for the buffers between the stages of a kernel, which works in blocks or as a whole. Of two
 * sizes of blocks the second is the larger one. */
typedef struct tarn_hw_between {
  int64_t block[2]; /* most bytes of a block's buffers */
  int64_t least[2]; /* fewest blocks of the kernel that are worth it */
  int64_t whole;    /* most bytes of a buffer that is not cut */
  int64_t held;     /* most bytes that a block copies of an operand it reads again; 0: none */
} tarn_hw_between;
TARN_API tarn_hw_between tarn_hw_between_of(const tarn_hw *hw);
/* Most results of a kernel whose sums it pays to compute by several threads each; 0: none. */
TARN_API int64_t tarn_hw_shares_sums(const tarn_hw *hw);
TARN_API const tarn_hw_memory *tarn_hw_mem(const tarn_hw *hw,
                                           tarn_hw_level role); /* NULL: the description has none */
/* Can lanes of two registers form a third in one operation, also under a mask? By its triple. */
TARN_API bool tarn_hw_mixes_lanes(const tarn_hw *hw);
/* Does the system of its triple load shared objects of ELF? Else programs are objects. */
TARN_API bool tarn_hw_loads_shared(const tarn_hw *hw);
/* What exact numerics may use of it: no vectors where they flush, its host's neither. hw itself
 * where that is all; else a copy in the arena. */
TARN_API const tarn_hw *tarn_hw_exact(tarn_ctx *cx, const tarn_hw *hw);
TARN_API uint32_t tarn_hw_lanes(const tarn_hw *hw, tarn_dtype t);   /* >= 1 */
TARN_API double tarn_hw_fx_cycles(const tarn_hw *hw, tarn_fxop op); /* per vector */

/* ---------------------------------------------------------------- places */

/* The machines of a description: the outermost host first, the described machine last. A place is
 * the memory that a machine's kernels read and write, and bears the number of the machine that it
 * belongs to. */
#define TARN_HW_MACHINES 4
typedef struct tarn_machines {
  uint32_t n;
  const tarn_hw *hw[TARN_HW_MACHINES];
  uint32_t place[TARN_HW_MACHINES]; /* of each machine: its own, or without a link its host's */
} tarn_machines;
TARN_API tarn_machines tarn_hw_machines(const tarn_hw *hw);
/* Seconds to copy so many bytes from one place to another; INFINITY: no link joins them. */
TARN_API double tarn_hw_link_seconds(const tarn_hw_link *l, bool send,
                                     double bytes); /* 0: no link */
TARN_API double tarn_hw_copy_seconds(const tarn_machines *m, uint32_t from, uint32_t to,
                                     double bytes);

/* ---------------------------------------------------------------- other formats */

/* The text of a description, from VTA's configuration (JSON) and from the header of parameters that
 * Gemmini's generator writes. file: for messages. Raise TARN_BAD_INPUT. */
TARN_API const char *tarn_hw_import_vta(tarn_ctx *cx, const char *text, size_t n, const char *file);
TARN_API const char *tarn_hw_import_gemmini(tarn_ctx *cx, const char *text, size_t n,
                                            const char *file);
/* The architecture as Timeloop reads it (YAML, version 0.4): the memories as storage, the first
 * product as compute. Raises when there is no product. */
TARN_API void tarn_hw_timeloop(tarn_lang *L, const tarn_hw *hw, tarn_buf *b);

/* ---------------------------------------------------------------- what intrinsics mean */

/* A meaning, read. The call of an intrinsic is named HW.INTRINSIC; reading defines it
 * (tarn_call_define). */
typedef struct tarn_hw_meaning {
  const char *call;
  tarn_term term;
  uint32_t nin; /* operands that it reads: all but the result, and that too when it accumulates */
  const tarn_term *in; /* INPUT terms, in the order of the operands */
  bool acc;
  uint32_t immediate; /* set of operands that are immediates: any of the result's dims reads them */
} tarn_hw_meaning;
/* Raises "FILE:LINE:COL: …" when the meaning does not parse or type, has a variable that is no
 * operand, leaves an operand out, or is not of the result's shape and type. */
TARN_API tarn_hw_meaning tarn_hw_meaning_of(tarn_lang *L, const tarn_hw *hw, uint32_t intrinsic);

/* A meaning as one loop nest: epi(reduce_{red} body(operands), accumulator), or without a reduction
 * a map. */
typedef enum tarn_hw_role { TARN_HW_UNIT, TARN_HW_M, TARN_HW_N, TARN_HW_K } tarn_hw_role;
typedef struct tarn_hw_form {
  bool product; /* a reduction over pairs of one element of each of two operands; else a map */
  uint32_t body, red, epi; /* fx of $0 $1 (product) or of all operands (map); reducer; fx of result
                            * $0 and accumulator $1. TARN_NONE when absent */
  uint32_t operand[2];     /* product: which operands $0 and $1 are */
  int64_t m, n, k; /* product: extents of the tile; M varies with $0, N with $1 (or with both), K is
                      reduced */
  tarn_hw_role role[3][TARN_MAX_DIMS]; /* product: what the dims of $0, of $1 and of the result are;
                                          UNIT: it does not vary */
  bool chains; /* epi adds to the accumulator what the reduction would: steps over K may follow one
                  another */
} tarn_hw_form;
/* False when the meaning has neither form. Raises for memory only. */
TARN_API bool tarn_hw_form_of(tarn_lang *L, const tarn_hw_meaning *m, tarn_hw_form *out);
/* The intrinsic adds a product of its first two operands to what its third one held. */
TARN_API bool tarn_hw_sums_products(tarn_lang *L, const tarn_hw *hw, uint32_t intrinsic,
                                    tarn_hw_form *out);
/* What operands of type t of a product may be padded with: the body of two of it is what the
 * reduction begins with. An fx constant, or TARN_NONE. */
TARN_API uint32_t tarn_hw_filler(tarn_lang *L, const tarn_hw_form *f, tarn_dtype t);
/* Extents that loops over elements of type t are worth cutting into, ascending: the tiles of its
 * products of that type, or the lanes of its vectors, twice and four times as many. How many; at
 * most max are stored. */
TARN_API uint32_t tarn_hw_tiles(tarn_lang *L, const tarn_hw *hw, tarn_dtype t, int64_t *out,
                                uint32_t max);
/* A dot-product instruction: lane i of the accumulator grows by the sum over j < k of body(x[i][j],
 * y[i][j]), the elements of a group side by side. */
typedef struct tarn_hw_dot {
  const tarn_hw_intrinsic
      *intrinsic; /* the encoding's arguments: the accumulator, then both operands as described */
  int64_t lanes, k;
  uint32_t operand[2]; /* which operand of the instruction the body's $0 and $1 are */
  bool widens[2];      /* these are bytes that it takes as i16: they are widened in registers */
  bool apart;          /* its last step adds to the accumulator what is in a register of its own */
} tarn_hw_dot;
#define TARN_HW_DOTS 4
/* The instructions that mean a reduction by `red` of `body` over elements of the two types, those
 * of most lanes first, all of the k with which most is multiplied in a cycle. How many; at most max
 * are stored. Raises when the meaning of an integer intrinsic is not valid. */
TARN_API uint32_t tarn_hw_dots(tarn_lang *L, const tarn_hw *hw, uint32_t body, uint32_t red,
                               const tarn_dtype type[2], tarn_hw_dot *out, uint32_t max);
/* How many steps of a reduction by `red` of `body` over elements of the two types its units do at
 * once; 0: it has none. A CPU's are its dot-product instructions. Raises as tarn_hw_dots(). */
TARN_API int64_t tarn_hw_multiplies(tarn_lang *L, const tarn_hw *hw, uint32_t body, uint32_t red,
                                    const tarn_dtype type[2]);
/* Has it a unit that shifts integers to the right, and none that computes on floats? */
TARN_API bool tarn_hw_shifts(tarn_lang *L, const tarn_hw *hw);
/* Notes which operators on numbers of this type its vector units compute: what a map's meaning ends
 * with. */
TARN_API void tarn_hw_vectors(tarn_lang *L, const tarn_hw *hw, tarn_dtype t,
                              bool does[TARN_FX_COUNT]);
/* Does a transfer of its own scale integers by a float as they leave? */
TARN_API bool tarn_hw_scales(const tarn_hw *hw);
/* Are the bodies of two products equal but for the order of factors? exchanged: with $0 and $1 of
 * the first as $1 and $0. */
TARN_API bool tarn_hw_same_product(const tarn_lang *L, uint32_t a, uint32_t b, bool exchanged);
/* Numbers that an instruction can have in a place, lo to hi: one alone where (is …) fixes it;
 * `absent` where it has no such place. */
typedef struct tarn_hw_range {
  int64_t lo, hi;
} tarn_hw_range;
TARN_API tarn_hw_range tarn_hw_range_of(const tarn_hw *hw, const tarn_hw_instruction *x,
                                        uint32_t place, int64_t absent);
static inline bool tarn_hw_has(tarn_hw_range r, int64_t v) { return v >= r.lo && v <= r.hi; }
/* The instruction that is a transfer, of several the one that fixes the fewest of its numbers;
 * immediate: and that can have this one, or NULL. NULL: none. */
TARN_API const tarn_hw_instruction *tarn_hw_mover(const tarn_hw *hw, uint32_t transfer,
                                                  const int64_t *immediate);
/* What an instruction that issues an intrinsic does with what the result held. */
typedef enum tarn_hw_start {
  TARN_HW_GOES_ON, /* the meaning reads it, where it does */
  TARN_HW_BEGINS,  /* it counts as 0: a flag (accumulate …) is 0 */
  TARN_HW_CLEARS   /* nothing is computed, the result becomes 0: a flag (clear …) is 1 */
} tarn_hw_start;
/* The first of these instructions behind that one, or of all; NULL: none. */
TARN_API const tarn_hw_instruction *tarn_hw_runner(const tarn_hw *hw, uint32_t intrinsic,
                                                   tarn_hw_start start,
                                                   const tarn_hw_instruction *behind);
/* Elements side by side in what an accelerator's units take of that type; 0: it has none, or
 * several lengths. */
TARN_API int64_t tarn_hw_entry_elements(const tarn_hw *hw, tarn_dtype type);
/* Has it an intrinsic that multiplies and adds: a product, or a multiply-add over a vector that
 * tiles of registers are made of? Such a unit wants the reduction of a product as one loop.
 * Intrinsics without a valid meaning do not count. */
TARN_API bool tarn_hw_wants_products(tarn_lang *L, const tarn_hw *hw);

#ifdef __cplusplus
}
#endif
#endif
