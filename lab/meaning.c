/* Reading (interpretation DOMAIN (NAME EXPR)…) and what its definitions give. */
#include "access/fx_internal.h"
#include "lab/meaning.h"
#include <stdlib.h>
#include <string.h>

static const char *const domains[M_DOMAINS] = {"bool", "bits",   "integer", "rational",
                                               "real", "string", ""};

const mdef *meaning_find(const meaning *m, const char *name) {
  for (uint32_t i = 0; i < m->def.n; i++)
    if (strcmp(m->def.p[i].name, name) == 0) return &m->def.p[i];
  return NULL;
}

/* ---------------------------------------------------------------- numbers */

/* 3, -1/2, 0.25 */
static bool rational_text(const char *text, mval *out) {
  char *end;
  int64_t n = 0, d = 1;
  bool minus = text[0] == '-';
  const char *p = text + minus, *point = NULL;
  for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
    if (*p == '.') point = p;
    else n = 10 * n + (*p - '0'), d *= point ? 10 : 1;
    if (n > INT64_MAX / 100 || d > INT64_MAX / 100) return false;
  }
  if (p == text + minus || (point && p == point + 1)) return false;
  if (*p == '/' && !point) {
    d = strtoll(p + 1, &end, 10);
    if (end == p + 1 || d < 1) return false;
    p = end;
  }
  *out = m_ratio(minus ? -n : n, d);
  return !*p && m_has(*out);
}
bool meaning_number(const meaning *m, const char *text, mval *out) {
  mval v;
  if (m->domain == M_BOOL) {
    *out = (mval){strcmp(text, "true") == 0, 1};
    return out->n || strcmp(text, "false") == 0;
  }
  if (!m_scalar(m->domain)) return mown_read(m, text, out);
  if (!rational_text(text, &v) || (v.d != 1 && m->domain < M_RATIONAL)) return false;
  if (m->domain == M_REAL) v = m_real((double)v.n / (double)v.d);
  if (m->domain == M_BITS && m->width < 64) v.n &= (int64_t)((UINT64_C(1) << m->width) - 1);
  *out = m->prime ? m_to_prime(v) : v;
  return true;
}
void meaning_print(const meaning *m, mval v, tarn_buf *b) {
  if (v.d == M_NONE) tarn_buf_str(b, "no value");
  else if (v.d < 0) tarn_buf_str(b, "too large");
  else if (!m_scalar(m->domain)) mown_show(m, v, b);
  else if (m->domain == M_BOOL) tarn_buf_str(b, v.n ? "true" : "false");
  else if (m->domain == M_REAL) tarn_buf_double(b, m_double(v));
  else if (m->domain == M_BITS) tarn_buf_fmt(b, "%llu", (unsigned long long)v.n);
  else if (v.d == 1) tarn_buf_fmt(b, "%lld", (long long)v.n);
  else tarn_buf_fmt(b, "%lld/%lld", (long long)v.n, (long long)v.d);
}

/* ---------------------------------------------------------------- expressions */

typedef struct reader {
  tarn_ctx *cx;
  const meaning *m;
  uint32_t arity;
} reader;

static mexpr *expression(reader *rd, const tarn_sx *s);

static bool is_logic(uint32_t op) {
  return op == TARN_FX_AND || op == TARN_FX_OR || op == TARN_FX_XOR || op == TARN_FX_NOT;
}

static void check_truth(reader *rd, const tarn_sx *s, mexpr *e) {
  bool two = rd->m->domain != M_BOOL;
  const bool k0 = e->kid[0]->truth, k1 = e->kid[1] && e->kid[1]->truth,
             k2 = e->kid[2] && e->kid[2]->truth;
  uint32_t arity = tarn_fx_arity(e->op);
  bool mixed =
      e->op == TARN_FX_SEL ? !k0 || k1 != k2 : (arity == 2 && k0 != k1) || (k0 && !is_logic(e->op));
  if (two && mixed)
    tarn_sx_error(rd->cx, s, "%s: a truth value stands where a number is needed, or the reverse",
                  tarn_fx_info(e->op)->text);
  if (e->op != TARN_FX_SEL && !(two && k0) && !mop_known(rd->m, e->op))
    tarn_sx_error(rd->cx, s, "%s has no meaning over %s", tarn_fx_info(e->op)->text,
                  domains[rd->m->domain]);
  e->truth = !two || tarn_fx_gives_bool(e->op) || (e->op == TARN_FX_SEL ? k1 : k0);
}
static mexpr *own_operation(reader *rd, const tarn_sx *s, mexpr *e, const tarn_own_op *o) {
  e->kind = ME_OWN, e->truth = o->truth;
  if (s->n != o->arity + 1) tarn_sx_error(rd->cx, s, "%s takes %u operands", o->name, o->arity);
  for (uint32_t i = 1; i < s->n; i++) {
    e->kid[i - 1] = expression(rd, s->kid[i]);
    if (e->kid[i - 1]->truth)
      tarn_sx_error(rd->cx, s, "a truth value stands where another is needed");
  }
  return e;
}
static mexpr *operation(reader *rd, const tarn_sx *s) {
  mexpr *e = TARN_NEW(rd->cx, mexpr);
  e->kind = ME_OP;
  if (!s->n || s->kid[0]->kind != TARN_SX_ATOM)
    tarn_sx_error(rd->cx, s, "expected (OPERATOR OPERAND…)");
  const tarn_own_op *own = NULL;
  if (!m_scalar(rd->m->domain)) own = mown_op(rd->m, s->kid[0]->text, &e->op);
  if (own) return own_operation(rd, s, e, own);
  e->op = tarn_fx_find(s->kid[0]->text);
  if (e->op == TARN_NONE || e->op == TARN_FX_CAST)
    tarn_sx_error(rd->cx, s, "no scalar operator is called %s", s->kid[0]->text);
  uint32_t arity = tarn_fx_arity(e->op);
  if (s->n != arity + 1) tarn_sx_error(rd->cx, s, "%s takes %u operands", s->kid[0]->text, arity);
  for (uint32_t i = 1; i < s->n; i++) e->kid[i - 1] = expression(rd, s->kid[i]);
  check_truth(rd, s, e);
  return e;
}
static mexpr *expression(reader *rd, const tarn_sx *s) {
  if (s->kind == TARN_SX_LIST) return operation(rd, s);
  mexpr *e = TARN_NEW(rd->cx, mexpr);
  char *end = NULL;
  if (s->text[0] == '$') {
    unsigned long k = strtoul(s->text + 1, &end, 10);
    if (*end || end == s->text + 1 || k > 2) tarn_sx_error(rd->cx, s, "expected $0, $1 or $2");
    *e = (mexpr){.kind = ME_HOLE, .hole = (uint32_t)k, .truth = rd->m->domain == M_BOOL};
    if (k >= rd->arity) rd->arity = (uint32_t)k + 1;
    return e;
  }
  e->kind = ME_CONST;
  e->truth = rd->m->domain == M_BOOL;
  if (meaning_number(rd->m, s->text, &e->value)) return e;
  e->truth = true;
  e->value = (mval){tarn_sx_atom_is(s, "true"), 1};
  if (!e->value.n && !tarn_sx_atom_is(s, "false"))
    tarn_sx_error(rd->cx, s, "expected a value of the domain");
  return e;
}

void meaning_read(tarn_ruleset *rs, const tarn_sx *s) {
  if (free_of(rs)->meaning) tarn_sx_error(rs->cx, s, "there is an interpretation already");
  meaning *m = free_of(rs)->meaning = TARN_NEW(rs->cx, meaning);
  const tarn_sx *d = s->n > 1 ? s->kid[1] : s,
                *word = d->kind == TARN_SX_LIST && d->n ? d->kid[0] : d;
  m->at = s;
  m->own = free_of(rs)->domain;
  while (m->domain < M_OWN && !tarn_sx_atom_is(word, domains[m->domain])) m->domain++;
  if (m->domain == M_OWN && !(m->own && tarn_sx_atom_is(word, m->own->name))) m->domain++;
  if (m->domain == M_DOMAINS || (word != d) != (m->domain == M_BITS))
    tarn_sx_error(rs->cx, d, "expected bool, (bits W), integer, rational, real or string");
  if (m->domain == M_BITS) {
    if (d->n != 2 || d->kid[1]->kind != TARN_SX_INT || d->kid[1]->i < 1 || d->kid[1]->i > 64)
      tarn_sx_error(rs->cx, d, "expected a width of 1 to 64");
    m->width = (uint32_t)d->kid[1]->i;
  }
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *k = s->kid[i];
    reader rd = {rs->cx, m, 0};
    if (k->kind != TARN_SX_LIST || k->n != 2 || k->kid[0]->kind == TARN_SX_LIST)
      tarn_sx_error(rs->cx, k, "expected (NAME EXPRESSION)");
    if (meaning_find(m, k->kid[0]->text))
      tarn_sx_error(rs->cx, k, "%s has a meaning already", k->kid[0]->text);
    mdef def = {.name = k->kid[0]->text, .body = expression(&rd, k->kid[1])};
    def.arity = rd.arity;
    def.predicate = def.body->truth && m->domain != M_BOOL;
    tarn_push(rs->cx, &m->def, def);
  }
}

/* ---------------------------------------------------------------- values */

static mval logic(uint32_t op, const mval *a) {
  bool x = a[0].n, y = a[1].n;
  return (mval){op == TARN_FX_AND   ? x && y
                : op == TARN_FX_OR  ? x || y
                : op == TARN_FX_XOR ? x != y
                                    : !x,
                1};
}
static mval call(const meaning *m, const mexpr *e, const mval *arg) {
  mval a[3];
  for (uint32_t i = 0; i < e->def->arity; i++) a[i] = meaning_eval(m, e->kid[i], arg);
  return meaning_apply(m, e->def, a);
}
static mval operate(const meaning *m, const mexpr *e, const mval *arg) {
  mval a[3] = {{0, 1}, {0, 1}, {0, 1}};
  if (e->op == TARN_FX_SEL) { /* what is not chosen need not have a value */
    a[0] = meaning_eval(m, e->kid[0], arg);
    return m_has(a[0]) ? meaning_eval(m, e->kid[a[0].n ? 1 : 2], arg) : a[0];
  }
  for (uint32_t i = 0; i < tarn_fx_arity(e->op); i++) {
    a[i] = meaning_eval(m, e->kid[i], arg);
    if (!m_has(a[i])) return a[i];
  }
  if (is_logic(e->op) && e->kid[0]->truth && m->domain != M_BOOL) return logic(e->op, a);
  return mop_apply(m, e->op, a);
}
static mval operate_own(const meaning *m, const mexpr *e, const mval *arg) {
  mval a[3] = {{0, 1}, {0, 1}, {0, 1}};
  for (uint32_t i = 0; i < 3 && e->kid[i]; i++) {
    a[i] = meaning_eval(m, e->kid[i], arg);
    if (!m_has(a[i])) return a[i];
  }
  return mown_apply(m, e->op, a);
}
mval meaning_eval(const meaning *m, const mexpr *e, const mval *arg) {
  if (e->kind == ME_OWN) return operate_own(m, e, arg);
  if (e->kind == ME_CALL) return call(m, e, arg);
  if (e->kind == ME_HOLE) return arg[e->hole];
  if (e->kind == ME_CONST) return m->prime ? m_to_prime(e->value) : e->value;
  return operate(m, e, arg);
}
mval meaning_apply(const meaning *m, const mdef *d, const mval *arg) {
  for (uint32_t i = 0; i < d->arity; i++)
    if (!m_has(arg[i])) return arg[i];
  return meaning_eval(m, d->body, arg);
}
