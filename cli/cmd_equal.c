/* tarn equal A B: two terms or models: proved equal, different on some inputs, or neither. */
#include "cli/cli.h"
#include "base/limit.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

typedef struct equal_job {
  tarn_ctx *cx;
  tarn_lang *L;
  tarn_program *p[2];
  cli_list rules;
  cli_compile model; /* how both are read */
  uint64_t nodes, iters, samples, seed;
  double seconds;
  const char *explain;
  tarn_buf chain;
  const char *unknown; /* why an output has no proof */
} equal_job;

/* ---- reading ---- */
static tarn_program *of_term(const equal_job *k, const char *text) {
  tarn_sx *s = tarn_sx_read(k->cx, text, strlen(text), text);
  if (s->n != 1) tarn_raise(k->cx, TARN_USAGE, "%s: one term or a file is expected", text);
  tarn_program *p = TARN_NEW(k->cx, tarn_program);
  tarn_io *out = TARN_NEW(k->cx, tarn_io);
  tarn_term t = tarn_term_parse(k->L, s->kid[0]);
  *out = (tarn_io){"out", t, tarn_term_get(k->L, t)->type};
  *p = (tarn_program){.L = k->L, .nout = 1, .out = out};
  return p;
}
static tarn_program *load(const equal_job *k, const char *text) {
  cli_compile c = k->model;
  c.model = text;
  if (access(text, F_OK) && *text == '(') return of_term(k, text);
  return cli_reload(k->L, &c);
}

/* ---- one spelling ---- */
/* B's inputs by the names of A's, and constants by what they hold. */
static tarn_term leaf(const equal_job *k, const tarn_node *x) {
  const tarn_payload *p = tarn_payload_get(k->L, x->payload);
  if (x->op == TARN_OP_INPUT) {
    for (uint32_t i = 0; i < k->p[1]->nin && i < k->p[0]->nin; i++)
      if (!strcmp(k->p[1]->in[i].name, p->name) && k->p[0]->in[i].type == x->type)
        return tarn_input(k->L, k->p[0]->in[i].name, x->type);
    return tarn_mk(k->L, x->op, x->payload, NULL, 0);
  }
  const tarn_tensor *t = p->tensor;
  size_t n = tarn_tensor_bytes(t);
  uint64_t hash = tarn_hash_bytes(t->data, n, 0);
  const char *name = tarn_format(k->cx, "value %016llx", (unsigned long long)hash);
  return tarn_constant(k->L, name, t, tarn_type_get(k->L, x->type)->ns);
}
static tarn_term respelt(const equal_job *k, tarn_term root, bool second) {
  tarn_map *done = tarn_map_new(k->cx);
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(k->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    tarn_node x = *tarn_term_get(k->L, t);
    tarn_term *kid = TARN_ARRAY(k->cx, tarn_term, x.n + 1u);
    uint32_t had = todo.n;
    for (uint32_t i = 0; i < x.n; i++) {
      const uint64_t *d = tarn_map_get(done, x.kid[i]);
      if (d) kid[i] = (tarn_term)(*d - 1);
      else tarn_push(k->cx, &todo, x.kid[i]);
    }
    if (todo.n > had) continue;
    todo.n--;
    bool spell = x.op == TARN_OP_CONST || (second && x.op == TARN_OP_INPUT);
    tarn_term made = spell ? leaf(k, &x) : tarn_mk(k->L, x.op, x.payload, kid, x.n);
    *tarn_map_at(done, t, NULL) = (uint64_t)made + 1;
  }
  return (tarn_term)(*tarn_map_get(done, root) - 1);
}
static void spell_alike(equal_job *k) {
  for (int b = 1; b >= 0; b--)
    for (uint32_t i = 0; i < k->p[b]->nout; i++)
      k->p[b]->out[i].term = respelt(k, k->p[b]->out[i].term, b);
}

/* ---- different? ---- */
static const char *types_differ(const equal_job *k) {
  const tarn_program *a = k->p[0], *b = k->p[1];
  if (a->nout != b->nout) return tarn_format(k->cx, "%u outputs and %u", a->nout, b->nout);
  for (uint32_t i = 0; i < a->nout; i++) {
    const tarn_type *s = tarn_type_get(k->L, a->out[i].type);
    const tarn_type *t = tarn_type_get(k->L, b->out[i].type);
    bool same = s->dtype == t->dtype && s->n == t->n;
    for (uint32_t d = 0; same && d < s->n; d++) same = s->dim[d] == t->dim[d];
    if (!same) return tarn_format(k->cx, "output %u has another type", i);
  }
  return NULL;
}
/* Inputs that either side reads. */
typedef TARN_VEC(tarn_term) leaves;
static void collect(const equal_job *k, tarn_term root, tarn_map *seen, leaves *in) {
  TARN_VEC(tarn_term) todo = {0};
  bool fresh;
  tarn_push(k->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    const tarn_node *x = tarn_term_get(k->L, t);
    tarn_map_at(seen, t, &fresh);
    if (!fresh) continue;
    if (x->op == TARN_OP_INPUT) tarn_push(k->cx, in, t);
    for (uint32_t i = 0; i < x->n; i++) tarn_push(k->cx, &todo, x->kid[i]);
  }
}
static double number(const tarn_tensor *t, int64_t i) {
  tarn_value v = tarn_tensor_get(t, i);
  return tarn_dtype_is_float(t->dtype) ? v.d : (double)v.i;
}
/* Small whole numbers first, then any between -1 and 1. */
static tarn_tensor *values(const equal_job *k, tarn_term input, uint64_t sample, uint64_t *seed) {
  const tarn_type *t = tarn_term_type(k->L, input);
  tarn_tensor *x = tarn_tensor_new(k->cx, t->dtype, t->n, t->dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) {
    uint64_t z = tarn_random(seed);
    bool real = tarn_dtype_is_float(t->dtype);
    double u = sample ? (double)(z >> 11) / 4503599627370496.0 - 1 : (double)(z % 5) - 2;
    tarn_value v = {0};
    if (real) v.d = u;
    else v.i = (int64_t)(z % 3);
    tarn_tensor_set(x, i, v);
  }
  return x;
}
static void show_input(const equal_job *k, const char *name, const tarn_tensor *x) {
  int64_t n = tarn_tensor_count(x);
  printf("  %s =", tarn_shown(k->cx, name));
  for (int64_t i = 0; i < n && i < 16; i++) printf(" %.9g", number(x, i));
  printf("%s\n", n > 16 ? " …" : "");
}
/* Another order of sums is no difference, nor is another rounding. */
static bool differs(const tarn_tensor *a, const tarn_tensor *b, int64_t *at) {
  double most = 0;
  for (int64_t i = 0; i < tarn_tensor_count(a); i++)
    if (isfinite(number(a, i))) most = fmax(most, fabs(number(a, i)));
  for (*at = 0; *at < tarn_tensor_count(a); ++*at) {
    double x = number(a, *at), y = number(b, *at);
    if ((isnan(x) && isnan(y)) || x == y) continue;
    if (!(fabs(x - y) <= 1e-4 * fmax(most, 1e-30))) return true;
  }
  return false;
}
static bool sample_differs(equal_job *k, uint64_t sample) {
  leaves in = {0};
  tarn_map *seen = tarn_map_new(k->cx);
  uint32_t n = k->p[0]->nout;
  tarn_term *root = TARN_ARRAY(k->cx, tarn_term, 2 * n + 1);
  for (uint32_t i = 0; i < 2 * n; i++) {
    root[i] = k->p[i / n]->out[i % n].term;
    collect(k, root[i], seen, &in);
  }
  tarn_binding *bind = TARN_ARRAY(k->cx, tarn_binding, in.n + 1);
  uint64_t seed = tarn_hash_mix(k->seed + 1, sample);
  for (uint32_t i = 0; i < in.n; i++) {
    const char *name = tarn_payload_get(k->L, tarn_term_get(k->L, in.p[i])->payload)->name;
    bind[i] = (tarn_binding){name, values(k, in.p[i], sample, &seed)};
  }
  tarn_tensor **out = TARN_ARRAY(k->cx, tarn_tensor *, 2 * n + 1);
  tarn_eval(k->L, root, 2 * n, bind, in.n, TARN_STRICT, tarn_opaque_eval, out);
  for (uint32_t i = 0; i < n; i++) {
    int64_t at;
    if (!differs(out[i], out[n + i], &at)) continue;
    printf("different: element %lld of output %s is %.9g and %.9g\n", (long long)at,
           tarn_shown(k->cx, k->p[0]->out[i].name), number(out[i], at), number(out[n + i], at));
    for (uint32_t j = 0; j < in.n; j++) show_input(k, bind[j].name, bind[j].value);
    return true;
  }
  return false;
}

/* ---- equal? ---- */
/* Over access patterns, then in kernel form. */
static bool prove(equal_job *k, uint32_t output, bool surface) {
  double until = tarn_limit_get(k->cx).until, parts = 2 * (k->p[0]->nout - output) - surface;
  tarn_sat_options o = tarn_sat_defaults();
  tarn_program one = *k->p[0];
  tarn_term goal = k->p[1]->out[output].term;
  tarn_ruleset *rs = tarn_ruleset_new(k->L);
  tarn_ruleset_ship(rs, NULL, surface ? TARN_RULE_SURFACE : TARN_RULE_KERNEL);
  for (uint32_t i = 0; i < k->rules.n; i++) tarn_ruleset_add(rs, k->rules.p[i]);
  one.nout = 1, one.out = &k->p[0]->out[output];
  o.surface = surface, o.reasons = TARN_EG_REASONS_ALL;
  o.goal = surface ? goal : tarn_kernel_form(k->L, goal);
  o.max_nodes = k->nodes, o.max_iterations = (uint32_t)k->iters;
  if (until > 0) o.max_seconds = fmax(1e-3, (until - tarn_now()) / parts);
  tarn_saturation *s = tarn_saturate(&one, rs, &o);
  const tarn_sat_report *r = tarn_sat_result(s);
  bool proved = tarn_sat_root(s, 0) == tarn_eg_find(tarn_sat_egraph(s), tarn_sat_add(s, o.goal));
  if (proved) tarn_sat_explain(s, 0, o.goal, &k->chain);
  else k->unknown = r->stop;
  tarn_sat_free(s);
  return proved;
}
static int tell_proved(equal_job *k) {
  if (k->explain) {
    tarn_write_file(k->cx, k->explain, k->chain.p, k->chain.n);
    printf("equal: proved\n");
  } else printf("equal: proved\n%s\n", k->chain.p);
  return 0;
}
static int decide(equal_job *k) {
  const char *types = types_differ(k);
  if (types) printf("different: %s\n", types);
  for (uint64_t i = 0; !types && i < k->samples; i++)
    if (sample_differs(k, i)) types = "values";
  if (types) return TARN_NO;
  for (uint32_t i = 0; i < k->p[0]->nout; i++) {
    if (prove(k, i, false) || prove(k, i, true)) continue;
    printf("unknown: no difference in %llu samples, and no proof of output %s (%s)\n",
           (unsigned long long)k->samples, tarn_shown(k->cx, k->p[0]->out[i].name), k->unknown);
    return TARN_NO_RESULT;
  }
  return tell_proved(k);
}

int tarn_cmd_equal(tarn_ctx *cx, int argc, char **argv) {
  equal_job k = {.cx = cx, .nodes = 20000, .iters = 30, .samples = 4, .chain = {.cx = cx}};
  cli_list words = {0};
  const char *usage = "equal A B [options]";
  const cli_opt opts[] = {
      {"--rules", NULL, CLI_LIST, &k.rules, "FILE", "add the rules of a file"},
      {"--samples", NULL, CLI_UINT, &k.samples, "N", "random inputs to compare on (default 4)"},
      {"--seed", NULL, CLI_UINT, &k.seed, "K", "seed of the inputs"},
      {"--nodes", NULL, CLI_UINT, &k.nodes, "N", "limit of e-nodes (default 20,000)"},
      {"--iters", NULL, CLI_U32, &k.iters, "N", "limit of iterations (default 30)"},
      {"--seconds", NULL, CLI_REAL, &k.seconds, "S", "limit of time (default: none)"},
      {"--explain", NULL, CLI_STR, &k.explain, "FILE",
       "write the chain there (for tarn proof check), not to standard output"},
      {"--shape", NULL, CLI_LIST, &k.model.shapes, "NAME=DIMS",
       "bind a dynamic shape of the models"},
      CLI_SET(k.model),
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 2) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  cli_limit(cx, k.seconds);
  k.L = tarn_lang_new(cx);
  for (int i = 0; i < 2; i++) k.p[i] = load(&k, words.p[i]);
  spell_alike(&k);
  return decide(&k);
}
