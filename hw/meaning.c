/* What an intrinsic means: its text read as a term, checked against its operands, and made known to
 * the term language. */
#include "hw/internal.h"
#include <string.h>

typedef struct reading {
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_hw_intrinsic *n;
  uint32_t used; /* bit set of operands */
} reading;

static tarn_sx *atom(reading *r, const tarn_sx *at, tarn_sx_kind kind, const char *text,
                     int64_t i) {
  tarn_sx *s = tarn_copy(r->cx, at, sizeof *at);
  *s = (tarn_sx){.kind = kind,
                 .line = at->line,
                 .col = at->col,
                 .file = at->file,
                 .text = text,
                 .len = strlen(text),
                 .i = i,
                 .r = (double)i};
  return s;
}
static tarn_sx *list(reading *r, const tarn_sx *at, uint32_t n, tarn_sx *const *kid) {
  tarn_sx *s = atom(r, at, TARN_SX_LIST, "", 0);
  s->kid = tarn_copy(r->cx, kid, n * sizeof *kid);
  s->n = n;
  return s;
}

/* (input NAME ((dims) ()) TYPE), standing where ?NAME stood. */
static tarn_sx *input(reading *r, const tarn_sx *at, const tarn_hw_operand *o) {
  tarn_sx *dim[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < o->n; i++)
    dim[i] = atom(r, at, TARN_SX_INT, tarn_format(r->cx, "%lld", (long long)o->dim[i]), o->dim[i]);
  tarn_sx *sides[] = {list(r, at, o->n, dim), list(r, at, 0, NULL)};
  tarn_sx *all[] = {atom(r, at, TARN_SX_ATOM, "input", 0), atom(r, at, TARN_SX_STRING, o->name, 0),
                    list(r, at, 2, sides), atom(r, at, TARN_SX_ATOM, tarn_dtype_name(o->dtype), 0)};
  return list(r, at, 4, all);
}

static tarn_sx *replaced(reading *r, const tarn_sx *s) {
  if (tarn_sx_is(s, "input") || tarn_sx_is(s, "opaque"))
    tarn_sx_error(r->cx, s, "intrinsic %s: a meaning is made of its operands (?NAME) alone",
                  r->n->name);
  if (s->kind == TARN_SX_LIST) {
    tarn_sx *t = list(r, s, s->n, s->kid);
    for (uint32_t i = 0; i < s->n; i++) t->kid[i] = replaced(r, s->kid[i]);
    return t;
  }
  if (s->kind != TARN_SX_ATOM || s->text[0] != '?') return tarn_copy(r->cx, s, sizeof *s);
  for (uint32_t i = 0; i < r->n->nop; i++) {
    if (strcmp(s->text + 1, r->n->op[i].name)) continue;
    r->used |= 1u << i;
    return input(r, s, &r->n->op[i]);
  }
  tarn_sx_error(r->cx, s, "intrinsic %s: %s is no operand of it", r->n->name, s->text);
}

static void check_operands(reading *r) {
  const tarn_hw_intrinsic *n = r->n;
  if (n->nop > 16) tarn_sx_error(r->cx, n->source, "intrinsic %s: more than 16 operands", n->name);
  for (uint32_t i = 0; i < n->nop; i++)
    for (uint32_t k = 0; k < i; k++)
      if (!strcmp(n->op[i].name, n->op[k].name))
        tarn_sx_error(r->cx, n->source, "intrinsic %s: operand %s is given twice", n->name,
                      n->op[i].name);
}

static void check_result(reading *r, tarn_term t) {
  const tarn_hw_operand *y = &r->n->op[r->n->nop - 1];
  const tarn_type *x = tarn_term_type(r->L, t);
  if (!x->tuple && x->dtype == y->dtype && x->n == y->n &&
      !memcmp(x->dim, y->dim, y->n * sizeof *y->dim))
    return;
  tarn_buf b = {.cx = r->cx};
  tarn_type_print(r->L, &b, tarn_term_get(r->L, t)->type);
  tarn_buf_fmt(&b, ", the result %s is %s (", y->name, tarn_dtype_name(y->dtype));
  for (uint32_t i = 0; i < y->n; i++)
    tarn_buf_fmt(&b, "%s%lld", i ? " " : "", (long long)y->dim[i]);
  tarn_sx_error(r->cx, r->n->meaning, "intrinsic %s: the meaning is %s)", r->n->name, b.p);
}

typedef struct defining {
  tarn_lang *L;
  const tarn_call_def *d;
} defining;
static void define(tarn_ctx *cx, void *arg) {
  defining *d = arg;
  (void)cx;
  tarn_call_define(d->L, d->d);
}

/* What definitions refuse is told without a place. */
static void define_at(reading *r, const tarn_call_def *d) {
  defining arg = {r->L, d};
  tarn_status st = tarn_protect(r->cx, define, &arg);
  if (st == TARN_BAD_INPUT)
    tarn_sx_error(r->cx, r->n->meaning, "%s", tarn_strdup(r->cx, tarn_message(r->cx)));
  if (st) tarn_reraise(r->cx, st);
}

tarn_hw_meaning tarn_hw_meaning_of(tarn_lang *L, const tarn_hw *hw, uint32_t intrinsic) {
  reading r = {.L = L, .cx = tarn_lang_ctx(L), .n = &hw->intrin[intrinsic]};
  const tarn_hw_intrinsic *n = r.n;
  check_operands(&r);
  tarn_hw_meaning m = {.call = tarn_format(r.cx, "%s.%s", hw->name, n->name)};
  m.term = tarn_term_parse(L, replaced(&r, n->meaning));
  m.acc = r.used >> (n->nop - 1);
  m.nin = n->nop - !m.acc;
  for (uint32_t i = 0; i < m.nin; i++)
    if (!(r.used >> i & 1))
      tarn_sx_error(r.cx, n->meaning, "intrinsic %s: the meaning does not read operand %s", n->name,
                    n->op[i].name);
  check_result(&r, m.term);
  tarn_term *in = TARN_ARRAY(r.cx, tarn_term, m.nin);
  for (uint32_t i = 0; i < m.nin; i++)
    in[i] = tarn_input(L, n->op[i].name,
                       tarn_type_tensor(L, n->op[i].dtype, n->op[i].n, n->op[i].n, n->op[i].dim));
  m.in = in;
  for (uint32_t i = 0; i < m.nin; i++) m.immediate |= (uint32_t)n->op[i].immediate << i;
  tarn_hw_form f;
  tarn_call_def d = {
      .name = m.call, .nin = m.nin, .in = in, .meaning = m.term, .acc = m.acc, .start = TARN_NONE};
  if (m.acc && tarn_hw_form_of(L, &m, &f) && f.chains) d.start = tarn_reducer_identity(L, f.red);
  define_at(&r, &d);
  return m;
}

bool tarn_hw_wants_products(tarn_lang *L, const tarn_hw *hw) {
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    tarn_hw_form f;
    tarn_hw_meaning m = tarn_hw_meaning_of(L, hw, i);
    if (!tarn_hw_form_of(L, &m, &f)) continue;
    uint32_t h0 = tarn_fx_hole(L, 0), h1 = tarn_fx_hole(L, 1), h2 = tarn_fx_hole(L, 2);
    uint32_t fma = tarn_fx_op(L, TARN_FX_ADD, h2, tarn_fx_op(L, TARN_FX_MUL, h0, h1, 0), 0);
    if (f.product || (m.acc && f.body == fma)) return true;
  }
  return false;
}

static bool has_op(const tarn_lang *L, uint32_t f, tarn_fxop op) {
  const tarn_fx *x = tarn_fx_get(L, f);
  bool any = x->op == op;
  for (uint32_t a = 0; a < tarn_fx_arity(x->op) && !any; a++) any = has_op(L, x->kid[a], op);
  return any;
}

bool tarn_hw_scales(const tarn_hw *hw) {
  for (uint32_t i = 0; i < hw->ntransfer; i++) {
    const tarn_hw_transfer *t = &hw->transfer[i];
    if (t->to + 1 != hw->nmem || t->intrinsic == TARN_NONE) continue;
    const tarn_hw_intrinsic *x = &hw->intrin[t->intrinsic];
    for (uint32_t k = 0; k < x->nop; k++)
      if (x->op[k].immediate && tarn_dtype_is_float(x->op[k].dtype)) return true;
  }
  return false;
}
bool tarn_hw_shifts(tarn_lang *L, const tarn_hw *hw) {
  bool any = false;
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    tarn_hw_form f;
    tarn_hw_meaning m = tarn_hw_meaning_of(L, hw, i);
    if (!tarn_hw_form_of(L, &m, &f)) continue;
    if (tarn_dtype_is_float(hw->intrin[i].op[0].dtype)) return false;
    any |= !f.product && has_op(L, f.body, TARN_FX_SHR);
  }
  return any;
}
void tarn_hw_vectors(tarn_lang *L, const tarn_hw *hw, tarn_dtype t, bool does[TARN_FX_COUNT]) {
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    const tarn_hw_intrinsic *n = &hw->intrin[i];
    tarn_hw_form f;
    if (n->nop < 2 || n->op[0].dtype != t || n->op[n->nop - 1u].dtype != t) continue;
    tarn_hw_meaning m = tarn_hw_meaning_of(L, hw, i);
    if (!tarn_hw_form_of(L, &m, &f) || f.product) continue;
    does[tarn_fx_get(L, f.body)->op] = true;
  }
}
