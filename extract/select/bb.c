/* Branch and bound over the linear relaxation
 *
 *   minimise    sum cost_v x_v
 *   subject to  sum of x over the nodes of c  >=  y_c     for every class c
 *               y_k  >=  sum of x over the nodes of c that have child k     for every pair (c, k)
 *               y = 1 for the roots, 0 <= x, y <= 1, cuts against cycles (cut.c)
 *
 * Best bound first, each time diving from there. Nodes are fixed by reduced cost at the root, and
 * values follow from one another (propagation) before a relaxation is solved.
 */
#include "extract/select/solve.h"
#include <string.h>

typedef struct fix {
  uint32_t col;
  bool one;
} fix;
typedef struct {
  fix *p;
  uint32_t n, cap;
} path_t;

typedef struct bb_node {
  double bound;
  fix *fixes;
  uint32_t n_fixes;
  uint64_t *basis;
  size_t words;
} bb_node;

typedef struct bb {
  sel_run *r;
  sel_pool *mem, *keep; /* while it is solved; as long as the part */
  sel_part *t;
  const sel_prob *q;
  sel_rows rows;
  sel_lp *lp;     /* of rows */
  uint32_t plain; /* rows that are no cuts */
  struct {
    bb_node *p;
    uint32_t n, cap;
  } open;         /* heap by bound */
  sel_u32s trail; /* columns fixed since the root */
  uint8_t *val;   /* by column: 0 free, 1 fixed at 0, 2 fixed at 1 */
  uint8_t *root_val;
  uint32_t *left;  /* by class: nodes not fixed at 0 */
  uint32_t *pleft; /* by class: parent nodes not fixed at 0 */
  struct {
    fix *p;
    uint32_t n, cap;
  } todo;
  uint32_t *guess;  /* by class */
  double *bias;     /* by node */
  sel_apart *apart; /* or NULL */
  uint8_t *needed;  /* by class */
  double *gain[2];  /* pseudo costs by column: sum of gains per unit, down and up */
  uint32_t *tries[2];
  double *x;
  uint64_t seed, limit;
  double floor; /* least bound of what was given up by limits */
} bb;

enum { FREE = 0, ZERO = 1, ONE = 2 };

static uint32_t ycol(const bb *b, uint32_t c) { return b->q->nn + c; }

/* ---- fixing and what follows from it ---- */
static void want(bb *b, uint32_t col, bool one) { SEL_PUSH(b->mem, &b->todo, ((fix){col, one})); }

static void node_zero(bb *b, uint32_t v) {
  const sel_prob *q = b->q;
  uint32_t c = q->ncls[v];
  if (!--b->left[c]) want(b, ycol(b, c), false);
  else if (b->left[c] == 1 && b->val[ycol(b, c)] == ONE)
    for (uint32_t u = q->cfirst[c]; u < q->cfirst[c + 1]; u++)
      if (b->val[u] != ZERO) want(b, u, true);
  for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++)
    if (!--b->pleft[q->kid[i]] && b->val[ycol(b, q->kid[i])] == FREE)
      want(b, ycol(b, q->kid[i]), false);
}

static void node_one(bb *b, uint32_t v) {
  const sel_prob *q = b->q;
  uint32_t c = q->ncls[v];
  want(b, ycol(b, c), true);
  for (uint32_t u = q->cfirst[c]; u < q->cfirst[c + 1]; u++)
    if (u != v) want(b, u, false);
  for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++) want(b, ycol(b, q->kid[i]), true);
}

static void class_zero(bb *b, uint32_t c) {
  const sel_prob *q = b->q;
  for (uint32_t v = q->cfirst[c]; v < q->cfirst[c + 1]; v++) want(b, v, false);
  for (uint32_t i = q->pfirst[c]; i < q->pfirst[c + 1]; i++) want(b, q->pnode[i], false);
}

static void class_one(bb *b, uint32_t c) {
  const sel_prob *q = b->q;
  if (b->left[c] != 1) return;
  for (uint32_t v = q->cfirst[c]; v < q->cfirst[c + 1]; v++)
    if (b->val[v] != ZERO) want(b, v, true);
}

/* Carries out b->todo; false on a contradiction. */
static bool propagate(bb *b) {
  const sel_prob *q = b->q;
  while (b->todo.n) {
    fix f = b->todo.p[--b->todo.n];
    uint8_t now = f.one ? ONE : ZERO;
    if (b->val[f.col] == now) continue;
    if (b->val[f.col] != FREE) return b->todo.n = 0, false;
    b->val[f.col] = now;
    SEL_PUSH(b->mem, &b->trail, f.col);
    lp_set(b->lp, f.col, f.one, f.one);
    if (f.col < q->nn) (f.one ? node_one : node_zero)(b, f.col);
    else (f.one ? class_one : class_zero)(b, f.col - q->nn);
  }
  return true;
}

static void undo_all(bb *b) {
  const sel_prob *q = b->q;
  b->todo.n = 0;
  while (b->trail.n) {
    uint32_t col = b->trail.p[--b->trail.n];
    if (col < q->nn && b->val[col] == ZERO) {
      b->left[q->ncls[col]]++;
      for (uint32_t i = q->kfirst[col]; i < q->kfirst[col + 1]; i++) b->pleft[q->kid[i]]++;
    }
    b->val[col] = FREE;
    lp_set(b->lp, col, 0, 1);
  }
}

static bool apply(bb *b, const fix *f, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    want(b, f[i].col, f[i].one);
    if (!propagate(b)) return false;
  }
  return true;
}

/* Roots are needed, for good. */
static bool fix_roots(bb *b) {
  for (uint32_t i = 0; i < b->q->nr; i++) want(b, ycol(b, b->q->root[i]), true);
  return propagate(b);
}

/* ---- heuristics from the relaxation ---- */
/* Terms whose nodes the relaxation likes are cheap. */
static void round_relaxation(bb *b, bool improve) {
  const sel_prob *q = b->q;
  sel_progress at = {0};
  for (uint32_t v = 0; v < q->nn; v++) {
    double x = b->lp->x[v] < 0 ? 0 : b->lp->x[v] > 1 ? 1 : b->lp->x[v];
    b->bias[v] = b->val[v] == ZERO ? INFINITY : (q->cost[v] + 1e-4) * (1 - x) + 1e-7;
  }
  sel_tree(b->mem, &b->t->view, b->bias, NULL, b->guess, NULL, NULL);
  b->r->steps += 10 * q->nn;
  if (improve)
    sel_improve(b->r, b->mem, &b->t->view, q->cost, b->t->scc, b->guess,
                20 * (uint64_t)q->nn + 20000, &at, &b->seed);
  sel_part_offer(b->mem, b->t, b->guess);
}

/* Columns that cannot be in a better selection: their reduced cost is more than the room left. They
 * join the path, so that a basis saved now is met again with the same fixings. NONE when nothing
 * better is left at all. */
static uint32_t fix_by_cost(bb *b, double bound, path_t *path) {
  double room = sel_part_target(b->t) - bound;
  uint32_t n = 0;
  for (uint32_t j = 0; j < b->q->nn + b->q->nc; j++) {
    if (b->val[j] != FREE || b->lp->place[j] != NONE) continue;
    if (!(b->lp->d[j] > room + 1e-9)) continue;
    want(b, j, false), n++;
    if (path) SEL_PUSH(b->mem, path, ((fix){j, false}));
  }
  if (!propagate(b)) return NONE;
  return n;
}

/* ---- choosing where to branch ---- */
static double fraction(double x) { return x < 0.5 ? x : 1 - x; }

static double score(const bb *b, uint32_t j, const double average[2]) {
  double f = b->lp->x[j], g[2];
  for (int s = 0; s < 2; s++)
    g[s] = (b->tries[s][j] ? b->gain[s][j] / b->tries[s][j] : average[s]) * (s ? 1 - f : f) + 1e-6;
  return g[0] * g[1];
}

static uint32_t choose_branch(const bb *b) {
  double average[2] = {1, 1}, best = -1;
  uint32_t all = b->q->nn + b->q->nc, at = NONE;
  for (int s = 0; s < 2; s++) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t j = 0; j < all; j++)
      if (b->tries[s][j]) sum += b->gain[s][j] / b->tries[s][j], n++;
    if (n) average[s] = sum / n;
  }
  for (int pass = 0; pass < 2 && at == NONE; pass++) { /* classes first: they decide more */
    uint32_t from = pass ? 0 : b->q->nn, end = pass ? b->q->nn : all;
    for (uint32_t j = from; j < end; j++) {
      if (b->val[j] != FREE || fraction(b->lp->x[j]) < 1e-6 || b->lp->x[j] > 1) continue;
      double s = score(b, j, average);
      if (s > best) best = s, at = j;
    }
  }
  return at;
}

static void learn(bb *b, uint32_t j, bool up, double f, double gain) {
  double way = up ? 1 - f : f;
  if (way < 1e-3) return;
  b->gain[up][j] += (gain > 0 ? gain : 0) / way;
  b->tries[up][j]++;
}

/* ---- open nodes ---- */
static void heap_push(bb *b, bb_node n) {
  SEL_PUSH(b->mem, &b->open, n);
  uint32_t i = b->open.n - 1;
  for (; i && n.bound < b->open.p[(i - 1) / 2].bound; i = (i - 1) / 2)
    b->open.p[i] = b->open.p[(i - 1) / 2];
  b->open.p[i] = n;
}

static bb_node heap_pop(bb *b) {
  bb_node top = b->open.p[0], last = b->open.p[--b->open.n];
  uint32_t i = 0, n = b->open.n;
  for (uint32_t k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && b->open.p[k + 1].bound < b->open.p[k].bound) k++;
    if (!(b->open.p[k].bound < last.bound)) break;
    b->open.p[i] = b->open.p[k];
  }
  if (n) b->open.p[i] = last;
  return top;
}

static void drop_node(bb *b, bb_node *n) {
  sel_free(b->mem, n->fixes);
  sel_free(b->mem, n->basis);
}

/* The present path with column j set the other way, to be looked at later. */
static void put_off(bb *b, const fix *path, uint32_t n_path, fix last, double bound) {
  bb_node n = {.bound = bound, .n_fixes = n_path + 1};
  n.fixes = sel_resize(b->mem, NULL, n.n_fixes, sizeof *n.fixes);
  if (n_path) memcpy(n.fixes, path, n_path * sizeof *path);
  n.fixes[n_path] = last;
  n.words = lp_basis_words(b->lp);
  n.basis = sel_resize(b->mem, NULL, n.words, 8);
  lp_save(b->lp, n.basis);
  heap_push(b, n);
}

/* ---- one node: relaxation and cuts ---- */
typedef enum { PRUNED, BRANCH, STOPPED } verdict;

static bool out_of_work(const bb *b) { return b->r->stop || (b->limit && b->r->steps >= b->limit); }

static bool is_integral(const bb *b) {
  for (uint32_t j = 0; j < b->q->nn; j++)
    if (fraction(b->lp->x[j]) > 1e-6) return false;
  return true;
}

/* An integral point without violated cuts is a selection. */
static bool take_whole(bb *b) {
  for (uint32_t c = 0; c < b->q->nc; c++) {
    b->guess[c] = NONE;
    for (uint32_t v = b->q->cfirst[c]; v < b->q->cfirst[c + 1]; v++)
      if (b->lp->x[v] > 0.5) b->guess[c] = v;
  }
  double cost;
  if (!sel_price(b->mem, &b->t->view, b->q->cost, b->guess, &cost, NULL, NULL, NULL)) return false;
  sel_part_offer(b->mem, b->t, b->guess);
  return true;
}

/* Is it too far from the bound to the target for branching? Small parts have been seen to close
 * from anywhere. */
static bool wide_gap(const bb *b, double bound) {
  double target = sel_part_target(b->t);
  return b->t->sums && b->t->flowed && b->q->nn >= SEL_SMALL && target - bound > 0.05 * target;
}

static uint32_t separate(bb *b, bool sums) {
  enum { FEW = 10 }; /* then sums of rows do more for the time that a relaxation takes */
  memcpy(b->x, b->lp->x, ((size_t)b->q->nn + b->q->nc) * sizeof *b->x);
  b->r->steps += 20 * b->q->nn;
  uint32_t found = sel_separate(b->r, b->mem, b->q, b->x, &b->rows, 60);
  if (sums && found < FEW) found += sel_half_cuts(b->r, b->mem, b->q, &b->rows, 50);
  return found;
}

/* Rows from levels of reduced cost; the bound must rise by a visible part of what is missing. */
static uint32_t raise_levels(bb *b, double bound) {
  const sel_prob *q = b->q;
  for (uint32_t v = 0; v < q->nn; v++) b->bias[v] = b->val[v] == ZERO ? INFINITY : 1;
  for (uint32_t c = 0; c < q->nc; c++) b->needed[c] = b->val[ycol(b, c)] == ONE;
  double missing = sel_part_target(b->t) - bound;
  return sel_level_cuts(b->r, b->mem, q, &b->t->view, b->bias, b->needed, &b->rows,
                        1e-4 * missing + 1e-9);
}

/* The reduced costs once more, by what cannot be shared: adds to the bound that they come from. */
static double apart(bb *b) {
  const sel_prob *q = b->q;
  const double *d = b->lp->d, *lo = b->lp->lo;
  if (!b->apart) return 0;
  for (uint32_t v = 0; v < q->nn; v++)
    b->bias[v] = b->val[v] == ZERO ? INFINITY : d[v] > 0 && lo[v] <= 0 ? d[v] : 0;
  for (uint32_t c = 0; c < q->nc; c++) {
    double y = d[ycol(b, c)];
    b->x[c] = y > 0 && lo[ycol(b, c)] <= 0 ? y : 0;
  }
  b->r->steps += 10 * q->nn;
  return sel_apart_bound(b->apart, b->mem, &b->t->view, b->bias, b->x);
}

/* Solves with all rows that are violated; LP_OPTIMAL means none is. */
static lp_status solve_rows(bb *b, double *z) {
  for (;;) {
    lp_status st = lp_solve(b->lp, sel_part_target(b->t), UINT64_MAX);
    *z = st == LP_INFEASIBLE ? INFINITY : lp_bound(b->lp);
    if (st != LP_OPTIMAL || *z > sel_part_target(b->t) || out_of_work(b)) return st;
    sel_stop(b->r, b->rows.term.n);
    if (!sel_rows_violated(&b->rows, 1e-2) && !sel_rows_violated(&b->rows, 1e-6)) return st;
  }
}

/* Are cuts to be looked for at the root? While they pay (the last rounds closed a hundredth of the
 * gap), the longer where branching is not to be hoped for. */
static bool go_on(const bb *b, uint32_t round, double bound, double *before) {
  enum { ROUNDS = 16, ENOUGH = 60 };
  if (!wide_gap(b, bound)) return round < ENOUGH;
  if (round % ROUNDS) return true;
  double gap = sel_part_target(b->t) - *before, closed = bound - *before;
  *before = bound;
  return round == 0 || closed > 0.01 * gap;
}

/* Flow finds no more at the root, or not enough: do sums of rows come next? Not before, as the
 * bound from flow would come later. */
static bool begin_sums(bb *b, double bound) {
  bool first = !b->t->flowed;
  b->t->flowed = true;
  return first && wide_gap(b, bound);
}

static verdict relax(bb *b, bool root, double *bound) {
  double before = 0;
  uint32_t from = 0; /* the first round of those that go_on() counts */
  for (uint32_t k = 0;; k++) {
    double z;
    lp_status st = solve_rows(b, &z);
    if (k == 0 && st != LP_INFEASIBLE) z += apart(b);
    if (z > *bound) *bound = z;
    if (*bound > sel_part_target(b->t)) return PRUNED;
    if (st != LP_OPTIMAL || out_of_work(b)) return STOPPED;
    if (root) sel_rows_purge(&b->rows);
    bool more = root ? go_on(b, k - from, *bound, &before) : k < 8;
    if (more && raise_levels(b, z)) continue;
    bool integral = is_integral(b);
    if (root || integral) round_relaxation(b, root && k < 3);
    if (integral && take_whole(b)) return PRUNED;
    if (*bound > sel_part_target(b->t)) return PRUNED;
    if ((more || integral) && separate(b, root && wide_gap(b, *bound))) continue;
    if (integral) return STOPPED;
    if (!root || !begin_sums(b, *bound)) return BRANCH;
    from = k + 1;
  }
}

/* ---- the search ---- */
/* From the node whose fixings are applied, down to a leaf; the other sides are put off. */
static void dive(bb *b, path_t *path, double bound) {
  uint32_t last = NONE;
  double f = 0, before = bound;
  bool up = false;
  for (uint32_t depth = 0;; depth++) {
    verdict w = relax(b, false, &bound);
    if (last != NONE && w != STOPPED) learn(b, last, up, f, bound - before);
    if (w == STOPPED && bound < b->floor) b->floor = bound;
    if (w != BRANCH) return;
    if (depth % 8 == 0) round_relaxation(b, depth == 0);
    if (bound > sel_part_target(b->t) || fix_by_cost(b, bound, path) == NONE) return;
    uint32_t j = choose_branch(b);
    if (j == NONE) {
      if (bound < b->floor) b->floor = bound;
      return;
    }
    last = j, f = b->lp->x[j], before = bound;
    up = f > 0.3;
    put_off(b, path->p, path->n, (fix){j, !up}, bound);
    SEL_PUSH(b->mem, path, ((fix){j, up}));
    want(b, j, up);
    if (!propagate(b)) return;
  }
}

static void raise_bound(bb *b) {
  double z = b->open.n ? b->open.p[0].bound : INFINITY;
  if (b->floor < z) z = b->floor;
  if (z > sel_part_cap(b->t)) z = sel_part_cap(b->t);
  if (z > b->t->bound) b->t->bound = z;
}

/* Fixings by cost at the root stay; they are the trail until now. */
static void keep_fixed(bb *b) { b->trail.n = 0; }

static void search(bb *b, double root_bound) {
  path_t path = {0};
  put_off(b, NULL, 0, (fix){b->q->nn + b->q->root[0], true}, root_bound);
  while (b->open.n && !out_of_work(b)) {
    bb_node n = heap_pop(b);
    if (n.bound <= sel_part_target(b->t)) {
      undo_all(b);
      path.n = 0;
      for (uint32_t i = 0; i < n.n_fixes; i++) SEL_PUSH(b->mem, &path, n.fixes[i]);
      lp_restore(b->lp, n.basis, n.words);
      if (apply(b, n.fixes, n.n_fixes)) dive(b, &path, n.bound);
    }
    drop_node(b, &n);
    raise_bound(b);
  }
  sel_free(b->mem, path.p);
  if (!b->open.n && b->floor == INFINITY) b->t->bound = sel_part_cap(b->t);
}

static void mark_dead(bb *b) {
  sel_part *t = b->t;
  for (uint32_t v = 0; v < b->q->nn; v++)
    if (b->val[v] == ZERO && !t->dead[v]) t->dead[v] = 1, t->n_dead++;
}

/* For the tables of width_table.c. What is fixed is in the base. */
static void keep_reduced(bb *b, double *reduced) {
  double base = lp_bound(b->lp);
  if (!isfinite(base)) return;
  for (uint32_t j = 0; j < b->q->nn + b->q->nc; j++)
    reduced[j] = b->val[j] == FREE && b->lp->d[j] > 0 ? b->lp->d[j] : 0;
  b->t->reduced = reduced, b->t->reduced_base = base;
}

static void open_bb(bb *b) {
  const sel_prob *q = b->q;
  size_t all = (size_t)q->nn + q->nc;
  b->val = SEL_NEW(b->mem, uint8_t, all);
  b->left = SEL_NEW(b->mem, uint32_t, q->nc);
  b->pleft = SEL_NEW(b->mem, uint32_t, q->nc);
  b->guess = SEL_NEW(b->mem, uint32_t, q->nc);
  b->bias = SEL_NEW(b->mem, double, q->nn);
  b->x = SEL_NEW(b->mem, double, all);
  b->needed = SEL_NEW(b->mem, uint8_t, q->nc);
  for (int s = 0; s < 2; s++)
    b->gain[s] = SEL_NEW(b->mem, double, all), b->tries[s] = SEL_NEW(b->mem, uint32_t, all);
  for (uint32_t c = 0; c < q->nc; c++) {
    b->left[c] = q->cfirst[c + 1] - q->cfirst[c];
    b->pleft[c] = q->pfirst[c + 1] - q->pfirst[c];
  }
  b->apart = sel_apart_new(b->r, b->mem, q, true);
  sel_relaxation(&b->rows, b->mem, b->r, q);
  b->lp = b->rows.lp;
  b->plain = b->rows.in_lp.n;
  for (uint32_t i = 0; i < b->t->cuts.n;) {
    uint32_t n = b->t->cuts.p[i].at;
    sel_rows_add(&b->rows, b->t->cuts.p + i + 1, n);
    i += n + 1;
  }
}

/* The cuts that matter now, for the next time that the part is solved: the number of terms of each,
 * and these. */
static void keep_cuts(bb *b) {
  sel_rows *w = &b->rows;
  b->t->cuts.n = 0;
  for (uint32_t row = b->plain; row < w->in_lp.n; row++) {
    uint32_t from = w->first.p[row], end = w->first.p[row + 1];
    if (!w->in_lp.p[row]) continue;
    SEL_PUSH(b->keep, &b->t->cuts, ((lp_term){end - from, 0}));
    for (uint32_t i = from; i < end; i++) SEL_PUSH(b->keep, &b->t->cuts, w->term.p[i]);
  }
}

/* Before any relaxation: the bound of plain costs. */
static double first_bound(bb *b) {
  double z = b->apart ? sel_apart_bound(b->apart, b->mem, &b->t->view, b->q->cost, NULL) : 0;
  return z > b->t->bound ? z : b->t->bound;
}

static void solve(bb *b, bool root_only, double *reduced) {
  sel_part *t = b->t;
  double bound = t->bound = first_bound(b);
  if (sel_part_closed(t)) {
    t->bound = sel_part_cap(t);
    return;
  }
  verdict w = fix_roots(b) ? relax(b, true, &bound) : PRUNED;
  bool again = w == STOPPED && b->q->nn >= SEL_SMALL; /* it will not begin from nothing */
  if (again || wide_gap(b, bound)) keep_cuts(b);
  if (w == BRANCH && fix_by_cost(b, bound, NULL) == NONE) w = PRUNED;
  double cap = sel_part_cap(t);
  if (w == PRUNED) bound = cap;
  if (bound > t->bound) t->bound = bound < cap ? bound : cap;
  if (sel_part_closed(t)) {
    t->bound = cap;
    return;
  }
  mark_dead(b);
  keep_reduced(b, reduced);
  if (root_only || w == STOPPED) return;
  keep_fixed(b);
  search(b, bound);
}

void sel_part_solve(sel_run *r, sel_pool *mem, sel_part *t, bool root_only, uint64_t steps) {
  if (sel_part_closed(t)) return;
  if (t->q.nn && !t->dead) t->dead = SEL_NEW(mem, uint8_t, t->q.nn); /* outlives the pool below */
  double *reduced = t->reduced ? t->reduced : SEL_NEW(mem, double, (size_t)t->q.nn + t->q.nc);
  sel_pool *own = r->brief;
  bb b = {.r = r, .mem = own, .keep = mem, .t = t, .q = &t->q, .seed = 1, .floor = INFINITY};
  b.limit = steps ? r->steps + steps : 0;
  open_bb(&b);
  solve(&b, root_only, reduced);
  if (!t->reduced) sel_free(mem, reduced);
  sel_pool_close(own);
}
