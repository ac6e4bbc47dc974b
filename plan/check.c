/* Counts the results and steps of a loop program and rejects one that computes more or less than
 * its nest. Every statement has its size, every result is made once for each of its points, and
 * every step of a reduction runs, except those that padding leaves out. */
#include "plan/walk.h"

typedef struct counts {
  int64_t begins; /* BEGIN or RESUME */
  int64_t ends;   /* MAP, FINISH or LEAVE */
  int64_t steps;  /* STEP; a dot product counts as its terms */
} counts;

static void wrong(const tarn_plan_nest *N, const char *what, int64_t is, int64_t should) {
  tarn_raise(N->cx, TARN_INTERNAL, "plan: %s: %lld for %lld", what, (long long)is,
             (long long)should);
}
static counts plus(counts a, counts b) {
  return (counts){a.begins + b.begins, a.ends + b.ends, a.steps + b.steps};
}
static counts count(const tarn_plan_nest *N, uint32_t stage, const tarn_plan_stmt *s);
static counts count_inside(const tarn_plan_nest *N, uint32_t stage, const tarn_plan_stmt *s) {
  counts sum = {0};
  const tarn_plan_stmt *in = s + 1;
  for (; in < s + s->size; in += in->size) sum = plus(sum, count(N, stage, in));
  if (in != s + s->size) wrong(N, "a statement's end", in - s, s->size);
  return sum;
}
/* One of two runs, and both must come to the same. */
static counts count_either(const tarn_plan_nest *N, uint32_t stage, const tarn_plan_stmt *s) {
  const tarn_plan_stmt *yes = s + 1;
  counts a = count(N, stage, yes);
  counts b = count(N, stage, yes + yes->size);
  if (a.begins != b.begins || a.ends != b.ends) wrong(N, "results of two branches", a.ends, b.ends);
  return a;
}
/* Of the cases of an open dim, the first whose step is at most the extent runs. */
static counts count_cases(const tarn_plan_nest *N, uint32_t stage, const tarn_plan_stmt *s) {
  const tarn_plan_stmt *in = s + 1;
  const tarn_plan_stmt *end = s + s->size;
  if (!in->by) return count_inside(N, stage, s);
  while (in->hi < 0 && in + in->size < end) in += in->size;
  return count(N, stage, in);
}
/* Of one stage. */
static counts count(const tarn_plan_nest *N, uint32_t stage, const tarn_plan_stmt *s) {
  int64_t trips = 1;
  switch ((tarn_plan_op)s->op) {
  case TARN_PLAN_COMPUTE:
    if (s->phase == TARN_PLAN_BEGIN || s->phase == TARN_PLAN_RESUME) return (counts){.begins = 1};
    return s->phase == TARN_PLAN_STEP ? (counts){.steps = 1} : (counts){.ends = 1};
  case TARN_PLAN_DOT: return (counts){.steps = N->stage[stage].dot[0].k};
  case TARN_PLAN_UNIT: {
    const tarn_hw_form *f = &N->stage[stage].form;
    return (counts){.steps = f->m * f->n * f->k};
  }
  case TARN_PLAN_EITHER: return count_either(N, stage, s);
  case TARN_PLAN_PARALLEL: return count_cases(N, stage, s);
  case TARN_PLAN_STAGE:
    if (s->var != stage) return (counts){0};
    break;
  case TARN_PLAN_LOOP:
  case TARN_PLAN_COPIES:
  case TARN_PLAN_MEMBER:
  case TARN_PLAN_CASE: trips = tarn_plan_trips(s); break;
  case TARN_PLAN_PIPELINE:
  case TARN_PLAN_LANES: trips = s->hi + 1; break;
  default: break;
  }
  counts in = count_inside(N, stage, s);
  return (counts){in.begins * trips, in.ends * trips, in.steps * trips};
}

static bool guarded(const tarn_plan_stage *st) {
  for (uint32_t r = 0; r < st->f->nops; r++)
    if (st->read[r].nguard) return true;
  return false;
}
/* How many elements of dim d are computed; the last trip of an open dim may repeat some. */
static int64_t computed(const tarn_plan_nest *N, uint32_t stage, uint32_t d) {
  const tarn_plan_level *l[2 * TARN_MAX_LEVELS];
  uint32_t n = tarn_plan_levels(N, 1 + stage, l);
  for (uint32_t i = 0; i < n; i++)
    if (l[i]->dim == d && l[i]->open) return l[i]->trips * tarn_plan_step(l[i]);
  return N->stage[stage].over[d];
}
/* Threads that share trips of an open dim must not add to one result. */
static void check_threads(const tarn_plan_nest *N, uint32_t region, uint32_t stage) {
  const tarn_plan_list *list = tarn_plan_parallel(N, region);
  if (!N->n->stage[stage].out || !tarn_plan_resumes(N, stage)) return;
  for (uint32_t i = 0; i < list->parallel; i++)
    if (list->level[i].open && list->level[i].step > 1)
      wrong(N, "threads that add to one result", 2, 1);
}
static void check_stage(const tarn_plan_nest *N, uint32_t stage, counts is) {
  const tarn_plan_stage *st = &N->stage[stage];
  int64_t points = 1;
  int64_t terms = 1;
  for (uint32_t d = 0; d < st->n; d++)
    *(d < st->nacc ? &points : &terms) *= d < st->nacc ? computed(N, stage, d) : st->over[d];
  bool many = tarn_plan_resumes(N, stage);
  if (many ? points && is.ends % points : is.ends != points) wrong(N, "results", is.ends, points);
  if (!st->red || st->nfactor) return;
  if (is.begins != is.ends) wrong(N, "beginnings of accumulators", is.begins, is.ends);
  if (guarded(st) ? is.steps > points * terms : is.steps != points * terms)
    wrong(N, "steps of a reduction", is.steps, points * terms);
}
void tarn_plan_check(const tarn_plan_nest *N) {
  for (uint32_t r = 0; r < tarn_plan_regions(N); r++) {
    const tarn_plan_code *c = N->code[r];
    for (uint32_t i = 0; i < N->nstage; i++) {
      counts sum = {0};
      if (N->split && i != r) continue;
      for (const tarn_plan_stmt *s = c->p; s < c->p + c->n; s += s->size)
        sum = plus(sum, count(N, i, s));
      check_stage(N, i, sum);
      check_threads(N, r, i);
    }
  }
}
