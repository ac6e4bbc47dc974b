/* One code for several: modules that were emitted for some sizes of a family become the same text.
 *
 * They are walked side by side. Where an operand is a number that is not the same in all of them,
 * it becomes a polynomial in the sizes (kernel/poly.c), which the function computes at its begin;
 * that is done in every module. Then their texts are compared: whatever else a size has decided (an
 * instruction more, a type, an alignment, a flag, a mask of lanes, a constant table) stands there,
 * so nothing need be known here of what may differ.
 *
 * A number of a program is an extent, a stride, or made of these by sums and products: counts of
 * trips are computed as the program runs (low_open). The samples are generic sizes and the largest.
 * - nsw, nuw and inbounds stand where counters and offsets stay below extents, at every size alike.
 * - Divisors are extents or strides that are never 0 in what is emitted.
 * - A floating-point number is a count of elements, p(n), or the reciprocal of one, which emission
 *   divided in double and rounded once to the type (f_div in value.c). The same is done at the
 *   begin of the function, by one conversion, one division and one rounding, all of them correctly
 *   rounded: what is computed at any size is, to the bit, the literal that emission would have
 *   written there. Up to 2^22 a reciprocal in f32 is that of one count alone. */
#include "lower/family.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_LANES 64
#define MOST_COUNT (1 << 22)

typedef struct growing {
  tarn_poly g;
  bool over; /* one divided by it */
  LLVMTypeRef type;
  LLVMValueRef *v; /* of each module */
} growing;
typedef struct unify {
  tarn_ctx *cx;
  const LLVMModuleRef *m;
  uint32_t n;
  const tarn_points *points;
  LLVMBuilderRef b;
  /* of the functions that are walked now */
  LLVMValueRef *fn, *sized;              /* sized: what points to the sizes in each, or NULL */
  LLVMValueRef *loaded[TARN_MOST_SIZES]; /* each size in each; NULL: not loaded yet */
  LLVMValueRef *begin; /* the first instruction of each that was there before, and may need it */
  TARN_VEC(growing) known;
  LLVMValueRef *at, *to, *lane; /* the operand of each, what it becomes, a part of it */
  const char *why;
} unify;

static void dispose_builder(void *b) { LLVMDisposeBuilder(b); }

/* ---- why not ---- */
static const char *line_of(tarn_ctx *cx, const char *text, const char *p) {
  while (p > text && p[-1] != '\n') p--;
  while (*p == ' ') p++;
  size_t n = strcspn(p, "\n");
  return tarn_format(cx, "%.*s", (int)(n < 100 ? n : 100), p);
}
static const char *text_of(const unify *u, LLVMValueRef v) {
  char *s = LLVMPrintValueToString(v);
  const char *line = line_of(u->cx, s, s);
  LLVMDisposeMessage(s);
  return line;
}
static bool refuse(unify *u, const char *why) {
  size_t n;
  const char *name = LLVMGetValueName2(*u->fn, &n);
  u->why = tarn_format(u->cx, "%.*s: %s", (int)n, name, why);
  return false;
}

/* ---- numbers ---- */
static bool is_size(LLVMValueRef v) {
  size_t n = 0;
  const char *name = v ? LLVMGetValueName2(v, &n) : "";
  return n == strlen(LOW_SIZE) && !memcmp(name, LOW_SIZE, n);
}
/* The last argument, or what the function takes from a list at its begin; NULL: it has none. */
static LLVMValueRef size_in(LLVMValueRef fn) {
  LLVMValueRef last = LLVMCountParams(fn) ? LLVMGetLastParam(fn) : NULL;
  if (is_size(last)) return last;
  LLVMValueRef v = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(fn));
  while (v && !is_size(v)) v = LLVMGetNextInstruction(v);
  return v;
}
static bool is_integer(LLVMTypeRef t) { return LLVMGetTypeKind(t) == LLVMIntegerTypeKind; }
static bool is_float(LLVMTypeRef t) {
  LLVMTypeKind kind = LLVMGetTypeKind(t);
  return kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
}
/* Size k in module i. */
static LLVMValueRef size_of(const unify *u, uint32_t i, uint32_t k) {
  LLVMValueRef *v = &u->loaded[k][i];
  LLVMTypeRef i64 = LLVMInt64TypeInContext(LLVMGetModuleContext(u->m[i]));
  LLVMValueRef at = LLVMConstInt(i64, k, false);
  if (!*v) {
    LLVMValueRef p = LLVMBuildInBoundsGEP2(u->b, i64, u->sized[i], &at, 1, "");
    *v = LLVMBuildLoad2(u->b, i64, p, "");
  }
  return *v;
}
static LLVMValueRef term_of(const unify *u, uint32_t i, const tarn_poly_term *t) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(LLVMGetModuleContext(u->m[i]));
  LLVMValueRef v = NULL;
  for (uint32_t k = 0; k < TARN_MOST_SIZES; k++)
    for (uint32_t p = 0; p < t->power[k]; p++)
      v = v ? LLVMBuildMul(u->b, v, size_of(u, i, k), "") : size_of(u, i, k);
  LLVMValueRef by = LLVMConstInt(i64, (unsigned long long)t->coef, true);
  if (!v) return by;
  return t->coef == 1 ? v : LLVMBuildMul(u->b, v, by, "");
}
static LLVMValueRef poly_of(const unify *u, uint32_t i, const tarn_poly *p, LLVMTypeRef type) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(LLVMGetModuleContext(u->m[i]));
  LLVMValueRef v = NULL;
  for (uint32_t k = 0; k < p->n; k++) {
    LLVMValueRef t = term_of(u, i, &p->t[k]);
    v = v ? LLVMBuildAdd(u->b, v, t, "") : t;
  }
  if (!v) v = LLVMConstNull(i64);
  LLVMValueRef over = LLVMConstInt(i64, (unsigned long long)p->over, true);
  if (p->over != 1) v = LLVMBuildExactSDiv(u->b, v, over, "");
  return LLVMBuildIntCast2(u->b, v, type, true, "");
}
static LLVMValueRef emit(const unify *u, const growing *x, uint32_t i) {
  if (is_integer(x->type)) return poly_of(u, i, &x->g, x->type);
  LLVMContextRef lc = LLVMGetTypeContext(x->type);
  LLVMTypeRef f64 = LLVMDoubleTypeInContext(lc);
  LLVMValueRef v = poly_of(u, i, &x->g, LLVMInt64TypeInContext(lc));
  v = LLVMBuildSIToFP(u->b, v, f64, "");
  if (x->over) v = LLVMBuildFDiv(u->b, LLVMConstReal(f64, 1), v, "");
  return x->type == f64 ? v : LLVMBuildFPTrunc(u->b, v, x->type, "");
}
/* The number of each function; computed once. */
static const LLVMValueRef *grown(unify *u, growing x) {
  for (uint32_t i = 0; i < u->known.n; i++) {
    const growing *y = &u->known.p[i];
    if (y->type == x.type && y->over == x.over && !memcmp(&y->g, &x.g, sizeof x.g)) return y->v;
  }
  x.v = TARN_ARRAY(u->cx, LLVMValueRef, u->n);
  for (uint32_t i = 0; i < u->n; i++) {
    LLVMPositionBuilderBefore(u->b, u->begin[i]);
    x.v[i] = emit(u, &x, i);
  }
  tarn_push(u->cx, &u->known, x);
  return x.v;
}
/* The count that a number is, or (over) whose reciprocal it is; 0: it is none. */
static int64_t count_of(LLVMValueRef v, bool over) {
  LLVMBool lost;
  double x = LLVMConstRealGetDouble(v, &lost), n = over ? rint(1 / x) : x;
  if (!(n == rint(n) && fabs(n) <= MOST_COUNT) || n == 0) return 0;
  double back = over ? 1 / n : n;
  bool single = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMFloatTypeKind;
  return (single ? (float)back : back) == x ? (int64_t)n : 0;
}
static bool counts(const unify *u, const LLVMValueRef *v, bool over, int64_t *x) {
  for (uint32_t i = 0; i < u->n; i++)
    if (!(x[i] = count_of(v[i], over))) return false;
  return true;
}
/* v: constants of one type, of each module. NULL: they are in no polynomial. */
static const LLVMValueRef *grow(unify *u, const LLVMValueRef *v) {
  growing g = {.type = LLVMTypeOf(*v)};
  int64_t *x = TARN_ARRAY(u->cx, int64_t, u->n);
  unsigned bits = is_integer(g.type) ? LLVMGetIntTypeWidth(g.type) : 0;
  if (is_float(g.type)) {
    g.over = !counts(u, v, false, x);
    if (g.over && !counts(u, v, true, x)) return NULL;
  } else if (bits != 32 && bits != 64) return NULL;
  for (uint32_t i = 0; i < u->n && bits; i++) x[i] = LLVMConstIntGetSExtValue(v[i]);
  return tarn_poly_through(u->points, x, &g.g) ? grown(u, g) : NULL;
}
static bool is_number(LLVMValueRef v) { return LLVMIsAConstantInt(v) || LLVMIsAConstantFP(v); }
static const char *numbers_text(const unify *u, const LLVMValueRef *v) {
  tarn_buf b = {.cx = u->cx};
  LLVMBool lost;
  for (uint32_t i = 0; i < u->n; i++) {
    const char *comma = i ? ", " : "";
    if (LLVMIsAConstantInt(v[i])) tarn_buf_fmt(&b, "%s%lld", comma, LLVMConstIntGetSExtValue(v[i]));
    else tarn_buf_fmt(&b, "%s%.9g", comma, LLVMConstRealGetDouble(v[i], &lost));
  }
  return b.p;
}

/* ---- operands ---- */
static bool is_immediate(LLVMValueRef call, unsigned operand) {
  LLVMValueRef callee = LLVMGetCalledValue(call);
  if (!LLVMIsAFunction(callee)) return LLVMIsAInlineAsm(callee);
  unsigned id = LLVMGetEnumAttributeKindForName("immarg", 6);
  return LLVMGetEnumAttributeAtIndex(callee, operand + 1, id) != NULL;
}
/* May this operand be a number that is known when it runs? */
static bool may_vary(LLVMValueRef inst, unsigned operand) {
  switch (LLVMGetInstructionOpcode(inst)) {
  case LLVMAdd:
  case LLVMSub:
  case LLVMMul:
  case LLVMUDiv:
  case LLVMSDiv:
  case LLVMURem:
  case LLVMSRem:
  case LLVMAnd:
  case LLVMOr:
  case LLVMICmp:
  case LLVMFAdd:
  case LLVMFSub:
  case LLVMFMul:
  case LLVMFDiv:
  case LLVMFRem:
  case LLVMFCmp:
  case LLVMPHI:
  case LLVMFreeze:
  case LLVMRet: return true;
  case LLVMSelect:
  case LLVMInsertElement: return operand == 1 || (operand == 2 && LLVMIsASelectInst(inst));
  case LLVMGetElementPtr: return operand <= 1; /* the others may be members of a struct */
  case LLVMStore:
  case LLVMSwitch: return operand == 0;
  case LLVMCall: return !is_immediate(inst, operand);
  default: return false;
  }
}
typedef LLVMValueRef is_fn(LLVMValueRef v);
static LLVMValueRef as_number(LLVMValueRef v) { return is_number(v) ? v : NULL; }
static bool all_are(const unify *u, is_fn *is) {
  for (uint32_t i = 0; i < u->n; i++)
    if (!is(u->at[i]) || LLVMTypeOf(u->at[i]) != LLVMTypeOf(*u->at)) return false;
  return true;
}
static bool same_constants(const unify *u, const LLVMValueRef *v) {
  for (uint32_t i = 1; i < u->n; i++)
    if (v[i] != *v) return false;
  return true;
}
/* Scalars. */
static bool unify_scalar(unify *u, const LLVMValueRef *inst) {
  const LLVMValueRef *g = grow(u, u->at);
  if (!g)
    return refuse(u, tarn_format(u->cx, "a number of the samples is %s: '%s'",
                                 numbers_text(u, u->at), text_of(u, *inst)));
  memcpy(u->to, g, u->n * sizeof *g);
  return true;
}
/* Vectors of numbers: lane by lane, or one for all. False: nothing is done, the texts differ. */
static bool vector(unify *u) {
  LLVMTypeRef type = LLVMTypeOf(*u->at);
  LLVMValueRef lane[MOST_LANES], *v = u->lane;
  const LLVMValueRef *g[MOST_LANES];
  unsigned lanes = LLVMGetVectorSize(type);
  if (lanes > MOST_LANES) return false;
  for (unsigned k = 0; k < lanes; k++) {
    for (uint32_t i = 0; i < u->n; i++) v[i] = LLVMGetAggregateElement(u->at[i], k);
    for (uint32_t i = 0; i < u->n; i++)
      if (!v[i] || !is_number(v[i])) return false;
    g[k] = NULL;
    lane[k] = *v;
    if (same_constants(u, v)) continue;
    if (!(g[k] = grow(u, v))) return false;
  }
  LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(type));
  for (uint32_t i = 0; i < u->n; i++) {
    LLVMPositionBuilderBefore(u->b, u->begin[i]);
    u->to[i] = LLVMGetPoison(type);
    for (unsigned k = 0; k < lanes; k++)
      u->to[i] = LLVMBuildInsertElement(u->b, u->to[i], g[k] ? g[k][i] : lane[k],
                                        LLVMConstInt(i32, k, false), "");
  }
  return true;
}
/* A place in a table at a distance that is a number: a constant expression becomes an instruction.
 * False: it is something else. */
static bool place(unify *u) {
  LLVMValueRef *v = u->lane;
  LLVMTypeRef elem = NULL;
  for (uint32_t i = 0; i < u->n; i++) {
    LLVMValueRef e = u->at[i];
    if (LLVMGetConstOpcode(e) != LLVMGetElementPtr || LLVMGetNumOperands(e) != 2) return false;
    if (i && LLVMGetGEPSourceElementType(e) != elem) return false;
    elem = LLVMGetGEPSourceElementType(e);
    v[i] = LLVMGetOperand(e, 1);
    if (!LLVMIsAConstantInt(v[i]) || LLVMTypeOf(v[i]) != LLVMTypeOf(*v)) return false;
  }
  if (same_constants(u, v)) return false;
  const LLVMValueRef *g = grow(u, v);
  for (uint32_t i = 0; g && i < u->n; i++) {
    LLVMPositionBuilderBefore(u->b, u->begin[i]);
    LLVMValueRef by = g[i];
    u->to[i] = LLVMBuildGEP2(u->b, elem, LLVMGetOperand(u->at[i], 0), &by, 1, "");
  }
  return g != NULL;
}
static bool is_vector(const unify *u) {
  LLVMTypeRef t = LLVMTypeOf(*u->at);
  if (LLVMGetTypeKind(t) != LLVMVectorTypeKind) return false;
  LLVMTypeRef lane = LLVMGetElementType(t);
  return is_integer(lane) || is_float(lane);
}
static bool operand(unify *u, const LLVMValueRef *inst, unsigned k) {
  for (uint32_t i = 0; i < u->n; i++) u->at[i] = LLVMGetOperand(inst[i], k);
  if (!LLVMIsAConstant(*u->at) || !all_are(u, LLVMIsAConstant)) return true;
  if (same_constants(u, u->at) || !may_vary(*inst, k) || !*u->sized) return true;
  bool found;
  if (all_are(u, as_number)) {
    if (!unify_scalar(u, inst)) return false;
    found = true;
  } else if (is_vector(u)) found = vector(u);
  else found = all_are(u, LLVMIsAConstantExpr) && place(u);
  for (uint32_t i = 0; found && i < u->n; i++) LLVMSetOperand(inst[i], k, u->to[i]);
  return true;
}

/* ---- side by side ---- */
typedef LLVMValueRef next_value(LLVMValueRef v);
/* The next of each; all of them or none has one. */
static bool go_on(const unify *u, LLVMValueRef *v, next_value *next) {
  bool some = false, all = true;
  for (uint32_t i = 0; i < u->n; i++) {
    v[i] = next(v[i]);
    some |= v[i] != NULL;
    all &= v[i] != NULL;
  }
  return some == all;
}
static bool instruction(unify *u, const LLVMValueRef *inst) {
  int n = LLVMGetNumOperands(*inst);
  for (uint32_t i = 1; i < u->n; i++) {
    bool same = LLVMGetInstructionOpcode(inst[i]) == LLVMGetInstructionOpcode(*inst);
    if (same && LLVMGetNumOperands(inst[i]) == n) continue;
    return refuse(u, tarn_format(u->cx, "'%s' at one size, '%s' at another", text_of(u, *inst),
                                 text_of(u, inst[i])));
  }
  bool call = LLVMIsACallInst(*inst);
  unsigned looked = call ? LLVMGetNumArgOperands(*inst) : (unsigned)n;
  for (unsigned k = 0; k < looked; k++)
    if (!operand(u, inst, k)) return false;
  return true;
}
static bool block(unify *u, const LLVMValueRef *b, LLVMValueRef *inst) {
  for (uint32_t i = 0; i < u->n; i++)
    inst[i] = LLVMGetFirstInstruction(LLVMValueAsBasicBlock(b[i]));
  if (LLVMValueAsBasicBlock(*b) == LLVMGetEntryBasicBlock(*u->fn))
    memcpy(inst, u->begin, u->n * sizeof *inst);
  while (*inst) {
    if (!instruction(u, inst)) return false;
    if (!go_on(u, inst, LLVMGetNextInstruction))
      return refuse(u, "blocks of other numbers of instructions");
  }
  return true;
}
static LLVMValueRef next_block(LLVMValueRef b) {
  LLVMBasicBlockRef next = LLVMGetNextBasicBlock(LLVMValueAsBasicBlock(b));
  return next ? LLVMBasicBlockAsValue(next) : NULL;
}
static bool function(unify *u) {
  LLVMValueRef *b = TARN_ARRAY(u->cx, LLVMValueRef, u->n),
               *inst = TARN_ARRAY(u->cx, LLVMValueRef, u->n);
  u->known.n = 0;
  for (uint32_t k = 0; k < TARN_MOST_SIZES; k++)
    memset(u->loaded[k], 0, u->n * sizeof *u->loaded[k]);
  for (uint32_t i = 0; i < u->n; i++) {
    if (LLVMIsDeclaration(u->fn[i]) != LLVMIsDeclaration(*u->fn))
      return refuse(u, "another function follows at another size");
    if (LLVMIsDeclaration(u->fn[i])) continue;
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(u->fn[i]);
    b[i] = LLVMBasicBlockAsValue(entry);
    u->sized[i] = size_in(u->fn[i]);
    bool inside = u->sized[i] && LLVMIsAInstruction(u->sized[i]);
    u->begin[i] = inside ? LLVMGetNextInstruction(u->sized[i]) : LLVMGetFirstInstruction(entry);
    if (!u->sized[i] != !*u->sized) return refuse(u, "it knows its size at one size alone");
  }
  if (LLVMIsDeclaration(*u->fn)) return true;
  while (*b) {
    if (!block(u, b, inst)) return false;
    if (!go_on(u, b, next_block)) return refuse(u, "other numbers of blocks");
  }
  return true;
}

/* ---- the texts ---- */
static void dispose_text(void *s) { LLVMDisposeMessage(s); }
/* The function that a place of the text lies in, or "". */
static const char *function_at(tarn_ctx *cx, const char *text, size_t at) {
  for (const char *p = text + at; p > text; p--) {
    if (p[-1] != '\n' || strncmp(p, "define ", 7)) continue;
    const char *name = strchr(p, '@');
    return name ? tarn_format(cx, "%.*s: ", (int)strcspn(name + 1, "("), name + 1) : "";
  }
  return "";
}
static bool same_text(unify *u, const char *a, const char *b) {
  size_t at = 0;
  while (a[at] && a[at] == b[at]) at++;
  if (a[at] == b[at]) return true;
  u->why = tarn_format(u->cx, "%s'%s' at one size, '%s' at another", function_at(u->cx, a, at),
                       line_of(u->cx, a, a + at), line_of(u->cx, b, b + at));
  return false;
}
static bool same_texts(unify *u) {
  char *first = LLVMPrintModuleToString(u->m[0]);
  bool same = true;
  tarn_defer(u->cx, dispose_text, first);
  for (uint32_t i = 1; same && i < u->n; i++) {
    char *other = LLVMPrintModuleToString(u->m[i]);
    tarn_defer(u->cx, dispose_text, other);
    same = same_text(u, first, other);
    tarn_keep(u->cx, other);
    LLVMDisposeMessage(other);
  }
  tarn_keep(u->cx, first);
  LLVMDisposeMessage(first);
  return same;
}
static bool all_functions(unify *u) {
  for (uint32_t i = 0; i < u->n; i++) u->fn[i] = LLVMGetFirstFunction(u->m[i]);
  while (*u->fn) {
    if (!function(u)) return false;
    if (!go_on(u, u->fn, LLVMGetNextFunction)) break; /* the texts say more */
  }
  return true;
}
const char *low_unify(tarn_ctx *cx, const LLVMModuleRef *m, const tarn_points *at) {
  uint32_t n = at->n;
  unify u = {.cx = cx, .m = m, .n = n, .points = at};
  for (uint32_t k = 0; k < TARN_MOST_SIZES; k++) u.loaded[k] = TARN_ARRAY(cx, LLVMValueRef, n);
  u.fn = TARN_ARRAY(cx, LLVMValueRef, n);
  u.begin = TARN_ARRAY(cx, LLVMValueRef, n);
  u.sized = TARN_ARRAY(cx, LLVMValueRef, n);
  u.at = TARN_ARRAY(cx, LLVMValueRef, n);
  u.to = TARN_ARRAY(cx, LLVMValueRef, n);
  u.lane = TARN_ARRAY(cx, LLVMValueRef, n);
  u.b = LLVMCreateBuilderInContext(LLVMGetModuleContext(*m));
  tarn_defer(cx, dispose_builder, u.b);
  bool same = all_functions(&u) && same_texts(&u);
  tarn_keep(cx, u.b);
  LLVMDisposeBuilder(u.b);
  return same ? NULL : u.why;
}
