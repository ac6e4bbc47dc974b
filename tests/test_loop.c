/* kernel/, plan/, price/: layouts, canonical kernels, schedules and their check, footprints and
 * demands. */
#include "tests/loop_tests.h"

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
/* A signature made of a case's has its values, bit by bit. */
static void same_values(const loop_case *c, const tarn_ksig *k) {
  tarn_tensor **want = outputs_of(&c->sig), **got = outputs_of(&c->sig);
  run_signature(c, &c->sig, want);
  run_signature(c, k, got);
  for (uint32_t o = 0; o < k->nout; o++)
    if (memcmp(want[o]->data, got[o]->data, (size_t)tarn_tensor_count(want[o]) * 4))
      ck_abort_msg("output %u differs\n%s\n%s", o, nest_text(c->sig.nest), nest_text(k->nest));
}
static void check_canonical(const loop_case *c, bool twice) {
  tarn_ksig k = c->sig;
  tarn_ksig_canonical(L, &k);
  same_values(c, &k);
  tarn_ksig again = k;
  tarn_ksig_rebase(L, &again, TARN_KSIG_STEP);
  same_values(c, &again);
  again = k;
  tarn_ksig_canonical(L, &again);
  if (!twice) return;
  if (again.nest != k.nest || tarn_ksig_hash(&again) != tarn_ksig_hash(&k))
    ck_abort_msg("canonical twice differs\n%s\n%s\n%s", nest_text(c->sig.nest), nest_text(k.nest),
                 nest_text(again.nest));
}
/* Kernels over equal parts of a buffer are equal, but for where the parts begin. */
TEST(parts_of_a_buffer) {
  UNUSED;
  tarn_ksig first = {0};
  for (int64_t t = 1; t < 7; t++) {
    const char *text =
        tarn_format(cx,
                    "(kernel (nest (stages (children 1) (shared) (split 0) (stage "
                    "(own 4) (reduce 5) (red (sum f32) (mul $0 $1)) (child 0 (index ((4) (5)) "
                    "(900) ((+ %d (* 6 d0) d1)))) (child 0 (index ((4) (5)) (900) "
                    "((+ %d d0)))) out)))(in f32 (900) (1))(out f32 (4) (1)))",
                    (int)(112 * t), (int)(112 * t + 3));
    loop_case c = {0};
    tarn_ksig_parse(L, text, strlen(text), &c.sig);
    c.mem[0] = random_memory(&c.sig.in[0]);
    tarn_ksig k = c.sig;
    tarn_ksig_canonical(L, &k);
    tarn_ksig_rebase(L, &k, TARN_KSIG_STEP);
    same_values(&c, &k);
    ck_assert_int_eq(k.in[0].offset, 112 * t);
    if (t == 1) first = k;
    ck_assert(tarn_ksig_equal(&first, &k));
  }
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

/* Shared loops in blocks: the same values; so many loops as were cut are no longer shared, or fewer
 * of their points. */
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
      same_values(&c, &k);
      tarn_ksig_canonical(L, &k);
    }
  }
  ck_assert_uint_ge(cuts, 60);
}

/* A read copied panel by panel: the same values; only reads that are sums of steps, of what there
 * is in every place. */
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
        ck_abort_msg("read %u, dim %u by %d and %d\n%s\n%s", read, d, (int)block, (int)panel,
                     nest_text(c.sig.nest), nest_text(k.nest));
      tarn_ksig_canonical(L, &k);
    }
  }
  ck_assert_uint_ge(packs, 100);
  ck_assert_uint_ge(panels, 10);
}

/* Neighbours merged that everything walks as one: the same values, no more loops, and nothing to
 * merge a second time. Constants keep their dims. */
TEST(merged) {
  UNUSED;
  uint32_t fewer = 0;
  for (int i = 0; i < 300; i++) {
    loop_case c;
    if (i & 1) random_single(&c, true, false);
    else random_staged(&c);
    for (uint32_t j = 0; j < c.sig.nin; j++) c.sig.in_const[j] = below(2);
    tarn_ksig k = c.sig, again;
    tarn_ksig_merge(L, &k), again = k;
    tarn_ksig_merge(L, &again);
    MUST(again.nest == k.nest);
    for (uint32_t j = 0; j < k.nin; j++)
      MUST(k.in_const[j] ? tarn_layout_equal(&k.in[j], &c.sig.in[j]) : k.in[j].n == 1);
    const tarn_stage *was = tarn_nest_get(L, c.sig.nest)->stage,
                     *now = tarn_nest_get(L, k.nest)->stage;
    MUST(now->nown <= was->nown && now->nred <= was->nred);
    fewer += now->nown + now->nred < was->nown + was->nred;
    same_values(&c, &k);
  }
  ck_assert_uint_ge(fewer, 30);
}

static bool same_signature(const tarn_ksig *a, const tarn_ksig *b) {
  bool same = a->nest == b->nest && a->nin == b->nin && tarn_ksig_hash(a) == tarn_ksig_hash(b);
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
        ck_abort_msg("dim %u by %d\n%s\n%s\n%s", d, (int)f, nest_text(s.sig.nest),
                     nest_text(a.nest), nest_text(b.nest));
      compared++;
    }
  }
  ck_assert_uint_gt(compared, 50);
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
  ck_assert(tarn_ksig_hash(&n32) != tarn_ksig_hash(&n64));
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
  ck_assert(tarn_ksig_hash(&a) != tarn_ksig_hash(&b));
  ck_assert(tarn_ksig_hash(&a) != tarn_ksig_hash(&s));
}

/* ---------------------------------------------------------------- schedules */

static void check_solution(tarn_solver *sv, const tarn_hw *hw, const tarn_ksig *k,
                           uint32_t threads) {
  tarn_cost cost, again;
  const tarn_schedule *s = tarn_solve(sv, k, &cost);
  tarn_schedule_check(L, tarn_nest_get(L, k->nest), s);
  check_promises(k, s);
  tarn_cost_of(L, hw, k, s, threads, &again);
  MUST(cost.seconds == again.seconds && cost.seconds > 0 && isfinite(cost.seconds));
  MUST(cost.flops >= 0 && cost.parallel <= threads + 1e-9);
  MUST(tarn_solve(sv, k, NULL) == s);
}
/* The kernel and its schedule as text, read again: the same; features of every kernel are numbers.
 */
static void check_texts(tarn_solver *sv, const tarn_hw *hw, const tarn_ksig *k, uint32_t threads) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  tarn_cost cost;
  float f[TARN_FEATURES];
  const tarn_schedule *s = tarn_solve(sv, k, &cost);
  const char *text = tarn_ksig_text(L, cx, k), *st = tarn_schedule_text(cx, s);
  tarn_ksig back;
  tarn_ksig_parse(L, text, strlen(text), &back);
  MUST(tarn_ksig_equal(k, &back) && !strcmp(tarn_ksig_text(L, cx, &back), text));
  MUST(!strcmp(tarn_schedule_text(cx, tarn_schedule_parse(L, n, st, strlen(st))), st));
  tarn_features(L, hw, k, s, threads, &cost, f);
  for (uint32_t i = 0; i < TARN_FEATURES; i++) MUST(isfinite(f[i]));
}
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
  else
    ck_assert_msg(st == TARN_BAD_INPUT && strstr(tarn_message(cx), why), "%s: %s", why,
                  st ? tarn_message(cx) : "accepted");
}
TEST(wrong_schedules) {
  UNUSED;
  tarn_ksig k = product_of(8, 6, 5, false);
  tarn_stage_sched st = {
      .nlevel = 4,
      .acc = 2,
      .level = {
          {0, TARN_SERIAL, 4}, {1, TARN_SERIAL, 1}, {2, TARN_SERIAL, 1}, {0, TARN_VECTOR, 1}}};
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
  tarn_touch a = {.touched = (1u << n) - 1, .bytes = 4};
  memcpy(a.coef, coef, n * sizeof *coef);
  tarn_touch_sort(&a, n);
  return tarn_touch_bytes(&a, span, line);
}
#define I(...) ((const int64_t[]){__VA_ARGS__})
TEST(footprints_by_hand) {
  UNUSED;
  ck_assert_double_eq(footprint(1, I(1), I(16), 64), 64);
  ck_assert_double_eq(footprint(1, I(1), I(1), 64), 64); /* one element brings its line */
  ck_assert_double_eq(footprint(1, I(1), I(160), 64), 640);
  ck_assert_double_eq(footprint(2, I(100, 1), I(10, 100), 64),
                      4000); /* rows that follow one another */
  ck_assert_double_eq(footprint(2, I(1000, 1), I(10, 16), 64),
                      640); /* rows far apart: a line each */
  ck_assert_double_eq(footprint(2, I(1000, 1), I(10, 4), 64), 640);
  ck_assert_double_eq(footprint(2, I(1, 1), I(8, 3), 4),
                      40); /* a sliding window: 8 + 3 - 1 elements */
  ck_assert_double_eq(footprint(1, I(1000), I(10), 64), 640);
  ck_assert_double_eq(footprint(1, I(-1), I(16), 64), 64);
  tarn_touch still = {.touched = 0, .bytes = 4};
  tarn_touch_sort(&still, 1);
  ck_assert_double_le(tarn_touch_bytes(&still, I(50), 64), 64);
}
/* Lines really touched, counted; the model may be off by what it does not know (alignment, holes),
 * not by more. */
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
    double real = (double)lines * (double)line * 4,
           model = footprint(n, coef, span, (double)line * 4);
    if (model < real / 3 || model > real * 3)
      ck_abort_msg("coef %d %d %d span %d %d %d line %d: %g lines touched, %g estimated",
                   (int)coef[0], n > 1 ? (int)coef[1] : 0, n > 2 ? (int)coef[2] : 0, (int)span[0],
                   n > 1 ? (int)span[1] : 1, n > 2 ? (int)span[2] : 1, (int)line,
                   real / 4 / (double)line, model / 4 / (double)line);
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

/* ---------------------------------------------------------------- demands */
/* Operands and results once, however often the loops come back to them; never more than the buffers
 * hold. */
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
    for (uint32_t j = 0; j < c.sig.nin; j++)
      in += (double)tarn_dtype_size(c.sig.in_type[j]) * (double)tarn_layout_elems(&c.sig.in[j]);
    for (uint32_t j = 0; j < c.sig.nout; j++) out += 4.0 * (double)tarn_layout_elems(&c.sig.out[j]);
    tarn_ksig_traffic(L, hw, &c.sig, &read, &write);
    MUST(read >= 0 && read <= in && write > 0 && write <= out);
  }
}

/* Three stages of a softmax read the same row one after the other: it comes from main memory once.
 */
TEST(rows_come_once) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[0]);
  const char *text = "(kernel (nest (stages (children 1) (shared 16384) (split 2) (stage (own) "
                     "(reduce 1024) reduceMax "
                     "(child 0 (index ((16384) (1024)) (16777216) ((+ (* 1024 d0) d1))))) (stage "
                     "(own 1024) (reduce) (map (exp (sub $0 $1))) "
                     "(child 0 (index ((16384 1024) ()) (16777216) ((+ (* 1024 d0) d1)))) (stage 0 "
                     "(index ((16384 1024) ()) () ())) out)))(in "
                     "f32 (16777216) (1))"
                     "(out f32 (16384 1024) (1024 1)))";
  tarn_ksig k;
  tarn_ksig_parse(L, text, strlen(text), &k);
  tarn_cost c;
  tarn_solve(tarn_solver_new(L, hw, 1), &k, &c);
  double all = 2.0 * 16384 * 1024 * 4, moved = c.bytes[hw->nmem - 2];
  ck_assert_msg(moved > 0.99 * all && moved < 1.01 * all, "%g of %g bytes", moved, all);
}
/* A product and its addition are one instruction, a function is several, a choice is none; what a
 * loop does not change is computed once for all of its trips. */
TEST(slots_by_hand) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[0]);
  const struct {
    const char *term;
    double slots, products;
  } cases[] = {
      {"(compute (map (max $0 0)) (input x ((24 7) ()) f32))", 24 * 7, 0},
      {"(compute (map (add (mul $0 $1) $0)) (input x ((24 7) ()) f32) (input y ((24 7) ()) f32))",
       24 * 7, 24 * 7},
      {"(compute (map (add (mul $0 $1) (mul $0 $0))) (input x ((24 7) ()) f32) (input y ((24 7) "
       "()) f32))",
       2 * 24 * 7, 2 * 24 * 7},
      {"(compute (map (select (lt $0 0) (neg $0) $0)) (input x ((24 7) ()) f32))", 24 * 7, 0},
      {"(compute (red (sum f32) (exp $0)) (input x ((24) (7)) f32))",
       24 * 7 * (1 + tarn_fx_slots(TARN_FX_EXP)), 24 * 7 * tarn_fx_products(TARN_FX_EXP)},
      {"(compute (red (max f32) (mul $0 3)) (input x ((24) (7)) f32))", 24 * 7 * 2, 24 * 7},
  };
  tarn_ksig k = product_of(64, 32, 48, false);
  tarn_ksig_canonical(L, &k);
  ck_assert_double_eq(tarn_ksig_slots(L, hw, &k), 64 * 32 * 48);
  ck_assert_double_eq(tarn_ksig_products(L, hw, &k), 64 * 32 * 48);
  uint32_t exp = tarn_fx_op(L, TARN_FX_EXP, tarn_fx_hole(L, 1), 0, 0);
  k = sum_over(64, 32, 48, false, tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), exp, 0));
  ck_assert_double_eq(tarn_ksig_slots(L, hw, &k),
                      64 * 32 * 48 + 32 * 48 * tarn_fx_slots(TARN_FX_EXP));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    k = canonical_of(cases[i].term);
    ck_assert_msg(tarn_ksig_slots(L, hw, &k) == cases[i].slots, "%s: %g", cases[i].term,
                  tarn_ksig_slots(L, hw, &k));
    ck_assert_msg(tarn_ksig_products(L, hw, &k) == cases[i].products, "%s: %g", cases[i].term,
                  tarn_ksig_products(L, hw, &k));
  }
  /* what is added to a sum that nothing else wants is what it begins with */
  const char *epi[] = {"(max (add $1 $0) 0)", "(mul $0 (add $0 $1))", "(add $0 (mul $1 $1))"};
  for (uint32_t i = 0; i < 3; i++) {
    const char *text = tarn_format(cx,
                                   "(kernel (nest (stages (children 3) (shared) (split 2) (stage "
                                   "(own 8 16) (reduce 32) (epi %s (red sum (mul $0 $1))) "
                                   "(child 0 (index ((8 16) (32)) (8 32) (d0 d2))) (child 1 (index "
                                   "((8 16) (32)) (32 16) (d2 d1))) "
                                   "(child 2 (index ((8 16) ()) (16) (d1))) out)))(in f32 (8 32) "
                                   "(32 1))(in f32 (32 16) (16 1))(in f32 (16) (1))"
                                   "(out f32 (8 16) (16 1)))",
                                   epi[i]);
    tarn_ksig_parse(L, text, strlen(text), &k);
    double more[] = {8 * 16, 2 * 8 * 16, 8 * 16 + 16};
    ck_assert_msg(tarn_ksig_slots(L, hw, &k) == 8 * 16 * 32 + more[i], "%s: %g", epi[i],
                  tarn_ksig_slots(L, hw, &k));
  }
}

int main(void) {
  TCase *t = tcase_create("loop");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, layouts_by_hand);
  tcase_add_test(t, layouts_are_injective);
  tcase_add_loop_test(t, canonical_single, 0, 8);
  tcase_add_loop_test(t, canonical_affine, 0, 4);
  tcase_add_loop_test(t, canonical_ordered, 0, 4);
  tcase_add_loop_test(t, canonical_staged, 0, 6);
  tcase_add_test(t, parts_of_a_buffer);
  tcase_add_loop_test(t, cut_in_blocks, 0, 4);
  tcase_add_loop_test(t, packed_by_blocks, 0, 4);
  tcase_add_loop_test(t, merged, 0, 4);
  tcase_add_loop_test(t, signature_of_reshaped, 0, 4);
  tcase_add_test(t, signature_by_hand);
  tcase_add_test(t, signature_keeps_apart);
  tcase_add_loop_test(t, solutions_are_schedules, 0, 6);
  tcase_add_test(t, wrong_schedules);
  tcase_add_test(t, footprints_by_hand);
  tcase_add_test(t, footprints_counted);
  tcase_add_test(t, footprints_grow);
  tcase_add_test(t, traffic_of_products);
  tcase_add_test(t, rows_come_once);
  tcase_add_test(t, slots_by_hand);
  return run_checks("loop", t);
}
