/* The loop program of a kernel on such a machine: loops over tiles, each tensor filled where a loop
 * outside of its tile has changed it, the product of each tile added to the accumulators, and what
 * is made of these when their sums are complete. */
#include "plan/unit_internal.h"
#include <string.h>

/* ---------------------------------------------------------------- tiles */
tarn_unit_box tarn_unit_all(const tarn_unit_plan *p) {
  tarn_unit_box all = {.lo = {0}};
  memcpy(all.n, p->dim, sizeof all.n);
  return all;
}
void unit_box_at(const tarn_unit_plan *p, uint32_t loops, const int64_t *at, tarn_unit_box *b) {
  *b = tarn_unit_all(p);
  for (uint32_t i = 0; i < loops; i++) {
    uint32_t d = p->loop[i].dim;
    b->lo[d] += at[i] * p->loop[i].step;
    b->n[d] = tarn_min(p->loop[i].step, b->n[d] - at[i] * p->loop[i].step);
  }
}
/* Loops trip within what those outside of them leave, so the last tile of a tile is smaller. */
static int64_t trips_of(const tarn_unit_plan *p, uint32_t loop, const int64_t *at) {
  tarn_unit_box b;
  unit_box_at(p, loop, at, &b);
  return tarn_ceildiv(b.n[p->loop[loop].dim], p->loop[loop].step);
}
static bool same_box(const tarn_unit_box *a, const tarn_unit_box *b, uint32_t dims) {
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++)
    if ((dims >> d & 1) && (a->lo[d] != b->lo[d] || a->n[d] != b->n[d])) return false;
  return true;
}
/* Entries from one unit of each dim to the next in a tile. */
static void strides_of(const tarn_unit_tensor *t, const tarn_unit_box *of, int64_t *stride) {
  int64_t inside = t->each;
  memset(stride, 0, TARN_MAX_DIMS * sizeof *stride);
  for (uint32_t i = t->n; i-- > 0;) {
    for (uint32_t k = 0; k < t->at[i].n; k++) stride[t->at[i].dim[k]] += t->at[i].by[k] * inside;
    inside *= tarn_unit_room(&t->at[i], of);
  }
}
static int64_t entry_unpadded(const tarn_unit_tensor *t, const tarn_unit_box *of,
                              const tarn_unit_box *here) {
  int64_t inside = t->each;
  int64_t sum = 0;
  for (uint32_t i = t->n; i-- > 0; inside *= tarn_unit_room(&t->at[i], of)) {
    int64_t first[2];
    int64_t n;
    tarn_unit_span(&t->at[i], of, &first[0], &n);
    tarn_unit_span(&t->at[i], here, &first[1], &n);
    sum += (first[1] - first[0]) * inside;
  }
  return sum;
}

/* ---------------------------------------------------------------- the visit */
/* Issues that were found last: most statements walk as one before them did. */
enum { FOUND = 64 };
typedef struct found {
  uint32_t intrinsic;
  bool clears;
  int64_t immediate;
  tarn_unit_issue asked, is;
} found;
/* What lies in the slots of an operand. */
typedef struct tile {
  int64_t first[TARN_UNIT_COORDS], n[TARN_UNIT_COORDS];
} tile;
typedef struct slots {
  uint32_t n; /* that have been filled, in turn */
  tile tile[TARN_UNIT_SLOTS];
} slots;
enum { KEEPING = TARN_UNIT_OPERANDS };
typedef struct visit {
  const tarn_unit_plan *p;
  slots *kept; /* of each operand of the product */
  tarn_unit_visit_fn *f;
  void *user;
  tarn_unit_box of[TARN_UNIT_TENSORS];
  int64_t stride[TARN_UNIT_TENSORS][TARN_MAX_DIMS]; /* of that */
  uint32_t dims[TARN_UNIT_TENSORS];                 /* that a tensor changes along */
  uint32_t slot[TARN_UNIT_TENSORS];
  bool filled[TARN_UNIT_TENSORS];
  bool ok;                     /* transfers and instructions can do all that came so far */
  int64_t at[TARN_MAX_LEVELS]; /* trips of the loops; 0 of those that are not open */
  uint32_t nfound;
  found found[FOUND];
} visit;

static bool same_walks(const tarn_unit_issue *a, const tarn_unit_issue *b) {
  if (a->nwalk != b->nwalk) return false;
  for (uint32_t i = 0; i < a->nwalk; i++) {
    const tarn_unit_walk *x = &a->walk[i], *y = &b->walk[i];
    if (x->trips != y->trips || x->sums != y->sums || memcmp(x->step, y->step, sizeof x->step) != 0)
      return false;
  }
  return true;
}
static bool issue_of(visit *v, uint32_t intrinsic, bool clears, int64_t immediate,
                     tarn_unit_issue *i) {
  for (uint32_t k = 0; k < FOUND && k < v->nfound; k++) {
    const found *f = &v->found[k];
    if (f->intrinsic != intrinsic || f->clears != clears || f->immediate != immediate) continue;
    if (!same_walks(&f->asked, i)) continue;
    *i = f->is;
    return true;
  }
  found *f = &v->found[v->nfound++ % FOUND];
  *f = (found){.intrinsic = TARN_NONE, .asked = *i};
  if (!tarn_unit_issue_of(v->p, intrinsic, clears, immediate, i)) return false;
  f->intrinsic = intrinsic;
  f->immediate = immediate;
  f->clears = clears;
  f->is = *i;
  return true;
}

/* The tensor's slot holds this. */
static void hold(visit *v, uint32_t t, const tarn_unit_box *b) {
  v->of[t] = *b;
  strides_of(&v->p->tensor[t], b, v->stride[t]);
}
static int64_t entry_at(const visit *v, uint32_t t, const tarn_unit_box *here) {
  const tarn_unit_box *of = &v->of[t];
  int64_t sum = 0;
  if (v->p->tensor[t].unpadded) return entry_unpadded(&v->p->tensor[t], of, here);
  for (uint32_t d = 0; d < v->p->n; d++) sum += (here->lo[d] - of->lo[d]) * v->stride[t][d];
  return sum;
}
/* The statement's end for the visit. */
static void say(visit *v, const tarn_unit_stmt *s) { v->ok = v->ok && v->f(v->user, v->p, s); }
static tarn_unit_stmt stmt(visit *v, tarn_unit_does does, const tarn_unit_box *box) {
  return (tarn_unit_stmt){.does = does, .box = box, .of = v->of, .slot = v->slot};
}
/* An operand's tile that one of its slots still has is there; another one replaces the one that
 * came first. True: it is to be filled. */
static bool enter_kept(visit *v, uint32_t t, const tarn_unit_box *b, bool again) {
  const tarn_unit_tensor *x = &v->p->tensor[t];
  slots *s = &v->kept[t];
  tile k = {.n = {0}};
  if (s->n && !again && same_box(&v->of[t], b, v->dims[t])) return false;
  for (uint32_t i = 0; i < x->n; i++) tarn_unit_span(&x->at[i], b, &k.first[i], &k.n[i]);
  hold(v, t, b);
  for (uint32_t i = 0; i < s->n && i < x->slots && !again; i++) {
    uint32_t at = (v->slot[t] + i) % (s->n < x->slots ? s->n : x->slots);
    if (memcmp(&s->tile[at], &k, sizeof k) != 0) continue;
    v->slot[t] = at;
    return false;
  }
  v->slot[t] = s->n++ % x->slots;
  s->tile[v->slot[t]] = k;
  return true;
}
/* True where the tile was another one, or none. */
static bool enter(visit *v, uint32_t t, const tarn_unit_box *b, bool again) {
  const tarn_unit_tensor *x = &v->p->tensor[t];
  if (t < v->p->sums && t < KEEPING) return enter_kept(v, t, b, again);
  if (v->filled[t] && same_box(&v->of[t], b, v->dims[t])) return false;
  v->slot[t] = v->filled[t] ? (v->slot[t] + 1) % x->slots : 0;
  v->filled[t] = true;
  hold(v, t, b);
  return true;
}
static void fill(visit *v, uint32_t t) {
  const tarn_unit_tensor *x = &v->p->tensor[t];
  tarn_unit_box b;
  unit_box_at(v->p, x->at_loop, v->at, &b);
  if (!v->ok || !tarn_unit_entries(x, &b) || !enter(v, t, &b, x->fresh)) return;
  tarn_unit_stmt s = stmt(v, TARN_UNIT_FILL, &v->of[t]);
  s.tensor = t;
  v->ok = tarn_unit_moves(v->p, x, &b, NULL, NULL) >= 0;
  say(v, &s);
}
/* An intrinsic over a box: operand k of it is tensor operand[k], TARN_NONE: an immediate. */
static void issue(visit *v, tarn_unit_stmt s, uint32_t intrinsic, bool clears, uint32_t dims) {
  const tarn_unit_plan *p = v->p;
  uint32_t nop = p->hw->intrin[intrinsic].nop;
  s.intrinsic = intrinsic;
  for (uint32_t d = 0; d < dims; d++) {
    int64_t rows = intrinsic == p->product && d == p->rows ? p->form.m : 1;
    tarn_unit_walk w = {.trips = tarn_ceildiv(s.box->n[d], rows), .sums = d >= p->nacc};
    for (uint32_t k = 0; k < nop; k++)
      if (s.operand[k] != TARN_NONE) w.step[k] = rows * v->stride[s.operand[k]][d];
    s.issue.walk[s.issue.nwalk++] = w;
  }
  for (uint32_t k = 0; k < nop; k++)
    if (s.operand[k] != TARN_NONE) s.first[k] = entry_at(v, s.operand[k], s.box);
  v->ok = v->ok && issue_of(v, intrinsic, clears, s.immediate, &s.issue);
  say(v, &s);
}
static void operands(const tarn_unit_plan *p, tarn_unit_stmt *s, uint32_t rows, uint32_t columns,
                     uint32_t sums) {
  for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++) s->operand[k] = TARN_NONE;
  if (rows != TARN_NONE) s->operand[p->form.operand[0]] = rows;
  if (columns != TARN_NONE) s->operand[p->form.operand[1]] = columns;
  s->operand[2] = sums;
}
static void clear(visit *v, uint32_t t) {
  if (unit_begins(v->p->hw, v->p->product)) return;
  tarn_unit_stmt s = stmt(v, TARN_UNIT_CLEAR, &v->of[t]);
  s.tensor = t;
  operands(v->p, &s, TARN_NONE, TARN_NONE, t);
  issue(v, s, v->p->product, true, v->p->nacc);
}
/* All that is summed begins there. */
static bool sums_begin(const visit *v, const tarn_unit_box *b) {
  bool begins = true;
  for (uint32_t d = v->p->nacc; d < v->p->n; d++)
    begins = begins && b->lo[d] == v->of[v->p->sums].lo[d];
  return begins;
}
static void multiply(void *user, const tarn_unit_box *b) {
  visit *v = user;
  tarn_unit_stmt s = stmt(v, TARN_UNIT_PRODUCT, b);
  s.begins = sums_begin(v, b);
  operands(v->p, &s, 0, 1, v->p->sums);
  issue(v, s, v->p->product, false, v->p->n);
}
/* All operands at once, part by part of the result. */
static void kernel(visit *v, const tarn_unit_box *leaf) {
  tarn_unit_stmt s = stmt(v, TARN_UNIT_PRODUCT, leaf);
  s.begins = true;
  for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++) s.operand[k] = k <= v->p->sums ? k : TARN_NONE;
  issue(v, s, v->p->product, false, v->p->nacc);
}
/* An addend from its source, by the identity. */
static void load(visit *v, uint32_t t) {
  const tarn_unit_tensor *x = &v->p->tensor[t];
  tarn_unit_box b;
  uint32_t one = 0;
  while (one < v->p->ntensor && v->p->tensor[one].what != TARN_UNIT_ONE) one++;
  fill(v, x->source);
  fill(v, one);
  unit_box_at(v->p, x->at_loop, v->at, &b);
  if (!enter(v, t, &b, false)) return;
  clear(v, t);
  tarn_unit_stmt s = stmt(v, TARN_UNIT_LOAD, &v->of[t]);
  s.tensor = t;
  s.begins = true;
  operands(v->p, &s, x->source, one, t);
  issue(v, s, v->p->product, false, v->p->nacc);
}
/* A tile that a transfer computes into the accumulators, all of them at once. */
static void onto(visit *v, uint32_t t) {
  const tarn_unit_plan *p = v->p;
  hold(v, t, &v->of[p->sums]);
  v->slot[t] = v->slot[p->sums];
  tarn_unit_stmt s = stmt(v, TARN_UNIT_FILL, &v->of[t]);
  s.tensor = t;
  v->ok = v->ok && p->tensor[p->result].at_loop == p->tensor[p->sums].at_loop &&
          tarn_unit_moves(p, &p->tensor[t], s.box, NULL, NULL) >= 0;
  say(v, &s);
}
static void vector_step(visit *v, const tarn_unit_step *x, const tarn_unit_box *box) {
  const tarn_unit_plan *p = v->p;
  const tarn_hw_intrinsic *n = &p->hw->intrin[x->intrinsic];
  tarn_unit_stmt s = stmt(v, TARN_UNIT_VECTOR, box);
  s.immediate = x->immediate;
  uint32_t inplace = unit_replaced(p->hw, x->intrinsic);
  for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++) s.operand[k] = TARN_NONE;
  for (uint32_t k = 0; k < n->nop; k++) {
    if (n->op[k].immediate) continue;
    s.operand[k] = k == inplace || k + 1 == n->nop ? x->to : x->from;
  }
  issue(v, s, x->intrinsic, false, p->nacc);
}
/* ---------------------------------------------------------------- taps */
static bool next_tap(const tarn_unit_plan *p, const tarn_unit_box *leaf, tarn_unit_box *b) {
  for (uint32_t d = p->n; d-- > p->nacc; b->lo[d] = leaf->lo[d])
    if (++b->lo[d] < leaf->lo[d] + leaf->n[d]) return true;
  return false;
}
static void first_tap(const tarn_unit_plan *p, const tarn_unit_box *leaf, tarn_unit_box *b) {
  *b = *leaf;
  for (uint32_t d = p->nacc; d < p->n; d++) b->n[d] = 1;
}
/* Each tap of a window, loaded by the identity: the first one is what the accumulators begin with.
 * A map has one. */
static void taps(visit *v, const tarn_unit_box *leaf) {
  const tarn_unit_plan *p = v->p;
  const tarn_unit_step fold = {p->fold, p->sums, p->tap, 0};
  tarn_unit_box b;
  first_tap(p, leaf, &b);
  uint32_t to = sums_begin(v, &b) ? p->sums : p->tap;
  do {
    if (p->way == TARN_UNIT_FOLDS) hold(v, p->tap, &v->of[p->sums]);
    if (to != p->sums) clear(v, to);
    tarn_unit_stmt s = stmt(v, TARN_UNIT_LOAD, &b);
    s.tensor = to;
    s.begins = true;
    operands(p, &s, 0, 1, to);
    issue(v, s, p->product, false, p->nacc);
    if (to != p->sums) vector_step(v, &fold, &v->of[p->sums]);
    to = p->tap;
  } while (next_tap(p, leaf, &b));
}
static void join(void *user, const tarn_unit_box *b) {
  visit *v = user;
  vector_step(v, &(tarn_unit_step){v->p->fold, v->p->sums, 0, 0}, b);
}
/* The accumulators become a tap, joined with itself. */
static void begin(visit *v, const tarn_unit_box *b) {
  tarn_unit_stmt s = stmt(v, TARN_UNIT_VECTOR, b);
  s.begins = true;
  for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++) s.operand[k] = k < 2 ? 0 : TARN_NONE;
  s.operand[2] = v->p->sums;
  issue(v, s, v->p->fold, false, v->p->nacc);
}
typedef struct lies {
  const tarn_unit_box *all;
  uint32_t nacc;
  bool inside;
} lies;
static void note_inside(void *user, const tarn_unit_box *b) {
  lies *l = user;
  l->inside = !memcmp(b->n, l->all->n, l->nacc * sizeof *b->n);
}
/* A tap that no result of the box has in padding. */
static bool find_inside(const tarn_unit_plan *p, const tarn_unit_box *leaf, tarn_unit_box *b) {
  lies l = {.all = leaf, .nacc = p->nacc};
  first_tap(p, leaf, b);
  do tarn_unit_inside(p, b, note_inside, &l);
  while (!l.inside && next_tap(p, leaf, b));
  return l.inside;
}
/* Taps that lie beside the accumulators, those in padding left out. */
static void windows(visit *v, const tarn_unit_box *leaf) {
  const tarn_unit_plan *p = v->p;
  tarn_unit_box from = {.lo = {0}};
  tarn_unit_box b;
  bool begins = sums_begin(v, leaf);
  if (begins) {
    v->ok = v->ok && find_inside(p, leaf, &from);
    if (!v->ok) return;
    begin(v, &from);
  }
  first_tap(p, leaf, &b);
  do
    if (!begins || memcmp(&b, &from, sizeof b) != 0) tarn_unit_inside(p, &b, join, v);
  while (next_tap(p, leaf, &b));
}
/* Do the entries of a part of a tile follow one another? */
static bool in_one_piece(const tarn_unit_tensor *t, const tarn_unit_box *of,
                         const tarn_unit_box *part) {
  bool several = false;
  for (uint32_t i = 0; i < t->n; i++) {
    int64_t n = tarn_unit_room(&t->at[i], part);
    if (several && n != tarn_unit_room(&t->at[i], of)) return false;
    several |= n > 1;
  }
  return true;
}
bool tarn_unit_leaves_in_parts(const tarn_unit_plan *p) {
  const int64_t at[TARN_MAX_LEVELS] = {0};
  tarn_unit_box of;
  tarn_unit_box part;
  unit_box_at(p, p->tensor[p->sums].at_loop, at, &of);
  unit_box_at(p, p->nloop, at, &part);
  return in_one_piece(&p->tensor[p->result], &of, &part);
}

/* ---------------------------------------------------------------- statements */
/* Of a tile, or of a part of it, whose sums are complete. */
static tarn_unit_box complete(const visit *v) {
  tarn_unit_box b;
  unit_box_at(v->p, v->p->tensor[v->p->result].at_loop, v->at, &b);
  return b;
}
static void leave(visit *v) {
  const tarn_unit_plan *p = v->p;
  const tarn_unit_tensor *result = &p->tensor[p->result];
  tarn_unit_box box = complete(v);
  hold(v, p->result, &v->of[p->sums]);
  v->slot[p->result] = v->slot[p->sums];
  tarn_unit_stmt s = stmt(v, TARN_UNIT_LEAVE, &box);
  s.tensor = p->result;
  s.first[0] = entry_at(v, p->result, &box);
  v->ok = v->ok && in_one_piece(result, &v->of[p->result], &box) &&
          tarn_unit_moves(p, result, &box, NULL, NULL) >= 0;
  say(v, &s);
}
static void do_copy(visit *v, const tarn_plan_stmt *s) {
  if (s->read == v->p->result) leave(v);
  else if (v->p->tensor[s->read].what == TARN_UNIT_ONTO) onto(v, s->read);
  else fill(v, s->read);
}
static void begin_sums(visit *v, const tarn_plan_stmt *s) {
  tarn_unit_box b;
  unit_box_at(v->p, v->p->tensor[s->read].at_loop, v->at, &b);
  if (enter(v, s->read, &b, false) && s->n) clear(v, s->read);
}
/* What a tile adds to the accumulators, or what is loaded. */
static void do_unit(visit *v, const tarn_plan_stmt *s) {
  const tarn_unit_plan *p = v->p;
  tarn_unit_box leaf;
  if (s->read != p->sums) {
    load(v, s->read);
    return;
  }
  unit_box_at(p, p->nloop, v->at, &leaf);
  switch (p->way) {
  case TARN_UNIT_MULTIPLIES: tarn_unit_inside(p, &leaf, multiply, v); break;
  case TARN_UNIT_WHOLE: kernel(v, &leaf); break;
  case TARN_UNIT_JOINS: windows(v, &leaf); break;
  default: taps(v, &leaf);
  }
}
static void do_compute(visit *v, const tarn_plan_stmt *s) {
  const tarn_unit_step *x = &v->p->step[s->value];
  tarn_unit_box box = complete(v);
  if (v->p->tensor[x->to].what == TARN_UNIT_COPY) {
    hold(v, x->to, &v->of[v->p->sums]);
    clear(v, x->to);
  }
  vector_step(v, x, &box);
}
static void run(visit *v, const tarn_plan_stmt *s, const tarn_plan_stmt *end);
static void do_loop(visit *v, const tarn_plan_stmt *s) {
  int64_t trips = trips_of(v->p, s->var, v->at);
  for (int64_t i = 0; i < trips && v->ok; i++) {
    v->at[s->var] = i;
    run(v, s + 1, s + s->size);
  }
  v->at[s->var] = 0;
}
static void do_phase(visit *v, const tarn_plan_stmt *s) {
  if (s->phase == TARN_PLAN_BEGIN) begin_sums(v, s);
  else run(v, s + 1, s + s->size);
}
static bool holds(const visit *v, tarn_plan_test t) {
  int64_t last = trips_of(v->p, t.var, v->at) - 1;
  return v->at[t.var] == (t.is == TARN_PLAN_LAST ? last : t.is);
}
static void do_either(visit *v, const tarn_plan_stmt *s) {
  for (uint32_t i = 0; i < s->n; i++)
    if (!holds(v, s->test[i])) return;
  run(v, s + 1, s + s->size);
}
typedef void do_fn(visit *v, const tarn_plan_stmt *s);
static do_fn *const does[TARN_PLAN_OPS] = {
    [TARN_PLAN_LOOP] = do_loop, [TARN_PLAN_COPY] = do_copy,       [TARN_PLAN_PHASE] = do_phase,
    [TARN_PLAN_UNIT] = do_unit, [TARN_PLAN_COMPUTE] = do_compute, [TARN_PLAN_EITHER] = do_either};
static void run(visit *v, const tarn_plan_stmt *s, const tarn_plan_stmt *end) {
  for (; s < end && v->ok; s += s->size) does[s->op](v, s);
}
bool tarn_unit_visit(const tarn_unit_plan *p, tarn_unit_visit_fn *f, void *user) {
  slots kept[KEEPING];
  tarn_plan_stmt own[UNIT_STATEMENTS];
  tarn_plan_test test[UNIT_TESTS];
  visit v = {.p = p, .kept = kept, .f = f, .user = user, .ok = true};
  for (uint32_t t = 0; t < KEEPING; t++) kept[t].n = 0;
  for (uint32_t t = 0; t < p->ntensor; t++) v.dims[t] = tarn_unit_dims(&p->tensor[t]);
  tarn_plan_code code = p->code;
  if (!code.n) code = (tarn_plan_code){unit_program(p, own, test), own, 0};
  run(&v, code.p, code.p + code.n);
  return v.ok;
}
