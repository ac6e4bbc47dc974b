/* Small LLVM helpers that every emitter here uses. */
#include "lower/internal.h"
#include <string.h>

LLVMValueRef low_i64(const low_module *M, int64_t v) {
  return LLVMConstInt(M->i64, (unsigned long long)v, true);
}
LLVMValueRef low_index(const low_module *M, int64_t v) {
  return LLVMConstInt(M->index, (unsigned long long)v, true);
}

#define OPEN "tarn.open."
LLVMValueRef low_open(low_module *M, int64_t v) {
  LLVMTypeRef type = LLVMFunctionType(M->index, &M->index, 1, 0);
  const char *name = tarn_format(M->cx, OPEN "%u", LLVMGetIntTypeWidth(M->index));
  LLVMValueRef number = low_index(M, v);
  return LLVMBuildCall2(M->b, type, low_declare(M, name, type), &number, 1, "");
}
static void settle_calls(LLVMValueRef f) {
  for (LLVMUseRef use = LLVMGetFirstUse(f); use; use = LLVMGetFirstUse(f)) {
    LLVMValueRef call = LLVMGetUser(use);
    LLVMReplaceAllUsesWith(call, LLVMGetOperand(call, 0));
    LLVMInstructionEraseFromParent(call);
  }
  LLVMDeleteFunction(f);
}
void low_open_end(LLVMModuleRef m) {
  static const char *const name[] = {OPEN "32", OPEN "64"};
  for (uint32_t i = 0; i < 2; i++) {
    LLVMValueRef f = LLVMGetNamedFunction(m, name[i]);
    if (f) settle_calls(f);
  }
}

LLVMTypeRef low_vec(LLVMTypeRef t, uint32_t n) { return n == 1 ? t : LLVMVectorType(t, n); }

uint32_t low_lanes_of(LLVMValueRef v) {
  LLVMTypeRef t = LLVMTypeOf(v);
  return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 1;
}

LLVMValueRef low_shuffle(low_module *M, LLVMValueRef a, LLVMValueRef b, const int *index,
                         uint32_t n) {
  LLVMValueRef idx[256];
  for (uint32_t i = 0; i < n; i++)
    idx[i] = index[i] < 0 ? LLVMGetUndef(M->i32) : LLVMConstInt(M->i32, (unsigned)index[i], 0);
  return LLVMBuildShuffleVector(M->b, a, b, LLVMConstVector(idx, n), "");
}

LLVMValueRef low_splat(low_module *M, LLVMValueRef v, uint32_t n) {
  if (n == 1) return v;
  if (LLVMIsConstant(v)) {
    LLVMValueRef all[256];
    for (uint32_t i = 0; i < n; i++) all[i] = v;
    return LLVMConstVector(all, n);
  }
  LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(v), n);
  LLVMValueRef x =
      LLVMBuildInsertElement(M->b, LLVMGetPoison(t), v, LLVMConstInt(M->i32, 0, 0), "");
  return LLVMBuildShuffleVector(M->b, x, LLVMGetPoison(t), LLVMConstNull(LLVMVectorType(M->i32, n)),
                                "");
}

LLVMValueRef low_declare(low_module *M, const char *name, LLVMTypeRef type) {
  LLVMValueRef f = LLVMGetNamedFunction(M->m, name);
  return f ? f : LLVMAddFunction(M->m, name, type);
}

LLVMValueRef low_call(low_module *M, const char *name, LLVMTypeRef ret, LLVMValueRef *arg,
                      unsigned n) {
  LLVMTypeRef t[8];
  for (unsigned i = 0; i < n; i++) t[i] = LLVMTypeOf(arg[i]);
  LLVMTypeRef type = LLVMFunctionType(ret, t, n, 0);
  return LLVMBuildCall2(M->b, type, low_declare(M, name, type), arg, n, "");
}

LLVMValueRef low_intrinsic(low_module *M, const char *name, LLVMTypeRef *over, unsigned nover,
                           LLVMValueRef *arg, unsigned n) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id) tarn_raise(M->cx, TARN_INTERNAL, "lower: LLVM knows no %s", name);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(M->m, id, over, nover);
  return LLVMBuildCall2(M->b, LLVMIntrinsicGetType(M->lc, id, over, nover), f, arg, n, "");
}

LLVMBasicBlockRef low_block(low_fn *E, const char *name) {
  return LLVMAppendBasicBlockInContext(E->M->lc, E->fn, name);
}
void low_begin(low_fn *E, LLVMBasicBlockRef b) {
  LLVMPositionBuilderAtEnd(E->M->b, b);
  E->gen++;
}

LLVMValueRef low_alloca(low_fn *E, LLVMTypeRef t, int64_t n) {
  LLVMBuilderRef b = LLVMCreateBuilderInContext(E->M->lc);
  LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(E->entry));
  LLVMValueRef v =
      n == 1 ? LLVMBuildAlloca(b, t, "") : LLVMBuildAlloca(b, LLVMArrayType2(t, (uint64_t)n), "");
  LLVMSetAlignment(v, 64);
  LLVMDisposeBuilder(b);
  return v;
}

#define STACK_LIMIT (16 * 1024) /* bytes of one local buffer */
LLVMValueRef low_local(low_fn *E, int64_t bytes) {
  bytes = low_size_most(E->M, bytes);
  if (bytes <= STACK_LIMIT) return low_alloca(E, E->M->i8, bytes > 1 ? bytes : 2);
  return low_scratch(E, bytes);
}
LLVMValueRef low_scratch(low_fn *E, int64_t bytes) {
  LLVMBuilderRef b = LLVMCreateBuilderInContext(E->M->lc);
  LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(E->entry));
  LLVMValueRef at = low_i64(E->M, (int64_t)*E->scratch_bytes);
  LLVMValueRef v = LLVMBuildInBoundsGEP2(b, E->M->i8, E->scratch, &at, 1, "");
  LLVMDisposeBuilder(b);
  *E->scratch_bytes += (uint64_t)(bytes + 63) / 64 * 64;
  return v;
}

#define SHARED 3 /* LLVM's number of that memory */
LLVMValueRef low_shared_memory(low_module *M, int64_t bytes, bool dynamic) {
  LLVMTypeRef t = LLVMArrayType2(M->i8, dynamic ? 0 : (uint64_t)(bytes + 15) / 16 * 16);
  LLVMValueRef v = dynamic ? LLVMGetNamedGlobal(M->m, "dynamic") : NULL;
  if (v) return v;
  v = LLVMAddGlobalInAddressSpace(M->m, t, dynamic ? "dynamic" : "shared", SHARED);
  LLVMSetAlignment(v, 16);
  if (dynamic) return v;
  LLVMSetInitializer(v, LLVMGetUndef(t)), LLVMSetLinkage(v, LLVMInternalLinkage);
  return v;
}

void low_fn_begin(low_fn *E, low_module *M, LLVMValueRef fn, const tarn_plan_space *space) {
  memset(E, 0, sizeof *E);
  E->M = M, E->fn = fn, E->space = space, E->lanes = 1;
  E->entry = low_block(E, "entry");
  LLVMBasicBlockRef body = low_block(E, "body");
  LLVMPositionBuilderAtEnd(M->b, E->entry);
  LLVMBuildBr(M->b, body);
  low_begin(E, body);
}
