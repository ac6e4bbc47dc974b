/* Prints dot-product instructions, which take several steps of a reduction. */
#include "lower/nest.h"
#include <stdio.h>
#include <string.h>

/* The instruction of fewest lanes that has room for n, or the one of most. */
static const tarn_hw_dot *of_lanes(const low_stage *st, uint32_t n) {
  uint32_t at = 0;
  while (at + 1 < st->p->ndot && st->p->dot[at + 1].lanes >= (int64_t)n) at++;
  return &st->p->dot[at];
}

/* `count` elements of v (a vector) from `from` on, then anything up to n. */
static LLVMValueRef piece(low_module *M, LLVMValueRef v, uint32_t from, uint32_t count,
                          uint32_t n) {
  int index[256];
  if (from == 0 && count == n && low_lanes_of(v) == n) return v;
  for (uint32_t i = 0; i < n; i++) index[i] = i < count ? (int)(from + i) : -1;
  return low_shuffle(M, v, LLVMGetPoison(LLVMTypeOf(v)), index, n);
}

/* ---------------------------------------------------------------- the encoding
 * Functions of LLVM, one after the other, and `add`. Whatever has the accumulator's type as its
 * first argument takes the accumulator there; the first one takes both operands, every later one
 * what the one before it returned. */
typedef struct chain {
  low_module *M;
  const tarn_hw_intrinsic *of;
  LLVMValueRef acc, now; /* now: NULL before the first one */
  const LLVMValueRef *x;
} chain;
static _Noreturn void refuse(const chain *c, const char *name, const char *what) {
  tarn_raise(c->M->cx, TARN_BAD_INPUT, "%s: intrinsic %s: %s %s", c->M->hw->name, c->of->name, name,
             what);
}
/* The types behind a name that LLVM overloads, as in .v4i32.v8i16; how many. */
static unsigned types_of_name(low_module *M, const char *at, LLVMTypeRef *out, unsigned max) {
  unsigned n = 0, lanes, bits;
  for (; n < max && sscanf(at, ".v%ui%u", &lanes, &bits) == 2; at += 1 + strcspn(at + 1, "."))
    out[n++] = LLVMVectorType(LLVMIntTypeInContext(M->lc, bits), lanes);
  return n;
}
static void call(chain *c, const char *name) {
  low_module *M = c->M;
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name)), nover = 0, n = 0;
  if (!id) refuse(c, name, "is no function that LLVM knows");
  LLVMTypeRef over[2] = {LLVMTypeOf(c->acc), LLVMTypeOf(c->x[0])}, param[3];
  if (LLVMIntrinsicIsOverloaded(id)) {
    size_t base;
    (void)LLVMIntrinsicGetName(id, &base);
    nover = strlen(name) > base ? types_of_name(M, name + base, over, 2) : 2;
  }
  LLVMTypeRef type = LLVMIntrinsicGetType(M->lc, id, over, nover);
  LLVMValueRef arg[3], from[3];
  if (LLVMCountParamTypes(type) > 3) refuse(c, name, "takes more than an accumulator and operands");
  LLVMGetParamTypes(type, param);
  bool takes = LLVMCountParamTypes(type) == (c->now ? 2u : 3u);
  if (takes) from[n++] = c->acc;
  if (c->now) from[n++] = c->now;
  else from[n] = c->x[0], from[n + 1] = c->x[1], n += 2;
  if (LLVMCountParamTypes(type) != n)
    refuse(c, name, "does not take an accumulator and two operands");
  for (unsigned i = 0; i < n; i++) arg[i] = LLVMBuildBitCast(M->b, from[i], param[i], "");
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(M->m, id, over, nover);
  c->now = LLVMBuildCall2(M->b, type, f, arg, n, "");
}
static LLVMValueRef encode(low_module *M, const tarn_hw_intrinsic *of, LLVMValueRef acc,
                           const LLVMValueRef *x) {
  chain c = {.M = M, .of = of, .acc = acc, .x = x};
  LLVMTypeRef type = LLVMTypeOf(acc);
  for (const char *at = of->encoding; *at;) {
    size_t n = strcspn(at, " ");
    const char *name = tarn_format(M->cx, "%.*s", (int)n, at);
    if (strcmp(name, "add") != 0) call(&c, name);
    else if (!c.now) refuse(&c, name, "comes behind what is added");
    else c.now = LLVMBuildAdd(M->b, acc, LLVMBuildBitCast(M->b, c.now, type, ""), "");
    at += n + strspn(at + n, " ");
  }
  return LLVMBuildBitCast(M->b, c.now, type, "");
}

/* Elements of that type as the instruction takes them. */
static LLVMValueRef operand(low_module *M, tarn_dtype type, const tarn_hw_dot *d, uint32_t r,
                            LLVMValueRef x) {
  if (!d->widens[r]) return x;
  tarn_dtype to = d->intrinsic->op[d->operand[r]].dtype;
  LLVMTypeRef wide = low_vec(low_memory_type(M, to), low_lanes_of(x));
  return type == TARN_U8 ? LLVMBuildZExt(M->b, x, wide, "") : LLVMBuildSExt(M->b, x, wide, "");
}
/* What is multiplied, for k steps of each lane. */
static LLVMValueRef factor(low_nest *N, low_fn *E, uint32_t f, uint32_t level, uint32_t k,
                           tarn_dtype *type) {
  low_stage *st = N->now;
  LLVMValueRef v[TARN_MAX_OPERANDS] = {NULL};
  tarn_dtype t[TARN_MAX_OPERANDS] = {0};
  const tarn_fx *x = tarn_fx_get(N->M->L, f);
  for (uint32_t r = 0; r < st->p->f->nops; r++) {
    t[r] = st->read[r].p->dtype;
    if (tarn_fx_uses(N->M->L, f, r)) v[r] = low_load_group(E, &st->read[r], level, k);
    if (v[r] && x->op != TARN_FX_HOLE) v[r] = low_from_memory(N->M, t[r], v[r]);
  }
  if (x->op != TARN_FX_HOLE) {
    LLVMValueRef y = low_fx(N->M, f, v, t, st->p->f->nops, E->lanes * k, type);
    return low_to_memory(N->M, *type, y);
  }
  *type = t[x->hole];
  return v[x->hole];
}

void low_emit_dot(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  (void)s;
  low_module *M = N->M;
  low_stage *st = N->now;
  uint32_t n = E->lanes, k = (uint32_t)st->p->dot[0].k,
           level = low_list(N)->level[low_list(N)->n - 1].var;
  LLVMValueRef x[2], old = low_acc_load(N, E), now = NULL;
  tarn_dtype type[2];
  for (uint32_t r = 0; r < 2; r++) x[r] = factor(N, E, st->p->multiplied[r], level, k, &type[r]);
  LLVMTypeRef one = low_compute_type(M, st->p->state[0]);
  if (n == 1)
    old = LLVMBuildInsertElement(M->b, LLVMGetPoison(LLVMVectorType(one, 1)), old,
                                 LLVMConstInt(M->i32, 0, 0), "");
  for (uint32_t from = 0; from < n;) {
    const tarn_hw_dot *d = of_lanes(st, n - from);
    uint32_t wide = (uint32_t)d->lanes, count = n - from < wide ? n - from : wide;
    LLVMValueRef part[2];
    for (uint32_t r = 0; r < 2; r++)
      part[d->operand[r]] =
          operand(M, type[r], d, r, piece(M, x[r], from * k, count * k, wide * k));
    LLVMValueRef y = encode(M, d->intrinsic, piece(M, old, from, count, wide), part);
    int index[256];
    for (uint32_t i = 0; i < n; i++)
      index[i] = i >= from && i < from + count ? (int)(n + i - from) : (int)i;
    if (count == n) now = piece(M, y, 0, n, n);
    else now = low_shuffle(M, now ? now : old, piece(M, y, 0, count, n), index, n);
    from += count;
  }
  if (n == 1) now = LLVMBuildExtractElement(M->b, now, LLVMConstInt(M->i32, 0, 0), "");
  low_acc_store(N, E, now);
}
