/* Whole pipeline: random networks optimised, in the interpreter and compiled, against what they
 * say.
 *
 *   test_random_nets [--all]          some networks, or thousands
 *   test_random_nets FIRST COUNT      those of COUNT seeds from FIRST: prints what is found,
 *                                     reduced
 *   test_random_nets typed FIRST COUNT   likewise, of all types and operators, in three classes
 *   test_random_nets bf16 FIRST COUNT    likewise, all inputs of that type
 *   test_random_nets large FIRST COUNT   likewise, of 17 to 30 operators
 *   test_random_nets typed FIRST COUNT DIR   writes them as DIR/SEED.onnx, for bench/zoo.py
 *   test_random_nets sizes FIRST COUNT   of an open length, as one artefact for a range of it
 *   test_random_nets targets FIRST COUNT   typed, compiled for a GPU or an accelerator, in the
 *                                     executor or the simulator
 *   test_random_nets idioms FIRST COUNT   of what the lists of operators leave out, in all classes
 *   test_random_nets FILE             one network as text
 *
 * Networks are tried in processes of their own, so that a crash or an endless run is a finding like
 * any other. */
#include "tests/random_trials.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const char *of_type; /* of the inputs of typed networks; NULL: any */
static net *draw_typed(tarn_ctx *cx, uint64_t seed) {
  return net_random_typed(cx, seed, of_type, false);
}
static net *draw_large(tarn_ctx *cx, uint64_t seed) {
  return net_random_typed(cx, seed, NULL, true);
}

typedef struct kind {
  const char *name;
  net *(*draw)(tarn_ctx *cx, uint64_t seed);
  tarn_fn *trial;
  double seconds, slow; /* of the processor, that a network may take, and a step of its trial */
  uint32_t some, all, group; /* networks of a run, of a long one, and of one of Check's tests */
} kind;
enum { PLAIN, TYPED, LARGE, SIZES, TARGETS, IDIOMS, KINDS };
static const kind kinds[KINDS] = {
    [PLAIN] = {"plain", net_random, all_ways, 20, 8, 50, 400, 10},
    [TYPED] = {"typed", draw_typed, all_classes, 20, 8, 20, 1000, 5},
    [LARGE] = {"large", draw_large, all_classes, 40, 16, 4, 200, 2},
    [SIZES] = {"sizes", net_random_open, all_sizes, 120, 60, 3, 100, 1},
    [TARGETS] = {"targets", draw_typed, all_targets, 60, 30, 12, 600, 3},
    [IDIOMS] = {"idioms", net_random_idioms, all_classes, 20, 8, 15, 600, 5},
};
static const kind *of = &kinds[PLAIN];

/* A process that tries networks has so much time for the next one. */
static void limit(void) {
  struct rlimit space = {(rlim_t)6 << 30, (rlim_t)6 << 30};
  rlim_t used = (rlim_t)(clock() / CLOCKS_PER_SEC) + (rlim_t)of->seconds;
  struct rlimit time = {used, RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &time);
#ifdef __SANITIZE_ADDRESS__
  (void)space; /* its shadow alone is larger */
#else
  setrlimit(RLIMIT_AS, &space);
#endif
  alarm((unsigned)(6 * of->seconds));
}
static bool try_here(const char *text, const char *host, int out) {
  trial t = {.text = text, .host = host, .out = out, .seed = 11, .slow = of->slow};
  t.typed =
      of == &kinds[TYPED] || of == &kinds[LARGE] || of == &kinds[TARGETS] || of == &kinds[IDIOMS];
  tarn_ctx *cx = tarn_ctx_new(NULL);
  limit();
  tarn_status st = tarn_protect(cx, of->trial, &t);
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
  net *g = of->draw(cx, seed);
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

#define GROUPS 1000    /* of a kind, at most */
START_TEST(networks) { /* a group of them */
  uint32_t sound = 0;
  of = &kinds[_i / GROUPS];
  for (uint64_t i = 0; i < of->group; i++) {
    result r = try_seed(first + of->group * (uint64_t)(_i % GROUPS) + i, host);
    if (r.bad) ck_abort_msg("%s", r.text);
    sound += r.sound;
  }
  ck_assert_uint_ge(sound, of == &kinds[PLAIN] ? 5 : 0);
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
    net_text(of->draw(cx, at), &b);
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
    net_text(of->draw(cx, from + i), &b);
    uint8_t *bytes = kit_model_bytes(cx, model_of(b.p), &n);
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

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < NET_TYPES; i++)
    if (!strcmp(argv[1], net_types[i].name)) of_type = net_types[i].name;
  if (of_type) of = &kinds[TYPED];
  for (uint32_t k = 0; k < KINDS && argc > 1; k++)
    if (!strcmp(argv[1], kinds[k].name)) of = &kinds[k];
  bool named = of_type || (argc > 1 && !strcmp(argv[1], of->name));
  if (named) argc--, argv++;
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
    for (int k = 0; k < KINDS; k++) {
      int n = (int)((all ? kinds[k].all : kinds[k].some) / kinds[k].group);
      tcase_add_loop_test(t, networks, k * GROUPS, k * GROUPS + n);
    }
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
