/* Kernels written by hand: their declarations, the types of calls, what a call costs. */
#include "access/internal.h"
#include <math.h>
#include <string.h>

tarn_written *tarn_written_find(const tarn_lang *L, const char *name) {
  for (uint32_t i = 0; i < L->written.n; i++)
    if (!strcmp(L->written.p[i]->name, name)) return L->written.p[i];
  return NULL;
}
void tarn_written_add(tarn_lang *L, tarn_written *w) {
  if (!tarn_written_find(L, w->name)) tarn_push(L->cx, &L->written, w);
}

/* ---------------------------------------------------------------- reading */
typedef struct reading {
  tarn_lang *L;
  tarn_written *w;
  bool result; /* sizes must be known */
  bool priced;
} reading;

static bool size_name(const tarn_sx *s) {
  return s->kind == TARN_SX_ATOM && s->len && (s->text[0] < '0' || s->text[0] > '9');
}
static uint32_t size_number(const tarn_written *w, const char *name) {
  for (uint32_t i = 0; i < w->nsize; i++)
    if (!strcmp(w->size[i], name)) return i;
  return TARN_NONE;
}
static int64_t read_dim(reading *r, const tarn_sx *s) {
  tarn_written *w = r->w;
  if (s->kind == TARN_SX_INT && s->i > 0) return s->i;
  if (!size_name(s)) tarn_sx_error(r->L->cx, s, "expected an extent or the name of a size");
  uint32_t i = size_number(w, s->text);
  if (i != TARN_NONE) return -1 - (int64_t)i;
  if (r->result) tarn_sx_error(r->L->cx, s, "no operand has the size %s", s->text);
  if (w->nsize == TARN_WRITTEN_SIZES)
    tarn_sx_error(r->L->cx, s, "more than %d sizes", TARN_WRITTEN_SIZES);
  w->size[w->nsize++] = s->text;
  return -1 - (int64_t)(w->nsize - 1);
}
static void read_dims(reading *r, const tarn_sx *s, tarn_written_port *p) {
  p->n = s->n - 1;
  if (p->n > TARN_MAX_DIMS) tarn_sx_error(r->L->cx, s, "more than %d dims", TARN_MAX_DIMS);
  for (uint32_t i = 0; i < p->n; i++) {
    p->dim[i] = read_dim(r, s->kid[i + 1]);
    p->order[i] = (uint8_t)i;
  }
}
static void read_order(reading *r, const tarn_sx *s, tarn_written_port *p) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < p->n && s->n == p->n + 1; i++) {
    const tarn_sx *k = s->kid[i + 1];
    if (k->kind != TARN_SX_INT || k->i < 0 || k->i >= (int64_t)p->n) break;
    p->order[i] = (uint8_t)k->i;
    seen |= 1u << k->i;
  }
  if (s->n != p->n + 1 || seen != (1u << p->n) - 1)
    tarn_sx_error(r->L->cx, s, "expected each of the %u dims once, the outermost first", p->n);
}
static void read_port(reading *r, const tarn_sx *s, uint32_t from, tarn_written_port *p) {
  const tarn_sx *type = NULL, *dims = NULL, *order = NULL;
  for (uint32_t i = from; i < s->n; i++) {
    const tarn_sx *k = s->kid[i];
    if (tarn_sx_is(k, "type") && k->n == 2) type = k->kid[1];
    else if (tarn_sx_is(k, "dims")) dims = k;
    else if (tarn_sx_is(k, "order")) order = k;
    else if (tarn_sx_is(k, "packed") && k->n == 1) p->packed = true;
    else tarn_sx_error(r->L->cx, k, "expected (type T), (dims …), (order …) or (packed)");
  }
  if (!type || !dims) tarn_sx_error(r->L->cx, s, "(type T) and (dims …) are needed");
  p->dtype = tarn_dtype_read(r->L, type);
  read_dims(r, dims, p);
  if (order) read_order(r, order, p);
}
static void read_operand(reading *r, const tarn_sx *s, tarn_written_port *p) {
  if (s->n < 2 || !size_name(s->kid[1])) tarn_sx_error(r->L->cx, s, "expected (operand NAME …)");
  for (uint32_t i = 0; i < r->w->nin; i++)
    if (!strcmp(r->w->in[i].name, s->kid[1]->text))
      tarn_sx_error(r->L->cx, s, "there is an operand %s already", s->kid[1]->text);
  *p = (tarn_written_port){.name = s->kid[1]->text};
  read_port(r, s, 2, p);
}

/* ---- formulas ---- */
static const char *const operators[] = {"+", "-", "*", "/", "min", "max"};
enum { OPERATORS = sizeof operators / sizeof *operators };
static uint32_t operator_of(const tarn_sx *s) {
  uint32_t i = 0;
  while (i < OPERATORS && !tarn_sx_is(s, operators[i])) i++;
  return i;
}
static void check_formula(reading *r, const tarn_sx *s) {
  tarn_ctx *cx = r->L->cx;
  if (s->kind == TARN_SX_INT || s->kind == TARN_SX_REAL) return;
  if (s->kind == TARN_SX_LIST) {
    if (operator_of(s) == OPERATORS || s->n < 3)
      tarn_sx_error(cx, s, "expected (+ - * / min max of two operands or more)");
    for (uint32_t i = 1; i < s->n; i++) check_formula(r, s->kid[i]);
  } else if (s->kind != TARN_SX_ATOM || size_number(r->w, s->text) == TARN_NONE)
    tarn_sx_error(cx, s, "no operand has the size %s", s->text);
}
static double apply(uint32_t op, double a, double b) {
  switch (op) {
  case 0: return a + b;
  case 1: return a - b;
  case 2: return a * b;
  case 3: return a / b;
  case 4: return fmin(a, b);
  default: return fmax(a, b);
  }
}
static double formula(const tarn_written *w, const tarn_sx *s, const int64_t *size) {
  if (s->kind == TARN_SX_ATOM) return (double)size[size_number(w, s->text)];
  if (s->kind != TARN_SX_LIST) return s->r;
  double v = formula(w, s->kid[1], size);
  for (uint32_t i = 2; i < s->n; i++) v = apply(operator_of(s), v, formula(w, s->kid[i], size));
  return v;
}
double tarn_written_price(const tarn_written *w, const int64_t *size) {
  return formula(w, w->price, size);
}

static void put_port(tarn_buf *b, const tarn_written_port *p, const int64_t *size) {
  tarn_buf_fmt(b, " (%s", tarn_dtype_name(p->dtype));
  for (uint32_t i = 0; i < p->n; i++) {
    uint32_t d = p->order[i];
    int64_t n = p->dim[d] < 0 ? size[-1 - p->dim[d]] : p->dim[d];
    tarn_buf_fmt(b, " %u:%lld", d, (long long)n);
  }
  tarn_buf_str(b, p->packed ? " packed)" : ")");
}
const char *tarn_written_text(tarn_ctx *cx, const tarn_written *w, const int64_t *size) {
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "(call %s %016llx", w->symbol, (unsigned long long)w->code);
  for (uint32_t i = 0; i < w->nin; i++) put_port(&b, &w->in[i], size);
  put_port(&b, &w->out, size);
  tarn_buf_str(&b, ")");
  return b.p;
}

/* ---- the whole ---- */
static const char *beside(tarn_ctx *cx, const char *file, const char *name) {
  const char *slash = strrchr(file ? file : "", '/');
  if (*name == '/' || !slash) return tarn_strdup(cx, name);
  return tarn_format(cx, "%.*s/%s", (int)(slash - file), file, name);
}
static const char *text_of(reading *r, const tarn_sx *s) {
  if (s->n != 2 || s->kid[1]->kind == TARN_SX_LIST || !s->kid[1]->len)
    tarn_sx_error(r->L->cx, s, "expected (%s NAME)", s->kid[0]->text);
  return s->kid[1]->text;
}
static void read_price(reading *r, const tarn_sx *s) {
  tarn_written *w = r->w;
  if (s->n != 2) tarn_sx_error(r->L->cx, s, "expected one formula");
  check_formula(r, w->price = s->kid[1]);
  w->cycles = tarn_sx_is(s, "cycles");
}
/* C's identifiers, and what assemblers allow besides. */
static void check_symbol(reading *r, const tarn_sx *at) {
  for (const char *p = r->w->symbol; *p; p++)
    if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$", *p))
      tarn_sx_error(r->L->cx, at, "%s is no name of a function in C", r->w->symbol);
}
static void read_form(reading *r, const tarn_sx *k) {
  tarn_written *w = r->w;
  if (tarn_sx_is(k, "operand") || tarn_sx_is(k, "result")) return;
  bool measured = tarn_sx_is(k, "measured");
  if (measured || tarn_sx_is(k, "seconds") || tarn_sx_is(k, "cycles")) {
    if (r->priced) tarn_sx_error(r->L->cx, k, "its price is told already");
    r->priced = true;
    if (!measured) read_price(r, k);
    else if (k->n > 1) tarn_sx_error(r->L->cx, k, "expected (measured)");
  } else if (tarn_sx_is(k, "symbol")) w->symbol = text_of(r, k);
  else if (tarn_sx_is(k, "link")) w->link = beside(r->L->cx, k->file, text_of(r, k));
  else if (!measured && !tarn_sx_is(k, "seconds") && !tarn_sx_is(k, "cycles"))
    tarn_sx_error(r->L->cx, k,
                  "expected operand, result, seconds, cycles, measured, symbol or link");
}
static void read_ports(reading *r, const tarn_sx *s) {
  tarn_written *w = r->w;
  const tarn_sx *result = NULL;
  tarn_written_port *in = TARN_ARRAY(r->L->cx, tarn_written_port, s->n);
  w->in = in;
  for (uint32_t i = 2; i < s->n; i++) {
    if (tarn_sx_is(s->kid[i], "operand")) read_operand(r, s->kid[i], &in[w->nin]), w->nin++;
    else if (tarn_sx_is(s->kid[i], "result")) {
      if (result) tarn_sx_error(r->L->cx, s->kid[i], "a kernel has one result");
      result = s->kid[i];
    }
  }
  if (!w->nin || !result || w->nin > TARN_MAX_OPERANDS)
    tarn_sx_error(r->L->cx, s, "1 to %d operands and a result are needed", TARN_MAX_OPERANDS);
  r->result = true;
  read_port(r, result, 1, &w->out);
}
tarn_written *tarn_written_read(tarn_lang *L, const tarn_sx *s) {
  tarn_written *w = TARN_NEW(L->cx, tarn_written);
  reading r = {.L = L, .w = w};
  if (s->n < 2 || !size_name(s->kid[1])) tarn_sx_error(L->cx, s, "expected (kernel NAME …)");
  *w = (tarn_written){.name = s->kid[1]->text, .symbol = s->kid[1]->text, .at = s};
  if (tarn_written_find(L, w->name) || tarn_call_find(L, w->name))
    tarn_sx_error(L->cx, s, "there is a kernel %s already", w->name);
  read_ports(&r, s);
  for (uint32_t i = 2; i < s->n; i++) read_form(&r, s->kid[i]);
  check_symbol(&r, s);
  if (!r.priced)
    tarn_sx_error(L->cx, s, "its price is needed: (seconds …), (cycles …) or (measured)");
  tarn_push(L->cx, &L->written, w);
  return w;
}

/* ---------------------------------------------------------------- types */
static bool port_fits(const tarn_written_port *p, const tarn_type *t, uint32_t ns, int64_t *size) {
  if (t->tuple || t->dtype != p->dtype || t->ns != ns || t->n != ns + p->n) return false;
  for (uint32_t d = 0; d < p->n; d++) {
    int64_t have = t->dim[ns + d], *want = p->dim[d] < 0 ? &size[-1 - p->dim[d]] : NULL;
    if (want && *want < 0) *want = have;
    if (have != (want ? *want : p->dim[d])) return false;
  }
  return true;
}
bool tarn_written_sizes(tarn_lang *L, const tarn_written *w, const uint32_t *kid_types, uint32_t n,
                        int64_t size[TARN_WRITTEN_SIZES]) {
  const tarn_type *first = n ? tarn_type_get(L, kid_types[0]) : NULL;
  for (uint32_t i = 0; i < TARN_WRITTEN_SIZES; i++) size[i] = -1;
  if (n != w->nin) {
    tarn_set_message(L->cx, "the kernel %s has %u operands", w->name, w->nin);
    return false;
  }
  for (uint32_t i = 0; i < n; i++) {
    const tarn_type *t = tarn_type_get(L, kid_types[i]);
    bool same = !first->tuple && port_fits(&w->in[i], t, first->ns, size) &&
                !memcmp(t->dim, first->dim, first->ns * sizeof *t->dim);
    if (same) continue;
    tarn_set_message(L->cx, "operand %s of the kernel %s has another type or shape", w->in[i].name,
                     w->name);
    return false;
  }
  return true;
}
uint32_t tarn_written_type(tarn_lang *L, const tarn_written *w, const uint32_t *kid_types,
                           uint32_t n) {
  int64_t size[TARN_WRITTEN_SIZES], dim[TARN_MAX_DIMS];
  if (!tarn_written_sizes(L, w, kid_types, n, size)) return TARN_NONE;
  const tarn_type *first = tarn_type_get(L, kid_types[0]);
  const tarn_written_port *p = &w->out;
  if (first->ns + p->n > TARN_MAX_DIMS) {
    tarn_set_message(L->cx, "the result of %s has more than %d dims", w->name, TARN_MAX_DIMS);
    return TARN_NONE;
  }
  memcpy(dim, first->dim, first->ns * sizeof *dim);
  for (uint32_t d = 0; d < p->n; d++)
    dim[first->ns + d] = p->dim[d] < 0 ? size[-1 - p->dim[d]] : p->dim[d];
  return tarn_type_tensor(L, p->dtype, first->ns, first->ns + p->n, dim);
}

bool tarn_is_outside(const tarn_lang *L, uint32_t op, uint32_t payload) {
  if (op == TARN_OP_OPAQUE) return true;
  return op == TARN_OP_CALL && tarn_written_find(L, tarn_payload_get(L, payload)->name);
}

/* ---------------------------------------------------------------- storage orders */
bool tarn_written_lies(const tarn_written_port *p, const int64_t *dim, const int64_t *stride) {
  int64_t dense = 1;
  bool inner = true;
  for (uint32_t i = p->n; i-- > 0;) {
    uint32_t d = p->order[i];
    if (dim[d] == 1) continue;
    if (p->packed || inner ? stride[d] != dense : stride[d] < dense) return false;
    dense = p->packed ? dense * dim[d] : stride[d];
    inner = false;
  }
  return true;
}
