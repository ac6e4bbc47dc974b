/* Reading rules. A file is a list of (family …), (rule …), (kernel …) and (phases …); a form that
 * does not parse, bind or match its kinds is refused with its place. Printing reproduces the text.
 */
#include "rules/lang/loops.h"
#include <string.h>

enum { MOST_DEPTH = 200 }; /* of a form: patterns and expressions are read by recursion */

static rroot *roots(reader *rd, const tarn_sx *s, uint32_t *n) {
  bool many = tarn_sx_is(s, "and") && s->n > 1 && tarn_sx_is(s->kid[1], "=");
  *n = many ? s->n - 1 : 1;
  rroot *r = TARN_ARRAY(rd->cx, rroot, *n);
  if (!many) {
    r[0] = (rroot){TARN_NONE, reader_pattern(rd, s)};
    return r;
  }
  for (uint32_t i = 0; i < *n; i++) {
    const tarn_sx *k = s->kid[i + 1];
    if (!tarn_sx_is(k, "=") || k->n != 3 || !reader_starts(k->kid[1], "?"))
      tarn_sx_error(rd->cx, k, "expected (= ?x PATTERN)");
    r[i].var = reader_class(rd, k->kid[1]);
    r[i].pat = reader_pattern(rd, k->kid[2]);
  }
  return r;
}

static void set_class(reader *rd, const tarn_sx *v) {
  if (v->kind != TARN_SX_ATOM || !tarn_rule_class_parse(v->text, &rd->r->numeric))
    tarn_sx_error(rd->cx, v, "expected exact, reassoc or approx");
}
static void set_bound(reader *rd, const tarn_sx *v) {
  if (v->kind != TARN_SX_REAL && v->kind != TARN_SX_INT)
    tarn_sx_error(rd->cx, v, "expected a number");
  rd->r->bound = v->r;
}
/* In a free set a pattern may be asked for: what must be there besides, a further root. */
static void add_demand(reader *rd, const tarn_sx *v) {
  rule *r = rd->r;
  if (!rd->rs->theory || v->kind != TARN_SX_LIST) return;
  rd->left = true;
  rpat *p = reader_pattern(rd, v);
  rd->left = false;
  rroot *more = TARN_ARRAY(rd->cx, rroot, r->nlhs + 1);
  memcpy(more, r->lhs, r->nlhs * sizeof *more);
  if (r->lhs[0].pat->kind == RP_VAR)
    more[0] = (rroot){TARN_NONE, p}; /* ?x alone: what is asked for says which */
  else more[r->nlhs++] = (rroot){TARN_NONE, p};
  r->lhs = more;
}
static void set_grows(reader *rd, const tarn_sx *v) {
  rd->r->grows = tarn_sx_atom_is(v, "true");
  if (!rd->r->grows && !tarn_sx_atom_is(v, "false"))
    tarn_sx_error(rd->cx, v, "expected true or false");
}
static rx *condition(reader *rd, const tarn_sx *v) {
  if (rd->rs->theory) {
    rx *c = reader_rx(rd, v);
    c->kind = RX_FREE, c->type = 'b', c->free = rd->rs->theory->condition(rd->rs, rd->r, v);
    return c;
  }
  rx *x = reader_expression(rd, v);
  if (x->type != 'b') tarn_sx_error(rd->cx, v, "is no condition (kind '%c')", x->type);
  return x;
}
/* Is it a rule over what a kernel computes that a nest reads? */
static bool has_inner(const rule *r) { return r->loops && r->loops->inner; }
static bool is_set(reader *rd, const tarn_sx *v) {
  bool is = tarn_sx_atom_is(v, "true");
  if (!has_inner(rd->r)) tarn_sx_error(rd->cx, v, "the left side reads no kernel");
  if (!is && !tarn_sx_atom_is(v, "false")) tarn_sx_error(rd->cx, v, "expected true or false");
  return is;
}
static void set_first(reader *rd, const tarn_sx *v) { rd->r->first = is_set(rd, v); }
static void set_wide(reader *rd, const tarn_sx *v) { rd->r->wide = is_set(rd, v); }
/* (:along (WHERE OTHERS)) */
static void set_along(reader *rd, const tarn_sx *v) {
  if (v->kind != TARN_SX_LIST || v->n != 2 || !has_inner(rd->r))
    tarn_sx_error(rd->cx, v, "expected two conditions, in a rule whose left side reads a kernel");
  rd->r->along = condition(rd, v->kid[0]), rd->r->others = condition(rd, v->kid[1]);
}
static void set_subsume(reader *rd, const tarn_sx *v) {
  rule *r = rd->r;
  r->subsumes = tarn_sx_atom_is(v, "true");
  if (v->kind == TARN_SX_LIST && has_inner(r)) r->subsumes_if = condition(rd, v);
  else if (!r->subsumes && !tarn_sx_atom_is(v, "false"))
    tarn_sx_error(rd->cx, v, "expected true or false");
  if (rd->rs->theory && rd->r->lhs[0].pat->kind != RP_NODE)
    tarn_sx_error(rd->cx, v, "there is no node that could be subsumed");
}
static void set_open(reader *rd, const tarn_sx *v) {
  rd->r->open = tarn_sx_atom_is(v, "true");
  if (!rd->r->open && !tarn_sx_atom_is(v, "false"))
    tarn_sx_error(rd->cx, v, "expected true or false");
}
static void set_demand(reader *rd, const tarn_sx *v) {
  if (rd->rs->theory && v->kind == TARN_SX_LIST) return;
  if (v->kind != TARN_SX_ATOM) tarn_sx_error(rd->cx, v, "expected the name of a demand");
  rd->r->demand = v->text;
}
static void set_doc(reader *rd, const tarn_sx *v) {
  if (v->kind != TARN_SX_STRING) tarn_sx_error(rd->cx, v, "expected a string");
  rd->r->doc = v->text;
}
static void bind_where(reader *rd, const tarn_sx *v, bool each) {
  rule *r = rd->r;
  if (v->kind != TARN_SX_LIST || v->n != 2 || !reader_starts(v->kid[0], "?"))
    tarn_sx_error(rd->cx, v, "expected (?v EXPRESSION)");
  rx *x = reader_expression(rd, v->kid[1]);
  if (each && x->type != 'l')
    tarn_sx_error(rd->cx, v, "expected a list of integers, not kind '%c'", x->type);
  uint32_t before = r->nattr;
  rd->left = true;
  uint32_t var = reader_attribute(rd, v->kid[0], each ? 'i' : x->type);
  rd->left = false;
  if (var != before) tarn_sx_error(rd->cx, v, "%s is bound already", v->kid[0]->text);
  r->where_var[r->nwhere] = var;
  r->where_each[r->nwhere] = each;
  r->where[r->nwhere++] = x;
}
static void add_where(reader *rd, const tarn_sx *v) { bind_where(rd, v, false); }
static void add_each(reader *rd, const tarn_sx *v) { bind_where(rd, v, true); }
static void add_condition(reader *rd, const tarn_sx *v) {
  rd->r->cond[rd->r->ncond++] = condition(rd, v);
}
static void add_guard(reader *rd, const tarn_sx *v) {
  rd->r->guard[rd->r->nguard++] = condition(rd, v);
}

static const struct option {
  const char *name;
  void (*set)(reader *rd, const tarn_sx *v);
  int when; /* before conditions, with them, after the right side */
} options[] = {{":if", add_condition, 1},  {":where", add_where, 1},     {":each", add_each, 1},
               {":table", loops_table, 1}, {":subsume", set_subsume, 2}, {":when", add_guard, 1},
               {":first", set_first, 2},   {":along", set_along, 2},     {":wide", set_wide, 2},
               {":class", set_class, 2},   {":bound", set_bound, 2},     {":demand", add_demand, 0},
               {":demand", set_demand, 2}, {":doc", set_doc, 2},         {":grows", set_grows, 2},
               {":open", set_open, 2}};
/* Of free sets: there is nothing to bind but terms, and no reals to be near. */
static const char *const free_options[] = {":if", ":when", ":demand", ":doc", ":grows", ":subsume"};
static bool allowed(const tarn_ruleset *rs, const char *name) {
  bool in = false;
  for (size_t i = 0; i < sizeof free_options / sizeof *free_options; i++)
    in |= !strcmp(name, free_options[i]);
  return rs->theory ? in : strcmp(name, ":grows") != 0;
}

static void read_options(reader *rd, const tarn_sx *s, int when) {
  for (uint32_t i = 5; i < s->n; i += 2) {
    const struct option *found = NULL;
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
      if (!tarn_sx_atom_is(s->kid[i], options[k].name) || !allowed(rd->rs, options[k].name))
        continue;
      found = &options[k];
      if (i + 1 == s->n) tarn_sx_error(rd->cx, s->kid[i], "%s needs a value", found->name);
      if (found->when == when) found->set(rd, s->kid[i + 1]);
    }
    if (!found)
      tarn_sx_error(
          rd->cx, s->kid[i],
          rd->rs->theory
              ? "expected :if, :when, :demand, :grows, :subsume or :doc"
              : "expected :if, :when, :where, :each, :table, :class, :bound, :demand, :subsume, "
                ":first, :along, :wide, :open or :doc");
  }
}

static void deferred_roots(reader *rd, rroot *r, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) reader_deferred(rd, r[i].pat);
}

static bool same_sx(const tarn_sx *a, const tarn_sx *b) {
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->kind != TARN_SX_LIST) return strcmp(a->text, b->text) == 0;
  for (uint32_t i = 0; i < a->n; i++)
    if (!same_sx(a->kid[i], b->kid[i])) return false;
  return true;
}

/* The right side; of <=> either is one. */
static const tarn_sx *side(tarn_ruleset *rs, const tarn_sx *s, uint32_t kid) {
  bool right = kid == 4 || tarn_sx_atom_is(s->kid[3], "<=>");
  const tarn_sx *x = right ? names_written_out(rs, s, s->kid[kid]) : s->kid[kid];
  if (x != s->kid[kid]) tarn_sx_limit(rs->cx, x, MOST_DEPTH);
  return x;
}

static rule *read_rule(tarn_ruleset *rs, const tarn_sx *s, const char *family,
                       tarn_rule_level level, bool back) {
  reader rd = {.rs = rs, .cx = rs->cx, .r = TARN_NEW(rs->cx, rule), .left = true};
  rule *r = rd.r;
  const tarn_sx *left = side(rs, s, back ? 4 : 2), *right = side(rs, s, back ? 2 : 4);
  if (same_sx(left, right)) tarn_sx_error(rs->cx, s, "left and right are the same");
  r->name = back ? tarn_format(rs->cx, "%s:back", s->kid[1]->text) : s->kid[1]->text;
  r->family = family;
  r->level = level;
  r->at = s;
  r->back = back;
  r->cond = TARN_ARRAY(rs->cx, rx *, s->n);
  r->guard = TARN_ARRAY(rs->cx, rx *, s->n);
  r->where = TARN_ARRAY(rs->cx, rx *, s->n);
  r->where_each = TARN_ARRAY(rs->cx, bool, s->n);
  r->where_var = TARN_ARRAY(rs->cx, uint32_t, s->n);
  if (level == TARN_RULE_KERNEL && loops_is_left(left)) loops_left(&rd, left);
  else r->lhs = roots(&rd, left, &r->nlhs);
  rd.left = false;
  deferred_roots(&rd, r->lhs, r->nlhs);
  uint32_t all = r->lhs[0].pat->kind == RP_VAR ? r->lhs[0].pat->var : TARN_NONE;
  read_options(&rd, s, 0);
  read_options(&rd, s, 1);
  if (r->loops) loops_right(&rd, right);
  else r->rhs = roots(&rd, right, &r->nrhs);
  read_options(&rd, s, 2);
  if (r->loops && r->loops->anywhere && r->loops->left->kind == LX_ANY && !r->ncond && !r->nguard &&
      !r->nwhere)
    tarn_sx_error(rs->cx, left, "the left side matches every expression");
  if (r->lhs[0].pat->kind != RP_NODE && !r->demand)
    tarn_sx_error(rs->cx, left, "the left side matches every term");
  if (all != TARN_NONE && r->lhs[0].pat->kind == RP_NODE && r->rhs[0].var == TARN_NONE)
    r->rhs[0].var = all;
  if (r->lhs[0].pat->kind == RP_SEG || r->rhs[0].pat->kind == RP_SEG)
    tarn_sx_error(rs->cx, s, "a row of terms is no term");
  return r;
}

rpat *tarn_r_right_pattern(tarn_ruleset *rs, rule *r, const tarn_sx *s) {
  reader rd = {.rs = rs, .cx = rs->cx, .r = r};
  return reader_pattern(&rd, s);
}

rule *tarn_r_left_pattern(tarn_ruleset *rs, const tarn_sx *s) {
  reader rd = {.rs = rs, .cx = rs->cx, .r = TARN_NEW(rs->cx, rule), .left = true};
  rd.r->at = s;
  tarn_sx_limit(rs->cx, s, MOST_DEPTH);
  rd.r->lhs = roots(&rd, s, &rd.r->nlhs);
  return rd.r;
}

rule *r_read_again(tarn_ruleset *rs, const rule *r) {
  for (uint32_t i = 0; r->hw && i < r->hw->nintrin; i++) tarn_hw_meaning_of(rs->L, r->hw, i);
  for (uint32_t i = 0; i < r->nwritten; i++) tarn_written_add(rs->L, r->written[i]);
  rule *q = read_rule(rs, r->at, r->family, r->level, r->back);
  q->both = r->both;
  q->hw = r->hw;
  return q;
}

static void add_rule(tarn_ruleset *rs, const tarn_sx *s, const char *family,
                     tarn_rule_level level) {
  if (s->n < 5 || s->kid[1]->kind != TARN_SX_ATOM)
    tarn_sx_error(rs->cx, s, "expected (rule NAME LEFT => RIGHT …)");
  bool both = tarn_sx_atom_is(s->kid[3], "<=>");
  if (!both && !tarn_sx_atom_is(s->kid[3], "=>"))
    tarn_sx_error(rs->cx, s->kid[3], "expected => or <=>");
  if (tarn_ruleset_find(rs, s->kid[1]->text) != TARN_NONE)
    tarn_sx_error(rs->cx, s, "there is a rule %s already", s->kid[1]->text);
  for (int back = 0; back <= both; back++) {
    rule *r = read_rule(rs, s, family, level, back);
    r->both = both;
    r->hw = rs->deriving;
    tarn_push(rs->cx, &rs->rule, r);
  }
}

/* ---------------------------------------------------------------- files */

static tarn_rule_level level_named(tarn_ruleset *rs, const tarn_sx *s) {
  if (rs->theory) return TARN_RULE_FREE;
  if (tarn_sx_atom_is(s, "kernel")) return TARN_RULE_KERNEL;
  if (tarn_sx_atom_is(s, "surface")) return TARN_RULE_SURFACE;
  tarn_sx_error(rs->cx, s, "expected surface or kernel");
}

static void add_family(tarn_ruleset *rs, const tarn_sx *s) {
  tarn_rule_level level = rs->theory ? TARN_RULE_FREE : TARN_RULE_SURFACE;
  if (s->n < 2 || s->kid[1]->kind != TARN_SX_ATOM)
    tarn_sx_error(rs->cx, s, "expected (family NAME …)");
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *k = s->kid[i];
    if (tarn_sx_atom_is(k, ":level") && i + 1 < s->n) level = level_named(rs, s->kid[++i]);
    else if (tarn_sx_atom_is(k, ":doc") && i + 1 < s->n) i++;
    else if (tarn_sx_is(k, "rule")) add_rule(rs, k, s->kid[1]->text, level);
    else tarn_sx_error(rs->cx, k, "expected (rule …)");
  }
}

/* (phases (NAME (FAMILY…) [:iterations N] [:forms N])…) */
static void phase_limits(tarn_ruleset *rs, const tarn_sx *k, rphase *p) {
  for (uint32_t i = 2; i < k->n; i += 2) {
    bool forms = tarn_sx_atom_is(k->kid[i], ":forms");
    if ((!forms && !tarn_sx_atom_is(k->kid[i], ":iterations")) || i + 1 == k->n ||
        k->kid[i + 1]->kind != TARN_SX_INT || k->kid[i + 1]->i < 1 || k->kid[i + 1]->i > UINT32_MAX)
      tarn_sx_error(rs->cx, k, "expected :iterations N or :forms N");
    *(forms ? &p->forms : &p->iterations) = (uint32_t)k->kid[i + 1]->i;
  }
}
static void add_phases(tarn_ruleset *rs, const tarn_sx *s) {
  for (uint32_t i = 1; i < s->n; i++) {
    const tarn_sx *k = s->kid[i];
    rphase p = {0};
    bool named = k->kind == TARN_SX_LIST && k->n > 1 && k->kid[0]->kind == TARN_SX_ATOM;
    if (!named || k->kid[1]->kind != TARN_SX_LIST)
      tarn_sx_error(rs->cx, k, "expected (NAME (FAMILY…) [:iterations N] [:forms N])");
    p.name = k->kid[0]->text, p.at = k->kid[1];
    p.nfamily = k->kid[1]->n;
    p.family = TARN_ARRAY(rs->cx, const char *, p.nfamily ? p.nfamily : 1);
    for (uint32_t j = 0; j < p.nfamily; j++) {
      const tarn_sx *name = k->kid[1]->kid[j];
      if (name->kind != TARN_SX_ATOM)
        tarn_sx_error(rs->cx, name, "expected the name of a family or rule");
      p.family[j] = name->text;
    }
    phase_limits(rs, k, &p);
    tarn_push(rs->cx, &rs->phase, p);
  }
}

static const char *base_name(tarn_ctx *cx, const char *file) {
  const char *slash = strrchr(file, '/'), *from = slash ? slash + 1 : file;
  const char *dot = strrchr(from, '.');
  return tarn_strndup(cx, from, dot && dot > from ? (size_t)(dot - from) : strlen(from));
}

void r_read_all(tarn_ruleset *rs, const tarn_sx *all, const char *file) {
  tarn_rule_level level = rs->theory ? TARN_RULE_FREE : TARN_RULE_SURFACE;
  for (uint32_t i = 0; i < all->n; i++) {
    const tarn_sx *s = all->kid[i];
    tarn_sx_limit(rs->cx, s, MOST_DEPTH);
    if (tarn_sx_is(s, "family")) add_family(rs, s);
    else if (tarn_sx_is(s, "phases")) add_phases(rs, s);
    else if (tarn_sx_is(s, "rule")) add_rule(rs, s, base_name(rs->cx, file), level);
    else if (rs->theory && rs->theory->form(rs, s)) continue;
    else if (!rs->theory && tarn_sx_is(s, "kernel")) tarn_written_read(rs->L, s);
    else
      tarn_sx_error(rs->cx, s, "expected (family …), (rule …)%s",
                    rs->theory ? rs->theory->forms : ", (kernel …) or (phases …)");
  }
}

void tarn_ruleset_read(tarn_ruleset *rs, const char *text, size_t n, const char *file) {
  r_read_all(rs, tarn_sx_read(rs->cx, text, n, tarn_strdup(rs->cx, file)), file);
}

void tarn_ruleset_load(tarn_ruleset *rs, const char *path) {
  r_read_all(rs, tarn_sx_read_file(rs->cx, path), path);
}

void tarn_rule_print(const tarn_ruleset *rs, uint32_t i, tarn_buf *b) {
  tarn_sx_print(b, rs->rule.p[i]->at, 100);
}
