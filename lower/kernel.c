/* Kernel functions: one for each distinct (nest, schedule, layouts, types), called with pointers
 * from all steps that use it. A region with several items runs on the pool, or without a pool on
 * this thread.
 *
 *   body (scratch, begin, end, operands…)   the loops of items begin … end-1; its pointers do not
 *                                           alias
 *   task (arg, slot, begin, end)            called by the pool: unpacks arg = {scratch, operands…}
 *   kernel (scratch, pool, operands…)       all regions, one after the other
 *
 * Of a nest with lookups the last operand is a byte that is set where one is out of range. */
#include "lower/internal.h"
#include <stdio.h>
#include <string.h>

void low_attribute(low_module *M, LLVMValueRef f, unsigned at, const char *name) {
  unsigned id = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(f, at, LLVMCreateEnumAttribute(M->lc, id, 0));
}
static void string_attribute(low_module *M, LLVMValueRef f, const char *name, const char *value) {
  LLVMAttributeRef a = LLVMCreateStringAttribute(M->lc, name, (unsigned)strlen(name), value,
                                                 (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

LLVMValueRef low_function(low_module *M, const char *name, LLVMTypeRef type) {
  LLVMValueRef f = LLVMAddFunction(M->m, name, type);
  LLVMSetLinkage(f, LLVMInternalLinkage);
  if (M->regs.bits) {
    const char *bits = tarn_format(M->cx, "%u", M->regs.bits);
    string_attribute(M, f, "prefer-vector-width", bits);
    string_attribute(M, f, "min-legal-vector-width", bits);
  }
  return f;
}

typedef struct make {
  low_module *M;
  low_kernel *k;
  const char *name;
  uint32_t nin, nout;
  uint32_t ops; /* and the byte of lookups */
  const tarn_plan *plan;
} make;

static LLVMTypeRef body_type(const make *m) {
  low_module *M = m->M;
  LLVMTypeRef t[TARN_MAX_OPERANDS + 12] = {M->ptr, M->i64, M->i64};
  uint32_t n = 3;
  for (uint32_t i = 0; i < m->ops; i++) t[n++] = M->ptr;
  return LLVMFunctionType(M->vt, t, low_size_type(M, t, n), 0);
}

static LLVMValueRef begin_body(const make *m, low_fn *E, const char *name) {
  low_module *M = m->M;
  LLVMValueRef f = low_function(M, name, body_type(m));
  low_size_name(M, f);
  low_attribute(M, f, (unsigned)LLVMAttributeFunctionIndex, "noinline");
  low_attribute(M, f, 1, "noalias");
  for (uint32_t i = 0; i < m->ops; i++) {
    low_attribute(M, f, 4 + i, "noalias");
    if (i < m->nin) low_attribute(M, f, 4 + i, "readonly");
  }
  low_fn_begin(E, M, f, NULL);
  return f;
}
/* streaming: there are non-temporal stores, which a fence makes visible to others. */
static LLVMValueRef emit_loops(const make *m, const tarn_plan_nest *plan, uint32_t region,
                               const char *name, bool streaming) {
  low_module *M = m->M;
  low_fn E;
  LLVMValueRef f = begin_body(m, &E, name), in[TARN_MAX_OPERANDS], out[8];
  for (uint32_t i = 0; i < m->nin + m->nout; i++)
    *(i < m->nin ? &in[i] : &out[i - m->nin]) = LLVMGetParam(f, 3 + i);
  E.scratch = LLVMGetParam(f, 0), E.scratch_bytes = &m->k->scratch;
  bool looks = m->ops > m->nin + m->nout;
  if (looks) low_lookups_begin(&E);
  low_nest_emit(low_nest_new(M, plan), region, &E, in, out, LLVMGetParam(f, 1), LLVMGetParam(f, 2));
  if (looks) low_lookups_end(&E, LLVMGetParam(f, 3 + m->nin + m->nout));
  if (streaming) LLVMBuildFence(M->b, LLVMAtomicOrderingSequentiallyConsistent, false, "");
  LLVMBuildRetVoid(M->b);
  return f;
}
/* Non-temporal stores need aligned results, which the caller's need not be. */
static LLVMValueRef emit_either(const make *m, uint32_t region, const char *name,
                                const bool *streaming) {
  low_module *M = m->M;
  low_fn E;
  uint64_t scratch = m->k->scratch, most;
  LLVMValueRef way[2], arg[TARN_MAX_OPERANDS + 12], low = low_i64(M, 0);
  way[0] = emit_loops(m, m->plan->nest, region, tarn_format(M->cx, "%s.streaming", name), true);
  most = m->k->scratch, m->k->scratch = scratch;
  way[1] = emit_loops(m, m->plan->through, region, tarn_format(M->cx, "%s.through", name), false);
  if (most > m->k->scratch) m->k->scratch = most;
  LLVMValueRef f = begin_body(m, &E, name);
  uint32_t n = LLVMCountParams(f);
  for (uint32_t i = 0; i < n; i++) arg[i] = LLVMGetParam(f, i);
  for (uint32_t i = 0; i < m->nout; i++)
    if (streaming[i])
      low = LLVMBuildOr(M->b, low, LLVMBuildPtrToInt(M->b, arg[3 + m->nin + i], M->i64, ""), "");
  low = LLVMBuildAnd(M->b, low, low_i64(M, TARN_WHOLE_LINE - 1), "");
  LLVMBasicBlockRef to[2] = {low_block(&E, "aligned"), low_block(&E, "else")};
  LLVMBuildCondBr(M->b, LLVMBuildICmp(M->b, LLVMIntEQ, low, low_i64(M, 0), ""), to[0], to[1]);
  for (uint32_t i = 0; i < 2; i++) {
    low_begin(&E, to[i]);
    LLVMBuildCall2(M->b, body_type(m), way[i], arg, n, "");
    LLVMBuildRetVoid(M->b);
  }
  return f;
}
static LLVMValueRef emit_body(const make *m, uint32_t region) {
  const char *name = tarn_format(m->M->cx, "%s.%u", m->name, region);
  bool streaming[8] = {false};
  if (tarn_plan_streams_out(m->plan->nest, region, streaming))
    return emit_either(m, region, name, streaming);
  return emit_loops(m, m->plan->nest, region, name, false);
}

/* What a task takes from its list. */
static LLVMValueRef listed(const make *m, LLVMValueRef list, uint32_t i) {
  low_module *M = m->M;
  LLVMValueRef at = low_i64(M, i), p = LLVMBuildInBoundsGEP2(M->b, M->ptr, list, &at, 1, "");
  return LLVMBuildLoad2(M->b, M->ptr, p, "");
}
static LLVMValueRef emit_task(const make *m, LLVMValueRef body, uint32_t region) {
  low_module *M = m->M;
  LLVMTypeRef t[4] = {M->ptr, M->i32, M->i64, M->i64};
  LLVMValueRef f = low_function(M, tarn_format(M->cx, "%s.%u.task", m->name, region),
                                LLVMFunctionType(M->vt, t, 4, 0));
  LLVMPositionBuilderAtEnd(M->b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
  LLVMValueRef a[TARN_MAX_OPERANDS + 12];
  uint32_t n = 0, ops = m->ops;
  for (uint32_t i = 0; i <= ops; i++) {
    LLVMValueRef v = listed(m, LLVMGetParam(f, 0), i);
    if (i == 0) {
      LLVMValueRef slot = LLVMBuildZExt(M->b, LLVMGetParam(f, 1), M->i64, "");
      slot = LLVMBuildMul(M->b, slot, low_i64(M, (int64_t)m->k->scratch), "");
      v = LLVMBuildInBoundsGEP2(M->b, M->i8, v, &slot, 1, "");
    }
    a[n++] = v;
    if (i == 0) a[n++] = LLVMGetParam(f, 2), a[n++] = LLVMGetParam(f, 3);
  }
  if (M->sample) a[n++] = listed(m, LLVMGetParam(f, 0), ops + 1);
  LLVMBuildCall2(M->b, body_type(m), body, a, n, "");
  LLVMBuildRetVoid(M->b);
  return f;
}

static void call_body(const make *m, LLVMValueRef body, LLVMValueRef kernel, LLVMValueRef items) {
  low_module *M = m->M;
  LLVMValueRef a[TARN_MAX_OPERANDS + 12] = {LLVMGetParam(kernel, 0), low_i64(M, 0), items};
  for (uint32_t i = 0; i < m->ops; i++) a[3 + i] = LLVMGetParam(kernel, 2 + i);
  uint32_t n = low_size_arg(M, kernel, a, 3 + m->ops);
  LLVMBuildCall2(M->b, body_type(m), body, a, n, "");
}

/* if (pool) pool->run(pool, task, {scratch, operands…}, items) else body(scratch, 0, items,
 * operands…) */
static void call_parallel(const make *m, LLVMValueRef body, LLVMValueRef task, LLVMValueRef kernel,
                          LLVMValueRef items, LLVMValueRef args) {
  low_module *M = m->M;
  LLVMBasicBlockRef yes = LLVMAppendBasicBlockInContext(M->lc, kernel, "pool");
  LLVMBasicBlockRef no = LLVMAppendBasicBlockInContext(M->lc, kernel, "alone");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(M->lc, kernel, "done");
  LLVMValueRef pool = LLVMGetParam(kernel, 1);
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, pool, ""), no, yes);
  LLVMPositionBuilderAtEnd(M->b, no);
  call_body(m, body, kernel, items);
  LLVMBuildBr(M->b, after);
  LLVMPositionBuilderAtEnd(M->b, yes);
  LLVMValueRef given[TARN_MAX_OPERANDS + 12] = {LLVMGetParam(kernel, 0)};
  uint32_t n = 1;
  while (n <= m->ops) given[n] = LLVMGetParam(kernel, 1 + n), n++;
  n = low_size_arg(M, kernel, given, n);
  for (uint32_t i = 0; i < n; i++) {
    LLVMValueRef at = low_i64(M, i), p = LLVMBuildInBoundsGEP2(M->b, M->ptr, args, &at, 1, "");
    LLVMBuildStore(M->b, given[i], p);
  }
  LLVMTypeRef t[4] = {M->ptr, M->ptr, M->ptr, M->i64};
  LLVMValueRef run = LLVMBuildLoad2(M->b, M->ptr, pool, ""), a[4] = {pool, task, args, items};
  LLVMBuildCall2(M->b, LLVMFunctionType(M->vt, t, 4, 0), run, a, 4, "");
  LLVMBuildBr(M->b, after);
  LLVMPositionBuilderAtEnd(M->b, after);
}

uint32_t low_kernel_operands(const low_module *M, const tarn_kernel *k) {
  return k->nin + k->nout + tarn_nest_looks_up(tarn_nest_get(M->L, k->nest));
}
LLVMTypeRef low_kernel_type(const low_module *M, uint32_t operands) {
  LLVMTypeRef t[TARN_MAX_OPERANDS + 12] = {M->ptr, M->ptr};
  for (uint32_t i = 0; i < operands; i++) t[2 + i] = M->ptr;
  return LLVMFunctionType(M->vt, t, low_size_type(M, t, 2 + operands), 0);
}
/* Is a region shared among threads? */
static bool is_shared(const make *m, uint32_t region) {
  const tarn_plan_list *list = tarn_plan_parallel(m->plan->nest, region);
  bool open = false;
  for (uint32_t i = 0; i < list->parallel; i++) open |= list->level[i].open;
  return open || tarn_plan_items(m->plan->nest, region) > 1;
}
static void emit_kernel(const make *m) {
  low_module *M = m->M;
  uint32_t regions = tarn_plan_regions(m->plan->nest);
  m->k->type = low_kernel_type(M, m->ops);
  LLVMValueRef f = m->k->fn = low_function(M, m->name, m->k->type),
               *body = TARN_ARRAY(M->cx, LLVMValueRef, 2 * regions);
  low_size_name(M, f);
  for (uint32_t r = 0; r < regions; r++) body[r] = emit_body(m, r);
  for (uint32_t r = 0; r < regions; r++)
    if (is_shared(m, r)) body[regions + r] = emit_task(m, body[r], r);
  LLVMPositionBuilderAtEnd(M->b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
  uint32_t listed_args = 1 + m->ops + (M->sample != NULL);
  LLVMValueRef args = LLVMBuildArrayAlloca(M->b, M->ptr, low_i64(M, listed_args), "");
  for (uint32_t r = 0; r < regions; r++) {
    LLVMValueRef items = low_items(M, tarn_plan_parallel(m->plan->nest, r));
    if (is_shared(m, r)) call_parallel(m, body[r], body[regions + r], f, items, args);
    else if (tarn_plan_items(m->plan->nest, r)) call_body(m, body[r], f, items);
  }
  LLVMBuildRetVoid(M->b);
}

/* ---------------------------------------------------------------- one for each plan */
uint32_t low_kernel_id(low_module *M, const tarn_plan *plan) {
  bool fresh;
  uint64_t *id = tarn_map_at(M->kernels, (uint64_t)(uintptr_t)plan, &fresh);
  if (fresh) *id = M->nkernel++;
  return (uint32_t)*id;
}
low_kernel *low_kernel_nest(low_module *M, const tarn_kernel *ker) {
  uint32_t id = low_kernel_id(M, ker->plan);
  if (id < M->kernel.n) return M->kernel.p[id];
  low_kernel *k = low_kernel_new(M, low_kernel_name(M, id), ker);
  tarn_push(M->cx, &M->kernel, k);
  return k;
}
const char *low_kernel_name(const low_module *M, uint32_t id) {
  return tarn_format(M->cx, "%s.n%u", M->o->name, id);
}
low_kernel *low_kernel_new(low_module *M, const char *name, const tarn_kernel *ker) {
  low_kernel *k = TARN_NEW(M->cx, low_kernel);
  make m = {.M = M, .k = k, .name = name, .nin = ker->nin, .nout = ker->nout, .plan = ker->plan};
  m.ops = low_kernel_operands(M, ker);
  emit_kernel(&m);
  if (k->scratch > M->per_thread) M->per_thread = k->scratch;
  return k;
}
