/* Blocks for kernels with several stages.
 *
 * The loops that the stages of a nest share may run over blocks of a few rows instead of single
 * rows. A local buffer then holds a block, and every stage computes it with its own register tile
 * and reuses what does not depend on the rows (weights; keys and values), as a separate kernel
 * would. Sizes come from the description: the local buffers must fit into L1 or L2.
 *
 * Where nothing is reused but a row waits for its maximum or sum (softmax, layer normalisation of
 * short rows), a few rows at a time overlap their waits.
 *
 * For a product of one stage with variable columns that lie far apart: blocks of columns, copied by
 * an extra stage before all rows use them (Goto and van de Geijn, as in price/candidates.c). */
#include "extract/kgraph.h"
#include "kernel/maps.h"
#include <stdlib.h>
#include <string.h>

#define ROWS 32 /* rows from which on the work on a block outweighs what it reads again */

/* Blocks of stages with windows over a local buffer were measured not to pay. */
static bool windows(tarn_lang *L, const tarn_imap *m) {
  for (uint32_t a = 0; a < m->nin; a++)
    if (tarn_ix_get(L, m->e[a])->n > 1) return true;
  return false;
}
/* Shared loops along which an operand of some product stays the same; none where windows go over a
 * local buffer. */
static uint32_t reused(tarn_lang *L, const tarn_nest *n) {
  uint32_t all = (1u << n->depth) - 1, any = 0;
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *s = &n->stage[i];
    const tarn_func *f = tarn_fn_get(L, s->fn);
    int64_t steps = 1;
    for (uint32_t d = 0; d < s->nred; d++) steps *= s->red[d];
    for (uint32_t r = 0; r < f->nops; r++)
      if (s->read[r].stage && windows(L, tarn_imap_get(L, s->read[r].map))) return 0;
    for (uint32_t r = 0; r < f->nops && f->nops > 1 && steps > 1; r++)
      if (!s->read[r].stage) any |= all & ~read_dims(L, s, r);
  }
  return any;
}
/* Bytes that the local buffers hold for one point of the shared loops, four for an element: sizes
 * are proposed by it, and then priced as they are. */
static int64_t local_bytes(const tarn_nest *n) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < n->nstage; i++) {
    int64_t elems = 4;
    for (uint32_t d = 0; d < n->stage[i].nown; d++) elems *= n->stage[i].own[d];
    if (!n->stage[i].out) sum += elems;
  }
  return sum;
}

/* Does another stage wait for the vector reduction of a row, and does a row have more work than the
 * processor's reorder window, so that it does not overlap with the next row by itself? */
#define LOOKAHEAD 256 /* operations on vectors */
static bool waits(const kgraph *k, const tarn_nest *n) {
  double lanes = tarn_hw_lanes(k->now.hw, TARN_F32), ops = 0;
  bool any = false;
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *s = &n->stage[i];
    const tarn_func *f = tarn_fn_get(k->L, s->fn);
    double steps = 1, own = 1;
    for (uint32_t d = 0; d < s->nred; d++) steps *= (double)s->red[d];
    for (uint32_t d = 0; d < s->nown; d++) own *= (double)s->own[d];
    any |= own == 1 && !s->out && steps >= 2 * lanes;
    ops += own * steps / lanes * (1 + tarn_fx_cycles(k->L, k->now.hw, f->body));
    for (uint32_t r = 0; r < f->nops; r++)
      if (s->read[r].stage && windows(k->L, tarn_imap_get(k->L, s->read[r].map))) return false;
  }
  return any && ops > LOOKAHEAD;
}
/* Rows whose waits overlap: as many as keep their buffers within a quarter of L1. */
static uint32_t rows_at_once(const kgraph *k, const tarn_nest *n, kcut *c) {
  enum { FEW = 2, MANY = 8 };
  uint32_t d = n->depth;
  int64_t each = local_bytes(n), room = (int64_t)tarn_hw_mem(k->now.hw, TARN_HW_L1)->capacity / 4;
  while (d > 0 && n->shared[d - 1] == 1) d--;
  if (!d || k->o->strict || !waits(k, n)) return 0;
  for (int64_t b = MANY; b >= FEW; b /= 2) {
    if (n->shared[d - 1] % b || n->shared[d - 1] == b || b * each > room || !kg_may_cut(k, b))
      continue;
    *c = (kcut){.more = true};
    for (uint32_t i = 0; i < TARN_MAX_DIMS; i++) c->block[i] = i == d - 1 ? b : 1;
    return 1;
  }
  return 0;
}

/* Are blocks so few that threads wait for one another noticeably? Single rows may then be faster.
 */
static bool leaves_idle(const kgraph *k, int64_t blocks) {
  int64_t threads = k->now.threads;
  return blocks % threads && blocks < 8 * threads;
}

uint32_t kg_cuts(kgraph *k, uint32_t nest, kcut out[KG_MAX_CUTS]) {
  const tarn_nest *n = tarn_nest_get(k->L, nest);
  const tarn_hw *hw = k->now.hw;
  uint32_t some = n->depth ? reused(k->L, n) : 0, got = 0;
  int64_t each = local_bytes(n), points = 1;
  if (n->nstage > 1 && !some && hw->nmem) return rows_at_once(k, n, out);
  if (n->nstage < 2 || !some || !each || hw->nmem < 2) return 0;
  const tarn_hw_between may = tarn_hw_between_of(hw);
  for (uint32_t d = 0; d < n->depth; d++) points *= n->shared[d];
  kcut c = {0}, best[2];
  int64_t rows = 1, most[2] = {1, 1};
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++) c.block[d] = 1;
  for (uint32_t d = n->depth; d-- > 0;) {
    int64_t extent = n->shared[d];
    if (!(some >> d & 1) && extent > 1) continue;
    for (int64_t b = 2; b <= extent; b++) {
      if (extent % b || rows * b == points || !kg_may_cut(k, b)) continue;
      c.block[d] = b;
      int64_t bytes = rows * b * each;
      for (uint32_t m = 0; m < 2; m++)
        if (bytes <= may.block[m] && points / (rows * b) >= may.least[m] &&
            (m == 0 || most[1] < ROWS))
          most[m] = rows * b, best[m] = c;
    }
    if (rows * extent * each > may.block[1] || rows * extent == points) break;
    c.block[d] = extent, rows *= extent;
  }
  for (uint32_t m = 0; m < 2; m++) {
    if (most[m] < 2 || (m == 1 && (most[1] <= most[0] || most[0] >= ROWS))) continue;
    best[m].more = leaves_idle(k, points / most[m]);
    for (uint32_t how = 0; how < (may.held ? 5 : 3); how++) {
      kcut *o = &out[got++];
      *o = best[m];
      o->behind = how % 3 > 0;
      o->gather = how == 2;
      o->hold = how > 2 ? may.held : 0;
    }
  }
  return got;
}

/* ---- operands packed block by block ---- */
/* How far the address of an operand moves per step of each dim; false where it is no constant step.
 */
static bool steps_of(kgraph *k, uint32_t map, const tarn_layout *l, int64_t *out) {
  const tarn_imap *m = tarn_imap_get(k->L, map);
  if (l->block || m->nguard) return false;
  for (uint32_t a = 0; a < m->nin; a++)
    if (!tarn_ix_affine(k->L, m->e[a])) return false;
  imap_steps(k->L, m, l, out);
  return true;
}
/* Elements that the reduction walks of one column of an operand whose columns lie side by side
 * along own dim `lane`, so many that the next row of them is mostly found on another page, and that
 * rows go over again; 0: it is no such operand. */
static int64_t column(const tarn_stage *s, uint32_t lane, const int64_t *step, int64_t elems,
                      int64_t page) {
  int64_t deep = 1, rows = 1, all = 1;
  for (uint32_t d = 0; d < s->nown; d++)
    if (step[d]) all *= s->own[d];
    else rows *= s->own[d];
  for (uint32_t d = 0; d < s->nred; d++) {
    if (s->red[d] > 1 && llabs(step[s->nown + d]) * 4 < page / 2) return 0;
    deep *= s->red[d];
  }
  return step[lane] == 1 && rows > 1 && all * deep <= elems ? deep : 0;
}
/* The largest block of at most `most` columns, in whole panels, of which there is more than one; 0:
 * none. */
static int64_t block_of(const kgraph *k, int64_t extent, int64_t panel, int64_t most) {
  int64_t b = most / panel * panel;
  while (b > 0 && (extent % b || b == extent || !kg_may_cut(k, b))) b -= panel;
  return b;
}
/* A block fills half of L2 (four bytes for an element), a panel is as wide as a
 * register tile. */
#define NARROWEST 2 /* vectors in a panel */
#define WIDEST    4
#define TURNS     4 /* blocks for each thread, at least */
uint32_t kg_packs(kgraph *k, const tarn_ksig *sig, kcut out[KG_MAX_CUTS]) {
  const tarn_nest *n = tarn_nest_get(k->L, sig->nest);
  const tarn_stage *s = n->stage;
  const tarn_func *f = tarn_fn_get(k->L, s->fn);
  const tarn_hw *hw = k->now.hw;
  uint32_t got = 0, lane = 0;
  if (n->nstage != 1 || n->depth || sig->nout != 1 || !s->nred || f->nops != 2 || sig->out[0].block)
    return 0;
  if (hw->nmem < 2 || tarn_hw_mem(hw, TARN_HW_L1)->managed) return 0;
  while (lane < s->nown && (sig->out[0].stride[lane] != 1 || s->own[lane] == 1)) lane++;
  int64_t lanes = tarn_hw_lanes(hw, TARN_F32);
  for (uint32_t j = 0; j < f->nops && lane < s->nown; j++) {
    const tarn_read *r = &s->read[j];
    int64_t step[TARN_MAX_DIMS];
    if (r->stage || sig->in_const[r->src] || !steps_of(k, r->map, &sig->in[r->src], step)) continue;
    int64_t deep = column(s, lane, step, tarn_layout_elems(&sig->in[r->src]), hw->core.page);
    int64_t v = NARROWEST;
    if (!deep) continue;
    for (; v <= WIDEST && got < KG_MAX_CUTS; v++) {
      int64_t most = tarn_hw_mem(hw, TARN_HW_L2)->capacity / 2 / 4 / deep,
              each = s->own[lane] / (TURNS * (int64_t)k->now.threads);
      if (k->now.threads > 1 && each < most) most = each;
      int64_t b = block_of(k, s->own[lane], v * lanes, most);
      if (b) out[got++] = (kcut){.pack = true, .read = j, .dim = lane, .block = {b, v * lanes}};
    }
  }
  return got;
}
