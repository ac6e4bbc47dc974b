/* access/: the typing of terms, what is interned, the builders. (Scalars: test_scalar.c; text:
 * test_text.c; index maps: test_map.c; values of terms: test_eval.c.) */
#include "access/access.h"
#include "tests/terms.h"
#include "tests/typings.h"
#include <stdio.h>

/* ---------------------------------------------------------------- typing of every operator */
START_TEST(operators_type) {
  const char *want = typings[_i][1], *io[2] = {typings[_i][0], NULL};
  tarn_status st = tarn_protect(cx, parse_one, io);
  if (*want == '!') {
    ck_assert_msg(st == TARN_BAD_INPUT, "%s: accepted as %s", io[0], io[1] ? io[1] : "");
    ck_assert_msg(strstr(tarn_message(cx), want + 1) && strncmp(tarn_message(cx), "t:1:", 4) == 0,
                  "%s: %s", io[0], tarn_message(cx));
  } else {
    ck_assert_msg(st == TARN_OK, "%s: %s", io[0], tarn_message(cx));
    ck_assert_str_eq(io[1], want);
  }
}
END_TEST

/* Each operator stands in the table at least once well-typed and, where it can go wrong, once
 * ill-typed. */
START_TEST(every_operator_is_tested) {
  for (uint32_t op = 0; op < TARN_OP_COUNT; op++) {
    char head[40];
    bool good = false;
    snprintf(head, sizeof head, "(%s", tarn_op_info(op)->text);
    for (size_t i = 0; i < sizeof typings / sizeof *typings; i++) {
      const char *at = strstr(typings[i][0], head);
      good |= at && typings[i][1][0] != '!' && strchr(" )", at[strlen(head)]);
    }
    ck_assert_msg(good, "%s", head);
    ck_assert_uint_eq(tarn_op_find(tarn_op_info(op)->text), op);
  }
  ck_assert_uint_eq(tarn_op_find("none such"), TARN_NONE);
}
END_TEST

/* The message holds the node's text and its operands' types. */
START_TEST(messages_show_the_node) {
  const char *io[2] = {"(flatten (slice 2 1 5 " X234 "))", NULL};
  ck_assert_int_eq(tarn_protect(cx, parse_one, io), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx),
                   "t:1:10: (slice 2 1 5 f32 ((2 3) (4))): 1 to 5 by 1 does not lie within 4");
}
END_TEST

static void typed_wrong(tarn_ctx *c, void *arg) {
  (void)arg;
  uint32_t none = tarn_payload_ints(L, 0, NULL), one = tarn_payload_ints(L, 1, (int64_t[]){0});
  uint32_t type = tarn_type_tensor(L, TARN_F32, 1, 1, (int64_t[]){3});
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_SLICE, one, &type, 1), TARN_NONE);
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_ACCESS, none, &type, 1), TARN_NONE);
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_FLATTEN, one, &type, 1), TARN_NONE);
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_COUNT, 0, &type, 1), TARN_NONE);
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_FLATTEN, 999999, &type, 1), TARN_NONE);
  ck_assert_str_ne(tarn_message(c), "");
}

START_TEST(typing_never_trusts_a_payload) { must(typed_wrong, NULL); }
END_TEST

/* ---------------------------------------------------------------- the manual */
/* Every TERM ; TYPE in docs/language.md, and every operator is among them. */
static void check_manual(tarn_ctx *c, void *arg) {
  size_t n;
  char *text = tarn_read_file(c, TARN_TOP "/docs/language.md", &n), *line, *next;
  uint32_t checked = 0;
  bool shown[TARN_OP_COUNT] = {0}, inside = false;
  (void)arg;
  for (line = text; line && *line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    if (strncmp(line, "```", 3) == 0) inside = strcmp(line, "```term") == 0;
    char *type = strstr(line, " ; ");
    if (!inside || line[0] != '(') continue;
    ck_assert_msg(type != NULL, "%s", line);
    *type = 0;
    const char *io[2] = {line, NULL};
    parse_one(c, io);
    ck_assert_msg(strcmp(io[1], type + 3) == 0, "%s has the type %s", line, io[1]);
    const tarn_term *terms, t = tarn_term_parse(L, read1(c, line));
    for (uint32_t k = tarn_term_reachable(L, &t, 1, &terms); k-- > 0;)
      shown[tarn_term_get(L, terms[k])->op] = true;
    checked++;
  }
  for (uint32_t op = 0; op < TARN_OP_COUNT; op++)
    ck_assert_msg(shown[op], "%s", tarn_op_info(op)->text);
  ck_assert_uint_gt(checked, 35);
}

START_TEST(the_manuals_examples_hold) { must(check_manual, NULL); }
END_TEST

/* ---------------------------------------------------------------- interning */
static tarn_tensor *counting(tarn_ctx *c, uint32_t n, const int64_t *dim, float from) {
  tarn_tensor *t = tarn_tensor_new(c, TARN_F32, n, dim);
  for (int64_t i = 0; i < tarn_tensor_count(t); i++) ((float *)t->data)[i] = from + (float)i;
  return t;
}

static void constants(tarn_ctx *c, void *arg) {
  const int64_t dim[2] = {3, 40};
  tarn_tensor *a = counting(c, 2, dim, 0), *b = counting(c, 2, dim, 0), *d = counting(c, 2, dim, 1);
  (void)arg;
  tarn_term ta = tarn_constant(L, "w", a, 2);
  ck_assert_uint_eq(tarn_constant(L, "other", b, 2), ta);
  ck_assert_ptr_eq(tarn_payload_get(L, tarn_term_get(L, ta)->payload)->tensor->data, a->data);
  ck_assert_uint_ne(tarn_constant(L, "w", a, 1), ta);
  tarn_term td = tarn_constant(L, "w", d, 2);
  ck_assert_uint_ne(td, ta);
  ck_assert_str_ne(tarn_payload_get(L, tarn_term_get(L, td)->payload)->name, "w");
  ck_assert_uint_eq(tarn_term_parse(L, read1(c, "(const w f32 ((3 40) ()))")), ta);
  ck_assert_uint_eq(tarn_term_parse(L, read1(c, "(const w)")), ta);
  ck_assert_uint_ne(tarn_scalar(L, TARN_F32, 0.0), tarn_scalar(L, TARN_F32, -0.0));
  ck_assert_uint_eq(tarn_scalar(L, TARN_F32, 0.1), tarn_scalar(L, TARN_F32, (double)0.1f));
  ck_assert_uint_ne(tarn_fx_const(L, TARN_F32, 0.0), tarn_fx_const(L, TARN_F32, -0.0));
  ck_assert_uint_eq(tarn_fx_const(L, TARN_F32, NAN), tarn_fx_const(L, TARN_F32, -NAN));
  ck_assert_uint_eq(tarn_fx_const(L, TARN_I32, 3), tarn_fx_iconst(L, TARN_I32, 3));
}

START_TEST(constants_are_their_contents) { must(constants, NULL); }
END_TEST

static void builders(tarn_ctx *c, void *arg) {
  const int64_t dim[4] = {2, 3, 8, 8}, w[3] = {3, 3, 3}, one[3] = {1, 1, 1}, flat[2] = {6, 64},
                bc[4] = {2, 3, 8, 8};
  (void)arg;
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 4, 4, dim));
  tarn_term win = tarn_windows(L, w, one, NULL, tarn_access(L, 1, x));
  const uint32_t p[] = {0, 2, 3, 1};
  const struct {
    tarn_term t;
    const char *want;
  } made[] = {
      {win, "(windows (3 3 3) (1 1 1) (access 1 (input x ((2 3 8 8) ()) f32)))"},
      {tarn_transpose(L, p, x), "(transpose (0 2 3 1) (input x ((2 3 8 8) ()) f32))"},
      {tarn_slice(L, 1, 0, 2, 1, x), "(slice 1 0 2 (input x ((2 3 8 8) ()) f32))"},
      {tarn_pad(L, 2, tarn_fx_const(L, TARN_F32, 0), 1, 1, x),
       "(pad 2 0 1 1 (input x ((2 3 8 8) ()) f32))"},
      {tarn_reshape_all(L, 1, 2, flat, x),
       "(access 1 (reshape ((6 64) ()) (access 4 (input x ((2 3 8 8) ()) f32))))"},
      {tarn_reshape(L, 2, 2, flat, x), "(reshape ((6 64) ()) (input x ((2 3 8 8) ()) f32))"},
      {tarn_broadcast(L, 4, 4, bc, x), "(broadcast ((2 3 8 8) ()) (input x ((2 3 8 8) ()) f32))"},
      {tarn_squeeze(L, 0, tarn_insert_axis(L, 0, x)),
       "(squeeze 0 (insertAxis 0 (input x ((2 3 8 8) ()) f32)))"},
      {tarn_concat(L, 0, (tarn_term[]){x, x}, 2),
       "(concat 0 (input x ((2 3 8 8) ()) f32) (input x ((2 3 8 8) ()) f32))"},
      {tarn_cart(L, 1, x, x),
       "(cartProd 1 (input x ((2 3 8 8) ()) f32) (input x ((2 3 8 8) ()) f32))"},
      {tarn_compute(L, fn_of(c, "reduceSum"), &win, 1),
       "(compute reduceSum (windows (3 3 3) (1 1 1) (access 1 (input x ((2 3 8 8) ()) f32))))"},
  };
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    tarn_buf b = {.cx = c};
    tarn_term_print(L, &b, made[i].t);
    ck_assert_str_eq(b.p, made[i].want);
  }
  ck_assert_uint_eq(tarn_view(L, tarn_map_identity(L, tarn_term_get(L, x)->type), x), x);
}

START_TEST(builders_build) { must(builders, NULL); }
END_TEST

static void ill_typed(tarn_ctx *c, void *arg) {
  (void)c;
  tarn_access(L, 9, *(tarn_term *)arg);
}

static void an_input(tarn_ctx *c, void *arg) {
  (void)c;
  *(tarn_term *)arg = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 1, 1, (int64_t[]){3}));
}

START_TEST(building_ill_typed_raises) {
  tarn_term x;
  must(an_input, &x);
  uint32_t before = tarn_term_count(L);
  ck_assert_int_eq(tarn_protect(cx, ill_typed, &x), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx), "(access 9 f32 ((3) ())): axis 9 is out of range");
  ck_assert_uint_eq(tarn_term_count(L), before);
}
END_TEST

/* ---------------------------------------------------------------- scopes */
static const char *text_of(tarn_ctx *c, tarn_term t) {
  tarn_buf b = {.cx = c};
  tarn_term_print(L, &b, t);
  return b.p;
}
/* Ids within and outside go apart. */
static void add_others(tarn_ctx *c, int n) {
  for (int i = 0; i < n; i++) {
    const int64_t dim[] = {2 + i, 5}, other[] = {5, 2 + i};
    tarn_term x =
        tarn_input(L, tarn_format(c, "other%d", n), tarn_type_tensor(L, TARN_F32, 2, 2, dim));
    tarn_normalise(L, tarn_reshape(L, 2, 2, other, x));
  }
}
static void keep_terms(tarn_ctx *c, void *arg) {
  const char *text = arg;
  tarn_ground g = tarn_lang_ground(L);
  tarn_scope *s = tarn_scope_new(L, &g);
  tarn_scope_enter(s);
  ck_assert_ptr_eq(tarn_lang_ctx(L), tarn_scope_ctx(s));
  add_others(tarn_lang_ctx(L), 3);
  tarn_term t = tarn_term_parse(L, read1(tarn_lang_ctx(L), text));
  const char *within = text_of(c, t);
  tarn_scope_leave(s);
  ck_assert_ptr_eq(tarn_lang_ctx(L), c);
  ck_assert_uint_eq(tarn_term_count(L), g.term);
  add_others(c, 5);
  tarn_term kept = tarn_scope_term(s, t);
  ck_assert_uint_eq(tarn_scope_term(s, t), kept);
  tarn_scope_free(s);
  ck_assert_str_eq(text_of(c, kept), within);
  ck_assert_uint_eq(tarn_term_parse(L, read1(c, text)), kept);
}
/* Whatever there is: the table has each operator. */
START_TEST(a_scopes_terms_can_be_kept) {
  const char *text = typings[_i][0];
  if (typings[_i][1][0] != '!') must(keep_terms, (void *)(uintptr_t)text);
}
END_TEST

static void keep_constants(tarn_ctx *c, void *arg) {
  const int64_t dim[1] = {3000};
  (void)arg;
  tarn_tensor *w = counting(c, 1, dim, 7);
  tarn_term early = tarn_constant(L, "early", w, 1);
  tarn_ground g = tarn_lang_ground(L);
  tarn_scope *s = tarn_scope_new(L, &g);
  tarn_scope_enter(s);
  ck_assert_uint_eq(tarn_constant(L, "again", counting(tarn_lang_ctx(L), 1, dim, 7), 1), early);
  tarn_term t = tarn_constant(L, "within", counting(tarn_lang_ctx(L), 1, dim, 8), 1);
  tarn_scope_leave(s);
  ck_assert_uint_eq(tarn_const_find(L, "within"), TARN_NONE);
  ck_assert_uint_eq(tarn_scope_term(s, early), early);
  tarn_term kept = tarn_scope_term(s, t);
  tarn_scope_free(s);
  ck_assert_uint_eq(tarn_const_find(L, "within"), tarn_term_get(L, kept)->payload);
  const tarn_tensor *x = tarn_payload_get(L, tarn_term_get(L, kept)->payload)->tensor;
  ck_assert(((float *)x->data)[2999] == 3007 && x->dim[0] == 3000);
}
START_TEST(a_scopes_constants_can_be_kept) { must(keep_constants, NULL); }
END_TEST

int main(void) {
  const looped tests[] = {{operators_type, COUNT(typings)},
                          {every_operator_is_tested, 1},
                          {messages_show_the_node, 1},
                          {typing_never_trusts_a_payload, 1},
                          {the_manuals_examples_hold, 1},
                          {constants_are_their_contents, 1},
                          {builders_build, 1},
                          {a_scopes_terms_can_be_kept, COUNT(typings)},
                          {a_scopes_constants_can_be_kept, 1},
                          {building_ill_typed_raises, 1}};
  return run_suite("access", tests, sizeof tests / sizeof *tests);
}
