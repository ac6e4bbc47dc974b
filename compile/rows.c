/* Is every row of the outputs made of the same row of the inputs alone, in the same way for every
 * number of rows?
 *
 * In kernel form a value either has no rows, or one of its dims counts them: row = index / per. A
 * nest has rows when all that it reads with rows is read in the row that it computes. To see that,
 * the dim is split into (row, place in the row) in all of its maps: nothing but the row of what is
 * read may depend on the row. What is left when the row is taken out is written down as a key, and
 * keys are interned: two numbers of rows compute the same when their outputs have equal keys. */
#include "compile/internal.h"
#include <string.h>

typedef struct value {
  bool rows;
  uint32_t dim; /* that counts them */
  int64_t per;  /* elements of that dim in a row */
  uint32_t key;
} value;
typedef struct analysis {
  tarn_ctx *cx;
  tarn_lang *L;
  comp_rows *r;
  const tarn_program *p;
  int64_t rows;
  tarn_map *seen; /* term to number of the value + 1 */
  TARN_VEC(value) value;
} analysis;
/* The iteration space of a nest's stage, or of a view. */
typedef struct space {
  uint32_t n;
  int64_t extent[TARN_MAX_DIMS + 1];
  bool rows;
  uint32_t dim;
  int64_t per;
} space;

_Noreturn static void not_rows(const analysis *a, const char *why) {
  tarn_raise(a->cx, TARN_BAD_INPUT, "%s", why);
}
static uint32_t key_of(analysis *a, const tarn_buf *b) {
  return tarn_intern_add(a->r->keys, b->p, b->n);
}

/* ---- index expressions ---- */
/* index / per of a source, over the dims of the space that reads it. */
static uint32_t row_read(const analysis *a, const tarn_imap *m, const value *v, const space *s) {
  return tarn_ix_div(a->L, m->e[v->dim], v->per, s->extent);
}
/* Which dim of the space is that the row of, and how many elements in each? */
static bool find_row(const analysis *a, uint32_t row, space *s) {
  uint32_t dims = tarn_ix_dims(a->L, row);
  if (!dims || dims & (dims - 1)) return false;
  uint32_t d = (uint32_t)__builtin_ctz(dims);
  if (!a->rows || s->extent[d] % a->rows) return false;
  int64_t per = s->extent[d] / a->rows;
  uint32_t var = tarn_ix_var(a->L, d, s->extent);
  if (per < 1 || tarn_ix_div(a->L, var, per, s->extent) != row) return false;
  s->rows = true;
  s->dim = d;
  s->per = per;
  return true;
}
/* e with the dim of the rows split: it counts places in a row, one more dim behind all counts rows.
 */
static uint32_t split(const analysis *a, uint32_t e, const space *s) {
  uint32_t sub[TARN_MAX_DIMS];
  int64_t extent[TARN_MAX_DIMS + 1];
  memcpy(extent, s->extent, sizeof extent);
  extent[s->dim] = s->per;
  extent[s->n] = a->rows;
  for (uint32_t i = 0; i < s->n; i++) sub[i] = tarn_ix_var(a->L, i, extent);
  uint32_t row = tarn_ix_scale(a->L, tarn_ix_var(a->L, s->n, extent), s->per, extent);
  sub[s->dim] = tarn_ix_add(a->L, row, sub[s->dim], extent);
  return tarn_ix_subst(a->L, e, sub, extent);
}
/* And it does not depend on the row. */
static uint32_t within_row(const analysis *a, uint32_t e, const space *s) {
  if (!s->rows) return e;
  uint32_t x = split(a, e, s);
  if (tarn_ix_dims(a->L, x) >> s->n & 1)
    not_rows(a, "what it reads depends on the number of a row");
  return x;
}
/* A read of a value with rows in a space with rows. */
static void key_row_read(const analysis *a, const tarn_imap *m, const value *v, const space *s,
                         tarn_buf *b) {
  if (!s->rows || row_read(a, m, v, s) !=
                      tarn_ix_div(a->L, tarn_ix_var(a->L, s->dim, s->extent), s->per, s->extent))
    not_rows(a, "it reads another row than the one it computes");
  for (uint32_t i = 0; i < m->nin; i++) {
    uint32_t e = i == v->dim ? tarn_ix_mod(a->L, m->e[i], v->per, s->extent) : m->e[i];
    tarn_buf_i64(b, within_row(a, e, s));
  }
}
static void key_read(const analysis *a, const tarn_imap *m, const value *v, const space *s,
                     tarn_buf *b) {
  tarn_buf_i64(b, v ? v->key : TARN_NONE);
  if (v && v->rows) key_row_read(a, m, v, s, b);
  else
    for (uint32_t i = 0; i < m->nin; i++) tarn_buf_i64(b, within_row(a, m->e[i], s));
  tarn_buf_i64(b, m->nguard);
  for (uint32_t g = 0; g < m->nguard; g++) {
    tarn_buf_i64(b, within_row(a, m->guard[g].e, s));
    tarn_buf_i64(b, m->guard[g].lo);
    tarn_buf_i64(b, m->guard[g].hi);
  }
  tarn_buf_i64(b, m->fill);
}
static void key_space(const space *s, tarn_buf *b) {
  tarn_buf_i64(b, s->n);
  tarn_buf_i64(b, s->rows ? s->dim : TARN_NONE);
  for (uint32_t i = 0; i < s->n; i++)
    tarn_buf_i64(b, s->rows && i == s->dim ? s->per : s->extent[i]);
}

/* ---- terms ---- */
static const value *value_of(const analysis *a, tarn_term t) {
  return &a->value.p[*tarn_map_get(a->seen, t) - 1];
}
static uint32_t reads_of(const analysis *a, const tarn_stage *st) {
  const tarn_func *f = tarn_fn_get(a->L, st->fn);
  return f->nops + f->nepi;
}
static space space_of(const analysis *a, const tarn_nest *n, const tarn_stage *st) {
  space s = {0};
  s.n = tarn_nest_dims(n, st, s.extent);
  if (s.n >= TARN_MAX_DIMS) not_rows(a, "it has too many dims");
  return s;
}
/* The rows that a stage computes, by the first read that has any. */
static void find_rows(const analysis *a, const tarn_node *x, const tarn_stage *st, space *s,
                      uint32_t outer) {
  for (uint32_t i = 0; i < reads_of(a, st); i++) {
    const tarn_read *r = &st->read[i];
    const value *v = r->stage ? NULL : value_of(a, x->kid[r->src]);
    if (!v || !v->rows) continue;
    uint32_t row = row_read(a, tarn_imap_get(a->L, r->map), v, s);
    if (!find_row(a, row, s)) not_rows(a, "its rows are not those of what it reads");
    if (s->dim >= outer) not_rows(a, "it reduces over rows");
    return;
  }
}
static void key_stage(const analysis *a, const tarn_node *x, const tarn_stage *st, const space *s,
                      tarn_buf *b) {
  key_space(s, b);
  tarn_buf_i64(b, st->nred);
  tarn_buf_i64(b, st->fn);
  tarn_buf_i64(b, st->out);
  for (uint32_t i = 0; i < reads_of(a, st); i++) {
    const tarn_read *r = &st->read[i];
    tarn_buf_i64(b, r->stage ? (int64_t)r->src : -1);
    key_read(a, tarn_imap_get(a->L, r->map), r->stage ? NULL : value_of(a, x->kid[r->src]), s, b);
  }
}
/* Several stages share the loop over rows, or one has rows. */
static value nest(analysis *a, const tarn_node *x) {
  const tarn_nest *n = tarn_nest_get(a->L, tarn_payload_get(a->L, x->payload)->id);
  tarn_buf b = {.cx = a->cx};
  value v = {0};
  if (tarn_nest_looks_up(n)) not_rows(a, "rows of lookups are not known");
  tarn_buf_i64(&b, x->op);
  tarn_buf_i64(&b, n->depth);
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *st = &n->stage[i];
    space s = space_of(a, n, st);
    find_rows(a, x, st, &s, s.n - st->nred);
    bool alone = n->nstage == 1;
    if (s.rows && !alone && s.dim >= n->depth) not_rows(a, "its stages do not share the rows");
    if (v.rows && s.rows && (s.dim != v.dim || s.per != v.per))
      not_rows(a, "its stages do not share the rows");
    if (s.rows) v = (value){true, s.dim, s.per, 0};
    if (!s.rows && v.rows) s.rows = true, s.dim = v.dim, s.per = v.per;
    key_stage(a, x, st, &s, &b);
  }
  v.key = key_of(a, &b);
  return v;
}
/* like: NULL, or which dim has rows where what it shows has none: it shows the same in each. */
static value view(analysis *a, const tarn_node *x, const value *like) {
  const tarn_imap *m = tarn_imap_get(a->L, tarn_payload_get(a->L, x->payload)->id);
  const value *of = value_of(a, x->kid[0]);
  tarn_buf b = {.cx = a->cx};
  space s = {.n = m->n};
  memcpy(s.extent, m->dim, m->n * sizeof *m->dim);
  if (s.n >= TARN_MAX_DIMS) not_rows(a, "it has too many dims");
  if (of->rows && !find_row(a, row_read(a, m, of, &s), &s))
    not_rows(a, "its rows are not those of what it reads");
  if (!of->rows && like) s.rows = true, s.dim = like->dim, s.per = like->per;
  tarn_buf_i64(&b, x->op);
  key_space(&s, &b);
  key_read(a, m, of, &s, &b);
  return (value){s.rows, s.dim, s.per, key_of(a, &b)};
}
static value input(analysis *a, tarn_term t) {
  for (uint32_t i = 0; i < a->p->nin; i++) {
    if (a->p->in[i].term != t) continue;
    tarn_buf b = {.cx = a->cx};
    tarn_buf_i64(&b, -1);
    tarn_buf_i64(&b, i);
    return (value){a->r->in[i] > 0, a->r->in[i] ? a->r->in[i] - 1u : 0, 1, key_of(a, &b)};
  }
  not_rows(a, "an input is not the model's");
}
/* Rows of indices are rows of what they name in a table. */
static value gathered(analysis *a, const tarn_node *x) {
  const value *table = value_of(a, x->kid[0]);
  value v = *value_of(a, x->kid[1]);
  tarn_buf b = {.cx = a->cx};
  if (table->rows) not_rows(a, "the table that it gathers from has rows");
  tarn_buf_i64(&b, x->op);
  tarn_buf_i64(&b, x->payload);
  tarn_buf_i64(&b, table->key);
  tarn_buf_i64(&b, v.key);
  v.dim += (uint32_t)tarn_payload_get(a->L, x->payload)->ints[0];
  v.key = key_of(a, &b);
  return v;
}
/* What is neither may have no rows. */
static value other(analysis *a, const tarn_node *x) {
  tarn_buf b = {.cx = a->cx};
  tarn_buf_i64(&b, x->op);
  tarn_buf_i64(&b, x->payload);
  for (uint32_t i = 0; i < x->n; i++) {
    const value *v = value_of(a, x->kid[i]);
    if (v->rows && x->op != TARN_OP_MATERIALISE)
      not_rows(a, tarn_format(a->cx, "rows of %s are not known", tarn_op_info(x->op)->text));
    tarn_buf_i64(&b, v->key);
  }
  value v = {0};
  if (x->op == TARN_OP_MATERIALISE) v = *value_of(a, x->kid[0]);
  v.key = key_of(a, &b);
  return v;
}
/* Parts side by side in each row; some may be the same in all. */
static value concatenated(analysis *a, const tarn_node *x) {
  int64_t axis = tarn_payload_get(a->L, x->payload)->ints[0];
  tarn_buf b = {.cx = a->cx};
  value v = {0};
  for (uint32_t i = 0; i < x->n && !v.rows; i++) v = *value_of(a, x->kid[i]);
  if (!v.rows || v.dim == axis) return other(a, x);
  tarn_buf_i64(&b, x->op);
  tarn_buf_i64(&b, axis);
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_node part = *tarn_term_get(a->L, x->kid[i]);
    value p = *value_of(a, x->kid[i]);
    if (!p.rows && part.op == TARN_OP_VIEW) p = view(a, &part, &v);
    if (!p.rows || p.dim != v.dim || p.per != v.per) not_rows(a, "its parts do not share the rows");
    tarn_buf_i64(&b, p.key);
  }
  v.key = key_of(a, &b);
  return v;
}
static value computed(analysis *a, tarn_term t) {
  const tarn_node x = *tarn_term_get(a->L, t);
  if (x.op == TARN_OP_INPUT) return input(a, t);
  if (x.op == TARN_OP_NEST) return nest(a, &x);
  if (x.op == TARN_OP_VIEW) return view(a, &x, NULL);
  if (x.op == TARN_OP_CONCAT) return concatenated(a, &x);
  if (x.op == TARN_OP_GATHER) return gathered(a, &x);
  return other(a, &x);
}
static void visit(analysis *a, tarn_term root) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(a->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node *x = tarn_term_get(a->L, t);
    uint32_t have = todo.n;
    for (uint32_t i = 0; i < x->n; i++)
      if (!tarn_map_get(a->seen, x->kid[i])) tarn_push(a->cx, &todo, x->kid[i]);
    if (todo.n > have) continue;
    todo.n--;
    if (tarn_map_get(a->seen, t)) continue;
    value v = computed(a, t);
    tarn_push(a->cx, &a->value, v);
    *tarn_map_at(a->seen, t, NULL) = a->value.n;
  }
}

/* ---- programs ---- */
typedef struct attempt {
  analysis *a;
  tarn_term term;
} attempt;
static void try_term(tarn_ctx *cx, void *arg) {
  attempt *x = arg;
  (void)cx;
  visit(x->a, tarn_kernel_form(x->a->L, x->term));
}
/* The first node of the model that has no such rows, for the message. */
static const tarn_origin *culprit(analysis *a) {
  for (uint32_t i = 0; i < a->p->norigin; i++) {
    attempt x = {a, a->p->origin[i].term};
    if (tarn_protect(a->cx, try_term, &x) != TARN_OK) return &a->p->origin[i];
  }
  return NULL;
}
/* Dims of 1 alone are before that one. */
static bool is_outermost(const tarn_type *t, uint32_t dim) {
  for (uint32_t d = 0; d < dim; d++)
    if (t->dim[d] != 1) return false;
  return true;
}
static uint8_t out_rows(analysis *a, uint32_t i) {
  attempt x = {a, a->p->out[i].term};
  tarn_status st = tarn_protect(a->cx, try_term, &x);
  if (st == TARN_BAD_INPUT) {
    const tarn_origin *o = culprit(a);
    const char *why = tarn_strdup(a->cx, tarn_message(a->cx));
    if (o) not_rows(a, tarn_format(a->cx, "node %s (%s): %s", o->node, o->op, why));
    not_rows(a, tarn_format(a->cx, "output %s: %s", a->p->out[i].name, why));
  }
  if (st != TARN_OK) tarn_reraise(a->cx, st);
  const value *v = value_of(a, tarn_kernel_form(a->L, a->p->out[i].term));
  if (v->rows && !is_outermost(tarn_type_get(a->L, a->p->out[i].type), v->dim))
    not_rows(a,
             tarn_format(a->cx, "output %s: its first dim does not count rows", a->p->out[i].name));
  tarn_push(a->cx, &a->r->found, v->key);
  return (uint8_t)(v->rows ? v->dim + 1 : 0);
}
/* An input has rows when its first dim is their number, and nothing else differs. */
static void check_inputs(const comp_rows *r, const tarn_program *p, int64_t rows) {
  for (uint32_t i = 0; i < p->nin; i++) {
    const tarn_type *t = tarn_type_get(p->L, p->in[i].type);
    const tarn_type *u = tarn_type_get(p->L, r->first->in[i].type);
    bool is = t->n == u->n;
    for (uint32_t d = 0; is && d < t->n; d++)
      is = d + 1 == r->in[i] ? t->dim[d] == rows : t->dim[d] == u->dim[d];
    if (!is)
      tarn_raise(tarn_lang_ctx(p->L), TARN_BAD_INPUT,
                 "input %s: the size is not that of its outermost dim alone", p->in[i].name);
  }
}
/* keys: of the outputs, as they were found at a first number of rows. */
static void compare(const comp_rows *r, tarn_ctx *cx, int64_t rows) {
  for (uint32_t i = 0; i < r->found.n; i++)
    if (r->found.p[i] != r->wanted.p[i])
      tarn_raise(cx, TARN_BAD_INPUT, "%lld rows are not computed as %lld are", (long long)rows,
                 (long long)r->compared_rows);
}
/* The first dim in which they differ, if it is outermost: 1 + that. */
static uint8_t differing_dim(const tarn_type *t, const tarn_type *u) {
  uint32_t d = 0;
  while (d < t->n && d < u->n && t->dim[d] == u->dim[d]) d++;
  return (uint8_t)(d < t->n && is_outermost(t, d) ? d + 1 : 0);
}
comp_rows *comp_rows_new(const tarn_program *one, const tarn_program *other) {
  tarn_ctx *cx = tarn_lang_ctx(one->L);
  comp_rows *r = TARN_NEW(cx, comp_rows);
  r->keys = tarn_intern_new(cx);
  r->first = one;
  r->nout = one->nout;
  r->in = TARN_ARRAY(cx, uint8_t, one->nin + 1);
  for (uint32_t i = 0; i < one->nin; i++)
    r->in[i] = differing_dim(tarn_type_get(one->L, one->in[i].type),
                             tarn_type_get(other->L, other->in[i].type));
  return r;
}
void comp_rows_see(comp_rows *r, const tarn_program *p, int64_t rows) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  analysis a = {.cx = cx, .L = p->L, .r = r, .p = p, .rows = rows, .seen = tarn_map_new(cx)};
  check_inputs(r, p, rows);
  r->found.n = 0;
  uint8_t *out = TARN_ARRAY(cx, uint8_t, p->nout + 1);
  for (uint32_t i = 0; i < p->nout; i++) out[i] = out_rows(&a, i);
  if (!r->out) {
    r->out = out;
    r->compared_rows = rows;
    for (uint32_t i = 0; i < r->found.n; i++) tarn_push(cx, &r->wanted, r->found.p[i]);
  }
  compare(r, cx, rows);
}
