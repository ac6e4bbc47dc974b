/* Scalar expressions: interning, folding, substitution, typing.  Their arithmetic is in fx_eval.c.
 *
 * An expression's kids have smaller ids than itself, so ascending ids are an evaluation order. */
#include "access/fx_internal.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fxitem { /* what the fx table holds; x first */
  tarn_fx x;
  uint32_t holes;
  uint32_t mark; /* == work->epoch: seen by the current walk */
  uint32_t slot; /* the walk's number of it */
} fxitem;

/* One walk at a time: no function below starts a walk while it still uses another's order.  Walks
 * do not allocate (the arrays grow when an expression is interned), so that they may happen between
 * a mark and a release. */
typedef struct tarn_fxwork {
  uint32_t epoch;
  TARN_VEC(uint32_t) order; /* reachable ids, ascending */
  TARN_VEC(uint8_t) type;   /* by slot */
} fxwork;

#define ALL     -INFINITY, INFINITY
#define FINITE  -DBL_MAX, DBL_MAX
#define PLUS    0, INFINITY
#define UNIT    -1, 1
#define OVER_1  1, INFINITY
#define OVER_M1 -1, INFINITY
static const tarn_fxinfo infos[TARN_FX_COUNT] = {
#define FX(ID, name, n, gives, f, i, b, domain, error, rounds, range, code, cycles, slots, mul)    \
  [TARN_FX_##ID] = {.text = #name,                                                                 \
                    n,                                                                             \
                    TARN_FXG_##gives,                                                              \
                    {domain},                                                                      \
                    TARN_FXE_##error,                                                              \
                    TARN_FXR_##rounds,                                                             \
                    cycles,                                                                        \
                    slots,                                                                         \
                    mul},
#include "access/fx.def"
#undef FX
};

const tarn_fxinfo *tarn_fx_info(uint32_t op) { return &infos[op]; }
uint32_t tarn_fx_arity(uint32_t op) { return infos[op].arity; }
bool tarn_fx_gives_bool(uint32_t op) { return infos[op].gives == TARN_FXG_BOOL; }

uint32_t tarn_fx_find(const char *text) {
  for (uint32_t i = 0; i < TARN_FX_COUNT; i++)
    if (infos[i].gives != TARN_FXG_LEAF && strcmp(infos[i].text, text) == 0) return i;
  return TARN_NONE;
}

static fxitem *item_of(const tarn_lang *L, uint32_t f) {
  return (fxitem *)(uintptr_t)tarn_table_get(&L->fx, f);
}

const tarn_fx *tarn_fx_get(const tarn_lang *L, uint32_t id) { return &item_of(L, id)->x; }

/* ---------------------------------------------------------------- interning */
static void make_room(tarn_lang *L) {
  fxwork *w = L->work;
  if (tarn_table_count(&L->fx) < w->type.cap) return;
  w->order.p = tarn_vec_grow(L->fx.cx, w->order.p, w->order.cap, &w->order.cap, sizeof *w->order.p);
  w->type.p = tarn_vec_grow(L->fx.cx, w->type.p, w->type.cap, &w->type.cap, sizeof *w->type.p);
}

static uint32_t intern(tarn_lang *L, const tarn_fx *x) {
  uint32_t arity = infos[x->op].arity;
  uint64_t bits;
  memcpy(&bits, &x->value, sizeof bits);
  tarn_key_begin(L);
  tarn_key(L, (uint64_t)x->op << 32 | (uint64_t)x->dtype << 16 | x->hole);
  if (x->op == TARN_FX_CONST)
    tarn_key(L, tarn_dtype_is_float(x->dtype) ? bits : (uint64_t)x->ivalue);
  for (uint32_t i = 0; i < arity; i++) tarn_key(L, x->kid[i]);
  uint32_t id = tarn_table_find(L, &L->fx);
  if (id != TARN_NONE) return id;
  make_room(L);
  fxitem *it = TARN_NEW(L->fx.cx, fxitem);
  it->x = *x;
  it->holes = x->op == TARN_FX_HOLE ? x->hole + 1u : 0;
  for (uint32_t i = 0; i < arity; i++) {
    uint32_t h = item_of(L, x->kid[i])->holes;
    if (h > it->holes) it->holes = h;
  }
  return tarn_table_add(L, &L->fx, it);
}

uint32_t tarn_fx_hole(tarn_lang *L, uint32_t i) {
  if (i >= UINT16_MAX) tarn_raise(L->cx, TARN_BAD_INPUT, "scalar expression: hole $%u", i);
  return intern(L, &(tarn_fx){.op = TARN_FX_HOLE, .hole = (uint16_t)i});
}

static uint32_t constant(tarn_lang *L, tarn_dtype t, tarn_value v) {
  tarn_fx x = {.op = TARN_FX_CONST, .dtype = t};
  if (tarn_dtype_is_float(t)) x.value = tarn_round_to(t, v.d);
  else x.ivalue = tarn_wrap_to(t, v.i);
  if (t == TARN_BOOL) x.value = (double)x.ivalue;
  return intern(L, &x);
}

uint32_t tarn_fx_const(tarn_lang *L, tarn_dtype t, double v) {
  return constant(L, t, tarn_cast_value(TARN_F64, t, (tarn_value){.d = v}, TARN_STRICT));
}

uint32_t tarn_fx_iconst(tarn_lang *L, tarn_dtype t, int64_t v) {
  tarn_dtype from = t == TARN_U64 ? TARN_U64 : TARN_I64;
  return constant(L, t, tarn_cast_value(from, t, (tarn_value){.i = v}, TARN_STRICT));
}
uint32_t tarn_fx_zero(tarn_lang *L, tarn_dtype t) {
  return tarn_dtype_is_float(t) ? tarn_fx_const(L, t, 0) : tarn_fx_iconst(L, t, 0);
}

tarn_value tarn_fx_value(const tarn_lang *L, uint32_t f) {
  const tarn_fx *x = tarn_fx_get(L, f);
  tarn_value v;
  if (tarn_dtype_is_float(x->dtype)) v.d = x->value;
  else v.i = x->ivalue;
  return v;
}

static bool is_const(const tarn_lang *L, uint32_t f) {
  return tarn_fx_get(L, f)->op == TARN_FX_CONST;
}

/* A cast of a constant is a constant; a cast to the type just cast to is nothing. */
uint32_t tarn_fx_cast(tarn_lang *L, tarn_dtype t, uint32_t x) {
  const tarn_fx *k = tarn_fx_get(L, x);
  if (k->op == TARN_FX_CONST)
    return constant(L, t, tarn_cast_value(k->dtype, t, tarn_fx_value(L, x), TARN_STRICT));
  if (k->op == TARN_FX_CAST && k->dtype == t) return x;
  return intern(L, &(tarn_fx){.op = TARN_FX_CAST, .dtype = t, .kid = {x}});
}

/* Folding: the interpreter's own step, so that the constant is what strict evaluation gives. */
static uint32_t fold(tarn_lang *L, uint32_t op, const uint32_t *kid) {
  uint32_t arity = infos[op].arity;
  tarn_dtype types[3], out;
  tarn_value v[3] = {{0}};
  for (uint32_t i = 0; i < arity; i++) {
    if (!is_const(L, kid[i])) return TARN_NONE;
    types[i] = tarn_fx_get(L, kid[i])->dtype;
    v[i] = tarn_fx_value(L, kid[i]);
  }
  if (tarn_fx_optype(op, types, &out)) return TARN_NONE;
  return constant(L, out, tarn_fx_step(op, types[0], out, v, TARN_STRICT));
}

uint32_t tarn_fx_op(tarn_lang *L, tarn_fxop op, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t kid[3] = {a, b, c};
  if (op >= TARN_FX_COUNT || op <= TARN_FX_CAST)
    tarn_raise(L->cx, TARN_INTERNAL, "scalar expression: operator %d is not built so", (int)op);
  uint32_t folded = fold(L, op, kid);
  if (folded != TARN_NONE) return folded;
  tarn_fx x = {.op = (uint8_t)op};
  memcpy(x.kid, kid, infos[op].arity * sizeof *kid);
  return intern(L, &x);
}

/* ---------------------------------------------------------------- walks */

static void reach(const tarn_lang *L, fxwork *w, uint32_t f) {
  fxitem *it = item_of(L, f);
  if (it->mark == w->epoch) return;
  it->mark = w->epoch;
  w->order.p[w->order.n++] = f;
}

/* Collects what the roots use, ascending, and numbers it. */
static fxwork *walk(const tarn_lang *L, const uint32_t *root, uint32_t nroot) {
  fxwork *w = L->work;
  w->epoch++;
  w->order.n = 0;
  for (uint32_t i = 0; i < nroot; i++) reach(L, w, root[i]);
  for (uint32_t i = 0; i < w->order.n; i++) {
    const tarn_fx *x = tarn_fx_get(L, w->order.p[i]);
    for (uint32_t k = 0; k < infos[x->op].arity; k++) reach(L, w, x->kid[k]);
  }
  if (w->order.n > 1) qsort(w->order.p, w->order.n, sizeof *w->order.p, tarn_by_u32);
  for (uint32_t i = 0; i < w->order.n; i++) item_of(L, w->order.p[i])->slot = i;
  return w;
}

void tarn_fx_start(tarn_lang *L) { L->work = TARN_NEW(L->cx, fxwork); }

uint32_t tarn_fx_holes(const tarn_lang *L, uint32_t f) { return item_of(L, f)->holes; }

bool tarn_fx_uses(const tarn_lang *L, uint32_t f, uint32_t hole) {
  if (tarn_fx_holes(L, f) <= hole) return false;
  const fxwork *w = walk(L, &f, 1);
  for (uint32_t i = 0; i < w->order.n; i++) {
    const tarn_fx *x = tarn_fx_get(L, w->order.p[i]);
    if (x->op == TARN_FX_HOLE && x->hole == hole) return true;
  }
  return false;
}

static bool rounds_by(const tarn_lang *L, uint32_t kid) {
  const tarn_fx *x = tarn_fx_get(L, kid);
  int digits = x->dtype == TARN_F64   ? 53
               : x->dtype == TARN_F32 ? 24
               : x->dtype == TARN_F16 ? 11
                                      : 8;
  return x->op == TARN_FX_CONST && tarn_dtype_is_float(x->dtype) &&
         fabs(x->value) >= ldexp(1, digits / 2);
}
static bool is_step(const tarn_lang *L, const tarn_fx *x) {
  if (x->op == TARN_FX_CAST) return !tarn_dtype_is_float(x->dtype);
  if (x->op == TARN_FX_ADD || x->op == TARN_FX_SUB)
    return rounds_by(L, x->kid[0]) || rounds_by(L, x->kid[1]);
  return infos[x->op].error == TARN_FXE_STEP;
}
/* The first id that is not below. */
static uint32_t place_of(const tarn_fxsteps *s, uint32_t id) {
  uint32_t lo = 0;
  for (uint32_t hi = s->n; lo < hi;) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (s->id[mid] < id) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
tarn_fxsteps tarn_fx_steps(tarn_ctx *cx, const tarn_lang *L, uint32_t f) {
  const uint32_t *ids;
  tarn_fxsteps s = {.n = tarn_fx_reachable(L, f, &ids)};
  bool any = false;
  for (uint32_t i = 0; i < s.n; i++) any |= is_step(L, tarn_fx_get(L, ids[i]));
  if (!any) return (tarn_fxsteps){0};
  s.id = tarn_copy(cx, ids, s.n * sizeof *ids);
  s.before = TARN_ARRAY(cx, bool, s.n);
  for (uint32_t i = s.n; i-- > 0;) { /* kids have smaller ids */
    const tarn_fx *x = tarn_fx_get(L, s.id[i]);
    bool step = s.before[i] || is_step(L, x);
    for (uint32_t k = 0; step && k < infos[x->op].arity; k++)
      s.before[place_of(&s, x->kid[k])] = true;
  }
  return s;
}
bool tarn_fx_before_step(const tarn_fxsteps *s, uint32_t node) {
  uint32_t at = place_of(s, node);
  return at < s->n && s->id[at] == node && s->before[at];
}

uint32_t tarn_fx_size(const tarn_lang *L, uint32_t f) {
  const fxwork *w = walk(L, &f, 1);
  uint32_t size = 0;
  for (uint32_t i = 0; i < w->order.n; i++)
    size += infos[tarn_fx_get(L, w->order.p[i])->op].gives != TARN_FXG_LEAF;
  return size;
}

bool tarn_fx_rounds(const tarn_lang *L, uint32_t f) {
  const fxwork *w = walk(L, &f, 1);
  bool rounds = false;
  for (uint32_t i = 0; i < w->order.n; i++)
    rounds |= infos[tarn_fx_get(L, w->order.p[i])->op].rounds != TARN_FXR_NEVER;
  return rounds;
}

uint32_t tarn_fx_reachable(const tarn_lang *L, uint32_t f, const uint32_t **ids) {
  const fxwork *w = walk(L, &f, 1);
  *ids = w->order.p;
  return w->order.n;
}

typedef struct postorder {
  const tarn_lang *L;
  uint32_t most, n, *id;
  tarn_fxkids *kid;
} postorder;
/* A path is no longer than there are nodes, so what is too large is not followed to its end. */
static bool visit(postorder *p, uint32_t f, uint32_t depth) {
  fxitem *it = item_of(p->L, f);
  uint32_t arity = infos[it->x.op].arity;
  if (it->mark == p->L->work->epoch) return true;
  if (depth == p->most) return false;
  for (uint32_t i = 0; i < arity; i++)
    if (!visit(p, it->x.kid[i], depth + 1)) return false;
  if (p->n == p->most) return false;
  for (uint32_t i = 0; i < arity; i++)
    p->kid[p->n].at[i] = (uint16_t)item_of(p->L, it->x.kid[i])->slot;
  it->mark = p->L->work->epoch, it->slot = p->n;
  p->id[p->n++] = f;
  return true;
}
bool tarn_fx_postorder(const tarn_lang *L, uint32_t f, uint32_t most, uint32_t *id,
                       tarn_fxkids *kid, uint32_t *n) {
  postorder p = {L, most, 0, id, kid};
  L->work->epoch++;
  bool all = visit(&p, f, 0);
  *n = p.n;
  return all;
}

/* Rebuilding x over new kids; it may fold now. */
uint32_t tarn_fx_rebuild(tarn_lang *L, const tarn_fx *x, const uint32_t *kid) {
  if (x->op == TARN_FX_CAST) return tarn_fx_cast(L, x->dtype, kid[0]);
  return tarn_fx_op(L, (tarn_fxop)x->op, kid[0], kid[1], kid[2]);
}

uint32_t tarn_fx_subst(tarn_lang *L, uint32_t f, const uint32_t *with, uint32_t n) {
  const fxwork *w = walk(L, &f, 1);
  for (uint32_t i = 0; i < w->order.n; i++) {
    fxitem *it = item_of(L, w->order.p[i]);
    const tarn_fx *x = &it->x;
    uint32_t kid[3] = {0}, to = w->order.p[i];
    bool changed = false;
    for (uint32_t k = 0; k < infos[x->op].arity; k++) {
      kid[k] = item_of(L, x->kid[k])->slot;
      changed |= kid[k] != x->kid[k];
    }
    if (changed) to = tarn_fx_rebuild(L, x, kid);
    else if (x->op == TARN_FX_HOLE && x->hole < n && with[x->hole] != TARN_NONE) to = with[x->hole];
    it->slot = to;
  }
  return item_of(L, f)->slot;
}

/* ---------------------------------------------------------------- typing */
/* Of one node over operands of these types; false and a message when it does not type. */
static bool type_node(const tarn_lang *L, const tarn_fx *x, const tarn_dtype *in,
                      const tarn_dtype *holes, uint32_t n, tarn_dtype *out) {
  const char *fault = NULL;
  *out = x->dtype;
  if (x->op == TARN_FX_HOLE && x->hole >= n) {
    tarn_set_message(L->cx, "scalar expression: $%u, but there are %u values", x->hole, n);
    return false;
  }
  if (x->op == TARN_FX_HOLE) *out = holes[x->hole];
  else if (infos[x->op].gives != TARN_FXG_LEAF && x->op != TARN_FX_CAST)
    fault = tarn_fx_optype(x->op, in, out);
  if (fault)
    tarn_set_message(L->cx, "scalar expression: %s of %s: %s", infos[x->op].text,
                     tarn_dtype_name(in[0]), fault);
  return !fault;
}
/* Types of what a walk collected into w->type; false and a message when something does not type. */
static bool type_walk(const tarn_lang *L, fxwork *w, const tarn_dtype *holes, uint32_t n) {
  w->type.n = 0;
  for (uint32_t i = 0; i < w->order.n; i++) {
    const tarn_fx *x = tarn_fx_get(L, w->order.p[i]);
    tarn_dtype in[3], out;
    for (uint32_t k = 0; k < infos[x->op].arity; k++)
      in[k] = (tarn_dtype)w->type.p[item_of(L, x->kid[k])->slot];
    if (!type_node(L, x, in, holes, n, &out)) return false;
    w->type.p[w->type.n++] = (uint8_t)out;
  }
  return true;
}

void tarn_fx_types(const tarn_lang *L, const uint32_t *id, const tarn_fxkids *kid, uint32_t n,
                   const tarn_dtype *holes, uint32_t nhole, uint8_t *type) {
  for (uint32_t i = 0; i < n; i++) {
    const tarn_fx *x = tarn_fx_get(L, id[i]);
    tarn_dtype in[3], out;
    bool typed = true;
    for (uint32_t k = 0; k < infos[x->op].arity; k++) {
      typed &= type[kid[i].at[k]] != TARN_FX_UNTYPED;
      in[k] = (tarn_dtype)type[kid[i].at[k]];
    }
    type[i] = TARN_FX_UNTYPED;
    if (typed && type_node(L, x, in, holes, nhole, &out)) type[i] = (uint8_t)out;
  }
}

bool tarn_fx_type(tarn_lang *L, uint32_t f, const tarn_dtype *holes, uint32_t n, tarn_dtype *out) {
  fxwork *w = walk(L, &f, 1);
  if (!type_walk(L, w, holes, n)) return false;
  *out = (tarn_dtype)w->type.p[w->type.n - 1];
  return true;
}

/* ---------------------------------------------------------------- compiling */
static tarn_fxstep step_of(const tarn_lang *L, const fxwork *w, uint32_t i) {
  const tarn_fx *x = tarn_fx_get(L, w->order.p[i]);
  tarn_fxstep s = {.op = x->op, .dtype = w->type.p[i], .out = w->type.p[i], .hole = x->hole};
  for (uint32_t k = 0; k < infos[x->op].arity; k++) s.kid[k] = item_of(L, x->kid[k])->slot;
  if (infos[x->op].arity) /* of SEL the last operand's, of others the first's */
    s.dtype = w->type.p[s.kid[x->op == TARN_FX_SEL ? 2 : 0]];
  if (x->op == TARN_FX_CONST) s.value = tarn_fx_value(L, w->order.p[i]);
  return s;
}

tarn_fxcode *tarn_fx_compile(const tarn_lang *L, const uint32_t *root, uint32_t nroot,
                             const tarn_dtype *types, uint32_t ntypes) {
  fxwork *w = walk(L, root, nroot);
  if (!type_walk(L, w, types, ntypes)) tarn_reraise(L->cx, TARN_BAD_INPUT);
  tarn_fxcode *c = TARN_NEW(L->cx, tarn_fxcode);
  tarn_fxstep *step = TARN_ARRAY(L->cx, tarn_fxstep, w->order.n);
  uint32_t *slots = TARN_ARRAY(L->cx, uint32_t, nroot);
  for (uint32_t i = 0; i < w->order.n; i++) step[i] = step_of(L, w, i);
  for (uint32_t i = 0; i < nroot; i++) slots[i] = item_of(L, root[i])->slot;
  *c = (tarn_fxcode){.n = w->order.n, .nroot = nroot, .step = step, .root = slots};
  return c;
}

tarn_value tarn_fx_eval(const tarn_lang *L, uint32_t f, const tarn_value *holes,
                        const tarn_dtype *types, tarn_mode mode) {
  tarn_mark m = tarn_arena_mark(L->cx);
  const tarn_fxcode *c = tarn_fx_compile(L, &f, 1, types, tarn_fx_holes(L, f));
  tarn_value *slot = TARN_ARRAY(L->cx, tarn_value, c->n), out;
  tarn_fx_run(c, holes, mode, slot, &out);
  tarn_release(L->cx, m);
  return out;
}

typedef struct matching {
  const tarn_lang *L;
  bool either;
  bool (*hole)(void *user, uint32_t hole, uint32_t g);
  void *user;
} matching;
static bool match(const matching *m, uint32_t f, uint32_t g) {
  const tarn_fx *x = tarn_fx_get(m->L, f), *y = tarn_fx_get(m->L, g);
  uint32_t n = tarn_fx_arity(x->op);
  if (x->op == TARN_FX_HOLE) return m->hole(m->user, x->hole, g);
  if (!n) return f == g;
  if (x->op != y->op || (x->op == TARN_FX_CAST && x->dtype != y->dtype)) return false;
  bool same = true;
  for (uint32_t i = 0; i < n && same; i++) same = match(m, x->kid[i], y->kid[i]);
  if (same || !m->either || (x->op != TARN_FX_ADD && x->op != TARN_FX_MUL)) return same;
  return match(m, x->kid[0], y->kid[1]) && match(m, x->kid[1], y->kid[0]);
}
bool tarn_fx_match(const tarn_lang *L, uint32_t f, uint32_t g, bool either,
                   bool (*hole)(void *user, uint32_t hole, uint32_t g), void *user) {
  return match(&(matching){L, either, hole, user}, f, g);
}
