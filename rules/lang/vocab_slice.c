/* The vocabulary: nests that compute a part of their result. */
#include "rules/lang/vocab.h"
#include <string.h>

/* A box of a tensor. */
typedef struct box {
  uint32_t n;
  int64_t from[TARN_MAX_DIMS], count[TARN_MAX_DIMS];
} box;

/* The box becomes the least one that holds it and the elements that a view takes; n = 0: there was
 * none. False: the view has none, or may lie beside the tensor. */
static bool widen(const tarn_lang *L, uint32_t map, box *b) {
  const tarn_imap *m = tarn_imap_get(L, map);
  bool first = !b->n;
  if (m->nguard || !m->nin) return false;
  for (uint32_t i = 0; i < m->n; i++)
    if (!m->dim[i]) return false;
  b->n = m->nin;
  for (uint32_t i = 0; i < m->nin; i++) {
    int64_t from, last;
    tarn_ix_range(L, m->e[i], m->dim, &from, &last);
    if (from < 0 || last >= m->in[i]) return false;
    int64_t end = first ? last + 1 : tarn_max(last + 1, b->from[i] + b->count[i]);
    b->from[i] = first ? from : tarn_min(from, b->from[i]);
    b->count[i] = end - b->from[i];
  }
  return true;
}
static bool is_part(const box *b, const int64_t *in) {
  return memcmp(b->count, in, b->n * sizeof *in) != 0;
}
static bool box_of(const tarn_lang *L, uint32_t map, box *b) {
  b->n = 0;
  return widen(L, map, b) && is_part(b, tarn_imap_get(L, map)->in);
}
/* The map into the box of what was one into the tensor. */
static uint32_t within(tarn_lang *L, const box *b, uint32_t map) {
  tarn_imap m = *tarn_imap_get(L, map);
  for (uint32_t i = 0; i < m.nin; i++) {
    m.in[i] = b->count[i];
    m.e[i] = tarn_ix_add(L, m.e[i], tarn_ix_const(L, -b->from[i]), m.dim);
  }
  return tarn_map_intern(L, &m);
}
/* Indices of these loops, of which the first ones go through the box, as those of the whole. */
static uint32_t into(tarn_lang *L, const box *b, const int64_t *dim, uint32_t n) {
  tarn_imap m = {.ns = (uint8_t)n, .n = (uint8_t)n, .nin = (uint8_t)n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < n; i++) m.in[i] = dim[i], m.dim[i] = i < b->n ? b->count[i] : dim[i];
  for (uint32_t i = 0; i < n; i++) {
    m.e[i] = tarn_ix_var(L, i, m.dim);
    if (i < b->n) m.e[i] = tarn_ix_add(L, m.e[i], tarn_ix_const(L, b->from[i]), m.dim);
  }
  return tarn_map_intern(L, &m);
}
static bool take_stage(tarn_lang *L, const tarn_nest *n, const box *b, tarn_stage *s) {
  int64_t dim[3 * TARN_MAX_DIMS];
  uint32_t all = tarn_nest_dims(n, s, dim), reads = tarn_stage_reads(L, s);
  const tarn_func *f = tarn_fn_get(L, s->fn);
  tarn_read *r = tarn_copy(tarn_lang_ctx(L), s->read, reads * sizeof *r);
  uint32_t body = into(L, b, dim, all), after = into(L, b, dim, all - s->nred);
  for (uint32_t i = 0; i < reads; i++) {
    bool epi = i >= f->nops && i < (uint32_t)f->nops + f->nepi;
    if ((r[i].map = tarn_map_compose(L, epi ? after : body, r[i].map)) == TARN_NONE) return false;
  }
  for (uint32_t i = n->depth; i < b->n; i++) s->own[i - n->depth] = b->count[i];
  s->read = r;
  return true;
}
/* The part of its only result that lies in the box. */
static bool take(tarn_lang *L, const tarn_nest *whole, const box *b, tarn_nest *to) {
  tarn_stage *s = tarn_copy(tarn_lang_ctx(L), whole->stage, whole->nstage * sizeof *s);
  box shared = *b;
  shared.n = whole->depth;
  for (uint32_t i = 0; i < whole->nstage; i++) {
    bool last = i + 1 == whole->nstage;
    if (s[i].out != last || s[i].unit || !take_stage(L, whole, last ? b : &shared, &s[i]))
      return false;
  }
  *to = *whole;
  to->stage = s;
  memcpy(to->shared, b->count, whole->depth * sizeof *b->count);
  return true;
}

static bool f_part(renv *e, const rv *a, rv *out) {
  box b;
  tarn_nest part;
  if (!box_of(e->L, a[1].id, &b) || !take(e->L, tarn_nest_get(e->L, a[0].id), &b, &part))
    return false;
  *out = (rv){.kind = 'n', .id = tarn_nest_intern(e->L, &part)};
  return true;
}
static bool f_in_part(renv *e, const rv *a, rv *out) {
  box b;
  if (!box_of(e->L, a[0].id, &b)) return false;
  *out = (rv){.kind = 'm', .id = within(e->L, &b, a[0].id)};
  return true;
}

/* ---- what a nest reads ---- */
static bool reads(const tarn_read *r, uint32_t child) { return !r->stage && r->src == child; }
/* The box in which it reads that child; in: the child's dims. */
static bool reach(const tarn_lang *L, const tarn_nest *n, int64_t child, box *b,
                  const int64_t **in) {
  *b = (box){0};
  for (uint32_t i = 0; i < n->nstage; i++)
    for (uint32_t k = 0; k < tarn_stage_reads(L, &n->stage[i]); k++) {
      const tarn_read *r = &n->stage[i].read[k];
      if (!reads(r, (uint32_t)child)) continue;
      if (r->row.by || !widen(L, r->map, b)) return false;
      *in = tarn_imap_get(L, r->map)->in;
    }
  return b->n && is_part(b, *in);
}
static bool f_reach(renv *e, const rv *a, rv *out) {
  box b;
  const int64_t *in;
  if (!reach(e->L, tarn_nest_get(e->L, a[0].id), a[1].i, &b, &in)) return false;
  *out = (rv){.kind = 'm', .id = into(e->L, &b, in, b.n)};
  return true;
}
static bool f_reading_part(renv *e, const rv *a, rv *out) {
  box b;
  const int64_t *in;
  tarn_nest n = *tarn_nest_get(e->L, a[0].id);
  if (!reach(e->L, &n, a[1].i, &b, &in)) return false;
  tarn_stage *s = tarn_copy(tarn_lang_ctx(e->L), n.stage, n.nstage * sizeof *s);
  for (uint32_t i = 0; i < n.nstage; i++) {
    uint32_t count = tarn_stage_reads(e->L, &s[i]);
    tarn_read *r = tarn_copy(tarn_lang_ctx(e->L), s[i].read, count * sizeof *r);
    for (uint32_t k = 0; k < count; k++)
      if (reads(&r[k], (uint32_t)a[1].i)) r[k].map = within(e->L, &b, r[k].map);
    s[i].read = r;
  }
  n.stage = s;
  *out = (rv){.kind = 'n', .id = tarn_nest_intern(e->L, &n)};
  return true;
}
/* With more of it the kernel's own sizes may be the better ones. */
static bool f_half(renv *e, const rv *a, rv *out) {
  box b;
  double part = 1;
  if (!box_of(e->L, a[0].id, &b)) return false;
  const tarn_imap *m = tarn_imap_get(e->L, a[0].id);
  for (uint32_t i = 0; i < b.n; i++) part *= (double)b.count[i] / (double)m->in[i];
  return rv_bool(out, part <= 0.5);
}
static bool f_shared(renv *e, const rv *a, rv *out) {
  return rv_bool(out, e->host->facts(e->host->user, e->cls[a[0].id]) & R_SHARED);
}

const rfun rfun_slice_table[] = {
    {"part", "nm:n", f_part, 0,
     "the nest of the box of its only result in which the view takes all its elements; none where "
     "that is all of it"},
    {"in-part", "m:m", f_in_part, 0, "the view of that box"},
    {"reach", "ni:m", f_reach, 0,
     "the box in which the nest reads a child, as a view of it; none where that is all of it"},
    {"reading-part", "ni:n", f_reading_part, 0, "the nest that reads that box in its place"},
    {"half", "m:b", f_half, 0, "that box is at most half of what the view is of"},
    {"shared", "c:b", f_shared, TARN_EG_READS_GRAPH, "several terms read it"},
};
const uint32_t rfun_slice_count = sizeof rfun_slice_table / sizeof *rfun_slice_table;
