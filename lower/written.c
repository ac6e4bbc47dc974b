/* Kernels written by hand: a function of C, called at every point of the access dims, on all
 * threads. It is a tarn_ref_kernel (runtime/ref.h), like the operators of libtarn-rt. */
#include "lower/calls.h"
#include "lower/family.h"
#include "runtime/ref.h"
#include <string.h>

typedef struct call {
  const low_step *s;
  low_module *M;
  const tarn_written *w;
  uint32_t ns, nin, n; /* access dims; operands; and the result */
  int64_t items, dim[TARN_MAX_DIMS];
  tarn_layout l[TARN_MAX_OPERANDS + 1];
  tarn_dtype type[TARN_MAX_OPERANDS + 1];
} call;
/* What the task is given: a pointer for each tensor, then where its code and its message go; in a
 * family the sizes as well. */
enum { CODE, MESSAGE, MORE };

static LLVMTypeRef call_type(const low_module *M) {
  LLVMTypeRef t[7] = {
      M->ptr, M->i32, M->i32, M->i32, M->ptr, M->ptr, LLVMArrayType2(M->i8, TARN_REF_MESSAGE)};
  return LLVMStructTypeInContext(M->lc, t, 7, 0);
}
static LLVMValueRef entry(const low_module *M, LLVMValueRef list, uint32_t i) {
  LLVMValueRef at = low_i64(M, i);
  return LLVMBuildInBoundsGEP2(M->b, M->ptr, list, &at, 1, "");
}
static LLVMValueRef taken(const low_module *M, LLVMValueRef list, uint32_t i) {
  return LLVMBuildLoad2(M->b, M->ptr, entry(M, list, i), "");
}
static void put(const low_module *M, LLVMTypeRef type, LLVMValueRef at, unsigned member,
                LLVMValueRef v) {
  LLVMBuildStore(M->b, v, LLVMBuildStructGEP2(M->b, type, at, member, ""));
}

/* The tensors of the call, with the function's dims, and the call itself. */
static LLVMValueRef make_call(const call *c, LLVMValueRef tensors) {
  low_module *M = c->M;
  LLVMTypeRef type = call_type(M), tensor = low_tensor_type(M);
  LLVMValueRef x = LLVMBuildAlloca(M->b, type, ""), null = LLVMConstNull(M->ptr),
               result = low_i64(M, c->nin), zero = LLVMConstInt(M->i32, 0, 0);
  for (uint32_t i = 0; i < c->n; i++) {
    const tarn_layout *l = &c->l[i];
    low_tensor_store(M, tensors, i, c->type[i], l->n - c->ns, l->dim + c->ns, null,
                     l->stride + c->ns);
  }
  put(M, type, x, 0, null), put(M, type, x, 1, zero);
  put(M, type, x, 2, LLVMConstInt(M->i32, c->nin, 0));
  put(M, type, x, 3, LLVMConstInt(M->i32, 1, 0));
  put(M, type, x, 4, tensors);
  put(M, type, x, 5, LLVMBuildGEP2(M->b, tensor, tensors, &result, 1, ""));
  return x;
}
/* The tensors at point `i` of the access dims, counted row by row. */
static void aim(const call *c, LLVMValueRef list, LLVMValueRef tensors, LLVMValueRef i) {
  low_module *M = c->M;
  LLVMValueRef at[TARN_MAX_DIMS];
  for (uint32_t d = c->ns; d-- > 0;) {
    LLVMValueRef n = low_i64(M, c->dim[d]);
    at[d] = d ? LLVMBuildURem(M->b, i, n, "") : i;
    i = LLVMBuildUDiv(M->b, i, n, "");
  }
  for (uint32_t k = 0; k < c->n; k++) {
    tarn_layout l = c->l[k];
    LLVMValueRef no = low_i64(M, k),
                 t = LLVMBuildGEP2(M->b, low_tensor_type(M), tensors, &no, 1, "");
    l.n = (uint8_t)c->ns; /* the first element of the function's dims */
    put(M, low_tensor_type(M), t, 3, low_step_address(c->s, taken(M, list, k), &l, c->type[k], at));
  }
}
/* The first call that fails leaves its code and its message. */
static void note_failure(const call *c, LLVMValueRef f, LLVMValueRef list, LLVMValueRef x,
                         LLVMValueRef st) {
  low_module *M = c->M;
  LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(M->lc, f, ""),
                    tell = LLVMAppendBasicBlockInContext(M->lc, f, ""),
                    end = LLVMAppendBasicBlockInContext(M->lc, f, "");
  LLVMValueRef old = LLVMBuildAtomicCmpXchg(
      M->b, taken(M, list, c->n + CODE), LLVMConstInt(M->i32, 0, 0), st,
      LLVMAtomicOrderingSequentiallyConsistent, LLVMAtomicOrderingSequentiallyConsistent, false);
  LLVMBuildCondBr(M->b, LLVMBuildExtractValue(M->b, old, 1, ""), first, end);
  LLVMPositionBuilderAtEnd(M->b, first);
  LLVMValueRef to = taken(M, list, c->n + MESSAGE);
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, to, ""), end, tell);
  LLVMPositionBuilderAtEnd(M->b, tell);
  LLVMBuildMemCpy(M->b, to, 1, LLVMBuildStructGEP2(M->b, call_type(M), x, 6, ""), 1,
                  low_i64(M, TARN_REF_MESSAGE));
  LLVMBuildBr(M->b, end);
  LLVMPositionBuilderAtEnd(M->b, end);
  LLVMBuildRetVoid(M->b);
}
/* void task(void *list, uint32_t slot, int64_t begin, int64_t end) */
static LLVMValueRef emit_task(const call *c, LLVMTypeRef type) {
  low_module *M = c->M;
  LLVMBasicBlockRef back = LLVMGetInsertBlock(M->b);
  LLVMValueRef f =
      low_function(M, tarn_format(M->cx, "%s.%s.call", M->o->name, c->s->k->name), type);
  LLVMBasicBlockRef begin = LLVMAppendBasicBlockInContext(M->lc, f, ""),
                    body = LLVMAppendBasicBlockInContext(M->lc, f, ""),
                    more = LLVMAppendBasicBlockInContext(M->lc, f, ""),
                    done = LLVMAppendBasicBlockInContext(M->lc, f, ""),
                    bad = LLVMAppendBasicBlockInContext(M->lc, f, "");
  LLVMValueRef list = LLVMGetParam(f, 0), one = low_i64(M, 1);
  LLVMPositionBuilderAtEnd(M->b, begin);
  if (M->sample) LLVMSetValueName2(taken(M, list, c->n + MORE), LOW_SIZE, strlen(LOW_SIZE));
  LLVMValueRef tensors = LLVMBuildArrayAlloca(M->b, low_tensor_type(M), low_i64(M, c->n), ""),
               x = make_call(c, tensors);
  LLVMBuildStore(M->b, LLVMConstInt(M->i8, 0, 0),
                 LLVMBuildStructGEP2(M->b, call_type(M), x, 6, ""));
  LLVMBuildBr(M->b, body);
  LLVMPositionBuilderAtEnd(M->b, body);
  LLVMValueRef i = LLVMBuildPhi(M->b, M->i64, ""), from = LLVMGetParam(f, 2);
  aim(c, list, tensors, i);
  LLVMValueRef st = low_call(M, c->w->symbol, M->i32, &x, 1);
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, st, ""), more, bad);
  LLVMPositionBuilderAtEnd(M->b, more);
  LLVMValueRef next = LLVMBuildNUWAdd(M->b, i, one, "");
  LLVMAddIncoming(i, &from, &begin, 1), LLVMAddIncoming(i, &next, &more, 1);
  LLVMBuildCondBr(M->b, LLVMBuildICmp(M->b, LLVMIntSLT, next, LLVMGetParam(f, 3), ""), body, done);
  LLVMPositionBuilderAtEnd(M->b, done);
  LLVMBuildRetVoid(M->b);
  LLVMPositionBuilderAtEnd(M->b, bad);
  note_failure(c, f, list, x, st);
  LLVMPositionBuilderAtEnd(M->b, back);
  return f;
}

/* if (pool) pool->run(pool, task, list, items) else task(list, 0, 0, items) */
static void run_task(const call *c, LLVMValueRef pool, LLVMValueRef task, LLVMTypeRef type,
                     LLVMValueRef list) {
  low_module *M = c->M;
  LLVMBasicBlockRef yes = low_step_block(c->s), no = low_step_block(c->s),
                    after = low_step_block(c->s);
  LLVMValueRef items = low_i64(M, c->items), zero = low_i64(M, 0);
  LLVMTypeRef t[4] = {M->ptr, M->ptr, M->ptr, M->i64};
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, pool, ""), no, yes);
  LLVMPositionBuilderAtEnd(M->b, yes);
  LLVMValueRef told[2] = {low_pool_member(c->s, pool, 0), low_pool_member(c->s, pool, 2)};
  LLVMBuildStore(M->b, told[1], entry(M, list, c->n + MESSAGE));
  LLVMBuildCall2(M->b, LLVMFunctionType(M->vt, t, 4, 0), told[0],
                 (LLVMValueRef[]){pool, task, list, items}, 4, "");
  LLVMBuildBr(M->b, after);
  LLVMPositionBuilderAtEnd(M->b, no);
  LLVMBuildCall2(M->b, type, task, (LLVMValueRef[]){list, LLVMConstInt(M->i32, 0, 0), zero, items},
                 4, "");
  LLVMBuildBr(M->b, after);
  LLVMPositionBuilderAtEnd(M->b, after);
}

static void open_call(call *c) {
  const tarn_kernel *k = c->s->k;
  const char *name = tarn_payload_get(c->M->L, k->payload)->name;
  c->w = tarn_written_find(c->M->L, name);
  if (!c->w || k->nin != c->w->nin || k->nout != 1)
    tarn_raise(c->M->cx, TARN_BAD_INPUT, "%s: no (kernel %s …) of these operands is declared",
               k->name, name);
  c->nin = k->nin, c->n = k->nin + 1;
  for (uint32_t i = 0; i < c->n; i++) {
    bool out = i == c->nin;
    c->l[i] = low_step_layout(c->s, out, out ? 0 : i);
    c->type[i] = low_step_dtype(c->s, out, out ? 0 : i);
  }
  c->ns = c->l[c->nin].n - c->w->out.n;
  c->items = 1;
  for (uint32_t d = 0; d < c->ns; d++) c->items *= c->dim[d] = c->l[c->nin].dim[d];
}
LLVMValueRef low_written(low_step *s, LLVMValueRef pool, const LLVMValueRef *in,
                         const LLVMValueRef *out) {
  low_module *M = s->M;
  call *c = TARN_NEW(M->cx, call);
  LLVMTypeRef t[4] = {M->ptr, M->i32, M->i64, M->i64}, type = LLVMFunctionType(M->vt, t, 4, 0);
  *c = (call){.s = s, .M = M};
  open_call(c);
  LLVMValueRef zero = LLVMConstInt(M->i32, 0, 0);
  if (!tarn_layout_elems(&c->l[c->nin])) return zero;
  LLVMValueRef task = emit_task(c, type),
               list = LLVMBuildArrayAlloca(M->b, M->ptr,
                                           low_i64(M, c->n + MORE + (M->sample != NULL)), ""),
               code = LLVMBuildAlloca(M->b, M->i32, "");
  LLVMBuildStore(M->b, zero, code);
  for (uint32_t i = 0; i < c->n; i++)
    LLVMBuildStore(M->b, i < c->nin ? in[i] : out[0], entry(M, list, i));
  LLVMBuildStore(M->b, code, entry(M, list, c->n + CODE));
  LLVMBuildStore(M->b, LLVMConstNull(M->ptr), entry(M, list, c->n + MESSAGE));
  LLVMValueRef size;
  if (low_size_arg(M, s->fn, &size, 0)) LLVMBuildStore(M->b, size, entry(M, list, c->n + MORE));
  run_task(c, pool, task, type, list);
  LLVMValueRef st = LLVMBuildLoad2(M->b, M->i32, code, ""),
               index = LLVMConstInt(M->i32, TARN_REF_INDEX, 0),
               failed = LLVMConstInt(M->i32, TARN_REF_FAILED, 0);
  LLVMValueRef known = LLVMBuildICmp(M->b, LLVMIntEQ, st, index, "");
  LLVMValueRef bad = LLVMBuildSelect(M->b, known, index, failed, "");
  return LLVMBuildSelect(M->b, LLVMBuildIsNull(M->b, st, ""), zero, bad, "");
}
