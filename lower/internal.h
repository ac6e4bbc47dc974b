/* lower: what its files share.
 *
 * program.c    the module: run, tables        kernel.c     kernel functions, work items
 * sizes.c      programs of several sizes      same.c       constants that they share
 * family.c     one code for many of them      unify.c      made of some, growth.c by numbers
 * load.c       runs a program                 load_sizes.c which of several
 * memory.c     offsets of buffers             consts.c     constants to the file
 * header.c     model.h                        object.c     LLVM's passes, the object, linking
 * blob.c       where the constants lie       link.c       model.so, model.wasm
 * web.c        what loads that in JavaScript
 * nest.c       statements, loops              reduce.c     leaves, accumulators
 * access.c     loads and stores               sharing.c    loads that copies share
 * transpose.c  register transposes            lanes.c      lane order
 * bilinear.c   constant matrices              dot.c        dot-product instructions
 * fetch.c      what a GPU's block holds       offset.c     offsets from index expressions
 * prefetch.c   prefetches                     interleave.c copies of long code interleaved
 * value.c      scalar expressions             math.c       exp, tanh, erf, log, sin, cos
 * half.c       conversions of f16, bf16
 * calls.c      gather and opaque kernels     isa.c  instructions that LLVM does not find
 * written.c    kernels written by hand
 *
 * What is emitted is the loop program of a plan (plan/code.h), statement by statement; nothing
 * about a kernel is decided here but which unrolled copies share a load. Every level is a variable;
 * its environment says what stands for it at the moment: a number, a loop's counter or the lanes of
 * a vector. Masks are needed for padding only. */
#ifndef TARN_LOWER_INTERNAL_H
#define TARN_LOWER_INTERNAL_H
#include "lower/lower.h"
#include "plan/plan.h"
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/* ---- isa.c: all that emitted code takes from a description ---- */
typedef struct low_regs {
  uint32_t bits;   /* of a vector register; 0: there is none */
  uint32_t count;  /* vector registers */
  uint32_t warp;   /* threads of a GPU that run in step; 0: it is none */
  int64_t line;    /* bytes of a line of L1 */
  bool masks;      /* loads and stores of some lanes */
  bool slow_masks; /* a masked store is slower than stores of the pieces */
} low_regs;
low_regs low_regs_of(const tarn_hw *hw);

/* ---- one module being emitted ---- */
/* Where the constants lie (blob.c): in reach of the code; in the object, found by an address; in a
 * file of their own. */
typedef enum { LOW_NEAR, LOW_FAR, LOW_APART } low_place;
typedef struct low_module {
  tarn_ctx *cx;
  tarn_lang *L;
  const tarn_hw *hw;
  low_regs regs;
  const tarn_lower_options *o;
  bool contract;
  low_place place; /* of the constants */
  bool elf;        /* objects are ELF */
  unsigned *wrote; /* files that a failure takes back: low_wrote() */
  LLVMContextRef lc;
  LLVMModuleRef m;
  LLVMBuilderRef b;
  LLVMTypeRef i1, i8, i32, i64, ptr, f32, f64, vt; /* vt: void */
  LLVMTypeRef f16;   /* in memory: half, or i16 where the processor does not convert it */
  LLVMTypeRef size;  /* size_t */
  LLVMTypeRef index; /* of counters and numbers of elements in what is being emitted: i64, or i32
                        where the plan of a GPU's kernel says that they fit */
  tarn_intern *fill; /* fill pages by (dtype, bits, size) */
  TARN_VEC(LLVMValueRef) fills;
  tarn_map *kernels; /* a plan -> the number of its function */
  uint32_t nkernel;  /* numbers */
  TARN_VEC(struct low_kernel *) kernel;
  uint64_t per_thread;                  /* most scratch of any kernel */
  bool pooled;                          /* some kernel needs a pool: opaque */
  bool merges;                          /* families may have functions in common */
  const struct low_device_part *device; /* NULL, or what a GPU runs */
  LLVMValueRef gpu;                     /* its table */
  bool at_most_0; /* arguments of exp in what is being emitted are at most 0, or NaN */
  bool nan_shows; /* NaNs need not be kept in what is being emitted */
  const struct low_sample *sample; /* NULL, or which program of a family is emitted: family.h */
} low_module;

/* ---- a sample of a family (family.c): its functions take the size as their last argument. Each of
 * these does nothing elsewhere ---- */
/* Adds the argument to the types and the arguments of a function; how many there are then. f: the
 * function that calls. */
uint32_t low_size_type(const low_module *M, LLVMTypeRef *t, uint32_t n);
uint32_t low_size_arg(const low_module *M, LLVMValueRef f, LLVMValueRef *a, uint32_t n);
void low_size_name(const low_module *M, LLVMValueRef f); /* f takes it */
/* As much as the largest sample needs here, of what this one needs so much. */
int64_t low_size_most(const low_module *M, int64_t n);

/* A function of LLVM's, by name and types; declared once. */
LLVMValueRef low_declare(low_module *M, const char *name, LLVMTypeRef type);
LLVMValueRef low_call(low_module *M, const char *name, LLVMTypeRef ret, LLVMValueRef *arg,
                      unsigned n);
/* An overloaded intrinsic: "llvm.sqrt" on the type of arg[0]. */
LLVMValueRef low_intrinsic(low_module *M, const char *name, LLVMTypeRef *over, unsigned nover,
                           LLVMValueRef *arg, unsigned n);
LLVMValueRef low_i64(const low_module *M, int64_t v);
LLVMValueRef low_index(const low_module *M, int64_t v);
/* The same as a number that LLVM computes nothing with until low_open_end(): of an open dim, whose
 * number of trips follows when the program runs. */
LLVMValueRef low_open(low_module *M, int64_t v);
void low_open_end(LLVMModuleRef m);
/* v as n lanes of it; n = 1: v itself. */
LLVMValueRef low_splat(low_module *M, LLVMValueRef v, uint32_t n);
LLVMTypeRef low_vec(LLVMTypeRef t, uint32_t n); /* n = 1: t itself */
uint32_t low_lanes_of(LLVMValueRef v);          /* 1 for a scalar */
LLVMValueRef low_shuffle(low_module *M, LLVMValueRef a, LLVMValueRef b, const int *index,
                         uint32_t n); /* -1: any */

/* ---- values (value.c): a scalar or a vector, computed in its compute type: f16 and bf16 in f32
 * ---- */
LLVMTypeRef low_memory_type(const low_module *M, tarn_dtype t);
LLVMTypeRef low_compute_type(const low_module *M, tarn_dtype t);
LLVMValueRef low_from_memory(low_module *M, tarn_dtype t, LLVMValueRef v);
LLVMValueRef low_to_memory(low_module *M, tarn_dtype t, LLVMValueRef v);
/* Conversions between f32 and what lies in memory, of any lanes: half.c. */
LLVMTypeRef low_f16_type(const low_module *M, LLVMTargetMachineRef tm);
LLVMValueRef low_f16_bits(low_module *M, LLVMValueRef x);
LLVMValueRef low_f16_number(low_module *M, LLVMValueRef v);
void low_f16_compares(low_module *M); /* after LLVM's passes: comparisons are of f32 */
LLVMValueRef low_bf16_bits(low_module *M, LLVMValueRef x);
LLVMValueRef low_bf16_number(low_module *M, LLVMValueRef v);
/* An fx constant as n lanes. */
LLVMValueRef low_fx_const(low_module *M, uint32_t f, uint32_t n);
/* f over holes (values of n lanes each). *type: its dtype. */
LLVMValueRef low_fx(low_module *M, uint32_t f, const LLVMValueRef *hole, const tarn_dtype *htype,
                    uint32_t nhole, uint32_t n, tarn_dtype *type);
/* A float operator of one operand by our own approximation (f32 or f64, any lanes); NULL when there
 * is none. */
LLVMValueRef low_math(low_module *M, tarn_fxop op, LLVMValueRef x);

/* Instructions on vectors of f32 that LLVM does not find by itself (isa.c). */
typedef enum low_isa {
  LOW_ISA_SCALE,       /* p·2^n of (p, n, what masked lanes keep, mask, rounding mode) */
  LOW_ISA_PERMUTE,     /* lanes of a register by index; x86 looks at an index's last bits only */
  LOW_ISA_PERMUTE_INT, /* the same of i32 */
  LOW_ISA_MAX,         /* (x, y): x if it is greater, else y, also where one is NaN */
  LOW_ISA_MIN
} low_isa;
typedef struct low_isa_row {
  low_isa what;
  uint32_t lanes;
  bool rounds; /* takes a rounding mode behind its operands */
  const char *feature, *name;
} low_isa_row;
/* LLVM's intrinsic for so many lanes; NULL where the machine has none. */
const low_isa_row *low_isa_find(const low_module *M, low_isa what, uint32_t lanes);

/* ---- environments and accesses ---- */
/* A number of elements: v + c + lane·stride + each lane's vec. Where lanes are rows (low_fn.row) it
 * is (lane mod row)·stride + (lane / row)·rows; from low_even() on, the stride is that of all lanes
 * then, too, or nothing. */
typedef struct low_off {
  LLVMValueRef v; /* of M->index, or where it is added to a base i64; or NULL */
  int64_t c, stride, rows;
  LLVMValueRef vec; /* lanes of these, or NULL */
} low_off;

#define LOW_CACHE 64
typedef struct low_loaded {
  uint64_t key; /* which of the unrolled copies */
  uint32_t gen, lanes;
  LLVMValueRef v;
  LLVMValueRef pair[2]; /* of lanes at a step of two: the registers that hold the elements between
                           them too, or NULL */
} low_loaded;
typedef struct low_asked { /* an element that was prefetched in this block: v[0] + v[1] + c */
  LLVMValueRef v[2];
  int64_t c;
} low_asked;
typedef struct low_access {
  const tarn_plan_access *p;
  LLVMValueRef base;       /* set when the function is begun */
  struct low_access *look; /* of its stage */
  uint32_t held;           /* bit g: guard g has been tested here, and holds */
  uint32_t depth;          /* levels before it have been entered, or add nothing */
  low_off *out, *in; /* by level: what is known of the offset outside of it; `in`: the part that
                        depends on p->inner */
  low_loaded cache[LOW_CACHE];
  low_asked asked[LOW_CACHE];
  uint32_t nasked, asked_gen;
} low_access;

/* A function being emitted. */
typedef struct low_fn {
  low_module *M;
  LLVMValueRef fn;
  LLVMBasicBlockRef entry; /* for allocas; ends with a branch to the body */
  LLVMValueRef scratch;
  uint64_t *scratch_bytes; /* of the kernel */
  const tarn_plan_space *space;
  tarn_plan_at env[PLAN_MAX_VARS];     /* of each level */
  LLVMValueRef counter[PLAN_MAX_VARS]; /* where that is a loop's */
  LLVMValueRef ended[PLAN_MAX_VARS];   /* where a loop over an open dim has ended */
  uint32_t lanes;                      /* of values computed now */
  uint32_t row; /* so many of them make a row, where they are rows of one dim, steps of another; 0:
                   they are of one dim */
  LLVMValueRef thread; /* its number in a block of `threads`, where they are a team */
  int64_t threads;
  LLVMValueRef lane;    /* of the thread in its warp, where the lanes of a reduction are threads */
  bool by_lane;         /* each of them does another step now */
  LLVMValueRef shared;  /* the block's shared memory, of its address space; NULL: none */
  LLVMValueRef outside; /* i1 in memory: a lookup was out of range; NULL: there is none */
  bool halves;          /* loads keep the lane order of lanes.c now */
  uint32_t gen;         /* changes with the basic block: what is cached holds for one */
} low_fn;
LLVMValueRef low_alloca(low_fn *E, LLVMTypeRef t,
                        int64_t n); /* array of n in the entry block, aligned to 64 */
/* Local memory of one thread: on the stack, or in its part of the workspace when large. */
LLVMValueRef low_local(low_fn *E, int64_t bytes);
LLVMValueRef low_scratch(low_fn *E, int64_t bytes); /* in the workspace */
/* Memory of all threads of a block: its own, or (`dynamic`) what its launch asks for. */
LLVMValueRef low_shared_memory(low_module *M, int64_t bytes, bool dynamic);
LLVMBasicBlockRef low_block(low_fn *E, const char *name);
void low_begin(low_fn *E, LLVMBasicBlockRef b); /* continues there */

/* lanes.c */
#define LOW_HALVES 8
uint32_t
low_lane(const low_fn *E,
         uint32_t i); /* which lane lies in place i of what is loaded now, and the reverse */
LLVMValueRef low_reordered(const low_fn *E, bool is,
                           LLVMValueRef v); /* into that order, or back; LOW_HALVES lanes */

/* offset.c */
low_off low_eval(low_fn *E, const tarn_plan_lin *a);   /* a number that is compared */
low_off low_offset(low_fn *E, const tarn_plan_lin *a); /* one that is added to a base: i64 */
LLVMValueRef low_widened(const low_module *M, LLVMValueRef index);
low_off low_even(low_fn *E, low_off o);
void low_range(const low_fn *E, const tarn_plan_lin *a, int64_t *lo,
               int64_t *hi); /* from what is known now */
LLVMValueRef low_off_scalar(low_fn *E, const low_off *o);

/* look.c: indices as i64, counted from the start; one outside of the extent is 0, and sets the
 * flag. */
LLVMValueRef low_index_inside(low_module *M, LLVMValueRef i, tarn_dtype type, int64_t extent,
                              LLVMValueRef outside);
/* Of a function whose nest has lookups: before the nest, and behind it, where `to` is set if one
 * was out of range: a byte, or on a GPU a word of 32 bits. */
void low_lookups_begin(low_fn *E);
void low_lookups_end(low_fn *E, LLVMValueRef to);
/* Of how many rows a kernel's lookups name one; 0: none is read. LOW_SEVERAL: its tables differ. */
enum { LOW_SEVERAL = -1 };
int64_t low_lookup_rows(const tarn_lang *L, const tarn_kernel *k);

/* access.c */
/* Prefetches the line at p plus so many bytes: into all caches (3), L2 and beyond (2), L3 (1). */
void low_prefetch(low_module *M, LLVMValueRef p, LLVMValueRef bytes, bool write, unsigned locality);
/* look: lookups of its stage. Rows that depend on no loop are read here. */
void low_access_ready(low_fn *E, low_access *a, low_access *look);
void low_access_enter(low_fn *E, low_access *a, uint32_t level); /* env[level] has just been set */
void low_access_leave(low_access *a, uint32_t level);
const low_off *low_access_at(low_access *a, uint32_t level); /* outside of that level */
LLVMValueRef low_load(low_fn *E, low_access *a,
                      uint32_t level); /* all levels before `level` are entered; compute type */
/* k elements side by side for each lane, at the k counts of `level`, which is the innermost: a
 * vector of lanes × k as in memory. k: a power of two, at most 16. */
LLVMValueRef low_load_group(low_fn *E, low_access *a, uint32_t level, uint32_t k);
void low_store(low_fn *E, low_access *a, uint32_t level, LLVMValueRef v);
void low_store_at(low_fn *E, const low_access *a, LLVMValueRef p,
                  LLVMValueRef v); /* all of v, side by side from p on */
LLVMValueRef low_resized(low_module *M, LLVMValueRef v, uint32_t n,
                         uint32_t to); /* the first lanes, or poison behind */
LLVMValueRef low_test(low_fn *E,
                      const tarn_plan_guard *g); /* of a guard that is the same for all lanes */
/* p + o, of one lane. The constant is added last: it becomes a part of the instruction. */
LLVMValueRef low_address(low_fn *E, tarn_dtype type, LLVMValueRef p, const low_off *o);

/* ---- kernels ---- */
typedef struct low_kernel {
  LLVMValueRef fn; /* void (ptr scratch, ptr pool, ptr in…, ptr out…) */
  LLVMTypeRef type;
  uint64_t scratch; /* bytes a thread */
} low_kernel;
/* The loops of a plan into function E, from the shared levels (or the one stage's) on. */
typedef struct low_nest low_nest;
low_nest *low_nest_new(low_module *M, const tarn_plan_nest *p);
/* Emits items begin … end-1 of a region, or with end NULL item begin; in, out: pointers. */
/* How many items the parallel levels of a list make. */
LLVMValueRef low_items(low_module *M, const tarn_plan_list *list);
void low_nest_emit(low_nest *n, uint32_t region, low_fn *E, const LLVMValueRef *in,
                   const LLVMValueRef *out, LLVMValueRef begin, LLVMValueRef end);

/* kernel.c */
/* An attribute without a value, of a function (at ~0u), its result (0) or a parameter. */
void low_attribute(low_module *M, LLVMValueRef f, unsigned at, const char *name);
/* Which of the program's inputs, or outputs, a buffer is; TARN_NONE: none. */
uint32_t low_port(const uint32_t *list, uint32_t n, uint32_t buf);
/* The number of a plan's function; of a new one, the next. */
uint32_t low_kernel_id(low_module *M, const tarn_plan *plan);
low_kernel *low_kernel_nest(low_module *M, const tarn_kernel *k); /* the function of its plan */
/* One of this name, even if there is one for the plan already. */
low_kernel *low_kernel_new(low_module *M, const char *name, const tarn_kernel *k);
uint32_t low_kernel_operands(const low_module *M, const tarn_kernel *k); /* of a nest */
LLVMTypeRef low_kernel_type(const low_module *M, uint32_t operands);
const char *low_kernel_name(const low_module *M, uint32_t id);
void low_fn_begin(low_fn *E, low_module *M, LLVMValueRef fn, const tarn_plan_space *space);
/* other.c: emits the call into the function of a step; arguments are pointers. Returns an i32
 * status or NULL. */
/* Starts segment k->payload of the device; its code. */
LLVMValueRef low_device(low_module *M, LLVMValueRef fn, const tarn_kprog *p, const tarn_kernel *k);
LLVMValueRef low_other(low_module *M, LLVMValueRef fn, const tarn_kprog *p, const tarn_kernel *k,
                       LLVMValueRef pool, const LLVMValueRef *in, const LLVMValueRef *out);

LLVMValueRef low_function(low_module *M, const char *name,
                          LLVMTypeRef type); /* internal, with the target's attributes */
/* at: 1 + an operand's number, or LLVMAttributeFunctionIndex. */
void low_attribute(low_module *M, LLVMValueRef f, unsigned at, const char *name);

/* program.c */
/* Private constant tables. */
LLVMValueRef low_table(low_module *M, LLVMTypeRef elem, LLVMValueRef *v, uint32_t n);
LLVMValueRef low_text(low_module *M, const char *s);
LLVMValueRef low_i64_table(low_module *M, const int64_t *v, uint32_t n);
void low_program(low_module *M, const tarn_lower_sizes *s);
/* So many bytes, and what each of the threads (i32) needs, as size_t. */
LLVMValueRef low_workspace(const low_module *M, LLVMValueRef threads, int64_t bytes);
const char *low_symbol(const low_module *M, const char *what); /* NAME_what */

/* sizes.c: the run that chooses among programs, and its tables. */
typedef struct low_ready {
  LLVMValueRef run, model, family; /* a family's run takes the size behind the others */
} low_ready;
void low_sizes(low_module *M, const tarn_lower_sizes *s, const low_ready *ready);
/* What size k may be in a program. */
tarn_size_range low_size_range(const tarn_lower_program *p, uint32_t k);
/* same.c: do constants b have the same bytes, those of p as far as they go? Raises. */
bool low_same_constant(const tarn_kprog *p, const tarn_kprog *q, uint32_t b);

/* cuda/host.c */
struct tarn_rt_gpu;
LLVMValueRef low_gpu_table(low_module *M, const struct tarn_rt_gpu *g);

/* cpu.c */
/* The part of a program that a GPU runs. */
typedef struct low_device_part {
  const struct tarn_rt_gpu *gpu;
  const tarn_hw *hw;
} low_device_part;
/* tarn_lower_cpu(); device: NULL, or what TARN_K_DEVICE kernels start. */
void low_cpu(const tarn_kprog *p, const tarn_memory_plan *plan, const tarn_lower_options *o,
             const low_device_part *device);
/* In the enclosing protected call. wrote: see low_wrote(). */
low_module *low_module_new(const tarn_kprog *p, const tarn_lower_options *o, unsigned *wrote);
/* object.c */
const char *low_path(const low_module *M, const char *ext); /* of model.ext */
LLVMTargetMachineRef low_machine(low_module *M);            /* by the description; M's layout too */
void low_optimise(low_module *M, LLVMTargetMachineRef tm);
void low_write_text(low_module *M); /* model.ll */
LLVMMemoryBufferRef low_generate(low_module *M, LLVMTargetMachineRef tm, LLVMCodeGenFileType type);
void low_object(low_module *M, const tarn_lower_sizes *s);
/* blob.c */
void low_blob_place(low_module *M, const tarn_lower_sizes *s); /* sets M->place */
/* The symbol of the constants, NULL when they lie apart, and that of their address, NULL when they
 * lie near: declared until the passes have run, then defined. */
LLVMValueRef low_blob(const low_module *M);
LLVMValueRef low_blob_address(const low_module *M);
void low_blob_define(low_module *M, const tarn_lower_sizes *s);
/* model.o, of LLVM's object. */
void low_write_object(low_module *M, const tarn_lower_sizes *s, const char *from, size_t n);
/* The constants as they lie behind one another, in a file of their own. */
void low_weights(low_module *M, const tarn_lower_sizes *s, const char *path);
/* link.c: model.so; model.wasm, if lld is there. */
void low_link_shared(low_module *M);
bool low_link_wasm(low_module *M);
/* web.c: model.wasm, and what loads it in JavaScript. */
void low_web(low_module *M, const tarn_lower_sizes *s);
/* consts.c: where constants are written; `path` is for messages. To be ended before the file is
 * closed, which raises what went wrong; when something else raises it ends by itself. */
typedef struct low_sink low_sink;
low_sink *low_sink_new(tarn_ctx *cx, int fd, const char *path);
void low_sink_end(low_sink *s);
/* Constant b, laid out: exactly tarn_buffer_bytes() bytes from `at` on. Raises. */
void low_const_write(const tarn_kprog *p, uint32_t b, low_sink *s, off_t at);
/* header.c */
void low_wrote(low_module *M, const char *ext); /* model.ext is there (cpu.c) */
void low_header(low_module *M, const tarn_lower_sizes *s);

#endif
