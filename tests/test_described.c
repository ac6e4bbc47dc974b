/* Descriptions of accelerators with one thing changed: a number of an instruction is fixed, a form
 * is left out, a field or register has fewer bits, two numbers have one field. The description is
 * refused in one line, or a kernel is when it is compiled, or the values of small kernels in the
 * simulator are the interpreter's: never others.
 *
 *   test_described [--all]      every 67th change, or all */
#include "tests/accelerator.h"
#include "tests/context.h"

/* ---------------------------------------------------------------- changes of a text */
typedef struct change {
  size_t at, n; /* in the place of so many bytes there … */
  const char *by;
  const char *what;
} change;
typedef struct changes {
  tarn_ctx *cx;
  const char *text;
  TARN_VEC(change) all;
} changes;
/* The end of the form that begins here. */
static const char *end_of(const char *p) {
  int depth = 0;
  for (; *p; p++) {
    if (*p == ';') p += strcspn(p, "\n");
    depth += (*p == '(') - (*p == ')');
    if (!depth) return p + 1;
  }
  return p;
}
static const char *next_form(const char *p, const char *end) {
  for (; p < end; p++) {
    if (*p == ';') p += strcspn(p, "\n");
    if (*p == '(') return p;
  }
  return NULL;
}
static const char *word(tarn_ctx *cx, const char *p) {
  size_t n = strcspn(p, " ()\n");
  return tarn_format(cx, "%.*s", (int)n, p);
}
static bool begins(const char *p, const char *form) {
  size_t n = strlen(form);
  return !strncmp(p, form, n) && (p[n] == ' ' || p[n] == ')');
}
static void note(changes *c, const char *at, size_t n, const char *by, const char *what) {
  tarn_push(c->cx, &c->all, ((change){(size_t)(at - c->text), n, by, what}));
}
/* The form of the description with that name: (format NAME …). */
static const char *find(const changes *c, const char *form, const char *name) {
  const char *head = tarn_format(c->cx, "(%s %s ", form, name);
  return strstr(c->text, head);
}

/* ---- what is changed ---- */
static void leave_out(changes *c, const char *form, const char *of) {
  const char *end = end_of(form) - 1;
  for (const char *p = form + 1; (p = next_form(p, end)); p = end_of(p)) {
    size_t n = (size_t)(end_of(p) - p);
    note(c, p, n, "", tarn_format(c->cx, "%s: without %.*s", of, (int)n, p));
    if (begins(p, "(move") || begins(p, "(run")) leave_out(c, p, of);
  }
}
static void fix(changes *c, const char *form, const char *place, const char *of) {
  static const int values[] = {0, 1, 2, 3, 15, 16, 40};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    const char *is = tarn_format(c->cx, " (is %s %d)", place, values[i]);
    note(c, end_of(form) - 1, 0, is, tarn_format(c->cx, "%s: with%s", of, is));
  }
}
/* Another field of the format in the place of one that is used. */
static void share(changes *c, const char *form, const char *of, const char *field,
                  const char *other) {
  const char *inside = strstr(form, "(move ");
  if (!inside || inside > end_of(form)) inside = strstr(form, "(run ");
  if (!inside || inside > end_of(form)) return;
  for (const char *p = inside; p < end_of(inside); p += strcspn(p, " )") + 1) {
    size_t n = strcspn(p, " ()");
    if (n == strlen(field) && !strncmp(p, field, n) && strcmp(field, other) != 0)
      note(c, p, n, other, tarn_format(c->cx, "%s: %s in the place of %s", of, other, field));
  }
}
static void of_instruction(changes *c, const char *form) {
  const char *of = word(c->cx, form + strlen("(instruction "));
  const char *format =
      find(c, "format", word(c->cx, strstr(form, "(format ") + strlen("(format ")));
  const char *before = NULL;
  leave_out(c, form, tarn_format(c->cx, "instruction %s", of));
  for (const char *p = format + 1; (p = next_form(p, end_of(format) - 1)); p = end_of(p)) {
    if (!begins(p, "(field")) continue;
    const char *field = word(c->cx, p + strlen("(field "));
    fix(c, form, field, of);
    if (before) share(c, form, of, field, before);
    before = field;
  }
  for (const char *p = c->text; (p = strstr(p, "(register ")); p++)
    if (strstr(end_of(p) - 12, "(bits"))
      fix(c, form, tarn_format(c->cx, "(register %s)", word(c->cx, p + 10)), of);
}
static void narrow(changes *c, const char *form, const char *at, const char *of) {
  int width = atoi(at);
  const int to[] = {1, 3, width / 2, width - 1};
  for (size_t i = 0; i < 4; i++)
    if (to[i] > 0 && to[i] < width)
      note(c, at, strspn(at, "0123456789"), tarn_format(c->cx, "%d", to[i]),
           tarn_format(c->cx, "%s %s: %d bits of %d", of, word(c->cx, strchr(form, ' ') + 1), to[i],
                       width));
}
static void of_format(changes *c, const char *form) {
  for (const char *p = form + 1; (p = next_form(p, end_of(form) - 1)); p = end_of(p)) {
    if (!begins(p, "(field")) continue;
    const char *at = p + strlen("(field ");
    at += strcspn(at, " ") + 1;
    at += strcspn(at, " ") + 1;
    narrow(c, p, at, tarn_format(c->cx, "format %s", word(c->cx, form + 8)));
    if (!strstr(at, "signed") || strstr(at, "signed") > end_of(p))
      note(c, end_of(p) - 1, 0, " signed", tarn_format(c->cx, "%s is signed", word(c->cx, p + 7)));
  }
}
static void of_description(changes *c) {
  const char *hw = strstr(c->text, "(hw ");
  const char *end = end_of(hw) - 1;
  for (const char *p = hw + 1; (p = next_form(p, end)); p = end_of(p)) {
    if (begins(p, "(instruction")) of_instruction(c, p);
    if (begins(p, "(format")) of_format(c, p);
    if (begins(p, "(transfer"))
      leave_out(c, p, tarn_format(c->cx, "transfer %s", word(c->cx, p + 10)));
    if (begins(p, "(register")) narrow(c, p, strstr(p, "(bits ") + 6, "register");
    size_t n = (size_t)(end_of(p) - p);
    if (begins(p, "(token") || begins(p, "(quirks") || begins(p, "(limits"))
      note(c, p, n, "", tarn_format(c->cx, "without %.*s", (int)n, p));
  }
}

/* ---------------------------------------------------------------- kernels */
enum { KERNELS = 4 };
static const char product[] =
    "(compute (map %s) (compute (dotProd %s) (cartProd (access 1 (compute (map (cast %s $0)) "
    "(input "
    "x ((20 48) ()) %s))) (access 1 (compute (map (cast %s $0)) (const %s ((32 48) ())%s))))) "
    "(broadcast ((20 32) ()) (const %s ((1 32) ())%s)))";
static const char convolution[] =
    "(compute (map %s) (transpose (1 0 2 3) (compute (dotProd %s) (cartProd (access 1 (compute "
    "(map "
    "(cast %s $0)) (const %s ((16 32 3 3) ())%s))) (squeeze 1 (windows (32 3 3) (1 1 1) (access 1 "
    "(pad 3 (%s 0) 1 1 (pad 2 (%s 0) 1 1 (compute (map (cast %s $0)) (input x ((1 32 6 6) ()) "
    "%s))))"
    ")))))) (broadcast ((1 16 6 6) ()) (const %s ((1 16 1 1) ())%s)))";
static const struct ending {
  const char *type, *sum, *of_sum[KERNELS];
  int kernels; /* on the machine, of all */
} endings[] = {
    {"i8",
     "i32",
     {"(cast i8 (min (max (shr (add $0 $1) (i32 6)) (i32 -128)) (i32 127)))",
      "(cast i8 (min (max (shr (add (add $0 $1) (i32 128)) (i32 8)) (i32 0)) (i32 127)))",
      "(cast i8 (min (max (shr (add (cast i32 $0) (cast i32 $1)) (i32 1)) (i32 -128)) (i32 127)))",
      "(cast i8 (min (max (shr (add $0 $1) (i32 16)) (i32 -128)) (i32 127)))"},
     4},
    {"i8",
     "i32",
     {"(cast i8 (min (max (round (mul (cast f32 (add $0 $1)) (f32 0.015625))) (f32 -128)) (f32 "
      "127)))",
      "(cast i8 (min (max (round (mul (cast f32 (add $0 $1)) (f32 0.00390625))) (f32 0)) (f32 "
      "127)))",
      "(cast i8 (min (max (round (mul (cast f32 (add (cast i32 $0) (cast i32 $1))) (f32 0.3))) "
      "(f32 "
      "-128)) (f32 127)))",
      "(cast i8 (min (max (round (mul (cast f32 (add $0 $1)) (f32 0.125))) (f32 -128)) (f32 "
      "127)))"},
     4},
    {"f32",
     "f32",
     {"(add $0 $1)", "(max (add $0 $1) (f32 0))", "(add $0 $1)", "(max (add $0 $1) (f32 -3))"},
     3}};
static const struct machine {
  const char *file;
  const struct ending *e;
} machines[] = {{"hw/vta-pynq.hw", &endings[0]},
                {"hw/gemmini-default.hw", &endings[1]},
                {"hw/systolic-f32.hw", &endings[2]},
                {"examples/accelerator/pointwise.hw", &endings[2]}};
#define MACHINES (sizeof machines / sizeof *machines)

static const char *random_numbers(tarn_ctx *cx, int64_t n, int64_t most) {
  tarn_buf b = {.cx = cx};
  uint64_t seed = (uint64_t)n;
  numbers(&b, n, -most, most, &seed);
  return b.p;
}
static const char *kernel_of(tarn_ctx *cx, const struct ending *e, uint32_t which) {
  const char *type = e->type;
  const char *sum = e->sum;
  const char *f = e->of_sum[which];
  if (which == 2)
    return tarn_format(cx,
                       "(compute (map %s) (input x ((28 48) ()) %s) (input r ((28 48) ()) %s))\n",
                       f, type, type);
  if (which == 1)
    return tarn_format(cx, convolution, f, sum, sum, type, random_numbers(cx, 16 * 32 * 9, 15), sum,
                       sum, sum, type, sum, random_numbers(cx, 16, 3000));
  return tarn_format(cx, product, f, sum, sum, type, sum, type, random_numbers(cx, 32 * 48, 15),
                     sum, random_numbers(cx, 32, 900));
}

/* ---------------------------------------------------------------- one changed description */
typedef struct trial {
  const struct machine *m;
  const char *text;
  uint32_t which;
  bool checked;     /* the description was read */
  uint32_t kernels; /* on the machine */
  bool right;
} trial;
static bool same(tarn_ctx *cx, const tarn_compiled *c) {
  tarn_loaded *m = tarn_load_simulated(cx, c->o->dir);
  const tarn_port *ip;
  const tarn_port *op;
  uint32_t nin = tarn_loaded_ports(m, false, &ip);
  tarn_loaded_ports(m, true, &op);
  tarn_tensor *in[2];
  tarn_tensor *want;
  tarn_binding bind[2];
  for (uint32_t i = 0; i < nin; i++) {
    in[i] = random_tensor(cx, &ip[i], i + 5);
    bind[i] = (tarn_binding){c->program->in[i].name, in[i]};
  }
  tarn_tensor *got = tarn_tensor_new(cx, op[0].dtype, op[0].n, op[0].dim);
  tarn_loaded_run(m, (const tarn_tensor *const *)in, &got, 1);
  tarn_eval(c->L, &c->program->out[0].term, 1, bind, nin, TARN_STRICT, NULL, &want);
  bool all = true;
  for (int64_t i = 0; i < tarn_tensor_count(want) && all; i++)
    all = is_near(op[0].dtype, tarn_tensor_get(got, i), tarn_tensor_get(want, i), 100);
  return all;
}
static void try_one(tarn_ctx *cx, void *arg) {
  trial *t = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const char *file = tarn_format(cx, "%s/changed.hw", pipeline_folder(cx));
  tarn_write_file(cx, file, t->text, strlen(t->text));
  const tarn_hw *hw = on_slow_host(L, file);
  t->checked = true;
  const tarn_compiled *c = compiled(L, kernel_of(cx, t->m->e, t->which), hw, NULL);
  for (uint32_t i = 0; i < c->kernels->nker; i++) t->kernels += c->kernels->ker[i].machine > 0;
  t->right = !t->kernels || same(cx, c);
}
/* A word that a refusal may name: it is of a field, an instruction, a register, a token …, of one
 * line. */
static bool is_refusal(tarn_status st, const char *why) {
  return st == TARN_BAD_INPUT && *why && !strchr(why, '\n') && !strstr(why, "m.term");
}
/* How many of the kernels its machine computes, at least in part; -1: it is refused. */
static int try_all(const struct machine *m, const char *text, const char *what) {
  int kernels = 0;
  for (uint32_t k = 0; k < KERNELS; k++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    trial t = {.m = m, .text = text, .which = k};
    tarn_status st = tarn_protect(cx, try_one, &t);
    bool refused = is_refusal(st, tarn_message(cx));
    ck_assert_msg(refused || (st == TARN_OK && t.right), "%s: %s: kernel %u: %s", m->file, what, k,
                  st == TARN_OK ? "wrong values" : tarn_message(cx));
    tarn_ctx_free(cx);
    if (refused) return -1;
    kernels += t.kernels > 0;
  }
  return kernels;
}
static const char *changed(tarn_ctx *cx, const char *text, const change *x) {
  return tarn_format(cx, "%.*s%s%s", (int)x->at, text, x->by, text + x->at + x->n);
}

/* ---------------------------------------------------------------- what is fixed, and serves */
/* Behind `at` stands `more`, and behind the first form that begins with `form` the form `twin`. */
static const struct honoured {
  uint32_t machine;
  const char *at, *more;
  const char *form, *twin;
  int kernels; /* on the machine */
} honoured[] = {
    {0, "(instruction gemm (format gemm) (queue compute) (is opcode 2)", " (is dst-in 1)", "", "",
     4},
    {0, "(instruction gemm (format gemm) (queue compute) (is opcode 2)", " (is src-out 0)", "", "",
     4},
    {0, "(instruction gemm (format gemm) (queue compute) (is opcode 2)", " (is out 2)", "", "", 1},
    {0, "(is opcode 0) (is memory 2)", " (is y-size 1)", "", "", 4},
    {0, "(is opcode 0) (is memory 2)", " (is x-stride 2) (is pad-top 0) (is pad-left 0)", "", "",
     4},
    {0, "(is opcode 0) (is memory 1)", " (is x-size 1)", "", "", 4},
    {0, "(is operation 3) (is use-imm 1)", " (is imm 4)", "", "", 2},
    {0, "(instruction gemm (format gemm) (queue compute) (is opcode 2)", " (is reset 0)",
     "(instruction finish",
     "(instruction zero (format gemm) (queue compute) (is opcode 2) (is reset 1)\n"
     "(pop pop-prev l2c) (pop pop-next s2c) (push push-prev c2l) (push push-next c2s)\n"
     "(run gemm (steps uop begin end micro-op) (loops out in) (clear reset)\n"
     "(index c dst dst-out dst-in) (index a src src-out src-in) (index b wgt wgt-out wgt-in)))\n",
     4},
    {1, "(is c-acc 1) (is c-columns 16) (is c-rows 16)", " (is c-accumulate 0)",
     "(instruction flush",
     "(instruction onto (format preload) (queue execute) (is opcode 123) (is xs1 1) (is xs2 1) (is "
     "code 6) (is b-acc 0) (is b-columns 16) (is b-rows 16) (is c-acc 1) (is c-columns 16) (is "
     "c-rows 16) (is c-accumulate 1) (set b b) (set c c) (set c-accumulate c-accumulate))\n",
     4},
    {1, "(is (register stationary) 1)", " (is (register c-accumulate) 0)", "(instruction flush",
     "(instruction onto (format compute) (queue execute) (is opcode 123) (is xs1 1) (is xs2 1) (is "
     "code 4) (is (register stationary) 1) (is (register c-accumulate) 1) (is a-acc 0) (is "
     "a-columns 16) (is a-rows 16) (is d 4294967295) (is d-columns 16) (is d-rows 16)\n"
     "(run matmul (accumulate (register c-accumulate)) (index a a) (index b (register b)) (index c "
     "(register c))))\n",
     4},
    {2, "(instruction array (format compute) (queue execute) (is operation 4)", " (is outer 1)", "",
     "", 4},
    {2, "(instruction load (format transfer) (queue load) (is operation 0)", " (is stride 3)", "",
     "", 4},
    {3, "(instruction array (format compute) (queue execute) (is operation 2)", " (is b0 8)", "",
     "", 3},
};
#define HONOURED (sizeof honoured / sizeof *honoured)
static void honour(tarn_ctx *cx, void *arg) {
  const struct honoured *h = arg;
  const struct machine *m = &machines[h->machine];
  size_t n;
  const char *text = tarn_read_file(cx, tarn_format(cx, TARN_TOP "/%s", m->file), &n);
  const char *at = strstr(text, h->at);
  ck_assert_msg(at != NULL, "%s", h->at);
  at += strlen(h->at);
  text = tarn_format(cx, "%.*s%s%s", (int)(at - text), text, h->more, at);
  const char *form = *h->form ? strstr(text, h->form) : text;
  text = tarn_format(cx, "%.*s%s%s", (int)(form - text), text, *h->form ? h->twin : "", form);
  const char *what = tarn_format(cx, "%s %s", h->at, h->more);
  int kernels = try_all(m, text, what);
  ck_assert_msg(kernels == h->kernels, "%s: %s: %d of the kernels on the machine", m->file, what,
                kernels);
}
START_TEST(what_is_fixed_serves) {
  struct honoured h = honoured[_i];
  in_context(honour, &h);
}
END_TEST

enum { PARTS = 16, STEP = 67 };
static bool all_of_them;
static void try_part(tarn_ctx *cx, void *arg) {
  uint32_t part = *(const uint32_t *)arg % PARTS;
  const struct machine *m = &machines[*(const uint32_t *)arg / PARTS];
  size_t n;
  changes c = {.cx = cx};
  c.text = tarn_read_file(cx, tarn_format(cx, TARN_TOP "/%s", m->file), &n);
  of_description(&c);
  ck_assert_uint_gt(c.all.n, 100);
  uint32_t step = all_of_them ? 1 : STEP;
  for (uint32_t i = part * step; i < c.all.n; i += PARTS * step)
    try_all(m, changed(cx, c.text, &c.all.p[i]), c.all.p[i].what);
}
static void try_unchanged(tarn_ctx *cx, void *arg) {
  const struct machine *m = arg;
  size_t n;
  const char *text = tarn_read_file(cx, tarn_format(cx, TARN_TOP "/%s", m->file), &n);
  ck_assert_int_ge(try_all(m, text, "as it is"), m->e->kernels);
}
START_TEST(all_kernels_are_the_machines) { in_context(try_unchanged, &machines[_i]); }
END_TEST
START_TEST(changed_descriptions_are_refused_or_right) {
  uint32_t part = (uint32_t)_i;
  in_context(try_part, &part);
}
END_TEST

int main(int argc, char **argv) {
  all_of_them = argc > 1 && !strcmp(argv[1], "--all");
  TCase *t = tcase_create("described");
  tcase_set_timeout(t, all_of_them ? 3000 : 120);
  tcase_add_loop_test(t, all_kernels_are_the_machines, 0, MACHINES);
  tcase_add_loop_test(t, what_is_fixed_serves, 0, HONOURED);
  tcase_add_loop_test(t, changed_descriptions_are_refused_or_right, 0, MACHINES * PARTS);
  return run_checks("described", t);
}
