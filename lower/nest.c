/* Prints a plan's loop program as code: loops, unrolled copies, lanes, work items. */
#include "lower/nest.h"
#include <string.h>

const tarn_plan_list *low_list(const low_nest *N) { return &N->p->list[1 + (N->now - N->stage)]; }
uint32_t low_depth(const low_nest *N) {
  return N->p->nshared + low_list(N)->n + N->now->p->tiled; /* the slot's number is a level, too */
}

/* ---------------------------------------------------------------- operands */
/* The stages that a counter concerns which is set now. */
static low_stage *concerned(low_nest *N, uint32_t *n) {
  *n = N->now ? 1 : N->p->nstage;
  return N->now ? N->now : N->stage;
}
/* The operands of the body belong to the steps of a reduction, those of the epilogue and the result
 * to the other phases. */
static bool concerns(const low_nest *N, const low_stage *st, uint32_t read) {
  return N->phase == TARN_PLAN_MAP || (N->phase == TARN_PLAN_STEP) == (read < st->p->f->nops);
}
static void enter_accesses(low_nest *N, low_fn *E, uint32_t var) {
  uint32_t n;
  low_stage *st = concerned(N, &n);
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t r = 0; r < st[i].p->nread; r++)
      if (concerns(N, &st[i], r)) low_access_enter(E, &st[i].read[r], var);
    if (N->phase != TARN_PLAN_STEP) low_access_enter(E, &st[i].result, var);
  }
}
static void leave_accesses(low_nest *N, uint32_t var) {
  uint32_t n;
  low_stage *st = concerned(N, &n);
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t r = 0; r < st[i].p->nread; r++)
      if (concerns(N, &st[i], r)) low_access_leave(&st[i].read[r], var);
    if (N->phase != TARN_PLAN_STEP) low_access_leave(&st[i].result, var);
  }
}

/* ---------------------------------------------------------------- statements */
static void emit_from(low_nest *N, low_fn *E, const tarn_plan_stmt *s, const tarn_plan_stmt *end) {
  for (; s < end; s += s->size) low_emit(N, E, s);
}
static void emit_inside(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  emit_from(N, E, s + 1, s + s->size);
}

void low_enter(low_nest *N, low_fn *E, const tarn_plan_stmt *s, tarn_plan_at at) {
  const tarn_plan_stmt *in = s + 1;
  const tarn_plan_stmt *end = s + s->size;
  E->env[s->var] = at;
  N->last[s->var] = s->last;
  if (in < end && in->op == TARN_PLAN_ADDRESS) low_emit(N, E, in++);
  enter_accesses(N, E, s->var);
  emit_from(N, E, in, end);
  leave_accesses(N, s->var);
  E->env[s->var] = (tarn_plan_at){0};
}
void low_emit_copies(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  for (int64_t i = s->lo; i <= s->hi; i++)
    low_enter(N, E, s, (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = i});
}
/* Are the lanes of a stage's reduction the threads of a warp? */
static bool by_warp(const low_nest *N, const low_stage *st) {
  uint32_t lanes = N->M->regs.warp;
  return lanes > 1 && st && st->p->red_lanes == lanes;
}
/* Each thread does its lane; those beyond the last nothing. */
static void emit_own_lane(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  LLVMBuilderRef b = N->M->b;
  LLVMBasicBlockRef body = low_block(E, "lane");
  LLVMBasicBlockRef after = low_block(E, "next");
  LLVMValueRef last = low_index(N->M, s->hi);
  bool all = s->hi + 1 == N->M->regs.warp;
  LLVMValueRef has =
      all ? LLVMConstInt(N->M->i1, 1, 0) : LLVMBuildICmp(b, LLVMIntULE, E->lane, last, "");
  LLVMBuildCondBr(b, has, body, after);
  low_begin(E, body);
  E->counter[s->var] = E->lane;
  E->by_lane = true;
  low_enter(N, E, s, (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .lo = 0, .c = s->hi});
  E->by_lane = false;
  LLVMBuildBr(b, after);
  low_begin(E, after);
}
void low_emit_lanes(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  if (E->lane && by_warp(N, N->now)) {
    emit_own_lane(N, E, s);
    return;
  }
  uint32_t lanes = E->lanes;
  uint32_t row = E->row;
  if (s->lo > 1) E->row = (uint32_t)s->lo;
  if (s->lo > 1 || !E->row) E->lanes = (uint32_t)((s->hi + 1) * s->lo);
  low_enter(N, E, s, (tarn_plan_at){.kind = TARN_PLAN_VECTOR, .c = s->hi, .lo = s->lo});
  E->lanes = lanes;
  E->row = row;
}
/* The last trip of a loop over an open dim may begin before it should. */
static LLVMValueRef no_further(const low_nest *N, LLVMValueRef at, LLVMValueRef most) {
  LLVMBuilderRef b = N->M->b;
  return LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, at, most, ""), at, most, "");
}
/* A loop over an open dim: perhaps there is no trip. */
static void emit_open(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  LLVMBuilderRef b = N->M->b;
  bool over = s->open & TARN_PLAN_OVER;
  LLVMValueRef last = low_open(N->M, s->hi);
  LLVMValueRef end = last;
  if (over) end = LLVMBuildAdd(b, last, low_index(N->M, s->by - 1), "");
  LLVMValueRef from[2] = {s->open & TARN_PLAN_ON ? E->ended[s->var] : low_index(N->M, s->lo)};
  LLVMBasicBlockRef blocks[2] = {LLVMGetInsertBlock(b)};
  LLVMBasicBlockRef body = low_block(E, "loop");
  LLVMBasicBlockRef after = low_block(E, "end");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLE, from[0], last, ""), body, after);
  low_begin(E, body);
  LLVMValueRef i = LLVMBuildPhi(b, N->M->index, "");
  E->counter[s->var] = over && s->by > 1 ? no_further(N, i, last) : i;
  int64_t most = tarn_max(s->hi, 0);
  low_enter(N, E, s, (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .c = most});
  from[1] = LLVMBuildNUWAdd(b, i, low_index(N->M, s->by), "");
  blocks[1] = LLVMGetInsertBlock(b);
  LLVMAddIncoming(i, from, blocks, 2);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLE, from[1], end, ""), body, after);
  low_begin(E, after);
  E->ended[s->var] = LLVMBuildPhi(b, N->M->index, "");
  LLVMAddIncoming(E->ended[s->var], from, blocks, 2);
}
static void emit_counted(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  LLVMBuilderRef b = N->M->b;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  LLVMBasicBlockRef body = low_block(E, "loop");
  LLVMBasicBlockRef after = low_block(E, "end");
  LLVMBuildBr(b, body);
  low_begin(E, body);
  LLVMValueRef i = LLVMBuildPhi(b, N->M->index, "");
  E->counter[s->var] = i;
  low_enter(N, E, s, (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .lo = s->lo, .c = s->hi});
  LLVMValueRef next = LLVMBuildNUWAdd(b, i, low_index(N->M, 1), "");
  LLVMValueRef in[2] = {low_index(N->M, s->lo), next};
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(b)};
  LLVMAddIncoming(i, in, blocks, 2);
  LLVMValueRef more = LLVMBuildICmp(b, LLVMIntULT, next, low_index(N->M, s->hi + 1), "");
  LLVMBuildCondBr(b, more, body, after);
  low_begin(E, after);
}
void low_emit_loop(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  if (s->by) emit_open(N, E, s);
  else emit_counted(N, E, s);
}
void low_emit_guard(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  low_stage *st = N->now;
  low_access *a = s->read < st->p->nread ? &st->read[s->read] : &st->result;
  LLVMBasicBlockRef yes = low_block(E, "yes");
  LLVMBasicBlockRef after = low_block(E, "next");
  LLVMBuildCondBr(N->M->b, low_test(E, &a->p->guard[s->guard]), yes, after);
  low_begin(E, yes);
  a->held |= 1u << s->guard;
  emit_inside(N, E, s);
  a->held &= ~(1u << s->guard);
  LLVMBuildBr(N->M->b, after);
  low_begin(E, after);
}
void low_emit_stage(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  low_stage *before = N->now;
  N->now = &N->stage[s->var];
  E->space = &N->now->p->space;
  E->gen++;
  emit_inside(N, E, s);
  low_copies_end(N);
  N->now = before;
}
void low_emit_phase(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  tarn_plan_phase before = N->phase;
  N->phase = (tarn_plan_phase)s->phase;
  emit_inside(N, E, s);
  N->phase = before;
}
void low_emit_either(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  LLVMBuilderRef b = N->M->b;
  const tarn_plan_stmt *yes_phase = s + 1;
  LLVMValueRef all = NULL;
  for (uint32_t i = 0; i < s->n; i++) {
    LLVMValueRef is = low_index(N->M, s->test[i].is);
    LLVMValueRef c = LLVMBuildICmp(b, LLVMIntEQ, E->counter[s->test[i].var], is, "");
    all = all ? LLVMBuildAnd(b, all, c, "") : c;
  }
  LLVMBasicBlockRef yes = low_block(E, "yes");
  LLVMBasicBlockRef no = low_block(E, "no");
  LLVMBasicBlockRef after = low_block(E, "then");
  LLVMBuildCondBr(b, all, yes, no);
  low_begin(E, yes);
  low_emit(N, E, yes_phase);
  LLVMBuildBr(b, after);
  low_begin(E, no);
  low_emit(N, E, yes_phase + yes_phase->size);
  LLVMBuildBr(b, after);
  low_begin(E, after);
}
void low_emit_apart(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  (void)E;
  (void)s;
  low_module *M = N->M;
  LLVMTypeRef f = LLVMFunctionType(M->vt, NULL, 0, false);
  LLVMValueRef nothing =
      LLVMGetInlineAsm(f, "", 0, "~{memory}", 10, true, false, LLVMInlineAsmDialectATT, false);
  LLVMBuildCall2(M->b, f, nothing, NULL, 0, "");
}

/* ---------------------------------------------------------------- work items */
void low_emit_case(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  LLVMBuilderRef b = N->M->b;
  LLVMValueRef at = E->counter[s->var];
  LLVMBasicBlockRef yes = low_block(E, "yes");
  LLVMBasicBlockRef no = low_block(E, "no");
  LLVMIntPredicate p = s->below ? LLVMIntSLT : LLVMIntEQ;
  LLVMValueRef bound = low_index(N->M, s->below ? s->below : s->lo);
  if (s->by) {
    p = LLVMIntSGE;
    at = low_open(N->M, s->by > 1 ? s->hi : 0);
    bound = low_index(N->M, 0);
  }
  LLVMBuildCondBr(b, LLVMBuildICmp(b, p, at, bound, ""), yes, no);
  low_begin(E, yes);
  tarn_plan_at env = {.kind = TARN_PLAN_COUNTER, .lo = s->lo, .c = tarn_max(s->hi, s->lo)};
  if (s->lo == s->hi && !s->by) env = (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = s->lo};
  low_enter(N, E, s, env);
  LLVMBuildBr(b, N->after);
  low_begin(E, no);
}
void low_emit_parallel(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  LLVMBasicBlockRef outside = N->after;
  LLVMBasicBlockRef after = low_block(E, "next");
  const tarn_plan_stmt *end = s + s->size;
  for (const tarn_plan_stmt *c = s + 1; c < end; c += c->size) {
    N->after = after;
    low_emit(N, E, c);
  }
  N->after = outside;
  LLVMBuildBr(N->M->b, after);
  low_begin(E, after);
}

/* ---------------------------------------------------------------- teams */
/* The step that an open level takes, and how many trips it has then. */
static LLVMValueRef step_of(low_module *M, const tarn_plan_level *l) {
  LLVMValueRef step = low_index(M, l->tier[l->ntier - 1]);
  for (uint32_t i = l->ntier - 1; i-- > 0;) {
    LLVMValueRef tier = low_index(M, l->tier[i]);
    LLVMValueRef has = LLVMBuildICmp(M->b, LLVMIntSGE, low_open(M, l->extent), tier, "");
    step = LLVMBuildSelect(M->b, has, tier, step, "");
  }
  return step;
}
static LLVMValueRef trips_of(low_module *M, const tarn_plan_level *l) {
  if (!l->open || l->step == 1) return low_index(M, l->trips);
  LLVMValueRef step = step_of(M, l);
  LLVMValueRef n = LLVMBuildAdd(M->b, low_open(M, l->extent), step, "");
  n = LLVMBuildSub(M->b, n, low_index(M, 1), "");
  return LLVMBuildUDiv(M->b, n, step, "");
}
LLVMValueRef low_items(low_module *M, const tarn_plan_list *list) {
  LLVMValueRef items = NULL;
  int64_t known = 1;
  for (uint32_t i = 0; i < list->parallel; i++) {
    const tarn_plan_level *l = &list->level[i];
    LLVMValueRef n = l->open ? trips_of(M, l) : NULL;
    if (!n) known *= l->trips;
    else items = items ? LLVMBuildMul(M->b, items, n, "") : n;
  }
  LLVMValueRef all = low_index(M, known);
  if (!items) return all;
  return known == 1 ? items : LLVMBuildMul(M->b, items, all, "");
}
static bool has_one(const tarn_plan_level *l) { return l->trips == 1 && !l->open; }
/* The trips of the parallel levels of one item. */
static void decode(const low_nest *N, const tarn_plan_list *list, LLVMValueRef item,
                   LLVMValueRef *trip) {
  LLVMBuilderRef b = N->M->b;
  for (uint32_t i = list->parallel; i-- > 0;) {
    const tarn_plan_level *l = &list->level[i];
    if (has_one(l)) trip[i] = low_index(N->M, 0);
    else if (i == 0) trip[i] = item;
    else {
      LLVMValueRef trips = trips_of(N->M, l);
      trip[i] = LLVMBuildURem(b, item, trips, "");
      item = LLVMBuildUDiv(b, item, trips, "");
    }
  }
}
static void set_counters(const low_nest *N, low_fn *E, const tarn_plan_list *list,
                         const LLVMValueRef *trip) {
  LLVMBuilderRef b = N->M->b;
  for (uint32_t i = 0; i < list->parallel; i++) {
    const tarn_plan_level *l = &list->level[i];
    LLVMValueRef at = trip[i];
    if (l->open && l->step > 1) {
      LLVMValueRef step = step_of(N->M, l);
      LLVMValueRef last = LLVMBuildSub(b, low_open(N->M, l->extent), step, "");
      at = no_further(N, LLVMBuildMul(b, at, step, ""), last);
    }
    E->counter[l->var] = at;
  }
}

/* The same of the item that follows, without a division: in a family the trips are no constants,
 * and an item may be a single vector. first: of the item that the loop begins with, in block
 * `before`; on_begin() makes them what stands for every item. */
static void on_begin(low_nest *N, const tarn_plan_list *list, const LLVMValueRef *first,
                     LLVMValueRef *every) {
  for (uint32_t i = 0; i < list->parallel; i++)
    every[i] = has_one(&list->level[i]) ? first[i] : LLVMBuildPhi(N->M->b, N->M->index, "");
}
static void on_end(low_nest *N, const tarn_plan_list *list, const LLVMValueRef *first,
                   const LLVMValueRef *every, LLVMBasicBlockRef before) {
  LLVMBuilderRef b = N->M->b;
  LLVMValueRef more = low_index(N->M, 1);
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(b)};
  for (uint32_t i = list->parallel; i-- > 0;) {
    if (has_one(&list->level[i])) continue;
    LLVMValueRef next = LLVMBuildAdd(b, every[i], more, "");
    if (i > 0) {
      LLVMValueRef over = LLVMBuildICmp(b, LLVMIntEQ, next, trips_of(N->M, &list->level[i]), "");
      more = LLVMBuildZExt(b, over, N->M->index, "");
      next = LLVMBuildSelect(b, over, low_index(N->M, 0), next, "");
    }
    LLVMValueRef from[2] = {first[i], next};
    LLVMAddIncoming(every[i], from, blocks, 2);
  }
}

/* Thread t does items t, t + threads, …; where a warp does an item, warp w items w, w + warps, … */
void low_emit_team(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  LLVMBuilderRef b = N->M->b;
  const tarn_plan_stage *st = N->now->p;
  int64_t items = s->hi + 1, lanes = N->M->regs.warp;
  int64_t each = by_warp(N, N->now) || st->unit ? lanes : 1;
  int64_t teams = E->threads / each;
  LLVMValueRef first = E->thread;
  if (each > 1) {
    first = LLVMBuildUDiv(b, E->thread, low_index(N->M, lanes), "");
    LLVMValueRef lane = LLVMBuildURem(b, E->thread, low_index(N->M, lanes), "");
    *(st->unit ? &E->counter[st->lane] : &E->lane) = lane;
  }
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  LLVMBasicBlockRef body = low_block(E, "item");
  LLVMBasicBlockRef after = low_block(E, "team");
  LLVMValueRef has = LLVMBuildICmp(b, LLVMIntULT, first, low_index(N->M, items), "");
  LLVMBuildCondBr(b, has, body, after);
  low_begin(E, body);
  LLVMValueRef item = first;
  if (items > teams) item = LLVMBuildPhi(b, N->M->index, "");
  LLVMValueRef trip[TARN_MAX_LEVELS];
  decode(N, low_list(N), item, trip);
  set_counters(N, E, low_list(N), trip);
  emit_inside(N, E, s);
  if (items <= teams) LLVMBuildBr(b, after);
  else {
    LLVMValueRef next = LLVMBuildNUWAdd(b, item, low_index(N->M, teams), "");
    LLVMValueRef from[2] = {first, next};
    LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(b)};
    LLVMAddIncoming(item, from, blocks, 2);
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntULT, next, low_index(N->M, items), "");
    LLVMBuildCondBr(b, more, body, after);
  }
  low_begin(E, after);
  E->lane = NULL;
}

typedef void emit_fn(low_nest *N, low_fn *E, const tarn_plan_stmt *s);
#define EMIT(OP, name, text) [TARN_PLAN_##OP] = low_emit_##name,
static emit_fn *const emitters[TARN_PLAN_OPS] = {TARN_PLAN_OP_TABLE(EMIT)};
void low_emit(low_nest *N, low_fn *E, const tarn_plan_stmt *s) { emitters[s->op](N, E, s); }

/* An operand that the block holds. */
static void hold_operand(low_fn *E, low_stage *st, uint32_t read) {
  LLVMTypeRef i8 = E->M->i8;
  LLVMValueRef at = low_i64(E->M, st->p->held[st->p->read[read].held - 1].at);
  st->memory[read] = st->read[read].base;
  LLVMValueRef all = LLVMConstAddrSpaceCast(st->shared, E->M->ptr);
  st->read[read].base = LLVMConstInBoundsGEP2(i8, all, &at, 1);
}
/* What a stage makes for others: in the block's memory, or in that of its thread. */
static LLVMValueRef local_buffer(low_nest *N, low_fn *E, const tarn_plan_stage *st) {
  if (!N->p->team) return low_local(E, st->local_bytes);
  if (st->shared_at < 0) return low_scratch(E, st->local_bytes);
  LLVMValueRef at = low_i64(E->M, st->shared_at);
  LLVMValueRef all = LLVMConstAddrSpaceCast(E->shared, E->M->ptr);
  return LLVMConstInBoundsGEP2(E->M->i8, all, &at, 1);
}
static void bind(low_nest *N, low_fn *E, const LLVMValueRef *in, const LLVMValueRef *out) {
  for (uint32_t i = 0; i < N->p->nstage; i++) {
    low_stage *st = &N->stage[i];
    if (st->p->tiled) st->shared = E->shared;
    for (uint32_t r = 0; r < st->p->s->nlook; r++) {
      st->look[r].base = in[st->p->s->read[st->p->nread + r].src];
      low_access_ready(E, &st->look[r], NULL);
    }
    for (uint32_t r = 0; r < st->p->nread; r++) {
      const tarn_read *rd = &st->p->s->read[r];
      if (!rd->stage) st->read[r].base = in[rd->src];
      else st->read[r].base = N->stage[rd->src].result.base;
      if (st->p->read[r].held) hold_operand(E, st, r);
      low_access_ready(E, &st->read[r], st->look);
    }
    if (st->p->s->out) st->result.base = out[st->p->out_no];
    else st->result.base = local_buffer(N, E, st->p);
    low_access_ready(E, &st->result, NULL);
  }
}

low_nest *low_nest_new(low_module *M, const tarn_plan_nest *p) {
  low_nest *N = TARN_NEW(M->cx, low_nest);
  *N = (low_nest){.M = M, .p = p};
  N->stage = TARN_ARRAY(M->cx, low_stage, p->nstage);
  for (uint32_t i = 0; i < p->nstage; i++) {
    low_stage *st = &N->stage[i];
    st->p = &p->stage[i];
    st->read = TARN_ARRAY(M->cx, low_access, st->p->nread);
    for (uint32_t r = 0; r < st->p->nread; r++) st->read[r].p = &st->p->read[r];
    st->look = TARN_ARRAY(M->cx, low_access, st->p->s->nlook);
    for (uint32_t r = 0; r < st->p->s->nlook; r++) st->look[r].p = &st->p->look[r];
    st->result.p = &st->p->result;
  }
  return N;
}

void low_nest_emit(low_nest *N, uint32_t region, low_fn *E, const LLVMValueRef *in,
                   const LLVMValueRef *out, LLVMValueRef begin, LLVMValueRef end) {
  LLVMBuilderRef b = N->M->b;
  const tarn_plan_code *code = N->p->code[region];
  const tarn_plan_list *list = &N->p->list[N->p->split ? 1 + region : 0];
  const tarn_plan_stmt *stop = code->p + code->n;
  E->space = &N->stage[N->p->split ? region : 0].p->space;
  bind(N, E, in, out);
  N->value = TARN_ARRAY(N->M->cx, LLVMValueRef, code->values);
  if (!code->n) return;
  if (!list->parallel) {
    emit_from(N, E, code->p, stop);
    return;
  }
  LLVMValueRef first[TARN_MAX_LEVELS], every[TARN_MAX_LEVELS] = {NULL};
  if (!end) {
    decode(N, list, begin, first);
    set_counters(N, E, list, first);
    emit_from(N, E, code->p, stop);
    return;
  }
  bool on = N->M->sample && list->parallel > 1;
  if (on) decode(N, list, begin, first);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  LLVMBasicBlockRef body = low_block(E, "item");
  LLVMBasicBlockRef after = low_block(E, "done");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, begin, end, ""), body, after);
  low_begin(E, body);
  LLVMValueRef item = LLVMBuildPhi(b, N->M->index, "");
  if (on) on_begin(N, list, first, every);
  else decode(N, list, item, every);
  set_counters(N, E, list, every);
  emit_from(N, E, code->p, stop);
  if (on) on_end(N, list, first, every, before);
  LLVMValueRef next = LLVMBuildNSWAdd(b, item, low_index(N->M, 1), "");
  LLVMValueRef from[2] = {begin, next};
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(b)};
  LLVMAddIncoming(item, from, blocks, 2);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, end, ""), body, after);
  low_begin(E, after);
}
