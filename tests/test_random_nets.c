/* Whole pipeline: random networks optimised, in the interpreter and compiled, against what they
 * say.
 *
 *   test_random_nets [--all]          some networks, or thousands
 *   test_random_nets FIRST COUNT      those of COUNT seeds from FIRST: prints what is found,
 *                                     reduced
 *   test_random_nets typed FIRST COUNT   likewise, of all types and operators, in three classes
 *   test_random_nets bf16 FIRST COUNT    likewise, all inputs of that type
 *   test_random_nets typed FIRST COUNT DIR   writes them as DIR/SEED.onnx, for bench/zoo.py
 *   test_random_nets FILE             one network as text
 *
 * Networks are tried in processes of their own, so that a crash or an endless run is a finding like
 * any other. */
#include "tests/pipeline.h"
#include "tests/random_types.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NETS      50
#define ALL_NETS  400
#define TYPED     20
#define ALL_TYPED 1000
#define SECONDS   20 /* a network may take, of the processor */
#define SLOW      8  /* and in one step */

/* ---------------------------------------------------------------- one network, in its own process
 */

static bool typed;          /* networks of all types, in three classes */
static const char *of_type; /* whose inputs have this type; NULL: any */

typedef struct trial {
  const char *text, *host;
  int out; /* the step that begins, then what came of it, a line each */
  uint64_t seed;
  tarn_program *p;
  tarn_binding *in;
  pipeline_want want;
  tarn_tensor **got;
  clock_t began;
} trial;

_Noreturn static void found(const trial *t, const char *what) {
  tarn_raise(tarn_lang_ctx(t->p->L), TARN_NO, "%s", what);
}
static void step(trial *t, const char *name) {
  clock_t now = clock();
  if (t->p && (double)(now - t->began) > SLOW * (double)CLOCKS_PER_SEC) found(t, "slow");
  t->began = now;
  dprintf(t->out, "%s\n", name);
}

/* Of networks of all types a fifth have infinities, NaN, zeros of both signs and the least and
 * largest numbers among their inputs: then `exact` alone says something. */
static void disturb(tarn_tensor *x, uint64_t *seed) {
  static const double number[] = {INFINITY, -INFINITY, NAN, -0.0, 0, 1e-42, -3e38, 60000};
  if (!tarn_dtype_is_float(x->dtype)) return;
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) {
    uint32_t k = (uint32_t)(kit_random(seed) >> 20) % 40;
    if (k < sizeof number / sizeof *number) tarn_tensor_set(x, i, (tarn_value){.d = number[k]});
  }
}
static void reference(trial *t) {
  tarn_lang *L = t->p->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  uint64_t seed = t->seed;
  t->in = TARN_ARRAY(cx, tarn_binding, t->p->nin + 1);
  t->got = TARN_ARRAY(cx, tarn_tensor *, t->p->nout);
  for (uint32_t i = 0; i < t->p->nin; i++) {
    tarn_tensor *x = kit_values(cx, tarn_type_get(L, t->p->in[i].type), &seed);
    if (typed && strlen(t->text) % 5 == 0) disturb(x, &seed);
    t->in[i] = (tarn_binding){t->p->in[i].name, x};
  }
  t->want = pipeline_expect(t->p, t->in, TARN_RULE_REASSOC, 0);
}

/* A network that has values which are no numbers says nothing. */
static bool sound(trial *t) {
  for (uint32_t i = 0; i < t->p->nout; i++)
    for (int64_t k = 0; k < tarn_tensor_count(t->want.out[i].error); k++)
      if (!isfinite(tarn_tensor_number(t->want.out[i].error, k)) ||
          !(fabs(tarn_tensor_number(t->want.out[i].strict, k)) <= 1e20))
        return false;
  return true;
}

static void compare(const trial *t) {
  const char *wrong = pipeline_wrong(t->p, &t->want, t->got);
  if (wrong) found(t, tarn_format(tarn_lang_ctx(t->p->L), "wrong: %s", wrong));
}

/* The same number, or both none. */
static bool alike(const tarn_tensor *a, const tarn_tensor *b, int64_t k) {
  if (!tarn_dtype_is_float(a->dtype)) return tarn_tensor_get(a, k).i == tarn_tensor_get(b, k).i;
  double x = tarn_tensor_get(a, k).d, y = tarn_tensor_get(b, k).d;
  return x == y || (isnan(x) && isnan(y));
}

/* As the interpreter has it: to the bit, but for the sign of zeros. */
static void same(const trial *t) {
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  if (!typed) compare(t);
  for (uint32_t i = 0; i < t->p->nout; i++)
    for (int64_t k = 0; k < tarn_tensor_count(t->got[i]); k++)
      if (!alike(t->got[i], t->want.out[i].strict, k))
        found(t,
              tarn_format(cx, "wrong: %s[%lld] is not the same", t->p->out[i].name, (long long)k));
}

typedef struct explored {
  tarn_saturation *s;
  const tarn_hw *hw;
  tarn_rule_class numerics;
  uint32_t nroot, *root;
} explored;
static explored saturate(trial *t, const tarn_hw *hw, tarn_rule_class numerics) {
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  tarn_ruleset *rs = tarn_ruleset_new(t->p->L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options so = tarn_sat_defaults();
  so.numerics = numerics, so.hw = hw, so.reasons = TARN_EG_REASONS_ALL;
  explored e = {.s = tarn_saturate(t->p, rs, &so), .hw = hw, .numerics = numerics};
  if (strcmp(tarn_sat_result(e.s)->stop, "saturated") != 0)
    found(t, tarn_format(cx, "stop: %s", tarn_sat_result(e.s)->stop));
  kit_prove(e.s, rs);
  e.nroot = tarn_sat_roots(e.s);
  e.root = TARN_ARRAY(cx, uint32_t, e.nroot + 1);
  for (uint32_t i = 0; i < e.nroot; i++) e.root[i] = tarn_sat_root(e.s, i);
  return e;
}

static tarn_kprog *extract(trial *t, const explored *e, tarn_sel_method method, uint32_t threads,
                           bool all) {
  tarn_kgraph_input in = {.L = t->p->L,
                          .g = tarn_sat_egraph(e->s),
                          .type_of = pipeline_type,
                          .is_constant = pipeline_constant,
                          .user = e->s,
                          .nroot = e->nroot,
                          .root = e->root,
                          .program = t->p};
  if (!all) in.left_out = pipeline_left_out;
  tarn_kgraph_options ko = {
      .hw = e->hw, .method = method, .threads = threads, .strict = e->numerics == TARN_RULE_EXACT};
  tarn_kgraph_report r;
  tarn_kprog *k = tarn_extract(&in, &ko, &r, NULL);
  tarn_kprog_eval(k, t->in, t->p->nin, TARN_STRICT, tarn_opaque_eval, t->got);
  if (ko.strict) same(t);
  else compare(t);
  return k;
}

static void compile(trial *t, const explored *e, tarn_kprog *k, uint32_t threads) {
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  pipeline r = {.program = t->p, .hw = e->hw, .sat = e->s, .kprog = k};
  tarn_loaded *m = pipeline_compile(&r, pipeline_folder(cx));
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, t->p->nin + 1);
  for (uint32_t i = 0; i < t->p->nin; i++) in[i] = t->in[i].value;
  for (uint32_t i = 0; i < t->p->nout; i++) {
    const tarn_tensor *like = t->want.out[i].strict;
    t->got[i] = tarn_tensor_new(cx, like->dtype, like->n, like->dim);
  }
  tarn_loaded_run(m, in, t->got, threads);
  compare(t);
}

static void all_ways(tarn_ctx *cx, void *arg) {
  static const char *const other[] = {"x86-64-v3", "aarch64", "riscv64"};
  trial *t = arg;
  tarn_lang *L = tarn_lang_new(cx);
  step(t, "import");
  t->p = kit_model(L, t->text);
  step(t, "reference");
  reference(t);
  if (!sound(t)) {
    step(t, "unsound");
    return;
  }
  step(t, "host: saturate");
  explored e = saturate(t, tarn_hw_parse(L, tarn_sx_read(cx, t->host, strlen(t->host), "host")),
                        TARN_RULE_REASSOC);
  step(t, "host: exact");
  tarn_kprog *exact = extract(t, &e, TARN_SEL_EXACT, 0, false);
  step(t, "host: exact, compiled");
  compile(t, &e, exact, 2);
  step(t, "host: random");
  tarn_kprog *k = extract(t, &e, TARN_SEL_RANDOM, 1, true);
  step(t, "host: random, compiled");
  compile(t, &e, k, 1);
  step(t, "host: worst");
  k = extract(t, &e, TARN_SEL_WORST, 2, true);
  if (strlen(t->text) % 2) step(t, "host: worst, compiled"), compile(t, &e, k, 2);
  step(t, "exact numerics");
  e = saturate(t, e.hw, TARN_RULE_EXACT);
  extract(t, &e, TARN_SEL_GREEDY, 1, false);
  k = extract(t, &e, TARN_SEL_RANDOM, 1, true);
  if (strlen(t->text) % 2 == 0) step(t, "exact numerics, compiled"), compile(t, &e, k, 2);
  const char *name = other[strlen(t->text) % 3];
  step(t, tarn_format(cx, "%s: saturate", name));
  e = saturate(t, tarn_hw_load(L, name), TARN_RULE_REASSOC);
  step(t, tarn_format(cx, "%s: greedy", name));
  extract(t, &e, TARN_SEL_GREEDY, 2, false);
  step(t, tarn_format(cx, "%s: random", name));
  extract(t, &e, TARN_SEL_RANDOM, 1, true);
  step(t, "done");
}

/* A network of all types in each numerics class, as kernels and compiled; exact: to the bit. */
typedef struct class_net {
  pipeline *r;
  pipeline_want want;
  bool sound;
} class_net;
static class_net of_class(trial *t, tarn_rule_class c) {
  tarn_lang *L = t->p->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  const char *class = tarn_rule_class_name(c);
  const tarn_hw *hw = tarn_hw_parse(L, tarn_sx_read(cx, t->host, strlen(t->host), "host"));
  bool exact = c == TARN_RULE_EXACT;
  class_net n = {0};
  step(t, class);
  tarn_kgraph_options ko = {.method = TARN_SEL_GREEDY, .strict = exact};
  n.r = pipeline_extract_as(t->p, hw, ko, c);
  t->want = n.want = pipeline_expect(t->p, t->in, c, tarn_sat_result(n.r->sat)->bound);
  n.sound = exact || sound(t);
  if (!n.sound) return n;
  step(t, tarn_format(cx, "%s, as kernels", class));
  tarn_kprog_eval(n.r->kprog, t->in, t->p->nin, TARN_STRICT, tarn_opaque_eval, t->got);
  (exact ? same : compare)(t);
  return n;
}
/* Both in one artefact, as if they were of two sizes: kernels of both are compiled once. */
static tarn_loaded *compile_both(trial *t, const class_net *n) {
  static const int64_t number[2] = {0, 1};
  static const char *const name = "class";
  tarn_ctx *cx = tarn_lang_ctx(t->p->L);
  tarn_lower_program row[2];
  const tarn_kprog *p[2];
  tarn_memory_plan *m[2];
  for (int i = 0; i < 2; i++) {
    p[i] = n[i].r->kprog;
    m[i] = tarn_memory_plan_make(p[i], 64);
    row[i] = (tarn_lower_program){&number[i], p[i], m[i], NULL};
  }
  tarn_lower_share(p, m, 2, 64);
  tarn_lower_sizes sizes = {.n = 1, .name = &name, .nprogram = 2, .program = row, .rows = 1};
  tarn_lower_options o = {.emit = TARN_EMIT_SO, .name = "model", .contract = true, .opt = 2};
  o.dir = pipeline_folder(cx);
  tarn_lower_cpu_sizes(&sizes, &o);
  return tarn_load(cx, o.dir);
}
static void all_classes(tarn_ctx *cx, void *arg) {
  trial *t = arg;
  step(t, "import");
  t->p = kit_model(tarn_lang_new(cx), t->text);
  step(t, "reference");
  reference(t);
  class_net exact = of_class(t, TARN_RULE_EXACT);
  step(t, "exact, compiled");
  pipeline_run(pipeline_compile_as(exact.r, pipeline_folder(cx), false), t->p, t->in, t->got);
  same(t);
  class_net n[2] = {of_class(t, TARN_RULE_REASSOC), of_class(t, TARN_RULE_APPROX)};
  if (n[0].sound && n[1].sound) {
    step(t, "reassoc and approx, compiled");
    tarn_loaded *m = compile_both(t, n);
    for (int64_t i = 0; i < 2; i++) {
      ck_assert(tarn_loaded_select(m, &i));
      pipeline_run(m, t->p, t->in, t->got);
      step(t, i ? "approx, compiled" : "reassoc, compiled");
      t->want = n[i].want;
      compare(t);
    }
  }
  step(t, "done");
}

/* A process that tries networks has so much time for the next one. */
static void limit(void) {
  struct rlimit space = {(rlim_t)6 << 30, (rlim_t)6 << 30};
  rlim_t used = (rlim_t)(clock() / CLOCKS_PER_SEC) + SECONDS;
  struct rlimit time = {used, RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &time);
#ifdef __SANITIZE_ADDRESS__
  (void)space; /* its shadow alone is larger */
#else
  setrlimit(RLIMIT_AS, &space);
#endif
  alarm(6 * SECONDS);
}
static bool try_here(const char *text, const char *host, int out) {
  trial t = {.text = text, .host = host, .out = out, .seed = 11};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  limit();
  tarn_status st = tarn_protect(cx, typed ? all_classes : all_ways, &t);
  if (st != TARN_OK) dprintf(out, "%s\n", tarn_message(cx));
  tarn_ctx_free(cx);
  return st == TARN_OK;
}

/* The steps said how far it came; what stands after the last of them is what was wrong. */
typedef struct outcome {
  bool good, sound;
  char step[80], what[400];
} outcome;
static void heard(outcome *o, char *line) {
  line[strcspn(line, "\n")] = 0;
  snprintf(o->step, sizeof o->step, "%.79s", o->what);
  snprintf(o->what, sizeof o->what, "%s", line);
}
/* A process that talks to this one. Returns its id, or 0 in that process. */
static pid_t talking(FILE **in, int *out) {
  int pipes[2];
  ck_assert_int_eq(pipe(pipes), 0);
  fflush(NULL);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  *out = pipes[1];
  if (!pid) {
    close(pipes[0]);
    return 0;
  }
  close(pipes[1]);
  *in = fdopen(pipes[0], "r");
  ck_assert_ptr_nonnull(*in);
  return pid;
}
static void ended(outcome *o, pid_t pid) {
  int status;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  o->good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  o->sound = !o->good || strcmp(o->what, "unsound") != 0;
  if (WIFEXITED(status)) return;
  snprintf(o->step, sizeof o->step, "%.79s", o->what);
  snprintf(o->what, sizeof o->what, "signal %d", WTERMSIG(status));
}
static outcome try_text(const char *text, const char *host) {
  outcome o = {.sound = true};
  char line[400];
  FILE *f;
  int out;
  pid_t pid = talking(&f, &out);
  if (!pid) _exit(try_here(text, host, out) ? 0 : 1);
  while (fgets(line, sizeof line, f)) heard(&o, line);
  fclose(f);
  ended(&o, pid);
  return o;
}

/* ---------------------------------------------------------------- reduction */

static outcome try_net(const net *g, const char *host) {
  tarn_buf b = {.cx = g->cx};
  net_text(g, &b);
  return try_text(b.p, host);
}

/* What no output needs goes; what is read and not made any more is an input. */
static void net_sweep(net *g) {
  bool need[NET_VALUES];
  memcpy(need, g->asked, sizeof need);
  for (uint32_t i = g->nit; i-- > 0;) {
    bool used = false;
    for (uint32_t k = 0; k < g->it[i].nout; k++) used = used || need[g->it[i].out[k]];
    g->gone[i] = g->gone[i] || !used;
    for (uint32_t k = 0; k < g->it[i].nin && !g->gone[i]; k++) need[g->it[i].in[k]] = true;
  }
  bool made[NET_VALUES] = {0};
  for (uint32_t i = 0; i < g->nit; i++)
    for (uint32_t k = 0; k < g->it[i].nout && !g->gone[i]; k++) made[g->it[i].out[k]] = true;
  for (uint32_t v = 0; v < g->nv; v++)
    g->given[v] = need[v] && !made[v], g->asked[v] = g->asked[v] && made[v];
}

/* One change, kept when something is still wrong with the network. */
static bool keep(net *g, const net *changed, const char *host, outcome *o) {
  net *c = TARN_NEW(g->cx, net);
  *c = *changed;
  net_sweep(c);
  uint32_t outputs = 0;
  for (uint32_t v = 0; v < c->nv; v++) outputs += c->asked[v];
  if (!outputs) return false;
  outcome now = try_net(c, host);
  if (now.good || strcmp(now.step, "import") == 0 || strcmp(now.what, "import") == 0) return false;
  *g = *c, *o = now;
  return true;
}

static void reduce(net *g, const char *host, outcome *o) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t v = 0; v < g->nv; v++) { /* one output less; fewer inputs come by themselves */
      net c = *g;
      if (!c.asked[v]) continue;
      c.asked[v] = false;
      for (uint32_t i = 0; i < c.nit; i++) /* what it was made of is asked for instead */
        for (uint32_t k = 0; k < c.it[i].nout; k++)
          for (uint32_t r = 0; r < c.it[i].nin && c.it[i].out[k] == v; r++)
            c.asked[c.it[i].in[r]] = !c.given[c.it[i].in[r]];
      again = keep(g, &c, host, o) || again;
    }
    for (uint32_t v = 0; v < g->nv; v++) {
      net c = *g;
      c.asked[v] = false;
      if (g->asked[v]) again = keep(g, &c, host, o) || again;
    }
    for (uint32_t i = 0; i < g->nit; i++) { /* an operator becomes inputs */
      net c = *g;
      if (c.gone[i]) continue;
      c.gone[i] = true;
      again = keep(g, &c, host, o) || again;
    }
  }
}

/* ---------------------------------------------------------------- many */

typedef struct result {
  uint32_t sound;
  bool bad;
  char text[6000];
} result;

static result try_seed(uint64_t seed, const char *host) {
  result r = {0};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  net *g = typed ? net_random_typed(cx, seed, of_type) : net_random(cx, seed);
  outcome o = try_net(g, host);
  r.sound = o.sound, r.bad = !o.good;
  if (r.bad) {
    reduce(g, host, &o);
    tarn_buf b = {.cx = cx};
    net_text(g, &b);
    snprintf(r.text, sizeof r.text, "network %llu: %s: %s\n%s", (unsigned long long)seed, o.step,
             o.what, b.p);
  }
  tarn_ctx_free(cx);
  return r;
}

static char *host; /* this machine, described */
static uint64_t first = 1;

START_TEST(networks) { /* ten of them */
  uint32_t sound = 0;
  for (uint64_t i = 0; i < 10; i++) {
    result r = try_seed(first + 10 * (uint64_t)_i + i, host);
    if (r.bad) ck_abort_msg("%s", r.text);
    sound += r.sound;
  }
  ck_assert_uint_ge(sound, 5);
}
END_TEST

static uint64_t from, count;
static const char *file;

/* Many in one process, up to the first that is wrong; prints "with numbers" or "without" after
 * each. */
#define BATCH 64
_Noreturn static void try_many(uint64_t at, uint64_t end, int out) {
  for (; at < end; at++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_buf b = {.cx = cx};
    net_text(typed ? net_random_typed(cx, at, of_type) : net_random(cx, at), &b);
    bool good = try_here(b.p, host, out);
    tarn_ctx_free(cx);
    if (!good) _exit(1);
    dprintf(out, "next\n");
  }
  _exit(0);
}
typedef struct tally {
  uint64_t tried, sound, bad;
} tally;
/* Returns the seed behind the last that was tried. */
static uint64_t batch(uint64_t at, uint64_t end, tally *t) {
  outcome o = {.sound = true};
  char line[400];
  FILE *f;
  int out;
  pid_t pid = talking(&f, &out);
  if (!pid) try_many(at, end, out);
  while (fgets(line, sizeof line, f)) {
    if (strcmp(line, "next\n") != 0) {
      heard(&o, line);
      continue;
    }
    t->sound += strcmp(o.what, "unsound") != 0;
    at++;
  }
  fclose(f);
  ended(&o, pid);
  if (o.good) return at;
  result r = try_seed(at, host);
  if (r.bad) printf("%s\n", r.text);
  else printf("network %llu: behind others: %s: %s\n", (unsigned long long)at, o.step, o.what);
  t->bad++;
  return at + 1;
}
START_TEST(listed) {
  tally t = {0};
  for (uint64_t at = from, end = from + count; at < end; t.tried = at - from) {
    uint64_t last = end - at < BATCH ? end : at + BATCH;
    at = batch(at, last, &t);
    fprintf(stderr, "\r%llu networks", (unsigned long long)(at - from));
    fflush(stdout);
  }
  printf("%llu networks, %llu with numbers, %llu bad\n", (unsigned long long)count,
         (unsigned long long)t.sound, (unsigned long long)t.bad);
  ck_assert_uint_eq(t.bad, 0);
}
END_TEST

/* As ONNX files, for other engines. */
static void write_models(tarn_ctx *cx, const char *dir) {
  for (uint64_t i = 0; i < count; i++) {
    tarn_buf b = {.cx = cx};
    size_t n;
    net_text(net_random_typed(cx, from + i, of_type), &b);
    uint8_t *bytes = kit_model_bytes(cx, b.p, &n);
    const char *path = tarn_format(cx, "%s/%llu.onnx", dir, (unsigned long long)(from + i));
    tarn_write_file(cx, path, bytes, n);
  }
}
START_TEST(to_files) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  write_models(cx, file);
  tarn_ctx_free(cx);
}
END_TEST

START_TEST(from_file) {
  static char text[100000];
  FILE *f = fopen(file, "r");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
  fclose(f);
  outcome o = try_text(text, host);
  printf("%s: %s\n", o.good ? "good" : o.step, o.what);
  ck_assert(o.good);
}
END_TEST

START_TEST(typed_networks) { /* five of them */
  typed = true;
  for (uint64_t i = 0; i < 5; i++) {
    result r = try_seed(first + 5 * (uint64_t)_i + i, host);
    if (r.bad) ck_abort_msg("%s", r.text);
  }
}
END_TEST

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < NET_TYPES; i++)
    if (!strcmp(argv[1], net_types[i].name)) of_type = net_types[i].name;
  typed = of_type || (argc > 1 && strcmp(argv[1], "typed") == 0);
  if (typed) argc--, argv++;
  tarn_ctx *cx = tarn_ctx_new(NULL);
  host = pipeline_host(cx).p;
  bool all = argc == 2 && strcmp(argv[1], "--all") == 0;
  Suite *suite = suite_create("random networks");
  TCase *t = tcase_create("random networks");
  tcase_set_timeout(t, 600);
  if (argc >= 3) {
    from = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    file = argc > 3 ? argv[3] : NULL;
    tcase_add_test(t, file ? to_files : listed);
  } else if (argc == 2 && !all) {
    file = argv[1];
    tcase_add_test(t, from_file);
  } else {
    tcase_add_loop_test(t, networks, 0, (all ? ALL_NETS : NETS) / 10);
    tcase_add_loop_test(t, typed_networks, 0, (all ? ALL_TYPED : TYPED) / 5);
  }
  suite_add_tcase(suite, t);
  SRunner *r = srunner_create(suite);
  if (argc >= 3) srunner_set_fork_status(r, CK_NOFORK);
  srunner_run_all(r, CK_NORMAL);
  int bad = srunner_ntests_failed(r);
  srunner_free(r);
  tarn_ctx_free(cx);
  return bad ? 1 : 0;
}
