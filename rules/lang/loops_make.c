/* Makes the right side of a rule over loops: kernels from (for …) and (shared …), their stages from
 * (stage …), maps by substituting what each loop of the left side is at that place. */
#include "rules/lang/loops.h"
#include <string.h>

typedef struct scope { /* loops, and what those of the rule are in terms of them */
  uint32_t n;
  int64_t dim[2 * TARN_MAX_DIMS];
  uint32_t ix[L_LOOPS];
  int64_t end[L_LOOPS]; /* 0, or from where on nothing is read */
  bool loose[L_LOOPS];  /* there may be something, which does not matter */
  const lx *beside;     /* NULL, or the number that is read beside tensors */
} scope;
typedef struct making {
  rsite *s; /* NULL: in place */
  renv *e;
  tarn_lang *L;
  lmatch *m;
  uint32_t fill; /* a number that is read behind an end; TARN_NONE, or of another type: 0 */
} making;
typedef struct place { /* where an expression is made */
  kern *k;
  const scope *shared;
  kstage *st;
  bool body;
} place;
typedef struct result { /* of a kernel or a stage: over which loops */
  uint32_t n, id[2 * TARN_MAX_DIMS];
  int64_t dim[2 * TARN_MAX_DIMS];
} result;

static uint32_t make(making *g, const lx *x, const scope *s, place *p);

/* ---------------------------------------------------------------- loops */

static void no_loops(scope *s) {
  s->n = 0, s->beside = NULL;
  for (uint32_t i = 0; i < L_LOOPS; i++) s->ix[i] = TARN_NONE, s->end[i] = 0, s->loose[i] = false;
}
/* The number of a named loop: that of the left side, or a fresh one. */
static uint32_t loop_id(const making *g, uint32_t var) {
  const rv *v = &g->e->attr[var];
  return v->kind == 'o' ? v->id : L_FRESH + var;
}
static bool add_loop(making *g, scope *s, result *r, uint32_t id, int64_t extent) {
  if (s->n == 2 * TARN_MAX_DIMS || extent < 1) return false;
  s->dim[s->n] = extent;
  s->ix[id] = tarn_ix_var(g->L, s->n++, s->dim);
  s->end[id] = 0, s->loose[id] = false;
  if (r) r->id[r->n] = id, r->dim[r->n++] = extent;
  return true;
}
static uint32_t uses(const making *g, uint32_t var) {
  const rv *v = &g->e->attr[var];
  uint32_t set = 0;
  fxwalk w;
  if (!loops_walk(g->e, v, &w)) return 0;
  for (uint32_t i = 0; i < w.n; i++) {
    const tarn_fx *x = tarn_fx_get(g->L, w.id[i]);
    const tarn_read *r = x->op == TARN_FX_HOLE ? loops_read_of(g->m, v->i, x->hole) : NULL;
    if (r) set |= map_uses(g->L, r->map);
  }
  return set;
}
typedef struct listing { /* of what a list may be restricted to, and extents that it changes */
  uint32_t set;
  const lloop *with;
} listing;
static bool add_loops(making *g, scope *s, result *r, const lloop *x, uint32_t n, listing l);

static bool add_old(making *g, scope *s, result *r, uint32_t at, listing l) {
  int64_t extent = g->m->dim[at];
  rv v;
  if (!(l.set >> at & 1)) return true;
  for (uint32_t i = 1; l.with && i < l.with->n; i++)
    if (loop_id(g, l.with->kid[i].var) == at && l.with->kid[i].extent) {
      if (!rx_eval(g->e, l.with->kid[i].extent, &v)) return false;
      extent = v.i;
    }
  return add_loop(g, s, r, at, extent);
}
static bool add_one(making *g, scope *s, result *r, const lloop *x, listing l) {
  const rv *is = &g->e->attr[x->var];
  rv v;
  switch (x->kind) {
  case LL_ROW:
    for (uint32_t d = is->id; d < is->id + is->n; d++)
      if (!add_old(g, s, r, d, l)) return false;
    return true;
  case LL_LOOP:
    if (x->extent)
      return rx_eval(g->e, x->extent, &v) && add_loop(g, s, r, loop_id(g, x->var), v.i);
    return is->kind == 'o' && add_old(g, s, r, is->id, l);
  case LL_ON:
    l.set &= uses(g, x->var);
    for (uint32_t d = 0; x->n == 0 && d < g->m->n; d++)
      if (!add_old(g, s, r, d, l)) return false;
    break;
  case LL_OFF: l.set &= ~uses(g, x->var); break;
  case LL_WITH: l.with = x; return add_loops(g, s, r, x->kid, 1, l);
  case LL_OF: return false;
  }
  return add_loops(g, s, r, x->kid, x->n, l);
}
static bool add_loops(making *g, scope *s, result *r, const lloop *x, uint32_t n, listing l) {
  for (uint32_t i = 0; i < n; i++)
    if (!add_one(g, s, r, &x[i], l)) return false;
  return true;
}
static bool add_list(making *g, scope *s, result *r, const lx *x) {
  return add_loops(g, s, r, x->loop, x->nloop, (listing){.set = UINT32_MAX});
}

/* ---------------------------------------------------------------- indices */

/* TARN_NONE: it has no value. end: of (within …) and (beyond …). */
static uint32_t index_at(making *g, const lix *x, const scope *s, int64_t *end) {
  rv v = {0};
  if (x->kind == LIX_NUMBER)
    return rx_eval(g->e, x->number, &v) ? tarn_ix_const(g->L, v.i) : TARN_NONE;
  if (x->kind == LIX_LOOP) return s->ix[loop_id(g, x->var)];
  if (x->kind == LIX_FIRST)
    return loops_first(g->e, &g->e->attr[x->of], loop_id(g, x->var), s->ix, s->dim);
  int64_t none;
  uint32_t a = index_at(g, x->kid[0], s, end), b;
  if (a == TARN_NONE) return a;
  if (x->kind >= LIX_MUL && (!rx_eval(g->e, x->kid[1]->number, &v) || v.i < 1)) return TARN_NONE;
  switch (x->kind) {
  case LIX_MUL: return tarn_ix_scale(g->L, a, v.i, s->dim);
  case LIX_DIV: return tarn_ix_div(g->L, a, v.i, s->dim);
  case LIX_MOD: return tarn_ix_mod(g->L, a, v.i, s->dim);
  case LIX_WITHIN:
  case LIX_BEYOND: return *end = v.i, a;
  default: break;
  }
  if ((b = index_at(g, x->kid[1], s, &none)) == TARN_NONE) return b;
  if (x->kind == LIX_SUB) b = tarn_ix_scale(g->L, b, -1, s->dim);
  return tarn_ix_add(g->L, a, b, s->dim);
}
static bool in_range(making *g, uint32_t ix, const scope *s, int64_t extent) {
  int64_t lo, hi;
  tarn_ix_range(g->L, ix, s->dim, &lo, &hi);
  return lo >= 0 && hi < extent;
}
/* Loops of a row from where they are counted through, the last one fastest. */
static void count_through(making *g, const rv *row, uint32_t ix, const scope *s, scope *to) {
  for (uint32_t d = row->id + row->n; d-- > row->id;) {
    int64_t n = g->m->dim[d];
    to->ix[d] = d == row->id ? ix : tarn_ix_mod(g->L, ix, n, s->dim);
    to->end[d] = 0, to->loose[d] = false;
    if (d > row->id) ix = tarn_ix_div(g->L, ix, n, s->dim);
  }
}
static bool substitute(making *g, const lx *x, const scope *s, scope *to) {
  *to = *s;
  for (uint32_t i = 0; i < x->nloop; i++) {
    const lloop *l = &x->loop[i];
    int64_t end = 0;
    uint32_t ix = index_at(g, l->ix, s, &end);
    if (ix == TARN_NONE) return false;
    if (l->kind == LL_ROW) count_through(g, &g->e->attr[l->var], ix, s, to);
    else {
      uint32_t id = loop_id(g, l->var);
      to->ix[id] = ix, to->end[id] = end, to->loose[id] = l->ix->kind == LIX_BEYOND;
    }
  }
  return true;
}

/* ---------------------------------------------------------------- reads */

static uint32_t fill_of(const making *g, tarn_dtype t) {
  if (g->fill != TARN_NONE && tarn_fx_get(g->L, g->fill)->dtype == t) return g->fill;
  return tarn_dtype_is_float(t) ? tarn_fx_const(g->L, t, 0) : tarn_fx_iconst(g->L, t, 0);
}
static bool add_end(making *g, tarn_imap *m, const scope *s, uint32_t id, tarn_dtype t) {
  if (!s->end[id] || in_range(g, s->ix[id], s, s->end[id])) return true;
  if (m->nguard == TARN_MAX_DIMS) return false;
  if (m->nguard == 0) m->fill = fill_of(g, t);
  m->guard[m->nguard++] = (tarn_guard){s->ix[id], 0, s->end[id]};
  return true;
}
/* A read of the left side at this place; TARN_NONE. */
static uint32_t moved(making *g, uint32_t map, const scope *s, tarn_dtype t) {
  tarn_imap m = *tarn_imap_get(g->L, map);
  uint32_t sub[2 * TARN_MAX_DIMS], used = map_uses(g->L, map), n = m.n;
  if (s->n > TARN_MAX_DIMS) return TARN_NONE;
  for (uint32_t i = 0; i < n; i++) {
    bool is = used >> i & 1;
    if (is && (s->ix[i] == TARN_NONE || (!s->end[i] && !in_range(g, s->ix[i], s, m.dim[i]))))
      return TARN_NONE;
    sub[i] = is ? s->ix[i] : tarn_ix_const(g->L, 0);
  }
  imap_subst(g->L, &m, sub, s->n, s->dim);
  for (uint32_t loose = 0; loose < 2; loose++) {
    uint32_t now = loose ? tarn_map_intern_derived(g->L, &m) : TARN_NONE;
    if (loose && tarn_map_inside(g->L, now)) return now;
    for (uint32_t i = 0; i < n; i++)
      if ((used >> i & 1) && s->loose[i] == loose && !add_end(g, &m, s, i, t)) return TARN_NONE;
  }
  uint32_t now = tarn_map_intern_derived(g->L, &m);
  return tarn_map_inside(g->L, now) ? now : TARN_NONE; /* an end is only what the rule says */
}
/* Where a result is read: at what its loops are at this place. TARN_NONE. */
static uint32_t map_to(making *g, const result *r, const scope *s, tarn_dtype t) {
  tarn_imap m = {.n = (uint8_t)s->n, .ns = (uint8_t)s->n, .nin = (uint8_t)r->n, .fill = TARN_NONE};
  if (s->n > TARN_MAX_DIMS || r->n > TARN_MAX_DIMS) return TARN_NONE;
  memcpy(m.dim, s->dim, s->n * sizeof *s->dim);
  for (uint32_t i = 0; i < r->n; i++) {
    m.in[i] = r->dim[i], m.e[i] = s->ix[r->id[i]];
    if (m.e[i] == TARN_NONE || !add_end(g, &m, s, r->id[i], t)) return TARN_NONE;
    if (!s->end[r->id[i]] && !in_range(g, m.e[i], s, m.in[i])) return TARN_NONE;
  }
  return tarn_map_intern(g->L, &m);
}
static uint32_t add_read(place *p, tarn_read r) {
  if (r.map == TARN_NONE) return TARN_NONE;
  uint32_t at = kern_add_read(p->st, p->body, r);
  return at == TARN_NONE ? at : tarn_fx_hole(p->k->L, at + !p->body);
}
static uint32_t add_child(place *p, uint32_t id, uint32_t map) {
  uint32_t leaf = id == TARN_NONE || map == TARN_NONE ? TARN_NONE : kern_leaf(p->k, id);
  return leaf == TARN_NONE ? leaf : add_read(p, (tarn_read){.src = leaf, .map = map});
}
static tarn_dtype type_of(const making *g, uint32_t id) {
  const kern_host *h = &g->e->host->nest;
  return tarn_type_get(g->L, h->type(h->user, id))->dtype;
}

/* The read of the left side that a variable is; NULL: it is more than that. */
static const tarn_read *read_of(const making *g, uint32_t var) {
  const rv *v = &g->e->attr[var];
  const tarn_fx *f = v->id == TARN_NONE ? NULL : tarn_fx_get(g->L, v->id);
  const tarn_read *r = f && f->op == TARN_FX_HOLE ? loops_read_of(g->m, v->i, f->hole) : NULL;
  return r && !r->stage ? r : NULL;
}

/* The tensor of a read at this place; with the number of (beside …). */
static uint32_t child_read(making *g, const tarn_read *r, const scope *s, place *p) {
  if (r->stage) return TARN_NONE;
  uint32_t id = g->m->k.leaf[r->src], map = moved(g, r->map, s, type_of(g, id));
  tarn_dtype t = type_of(g, id);
  double v = s->beside ? s->beside->value : 0;
  if (map != TARN_NONE && s->beside && tarn_imap_get(g->L, map)->nguard)
    map = map_with_fill(g->L, map,
                        tarn_dtype_is_float(t) ? tarn_fx_const(g->L, t, v)
                                               : tarn_fx_iconst(g->L, t, (int64_t)v));
  return add_child(p, id, map);
}

static bool ends_at(making *g, const scope *s, uint32_t i) {
  return s->end[i] && !s->loose[i] && !in_range(g, s->ix[i], s, s->end[i]);
}
/* How many of the reduced loops end at this place. */
static uint32_t reduced_ends(making *g, const scope *s) {
  uint32_t n = 0;
  for (uint32_t i = g->m->k.stage[0].nown; i < g->m->n; i++) n += ends_at(g, s, i);
  return n;
}
/* What a read gives behind an end of this place (add_end); TARN_NONE: it has none. */
static uint32_t behind(making *g, const tarn_read *r, const scope *s) {
  const tarn_imap *m = tarn_imap_get(g->L, r->map);
  uint32_t used = map_uses(g->L, r->map);
  bool any = false;
  for (uint32_t i = 0; i < m->n; i++) any |= (used >> i & 1) && ends_at(g, s, i);
  if (!any || m->nguard) return any ? m->fill : TARN_NONE;
  return fill_of(g, type_of(g, g->m->k.leaf[r->src]));
}
/* May v be made here, for what its reads give behind ends? */
static bool may_end(making *g, const rv *v, const fxwalk *w, const scope *s) {
  uint32_t end[K_READS + 1], n = reduced_ends(g, s);
  bool ends = n > 0;
  for (uint32_t i = 0; i <= K_READS; i++) end[i] = TARN_NONE;
  for (uint32_t i = 0; i < w->n; i++) {
    const tarn_fx x = *tarn_fx_get(g->L, w->id[i]);
    const tarn_read *r = x.op == TARN_FX_HOLE ? loops_read_of(g->m, v->i, x.hole) : NULL;
    if (r) end[x.hole] = behind(g, r, s), ends |= end[x.hole] != TARN_NONE;
  }
  return !ends || (n < 2 && loops_may_end(g->e, v, end, n > 0));
}
static uint32_t constant(making *g, const char *name, tarn_tensor *v) {
  const kern_host *h = &g->e->host->nest;
  uint32_t type = tarn_type_tensor(g->L, v->dtype, v->n, v->n, v->dim);
  tarn_payload c = {.kind = TARN_P_CONST, .name = name, .type = type, .tensor = v};
  return h->mk(h->user, TARN_OP_CONST, tarn_payload_intern(g->L, &c), NULL, 0);
}
/* f before the ends of this place, and behind them `none`, which adds nothing: a read of `true` has
 * the same ends. */
static uint32_t until_end(making *g, uint32_t f, uint32_t none, const scope *s, place *p) {
  tarn_tensor *yes = tarn_tensor_new(tarn_lang_ctx(g->L), TARN_BOOL, 0, NULL);
  tarn_imap m = {.n = (uint8_t)s->n, .ns = (uint8_t)s->n, .fill = TARN_NONE};
  memcpy(m.dim, s->dim, s->n * sizeof *s->dim);
  tarn_tensor_set(yes, 0, (tarn_value){.i = 1});
  for (uint32_t i = 0; i < L_LOOPS; i++)
    if (ends_at(g, s, i) && !add_end(g, &m, s, i, TARN_BOOL)) return TARN_NONE;
  uint32_t is = add_child(p, constant(g, "before-end", yes), tarn_map_intern(g->L, &m));
  return is == TARN_NONE ? is : tarn_fx_op(g->L, TARN_FX_SEL, is, f, none);
}

/* v over reads at this place; value: of hole 0 of an epilogue. */
static uint32_t placed(making *g, const rv *v, const fxwalk *w, const scope *s, place *p,
                       uint32_t value) {
  uint32_t with[K_READS + 1];
  for (uint32_t i = 0; i <= K_READS; i++) with[i] = TARN_NONE;
  for (uint32_t i = 0; i < w->n; i++) {
    const tarn_fx x = *tarn_fx_get(g->L, w->id[i]);
    if (x.op != TARN_FX_HOLE) continue;
    const tarn_read *r = loops_read_of(g->m, v->i, x.hole);
    with[x.hole] = r ? child_read(g, r, s, p) : value;
    if (with[x.hole] == TARN_NONE) return TARN_NONE;
  }
  return tarn_fx_subst(g->L, v->id, with, K_READS + 1);
}
/* v, all that a reduction goes over, for which what its reads give behind ends would be seen: they
 * give what adds nothing, if it is but a read; else v is chosen until the end. */
static uint32_t ended(making *g, const rv *v, const fxwalk *w, const scope *s, place *p) {
  const kstage *st = &g->m->k.stage[0];
  if (v->i != L_PART(0, true) || v->id != st->body || st->reducer == TARN_NONE) return TARN_NONE;
  uint32_t none = tarn_reducer_identity(g->L, st->reducer);
  if (none == TARN_NONE) return none;
  if (tarn_fx_get(g->L, v->id)->op == TARN_FX_HOLE) g->fill = none;
  bool filled = g->fill != TARN_NONE && may_end(g, v, w, s);
  if (!filled) g->fill = TARN_NONE;
  uint32_t f = placed(g, v, w, s, p, TARN_NONE);
  g->fill = TARN_NONE;
  return filled || f == TARN_NONE ? f : until_end(g, f, none, s, p);
}
/* What an expression variable stands for. */
static uint32_t any(making *g, uint32_t var, const scope *s, place *p, uint32_t value) {
  const rv *v = &g->e->attr[var];
  fxwalk w;
  if (v->id == TARN_NONE) return value;
  if (v->i == L_INNER)
    return p->k == &g->m->k ? loops_inlined(p->k, p->st, p->body, g->m->inner, g->m->map)
                            : TARN_NONE;
  if (p->k == &g->m->k) return v->id; /* in place */
  if (!loops_walk(g->e, v, &w)) return TARN_NONE;
  if (!p->body || may_end(g, v, &w, s)) return placed(g, v, &w, s, p, value);
  return reduced_ends(g, s) ? ended(g, v, &w, s, p) : TARN_NONE;
}

static uint32_t table(making *g, const lx *x, const scope *s, place *p) {
  const ltable *t = &g->e->rule->loops->table[x->op];
  tarn_tensor *v = tarn_tensor_new(tarn_lang_ctx(g->L), t->type, t->n, t->dim);
  tarn_imap m = {.n = (uint8_t)s->n, .ns = (uint8_t)s->n, .nin = (uint8_t)t->n, .fill = TARN_NONE};
  if (s->n > TARN_MAX_DIMS) return TARN_NONE;
  bool real = tarn_dtype_is_float(t->type);
  for (int64_t i = 0; i < tarn_tensor_count(v); i++)
    tarn_tensor_set(v, i, real ? (tarn_value){.d = t->v[i]} : (tarn_value){.i = (int64_t)t->v[i]});
  memcpy(m.dim, s->dim, s->n * sizeof *s->dim);
  for (uint32_t i = 0; i < t->n; i++) {
    int64_t end = 0;
    m.in[i] = t->dim[i], m.e[i] = index_at(g, x->ix[i], s, &end);
    if (m.e[i] == TARN_NONE || end || !in_range(g, m.e[i], s, m.in[i])) return TARN_NONE;
  }
  return add_child(p, constant(g, t->name, v), tarn_map_intern(g->L, &m));
}

/* ---------------------------------------------------------------- stages and kernels */

static bool has_fold(const lx *x) {
  if (x->kind == LX_FOLD) return true;
  if (x->kind != LX_OP && x->kind != LX_THEN && x->kind != LX_AT) return false;
  for (uint32_t i = 0; i < x->n; i++)
    if (has_fold(x->kid[i])) return true;
  return false;
}
/* The stage that computes x over the loops of s, as the last one of k. */
static bool add_stage(making *g, const lx *x, const scope *s, kern *k, const scope *shared) {
  kstage own = {.reducer = TARN_NONE, .epi = TARN_NONE, .body = TARN_NONE, .space = TARN_NONE};
  kstage *st = &own;
  place p = {k, shared, st, !has_fold(x)};
  if (s->n > TARN_MAX_DIMS) return false;
  st->nown = s->n - k->depth;
  memcpy(st->own, s->dim + k->depth, st->nown * sizeof *st->own);
  uint32_t f = make(g, x, s, &p);
  if (f == TARN_NONE || k->nstage == K_STAGES) return false;
  if (st->reducer == TARN_NONE) st->body = f;
  else if (f != tarn_fx_hole(g->L, 0)) st->epi = f;
  if (st->nb == 0) return false; /* a function has at least one operand */
  k->stage[k->nstage++] = *st;
  return true;
}
static bool stage_type(const kern *k, const kstage *st, tarn_dtype *t);
/* The type of f, whose holes from `first` on are these reads; hole 0 before them has the type *t.
 */
static bool typed(const kern *k, uint32_t f, const tarn_read *read, uint32_t n, uint32_t first,
                  tarn_dtype *t) {
  tarn_dtype hole[K_READS + 1] = {*t};
  for (uint32_t i = 0; i < n; i++) {
    if (!read[i].stage) hole[first + i] = kern_leaf_type(k, read[i].src)->dtype;
    else if (!stage_type(k, &k->stage[read[i].src], &hole[first + i])) return false;
  }
  return tarn_fx_type(k->L, f, hole, first + n, t);
}
static bool stage_type(const kern *k, const kstage *st, tarn_dtype *t) {
  if (st->reducer == TARN_NONE) return typed(k, st->body, st->read, st->nb, 0, t);
  *t = tarn_reducer_get(k->L, st->reducer)->dtype;
  return st->epi == TARN_NONE || typed(k, st->epi, st->read + st->nb, st->ne, 1, t);
}
static uint32_t fold(making *g, const lx *x, const scope *s, place *p) {
  scope in = *s;
  if (p->body || p->st->reducer != TARN_NONE || !add_list(g, &in, NULL, x) || in.n > TARN_MAX_DIMS)
    return TARN_NONE;
  p->st->nred = in.n - s->n;
  memcpy(p->st->red, in.dim + s->n, p->st->nred * sizeof *p->st->red);
  place q = {p->k, p->shared, p->st, true};
  tarn_dtype type = TARN_F32;
  p->st->body = make(g, x->kid[0], &in, &q);
  if (p->st->body == TARN_NONE || !typed(p->k, p->st->body, p->st->read, p->st->nb, 0, &type))
    return TARN_NONE;
  /* a sum of floats may be made of sums of integers, not the other way round */
  if (type != g->m->type && tarn_dtype_is_float(type)) return TARN_NONE;
  p->st->reducer = x->var == TARN_NONE ? tarn_reducer_of(g->L, (tarn_red_kind)x->op, type)
                                       : g->e->attr[x->var].id;
  return tarn_fx_hole(g->L, 0);
}

/* The kernel k of (for …) or (shared …); not yet stored. False: there is none. */
static bool kernel(making *g, const lx *x, result *r, kern *k) {
  scope s, shared;
  *k = (kern){.host = &g->e->host->nest, .L = g->L};
  no_loops(&s);
  r->n = 0;
  if (x->kind == LX_SHARED) {
    if (!add_list(g, &s, r, x) || s.n > TARN_MAX_DIMS) return false;
    k->depth = s.n;
    memcpy(k->shared, s.dim, s.n * sizeof *s.dim);
    x = x->kid[0];
  }
  shared = s;
  if (!add_list(g, &s, r, x) || !add_stage(g, x->kid[0], &s, k, &shared)) return false;
  kern_last(k)->out = true;
  k->out_ns = s.n;
  return true;
}
static uint32_t kernel_read(making *g, const lx *x, const scope *s, place *p) {
  result r;
  kern k;
  uint32_t id = kernel(g, x, &r, &k) ? kern_store(&k) : TARN_NONE;
  return id == TARN_NONE ? id : add_child(p, id, map_to(g, &r, s, type_of(g, id)));
}
static uint32_t stage_read(making *g, const lx *x, const scope *s, place *p) {
  scope in = *p->shared;
  result r = {0};
  if (!add_list(g, &in, &r, x) || !add_stage(g, x->kid[0], &in, p->k, p->shared)) return TARN_NONE;
  return add_read(
      p, (tarn_read){.stage = true, .src = p->k->nstage - 1, .map = map_to(g, &r, s, TARN_F32)});
}
/* A read of the left side, laid out over these loops. */
static uint32_t kept_read(making *g, const lx *x, const scope *s, place *p) {
  const kern_host *h = &g->e->host->nest;
  scope in;
  result r = {0};
  no_loops(&in);
  const tarn_read *of = x->kid[0]->kind == LX_ANY ? read_of(g, x->kid[0]->var) : NULL;
  if (!of || !add_list(g, &in, &r, x)) return TARN_NONE;
  uint32_t id = g->m->k.leaf[of->src], map = moved(g, of->map, &in, type_of(g, id));
  if (map == TARN_NONE) return map;
  id = h->mk(h->user, TARN_OP_VIEW, tarn_payload_of(g->L, TARN_P_MAP, map), &id, 1);
  if (id != TARN_NONE) id = h->mk(h->user, TARN_OP_MATERIALISE, 0, &id, 1);
  return id == TARN_NONE ? id : add_child(p, id, map_to(g, &r, s, type_of(g, id)));
}

/* A read through `map` of a tensor that is padded by its guards over the dims in `set` alone: the
 * map from the padded tensor to the tensor, and that from here to it. False: it pads in another
 * way. */
static bool split_padding(tarn_lang *L, uint32_t map, uint32_t set, uint32_t *pads,
                          uint32_t *view) {
  tarn_imap in = *tarn_imap_get(L, map), out = in, p = {.fill = in.fill};
  int64_t lo[TARN_MAX_DIMS], hi;
  p.n = p.ns = p.nin = in.nin, out.nguard = 0;
  for (uint32_t i = 0; i < in.nguard; i++)
    if (tarn_ix_dims(L, in.guard[i].e) & ~set) out.guard[out.nguard++] = in.guard[i];
  if (out.nguard == 0) out.fill = TARN_NONE;
  for (uint32_t a = 0; a < in.nin; a++) {
    tarn_ix_range(L, in.e[a], in.dim, &lo[a], &hi);
    bool along = (tarn_ix_dims(L, in.e[a]) & set) != 0;
    if (!along || lo[a] > 0) lo[a] = 0;
    if (!along || hi < in.in[a] - 1) hi = in.in[a] - 1;
    p.in[a] = in.in[a], p.dim[a] = out.in[a] = hi - lo[a] + 1;
    out.e[a] = tarn_ix_add(L, in.e[a], tarn_ix_const(L, -lo[a]), in.dim);
  }
  for (uint32_t a = 0; a < in.nin; a++) {
    p.e[a] = tarn_ix_add(L, tarn_ix_var(L, a, p.dim), tarn_ix_const(L, lo[a]), p.dim);
    if (p.dim[a] != p.in[a]) p.guard[p.nguard++] = (tarn_guard){p.e[a], 0, p.in[a]};
  }
  if (p.nguard == 0) return false;
  *pads = tarn_map_intern(L, &p), *view = tarn_map_intern_derived(L, &out);
  return tarn_map_compose(L, *view, *pads) == map;
}
/* A read of the left side, of a copy of its tensor that holds what lies beside it, too. */
static uint32_t padded(making *g, const lx *x, const scope *s, place *p) {
  const tarn_read *of = read_of(g, x->var);
  if (!of) return TARN_NONE;
  uint32_t id = g->m->k.leaf[of->src], map = moved(g, of->map, s, type_of(g, id)), pads, view,
           set = x->nloop ? 0 : UINT32_MAX;
  for (uint32_t i = 0; i < x->nloop; i++) {
    uint32_t ix = s->ix[loop_id(g, x->loop[i].var)];
    if (ix != TARN_NONE) set |= tarn_ix_dims(g->L, ix);
  }
  if (map == TARN_NONE || !split_padding(g->L, map, set, &pads, &view)) return TARN_NONE;
  return add_child(p, kern_of_tensor(&g->m->k, id, pads, tarn_fx_hole(g->L, 0)), view);
}
/* Of each element of the tensor that a read of the left side is of, and of what lies beside it. */
static uint32_t tensor_read(making *g, const lx *x, const scope *s, place *p) {
  const tarn_read *of = read_of(g, x->var);
  uint32_t f = of ? loops_in_place(g->e, x->kid[0]) : TARN_NONE, h0 = tarn_fx_hole(g->L, 0),
           with[K_READS + 1];
  if (f == TARN_NONE) return f;
  uint32_t id = g->m->k.leaf[of->src], map = moved(g, of->map, s, type_of(g, id));
  for (uint32_t i = 0; i <= K_READS; i++) with[i] = h0;
  f = tarn_fx_subst(g->L, f, with, K_READS + 1);
  const tarn_imap *m = map == TARN_NONE ? NULL : tarn_imap_get(g->L, map);
  if (m && m->nguard) {
    uint32_t fill = tarn_fx_subst(g->L, f, &m->fill, 1);
    if (tarn_fx_get(g->L, fill)->op != TARN_FX_CONST) return TARN_NONE;
    map = map_with_fill(g->L, map, fill);
  }
  return add_child(p, kern_of_tensor(&g->m->k, id, TARN_NONE, f), map);
}

/* ---------------------------------------------------------------- expressions */

/* Operands that the left side has the other way round stay so. */
static bool keeps_order(const making *g, const lx *x) {
  const lx *was = g->m->body;
  return g->m->swapped && x->op == was->op && x->kid[0]->kind == LX_ANY &&
         x->kid[0]->var == was->kid[0]->var;
}
static uint32_t operation(making *g, const lx *x, const scope *s, place *p) {
  uint32_t kid[3] = {0};
  if (keeps_order(g, x)) {
    if ((kid[0] = make(g, x->kid[1], s, p)) == TARN_NONE) return kid[0];
    if ((kid[1] = make(g, x->kid[0], s, p)) == TARN_NONE) return kid[1];
    return loops_op(g->e, x, kid);
  }
  for (uint32_t i = 0; i < x->n; i++)
    if ((kid[i] = make(g, x->kid[i], s, p)) == TARN_NONE) return TARN_NONE;
  return loops_op(g->e, x, kid);
}
/* TARN_NONE: it cannot be made. */
static uint32_t make(making *g, const lx *x, const scope *s, place *p) {
  scope in;
  uint32_t value;
  switch (x->kind) {
  case LX_ANY: return any(g, x->var, s, p, TARN_NONE);
  case LX_NUMBER: return loops_number(g->e, x);
  case LX_OP: return operation(g, x, s, p);
  case LX_FOLD: return fold(g, x, s, p);
  case LX_THEN:
    value = make(g, x->kid[0], s, p);
    return value == TARN_NONE ? value : any(g, x->var, s, p, value);
  case LX_AT: return substitute(g, x, s, &in) ? make(g, x->kid[0], &in, p) : TARN_NONE;
  case LX_FOR:
  case LX_SHARED: return kernel_read(g, x, s, p);
  case LX_STAGE: return stage_read(g, x, s, p);
  case LX_KEPT: return kept_read(g, x, s, p);
  case LX_PADDED: return padded(g, x, s, p);
  case LX_TENSOR: return tensor_read(g, x, s, p);
  case LX_BESIDE: in = *s, in.beside = x->kid[0]; return any(g, x->var, &in, p, TARN_NONE);
  case LX_TABLE: return table(g, x, s, p);
  }
  return TARN_NONE;
}

/* ---------------------------------------------------------------- the builder */

/* A tensor itself, seen as the left side reads it. */
static uint32_t seen(making *g, uint32_t var) {
  const kern_host *h = &g->e->host->nest;
  const tarn_read *r = read_of(g, var);
  if (!r) return TARN_NONE;
  uint32_t id = g->m->k.leaf[r->src], map = map_with_split(g->L, r->map, g->m->k.out_ns);
  if (tarn_map_is_identity(g->L, map) &&
      tarn_type_get(g->L, h->type(h->user, id))->ns == g->m->k.out_ns)
    return id;
  return seen_as(g->s, id, map);
}
/* The root's result: that of a kernel, at what its loops are in terms of the root's. */
static uint32_t root(making *g, const lx *x) {
  scope s, in;
  result r;
  if (x->kind == LX_ANY) return seen(g, x->var);
  no_loops(&s);
  for (uint32_t d = 0; d < g->m->k.stage[0].nown; d++)
    if (!add_loop(g, &s, NULL, d, g->m->dim[d])) return TARN_NONE;
  for (; x->kind == LX_AT; x = x->kid[0], s = in)
    if (!substitute(g, x, &s, &in)) return TARN_NONE;
  kern k;
  bool is = kernel(g, x, &r, &k);
  uint32_t map = is ? map_to(g, &r, &s, TARN_F32) : TARN_NONE, ns = g->m->k.out_ns;
  if (map == TARN_NONE) return map;
  if (r.n == s.n && tarn_map_is_identity(g->L, map)) return k.out_ns = ns, kern_store(&k);
  return seen_through(g->s, kern_store(&k), map, ns);
}
uint32_t loops_in_place(renv *e, const lx *x) {
  making g = {NULL, e, e->L, e->loops, TARN_NONE};
  lmatch *m = e->loops;
  place p = {&m->k, NULL, &m->k.stage[m->part / 2], m->part % 2 == 0};
  scope s;
  no_loops(&s);
  for (uint32_t d = 0; d < m->n; d++)
    if (!add_loop(&g, &s, NULL, d, m->dim[d])) return TARN_NONE;
  return make(&g, x, &s, &p);
}
static uint32_t build(rsite *s) {
  const rule *r = s->e->rule;
  making g = {s, s->e, s->e->L, s->e->loops, TARN_NONE};
  if (r->loops->inner) return loops_replace_inner(s, r);
  s->replaced = r->subsumes;
  return r->loops->anywhere ? loops_anywhere(s, r) : root(&g, r->loops->right);
}
const rbuild loops_builder = {.name = "loops", .build = build};

uint32_t seen_as(rsite *s, uint32_t id, uint32_t map) {
  const kern_host *h = &s->e->host->nest;
  return h->mk(h->user, TARN_OP_VIEW, tarn_payload_of(s->e->L, TARN_P_MAP, map), &id, 1);
}
uint32_t seen_through(rsite *s, uint32_t id, uint32_t map, uint32_t ns) {
  const rhost *h = s->e->host;
  tarn_lang *L = s->e->L;
  if (id == TARN_NONE) return id;
  map = map_with_split(L, map, ns);
  const tarn_type *t = tarn_type_get(L, h->nest.type(h->nest.user, id));
  if (tarn_map_is_identity(L, map) && t->ns == ns && tarn_imap_get(L, map)->n == t->n) return id;
  uint32_t view = seen_as(s, id, map);
  uint32_t inv = tarn_map_invert(L, map, t->ns);
  if (view == TARN_NONE || inv == TARN_NONE || s->nmore == 4) return view;
  /* the way back, so that kernels whose result is seen alike come into one class */
  uint32_t back = seen_as(s, view, inv);
  if (back == TARN_NONE) return view;
  s->more[2 * s->nmore] = back;
  s->more[2 * s->nmore++ + 1] = id;
  return view;
}
