/* Main memory as the accelerator sees it: the workspace of temporary buffers, inputs and outputs of
 * the model that it touches, constants tile by tile, micro-ops. */
#include "lower/dsa/dsa.h"
#include <string.h>

static bool by_device(const dsa_image *m, const tarn_kernel *k) {
  return m->p->machines.hw[k->machine] == m->hw;
}
static void port(dsa_image *m, uint32_t buf) {
  uint32_t root = tarn_kprog_root(m->p, buf);
  tarn_buf_kind kind = m->p->buf[root].kind;
  if (m->port[root] >= 0 || kind == TARN_BUF_TEMP || kind == TARN_BUF_CONST) return;
  m->port[root] = m->port_bytes;
  m->port_bytes += tarn_round_up(tarn_buffer_bytes(&m->p->buf[root]), m->align);
}
void dsa_image_open(dsa_image *m, const tarn_kprog *p, const tarn_memory_plan *plan,
                    const tarn_hw *hw) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  *m = (dsa_image){.cx = cx, .p = p, .plan = plan, .hw = hw, .align = 64};
  for (uint32_t i = 0; i < hw->nmem; i++) m->align = tarn_max(m->align, hw->mem[i].entry);
  m->constants.cx = m->micro.cx = cx;
  m->values = tarn_map_new(cx);
  m->port = TARN_ARRAY(cx, int64_t, p->nbuf);
  for (uint32_t i = 0; i < p->nbuf; i++) m->port[i] = -1;
  m->port_base = tarn_round_up(plan->bytes, m->align);
  for (uint32_t i = 0; i < p->nker; i++) {
    if (!by_device(m, &p->ker[i])) continue;
    for (uint32_t k = 0; k < p->ker[i].nin; k++) port(m, p->ker[i].in[k]);
    for (uint32_t k = 0; k < p->ker[i].nout; k++) port(m, p->ker[i].out[k]);
  }
}
int64_t dsa_storage(const dsa_image *m, uint32_t buf) {
  uint32_t root = tarn_kprog_root(m->p, buf);
  if (m->port[root] >= 0) return m->port_base + m->port[root];
  if (m->plan->offset[root] >= 0) return m->plan->offset[root];
  tarn_raise(m->cx, TARN_INTERNAL, "lower: buffer %u has no place", buf);
}

/* ---------------------------------------------------------------- constants */
/* The memory of a constant operand, from its layout's offset on. */
static const char *memory_of(dsa_image *m, const tarn_kernel *k, uint32_t operand) {
  bool fresh;
  const tarn_buffer *b = &m->p->buf[k->in[operand]];
  size_t size = tarn_dtype_size(b->dtype);
  uint64_t *at = tarn_map_at(m->values, k->in[operand], &fresh);
  if (fresh) {
    char *memory = tarn_new(m->cx, (size_t)tarn_buffer_bytes(b));
    tarn_plan_const_lay_out(&b->layout, tarn_plan_const_value(m->p, b),
                            memory + b->layout.offset * (int64_t)size);
    tarn_push(m->cx, &m->memory, memory);
    *at = m->memory.n;
  }
  return m->memory.p[*at - 1] + k->in_layout[operand].offset * (int64_t)size;
}
typedef struct packer {
  const tarn_unit_plan *u;
  const tarn_unit_tensor *t;
  const tarn_imap *map; /* NULL: no operand is read */
  tarn_tensor memory;
  const tarn_hw_operand *operand; /* of the unit */
  const tarn_hw_role *role;       /* of its dims */
} packer;
static tarn_value fill_of(const packer *k) {
  const tarn_fx *x = tarn_fx_get(k->u->L, k->map->fill);
  return tarn_dtype_is_float(k->operand->dtype) ? (tarn_value){.d = x->value}
                                                : (tarn_value){.i = x->ivalue};
}
static tarn_value element(const packer *k, const int64_t *dims) {
  const tarn_lang *L = k->u->L;
  const tarn_value none = {0};
  if (!k->map) return none;
  for (uint32_t d = 0; d < k->u->n; d++)
    if (dims[d] >= k->u->extent[d]) return none;
  for (uint32_t g = 0; g < k->map->nguard; g++) {
    int64_t e = tarn_ix_eval(L, k->map->guard[g].e, dims);
    if (e < k->map->guard[g].lo || e >= k->map->guard[g].hi) return fill_of(k);
  }
  return tarn_tensor_get(&k->memory, tarn_ix_eval(L, k->map->e[0], dims));
}
/* Element i of an operand of the unit that stands at these dims. */
static tarn_value in_operand(const packer *k, int64_t i, const int64_t *at) {
  const tarn_unit_plan *u = k->u;
  int64_t dims[TARN_MAX_DIMS];
  int64_t of[4] = {0};
  memcpy(dims, at, sizeof dims);
  for (uint32_t d = k->operand->n; d-- > 0; i /= k->operand->dim[d])
    of[k->role[d]] = i % k->operand->dim[d];
  bool real = tarn_dtype_is_float(k->operand->dtype);
  bool one = of[TARN_HW_N] == of[TARN_HW_K];
  if (k->t->what == TARN_UNIT_ONE) return real ? (tarn_value){.d = one} : (tarn_value){.i = one};
  if (u->columns != TARN_NONE) dims[u->columns] += of[TARN_HW_N];
  if (u->sum != TARN_NONE && k->t->what == TARN_UNIT_COLUMNS) dims[u->sum] += of[TARN_HW_K];
  tarn_value v = element(k, dims);
  if (real) v.d += k->t->real;
  else v.i += k->t->constant;
  return v;
}
/* Operands of a box, in the order of the tensor's coordinates. */
static void pack(dsa_image *m, const packer *k, const tarn_unit_box *box) {
  const tarn_unit_tensor *t = k->t;
  int64_t at[TARN_UNIT_COORDS] = {0};
  int64_t count = 1;
  int64_t bytes = t->each * k->u->hw->mem[t->memory].entry;
  int64_t elements = bytes / (int64_t)tarn_dtype_size(k->operand->dtype);
  for (uint32_t i = 0; i < t->n; i++) count *= box->n[t->at[i].dim[0]];
  tarn_tensor one = {.dtype = k->operand->dtype, .n = 1, .dim = {elements}};
  one.data = tarn_new(m->cx, (size_t)bytes);
  for (int64_t c = 0; c < count; c++) {
    int64_t dims[TARN_MAX_DIMS] = {0};
    for (uint32_t i = 0; i < t->n; i++) {
      uint32_t d = t->at[i].dim[0];
      dims[d] = (box->lo[d] + at[i]) * k->u->unit[d];
    }
    for (int64_t e = 0; e < elements; e++) tarn_tensor_set(&one, e, in_operand(k, e, dims));
    tarn_buf_add(&m->constants, one.data, (size_t)bytes);
    for (uint32_t i = t->n; i-- > 0; at[i] = 0)
      if (++at[i] < box->n[t->at[i].dim[0]]) break;
  }
}
int64_t dsa_zeros(dsa_image *m, int64_t bytes) {
  if (m->nzeros >= bytes) return m->zeros;
  while ((int64_t)m->constants.n % m->align) tarn_buf_add(&m->constants, "", 1);
  m->zeros = (int64_t)m->constants.n;
  m->nzeros = bytes;
  for (int64_t i = 0; i < bytes; i++) tarn_buf_add(&m->constants, "", 1);
  return m->zeros;
}
/* The entries of the tile that begins there, in the order in which transfers take them. */
static void arrange(dsa_image *m, const tarn_unit_plan *u, const tarn_unit_tensor *t, int64_t at) {
  int64_t entry = u->hw->mem[t->memory].entry;
  int64_t n = ((int64_t)m->constants.n - at) / entry;
  char *was = tarn_copy(m->cx, m->constants.p + at, (size_t)(n * entry));
  for (int64_t i = 0; i < n; i++)
    memcpy(m->constants.p + at + tarn_unit_packed_at(u, t, n, i) * entry, was + i * entry,
           (size_t)entry);
}
static bool same_tile(const tarn_unit_tensor *t, const tarn_unit_box *a, const tarn_unit_box *b) {
  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t d = t->at[i].dim[0];
    if (a->lo[d] != b->lo[d] || a->n[d] != b->n[d]) return false;
  }
  return true;
}
/* The parts of a box, each as it lies in its buffer. */
static int64_t whole_constant(dsa_image *m, uint32_t kernel, const tarn_unit_plan *u,
                              uint32_t tensor, const tarn_unit_box *box) {
  const tarn_unit_tensor *t = &u->tensor[tensor];
  int64_t entry = u->hw->mem[t->memory].entry;
  int64_t at[TARN_UNIT_COORDS] = {0};
  int64_t count = 1;
  while ((int64_t)m->constants.n % m->align) tarn_buf_add(&m->constants, "", 1);
  dsa_tile made = {kernel, tensor, *box, (int64_t)m->constants.n};
  const char *from = memory_of(m, &m->p->ker[kernel], u->stage->read[t->read].src);
  for (uint32_t i = 0; i < t->n; i++) count *= box->n[t->at[i].dim[0]];
  for (int64_t c = 0; c < count; c++) {
    int64_t first = 0;
    for (uint32_t i = 0; i < t->n; i++) first += (box->lo[t->at[i].dim[0]] + at[i]) * t->at[i].step;
    tarn_buf_add(&m->constants, from + first * entry, (size_t)(t->each * entry));
    for (uint32_t i = t->n; i-- > 0; at[i] = 0)
      if (++at[i] < box->n[t->at[i].dim[0]]) break;
  }
  arrange(m, u, t, made.at);
  tarn_push(m->cx, &m->tile, made);
  return made.at;
}
int64_t dsa_constant(dsa_image *m, uint32_t kernel, const tarn_unit_plan *u, uint32_t tensor,
                     const tarn_unit_box *box) {
  const tarn_unit_tensor *t = &u->tensor[tensor];
  const tarn_kernel *k = &m->p->ker[kernel];
  tarn_unit_tensor whole;
  const tarn_unit_box all = tarn_unit_all(u);
  if (t->vector) { /* whatever the tile */
    whole = *t;
    whole.n = u->dim[u->columns] > 1;
    whole.at[0] = (tarn_coordinate){.n = 1, .dim = {u->columns}, .by = {1}, .step = 1};
    t = &whole;
    box = &all;
  }
  for (uint32_t i = m->tile.n; i-- > 0 && m->tile.p[i].kernel == kernel;)
    if (m->tile.p[i].tensor == tensor && same_tile(t, &m->tile.p[i].box, box))
      return m->tile.p[i].at;
  if (u->way == TARN_UNIT_WHOLE) return whole_constant(m, kernel, u, tensor, box);
  const tarn_hw_intrinsic *x = &u->hw->intrin[u->product];
  uint32_t which = t->what == TARN_UNIT_ADDEND || t->what == TARN_UNIT_ONTO ? 2 : 1;
  packer g = {.u = u, .t = t, .role = u->form.role[which]};
  g.operand = &x->op[which == 2 ? x->nop - 1u : u->form.operand[1]];
  if (t->read != TARN_NONE) {
    uint32_t src = u->stage->read[t->read].src;
    g.map = tarn_imap_get(u->L, u->stage->read[t->read].map);
    g.memory.dtype = m->p->buf[k->in[src]].dtype;
    g.memory.data = (void *)(uintptr_t)memory_of(m, k, src);
  }
  while ((int64_t)m->constants.n % m->align) tarn_buf_add(&m->constants, "", 1);
  dsa_tile made = {kernel, tensor, *box, (int64_t)m->constants.n};
  pack(m, &g, box);
  if (t->packed) arrange(m, u, t, made.at);
  tarn_push(m->cx, &m->tile, made);
  return made.at;
}
