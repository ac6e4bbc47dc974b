/* Tensor comprehensions: each statement as a term, a definition as a program. */
#include "model/tc.h"
#include <string.h>

static const char *const assigns[] = {"=", "+=", "-=", "*=", "max=", "min="};

/* ---------------------------------------------------------------- what may be written */

static bool is_left(const tc_run *r, const char *name) { return !strcmp(name, r->stmt->left.name); }

/* The first index that only the right side has; NULL: none. */
static const tc_index *reduced(const tc_run *r) {
  return r->nindex > r->stmt->nindex ? &r->index[r->stmt->nindex] : NULL;
}

static bool at_left_indices(const tc_run *r, const tc_expr *e) {
  bool same = e->n == r->stmt->nindex;
  for (uint32_t i = 0; same && i < e->n; i++)
    same = e->kid[i]->kind == TC_NAME && !strcmp(e->kid[i]->name, r->stmt->index[i].name);
  return same;
}

/* What a statement writes it may read only where it writes. */
static void check_self_reads(const tc_run *r, const tc_expr *e) {
  const char *name = r->stmt->left.name;
  bool reads = (e->kind == TC_APPLY || e->kind == TC_NAME) && is_left(r, e->name);
  if (reads && reduced(r))
    tc_bad(
        r->text, e->at,
        "%s is read while it is partly written, by the sums over %s; --allow-copies reads a copy "
        "of what it was",
        name, reduced(r)->name);
  if (reads && !at_left_indices(r, e))
    tc_bad(r->text, e->at,
           "%s is read at other places than are written: elements would be read before and after "
           "they are; --allow-copies reads a copy of what it was",
           name);
  for (uint32_t i = 0; i < e->n; i++) check_self_reads(r, e->kid[i]);
}

static void check_statement(tc_run *r) {
  const tc_stmt *s = r->stmt;
  const tc_var *v = tc_find(r, s->left.name);
  bool exists = v && v->t != TARN_NONE;
  if (v && v->what == TC_SIZE)
    tc_bad(r->text, s->left.at, "%s is a size, not a tensor", s->left.name);
  if (tc_index_of(r, s->left.name))
    tc_bad(r->text, tc_index_of(r, s->left.name)->at,
           "%s has no value before this statement: it may not be read here", s->left.name);
  if (s->how != TC_SET && !s->fresh && !exists)
    tc_bad(r->text, s->how_at, "%s has no value yet that %s could begin with; %s! begins anew",
           s->left.name, assigns[s->how], assigns[s->how]);
  if (s->how == TC_SET && reduced(r))
    tc_bad(r->text, reduced(r)->at,
           "%s stands on the right side only, and = does not say how to reduce over it; +=! does",
           reduced(r)->name);
  if (exists && !r->options->allow_copies) check_self_reads(r, s->value);
}

/* ---------------------------------------------------------------- parts of a tensor */

typedef struct region {
  uint32_t n;
  int64_t lo[TARN_MAX_DIMS], hi[TARN_MAX_DIMS];
} region;

static region written(const tc_run *r) {
  region g = {.n = r->stmt->nindex};
  for (uint32_t d = 0; d < g.n; d++) g.lo[d] = r->index[d].lo, g.hi[d] = r->index[d].hi;
  return g;
}

static tarn_term cut(tarn_lang *L, tarn_term t, uint32_t d, int64_t lo, int64_t hi) {
  bool whole = lo == 0 && hi == tarn_term_type(L, t)->dim[d];
  return whole ? t : tarn_slice(L, d, lo, hi, 1, t);
}

static tarn_term cut_to(tarn_lang *L, tarn_term t, const region *g, uint32_t n) {
  for (uint32_t d = 0; d < n; d++) t = cut(L, t, d, g->lo[d], g->hi[d]);
  return t;
}

/* The old value with its region replaced: slabs before and behind it, from the last dim on. */
static tarn_term patched(tarn_lang *L, tarn_term old, tarn_term now, const region *g) {
  for (uint32_t d = g->n; d-- > 0;) {
    tarn_term slab = cut_to(L, old, g, d), part[3];
    int64_t end = tarn_term_type(L, old)->dim[d];
    uint32_t n = 0;
    if (g->lo[d] > 0) part[n++] = cut(L, slab, d, 0, g->lo[d]);
    part[n++] = now;
    if (g->hi[d] < end) part[n++] = cut(L, slab, d, g->hi[d], end);
    if (n > 1) now = tarn_concat(L, d, part, n);
  }
  return now;
}

/* ---------------------------------------------------------------- statements */

static const struct {
  tarn_fxop op;
  tarn_red_kind kind;
} reductions[] = {[TC_SET] = {TARN_FX_ADD, TARN_RED_NONE}, [TC_SUM] = {TARN_FX_ADD, TARN_RED_SUM},
                  [TC_LESS] = {TARN_FX_SUB, TARN_RED_SUM}, [TC_PROD] = {TARN_FX_MUL, TARN_RED_PROD},
                  [TC_MAX] = {TARN_FX_MAX, TARN_RED_MAX},  [TC_MIN] = {TARN_FX_MIN, TARN_RED_MIN}};

static uint32_t fx2(tarn_lang *L, tarn_fxop op, uint32_t a, uint32_t b) {
  return tarn_fx_op(L, op, a, b, TARN_NONE);
}

/* Element by element; old: TARN_NONE, or what was there. */
static tarn_term mapped(tc_run *r, tc_body *b, tarn_term old) {
  tarn_lang *L = r->L;
  tc_assign how = r->stmt->how;
  if (old != TARN_NONE) {
    uint32_t was = tc_operand(r, b, old);
    b->fx = fx2(L, reductions[how].op, was, b->fx);
  } else if (how == TC_LESS) {
    b->fx = fx2(L, TARN_FX_SUB, tarn_fx_zero(L, b->type), b->fx);
  }
  if (!b->operand.n) tc_operand(r, b, tarn_scalar(L, TARN_F32, 0));
  return tarn_compute(L, tarn_fn_map(L, b->fx, b->operand.n), b->operand.p, b->operand.n);
}

static tarn_term over_reduced(tc_run *r, tc_body *b, tarn_term old) {
  tarn_lang *L = r->L;
  tc_assign how = r->stmt->how;
  uint32_t sum = tarn_fx_hole(L, 0), epi = TARN_NONE;
  if (!b->operand.n) tc_operand(r, b, tarn_scalar(L, TARN_F32, 0));
  tarn_func f = {.nops = (uint8_t)b->operand.n, .body = b->fx};
  f.red = tarn_reducer_of(L, reductions[how].kind, b->type);
  if (old != TARN_NONE) epi = fx2(L, reductions[how].op, tarn_fx_hole(L, 1), sum);
  else if (how == TC_LESS) epi = fx2(L, TARN_FX_SUB, tarn_fx_zero(L, b->type), sum);
  f.epi = epi;
  f.nepi = old != TARN_NONE;
  if (old != TARN_NONE) tarn_push(r->cx, &b->operand, old);
  return tarn_compute(L, tarn_fn_intern(L, &f), b->operand.p, b->operand.n);
}

static void check_starts(const tc_run *r) {
  for (uint32_t d = 0; d < r->stmt->nindex; d++)
    if (r->index[d].lo != 0)
      tc_bad(r->text, r->index[d].at,
             "%s begins at %lld, so that elements of %s before it would have no value",
             r->index[d].name, (long long)r->index[d].lo, r->stmt->left.name);
}

/* Sums need numbers; a tensor that has a value keeps its type. */
static void settle_type(tc_run *r, tc_body *b, const tc_var *v) {
  tc_assign how = r->stmt->how;
  bool counts = how == TC_SUM || how == TC_LESS || how == TC_PROD;
  if (v && v->t != TARN_NONE) tc_cast(r, b, tarn_term_type(r->L, v->t)->dtype);
  else if (counts && b->type == TARN_BOOL) tc_cast(r, b, TARN_I32);
  if (counts && b->type == TARN_BOOL)
    tc_bad(r->text, r->stmt->how_at, "%s of truth values", assigns[how]);
}

static void write_left(tc_run *r, tarn_term t) {
  tc_var *v = tc_find(r, r->stmt->left.name);
  if (!v) {
    tarn_push(r->cx, &r->var, ((tc_var){.name = r->stmt->left.name}));
    v = &r->var.p[r->var.n - 1];
  }
  v->what = TC_TENSOR;
  v->known = false;
  v->t = t;
  tarn_origin o = {t, v->name, assigns[r->stmt->how]};
  tarn_push(r->cx, &r->origin, o);
}

static void run_statement(tc_run *r, const tc_stmt *s) {
  r->stmt = s;
  tc_indices(r);
  check_statement(r);
  tc_ranges(r);
  const tc_var *v = tc_find(r, s->left.name);
  tarn_term was = v ? v->t : TARN_NONE;
  region g = written(r);
  if (was == TARN_NONE) check_starts(r);
  tc_body b = tc_value(r, s->value);
  settle_type(r, &b, v);
  bool adds = s->how != TC_SET && !s->fresh;
  tarn_term old = adds ? cut_to(r->L, was, &g, g.n) : TARN_NONE;
  tarn_term t = reduced(r) ? over_reduced(r, &b, old) : mapped(r, &b, old);
  write_left(r, was == TARN_NONE ? t : patched(r->L, was, t, &g));
}

/* ---------------------------------------------------------------- programs */

const tc_def *tc_chosen(const tc_text *t, const char *name) {
  for (uint32_t i = 0; i < t->n; i++)
    if (name && tarn_is_called(t->cx, name, t->def[i].of.name)) return &t->def[i];
  if (name) tarn_raise(t->cx, TARN_BAD_INPUT, "%s: --def %s: it is not defined", t->file, name);
  if (t->n > 1)
    tarn_raise(t->cx, TARN_BAD_INPUT, "%s: %u definitions: --def NAME says which one, %s for one",
               t->file, t->n, t->def[0].of.name);
  return &t->def[0];
}

static tarn_io result(const tc_run *r, uint32_t i) {
  const tc_name *x = &r->def->result[i];
  const tc_var *v = tc_find(r, x->name);
  if (!v || v->t == TARN_NONE)
    tc_bad(r->text, x->at, "no statement gives the result %s a value", x->name);
  for (uint32_t k = 0; k < i; k++)
    if (!strcmp(r->def->result[k].name, x->name))
      tc_bad(r->text, x->at, "%s is a result twice", x->name);
  return (tarn_io){x->name, v->t, tarn_term_get(r->L, v->t)->type};
}

static tarn_program *program_of(tc_run *r) {
  tarn_program *p = TARN_NEW(r->cx, tarn_program);
  p->L = r->L;
  p->nin = r->in.n;
  p->in = r->in.p;
  p->nout = r->def->nresult;
  p->out = TARN_ARRAY(r->cx, tarn_io, p->nout);
  for (uint32_t i = 0; i < p->nout; i++) p->out[i] = result(r, i);
  p->norigin = r->origin.n;
  p->origin = r->origin.p;
  return p;
}

/* Does the number of the scalar stand where one is needed to compile: in a subscript, an extent? */
static bool in_subscript(const tc_expr *e, const char *name, bool inside) {
  if (inside && e->kind == TC_NAME && !strcmp(e->name, name)) return true;
  bool is = false;
  inside = inside || (e->kind == TC_APPLY && !tc_is_function(e->name));
  for (uint32_t i = 0; !is && i < e->n; i++) is = in_subscript(e->kid[i], name, inside);
  return is;
}
static bool statement_fixes(const tc_stmt *s, const char *name) {
  bool is = in_subscript(s->value, name, false);
  for (uint32_t i = 0; !is && i < s->nwhere; i++) {
    const tc_where *w = &s->where[i];
    is = in_subscript(w->lo, name, w->name != NULL) || (w->hi && in_subscript(w->hi, name, true));
  }
  return is;
}
static bool fixed(const tc_def *d, const char *name) {
  bool is = false;
  for (uint32_t i = 0; !is && i < d->nstmt; i++) is = statement_fixes(&d->stmt[i], name);
  for (uint32_t i = 0; i < d->nparam; i++)
    for (uint32_t k = 0; !is && k < d->param[i].n; k++)
      is = in_subscript(d->param[i].extent[k], name, true);
  return is;
}
tarn_signature tarn_comprehension_signature(tarn_ctx *cx, const char *text, size_t n,
                                            const char *name, const char *def) {
  const tc_def *d = tc_chosen(tc_read(cx, text, n, name), def);
  tarn_parameter *param = TARN_ARRAY(cx, tarn_parameter, d->nparam + 1);
  const char **result = TARN_ARRAY(cx, const char *, d->nresult + 1);
  for (uint32_t i = 0; i < d->nparam; i++) {
    const tc_param *p = &d->param[i];
    param[i] = (tarn_parameter){p->of.name, p->type, p->n, !p->n && fixed(d, p->of.name)};
  }
  for (uint32_t i = 0; i < d->nresult; i++) result[i] = d->result[i].name;
  return (tarn_signature){d->of.name, d->nparam, d->nresult, param, result};
}

tarn_program *tarn_comprehension(tarn_lang *L, const char *text, size_t n, const char *name,
                                 const tarn_model_options *options, tarn_model_report *report) {
  static const tarn_model_options none = {0};
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tc_text *t = tc_read(cx, text, n, name);
  tc_run r = {.text = t, .cx = cx, .L = L, .options = options ? options : &none};
  r.def = tc_chosen(t, r.options->def);
  im_refuse_twice(cx, t->file, r.options);
  tc_bind(&r);
  for (uint32_t i = 0; i < r.def->nstmt; i++) run_statement(&r, &r.def->stmt[i]);
  tarn_program *p = program_of(&r);
  im_set_inputs(p, t->file, r.options);
  if (report) *report = (tarn_model_report){.format = "tc", .producer = "", .nnode = r.def->nstmt};
  return p;
}
