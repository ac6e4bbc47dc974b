/* Programs and schedules as text, and the check of a schedule. */
#include "plan/hold.h"
#include "plan/internal.h"
#include <stdio.h>
#include <string.h>

const char *const tarn_plan_level_names[PLAN_LEVEL_KINDS] = {"serial", "parallel", "unroll",
                                                             "vector", "dot",      "team"};

static void print_levels(tarn_buf *b, const tarn_level *l, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    tarn_buf_fmt(b, " (%s %u %lld)", tarn_plan_level_names[l[i].kind], l[i].dim,
                 (long long)l[i].step);
}
static void print_dims(tarn_buf *b, const char *word, uint32_t open) {
  if (!open) return;
  tarn_buf_fmt(b, " (%s", word);
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++)
    if (open >> d & 1) tarn_buf_fmt(b, " %u", d);
  tarn_buf_str(b, ")");
}
static const char *const held[] = {
    [TARN_HOLD_ACCUMULATORS] = "accumulators", [TARN_HOLD_RESULT] = "result"};
static void print_hold(tarn_buf *b, const tarn_hold *h) {
  if (h->what == TARN_HOLD_OPERAND) tarn_buf_fmt(b, " (hold %u ", h->operand);
  else tarn_buf_fmt(b, " (hold %s ", held[h->what]);
  tarn_sx_name(b, h->memory, strlen(h->memory));
  if (h->at < 0) tarn_buf_str(b, " (at all)");
  else tarn_buf_fmt(b, " (at %d)", h->at);
  if (h->slots > 1) tarn_buf_fmt(b, " (slots %u)", h->slots);
  if (h->fresh) tarn_buf_str(b, " (fresh)");
  if (h->slides) tarn_buf_str(b, " (slides)");
  if (h->unpadded) tarn_buf_str(b, " (unpadded)");
  if (h->gaps) tarn_buf_str(b, " (gaps)");
  if (h->npart) tarn_buf_str(b, " (order");
  for (uint32_t i = 0; i < h->npart; i++) {
    const tarn_hold_part *p = &h->part[i];
    tarn_buf_fmt(b, " d%u", p->dim);
    if (p->div > 1) tarn_buf_fmt(b, "/%lld", (long long)p->div);
    if (p->mod) tarn_buf_fmt(b, "%%%lld", (long long)p->mod);
  }
  if (h->npart) tarn_buf_str(b, ")");
  if (h->pad) tarn_buf_fmt(b, " (pad %u)", h->pad);
  if (h->skew) tarn_buf_fmt(b, " (skew %u)", h->skew);
  tarn_buf_str(b, ")");
}
static void print_unit(tarn_buf *b, const tarn_unit *u) {
  tarn_buf_str(b, " (unit ");
  tarn_sx_name(b, u->name, strlen(u->name));
  if (u->rows != TARN_NONE) tarn_buf_fmt(b, " (rows d%u)", u->rows);
  if (u->columns != TARN_NONE) tarn_buf_fmt(b, " (columns d%u)", u->columns);
  if (u->sum != TARN_NONE) tarn_buf_fmt(b, " (sum d%u)", u->sum);
  if (u->pairs) tarn_buf_str(b, " (pairs)");
  tarn_buf_str(b, ")");
}
void tarn_schedule_print(tarn_buf *b, const tarn_schedule *s) {
  tarn_buf_str(b, "(schedule");
  if (s->nshared) {
    tarn_buf_str(b, " (shared");
    print_dims(b, "open", s->open);
    print_dims(b, "brief", s->brief);
    print_levels(b, s->shared, s->nshared);
    tarn_buf_str(b, ")");
  }
  for (uint32_t i = 0; i < s->nstage; i++) {
    tarn_buf_fmt(b, " (stage (acc %u)", s->stage[i].acc);
    print_dims(b, "open", s->stage[i].open);
    print_dims(b, "brief", s->stage[i].brief);
    print_levels(b, s->stage[i].level, s->stage[i].nlevel);
    for (uint32_t h = 0; h < s->stage[i].nhold; h++) print_hold(b, &s->stage[i].hold[h]);
    if (s->stage[i].unit) print_unit(b, s->stage[i].unit);
    tarn_buf_str(b, ")");
  }
  tarn_buf_str(b, ")");
}

tarn_level_fault tarn_levels_check(const tarn_level *l, uint32_t n, uint32_t from, uint32_t to,
                                   uint32_t *at) {
  int64_t last[TARN_MAX_DIMS * 2] = {0};
  for (*at = 0; *at < n; ++*at) {
    const tarn_level *x = &l[*at];
    if (x->dim < from || x->dim >= to) return TARN_LEVEL_FOREIGN;
    if (x->step < 1 || (last[x->dim] && last[x->dim] % x->step)) return TARN_LEVEL_UNEVEN;
    last[x->dim] = x->step;
  }
  for (*at = from; *at < to; ++*at)
    if (last[*at] != 1) return TARN_DIM_UNCOVERED;
  return TARN_LEVELS_FINE;
}
static void check_levels(tarn_ctx *cx, const tarn_level *l, uint32_t n, uint32_t from, uint32_t to,
                         uint32_t stage) {
  uint32_t at;
  tarn_level_fault f = tarn_levels_check(l, n, from, to, &at);
  if (f == TARN_LEVEL_FOREIGN)
    tarn_raise(cx, TARN_BAD_INPUT,
               "schedule: stage %u: level %u walks dim %u, which is not its own", stage, at,
               l[at].dim);
  if (f == TARN_LEVEL_UNEVEN)
    tarn_raise(cx, TARN_BAD_INPUT,
               "schedule: stage %u: the steps of dim %u do not divide one another", stage,
               l[at].dim);
  if (f == TARN_DIM_UNCOVERED)
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: dim %u is not covered", stage, at);
  for (uint32_t i = 0, dims = 0; i < n; i++) {
    if (l[i].kind != TARN_VECTOR) continue;
    if (dims >> l[i].dim & 1)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: dim %u goes along vectors twice", stage,
                 l[i].dim);
    dims |= 1u << l[i].dim;
  }
}
/* The first level of each open dim: see tarn_schedule. red: the first reduce dim. What is computed
 * twice must not be added to what is there. */
static void check_open(tarn_ctx *cx, const tarn_level *l, uint32_t n, uint32_t open, uint32_t brief,
                       uint32_t red, uint32_t acc, uint32_t stage, const int64_t *extent) {
  bool resumes = false;
  for (uint32_t i = 0; i < acc; i++) resumes |= l[i].dim >= red;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = l[i].dim;
    if (!(open >> d & 1)) continue;
    open &= ~(1u << d);
    bool loop = l[i].kind == TARN_SERIAL || (l[i].kind == TARN_PARALLEL && d < red);
    bool beside = d < red ? i >= acc : i < acc;
    if (!loop || beside || (d < red && extent[d] < l[i].step && !(brief >> d & 1)))
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: stage %u: level %u of open dim %u is no loop %s the accumulators, or "
                 "the dim is shorter than its step",
                 stage, i, d, d < red ? "outside of" : "inside of");
    if (d < red && l[i].step > 1 && resumes)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: stage %u: open dim %u beside a sum outside of the accumulators", stage,
                 d);
  }
  if (open) tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: an open dim it has not", stage);
}
/* A unit that computes all of a nest holds the nest's operands, outside of all loops. */
static bool is_whole(const tarn_unit *u) {
  return u && u->rows == TARN_NONE && u->columns == TARN_NONE && u->sum == TARN_NONE;
}
static void check_holds(tarn_ctx *cx, const tarn_nest *n, const tarn_stage_sched *s, uint32_t nread,
                        uint32_t stage) {
  if (is_whole(s->unit)) nread = n->nchild;
  for (uint32_t i = 0; i < s->nhold; i++) {
    const tarn_hold *h = &s->hold[i];
    if (n->depth && !is_whole(s->unit) && h->what != TARN_HOLD_RESULT)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: holds inside of shared loops", stage);
    if (h->what == TARN_HOLD_OPERAND && h->operand >= nread)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: a hold of operand %u of %u", stage,
                 h->operand, nread);
    if (h->at >= (int32_t)s->nlevel)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: a hold at level %d of %u", stage, h->at,
                 s->nlevel);
  }
}
void tarn_schedule_check(tarn_lang *L, const tarn_nest *n, const tarn_schedule *s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  if (s->nstage != n->nstage)
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: %u stages for a nest of %u", s->nstage, n->nstage);
  check_levels(cx, s->shared, s->nshared, 0, n->depth, TARN_NONE);
  check_open(cx, s->shared, s->nshared, s->open, s->brief, n->depth, s->nshared, TARN_NONE,
             n->shared);
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *st = &n->stage[i];
    uint32_t acc = (uint32_t)n->depth + st->nown;
    check_levels(cx, s->stage[i].level, s->stage[i].nlevel, n->depth, acc + st->nred, i);
    if (s->stage[i].acc > s->stage[i].nlevel)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: acc beyond its levels", i);
    int64_t extent[TARN_MAX_DIMS];
    tarn_nest_dims(n, st, extent);
    const tarn_func *f = tarn_fn_get(L, st->fn);
    uint32_t inside = tarn_plan_acc(&s->stage[i], f->red != TARN_NONE);
    check_open(cx, s->stage[i].level, s->stage[i].nlevel, s->stage[i].open, s->stage[i].brief, acc,
               inside, i, extent);
    check_holds(cx, n, &s->stage[i], (uint32_t)f->nops + f->nepi, i);
  }
}

/* The order in which a strict kernel reduces, where it counts: as the nest lists its reduce dims,
 * one by one. */
static void check_order(tarn_ctx *cx, const tarn_nest *n, const tarn_stage_sched *s, uint32_t i) {
  uint32_t first = (uint32_t)n->depth + n->stage[i].nown;
  uint32_t last = first;
  for (uint32_t l = 0; l < s->nlevel; l++) {
    const tarn_level *x = &s->level[l];
    if (x->dim < first) continue;
    if (x->kind == TARN_VECTOR || x->kind == TARN_DOT || x->dim < last || l < s->acc)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: stage %u: level %u changes the order of a strict sum", i, l);
    last = x->dim;
  }
}
void tarn_schedule_fits(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                        const tarn_schedule *s) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  tarn_schedule_check(L, n, s);
  for (uint32_t i = 0; i < n->nstage; i++) {
    tarn_holds_check(L, hw, k, i, &s->stage[i]);
    for (uint32_t h = 0; h < s->stage[i].nhold; h++)
      if (s->stage[i].hold[h].unpadded || s->stage[i].hold[h].gaps)
        tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT,
                   "schedule: stage %u: holds are unpadded, or have gaps, on accelerators alone",
                   i);
  }
  for (uint32_t i = 0; i < n->nstage && k->strict; i++) {
    const tarn_func *f = tarn_fn_get(L, n->stage[i].fn);
    const tarn_reducer *r = f->red == TARN_NONE ? NULL : tarn_reducer_get(L, f->red);
    if (r && !tarn_plan_splits(L, r, n->stage[i].nred, false))
      check_order(tarn_lang_ctx(L), n, &s->stage[i], i);
  }
}

const char *tarn_schedule_text(tarn_ctx *cx, const tarn_schedule *s) {
  tarn_buf b = {.cx = cx};
  tarn_schedule_print(&b, s);
  return b.p;
}

/* ---- reading a schedule ---- */
typedef struct reader {
  tarn_lang *L;
  tarn_ctx *cx;
} reader;

/* Moves *from behind (WORD D…), if that stands there. */
static uint32_t get_dims(reader *r, const tarn_sx *s, const char *word, uint32_t *from) {
  uint32_t open = 0;
  if (*from >= s->n || !tarn_sx_is(s->kid[*from], word)) return 0;
  const tarn_sx *o = s->kid[(*from)++];
  for (uint32_t i = 1; i < o->n; i++)
    open |= 1u << tarn_sx_whole(r->cx, o, i, 0, TARN_MAX_DIMS - 1);
  return open;
}
static uint32_t get_levels(reader *r, const tarn_sx *s, uint32_t from, uint32_t to,
                           tarn_level *level) {
  if (to - from > TARN_MAX_LEVELS) tarn_sx_error(r->cx, s, "too many levels");
  for (uint32_t i = from; i < to; i++) {
    const tarn_sx *l = tarn_sx_kid(r->cx, s, i, TARN_SX_LIST, "a level");
    uint32_t kind = 0;
    while (kind < PLAN_LEVEL_KINDS && !tarn_sx_is(l, tarn_plan_level_names[kind])) kind++;
    if (kind == PLAN_LEVEL_KINDS) tarn_sx_error(r->cx, l, "no level");
    level[i - from] = (tarn_level){(uint8_t)tarn_sx_whole(r->cx, l, 1, 0, TARN_MAX_DIMS - 1),
                                   (uint8_t)kind, tarn_sx_whole(r->cx, l, 2, 1, INT64_C(1) << 40)};
  }
  return to - from;
}
/* dN, with /K and %K behind it, or not. */
static tarn_hold_part get_part(reader *r, const tarn_sx *s) {
  unsigned dim = 0;
  long long by = 0;
  int n = 0;
  if (s->kind == TARN_SX_ATOM && sscanf(s->text, "d%u%n", &dim, &n) == 1 && dim < TARN_MAX_DIMS) {
    tarn_hold_part p = {.dim = (uint8_t)dim, .div = 1};
    const char *rest = s->text + n;
    if (sscanf(rest, "/%lld%n", &by, &n) == 1 && by > 0) {
      p.div = by;
      rest += n;
    }
    if (sscanf(rest, "%%%lld%n", &by, &n) == 1 && by > 0) {
      p.mod = by;
      rest += n;
    }
    if (!*rest) return p;
  }
  tarn_sx_error(r->cx, s, "dN, dN/K or dN%%K is expected");
}
static void get_hold_word(reader *r, const tarn_sx *s, tarn_hold *h) {
  if (tarn_sx_is(s, "at") && s->n == 2 && s->kid[1]->kind == TARN_SX_INT)
    h->at = (int32_t)tarn_sx_whole(r->cx, s, 1, 0, TARN_MAX_LEVELS - 1);
  else if (tarn_sx_is(s, "at") && s->n == 2 && tarn_sx_atom_is(s->kid[1], "all")) h->at = -1;
  else if (tarn_sx_is(s, "slots")) h->slots = (uint8_t)tarn_sx_whole(r->cx, s, 1, 1, 64);
  else if (tarn_sx_is(s, "fresh")) h->fresh = true;
  else if (tarn_sx_is(s, "slides")) h->slides = true;
  else if (tarn_sx_is(s, "unpadded")) h->unpadded = true;
  else if (tarn_sx_is(s, "gaps")) h->gaps = true;
  else if (tarn_sx_is(s, "pad")) h->pad = (uint32_t)tarn_sx_whole(r->cx, s, 1, 1, 1024);
  else if (tarn_sx_is(s, "skew")) h->skew = (uint32_t)tarn_sx_whole(r->cx, s, 1, 1, 1024);
  else if (tarn_sx_is(s, "order") && s->n - 1 <= TARN_HOLD_PARTS)
    for (uint32_t i = 1; i < s->n; i++) h->part[h->npart++] = get_part(r, s->kid[i]);
  else
    tarn_sx_error(r->cx, s,
                  "at, slots, fresh, slides, unpadded, gaps, order, pad or skew is expected");
}
static tarn_hold get_hold(reader *r, const tarn_sx *s) {
  tarn_hold h = {.slots = 1, .at = -1};
  if (s->n < 3) tarn_sx_error(r->cx, s, "what is held, and where, is expected");
  if (s->kid[1]->kind == TARN_SX_INT) h.operand = (uint8_t)tarn_sx_whole(r->cx, s, 1, 0, 255);
  else if (tarn_sx_atom_is(s->kid[1], held[TARN_HOLD_RESULT])) h.what = TARN_HOLD_RESULT;
  else if (tarn_sx_atom_is(s->kid[1], held[TARN_HOLD_ACCUMULATORS]))
    h.what = TARN_HOLD_ACCUMULATORS;
  else tarn_sx_error(r->cx, s->kid[1], "an operand, accumulators or result is expected");
  h.memory = tarn_sx_kid(r->cx, s, 2, TARN_SX_ATOM, "a memory")->text;
  for (uint32_t i = 3; i < s->n; i++)
    get_hold_word(r, tarn_sx_kid(r->cx, s, i, TARN_SX_LIST, "(at …)"), &h);
  return h;
}
static const tarn_unit *get_unit(reader *r, const tarn_sx *s) {
  tarn_unit *u = TARN_NEW(r->cx, tarn_unit);
  *u = (tarn_unit){tarn_sx_kid(r->cx, s, 1, TARN_SX_ATOM, "an intrinsic")->text, TARN_NONE,
                   TARN_NONE, TARN_NONE, false};
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *w = tarn_sx_kid(r->cx, s, i, TARN_SX_LIST, "(rows dN)");
    uint32_t *to = tarn_sx_is(w, "rows")      ? &u->rows
                   : tarn_sx_is(w, "columns") ? &u->columns
                   : tarn_sx_is(w, "sum")     ? &u->sum
                                              : NULL;
    u->pairs |= tarn_sx_is(w, "pairs") && w->n == 1;
    if (tarn_sx_is(w, "pairs") && w->n == 1) continue;
    if (!to || w->n != 2) tarn_sx_error(r->cx, w, "rows, columns or sum of a dim is expected");
    *to = get_part(r, w->kid[1]).dim;
  }
  return u;
}
/* Levels, then holds, then a unit. */
static void get_stage(reader *r, const tarn_sx *s, tarn_stage_sched *q) {
  uint32_t end = s->n;
  TARN_VEC(tarn_hold) hold = {0};
  q->acc = (uint32_t)tarn_sx_whole(r->cx, tarn_sx_kid(r->cx, s, 1, TARN_SX_LIST, "acc"), 1, 0,
                                   TARN_MAX_LEVELS);
  if (end > 2 && tarn_sx_is(s->kid[end - 1], "unit")) q->unit = get_unit(r, s->kid[--end]);
  uint32_t from = end;
  while (from > 2 && tarn_sx_is(s->kid[from - 1], "hold")) from--;
  for (uint32_t i = from; i < end; i++) tarn_push(r->cx, &hold, get_hold(r, s->kid[i]));
  q->hold = hold.p;
  q->nhold = hold.n;
  uint32_t first = 2;
  q->open = get_dims(r, s, "open", &first);
  q->brief = get_dims(r, s, "brief", &first);
  q->nlevel = get_levels(r, s, first, from, q->level);
}
const tarn_schedule *tarn_schedule_read(tarn_lang *L, const tarn_nest *nest, const tarn_sx *s) {
  reader r = {L, tarn_lang_ctx(L)};
  tarn_schedule *out = TARN_NEW(r.cx, tarn_schedule);
  if (!tarn_sx_is(s, "schedule")) tarn_sx_error(r.cx, s, "no schedule");
  uint32_t at = s->n > 1 && tarn_sx_is(s->kid[1], "shared") ? 2 : 1;
  uint32_t level = 1;
  if (at == 2) out->open = get_dims(&r, s->kid[1], "open", &level);
  if (at == 2) out->brief = get_dims(&r, s->kid[1], "brief", &level);
  if (at == 2) out->nshared = get_levels(&r, s->kid[1], level, s->kid[1]->n, out->shared);
  if (s->n - at != nest->nstage)
    tarn_sx_error(r.cx, s, "%u stages for a nest of %u", s->n - at, nest->nstage);
  out->stage = TARN_ARRAY(r.cx, tarn_stage_sched, nest->nstage + 1);
  for (; at < s->n; at++) {
    get_stage(&r, tarn_sx_kid(r.cx, s, at, TARN_SX_LIST, "a stage"), &out->stage[out->nstage]);
    out->nstage++;
  }
  return out;
}
const tarn_schedule *tarn_schedule_parse(tarn_lang *L, const tarn_nest *nest, const char *text,
                                         size_t n) {
  reader r = {L, tarn_lang_ctx(L)};
  const tarn_sx *all = tarn_sx_read(r.cx, text, n, "schedule");
  const tarn_schedule *s =
      tarn_schedule_read(L, nest, tarn_sx_kid(r.cx, all, 0, TARN_SX_LIST, "a schedule"));
  tarn_schedule_check(L, nest, s);
  return s;
}
