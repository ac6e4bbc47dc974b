/* Equal layers are compiled once: random models of blocks, all equal or one of them not, compute
 * what they say, in the kernels of all layers, and cost what they cost when each is looked at.
 *
 *   test_layers [--all]            some models, or hundreds
 *   test_layers FIRST COUNT        those of COUNT seeds from FIRST */
#include "compile/layers.h"
#include "tests/context.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- models of blocks */
/* What is different in one layer. */
typedef enum odd {
  ALIKE,
  ZEROS,    /* a weight is all zeros */
  TWICE,    /* a vector is that of another layer */
  FACTOR,   /* a single number is another */
  FUNCTION, /* another operator */
  WIDER,    /* other dims in the middle */
  READ,     /* what it computes in the middle is an output too */
  EXTRA,    /* likewise, after a further operator */
  ODDS
} odd;
typedef struct model {
  uint32_t layers, at; /* at: the layer that is different */
  odd how;
  uint32_t part[3], n; /* of a block */
  bool images, empty;  /* empty: caches without rows */
  tarn_buf text, outputs;
  uint32_t layer, name; /* at hand */
} model;

static bool is_odd(const model *m, odd how) { return m->how == how && m->layer == m->at; }
static void line(model *m, const char *s) { tarn_buf_fmt(&m->text, "%s\n", s); }
/* The lines of a part: # is the layer with the number of the part in it, @ what it reads, ^ what it
 * gives. */
static void part(model *m, const char *s) {
  for (; *s; s++) {
    if (*s == '#') tarn_buf_fmt(&m->text, "%u_%u", m->layer, m->name);
    else if (*s == '@') tarn_buf_fmt(&m->text, "x%u_%u", m->layer, m->name);
    else if (*s == '^') tarn_buf_fmt(&m->text, "x%u_%u", m->layer, m->name + 1);
    else tarn_buf_fmt(&m->text, "%c", *s);
  }
}
static void weight(model *m, const char *name, const char *dims, uint32_t n) {
  if (!is_odd(m, ZEROS)) {
    part(m, tarn_format(m->text.cx, "rand %s# %s\n", name, dims));
    return;
  }
  part(m, tarn_format(m->text.cx, "init %s# f32 %s :", name, dims));
  for (uint32_t i = 0; i < n; i++) tarn_buf_str(&m->text, " 0");
  line(m, "");
}
static void vector(model *m, const char *name) {
  uint64_t seed = is_odd(m, TWICE) ? 77 : 77 + m->layer * 8 + m->name;
  if (m->how == TWICE && m->layer == (m->at + 1) % m->layers) seed = 77;
  part(m, tarn_format(m->text.cx, "init %s# f32 8 :", name));
  for (int i = 0; i < 8; i++) tarn_buf_fmt(&m->text, " %.4f", 1 + 0.5 * kit_uniform(&seed));
  line(m, "");
}
static void dense(model *m) {
  weight(m, "w", "8,8", 64);
  vector(m, "b");
  part(m, "node MatMul m# @ w# -> p#\nnode Add a# p# b# -> q#\n");
  part(m, is_odd(m, FUNCTION) ? "node Sigmoid r# q# -> ^\n" : "node Tanh r# q# -> ^\n");
}
static void feed(model *m) {
  bool wider = is_odd(m, WIDER);
  weight(m, "u", wider ? "8,24" : "8,16", wider ? 192 : 128);
  weight(m, "v", wider ? "24,8" : "16,8", wider ? 192 : 128);
  part(m, "node MatMul m# @ u# -> p#\nnode Relu r# p# -> q#\nnode MatMul n# q# v# -> s#\n"
          "node Add a# @ s# -> ^\n");
  if (is_odd(m, READ)) tarn_buf_fmt(&m->outputs, "out q%u_%u\n", m->layer, m->name);
  if (!is_odd(m, EXTRA)) return;
  part(m, "node Exp e# q# -> t#\n");
  tarn_buf_fmt(&m->outputs, "out t%u_%u\n", m->layer, m->name);
}
static void norm(model *m) {
  vector(m, "g");
  part(m, "node Mul k# @ @ -> p#\nnode ReduceMean l# p# -> q# : axes=1,1\n"
          "node Add a# q# eps -> s#\nnode Sqrt r# s# -> t#\nnode Div d# @ t# -> v#\n"
          "node Mul j# v# g# -> ^\n");
}
static void scaled(model *m) {
  part(m, is_odd(m, FACTOR) ? "init f# f32 1 : 2\n" : "init f# f32 1 : 0.5\n");
  part(m, "node Mul m# @ f# -> p#\nnode Softmax s# p# -> q# : axis=1\nnode Add a# q# @ -> ^\n");
}
/* With an input and an output of each layer. */
static void cached(model *m) {
  part(m, m->empty ? "in h# f32 0,8\n" : "in h# f32 3,8\n");
  weight(m, "k", "8,8", 64);
  part(m, "node MatMul m# @ k# -> p#\nnode Concat c# h# p# -> q# : axis=0\n"
          "node Transpose t# q# -> s# : perm=1,0\nnode MatMul n# @ s# -> t#\n"
          "node Softmax o# t# -> u# : axis=1\nnode MatMul j# u# q# -> v#\nnode Add a# @ v# -> ^\n");
  tarn_buf_fmt(&m->outputs, "out q%u_%u\n", m->layer, m->name);
}
/* What each layer gives, and nothing reads. */
static void shown(model *m) {
  vector(m, "g");
  part(m, "node Mul m# @ g# -> ^\nnode Neg e# @ -> n#\nnode Relu z# n# -> o#\n");
  tarn_buf_fmt(&m->outputs, "out o%u_%u\n", m->layer, m->name);
}
static void convolved(model *m) {
  weight(m, "w", "4,4,3,3", 144);
  part(m, "rand b# 4\nnode Conv c# @ w# b# -> p# : pads=1,1,1,1\nnode Relu r# p# -> q#\n");
  weight(m, "v", "4,4,1,1", 16);
  part(m, "node Conv d# q# v# -> s#\nnode Add a# @ s# -> t#\nnode Relu z# t# -> ^\n");
}
static void depthwise(model *m) {
  weight(m, "w", "4,1,3,3", 36);
  part(m, "node Conv c# @ w# -> p# : pads=1,1,1,1 group=4\nnode Relu z# p# -> ^\n");
}
static void (*const parts[])(model *) = {dense, feed, norm, scaled, cached, shown};
static void (*const image_parts[])(model *) = {convolved, depthwise};

static model draw(tarn_ctx *cx, uint64_t seed) {
  model m = {.text = {.cx = cx}, .outputs = {.cx = cx}};
  m.layers = 6 + (uint32_t)(kit_random(&seed) % 4);
  m.at = (uint32_t)(kit_random(&seed) % m.layers);
  m.how = kit_random(&seed) % 2 ? ALIKE : (odd)(kit_random(&seed) % ODDS);
  m.images = kit_random(&seed) % 4 == 0;
  m.n = 1 + (uint32_t)(kit_random(&seed) % 3);
  uint32_t kinds =
      m.images ? sizeof image_parts / sizeof *image_parts : sizeof parts / sizeof *parts;
  for (uint32_t i = 0; i < m.n; i++) m.part[i] = (uint32_t)(kit_random(&seed) % kinds);
  return m;
}
static const char *text_of(model *m) {
  line(m, m->images ? "in x f32 1,4,6,6" : "in x f32 5,8");
  line(m, "init eps f32 1 : 0.01\nnode Identity id x -> x0_0");
  for (m->layer = 0; m->layer < m->layers; m->layer++) {
    for (m->name = 0; m->name < m->n; m->name++)
      (m->images ? image_parts : parts)[m->part[m->name]](m);
    tarn_buf_fmt(&m->text, "node Identity i%u x%u_%u -> x%u_0\n", m->layer, m->layer, m->n,
                 m->layer + 1);
  }
  tarn_buf_fmt(&m->text, "rand w %s\nnode %s m x%u_0 w -> y\nout y\n%s",
               m->images ? "2,4,1,1" : "8,3", m->images ? "Conv" : "MatMul", m->layers,
               m->outputs.n ? m->outputs.p : "");
  return m->text.p;
}

/* ---------------------------------------------------------------- compiled */
static tarn_compiled *compile_with(tarn_ctx *cx, const char *text, bool reasons,
                                   const char *const *cache) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options *o = TARN_NEW(cx, tarn_compile_options);
  *o = tarn_compile_defaults();
  o->onnx = kit_model_bytes(cx, text, &o->onnx_n);
  o->model = "layers.onnx";
  o->hw = tarn_hw_load(L, "x86-64-v3");
  o->reasons = reasons; /* of all layers */
  o->caches = (tarn_texts){cache != NULL, cache};
  o->cache_rows = cache ? 12 : 0;
  tarn_compiled *c = tarn_compile_load(L, o);
  tarn_compile_optimise(c);
  return c;
}
static tarn_compiled *compile(tarn_ctx *cx, const char *text, bool reasons) {
  return compile_with(cx, text, reasons, NULL);
}
static const tarn_binding *inputs(tarn_ctx *cx, const tarn_program *p) {
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  uint64_t seed = 5;
  for (uint32_t i = 0; i < p->nin; i++)
    in[i] =
        (tarn_binding){p->in[i].name, kit_values(cx, tarn_type_get(p->L, p->in[i].type), &seed)};
  return in;
}
/* Relative to the largest element. */
static double distance(const tarn_tensor *a, const tarn_tensor *b) {
  double most = 0, off = 0;
  ck_assert_int_eq(tarn_tensor_count(a), tarn_tensor_count(b));
  for (int64_t i = 0; i < tarn_tensor_count(a); i++) {
    most = fmax(most, fabs(tarn_tensor_number(a, i)));
    off = fmax(off, fabs(tarn_tensor_number(a, i) - tarn_tensor_number(b, i)));
  }
  return off / fmax(most, 1e-30);
}
/* Another layer's constants make a difference that no rounding makes. */
static void kernels_compute_the_model(tarn_compiled *c) {
  const tarn_program *p = c->program;
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  const tarn_binding *in = inputs(cx, p);
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout);
  tarn_tensor **want = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  tarn_tensor **got = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  tarn_eval(c->L, root, p->nout, in, p->nin, TARN_STRICT, tarn_opaque_eval, want);
  tarn_kprog_eval(c->kernels, in, p->nin, TARN_STRICT, tarn_opaque_eval, got);
  for (uint32_t i = 0; i < p->nout; i++) {
    double off = distance(want[i], got[i]);
    if (!(off <= 1e-4)) tarn_raise(cx, TARN_NO, "output %s is off by %g", p->out[i].name, off);
  }
}
static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}
/* Names of kernels without their numbers, in order. */
static const char **names(const tarn_compiled *c) {
  const char **v = TARN_ARRAY(tarn_lang_ctx(c->L), const char *, c->kernels->nker + 1);
  for (uint32_t i = 0; i < c->kernels->nker; i++) v[i] = strchr(c->kernels->ker[i].name, '_');
  qsort(v, c->kernels->nker, sizeof *v, by_name);
  return v;
}
static uint32_t folded(const tarn_compiled *c) { return c->layers ? c->layers->chain.p[0].n : 0; }
static void try_seed(tarn_ctx *cx, void *arg) {
  const uint64_t *seed = arg;
  model m = draw(cx, *seed);
  const char *text = text_of(&m);
  tarn_compiled *once = compile(cx, text, false), *all = compile(cx, text, true);
  kernels_compute_the_model(once);
  ck_assert_uint_eq(once->choice.kernels + once->choice.copies, once->kernels->nker);
  double sum = 0;
  for (uint32_t i = 0; i < once->kernels->nker; i++) sum += once->kernels->ker[i].price;
  if (fabs(sum - once->choice.price) > 1e-6 * sum) tarn_raise(cx, TARN_NO, "price is no sum");
  if (once->choice.price > 1.01 * all->choice.price)
    tarn_raise(cx, TARN_NO, "%u layers at once: %g µs instead of %g", folded(once),
               1e6 * once->choice.price, 1e6 * all->choice.price);
}

/* ---------------------------------------------------------------- what is found */
typedef struct expected {
  const char *label;
  uint32_t part[3], n;
  odd how;
  uint32_t at, least, most; /* of 9 layers, that are found to be equal */
  bool images, apart;       /* apart: but neighbours are not computed alike */
} expected;
enum { DENSE, FEED, NORM, SCALED, CACHED, SHOWN };
static const expected cases[] = {
    {.label = "dense", {DENSE}, 1, ALIKE, 0, 8, 9},
    {.label = "a layer of a transformer", {NORM, CACHED, FEED}, 3, ALIKE, 0, 8, 9},
    {.label = "an output of each", {DENSE, SHOWN}, 2, ALIKE, 0, 8, 9},
    {.label = "convolutions", {0}, 1, ALIKE, 0, 8, 9, .images = true},
    {.label = "a weight of zeros", {NORM, FEED}, 2, ZEROS, 4, 8, 9},
    {.label = "a vector twice", {NORM, FEED}, 2, TWICE, 4, 8, 9},
    {.label = "another factor at the end", {SCALED, FEED}, 2, FACTOR, 8, 7, 8, .apart = true},
    {.label = "another factor in the middle", {SCALED, FEED}, 2, FACTOR, 4, 0, 0},
    {.label = "another function", {DENSE, FEED}, 2, FUNCTION, 1, 6, 7},
    {.label = "other dims", {FEED}, 1, WIDER, 1, 6, 7},
    {.label = "a second reader", {FEED}, 1, READ, 1, 6, 7},
    {.label = "a second reader of the last", {FEED}, 1, READ, 8, 8, 9},
    {.label = "one more operator", {FEED}, 1, EXTRA, 7, 6, 8},
    {.label = "one more in the middle", {FEED}, 1, EXTRA, 4, 0, 0},
};
static uint32_t found(const tarn_compiled *c) {
  comp_layers l = {.L = c->L, .cx = tarn_lang_ctx(c->L), .whole = c->program};
  lay_find(&l);
  return l.chain.n ? l.chain.p[0].n : 0;
}
static void try_case(tarn_ctx *cx, void *arg) {
  const expected *e = arg;
  model m = {.text = {.cx = cx}, .outputs = {.cx = cx}, .layers = 9, .at = e->at, .how = e->how};
  memcpy(m.part, e->part, sizeof m.part);
  m.n = e->n, m.images = e->images;
  const char *text = text_of(&m);
  tarn_compiled *once = compile(cx, text, false), *all = compile(cx, text, true);
  uint32_t n = found(once);
  ck_assert_msg(n >= e->least && n <= e->most, "%s: %u layers", e->label, n);
  ck_assert_uint_eq(folded(once), e->apart ? 0 : n);
  kernels_compute_the_model(once);
  ck_assert_double_le(once->choice.price, 1.0001 * all->choice.price);
  if (e->how == ZEROS) return; /* that layer alone takes a kernel less, or has one more */
  ck_assert_uint_eq(once->kernels->nker, all->kernels->nker);
  const char **a = names(once), **b = names(all);
  for (uint32_t i = 0; i < once->kernels->nker; i++) ck_assert_str_eq(a[i], b[i]);
}
/* Caches by a pattern, with rows and without: nothing reads the inputs then. */
static void try_caches(tarn_ctx *cx, void *arg) {
  static const char *const cache = "h*_0=q*_0";
  bool empty = *(const bool *)arg;
  model m = {.text = {.cx = cx}, .outputs = {.cx = cx}, .layers = 9, .n = 1, .empty = empty};
  m.part[0] = CACHED;
  tarn_compiled *c = compile_with(cx, text_of(&m), false, &cache);
  ck_assert_uint_eq(folded(c) != 0, !empty);
  tarn_in_place at;
  uint32_t pairs = 0;
  for (uint32_t i = 0; i < c->program->nin; i++) {
    bool is = tarn_kprog_in_place(c->kernels, false, i, &at);
    pairs += is;
    ck_assert(!is || (at.rows == 12 && at.filled == (empty ? 0 : 3)));
  }
  ck_assert_uint_eq(pairs, 9);
}
/* The artefact computes what the kernels do, and says what was done. */
static void try_artefact(tarn_ctx *cx, void *arg) {
  (void)arg;
  model m = {.text = {.cx = cx}, .outputs = {.cx = cx}, .layers = 9, .n = 3};
  memcpy(m.part, (const uint32_t[]){NORM, CACHED, FEED}, sizeof m.part);
  tarn_compiled *c = compile(cx, text_of(&m), false);
  tarn_compile_emit(c);
  ck_assert_ptr_nonnull(strstr(c->report, "\"compiled\": 4"));
  const tarn_artefact *so = c->artefact;
  while (strcmp(so->name, "model.so") != 0) so++;
  tarn_loaded *l = tarn_load_bytes(cx, so->data, so->n, "layers");
  const tarn_binding *in = inputs(cx, c->program);
  tarn_tensor *got[16], *want[16];
  pipeline_run(l, c->program, in, got);
  tarn_kprog_eval(c->kernels, in, c->program->nin, TARN_STRICT, tarn_opaque_eval, want);
  for (uint32_t i = 0; i < c->program->nout; i++)
    ck_assert_double_le(distance(want[i], got[i]), 1e-4);
}

#define GROUP 5
static uint64_t first;
START_TEST(random_models_are_right) {
  for (uint64_t i = 0; i < GROUP; i++) {
    uint64_t seed = first + (uint64_t)_i * GROUP + i;
    char label[40];
    snprintf(label, sizeof label, "seed %llu", (unsigned long long)seed);
    in_context_of(label, try_seed, &seed);
  }
}
END_TEST
START_TEST(equal_layers_are_found) { in_context_of(cases[_i].label, try_case, &cases[_i]); }
END_TEST
START_TEST(caches_are_in_each) {
  bool empty = _i == 1;
  in_context(try_caches, &empty);
}
END_TEST
START_TEST(artefact_is_right) { in_context(try_artefact, NULL); }
END_TEST

int main(int argc, char **argv) {
  int groups = argc > 1 && !strcmp(argv[1], "--all") ? 60 : 1;
  TCase *t = tcase_create("layers");
  if (argc > 2) first = strtoull(argv[1], NULL, 10), groups = atoi(argv[2]) / GROUP + 1;
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, equal_layers_are_found, 0, sizeof cases / sizeof *cases);
  tcase_add_test(t, artefact_is_right);
  tcase_add_loop_test(t, caches_are_in_each, 0, 2);
  tcase_add_loop_test(t, random_models_are_right, 0, groups);
  return run_checks("layers", t);
}
