/* loop/: layouts, canonical kernels, schedules and their check, footprints and prices. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "access/access.h"
#include "base/base.h"
#include "hw/hw.h"
#include "loop/internal.h"
#include "loop/loop.h"

static tarn_ctx *cx;
static tarn_lang *L;
#include "tests/transforms.h"

#include "tests/loop_kit.h"

static void make_lang(tarn_ctx *c, void *arg) {
  (void)arg;
  L = tarn_lang_new(c);
  fills[0] = whole_number(0), fills[1] = whole_number(1);
}
static void setup(void) {
  cx = tarn_ctx_new(NULL);
  seed = 1;
  ck_assert_int_eq(tarn_protect(cx, make_lang, NULL), TARN_OK);
}
static void teardown(void) { tarn_ctx_free(cx); }

/* Every test body runs protected; a raise fails it with its message. */
static int number; /* of the loop test */
static void run(tarn_fn *body, int i) {
  number = i;
  seed = (uint64_t)i * 1000003 + 1;
  tarn_status st = tarn_protect(cx, body, NULL);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
}
#define TEST(name)                                                                                                             \
  static void name##_body(tarn_ctx *ctx, void *arg);                                                                           \
  START_TEST(name) { run(name##_body, _i); }                                                                                   \
  END_TEST                                                                                                                     \
  static void name##_body(tarn_ctx *ctx, void *arg)
#define UNUSED (void)ctx, (void)arg

/* ---------------------------------------------------------------- layouts */
TEST(layouts_by_hand) {
  UNUSED;
  const int64_t d[] = {2, 3, 5}, i[] = {1, 2, 3};
  tarn_layout r = tarn_layout_row_major(3, d);
  ck_assert(r.stride[0] == 15 && r.stride[1] == 5 && r.stride[2] == 1 && !r.block && !r.offset);
  ck_assert_int_eq(tarn_layout_elems(&r), 30);
  ck_assert_int_eq(tarn_layout_at(&r, i), 28);
  const uint8_t last[] = {0, 2, 1};
  tarn_layout o = tarn_layout_ordered(3, d, last, 0, 0);
  ck_assert(o.stride[0] == 15 && o.stride[1] == 1 && o.stride[2] == 3);
  ck_assert_int_eq(tarn_layout_at(&o, i), 15 + 2 + 9);
  const uint8_t as[] = {0, 1, 2};
  tarn_layout b = tarn_layout_ordered(3, d, as, 1, 2); /* 3 padded to 4: [2][2][5][2] */
  ck_assert(b.stride[0] == 20 && b.stride[1] == 10 && b.stride[2] == 2);
  ck_assert_int_eq(tarn_layout_elems(&b), 40);
  ck_assert_int_eq(tarn_layout_at(&b, i), 20 + 10 + 6 + 0);
  ck_assert_int_eq(tarn_layout_at(&b, ((const int64_t[]){0, 1, 4})), 8 + 1);
  tarn_layout scalar = tarn_layout_row_major(0, NULL);
  ck_assert(tarn_layout_elems(&scalar) == 1 && tarn_layout_at(&scalar, NULL) == 0);
  const int64_t none[] = {4, 0, 2};
  tarn_layout empty = tarn_layout_row_major(3, none);
  ck_assert_int_eq(tarn_layout_elems(&empty), 0);
  ck_assert(tarn_layout_equal(&r, &r) && !tarn_layout_equal(&r, &o) && !tarn_layout_equal(&r, &b));
  o = r, o.offset = 1;
  ck_assert(!tarn_layout_equal(&r, &o));
}

/* Every index has a place of its own within the elements counted. */
TEST(layouts_are_injective) {
  UNUSED;
  for (int k = 0; k < 300; k++) {
    int64_t dim[4], i[4] = {0};
    uint32_t n = (uint32_t)below(5);
    for (uint32_t d = 0; d < n; d++) dim[d] = 1 + below(6);
    tarn_layout l = random_layout(n, dim, true);
    int64_t elems = tarn_layout_elems(&l);
    uint8_t *seen = TARN_ARRAY(cx, uint8_t, elems);
    do {
      int64_t at = tarn_layout_at(&l, i) - l.offset;
      MUST(at >= 0 && at < elems && !seen[at]);
      seen[at] = 1;
    } while (step_index(n, dim, i));
  }
}

/* ---------------------------------------------------------------- canonical kernels */
static tarn_tensor **outputs_of(const tarn_ksig *k) {
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, k->nout);
  for (uint32_t o = 0; o < k->nout; o++) {
    int64_t n = tarn_layout_elems(&k->out[o]) + k->out[o].offset;
    out[o] = tarn_tensor_new(cx, TARN_F32, 1, &n);
  }
  return out;
}
static void check_canonical(const loop_case *c, bool twice) {
  tarn_ksig k = c->sig;
  tarn_ksig_canonical(L, &k);
  tarn_tensor **want = outputs_of(&c->sig), **got = outputs_of(&c->sig);
  run_signature(c, &c->sig, want);
  run_signature(c, &k, got);
  for (uint32_t o = 0; o < k.nout; o++)
    if (memcmp(want[o]->data, got[o]->data, (size_t)tarn_tensor_count(want[o]) * 4))
      ck_abort_msg("output %u differs\n%s\n%s", o, nest_text(c->sig.nest), nest_text(k.nest));
  tarn_ksig again = k;
  tarn_ksig_canonical(L, &again);
  if (!twice) return;
  if (again.nest != k.nest || tarn_ksig_hash(L, &again) != tarn_ksig_hash(L, &k))
    ck_abort_msg("canonical twice differs\n%s\n%s\n%s", nest_text(c->sig.nest), nest_text(k.nest), nest_text(again.nest));
}
TEST(canonical_single) {
  UNUSED;
  for (int k = 0; k < 250; k++) {
    loop_case s;
    random_single(&s, false, false);
    s.sig.strict = k & 1;
    check_canonical(&s, false);
  }
}
/* Without divisions, what is canonical stays as it is. */
TEST(canonical_affine) {
  UNUSED;
  for (int k = 0; k < 200; k++) {
    loop_case s;
    random_single(&s, true, false);
    s.sig.strict = k & 1;
    check_canonical(&s, true);
  }
}
TEST(canonical_ordered) {
  UNUSED;
  for (int k = 0; k < 200; k++) {
    loop_case s;
    random_single(&s, false, true);
    s.sig.strict = k & 1;
    check_canonical(&s, false);
  }
}
TEST(canonical_staged) {
  UNUSED;
  for (int k = 0; k < 200; k++) {
    loop_case s;
    random_staged(&s);
    s.sig.strict = k & 1;
    check_canonical(&s, false);
  }
}

/* Shared loops in blocks: the same values; so many loops as were cut are no longer shared, or fewer of their points. */
static int64_t shared_points(const tarn_ksig *k) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  int64_t p = 1;
  for (uint32_t d = 0; d < n->depth; d++) p *= n->shared[d];
  return p;
}
TEST(cut_in_blocks) {
  UNUSED;
  uint32_t cuts = 0;
  for (int i = 0; i < 300; i++) {
    loop_case c;
    random_staged(&c);
    const tarn_nest *n = tarn_nest_get(L, c.sig.nest);
    int64_t block[TARN_MAX_DIMS], by = 1;
    for (uint32_t d = 0; d < n->depth; d++) {
      block[d] = 1 + below(n->shared[d]);
      while (n->shared[d] % block[d]) block[d]--;
      by *= block[d];
    }
    tarn_ksig k = c.sig;
    if (!tarn_ksig_cut(L, &k, block, i & 1)) {
      MUST(k.nest == c.sig.nest);
      continue;
    }
    cuts++;
    MUST(shared_points(&k) * by == shared_points(&c.sig));
    for (int canonical = 0; canonical < 2; canonical++) {
      tarn_tensor **want = outputs_of(&c.sig), **got = outputs_of(&c.sig);
      run_signature(&c, &c.sig, want);
      run_signature(&c, &k, got);
      for (uint32_t o = 0; o < k.nout; o++)
        if (memcmp(want[o]->data, got[o]->data, (size_t)tarn_tensor_count(want[o]) * 4))
          ck_abort_msg("output %u differs\n%s\n%s", o, nest_text(c.sig.nest), nest_text(k.nest));
      tarn_ksig_canonical(L, &k);
    }
  }
  ck_assert_uint_ge(cuts, 60);
}

/* A read copied panel by panel: the same values; only reads that are sums of steps, of what there is in every place. */
TEST(packed_by_blocks) {
  UNUSED;
  uint32_t packs = 0, panels = 0;
  for (int i = 0; i < 1200; i++) {
    loop_case c;
    random_single(&c, i & 1, false);
    const tarn_stage *st = tarn_nest_get(L, c.sig.nest)->stage;
    if (!st->nown) continue;
    uint32_t d = (uint32_t)below(st->nown), read = (uint32_t)below(tarn_fn_get(L, st->fn)->nops);
    int64_t block = 1 + below(st->own[d]), panel;
    while (st->own[d] % block) block--;
    for (panel = 1 + below(block); block % panel;) panel--;
    tarn_ksig k = c.sig;
    if (!tarn_ksig_pack(L, &k, read, d, block, panel)) {
      MUST(k.nest == c.sig.nest);
      continue;
    }
    packs++, panels += panel > 1 && panel < block;
    MUST(tarn_nest_get(L, k.nest)->nstage == 2);
    for (int canonical = 0; canonical < 2; canonical++) {
      tarn_tensor **want = outputs_of(&c.sig), **got = outputs_of(&c.sig);
      run_signature(&c, &c.sig, want);
      run_signature(&c, &k, got);
      if (memcmp(want[0]->data, got[0]->data, (size_t)tarn_tensor_count(want[0]) * 4))
        ck_abort_msg("read %u, dim %u by %d and %d\n%s\n%s", read, d, (int)block, (int)panel, nest_text(c.sig.nest),
                     nest_text(k.nest));
      tarn_ksig_canonical(L, &k);
    }
  }
  ck_assert_uint_ge(packs, 100);
  ck_assert_uint_ge(panels, 10);
}

static bool same_signature(const tarn_ksig *a, const tarn_ksig *b) {
  bool same = a->nest == b->nest && a->nin == b->nin && tarn_ksig_hash(L, a) == tarn_ksig_hash(L, b);
  for (uint32_t i = 0; same && i < a->nin; i++) same = tarn_layout_equal(&a->in[i], &b->in[i]);
  for (uint32_t i = 0; same && i < a->nout; i++) same = tarn_layout_equal(&a->out[i], &b->out[i]);
  return same;
}
/* A kernel said with one of its dims reshaped into two is the same kernel. */
TEST(signature_of_reshaped) {
  UNUSED;
  uint32_t compared = 0;
  for (int k = 0; k < 400; k++) {
    loop_case s;
    tarn_ksig a, b;
    random_single(&s, true, false);
    const tarn_stage *st = tarn_nest_get(L, s.sig.nest)->stage;
    for (uint32_t d = 0; d < st->nown; d++) {
      int64_t f = 2 + below(3);
      if (st->own[d] % f || st->own[d] == f || !split_own(&s.sig, d, f, &b)) continue;
      a = s.sig;
      tarn_ksig_canonical(L, &a), tarn_ksig_canonical(L, &b);
      if (!same_signature(&a, &b))
        ck_abort_msg("dim %u by %d\n%s\n%s\n%s", d, (int)f, nest_text(s.sig.nest), nest_text(a.nest), nest_text(b.nest));
      compared++;
    }
  }
  ck_assert_uint_gt(compared, 50);
}

/* ---- kernels as they come in networks ---- */
/* One operator over plain inputs, all row-major. */
static void nest_of_text(const char *text, tarn_ksig *k) {
  const tarn_sx *s = tarn_sx_read(cx, text, strlen(text), "t")->kid[0];
  tarn_term t = tarn_normalise(L, tarn_term_parse(L, s));
  tarn_node n = *tarn_term_get(L, t);
  uint32_t kid[KIT_IN];
  *k = (tarn_ksig){.nin = n.n, .nout = 1};
  for (uint32_t i = 0; i < n.n; i++) {
    kid[i] = tarn_term_get(L, n.kid[i])->type;
    const tarn_type *kt = tarn_type_get(L, kid[i]);
    k->in[i] = tarn_layout_row_major(kt->n, kt->dim), k->in_type[i] = kt->dtype;
  }
  const tarn_type *t0 = tarn_term_type(L, t);
  k->out[0] = tarn_layout_row_major(t0->n, t0->dim), k->out_type[0] = t0->dtype;
  k->nest = tarn_nest_of(L, n.op, n.payload, kid, n.n);
}
static tarn_ksig canonical_of(const char *text) {
  tarn_ksig k;
  nest_of_text(text, &k);
  tarn_ksig_canonical(L, &k);
  return k;
}
TEST(signature_by_hand) {
  UNUSED;
  /* an elementwise kernel over any shape of as many elements */
  tarn_ksig a = canonical_of("(compute (map (mul $0 2)) (input x ((4 6 5) ()) f32))");
  tarn_ksig b = canonical_of("(compute (map (mul $0 2)) (input other ((120) ()) f32))");
  tarn_ksig c1 = canonical_of("(compute (map (mul $0 2)) (input x ((2 30) (2)) f32))");
  ck_assert(same_signature(&a, &b) && same_signature(&a, &c1));
  const tarn_stage *s = tarn_nest_get(L, a.nest)->stage;
  ck_assert(s->nown == 1 && s->own[0] == 120 && s->nred == 0);
  /* another size, another function, another element type are other kernels */
  tarn_ksig d = canonical_of("(compute (map (mul $0 2)) (input x ((121) ()) f32))");
  tarn_ksig e = canonical_of("(compute (map (mul $0 3)) (input x ((120) ()) f32))");
  tarn_ksig n32 = canonical_of("(compute (map (neg $0)) (input x ((120) ()) f32))");
  tarn_ksig n64 = canonical_of("(compute (map (neg $0)) (input x ((120) ()) f64))");
  ck_assert(!same_signature(&a, &d) && !same_signature(&a, &e));
  ck_assert(tarn_ksig_hash(L, &n32) != tarn_ksig_hash(L, &n64));
  /* sums over the compute dims merge as well */
  tarn_ksig g = canonical_of("(compute reduceSum (input x ((4 3) (5 2)) f32))");
  tarn_ksig h = canonical_of("(compute reduceSum (input x ((12) (10)) f32))");
  ck_assert(same_signature(&g, &h));
  s = tarn_nest_get(L, g.nest)->stage;
  ck_assert(s->nown == 1 && s->own[0] == 12 && s->nred == 1 && s->red[0] == 10);
  /* extents of 1 do not count */
  tarn_ksig i = canonical_of("(compute reduceSum (input x ((1 12 1) (1 10)) f32))");
  ck_assert(same_signature(&g, &i));
}
/* Constant or not, strict or not: other kernels. */
TEST(signature_keeps_apart) {
  UNUSED;
  tarn_ksig a = canonical_of("(compute (map (mul $0 2)) (input x ((120) ()) f32))"), b = a, s = a;
  b.in_const[0] = true, s.strict = true;
  ck_assert(tarn_ksig_hash(L, &a) != tarn_ksig_hash(L, &b));
  ck_assert(tarn_ksig_hash(L, &a) != tarn_ksig_hash(L, &s));
}

/* ---------------------------------------------------------------- schedules */
static const tarn_hw *shipped(const char *name) { return tarn_hw_load(L, name); }

/* What loop.h promises beyond tarn_schedule_check(). */
static void check_promises(const tarn_ksig *k, const tarn_schedule *s) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  for (uint32_t i = 0; i < s->nstage; i++) {
    const tarn_stage_sched *st = &s->stage[i];
    const tarn_func *f = tarn_fn_get(L, n->stage[i].fn);
    uint32_t acc = (uint32_t)n->depth + n->stage[i].nown, last_red = 0;
    int64_t left[TARN_MAX_DIMS] = {0};
    for (uint32_t d = 0; d < acc + n->stage[i].nred; d++)
      left[d] = d < n->depth ? 1 : d < acc ? n->stage[i].own[d - n->depth] : n->stage[i].red[d - acc];
    for (uint32_t l = 0; l < st->nlevel; l++) {
      const tarn_level *x = &st->level[l];
      MUST(x->kind != TARN_VECTOR || (x->step == 1 && left[x->dim] >= 1));
      MUST(x->kind != TARN_PARALLEL || x->dim < acc);
      MUST(l < st->acc || x->dim >= acc || x->kind == TARN_UNROLL || x->kind == TARN_VECTOR);
      if (k->strict && x->dim >= acc) {
        MUST(x->kind != TARN_VECTOR && x->dim >= last_red);
        last_red = x->dim;
      }
      left[x->dim] = x->step;
    }
    if (f->red == TARN_NONE) MUST(st->acc == st->nlevel);
  }
}
static void check_solution(tarn_solver *sv, const tarn_hw *hw, const tarn_ksig *k, uint32_t threads) {
  tarn_cost cost, again;
  const tarn_schedule *s = tarn_solve(sv, k, &cost);
  tarn_schedule_check(L, tarn_nest_get(L, k->nest), s);
  check_promises(k, s);
  tarn_cost_of(L, hw, k, s, threads, &again);
  MUST(cost.seconds == again.seconds && cost.seconds > 0 && isfinite(cost.seconds));
  MUST(cost.flops >= 0 && cost.parallel <= threads + 1e-9);
  MUST(tarn_solve(sv, k, NULL) == s);
}
/* The kernel and its schedule as text, read again: the same; features of every kernel are numbers. */
static void check_texts(tarn_solver *sv, const tarn_hw *hw, const tarn_ksig *k, uint32_t threads) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  tarn_cost cost;
  float f[TARN_FEATURES];
  const tarn_schedule *s = tarn_solve(sv, k, &cost);
  const char *text = tarn_ksig_text(L, cx, k), *st = tarn_schedule_text(L, cx, n, s);
  tarn_ksig back;
  tarn_ksig_parse(L, text, strlen(text), &back);
  MUST(tarn_ksig_equal(k, &back) && !strcmp(tarn_ksig_text(L, cx, &back), text));
  MUST(!strcmp(tarn_schedule_text(L, cx, n, tarn_schedule_parse(L, n, st, strlen(st))), st));
  tarn_features(L, hw, k, s, threads, &cost, f);
  for (uint32_t i = 0; i < TARN_FEATURES; i++) MUST(isfinite(f[i]));
}
static const char *const machines[] = {"x86-64-v3", "aarch64", "riscv64"};
TEST(solutions_are_schedules) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[number % 3]);
  uint32_t threads = number < 3 ? 1 : 2 * (uint32_t)number - 2;
  tarn_solver *sv = tarn_solver_new(L, hw, threads);
  for (int k = 0; k < 150; k++) {
    loop_case s;
    if (k % 3) random_single(&s, below(2), below(5) == 0);
    else random_staged(&s);
    s.sig.strict = below(3) == 0;
    tarn_ksig_canonical(L, &s.sig);
    check_solution(sv, hw, &s.sig, threads);
    check_texts(sv, hw, &s.sig, threads);
  }
  tarn_solver_stats st = tarn_solver_count(sv);
  ck_assert(st.uses == 450 && st.signatures <= 150 && st.evaluations >= st.signatures);
}

/* A product of an (m, k) by an (n, k) matrix, both row-major. */
static tarn_ksig sum_over(int64_t m, int64_t n, int64_t k, bool strict, uint32_t body) {
  const int64_t dim[] = {m, n, k}, ad[] = {m, k}, bd[] = {n, k};
  uint32_t v[3];
  for (uint32_t i = 0; i < 3; i++) v[i] = tarn_ix_var(L, i, dim);
  tarn_imap a = {.ns = 2, .n = 3, .dim = {m, n, k}, .nin = 2, .in = {m, k}, .e = {v[0], v[2]}, .fill = TARN_NONE};
  tarn_imap b = {.ns = 2, .n = 3, .dim = {m, n, k}, .nin = 2, .in = {n, k}, .e = {v[1], v[2]}, .fill = TARN_NONE};
  tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &a)}, {.src = 1, .map = tarn_map_intern(L, &b)}};
  tarn_stage s = {.nown = 2, .nred = 1, .own = {m, n}, .red = {k}, .read = read, .out = true, .space = TARN_NONE};
  s.fn = tarn_fn_reduce(L, body, 2, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  tarn_nest nest = {.out_ns = 2, .nstage = 1, .nchild = 2, .stage = &s};
  tarn_ksig sig = {.nest = tarn_nest_intern(L, &nest), .strict = strict, .nin = 2, .nout = 1};
  sig.in[0] = tarn_layout_row_major(2, ad), sig.in[1] = tarn_layout_row_major(2, bd),
  sig.out[0] = tarn_layout_row_major(2, dim);
  sig.in_type[0] = sig.in_type[1] = sig.out_type[0] = TARN_F32;
  tarn_ksig_canonical(L, &sig);
  return sig;
}
static tarn_ksig product_of(int64_t m, int64_t n, int64_t k, bool strict) {
  return sum_over(m, n, k, strict, tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0));
}
typedef struct checking {
  tarn_nest n;
  tarn_schedule *s;
} checking;
static void check_one(tarn_ctx *c, void *arg) {
  (void)c;
  const checking *k = arg;
  tarn_schedule_check(L, &k->n, k->s);
}
static void expect(const checking *k, const char *why) {
  tarn_status st = tarn_protect(cx, check_one, (void *)(uintptr_t)k);
  if (!why) ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
  else ck_assert_msg(st == TARN_INTERNAL && strstr(tarn_message(cx), why), "%s: %s", why, st ? tarn_message(cx) : "accepted");
}
TEST(wrong_schedules) {
  UNUSED;
  tarn_ksig k = product_of(8, 6, 5, false);
  tarn_stage_sched st = {
      .nlevel = 4, .acc = 2, .level = {{0, TARN_SERIAL, 4}, {1, TARN_SERIAL, 1}, {2, TARN_SERIAL, 1}, {0, TARN_VECTOR, 1}}};
  tarn_schedule s = {.nstage = 1, .stage = &st};
  checking c = {*tarn_nest_get(L, k.nest), &s};
  expect(&c, NULL);
  tarn_stage_sched good = st;
  s.nstage = 2, expect(&c, "stages"), s.nstage = 1;
  st.nlevel = 3, expect(&c, "dim 0 is not covered"), st = good;
  st.level[1].dim = 3, expect(&c, "not its own"), st = good;
  st.level[3].step = 3, expect(&c, "do not divide"), st = good;
  st.level[3].step = 2, expect(&c, "not covered"), st = good;
  st.level[0].step = 0, expect(&c, "do not divide"), st = good;
  st.acc = 5, expect(&c, "acc beyond"), st = good;
  s.nshared = 1, s.shared[0] = (tarn_level){0, TARN_SERIAL, 1}, expect(&c, "not its own");
}

/* ---------------------------------------------------------------- footprints */
static double footprint(uint32_t n, const int64_t *coef, const int64_t *span, double line) {
  acc_model a = {.touched = (1u << n) - 1, .bytes = 4};
  memcpy(a.coef, coef, n * sizeof *coef);
  return loop_footprint(&a, n, span, line);
}
#define I(...) ((const int64_t[]){__VA_ARGS__})
TEST(footprints_by_hand) {
  UNUSED;
  ck_assert_double_eq(footprint(1, I(1), I(16), 64), 64);
  ck_assert_double_eq(footprint(1, I(1), I(1), 64), 64); /* one element brings its line */
  ck_assert_double_eq(footprint(1, I(1), I(160), 64), 640);
  ck_assert_double_eq(footprint(2, I(100, 1), I(10, 100), 64), 4000); /* rows that follow one another */
  ck_assert_double_eq(footprint(2, I(1000, 1), I(10, 16), 64), 640);  /* rows far apart: a line each */
  ck_assert_double_eq(footprint(2, I(1000, 1), I(10, 4), 64), 640);
  ck_assert_double_eq(footprint(2, I(1, 1), I(8, 3), 4), 40); /* a sliding window: 8 + 3 - 1 elements */
  ck_assert_double_eq(footprint(1, I(1000), I(10), 64), 640);
  ck_assert_double_eq(footprint(1, I(-1), I(16), 64), 64);
  acc_model still = {.touched = 0, .bytes = 4};
  ck_assert_double_le(loop_footprint(&still, 1, I(50), 64), 64);
}
/* Lines really touched, counted; the model may be off by what it does not know (alignment, holes), not by more. */
TEST(footprints_counted) {
  UNUSED;
  for (int k = 0; k < 2000; k++) {
    uint32_t n = 1 + (uint32_t)below(3);
    int64_t coef[3], span[3], idx[3] = {0}, lines = 0, line = 4 << below(3);
    for (uint32_t d = 0; d < n; d++) {
      coef[d] = below(3) ? 1 + below(8) : 1 + below(200);
      span[d] = 1 + below(12);
    }
    static uint8_t seen[16384];
    memset(seen, 0, sizeof seen);
    do {
      int64_t at = 0;
      for (uint32_t d = 0; d < n; d++) at += idx[d] * coef[d];
      if (!seen[at / line]) seen[at / line] = 1, lines++;
    } while (step_index(n, span, idx));
    double real = (double)lines * (double)line * 4, model = footprint(n, coef, span, (double)line * 4);
    if (model < real / 3 || model > real * 3)
      ck_abort_msg("coef %d %d %d span %d %d %d line %d: %g lines touched, %g estimated", (int)coef[0],
                   n > 1 ? (int)coef[1] : 0, n > 2 ? (int)coef[2] : 0, (int)span[0], n > 1 ? (int)span[1] : 1,
                   n > 2 ? (int)span[2] : 1, (int)line, real / 4 / (double)line, model / 4 / (double)line);
  }
}
TEST(footprints_grow) {
  UNUSED;
  for (int k = 0; k < 1000; k++) {
    int64_t coef[3], span[3];
    for (uint32_t d = 0; d < 3; d++) coef[d] = 1 + below(64), span[d] = 1 + below(12);
    double a = footprint(3, coef, span, 64);
    span[below(3)]++;
    double b = footprint(3, coef, span, 64);
    if (b < a) ck_abort_msg("%g after %g", b, a);
  }
}

/* ---------------------------------------------------------------- prices */
TEST(parallel_units) {
  UNUSED;
  stage_model m = {.n = 2, .nacc = 2, .dim = {10, 6}};
  const tarn_level one[] = {{0, TARN_PARALLEL, 1}, {1, TARN_SERIAL, 1}};
  const tarn_level tiles[] = {{0, TARN_PARALLEL, 4}, {0, TARN_SERIAL, 1}, {1, TARN_SERIAL, 1}};
  const tarn_level both[] = {{0, TARN_PARALLEL, 1}, {1, TARN_PARALLEL, 1}};
  ck_assert_double_eq_tol(loop_parallel(&m, one, 2, 1), 1, 1e-12);
  ck_assert_double_eq_tol(loop_parallel(&m, one, 2, 4), 10 / 3.0, 1e-12); /* three rounds of four */
  ck_assert_double_eq_tol(loop_parallel(&m, tiles, 3, 4), 2.5, 1e-12);    /* the third is a half */
  ck_assert_double_eq_tol(loop_parallel(&m, tiles, 3, 2), 2, 1e-12);      /* no more than there are, in pieces of 4, 4 and 2 */
  ck_assert_double_eq_tol(loop_parallel(&m, both, 2, 4), 4, 1e-12);
  ck_assert_double_eq_tol(loop_parallel(&m, one + 1, 1, 4), 1, 1e-12);
}
static tarn_cost cost_with(const tarn_hw *hw, const tarn_ksig *k, uint32_t acc, const tarn_level *level, uint32_t n,
                           uint32_t threads) {
  tarn_stage_sched st = {.nlevel = n, .acc = acc};
  tarn_schedule s = {.nstage = 1, .stage = &st};
  tarn_cost c;
  memcpy(st.level, level, n * sizeof *level);
  tarn_schedule_check(L, tarn_nest_get(L, k->nest), &s);
  tarn_cost_of(L, hw, k, &s, threads, &c);
  return c;
}
/* Threads that write rows of their own leave them in their own caches; columns lie in the rows of both. */
TEST(parts_of_threads) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  tarn_ksig k = product_of(64, 64, 64, false);
  const tarn_level rows[] = {
      {0, TARN_PARALLEL, 4}, {1, TARN_SERIAL, 8}, {2, TARN_SERIAL, 1}, {0, TARN_UNROLL, 1}, {1, TARN_VECTOR, 1}};
  const tarn_level cols[] = {
      {1, TARN_PARALLEL, 8}, {0, TARN_SERIAL, 4}, {2, TARN_SERIAL, 1}, {0, TARN_UNROLL, 1}, {1, TARN_VECTOR, 1}};
  tarn_cost r = cost_with(hw, &k, 2, rows, 5, 2), c = cost_with(hw, &k, 2, cols, 5, 2);
  ck_assert_double_eq(r.parallel, c.parallel);
  ck_assert_msg(r.seconds < c.seconds, "%g by rows, %g by columns", r.seconds, c.seconds);
  r = cost_with(hw, &k, 2, rows, 5, 1), c = cost_with(hw, &k, 2, cols, 5, 1);
  ck_assert_double_eq(r.seconds, c.seconds); /* one thread owns all */
}
static tarn_cost best_cost(const tarn_hw *hw, const tarn_ksig *k, uint32_t threads) {
  tarn_cost c;
  tarn_solve(tarn_solver_new(L, hw, threads), k, &c);
  return c;
}
/* Weights that the first memory does not hold come from the last one, or, near, from the cache before it: by each unit what it
 * needs, and not again what the caches do not hold anyway. */
static tarn_cost cost_near(const tarn_hw *hw, const tarn_ksig *k, uint32_t parallel, bool near) {
  const tarn_level level[] = {{(uint8_t)parallel, TARN_PARALLEL, parallel ? 256 : 4},
                              {(uint8_t)(1 - parallel), TARN_SERIAL, parallel ? 1 : 8},
                              {(uint8_t)parallel, TARN_SERIAL, parallel ? 8 : 1},
                              {2, TARN_SERIAL, 1},
                              {0, TARN_UNROLL, 1},
                              {1, TARN_VECTOR, 1}};
  tarn_stage_sched st = {.nlevel = 6, .acc = 3};
  tarn_schedule s = {.nstage = 1, .stage = &st};
  tarn_cost c;
  memcpy(st.level, level, sizeof level);
  tarn_schedule_check(L, tarn_nest_get(L, k->nest), &s);
  loop_cost(L, hw, k, &s, 2, near, &c);
  return c;
}
TEST(weights_from_afar) {
  UNUSED;
  tarn_hw two = *shipped(machines[0]), *hw = &two;
  uint32_t last = hw->nmem - 2;
  tarn_hw_memory *mem = tarn_copy(cx, hw->mem, hw->nmem * sizeof *hw->mem);
  mem[last].serves = 2, two.mem = mem;
  double bytes = 4.0 * 512 * 64;
  tarn_ksig k = product_of(8, 512, 64, false), few = product_of(8, 512, 8, false);
  k.in_const[1] = few.in_const[1] = true;
  tarn_cost far = cost_near(hw, &k, 0, false), near = cost_near(hw, &k, 0, true), apart = cost_near(hw, &k, 1, true);
  ck_assert(hw->nmem > 2 && bytes > (double)hw->mem[0].capacity);
  ck_assert_double_eq(far.bytes[last], bytes);
  ck_assert(near.bytes[last] == 0 && near.bytes[last - 1] == bytes && apart.bytes[last - 1] == bytes);
  ck_assert_double_lt(near.seconds, far.seconds);
  double both = near.memory_seconds[last - 1] - far.memory_seconds[last - 1];
  double each = apart.memory_seconds[last - 1] - cost_near(hw, &k, 1, false).memory_seconds[last - 1];
  ck_assert_double_eq_tol(both / each, 2, 1e-9);
  ck_assert_double_eq(cost_near(hw, &few, 0, false).seconds, cost_near(hw, &few, 0, true).seconds);
  tarn_solver *s = tarn_solver_new(L, hw, 2);
  tarn_solver_near(s);
  tarn_solve(s, &k, &near);
  ck_assert_double_lt(near.least, best_cost(hw, &k, 2).least);
}
/* Pieces of rows that come from main memory, more of them side by side than a processor foresees, are waited for one by one:
 * the narrower they are the longer. */
static double waits_for_rows(const tarn_hw *hw, int64_t rows, uint32_t wide) {
  tarn_ksig k = product_of(8, rows, 1500, false);
  const tarn_level level[] = {{2, TARN_SERIAL, wide}, {0, TARN_SERIAL, 4}, {1, TARN_SERIAL, 8},
                              {2, TARN_SERIAL, 1},    {0, TARN_UNROLL, 1}, {1, TARN_VECTOR, 1}};
  return cost_with(hw, &k, 3, level, 6, 1).memory_seconds[hw->nmem - 2];
}
TEST(rows_from_main_memory) {
  UNUSED;
  tarn_hw small = *shipped(machines[0]), *hw = &small;
  tarn_hw_memory *mem = tarn_copy(cx, hw->mem, hw->nmem * sizeof *hw->mem);
  small.mem = mem;
  ck_assert_double_eq(waits_for_rows(hw, 64, 32), 0);
  mem[hw->nmem - 2].capacity = 1 << 16; /* a row has 6 KB */
  double narrow = waits_for_rows(hw, 64, 32), broad = waits_for_rows(hw, 64, 128);
  ck_assert_msg(narrow > 1.5 * broad, "%g and %g", narrow, broad);
  ck_assert_double_eq(waits_for_rows(hw, 24, 32), waits_for_rows(hw, 24, 128));
}
/* A sum in pieces is stored and taken up again; element by element where the lanes go across the result's rows. */
TEST(pieces_of_sums) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  tarn_ksig k = product_of(64, 64, 64, false);
  double more[2];
  for (uint8_t lanes = 0; lanes < 2; lanes++) {
    uint8_t rows = 1 - lanes;
    const tarn_level cut[] = {{2, TARN_SERIAL, 16}, {rows, TARN_SERIAL, 4}, {lanes, TARN_SERIAL, 8},
                              {2, TARN_SERIAL, 1},  {rows, TARN_UNROLL, 1}, {lanes, TARN_VECTOR, 1}};
    more[lanes] = cost_with(hw, &k, 3, cut, 6, 1).compute_seconds - cost_with(hw, &k, 2, cut + 1, 5, 1).compute_seconds;
  }
  ck_assert_msg(more[1] > 0 && more[0] > 2 * more[1], "%g across rows, %g along them", more[0], more[1]);
}
/* A depthwise convolution of 3 by 3 windows, channels innermost; step: of the windows. */
static tarn_ksig windows_of(int64_t step) {
  const int64_t dim[] = {14, 28, 32, 3, 3}, in[] = {14 * step + 2, 28 * step + 2, 32};
  uint32_t v[5];
  for (uint32_t i = 0; i < 5; i++) v[i] = tarn_ix_var(L, i, dim);
  tarn_imap m = {.ns = 3, .n = 5, .dim = {14, 28, 32, 3, 3}, .nin = 3, .in = {in[0], in[1], in[2]}, .fill = TARN_NONE};
  m.e[0] = tarn_ix_add(L, tarn_ix_scale(L, v[0], step, dim), v[3], dim);
  m.e[1] = tarn_ix_add(L, tarn_ix_scale(L, v[1], step, dim), v[4], dim), m.e[2] = v[2];
  tarn_imap w = {
      .ns = 3, .n = 5, .dim = {14, 28, 32, 3, 3}, .nin = 3, .in = {3, 3, 32}, .e = {v[3], v[4], v[2]}, .fill = TARN_NONE};
  tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &m)}, {.src = 1, .map = tarn_map_intern(L, &w)}};
  uint32_t body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  tarn_stage s = {.nown = 3, .nred = 2, .own = {14, 28, 32}, .red = {3, 3}, .read = read, .out = true, .space = TARN_NONE};
  s.fn = tarn_fn_reduce(L, body, 2, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  tarn_nest nest = {.out_ns = 3, .nstage = 1, .nchild = 2, .stage = &s};
  tarn_ksig sig = {.nest = tarn_nest_intern(L, &nest), .nin = 2, .nout = 1};
  sig.in_type[0] = sig.in_type[1] = sig.out_type[0] = TARN_F32, sig.in_const[1] = true;
  sig.in[0] = tarn_layout_row_major(3, in), sig.in[1] = tarn_layout_row_major(3, w.in),
  sig.out[0] = tarn_layout_row_major(3, dim);
  tarn_ksig_canonical(L, &sig);
  return sig;
}
/* A small window is written out where there are registers for it, its last dim inside of a tile along which windows overlap, so
 * that each element is loaded once; a reduction without windows is not. */
TEST(windows_are_written_out) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  for (int64_t step = 1; step <= 2; step++) {
    tarn_ksig k = windows_of(step);
    const tarn_stage_sched *s = tarn_solve(tarn_solver_new(L, hw, 1), &k, NULL)->stage;
    uint32_t nacc = tarn_nest_get(L, k.nest)->stage->nown, n = nacc + tarn_nest_get(L, k.nest)->stage->nred, tile = 0, last = 0;
    for (uint32_t i = s->acc; i < s->nlevel; i++) {
      ck_assert(s->level[i].kind == TARN_UNROLL || s->level[i].kind == TARN_VECTOR);
      if (s->level[i].dim < 2 && !tile) tile = i; /* rows or columns */
      if (s->level[i].dim == n - 1) last = i;
    }
    ck_assert_msg(tile && last > tile, "step %d: tile at level %u, window at %u", (int)step, tile, last);
    tarn_schedule_check(L, tarn_nest_get(L, k.nest), tarn_solve(tarn_solver_new(L, hw, 1), &k, NULL));
  }
  tarn_ksig p = product_of(64, 64, 3, false);
  const tarn_stage_sched *s = tarn_solve(tarn_solver_new(L, hw, 1), &p, NULL)->stage;
  for (uint32_t i = s->acc; i < s->nlevel; i++) ck_assert(s->level[i].dim != 2 || s->level[i].kind == TARN_SERIAL);
}
typedef struct tap_count {
  const tarn_ksig *k;
  uint32_t n;
} tap_count;
static void count_taps(void *user, const tarn_schedule *s, double seconds) {
  tap_count *c = user;
  const tarn_stage *st = tarn_nest_get(L, c->k->nest)->stage;
  uint32_t taps = TARN_MAX_LEVELS, channels = TARN_MAX_LEVELS;
  for (uint32_t i = 0; i < s->stage->nlevel; i++) {
    const tarn_level *l = &s->stage->level[i];
    if (l->dim < st->nown) continue;
    if (st->red[l->dim - st->nown] == 2 && l->kind == TARN_UNROLL) taps = i;
    if (st->red[l->dim - st->nown] == 64 && l->kind == TARN_SERIAL) channels = i;
  }
  check_promises(c->k, s);
  ck_assert(seconds > 0);
  c->n += taps < TARN_MAX_LEVELS && channels < taps;
}
/* y[o][r][i]: 2 taps along the rows, 64 channels. The taps are written out within the loop over the channels, so that rows
 * of a tile share vectors. */
TEST(taps_are_written_out) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  const int64_t dim[] = {3, 8, 64, 2, 64}, in[] = {64, 9, 65}, w[] = {3, 2, 64};
  for (int strict = 0; strict < 2; strict++) {
    uint32_t v[5];
    for (uint32_t i = 0; i < 5; i++) v[i] = tarn_ix_var(L, i, dim);
    tarn_imap a = {.ns = 3, .n = 5, .dim = {3, 8, 64, 2, 64}, .nin = 3, .in = {64, 9, 65}, .fill = TARN_NONE}, b = a;
    a.e[0] = v[4], a.e[1] = tarn_ix_add(L, v[1], v[3], dim), a.e[2] = v[2];
    memcpy(b.in, w, sizeof w), b.e[0] = v[0], b.e[1] = v[3], b.e[2] = v[4];
    tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &a)}, {.src = 1, .map = tarn_map_intern(L, &b)}};
    tarn_stage st = {.nown = 3, .nred = 2, .own = {3, 8, 64}, .red = {2, 64}, .read = read, .out = true, .space = TARN_NONE};
    uint32_t body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
    st.fn = tarn_fn_reduce(L, body, 2, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
    tarn_nest nest = {.out_ns = 3, .nstage = 1, .nchild = 2, .stage = &st};
    tarn_ksig k = {.nest = tarn_nest_intern(L, &nest), .strict = strict, .nin = 2, .nout = 1};
    k.in_type[0] = k.in_type[1] = k.out_type[0] = TARN_F32, k.in_const[1] = true;
    k.in[0] = tarn_layout_row_major(3, in), k.in[1] = tarn_layout_row_major(3, w), k.out[0] = tarn_layout_row_major(3, dim);
    tarn_ksig_canonical(L, &k);
    tap_count c = {&k, 0};
    ck_assert(tarn_schedules(tarn_solver_new(L, hw, 1), &k, count_taps, &c));
    ck_assert(strict || c.n > 0);
  }
}
/* Images of rows and columns: y[b][o][p], 64 channels. */
static tarn_ksig images_of(int64_t n, int64_t outs, int64_t places) {
  const int64_t dim[] = {n, outs, places, 64}, in[] = {n, 64, places}, w[] = {outs, 64};
  uint32_t v[4];
  for (uint32_t i = 0; i < 4; i++) v[i] = tarn_ix_var(L, i, dim);
  tarn_imap a = {.ns = 3, .n = 4, .nin = 3, .in = {n, 64, places}, .e = {v[0], v[3], v[2]}, .fill = TARN_NONE};
  tarn_imap b = {.ns = 3, .n = 4, .nin = 2, .in = {outs, 64}, .e = {v[1], v[3]}, .fill = TARN_NONE};
  memcpy(a.dim, dim, sizeof dim), memcpy(b.dim, dim, sizeof dim);
  tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &a)}, {.src = 1, .map = tarn_map_intern(L, &b)}};
  tarn_stage s = {.nown = 3, .nred = 1, .own = {n, outs, places}, .red = {64}, .read = read, .out = true, .space = TARN_NONE};
  uint32_t body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  s.fn = tarn_fn_reduce(L, body, 2, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  tarn_nest nest = {.out_ns = 3, .nstage = 1, .nchild = 2, .stage = &s};
  tarn_ksig sig = {.nest = tarn_nest_intern(L, &nest), .nin = 2, .nout = 1};
  sig.in_type[0] = sig.in_type[1] = sig.out_type[0] = TARN_F32, sig.in_const[1] = true;
  sig.in[0] = tarn_layout_row_major(3, in), sig.in[1] = tarn_layout_row_major(2, w), sig.out[0] = tarn_layout_row_major(3, dim);
  tarn_ksig_canonical(L, &sig);
  return sig;
}
static void count_orders(void *user, const tarn_schedule *s, double seconds) {
  tap_count *c = user;
  const tarn_level *l = s->stage->level;
  check_promises(c->k, s);
  ck_assert(seconds > 0);
  c->n += l[0].dim == 0 && l[1].dim == 2 && l[2].dim == 1;
}
/* Image by image, in each by places, at each all filters. */
TEST(orders_of_images) {
  UNUSED;
  tarn_ksig k = images_of(3, 24, 160);
  tap_count c = {&k, 0};
  ck_assert(tarn_schedules(tarn_solver_new(L, shipped(machines[1]), 1), &k, count_orders, &c));
  ck_assert(c.n > 0);
}
/* Sums of rows: beyond the second caches few at a time. */
static tarn_ksig sums_of(int64_t rows, int64_t n) {
  const int64_t dim[] = {rows, n};
  tarn_imap m = {.ns = 1, .n = 2, .dim = {rows, n}, .nin = 2, .in = {rows, n}, .fill = TARN_NONE};
  for (uint32_t i = 0; i < 2; i++) m.e[i] = tarn_ix_var(L, i, dim);
  tarn_read read = {.src = 0, .map = tarn_map_intern(L, &m)};
  tarn_stage s = {.nown = 1, .nred = 1, .own = {rows}, .red = {n}, .read = &read, .out = true, .space = TARN_NONE};
  s.fn = tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  tarn_nest nest = {.out_ns = 1, .nstage = 1, .nchild = 1, .stage = &s};
  tarn_ksig sig = {.nest = tarn_nest_intern(L, &nest), .nin = 1, .nout = 1};
  sig.in_type[0] = sig.out_type[0] = TARN_F32;
  sig.in[0] = tarn_layout_row_major(2, dim), sig.out[0] = tarn_layout_row_major(1, dim);
  tarn_ksig_canonical(L, &sig);
  return sig;
}
static void most_along(void *user, const tarn_schedule *s, double seconds) {
  tap_count *c = user;
  int64_t rows = 1;
  bool along = false;
  check_promises(c->k, s);
  ck_assert(seconds > 0);
  for (uint32_t i = 0; i < s->stage->nlevel; i++) {
    const tarn_level *l = &s->stage->level[i];
    if (l->dim == 0 && l->kind == TARN_SERIAL) rows = l->step;
    along |= l->dim == 1 && l->kind == TARN_VECTOR;
  }
  if (along && rows > c->n) c->n = (uint32_t)rows;
}
TEST(sums_of_rows) {
  UNUSED;
  tarn_ksig near = sums_of(16, 1024), far = sums_of(16, 4 << 20);
  tap_count a = {&near, 0}, b = {&far, 0};
  ck_assert(tarn_schedules(tarn_solver_new(L, shipped(machines[0]), 1), &near, most_along, &a));
  ck_assert(tarn_schedules(tarn_solver_new(L, shipped(machines[0]), 1), &far, most_along, &b));
  ck_assert_msg(a.n > 4 && b.n > 1 && b.n <= 4, "%u and %u rows at once", a.n, b.n);
}
TEST(prices_of_products) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[number]);
  double last = 0;
  for (int64_t n = 16; n <= 1024; n *= 2) {
    tarn_ksig k = product_of(n, n, n, false);
    tarn_cost one = best_cost(hw, &k, 1), two = best_cost(hw, &k, 2), four = best_cost(hw, &k, 4);
    double flops = 2.0 * (double)(n * n * n);
    ck_assert_double_eq(one.flops, flops);
    ck_assert_msg(one.seconds >= flops / 2 / tarn_hw_peak(hw, TARN_F32, 1), "%d: faster than the machine", (int)n);
    ck_assert_msg(two.seconds >= flops / 2 / tarn_hw_peak(hw, TARN_F32, 2), "%d: faster than two", (int)n);
    ck_assert_msg(one.seconds > last, "%d: %g after %g", (int)n, one.seconds, last);
    ck_assert(two.seconds <= one.seconds * 1.0001 + hw->barrier && four.seconds <= two.seconds * 1.0001 + hw->barrier);
    if (n >= 256) ck_assert_msg(two.seconds < 0.75 * one.seconds, "%d: %g on one, %g on two", (int)n, one.seconds, two.seconds);
    tarn_ksig s = product_of(n, n, n, true);
    ck_assert_double_ge(best_cost(hw, &s, 1).seconds, 0.98 * one.seconds); /* each the best of what is tried for it */
    last = one.seconds;
  }
}
/* Copying far more than the caches hold is bound by main memory: what is read and written passes there once. */
TEST(price_of_copying) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[number]);
  tarn_ksig k = canonical_of("(compute (map (neg $0)) (input x ((67108864) ()) f32))");
  tarn_cost c = best_cost(hw, &k, 1);
  double bytes = 2 * 4.0 * 67108864;
  uint32_t last = hw->nmem - 2;
  ck_assert_msg(fabs(c.bytes[last] / bytes - 1) < 0.01, "%g bytes", c.bytes[last]);
  ck_assert_str_eq(c.binds, "dram");
  ck_assert(c.seconds >= bytes / (hw->mem[hw->nmem - 1].read * hw->clock));
  /* and a small one by its start, with nothing passing */
  tarn_ksig small = canonical_of("(compute (map (neg $0)) (input x ((16) ()) f32))");
  tarn_cost d = best_cost(hw, &small, 1);
  ck_assert(d.bytes[0] == 0 && d.bytes[last] == 0);
  ck_assert_str_eq(d.binds, "launch");
}

/* Operands and results once, however often the loops come back to them; never more than the buffers hold. */
TEST(traffic_of_products) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[0]);
  double read, write;
  tarn_ksig k = product_of(64, 32, 48, false);
  tarn_ksig_canonical(L, &k);
  tarn_ksig_traffic(L, hw, &k, &read, &write);
  ck_assert(read == 4 * (64 * 48 + 32 * 48) && write == 4 * 64 * 32);
  for (int i = 0; i < 100; i++) {
    loop_case c;
    if (i % 3) random_single(&c, below(2), below(5) == 0);
    else random_staged(&c);
    tarn_ksig_canonical(L, &c.sig);
    double in = 0, out = 0;
    for (uint32_t j = 0; j < c.sig.nin; j++) in += 4.0 * (double)tarn_layout_elems(&c.sig.in[j]);
    for (uint32_t j = 0; j < c.sig.nout; j++) out += 4.0 * (double)tarn_layout_elems(&c.sig.out[j]);
    tarn_ksig_traffic(L, hw, &c.sig, &read, &write);
    MUST(read >= 0 && read <= in && write > 0 && write <= out);
  }
}

/* A product and its addition are one instruction, a function is several, a choice is none; what a loop does not change is
 * computed once for all of its trips. */
TEST(slots_by_hand) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[0]);
  const struct {
    const char *term;
    double slots;
  } cases[] = {
      {"(compute (map (max $0 0)) (input x ((24 7) ()) f32))", 24 * 7},
      {"(compute (map (add (mul $0 $1) $0)) (input x ((24 7) ()) f32) (input y ((24 7) ()) f32))", 24 * 7},
      {"(compute (map (add (mul $0 $1) (mul $0 $0))) (input x ((24 7) ()) f32) (input y ((24 7) ()) f32))", 2 * 24 * 7},
      {"(compute (map (select (lt $0 0) (neg $0) $0)) (input x ((24 7) ()) f32))", 24 * 7},
      {"(compute (red (sum f32) (exp $0)) (input x ((24) (7)) f32))", 24 * 7 * (1 + tarn_fx_slots(TARN_FX_EXP))},
      {"(compute (red (max f32) (mul $0 3)) (input x ((24) (7)) f32))", 24 * 7 * 2},
  };
  tarn_ksig k = product_of(64, 32, 48, false);
  tarn_ksig_canonical(L, &k);
  ck_assert_double_eq(tarn_ksig_slots(L, hw, &k), 64 * 32 * 48);
  uint32_t exp = tarn_fx_op(L, TARN_FX_EXP, tarn_fx_hole(L, 1), 0, 0);
  k = sum_over(64, 32, 48, false, tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), exp, 0));
  ck_assert_double_eq(tarn_ksig_slots(L, hw, &k), 64 * 32 * 48 + 32 * 48 * tarn_fx_slots(TARN_FX_EXP));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    k = canonical_of(cases[i].term);
    ck_assert_msg(tarn_ksig_slots(L, hw, &k) == cases[i].slots, "%s: %g", cases[i].term, tarn_ksig_slots(L, hw, &k));
  }
  /* what is added to a sum that nothing else wants is what it begins with */
  const char *epi[] = {"(max (add $1 $0) 0)", "(mul $0 (add $0 $1))", "(add $0 (mul $1 $1))"};
  for (uint32_t i = 0; i < 3; i++) {
    const char *text = tarn_format(
        cx,
        "(kernel (nest (stages (children 3) (shared) (split 2) (stage (own 8 16) (reduce 32) (epi %s (red sum (mul $0 $1))) "
        "(child 0 (index ((8 16) (32)) (8 32) (d0 d2))) (child 1 (index ((8 16) (32)) (32 16) (d2 d1))) "
        "(child 2 (index ((8 16) ()) (16) (d1))) out)))(in f32 (8 32) (32 1))(in f32 (32 16) (16 1))(in f32 (16) (1))"
        "(out f32 (8 16) (16 1)))",
        epi[i]);
    tarn_ksig_parse(L, text, strlen(text), &k);
    double more[] = {8 * 16, 2 * 8 * 16, 8 * 16 + 16};
    ck_assert_msg(tarn_ksig_slots(L, hw, &k) == 8 * 16 * 32 + more[i], "%s: %g", epi[i], tarn_ksig_slots(L, hw, &k));
  }
}

int main(void) {
  Suite *suite = suite_create("loop");
  TCase *t = tcase_create("loop");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, layouts_by_hand);
  tcase_add_test(t, layouts_are_injective);
  tcase_add_loop_test(t, canonical_single, 0, 8);
  tcase_add_loop_test(t, canonical_affine, 0, 4);
  tcase_add_loop_test(t, canonical_ordered, 0, 4);
  tcase_add_loop_test(t, canonical_staged, 0, 6);
  tcase_add_loop_test(t, cut_in_blocks, 0, 4);
  tcase_add_loop_test(t, packed_by_blocks, 0, 4);
  tcase_add_loop_test(t, signature_of_reshaped, 0, 4);
  tcase_add_test(t, signature_by_hand);
  tcase_add_test(t, signature_keeps_apart);
  tcase_add_loop_test(t, solutions_are_schedules, 0, 6);
  tcase_add_test(t, wrong_schedules);
  tcase_add_test(t, footprints_by_hand);
  tcase_add_test(t, footprints_counted);
  tcase_add_test(t, footprints_grow);
  tcase_add_test(t, parallel_units);
  tcase_add_test(t, parts_of_threads);
  tcase_add_test(t, weights_from_afar);
  tcase_add_test(t, pieces_of_sums);
  tcase_add_test(t, rows_from_main_memory);
  tcase_add_test(t, taps_are_written_out);
  tcase_add_test(t, orders_of_images);
  tcase_add_test(t, sums_of_rows);
  tcase_add_loop_test(t, windows_are_written_out, 0, 1);
  tcase_add_loop_test(t, prices_of_products, 0, 3);
  tcase_add_loop_test(t, price_of_copying, 0, 3);
  tcase_add_test(t, traffic_of_products);
  tcase_add_test(t, slots_by_hand);
  suite_add_tcase(suite, t);
  SRunner *r = srunner_create(suite);
  srunner_run_all(r, CK_NORMAL);
  int bad = srunner_ntests_failed(r);
  srunner_free(r);
  return bad ? 1 : 0;
}
