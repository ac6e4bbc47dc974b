/* A proof from its text. What is read is not yet judged: only that names are bound and terms have types. */
#include "rules/proof.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct reading {
  tarn_lang *L;
  tarn_ctx *cx;
  pf_proof *p;
  tarn_map *node;  /* number -> term + 1 */
  tarn_map *lemma; /* number -> lemma + 1 */
  const tarn_sx *form;
} reading;

static const tarn_sx *element(const reading *r, const tarn_sx *s, uint32_t i) {
  if (s->kind != TARN_SX_LIST || i >= s->n) tarn_sx_error(r->cx, s, "too short");
  return s->kid[i];
}
static uint32_t number(const reading *r, const tarn_sx *s) {
  if (s->kind != TARN_SX_INT || s->i < 0 || s->i > INT32_MAX) tarn_sx_error(r->cx, s, "a number is expected");
  return (uint32_t)s->i;
}
static uint64_t label(const reading *r, const tarn_sx *s) {
  uint64_t v = 0;
  if (s->kind != TARN_SX_ATOM || s->text[0] != '%' || !s->text[1]) tarn_sx_error(r->cx, s, "a node %%k is expected");
  for (const char *c = s->text + 1; *c; c++) {
    if (*c < '0' || *c > '9' || v > INT32_MAX) tarn_sx_error(r->cx, s, "a node %%k is expected");
    v = 10 * v + (uint64_t)(*c - '0');
  }
  return v;
}
static tarn_term term(const reading *r, const tarn_sx *s) {
  const uint64_t *t = tarn_map_get(r->node, label(r, s));
  if (!t) tarn_sx_error(r->cx, s, "no node is called %s", s->text);
  return (tarn_term)(*t - 1);
}

/* ---------------------------------------------------------------- constants */

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
static void read_bytes(const reading *r, const tarn_sx *name, tarn_tensor *t) {
  size_t n = (size_t)tarn_tensor_count(t) * tarn_dtype_size(t->dtype);
  uint8_t *d = t->data;
  for (uint32_t i = 0; i < r->form->n; i++) {
    const tarn_sx *s = r->form->kid[i];
    if (!tarn_sx_is(s, "bytes") || s->n != 3 || strcmp(s->kid[1]->text, name->text) != 0) continue;
    const char *h = s->kid[2]->text;
    if (s->kid[2]->len != 2 * n) tarn_sx_error(r->cx, s->kid[2], "%zu bytes are expected", n);
    for (size_t k = 0; k < n; k++) {
      int a = digit(h[2 * k]), b = digit(h[2 * k + 1]);
      if (a < 0 || b < 0) tarn_sx_error(r->cx, s->kid[2], "no hexadecimal digits");
      d[k] = (uint8_t)(16 * a + b);
    }
    return;
  }
  tarn_sx_error(r->cx, name, "no bytes are given for %s", name->text);
}

static tarn_term fill(const reading *r, const tarn_sx *s, tarn_tensor *t, const char *name, uint32_t ns) {
  const tarn_fx *x = tarn_fx_get(r->L, tarn_fx_parse(r->L, element(r, s, 1), t->dtype));
  if (x->op != TARN_FX_CONST || x->dtype != t->dtype) tarn_sx_error(r->cx, s, "a constant of type %s is expected", tarn_dtype_name(t->dtype));
  tarn_value v;
  if (tarn_dtype_is_float(t->dtype)) v.d = x->value;
  else v.i = x->ivalue;
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++) tarn_tensor_set(t, i, v);
  return tarn_constant(r->L, name, t, ns);
}

/* A constant of which only a fingerprint is given: an unknown tensor. */
static tarn_term unknown(const reading *r, const tarn_sx *s, uint32_t type) {
  const tarn_sx *hash = element(r, s, 4), *range = element(r, s, 5);
  if (!tarn_sx_is(hash, "hash") || !tarn_sx_is(range, "range") || hash->n != 2 || range->n != 3)
    tarn_sx_error(r->cx, s, "(hash …) (range LO HI) is expected");
  tarn_term t = tarn_input(r->L, tarn_format(r->cx, PF_CONST "%s:%s", s->kid[1]->text, hash->kid[1]->text), type);
  double *v = tarn_copy(r->cx, (double[2]){range->kid[1]->r, range->kid[2]->r}, 2 * sizeof(double));
  *tarn_map_at(r->p->range, t, NULL) = (uint64_t)(uintptr_t)v;
  return t;
}

/* (tensor NAME DTYPE SHAPE HOW…) */
static tarn_term tensor(const reading *r, const tarn_sx *s) {
  tarn_dtype dt;
  const tarn_sx *name = element(r, s, 1), *how = element(r, s, 4);
  if (!tarn_dtype_parse(element(r, s, 2)->text, &dt)) tarn_sx_error(r->cx, s, "no such type");
  uint32_t type = tarn_type_parse(r->L, element(r, s, 3), dt);
  if (tarn_sx_is(how, "hash")) return unknown(r, s, type);
  const tarn_type *t = tarn_type_get(r->L, type);
  tarn_tensor *v = tarn_tensor_new(r->cx, dt, t->n, t->dim);
  if (tarn_sx_is(how, "fill")) return fill(r, how, v, name->text, t->ns);
  if (!tarn_sx_is(how, "bytes")) tarn_sx_error(r->cx, how, "(fill V), (bytes) or (hash …) is expected");
  read_bytes(r, name, v);
  return tarn_constant(r->L, name->text, v, t->ns);
}

/* ---------------------------------------------------------------- terms */

static tarn_term operator(const reading *r, const tarn_sx *s) {
  const tarn_sx *head = element(r, s, 0);
  uint32_t op = head->kind == TARN_SX_ATOM ? tarn_op_find(head->text) : TARN_NONE, used = 0;
  if (tarn_sx_is(s, "tensor")) return tensor(r, s);
  if (op == TARN_NONE) tarn_sx_error(r->cx, head, "no operator is called %s", head->text);
  uint32_t payload = tarn_payload_parse(r->L, op, s, &used), n = s->n - 1 - used;
  tarn_term *kid = TARN_ARRAY(r->cx, tarn_term, n ? n : 1);
  uint32_t *type = TARN_ARRAY(r->cx, uint32_t, n ? n : 1);
  for (uint32_t i = 0; i < n; i++) {
    kid[i] = term(r, s->kid[1 + used + i]);
    type[i] = tarn_term_get(r->L, kid[i])->type;
  }
  if (tarn_type_of(r->L, op, payload, type, n) == TARN_NONE) tarn_sx_error(r->cx, s, "%s", tarn_message(r->cx));
  return tarn_mk(r->L, op, payload, kid, n);
}

static void read_node(const reading *r, const tarn_sx *s) {
  bool fresh;
  if (s->n != 3) tarn_sx_error(r->cx, s, "(node %%k TERM) is expected");
  tarn_term t = operator(r, s->kid[2]);
  uint64_t *at = tarn_map_at(r->node, label(r, s->kid[1]), &fresh);
  if (!fresh) tarn_sx_error(r->cx, s, "%s is named twice", s->kid[1]->text);
  *at = (uint64_t)t + 1;
}

/* ---------------------------------------------------------------- steps */

static uint32_t lemma_of(const reading *r, const tarn_sx *s) {
  const uint64_t *at = tarn_map_get(r->lemma, number(r, s));
  if (!at) tarn_sx_error(r->cx, s, "no earlier lemma has this number");
  return (uint32_t)*at - 1;
}

static void detail(const reading *r, const tarn_sx *s, pf_step *to) {
  uint32_t n = s->kind == TARN_SX_LIST && s->n ? s->n - 1 : 0, *v = TARN_ARRAY(r->cx, uint32_t, n + 1);
  bool terms = tarn_sx_is(s, "with") || tarn_sx_is(s, "at"), known = true;
  if (n == 0) tarn_sx_error(r->cx, s, "no such part of a step");
  for (uint32_t i = 0; i < n; i++) v[i] = terms ? term(r, s->kid[1 + i]) : number(r, s->kid[1 + i]);
  if (tarn_sx_is(s, "with")) to->extra = v, to->nextra = n;
  else if (tarn_sx_is(s, "at")) to->at = v[0];
  else if (tarn_sx_is(s, "slot")) to->slot = v[0];
  else if (tarn_sx_is(s, "open")) to->open = v, to->nopen = n;
  else if (tarn_sx_is(s, "kid") && n == 2 && v[0] < to->nlemma) ((uint32_t *)(uintptr_t)to->lemma)[v[0]] = lemma_of(r, s->kid[2]);
  else known = false;
  if (!known) tarn_sx_error(r->cx, s, "no such part of a step");
}

static void read_step(const reading *r, const tarn_sx *s) {
  pf_step to = {.at = TARN_NONE, .slot = TARN_NONE};
  const tarn_sx *what = element(r, s, 2);
  uint32_t at = 3;
  if (!tarn_sx_is(s, "step")) tarn_sx_error(r->cx, s, "a step is expected");
  to.number = number(r, element(r, s, 1));
  if (tarn_sx_atom_is(what, "rule")) to.kind = PF_RULE, to.rule = element(r, s, at++)->text;
  else if (tarn_sx_atom_is(what, "norm")) to.kind = PF_NORM;
  else if (tarn_sx_atom_is(what, "value")) to.kind = PF_VALUE;
  else if (tarn_sx_atom_is(what, "congruence")) to.kind = PF_CONGRUENCE;
  else tarn_sx_error(r->cx, what, "rule, norm, value or congruence is expected");
  const tarn_sx *arrow = element(r, s, at++);
  to.forward = tarn_sx_atom_is(arrow, "->");
  if (!to.forward && !tarn_sx_atom_is(arrow, "<-")) tarn_sx_error(r->cx, arrow, "-> or <- is expected");
  to.before = term(r, element(r, s, at++));
  to.after = term(r, element(r, s, at++));
  if (to.kind == PF_CONGRUENCE) {
    to.nlemma = tarn_term_get(r->L, to.before)->n;
    uint32_t *l = TARN_ARRAY(r->cx, uint32_t, to.nlemma + 1);
    for (uint32_t i = 0; i < to.nlemma; i++) l[i] = TARN_NONE;
    to.lemma = l;
  }
  for (; at < s->n; at++) detail(r, s->kid[at], &to);
  tarn_push(r->cx, &r->p->step, to);
}

static void read_lemma(const reading *r, const tarn_sx *s) {
  pf_lemma l = {term(r, element(r, s, 2)), term(r, element(r, s, 3)), r->p->step.n, s->n - 4};
  uint32_t n = number(r, s->kid[1]);
  bool fresh;
  for (uint32_t i = 4; i < s->n; i++) read_step(r, s->kid[i]);
  tarn_push(r->cx, &r->p->lemma, l);
  uint64_t *at = tarn_map_at(r->lemma, n, &fresh);
  if (!fresh) tarn_sx_error(r->cx, s, "two lemmas have the number %u", n);
  *at = r->p->lemma.n;
}

pf_proof *pf_read(tarn_lang *L, const tarn_sx *s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  pf_proof *p = TARN_NEW(cx, pf_proof);
  reading r = {L, cx, p, tarn_map_new(cx), tarn_map_new(cx), s};
  *p = (pf_proof){.L = L, .from = TARN_NONE, .to = TARN_NONE, .range = tarn_map_new(cx)};
  if (!tarn_sx_is(s, "proof") || s->n < 2) tarn_sx_error(cx, s, "(proof NAME …) is expected");
  p->output = s->kid[1]->text;
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (tarn_sx_is(f, "node")) read_node(&r, f);
    else if (tarn_sx_is(f, "lemma")) read_lemma(&r, f);
    else if (tarn_sx_is(f, "theorem")) p->from = term(&r, element(&r, f, 1)), p->to = term(&r, element(&r, f, 2));
    else if (!tarn_sx_is(f, "bytes")) tarn_sx_error(cx, f, "node, lemma, theorem or bytes is expected");
  }
  if (p->from == TARN_NONE) tarn_sx_error(cx, s, "no theorem is stated");
  return p;
}
