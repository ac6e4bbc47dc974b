/* Costs of a description fitted to measured cycles by least squares.
 *
 * A program's simulated cycles are piecewise linear in the costs, so that Gauss-Newton steps with
 * differences of one cycle settle in a few. A term is one number that is added to the cost of one
 * part or of all parts of a kind, or that scales them. Terms are taken one after another, each
 * time the one with which programs that were left out would be predicted best (PRESS: D. M. Allen,
 * Technometrics 16, 1974), and none when that does not get clearly better: few terms that hold for
 * other programs too. Errors are relative to what was measured. */
#include "sim/internal.h"
#include <math.h>
#include <string.h>

enum { TERMS = TARN_SIM_TERMS, PARTS = 64, STEPS = 12 };
static const double least_gain = 0.8; /* of the error of programs left out, for one more term */

typedef struct candidate {
  const char *name;
  bool scales;
  double least; /* change */
  uint32_t n;
  struct {
    double *at, was;
  } part[PARTS];
} candidate;
typedef struct fitting {
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_hw *was;
  tarn_hw *hw;
  tarn_hw_intrinsic *intrin;
  tarn_hw_transfer *transfer;
  tarn_hw_memory *mem;
  uint32_t n; /* programs */
  const tarn_sim_measured *m;
  TARN_VEC(candidate) all;
} fitting;
/* Terms that are taken, their changes, and what follows from them. */
typedef struct state {
  uint32_t n, term[TERMS];
  double change[TERMS];
  double *cycles, *slope; /* of each program; [program × TERMS + term], relative to the measured */
  double square, press;   /* sums of squared relative errors; of programs left out */
} state;

/* ---------------------------------------------------------------- terms */
static void add_part(candidate *c, double *at) {
  if (c->n == PARTS) return;
  c->least = tarn_fmax(c->least, c->scales ? -0.9 : -*at);
  c->part[c->n].at = at, c->part[c->n++].was = *at;
}
static candidate none(const char *name, bool scales) {
  return (candidate){.name = name, .scales = scales, .least = -INFINITY};
}
static void keep(fitting *f, const candidate *c) {
  if (c->n) tarn_push(f->cx, &f->all, *c);
}
static void keep_one(fitting *f, const char *name, const char *what, bool scales, double *at) {
  candidate c = none(tarn_format(f->cx, "%s of %s", what, name), scales);
  add_part(&c, at);
  keep(f, &c);
}
static void of_runs(fitting *f) {
  candidate all = none("startup of every intrinsic", false);
  for (uint32_t i = 0; i < f->hw->nintrin; i++) {
    bool runs = false;
    for (uint32_t k = 0; k < f->hw->ninstruction; k++)
      runs |= f->hw->instruction[k].does == TARN_HW_RUNS && f->hw->instruction[k].intrinsic == i;
    if (!runs) continue;
    add_part(&all, &f->intrin[i].startup);
    keep_one(f, f->intrin[i].name, "startup", false, &f->intrin[i].startup);
  }
  keep(f, &all);
}
static void of_moves(fitting *f) {
  candidate startup = none("startup of every transfer", false);
  candidate row = none("row of every transfer", false);
  candidate entry = none("entry of every transfer", true);
  for (uint32_t i = 0; i < f->hw->ntransfer; i++) {
    tarn_hw_transfer *t = &f->transfer[i];
    add_part(&startup, &t->startup), add_part(&row, &t->row), add_part(&entry, &t->entry);
    keep_one(f, t->name, "startup", false, &t->startup);
    keep_one(f, t->name, "row", false, &t->row);
    keep_one(f, t->name, "entry", true, &t->entry);
  }
  keep(f, &startup), keep(f, &row), keep(f, &entry);
  keep_one(f, f->mem[f->hw->nmem - 1].name, "latency", false, &f->mem[f->hw->nmem - 1].latency);
}
static double rounded(double v) { return round(v * 100) / 100; }
static void apply(const candidate *c, double change) {
  for (uint32_t i = 0; i < c->n; i++) {
    double was = c->part[i].was;
    *c->part[i].at = c->scales ? was * (1 + change) : tarn_fmax(0, was + change);
  }
}

/* ---------------------------------------------------------------- one fit */
static double simulate_one(fitting *f, uint32_t i) {
  tarn_sim_program *p = f->m[i].program;
  p->timed = true, p->hw = f->hw;
  return tarn_sim_run(f->L, p, -1).cycles;
}
/* Cycles of each program, which has run before and so finds what it needs. */
static void simulate(fitting *f, double *cycles) {
  tarn_mark scratch = tarn_arena_mark(f->cx);
  for (uint32_t i = 0; i < f->n; i++) {
    cycles[i] = simulate_one(f, i);
    tarn_release(f->cx, scratch);
  }
}
static double square_of(const fitting *f, const double *cycles) {
  double sum = 0;
  for (uint32_t i = 0; i < f->n; i++) {
    double e = cycles[i] / f->m[i].cycles - 1;
    sum += e * e;
  }
  return sum;
}
static double step_of(const candidate *c) { return c->scales ? 0.02 : 1; }
/* What one more of a term adds to each program, relative to what was measured. */
static void slope_of(fitting *f, const state *s, uint32_t term, double change, double *out,
                     uint32_t stride) {
  const candidate *c = &f->all.p[term];
  double *cycles = TARN_ARRAY(f->cx, double, f->n);
  apply(c, change + step_of(c));
  simulate(f, cycles);
  apply(c, change);
  for (uint32_t i = 0; i < f->n; i++)
    out[i * stride] = (cycles[i] - s->cycles[i]) / step_of(c) / f->m[i].cycles;
}
/* The inverse of the n × n matrix a, symmetric; false: it has none. */
static bool inverse(uint32_t n, double a[TERMS][TERMS], double out[TERMS][TERMS]) {
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++) out[i][k] = i == k;
  for (uint32_t i = 0; i < n; i++) {
    double p = a[i][i];
    if (!(p > 1e-18)) return false;
    for (uint32_t k = 0; k < n; k++) a[i][k] /= p, out[i][k] /= p;
    for (uint32_t j = 0; j < n; j++) {
      double by = j == i ? 0 : a[j][i];
      for (uint32_t k = 0; k < n; k++) a[j][k] -= by * a[i][k], out[j][k] -= by * out[i][k];
    }
  }
  return true;
}
/* (JᵀJ)⁻¹ of the slopes. */
static bool normal(const fitting *f, const state *s, double out[TERMS][TERMS]) {
  double a[TERMS][TERMS] = {{0}};
  for (uint32_t i = 0; i < f->n; i++)
    for (uint32_t j = 0; j < s->n; j++)
      for (uint32_t k = 0; k < s->n; k++)
        a[j][k] += s->slope[i * TERMS + j] * s->slope[i * TERMS + k];
  return inverse(s->n, a, out);
}
static void move_to(fitting *f, state *s, const double *change) {
  for (uint32_t j = 0; j < s->n; j++) {
    s->change[j] = tarn_fmax(change[j], f->all.p[s->term[j]].least);
    apply(&f->all.p[s->term[j]], s->change[j]);
  }
  simulate(f, s->cycles);
  s->square = square_of(f, s->cycles);
}
static void slopes(fitting *f, state *s) {
  for (uint32_t j = 0; j < s->n; j++) slope_of(f, s, s->term[j], s->change[j], s->slope + j, TERMS);
}
/* One step, halved until it helps. False: it does not. */
static bool improve(fitting *f, state *s) {
  double a[TERMS][TERMS], by[TERMS] = {0}, old[TERMS], next[TERMS], square = s->square;
  if (!normal(f, s, a)) return false;
  for (uint32_t j = 0; j < s->n; j++)
    for (uint32_t k = 0; k < s->n; k++)
      for (uint32_t i = 0; i < f->n; i++)
        by[j] += a[j][k] * s->slope[i * TERMS + k] * (1 - s->cycles[i] / f->m[i].cycles);
  memcpy(old, s->change, sizeof old);
  for (double part = 1; part > 0.05; part /= 2) {
    for (uint32_t j = 0; j < s->n; j++) next[j] = old[j] + part * by[j];
    move_to(f, s, next);
    if (s->square < square * (1 - 1e-4)) return true;
  }
  move_to(f, s, old);
  return false;
}
/* Each program's error had it been left out: e / (1 - leverage). */
static double press_of(const fitting *f, const state *s) {
  double a[TERMS][TERMS], sum = 0;
  if (!normal(f, s, a)) return INFINITY;
  for (uint32_t i = 0; i < f->n; i++) {
    double lever = 0, e = s->cycles[i] / f->m[i].cycles - 1;
    for (uint32_t j = 0; j < s->n; j++)
      for (uint32_t k = 0; k < s->n; k++)
        lever += s->slope[i * TERMS + j] * a[j][k] * s->slope[i * TERMS + k];
    e /= tarn_fmax(1 - lever, 1e-6);
    sum += e * e;
  }
  return sum;
}
static void fit(fitting *f, state *s) {
  bool more = true;
  for (uint32_t i = 0; i < STEPS && more; i++) slopes(f, s), more = improve(f, s);
  for (uint32_t j = 0; j < s->n; j++) s->change[j] = rounded(s->change[j]);
  move_to(f, s, s->change);
  slopes(f, s);
  s->press = press_of(f, s);
}

/* ---------------------------------------------------------------- which terms */
static state with(fitting *f, const state *s, uint32_t term) {
  state out = *s;
  out.cycles = tarn_copy(f->cx, s->cycles, f->n * sizeof *s->cycles);
  out.slope = TARN_ARRAY(f->cx, double, f->n *TERMS);
  if (s->n) memcpy(out.slope, s->slope, f->n * TERMS * sizeof *s->slope);
  out.term[out.n] = term, out.change[out.n++] = 0;
  return out;
}
/* What one linear step with this term too would leave, of programs left out. */
static double promise(fitting *f, const state *s, uint32_t term) {
  state t = with(f, s, term);
  double a[TERMS][TERMS];
  slope_of(f, &t, term, 0, t.slope + s->n, TERMS);
  if (!normal(f, &t, a)) return INFINITY;
  double by[TERMS] = {0};
  for (uint32_t j = 0; j < t.n; j++)
    for (uint32_t k = 0; k < t.n; k++)
      for (uint32_t i = 0; i < f->n; i++)
        by[j] += a[j][k] * t.slope[i * TERMS + k] * (1 - t.cycles[i] / f->m[i].cycles);
  if (by[t.n - 1] < f->all.p[term].least) return INFINITY;
  for (uint32_t i = 0; i < f->n; i++)
    for (uint32_t j = 0; j < t.n; j++)
      t.cycles[i] += by[j] * t.slope[i * TERMS + j] * f->m[i].cycles;
  return press_of(f, &t);
}
static uint32_t most_promising(fitting *f, const state *s) {
  uint32_t best = TARN_NONE;
  double least = INFINITY;
  for (uint32_t i = 0; i < f->all.n; i++) {
    double e = promise(f, s, i);
    if (e < least) least = e, best = i;
  }
  return best;
}
static state select_terms(fitting *f) {
  state s = {.cycles = TARN_ARRAY(f->cx, double, f->n)};
  simulate(f, s.cycles);
  s.square = s.press = square_of(f, s.cycles);
  while (s.n < TERMS && 2 * s.n + 2 <= f->n) {
    uint32_t term = most_promising(f, &s);
    if (term == TARN_NONE) break;
    state t = with(f, &s, term);
    fit(f, &t);
    if (!(sqrt(t.press) < least_gain * sqrt(s.press))) {
      apply(&f->all.p[term], 0);
      move_to(f, &s, s.change);
      break;
    }
    s = t;
  }
  return s;
}

/* ---------------------------------------------------------------- what came out */
static void put(tarn_buf *b, const char *form, double was, double now) {
  if (was != now) tarn_buf_fmt(b, " (%s %.6g)", form, now);
}
static void put_part(tarn_buf *b, const char *head, const char *name, const char *forms) {
  if (*forms) tarn_buf_fmt(b, "(%s %s%s)\n", head, name, forms);
}
/* The parts that have other costs now, as forms of a description. */
static const char *forms_of(const fitting *f) {
  tarn_buf b = {.cx = f->cx};
  tarn_buf_str(&b, "");
  for (uint32_t i = 0; i < f->hw->nmem; i++) {
    tarn_buf part = {.cx = f->cx};
    tarn_buf_str(&part, ""), put(&part, "latency", f->was->mem[i].latency, f->mem[i].latency);
    put_part(&b, "memory", f->mem[i].name, part.p);
  }
  for (uint32_t i = 0; i < f->hw->nintrin; i++) {
    tarn_buf part = {.cx = f->cx};
    tarn_buf_str(&part, "");
    put(&part, "startup", f->was->intrin[i].startup, f->intrin[i].startup);
    put_part(&b, "intrinsic", f->intrin[i].name, part.p);
  }
  for (uint32_t i = 0; i < f->hw->ntransfer; i++) {
    const tarn_hw_transfer *was = &f->was->transfer[i], *now = &f->transfer[i];
    tarn_buf part = {.cx = f->cx};
    tarn_buf_str(&part, ""), put(&part, "startup", was->startup, now->startup);
    put(&part, "row", was->row, now->row), put(&part, "entry", was->entry, now->entry);
    put_part(&b, "transfer", now->name, part.p);
  }
  return b.p;
}
tarn_sim_fitted tarn_sim_fit(tarn_lang *L, const tarn_hw *hw, const tarn_sim_measured *m,
                             uint32_t n) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  fitting f = {.L = L, .cx = cx, .was = hw, .hw = tarn_copy(cx, hw, sizeof *hw), .n = n, .m = m};
  f.hw->intrin = f.intrin = tarn_copy(cx, hw->intrin, hw->nintrin * sizeof *f.intrin);
  f.hw->transfer = f.transfer = tarn_copy(cx, hw->transfer, hw->ntransfer * sizeof *f.transfer);
  f.hw->mem = f.mem = tarn_copy(cx, hw->mem, hw->nmem * sizeof *f.mem);
  tarn_sim_fitted out = {.was = TARN_ARRAY(cx, double, n)};
  of_runs(&f), of_moves(&f);
  for (uint32_t i = 0; i < n; i++) out.was[i] = simulate_one(&f, i);
  state s = select_terms(&f);
  out.cycles = s.cycles, out.nterm = s.n, out.forms = forms_of(&f);
  for (uint32_t j = 0; j < s.n; j++) {
    const candidate *c = &f.all.p[s.term[j]];
    out.term[j] = (tarn_sim_term){c->name, c->scales, s.change[j]};
  }
  out.left_out = sqrt(s.press / n);
  return out;
}
