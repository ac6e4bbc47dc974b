/* Printing: scalar expressions, functions, payloads, terms.  parse.c reads what is printed here. */
#include "access/fx_internal.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- scalar expressions */
static uint32_t fx_kids(const tarn_lang *L, uint32_t id, const uint32_t **kid) {
  const tarn_fx *x = tarn_fx_get(L, id);
  *kid = x->kid;
  return tarn_fx_info(x->op)->arity;
}

static void fx_constant(const tarn_lang *L, tarn_buf *b, uint32_t f) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (x->dtype == TARN_BOOL) {
    tarn_buf_str(b, x->ivalue ? "true" : "false");
    return;
  }
  if (x->dtype != TARN_F32) tarn_buf_fmt(b, "(%s ", tarn_dtype_name(x->dtype));
  tarn_number_print(b, x->dtype, tarn_fx_value(L, f));
  if (x->dtype != TARN_F32) tarn_buf_str(b, ")");
}

static void fx_ref(const tarn_lang *L, tarn_buf *b, const tarn_lets *l, uint32_t f);

static void fx_node(const tarn_lang *L, tarn_buf *b, const tarn_lets *l, uint32_t f) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (x->op == TARN_FX_HOLE) tarn_buf_fmt(b, "$%u", x->hole);
  else if (x->op == TARN_FX_CONST) fx_constant(L, b, f);
  else {
    tarn_buf_fmt(b, "(%s", tarn_fx_info(x->op)->text);
    if (x->op == TARN_FX_CAST) tarn_buf_fmt(b, " %s", tarn_dtype_name(x->dtype));
    for (uint32_t i = 0; i < tarn_fx_info(x->op)->arity; i++) {
      tarn_buf_str(b, " ");
      fx_ref(L, b, l, x->kid[i]);
    }
    tarn_buf_str(b, ")");
  }
}

static void fx_ref(const tarn_lang *L, tarn_buf *b, const tarn_lets *l, uint32_t f) {
  uint32_t label = tarn_lets_label(l, f);
  if (label == TARN_NONE) fx_node(L, b, l, f);
  else tarn_buf_fmt(b, "%%%u", label);
}

void tarn_fx_print(const tarn_lang *L, tarn_buf *b, uint32_t f) {
  const uint32_t *ids;
  uint32_t n = tarn_fx_reachable(L, f, &ids);
  tarn_lets l = tarn_lets_choose(L, n, ids, fx_kids, &f, 1);
  const char *open = "(let (";
  for (uint32_t i = 0; i < n; i++) {
    if (l.label[i] == TARN_NONE) continue;
    tarn_buf_fmt(b, "%s(%%%u ", open, l.label[i]);
    fx_node(L, b, &l, l.id[i]);
    tarn_buf_str(b, ")");
    open = " ";
  }
  if (l.nbound) tarn_buf_str(b, ") ");
  fx_ref(L, b, &l, f);
  if (l.nbound) tarn_buf_str(b, ")");
}

/* ---------------------------------------------------------------- functions */
const char *const tarn_red_names[TARN_RED_CUSTOM] = {NULL, "sum", "prod", "max", "min"};
const char *const tarn_reduce_names[TARN_RED_CUSTOM] = {NULL, "reduceSum", "reduceProd",
                                                        "reduceMax", "reduceMin"};

/* NAME for f32, (NAME dtype) for others */
static void with_dtype(tarn_buf *b, const char *name, tarn_dtype t) {
  if (t == TARN_F32) tarn_buf_str(b, name);
  else tarn_buf_fmt(b, "(%s %s)", name, tarn_dtype_name(t));
}

static void print_reducer(const tarn_lang *L, tarn_buf *b, uint32_t red) {
  const tarn_reducer *r = tarn_reducer_get(L, red);
  if (r->kind != TARN_RED_CUSTOM) {
    with_dtype(b, tarn_red_names[r->kind], r->dtype);
    return;
  }
  tarn_buf_fmt(b, "(reducer %s (state", tarn_dtype_name(r->dtype));
  for (uint32_t i = 0; i < r->ns; i++) {
    const uint32_t part[] = {r->init[i], r->step[i], r->merge[i]};
    for (uint32_t k = 0; k < 3 && part[k] != TARN_NONE; k++) {
      tarn_buf_str(b, k ? " " : " (");
      tarn_fx_print(L, b, part[k]);
    }
    tarn_buf_str(b, ")");
  }
  tarn_buf_str(b, ") ");
  tarn_fx_print(L, b, r->result);
  tarn_buf_str(b, r->commutative ? " commutative)" : ")");
}

/* Hole i, cast to t or (none) as it is. */
static bool is_operand(const tarn_lang *L, uint32_t f, uint32_t i, bool cast, tarn_dtype t) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (cast && (x->op != TARN_FX_CAST || x->dtype != t)) return false;
  if (cast) x = tarn_fx_get(L, x->kid[0]);
  return x->op == TARN_FX_HOLE && x->hole == i;
}

/* Is it the dotProd of some type? Of a 16-bit float its accumulator is explicit. */
static bool is_dot_of(const tarn_lang *L, const tarn_func *f, tarn_dtype *t) {
  const tarn_reducer *r = tarn_reducer_get(L, f->red);
  const tarn_fx *x = tarn_fx_get(L, f->body),
                *e = f->epi == TARN_NONE ? NULL : tarn_fx_get(L, f->epi);
  if (f->ntuple != 2 || f->nepi || r->kind != TARN_RED_SUM || x->op != TARN_FX_MUL) return false;
  if (e && (e->op != TARN_FX_CAST || !is_operand(L, f->epi, 0, true, e->dtype))) return false;
  *t = e ? e->dtype : r->dtype;
  if (tarn_dtype_accumulator(*t) != r->dtype || (*t != r->dtype) != (e != NULL)) return false;
  return is_operand(L, x->kid[0], 0, e, r->dtype) && is_operand(L, x->kid[1], 1, e, r->dtype);
}

/* The short name of a function, printed; false when it has none. */
static bool fn_short(const tarn_lang *L, tarn_buf *b, const tarn_func *f) {
  tarn_dtype t;
  if (f->red == TARN_NONE) return false;
  const tarn_reducer *r = tarn_reducer_get(L, f->red);
  bool bare = !f->ntuple && f->nops == 1 && f->epi == TARN_NONE &&
              is_operand(L, f->body, 0, false, r->dtype);
  if (r->kind == TARN_RED_CUSTOM || (!bare && !is_dot_of(L, f, &t))) return false;
  if (bare) with_dtype(b, tarn_reduce_names[r->kind], r->dtype);
  else with_dtype(b, "dotProd", t);
  return true;
}

static void fn_core(const tarn_lang *L, tarn_buf *b, const tarn_func *f) {
  tarn_func plain = *f;
  uint32_t holes = tarn_fx_holes(L, f->body);
  plain.epi = TARN_NONE;
  plain.nepi = 0;
  if (fn_short(L, b, &plain)) return;
  tarn_buf_str(b, f->red == TARN_NONE ? "(map " : "(red ");
  if (f->red != TARN_NONE) {
    print_reducer(L, b, f->red);
    tarn_buf_str(b, " ");
  }
  tarn_fx_print(L, b, f->body);
  if (f->ntuple) tarn_buf_fmt(b, " (tuple %u)", f->ntuple);
  else if (f->nops != (holes ? holes : 1)) tarn_buf_fmt(b, " (ops %u)", f->nops);
  tarn_buf_str(b, ")");
}

void tarn_fn_print(const tarn_lang *L, tarn_buf *b, uint32_t fn) {
  const tarn_func *f = tarn_fn_get(L, fn);
  if (fn_short(L, b, f)) return;
  if (f->epi == TARN_NONE) {
    fn_core(L, b, f);
    return;
  }
  uint32_t holes = tarn_fx_holes(L, f->epi);
  tarn_buf_str(b, "(epi ");
  tarn_fx_print(L, b, f->epi);
  tarn_buf_str(b, " ");
  fn_core(L, b, f);
  if (f->nepi + 1u != (holes ? holes : 1)) tarn_buf_fmt(b, " (ops %u)", f->nepi);
  tarn_buf_str(b, ")");
}

/* ---------------------------------------------------------------- payloads */
static void spaced_ints(tarn_buf *b, uint32_t n, const int64_t *v) {
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, " %" PRId64, v[i]);
}

static void listed_ints(tarn_buf *b, uint32_t n, const int64_t *v) {
  tarn_buf_str(b, " ");
  tarn_ints_print(b, n, v);
}

/* Dilations and steps of 1 and no shared dims are left out. */
static void print_ints(tarn_buf *b, uint32_t op, const tarn_payload *p) {
  uint32_t m = p->n / 3, dilated = 0;
  if (op == TARN_OP_WINDOWS && p->n % 3 == 0) {
    for (uint32_t i = 0; i < m; i++) dilated |= p->ints[2 * m + i] != 1;
    for (uint32_t i = 0; i < 2 + dilated; i++) listed_ints(b, m, p->ints + i * m);
  } else if (op == TARN_OP_TRANSPOSE) listed_ints(b, p->n, p->ints);
  else if (op == TARN_OP_SLICE && p->n == 4 && p->ints[3] == 1) spaced_ints(b, 3, p->ints);
  else if (op != TARN_OP_CART_PROD || p->n != 1 || p->ints[0] != 0) spaced_ints(b, p->n, p->ints);
}

static void print_real(tarn_buf *b, double v) {
  size_t from = b->n;
  tarn_buf_double(b, v); /* with a mark that it is no integer */
  if (isfinite(v) && !strpbrk(b->p + from, ".e")) tarn_buf_str(b, ".0");
}

static void print_attr(tarn_buf *b, const tarn_attr *a) {
  tarn_buf_str(b, " (");
  tarn_name_print(b, a->name);
  tarn_buf_str(b, " ");
  switch (a->kind) {
  case TARN_A_INT: tarn_buf_fmt(b, "%" PRId64, a->i); break;
  case TARN_A_REAL: print_real(b, a->r); break;
  case TARN_A_STR: tarn_sx_string(b, a->s, strlen(a->s)); break;
  case TARN_A_INTS:
    tarn_buf_str(b, "(ints");
    spaced_ints(b, a->n, a->is);
    tarn_buf_str(b, ")");
    break;
  case TARN_A_REALS:
    tarn_buf_str(b, "(reals");
    for (uint32_t i = 0; i < a->n; i++) {
      tarn_buf_str(b, " ");
      print_real(b, a->rs[i]);
    }
    tarn_buf_str(b, ")");
    break;
  }
  tarn_buf_str(b, ")");
}

/* ((dtype shape)…): a tuple's elements, or the one type */
static void print_results(const tarn_lang *L, tarn_buf *b, uint32_t type) {
  const tarn_type *t = tarn_type_get(L, type);
  uint32_t n = t->tuple ? t->nelem : 1;
  for (uint32_t i = 0; i < n; i++) {
    tarn_buf_str(b, i ? " (" : " ((");
    tarn_type_print(L, b, t->tuple ? t->elem[i] : type);
    tarn_buf_str(b, ")");
  }
  tarn_buf_str(b, ")");
}

/* A NaN whose bits are not the usual ones is written nan:BITS, so that a constant reads back as
 * itself. */
static void print_element(tarn_buf *b, const tarn_tensor *t, int64_t i) {
  tarn_value v = tarn_tensor_get(t, i);
  uint64_t bits = 0, usual = 0;
  size_t size = tarn_dtype_size(t->dtype);
  if (tarn_dtype_is_float(t->dtype) && isnan(v.d)) {
    memcpy(&bits, (const char *)t->data + (size_t)i * size, size);
    usual = tarn_nan_bits(t->dtype);
  }
  if (bits != usual) tarn_buf_fmt(b, "nan:%" PRIx64, bits);
  else tarn_number_print(b, t->dtype, v);
}

static void print_const(const tarn_lang *L, tarn_buf *b, const tarn_payload *p) {
  const tarn_type *t = tarn_type_get(L, p->type);
  int64_t n = tarn_type_count(t);
  if (n > TARN_INLINE_MAX) {
    tarn_buf_str(b, " ");
    tarn_name_print(b, p->name);
  }
  tarn_buf_str(b, " ");
  tarn_type_print(L, b, p->type);
  for (int64_t i = 0; n <= TARN_INLINE_MAX && i < n; i++) {
    tarn_buf_str(b, " ");
    print_element(b, p->tensor, i);
  }
}

static void print_named(const tarn_lang *L, tarn_buf *b, const tarn_payload *p) {
  tarn_buf_str(b, " ");
  tarn_name_print(b, p->name);
  for (uint32_t i = 0; i < p->nattr; i++) print_attr(b, &p->attr[i]);
  if (p->kind == TARN_P_CALL) listed_ints(b, p->n, p->ints);
  if (p->kind == TARN_P_OPAQUE || p->kind == TARN_P_CALL) print_results(L, b, p->type);
  if (p->kind != TARN_P_NAME) return;
  const tarn_type *t = tarn_type_get(L, p->type);
  tarn_buf_str(b, " ");
  tarn_shape_print(b, t);
  tarn_buf_fmt(b, " %s", tarn_dtype_name(t->dtype));
}

void tarn_payload_print(const tarn_lang *L, tarn_buf *b, uint32_t op, uint32_t payload) {
  const tarn_payload *p = tarn_payload_get(L, payload);
  switch (p->kind) {
  case TARN_P_NONE: break;
  case TARN_P_INTS: print_ints(b, op, p); break;
  case TARN_P_SHAPE: tarn_buf_str(b, " "), tarn_shape_print(b, tarn_type_get(L, p->id)); break;
  case TARN_P_MAP: tarn_buf_str(b, " "), tarn_imap_print(L, b, p->id); break;
  case TARN_P_FN: tarn_buf_str(b, " "), tarn_fn_print(L, b, p->id); break;
  case TARN_P_NEST: tarn_buf_str(b, " "), tarn_nest_print(L, b, p->id); break;
  case TARN_P_CONST: print_const(L, b, p); break;
  case TARN_P_PADV:
    tarn_buf_fmt(b, " %" PRId64 " ", p->n ? p->ints[0] : 0);
    tarn_fx_print(L, b, p->value);
    if (p->n) spaced_ints(b, p->n - 1, p->ints + 1);
    break;
  case TARN_P_FOLD:
    tarn_buf_str(b, " "), print_reducer(L, b, p->value);
    spaced_ints(b, p->n, p->ints);
    break;
  default: print_named(L, b, p);
  }
}

/* ---------------------------------------------------------------- terms */
uint32_t tarn_term_kids(const tarn_lang *L, uint32_t id, const uint32_t **kid) {
  const tarn_node *x = tarn_term_get(L, id);
  *kid = x->kid;
  return x->n;
}

void tarn_term_node_print(const tarn_lang *L, tarn_buf *b, const tarn_lets *l, tarn_term t) {
  const tarn_node *x = tarn_term_get(L, t);
  tarn_buf_fmt(b, "(%s", tarn_op_info(x->op)->text);
  tarn_payload_print(L, b, x->op, x->payload);
  for (uint32_t i = 0; i < x->n; i++) {
    tarn_buf_str(b, " ");
    tarn_term_ref_print(L, b, l, x->kid[i]);
  }
  tarn_buf_str(b, ")");
}

void tarn_term_ref_print(const tarn_lang *L, tarn_buf *b, const tarn_lets *l, tarn_term t) {
  uint32_t label = tarn_lets_label(l, t);
  if (label == TARN_NONE) tarn_term_node_print(L, b, l, t);
  else tarn_buf_fmt(b, "%%%u", label);
}

void tarn_term_print(const tarn_lang *L, tarn_buf *b, tarn_term t) {
  const tarn_term *ids;
  uint32_t n = tarn_term_reachable(L, &t, 1, &ids);
  tarn_lets l = tarn_lets_choose(L, n, ids, tarn_term_kids, &t, 1);
  const char *open = "(let (";
  for (uint32_t i = 0; i < n; i++) {
    if (l.label[i] == TARN_NONE) continue;
    tarn_buf_fmt(b, "%s(%%%u ", open, l.label[i]);
    tarn_term_node_print(L, b, &l, l.id[i]);
    tarn_buf_str(b, ")");
    open = "\n      ";
  }
  if (l.nbound) tarn_buf_str(b, ")\n  ");
  tarn_term_ref_print(L, b, &l, t);
  if (l.nbound) tarn_buf_str(b, ")");
}
