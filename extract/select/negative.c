/* Costs below 0, for greedy and exact.
 *
 * A selection is what it always is: a finite set of classes without cycles, with no more in it than
 * the roots need; each class counts once, and one of negative cost makes it cheaper. The solvers
 * need costs of at least 0, so they get a relaxation that has them. Let m(c) be the least cost in
 * class c where that is negative. Each node of c costs m(c) less; the selection pays -m(c) for
 * leaving c out, by a new root with two nodes: `skip`, which costs that, and `take`, which needs c
 * and the proof that c is needed, a class NEED(c). NEED of a root needs nothing. NEED(c) has a node
 * for each node p with c among its children, which needs p itself and NEED of p's class; acyclic
 * selections make that a path from a root. "p itself" is a class of its own, [p], which p's class
 * chooses too, so that what it costs is paid once.
 *
 * What is relaxed: a path may go through [p] although p's class has chosen another node. Then there
 * are two problems, one in which p is the only node of its class and one in which it is none, best
 * bound first. When no path does that, the relaxed cost is that of the selection. */
#include "extract/select/internal.h"
#include <math.h>
#include <string.h>

/* One problem: the one above it, and a node that its class must take, or must not. */
typedef struct branch {
  uint32_t up, node;
  bool keep;
  double bound; /* of the problem above, until it is solved */
} branch;

typedef struct negative {
  sel_run *r;
  tarn_sel_method m;
  double share; /* of what is left of the limits, for one problem */
  struct {
    branch *p;
    uint32_t n, cap;
  } all;
  sel_u32s open;
  double closed;            /* the least bound of what need not be looked at again */
  uint32_t *pfirst, *pnode; /* by class: the nodes that have it as a child */
  uint8_t *loop, *dead;     /* by node: is its own child; in no selection of this problem */
  uint8_t *has, *way;       /* by class: below the roots; above a negative one */
  double *least, base;      /* by class: m(c), or 0; their sum */
  double smallest;          /* of the costs that are not 0, in magnitude */
  sel_u32s stack;
  uint32_t *part, *need, *choice; /* by node: [p], or NONE; by class; by class */
  sel_u32s odd;                   /* see take() */
  sel_u32s origin;                /* by node of the relaxation: the node that it is, or NONE */
} negative;

bool sel_has_negative(const sel_run *r) {
  for (uint32_t v = 0; v < r->g.n_nodes; v++)
    if (r->cost[v] < 0) return true;
  return false;
}

/* No selection costs less than all that is negative. */
double sel_floor(const sel_run *r) {
  double sum = 0;
  for (uint32_t c = 0; c < r->g.n_classes; c++) {
    double least = 0;
    for (uint32_t i = r->g.class_first[c]; i < r->g.class_first[c + 1]; i++)
      least = fmin(least, r->cost[r->g.class_node[i]]);
    sum += least;
  }
  return sum;
}

/* ---- what a problem consists of ---- */
static bool alive(const negative *x, uint32_t v) {
  return !x->dead[v] && x->r->cost[v] < INFINITY && x->has[x->r->g.node_class[v]];
}

static void kill_others(negative *x, uint32_t v) {
  const tarn_sel_view *g = &x->r->g;
  uint32_t c = g->node_class[v];
  for (uint32_t i = g->class_first[c]; i < g->class_first[c + 1]; i++)
    if (g->class_node[i] != v) x->dead[g->class_node[i]] = 1;
}

static void find_dead(negative *x, uint32_t b) {
  memcpy(x->dead, x->loop, x->r->g.n_nodes);
  for (; b != NONE && x->all.p[b].up != NONE; b = x->all.p[b].up) {
    if (x->all.p[b].keep) kill_others(x, x->all.p[b].node);
    else x->dead[x->all.p[b].node] = 1;
  }
}

static void visit(negative *x, uint8_t *seen, uint32_t c) {
  if (seen[c]) return;
  seen[c] = 1;
  SEL_PUSH(x->r->mem, &x->stack, c);
}

static void go_down(negative *x) {
  const tarn_sel_view *g = &x->r->g;
  memset(x->has, 0, g->n_classes);
  for (uint32_t i = 0; i < g->n_roots; i++) visit(x, x->has, g->root[i]);
  while (x->stack.n) {
    uint32_t c = x->stack.p[--x->stack.n];
    for (uint32_t i = g->class_first[c]; i < g->class_first[c + 1]; i++) {
      uint32_t v = g->class_node[i];
      for (uint32_t k = g->kid_first[v]; alive(x, v) && k < g->kid_first[v + 1]; k++)
        visit(x, x->has, g->kid[k]);
    }
  }
}

static void find_least(negative *x) {
  const tarn_sel_view *g = &x->r->g;
  x->base = 0;
  for (uint32_t c = 0; c < g->n_classes; c++) {
    x->least[c] = 0;
    for (uint32_t i = g->class_first[c]; i < g->class_first[c + 1]; i++)
      if (alive(x, g->class_node[i])) x->least[c] = fmin(x->least[c], x->r->cost[g->class_node[i]]);
    x->base += x->least[c];
  }
}

static void go_up(negative *x) {
  const tarn_sel_view *g = &x->r->g;
  memset(x->way, 0, g->n_classes);
  for (uint32_t c = 0; c < g->n_classes; c++)
    if (x->least[c] < 0) visit(x, x->way, c);
  while (x->stack.n) {
    uint32_t c = x->stack.p[--x->stack.n];
    for (uint32_t i = x->pfirst[c]; i < x->pfirst[c + 1]; i++)
      if (alive(x, x->pnode[i])) visit(x, x->way, g->node_class[x->pnode[i]]);
  }
}

static uint32_t choices(const negative *x, uint32_t c) {
  const tarn_sel_view *g = &x->r->g;
  uint32_t n = 0;
  for (uint32_t i = g->class_first[c]; i < g->class_first[c + 1]; i++)
    n += alive(x, g->class_node[i]);
  return n;
}

/* Numbers the new classes: parts, then proofs of need; returns how many classes there are. */
static uint32_t number_classes(negative *x) {
  const tarn_sel_view *g = &x->r->g;
  uint32_t n = g->n_classes;
  for (uint32_t v = 0; v < g->n_nodes; v++) {
    bool on_way = false;
    for (uint32_t k = g->kid_first[v]; k < g->kid_first[v + 1]; k++) on_way |= x->way[g->kid[k]];
    on_way = on_way && alive(x, v) && choices(x, g->node_class[v]) > 1;
    x->part[v] = on_way ? n++ : NONE;
  }
  for (uint32_t c = 0; c < g->n_classes; c++) x->need[c] = x->way[c] ? n++ : NONE;
  for (uint32_t c = 0; c < g->n_classes; c++) n += x->least[c] < 0;
  return n;
}

/* ---- the relaxation ---- */
static tarn_status put(negative *x, tarn_sel_graph *q, uint32_t cls, double cost,
                       const uint32_t *kids, uint32_t n, uint32_t origin) {
  if (x->origin.n == x->origin.cap) return TARN_INTERNAL; /* has room for all */
  x->origin.p[x->origin.n++] = origin;
  return tarn_sel_add_node(q, cls, cost, kids, n, NULL);
}

static tarn_status put_nodes(negative *x, tarn_sel_graph *q) {
  const tarn_sel_view *g = &x->r->g;
  tarn_status st = TARN_OK;
  for (uint32_t v = 0; !st && v < g->n_nodes; v++) {
    uint32_t c = g->node_class[v], part = x->part[v];
    if (!alive(x, v)) continue;
    if (part != NONE) st = put(x, q, c, 0, &part, 1, v);
    if (!st)
      st = put(x, q, part == NONE ? c : part, x->r->cost[v] - x->least[c], g->kid + g->kid_first[v],
               g->kid_first[v + 1] - g->kid_first[v], v);
  }
  return st;
}

static tarn_status put_need(negative *x, tarn_sel_graph *q, uint32_t c, const uint8_t *is_root) {
  const tarn_sel_view *g = &x->r->g;
  if (is_root[c]) return put(x, q, x->need[c], 0, NULL, 0, NONE);
  tarn_status st = TARN_OK;
  for (uint32_t i = x->pfirst[c]; !st && i < x->pfirst[c + 1]; i++) {
    uint32_t p = x->pnode[i], up = g->node_class[p];
    if (!alive(x, p) || up == c || (i > x->pfirst[c] && x->pnode[i - 1] == p)) continue;
    uint32_t kids[2] = {x->part[p] == NONE ? up : x->part[p], x->need[up]};
    st = put(x, q, x->need[c], 0, kids, 2, NONE);
  }
  return st;
}

static tarn_status put_roots(negative *x, tarn_sel_graph *q, uint32_t bonus) {
  const tarn_sel_view *g = &x->r->g;
  tarn_status st = TARN_OK;
  for (uint32_t i = 0; !st && i < g->n_roots; i++) st = tarn_sel_add_root(q, g->root[i]);
  for (uint32_t c = 0; !st && c < g->n_classes; c++) {
    if (!(x->least[c] < 0)) continue;
    uint32_t kids[2] = {c, x->need[c]};
    st = put(x, q, bonus, -x->least[c], NULL, 0, NONE);
    if (!st) st = put(x, q, bonus, 0, kids, 2, NONE);
    if (!st) st = tarn_sel_add_root(q, bonus++);
  }
  return st;
}

static tarn_status relax(negative *x, tarn_sel_graph *q, uint32_t n, const uint8_t *is_root) {
  const tarn_sel_view *g = &x->r->g;
  uint32_t bonus = n;
  for (uint32_t c = 0; c < g->n_classes; c++) bonus -= x->least[c] < 0;
  tarn_status st = tarn_sel_add_classes(q, n, NULL);
  if (!st) st = put_nodes(x, q);
  for (uint32_t c = 0; !st && c < g->n_classes; c++)
    if (x->way[c]) st = put_need(x, q, c, is_root);
  return st ? st : put_roots(x, q, bonus);
}

/* ---- solving one ---- */
static bool going_on(void *user, double seconds, double cost, double bound) {
  sel_run *r = user;
  (void)seconds, (void)cost, (void)bound;
  if (!r->o.progress || r->o.progress(r->o.user, sel_now(r) - r->start, r->best_cost, r->bound))
    return true;
  r->stop = "asked";
  return false;
}

static tarn_status solve(negative *x, tarn_sel_graph *q, tarn_sel_result *out) {
  sel_run *r = x->r;
  tarn_sel_options o = r->o;
  o.cost = NULL, o.start = NULL, o.gap = 0;
  o.progress = going_on, o.user = r;
  if (isfinite(o.seconds)) o.seconds = fmax(x->share * sel_left(r), 0.001);
  if (o.steps > r->steps) o.steps = (uint64_t)(x->share * (double)(o.steps - r->steps)) + 1;
  return tarn_sel_run(q, x->m, &o, out);
}

/* Takes the selection, and notes the nodes through which a path goes that their classes have not
 * chosen, one for each class. */
static void take(negative *x, const tarn_sel_result *got) {
  const tarn_sel_view *g = &x->r->g;
  for (uint32_t c = 0; c < g->n_classes; c++) {
    uint32_t v = got->choice[c];
    x->choice[c] = v == NONE ? NONE : x->origin.p[v];
  }
  sel_offer(x->r, x->choice);
  x->odd.n = 0;
  memset(x->has, 0, g->n_classes);
  for (uint32_t v = 0; v < g->n_nodes; v++) {
    uint32_t c = g->node_class[v];
    if (x->part[v] == NONE || got->choice[x->part[v]] == NONE || x->choice[c] == v || x->has[c])
      continue;
    x->has[c] = 1;
    SEL_PUSH(x->r->mem, &x->odd, v);
  }
}

static void add_branch(negative *x, uint32_t up, uint32_t node, bool keep, double bound) {
  branch b = {up, node, keep, bound};
  SEL_PUSH(x->r->mem, &x->open, x->all.n);
  SEL_PUSH(x->r->mem, &x->all, b);
}

static uint32_t best_open(const negative *x) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < x->open.n; i++)
    if (x->all.p[x->open.p[i]].bound < x->all.p[x->open.p[best]].bound) best = i;
  return best;
}

static void prepare(negative *x, uint32_t b) {
  const tarn_sel_view *g = &x->r->g;
  find_dead(x, b);
  go_down(x), find_least(x), go_up(x);
  uint64_t room = 2 * (uint64_t)g->n_nodes + g->kid_first[g->n_nodes] + 3 * (uint64_t)g->n_classes;
  if (x->origin.cap < room) {
    if (room >= NONE) tarn_raise(x->r->cx, TARN_MEMORY, "selection: out of memory");
    x->origin.p = sel_resize(x->r->mem, x->origin.p, room, sizeof *x->origin.p);
    x->origin.cap = (uint32_t)room;
  }
  x->origin.n = 0;
}

/* Solves problem b and takes what it gives: its bound; INFINITY where it has no selection at all.
 * *done: it is solved to the end. */
static double look_at(negative *x, uint32_t b, const uint8_t *is_root, bool *done) {
  sel_run *r = x->r;
  tarn_sel_graph *q;
  tarn_sel_result got = {0};
  prepare(x, b);
  uint32_t n = number_classes(x);
  tarn_status st = tarn_sel_graph_new(r->cx, &q);
  if (st) tarn_reraise(r->cx, st);
  st = relax(x, q, n, is_root);
  if (!st) st = solve(x, q, &got);
  double lost = 1e-15 * (fabs(x->base) + got.lower_bound); /* by sums */
  double bound = x->base + got.lower_bound - lost;
  *done = !st && got.optimal;
  if (!st) {
    if (r->reduced == NONE) r->reduced = got.n_reduced;
    r->steps += got.steps;
    take(x, &got);
  }
  tarn_sel_result_free(&got);
  tarn_sel_graph_free(q);
  if (st == TARN_NO_RESULT) return INFINITY;
  if (st) tarn_reraise(r->cx, st);
  double cost; /* of the selection itself, if that is the problem's optimum */
  if (*done && !x->odd.n && sel_price(r->mem, &r->g, r->cost, x->choice, &cost, NULL, NULL, NULL) &&
      lost <= 1e-9 * fmax(fabs(cost), x->smallest))
    bound = cost;
  return fmax(bound, x->all.p[b].bound);
}

static bool out_of_time(sel_run *r) {
  sel_stop(r, 0);
  if (isfinite(r->o.seconds) && sel_left(r) <= 0 && !r->stop) r->stop = "seconds";
  return r->stop != NULL;
}

static void tell_bound(sel_run *r, double bound) {
  if (isfinite(r->best_cost)) sel_raise_bound(r, bound);
}

/* Makes the paths right, all that are wrong at once, again and again: no proof, but selections. */
static void dive(negative *x, const uint8_t *is_root, double share) {
  enum { MOST = 12 }; /* problems */
  uint32_t b = x->all.n;
  bool done;
  x->m = TARN_SEL_GREEDY, x->share = share;
  add_branch(x, NONE, NONE, false, -INFINITY);
  for (uint32_t i = 0; i < MOST && !out_of_time(x->r); i++) {
    double bound = look_at(x, b, is_root, &done);
    if (!i) tell_bound(x->r, bound);
    if (!isfinite(bound) || !x->odd.n || sel_good_enough(x->r)) break;
    for (uint32_t k = 0; k < x->odd.n; k++) {
      add_branch(x, b, x->odd.p[k], true, -INFINITY);
      b = x->all.n - 1;
    }
  }
  x->open.n = 0;
}

static double bound_of(const negative *x) {
  double bound = x->closed;
  if (x->open.n) bound = fmin(bound, x->all.p[x->open.p[best_open(x)]].bound);
  return bound;
}

static void note_node(negative *x, uint32_t v) {
  const tarn_sel_view *g = &x->r->g;
  double size = fabs(x->r->cost[v]);
  if (size > 0) x->smallest = fmin(x->smallest, size);
  for (uint32_t k = g->kid_first[v]; k < g->kid_first[v + 1]; k++)
    x->loop[v] |= g->kid[k] == g->node_class[v];
}

static void open_negative(negative *x) {
  sel_run *r = x->r;
  const tarn_sel_view *g = &r->g;
  sel_parents(x->r->mem, &x->r->g, &x->pfirst, &x->pnode);
  x->dead = SEL_NEW(r->mem, uint8_t, g->n_nodes);
  x->loop = SEL_NEW(r->mem, uint8_t, g->n_nodes);
  x->has = SEL_NEW(r->mem, uint8_t, g->n_classes);
  x->way = SEL_NEW(r->mem, uint8_t, g->n_classes);
  x->least = SEL_NEW(r->mem, double, g->n_classes);
  x->part = SEL_NEW(r->mem, uint32_t, g->n_nodes);
  x->need = SEL_NEW(r->mem, uint32_t, g->n_classes);
  x->choice = SEL_NEW(r->mem, uint32_t, g->n_classes);
  x->smallest = INFINITY;
  for (uint32_t v = 0; v < g->n_nodes; v++) note_node(x, v);
}

/* Problems, best bound first, until nothing is open or so many were looked at: the two parts of one
 * take its place where a path was wrong. */
static void branch_on(negative *x, const uint8_t *is_root, tarn_sel_method m, double share,
                      uint32_t most) {
  sel_run *r = x->r;
  x->m = m, x->share = share;
  x->open.n = 0, x->closed = INFINITY;
  add_branch(x, NONE, NONE, false, -INFINITY);
  for (uint32_t n = 0; x->open.n && n < most && !out_of_time(r); n++) {
    if (isfinite(r->best_cost) && sel_good_enough(r)) break;
    uint32_t at = best_open(x), b = x->open.p[at];
    bool done;
    x->open.p[at] = x->open.p[--x->open.n];
    double bound = look_at(x, b, is_root, &done);
    if (isfinite(bound) && (!x->odd.n || !done)) x->closed = fmin(x->closed, bound);
    for (int keep = 1; isfinite(bound) && x->odd.n && keep >= 0; keep--)
      add_branch(x, b, x->odd.p[0], keep, bound);
    tell_bound(r, bound_of(x));
  }
}

void sel_run_negative(sel_run *r, tarn_sel_method m) {
  enum { SEARCHED = 20 }; /* problems */
  negative x = {.r = r, .closed = INFINITY};
  open_negative(&x);
  uint8_t *is_root = SEL_NEW(r->mem, uint8_t, r->g.n_classes);
  for (uint32_t i = 0; i < r->g.n_roots; i++) is_root[r->g.root[i]] = 1;
  sel_tree(r->mem, &r->g, r->cost, NULL, x.choice, NULL, NULL); /* whatever it is worth */
  sel_offer(r, x.choice);
  bool exact = m == TARN_SEL_EXACT;
  dive(&x, is_root, exact ? 0.03 : 0.2);
  branch_on(&x, is_root, TARN_SEL_GREEDY, exact ? 0.03 : 0.1, SEARCHED);
  if (exact) branch_on(&x, is_root, TARN_SEL_EXACT, 1, UINT32_MAX);
}
