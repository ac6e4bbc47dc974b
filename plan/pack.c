/* Packs constants in the order in which the register tile reads them. tarn_packing_of() decides the
 * packing, prices use it, and tarn_ksig_block() makes the kernel that reads the packed constants.
 * The code that writes the constants gets the packing from there. */
#include "kernel/loops.h"
#include "plan/internal.h"
#include <string.h>

/* ---- what a schedule says of tiles ---- */
/* Without lanes, neighbouring threads take their place: two parallel levels of the dim whose level
 * is the last parallel one. */
static int64_t thread_tile(const tarn_stage_sched *s, uint32_t *dim) {
  uint32_t last = 0;
  *dim = TARN_NONE;
  for (uint32_t i = 0; i < s->nlevel; i++)
    if (s->level[i].kind == TARN_PARALLEL) last = i;
  for (uint32_t i = 0; i < last; i++)
    if (s->level[i].kind == TARN_PARALLEL && s->level[i].dim == s->level[last].dim) {
      *dim = s->level[i].dim;
      return s->level[i].step;
    }
  return 0;
}
int64_t tarn_schedule_tile(const tarn_stage_sched *s, uint32_t *vdim) {
  *vdim = TARN_NONE;
  for (uint32_t i = 0; i < s->nlevel; i++)
    if (s->level[i].kind == TARN_VECTOR) *vdim = s->level[i].dim;
  if (*vdim == TARN_NONE) return thread_tile(s, vdim);
  int64_t tile = 0;
  for (uint32_t i = 0; i < s->nlevel;
       i++) { /* inside of the last loop, as far as tiles of the loops outside are whole */
    const tarn_level *l = &s->level[i];
    if (l->dim != *vdim) continue;
    if (tile && (l->kind == TARN_UNROLL || l->kind == TARN_VECTOR || tile % l->step)) break;
    tile = l->step;
  }
  return tile;
}
uint32_t tarn_schedule_rows(const tarn_stage_sched *s) {
  const tarn_level *l = s->nlevel < 2 ? NULL : &s->level[s->nlevel - 2];
  bool rows = l && l[0].kind == TARN_VECTOR && l[1].kind == TARN_VECTOR && l[0].dim != l[1].dim;
  return rows ? l[0].dim : TARN_NONE;
}
uint32_t tarn_schedule_dot(const tarn_stage_sched *s, int64_t *k) {
  if (!s->nlevel || s->level[s->nlevel - 1].kind != TARN_DOT) return TARN_NONE;
  uint32_t d = s->level[s->nlevel - 1].dim;
  *k = 0;
  for (uint32_t i = 0; i + 1 < s->nlevel; i++)
    if (s->level[i].dim == d) *k = s->level[i].step;
  return d;
}
/* Are tiles of so many cut out of a dim, by every level that is not inside of them? The last tile
 * may be ragged. */
static bool cuts(const tarn_stage_sched *s, uint32_t d, int64_t extent, int64_t tile) {
  if (tile < 2 || extent <= tile) return false;
  for (uint32_t i = 0; i < s->nlevel; i++)
    if (s->level[i].dim == d && s->level[i].step > tile && s->level[i].step % tile) return false;
  return true;
}
tarn_blocks tarn_schedule_blocks(const tarn_stage_sched *s, uint32_t nown, const int64_t *own) {
  tarn_blocks b = {TARN_NONE, TARN_NONE, 0, 0};
  int64_t left[TARN_MAX_DIMS];
  uint32_t lane, first = nown;
  int64_t tile = tarn_schedule_tile(s, &lane);
  if (lane >= nown) return b;
  bool cut = cuts(s, lane, own[lane], tile) && !(s->open >> lane & 1);
  b.lane = lane;
  b.lane_tile = cut ? tile : 0;
  memcpy(left, own, nown * sizeof *left);
  for (uint32_t i = 0; i < s->nlevel; i++) { /* the unrolled dim of most rows */
    const tarn_level *l = &s->level[i];
    if (l->dim >= nown || s->open >> l->dim & 1) continue;
    if (l->kind == TARN_UNROLL && l->dim != lane && left[l->dim] > b.row_tile)
      first = l->dim, b.row_tile = left[l->dim];
    if (l->step < left[l->dim]) left[l->dim] = l->step;
  }
  if (first < nown && cuts(s, first, own[first], b.row_tile)) b.row = first;
  else b.row_tile = 0;
  return b;
}

/* Dims whose loops are all outside of dim d's, as bits: a constant packed in blocks of d has them
 * outside of the blocks. */
static uint32_t dims_outside(const tarn_stage_sched *s, uint32_t d) {
  uint32_t out = UINT32_MAX, i = 0;
  while (i < s->nlevel && s->level[i].dim != d) i++;
  for (; i < s->nlevel; i++) out &= ~(1u << s->level[i].dim);
  return out;
}

/* ---- the decision ---- */
bool tarn_packs(uint32_t nstage, uint32_t depth, uint32_t nred) {
  return nstage == 1 ? !depth : depth && nred;
}

/* The dims that walk the address by whole spans, by falling step; 0: not each place once. */
static uint32_t coarse_dims(const tarn_address *a, uint32_t d, int64_t span, uint8_t *by) {
  uint32_t n = 0;
  int64_t whole = span;
  for (uint32_t e = 0; e < a->n; e++) {
    if (e == d || !a->coef[e] || a->coef[e] % span) continue;
    uint32_t at = n++;
    for (; at > 0 && a->coef[by[at - 1]] <= a->coef[e]; at--) by[at] = by[at - 1];
    by[at] = (uint8_t)e;
  }
  for (uint32_t i = n; i-- > 0; whole *= a->dim[by[i]])
    if (a->coef[by[i]] != whole) return 0;
  return whole == a->elems && n + 2 <= TARN_MAX_DIMS ? n : 0;
}

/* Do the dims that walk less than a step of d stay within it? */
static bool stays_within(const tarn_address *a, uint32_t d, int64_t span) {
  int64_t step = a->coef[d], reach = 0;
  for (uint32_t e = 0; e < a->n; e++)
    if (e != d && a->coef[e] % span) reach += a->coef[e] > 0 ? a->coef[e] * (a->dim[e] - 1) : step;
  return reach < step;
}

/* The coarse dims whose loops are all outside of d's lie outside of the tiles, the others within.
 */
static void lay_out(tarn_packing *p, const int64_t *dim, uint32_t outside) {
  uint32_t ncoarse = p->nby ? p->nby : 1, n = ncoarse + 1 + (p->step > 1), at = 0;
  uint8_t order[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < p->nby; i++)
    if (outside >> p->by[i] & 1) order[at++] = (uint8_t)i;
  order[at++] = (uint8_t)ncoarse;
  for (uint32_t i = 0; i < ncoarse; i++)
    if (!p->nby || !(outside >> p->by[i] & 1)) order[at++] = (uint8_t)i;
  if (p->step > 1) order[at] = (uint8_t)(ncoarse + 1);
  p->layout = tarn_layout_ordered(n, dim, order, (uint8_t)ncoarse, p->tile);
}

tarn_packing tarn_packing_of(const tarn_address *a, const tarn_blocks *b,
                             const tarn_stage_sched *s) {
  tarn_packing p = {.dim = TARN_NONE}, none = p;
  if (b->lane == TARN_NONE) return none;
  bool lane = a->coef[b->lane] != 0;
  p.dim = lane ? b->lane : b->row, p.tile = lane ? b->lane_tile : b->row_tile;
  if (!p.tile || p.dim == TARN_NONE) return none;
  p.step = a->coef[p.dim], p.span = p.step * a->dim[p.dim];
  if (p.step < 1 || a->elems % p.span || a->start % p.span || !stays_within(a, p.dim, p.span))
    return none;
  if (p.step == 1 && p.span == a->elems) return none; /* its tiles follow one another as it is */
  p.nby = a->start ? 0 : coarse_dims(a, p.dim, p.span, p.by);
  int64_t dim[TARN_MAX_DIMS] = {a->elems / p.span};
  uint32_t n = 0;
  while (n < p.nby) dim[n] = a->dim[p.by[n]], n++;
  n += !p.nby;
  dim[n] = a->dim[p.dim], dim[n + 1] = p.step;
  lay_out(&p, dim, dims_outside(s, p.dim));
  return p;
}

/* ---- the kernel that reads them so ---- */
typedef struct packer {
  tarn_lang *L;
  const tarn_ksig *k;
  knest w;
  uint32_t reads[TARN_MAX_OPERANDS]; /* of each operand */
  tarn_packed how[TARN_MAX_OPERANDS];
} packer;
/* What of a stage is packed: by its lanes, by its rows, by groups of `each` steps of its dot dim.
 */
typedef struct stage_cut {
  tarn_blocks by;
  uint32_t dot;
  int64_t each;
  bool lane, row, group;
} stage_cut;

/* The address of a flat constant that is read in one place; false: it is no such one, or no sum of
 * steps. */
static bool address_of(const packer *p, const knest_read *r, int64_t *coef, tarn_address *a) {
  if (r->stage || r->epi || r->row.by || !p->k->in_const[r->src] || p->reads[r->src] > 1)
    return false;
  const tarn_layout *l = &p->w.in[r->src];
  if (l->block || l->n != 1 || l->stride[0] != 1 || !tarn_ix_affine(p->L, r->m.e[0])) return false;
  for (uint32_t d = 0; d < r->m.n; d++) coef[d] = tarn_ix_coef(p->L, r->m.e[0], d);
  *a = (tarn_address){r->m.n, r->m.dim, coef, tarn_ix_get(p->L, r->m.e[0])->c, l->dim[0]};
  return true;
}

static uint32_t plus(tarn_lang *L, uint32_t e, int64_t k, uint32_t d, const int64_t *dim) {
  return tarn_ix_add(L, e, tarn_ix_scale(L, tarn_ix_var(L, d, dim), k, dim), dim);
}

/* The read over the packed dims. */
static void read_tiles(tarn_lang *L, tarn_imap *m, const tarn_address *a, const tarn_packing *p) {
  uint32_t coarse = tarn_ix_const(L, a->start / p->span), fine = tarn_ix_const(L, 0);
  for (uint32_t e = 0; e < m->n; e++) {
    if (e == p->dim || !a->coef[e]) continue;
    if (a->coef[e] % p->span) fine = plus(L, fine, a->coef[e], e, m->dim);
    else coarse = plus(L, coarse, a->coef[e] / p->span, e, m->dim);
  }
  uint32_t at = p->layout.baxis;
  m->nin = p->layout.n;
  memcpy(m->in, p->layout.dim, sizeof m->in);
  m->e[0] = coarse;
  for (uint32_t i = 0; i < p->nby; i++) m->e[i] = tarn_ix_var(L, p->by[i], m->dim);
  m->e[at] = tarn_ix_var(L, p->dim, m->dim);
  if (at + 1u < m->nin) m->e[at + 1] = fine;
}

/* From (row of groups, place in it) to the flat constant of `rows` rows of `lanes`, where a group
 * has `each` rows that lie `apart` rows from one another. */
static uint32_t groups_view(tarn_lang *L, int64_t rows, int64_t lanes, int64_t each,
                            int64_t apart) {
  tarn_imap m = {.ns = 2, .n = 2, .nin = 1, .in = {rows * lanes}, .fill = TARN_NONE};
  m.dim[0] = rows / each, m.dim[1] = lanes * each;
  uint32_t row = tarn_ix_var(L, 0, m.dim), at = tarn_ix_var(L, 1, m.dim);
  uint32_t e = tarn_ix_scale(L, tarn_ix_div(L, row, apart, m.dim), each, m.dim);
  e = tarn_ix_add(L, e, tarn_ix_mod(L, at, each, m.dim), m.dim);
  e = tarn_ix_scale(L, e, apart, m.dim);
  e = tarn_ix_add(L, e, tarn_ix_mod(L, row, apart, m.dim), m.dim);
  e = tarn_ix_scale(L, e, lanes, m.dim);
  m.e[0] = tarn_ix_add(L, e, tarn_ix_div(L, at, each, m.dim), m.dim);
  return tarn_map_intern(L, &m);
}

/* The row of groups that a read walks; TARN_NONE: it does not walk whole rows, groups of which
 * follow one another. */
static uint32_t row_of_groups(tarn_lang *L, const tarn_imap *m, const tarn_address *a,
                              const stage_cut *c) {
  int64_t lanes = a->dim[c->by.lane], step = a->coef[c->dot], span = step * a->dim[c->dot];
  if (a->coef[c->by.lane] != 1 || step < 1 || step % lanes || a->elems % span || a->start)
    return TARN_NONE;
  uint32_t group = tarn_ix_div(L, tarn_ix_var(L, c->dot, m->dim), c->each, m->dim),
           row = tarn_ix_scale(L, group, step / lanes, m->dim);
  for (uint32_t e = 0; e < m->n; e++) {
    int64_t by = a->coef[e], rows = by / lanes;
    if (e == c->dot || e == c->by.lane || !by) continue;
    if (by % lanes || by < 0 || (by % span && rows * a->dim[e] > step / lanes)) return TARN_NONE;
    row = plus(L, row, by % span ? rows : rows / c->each, e, m->dim);
  }
  return row;
}

/* `each` steps of the dot dim side by side for each lane, in tiles of lanes. False: not so. */
static bool pack_groups(packer *p, knest_read *r, const tarn_address *a, const stage_cut *c) {
  tarn_lang *L = p->L;
  tarn_imap *m = &r->m;
  tarn_packed *how = &p->how[r->src];
  uint32_t row = row_of_groups(L, m, a, c);
  if (row == TARN_NONE) return false;
  int64_t lanes = a->dim[c->by.lane], rows = a->elems / lanes;
  const int64_t dim[2] = {rows / c->each, lanes * c->each};
  how->view = groups_view(L, rows, lanes, c->each, a->coef[c->dot] / lanes);
  how->layout = c->by.lane_tile
                    ? tarn_layout_ordered(2, dim, (uint8_t[]){1, 0}, 1, c->by.lane_tile * c->each)
                    : tarn_layout_row_major(2, dim);
  uint32_t at = plus(L, tarn_ix_const(L, 0), c->each, c->by.lane, m->dim),
           place = tarn_ix_mod(L, tarn_ix_var(L, c->dot, m->dim), c->each, m->dim);
  m->nin = 2, memcpy(m->in, dim, sizeof dim);
  m->e[0] = row, m->e[1] = tarn_ix_add(L, at, place, m->dim);
  return true;
}

static stage_cut pack_stage(packer *p, knest_stage *st, const tarn_stage_sched *s) {
  int64_t dim[TARN_MAX_DIMS + 2], coef[TARN_MAX_DIMS];
  uint32_t n = knest_dims(&p->w, st, dim), acc = knest_acc(&p->w, st);
  stage_cut c = {.by = tarn_schedule_blocks(s, acc, dim)};
  if (!tarn_packs(p->w.nstage, p->w.depth, n - acc) || c.by.lane == TARN_NONE) return c;
  c.dot = tarn_schedule_dot(s, &c.each);
  if (c.dot != TARN_NONE && (c.dot < acc || c.each < 2 || dim[c.dot] % c.each)) c.dot = TARN_NONE;
  for (uint32_t r = 0; r < st->nread; r++) {
    knest_read *x = &st->read[r];
    tarn_address a;
    if (!address_of(p, x, coef, &a)) continue;
    if (c.dot != TARN_NONE && pack_groups(p, x, &a, &c)) {
      c.group = true, c.lane |= c.by.lane_tile > 0;
    } else {
      tarn_packing k = tarn_packing_of(&a, &c.by, s);
      if (k.dim == TARN_NONE) continue;
      read_tiles(p->L, &x->m, &a, &k);
      p->how[x->src] = (tarn_packed){TARN_NONE, k.layout};
      *(k.dim == c.by.lane ? &c.lane : &c.row) = true;
    }
    p->w.in[x->src] = p->how[x->src].layout;
  }
  return c;
}

/* The same loops after dim d has become (d / tile, d mod tile). */
static void split_schedule(tarn_stage_sched *s, uint32_t d, int64_t tile) {
  uint32_t before = tarn_first_dims(d + 1);
  s->open = (s->open & before) | (s->open & ~before) << 1;
  s->brief = (s->brief & before) | (s->brief & ~before) << 1;
  for (uint32_t i = 0; i < s->nlevel; i++) {
    tarn_level *l = &s->level[i];
    if (l->dim > d || (l->dim == d && l->step < tile)) l->dim++;
    else if (l->dim == d) l->step /= tile;
  }
}
/* Dims that are cut evenly become two, so that addresses are sums of steps; later ones first: their
 * numbers move. */
static void split_cut(knest *w, knest_stage *st, tarn_stage_sched *s, const stage_cut *c) {
  int64_t dim[TARN_MAX_DIMS + 2];
  knest_dims(w, st, dim);
  if (c->group && dim[c->dot] > c->each) {
    knest_split(w, st, c->dot, c->each);
    split_schedule(s, c->dot, c->each);
  }
  for (uint32_t d = knest_acc(w, st); d-- > w->depth;) {
    int64_t tile = d == c->by.lane && c->lane ? c->by.lane_tile
                   : d == c->by.row && c->row ? c->by.row_tile
                                              : 0;
    if (!tile || dim[d] % tile || knest_fixed(w, st, d) || !knest_may_split(w, st, d, tile))
      continue;
    knest_split(w, st, d, tile);
    split_schedule(s, d, tile);
  }
}

static void count_reads(packer *p) {
  for (uint32_t i = 0; i < p->w.nstage; i++)
    for (uint32_t r = 0; r < p->w.stage[i].nread; r++)
      if (!p->w.stage[i].read[r].stage) p->reads[p->w.stage[i].read[r].src]++;
}

bool tarn_ksig_block(tarn_lang *L, tarn_ksig *k, const tarn_schedule **s, tarn_packed *how) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  packer here = {.L = L, .k = k}, *p = &here;
  knest_open(&p->w, L, k);
  count_reads(p);
  stage_cut *cut = TARN_ARRAY(cx, stage_cut, p->w.nstage);
  bool any = false;
  for (uint32_t i = 0; i < p->w.nstage; i++) {
    cut[i] = pack_stage(p, &p->w.stage[i], &(*s)->stage[i]);
    any |= cut[i].lane || cut[i].row || cut[i].group;
  }
  if (how) memcpy(how, p->how, k->nin * sizeof *how);
  if (!any) return false;
  tarn_schedule *t = tarn_copy(cx, *s, sizeof *t);
  t->stage = tarn_copy(cx, t->stage, t->nstage * sizeof *t->stage);
  for (uint32_t j = 0; j < k->nin; j++) {
    if (!p->how[j].layout.n) continue;
    knest_flatten(&p->w, j);
    k->in_numbers[j] = NULL; /* they lie elsewhere now */
  }
  for (uint32_t i = 0; i < p->w.nstage; i++)
    split_cut(&p->w, &p->w.stage[i], &t->stage[i], &cut[i]);
  knest_close(&p->w, k);
  *s = t;
  return true;
}
