/* PTX: each region of a nest becomes a kernel, in which each thread does one work item.
 *
 *   model.ptx     the kernels
 *   weights.bin   the constants, one behind the other
 *   launch.json   which kernels run, in which order, on how many threads, with which addresses
 *   model.so      the same to be linked, with the kernels of the host
 *
 * Kernels take the addresses of operands and results, then that of the threads' scratch memory,
 * then, if they have lookups, that of a word which they set where an index is out of range. What is
 * not in PTX by itself (a function of libm) is refused. */
#include "lower/cuda/cuda.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KERNEL 71 /* LLVM's calling convention of PTX kernels */

typedef struct region {
  const char *entry;
  int64_t items;
  uint32_t block;   /* threads */
  bool team;        /* a block does one item */
  uint32_t each;    /* else: threads that do an item */
  uint32_t shared;  /* bytes that its launch asks for */
  uint64_t scratch; /* bytes of a block's item, or of a thread */
} region;
typedef struct function {
  uint32_t n;
  region *r;
} function;
typedef struct cuda {
  low_module *M;
  const tarn_kprog *p;
  cuda_program *program;
  TARN_VEC(function *) function; /* by its id */
  const char **from;             /* the kernel that a function was made for first, by id */
} cuda;

/* ---------------------------------------------------------------- kernels */
static LLVMValueRef special(low_module *M, const char *name) {
  LLVMValueRef v =
      low_intrinsic(M, tarn_format(M->cx, "llvm.nvvm.read.ptx.sreg.%s", name), NULL, 0, NULL, 0);
  return LLVMBuildZExtOrBitCast(M->b, v, M->index, "");
}
static void annotate(low_module *M, LLVMValueRef f, const char *what, uint32_t v) {
  LLVMMetadataRef m[3] = {LLVMValueAsMetadata(f), LLVMMDStringInContext2(M->lc, what, strlen(what)),
                          LLVMValueAsMetadata(LLVMConstInt(M->i32, v, 0))};
  LLVMAddNamedMetadataOperand(M->m, "nvvm.annotations",
                              LLVMMetadataAsValue(M->lc, LLVMMDNodeInContext2(M->lc, m, 3)));
}
static LLVMValueRef begin_kernel(low_module *M, const region *r, uint32_t nin, uint32_t nparam) {
  LLVMTypeRef t[TARN_MAX_OPERANDS + 10];
  for (uint32_t i = 0; i < nparam; i++) t[i] = M->ptr;
  LLVMValueRef f = LLVMAddFunction(M->m, r->entry, LLVMFunctionType(M->vt, t, nparam, 0));
  LLVMSetFunctionCallConv(f, KERNEL);
  annotate(M, f, "kernel", 1), annotate(M, f, "maxntidx", r->block);
  annotate(M, f, "minctasm", 1); /* else ptxas spills to have more blocks at once */
  for (uint32_t i = 0; i < nparam; i++) {
    low_attribute(M, f, 1 + i, "noalias");
    if (i < nin) low_attribute(M, f, 1 + i, "readonly");
  }
  return f;
}
/* Scratch memory of the item; how much that is, is known when all has been emitted. */
static LLVMValueRef begin_scratch(low_fn *E, LLVMValueRef memory, LLVMValueRef item) {
  low_module *M = E->M;
  LLVMValueRef size = LLVMBuildFreeze(M->b, low_i64(M, 0), "size");
  LLVMValueRef by = LLVMBuildMul(M->b, LLVMBuildZExtOrBitCast(M->b, item, M->i64, ""), size, "");
  E->scratch = LLVMBuildInBoundsGEP2(M->b, M->i8, memory, &by, 1, "");
  return size;
}
/* The work item of this block, warp or thread; *all: the number of the thread among those of all
 * blocks. */
static LLVMValueRef emit_item(low_fn *E, const region *r, LLVMValueRef *all) {
  low_module *M = E->M;
  LLVMValueRef block = special(M, "ctaid.x"), thread = special(M, "tid.x");
  E->thread = thread, E->threads = r->block;
  *all = LLVMBuildNUWMul(M->b, block, low_index(M, r->block), "");
  *all = LLVMBuildNUWAdd(M->b, *all, thread, "");
  if (r->team) return block;
  if (r->each == 1) return *all;
  E->lane = LLVMBuildURem(M->b, thread, low_index(M, r->each), "");
  return LLVMBuildUDiv(M->b, *all, low_index(M, r->each), "");
}
static void size_region(const tarn_plan_nest *plan, uint32_t no, region *r) {
  const tarn_hw *hw = plan->hw;
  int64_t shared = tarn_plan_shared(plan, no), own = hw->warps.shared;
  r->block = (uint32_t)tarn_plan_block(plan, no);
  r->each = (uint32_t)tarn_plan_each(plan, no);
  r->team = plan->team || plan->stage[no].tiled;
  r->shared = own && shared > own ? (uint32_t)shared : 0;
}
static void emit_region(cuda *g, const tarn_plan_nest *plan, uint32_t no, region *r, uint32_t nin,
                        uint32_t nout) {
  low_module *M = g->M;
  low_fn E;
  int64_t shared = tarn_plan_shared(plan, no);
  LLVMValueRef in[TARN_MAX_OPERANDS], out[8], thread;
  size_region(plan, no, r);
  bool looks = tarn_nest_looks_up(plan->n);
  uint32_t scratch = nin + nout, nparam = scratch + 1 + looks;
  LLVMValueRef f = begin_kernel(M, r, nin, nparam);
  low_fn_begin(&E, M, f, NULL);
  for (uint32_t i = 0; i < nin + nout; i++)
    *(i < nin ? &in[i] : &out[i - nin]) = LLVMGetParam(f, i);
  E.scratch_bytes = &r->scratch;
  M->index = tarn_plan_narrow(plan, no) ? M->i32 : M->i64;
  if (shared) E.shared = low_shared_memory(M, shared, r->shared > 0);
  LLVMValueRef item = emit_item(&E, r, &thread);
  /* Locals are made at the end of the entry block, behind what they are made of. */
  LLVMBasicBlockRef work = low_block(&E, "work");
  LLVMBasicBlockRef done = low_block(&E, "done");
  LLVMValueRef size = begin_scratch(&E, LLVMGetParam(f, scratch), r->team ? item : thread);
  LLVMValueRef has = LLVMBuildICmp(M->b, LLVMIntULT, item, low_index(M, r->items), "");
  E.entry = LLVMGetInsertBlock(M->b);
  LLVMBuildCondBr(M->b, r->team ? LLVMConstInt(M->i1, 1, 0) : has, work, done);
  low_begin(&E, work);
  if (looks) low_lookups_begin(&E);
  low_nest_emit(low_nest_new(M, plan), no, &E, in, out, item, NULL);
  if (looks) low_lookups_end(&E, LLVMGetParam(f, scratch + 1));
  LLVMBuildBr(M->b, done);
  low_begin(&E, done);
  LLVMBuildRetVoid(M->b);
  LLVMReplaceAllUsesWith(size, low_i64(M, (int64_t)r->scratch));
  LLVMInstructionEraseFromParent(size);
  M->index = M->i64;
}
static function *function_of(cuda *g, const tarn_kernel *k) {
  low_module *M = g->M;
  uint32_t id = low_kernel_id(M, k->plan);
  if (id < g->function.n) return g->function.p[id];
  function *f = TARN_NEW(M->cx, function);
  tarn_push(M->cx, &g->function, f);
  const tarn_plan_nest *plan = k->plan->nest;
  f->n = tarn_plan_regions(plan);
  f->r = TARN_ARRAY(M->cx, region, f->n);
  for (uint32_t i = 0; i < f->n; i++) {
    region *r = &f->r[i];
    r->items = tarn_plan_items(plan, i);
    r->entry = tarn_format(M->cx, "%s_n%u_%u", M->o->name, id, i);
    if (r->items) emit_region(g, plan, i, r, k->nin, k->nout);
  }
  g->from[id] = k->name;
  return f;
}

/* ---------------------------------------------------------------- launches */
static void step(cuda *g, uint32_t no) {
  const tarn_kernel *k = &g->p->ker[no];
  tarn_plan_operand in[TARN_MAX_OPERANDS], out[8];
  if (k->kind != TARN_K_NEST) return;
  if (k->nin > TARN_MAX_OPERANDS || k->nout > 8)
    tarn_raise(g->M->cx, TARN_INTERNAL, "lower: %s: too many operands", k->name);
  tarn_plan_operands(g->p, k, in, out);
  const function *f = function_of(g, k);
  bool looks = tarn_nest_looks_up(tarn_nest_get(g->M->L, k->nest));
  int64_t rows = low_lookup_rows(g->M->L, k);
  if (rows < 1 || rows > TARN_RT_ANY_ROWS) rows = TARN_RT_ANY_ROWS;
  for (uint32_t i = 0; i < f->n; i++) {
    const region *r = &f->r[i];
    if (!r->items) continue;
    int64_t grid = r->team ? r->items : tarn_ceildiv(r->items * r->each, r->block);
    int64_t scratch = (r->team ? grid : grid * r->block) * (int64_t)r->scratch;
    tarn_rt_launch l = {.entry = r->entry, .kernel = no, .block = r->block, .shared = r->shared};
    l.rows = looks ? (uint32_t)rows : 0; /* its last parameter is a flag then: emit_region() */
    cuda_launch(g->program, l, grid, scratch, in, out);
  }
}

/* ---------------------------------------------------------------- what PTX has */
static bool is_known(const char *name) {
  static const char *const list[] = {"llvm.nvvm.",       "llvm.fma.",
                                     "llvm.fmuladd.",    "llvm.sqrt.",
                                     "llvm.fabs.",       "llvm.copysi",
                                     "llvm.floor.",      "llvm.ceil.",
                                     "llvm.trunc.",      "llvm.rint.",
                                     "llvm.nearby",      "llvm.roundeven",
                                     "llvm.minnum.",     "llvm.maxnum.",
                                     "llvm.minimum.",    "llvm.maximu",
                                     "llvm.smin.",       "llvm.smax.",
                                     "llvm.umin.",       "llvm.umax.",
                                     "llvm.abs.",        "llvm.fptosi.",
                                     "llvm.fptoui.",     "llvm.ctlz.",
                                     "llvm.cttz.",       "llvm.ctpop.",
                                     "llvm.lifetime.",   "llvm.assume",
                                     "llvm.memset.",     "llvm.memcpy.",
                                     "llvm.fshl.",       "llvm.fshr.",
                                     "llvm.uadd.sat.",   "llvm.usub.sat.",
                                     "llvm.bitreverse.", "llvm.bswap.",
                                     "llvm.is.fpclas",   "llvm.experimental.noalias"};
  for (uint32_t i = 0; i < sizeof list / sizeof *list; i++)
    if (!strncmp(name, list[i], strlen(list[i]))) return true;
  return false;
}
/* The name of the kernel that a call stands in. */
static const char *caller(const cuda *g, LLVMValueRef callee) {
  size_t n;
  LLVMUseRef u = LLVMGetFirstUse(callee);
  LLVMValueRef x = LLVMGetUser(u);
  const char *entry = LLVMGetValueName2(LLVMGetBasicBlockParent(LLVMGetInstructionParent(x)), &n);
  for (uint32_t i = 0; i < g->function.n; i++)
    for (uint32_t k = 0; k < g->function.p[i]->n; k++)
      if (!strcmp(g->function.p[i]->r[k].entry, entry)) return g->from[i];
  return entry;
}
static void check_calls(const cuda *g) {
  for (LLVMValueRef f = LLVMGetFirstFunction(g->M->m); f; f = LLVMGetNextFunction(f)) {
    size_t n;
    const char *name = LLVMGetValueName2(f, &n);
    if (!LLVMIsDeclaration(f) || !LLVMGetFirstUse(f) || is_known(name)) continue;
    tarn_raise(g->M->cx, TARN_BAD_INPUT,
               "kernel %s: %s is not in PTX, and there is no approximation of it%s", caller(g, f),
               name, g->M->contract ? "" : " with --numerics exact");
  }
}

/* ---------------------------------------------------------------- all of it */
typedef struct job {
  const tarn_kprog *p;
  const tarn_memory_plan *plan;
  const tarn_lower_options *o;
  unsigned wrote;
} job;
static void lower(tarn_ctx *cx, void *arg) {
  job *j = arg;
  low_module *M = low_module_new(j->p, j->o, &j->wrote);
  LLVMTargetMachineRef tm = low_machine(M);
  cuda g = {.M = M, .p = j->p, .program = cuda_program_new(cx, j->p, j->plan)};
  g.from = TARN_ARRAY(cx, const char *, j->p->nker + 1);
  for (uint32_t k = 0; k < j->p->nker; k++) step(&g, k);
  cuda_functions(M);
  low_optimise(M, tm);
  check_calls(&g);
  if (M->o->emit & TARN_EMIT_LL) low_write_text(M);
  if (!(M->o->emit & TARN_EMIT_PTX)) return;
  LLVMMemoryBufferRef s = low_generate(M, tm, LLVMAssemblyFile);
  tarn_write_file(cx, low_path(M, "ptx"), LLVMGetBufferStart(s), LLVMGetBufferSize(s));
  low_wrote(M, "ptx");
  const tarn_lower_program one = {.p = j->p, .plan = j->plan};
  low_weights(M, &(tarn_lower_sizes){.nprogram = 1, .program = &one},
              tarn_format(cx, "%s/weights.bin", M->o->dir));
  cuda_write_launches(g.program, tarn_format(cx, "%s/launch.json", M->o->dir));
  if (M->o->emit & TARN_EMIT_SO)
    cuda_host(g.program, j->o, LLVMGetBufferStart(s), LLVMGetBufferSize(s));
}
void tarn_lower_cuda(const tarn_kprog *p, const tarn_memory_plan *plan,
                     const tarn_lower_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  job j = {p, plan, o, 0};
  if (p->machines.n > 1)
    tarn_raise(cx, TARN_BAD_INPUT,
               "%s names its host %s: leave it out, a program's host is implied", p->hw->name,
               p->hw->host->name);
  if (!tarn_lower_name_ok(o->name))
    tarn_raise(cx, TARN_USAGE, "%s: no prefix of names in C", o->name);
  if ((o->emit & TARN_EMIT_SO) && !o->here)
    tarn_raise(cx, TARN_USAGE, "%s: model.so needs a description of the host", p->hw->name);
  tarn_status st = tarn_protect(cx, lower, &j);
  if (st == TARN_OK) return;
  unlink(tarn_format(cx, "%s/model.ptx", o->dir));
  tarn_reraise(cx, st);
}
