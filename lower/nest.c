/* The walk over the levels: loops, unrolled copies, lanes, tails. */
#include "lower/nest.h"
#include <string.h>

/* The stages that a list of levels concerns. */
static low_stage *concerned(low_nest *N, uint32_t list, uint32_t *n) {
  *n = list == 0 ? N->p->nstage : 1;
  return list == 0 ? N->stage : &N->stage[list - 1];
}

/* The operands of the body belong to the walk of the body, those of the epilogue and the result to
 * the others. */
static bool concerns(const low_stage *st, uint32_t read, low_mode mode) {
  return mode == LOW_OUTER || (mode == LOW_BODY) == (read < st->p->f->nops);
}
static void enter_accesses(low_fn *E, low_stage *st, uint32_t var, low_mode mode) {
  for (uint32_t r = 0; r < st->p->nread; r++)
    if (concerns(st, r, mode)) low_access_enter(E, &st->read[r], var);
  if (mode != LOW_BODY) low_access_enter(E, &st->result, var);
}

static low_env fixed(int64_t c) { return (low_env){.kind = LOW_CONST, .c = c}; }
/* Level l becomes lanes: `len` of them, or as many rows of the next level's. */
static low_env lanes_of(const low_nest *N, low_fn *E, uint32_t list, uint32_t l, int64_t len) {
  const tarn_plan_list *ll = &N->p->list[list];
  low_env env = {.kind = LOW_LANES, .c = len - 1, .lo = 1};
  int64_t next =
      l + 1 < ll->n && ll->level[l + 1].kind == TARN_VECTOR ? N->len[ll->level[l + 1].dim] : 1;
  if (next > 1) env.lo = next, E->row = (uint32_t)next;
  if (next > 1 || !E->row) E->lanes = (uint32_t)(len * next);
  return env;
}

/* What is inside of a reduction's level, if the guards that its trip decides hold. */
static void walk_if(low_nest *N, low_fn *E, uint32_t list, uint32_t l) {
  const tarn_plan_level *lev = &N->p->list[list].level[l];
  low_stage *st = &N->stage[list - 1];
  uint32_t read, guard;
  if (!lev->red || st->p->nfactor || !low_decisive(N, E, st, lev->var, &read, &guard)) {
    low_walk(N, E, list, l + 1, LOW_BODY);
    return;
  }
  low_access *a = &st->read[read];
  LLVMBasicBlockRef yes = low_block(E, "yes"), after = low_block(E, "next");
  LLVMBuildCondBr(N->M->b, low_test(E, &a->p->guard[guard]), yes, after);
  low_begin(E, yes);
  a->held |= 1u << guard;
  walk_if(N, E, list, l);
  a->held &= ~(1u << guard);
  LLVMBuildBr(N->M->b, after);
  low_begin(E, after);
}

/* Sets level l and emits what is inside of it, `len` elements of its dim. */
static void enter(low_nest *N, low_fn *E, uint32_t list, uint32_t l, low_mode mode, low_env env,
                  int64_t len) {
  const tarn_plan_level *lev = &N->p->list[list].level[l];
  uint32_t n, lanes = E->lanes, row = E->row;
  low_stage *st = concerned(N, list, &n);
  int64_t outside = N->len[lev->dim];
  N->last[lev->var] = (outside + lev->step - 1) / lev->step - 1;
  N->len[lev->dim] = len;
  if (env.kind == LOW_LANES) env = lanes_of(N, E, list, l, len);
  E->env[lev->var] = env;
  for (uint32_t i = 0; i < n; i++) enter_accesses(E, &st[i], lev->var, mode);
  if (mode == LOW_BODY && list > 0) walk_if(N, E, list, l);
  else low_walk(N, E, list, l + 1, mode);
  E->env[lev->var] = (low_env){0};
  N->len[lev->dim] = outside, E->lanes = lanes, E->row = row;
}

static void skip(low_nest *N, uint32_t list, uint32_t l) {
  uint32_t n, var = N->p->list[list].level[l].var;
  low_stage *st = concerned(N, list, &n);
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t r = 0; r < st[i].p->nread; r++) low_access_skip(&st[i].read[r], var);
    low_access_skip(&st[i].result, var);
  }
}

/* One trip of a loop that is written out: asks for what a trip of the loop would. */
static void trip(low_nest *N, low_fn *E, uint32_t list, uint32_t l, low_mode mode, int64_t i,
                 int64_t len) {
  E->env[N->p->list[list].level[l].var] = fixed(i);
  if (mode == LOW_BODY || mode == LOW_OUTER) low_prefetch_in(N, E, list, l);
  enter(N, E, list, l, mode, fixed(i), len);
  low_prefetch_due(N, 1, 1);
}
/* for (i = from; i < to; i++), at least once. */
static void loop(low_nest *N, low_fn *E, uint32_t list, uint32_t l, low_mode mode, int64_t from,
                 int64_t to, int64_t len) {
  if (to - from == 1) {
    trip(N, E, list, l, mode, from, len);
    return;
  }
  LLVMBuilderRef b = N->M->b;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), body = low_block(E, "loop"),
                    after = low_block(E, "end");
  LLVMBuildBr(b, body);
  low_begin(E, body);
  LLVMValueRef i = LLVMBuildPhi(b, N->M->i64, "");
  E->env[N->p->list[list].level[l].var] =
      (low_env){.kind = LOW_SSA, .lo = from, .c = to - 1, .v = i};
  if (mode == LOW_BODY || mode == LOW_OUTER) low_prefetch_in(N, E, list, l);
  enter(N, E, list, l, mode, E->env[N->p->list[list].level[l].var], len);
  low_prefetch_due(N, 1, 1);
  LLVMValueRef next = LLVMBuildNUWAdd(b, i, low_i64(N->M, 1), "");
  LLVMValueRef in[2] = {low_i64(N->M, from), next};
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(b)};
  LLVMAddIncoming(i, in, blocks, 2);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, low_i64(N->M, to), ""), body, after);
  low_begin(E, after);
}
/* Pieces of a loop that as one block are more than registers hold. */
void low_apart(low_fn *E) {
  low_module *M = E->M;
  LLVMTypeRef f = LLVMFunctionType(M->vt, NULL, 0, false);
  LLVMValueRef nothing =
      LLVMGetInlineAsm(f, "", 0, "~{memory}", 10, true, false, LLVMInlineAsmDialectATT, false);
  LLVMBuildCall2(M->b, f, nothing, NULL, 0, "");
}
/* The full trips of a loop, those at the border of a padded operand apart. */
static void loops(low_nest *N, low_fn *E, uint32_t list, uint32_t l, low_mode mode, int64_t full) {
  int64_t first = 0, last = 0, copies = N->copies, step = N->p->list[list].level[l].step;
  if (mode == LOW_OUTER && low_peel(N, E, list, l, full, &first, &last) &&
      !low_peel_begin(N, first + last + (first + last < full)))
    first = last = 0;
  for (int64_t i = 0; i < first; i++, low_apart(E)) trip(N, E, list, l, mode, i, step);
  if (first < full - last) loop(N, E, list, l, mode, first, full - last, step);
  for (int64_t i = full - last; i < full; i++) low_apart(E), trip(N, E, list, l, mode, i, step);
  N->copies = copies;
}

static void walk_level(low_nest *N, low_fn *E, uint32_t list, uint32_t l, low_mode mode) {
  const tarn_plan_level *lev = &N->p->list[list].level[l];
  int64_t len = N->len[lev->dim], full = len / lev->step, tail = len % lev->step;
  if (len == 0) return;
  if (lev->kind == TARN_VECTOR && len > 1) {
    enter(N, E, list, l, mode, (low_env){.kind = LOW_LANES}, len);
    return;
  }
  if (lev->kind == TARN_DOT && mode == LOW_BODY && len == N->stage[list - 1].p->dot[0].k) {
    low_dot_leaf(N, E, list);
    return;
  }
  if (N->copy[lev->var]) {
    int64_t only = N->copy[lev->var] - 1;
    enter(N, E, list, l, mode, fixed(only), only < full ? lev->step : tail);
    return;
  }
  if (lev->kind == TARN_UNROLL || lev->kind == TARN_DOT)
    for (int64_t i = 0; i < full; i++) enter(N, E, list, l, mode, fixed(i), lev->step);
  else if (mode == LOW_BODY && low_written_out(N, E, list, l, full))
    for (int64_t i = 0; i < full; i++) trip(N, E, list, l, mode, i, lev->step);
  else if (full) {
    loops(N, E, list, l, mode, full);
    if (tail && mode == LOW_OUTER) low_apart(E);
  }
  if (tail) trip(N, E, list, l, mode, full, tail);
}

static void map_leaf(low_nest *N, low_fn *E, uint32_t list) {
  low_stage *st = &N->stage[list - 1];
  low_copy_begin(N, E);
  LLVMValueRef v[TARN_MAX_OPERANDS + 1];
  tarn_dtype t[TARN_MAX_OPERANDS + 1], out;
  uint32_t end = N->p->nshared + N->p->list[list].n;
  for (uint32_t r = 0; r < st->p->f->nops; r++)
    v[r] = low_load(E, &st->read[r], end), t[r] = st->read[r].p->dtype;
  N->M->at_most_0 = st->p->at_most_0;
  LLVMValueRef x = low_fx(N->M, st->p->f->body, v, t, st->p->f->nops, E->lanes, &out);
  N->M->at_most_0 = false;
  if (st->p->f->epi != TARN_NONE) {
    v[0] = x, t[0] = out;
    for (uint32_t r = 0; r < st->p->f->nepi; r++) {
      low_access *a = &st->read[st->p->f->nops + r];
      v[1 + r] = low_load(E, a, end), t[1 + r] = a->p->dtype;
    }
    x = low_fx(N->M, st->p->f->epi, v, t, 1u + st->p->f->nepi, E->lanes, &out);
  }
  if (st->p->rows) low_store_transposed(N, E, st, end, x);
  else low_store(E, &st->result, end, x);
  low_copy_end(N, E);
}

static void stages(low_nest *N, low_fn *E) {
  for (uint32_t i = 0; i < N->p->nstage; i++) {
    low_stage *st = &N->stage[i];
    for (uint32_t d = N->p->n->depth; d < st->p->n; d++) N->len[d] = st->p->dim[d];
    E->space = &st->p->space;
    E->gen++;
    low_walk(N, E, 1 + i, 0, LOW_OUTER);
    low_copies_end(N);
  }
}

void low_walk(low_nest *N, low_fn *E, uint32_t list, uint32_t l, low_mode mode) {
  const tarn_plan_list *ll = &N->p->list[list];
  bool inside = mode != LOW_OUTER;
  if (list > 0 && N->stage[list - 1].p->red && !inside && l == N->stage[list - 1].p->acc) {
    low_reduction(N, E, list, l);
    return;
  }
  if (mode == LOW_BODY && list > 0 && l == N->stage[list - 1].p->order &&
      low_walk_in_order(N, E, list))
    return;
  if (l < ll->n && inside && mode != LOW_BODY && ll->level[l].red) {
    skip(N, list, l);
    low_walk(N, E, list, l + 1, mode);
  } else if (l < ll->n) walk_level(N, E, list, l, mode);
  else if (list == 0) stages(N, E);
  else if (inside) low_reduce_leaf(N, E, list, mode);
  else map_leaf(N, E, list);
}

/* ---------------------------------------------------------------- parallel items */
/* Branches into a new block when v compares to c; returns the block to go on with when it does not.
 */
static LLVMBasicBlockRef when(low_fn *E, LLVMIntPredicate p, LLVMValueRef v, int64_t c) {
  LLVMBasicBlockRef yes = low_block(E, "yes"), no = low_block(E, "no");
  LLVMBuildCondBr(E->M->b, LLVMBuildICmp(E->M->b, p, v, low_i64(E->M, c), ""), yes, no);
  low_begin(E, yes);
  return no;
}

/* Emits the inside of parallel level l. The items count the trips of full lengths: in the tail of
 * an outer level some have nothing to do; a tail of this level is a second copy. */
static void parallel(low_nest *N, low_fn *E, uint32_t list, uint32_t l, const LLVMValueRef *at);
static void parallel_copy(low_nest *N, low_fn *E, uint32_t list, uint32_t l, const LLVMValueRef *at,
                          low_env env, int64_t len) {
  const tarn_plan_level *lev = &N->p->list[list].level[l];
  uint32_t n;
  low_stage *st = concerned(N, list, &n);
  int64_t outside = N->len[lev->dim];
  N->last[lev->var] = lev->trips - 1, N->len[lev->dim] = len, E->env[lev->var] = env;
  for (uint32_t i = 0; i < n; i++) enter_accesses(E, &st[i], lev->var, LOW_OUTER);
  parallel(N, E, list, l + 1, at);
  E->env[lev->var] = (low_env){0}, N->len[lev->dim] = outside;
}

/* The trips of which the counter compares to c in this way. */
static void parallel_piece(low_nest *N, low_fn *E, uint32_t list, uint32_t l,
                           const LLVMValueRef *at, LLVMIntPredicate p, int64_t c, low_env env,
                           int64_t len, LLVMBasicBlockRef after) {
  LLVMBasicBlockRef no = when(E, p, at[l], c);
  parallel_copy(N, E, list, l, at, env, len);
  LLVMBuildBr(N->M->b, after);
  low_begin(E, no);
}
static void parallel(low_nest *N, low_fn *E, uint32_t list, uint32_t l, const LLVMValueRef *at) {
  LLVMBuilderRef b = N->M->b;
  if (l == N->p->list[list].parallel) {
    low_walk(N, E, list, l, LOW_OUTER);
    return;
  }
  const tarn_plan_level *lev = &N->p->list[list].level[l];
  int64_t len = N->len[lev->dim], full = len / lev->step, tail = len % lev->step;
  LLVMBasicBlockRef after = low_block(E, "next");
  int64_t first = 0, last = 0, copies = N->copies;
  if (low_peel(N, E, list, l, full, &first, &last) &&
      !low_peel_begin(N, first + last + (first + last < full)))
    first = last = 0;
  for (int64_t i = 0; i < first + last; i++) {
    int64_t trip = i < first ? i : full - 1 - (i - first);
    parallel_piece(N, E, list, l, at, LLVMIntEQ, trip, fixed(trip), lev->step, after);
  }
  if (first + last < full) {
    low_env env = {.kind = LOW_SSA, .lo = first, .c = full - last - 1, .v = at[l]};
    if (env.lo == env.c) env = fixed(env.lo);
    parallel_piece(N, E, list, l, at, LLVMIntSLT, full, env, lev->step, after);
  }
  N->copies = copies;
  if (tail) parallel_piece(N, E, list, l, at, LLVMIntEQ, full, fixed(full), tail, after);
  LLVMBuildBr(b, after);
  low_begin(E, after);
}

/* The counters of the parallel levels of one item. */
static void decode(low_nest *N, uint32_t list, LLVMValueRef item, LLVMValueRef *at) {
  LLVMBuilderRef b = N->M->b;
  for (uint32_t i = N->p->list[list].parallel; i-- > 0;) {
    int64_t trips = N->p->list[list].level[i].trips;
    if (trips == 1) at[i] = low_i64(N->M, 0);
    else if (i == 0) at[i] = item;
    else {
      at[i] = LLVMBuildURem(b, item, low_i64(N->M, trips), "");
      item = LLVMBuildUDiv(b, item, low_i64(N->M, trips), "");
    }
  }
}

static void bind(low_nest *N, low_fn *E, const LLVMValueRef *in, const LLVMValueRef *out) {
  for (uint32_t i = 0; i < N->p->nstage; i++) {
    low_stage *st = &N->stage[i];
    for (uint32_t r = 0; r < st->p->nread; r++) {
      const tarn_read *rd = &st->p->s->read[r];
      if (!rd->stage) st->read[r].base = in[rd->src];
      else st->read[r].base = N->stage[rd->src].result.base;
      low_access_ready(E, &st->read[r]);
    }
    st->result.base = st->p->s->out ? out[st->p->out_no] : low_local(E, st->p->local_bytes);
    low_access_ready(E, &st->result);
  }
}

low_nest *low_nest_new(low_module *M, tarn_plan_nest *p) {
  low_nest *N = TARN_NEW(M->cx, low_nest);
  *N = (low_nest){.M = M, .p = p, .copies = 1};
  N->stage = TARN_ARRAY(M->cx, low_stage, p->nstage);
  for (uint32_t i = 0; i < p->nstage; i++) {
    low_stage *st = &N->stage[i];
    st->p = &p->stage[i];
    st->read = TARN_ARRAY(M->cx, low_access, st->p->nread);
    for (uint32_t r = 0; r < st->p->nread; r++) st->read[r].p = &st->p->read[r];
    st->result.p = &st->p->result;
  }
  return N;
}

void low_nest_emit(low_nest *N, uint32_t region, low_fn *E, const LLVMValueRef *in,
                   const LLVMValueRef *out, LLVMValueRef begin, LLVMValueRef end) {
  LLVMBuilderRef b = N->M->b;
  uint32_t list = N->p->split ? 1 + region : 0;
  const low_stage *st = &N->stage[N->p->split ? region : 0];
  LLVMValueRef at[TARN_MAX_LEVELS];
  bind(N, E, in, out);
  E->space = &st->p->space;
  memcpy(N->len, st->p->dim, sizeof N->len);
  if (tarn_plan_items(N->p, region) == 0) return;
  if (!N->p->list[list].parallel) {
    low_walk(N, E, list, 0, LOW_OUTER);
    low_copies_end(N);
    return;
  }
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), body = low_block(E, "item"),
                    after = low_block(E, "done");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, begin, end, ""), body, after);
  low_begin(E, body);
  LLVMValueRef item = LLVMBuildPhi(b, N->M->i64, "");
  decode(N, list, item, at);
  parallel(N, E, list, 0, at);
  low_copies_end(N);
  LLVMValueRef next = LLVMBuildNSWAdd(b, item, low_i64(N->M, 1), "");
  LLVMAddIncoming(item, (LLVMValueRef[]){begin, next},
                  (LLVMBasicBlockRef[]){before, LLVMGetInsertBlock(b)}, 2);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, end, ""), body, after);
  low_begin(E, after);
}
