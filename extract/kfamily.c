/* One program at several sizes: the kernels that the first extraction of a family chose are the
 * candidates of the others, which differ in numbers alone.
 *
 * A candidate is taken for a kernel of the first one if the two have the same form, and if each of
 * its numbers could be that of the other at another size: they differ by a multiple of what the
 * sizes do, as the values of a polynomial with whole coefficients do, and by no larger factor than
 * the square of the sizes, or little. It costs what that kernel does, so that the selection finds
 * the same program. Whether it has is seen from the kernels in their order, and from the
 * polynomials through all numbers. */
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
  tarn_points of;
  uint32_t nbox;
  const tarn_box *box;
  tarn_intern *form;
  tarn_buf key;
  tarn_numbers number;
  uint32_t n; /* extractions */
  const int64_t *at[TARN_FAMILY_SAMPLES];
  TARN_VEC(kmember) member;
  TARN_VEC(const kway *) way; /* in which members came from their nodes, each once */
  tarn_solver *solver;        /* of the first extraction */
};

tarn_family *tarn_family_new(tarn_lang *L, const tarn_points *of, uint32_t nbox,
                             const tarn_box *box) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_family *f = TARN_NEW(cx, tarn_family);
  *f = (tarn_family){.L = L, .cx = cx, .of = *of, .nbox = nbox, .box = box};
  f->form = tarn_intern_new(cx);
  f->key.cx = cx;
  return f;
}
static bool fits(const tarn_box *b, const int64_t *size, uint32_t n, const int64_t *dim) {
  bool is = b->n == n;
  for (uint32_t d = 0; d < n && is; d++) is = dim[d] == tarn_poly_at(&b->dim[d], size);
  return is;
}
tarn_layout kg_family_layout(const kgraph *k, tarn_dtype t, uint32_t n, const int64_t *dim) {
  const tarn_family *f = k->o->family;
  for (uint32_t i = 0; f && i < f->nbox; i++) {
    if (f->box[i].dtype != t || !fits(&f->box[i], k->o->at, n, dim)) continue;
    tarn_layout l = tarn_layout_row_major(n, f->box[i].most);
    memcpy(l.dim, dim, n * sizeof *dim);
    return l;
  }
  return tarn_layout_row_major(n, dim);
}
bool kg_replays(const kgraph *k) { return k->o->family && k->o->family->n; }
/* A generic size is a prime times what all are multiples of: a block in which that prime is divides
 * no other size. */
bool kg_may_cut(const kgraph *k, int64_t block) {
  const tarn_family *f = k->o->family;
  for (uint32_t i = 0; f && i < f->of.sizes; i++) {
    int64_t by = tarn_gcd(f->of.lo[i], f->of.step[i]);
    if (f->of.lo[i] == f->of.hi[i] || !k->o->at[i]) continue;
    int64_t own = k->o->at[i] / by;
    if (own > 1 && block % own == 0) return false;
  }
  return true;
}
int64_t kg_offset_step(const kgraph *k) { return k->o->family ? 1 : TARN_KSIG_STEP; }

/* ---- candidates ---- */
/* The form of a kernel, and its numbers. */
static void read_form(tarn_family *f, const tarn_ksig *sig) {
  f->key.n = 0;
  f->number.n = 0;
  tarn_ksig_form(f->L, sig, &f->key, &f->number);
}
#define NUMERIC 1e15 /* larger ones are bounds of what has none */
#define SLACK   1.2
#define LINEAR  256 /* times what the sizes differ by: of n - 16 rows */
/* x at these sizes, y at those? */
static bool may_be(const tarn_family *f, int64_t x, const int64_t *at, int64_t y,
                   const int64_t *then) {
  double by = SLACK;
  double far = 0;
  int64_t apart = 0;
  if (x == y) return true;
  for (uint32_t k = 0; k < f->of.sizes; k++) {
    double ratio = (double)(at[k] + 1) / (double)(then[k] + 1);
    by *= ratio > 1 ? ratio * ratio : 1 / (ratio * ratio);
    apart = tarn_gcd(apart, (at[k] - then[k]) / f->of.step[k]);
    far += fabs((double)(at[k] - then[k]));
  }
  double a = fabs((double)x), b = fabs((double)y);
  if (!apart || (x - y) % apart || a > NUMERIC || b > NUMERIC) return false;
  if (fabs((double)x - (double)y) <= LINEAR * far) return true;
  return (x < 0) == (y < 0) && a <= b * by && b <= a * by;
}
static bool is_multiple(const tarn_family *f, int64_t x, const int64_t *at, int64_t was) {
  for (uint32_t k = 0; k < f->of.sizes; k++)
    if (x * f->at[0][k] == was * at[k]) return true;
  return false;
}
/* How unlike the first it is, by its numbers; TARN_NONE: it is not that kernel. */
static uint32_t distance(const tarn_family *f, const kmember *m, const int64_t *at) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->number.n; i++) {
    int64_t x = f->number.p[i];
    int64_t was = m->number[0].p[i];
    for (uint32_t s = 0; s < f->n; s++)
      if (!may_be(f, x, at, m->number[s].p[i], f->at[s])) return TARN_NONE;
    if (x != was) n += is_multiple(f, x, at, was) ? 1 : 4;
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
static const char *label(const tarn_family *f, const int64_t *at) {
  tarn_buf b = {.cx = f->cx};
  for (uint32_t k = 0; k < f->of.sizes; k++)
    tarn_buf_fmt(&b, "%s%lld", k ? "," : "", (long long)at[k]);
  return b.p;
}
_Noreturn static void differs(tarn_family *f, const kgraph *k, const char *what) {
  tarn_raise(f->cx, TARN_NO_RESULT, "%s at %s, but at %s", what, label(f, k->o->at),
             label(f, f->at[0]));
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
/* Number i of a kernel: 0, or 1 + the least that it may be. */
static int64_t openness(const tarn_family *f, const kmember *m, uint32_t i) {
  tarn_points points = f->of;
  int64_t x[TARN_FAMILY_SAMPLES];
  tarn_poly p;
  bool same = true;
  points.n = f->n;
  points.at = f->at;
  for (uint32_t j = 0; j < f->n; j++) x[j] = m->number[j].p[i];
  for (uint32_t j = 0; j < f->n; j++) same &= x[j] == x[0];
  if (same) return 0;
  if (!tarn_poly_through(&points, x, &p))
    tarn_raise(f->cx, TARN_NO_RESULT,
               "kernel %u (%s): a number in it is no polynomial of the sizes: %lld, %lld … %lld",
               (uint32_t)(m - f->member.p), m->label, (long long)x[0], (long long)x[1],
               (long long)x[f->n - 1]);
  return tarn_poly_rises(&p, &f->of) ? 1 + tarn_max(tarn_poly_at(&p, f->of.lo), 0) : 1;
}
/* For each dim of each stage; NULL: no extent depends on the sizes. */
static const int64_t *open_dims(const tarn_family *f, const kmember *m) {
  const tarn_nest *n = tarn_nest_get(f->L, m->sig->nest);
  int64_t *open = TARN_ARRAY(f->cx, int64_t, n->nstage * TARN_MAX_DIMS);
  int64_t any = 0;
  int64_t shared[TARN_MAX_DIMS];
  uint32_t at = 0;
  for (; at < n->depth; at++) any |= shared[at] = openness(f, m, at);
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *st = &n->stage[i];
    int64_t *e = open + (size_t)i * TARN_MAX_DIMS;
    memcpy(e, shared, n->depth * sizeof *e);
    for (uint32_t d = 0; d < (uint32_t)st->nown + st->nred; d++, at++)
      any |= e[n->depth + d] = openness(f, m, at);
  }
  for (; at < m->number[0].n; at++) openness(f, m, at);
  return any ? open : NULL;
}
static void find_schedule(tarn_family *f, uint32_t number) {
  kmember *m = &f->member.p[number];
  const int64_t *open = open_dims(f, m);
  for (uint32_t i = 0; i < number && !m->sched; i++) {
    const kmember *like = &f->member.p[i];
    bool same = like->form == m->form;
    for (uint32_t j = 0; j < f->n && same; j++)
      same = !memcmp(like->number[j].p, m->number[j].p, m->number[j].n * sizeof(int64_t));
    if (same) m->sched = like->sched;
  }
  if (m->sched) return;
  m->sched = open ? tarn_solve_open(f->solver, m->sig, open) : tarn_solve(f->solver, m->sig, NULL);
}
void tarn_family_schedule(tarn_family *f) {
  for (uint32_t i = 0; i < f->member.n; i++) find_schedule(f, i);
}
const tarn_schedule *kg_family_schedule(const kgraph *k, uint32_t number, const tarn_ksig *sig,
                                        tarn_cost *cost) {
  const tarn_schedule *s = k->o->family->member.p[number].sched;
  tarn_solver_cost(k->now.solver, sig, s, cost);
  return s;
}
