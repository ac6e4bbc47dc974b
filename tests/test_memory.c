/* Memory that runs out anywhere between a model and its program: each allocation in turn fails,
 * alone or with all after it. Either way the compile reports TARN_MEMORY, leaks nothing, and leaves
 * no file in the folder. --all: every allocation of every model; otherwise samples. One compile
 * forks before each allocation, so that the time grows with their number and not with its square.
 */
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compile/compile.h"
#include "tests/alloc.h"
#include "tests/suite.h"

static bool all;
static char folder[] = "/tmp/tarn-memory-XXXXXX";

static void ignore(void *user, const char *name, const char *text, size_t n) {
  (void)user;
  (void)name;
  (void)text;
  (void)n;
}
static void prove(tarn_compiled *c) {
  tarn_buf proof = {.cx = tarn_lang_ctx(c->L)};
  tarn_ruleset *rs = tarn_ruleset_new(c->L);
  tarn_compile_explain(c, &proof);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(proof.cx, proof.p, proof.n, "proof"),
                                         &(tarn_proof_options){0});
  ck_assert_msg(r.ok, "step %u: %s", r.bad, r.why);
}
typedef struct subject {
  const char *model, *text; /* text: of a comprehension */
  const char *shapes[1];    /* for several sizes */
} subject;
static const subject subjects[] = {
    {.model = "tests/data/onnx/blocks.onnx"},
    {.model = "tests/data/onnx/softmax.onnx"},
    {.model = "tests/data/onnx/recurrent.onnx"},
    {"several.tc", "def f(float(N,M) x, float(M) w) -> (y) { y(n) +=! x(n,m) * w(m) }", {"M=4,7"}},
};
/* Programs of two sizes. */
static void compile_sizes(tarn_lang *L, const subject *s, tarn_compile_options *o) {
  const char *const shapes[] = {"N=3", s->shapes[0]};
  o->text = s->text;
  o->text_n = strlen(s->text);
  o->shapes = (tarn_texts){2, shapes};
  ck_assert_uint_eq(tarn_compile(L, o)->sizes->nprogram, 2);
}
/* Import, saturation, selection, an explanation and its check, an object in a new folder. */
static void compile(tarn_ctx *cx, void *arg) {
  const subject *s = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  o.model = s->model;
  o.hw = tarn_hw_load(L, "x86-64-v3");
  o.emit = "o";
  o.dir = tarn_format(cx, "%s/new", folder);
  if (s->text) {
    compile_sizes(L, s, &o);
    return;
  }
  o.reasons = true;
  o.dump = TARN_DUMP_TERMS | TARN_DUMP_SCHEDULES;
  o.sink = ignore;
  tarn_compiled *c = tarn_compile_load(L, &o);
  tarn_compile_optimise(c);
  prove(c);
  tarn_compile_emit(c);
}

static int files(void) {
  int n = -2; /* . and .. */
  DIR *d = opendir(folder);
  ck_assert_ptr_nonnull(d);
  while (readdir(d)) n++;
  closedir(d);
  return n;
}
static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f) {
  (void)st;
  (void)flag;
  return f->level ? remove(path) : 0;
}
static void clear(void) { nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* Instead of the library's: of a process that forks on another thread, that one alone goes on. */
bool tarn_deep(size_t bytes, void (*fn)(void *arg), void *arg) {
  (void)bytes;
  fn(arg);
  return true;
}

/* ---- one compile in which allocations fail ---- */
enum { WELL = 42 }; /* with which a child ends that has come to its end */
typedef struct trial {
  tarn_test_alloc t;
  const subject *s;
  uint64_t step, forks; /* every step-th allocation fails in children of this process; 0: in none */
  bool child;
  struct {
    uint64_t *p;
    size_t n;
  } alone; /* allocations while there are files, which a child would remove for its parent too */
} trial;

/* False and a line when the compile that ended so is not right. */
static bool right(const trial *x, tarn_status st) {
  const char *wrong = st != (x->t.failed ? TARN_MEMORY : TARN_OK) ? "wrong status"
                      : x->t.held || x->t.wrong_size              ? "bytes are left"
                      : st && files()                             ? "files are left"
                                                                  : NULL;
  if (wrong)
    fprintf(stderr, "%s, allocation %llu%s: %s (%d)\n", x->s->model,
            (unsigned long long)x->t.fail_at, x->t.stay_down ? " and all after it" : "", wrong, st);
  return !wrong;
}
/* In a child of this process, which goes on in the middle of the compile, the next allocation
 * fails, alone or with all after it. True in the child. */
static bool fail_in_child(trial *x, bool down) {
  int st;
  fflush(NULL);
  pid_t pid = fork();
  if (!pid) {
    x->child = true, x->t.fail_at = x->t.count + 1, x->t.stay_down = down;
    return true;
  }
  ck_assert_int_eq(waitpid(pid, &st, 0), pid);
  ck_assert_msg(WIFEXITED(st) && WEXITSTATUS(st) == WELL,
                "%s, allocation %llu: a child ends with %d", x->s->model,
                (unsigned long long)x->t.count + 1, st);
  x->forks++;
  return false;
}
static void *allocate(void *user, void *ptr, size_t old, size_t n) {
  trial *x = user;
  if (n && !x->child && x->step && x->t.count % x->step == 0) {
    if (files()) {
      x->alone.p = realloc(x->alone.p, (x->alone.n + 1) * sizeof *x->alone.p);
      x->alone.p[x->alone.n++] = x->t.count + 1;
    } else if (!fail_in_child(x, false)) fail_in_child(x, true);
  }
  return tarn_test_realloc(&x->t, ptr, old, n);
}
static void run(trial *x) {
  tarn_allocator a = {allocate, x};
  tarn_ctx *cx = tarn_ctx_new(&a);
  tarn_status st = cx ? tarn_protect(cx, compile, (void *)(uintptr_t)x->s) : TARN_MEMORY;
  tarn_ctx_free(cx);
  bool ok = right(x, st);
  if (x->child) _exit(ok ? WELL : 1);
  clear();
  ck_assert(ok);
}

START_TEST(every) {
  trial counted = {.s = &subjects[_i]}, x = counted;
  run(&counted);
  ck_assert_uint_gt(counted.t.count, 100);
  x.step = all ? 1 : counted.t.count / 40 + 1;
  run(&x);
  for (size_t i = 0; i < x.alone.n; i++)
    for (int down = 0; down < 2; down++) {
      trial one = {.t = {.fail_at = x.alone.p[i], .stay_down = down}, .s = x.s};
      run(&one);
      ck_assert_uint_ge(one.t.failed, 1);
    }
  ck_assert_uint_ge(x.forks / 2 + x.alone.n, counted.t.count / x.step);
  free(x.alone.p);
}
END_TEST

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "--all");
  if (!mkdtemp(folder)) return 1;
  TCase *c = tcase_create("compile");
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, every, 0, sizeof subjects / sizeof *subjects);
  int failed = run_checks("memory", c);
  rmdir(folder);
  return failed != 0;
}
