/* Reductions: accumulators, their initial values, steps, merging of lanes, the epilogue.
 *
 * An accumulator is a variable in memory of its own for every unrolled copy and state component,
 * which LLVM turns into a register; when loops walk the accumulators they are one array.  A reduce
 * level outside of them continues from the partial result that the last trip left in the result. */
#include "lower/nest.h"
#include <string.h>

static uint32_t end_of(const low_nest *N, uint32_t list) {
  return N->p->nshared + N->p->list[list].n;
}

/* ---------------------------------------------------------------- accumulators */
/* Number of this copy's accumulator: a constant plus what loops contribute. */
static int64_t slot_number(const low_nest *N, low_fn *E, uint32_t list, LLVMValueRef *loops) {
  int64_t at = 0, radix = 1;
  *loops = NULL;
  for (uint32_t i = N->p->list[list].n; i-- > 0;) {
    const tarn_plan_level *l = &N->p->list[list].level[i];
    if (!l->inside || l->red || l->kind == TARN_VECTOR) continue;
    const low_env *e = &E->env[l->var];
    if (e->kind == LOW_CONST) at += radix * e->c;
    else {
      LLVMValueRef v = LLVMBuildMul(N->M->b, e->v, low_i64(N->M, radix), "");
      *loops = *loops ? LLVMBuildAdd(N->M->b, *loops, v, "") : v;
    }
    radix *= l->trips;
  }
  return at;
}

static uint32_t acc_lanes(const low_stage *st, const low_fn *E) {
  return st->p->red_lanes > 1 ? st->p->red_lanes : E->lanes;
}

/* Which of a slot's chains this copy of the body adds to. */
static int64_t chain_of(const low_nest *N, const low_fn *E, uint32_t list) {
  int64_t at = 0;
  if (N->stage[list - 1].p->chains == 1) return 0;
  for (uint32_t i = 0; i < N->p->list[list].n; i++) {
    const tarn_plan_level *l = &N->p->list[list].level[i];
    if (l->inside && l->red && l->kind == TARN_UNROLL) at = at * l->trips + E->env[l->var].c;
  }
  return at;
}
static LLVMValueRef acc_pointer(low_nest *N, low_fn *E, uint32_t list, uint32_t k, int64_t chain,
                                LLVMTypeRef type) {
  low_module *M = N->M;
  low_stage *st = &N->stage[list - 1];
  LLVMValueRef loops;
  int64_t at = (slot_number(N, E, list, &loops) * st->p->chains + chain) * st->p->red->ns + k;
  if (!st->p->in_memory) {
    if (!st->slot[at]) st->slot[at] = low_alloca(E, type, 1);
    return st->slot[at];
  }
  LLVMValueRef i = low_i64(M, at);
  if (loops)
    i = LLVMBuildAdd(M->b, LLVMBuildMul(M->b, loops, low_i64(M, st->p->red->ns), ""), i, "");
  i = LLVMBuildMul(M->b, i, low_i64(M, 8 * (int64_t)st->p->max_lanes), "");
  return LLVMBuildInBoundsGEP2(M->b, M->i8, st->slot[0], &i, 1, "");
}

static LLVMTypeRef state_type(const low_nest *N, const low_stage *st, uint32_t k, uint32_t lanes) {
  return low_vec(low_compute_type(N->M, st->p->state[k]), lanes);
}
static LLVMValueRef acc_load(low_nest *N, low_fn *E, uint32_t list, uint32_t k, int64_t chain) {
  low_stage *st = &N->stage[list - 1];
  LLVMTypeRef t = state_type(N, st, k, acc_lanes(st, E));
  LLVMValueRef v = LLVMBuildLoad2(N->M->b, t, acc_pointer(N, E, list, k, chain, t), "");
  LLVMSetAlignment(v, st->p->in_memory ? 8 : 64);
  return v;
}
static void acc_store(low_nest *N, low_fn *E, uint32_t list, uint32_t k, int64_t chain,
                      LLVMValueRef v) {
  low_stage *st = &N->stage[list - 1];
  LLVMValueRef s = LLVMBuildStore(N->M->b, v, acc_pointer(N, E, list, k, chain, LLVMTypeOf(v)));
  LLVMSetAlignment(s, st->p->in_memory ? 8 : 64);
}

LLVMValueRef low_acc_load(low_nest *N, low_fn *E, uint32_t list) {
  return acc_load(N, E, list, 0, chain_of(N, E, list));
}
void low_acc_store(low_nest *N, low_fn *E, uint32_t list, LLVMValueRef v) {
  acc_store(N, E, list, 0, chain_of(N, E, list), v);
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
static void merge_chains(low_nest *N, low_fn *E, uint32_t list, LLVMValueRef *out) {
  low_stage *st = &N->stage[list - 1];
  const tarn_reducer *r = st->p->red;
  uint32_t ns = r->ns;
  LLVMValueRef v[PLAN_MOST_CHAINS * TARN_MAX_STATE], two[2 * TARN_MAX_STATE];
  tarn_dtype t[2 * TARN_MAX_STATE];
  for (uint32_t k = 0; k < ns; k++) t[k] = t[ns + k] = st->p->state[k];
  for (uint32_t c = 0; c < st->p->chains; c++)
    for (uint32_t k = 0; k < ns; k++) v[c * ns + k] = acc_load(N, E, list, k, c);
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

/* ---------------------------------------------------------------- leaves */
static void init_leaf(low_nest *N, low_fn *E, uint32_t list, bool resume) {
  low_stage *st = &N->stage[list - 1];
  uint32_t n = acc_lanes(st, E);
  for (uint32_t k = 0; k < st->p->red->ns; k++) {
    LLVMValueRef v = low_fx(N->M, st->p->red->init[k], NULL, NULL, 0, n, NULL);
    if (st->p->start != TARN_NONE && !resume)
      v = low_reordered(E, st->p->crossed,
                        low_load(E, &st->read[st->p->f->nops + st->p->start], end_of(N, list)));
    for (int64_t c = 1; c < st->p->chains; c++) acc_store(N, E, list, k, c, v);
    if (resume) {
      LLVMValueRef old =
          low_reordered(E, st->p->crossed, low_load(E, &st->result, end_of(N, list)));
      v = st->p->red_lanes > 1 ? replace_lanes(N->M, v, old, 1, n) : old;
    }
    acc_store(N, E, list, k, 0, v);
  }
}

static LLVMValueRef flat_index(low_nest *N, low_fn *E, const low_stage *st) {
  low_off o = low_eval(E, st->p->flat);
  LLVMValueRef v = low_splat(N->M, low_off_scalar(E, &(low_off){.v = o.v, .c = o.c}), E->lanes);
  if (o.stride && E->lanes > 1) {
    LLVMValueRef lane[256];
    for (uint32_t i = 0; i < E->lanes; i++) lane[i] = low_i64(N->M, (int64_t)i * o.stride);
    v = LLVMBuildAdd(N->M->b, v, LLVMConstVector(lane, E->lanes), "");
  }
  return o.vec ? LLVMBuildAdd(N->M->b, v, o.vec, "") : v;
}

static void body_leaf(low_nest *N, low_fn *E, uint32_t list) {
  low_stage *st = &N->stage[list - 1];
  uint32_t ns = st->p->red->ns, nops = st->p->f->nops, n = acc_lanes(st, E);
  if (low_left_out(N, E, st)) return;
  if (st->taken) {
    *st->taken = low_load(E, &st->read[st->p->data], end_of(N, list));
    return;
  }
  LLVMValueRef v[TARN_MAX_STATE + 1 + TARN_MAX_OPERANDS], old[TARN_MAX_STATE], now[TARN_MAX_STATE];
  tarn_dtype t[TARN_MAX_STATE + 1 + TARN_MAX_OPERANDS];
  int64_t chain = chain_of(N, E, list);
  for (uint32_t k = 0; k < ns; k++) {
    old[k] = acc_load(N, E, list, k, chain);
    v[k] = n > E->lanes ? part(N->M, old[k], 0, E->lanes) : old[k], t[k] = st->p->state[k];
  }
  v[ns] = st->p->step_index ? flat_index(N, E, st) : NULL, t[ns] = TARN_I64;
  E->crossed = st->p->crossed;
  for (uint32_t r = 0; r < nops; r++)
    v[ns + 1 + r] = low_load(E, &st->read[r], end_of(N, list)),
               t[ns + 1 + r] = st->read[r].p->dtype;
  E->crossed = false;
  for (uint32_t k = 0; k < ns; k++)
    now[k] = low_fx(N->M, st->p->step[k], v, t, ns + 1 + nops, E->lanes, NULL);
  for (uint32_t k = 0; k < ns; k++)
    acc_store(N, E, list, k, chain,
              n > E->lanes ? replace_lanes(N->M, old[k], now[k], E->lanes, n) : now[k]);
}

/* Added to any number it is that number. */
static LLVMValueRef nothing(const low_nest *N, tarn_dtype t, uint32_t n) {
  return low_splat(N->M, LLVMConstReal(low_compute_type(N->M, t), -0.0), n);
}
static void final_leaf(low_nest *N, low_fn *E, uint32_t list, bool partial) {
  low_stage *st = &N->stage[list - 1];
  LLVMValueRef v[TARN_MAX_OPERANDS + 1], state[TARN_MAX_STATE];
  tarn_dtype t[TARN_MAX_OPERANDS + 1], out = st->p->state[0];
  uint32_t end = end_of(N, list);
  bool alone = st->p->nfactor || st->end != LOW_OUTER; /* other code stands between such copies */
  if (!alone) low_copy_begin(N, E);
  if (st->p->nfactor)
    state[0] = st->given ? st->given : LLVMConstNull(state_type(N, st, 0, E->lanes));
  else merge_chains(N, E, list, state);
  if (st->p->red_lanes > 1) merge_lanes(N, st, state);
  for (uint32_t k = 0; k < st->p->red->ns; k++)
    state[k] = low_reordered(E, st->p->crossed, state[k]);
  LLVMValueRef x = state[0];
  if (!partial) {
    x = low_fx(N->M, st->p->red->result, state, st->p->state, st->p->red->ns, E->lanes, &out);
    if (st->p->f->epi != TARN_NONE) {
      v[0] = x, t[0] = out;
      for (uint32_t r = 0; r < st->p->f->nepi; r++) {
        low_access *a = &st->read[st->p->f->nops + r];
        v[1 + r] = r == st->p->start ? nothing(N, a->p->dtype, E->lanes) : low_load(E, a, end),
              t[1 + r] = a->p->dtype;
      }
      x = low_fx(N->M, st->p->f->epi, v, t, 1u + st->p->f->nepi, E->lanes, &out);
    }
  }
  if (st->p->rows) low_store_transposed(N, E, st, end, x);
  else low_store(E, &st->result, end, x);
  if (!alone) low_copy_end(N, E);
}

void low_reduce_leaf(low_nest *N, low_fn *E, uint32_t list, low_mode mode) {
  N->M->nan_shows = N->stage[list - 1].p->nan_shows;
  if (mode == LOW_INIT) init_leaf(N, E, list, false);
  else if (mode == LOW_PARTIAL) final_leaf(N, E, list, true);
  else if (mode == LOW_FINAL) final_leaf(N, E, list, false);
  else if (mode == LOW_RESUME) init_leaf(N, E, list, true);
  else body_leaf(N, E, list);
  N->M->nan_shows = false;
}

/* ---------------------------------------------------------------- the whole */
/* Are all reduce levels outside at their first (last) trip? NULL: known, in *known. */
static LLVMValueRef at_border(low_nest *N, low_fn *E, uint32_t list, bool last, bool *known) {
  LLVMBuilderRef b = N->M->b;
  LLVMValueRef all = NULL;
  *known = true;
  for (uint32_t i = 0; i < N->stage[list - 1].p->acc; i++) {
    const tarn_plan_level *l = &N->p->list[list].level[i];
    if (!l->red) continue;
    const low_env *e = &E->env[l->var];
    int64_t at = last ? N->last[l->var] : 0;
    if (e->kind == LOW_CONST ? e->c == at : false) continue;
    if (e->kind == LOW_CONST || at > e->c || at < e->lo) {
      *known = false;
      return NULL;
    }
    LLVMValueRef c = LLVMBuildICmp(b, LLVMIntEQ, e->v, low_i64(N->M, at), "");
    all = all ? LLVMBuildAnd(b, all, c, "") : c;
  }
  return all;
}

/* Walks in one mode or the other, as the border says. */
static void walk_either(low_nest *N, low_fn *E, uint32_t list, uint32_t l, bool last,
                        low_mode yes_mode, low_mode no_mode) {
  LLVMBuilderRef b = N->M->b;
  bool known;
  LLVMValueRef c = at_border(N, E, list, last, &known);
  if (!c) {
    low_walk(N, E, list, l, known ? yes_mode : no_mode);
    return;
  }
  LLVMBasicBlockRef yes = low_block(E, "yes"), no = low_block(E, "no"),
                    after = low_block(E, "then");
  LLVMBuildCondBr(b, c, yes, no);
  low_begin(E, yes);
  low_walk(N, E, list, l, yes_mode);
  LLVMBuildBr(b, after);
  low_begin(E, no);
  low_walk(N, E, list, l, no_mode);
  LLVMBuildBr(b, after);
  low_begin(E, after);
}

/* How a copy's accumulator ends as soon as it is complete: where the copies in order.c's order are
 * all of the reduction. */
static low_mode ending(low_nest *N, low_fn *E, uint32_t list, uint32_t l) {
  const low_stage *st = &N->stage[list - 1];
  bool known;
  if (st->p->order != l || st->p->order_read == TARN_NONE || st->p->in_memory ||
      st->p->chains > 1 || st->p->red_lanes > 1 || st->p->rows)
    return LOW_OUTER;
  for (uint32_t i = st->p->order_end; i < N->p->list[list].n; i++)
    if (N->p->list[list].level[i].red) return LOW_OUTER;
  if (at_border(N, E, list, true, &known)) return LOW_OUTER;
  return known ? LOW_FINAL : LOW_PARTIAL;
}

void low_reduction(low_nest *N, low_fn *E, uint32_t list, uint32_t l) {
  low_stage *st = &N->stage[list - 1];
  tarn_ctx *cx = N->M->cx;
  if (st->p->nfactor) {
    E->gen++;
    low_bilinear_sum(N, E, list, l);
    E->gen++;
    return;
  }
  if (st->p->in_memory) {
    st->slot = TARN_ARRAY(cx, LLVMValueRef, 1);
    st->slot[0] = low_local(E, st->p->slots * st->p->red->ns * 8 * (int64_t)st->p->max_lanes);
  } else st->slot = TARN_ARRAY(cx, LLVMValueRef, st->p->slots * st->p->chains * st->p->red->ns);
  E->gen++;
  walk_either(N, E, list, l, false, LOW_INIT, LOW_RESUME);
  E->gen++;
  st->end = ending(N, E, list, l), st->ended = false;
  low_walk(N, E, list, l, LOW_BODY);
  E->gen++;
  if (!st->ended) walk_either(N, E, list, l, true, LOW_FINAL, LOW_PARTIAL);
  E->gen++;
}
