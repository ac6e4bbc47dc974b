/* Constant operands blocked by the register tile. See tarn_ksig_block(). */
#include "loop/internal.h"
#include <string.h>

int64_t tarn_schedule_tile(const tarn_stage_sched *s, uint32_t *vdim) {
  *vdim = TARN_NONE;
  for (uint32_t i = 0; i < s->nlevel; i++)
    if (s->level[i].kind == TARN_VECTOR) *vdim = s->level[i].dim;
  for (uint32_t i = 0; i < s->nlevel; i++)
    if (s->level[i].dim == *vdim) return s->level[i].step;
  return 0;
}

/* The flat address as (what else it depends on, lane dim), laid out in blocks of the lane dim. */
static bool block_operand(tarn_lang *L, tarn_ksig *k, tarn_read *r, uint32_t v, int64_t tile) {
  tarn_imap m = *tarn_imap_get(L, r->map);
  tarn_layout *l = &k->in[r->src];
  int64_t wide = m.dim[v];
  if (m.nin != 1 || l->block || l->n != 1 || l->stride[0] != 1 || tarn_ix_coef(L, m.e[0], v) != 1 || m.in[0] % wide ||
      !tarn_ix_affine(L, m.e[0]) || tarn_ix_get(L, m.e[0])->c % wide)
    return false;
  uint32_t rest = tarn_ix_const(L, tarn_ix_get(L, m.e[0])->c / wide);
  for (uint32_t d = 0; d < m.n; d++) {
    int64_t c = tarn_ix_coef(L, m.e[0], d);
    if (d == v || !c) continue;
    if (c % wide) return false;
    rest = tarn_ix_add(L, rest, tarn_ix_scale(L, tarn_ix_var(L, d, m.dim), c / wide, m.dim), m.dim);
  }
  int64_t dim[2] = {m.in[0] / wide, wide};
  m.nin = 2, m.in[0] = dim[0], m.in[1] = dim[1], m.e[0] = rest, m.e[1] = tarn_ix_var(L, v, m.dim);
  *l = tarn_layout_ordered(2, dim, (uint8_t[]){1, 0}, 1, tile);
  r->map = tarn_map_intern_derived(L, &m);
  return true;
}

/* The same loops after dim v has become (v / tile, v mod tile). */
static const tarn_schedule *split_schedule(tarn_ctx *cx, const tarn_schedule *s, uint32_t v, int64_t tile) {
  tarn_schedule *t = tarn_copy(cx, s, sizeof *s);
  t->stage = tarn_copy(cx, s->stage, sizeof *s->stage);
  for (uint32_t i = 0; i < t->stage->nlevel; i++) {
    tarn_level *l = &t->stage->level[i];
    if (l->dim > v || (l->dim == v && l->step < tile)) l->dim++;
    else if (l->dim == v) l->step /= tile;
  }
  return t;
}

bool tarn_ksig_block(tarn_lang *L, tarn_ksig *k, const tarn_schedule **s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_nest n = *tarn_nest_get(L, k->nest);
  if (n.nstage != 1 || n.depth) return false;
  tarn_stage st = n.stage[0];
  uint32_t v;
  int64_t tile = tarn_schedule_tile(&(*s)->stage[0], &v);
  if (v >= st.nown || tile < 2 || st.own[v] <= tile || st.own[v] % tile) return false;
  const tarn_func f = *tarn_fn_get(L, st.fn);
  tarn_read *r = tarn_copy(cx, st.read, ((size_t)f.nops + f.nepi) * sizeof *r);
  tarn_ksig b = *k;
  bool any = false;
  for (uint32_t j = 0; j < f.nops; j++)
    if (!r[j].stage && k->in_const[r[j].src]) any |= block_operand(L, &b, &r[j], v, tile);
  if (!any) return false;
  st.read = r, n.stage = &st;
  b.nest = tarn_nest_intern(L, &n);
  tarn_ksig_canonical(L, &b);
  const tarn_stage *after = tarn_nest_get(L, b.nest)->stage;
  bool same =
      after->nown == st.nown + 1 && after->nred == st.nred && after->own[v] == st.own[v] / tile && after->own[v + 1] == tile;
  for (uint32_t d = 0; d < st.nown && same; d++)
    if (d != v) same = after->own[d + (d > v)] == st.own[d];
  for (uint32_t d = 0; d < st.nred && same; d++) same = after->red[d] == st.red[d];
  if (!same) return false; /* sorted or merged otherwise: the loops cannot be carried over by number */
  *k = b, *s = split_schedule(cx, *s, v, tile);
  return true;
}
