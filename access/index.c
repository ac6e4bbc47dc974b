/* The text of index expressions, index maps and nests, both ways.
 *
 *   IX     3   d0   (+ IX…)   (* 4 IX)   (div IX 4)   (mod IX 4)
 *   MAP    (index ((S) (C)) (IN…) (IX…) [(fill VALUE (IX lo hi)…)])
 *   NEST   (stages (children N) (shared EXTENT…) (split NS) STAGE…)
 *   STAGE  (stage (own EXTENT…) (reduce EXTENT…) FN READ… [out] [(unit NAME)])
 *   READ   (child K MAP)   (stage K MAP)
 */
#include "access/internal.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- index expressions */
static void print_term(const tarn_lang *L, tarn_buf *b, const tarn_ixterm *t) {
  if (t->coef != 1) tarn_buf_fmt(b, "(* %" PRId64 " ", t->coef);
  if (t->kind == TARN_IX_VAR) tarn_buf_fmt(b, "d%u", t->arg);
  else {
    tarn_buf_str(b, t->kind == TARN_IX_DIV ? "(div " : "(mod ");
    tarn_ix_print(L, b, t->arg);
    tarn_buf_fmt(b, " %" PRId64 ")", t->by);
  }
  if (t->coef != 1) tarn_buf_str(b, ")");
}

void tarn_ix_print(const tarn_lang *L, tarn_buf *b, uint32_t ix) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  bool sum = x->n + (x->c != 0) > 1;
  if (sum) tarn_buf_str(b, "(+");
  for (uint32_t i = 0; i < x->n; i++) {
    if (sum) tarn_buf_str(b, " ");
    print_term(L, b, &x->t[i]);
  }
  if (x->n == 0 || x->c != 0) tarn_buf_fmt(b, "%s%" PRId64, sum ? " " : "", x->c);
  if (sum) tarn_buf_str(b, ")");
}

static uint32_t parse_dim(tarn_lang *L, const tarn_sx *s, const int64_t *extent, uint32_t n) {
  char *end = NULL;
  unsigned long i = n;
  if (s->kind == TARN_SX_ATOM && s->text[0] == 'd' && s->text[1] >= '0' && s->text[1] <= '9')
    i = strtoul(s->text + 1, &end, 10);
  if (!end || *end || i >= n)
    tarn_sx_error(L->cx, s, "an index (d0 … d%d, an integer, +, *, div, mod) is expected",
                  (int)n - 1);
  return tarn_ix_var(L, (uint32_t)i, extent);
}

static uint32_t read_ix(tarn_lang *L, const tarn_sx *s, const int64_t *extent, uint32_t n) {
  if (s->kind == TARN_SX_INT) return tarn_ix_const(L, s->i);
  if (tarn_sx_is(s, "+")) {
    uint32_t sum = tarn_ix_const(L, 0);
    for (uint32_t i = 1; i < s->n; i++)
      sum = tarn_ix_add(L, sum, read_ix(L, s->kid[i], extent, n), extent);
    return sum;
  }
  bool div = tarn_sx_is(s, "div"), mod = tarn_sx_is(s, "mod"), mul = tarn_sx_is(s, "*");
  if (!div && !mod && !mul) return parse_dim(L, s, extent, n);
  const tarn_sx *number = tarn_sx_at(L, s, mul ? 1 : 2, "an integer");
  int64_t k = tarn_int_parse(L, number);
  uint32_t e = read_ix(L, tarn_sx_at(L, s, mul ? 2 : 1, "an index"), extent, n);
  if (s->n != 3) tarn_sx_error(L->cx, s, "two parts are expected");
  if (mul) return tarn_ix_scale(L, e, k, extent);
  if (k <= 0) tarn_sx_error(L->cx, number, "a divisor must be positive");
  return div ? tarn_ix_div(L, e, k, extent) : tarn_ix_mod(L, e, k, extent);
}

/* ---------------------------------------------------------------- maps */
void tarn_imap_print(const tarn_lang *L, tarn_buf *b, uint32_t map) {
  const tarn_imap *m = tarn_imap_get(L, map);
  tarn_type view = {.ns = m->ns, .n = m->n};
  memcpy(view.dim, m->dim, m->n * sizeof *m->dim);
  tarn_buf_str(b, "(index ");
  tarn_shape_print(b, &view);
  tarn_buf_str(b, " ");
  tarn_ints_print(b, m->nin, m->in);
  tarn_buf_str(b, " (");
  for (uint32_t i = 0; i < m->nin; i++) {
    if (i) tarn_buf_str(b, " ");
    tarn_ix_print(L, b, m->e[i]);
  }
  tarn_buf_str(b, ")");
  if (m->nguard) {
    tarn_buf_str(b, " (fill ");
    tarn_fx_print(L, b, m->fill);
    for (uint32_t i = 0; i < m->nguard; i++) {
      tarn_buf_str(b, " (");
      tarn_ix_print(L, b, m->guard[i].e);
      tarn_buf_fmt(b, " %" PRId64 " %" PRId64 ")", m->guard[i].lo, m->guard[i].hi);
    }
    tarn_buf_str(b, ")");
  }
  tarn_buf_str(b, ")");
}

static void parse_fill(tarn_lang *L, const tarn_sx *s, tarn_imap *m) {
  if (!tarn_sx_is(s, "fill")) tarn_sx_error(L->cx, s, "(fill VALUE (INDEX lo hi)…) is expected");
  m->fill = tarn_fx_parse(L, tarn_sx_at(L, s, 1, "the fill value"), TARN_F32);
  if (tarn_fx_get(L, m->fill)->op != TARN_FX_CONST)
    tarn_sx_error(L->cx, s, "the fill value must be a constant");
  if (s->n < 3 || s->n - 2 > TARN_MAX_DIMS) tarn_sx_error(L->cx, s, "%u guards", s->n - 2);
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *g = s->kid[i];
    m->guard[m->nguard++] =
        (tarn_guard){.e = read_ix(L, tarn_sx_at(L, g, 0, "an index"), m->dim, m->n),
                     .lo = tarn_int_parse(L, tarn_sx_at(L, g, 1, "the lower bound")),
                     .hi = tarn_int_parse(L, tarn_sx_at(L, g, 2, "the upper bound"))};
  }
}

uint32_t tarn_imap_parse(tarn_lang *L, const tarn_sx *s) {
  if (!tarn_sx_is(s, "index") || s->n < 4 || s->n > 5)
    tarn_sx_error(L->cx, s, "(index ((S…) (C…)) (IN…) (INDEX…) [(fill …)]) is expected");
  uint32_t shape = tarn_type_parse(L, s->kid[1], TARN_F32);
  const tarn_type *t = tarn_type_get(L, shape);
  tarn_imap m = {.ns = t->ns, .n = t->n, .fill = TARN_NONE};
  memcpy(m.dim, t->dim, sizeof m.dim);
  m.nin = (uint8_t)tarn_ints_parse(L, s->kid[2], TARN_MAX_DIMS, m.in);
  const tarn_sx *e = s->kid[3];
  if (e->kind != TARN_SX_LIST || e->n != m.nin)
    tarn_sx_error(L->cx, e, "a list of %u indices is expected", m.nin);
  for (uint32_t i = 0; i < m.nin; i++) {
    if (m.in[i] < 0) tarn_sx_error(L->cx, s->kid[2], "negative extent");
    m.e[i] = read_ix(L, e->kid[i], m.dim, m.n);
  }
  if (s->n == 5) parse_fill(L, s->kid[4], &m);
  return tarn_map_intern(L, &m);
}

/* ---------------------------------------------------------------- nests */
static void print_extents(tarn_buf *b, const char *head, uint32_t n, const int64_t *v) {
  tarn_buf_fmt(b, " (%s", head);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, " %" PRId64, v[i]);
  tarn_buf_str(b, ")");
}

static void print_read(const tarn_lang *L, tarn_buf *b, const char *what, const tarn_read *r) {
  tarn_buf_fmt(b, " (%s %u ", what, r->src);
  tarn_imap_print(L, b, r->map);
  if (r->row.by)
    tarn_buf_fmt(b, " (row %u %" PRId64 " %" PRId64 ")", r->row.by - 1, r->row.pitch,
                 r->row.extent);
  tarn_buf_str(b, ")");
}

static void print_stage(const tarn_lang *L, tarn_buf *b, const tarn_stage *s) {
  tarn_buf_str(b, " (stage");
  print_extents(b, "own", s->nown, s->own);
  print_extents(b, "reduce", s->nred, s->red);
  tarn_buf_str(b, " ");
  tarn_fn_print(L, b, s->fn);
  uint32_t nread = tarn_stage_reads(L, s);
  for (uint32_t i = 0; i < nread; i++) {
    bool look = i >= nread - s->nlook;
    print_read(L, b, look ? "lookup" : s->read[i].stage ? "stage" : "child", &s->read[i]);
  }
  if (s->out) tarn_buf_str(b, " out");
  if (s->unit) tarn_buf_fmt(b, " (unit %s)", tarn_name_get(L, s->unit - 1));
  tarn_buf_str(b, ")");
}

void tarn_nest_print(const tarn_lang *L, tarn_buf *b, uint32_t nest) {
  const tarn_nest *n = tarn_nest_get(L, nest);
  tarn_buf_fmt(b, "(stages (children %u)", n->nchild);
  print_extents(b, "shared", n->depth, n->shared);
  tarn_buf_fmt(b, " (split %u)", n->out_ns);
  for (uint32_t i = 0; i < n->nstage; i++) print_stage(L, b, &n->stage[i]);
  tarn_buf_str(b, ")");
}

/* (head EXTENT…) as element i */
static uint8_t parse_extents(tarn_lang *L, const tarn_sx *s, uint32_t i, const char *head,
                             int64_t *out) {
  const tarn_sx *list = tarn_sx_at(L, s, i, head);
  if (!tarn_sx_is(list, head) || list->n > TARN_MAX_DIMS + 1)
    tarn_sx_error(L->cx, list, "(%s EXTENT…) is expected", head);
  for (uint32_t k = 1; k < list->n; k++) {
    out[k - 1] = tarn_int_parse(L, list->kid[k]);
    if (out[k - 1] < 0) tarn_sx_error(L->cx, list->kid[k], "negative extent");
  }
  return (uint8_t)(list->n - 1);
}

static uint32_t parse_number(tarn_lang *L, const tarn_sx *s, const char *head) {
  if (!tarn_sx_is(s, head) || s->n != 2 || s->kid[1]->kind != TARN_SX_INT || s->kid[1]->i < 0 ||
      s->kid[1]->i > UINT16_MAX)
    tarn_sx_error(L->cx, s, "(%s NUMBER) is expected", head);
  return (uint32_t)s->kid[1]->i;
}

static tarn_row parse_row(tarn_lang *L, const tarn_sx *s) {
  bool whole = tarn_sx_is(s, "row") && s->n == 4;
  for (uint32_t i = 1; whole && i < 4; i++) whole = s->kid[i]->kind == TARN_SX_INT;
  if (!whole || s->kid[1]->i < 0 || s->kid[1]->i >= UINT8_MAX)
    tarn_sx_error(L->cx, s, "(row LOOKUP PITCH EXTENT) is expected");
  return (tarn_row){(uint32_t)s->kid[1]->i + 1, s->kid[2]->i, s->kid[3]->i};
}

static tarn_read parse_read(tarn_lang *L, const tarn_sx *s) {
  bool stage = tarn_sx_is(s, "stage"), look = tarn_sx_is(s, "lookup");
  if ((!stage && !look && !tarn_sx_is(s, "child")) || s->n < 3 || s->n > 4 ||
      s->kid[1]->kind != TARN_SX_INT || s->kid[1]->i < 0 || s->kid[1]->i > UINT16_MAX)
    tarn_sx_error(L->cx, s, "(child K MAP), (stage K MAP) or (lookup K MAP) is expected");
  tarn_read r = {
      .stage = stage, .src = (uint32_t)s->kid[1]->i, .map = tarn_imap_parse(L, s->kid[2])};
  if (s->n == 4) r.row = parse_row(L, s->kid[3]);
  return r;
}

static uint32_t parse_unit(tarn_lang *L, const tarn_sx *s) {
  if (s->n != 2 || s->kid[1]->kind != TARN_SX_ATOM)
    tarn_sx_error(L->cx, s, "(unit NAME) is expected");
  return tarn_name_intern(L, s->kid[1]->text) + 1;
}

static tarn_stage parse_stage(tarn_lang *L, const tarn_sx *s) {
  tarn_stage st = {0};
  if (!tarn_sx_is(s, "stage")) tarn_sx_error(L->cx, s, "(stage …) is expected");
  st.nown = parse_extents(L, s, 1, "own", st.own);
  st.nred = parse_extents(L, s, 2, "reduce", st.red);
  st.fn = tarn_fn_parse(L, tarn_sx_at(L, s, 3, "the stage's function"));
  const tarn_func *f = tarn_fn_get(L, st.fn);
  uint32_t nread = (uint32_t)f->nops + f->nepi, i = 4;
  while (4 + nread + st.nlook < s->n && tarn_sx_is(s->kid[4 + nread + st.nlook], "lookup"))
    st.nlook++;
  tarn_read *read = TARN_ARRAY(L->cx, tarn_read, nread + st.nlook);
  for (; i < 4 + nread + st.nlook; i++) {
    const tarn_sx *x = tarn_sx_at(L, s, i, "an operand");
    if (i < 4 + nread && tarn_sx_is(x, "lookup")) tarn_sx_error(L->cx, x, "an operand is expected");
    read[i - 4] = parse_read(L, x);
  }
  st.read = read;
  st.out = i < s->n && tarn_sx_atom_is(s->kid[i], "out");
  i += st.out;
  if (i < s->n && tarn_sx_is(s->kid[i], "unit")) st.unit = parse_unit(L, s->kid[i++]);
  if (i < s->n) tarn_sx_error(L->cx, s->kid[i], "nothing more belongs here");
  return st;
}

uint32_t tarn_nest_parse(tarn_lang *L, const tarn_sx *s) {
  tarn_nest n = {0};
  if (!tarn_sx_is(s, "stages") || s->n < 5)
    tarn_sx_error(L->cx, s, "(stages (children N) (shared EXTENT…) (split NS) STAGE…) is expected");
  n.nchild = parse_number(L, s->kid[1], "children");
  n.depth = parse_extents(L, s, 2, "shared", n.shared);
  uint32_t split = parse_number(L, s->kid[3], "split");
  if (split > TARN_MAX_DIMS) tarn_sx_error(L->cx, s->kid[3], "the split is out of range");
  n.out_ns = (uint8_t)split;
  n.nstage = s->n - 4;
  tarn_stage *stage = TARN_ARRAY(L->cx, tarn_stage, n.nstage);
  for (uint32_t i = 0; i < n.nstage; i++) stage[i] = parse_stage(L, s->kid[i + 4]);
  n.stage = stage;
  return tarn_nest_intern(L, &n);
}
