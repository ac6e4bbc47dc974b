/* Reductions: accumulators, their initial values, steps, merging of lanes, the epilogue.
 *
 * An accumulator is a variable in memory of its own for every unrolled copy and state component,
 * which LLVM turns into a register; when loops walk the accumulators they are one array.  A reduce
 * level outside of them continues from the partial result that the last trip left in the result. */
#include "lower/nest.h"
#include <string.h>

/* ---------------------------------------------------------------- accumulators */
/* Number of this copy's accumulator: a constant plus what loops contribute. */
static int64_t slot_number(const low_nest *N, low_fn *E, LLVMValueRef *loops) {
  int64_t at = 0, radix = 1;
  *loops = NULL;
  for (uint32_t i = low_list(N)->n; i-- > 0;) {
    const tarn_plan_level *l = &low_list(N)->level[i];
    if (!l->inside || l->red || l->kind == TARN_VECTOR || l->kind == TARN_TEAM) continue;
    if (l->kind == TARN_DOT) continue;
    const tarn_plan_at *e = &E->env[l->var];
    if (e->kind == TARN_PLAN_NUMBER) at += radix * e->c;
    else {
      LLVMValueRef v = LLVMBuildMul(N->M->b, E->counter[l->var], low_index(N->M, radix), "");
      *loops = *loops ? LLVMBuildAdd(N->M->b, *loops, v, "") : v;
    }
    radix *= l->trips;
  }
  const tarn_plan_stage *st = N->now->p;
  return st->unit ? at * st->nreg[2] + E->env[st->reg[2]].c : at;
}

static uint32_t acc_lanes(const low_stage *st, const low_fn *E) {
  if (E->lane) return 1;
  return st->p->red_lanes > 1 ? st->p->red_lanes : E->lanes;
}

/* Which of a slot's chains this copy of the body adds to. */
static int64_t chain_of(const low_nest *N, const low_fn *E) {
  int64_t at = 0;
  if (N->now->p->chains == 1) return 0;
  for (uint32_t i = 0; i < low_list(N)->n; i++) {
    const tarn_plan_level *l = &low_list(N)->level[i];
    if (l->inside && l->red && l->kind == TARN_UNROLL) at = at * l->trips + E->env[l->var].c;
  }
  return at;
}
static LLVMValueRef acc_pointer(low_nest *N, low_fn *E, uint32_t k, int64_t chain,
                                LLVMTypeRef type) {
  low_module *M = N->M;
  low_stage *st = N->now;
  LLVMValueRef loops;
  int64_t at = (slot_number(N, E, &loops) * st->p->chains + chain) * st->p->red->ns + k;
  if (!st->p->in_memory) {
    if (!st->slot[at]) st->slot[at] = low_alloca(E, type, 1);
    return st->slot[at];
  }
  LLVMValueRef i = low_index(M, at);
  if (loops)
    i = LLVMBuildAdd(M->b, LLVMBuildMul(M->b, loops, low_index(M, st->p->red->ns), ""), i, "");
  i = LLVMBuildMul(M->b, i, low_index(M, 8 * (int64_t)st->p->max_lanes), "");
  return LLVMBuildInBoundsGEP2(M->b, M->i8, st->slot[0], &i, 1, "");
}

static LLVMTypeRef state_type(const low_nest *N, const low_stage *st, uint32_t k, uint32_t lanes) {
  return low_vec(low_compute_type(N->M, st->p->state[k]), lanes);
}
static LLVMValueRef acc_load(low_nest *N, low_fn *E, uint32_t k, int64_t chain) {
  low_stage *st = N->now;
  LLVMTypeRef t = state_type(N, st, k, acc_lanes(st, E));
  LLVMValueRef v = LLVMBuildLoad2(N->M->b, t, acc_pointer(N, E, k, chain, t), "");
  LLVMSetAlignment(v, st->p->in_memory ? 8 : 64);
  return v;
}
static void acc_store(low_nest *N, low_fn *E, uint32_t k, int64_t chain, LLVMValueRef v) {
  low_stage *st = N->now;
  LLVMValueRef s = LLVMBuildStore(N->M->b, v, acc_pointer(N, E, k, chain, LLVMTypeOf(v)));
  LLVMSetAlignment(s, st->p->in_memory ? 8 : 64);
}

LLVMValueRef low_acc_load(low_nest *N, low_fn *E) { return acc_load(N, E, 0, chain_of(N, E)); }
void low_acc_store(low_nest *N, low_fn *E, LLVMValueRef v) {
  acc_store(N, E, 0, chain_of(N, E), v);
}

/* ---------------------------------------------------------------- lanes along a reduce dim */
static LLVMValueRef part(low_module *M, LLVMValueRef v, uint32_t from, uint32_t n) {
  int idx[256];
  if (n == 1) return LLVMBuildExtractElement(M->b, v, LLVMConstInt(M->i32, from, 0), "");
  for (uint32_t i = 0; i < n; i++) idx[i] = (int)(from + i);
  return low_shuffle(M, v, LLVMGetPoison(LLVMTypeOf(v)), idx, n);
}
/* The first lanes of v replaced by the few of w. */
static LLVMValueRef replace_lanes(low_module *M, LLVMValueRef v, LLVMValueRef w, uint32_t few,
                                  uint32_t n) {
  int idx[256];
  if (few == 1) return LLVMBuildInsertElement(M->b, v, w, LLVMConstInt(M->i32, 0, 0), "");
  for (uint32_t i = 0; i < n; i++) idx[i] = i < few ? (int)i : -1;
  w = low_shuffle(M, w, LLVMGetPoison(LLVMTypeOf(w)), idx, n);
  for (uint32_t i = 0; i < n; i++) idx[i] = (int)(i < few ? n + i : i);
  return low_shuffle(M, v, w, idx, n);
}

/* The state of all chains of a slot, by pairs. */
static void merge_chains(low_nest *N, low_fn *E, LLVMValueRef *out) {
  low_stage *st = N->now;
  const tarn_reducer *r = st->p->red;
  uint32_t ns = r->ns;
  LLVMValueRef v[PLAN_MOST_CHAINS * TARN_MAX_STATE], two[2 * TARN_MAX_STATE];
  tarn_dtype t[2 * TARN_MAX_STATE];
  for (uint32_t k = 0; k < ns; k++) t[k] = t[ns + k] = st->p->state[k];
  for (uint32_t c = 0; c < st->p->chains; c++)
    for (uint32_t k = 0; k < ns; k++) v[c * ns + k] = acc_load(N, E, k, c);
  for (uint32_t n = (uint32_t)st->p->chains; n > 1; n = (n + 1) / 2)
    for (uint32_t c = 0; c < n / 2; c++) {
      uint32_t other = n - 1 - c;
      for (uint32_t k = 0; k < ns; k++) two[k] = v[c * ns + k], two[ns + k] = v[other * ns + k];
      for (uint32_t k = 0; k < ns; k++)
        v[c * ns + k] = low_fx(N->M, r->merge[k], two, t, 2 * ns, acc_lanes(st, E), NULL);
    }
  memcpy(out, v, ns * sizeof *v);
}
/* All lanes of the state into one, halving. */
static void merge_lanes(low_nest *N, const low_stage *st, LLVMValueRef *v) {
  const tarn_reducer *r = st->p->red;
  LLVMValueRef two[2 * TARN_MAX_STATE], rest[TARN_MAX_STATE];
  tarn_dtype t[2 * TARN_MAX_STATE];
  uint32_t n = st->p->red_lanes;
  for (uint32_t k = 0; k < r->ns; k++) t[k] = t[r->ns + k] = st->p->state[k];
  while (n > 1) {
    uint32_t half = n / 2;
    bool odd = n % 2;
    for (uint32_t k = 0; k < r->ns; k++) {
      two[k] = part(N->M, v[k], 0, half), two[r->ns + k] = part(N->M, v[k], half, half);
      if (odd) rest[k] = part(N->M, v[k], n - 1, 1);
    }
    for (uint32_t k = 0; k < r->ns; k++)
      v[k] = low_fx(N->M, r->merge[k], two, t, 2u * r->ns, half, NULL);
    if (odd) { /* the last lane joins the first */
      LLVMValueRef pair[2 * TARN_MAX_STATE];
      for (uint32_t k = 0; k < r->ns; k++)
        pair[k] = half == 1 ? v[k] : part(N->M, v[k], 0, 1), pair[r->ns + k] = rest[k];
      for (uint32_t k = 0; k < r->ns; k++) {
        LLVMValueRef m = low_fx(N->M, r->merge[k], pair, t, 2u * r->ns, 1, NULL);
        v[k] = half == 1 ? m : replace_lanes(N->M, v[k], m, 1, half);
      }
    }
    n = half;
  }
}

/* ---------------------------------------------------------------- parts of sums */
/* The number of this thread among those of its part, and how many it has. */
static LLVMValueRef member(const low_nest *N, const low_fn *E, int64_t *members) {
  const tarn_plan_stage *p = N->now->p;
  LLVMBuilderRef b = N->M->b;
  LLVMValueRef at = p->unit ? E->counter[p->lane] : low_index(N->M, 0);
  *members = p->unit ? N->M->regs.warp : 1;
  for (uint32_t i = 0; i < low_list(N)->n; i++) {
    const tarn_plan_level *l = &low_list(N)->level[i];
    if (l->kind != TARN_TEAM || l->red) continue;
    LLVMValueRef v = LLVMBuildMul(b, E->counter[l->var], low_index(N->M, *members), "");
    at = LLVMBuildAdd(b, at, v, "");
    *members *= l->trips;
  }
  return at;
}
/* Where member number `at` of part `part`, from 1 on, leaves sum number i for part 0. */
static LLVMValueRef place_of(const low_nest *N, LLVMValueRef part, LLVMValueRef at, int64_t members,
                             int64_t i) {
  low_module *M = N->M;
  const tarn_plan_stage *p = N->now->p;
  LLVMTypeRef t = low_compute_type(M, p->state[0]);
  LLVMValueRef n = LLVMBuildNSWMul(M->b, part, low_index(M, members * p->slots), "");
  n = low_widened(M, LLVMBuildNSWAdd(M->b, n, at, ""));
  LLVMValueRef c = low_i64(M, (i - p->slots) * members);
  LLVMValueRef first = LLVMBuildGEP2(M->b, t, N->now->shared, &n, 1, "");
  return LLVMBuildGEP2(M->b, t, first, &c, 1, "");
}
static LLVMValueRef merged(const low_nest *N, LLVMValueRef x, LLVMValueRef y) {
  const tarn_plan_stage *p = N->now->p;
  LLVMValueRef two[2] = {x, y};
  const tarn_dtype t[2] = {p->state[0], p->state[0]};
  return low_fx(N->M, p->red->merge[0], two, t, 2, 1, NULL);
}
/* This thread's sum number i, of all its chains. */
static LLVMValueRef own_sum(const low_nest *N, int64_t i) {
  const low_stage *st = N->now;
  LLVMTypeRef t = low_compute_type(N->M, st->p->state[0]);
  LLVMValueRef sum = NULL;
  for (int64_t c = 0; c < st->p->chains; c++) {
    LLVMValueRef v = LLVMBuildLoad2(N->M->b, t, st->slot[i * st->p->chains + c], "");
    sum = sum ? merged(N, sum, v) : v;
  }
  return sum;
}
static void wait_for_all(low_nest *N, low_fn *E) {
  low_emit_barrier(N, E, &(tarn_plan_stmt){.op = TARN_PLAN_BARRIER});
}
void low_emit_merge(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  low_module *M = N->M;
  const low_stage *st = N->now;
  LLVMBasicBlockRef give = low_block(E, "give"), given = low_block(E, "given");
  LLVMBasicBlockRef take = low_block(E, "take"), after = low_block(E, "merged");
  LLVMValueRef part = E->counter[s->var];
  int64_t members;
  wait_for_all(N, E); /* nobody reads any more what was held there */
  LLVMValueRef at = member(N, E, &members);
  LLVMValueRef first = LLVMBuildICmp(M->b, LLVMIntEQ, part, low_index(M, 0), "");
  LLVMBuildCondBr(M->b, first, given, give);
  low_begin(E, give);
  for (int64_t i = 0; i < st->p->slots; i++)
    LLVMBuildStore(M->b, own_sum(N, i), place_of(N, part, at, members, i));
  LLVMBuildBr(M->b, given);
  low_begin(E, given);
  wait_for_all(N, E);
  LLVMBuildCondBr(M->b, first, take, after);
  low_begin(E, take);
  for (int64_t i = 0; i < st->p->slots; i++) {
    LLVMValueRef *sum = &st->slot[i * st->p->chains];
    LLVMTypeRef t = low_compute_type(M, st->p->state[0]);
    for (int64_t k = 1; k <= s->hi; k++) {
      LLVMValueRef other =
          LLVMBuildLoad2(M->b, t, place_of(N, low_index(M, k), at, members, i), "");
      LLVMBuildStore(M->b, merged(N, LLVMBuildLoad2(M->b, t, *sum, ""), other), *sum);
    }
  }
  for (const tarn_plan_stmt *in = s + 1; in < s + s->size; in += in->size) low_emit(N, E, in);
  LLVMBuildBr(M->b, after);
  low_begin(E, after);
}

/* ---------------------------------------------------------------- lanes that are threads */
static LLVMValueRef first_lane(low_module *M, const low_fn *E) {
  return LLVMBuildICmp(M->b, LLVMIntEQ, E->lane, low_index(M, 0), "");
}
static LLVMValueRef of_lane_across(low_module *M, LLVMValueRef word, uint32_t by) {
  LLVMValueRef a[4] = {LLVMConstInt(M->i32, UINT32_MAX, 0), word, LLVMConstInt(M->i32, by, 0),
                       LLVMConstInt(M->i32, 31, 0)};
  return low_intrinsic(M, "llvm.nvvm.shfl.sync.bfly.i32", NULL, 0, a, 4);
}
/* The value that the thread has whose lane differs in bit `by`; by words of 32 bits. */
static LLVMValueRef across(low_module *M, LLVMValueRef v, uint32_t by) {
  LLVMBuilderRef b = M->b;
  LLVMTypeRef t = LLVMTypeOf(v);
  bool real = LLVMGetTypeKind(t) != LLVMIntegerTypeKind;
  bool two = t == M->f64 || t == M->i64;
  LLVMTypeRef whole = two ? M->i64 : t == M->f32 ? M->i32 : t;
  LLVMValueRef x = real ? LLVMBuildBitCast(b, v, whole, "") : v;
  if (!two) {
    x = of_lane_across(M, LLVMBuildZExtOrBitCast(b, x, M->i32, ""), by);
    x = LLVMBuildTruncOrBitCast(b, x, whole, "");
    return real ? LLVMBuildBitCast(b, x, t, "") : x;
  }
  LLVMValueRef half = low_i64(M, 32);
  LLVMValueRef low = of_lane_across(M, LLVMBuildTrunc(b, x, M->i32, ""), by);
  LLVMValueRef high =
      of_lane_across(M, LLVMBuildTrunc(b, LLVMBuildLShr(b, x, half, ""), M->i32, ""), by);
  x = LLVMBuildShl(b, LLVMBuildZExt(b, high, M->i64, ""), half, "");
  x = LLVMBuildOr(b, x, LLVMBuildZExt(b, low, M->i64, ""), "");
  return real ? LLVMBuildBitCast(b, x, t, "") : x;
}
/* The state of all lanes, in all of them. */
static void merge_threads(low_nest *N, const low_stage *st, LLVMValueRef *v) {
  const tarn_reducer *r = st->p->red;
  LLVMValueRef two[2 * TARN_MAX_STATE];
  tarn_dtype t[2 * TARN_MAX_STATE];
  for (uint32_t k = 0; k < r->ns; k++) t[k] = t[r->ns + k] = st->p->state[k];
  for (uint32_t by = st->p->red_lanes / 2; by; by /= 2) {
    for (uint32_t k = 0; k < r->ns; k++) two[k] = v[k], two[r->ns + k] = across(N->M, v[k], by);
    for (uint32_t k = 0; k < r->ns; k++)
      v[k] = low_fx(N->M, r->merge[k], two, t, 2u * r->ns, 1, NULL);
  }
}

/* ---------------------------------------------------------------- leaves */
static void init_leaf(low_nest *N, low_fn *E, bool resume) {
  low_stage *st = N->now;
  uint32_t n = acc_lanes(st, E);
  for (uint32_t k = 0; k < st->p->red->ns; k++) {
    LLVMValueRef v = low_fx(N->M, st->p->red->init[k], NULL, NULL, 0, n, NULL);
    if (st->p->start != TARN_NONE && !resume)
      v = low_reordered(E, st->p->halves,
                        low_load(E, &st->read[st->p->f->nops + st->p->start], low_depth(N)));
    for (int64_t c = 1; c < st->p->chains; c++) acc_store(N, E, k, c, v);
    if (resume) {
      LLVMValueRef old = low_reordered(E, st->p->halves, low_load(E, &st->result, low_depth(N)));
      if (E->lane) v = LLVMBuildSelect(N->M->b, first_lane(N->M, E), old, v, "");
      else v = st->p->red_lanes > 1 ? replace_lanes(N->M, v, old, 1, n) : old;
    }
    acc_store(N, E, k, 0, v);
  }
}

static LLVMValueRef flat_index(low_nest *N, low_fn *E, const low_stage *st) {
  low_off o = low_eval(E, st->p->flat);
  LLVMValueRef v = low_off_scalar(E, &(low_off){.v = o.v, .c = o.c});
  v = low_splat(N->M, low_widened(N->M, v), E->lanes);
  if (o.stride && E->lanes > 1) {
    LLVMValueRef lane[256];
    for (uint32_t i = 0; i < E->lanes; i++) lane[i] = low_i64(N->M, (int64_t)i * o.stride);
    v = LLVMBuildAdd(N->M->b, v, LLVMConstVector(lane, E->lanes), "");
  }
  return o.vec ? LLVMBuildAdd(N->M->b, v, low_widened(N->M, o.vec), "") : v;
}

static void body_leaf(low_nest *N, low_fn *E) {
  low_stage *st = N->now;
  uint32_t ns = st->p->red->ns, nops = st->p->f->nops, n = acc_lanes(st, E);
  LLVMValueRef v[TARN_MAX_STATE + 1 + TARN_MAX_OPERANDS], old[TARN_MAX_STATE], now[TARN_MAX_STATE];
  tarn_dtype t[TARN_MAX_STATE + 1 + TARN_MAX_OPERANDS];
  int64_t chain = chain_of(N, E);
  for (uint32_t k = 0; k < ns; k++) {
    old[k] = acc_load(N, E, k, chain);
    v[k] = n > E->lanes ? part(N->M, old[k], 0, E->lanes) : old[k], t[k] = st->p->state[k];
  }
  v[ns] = st->p->step_index ? flat_index(N, E, st) : NULL, t[ns] = TARN_I64;
  E->halves = st->p->halves;
  for (uint32_t r = 0; r < nops; r++)
    v[ns + 1 + r] = low_load(E, &st->read[r], low_depth(N)), t[ns + 1 + r] = st->read[r].p->dtype;
  E->halves = false;
  for (uint32_t k = 0; k < ns; k++)
    now[k] = low_fx(N->M, st->p->step[k], v, t, ns + 1 + nops, E->lanes, NULL);
  for (uint32_t k = 0; k < ns; k++)
    acc_store(N, E, k, chain,
              n > E->lanes ? replace_lanes(N->M, old[k], now[k], E->lanes, n) : now[k]);
}

/* Added to any number it is that number. */
static LLVMValueRef nothing(const low_nest *N, tarn_dtype t, uint32_t n) {
  return low_splat(N->M, LLVMConstReal(low_compute_type(N->M, t), -0.0), n);
}
/* x, of type t, as the epilogue makes a result of it, to its place. */
static void store_result(low_nest *N, low_fn *E, LLVMValueRef x, tarn_dtype type) {
  low_stage *st = N->now;
  const tarn_func *f = st->p->f;
  uint32_t end = low_depth(N);
  if (f->epi != TARN_NONE && N->phase != TARN_PLAN_LEAVE) {
    LLVMValueRef v[TARN_MAX_OPERANDS + 1] = {x};
    tarn_dtype t[TARN_MAX_OPERANDS + 1] = {type};
    for (uint32_t r = 0; r < f->nepi; r++) {
      low_access *a = &st->read[f->nops + r];
      bool begun = st->p->red && r == st->p->start;
      t[1 + r] = a->p->dtype;
      v[1 + r] = begun ? nothing(N, a->p->dtype, E->lanes) : low_load(E, a, end);
    }
    x = low_fx(N->M, f->epi, v, t, 1u + f->nepi, E->lanes, &type);
  }
  if (st->p->rows) low_store_transposed(N, E, st, end, x);
  else low_store(E, &st->result, end, x);
}
/* What is between these the first thread of a warp does alone. */
static LLVMBasicBlockRef begin_once(low_nest *N, low_fn *E) {
  LLVMBasicBlockRef yes = low_block(E, "first");
  LLVMBasicBlockRef after = low_block(E, "all");
  LLVMBuildCondBr(N->M->b, first_lane(N->M, E), yes, after);
  low_begin(E, yes);
  return after;
}
static void end_once(low_nest *N, low_fn *E, LLVMBasicBlockRef after) {
  LLVMBuildBr(N->M->b, after);
  low_begin(E, after);
}
static void store_once(low_nest *N, low_fn *E, LLVMValueRef x, tarn_dtype type) {
  LLVMBasicBlockRef after = begin_once(N, E);
  store_result(N, E, x, type);
  end_once(N, E, after);
}
/* A step that is no lane's: a tail of one. */
static void step_leaf(low_nest *N, low_fn *E) {
  LLVMBasicBlockRef after = E->lane && !E->by_lane ? begin_once(N, E) : NULL;
  body_leaf(N, E);
  if (after) end_once(N, E, after);
}
static void map_leaf(low_nest *N, low_fn *E) {
  low_stage *st = N->now;
  const tarn_func *f = st->p->f;
  LLVMValueRef v[TARN_MAX_OPERANDS];
  tarn_dtype t[TARN_MAX_OPERANDS];
  tarn_dtype type;
  low_copy_begin(N, E);
  for (uint32_t r = 0; r < f->nops; r++) {
    v[r] = low_load(E, &st->read[r], low_depth(N));
    t[r] = st->read[r].p->dtype;
  }
  N->M->at_most_0 = st->p->at_most_0;
  LLVMValueRef x = low_fx(N->M, f->body, v, t, f->nops, E->lanes, &type);
  N->M->at_most_0 = false;
  store_result(N, E, x, type);
  low_copy_end(N, E);
}
static void final_leaf(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  low_stage *st = N->now;
  const tarn_reducer *red = st->p->red;
  LLVMValueRef state[TARN_MAX_STATE];
  tarn_dtype type = st->p->state[0];
  bool alone = st->p->nfactor || s->early; /* other code stands between such copies */
  if (!alone) low_copy_begin(N, E);
  LLVMValueRef given = s->value == TARN_NONE ? NULL : N->value[s->value];
  if (!st->p->nfactor) merge_chains(N, E, state);
  else state[0] = given ? given : LLVMConstNull(state_type(N, st, 0, E->lanes));
  if (E->lane) merge_threads(N, st, state);
  else if (st->p->red_lanes > 1) merge_lanes(N, st, state);
  for (uint32_t k = 0; k < red->ns; k++) state[k] = low_reordered(E, st->p->halves, state[k]);
  LLVMValueRef x = state[0];
  if (s->phase == TARN_PLAN_FINISH)
    x = low_fx(N->M, red->result, state, st->p->state, red->ns, E->lanes, &type);
  if (E->lane) store_once(N, E, x, type);
  else store_result(N, E, x, type);
  if (!alone) low_copy_end(N, E);
}

void low_emit_compute(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  N->M->nan_shows = N->now->p->red && N->now->p->nan_shows;
  switch ((tarn_plan_phase)s->phase) {
  case TARN_PLAN_MAP: map_leaf(N, E); break;
  case TARN_PLAN_BEGIN: init_leaf(N, E, false); break;
  case TARN_PLAN_RESUME: init_leaf(N, E, true); break;
  case TARN_PLAN_STEP: step_leaf(N, E); break;
  case TARN_PLAN_LEAVE:
  case TARN_PLAN_FINISH: final_leaf(N, E, s); break;
  case TARN_PLAN_PHASES: break;
  }
  N->M->nan_shows = false;
}

void low_emit_tile(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  low_stage *st = N->now;
  const tarn_plan_stage *p = st->p;
  const tarn_plan_stmt *end = s + s->size;
  int64_t ns = p->red->ns;
  if (p->in_memory) {
    st->slot = TARN_ARRAY(N->M->cx, LLVMValueRef, 1);
    st->slot[0] = low_local(E, p->slots * ns * 8 * (int64_t)p->max_lanes);
  } else st->slot = TARN_ARRAY(N->M->cx, LLVMValueRef, p->slots * p->chains * ns);
  E->gen++;
  if (p->tiled) low_number_thread(N, E);
  for (const tarn_plan_stmt *in = s + 1; in < end; in += in->size) {
    low_emit(N, E, in);
    if (!p->nfactor) E->gen++; /* what the steps load is not kept for the results */
  }
  E->gen++;
}
