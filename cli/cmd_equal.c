/* tarn equal A B: two terms or models: proved equal, different on some inputs, or neither. */
#include "base/limit.h"
#include "cli/equal.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

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
  const char *name = tarn_format(k->cx, "value-%016llx", (unsigned long long)hash);
  return tarn_constant(k->L, name, t, tarn_type_get(k->L, x->type)->ns);
}
static tarn_term respelt(const equal_job *k, tarn_map *done, tarn_term root, bool second) {
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
  for (int b = 1; b >= 0; b--) {
    tarn_program *p = k->p[b];
    tarn_map *done = tarn_map_new(k->cx);
    tarn_origin *o = tarn_copy(k->cx, p->origin, p->norigin * sizeof *o);
    for (uint32_t i = 0; i < p->nout; i++) p->out[i].term = respelt(k, done, p->out[i].term, b);
    for (uint32_t i = 0; i < p->norigin; i++) o[i].term = respelt(k, done, o[i].term, b);
    p->origin = o;
  }
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

/* ---- what is found ---- */
typedef struct verdict {
  const char *is; /* "proved", "different", "unknown" */
  const char *why;
  bool has_witness, has_place, whole; /* whole: proved as one chain, not node by node */
  equal_witness w;
  equal_place place;
  uint32_t output; /* that is unknown */
  uint32_t samples;
  tarn_buf chain;
} verdict;

/* Ctrl-C is no answer; a limit is. */
bool equal_in_time(equal_job *k, double share, tarn_fn *f, void *arg) {
  tarn_limit l = tarn_limit_get(k->cx);
  double now = tarn_now();
  if (l.until > 0) tarn_limit_until(k->cx, now + fmax(0, (l.until - now) * share));
  tarn_status st = tarn_protect(k->cx, f, arg);
  bool asked = tarn_interrupted(k->cx);
  tarn_limit_set(k->cx, l);
  if (st && (st != TARN_NO_RESULT || asked)) tarn_reraise(k->cx, st);
  return !st;
}
typedef struct deciding {
  equal_job *k;
  verdict *v;
} deciding;
static void sample(tarn_ctx *cx, void *arg) {
  deciding *d = arg;
  uint32_t n = d->k->p[0]->nout;
  tarn_term *root = TARN_ARRAY(cx, tarn_term, 2 * n + 1);
  for (uint32_t i = 0; i < 2 * n; i++) root[i] = d->k->p[i / n]->out[i % n].term;
  d->v->has_witness = equal_differ(d->k, root, root + n, n, &d->v->w);
}
/* Terms are hash-consed: equal ones need no sample. */
static bool all_same(const equal_job *k) {
  bool same = true;
  for (uint32_t i = 0; i < k->p[0]->nout; i++) same &= k->p[0]->out[i].term == k->p[1]->out[i].term;
  return same;
}
static bool prove_outputs(equal_job *k, verdict *v) {
  for (uint32_t i = 0; i < k->p[0]->nout; i++) {
    v->output = i;
    if (!equal_prove(k, 0.4, k->p[0]->out[i].term, k->p[1]->out[i].term, k->p[0]->out[i].name,
                     &v->chain, &v->why))
      return false;
  }
  return true;
}
static void decide(equal_job *k, verdict *v) {
  deciding d = {k, v};
  v->is = "different";
  if ((v->why = types_differ(k))) return;
  if (!all_same(k)) equal_in_time(k, 0.3, sample, &d);
  v->samples = k->tried;
  if (!v->has_witness && k->hinted) {
    v->has_witness = true;
    v->w = k->hint;
  }
  v->place.differs = v->has_witness;
  if (!v->has_witness && prove_outputs(k, v)) {
    v->is = "proved", v->whole = true;
    return;
  }
  v->chain.n = 0;
  v->has_place = true;
  equal_locate(k, &v->place, &v->chain);
  if (!v->has_witness) v->is = v->place.outputs ? "proved" : "unknown";
}

/* ---- telling ---- */
static bool is_nought(const tarn_tensor *x, int64_t i) { return tarn_tensor_number(x, i) == 0; }
static void show_input(const equal_job *k, const tarn_binding *b) {
  int64_t n = tarn_tensor_count(b->value), others = 0, shown = 0;
  for (int64_t i = 0; i < n; i++) others += !is_nought(b->value, i);
  printf("  %s =", tarn_shown(k->cx, b->name));
  bool few = n > 16 && others <= 16;
  if (few) printf(others ? " 0 but for" : " 0");
  for (int64_t i = 0; i < n && shown < 16; i++) {
    if (few && is_nought(b->value, i)) continue;
    if (few) printf(" [%lld]", (long long)i);
    printf(" %.9g", tarn_tensor_number(b->value, i));
    shown++;
  }
  printf("%s\n", !few && n > 16 ? " …" : "");
}
static void show_witness(const equal_job *k, const equal_witness *w, const char *of) {
  printf("different: element %lld of %s is %.9g and %.9g\n", (long long)w->at, of, w->value[0],
         w->value[1]);
  for (uint32_t i = 0; i < w->nin; i++) show_input(k, &w->in[i]);
}
static void show_nodes(const equal_job *k, const equal_place *p, const char *what) {
  const char *of[] = {"A", "B"};
  for (int i = 0; i < 2; i++)
    if (p->node[i])
      printf("  %s of %s: %s (%s)\n", what, of[i], tarn_shown(k->cx, p->node[i]->node),
             p->node[i]->op);
}
static void show_unknown(const equal_job *k, const verdict *v) {
  const equal_place *p = &v->place;
  printf("unknown: no difference in %u samples, and no proof of output %s (%s)\n", v->samples,
         tarn_shown(k->cx, k->p[0]->out[v->output].name), v->why);
  printf("  values differ by up to %.2g of the largest; %u of %u pairs of nodes are proved\n",
         k->worst, p->proved, p->pairs);
  show_nodes(k, p, "first node not proved");
  if (p->differs) {
    printf("  by itself that node is ");
    show_witness(k, &p->w, "its output");
  }
}
static void show(const equal_job *k, const verdict *v) {
  if (!strcmp(v->is, "proved")) {
    printf("equal: proved%s\n", v->whole ? "" : ", node by node");
  } else if (v->has_witness) {
    show_witness(
        k, &v->w,
        tarn_format(k->cx, "output %s", tarn_shown(k->cx, k->p[0]->out[v->w.output].name)));
    show_nodes(k, &v->place, "first node with other values");
  } else if (!strcmp(v->is, "different")) {
    printf("different: %s\n", v->why);
  } else {
    show_unknown(k, v);
  }
}
static void json_witness(tarn_json *j, const equal_witness *w) {
  tarn_json_int(j, "element", w->at);
  tarn_json_open(j, "values", '[');
  for (int i = 0; i < 2; i++) tarn_json_num(j, NULL, w->value[i]);
  tarn_json_close(j, ']');
  tarn_json_open(j, "inputs", '{');
  for (uint32_t i = 0; i < w->nin; i++) {
    tarn_json_open(j, w->in[i].name, '[');
    for (int64_t n = 0; n < tarn_tensor_count(w->in[i].value); n++)
      tarn_json_num(j, NULL, tarn_tensor_number(w->in[i].value, n));
    tarn_json_close(j, ']');
  }
  tarn_json_close(j, '}');
}
static void json(const equal_job *k, const verdict *v) {
  tarn_json *j = cli_json_new(k->cx);
  tarn_json_put(j, "verdict", v->is, "why", strcmp(v->is, "proved") ? v->why : NULL, "whole",
                v->whole, "samples", v->samples, "largest_difference", k->worst, "chain",
                strcmp(v->is, "proved") ? NULL : k->explain);
  if (v->has_witness) {
    tarn_json_str(j, "output", k->p[0]->out[v->w.output].name);
    json_witness(j, &v->w);
  } else if (!strcmp(v->is, "unknown")) {
    tarn_json_str(j, "output", k->p[0]->out[v->output].name);
  }
  if (v->has_place) {
    tarn_json_put(j, "pairs", v->place.pairs, "proved_pairs", v->place.proved);
    tarn_json_open(j, "nodes", '[');
    for (int i = 0; i < 2; i++)
      tarn_json_str(j, NULL, v->place.node[i] ? v->place.node[i]->node : NULL);
    tarn_json_close(j, ']');
  }
  cli_json_print(j);
}

/* ---- the parts that are not proved, as programs ---- */
/* Constants of more elements than the text holds lie beside it. */
static void write_constants(const equal_job *k, const tarn_term *term, uint32_t n,
                            const char *dir) {
  enum { IN_THE_TEXT = 64 };
  for (uint32_t i = 0; i < n; i++) {
    const tarn_node *x = tarn_term_get(k->L, term[i]);
    if (x->op != TARN_OP_CONST) continue;
    const tarn_payload *c = tarn_payload_get(k->L, x->payload);
    if (tarn_tensor_count(c->tensor) > IN_THE_TEXT)
      tarn_tensor_write(k->cx, tarn_format(k->cx, "%s/%s.npy", dir, c->name), c->tensor);
  }
}
static void write_part(equal_job *k, tarn_term root, const char *path) {
  tarn_io out = {"out", root, tarn_term_get(k->L, root)->type};
  tarn_program p = {.L = k->L, .nout = 1, .out = &out};
  const char *slash = strrchr(path, '/');
  const tarn_term *term;
  tarn_buf b = {.cx = k->cx};
  uint32_t n = equal_terms(k, &root, 1, &term);
  p.in = TARN_ARRAY(k->cx, tarn_io, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_node *x = tarn_term_get(k->L, term[i]);
    if (x->op == TARN_OP_INPUT)
      p.in[p.nin++] = (tarn_io){tarn_payload_get(k->L, x->payload)->name, term[i], x->type};
  }
  tarn_program_print(&p, &b);
  tarn_write_file(k->cx, path, b.p, b.n);
  write_constants(k, term, n, slash ? tarn_format(k->cx, "%.*s", (int)(slash - path), path) : ".");
}
static void write_files(equal_job *k, const verdict *v) {
  bool proved = !strcmp(v->is, "proved");
  if (proved && k->explain) tarn_write_file(k->cx, k->explain, v->chain.p, v->chain.n);
  if (strcmp(v->is, "unknown") || !k->parts) return;
  for (int i = 0; i < 2; i++)
    write_part(k, v->place.part[i], tarn_format(k->cx, "%s-%c.tarn", k->parts, "ab"[i]));
}

int tarn_cmd_equal(tarn_ctx *cx, int argc, char **argv) {
  equal_job k = {.cx = cx, .nodes = 20000, .iters = 100, .samples = 12, .rtol = TARN_JUDGE_RTOL};
  verdict v = {.chain = {.cx = cx}};
  cli_list words = {0};
  const char *usage = "equal A B [options]", *numerics = "reassoc";
  const cli_opt opts[] = {
      {"--numerics", NULL, CLI_STR, &numerics, "CLASS",
       "exact: to the bit; reassoc (default): in real arithmetic"},
      {"--rtol", NULL, CLI_REAL, &k.rtol, "X",
       "differences of values up to this are none (default 1e-5)"},
      {"--rules", NULL, CLI_LIST, &k.rules, "FILE", "add the rules of a file"},
      {"--samples", NULL, CLI_UINT, &k.samples, "N", "inputs to compare on (default 12)"},
      {"--seed", NULL, CLI_UINT, &k.seed, "K", "seed of the inputs"},
      {"--nodes", NULL, CLI_UINT, &k.nodes, "N", "limit of e-nodes (default 20,000)"},
      {"--iters", NULL, CLI_U32, &k.iters, "N", "limit of iterations (default 100)"},
      {"--seconds", NULL, CLI_REAL, &k.seconds, "S", "limit of time (default: none)"},
      {"--explain", NULL, CLI_STR, &k.explain, "FILE",
       "write the chain there (for tarn proof check)"},
      {"--parts", NULL, CLI_STR, &k.parts, "PREFIX",
       "of what is unknown, write the first parts that are: PREFIX-a.tarn and PREFIX-b.tarn"},
      {"--shape", NULL, CLI_LIST, &k.model.shapes, "NAME=DIMS",
       "bind a dynamic shape of the models"},
      CLI_SET(k.model),
      {"--json", NULL, CLI_FLAG, &k.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 2) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  if (!tarn_rule_class_parse(numerics, &k.numerics) || k.numerics == TARN_RULE_APPROX)
    tarn_raise(cx, TARN_USAGE, "--numerics %s: exact or reassoc is expected", numerics);
  cli_limit(cx, k.seconds);
  k.L = tarn_lang_new(cx);
  for (int i = 0; i < 2; i++) k.p[i] = load(&k, words.p[i]);
  spell_alike(&k);
  decide(&k, &v);
  write_files(&k, &v);
  if (k.json) json(&k, &v);
  else show(&k, &v);
  return !strcmp(v.is, "proved") ? 0 : !strcmp(v.is, "different") ? TARN_NO : TARN_NO_RESULT;
}
