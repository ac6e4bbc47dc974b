/* Terms and rules as text, for operators that have names; and joins that many analyses need. */
#include "egraph/pattern.h"

#include <string.h>

typedef struct reading {
  tarn_ctx *cx;
  const tarn_eg_names *names;
  const char *text;
  tarn_egraph *g; /* terms */
  uint32_t result;
  tarn_eg_rules *rules; /* rules */
  const char *name;
  const tarn_eg_condition *conditions;
  uint32_t n_conditions;
  TARN_VEC(const char *) var;
} reading;

const char *tarn_eg_op_name(const tarn_eg_names *names, uint32_t op) {
  for (uint32_t i = 0; names->op[i]; i++)
    if (i == op) return names->op[i];
  return "?";
}

static void op_of(const reading *r, const tarn_sx *s, uint32_t *op, uint32_t *payload) {
  *op = r->names->number, *payload = 0;
  if (s->kind == TARN_SX_INT && *op != NONE) {
    if (s->i < 0 || s->i >= UINT32_MAX - 1)
      tarn_sx_error(r->cx, s, "numbers are from 0 to 4294967293");
    *payload = (uint32_t)s->i + 1;
    return;
  }
  if (s->kind == TARN_SX_LIST) tarn_sx_error(r->cx, s, "expected the name of an operator");
  for (*op = 0; r->names->op[*op]; ++*op)
    if (!strcmp(r->names->op[*op], s->text)) return;
  tarn_sx_error(r->cx, s, "no operator is called %s", s->text);
}

static const tarn_sx *head_of(const reading *r, const tarn_sx *s) {
  if (s->kind != TARN_SX_LIST) return s;
  if (!s->n) tarn_sx_error(r->cx, s, "expected an operator and its operands");
  return s->kid[0];
}

/* ---- terms ---- */

typedef struct frame {
  const tarn_sx *s;
  uint32_t done; /* operands whose ids are there */
} frame;
static uint32_t add_term(reading *r, const tarn_sx *s) {
  TARN_VEC(frame) open = {0};
  TARN_VEC(uint32_t) ids = {0};
  frame top = {s, 0};
  for (tarn_push(r->cx, &open, top); open.n;) {
    frame *f = &open.p[open.n - 1];
    uint32_t op, payload, n = f->s->kind == TARN_SX_LIST && f->s->n ? f->s->n - 1 : 0;
    if (f->done < n) {
      frame kid = {f->s->kid[++f->done], 0};
      tarn_push(r->cx, &open, kid);
      continue;
    }
    op_of(r, head_of(r, f->s), &op, &payload);
    ids.n -= n;
    uint32_t id = tarn_eg_add_exact(r->g, op, payload, ids.p + ids.n, n);
    if (id == NONE) tarn_raise(r->cx, tarn_eg_status(r->g), "%s", tarn_eg_message(r->g));
    tarn_push(r->cx, &ids, id);
    open.n--;
  }
  return ids.p[0];
}

static void read_term(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  r->cx = cx;
  tarn_sx *s = tarn_sx_read(cx, r->text, strlen(r->text), "term");
  if (s->n != 1) tarn_raise(cx, TARN_USAGE, "one term is expected, not %u", s->n);
  r->result = add_term(r, s->kid[0]);
}

/* Runs fn in a context of its own; what it raises becomes the status of m. */
static bool run_apart(reading *r, tarn_fn *fn, eg_mem *m) {
  tarn_ctx *cx = tarn_ctx_new(&m->a);
  if (!cx) {
    eg_fail(m, TARN_MEMORY, "egraph: out of memory");
    return false;
  }
  tarn_status st = tarn_protect(cx, fn, r);
  if (st != TARN_OK && m->st == TARN_OK) eg_fail(m, st, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
  return st == TARN_OK;
}

uint32_t tarn_eg_add_text(tarn_egraph *g, const tarn_eg_names *names, const char *text) {
  reading r = {.names = names, .text = text, .g = g, .result = NONE};
  return run_apart(&r, read_term, &g->mem) ? r.result : NONE;
}

/* ---- rules ---- */

static uint32_t variable(reading *r, const char *name) {
  for (uint32_t i = 0; i < r->var.n; i++)
    if (!strcmp(r->var.p[i], name)) return i;
  tarn_push(r->cx, &r->var, name);
  return r->var.n - 1;
}

enum { MOST_DEPTH = 200 };
static const tarn_eg_pat *pattern(reading *r, const tarn_sx *s) {
  tarn_eg_pat *p = TARN_NEW(r->cx, tarn_eg_pat);
  *p = (tarn_eg_pat){.kind = TARN_EG_PAT_VAR, .var = NONE};
  if (s->kind == TARN_SX_ATOM && s->text[0] == '?') {
    if (s->text[1] == '*') tarn_sx_error(r->cx, s, "rows of operands are for tarn_eg_rules_add()");
    p->var = variable(r, s->text);
    return p;
  }
  p->kind = TARN_EG_PAT_NODE;
  op_of(r, head_of(r, s), &p->op, &p->payload);
  p->n = s->kind == TARN_SX_LIST ? s->n - 1 : 0;
  const tarn_eg_pat **kid = TARN_ARRAY(r->cx, const tarn_eg_pat *, p->n + 1);
  for (uint32_t i = 0; i < p->n; i++) kid[i] = pattern(r, s->kid[i + 1]);
  p->kids = kid;
  return p;
}

static void read_rule(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  r->cx = cx;
  tarn_sx *s = tarn_sx_read(cx, r->text, strlen(r->text), r->name ? r->name : "rule");
  tarn_sx_limit(cx, s, MOST_DEPTH);
  if (s->n != 3 || !tarn_sx_atom_is(s->kid[1], "=>"))
    tarn_sx_error(cx, s, "expected LEFT => RIGHT");
  tarn_eg_root left = {NONE, pattern(r, s->kid[0])}, right = {NONE, pattern(r, s->kid[2])};
  tarn_eg_rule rule = {.name = r->name ? r->name : r->text,
                       .id = tarn_eg_rules_count(r->rules),
                       .lhs = &left,
                       .n_lhs = 1,
                       .conditions = r->conditions,
                       .n_conditions = r->n_conditions,
                       .rhs = &right,
                       .n_rhs = 1};
  r->result = tarn_eg_rules_add(r->rules, &rule);
  if (r->result == NONE)
    tarn_raise(cx, tarn_eg_rules_status(r->rules), "%s", tarn_eg_rules_message(r->rules));
}

uint32_t tarn_eg_rules_add_text(tarn_eg_rules *rs, const tarn_eg_names *names, const char *name,
                                const char *text, const tarn_eg_condition *conditions,
                                uint32_t n_conditions) {
  reading r = {.names = names,
               .text = text,
               .rules = rs,
               .name = name,
               .conditions = conditions,
               .n_conditions = n_conditions,
               .result = NONE};
  rs->mem.st = TARN_OK;
  return run_apart(&r, read_rule, &rs->mem) ? r.result : NONE;
}

/* ---- joins ---- */

unsigned tarn_eg_join_known(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user, (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  if (*a && b) return TARN_EG_JOIN_FAIL;
  if (!b) return TARN_EG_JOIN_B;
  *a = b;
  return TARN_EG_JOIN_A;
}

unsigned tarn_eg_join_least(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user, (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  if (*a < b) return TARN_EG_JOIN_B;
  *a = b;
  return TARN_EG_JOIN_A;
}
