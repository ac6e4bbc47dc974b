/* Kernel-level rules: small networks are saturated with all of them, and each e-node is evaluated
 * over the values of its children's classes and compared with the value of its own class: bit for
 * bit where only exact rules ran; where sums may be reordered, by the bound of what rounding may do
 * to the node of its class that was there first; else in real arithmetic.  When one differs, the
 * rule without which none does is at fault. */
#include "base/limit.h"
#include "rules/check/net.h"
#include "rules/lang/range.h"
#include "rules/proof/points.h"
#include <math.h>
#include <string.h>

typedef struct kernels {
  tarn_ctx *outer;
  tarn_ruleset *given;
  const rule *changed;
  uint32_t skip;
  const rule *without; /* left out, to find the one at fault */
  tarn_rule_class numerics;
  double coarse; /* 0, or only rules in a lower precision run: the largest of their bounds */
  tarn_ctx *cx;
  gen *g;
  /* of the run */
  tarn_saturation *s;
  tarn_tensor **value; /* by class */
  pvalue **bound; /* by class, for rules that reorder: with what rounding may do; then value has f64
                     for floats */
  bool *first,
      *own; /* by class, by node: the network has it, so that its bound is that of the left side */
  bool bad;
  double worst;
  tarn_buf *print;
  bool closed; /* open rules as if they were not */
  bool open;   /* one of those that fired is */
  uint32_t nfired;
  const char *fired[64];
} kernels;

/* In a lower precision than f32: run apart from the others, which are held against tighter bounds.
 */
static bool coarse(const rule *r) { return r->numeric == TARN_RULE_APPROX && r->bound > TARN_RTOL; }

/* ---------------------------------------------------------------- evaluation */

/* Rounding to few bits goes as constants are folded. */
static tarn_mode mode_of(const kernels *k) {
  return k->numerics == TARN_RULE_EXACT || k->coarse > 0 ? TARN_STRICT : TARN_WIDE;
}

/* A tensor of the type of t, everywhere its largest magnitude. */
static tarn_tensor *at_most(kernels *k, const tarn_tensor *t) {
  tarn_tensor *x = tarn_tensor_new(k->cx, t->dtype, t->n, t->dim);
  double most = 0;
  for (int64_t i = 0; i < tarn_tensor_count(t); i++)
    most = fmax(most, fabs(tarn_tensor_get(t, i).d));
  for (int64_t i = 0; i < tarn_tensor_count(t); i++) tarn_tensor_set(x, i, (tarn_value){.d = most});
  return x;
}

/* op over inputs that stand for the children's classes, at their values or (reach) at the largest
 * magnitudes of these; for nth, of the first node of the tuple's class. */
static tarn_tensor *value_with(kernels *k, uint32_t node, bool reach) {
  tarn_egraph *g = tarn_sat_egraph(k->s);
  tarn_lang *L = k->g->L;
  tarn_eg_node x = tarn_eg_node_at(g, node), y = x;
  if (x.op == TARN_OP_INPUT) {
    leaf f = {.kind = F_WILD};
    const tarn_type *t = tarn_type_get(L, tarn_sat_type(k->s, tarn_eg_find(g, node)));
    return some_values(k->g, t, &f, k->numerics == TARN_RULE_EXACT ? V_STRANGE : V_TAME);
  }
  if (x.op == TARN_OP_NTH)
    y = tarn_eg_node_at(g, tarn_eg_next_node(g, tarn_eg_find(g, x.kids[0]), TARN_NONE));
  tarn_term *kid = TARN_ARRAY(k->cx, tarn_term, y.n + 1), t;
  tarn_binding *in = TARN_ARRAY(k->cx, tarn_binding, y.n + 1);
  for (uint32_t i = 0; i < y.n; i++) {
    uint32_t c = tarn_eg_find(g, y.kids[i]);
    if (!k->value[c]) return NULL;
    in[i] =
        (tarn_binding){tarn_format(k->cx, "c%u", c), reach ? at_most(k, k->value[c]) : k->value[c]};
    kid[i] = tarn_input(L, in[i].name, tarn_sat_type(k->s, c));
  }
  t = tarn_mk(L, y.op, y.payload, kid, y.n);
  if (x.op == TARN_OP_NTH) t = tarn_mk(L, x.op, x.payload, &t, 1);
  if (tarn_term_type(L, t)->tuple) return NULL;
  tarn_tensor *out;
  tarn_eval(L, &t, 1, in, y.n, mode_of(k), NULL, &out);
  return out;
}

/* ---------------------------------------------------------------- what rounding may do */

static bool by_bounds(const kernels *k) { return k->numerics == TARN_RULE_REASSOC; }

static pvalue *input_bounds(kernels *k, uint32_t cls) {
  leaf f = {.kind = k->g->special ? F_WILD : F_FINITE};
  const tarn_tensor *t =
      some_values(k->g, tarn_type_get(k->g->L, tarn_sat_type(k->s, cls)), &f, V_SPREAD);
  int64_t n = tarn_tensor_count(t);
  pvalue *v = TARN_ARRAY(k->cx, pvalue, n + 1);
  for (int64_t i = 0; i < n; i++) {
    v[i].v = tarn_tensor_get(t, i);
    v[i].r = rounding_leaf(t->dtype, v[i].v, ROUNDING_VARIES);
  }
  return v;
}

/* As value_with, with bounds. */
static pvalue *bounds_of(kernels *k, uint32_t node) {
  tarn_egraph *g = tarn_sat_egraph(k->s);
  tarn_lang *L = k->g->L;
  tarn_eg_node x = tarn_eg_node_at(g, node), y = x;
  uint32_t cls = tarn_eg_find(g, node);
  if (x.op == TARN_OP_INPUT) return input_bounds(k, cls);
  if (x.op == TARN_OP_NTH)
    y = tarn_eg_node_at(g, tarn_eg_next_node(g, tarn_eg_find(g, x.kids[0]), TARN_NONE));
  tarn_term *kid = TARN_ARRAY(k->cx, tarn_term, y.n + 1), t;
  tarn_map *given = tarn_map_new(k->cx);
  int64_t n;
  for (uint32_t i = 0; i < y.n; i++) {
    uint32_t c = tarn_eg_find(g, y.kids[i]);
    if (!k->bound[c]) return NULL;
    kid[i] = tarn_input(L, tarn_format(k->cx, "c%u", c), tarn_sat_type(k->s, c));
    *tarn_map_at(given, kid[i], NULL) = (uint64_t)(uintptr_t)k->bound[c];
  }
  t = tarn_mk(L, y.op, y.payload, kid, y.n);
  if (x.op == TARN_OP_NTH) t = tarn_mk(L, x.op, x.payload, &t, 1);
  if (tarn_term_type(L, t)->tuple) return NULL;
  return check_bounds(k->g, given, t, &n);
}

/* The values alone, in f64 where they are floats. */
static tarn_tensor *values_of(kernels *k, uint32_t cls, const pvalue *v) {
  const tarn_type *t = tarn_type_get(k->g->L, tarn_sat_type(k->s, cls));
  tarn_tensor *x =
      tarn_tensor_new(k->cx, tarn_dtype_is_float(t->dtype) ? TARN_F64 : t->dtype, t->n, t->dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) tarn_tensor_set(x, i, v[i].v);
  return x;
}

static tarn_tensor *value_of(kernels *k, uint32_t node) {
  if (!by_bounds(k)) return value_with(k, node, false);
  const pvalue *v = bounds_of(k, node);
  return v ? values_of(k, tarn_eg_find(tarn_sat_egraph(k->s), node), v) : NULL;
}

/* Constants that were computed are what they are, however they came about. */
static bool is_number(const kernels *k, uint32_t cls) {
  tarn_egraph *g = tarn_sat_egraph(k->s);
  TARN_EG_NODES(g, cls, n)
    if (tarn_eg_node_at(g, n).op == TARN_OP_CONST) return true;
  return false;
}

/* How often the bound of its class a node's is. */
static double against_bound(kernels *k, uint32_t cls, uint32_t node, int64_t *where) {
  if (is_number(k, cls)) return 0;
  pvalue *a = k->bound[cls], *b = bounds_of(k, node);
  const tarn_type *t = tarn_type_get(k->g->L, tarn_sat_type(k->s, cls));
  double most = 0;
  /* What rules made has no left side of its own: exact rules may have joined what two parts of the
   * network come to. */
  bool through = !k->first[cls];
  for (int64_t i = 0, n = tarn_type_count(t); b && i < n; i++) {
    if (k->open) rounding_open(&a[i].r);
    double x = through ? rounding_apart(t->dtype, a[i].v, &a[i].r, b[i].v, &b[i].r)
                       : rounding_ratio(t->dtype, a[i].v, &a[i].r, b[i].v, &b[i].r);
    if (x > most) most = x, *where = i;
  }
  return most;
}

/* A value for every class from one of its nodes, children first; one that is only a result of a
 * tuple has it from there. */
static bool give_some(kernels *k, bool nth) {
  tarn_egraph *g = tarn_sat_egraph(k->s);
  bool any = false;
  TARN_EG_CLASSES(g, c)
    TARN_EG_NODES(g, c, n)
      if (!k->value[c] && (tarn_eg_node_at(g, n).op == TARN_OP_NTH) == nth &&
          (k->value[c] = value_of(k, n)))
        any = true;
  return any;
}
static void mark_first(kernels *k, tarn_map *seen, tarn_term t) {
  bool fresh;
  tarn_map_at(seen, t, &fresh);
  if (!fresh) return;
  uint32_t node = tarn_sat_add(k->s, t);
  k->own[node] = k->first[tarn_eg_find(tarn_sat_egraph(k->s), node)] = true;
  for (uint32_t i = 0; i < tarn_term_get(k->g->L, t)->n; i++)
    mark_first(k, seen, tarn_term_get(k->g->L, t)->kid[i]);
}

/* By the nodes in the order in which they were made: what the network had first says what rounding
 * may do. */
static bool give_bounds(kernels *k) {
  tarn_egraph *g = tarn_sat_egraph(k->s);
  bool any = false;
  for (uint32_t n = 0; n < tarn_eg_id_count(g); n++) {
    uint32_t c = tarn_eg_find(g, n);
    int64_t count = tarn_sat_is_const(k->s, c) && !k->bound[c]
                        ? tarn_type_count(tarn_type_get(k->g->L, tarn_sat_type(k->s, c)))
                        : 0;
    if (k->bound[c] || !(k->bound[c] = bounds_of(k, n))) continue;
    for (int64_t i = 0; i < count; i++) k->bound[c][i].r.fixed = true;
    k->value[c] = values_of(k, c, k->bound[c]);
    any = true;
  }
  return any;
}
/* Where the network has several nodes of a class, any of them may be what is used: the largest
 * bound. Children first. */
static void widest(kernels *k) {
  tarn_egraph *g = tarn_sat_egraph(k->s);
  uint32_t ids = tarn_eg_id_count(g);
  for (uint32_t n = 0; n < ids; n++) {
    uint32_t c = tarn_eg_find(g, n);
    pvalue *now = k->bound[c], *v = k->own[n] && now && tarn_eg_node_at(g, n).op != TARN_OP_INPUT
                                        ? bounds_of(k, n)
                                        : NULL;
    int64_t count = v ? tarn_type_count(tarn_type_get(k->g->L, tarn_sat_type(k->s, c))) : 0;
    for (int64_t i = 0; i < count; i++) {
      bool fixed = now[i].r.fixed;
      if (rounding_total(&v[i].r, v[i].v.d) > rounding_total(&now[i].r, now[i].v.d) ||
          !rounding_promised(&v[i].r))
        now[i] = v[i];
      now[i].r.fixed = fixed;
    }
  }
  for (uint32_t c = 0; c < ids; c++)
    if (!k->first[c] && tarn_eg_find(g, c) == c) k->bound[c] = NULL;
  while (give_bounds(k)) continue;
}
static void give_values(kernels *k, const tarn_program *p) {
  for (uint32_t i = 0; by_bounds(k) && i < p->nout; i++)
    tarn_sat_add(k->s, tarn_kernel_form(k->g->L, p->out[i].term));
  uint32_t ids = tarn_eg_id_count(tarn_sat_egraph(k->s)) + 1;
  k->value = TARN_ARRAY(k->cx, tarn_tensor *, ids);
  k->bound = TARN_ARRAY(k->cx, pvalue *, ids);
  k->first = TARN_ARRAY(k->cx, bool, ids);
  k->own = TARN_ARRAY(k->cx, bool, ids);
  tarn_map *seen = tarn_map_new(k->cx);
  for (uint32_t i = 0; by_bounds(k) && i < p->nout; i++)
    mark_first(k, seen, tarn_kernel_form(k->g->L, p->out[i].term));
  if (by_bounds(k)) {
    while (give_bounds(k)) continue;
    widest(k);
  }
  while (!by_bounds(k) && (give_some(k, false) || give_some(k, true))) continue;
}

static void print_node(kernels *k, uint32_t node, const tarn_tensor *v) {
  tarn_eg_node x = tarn_eg_node_at(tarn_sat_egraph(k->s), node);
  tarn_buf_fmt(k->print, "    (%s", tarn_op_info(x.op)->text);
  tarn_payload_print(k->g->L, k->print, x.op, x.payload);
  for (uint32_t i = 0; i < x.n; i++)
    tarn_buf_fmt(k->print, " c%u", tarn_eg_find(tarn_sat_egraph(k->s), x.kids[i]));
  tarn_buf_str(k->print, ")\n      =");
  check_print_elements(k->print, v);
  tarn_buf_str(k->print, "\n");
}

/* Of integers: of the largest of their type. */
static double steps_apart(const tarn_tensor *a, const tarn_tensor *b) {
  double off = 0;
  for (int64_t i = 0; i < tarn_tensor_count(a); i++)
    off = fmax(off, fabs((double)tarn_tensor_get(a, i).i - (double)tarn_tensor_get(b, i).i));
  return off == 0 ? 0 : off / vrange_any(a->dtype).r.hi;
}

/* What a rule in a lower precision is off by, of the largest value that the sum could take: that of
 * its first form over operands everywhere at their largest magnitude. */
static double coarse_distance(kernels *k, uint32_t cls, const tarn_tensor *v) {
  const tarn_tensor *is = k->value[cls];
  if (!tarn_dtype_is_float(is->dtype)) return steps_apart(is, v);
  const tarn_tensor *reach =
      value_with(k, tarn_eg_next_node(tarn_sat_egraph(k->s), cls, TARN_NONE), true);
  double most = 0, off = 0;
  for (int64_t i = 0; i < tarn_tensor_count(is); i++) {
    double x = tarn_tensor_get(is, i).d, d = fabs(tarn_tensor_get(v, i).d - x);
    if (isfinite(x)) off = fmax(off, isnan(d) ? INFINITY : d);
    most = fmax(most, fabs(tarn_tensor_get(reach, i).d));
  }
  return off <= 1e-30 ? 0 : off / most; /* what is smaller counts as nothing */
}

static double largest(const tarn_tensor *t) {
  double most = 0;
  for (int64_t i = 0; tarn_dtype_is_float(t->dtype) && i < tarn_tensor_count(t); i++) {
    double v = fabs(tarn_tensor_get(t, i).d);
    if (isfinite(v)) most = fmax(most, v);
  }
  return most;
}
/* What is off in real arithmetic, of the largest value of the class, or of what a map that was
 * there first is made of: these may cancel. */
static double distance(kernels *k, uint32_t cls, const tarn_tensor *v, int64_t *where) {
  tarn_egraph *g = tarn_sat_egraph(k->s);
  double d = check_distance(k->value[cls], v, where), most = fmax(largest(k->value[cls]), 1e-3),
         reach = most;
  tarn_eg_node x = tarn_eg_node_at(g, tarn_eg_next_node(g, cls, TARN_NONE));
  if (d == 0 || x.op != TARN_OP_NEST ||
      r_nest_kinds(k->g->L, tarn_payload_get(k->g->L, x.payload)->id) != R_HAS_MAP)
    return d;
  for (uint32_t i = 0; i < x.n; i++)
    if (k->value[tarn_eg_find(g, x.kids[i])])
      reach = fmax(reach, largest(k->value[tarn_eg_find(g, x.kids[i])]));
  return d * most / reach;
}

static void print_bound(kernels *k, uint32_t cls, uint32_t node, int64_t at, double times) {
  const pvalue *v[2] = {k->bound[cls], bounds_of(k, node)};
  tarn_buf_fmt(k->print, "  at element %lld rounding may do %.3g times as much to one of them\n",
               (long long)at, times);
  if (!tarn_dtype_is_float(tarn_type_get(k->g->L, tarn_sat_type(k->s, cls))->dtype)) return;
  for (int i = 0; i < 2; i++) tarn_buf_str(k->print, "   "), check_print_bound(k->print, &v[i][at]);
}

static void compare(kernels *k) {
  tarn_egraph *g = tarn_sat_egraph(k->s);
  int64_t where = 0;
  TARN_EG_CLASSES(g, c)
    TARN_EG_NODES(g, c, n) {
      tarn_tensor *v = NULL;
      if (!k->value[c] || tarn_eg_node_at(g, n).op == TARN_OP_INPUT || (by_bounds(k) && k->own[n]))
        continue;
      if (by_bounds(k) && tarn_sat_left_out(k->s, n)) continue; /* no network is made of it */
      if (!by_bounds(k) && !(v = value_of(k, n))) continue;
      double d = by_bounds(k)    ? against_bound(k, c, n, &where)
                 : k->coarse > 0 ? coarse_distance(k, c, v)
                                 : distance(k, c, v, &where);
      /* Numbers in a kernel are f32, and sums cancel. */
      bool bad = k->numerics == TARN_RULE_EXACT ? !check_same_bits(k->value[c], v)
                 : by_bounds(k)                 ? d > ROUNDING_MOST
                                                : d > fmax(1e-4, k->coarse);
      k->worst = fmax(k->worst, d);
      if (!bad || k->bad) continue;
      k->bad = true;
      if (!k->print) return;
      tarn_buf_fmt(k->print, "  nodes of one class, c%u, differ (%s)\n", c,
                   k->numerics == TARN_RULE_EXACT ? "strict f32" : "real arithmetic");
      if (by_bounds(k)) print_bound(k, c, n, where, d);
      TARN_EG_NODES(g, c, m)
        if ((v = value_of(k, m))) print_node(k, m, v);
    }
}

/* ---------------------------------------------------------------- one network */

static rx **without_one(gen *g, rx **list, uint32_t *n, uint32_t drop) {
  rx **out = TARN_ARRAY(g->cx, rx *, *n);
  uint32_t m = 0;
  for (uint32_t i = 0; i < *n; i++)
    if (i != drop) out[m++] = list[i];
  *n = m;
  return out;
}

/* The set again over this language, changed as wanted. */
static tarn_ruleset *rules_of(kernels *k) {
  tarn_ruleset *rs = tarn_r_ruleset(k->g->L, NULL, k->given->builder);
  for (uint32_t i = 0; i < k->given->rule.n; i++) {
    const rule *r = k->given->rule.p[i];
    if (r->level != TARN_RULE_KERNEL || r->hw || r == k->without || (k->coarse > 0 && !coarse(r)))
      continue;
    rule *q = r_read_again(rs, r);
    if (r == k->changed && k->skip < q->ncond)
      q->cond = without_one(k->g, q->cond, &q->ncond, k->skip);
    else if (r == k->changed)
      q->guard = without_one(k->g, q->guard, &q->nguard, k->skip - q->ncond);
    tarn_push(rs->cx, &rs->rule, q);
  }
  for (uint32_t i = 0; i < k->given->phase.n; i++) {
    rphase p = k->given->phase.p[i];
    p.shipped = true; /* they may name what is left out here */
    tarn_push(rs->cx, &rs->phase, p);
  }
  return rs;
}

/* A unit that shifts integers and knows no floats, and multiplies bytes of one type. */
static const tarn_hw *integer_unit(kernels *k, const char *byte) {
  const char *text = tarn_format(
      k->cx,
      "(hw unit (kind dsa) (clock 1e8) (memory m (capacity 4096) (read 64) (write 64))"
      " (memory dram (read 8) (write 8)) (intrinsic shift (meaning (compute (map (shr $0 $1)) ?a "
      "?b))"
      " (operand a (type i32) (memory m) (dims 4)) (operand b (type i32) (memory m) (dims 4))"
      " (operand c (type i32) (memory m) (dims 4)))"
      " (intrinsic product (meaning (compute (red (sum i32) (mul (cast i32 $0) (cast i32 $1))"
      " (tuple 2)) (cartProd (access 1 ?a) (access 1 ?b))))"
      " (operand a (type %s) (memory m) (dims 2 4)) (operand b (type %s) (memory m) (dims 4 4))"
      " (operand c (type i32) (memory m) (dims 2 4))))",
      byte, byte);
  return tarn_hw_parse(k->g->L, tarn_sx_read(k->cx, text, strlen(text), "the checker's unit"));
}

/* A unit that rounds f32 to tf32. */
static const tarn_hw *tensor_unit(kernels *k) {
  static const char text[] =
      "(hw tensor (kind dsa) (clock 1e8) (memory m (capacity 4096) (read 64) (write 64))"
      " (memory dram (read 8) (write 8))"
      " (intrinsic product (meaning (compute (red (sum f32) (mul (tf32 $0) (tf32 $1)) (tuple 2))"
      " (cartProd (access 1 ?a) (access 1 ?b))))"
      " (operand a (type f32) (memory m) (dims 2 4)) (operand b (type f32) (memory m) (dims 4 4))"
      " (operand c (type f32) (memory m) (dims 2 4))))";
  return tarn_hw_parse(k->g->L, tarn_sx_read(k->cx, text, sizeof text - 1, "the checker's unit"));
}

/* A machine of some units which take no time to join, whose L2 holds next to nothing:
 * sizes that follow from it are then met by small networks. It hangs on one for integers, and that
 * on one for tf32. */
static const tarn_hw *small_machine(kernels *k) {
  const tarn_hw *hw = tarn_hw_load(k->g->L, "x86-64-bf16");
  tarn_hw *copy = tarn_copy(k->cx, hw, sizeof *hw);
  tarn_hw_memory *mem = tarn_copy(k->cx, hw->mem, hw->nmem * sizeof *mem);
  mem[1].capacity = 256;
  uint32_t a = draw(k->g, 6), b = draw(k->g, 6);
  copy->units = 2u << (a > b ? a : b);
  copy->barrier = 0;
  copy->mem = mem;
  tarn_hw *bytes = tarn_copy(k->cx, integer_unit(k, a & 1 ? "i8" : "u8"), sizeof *bytes);
  bytes->host = tensor_unit(k);
  copy->host = bytes;
  return copy;
}

static bool is_open(const kernels *k, const char *name) {
  uint32_t at = tarn_ruleset_find(k->given, name);
  return at != TARN_NONE && k->given->rule.p[at]->open;
}
static void one_network(tarn_ctx *cx, void *arg) {
  kernels *k = arg;
  k->g->spread = by_bounds(k);
  some_span(k->g);
  k->g->special = chance(k->g, 4);
  tarn_program *p = check_network(k->g);
  tarn_sat_options o = tarn_sat_defaults();
  o.numerics = k->numerics;
  o.rtol = fmax(o.rtol, k->coarse);
  o.max_nodes = 3000;
  o.max_iterations = 60;
  o.hw = small_machine(k);
  k->s = tarn_saturate(p, rules_of(k), &o);
  const tarn_sat_report *rep = tarn_sat_result(k->s);
  k->nfired = 0, k->open = false;
  for (uint32_t i = 0; i < rep->nrule && k->nfired < 64; i++) {
    if (!rep->rule[i].count.unions) continue;
    k->fired[k->nfired++] = tarn_strdup(cx, rep->rule[i].name);
    k->open |= !k->closed && is_open(k, rep->rule[i].name);
  }
  if (k->print) {
    tarn_buf_str(k->print, "  network ");
    for (uint32_t i = 0; i < p->nout; i++) tarn_term_print(k->g->L, k->print, p->out[i].term);
    tarn_buf_str(k->print, "\n");
  }
  give_values(k, p);
  compare(k);
  tarn_sat_free(k->s);
}

static void prepare(tarn_ctx *cx, void *arg) {
  kernels *k = arg;
  k->g = TARN_NEW(cx, gen);
  *k->g = (gen){.cx = cx, .L = tarn_lang_new(cx), .max_extent = 5, .dtype = TARN_F32};
  k->g->t.v = TARN_ARRAY(cx, uint32_t, C_TAPE);
}

/* A network from a seed, or from a tape. False: it could not be made. */
static bool run(kernels *k, tarn_rule_class numerics, uint64_t seed, const uint32_t *from,
                uint32_t n) {
  tarn_ctx_free(k->cx);
  k->cx = tarn_ctx_new(tarn_ctx_allocator(k->outer));
  if (!k->cx) tarn_raise(k->outer, TARN_MEMORY, "rules check: out of memory");
  k->numerics = numerics;
  k->bad = false;
  k->worst = 0;
  k->nfired = 0;
  tarn_status st = tarn_protect(k->cx, prepare, k);
  if (!st) {
    k->g->t.seed = seed;
    k->g->t.from = from, k->g->t.end = n, k->g->t.replay = from != NULL;
    st = tarn_protect(k->cx, one_network, k);
  }
  if (st == TARN_OK || st == TARN_BAD_INPUT) return st == TARN_OK;
  const char *why = tarn_strdup(k->outer, tarn_message(k->cx));
  tarn_raise(k->outer, st, "%s", why);
}

/* ---------------------------------------------------------------- counterexamples */

/* The tape that just ran, cut from the end and lowered as long as it stays wrong. */
static const char *smaller(kernels *k, tarn_rule_class numerics) {
  uint32_t n = k->g->t.n, *best = TARN_ARRAY(k->outer, uint32_t, C_TAPE),
           *next = TARN_ARRAY(k->outer, uint32_t, C_TAPE);
  tarn_buf b = {.cx = k->outer};
  memcpy(best, k->g->t.v, n * sizeof *best);
  for (uint32_t len = n; len; len /= 2)
    for (uint32_t at = 0, runs = 0; at < n && runs < 60; at += len, runs++) {
      bool any = false;
      memcpy(next, best, n * sizeof *next);
      for (uint32_t i = at; i < at + len && i < n; i++) any |= next[i] != 0, next[i] = 0;
      if (any && run(k, numerics, 0, next, n) && k->bad) memcpy(best, next, n * sizeof *next);
    }
  k->print = &b;
  run(k, numerics, 0, best, n);
  k->print = NULL;
  return b.p;
}

static kernel_result *result_of(kernel_result *res, uint32_t n, const char *name) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(res[i].rule->name, name) == 0) return &res[i];
  return NULL;
}

/* Which of the rules that fired is at fault? The changed one, or one without which nothing is
 * wrong. */
static void blame(kernels *k, tarn_rule_class numerics, uint64_t seed, kernel_result *res,
                  uint32_t n) {
  const char *fired[64];
  uint32_t nfired = k->nfired;
  kernel_result *at = NULL;
  for (uint32_t i = 0; i < nfired; i++) fired[i] = tarn_strdup(k->outer, k->fired[i]);
  for (uint32_t i = 0; i < 2 * nfired && !at;
       i++) { /* rules of the class first: the others are exact by themselves */
    kernel_result *r = result_of(res, n, fired[nfired - 1 - i % nfired]);
    if (!r || (i < nfired) != (r->rule->numeric == numerics)) continue;
    k->without = r->rule;
    bool still = run(k, numerics, seed, NULL, 0) && k->bad;
    k->without = NULL;
    if (!still) at = r;
  }
  for (uint32_t i = 0; i < nfired && !at; i++) at = result_of(res, n, fired[nfired - 1 - i]);
  if (!at) at = res;
  if (at->counterexample) return;
  if (numerics == TARN_RULE_EXACT) at->exact = false;
  else at->real = false;
  run(k, numerics, seed, NULL, 0);
  at->counterexample = smaller(k, numerics);
}

static void count(kernels *k, tarn_rule_class numerics, kernel_result *res, uint32_t n) {
  for (uint32_t i = 0; i < k->nfired; i++) {
    kernel_result *r = result_of(res, n, k->fired[i]);
    if (!r || numerics != r->rule->numeric || coarse(r->rule) != (k->coarse > 0)) continue;
    r->samples++;
    r->worst = fmax(r->worst, k->worst);
  }
}

static bool enough(const kernel_result *res, uint32_t n, uint32_t samples) {
  for (uint32_t i = 0; i < n; i++)
    if (!res[i].extra && res[i].samples < samples && !res[i].counterexample) return false;
  return true;
}

static void end(void *arg) {
  kernels *k = arg;
  tarn_ctx_free(k->cx);
  k->cx = NULL;
}

void check_kernel(kernel_check *c) {
  tarn_ruleset *rs = c->rs;
  kernels *k = TARN_NEW(rs->cx, kernels);
  *k = (kernels){.outer = rs->cx, .given = rs, .changed = c->changed, .skip = c->skip};
  if (c->changed && c->skip == CHECK_OPEN) k->closed = true, k->changed = NULL;
  tarn_defer(rs->cx, end, k);
  int last = TARN_RULE_REASSOC; /* one past approx: rules in a lower precision */
  double bound = 0;
  for (uint32_t i = 0; i < c->n; i++) {
    const rule *r = c->res[i].rule;
    if (c->res[i].extra) continue;
    if (r->numeric == TARN_RULE_APPROX && last < TARN_RULE_APPROX) last = TARN_RULE_APPROX;
    if (coarse(r)) last = TARN_RULE_APPROX + 1, bound = fmax(bound, r->bound);
  }
  while (c->tried < c->most && !enough(c->res, c->n, c->samples)) {
    tarn_go_on(rs->cx);
    uint64_t seed = tarn_hash_mix(c->o->seed, ++c->tried);
    for (int i = TARN_RULE_EXACT; i <= last; i++) {
      tarn_rule_class class = i > TARN_RULE_APPROX ? TARN_RULE_APPROX : (tarn_rule_class)i;
      k->coarse = i > TARN_RULE_APPROX ? bound : 0;
      if (!run(k, class, seed, NULL, 0)) continue;
      count(k, class, c->res, c->n);
      if (k->bad) blame(k, class, seed, c->res, c->n);
    }
  }
  end(k);
}
