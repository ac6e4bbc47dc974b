/* Prints what a GPU's block holds in shared memory: the pipeline over the sum, the copies that its
 * threads share, waits and barriers. */
#include "lower/access.h"
#include "lower/nest.h"
#include <string.h>

enum { GLOBAL_SPACE = 1, SHARED_SPACE = 3 };

/* ---------------------------------------------------------------- counters */
/* v + c, an i32 whose digits are taken from the lowest on. */
typedef struct rest {
  LLVMValueRef v;
  uint64_t c;
} rest;
static LLVMValueRef i32(const low_nest *N, uint64_t c) { return LLVMConstInt(N->M->i32, c, false); }
static LLVMValueRef whole(const low_nest *N, const rest *r) {
  return r->c ? LLVMBuildNUWAdd(N->M->b, r->v, i32(N, r->c), "") : r->v;
}
/* The digit of this radix, as an index. What is added stays apart as long as it is a multiple: then
 * the copies of a thread share the division. */
static LLVMValueRef digit(const low_nest *N, rest *r, uint64_t radix, bool last) {
  LLVMBuilderRef b = N->M->b;
  LLVMValueRef d;
  if (radix == 1) d = i32(N, 0);
  else if (last) d = whole(N, r);
  else {
    if (r->c % radix) *r = (rest){whole(N, r), 0};
    d = LLVMBuildURem(b, r->v, i32(N, radix), "");
    *r = (rest){LLVMBuildUDiv(b, r->v, i32(N, radix), ""), r->c / radix};
  }
  return LLVMBuildZExtOrBitCast(b, d, N->M->index, "");
}
static void set(low_fn *E, uint32_t var, LLVMValueRef v, int64_t trips) {
  E->counter[var] = v;
  E->env[var] = (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .c = trips - 1};
}
static void unset(low_fn *E, uint32_t var) { E->env[var] = (tarn_plan_at){0}; }

void low_number_thread(low_nest *N, low_fn *E) {
  const tarn_plan_list *list = low_list(N);
  rest r = {LLVMBuildTruncOrBitCast(N->M->b, E->thread, N->M->i32, ""), 0};
  const tarn_plan_stage *st = N->now->p;
  uint64_t lanes = N->M->regs.warp;
  int64_t left = st->threads;
  if (st->unit) {
    left /= (int64_t)lanes;
    E->counter[st->lane] = digit(N, &r, lanes, left == 1);
  }
  for (uint32_t i = list->n; i-- > 0;) {
    const tarn_plan_level *l = &list->level[i];
    if (l->kind != TARN_TEAM) continue;
    left /= l->trips;
    E->counter[l->var] = digit(N, &r, (uint64_t)l->trips, left == 1);
  }
}
void low_emit_member(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  low_enter(N, E, s, (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .c = s->hi});
}

/* ---------------------------------------------------------------- tensor cores */
static LLVMValueRef advanced(low_nest *N, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef by) {
  return LLVMBuildInBoundsGEP2(N->M->b, t, p, &by, 1, "");
}
/* A register of one element, rounded as the instruction takes it. */
static LLVMValueRef rounded(low_nest *N, tarn_dtype t, uint32_t fx, LLVMValueRef v) {
  if (fx == TARN_NONE) return v;
  LLVMValueRef x = LLVMBuildBitCast(N->M->b, v, low_memory_type(N->M, t), "");
  x = low_fx(N->M, fx, &x, &t, 1, 1, NULL);
  return LLVMBuildBitCast(N->M->b, x, LLVMTypeOf(v), "");
}
/* Element i of n, an integer, put beside those that v has. */
static LLVMValueRef joined(low_module *M, LLVMValueRef v, LLVMValueRef x, int64_t i, int64_t n) {
  unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(x));
  LLVMTypeRef all = LLVMIntTypeInContext(M->lc, bits * (unsigned)n);
  x = LLVMBuildZExt(M->b, x, all, "");
  if (!v) return x;
  x = LLVMBuildShl(M->b, x, LLVMConstInt(all, bits * (unsigned)i, 0), "");
  return LLVMBuildOr(M->b, v, x, "");
}
/* n registers of `each` elements, all side by side, as the counters say. Where guards fail they are
 * the fill: lanes for which they do load the operand's first elements, all the same, so that a warp
 * stays together. */
static LLVMValueRef side_by_side(low_nest *N, low_fn *E, const low_access *a, uint32_t each,
                                 uint32_t n) {
  low_module *M = N->M;
  uint32_t bytes = each * (uint32_t)tarn_dtype_size(a->p->dtype);
  LLVMTypeRef type = low_vec(LLVMIntTypeInContext(M->lc, 8 * bytes), n);
  low_cond c = low_conditions(E, a);
  LLVMValueRef fill = NULL;
  if (a->p->nguard) {
    fill = low_splat(M, low_to_memory(M, a->p->dtype, low_fx_const(M, a->p->fill, 1)), n * each);
    fill = LLVMBuildBitCast(M->b, fill, type, "");
  }
  if (c.never) return fill;
  low_off off = low_offset(E, a->p->off);
  LLVMValueRef p = low_address(E, a->p->dtype, a->base, &off);
  if (c.all) p = LLVMBuildSelect(M->b, c.all, p, a->base, "");
  LLVMValueRef v = LLVMBuildLoad2(M->b, type, p, "");
  LLVMSetAlignment(v, n * bytes);
  return c.all ? LLVMBuildSelect(M->b, c.all, v, fill, "") : v;
}
/* Register `first` of operand o; or with pairs that and the one that lies behind it. */
static void load_registers(low_nest *N, low_fn *E, uint32_t o, int64_t first, LLVMValueRef *reg) {
  const tarn_plan_stage *st = N->now->p;
  const low_access *a = &N->now->read[st->unit_read[o]];
  int64_t each = st->each[o], loads = st->scattered[o] ? each : 1;
  uint32_t n = st->pair[o] ? 2 : 1;
  LLVMValueRef v = NULL;
  E->env[st->reg[o]] = (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = first};
  for (int64_t i = 0; i < loads; i++) {
    E->env[st->place[o]] = (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = i};
    LLVMValueRef x = side_by_side(N, E, a, (uint32_t)(each / loads), n);
    v = loads == 1 ? x : joined(N->M, v, x, i, loads);
  }
  unset(E, st->reg[o]), unset(E, st->place[o]);
  for (uint32_t i = 0; i < n; i++) {
    LLVMValueRef x = n == 1 ? v : LLVMBuildExtractElement(N->M->b, v, i32(N, i), "");
    reg[first + i * st->pair[o]] = rounded(N, a->p->dtype, st->unit_round[o], x);
  }
}
/* Where operand o begins in shared memory. */
static int64_t shared_at(const low_nest *N, uint32_t o) {
  const tarn_plan_stage *st = N->now->p;
  uint32_t read = st->unit_read[o], held = st->read[read].held;
  return held ? st->held[held - 1].at : N->p->stage[st->s->read[read].src].shared_at;
}
/* Registers `first` and so on, as many as one instruction loads: lane 8 i + k says where row k of
 * the i-th of them begins, which is where its first four lanes' registers lie. */
static void load_matrices(low_nest *N, low_fn *E, uint32_t o, int64_t first, LLVMValueRef *reg) {
  const tarn_plan_stage *st = N->now->p;
  low_module *M = N->M;
  const low_access *a = &N->now->read[st->unit_read[o]];
  int64_t n = st->matrices[o];
  LLVMValueRef lane = E->counter[st->lane], eight = low_index(M, 8);
  LLVMValueRef which = LLVMBuildUDiv(M->b, lane, eight, "");
  if (n < 4) which = LLVMBuildURem(M->b, which, low_index(M, n), "");
  E->counter[st->lane] =
      LLVMBuildNUWMul(M->b, LLVMBuildURem(M->b, lane, eight, ""), low_index(M, 4), "");
  set(E, st->reg[o], LLVMBuildNUWAdd(M->b, which, low_index(M, first), ""), st->nreg[o]);
  E->env[st->place[o]] = (tarn_plan_at){.kind = TARN_PLAN_NUMBER};
  low_off off = low_offset(E, a->p->off);
  LLVMValueRef base = advanced(N, M->i8, E->shared, low_i64(M, shared_at(N, o)));
  LLVMValueRef p = low_address(E, a->p->dtype, base, &off);
  LLVMTypeRef type = LLVMTypeOf(p);
  const char *name =
      tarn_format(M->cx, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%lld.b16", (long long)n);
  LLVMValueRef v = low_intrinsic(M, name, &type, 1, &p, 1);
  for (int64_t i = 0; i < n; i++) {
    LLVMValueRef x = n > 1 ? LLVMBuildExtractValue(M->b, v, (unsigned)i, "") : v;
    reg[i] = rounded(N, a->p->dtype, st->unit_round[o], x);
  }
  E->counter[st->lane] = lane;
  unset(E, st->reg[o]), unset(E, st->place[o]);
}
static void load_fragment(low_nest *N, low_fn *E, uint32_t o, LLVMValueRef *reg) {
  const tarn_plan_stage *st = N->now->p;
  int64_t each = st->matrices[o], n = st->pair[o] ? st->pair[o] : st->nreg[o];
  for (int64_t i = 0; i < n; i += each ? each : 1)
    if (each) load_matrices(N, E, o, i, &reg[i]);
    else load_registers(N, E, o, i, reg);
}
/* The instruction: registers of both operands and of the result, and what the result becomes. */
static LLVMValueRef call_unit(low_nest *N, const LLVMValueRef *reg, uint32_t n) {
  low_module *M = N->M;
  const tarn_hw_intrinsic *u = N->now->p->unit;
  const char *name = u->encoding ? u->encoding : "";
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id || LLVMIntrinsicIsOverloaded(id))
    tarn_raise(M->cx, TARN_BAD_INPUT, "%s: intrinsic %s: LLVM knows no %s", M->hw->name, u->name,
               name);
  LLVMTypeRef type = LLVMIntrinsicGetType(M->lc, id, NULL, 0), param[64];
  if (LLVMCountParamTypes(type) != n)
    tarn_raise(M->cx, TARN_BAD_INPUT, "%s: intrinsic %s: %s does not take %u registers",
               M->hw->name, u->name, name, n);
  LLVMGetParamTypes(type, param);
  LLVMValueRef arg[64];
  for (uint32_t i = 0; i < n; i++) arg[i] = LLVMBuildBitCast(M->b, reg[i], param[i], "");
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(M->m, id, NULL, 0);
  return LLVMBuildCall2(M->b, type, f, arg, n, "");
}
void low_emit_unit(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  const tarn_plan_stage *st = N->now->p;
  LLVMValueRef reg[64];
  uint32_t n = 0;
  (void)s;
  if (st->nreg[0] + st->nreg[1] + st->nreg[2] > 64)
    tarn_raise(N->M->cx, TARN_BAD_INPUT, "intrinsic %s: more than 64 registers", st->unit->name);
  E->env[st->lane] = (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .c = st->space.hi[st->lane]};
  for (uint32_t o = 0; o < 2; o++) {
    load_fragment(N, E, o, &reg[n]);
    n += (uint32_t)st->nreg[o];
  }
  uint32_t sums = n;
  for (int64_t i = 0; i < st->nreg[2]; i++) {
    E->env[st->reg[2]] = (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = i};
    reg[n++] = low_acc_load(N, E);
  }
  LLVMValueRef out = call_unit(N, reg, n);
  for (int64_t i = 0; i < st->nreg[2]; i++) {
    E->env[st->reg[2]] = (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = i};
    LLVMValueRef x = LLVMBuildExtractValue(N->M->b, out, (unsigned)i, "");
    low_acc_store(N, E, LLVMBuildBitCast(N->M->b, x, LLVMTypeOf(reg[sums + i]), ""));
  }
  unset(E, st->reg[2]), unset(E, st->lane);
}

/* ---------------------------------------------------------------- copies */
static LLVMValueRef conditions(low_fn *E, const tarn_plan_access *a) {
  LLVMValueRef all = NULL;
  for (uint32_t g = 0; g < a->nguard; g++) {
    int64_t lo, hi;
    low_range(E, a->guard[g].e, &lo, &hi);
    if (lo >= a->guard[g].lo && hi < a->guard[g].hi) continue;
    LLVMValueRef c = low_test(E, &a->guard[g]);
    all = all ? LLVMBuildAnd(E->M->b, all, c, "") : c;
  }
  return all;
}
/* What a thread does not wait for; where the condition fails it copies nothing, and zeros stand
 * there. */
static void copy_async(low_nest *N, uint32_t bytes, LLVMValueRef to, LLVMValueRef from,
                       LLVMValueRef is) {
  low_module *M = N->M;
  LLVMTypeRef p = LLVMPointerTypeInContext(M->lc, GLOBAL_SPACE);
  LLVMValueRef arg[3] = {to, LLVMBuildAddrSpaceCast(M->b, from, p, "")};
  if (is) arg[2] = LLVMBuildSelect(M->b, is, i32(N, bytes), i32(N, 0), "");
  const char *name = tarn_format(M->cx, "llvm.nvvm.cp.async.%s.shared.global.%u%s",
                                 bytes == 16 ? "cg" : "ca", bytes, is ? ".s" : "");
  low_intrinsic(M, name, NULL, 0, arg, is ? 3 : 2);
}
static void copy_sync(low_nest *N, low_fn *E, const tarn_plan_held *h, LLVMValueRef to,
                      LLVMValueRef from, LLVMValueRef is) {
  low_module *M = N->M;
  LLVMTypeRef t = low_vec(low_memory_type(M, h->from.dtype), h->wide);
  unsigned align = h->wide * (unsigned)tarn_dtype_size(h->from.dtype);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(M->b), yes = NULL, after = NULL;
  if (is) {
    yes = low_block(E, "inside");
    after = low_block(E, "copied");
    LLVMBuildCondBr(M->b, is, yes, after);
    low_begin(E, yes);
  }
  LLVMValueRef v = LLVMBuildLoad2(M->b, t, from, "");
  LLVMSetAlignment(v, align);
  if (is) {
    LLVMValueRef fill = low_to_memory(M, h->from.dtype, low_fx_const(M, h->from.fill, 1));
    LLVMValueRef in[2] = {v, low_splat(M, fill, h->wide)};
    LLVMBasicBlockRef blocks[2] = {LLVMGetInsertBlock(M->b), before};
    LLVMBuildBr(M->b, after);
    low_begin(E, after);
    v = LLVMBuildPhi(M->b, t, "");
    LLVMAddIncoming(v, in, blocks, 2);
  }
  LLVMSetAlignment(LLVMBuildStore(M->b, v, to), align);
}
/* What the counters of a copy say. */
static void copy_here(low_nest *N, low_fn *E, const tarn_plan_held *h) {
  low_module *M = N->M;
  low_off from = low_offset(E, h->from.off);
  low_off to = low_offset(E, h->to);
  LLVMValueRef is = conditions(E, &h->from);
  LLVMValueRef source = low_address(E, h->from.dtype, N->now->memory[h->read], &from);
  LLVMValueRef target = advanced(N, M->i8, N->now->shared, low_i64(M, h->at));
  target = low_address(E, h->from.dtype, target, &to);
  uint32_t bytes = h->wide * (uint32_t)tarn_dtype_size(h->from.dtype);
  if (h->async) copy_async(N, bytes, target, source, is);
  else copy_sync(N, E, h, target, source, is);
}
/* Thread t does copies t, t + threads, … */
void low_emit_copy(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  const tarn_plan_held *h = &N->now->p->held[N->now->p->read[s->read].held - 1];
  LLVMBuilderRef b = N->M->b;
  uint64_t all = 1, threads = (uint64_t)N->now->p->threads;
  for (uint32_t k = 0; k < h->n; k++) all *= (uint64_t)h->count[k];
  LLVMValueRef thread = LLVMBuildTruncOrBitCast(b, E->thread, N->M->i32, "");
  for (uint64_t from = 0; from < all; from += threads) {
    LLVMBasicBlockRef after = NULL;
    rest r = {thread, from};
    if (from + threads > all) {
      LLVMBasicBlockRef yes = low_block(E, "copy");
      after = low_block(E, "next");
      LLVMValueRef has = LLVMBuildICmp(b, LLVMIntULT, thread, i32(N, all - from), "");
      LLVMBuildCondBr(b, has, yes, after);
      low_begin(E, yes);
    }
    for (uint32_t k = h->n; k-- > 0;)
      set(E, h->var[k], digit(N, &r, (uint64_t)h->count[k], k == 0), h->count[k]);
    copy_here(N, E, h);
    for (uint32_t k = 0; k < h->n; k++) unset(E, h->var[k]);
    if (!after) continue;
    LLVMBuildBr(b, after);
    low_begin(E, after);
  }
}
/* A loop, or one store that not all threads do. */
void low_emit_fill(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  const tarn_plan_stage *st = N->now->p;
  const tarn_plan_held *h = &st->held[st->read[s->read].held - 1];
  low_module *M = N->M;
  LLVMTypeRef t = low_memory_type(M, h->from.dtype);
  int64_t n = h->elems * st->nslot;
  LLVMValueRef fill = low_to_memory(M, h->from.dtype, low_fx_const(M, h->from.fill, 1));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(M->b);
  LLVMBasicBlockRef body = low_block(E, "fill");
  LLVMBasicBlockRef after = low_block(E, "filled");
  LLVMValueRef base = advanced(N, M->i8, N->now->shared, low_i64(M, h->at));
  LLVMValueRef has = LLVMBuildICmp(M->b, LLVMIntULT, E->thread, low_index(M, n), "");
  LLVMBuildCondBr(M->b, has, body, after);
  low_begin(E, body);
  LLVMValueRef i = LLVMBuildPhi(M->b, M->index, "");
  LLVMSetAlignment(LLVMBuildStore(M->b, fill, advanced(N, t, base, i)),
                   (unsigned)tarn_dtype_size(h->from.dtype));
  LLVMValueRef next = LLVMBuildNUWAdd(M->b, i, low_index(M, st->threads), "");
  LLVMValueRef in[2] = {E->thread, next};
  LLVMBasicBlockRef blocks[2] = {before, body};
  LLVMAddIncoming(i, in, blocks, 2);
  LLVMValueRef more = LLVMBuildICmp(M->b, LLVMIntULT, next, low_index(M, n), "");
  LLVMBuildCondBr(M->b, more, body, after);
  low_begin(E, after);
}

/* ---------------------------------------------------------------- the pipeline */
static bool waits(const tarn_plan_stage *st) {
  for (uint32_t i = 0; i < st->nheld; i++)
    if (st->held[i].async) return true;
  return false;
}
void low_emit_await(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  (void)E;
  LLVMValueRef n = i32(N, s->n);
  if (waits(N->now->p)) low_intrinsic(N->M, "llvm.nvvm.cp.async.wait.group", NULL, 0, &n, 1);
}
void low_emit_barrier(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  (void)E, (void)s;
  low_intrinsic(N->M, "llvm.nvvm.barrier0", NULL, 0, NULL, 0);
}
static void commit(low_nest *N) {
  if (waits(N->now->p)) low_intrinsic(N->M, "llvm.nvvm.cp.async.commit.group", NULL, 0, NULL, 0);
}
/* All copies of a trip, an i32, into slot E->counter[st->slot]. */
static void fetch_trip(low_nest *N, low_fn *E, const tarn_plan_stmt *s, LLVMValueRef trip) {
  const tarn_plan_stage *st = N->now->p;
  const tarn_plan_list *list = low_list(N);
  rest r = {trip, 0};
  for (uint32_t i = st->until; i-- > st->acc;)
    set(E, list->level[i].var, digit(N, &r, (uint64_t)list->level[i].trips, i == st->acc),
        list->level[i].trips);
  for (const tarn_plan_stmt *in = s + 1; in < s + s->size; in += in->size) low_emit(N, E, in);
  for (uint32_t i = st->acc; i < st->until; i++) unset(E, list->level[i].var);
}
/* That of trip N->trip + slots - 1, if there is one. */
void low_emit_fetch(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  const tarn_plan_stage *st = N->now->p;
  LLVMBuilderRef b = N->M->b;
  uint32_t ahead = st->nslot - 1;
  LLVMValueRef slot = E->counter[st->slot];
  if (st->trips > ahead) {
    rest r = {N->trip, ahead};
    LLVMValueRef trip = whole(N, &r);
    LLVMBasicBlockRef yes = low_block(E, "fetch"), after = low_block(E, "work");
    LLVMValueRef has = LLVMBuildICmp(b, LLVMIntULT, trip, i32(N, (uint64_t)st->trips), "");
    LLVMBuildCondBr(b, has, yes, after);
    low_begin(E, yes);
    E->counter[st->slot] = N->free;
    fetch_trip(N, E, s, trip);
    LLVMBuildBr(b, after);
    low_begin(E, after);
  }
  commit(N);
  E->counter[st->slot] = slot;
}
/* The first trips' copies. */
static void fetch_first(low_nest *N, low_fn *E, const tarn_plan_stmt *fetch) {
  const tarn_plan_stage *st = N->now->p;
  for (uint32_t t = 0; t + 1 < st->nslot; t++) {
    set(E, st->slot, low_index(N->M, t), st->nslot);
    if (t < st->trips) fetch_trip(N, E, fetch, i32(N, t));
    commit(N);
  }
}
static LLVMValueRef next_slot(low_nest *N, LLVMValueRef slot) {
  LLVMBuilderRef b = N->M->b;
  LLVMValueRef next = LLVMBuildNUWAdd(b, slot, low_index(N->M, 1), "");
  LLVMValueRef end = low_index(N->M, N->now->p->nslot);
  LLVMValueRef is = LLVMBuildICmp(b, LLVMIntEQ, next, end, "");
  return LLVMBuildSelect(b, is, low_index(N->M, 0), next, "");
}
void low_emit_pipeline(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  const tarn_plan_stage *st = N->now->p;
  low_module *M = N->M;
  const tarn_plan_stmt *fetch = s + 1;
  while (fetch->op != TARN_PLAN_FETCH) fetch += fetch->size;
  fetch_first(N, E, fetch);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(M->b);
  LLVMBasicBlockRef body = low_block(E, "trip"), after = low_block(E, "summed");
  LLVMBuildBr(M->b, body);
  low_begin(E, body);
  LLVMValueRef trip = LLVMBuildPhi(M->b, M->i32, ""), slot = LLVMBuildPhi(M->b, M->index, "");
  LLVMValueRef place = LLVMBuildPhi(M->b, M->index, "");
  N->trip = trip, N->free = place;
  E->counter[st->slot] = slot;
  low_enter(N, E, s, (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .c = st->nslot - 1});
  LLVMValueRef next = LLVMBuildNUWAdd(M->b, trip, i32(N, 1), "");
  LLVMValueRef more = LLVMBuildICmp(M->b, LLVMIntULT, next, i32(N, (uint64_t)s->hi + 1), "");
  LLVMValueRef slots[2] = {next_slot(N, slot), next_slot(N, place)};
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(M->b)};
  LLVMAddIncoming(trip, (LLVMValueRef[2]){i32(N, 0), next}, blocks, 2);
  LLVMAddIncoming(slot, (LLVMValueRef[2]){low_index(M, 0), slots[0]}, blocks, 2);
  LLVMAddIncoming(place, (LLVMValueRef[2]){low_index(M, st->nslot - 1), slots[1]}, blocks, 2);
  LLVMBuildCondBr(M->b, more, body, after);
  low_begin(E, after);
}
