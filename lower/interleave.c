/* Interleaves unrolled copies of long dependence chains (polynomials).
 *
 * Copies printed one after the other fill the processor's reorder window with waiting instructions:
 * exp has 19 instructions and a latency of some 50 cycles, and the window of a Zen 5, 114 entries,
 * holds six copies. Printed in turn, one instruction of each copy at a time, instructions in the
 * window are soon ready.
 *
 * The instructions of consecutive copies in a block are recorded as they are emitted and reordered
 * when a group is full. Each operand stays before its use. Memory does not matter: a stage reads
 * nothing that it writes, and a kernel's pointers do not alias. */
#include "lower/nest.h"
#include <stdlib.h>

#define MOST 1024 /* instructions of a group */
#define LONG 8    /* results of instructions in floating point that make a copy worth it */

typedef struct instr {
  LLVMValueRef v;
  bool done; /* it is at its new place */
} instr;

static LLVMValueRef after(const low_copies *c, LLVMValueRef v) {
  return v ? LLVMGetNextInstruction(v) : LLVMGetFirstInstruction(c->block);
}

static bool is_float(LLVMValueRef v) {
  LLVMTypeRef t = LLVMTypeOf(v);
  LLVMTypeKind k = LLVMGetTypeKind(t);
  if (k == LLVMVectorTypeKind) k = LLVMGetTypeKind(LLVMGetElementType(t));
  return (k == LLVMFloatTypeKind || k == LLVMDoubleTypeKind) && !LLVMIsALoadInst(v);
}

static int by_value(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)(*(const instr *const *)a)->v,
            y = (uintptr_t)(*(const instr *const *)b)->v;
  return x < y ? -1 : x > y;
}
static bool is_ready(instr **sorted, uint32_t n, const instr *i) {
  int ops = LLVMGetNumOperands(i->v);
  for (int k = 0; k < ops; k++) {
    const instr of = {LLVMGetOperand(i->v, (unsigned)k), false}, *key = &of;
    instr *const *o = bsearch(&key, sorted, n, sizeof *sorted, by_value);
    if (o && !(*o)->done) return false;
  }
  return true;
}

static bool is_border(LLVMValueRef v) {
  return LLVMIsAPHINode(v) || (LLVMIsACallInst(v) && LLVMIsAInlineAsm(LLVMGetCalledValue(v)));
}

/* The instructions of the copies in their old order; 0: too few, or such as have to stay. */
static uint32_t collect(const low_copies *c, uint32_t ncopy, instr *in, uint32_t *stop) {
  uint32_t n = 0;
  LLVMValueRef v = after(c, c->from);
  for (uint32_t k = 0; k < ncopy; k++) {
    uint32_t floats = 0;
    for (bool last = false; !last; v = LLVMGetNextInstruction(v)) {
      if (n == MOST || is_border(v)) return 0;
      last = v == c->end[k];
      floats += is_float(v);
      in[n] = (instr){v, false}, n++;
    }
    stop[k] = n;
    if (floats < LONG) return 0;
  }
  return n;
}

/* The most results of one copy's instructions that are wanted at once. */
static uint32_t most_alive(const instr *in, uint32_t n) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t alive = 0;
    for (uint32_t k = 0; k <= i; k++) {
      bool wanted = k == i;
      for (LLVMUseRef u = LLVMGetFirstUse(in[k].v); u && !wanted; u = LLVMGetNextUse(u))
        for (uint32_t j = i + 1; j < n && !wanted; j++) wanted = LLVMGetUser(u) == in[j].v;
      alive += wanted && is_float(in[k].v);
    }
    if (alive > most) most = alive;
  }
  return most;
}

/* Copies first … last - 1 in turns, at the place of b. */
static void place(LLVMBuilderRef b, instr *in, const uint32_t *stop, uint32_t first, uint32_t last,
                  instr **sorted) {
  uint32_t next[LOW_COPIES], from = first ? stop[first - 1] : 0, n = stop[last - 1] - from;
  for (uint32_t i = 0; i < n; i++) sorted[i] = &in[from + i];
  qsort(sorted, n, sizeof *sorted, by_value);
  for (uint32_t k = first; k < last; k++) next[k] = k ? stop[k - 1] : 0;
  for (uint32_t left = n; left;)
    for (uint32_t k = first; k < last; k++) {
      instr *i = &in[next[k]];
      if (next[k] == stop[k] || !is_ready(sorted, n, i)) continue;
      LLVMInstructionRemoveFromParent(i->v);
      LLVMInsertIntoBuilder(b, i->v);
      i->done = true, next[k]++, left--;
    }
}

void low_copies_end(low_nest *N) {
  low_copies *c = &N->interleaved;
  tarn_ctx *cx = N->M->cx;
  tarn_mark mark = tarn_arena_mark(cx);
  uint32_t ncopy = c->n, stop[LOW_COPIES], n, regs = N->M->regs.count;
  c->n = 0;
  if (ncopy < 2) return;
  instr *in = TARN_ARRAY(cx, instr, MOST), **sorted = TARN_ARRAY(cx, instr *, MOST);
  if ((n = collect(c, ncopy, in, stop))) {
    uint32_t alive = most_alive(in, stop[0]), most = alive < regs ? regs / alive : 1,
             groups = (ncopy + most - 1) / most;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(N->M->lc);
    LLVMValueRef behind = LLVMGetNextInstruction(c->end[ncopy - 1]);
    if (behind) LLVMPositionBuilderBefore(b, behind);
    else LLVMPositionBuilderAtEnd(b, c->block);
    for (uint32_t g = 0; g < groups; g++)
      place(b, in, stop, ncopy * g / groups, ncopy * (g + 1) / groups, sorted);
    LLVMDisposeBuilder(b);
  }
  tarn_release(cx, mark);
}

void low_copy_begin(low_nest *N, const low_fn *E) {
  low_copies *c = &N->interleaved;
  LLVMBasicBlockRef block = LLVMGetInsertBlock(N->M->b);
  if (c->n && (c->block != block || c->gen != E->gen)) low_copies_end(N);
  if (!c->n) c->block = block, c->gen = E->gen, c->from = LLVMGetLastInstruction(block);
}

void low_copy_end(low_nest *N, const low_fn *E) {
  low_copies *c = &N->interleaved;
  LLVMValueRef last = LLVMGetLastInstruction(c->block);
  if (c->block != LLVMGetInsertBlock(N->M->b) || c->gen != E->gen ||
      last == (c->n ? c->end[c->n - 1] : c->from)) {
    c->n = 0; /* it has branches, or nothing */
    return;
  }
  c->end[c->n++] = last;
  if (c->n == LOW_COPIES) low_copies_end(N);
}
