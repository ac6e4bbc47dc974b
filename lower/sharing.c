/* Loads that unrolled copies of an access share.
 *
 * In a strided window, the element one further is the other half of a loaded pair. The position one
 * lane further is the same vector shifted by a lane, plus one element. The same holds for taps of a
 * window along the lanes, if that is cheaper than loads that cross lines, and where lanes are rows.
 */
#include "lower/access.h"
#include <stdlib.h>

/* Which of the unrolled copies of the access this is: equal keys within one block are the same
 * load. */
uint64_t low_copy_key(const low_fn *E, const low_access *a) {
  uint64_t key = 1;
  for (uint32_t v = 0; v < PLAN_MAX_VARS; v++)
    if (a->p->deps >> v & 1 && E->env[v].kind == TARN_PLAN_NUMBER)
      key = key * (uint64_t)(E->space->hi[v] + 1) + (uint64_t)E->env[v].c;
  return key;
}

static low_loaded *find(const low_fn *E, low_access *a, uint64_t key) {
  low_loaded *c = &a->cache[key % LOW_CACHE];
  return c->v && c->key == key && c->gen == E->gen && c->lanes == E->lanes ? c : NULL;
}

/* Do k counts of variable v move all guards as one lane does? */
static bool moves_as_lanes(const low_access *a, uint32_t v, int64_t k, uint32_t lane) {
  int64_t along, across;
  for (uint32_t g = 0; g < a->p->nguard; g++)
    if (!tarn_plan_moves_by(a->p->guard[g].e, v, &along) ||
        !tarn_plan_moves_by(a->p->guard[g].e, lane, &across) || k * along != across)
      return false;
  return true;
}
/* The copy that lies `by` elements before this one; moved: and whose guards, too, are those of this
 * one, a lane on. */
static low_loaded *before(low_fn *E, low_access *a, int64_t by, uint32_t lane, bool moved) {
  for (uint32_t v = 0; v < PLAN_MAX_VARS; v++) {
    int64_t step, k;
    tarn_plan_at *e = &E->env[v];
    if (!(a->p->deps >> v & 1) || e->kind != TARN_PLAN_NUMBER ||
        !tarn_plan_moves_by(a->p->off, v, &step) || step <= 0 || by % step)
      continue;
    if ((k = by / step) > e->c || (moved && !moves_as_lanes(a, v, k, lane))) continue;
    e->c -= k;
    low_loaded *c = find(E, a, low_copy_key(E, a));
    e->c += k;
    if (c) return c;
  }
  return NULL;
}

/* What this copy's lane number `at` reads, alone. */
static LLVMValueRef lane_of(low_fn *E, low_access *a, const low_off *out, const low_off *in,
                            uint32_t lane, int64_t at) {
  uint32_t n = E->lanes;
  low_off o = *out, i = *in;
  tarn_plan_at env = E->env[lane];
  o.c += o.stride * at, o.stride = 0;
  i.c += i.stride * at, i.stride = 0;
  E->env[lane] = (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = at}, E->lanes = 1;
  LLVMValueRef single = low_from_memory(E->M, a->p->dtype, low_load_guarded(E, a, &o, &i, NULL));
  E->env[lane] = env, E->lanes = n;
  return single;
}
/* The lanes of another copy moved by one: it lies a lane before this one, or behind it. The lane
 * that is new is loaded. */
static LLVMValueRef moved_lanes(low_fn *E, low_access *a, const low_off *out, const low_off *in,
                                uint32_t lane, LLVMValueRef v, bool behind) {
  low_module *M = E->M;
  uint32_t n = E->lanes;
  int idx[256];
  LLVMValueRef single = lane_of(E, a, out, in, lane, behind ? 0 : (int64_t)n - 1);
  for (uint32_t to = 0; to < n; to++) {
    uint32_t k = low_lane(E, to), from = behind ? (k ? k - 1 : n) : k + 1;
    idx[to] = (int)(from < n ? low_lane(E, from) : n);
  }
  single = LLVMBuildInsertElement(M->b, LLVMGetPoison(LLVMTypeOf(v)), single,
                                  LLVMConstInt(M->i32, 0, 0), "");
  return low_shuffle(M, v, single, idx, n);
}

static bool unguarded(low_fn *E, const low_access *a) {
  low_cond c = low_conditions(E, a);
  return !c.never && !c.all && !c.lane;
}
/* At an odd place, whatever the loops count to: the element behind it begins a line more often. */
static bool at_odd(const low_fn *E, const low_access *a, const low_off *out, const low_off *in) {
  for (uint32_t i = 0; i < a->p->off->n; i++) {
    const tarn_plan_term *t = &a->p->off->t[i];
    if (t->kind != TARN_IX_VAR || (t->coef % 2 && E->env[t->var].kind != TARN_PLAN_NUMBER))
      return false;
  }
  return (out->c + in->c) % 2 != 0;
}

/* Lanes at a step of two that begin across the border, or badly: the next copy and the one behind
 * it are loaded first, and this one is the latter moved back. */
static LLVMValueRef load_from_behind(low_fn *E, low_access *a, const low_off *out,
                                     const low_off *in, uint32_t lane) {
  for (uint32_t v = 0; v < PLAN_MAX_VARS; v++) {
    int64_t step;
    tarn_plan_at *e = &E->env[v], was = *e;
    if (!(a->p->deps >> v & 1) || e->kind != TARN_PLAN_NUMBER ||
        !tarn_plan_moves_by(a->p->off, v, &step) || step != 1)
      continue;
    if (e->c + 2 > E->space->hi[v] || !moves_as_lanes(a, v, 2, lane)) continue;
    if (unguarded(E, a) && (E->halves || !at_odd(E, a, out, in))) return NULL;
    LLVMValueRef r = NULL;
    low_off o = *out;
    e->c++, o.c++;
    if (unguarded(E, a) && (e->c++, unguarded(E, a))) {
      e->c--;
      low_load_copy(E, a, &o, in);
      low_loaded *next = find(E, a, low_copy_key(E, a));
      e->c++, o.c++;
      if (next && next->pair[0]) r = low_load_copy(E, a, &o, in);
    }
    *e = was;
    return r ? moved_lanes(E, a, out, in, lane, r, true) : NULL;
  }
  return NULL;
}

/* Does this copy begin at a whole vector, whatever the loops count to? How far behind one it does,
 * then; -1: it depends. */
static int64_t into_vector(const low_fn *E, const low_access *a, int64_t c) {
  int64_t n = E->lanes;
  for (uint32_t i = 0; i < a->p->off->n; i++) {
    const tarn_plan_term *t = &a->p->off->t[i];
    bool free = t->kind != TARN_IX_VAR || E->env[t->var].kind == TARN_PLAN_COUNTER;
    if (free && t->coef % n) return -1;
  }
  return ((c % n) + n) % n;
}
/* As they are, but LLVM does not know how they came to be. */
static LLVMValueRef unseen(low_fn *E, LLVMValueRef x) {
  low_module *M = E->M;
  LLVMTypeRef is = LLVMTypeOf(x), as = low_vec(M->i32, E->lanes),
              f = LLVMFunctionType(as, &as, 1, false);
  LLVMValueRef same =
      LLVMGetInlineAsm(f, "", 0, "=v,0", 4, false, false, LLVMInlineAsmDialectATT, false);
  x = LLVMBuildBitCast(M->b, x, as, "");
  x = LLVMBuildCall2(M->b, f, same, &x, 1, "");
  unsigned none = LLVMGetEnumAttributeKindForName("memory", 6);
  LLVMAddCallSiteAttribute(x, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                           LLVMCreateEnumAttribute(M->lc, none, 0));
  return LLVMBuildBitCast(M->b, x, is, "");
}
/* As moved_lanes(). On integers, where LLVM has an instruction for neighbours of two registers; and
 * a zero would be moved in by one that takes twice as long, if it were known to be one. */
static LLVMValueRef neighbours(low_fn *E, LLVMValueRef single, LLVMValueRef v, bool behind) {
  low_module *M = E->M;
  uint32_t n = E->lanes;
  int idx[256];
  LLVMTypeRef is = LLVMTypeOf(v), as = low_vec(M->i32, n);
  bool known = LLVMIsConstant(single);
  for (uint32_t to = 0; to < n; to++) idx[to] = (int)(to + (behind ? n - 1 : 1));
  single = low_splat(M, LLVMBuildBitCast(M->b, single, M->i32, ""), n),
  v = LLVMBuildBitCast(M->b, v, as, "");
  if (known) single = unseen(E, single);
  return LLVMBuildBitCast(M->b, low_shuffle(M, behind ? single : v, behind ? v : single, idx, n),
                          is, "");
}
/* Neighbours, and copies that go along them: taps of a window. A load that crosses a line takes
 * two, and of full vectors all cross one but those that begin it. So one copy is loaded, and the
 * others are the same moved by a lane, again and again. */
static LLVMValueRef load_along(low_fn *E, low_access *a, const low_off *out, const low_off *in,
                               uint32_t lane) {
  for (uint32_t v = 0; v < PLAN_MAX_VARS; v++) {
    tarn_plan_at *e = &E->env[v];
    int64_t step, hi = E->space->hi[v];
    if (!(a->p->along >> v & 1) || e->kind != TARN_PLAN_NUMBER ||
        !tarn_plan_moves_by(a->p->off, v, &step) || step != 1)
      continue;
    if (hi < 1 || hi >= E->lanes || 32 * E->lanes != E->M->regs.bits ||
        !moves_as_lanes(a, v, 1, lane))
      continue;
    int64_t c = out->c + in->c - e->c, at = hi / 2, first = into_vector(E, a, c);
    if (first >= 0 && (E->lanes - first) % E->lanes <= hi) at = (E->lanes - first) % E->lanes;
    if (e->c == at) { /* opaque: LLVM makes one load again of the lanes of two */
      LLVMValueRef x = low_load_guarded(E, a, out, in, NULL);
      return LLVMIsConstant(x) ? x : unseen(E, x);
    }
    low_off o = *out;
    int64_t by = e->c < at ? 1 : -1;
    e->c += by, o.c += by;
    LLVMValueRef r = low_load_copy(E, a, &o, in);
    e->c -= by;
    return neighbours(E, lane_of(E, a, out, in, lane, by > 0 ? 0 : (int64_t)E->lanes - 1), r,
                      by > 0);
  }
  return NULL;
}

/* Which lanes are not in the padding, where code need not ask; false: it has to. */
static bool lanes_inside(low_fn *E, const low_access *a, bool *is) {
  low_cond c = low_conditions(E, a);
  if (c.all || (c.lane && !LLVMIsConstant(c.lane))) return false;
  for (uint32_t i = 0; i < E->lanes; i++) {
    LLVMValueRef bit = c.lane ? LLVMGetAggregateElement(c.lane, i) : NULL;
    if (bit && !LLVMIsAConstantInt(bit)) return false;
    is[i] = !c.never && (!bit || LLVMConstIntGetZExtValue(bit));
  }
  return true;
}
/* As load_along(), where lanes are rows that follow one another: what lies beside a row's ends is
 * padding or another lane. */
static LLVMValueRef load_along_rows(low_fn *E, low_access *a, const low_off *out,
                                    const low_off *in) {
  bool here[256], there[256];
  int idx[256];
  uint32_t n = E->lanes;
  for (uint32_t v = 0; v < PLAN_MAX_VARS; v++) {
    tarn_plan_at *e = &E->env[v];
    int64_t step, at = E->space->hi[v] / 2, k = e->c - at;
    if (!(a->p->along >> v & 1) || e->kind != TARN_PLAN_NUMBER ||
        !tarn_plan_moves_by(a->p->off, v, &step) || step != 1)
      continue;
    if (k == 0 || llabs(k) >= n || !lanes_inside(E, a, here)) continue;
    low_off o = *out;
    e->c -= k, o.c -= k;
    bool fits = lanes_inside(E, a, there);
    for (int64_t i = 0; i < n && fits; i++) {
      fits = !here[i] || (i + k >= 0 && i + k < n && there[i + k]);
      idx[i] = here[i] ? (int)(i + k) : (int)n;
    }
    LLVMValueRef r = fits ? low_load_copy(E, a, &o, in) : NULL;
    e->c += k;
    if (fits)
      return low_shuffle(E->M, r, low_from_memory(E->M, a->p->dtype, low_fill_value(E, a)), idx, n);
  }
  return NULL;
}

/* From what other copies load too; NULL: there are none such. */
static LLVMValueRef load_shared(low_fn *E, low_access *a, const low_off *out, const low_off *in) {
  int64_t stride = out->stride + in->stride;
  uint32_t lane = 0;
  low_loaded *c;
  if (E->lanes < 4 || stride < 1 || out->vec || in->vec) return NULL;
  if (E->row) return stride == 1 && a->p->along ? load_along_rows(E, a, out, in) : NULL;
  while (lane < PLAN_MAX_VARS && E->env[lane].kind != TARN_PLAN_VECTOR) lane++;
  if (lane == PLAN_MAX_VARS) return NULL;
  if (stride == 1) return a->p->along ? load_along(E, a, out, in, lane) : NULL;
  if (low_lanes_vary(E, a)) return NULL;
  if ((c = before(E, a, stride, lane, true)) && (!E->halves || !unguarded(E, a)))
    return moved_lanes(E, a, out, in, lane, c->v, false);
  if (stride != 2) return NULL;
  if ((c = before(E, a, 1, lane, false)) && c->pair[0] && unguarded(E, a))
    return low_from_memory(E->M, a->p->dtype, low_half_of(E, c->pair, 1));
  return load_from_behind(E, a, out, in, lane);
}

LLVMValueRef low_load_copy(low_fn *E, low_access *a, const low_off *out, const low_off *in) {
  uint64_t key = low_copy_key(E, a);
  low_loaded *c = find(E, a, key), now = {.key = key, .gen = E->gen, .lanes = E->lanes};
  if (c) return c->v;
  now.v = load_shared(E, a, out, in);
  if (!now.v) now.v = low_from_memory(E->M, a->p->dtype, low_load_guarded(E, a, out, in, now.pair));
  a->cache[key % LOW_CACHE] = now;
  return now.v;
}
