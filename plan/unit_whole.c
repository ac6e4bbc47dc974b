/* Kernels that one instruction computes as a whole: a described convolution, pooling or another
 * coarse unit, whose meaning is no product of matrices and no map.
 *
 * The meaning as a kernel over its operands, row-major, is the kernel's own: the loops go along
 * operands and result alike, in whichever order, the scalar functions are the same. Loops over sums
 * have the same extents; those over the result may have several times as many, and there may be
 * more of them: then the instruction computes part after part. A part of an operand lies in one
 * piece. Or the kernel is one of the nests that are known to equal the meaning, of several stages
 * too, at once. */
#include "kernel/kernel.h"
#include "plan/unit_internal.h"
#include <string.h>

/* A nest over operands of the meaning as a kernel; operand[i]: which one its operand i is. */
static bool kernel_of(tarn_lang *L, const tarn_hw_meaning *of, tarn_term t, tarn_ksig *k,
                      uint32_t *operand) {
  const tarn_hw_meaning x = *of;
  const tarn_node n = *tarn_term_get(L, t);
  const tarn_type *to = tarn_term_type(L, t);
  if (x.acc || x.immediate || n.op != TARN_OP_NEST || n.n != x.nin) return false;
  *k = (tarn_ksig){.nest = tarn_payload_get(L, n.payload)->id, .nin = n.n, .nout = 1};
  for (uint32_t i = 0; i < n.n; i++) {
    const tarn_type *from = tarn_term_type(L, n.kid[i]);
    k->in[i] = tarn_layout_row_major(from->n, from->dim);
    k->in_type[i] = from->dtype;
    operand[i] = 0;
    while (operand[i] < x.nin && x.in[operand[i]] != n.kid[i]) operand[i]++;
    if (operand[i] == x.nin) return false;
  }
  k->out[0] = tarn_layout_row_major(to->n, to->dim);
  k->out_type[0] = to->dtype;
  tarn_ksig_canonical(L, k);
  return true;
}
/* ---------------------------------------------------------------- the plan */
/* How a tensor goes along the dims that are done part by part. */
static bool part_by_part(unit_match *m, tarn_unit_tensor *t, uint32_t read, tarn_dtype type) {
  const tarn_unit_plan *p = m->p;
  int64_t entry = p->hw->mem[t->memory].entry;
  for (uint32_t d = 0; d < p->nacc; d++) {
    if (p->dim[d] == 1) continue;
    int64_t by =
        read == TARN_NONE ? p->k->out[0].stride[d] : tarn_ix_coef(m->L, unit_map(m, read)->e[0], d);
    int64_t bytes = by * p->unit[d] * (int64_t)tarn_dtype_size(type);
    if (!by) continue;
    if (bytes % entry)
      return unit_lies(m, "parts of operand %u are no whole number of entries", read);
    if (t->n == TARN_UNIT_COORDS - 1) return unit_no(m, "an operand has too many dims");
    t->at[t->n++] =
        (tarn_coordinate){.n = 1, .dim = {d}, .by = {1}, .step = bytes / entry, .rows = TARN_NONE};
  }
  return true;
}
/* What the instruction takes of an operand is one row of entries. */
static bool operand(unit_match *m, tarn_unit_what what, uint32_t read, const tarn_hw_operand *o) {
  const tarn_unit_plan *p = m->p;
  uint32_t memory = unit_memory(p->hw, o->memory);
  if (memory == TARN_NONE) return unit_no(m, "operand %s is in no memory", o->name);
  tarn_unit_tensor *t = unit_tensor(m, what, read, memory);
  int64_t entry = p->hw->mem[memory].entry;
  if (tarn_hw_operand_bytes(o) % entry)
    return unit_lies(m, "operand %s is no whole number of entries", o->name);
  t->lanes[1] = entry / (int64_t)tarn_dtype_size(o->dtype);
  bool read_here = what == TARN_UNIT_ROWS;
  bool constant = read_here && p->k->in_const[p->stage->read[read].src];
  if (!part_by_part(m, t, read_here ? read : TARN_NONE, o->dtype)) return false;
  if (constant) {
    t->packed = true;
    t->each = tarn_hw_operand_bytes(o) / entry;
  } else
    t->at[t->n++] =
        (tarn_coordinate){.step = 1, .many = tarn_hw_operand_bytes(o) / entry, .rows = TARN_NONE};
  if (!read_here) t->transfer = TARN_NONE;
  return !read_here || t->transfer != TARN_NONE ||
         unit_no(m, "no transfer fills %s", p->hw->mem[memory].name);
}
static bool leaves(unit_match *m) {
  tarn_unit_plan *p = m->p;
  for (uint32_t i = 0; i < p->hw->ntransfer; i++) {
    const tarn_hw_transfer *t = &p->hw->transfer[i];
    if (t->from != p->tensor[p->sums].memory || t->to != p->hw->nmem - 1 ||
        t->intrinsic != TARN_NONE)
      continue;
    unit_like_sums(m, TARN_UNIT_RESULT)->transfer = i;
    p->result = p->ntensor - 1;
    return true;
  }
  return unit_else(m, "nothing brings results of %s to main memory",
                   p->hw->intrin[p->product].name);
}
/* as[r]: which read of the kernel the meaning's read r is; operand numbers of the meaning's reads;
 * what the meaning has of each dim. */
static bool planned(unit_match *m, uint32_t intrinsic, const uint32_t *as, const uint32_t *number,
                    uint32_t n, const int64_t *part) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_intrinsic *x = &p->hw->intrin[intrinsic];
  p->way = TARN_UNIT_WHOLE;
  p->product = intrinsic;
  p->ntensor = p->nstep = 0;
  p->rows = p->columns = p->sum = TARN_NONE;
  p->form = (tarn_hw_form){.m = 1, .n = 1, .k = 1};
  for (uint32_t d = 0; d < p->n; d++) {
    p->unit[d] = part[d];
    p->dim[d] = p->extent[d] / part[d];
  }
  for (uint32_t o = 0; o < n; o++)
    for (uint32_t r = 0; r < n; r++)
      if (number[r] == o && !operand(m, TARN_UNIT_ROWS, as[r], &x->op[o])) return false;
  if (p->ntensor != n || !operand(m, TARN_UNIT_SUMS, TARN_NONE, &x->op[n])) return false;
  p->sums = n;
  return leaves(m);
}
static const char *sizes_of(tarn_lang *L, const tarn_ksig *k) {
  tarn_buf b = {.cx = tarn_lang_ctx(L)};
  const tarn_stage_dims s = tarn_stage_dims_of(tarn_nest_get(L, k->nest), 0);
  for (uint32_t d = 0; d < s.n; d++)
    tarn_buf_fmt(&b, "%s%lld", !d ? "" : d == s.nacc ? " over " : " x ", (long long)s.dim[d]);
  return b.p;
}

/* ---------------------------------------------------------------- known nests */
/* In the place of the last stage one that reads each operand of the kernel once. */
static void read_operands(unit_match *m, const unit_parts *q) {
  tarn_unit_plan *p = m->p;
  tarn_stage *s = tarn_copy(m->cx, p->stage, sizeof *p->stage);
  tarn_read *r = TARN_ARRAY(m->cx, tarn_read, p->k->nin + 1);
  for (uint32_t i = 0; i < p->k->nin; i++)
    r[i] = (tarn_read){.src = i, .map = q->n ? q->map[i] : TARN_NONE};
  s->read = r;
  p->stage = s;
}
/* The meaning itself as a nest; TARN_NONE of a product of matrices or a map. */
static tarn_term own_nest(tarn_lang *L, const tarn_hw_meaning *x) {
  tarn_hw_form form;
  if (x->acc || x->immediate || tarn_hw_form_of(L, x, &form)) return TARN_NONE;
  tarn_term t = tarn_kernel_form(L, x->term);
  while (tarn_term_get(L, t)->op == TARN_OP_VIEW) t = tarn_term_get(L, t)->kid[0];
  return t;
}
/* The intrinsic computes what nest t over its operands does. */
static bool computes(unit_match *m, uint32_t intrinsic, const tarn_hw_meaning *x, tarn_term t) {
  uint32_t as[TARN_MAX_OPERANDS];
  uint32_t number[TARN_MAX_OPERANDS];
  tarn_ksig k;
  unit_parts q = {.n = 0};
  if (t == TARN_NONE || !kernel_of(m->L, x, t, &k, number)) return false;
  if (!unit_same_kernel(m->L, &k, m->p->k, as, &q))
    return q.alike &&
           unit_no(m, "%s takes %s, each operand in one piece, this is %s",
                   m->p->hw->intrin[intrinsic].name, sizes_of(m->L, &k), sizes_of(m->L, m->p->k));
  const tarn_stage *stage = m->p->stage;
  read_operands(m, &q);
  for (uint32_t d = q.n; d < m->p->n; d++) q.part[d] = m->p->extent[d];
  if (planned(m, intrinsic, as, number, k.nin, q.part)) return true;
  m->p->stage = stage;
  return false;
}
/* Its meaning, or a nest that is known to equal this, of as many stages as it may have. */
static bool is_whole(unit_match *m, uint32_t intrinsic) {
  const tarn_hw_intrinsic *n = &m->p->hw->intrin[intrinsic];
  const tarn_hw_meaning x = tarn_hw_meaning_of(m->L, m->p->hw, intrinsic);
  if (x.nin > TARN_UNIT_OPERANDS - 1) return false;
  for (uint32_t w = 0; w < n->nwhole; w++)
    if (computes(m, intrinsic, &x, n->whole[w])) return true;
  return computes(m, intrinsic, &x, own_nest(m->L, &x));
}
bool tarn_unit_known(tarn_lang *L, const tarn_hw *hw, uint32_t intrinsic, uint32_t which,
                     tarn_ksig *k) {
  const tarn_hw_meaning x = tarn_hw_meaning_of(L, hw, intrinsic);
  uint32_t number[TARN_MAX_OPERANDS];
  return kernel_of(L, &x, hw->intrin[intrinsic].whole[which], k, number);
}
bool unit_whole(unit_match *m) {
  for (uint32_t i = 0; i < m->p->hw->nintrin; i++)
    if (is_whole(m, i)) return true;
  return false;
}
