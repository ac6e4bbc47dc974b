/* Integer programming with CBC: the reductions and the rows of our own solver, cycles cut off as
 * they turn up. CBC is loaded on demand, through its C interface, so nothing of it is
 * needed to build or to link. */
#include "extract/select/reduce.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The part of CBC's C interface that is used here; the first argument is always the model. */
typedef struct cbc {
  void *library;
  void *(*new_model)(void);
  void (*delete_model)(void *);
  void (*load)(void *, int cols, int rows, const int *start, const int *index, const double *value,
               const double *lo, const double *up, const double *cost, const double *row_lo,
               const double *row_up);
  void (*set_integer)(void *, int col);
  void (*set_parameter)(void *, const char *name, const char *value);
  void (*set_log)(void *, int level);
  int (*solve)(void *);
  const double *(*best)(void *);
  double (*bound)(void *);
  int (*proven)(void *);
  int (*infeasible)(void *);
} cbc;

static void load_cbc(tarn_ctx *cx, cbc *k) {
  static const char *const names[] = {"libCbcSolver.so.3", "libCbcSolver.so"};
  const struct {
    const char *name;
    void *at;
  } need[] = {{"Cbc_newModel", &k->new_model},
              {"Cbc_deleteModel", &k->delete_model},
              {"Cbc_loadProblem", &k->load},
              {"Cbc_setInteger", &k->set_integer},
              {"Cbc_setParameter", &k->set_parameter},
              {"Cbc_setLogLevel", &k->set_log},
              {"Cbc_solve", &k->solve},
              {"Cbc_bestSolution", &k->best},
              {"Cbc_getBestPossibleObjValue", &k->bound},
              {"Cbc_isProvenOptimal", &k->proven},
              {"Cbc_isProvenInfeasible", &k->infeasible}};
  for (size_t i = 0; i < 2 && !k->library; i++)
    k->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!k->library)
    tarn_raise(cx, TARN_IO, "ilp: CBC is not installed: %s (Debian: coinor-libcbc3)", dlerror());
  for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
    void *f = dlsym(k->library, need[i].name);
    if (!f) tarn_raise(cx, TARN_IO, "ilp: CBC has no %s", need[i].name);
    memcpy(need[i].at, &f, sizeof f);
  }
}

typedef struct ilp {
  sel_run *r;
  sel_part *t;
  const cbc *k;
  sel_lp *lp; /* as a store of rows */
  void *model;
} ilp;

static void drop_model(ilp *p) {
  if (p->model) p->k->delete_model(p->model);
  p->model = NULL;
}

static void close_ilp(void *arg) { drop_model(arg); }

static void load_rows(ilp *p) {
  sel_lp *lp = p->lp;
  sel_pool *mem = p->r->mem;
  lp_columns(lp);
  int *start = SEL_NEW(mem, int, (size_t)lp->n + 1), *index = SEL_NEW(mem, int, lp->term.n);
  double *value = SEL_NEW(mem, double, lp->term.n), *up = SEL_NEW(mem, double, lp->m);
  for (uint32_t j = 0; j <= lp->n; j++) start[j] = (int)lp->col_first[j];
  for (uint32_t i = 0; i < lp->term.n; i++) index[i] = (int)lp->col[i].at, value[i] = lp->col[i].v;
  for (uint32_t i = 0; i < lp->m; i++) up[i] = INFINITY;
  p->model = p->k->new_model();
  if (!p->model) tarn_raise(p->r->cx, TARN_MEMORY, "ilp: CBC is out of memory");
  p->k->set_log(p->model, 0);
  p->k->load(p->model, (int)lp->n, (int)lp->m, start, index, value, lp->lo, lp->up, lp->cost,
             lp->rhs, up);
  for (uint32_t j = 0; j < p->t->q.nn; j++) p->k->set_integer(p->model, (int)j);
  void *all[] = {start, index, value, up};
  for (size_t i = 0; i < 4; i++) sel_free(mem, all[i]);
}

/* Walks the chosen nodes from the roots; a cycle met becomes a row: not all of its edges. Returns
 * how many were met. */
static uint32_t block_cycles(ilp *p, const uint32_t *choice) {
  const sel_prob *q = &p->t->q;
  sel_pool *mem = p->r->mem;
  uint32_t *state = SEL_NEW(mem, uint32_t, q->nc), *stack = SEL_NEW(mem, uint32_t, q->nc);
  uint32_t *at = SEL_NEW(mem, uint32_t, q->nc), depth = 0, found = 0;
  for (uint32_t i = 0; i < q->nr; i++) {
    if (state[q->root[i]]) continue;
    stack[depth] = q->root[i], at[depth++] = 0, state[q->root[i]] = 1;
    while (depth) {
      uint32_t c = stack[depth - 1], v = choice[c];
      if (v == NONE || q->kfirst[v] + at[depth - 1] == q->kfirst[v + 1]) {
        state[c] = 2;
        depth--;
        continue;
      }
      uint32_t kid = q->kid[q->kfirst[v] + at[depth - 1]++];
      if (!state[kid]) stack[depth] = kid, at[depth++] = 0, state[kid] = 1;
      else if (state[kid] == 1) {
        struct {
          lp_term *p;
          uint32_t n, cap;
        } row = {0};
        for (uint32_t j = depth; j-- > 0;) {
          SEL_PUSH(mem, &row, ((lp_term){choice[stack[j]], -1}));
          if (stack[j] == kid) break;
        }
        lp_add_row(p->lp, row.p, row.n, 1 - (double)row.n);
        sel_free(mem, row.p);
        found++;
      }
    }
  }
  void *all[] = {state, stack, at};
  for (size_t i = 0; i < 3; i++) sel_free(mem, all[i]);
  return found;
}

static void read_choice(const ilp *p, const double *x, uint32_t *choice) {
  const sel_prob *q = &p->t->q;
  for (uint32_t c = 0; c < q->nc; c++) {
    choice[c] = NONE;
    for (uint32_t v = q->cfirst[c]; v < q->cfirst[c + 1]; v++)
      if (x[v] > 0.5 && (choice[c] == NONE || x[v] > x[choice[c]])) choice[c] = v;
  }
}

/* One call of CBC; true when another round makes sense. */
static bool round_of_cbc(ilp *p, uint32_t *choice) {
  char seconds[32];
  double left = sel_left(p->r);
  load_rows(p);
  if (isfinite(left)) {
    snprintf(seconds, sizeof seconds, "%.3f", left > 0.01 ? left : 0.01);
    p->k->set_parameter(p->model, "timeMode", p->r->o.cpu_time ? "cpu" : "elapsed");
    p->k->set_parameter(p->model, "seconds", seconds);
  }
  p->k->solve(p->model);
  sel_stop(p->r, 1000000);
  const double *x = p->k->best(p->model);
  bool proven = p->k->proven(p->model) && x;
  double bound = p->k->bound(p->model);
  if (bound > p->t->bound && bound < 1e50 && (proven || bound < p->t->cost)) p->t->bound = bound;
  bool again = false;
  if (x) {
    read_choice(p, x, choice);
    again = block_cycles(p, choice) > 0;
    if (!again) sel_part_offer(p->r->mem, p->t, choice);
    if (!again && proven) p->t->bound = p->t->cost;
  }
  drop_model(p);
  return again && !p->r->stop;
}

static void solve_part(sel_run *r, const cbc *k, sel_part *t) {
  ilp *p = SEL_NEW(r->mem, ilp, 1);
  *p = (ilp){.r = r, .t = t, .k = k};
  sel_rows *w = SEL_NEW(r->mem, sel_rows, 1);
  sel_relaxation(w, r->mem, r, &t->q);
  sel_rows_violated(w, -INFINITY); /* all of them */
  p->lp = w->lp;
  for (uint32_t i = 0; i < t->q.nr; i++) lp_set(p->lp, t->q.nn + t->q.root[i], 1, 1);
  tarn_defer(r->cx, close_ilp, p);
  uint32_t *choice = SEL_NEW(r->mem, uint32_t, t->q.nc);
  while (round_of_cbc(p, choice)) {}
}

void sel_run_ilp(sel_run *r) {
  sel_parts s;
  cbc k = {0};
  load_cbc(r->cx, &k);
  if (!sel_parts_open(&s, r)) return;
  sel_parts_split(&s);
  sel_parts_offer(&s);
  for (uint32_t i = 0; i < s.n && !r->stop; i++) {
    if (!sel_part_closed(&s.part[i])) solve_part(r, &k, &s.part[i]);
    sel_parts_offer(&s);
  }
}
