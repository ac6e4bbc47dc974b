/* One artefact for several sizes: what --shape says of them, a program for each, all of them in one
 * module with the constants that they share. */
#include "compile/internal.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PROGRAMS 128

typedef struct value_list {
  uint32_t n;
  int64_t *p; /* rising */
} value_list;
typedef struct size_of {
  const char *name, *text; /* as it was given */
  uint32_t shape;          /* number of the text of o->shapes */
  uint32_t dim;            /* of an input's shape: which of its dims; TARN_NONE: of a dim by name */
  bool range;              /* LO..HI alone */
  value_list value;
} size_of;
struct comp_sizes {
  tarn_ctx *cx;
  TARN_VEC(size_of) size;
};

/* ---- what --shape says ---- */
_Noreturn static void malformed(tarn_ctx *cx, const char *text) {
  tarn_raise(cx, TARN_USAGE, "--shape %s: numbers and ranges such as 1,4,16..32 are expected",
             text);
}
static int64_t number(tarn_ctx *cx, const char *text, const char **p) {
  char *end;
  errno = 0;
  long long v = strtoll(*p, &end, 10);
  if (end == *p || errno || v < 0 || **p == '-' || **p == '+') malformed(cx, text);
  *p = end;
  return v;
}
#define MOST_VALUES (1 << 20)
static void add_values(tarn_ctx *cx, const char *text, int64_t lo, int64_t hi, value_list *v) {
  if (hi < lo) tarn_raise(cx, TARN_USAGE, "--shape %s: a range goes upwards", text);
  if (hi - lo >= MOST_VALUES - v->n)
    tarn_raise(cx, TARN_USAGE, "--shape %s: at most %d sizes", text, MOST_VALUES);
  int64_t *grown = TARN_ARRAY(cx, int64_t, v->n + (uint32_t)(hi - lo + 1));
  if (v->n) memcpy(grown, v->p, v->n * sizeof *grown);
  for (int64_t k = lo; k <= hi; k++) grown[v->n++] = k;
  v->p = grown;
}
/* "4" or "1..512"; p ends behind it. Is it a range? */
static bool take_entry(tarn_ctx *cx, const char *text, const char **p, value_list *v) {
  int64_t lo = number(cx, text, p), hi = lo;
  bool range = !strncmp(*p, "..", 2);
  if (range) {
    *p += 2;
    hi = number(cx, text, p);
  }
  if (**p && **p != ',') malformed(cx, text);
  add_values(cx, text, lo, hi, v);
  return range;
}
static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}
static void sort_values(value_list *v) {
  uint32_t n = 0;
  qsort(v->p, v->n, sizeof *v->p, by_value);
  for (uint32_t i = 0; i < v->n; i++)
    if (!n || v->p[n - 1] != v->p[i]) v->p[n++] = v->p[i];
  v->n = n;
}
/* batch=1,4,16: a dim by its name. */
static void take_dim(comp_sizes *z, const char *text, const char *name, uint32_t shape) {
  size_of s = {.name = name, .text = text, .shape = shape, .dim = TARN_NONE};
  uint32_t entries = 0;
  for (const char *p = strrchr(text, '=') + 1;; p++) {
    s.range = take_entry(z->cx, text, &p, &s.value) && !entries++;
    if (!*p) break;
  }
  sort_values(&s.value);
  tarn_push(z->cx, &z->size, s);
}
/* x=1..8,3,32,32: dims of an input. */
static void take_shape(comp_sizes *z, const char *text, const char *name, uint32_t shape) {
  uint32_t dim = 0;
  for (const char *p = strrchr(text, '=') + 1;; p++, dim++) {
    size_of s = {.text = text, .shape = shape, .dim = dim};
    s.range = take_entry(z->cx, text, &p, &s.value);
    s.name = tarn_format(z->cx, "%s[%u]", name, dim);
    if (s.range) tarn_push(z->cx, &z->size, s);
    if (!*p) break;
  }
}
comp_sizes *comp_sizes_of(tarn_ctx *cx, const tarn_compile_options *o, const tarn_source *source) {
  const tarn_texts *shapes = &o->shapes;
  const tarn_model_options only = {.def = o->def};
  comp_sizes *z = TARN_NEW(cx, comp_sizes);
  z->cx = cx;
  for (uint32_t i = 0; i < shapes->n; i++) {
    const char *text = shapes->text[i], *eq = strrchr(text, '=');
    if (!eq || eq == text || !strpbrk(eq, ",.")) continue;
    const char *name = tarn_strndup(cx, text, (size_t)(eq - text));
    if (!tarn_source_has_input(source, &only, name)) take_dim(z, text, name, i);
    else if (strchr(eq, '.')) take_shape(z, text, name, i);
  }
  return z->size.n ? z : NULL;
}

/* ---- a program for each ---- */
typedef struct one {
  tarn_compiled *c;
  const tarn_source *source;
} one;
static void optimise_one(tarn_ctx *cx, void *arg) {
  one *x = arg;
  (void)cx;
  comp_import(x->c, x->source);
  tarn_compile_optimise(x->c);
}
/* The text of --shape with one size in the place of what it says. */
static const char *with_value(tarn_ctx *cx, const char *text, const size_of *s, int64_t v) {
  const char *p = strrchr(text, '=') + 1;
  if (s->dim == TARN_NONE) return tarn_format(cx, "%.*s%lld", (int)(p - text), text, (long long)v);
  for (uint32_t d = 0; d < s->dim; d++) p = strchr(p, ',') + 1;
  const char *behind = strchr(p, ',');
  return tarn_format(cx, "%.*s%lld%s", (int)(p - text), text, (long long)v, behind ? behind : "");
}
static const char *label_of(const comp_sizes *z, const int64_t *size) {
  tarn_buf b = {.cx = z->cx};
  for (uint32_t i = 0; i < z->size.n; i++)
    tarn_buf_fmt(&b, "%s%s=%lld", i ? " " : "", z->size.p[i].name, (long long)size[i]);
  return b.p;
}
/* Dumps say which program they are of. */
typedef struct labelled {
  const tarn_compile_options *o;
  const char *label;
  tarn_ctx *cx;
} labelled;
static void sink(void *user, const char *name, const char *text, size_t n) {
  const labelled *l = user;
  l->o->sink(l->o->user, tarn_format(l->cx, "%s %s", name, l->label), text, n);
}
static tarn_texts shapes_at(const comp_sizes *z, const tarn_texts *given, const int64_t *size) {
  const char **text = tarn_copy(z->cx, given->text, given->n * sizeof *text);
  for (uint32_t i = 0; i < z->size.n; i++) {
    const size_of *s = &z->size.p[i];
    text[s->shape] = with_value(z->cx, text[s->shape], s, size[i]);
  }
  return (tarn_texts){given->n, text};
}
tarn_texts tarn_compile_shapes_at(tarn_lang *L, const tarn_compile_options *o,
                                  const int64_t *size) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const comp_sizes *z = comp_sizes_of(cx, o, comp_source(cx, o));
  return z ? shapes_at(z, &o->shapes, size) : o->shapes;
}
static const tarn_compile_options *options_of(const comp_sizes *z, const tarn_compile_options *o,
                                              const int64_t *size) {
  tarn_compile_options *mine = tarn_copy(z->cx, o, sizeof *o);
  labelled *l = TARN_NEW(z->cx, labelled);
  mine->shapes = shapes_at(z, &o->shapes, size);
  *l = (labelled){o, label_of(z, size), z->cx};
  if (o->sink) mine->sink = sink;
  mine->user = l;
  return mine;
}
static tarn_compiled *compile_one(comp_sizes *z, const tarn_compiled *of, const tarn_source *source,
                                  const int64_t *size) {
  tarn_compiled *c = comp_begin(of->L, options_of(z, of->o, size));
  one x = {c, source};
  tarn_status st = tarn_protect(z->cx, optimise_one, &x);
  if (st == TARN_OK) return c;
  const char *why = tarn_strdup(z->cx, tarn_message(z->cx));
  tarn_raise(z->cx, st, "%s: %s", label_of(z, size), why);
}

/* ---- all of them ---- */
static void refuse(const comp_sizes *z, const tarn_compiled *c) {
  const tarn_compile_options *o = c->o;
  const char *text = z->size.p[0].text;
  if (!c->target->emit_sizes)
    tarn_raise(z->cx, TARN_USAGE, "--shape %s: a program for %s %s has one size", text,
               strchr("aeiou", *c->target->name) ? "an" : "a", c->target->name);
  if (o->explain || o->reasons)
    tarn_raise(z->cx, TARN_USAGE, "--shape %s: --explain is for a program of one size", text);
  if (o->ngiven)
    tarn_raise(z->cx, TARN_USAGE, "--shape %s: --schedule is for a program of one size", text);
}
static uint32_t count(const comp_sizes *z) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < z->size.n; i++) {
    n *= z->size.p[i].value.n;
    if (n > MOST_PROGRAMS)
      tarn_raise(z->cx, TARN_USAGE,
                 "--shape %s: more than %d programs, one for each choice of sizes: fewer sizes are "
                 "expected",
                 z->size.p[i].text, MOST_PROGRAMS);
  }
  return (uint32_t)n;
}
static int64_t *sizes_at(const comp_sizes *z, uint32_t number) {
  int64_t *v = TARN_ARRAY(z->cx, int64_t, z->size.n);
  for (uint32_t i = z->size.n; i-- > 0;) {
    const value_list *l = &z->size.p[i].value;
    v[i] = l->p[number % l->n];
    number /= l->n;
  }
  return v;
}
static tarn_lower_sizes *describe(const comp_sizes *z, uint32_t n) {
  tarn_lower_sizes *s = TARN_NEW(z->cx, tarn_lower_sizes);
  const char **name = TARN_ARRAY(z->cx, const char *, z->size.n);
  for (uint32_t i = 0; i < z->size.n; i++) name[i] = z->size.p[i].name;
  *s = (tarn_lower_sizes){.n = z->size.n, .name = name, .nprogram = n, .rows = z->size.n};
  return s;
}
/* Memory plans, with constants in common. */
static void plan_memory(tarn_compiled *const *c, uint32_t n) {
  tarn_ctx *cx = tarn_lang_ctx(c[0]->L);
  const tarn_kprog **p = TARN_ARRAY(cx, const tarn_kprog *, n);
  tarn_memory_plan **m = TARN_ARRAY(cx, tarn_memory_plan *, n);
  for (uint32_t i = 0; i < n; i++) {
    p[i] = c[i]->kernels;
    c[i]->memory = m[i] = c[i]->target->memory(p[i], c[i]->target->align);
  }
  tarn_lower_share(p, m, n, c[0]->target->align);
}
/* program.tarn: one program after the other. */
static void write_text(const comp_sizes *z, tarn_compiled *const *c, uint32_t n,
                       const tarn_lower_program *row, const char *dir) {
  tarn_buf b = {.cx = z->cx};
  for (uint32_t i = 0; i < n; i++) {
    tarn_buf_str(&b, "; ");
    const char *label = label_of(z, row[i].size);
    tarn_buf_as(&b, TARN_AS_TEXT, label, strlen(label));
    tarn_buf_str(&b, "\n");
    tarn_kprog_print(c[i]->kernels, &b);
  }
  tarn_write_file(z->cx, tarn_format(z->cx, "%s/program.tarn", dir), b.p, b.n);
}
static void emit(const comp_sizes *z, tarn_compiled **c, tarn_lower_sizes *s, const char *dir) {
  tarn_compiled *whole = c[s->nprogram - 1];
  double t = tarn_now();
  tarn_lower_program *row = TARN_ARRAY(z->cx, tarn_lower_program, s->nprogram);
  plan_memory(c, s->nprogram);
  for (uint32_t i = 0; i < s->nprogram; i++)
    row[i] = (tarn_lower_program){sizes_at(z, i), c[i]->kernels, c[i]->memory};
  s->program = row;
  write_text(z, c, s->nprogram, row, dir);
  tarn_lower_options lo = comp_lower_options(whole, dir);
  whole->target->emit_sizes(s, &lo);
  whole->sizes = s;
  whole->programs = c;
  whole->seconds.lower = tarn_now() - t;
}
tarn_compiled *comp_compile_sizes(tarn_compiled *c, const tarn_source *source, comp_sizes *z,
                                  const char *dir) {
  refuse(z, c);
  uint32_t n = count(z);
  tarn_compiled **all = TARN_ARRAY(z->cx, tarn_compiled *, n);
  for (uint32_t i = 0; i < n; i++) all[i] = compile_one(z, c, source, sizes_at(z, i));
  emit(z, all, describe(z, n), dir);
  tarn_compiled *whole = all[n - 1];
  whole->given = &c->o->shapes;
  comp_report(whole, NULL);
  tarn_write_file(z->cx, tarn_format(z->cx, "%s/report.json", dir), whole->report, whole->report_n);
  comp_finish(whole, dir, &(tarn_buf){.cx = z->cx});
  return whole;
}
