/* Schedules whose blocks hold tiles of both operands in shared memory, and their price.
 *
 * The own dims that one operand alone depends on are rows, those of the other columns: a block
 * makes a tile of both, each thread a smaller one in registers, strided so that neighbours read
 * neighbours. The sum is cut along one dim. Tiles are compared by what can be counted from their
 * sizes; for the best of them the plan is made, in some orders and with some padding, and what a
 * warp's requests take of banks and sectors is counted request by request. */
#include "price/gpu_tiles.h"
#include "plan/hold.h"
#include "plan/plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_OPTIONS = 256,
  FINALISTS = 8,
  MOST_SLOTS = 3,
  MOST_ACCUMULATORS = 64,
  MOST_MERGED = 32, /* of those that groups of threads add up: else ptxas was seen to spill */
  MOST_COPIES = 32, /* of a thread in a trip */
  LEAST_THREADS = 64,
  MOST_THREADS = 512,
  MOST_BODIES = 512,
  MOST_PARTS = 32,
  MOST_SHARING = 256, /* threads: more leave too few registers for the copies' addresses */
  FEW_WARPS = 16,     /* of a multiprocessor: then threads share a step of the sum */
  SUM_BYTES = 4
};

/* ---------------------------------------------------------------- a schedule */
typedef struct unit_form {
  const tarn_hw_intrinsic *unit;
  int64_t m, n, k, registers; /* of the result */
  uint32_t first;             /* the read that is its first operand */
} unit_form;
typedef struct pick {
  int64_t block[TARN_MAX_DIMS], team[TARN_MAX_DIMS]; /* of own dims: tile, and its threads */
  uint32_t walk; /* the reduce dim that is cut into steps of `by` */
  int64_t by;
  bool inside;   /* the other reduce dims lie inside of a step, all of them */
  int64_t parts; /* groups of threads that share a step */
  uint32_t slots;
  const unit_form *unit; /* an instruction of a warp; NULL: none. Its rows and columns are these */
  uint32_t rows, columns;
} pick;
typedef struct finalist {
  pick p;
  double seconds;
} finalist;
typedef struct tiles {
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_hw *hw;
  const tarn_ksig *k;
  const tarn_stage_work *m;
  const tarn_coordinate *c[2];
  uint32_t nc[2];
  uint32_t last; /* the own dim whose results lie side by side */
  finalist best[FINALISTS];
  uint32_t nbest;
  bool known; /* what a plan interns of the kernel has been interned: its memory may be released */
} tiles;

static bool lies_inside(const pick *p, uint32_t d) {
  return d != p->walk && (p->inside || d > p->walk);
}
/* Steps of a dim that one body takes. */
static int64_t body_of(const pick *p, uint32_t d) {
  if (!p->unit) return 1;
  return d == p->rows ? p->unit->m : d == p->columns ? p->unit->n : d == p->walk ? p->unit->k : 1;
}
static int64_t bodies(const tiles *t, const pick *p) {
  int64_t n = 1;
  for (uint32_t d = 0; d < t->m->nacc; d++) n *= p->block[d] / p->team[d] / body_of(p, d);
  return n;
}
static void add_walk(const tiles *t, const pick *p, bool innermost, tarn_stage_sched *s) {
  int64_t by = GPU_UNROLLED, own = p->by / p->parts;
  if (p->parts > 1) tarn_level_add(s, p->walk, TARN_TEAM, own);
  if (p->unit) {
    if (own > p->unit->k) tarn_level_add(s, p->walk, TARN_SERIAL, p->unit->k);
    return;
  }
  while (by > 1 && (own % by || by * bodies(t, p) > MOST_BODIES)) by /= 2;
  if (!innermost || by < 2) by = 1;
  if (own > by) tarn_level_add(s, p->walk, TARN_SERIAL, by);
  if (by > 1) tarn_level_add(s, p->walk, TARN_UNROLL, 1);
}
static void add_sum(const tiles *t, const pick *p, tarn_stage_sched *s) {
  bool last = true;
  for (uint32_t d = p->walk + 1; d < t->m->n; d++) last &= !lies_inside(p, d);
  if (!p->inside) add_walk(t, p, last, s);
  for (uint32_t d = t->m->nacc; d < t->m->n; d++)
    if (lies_inside(p, d)) tarn_level_add(s, d, TARN_SERIAL, 1);
  if (p->inside) add_walk(t, p, true, s);
}
/* A thread's results lie apart, so that those of neighbours lie side by side. */
static void make_threads(const tiles *t, const pick *p, tarn_stage_sched *s) {
  for (uint32_t d = 0; d < t->m->nacc; d++)
    if (p->block[d] > p->team[d]) tarn_level_add(s, d, TARN_UNROLL, p->team[d]);
  for (uint32_t d = 0; d <= t->m->nacc; d++) { /* the last one, last */
    uint32_t e = d < t->m->nacc ? d : t->last;
    if ((d == t->m->nacc || e != t->last) && p->team[e] > 1) tarn_level_add(s, e, TARN_TEAM, 1);
  }
}
static void make_unit(const tiles *t, const pick *p, tarn_stage_sched *s) {
  tarn_unit *u = TARN_NEW(t->cx, tarn_unit);
  u->name = p->unit->unit->name;
  u->rows = p->rows, u->columns = p->columns, u->sum = p->walk;
  for (uint32_t d = 0; d < t->m->nacc; d++) {
    int64_t own = p->block[d] / p->team[d];
    if (p->team[d] > 1) tarn_level_add(s, d, TARN_TEAM, own);
    if (own > body_of(p, d)) tarn_level_add(s, d, TARN_UNROLL, body_of(p, d));
  }
  tarn_level_add(s, p->rows, TARN_SERIAL, 1);
  tarn_level_add(s, p->columns, TARN_SERIAL, 1);
  tarn_level_add(s, p->walk, TARN_SERIAL, 1);
  s->unit = u;
}
static void make(const tiles *t, const pick *p, tarn_hold *hold, tarn_stage_sched *s) {
  const tarn_stage_work *m = t->m;
  *s = (tarn_stage_sched){.hold = hold, .nhold = 2};
  for (uint32_t d = 0; d < m->nacc; d++) tarn_level_add(s, d, TARN_PARALLEL, p->block[d]);
  s->acc = s->nlevel;
  for (uint32_t d = m->nacc; d < m->n; d++)
    if (!lies_inside(p, d)) tarn_level_add(s, d, TARN_SERIAL, d == p->walk ? p->by : 1);
  int32_t at = (int32_t)s->nlevel - 1;
  add_sum(t, p, s);
  if (p->unit) make_unit(t, p, s);
  else make_threads(t, p, s);
  for (uint32_t r = 0; r < 2; r++) {
    hold[r].operand = (uint8_t)r;
    hold[r].slots = (uint8_t)p->slots;
    hold[r].at = at;
    hold[r].memory = tarn_hw_mem(t->hw, TARN_HW_L1)->name;
  }
}

/* ---------------------------------------------------------------- by sizes */
static void count_unit(const tiles *t, const pick *p, gpu_counts *c) {
  const unit_form *u = p->unit;
  c->bodies = (double)bodies(t, p);
  c->tile = c->bodies * (double)u->registers;
  c->rate = u->unit->throughput;
  c->steps /= (double)u->k;
  c->threads *= t->hw->warps.lanes;
}
/* Registers' loads of an operand in a step, for all threads of a warp alike. */
static double unit_loads(const tiles *t, const pick *p, uint32_t r) {
  const tarn_hw_operand *o = &p->unit->unit->op[r == p->unit->first ? 0 : 1];
  uint32_t d = r == p->unit->first ? p->rows : p->columns;
  double n = (double)tarn_imap_get(t->L, o->fragment)->dim[1];
  for (uint32_t e = 0; e < t->m->nacc; e++)
    if (t->m->read[r].touched >> e & 1)
      n *= (double)(p->block[e] / p->team[e] / (e == d ? body_of(p, e) : 1));
  return n;
}
static void count_sizes(const tiles *t, const pick *p, gpu_counts *c) {
  const tarn_stage_work *m = t->m;
  int64_t tile[TARN_MAX_DIMS];
  *c = (gpu_counts){.blocks = 1, .threads = 1, .trips = 1, .steps = 1, .tile = 1};
  for (uint32_t d = 0; d < m->nacc; d++) {
    tile[d] = p->block[d];
    c->blocks *= ceil((double)m->dim[d] / (double)p->block[d]);
    c->threads *= (double)p->team[d];
    c->tile *= (double)(p->block[d] / p->team[d]);
  }
  for (uint32_t d = m->nacc; d < m->n; d++) {
    tile[d] = d == p->walk ? p->by : lies_inside(p, d) ? m->dim[d] : 1;
    c->steps *= (double)tile[d];
    c->trips *= ceil((double)m->dim[d] / (double)tile[d]);
  }
  c->bodies = c->tile;
  c->rate = gpu_fma_rate(t->hw);
  if (p->unit) count_unit(t, p, c);
  c->parts = (double)p->parts;
  c->steps /= c->parts;
  c->threads *= c->parts;
  c->warps = ceil(c->threads / 32);
  for (uint32_t r = 0; r < 2; r++) {
    double n = 1, loads = 1;
    for (uint32_t i = 0; i < t->nc[r]; i++) n *= (double)tarn_coordinate_length(&t->c[r][i], tile);
    for (uint32_t d = 0; d < m->nacc; d++)
      if (m->read[r].touched >> d & 1) loads *= (double)(p->block[d] / p->team[d]);
    if (p->unit) loads = unit_loads(t, p, r);
    c->shared += n * m->read[r].bytes * p->slots;
    c->copies += ceil(n / c->threads);
    c->sectors += gpu_box_sectors(t->hw, m, &m->read[r], tile);
    c->wavefronts += c->warps * c->steps * loads + n / 32;
    c->loads += loads;
  }
  c->end_sectors = c->threads / c->parts * c->tile * m->result.bytes / t->hw->warps.sector;
  c->end_issue = c->tile * (GPU_STORE_ISSUE + m->epi_ops) / c->parts;
  double merged = (c->parts - 1) / c->parts * c->threads * c->tile * SUM_BYTES;
  c->shared = tarn_fmax(c->shared, merged);
  c->ahead = p->slots - 1;
  c->registers = gpu_registers(c, c->loads, p->unit);
}
static bool may_be(const tiles *t, const gpu_counts *c) {
  const tarn_hw_warps *w = &t->hw->warps;
  double most = (double)tarn_hw_block_memory(t->hw);
  double own = tarn_fmin(w->own ? w->own : 1e9, floor(w->registers / (32 * c->warps)));
  return c->threads >= w->lanes && c->threads <= tarn_fmin(MOST_THREADS, w->block) &&
         c->tile <= (c->parts > 1 ? MOST_MERGED : MOST_ACCUMULATORS) && c->copies <= MOST_COPIES &&
         1.15 * c->shared <= most && c->registers <= own;
}
static bool fits(const tiles *t, const pick *p, gpu_counts *c) {
  count_sizes(t, p, c);
  return may_be(t, c);
}
/* With as many slots as there is room for. */
static void try_pick(tiles *t, pick *p) {
  gpu_counts c;
  p->slots = 1;
  count_sizes(t, p, &c);
  p->slots = (uint32_t)tarn_fmin(MOST_SLOTS, c.trips);
  while (p->slots && !fits(t, p, &c)) p->slots--;
  if (!p->slots || (p->slots == 1 && c.trips > 1)) return;
  double s = gpu_seconds(t->hw, t->m, &c, NULL);
  uint32_t at = t->nbest;
  while (at > 0 && t->best[at - 1].seconds > s) at--;
  if (at == FINALISTS) return;
  if (t->nbest < FINALISTS) t->nbest++;
  memmove(&t->best[at + 1], &t->best[at], (t->nbest - 1 - at) * sizeof *t->best);
  t->best[at] = (finalist){*p, s};
}
/* Where there are few warps, threads share the steps of the sum. */
static void try_parts(tiles *t, pick *p) {
  int64_t least = p->unit ? p->unit->k : 1;
  double blocks = 1, threads = p->unit ? t->hw->warps.lanes : 1;
  for (uint32_t d = 0; d < t->m->nacc; d++) {
    blocks *= ceil((double)t->m->dim[d] / (double)p->block[d]);
    threads *= (double)p->team[d];
  }
  bool few = blocks * threads / t->hw->warps.lanes < FEW_WARPS * (double)t->hw->units;
  for (p->parts = 1; p->parts <= MOST_PARTS; p->parts *= 2) {
    double all = threads * (double)p->parts;
    bool whole = p->by % (p->parts * least) == 0 && all <= MOST_SHARING;
    if (p->parts > 1 && (!few || t->k->strict || !whole)) return;
    if (p->unit || (all >= LEAST_THREADS && fmod(all, 8) == 0)) try_pick(t, p);
  }
}
/* The sum's dim is one that both operands depend on. */
static void try_unit_sums(tiles *t, pick p) {
  const tarn_stage_work *m = t->m;
  for (p.walk = m->nacc; p.walk < m->n; p.walk++)
    for (p.by = p.unit->k; p.by <= 4 * p.unit->k; p.by *= 2) {
      if (p.by >= 2 * m->dim[p.walk] && p.by > p.unit->k) break;
      for (uint32_t in = 0; in <= (m->n - m->nacc > 1); in++) {
        p.inside = in;
        try_parts(t, &p);
      }
    }
}
static void try_sums(tiles *t, pick p) {
  const tarn_stage_work *m = t->m;
  for (p.walk = m->nacc; p.walk < m->n; p.walk++)
    for (p.by = 4; p.by <= 32; p.by *= 2) {
      bool whole = m->dim[p.walk] % p.by == 0;
      if (p.by >= 2 * m->dim[p.walk] && p.by > 4) break;
      if (!whole && t->k->strict) continue;
      for (uint32_t inside = 0; inside <= (m->n - m->nacc > 1 && !t->k->strict); inside++) {
        p.inside = inside;
        try_parts(t, &p);
      }
    }
}

/* ---------------------------------------------------------------- tiles of rows, of columns */
typedef struct option {
  int64_t block[2], team[2];
} option;
typedef struct group {
  uint32_t n, dim[2]; /* that are cut: the innermost two, the last one lies closest */
  uint32_t noption;
  option option[MOST_OPTIONS];
} group;
static void put_option(group *g, int64_t b0, int64_t t0, int64_t b1, int64_t t1) {
  if (g->noption < MOST_OPTIONS) g->option[g->noption++] = (option){{b0, b1}, {t0, t1}};
}
/* Each of the threads has up to eight; or the whole dim, where it is no power of two. */
static void options_of_one(const tarn_stage_work *m, group *g) {
  int64_t n = m->dim[g->dim[0]];
  for (int64_t t = 1; t <= 32; t *= 2)
    for (int64_t u = 1; u <= 8; u++)
      if (t * u >= 4 && (t * u < 2 * n || t * u == 4)) put_option(g, t * u, t, 1, 1);
  for (int64_t u = 1; u <= 8 && n <= 128 && (n & (n - 1)); u++)
    if (n % u == 0) put_option(g, n, n / u, 1, 1);
}
static void options_of_two(const tarn_stage_work *m, group *g) {
  int64_t h = m->dim[g->dim[0]], w = m->dim[g->dim[1]];
  const int64_t wide[] = {w, 32, 16, 8, 28, 14}, high[] = {h, 1, 2, 4, 7, 8};
  for (uint32_t i = 0; i < 6; i++)
    for (uint32_t k = 0; k < 6; k++)
      for (int64_t u = 1; u <= 8; u++)
        for (int64_t v = 1; v <= 4 && u * v <= 8; v *= 2) {
          int64_t b = wide[i], a = high[k];
          bool twice = (i && b >= w) || (i > 3 && w % b) || (k && a >= h);
          if (twice || b > 64 || a > 16 || b % v || a % u) continue;
          if (a / u * (b / v) > 256 || a * b < 8) continue;
          put_option(g, a, a / u, b, b / v);
        }
}
static void options_of(const tarn_stage_work *m, group *g) {
  if (g->n == 1) options_of_one(m, g);
  else options_of_two(m, g);
}
static void apply(const group *g, const option *o, pick *p) {
  for (uint32_t i = 0; i < g->n; i++) {
    p->block[g->dim[i]] = o->block[i];
    p->team[g->dim[i]] = o->team[i];
  }
}
/* Own dims that operand r alone depends on; those with the closest results last. */
static void group_of(const tiles *t, uint32_t r, group *g) {
  const tarn_stage_work *m = t->m;
  g->n = g->noption = 0;
  for (uint32_t d = 0; d < m->nacc; d++) {
    bool own = (m->read[r].touched >> d & 1) && !(m->read[1 - r].touched >> d & 1);
    if (!own || m->dim[d] < 2) continue;
    if (g->n < 2) g->dim[g->n++] = d;
    else if (m->result.coef[d] < m->result.coef[g->dim[0]]) g->dim[0] = d;
    if (g->n == 2 && m->result.coef[g->dim[0]] < m->result.coef[g->dim[1]]) {
      uint32_t x = g->dim[0];
      g->dim[0] = g->dim[1];
      g->dim[1] = x;
    }
  }
  if (g->n) options_of(m, g);
}
/* Multiply-adds alone take longer than the best that are known. */
static bool is_hopeless(const tiles *t, const pick *p) {
  double blocks = 1, threads = 1, work = 1;
  if (t->nbest < FINALISTS) return false;
  for (uint32_t d = 0; d < t->m->n; d++) {
    if (d >= t->m->nacc) {
      work *= (double)t->m->dim[d];
      continue;
    }
    blocks *= ceil((double)t->m->dim[d] / (double)p->block[d]);
    threads *= (double)p->team[d];
    work *= (double)(p->block[d] / p->team[d]);
  }
  double each = ceil(blocks / t->hw->units) * ceil(threads / 32) * work;
  return each / gpu_fma_rate(t->hw) / t->hw->clock > t->best[FINALISTS - 1].seconds;
}
/* Tiles of whole instructions: those of the two dims, and of a further one of the columns. */
static void try_unit(tiles *t, const unit_form *u, const group *row, const group *column) {
  pick p = {.unit = u, .rows = row->dim[row->n - 1], .columns = column->dim[column->n - 1]};
  const tarn_stage_work *m = t->m;
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++) p.block[d] = p.team[d] = 1;
  for (int64_t a = 1; a <= 8 && (a == 1 || a / 2 * u->m < m->dim[p.rows]); a *= 2)
    for (int64_t b = 1; b <= 16 && (b == 1 || b / 2 * u->n < m->dim[p.columns]); b *= 2)
      for (int64_t v = 1; v <= a && v <= 4; v *= 2)
        for (int64_t w = 1; w <= b && w <= 4; w *= 2) {
          p.block[p.rows] = a * u->m, p.team[p.rows] = v;
          p.block[p.columns] = b * u->n, p.team[p.columns] = w;
          if (a / v * (b / w) * u->registers <= MOST_ACCUMULATORS) try_unit_sums(t, p);
          if (column->n < 2) continue;
          for (int64_t h = 2; h <= 4 && h < 2 * m->dim[column->dim[0]]; h *= 2) {
            pick q = p;
            q.block[column->dim[0]] = h;
            if (h * a / v * (b / w) * u->registers <= MOST_ACCUMULATORS) try_unit_sums(t, q);
          }
        }
}
static void try_units(tiles *t, const group *g) {
  const tarn_nest *n = tarn_nest_get(t->L, t->k->nest);
  const tarn_func *f = tarn_fn_get(t->L, n->stage[0].fn);
  for (uint32_t i = 0; i < t->hw->nintrin; i++)
    for (uint32_t first = 0; first < 2; first++) {
      tarn_hw_form form;
      tarn_dtype type[2];
      for (uint32_t r = 0; r < 2; r++)
        type[r] = t->k->in_type[n->stage[0].read[r ? 1 - first : first].src];
      if (!g[0].n || !g[1].n ||
          !tarn_plan_unit_serves(t->L, t->hw, i, f->body, f->red, type, &form))
        continue;
      unit_form *u = TARN_NEW(t->cx, unit_form);
      *u = (unit_form){.unit = &t->hw->intrin[i], .m = form.m, .n = form.n, .k = form.k};
      u->first = first;
      u->registers = tarn_imap_get(t->L, u->unit->op[2].fragment)->dim[1];
      try_unit(t, u, &g[first], &g[1 - first]);
    }
}
static void search(tiles *t) {
  group *g = TARN_ARRAY(t->cx, group, 2);
  pick p = {0};
  for (uint32_t r = 0; r < 2; r++) group_of(t, r, &g[r]);
  try_units(t, g);
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++) p.block[d] = p.team[d] = 1;
  for (uint32_t i = 0; i < g[0].noption; i++)
    for (uint32_t j = 0; j < g[1].noption; j++) {
      int64_t threads = 1;
      apply(&g[0], &g[0].option[i], &p);
      apply(&g[1], &g[1].option[j], &p);
      for (uint32_t d = 0; d < t->m->nacc; d++) threads *= p.team[d];
      if (threads * (t->k->strict ? 1 : MOST_PARTS) < LEAST_THREADS) continue;
      if (threads > MOST_THREADS) continue;
      int64_t own = bodies(t, &p);
      if (own >= 4 && own <= MOST_ACCUMULATORS && !is_hopeless(t, &p)) try_sums(t, p);
    }
}

/* ---------------------------------------------------------------- orders and padding */
/* The coordinates that own dims move innermost; or that of an instruction's sum. */
static void turn(const tiles *t, const pick *p, uint32_t r, tarn_hold *h) {
  h->npart = 0;
  for (uint32_t own = 0; own < 2; own++)
    for (uint32_t i = t->nc[r]; i-- > 0;) {
      bool is = false;
      for (uint32_t k = 0; k < t->c[r][i].n; k++)
        is |= p->unit ? t->c[r][i].dim[k] == p->walk : t->c[r][i].dim[k] < t->m->nacc;
      if (is == own && h->npart < TARN_HOLD_PARTS)
        h->part[h->npart++] = (tarn_hold_part){.dim = (uint8_t)t->c[r][i].dim[0], .div = 1};
    }
}
/* What an instruction takes lies in rows of its sum: skewed so that as many rows as all banks hold
 * move a vector further, or padded by vectors. */
static void keep_apart(const tiles *t, const pick *p, uint32_t i, uint32_t r, tarn_hold *h) {
  double row = (double)p->by * t->m->read[r].bytes;
  h->pad = i ? (uint32_t)(16 * (i - 1) / t->m->read[r].bytes) : 0;
  if (!i) h->skew = (uint32_t)tarn_fmax(1, tarn_hw_mem(t->hw, TARN_HW_L1)->line / row);
}
/* Each operand's order and padding, the one that costs least: they do not depend on one another. */
typedef struct attempt {
  tiles *t;
  const pick *p;
  tarn_hold *hold;
  tarn_stage_sched *s;
  double seconds, cycles[4];
} attempt;
static void count_attempt(tarn_ctx *cx, void *arg) {
  attempt *a = arg;
  gpu_counts c;
  (void)cx;
  make(a->t, a->p, a->hold, a->s);
  const tarn_schedule one = {.nstage = 1, .stage = a->s};
  gpu_count(gpu_plan(a->t->L, a->t->hw, a->t->k, &one), a->t->m, &c, a->cycles);
  a->seconds = gpu_seconds(a->t->hw, a->t->m, &c, NULL);
}
static void refine(tiles *t, const pick *p, tarn_hold *best, tarn_stage_sched *s, double *seconds) {
  static const uint32_t pads[] = {1, 0, 4, 8, 2};
  tarn_hold hold[2];
  double least[2] = {INFINITY, INFINITY};
  attempt a = {.t = t, .p = p, .hold = hold, .s = s};
  *seconds = INFINITY;
  for (uint32_t turned = 0; turned < 2; turned++)
    for (uint32_t i = 0; i < sizeof pads / sizeof *pads; i++) {
      tarn_mark mark = tarn_arena_mark(t->cx);
      for (uint32_t r = 0; r < 2; r++) {
        hold[r] = (tarn_hold){.pad = pads[i]};
        if (p->unit) keep_apart(t, p, i, r, &hold[r]);
        if (turned) turn(t, p, r, &hold[r]);
      }
      tarn_status st = tarn_protect(t->cx, count_attempt, &a);
      for (uint32_t r = 0; r < 2 && st == TARN_OK; r++)
        if (a.cycles[r] < least[r]) {
          least[r] = a.cycles[r];
          best[r] = hold[r];
        }
      if (t->known) tarn_release(t->cx, mark);
      t->known = true;
    }
  if (least[0] == INFINITY) return;
  a.hold = best;
  if (!tarn_protect(t->cx, count_attempt, &a)) *seconds = a.seconds;
}

/* ---------------------------------------------------------------- the search */
/* What only plans of ragged tiles ask for. */
static void intern_zeros(const tiles *t, const tarn_func *f) {
  const tarn_nest *n = tarn_nest_get(t->L, t->k->nest);
  uint32_t zero[2];
  for (uint32_t r = 0; r < 2; r++) {
    tarn_dtype type = t->k->in_type[n->stage[0].read[r].src];
    zero[r] =
        tarn_dtype_is_float(type) ? tarn_fx_const(t->L, type, 0) : tarn_fx_iconst(t->L, type, 0);
  }
  tarn_fx_subst(t->L, f->body, zero, 2);
}
static bool begin(tiles *t) {
  const tarn_stage_work *m = t->m;
  const tarn_nest *n = tarn_nest_get(t->L, t->k->nest);
  const tarn_func *f = tarn_fn_get(t->L, n->stage[0].fn);
  tarn_stage_dims d = tarn_stage_dims_of(n, 0);
  if (!m->reduces || m->custom || m->nshared || f->nops != 2 || m->n == m->nacc) return false;
  if (n->stage[0].nlook) return false; /* what is held lies at known places */
  for (uint32_t i = 0; i < m->n; i++)
    if (d.dim[i] == 0) return false;
  for (uint32_t r = 0; r < 2; r++) {
    if (m->read[r].irregular || m->read[r].local || n->stage[0].read[r].stage) return false;
    t->nc[r] = tarn_reach_coordinates(tarn_reach_of(t->L, &d, &(tarn_hold){.operand = (uint8_t)r}),
                                      &t->c[r]);
  }
  intern_zeros(t, f);
  t->last = 0;
  for (uint32_t i = 1; i < m->nacc; i++)
    if (m->dim[i] > 1 &&
        (m->dim[t->last] == 1 || llabs(m->result.coef[i]) < llabs(m->result.coef[t->last])))
      t->last = i;
  return true;
}
bool gpu_tiles(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_stage_work *m,
               tarn_schedule_visit *visit, void *user, tarn_stage_sched *out, double *seconds) {
  tiles t = {.L = L, .cx = tarn_lang_ctx(L), .hw = hw, .k = k, .m = m};
  *seconds = INFINITY;
  if (!begin(&t)) return false;
  search(&t);
  for (uint32_t i = 0; i < t.nbest; i++) {
    tarn_hold *hold = TARN_ARRAY(t.cx, tarn_hold, 2);
    tarn_stage_sched s;
    double x;
    refine(&t, &t.best[i].p, hold, &s, &x);
    if (visit && x < INFINITY) visit(user, &(tarn_schedule){.nstage = 1, .stage = &s}, x);
    if (x >= *seconds) continue;
    *seconds = x;
    *out = s;
  }
  return *seconds < INFINITY;
}
