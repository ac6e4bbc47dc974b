/* What the tests of rules/ share: small networks as text with random weights, and the check that
 * every e-node of a saturated graph has the value of its class. */
#ifndef TARN_TESTS_RULES_KIT_H
#define TARN_TESTS_RULES_KIT_H
#include "model/model.h"
#include "rules/rules.h"
#include "tests/onnx_text.h"
#include <math.h>
#include <stdio.h>

static inline uint64_t kit_random(uint64_t *s) {
  *s += 0x9E3779B97F4A7C15u;
  uint64_t z = (*s ^ (*s >> 30)) * 0xBF58476D1CE4E5B9u;
  return z ^ (z >> 31);
}
static inline double kit_uniform(uint64_t *s) {
  return (double)(kit_random(s) >> 11) / 4503599627370496.0 - 1;
}

static inline int64_t kit_count(const char *dims) {
  int64_t n = 1;
  for (const char *p = dims; *p; p += strcspn(p, ","), p += *p == ',') n *= strtoll(p, NULL, 10);
  return n;
}

/* Lines `rand NAME DIMS` become initialisers with random numbers, `pos NAME DIMS` with positive
 * ones. */
static inline uint8_t *kit_model_bytes(tarn_ctx *cx, const char *text, size_t *n) {
  tarn_buf b = {.cx = cx};
  uint64_t seed = 7;
  for (const char *s = text; *s;) {
    size_t len = strcspn(s, "\n");
    char *line = tarn_strndup(cx, s, len), name[64], dims[64], what[16];
    if (sscanf(line, "%15s %63s %63s", what, name, dims) == 3 &&
        (!strcmp(what, "rand") || !strcmp(what, "pos"))) {
      tarn_buf_fmt(&b, "init %s f32 %s :", name, dims);
      for (int64_t i = kit_count(dims); i > 0; i--) {
        double v = kit_uniform(&seed);
        tarn_buf_fmt(&b, " %.4f", what[0] == 'p' ? fabs(v) + 0.5 : v);
      }
      tarn_buf_str(&b, "\n");
    } else tarn_buf_fmt(&b, "%s\n", line);
    s += len + (s[len] == '\n');
  }
  return onnx_model(cx, b.p, n);
}
static inline tarn_program *kit_model(tarn_lang *L, const char *text) {
  size_t n;
  uint8_t *bytes = kit_model_bytes(tarn_lang_ctx(L), text, &n);
  return tarn_model_load_bytes(L, bytes, n, "test", NULL, NULL, NULL);
}
/* Lines `bytes NAME TYPE DIMS` become initialisers with random bytes. */
static inline tarn_program *kit_model_of_bytes(tarn_lang *L, const char *text) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_buf b = {.cx = cx};
  uint64_t seed = 99;
  for (const char *s = text; *s;) {
    size_t len = strcspn(s, "\n");
    char *line = tarn_strndup(cx, s, len), name[64], type[16], dims[64];
    if (sscanf(line, "bytes %63s %15s %63s", name, type, dims) == 3) {
      tarn_buf_fmt(&b, "init %s %s %s :", name, type, dims);
      for (int64_t i = kit_count(dims); i > 0; i--)
        tarn_buf_fmt(&b, " %d", (int)(kit_random(&seed) % 256) - (type[0] == 'i' ? 128 : 0));
      tarn_buf_str(&b, "\n");
    } else tarn_buf_fmt(&b, "%s\n", line);
    s += len + (s[len] == '\n');
  }
  return kit_model(L, b.p);
}

static inline tarn_tensor *kit_values(tarn_ctx *cx, const tarn_type *t, uint64_t *seed) {
  tarn_tensor *x = tarn_tensor_new(cx, t->dtype, t->n, t->dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) {
    double u = kit_uniform(seed);
    tarn_value v;
    if (tarn_dtype_is_float(t->dtype)) v.d = u;
    else if (t->dtype == TARN_I8 || t->dtype == TARN_U8) v.i = (int64_t)(kit_random(seed) % 256);
    else v.i = (int64_t)(kit_random(seed) % (t->dtype == TARN_BOOL ? 2 : 3));
    tarn_tensor_set(x, i, v);
  }
  return x;
}

typedef struct kit_classes {
  tarn_saturation *s;
  tarn_egraph *g;
  tarn_lang *L;
  tarn_tensor **value; /* by class */
  uint64_t seed;
  uint32_t checked;
  double worst;
} kit_classes;

/* The value of one e-node from those of its kids' classes; NULL when one has none yet, or it is a
 * tuple. */
static inline tarn_tensor *kit_node(kit_classes *k, uint32_t node) {
  tarn_eg_node x = tarn_eg_node_at(k->g, node);
  tarn_ctx *cx = tarn_lang_ctx(k->L);
  if (x.op == TARN_OP_INPUT) {
    const tarn_type *t = tarn_type_get(k->L, tarn_sat_type(k->s, tarn_eg_find(k->g, node)));
    return kit_values(cx, t, &k->seed);
  }
  tarn_term *kid = TARN_ARRAY(cx, tarn_term, x.n + 1), t;
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, x.n + 1);
  for (uint32_t i = 0; i < x.n; i++) {
    uint32_t c = tarn_eg_find(k->g, x.kids[i]);
    const char *name = tarn_format(cx, "c%u", c);
    if (!k->value[c]) return NULL;
    kid[i] = tarn_input(k->L, name, tarn_sat_type(k->s, c));
    in[i] = (tarn_binding){name, k->value[c]};
  }
  t = tarn_mk(k->L, x.op, x.payload, kid, x.n);
  if (tarn_term_type(k->L, t)->tuple) return NULL;
  tarn_tensor *out;
  tarn_eval(k->L, &t, 1, in, x.n, TARN_STRICT, tarn_opaque_eval, &out);
  return out;
}

/* nth k of a nest: the tuple's kids are looked through. */
static inline tarn_tensor *kit_nth(kit_classes *k, uint32_t node) {
  tarn_eg_node x = tarn_eg_node_at(k->g, node);
  uint32_t tuple = tarn_eg_next_node(k->g, tarn_eg_find(k->g, x.kids[0]), TARN_NONE);
  tarn_eg_node y = tarn_eg_node_at(k->g, tuple);
  tarn_ctx *cx = tarn_lang_ctx(k->L);
  tarn_term *kid = TARN_ARRAY(cx, tarn_term, y.n + 1), t;
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, y.n + 1);
  for (uint32_t i = 0; i < y.n; i++) {
    uint32_t c = tarn_eg_find(k->g, y.kids[i]);
    const char *name = tarn_format(cx, "c%u", c);
    if (!k->value[c]) return NULL;
    kid[i] = tarn_input(k->L, name, tarn_sat_type(k->s, c));
    in[i] = (tarn_binding){name, k->value[c]};
  }
  t = tarn_mk(k->L, y.op, y.payload, kid, y.n);
  t = tarn_mk(k->L, TARN_OP_NTH, x.payload, &t, 1);
  tarn_tensor *out;
  tarn_eval(k->L, &t, 1, in, y.n, TARN_STRICT, tarn_opaque_eval, &out);
  return out;
}

static inline double kit_distance(const tarn_tensor *a, const tarn_tensor *b) {
  double most = 1e-3, diff = 0;
  bool real = tarn_dtype_is_float(a->dtype);
  for (int64_t i = 0; i < tarn_tensor_count(a); i++) {
    double x = real ? tarn_tensor_get(a, i).d : (double)tarn_tensor_get(a, i).i;
    double y = real ? tarn_tensor_get(b, i).d : (double)tarn_tensor_get(b, i).i;
    if (isnan(x) && isnan(y)) continue;
    if (isfinite(x)) most = fmax(most, fabs(x));
    if (x == y) continue;
    if (!isfinite(x - y)) return INFINITY;
    diff = fmax(diff, fabs(x - y));
  }
  return diff / most;
}

/* Every node of every class has the class's value: first values from the nodes that came first,
 * then all are compared. */
static inline void kit_check(kit_classes *k) {
  k->g = tarn_sat_egraph(k->s);
  k->L = tarn_sat_lang(k->s);
  k->value = TARN_ARRAY(tarn_lang_ctx(k->L), tarn_tensor *, tarn_eg_id_count(k->g));
  for (bool again = true; again;) {
    again = false;
    for (uint32_t c = tarn_eg_next_class(k->g, TARN_NONE); c != TARN_NONE;
         c = tarn_eg_next_class(k->g, c))
      for (uint32_t n = tarn_eg_next_node(k->g, c, TARN_NONE); n != TARN_NONE && !k->value[c];
           n = tarn_eg_next_node(k->g, c, n))
        if (tarn_eg_node_at(k->g, n).op != TARN_OP_NTH && (k->value[c] = kit_node(k, n)))
          again = true;
  }
  for (uint32_t c = tarn_eg_next_class(k->g, TARN_NONE); c != TARN_NONE;
       c = tarn_eg_next_class(k->g, c))
    for (uint32_t n = tarn_eg_next_node(k->g, c, TARN_NONE); n != TARN_NONE && k->value[c];
         n = tarn_eg_next_node(k->g, c, n)) {
      tarn_eg_node x = tarn_eg_node_at(k->g, n);
      if (x.op == TARN_OP_INPUT) continue;
      tarn_tensor *v = x.op == TARN_OP_NTH ? kit_nth(k, n) : kit_node(k, n);
      if (!v) continue;
      double d = kit_distance(k->value[c], v);
      k->checked++;
      k->worst = fmax(k->worst, d);
      if (d > 1e-4) {
        tarn_buf b = {.cx = tarn_lang_ctx(k->L)};
        for (uint32_t m = tarn_eg_next_node(k->g, c, TARN_NONE); m != TARN_NONE;
             m = tarn_eg_next_node(k->g, c, m)) {
          tarn_eg_node y = tarn_eg_node_at(k->g, m);
          tarn_buf_fmt(&b, "\n  %u (%s", m, tarn_op_info(y.op)->text);
          tarn_payload_print(k->L, &b, y.op, y.payload);
          for (uint32_t i = 0; i < y.n; i++) tarn_buf_fmt(&b, " %u", y.kids[i]);
        }
        ck_abort_msg("class %u: node %u is off by %g%s", c, n, d, b.p);
      }
    }
}

/* The cheapest tree of each class: its cost, and the node on top. */
typedef struct kit_trees {
  double *cost;
  uint32_t *pick;
} kit_trees;
/* own: of a node without its children. free: what is constant costs nothing. */
static inline kit_trees kit_cheapest(const tarn_saturation *s, bool free,
                                     double (*own)(const tarn_lang *L, tarn_eg_node x)) {
  tarn_egraph *g = tarn_sat_egraph(s);
  const tarn_lang *L = tarn_sat_lang(s);
  tarn_ctx *cx = tarn_lang_ctx(L);
  uint32_t ids = tarn_eg_id_count(g);
  kit_trees t = {TARN_ARRAY(cx, double, ids + 1), TARN_ARRAY(cx, uint32_t, ids + 1)};
  for (uint32_t c = 0; c < ids; c++) t.cost[c] = 1e9, t.pick[c] = TARN_NONE;
  for (bool again = true; again;) {
    again = false;
    for (uint32_t c = tarn_eg_next_class(g, TARN_NONE); c != TARN_NONE;
         c = tarn_eg_next_class(g, c))
      for (uint32_t n = tarn_eg_next_node(g, c, TARN_NONE); n != TARN_NONE;
           n = tarn_eg_next_node(g, c, n)) {
        tarn_eg_node x = tarn_eg_node_at(g, n);
        double sum = own(L, x);
        for (uint32_t i = 0; i < x.n; i++) sum += t.cost[tarn_eg_find(g, x.kids[i])];
        if (free && tarn_sat_is_const(s, c)) sum = 0;
        if (sum < t.cost[c]) t.cost[c] = sum, t.pick[c] = n, again = true;
      }
  }
  return t;
}
static inline double kit_is_kernel(const tarn_lang *L, tarn_eg_node x) {
  (void)L;
  return x.op == TARN_OP_NEST || x.op == TARN_OP_COMPUTE || x.op == TARN_OP_MATERIALISE ||
         x.op == TARN_OP_OPAQUE || x.op == TARN_OP_GATHER;
}
/* Fewest kernels, then fewest nodes. */
static inline double kit_few(const tarn_lang *L, tarn_eg_node x) {
  return kit_is_kernel(L, x) + 1e-4;
}
/* Kernels of the cheapest tree: nests and copies count 1, what is constant 0. */
static inline uint32_t kit_kernels(tarn_saturation *s, uint32_t root) {
  return (uint32_t)kit_cheapest(s, true, kit_is_kernel)
      .cost[tarn_eg_find(tarn_sat_egraph(s), root)];
}
static inline uint32_t *kit_picks(const tarn_saturation *s) {
  return kit_cheapest(s, false, kit_few).pick;
}
static inline uint32_t kit_picked(void *user, uint32_t cls) {
  return ((const uint32_t *)user)[cls];
}

/* From each output to its tree, step by step. Needs reasons. */
static inline tarn_buf kit_explain(tarn_saturation *s, uint32_t *pick) {
  tarn_buf b = {.cx = tarn_lang_ctx(tarn_sat_lang(s))};
  for (uint32_t i = 0; i < tarn_sat_roots(s); i++)
    tarn_sat_explain(s, i, tarn_sat_term(s, tarn_sat_root(s, i), kit_picked, pick), &b);
  return b;
}
/* What was found is proved: from each output to its least term, by a checker that sees the text
 * alone. Needs reasons. */
static inline void kit_prove(tarn_saturation *s, const tarn_ruleset *rs) {
  tarn_buf b = kit_explain(s, kit_picks(s));
  tarn_proof_options o = {0};
  tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(b.cx, b.p, b.n, "proof"), &o);
  ck_assert_msg(r.ok, "step %u: %s\n%.3000s", r.bad, r.why, b.p);
}
/* Has the rule joined anything? */
static inline bool kit_fired(const tarn_saturation *s, const char *name) {
  const tarn_sat_report *r = tarn_sat_result(s);
  for (uint32_t i = 0; i < r->nrule; i++)
    if (strcmp(r->rule[i].name, name) == 0) return r->rule[i].count.unions > 0;
  return false;
}
#endif
