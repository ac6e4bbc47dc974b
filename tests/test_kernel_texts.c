/* Kernels and schedules as texts of strangers: each with something changed is refused in one line,
 * or its loop program, in the plan's interpreter and as machine code, stays in its buffers.
 *
 *   test_kernel_texts [--all]      600 changed texts, or 24,000 */
#include "compile/target.h"
#include "plan/work.h"
#include "price/price.h"
#include "tests/context.h"
#include "tests/lower_kit.h"

/* A product, a product after a sum of two, windows with padding, a softmax of two stages, rows of a
 * table, a blocked result. */
static const char *const kernels[] = {
    "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 16 16) (reduce 16) (red sum "
    "(mul $0 $1)) (child 0 (index ((16 16) (16)) (256) ((+ (* 16 d0) d2)))) (child 1 (index ((16 "
    "16) (16)) (256) ((+ d1 (* 16 d2))))) out)))(in f32 (256) (1))(in f32 (256) (1))(out f32 (16 "
    "16) (16 1)))",
    "(strict (nest (stages (children 1) (shared) (split 1) (stage (own 4) (reduce 5) (red (sum "
    "f32) "
    "(mul $0 $1)) (child 0 (index ((4) (5)) (900) ((+ 112 (* 6 d0) d1)))) (child 0 (index ((4) "
    "(5)) (900) ((+ 115 d0)))) out)))(in f32 (900) (1))(out f32 (4) (1)))",
    "(kernel (nest (stages (children 1) (shared) (split 1) (stage (own 12 64) (reduce) (map (neg "
    "$0)) (child 0 (index ((12 64) ()) (1200) ((+ (* 100 d0) d1)))) out)))(in f32 (1200) (1))(out "
    "f32 (12 64) (64 1)))",
    "(kernel (nest (stages (children 1) (shared 6) (split 1) (stage (own) (reduce 8) (red (max "
    "f32) "
    "$0) (child 0 (index ((6) (8)) (48) ((+ (* 8 d0) d1))))) (stage (own 8) (reduce) (map (sub $0 "
    "$1)) (child 0 (index ((6 8) ()) (48) ((+ (* 8 d0) d1)))) (stage 0 (index ((6 8) ()) () ())) "
    "out)))(in f32 (48) (1))(out f32 (6 8) (8 1)))",
    "(kernel (nest (stages (children 1) (shared) (split 2) (stage (own 6 8) (reduce) (map (add $0 "
    "(f32 1))) (child 0 (index ((6 8) ()) (48) ((+ (* 8 d0) d1)))) out)))(in f32 (48) (1))(out f32 "
    "(6 8) (1 6)))",
};
#define KERNELS (sizeof kernels / sizeof *kernels)

/* ---------------------------------------------------------------- a changed text */
typedef struct token {
  const char *at;
  size_t n;
} token;
typedef TARN_VEC(token) tokens;
static tokens tokens_of(tarn_ctx *cx, const char *p) {
  tokens t = {0};
  while (*p) {
    size_t n = strchr("()", *p) ? 1 : strcspn(p, " ()");
    if (*p != ' ') tarn_push(cx, &t, ((token){p, n}));
    p += n ? n : 1;
  }
  return t;
}
/* The form that begins here; or the word. */
static token form_at(const tokens *t, uint32_t i) {
  int depth = 0;
  const char *from = t->p[i].at;
  for (; i < t->n; i++) {
    depth += (*t->p[i].at == '(') - (*t->p[i].at == ')');
    if (depth <= 0) break;
  }
  if (i == t->n) i--;
  return (token){from, (size_t)(t->p[i].at + t->p[i].n - from)};
}
static const char *number_near(tarn_ctx *cx, long long v) {
  const long long to[] = {0, 1, -1, v + 1, v - 1, 2 * v, v / 2, -v, 1ll << 31, 1ll << 40, 3, 16};
  return tarn_format(cx, "%lld", to[kit_below(sizeof to / sizeof *to)]);
}
static const char *changed(tarn_ctx *cx, const char *text) {
  static const char *const words[] = {"f32", "f16", "i8",  "i32", "i64", "bool", "out", "const",
                                      "in",  "max", "sum", "d0",  "d1",  "d2",   "$0",  "$1"};
  tokens t = tokens_of(cx, text);
  if (!t.n) return text;
  uint32_t i = kit_below((uint32_t)t.n);
  token was = t.p[i];
  const char *by;
  for (uint32_t k = 0; k < 50 && *was.at == ')'; k++) was = t.p[i = kit_below((uint32_t)t.n)];
  token other = form_at(&t, kit_below((uint32_t)t.n));
  bool number = strchr("-0123456789", *was.at) != NULL;
  switch (kit_below(number ? 8 : 4)) {
  case 0: was = form_at(&t, i), by = ""; break;
  case 1: was = form_at(&t, i), by = tarn_format(cx, "%.*s", (int)other.n, other.at); break;
  case 2:
    was = form_at(&t, i);
    by = tarn_format(cx, "%.*s %.*s", (int)was.n, was.at, (int)was.n, was.at);
    break;
  case 3: by = *was.at == '(' ? "(" : words[kit_below(sizeof words / sizeof *words)]; break;
  default: by = number_near(cx, atoll(was.at));
  }
  return tarn_format(cx, "%.*s%s%s", (int)(was.at - text), text, by, was.at + was.n);
}

/* ---------------------------------------------------------------- what is made of it */
typedef struct trial {
  const char *text, *schedule; /* NULL: the best one */
  bool runs;                   /* as machine code too */
  bool taken;
} trial;
static bool is_small(tarn_lang *L, const tarn_ksig *k) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  int64_t work = 0;
  for (uint32_t s = 0; s < n->nstage; s++) {
    int64_t dim[3 * TARN_MAX_DIMS];
    int64_t points = 1;
    for (uint32_t d = tarn_nest_dims(n, &n->stage[s], dim); d-- > 0;)
      points = points > 1 << 20 || dim[d] > 1 << 20 ? 1 << 21 : points * dim[d];
    work += points;
  }
  for (uint32_t i = 0; i < k->nin; i++) work += tarn_layout_elems(&k->in[i]);
  for (uint32_t i = 0; i < k->nout; i++) work += tarn_layout_elems(&k->out[i]);
  return work < 20000 && k->nin <= 8 && n->nstage <= 16 && !tarn_nest_looks_up(n);
}
static void take(tarn_ctx *cx, void *arg) {
  trial *t = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ksig k;
  const tarn_sx *all = tarn_sx_read(cx, t->text, strlen(t->text), "text");
  tarn_ksig_read(L, tarn_sx_kid(cx, all, 0, TARN_SX_LIST, "a kernel"), &k);
  if (!is_small(L, &k) || !tarn_ksig_complete(L, &k)) return;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  const char *given = t->schedule;
  const tarn_schedule *s =
      given ? tarn_schedule_parse(L, tarn_nest_get(L, k.nest), given, strlen(given))
            : tarn_solve(tarn_solver_new(L, hw, 1), &k, NULL);
  tarn_target_of(cx, hw)->check(L, hw, &k, s);
  kit_case c = kit_case_of(cx, &k, s);
  kit_interpret(L, hw, &c, true);
  if (t->runs) kit_run(L, hw, &c, 1, true, 1);
  t->taken = true;
}

/* Refused in one line; else nothing of it is wrong. */
static bool one(const char *kernel, const char *schedule, bool runs) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  trial t = {.text = kernel, .schedule = schedule, .runs = runs};
  tarn_status st = tarn_protect(cx, take, &t);
  const char *why = tarn_message(cx);
  bool refused = st == TARN_BAD_INPUT;
  ck_assert_msg(st == TARN_OK || (refused && *why && !strchr(why, '\n')), "%s\n%s\n%s", kernel,
                schedule ? schedule : "", why);
  tarn_ctx_free(cx);
  return t.taken;
}
static void schedule_text(tarn_ctx *cx, void *arg) {
  const char **text = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ksig k;
  tarn_ksig_parse(L, text[0], strlen(text[0]), &k);
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  const char *s = tarn_schedule_text(cx, tarn_solve(tarn_solver_new(L, hw, 1), &k, NULL));
  text[1] = strdup(s);
}
enum { PARTS = 20, NATIVE = 11 };
static bool all;
START_TEST(changed_texts_are_refused_or_stay_in_their_buffers) {
  uint32_t n = all ? 1200 : 30;
  uint32_t taken = 0;
  const char *text[] = {kernels[_i % KERNELS], NULL};
  in_context(schedule_text, text);
  ck_assert(one(text[0], text[1], true));
  kit_seed = (uint64_t)_i + 1;
  for (uint32_t i = 0; i < n; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    const char *t[] = {text[0], text[1]};
    uint32_t which = i % 3 == 2;
    for (uint32_t k = kit_below(2) + 1; k-- > 0;) t[which] = changed(cx, t[which]);
    taken += one(t[0], which ? t[1] : NULL, taken % NATIVE == 0);
    tarn_ctx_free(cx);
  }
  ck_assert_uint_gt(taken, 0);
  free((void *)(uintptr_t)text[1]);
}
END_TEST

/* A step far beyond the extent: the sums of its tile would take 8 TiB. */
START_TEST(large_tiles_are_refused) {
  static const char schedule[] =
      "(schedule (stage (acc 1) (serial 0 1099511627776) (unroll 1 1) (unroll 0 1)))";
  tarn_ctx *cx = tarn_ctx_new(NULL);
  trial t = {.text = kernels[1], .schedule = schedule, .runs = true};
  ck_assert_int_eq(tarn_protect(cx, take, &t), TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), "a tile of 1099511627776 elements") != NULL, "%s",
                tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

/* What contradicts itself, and what is said of it. */
static const struct contradiction {
  const char *from, *to, *why;
} contradictions[] = {
    {"(out f32 (16 16) (16 1))", "(out f32 (1) (1))", "out 0 is f32[1], the nest computes f32[16"},
    {"(out f32 (16 16) (16 1))", "(out f32 (16 15) (16 1))", "out 0 is f32[16,15], the nest"},
    {"(out f32 (16 16) (16 1))", "(out f16 (16 16) (16 1))", "out 0 is f16[16,16], the nest"},
    {"(out f32 (16 16) (16 1))", "(out f32 (16 16) (8 1))", "out 0: elements share a place"},
    {"(out f32 (16 16) (16 1))", "(out f32 (16 16) (0 1))", "out 0: elements share a place"},
    {"(out f32 (16 16) (16 1))", "(out f32 (16 16) (1099511627776 1))", "out 0 is too large"},
    {"(out f32 (16 16) (16 1))", "", "a nest of 1 results with 0"},
    {"(out f32 (16 16) (16 1))", "(out f32 (16 16) (16 1))(out f32 (16 16) (16 1))", "with 2"},
    {"(in f32 (256) (1))(out", "(in f32 (255) (1))(out",
     "stage 0: a read of a child of other dims"},
    {"(in f32 (256) (1))(out", "(in i8 (256) (1))(out", "$"},
    {"(in f32 (256) (1))(out", "(in f32 (16 16) (16 1))(out", "a read of a child of other dims"},
    {"(in f32 (256) (1))(out", "(in f32 (256) (1099511627776))(out", "in 1 is too large"},
    {"(* 16 d0) d2", "(* 17 d0) d2", "index"},
};
static void contradict(tarn_ctx *cx, void *arg) {
  const char *text = arg;
  tarn_ksig k;
  tarn_ksig_parse(tarn_lang_new(cx), text, strlen(text), &k);
}
START_TEST(contradictions_are_refused) {
  const struct contradiction *x = &contradictions[_i];
  tarn_ctx *cx = tarn_ctx_new(NULL);
  const char *at = strstr(kernels[0], x->from);
  char text[2000];
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - kernels[0]), kernels[0], x->to,
           at + strlen(x->from));
  ck_assert_int_eq(tarn_protect(cx, contradict, text), TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), x->why) != NULL, "%s\n%s", text, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "--all");
  TCase *t = tcase_create("kernel_texts");
  tcase_set_timeout(t, all ? 1200 : 120);
  tcase_add_test(t, large_tiles_are_refused);
  tcase_add_loop_test(t, contradictions_are_refused, 0,
                      sizeof contradictions / sizeof *contradictions);
  tcase_add_loop_test(t, changed_texts_are_refused_or_stay_in_their_buffers, 0, PARTS);
  return run_checks("kernel_texts", t);
}
