/* Artefacts of several sizes, for tests: how one is compiled, and what is right at a size. */
#ifndef TARN_TESTS_SIZES_KIT_H
#define TARN_TESTS_SIZES_KIT_H
#include "compile/compile.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include "tests/context.h"

/* A decoder's attention: keys and values of earlier tokens in, those with the new one out. */
#define SIZES_CACHED                                                                               \
  "in x f32 1,16\nin pk f32 2,P,8\nin pv f32 2,P,8\nrand wq 16,16\nrand wk 16,16\nrand wv 16,16\n" \
  "init split i64 3 : 1 2 8\ninit join i64 2 : 1 16\n"                                             \
  "node MatMul mq x wq -> q0\nnode Reshape rq q0 split -> q1\n"                                    \
  "node Transpose tq q1 -> q : perm=1,0,2\nnode MatMul mk x wk -> k0\n"                            \
  "node Reshape rk k0 split -> k1\nnode Transpose tk k1 -> k : perm=1,0,2\n"                       \
  "node MatMul mv x wv -> v0\nnode Reshape rv v0 split -> v1\n"                                    \
  "node Transpose tv v1 -> v : perm=1,0,2\nnode Concat ck pk k -> K : axis=1\n"                    \
  "node Concat cv pv v -> V : axis=1\nnode Transpose kt K -> KT : perm=0,2,1\n"                    \
  "node MatMul sc q KT -> s\nnode Softmax sm s -> p : axis=-1\nnode MatMul o p V -> o0\n"          \
  "node Transpose ot o0 -> o1 : perm=1,0,2\n"
/* And the layer around it. */
#define SIZES_DECODER                                                                              \
  SIZES_CACHED                                                                                     \
  "rand wo 16,16\nrand w1 16,48\nrand w2 48,16\nnode Reshape jo o1 join -> o2\n"                   \
  "node MatMul mo o2 wo -> o3\nnode Add ha x o3 -> h\nnode MatMul m1 h w1 -> m\n"                  \
  "node Relu mr m -> n\nnode MatMul m2 n w2 -> f\nnode Add ya h f -> y\nout y\nout K\nout V\n"

/* The model as a file in the folder, for these shapes, NULL behind the last; into DIR/out. */
static inline tarn_compile_options sizes_options(tarn_lang *L, const char *model,
                                                 const char *const *shapes, const char *dir) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_compile_options o = tarn_compile_defaults();
  size_t n;
  const uint8_t *bytes = kit_model_bytes(cx, model, &n);
  o.model = tarn_format(cx, "%s/test.onnx", dir);
  tarn_write_file(cx, o.model, (const char *)bytes, n);
  while (shapes[o.shapes.n]) o.shapes.n++;
  o.shapes.text = shapes;
  o.hw = tarn_hw_load(L, "x86-64-v3");
  o.dir = tarn_format(cx, "%s/out", dir);
  return o;
}

/* The model at one size: random inputs, and what the interpreter makes of them. */
typedef struct sizes_trial {
  const char *label;
  tarn_program *p;
  tarn_binding *in;
  const tarn_tensor **t; /* the same inputs */
  tarn_tensor **out;
  pipeline_want want;
} sizes_trial;
static inline sizes_trial sizes_at(const tarn_compiled *c, tarn_compile_options o,
                                   const int64_t *size, uint64_t seed) {
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  tarn_lang *L = tarn_lang_new(cx);
  o.shapes = tarn_compile_shapes_at(L, &o, size);
  sizes_trial x = {.label = o.shapes.text[0], .p = tarn_compile_import(L, &o, NULL)};
  x.in = TARN_ARRAY(cx, tarn_binding, x.p->nin + 1);
  x.t = TARN_ARRAY(cx, const tarn_tensor *, x.p->nin + 1);
  x.out = TARN_ARRAY(cx, tarn_tensor *, x.p->nout + 1);
  for (uint32_t i = 0; i < x.p->nin; i++) {
    x.t[i] = kit_values(cx, tarn_type_get(L, x.p->in[i].type), &seed);
    x.in[i] = (tarn_binding){x.p->in[i].name, x.t[i]};
  }
  x.want = pipeline_expect(x.p, x.in, c->o->numerics, c->rewriting->bound);
  return x;
}
static inline void sizes_right(const sizes_trial *x) {
  const char *wrong = pipeline_wrong(x->p, &x->want, x->out);
  ck_assert_msg(!wrong, "%s: %s", x->label, wrong);
}
/* The artefact at these sizes, by one thread and by three. */
static inline void sizes_try(tarn_loaded *m, tarn_compile_options o, const tarn_compiled *c,
                             const int64_t *size) {
  sizes_trial x = sizes_at(c, o, size, 5);
  ck_assert_msg(tarn_loaded_select(m, size), "%s: not served", x.label);
  ck_assert(tarn_loaded_select_for(m, x.t));
  ck_assert_mem_eq(tarn_loaded_size(m), size, tarn_loaded_sizes(m) * sizeof *size);
  pipeline_run(m, x.p, x.in, x.out);
  sizes_right(&x);
  tarn_loaded_run(m, x.t, x.out, 3);
  sizes_right(&x);
}
/* Of a program the least sizes, the largest, those next to them and some between; each size of it
 * in another order. */
static inline void sizes_try_program(tarn_loaded *m, tarn_compile_options o, const tarn_compiled *c,
                                     uint32_t program, uint32_t some) {
  uint32_t n = tarn_loaded_sizes(m);
  int64_t *size = TARN_ARRAY(tarn_lang_ctx(c->L), int64_t, n);
  uint64_t seed = program + 1;
  bool one = true;
  for (uint32_t i = 0; i < some && (!one || !i); i++) {
    for (uint32_t k = 0; k < n; k++) {
      tarn_size_range r = tarn_loaded_range(m, program, k);
      int64_t last = (r.hi - r.lo) / r.step;
      int64_t drawn = (int64_t)(kit_random(&seed) % (uint64_t)(last + 1));
      const int64_t at[] = {0, last, tarn_min(1, last), tarn_max(last - 1, 0)};
      size[k] = r.lo + r.step * (i < 2 ? at[i] : i < 4 ? at[(i + k) % 4] : drawn);
      one &= !last;
    }
    sizes_try(m, o, c, size);
  }
}
#endif
