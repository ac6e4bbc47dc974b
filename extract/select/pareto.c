/* What is made of custom.h: the least combined cost, and Pareto fronts. */
#include "extract/select/custom.h"
#include <string.h>

/* ---- one combined cost ---- */
static double combined(const sel_custom *s, const double *agg) {
  double x = s->c->combine ? s->c->combine(s->c->user, agg) : agg[0];
  if (isnan(x))
    tarn_raise(s->r->cx, TARN_BAD_INPUT, "selection: the combined cost is not a number");
  return x;
}

static void take_combined(sel_custom *s, const uint32_t *choice, const double *agg) {
  sel_run *r = s->r;
  double x = combined(s, agg);
  if (!(x < r->best_cost)) return;
  if (!isfinite(r->first)) r->first = sel_now(r) - r->t0;
  r->best_cost = x;
  memcpy(r->best, choice, r->g.n_classes * sizeof *choice);
  if (r->o.progress && !r->o.progress(r->o.user, sel_now(r) - r->t0, x, r->bound))
    r->stop = "asked";
}

static bool no_better(sel_custom *s, const double *low) {
  return combined(s, low) >= s->r->best_cost;
}

/* The least of what the cases prove. */
static void lower(sel_custom *s, const double *agg) {
  double x = combined(s, agg), *least = s->user;
  if (x < *least) *least = x;
}

/* Each value for itself at its least: nothing can be below that. */
static double apart_bound(sel_custom *s, bool exact) {
  double agg[CUSTOM_MOST] = {0}, *cost = SEL_NEW(s->r->mem, double, s->r->g.n_nodes);
  for (uint32_t j = 0; j < s->n_sum && !s->r->stop; j++) {
    for (uint32_t v = 0; v < s->r->g.n_nodes; v++) {
      const double *x = s->val + (size_t)v * s->k;
      cost[v] = x[0] < INFINITY ? x[s->sum[j]] : INFINITY;
    }
    const uint32_t *choice = sel_custom_solve(s, cost, exact, &agg[s->sum[j]]);
    if (choice) sel_custom_tell(s, choice);
  }
  return combined(s, agg);
}

void sel_run_custom(sel_run *r, tarn_sel_result *out) {
  double least = INFINITY;
  bool exact = r->exact;
  sel_custom *s = SEL_NEW(r->mem, sel_custom, 1);
  *s = (sel_custom){.found = take_combined, .pointless = no_better, .user = &least};
  sel_custom_open(s, r);
  r->best_cost = INFINITY; /* of the offered start, in other money */
  if (r->o.start) sel_custom_tell(s, r->o.start);
  if (s->n_sum <= 1 && sel_custom_cases(s, exact, lower)) {
    r->bound = exact ? fmin(least, r->best_cost) : 0;
  } else {
    double low = apart_bound(s, exact);
    sel_custom_weights(s, exact, 12);
    r->bound = fmin(low, r->best_cost);
    if (exact && !r->stop && sel_custom_enumerate(s)) r->bound = r->best_cost;
  }
  out->cost = r->best_cost;
}

/* ---- Pareto fronts ---- */
typedef struct point {
  double agg[CUSTOM_MOST];
  uint32_t *choice;
} point;
typedef struct front_args {
  tarn_sel_graph *g;
  const tarn_sel_options *o;
  tarn_sel_front out;
  sel_pool mem, brief;
  sel_run r;
  struct {
    point *p;
    uint32_t n, cap;
  } points;
  bool proven;
} front_args;

static bool at_most(const double *a, const double *b, uint32_t k) {
  for (uint32_t i = 0; i < k; i++)
    if (a[i] > b[i]) return false;
  return true;
}

static void take_point(sel_custom *s, const uint32_t *choice, const double *agg) {
  front_args *a = s->user;
  uint32_t n = 0;
  for (uint32_t i = 0; i < a->points.n; i++)
    if (at_most(a->points.p[i].agg, agg, s->k)) return;
  for (uint32_t i = 0; i < a->points.n; i++) {
    if (at_most(agg, a->points.p[i].agg, s->k)) sel_free(&a->mem, a->points.p[i].choice);
    else a->points.p[n++] = a->points.p[i];
  }
  a->points.n = n;
  point p = {.choice = SEL_NEW(&a->mem, uint32_t, a->r.g.n_classes)};
  memcpy(p.agg, agg, s->k * sizeof *agg);
  memcpy(p.choice, choice, a->r.g.n_classes * sizeof *choice);
  SEL_PUSH(&a->mem, &a->points, p);
}

static bool dominated(sel_custom *s, const double *low) {
  const front_args *a = s->user;
  for (uint32_t i = 0; i < a->points.n; i++)
    if (at_most(a->points.p[i].agg, low, s->k)) return true;
  return false;
}

/* A case proves its part of the front when its bound is met. */
static void check_case(sel_custom *s, const double *agg) {
  front_args *a = s->user;
  double room[CUSTOM_MOST];
  for (uint32_t i = 0; i < s->k; i++) room[i] = agg[i] + 1e-9 * fabs(agg[i]);
  if (!dominated(s, room)) a->proven = false;
}

static void sort_points(front_args *a, uint32_t k) {
  for (uint32_t i = 1; i < a->points.n; i++) {
    point p = a->points.p[i];
    uint32_t j = i;
    for (; j; j--) {
      const double *q = a->points.p[j - 1].agg;
      uint32_t d = 0;
      while (d + 1 < k && q[d] == p.agg[d]) d++;
      if (q[d] <= p.agg[d]) break;
      a->points.p[j] = a->points.p[j - 1];
    }
    a->points.p[j] = p;
  }
}

static void copy_front(front_args *a, uint32_t k) {
  tarn_sel_front *f = &a->out;
  sel_run *r = &a->r;
  uint32_t nc = r->g.n_classes, *order = SEL_NEW(&a->mem, uint32_t, nc), n;
  f->cx = r->cx, f->k = k, f->n_classes = nc, f->n = a->points.n;
  f->value = sel_grow(r->cx, NULL, 0, (size_t)f->n * k, sizeof(double));
  f->choice = sel_grow(r->cx, NULL, 0, (size_t)f->n * nc + 1, sizeof(uint32_t));
  memset(f->choice, 0xff, ((size_t)f->n * nc + 1) * sizeof(uint32_t));
  for (uint32_t i = 0; i < f->n; i++) {
    const point *p = &a->points.p[i];
    memcpy(f->value + (size_t)i * k, p->agg, k * sizeof(double));
    sel_price(&a->mem, &r->g, r->g.cost, p->choice, NULL, NULL, order, &n);
    for (uint32_t j = 0; j < n; j++) f->choice[(size_t)i * nc + order[j]] = p->choice[order[j]];
    tarn_status st = tarn_sel_verify(a->g, p->choice, NULL);
    if (st) tarn_raise(r->cx, TARN_INTERNAL, "pareto: not a selection: %s", tarn_message(r->cx));
  }
}

static void find_front(tarn_ctx *cx, void *arg) {
  front_args *a = arg;
  sel_run *r = &a->r;
  sel_pool_open(&a->mem, cx);
  sel_pool_open(&a->brief, cx);
  *r = (sel_run){.cx = cx, .mem = &a->mem, .brief = &a->brief, .graph = a->g, .first = INFINITY};
  r->o = *a->o;
  r->t0 = sel_now(r);
  r->best_cost = INFINITY, r->bound = -INFINITY;
  sel_graph_view(a->g, &r->g);
  r->cost = r->g.cost;
  if (!r->g.n_roots) tarn_raise(cx, TARN_BAD_INPUT, "pareto: no roots");
  sel_custom *s = SEL_NEW(&a->mem, sel_custom, 1);
  *s = (sel_custom){.found = take_point, .pointless = dominated, .user = a};
  sel_custom_open(s, r);
  a->proven = true;
  if (r->o.start) sel_custom_tell(s, r->o.start);
  if (s->n_sum > 1 || !sel_custom_cases(s, true, check_case)) {
    sel_custom_weights(s, true, 12);
    a->proven = !r->stop && sel_custom_enumerate(s);
  }
  if (!a->points.n) tarn_raise(cx, TARN_NO_RESULT, "pareto: no finite selection exists");
  sort_points(a, s->k);
  copy_front(a, s->k);
  a->out.complete = a->proven;
  a->out.seconds = sel_now(r) - r->t0;
}

tarn_status tarn_sel_pareto(tarn_sel_graph *g, const tarn_sel_options *o, tarn_sel_front *out) {
  const tarn_sel_cost *c = o ? o->cost : NULL;
  if (!c || c->term || c->combine || c->k < 2 || c->k > CUSTOM_MOST || !c->values) {
    tarn_set_message(g->cx, "pareto: a cost of 2 to 8 values without combine is needed");
    return TARN_USAGE;
  }
  front_args a = {.g = g, .o = o};
  tarn_status st = tarn_protect(g->cx, find_front, &a);
  if (st) tarn_sel_front_free(&a.out);
  else *out = a.out;
  return st;
}

void tarn_sel_front_free(tarn_sel_front *f) {
  if (!f) return;
  if (f->value) sel_drop(f->cx, f->value, (size_t)f->n * f->k, sizeof(double));
  if (f->choice) sel_drop(f->cx, f->choice, (size_t)f->n * f->n_classes + 1, sizeof(uint32_t));
  f->value = NULL, f->choice = NULL;
}
