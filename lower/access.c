/* Loads and stores of operands: addresses from index expressions, guards, fill.
 *
 * An offset grows level by level, so that each loop adds only what moves in it.  Where padding is
 * decided outside the innermost loops, a pointer is selected there between the tensor and a page of
 * the fill value, and the inner loops have no guards.  Lanes: unit stride becomes a vector
 * load, equal addresses a broadcast, a stride of two two loads and a shuffle, anything else a
 * gather.  Unrolled copies share what they load (sharing.c). */
#include "lower/access.h"
#include <stdlib.h>
#include <string.h>

#define PAGE_LIMIT (64 * 1024) /* bytes of a fill page */

/* ---------------------------------------------------------------- levels */
static void add_term(low_fn *E, low_access *a, const tarn_plan_term *t, low_off *to) {
  low_off x = t->kind == TARN_PLAN_ROW ? low_row(E, &a->look[t->var], t) : low_atom(E, t);
  low_off_add_wide(E, to, t->coef, x);
}
void low_access_ready(low_fn *E, low_access *a, low_access *look) {
  a->look = look;
  a->out = TARN_ARRAY(E->M->cx, low_off, PLAN_MAX_VARS + 1);
  a->in = TARN_ARRAY(E->M->cx, low_off, PLAN_MAX_VARS + 1);
  a->out[0].c = a->p->off->c;
  for (uint32_t i = 0; i < a->p->off->n; i++)
    if (!a->p->off->t[i].deps) add_term(E, a, &a->p->off->t[i], &a->out[0]);
  a->depth = 0;
  memset(a->cache, 0, sizeof a->cache), a->nasked = a->asked_gen = 0;
}

/* Levels that are not entered (of a reduction, outside of its steps) add nothing. */
static void reach(low_access *a, uint32_t level) {
  for (uint32_t l = a->depth; l < level; l++) {
    a->out[l + 1] = a->out[l];
    a->in[l + 1] = a->in[l];
  }
}
void low_access_enter(low_fn *E, low_access *a, uint32_t level) {
  reach(a, level);
  a->out[level + 1] = a->out[level];
  a->in[level + 1] = a->in[level];
  for (uint32_t i = 0; i < a->p->off->n; i++) {
    const tarn_plan_term *t = &a->p->off->t[i];
    if (!(t->deps >> level & 1) || t->last != level) continue;
    add_term(E, a, t, t->deps & a->p->inner ? &a->in[level + 1] : &a->out[level + 1]);
  }
  a->depth = level + 1;
}
void low_access_leave(low_access *a, uint32_t level) { a->depth = level; }
const low_off *low_access_at(low_access *a, uint32_t level) {
  reach(a, level);
  return &a->out[level];
}

/* ---------------------------------------------------------------- pointers */
LLVMValueRef low_address(low_fn *E, tarn_dtype type, LLVMValueRef p, const low_off *o) {
  LLVMTypeRef t = low_memory_type(E->M, type);
  LLVMValueRef c = low_i64(E->M, o->c), v = o->v;
  if (v) p = LLVMBuildInBoundsGEP2(E->M->b, t, p, &v, 1, "");
  return o->c ? LLVMBuildInBoundsGEP2(E->M->b, t, p, &c, 1, "") : p;
}
static LLVMValueRef step(low_fn *E, const low_access *a, LLVMValueRef p, const low_off *o) {
  return low_address(E, a->p->dtype, p, o);
}
static LLVMValueRef step_const(low_fn *E, const low_access *a, LLVMValueRef p, int64_t c) {
  return step(E, a, p, &(low_off){.c = c});
}

/* An array of at least n elements, all equal to the access's fill. */
static LLVMValueRef fill_page(low_fn *E, const low_access *a, int64_t n) {
  low_module *M = E->M;
  LLVMTypeRef t = low_memory_type(M, a->p->dtype);
  uint32_t size = 64;
  while (size < n) size *= 2;
  uint64_t key[3] = {a->p->dtype, a->p->fill, size};
  uint32_t before = tarn_intern_count(M->fill), id = tarn_intern_add(M->fill, key, sizeof key);
  if (id == before) {
    LLVMTypeRef at = LLVMArrayType2(t, size);
    LLVMValueRef g = LLVMAddGlobal(M->m, at, "fill"),
                 one = low_to_memory(M, a->p->dtype, low_fx_const(M, a->p->fill, 1));
    tarn_mark mark = tarn_arena_mark(M->cx);
    LLVMValueRef *v = TARN_ARRAY(M->cx, LLVMValueRef, size);
    for (uint32_t i = 0; i < size; i++) v[i] = one;
    LLVMSetInitializer(g, LLVMIsNull(one) ? LLVMConstNull(at) : LLVMConstArray2(t, v, size));
    tarn_release(M->cx, mark);
    LLVMSetLinkage(g, LLVMPrivateLinkage), LLVMSetGlobalConstant(g, true), LLVMSetAlignment(g, 64);
    LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
    tarn_push(M->cx, &M->fills, g);
  }
  return M->fills.p[id];
}

/* ---------------------------------------------------------------- guards */
static LLVMValueRef both(low_fn *E, LLVMValueRef a, LLVMValueRef b) {
  return a ? LLVMBuildAnd(E->M->b, a, b, "") : b;
}

static LLVMValueRef scalar_guard(low_fn *E, const tarn_plan_guard *g, const low_off *o, int64_t lo,
                                 int64_t hi) {
  LLVMBuilderRef b = E->M->b;
  LLVMValueRef e = low_off_scalar(E, o);
  if (lo >= g->lo) return LLVMBuildICmp(b, LLVMIntSLT, e, low_index(E->M, g->hi), "");
  if (hi < g->hi) return LLVMBuildICmp(b, LLVMIntSGE, e, low_index(E->M, g->lo), "");
  e = LLVMBuildNSWSub(b, e, low_index(E->M, g->lo), "");
  return LLVMBuildICmp(b, LLVMIntULT, e, low_index(E->M, g->hi - g->lo), "");
}
LLVMValueRef low_test(low_fn *E, const tarn_plan_guard *g) {
  int64_t lo, hi;
  low_range(E, g->e, &lo, &hi);
  low_off o = low_eval(E, g->e);
  return scalar_guard(E, g, &o, lo, hi);
}
static LLVMValueRef lane_guard(low_fn *E, const tarn_plan_guard *g, const low_off *o, int64_t lo,
                               int64_t hi) {
  low_module *M = E->M;
  low_off x = *o;
  x.c -= g->lo;
  bool narrow = !x.vec && lo > -(1 << 30) && hi < 1 << 30 && g->lo > -(1 << 30) && g->hi < 1 << 30;
  if (!narrow) {
    LLVMValueRef n = low_index(M, g->hi - g->lo);
    return LLVMBuildICmp(M->b, LLVMIntULT, low_off_vector(E, &x), low_splat(M, n, E->lanes), "");
  }
  LLVMValueRef lane[256];
  for (uint32_t i = 0; i < E->lanes; i++)
    lane[i] = LLVMConstInt(M->i32, (unsigned long long)(x.c + (int64_t)i * x.stride), true);
  LLVMValueRef e = LLVMConstVector(lane, E->lanes);
  if (x.v)
    e = LLVMBuildAdd(M->b, low_splat(M, LLVMBuildTruncOrBitCast(M->b, x.v, M->i32, ""), E->lanes),
                     e, "");
  LLVMValueRef n = LLVMConstInt(M->i32, (unsigned long long)(g->hi - g->lo), true);
  return LLVMBuildICmp(M->b, LLVMIntULT, e, low_splat(M, n, E->lanes), "");
}

low_cond low_conditions(low_fn *E, const low_access *a) {
  low_cond r = {0};
  for (uint32_t i = 0; i < a->p->nguard; i++) {
    const tarn_plan_guard *g = &a->p->guard[i];
    int64_t lo, hi;
    if (a->held >> i & 1) continue;
    low_range(E, g->e, &lo, &hi);
    if (lo >= g->lo && hi < g->hi) continue;
    if (hi < g->lo || lo >= g->hi) r.never = true;
    if (r.never) return r;
    low_off o = low_eval(E, g->e);
    if (o.stride || o.vec) r.lane = both(E, r.lane, lane_guard(E, g, &o, lo, hi));
    else r.all = both(E, r.all, scalar_guard(E, g, &o, lo, hi));
  }
  return r;
}

/* ---------------------------------------------------------------- loads */
/* n lanes that are no power of two: as part of a whole vector under a mask, where there are masks;
 * 0: piece by piece. */
static uint32_t masked_whole(const low_module *M, const low_access *a, uint32_t n) {
  uint32_t whole = 4;
  while (whole < n) whole *= 2;
  size_t bytes = tarn_dtype_size(a->p->dtype);
  return n < 3 || whole == n || !M->regs.masks || bytes < 4 || whole * bytes * 8 > M->regs.bits
             ? 0
             : whole;
}
static LLVMValueRef first_lanes(low_module *M, uint32_t n, uint32_t whole) {
  LLVMValueRef lane[64];
  for (uint32_t i = 0; i < whole; i++) lane[i] = LLVMConstInt(M->i1, i < n, 0);
  return LLVMConstVector(lane, whole);
}
LLVMValueRef low_resized(low_module *M, LLVMValueRef v, uint32_t n, uint32_t to) {
  int idx[64];
  if (n == to) return v;
  for (uint32_t i = 0; i < to; i++) idx[i] = i < n ? (int)i : -1;
  return low_shuffle(M, v, LLVMGetPoison(LLVMTypeOf(v)), idx, to);
}
/* Of a load: LLVM joins neighbouring ones where the first is aligned as a vector. */
static unsigned alignment(const low_fn *E, const low_access *a) {
  const tarn_plan_at *e = &E->env[a->p->wide_var];
  unsigned wide = a->p->wide > 1 && e->kind == TARN_PLAN_NUMBER ? a->p->wide : 1;
  while (e->c % wide) wide /= 2;
  return wide * (unsigned)tarn_dtype_size(a->p->dtype);
}
/* n lanes; `room` elements from p on may be read. */
static LLVMValueRef load_at(low_fn *E, const low_access *a, LLVMValueRef p, uint32_t n,
                            int64_t room) {
  uint32_t whole = masked_whole(E->M, a, n);
  if (whole && room >= whole)
    return low_resized(E->M, load_at(E, a, p, whole, room), whole,
                       n); /* a mask costs an operation */
  if (whole) {
    LLVMTypeRef over[2] = {low_vec(low_memory_type(E->M, a->p->dtype), whole), E->M->ptr};
    LLVMValueRef arg[4] = {p, LLVMConstInt(E->M->i32, tarn_dtype_size(a->p->dtype), 0),
                           first_lanes(E->M, n, whole), LLVMGetPoison(over[0])};
    return low_resized(E->M, low_intrinsic(E->M, "llvm.masked.load", over, 2, arg, 4), whole, n);
  }
  LLVMValueRef v = LLVMBuildLoad2(E->M->b, low_vec(low_memory_type(E->M, a->p->dtype), n), p, "");
  LLVMSetAlignment(v, alignment(E, a));
  return v;
}

/* Lanes at a step of two from what holds all elements: w[0], and w[1] behind it or NULL. */
LLVMValueRef low_half_of(low_fn *E, const LLVMValueRef *w, uint32_t first) {
  low_module *M = E->M;
  uint32_t n = E->lanes;
  int idx[256];
  for (uint32_t i = 0; i < n; i++) idx[i] = (int)(2 * low_lane(E, i) + first);
  return low_shuffle(M, w[0], w[1] ? w[1] : LLVMGetPoison(LLVMTypeOf(w[0])), idx, n);
}
/* All elements between the first lane and one behind the last, where they may be read: one register
 * or two. */
static bool load_pair(low_fn *E, const low_access *a, LLVMValueRef p, int64_t room,
                      LLVMValueRef *w) {
  uint32_t n = E->lanes, whole = n & (n - 1) ? masked_whole(E->M, a, n) : n;
  if (n < 4 || !whole || room < 2 * (int64_t)whole) return false;
  bool one = 2 * whole * tarn_dtype_size(a->p->dtype) * 8 <= E->M->regs.bits;
  w[0] = load_at(E, a, p, one ? 2 * whole : whole, room);
  w[1] = one ? NULL : load_at(E, a, step_const(E, a, p, whole), whole, room);
  return true;
}
/* Every second of v's elements 0 … n-1 and w's n-1 … 2n-2. */
static LLVMValueRef every_second(low_fn *E, LLVMValueRef v, LLVMValueRef w) {
  int idx[256];
  uint32_t n = E->lanes;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = low_lane(E, i);
    idx[i] = (int)(2 * k < n ? 2 * k : n + 2 * k - (n - 1));
  }
  return low_shuffle(E->M, v, w, idx, n);
}
bool low_lanes_vary(const low_fn *E, const low_access *a) {
  bool vary = false;
  for (uint32_t v = 0; v < PLAN_MAX_VARS; v++)
    vary |= E->env[v].kind == TARN_PLAN_VECTOR && a->p->varies >> v & 1;
  return vary;
}
/* Lanes at a constant step from p on: 0, 1, -1, 2. */
static bool simple_stride(const low_fn *E, const low_access *a, int64_t s) {
  return E->lanes == 1 || s == 0 || s == 1 || s == -1 || (s == 2 && !low_lanes_vary(E, a));
}
/* pair: as load_pair() gives it, for copies that come later. */
static LLVMValueRef load_simple(low_fn *E, const low_access *a, LLVMValueRef p, int64_t stride,
                                int64_t room, LLVMValueRef *pair) {
  uint32_t n = E->lanes;
  int idx[256];
  if (n == 1) return load_at(E, a, p, 1, 0);
  if (stride == 0) return low_splat(E->M, load_at(E, a, p, 1, 0), n);
  if (stride == 1) return load_at(E, a, p, n, room);
  if (stride == -1) {
    LLVMValueRef v = load_at(E, a, step_const(E, a, p, 1 - (int64_t)n), n, 0);
    for (uint32_t i = 0; i < n; i++) idx[i] = (int)(n - 1 - i);
    return low_shuffle(E->M, v, LLVMGetUndef(LLVMTypeOf(v)), idx, n);
  }
  if (load_pair(E, a, p, room, pair)) return low_half_of(E, pair, 0);
  return every_second(E, load_at(E, a, p, n, 0),
                      load_at(E, a, step_const(E, a, p, (int64_t)n - 1), n, 0));
}

LLVMValueRef low_fill_value(low_fn *E, const low_access *a) {
  return low_splat(E->M, low_to_memory(E->M, a->p->dtype, low_fx_const(E->M, a->p->fill, 1)),
                   E->lanes);
}

/* Lane by lane; a lane whose mask is off reads the fill page. */
static LLVMValueRef load_lanes(low_fn *E, const low_access *a, const low_off *o,
                               LLVMValueRef mask) {
  low_module *M = E->M;
  LLVMTypeRef t = low_memory_type(M, a->p->dtype);
  LLVMValueRef p = step(E, a, a->base, o), page = mask ? fill_page(E, a, 1) : NULL;
  LLVMValueRef r = LLVMGetPoison(low_vec(t, E->lanes));
  for (uint32_t i = 0; i < E->lanes; i++) {
    LLVMValueRef at = LLVMConstInt(M->i32, i, 0), c = low_i64(M, (int64_t)i * o->stride), q = p;
    if (o->vec) c = LLVMBuildAdd(M->b, LLVMBuildExtractElement(M->b, o->vec, at, ""), c, "");
    q = LLVMBuildGEP2(M->b, t, q, &c, 1, "");
    if (mask) q = LLVMBuildSelect(M->b, LLVMBuildExtractElement(M->b, mask, at, ""), q, page, "");
    r = LLVMBuildInsertElement(M->b, r, load_at(E, a, q, 1, 0), at, "");
  }
  return r;
}

/* Only of lanes that are a power of two: LLVM 19 pads others with lanes of an undefined index,
 * whose instruction is not valid when it is put in the register of the result. */
static LLVMValueRef gather(low_fn *E, const low_access *a, const low_off *o, LLVMValueRef mask) {
  low_module *M = E->M;
  LLVMTypeRef t = low_memory_type(M, a->p->dtype);
  if (E->lanes < 4 || (E->lanes & (E->lanes - 1))) return load_lanes(E, a, o, mask);
  low_off lanes = *o;
  lanes.v = NULL, lanes.c = 0;
  LLVMValueRef p = step(E, a, a->base, o), index = low_off_vector(E, &lanes);
  p = LLVMBuildGEP2(M->b, t, p, &index, 1, "");
  LLVMTypeRef over[2] = {low_vec(t, E->lanes), LLVMTypeOf(p)};
  LLVMValueRef arg[4] = {p, LLVMConstInt(M->i32, tarn_dtype_size(a->p->dtype), 0),
                         mask ? mask : low_splat(M, LLVMConstInt(M->i1, 1, 0), E->lanes),
                         mask ? low_fill_value(E, a) : LLVMConstNull(over[0])};
  return low_intrinsic(M, "llvm.masked.gather", over, 2, arg, 4);
}

static LLVMValueRef masked_load(low_fn *E, const low_access *a, const low_off *o,
                                LLVMValueRef mask) {
  low_module *M = E->M;
  LLVMValueRef p = step(E, a, a->base, o);
  LLVMTypeRef over[2] = {low_vec(low_memory_type(M, a->p->dtype), E->lanes), M->ptr};
  LLVMValueRef arg[4] = {p, LLVMConstInt(M->i32, tarn_dtype_size(a->p->dtype), 0), mask,
                         low_fill_value(E, a)};
  return low_intrinsic(M, "llvm.masked.load", over, 2, arg, 4);
}
/* As load_simple() for a step of 2: of both loads only what a lane takes is read. */
static LLVMValueRef masked_second(low_fn *E, const low_access *a, const low_off *o,
                                  LLVMValueRef mask) {
  low_module *M = E->M;
  uint32_t n = E->lanes;
  LLVMValueRef half[2], none = LLVMConstNull(LLVMTypeOf(mask));
  int idx[256];
  for (uint32_t h = 0; h < 2; h++) {
    low_off from = *o;
    from.c += h ? (int64_t)n - 1 : 0, from.stride = 1;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t e = i + (h ? n - 1 : 0);
      idx[i] = (int)(e % 2 || (h && e < n) ? n : e / 2);
    }
    half[h] = masked_load(E, a, &from, low_shuffle(M, mask, none, idx, n));
  }
  return every_second(E, half[0], half[1]);
}

/* Range of the part of the offset that moves in the inner loops. */
static void inner_range(const low_fn *E, const low_access *a, int64_t *lo, int64_t *hi) {
  int64_t l[PLAN_MAX_VARS], h[PLAN_MAX_VARS];
  tarn_plan_bounds(E->space, E->env, l, h);
  *lo = *hi = 0;
  for (uint32_t i = 0; i < a->p->off->n; i++) {
    if (!(a->p->off->t[i].deps & a->p->inner)) continue;
    int64_t tl, th;
    tarn_plan_lin_range(&(tarn_plan_lin){.n = 1, .t = &a->p->off->t[i]}, l, h, &tl, &th);
    *lo += tl, *hi += th;
  }
}

/* The guard is the same for all lanes: the pointer is chosen, outside of the inner loops where the
 * page is large enough. span: elements from the first to the last that is loaded there. */
static LLVMValueRef chosen(low_fn *E, const low_access *a, low_off out, low_off in,
                           LLVMValueRef all, int64_t span, int64_t stride) {
  LLVMBuilderRef b = E->M->b;
  int64_t lo, hi;
  inner_range(E, a, &lo, &hi);
  int64_t most = low_size_most(E->M, hi - lo + span + 1);
  if (most * (int64_t)tarn_dtype_size(a->p->dtype) > PAGE_LIMIT) {
    low_off_add(E, &out, 1, &in);
    in = (low_off){0}, lo = hi = 0, most = span + 1;
  }
  LLVMValueRef page = fill_page(E, a, most);
  page = step_const(E, a, page, -lo + (stride < 0 ? span : 0));
  LLVMValueRef p = LLVMBuildSelect(b, all, step(E, a, a->base, &out), page, "");
  return step(E, a, p, &in);
}
static LLVMValueRef load_chosen(low_fn *E, const low_access *a, low_off out, low_off in,
                                LLVMValueRef all) {
  int64_t stride = E->lanes > 1 ? out.stride + in.stride : 0,
          span = ((int64_t)E->lanes - 1) * llabs(stride);
  LLVMValueRef pair[2];
  return load_simple(E, a, chosen(E, a, out, in, all, span, stride), stride, 0, pair);
}

void low_prefetch(low_module *M, LLVMValueRef p, LLVMValueRef bytes, bool write,
                  unsigned locality) {
  LLVMTypeRef over[1] = {M->ptr};
  LLVMValueRef arg[4] = {LLVMBuildGEP2(M->b, M->i8, p, &bytes, 1, ""),
                         LLVMConstInt(M->i32, write, 0), LLVMConstInt(M->i32, locality, 0),
                         LLVMConstInt(M->i32, 1, 0)}; /* data */
  low_intrinsic(M, "llvm.prefetch", over, 1, arg, 4);
}

/* An element of a small constant whose place is known: a number. */
static LLVMValueRef known(low_fn *E, const low_access *a, const low_off *o) {
  LLVMValueRef lane[256], v;
  if (!a->p->few || a->p->nguard || o->v || o->vec) return NULL;
  for (uint32_t i = 0; i < E->lanes; i++) {
    int64_t at = o->c + (int64_t)i * o->stride;
    if (at < 0 || at >= a->p->nfew) return NULL;
    lane[i] = v = LLVMConstReal(low_memory_type(E->M, a->p->dtype), a->p->few[at]);
  }
  return E->lanes == 1 ? v : LLVMConstVector(lane, E->lanes);
}

/* So many elements may be read from the first lane's on, whatever the loops count to. */
static int64_t room_of(const low_fn *E, const low_access *a, int64_t stride) {
  int64_t lo, hi;
  low_range(E, a->p->off, &lo, &hi);
  return a->p->elems - hi + (stride > 0 ? stride * ((int64_t)E->lanes - 1) : 0);
}

/* Copies whose first lanes lie less than a line apart (taps of a window) prefetch once. */
static void prefetch_ahead(low_fn *E, low_access *a, const low_off *out, const low_off *in,
                           LLVMValueRef p) {
  int64_t size = (int64_t)tarn_dtype_size(a->p->dtype), line = E->M->regs.line, c = out->c + in->c;
  if (a->asked_gen != E->gen) a->nasked = 0, a->asked_gen = E->gen;
  for (uint32_t i = 0; i < a->nasked; i++)
    if (a->asked[i].v[0] == out->v && a->asked[i].v[1] == in->v &&
        llabs(a->asked[i].c - c) * size < line)
      return;
  if (a->nasked < LOW_CACHE) a->asked[a->nasked++] = (low_asked){{out->v, in->v}, c};
  low_prefetch(E->M, p, low_i64(E->M, a->p->prefetch_by * size), false, a->p->into_l2 ? 2 : 3);
}

LLVMValueRef low_load_guarded(low_fn *E, low_access *a, const low_off *out, const low_off *in,
                              LLVMValueRef *pair) {
  low_cond c = low_conditions(E, a);
  low_off o = *out;
  LLVMValueRef unshared[2];
  low_off_add(E, &o, 1, in);
  LLVMValueRef number = known(E, a, &o);
  if (number) return low_reordered(E, E->halves, number);
  int64_t stride = o.stride;
  bool simple = !o.vec && simple_stride(E, a, stride);
  if (c.never) return low_fill_value(E, a);
  if (!c.all && !c.lane) {
    if (!simple) return low_reordered(E, E->halves, gather(E, a, &o, NULL));
    LLVMValueRef p = step(E, a, a->base, &o);
    if (a->p->prefetch_by && stride == 1 && E->lanes > 1) prefetch_ahead(E, a, out, in, p);
    return load_simple(E, a, p, stride, room_of(E, a, stride), pair ? pair : unshared);
  }
  if (simple && !c.lane) return load_chosen(E, a, *out, *in, c.all);
  LLVMValueRef mask = c.all ? low_splat(E->M, c.all, E->lanes) : NULL;
  if (c.lane) mask = both(E, mask, c.lane);
  if (!o.vec && simple && stride == 2) return masked_second(E, a, &o, mask);
  return low_reordered(
      E, E->halves, !o.vec && stride == 1 ? masked_load(E, a, &o, mask) : gather(E, a, &o, mask));
}

/* The offset at a level whose lanes are even: the two parts of it each, or all of it in the first.
 */
static void offsets(low_fn *E, low_access *a, uint32_t level, low_off *out, low_off *in) {
  *out = *low_access_at(a, level);
  *in = a->in[level];
  if (!E->row) return;
  low_off both = *out;
  low_off_add(E, &both, 1, in);
  both = low_even(E, both);
  out->stride = both.stride, out->rows = both.rows, out->vec = both.vec;
  in->stride = in->rows = 0, in->vec = NULL;
}
LLVMValueRef low_load(low_fn *E, low_access *a, uint32_t level) {
  low_off out, in;
  offsets(E, a, level, &out, &in);
  return low_load_copy(E, a, &out, &in);
}

/* ---------------------------------------------------------------- groups */
/* Does the offset move by one element per step of the level, and no guard at all? */
static bool adjacent(const low_access *a, uint32_t var) {
  int64_t by = 0;
  for (uint32_t i = 0; i < a->p->off->n; i++) {
    const tarn_plan_term *t = &a->p->off->t[i];
    if (!(t->deps >> var & 1)) continue;
    if (t->kind != TARN_IX_VAR) return false;
    by += t->coef;
  }
  for (uint32_t g = 0; g < a->p->nguard; g++)
    if (tarn_plan_lin_deps(a->p->guard[g].e) >> var & 1) return false;
  return by == 1;
}
/* One load for all lanes, or one for each; NULL when the guards differ from lane to lane. */
static LLVMValueRef load_adjacent(low_fn *E, low_access *a, uint32_t level, uint32_t k) {
  low_module *M = E->M;
  low_cond c = low_conditions(E, a);
  low_off out, in;
  offsets(E, a, level, &out, &in);
  low_off o = out;
  low_off_add(E, &o, 1, &in);
  uint32_t n = E->lanes;
  int64_t stride = n > 1 ? o.stride : 0;
  if (c.lane || o.vec || stride < 0) return NULL;
  LLVMTypeRef bytes = low_memory_type(M, a->p->dtype),
              group = LLVMIntTypeInContext(M->lc, 8 * k * (unsigned)tarn_dtype_size(a->p->dtype));
  if (c.never)
    return low_splat(M, low_to_memory(M, a->p->dtype, low_fx_const(M, a->p->fill, 1)), n * k);
  int64_t span = ((int64_t)n - 1) * stride + k - 1;
  LLVMValueRef p = c.all ? chosen(E, a, out, in, c.all, span, stride) : step(E, a, a->base, &o), v;
  if (stride == (int64_t)k || n == 1) {
    v = LLVMBuildLoad2(M->b, low_vec(bytes, n * k), p, "");
    LLVMSetAlignment(v, (unsigned)tarn_dtype_size(a->p->dtype));
    return v;
  }
  v = LLVMGetPoison(low_vec(group, n));
  for (uint32_t i = 0; i < (stride ? n : 1); i++) {
    LLVMValueRef x = LLVMBuildLoad2(M->b, group, step_const(E, a, p, (int64_t)i * stride), "");
    LLVMSetAlignment(x, (unsigned)tarn_dtype_size(a->p->dtype));
    v = stride ? LLVMBuildInsertElement(M->b, v, x, LLVMConstInt(M->i32, i, 0), "")
               : low_splat(M, x, n);
  }
  return LLVMBuildBitCast(M->b, v, low_vec(bytes, n * k), "");
}
/* Lane by lane what the k vectors hold, from two halves of them. */
static LLVMValueRef interleaved(low_fn *E, LLVMValueRef *v, uint32_t k) {
  int index[256];
  uint32_t n = E->lanes, half = k / 2;
  if (k == 1)
    return n == 1
               ? LLVMBuildInsertElement(E->M->b, LLVMGetPoison(LLVMVectorType(LLVMTypeOf(v[0]), 1)),
                                        v[0], LLVMConstInt(E->M->i32, 0, 0), "")
               : v[0];
  LLVMValueRef a = interleaved(E, v, half), b = interleaved(E, v + half, half);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < k; j++)
      index[i * k + j] = (int)(j < half ? i * half + j : n * half + i * half + j - half);
  return low_shuffle(E->M, a, b, index, n * k);
}
LLVMValueRef low_load_group(low_fn *E, low_access *a, uint32_t level, uint32_t k) {
  uint64_t key = low_copy_key(E, a);
  uint32_t wide = E->lanes * k;
  low_loaded *c = &a->cache[key % LOW_CACHE];
  if (c->v && c->key == key && c->gen == E->gen && c->lanes == wide) return c->v;
  LLVMValueRef all = NULL, v[16];
  for (uint32_t j = 0; j < k && !all; j++) {
    E->env[level] = (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = j};
    low_access_enter(E, a, level);
    if (j == 0 && adjacent(a, level)) all = load_adjacent(E, a, level + 1, k);
    if (!all) v[j] = low_to_memory(E->M, a->p->dtype, low_load(E, a, level + 1));
  }
  E->env[level] = (tarn_plan_at){0};
  low_access_leave(a, level);
  if (!all) all = interleaved(E, v, k);
  *c = (low_loaded){.key = key, .gen = E->gen, .lanes = wide, .v = all};
  return all;
}

/* ---------------------------------------------------------------- stores */
#define LEAST_STREAMED 16 /* bytes of a non-temporal store */
/* Where masked stores are slow (twelve cycles on some AMD cores), 4 + 2 + 1 lanes in three stores
 * are faster. */
void low_store_at(low_fn *E, const low_access *a, LLVMValueRef p, LLVMValueRef v) {
  uint32_t n = low_lanes_of(v), whole = E->M->regs.slow_masks ? 0 : masked_whole(E->M, a, n);
  if (whole) {
    LLVMTypeRef over[2] = {low_vec(low_memory_type(E->M, a->p->dtype), whole), E->M->ptr};
    LLVMValueRef arg[4] = {low_resized(E->M, v, n, whole), p,
                           LLVMConstInt(E->M->i32, tarn_dtype_size(a->p->dtype), 0),
                           first_lanes(E->M, n, whole)};
    low_intrinsic(E->M, "llvm.masked.store", over, 2, arg, 4);
    return;
  }
  unsigned size = (unsigned)tarn_dtype_size(a->p->dtype), line = TARN_WHOLE_LINE,
           wide = n * size < line ? n * size : line;
  LLVMValueRef s = LLVMBuildStore(E->M->b, v, p);
  bool streaming = a->p->streaming && line % wide == 0 && n * size % wide == 0 &&
                   wide >= LEAST_STREAMED; /* a part of a line where others follow */
  LLVMSetAlignment(s, streaming ? wide : size);
  if (!streaming) return;
  LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(E->M->i32, 1, 0));
  LLVMSetMetadata(s, LLVMGetMDKindIDInContext(E->M->lc, "nontemporal", 11),
                  LLVMMetadataAsValue(E->M->lc, LLVMMDNodeInContext2(E->M->lc, &one, 1)));
}

void low_store(low_fn *E, low_access *a, uint32_t level, LLVMValueRef v) {
  low_module *M = E->M;
  low_off even = low_even(E, *low_access_at(a, level)), *o = &even;
  uint32_t n = E->lanes;
  v = low_to_memory(M, a->p->dtype, v);
  LLVMValueRef p = step(E, a, a->base, o);
  if (n == 1 || (o->stride == 1 && !o->vec)) {
    low_store_at(E, a, p, v);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    LLVMValueRef at = LLVMConstInt(M->i32, i, 0), q = step_const(E, a, p, (int64_t)i * o->stride);
    if (o->vec) {
      LLVMValueRef d = LLVMBuildExtractElement(M->b, o->vec, at, "");
      q = LLVMBuildInBoundsGEP2(M->b, low_memory_type(M, a->p->dtype), q, &d, 1, "");
    }
    low_store_at(E, a, q, LLVMBuildExtractElement(M->b, v, at, ""));
  }
}
