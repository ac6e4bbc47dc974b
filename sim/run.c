/* Queues and tokens.  Instructions go to their queues in the order of the stream, as far as there
 * is room; a queue does them one after another: it waits for tokens, works, pushes tokens.  Where
 * the hardware resolves hazards, values are made in the order of the stream, and an instruction
 * waits besides for those before it that it conflicts with. */
#include "sim/internal.h"

typedef struct queue {
  uint32_t n, dispatched, started, done; /* instructions: in all; that have come so far */
  const uint32_t *item;                  /* their numbers in the stream */
  double free;                           /* when the last one ended */
  bool pushing;                          /* it has worked, and waits for room for its tokens */
} queue;
typedef struct token {
  uint32_t pushed, popped;
  uint32_t *by;         /* the instructions that pushed */
  double *push, *taken; /* when */
} token;
typedef struct running {
  sim_run r;
  queue q[TARN_SIM_QUEUES];
  token *t;
  uint32_t dispatched;
  double arrived, *start, *arrive;
} running;
static tarn_sim_use *use_of(running *s, const queue *q) { return &s->r.result.queue[q - s->q]; }

static void prepare(running *s) {
  const tarn_hw *hw = s->r.hw;
  uint32_t n = s->r.count;
  s->start = TARN_ARRAY(s->r.cx, double, n), s->arrive = TARN_ARRAY(s->r.cx, double, n);
  s->r.number = TARN_ARRAY(s->r.cx, uint32_t, n);
  s->r.clock = TARN_ARRAY(s->r.cx, sim_clock, n);
  s->t = TARN_ARRAY(s->r.cx, token, hw->ntoken);
  s->r.end = TARN_ARRAY(s->r.cx, double, n);
  for (uint32_t k = 0; k < hw->nqueue; k++)
    s->q[k].item = s->r.item[k] = TARN_ARRAY(s->r.cx, uint32_t, n);
  for (uint32_t k = 0; k < hw->ntoken; k++) {
    s->t[k].by = TARN_ARRAY(s->r.cx, uint32_t, n);
    s->t[k].push = TARN_ARRAY(s->r.cx, double, n);
    s->t[k].taken = TARN_ARRAY(s->r.cx, double, n);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = s->r.x[i].is->queue;
    s->r.item[k][s->q[k].n++] = i;
    s->r.number[i] = s->q[k].n;
  }
  sim_memories(&s->r);
}

/* The next instruction of the stream to its queue, if that has room. */
static bool dispatch(running *s) {
  if (s->dispatched == s->r.count) return false;
  uint32_t k = s->r.x[s->dispatched].is->queue, depth = s->r.hw->queue[k].depth;
  queue *q = &s->q[k];
  if (depth && q->dispatched - q->started >= depth) return false;
  if (depth && q->dispatched >= depth)
    s->arrived = tarn_fmax(s->arrived, s->start[q->item[q->dispatched - depth]]);
  s->arrive[s->dispatched++] = s->arrived;
  q->dispatched++;
  return true;
}

/* The token that the queue's next instruction waits for; TARN_NONE: it can go on. */
static uint32_t waits_for(const running *s, const queue *q) {
  const sim_instruction *x = &s->r.x[q->item[q->done]];
  for (uint32_t k = 0; !q->pushing && k < x->is->npop; k++) {
    const token *t = &s->t[x->is->pop[k].token];
    if (sim_value(x, x->is->pop[k].field) && t->pushed == t->popped) return x->is->pop[k].token;
  }
  for (uint32_t k = 0; q->pushing && k < x->is->npush; k++) {
    const token *t = &s->t[x->is->push[k].token];
    uint32_t room = s->r.hw->token[x->is->push[k].token].capacity;
    if (sim_value(x, x->is->push[k].field) && room && t->pushed - t->popped >= room)
      return x->is->push[k].token;
  }
  return TARN_NONE;
}
/* It goes on at t, for which it waited since `since`. */
static double waited(running *s, const queue *q, double since, double t, uint32_t from,
                     uint32_t *by) {
  if (t <= since) return since;
  use_of(s, q)->wait[from] += t - since;
  *by = from;
  return t;
}
static double pop(running *s, uint32_t i, uint32_t k) {
  token *t = &s->t[k];
  const sim_clock *other = &s->r.clock[t->by[t->popped]];
  for (uint32_t q = 0; q < s->r.hw->nqueue; q++)
    if (other->at[q] > s->r.clock[i].at[q]) s->r.clock[i].at[q] = other->at[q];
  return t->push[t->popped++];
}
/* When all tokens of instruction i are there. */
static double pop_all(running *s, const queue *q, uint32_t i, double at, uint32_t *by) {
  const sim_instruction *x = &s->r.x[i];
  double last = at;
  uint32_t from = 0;
  for (uint32_t k = 0; k < x->is->npop; k++) {
    if (!sim_value(x, x->is->pop[k].field)) continue;
    double t = pop(s, i, x->is->pop[k].token);
    if (t > last) last = t, from = s->r.hw->token[x->is->pop[k].token].from;
  }
  at = waited(s, q, at, last, from, by);
  for (uint32_t k = 0; k < x->is->npop; k++) {
    token *t = &s->t[x->is->pop[k].token];
    if (sim_value(x, x->is->pop[k].field)) t->taken[t->popped - 1] = at;
  }
  return at;
}
static void work(running *s, queue *q) {
  uint32_t i = q->item[q->done], k = s->r.x[i].is->queue;
  if (q->done) s->r.clock[i] = s->r.clock[q->item[q->done - 1]];
  s->r.clock[i].at[k] = s->r.number[i];
  double since = tarn_fmax(q->free, s->arrive[i]);
  uint32_t by = 0;
  double at = pop_all(s, q, i, since, &by);
  s->r.now = i, s->r.ready = 0;
  double cycles = sim_execute(&s->r);
  at = waited(s, q, at, s->r.ready, s->r.ready_by, &by);
  sim_record(&s->r, at, at + cycles, at - since, by);
  s->start[i] = at, s->r.end[i] = at + cycles;
  q->free = at + cycles;
  q->started++, q->pushing = true;
  use_of(s, q)->busy += cycles, use_of(s, q)->instructions++;
}
static void push(running *s, queue *q) {
  uint32_t i = q->item[q->done++], by;
  const sim_instruction *x = &s->r.x[i];
  for (uint32_t k = 0; k < x->is->npush; k++) {
    uint32_t n = x->is->push[k].token, room = s->r.hw->token[n].capacity;
    token *t = &s->t[n];
    if (!sim_value(x, x->is->push[k].field)) continue;
    if (room && t->pushed >= room)
      q->free = waited(s, q, q->free, t->taken[t->pushed - room], s->r.hw->token[n].to, &by);
    t->by[t->pushed] = i, t->push[t->pushed++] = q->free;
  }
  q->pushing = false;
  s->r.result.cycles = tarn_fmax(s->r.result.cycles, q->free);
}
static bool advance(running *s, queue *q) {
  if (q->done == q->dispatched || waits_for(s, q) != TARN_NONE) return false;
  if (q->pushing) push(s, q);
  else work(s, q);
  return true;
}

/* Those of one kind, transfers or others, until they cannot go on, before one of the other kind. */
static bool advance_kind(running *s, bool moves) {
  bool more = false;
  for (uint32_t k = 0; k < s->r.hw->nqueue; k++) {
    queue *q = &s->q[k];
    if (q->done < q->dispatched && (s->r.x[q->item[q->done]].is->does == TARN_HW_MOVES) == moves)
      more |= advance(s, q);
  }
  return more;
}
static bool step(running *s) {
  bool more = dispatch(s);
  if (s->r.p->pace == TARN_SIM_EVEN) {
    for (uint32_t k = 0; k < s->r.hw->nqueue; k++) more |= advance(s, &s->q[k]);
    return more;
  }
  while (dispatch(s)) more = true;
  bool first = s->r.p->pace == TARN_SIM_EARLY;
  return advance_kind(s, first) || advance_kind(s, !first) || more;
}
/* In the order of the stream. */
static void step_through(running *s) {
  for (uint32_t i = 0; i < s->r.count; i++) {
    queue *q = &s->q[s->r.x[i].is->queue];
    dispatch(s), work(s, q), push(s, q);
  }
}

/* Nothing can go on: who waits for what. */
static void deadlock(running *s) {
  const tarn_hw *hw = s->r.hw;
  tarn_buf b = {.cx = s->r.cx};
  for (uint32_t k = 0; k < hw->nqueue; k++) {
    const queue *q = &s->q[k];
    if (q->done == q->dispatched) continue;
    uint32_t i = q->item[q->done], t = waits_for(s, q);
    tarn_buf_fmt(&b, "%s queue %s waits at instruction %u (%s) for %s %s %s queue %s",
                 b.n ? ";" : "", hw->queue[k].name, s->r.first + i, s->r.x[i].is->name,
                 q->pushing ? "room for token" : "token", hw->token[t].name,
                 q->pushing ? "to" : "from",
                 hw->queue[q->pushing ? hw->token[t].to : hw->token[t].from].name);
  }
  tarn_raise(s->r.cx, TARN_BAD_INPUT, "%s/stream.bin: deadlock:%s", s->r.p->dir, b.p);
}
static void check_balance(const running *s) {
  for (uint32_t k = 0; k < s->r.hw->ntoken; k++)
    if (s->t[k].pushed != s->t[k].popped)
      tarn_raise(s->r.cx, TARN_BAD_INPUT,
                 "%s/stream.bin: token %s: %u pushed, %u popped; the last one left over is of "
                 "instruction %u (%s)",
                 s->r.p->dir, s->r.hw->token[k].name, s->t[k].pushed, s->t[k].popped,
                 s->r.first + s->t[k].by[s->t[k].pushed - 1],
                 s->r.x[s->t[k].by[s->t[k].pushed - 1]].is->name);
}
static void check_end(const running *s) {
  const tarn_hw *hw = s->r.hw;
  bool ends = false;
  for (uint32_t k = 0; k < hw->ninstruction; k++) ends |= hw->instruction[k].does == TARN_HW_ENDS;
  for (uint32_t i = 0; ends && i < s->r.count; i++)
    if ((s->r.x[i].is->does == TARN_HW_ENDS) != (i + 1 == s->r.count))
      tarn_raise(s->r.cx, TARN_BAD_INPUT,
                 "%s/stream.bin: instruction %u (%s): the last one, and no other, ends a %s",
                 s->r.p->dir, s->r.first + i, s->r.x[i].is->name,
                 s->r.count < s->r.p->count ? "segment" : "program");
}

uint32_t tarn_sim_segments(const tarn_sim_program *p) { return p->nsegment ? p->nsegment : 1; }
static int64_t bound_of(const tarn_sim_program *p) {
  int64_t n = 0;
  for (uint32_t i = 0; i < p->nbuffer; i++)
    if (p->buffer[i].role != TARN_SIM_SCRATCH) n += p->buffer[i].bytes;
  return n;
}
tarn_sim_result tarn_sim_add(tarn_sim_result a, tarn_sim_result b) {
  a.cycles += b.cycles, a.compute_cycles += b.compute_cycles;
  a.read += b.read, a.written += b.written, a.unread += b.unread;
  a.utilisation = a.cycles > 0 ? a.compute_cycles / a.cycles : 0;
  a.bound = tarn_max(a.bound, b.bound);
  for (uint32_t q = 0; q < TARN_SIM_QUEUES; q++) {
    a.queue[q].busy += b.queue[q].busy;
    a.queue[q].instructions += b.queue[q].instructions;
    for (uint32_t k = 0; k < TARN_SIM_QUEUES; k++) a.queue[q].wait[k] += b.queue[q].wait[k];
  }
  return a;
}
tarn_sim_result tarn_sim_run_segment(tarn_lang *L, tarn_sim_program *p, uint32_t segment,
                                     double latency) {
  running s = {.r = {.L = L, .cx = tarn_lang_ctx(L), .p = p, .hw = p->hw, .count = p->count}};
  if (segment >= tarn_sim_segments(p))
    tarn_raise(s.r.cx, TARN_USAGE, "%s has %u segments, there is no %u", p->dir,
               tarn_sim_segments(p), segment);
  if (p->nsegment) s.r.first = p->segment[segment].first, s.r.count = p->segment[segment].count;
  s.r.x = sim_decode(s.r.cx, p, s.r.first, s.r.count);
  s.r.latency = latency < 0 ? p->hw->mem[p->hw->nmem - 1].latency : latency;
  check_end(&s);
  prepare(&s);
  if (p->hw->hazards) step_through(&s);
  while (step(&s)) {}
  for (uint32_t k = 0; k < p->hw->nqueue; k++)
    if (s.q[k].done < s.q[k].n) deadlock(&s);
  check_balance(&s);
  sim_record_end(&s.r), sim_left_unread(&s.r);
  s.r.result.bound = bound_of(p);
  return tarn_sim_add(s.r.result, (tarn_sim_result){0});
}
tarn_sim_result tarn_sim_run(tarn_lang *L, tarn_sim_program *p, double latency) {
  tarn_sim_result v = {0};
  for (uint32_t i = 0; i < tarn_sim_segments(p); i++)
    v = tarn_sim_add(v, tarn_sim_run_segment(L, p, i, latency));
  return v;
}
