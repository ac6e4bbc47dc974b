/* model.so of a GPU's program: segments of launches, the host's kernels between them, and what is
 * copied (plan/copies.c). */
#include "lower/cuda/cuda.h"
#include <string.h>

typedef struct segment {
  tarn_rt_segment s;
  TARN_VEC(tarn_rt_transfer) to, from;
} segment;
typedef struct host {
  const cuda_program *g;
  TARN_VEC(segment) segment;
} host;

/* ---------------------------------------------------------------- segments */
static void launches(host *h) {
  const tarn_kprog *p = h->g->p;
  for (uint32_t k = 0, s = 0; k < p->nker; k++) {
    if (p->ker[k].kind != TARN_K_NEST) continue;
    if (!k || p->ker[k - 1].kind != TARN_K_NEST)
      tarn_push(h->g->cx, &h->segment, ((segment){.s.first = s}));
    for (; s < h->g->launch.n && h->g->launch.p[s].kernel == k; s++)
      h->segment.p[h->segment.n - 1].s.n++;
  }
}
static void copies(host *h, const tarn_host_copies *all) {
  for (uint32_t i = 0; i < all->copy.n; i++) {
    const tarn_host_copy *c = &all->copy.p[i];
    segment *s = &h->segment.p[c->segment];
    tarn_rt_transfer t = {cuda_place(h->g, c->buffer, 0), (uint64_t)c->bytes};
    if (c->send) tarn_push(h->g->cx, &s->to, t);
    else tarn_push(h->g->cx, &s->from, t);
  }
}

/* ---------------------------------------------------------------- the program of the host */
/* Kernels of the device are segments that it starts: the first does all of them. */
static tarn_kprog host_program(const cuda_program *g, const tarn_hw *hw) {
  tarn_kprog p = *g->p;
  tarn_kernel *k = tarn_copy(g->cx, p.ker, p.nker * sizeof *k);
  uint32_t s = 0;
  for (uint32_t i = 0; i < p.nker; i++) {
    if (g->p->ker[i].kind != TARN_K_NEST) continue;
    bool first = !i || g->p->ker[i - 1].kind != TARN_K_NEST;
    k[i].kind = TARN_K_DEVICE;
    k[i].payload = first ? s++ : TARN_NONE;
  }
  p.ker = k;
  p.hw = hw;
  return p;
}
/* The number behind a word of the text: ".version 7.0" is 70. */
static uint32_t number_behind(const char *ptx, size_t n, const char *word) {
  const char *at = memmem(ptx, n, word, strlen(word));
  uint32_t v = 0;
  for (at = at ? at + strlen(word) : ""; (*at >= '0' && *at <= '9') || *at == '.'; at++)
    if (*at != '.') v = 10 * v + (uint32_t)(*at - '0');
  return v;
}
static const tarn_rt_segment *segments(const host *h) {
  tarn_rt_segment *s = TARN_ARRAY(h->g->cx, tarn_rt_segment, h->segment.n + 1);
  for (uint32_t i = 0; i < h->segment.n; i++) {
    const segment *x = &h->segment.p[i];
    s[i] = x->s;
    s[i].nto = x->to.n, s[i].nfrom = x->from.n;
    s[i].to = x->to.p, s[i].from = x->from.p;
  }
  return s;
}
void cuda_host(const cuda_program *g, const tarn_lower_options *o, const char *ptx, size_t n) {
  host h = {.g = g};
  const tarn_host_copies *all = tarn_kprog_copies(g->p);
  launches(&h);
  copies(&h, all);
  tarn_memory_plan plan = *g->plan;
  if (!all->works) plan.bytes = 0;
  const tarn_kprog p = host_program(g, o->here);
  tarn_rt_gpu gpu = {.ptx = tarn_strndup(g->cx, ptx, n),
                     .workspace = (uint64_t)(g->plan->bytes + g->scratch),
                     .architecture = number_behind(ptx, n, ".target sm_"),
                     .isa = number_behind(ptx, n, ".version "),
                     .nlaunch = g->launch.n,
                     .nsegment = h.segment.n,
                     .launch = g->launch.p,
                     .segment = segments(&h)};
  tarn_lower_options ho = *o;
  ho.emit = TARN_EMIT_SO | TARN_EMIT_O;
  low_cpu(&p, &plan, &ho, &(low_device_part){.gpu = &gpu, .hw = g->p->hw});
}

/* ---------------------------------------------------------------- its tables */
typedef struct types {
  LLVMTypeRef place, launch, transfer, segment, gpu;
} types;
#define STRUCT(M, ...)                                                                             \
  LLVMStructTypeInContext((M)->lc, (LLVMTypeRef[]){__VA_ARGS__},                                   \
                          sizeof((LLVMTypeRef[]){__VA_ARGS__}) / sizeof(LLVMTypeRef), 0)
#define VALUE(M, ...)                                                                              \
  LLVMConstStructInContext((M)->lc, (LLVMValueRef[]){__VA_ARGS__},                                 \
                           sizeof((LLVMValueRef[]){__VA_ARGS__}) / sizeof(LLVMValueRef), 0)
static types types_of(const low_module *M) {
  types t = {.place = STRUCT(M, M->i32, M->i32, M->i64)};
  t.launch = STRUCT(M, M->ptr, M->i32, M->i32, M->i32, M->i32, M->i32, M->i32, M->ptr);
  t.transfer = STRUCT(M, t.place, M->i64);
  t.segment = STRUCT(M, M->i32, M->i32, M->i32, M->i32, M->ptr, M->ptr);
  t.gpu = STRUCT(M, M->ptr, M->i64, M->i32, M->i32, M->i32, M->i32, M->ptr, M->ptr);
  return t;
}
static LLVMValueRef u32(const low_module *M, uint32_t v) { return LLVMConstInt(M->i32, v, 0); }
static LLVMValueRef place(const low_module *M, const tarn_rt_place *x) {
  return VALUE(M, u32(M, x->at), u32(M, x->index), low_i64(M, (int64_t)x->offset));
}
static LLVMValueRef *row(const low_module *M, uint32_t n) {
  return TARN_ARRAY(M->cx, LLVMValueRef, n + 1);
}
static LLVMValueRef launch_row(low_module *M, const types *t, const tarn_rt_launch *l) {
  LLVMValueRef *arg = row(M, l->narg);
  for (uint32_t i = 0; i < l->narg; i++) arg[i] = place(M, &l->arg[i]);
  return VALUE(M, low_text(M, l->entry), u32(M, l->kernel), u32(M, l->grid), u32(M, l->block),
               u32(M, l->shared), u32(M, l->narg), u32(M, l->rows),
               low_table(M, t->place, arg, l->narg));
}
static LLVMValueRef transfers(low_module *M, const types *t, const tarn_rt_transfer *x,
                              uint32_t n) {
  LLVMValueRef *v = row(M, n);
  for (uint32_t i = 0; i < n; i++)
    v[i] = VALUE(M, place(M, &x[i].place), low_i64(M, (int64_t)x[i].bytes));
  return low_table(M, t->transfer, v, n);
}
static LLVMValueRef segment_row(low_module *M, const types *t, const tarn_rt_segment *s) {
  return VALUE(M, u32(M, s->first), u32(M, s->n), u32(M, s->nto), u32(M, s->nfrom),
               transfers(M, t, s->to, s->nto), transfers(M, t, s->from, s->nfrom));
}
LLVMValueRef low_gpu_table(low_module *M, const tarn_rt_gpu *g) {
  types t = types_of(M);
  LLVMValueRef *launch = row(M, g->nlaunch), *seg = row(M, g->nsegment);
  for (uint32_t i = 0; i < g->nlaunch; i++) launch[i] = launch_row(M, &t, &g->launch[i]);
  for (uint32_t i = 0; i < g->nsegment; i++) seg[i] = segment_row(M, &t, &g->segment[i]);
  LLVMValueRef v =
      VALUE(M, low_text(M, g->ptx), low_i64(M, (int64_t)g->workspace), u32(M, g->architecture),
            u32(M, g->isa), u32(M, g->nlaunch), u32(M, g->nsegment),
            low_table(M, t.launch, launch, g->nlaunch), low_table(M, t.segment, seg, g->nsegment));
  return low_table(M, t.gpu, &v, 1);
}
