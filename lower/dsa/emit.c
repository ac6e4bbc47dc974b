/* Statements of a kernel's loop program as instructions of the machine. */
#include "lower/dsa/dsa.h"
#include <string.h>

/* The memory that an entry lies in: a shadow's own is another. */
static uint32_t real_memory(const tarn_hw *hw, uint32_t memory) {
  const char *shadows = hw->mem[memory].shadow_of;
  return shadows ? (uint32_t)(tarn_hw_memory_find(hw, shadows) - hw->mem) : memory;
}

/* ---------------------------------------------------------------- transfers */
typedef struct transfer {
  dsa_emitter *e;
  const tarn_unit_plan *p;
  uint32_t tensor, slot;
  int64_t base;  /* bytes: where entry 0 of the tensor lies */
  int64_t first; /* entries: of what is moved, in its slot */
  bool constant, leaves;
} transfer;
static const tarn_hw_instruction *mover_of(const dsa_emitter *e, const tarn_unit_plan *p,
                                           const tarn_unit_tensor *t) {
  bool result = t->what == TARN_UNIT_RESULT;
  return tarn_hw_mover(e->hw, t->transfer, result ? &p->store_immediate : NULL);
}
/* v, or where the instruction fixes the place that: any number will do. */
static int64_t any_of(const dsa_emitter *e, uint32_t place, int64_t v) {
  tarn_hw_range r = tarn_hw_range_of(e->hw, e->is, place, v);
  return tarn_hw_has(r, v) ? v : r.lo;
}
static void move(void *user, const tarn_unit_move *m) {
  transfer *t = user;
  dsa_emitter *e = t->e;
  const tarn_unit_tensor *x = &t->p->tensor[t->tensor];
  const tarn_hw_instruction *is = mover_of(e, t->p, x);
  int64_t entry = tarn_hw_transfer_bytes(e->hw, &e->hw->transfer[x->transfer]);
  bool constant = t->constant || m->zeros;
  uint32_t of = x->what == TARN_UNIT_ONTO ? t->p->sums : t->tensor; /* whose places it has */
  int64_t at = e->at.first[of] + t->slot * e->at.entries[of] + t->first + m->local;
  int64_t main = m->zeros ? dsa_zeros(e->image, m->entries * entry) : t->base + m->main * entry;
  int64_t size = (m->rows + m->pad[0] + m->pad[1]) * (m->entries + m->pad[2] + m->pad[3]);
  int64_t stride = is->stride_bytes ? m->stride * entry : m->stride;
  if (m->block) size = (m->entries - 1) * m->block + m->rows;
  dsa_access *a = TARN_ARRAY(e->s->cx, dsa_access, m->rows + 1);
  uint32_t n = 0;
  a[n++] = (dsa_access){real_memory(e->hw, x->memory), at, size, !t->leaves};
  for (int64_t r = 0; r < m->rows && !constant; r++)
    a[n++] =
        (dsa_access){e->hw->nmem - 1, main + r * m->stride * entry, m->entries * entry, t->leaves};
  dsa_instruct(e, is);
  dsa_set(e, is->local, at);
  dsa_set(e, is->main, is->bytes ? main : main / entry);
  dsa_set(e, is->rows, m->rows);
  dsa_set(e, is->entries, m->entries * is->units);
  dsa_set(e, is->stride, m->rows > 1 ? stride : any_of(e, is->stride, stride));
  dsa_set(e, is->block, m->block ? m->block : dsa_held(e, is->block, 0));
  if (t->leaves) dsa_set(e, is->immediate, t->p->store_immediate);
  for (uint32_t i = 0; i < 4; i++) dsa_set(e, is->pad[i], m->pad[i]);
  if (constant) dsa_part_begins(e, is->main);
  dsa_emit(e, a, n);
  if (constant) dsa_part_of(e, DSA_CONSTANTS, is->main, is->bytes ? 1 : entry);
}
/* Where entry 0 of a tensor that is no constant lies. */
static int64_t base_of(const dsa_emitter *e, const tarn_unit_plan *p, const tarn_unit_tensor *t) {
  const tarn_kernel *k = &e->image->p->ker[e->kernel];
  bool result = t->what == TARN_UNIT_RESULT;
  uint32_t src = result ? 0 : p->stage->read[t->read].src;
  uint32_t buf = result ? k->out[0] : k->in[src];
  const tarn_layout *l = result ? &k->out_layout[0] : &k->in_layout[src];
  int64_t at = dsa_storage(e->image, buf) +
               l->offset * (int64_t)tarn_dtype_size(e->image->p->buf[buf].dtype);
  int64_t entry = tarn_hw_transfer_bytes(e->hw, &e->hw->transfer[t->transfer]);
  if (at % entry)
    tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s: an operand begins at byte %lld, entries have %lld",
               k->name, (long long)at, (long long)entry);
  return at;
}
static void transfers(dsa_emitter *e, const tarn_unit_plan *p, const tarn_unit_stmt *s) {
  const tarn_unit_tensor *x = &p->tensor[s->tensor];
  transfer t = {.e = e, .p = p, .tensor = s->tensor, .slot = s->slot[s->tensor]};
  t.constant = x->packed || x->vector;
  t.leaves = s->does == TARN_UNIT_LEAVE;
  t.first = s->first[0];
  t.base = t.constant ? dsa_constant(e->image, e->kernel, p, s->tensor, s->box) : base_of(e, p, x);
  if (!mover_of(e, p, x))
    tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s has no instruction for transfer %s", e->hw->name,
               e->hw->transfer[x->transfer].name);
  tarn_unit_moves(p, x, s->box, move, &t);
}

/* ---------------------------------------------------------------- micro-ops */
/* A row of micro-ops, from entry number `image` of them on. */
static void load_row(dsa_emitter *e, const tarn_hw_instruction *is, dsa_access to, int64_t image) {
  int64_t entry = e->hw->mem[to.memory].entry;
  dsa_instruct(e, is);
  dsa_set(e, is->local, to.at);
  dsa_set(e, is->main, is->bytes ? image * entry : image);
  dsa_set(e, is->rows, 1);
  dsa_set(e, is->entries, to.n * is->units);
  dsa_set(e, is->stride, any_of(e, is->stride, is->stride_bytes ? entry : 1));
  dsa_set(e, is->block, any_of(e, is->block, 1));
  dsa_part_begins(e, is->main);
  dsa_emit(e, &to, 1);
  dsa_part_of(e, DSA_MICRO, is->main, is->bytes ? 1 : entry);
}
static const tarn_hw_instruction *list_mover(const tarn_hw *hw, uint32_t memory) {
  const tarn_hw_instruction *is = NULL;
  for (uint32_t t = 0; t < hw->ntransfer && !is; t++)
    if (hw->transfer[t].to == memory) is = tarn_hw_mover(hw, t, NULL);
  return is;
}
/* Lists that follow one another in the image, at once. */
static void load_lists(dsa_emitter *e, uint32_t memory, dsa_list *l, uint32_t count, int64_t n) {
  const tarn_hw *hw = e->hw;
  const tarn_hw_instruction *is = list_mover(hw, memory);
  if (!is)
    tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s: no instruction fills %s", hw->name,
               hw->mem[memory].name);
  if (e->used + n > tarn_hw_depth(&hw->mem[memory])) {
    for (uint32_t i = 0; i < e->list.n; i++) e->list.p[i].here = false;
    e->used = 0;
  }
  int64_t at = e->used;
  for (uint32_t i = 0; i < count; i++) {
    l[i].at = e->used;
    l[i].here = true;
    e->used += l[i].n;
  }
  bool blocks = is->block != TARN_NONE && !tarn_hw_has(tarn_hw_range_of(hw, is, is->block, 1), 1);
  int64_t row = blocks ? 1 : tarn_unit_longest_row(hw, is->transfer);
  for (int64_t i = 0; i < n; i += row)
    load_row(e, is, (dsa_access){memory, at + i, tarn_min(row, n - i), true}, l->image + i);
}
/* The list with these bytes, in its memory. */
static const dsa_list *list_of(dsa_emitter *e, uint32_t memory, const uint8_t *bits, int64_t n) {
  int64_t entry = e->hw->mem[memory].entry;
  uint64_t h = tarn_hash_bytes(bits, (size_t)(n * entry), 1);
  dsa_list *l = NULL;
  for (uint32_t i = 0; i < e->list.n && !l; i++) {
    dsa_list *k = &e->list.p[i];
    if (k->hash == h && k->n == n &&
        !memcmp(e->image->micro.p + k->image * entry, bits, (size_t)(n * entry)))
      l = k;
  }
  if (!l) {
    dsa_list made = {.hash = h, .n = n, .image = (int64_t)e->image->micro.n / entry};
    tarn_buf_add(&e->image->micro, (const char *)bits, (size_t)(n * entry));
    tarn_push(e->s->cx, &e->list, made);
    l = &e->list.p[e->list.n - 1];
  }
  if (!l->here && !e->collects) load_lists(e, memory, l, 1, l->n);
  return l;
}

/* ---------------------------------------------------------------- issues */
typedef struct run {
  dsa_emitter *e;
  const tarn_unit_plan *p;
  const tarn_unit_stmt *s;
  const tarn_hw_instruction *is;
  bool clears;
  int64_t at[TARN_UNIT_OPERANDS]; /* entries: of each operand */
} run;
/* Adds trip number `n` of the walks, the last of them fastest. */
static void walk_to(const run *r, const uint32_t *walks, uint32_t count, int64_t n, int64_t *at) {
  for (uint32_t i = count; i-- > 0;) {
    const tarn_unit_walk *w = &r->s->issue.walk[walks[i]];
    for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++) at[k] += n % w->trips * w->step[k];
    n /= w->trips;
  }
}
static bool reads_operand(const run *r, uint32_t operand) {
  uint32_t result = r->e->hw->intrin[r->s->intrinsic].nop - 1u;
  return operand == result || !r->clears;
}
/* Operands that a field of the micro-ops names together lie in one place. */
static void one_number_each(const run *r) {
  const tarn_hw_instruction *x = r->is;
  for (uint32_t a = 0; a < x->nindex; a++)
    for (uint32_t b = 0; b < a; b++) {
      uint32_t o = x->index[a].operand;
      uint32_t p = x->index[b].operand;
      if (x->index[a].field != x->index[b].field || r->at[o] == r->at[p]) continue;
      if (!reads_operand(r, o) || !reads_operand(r, p)) continue;
      tarn_raise(r->e->s->cx, TARN_BAD_INPUT,
                 "%s: instruction %s: field %s has %lld, and should have %lld", r->e->hw->name,
                 x->name, r->e->hw->format[x->step].field[x->index[a].field].name,
                 (long long)r->at[p], (long long)r->at[o]);
    }
}
static const dsa_list *micro_ops(const run *r) {
  const tarn_unit_issue *i = &r->s->issue;
  const tarn_hw *hw = r->e->hw;
  const tarn_hw_format *f = &hw->format[r->is->step];
  int64_t entry = hw->mem[r->is->steps].entry;
  one_number_each(r);
  uint8_t *bits = tarn_new(r->e->s->cx, (size_t)(i->micro * entry));
  for (int64_t n = 0; n < i->micro; n++) {
    int64_t at[TARN_UNIT_OPERANDS];
    memcpy(at, r->at, sizeof at);
    walk_to(r, i->order, i->nmicro, n, at);
    for (uint32_t k = 0; k < r->is->nindex; k++)
      if (reads_operand(r, r->is->index[k].operand))
        dsa_put(f, bits + n * entry, r->is->index[k].field, at[r->is->index[k].operand]);
  }
  return list_of(r->e, r->is->steps, bits, i->micro);
}
/* Entries of an operand of an intrinsic. */
static int64_t span_of(const tarn_hw *hw, uint32_t memory, const tarn_hw_operand *o) {
  return tarn_ceildiv(tarn_hw_operand_bytes(o), hw->mem[memory].entry);
}
/* Entries of all operands, from the first to the last that is touched. */
static uint32_t touched(const run *r, dsa_access *a) {
  const tarn_hw_intrinsic *x = &r->e->hw->intrin[r->s->intrinsic];
  uint32_t n = 0;
  for (uint32_t k = 0; k < x->nop; k++) {
    uint32_t t = r->s->operand[k];
    if (t == TARN_NONE || !reads_operand(r, k)) continue;
    int64_t last = r->at[k] + span_of(r->e->hw, r->p->tensor[t].memory, &x->op[k]) - 1;
    for (uint32_t w = 0; w < r->s->issue.nwalk; w++) {
      const tarn_unit_walk *v = &r->s->issue.walk[w];
      if (r->s->issue.by[w] != TARN_UNIT_APART) last += (v->trips - 1) * v->step[k];
    }
    a[n++] = (dsa_access){r->p->tensor[t].memory, r->at[k], last - r->at[k] + 1, k + 1 == x->nop};
  }
  return n;
}
/* Loop k of the instruction, and what each operand goes along it. */
static void set_loop(const run *r, uint32_t k) {
  const tarn_unit_issue *i = &r->s->issue;
  const tarn_hw_instruction *is = r->is;
  const tarn_unit_walk *w = NULL;
  for (uint32_t n = 0; n < i->nwalk; n++)
    if (i->by[n] == TARN_UNIT_LOOP && i->loop[n] == k) w = &i->walk[n];
  dsa_set(r->e, is->loop[k], w ? w->trips : 1);
  for (uint32_t n = 0; w && n < is->nindex; n++)
    if (reads_operand(r, is->index[n].operand))
      dsa_set(r->e, is->index[n].factor[k], w->step[is->index[n].operand]);
}
static void instruction(const run *r, int64_t immediate, bool accumulates) {
  dsa_emitter *e = r->e;
  const tarn_hw_instruction *is = r->is;
  if (e->collects) {
    if (is->steps != TARN_NONE) micro_ops(r);
    return;
  }
  dsa_access a[TARN_UNIT_OPERANDS + 1];
  uint32_t n = touched(r, a);
  const dsa_list *l = is->steps != TARN_NONE ? micro_ops(r) : NULL;
  dsa_instruct(e, is);
  for (uint32_t k = 0; k < is->nloop; k++) set_loop(r, k);
  if (l) {
    dsa_set(e, is->begin, l->at);
    dsa_set(e, is->end, l->at + l->n);
    a[n++] = (dsa_access){is->steps, l->at, l->n, false};
  }
  for (uint32_t k = 0; k < is->nindex && !l; k++)
    if (reads_operand(r, is->index[k].operand))
      dsa_set(e, is->index[k].field, r->at[is->index[k].operand]);
  dsa_set(e, is->immediate, immediate);
  dsa_set(e, is->clear, r->clears);
  dsa_set(e, is->accumulate, accumulates);
  dsa_emit(e, a, n);
}
/* Trip number `n` of these walks is the first of all that sum. */
static bool begins(const tarn_unit_stmt *s, const uint32_t *walks, uint32_t count, int64_t n) {
  bool first = true;
  for (uint32_t i = count; i-- > 0; n /= s->issue.walk[walks[i]].trips)
    if (s->issue.walk[walks[i]].sums) first = first && n % s->issue.walk[walks[i]].trips == 0;
  return first;
}
static void issue(dsa_emitter *e, const tarn_unit_plan *p, const tarn_unit_stmt *s) {
  run r = {.e = e, .p = p, .s = s, .clears = s->does == TARN_UNIT_CLEAR};
  int64_t start[TARN_UNIT_OPERANDS] = {0};
  uint32_t apart[TARN_MAX_DIMS];
  uint32_t n = 0;
  for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++) {
    uint32_t t = s->operand[k];
    if (t != TARN_NONE) start[k] = e->at.first[t] + s->slot[t] * e->at.entries[t] + s->first[k];
  }
  for (uint32_t w = 0; w < s->issue.nwalk; w++)
    if (s->issue.by[w] == TARN_UNIT_APART) apart[n++] = w;
  for (int64_t i = 0; i < s->issue.instructions; i++) {
    memcpy(r.at, start, sizeof start);
    walk_to(&r, apart, n, i, r.at);
    bool begin = s->begins && begins(s, apart, n, i);
    r.is = s->issue.is[begin];
    instruction(&r, s->immediate, !begin);
  }
}
static bool statement(void *user, const tarn_unit_plan *p, const tarn_unit_stmt *s) {
  dsa_emitter *e = user;
  bool moves = s->does == TARN_UNIT_FILL || s->does == TARN_UNIT_LEAVE;
  if (!moves) issue(e, p, s);
  else if (!e->collects) transfers(e, p, s);
  return true;
}
static bool visit(dsa_emitter *e, const tarn_unit_plan *p, bool collects) {
  e->collects = collects;
  return tarn_unit_visit(p, statement, e);
}
/* A kernel's lists of micro-ops, before all else: those that no kernel before it had. */
static bool load_early(dsa_emitter *e, const tarn_unit_plan *p) {
  uint32_t before = e->list.n;
  uint32_t memory = TARN_NONE;
  int64_t n = 0;
  bool first;
  if (!tarn_unit_micro_first(p, &first, &n)) return false;
  if (!first) return true;
  if (!visit(e, p, true)) return false;
  for (uint32_t i = 0; i < e->hw->ninstruction; i++)
    if (e->hw->instruction[i].does == TARN_HW_RUNS && e->hw->instruction[i].steps != TARN_NONE)
      memory = e->hw->instruction[i].steps;
  n = 0;
  for (uint32_t i = before; i < e->list.n; i++) n += e->list.p[i].n;
  if (n) load_lists(e, memory, &e->list.p[before], e->list.n - before, n);
  return true;
}

void dsa_begin(dsa_emitter *e) {
  for (uint32_t i = 0; i < e->list.n; i++) e->list.p[i].here = false;
  e->used = 0;
  e->reg = TARN_ARRAY(e->s->cx, dsa_register, e->hw->nregister + 1);
  e->need = TARN_ARRAY(e->s->cx, int64_t, e->hw->nregister + 1);
  e->needs = TARN_ARRAY(e->s->cx, bool, e->hw->nregister + 1);
}
static const tarn_unit_plan *plan_of(const dsa_image *m, uint32_t kernel) {
  return m->p->ker[kernel].plan->unit;
}
void dsa_places(const dsa_image *m, uint32_t kernel, tarn_json *j) {
  const tarn_unit_plan *p = plan_of(m, kernel);
  tarn_unit_place at;
  tarn_unit_places(p, &at);
  for (uint32_t t = 0; t < p->ntensor; t++) {
    const tarn_unit_tensor *x = &p->tensor[t];
    tarn_buf name = {.cx = m->cx};
    bool result = t == p->result &&
                  (m->hw->mem[x->memory].shadow_of || x->memory == p->tensor[p->sums].memory);
    if (result || x->what == TARN_UNIT_ONTO) continue; /* they lie where the sums do */
    tarn_unit_name(p, t, &name);
    tarn_json_object(j, NULL, "name", name.p, "memory", m->hw->mem[x->memory].name, "first",
                     at.first[t], "entries", at.entries[t], "slots", x->slots);
  }
}
void dsa_kernel(dsa_emitter *e, uint32_t kernel) {
  const tarn_kernel *k = &e->image->p->ker[kernel];
  const tarn_unit_plan *p = plan_of(e->image, kernel);
  e->kernel = kernel;
  tarn_unit_places(p, &e->at);
  if (!load_early(e, p) || !visit(e, p, false))
    tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s: no instruction of %s moves or computes a tile",
               k->name, e->hw->name);
}
