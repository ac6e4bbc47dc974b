/* model/gguf: each type of elements against the package gguf, each architecture against its network
 * in transformers (tests/data/gguf, generate.py), with a cache and without; and files that are
 * wrong. */
#include "model/model.h"
#include "tests/alloc.h"
#include "tests/context.h"
#include "tests/pipeline.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DATA TARN_TOP "/tests/data/gguf"

/* ---------------------------------------------------------------- loading and running */

static tarn_program *load(tarn_ctx *cx, const char *name, int64_t length, int64_t past,
                          tarn_model_report *report) {
  int64_t *size = TARN_ARRAY(cx, int64_t, 3);
  static const char *const names[] = {"batch_size", "sequence_length", "past_sequence_length"};
  tarn_shape_binding *b = TARN_ARRAY(cx, tarn_shape_binding, 3);
  size[0] = 1, size[1] = length, size[2] = past;
  for (uint32_t i = 0; i < 3; i++) b[i] = (tarn_shape_binding){names[i], 1, &size[i], NULL};
  tarn_model_options o = {.nshape = length ? 3 : 0, .shape = b};
  return tarn_model_load(tarn_lang_new(cx), tarn_format(cx, DATA "/%s.gguf", name), &o, report);
}

static tarn_tensor **run(tarn_ctx *cx, const tarn_program *p, const tarn_binding *in, uint32_t n,
                         tarn_mode mode) {
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  tarn_eval(p->L, root, p->nout, in, n, mode, NULL, out);
  return out;
}

static const tarn_tensor *integers(tarn_ctx *cx, uint32_t rank, const int64_t *v, int64_t n) {
  int64_t dim[] = {1, n};
  tarn_tensor *t = tarn_tensor_new(cx, TARN_I64, rank, dim + 2 - rank);
  for (int64_t i = 0; i < n; i++) tarn_tensor_set(t, i, (tarn_value){.i = v[i]});
  return t;
}

static const tarn_tensor *expected(tarn_ctx *cx, const char *name) {
  return tarn_tensor_read(cx, tarn_format(cx, DATA "/%s.npy", name));
}

/* ---------------------------------------------------------------- types */

static void same_rows(const char *what, const tarn_tensor *is, const tarn_tensor *want,
                      const int64_t *row, int64_t rows) {
  int64_t width = want->dim[1];
  ck_assert_msg(is->dim[0] == rows && is->dim[1] == width, "%s: another shape", what);
  for (int64_t i = 0; i < rows * width; i++) {
    double a = tarn_tensor_number(is, i);
    double b = tarn_tensor_number(want, row[i / width] * width + i % width);
    ck_assert_msg(a == b, "%s: element %lld is %.9g, not %.9g", what, (long long)i, a, b);
  }
}

/* To the last bit. The architecture "types" lies beside the file. */
static void check_types(tarn_ctx *cx, void *arg) {
  static const int64_t all[] = {0, 1, 2}, some[] = {2, 0};
  (void)arg;
  tarn_program *p = load(cx, "types", 0, 0, NULL);
  tarn_binding in = {"index", integers(cx, 1, some, 2)};
  tarn_tensor **out = run(cx, p, &in, 1, TARN_STRICT);
  ck_assert_uint_eq(p->nout, 22);
  for (uint32_t i = 0; i < p->nout; i++) {
    bool rows = strncmp(p->out[i].name, "rows.", 5) == 0;
    const tarn_tensor *want = expected(cx, strchr(p->out[i].name, '.') + 1);
    same_rows(p->out[i].name, out[i], want, rows ? some : all, rows ? 2 : 3);
  }
}
START_TEST(types) { in_context(check_types, NULL); }
END_TEST

static void compile_types(tarn_ctx *cx, void *arg) {
  static const int64_t some[] = {2, 0};
  (void)arg;
  tarn_program *p = load(cx, "types", 0, 0, NULL);
  tarn_binding in = {"index", integers(cx, 1, some, 2)};
  pipeline_try(pipeline_optimise(p, tarn_hw_host(p->L, false)), &in, "types");
}
START_TEST(types_compiled) { in_context(compile_types, NULL); }
END_TEST

/* ---------------------------------------------------------------- architectures */

enum { TOKENS = 7, FIRST = 5 };
static const int64_t tokens[TOKENS] = {1, 17, 30, 8, 8, 41, 5}, places[] = {0, 1, 2, 3, 4, 5, 6};

/* Logits of the tokens from `from` on. */
static void same_logits(const char *name, const tarn_tensor *is, const tarn_tensor *want,
                        int64_t from) {
  int64_t words = want->dim[2], n = tarn_tensor_count(is);
  double most = 0, largest = 0;
  ck_assert_int_eq(is->dim[2], words);
  ck_assert_int_le(from * words + n, tarn_tensor_count(want));
  for (int64_t i = 0; i < n; i++) {
    double b = tarn_tensor_number(want, from * words + i);
    most = fmax(most, fabs(tarn_tensor_number(is, i) - b));
    largest = fmax(largest, fabs(b));
  }
  ck_assert_msg(largest > 1 && most < 1e-5 * largest, "%s: logits differ by %g of %g", name, most,
                largest);
}

typedef struct net {
  const char *name;
  bool grows; /* what is in the cache is what it would be without one */
} net;
static const net nets[] = {{"llama", true}, {"qwen2", true}, {"qwen3", true},
                           {"gemma", true}, {"phi3", true},  {"phi3-long", false}};

/* What is in the cache behind an input; before NULL: nothing, of that type. */
static const tarn_tensor *cached(tarn_ctx *cx, const tarn_program *p, const tarn_io *in,
                                 const tarn_program *before, tarn_tensor *const *cache) {
  const tarn_type *t = tarn_type_get(p->L, in->type);
  const char *present = tarn_format(cx, "present.%s", in->name + strlen("past_key_values."));
  for (uint32_t k = 0; before && k < before->nout; k++)
    if (strcmp(before->out[k].name, present) == 0) return cache[k];
  ck_assert_ptr_null(before);
  return tarn_tensor_new(cx, t->dtype, t->n, t->dim);
}

/* The tokens from `from` on. */
static tarn_tensor **step(tarn_ctx *cx, const net *n, int64_t from, int64_t length,
                          const tarn_program *before, tarn_tensor *const *cache) {
  tarn_model_report report;
  tarn_program *p = load(cx, n->name, length, from, &report);
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  ck_assert_str_eq(report.format, "gguf");
  ck_assert_str_eq(p->out[0].name, "logits");
  for (uint32_t i = 0; i < p->nin; i++) {
    const char *name = p->in[i].name;
    const int64_t *v = strcmp(name, "input_ids") == 0 ? tokens : places;
    bool past = strncmp(name, "past_key_values.", 16) == 0;
    in[i] = (tarn_binding){name, past ? cached(cx, p, &p->in[i], before, cache)
                                      : integers(cx, 2, v + from, length)};
  }
  return run(cx, p, in, p->nin, TARN_STRICT);
}

static void check_net(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  const tarn_tensor *want = expected(cx, n->name);
  same_logits(n->name, step(cx, n, 0, TOKENS, NULL, NULL)[0], want, 0);
  if (!n->grows) return;
  tarn_tensor **first = step(cx, n, 0, FIRST, NULL, NULL);
  const tarn_program *before = load(cx, n->name, FIRST, 0, NULL);
  same_logits(n->name, first[0], want, 0);
  tarn_tensor **rest = step(cx, n, FIRST, TOKENS - FIRST, before, first);
  same_logits(n->name, rest[0], want, FIRST);
}
START_TEST(architectures) { in_context_of(nets[_i].name, check_net, &nets[_i]); }
END_TEST

/* ---------------------------------------------------------------- what is wrong */

typedef struct image {
  char *p;
  size_t n;
} image;

static void add(tarn_buf *b, uint64_t v, unsigned bytes) {
  char c[8];
  for (unsigned i = 0; i < bytes; i++) c[i] = (char)(v >> (8 * i));
  tarn_buf_add(b, c, bytes);
}
static void add_text(tarn_buf *b, const char *s) {
  add(b, strlen(s), 8);
  tarn_buf_str(b, s);
}
typedef struct wrong {
  const char *what;
  uint32_t version, type, dims;
  uint64_t tensors, keys, dim, offset, alignment;
  uint32_t kind; /* of a further key's value; 0: there is none */
  uint64_t count;
  const char *architecture, *key, *message;
} wrong;
enum { U32 = 4, STRING = 8, ARRAY = 9 };

/* A file of one tensor; what is 0 is what it should be. */
static void build(tarn_buf *b, const wrong *w) {
  uint32_t keys = 2 + (w->kind != 0);
  tarn_buf_str(b, "GGUF");
  add(b, w->version ? w->version : 3, 4);
  add(b, w->tensors ? w->tensors : 1, 8), add(b, w->keys ? w->keys : keys, 8);
  add_text(b, "general.architecture"), add(b, STRING, 4);
  add_text(b, w->architecture ? w->architecture : "llama");
  add_text(b, "general.alignment"), add(b, U32, 4), add(b, w->alignment ? w->alignment : 32, 4);
  if (w->kind) {
    add_text(b, w->key ? w->key : "tokens"), add(b, w->kind, 4);
    if (w->kind == ARRAY) add(b, U32, 4);
    add(b, w->count, w->kind == U32 ? 4 : 8);
  }
  add_text(b, "token_embd.weight"), add(b, w->dims ? w->dims : 2, 4);
  add(b, w->dim ? w->dim : 32, 8), add(b, 2, 8), add(b, w->type, 4), add(b, w->offset, 8);
  while (b->n % 32) add(b, 0, 1);
  for (unsigned i = 0; i < 32; i++) add(b, 0, 8);
}

static const wrong wrongs[] = {
    {.what = "no keys", .message = "key llama.block_count is missing"},
    {.what = "version", .version = 4, .message = "its head: version 4; 2 and 3 are known"},
    {.what = "big", .version = 3u << 24, .message = "its head: its numbers are big-endian"},
    {.what = "tensors", .tensors = 1000000000, .message = "its tensors: more than the file has"},
    {.what = "tensors", .tensors = UINT64_MAX, .message = "its tensors: more than the file has"},
    {.what = "keys", .keys = 1000000000, .message = "its keys: more than the file has bytes for"},
    {.what = "array", .kind = ARRAY, .count = UINT64_MAX / 4, .message = "tokens: more items than"},
    {.what = "text", .kind = STRING, .count = 1 << 20, .message = "tokens: the file ends before"},
    {.what = "kind", .kind = 77, .message = "tokens: a value of unknown type"},
    {.what = "twice",
     .kind = U32,
     .key = "general.alignment",
     .message = "general.alignment: the name occurs twice"},
    {.what = "dims",
     .dims = 5,
     .message = "tensor token_embd.weight: it does not have 1 to 4 dims"},
    {.what = "dim", .dim = UINT64_MAX / 3, .message = "the product of its dims is no size"},
    {.what = "dim", .dim = (uint64_t)1 << 62, .message = "the product of its dims is no size"},
    {.what = "beyond", .offset = 512, .message = "its offset lies beyond the end of the file"},
    {.what = "beyond", .offset = 32 * 7, .message = "the file ends before it does"},
    {.what = "offset", .offset = 8, .message = "its offset is not aligned"},
    {.what = "alignment", .alignment = 24, .message = "general.alignment: it is no power of two"},
    {.what = "type", .type = 77, .message = "elements of type 77 are not supported"},
    {.what = "named", .type = 10, .message = "elements of type Q2_K, 10 are not supported"},
    {.what = "blocks",
     .type = 14,
     .message = "rows of 32 elements are not in blocks of 256, as Q6"},
    {.what = "split", .kind = U32, .key = "split.count", .count = 3, .message = "one of 3 parts"},
    {.what = "architecture",
     .architecture = "mamba",
     .message =
         "architecture 'mamba' is not known; known are gemma, llama, phi3, qwen2, qwen3, and "
         "what a text describes that lies in " DATA "/mamba.arch"},
    {.what = "path", .architecture = "../x", .message = "architecture '../x' is not known"},
    {.what = "helper", .architecture = "decoder", .message = "architecture 'decoder' is not known"},
};

static void load_bytes(tarn_ctx *cx, void *arg) {
  const image *i = arg;
  tarn_model_load_bytes(tarn_lang_new(cx), i->p, i->n, "input", DATA, NULL, NULL);
}
static void check_wrong(tarn_ctx *cx, void *arg) {
  const wrong *w = arg;
  tarn_buf b = {.cx = cx};
  build(&b, w);
  image i = {b.p, b.n};
  tarn_status st = tarn_protect(cx, load_bytes, &i);
  ck_assert_int_eq(st, TARN_BAD_INPUT);
  const char *m = tarn_message(cx);
  ck_assert_msg(strstr(m, w->message) && strncmp(m, "input: ", 7) == 0, "it says: %s", m);
}
START_TEST(wrong_files) { in_context_of(wrongs[_i].what, check_wrong, &wrongs[_i]); }
END_TEST

/* A file that changes the computation in a way that the text does not know is refused. */
static const struct {
  const char *from, *to, *message; /* in the file of llama, of equal lengths */
} variants[] = {
    {"llama.context_length", "llama.attention.slid", "knows no key llama.attention.slid: the file"},
    {"blk.0.attn_q.weight", "blk.0.attn_q.wei@ht", "tensor blk.0.attn_q.weight is missing"},
    {"rope_freqs.weight", "rope_frequ.weight", "does nothing with tensor rope_frequ.weight: the"},
    {"llama.block_count", "llama.block_c@unt", "key llama.block_count is missing"},
};
static void check_variant(tarn_ctx *cx, void *arg) {
  uint32_t k = *(const int *)arg & 7;
  size_t n, len = strlen(variants[k].from);
  char *p = tarn_read_file(cx, DATA "/llama.gguf", &n), *at = NULL;
  for (size_t i = 0; i + len < n; i++)
    if (memcmp(p + i, variants[k].from, len) == 0) at = p + i;
  ck_assert_ptr_nonnull(at);
  memcpy(at, variants[k].to, len);
  image i = {p, n};
  ck_assert_int_eq(tarn_protect(cx, load_bytes, &i), TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), variants[k].message), "it says: %s", tarn_message(cx));
}
START_TEST(other_variants) { in_context(check_variant, &_i); }
END_TEST

static void load_net(tarn_ctx *cx, void *arg) { load(cx, arg, 2, 3, NULL); }
START_TEST(allocations) {
  uint64_t bad;
  tarn_test_fail_each(load_net, (void *)(uintptr_t) "phi3", 1, &bad);
  ck_assert_uint_eq(bad, 0);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("gguf");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, types);
  tcase_add_test(t, types_compiled);
  tcase_add_loop_test(t, architectures, 0, sizeof nets / sizeof *nets);
  tcase_add_loop_test(t, wrong_files, 0, sizeof wrongs / sizeof *wrongs);
  tcase_add_loop_test(t, other_variants, 0, sizeof variants / sizeof *variants);
  tcase_add_test(t, allocations);
  return run_checks("gguf", t);
}
