/* Canonical kernels.
 *
 * Every child becomes a flat buffer. Iteration dims are split where an address divides by a factor
 * of their extent, dropped when their extent is 1, and merged with their neighbour when every
 * address, guard and result walks both as one. */
#include "kernel/loops.h"
#include <string.h>

/* Does the result depend on the order in which the reduction goes? */
static bool ordered(const knest *w, const knest_stage *s) {
  const tarn_func *f = tarn_fn_get(w->L, s->s.fn);
  if (f->red == TARN_NONE) return false;
  const tarn_reducer *r = tarn_reducer_get(w->L, f->red);
  bool index = false;
  for (uint32_t i = 0; i < r->ns; i++) index |= tarn_fx_uses(w->L, r->step[i], r->ns + 1u);
  return index || !r->commutative;
}

/* ---- split ---- */
/* A factor by which dim d should be split because some expression divides it: 0 when none. */
static int64_t factor_in(const knest *w, uint32_t e, uint32_t d, int64_t extent) {
  const tarn_ix *x = tarn_ix_get(w->L, e);
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_ixterm *t = &x->t[i];
    if (t->kind == TARN_IX_VAR) continue;
    const tarn_ix *y = tarn_ix_get(w->L, t->arg);
    for (uint32_t k = 0; k < y->n; k++) {
      if (y->t[k].kind != TARN_IX_VAR || y->t[k].arg != d) continue;
      int64_t c = y->t[k].coef < 0 ? -y->t[k].coef : y->t[k].coef;
      if (c == 0 || t->by % c) continue;
      int64_t f = t->by / c;
      if (f > 1 && f < extent && extent % f == 0) return f;
    }
    int64_t f = factor_in(w, t->arg, d, extent);
    if (f) return f;
  }
  return 0;
}
/* Of all indices and guards of a read. */
static int64_t factor_of(const knest *w, const tarn_imap *m, uint32_t d, int64_t extent) {
  int64_t f = 0;
  for (uint32_t a = 0; a < m->nin && !f; a++) f = factor_in(w, m->e[a], d, extent);
  for (uint32_t g = 0; g < m->nguard && !f; g++) f = factor_in(w, m->guard[g].e, d, extent);
  return f;
}
static bool split_stage(knest *w, knest_stage *s) {
  int64_t dim[TARN_MAX_DIMS + 2];
  uint32_t n = knest_dims(w, s, dim);
  for (uint32_t r = 0; r < s->nread; r++)
    for (uint32_t d = 0; d < n; d++) {
      int64_t f = knest_fixed(w, s, d) ? 0 : factor_of(w, &s->read[r].m, d, dim[d]);
      if (!f || !knest_may_split(w, s, d, f)) continue;
      knest_split(w, s, d, f);
      return true;
    }
  return false;
}
static bool split_once(knest *w) {
  for (uint32_t i = 0; i < w->nstage; i++)
    if (split_stage(w, &w->stage[i])) return true;
  return false;
}
void knest_split_divided(knest *w) {
  for (int i = 0; i < 64 && split_once(w); i++) continue;
}

/* ---- drop and merge ---- */
static bool drop_once(knest *w) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    knest_stage *s = &w->stage[i];
    int64_t dim[TARN_MAX_DIMS + 2];
    uint32_t n = knest_dims(w, s, dim);
    for (uint32_t d = 0; d < n; d++) {
      if (dim[d] != 1 || knest_fixed(w, s, d) || knest_blocked(w, s, d)) continue;
      knest_drop(w, s, d);
      return true;
    }
  }
  return false;
}
static bool walks_as_one(const knest *w, uint32_t e, uint32_t d, int64_t e1) {
  const tarn_ix *x = tarn_ix_get(w->L, e);
  for (uint32_t i = 0; i < x->n; i++)
    if (x->t[i].kind != TARN_IX_VAR) {
      /* dims hidden in a division are left alone */
      const tarn_ix *y = tarn_ix_get(w->L, x->t[i].arg);
      for (uint32_t k = 0; k < y->n; k++)
        if (y->t[k].kind != TARN_IX_VAR || y->t[k].arg == d || y->t[k].arg == d + 1) return false;
    }
  return tarn_ix_coef(w->L, e, d) == e1 * tarn_ix_coef(w->L, e, d + 1);
}
static bool stage_merges(const knest *w, const knest_stage *s, uint32_t d, int64_t e1) {
  uint32_t acc = knest_acc(w, s);
  for (uint32_t r = 0; r < s->nread; r++) {
    const tarn_imap *m = &s->read[r].m;
    if (s->read[r].epi && d >= acc) continue;
    for (uint32_t a = 0; a < m->nin; a++)
      if (!walks_as_one(w, m->e[a], d, e1)) return false;
    for (uint32_t g = 0; g < m->nguard; g++)
      if (!walks_as_one(w, m->guard[g].e, d, e1)) return false;
  }
  if (d >= acc || !s->s.out) return true;
  const tarn_layout *l = &s->out;
  bool blocked = l->block && (l->baxis == d || l->baxis == d + 1);
  return !blocked && l->stride[d] == e1 * l->stride[d + 1];
}
static bool merges(const knest *w, const knest_stage *s, uint32_t d, int64_t e1) {
  knest_list in = knest_where(w, s, d);
  bool ok = in == knest_where(w, s, d + 1) && !knest_fixed(w, s, d) && e1 != 0;
  for (uint32_t i = 0; i < w->nstage && ok; i++)
    if (in == KNEST_SHARED || &w->stage[i] == s) ok = stage_merges(w, &w->stage[i], d, e1);
  return ok;
}
static bool merge_once(knest *w) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    knest_stage *s = &w->stage[i];
    int64_t dim[TARN_MAX_DIMS + 2];
    uint32_t n = knest_dims(w, s, dim);
    for (uint32_t d = 0; d + 1 < n; d++) {
      if (!merges(w, s, d, dim[d + 1])) continue;
      knest_join(w, s, d);
      return true;
    }
  }
  return false;
}
/* Dims of extent 1 go, and neighbours that everything walks as one become one. */
static void knest_merge(knest *w) {
  while (drop_once(w)) continue;
  while (merge_once(w)) continue;
}

/* ---- order ----
 * Own dims of an output in the order of its strides; reduce dims (unless strict) those of guards
 * first, then in the order of their largest step in any operand: what lies together is walked
 * together, and neighbours can merge. */
static bool in_guard(const knest *w, const tarn_imap *m, uint32_t d) {
  for (uint32_t g = 0; g < m->nguard; g++)
    if (tarn_ix_coef(w->L, m->guard[g].e, d)) return true;
  return false;
}
static int64_t step_of(const knest *w, const knest_stage *s, uint32_t d) {
  int64_t best = 0;
  for (uint32_t r = 0; r < s->nread; r++) {
    if (s->read[r].epi || s->read[r].stage) continue;
    if (in_guard(w, &s->read[r].m, d) && best < KNEST_GUARDED) best += KNEST_GUARDED;
    int64_t c = tarn_ix_coef(w->L, s->read[r].m.e[0], d);
    if (c < 0) c = -c;
    if (c > best % KNEST_GUARDED) best = best / KNEST_GUARDED * KNEST_GUARDED + c;
  }
  return best;
}
static int64_t order_key(const knest *w, const knest_stage *s, uint32_t d, bool strict) {
  knest_list in = knest_where(w, s, d);
  if (in == KNEST_SHARED) return INT64_MAX;
  if (in == KNEST_OWN) return !s->s.out || knest_read_later(w, s) ? 0 : s->out.stride[d];
  return strict ? 0 : step_of(w, s, d);
}
static void sort_dims(knest *w, knest_stage *s, bool strict) {
  uint8_t from[TARN_MAX_DIMS + 2];
  int64_t key[TARN_MAX_DIMS + 2];
  uint32_t acc = knest_acc(w, s), n = acc + s->s.nred;
  bool moved = false;
  strict = strict || ordered(w, s);
  for (uint32_t i = 0; i < n; i++) from[i] = (uint8_t)i, key[i] = order_key(w, s, i, strict);
  for (uint32_t i = w->depth + 1u; i < n; i++)
    for (uint32_t k = i; k > w->depth && k != acc && key[from[k - 1]] < key[from[k]]; k--) {
      uint8_t t = from[k];
      from[k] = from[k - 1], from[k - 1] = t, moved = true;
    }
  if (moved) knest_permute(w, s, from);
}

void tarn_ksig_canonical(tarn_lang *L, tarn_ksig *k) {
  knest w;
  knest_open(&w, L, k);
  for (uint32_t i = 0; i < k->nin; i++) knest_flatten(&w, i);
  while (drop_once(&w)) continue;
  knest_split_divided(&w);
  while (drop_once(&w)) continue;
  for (uint32_t i = 0; i < w.nstage; i++) sort_dims(&w, &w.stage[i], k->strict);
  while (merge_once(&w)) continue;
  knest_close(&w, k);
}
void tarn_ksig_merge(tarn_lang *L, tarn_ksig *k) {
  knest w;
  knest_open(&w, L, k);
  for (uint32_t i = 0; i < k->nin; i++)
    if (!k->in_const[i]) knest_flatten(&w, i);
  knest_merge(&w);
  knest_close(&w, k);
}

/* ---- where operands begin ---- */
static int64_t last_row(const knest_read *x) { return (x->row.extent - 1) * x->row.pitch; }
/* The first and the last element that reads of flat child j name; guards may cut off either end. */
static bool reach_of(const knest *w, uint32_t j, int64_t *first, int64_t *last) {
  bool any = false, plain = true;
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++) {
      const knest_read *x = &w->stage[i].read[r];
      int64_t lo, hi;
      if (x->stage || x->src != j) continue;
      tarn_ix_range(w->L, x->m.e[0], x->m.dim, &lo, &hi);
      if (x->row.by) lo += tarn_min(0, last_row(x)), hi += tarn_max(0, last_row(x));
      plain &= !x->m.nguard;
      *first = any ? tarn_min(*first, lo) : lo, *last = any ? tarn_max(*last, hi) : hi;
      any = true;
    }
  return any && plain;
}
#define KSIG_ROOM 128 /* elements behind the last one, for vectors that are read whole */
static void begin_at(knest *w, uint32_t j, int64_t by, int64_t last, int64_t step) {
  tarn_layout *l = &w->in[j];
  int64_t room = (last - by) / step * step + KSIG_ROOM;
  int64_t elems = tarn_min(l->dim[0] - by, room), offset = l->offset + by;
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++) {
      knest_read *x = &w->stage[i].read[r];
      if (x->stage || x->src != j) continue;
      x->m.e[0] = tarn_ix_add(w->L, x->m.e[0], tarn_ix_const(w->L, -by), x->m.dim);
      x->m.in[0] = elems;
    }
  *l = tarn_layout_row_major(1, &elems);
  l->offset = offset;
}
void tarn_ksig_rebase(tarn_lang *L, tarn_ksig *k, int64_t step) {
  knest w;
  bool changed = false;
  knest_open(&w, L, k);
  for (uint32_t j = 0; j < k->nin; j++) {
    int64_t first = 0, last = 0;
    bool flat = w.in[j].n == 1 && !w.in[j].block && w.in[j].stride[0] == 1;
    if (k->in_const[j] || !flat || !reach_of(&w, j, &first, &last)) continue;
    if (first < step) continue;
    begin_at(&w, j, first / step * step, last, step);
    changed = true;
  }
  if (changed) knest_close(&w, k);
}

/* ---- equality ---- */
static uint64_t hash_layout(uint64_t h, const tarn_layout *l) {
  h = tarn_hash_mix(h, l->n);
  h = tarn_hash_bytes(l->dim, l->n * sizeof(int64_t), h);
  h = tarn_hash_bytes(l->stride, l->n * sizeof(int64_t), h);
  return tarn_hash_mix(tarn_hash_mix(h, (uint64_t)l->block), l->block ? l->baxis : 0);
}
uint64_t tarn_ksig_hash(const tarn_ksig *k) {
  uint64_t h = tarn_hash_mix(0x7461726e + k->strict, k->nest);
  for (uint32_t i = 0; i < k->nin; i++) {
    h = hash_layout(h, &k->in[i]);
    h = tarn_hash_mix(h, (uint64_t)k->in_type[i] * 2 + k->in_const[i]);
  }
  for (uint32_t i = 0; i < k->nout; i++)
    h = tarn_hash_mix(hash_layout(h, &k->out[i]), k->out_type[i]);
  return h;
}

static bool same_place(const tarn_layout *a, const tarn_layout *b) { /* whatever the offset */
  tarn_layout x = *a;
  x.offset = b->offset;
  return tarn_layout_equal(&x, b);
}
bool tarn_ksig_equal(const tarn_ksig *a, const tarn_ksig *b) {
  bool same =
      a->nest == b->nest && a->strict == b->strict && a->nin == b->nin && a->nout == b->nout;
  for (uint32_t i = 0; same && i < a->nin; i++)
    same = same_place(&a->in[i], &b->in[i]) && a->in_type[i] == b->in_type[i] &&
           a->in_const[i] == b->in_const[i];
  for (uint32_t i = 0; same && i < a->nout; i++)
    same = same_place(&a->out[i], &b->out[i]) && a->out_type[i] == b->out_type[i];
  return same;
}
static void key_layout(tarn_buf *b, const tarn_layout *l, int64_t kind) {
  tarn_buf_i64(b, kind * 256 + l->n);
  for (uint32_t d = 0; d < l->n; d++) {
    tarn_buf_i64(b, l->dim[d]);
    tarn_buf_i64(b, l->dim[d] == 1 ? 0 : l->stride[d]);
  }
  tarn_buf_i64(b, l->block ? l->block * TARN_MAX_DIMS + l->baxis : 0);
}
void tarn_ksig_key(const tarn_ksig *k, tarn_buf *b) {
  tarn_buf_i64(b, (int64_t)k->nest * 2 + k->strict);
  tarn_buf_i64(b, (int64_t)k->nin << 32 | k->nout);
  for (uint32_t i = 0; i < k->nin; i++)
    key_layout(b, &k->in[i], k->in_type[i] * 2 + k->in_const[i]);
  for (uint32_t i = 0; i < k->nout; i++) key_layout(b, &k->out[i], k->out_type[i]);
}
