/* Inputs that lie in outputs: a decoder takes several steps through one buffer; which pairs are
 * found, and which are refused. */
#include "access/judge.h"
#include "tests/context.h"
#include "compile/compile.h"
#include "hw/host/host.h"
#include "runtime/rt.h"
#include "tests/pipeline.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 2, SIZE = 4, ROWS = 12, MOST = HEADS * SIZE * ROWS };

/* Attention over `past` cached rows and `now` new ones. order: of the cache's dims, heads outside
 * of rows or inside. more: further outputs. */
static const char *decoder(tarn_ctx *cx, int past, int now, bool heads_inside, const char *k,
                           const char *more) {
  const char *shape = tarn_format(cx, heads_inside ? "((1 %d 2 4) ())" : "((1 2 %d 4) ())", past);
  const char *turn = heads_inside ? "(transpose (0 2 1 3) %s)" : "%s";
  int axis = heads_inside ? 1 : 2;
  const char *put = tarn_format(cx, turn, "%h"), *keys = tarn_format(cx, turn, "%k"),
             *values = tarn_format(cx, turn, "%v");
  const char *new_k = tarn_format(cx, "(compute (map (mul $0 0.5)) %s)", put);
  return tarn_format(
      cx,
      "(program (inputs (x ((1 %d 8) ()) f32) (past_k %s f32) (past_v %s f32))\n"
      " (let (%%h (transpose (0 2 1 3) (access 4 (reshape ((1 %d 2 4) ())\n"
      "          (access 3 (input x ((1 %d 8) ()) f32))))))\n"
      "  (%%new %s) (%%old (input past_k %s f32)) (%%k %s)\n"
      "  (%%v (concat %d (input past_v %s f32) (compute (map (add $0 0.25)) %s)))\n"
      "  (%%e (compute (map (exp $0)) (compute dotProd (cartProd 2 (access 3 %%h)\n"
      "       (access 3 %s)))))\n"
      "  (%%y (compute dotProd (cartProd 2 (access 3 %%e) (access 3 (transpose (0 1 3 2) %s))))))\n"
      " (outputs (y %%y) (present_k %%k) (present_v %%v)%s))",
      now, shape, shape, now, now, new_k, shape,
      k ? k : tarn_format(cx, "(concat %d %%old %%new)", axis), axis, shape, put, keys, values,
      more);
}
static tarn_compile_options options(tarn_lang *L, const char *text) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_compile_options o = tarn_compile_defaults();
  const char *model = tarn_format(cx, "%s/decoder.tarn", pipeline_folder(cx));
  tarn_write_file(cx, model, text, strlen(text));
  o.model = model;
  o.hw = tarn_hw_host(L, false);
  o.threads = 1;
  return o;
}
static const tarn_compiled *compiled(tarn_lang *L, const tarn_compile_options *o, tarn_loaded **m) {
  const tarn_compiled *c = tarn_compile(L, o);
  for (uint32_t i = 0; m && i < c->nartefact; i++)
    if (!strcmp(c->artefact[i].name, "model.so"))
      *m = tarn_load_bytes(tarn_lang_ctx(L), c->artefact[i].data, c->artefact[i].n, "decoder");
  return c;
}

/* ---- steps through one buffer ---- */
/* What the interpreter makes of the same step. */
static void reference(const tarn_program *p, tarn_tensor *const *in, tarn_tensor **out) {
  tarn_term root[8];
  tarn_binding b[8];
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  for (uint32_t i = 0; i < p->nin; i++) b[i] = (tarn_binding){p->in[i].name, in[i]};
  tarn_eval(p->L, root, p->nout, b, p->nin, TARN_STRICT, NULL, out);
}
static void near(float got, double wanted) {
  ck_assert_msg(fabs((double)got - wanted) <= 1e-5 * (1 + fabs(wanted)), "%g, not %g", (double)got,
                wanted);
}
/* Where row r of head h begins. */
static size_t row_at(bool inside, int64_t h, int64_t r) {
  return (size_t)((inside ? r * HEADS + h : h * ROWS + r) * SIZE);
}
/* The tensor's rows, from the buffer's; the rest has not been touched. */
static void same_rows(const float *buffer, const tarn_tensor *t, bool inside) {
  int64_t rows = t->dim[inside ? 1 : 2], at = 0;
  for (int64_t i = 0; i < (inside ? rows : HEADS); i++)
    for (int64_t j = 0; j < (inside ? HEADS : rows); j++)
      for (int64_t e = 0; e < SIZE; e++)
        near(buffer[row_at(inside, inside ? j : i, inside ? i : j) + (size_t)e],
             tarn_tensor_get(t, at++).d);
  for (int64_t h = 0; h < HEADS; h++)
    for (int64_t r = rows; r < ROWS; r++)
      for (int64_t e = 0; e < SIZE; e++) ck_assert(buffer[row_at(inside, h, r) + (size_t)e] == -7);
}
typedef struct caches {
  bool inside;
  float k[MOST], v[MOST]; /* the buffers */
  tarn_tensor *old[2];    /* the same for the interpreter */
} caches;
static void step(tarn_ctx *cx, caches *s, int past, int now) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, decoder(cx, past, now, s->inside, NULL, ""));
  tarn_loaded *m;
  o.cache_rows = ROWS;
  const tarn_compiled *c = compiled(L, &o, &m);
  uint64_t seed = (uint64_t)past + 1;
  float y[MOST];
  tarn_tensor *out[3], *in[3];
  in[0] = tarn_random_tensor(cx, TARN_F32, 3, (const int64_t[]){1, now, HEADS * SIZE},
                             (tarn_domain){0, 1}, &seed);
  in[1] = s->old[0], in[2] = s->old[1];
  reference(c->program, in, out);
  ck_assert_uint_eq(c->choice.copies, 0);
  void *workspace = tarn_rt_workspace_new(tarn_loaded_workspace(m, 1));
  int failed = tarn_loaded_function(m)((const void *const[]){in[0]->data, NULL, NULL},
                                       (void *const[]){y, s->k, s->v}, workspace, NULL);
  ck_assert_int_eq(failed, 0);
  free(workspace);
  for (int64_t i = 0; i < tarn_tensor_count(out[0]); i++) near(y[i], tarn_tensor_get(out[0], i).d);
  same_rows(s->k, out[1], s->inside);
  same_rows(s->v, out[2], s->inside);
  s->old[0] = out[1], s->old[1] = out[2];
}
static void steps(tarn_ctx *cx, void *arg) {
  caches s = {.inside = *(bool *)arg};
  int64_t outside[] = {1, HEADS, 1, SIZE}, inside[] = {1, 1, HEADS, SIZE};
  for (int i = 0; i < MOST; i++) s.k[i] = s.v[i] = -7;
  for (int i = 0; i < 2; i++) {
    uint64_t seed = 77 + (uint64_t)i;
    tarn_tensor *t = s.old[i] = tarn_random_tensor(cx, TARN_F32, 4, s.inside ? inside : outside,
                                                   (tarn_domain){0, 1}, &seed);
    for (int64_t h = 0, at = 0; h < HEADS; h++)
      for (int64_t e = 0; e < SIZE; e++)
        (i ? s.v : s.k)[row_at(s.inside, h, 0) + (size_t)e] = (float)tarn_tensor_get(t, at++).d;
  }
  step(cx, &s, 1, 3);
  step(cx, &s, 4, 1);
  step(cx, &s, 5, 1);
  step(cx, &s, 6, 5);
}
START_TEST(steps_with_heads_outside) {
  bool inside = false;
  in_context(steps, &inside);
}
END_TEST
START_TEST(steps_with_heads_inside) {
  bool inside = true;
  in_context(steps, &inside);
}
END_TEST

/* ---- which pairs ---- */
#define KEYS "past_k=present_k"
#define MORE "(concat 2 %old (compute (map (mul $0 3)) %new))"
enum { NONE, K_, V_, BOTH };
static const struct {
  const char *k, *more; /* as decoder() takes them */
  const char *cache;    /* separated by spaces; NULL: by default */
  unsigned inputs;      /* that lie in outputs, where nothing is wrong */
  const char *wrong;
} pairs[] = {
    {NULL, "", NULL, BOTH, NULL},
    {NULL, "", "none", NONE, NULL},
    {NULL, "", KEYS, K_, NULL},
    {NULL, "", "past_*=present_*", BOTH, NULL},
    {NULL, "", "*ast_*=pre*ent_*", NONE, "no output prepent_k"},
    /* the old rows are read in another way as well: by default in two buffers, else in one */
    {NULL, " (more (compute (map (mul $0 2)) %old))", NULL, V_, NULL},
    {NULL, " (more (compute (map (mul $0 2)) %old))", KEYS, K_, NULL},
    {NULL, " (more %old)", KEYS, K_, NULL},
    /* the cache is used twice */
    {NULL, " (more " MORE ")", NULL, V_, NULL},
    {NULL, " (more " MORE ")", KEYS, K_, NULL},
    {NULL, " (more " MORE ")", "past_k=more", K_, NULL},
    {NULL, " (more " MORE ")", KEYS " past_k=more", NONE, "one of another pair"},
    {NULL, "", KEYS " past_v=present_k", NONE, "one of another pair"},
    /* the output is something else as well, or changed */
    {NULL, " (more %k)", NULL, BOTH, NULL},
    {"(compute (map (mul $0 2)) (concat 2 %old %new))", "", NULL, V_, NULL},
    {"(compute (map (mul $0 2)) (concat 2 %old %new))", "", KEYS, NONE, "no concatenation"},
    {"(concat 2 %new %old)", "", NULL, V_, NULL},
    {"(concat 2 %new %old)", "", KEYS, NONE, "no concatenation"},
    {NULL, " (more (slice 2 1 5 %k))", "past_k=more", NONE, "no concatenation"},
    {NULL, " (more (slice 2 2 5 %k))", "past_k=more", NONE, "is not past_k with more rows"},
    {NULL, "", "x=y", NONE, "is not x with more rows"},
    {NULL, "", "past=present", NONE, "no such input"},
    {NULL, "", "past_*=present_k*", NONE, "no output present_kk"},
    {NULL, "", "past_*=present_k", NONE, "as many *"},
    {NULL, "", "past_k", NONE, "IN=OUT is expected"},
};
static tarn_texts words(tarn_ctx *cx, const char *s) {
  const char **w = TARN_ARRAY(cx, const char *, 4);
  uint32_t n = 0;
  char *rest = tarn_strdup(cx, s ? s : "");
  for (char *p; (p = strsep(&rest, " ")) && *p;) w[n++] = p;
  return (tarn_texts){n, w};
}
/* By the calls that take tensors: all outputs as the interpreter has them. */
static void same_outputs(tarn_ctx *cx, const tarn_program *p, tarn_loaded *m) {
  tarn_tensor *in[4], *wanted[8], *out[8];
  uint64_t seed = 5;
  for (uint32_t i = 0; i < p->nin; i++) {
    const tarn_type *t = tarn_type_get(p->L, p->in[i].type);
    in[i] = tarn_random_tensor(cx, t->dtype, t->n, t->dim, (tarn_domain){0, 1}, &seed);
  }
  reference(p, in, wanted);
  for (uint32_t i = 0; i < p->nout; i++)
    out[i] = tarn_tensor_new(cx, TARN_F32, wanted[i]->n, wanted[i]->dim);
  tarn_loaded_run(m, (const tarn_tensor *const *)in, out, 1);
  for (uint32_t i = 0; i < p->nout; i++)
    for (int64_t k = 0; k < tarn_tensor_count(out[i]); k++)
      near((float)tarn_tensor_get(out[i], k).d, tarn_tensor_get(wanted[i], k).d);
}
typedef struct attempt {
  const tarn_compile_options *o;
  tarn_lang *L;
  const tarn_compiled *c;
  tarn_loaded *m;
} attempt;
static void attempted(tarn_ctx *cx, void *arg) {
  (void)cx;
  attempt *a = arg;
  a->c = compiled(a->L, a->o, &a->m);
  same_outputs(cx, a->c->program, a->m);
}
static void pair(tarn_ctx *cx, void *arg) {
  int i = *(int *)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, decoder(cx, 3, 2, false, pairs[i].k, pairs[i].more));
  o.caches = words(cx, pairs[i].cache);
  o.cache_rows = i % 2 ? 9 : 0;
  attempt a = {.o = &o, .L = L};
  tarn_status st = tarn_protect(cx, attempted, &a);
  if (pairs[i].wrong) {
    ck_assert_msg(st != TARN_OK && strstr(tarn_message(cx), pairs[i].wrong), "pair %d: %s", i,
                  tarn_message(cx));
    return;
  }
  ck_assert_msg(st == TARN_OK, "pair %d: %s", i, tarn_message(cx));
  unsigned found = 0;
  for (uint32_t k = 0; k < 2; k++) {
    tarn_in_place x;
    if (!tarn_kprog_in_place(a.c->kernels, false, 1 + k, &x)) continue;
    found |= 1u << k;
    ck_assert(x.axis == 2 && x.filled == 3 && x.added == 2 && x.rows == (i % 2 ? 9 : 5));
  }
  ck_assert_msg(found == pairs[i].inputs, "pair %d: %u, not %u", i, found, pairs[i].inputs);
}
START_TEST(pairs_are_found_or_refused) { in_context(pair, &_i); }
END_TEST

/* An output that is a concatenation but is read no further is no cache; one may say that it is. */
static void only_concatenated(tarn_ctx *cx, void *arg) {
  (void)arg;
  const char *text = "(program (inputs (a ((2 3) ()) f32) (b ((1 3) ()) f32))\n"
                     " (outputs (y (concat 0 (input a ((2 3) ()) f32) (input b ((1 3) ()) f32)))))";
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, text);
  tarn_in_place x;
  tarn_loaded *m;
  ck_assert(!tarn_kprog_in_place(compiled(L, &o, NULL)->kernels, false, 0, &x));
  o.caches = words(cx, "a=y");
  o.cache_rows = 4;
  const tarn_compiled *c = compiled(L, &o, &m);
  ck_assert(tarn_kprog_in_place(c->kernels, false, 0, &x) && x.rows == 4 && x.axis == 0);
  ck_assert(tarn_kprog_in_place(c->kernels, true, 0, &x) && x.in == 0);
  same_outputs(cx, c->program, m);
  float y[12] = {1, 2, 3, 4, 5, 6, 0, 0, 0, -7, -7, -7}, b[3] = {7, 8, 9};
  tarn_loaded_function(m)((const void *const[]){NULL, b}, (void *const[]){y}, NULL, NULL);
  for (int i = 0; i < 12; i++) ck_assert(y[i] == (i < 9 ? (float)(i + 1) : -7));
}
START_TEST(concatenations_are_no_caches) { in_context(only_concatenated, NULL); }
END_TEST

/* ---- as text ---- */
static void as_text(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, decoder(cx, 3, 2, false, NULL, ""));
  o.cache_rows = 8;
  const tarn_compiled *c = compiled(L, &o, NULL);
  tarn_buf b = {.cx = cx};
  tarn_kprog_print(c->kernels, &b);
  const tarn_kprog *q = tarn_kprog_parse(L, o.hw, tarn_sx_read(cx, b.p, b.n, "program")->kid[0]);
  tarn_in_place x, y;
  for (uint32_t i = 1; i < 3; i++) {
    ck_assert(tarn_kprog_in_place(c->kernels, false, i, &x));
    ck_assert(tarn_kprog_in_place(q, false, i, &y) && !memcmp(&x, &y, sizeof x));
  }
  ck_assert_ptr_nonnull(strstr(c->report, "\"input\": \"past_k\""));
}
START_TEST(program_and_report_tell_of_pairs) { in_context(as_text, NULL); }
END_TEST

/* ---- operators that keep a cache ---- */
static const struct {
  const char *model;
  unsigned pairs;
} kept[] = {
    {"group_query_attention_one_text", 2}, /* its length may be any: new rows follow old ones */
    {"group_query_attention", 0},          /* two texts of two lengths: rows are gathered */
};
static void operator_kept(tarn_ctx *cx, void *arg) {
  int i = *(int *)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L, "");
  o.model = tarn_format(cx, "tests/cases/%s/model.onnx", kept[i].model);
  const tarn_compiled *c = compiled(L, &o, NULL);
  unsigned found = 0;
  for (uint32_t k = 0; k < c->program->nin; k++) {
    tarn_in_place x;
    found += tarn_kprog_in_place(c->kernels, false, k, &x);
  }
  ck_assert_msg(found == kept[i].pairs, "%s: %u pairs", kept[i].model, found);
}
START_TEST(operators_keep_caches) { in_context(operator_kept, &_i); }
END_TEST

int main(void) {
  TCase *t = tcase_create("in_place");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, steps_with_heads_outside);
  tcase_add_test(t, steps_with_heads_inside);
  tcase_add_loop_test(t, pairs_are_found_or_refused, 0, sizeof pairs / sizeof *pairs);
  tcase_add_test(t, concatenations_are_no_caches);
  tcase_add_test(t, program_and_report_tell_of_pairs);
  tcase_add_loop_test(t, operators_keep_caches, 0, sizeof kept / sizeof *kept);
  return run_checks("in_place", t);
}
