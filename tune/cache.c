/* The cache of compiled comprehensions: one map for what this process has called, by the options as
 * they are; one by what they mean; and the file behind both. */
#include "tune/cache.h"
#include "runtime/rt.h"
#include "tune/tune.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  tarn_call call;
  tarn_loaded *m; /* NULL: not called yet */
} entry;
typedef struct target {
  const tarn_hw *hw;
  const char *text;
  uint64_t hash;
} target;
struct tarn_cache {
  tarn_ctx *cx;
  const char *path;
  sqlite3 *db;
  tarn_intern *asked, *meant; /* keys */
  TARN_VEC(uint32_t) meaning; /* by number of `asked`: of `meant` */
  TARN_VEC(entry *) entry;    /* by number of `meant` */
  TARN_VEC(target) target;
  tarn_buf key; /* of the call that is looked up */
};

/* ---------------------------------------------------------------- the file */

static void fail(const tarn_cache *c) {
  tarn_status st = sqlite3_errcode(c->db) == SQLITE_NOMEM ? TARN_MEMORY : TARN_IO;
  tarn_raise(c->cx, st, "%s: %s", c->path, sqlite3_errmsg(c->db));
}

static sqlite3_stmt *prepare(const tarn_cache *c, const char *sql, const char *key) {
  sqlite3_stmt *q;
  if (sqlite3_prepare_v2(c->db, sql, -1, &q, NULL) != SQLITE_OK) fail(c);
  sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
  return q;
}

typedef struct object {
  void *so;
  size_t n;
  bool injected;
} object;

/* False: the file has no such entry. The bytes lie in the arena. */
static bool stored(const tarn_cache *c, const char *key, object *x) {
  sqlite3_stmt *q = prepare(c, "SELECT so, injected FROM compiled WHERE key=?1", key);
  int st = sqlite3_step(q);
  if (st == SQLITE_ROW) {
    x->n = (size_t)sqlite3_column_bytes(q, 0);
    x->so = malloc(x->n + 1);
    if (x->so) memcpy(x->so, sqlite3_column_blob(q, 0), x->n);
    x->injected = sqlite3_column_int(q, 1);
  }
  sqlite3_finalize(q);
  if (st != SQLITE_ROW && st != SQLITE_DONE) fail(c);
  if (st == SQLITE_ROW && !x->so) tarn_raise(c->cx, TARN_MEMORY, "%s: out of memory", c->path);
  if (st == SQLITE_ROW) tarn_defer(c->cx, free, x->so);
  return st == SQLITE_ROW;
}

/* An entry that was injected is replaced by another such alone. */
static void store(const tarn_cache *c, const char *key, const object *x) {
  sqlite3_stmt *q = prepare(c,
                            "INSERT INTO compiled VALUES(?1,?2,?3) ON CONFLICT DO UPDATE SET so = "
                            "excluded.so, injected = excluded.injected WHERE injected <= "
                            "excluded.injected",
                            key);
  sqlite3_bind_blob64(q, 2, x->so, x->n, SQLITE_STATIC);
  sqlite3_bind_int(q, 3, x->injected);
  int st = sqlite3_step(q);
  sqlite3_finalize(q);
  if (st != SQLITE_DONE) fail(c);
}

static void close_cache(void *p) {
  tarn_cache *c = p;
  for (uint32_t i = 0; i < c->entry.n; i++)
    if (c->entry.p[i]->m) tarn_unload(c->entry.p[i]->m);
  c->entry.n = 0;
  sqlite3_close(c->db);
  c->db = NULL;
}

static void make_file(tarn_ctx *cx, void *path) { tarn_store_open(cx, path); }

tarn_cache *tarn_cache_open(tarn_ctx *cx, const char *path) {
  tarn_cache *c = TARN_NEW(cx, tarn_cache);
  *c = (tarn_cache){.cx = cx, .path = tarn_strdup(cx, path), .key = {.cx = cx}};
  c->asked = tarn_intern_new(cx);
  c->meant = tarn_intern_new(cx);
  tarn_status made = tarn_protect(cx, make_file, (void *)(uintptr_t)c->path);
  if (made != TARN_OK) tarn_reraise(cx, made);
  int st = sqlite3_open(path, &c->db);
  tarn_defer(cx, close_cache, c);
  if (st != SQLITE_OK) fail(c);
  sqlite3_busy_timeout(c->db, 10000);
  if (sqlite3_exec(c->db,
                   "CREATE TABLE IF NOT EXISTS compiled(key TEXT PRIMARY KEY, so BLOB NOT NULL, "
                   "injected INTEGER NOT NULL)",
                   NULL, NULL, NULL) != SQLITE_OK)
    fail(c);
  return c;
}

void tarn_cache_close(tarn_cache *c) {
  tarn_keep(c->cx, c);
  close_cache(c);
}

/* ---------------------------------------------------------------- keys */

static const target *target_of(tarn_cache *c, const tarn_hw *hw) {
  uint32_t i = 0;
  while (i < c->target.n && c->target.p[i].hw != hw) i++;
  if (i < c->target.n) return &c->target.p[i];
  tarn_buf b = {.cx = c->cx};
  tarn_hw_print(hw, &b);
  target t = {hw, b.p, tarn_hash_bytes(b.p, b.n, 0)};
  tarn_push(c->cx, &c->target, t);
  return &c->target.p[i];
}

static void add(tarn_buf *b, const void *p, size_t n) {
  tarn_buf_add(b, (const char *)&n, sizeof n);
  tarn_buf_add(b, p, n);
}
static void add_texts(tarn_buf *b, const tarn_texts *t) {
  add(b, &t->n, sizeof t->n);
  for (uint32_t i = 0; i < t->n; i++) add(b, t->text[i], strlen(t->text[i]));
}

/* The options that change the code, but for texts. */
static void add_numbers(tarn_buf *b, const tarn_compile_options *o) {
  uint64_t real[2];
  memcpy(&real[0], &o->rtol, sizeof real[0]);
  memcpy(&real[1], &o->seconds, sizeof real[1]);
  tarn_buf_fmt(b, " %d %u %llx %llu %u %llx %d", (int)o->numerics, o->threads,
               (unsigned long long)real[0], (unsigned long long)o->nodes, o->iters,
               (unsigned long long)real[1], o->allow_copies);
}

/* The call as it is written; equal ones mean the same. */
static uint32_t asked(tarn_cache *c, const tarn_compile_options *o) {
  tarn_buf *b = &c->key;
  b->n = 0;
  const struct {
    uint64_t nodes;
    const void *hw;
    double rtol, seconds;
    uint32_t numerics, threads, iters, copies;
  } numbers = {o->nodes,   o->hw,    o->rtol,        o->seconds, (uint32_t)o->numerics,
               o->threads, o->iters, o->allow_copies};
  tarn_buf_add(b, (const char *)&numbers, sizeof numbers);
  add(b, o->text, o->text_n);
  add(b, o->def ? o->def : "", o->def ? strlen(o->def) : 0);
  add_texts(b, &o->shapes);
  add_texts(b, &o->sets);
  add_texts(b, &o->outputs);
  add_texts(b, &o->no_rules);
  return tarn_intern_add(c->asked, b->p, b->n);
}

/* Files count by what is in them. */
static void add_files(tarn_ctx *cx, tarn_buf *b, const char *what, const tarn_texts *t) {
  for (uint32_t i = 0; i < t->n; i++) {
    size_t n;
    const char *p = tarn_read_file(cx, t->text[i], &n);
    tarn_buf_fmt(b, " %s %016llx", what, (unsigned long long)tarn_hash_bytes(p, n, 0));
  }
}
static void add_sets(tarn_ctx *cx, tarn_buf *b, const tarn_texts *t) {
  for (uint32_t i = 0; i < t->n; i++) {
    tarn_value_binding v = tarn_value_binding_parse(cx, t->text[i]);
    if (tarn_value_binding_file(&v)) add_files(cx, b, "set", &(tarn_texts){1, &v.text});
  }
}

/* What the call means, as a text. */
typedef struct meaning {
  const target *t;
  const tarn_compile_options *o;
  tarn_buf b;
} meaning;
static void mean(tarn_ctx *cx, void *arg) {
  meaning *m = arg;
  const tarn_compile_options *o = m->o;
  tarn_buf *b = &m->b;
  b->cx = cx;
  tarn_buf_fmt(b, "tarn %s %d %s %016llx", TARN_VERSION, TARN_RT_VERSION, m->t->hw->name,
               (unsigned long long)m->t->hash);
  add_numbers(b, o);
  add_files(cx, b, "rules", &o->rules);
  add_files(cx, b, "only", &o->only_rules);
  add_sets(cx, b, &o->sets);
  for (uint32_t i = 0; i < o->outputs.n; i++) tarn_buf_fmt(b, " of %s", o->outputs.text[i]);
  for (uint32_t i = 0; i < o->no_rules.n; i++) tarn_buf_fmt(b, " no %s", o->no_rules.text[i]);
  tarn_buf_fmt(b, " %s", tarn_compile_key(cx, o));
}
static void free_context(void *cx) { tarn_ctx_free(cx); }

/* Its number in `meant`. The text is read in memory that goes when the call ends: only a key that
 * is new stays. */
typedef struct asked_for {
  tarn_cache *c;
  const tarn_compile_options *o;
  uint32_t m;
} asked_for;
static void find_meaning(tarn_ctx *cx, void *arg) {
  asked_for *a = arg;
  meaning m = {.t = target_of(a->c, a->o->hw), .o = a->o};
  tarn_ctx *own = tarn_ctx_new(tarn_ctx_allocator(cx));
  if (!own) tarn_raise(cx, TARN_MEMORY, "cache: out of memory");
  tarn_defer(cx, free_context, own);
  tarn_status st = tarn_protect(own, mean, &m);
  if (st != TARN_OK) tarn_raise(cx, st, "%s", tarn_message(own));
  a->m = tarn_intern_add(a->c->meant, m.b.p, m.b.n + 1);
}

static bool of_files(const tarn_compile_options *o) {
  bool files = o->rules.n || o->only_rules.n;
  for (uint32_t i = 0; i < o->sets.n; i++) files |= strchr(o->sets.text[i], '.') != NULL;
  return files;
}

static void check_options(const tarn_cache *c, const tarn_compile_options *o) {
  if (!o->text || !o->model || !o->hw)
    tarn_raise(c->cx, TARN_USAGE,
               "cache: a text, its name and a description of hardware are needed");
  if (o->ngiven) tarn_raise(c->cx, TARN_USAGE, "cache: schedules cannot be handed in");
}

/* The number of the entry in `meant`. */
static uint32_t number_of(tarn_cache *c, const tarn_compile_options *o) {
  uint32_t id = asked(c, o);
  if (id < c->meaning.n && !of_files(o)) return c->meaning.p[id];
  asked_for a = {c, o, TARN_NONE};
  tarn_status st = tarn_protect(c->cx, find_meaning, &a);
  if (st != TARN_OK) tarn_reraise(c->cx, st);
  while (c->entry.n <= a.m) tarn_push(c->cx, &c->entry, TARN_NEW(c->cx, entry));
  while (c->meaning.n <= id) tarn_push(c->cx, &c->meaning, TARN_NONE);
  c->meaning.p[id] = a.m;
  return a.m;
}
static const char *key_of(const tarn_cache *c, uint32_t m) {
  size_t n;
  return tarn_intern_key(c->meant, m, &n);
}

/* ---------------------------------------------------------------- compiling */

typedef struct job {
  tarn_lang *L;
  const tarn_compile_options *o;
  const char *hw;
  object made;
} job;

static void compile(tarn_ctx *cx, void *arg) {
  job *j = arg;
  tarn_compile_options o = *j->o;
  tarn_lang *L = j->L ? j->L : tarn_lang_new(cx);
  if (!j->L) o.hw = tarn_hw_parse(L, tarn_sx_read(cx, j->hw, strlen(j->hw), "hw")->kid[0]);
  o.dir = NULL, o.explain = NULL, o.emit = "so", o.dump = 0, o.name = "tc";
  const tarn_compiled *c = tarn_compile(L, &o);
  for (uint32_t i = 0; i < c->nartefact; i++)
    if (!strcmp(c->artefact[i].name, "model.so"))
      j->made = (object){(void *)(uintptr_t)c->artefact[i].data, c->artefact[i].n, false};
}

/* Its memory is given back when the enclosing protected call ends. */
static object compiled(tarn_cache *c, tarn_lang *L, const tarn_compile_options *o) {
  job j = {.L = o->price ? L : NULL, .o = o, .hw = target_of(c, o->hw)->text};
  tarn_ctx *cx = c->cx;
  if (o->price) {
    compile(tarn_lang_ctx(L), &j);
  } else {
    cx = tarn_ctx_new(tarn_ctx_allocator(c->cx));
    if (!cx) tarn_raise(c->cx, TARN_MEMORY, "cache: out of memory");
    tarn_defer(c->cx, free_context, cx);
    tarn_status st = tarn_protect(cx, compile, &j);
    if (st != TARN_OK) tarn_raise(c->cx, st, "%s", tarn_message(cx));
  }
  if (!j.made.so)
    tarn_raise(c->cx, TARN_USAGE, "cache: %s has no code for this process", o->hw->name);
  return j.made;
}

/* ---------------------------------------------------------------- loading */

static const tarn_port *ports_of(tarn_ctx *cx, tarn_lang *L, const tarn_io *io, uint32_t n) {
  tarn_port *p = TARN_ARRAY(cx, tarn_port, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_type *t = tarn_type_get(L, io[i].type);
    const int64_t *dim = tarn_copy(cx, t->dim, sizeof t->dim);
    p[i] = (tarn_port){tarn_strdup(cx, io[i].name), t->dtype, t->n, dim};
  }
  return p;
}

static bool same_ports(const tarn_port *a, const tarn_port *b, uint32_t n) {
  bool same = true;
  for (uint32_t i = 0; same && i < n; i++) {
    same = a[i].dtype == b[i].dtype && a[i].n == b[i].n;
    for (uint32_t d = 0; same && d < a[i].n; d++) same = a[i].dim[d] == b[i].dim[d];
  }
  return same;
}

/* An object that was injected has the inputs and outputs of the definition. */
static void load_injected(tarn_cache *c, entry *e, const object *x, const tarn_compile_options *o) {
  tarn_lang *L = tarn_lang_new(c->cx);
  tarn_program *p = tarn_compile_import(L, o, NULL);
  const tarn_port *in = ports_of(c->cx, L, p->in, p->nin),
                  *out = ports_of(c->cx, L, p->out, p->nout);
  const tarn_port *has_in, *has_out;
  e->m = tarn_load_function(c->cx, x->so, x->n, o->model, in, p->nin, out, p->nout);
  bool fits = tarn_loaded_ports(e->m, false, &has_in) == p->nin &&
              tarn_loaded_ports(e->m, true, &has_out) == p->nout &&
              same_ports(in, has_in, p->nin) && same_ports(out, has_out, p->nout);
  if (!fits)
    tarn_raise(c->cx, TARN_BAD_INPUT, "%s: what is injected has other inputs or outputs", o->model);
}

static void load(tarn_cache *c, entry *e, const object *x, const tarn_compile_options *o) {
  if (x->injected) load_injected(c, e, x, o);
  else e->m = tarn_load_bytes(c->cx, x->so, x->n, o->model);
  tarn_call *f = &e->call;
  f->run = tarn_loaded_function(e->m);
  f->nin = tarn_loaded_ports(e->m, false, &f->in);
  f->nout = tarn_loaded_ports(e->m, true, &f->out);
  f->workspace = tarn_loaded_workspace(e->m, o->threads ? o->threads : 1);
  f->injected = x->injected;
}

typedef struct request {
  tarn_cache *c;
  tarn_lang *L;
  const tarn_compile_options *o;
  uint32_t m;
} request;

static void find(tarn_ctx *cx, void *arg) {
  request *r = arg;
  entry *e = r->c->entry.p[r->m];
  object x;
  const char *key = key_of(r->c, r->m);
  bool there = stored(r->c, key, &x);
  if (!there) {
    x = compiled(r->c, r->L, r->o);
    store(r->c, key, &x);
  }
  load(r->c, e, &x, r->o);
  e->call.found = there ? TARN_FOUND_STORED : TARN_FOUND_NOT;
  tarn_keep(cx, e->m); /* the cache unloads it */
}

const tarn_call *tarn_cache_call(tarn_cache *c, tarn_lang *L, const tarn_compile_options *o) {
  check_options(c, o);
  uint32_t m = number_of(c, o);
  entry *e = c->entry.p[m];
  if (e->m) {
    e->call.found = TARN_FOUND_HERE;
    return &e->call;
  }
  request r = {c, L, o, m};
  tarn_status st = tarn_protect(c->cx, find, &r);
  if (st != TARN_OK) {
    e->m = NULL;
    tarn_reraise(c->cx, st);
  }
  return &e->call;
}

static void renew(tarn_ctx *cx, void *arg) {
  (void)cx;
  request *r = arg;
  object x = compiled(r->c, r->L, r->o);
  store(r->c, key_of(r->c, r->m), &x);
}
void tarn_cache_renew(tarn_cache *c, tarn_lang *L, const tarn_compile_options *o) {
  check_options(c, o);
  request r = {c, L, o, number_of(c, o)};
  tarn_status st = tarn_protect(c->cx, renew, &r);
  if (st != TARN_OK) tarn_reraise(c->cx, st);
}

/* ---------------------------------------------------------------- runs */

static bool dense(const tarn_port *p, const int64_t *stride) {
  int64_t step = 1;
  bool is = true;
  for (uint32_t d = p->n; stride && d-- > 0;) {
    is = is && (stride[d] == step || p->dim[d] <= 1);
    step *= p->dim[d];
  }
  return is;
}

static int64_t count_of(const tarn_port *p) {
  int64_t n = 1;
  for (uint32_t d = 0; d < p->n; d++) n *= p->dim[d];
  return n;
}

/* Between row-major memory and the caller's. */
static void copy(const tarn_port *p, const tarn_strided *t, char *flat, bool out) {
  size_t size = tarn_dtype_size(p->dtype);
  for (int64_t i = 0, n = count_of(p); i < n; i++) {
    int64_t at = 0, rest = i;
    for (uint32_t d = p->n; d-- > 0; rest /= p->dim[d]) at += rest % p->dim[d] * t->stride[d];
    char *theirs = (char *)t->data + at * (int64_t)size, *ours = flat + (size_t)i * size;
    memcpy(out ? theirs : ours, out ? ours : theirs, size);
  }
}

static void *memory(tarn_ctx *cx, uint64_t bytes) {
  void *p = tarn_rt_workspace_new(bytes ? bytes : 1);
  if (!p) tarn_raise(cx, TARN_MEMORY, "run: no memory for %llu bytes", (unsigned long long)bytes);
  tarn_defer(cx, free, p);
  return p;
}

typedef struct strided_run {
  const tarn_call *f;
  const tarn_strided *in, *out;
  struct tarn_rt_pool *pool;
} strided_run;

static void *flat_memory(tarn_ctx *cx, const tarn_port *p, const tarn_strided *t) {
  if (dense(p, t->stride)) return t->data;
  return memory(cx, (uint64_t)count_of(p) * tarn_dtype_size(p->dtype));
}

static void run_strided(tarn_ctx *cx, void *arg) {
  const strided_run *r = arg;
  const tarn_call *f = r->f;
  const void **in = TARN_ARRAY(cx, const void *, f->nin + 1);
  void **out = TARN_ARRAY(cx, void *, f->nout + 1);
  for (uint32_t i = 0; i < f->nin; i++) {
    void *p = flat_memory(cx, &f->in[i], &r->in[i]);
    if (p != r->in[i].data) copy(&f->in[i], &r->in[i], p, false);
    in[i] = p;
  }
  for (uint32_t i = 0; i < f->nout; i++) out[i] = flat_memory(cx, &f->out[i], &r->out[i]);
  int code = f->run(in, out, memory(cx, f->workspace), r->pool);
  if (code)
    tarn_raise(cx, code == TARN_REF_INDEX ? TARN_BAD_INPUT : TARN_NO_RESULT, "run: %s",
               code == TARN_REF_INDEX ? "an index is out of range" : "a kernel failed");
  for (uint32_t i = 0; i < f->nout; i++)
    if (out[i] != r->out[i].data) copy(&f->out[i], &r->out[i], out[i], true);
}

void tarn_call_run(tarn_ctx *cx, const tarn_call *f, const tarn_strided *in,
                   const tarn_strided *out, struct tarn_rt_pool *pool) {
  strided_run r = {f, in, out, pool};
  tarn_status st = tarn_protect(cx, run_strided, &r);
  if (st != TARN_OK) tarn_reraise(cx, st);
}

/* ---------------------------------------------------------------- checking */

typedef struct trial {
  const tarn_program *p;
  tarn_binding *bound;
  tarn_strided *in, *out;
  tarn_tensor **got;
  tarn_term *root;
} trial;

static trial random_trial(tarn_ctx *cx, const tarn_program *p, uint64_t seed) {
  trial t = {.p = p};
  tarn_domain *range = TARN_ARRAY(cx, tarn_domain, p->nin + 1);
  tarn_input_domains(p, tarn_opaque_index, range);
  t.bound = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  t.in = TARN_ARRAY(cx, tarn_strided, p->nin + 1);
  t.out = TARN_ARRAY(cx, tarn_strided, p->nout + 1);
  t.got = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  t.root = TARN_ARRAY(cx, tarn_term, p->nout + 1);
  for (uint32_t i = 0; i < p->nin; i++) {
    const tarn_type *ty = tarn_type_get(p->L, p->in[i].type);
    tarn_tensor *x = tarn_random_tensor(cx, ty->dtype, ty->n, ty->dim, range[i], &seed);
    t.bound[i] = (tarn_binding){p->in[i].name, x};
    t.in[i] = (tarn_strided){x->data, NULL};
  }
  for (uint32_t i = 0; i < p->nout; i++) {
    const tarn_type *ty = tarn_type_get(p->L, p->out[i].type);
    t.got[i] = tarn_tensor_new(cx, ty->dtype, ty->n, ty->dim);
    t.out[i] = (tarn_strided){t.got[i]->data, NULL};
    t.root[i] = p->out[i].term;
  }
  return t;
}

/* The worst of all outputs; *text: in words. */
static tarn_verdict judged(tarn_ctx *cx, const tarn_call *f, const tarn_compile_options *o,
                           uint64_t seed, const char **text) {
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_program *p = tarn_compile_import(L, o, NULL);
  trial t = random_trial(cx, p, seed);
  bool approx = o->numerics == TARN_RULE_APPROX;
  tarn_tolerance like = tarn_rules_tolerance(o->numerics, approx ? o->rtol : 0);
  tarn_verdict worst = {.ok = true, .at = -1};
  tarn_rt_pool *pool = tarn_rt_pool_new(o->threads ? o->threads : 1);
  if (!pool) tarn_raise(cx, TARN_MEMORY, "check: no memory for a pool of threads");
  tarn_defer(cx, (void (*)(void *))tarn_rt_pool_free, pool);
  tarn_call_run(cx, f, t.in, t.out, pool);
  like.noise.seed = seed;
  tarn_expected *want =
      tarn_expect(L, t.root, p->nout, t.bound, p->nin, like.runs, like.noise, tarn_opaque_eval);
  for (uint32_t i = 0; i < p->nout; i++) {
    tarn_verdict v = tarn_expected_judge(want, i, t.got[i], like.times, TARN_JUDGE_RTOL);
    if (i && v.share <= worst.share) continue;
    worst = v;
    *text = tarn_verdict_text(cx, &v, p->out[i].name, t.got[i]);
  }
  return worst;
}

typedef struct checking {
  request of;
  const object *so;
  uint64_t seed;
  tarn_verdict v;
  const char *text;
} checking;

static void check_one(tarn_ctx *cx, void *arg) {
  checking *k = arg;
  entry e = {0};
  const tarn_call *f = &e.call;
  if (k->so) load(k->of.c, &e, k->so, k->of.o);
  else f = tarn_cache_call(k->of.c, k->of.L, k->of.o);
  k->v = judged(cx, f, k->of.o, k->seed, &k->text);
}

static void run_check(checking *k) {
  tarn_ctx *cx = k->of.c->cx;
  check_options(k->of.c, k->of.o);
  tarn_status st = tarn_protect(cx, check_one, k);
  if (st != TARN_OK) tarn_reraise(cx, st);
}

tarn_verdict tarn_cache_check(tarn_cache *c, tarn_lang *L, const tarn_compile_options *o,
                              uint64_t seed) {
  checking k = {.of = {c, L, o, 0}, .seed = seed};
  run_check(&k);
  return k.v;
}

void tarn_cache_inject(tarn_cache *c, tarn_lang *L, const tarn_compile_options *o, const void *so,
                       size_t n, bool check) {
  object x = {(void *)(uintptr_t)so, n, true};
  checking k = {.of = {c, L, o, 0}, .so = &x, .seed = 1};
  if (check) run_check(&k);
  if (check && !k.v.ok)
    tarn_raise(c->cx, TARN_NO, "%s: what is injected is wrong: %s", o->model, k.text);
  check_options(c, o);
  uint32_t m = number_of(c, o);
  store(c, key_of(c, m), &x);
  if (!c->entry.p[m]->m) return;
  tarn_unload(c->entry.p[m]->m);
  c->entry.p[m]->m = NULL;
}
