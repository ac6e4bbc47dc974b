/* The loop program of a kernel on such a machine: loops over tiles, each tensor filled where a loop
 * outside of its tile has changed it, the product of each tile added to the accumulators, and what
 * is made of these when their sums are complete. */
#include "plan/unit_internal.h"
#include <string.h>

/* ---------------------------------------------------------------- tiles */
uint32_t tarn_unit_dims(const tarn_unit_tensor *t) {
  uint32_t m = 0;
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t k = 0; k < t->at[i].n; k++) m |= 1u << t->at[i].dim[k];
  return m;
}
/* What the first `loops` loops leave of each dim where they stand at `at`. */
static void box_at(const tarn_unit_plan *p, uint32_t loops, const int64_t *at, tarn_unit_box *b) {
  memset(b, 0, sizeof *b);
  memcpy(b->n, p->dim, sizeof b->n);
  for (uint32_t i = 0; i < loops; i++) {
    uint32_t d = p->loop[i].dim;
    b->lo[d] += at[i] * p->loop[i].step;
    b->n[d] = tarn_min(p->loop[i].step, b->n[d] - at[i] * p->loop[i].step);
  }
}
/* Loops trip within what those outside of them leave, so the last tile of a tile is smaller. */
static int64_t trips_of(const tarn_unit_plan *p, uint32_t loop, const int64_t *at) {
  tarn_unit_box b;
  box_at(p, loop, at, &b);
  return tarn_ceildiv(b.n[p->loop[loop].dim], p->loop[loop].step);
}
static bool next_tile(const tarn_unit_plan *p, int64_t *at) {
  for (uint32_t i = p->nloop; i-- > 0; at[i] = 0)
    if (++at[i] < trips_of(p, i, at)) return true;
  return false;
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
  bool ok; /* transfers and instructions can do all that came so far */
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
static bool issue_of(visit *v, uint32_t intrinsic, bool clears, tarn_unit_issue *i) {
  for (uint32_t k = 0; k < FOUND && k < v->nfound; k++) {
    const found *f = &v->found[k];
    if (f->intrinsic != intrinsic || f->clears != clears || !same_walks(&f->asked, i)) continue;
    *i = f->is;
    return true;
  }
  found *f = &v->found[v->nfound++ % FOUND];
  *f = (found){.intrinsic = TARN_NONE, .asked = *i};
  if (!tarn_unit_issue_of(v->p, intrinsic, clears, i)) return false;
  f->intrinsic = intrinsic;
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
static void fill(visit *v, uint32_t t, const int64_t *at) {
  tarn_unit_box b;
  bool again = v->p->tensor[t].fresh;
  for (uint32_t i = v->p->tensor[t].at_loop; i < v->p->nloop; i++) again = again && !at[i];
  box_at(v->p, v->p->tensor[t].at_loop, at, &b);
  if (!v->ok || !tarn_unit_entries(&v->p->tensor[t], &b) || !enter(v, t, &b, again)) return;
  tarn_unit_stmt s = stmt(v, TARN_UNIT_FILL, &v->of[t]);
  s.tensor = t;
  v->ok = tarn_unit_moves(v->p, &v->p->tensor[t], &b, NULL, NULL) >= 0;
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
  v->ok = v->ok && issue_of(v, intrinsic, clears, &s.issue);
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
static void multiply(void *user, const tarn_unit_box *b) {
  visit *v = user;
  tarn_unit_stmt s = stmt(v, TARN_UNIT_PRODUCT, b);
  s.begins = true;
  for (uint32_t d = v->p->nacc; d < v->p->n; d++)
    s.begins = s.begins && b->lo[d] == v->of[v->p->sums].lo[d];
  operands(v->p, &s, 0, 1, v->p->sums);
  issue(v, s, v->p->product, false, v->p->n);
}
static void product(visit *v, const int64_t *at) {
  tarn_unit_box leaf;
  box_at(v->p, v->p->nloop, at, &leaf);
  tarn_unit_inside(v->p, &leaf, multiply, v);
}
/* All operands at once, part by part of the result. */
static void kernel(visit *v, const int64_t *at) {
  tarn_unit_box leaf;
  box_at(v->p, v->p->nloop, at, &leaf);
  tarn_unit_stmt s = stmt(v, TARN_UNIT_PRODUCT, &leaf);
  s.begins = true;
  for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++) s.operand[k] = k <= v->p->sums ? k : TARN_NONE;
  issue(v, s, v->p->product, false, v->p->nacc);
}
/* An addend from its source, by the identity. */
static void load(visit *v, uint32_t t, uint32_t one, const int64_t *at) {
  const tarn_unit_tensor *x = &v->p->tensor[t];
  tarn_unit_box b;
  fill(v, x->source, at);
  fill(v, one, at);
  box_at(v->p, x->at_loop, at, &b);
  if (!enter(v, t, &b, false)) return;
  clear(v, t);
  tarn_unit_stmt s = stmt(v, TARN_UNIT_LOAD, &v->of[t]);
  s.tensor = t;
  s.begins = true;
  operands(v->p, &s, x->source, one, t);
  issue(v, s, v->p->product, false, v->p->nacc);
}
static void addends(visit *v, const int64_t *at) {
  const tarn_unit_plan *p = v->p;
  uint32_t one = 0;
  while (one < p->ntensor && p->tensor[one].what != TARN_UNIT_ONE) one++;
  for (uint32_t t = 0; t < p->ntensor; t++) {
    if (p->tensor[t].what != TARN_UNIT_ADDEND) continue;
    if (p->tensor[t].source == TARN_NONE) fill(v, t, at);
    else load(v, t, one, at);
  }
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
static bool next_tap(const tarn_unit_plan *p, tarn_unit_box *b) {
  for (uint32_t d = p->n; d-- > p->nacc; b->lo[d] = 0)
    if (++b->lo[d] < p->dim[d]) return true;
  return false;
}
/* Each tap of a window, loaded by the identity: the first one is what the accumulators begin with.
 * A map has one. */
static void taps(visit *v, const int64_t *at) {
  const tarn_unit_plan *p = v->p;
  const tarn_unit_step fold = {p->fold, p->sums, p->tap, 0};
  tarn_unit_box b;
  box_at(p, p->nloop, at, &b);
  for (uint32_t d = p->nacc; d < p->n; d++) b.n[d] = 1;
  uint32_t to = p->sums;
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
  } while (next_tap(p, &b));
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
  box_at(p, p->tensor[p->sums].at_loop, at, &of);
  box_at(p, p->nloop, at, &part);
  return in_one_piece(&p->tensor[p->result], &of, &part);
}
/* The sums of a tile, or of a part of it, are complete. */
static void finish(visit *v, const int64_t *at, const tarn_unit_box *box) {
  const tarn_unit_plan *p = v->p;
  const tarn_unit_tensor *result = &p->tensor[p->result];
  addends(v, at);
  for (uint32_t i = 0; i < p->nstep; i++) {
    uint32_t from = p->step[i].from;
    uint32_t to = p->step[i].to;
    if (p->tensor[to].what == TARN_UNIT_COPY) {
      hold(v, to, &v->of[p->sums]);
      clear(v, to);
    }
    if (from != TARN_NONE && p->tensor[from].what == TARN_UNIT_ONTO) onto(v, from);
    else vector_step(v, &p->step[i], box);
  }
  hold(v, p->result, &v->of[p->sums]);
  v->slot[p->result] = v->slot[p->sums];
  tarn_unit_stmt s = stmt(v, TARN_UNIT_LEAVE, box);
  s.tensor = p->result;
  s.first[0] = entry_at(v, p->result, box);
  v->ok = v->ok && in_one_piece(result, &v->of[p->result], box) &&
          tarn_unit_moves(p, result, box, NULL, NULL) >= 0;
  say(v, &s);
}
/* No loop over a sum goes on inside of the accumulators' tile. */
static bool sums_end(const tarn_unit_plan *p, const int64_t *at) {
  for (uint32_t i = p->tensor[p->sums].at_loop; i < p->nloop; i++)
    if (p->loop[i].dim >= p->nacc && at[i] + 1 < trips_of(p, i, at)) return false;
  return true;
}
/* What comes once to the vector unit comes first, while the product waits for its operands. */
static void early(visit *v, const int64_t *at) {
  const tarn_unit_plan *p = v->p;
  for (uint32_t t = p->sums; t < p->ntensor; t++)
    if (p->tensor[t].what == TARN_UNIT_ADDEND && p->tensor[t].source == TARN_NONE &&
        !p->tensor[t].at_loop)
      fill(v, t, at);
}
bool tarn_unit_visit(const tarn_unit_plan *p, tarn_unit_visit_fn *f, void *user) {
  slots kept[KEEPING];
  visit v = {.p = p, .kept = kept, .f = f, .user = user, .ok = true};
  int64_t at[TARN_MAX_LEVELS] = {0};
  int64_t next[TARN_MAX_LEVELS];
  const tarn_unit_tensor *sums = &p->tensor[p->sums];
  uint32_t result = p->tensor[p->result].at_loop;
  for (uint32_t t = 0; t < KEEPING; t++) kept[t].n = 0;
  for (uint32_t t = 0; t < p->ntensor; t++) v.dims[t] = tarn_unit_dims(&p->tensor[t]);
  early(&v, at);
  for (bool more = true; more && v.ok;) {
    tarn_unit_box b;
    tarn_unit_box then;
    for (uint32_t t = 0; t < p->sums; t++) fill(&v, t, at);
    box_at(p, sums->at_loop, at, &b);
    if (p->way == TARN_UNIT_FILLS) fill(&v, p->sums, at);
    else if (enter(&v, p->sums, &b, false) && p->way != TARN_UNIT_WHOLE) clear(&v, p->sums);
    if (p->way == TARN_UNIT_MULTIPLIES) product(&v, at);
    else if (p->way == TARN_UNIT_WHOLE) kernel(&v, at);
    else if (p->way != TARN_UNIT_FILLS) taps(&v, at);
    memcpy(next, at, sizeof next);
    more = next_tile(p, next);
    box_at(p, sums->at_loop, next, &then);
    bool last = !more || !same_box(&b, &then, v.dims[p->sums]);
    box_at(p, result, at, &b);
    if (result > sums->at_loop ? sums_end(p, at) : last) finish(&v, at, &b);
    memcpy(at, next, sizeof at);
  }
  return v.ok;
}

/* ---------------------------------------------------------------- places */
bool tarn_unit_places(const tarn_unit_plan *p, int64_t *entries, int64_t *first, uint32_t *memory,
                      int64_t *needs) {
  int64_t used[TARN_UNIT_MEMORIES] = {0};
  int64_t at[TARN_MAX_LEVELS] = {0};
  const char *shadows = p->hw->mem[p->tensor[p->result].memory].shadow_of;
  for (uint32_t t = 0; t < p->ntensor; t++) {
    const tarn_unit_tensor *x = &p->tensor[t];
    tarn_unit_box b;
    box_at(p, x->at_loop, at, &b);
    entries[t] = tarn_unit_most_entries(x, &b);
    bool shared = t == p->result && (shadows || x->memory == p->tensor[p->sums].memory);
    shared |= x->what == TARN_UNIT_ONTO;
    first[t] = shared ? first[p->sums] : used[x->memory];
    if (shared) entries[t] = entries[p->sums];
    if (!shared) used[x->memory] += entries[t] * x->slots;
  }
  for (uint32_t i = 0; i < p->hw->nmem; i++) {
    *memory = i;
    *needs = used[i];
    if (used[i] > tarn_hw_depth(&p->hw->mem[i]) && p->hw->mem[i].managed) return false;
  }
  return true;
}

/* ---------------------------------------------------------------- schedules */
static const tarn_hold *hold_of(const tarn_unit_plan *p, const tarn_stage_sched *s, uint32_t t) {
  const tarn_unit_tensor *x = &p->tensor[t];
  for (uint32_t i = 0; i < s->nhold; i++) {
    const tarn_hold *h = &s->hold[i];
    bool same = h->what == TARN_HOLD_OPERAND ? x->read == h->operand && x->source == TARN_NONE
                : h->what == TARN_HOLD_ACCUMULATORS ? t == p->sums
                                                    : t == p->result;
    if (same && !strcmp(h->memory, p->hw->mem[x->memory].name)) return h;
  }
  return NULL;
}
/* Levels up to the innermost one that something is held at are loops over tiles. */
static uint32_t tile_levels(const tarn_stage_sched *s) {
  int32_t last = -1;
  for (uint32_t i = 0; i < s->nhold; i++) last = s->hold[i].at > last ? s->hold[i].at : last;
  return (uint32_t)(last + 1);
}
static void held_so(tarn_unit_plan *p, uint32_t t, const tarn_hold *h) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  if (!h) return;
  p->tensor[t].fresh = h->fresh;
  if (h->fresh && t >= p->sums)
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: no factor is held in %s: it is never fresh",
               h->memory);
  if (h->slides || h->npart || h->pad || h->skew)
    tarn_raise(cx, TARN_BAD_INPUT,
               "schedule: %s is a memory of %s, where nothing slides, has an order, pad or skew",
               h->memory, p->hw->name);
  if (h->gaps && (t || !tarn_unit_bridge(p)))
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: what is held in %s cannot come with gaps", h->memory);
  if (h->unpadded && (t || !tarn_unit_unpad(p)))
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: what is held in %s cannot be unpadded", h->memory);
}
void tarn_unit_schedule(tarn_unit_plan *p, const tarn_schedule *sched) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const tarn_stage_sched *s = &sched->stage[sched->nstage - 1];
  uint32_t of_level[TARN_MAX_LEVELS + 1]; /* loops outside of, and at, each level */
  int64_t left[TARN_MAX_DIMS];
  uint32_t memory;
  int64_t needs;
  int64_t entries[TARN_UNIT_TENSORS];
  int64_t first[TARN_UNIT_TENSORS];
  p->nloop = 0;
  memcpy(left, p->dim, sizeof left);
  for (uint32_t i = 0; i < tile_levels(s); i++) {
    const tarn_level *l = &s->level[i];
    int64_t step = tarn_ceildiv(l->step, p->unit[l->dim]);
    if (l->step % p->unit[l->dim] && l->step < p->extent[l->dim])
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: level %u steps %lld elements of d%u, a unit takes %lld at once", i,
                 (long long)l->step, l->dim, (long long)p->unit[l->dim]);
    if (step < left[l->dim]) p->loop[p->nloop++] = (tarn_unit_loop){l->dim, step};
    left[l->dim] = tarn_min(left[l->dim], step);
    of_level[i] = p->nloop;
  }
  for (uint32_t t = 0; t < p->ntensor; t++) {
    tarn_unit_tensor *x = &p->tensor[t];
    const tarn_hold *h = hold_of(p, s, t);
    bool operand = x->what == TARN_UNIT_ROWS || x->what == TARN_UNIT_COLUMNS;
    x->at_loop = h && h->at >= 0 ? of_level[h->at] : h ? 0 : operand ? p->nloop : TARN_NONE;
    x->slots = h ? h->slots : 1;
    held_so(p, t, h);
    if (x->slots > TARN_UNIT_SLOTS)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: %u slots in %s, %d are the most", x->slots,
                 p->hw->mem[x->memory].name, TARN_UNIT_SLOTS);
  }
  tarn_unit_tensor *sums = &p->tensor[p->sums];
  for (uint32_t t = 0; t < p->ntensor; t++)
    if (p->tensor[t].at_loop == TARN_NONE || t == p->result) { /* or each part when it ends */
      uint32_t outside = sums->at_loop == TARN_NONE ? 0 : sums->at_loop;
      bool parts = t == p->result && p->tensor[t].at_loop == p->nloop && p->nloop > outside;
      p->tensor[t].at_loop = parts ? p->nloop : outside;
      if (t == p->result) p->tensor[t].slots = sums->slots;
    }
  for (uint32_t t = 0; t < p->ntensor; t++) /* what an addend is made of comes with it */
    if (p->tensor[t].source != TARN_NONE)
      p->tensor[p->tensor[t].source].at_loop = p->tensor[t].at_loop;
  for (uint32_t i = 0; i < sums->at_loop; i++)
    if (p->loop[i].dim >= p->nacc)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: the accumulators are held inside of a loop over d%u, which is summed",
                 p->loop[i].dim);
  if (!tarn_unit_places(p, entries, first, &memory, &needs))
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: what is held in %s takes %lld bytes, it has %lld",
               p->hw->mem[memory].name, (long long)needs * p->hw->mem[memory].entry,
               (long long)p->hw->mem[memory].capacity);
}

static void add_level(tarn_stage_sched *s, uint32_t d, int64_t step) {
  s->level[s->nlevel++] = (tarn_level){(uint8_t)d, TARN_SERIAL, step};
}
static tarn_hold hold_for(const tarn_unit_plan *p, uint32_t t) {
  const tarn_unit_tensor *x = &p->tensor[t];
  tarn_hold h = {.memory = p->hw->mem[x->memory].name, .slots = (uint8_t)x->slots};
  h.what = t == p->sums     ? TARN_HOLD_ACCUMULATORS
           : t == p->result ? TARN_HOLD_RESULT
                            : TARN_HOLD_OPERAND;
  h.operand = (uint8_t)(x->read == TARN_NONE ? 0 : x->read);
  h.at = (int32_t)x->at_loop - 1;
  h.fresh = x->fresh;
  h.unpadded = x->unpadded;
  h.gaps = x->gaps;
  return h;
}
/* A stage that the unit computes along with the last one: its loops as they are. */
static void whole_stage(const tarn_nest *n, uint32_t stage, tarn_stage_sched *g) {
  const tarn_stage_dims d = tarn_stage_dims_of(n, stage);
  for (uint32_t i = n->depth; i < d.n; i++) add_level(g, i, 1);
}
const tarn_schedule *tarn_unit_scheduled(const tarn_unit_plan *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_schedule *s = TARN_NEW(cx, tarn_schedule);
  const tarn_nest *nest = tarn_nest_get(p->L, p->k->nest);
  uint32_t last = nest->nstage - 1;
  tarn_stage_sched *stage = TARN_ARRAY(cx, tarn_stage_sched, nest->nstage);
  tarn_stage_sched *g = &stage[last];
  tarn_hold *hold = TARN_ARRAY(cx, tarn_hold, p->ntensor);
  tarn_unit *u = TARN_NEW(cx, tarn_unit);
  for (uint32_t i = 0; i < p->nloop; i++)
    add_level(g, p->loop[i].dim, p->loop[i].step * p->unit[p->loop[i].dim]);
  g->acc = p->tensor[p->sums].at_loop;
  for (uint32_t i = 0; i < last; i++) whole_stage(nest, i, &stage[i]);
  for (uint32_t d = 0; d < nest->depth; d++)
    s->shared[s->nshared++] = (tarn_level){(uint8_t)d, TARN_SERIAL, 1};
  for (uint32_t d = nest->depth; d < p->n; d++) {
    if (p->unit[d] > 1) add_level(g, d, p->unit[d]);
    add_level(g, d, 1);
  }
  for (uint32_t t = 0; t < p->ntensor; t++)
    if (p->tensor[t].what == TARN_UNIT_SUMS || p->tensor[t].what == TARN_UNIT_RESULT ||
        (p->tensor[t].read != TARN_NONE && p->tensor[t].source == TARN_NONE &&
         p->tensor[t].what != TARN_UNIT_ONTO))
      hold[g->nhold++] = hold_for(p, t);
  *u = (tarn_unit){p->hw->intrin[p->product].name, p->rows, p->columns, p->sum};
  g->hold = hold;
  g->unit = u;
  s->nstage = nest->nstage;
  s->stage = stage;
  return s;
}
