/* Tensor comprehensions: random definitions against a direct interpreter of the language
 * (tc_direct.h), and broken ones, which are refused with a place.
 *
 *   test_tc [--all]      a few hundred of each; --all: 10,000 of each; one in a hundred is compiled
 *   test_tc SEED         prints one random definition, and what is different */
#include "access/judge.h"
#include "tests/context.h"
#include "tests/pipeline.h"
#include "tests/tc_direct.h"
#include <stdio.h>
#include <stdlib.h>

static bool all;

/* ---------------------------------------------------------------- random definitions */

typedef struct known {
  char name[16];
  tarn_dtype t;
  uint32_t rank;
  bool param, written;
} known;
typedef struct maker {
  uint64_t state;
  tarn_buf text;
  uint32_t nknown, nindex, nleft;
  known k[32];
  int64_t size[3];
  bool used[8], plain[8]; /* of the indices of this statement */
} maker;

static const char *const indices[] = {"i", "j", "k", "l", "m", "n", "o", "p"};
static const char *const sizes[] = {"A", "B", "C"};

static uint32_t pick(maker *m, uint32_t n) { return (uint32_t)(tarn_random(&m->state) >> 33) % n; }
static bool chance(maker *m, uint32_t percent) { return pick(m, 100) < percent; }
static void put(maker *m, const char *s) { tarn_buf_str(&m->text, s); }

static uint32_t index_in(maker *m) {
  uint32_t i = pick(m, m->nindex);
  m->used[i] = true;
  return i;
}

static void data_subscript(maker *m);
static void subscript(maker *m, bool table) {
  uint32_t kind = pick(m, 100);
  if (!m->nindex || kind < 4) {
    put(m, "0");
    return;
  }
  if (kind < 14 && table) {
    data_subscript(m);
    return;
  }
  uint32_t i = index_in(m);
  if (kind < 70) {
    m->plain[i] = true;
    put(m, indices[i]);
  } else if (kind < 80) {
    tarn_buf_fmt(&m->text, "%s + %s", indices[i], indices[index_in(m)]);
  } else if (kind < 86) {
    tarn_buf_fmt(&m->text, "2 * %s + %s", indices[i], indices[index_in(m)]);
  } else if (kind < 92) {
    tarn_buf_fmt(&m->text, "%s / 2", indices[i]);
  } else {
    tarn_buf_fmt(&m->text, "%s - 1 - %s", sizes[pick(m, 3)], indices[i]);
  }
}

static void read_of(maker *m, const known *k, bool data) {
  put(m, k->name);
  for (uint32_t d = 0; d < k->rank; d++) {
    put(m, d ? "," : "(");
    subscript(m, data && k->param && !k->written);
  }
  if (k->rank) put(m, ")");
}

/* A parameter of whole numbers, which are 0 or 1. */
static void data_subscript(maker *m) {
  for (uint32_t i = 0; i < m->nknown; i++)
    if (m->k[i].t == TARN_I32 && m->k[i].param && !m->k[i].written) {
      read_of(m, &m->k[i], false);
      return;
    }
  put(m, "1");
}

static void leaf(maker *m) {
  uint32_t kind = pick(m, 100);
  if (kind < 65) read_of(m, &m->k[pick(m, m->nknown)], true);
  else if (kind < 75) tarn_buf_fmt(&m->text, "%u", pick(m, 5));
  else if (kind < 85) tarn_buf_fmt(&m->text, "%u.%u", pick(m, 3), 1 + 2 * pick(m, 5));
  else if (kind < 93 && m->nindex) put(m, indices[index_in(m)]);
  else put(m, sizes[pick(m, 3)]);
}

static void expression(maker *m, int depth) {
  static const char *const op[] = {" + ", " - ", " * ", " / ", " < ", " >= ", " == ", " && "};
  static const char *const fn[] = {"fmax", "fmin", "relu", "abs", "tanh", "float", "int"};
  uint32_t kind = depth ? pick(m, 100) : 0;
  if (kind < 30) {
    leaf(m);
  } else if (kind < 70) {
    bool brackets = chance(m, 70);
    if (brackets) put(m, "(");
    expression(m, depth - 1);
    put(m, op[pick(m, chance(m, 80) ? 3 : 8)]);
    expression(m, depth - 1);
    if (brackets) put(m, ")");
  } else if (kind < 85) {
    uint32_t f = pick(m, 7);
    tarn_buf_fmt(&m->text, "%s(", fn[f]);
    expression(m, depth - 1);
    if (f < 2) put(m, ", "), expression(m, depth - 1);
    put(m, ")");
  } else if (kind < 93) {
    put(m, "-");
    expression(m, depth - 1);
  } else {
    put(m, "(");
    expression(m, depth - 1);
    put(m, " > 0 ? ");
    expression(m, depth - 1);
    put(m, " : ");
    expression(m, depth - 1);
    put(m, ")");
  }
}

static void ranges(maker *m) {
  bool first = true;
  for (uint32_t i = 0; i < m->nindex; i++) {
    bool needed = (i < m->nleft || m->used[i]) && !m->plain[i];
    if (!(needed ? chance(m, 96) : m->used[i] && chance(m, 4))) continue;
    bool part = chance(m, 5);
    tarn_buf_fmt(&m->text, "%s%s in %u:%u", first ? " where " : ", ", indices[i], part ? 1 : 0,
                 part ? 2 : 1 + pick(m, 2));
    first = false;
  }
}

/* T(I(…),…) summed over an index of I, where there are such parameters. */
static bool rows(maker *m) {
  const known *index = NULL, *table = &m->k[0];
  for (uint32_t i = 0; i < m->nknown; i++)
    if (m->k[i].t == TARN_I32 && m->k[i].rank && m->k[i].rank < 3 && m->k[i].param)
      index = &m->k[i];
  if (!index || chance(m, 80)) return false;
  known *left = &m->k[m->nknown];
  *left = (known){.t = TARN_F32, .rank = index->rank + 1, .written = true};
  snprintf(left->name, sizeof left->name, "t%u", m->nknown++ & 31);
  bool turned = chance(m, 30), part = chance(m, 20);
  tarn_buf_fmt(&m->text, "  %s(%s%s) +=! %s(%s(%sr),%s)%s\n", left->name,
               index->rank > 1 ? "i," : "", turned ? "k,j" : "j,k", table->name, index->name,
               index->rank > 1 ? "i," : "", turned ? "k,j" : "j,k",
               part ? " where r in 0:1, k in 0:2" : "");
  return true;
}

static void statement(maker *m) {
  if (rows(m)) return;
  static const char *const how[] = {"=", "+=!", "+=", "-=!", "*=!", "max=!", "min=!", "max=", "-="};
  known *left = &m->k[pick(m, m->nknown)];
  bool fresh = left->param || chance(m, 60);
  uint32_t h = pick(m, fresh ? 7 : 9);
  if (fresh && h == 2) h = 1;
  memset(m->used, 0, sizeof m->used);
  memset(m->plain, 0, sizeof m->plain);
  if (fresh) {
    left = &m->k[m->nknown];
    *left = (known){.t = TARN_F32, .rank = pick(m, 4), .written = true};
    snprintf(left->name, sizeof left->name, "t%u", m->nknown);
  }
  m->nleft = left->rank;
  m->nindex = left->rank + (h ? pick(m, 3) : 0);
  tarn_buf_fmt(&m->text, "  %s", left->name);
  for (uint32_t d = 0; d < left->rank; d++)
    tarn_buf_fmt(&m->text, "%s%s", d ? "," : "(", indices[d]);
  tarn_buf_fmt(&m->text, "%s %s ", left->rank ? ")" : "", how[h]);
  expression(m, 3);
  ranges(m);
  put(m, chance(m, 10) ? " # a remark\n" : "\n");
  m->nknown += fresh;
}

static void definition(maker *m) {
  static const char *const types[] = {"float", "float", "double", "int"};
  static const tarn_dtype dtypes[] = {TARN_F32, TARN_F32, TARN_F64, TARN_I32};
  for (int i = 0; i < 3; i++) m->size[i] = 2 + pick(m, 4);
  uint32_t params = 1 + pick(m, 4);
  put(m, "def f(float(A,B,C) p0");
  m->k[m->nknown++] = (known){.name = "p0", .rank = 3, .param = true};
  for (uint32_t i = 1; i < params; i++) {
    uint32_t t = pick(m, 4), rank = pick(m, 4);
    known *k = &m->k[m->nknown++];
    *k = (known){.t = dtypes[t], .rank = rank, .param = true};
    snprintf(k->name, sizeof k->name, "p%u", i);
    tarn_buf_fmt(&m->text, ", %s", types[t]);
    for (uint32_t d = 0; d < rank; d++)
      tarn_buf_fmt(&m->text, "%s%s", d ? "," : "(", sizes[pick(m, 3)]);
    tarn_buf_fmt(&m->text, "%s %s", rank ? ")" : "", k->name);
  }
  put(m, ") -> (RESULTS) {\n");
  uint32_t n = 1 + pick(m, 5);
  for (uint32_t i = 0; i < n; i++) statement(m);
  put(m, "}\n");
}

/* The text, with results among what is written. */
static const char *finished(maker *m) {
  const char *at = strstr(m->text.p, "RESULTS");
  char names[32] = "";
  uint32_t last = m->nknown - 1, other = pick(m, m->nknown);
  bool two = other != last && !m->k[other].param;
  snprintf(names, sizeof names, "%s%s%s", m->k[last].name, two ? ", " : "",
           two ? m->k[other].name : "");
  return tarn_format(m->text.cx, "%.*s%s%s", (int)(at - m->text.p), m->text.p, names, at + 7);
}

/* ---------------------------------------------------------------- both sides */

typedef struct subject {
  maker m;
  const char *text;
  tarn_model_options o;
  tarn_shape_binding shape[3];
  tarn_program *p;
  tarn_binding in[16];
  tarn_tensor *out[8];
} subject;

static void begin(subject *s, tarn_ctx *cx, uint64_t seed) {
  *s = (subject){.m = {.state = seed, .text = {.cx = cx}}};
  definition(&s->m);
  s->text = finished(&s->m);
  for (int i = 0; i < 3; i++) s->shape[i] = (tarn_shape_binding){sizes[i], 1, &s->m.size[i], NULL};
  s->o = (tarn_model_options){.nshape = 3, .shape = s->shape};
}

static void import(tarn_ctx *cx, void *arg) {
  subject *s = arg;
  s->p = tarn_comprehension(tarn_lang_new(cx), s->text, strlen(s->text), "fuzz.tc", &s->o, NULL);
}

static void evaluate(tarn_ctx *cx, void *arg) {
  subject *s = arg;
  (void)cx;
  tarn_term root[8];
  for (uint32_t i = 0; i < s->p->nout; i++) root[i] = s->p->out[i].term;
  tarn_eval(s->p->L, root, s->p->nout, s->in, s->p->nin, TARN_STRICT, NULL, s->out);
}

/* Of every parameter a value: whole numbers are 0 or 1. */
static void direct(tarn_ctx *cx, subject *s, dt *x) {
  const tc_text *t = tc_read(cx, s->text, strlen(s->text), "fuzz.tc");
  *x = (dt){.cx = cx};
  for (int i = 0; i < 3; i++) x->size[i].name = sizes[i], x->size[i].v = s->m.size[i];
  x->nsize = 3;
  for (uint32_t i = 0; i < t->def->nparam; i++) {
    const tc_param *p = &t->def->param[i];
    int64_t dim[TARN_MAX_DIMS];
    for (uint32_t d = 0; d < p->n; d++) dt_size(x, p->extent[d]->name, &dim[d]);
    tarn_domain domain = {0, 1};
    tarn_tensor *v = tarn_random_tensor(cx, p->type, p->n, dim, domain, &s->m.state);
    x->tensor[x->ntensor++] = (dt_tensor){p->of.name, v};
    s->in[i] = (tarn_binding){p->of.name, v};
  }
  for (uint32_t i = 0; !x->why && i < t->def->nstmt; i++) { dt_statement(x, &t->def->stmt[i]); }
}

static bool close_to(double a, double b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  bool finite = isfinite(a) && isfinite(b);
  return a == b || (finite && fabs(a - b) <= 1e-5 * fmax(fabs(a), fabs(b)) + 1e-6);
}

static const char *difference(tarn_ctx *cx, const char *name, const tarn_tensor *a,
                              const tarn_tensor *b) {
  bool same = a->n == b->n && a->dtype == b->dtype;
  for (uint32_t d = 0; same && d < a->n; d++) same = a->dim[d] == b->dim[d];
  if (!same)
    return tarn_format(cx, "%s is %s, %s is right", name,
                       tarn_dims_text(cx, a->dtype, a->n, a->dim),
                       tarn_dims_text(cx, b->dtype, b->n, b->dim));
  for (int64_t i = 0; i < tarn_tensor_count(a); i++)
    if (!close_to(tarn_tensor_number(a, i), tarn_tensor_number(b, i)))
      return tarn_format(cx, "%s[%lld] is %.9g, %.9g is right", name, (long long)i,
                         tarn_tensor_number(a, i), tarn_tensor_number(b, i));
  return NULL;
}

/* FILE:LINE:COL: with both in the text. */
static bool placed(const char *message, const char *text) {
  unsigned line, col, rows = 1;
  if (sscanf(message, "fuzz.tc:%u:%u: ", &line, &col) != 2) return false;
  for (const char *p = text; *p; p++) rows += *p == '\n';
  return line >= 1 && line <= rows && col >= 1 && col <= strlen(text) + 1;
}

/* Optimised and compiled; judged by what rounding does to it. */
static void compile(tarn_ctx *cx, void *arg) {
  subject *s = arg;
  (void)cx;
  pipeline_try(pipeline_optimise(s->p, tarn_hw_host(s->p->L, false)), s->in, "fuzz.tc");
}

enum { VALID, INVALID, NEITHER };
/* *what: what is wrong with the importer, or NULL. */
static int judge(tarn_ctx *cx, uint64_t seed, bool compiled, const char **what, subject *s) {
  dt x;
  *what = NULL;
  begin(s, cx, seed);
  direct(cx, s, &x);
  if (x.why && !strcmp(x.why, "empty")) return NEITHER;
  tarn_status st = tarn_protect(cx, import, s);
  if (x.why) {
    if (st != TARN_BAD_INPUT) *what = tarn_format(cx, "not refused: %s", x.why);
    else if (!placed(tarn_message(cx), s->text)) *what = tarn_strdup(cx, tarn_message(cx));
    return INVALID;
  }
  if (st != TARN_OK) *what = tarn_format(cx, "refused: %s", tarn_message(cx));
  if (st != TARN_OK) return VALID;
  st = tarn_protect(cx, evaluate, s);
  if (x.outside != (st != TARN_OK))
    *what = tarn_format(cx, "%s: %s", x.outside ? "not out of bounds" : "fails", tarn_message(cx));
  for (uint32_t i = 0; st == TARN_OK && !*what && i < s->p->nout; i++)
    *what = difference(cx, s->p->out[i].name, s->out[i], dt_find(&x, s->p->out[i].name)->v);
  if (compiled && st == TARN_OK && !*what && tarn_protect(cx, compile, s) != TARN_OK)
    *what = tarn_strdup(cx, tarn_message(cx));
  return VALID;
}

typedef struct count {
  uint32_t valid, invalid, of;
  uint64_t seed;
  const char *what;
  char text[4096];
} count;
static void one(tarn_ctx *cx, void *arg) {
  count *c = arg;
  subject s;
  int is = judge(cx, c->seed, c->seed % 97 == 0, &c->what, &s); /* about one in a hundred */
  c->valid += is == VALID;
  c->invalid += is == INVALID;
  if (c->what) snprintf(c->text, sizeof c->text, "%s\n%s", c->what, s.text);
}

START_TEST(random_definitions) {
  count c = {.of = all ? 10000 : 400};
  for (c.seed = 1; c.valid < c.of; c.seed++) {
    in_context(one, &c);
    ck_assert_msg(!c.what, "seed %llu: %s", (unsigned long long)c.seed, c.text);
    ck_assert_uint_lt(c.seed, 20 * c.of);
  }
  ck_assert_uint_gt(c.invalid, c.of / 20);
}
END_TEST

/* ---------------------------------------------------------------- broken texts */

static void mutate(maker *m, char *s) {
  static const char set[] = "(){},:=+-*/%<>!?.ijkABCp0123 \nwhere def";
  size_t n = strlen(s), at = n ? pick(m, (uint32_t)n) : 0, k = 1 + pick(m, 4);
  switch (pick(m, 4)) {
  case 0: s[at] = set[pick(m, sizeof set - 1)]; break;
  case 1:
    memmove(s + at, s + tarn_min((int64_t)(at + k), (int64_t)n),
            n + 1 - (size_t)tarn_min((int64_t)(at + k), (int64_t)n));
    break;
  case 2:
    memmove(s + at + 1, s + at, n - at + 1);
    s[at] = set[pick(m, sizeof set - 1)];
    break;
  default: {
    size_t from = pick(m, (uint32_t)n);
    if (from + k < n && at + k < n) memmove(s + at, s + from, k);
  }
  }
}

static void broken(tarn_ctx *cx, void *arg) {
  count *c = arg;
  subject s;
  begin(&s, cx, c->seed);
  char *text = tarn_strndup(cx, tarn_format(cx, "%s        ", s.text), strlen(s.text) + 8);
  text[strlen(s.text)] = 0;
  for (uint32_t i = 0, n = 1 + pick(&s.m, 3); i < n; i++) mutate(&s.m, text);
  s.text = text;
  if (tarn_protect(cx, import, &s) == TARN_OK) return;
  const char *why = tarn_message(cx);
  bool option = strstr(why, "--shape") && !placed(why, text);
  c->invalid += !option;
  if (option || placed(why, text)) return;
  c->what = "no place";
  snprintf(c->text, sizeof c->text, "%s\n%s", why, text);
}

START_TEST(broken_texts) {
  count c = {.of = all ? 10000 : 400};
  for (c.seed = 1; c.invalid < c.of; c.seed++) {
    in_context(broken, &c);
    ck_assert_msg(!c.what, "seed %llu: %s", (unsigned long long)c.seed, c.text);
    ck_assert_uint_lt(c.seed, 20 * c.of);
  }
}
END_TEST

static void show(tarn_ctx *cx, void *arg) {
  const char *what;
  subject s;
  int is = judge(cx, *(uint64_t *)arg, true, &what, &s);
  printf("%s%s\n%s\n", s.text,
         is == VALID     ? "valid"
         : is == INVALID ? "invalid"
                         : "empty",
         what ? what : "as it should be");
}

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "--all");
  if (argc > 1 && !all) {
    uint64_t seed = strtoull(argv[1], NULL, 10);
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_status st = tarn_protect(cx, show, &seed);
    tarn_ctx_free(cx);
    return (int)st;
  }
  TCase *t = tcase_create("tc");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, random_definitions);
  tcase_add_test(t, broken_texts);
  return run_checks("tc", t);
}
