/* access/: which values integer inputs may have. */
#include "access/judge.h"
#include "tests/terms.h"

static bool lengths(const tarn_lang *lang, const tarn_node *x, uint32_t kid, tarn_domain *r) {
  *r = (tarn_domain){0, 3};
  return kid == 1 && strcmp(tarn_payload_get(lang, x->payload)->name, "takes") == 0;
}

static const struct example {
  const char *type, *program; /* of the input i */
  int64_t lo, hi;
} examples[] = {
    /* an index goes as far as its axis, from both ends where there are negative numbers */
    {"i64", "(gather 0 (input e ((30 4) ()) f32) I)", -30, 29},
    {"i32", "(gather 1 (input e ((30 4) ()) f32) I)", -4, 3},
    {"u8", "(gather 0 (input e ((300 4) ()) f32) I)", 0, 255},
    {"u8", "(gather 0 (input e ((30 4) ()) f32) I)", 0, 29},
    {"i8", "(gather 0 (input e ((300 4) ()) f32) I)", -128, 127},
    {"u32", "(gather 0 (input e ((30000 4) ()) f32) I)", 0, 29999},
    /* of two axes the shorter */
    {"i64",
     "(compute (map (add $0 $1)) (gather 0 (input e ((30 4) ()) f32) I) (gather 0 (input f ((20 4) "
     "()) f32) I))",
     -20, 19},
    /* back through casts, views and arithmetic */
    {"i32", "(gather 0 (input e ((30) ()) f32) (compute (map (cast i64 $0)) I))", -30, 29},
    {"i64", "(gather 0 (input e ((30) ()) f32) (reshape ((1 6) ()) I))", -30, 29},
    {"i64", "(gather 0 (input e ((30) ()) f32) (compute (map (add $0 (i64 2))) I))", -32, 27},
    {"i64", "(gather 0 (input e ((30) ()) f32) (compute (map (sub (mul $0 (i64 3)) (i64 1))) I))",
     -9, 10},
    {"i64", "(gather 0 (input e ((30) ()) f32) (compute (map (neg $0)) I))", -29, 30},
    {"i64",
     "(gather 0 (input e ((30) ()) f32) (compute (map (cast i64 (mul (cast f32 $0) 0.5))) I))", -60,
     59},
    {"i64",
     "(gather 0 (input e ((30) ()) f32) (compute (map (select (lt $0 (i64 0)) (add $0 (i64 30)) "
     "$0)) I))",
     -60, 29},
    {"i64", "(gather 0 (input e ((30) ()) f32) (compute (map (mod $0 (i64 30))) I))", -60, 60},
    {"i64", "(gather 0 (input e ((30) ()) f32) (compute (map (min $0 (i64 29))) I))", -30, 60},
    {"i64", "(gather 0 (input e ((30) ()) f32) (concat 0 I (const i64 ((2) ()) 7 28)))", -30, 29},
    {"i64", "(gather 0 (input e ((30) ()) f32) (compute (red (sum i64) $0) (access 0 I)))", -5, 4},
    /* as far as it is compared, where a table is shorter */
    {"i64",
     "(gather 0 (input e ((2) ()) f32) (compute (map (select (or (lt $0 (i64 0)) (lt (i64 9) $0)) "
     "(i64 2) (i64 0))) I))",
     0, 9},
    /* 0 is not allowed: a mask whose sum is a length, a length that has a least value */
    {"i64",
     "(gather 0 (input e ((2) ()) f32) (compute (map (select (or (lt $0 (i64 0)) (lt (i64 5) $0)) "
     "(i64 2) (i64 0))) (compute (map (sub $0 (i64 1))) (compute (red (sum i64) $0) (access 0 "
     "I)))))",
     1, 1},
    {"i32",
     "(gather 0 (input e ((2) ()) f32) (compute (map (select (or (lt $0 (i32 40)) (lt (i32 63) "
     "$0)) (i32 2) (i32 0))) (compute (map (add $0 (i32 1))) I)))",
     39, 62},
    {"u8", "(gather 0 (input e ((30) ()) f32) (compute (map (sub $0 (u8 1))) I))", 1, 30},
    /* what intervals say nothing of constrains nothing */
    {"i64", "(gather 0 (input e ((30) ()) f32) (compute (map (xor $0 $0)) I))", -8, 8},
    /* constants that it is compared with, one beyond; masks */
    {"i64", "(compute (map (lt $0 $1)) (const i64 ((6) ()) 0 1 2 3 4 5) I)", 0, 6},
    {"i64", "(compute (map (eq $0 (i64 4))) I)", 0, 5},
    {"i64", "(compute (map (eq (cast f32 $0) -1)) I)", -1, 0},
    {"i64", "(compute (map (cast bool $0)) I)", 0, 1},
    {"i32", "(compute (map (mul (sub 1 (cast f32 $0)) -1e9)) I)", 0, 1},
    {"i32", "(compute (map (mul (sub 1 $0) -1e9)) (compute (map (cast f32 $0)) I))", 0, 1},
    /* bytes are whole, others small */
    {"u8", "(compute (map (cast f32 $0)) I)", 0, 255},
    {"i8", "(compute (map (eq $0 (i8 4))) I)", -128, 127},
    {"i64", "(compute (map (mul $0 $0)) I)", -8, 8},
    {"u16", "(compute (map (mul $0 $0)) I)", 0, 16},
    {"bool", "(compute (map (not $0)) I)", 0, 1},
    /* operators outside the language say what they take */
    {"i64", "(opaque takes ((f32 ((6) ()))) (input e ((6) ()) f32) I)", 0, 3},
    {"i64", "(opaque does ((f32 ((6) ()))) (input e ((6) ()) f32) I)", -8, 8},
};

static const char *with_input(tarn_ctx *c, const struct example *x) {
  tarn_buf b = {.cx = c};
  for (const char *p = x->program; *p; p++) {
    bool here = *p == 'I' && (p[1] == ')' || p[1] == ' ');
    if (here) tarn_buf_fmt(&b, "(input i ((6) ()) %s)", x->type);
    else tarn_buf_add(&b, p, 1);
  }
  return b.p;
}

static tarn_program *program_of(tarn_ctx *c, const char *term) {
  tarn_program *p = TARN_NEW(c, tarn_program);
  tarn_io *out = TARN_NEW(c, tarn_io), *in = TARN_ARRAY(c, tarn_io, 8);
  out->term = tarn_term_parse(L, read1(c, term));
  out->name = "y", out->type = tarn_term_get(L, out->term)->type;
  *p = (tarn_program){.L = L, .nout = 1, .in = in, .out = out};
  for (tarn_term t = 0; t < tarn_term_count(L); t++) {
    const tarn_node *x = tarn_term_get(L, t);
    if (x->op == TARN_OP_INPUT)
      in[p->nin++] = (tarn_io){tarn_payload_get(L, x->payload)->name, t, x->type};
  }
  return p;
}

static void one_domain(tarn_ctx *c, void *arg) {
  const struct example *x = arg;
  tarn_program *p = program_of(c, with_input(c, x));
  tarn_domain r[8];
  tarn_input_domains(p, lengths, r);
  for (uint32_t i = 0; i < p->nin; i++)
    if (*p->in[i].name == 'i')
      ck_assert_msg(r[i].lo == x->lo && r[i].hi == x->hi, "%s: %lld to %lld", x->program,
                    (long long)r[i].lo, (long long)r[i].hi);
}
START_TEST(domains) { must(one_domain, (void *)(uintptr_t)&examples[_i]); }
END_TEST

/* The sum of two indices stays within the axis too. */
static void two_inputs(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_program *p = program_of(c, "(gather 0 (input e ((30) ()) f32) (compute (map (add $0 $1)) "
                                  "(input i ((6) ()) i64) (input j ((6) ()) i64)))");
  tarn_domain r[8], *i = NULL, *j = NULL;
  tarn_input_domains(p, NULL, r);
  for (uint32_t k = 0; k < p->nin; k++)
    if (*p->in[k].name == 'i') i = &r[k];
    else if (*p->in[k].name == 'j') j = &r[k];
  ck_assert(i->lo + j->lo >= -30 && i->hi + j->hi <= 29 && i->hi - i->lo + j->hi - j->lo == 59);
}
START_TEST(two_indices) { must(two_inputs, NULL); }
END_TEST

static void drawn(tarn_ctx *c, void *arg) {
  (void)arg;
  uint64_t state = 1, again = 1;
  bool seen[256] = {false};
  tarn_tensor *t =
      tarn_random_tensor(c, TARN_I8, 1, (int64_t[]){5000}, (tarn_domain){-128, 127}, &state);
  for (int64_t i = 0; i < 5000; i++) seen[tarn_tensor_get(t, i).i + 128] = true;
  for (int i = 0; i < 256; i++) ck_assert(seen[i]);
  ck_assert_mem_eq(
      t->data,
      tarn_random_tensor(c, TARN_I8, 1, (int64_t[]){5000}, (tarn_domain){-128, 127}, &again)->data,
      5000);
  t = tarn_random_tensor(c, TARN_F32, 1, (int64_t[]){5000}, (tarn_domain){0, 0}, &state);
  double lo = 1, hi = -1;
  for (int64_t i = 0; i < 5000; i++)
    lo = fmin(lo, tarn_tensor_number(t, i)), hi = fmax(hi, tarn_tensor_number(t, i));
  ck_assert(lo >= -1 && lo < -0.9 && hi <= 1 && hi > 0.9);
  t = tarn_random_tensor(c, TARN_I64, 1, (int64_t[]){50}, (tarn_domain){INT64_MIN, INT64_MAX},
                         &state);
  ck_assert(tarn_tensor_get(t, 0).i != tarn_tensor_get(t, 1).i);
}
START_TEST(values) { must(drawn, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("domains");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, domains, 0, sizeof examples / sizeof *examples);
  tcase_add_test(t, two_indices);
  tcase_add_test(t, values);
  return run_checks("domains", t);
}
