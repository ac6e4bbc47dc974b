/* Cycles of a loop program on a machine with queues.
 *
 * Each queue does its statements in their order; one waits until what it reads is there and what it
 * overwrites is no longer needed. These are the waits that tokens will express. */
#include "price/unit.h"
#include <math.h>
#include <string.h>

typedef struct clock {
  const tarn_unit_plan *p;
  tarn_unit_cost *c;
  double now[TARN_UNIT_QUEUES];
  double ready[TARN_UNIT_TENSORS][TARN_UNIT_SLOTS]; /* what is there can be read from then on */
  double free[TARN_UNIT_TENSORS][TARN_UNIT_SLOTS];  /* and replaced from then on */
  tarn_unit_lists lists;                            /* of micro-ops that have been used */
  int64_t micro;                                    /* how many */
  double *began[TARN_UNIT_QUEUES]; /* of a queue's last instructions, as many as wait in it */
  int64_t come[TARN_UNIT_QUEUES];
  double arrived; /* the last instruction, at its queue */
  bool early;     /* all of them came first */
  double there;   /* when */
  double first;   /* the end of the first of the last ones */
  tarn_unit_limit limit;
  double part[TARN_UNIT_SLOTS]; /* accumulators of which a part is ready: hardware orders what
                         conflicts entry by entry, so that what follows begins with them */
} clock;

/* ---------------------------------------------------------------- queues */
uint32_t tarn_unit_queue_of_move(const tarn_hw *hw, uint32_t transfer) {
  const tarn_hw_instruction *is = tarn_hw_mover(hw, transfer, NULL);
  return is ? is->queue : hw->transfer[transfer].to == hw->nmem - 1 ? 2 : 0;
}
uint32_t tarn_unit_queue_of_run(const tarn_hw *hw, uint32_t intrinsic) {
  const tarn_hw_instruction *is = tarn_hw_runner(hw, intrinsic, TARN_HW_GOES_ON, NULL);
  return is ? is->queue : 1;
}
/* Instructions one after another, of so many cycles together. One comes to its queue when that has
 * room, after all that stand before it in the stream. */
static double run(clock *k, uint32_t queue, double from, double cycles, int64_t count) {
  uint32_t depth = k->p->hw->nqueue > queue ? k->p->hw->queue[queue].depth : 0;
  k->c->busy[queue] += cycles;
  for (int64_t i = 0; i < count; i++) {
    double *place = depth ? &k->began[queue][k->come[queue]++ % depth] : NULL;
    if (place) k->arrived = tarn_fmax(k->arrived, *place);
    double start = tarn_fmax(tarn_fmax(k->now[queue], from), k->arrived);
    if (place) *place = start;
    k->now[queue] = start + cycles / (double)count;
    if (!i) k->first = k->now[queue];
  }
  return k->now[queue];
}

/* ---------------------------------------------------------------- statements */
typedef struct moving {
  const tarn_hw *hw;
  const tarn_hw_transfer *t;
  tarn_unit_moved *sum;
} moving;
static void add_move(void *user, const tarn_unit_move *m) {
  const moving *x = user;
  x->sum->cycles += tarn_unit_move_cycles(x->hw, x->t, m);
  x->sum->rows += m->rows;
  x->sum->entries += m->rows * m->entries;
  x->sum->count++;
}
bool tarn_unit_move_all(const tarn_unit_plan *p, const tarn_unit_tensor *t, const tarn_unit_box *b,
                        tarn_unit_moved *out) {
  moving x = {p->hw, &p->hw->transfer[t->transfer], out};
  *out = (tarn_unit_moved){.cycles = 0};
  return tarn_unit_moves(p, t, b, add_move, &x) >= 0;
}
static void move(clock *k, const tarn_unit_stmt *s) {
  const tarn_unit_tensor *t = &k->p->tensor[s->tensor];
  const tarn_hw *hw = k->p->hw;
  uint32_t slot = s->slot[s->tensor];
  tarn_unit_moved m;
  tarn_unit_move_all(k->p, t, s->box, &m);
  uint32_t queue = tarn_unit_queue_of_move(hw, t->transfer);
  bool leaves = s->does == TARN_UNIT_LEAVE;
  bool onto = t->what == TARN_UNIT_ONTO;
  uint32_t of = leaves || onto ? k->p->sums : s->tensor;
  double from = leaves || onto ? k->part[slot] : k->free[of][slot];
  double end = run(k, queue, from, m.cycles, m.count);
  if (leaves || onto) {
    end = tarn_fmax(end, k->ready[of][slot] + m.cycles / (double)m.count);
    k->part[slot] = hw->hazards ? k->first : end;
    k->now[queue] = end;
  }
  if (of == k->p->sums && !leaves && !onto) k->part[slot] = hw->hazards ? k->first : end;
  if (leaves) k->free[of][slot] = end;
  else k->ready[of][slot] = end;
  k->c->bytes[s->tensor] += m.entries * hw->mem[t->memory].entry;
  k->c->rows += m.rows;
  k->c->moves += m.cycles;
  k->c->instructions += m.count;
}
/* Brings so many; when they are there. */
static double bring(clock *k, int64_t micro) {
  const tarn_hw *hw = k->p->hw;
  for (uint32_t i = 0; i < hw->ninstruction && micro; i++)
    for (uint32_t t = 0; t < hw->ntransfer && hw->instruction[i].does == TARN_HW_RUNS; t++)
      if (hw->transfer[t].to == hw->instruction[i].steps)
        return run(k, tarn_unit_queue_of_move(hw, t), 0,
                   hw->transfer[t].startup + hw->transfer[t].row + hw->mem[hw->nmem - 1].latency +
                       (double)micro * hw->transfer[t].entry,
                   1);
  return 0;
}
/* Instructions that set registers before each one that issues an intrinsic. */
static int64_t sets(const tarn_hw_instruction *is) {
  for (uint32_t k = 0; k < is->nindex; k++)
    if (tarn_hw_is_register(is->index[k].field)) return 1;
  return 0;
}
/* Instructions of a statement that write different accumulators. */
static double parts_of(const tarn_unit_stmt *s) {
  double n = 1;
  for (uint32_t w = 0; w < s->issue.nwalk; w++)
    if (s->issue.by[w] == TARN_UNIT_APART && !s->issue.walk[w].sums)
      n *= (double)s->issue.walk[w].trips;
  return n;
}
static void compute(clock *k, const tarn_unit_stmt *s) {
  const tarn_unit_plan *p = k->p;
  uint32_t queue = tarn_unit_queue_of_run(p->hw, s->intrinsic);
  double cycles = tarn_unit_issue_cycles(p->hw, s->intrinsic, &s->issue);
  double from = 0;
  bool writes_new = s->does == TARN_UNIT_CLEAR;
  bool begins = s->begins && !tarn_unit_clears(p);
  for (uint32_t i = 0; i < TARN_UNIT_OPERANDS; i++) {
    uint32_t t = s->operand[i];
    if (t == TARN_NONE) continue;
    uint32_t slot = s->slot[t];
    bool is_new = writes_new || (begins && p->tensor[t].what == TARN_UNIT_SUMS);
    from = tarn_fmax(from, is_new ? k->free[t][slot] : k->ready[t][slot]);
  }
  int64_t micro = tarn_unit_new_micro(p, &k->lists, s);
  k->micro += micro;
  from = tarn_fmax(from, k->early ? k->there : bring(k, micro));
  double end = run(k, queue, from, cycles, s->issue.instructions * (1 + sets(s->issue.is[0])));
  for (uint32_t i = 0; i < TARN_UNIT_OPERANDS; i++)
    if (s->operand[i] != TARN_NONE) {
      uint32_t slot = s->slot[s->operand[i]];
      if (p->tensor[s->operand[i]].what == TARN_UNIT_SUMS) {
        k->ready[s->operand[i]][slot] = end;
        k->part[slot] = p->hw->hazards ? end - cycles + cycles / parts_of(s) : end;
      } else k->free[s->operand[i]][slot] = end;
    }
  if (s->does == TARN_UNIT_PRODUCT)
    k->c->product += cycles - (double)s->issue.instructions * p->hw->intrin[s->intrinsic].startup;
  if (s->does == TARN_UNIT_VECTOR) k->c->vector += cycles;
  k->c->instructions += s->issue.instructions;
}
static bool advance(void *user, const tarn_unit_plan *p, const tarn_unit_stmt *s) {
  const clock *k = user;
  if (s->does == TARN_UNIT_FILL || s->does == TARN_UNIT_LEAVE) move(user, s);
  else compute(user, s);
  uint32_t queue = tarn_unit_queue_of_run(p->hw, p->product);
  double rest = tarn_fmax(k->c->least_work - k->c->busy[queue], 0);
  double moves = tarn_fmax(k->c->moves, k->c->least_moves);
  return k->now[queue] + rest + moves * k->limit.moves <= k->limit.all;
}

int64_t tarn_unit_once(const tarn_unit_plan *p, uint32_t tensor) {
  const tarn_unit_tensor *x = &p->tensor[tensor];
  const tarn_unit_box all = tarn_unit_all(p);
  int64_t entries = x->each;
  if (x->transfer == TARN_NONE) return 0;
  for (uint32_t i = 0; i < x->n; i++) {
    int64_t first;
    int64_t n;
    tarn_unit_span(&x->at[i], &all, &first, &n);
    if (!x->at[i].step) continue; /* the same ones */
    entries *= x->at[i].clipped ? tarn_min(n, x->at[i].hi - x->at[i].lo) : n;
  }
  return entries * p->hw->mem[x->memory].entry;
}
/* Bytes of operands and result, each once. */
static int64_t compulsory(const tarn_unit_plan *p) {
  int64_t bytes = 0;
  for (uint32_t t = 0; t < p->ntensor; t++) bytes += tarn_unit_once(p, t);
  return bytes;
}
/* Of so many micro-ops, which come before all else, or each list when it is used: *guess. What they
 * are in truth becomes known on the way. */
static bool visited(const tarn_unit_plan *p, tarn_unit_limit limit, const tarn_unit_cost *guess,
                    tarn_unit_cost *out, tarn_unit_cost *truth) {
  tarn_unit_place at;
  if (!tarn_unit_places(p, &at)) return false;
  tarn_mark scratch = tarn_arena_mark(tarn_lang_ctx(p->L));
  clock *k = TARN_NEW(tarn_lang_ctx(p->L), clock);
  *k = (clock){.p = p, .c = out, .early = guess->early, .limit = limit};
  for (uint32_t i = 0; i < p->hw->nqueue; i++)
    k->began[i] = TARN_ARRAY(tarn_lang_ctx(p->L), double, p->hw->queue[i].depth + 1);
  *out = *guess;
  out->compulsory = compulsory(p);
  for (uint32_t t = 0; t < p->ntensor; t++)
    if (t != p->result && p->tensor[t].what != TARN_UNIT_ONTO)
      out->fill[p->tensor[t].memory] +=
          at.entries[t] * p->tensor[t].slots * p->hw->mem[p->tensor[t].memory].entry;
  if (k->early) k->there = bring(k, out->micro);
  bool ok = tarn_unit_visit(p, advance, k);
  for (uint32_t i = 0; i < TARN_UNIT_QUEUES; i++) out->cycles = tarn_fmax(out->cycles, k->now[i]);
  *truth = *guess;
  truth->early = tarn_unit_micro_fits(p->hw, k->micro);
  truth->micro = k->micro;
  tarn_release(tarn_lang_ctx(p->L), scratch);
  return ok && out->cycles + out->moves * limit.moves <= limit.all;
}
bool tarn_unit_cost_near(const tarn_unit_plan *p, const tarn_unit_cost *like, tarn_unit_limit limit,
                         tarn_unit_cost *out) {
  const tarn_unit_cost guess = {.early = like->early,
                                .micro = like->micro,
                                .least_work = like->least_work,
                                .least_moves = like->least_moves};
  tarn_unit_cost truth;
  tarn_unit_cost again;
  if (!visited(p, limit, &guess, out, &truth)) return false;
  if (truth.early == guess.early && truth.micro == guess.micro) return true;
  return visited(p, limit, &truth, out, &again);
}
bool tarn_unit_cost_of(const tarn_unit_plan *p, tarn_unit_cost *out) {
  const tarn_unit_cost none = {.early = true}; /* micro-ops */
  return tarn_unit_cost_near(p, &none, (tarn_unit_limit){INFINITY, 0}, out);
}

/* ---------------------------------------------------------------- the table's rows */
void tarn_unit_priced(const tarn_unit_plan *p, const tarn_unit_cost *u, tarn_cost *out) {
  const tarn_hw *hw = p->hw;
  *out = (tarn_cost){.seconds = u->cycles / hw->clock + hw->launch, .parallel = 1};
  out->least = out->seconds;
  out->compute_seconds = (u->product + u->vector) / hw->clock;
  out->memory_seconds[0] = u->moves / hw->clock;
  out->overhead_seconds = hw->launch;
  for (uint32_t t = 0; t < p->ntensor; t++) out->bytes[0] += (double)u->bytes[t];
  bool moves = out->memory_seconds[0] > out->compute_seconds;
  out->binds = moves                     ? hw->mem[hw->nmem - 1].name
               : u->product >= u->vector ? hw->intrin[p->product].name
                                         : "vector";
  out->flops = 2;
  for (uint32_t d = 0; d < p->n; d++) out->flops *= (double)p->extent[d];
}
void tarn_unit_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
                     uint32_t threads, tarn_cost *out) {
  tarn_unit_plan p;
  tarn_unit_cost u;
  (void)threads;
  *out = (tarn_cost){.seconds = INFINITY, .least = INFINITY, .binds = "none"};
  if (!s || tarn_unit_make(L, hw, k, s, &p)) return;
  if (tarn_unit_cost_of(&p, &u)) tarn_unit_priced(&p, &u, out);
}
/* Bytes of main memory that each tensor moves. */
static void put_traffic(const tarn_unit_plan *p, tarn_buf *b) {
  tarn_unit_cost u;
  int64_t all = 0;
  if (!tarn_unit_cost_of(p, &u)) return;
  tarn_buf_fmt(b, "; %s:", p->hw->mem[p->hw->nmem - 1].name);
  for (uint32_t t = 0; t < p->ntensor; t++) {
    if (!u.bytes[t]) continue;
    tarn_buf_str(b, " ");
    tarn_unit_name(p, t, b);
    tarn_buf_fmt(b, " %lld,", (long long)u.bytes[t]);
    all += u.bytes[t];
  }
  tarn_buf_fmt(b, " all %lld bytes, once %lld\n", (long long)all, (long long)u.compulsory);
}
static void make_or_raise(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                          const tarn_schedule *s, tarn_unit_plan *p) {
  const char *why = tarn_unit_make(L, hw, k, s, p);
  if (why)
    tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT, "%s cannot run this kernel: %s", hw->name, why);
}
void tarn_unit_text(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
                    tarn_buf *b) {
  tarn_unit_plan p;
  make_or_raise(L, hw, k, s, &p);
  tarn_unit_print(&p, b);
  put_traffic(&p, b);
}
void tarn_unit_check(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s) {
  tarn_unit_plan p;
  tarn_unit_cost u;
  tarn_schedule_check(L, tarn_nest_get(L, k->nest), s);
  make_or_raise(L, hw, k, s, &p);
  if (!tarn_unit_cost_of(&p, &u))
    tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT,
               "schedule: no instruction of %s moves or computes one of its tiles", hw->name);
}
static const tarn_schedule *search(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                                   tarn_cost *cost) {
  tarn_unit_plan p;
  tarn_unit_cost u;
  *cost = (tarn_cost){.seconds = INFINITY, .least = INFINITY, .binds = "none"};
  if (!tarn_unit_match(L, hw, k, &p, NULL) || !tarn_unit_search(&p, &u)) return NULL;
  tarn_unit_priced(&p, &u, cost);
  return tarn_unit_scheduled(&p);
}
const char *tarn_unit_lacks(const tarn_hw *hw) {
  if (!hw->ninstruction) return "has no instructions: nothing can be emitted for it";
  if (hw->nmem > TARN_UNIT_MEMORIES) return "has more than 16 memories";
  return hw->nqueue > TARN_UNIT_QUEUES ? "has more than 8 queues" : NULL;
}
/* The smallest tiles that are tried: a unit of each dim, but for taps of windows. */
static void smallest(tarn_unit_plan *p) {
  p->nloop = 0;
  for (uint32_t d = 0; d < p->n; d++) {
    int64_t unit = d == p->rows ? p->form.m : 1;
    if (p->dim[d] > unit && !tarn_unit_is_tap(p, d))
      p->loop[p->nloop++] = (tarn_unit_loop){d, unit};
  }
  for (uint32_t t = 0; t < p->ntensor; t++) {
    p->tensor[t].slots = 1;
    p->tensor[t].at_loop = 0;
    while (p->tensor[t].at_loop < p->nloop &&
           (t < p->sums || p->loop[p->tensor[t].at_loop].dim < p->nacc))
      p->tensor[t].at_loop++;
  }
}
static const char *too_small(tarn_unit_plan *p) {
  tarn_unit_place at;
  smallest(p);
  if (tarn_unit_places(p, &at)) return "no tile of it fits the memories and transfers";
  const tarn_hw_memory *m = &p->hw->mem[at.memory];
  return tarn_format(tarn_lang_ctx(p->L),
                     "its smallest tiles take %lld bytes of %s, which has %lld",
                     (long long)at.needs * m->entry, m->name, (long long)m->capacity);
}
const char *tarn_unit_refuses(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k) {
  tarn_unit_plan p;
  tarn_unit_cost u;
  const char *why;
  if (!tarn_unit_match(L, hw, k, &p, &why)) return why;
  return tarn_unit_search(&p, &u) ? NULL : too_small(&p);
}
bool tarn_unit_schedules(tarn_solver *s, const tarn_ksig *k, tarn_schedule_visit *visit,
                         void *user) {
  (void)s, (void)k, (void)visit, (void)user;
  return false;
}
tarn_solver *tarn_unit_solver(tarn_lang *L, const tarn_hw *hw, uint32_t threads) {
  tarn_solver *s = tarn_solver_new(L, hw, threads);
  tarn_solver_search(s, search, tarn_unit_price);
  tarn_solver_take_as_is(s); /* units take a stage as it is, the emitter packs */
  return s;
}
