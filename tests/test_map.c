/* access/: index expressions and maps against brute force. */
#include "tests/transforms.h"

/* ---------------------------------------------------------------- expressions */
static const int64_t ext[] = {6, 4, 5, 1};

static uint32_t random_ix(int depth) {
  if (depth == 0 || below(5) == 0)
    return below(4) ? tarn_ix_var(L, (uint32_t)below(4), ext) : tarn_ix_const(L, below(9) - 4);
  uint32_t a = random_ix(depth - 1);
  switch (below(4)) {
  case 0: return tarn_ix_add(L, a, random_ix(depth - 1), ext);
  case 1: return tarn_ix_scale(L, a, below(9) - 4, ext);
  case 2: return tarn_ix_div(L, a, 1 + below(7), ext);
  default: return tarn_ix_mod(L, a, 1 + below(7), ext);
  }
}

static int64_t floor_div(int64_t a, int64_t d) {
  int64_t q = a / d;
  return q * d > a ? q - 1 : q;
}

/* Each building step against arithmetic on the values of its operands, at every point. */
TEST(building_keeps_the_value) {
  UNUSED;
  for (int round = 0; round < 4000; round++) {
    uint32_t a = random_ix(3), b = random_ix(2);
    int64_t k = below(11) - 5, d = 1 + below(9), x[4] = {0}, lo, hi;
    uint32_t sum = tarn_ix_add(L, a, b, ext), times = tarn_ix_scale(L, a, k, ext);
    uint32_t quo = tarn_ix_div(L, a, d, ext), rem = tarn_ix_mod(L, a, d, ext);
    tarn_ix_range(L, a, ext, &lo, &hi);
    do {
      int64_t va = tarn_ix_eval(L, a, x), vb = tarn_ix_eval(L, b, x), q = floor_div(va, d);
      MUST(va >= lo && va <= hi);
      MUST(tarn_ix_eval(L, sum, x) == va + vb);
      MUST(tarn_ix_eval(L, times, x) == va * k);
      MUST(tarn_ix_eval(L, quo, x) == q);
      MUST(tarn_ix_eval(L, rem, x) == va - q * d);
    } while (step_index(4, ext, x));
  }
}

TEST(substitution_keeps_the_value) {
  UNUSED;
  const int64_t fresh[] = {3, 7};
  for (int round = 0; round < 2000; round++) {
    uint32_t a = random_ix(3), sub[4];
    for (int i = 0; i < 4; i++) { /* anything within ext[i] */
      uint32_t e = tarn_ix_scale(L, tarn_ix_var(L, 0, fresh), below(5), fresh);
      e = tarn_ix_add(L, e, tarn_ix_var(L, 1, fresh), fresh);
      sub[i] = tarn_ix_mod(L, e, ext[i], fresh);
    }
    uint32_t r = tarn_ix_subst(L, a, sub, fresh);
    int64_t x[2] = {0};
    do {
      int64_t y[4];
      for (int i = 0; i < 4; i++) y[i] = tarn_ix_eval(L, sub[i], x);
      MUST(tarn_ix_eval(L, r, x) == tarn_ix_eval(L, a, y));
    } while (step_index(2, fresh, x));
  }
}

TEST(known_identities) {
  UNUSED;
  const int64_t e[] = {5, 7, 1000};
  uint32_t a = tarn_ix_var(L, 0, e), b = tarn_ix_var(L, 1, e), x = tarn_ix_var(L, 2, e);
  uint32_t flat = tarn_ix_add(L, tarn_ix_scale(L, a, 7, e), b, e);
  ck_assert_uint_eq(tarn_ix_div(L, flat, 7, e), a);
  ck_assert_uint_eq(tarn_ix_mod(L, flat, 7, e), b);
  uint32_t x3 = tarn_ix_div(L, x, 3, e), x12 = tarn_ix_div(L, x, 12, e);
  ck_assert_uint_eq(tarn_ix_div(L, x3, 4, e), x12);
  uint32_t m12 = tarn_ix_mod(L, x, 12, e), m3 = tarn_ix_mod(L, x, 3, e);
  ck_assert_uint_eq(tarn_ix_mod(L, m12, 3, e), m3);
  uint32_t mid = tarn_ix_mod(L, x3, 4, e);
  ck_assert_uint_eq(tarn_ix_add(L, tarn_ix_scale(L, mid, 3, e), m3, e), m12);
  ck_assert_uint_eq(tarn_ix_add(L, tarn_ix_scale(L, x3, 3, e), m3, e), x);
  ck_assert_uint_eq(tarn_ix_mod(L, a, 5, e), a);
  const tarn_ix *kept = tarn_ix_get(L, m12);
  ck_assert(kept->n == 1 && kept->t->kind == TARN_IX_MOD && kept->t->by == 12);
  ck_assert(tarn_ix_affine(L, flat) && !tarn_ix_affine(L, m3));
  ck_assert_int_eq(tarn_ix_coef(L, flat, 0), 7);
  ck_assert_int_eq(tarn_ix_coef(L, flat, 2), 0);
}

/* ---------------------------------------------------------------- chains */
#define CHAIN 6
/* Through maps m[n-1] … m[0]: the index in the first one's input, or the fill met on the way. */
static bool walk(const uint32_t *m, uint32_t n, const int64_t *at, int64_t *in, uint32_t *fill) {
  int64_t x[TARN_MAX_DIMS];
  memcpy(x, at, sizeof x);
  for (uint32_t i = n; i-- > 0; memcpy(x, in, sizeof x))
    if (!tarn_map_apply(L, m[i], x, in)) return *fill = tarn_imap_get(L, m[i])->fill, false;
  return true;
}

/* The composed map does at every index what its parts do one after the other. */
static void check_pointwise(uint32_t whole, const uint32_t *part, uint32_t n) {
  const tarn_imap *m = tarn_imap_get(L, whole);
  int64_t x[TARN_MAX_DIMS] = {0};
  if (product(m->n, m->dim) == 0) return;
  do {
    int64_t a[TARN_MAX_DIMS] = {0}, b[TARN_MAX_DIMS] = {0};
    uint32_t fill = TARN_NONE;
    bool got = tarn_map_apply(L, whole, x, a), want = walk(part, n, x, b, &fill);
    MUST(got == want);
    if (!want) {
      MUST(m->fill == fill);
      continue;
    }
    for (uint32_t i = 0; i < m->nin; i++) {
      MUST(a[i] >= 0 && a[i] < m->in[i]);
      MUST(a[i] == b[i]);
    }
  } while (step_index(m->n, m->dim, x));
}

typedef struct chain {
  uint32_t n, base, type, map[CHAIN], whole;
  uint32_t prefix[CHAIN + 1]; /* compositions of the first i maps */
} chain;

static bool random_chain(chain *k) {
  k->base = k->type = random_type();
  k->n = 0;
  k->whole = k->prefix[0] = tarn_map_identity(L, k->base);
  uint32_t want = 2 + (uint32_t)below(CHAIN - 1);
  for (int tries = 0; k->n < want && tries < 40; tries++) {
    uint32_t op, payload;
    if (!random_op(k->type, &op, &payload)) continue;
    uint32_t t = tarn_type_of(L, op, payload, &k->type, 1);
    if (t == TARN_NONE || tarn_type_count(tarn_type_get(L, t)) > 400) continue;
    uint32_t m = tarn_map_of(L, op, payload, k->type), w = tarn_map_compose(L, m, k->whole);
    if (w == TARN_NONE) return false; /* two fills */
    k->map[k->n++] = m;
    k->prefix[k->n] = k->whole = w;
    k->type = t;
  }
  return k->n > 0;
}

TEST(chains_compose_pointwise) {
  UNUSED;
  int made = 0;
  for (int round = 0; round < 12000; round++) {
    chain k;
    if (!random_chain(&k)) continue;
    made++;
    check_pointwise(k.whole, k.map, k.n);
    tarn_imap again = *tarn_imap_get(L, k.whole); /* the check by ranges accepts it */
    ck_assert_uint_eq(tarn_map_intern(L, &again), k.whole);
  }
  ck_assert_int_gt(made, 8000);
}

/* The order of composing does not matter. */
TEST(composition_is_associative) {
  UNUSED;
  int differ = 0, made = 0;
  for (int round = 0; round < 12000; round++) {
    chain k;
    if (!random_chain(&k)) continue;
    uint32_t w = k.map[k.n - 1];
    for (uint32_t i = k.n - 1; i-- > 0 && w != TARN_NONE;) w = tarn_map_compose(L, w, k.map[i]);
    if (w == TARN_NONE) continue;
    made++;
    check_pointwise(w, k.map, k.n);
    differ += w != k.whole;
  }
  ck_assert_int_gt(made, 8000);
  ck_assert_msg(differ * 500 < made, "%d of %d depend on the order", differ, made);
}

/* What is the identity at every index has the identity's id. */
TEST(cancelling_chains_vanish) {
  UNUSED;
  int found = 0;
  for (int round = 0; round < 20000; round++) {
    chain k;
    if (!random_chain(&k)) continue;
    const tarn_imap *m = tarn_imap_get(L, k.whole);
    const tarn_type *t = tarn_type_get(L, k.base);
    int64_t x[TARN_MAX_DIMS] = {0}, y[TARN_MAX_DIMS];
    bool same = m->n == t->n && !memcmp(m->dim, t->dim, t->n * sizeof *t->dim);
    if (!same || !product(m->n, m->dim)) continue;
    do same = tarn_map_apply(L, k.whole, x, y) && !memcmp(x, y, m->n * sizeof *x);
    while (same && step_index(m->n, m->dim, x));
    found += same;
    ck_assert_int_eq(tarn_map_is_identity(L, k.whole), same);
  }
  ck_assert_int_gt(found, 300);
}

static uint32_t apply(uint32_t map, uint32_t op, uint32_t payload) {
  const tarn_imap *m = tarn_imap_get(L, map);
  uint32_t type = tarn_type_tensor(L, TARN_F32, m->ns, m->n, m->dim);
  uint32_t r = tarn_map_compose(L, tarn_map_of(L, op, payload, type), map);
  ck_assert_uint_ne(r, TARN_NONE);
  return r;
}
static uint32_t shape(uint32_t ns, uint32_t n, const int64_t *dim) {
  return tarn_payload_of(L, TARN_P_SHAPE, tarn_type_tensor(L, TARN_F32, ns, n, dim));
}
static uint32_t pad(uint32_t axis, int64_t before, int64_t after) {
  const int64_t v[] = {axis, before, after};
  return tarn_payload_intern(
      L, &(tarn_payload){.kind = TARN_P_PADV, .n = 3, .ints = v, .value = fills[0]});
}

/* Chains on tensors too large to try out. */
TEST(known_chains_have_one_form) {
  UNUSED;
  uint32_t type = tarn_type_tensor(L, TARN_F32, 4, 4, (int64_t[]){8, 64, 56, 56});
  uint32_t id = tarn_map_identity(L, type), a, b;
  a = apply(id, TARN_OP_RESHAPE, shape(3, 3, (int64_t[]){512, 7, 448}));
  a = apply(a, TARN_OP_RESHAPE, shape(5, 5, (int64_t[]){8, 4, 16, 28, 112}));
  a = apply(a, TARN_OP_RESHAPE, shape(4, 4, (int64_t[]){8, 64, 56, 56}));
  ck_assert_uint_eq(a, id);
  a = apply(apply(id, TARN_OP_PAD, pad(2, 1, 3)), TARN_OP_PAD, pad(2, 2, 0));
  ck_assert_uint_eq(a, apply(id, TARN_OP_PAD, pad(2, 3, 3)));
  a = apply(a, TARN_OP_SLICE, ints(4, (int64_t[]){2, 3, 59, 1}));
  ck_assert_uint_eq(a, id);
  a = apply(apply(id, TARN_OP_SLICE, ints(4, (int64_t[]){3, 55, -1, -1})), TARN_OP_SLICE,
            ints(4, (int64_t[]){3, 55, -1, -1}));
  ck_assert_uint_eq(a, id);
  a = apply(apply(id, TARN_OP_TRANSPOSE, ints(4, (int64_t[]){0, 2, 3, 1})), TARN_OP_TRANSPOSE,
            ints(4, (int64_t[]){0, 3, 1, 2}));
  ck_assert_uint_eq(a, id);
  a = apply(apply(id, TARN_OP_ACCESS, ints(1, &(int64_t){3})), TARN_OP_WINDOWS,
            ints(3, (int64_t[]){7, 7, 1}));
  b = apply(id, TARN_OP_RESHAPE, shape(5, 5, (int64_t[]){8, 64, 56, 8, 7}));
  ck_assert_uint_eq(a, apply(b, TARN_OP_ACCESS, ints(1, &(int64_t){4})));
  a = apply(apply(id, TARN_OP_SLICE, ints(4, (int64_t[]){1, 32, 32, 1})), TARN_OP_PAD,
            pad(1, 2, 2));
  const tarn_imap *m = tarn_imap_get(L, a); /* all fill */
  ck_assert(m->nguard == 1 && m->guard->lo == m->guard->hi && m->fill == fills[0]);
}

/* ---------------------------------------------------------------- inverses */
TEST(inverses_undo) {
  UNUSED;
  int found = 0, bijections = 0;
  for (int round = 0; round < 12000; round++) {
    chain k;
    if (!random_chain(&k)) continue;
    const tarn_imap *m = tarn_imap_get(L, k.whole);
    const tarn_type *t = tarn_type_get(L, k.base);
    uint32_t inv = tarn_map_invert(L, k.whole, t->ns);
    bool onto = !m->nguard && product(m->n, m->dim) == product(t->n, t->dim);
    int64_t x[TARN_MAX_DIMS] = {0}, y[TARN_MAX_DIMS], z[TARN_MAX_DIMS], flat;
    char seen[512] = {0};
    if (inv != TARN_NONE) {
      ck_assert_uint_eq(tarn_imap_get(L, inv)->ns, t->ns);
      ck_assert(onto);
    }
    if (!onto || !product(m->n, m->dim)) continue;
    do {
      tarn_map_apply(L, k.whole, x, y);
      flat = 0;
      for (uint32_t i = 0; i < t->n; i++) flat = flat * t->dim[i] + y[i];
      onto &= !seen[flat]++;
      if (inv == TARN_NONE) continue;
      MUST(tarn_map_apply(L, inv, y, z));
      MUST(!memcmp(x, z, m->n * sizeof *x));
    } while (step_index(m->n, m->dim, x));
    ck_assert(onto || inv == TARN_NONE);
    bijections += onto;
    found += onto && inv != TARN_NONE;
  }
  ck_assert_int_gt(bijections, 2000);
  ck_assert_msg(found * 50 > bijections * 49, "%d of %d bijections", found, bijections);
}

/* ---------------------------------------------------------------- what is refused */
static tarn_imap one_dim(int64_t dim, int64_t in) {
  return (tarn_imap){.ns = 1, .n = 1, .dim = {dim}, .nin = 1, .in = {in}, .fill = TARN_NONE};
}
static void intern_it(tarn_ctx *c, void *arg) {
  (void)c;
  tarn_map_intern(L, arg);
}

TEST(unsound_maps_are_refused) {
  UNUSED;
  tarn_imap m = one_dim(10, 9);
  m.e[0] = tarn_ix_var(L, 0, m.dim);
  ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_BAD_INPUT);
  m.nguard = 1; /* x < 9 makes it sound, x < 10 does not */
  m.fill = fills[0];
  m.guard[0] = (tarn_guard){m.e[0], 0, 10};
  ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_BAD_INPUT);
  m.guard[0].hi = 9;
  ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_OK);
  m.fill = TARN_NONE; /* guards need a fill */
  ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_BAD_INPUT);
  /* Sound, but only trying it out shows it: x - 3·floor(2x/7) for x < 21 … */
  m = one_dim(21, 30);
  uint32_t x = tarn_ix_var(L, 0, m.dim);
  uint32_t q = tarn_ix_div(L, tarn_ix_scale(L, x, 2, m.dim), 7, m.dim);
  m.e[0] = tarn_ix_add(L, x, tarn_ix_scale(L, q, -3, m.dim), m.dim);
  ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_OK);
  m.in[0] = 5; /* … and it takes the value 5 at x = 20 */
  ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_BAD_INPUT);
}

/* A map with random guards is taken where its index stays inside wherever they hold, and only
 * there. */
TEST(indices_stay_inside_where_the_guards_hold) {
  UNUSED;
  uint32_t taken = 0, refused = 0;
  for (int round = 0; round < 6000; round++) {
    tarn_imap m = {
        .ns = 4, .n = 4, .dim = {ext[0], ext[1], ext[2], ext[3]}, .nin = 1, .fill = fills[0]};
    m.e[0] = random_ix(3);
    m.nguard = (uint8_t)below(4);
    for (uint32_t i = 0; i < m.nguard; i++) {
      int64_t lo = below(9) - 4;
      m.guard[i] = (tarn_guard){random_ix(2), lo, lo + 1 + below(9)};
    }
    int64_t x[4] = {0}, low = INT64_MAX, high = INT64_MIN;
    do {
      bool holds = true;
      for (uint32_t i = 0; i < m.nguard; i++) {
        int64_t v = tarn_ix_eval(L, m.guard[i].e, x);
        holds &= v >= m.guard[i].lo && v < m.guard[i].hi;
      }
      int64_t v = tarn_ix_eval(L, m.e[0], x);
      if (holds && v < low) low = v;
      if (holds && v > high) high = v;
    } while (step_index(4, ext, x));
    m.in[0] = high < 0 || high == INT64_MIN ? 1 : high + below(2); /* sometimes one too few */
    if (!m.in[0]) continue; /* of an extent of 1 the index is 0 whatever the expression says */
    bool inside = low > high || (low >= 0 && high < m.in[0]);
    ck_assert_int_eq(tarn_protect(cx, intern_it, &m), inside ? TARN_OK : TARN_BAD_INPUT);
    if (low <= high && m.in[0] > 1)
      ck_assert_int_eq(tarn_map_inside(L, tarn_map_intern_derived(L, &m)), inside);
    *(inside ? &taken : &refused) += 1;
  }
  ck_assert_uint_gt(taken, 1000);
  ck_assert_uint_gt(refused, 1000);
}

/* More indices than can be tried, of which rows and columns vary apart: those of an image that a
 * transposed convolution of 3 taps and a step of 2 reads, where an odd number of results wants
 * divisions. */
TEST(parts_that_share_no_dim_are_tried_apart) {
  UNUSED;
  tarn_imap m = {.ns = 4,
                 .n = 4,
                 .dim = {1111, 1111, 2, 2},
                 .nin = 1,
                 .in = {556 * 556},
                 .fill = fills[0],
                 .nguard = 2};
  uint32_t at[2];
  for (uint32_t i = 0; i < 2; i++) { /* (o+1)/2 + (o+1)%2 + q - 1 in 0..556 */
    uint32_t o = tarn_ix_add(L, tarn_ix_var(L, i, m.dim), tarn_ix_const(L, 1), m.dim);
    at[i] = tarn_ix_add(L, tarn_ix_div(L, o, 2, m.dim), tarn_ix_mod(L, o, 2, m.dim), m.dim);
    at[i] = tarn_ix_add(L, at[i], tarn_ix_var(L, 2 + i, m.dim), m.dim);
    at[i] = tarn_ix_add(L, at[i], tarn_ix_const(L, -1), m.dim);
    m.guard[i] = (tarn_guard){at[i], 0, 556};
  }
  m.e[0] = tarn_ix_add(L, tarn_ix_scale(L, at[0], 556, m.dim), at[1], m.dim);
  ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_OK);
  m.in[0]--;
  ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_BAD_INPUT);
}

/* More indices than can be tried, of which only k times one dim and another matters: the windows of
 * a prefix sum over what was reshaped. k is too large for the sum to take every value, and so says
 * nothing, where it exceeds the other extent. */
TEST(dims_that_go_together_are_tried_as_one) {
  UNUSED;
  static const int64_t times[] = {1, 200, 2101};
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    int64_t k = times[i];
    tarn_imap m = {.ns = 2, .n = 2, .dim = {2100, 2100}, .nin = 1, .in = {3}, .fill = fills[0]};
    uint32_t x = tarn_ix_scale(L, tarn_ix_var(L, 0, m.dim), k, m.dim),
             t = tarn_ix_add(L, x, tarn_ix_var(L, 1, m.dim), m.dim);
    uint32_t u = tarn_ix_add(L, t, tarn_ix_const(L, 1), m.dim),
             v = tarn_ix_add(L, tarn_ix_scale(L, t, 2101, m.dim), tarn_ix_const(L, 1), m.dim);
    m.e[0] = tarn_ix_add(L, tarn_ix_scale(L, tarn_ix_div(L, u, 350, m.dim), -3, m.dim),
                         tarn_ix_div(L, v, 245000, m.dim), m.dim);
    m.nguard = 1, m.guard[0] = (tarn_guard){t, 2099, 4199};
    ck_assert_int_eq(tarn_protect(cx, intern_it, &m), k > 2100 ? TARN_BAD_INPUT : TARN_OK);
    m.in[0]--;
    ck_assert_int_eq(tarn_protect(cx, intern_it, &m), TARN_BAD_INPUT);
  }
}

TEST(guards_that_exclude_each_other) {
  UNUSED;
  tarn_imap m = {.ns = 2, .n = 2, .dim = {10, 10}, .nin = 1, .in = {4}, .fill = fills[1]};
  uint32_t x = tarn_ix_var(L, 0, m.dim), y = tarn_ix_var(L, 1, m.dim);
  m.e[0] = x;
  m.nguard = 2;
  m.guard[0] = (tarn_guard){x, 5, 10};
  m.guard[1] = (tarn_guard){tarn_ix_add(L, x, y, m.dim), 0, 4};
  const tarn_imap *r = tarn_imap_get(L, tarn_map_intern(L, &m));
  ck_assert(r->nguard == 1 && r->guard->lo == r->guard->hi);
  m.guard[0].lo = 2; /* now they can hold, and x is then below 4 */
  r = tarn_imap_get(L, tarn_map_intern(L, &m));
  ck_assert_uint_eq(r->nguard, 2);
}

static void overflow(tarn_ctx *ctx, void *arg) {
  UNUSED;
  const int64_t e[] = {1000};
  uint32_t x = tarn_ix_scale(L, tarn_ix_var(L, 0, e), INT64_MAX / 2, e);
  tarn_ix_scale(L, x, 4, e);
}
TEST(overflow_is_an_error) {
  UNUSED;
  ck_assert_int_eq(tarn_protect(cx, overflow, NULL), TARN_BAD_INPUT);
}

int main(void) {
  TCase *t = tcase_create("all");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, building_keeps_the_value);
  tcase_add_test(t, substitution_keeps_the_value);
  tcase_add_test(t, known_identities);
  tcase_add_test(t, chains_compose_pointwise);
  tcase_add_test(t, composition_is_associative);
  tcase_add_test(t, cancelling_chains_vanish);
  tcase_add_test(t, known_chains_have_one_form);
  tcase_add_test(t, inverses_undo);
  tcase_add_test(t, unsound_maps_are_refused);
  tcase_add_test(t, indices_stay_inside_where_the_guards_hold);
  tcase_add_test(t, parts_that_share_no_dim_are_tried_apart);
  tcase_add_test(t, dims_that_go_together_are_tried_as_one);
  tcase_add_test(t, guards_that_exclude_each_other);
  tcase_add_test(t, overflow_is_an_error);
  return run_checks("map", t);
}
