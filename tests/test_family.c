/* One code for a family of sizes: what the unifier makes of small modules, and programs of families
 * at each of their sizes, beside the interpreter. */
#include "lower/family.h"
#include "tests/sizes_kit.h"
#include "tests/suite.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <string.h>

/* ---- numbers ---- */
static const int64_t sizes_of[5] = {37, 53, 69, 117, 149};
START_TEST(numbers_grow) {
  low_growth g;
  int64_t v[5];
  for (int64_t a = -3; a <= 3; a++)
    for (int64_t b = -5; b <= 5; b++)
      for (int64_t c = 0; c <= 2; c++) {
        for (int i = 0; i < 5; i++) {
          int64_t k = (sizes_of[i] - 37) / 16;
          v[i] = a + b * k + c * (k * (k - 1) / 2);
        }
        for (uint32_t n = 1; n <= 5; n++) {
          ck_assert(low_growth_of(sizes_of, v, n, &g));
          for (uint32_t i = 0; i < n; i++) ck_assert_int_eq(low_growth_at(&g, sizes_of[i]), v[i]);
        }
        for (int64_t k = 0; k <= 7; k++)
          ck_assert_int_eq(low_growth_at(&g, 37 + 16 * k), a + b * k + c * (k * (k - 1) / 2));
        v[3]++;
        ck_assert(!low_growth_of(sizes_of, v, 5, &g));
      }
}
END_TEST
/* The same number has the same form, whatever family it was found in. */
START_TEST(numbers_have_one_form) {
  static const int64_t other[4] = {9, 13, 17, 33};
  low_growth g, h;
  int64_t v[5], w[4];
  for (int i = 0; i < 5; i++) v[i] = (sizes_of[i] - 1) / 4 * 6;
  for (int i = 0; i < 4; i++) w[i] = (other[i] - 1) / 4 * 6;
  ck_assert(low_growth_of(sizes_of, v, 5, &g) && low_growth_of(other, w, 4, &h));
  ck_assert_mem_eq(&g, &h, sizeof g);
  ck_assert(g.c[0] == -3 && g.c[1] == 3 && !g.c[2] && g.div == 2);
  for (int i = 0; i < 5; i++) v[i] = INT64_MAX / 64 - sizes_of[i] * sizes_of[i];
  ck_assert(!low_growth_of(sizes_of, v, 5, &g));
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
    /* trips of 16, and twice the same number */
    {"%a = sub i64 #, %x\n%b = urem i64 %a, #\nret i64 %b", {"2", "3", "4", "7", "9"}, NULL, "7"},
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
                   "declare i64 @other(i64, ptr)\ndefine i64 @f(ptr %y, i64 %x, i64 %size) {\n");
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
  const char *why = low_unify(cx, m, 5, sizes_of);
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
  LLVMReplaceAllUsesWith(arg, LLVMConstInt(LLVMTypeOf(arg), (unsigned long long)size, false));
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
  for (int i = 0; i < 5; i++) m[i] = module_with(lc, cx, &u, literal_at(cx, x, sizes_of[i]));
  const char *why = low_unify(cx, m, 5, sizes_of);
  ck_assert_msg(!why, "%s: %s", u.body, why);
  for (int64_t size = 37; size <= 149; size += 16) {
    LLVMModuleRef one = module_with(lc, cx, &u, literal_at(cx, x, size)),
                  of = LLVMCloneModule(m[1]);
    const char *want = strstr(folded_at(cx, one, size), "define"),
               *got = strstr(folded_at(cx, of, size), "define");
    ck_assert_str_eq(got, want);
    LLVMDisposeModule(one);
    LLVMDisposeModule(of);
  }
  for (int i = 0; i < 5; i++) LLVMDisposeModule(m[i]);
  LLVMContextDispose(lc);
}
START_TEST(means_unify) { in_context(unify_mean, (void *)(uintptr_t)&means[_i]); }
END_TEST

/* ---- programs ---- */
typedef struct family_case {
  const char *model;
  const char *name; /* of the size */
  int64_t from, step;
  uint32_t families; /* which begin at from, from + gap, … */
  int64_t gap;
  uint32_t
      rows; /* programs for 1, 2, 4 … rows of each, which is size N; 0: there is no such size */
} family_case;
#define COUNT 8 /* sizes of each */
#define NEXT  "node Softmax s t -> p : axis=0\nnode Transpose c p -> y : perm=1,0\nout y\n"
static const family_case cases[] = {
    {"in x f32 N,32\nrand w 32,8\nnode MatMul m x w -> t\n" NEXT, "N", 32, 16, 1, 0, 0},
    {"in x f32 N,32\nrand w 32,8\nnode MatMul m x w -> t\n" NEXT, "N", 37, 16, 3, 5, 0},
    {SIZES_DECODER, "P", 55, 16, 1, 0, 0},
    /* five tokens see all others; what the size has no part in */
    {"in q f32 2,5,8\nin k f32 2,S,8\nin v f32 2,S,8\nin z f32 7,9\nrand w 9,11\n"
     "node Transpose c k -> u : perm=0,2,1\n"
     "node MatMul d q u -> s\nnode Softmax e s -> p : axis=-1\nnode MatMul f p v -> t\n"
     "node Transpose g t -> y : perm=1,0,2\nnode MatMul h z w -> r\nnode Softmax i r -> o : "
     "axis=-1\nout y\nout o\n",
     "S", 71, 16, 2, 16 * COUNT, 0},
    /* windows over a side of any length */
    {"in x f32 1,3,H,9\nrand w 4,3,3,3\nnode Conv c x w -> t : pads=1,1,1,1 strides=2,2\n"
     "node Relu r t -> y\nout y\n",
     "H", 131, 16, 1, 0, 0},
    {"in x f32 1,3,9,H\nrand w 4,3,3,3\nnode Conv c x w -> t : pads=1,1,1,1 strides=1,1\n"
     "node Relu r t -> y\nout y\n",
     "H", 67, 16, 1, 0, 0},
    /* tokens by number, with positions */
    {"in x i64 S\nrand w 20,24\nrand p 300,24\nrand g 24\ninit zero i64 1 : 0\n"
     "node Shape a x -> n\nnode Slice b p zero n -> q\nnode Gather c w x -> t\n"
     "node Add d t q -> u\nnode LayerNormalization l u g -> y : axis=-1\nout y\nout x\n",
     "S", 33, 16, 1, 0, 0},
    {"in x f16 N,32\nrand w 32,8\nnode Cast k x -> z : to=1\nnode MatMul m z w -> t\n" NEXT, "N",
     37, 16, 1, 0, 0},
    /* an operator of libtarn-rt, which is told its dims */
    {"in x f32 S,9\ninit k i64 1 : 3\nnode TopK t x k -> v i : axis=1\nnode Exp e v -> y\nout y\n",
     "S", 33, 16, 1, 0, 0},
    /* elements as the square of the size */
    {"in x f32 S,S\ninit f i64 1 : -1\nnode Exp e x -> t\nnode Reshape r t f -> y\nout y\n", "S",
     32, 16, 1, 0, 0},
    /* means over the size, and over its product with another extent */
    {"in x f32 1,3,H,9\nnode Relu r x -> t\nnode GlobalAveragePool g t -> y\nout y\n", "H", 67, 16,
     1, 0, 0},
    {"in x f64 S,5\nnode ReduceMean m x -> y : axes=0, keepdims=0\nout y\n", "S", 33, 16, 1, 0, 0},
    /* rows of any number, of any length */
    {"in x f32 N,S\nin z f32 3,S\nnode Softmax a x -> y : axis=1\nnode Exp e z -> u\nout y\n"
     "out u\n",
     "S", 37, 16, 2, 3, 3},
};

typedef struct made {
  const family_case *c;
  tarn_lang *L;
  tarn_compile_options o;
  uint32_t n; /* programs: of each family, for each number of rows */
  tarn_lower_family f[8];
  int64_t size[8][2];
  tarn_compiled *of; /* the last sample */
  tarn_planner *planner;
} made;
static int64_t from_of(const made *m, uint32_t program) {
  return m->c->from + m->c->gap * (program / (m->c->rows ? m->c->rows : 1));
}
/* rows: 0, or of what has them. */
static tarn_compile_options at_size(tarn_lang *L, const made *m, int64_t rows, int64_t size) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_compile_options o = m->o;
  const char **text = TARN_ARRAY(cx, const char *, 2);
  text[0] = tarn_format(cx, "%s=%lld", m->c->name, (long long)size);
  text[1] = tarn_format(cx, "N=%lld", (long long)rows);
  o.shapes = (tarn_texts){rows ? 2 : 1, text};
  /* a kernel costs as much to begin on one thread as on several: they are chosen alike at all sizes
   */
  tarn_hw *hw = tarn_copy(cx, tarn_hw_load(L, "x86-64-v3"), sizeof *hw);
  hw->launch += hw->barrier;
  hw->barrier = 0;
  o.hw = hw;
  static const char *const apart = "none";
  o.caches = (tarn_texts){1, &apart};
  return o;
}
static tarn_kprog *compile_at(made *m, int64_t rows, int64_t size) {
  tarn_compile_options *o = TARN_NEW(tarn_lang_ctx(m->L), tarn_compile_options);
  *o = at_size(m->L, m, rows, size);
  m->of = tarn_compile_load(m->L, o);
  tarn_compile_optimise(m->of);
  return m->of->kernels;
}
static void make_samples(made *m) {
  static const uint32_t at[5] = {0, 1, 2, 5, COUNT - 1};
  m->n = m->c->families * (m->c->rows ? m->c->rows : 1);
  for (uint32_t q = 0; q < m->n; q++) {
    tarn_kprog **p = TARN_ARRAY(tarn_lang_ctx(m->L), tarn_kprog *, 5);
    int64_t from = from_of(m, q), rows = m->c->rows ? 1 << q % m->c->rows : 0;
    for (uint32_t i = 0; i < 5; i++) p[i] = compile_at(m, rows, from + m->c->step * at[i]);
    m->f[q] = (tarn_lower_family){rows ? 1 : 0, from, m->c->step, COUNT, 5, at, p};
    m->size[q][0] = rows ? rows : from;
    m->size[q][1] = from;
  }
}
/* The schedules of one sample for all, in steps that divide the family's, so that all tails are of
 * the same form. */
static void round_steps(tarn_level *l, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    int64_t step = 16;
    while (step > l[i].step) step /= 2;
    l[i].step = step;
  }
}
static void same_schedules(tarn_ctx *cx, const tarn_kprog *p, const tarn_lower_family *f) {
  for (uint32_t k = 0; k < p->nker; k++) {
    if (!p->ker[k].sched) continue;
    tarn_schedule *s = tarn_copy(cx, p->ker[k].sched, sizeof *s);
    s->stage = tarn_copy(cx, s->stage, s->nstage * sizeof *s->stage);
    round_steps(s->shared, s->nshared);
    for (uint32_t i = 0; i < s->nstage; i++) round_steps(s->stage[i].level, s->stage[i].nlevel);
    for (uint32_t i = 0; i < f->n; i++) f->sample[i]->ker[k].sched = s;
  }
}
static tarn_lower_options lower_options(const made *m) {
  tarn_lower_options o = {
      .emit = TARN_EMIT_SO | TARN_EMIT_LL, .name = "model", .contract = true, .opt = 2};
  o.dir = m->o.dir;
  return o;
}
static void emit(made *m) {
  static const uint8_t rows[2] = {1, 0};
  const char *name[2] = {"N", m->c->name};
  const tarn_kprog *p[8];
  tarn_memory_plan *plan[8];
  tarn_lower_program row[8];
  for (uint32_t q = 0; q < m->n; q++) {
    p[q] = m->f[q].sample[m->f[q].n - 1];
    plan[q] = tarn_memory_plan_make(p[q], 64);
    row[q] = (tarn_lower_program){m->size[q], p[q], plan[q], &m->f[q]};
  }
  tarn_lower_share(p, plan, m->n, 64);
  uint32_t n = m->c->rows ? 2 : 1;
  tarn_lower_sizes s = {.n = n, .name = name + 2 - n, .nprogram = m->n, .program = row, .rows = 1};
  if (m->c->rows) s.rows = 0, s.lo = 1, s.hi = 13, s.in_rows = s.out_rows = rows;
  tarn_lower_options o = lower_options(m);
  tarn_lower_cpu_sizes(&s, &o);
}
/* The interpreter says what is right; with several threads too. */
static void try_size(const made *m, tarn_loaded *l, int64_t rows, int64_t size) {
  tarn_ctx *cx = tarn_lang_ctx(m->L);
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = at_size(L, m, rows, size);
  const tarn_program *p = tarn_compile_import(L, &o, NULL);
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  const tarn_tensor **t = TARN_ARRAY(cx, const tarn_tensor *, p->nin + 1);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  uint64_t seed = 3;
  for (uint32_t i = 0; i < p->nin; i++) {
    t[i] = kit_values(cx, tarn_type_get(L, p->in[i].type), &seed);
    in[i] = (tarn_binding){p->in[i].name, t[i]};
  }
  pipeline_want want = pipeline_expect(p, in, m->of->o->numerics, m->of->rewriting->bound);
  ck_assert(tarn_loaded_select_for(l, t));
  ck_assert_int_eq(tarn_loaded_size(l)[rows != 0], size);
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    const tarn_port *port;
    uint32_t n = tarn_loaded_ports(l, true, &port);
    for (uint32_t i = 0; i < n; i++)
      out[i] = tarn_tensor_new(cx, port[i].dtype, port[i].n, port[i].dim);
    tarn_loaded_run(l, t, out, threads);
    const char *wrong = pipeline_wrong(p, &want, out);
    ck_assert_msg(!wrong, "%s=%lld: %s", m->c->name, (long long)size, wrong);
  }
  for (uint32_t k = 0; !rows && k < tarn_loaded_kernels(l); k++)
    (void)tarn_loaded_kernel(l, t, out, 1, k);
}
static void try_sizes(const made *m, tarn_loaded *l, uint32_t program) {
  int64_t from = from_of(m, program), step = m->c->step;
  uint32_t most = m->c->rows ? 13 : 0;
  for (uint32_t k = 0; k < COUNT; k++)
    for (uint32_t rows = most ? 1 : 0; rows <= most; rows++) try_size(m, l, rows, from + step * k);
  const int64_t first = from_of(m, 0) - step, last = from_of(m, m->n - 1) + step * (COUNT - 1);
  const int64_t others[] = {0, first, from + 1, last + 1, last + step};
  for (uint32_t i = 0; i < sizeof others / sizeof *others; i++) {
    const int64_t size[2] = {most ? 1 : others[i], others[i]};
    ck_assert(!tarn_loaded_select(l, size));
  }
}
static void begin(tarn_ctx *cx, made *m) {
  size_t n;
  const uint8_t *bytes = kit_model_bytes(cx, m->c->model, &n);
  m->o = tarn_compile_defaults();
  m->o.dir = pipeline_folder(cx);
  m->o.model = tarn_format(cx, "%s/test.onnx", m->o.dir);
  tarn_write_file(cx, m->o.model, (const char *)bytes, n);
  make_samples(m);
  for (uint32_t q = 0; q < m->n; q++)
    same_schedules(cx, m->f[q % (m->c->rows ? m->c->rows : 1)].sample[4], &m->f[q]);
  m->planner = tarn_planner_new(m->L, true, NULL);
  for (uint32_t q = 0; q < m->n; q++)
    for (uint32_t i = 0; i < m->f[q].n; i++) tarn_kprog_plan(m->planner, m->f[q].sample[i]);
}
static void run_case(tarn_ctx *cx, void *arg) {
  made m = {.c = arg, .L = tarn_lang_new(cx)};
  begin(cx, &m);
  tarn_lower_options o = lower_options(&m);
  for (uint32_t q = 0; q < m.n; q++) {
    const char *why = tarn_lower_family_differs(&m.f[q], &o);
    ck_assert_msg(!why, "%s: %s", m.c->model, why);
  }
  emit(&m);
  tarn_loaded *l = tarn_load(cx, m.o.dir);
  for (uint32_t q = 0; q < m.n; q += m.c->rows ? m.c->rows : 1) try_sizes(&m, l, q);
}
START_TEST(every_size) { in_context(run_case, (void *)(uintptr_t)&cases[_i]); }
END_TEST

/* ---- what families share ---- */
static unsigned times(const char *text, const char *word) {
  unsigned n = 0;
  while ((text = strstr(text, word))) text += strlen(word), n++;
  return n;
}
/* Two families of one form have their loops in common, and all programs what does not depend on the
 * size. */
static void share(tarn_ctx *cx, void *arg) {
  (void)arg;
  static const family_case two = {
      "in x f32 N,32\nin z f32 5,32\nrand w 32,8\nnode MatMul m x w -> t\nnode Exp s t -> y\n"
      "node Exp e z -> r\nout r\nout y\n",
      "N",
      32,
      16,
      2,
      16 * COUNT,
      0};
  made m = {.c = &two, .L = tarn_lang_new(cx)};
  begin(cx, &m);
  emit(&m);
  size_t n;
  const char *text = tarn_read_file(cx, tarn_format(cx, "%s/model.ll", m.o.dir), &n);
  ck_assert_uint_eq(times(text, "define internal fastcc void @model.n0("), 0);
  ck_assert_uint_gt(times(text, "@model.n0.0("), 1);
  ck_assert_uint_eq(times(text, "void @model.n1("), 0);
  ck_assert_uint_gt(times(text, "@model.f0.k1_m_s.n.0("), 0);
  ck_assert_uint_eq(times(text, "@model.f1.k1_m_s.n.0("), 0);
  tarn_loaded *l = tarn_load(cx, m.o.dir);
  for (uint32_t q = 0; q < m.n; q++)
    for (uint32_t k = 0; k < COUNT; k++) try_size(&m, l, 0, from_of(&m, q) + two.step * k);
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
  const fault *f = arg;
  made m = {.c = &cases[0], .L = tarn_lang_new(cx)};
  begin(cx, &m);
  tarn_lower_options o = lower_options(&m);
  tarn_kprog *p = tarn_copy(cx, m.f->sample[2], sizeof *p);
  p->ker = tarn_copy(cx, p->ker, p->nker * sizeof *p->ker);
  p->buf = tarn_copy(cx, p->buf, p->nbuf * sizeof *p->buf);
  ck_assert_ptr_null(tarn_lower_family_differs(m.f, &o));
  f->plant(cx, p);
  for (uint32_t k = 0; k < p->nker; k++) p->ker[k].plan = NULL;
  tarn_kprog_plan(m.planner, p);
  ((tarn_kprog **)(uintptr_t)m.f->sample)[2] = p;
  const char *why = tarn_lower_family_differs(m.f, &o);
  ck_assert_msg(why && strstr(why, f->words), "%s: %s", f->words, why);
}
START_TEST(faults_are_seen) { in_context(plant, (void *)(uintptr_t)&faults[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("family");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, numbers_grow);
  tcase_add_test(t, numbers_have_one_form);
  tcase_add_loop_test(t, texts_unify, 0, sizeof texts / sizeof *texts);
  tcase_add_loop_test(t, means_unify, 0, sizeof means / sizeof *means);
  tcase_add_loop_test(t, every_size, 0, sizeof cases / sizeof *cases);
  tcase_add_test(t, loops_once);
  tcase_add_loop_test(t, faults_are_seen, 0, sizeof faults / sizeof *faults);
  return run_checks("family", t);
}
