/* Schedules of one stage on a CPU: which dim fills the vector lanes, how many vectors and how many
 * steps of a second dim make the register tile, and in which order the tiles are walked. All sizes
 * come from the description: lanes and registers bound the tile, footprints against memory
 * capacities decide the order. */
#include "price/candidates.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct pick {
  uint32_t vdim;          /* m->n: none */
  int64_t lanes, vectors; /* register tile along vdim */
  uint32_t rdim;          /* udim[0], where a vector holds `each` steps of it; m->n: none */
  int64_t each;
  uint32_t udim[2]; /* m->n: none; the second where the first is unrolled whole */
  int64_t unroll[2];
  uint32_t dot;    /* reduce dim of which one instruction takes several elements; m->n: none */
  bool flat;       /* the whole reduction is unrolled, its last dim between the tile's */
  bool taps;       /* all of the reduction but its longest dim is unrolled */
  bool matrices;   /* the dims of constant matrices are unrolled */
  uint32_t order;  /* 0 as the dims stand, 1 vdim's tiles innermost, 2 + d: dim d outermost */
  uint32_t images; /* first dims that stay outside of that one */
  int64_t rows,
      depth;   /* block of udim[0] and of the last reduce dim that outer loops walk; 0: none */
  bool panels; /* the latter inside of the outermost dim's loop */
} pick;

static int64_t tile_step(const tarn_stage_work *m, const pick *p, uint32_t d) {
  if (d == p->dot) return m->dot.k;
  if (d == p->vdim)
    return p->lanes * p->vectors; /* beyond the extent at most by part of a vector: steps divide */
  if (d == p->rdim) return p->unroll[0];
  for (uint32_t i = 0; i < 2; i++)
    if (d == p->udim[i]) return tarn_min(p->unroll[i], m->dim[d]);
  return 1;
}
/* A short reduction with small constants is unrolled, so that the constants are numbers in the
 * code. */
static bool has_matrix(const tarn_stage_work *m, uint32_t d) {
  for (uint32_t r = 0; r < m->nread; r++)
    if (m->read[r].few && !m->read[r].epi && (m->read[r].touched >> d & 1))
      return m->dim[d] <= TARN_MOST_MATRIX;
  return false;
}
static uint32_t longest(const tarn_stage_work *m) {
  uint32_t most = m->nacc;
  for (uint32_t d = m->nacc; d < m->n; d++)
    if (m->dim[d] >= m->dim[most]) most = d;
  return most;
}
/* Outer loops over the access dims in the asked order, reduce loops, then the register tile. */
static void make_levels(const tarn_stage_work *m, const pick *p, tarn_stage_sched *s) {
  uint32_t order[TARN_MAX_DIMS], n = 0;
  s->nlevel = s->nhold = 0;
  s->open = s->brief = 0;
  s->hold = NULL;
  s->unit = NULL;
  bool vacc = p->vdim < m->nacc;
  uint32_t first = p->order >= 2 ? p->order - 2 : m->n,
           last = p->order == 1 && vacc ? p->vdim : m->n;
  while (n < p->images) order[n] = n, n++; /* nothing is shared */
  if (first < m->n) order[n++] = first;
  for (uint32_t d = m->nshared + p->images; d < m->nacc; d++)
    if (d != first && d != last && !(p->matrices && m->matrices >> d & 1)) order[n++] = d;
  if (last < m->n) order[n++] = last;
  for (uint32_t i = 0; i < n; i++) {
    if (p->rows && i == p->images) tarn_level_add(s, p->udim[0], TARN_SERIAL, p->rows);
    if (p->depth && i == (uint32_t)p->panels + p->images)
      tarn_level_add(s, m->n - 1, TARN_SERIAL, p->depth);
    tarn_level_add(s, order[i], TARN_SERIAL, tile_step(m, p, order[i]));
  }
  s->acc = s->nlevel;
  for (uint32_t d = m->n; d-- > m->nshared && p->matrices;)
    if (m->matrices >> d & 1) tarn_level_add(s, d, TARN_UNROLL, 1);
  uint32_t around = p->taps ? longest(m) : m->n, inner = p->flat ? m->n - 1 : around;
  if (p->taps) tarn_level_add(s, around, TARN_SERIAL, 1);
  for (uint32_t d = m->nacc; d < m->n && !p->matrices; d++)
    if (d != inner)
      tarn_level_add(s, d,
                     p->flat || p->taps || (d != p->vdim && has_matrix(m, d)) ? TARN_UNROLL
                                                                              : TARN_SERIAL,
                     d == p->vdim || d == p->dot ? tile_step(m, p, d) : 1);
  for (uint32_t i = 2; i-- > 0;)
    if (p->udim[i] < m->n && p->udim[i] != p->rdim && tile_step(m, p, p->udim[i]) > 1)
      tarn_level_add(s, p->udim[i], TARN_UNROLL, 1);
  if (p->rdim < m->n && p->unroll[0] > p->each) tarn_level_add(s, p->rdim, TARN_UNROLL, p->each);
  if (p->flat) tarn_level_add(s, m->n - 1, TARN_UNROLL, 1);
  if (p->vdim < m->n) {
    if (tile_step(m, p, p->vdim) > p->lanes) tarn_level_add(s, p->vdim, TARN_UNROLL, p->lanes);
    if (p->rdim < m->n) tarn_level_add(s, p->rdim, TARN_VECTOR, 1);
    tarn_level_add(s, p->vdim, TARN_VECTOR, 1);
  }
  if (p->dot < m->n) tarn_level_add(s, p->dot, TARN_DOT, 1);
  if (!m->reduces) s->acc = s->nlevel;
}
void stage_mark_parallel(const int64_t *dim, tarn_level *level, uint32_t n, uint32_t limit,
                         uint32_t threads) {
  int64_t left[TARN_MAX_DIMS], work = 1;
  memcpy(left, dim, sizeof left);
  for (uint32_t i = 0; i < n && i < limit && threads > 1 && work < 8 * (int64_t)threads; i++) {
    tarn_level *l = &level[i];
    if (l->kind != TARN_SERIAL || l->dim >= limit) break; /* not a reduction in pieces */
    work *= (left[l->dim] + l->step - 1) / l->step;
    left[l->dim] = tarn_min(left[l->dim], l->step);
    l->kind = TARN_PARALLEL;
  }
}

/* INFINITY: so many that it makes no difference. */
static double stage_seconds(stage_search *q, const tarn_stage_sched *st) {
  tarn_cost c = {0};
  bool all = q->visit || q->n < q->want;
  double most = all ? INFINITY : tarn_fmax(q->least, q->b[q->n - 1].seconds);
  q->priced++;
  if (!loop_stage_below(q->hw, q->m, q->shared, q->nshared, st, q->threads, most, q->room, &c))
    return INFINITY;
  return loop_overlapped(q->hw, &c, NULL) + (c.parallel > 1 ? q->hw->barrier : 0);
}

/* A dim may fill the lanes when the result, or failing that some operand, lies along it; a reduce
 * dim when the order of the reduction is free and no access is scattered along it. */
static bool vector_dim(const tarn_stage_work *m, uint32_t d) {
  bool unit = d < m->nacc && llabs(m->result.coef[d]) == 1, any = unit;
  for (uint32_t r = 0; r < m->nread; r++) {
    const tarn_touch *a = &m->read[r];
    if (a->epi && d >= m->nacc) continue;
    if (llabs(a->coef[d]) == 1) any = true;
    if (d >= m->nacc && (a->irregular || llabs(a->coef[d]) > 1)) return false;
  }
  if (d >= m->nacc && !m->splits) return false;
  return any;
}

static void keep(stage_search *q, const tarn_stage_sched *st, double t) {
  if (q->n == q->want && !(t < q->b[q->n - 1].seconds)) return;
  uint32_t at = q->n < q->want ? q->n++ : q->n - 1;
  for (; at > 0 && t < q->b[at - 1].seconds; at--) q->b[at] = q->b[at - 1];
  q->b[at].seconds = t, q->b[at].sched = *st;
}

/* Where padding begins is decided for each trip of a loop, the first and the last apart: of tiles
 * of an open dim there are always several. */
static bool fits_guards(const stage_search *q, const tarn_level *l) {
  uint32_t guarded = 0;
  for (uint32_t r = 0; r < q->m->nread; r++) guarded |= q->m->read[r].guarded;
  return !(guarded >> l->dim & 1) || l->step == 1 || 2 * l->step < q->open[l->dim];
}
/* What tarn_schedule asks of the levels of open dims. */
static bool is_open(const stage_search *q, const tarn_stage_sched *st) {
  const tarn_stage_work *m = q->m;
  uint32_t seen = 0;
  bool resumes = false;
  uint32_t acc = tarn_plan_acc(st, m->reduces);
  for (uint32_t i = 0; q->open && i < acc; i++) resumes |= st->level[i].dim >= m->nacc;
  for (uint32_t i = 0; q->open && i < st->nlevel; i++) {
    const tarn_level *l = &st->level[i];
    bool own = l->dim < m->nacc;
    bool loop = l->kind == TARN_SERIAL || (own && l->kind == TARN_PARALLEL);
    bool outer = !(seen >> l->dim & 1);
    seen |= 1u << l->dim;
    if (!outer || !q->open[l->dim]) continue;
    if (!fits_guards(q, l)) return false;
    if (!loop || (own ? i >= acc : i < acc) || (own && l->step > 1 && resumes)) return false;
  }
  return true;
}
static void offer(stage_search *q, const tarn_stage_sched *st, double t) {
  if (!is_open(q, st)) return;
  if (q->visit) q->visit(q->user, st, t);
  keep(q, st, t);
}
static double try_one(stage_search *q, const pick *p) {
  tarn_stage_sched st;
  make_levels(q->m, p, &st);
  if (!is_open(q, &st)) return INFINITY;
  if (!q->nshared) stage_mark_parallel(q->m->dim, st.level, st.nlevel, q->m->nacc, q->threads);
  double t = stage_seconds(q, &st);
  offer(q, &st, t);
  return t;
}
/* Do neighbours in the tile share vectors that they read, by windows along a reduce dim but one? */
static bool shares(const tarn_stage_work *m, const pick *p, uint32_t but) {
  for (uint32_t r = 0; r < m->nread; r++)
    for (uint32_t d = m->nacc; d < m->n; d++)
      if (d != but && (m->read[r].touched >> p->vdim & 1) &&
          tarn_touch_overlaps(&m->read[r], d, m->dim[d], p->udim[0]))
        return true;
  return false;
}
/* A reduction of a few steps, where they do: a window. */
static bool window(const tarn_stage_work *m, const pick *p) {
  int64_t steps = 1;
  for (uint32_t d = m->nacc; d < m->n; d++) steps *= m->dim[d];
  if (!m->reduces || m->n == m->nacc || steps < 2 || steps > 32 || p->vdim >= m->nacc) return false;
  return shares(m, p, m->n);
}
/* The same window for many channels: are the steps of all reduce dims but the longest few enough to
 * be unrolled? Only for one stage: there padding is decided outside of the loop. */
#define MOST_WRITTEN 160 /* operations in one trip */
#define MOST_TAPS    9
static bool few_taps(const tarn_stage_work *m, const pick *p) {
  int64_t taps = 1;
  if (!m->reduces || m->nshared || m->n < m->nacc + 2 || p->vdim >= m->nacc || p->dot < m->n)
    return false;
  if (m->dim[longest(m)] < 2 || !shares(m, p, longest(m))) return false;
  for (uint32_t d = m->nacc; d < m->n; d++)
    if (d != longest(m)) taps *= m->dim[d];
  int64_t tile = p->vectors * p->unroll[0] * (p->udim[1] < m->n ? p->unroll[1] : 1);
  return taps > 1 && taps <= MOST_TAPS && taps * tile <= MOST_WRITTEN;
}
static double try_pick(stage_search *q, const pick *p) {
  pick flat = *p;
  double t = try_one(q, p);
  if (!q->strict && p->udim[0] < q->m->nacc && few_taps(q->m, p)) {
    pick taps = *p;
    taps.taps = true;
    t = fmin(t, try_one(q, &taps));
  }
  if (p->udim[0] >= q->m->nacc || p->dot < q->m->n || !window(q->m, p)) return t;
  flat.flat = true;
  return fmin(t, try_one(q, &flat));
}
static void try_second(stage_search *q, pick p, int64_t room) {
  const tarn_stage_work *m = q->m;
  for (uint32_t d = m->nshared; d < m->nacc; d++) {
    if (d == p.vdim || d == p.udim[0]) continue;
    for (int64_t u = 2; u * p.unroll[0] <= room && u <= m->dim[d]; u++) {
      p.udim[1] = d, p.unroll[1] = u;
      try_pick(q, &p);
    }
  }
}
/* A large product, or each of several, by blocks of rows and of the reduction, so that the rows'
 * block stays cached while all columns pass (Goto and van de Geijn, "Anatomy of high-performance
 * matrix multiplication", 2008). */
static void try_blocks(stage_search *q, pick p, uint32_t images) {
  const tarn_stage_work *m = q->m;
  double each = tarn_stage_whole(m);
  for (uint32_t d = 0; d < images; d++) each /= (double)m->dim[d];
  if (p.udim[0] < images || (images && each <= (double)tarn_hw_mem(q->hw, TARN_HW_L2)->capacity))
    return;
  int64_t red = m->dim[m->n - 1], own = m->dim[p.udim[0]], u = p.unroll[0], threads = q->threads;
  p.images = images;
  for (p.depth = 128; p.depth <= 512 && p.depth < red; p.depth *= 2) {
    for (int64_t rows = 64; rows <= 256; rows *= 2) {
      int64_t n = tarn_ceildiv(tarn_ceildiv(own, rows), threads) *
                  threads; /* blocks of one size, as many for every thread */
      if ((p.rows = tarn_ceildiv(tarn_ceildiv(own, n), u) * u) < own) try_pick(q, &p);
    }
    p.rows = 0;
    if (threads == 1 || images) try_pick(q, &p);
  }
}
/* A panel of columns at a time, by blocks of the reduction: the block stays cached while all rows
 * pass, and the next one follows it in memory. Not with a few rows left over, for which a block
 * takes as long as for a whole tile. */
#define LEFT_OVER 3 /* less than one part in so many of a tile */
#define LOST      32
static void try_panels(stage_search *q, pick p) {
  int64_t red = q->m->dim[q->m->n - 1], own = q->m->dim[p.udim[0]], u = p.unroll[0], rest = own % u;
  if (rest && LEFT_OVER * rest < u && LOST * (u - rest) > own) return;
  p.panels = true;
  for (p.depth = 256; p.depth <= 1024 && p.depth < red; p.depth *= 2) try_pick(q, &p);
}
/* Do the result's rows lie along dim d, with the lanes across them (a register transpose)? */
static bool along_rows(const tarn_stage_work *m, uint32_t vdim, uint32_t d) {
  return vdim < m->nacc && llabs(m->result.coef[vdim]) > 1 && m->result.coef[d] == 1;
}
/* Rows of a reduction that the lanes walk along and that share nothing: more than a few at a time
 * do not come faster from behind the L2s. */
#define MOST_STREAMS 4
static int64_t most_rows(const stage_search *q, const pick *p, uint32_t d, int64_t room) {
  const tarn_stage_work *m = q->m;
  if (p->vdim < m->nacc || p->vdim >= m->n || !q->far) return room;
  for (uint32_t r = 0; r < m->nread; r++)
    if (!m->read[r].epi && !(m->read[r].touched >> d & 1)) return room;
  return tarn_min(room, MOST_STREAMS);
}
/* Steps of one dim beside the vectors, as many as fit the registers; the least seconds. */
static double try_first(stage_search *q, pick p, int64_t room, uint32_t images) {
  const tarn_stage_work *m = q->m;
  double t = try_pick(q, &p);
  q->least = tarn_fmin(q->least, t);
  for (uint32_t d = m->nshared; d < m->nacc; d++) {
    if (d == p.vdim || !(m->reduces || along_rows(m, p.vdim, d))) continue;
    int64_t most = most_rows(q, &p, d, room);
    for (int64_t u = 2; u <= most && u <= m->dim[d]; u++) {
      if (m->block && 2 * u <= room && u < m->dim[d])
        continue; /* many kernels, fewer tries in each */
      p.udim[0] = d, p.unroll[0] = u;
      t = fmin(t, try_pick(q, &p));
      q->least = tarn_fmin(q->least, t);
      if (!q->large || u <= room / 2 || p.vdim >= m->nacc) continue;
      if (!p.order) try_blocks(q, p, images);
      else if (p.order >= 2 && p.order - 2 != d) try_panels(q, p);
    }
  }
  return t;
}
/* How many of the first dims are of images, or of products: each with rows and columns of its own,
 * and multiplied by the same matrices. */
static uint32_t images_of(const tarn_stage_work *m) {
  if (m->nshared || !m->reduces) return 0;
  for (uint32_t k = 0;; k++) {
    if (k + 2 >= m->nacc) return k;
    for (uint32_t r = 0; r < m->nread; r++) {
      if (m->read[r].epi) continue;
      if (m->read[r].constant == (m->read[r].touched >> k & 1)) return k;
      for (uint32_t d = m->nacc; d < m->n; d++)
        if (tarn_touch_overlaps(&m->read[r], d, m->dim[d], 0)) return 0; /* rows of one image */
    }
  }
}
static void try_unrolls(stage_search *q, pick p) {
  const tarn_stage_work *m = q->m;
  int64_t regs = q->hw->vector_regs ? q->hw->vector_regs : 16;
  int64_t room = m->reduces ? (regs - p.vectors - 1) / (p.vectors ? p.vectors : 1)
                            : regs / 2; /* a map has no accumulators */
  uint32_t images = images_of(m);
  pick top = p;
  double least = q->least = INFINITY;
  p.udim[0] = p.udim[1] = m->n;
  for (uint32_t o = 0; o < 2 + m->nacc; o++) {
    p.order = o;
    if (o && m->nacc - m->nshared < 2) break;
    if ((o == 1 && p.vdim >= m->nacc) || (o >= 2 && (o - 2 <= m->nshared || m->dim[o - 2] == 1)))
      continue;
    for (p.images = 0;; p.images = images) {
      double t = try_first(q, p, room, images);
      if (t < least) least = t, top = p;
      if (p.images || !images || o < 2 + images) break;
    }
  }
  q->least = 0;
  p = top; /* a second dim, where the first is unrolled whole */
  for (uint32_t d = m->nshared; d < m->nacc && m->reduces; d++) {
    if (d == p.vdim || m->dim[d] < 2 || m->dim[d] > most_rows(q, &p, d, room)) continue;
    p.udim[0] = d, p.unroll[0] = m->dim[d], p.udim[1] = m->n;
    try_second(q, p, room);
  }
}
/* The best again with a few steps of the innermost reduction unrolled, or all of a short one. */
#define SHORT_RED 8
static void try_deeper(stage_search *q) {
  const tarn_stage_work *m = q->m;
  uint32_t last = m->n - 1, n = q->n;
  tarn_stage_sched was[TARN_RANKED];
  for (uint32_t i = 0; i < n; i++) was[i] = q->b[i].sched;
  for (uint32_t i = 0; i < n && m->n > m->nacc; i++) {
    const tarn_stage_sched *s = &was[i];
    int64_t left[TARN_MAX_DIMS], ops = 1;
    uint32_t at = s->nlevel;
    memcpy(left, m->dim, sizeof left);
    for (uint32_t l = 0; l < s->nlevel; l++) {
      bool inner = s->level[l].kind == TARN_UNROLL || s->level[l].kind == TARN_VECTOR ||
                   s->level[l].kind == TARN_DOT;
      if (s->level[l].kind == TARN_UNROLL) ops *= left[s->level[l].dim] / s->level[l].step;
      left[s->level[l].dim] = s->level[l].step;
      if (s->level[l].dim == last) at = inner ? s->nlevel : l;
    }
    if (at == s->nlevel || s->level[at].step != 1 || s->nlevel == TARN_MAX_LEVELS) continue;
    for (int64_t u = 2; u <= 4 && u * ops <= MOST_WRITTEN; u *= 2) {
      tarn_stage_sched deep = *s;
      if (m->dim[last] % u || m->dim[last] < 2 * u) break;
      deep.level[at].step = u;
      memmove(&deep.level[at + 2], &deep.level[at + 1], (s->nlevel - at - 1) * sizeof *deep.level);
      deep.level[at + 1] = (tarn_level){(uint8_t)last, TARN_UNROLL, 1}, deep.nlevel++;
      offer(q, &deep, stage_seconds(q, &deep));
    }
    if (m->dim[last] > SHORT_RED || m->dim[last] * ops > MOST_WRITTEN) continue;
    tarn_stage_sched deep = *s;
    deep.level[at].kind = TARN_UNROLL;
    offer(q, &deep, stage_seconds(q, &deep));
  }
}
/* With each reduce dim that is long enough for an instruction that takes several steps of it. */
static void try_dots(stage_search *q, pick p) {
  const tarn_stage_work *m = q->m;
  try_unrolls(q, p);
  for (p.dot = m->nacc; p.dot < m->n && m->dot.k && p.vdim < m->nacc; p.dot++)
    if (m->dim[p.dot] >= m->dot.k) try_unrolls(q, p);
}
/* A sum multiplied by constant matrices: all their dims in the tile, the outer loops in several
 * orders. */
static void try_matrices(stage_search *q, pick p) {
  const tarn_stage_work *m = q->m;
  p.udim[0] = p.udim[1] = m->n, p.matrices = true;
  if (m->matrices >> p.vdim & 1) return;
  for (p.order = 0; p.order < 2 + m->nacc; p.order++) {
    uint32_t first = p.order - 2;
    if (p.order < 2 || (first > m->nshared && m->dim[first] > 1 && !(m->matrices >> first & 1)))
      try_one(q, &p);
  }
}
/* Do rows along `vdim` follow one another, a step of d behind the other, in all that lies along it?
 */
static bool follow(const tarn_stage_work *m, uint32_t vdim, uint32_t d) {
  int64_t row = m->dim[vdim];
  if (m->result.coef[vdim] != 1 || m->result.coef[d] != row) return false;
  for (uint32_t r = 0; r < m->nread; r++) {
    const tarn_touch *a = &m->read[r];
    if (a->irregular || a->coef[d] != a->coef[vdim] * row || llabs(a->coef[vdim]) > 1) return false;
  }
  return true;
}
/* Rows of at most half a vector: as many as it holds, and the tile all of them, so that what
 * padding leaves out is known. */
#define MOST_ROWS 8 /* vectors */
static void try_rows(stage_search *q, uint32_t vdim, int64_t lanes) {
  const tarn_stage_work *m = q->m;
  pick p = {.vdim = vdim, .lanes = 1, .vectors = 1, .dot = m->n};
  while (p.lanes < m->dim[vdim]) p.lanes *= 2;
  p.each = lanes / p.lanes;
  if (!m->reduces || m->nshared || vdim >= m->nacc || p.each < 2 || m->matrices) return;
  for (p.rdim = 0; p.rdim < m->nacc; p.rdim++) {
    int64_t vectors = tarn_ceildiv(m->dim[p.rdim], p.each);
    if (p.rdim == vdim || m->dim[p.rdim] < 2 || vectors > MOST_ROWS || !follow(m, vdim, p.rdim))
      continue;
    p.udim[0] = p.rdim, p.unroll[0] = vectors * p.each;
    for (p.order = 0; p.order < 2 + m->nacc; p.order++) {
      if (p.order == 1 || (p.order >= 2 && m->dim[p.order - 2] == 1)) continue;
      p.udim[1] = m->n;
      try_pick(q, &p);
      try_second(q, p, q->hw->vector_regs);
    }
  }
}
void stage_solve(stage_search *q, bool strict) {
  const tarn_stage_work *m = q->m;
  int64_t lanes = tarn_hw_lanes(q->hw, TARN_F32);
  double l2 = q->hw->nmem > 1 ? (double)tarn_hw_mem(q->hw, TARN_HW_L2)->capacity : INFINITY;
  q->strict = strict;
  q->least = 0;
  loop_room_begin(q->room);
  q->far = m->nshared == 0 && q->hw->nmem > 2 &&
           tarn_stage_whole(m) > l2 * tarn_hw_mem(q->hw, TARN_HW_L2)->instances;
  q->large = m->fma && m->resumes && m->nshared == 0 && tarn_stage_whole(m) > l2;
  for (uint32_t d = m->nshared; d < m->n; d++) {
    if (m->dim[d] < 2 || !vector_dim(m, d)) continue;
    int64_t l = lanes;
    try_rows(q, d, lanes);
    while (l / 2 >= m->dim[d]) l /= 2; /* short dims: a narrower vector, partly empty */
    if (m->matrices) {
      try_matrices(q, (pick){.vdim = d, .lanes = l, .vectors = 1, .dot = m->n, .rdim = m->n});
      continue;
    }
    if (l > m->dim[d])
      try_dots(q, (pick){.vdim = d, .lanes = l, .vectors = 1, .dot = m->n, .rdim = m->n});
    if (l > m->dim[d]) l /= 2; /* or a full one */
    for (int64_t v = 1; v <= 8 && v * l <= m->dim[d] + l - 1; v = v < 4 ? v + 1 : v + 2)
      try_dots(q, (pick){.vdim = d, .lanes = l, .vectors = v, .dot = m->n, .rdim = m->n});
  }
  pick none = {.vdim = m->n, .lanes = 1, .vectors = 1, .dot = m->n, .rdim = m->n};
  if (m->matrices) try_matrices(q, none);
  else try_dots(q, none), try_deeper(q);
}
