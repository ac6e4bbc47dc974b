/* What the tests of lower/ share: programs of single kernels, and a nest evaluator of their own
 * (the slowest possible: index maps and scalar expressions point by point), so that the lowered
 * code is not judged by the interpreter alone. */
#ifndef TARN_TESTS_LOWER_KIT_H
#define TARN_TESTS_LOWER_KIT_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/access.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "tests/plan_run.h"
#include "tests/planned.h"
#include "tests/suite.h"

/* ---- random numbers: the same on every machine ---- */
static uint64_t kit_seed = 1;
static inline uint64_t kit_random(void) { return tarn_random(&kit_seed); }
static inline uint32_t kit_below(uint32_t n) { return (uint32_t)(kit_random() % n); }
static inline double kit_unit(void) { return (double)(kit_random() >> 11) * 0x1p-53; }

/* ---- this machine, as far as LLVM knows it ---- */
char *LLVMGetHostCPUName(void);
char *LLVMGetHostCPUFeatures(void);
void LLVMDisposeMessage(char *message);
static inline const tarn_hw *kit_host(tarn_ctx *cx) {
  char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
  tarn_hw *h = TARN_NEW(cx, tarn_hw);
  bool wide = strstr(features, "+avx512f") != NULL, avx = strstr(features, "+avx2") != NULL;
  *h = (tarn_hw){.name = "test",
                 .kind = TARN_HW_CPU,
                 .triple = "",
                 .cpu = tarn_strdup(cx, cpu),
                 .clock = 2e9,
                 .units = 2,
                 .core = TARN_HW_CORE,
                 .features = tarn_strdup(cx, features),
                 .vector_bits = wide  ? 512
                                : avx ? 256
                                      : 128,
                 .vector_regs = wide ? 32 : 16,
                 .spreads = !wide};
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
  return h;
}

/* A processor with vectors of 16, whatever this machine is: to look at the code, not to run it. */
static inline tarn_hw kit_wide(tarn_ctx *cx) {
  tarn_hw on = *kit_host(cx);
  on.triple = "x86_64-pc-linux-gnu", on.cpu = "skylake-avx512", on.features = "";
  on.vector_bits = 512, on.vector_regs = 32, on.spreads = false;
  return on;
}

/* A kernel of windows over planes, each channel by itself, with a constant of 100 weights. */
#define KIT_PLANES(own, red, weights, window, elems, borders, out)                                 \
  "(kernel (nest (stages (children 2) (shared) (split 3) (stage (own " own ") (reduce " red        \
  ") (red sum (mul $0 $1)) (child 1"                                                               \
  " (index ((" own ") (" red ")) (100) (" weights "))) (child 0 (index ((" own ") (" red           \
  ")) (" elems ") (" window ")" borders ")) out)))(in f32 (" elems                                 \
  ") (1))(const f32 (100) (1))(out f32 (" own ") " out "))"

/* ---- programs ---- */
typedef struct kit_case {
  uint32_t nest;
  uint32_t nin, nout;
  tarn_dtype in_type[8], out_type[4];
  tarn_layout in[8], out[4]; /* over the children's dims; over shared ++ own of the output stages */
  bool constant[8];
  tarn_schedule *sched;
  tarn_tensor *value[8]; /* logical, row-major */
  tarn_tensor *want[4], *got[4];
  bool exact; /* else within the tolerance */
} kit_case;

static inline tarn_tensor *kit_tensor(tarn_ctx *cx, tarn_dtype t, uint32_t n, const int64_t *dim,
                                      double scale) {
  tarn_tensor *x = tarn_tensor_new(cx, t, n, dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) {
    tarn_value v = {0};
    if (tarn_dtype_is_float(t)) v.d = scale * (2 * kit_unit() - 1);
    else v.i = (int64_t)kit_below(t == TARN_BOOL ? 2 : 19) - (t == TARN_BOOL ? 0 : 9);
    tarn_tensor_set(x, i, v);
  }
  return x;
}

/* The memory of a tensor in a layout, as a model's input or from its output: one flat tensor. */
static inline tarn_tensor *kit_place(tarn_ctx *cx, const tarn_tensor *t, const tarn_layout *l,
                                     tarn_tensor *into, bool back) {
  int64_t idx[TARN_MAX_DIMS] = {0}, elems = tarn_layout_elems(l) + l->offset;
  if (!into) into = tarn_tensor_new(cx, t->dtype, 1, &elems);
  for (int64_t i = 0; i < tarn_tensor_count(t); i++) {
    int64_t at = tarn_layout_at(l, idx);
    if (back) tarn_tensor_set((tarn_tensor *)t, i, tarn_tensor_get(into, at));
    else tarn_tensor_set(into, at, tarn_tensor_get(t, i));
    for (uint32_t d = l->n; d-- > 0 && ++idx[d] == l->dim[d];) idx[d] = 0;
  }
  return into;
}

/* The same memory, at the end of a page with none behind it: who reads on is stopped. */
static inline tarn_tensor *kit_edge(tarn_tensor *t) {
  size_t page = 4096, size = tarn_tensor_bytes(t), whole = (size + page - 1) / page * page;
  char *p = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || mprotect(p + whole, page, PROT_NONE)) return t;
  memcpy(p + whole - size, t->data, size);
  t->data = p + whole - size;
  return t;
}

/* A program of the cases side by side. Inputs and outputs of the model are flat pieces of memory.
 */
static inline tarn_kprog *kit_program(tarn_lang *L, const tarn_hw *hw, kit_case *c, uint32_t n) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_kprog *p = TARN_NEW(cx, tarn_kprog);
  *p = (tarn_kprog){.L = L, .hw = hw};
  p->buf = TARN_ARRAY(cx, tarn_buffer, n * 12), p->ker = TARN_ARRAY(cx, tarn_kernel, n);
  p->in = TARN_ARRAY(cx, uint32_t, n * 8), p->out = TARN_ARRAY(cx, uint32_t, n * 4);
  for (uint32_t k = 0; k < n; k++) {
    tarn_kernel *x = &p->ker[p->nker++];
    uint32_t *in = TARN_ARRAY(cx, uint32_t, 9), *out = TARN_ARRAY(cx, uint32_t, 5);
    *x = (tarn_kernel){.name = tarn_format(cx, "k%u", k),
                       .kind = TARN_K_NEST,
                       .nest = c[k].nest,
                       .nin = c[k].nin,
                       .nout = c[k].nout,
                       .in = in,
                       .out = out,
                       .in_layout = c[k].in,
                       .out_layout = c[k].out,
                       .sched = c[k].sched};
    for (uint32_t i = 0; i < c[k].nin + c[k].nout; i++) {
      bool is_in = i < c[k].nin;
      uint32_t o = i - c[k].nin, b = p->nbuf++;
      const tarn_layout *l = is_in ? &c[k].in[i] : &c[k].out[o];
      int64_t elems = tarn_layout_elems(l) + l->offset;
      p->buf[b] = (tarn_buffer){.name = tarn_format(cx, "b%u", b),
                                .dtype = is_in ? c[k].in_type[i] : c[k].out_type[o],
                                .layout = tarn_layout_row_major(1, &elems),
                                .parent = TARN_NONE,
                                .kind = TARN_BUF_OUTPUT};
      if (!is_in) {
        out[o] = b, p->out[p->nout++] = b;
        continue;
      }
      in[i] = b;
      p->buf[b].kind = c[k].constant[i] ? TARN_BUF_CONST : TARN_BUF_INPUT;
      if (c[k].constant[i]) p->buf[b].value = kit_place(cx, c[k].value[i], l, NULL, false);
      else p->in[p->nin++] = b;
    }
  }
  return p;
}

/* A kernel with a schedule, its operands random. */
static inline kit_case kit_case_of(tarn_ctx *cx, const tarn_ksig *k, const tarn_schedule *s) {
  kit_case c = {
      .nest = k->nest, .nin = k->nin, .nout = k->nout, .sched = tarn_copy(cx, s, sizeof *s)};
  for (uint32_t i = 0; i < k->nin; i++) {
    c.in_type[i] = k->in_type[i], c.in[i] = k->in[i];
    c.value[i] = kit_tensor(cx, k->in_type[i], k->in[i].n, k->in[i].dim, 1);
  }
  for (uint32_t i = 0; i < k->nout; i++) c.out_type[i] = k->out_type[i], c.out[i] = k->out[i];
  return c;
}

static inline kit_case kit_case_text(tarn_lang *L, const char *kernel, const char *schedule) {
  tarn_ksig k;
  tarn_ksig_parse(L, kernel, strlen(kernel), &k);
  return kit_case_of(tarn_lang_ctx(L), &k,
                     tarn_schedule_parse(L, tarn_nest_get(L, k.nest), schedule, strlen(schedule)));
}

static inline const char *kit_dir(tarn_ctx *cx) {
  char *dir = tarn_strdup(cx, "/tmp/tarn_lower_XXXXXX");
  if (!mkdtemp(dir)) tarn_raise(cx, TARN_IO, "mkdtemp failed");
  return dir;
}
static inline void kit_remove(tarn_ctx *cx, const char *dir) {
  static const char *const files[] = {"model.so", "model.o", "model.h", "model.ll", "model.s"};
  for (uint32_t i = 0; i < 5; i++) unlink(tarn_format(cx, "%s/%s", dir, files[i]));
  rmdir(dir);
}

static inline const char *kit_compile(tarn_kprog *p, bool contract, unsigned emit) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const char *dir = kit_dir(cx);
  tarn_lower_options o = {
      .emit = TARN_EMIT_SO | emit, .dir = dir, .name = "model", .contract = contract, .opt = 3};
  tarn_lower_cpu(planned_program(p, contract), tarn_memory_plan_make(p, 64), &o);
  return dir;
}
/* Lines of a case's code that hold some text. */
static inline uint32_t kit_lines(tarn_lang *L, const tarn_hw *on, kit_case *c, const char *what) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const char *dir = kit_compile(kit_program(L, on, c, 1), true, TARN_EMIT_LL);
  FILE *f = fopen(tarn_format(cx, "%s/model.ll", dir), "r");
  char line[4096];
  uint32_t n = 0;
  while (f && fgets(line, sizeof line, f)) n += strstr(line, what) != NULL;
  if (f) fclose(f);
  kit_remove(cx, dir);
  return n;
}

/* Fills c[].got. */
static inline void kit_run(tarn_lang *L, const tarn_hw *hw, kit_case *c, uint32_t n, bool contract,
                           uint32_t threads) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_kprog *p = kit_program(L, hw, c, n);
  const char *dir = kit_compile(p, contract, TARN_EMIT_LL);
  tarn_loaded *m = tarn_load(cx, dir);
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, p->nin + 1);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  uint32_t ni = 0, no = 0;
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t i = 0; i < c[k].nin; i++)
      if (!c[k].constant[i])
        in[ni++] = kit_edge(kit_place(cx, c[k].value[i], &c[k].in[i], NULL, false));
    for (uint32_t i = 0; i < c[k].nout; i++) {
      c[k].got[i] = tarn_tensor_new(cx, c[k].out_type[i], c[k].out[i].n, c[k].out[i].dim);
      out[no++] = kit_place(cx, c[k].got[i], &c[k].out[i], NULL, false);
    }
  }
  tarn_loaded_run(m, in, out, threads);
  no = 0;
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t i = 0; i < c[k].nout; i++)
      kit_place(cx, c[k].got[i], &c[k].out[i], out[no++], true);
  tarn_unload(m);
  kit_remove(cx, dir);
}

/* ---- what a plan says ---- */
static inline tarn_plan_nest *kit_plan(tarn_lang *L, const tarn_hw *on, kit_case *c) {
  tarn_kprog *p = kit_program(L, on, c, 1);
  return plan_of_kernel(p, &p->ker[0], true);
}
/* Statements of one kind, in the whole loop program. */
static inline uint32_t kit_statements(tarn_lang *L, const tarn_hw *on, kit_case *c,
                                      tarn_plan_op op) {
  const tarn_plan_nest *N = kit_plan(L, on, c);
  uint32_t n = 0;
  for (uint32_t r = 0; r < tarn_plan_regions(N); r++)
    for (uint32_t i = 0; i < N->code[r]->n; i++) n += N->code[r]->p[i].op == op;
  return n;
}
/* Does a loop prefetch lines of a result, to be written? */
static inline bool kit_prefetches_result(tarn_lang *L, const tarn_hw *on, kit_case *c) {
  const tarn_plan_nest *N = kit_plan(L, on, c);
  for (uint32_t i = 0; i < N->nstage; i++)
    for (uint32_t k = 0; k < N->stage[i].prefetch.n; k++) {
      const tarn_prefetch *ask = &N->stage[i].prefetch.p[k].k;
      if (ask->walk == N->stage[ask->of].f->nops) return true;
    }
  return false;
}
static inline bool kit_streams(tarn_lang *L, const tarn_hw *on, kit_case *c) {
  const tarn_plan_nest *N = kit_plan(L, on, c);
  bool out[8] = {false};
  bool any = false;
  for (uint32_t r = 0; r < tarn_plan_regions(N); r++) any |= tarn_plan_streams_out(N, r, out);
  return any;
}

/* Fills c->got by the plan's interpreter. */
static inline void kit_interpret(tarn_lang *L, const tarn_hw *hw, kit_case *c, bool contract) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_kprog *p = kit_program(L, hw, c, 1);
  plan_memory in[8], out[4];
  for (uint32_t i = 0; i < c->nin; i++)
    in[i] = (plan_memory){kit_place(cx, c->value[i], &c->in[i], NULL, false), c->in[i].offset};
  for (uint32_t i = 0; i < c->nout; i++) {
    c->got[i] = tarn_tensor_new(cx, c->out_type[i], c->out[i].n, c->out[i].dim);
    tarn_tensor *to = kit_place(cx, c->got[i], &c->out[i], NULL, false);
    out[i] = (plan_memory){to, c->out[i].offset};
  }
  plan_run(plan_of_kernel(p, &p->ker[0], contract), in, out);
  for (uint32_t i = 0; i < c->nout; i++)
    kit_place(cx, c->got[i], &c->out[i], out[i].elements, true);
}

/* ---- the evaluator ---- */
typedef struct kit_eval {
  tarn_lang *L;
  const tarn_nest *n;
  kit_case *c;
  tarn_mode mode;
  tarn_tensor *local[16]; /* by stage */
  tarn_dtype type[16];
} kit_eval;

static inline tarn_value kit_read(kit_eval *e, const tarn_stage *s, const tarn_read *r,
                                  const int64_t *idx, tarn_dtype *t) {
  const tarn_imap *m = tarn_imap_get(e->L, r->map);
  tarn_tensor *src = r->stage ? e->local[r->src] : e->c->value[r->src];
  bool out = r->stage && e->n->stage[r->src].out;
  int64_t at[TARN_MAX_DIMS], flat = 0;
  *t = src->dtype;
  if (!tarn_map_apply(e->L, r->map, idx, at)) {
    const tarn_fx *f = tarn_fx_get(e->L, m->fill);
    tarn_value v;
    if (tarn_dtype_is_float(f->dtype)) v.d = f->value;
    else v.i = f->ivalue;
    return v;
  }
  for (uint32_t d = 0; out && d < e->n->depth; d++) flat = flat * src->dim[d] + idx[d];
  for (uint32_t d = 0; d < m->nin; d++) flat = flat * m->in[d] + at[d];
  if (r->row.by) {
    tarn_dtype is;
    const tarn_read *look = s->read + tarn_stage_reads(e->L, s) - s->nlook + r->row.by - 1;
    int64_t row = kit_read(e, s, look, idx, &is).i;
    flat += r->row.pitch * (row < 0 ? row + r->row.extent : row);
  }
  return tarn_tensor_get(src, flat);
}

/* One point of a stage's shared and own dims. */
static inline void kit_point(kit_eval *e, const tarn_stage *s, int64_t *idx, tarn_value *out,
                             tarn_dtype *type) {
  const tarn_func *f = tarn_fn_get(e->L, s->fn);
  const tarn_reducer *r = f->red == TARN_NONE ? NULL : tarn_reducer_get(e->L, f->red);
  uint32_t nacc = (uint32_t)e->n->depth + s->nown;
  tarn_value op[32], st[8], next[8];
  tarn_dtype t[32], stt[8];
  int64_t total = 1;
  for (uint32_t i = 0; i < s->nred; i++) total *= s->red[i], idx[nacc + i] = 0;
  for (uint32_t k = 0; r && k < r->ns; k++) {
    stt[k] = tarn_fx_get(e->L, r->init[k])->dtype;
    st[k] = tarn_fx_eval(e->L, r->init[k], NULL, NULL, e->mode);
  }
  for (int64_t i = 0; i < total; i++) {
    for (uint32_t k = 0; k < f->nops; k++) op[k] = kit_read(e, s, &s->read[k], idx, &t[k]);
    tarn_value v = tarn_fx_eval(e->L, f->body, op, t, e->mode);
    if (!tarn_fx_type(e->L, f->body, t, f->nops, type)) abort();
    *out = v;
    for (uint32_t k = 0; r && k < r->ns; k++) {
      st[r->ns] = v, stt[r->ns] = *type, st[r->ns + 1].i = i, stt[r->ns + 1] = TARN_I64;
      next[k] = tarn_fx_eval(e->L, r->step[k], st, stt, e->mode);
    }
    for (uint32_t k = 0; r && k < r->ns; k++) st[k] = next[k];
    for (uint32_t d = s->nred; d-- > 0 && ++idx[nacc + d] == s->red[d];) idx[nacc + d] = 0;
  }
  if (r) {
    *out = tarn_fx_eval(e->L, r->result, st, stt, e->mode);
    tarn_dtype one[8];
    memcpy(one, stt, sizeof one);
    if (!tarn_fx_type(e->L, r->result, one, r->ns, type)) abort();
  }
  if (f->epi == TARN_NONE) return;
  op[0] = *out, t[0] = *type;
  for (uint32_t k = 0; k < f->nepi; k++)
    op[1 + k] = kit_read(e, s, &s->read[f->nops + k], idx, &t[1 + k]);
  *out = tarn_fx_eval(e->L, f->epi, op, t, e->mode);
  if (!tarn_fx_type(e->L, f->epi, t, 1u + f->nepi, type)) abort();
}

/* Fills c->want. */
static inline void kit_reference(tarn_lang *L, kit_case *c, tarn_mode mode) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  kit_eval e = {.L = L, .n = tarn_nest_get(L, c->nest), .c = c, .mode = mode};
  int64_t p[TARN_MAX_DIMS] = {0}, idx[TARN_MAX_DIMS * 2], points = 1;
  for (uint32_t i = 0; i < e.n->depth; i++) points *= e.n->shared[i];
  for (int64_t at = 0; at < points; at++) {
    uint32_t out_no = 0;
    for (uint32_t s = 0; s < e.n->nstage; s++) {
      const tarn_stage *st = &e.n->stage[s];
      int64_t own = 1, o[TARN_MAX_DIMS] = {0};
      for (uint32_t i = 0; i < st->nown; i++) own *= st->own[i];
      for (int64_t i = 0; i < own; i++) {
        tarn_value v;
        tarn_dtype t;
        memcpy(idx, p, e.n->depth * sizeof *p);
        memcpy(idx + e.n->depth, o, st->nown * sizeof *o);
        kit_point(&e, st, idx, &v, &t);
        if (mode == TARN_WIDE && tarn_dtype_is_float(t)) t = TARN_F64;
        if (!e.local[s]) {
          int64_t dim[TARN_MAX_DIMS];
          uint32_t n = 0;
          for (uint32_t d = 0; st->out && d < e.n->depth; d++) dim[n++] = e.n->shared[d];
          for (uint32_t d = 0; d < st->nown; d++) dim[n++] = st->own[d];
          e.local[s] = tarn_tensor_new(cx, t, n, dim);
          if (st->out) c->want[out_no] = e.local[s];
        }
        tarn_tensor_set(e.local[s], (st->out ? at * own : 0) + i, v);
        for (uint32_t d = st->nown; d-- > 0 && ++o[d] == st->own[d];) o[d] = 0;
      }
      out_no += st->out;
    }
    for (uint32_t d = e.n->depth; d-- > 0 && ++p[d] == e.n->shared[d];) p[d] = 0;
  }
}

/* The largest difference over the largest magnitude; -1 when a NaN or infinity stands in one only.
 */
static inline double kit_error(const tarn_tensor *want, const tarn_tensor *got) {
  double most = 0, scale = 1e-30;
  bool f = tarn_dtype_is_float(got->dtype);
  for (int64_t i = 0; i < tarn_tensor_count(got); i++) {
    tarn_value w = tarn_tensor_get(want, i), g = tarn_tensor_get(got, i);
    double a = f ? w.d : (double)w.i, b = f ? g.d : (double)g.i;
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b)) {
      if (a == b || (isnan(a) && isnan(b))) continue;
      return -1;
    }
    if (fabs(a) > scale) scale = fabs(a);
    if (fabs(a - b) > most) most = fabs(a - b);
  }
  return most / scale;
}
#endif
