/* Blocks: splits shared loops so that stages work on several results at a time, and adds stages
 * that copy operands first. */
#include "kernel/loops.h"
#include <string.h>

/* ---- blocks of shared loops ----
 * A shared loop cut in (blocks, within a block), the inner part becoming the first own loop of
 * every stage: then a local buffer holds a block of results, and each stage computes it with loops
 * of its own. */
/* Own dim d of the local buffer of stage i was from[d]. */
static void turn_buffer(knest *w, uint32_t i, const uint8_t *from) {
  uint8_t all[TARN_MAX_DIMS + 2], nown = w->stage[i].s.nown;
  for (uint32_t d = 0; d < TARN_MAX_DIMS + 2; d++) all[d] = (uint8_t)d;
  for (uint32_t d = 0; d < nown; d++) all[w->depth + d] = (uint8_t)(w->depth + from[d]);
  knest_permute(w, &w->stage[i], all);
  for (uint32_t k = i + 1; k < w->nstage; k++)
    for (uint32_t r = 0; r < w->stage[k].nread; r++) {
      knest_read *x = &w->stage[k].read[r];
      tarn_imap was = x->m;
      if (!x->stage || x->src != i) continue;
      for (uint32_t d = 0; d < nown; d++) x->m.e[d] = was.e[from[d]], x->m.in[d] = was.in[from[d]];
    }
}
/* The first n own loops of local buffers behind the others: the buffer then lies along them. */
static void own_behind(knest *w, uint32_t n) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    uint8_t from[TARN_MAX_DIMS], nown = w->stage[i].s.nown;
    for (uint32_t d = 0; d < nown; d++) from[d] = (uint8_t)((d + n) % nown);
    if (!w->stage[i].s.out) turn_buffer(w, i, from);
  }
}

static bool room_for_one(const knest *w) {
  bool room = w->depth < TARN_MAX_DIMS;
  for (uint32_t i = 0; i < w->nstage; i++)
    room &= knest_acc(w, &w->stage[i]) + w->stage[i].s.nred < TARN_MAX_DIMS;
  return room;
}

/* Shared loops cut; size: of each then, 1 for loops over blocks. False: it cannot be. */
static bool cut_shared(knest *w, const int64_t *block, int64_t *size) {
  for (uint32_t d = 0, all = w->depth; all--; d++, block++) {
    int64_t b = *block;
    size[d] = b;
    if (b < 1 || w->shared[d] % b) return false;
    if (b == 1 || b == w->shared[d]) continue;
    if (!room_for_one(w) || knest_blocked(w, w->stage, d)) return false;
    knest_split(w, w->stage, d, b);
    size[d] = 1, size[++d] = b;
  }
  return true;
}

bool tarn_ksig_cut(tarn_lang *L, tarn_ksig *k, const int64_t *block, bool behind) {
  knest w;
  uint8_t from[TARN_MAX_DIMS + 1];
  uint32_t cut = 0, at = 0;
  int64_t size[TARN_MAX_DIMS + 1];
  knest_open(&w, L, k);
  if (!cut_shared(&w, block, size)) return false;
  for (uint32_t d = 0; d < w.depth; d++)
    if (size[d] == 1) from[at++] = (uint8_t)d;
  for (uint32_t d = 0; d < w.depth; d++)
    if (size[d] > 1) from[at++] = (uint8_t)d, cut++;
  if (!cut) return false;
  knest_permute_shared(&w, from);
  if (!knest_own(&w, cut)) return false;
  if (behind) own_behind(&w, cut);
  knest_close(&w, k);
  return true;
}

/* ---- operands gathered once ----
 * A stage whose buffer lies along a dim along which it reads an operand in steps would gather that
 * operand anew for each point of its other dims: a stage in front of it lays the operand out as the
 * buffer lies. */
#define GATHERED 8 /* points that read the same element, from which on that is worth a stage */
typedef struct copying {
  const tarn_ksig *k;
  int64_t bytes; /* most of a copy */
} copying;
/* Points of a stage that read the same element. */
static int64_t reads_again(const knest *w, const knest_stage *s, const knest_read *r) {
  uint32_t used = imap_dims(w->L, &r->m);
  int64_t again = 1;
  for (uint32_t d = 0; d < s->s.nown; d++)
    if (!(used >> (w->depth + d) & 1)) again *= s->s.own[d];
  return again;
}
static bool gathers(const copying *c, const knest *w, const knest_stage *s, const knest_read *r) {
  if (r->stage || r->epi || r->row.by || s->s.out || !s->s.nown || !s->s.nred || r->m.nguard ||
      c->k->in_const[r->src])
    return false;
  uint32_t lane = knest_acc(w, s) - 1, at = imap_address(w->L, &r->m, &w->in[r->src]);
  if (!(imap_dims(w->L, &r->m) >> lane & 1) || reads_again(w, s, r) < GATHERED) return false;
  return tarn_ix_affine(w->L, at) && tarn_ix_coef(w->L, at, lane) != 1;
}

/* A copy in front of its stage of each operand that is wanted; lay, or NULL: puts the buffer of the
 * copy, stage i, into an order. False: nothing is copied. */
typedef bool wants(const copying *c, const knest *w, const knest_stage *s, const knest_read *r);
static bool copy_reads(tarn_lang *L, tarn_ksig *k, wants *wanted, int64_t bytes,
                       void (*lay)(knest *w, uint32_t i)) {
  const copying c = {k, bytes};
  knest w;
  knest_open(&w, L, k);
  uint32_t was = w.nstage;
  for (uint32_t i = 0; i < w.nstage && was > 1; i++) {
    const tarn_func *f = tarn_fn_get(L, w.stage[i].s.fn);
    for (uint32_t r = 0; r < f->nops && f->nops > 1; r++) {
      if (!wanted(&c, &w, &w.stage[i], &w.stage[i].read[r])) continue;
      knest_copy(&w, i, r, 0);
      if (lay) lay(&w, i);
      i++;
    }
  }
  if (w.nstage == was) return false;
  knest_close(&w, k);
  return true;
}
bool tarn_ksig_gather(tarn_lang *L, tarn_ksig *k) { return copy_reads(L, k, gathers, 0, NULL); }

/* ---- operands held ----
 * What a stage reads of an operand in one trip of the shared loops, several points the same, is
 * copied in front of it as the operand lies: neighbours then read neighbours, whatever the stage
 * itself goes along. */
/* Does each dim go further than all of the smaller ones together, the first one by 1? */
static bool lies_apart(const knest *w, const knest_stage *s, const knest_read *r, int64_t bytes) {
  int64_t step[TARN_MAX_DIMS] = {0}, dim[TARN_MAX_DIMS], reach = 1, elems = 1;
  uint32_t n = knest_dims(w, s, dim), left = imap_dims(w->L, &r->m) >> w->depth << w->depth;
  if (!tarn_ix_affine(w->L, imap_address(w->L, &r->m, &w->in[r->src]))) return false;
  imap_steps(w->L, &r->m, &w->in[r->src], step);
  while (left) {
    uint32_t d = n;
    for (uint32_t e = w->depth; e < n; e++)
      if ((left >> e & 1) && (d == n || step[e] < step[d])) d = e;
    if (d == n || step[d] < reach || (elems == 1 && step[d] != 1)) return false;
    reach = step[d] * dim[d], elems *= dim[d];
    left &= ~(1u << d);
  }
  return elems > 1 && elems * 4 <= bytes;
}
static bool holds(const copying *c, const knest *w, const knest_stage *s, const knest_read *r) {
  if (r->stage || r->epi || r->row.by || r->m.nguard || !s->s.nred) return false;
  return reads_again(w, s, r) > 1 && lies_apart(w, s, r, c->bytes);
}
/* The buffer of a copy in rows as its operand lies. */
static void lie_as_read(knest *w, uint32_t i) {
  const knest_stage *s = &w->stage[i];
  int64_t step[TARN_MAX_DIMS] = {0};
  uint8_t from[TARN_MAX_DIMS];
  imap_steps(w->L, &s->read->m, &w->in[s->read->src], step);
  for (uint8_t d = 0; d < s->s.nown; d++) {
    uint32_t at = d;
    for (; at > 0 && step[w->depth + from[at - 1]] < step[w->depth + d]; at--)
      from[at] = from[at - 1];
    from[at] = d;
  }
  turn_buffer(w, i, from);
}
bool tarn_ksig_hold(tarn_lang *L, tarn_ksig *k, int64_t bytes) {
  return copy_reads(L, k, holds, bytes, lie_as_read);
}

/* ---- operands packed block by block ----
 * What an operand holds of a block of columns, which all rows of a product go over, is copied into
 * a local buffer by a stage in front of it, panel after panel of as many columns as a register tile
 * takes: what lay far apart then follows one another. */
/* Of the only stage, the own loops of `used` become shared, all but n from dim d on. The number of
 * d afterwards. */
static uint32_t share_blocks(knest *w, uint32_t used, uint32_t d, uint32_t n) {
  uint8_t from[TARN_MAX_DIMS + 2], at = 0, depth, nown = w->stage->s.nown;
  uint32_t now = 0, within = ((1u << n) - 1) << d, outside = used & ~within;
  for (uint8_t e = 0; e < nown; e++)
    if (outside >> e & 1) from[at++] = e;
  depth = at;
  for (uint8_t e = 0; e < nown + w->stage->s.nred; e++) {
    if (e == d) now = at;
    if (e >= nown || !(outside >> e & 1)) from[at++] = e;
  }
  knest_permute(w, w->stage, from);
  knest_share(w, depth);
  return now;
}

static bool may_pack(const knest *w, uint32_t read, uint32_t d, int64_t block, int64_t panel) {
  const knest_stage *s = w->stage;
  if (w->nstage != 1 || w->depth || !s->s.out || d >= s->s.nown || read >= s->nread) return false;
  const knest_read *r = &s->read[read];
  if (block < 1 || s->s.own[d] % block || panel < 1 || block % panel) return false;
  return !r->epi && !r->row.by && !r->m.nguard && s->s.nown + s->s.nred + 2 <= TARN_MAX_DIMS &&
         !knest_blocked(w, s, d) && (imap_dims(w->L, &r->m) >> d & 1);
}

bool tarn_ksig_pack(tarn_lang *L, tarn_ksig *k, uint32_t read, uint32_t d, int64_t block,
                    int64_t panel) {
  knest w;
  knest_open(&w, L, k);
  if (!may_pack(&w, read, d, block, panel)) return false;
  bool several = panel < block;
  knest_split(&w, w.stage, d, block);
  if (several) knest_split(&w, w.stage, d + 1, panel);
  uint32_t used = imap_dims(L, &w.stage->read[read].m),
           panels = share_blocks(&w, used, d + 1, several ? 2 : 1);
  knest_copy(&w, 0, read, several ? 1u << panels : 0);
  knest_close(&w, k);
  return true;
}
