/* Programs of several sizes in one module: NAME_run takes the sizes and runs the first program that
 * serves them, NAME_workspace says how much that one needs, NAME_sizes has tables of them
 * (runtime/rt.h). */
#include "lower/family.h"
#include "runtime/rt.h"

typedef struct chooser {
  low_module *M;
  const tarn_lower_sizes *s;
  const low_ready *ready;
  LLVMValueRef fn;
} chooser;

static LLVMBasicBlockRef block(const chooser *c, const char *name) {
  return LLVMAppendBasicBlockInContext(c->M->lc, c->fn, name);
}
static void go_to(const chooser *c, LLVMBasicBlockRef b) { LLVMPositionBuilderAtEnd(c->M->b, b); }

tarn_size_range low_size_range(const tarn_lower_program *p, uint32_t k) {
  const tarn_lower_family *f = p->family;
  if (!f) return (tarn_size_range){p->size[k], p->size[k], 1};
  return (tarn_size_range){f->at.lo[k], f->at.hi[k], f->at.step[k]};
}
static LLVMValueRef size_at(const chooser *c, uint32_t i) {
  low_module *M = c->M;
  LLVMValueRef at = low_i64(M, i);
  LLVMValueRef p = LLVMBuildInBoundsGEP2(M->b, M->i64, LLVMGetParam(c->fn, 0), &at, 1, "");
  return LLVMBuildLoad2(M->b, M->i64, p, "");
}
static LLVMValueRef is_in(const chooser *c, LLVMValueRef v, tarn_size_range r) {
  low_module *M = c->M;
  if (r.lo == r.hi) return LLVMBuildICmp(M->b, LLVMIntEQ, v, low_i64(M, r.lo), "");
  LLVMValueRef above = LLVMBuildICmp(M->b, LLVMIntSGE, v, low_i64(M, r.lo), "");
  LLVMValueRef below = LLVMBuildICmp(M->b, LLVMIntSLE, v, low_i64(M, r.hi), "");
  LLVMValueRef is = LLVMBuildAnd(M->b, above, below, "");
  if (r.step == 1) return is;
  LLVMValueRef rest = LLVMBuildSub(M->b, v, low_i64(M, r.lo), "");
  rest = LLVMBuildURem(M->b, rest, low_i64(M, r.step), "");
  return LLVMBuildAnd(M->b, is, LLVMBuildIsNull(M->b, rest, ""), "");
}
/* Runs program i. */
static LLVMValueRef run_program(const chooser *c, uint32_t i) {
  LLVMValueRef run = c->ready[i].run;
  LLVMValueRef a[5];
  for (unsigned k = 0; k < 4; k++) a[k] = LLVMGetParam(c->fn, k + 1);
  a[4] = LLVMGetParam(c->fn, 0);
  unsigned n = c->s->program[i].family ? 5 : 4;
  return LLVMBuildCall2(c->M->b, LLVMGlobalGetValueType(run), run, a, n, "");
}
static LLVMValueRef bytes_of(const chooser *c, uint32_t i) {
  return low_workspace(c->M, LLVMGetParam(c->fn, 1), c->s->program[i].plan->bytes);
}
typedef LLVMValueRef program_fn(const chooser *c, uint32_t i);
/* One program after the other, until it serves the sizes; none: `otherwise` is returned. */
static void choose(chooser *c, program_fn *then, LLVMValueRef otherwise) {
  low_module *M = c->M;
  LLVMValueRef *size = TARN_ARRAY(M->cx, LLVMValueRef, c->s->n);
  go_to(c, block(c, ""));
  for (uint32_t k = 0; k < c->s->n; k++) size[k] = size_at(c, k);
  for (uint32_t i = 0; i < c->s->nprogram; i++) {
    LLVMValueRef all = LLVMConstInt(M->i1, 1, 0);
    for (uint32_t k = 0; k < c->s->n; k++) {
      LLVMValueRef is = is_in(c, size[k], low_size_range(&c->s->program[i], k));
      all = LLVMBuildAnd(M->b, all, is, "");
    }
    LLVMBasicBlockRef yes = block(c, "these");
    LLVMBasicBlockRef no = block(c, "others");
    LLVMBuildCondBr(M->b, all, yes, no);
    go_to(c, yes);
    LLVMBuildRet(M->b, then(c, i));
    go_to(c, no);
  }
  LLVMBuildRet(M->b, otherwise);
}
/* int NAME_run(const int64_t *size, in, out, workspace, pool) */
static LLVMValueRef emit_run(chooser *c) {
  low_module *M = c->M;
  LLVMTypeRef t[5] = {M->ptr, M->ptr, M->ptr, M->ptr, M->ptr};
  c->fn = LLVMAddFunction(M->m, low_symbol(M, "run"), LLVMFunctionType(M->i32, t, 5, 0));
  choose(c, run_program, LLVMConstInt(M->i32, TARN_REF_SIZE, 0));
  return c->fn;
}
/* size_t NAME_workspace(const int64_t *size, unsigned threads) */
static LLVMValueRef emit_workspace(chooser *c) {
  low_module *M = c->M;
  LLVMTypeRef t[2] = {M->ptr, M->i32};
  c->fn = LLVMAddFunction(M->m, low_symbol(M, "workspace"), LLVMFunctionType(M->size, t, 2, 0));
  choose(c, bytes_of, LLVMConstAllOnes(M->size));
  return c->fn;
}

/* ---- the tables ---- */
static LLVMValueRef program_table(const chooser *c) {
  low_module *M = c->M;
  LLVMTypeRef t[3] = {M->ptr, M->ptr, M->ptr};
  LLVMTypeRef row = LLVMStructTypeInContext(M->lc, t, 3, 0);
  LLVMValueRef *v = TARN_ARRAY(M->cx, LLVMValueRef, c->s->nprogram);
  for (uint32_t i = 0; i < c->s->nprogram; i++) {
    LLVMValueRef m[3] = {low_i64_table(M, c->s->program[i].size, c->s->n), c->ready[i].model,
                         c->ready[i].family};
    v[i] = LLVMConstStructInContext(M->lc, m, 3, 0);
  }
  return low_table(M, row, v, c->s->nprogram);
}
static LLVMValueRef name_table(const chooser *c) {
  LLVMValueRef *v = TARN_ARRAY(c->M->cx, LLVMValueRef, c->s->n);
  for (uint32_t i = 0; i < c->s->n; i++) v[i] = low_text(c->M, c->s->name[i]);
  return low_table(c->M, c->M->ptr, v, c->s->n);
}
void low_sizes(low_module *M, const tarn_lower_sizes *s, const low_ready *ready) {
  chooser c = {.M = M, .s = s, .ready = ready};
  LLVMValueRef run = emit_run(&c);
  LLVMValueRef workspace = emit_workspace(&c);
  LLVMValueRef v[] = {LLVMConstInt(M->i32, TARN_RT_VERSION, 0),
                      LLVMConstInt(M->i32, s->n, 0),
                      LLVMConstInt(M->i32, s->nprogram, 0),
                      name_table(&c),
                      program_table(&c),
                      run,
                      workspace};
  LLVMValueRef all = LLVMConstStructInContext(M->lc, v, sizeof v / sizeof *v, 0);
  LLVMValueRef g = LLVMAddGlobal(M->m, LLVMTypeOf(all), low_symbol(M, "sizes"));
  LLVMSetInitializer(g, all);
  LLVMSetGlobalConstant(g, true);
  LLVMSetLinkage(LLVMAddAlias2(M->m, LLVMTypeOf(all), 0, g, "tarn_sizes"), LLVMWeakAnyLinkage);
}
