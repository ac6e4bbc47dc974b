/* Reading ahead, as loop/ahead.c decides it: how the levels walk what a nest reads and writes, and the code that asks. */
#include "lower/nest.h"

#define SHARES 20 /* bits of a trip's share of a piece */

/* ---------------------------------------------------------------- what is decided */
/* l: NULL for a local buffer. */
static tarn_walk walk_of(const low_access *a, uint32_t nlevel, uint32_t operand, const tarn_layout *l) {
  tarn_walk w = {.linear = true, .result = a->store, .operand = operand, .size = (uint32_t)tarn_dtype_size(a->dtype)};
  w.moved = low_lin_deps(a->off), w.local = !l, w.bytes = l ? tarn_layout_elems(l) * (int64_t)w.size : 0;
  for (uint32_t i = 0; i < a->off->n; i++) w.linear &= a->off->t[i].kind == TARN_IX_VAR;
  for (uint32_t v = 0; v < nlevel; v++) /* a level's variable is its number */
    if (!low_moves_by(a->off, v, &w.by[v])) w.uneven |= 1ull << v;
  return w;
}

/* The levels around the body of a list's stage, from the outermost. */
static uint32_t levels_of(const low_nest *N, uint32_t list, const low_level **out) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < N->list[k ? list : 0].n; i++) out[n++] = &N->list[k ? list : 0].level[i];
  return n;
}
/* of: the access of each walk. */
static tarn_stage_walk stage_walk(const low_nest *N, uint32_t stage, const low_operand *in, const low_operand *out,
                                  low_access **of) {
  low_stage *st = &N->stage[stage];
  const low_level *l[2 * TARN_MAX_LEVELS];
  tarn_stage_walk w = {.slots = st->slots, .red_lanes = st->red_lanes, .in_memory = st->in_memory, .reduces = st->red};
  w.nlevel = levels_of(N, 1 + stage, l);
  w.walk = TARN_ARRAY(N->M->cx, tarn_walk, st->f->nops + 1u);
  w.work = w.body = 1 + tarn_fx_cycles(N->M->L, N->M->hw, st->f->body), w.points = 1;
  for (uint32_t d = N->n->depth; d < st->n; d++) {
    w.work *= (double)st->dim[d];
    if (d < st->nacc) w.points *= (double)st->dim[d];
  }
  for (uint32_t i = 0; i < w.nlevel; i++)
    w.level[i] = (tarn_walk_level){.kind = l[i]->kind, .red = l[i]->red, .inside = l[i]->inside, .trips = l[i]->trips};
  for (uint32_t r = 0; r < st->f->nops; r++) {
    const tarn_read *read = &st->s->read[r];
    of[w.nwalk] = &st->read[r];
    w.walk[w.nwalk++] = walk_of(&st->read[r], w.nlevel, read->src, read->stage ? NULL : &in[read->src].layout);
  }
  of[w.nwalk] = &st->result;
  w.walk[w.nwalk++] = walk_of(&st->result, w.nlevel, st->out_no, st->s->out ? &out[st->out_no].layout : NULL);
  return w;
}
void low_read_ahead(low_nest *N, const low_operand *in, const low_operand *out) {
  tarn_ctx *cx = N->M->cx;
  tarn_walks w = {.cx = cx, .hw = N->M->hw, .nshared = N->list[0].n, .nstage = N->nstage};
  low_access ***of = TARN_ARRAY(cx, low_access **, N->nstage);
  w.stage = TARN_ARRAY(cx, tarn_stage_walk, N->nstage);
  for (uint32_t i = 0; i < N->nstage; i++) {
    of[i] = TARN_ARRAY(cx, low_access *, N->stage[i].f->nops + 1u);
    w.stage[i] = stage_walk(N, i, in, out, of[i]);
  }
  tarn_read_ahead(&w);
  for (uint32_t i = 0; i < N->nstage; i++)
    for (uint32_t k = 0; k < w.stage[i].nwalk; k++) {
      const tarn_walk *walk = &w.stage[i].walk[k];
      low_access *a = of[i][k];
      a->ahead = walk->ahead, a->second = walk->second;
      a->past = walk->past && a->off->c * walk->size % TARN_WHOLE_LINE == 0;
    }
  for (uint32_t i = 0; i < w.ask.n; i++) {
    const tarn_ask *k = &w.ask.p[i];
    low_ask ask = {of[k->of][k->walk], *k};
    tarn_push(cx, &N->stage[k->by].ask, ask);
  }
}

/* ---------------------------------------------------------------- emission */
static LLVMValueRef plus(low_module *M, LLVMValueRef sum, int64_t k, const low_env *e) {
  if (e->kind != LOW_SSA && e->kind != LOW_CONST) return sum;
  LLVMValueRef v = e->kind == LOW_SSA ? e->v : low_i64(M, e->c);
  return LLVMBuildAdd(M->b, sum, LLVMBuildMul(M->b, v, low_i64(M, k), ""), "");
}

/* Byte offset, from the operand's base, of what this trip of variable k->at asks for. */
static LLVMValueRef fetch_offset(const low_nest *N, const low_fn *E, uint32_t list, const low_access *a, const tarn_ask *k) {
  low_module *M = N->M;
  const low_level *l[2 * TARN_MAX_LEVELS];
  const low_lin *off = a->off;
  int64_t size = (int64_t)tarn_dtype_size(a->dtype), trips = 1;
  LLVMValueRef at = low_i64(M, (off->c + k->first) * size);
  for (uint32_t i = 0; i < off->n; i++) {
    const low_term *t = &off->t[i];
    if (t->last <= k->level) at = plus(M, at, t->coef * size, &E->env[t->var]);
  }
  bool even = k->units && k->units < k->trips; /* asked for evenly, some twice */
  int64_t piece = k->row ? k->rows * k->row * size : k->step;
  LLVMValueRef unit = low_i64(M, 0);
  for (uint32_t i = levels_of(N, list, l); i-- > 0 && l[i]->var > k->level;) {
    if ((l[i]->kind != TARN_SERIAL && l[i]->kind != TARN_PARALLEL) || l[i]->var > k->at) continue;
    if (even || k->parts > 1) unit = plus(M, unit, trips, &E->env[l[i]->var]);
    else at = plus(M, at, trips * piece, &E->env[l[i]->var]);
    trips *= l[i]->trips;
  }
  if (!even && k->parts <= 1) return at;
  if (even) {
    int64_t each = ((k->units << SHARES) + k->trips - 1) / k->trips;
    unit = LLVMBuildLShr(M->b, LLVMBuildMul(M->b, unit, low_i64(M, each), ""), low_i64(M, SHARES), "");
  }
  if (k->parts <= 1) return LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, unit, low_i64(M, piece), ""), "");
  LLVMValueRef parts = low_i64(M, k->parts), row = LLVMBuildUDiv(M->b, unit, parts, "");
  at = LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, row, low_i64(M, piece), ""), "");
  unit = LLVMBuildSub(M->b, unit, LLVMBuildMul(M->b, row, parts, ""), "");
  return LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, unit, low_i64(M, k->step), ""), "");
}

void low_fetch_due(low_nest *N, uint32_t part, uint32_t parts) {
  for (; (uint64_t)N->asked * parts < (uint64_t)N->due.n * part; N->asked++) {
    const low_due *d = &N->due.p[N->asked];
    low_prefetch(N->M, d->a->base, d->at, d->a->store, d->locality);
  }
  if (N->asked == N->due.n) N->asked = N->due.n = 0;
}
/* Is what lies inside of loop l a tile of copies in an order of their own? Then lines are asked for one by one between them. */
static bool tile_inside(const low_nest *N, uint32_t list, uint32_t l) {
  const low_list *ll = &N->list[list];
  if (N->stage[list - 1].order >= ll->n) return false;
  for (uint32_t i = l + 1; i < ll->n; i++)
    if (ll->level[i].kind == TARN_SERIAL && ll->level[i].trips > 1) return false;
  return true;
}
void low_fetch(low_nest *N, low_fn *E, uint32_t list, uint32_t l) {
  low_module *M = N->M;
  if (list == 0) return;
  const low_stage *st = &N->stage[list - 1];
  for (uint32_t i = 0; i < st->ask.n; i++) {
    const tarn_ask *k = &st->ask.p[i].k;
    const low_access *a = st->ask.p[i].a;
    if (k->at != N->list[list].level[l].var) continue;
    LLVMValueRef at = fetch_offset(N, E, list, a, k);
    for (int64_t r = 0; r < k->rows; r++)
      for (int64_t by = 0; by < k->step; by += (int64_t)M->hw->mem[1].line) {
        int64_t more = r * k->row * (int64_t)tarn_dtype_size(a->dtype) + by;
        low_due d = {a, LLVMBuildAdd(M->b, at, low_i64(M, more), ""), a->store || k->near ? 3 : 2};
        tarn_push(M->cx, &N->due, d);
      }
  }
  if (!tile_inside(N, list, l)) low_fetch_due(N, 1, 1);
}
