/* What is kept of a run for those who want to see it: when each instruction worked, and which
 * entries of the memories held something that was read later, as a raster of addresses × time.
 * The end of a run is not known before; so columns are joined in pairs whenever time leaves the
 * raster. */
#include "sim/internal.h"
#include <string.h>

enum { ROWS = 64 };

static bool is_drawn(const tarn_hw *hw, uint32_t m) {
  return m + 1 < hw->nmem && !hw->mem[m].shadow_of;
}
tarn_sim_trace *tarn_sim_traced(tarn_lang *L, tarn_sim_program *p) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_sim_trace *t = TARN_NEW(cx, tarn_sim_trace);
  t->width = 1, t->event = TARN_ARRAY(cx, tarn_sim_event, p->count);
  t->map = TARN_ARRAY(cx, tarn_sim_map, p->hw->nmem);
  for (uint32_t i = 0; i < p->hw->nmem; i++) {
    if (!is_drawn(p->hw, i)) continue;
    tarn_sim_map *m = &t->map[t->nmap++];
    m->memory = i, m->depth = tarn_hw_depth(&p->hw->mem[i]);
    m->rows = (uint32_t)tarn_min(ROWS, m->depth);
    m->cell = TARN_ARRAY(cx, double, m->rows *TARN_SIM_COLUMNS);
    m->life = TARN_ARRAY(cx, struct tarn_sim_life, m->depth);
  }
  return p->trace = t;
}

/* ---------------------------------------------------------------- the raster */
static void widen(tarn_sim_trace *t) {
  for (uint32_t k = 0; k < t->nmap; k++)
    for (uint32_t y = 0; y < t->map[k].rows; y++) {
      double *c = &t->map[k].cell[y * TARN_SIM_COLUMNS];
      for (uint32_t i = 0; i < TARN_SIM_COLUMNS; i++)
        c[i] = 2 * i < TARN_SIM_COLUMNS ? c[2 * i] + c[2 * i + 1] : 0;
    }
  t->width *= 2;
}
/* Entry `at` was live from then to then. */
static void live(tarn_sim_trace *t, tarn_sim_map *m, int64_t at, double from, double to) {
  while (to > t->width * TARN_SIM_COLUMNS) widen(t);
  double *c = &m->cell[(uint32_t)(at * m->rows / m->depth) * TARN_SIM_COLUMNS];
  for (uint32_t i = (uint32_t)(from / t->width); i < TARN_SIM_COLUMNS && i * t->width < to; i++)
    c[i] += tarn_fmin(to, (i + 1) * t->width) - tarn_fmax(from, i * t->width);
}
static tarn_sim_map *map_of(tarn_sim_trace *t, uint32_t memory) {
  for (uint32_t k = 0; k < t->nmap; k++)
    if (t->map[k].memory == memory) return &t->map[k];
  return NULL;
}
static void touched(tarn_sim_trace *t, const sim_used *u, double start, double end) {
  tarn_sim_map *m = map_of(t, u->memory);
  for (int64_t i = u->at; m && i < u->at + u->n; i++) {
    struct tarn_sim_life *l = &m->life[i];
    if (u->writes && !(l->held && l->since == start)) {
      if (l->held) live(t, m, i, l->since, tarn_fmin(l->until, start));
      *l = (struct tarn_sim_life){true, start, end};
    }
    l->until = tarn_fmax(l->until, end);
  }
}

/* ---------------------------------------------------------------- a run */
void sim_record(sim_run *r, double start, double end, double waited, uint32_t by) {
  tarn_sim_trace *t = r->p->trace;
  if (!t) return;
  const tarn_hw_instruction *x = r->x[r->now].is;
  start += t->cycles, end += t->cycles;
  t->event[r->first + r->now] = (tarn_sim_event){.ran = true,
                                                 .queue = x->queue,
                                                 .is = (uint32_t)(x - r->hw->instruction),
                                                 .start = start,
                                                 .end = end,
                                                 .waited = waited,
                                                 .by = by};
  for (uint32_t i = 0; i < r->used.n; i++) touched(t, &r->used.p[i], start, end);
  r->used.n = 0;
}
void sim_record_end(sim_run *r) {
  tarn_sim_trace *t = r->p->trace;
  if (!t) return;
  for (uint32_t k = 0; k < t->nmap; k++)
    for (int64_t i = 0; i < t->map[k].depth; i++) {
      struct tarn_sim_life *l = &t->map[k].life[i];
      if (l->held) live(t, &t->map[k], i, l->since, l->until);
      l->held = false;
    }
  t->cycles += r->result.cycles;
}
double tarn_sim_live(const tarn_sim_trace *t, const tarn_sim_map *m, uint32_t row,
                     uint32_t column) {
  double entries = (double)m->depth / m->rows;
  return tarn_fmin(1, m->cell[row * TARN_SIM_COLUMNS + column] / (t->width * entries));
}

uint32_t tarn_sim_kernel_of(const tarn_sim_program *p, uint32_t instruction) {
  uint32_t lo = 0, hi = p->nkernel;
  while (lo < hi) {
    uint32_t k = (lo + hi) / 2;
    if (p->kernel[k].first + p->kernel[k].count <= instruction) lo = k + 1;
    else hi = k;
  }
  return lo < p->nkernel && p->kernel[lo].first <= instruction ? lo : TARN_NONE;
}
void tarn_sim_kernel_time(const tarn_sim_program *p, uint32_t kernel, double *from, double *to) {
  const tarn_sim_kernel *k = &p->kernel[kernel];
  *from = p->trace->cycles, *to = 0;
  for (uint32_t i = k->first; i < k->first + k->count; i++) {
    *from = tarn_fmin(*from, p->trace->event[i].start);
    *to = tarn_fmax(*to, p->trace->event[i].end);
  }
}

/* ---------------------------------------------------------------- Chrome's trace */
static void quoted(tarn_buf *b, const char *s) {
  tarn_buf_str(b, "\"");
  tarn_buf_as(b, TARN_AS_JSON, s, strlen(s));
  tarn_buf_str(b, "\"");
}
static void named(tarn_buf *b, const char *key, const char *s) {
  tarn_buf_fmt(b, "\"%s\":", key);
  quoted(b, s);
}
static void tokens(tarn_buf *b, const tarn_hw *hw, const sim_instruction *x, const char *key,
                   const tarn_hw_flag *flag, uint32_t n) {
  bool any = false;
  for (uint32_t k = 0; k < n; k++) {
    if (!sim_value(x, flag[k].field)) continue;
    tarn_buf_fmt(b, any ? "," : ",\"%s\":[", key);
    quoted(b, hw->token[flag[k].token].name);
    any = true;
  }
  if (any) tarn_buf_str(b, "]");
}
static void track(tarn_buf *b, uint32_t id, const char *name) {
  tarn_buf_fmt(b, "{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{", id);
  named(b, "name", name);
  tarn_buf_str(b, "}},\n");
}
static void event(tarn_buf *b, const tarn_sim_program *p, const sim_instruction *x, uint32_t i) {
  const tarn_sim_event *e = &p->trace->event[i];
  tarn_buf_fmt(b, "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":", x->is->queue + 1);
  tarn_buf_double(b, e->start), tarn_buf_str(b, ",\"dur\":");
  tarn_buf_double(b, e->end - e->start), tarn_buf_str(b, ",");
  named(b, "name", x->is->name);
  tarn_buf_fmt(b, ",\"args\":{\"instruction\":%u", i);
  uint32_t k = tarn_sim_kernel_of(p, i);
  if (k != TARN_NONE) tarn_buf_str(b, ","), named(b, "kernel", p->kernel[k].name);
  tokens(b, p->hw, x, "pop", x->is->pop, x->is->npop);
  tokens(b, p->hw, x, "push", x->is->push, x->is->npush);
  if (e->waited > 0) {
    tarn_buf_str(b, ","), named(b, "waited_for", p->hw->queue[e->by].name);
    tarn_buf_str(b, ",\"waited\":"), tarn_buf_double(b, e->waited);
  }
  for (uint32_t f = 0; f < x->format->nfield; f++)
    if (!sim_is_flag(x->is, f) && sim_value(x, f)) {
      tarn_buf_str(b, ","), quoted(b, x->format->field[f].name);
      tarn_buf_fmt(b, ":%lld", (long long)sim_value(x, f));
    }
  tarn_buf_str(b, "}}");
}
/* Kernels overlap: as pairs of a beginning and an end. */
static void kernels(tarn_buf *b, const tarn_sim_program *p) {
  for (uint32_t k = 0; k < p->nkernel; k++) {
    double time[2];
    tarn_sim_kernel_time(p, k, &time[0], &time[1]);
    for (uint32_t e = 0; e < 2; e++) {
      tarn_buf_fmt(
          b, "{\"ph\":\"%s\",\"cat\":\"kernel\",\"id\":%u,\"pid\":1,\"ts\":", e ? "e" : "b", k);
      tarn_buf_double(b, time[e]), tarn_buf_str(b, ",");
      named(b, "name", p->kernel[k].name), tarn_buf_str(b, "},\n");
    }
  }
}
void tarn_sim_chrome(tarn_lang *L, const tarn_sim_program *p, tarn_buf *b) {
  const sim_instruction *x = sim_decode(tarn_lang_ctx(L), p, 0, p->count);
  tarn_buf_str(b, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  for (uint32_t q = 0; q < p->hw->nqueue; q++) track(b, q + 1, p->hw->queue[q].name);
  kernels(b, p);
  for (uint32_t i = 0; i < p->count; i++) {
    event(b, p, &x[i], i);
    tarn_buf_str(b, i + 1 < p->count ? ",\n" : "\n]}\n");
  }
}
