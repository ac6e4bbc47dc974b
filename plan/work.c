/* From a canonical kernel to the numbers that pricing and scheduling work on. */
#include "kernel/maps.h"
#include "plan/internal.h"
#include <stdlib.h>
#include <string.h>

/* A local buffer lies in row-major order over the stage's own dims. */
static tarn_touch read_model(tarn_lang *L, const tarn_ksig *k, const tarn_nest *nest,
                             const tarn_read *r, bool epi) {
  tarn_touch a = {.epi = epi, .local = r->stage, .bytes = 4};
  const tarn_imap *m = tarn_imap_get(L, r->map);
  a.guarded = imap_guarded(L, m), a.touched = imap_dims(L, m);
  for (uint32_t i = 0; i < m->nin; i++) a.irregular |= !tarn_ix_affine(L, m->e[i]);
  if (r->stage) {
    tarn_layout row = tarn_layout_row_major(nest->stage[r->src].nown, nest->stage[r->src].own);
    imap_steps(L, m, &row, a.coef);
    a.from = r->src;
    return a;
  }
  const tarn_layout *l = &k->in[r->src];
  imap_steps(L, m, l, a.coef);
  a.src = r->src, a.elems = tarn_layout_elems(l), a.start = tarn_ix_get(L, m->e[0])->c;
  a.bytes = (double)tarn_dtype_size(k->in_type[r->src]);
  a.constant = k->in_const[r->src];
  a.few = a.constant && !m->nguard && k->in_type[r->src] == TARN_F32 && a.elems <= TARN_PLAN_FEW;
  return a;
}
/* Rows that follow one another lie apart for all that is known. */
static void row_model(tarn_lang *L, const tarn_row *row, const tarn_read *look, tarn_touch *a) {
  enum { APART = 64 }; /* bytes */
  const tarn_imap *m = tarn_imap_get(L, look->map);
  int64_t pitch = tarn_max(llabs(row->pitch), APART / (int64_t)a->bytes);
  tarn_layout l = tarn_layout_row_major(m->nin, m->in);
  int64_t step[TARN_MAX_DIMS] = {0};
  imap_steps(L, m, &l, step);
  for (uint32_t d = 0; d < m->n; d++) a->coef[d] += pitch * step[d];
  a->touched |= imap_dims(L, m);
  a->constant = a->few = false; /* not packed */
}
static void result_model(const tarn_ksig *k, const tarn_stage *s, uint32_t out,
                         tarn_stage_work *m) {
  tarn_touch *a = &m->result;
  const tarn_layout row = tarn_layout_row_major(s->nown, s->own), *l = s->out ? &k->out[out] : &row;
  uint32_t first = s->out ? 0 : m->nshared;
  *a = (tarn_touch){.bytes = 4, .local = !s->out, .epi = true};
  for (uint32_t d = first; d < m->nacc; d++) {
    bool blocked = l->block && l->baxis == d - first;
    a->coef[d] = blocked ? 1 : l->stride[d - first];
    if (a->coef[d]) a->touched |= 1u << d;
  }
  if (!s->out) return;
  a->elems = tarn_layout_elems(l), a->start = l->offset;
  a->bytes = (double)tarn_dtype_size(k->out_type[out]);
}

static bool is_product(tarn_lang *L, uint32_t body) {
  const tarn_fx *x = tarn_fx_get(L, body);
  return x->op == TARN_FX_MUL;
}

/* Of one stage, whose constants are packed for it. */
static bool find_dot(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_stage *s,
                     tarn_hw_dot *dot, uint32_t factor[2]) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  tarn_hw_dot d[TARN_HW_DOTS];
  tarn_dtype type[TARN_MAX_OPERANDS];
  for (uint32_t r = 0; r < f->nops; r++) {
    if (s->read[r].stage) return false;
    type[r] = k->in_type[s->read[r].src];
  }
  if (!plan_dots(L, hw, f, type, !k->strict, d, factor)) return false;
  *dot = d[0];
  return true;
}
static void dot_model(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_stage *s,
                      tarn_stage_work *m) {
  uint32_t factor[2];
  if (!m->fma || !find_dot(L, hw, k, s, &m->dot, factor)) return;
  for (uint32_t i = 0; i < 2; i++) {
    m->dot_ops[i] = tarn_fx_cycles(L, hw, factor[i]);
    for (uint32_t r = 0; r < m->nread && r < TARN_MAX_OPERANDS; r++)
      if (!m->read[r].epi && tarn_fx_uses(L, factor[i], r)) m->dot_read[i] |= 1u << r;
  }
}
tarn_mark tarn_work_mark(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k) {
  tarn_hw_dot dot;
  uint32_t factor[2];
  const tarn_nest n = *tarn_nest_get(L, k->nest);
  for (uint32_t i = 0; i < n.nstage; i++) find_dot(L, hw, k, &n.stage[i], &dot, factor);
  return tarn_arena_mark(tarn_lang_ctx(L));
}
bool tarn_stage_resumes(tarn_lang *L, const tarn_ksig *k, const tarn_stage *s, uint32_t out) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  if (!s->out || out >= k->nout || k->strict || f->red == TARN_NONE || f->ntuple) return false;
  const tarn_reducer *r = tarn_reducer_get(L, f->red);
  tarn_dtype t;
  return r->kind == TARN_RED_SUM && r->ns == 1 && tarn_fx_type(L, r->init[0], NULL, 0, &t) &&
         t == k->out_type[out];
}
static void stage_functions(tarn_lang *L, const tarn_hw *hw, const tarn_stage *s,
                            tarn_stage_work *m) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  m->body_cycles = m->body_ops = tarn_fx_cycles(L, hw, f->body);
  m->flops_each = tarn_fx_size(L, f->body);
  if (f->red != TARN_NONE) {
    const tarn_reducer *r = tarn_reducer_get(L, f->red);
    m->reduces = true;
    m->custom = r->kind == TARN_RED_CUSTOM;
    m->fma = r->kind == TARN_RED_SUM && is_product(L, f->body);
    for (uint32_t i = 0; i < r->ns && m->custom; i++)
      m->body_ops += tarn_fx_cycles(L, hw, r->step[i]);
    m->flops_each += 1;
    if (m->fma) m->body_ops -= tarn_hw_fx_cycles(hw, TARN_FX_MUL);
  }
  if (f->epi != TARN_NONE) {
    m->epi_ops = tarn_fx_cycles(L, hw, f->epi);
    m->flops_result = tarn_fx_size(L, f->epi);
  }
}

/* A small constant over one dim of the result (those of `own`) and one of the reduction. */
static bool is_matrix(const tarn_touch *a, uint32_t own) {
  return a->few && !a->irregular && __builtin_popcount(a->touched & own) == 1 &&
         __builtin_popcount(a->touched & ~own) == 1;
}
/* A sum multiplied by several constant matrices: bilinear.c does it dim by dim if the tile holds
 * all of these. */
#define PER_WEIGHT 0.35 /* operations: zeros cost nothing, and rows share sums */
static void matrix_model(tarn_stage_work *m, double product) {
  plan_matrix_read read[TARN_MAX_OPERANDS];
  plan_matrices x;
  uint32_t n = 0, number[TARN_MAX_OPERANDS];
  uint64_t reduced = tarn_first_dims(m->n) & ~tarn_first_dims(m->nacc);
  double in = 1, out = 1, ops = 0;
  for (uint32_t r = 0; r < m->nread && n < TARN_MAX_OPERANDS; r++) {
    const tarn_touch *a = &m->read[r];
    if (a->epi) continue;
    bool small = a->few && !a->irregular;
    for (uint32_t d = 0; d < m->n; d++)
      small &= !(a->touched >> d & 1) || m->dim[d] <= TARN_MOST_MATRIX;
    number[n] = r;
    read[n++] = (plan_matrix_read){small, a->touched, a->guarded};
  }
  if (!plan_matrices_of(read, n, reduced, &x)) return;
  for (uint32_t d = m->nacc; d < m->n; d++) in *= (double)m->dim[d];
  for (uint32_t i = 0; i < x.n; i++) {
    uint32_t dims = m->read[number[x.read[i]]].touched;
    double rows = (double)m->dim[__builtin_ctz(dims & ~(uint32_t)reduced)];
    ops += PER_WEIGHT * in * rows * out;
    in /= (double)m->dim[__builtin_ctz(dims & (uint32_t)reduced)], out *= rows;
  }
  m->matrices = (uint32_t)(x.own | x.red), m->matrix_ops = ops;
  m->body_ops -= (x.n - 1) * product;
  m->flops_each = 2 * ops / out;
  for (uint32_t d = m->nacc; d < m->n; d++) m->flops_each /= (double)m->dim[d];
}
static uint64_t matrices_of(tarn_lang *L, const tarn_ksig *k, const tarn_nest *n,
                            const tarn_stage *s) {
  const tarn_func f = *tarn_fn_get(L, s->fn);
  uint64_t found = 0;
  uint32_t n_read = 0;
  if (f.red == TARN_NONE || tarn_reducer_get(L, f.red)->kind != TARN_RED_SUM) return 0;
  for (uint32_t r = 0; r < f.nops; r++) {
    if (s->read[r].stage || s->read[r].row.by) continue;
    tarn_touch a = read_model(L, k, n, &s->read[r], false);
    if (is_matrix(&a, (1u << (n->depth + s->nown)) - 1) &&
        a.elems <= TARN_MOST_MATRIX * TARN_MOST_MATRIX)
      found |= 1ull << a.src, n_read++;
  }
  return n_read >= TARN_LEAST_MATRICES ? found : 0; /* one matrix may be read twice */
}
uint64_t tarn_ksig_matrices(tarn_lang *L, const tarn_ksig *k) {
  const tarn_nest n = *tarn_nest_get(L, k->nest);
  uint64_t found = 0;
  for (uint32_t i = 0; i < n.nstage; i++) found |= matrices_of(L, k, &n, &n.stage[i]);
  return found;
}
bool tarn_ksig_complete(tarn_lang *L, const tarn_ksig *k) {
  for (uint64_t m = tarn_ksig_matrices(L, k); m; m &= m - 1)
    if (!k->in_numbers[__builtin_ctzll(m)]) return false;
  return true;
}
bool tarn_tile_holds_matrices(const tarn_stage_work *m, const int64_t *size) {
  for (uint32_t d = 0; d < m->n; d++)
    if ((m->matrices >> d & 1) && size[d] != m->dim[d]) return false;
  return m->matrices != 0;
}

/* Trips in padding are left out where they add nothing to a sum of products (peel.c). */
static void pads_model(tarn_lang *L, const tarn_stage *s, tarn_stage_work *m) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  for (uint32_t r = 0; r < f->nops && m->fma; r++) {
    const tarn_imap *map = tarn_imap_get(L, s->read[r].map);
    if (!map->nguard || !plan_adds_nothing(L, f, r, map->fill, true)) continue;
    for (uint32_t g = 0; g < map->nguard && m->npad < TARN_PADDINGS; g++) {
      tarn_padding pad = {tarn_ix_dims(L, map->guard[g].e),
                          tarn_work_part_inside(L, &map->guard[g], m)};
      if (pad.inside < 1) m->pad[m->npad++] = pad;
    }
  }
}

static bool reuses(const tarn_stage_work *m) {
  uint32_t shared = 0;
  for (uint32_t d = 0; d < m->nshared; d++) shared |= (uint32_t)(m->dim[d] > 1) << d;
  if (!m->fma || m->n == m->nacc) return false;
  for (uint32_t r = 0; r < m->nread; r++)
    if (!m->read[r].epi && !m->read[r].local && (shared & ~m->read[r].touched)) return true;
  return false;
}
double tarn_work_held(const tarn_kernel_work *km, uint32_t from, double line) {
  double sum = 0;
  for (uint32_t i = 0; i < km->nstage; i++) {
    const tarn_stage_work *m = &km->stage[i];
    int64_t span[TARN_MAX_DIMS];
    for (uint32_t d = 0; d < m->n; d++) span[d] = d < from && d < m->nshared ? 1 : m->dim[d];
    sum += tarn_touch_bytes(&m->result, span, line);
    for (uint32_t r = 0; r < m->nread; r++)
      if (!m->read[r].local && !m->read[r].again) sum += tarn_touch_bytes(&m->read[r], span, line);
  }
  return sum;
}
/* What a stage reads of an operand in one trip of the shared loops is cached if an earlier stage
 * has read as much of it. */
static void note_again(tarn_kernel_work *km, double line) {
  int64_t span[TARN_MAX_DIMS], other[TARN_MAX_DIMS];
  for (uint32_t i = 1; i < km->nstage; i++)
    for (uint32_t r = 0; r < km->stage[i].nread; r++) {
      const tarn_stage_work *m = &km->stage[i];
      tarn_touch *a = &m->read[r];
      size_t shared = m->nshared * sizeof *a->coef;
      for (uint32_t d = 0; d < m->n; d++) span[d] = d < m->nshared ? 1 : m->dim[d];
      for (uint32_t k = 0; k < i && !a->local && !a->irregular && !a->again; k++) {
        const tarn_stage_work *e = &km->stage[k];
        for (uint32_t d = 0; d < e->n; d++) other[d] = d < e->nshared ? 1 : e->dim[d];
        for (uint32_t q = 0; q < e->nread && !a->again; q++) {
          const tarn_touch *b = &e->read[q];
          a->again = !b->local && !b->irregular && b->src == a->src && b->start == a->start &&
                     !memcmp(a->coef, b->coef, shared) &&
                     tarn_touch_bytes(b, other, line) >= tarn_touch_bytes(a, span, line);
        }
      }
    }
}
static void stage_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_nest *nest,
                     const tarn_stage *s, uint32_t out, tarn_touch *read, tarn_stage_work *m) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  m->read = read;
  m->n = tarn_nest_dims(nest, s, m->dim);
  m->nshared = nest->depth, m->nacc = m->n - s->nred;
  for (uint32_t d = 0; d < m->n; d++)
    if (m->dim[d] == 0) m->dim[d] = 1; /* a loop without trips is priced as one with one */
  uint32_t operands = (uint32_t)f->nops + f->nepi;
  m->nread = tarn_stage_reads(L, s);
  for (uint32_t r = 0; r < m->nread; r++) {
    const tarn_row *row = &s->read[r].row;
    m->read[r] = read_model(L, k, nest, &s->read[r], r >= f->nops && r < operands);
    if (row->by) row_model(L, row, &s->read[operands + row->by - 1], &m->read[r]);
  }
  stage_functions(L, hw, s, m);
  if (!k->strict && m->fma && plan_is_product(L, f))
    matrix_model(m, tarn_hw_fx_cycles(hw, TARN_FX_MUL));
  if (f->red != TARN_NONE)
    m->splits = tarn_plan_splits(L, tarn_reducer_get(L, f->red), s->nred, !k->strict);
  if (!k->strict) pads_model(L, s, m);
  dot_model(L, hw, k, s, m);
  if (m->dot.k) m->flops_each = 2; /* widening is part of it */
  m->resumes = tarn_stage_resumes(L, k, s, out);
  result_model(k, s, out, m);
  for (uint32_t r = 0; r < m->nread; r++) tarn_touch_sort(&m->read[r], m->n);
  tarn_touch_sort(&m->result, m->nacc);
}
static uint32_t reads_of(tarn_lang *L, const tarn_nest *nest, uint32_t i) {
  return tarn_stage_reads(L, &nest->stage[i]);
}
static void make_room(tarn_lang *L, const tarn_nest *nest, tarn_kernel_work *km) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  uint32_t n = nest->nstage, nread = 0;
  for (uint32_t i = 0; i < n; i++) nread += reads_of(L, nest, i);
  if (n > km->stages) km->stage = TARN_ARRAY(cx, tarn_stage_work, n), km->stages = n;
  if (nread > km->reads) km->read = TARN_ARRAY(cx, tarn_touch, nread), km->reads = nread;
  memset(km->stage, 0, n * sizeof *km->stage);
  if (nread) memset(km->read, 0, nread * sizeof *km->read);
  km->nstage = n, km->blocks = false;
}
tarn_kernel_work *tarn_work_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k) {
  tarn_kernel_work *km = TARN_NEW(tarn_lang_ctx(L), tarn_kernel_work);
  tarn_work_into(L, hw, k, km);
  return km;
}
void tarn_work_into(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, tarn_kernel_work *km) {
  const tarn_nest *nest = tarn_nest_get(L, k->nest);
  make_room(L, nest, km);
  tarn_touch *read = km->read;
  for (uint32_t i = 0, out = 0; i < nest->nstage; out += nest->stage[i++].out) {
    stage_of(L, hw, k, nest, &nest->stage[i], out, read, &km->stage[i]);
    km->stage[i].result.from = i;
    read += km->stage[i].nread;
    km->blocks |= nest->nstage > 1 && reuses(&km->stage[i]);
  }
  double line = hw->nmem ? tarn_hw_mem(hw, TARN_HW_L1)->line : 1;
  note_again(km, line);
  double held = tarn_work_held(km, nest->depth, line);
  bool in_l1 =
      km->blocks && hw->nmem && held <= 0.8 * (double)tarn_hw_mem(hw, TARN_HW_L1)->capacity;
  for (uint32_t i = 0; i < km->nstage; i++)
    km->stage[i].block = km->blocks, km->stage[i].in_l1 = in_l1, km->stage[i].held = held;
}
