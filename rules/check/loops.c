/* Instances of rules over loops: a nest that the left side fits, of random loops, reads and
 * expressions. Conditions on one expression (that it slides, is free of loops, is constant …) are
 * followed more often than not; then the nest is matched as any other, and one of the ways for
 * which the conditions hold is tried. Guards are left out: a rule must hold where it is not wanted,
 * too. */
#include "rules/lang/loops.h"
#include "rules/check/check.h"
#include <string.h>

typedef struct building {
  gen *g;
  const rule *r;
  kern *k;
  kstage *st;
  uint32_t n; /* loops: own, then reduced */
  int64_t dim[2 * TARN_MAX_DIMS];
  tarn_dtype type; /* of what is read */
} building;

/* ---------------------------------------------------------------- loops */

static bool one_loop(building *b, const lloop *x) {
  static const int64_t extents[] = {2, 4, 3, 6, 5, 8, 1};
  rv *v = x->extent && x->extent->kind == RX_VAR ? &b->g->e.attr[x->extent->var] : NULL, had;
  if (b->n >= C_RANK + 2) return false;
  if (v && v->kind) had = *v;
  else if (!x->extent || v)
    had = (rv){.kind = 'i', .i = some_listed(b->g, extents, b->g->far ? 3 : 7)};
  else if (!rx_eval(&b->g->e, x->extent, &had)) return false;
  if (v) *v = had;
  b->g->e.attr[x->var] = (rv){.kind = 'o', .id = b->n, .i = 1 << b->n, .n = TARN_NONE};
  b->dim[b->n++] = had.i;
  return had.i > 0;
}
static bool some_loops(building *b, uint32_t most) {
  for (uint32_t n = draw(b->g, most + 1); n > 0; n--) {
    if (b->n >= C_RANK + 2) return false;
    b->dim[b->n++] = some_size(b->g, 1, 3);
  }
  return true;
}
/* A row, with the loops of an `of` in some order among the others. */
static bool a_row(building *b, const lloop *x) {
  uint32_t from = b->n, todo = (1u << x->n) - 1;
  while (todo) {
    uint32_t i = draw(b->g, x->n);
    if (!(todo >> i & 1)) i = (uint32_t)__builtin_ctz(todo);
    todo &= ~(1u << i);
    if (!some_loops(b, chance(b->g, 3)) || !one_loop(b, &x->kid[i])) return false;
  }
  if (!some_loops(b, x->n ? chance(b->g, 3) : 2)) return false;
  uint32_t n = b->n - from;
  b->g->e.attr[x->var] = (rv){.kind = 'o', .id = from, .n = n, .i = ((1 << n) - 1) << from};
  return true;
}
static bool a_list(building *b, const lx *x) {
  for (uint32_t i = 0; i < x->nloop; i++)
    if (!(x->loop[i].kind == LL_LOOP ? one_loop(b, &x->loop[i]) : a_row(b, &x->loop[i])))
      return false;
  return true;
}

/* ---------------------------------------------------------------- reads */

/* What a condition asks of the variable, if it is to hold: its other arguments. */
static const rx *told(const building *b, uint32_t i, uint32_t var, const char *name) {
  const rx *c = i < b->r->ncond + b->r->nguard ? rule_cond(b->r, i) : NULL;
  bool is = c && i != b->g->skip && c->kind == RX_CALL && strcmp(c->fun->name, name) == 0;
  return is && c->kid[0]->kind == RX_VAR && c->kid[0]->var == var ? c : NULL;
}
static bool asked(const building *b, uint32_t var, const char *name) {
  bool any = false;
  for (uint32_t i = 0; i < b->r->ncond; i++) any |= told(b, i, var, name) != NULL;
  return any && draw(b->g, 8) < 7;
}
/* Loops that the variable is told not to depend on. */
static uint32_t avoided(building *b, uint32_t var) {
  uint32_t set = 0;
  rv v;
  for (uint32_t i = 0; i < b->r->ncond; i++) {
    const rx *c = told(b, i, var, "free");
    if (c && gen_bound(b->g, c->kid[1]) && draw(b->g, 8) < 7 && rx_eval(&b->g->e, c->kid[1], &v))
      set |= (uint32_t)v.i;
  }
  return set;
}
/* The loop that goes with loop d in one index, or TARN_NONE. */
static uint32_t partner(building *b, uint32_t var, uint32_t d, uint32_t n, uint32_t own) {
  for (uint32_t i = 0; i < b->r->ncond; i++) {
    const rx *c = told(b, i, var, "slides");
    if (c && b->g->e.attr[c->kid[1]->var].id == d && draw(b->g, 8) < 7)
      return b->g->e.attr[c->kid[2]->var].id;
    c = told(b, i, var, "sparse");
    if (c && d < own && draw(b->g, 2)) return b->g->e.attr[c->kid[1]->var].id;
  }
  bool pads = false;
  for (uint32_t i = 0; i < b->r->ncond + b->r->nguard; i++)
    pads |= told(b, i, var, "pads-with") || told(b, i, var, "pads-below");
  bool any = n > own && d < own && (pads ? draw(b->g, 2) : chance(b->g, 6));
  return any ? own + draw(b->g, n - own) : TARN_NONE;
}

static uint32_t real_constant(const building *b, double v) {
  return tarn_dtype_is_float(b->type) ? tarn_fx_const(b->g->L, b->type, v)
                                      : tarn_fx_iconst(b->g->L, b->type, (int64_t)v);
}
/* Its elements spread out: one at every step, zeros between them. */
static void spread(building *b, tarn_imap *m, uint32_t *ix, int64_t *extent) {
  int64_t step = some_size(b->g, 2, 2), at = draw(b->g, 2);
  *ix = tarn_ix_add(b->g->L, *ix, tarn_ix_const(b->g->L, at), m->dim);
  m->guard[m->nguard++] = (tarn_guard){tarn_ix_mod(b->g->L, *ix, step, m->dim), 0, 1};
  m->fill = real_constant(b, 0);
  *ix = tarn_ix_div(b->g->L, *ix, step, m->dim), *extent = (*extent - 1 + at) / step + 1;
}
static uint32_t a_kernel(building *b, uint32_t type);
/* A tensor, or what a kernel makes, and a map to it from the first n loops. TARN_NONE: it became
 * too large. */
static uint32_t read_some(building *b, uint32_t var, uint32_t n, bool body, bool kernel) {
  gen *g = b->g;
  tarn_lang *L = g->L;
  tarn_imap m = {.n = (uint8_t)n, .ns = (uint8_t)n, .fill = TARN_NONE};
  uint32_t left = ((1u << n) - 1) & ~avoided(b, var), own = b->st->nown;
  int64_t count = 1, dim[TARN_MAX_DIMS], before = chance(g, 4), beside = 0;
  if (asked(b, var, "pads-below")) before = 1, beside = -1 - draw(g, 3);
  else if (g->r->nguard == 0) beside = draw(g, 3);
  memcpy(m.dim, b->dim, n * sizeof *b->dim);
  for (uint32_t d = 0; d < n; d++) {
    uint32_t with = partner(b, var, d, n, own), ix = tarn_ix_var(L, d, m.dim);
    if (!(left >> d & 1) || (with == TARN_NONE && chance(g, 5))) continue;
    int64_t extent = m.dim[d], step = 1;
    if (with != TARN_NONE && (left >> with & 1)) {
      ix = tarn_ix_add(L, ix, tarn_ix_var(L, with, m.dim), m.dim);
      extent += m.dim[with] - 1, left &= ~(1u << with);
      if (m.nguard == 0 && asked(b, var, "sparse") && draw(g, 4)) spread(b, &m, &ix, &extent);
      else if (before && extent > 1 && m.nguard == 0) { /* padded */
        int64_t by = g->far ? 1 + some_place(g, extent - 1) : 1;
        ix = tarn_ix_add(L, ix, tarn_ix_const(L, -by), m.dim), extent -= by;
        m.guard[m.nguard++] = (tarn_guard){ix, 0, extent};
        m.fill = real_constant(b, (double)beside);
      }
    } else if (chance(g, 8)) step = 2;
    dim[m.nin] = (extent - 1) * step + 1;
    m.e[m.nin++] = tarn_ix_scale(L, ix, step, m.dim);
    if (step == 2 && m.nguard) return TARN_NONE;
    left &= ~(1u << d), count *= dim[m.nin - 1];
  }
  if (count > most_elements(g) || m.nin > C_RANK) return TARN_NONE;
  if (chance(g, 4) && m.nin > 1) { /* the first dims the other way round */
    int64_t x = dim[0];
    uint32_t e = m.e[0];
    dim[0] = dim[1], dim[1] = x, m.e[0] = m.e[1], m.e[1] = e;
  }
  memcpy(m.in, dim, sizeof m.in);
  uint32_t type = tarn_type_tensor(L, b->type, m.nin, m.nin, dim),
           id = kernel ? a_kernel(b, type) : gen_leaf(g, type, asked(b, var, "is-const"));
  if (id != TARN_NONE && asked(b, var, "nonneg-integers"))
    id = kern_of_tensor(b->k, id, TARN_NONE,
                        tarn_fx_op(L, TARN_FX_MAX, tarn_fx_hole(L, 0), real_constant(b, 0), 0));
  uint32_t child = id == TARN_NONE ? id : kern_leaf(b->k, id);
  if (child == TARN_NONE) return child;
  uint32_t at =
      kern_add_read(b->st, body, (tarn_read){.src = child, .map = tarn_map_intern(L, &m)});
  return at == TARN_NONE ? at : tarn_fx_hole(L, at + !body);
}
static uint32_t a_read(building *b, uint32_t var, uint32_t n, bool body) {
  return read_some(b, var, n, body, false);
}
static uint32_t a_view(building *b, const tarn_type *t) {
  tarn_lang *L = b->g->L;
  bool moved = t->n > 1 && draw(b->g, 2); /* the first dims the other way round; or a part */
  tarn_imap m = {.n = t->n, .ns = t->n, .nin = t->n, .fill = TARN_NONE};
  memcpy(m.dim, t->dim, t->n * sizeof *m.dim);
  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t d = moved && i < 2 ? 1 - i : i;
    m.in[i] = t->dim[d] + !moved;
    m.e[i] = tarn_ix_add(L, tarn_ix_var(L, d, m.dim), tarn_ix_const(L, !moved), m.dim);
  }
  uint32_t id = gen_leaf(b->g, tarn_type_tensor(L, b->type, t->n, t->n, m.in), false);
  uint32_t map = tarn_payload_of(L, TARN_P_MAP, tarn_map_intern(L, &m));
  return id == TARN_NONE ? id : b->k->host->mk(b->k->host->user, TARN_OP_VIEW, map, &id, 1);
}
static uint32_t a_kernel(building *b, uint32_t type) {
  gen *g = b->g;
  const tarn_type *t = tarn_type_get(g->L, type);
  if (b->r->loops->view) return a_view(b, t);
  kern *k = TARN_NEW(g->cx, kern);
  building q = {.g = g, .r = b->r, .k = k, .st = &k->stage[0], .n = t->n, .type = b->type};
  memcpy(q.dim, t->dim, t->n * sizeof *q.dim);
  k->host = &g->host.nest, k->L = g->L, k->nstage = 1, k->out_ns = t->n;
  *q.st = (kstage){
      .nown = t->n, .reducer = TARN_NONE, .epi = TARN_NONE, .space = TARN_NONE, .out = true};
  memcpy(q.st->own, t->dim, t->n * sizeof *q.st->own);
  uint32_t f = a_read(&q, TARN_NONE, q.n, true);
  if (f != TARN_NONE && draw(g, 2)) f = some_unary(g, f);
  if (f != TARN_NONE && draw(g, 2)) {
    uint32_t h = a_read(&q, TARN_NONE, q.n, true);
    f = h == TARN_NONE ? h : tarn_fx_op(g->L, TARN_FX_ADD, f, h, 0);
  }
  if (f != TARN_NONE && draw(g, 2)) f = tarn_fx_op(g->L, TARN_FX_ADD, f, real_constant(b, 3), 0);
  q.st->body = f;
  return f == TARN_NONE ? f : kern_store(k);
}

/* ---------------------------------------------------------------- expressions */

/* Integers that a condition bounds; false: none does. */
static bool some_between(building *b, uint32_t var, uint32_t n, bool body, uint32_t *f) {
  tarn_lang *L = b->g->L;
  const rx *c = NULL;
  rv lo, hi;
  for (uint32_t i = 0; !c && i < b->r->ncond + b->r->nguard; i++) c = told(b, i, var, "between");
  if (!c || tarn_dtype_is_float(b->type) || !draw(b->g, 8) || !rx_eval(&b->g->e, c->kid[1], &lo) ||
      !rx_eval(&b->g->e, c->kid[2], &hi))
    return false;
  if ((*f = a_read(b, var, n, body)) == TARN_NONE) return true;
  *f = tarn_fx_op(L, TARN_FX_MAX, *f, real_constant(b, (double)lo.i), 0);
  *f = tarn_fx_op(L, TARN_FX_MIN, *f, real_constant(b, (double)hi.i), 0);
  return true;
}
/* Whole numbers: bytes, or what is rounded and kept in bounds. */
static uint32_t some_whole(building *b, uint32_t var, uint32_t n, bool body) {
  tarn_lang *L = b->g->L;
  tarn_dtype t = b->type;
  uint32_t f;
  if (some_between(b, var, n, body, &f)) return f;
  if (tarn_dtype_is_float(t) && draw(b->g, 2)) {
    if ((f = a_read(b, var, n, body)) == TARN_NONE) return f;
    f = tarn_fx_op(L, TARN_FX_MAX, f, real_constant(b, -3 - (double)draw(b->g, 300)), 0);
    f = tarn_fx_op(L, TARN_FX_MIN, f, real_constant(b, 3 + (double)draw(b->g, 300)), 0);
    return tarn_fx_op(L, TARN_FX_ROUND, f, 0, 0);
  }
  b->type = TARN_I8;
  f = a_read(b, var, n, body);
  b->type = t;
  return f == TARN_NONE || t == TARN_I8 ? f : tarn_fx_cast(L, t, f);
}
/* What a variable stands for: one read, or what is computed of some. */
static uint32_t some_expression(building *b, uint32_t var, uint32_t n, bool body) {
  gen *g = b->g;
  rv *v = &g->e.attr[var];
  if (v->kind) return v->id;
  uint32_t f;
  bool plain = b->type == g->dtype;
  bool exact = g->whole && draw(g, 4);
  if (exact || asked(b, var, "survives") || asked(b, var, "is-whole") || asked(b, var, "between"))
    f = some_whole(b, var, n, body);
  else if (asked(b, var, "is-zero")) f = real_constant(b, 0);
  else if (plain && (asked(b, var, "is-power-of-two") || chance(g, 12))) f = some_constant(g, true);
  else f = a_read(b, var, n, body);
  if (f != TARN_NONE && (asked(b, var, "loose") || asked(b, var, "loose-difference")) && draw(g, 2))
    f = tarn_fx_op(g->L, TARN_FX_MUL, f, real_constant(b, 0.7), 0); /* rounded */
  if ((b->type == TARN_I32 || b->type == TARN_I64) && !plain && chance(g, 2)) {
    f = some_whole(b, var, n, body); /* beyond what f32 holds */
    if (f != TARN_NONE) f = tarn_fx_op(g->L, TARN_FX_MUL, f, real_constant(b, 500009), 0);
  }
  if (plain && f != TARN_NONE && chance(g, 6)) f = some_unary(g, f);
  if (f != TARN_NONE && chance(g, 10)) {
    uint32_t h = a_read(b, var, n, body);
    f = h == TARN_NONE ? h : tarn_fx_op(g->L, TARN_FX_ADD, f, h, 0);
  }
  *v = (rv){.kind = 'e', .id = f, .i = L_PART(0, body)};
  return f;
}
static uint32_t an_expression(building *b, const lx *x, uint32_t n, bool body);

/* Integers, or floats, are cast to the type of the rule's tensors; what is cast twice is mostly of
 * that type. */
static uint32_t a_cast(building *b, const lx *x, uint32_t n, bool body) {
  static const tarn_dtype integers[] = {TARN_I32, TARN_I8, TARN_U8, TARN_I64};
  const lx *in = x->kid[0];
  bool twice = in->kind == LX_OP && in->op == TARN_FX_CAST;
  tarn_dtype t = b->type, i = integers[draw(b->g, 4)];
  if (!twice && !tarn_dtype_is_float(t) && draw(b->g, 2)) i = TARN_F32;
  if (twice && asked(b, in->kid[0]->var, "widens"))
    i = tarn_dtype_is_float(t) ? TARN_F64 : TARN_I64;
  if (in->kind == LX_THEN) { /* of what is done with a reduction's value */
    uint32_t value = an_expression(b, in, n, body);
    return value == TARN_NONE ? value : tarn_fx_cast(b->g->L, x->type, value);
  }
  b->type = twice && draw(b->g, 4) ? t : i;
  uint32_t f = an_expression(b, twice ? in->kid[0] : in, n, body);
  b->type = t;
  if (f != TARN_NONE && twice) f = tarn_fx_cast(b->g->L, i, f);
  return f == TARN_NONE ? f : tarn_fx_cast(b->g->L, t, f);
}
/* What is done with a part of what is reduced, or with the reduction's value as far as a cut in its
 * epilogue. */
static uint32_t some_step(building *b, const lx *x, uint32_t n, bool body) {
  gen *g = b->g;
  uint32_t f = an_expression(b, x->kid[0], n, body), h;
  if (f != TARN_NONE && body && draw(g, 3)) {
    h = a_read(b, TARN_NONE, n, body);
    f = h == TARN_NONE ? h : tarn_fx_op(g->L, TARN_FX_MUL, f, h, 0);
  }
  if (f != TARN_NONE && chance(g, 2)) f = tarn_fx_op(g->L, TARN_FX_ADD, f, real_constant(b, 3), 0);
  if (f != TARN_NONE && asked(b, x->var, "survives")) {
    f = tarn_fx_op(g->L, TARN_FX_MAX, f, real_constant(b, -(double)draw(g, 100)), 0);
    f = tarn_fx_op(g->L, TARN_FX_MIN, f, real_constant(b, (double)draw(g, 100)), 0);
  }
  g->e.attr[x->var] = (rv){.kind = 'e', .id = f, .i = L_PART(0, body)};
  return f;
}
static uint32_t an_expression(building *b, const lx *x, uint32_t n, bool body) {
  tarn_lang *L = b->g->L;
  uint32_t kid[3] = {0};
  rv v;
  if (x->kind == LX_ANY) return some_expression(b, x->var, n, body);
  if (x->kind == LX_FOR) return read_some(b, TARN_NONE, n, body, true);
  if (x->kind == LX_FOLD) return tarn_fx_hole(L, 0);
  if (x->kind == LX_THEN) return some_step(b, x, n, body);
  if (x->kind == LX_NUMBER) {
    if (x->counted && !rx_eval(&b->g->e, x->counted, &v)) return TARN_NONE;
    return real_constant(b, x->counted ? (double)v.i : x->value);
  }
  if (x->kind != LX_OP) return TARN_NONE;
  if (x->op == TARN_FX_CAST) return a_cast(b, x, n, body);
  bool swap = x->n == 2 && (x->op == TARN_FX_ADD || x->op == TARN_FX_MUL) && draw(b->g, 2);
  for (uint32_t i = 0; i < x->n; i++)
    if ((kid[i] = an_expression(b, x->kid[i], n, body)) == TARN_NONE) return TARN_NONE;
  return tarn_fx_op(L, (tarn_fxop)x->op, kid[swap ? 1 : 0], kid[swap ? 0 : 1], kid[2]);
}
/* more: and perhaps what is done with that. */
static bool an_epilogue(building *b, const lx *x, uint32_t own, bool more) {
  gen *g = b->g;
  uint32_t f = an_expression(b, x, own, false), h;
  if (f == TARN_NONE) return false;
  b->st->epi = x->kind == LX_FOLD ? TARN_NONE : f;
  if (!more || draw(g, 3) == 0) return true;
  if (g->r->numeric == TARN_RULE_APPROX && g->far)
    return true; /* few results: all may be below 0 */
  if (g->r->numeric == TARN_RULE_APPROX)
    f = tarn_fx_op(g->L, TARN_FX_MAX, f, real_constant(b, 0), 0);
  else if (chance(g, 2)) f = some_unary(g, f);
  if (chance(g, 2)) {
    if ((h = a_read(b, TARN_NONE, own, false)) == TARN_NONE) return false;
    f = tarn_fx_op(g->L, TARN_FX_ADD, f, h, 0);
  }
  b->st->epi = f;
  return true;
}

/* ---------------------------------------------------------------- nests */

/* A sum of squares: sums of parts are not put together by squaring them. */
static uint32_t squares(gen *g) {
  tarn_lang *L = g->L;
  uint32_t h0 = tarn_fx_hole(L, 0), h1 = tarn_fx_hole(L, 1);
  uint32_t square = tarn_fx_op(L, TARN_FX_MUL, h1, h1, 0);
  return tarn_reducer_intern(L, &(tarn_reducer){.kind = TARN_RED_CUSTOM,
                                                .dtype = g->dtype,
                                                .ns = 1,
                                                .init = {tarn_fx_const(L, g->dtype, 0)},
                                                .step = {tarn_fx_op(L, TARN_FX_ADD, h0, square, 0)},
                                                .merge = {tarn_fx_op(L, TARN_FX_ADD, h0, h1, 0)},
                                                .result = h0,
                                                .identity = TARN_NONE,
                                                .commutative = true});
}
static uint32_t a_reducer(gen *g) {
  uint32_t how = draw(g, 5);
  if (how == 4 && g->dtype == TARN_F32) return squares(g);
  return how < 3 ? tarn_reducer_of(g->L, TARN_RED_SUM, g->dtype) : some_reducer(g);
}

static bool a_nest(building *b, const lx *x) {
  gen *g = b->g;
  bool then = x->kid[0]->kind == LX_THEN;
  const lx *in = then ? x->kid[0]->kid[0] : x->kid[0], *fold = loops_fold(in);
  if (then && in == fold && asked(b, x->kid[0]->var, "survives")) in = x->kid[0], then = false;
  if (!a_list(b, x)) return false;
  b->st->nown = b->n;
  if (fold) {
    if (!a_list(b, fold)) return false;
    b->st->nred = b->n - b->st->nown;
    b->st->reducer = fold->var == TARN_NONE
                         ? tarn_reducer_of(g->L, (tarn_red_kind)fold->op, g->dtype)
                         : a_reducer(g);
  }
  b->st->body = an_expression(b, fold ? fold->kid[0] : in, b->n, true);
  if (b->st->body == TARN_NONE || (!then && in == fold) || !fold) return b->st->body != TARN_NONE;
  return an_epilogue(b, in, b->st->nown, then);
}
/* The expression in a map, in what is reduced or behind that. */
static bool around(building *b, const lx *x) {
  gen *g = b->g;
  uint32_t where = draw(g, 3);
  if (!some_loops(b, 2)) return false;
  b->st->nown = b->n;
  if (where) {
    if (!some_loops(b, 2)) return false;
    b->st->nred = b->n - b->st->nown;
    b->st->reducer = tarn_reducer_of(g->L, TARN_RED_SUM, g->dtype);
    b->st->body = where == 2 ? a_read(b, TARN_NONE, b->n, true) : TARN_NONE;
  }
  bool body = where < 2;
  uint32_t f = an_expression(b, x, body ? b->n : b->st->nown, body);
  if (f != TARN_NONE && chance(g, 2)) f = some_unary(g, f);
  if (f != TARN_NONE && !body) f = tarn_fx_op(g->L, TARN_FX_MUL, f, tarn_fx_hole(g->L, 0), 0);
  *(body ? &b->st->body : &b->st->epi) = f;
  return f != TARN_NONE && b->st->body != TARN_NONE;
}

/* The type that an operand of what is reduced is cast to; false: any. */
static bool cast_type(const lx *x, tarn_dtype *type) {
  if (x->kind == LX_OP && x->op == TARN_FX_CAST && x->var == TARN_NONE)
    return *type = x->type, true;
  bool any = false;
  for (uint32_t i = 0; !any && i < x->n && (x->kind != LX_OP || x->op != TARN_FX_CAST); i++)
    any = cast_type(x->kid[i], type);
  return any;
}
static bool make_left(gen *g) {
  const rule *r = g->r;
  kern *k = TARN_NEW(g->cx, kern);
  const lx *fold = r->loops->anywhere ? NULL : loops_fold(r->loops->left->kid[0]);
  if (!r->loops->anywhere) cast_type(fold ? fold : r->loops->left, &g->dtype);
  else if (r->loops->left->kind == LX_OP && r->loops->left->op == TARN_FX_CAST && chance(g, 4))
    g->dtype = TARN_I8;
  for (uint32_t i = 0; i < r->ncond; i++)
    if (i != g->skip && rule_cond(r, i)->kind == RX_CALL && draw(g, 8) < 7 &&
        strcmp(rule_cond(r, i)->fun->name, "nonneg-integers") == 0)
      g->dtype = draw(g, 2) ? TARN_I32 : TARN_I8;
  building b = {.g = g, .r = r, .k = k, .st = &k->stage[0], .type = g->dtype};
  k->host = &g->host.nest, k->L = g->L, k->nstage = 1;
  *b.st = (kstage){.reducer = TARN_NONE, .epi = TARN_NONE, .space = TARN_NONE, .out = true};
  if (!(r->loops->anywhere ? around(&b, r->loops->left) : a_nest(&b, r->loops->left))) return false;
  if (b.st->nb == 0) return false;
  memcpy(b.st->own, b.dim, b.st->nown * sizeof *b.dim);
  memcpy(b.st->red, b.dim + b.st->nown, b.st->nred * sizeof *b.dim);
  k->out_ns = b.st->nown;
  return (g->left[0] = kern_store(k)) != TARN_NONE;
}

/* ---------------------------------------------------------------- a way that it fits */

/* Does the condition that is left out not hold, and all others? */
static bool one_way(void *arg, renv *e) {
  gen *g = arg;
  const rule *r = g->r;
  rsite site;
  rkid kid[R_KIDS];
  uint32_t leaves[2 * R_KIDS];
  rv v;
  if (draw(g, 3) == 2 || !tarn_r_conditions(e, r, g->skip)) return true;
  if (g->skip != TARN_NONE && rx_eval(e, rule_cond(r, g->skip), &v) && v.i) return true;
  if (!r_site(e, r, &site, kid, leaves)) return true;
  g->right[0] = loops_builder.build(&site);
  return g->right[0] == TARN_NONE || g->right[0] == g->left[0];
}
static bool some_way(void *arg, renv *e) {
  gen *g = arg;
  tarn_r_choices(e, g->r, one_way, g);
  return g->right[0] == TARN_NONE;
}
bool gen_loops(gen *g) {
  const rule *r = g->r;
  g->right[0] = TARN_NONE, g->nroot = 1;
  /* :each first: extents may follow from it */
  for (uint32_t i = 0; i < r->nwhere; i++) {
    rv v;
    if (r->where_each[i] && !r_late(r, i) && rx_eval(&g->e, r->where[i], &v) && v.n)
      g->e.attr[r->where_var[i]] = (rv){.kind = 'i', .i = v.p[draw(g, v.n)]};
  }
  if (!make_left(g)) return false;
  tarn_r_env_reset(&g->e, r);
  tarn_r_match_term(&g->e, r, 0, g->left[0], some_way, g);
  return g->right[0] != TARN_NONE;
}
