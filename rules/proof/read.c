/* Reads a proof. It only checks that names are bound and terms have types; proof.c checks the
 * steps. */
#include "rules/proof/proof.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
  tarn_lang *L;
  tarn_ctx *cx;
  pf_proof *p;
  tarn_map *node;  /* number -> term + 1 */
  tarn_map *nest;  /* number -> payload */
  tarn_map *lemma; /* number -> lemma + 1 */
  const tarn_sx *form;
  const tarn_map *known; /* as for pf_read() */
} reading;

static const tarn_sx *element(const reading *r, const tarn_sx *s, uint32_t i) {
  if (s->kind != TARN_SX_LIST || i >= s->n) tarn_sx_error(r->cx, s, "too short");
  return s->kid[i];
}
static uint32_t read_number(const reading *r, const tarn_sx *s) {
  if (s->kind != TARN_SX_INT || s->i < 0 || s->i > INT32_MAX)
    tarn_sx_error(r->cx, s, "a number is expected");
  return (uint32_t)s->i;
}
/* %k for terms, !k for nests */
static uint64_t label(const reading *r, const tarn_sx *s, char mark) {
  uint64_t v = 0;
  bool good = s->kind == TARN_SX_ATOM && s->text[0] == mark && s->text[1];
  for (const char *c = s->text + 1; good && *c; c++) {
    good = *c >= '0' && *c <= '9' && v <= INT32_MAX;
    v = 10 * v + (uint64_t)(*c - '0');
  }
  if (!good) tarn_sx_error(r->cx, s, "a name %ck is expected", mark);
  return v;
}
static tarn_term term(const reading *r, const tarn_sx *s) {
  const uint64_t *t = tarn_map_get(r->node, label(r, s, '%'));
  if (!t) tarn_sx_error(r->cx, s, "no node is called %s", s->text);
  return (tarn_term)(*t - 1);
}

/* ---------------------------------------------------------------- constants */

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
static void read_bytes(const reading *r, const tarn_sx *name, tarn_tensor *t) {
  size_t n = tarn_tensor_bytes(t);
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
      if (t->dtype == TARN_BOOL && d[k] > 1) tarn_sx_error(r->cx, s->kid[2], "a bool is 00 or 01");
    }
    return;
  }
  tarn_sx_error(r->cx, name, "no bytes are given for %s", name->text);
}

static tarn_term fill(const reading *r, const tarn_sx *s, tarn_tensor *t, const char *name,
                      uint32_t ns) {
  const tarn_fx *x = tarn_fx_get(r->L, tarn_fx_parse(r->L, element(r, s, 1), t->dtype));
  if (x->op != TARN_FX_CONST || x->dtype != t->dtype)
    tarn_sx_error(r->cx, s, "a constant of type %s is expected", tarn_dtype_name(t->dtype));
  tarn_value v;
  if (tarn_dtype_is_float(t->dtype)) v.d = x->value;
  else v.i = x->ivalue;
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++) tarn_tensor_set(t, i, v);
  return tarn_constant(r->L, name, t, ns);
}

/* The constant of this type whose bytes have the fingerprint; TARN_NONE: none is known. */
static tarn_term known_constant(const reading *r, const char *hash, uint32_t type) {
  const tarn_type *t = tarn_type_get(r->L, type);
  char *end;
  const uint64_t *at = r->known ? tarn_map_get(r->known, strtoull(hash, &end, 16)) : NULL;
  if (!at || *end || end - hash != 16) return TARN_NONE;
  for (const pf_known *k = (const pf_known *)(uintptr_t)*at; k; k = k->next) {
    const tarn_node *x = tarn_term_get(r->L, k->constant);
    const tarn_payload *p = tarn_payload_get(r->L, x->payload);
    if (x->type == type) return k->constant;
    if (p->tensor->dtype != t->dtype || tarn_tensor_count(p->tensor) != tarn_type_count(t))
      continue;
    tarn_tensor seen = *p->tensor; /* the same elements in another shape */
    seen.n = t->n;
    memcpy(seen.dim, t->dim, t->n * sizeof *t->dim);
    return tarn_constant(r->L, p->name, &seen, t->ns);
  }
  return TARN_NONE;
}

/* Is what is said of its range so? */
static void compare_range(const reading *r, const char *name, tarn_term constant, const double *v) {
  double is[2];
  pf_bounds_of(tarn_payload_get(r->L, tarn_term_get(r->L, constant)->payload)->tensor, is);
  if (is[0] == v[0] && is[1] == v[1]) return;
  r->p->wrong =
      tarn_format(r->cx, "the elements of %s lie between %.17g and %.17g, not %.17g and %.17g",
                  tarn_shown(r->cx, name), is[0], is[1], v[0], v[1]);
}

/* A constant of which only a fingerprint is given: the model's, or an unknown tensor. */
static tarn_term hashed(const reading *r, const tarn_sx *s, uint32_t type) {
  const tarn_sx *hash = element(r, s, 4), *range = element(r, s, 5);
  bool good = s->n == 6 && hash->n == 2 && tarn_sx_is(range, "range") && range->n == 3;
  for (uint32_t i = 1; good && i < 3; i++)
    good = range->kid[i]->kind == TARN_SX_INT || range->kid[i]->kind == TARN_SX_REAL;
  if (!good) tarn_sx_error(r->cx, s, "(hash …) (range LO HI) is expected");
  double v[2] = {range->kid[1]->r, range->kid[2]->r};
  tarn_term t = known_constant(r, hash->kid[1]->text, type);
  if (t != TARN_NONE) return compare_range(r, s->kid[1]->text, t, v), t;
  t = tarn_input(r->L, tarn_format(r->cx, PF_CONST "%s", hash->kid[1]->text), type);
  *tarn_map_at(r->p->range, t, NULL) = (uint64_t)(uintptr_t)tarn_copy(r->cx, v, sizeof v);
  return t;
}

/* (tensor NAME DTYPE SHAPE HOW…) */
static tarn_term tensor(const reading *r, const tarn_sx *s) {
  tarn_dtype dt;
  const tarn_sx *name = element(r, s, 1), *how = element(r, s, 4);
  if (!tarn_dtype_parse(element(r, s, 2)->text, &dt)) tarn_sx_error(r->cx, s, "no such type");
  uint32_t type = tarn_type_parse(r->L, element(r, s, 3), dt);
  if (tarn_sx_is(how, "hash")) return hashed(r, s, type);
  const tarn_type *t = tarn_type_get(r->L, type);
  tarn_tensor *v = tarn_tensor_new(r->cx, dt, t->n, t->dim);
  if (tarn_sx_is(how, "fill")) return fill(r, how, v, name->text, t->ns);
  if (!tarn_sx_is(how, "bytes"))
    tarn_sx_error(r->cx, how, "(fill V), (bytes) or (hash …) is expected");
  read_bytes(r, name, v);
  return tarn_constant(r->L, name->text, v, t->ns);
}

/* ---------------------------------------------------------------- terms */

static uint32_t body(const reading *r, uint32_t op, const tarn_sx *s, uint32_t *used) {
  if (op != TARN_OP_NEST || s->n < 2 || s->kid[1]->kind != TARN_SX_ATOM ||
      s->kid[1]->text[0] != '!')
    return tarn_payload_parse(r->L, op, s, used);
  const uint64_t *p = tarn_map_get(r->nest, label(r, s->kid[1], '!'));
  if (!p) tarn_sx_error(r->cx, s->kid[1], "no nest is called %s", s->kid[1]->text);
  *used = 1;
  return (uint32_t)*p;
}

static tarn_term operator(const reading *r, const tarn_sx *s) {
  const tarn_sx *head = element(r, s, 0);
  uint32_t op = head->kind == TARN_SX_ATOM ? tarn_op_find(head->text) : TARN_NONE, used = 0;
  if (tarn_sx_is(s, "tensor")) return tensor(r, s);
  if (op == TARN_NONE) tarn_sx_error(r->cx, head, "no operator is called %s", head->text);
  uint32_t payload = body(r, op, s, &used), n = s->n - 1 - used;
  tarn_term *kid = TARN_ARRAY(r->cx, tarn_term, n ? n : 1);
  uint32_t *type = TARN_ARRAY(r->cx, uint32_t, n ? n : 1);
  for (uint32_t i = 0; i < n; i++) {
    kid[i] = term(r, s->kid[1 + used + i]);
    type[i] = tarn_term_get(r->L, kid[i])->type;
  }
  if (tarn_type_of(r->L, op, payload, type, n) == TARN_NONE)
    tarn_sx_error(r->cx, s, "%s", tarn_message(r->cx));
  return tarn_mk(r->L, op, payload, kid, n);
}

static void read_node(const reading *r, const tarn_sx *s) {
  bool fresh;
  if (s->n != 3) tarn_sx_error(r->cx, s, "(node %%k TERM) is expected");
  tarn_term t = operator(r, s->kid[2]);
  uint64_t *at = tarn_map_at(r->node, label(r, s->kid[1], '%'), &fresh);
  if (!fresh) tarn_sx_error(r->cx, s, "%s is named twice", s->kid[1]->text);
  *at = (uint64_t)t + 1;
}

/* (nest !k (stages …)): what (nest !k %a…) stands for */
static void read_nest(const reading *r, const tarn_sx *s) {
  bool fresh;
  uint32_t used = 0;
  if (s->n != 3) tarn_sx_error(r->cx, s, "(nest !k STAGES) is expected");
  tarn_sx *kid[2] = {s->kid[0], s->kid[2]}, plain = *s;
  plain.kid = kid, plain.n = 2;
  uint32_t payload = tarn_payload_parse(r->L, TARN_OP_NEST, &plain, &used);
  uint64_t *at = tarn_map_at(r->nest, label(r, s->kid[1], '!'), &fresh);
  if (!fresh) tarn_sx_error(r->cx, s, "%s is named twice", s->kid[1]->text);
  *at = payload;
}

/* ---------------------------------------------------------------- steps */

static uint32_t lemma_of(const reading *r, const tarn_sx *s) {
  const uint64_t *at = tarn_map_get(r->lemma, read_number(r, s));
  if (!at) tarn_sx_error(r->cx, s, "no earlier lemma has this number");
  return (uint32_t)*at - 1;
}

static tarn_term *terms(const reading *r, const tarn_sx *s, uint32_t from, uint32_t *n) {
  tarn_term *t = TARN_ARRAY(r->cx, tarn_term, s->n);
  *n = s->n - from;
  for (uint32_t i = from; i < s->n; i++) t[i - from] = term(r, s->kid[i]);
  return t;
}

static int64_t integer(const reading *r, const tarn_sx *s) {
  if (s->kind != TARN_SX_INT) tarn_sx_error(r->cx, s, "an integer is expected");
  return s->i;
}

/* (?a %3), (?*xs %4 %5), (?k 2), (?p (1 0)) */
static pf_bind binding(const reading *r, const tarn_sx *s) {
  pf_bind b = {.name = element(r, s, 0)->text, .kind = 'g'};
  const tarn_sx *first = s->n == 2 ? s->kid[1] : NULL;
  if (strncmp(b.name, "?*", 2) == 0) {
    b.term = terms(r, s, 1, &b.n);
    return b;
  }
  if (!first)
    tarn_sx_error(r->cx, s, "(?a TERM), (?*a TERM…), (?a INT) or (?a (INT…)) is expected");
  b.kind = first->kind == TARN_SX_ATOM ? 'c' : first->kind == TARN_SX_LIST ? 'l' : 'i';
  b.n = b.kind == 'l' ? first->n : 1;
  int64_t *v = TARN_ARRAY(r->cx, int64_t, b.n + 1u);
  for (uint32_t i = 0; i < b.n && b.kind != 'c'; i++)
    v[i] = integer(r, b.kind == 'l' ? first->kid[i] : first);
  if (b.kind == 'c') b.term = terms(r, s, 1, &b.n);
  else b.value = v;
  return b;
}

static void bindings(const reading *r, const tarn_sx *s, pf_step *to) {
  pf_bind *b = TARN_ARRAY(r->cx, pf_bind, s->n);
  for (uint32_t i = 1; i < s->n; i++) b[i - 1] = binding(r, s->kid[i]);
  to->bind = b, to->nbind = s->n - 1;
}

static void detail(const reading *r, const tarn_sx *s, pf_step *to, uint32_t *lemma) {
  uint32_t n = s->kind == TARN_SX_LIST && s->n ? s->n - 1 : 0;
  bool kid = tarn_sx_is(s, "kid") && (n == 2 || (n == 3 && tarn_sx_atom_is(s->kid[3], "back")));
  if (kid && to->kind == PF_CONGRUENCE && read_number(r, s->kid[1]) < to->nlemma)
    lemma[read_number(r, s->kid[1])] = 2 * lemma_of(r, s->kid[2]) + (n == 3);
  else if (tarn_sx_is(s, "where") && to->kind == PF_RULE) bindings(r, s, to);
  else if (tarn_sx_is(s, "with")) to->extra = terms(r, s, 1, &to->nextra);
  else if (tarn_sx_is(s, "at") && n == 1) to->at = term(r, s->kid[1]);
  else if (tarn_sx_is(s, "slot") && n == 1) to->slot = read_number(r, s->kid[1]);
  else if (tarn_sx_is(s, "open")) {
    uint32_t *open = TARN_ARRAY(r->cx, uint32_t, n + 1u);
    for (uint32_t i = 0; i < n; i++) open[i] = read_number(r, s->kid[1 + i]);
    to->open = open, to->nopen = n;
  } else tarn_sx_error(r->cx, s, "no such part of a step");
}

static bool direction(const reading *r, const tarn_sx *s) {
  bool forward = tarn_sx_atom_is(s, "->");
  if (!forward && !tarn_sx_atom_is(s, "<-")) tarn_sx_error(r->cx, s, "-> or <- is expected");
  return forward;
}

static void read_step(const reading *r, const tarn_sx *s) {
  pf_step to = {.kind = PF_RULE, .forward = true, .at = TARN_NONE, .slot = TARN_NONE};
  if (!tarn_sx_is(s, "step")) tarn_sx_error(r->cx, s, "a step is expected");
  to.number = read_number(r, element(r, s, 1));
  const tarn_sx *what = element(r, s, 2);
  while (to.kind <= PF_LEMMA && !tarn_sx_atom_is(what, pf_kind_name[to.kind])) to.kind++;
  if (to.kind > PF_LEMMA)
    tarn_sx_error(r->cx, what, "rule, norm, value, congruence or lemma is expected");
  bool way = to.kind == PF_RULE || to.kind == PF_LEMMA;
  uint32_t at = way ? 5 : 3, *lemma;
  if (way) to.forward = direction(r, element(r, s, 4));
  if (to.kind == PF_RULE) to.rule = element(r, s, 3)->text;
  to.before = term(r, element(r, s, at));
  to.after = term(r, element(r, s, at + 1));
  to.nlemma = to.kind == PF_LEMMA        ? 1
              : to.kind == PF_CONGRUENCE ? tarn_term_get(r->L, to.before)->n
                                         : 0;
  lemma = TARN_ARRAY(r->cx, uint32_t, to.nlemma + 1u);
  for (uint32_t i = 0; i < to.nlemma; i++) lemma[i] = TARN_NONE;
  if (to.kind == PF_LEMMA) lemma[0] = 2 * lemma_of(r, element(r, s, 3));
  to.lemma = lemma;
  for (at += 2; at < s->n; at++) detail(r, s->kid[at], &to, lemma);
  tarn_push(r->cx, &r->p->step, to);
}

/* (lemma K [(for PARAMETER…)] FROM TO STEP…) */
static void read_lemma(const reading *r, const tarn_sx *s) {
  pf_lemma l = {.first = r->p->step.n};
  uint32_t k = read_number(r, element(r, s, 1)), at = 2;
  bool fresh;
  if (tarn_sx_is(element(r, s, at), "for")) l.param = terms(r, s->kid[at++], 1, &l.nparam);
  for (uint32_t i = 0; i < l.nparam; i++)
    if (tarn_term_get(r->L, l.param[i])->op != TARN_OP_INPUT)
      tarn_sx_error(r->cx, s->kid[2], "a parameter is no input");
  l.from = term(r, element(r, s, at));
  l.to = term(r, element(r, s, at + 1));
  for (uint32_t i = at + 2; i < s->n; i++) read_step(r, s->kid[i]);
  l.n = r->p->step.n - l.first;
  tarn_push(r->cx, &r->p->lemma, l);
  uint64_t *slot = tarn_map_at(r->lemma, k, &fresh);
  if (!fresh) tarn_sx_error(r->cx, s, "two lemmas have the number %u", k);
  *slot = r->p->lemma.n;
}

pf_proof *pf_read(tarn_lang *L, const tarn_sx *s, const tarn_map *known) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  pf_proof *p = TARN_NEW(cx, pf_proof);
  reading r = {L, cx, p, tarn_map_new(cx), tarn_map_new(cx), tarn_map_new(cx), s, known};
  *p = (pf_proof){.L = L, .from = TARN_NONE, .to = TARN_NONE, .range = tarn_map_new(cx)};
  if (!tarn_sx_is(s, "proof") || s->n < 2) tarn_sx_error(cx, s, "(proof NAME …) is expected");
  p->output = s->kid[1]->text;
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (tarn_sx_is(f, "node")) read_node(&r, f);
    else if (tarn_sx_is(f, "nest")) read_nest(&r, f);
    else if (tarn_sx_is(f, "lemma")) read_lemma(&r, f);
    else if (tarn_sx_is(f, "theorem"))
      p->from = term(&r, element(&r, f, 1)), p->to = term(&r, element(&r, f, 2));
    else if (!tarn_sx_is(f, "bytes"))
      tarn_sx_error(cx, f, "nest, node, lemma, theorem or bytes is expected");
  }
  if (p->from == TARN_NONE) tarn_sx_error(cx, s, "no theorem is stated");
  return p;
}
