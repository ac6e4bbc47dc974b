/* Constant operands blocked by the register tile. See tarn_ksig_block(). */
#include "plan/internal.h"
#include <string.h>

int64_t tarn_schedule_tile(const tarn_stage_sched *s, uint32_t *vdim) {
  *vdim = TARN_NONE;
  for (uint32_t i = 0; i < s->nlevel; i++)
    if (s->level[i].kind == TARN_VECTOR) *vdim = s->level[i].dim;
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
  b.lane = lane, b.lane_tile = cuts(s, lane, own[lane], tile) ? tile : 0;
  memcpy(left, own, nown * sizeof *left);
  for (uint32_t i = 0; i < s->nlevel; i++) { /* the unrolled dim of most rows */
    const tarn_level *l = &s->level[i];
    if (l->dim >= nown) continue;
    if (l->kind == TARN_UNROLL && l->dim != lane && left[l->dim] > b.row_tile)
      first = l->dim, b.row_tile = left[l->dim];
    if (l->step < left[l->dim]) left[l->dim] = l->step;
  }
  if (first < nown && cuts(s, first, own[first], b.row_tile)) b.row = first;
  else b.row_tile = 0;
  return b;
}

uint32_t tarn_schedule_outside(const tarn_stage_sched *s, uint32_t d) {
  uint32_t out = UINT32_MAX, i = 0;
  while (i < s->nlevel && s->level[i].dim != d) i++;
  for (; i < s->nlevel; i++) out &= ~(1u << s->level[i].dim);
  return out;
}

uint32_t tarn_coarse_dims(uint32_t n, const int64_t *dim, const int64_t *coef, uint32_t d,
                          int64_t span, int64_t elems, uint8_t *by) {
  uint32_t k = 0;
  int64_t whole = 1;
  for (uint32_t e = 0; e < n; e++) {
    if (e == d || !coef[e] || coef[e] % span) continue;
    uint32_t at = k++;
    for (; at > 0 && coef[by[at - 1]] > coef[e]; at--) by[at] = by[at - 1];
    by[at] = (uint8_t)e;
  }
  for (uint32_t i = 0; i < k; whole *= dim[by[i++]])
    if (coef[by[i]] != whole * span) return 0;
  return whole * span == elems && k + 2 <= TARN_MAX_DIMS ? k : 0;
}
/* The flat address as (what is coarser, dim d, what is finer), laid out in blocks of d that are
 * walked innermost; what is walked outside of the blocks, bits of `outside`, lies outside of them.
 */
static bool block_operand(tarn_lang *L, tarn_ksig *k, tarn_read *r, uint32_t d, int64_t tile,
                          uint32_t outside) {
  tarn_imap m = *tarn_imap_get(L, r->map);
  tarn_layout *l = &k->in[r->src];
  if (m.nin != 1 || l->block || l->n != 1 || l->stride[0] != 1 || !tarn_ix_affine(L, m.e[0]))
    return false;
  int64_t step = tarn_ix_coef(L, m.e[0], d), span = m.dim[d] * step, c = tarn_ix_get(L, m.e[0])->c,
          reach = 0;
  if (step < 1 || m.in[0] % span || c % span) return false;
  uint32_t coarse = tarn_ix_const(L, c / span), fine = tarn_ix_const(L, 0), at = 0;
  for (uint32_t e = 0; e < m.n; e++) {
    int64_t by = tarn_ix_coef(L, m.e[0], e);
    if (e == d || !by) continue;
    uint32_t var = tarn_ix_var(L, e, m.dim);
    if (by % span == 0)
      coarse = tarn_ix_add(L, coarse, tarn_ix_scale(L, var, by / span, m.dim), m.dim);
    else
      fine = tarn_ix_add(L, fine, tarn_ix_scale(L, var, by, m.dim), m.dim),
      reach += by > 0 ? by * (m.dim[e] - 1) : step;
  }
  if (reach >= step) return false;
  int64_t dim[TARN_MAX_DIMS] = {m.in[0] / span, m.dim[d], step};
  uint8_t by[TARN_MAX_DIMS], order[TARN_MAX_DIMS] = {1, 0, 2};
  int64_t coef[TARN_MAX_DIMS];
  for (uint32_t e = 0; e < m.n; e++) coef[e] = tarn_ix_coef(L, m.e[0], e);
  uint32_t n = c ? 0 : tarn_coarse_dims(m.n, m.dim, coef, d, span, m.in[0], by);
  m.nin = 3, m.e[0] = coarse, m.e[1] = tarn_ix_var(L, d, m.dim), m.e[2] = fine;
  if (n) {
    for (uint32_t i = 0, e = n - 1; i < n / 2; i++, e--) { /* by falling step */
      uint8_t b = by[i];
      by[i] = by[e], by[e] = b;
    }
    for (uint32_t i = 0; i < n; i++) dim[i] = m.dim[by[i]], m.e[i] = tarn_ix_var(L, by[i], m.dim);
    dim[n] = m.dim[d], m.e[n] = tarn_ix_var(L, d, m.dim), dim[n + 1] = step, m.e[n + 1] = fine,
    m.nin = (uint8_t)(n + 2);
    for (uint32_t i = 0; i < n; i++)
      if (outside >> by[i] & 1) order[at++] = (uint8_t)i;
    order[at++] = (uint8_t)n;
    for (uint32_t i = 0; i < n; i++)
      if (!(outside >> by[i] & 1)) order[at++] = (uint8_t)i;
    order[at] = (uint8_t)(n + 1);
  }
  memcpy(m.in, dim, sizeof m.in);
  *l = tarn_layout_ordered(m.nin, dim, order, (uint8_t)(m.nin - 2), tile);
  r->map = tarn_map_intern_derived(L, &m);
  k->in_numbers[r->src] = NULL; /* they lie elsewhere now */
  return true;
}

/* The flat address as (what is coarser, the lane dim n and of dim d the place in a group of k), the
 * groups side by side in blocks that are walked innermost. */
static bool block_groups(tarn_lang *L, tarn_ksig *ks, tarn_read *r, uint32_t n, int64_t tile,
                         uint32_t d, int64_t k) {
  tarn_imap m = *tarn_imap_get(L, r->map);
  tarn_layout *l = &ks->in[r->src];
  if (m.nin != 1 || l->block || l->n != 1 || l->stride[0] != 1 || !tarn_ix_affine(L, m.e[0]))
    return false;
  int64_t step = tarn_ix_coef(L, m.e[0], d), span = step * m.dim[d];
  if (tarn_ix_coef(L, m.e[0], n) != 1 || step % m.dim[n] || step < 1 || m.in[0] % span ||
      tarn_ix_get(L, m.e[0])->c)
    return false;
  uint32_t coarse =
      tarn_ix_scale(L, tarn_ix_div(L, tarn_ix_var(L, d, m.dim), k, m.dim), step / m.dim[n], m.dim);
  for (uint32_t e = 0; e < m.n; e++) {
    int64_t by = tarn_ix_coef(L, m.e[0], e), rows = by / m.dim[n];
    if (e == d || e == n || !by) continue;
    if (by % m.dim[n] || by < 0 || (by % span && rows * m.dim[e] > step / m.dim[n])) return false;
    coarse = tarn_ix_add(
        L, coarse, tarn_ix_scale(L, tarn_ix_var(L, e, m.dim), by % span ? rows : rows / k, m.dim),
        m.dim);
  }
  uint32_t fine = tarn_ix_scale(L, tarn_ix_var(L, n, m.dim), k, m.dim);
  fine = tarn_ix_add(L, fine, tarn_ix_mod(L, tarn_ix_var(L, d, m.dim), k, m.dim), m.dim);
  const int64_t dim[2] = {m.in[0] / m.dim[n] / k, m.dim[n] * k};
  m.nin = 2, memcpy(m.in, dim, sizeof dim), m.e[0] = coarse, m.e[1] = fine;
  *l = tile ? tarn_layout_ordered(2, dim, (uint8_t[]){1, 0}, 1, tile * k)
            : tarn_layout_row_major(2, dim);
  r->map = tarn_map_intern_derived(L, &m);
  return true;
}

/* The same loops after dim d has become (d / tile, d mod tile). */
static void split_schedule(tarn_stage_sched *s, uint32_t d, int64_t tile) {
  for (uint32_t i = 0; i < s->nlevel; i++) {
    tarn_level *l = &s->level[i];
    if (l->dim > d || (l->dim == d && l->step < tile)) l->dim++;
    else if (l->dim == d) l->step /= tile;
  }
}

static bool touches(tarn_lang *L, const tarn_read *r, uint32_t d) {
  const tarn_imap *m = tarn_imap_get(L, r->map);
  uint32_t mask = 0;
  for (uint32_t a = 0; a < m->nin; a++) mask |= tarn_ix_dims(L, m->e[a]);
  return mask >> d & 1;
}

/* What the register tile of a stage cuts: which constants are packed, and which dims that makes two
 * of (cut evenly, and not the dims of a local buffer). */
typedef struct stage_cut {
  tarn_blocks by;
  bool lane, row;
} stage_cut;
static uint32_t own_dims(const tarn_nest *n, const tarn_stage *s, int64_t *dim) {
  memcpy(dim, n->shared, n->depth * sizeof *dim);
  memcpy(dim + n->depth, s->own, s->nown * sizeof *dim);
  return (uint32_t)n->depth + s->nown;
}
static stage_cut block_stage(tarn_lang *L, tarn_ksig *b, const tarn_nest *n, tarn_stage *s,
                             const tarn_stage_sched *sched) {
  int64_t dim[TARN_MAX_DIMS * 2];
  uint32_t nown = own_dims(n, s, dim);
  stage_cut c = {.by = tarn_schedule_blocks(sched, nown, dim)};
  const tarn_func f = *tarn_fn_get(L, s->fn);
  tarn_read *r = tarn_copy(tarn_lang_ctx(L), s->read, ((size_t)f.nops + f.nepi) * sizeof *r);
  bool product =
      n->nstage == 1 || s->nred; /* of several stages, those that walk a constant again and again */
  for (uint32_t j = 0; j < f.nops && product && c.by.lane != TARN_NONE; j++) {
    if (r[j].stage || !b->in_const[r[j].src]) continue;
    if (touches(L, &r[j], c.by.lane))
      c.lane |= c.by.lane_tile && block_operand(L, b, &r[j], c.by.lane, c.by.lane_tile,
                                                tarn_schedule_outside(sched, c.by.lane));
    else
      c.row |= c.by.row_tile && block_operand(L, b, &r[j], c.by.row, c.by.row_tile,
                                              tarn_schedule_outside(sched, c.by.row));
  }
  s->read = r;
  return c;
}
/* Is the stage as it was, dims that were cut evenly being two? Leaves in *c what has become two. */
static bool carried(const tarn_nest *n, const tarn_stage *was, const tarn_stage *now,
                    stage_cut *c) {
  int64_t dim[TARN_MAX_DIMS * 2];
  uint32_t nown = own_dims(n, was, dim), at = 0;
  bool whole = now->nown == was->nown; /* a local buffer's */
  if (whole || !c->lane || dim[c->by.lane] % c->by.lane_tile) c->by.lane_tile = 0;
  if (whole || !c->row || dim[c->by.row] % c->by.row_tile) c->by.row_tile = 0;
  bool same = now->nown == was->nown + (c->by.lane_tile > 0) + (c->by.row_tile > 0) &&
              now->nred == was->nred;
  for (uint32_t d = n->depth; d < nown && same; d++, at++) {
    int64_t tile = d == c->by.lane ? c->by.lane_tile : d == c->by.row ? c->by.row_tile : 0;
    same =
        tile ? now->own[at] == dim[d] / tile && now->own[at + 1] == tile : now->own[at] == dim[d];
    at += tile != 0;
  }
  for (uint32_t d = 0; d < was->nred && same; d++) same = now->red[d] == was->red[d];
  return same;
}

/* The same for one stage with a dot level, in groups where they are whole. */
static bool block_dot(tarn_lang *L, tarn_ksig *k, const tarn_schedule **s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_nest n = *tarn_nest_get(L, k->nest);
  if (n.nstage != 1 || n.depth) return false;
  tarn_stage st = n.stage[0];
  tarn_blocks cut = tarn_schedule_blocks(&(*s)->stage[0], st.nown, st.own);
  const tarn_func f = *tarn_fn_get(L, st.fn);
  tarn_read *r = tarn_copy(cx, st.read, ((size_t)f.nops + f.nepi) * sizeof *r);
  tarn_ksig b = *k;
  bool by_lane = false, by_row = false, by_group = false;
  int64_t k_dot = 0;
  uint32_t dot = tarn_schedule_dot(&(*s)->stage[0], &k_dot);
  if (dot != TARN_NONE && (dot < st.nown || k_dot < 2 || st.red[dot - st.nown] % k_dot))
    dot = TARN_NONE;
  for (uint32_t j = 0; j < f.nops && cut.lane != TARN_NONE; j++) {
    if (r[j].stage || !k->in_const[r[j].src]) continue;
    if (dot != TARN_NONE && touches(L, &r[j], cut.lane) && touches(L, &r[j], dot) &&
        block_groups(L, &b, &r[j], cut.lane, cut.lane_tile, dot, k_dot))
      by_group = true, by_lane |= cut.lane_tile > 0;
    else if (touches(L, &r[j], cut.lane))
      by_lane |= cut.lane_tile && block_operand(L, &b, &r[j], cut.lane, cut.lane_tile,
                                                tarn_schedule_outside((*s)->stage, cut.lane));
    else
      by_row |= cut.row_tile && block_operand(L, &b, &r[j], cut.row, cut.row_tile,
                                              tarn_schedule_outside((*s)->stage, cut.row));
  }
  if (!by_lane && !by_row && !by_group) return false;
  st.read = r, n.stage = &st;
  b.nest = tarn_nest_intern(L, &n);
  tarn_ksig_canonical(L, &b);
  const tarn_stage *after = tarn_nest_get(L, b.nest)->stage;
  if (!by_lane || st.own[cut.lane] % cut.lane_tile)
    cut.lane_tile = 0; /* what is cut evenly has become two dims */
  if (!by_row || st.own[cut.row] % cut.row_tile) cut.row_tile = 0;
  uint32_t at = 0;
  bool halved = by_group && st.red[dot - st.nown] > k_dot; /* into groups and the place in one */
  bool same = after->nown == st.nown + (cut.lane_tile > 0) + (cut.row_tile > 0) &&
              after->nred == st.nred + halved;
  for (uint32_t d = 0; d < st.nown && same; d++, at++) {
    int64_t tile = d == cut.lane ? cut.lane_tile : d == cut.row ? cut.row_tile : 0;
    same = tile ? after->own[at] == st.own[d] / tile && after->own[at + 1] == tile
                : after->own[at] == st.own[d];
    at += tile != 0;
  }
  at = 0;
  for (uint32_t d = 0; d < st.nred && same; d++, at++) {
    bool group = halved && st.nown + d == dot;
    same = group ? after->red[at] == st.red[d] / k_dot && after->red[at + 1] == k_dot
                 : after->red[at] == st.red[d];
    at += group;
  }
  if (!same)
    return false; /* sorted or merged otherwise: the loops cannot be carried over by number */
  tarn_schedule *t = tarn_copy(cx, *s, sizeof *t);
  t->stage = tarn_copy(cx, (*s)->stage, sizeof *t->stage);
  if (halved) split_schedule(t->stage, dot, k_dot);
  for (uint32_t d = st.nown; d-- > 0;) { /* later dims first: their numbers move */
    if (d == cut.lane && cut.lane_tile) split_schedule(t->stage, d, cut.lane_tile);
    if (d == cut.row && cut.row_tile) split_schedule(t->stage, d, cut.row_tile);
  }
  *k = b, *s = t;
  return true;
}

bool tarn_ksig_block(tarn_lang *L, tarn_ksig *k, const tarn_schedule **s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_nest was = *tarn_nest_get(L, k->nest);
  int64_t taken;
  if (was.nstage == 1 && tarn_schedule_dot((*s)->stage, &taken) != TARN_NONE)
    return block_dot(L, k, s);
  tarn_nest n = was;
  tarn_stage *st = tarn_copy(cx, n.stage, n.nstage * sizeof *st);
  stage_cut *cut = TARN_ARRAY(cx, stage_cut, n.nstage);
  tarn_ksig b = *k;
  bool any = false;
  if (n.nstage == 1 ? n.depth > 0 : !n.depth) return false;
  for (uint32_t i = 0; i < n.nstage; i++) {
    cut[i] = block_stage(L, &b, &n, &st[i], &(*s)->stage[i]);
    any |= cut[i].lane || cut[i].row;
  }
  if (!any) return false;
  n.stage = st;
  b.nest = tarn_nest_intern(L, &n);
  tarn_ksig_canonical(L, &b);
  const tarn_nest *after = tarn_nest_get(L, b.nest);
  bool same = after->depth == was.depth &&
              !memcmp(after->shared, was.shared, was.depth * sizeof *was.shared);
  for (uint32_t i = 0; i < was.nstage && same; i++)
    same = carried(&was, &was.stage[i], &after->stage[i], &cut[i]);
  if (!same)
    return false; /* sorted or merged otherwise: the loops cannot be carried over by number */
  tarn_schedule *t = tarn_copy(cx, *s, sizeof *t);
  t->stage = tarn_copy(cx, (*s)->stage, (*s)->nstage * sizeof *t->stage);
  for (uint32_t i = 0; i < was.nstage; i++)
    for (uint32_t d = (uint32_t)was.depth + was.stage[i].nown;
         d-- > 0;) { /* later dims first: their numbers move */
      if (d == cut[i].by.lane && cut[i].by.lane_tile)
        split_schedule(&t->stage[i], d, cut[i].by.lane_tile);
      if (d == cut[i].by.row && cut[i].by.row_tile)
        split_schedule(&t->stage[i], d, cut[i].by.row_tile);
    }
  *k = b, *s = t;
  return true;
}
