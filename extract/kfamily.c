/* One program at several sizes: the kernels that the first extraction of a family chose, found
 * again in the kernel graphs of the others, which differ in numbers alone.
 *
 * What was chosen is a graph: members, which are computed from others. From the outputs on, a class
 * of another extraction is matched with a member by a candidate of the same form whose operands
 * match those of the member, no two classes with one. Its numbers have to be possible at that size:
 * they differ by a multiple of what the sizes do, as the values of a polynomial with whole
 * coefficients do, and by no larger factor than the square of the sizes, or little. Of several such
 * candidates the likeliest is tried first. Schedules follow from polynomials through all numbers.
 */
#include "extract/kgraph.h"
#include <math.h>
#include <string.h>

typedef struct kmember { /* what computes a class, behind what it is computed from */
  const kcand *c;        /* of the first extraction, */
  uint32_t *child;       /* with members as children; constants: TARN_NONE */
  uint32_t form;         /* of a nest; else TARN_NONE */
  const char *label;
  const tarn_ksig *sig;
  tarn_numbers number[TARN_FAMILY_SAMPLES];
  const tarn_schedule *sched;
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
  TARN_VEC(uint32_t) nest, root; /* members that are nests, and those of the outputs */
  TARN_VEC(const kway *) way;    /* in which members came from their nodes, each once */
  tarn_solver *solver;           /* of the first extraction */
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
/* It has no price: of what may be a member, it is looked at what it is computed from. */
bool kg_family_price(kgraph *k, const tarn_ksig *sig, kcand *c) {
  tarn_family *f = k->o->family;
  read_form(f, sig);
  uint32_t form = tarn_intern_find(f->form, f->key.p, f->key.n);
  c->price = 0;
  for (uint32_t i = 0; i < f->member.n && form != TARN_NONE; i++) {
    const kmember *m = &f->member.p[i];
    if (m->form == form && distance(f, m, k->o->at) != TARN_NONE) return true;
  }
  return false;
}
uint32_t kg_family_ways(const kgraph *k, const kway *const **way) {
  *way = k->o->family->way.p;
  return k->o->family->way.n;
}

/* ---- what was chosen ---- */
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
static void read_cand(tarn_family *f, kgraph *k, const kcand *c, tarn_ksig *sig) {
  kg_signature(k, c, sig);
  read_form(f, sig);
}
static uint32_t add_member(tarn_family *f, kgraph *k, uint32_t ag, const uint32_t *choice,
                           uint32_t *known);
static uint32_t *add_children(tarn_family *f, kgraph *k, const kcand *c, const uint32_t *choice,
                              uint32_t *known) {
  uint32_t *child = TARN_ARRAY(f->cx, uint32_t, c->nchild + 1);
  for (uint32_t j = 0; j < c->nchild; j++)
    child[j] = c->child[j] == TARN_NONE ? TARN_NONE : add_member(f, k, c->child[j], choice, known);
  return child;
}
/* In the order in which kg_program() emits kernels. */
static uint32_t add_member(tarn_family *f, kgraph *k, uint32_t ag, const uint32_t *choice,
                           uint32_t *known) {
  tarn_ksig sig;
  if (known[ag]) return known[ag] - 1;
  const kcand *c = &k->cand.p[choice[ag]];
  kmember m = {.c = c, .form = TARN_NONE, .label = k->label[ag] ? k->label[ag] : ""};
  m.child = add_children(f, k, c, choice, known);
  if (c->kind == KC_NEST) {
    read_cand(f, k, c, &sig);
    m.form = tarn_intern_add(f->form, f->key.p, f->key.n);
    m.number[0] = numbers_of(f);
    m.sig = tarn_solver_kept(k->now.solver, &sig);
    add_way(f, c->way);
    tarn_push(f->cx, &f->nest, f->member.n);
  }
  tarn_push(f->cx, &f->member, m);
  return (known[ag] = f->member.n) - 1;
}
void kg_family_first(kgraph *k, const uint32_t *choice) {
  tarn_family *f = k->o->family;
  uint32_t *known = TARN_ARRAY(k->cx, uint32_t, k->nag);
  for (uint32_t i = 0; i < k->in->nroot; i++)
    tarn_push(f->cx, &f->root, add_member(f, k, k->root_class[i], choice, known));
  f->solver = k->now.solver;
  f->at[f->n++] = k->o->at;
}

/* ---- found again ---- */
enum { TRIES = 1 << 18 };
typedef struct matching {
  kgraph *k;
  tarn_family *f;
  uint32_t *choice, *member; /* of each class: the candidate; 1 + the member */
  uint32_t *of;              /* of each member: 1 + the class */
  uint32_t *first, *next;    /* candidates of a class, in a list of 1 + their numbers */
  TARN_VEC(uint32_t) trail;  /* classes in the order in which they were matched */
  uint32_t tries, missing;   /* missing: the first member without a candidate */
} matching;

static bool same_input(tarn_lang *L, const kcand *a, const kcand *b) {
  const tarn_payload *x = tarn_payload_get(L, a->payload);
  const tarn_payload *y = tarn_payload_get(L, b->payload);
  return a->kind != KC_INPUT || !strcmp(x->name, y->name);
}
static bool same_kind(tarn_lang *L, const kcand *a, const kcand *b) {
  bool same = a->kind == b->kind && a->nchild == b->nchild && a->nout == b->nout &&
              a->op == b->op && a->nth == b->nth && a->copy == b->copy && a->place == b->place &&
              a->machine == b->machine;
  for (uint32_t j = 0; j < a->nchild && same; j++)
    same = (a->child[j] == TARN_NONE) == (b->child[j] == TARN_NONE);
  return same && same_input(L, a, b);
}
/* TARN_NONE: the candidate is not the member. */
static uint32_t unlike(matching *x, const kmember *m, const kcand *c) {
  tarn_ksig sig;
  if (!same_kind(x->f->L, m->c, c)) return TARN_NONE;
  if (c->kind != KC_NEST) return 0;
  read_cand(x->f, x->k, c, &sig);
  if (tarn_intern_find(x->f->form, x->f->key.p, x->f->key.n) != m->form) return TARN_NONE;
  return distance(x->f, m, x->k->o->at);
}
typedef struct likely {
  uint32_t cand, distance;
} likely;
static void undo(matching *x, uint32_t to) {
  while (x->trail.n > to) {
    uint32_t ag = x->trail.p[--x->trail.n];
    x->of[x->member[ag] - 1] = 0;
    x->member[ag] = 0;
    x->choice[ag] = TARN_SEL_NONE;
  }
}
static bool match(matching *x, uint32_t ag, uint32_t number);
static bool match_by(matching *x, uint32_t ag, uint32_t number, uint32_t cand) {
  const kcand *c = &x->k->cand.p[cand];
  uint32_t before = x->trail.n;
  bool is = x->tries++ < TRIES;
  x->choice[ag] = cand;
  x->member[ag] = number + 1;
  x->of[number] = ag + 1;
  tarn_push(x->k->cx, &x->trail, ag);
  for (uint32_t j = 0; j < c->nchild && is; j++)
    is = c->child[j] == TARN_NONE || match(x, c->child[j], x->f->member.p[number].child[j]);
  if (!is) undo(x, before);
  return is;
}
static bool match(matching *x, uint32_t ag, uint32_t number) {
  TARN_VEC(likely) way = {0};
  if (x->member[ag] || x->of[number]) return x->member[ag] == number + 1;
  for (uint32_t i = x->first[ag]; i; i = x->next[i - 1]) {
    likely w = {i - 1, unlike(x, &x->f->member.p[number], &x->k->cand.p[i - 1])};
    if (w.distance == TARN_NONE) continue;
    tarn_push(x->k->cx, &way, w);
    for (uint32_t j = way.n; --j && way.p[j - 1].distance > w.distance; way.p[j - 1] = w)
      way.p[j] = way.p[j - 1];
  }
  if (!way.n && x->missing == TARN_NONE) x->missing = number;
  for (uint32_t i = 0; i < way.n; i++)
    if (match_by(x, ag, number, way.p[i].cand)) return true;
  return false;
}
static const char *label(const tarn_family *f, const int64_t *at) {
  tarn_buf b = {.cx = f->cx};
  for (uint32_t k = 0; k < f->of.sizes; k++)
    tarn_buf_fmt(&b, "%s%lld", k ? "," : "", (long long)at[k]);
  return b.p;
}
_Noreturn static void not_there(const matching *x) {
  const tarn_family *f = x->f;
  const char *at = label(f, x->k->o->at);
  if (x->missing == TARN_NONE)
    tarn_raise(f->cx, TARN_NO_RESULT, "there are other kernels at %s, but at %s", at,
               label(f, f->at[0]));
  tarn_raise(f->cx, TARN_NO_RESULT, "kernel %s is not there at %s, but at %s",
             f->member.p[x->missing].label, at, label(f, f->at[0]));
}
static matching matching_of(kgraph *k) {
  tarn_family *f = k->o->family;
  matching x = {.k = k, .f = f, .missing = TARN_NONE};
  x.choice = TARN_ARRAY(k->cx, uint32_t, k->nag);
  x.member = TARN_ARRAY(k->cx, uint32_t, k->nag);
  x.first = TARN_ARRAY(k->cx, uint32_t, k->nag);
  x.next = TARN_ARRAY(k->cx, uint32_t, k->cand.n + 1);
  x.of = TARN_ARRAY(k->cx, uint32_t, f->member.n + 1);
  for (uint32_t i = 0; i < k->nag; i++) x.choice[i] = TARN_SEL_NONE;
  for (uint32_t i = k->cand.n; i-- > 0;) {
    x.next[i] = x.first[k->cand_class.p[i]];
    x.first[k->cand_class.p[i]] = i + 1;
  }
  return x;
}
const uint32_t *kg_family_again(kgraph *k) {
  tarn_family *f = k->o->family;
  matching x = matching_of(k);
  for (uint32_t i = 0; i < k->in->nroot; i++)
    if (!match(&x, k->root_class[i], f->root.p[i])) not_there(&x);
  for (uint32_t i = 0; i < f->nest.n; i++) {
    kmember *m = &f->member.p[f->nest.p[i]];
    tarn_ksig sig;
    read_cand(f, k, &k->cand.p[x.choice[x.of[f->nest.p[i]] - 1]], &sig);
    m->number[f->n] = numbers_of(f);
  }
  for (uint32_t i = 0; i < x.trail.n; i++) k->r->price += k->cand.p[x.choice[x.trail.p[i]]].price;
  f->at[f->n++] = k->o->at;
  return x.choice;
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
               "kernel %s: a number in it is no polynomial of the sizes: %lld, %lld … %lld",
               m->label, (long long)x[0], (long long)x[1], (long long)x[f->n - 1]);
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
  kmember *m = &f->member.p[f->nest.p[number]];
  const int64_t *open = open_dims(f, m);
  for (uint32_t i = 0; i < number && !m->sched; i++) {
    const kmember *like = &f->member.p[f->nest.p[i]];
    bool same = like->form == m->form;
    for (uint32_t j = 0; j < f->n && same; j++)
      same = !memcmp(like->number[j].p, m->number[j].p, m->number[j].n * sizeof(int64_t));
    if (same) m->sched = like->sched;
  }
  if (m->sched) return;
  m->sched = open ? tarn_solve_open(f->solver, m->sig, open) : tarn_solve(f->solver, m->sig, NULL);
}
void tarn_family_schedule(tarn_family *f) {
  for (uint32_t i = 0; i < f->nest.n; i++) find_schedule(f, i);
}
const tarn_schedule *kg_family_schedule(const kgraph *k, uint32_t number, const tarn_ksig *sig,
                                        tarn_cost *cost) {
  const tarn_schedule *s = k->o->family->member.p[k->o->family->nest.p[number]].sched;
  tarn_solver_cost(k->now.solver, sig, s, cost);
  return s;
}
