/* One code for a family of sizes. Each sample's program is emitted into a module of its own, whose
 * functions take the size as their last argument; unify.c makes the modules the same, and the one
 * of the largest goes into the artefact's. What does not depend on the size is there once: kernels
 * that are the same in all samples are called where the artefact has them, without the argument.
 *
 * All samples lie in memory as the largest does, which takes most: the workspace, constants, local
 * buffers and pages of fill. So that this holds for the sizes between, the bytes of each are
 * polynomials in the size too, and no size of the family takes more. A constant of a smaller sample
 * may be the begin of the largest one's, or a box of it, whose rows lie as far apart: an element
 * has one place at all sizes. That its value is the same at those between is a premise, which every
 * element of every sample supports. */
#include "lower/family.h"
#include "lower/program.h"
#include "runtime/rt.h"
#include <llvm-c/Linker.h>
#include <string.h>

#define ALIGN 64

typedef struct family {
  tarn_ctx *cx;
  low_module *M;
  const tarn_lower_family *f;
  const tarn_memory_plan *plan;
  bool dry; /* to be compared, not to be kept */
  const char *prefix;
  tarn_kprog *p; /* likewise, with the names of the largest one's kernels */
  uint32_t *serves;
  low_room *room;
  LLVMModuleRef *m;
  low_job made;        /* of the largest: what outlasts the emission */
  const char **symbol; /* of its steps, and of its run */
  const char *why;     /* NULL, or why the samples have no code in common */
} family;

static void dispose_module(void *m) { LLVMDisposeModule(m); }
static uint32_t last(const family *x) { return x->f->at.n - 1; }
static const tarn_kprog *largest(const family *x) { return &x->p[last(x)]; }

/* ---- what functions of samples share (internal.h) ---- */
uint32_t low_size_type(const low_module *M, LLVMTypeRef *t, uint32_t n) {
  if (M->sample) t[n++] = M->ptr;
  return n;
}
uint32_t low_size_arg(const low_module *M, LLVMValueRef f, LLVMValueRef *a, uint32_t n) {
  if (M->sample) a[n++] = LLVMGetLastParam(f);
  return n;
}
void low_size_name(const low_module *M, LLVMValueRef f) {
  if (M->sample) LLVMSetValueName2(LLVMGetLastParam(f), LOW_SIZE, strlen(LOW_SIZE));
}
int64_t low_size_most(const low_module *M, int64_t n) {
  const low_sample *s = M->sample;
  if (!s) return n;
  uint32_t i = s->room[s->number].n;
  const low_room *most = &s->room[s->most];
  tarn_push(M->cx, &s->room[s->number], n);
  return i < most->n && most->p[i] > n ? most->p[i] : n;
}

/* ---- functions of kernels ---- */
/* One that the artefact's module has, or will have. */
static low_kernel *declared(low_module *M, const tarn_kernel *k) {
  low_module *of = M->sample->of;
  low_kernel *d = TARN_NEW(M->cx, low_kernel);
  uint32_t id = low_kernel_id(of, k->plan);
  const char *name = low_kernel_name(of, id);
  if (M->sample->dry) d->type = low_kernel_type(of, low_kernel_operands(M, k));
  else *d = *low_kernel_nest(of, k);
  d->fn = low_declare(M, name, d->type);
  return d;
}
const low_kernel *low_sample_kernel(low_module *M, uint32_t number, const tarn_kernel *k) {
  const low_sample *s = M->sample;
  uint32_t first = s->serves[number];
  if (first == TARN_NONE) return declared(M, k);
  if (s->kernel[first]) return s->kernel[first];
  const char *name = tarn_format(M->cx, "%s.%s.n", s->prefix, low_as_symbol(M, k->name));
  return s->kernel[first] = low_kernel_new(M, name, k);
}
/* The plans of kernel k in each sample; *same: it is one. */
static tarn_buf plans_of(const family *x, uint32_t k, bool *same) {
  tarn_buf all = {.cx = x->cx};
  *same = true;
  for (uint32_t i = 0; i < x->f->at.n; i++) {
    const tarn_plan *plan = x->p[i].ker[k].plan;
    *same &= plan == x->p[0].ker[k].plan;
    tarn_buf_add(&all, (const char *)&plan, sizeof plan);
  }
  return all;
}
static void find_functions(family *x) {
  tarn_intern *ids = tarn_intern_new(x->cx);
  TARN_VEC(uint32_t) first = {0};
  const tarn_kprog *p = largest(x);
  x->serves = TARN_ARRAY(x->cx, uint32_t, p->nker + 1);
  for (uint32_t k = 0; k < p->nker; k++) {
    bool same = true;
    if (p->ker[k].kind != TARN_K_NEST) continue;
    tarn_buf key = plans_of(x, k, &same);
    uint32_t id = tarn_intern_add(ids, key.p, key.n);
    if (id == first.n) tarn_push(x->cx, &first, k);
    x->serves[k] = same ? TARN_NONE : first.p[id];
  }
}

/* ---- do the samples correspond? ---- */
static const char *of_kernel(const family *x, uint32_t k, const char *what) {
  return tarn_format(x->cx, "kernel %s: %s", largest(x)->ker[k].name, what);
}
static bool same_numbers(const uint32_t *a, const uint32_t *b, uint32_t n) {
  return !n || !memcmp(a, b, n * sizeof *a);
}
static const char *compare_kernel(const family *x, uint32_t k) {
  const tarn_kernel *a = &largest(x)->ker[k];
  for (uint32_t i = 0; i < last(x); i++) {
    const tarn_kernel *b = &x->p[i].ker[k];
    if (a->kind != b->kind) return of_kernel(x, k, "of another kind at another size");
    if (a->nin != b->nin || a->nout != b->nout || !same_numbers(a->in, b->in, a->nin) ||
        !same_numbers(a->out, b->out, a->nout))
      return of_kernel(x, k, "other operands at another size");
  }
  return NULL;
}
static const char *compare_programs(const family *x) {
  const tarn_kprog *a = x->f->sample[last(x)];
  for (uint32_t i = 0; i < last(x); i++) {
    const tarn_kprog *b = x->f->sample[i];
    if (a->nker != b->nker) return "other numbers of kernels";
    if (a->nbuf != b->nbuf || a->nin != b->nin || a->nout != b->nout ||
        !same_numbers(a->in, b->in, a->nin) || !same_numbers(a->out, b->out, a->nout))
      return "other numbers of buffers";
  }
  return NULL;
}
/* No size takes more of it than the largest: v are the samples' numbers. */
static bool is_enough(const family *x, const int64_t *v) {
  tarn_poly p;
  return tarn_poly_through(&x->f->at, v, &p) && tarn_poly_rises(&p, &x->f->at);
}
static bool dim_through(tarn_ctx *cx, const tarn_lower_family *f, uint32_t b, uint32_t d,
                        tarn_poly *p) {
  int64_t *v = TARN_ARRAY(cx, int64_t, f->at.n);
  for (uint32_t i = 0; i < f->at.n; i++) v[i] = f->sample[i]->buf[b].layout.dim[d];
  return tarn_poly_through(&f->at, v, p);
}
/* Dims of what goes in and out are known to those who load it (low_family_table). */
static bool dims_grow(const family *x, uint32_t b) {
  tarn_poly p;
  for (uint32_t d = 0; d < largest(x)->buf[b].layout.n; d++)
    if (!dim_through(x->cx, x->f, b, d, &p)) return false;
  return true;
}
static const char *compare_buffer(const family *x, uint32_t b) {
  const tarn_buffer *a = &largest(x)->buf[b];
  int64_t *bytes = TARN_ARRAY(x->cx, int64_t, x->f->at.n);
  for (uint32_t i = 0; i < x->f->at.n; i++) {
    const tarn_buffer *s = &x->p[i].buf[b];
    if (a->kind != s->kind || a->dtype != s->dtype || a->layout.n != s->layout.n ||
        a->parent != s->parent || a->place != s->place)
      return tarn_format(x->cx, "buffer %u: another one at another size", b);
    bytes[i] = tarn_buffer_bytes(s);
  }
  if (!is_enough(x, bytes) || !dims_grow(x, b))
    return tarn_format(x->cx, "buffer %u: its bytes grow as no polynomial, or not to the last size",
                       b);
  if (x->plan->const_offset[b] < 0) return NULL;
  for (uint32_t i = 0; i < last(x); i++)
    if (!low_same_constant(&x->p[i], largest(x), b))
      return tarn_format(x->cx, "constant %u: other bytes at another size", b);
  return NULL;
}
static const char *compare(const family *x) {
  const char *why = NULL;
  for (uint32_t k = 0; !why && k < largest(x)->nker; k++) why = compare_kernel(x, k);
  for (uint32_t b = 0; !why && b < largest(x)->nbuf; b++) why = compare_buffer(x, b);
  return why;
}
/* Kernels of one number have one name. */
static void copy_programs(family *x) {
  const tarn_kprog *named = x->f->sample[last(x)];
  x->p = TARN_ARRAY(x->cx, tarn_kprog, x->f->at.n);
  for (uint32_t i = 0; i < x->f->at.n; i++) {
    x->p[i] = *x->f->sample[i];
    x->p[i].ker = TARN_ARRAY(x->cx, tarn_kernel, named->nker + 1);
    for (uint32_t k = 0; k < named->nker; k++) {
      x->p[i].ker[k] = x->f->sample[i]->ker[k];
      x->p[i].ker[k].name = named->ker[k].name;
    }
  }
}

/* ---- emission ---- */
/* cx: what is allocated while the sample is emitted. */
static low_module *module_of(family *x, tarn_ctx *cx, uint32_t i) {
  low_module *M = tarn_copy(cx, x->M, sizeof *M);
  low_sample *s = TARN_NEW(cx, low_sample);
  *s = (low_sample){.of = x->M, .prefix = x->prefix, .room = x->room, .number = i};
  s->most = last(x);
  s->dry = x->dry;
  s->serves = x->serves;
  s->kernel = TARN_ARRAY(cx, low_kernel *, x->p[i].nker + 1);
  M->m = x->m[i] = LLVMModuleCreateWithNameInContext("sample", M->lc);
  tarn_defer(x->cx, dispose_module, M->m);
  LLVMSetTarget(M->m, LLVMGetTarget(x->M->m));
  LLVMSetDataLayout(M->m, LLVMGetDataLayoutStr(x->M->m));
  memset(&M->fills, 0, sizeof M->fills);
  memset(&M->kernel, 0, sizeof M->kernel);
  M->fill = tarn_intern_new(cx);
  M->cx = cx;
  M->sample = s;
  M->per_thread = 0;
  return M;
}
/* The symbol of a function that is looked for when it is linked. */
static const char *note(const family *x, LLVMValueRef f) {
  size_t n;
  const char *s = LLVMGetValueName2(f, &n);
  return tarn_strndup(x->cx, s, n);
}
static void note_functions(family *x, const low_job *g) {
  low_module *M = x->M;
  x->made = *g;
  x->made.step_name = TARN_ARRAY(x->cx, const char *, g->nstep + 1);
  x->symbol = TARN_ARRAY(x->cx, const char *, g->nstep + 1);
  for (uint32_t k = 0; k < g->nstep; k++) {
    x->made.step_name[k] = g->step_name[k];
    x->symbol[k] = note(x, g->step[k]);
  }
  x->symbol[g->nstep] = note(x, g->run);
  if (g->M->per_thread > M->per_thread) M->per_thread = g->M->per_thread;
  M->pooled |= g->M->pooled;
}
static const char *compare_rooms(const family *x) {
  int64_t *v = TARN_ARRAY(x->cx, int64_t, x->f->at.n);
  for (uint32_t k = 0; k < x->room[last(x)].n; k++) {
    for (uint32_t i = 0; i < x->f->at.n; i++) v[i] = x->room[i].p[k];
    if (!is_enough(x, v)) return "a local buffer grows as no polynomial, or not to the last size";
  }
  return NULL;
}
/* Of the function, without the prefix of the family's symbols. */
static const char *of_function(const family *x, const char *why) {
  size_t n = strlen(x->prefix);
  return tarn_format(x->cx, "%s%s", strncmp(why, x->prefix, n) ? "" : "kernel ",
                     strncmp(why, x->prefix, n) ? why : why + n + 1);
}
/* The largest first, whose local buffers the others have. */
static void emit_samples(tarn_ctx *cx, void *arg) {
  family *x = arg;
  low_job g;
  for (uint32_t i = x->f->at.n; i-- > 0;) {
    g = (low_job){.M = module_of(x, cx, i), .p = &x->p[i], .plan = x->plan, .inner = true};
    low_steps(&g);
    if (i == last(x) && !x->dry) note_functions(x, &g);
  }
  const char *why = low_unify(cx, x->m, &x->f->at);
  x->why = why ? of_function(x, why) : compare_rooms(x);
}
static void free_ctx(void *cx) { tarn_ctx_free(cx); }
/* In memory of its own, which is large. */
static const char *emit_apart(family *x) {
  tarn_ctx *own = tarn_ctx_new(tarn_ctx_allocator(x->cx));
  if (!own) tarn_raise(x->cx, TARN_MEMORY, "lower: no memory for a family's code");
  tarn_defer(x->cx, free_ctx, own);
  tarn_status st = tarn_protect(own, emit_samples, x);
  if (st != TARN_OK) tarn_raise(x->cx, st, "%s", tarn_message(own));
  tarn_keep(x->cx, own);
  tarn_ctx_free(own);
  return x->why;
}
static void dispose(const family *x, LLVMModuleRef m) {
  tarn_keep(x->cx, m);
  LLVMDisposeModule(m);
}
static family family_of(low_module *M, const tarn_lower_family *f, const tarn_memory_plan *plan,
                        uint32_t number) {
  family x = {.cx = M->cx, .M = M, .f = f, .plan = plan};
  x.prefix = tarn_format(x.cx, "%s.f%u", M->o->name, number);
  x.room = TARN_ARRAY(x.cx, low_room, f->at.n);
  x.m = TARN_ARRAY(x.cx, LLVMModuleRef, f->at.n);
  return x;
}
/* NULL: the modules are the same now. */
static const char *make(family *x) {
  const char *why = compare_programs(x);
  if (why) return why;
  copy_programs(x);
  if ((why = compare(x))) return why;
  find_functions(x);
  return emit_apart(x);
}
static void check_samples(tarn_ctx *cx, const tarn_lower_family *f) {
  const int64_t *most = f->at.n > 1 ? f->at.at[f->at.n - 1] : NULL;
  if (!most || memcmp(most, f->at.hi, f->at.sizes * sizeof *most))
    tarn_raise(cx, TARN_INTERNAL, "lower: samples of a family are missing");
}

/* ---- the family's functions in the artefact's module ---- */
static void make_public(LLVMValueRef f) {
  LLVMSetLinkage(f, LLVMExternalLinkage);
  LLVMSetVisibility(f, LLVMHiddenVisibility);
}
static void make_internal(LLVMValueRef f) {
  LLVMSetVisibility(f, LLVMDefaultVisibility);
  LLVMSetLinkage(f, LLVMInternalLinkage);
}
static void link_in(family *x) {
  low_module *M = x->M;
  LLVMModuleRef m = x->m[last(x)];
  for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f)) LLVMSetUnnamedAddress(f, LLVMGlobalUnnamedAddr);
  for (uint32_t k = 0; k < M->kernel.n; k++) make_public(M->kernel.p[k]->fn);
  tarn_keep(x->cx, m);
  if (LLVMLinkModules2(M->m, m))
    tarn_raise(x->cx, TARN_INTERNAL, "lower: a family's code does not link");
  for (uint32_t k = 0; k < M->kernel.n; k++) make_internal(M->kernel.p[k]->fn);
}
static LLVMValueRef linked(const family *x, const char *name) {
  LLVMValueRef f = LLVMGetNamedFunction(x->M->m, name);
  make_internal(f);
  return f;
}
static void take_functions(family *x, low_job *g) {
  g->nstep = x->made.nstep;
  g->step_name = x->made.step_name;
  g->step = TARN_ARRAY(x->cx, LLVMValueRef, g->nstep + 1);
  for (uint32_t k = 0; k <= g->nstep; k++)
    make_public(LLVMGetNamedFunction(x->m[last(x)], x->symbol[k]));
  link_in(x);
  for (uint32_t k = 0; k < g->nstep; k++) g->step[k] = linked(x, x->symbol[k]);
  g->run = linked(x, x->symbol[g->nstep]);
}
void low_family(low_job *g, uint32_t number) {
  low_module *M = g->M;
  check_samples(M->cx, g->family);
  family x = family_of(M, g->family, g->plan, number);
  const char *why = make(&x);
  if (why) tarn_raise(M->cx, TARN_INTERNAL, "lower: a family's samples differ: %s", why);
  M->merges = true;
  for (uint32_t i = 0; i < last(&x); i++) dispose(&x, x.m[i]);
  take_functions(&x, g);
}

/* ---- for runtime/rt.h ---- */
static void push_dims(const low_job *g, uint32_t b, tarn_buf *words) {
  for (uint32_t d = 0; d < g->p->buf[b].layout.n; d++) {
    tarn_poly p;
    int64_t w[TARN_RT_POLY] = {0};
    (void)dim_through(g->M->cx, g->family, b, d, &p); /* as it was compared */
    w[0] = p.over;
    for (uint32_t i = 0; i < p.n; i++) {
      w[1 + 2 * i] = p.t[i].coef;
      for (uint32_t k = TARN_MOST_SIZES; k-- > 0;)
        w[2 + 2 * i] = w[2 + 2 * i] << 8 | p.t[i].power[k];
    }
    tarn_buf_add(words, (const char *)w, sizeof w);
  }
}
static LLVMValueRef dims_table(const low_job *g) {
  tarn_buf words = {.cx = g->M->cx};
  for (uint32_t i = 0; i < g->p->nin; i++) push_dims(g, g->p->in[i], &words);
  for (uint32_t i = 0; i < g->p->nout; i++) push_dims(g, g->p->out[i], &words);
  return low_i64_table(g->M, (const int64_t *)(const void *)words.p,
                       (uint32_t)(words.n / sizeof(int64_t)));
}
LLVMValueRef low_family_table(low_job *g) {
  low_module *M = g->M;
  const tarn_lower_family *f = g->family;
  if (!f) return LLVMConstNull(M->ptr);
  uint32_t n = f->at.sizes;
  LLVMValueRef v[] = {low_i64_table(M, f->at.lo, n), low_i64_table(M, f->at.hi, n),
                      low_i64_table(M, f->at.step, n), dims_table(g),
                      low_table(M, M->ptr, g->step, g->nstep)};
  LLVMValueRef all = LLVMConstStructInContext(M->lc, v, sizeof v / sizeof *v, 0);
  return low_table(M, LLVMTypeOf(all), &all, 1);
}

/* ---- asked before ---- */
typedef struct question {
  const tarn_lower_family *f;
  const tarn_lower_options *o;
  const char *why;
} question;
static void ask(tarn_ctx *cx, void *arg) {
  question *q = arg;
  unsigned wrote = 0;
  const tarn_kprog *p = q->f->sample[q->f->at.n - 1];
  low_module *M = low_module_new(p, q->o, &wrote);
  check_samples(cx, q->f);
  (void)low_machine(M);
  family x = family_of(M, q->f, tarn_memory_plan_make(p, ALIGN), 0);
  x.dry = true;
  q->why = make(&x);
}
const char *tarn_lower_family_differs(const tarn_lower_family *f, const tarn_lower_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(f->sample[0]->L);
  question q = {f, o, NULL};
  tarn_status st = tarn_protect(cx, ask, &q);
  if (st != TARN_OK) tarn_reraise(cx, st);
  return q.why;
}
