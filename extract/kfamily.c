/* One program at several sizes: the kernels that the first extraction of a family chose are the
 * candidates of the others, which differ in numbers alone.
 *
 * A candidate is taken for a kernel of the first one if the two have the same form, and if each of
 * its numbers could be that of the other at another size: it differs by a multiple of what k does,
 * as the values of a polynomial with whole coefficients in k do, and has not grown by more than the
 * square of the size. It costs what that kernel does, so that the selection finds the same program.
 * Whether it has is seen from the kernels in their order, and from the polynomials through all
 * numbers. */
#include "extract/kgraph.h"
#include <math.h>
#include <string.h>

typedef struct kmember { /* a chosen kernel */
  uint32_t form;
  bool copy;
  double price;
  const char *label;
  const kway *way; /* NULL: it has no node */
  const tarn_ksig *sig;
  tarn_numbers number[TARN_FAMILY_SAMPLES];
  const tarn_schedule *sched;
  bool met; /* by a candidate of this extraction */
} kmember;
struct tarn_family {
  tarn_lang *L;
  tarn_ctx *cx;
  int64_t from, step;
  uint32_t nbox;
  const tarn_box *box;
  tarn_intern *form;
  tarn_buf key;
  tarn_numbers number;
  uint32_t n; /* extractions */
  int64_t at[TARN_FAMILY_SAMPLES];
  TARN_VEC(kmember) member;
  TARN_VEC(const kway *) way; /* in which members came from their nodes, each once */
  tarn_solver *solver;        /* of the first extraction */
};

tarn_family *tarn_family_new(tarn_lang *L, int64_t from, int64_t step, uint32_t nbox,
                             const tarn_box *box) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_family *f = TARN_NEW(cx, tarn_family);
  *f = (tarn_family){.L = L, .cx = cx, .from = from, .step = step, .nbox = nbox, .box = box};
  f->form = tarn_intern_new(cx);
  f->key.cx = cx;
  return f;
}
static bool fits(const tarn_box *b, int64_t size, uint32_t n, const int64_t *dim) {
  bool is = b->n == n;
  for (uint32_t d = 0; d < n && is; d++)
    is = dim[d] * b->dim[d].over == b->dim[d].by * size + b->dim[d].plus;
  return is;
}
tarn_layout kg_family_layout(const kgraph *k, tarn_dtype t, uint32_t n, const int64_t *dim) {
  const tarn_family *f = k->o->family;
  for (uint32_t i = 0; f && i < f->nbox; i++) {
    if (f->box[i].dtype != t || !fits(&f->box[i], f->from + f->step * k->o->at, n, dim)) continue;
    tarn_layout l = tarn_layout_row_major(n, f->box[i].most);
    memcpy(l.dim, dim, n * sizeof *dim);
    return l;
  }
  return tarn_layout_row_major(n, dim);
}
bool kg_replays(const kgraph *k) { return k->o->family && k->o->family->n; }
bool kg_may_cut(const kgraph *k, int64_t block) {
  return !k->o->family || k->o->family->step % block == 0;
}

/* ---- candidates ---- */
/* The form of a kernel, and its numbers. */
static void read_form(tarn_family *f, const tarn_ksig *sig) {
  f->key.n = 0;
  f->number.n = 0;
  tarn_ksig_form(f->L, sig, &f->key, &f->number);
}
#define NUMERIC 1e15 /* larger ones are bounds of what has none */
#define SLACK   1.2
/* x at k, y at k'. */
static bool may_be(const tarn_family *f, int64_t x, int64_t k, int64_t y, int64_t then) {
  if (x == y) return true;
  double a = fabs((double)x), b = fabs((double)y), by = (double)(f->from + f->step * k);
  if (k == then || (x < 0) != (y < 0) || a > NUMERIC || b > NUMERIC || (x - y) % (k - then))
    return false;
  by /= (double)(f->from + f->step * then);
  return k > then ? a > b && a <= b * by * by * SLACK : a < b && a * SLACK >= b * by * by;
}
/* How unlike the first it is, by its numbers; TARN_NONE: it is not that kernel. */
static uint32_t distance(const tarn_family *f, const kmember *m, int64_t at) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->number.n; i++) {
    int64_t x = f->number.p[i], was = m->number[0].p[i];
    for (uint32_t s = 0; s < f->n; s++)
      if (!may_be(f, x, at, m->number[s].p[i], f->at[s])) return TARN_NONE;
    if (x != was) n += x * (f->from + f->step * f->at[0]) == was * (f->from + f->step * at) ? 1 : 4;
  }
  return n;
}
/* A number that differs costs a little, less where it is a multiple of the size: of two ways that
 * are both possible, the one that is likelier. */
#define DIFFERENT 1e-4
bool kg_family_price(kgraph *k, const tarn_ksig *sig, kcand *c) {
  tarn_family *f = k->o->family;
  uint32_t best = TARN_NONE;
  read_form(f, sig);
  uint32_t form = tarn_intern_find(f->form, f->key.p, f->key.n);
  for (uint32_t i = 0; i < f->member.n && form != TARN_NONE; i++) {
    kmember *m = &f->member.p[i];
    if (m->form != form || m->copy != c->copy) continue;
    uint32_t d = distance(f, m, k->o->at);
    m->met |= d != TARN_NONE;
    if (d >= best) continue;
    best = d;
    c->price = m->price * (1 + DIFFERENT * d);
  }
  return best != TARN_NONE;
}
uint32_t kg_family_ways(const kgraph *k, const kway *const **way) {
  *way = k->o->family->way.p;
  return k->o->family->way.n;
}

/* ---- what was chosen ---- */
typedef struct chosen {
  kgraph *k;
  const uint32_t *choice;
  uint8_t *done;
  TARN_VEC(uint32_t) ag;
} chosen;
/* In the order in which kg_program() emits them. */
static void walk(chosen *w, uint32_t ag) {
  if (w->done[ag]) return;
  w->done[ag] = 1;
  const kcand *c = &w->k->cand.p[w->choice[ag]];
  for (uint32_t j = 0; j < c->nchild; j++)
    if (c->child[j] != TARN_NONE) walk(w, c->child[j]);
  if (c->kind == KC_NEST) tarn_push(w->k->cx, &w->ag, ag);
}
static bool same_way(const kway *x, const kway *y) {
  const kcut *a = &x->c, *b = &y->c;
  return x->cut == y->cut && x->how == y->how && !memcmp(a->block, b->block, sizeof a->block) &&
         a->behind == b->behind && a->gather == b->gather && a->hold == b->hold &&
         a->pack == b->pack && a->read == b->read && a->dim == b->dim;
}
static void add_way(tarn_family *f, const kway *way) {
  for (uint32_t i = 0; i < f->way.n && way; i++)
    if (same_way(f->way.p[i], way)) return;
  if (way) tarn_push(f->cx, &f->way, way);
}
static tarn_numbers numbers_of(tarn_family *f) {
  tarn_numbers n = f->number;
  n.p = tarn_copy(f->cx, n.p, n.n * sizeof *n.p);
  return n;
}
static void add_member(tarn_family *f, kgraph *k, uint32_t ag, const kcand *c) {
  tarn_ksig sig;
  kg_signature(k, c, &sig);
  read_form(f, &sig);
  kmember m = {
      .copy = c->copy, .price = c->price, .label = k->label[ag] ? k->label[ag] : "", .way = c->way};
  m.form = tarn_intern_add(f->form, f->key.p, f->key.n);
  m.number[0] = numbers_of(f);
  m.sig = tarn_solver_kept(k->now.solver, &sig);
  add_way(f, c->way);
  tarn_push(f->cx, &f->member, m);
}
_Noreturn static void differs(tarn_family *f, const kgraph *k, const char *what) {
  tarn_raise(f->cx, TARN_NO_RESULT, "%s at %lld, but at %lld", what,
             (long long)(f->from + f->step * k->o->at), (long long)(f->from + f->step * f->at[0]));
}
static void add_numbers(tarn_family *f, kgraph *k, uint32_t number, const kcand *c) {
  kmember *m = &f->member.p[number];
  tarn_ksig sig;
  kg_signature(k, c, &sig);
  read_form(f, &sig);
  if (tarn_intern_find(f->form, f->key.p, f->key.n) != m->form)
    differs(f, k, tarn_format(f->cx, "kernel %u (%s) is another", number, m->label));
  m->number[f->n] = numbers_of(f);
}
void kg_family_begin(kgraph *k) {
  tarn_family *f = k->o->family;
  for (uint32_t i = 0; i < f->member.n; i++) f->member.p[i].met = false;
}
void kg_family_met(kgraph *k) {
  tarn_family *f = k->o->family;
  for (uint32_t i = 0; i < f->member.n; i++)
    if (!f->member.p[i].met)
      differs(f, k, tarn_format(f->cx, "kernel %u (%s) is not there", i, f->member.p[i].label));
}
void kg_family_add(kgraph *k, const uint32_t *choice) {
  tarn_family *f = k->o->family;
  chosen w = {k, choice, TARN_ARRAY(k->cx, uint8_t, k->nag), {0}};
  for (uint32_t i = 0; i < k->in->nroot; i++) walk(&w, k->root_class[i]);
  if (f->n && w.ag.n != f->member.n) differs(f, k, "there are other kernels");
  for (uint32_t i = 0; i < w.ag.n; i++) {
    const kcand *c = &k->cand.p[choice[w.ag.p[i]]];
    if (f->n) add_numbers(f, k, i, c);
    else add_member(f, k, w.ag.p[i], c);
  }
  if (!f->n) f->solver = k->now.solver;
  f->at[f->n++] = k->o->at;
}

/* ---- schedules ---- */
typedef struct samples { /* in the order of k */
  uint32_t n, number[TARN_FAMILY_SAMPLES], at[TARN_FAMILY_SAMPLES];
} samples;
static samples sorted(const tarn_family *f) {
  samples s = {.n = f->n};
  for (uint32_t i = 0; i < f->n; i++) {
    uint32_t j = i;
    for (; j && f->at[s.number[j - 1]] > f->at[i]; j--) s.number[j] = s.number[j - 1];
    s.number[j] = i;
  }
  for (uint32_t i = 0; i < s.n; i++) s.at[i] = (uint32_t)f->at[s.number[i]];
  return s;
}
/* Number i of a kernel as a polynomial in k; raises where it is none. What divides the differences
 * of its values; 0: it does not depend on k. */
static int64_t even_steps(const tarn_family *f, const samples *s, const kmember *m, uint32_t i) {
  int64_t x[TARN_FAMILY_SAMPLES], c[3];
  for (uint32_t j = 0; j < s->n; j++) x[j] = m->number[s->number[j]].p[i];
  if (!tarn_numbers_fit(s->at, x, s->n, c))
    tarn_raise(
        f->cx, TARN_NO_RESULT,
        "kernel %u (%s): a number in it is no polynomial of the size: %lld, %lld, %lld … %lld",
        (uint32_t)(m - f->member.p), m->label, (long long)x[0], (long long)x[1], (long long)x[2],
        (long long)x[s->n - 1]);
  return tarn_gcd(c[1], c[2]);
}
/* For each dim of each stage; NULL: no extent depends on k. */
static const int64_t *even_dims(const tarn_family *f, const samples *s, const kmember *m) {
  const tarn_nest *n = tarn_nest_get(f->L, m->sig->nest);
  int64_t *even = TARN_ARRAY(f->cx, int64_t, n->nstage * TARN_MAX_DIMS), any = 0,
          shared[TARN_MAX_DIMS];
  uint32_t at = 0;
  for (; at < n->depth; at++) any |= shared[at] = even_steps(f, s, m, at);
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *st = &n->stage[i];
    int64_t *e = even + (size_t)i * TARN_MAX_DIMS;
    memcpy(e, shared, n->depth * sizeof *e);
    for (uint32_t d = 0; d < (uint32_t)st->nown + st->nred; d++, at++)
      any |= e[n->depth + d] = even_steps(f, s, m, at);
  }
  for (; at < m->number[0].n; at++) even_steps(f, s, m, at);
  return any ? even : NULL;
}
static void find_schedule(tarn_family *f, const samples *s, uint32_t number) {
  kmember *m = &f->member.p[number];
  const int64_t *even = even_dims(f, s, m);
  for (uint32_t i = 0; i < number && !m->sched; i++) {
    const kmember *like = &f->member.p[i];
    bool same = like->form == m->form;
    for (uint32_t j = 0; j < s->n && same; j++)
      same = !memcmp(like->number[j].p, m->number[j].p, m->number[j].n * sizeof(int64_t));
    if (same) m->sched = like->sched;
  }
  if (m->sched) return;
  m->sched = even ? tarn_solve_even(f->solver, m->sig, even) : tarn_solve(f->solver, m->sig, NULL);
}
void tarn_family_schedule(tarn_family *f) {
  samples s = sorted(f);
  for (uint32_t i = 0; i < f->member.n; i++) find_schedule(f, &s, i);
}
const tarn_schedule *kg_family_schedule(const kgraph *k, uint32_t number, const tarn_ksig *sig,
                                        tarn_cost *cost) {
  const tarn_schedule *s = k->o->family->member.p[number].sched;
  tarn_solver_cost(k->now.solver, sig, s, cost);
  return s;
}
