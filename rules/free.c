/* Free rule sets: untyped terms over any operator names, for `explore --free`. */
#include "rules/internal.h"
#include <stdio.h>
#include <string.h>

uint32_t tarn_free_add(const tarn_ruleset *rs, tarn_egraph *g, const tarn_sx *s) {
  const tarn_sx *head = s->kind == TARN_SX_LIST && s->n ? s->kid[0] : s;
  if (head->kind == TARN_SX_LIST) tarn_sx_error(rs->cx, s, "expected an operator");
  uint32_t n = s->kind == TARN_SX_LIST ? s->n - 1 : 0;
  uint32_t *kid = TARN_ARRAY(rs->cx, uint32_t, n ? n : 1);
  for (uint32_t i = 0; i < n; i++) kid[i] = tarn_free_add(rs, g, s->kid[i + 1]);
  uint32_t op = tarn_intern_add(rs->symbol, head->text, head->len);
  uint32_t id = tarn_eg_add_exact(g, op, 0, kid, n);
  if (id == TARN_NONE) tarn_raise(rs->cx, tarn_eg_status(g), "%s", tarn_eg_message(g));
  return id;
}

void tarn_free_name(const tarn_ruleset *rs, uint32_t op, uint32_t payload, char *buf, size_t n) {
  size_t len;
  const char *s = tarn_intern_key(rs->symbol, op, &len);
  (void)payload;
  snprintf(buf, n, "%.*s", (int)len, s);
}

static tarn_eg_pat *translate(const tarn_ruleset *rs, const rpat *p) {
  tarn_eg_pat *q = TARN_NEW(rs->cx, tarn_eg_pat);
  if (p->kind != RP_NODE) {
    *q = (tarn_eg_pat){.kind = p->kind == RP_SEG ? TARN_EG_PAT_SEG : TARN_EG_PAT_VAR, .var = p->var};
    return q;
  }
  tarn_eg_pat const **kid = TARN_ARRAY(rs->cx, const tarn_eg_pat *, p->n ? p->n : 1);
  for (uint32_t i = 0; i < p->n; i++) kid[i] = translate(rs, p->kid[i]);
  bool bind = p->op == TARN_NONE;
  *q = (tarn_eg_pat){.kind = TARN_EG_PAT_NODE, .var = TARN_NONE, .op_how = bind ? TARN_EG_BIND : TARN_EG_EXACT,
                     .op = bind ? p->opvar : p->op, .payload_how = TARN_EG_EXACT, .payload = 0,
                     .kids = kid, .n = p->n};
  return q;
}

static tarn_eg_root *roots(const tarn_ruleset *rs, const rroot *r, uint32_t n) {
  tarn_eg_root *q = TARN_ARRAY(rs->cx, tarn_eg_root, n);
  for (uint32_t i = 0; i < n; i++) q[i] = (tarn_eg_root){r[i].var, translate(rs, r[i].pat)};
  return q;
}

void free_sides(const tarn_ruleset *rs, const rule *r, tarn_eg_rule *e) {
  e->lhs = roots(rs, r->lhs, r->nlhs), e->n_lhs = r->nlhs;
  e->rhs = roots(rs, r->rhs, r->nrhs), e->n_rhs = r->nrhs;
}

static void free_set(void *arg) { tarn_eg_rules_free(arg); }

tarn_eg_rules *tarn_free_rules(const tarn_ruleset *rs) {
  tarn_eg_rules *out = tarn_eg_rules_new(tarn_ctx_allocator(rs->cx));
  if (!out) tarn_raise(rs->cx, TARN_MEMORY, "rules: out of memory");
  tarn_defer(rs->cx, free_set, out);
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    const rule *r = rs->rule.p[i];
    tarn_eg_rule e = {.name = r->name, .id = i};
    free_sides(rs, r, &e);
    if (r->ncond) tarn_sx_error(rs->cx, r->at, "a rule of a free set takes no conditions");
    if (tarn_eg_rules_add(out, &e) != TARN_NONE) continue;
    if (tarn_eg_rules_status(out) == TARN_MEMORY) tarn_raise(rs->cx, TARN_MEMORY, "%s", tarn_eg_rules_message(out));
    tarn_sx_error(rs->cx, r->at, "%s", tarn_eg_rules_message(out));
  }
  return out;
}
