/* One code for many sizes: polynomials through numbers, what the unifier makes of small modules,
 * and samples that do not agree. */
#include "lower/family.h"
#include "tests/sizes_kit.h"
#include "tests/suite.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <string.h>

/* ---- numbers ---- */
static const int64_t least[2] = {2, 1}, largest[2] = {149, 60}, steps[2] = {1, 1};
static const int64_t one_size[5][1] = {{37}, {53}, {69}, {117}, {149}};
static const int64_t two_sizes[7][2] = {{37, 5},  {53, 31}, {69, 2},  {11, 19},
                                        {97, 43}, {2, 1},   {149, 60}};
static const int64_t *const one_at[5] = {one_size[0], one_size[1], one_size[2], one_size[3],
                                         one_size[4]};
static const int64_t *const two_at[7] = {two_sizes[0], two_sizes[1], two_sizes[2], two_sizes[3],
                                         two_sizes[4], two_sizes[5], two_sizes[6]};
static const tarn_points one = {5, 1, one_at, least, largest, steps};
static const tarn_points two = {7, 2, two_at, least, largest, steps};
START_TEST(numbers_of_one_size) {
  tarn_poly p;
  int64_t v[5];
  for (int64_t a = -3; a <= 3; a++)
    for (int64_t b = -5; b <= 5; b++)
      for (int64_t c = 0; c <= 2; c++) {
        for (int i = 0; i < 5; i++) {
          int64_t n = one_at[i][0];
          v[i] = a + b * n + c * (n * (n - 1) / 2);
        }
        ck_assert(tarn_poly_through(&one, v, &p));
        for (int64_t n = 0; n <= 200; n++)
          ck_assert_int_eq(tarn_poly_at(&p, &n), a + b * n + c * (n * (n - 1) / 2));
        v[3]++;
        ck_assert(!tarn_poly_through(&one, v, &p));
      }
}
END_TEST
START_TEST(numbers_of_two_sizes) {
  tarn_poly p;
  int64_t v[7];
  for (int64_t a = -2; a <= 2; a++)
    for (int64_t b = -3; b <= 3; b++)
      for (int64_t c = -1; c <= 2; c++) {
        for (int i = 0; i < 7; i++) v[i] = a + b * two_at[i][0] + c * two_at[i][0] * two_at[i][1];
        ck_assert(tarn_poly_through(&two, v, &p));
        const int64_t other[2] = {1000, 77};
        ck_assert_int_eq(tarn_poly_at(&p, other), a + b * 1000 + c * 77000);
        v[6]--;
        ck_assert(!tarn_poly_through(&two, v, &p));
      }
}
END_TEST
/* (n + 1) / 2 of odd sizes is none of all sizes; of every second one it is. */
START_TEST(numbers_are_whole) {
  static const int64_t two_apart[1] = {2}, odd[1] = {3}, even[1] = {4};
  static const int64_t small[5][1] = {{1}, {2}, {3}, {4}, {6}};
  const int64_t *at[5];
  tarn_points p = one;
  tarn_poly g;
  int64_t v[5];
  for (int i = 0; i < 5; i++) v[i] = (one_at[i][0] + 1) / 2;
  ck_assert(!tarn_poly_through(&p, v, &g));
  p.step = two_apart;
  p.lo = odd;
  ck_assert(tarn_poly_through(&p, v, &g) && g.over == 2);
  p.lo = even;
  ck_assert(!tarn_poly_through(&p, v, &g));
  p = one;
  for (int i = 0; i < 5; i++) v[i] = one_at[i][0] * (one_at[i][0] - 1) / 2;
  ck_assert(tarn_poly_through(&p, v, &g));
  /* rises from 4 on, n·(n - 8) */
  const int64_t from[2] = {2, 4};
  for (int k = 0; k < 2; k++) {
    p.lo = &from[k];
    for (int i = 0; i < 5; i++) v[i] = one_at[i][0] * (one_at[i][0] - 8);
    ck_assert(tarn_poly_through(&p, v, &g));
    ck_assert_int_eq(tarn_poly_rises(&g, &p), k);
  }
  p = one;
  /* too large to be seen, and the least there is */
  for (int i = 0; i < 5; i++) v[i] = INT64_MAX / 64 - one_at[i][0] * one_at[i][0] * one_at[i][0];
  ck_assert(!tarn_poly_through(&p, v, &g));
  for (int i = 0; i < 5; i++) v[i] = INT64_MIN;
  ck_assert(tarn_poly_through(&p, v, &g) && tarn_poly_at(&g, &(int64_t){9}) == INT64_MIN);
  /* as many terms as points confirm nothing */
  for (int i = 0; i < 5; i++) at[i] = small[i];
  p.at = at;
  p.n = 2;
  v[0] = 1, v[1] = 3;
  ck_assert(!tarn_poly_through(&p, v, &g));
}
END_TEST

/* ---- modules ---- */
typedef struct unifying {
  const char *body;    /* of a function; # stands for … */
  const char *with[5]; /* at each size; NULL: as before */
  const char *why;     /* NULL: they become one, which does not say … */
  const char *not_there;
} unifying;
#define LINEAR                                                                                     \
  { "37", "53", "69", "117", "149" }
static const unifying texts[] = {
    {"%a = add nsw i64 %x, #\nret i64 %a", LINEAR, NULL, "117"},
    {"%a = mul i64 %x, #\nret i64 %a", {"1369", "2809", "4761", "13689", "22201"}, NULL, "4761"},
    /* twice the same number; trips of 16, which are whole at some sizes alone */
    {"%a = sub i64 #, %x\n%b = urem i64 %a, #\nret i64 %b",
     {"74", "106", "138", "234", "298"},
     NULL,
     "138"},
    {"%a = sub i64 #, %x\n%b = urem i64 %a, #\nret i64 %b",
     {"2", "3", "4", "7", "9"},
     "f: a number of the samples is 2, 3, 4, 7, 9",
     NULL},
    {"%t = trunc i64 %x to i32\n%a = icmp slt i32 %t, #\n%b = zext i1 %a to i64\nret i64 %b",
     LINEAR, NULL, "149"},
    {"br label %l\nl:\n%i = phi i64 [ #, %0 ], [ %j, %l ]\n%j = sub i64 %i, 1\n"
     "%c = icmp eq i64 %j, 0\nbr i1 %c, label %m, label %l\nm:\nret i64 #",
     LINEAR, NULL, "53"},
    {"%p = getelementptr float, ptr %y, i64 #\n%q = ptrtoint ptr %p to i64\nret i64 %q", LINEAR,
     NULL, "53"},
    {"%q = ptrtoint ptr getelementptr (i8, ptr @table, i64 #) to i64\nret i64 %q", LINEAR, "at one",
     NULL},
    {"store ptr getelementptr (i8, ptr @table, i64 #), ptr %y\nret i64 0", LINEAR, NULL, "69"},
    {"%q = call i64 @other(i64 #, ptr getelementptr (i8, ptr @table, i64 #))\nret i64 %q", LINEAR,
     NULL, "69"},
    {"%v = load <2 x i64>, ptr %y\n%w = icmp ult <2 x i64> %v, <i64 #, i64 7>\n"
     "%e = extractelement <2 x i1> %w, i32 0\n%b = zext i1 %e to i64\nret i64 %b",
     LINEAR, NULL, "69"},
    /* counts of elements, and what a mean multiplies by */
    {"%v = load <2 x float>, ptr %y\n%w = fadd <2 x float> %v, <float #.0, float 1.0>\n"
     "store <2 x float> %w, ptr %y\nret i64 0",
     LINEAR, NULL, "69"},
    {"%v = load double, ptr %y\n%w = fdiv double %v, #.0\nstore double %w, ptr %y\nret i64 0",
     LINEAR, NULL, "117"},
    {"%v = load float, ptr %y\n%c = fcmp olt float %v, #.0\n%w = select i1 %c, float #.0, float "
     "%v\n"
     "store float %w, ptr %y\nret i64 0",
     LINEAR, NULL, "117"},
    /* and not */
    {"%v = load float, ptr %y\n%w = fmul float %v, #\nstore float %w, ptr %y\nret i64 0",
     {"0.5", "0.5", "0.25", "0.25", "0.25"},
     "f: a number of the samples is 0.5, 0.5, 0.25",
     NULL},
    {"%v = load double, ptr %y\n%w = fmul double %v, #\nstore double %w, ptr %y\nret i64 0",
     {"0.3", "0.4", "0.5", "0.6", "0.7"},
     "f: a number of the samples is 0.3, 0.4",
     NULL},
    {"%v = load half, ptr %y\n%w = fmul half %v, #.0\nstore half %w, ptr %y\nret i64 0",
     {"37", "53", "69", "117", "149"},
     "f: a number of the samples is 37",
     NULL},
    {"%a = add i64 %x, #\nret i64 %a",
     {"37", "53", "69", "118", "149"},
     "f: a number of the samples is 37, 53, 69, 118, 149",
     NULL},
    {"%a = add i64 %x, #\nret i64 %a", {"0", "0", "1", "1", "2"}, "a number of the samples", NULL},
    {"%a = load i64, ptr %y, align #\nret i64 %a",
     {"16", "8", "16", "16", "16"},
     "f: '%a = load i64, ptr %y, align 16' at one size, '%a = load i64, ptr %y, align 8' at "
     "another",
     NULL},
    {"%a = alloca [# x i8]\n%b = ptrtoint ptr %a to i64\nret i64 %b", LINEAR, "alloca", NULL},
    {"%a = alloca i8, i64 #\n%b = ptrtoint ptr %a to i64\nret i64 %b", LINEAR, "alloca", NULL},
    {"%a = # i64 %x, 4\nret i64 %a", {"add", "add", "mul"}, "f: '%a = add i64 %x, 4' at one", NULL},
    {"%a = add # i64 %x, 4\nret i64 %a", {"", "", "nsw"}, "at one size", NULL},
    {"call void @llvm.prefetch(ptr %y, i32 0, i32 #, i32 1)\nret i64 0",
     {"1", "2", "3", "2", "1"},
     "llvm.prefetch",
     NULL},
    {"switch i64 %x, label %a [ i64 #, label %b ]\na:\nret i64 1\nb:\nret i64 2", LINEAR,
     "at one size", NULL},
    {"%p = getelementptr { i32, i32, i32 }, ptr %y, i64 #, i32 1\n%q = ptrtoint ptr %p to i64\nret "
     "i64 %q",
     LINEAR, NULL, "69"},
    {"%p = getelementptr { i64, i64, i64 }, ptr %y, i64 0, i32 #\n%q = ptrtoint ptr %p to i64\nret "
     "i64 %q",
     {"0", "1", "2", "2", "2"},
     "getelementptr",
     NULL},
    {"%a = trunc i64 %x to i8\n%b = add i8 %a, #\nstore i8 %b, ptr %y\nret i64 0", LINEAR,
     "a number of the samples", NULL},
    {"br i1 #, label %a, label %b\na:\nret i64 1\nb:\nret i64 2",
     {"true", "true", "false"},
     "at one size",
     NULL},
    {"%a = shl i64 %x, #\nret i64 %a", {"1", "2", "3", "6", "8"}, "shl", NULL},
    {"#ret i64 %x", {"", "", "%a = load i64, ptr %y\n"}, "f: ", NULL},
};
static LLVMModuleRef module_with(LLVMContextRef lc, tarn_ctx *cx, const unifying *u,
                                 const char *with) {
  LLVMModuleRef m;
  char *message = NULL;
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "@table = external global i8\ndeclare void @llvm.prefetch(ptr, i32 immarg, i32 "
                   "immarg, i32 immarg)\n"
                   "declare i64 @other(i64, ptr)\ndefine i64 @f(ptr %y, i64 %x, ptr %sizes) {\n");
  for (const char *p = u->body; *p; p++) {
    if (*p == '#') tarn_buf_str(&b, with);
    else tarn_buf_add(&b, p, 1);
  }
  tarn_buf_str(&b, "\n}\n");
  LLVMMemoryBufferRef text = LLVMCreateMemoryBufferWithMemoryRangeCopy(b.p, b.n, "text");
  ck_assert_msg(!LLVMParseIRInContext(lc, text, &m, &message), "%s: %s", b.p, message);
  return m;
}
static void unify(tarn_ctx *cx, void *arg) {
  const unifying *u = arg;
  LLVMContextRef lc = LLVMContextCreate();
  LLVMModuleRef m[5];
  const char *with = NULL;
  for (int i = 0; i < 5; i++) {
    if (u->with[i]) with = u->with[i];
    m[i] = module_with(lc, cx, u, with);
  }
  const char *why = low_unify(cx, m, &one);
  char *text = LLVMPrintModuleToString(m[4]), *message = NULL;
  ck_assert_msg(!why == !u->why, "%s: %s", u->body, why ? why : text);
  if (why) ck_assert_msg(strstr(why, u->why), "%s: %s", u->body, why);
  else ck_assert_msg(!strstr(text, u->not_there), "%s: %s", u->body, text);
  ck_assert_msg(!LLVMVerifyModule(m[4], LLVMReturnStatusAction, &message), "%s", message);
  LLVMDisposeMessage(message);
  LLVMDisposeMessage(text);
  for (int i = 0; i < 5; i++) LLVMDisposeModule(m[i]);
  LLVMContextDispose(lc);
}
START_TEST(texts_unify) { in_context(unify, (void *)(uintptr_t)&texts[_i]); }
END_TEST

/* A literal that a mean over size·by elements multiplies with, to the bit: what is computed of the
 * size folds to it, at the samples and between. */
typedef struct mean {
  const char *type;
  bool single, more; /* the count is size·by, or one more */
  int64_t by;
} mean;
static const mean means[] = {{"float", true, false, 1},  {"float", true, true, 1},
                             {"float", true, false, 96}, {"double", false, false, 1},
                             {"double", false, true, 7}, {"float", true, false, 27000}};
static const char *literal_at(tarn_ctx *cx, const mean *m, int64_t size) {
  double v = 1.0 / (double)(size * m->by + m->more);
  if (m->single) v = (float)v;
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return tarn_format(cx, "0x%016llX", (unsigned long long)bits);
}
/* The text with the size as a number, folded. */
static const char *folded_at(tarn_ctx *cx, LLVMModuleRef m, int64_t size) {
  LLVMValueRef f = LLVMGetNamedFunction(m, "f"), arg = LLVMGetLastParam(f);
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  LLVMTypeRef i64 = LLVMInt64TypeInContext(LLVMGetModuleContext(m));
  LLVMValueRef at = LLVMAddGlobal(m, i64, "at");
  LLVMSetInitializer(at, LLVMConstInt(i64, (unsigned long long)size, false));
  LLVMSetGlobalConstant(at, true);
  LLVMReplaceAllUsesWith(arg, at);
  ck_assert_ptr_null(LLVMRunPasses(m, "instcombine", NULL, o));
  LLVMDisposePassBuilderOptions(o);
  char *text = LLVMPrintModuleToString(m);
  const char *kept = tarn_strdup(cx, text);
  LLVMDisposeMessage(text);
  return kept;
}
static void unify_mean(tarn_ctx *cx, void *arg) {
  const mean *x = arg;
  LLVMContextRef lc = LLVMContextCreate();
  LLVMModuleRef m[5];
  unifying u = {tarn_format(cx,
                            "%%v = load %s, ptr %%y\n%%w = fmul %s %%v, #\nstore %s %%w, ptr %%y\n"
                            "ret i64 0",
                            x->type, x->type, x->type),
                {0},
                NULL,
                NULL};
  for (int i = 0; i < 5; i++) m[i] = module_with(lc, cx, &u, literal_at(cx, x, one_at[i][0]));
  const char *why = low_unify(cx, m, &one);
  ck_assert_msg(!why, "%s: %s", u.body, why);
  for (int64_t size = 37; size <= 149; size += 16) {
    LLVMModuleRef alone = module_with(lc, cx, &u, literal_at(cx, x, size)),
                  of = LLVMCloneModule(m[1]);
    const char *want = strstr(folded_at(cx, alone, size), "define"),
               *got = strstr(folded_at(cx, of, size), "define");
    ck_assert_str_eq(got, want);
    LLVMDisposeModule(alone);
    LLVMDisposeModule(of);
  }
  for (int i = 0; i < 5; i++) LLVMDisposeModule(m[i]);
  LLVMContextDispose(lc);
}
START_TEST(means_unify) { in_context(unify_mean, (void *)(uintptr_t)&means[_i]); }
END_TEST

/* ---- programs ---- */
typedef struct made {
  const tarn_compiled *c;
  tarn_lower_family f;
  tarn_lower_options o;
} made;
static made make(tarn_ctx *cx, const char *model, const char *const *shapes) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = sizes_options(L, model, shapes, pipeline_folder(cx));
  o.emit = "ll";
  made m = {.c = tarn_compile(L, &o)};
  for (uint32_t i = 0; i < m.c->sizes->nprogram; i++)
    if (m.c->sizes->program[i].family) m.f = *m.c->sizes->program[i].family;
  ck_assert_uint_gt(m.f.at.n, 3);
  m.o = (tarn_lower_options){.name = "model", .contract = true, .opt = 2, .dir = o.dir};
  return m;
}

/* ---- what programs share ---- */
static unsigned times(const char *text, const char *word) {
  unsigned n = 0;
  while ((text = strstr(text, word))) text += strlen(word), n++;
  return n;
}
/* What does not depend on the size is there once, and so are constants. */
static void share(tarn_ctx *cx, void *arg) {
  (void)arg;
  static const char *const shapes[] = {"N=8..900", NULL};
  made m = make(cx,
                "in x f32 N,32\nin z f32 5,32\nrand w 32,8\nnode MatMul m x w -> t\n"
                "node Exp s t -> y\nnode Exp e z -> r\nout r\nout y\n",
                shapes);
  size_t n;
  const char *text = tarn_read_file(cx, tarn_format(cx, "%s/model.ll", m.c->o->dir), &n);
  ck_assert_uint_gt(m.c->sizes->nprogram, 1);
  ck_assert_uint_gt(times(text, "@test.n0("), 1);
  ck_assert_uint_eq(times(text, "void @test.n1("), 0);
  for (uint32_t i = 0; i < m.c->sizes->nprogram; i++)
    ck_assert_int_eq(m.c->sizes->program[i].plan->const_bytes, 32 * 8 * 4);
}
START_TEST(loops_once) { in_context(share, NULL); }
END_TEST

/* ---- what is refused ---- */
typedef void fault_fn(tarn_ctx *cx, tarn_kprog *p);
static void other_stride(tarn_ctx *cx, tarn_kprog *p) {
  tarn_layout *l = tarn_copy(cx, p->ker[1].in_layout, p->ker[1].nin * sizeof *l);
  l[0].stride[l[0].n - 1]++;
  p->ker[1].in_layout = l;
}
static void other_offset(tarn_ctx *cx, tarn_kprog *p) {
  tarn_layout *l = tarn_copy(cx, p->ker[0].out_layout, sizeof *l);
  l->offset++;
  p->ker[0].out_layout = l;
}
static void other_operand(tarn_ctx *cx, tarn_kprog *p) {
  (void)cx;
  p->ker[1].in = p->ker[0].out;
  p->ker[1].nin = 2;
}
static void larger_buffer(tarn_ctx *cx, tarn_kprog *p) {
  (void)cx;
  for (uint32_t b = 0; b < p->nbuf; b++)
    if (p->buf[b].kind == TARN_BUF_TEMP) p->buf[b].layout.dim[0] *= 100;
}
static void other_constant(tarn_ctx *cx, tarn_kprog *p) {
  for (uint32_t b = 0; b < p->nbuf; b++) {
    if (p->buf[b].kind != TARN_BUF_CONST) continue;
    const tarn_tensor *t = tarn_plan_const_value(p, &p->buf[b]);
    tarn_tensor *mine = tarn_tensor_new(cx, t->dtype, t->n, t->dim);
    p->buf[b].value = mine;
  }
}
static void fewer_kernels(tarn_ctx *cx, tarn_kprog *p) {
  (void)cx;
  p->nker--;
}
typedef struct fault {
  fault_fn *plant;
  const char *words;
} fault;
static const fault faults[] = {
    {other_stride, "kernel k1_s"},
    {other_offset, "kernel k0_m_s: 'call void"},
    {other_operand, "kernel k1_s: other operands"},
    {larger_buffer, "buffer 1: its bytes grow as no polynomial"},
    {other_constant, "constant 3: other bytes"},
    {fewer_kernels, "other numbers of kernels"},
};
/* In the third sample. */
static void plant(tarn_ctx *cx, void *arg) {
  static const char *const shapes[] = {"N=32..500", NULL};
  const fault *f = arg;
  made m = make(cx,
                "in x f32 N,32\nrand w 32,8\nnode MatMul m x w -> t\n"
                "node Softmax s t -> p : axis=0\nnode Transpose c p -> y : perm=1,0\nout y\n",
                shapes);
  tarn_kprog *p = tarn_copy(cx, m.f.sample[2], sizeof *p);
  p->ker = tarn_copy(cx, p->ker, p->nker * sizeof *p->ker);
  p->buf = tarn_copy(cx, p->buf, p->nbuf * sizeof *p->buf);
  tarn_kprog **sample = tarn_copy(cx, m.f.sample, m.f.at.n * sizeof *sample);
  m.f.sample = sample;
  ck_assert_ptr_null(tarn_lower_family_differs(&m.f, &m.o));
  sample[2] = p;
  f->plant(cx, p);
  for (uint32_t k = 0; k < p->nker; k++) p->ker[k].plan = NULL;
  tarn_kprog_plan(tarn_planner_new(m.c->L, true, NULL), p);
  const char *why = tarn_lower_family_differs(&m.f, &m.o);
  ck_assert_msg(why && strstr(why, f->words), "%s: %s", f->words, why);
}
START_TEST(faults_are_seen) { in_context(plant, (void *)(uintptr_t)&faults[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("family");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, numbers_of_one_size);
  tcase_add_test(t, numbers_of_two_sizes);
  tcase_add_test(t, numbers_are_whole);
  tcase_add_loop_test(t, texts_unify, 0, sizeof texts / sizeof *texts);
  tcase_add_loop_test(t, means_unify, 0, sizeof means / sizeof *means);
  tcase_add_test(t, loops_once);
  tcase_add_loop_test(t, faults_are_seen, 0, sizeof faults / sizeof *faults);
  return run_checks("family", t);
}
