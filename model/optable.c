/* The table of operators, from ops.def. */
#include "model/import.h"
#include <stdlib.h>
#include <string.h>

static const im_op table[] = {
#define PLAIN  IM_PLAIN
#define WIDE   0
#define STORED IM_STORED
#define MOVES  (IM_PLAIN | IM_MOVES)
#define ONNX(name, lo, hi, handler, min, max, floats)                                              \
  {"", #name, lo, hi, im_do_##handler, min, max, floats},
#define MICROSOFT(name, handler, min, max, floats)                                                 \
  {"com.microsoft", #name, 1, 999, im_do_##handler, min, max, floats},
#define GGML(name, handler, min, max, floats)                                                      \
  {"ggml", #name, 1, 1, im_do_##handler, min, max, floats},
#include "model/ops.def"
#undef ONNX
};

static bool is_row(const im_op *row, const char *domain, const char *name) {
  return strcmp(row->name, name) == 0 && strcmp(row->domain, domain) == 0;
}

const im_op *im_op_find(const char *domain, const char *name, int64_t version) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (is_row(&table[i], domain, name) && version >= table[i].lo && version <= table[i].hi)
      return &table[i];
  return NULL;
}

int64_t im_newest_set(const char *domain) {
  static const struct {
    const char *domain;
    int64_t set;
  } newest[] = {{"", 28}, {"com.microsoft", 1}, {"ggml", 1}};
  for (size_t i = 0; i < sizeof newest / sizeof *newest; i++)
    if (strcmp(newest[i].domain, domain) == 0) return newest[i].set;
  return INT64_MAX;
}

enum { BEYOND = 999 }; /* ANY of ops.def: every later set */
const char *im_op_sets(tarn_ctx *cx, const char *domain, const char *name) {
  tarn_buf b = {.cx = cx};
  int to = -1; /* of the row before */
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (!is_row(&table[i], domain, name)) continue;
    if (table[i].lo != to + 1) {
      if (to >= 0) tarn_buf_fmt(&b, " to %d, ", to);
      tarn_buf_fmt(&b, "%d", table[i].lo);
    }
    to = table[i].hi;
  }
  if (to >= BEYOND) tarn_buf_str(&b, " and later");
  else if (to >= 0) tarn_buf_fmt(&b, " to %d", to);
  return b.p;
}

/* ---------------------------------------------------------------- the table, for people */

static tarn_op_support support_of(const im_op *row) {
  static const struct {
    im_handler *run;
    tarn_op_support support;
  } others[] = {{im_do_opaque, TARN_OP_REFERENCE},
                {im_do_data_dependent, TARN_OP_CONSTANT},
                {im_do_random, TARN_OP_REFUSED},
                {im_do_unsupported, TARN_OP_REFUSED}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (others[i].run == row->run) return others[i].support;
  return TARN_OP_AS_TERMS;
}
bool im_op_is_refused(const im_op *row) { return support_of(row) == TARN_OP_REFUSED; }

static int by_domain_and_name(const void *a, const void *b) {
  const tarn_known_op *x = a, *y = b;
  int d = strcmp(x->domain, y->domain);
  return d ? d : strcmp(x->name, y->name);
}
uint32_t tarn_known_ops(tarn_ctx *cx, const tarn_known_op **op) {
  TARN_VEC(tarn_known_op) v = {0};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const im_op *r = &table[i];
    const char *sets = im_op_sets(cx, r->domain, r->name);
    tarn_push(cx, &v, ((tarn_known_op){r->domain, r->name, sets, support_of(r)}));
  }
  qsort(v.p, v.n, sizeof *v.p, by_domain_and_name);
  uint32_t n = 0;
  for (uint32_t i = 0; i < v.n; i++) /* rows of one name need not stand together */
    if (!n || by_domain_and_name(&v.p[n - 1], &v.p[i])) v.p[n++] = v.p[i];
  *op = v.p;
  return n;
}
