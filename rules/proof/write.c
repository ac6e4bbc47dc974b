/* Writes a proof: each term is named where it is first needed, and large constants only by their
 * fingerprints and bounds. */
#include "rules/proof/proof.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct writing {
  const pf_proof *p;
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_buf *b;
  tarn_map *name;           /* term -> its number + 1 */
  tarn_map *nest;           /* payload of a nest -> its number + 1 */
  TARN_VEC(uint32_t) bytes; /* payloads of constants whose bytes stand at the end */
} writing;

static bool one_value(const tarn_tensor *t) {
  size_t each = tarn_dtype_size(t->dtype), all = tarn_tensor_bytes(t);
  return all > each && memcmp(t->data, (const char *)t->data + each, all - each) == 0;
}

/* ---------------------------------------------------------------- constants */

uint64_t pf_fingerprint(const tarn_tensor *t) {
  return tarn_hash_bytes(t->data, tarn_tensor_bytes(t), 0);
}

void pf_bounds_of(const tarn_tensor *t, double bounds[2]) {
  bool nan = false;
  bounds[0] = INFINITY, bounds[1] = -INFINITY;
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++) {
    tarn_value v = tarn_tensor_get(t, i);
    double x = tarn_dtype_is_float(t->dtype) ? v.d
               : t->dtype == TARN_U64        ? (double)(uint64_t)v.i
                                             : (double)v.i;
    bounds[0] = fmin(bounds[0], x), bounds[1] = fmax(bounds[1], x);
    nan |= isnan(x);
  }
  if (nan) bounds[0] = -INFINITY, bounds[1] = INFINITY;
}

tarn_term pf_stand_in(tarn_lang *L, tarn_term t) {
  const tarn_node *x = tarn_term_get(L, t);
  const tarn_tensor *v = x->op == TARN_OP_CONST ? tarn_payload_get(L, x->payload)->tensor : NULL;
  if (!v || tarn_tensor_count(v) <= PF_WRITTEN || tarn_tensor_bytes(v) <= PF_BYTES || one_value(v))
    return TARN_NONE;
  return tarn_input(L, tarn_format(tarn_lang_ctx(L), PF_CONST "%016" PRIx64, pf_fingerprint(v)),
                    x->type);
}

static void fingerprint(writing *w, const tarn_tensor *t) {
  double v[2];
  pf_bounds_of(t, v);
  tarn_buf_fmt(w->b, " (hash \"%016" PRIx64 "\") (range ", pf_fingerprint(t));
  tarn_buf_double(w->b, v[0]);
  tarn_buf_str(w->b, " ");
  tarn_buf_double(w->b, v[1]);
  tarn_buf_str(w->b, ")");
}

static void constant(writing *w, tarn_term c) {
  uint32_t payload = tarn_term_get(w->L, c)->payload;
  const tarn_payload *p = tarn_payload_get(w->L, payload);
  const tarn_tensor *t = p->tensor;
  bool carried = w->p->carried && tarn_map_get(w->p->carried, c);
  tarn_buf_str(w->b, "(tensor ");
  tarn_sx_string(w->b, p->name, strlen(p->name));
  tarn_buf_str(w->b, " ");
  tarn_type_print(w->L, w->b, p->type);
  if (one_value(t)) {
    tarn_value v = tarn_tensor_get(t, 0);
    tarn_buf_str(w->b, " (fill ");
    if (tarn_dtype_is_float(t->dtype))
      tarn_fx_print(w->L, w->b, tarn_fx_const(w->L, t->dtype, v.d));
    else tarn_fx_print(w->L, w->b, tarn_fx_iconst(w->L, t->dtype, v.i));
    tarn_buf_str(w->b, ")");
  } else if (carried || tarn_tensor_bytes(t) <= PF_BYTES) {
    tarn_buf_str(w->b, " (bytes)");
    tarn_push(w->cx, &w->bytes, payload);
  } else fingerprint(w, t);
  tarn_buf_str(w->b, ")");
}

static void all_bytes(writing *w) {
  for (uint32_t i = 0; i < w->bytes.n; i++) {
    const tarn_payload *p = tarn_payload_get(w->L, w->bytes.p[i]);
    const uint8_t *d = p->tensor->data;
    tarn_buf_str(w->b, "\n  (bytes ");
    tarn_sx_string(w->b, p->name, strlen(p->name));
    tarn_buf_str(w->b, " \"");
    for (size_t k = 0; k < tarn_tensor_bytes(p->tensor); k++) tarn_buf_fmt(w->b, "%02x", d[k]);
    tarn_buf_str(w->b, "\")");
  }
}

/* ---------------------------------------------------------------- terms */

static uint32_t number_of(const writing *w, tarn_term t) {
  return (uint32_t)*tarn_map_get(w->name, t) - 1;
}

/* A nest is long, and many terms have the same one. */
static uint32_t nest(writing *w, uint32_t payload) {
  bool fresh;
  uint64_t *at = tarn_map_at(w->nest, payload, &fresh);
  if (!fresh) return (uint32_t)*at - 1;
  *at = tarn_map_count(w->nest);
  tarn_buf_fmt(w->b, "\n  (nest !%u", tarn_map_count(w->nest) - 1);
  tarn_payload_print(w->L, w->b, TARN_OP_NEST, payload);
  tarn_buf_str(w->b, ")");
  return tarn_map_count(w->nest) - 1;
}

static void node(writing *w, tarn_term t, uint32_t named) {
  const tarn_node *x = tarn_term_get(w->L, t);
  bool big = x->op == TARN_OP_CONST &&
             tarn_tensor_count(tarn_payload_get(w->L, x->payload)->tensor) > PF_WRITTEN;
  uint32_t body = x->op == TARN_OP_NEST ? nest(w, x->payload) : 0;
  tarn_buf_fmt(w->b, "\n  (node %%%u ", named);
  if (big) constant(w, t);
  else {
    tarn_buf_fmt(w->b, "(%s", tarn_op_info(x->op)->text);
    if (x->op == TARN_OP_NEST) tarn_buf_fmt(w->b, " !%u", body);
    else tarn_payload_print(w->L, w->b, x->op, x->payload);
    for (uint32_t i = 0; i < x->n; i++) tarn_buf_fmt(w->b, " %%%u", number_of(w, x->kid[i]));
    tarn_buf_str(w->b, ")");
  }
  tarn_buf_str(w->b, ")");
}

/* Names a term and what it is made of, kids first. */
static void need(writing *w, tarn_term t) {
  TARN_VEC(tarn_term) todo = {0};
  bool fresh;
  if (t == TARN_NONE || tarn_map_get(w->name, t)) return;
  tarn_push(w->cx, &todo, t);
  while (todo.n) {
    tarn_term top = todo.p[todo.n - 1];
    const tarn_node *x = tarn_term_get(w->L, top);
    uint32_t have = todo.n;
    for (uint32_t i = x->n; i-- > 0;)
      if (!tarn_map_get(w->name, x->kid[i])) tarn_push(w->cx, &todo, x->kid[i]);
    if (todo.n > have) continue;
    todo.n--;
    if (tarn_map_get(w->name, top)) continue;
    uint64_t *name = tarn_map_at(w->name, top, &fresh);
    *name = tarn_map_count(w->name);
    node(w, top, tarn_map_count(w->name) - 1);
  }
}

/* ---------------------------------------------------------------- steps */

static void numbers(writing *w, const char *head, uint32_t n, const uint32_t *v) {
  if (n == 0) return;
  tarn_buf_fmt(w->b, " (%s", head);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(w->b, " %u", v[i]);
  tarn_buf_str(w->b, ")");
}

static void named(writing *w, const char *head, uint32_t n, const tarn_term *t) {
  if (n == 0) return;
  tarn_buf_fmt(w->b, " (%s", head);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(w->b, " %%%u", number_of(w, t[i]));
  tarn_buf_str(w->b, ")");
}

/* (where (?a %3) (?*xs %4 %5) (?k 2) (?p (1 0))) */
static void bindings(writing *w, const pf_step *s) {
  if (s->nbind) tarn_buf_str(w->b, " (where");
  for (uint32_t i = 0; i < s->nbind; i++) {
    const pf_bind *v = &s->bind[i];
    tarn_buf_fmt(w->b, " (%s%s", v->name, v->kind == 'l' ? " (" : "");
    for (uint32_t k = 0; k < v->n && v->term; k++)
      tarn_buf_fmt(w->b, " %%%u", number_of(w, v->term[k]));
    for (uint32_t k = 0; k < v->n && v->value; k++)
      tarn_buf_fmt(w->b, "%s%" PRId64, k || v->kind == 'i' ? " " : "", v->value[k]);
    tarn_buf_str(w->b, v->kind == 'l' ? "))" : ")");
  }
  if (s->nbind) tarn_buf_str(w->b, ")");
}

static void step(writing *w, uint32_t i) {
  const pf_step *s = &w->p->step.p[i];
  bool cong = s->kind == PF_CONGRUENCE, way = s->kind == PF_RULE || s->kind == PF_LEMMA;
  tarn_buf_fmt(w->b, "\n    (step %u %s", i + 1, pf_kind_name[s->kind]);
  if (s->kind == PF_RULE) tarn_buf_fmt(w->b, " %s", s->rule);
  if (s->kind == PF_LEMMA) tarn_buf_fmt(w->b, " %u", s->lemma[0] / 2);
  if (way) tarn_buf_str(w->b, s->forward ? " ->" : " <-");
  tarn_buf_fmt(w->b, " %%%u %%%u", number_of(w, s->before), number_of(w, s->after));
  for (uint32_t k = 0; cong && k < s->nlemma; k++)
    if (s->lemma[k] != TARN_NONE)
      tarn_buf_fmt(w->b, " (kid %u %u%s)", k, s->lemma[k] / 2, s->lemma[k] % 2 ? " back" : "");
  if (s->at != TARN_NONE) named(w, "at", 1, &s->at);
  if (s->slot != TARN_NONE) numbers(w, "slot", 1, &s->slot);
  numbers(w, "open", s->nopen, s->open);
  named(w, "with", s->nextra, s->extra);
  bindings(w, s);
  tarn_buf_str(w->b, ")");
}

static void lemma(writing *w, uint32_t i) {
  const pf_lemma *l = &w->p->lemma.p[i];
  for (uint32_t k = 0; k < l->nparam; k++) need(w, l->param[k]);
  need(w, l->from);
  for (uint32_t k = 0; k < l->n; k++) {
    const pf_step *s = &w->p->step.p[l->first + k];
    need(w, s->before), need(w, s->at), need(w, s->after);
    for (uint32_t e = 0; e < s->nextra; e++) need(w, s->extra[e]);
  }
  need(w, l->to);
  tarn_buf_fmt(w->b, "\n  (lemma %u", i);
  named(w, "for", l->nparam, l->param);
  tarn_buf_fmt(w->b, " %%%u %%%u", number_of(w, l->from), number_of(w, l->to));
  for (uint32_t k = 0; k < l->n; k++) step(w, l->first + k);
  tarn_buf_str(w->b, ")");
}

/* ---------------------------------------------------------------- what the rules say */

/* As comments, in the order of first use. */
static void legend(writing *w, const tarn_ruleset *rs) {
  tarn_map *seen = tarn_map_new(w->cx);
  tarn_buf_fmt(w->b, "; %u steps in %u lemmas\n", w->p->step.n, w->p->lemma.n);
  for (uint32_t i = 0; i < w->p->step.n; i++) {
    const pf_step *s = &w->p->step.p[i];
    bool fresh;
    uint32_t k = s->kind == PF_RULE ? tarn_ruleset_find(rs, s->rule) : TARN_NONE;
    if (k == TARN_NONE) continue;
    tarn_map_at(seen, k, &fresh);
    if (fresh)
      tarn_buf_fmt(w->b, "; %s: %s\n", s->rule,
                   rs->rule.p[k]->doc ? tarn_shown(w->cx, rs->rule.p[k]->doc) : "");
  }
}

void pf_write(const pf_proof *p, const tarn_ruleset *rs, tarn_buf *b) {
  writing w = {.p = p,
               .L = p->L,
               .cx = tarn_lang_ctx(p->L),
               .b = b,
               .name = tarn_map_new(tarn_lang_ctx(p->L)),
               .nest = tarn_map_new(tarn_lang_ctx(p->L))};
  legend(&w, rs);
  tarn_buf_str(b, "(proof ");
  tarn_sx_string(b, p->output, strlen(p->output));
  for (uint32_t i = 0; i < p->lemma.n; i++) lemma(&w, i);
  tarn_buf_fmt(b, "\n  (theorem %%%u %%%u)", number_of(&w, p->from), number_of(&w, p->to));
  all_bytes(&w);
  tarn_buf_str(b, ")\n");
}
