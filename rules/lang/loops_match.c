/* Finds the ways in which a nest is the left side of a rule over loops.
 *
 * A list of loops is matched from the outer loop to the inner one, a row first with as few loops as
 * possible; operands of sums and products also the other way round. In an e-graph the first way
 * counts for which conditions and guards hold, so that a rule gives one right side for a nest. A
 * proof accepts any. */
#include "rules/lang/loops.h"
#include "rules/lang/site.h"
#include <string.h>

typedef struct matching {
  renv *e;
  const rule *r;
  r_choice_fn *fn;
  void *arg;
  bool done, stop; /* no further way is wanted; fn said so */
} matching;

/* ---------------------------------------------------------------- what expressions read */

const tarn_read *loops_read_of(const lmatch *m, int64_t part, uint32_t hole) {
  if (part == L_INNER) return &m->inner->stage[0].read[hole];
  const kstage *st = &m->k.stage[part / 2];
  if (part % 2 == 0) return hole == L_VALUE ? NULL : &st->read[hole];
  return hole == 0 ? NULL : &st->read[st->nb + hole - 1];
}
bool loops_walk(const renv *e, const rv *v, fxwalk *w) {
  return v->id != TARN_NONE && fx_walk(e->L, v->id, w);
}

/* ---------------------------------------------------------------- variables */

static bool bind(renv *e, uint32_t var, rv v) {
  rv *to = &e->attr[var];
  if (to->kind) return rv_equal(to, &v) && (v.kind != 'e' || to->i == v.i);
  *to = v;
  return true;
}

/* ---------------------------------------------------------------- expressions */

typedef struct goal { /* expressions that are still to be matched */
  const lx *x;
  uint32_t f;
  const struct goal *next;
} goal;
typedef struct fxmatch {
  renv *e;
  int64_t part;
  bool (*then)(void *arg); /* true: go on */
  void *arg;
} fxmatch;

static bool solve(fxmatch *m, const goal *g);

static bool solve_cast(fxmatch *m, const lx *x, const tarn_fx *y, const goal *next) {
  const goal g = {x->kid[0], y->kid[0], next};
  if (x->var == TARN_NONE) return x->type != y->dtype || solve(m, &g);
  rv *to = &m->e->attr[x->var], had = *to;
  bool more =
      !bind(m->e, x->var, (rv){.kind = 'y', .name = tarn_dtype_name(y->dtype)}) || solve(m, &g);
  *to = had;
  return more;
}
static bool solve_op(fxmatch *m, const lx *x, uint32_t f, const goal *next) {
  const tarn_fx y = *tarn_fx_get(m->e->L, f);
  if (y.op == TARN_FX_CAST) return solve_cast(m, x, &y, next);
  bool commutes =
      y.op == TARN_FX_ADD || y.op == TARN_FX_MUL || y.op == TARN_FX_MIN || y.op == TARN_FX_MAX;
  for (uint32_t way = 0; way < 1u + (commutes && y.kid[0] != y.kid[1]); way++) {
    goal g[3];
    for (uint32_t i = 0; i < x->n; i++)
      g[i] = (goal){x->kid[i], y.kid[way ? 1 - i : i], i + 1 < x->n ? &g[i + 1] : next};
    if (x == m->e->loops->body) m->e->loops->swapped = way;
    if (!solve(m, g)) return false;
  }
  return true;
}

static bool solve_node(fxmatch *m, const lx *x, uint32_t f, const goal *next) {
  if (tarn_fx_get(m->e->L, f)->op != x->op) return true;
  if (x->name == TARN_NONE) return solve_op(m, x, f, next);
  rv *to = &m->e->attr[x->name], had = *to;
  bool more =
      !bind(m->e, x->name, (rv){.kind = 'e', .id = f, .i = m->part}) || solve_op(m, x, f, next);
  *to = had;
  return more;
}

static bool is_number(const renv *e, const lx *x, uint32_t f) {
  const tarn_fx *y = tarn_fx_get(e->L, f);
  rv v = {0};
  if (y->op != TARN_FX_CONST) return false;
  if (x->counted && (!rx_eval((renv *)(uintptr_t)e, x->counted, &v))) return false;
  double is = tarn_dtype_is_float(y->dtype) ? y->value : (double)y->ivalue;
  return is == (x->counted ? (double)v.i : x->value);
}

/* False: no more is wanted. */
static bool solve(fxmatch *m, const goal *g) {
  if (!g) return m->then(m->arg);
  if (g->x->kind == LX_OP) return solve_node(m, g->x, g->f, g->next);
  if (g->x->kind == LX_NUMBER) return !is_number(m->e, g->x, g->f) || solve(m, g->next);
  if (g->x->kind == LX_FOLD) /* the result of the reduction, in its epilogue */
    return g->f != tarn_fx_hole(m->e->L, 0) || m->part % 2 == 0 || solve(m, g->next);
  if (g->x->kind != LX_ANY && g->x->kind != LX_THEN) return true;
  rv *to = &m->e->attr[g->x->var], had = *to;
  bool more =
      !bind(m->e, g->x->var, (rv){.kind = 'e', .id = g->f, .i = m->part}) || solve(m, g->next);
  *to = had;
  return more;
}

static void fx_match(renv *e, const lx *x, uint32_t f, int64_t part, bool (*then)(void *),
                     void *arg) {
  fxmatch m = {e, part, then, arg};
  const goal g = {x, f, NULL};
  solve(&m, &g);
}

/* ---------------------------------------------------------------- loops */

typedef struct lists { /* own loops, then those that are reduced */
  matching *m;
  const lx *body;
  const lx *of[2];
  uint32_t from[3];
} lists;

static bool has_earlier(renv *e, const rule *r);
static bool one_choice(void *arg, renv *e) {
  matching *m = arg;
  (void)e;
  if (m->e->host->graph) {
    if (!tarn_r_conditions(m->e, m->r, TARN_NONE) || !r_guards(m->e, m->r)) return true;
    if (m->r->first && !m->e->shape && has_earlier(m->e, m->r)) return true;
    m->done = true;
  }
  m->stop = !m->fn(m->arg, m->e);
  return !m->stop && !m->done;
}
static bool choose_late(void *arg) {
  matching *m = arg;
  return r_late_choices(m->e, m->r, 0, one_choice, m);
}

static bool match_list(lists *l, uint32_t which, uint32_t elem, uint32_t at);

static uint32_t mask(uint32_t from, uint32_t n) { return ((1u << n) - 1) << from; }

static bool match_extent(renv *e, const lloop *x, int64_t extent) {
  rv v;
  if (!x->extent) return true;
  if (x->extent->kind == RX_VAR) return bind(e, x->extent->var, (rv){.kind = 'i', .i = extent});
  return rx_eval(e, x->extent, &v) && v.i == extent;
}
static bool bind_loop(renv *e, const lmatch *m, const lloop *x, uint32_t at) {
  return match_extent(e, x, m->dim[at]) &&
         bind(e, x->var, (rv){.kind = 'o', .id = at, .i = 1 << at, .n = TARN_NONE});
}
/* Loops out of a row in any order, from number i on. */
static bool pick(lists *l, uint32_t which, uint32_t elem, uint32_t at, uint32_t n, uint32_t i) {
  renv *e = l->m->e;
  const lloop *x = &l->of[which]->loop[elem];
  rv saved[R_ATTRS];
  if (i == x->n) return match_list(l, which, elem + 1, at + n);
  for (uint32_t d = at; d < at + n; d++) {
    bool taken = false;
    for (uint32_t j = 0; j < i; j++) taken |= e->attr[x->kid[j].var].id == d;
    if (taken) continue;
    memcpy(saved, e->attr, sizeof saved);
    bool more = !bind_loop(e, e->loops, &x->kid[i], d) || pick(l, which, elem, at, n, i + 1);
    memcpy(e->attr, saved, sizeof saved);
    if (!more) return false;
  }
  return true;
}
static bool match_row(lists *l, uint32_t which, uint32_t elem, uint32_t at) {
  renv *e = l->m->e;
  const lx *x = l->of[which];
  const lloop *r = &x->loop[elem];
  uint32_t most = l->from[which + 1] - at;
  for (uint32_t n = elem + 1 == x->nloop ? most : 0; n <= most; n++) {
    rv had = e->attr[r->var];
    rv v = {.kind = 'o', .i = mask(at, n), .id = at, .n = n};
    bool more = !bind(e, r->var, v) || (r->kind == LL_OF ? pick(l, which, elem, at, n, 0)
                                                         : match_list(l, which, elem + 1, at + n));
    e->attr[r->var] = had;
    if (!more) return false;
  }
  return true;
}
static bool match_list(lists *l, uint32_t which, uint32_t elem, uint32_t at) {
  renv *e = l->m->e;
  const lx *x = l->of[which];
  rv saved[R_ATTRS];
  if (!x || elem == x->nloop) {
    if (at != l->from[which + 1]) return true;
    return which ? choose_late(l->m) : match_list(l, 1, 0, at);
  }
  if (x->loop[elem].kind != LL_LOOP) return match_row(l, which, elem, at);
  if (at == l->from[which + 1]) return true;
  memcpy(saved, e->attr, sizeof saved);
  bool more = !bind_loop(e, e->loops, &x->loop[elem], at) || match_list(l, which, elem + 1, at + 1);
  memcpy(e->attr, saved, sizeof saved);
  return more;
}
static bool match_lists(void *arg) {
  lists *l = arg;
  return match_list(l, 0, 0, 0);
}

/* ---------------------------------------------------------------- nests */

static bool load_nest(renv *e, kern *k, uint32_t node, const uint32_t *kid, uint32_t n) {
  return kern_load(k, &e->host->nest, tarn_payload_get(e->L, e->payload[node])->id, kid, n);
}
/* The view that node 1 is, as a map. */
static bool load_view(renv *e, kern *k) {
  uint32_t map = tarn_payload_get(e->L, e->payload[1])->id;
  const tarn_imap *m = tarn_imap_get(e->L, map);
  kstage *st = &k->stage[0];
  k->host = &e->host->nest, k->L = e->L, k->depth = 0, k->out_ns = m->ns, k->wide = false;
  k->nstage = k->nleaf = 1, k->leaf[0] = e->cls[0];
  *st = (kstage){.nown = m->n, .nb = 1, .body = tarn_fx_hole(e->L, 0), .out = true};
  st->reducer = st->epi = st->space = TARN_NONE;
  memcpy(st->own, m->dim, m->n * sizeof *st->own);
  st->read[0] = (tarn_read){.map = map};
  return true;
}
/* Node 0, and node 1 among its children: (nest ?*a (nest ?*b) ?*c) or (nest ?*a (view ?x) ?*c). */
static bool load_both(renv *e, lmatch *m) {
  bool view = e->rule->loops->view;
  const rseg *a = &e->seg[0], *b = &e->seg[1], *c = &e->seg[view ? 1 : 2];
  uint32_t kid[R_KIDS];
  if (a->n + 1 + c->n > R_KIDS) return false;
  if (!m->inner) m->inner = TARN_NEW(tarn_lang_ctx(e->L), kern);
  if (a->n) memcpy(kid, a->id, a->n * sizeof *kid);
  kid[a->n] = e->node[1];
  if (c->n) memcpy(kid + a->n + 1, c->id, c->n * sizeof *kid);
  if (!load_nest(e, &m->k, 0, kid, a->n + 1 + c->n)) return false;
  m->slot = leaf_at(&m->k, e->node[1]);
  if (m->slot == TARN_NONE) return false;
  if (view) return load_view(e, m->inner);
  return load_nest(e, m->inner, 1, b->id, b->n) && kern_is_map(m->inner);
}
static bool load(renv *e, lmatch *m) {
  const rseg *s = &e->seg[0];
  return e->rule->loops->inner ? load_both(e, m) : load_nest(e, &m->k, 0, s->id, s->n);
}

static bool match_reducer(renv *e, const lx *x, const kstage *st) {
  if (st->reducer == TARN_NONE) return false;
  const tarn_reducer *r = tarn_reducer_get(e->L, st->reducer);
  e->loops->type = r->dtype;
  if (x->var == TARN_NONE) return r->kind == (tarn_red_kind)x->op;
  return bind(e, x->var, (rv){.kind = 'r', .id = st->reducer});
}

const lx *loops_fold(const lx *x) {
  if (x->kind == LX_FOLD) return x;
  const lx *f = NULL;
  bool in = x->kind == LX_OP || x->kind == LX_THEN;
  for (uint32_t i = 0; in && i < x->n && !f; i++) f = loops_fold(x->kid[i]);
  return f;
}
/* (then ?h E) in what is reduced: tries each node as E, the inner ones first; ?h is the expression
 * around it. */
static void match_inside(lists *l, const lx *then) {
  renv *e = l->m->e;
  uint32_t body = e->loops->k.stage[0].body, value = tarn_fx_hole(e->L, L_VALUE);
  rv had = e->attr[then->var];
  fxwalk w;
  if (!fx_walk(e->L, body, &w)) return;
  for (uint32_t i = 0; i < w.n && !l->m->done && !l->m->stop; i++) {
    uint32_t at = w.id[i], h = fx_replace(e->L, body, &at, &value, 1);
    if (h == TARN_NONE) continue;
    e->attr[then->var] = (rv){.kind = 'e', .id = h == value ? TARN_NONE : h, .i = L_PART(0, true)};
    fx_match(e, then->kid[0], at, L_PART(0, true), match_lists, l);
  }
  e->attr[then->var] = had;
}
static bool match_body(void *arg) {
  lists *l = arg;
  const kstage *st = &l->m->e->loops->k.stage[0];
  if (l->body->kind == LX_THEN) match_inside(l, l->body);
  else fx_match(l->m->e, l->body, st->body, L_PART(0, true), match_lists, l);
  return !l->m->done && !l->m->stop;
}
/* (then ?g E), where E is more than the reduction: ?g is the epilogue around node i, which is E. */
static void match_around(lists *l, const lx *x, uint32_t var, uint32_t at) {
  renv *e = l->m->e;
  uint32_t epi = e->loops->k.stage[0].epi, value = tarn_fx_hole(e->L, 0),
           other = tarn_fx_hole(e->L, K_READS);
  uint32_t rest = fx_replace(e->L, epi, &at, &other, 1), g = fx_replace(e->L, epi, &at, &value, 1);
  if (rest == TARN_NONE || g == TARN_NONE || tarn_fx_uses(e->L, rest, 0)) return;
  e->attr[var] = (rv){.kind = 'e', .id = g == value ? TARN_NONE : g, .i = L_PART(0, false)};
  fx_match(e, x, at, L_PART(0, false), match_body, l);
}
/* The inner nodes first; of (then ?g (then ?h E)), which is any cut, those where ?h is longest. */
static void match_epilogue(lists *l, const lx *x, const lx *then) {
  renv *e = l->m->e;
  uint32_t epi = e->loops->k.stage[0].epi;
  bool any = x->kind == LX_THEN;
  fxwalk w;
  if (epi == TARN_NONE || !fx_walk(e->L, epi, &w)) return;
  if (!then) fx_match(e, x, epi, L_PART(0, false), match_body, l);
  for (uint32_t i = 0; then && i < w.n && !l->m->done && !l->m->stop; i++) {
    uint32_t at = w.id[any ? w.n - 1 - i : i];
    if (any || tarn_fx_get(e->L, at)->op == x->op) match_around(l, x, then->var, at);
  }
}
static void match_nest(matching *m, const lx *x) {
  renv *e = m->e;
  lmatch *w = e->loops;
  const kstage *st = &w->k.stage[0];
  const lx *then = x->kid[0]->kind == LX_THEN ? x->kid[0] : NULL,
           *in = then ? then->kid[0] : x->kid[0], *fold = loops_fold(in);
  lists l = {.m = m,
             .of = {x, fold},
             .from = {0, st->nown, st->nown + st->nred},
             .body = fold ? fold->kid[0] : in};
  if (!kern_single(&w->k) || w->k.depth || kern_outputs(&w->k) != 1) return;
  w->body = l.body, w->swapped = false;
  w->n = kern_dims(&w->k, st, true, w->dim);
  if (w->n > TARN_MAX_DIMS || (fold ? !match_reducer(e, fold, st) : st->reducer != TARN_NONE))
    return;
  if (fold && in != fold) {
    match_epilogue(&l, in, then);
    return;
  }
  if (then) bind(e, then->var, (rv){.kind = 'e', .id = st->epi, .i = L_PART(0, false)});
  else if (st->epi != TARN_NONE) return;
  match_body(&l);
}

/* Every expression of every stage, the inner ones first. */
static void match_anywhere(matching *m, const lx *x) {
  lmatch *w = m->e->loops;
  w->swapped = false;
  for (uint32_t i = 0; i < 2 * w->k.nstage && !m->stop && !m->done; i++) {
    w->n = kern_dims(&w->k, &w->k.stage[i / 2], i % 2 == 0, w->dim);
    for (uint32_t j = 0; !m->stop && !m->done; j++) {
      const lfacts *f = loops_walk_part(m->e, i); /* anew: in a proof other nests come between */
      if (!f || j >= f->w.n) break;
      w->part = i, w->at = f->w.id[j];
      if (x->kind != LX_ANY && tarn_fx_get(m->e->L, w->at)->op != x->op) continue;
      uint8_t type = loops_types(m->e, i)->type[j];
      w->type = (tarn_dtype)type;
      if (type != TARN_FX_UNTYPED) fx_match(m->e, x, w->at, i, choose_late, m);
    }
  }
}

/* ---------------------------------------------------------------- kernels that a nest reads */

void loops_at_read(lmatch *m, uint32_t stage, bool body, uint32_t number) {
  const kstage *st = &m->k.stage[stage];
  const tarn_read *r = &st->read[body ? number : st->nb + number];
  m->part = L_PART(stage, body), m->at = tarn_fx_hole(m->k.L, number + !body);
  m->map = r->map, m->type = kern_leaf_type(&m->k, m->slot)->dtype;
  m->n = kern_dims(&m->k, st, body, m->dim);
}
bool loops_bind_inner(renv *e, const rule *r) {
  lmatch *m = e->loops;
  const lx *x = r->loops->left;
  uint32_t at = 0;
  if (!slot_read(&m->k, m->slot, &at)) return false;
  const kstage *st = &m->k.stage[(at - 1) / K_READS];
  uint32_t number = (at - 1) % K_READS;
  bool body = number < st->nb;
  loops_at_read(m, (at - 1) / K_READS, body, body ? number : number - st->nb);
  if (x->nloop) e->attr[x->loop[0].var] = (rv){.kind = 'w'};
  e->attr[x->kid[0]->var] = (rv){.kind = 'e', .id = m->inner->stage[0].body, .i = L_INNER};
  if (x->name != TARN_NONE) e->attr[x->name] = (rv){.kind = 'e', .id = m->at, .i = m->part};
  return true;
}
/* Would an earlier child be taken? */
static bool is_taken(renv *e, const rule *r) {
  lmatch *m = e->loops;
  uint32_t id = m->k.leaf[m->slot], payload, n;
  const uint32_t *kid;
  return (e->host->facts(e->host->user, id) & R_HAS_MAP) &&
         kern_open(m->inner, &e->host->nest, id, K_LEAVES, kern_is_map, &payload, &kid, &n) &&
         loops_bind_inner(e, r) && tarn_r_conditions(e, r, TARN_NONE) && r_guards(e, r);
}
static bool has_earlier(renv *e, const rule *r) {
  lmatch *m = e->loops;
  uint32_t slot = m->slot;
  kern *was = m->inner;
  bool any = false;
  if (!m->earlier) m->earlier = TARN_NEW(tarn_lang_ctx(e->L), kern);
  m->inner = m->earlier;
  for (m->slot = 0; m->slot < slot && !any; m->slot += !any) any = is_taken(e, r);
  m->slot = slot, m->inner = was;
  loops_bind_inner(e, r);
  return any;
}
static void match_inner(matching *m) {
  m->e->loops->swapped = false;
  if (loops_bind_inner(m->e, m->r)) choose_late(m);
}

static bool ways(renv *e, const rule *r, r_choice_fn *fn, void *arg) {
  matching m = {.e = e, .r = r, .fn = fn, .arg = arg};
  loops_forget(e->loops);
  if (r->loops->inner) match_inner(&m);
  else if (r->loops->anywhere) match_anywhere(&m, r->loops->left);
  else match_nest(&m, r->loops->left);
  return m.stop;
}
void loops_ways(renv *e, const rule *r, r_choice_fn *fn, void *arg) { ways(e, r, fn, arg); }

bool loops_match(renv *e, const rule *r, r_choice_fn *fn, void *arg) {
  rv saved[R_ATTRS];
  if (!e->loops) {
    e->loops = TARN_NEW(tarn_lang_ctx(e->L), lmatch);
    e->loops->facts = TARN_ARRAY(tarn_lang_ctx(e->L), lfacts, 2);
  }
  if (!load(e, e->loops)) return false;
  e->loops->type = TARN_F32;
  memcpy(saved, e->attr, sizeof saved);
  bool stop = ways(e, r, fn, arg);
  memcpy(e->attr, saved, sizeof saved);
  return stop;
}
