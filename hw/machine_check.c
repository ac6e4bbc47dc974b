/* Is the described accelerator possible?  Every refusal is one line with its place and numbers. */
#include "hw/internal.h"
#include <string.h>

typedef struct checking {
  hw_reader *r;
  const tarn_sx *s; /* the whole description */
  const tarn_hw *h;
} checking;

/* ---------------------------------------------------------------- memories and operands */
static uint32_t memory_of(const tarn_hw *h, const tarn_hw_operand *o) {
  for (uint32_t i = 0; i < h->nmem; i++)
    if (!strcmp(h->mem[i].name, o->memory)) return i;
  return TARN_NONE;
}
static const tarn_sx *form_of(const checking *c, const char *kind, const char *name) {
  for (uint32_t i = 2; i < c->s->n; i++)
    if (tarn_sx_is(c->s->kid[i], kind) && c->s->kid[i]->n > 1 &&
        !strcmp(c->s->kid[i]->kid[1]->text, name))
      return c->s->kid[i];
  return c->s;
}

static void check_memory(const checking *c, const tarn_hw_memory *m) {
  const tarn_sx *at = form_of(c, "memory", m->name);
  if (m->capacity % m->entry)
    tarn_sx_error(c->r->cx, at, "memory %s: capacity %lld is no multiple of its entry, %u bytes",
                  m->name, (long long)m->capacity, m->entry);
  if (!m->shadow_of) return;
  const tarn_hw_memory *of = tarn_hw_memory_find(c->h, m->shadow_of);
  if (of->entry > 1 && m->entry > 1 && tarn_hw_depth(of) != tarn_hw_depth(m))
    tarn_sx_error(c->r->cx, at, "memory %s has %lld entries, %s, which it shadows, has %lld",
                  m->name, (long long)tarn_hw_depth(m), of->name, (long long)tarn_hw_depth(of));
}
static void check_operand(const checking *c, const tarn_hw_intrinsic *n, const tarn_hw_operand *o) {
  uint32_t k = memory_of(c->h, o);
  if (k == TARN_NONE) return;
  const tarn_hw_memory *m = &c->h->mem[k];
  int64_t bytes = tarn_hw_operand_bytes(o);
  if (m->capacity && bytes > m->capacity)
    tarn_sx_error(c->r->cx, n->source,
                  "intrinsic %s: operand %s has %lld bytes, its memory %s has %lld", n->name,
                  o->name, (long long)bytes, m->name, (long long)m->capacity);
}

/* ---------------------------------------------------------------- paths */
/* Memories reached from `from` by transfers and intrinsics, forwards or backwards: a set. */
static uint64_t step(const tarn_hw *h, uint64_t set, bool forwards) {
  for (uint32_t i = 0; i < h->ntransfer; i++) {
    uint32_t a = h->transfer[i].from, b = h->transfer[i].to;
    if (set >> (forwards ? a : b) & 1) set |= (uint64_t)1 << (forwards ? b : a);
  }
  for (uint32_t i = 0; i < h->nintrin; i++)
    for (uint32_t k = 0; k + 1 < h->intrin[i].nop; k++) {
      uint32_t a = memory_of(h, &h->intrin[i].op[k]);
      uint32_t b = memory_of(h, &h->intrin[i].op[h->intrin[i].nop - 1]);
      if (a == TARN_NONE || b == TARN_NONE) continue;
      if (set >> (forwards ? a : b) & 1) set |= (uint64_t)1 << (forwards ? b : a);
    }
  return set;
}
static uint64_t reached(const tarn_hw *h, bool forwards) {
  uint64_t set = (uint64_t)1 << (h->nmem - 1), before = 0;
  while (set != before) before = set, set = step(h, set, forwards);
  return set;
}
static void check_paths(const checking *c) {
  const tarn_hw *h = c->h;
  if (!h->ntransfer && !h->ninstruction) return;
  uint64_t in = reached(h, true), out = reached(h, false);
  for (uint32_t i = 0; i < h->nintrin; i++)
    for (uint32_t k = 0; k < h->intrin[i].nop; k++) {
      const tarn_hw_operand *o = &h->intrin[i].op[k];
      bool result = k + 1 == h->intrin[i].nop;
      uint32_t m = memory_of(h, o);
      if (m == TARN_NONE || ((result ? out : in) >> m & 1)) continue;
      tarn_sx_error(c->r->cx, h->intrin[i].source,
                    "intrinsic %s: operand %s: no path %s its memory %s %s %s", h->intrin[i].name,
                    o->name, result ? "from" : "to", o->memory, result ? "to" : "from",
                    h->mem[h->nmem - 1].name);
    }
}
/* An operand that goes through, and immediates; the result, which on the way in may be read too. */
static void check_on_the_way(const checking *c, const tarn_sx *at, const tarn_hw_transfer *t) {
  const tarn_hw *h = c->h;
  bool out = t->to == h->nmem - 1;
  const tarn_hw_memory *local = &h->mem[out ? t->from : t->to];
  const tarn_hw_memory *of = local->shadow_of ? tarn_hw_memory_find(h, local->shadow_of) : local;
  const tarn_hw_intrinsic *n = &h->intrin[t->intrinsic];
  uint32_t moved = 0, k = TARN_NONE;
  for (uint32_t i = 0; i + 1 < n->nop; i++)
    if (!n->op[i].immediate) moved++, k = i;
  const tarn_hw_operand *near = out ? k == TARN_NONE ? NULL : &n->op[k] : &n->op[n->nop - 1];
  if (moved != 1 || strcmp(near->memory, of->name))
    tarn_sx_error(c->r->cx, at, "transfer %s: intrinsic %s: %s in %s is expected", t->name, n->name,
                  out ? "on the way out, one operand" : "on the way in, one operand, and a result",
                  of->name);
  if (tarn_hw_operand_bytes(near) != of->entry)
    tarn_sx_error(c->r->cx, at, "transfer %s: intrinsic %s %s %lld bytes, an entry of %s has %u",
                  t->name, n->name, out ? "takes" : "gives", (long long)tarn_hw_operand_bytes(near),
                  of->name, of->entry);
  if (local != of && tarn_hw_transfer_bytes(h, t) != local->entry)
    tarn_sx_error(c->r->cx, at, "transfer %s: intrinsic %s gives %lld bytes, an entry of %s has %u",
                  t->name, n->name, (long long)tarn_hw_transfer_bytes(h, t), local->name,
                  local->entry);
}
static void check_transfer(const checking *c, const tarn_hw_transfer *t) {
  const tarn_hw *h = c->h;
  const tarn_sx *at = form_of(c, "transfer", t->name);
  uint32_t last = h->nmem - 1;
  if ((t->from == last) == (t->to == last))
    tarn_sx_error(c->r->cx, at, "transfer %s: one side, and one only, is the last memory, %s",
                  t->name, h->mem[last].name);
  if (t->rank > 2)
    tarn_sx_error(c->r->cx, at, "transfer %s: rank %u: 1 (a row) or 2 (rows) is expected", t->name,
                  t->rank);
  if (t->intrinsic != TARN_NONE) check_on_the_way(c, at, t);
  if (t->row_bytes && t->row_bytes < tarn_hw_transfer_bytes(h, t))
    tarn_sx_error(c->r->cx, at, "transfer %s: a row of %lld bytes, an entry has %lld", t->name,
                  (long long)t->row_bytes, (long long)tarn_hw_transfer_bytes(h, t));
}

/* ---------------------------------------------------------------- instructions */
static void holds(const checking *c, const tarn_hw_instruction *x, const tarn_hw_format *f,
                  uint32_t field, int64_t most, const char *of) {
  if (field == TARN_NONE) return;
  uint32_t bits = tarn_hw_place_bits(c->h, f, field);
  bool reg = tarn_hw_is_register(field);
  if (bits < 62 && most >> bits)
    tarn_sx_error(c->r->cx, x->source,
                  "instruction %s: %s %s has %u bits, too narrow for %lld, of %s", x->name,
                  reg ? "register" : "field",
                  reg ? c->h->reg[field & ~TARN_HW_REGISTER].name : f->field[field].name,
                  reg ? bits : f->field[field].width, (long long)most, of);
}
static void check_index(const checking *c, const tarn_hw_instruction *x, const tarn_hw_index *k) {
  const tarn_hw_intrinsic *n = &c->h->intrin[x->intrinsic];
  const tarn_hw_operand *o = &n->op[k->operand];
  uint32_t m = memory_of(c->h, o);
  if (m == TARN_NONE || m == c->h->nmem - 1)
    tarn_sx_error(c->r->cx, x->source, "instruction %s: operand %s lives in no memory of entries",
                  x->name, o->name);
  const tarn_hw_memory *mem = &c->h->mem[m];
  if (tarn_hw_operand_bytes(o) % mem->entry)
    tarn_sx_error(c->r->cx, x->source,
                  "instruction %s: operand %s has %lld bytes, an entry of %s has %u", x->name,
                  o->name, (long long)tarn_hw_operand_bytes(o), mem->name, mem->entry);
  uint32_t format = x->step == TARN_NONE ? x->format : x->step;
  holds(c, x, &c->h->format[format], k->field, tarn_hw_depth(mem) - 1, mem->name);
  for (uint32_t i = 0; i < x->nloop; i++)
    holds(c, x, &c->h->format[x->format], k->factor[i], tarn_hw_depth(mem) - 1, mem->name);
}
static void check_steps(const checking *c, const tarn_hw_instruction *x) {
  const tarn_hw_memory *m = &c->h->mem[x->steps];
  const tarn_hw_format *f = &c->h->format[x->format], *step = &c->h->format[x->step];
  if (step->bits != m->entry * 8 || x->steps == c->h->nmem - 1)
    tarn_sx_error(c->r->cx, x->source,
                  "instruction %s: a micro-op has %u bits, an entry of %s has %u bytes", x->name,
                  step->bits, m->name, m->entry);
  holds(c, x, f, x->begin, tarn_hw_depth(m) - 1, m->name);
  holds(c, x, f, x->end, tarn_hw_depth(m), m->name);
}
static void check_runs(const checking *c, const tarn_hw_instruction *x) {
  const tarn_hw_intrinsic *n = &c->h->intrin[x->intrinsic];
  if (x->steps != TARN_NONE) check_steps(c, x);
  for (uint32_t o = 0; o < n->nop; o++) {
    uint32_t times = 0;
    for (uint32_t i = 0; i < x->nindex; i++) times += x->index[i].operand == o;
    if (n->op[o].immediate ? x->immediate == TARN_NONE : times != 1)
      tarn_sx_error(c->r->cx, x->source, "instruction %s: %s operand %s of intrinsic %s", x->name,
                    times > 1 ? "more than one (index …) of" : "nothing tells where it has",
                    n->op[o].name, n->name);
  }
  for (uint32_t i = 0; i < x->nindex; i++) check_index(c, x, &x->index[i]);
}
static void check_move_immediate(const checking *c, const tarn_hw_instruction *x,
                                 const tarn_hw_transfer *t) {
  if (t->intrinsic == TARN_NONE || x->immediate != TARN_NONE) return;
  const tarn_hw_intrinsic *n = &c->h->intrin[t->intrinsic];
  for (uint32_t o = 0; o < n->nop; o++)
    if (n->op[o].immediate)
      tarn_sx_error(c->r->cx, x->source,
                    "instruction %s: nothing tells where it has operand %s of intrinsic %s",
                    x->name, n->op[o].name, n->name);
}
static void check_moves(const checking *c, const tarn_hw_instruction *x) {
  const tarn_hw *h = c->h;
  const tarn_hw_transfer *t = &h->transfer[x->transfer];
  const tarn_hw_memory *m = &h->mem[t->from == h->nmem - 1 ? t->to : t->from];
  holds(c, x, &h->format[x->format], x->local, tarn_hw_depth(m) - 1, m->name);
  int64_t each = x->stride_bytes ? tarn_hw_transfer_bytes(h, t) : 1;
  holds(c, x, &h->format[x->format], x->stride, t->stride * each, t->name);
  check_move_immediate(c, x, t);
  for (uint32_t i = 0; i < 4; i++) holds(c, x, &h->format[x->format], x->pad[i], t->pad, t->name);
  if (t->rank == 2 && (x->rows == TARN_NONE || x->stride == TARN_NONE))
    tarn_sx_error(c->r->cx, x->source, "instruction %s: (rows FIELD) and (stride FIELD) of %s",
                  x->name, t->name);
  if (t->rank == 1 && (x->rows != TARN_NONE || x->stride != TARN_NONE))
    tarn_sx_error(c->r->cx, x->source, "instruction %s: %s has one row alone", x->name, t->name);
  if (x->pad[0] != TARN_NONE &&
      (t->to == h->nmem - 1 || t->intrinsic != TARN_NONE || x->block != TARN_NONE))
    tarn_sx_error(
        c->r->cx, x->source,
        "instruction %s: %s goes out, computes or has a (block-stride …), without padding", x->name,
        t->name);
}
/* Some field, at the same bits, must differ. */
static bool differ(const tarn_hw *h, const tarn_hw_instruction *x, const tarn_hw_instruction *y) {
  for (uint32_t i = 0; i < x->nis; i++)
    for (uint32_t k = 0; k < y->nis; k++) {
      bool reg = tarn_hw_is_register(x->is[i].field);
      if (x->is[i].value == y->is[k].value || reg != tarn_hw_is_register(y->is[k].field)) continue;
      if (reg && x->is[i].field == y->is[k].field) return true;
      if (reg) continue;
      const tarn_hw_field *a = &h->format[x->format].field[x->is[i].field];
      const tarn_hw_field *b = &h->format[y->format].field[y->is[k].field];
      if (a->at == b->at && a->width == b->width) return true;
    }
  return false;
}
static void check_instruction(const checking *c, uint32_t i) {
  const tarn_hw *h = c->h;
  const tarn_hw_instruction *x = &h->instruction[i];
  for (uint32_t k = 0; k < i; k++) {
    const tarn_hw_instruction *y = &h->instruction[k];
    if (h->format[x->format].bits != h->format[y->format].bits)
      tarn_sx_error(c->r->cx, x->source, "instruction %s has %u bits, %s has %u", x->name,
                    h->format[x->format].bits, y->name, h->format[y->format].bits);
    if (!differ(h, x, y))
      tarn_sx_error(c->r->cx, x->source, "no (is FIELD VALUE) tells instruction %s from %s",
                    x->name, y->name);
  }
  if (x->does == TARN_HW_RUNS) check_runs(c, x);
  if (x->does == TARN_HW_MOVES) check_moves(c, x);
  hw_check_places(c->r, h, x);
}
static void check_token(const checking *c, uint32_t t) {
  bool popped = false, pushed = false;
  for (uint32_t i = 0; i < c->h->ninstruction; i++) {
    const tarn_hw_instruction *x = &c->h->instruction[i];
    for (uint32_t k = 0; k < x->npop; k++) popped |= x->pop[k].token == t;
    for (uint32_t k = 0; k < x->npush; k++) pushed |= x->push[k].token == t;
  }
  if (popped && pushed) return;
  const char *name = c->h->token[t].name;
  tarn_sx_error(c->r->cx, form_of(c, "token", name), "token %s: no instruction %s it", name,
                popped ? "pushes" : "pops");
}

void hw_check_machine(hw_reader *r, const tarn_sx *s, const tarn_hw *h) {
  checking c = {r, s, h};
  if (h->nmem > 60) tarn_sx_error(r->cx, s, "%s: more than 60 memories", h->name);
  for (uint32_t i = 0; i < h->nmem; i++) check_memory(&c, &h->mem[i]);
  for (uint32_t i = 0; i < h->nintrin; i++)
    for (uint32_t k = 0; k < h->intrin[i].nop; k++)
      check_operand(&c, &h->intrin[i], &h->intrin[i].op[k]);
  for (uint32_t i = 0; i < h->ntransfer; i++) check_transfer(&c, &h->transfer[i]);
  check_paths(&c);
  for (uint32_t i = 0; i < h->ninstruction; i++) check_instruction(&c, i);
  for (uint32_t i = 0; i < h->ntoken && h->ninstruction; i++) check_token(&c, i);
  if (h->hazards && h->ntoken)
    tarn_sx_error(r->cx, s, "%s: tokens, and hazards that the hardware resolves", h->name);
}
