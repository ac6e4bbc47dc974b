/* Rules derived from descriptions: every rule against the interpreter on random shapes, whole
 * graphs against their classes, and what cannot be derived refused with its place. */
#include "rules/lang/lang.h"
#include "tests/rules_kit.h"
#include "tests/terms.h"

#define MEMORIES                                                                                   \
  "(kind dsa) (clock 1e8) (memory acc (capacity 65536) (read 64) (write 64)) (memory dram (read "  \
  "8) (write 8)) "
#define I8DOT "(red (sum i32) (mul (cast i32 $0) (cast i32 $1)) (tuple 2))"
#define PLUS  "(add $1 $0)"

typedef struct machine {
  const char *name, *text; /* one intrinsic, called u */
  const char *fn;          /* of the product, tuple form; or of the map */
  const char *onto;        /* the map that adds to the product, in the rule that begins with an
                              accumulator; NULL: none */
  uint32_t operands;       /* of a map; 0: a product */
  uint32_t rules;
  bool exact;
} machine;

static const machine machines[] = {
    {"f32 product of 2x4x3",
     "(intrinsic u (meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b))))"
     "(operand a (type f32) (dims 2 3)) (operand b (type f32) (dims 4 3)) (operand y (type f32) "
     "(dims 2 4)))",
     "dotProd", NULL, 0, 4, false},
    {"rows of one operand as columns",
     "(intrinsic u (meaning (compute dotProd (cartProd (access 1 (transpose (1 0) ?a)) (access 1 "
     "(transpose (1 0) ?b)))))"
     "(operand a (type f32) (dims 3 2)) (operand b (type f32) (dims 3 4)) (operand y (type f32) "
     "(dims 2 4)))",
     "dotProd", NULL, 0, 4, false},
    {"result transposed",
     "(intrinsic u (meaning (transpose (1 0) (compute dotProd (cartProd (access 1 ?a) (access 1 "
     "?b)))))"
     "(operand a (type f32) (dims 2 3)) (operand b (type f32) (dims 4 3)) (operand y (type f32) "
     "(dims 4 2)))",
     "dotProd", NULL, 0, 4, false},
    {"operands in the other order",
     "(intrinsic u (meaning (compute dotProd (cartProd (access 1 ?b) (access 1 ?a))))"
     "(operand a (type f32) (dims 2 3)) (operand b (type f32) (dims 4 3)) (operand y (type f32) "
     "(dims 4 2)))",
     "dotProd", NULL, 0, 4, false},
    {"a fold of elementwise products",
     "(intrinsic u (meaning (fold sum 2 (compute (map (mul $0 $1) (tuple 2))"
     " (cartProd 0 (access 2 ?a) (access 2 ?a)))))"
     "(operand a (type f32) (dims 2 2)) (operand y (type f32) (dims 2 2 2)))",
     "dotProd", NULL, 0, 1, false},
    {"i8 to i32, accumulating, 1x16x16",
     "(intrinsic u (meaning (compute (epi " PLUS " " I8DOT
     ") (cartProd (access 1 ?a) (access 1 ?b)) ?c))"
     "(operand a (type i8) (dims 1 16)) (operand b (type i8) (dims 16 16)) (operand c (type i32) "
     "(dims 1 16)))",
     I8DOT, "(add $0 $1)", 0, 6, true},
    {"i8 to i32, accumulating, 16x16x16",
     "(intrinsic u (meaning (compute (map (add $0 $1)) ?c (compute " I8DOT
     " (cartProd (access 1 ?a) (access 1 ?b)))))"
     "(operand a (type i8) (dims 16 16)) (operand b (type i8) (dims 16 16)) (operand c (type i32) "
     "(dims 16 16)))",
     I8DOT, "(add $0 $1)", 0, 6, true},
    {"a systolic array",
     "(intrinsic u (meaning (systolicArray 3 4 (access 1 ?a) (access 0 ?b)))"
     "(operand a (type f32) (dims 2 3)) (operand b (type f32) (dims 3 4)) (operand y (type f32) "
     "(dims 2 4)))",
     "dotProd", NULL, 0, 4, false},
    {"an accumulating systolic array",
     "(intrinsic u (meaning (systolicArrayAcc 3 4 (access 1 ?a) (access 0 ?b) (access 2 ?c)))"
     "(operand a (type f32) (dims 2 3)) (operand b (type f32) (dims 3 4)) (operand c (type f32) "
     "(dims 2 4)))",
     "dotProd", "(add $0 $1)", 0, 6, false},
    {"a row times a matrix",
     "(intrinsic u (meaning (compute dotProd (cartProd (access 0 ?a) (access 1 ?b))))"
     "(operand a (type f32) (dims 3)) (operand b (type f32) (dims 4 3)) (operand y (type f32) "
     "(dims 4)))",
     "dotProd", NULL, 0, 4, false},
    {"dot products of lanes",
     "(intrinsic u (meaning (compute (epi " PLUS " " I8DOT
     ") (pair (access 1 ?a) (access 1 ?b)) ?c))"
     "(operand a (type i8) (dims 8 4)) (operand b (type i8) (dims 8 4)) (operand c (type i32) "
     "(dims 8)))",
     I8DOT, "(add $0 $1)", 0, 6, true},
    {"an outer product",
     "(intrinsic u (meaning (compute (map (add $2 (mul $0 $1))) (broadcast ((4 4) ()) (insertAxis "
     "1 ?a))"
     " (broadcast ((4 4) ()) (insertAxis 0 ?b)) ?c)) (operand a (type f32) (dims 4)) (operand b "
     "(type f32) (dims 4)) (operand "
     "c (type f32) (dims 4 4)))",
     "dotProd", NULL, 0, 1, false},
    {"largest sum (max-plus)",
     "(intrinsic u (meaning (compute (red max (add $0 $1) (tuple 2)) (cartProd (access 1 ?a) "
     "(access 1 ?b))))"
     "(operand a (type f32) (dims 2 3)) (operand b (type f32) (dims 4 3)) (operand y (type f32) "
     "(dims 2 4)))",
     "(red max (add $0 $1) (tuple 2))", NULL, 0, 4, true},
    {"multiply-add of 8",
     "(intrinsic u (meaning (compute (map (add $2 (mul $0 $1))) ?a ?b ?c))"
     "(operand a (type f32) (dims 8)) (operand b (type f32) (dims 8)) (operand c (type f32) (dims "
     "8)))",
     "(map (add $2 (mul $0 $1)))", NULL, 3, 1, true},
    {"maximum of i32 vectors",
     "(intrinsic u (meaning (compute (map (max $0 $1)) ?a ?b))"
     "(operand a (type i32) (dims 1 16)) (operand b (type i32) (dims 1 16)) (operand y (type i32) "
     "(dims 1 16)))",
     "(map (max $0 $1))", NULL, 2, 1, true},
    {"a sum with an immediate",
     "(intrinsic u (meaning (compute (map (add $0 $1)) ?a (broadcast ((1 16) ()) ?b)))"
     "(operand a (type i32) (memory acc) (dims 1 16)) (operand b (type i32) (dims 1 1) (immediate "
     "-9 9)) (operand y (type i32) (memory acc) (dims 1 16)))",
     "(map (add $0 $1))", NULL, 2, 1, true},
    {"a scalar unit",
     "(intrinsic u (meaning (compute (map (exp $0)) ?a)) (operand a (type f32)) (operand y (type "
     "f32)))",
     "(map (exp $0))", NULL, 1, 1, true},
};

typedef struct job {
  const machine *m;
  const char *more; /* further forms of the intrinsic */
  tarn_ruleset *rs;
  const tarn_hw *hw;
  uint64_t seed;
  tarn_term fused; /* the last product, with what is added to it as its epilogue */
  tarn_term then;  /* the product with another epilogue */
  uint32_t fired[8];
} job;

static void derive(tarn_ctx *c, void *arg) {
  job *j = arg;
  char *text = tarn_format(c, "(hw m " MEMORIES "%.*s %s))", (int)strlen(j->m->text) - 1,
                           j->m->text, j->more); /* inside it */
  j->hw = tarn_hw_parse(L, tarn_sx_read(c, text, strlen(text), "m.hw"));
  j->rs = tarn_ruleset_new(L);
  uint32_t n = tarn_ruleset_derive(j->rs, j->hw);
  ck_assert_msg(n == j->m->rules && n == tarn_ruleset_count(j->rs), "%s: %u rules", j->m->name, n);
}

/* ---------------------------------------------------------------- instances */
static tarn_term some_input(job *j, const char *name, tarn_dtype t, uint32_t ns, uint32_t n,
                            const int64_t *dim) {
  (void)j;
  return tarn_input(L, name, tarn_type_tensor(L, t, ns, n, dim));
}
static uint32_t parse_fn(tarn_ctx *c, const char *text) {
  uint32_t used;
  char *node = tarn_format(c, "(compute %s)", text);
  return tarn_payload_get(L, tarn_payload_parse(L, TARN_OP_COMPUTE, read1(c, node), &used))->id;
}
static void some_dims(job *j, int64_t *dim, uint32_t n, uint32_t most) {
  for (uint32_t i = 0; i < n; i++) dim[i] = 1 + below(&j->seed, most);
}

/* (compute FN (cartProd s A B)), with up to two shared dims, two of each side, three reduced;
 * ?onto: added to. */
static tarn_term some_product(tarn_ctx *c, job *j, bool onto) {
  tarn_dtype t = tarn_term_type(L, tarn_hw_meaning_of(L, j->hw, 0).in[0])->dtype;
  uint32_t s = below(&j->seed, 2), na = below(&j->seed, 3), nb = below(&j->seed, 3),
           nk = 1 + below(&j->seed, 2);
  int64_t a[8], b[8], k[3];
  uint32_t most = t == TARN_F32 ? 7 : 25;
  some_dims(j, a, s, 3);
  memcpy(b, a, sizeof a);
  some_dims(j, a + s, na, na > 1 ? 4 : most), some_dims(j, b + s, nb, nb > 1 ? 5 : most),
      some_dims(j, k, nk, nk > 1 ? 6 : most);
  if (na && below(&j->seed, 30) == 0) a[s] = 0; /* no rows */
  memcpy(a + s + na, k, nk * sizeof *k), memcpy(b + s + nb, k, nk * sizeof *k);
  tarn_term p = tarn_cart(L, s, some_input(j, "A", t, s + na, s + na + nk, a),
                          some_input(j, "B", t, s + nb, s + nb + nk, b));
  p = j->fused = tarn_compute(L, parse_fn(c, j->m->fn), &p, 1);
  const tarn_type *y = tarn_term_type(L, p);
  tarn_term apart[] = {tarn_term_get(L, p)->kid[0],
                       some_input(j, "P", y->dtype, y->ns, y->n, y->dim)};
  j->then = tarn_compute(
      L, parse_fn(c, tarn_format(c, "(epi (max (mul $1 $0) (neg $0)) %s)", j->m->fn)), apart, 2);
  if (!onto) return p;
  tarn_term both[] = {p, apart[1]};
  j->fused =
      tarn_compute(L, parse_fn(c, tarn_format(c, "(epi %s %s)", j->m->onto, j->m->fn)), apart, 2);
  return tarn_compute(L, parse_fn(c, tarn_format(c, "(map %s)", j->m->onto)), both, 2);
}

/* A constant tensor of one number, which the immediate may be. */
static tarn_term some_number(tarn_ctx *c, job *j, tarn_dtype t, uint32_t ns, uint32_t n,
                             const int64_t *dim) {
  const tarn_hw_operand *o = &j->hw->intrin[0].op[1];
  tarn_tensor *x = tarn_tensor_new(c, t, n, dim);
  int64_t v = o->lo + (int64_t)below(&j->seed, (uint32_t)(o->hi - o->lo + 1));
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) tarn_tensor_set(x, i, (tarn_value){.i = v});
  return tarn_constant(L, tarn_format(c, "n%u", tarn_term_count(L)), x, ns);
}

static tarn_term some_map(tarn_ctx *c, job *j) {
  tarn_dtype t = tarn_term_type(L, tarn_hw_meaning_of(L, j->hw, 0).in[0])->dtype;
  uint32_t n = below(&j->seed, 4), ns = below(&j->seed, n + 1);
  int64_t dim[4];
  tarn_term x[3];
  some_dims(j, dim, n, 6);
  for (uint32_t i = 0; i < j->m->operands; i++)
    x[i] = j->hw->intrin[0].op[i].immediate
               ? some_number(c, j, t, ns, n, dim)
               : some_input(j, tarn_format(c, "X%u", i), t, ns, n, dim);
  return tarn_compute(L, parse_fn(c, j->m->fn), x, j->m->operands);
}

/* The meaning itself, over inputs: what the rule of that name is for. */
static tarn_term the_meaning(job *j) { return tarn_hw_meaning_of(L, j->hw, 0).term; }

/* ---------------------------------------------------------------- both sides */
typedef struct match {
  job *j;
  const rule *r;
  tarn_term right;
} match;
static bool matched(void *arg, renv *e) {
  match *m = arg;
  if (tarn_r_conditions(e, m->r, TARN_NONE) && r_guards(e, m->r))
    m->right = tarn_r_instantiate(e, m->r, m->r->rhs[0].pat);
  return m->right == TARN_NONE;
}

static uint32_t bind_inputs(tarn_ctx *c, job *j, tarn_term t, tarn_binding *in, uint32_t n) {
  const tarn_node *x = tarn_term_get(L, t);
  if (x->op == TARN_OP_INPUT) {
    const char *name = tarn_payload_get(L, x->payload)->name;
    for (uint32_t i = 0; i < n; i++)
      if (!strcmp(in[i].name, name)) return n;
    tarn_tensor *v = kit_values(c, tarn_term_type(L, t), &j->seed);
    for (int64_t i = 0; i < tarn_tensor_count(v) && !tarn_dtype_is_float(v->dtype); i++)
      tarn_tensor_set(v, i, (tarn_value){.i = (int64_t)tarn_random(&j->seed)});
    in[n] = (tarn_binding){name, v};
    return n + 1;
  }
  for (uint32_t i = 0; i < x->n; i++) n = bind_inputs(c, j, x->kid[i], in, n);
  return n;
}

static void compare(tarn_ctx *c, job *j, const rule *r, tarn_term left, tarn_term right) {
  tarn_binding in[8];
  uint32_t n = bind_inputs(c, j, left, in, 0);
  for (int wide = 0; wide < 2; wide++) {
    tarn_tensor *out[2];
    tarn_eval(L, (tarn_term[]){left, right}, 2, in, n, wide ? TARN_WIDE : TARN_STRICT, NULL, out);
    double d = kit_distance(out[0], out[1]), most = r->numeric == TARN_RULE_EXACT && !wide ? 0
                                                    : wide                                 ? 1e-12
                                                                                           : 1e-5;
    if (d <= most) continue;
    tarn_buf b = {.cx = c};
    tarn_term_print(L, &b, left);
    tarn_buf_str(&b, "\n=>\n");
    tarn_term_print(L, &b, right);
    ck_abort_msg("%s, %s: off by %g\n%s", j->m->name, r->name, d, b.p);
  }
}

static void try_rule(tarn_ctx *c, job *j, uint32_t i, tarn_term t) {
  const rule *r = j->rs->rule.p[i];
  rhost host = tarn_r_term_host(L);
  renv *e = TARN_NEW(c, renv);
  match m = {j, r, TARN_NONE};
  *e = (renv){.L = L, .host = &host};
  tarn_r_env_reset(e, r);
  tarn_r_match_term(e, r, 0, t, matched, &m);
  if (m.right == TARN_NONE) return;
  ck_assert_msg(tarn_term_get(L, m.right)->type == tarn_term_get(L, t)->type, "%s, %s: types",
                j->m->name, r->name);
  compare(c, j, r, t, m.right);
  j->fired[i]++;
}

static void instances(tarn_ctx *c, void *arg) {
  job *j = arg;
  for (uint32_t i = 0; i < 60; i++) {
    bool onto = j->m->onto && i % 2;
    tarn_term t = j->m->operands ? some_map(c, j) : some_product(c, j, onto);
    for (uint32_t k = 0; k < j->rs->rule.n; k++)
      if (tarn_ruleset_at(j->rs, k).level == TARN_RULE_KERNEL)
        try_rule(c, j, k,
                 tarn_kernel_form(L, strstr(tarn_ruleset_at(j->rs, k).name, "-then") ? j->then
                                                                                     : j->fused));
      else try_rule(c, j, k, i % 10 ? t : the_meaning(j));
  }
}

START_TEST(sides_agree) {
  job j = {.m = &machines[_i], .more = "", .seed = (uint64_t)_i};
  must(derive, &j);
  must(instances, &j);
  for (uint32_t i = 0; i < j.rs->rule.n; i++) {
    tarn_rule_info r = tarn_ruleset_at(j.rs, i);
    bool tiles = strstr(r.name, "-tiles") || strstr(r.name, "-pieces") || strstr(r.name, "-nest");
    ck_assert_msg(j.fired[i] >= (tiles ? 20 : 1), "%s: %s fired %u times", j.m->name, r.name,
                  j.fired[i]);
    ck_assert_str_eq(r.family, "mapping");
    if (tiles)
      ck_assert_msg((r.numeric == TARN_RULE_EXACT) == j.m->exact, "%s: %s", j.m->name, r.name);
  }
}
END_TEST

/* ---------------------------------------------------------------- constraints: where a rule is
 * wanted */
static void constrained(tarn_ctx *c, void *arg) {
  static const struct {
    int64_t m, k;
    bool fires;
  } sizes[] = {{4, 6, true}, {3, 6, true}, {4, 5, false}, {4, 12, false}};
  job *j = arg;
  for (uint32_t i = 0; i < COUNT(sizes); i++) {
    int64_t a[] = {sizes[i].m, sizes[i].k}, b[] = {5, sizes[i].k};
    tarn_term p = tarn_cart(L, 0, some_input(j, "A", TARN_F32, 1, 2, a),
                            some_input(j, "B", TARN_F32, 1, 2, b));
    uint32_t at = tarn_ruleset_find(j->rs, "m.u-tiles"), before = j->fired[at];
    try_rule(c, j, at, tarn_compute(L, tarn_fn_dot(L, TARN_F32), &p, 1));
    ck_assert_msg(j->fired[at] - before == sizes[i].fires, "%d", (int)i);
  }
}
START_TEST(constraints) {
  job j = {
      .m = &machines[0], .more = "(constraint (divides 3 ?k)) (constraint (<= ?kt 2))", .seed = 5};
  must(derive, &j);
  must(constrained, &j);
}
END_TEST

/* ---------------------------------------------------------------- the graph */
static const struct net {
  const char *machine, *program;
  const char *rule;
} graphs[] = {
    {"(intrinsic u (meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b))))"
     "(operand a (type f32) (dims 4 4)) (operand b (type f32) (dims 4 4)) (operand y (type f32) "
     "(dims 4 4)))",
     "(program (inputs (x ((1 3 5 6) ()) f32) (w ((5 3 3 3) ()) f32)) (outputs (y (compute dotProd "
     "(cartProd"
     " (access 1 (input w ((5 3 3 3) ()) f32)) (windows (3 3 3) (1 1 2) (access 1 (input x ((1 3 5 "
     "6) ()) f32))))))))",
     "g.u-tiles"},
    {"(intrinsic u (meaning (compute (epi (add $1 $0) " I8DOT
     ") (cartProd (access 1 ?a) (access 1 ?b)) ?c))"
     "(operand a (type i8) (dims 1 16)) (operand b (type i8) (dims 16 16)) (operand c (type i32) "
     "(dims 1 16)))",
     "(program (inputs (x ((7 40) ()) i8) (w ((20 40) ()) i8) (b ((7 20) ()) i32)) (outputs (y "
     "(compute (map (add $0 $1))"
     " (compute " I8DOT
     " (cartProd (access 1 (input x ((7 40) ()) i8)) (access 1 (input w ((20 40) ()) i8))))"
     " (input b ((7 20) ()) i32)))))",
     "g.u-tiles-onto"},
};
static void saturated(tarn_ctx *c, void *arg) {
  const struct net *n = arg;
  char *text = tarn_format(c, "(hw g " MEMORIES "%s)", n->machine);
  const tarn_hw *hw = tarn_hw_parse(L, tarn_sx_read(c, text, strlen(text), "g.hw"));
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_derive(rs, hw);
  tarn_sat_options o = tarn_sat_defaults();
  o.surface = true, o.hw = hw;
  o.reasons = TARN_EG_REASONS_ALL;
  kit_classes k = {.s = tarn_saturate(tarn_program_parse(L, read1(c, n->program), NULL), rs, &o),
                   .seed = 3};
  kit_prove(k.s, rs);
  const tarn_sat_report *r = tarn_sat_result(k.s);
  kit_check(&k);
  uint64_t applied = 0;
  for (uint32_t i = 0; i < r->nrule; i++)
    if (!strcmp(r->rule[i].name, n->rule)) applied = r->rule[i].count.applied;
  ck_assert_uint_eq(applied, 1);
  ck_assert_str_eq(r->stop, "saturated");
}
START_TEST(graph) { must(saturated, (void *)(uintptr_t)&graphs[_i]); }
END_TEST

/* The kernel level: networks of nests, padding and groups included. */
#define F32_434                                                                                    \
  "(intrinsic u (meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b))))"                \
  "(operand a (type f32) (dims 4 3)) (operand b (type f32) (dims 4 3)) (operand y (type f32) "     \
  "(dims 4 4)))"
#define F32_ACC                                                                                    \
  "(intrinsic u (meaning (systolicArrayAcc 3 4 (access 1 ?a) (access 0 ?b) (access 2 ?c)))"        \
  "(operand a (type f32) (dims 4 3)) (operand b (type f32) (dims 3 4)) (operand c (type f32) "     \
  "(dims 4 4)))"
static const struct net nests[] = {
    {F32_434, "in x f32 1,3,6,6\nrand w 5,3,3,3\nnode Conv c x w -> y : pads=1,1,1,1\nout y\n",
     "h.u-nest"},
    {F32_ACC,
     "in x f32 1,4,5,5\nrand w 6,2,3,3\nrand b 6\nnode Conv c x w b -> t : group=2 strides=2,2 "
     "pads=1,1,0,0\nnode Relu r t -> "
     "y\nout y\n",
     "h.u-nest-then"},
    {F32_ACC,
     "in x f32 5,7\nrand w 7,6\nin b f32 5,6\nnode MatMul m x w -> t\nnode Add a t b -> y\nout y\n",
     "h.u-nest-onto"},
    {F32_434, "in x f32 2,3,4\nin w f32 2,4,5\nnode MatMul m x w -> y\nout y\n", "h.u-nest"},
    {F32_ACC, "in x f32 1,4,6,6\nrand w 4,1,3,3\nnode Conv c x w -> y : group=4\nout y\n",
     "h.u-nest"},
};
static void kernels(tarn_ctx *c, void *arg) {
  const struct net *n = arg;
  char *text = tarn_format(c, "(hw h " MEMORIES "%s)", n->machine);
  const tarn_hw *hw = tarn_hw_parse(L, tarn_sx_read(c, text, strlen(text), "h.hw"));
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_ruleset_derive(rs, hw);
  tarn_sat_options o = tarn_sat_defaults();
  o.hw = hw;
  o.reasons = TARN_EG_REASONS_ALL;
  kit_classes k = {.s = tarn_saturate(kit_model(L, n->program), rs, &o), .seed = 3};
  kit_prove(k.s, rs);
  const tarn_sat_report *r = tarn_sat_result(k.s);
  kit_check(&k);
  uint32_t calls = 0;
  tarn_egraph *g = tarn_sat_egraph(k.s);
  for (uint32_t x = tarn_eg_next_class(g, TARN_NONE); x != TARN_NONE; x = tarn_eg_next_class(g, x))
    for (uint32_t i = tarn_eg_next_node(g, x, TARN_NONE); i != TARN_NONE;
         i = tarn_eg_next_node(g, x, i))
      calls += tarn_eg_node_at(g, i).op == TARN_OP_CALL;
  uint64_t applied = 0;
  for (uint32_t i = 0; i < r->nrule; i++)
    if (!strcmp(r->rule[i].name, n->rule)) applied = r->rule[i].count.applied;
  ck_assert_msg(applied >= 1 && calls >= 1, "%s: %d times, %u calls", n->rule, (int)applied, calls);
  ck_assert_str_eq(r->stop, "saturated");
}
START_TEST(nest_rules) { must(kernels, (void *)(uintptr_t)&nests[_i]); }
END_TEST

/* The text that is printed can be loaded again. */
static void loaded(tarn_ctx *c, void *arg) {
  job *j = arg;
  tarn_buf b = {.cx = c}, again = {.cx = c};
  for (uint32_t i = 0; i < j->rs->rule.n; i++) {
    tarn_buf_fmt(&b, "(family mapping :level %s ",
                 tarn_ruleset_at(j->rs, i).level ? "kernel" : "surface");
    tarn_rule_print(j->rs, i, &b), tarn_buf_str(&b, ")\n");
  }
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_read(rs, b.p, b.n, "saved.rules");
  ck_assert_uint_eq(rs->rule.n, j->rs->rule.n);
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    again.n = 0;
    tarn_rule_print(rs, i, &again);
    ck_assert_msg(strstr(b.p, again.p) != NULL, "%s", again.p);
  }
  j->rs = rs;
}
START_TEST(saved) {
  job j = {.m = &machines[_i], .more = "", .seed = (uint64_t)_i};
  must(derive, &j), must(loaded, &j), must(instances, &j);
  for (uint32_t i = 0; i < j.rs->rule.n; i++) ck_assert_uint_ge(j.fired[i], 1);
}
END_TEST

/* ---------------------------------------------------------------- refusals: where and why */
#define ROWS                                                                                       \
  "(operand a (type f32) (dims 4 8)) (operand b (type f32) (dims 4 8)) (operand y (type f32) "     \
  "(dims 4 4))"
static const struct refusal {
  const char *text, *at, *why;
} refusals[] = {
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?z))))" ROWS, "m.hw:2:74",
     "?z is no operand"},
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 0 ?b))))" ROWS, "m.hw:2:40",
     "cartProd"},
    {"(meaning (compute dotprod (cartProd (access 1 ?a) (access 1 ?b))))" ROWS, "m.hw:2:32",
     "a function is expected"},
    {"(meaning (komputer dotProd ?a ?b))" ROWS, "m.hw:2:24", "no operator is called komputer"},
    {"(meaning (compute (map (add $0 $1)) ?a ?b))" ROWS, "m.hw:2:23",
     "the meaning is f32 ((4 8) ()), the result y is f32 (4 4)"},
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?a))))" ROWS, "m.hw:2:23",
     "does not read operand b"},
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 (input b ((4 8) ()) "
     "f32)))))" ROWS,
     "m.hw:2:74", "operands (?NAME) alone"},
    {"(meaning (compute (map (add $0 $1)) ?a (opaque Mystery ((f32 ((4 8) ()))) ?b)))" ROWS,
     "m.hw:2:53", "operands (?NAME) alone"},
    {"(meaning ?a) (operand a (type f32) (dims 2)) (operand a (type f32) (dims 2))", "m.hw:2:1",
     "operand a is given twice"},
    {"(meaning (gather 0 ?a ?i)) (operand a (type f32) (dims 9)) (operand i (type i64) (dims 4)) "
     "(operand y (type f32) (dims "
     "4))",
     "m.hw:2:23", "has an operator gather"},
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b)))) (operand a (type f32) "
     "(dims 4 0)) (operand b (type "
     "f32) (dims 4 0)) (operand y (type f32) (dims 4 4))",
     "m.hw:2:103", "positive integers"},
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b)))) (constraint (+ ?k "
     "1))" ROWS,
     "m.hw:2:93", "no condition"},
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b)))) (constraint (> ?q "
     "1))" ROWS,
     "m.hw:2:96", "?q is not bound"},
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b)))) (constraint (even "
     "?k))" ROWS,
     "m.hw:2:93", "no function is called even"},
    {"(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b)))) (constraint)" ROWS,
     "m.hw:2:81", "(constraint CONDITION)"},
    {"(meaning ?a) (operand a (type f32)) (operand y (type f32))) (intrinsic u (meaning ?a) "
     "(operand a (type f32)) (operand y "
     "(type f32))",
     "m.hw:2:74", "intrinsic u is described twice"},
};
static void derive_text(tarn_ctx *c, void *arg) {
  const struct refusal *r = arg;
  char *text = tarn_format(c, "(hw m " MEMORIES "\n(intrinsic u %s))", r->text);
  tarn_ruleset_derive(tarn_ruleset_new(L),
                      tarn_hw_parse(L, tarn_sx_read(c, text, strlen(text), "m.hw")));
}
START_TEST(refused) {
  const struct refusal *r = &refusals[_i];
  ck_assert_msg(tarn_protect(cx, derive_text, (void *)(uintptr_t)r) == TARN_BAD_INPUT,
                "accepted: %s", r->text);
  const char *m = tarn_message(cx);
  size_t n = strlen(r->at);
  ck_assert_msg(!strncmp(m, r->at, n) && m[n] == ':', "%s\n  says  %s\n  not   %s", r->text, m,
                r->at);
  ck_assert_msg(strstr(m, r->why) && !strchr(m, '\n'), "%s\n  says  %s\n  not   %s", r->text, m,
                r->why);
}
END_TEST

/* The checker of rules: all hold, and need each of their conditions. */
static void checked(tarn_ctx *c, void *arg) {
  job *j = arg;
  const tarn_rule_result *r;
  (void)c;
  for (int mutate = 0; mutate < 2; mutate++) {
    tarn_rules_check_options o = {.samples = 12, .mutate = mutate};
    uint32_t n = tarn_rules_check(j->rs, &o, &r);
    ck_assert_msg(mutate || n == j->rs->rule.n, "%s: %u results", j->m->name, n);
    for (uint32_t k = 0; k < n; k++)
      ck_assert_msg(r[k].ok, "%s, %s: %u of %u %s\n%s", j->m->name, r[k].name, r[k].samples,
                    r[k].tried, r[k].deleted ? r[k].deleted : "",
                    r[k].counterexample ? r[k].counterexample : "");
  }
}
START_TEST(rules_check) {
  job j = {.m = &machines[_i], .more = "", .seed = 1};
  must(derive, &j), must(checked, &j);
}
END_TEST

int main(void) {
  const looped tests[] = {{sides_agree, COUNT(machines)}, {constraints, 1},
                          {graph, COUNT(graphs)},         {nest_rules, COUNT(nests)},
                          {saved, COUNT(machines)},       {refused, COUNT(refusals)},
                          {rules_check, COUNT(machines)}};
  return run_suite("derive", tests, sizeof tests / sizeof *tests);
}
