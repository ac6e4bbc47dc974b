/* Conversions of 16-bit floats: bf16 by integer operations everywhere, f16 by the processor's
 * instructions, or by integer operations where it has none (a library function that LLVM would call
 * instead is not in every libgcc). To 16 bits they round to nearest, ties to even.
 *
 * f16: Giesen, "Float->half variants" and "Half to float done quic" (2012). Numbers that are
 * subnormal in f16 are aligned by an addition of f32, which rounds them too; neither operand of it
 * that matters is subnormal in f32, whatever the processor makes of those. */
#include "lower/internal.h"
#include <llvm-c/TargetMachine.h>
#include <string.h>

typedef struct code {
  low_module *M;
  LLVMBuilderRef b;
  uint32_t n;
} code;
static code code_of(low_module *M, LLVMValueRef x) { return (code){M, M->b, low_lanes_of(x)}; }
static LLVMTypeRef vec(const code *c, LLVMTypeRef t) { return low_vec(t, c->n); }
static LLVMTypeRef i16(const code *c) { return vec(c, LLVMInt16TypeInContext(c->M->lc)); }
static LLVMValueRef num(const code *c, uint32_t v) {
  return low_splat(c->M, LLVMConstInt(c->M->i32, v, 0), c->n);
}
static LLVMValueRef bits(const code *c, LLVMValueRef x) {
  return LLVMBuildBitCast(c->b, x, vec(c, c->M->i32), "");
}
static LLVMValueRef real(const code *c, LLVMValueRef x) {
  return LLVMBuildBitCast(c->b, x, vec(c, c->M->f32), "");
}
static LLVMValueRef and (const code *c, LLVMValueRef x, uint32_t v) {
  return LLVMBuildAnd(c->b, x, num(c, v), "");
}
static LLVMValueRef add(const code *c, LLVMValueRef x, uint32_t v) {
  return LLVMBuildAdd(c->b, x, num(c, v), "");
}
static LLVMValueRef shr(const code *c, LLVMValueRef x, uint32_t by) {
  return LLVMBuildLShr(c->b, x, num(c, by), "");
}
static LLVMValueRef shl(const code *c, LLVMValueRef x, uint32_t by) {
  return LLVMBuildShl(c->b, x, num(c, by), "");
}
static LLVMValueRef below(const code *c, LLVMValueRef x, uint32_t v) {
  return LLVMBuildICmp(c->b, LLVMIntULT, x, num(c, v), "");
}
static LLVMValueRef pick(const code *c, LLVMValueRef q, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildSelect(c->b, q, x, y, "");
}
/* x without its last `lost` bits, rounded. */
static LLVMValueRef cut(const code *c, LLVMValueRef x, uint32_t lost) {
  LLVMValueRef odd = and(c, shr(c, x, lost), 1);
  return shr(c, add(c, LLVMBuildAdd(c->b, x, odd, ""), (UINT32_C(1) << (lost - 1)) - 1), lost);
}

/* ---------------------------------------------------------------- bf16 */
LLVMValueRef low_bf16_bits(low_module *M, LLVMValueRef x) {
  code c = code_of(M, x);
  LLVMValueRef u = bits(&c, x), quiet = LLVMBuildOr(c.b, shr(&c, u, 16), num(&c, 0x40), "");
  LLVMValueRef nan = LLVMBuildFCmp(c.b, LLVMRealUNO, x, x, "");
  return LLVMBuildTrunc(c.b, pick(&c, nan, quiet, cut(&c, u, 16)), i16(&c), "");
}
LLVMValueRef low_bf16_number(low_module *M, LLVMValueRef v) {
  code c = code_of(M, v);
  return real(&c, shl(&c, LLVMBuildZExt(c.b, v, vec(&c, M->i32), ""), 16));
}

/* ---------------------------------------------------------------- f16 */
#define INFINITE  0x7f800000u
#define TOO_LARGE 0x47800000u /* 65536: 65520 and more carry into the exponent by rounding */
#define NORMAL    0x38800000u /* 2^-14 */
#define REBIAS    0x38000000u /* 127 - 15 in the exponent's place */
#define ALIGN     0x3f000000u /* 1/2, whose last place is 2^-24 */

static LLVMValueRef f16_bits(low_module *M, LLVMValueRef x) {
  code c = code_of(M, x);
  LLVMValueRef u = bits(&c, x), a = and(&c, u, 0x7fffffff);
  LLVMValueRef whole = cut(&c, add(&c, a, 0u - REBIAS), 13);
  LLVMValueRef small = LLVMBuildFAdd(c.b, real(&c, a), real(&c, num(&c, ALIGN)), "");
  LLVMValueRef r = pick(&c, below(&c, a, NORMAL), add(&c, bits(&c, small), 0u - ALIGN), whole);
  LLVMValueRef none = pick(&c, below(&c, a, INFINITE + 1), num(&c, 0x7c00), num(&c, 0x7e00));
  r = pick(&c, below(&c, a, TOO_LARGE), r, none);
  r = LLVMBuildOr(c.b, r, shr(&c, and(&c, u, 0x80000000), 16), "");
  return LLVMBuildTrunc(c.b, r, i16(&c), "");
}
static LLVMValueRef f16_number(low_module *M, LLVMValueRef v) {
  code c = code_of(M, v);
  LLVMValueRef u = LLVMBuildZExt(c.b, v, vec(&c, M->i32), ""), a = and(&c, u, 0x7fff);
  LLVMValueRef r = add(&c, shl(&c, a, 13), REBIAS);
  LLVMValueRef moved = real(&c, add(&c, shl(&c, a, 13), NORMAL));
  LLVMValueRef small = LLVMBuildFSub(c.b, moved, real(&c, num(&c, NORMAL)), "");
  r = pick(&c, below(&c, a, 0x400), bits(&c, small), r);
  r = pick(&c, below(&c, a, 0x7c00), r, add(&c, shl(&c, a, 13), 2 * REBIAS));
  return real(&c, LLVMBuildOr(c.b, r, shl(&c, and(&c, u, 0x8000), 16), ""));
}
static bool is_native(const low_module *M) { return LLVMGetTypeKind(M->f16) == LLVMHalfTypeKind; }
LLVMValueRef low_f16_bits(low_module *M, LLVMValueRef x) {
  if (!is_native(M)) return f16_bits(M, x);
  return LLVMBuildFPTrunc(M->b, x, low_vec(M->f16, low_lanes_of(x)), "");
}
LLVMValueRef low_f16_number(low_module *M, LLVMValueRef v) {
  if (!is_native(M)) return f16_number(M, v);
  return LLVMBuildFPExt(M->b, v, low_vec(M->f32, low_lanes_of(v)), "");
}

/* LLVM's passes make a comparison of two extended f16 one of the f16 themselves, which a processor
 * without arithmetic of f16 extends again; where there are several of the same two, code generation
 * then takes time with the third power of their number. As before: of f32. */
static void widen_compare(low_module *M, LLVMValueRef compare) {
  LLVMTypeRef t = LLVMTypeOf(LLVMGetOperand(compare, 0));
  if (LLVMGetTypeKind(t) == LLVMVectorTypeKind) t = LLVMGetElementType(t);
  if (LLVMGetTypeKind(t) != LLVMHalfTypeKind) return;
  LLVMPositionBuilderBefore(M->b, compare);
  for (unsigned i = 0; i < 2; i++)
    LLVMSetOperand(compare, i, low_f16_number(M, LLVMGetOperand(compare, i)));
}
void low_f16_compares(low_module *M) {
  if (!is_native(M)) return;
  for (LLVMValueRef f = LLVMGetFirstFunction(M->m); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
        if (LLVMGetInstructionOpcode(x) == LLVMFCmp) widen_compare(M, x);
}

/* LLVM's C interface does not say what features a processor's name implies: both conversions are
 * compiled, and what is called by them has a name of a library's own. */
LLVMTypeRef low_f16_type(const low_module *M, LLVMTargetMachineRef tm) {
  LLVMTypeRef half = LLVMHalfTypeInContext(M->lc), arg = M->ptr;
  LLVMModuleRef m = LLVMModuleCreateWithNameInContext("f16", M->lc);
  LLVMBuilderRef b = LLVMCreateBuilderInContext(M->lc);
  LLVMSetTarget(m, LLVMGetTarget(M->m));
  LLVMSetModuleDataLayout(m, LLVMGetModuleDataLayout(M->m));
  LLVMValueRef f = LLVMAddFunction(m, "f", LLVMFunctionType(M->vt, &arg, 1, 0));
  LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
  LLVMValueRef at = LLVMGetParam(f, 0), x = LLVMBuildLoad2(b, half, at, "");
  LLVMBuildStore(b, LLVMBuildFPExt(b, x, M->f32, ""), at);
  x = LLVMBuildLoad2(b, M->f32, at, "");
  LLVMBuildStore(b, LLVMBuildFPTrunc(b, x, half, ""), at);
  LLVMBuildRetVoid(b);
  LLVMMemoryBufferRef text = NULL;
  char *why = NULL;
  bool calls = true;
  if (!LLVMTargetMachineEmitToMemoryBuffer(tm, m, LLVMAssemblyFile, &why, &text)) {
    calls = memmem(LLVMGetBufferStart(text), LLVMGetBufferSize(text), "__", 2) != NULL;
    LLVMDisposeMemoryBuffer(text);
  }
  LLVMDisposeMessage(why), LLVMDisposeBuilder(b), LLVMDisposeModule(m);
  return calls ? LLVMInt16TypeInContext(M->lc) : half;
}
