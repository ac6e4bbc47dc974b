/* Statements of a kernel's loop program as instructions of the machine. */
#include "lower/dsa/dsa.h"
#include <string.h>

/* Fields of the next instruction; it needs no registers yet. */
static int64_t *fields(dsa_emitter *e, const tarn_hw_instruction *is) {
  memset(e->needs, 0, e->hw->nregister * sizeof *e->needs);
  return TARN_ARRAY(e->s->cx, int64_t, e->hw->format[is->format].nfield + 1);
}
/* A number where the instruction has it: in a field, or in a register. */
static void set(dsa_emitter *e, int64_t *field, uint32_t place, int64_t v) {
  if (place == TARN_NONE) return;
  if (!tarn_hw_is_register(place)) {
    field[place] = v;
    return;
  }
  e->need[place & ~TARN_HW_REGISTER] = v;
  e->needs[place & ~TARN_HW_REGISTER] = true;
}
static bool lacks(const dsa_emitter *e, uint32_t reg) {
  return e->needs[reg] && (!e->known[reg] || e->reg[reg] != e->need[reg]);
}
/* Registers that an instruction sets: what is needed, and otherwise what they hold. */
static void set_registers(dsa_emitter *e, const tarn_hw_instruction *is) {
  int64_t *f = TARN_ARRAY(e->s->cx, int64_t, e->hw->format[is->format].nfield + 1);
  for (uint32_t i = 0; i < is->nset; i++) {
    uint32_t reg = is->set[i].reg;
    if (e->needs[reg]) e->reg[reg] = e->need[reg];
    e->known[reg] = true;
    f[is->set[i].field] = e->reg[reg];
  }
  dsa_append(e->s, is, f, NULL, 0);
}
/* An instruction, after those that set its registers. */
static void append(dsa_emitter *e, const tarn_hw_instruction *is, int64_t *field,
                   const dsa_access *a, uint32_t n) {
  for (uint32_t i = 0; i < is->nis; i++)
    if (tarn_hw_is_register(is->is[i].field)) set(e, field, is->is[i].field, is->is[i].value);
  for (uint32_t i = 0; i < e->hw->ninstruction; i++) {
    const tarn_hw_instruction *x = &e->hw->instruction[i];
    bool helps = false;
    for (uint32_t k = 0; k < x->nset && x->does == TARN_HW_SETS; k++)
      helps |= lacks(e, x->set[k].reg);
    if (helps) set_registers(e, x);
  }
  for (uint32_t r = 0; r < e->hw->nregister; r++)
    if (lacks(e, r))
      tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s: no instruction sets register %s", e->hw->name,
                 e->hw->reg[r].name);
  dsa_append(e->s, is, field, a, n);
}
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
static void note(dsa_emitter *e, dsa_part part) {
  tarn_push(e->s->cx, &e->image->fixup, ((dsa_fixup){e->s->x.n - 1, part}));
}
/* What a register holds, where any number will do. */
static int64_t held(const dsa_emitter *e, uint32_t place) {
  return tarn_hw_is_register(place) ? e->reg[place & ~TARN_HW_REGISTER] : 0;
}
static void move(void *user, const tarn_unit_move *m) {
  transfer *t = user;
  dsa_emitter *e = t->e;
  const tarn_unit_tensor *x = &t->p->tensor[t->tensor];
  const tarn_hw_instruction *is = tarn_hw_mover(e->hw, x->transfer);
  int64_t entry = tarn_hw_transfer_bytes(e->hw, &e->hw->transfer[x->transfer]);
  bool constant = t->constant || m->zeros;
  int64_t *f = fields(e, is);
  uint32_t of = x->what == TARN_UNIT_ONTO ? t->p->sums : t->tensor; /* whose places it has */
  int64_t at = e->first[of] + t->slot * e->entries[of] + t->first + m->local;
  int64_t main = m->zeros ? dsa_zeros(e->image, m->entries * entry) : t->base + m->main * entry;
  int64_t size = (m->rows + m->pad[0] + m->pad[1]) * (m->entries + m->pad[2] + m->pad[3]);
  if (m->block) size = (m->entries - 1) * m->block + m->rows;
  dsa_access *a = TARN_ARRAY(e->s->cx, dsa_access, m->rows + 1);
  uint32_t n = 0;
  a[n++] = (dsa_access){real_memory(e->hw, x->memory), at, size, !t->leaves};
  for (int64_t r = 0; r < m->rows && !constant; r++)
    a[n++] =
        (dsa_access){e->hw->nmem - 1, main + r * m->stride * entry, m->entries * entry, t->leaves};
  set(e, f, is->local, at);
  set(e, f, is->main, is->bytes ? main : main / entry);
  set(e, f, is->rows, m->rows);
  set(e, f, is->entries, m->entries * is->units);
  set(e, f, is->stride, is->stride_bytes ? m->stride * entry : m->stride);
  set(e, f, is->block, m->block ? m->block : held(e, is->block));
  if (t->leaves) set(e, f, is->immediate, t->p->store_immediate);
  for (uint32_t i = 0; i < 4; i++) set(e, f, is->pad[i], m->pad[i]);
  append(e, is, f, a, n);
  if (constant) note(e, DSA_CONSTANTS);
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
  if (!tarn_hw_mover(e->hw, x->transfer))
    tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s has no instruction for transfer %s", e->hw->name,
               e->hw->transfer[x->transfer].name);
  tarn_unit_moves(p, x, s->box, move, &t);
}

/* ---------------------------------------------------------------- micro-ops */
/* Lists that follow one another in the image, at once. */
static void load_lists(dsa_emitter *e, uint32_t memory, dsa_list *l, uint32_t count, int64_t n) {
  const tarn_hw *hw = e->hw;
  uint32_t from = 0;
  while (from < hw->ntransfer && hw->transfer[from].to != memory) from++;
  const tarn_hw_instruction *is = from < hw->ntransfer ? tarn_hw_mover(hw, from) : NULL;
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
  int64_t *f = fields(e, is);
  int64_t main = l->image * hw->mem[memory].entry;
  set(e, f, is->local, at);
  set(e, f, is->main, is->bytes ? main : l->image);
  set(e, f, is->rows, 1);
  set(e, f, is->entries, n);
  set(e, f, is->stride, is->stride == TARN_NONE ? 0 : 1);
  append(e, is, f, &(dsa_access){memory, at, n, true}, 1);
  note(e, DSA_MICRO);
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
static const dsa_list *micro_ops(const run *r) {
  const tarn_unit_issue *i = &r->s->issue;
  const tarn_hw *hw = r->e->hw;
  const tarn_hw_format *f = &hw->format[r->is->step];
  int64_t entry = hw->mem[r->is->steps].entry;
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
static void instruction(const run *r, int64_t immediate, bool accumulates) {
  dsa_emitter *e = r->e;
  const tarn_hw_instruction *is = r->is;
  const tarn_unit_issue *i = &r->s->issue;
  if (e->collects) {
    if (is->steps != TARN_NONE) micro_ops(r);
    return;
  }
  int64_t *f = fields(e, is);
  dsa_access a[TARN_UNIT_OPERANDS + 1];
  uint32_t n = touched(r, a);
  for (uint32_t k = 0; k < is->nloop; k++) set(e, f, is->loop[k], 1);
  for (uint32_t w = 0; w < i->nwalk; w++) {
    if (i->by[w] != TARN_UNIT_LOOP) continue;
    set(e, f, is->loop[i->loop[w]], i->walk[w].trips);
    for (uint32_t k = 0; k < is->nindex; k++)
      if (reads_operand(r, is->index[k].operand))
        f[is->index[k].factor[i->loop[w]]] = i->walk[w].step[is->index[k].operand];
  }
  if (is->steps != TARN_NONE) {
    const dsa_list *l = micro_ops(r);
    set(e, f, is->begin, l->at);
    set(e, f, is->end, l->at + l->n);
    a[n++] = (dsa_access){is->steps, l->at, l->n, false};
  }
  for (uint32_t k = 0; k < is->nindex && is->steps == TARN_NONE; k++)
    set(e, f, is->index[k].field, r->at[is->index[k].operand]);
  set(e, f, is->immediate, immediate);
  set(e, f, is->clear, r->clears);
  set(e, f, is->accumulate, accumulates);
  append(e, is, f, a, n);
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
  r.is = tarn_hw_runner(e->hw, s->intrinsic, r.clears);
  if (!r.is)
    tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s has no instruction for %s", e->hw->name,
               e->hw->intrin[s->intrinsic].name);
  for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++) {
    uint32_t t = s->operand[k];
    if (t != TARN_NONE) start[k] = e->first[t] + s->slot[t] * e->entries[t] + s->first[k];
  }
  for (uint32_t w = 0; w < s->issue.nwalk; w++)
    if (s->issue.by[w] == TARN_UNIT_APART) apart[n++] = w;
  for (int64_t i = 0; i < s->issue.instructions; i++) {
    memcpy(r.at, start, sizeof start);
    walk_to(&r, apart, n, i, r.at);
    instruction(&r, s->immediate, !s->begins || !begins(s, apart, n, i));
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
  e->reg = TARN_ARRAY(e->s->cx, int64_t, e->hw->nregister + 1);
  e->need = TARN_ARRAY(e->s->cx, int64_t, e->hw->nregister + 1);
  e->known = TARN_ARRAY(e->s->cx, bool, e->hw->nregister + 1);
  e->needs = TARN_ARRAY(e->s->cx, bool, e->hw->nregister + 1);
}
static const tarn_unit_plan *plan_of(const dsa_image *m, uint32_t kernel) {
  return m->p->ker[kernel].plan->unit;
}
void dsa_places(const dsa_image *m, uint32_t kernel, tarn_json *j) {
  const tarn_unit_plan *p = plan_of(m, kernel);
  int64_t entries[TARN_UNIT_TENSORS];
  int64_t first[TARN_UNIT_TENSORS];
  uint32_t memory;
  int64_t needs;
  tarn_unit_places(p, entries, first, &memory, &needs);
  for (uint32_t t = 0; t < p->ntensor; t++) {
    const tarn_unit_tensor *x = &p->tensor[t];
    tarn_buf name = {.cx = m->cx};
    bool result = t == p->result &&
                  (m->hw->mem[x->memory].shadow_of || x->memory == p->tensor[p->sums].memory);
    if (result || x->what == TARN_UNIT_ONTO) continue; /* they lie where the sums do */
    tarn_unit_name(p, t, &name);
    tarn_json_open(j, NULL, '{');
    tarn_json_str(j, "name", name.p);
    tarn_json_str(j, "memory", m->hw->mem[x->memory].name);
    tarn_json_int(j, "first", first[t]);
    tarn_json_int(j, "entries", entries[t]);
    tarn_json_int(j, "slots", x->slots);
    tarn_json_close(j, '}');
  }
}
void dsa_kernel(dsa_emitter *e, uint32_t kernel) {
  const tarn_kernel *k = &e->image->p->ker[kernel];
  const tarn_unit_plan *p = plan_of(e->image, kernel);
  uint32_t memory;
  int64_t needs;
  e->kernel = kernel;
  tarn_unit_places(p, e->entries, e->first, &memory, &needs);
  if (!load_early(e, p) || !visit(e, p, false))
    tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s: no instruction of %s moves or computes a tile",
               k->name, e->hw->name);
}
