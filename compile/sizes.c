/* One artefact for several sizes: what --shape says of them, a program for each, all of them in one
 * module with the constants that they share. */
#include "compile/sizes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what --shape says ---- */
_Noreturn static void malformed(tarn_ctx *cx, const char *text) {
  tarn_raise(cx, TARN_USAGE,
             "--shape %s: numbers and ranges such as 1,4,16..32 or 32..640:32@64,512 are expected",
             text);
}
static int64_t read_number(tarn_ctx *cx, const char *text, const char **p) {
  char *end;
  errno = 0;
  long long v = strtoll(*p, &end, 10);
  if (end == *p || errno || v < 0 || **p == '-' || **p == '+') malformed(cx, text);
  *p = end;
  return v;
}
#define MOST_SIZE ((int64_t)1 << 24)
#define FEW       4 /* values of a range that are taken as a list */
static void add_value(tarn_ctx *cx, const char *text, int64_t v, value_list *to) {
  if (to->n == MOST_PROGRAMS)
    tarn_raise(cx, TARN_USAGE, "--shape %s: at most %d sizes in a list", text, MOST_PROGRAMS);
  if (!to->p) to->p = TARN_ARRAY(cx, int64_t, MOST_PROGRAMS);
  to->p[to->n++] = v;
}
/* "4", "1..512" or "320..640:32"; p ends behind it. */
static void take_entry(tarn_ctx *cx, const char *text, const char **p, size_of *s) {
  s->lo = s->hi = read_number(cx, text, p);
  s->step = 0;
  if (strncmp(*p, "..", 2)) return;
  *p += 2;
  s->hi = read_number(cx, text, p);
  s->step = 1;
  if (**p == ':') {
    ++*p;
    s->step = read_number(cx, text, p);
  }
  if (s->hi < s->lo) tarn_raise(cx, TARN_USAGE, "--shape %s: a range goes upwards", text);
  if (!s->step) tarn_raise(cx, TARN_USAGE, "--shape %s: a step of 0", text);
  if (s->hi > MOST_SIZE)
    tarn_raise(cx, TARN_USAGE, "--shape %s: sizes are at most %lld", text, (long long)MOST_SIZE);
  s->hi -= (s->hi - s->lo) % s->step;
}
/* Few values are a list, and so is what stands with others. */
static void settle_range(tarn_ctx *cx, size_of *s, bool alone) {
  if (s->step && alone && (s->hi - s->lo) / s->step >= FEW) return;
  int64_t step = s->step ? s->step : 1;
  for (int64_t v = s->lo; v <= s->hi; v += step) add_value(cx, s->text, v, &s->value);
  s->step = 0;
}
static void sort_values(value_list *v) {
  uint32_t n = 0;
  qsort(v->p, v->n, sizeof *v->p, tarn_by_i64);
  for (uint32_t i = 0; i < v->n; i++)
    if (!n || v->p[n - 1] != v->p[i]) v->p[n++] = v->p[i];
  v->n = n;
}
/* batch=1,4,16 or seq=1..8192@64,512: a dim by its name. */
static void take_dim(comp_sizes *z, const char *text, const char *name, uint32_t shape) {
  size_of s = {.name = name, .text = text, .shape = shape, .dim = TARN_NONE};
  const char *p = strrchr(text, '=') + 1;
  for (bool alone = true;; alone = false, p++) {
    take_entry(z->cx, text, &p, &s);
    alone = alone && *p != ',';
    settle_range(z->cx, &s, alone);
    if (*p == '@' && alone) break;
    if (*p && *p != ',') malformed(z->cx, text);
    if (!*p) break;
  }
  for (; *p;) {
    p++;
    add_value(z->cx, text, read_number(z->cx, text, &p), &s.matters);
    if (*p && *p != ',') malformed(z->cx, text);
  }
  if (!s.step) sort_values(&s.value);
  tarn_push(z->cx, &z->size, s);
}
/* x=1..8,3,32,32: dims of an input. */
static void take_shape(comp_sizes *z, const char *text, const char *name, uint32_t shape) {
  uint32_t dim = 0;
  for (const char *p = strrchr(text, '=') + 1;; p++, dim++) {
    size_of s = {.text = text, .shape = shape, .dim = dim};
    take_entry(z->cx, text, &p, &s);
    if (*p && *p != ',') malformed(z->cx, text);
    s.name = tarn_format(z->cx, "%s[%u]", name, dim);
    bool range = s.step;
    settle_range(z->cx, &s, true);
    if (range) tarn_push(z->cx, &z->size, s);
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
    if (!eq || eq == text || tarn_shape_is_expression(text) || !strpbrk(eq, ",.")) continue;
    const char *name = tarn_strndup(cx, text, (size_t)(eq - text));
    if (!tarn_source_has_input(source, &only, name)) take_dim(z, text, name, i);
    else if (strchr(eq, '.')) take_shape(z, text, name, i);
  }
  if (z->size.n > TARN_MOST_SIZES)
    tarn_raise(cx, TARN_USAGE, "--shape %s: at most %d sizes", z->size.p[0].text, TARN_MOST_SIZES);
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
const char *comp_size_label(const comp_sizes *z, const int64_t *size) {
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
  *l = (labelled){o, comp_size_label(z, size), z->cx};
  if (o->sink) mine->sink = sink;
  mine->user = l;
  return mine;
}
enum { MOST_PARTS = 8 }; /* of the steps that are left: a program takes one at least */
tarn_compiled *comp_size_begin(comp_sizes *z, const int64_t *size) {
  tarn_compiled *c = comp_begin(z->base->L, options_of(z, z->base->o, size));
  c->solvers = z->solvers;
  c->left = &z->steps;
  c->parts = z->to_come && z->to_come < MOST_PARTS ? z->to_come : MOST_PARTS;
  c->rules = z->rules, c->plain = z->plain;
  return c;
}
tarn_compiled *comp_size_compile(comp_sizes *z, const int64_t *size) {
  comp_scope_enter(z, false);
  tarn_compiled *c = comp_size_begin(z, size);
  one x = {c, z->source};
  tarn_status st = tarn_protect(z->cx, optimise_one, &x);
  if (st == TARN_OK) return comp_keep(z, c);
  const char *why = tarn_strdup(z->cx, tarn_message(z->cx));
  tarn_raise(z->cx, st, "%s: %s", comp_size_label(z, size), why);
}

tarn_program *comp_size_import(const comp_sizes *z, const int64_t *size) {
  tarn_compile_options o = *z->base->o;
  o.shapes = shapes_at(z, &o.shapes, size);
  tarn_model_options m = comp_model_options(tarn_lang_ctx(z->base->L), &o);
  return tarn_source_load(z->base->L, z->source, &m, NULL);
}

/* ---- all of them ---- */
static void refuse(const comp_sizes *z, const tarn_compiled *c) {
  const tarn_compile_options *o = c->o;
  const char *text = z->size.p[0].text;
  if (!c->target->emit_sizes)
    tarn_raise(z->cx, TARN_USAGE, "--shape %s: a program for %s (%s) has one size", text,
               o->hw->name, c->target->name);
  if (o->explain || o->reasons)
    tarn_raise(z->cx, TARN_USAGE, "--shape %s: --explain and --html are for a program of one size",
               text);
  if (o->ngiven)
    tarn_raise(z->cx, TARN_USAGE, "--shape %s: --schedule is for a program of one size", text);
}
uint32_t comp_size_choices(const comp_sizes *z) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < z->size.n; i++) {
    if (!z->size.p[i].step) n *= z->size.p[i].value.n;
    if (n > MOST_PROGRAMS)
      tarn_raise(z->cx, TARN_USAGE,
                 "--shape %s: more than %d programs, one for each choice of sizes: fewer sizes are "
                 "expected, or a range alone",
                 z->size.p[0].text, MOST_PROGRAMS);
  }
  return (uint32_t)n;
}
int64_t *comp_size_at(const comp_sizes *z, uint32_t number, bool high) {
  int64_t *v = TARN_ARRAY(z->cx, int64_t, z->size.n);
  for (uint32_t i = z->size.n; i-- > 0;) {
    const size_of *s = &z->size.p[i];
    v[i] = high ? s->hi : s->lo;
    if (s->step) continue;
    v[i] = s->value.p[number % s->value.n];
    number /= s->value.n;
  }
  return v;
}
int64_t *comp_size_steps(const comp_sizes *z) {
  int64_t *v = TARN_ARRAY(z->cx, int64_t, z->size.n);
  for (uint32_t i = 0; i < z->size.n; i++) v[i] = z->size.p[i].step ? z->size.p[i].step : 1;
  return v;
}
const int64_t *comp_size_largest(const comp_sizes *z) {
  int64_t *v = TARN_ARRAY(z->cx, int64_t, z->size.n);
  for (uint32_t i = 0; i < z->size.n; i++) {
    const size_of *s = &z->size.p[i];
    v[i] = s->step ? s->hi : s->value.p[s->value.n - 1];
  }
  return v;
}
static tarn_lower_sizes *describe(const comp_sizes *z, uint32_t n) {
  tarn_lower_sizes *s = TARN_NEW(z->cx, tarn_lower_sizes);
  const char **name = TARN_ARRAY(z->cx, const char *, z->size.n);
  for (uint32_t i = 0; i < z->size.n; i++) name[i] = z->size.p[i].name;
  *s = (tarn_lower_sizes){.n = z->size.n, .name = name, .nprogram = n};
  return s;
}
/* Memory plans, with constants in common. */
static void plan_memory(const comp_sized_list *l) {
  const tarn_compiled *first = l->p[0].c;
  tarn_ctx *cx = tarn_lang_ctx(first->L);
  const tarn_kprog **p = TARN_ARRAY(cx, const tarn_kprog *, l->n);
  tarn_memory_plan **m = TARN_ARRAY(cx, tarn_memory_plan *, l->n);
  for (uint32_t i = 0; i < l->n; i++) {
    tarn_compiled *c = l->p[i].c;
    p[i] = c->kernels;
    c->memory = m[i] = c->target->memory(p[i], c->target->align);
  }
  tarn_lower_share(p, m, l->n, first->target->align);
}
/* Kernels that are planned alike in several programs have one plan. */
static void plan_kernels(const comp_sized_list *l) {
  tarn_planner *pl = comp_planner(l->p[0].c);
  for (uint32_t i = 0; i < l->n; i++) {
    const tarn_lower_family *f = l->p[i].family;
    if (f) tarn_plan_samples(pl, f->sample, f->at.n);
    else tarn_kprog_plan(pl, l->p[i].c->kernels);
  }
}
/* program.tarn: one program after the other. */
static void write_text(const comp_sizes *z, const comp_sized_list *l, const char *dir) {
  tarn_buf b = {.cx = z->cx};
  for (uint32_t i = 0; i < l->n; i++) {
    const tarn_lower_family *f = l->p[i].family;
    const char *label = comp_size_label(z, l->p[i].size);
    tarn_buf_str(&b, i ? "\n; " : "; ");
    tarn_buf_as(&b, TARN_AS_TEXT, label, strlen(label));
    for (uint32_t k = 0; f && k < z->size.n; k++)
      if (f->at.lo[k] < f->at.hi[k])
        tarn_buf_fmt(&b, ", and %s from %lld in steps of %lld", z->size.p[k].name,
                     (long long)f->at.lo[k], (long long)f->at.step[k]);
    tarn_buf_str(&b, "\n");
    tarn_kprog_print(l->p[i].c->kernels, &b);
  }
  tarn_write_file(z->cx, tarn_format(z->cx, "%s/program.tarn", dir), b.p, b.n);
}
/* Files of kernels written by hand, each once. */
static void add_files(tarn_ctx *cx, const tarn_kprog *p, tarn_lower_options *o) {
  uint32_t n, have = o->nlink;
  const char *const *file = comp_written_files(p, &n);
  const char **all = TARN_ARRAY(cx, const char *, have + n + 1);
  for (uint32_t i = 0; i < have; i++) all[i] = o->link[i];
  for (uint32_t i = 0; i < n; i++) {
    bool known = false;
    for (uint32_t k = 0; k < have; k++) known |= !strcmp(all[k], file[i]);
    if (!known) all[o->nlink++] = file[i];
  }
  o->link = all;
}
static void emit(const comp_sizes *z, const comp_sized_list *l, tarn_lower_sizes *s,
                 const char *dir) {
  tarn_compiled *whole = l->p[l->n - 1].c, **c = TARN_ARRAY(z->cx, tarn_compiled *, l->n);
  double t = tarn_now();
  tarn_lower_program *row = TARN_ARRAY(z->cx, tarn_lower_program, l->n);
  plan_memory(l);
  plan_kernels(l);
  for (uint32_t i = 0; i < l->n; i++) {
    c[i] = l->p[i].c;
    row[i] = (tarn_lower_program){l->p[i].size, c[i]->kernels, c[i]->memory, l->p[i].family};
  }
  s->program = row;
  write_text(z, l, dir);
  tarn_lower_options lo = comp_lower_options(whole, dir);
  for (uint32_t i = 0; i < l->n; i++) add_files(z->cx, c[i]->kernels, &lo);
  whole->target->emit_sizes(s, &lo);
  whole->sizes = s;
  whole->programs = c;
  whole->seconds.lower = tarn_now() - t;
}
tarn_compiled *comp_compile_sizes(tarn_compiled *c, const tarn_source *source, comp_sizes *z,
                                  const char *dir) {
  comp_sized_list all = {0};
  z->base = c;
  z->source = source;
  refuse(z, c);
  comp_scopes_begin(z);
  tarn_defer(z->cx, comp_scopes_end, z); /* whatever happens, the language is as it was */
  comp_families(z, &all);
  comp_scopes_end(z);
  emit(z, &all, describe(z, all.n), dir);
  tarn_compiled *whole = all.p[all.n - 1].c;
  whole->given = &c->o->shapes;
  comp_report(whole, NULL);
  tarn_write_file(z->cx, tarn_format(z->cx, "%s/report.json", dir), whole->report, whole->report_n);
  comp_finish(whole, dir, &(tarn_buf){.cx = z->cx});
  return whole;
}
