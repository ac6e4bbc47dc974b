/* Reads the sides of rules over loops. */
#include "rules/lang/loops.h"
#include "access/fx_internal.h"
#include "rules/lang/range.h"
#include <string.h>

static const char *const reducers[] = {[TARN_RED_SUM] = "sum",
                                       [TARN_RED_PROD] = "prod",
                                       [TARN_RED_MAX] = "max",
                                       [TARN_RED_MIN] = "min"};

static bool any(const tarn_sx *s) { return reader_starts(s, "?"); }
static bool row(const tarn_sx *s) { return reader_starts(s, "?*"); }

/* ---------------------------------------------------------------- loops */

static void loop_list(reader *rd, const tarn_sx *s, uint32_t from, lloop **out, uint32_t *n);

/* The name of a loop; on the right a name that is new is a new loop. */
static uint32_t loop_name(reader *rd, const tarn_sx *s) {
  if (s->kind != TARN_SX_ATOM || (any(s) && !row(s)))
    tarn_sx_error(rd->cx, s, "expected the name of a loop, or ?*row");
  bool left = rd->left;
  rd->left |= !row(s);
  uint32_t v = reader_attribute(rd, s, 'o');
  rd->left = left;
  return v;
}
static rx *extent(reader *rd, const tarn_sx *s) {
  if (rd->left && any(s)) {
    rx *x = TARN_NEW(rd->cx, rx);
    *x = (rx){.kind = RX_VAR, .type = 'i', .var = reader_attribute(rd, s, 'i'), .at = s};
    return x;
  }
  rx *x = reader_expression(rd, s);
  if (x->type != 'i') tarn_sx_error(rd->cx, s, "expected an extent, not kind '%c'", x->type);
  return x;
}
static lloop one_loop(reader *rd, const tarn_sx *s) {
  if (s->kind == TARN_SX_ATOM)
    return (lloop){.kind = row(s) ? LL_ROW : LL_LOOP, .var = loop_name(rd, s)};
  if (tarn_sx_is(s, "of") && rd->left && s->n > 2 && row(s->kid[1])) {
    lloop l = {.kind = LL_OF, .var = loop_name(rd, s->kid[1])};
    loop_list(rd, s, 2, &l.kid, &l.n);
    return l;
  }
  bool on = tarn_sx_is(s, "on");
  if (!rd->left && s->n > (on ? 1 : 2) && (on || tarn_sx_is(s, "off"))) {
    lloop l = {.kind = on ? LL_ON : LL_OFF, .var = reader_attribute(rd, s->kid[1], 'e')};
    loop_list(rd, s, 2, &l.kid, &l.n);
    return l;
  }
  if (!rd->left && tarn_sx_is(s, "with") && s->n > 2) {
    lloop l = {.kind = LL_WITH};
    loop_list(rd, s, 1, &l.kid, &l.n);
    return l;
  }
  if (s->n != 2)
    tarn_sx_error(rd->cx, s,
                  rd->left ? "expected (LOOP EXTENT) or (of ?*row LOOP…)"
                           : "expected (LOOP EXTENT), (on ?e LOOP…), (off ?e LOOP…) or (with ?*row "
                             "LOOP…)");
  lloop l = {.kind = LL_LOOP, .var = loop_name(rd, s->kid[0])};
  l.extent = extent(rd, s->kid[1]);
  return l;
}
static void loop_list(reader *rd, const tarn_sx *s, uint32_t from, lloop **out, uint32_t *n) {
  if (s->kind != TARN_SX_LIST) tarn_sx_error(rd->cx, s, "expected a list of loops");
  *out = TARN_ARRAY(rd->cx, lloop, s->n + 1);
  *n = 0;
  for (uint32_t i = from; i < s->n; i++) (*out)[(*n)++] = one_loop(rd, s->kid[i]);
}

/* ---------------------------------------------------------------- indices */

static bool has_loop(const reader *rd, const tarn_sx *s) {
  if (s->kind != TARN_SX_LIST) return reader_loop(rd, s) != TARN_NONE;
  bool any = tarn_sx_is(s, "within") || tarn_sx_is(s, "beyond") || tarn_sx_is(s, "first");
  for (uint32_t i = 1; i < s->n; i++) any |= has_loop(rd, s->kid[i]);
  return any;
}
static lix *index_of(reader *rd, const tarn_sx *s) {
  static const char *const ops[] = {
      [LIX_ADD] = "+",   [LIX_SUB] = "-",         [LIX_MUL] = "*",        [LIX_DIV] = "/",
      [LIX_MOD] = "mod", [LIX_WITHIN] = "within", [LIX_BEYOND] = "beyond"};
  lix *x = TARN_NEW(rd->cx, lix);
  if (!has_loop(rd, s)) {
    x->kind = LIX_NUMBER, x->number = reader_expression(rd, s);
    if (x->number->type != 'i') tarn_sx_error(rd->cx, s, "expected an index");
    return x;
  }
  if (s->kind != TARN_SX_LIST) return x->kind = LIX_LOOP, x->var = reader_loop(rd, s), x;
  if (tarn_sx_is(s, "first") && s->n == 3) {
    x->kind = LIX_FIRST, x->of = reader_attribute(rd, s->kid[1], 'e');
    if ((x->var = reader_loop(rd, s->kid[2])) == TARN_NONE)
      tarn_sx_error(rd->cx, s->kid[2], "is no loop of this rule");
    return x;
  }
  for (uint32_t i = LIX_ADD; i <= LIX_BEYOND; i++)
    if (tarn_sx_is(s, ops[i]) && s->n == 3) x->kind = i;
  if (!x->kind)
    tarn_sx_error(rd->cx, s, "expected (OP INDEX INDEX), OP one of + - * / mod within beyond");
  for (uint32_t i = 0; i < 2; i++) x->kid[i] = index_of(rd, s->kid[i + 1]);
  if (x->kind >= LIX_MUL && x->kid[1]->kind != LIX_NUMBER)
    tarn_sx_error(rd->cx, s->kid[2], "expected a number without loops");
  return x;
}

/* ---------------------------------------------------------------- expressions */

static lx *expression(reader *rd, const tarn_sx *s);

static lx *new_lx(reader *rd, lx_kind kind, uint32_t n) {
  lx *x = TARN_NEW(rd->cx, lx);
  *x = (lx){.kind = kind,
            .var = TARN_NONE,
            .name = TARN_NONE,
            .n = n,
            .kid = TARN_ARRAY(rd->cx, lx *, n + 1)};
  return x;
}
static lx *with_loops(reader *rd, const tarn_sx *s, lx_kind kind, uint32_t list) {
  if (s->n != list + 2)
    tarn_sx_error(rd->cx, s, "expected (%s… LOOPS EXPRESSION)", s->kid[0]->text);
  lx *x = new_lx(rd, kind, 1);
  loop_list(rd, s->kid[list], 0, &x->loop, &x->nloop);
  x->kid[0] = expression(rd, s->kid[list + 1]);
  return x;
}
/* (sum LOOPS E), (fold sum|prod|max|min|?r LOOPS E) */
static lx *fold(reader *rd, const tarn_sx *s) {
  bool named = tarn_sx_is(s, "fold");
  if (named && s->n != 4) tarn_sx_error(rd->cx, s, "expected (fold REDUCER LOOPS EXPRESSION)");
  uint32_t var = named && any(s->kid[1]) ? reader_attribute(rd, s->kid[1], 'r') : TARN_NONE;
  lx *x = with_loops(rd, s, LX_FOLD, named ? 2 : 1);
  x->var = var, x->op = named ? TARN_RED_NONE : TARN_RED_SUM;
  for (uint32_t i = TARN_RED_SUM; named && i <= TARN_RED_MIN; i++)
    if (tarn_sx_atom_is(s->kid[1], reducers[i])) x->op = i;
  if (var == TARN_NONE && x->op == TARN_RED_NONE)
    tarn_sx_error(rd->cx, s->kid[1], "expected sum, prod, max, min or ?r");
  return x;
}
/* Is it computed of that variable alone? */
static bool of_variable(const lx *x, uint32_t var) {
  bool is = x->kind == LX_NUMBER || x->kind == LX_OP || (x->kind == LX_ANY && x->var == var);
  for (uint32_t i = 0; is && i < x->n; i++) is = of_variable(x->kid[i], var);
  return is;
}
/* (then ?g E), (tensor ?e E), (beside ?e NUMBER) */
static lx *with_variable(reader *rd, const tarn_sx *s, lx_kind kind) {
  if (s->n != 3 || !any(s->kid[1]))
    tarn_sx_error(rd->cx, s, "expected (%s ?e EXPRESSION)", s->kid[0]->text);
  lx *x = new_lx(rd, kind, 1);
  x->var = reader_attribute(rd, s->kid[1], 'e');
  x->kid[0] = expression(rd, s->kid[2]);
  if (kind == LX_TENSOR && !of_variable(x->kid[0], x->var))
    tarn_sx_error(rd->cx, s->kid[2], "expected an expression of %s alone", s->kid[1]->text);
  if (kind == LX_BESIDE && x->kid[0]->kind != LX_NUMBER)
    tarn_sx_error(rd->cx, s->kid[2], "expected a number");
  return x;
}
/* (at E LOOP INDEX …) */
static lx *at(reader *rd, const tarn_sx *s) {
  if (s->n < 4 || s->n % 2) tarn_sx_error(rd->cx, s, "expected (at EXPRESSION LOOP INDEX…)");
  lx *x = new_lx(rd, LX_AT, 1);
  x->nloop = s->n / 2 - 1;
  x->loop = TARN_ARRAY(rd->cx, lloop, x->nloop);
  x->kid[0] = expression(rd, s->kid[1]); /* first: it may name loops */
  for (uint32_t i = 0; i < x->nloop; i++) {
    const tarn_sx *l = s->kid[2 + 2 * i];
    uint32_t var = reader_loop(rd, l);
    if (var == TARN_NONE) tarn_sx_error(rd->cx, l, "is no loop of this rule");
    x->loop[i] = (lloop){
        .kind = row(l) ? LL_ROW : LL_LOOP, .var = var, .ix = index_of(rd, s->kid[3 + 2 * i])};
  }
  return x;
}
static lx *table(reader *rd, const tarn_sx *s, uint32_t number) {
  const ltable *t = &rd->r->loops->table[number];
  if (s->n - 1 != t->n) tarn_sx_error(rd->cx, s, "%s has %u dims", t->name, t->n);
  lx *x = new_lx(rd, LX_TABLE, 0);
  x->op = number, x->nix = t->n;
  x->ix = TARN_ARRAY(rd->cx, lix *, t->n);
  for (uint32_t i = 0; i < t->n; i++) x->ix[i] = index_of(rd, s->kid[i + 1]);
  return x;
}
static lx *operation(reader *rd, const tarn_sx *s) {
  if (s->n == 0 || s->kid[0]->kind != TARN_SX_ATOM)
    tarn_sx_error(rd->cx, s, "expected (OPERATOR EXPRESSION…)");
  for (uint32_t i = 0; i < rd->r->loops->ntable; i++)
    if (tarn_sx_is(s, rd->r->loops->table[i].name)) return table(rd, s, i);
  uint32_t op = tarn_fx_find(s->kid[0]->text);
  if (op == TARN_NONE || op == TARN_FX_CAST)
    tarn_sx_error(rd->cx, s, "no scalar operator or table is called %s", s->kid[0]->text);
  if (s->n - 1 != tarn_fx_arity(op))
    tarn_sx_error(rd->cx, s, "%s has %u operands", s->kid[0]->text, tarn_fx_arity(op));
  lx *x = new_lx(rd, LX_OP, s->n - 1);
  x->op = op;
  for (uint32_t i = 0; i < x->n; i++) x->kid[i] = expression(rd, s->kid[i + 1]);
  return x;
}
/* (cast TYPE E), (cast ?t E) */
static lx *cast(reader *rd, const tarn_sx *s) {
  if (s->n != 3 || s->kid[1]->kind != TARN_SX_ATOM)
    tarn_sx_error(rd->cx, s, "expected (cast TYPE EXPRESSION)");
  lx *x = new_lx(rd, LX_OP, 1);
  x->op = TARN_FX_CAST;
  if (any(s->kid[1])) x->var = reader_attribute(rd, s->kid[1], 'y');
  else if (!tarn_dtype_parse(s->kid[1]->text, &x->type))
    tarn_sx_error(rd->cx, s->kid[1], "expected a type");
  x->kid[0] = expression(rd, s->kid[2]);
  return x;
}
/* ?e, or on the right an integer or a constant of the rule. */
static lx *variable(reader *rd, const tarn_sx *s) {
  const rule *r = rd->r;
  lx *x = new_lx(rd, LX_ANY, 0);
  for (uint32_t i = 0; i < r->nattr; i++)
    if (strcmp(r->attr_name[i], s->text) == 0 && (r->attr_type[i] == 'i' || r->attr_type[i] == 'x'))
      return x->kind = LX_NUMBER, x->counted = reader_expression(rd, s), x;
  return x->var = reader_attribute(rd, s, 'e'), x;
}
/* (padded ?e LOOP…) */
static lx *padded(reader *rd, const tarn_sx *s) {
  if (s->n < 2 || !any(s->kid[1])) tarn_sx_error(rd->cx, s, "expected (padded ?e LOOP…)");
  lx *x = new_lx(rd, LX_PADDED, 0);
  x->var = reader_attribute(rd, s->kid[1], 'e');
  loop_list(rd, s, 2, &x->loop, &x->nloop);
  return x;
}
/* (= ?y (OP E…)) */
static lx *named(reader *rd, const tarn_sx *s, lx *(*read)(reader *rd, const tarn_sx *s)) {
  uint32_t name = s->n == 3 && any(s->kid[1]) ? reader_attribute(rd, s->kid[1], 'e') : TARN_NONE;
  lx *x = name == TARN_NONE ? NULL : read(rd, s->kid[2]);
  if (!x || (x->kind != LX_OP && x->kind != LX_FOR))
    tarn_sx_error(rd->cx, s, "expected (= ?y (OPERATOR EXPRESSION…))");
  return x->name = name, x;
}
static lx *expression(reader *rd, const tarn_sx *s) {
  if (any(s)) return variable(rd, s);
  if (s->kind == TARN_SX_INT || s->kind == TARN_SX_REAL) {
    lx *x = new_lx(rd, LX_NUMBER, 0);
    return x->value = s->kind == TARN_SX_INT ? (double)s->i : s->r, x;
  }
  if (s->kind != TARN_SX_LIST) tarn_sx_error(rd->cx, s, "expected an expression");
  if (tarn_sx_is(s, "sum") || tarn_sx_is(s, "fold")) return fold(rd, s);
  if (tarn_sx_is(s, "then")) return with_variable(rd, s, LX_THEN);
  if (tarn_sx_is(s, "cast")) return cast(rd, s);
  if (rd->left && tarn_sx_is(s, "=")) return named(rd, s, expression);
  if (rd->left) return operation(rd, s);
  if (tarn_sx_is(s, "at")) return at(rd, s);
  if (tarn_sx_is(s, "padded")) return padded(rd, s);
  if (tarn_sx_is(s, "beside")) return with_variable(rd, s, LX_BESIDE);
  if (tarn_sx_is(s, "tensor")) return with_variable(rd, s, LX_TENSOR);
  if (tarn_sx_is(s, "for")) return with_loops(rd, s, LX_FOR, 1);
  if (tarn_sx_is(s, "stage")) return with_loops(rd, s, LX_STAGE, 1);
  if (tarn_sx_is(s, "kept")) return with_loops(rd, s, LX_KEPT, 1);
  if (tarn_sx_is(s, "shared")) {
    lx *x = with_loops(rd, s, LX_SHARED, 1);
    if (x->kid[0]->kind != LX_FOR) tarn_sx_error(rd->cx, s->kid[2], "expected (for …)");
    return x;
  }
  return operation(rd, s);
}

/* ---------------------------------------------------------------- rules */

bool loops_is_left(const tarn_sx *s) { return tarn_sx_is(s, "for") || tarn_sx_is(s, "anywhere"); }

static bool fits(tarn_dtype t, const tarn_sx *k) {
  tarn_range all = vrange_any(t).r;
  return tarn_dtype_is_float(t) ||
         (k->kind == TARN_SX_INT && (double)k->i >= all.lo && (double)k->i <= all.hi);
}
/* (:table (NAME (DIM…) NUMBER…)), or (NAME TYPE (DIM…) NUMBER…) */
void loops_table(reader *rd, const tarn_sx *s) {
  loops *l = rd->r->loops;
  ltable t = {.type = TARN_F32};
  bool list = l && s->kind == TARN_SX_LIST && s->n > 1 && s->kid[0]->kind == TARN_SX_ATOM;
  uint32_t at = list && s->kid[1]->kind == TARN_SX_ATOM ? 2 : 1;
  if (!list || s->n < at + 2 || s->kid[at]->kind != TARN_SX_LIST || s->kid[at]->n == 0)
    tarn_sx_error(rd->cx, s, "expected (NAME (DIM…) NUMBER…), in a rule over loops");
  if (s->kid[at]->n > TARN_MAX_DIMS)
    tarn_sx_error(rd->cx, s->kid[at], "a table has at most %d dims", TARN_MAX_DIMS);
  if (at == 2 && !tarn_dtype_parse(s->kid[1]->text, &t.type))
    tarn_sx_error(rd->cx, s->kid[1], "expected a type");
  t.name = s->kid[0]->text, t.n = s->kid[at]->n;
  int64_t count = 1;
  for (uint32_t i = 0; i < t.n; i++) {
    t.dim[i] = tarn_sx_whole(rd->cx, s->kid[at], i, 1, 64);
    if (count <= s->n) count *= t.dim[i]; /* else there are too few numbers already */
  }
  uint32_t numbers = s->n - at - 1;
  if (count != numbers)
    tarn_sx_error(rd->cx, s, "%s has %u numbers, not %lld", t.name, numbers, (long long)count);
  t.v = TARN_ARRAY(rd->cx, double, numbers);
  for (uint32_t i = 0; i < numbers; i++) {
    const tarn_sx *k = s->kid[at + 1 + i];
    if (k->kind != TARN_SX_INT && k->kind != TARN_SX_REAL)
      tarn_sx_error(rd->cx, k, "expected a number");
    t.v[i] = k->kind == TARN_SX_INT ? (double)k->i : k->r;
    if (!fits(t.type, k))
      tarn_sx_error(rd->cx, k, "expected a number of type %s", tarn_dtype_name(t.type));
  }
  ltable *all = TARN_ARRAY(rd->cx, ltable, l->ntable + 1);
  if (l->ntable) memcpy(all, l->table, l->ntable * sizeof *all);
  all[l->ntable++] = t;
  l->table = all;
}

/* (anywhere (for …)), (anywhere (= ?y (for …))): a kernel that the nest reads; also (view …). */
static bool reads_a(const tarn_sx *s, const char *what) {
  if (!tarn_sx_is(s, "anywhere") || s->n != 2) return false;
  const tarn_sx *x = s->kid[1];
  return tarn_sx_is(tarn_sx_is(x, "=") && x->n == 3 ? x->kid[2] : x, what);
}
/* (view ?e) */
static lx *inner_view(reader *rd, const tarn_sx *s) {
  if (s->n != 2 || !any(s->kid[1]) || row(s->kid[1]))
    tarn_sx_error(rd->cx, s, "expected (view ?e), a view that the nest reads");
  lx *x = new_lx(rd, LX_FOR, 1);
  return x->kid[0] = variable(rd, s->kid[1]), x;
}
/* (for (?*i) ?e); its loops are none of the nest's. */
static lx *inner_kernel(reader *rd, const tarn_sx *s) {
  if (rd->r->loops->view) return inner_view(rd, s);
  if (s->n != 3 || s->kid[1]->kind != TARN_SX_LIST || s->kid[1]->n != 1 ||
      !row(s->kid[1]->kid[0]) || !any(s->kid[2]) || row(s->kid[2]))
    tarn_sx_error(rd->cx, s, "expected (for (?*row) ?e), a kernel that the nest reads");
  lx *x = new_lx(rd, LX_FOR, 1);
  x->loop = TARN_ARRAY(rd->cx, lloop, 1), x->nloop = 1;
  x->loop[0] = (lloop){.kind = LL_ROW, .var = reader_attribute(rd, s->kid[1]->kid[0], 'w')};
  x->kid[0] = variable(rd, s->kid[2]);
  return x;
}
static lx *anywhere(reader *rd, const tarn_sx *s) {
  if (!rd->r->loops->inner) return expression(rd, s);
  return tarn_sx_is(s, "=") ? named(rd, s, inner_kernel) : inner_kernel(rd, s);
}

/* In the e-graph the left side is any nest, or one that reads one. */
void loops_left(reader *rd, const tarn_sx *s) {
  static const char one[] = "(nest ?%nest ?*%children)",
                    two[] = "(nest ?%nest ?*%before (nest ?%kernel ?*%children) ?*%after)",
                    seen[] = "(nest ?%nest ?*%before (view ?%map ?%of) ?*%after)";
  bool view = reads_a(s, "view"), inner = view || reads_a(s, "for");
  const char *nest = view ? seen : inner ? two : one;
  rule *r = rd->r;
  loops *l = r->loops = TARN_NEW(rd->cx, loops);
  r->nlhs = 1;
  r->lhs = TARN_ARRAY(rd->cx, rroot, 1);
  const tarn_sx *any = tarn_sx_read(rd->cx, nest, strlen(nest), "nest")->kid[0];
  r->lhs[0] = (rroot){TARN_NONE, reader_pattern(rd, any)};
  l->anywhere = tarn_sx_is(s, "anywhere"), l->inner = inner, l->view = view;
  if (l->anywhere && s->n != 2) tarn_sx_error(rd->cx, s, "expected (anywhere EXPRESSION)");
  l->left = l->anywhere ? anywhere(rd, s->kid[1]) : with_loops(rd, s, LX_FOR, 1);
}

void loops_right(reader *rd, const tarn_sx *s) {
  rule *r = rd->r;
  loops *l = r->loops;
  if (l->anywhere && (!tarn_sx_is(s, "anywhere") || s->n != 2))
    tarn_sx_error(rd->cx, s, "expected (anywhere EXPRESSION), as on the left");
  l->right = expression(rd, l->anywhere ? s->kid[1] : s);
  const lx *top = l->right;
  while (!l->anywhere && top->kind == LX_AT) top = top->kid[0];
  if (!l->anywhere && top->kind != LX_FOR && top->kind != LX_SHARED && l->right->kind != LX_ANY)
    tarn_sx_error(rd->cx, s, "expected (for …) or (shared …), perhaps in (at …), or ?e");
  rpat *p = TARN_NEW(rd->cx, rpat);
  *p = (rpat){.kind = RP_BUILD, .build = &loops_builder, .opvar = TARN_NONE, .at = s};
  r->nrhs = 1;
  r->rhs = TARN_ARRAY(rd->cx, rroot, 1);
  r->rhs[0] = (rroot){TARN_NONE, p};
}
