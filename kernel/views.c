/* Kernel form: data movements that can be views. A view of a view; a concatenation of
 * shifted views of one tensor (windows made by hand); a gather whose constant indices
 * advance evenly. */
#include "kernel/edit.h"
#include <string.h>

static uint32_t map_of(tarn_lang *L, tarn_term view) {
  return tarn_payload_get(L, tarn_term_get(L, view)->payload)->id;
}

/* What a term is a view of, and how: itself, unless it is a view. */
static tarn_term base_of(tarn_lang *L, tarn_term t, uint32_t *map) {
  const tarn_node *x = tarn_term_get(L, t);
  *map = x->op == TARN_OP_VIEW ? map_of(L, t) : tarn_map_identity(L, x->type);
  return x->op == TARN_OP_VIEW ? x->kid[0] : t;
}

static tarn_term viewed(tarn_lang *L, uint32_t map, tarn_term of) {
  uint32_t inner;
  tarn_term base = base_of(L, of, &inner);
  uint32_t all = base == of ? map : tarn_map_compose(L, map, inner);
  return all == TARN_NONE ? tarn_view(L, map, of)
                          : tarn_view(L, map_with_split(L, all, tarn_imap_get(L, map)->ns), base);
}

/* ---------------------------------------------------------------- concatenations */

/* The part that stands at the point with coordinate 1 along `axis` (TARN_NONE: nowhere) and 0 along
 * the others. */
static uint32_t part_at(const grid *g, uint32_t axis) {
  for (uint32_t p = 0; p < g->n; p++) {
    bool here = true;
    for (uint32_t a = 0; a < g->ngrid; a++) here &= g->at[p][a] == (a == axis);
    if (here) return p;
  }
  return TARN_NONE;
}

/* Coordinates counted from where the first part stands, where that is an end of the grid. */
static void from_first(grid *g) {
  for (uint32_t a = 0; a < g->ngrid; a++) {
    if (g->at[0][a] != g->extent[a] - 1) continue;
    for (uint32_t p = 0; p < g->n; p++) g->at[p][a] = g->extent[a] - 1 - g->at[p][a];
  }
}

/* Part p stands at coordinates (p / stride_a) mod extent_a; so the first one stands at the origin.
 */
static bool evenly_ordered(const grid *g, uint32_t *stride) {
  if (part_at(g, TARN_NONE) != 0) return false;
  for (uint32_t a = 0; a < g->ngrid; a++)
    if ((stride[a] = part_at(g, a)) == TARN_NONE) return false;
  for (uint32_t p = 0; p < g->n; p++)
    for (uint32_t a = 0; a < g->ngrid; a++)
      if (p / stride[a] % g->extent[a] != g->at[p][a]) return false;
  return true;
}

/* From the dims of the whole to those of a part and the grid. */
static uint32_t into_parts(const grid *g, const tarn_imap *part, uint32_t axis,
                           const uint32_t *stride) {
  tarn_imap m, w;
  if (part->dim[axis] == 0 || !grid_wider(g, part, &w)) return TARN_NONE;
  m = *part;
  m.nguard = 0, m.fill = TARN_NONE, m.nin = w.n;
  memcpy(m.in, w.dim, sizeof m.in);
  m.dim[axis] *= g->n;
  for (uint32_t i = 0; i < part->n; i++) m.e[i] = tarn_ix_var(g->L, i, m.dim);
  for (uint32_t a = 0; a < g->ngrid; a++) {
    uint32_t q = tarn_ix_div(g->L, m.e[axis], part->dim[axis] * stride[a], m.dim);
    m.e[part->n + a] = tarn_ix_mod(g->L, q, g->extent[a], m.dim);
  }
  m.e[axis] = tarn_ix_mod(g->L, m.e[axis], part->dim[axis], m.dim);
  return tarn_map_intern(g->L, &m);
}

static tarn_term of_concat(tarn_lang *L, const tarn_node *x, const tarn_term *kid) {
  uint32_t map[R_TAPS], stride[R_GRID], axis = (uint32_t)tarn_payload_get(L, x->payload)->ints[0];
  if (x->n < 2 || x->n > R_TAPS) return TARN_NONE;
  tarn_term base = base_of(L, kid[0], &map[0]);
  for (uint32_t i = 1; i < x->n; i++)
    if (base_of(L, kid[i], &map[i]) != base) return TARN_NONE;
  grid *g = TARN_NEW(tarn_lang_ctx(L), grid);
  g->L = L;
  if (!grid_find(g, map, x->n)) return TARN_NONE;
  from_first(g);
  if (!evenly_ordered(g, stride)) return TARN_NONE;
  uint32_t wide = grid_map(g, map, part_at(g, TARN_NONE)),
           in = into_parts(g, tarn_imap_get(L, map[0]), axis, stride);
  if (wide == TARN_NONE || in == TARN_NONE) return TARN_NONE;
  uint32_t all = tarn_map_compose(L, in, wide);
  return all == TARN_NONE
             ? TARN_NONE
             : tarn_view(L, map_with_split(L, all, tarn_type_get(L, x->type)->ns), base);
}

/* ---------------------------------------------------------------- gathers */

enum { LEVELS = 4 };
/* Index i is base + Σ step_l · ((i / stride_l) mod extent_l). */
typedef struct pace {
  int64_t base, step[LEVELS], stride[LEVELS], extent[LEVELS];
  uint32_t n;
} pace;

/* The list taken in blocks of `block`, each advancing by one step; their starts, `block` apart,
 * likewise. */
static bool find_pace(const int64_t *v, int64_t n, int64_t stride, pace *p) {
  if (n == 1) return true;
  if (p->n == LEVELS) return false;
  int64_t step = v[stride] - v[0], run = 2;
  while (run < n && v[run * stride] - v[(run - 1) * stride] == step) run++;
  while (n % run) run--;
  for (int64_t i = 0; i < n; i++)
    if (v[i * stride] != v[i / run * run * stride] + i % run * step) return false;
  p->step[p->n] = step, p->stride[p->n] = stride, p->extent[p->n++] = run;
  return run > 1 && find_pace(v, n / run, stride * run, p);
}

static bool paced(tarn_ctx *cx, const tarn_tensor *t, int64_t extent, pace *p) {
  int64_t n = tarn_tensor_count(t);
  if (n == 0 || tarn_dtype_is_float(t->dtype)) return false;
  int64_t *v = TARN_ARRAY(cx, int64_t, n);
  for (int64_t i = 0; i < n; i++) {
    v[i] = tarn_tensor_get(t, i).i;
    if (v[i] < 0 || v[i] >= extent) return false;
  }
  *p = (pace){.base = v[0]};
  return find_pace(v, n, 1, p);
}

static tarn_term of_gather(tarn_lang *L, const tarn_node *x, const tarn_term *kid) {
  const tarn_node *index = tarn_term_get(L, kid[1]);
  uint32_t axis = (uint32_t)tarn_payload_get(L, x->payload)->ints[0];
  const tarn_type *out = tarn_type_get(L, x->type), *in = tarn_term_type(L, kid[0]);
  pace p;
  if (index->op != TARN_OP_CONST) return TARN_NONE;
  const tarn_tensor *t = tarn_payload_get(L, index->payload)->tensor;
  if (!paced(tarn_lang_ctx(L), t, in->dim[axis], &p)) return TARN_NONE;
  tarn_imap m = {.ns = out->ns, .n = out->n, .nin = in->n, .fill = TARN_NONE};
  memcpy(m.dim, out->dim, sizeof m.dim);
  memcpy(m.in, in->dim, sizeof m.in);
  for (uint32_t i = 0; i < in->n; i++)
    if (i != axis) m.e[i] = tarn_ix_var(L, i < axis ? i : i + t->n - 1, m.dim);
  uint32_t flat = tarn_ix_const(L, 0);
  for (uint32_t d = 0; d < t->n; d++)
    flat = tarn_ix_add(L, tarn_ix_scale(L, flat, t->dim[d], m.dim), tarn_ix_var(L, axis + d, m.dim),
                       m.dim);
  m.e[axis] = tarn_ix_const(L, p.base);
  for (uint32_t l = 0; l < p.n; l++) {
    uint32_t at = tarn_ix_mod(L, tarn_ix_div(L, flat, p.stride[l], m.dim), p.extent[l], m.dim);
    m.e[axis] = tarn_ix_add(L, m.e[axis], tarn_ix_scale(L, at, p.step[l], m.dim), m.dim);
  }
  return viewed(L, tarn_map_intern(L, &m), kid[0]);
}

tarn_term kern_view(tarn_lang *L, const tarn_node *x, const tarn_term *kid) {
  if (x->op == TARN_OP_CONCAT) return of_concat(L, x, kid);
  if (x->op == TARN_OP_GATHER) return of_gather(L, x, kid);
  if (x->op == TARN_OP_VIEW && tarn_term_get(L, kid[0])->op == TARN_OP_VIEW)
    return viewed(L, tarn_payload_get(L, x->payload)->id, kid[0]);
  return TARN_NONE;
}
