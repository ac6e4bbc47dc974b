/* Runs ONNX's node tests (see generate.py) and compares the list of what passes with a committed
 * one.
 *
 *   conformance_run TESTS_DIR EXPECTED [--update] [--only NAME]
 *
 * Every test is run three ways: as imported, in the interpreter; optimised, in the interpreter;
 * optimised and compiled. One line a test: `NAME pass`; `NAME bound` (passes once inputs that
 * decide a shape are given as constants: all but the first, or all); `NAME opaque OP…` and `NAME
 * bound opaque OP…` (passes, with operators that stayed opaque); `NAME unsupported REASON`; `NAME
 * wrong REASON`. Exit code 1 when the list differs from EXPECTED, in either direction;
 * --update writes it.
 */
#include "model/model.h"
#include "tests/pipeline.h"
#include <dirent.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the ways a program is run */

/* What a test's program is turned into, once for all its data sets. */
typedef struct forms {
  const char *host; /* description of this machine */
  tarn_program *p;
  pipeline *optimised;
  tarn_loaded *compiled;
} forms;
typedef void make_fn(forms *f);
typedef void way_fn(const forms *f, const tarn_binding *in, tarn_tensor **out);

static void as_imported(const forms *f, const tarn_binding *in, tarn_tensor **out) {
  const tarn_program *p = f->p;
  tarn_term *root = TARN_ARRAY(tarn_lang_ctx(p->L), tarn_term, p->nout);
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  tarn_eval(p->L, root, p->nout, in, p->nin, TARN_STRICT, tarn_opaque_eval, out);
}

static void optimise(forms *f) {
  tarn_lang *L = f->p->L;
  tarn_sx *text = tarn_sx_read(tarn_lang_ctx(L), f->host, strlen(f->host), "host");
  f->optimised = pipeline_optimise(f->p, tarn_hw_parse(L, text));
}
static void kernels(const forms *f, const tarn_binding *in, tarn_tensor **out) {
  tarn_kprog_eval(f->optimised->kprog, in, f->p->nin, TARN_STRICT, tarn_opaque_eval, out);
}

static void compile(forms *f) {
  f->compiled = pipeline_compile(f->optimised, pipeline_folder(tarn_lang_ctx(f->p->L)));
}
static void machine_code(const forms *f, const tarn_binding *in, tarn_tensor **out) {
  pipeline_run(f->compiled, f->p, in, out);
}

static const struct {
  const char *name;
  make_fn *make;
  way_fn *run;
} ways[] = {{"interpreted", NULL, as_imported},
            {"optimised", optimise, kernels},
            {"compiled", compile, machine_code}};
#define WAYS           (sizeof ways / sizeof *ways)
#define SECONDS_A_TEST 60

/* ---------------------------------------------------------------- one test */

typedef struct test {
  const char *dir, *name, *host;
  const char *way; /* that is being tried */
  int bind;        /* 0: every input stays an input; 1: the first does; 2: none does */
  double rtol, atol;
  bool loaded, single_f32;
  char result[400];
} test;

_Noreturn static void wrong(tarn_ctx *cx, const char *what) { tarn_raise(cx, TARN_NO, "%s", what); }

/* The generator truncates to bfloat16 where we round, some after each step: a unit or two in the
 * last place. */
static bool close_to(double a, double b, const test *t, tarn_dtype dt) {
  double rtol = dt == TARN_BF16 && t->rtol < 1.0 / 64 ? 1.0 / 64 : t->rtol;
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  bool finite = isfinite(a) && isfinite(b); /* or an infinity would allow anything */
  return a == b || (finite && fabs(a - b) <= t->atol + rtol * fabs(b));
}

static void compare(tarn_ctx *cx, const test *t, const char *name, const tarn_tensor *got,
                    const tarn_tensor *want) {
  if (got->dtype != want->dtype)
    wrong(cx, tarn_format(cx, "%s has type %s, %s is expected", name, tarn_dtype_name(got->dtype),
                          tarn_dtype_name(want->dtype)));
  bool same = got->n == want->n;
  for (uint32_t i = 0; same && i < got->n; i++) same = got->dim[i] == want->dim[i];
  if (!same) wrong(cx, tarn_format(cx, "%s has the wrong shape", name));
  for (int64_t i = 0, n = tarn_tensor_count(got); i < n; i++) {
    tarn_value a = tarn_tensor_get(got, i), b = tarn_tensor_get(want, i);
    bool real = tarn_dtype_is_float(got->dtype);
    if (real ? !close_to(a.d, b.d, t, got->dtype) : a.i != b.i)
      wrong(cx, tarn_format(cx, "%s[%lld] is %g, %g is expected", name, (long long)i,
                            real ? a.d : (double)a.i, real ? b.d : (double)b.i));
  }
}

static bool exists(const char *path) {
  FILE *f = fopen(path, "rb");
  if (f) fclose(f);
  return f != NULL;
}

static void read_tolerance(tarn_ctx *cx, test *t) {
  char *end;
  size_t n;
  const char *text =
      tarn_read_file(cx, tarn_format(cx, "%s/%s/tolerance.txt", t->dir, t->name), &n);
  t->rtol = strtod(text, &end);
  t->atol = strtod(end, NULL);
}

/* The generator stores bfloat16 as the uint16 that NumPy has for it. */
static tarn_tensor *read_as(tarn_ctx *cx, const char *path, tarn_dtype t) {
  tarn_tensor *x = tarn_tensor_read(cx, path);
  if (t == TARN_BF16 && x->dtype == TARN_U16) x->dtype = TARN_BF16;
  return x;
}

static tarn_dtype dtype_of(const tarn_program *p, const tarn_io *io) {
  return tarn_type_get(p->L, io->type)->dtype;
}

/* The model's inputs by position, which names the files of a data set. */
typedef struct names {
  uint32_t n;
  char **p;
} names;

static tarn_tensor *read_input(tarn_ctx *cx, const test *t, const names *all, const char *name,
                               int set, tarn_dtype as) {
  uint32_t k = 0;
  while (k < all->n && strcmp(all->p[k], name) != 0) k++;
  return read_as(cx, tarn_format(cx, "%s/%s/test_data_set_%d/input_%u.pb", t->dir, t->name, set, k),
                 as);
}

/* CastLike's tests give one element of the type wanted where their models declare more: only its
 * type is looked at. */
static const tarn_tensor *like_declared(tarn_ctx *cx, const tarn_type *type, const tarn_tensor *x) {
  if (tarn_tensor_count(x) != 1 || x->dtype != type->dtype) return x;
  tarn_tensor *r = tarn_tensor_new(cx, type->dtype, type->n, type->dim);
  for (int64_t i = 0, n = tarn_tensor_count(r); i < n; i++)
    tarn_tensor_set(r, i, tarn_tensor_get(x, 0));
  return r;
}

static bool run_data_set(tarn_ctx *cx, const test *t, const forms *f, size_t way, const names *all,
                         int set) {
  const tarn_program *p = f->p;
  const char *at = tarn_format(cx, "%s/%s/test_data_set_%d", t->dir, t->name, set);
  if (!exists(tarn_format(cx, "%s/output_0.pb", at))) return false;
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  for (uint32_t i = 0; i < p->nin; i++) {
    tarn_tensor *x = read_input(cx, t, all, p->in[i].name, set, dtype_of(p, &p->in[i]));
    in[i] = (tarn_binding){p->in[i].name, like_declared(cx, tarn_type_get(p->L, p->in[i].type), x)};
  }
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  ways[way].run(f, in, out);
  for (uint32_t i = 0; i < p->nout; i++)
    compare(cx, t, p->out[i].name, out[i],
            read_as(cx, tarn_format(cx, "%s/output_%u.pb", at, i), dtype_of(p, &p->out[i])));
  return true;
}

/* One node, and float32 is the only type of floats at its ends. */
static bool is_single_f32(const tarn_program *p, const tarn_model_report *r) {
  bool f32 = false, other = false;
  for (uint32_t i = 0; i < p->nin + p->nout; i++) {
    uint32_t type = i < p->nin ? p->in[i].type : p->out[i - p->nin].type;
    tarn_dtype t = tarn_type_get(p->L, type)->dtype;
    f32 |= t == TARN_F32;
    other |= t != TARN_F32 && tarn_dtype_is_float(t);
  }
  return r->nnode == 1 && f32 && !other;
}

static char **lines_of(tarn_ctx *cx, char *text, uint32_t *count) {
  TARN_VEC(char *) v = {0};
  for (char *s = text, *end; *s; s = end) {
    end = s + strcspn(s, "\n");
    if (*end) *end++ = 0;
    if (*s && *s != '#') tarn_push(cx, &v, s);
  }
  *count = v.n;
  return v.p;
}

static names input_names(tarn_ctx *cx, const test *t) {
  names r = {0};
  size_t n;
  r.p = lines_of(cx, tarn_read_file(cx, tarn_format(cx, "%s/%s/inputs.txt", t->dir, t->name), &n),
                 &r.n);
  return r;
}

/* Values of the first data set for the inputs that are to be constants. */
static tarn_model_options bind_values(tarn_ctx *cx, const test *t, const names *all) {
  tarn_binding *v = TARN_ARRAY(cx, tarn_binding, all->n + 1);
  tarn_model_options o = {.value = v};
  for (uint32_t i = t->bind == 2 ? 0 : 1; t->bind && i < all->n; i++)
    v[o.nvalue++] = (tarn_binding){all->p[i], read_input(cx, t, all, all->p[i], 0, TARN_F32)};
  return o;
}

static void run_test(tarn_ctx *cx, void *arg) {
  test *t = arg;
  tarn_model_report report;
  read_tolerance(cx, t);
  names all = input_names(cx, t);
  tarn_model_options o = bind_values(cx, t, &all);
  const char *path = tarn_format(cx, "%s/%s/model.onnx", t->dir, t->name);
  tarn_program *p = tarn_model_load(tarn_lang_new(cx), path, &o, &report);
  t->loaded = true;
  t->single_f32 = is_single_f32(p, &report);
  forms f = {.host = t->host, .p = p};
  for (size_t w = 0; w < WAYS; w++) {
    int set = 0;
    t->way = ways[w].name;
    if (ways[w].make) ways[w].make(&f);
    while (run_data_set(cx, t, &f, w, &all, set)) set++;
    if (set == 0) wrong(cx, "no data");
  }
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, t->bind ? "bound" : report.nopaque ? "opaque" : "pass");
  if (t->bind && report.nopaque) tarn_buf_str(&b, " opaque");
  for (uint32_t i = 0; i < report.nopaque; i++) tarn_buf_fmt(&b, " %s", report.opaque[i].op);
  snprintf(t->result, sizeof t->result, "%s", b.p);
}

/* "FILE: node NAME (OP): WHAT" without the file and the node's name. */
static const char *reason(const char *message) {
  const char *node = strstr(message, ": node ");
  if (!node) {
    const char *colon = strstr(message, "model.onnx: ");
    return colon ? colon + strlen("model.onnx: ") : message;
  }
  const char *op = strstr(node, " (");
  return op ? op + 1 : message;
}

static bool starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static bool run_bound(test *t, int bind) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  char before[sizeof t->result];
  if (!cx) return false;
  memcpy(before, t->result, sizeof before);
  t->bind = bind;
  t->loaded = false;
  tarn_status st = tarn_protect(cx, run_test, t);
  if (st != TARN_OK && t->loaded)
    snprintf(t->result, sizeof t->result, "wrong %s: %.360s", t->way, tarn_message(cx));
  else if (st != TARN_OK)
    snprintf(t->result, sizeof t->result, "unsupported %.380s", reason(tarn_message(cx)));
  if (bind && starts(t->result, "unsupported")) memcpy(t->result, before, sizeof before);
  tarn_ctx_free(cx);
  return true;
}

/* Is it refused because a value is not known when the model is compiled? */
static bool wants_constants(const test *t) {
  return starts(t->result, "unsupported") &&
         (strstr(t->result, "constant") || strstr(t->result, "--set"));
}
static void run_tries(test *t) {
  bool ok = run_bound(t, 0);
  for (int bind = 1; ok && bind <= 2 && wants_constants(t); bind++) ok = run_bound(t, bind);
  if (!ok) snprintf(t->result, sizeof t->result, "wrong out of memory");
}

/* A process of its own for every test: nothing of one can help or hurt another. */
static bool run_isolated(test *t) {
  int end[2], status = 0;
  if (fflush(NULL) || pipe(end)) return false;
  pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    alarm(SECONDS_A_TEST);
    run_tries(t);
    _exit(write(end[1], t, sizeof *t) != sizeof *t);
  }
  close(end[1]);
  bool got = read(end[0], t, sizeof *t) == sizeof *t;
  close(end[0]);
  if (waitpid(child, &status, 0) != child) return false;
  if (!got && WIFSIGNALED(status))
    snprintf(t->result, sizeof t->result, "wrong ended by signal %d", WTERMSIG(status));
  else if (!got) return false;
  return true;
}

/* ---------------------------------------------------------------- the list */

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef struct job {
  const char *dir, *expected, *only;
  bool update;
  bool stale;
} job;

static char **test_names(tarn_ctx *cx, const job *j, uint32_t *count) {
  DIR *d = opendir(j->dir);
  TARN_VEC(char *) v = {0};
  if (!d) tarn_raise(cx, TARN_IO, "%s: cannot be read", j->dir);
  for (struct dirent *e; (e = readdir(d));)
    if (strncmp(e->d_name, "test_", 5) == 0 && (!j->only || strcmp(j->only, e->d_name) == 0))
      tarn_push(cx, &v, tarn_strdup(cx, e->d_name));
  closedir(d);
  if (v.n == 0) tarn_raise(cx, TARN_BAD_INPUT, "%s: no tests", j->dir);
  qsort(v.p, v.n, sizeof *v.p, by_text);
  *count = v.n;
  return v.p;
}

/* Both lists are sorted by name: prints what is in one only. */
static bool differ(char **old, uint32_t nold, char **now, uint32_t nnow) {
  uint32_t i = 0, k = 0;
  bool any = false;
  while (i < nold || k < nnow) {
    int c = i == nold ? 1 : k == nnow ? -1 : strcmp(old[i], now[k]);
    if (c != 0) any = true;
    if (c < 0) printf("- %s\n", old[i]);
    if (c > 0) printf("+ %s\n", now[k]);
    i += c <= 0;
    k += c >= 0;
  }
  return any;
}

static void run_all(tarn_ctx *cx, void *arg) {
  job *j = arg;
  uint32_t n, nold = 0, count[5] = {0}, f32 = 0;
  static const char *const kinds[] = {"pass", "bound", "opaque", "unsupported", "wrong"};
  char **folder = test_names(cx, j, &n);
  tarn_buf text = {.cx = cx};
  char **now = TARN_ARRAY(cx, char *, n);
  tarn_buf host = pipeline_host(cx);
  for (uint32_t i = 0; i < n; i++) {
    test t = {.dir = j->dir, .name = folder[i], .host = host.p};
    if (!run_isolated(&t)) tarn_raise(cx, TARN_MEMORY, "%s: no process for it", t.name);
    now[i] = tarn_format(cx, "%s %s", t.name, t.result);
    tarn_buf_fmt(&text, "%s\n", now[i]);
    for (int k = 0; k < 5; k++) count[k] += starts(t.result, kinds[k]);
    f32 += starts(t.result, "pass") && t.single_f32;
  }
  qsort(now, n, sizeof *now, by_text);
  printf("%u tests: %u pass, %u bound, %u opaque, %u unsupported, %u wrong; %u single-node float32 "
         "tests pass without opaque\n",
         n, count[0], count[1], count[2], count[3], count[4], f32);
  if (j->only) {
    printf("%s", text.p);
    return;
  }
  if (j->update) {
    tarn_write_file(cx, j->expected, text.p, text.n);
    return;
  }
  size_t len;
  char **old = lines_of(cx, tarn_read_file(cx, j->expected, &len), &nold);
  qsort(old, nold, sizeof *old, by_text);
  j->stale = differ(old, nold, now, n);
}

int main(int argc, char **argv) {
  job j = {0};
  if (argc < 3) {
    fprintf(stderr, "usage: %s TESTS_DIR EXPECTED [--update] [--only NAME]\n", argv[0]);
    return 2;
  }
  j.dir = argv[1];
  j.expected = argv[2];
  for (int i = 3; i < argc; i++) {
    if (strcmp(argv[i], "--update") == 0) j.update = true;
    else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) j.only = argv[++i];
  }
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = cx ? tarn_protect(cx, run_all, &j) : TARN_MEMORY;
  if (st != TARN_OK) fprintf(stderr, "%s\n", cx ? tarn_message(cx) : "out of memory");
  if (j.stale) printf("the list is stale: see above, and --update\n");
  tarn_ctx_free(cx);
  return st != TARN_OK ? 3 : j.stale;
}
