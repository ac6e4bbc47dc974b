/* What instructions have in their fields and registers: may it be fixed by (is …), and may another
 * number share the place?
 *
 * A place that is fixed serves where its number can stay the same: a factor, a loop's trips, a
 * stride, a flag, an immediate. The compiler then takes the loops, rows and instructions that it
 * fits. What differs from one instruction to the next cannot be fixed. */
#include "hw/internal.h"
#include <string.h>

typedef enum fixing {
  ANY,      /* to any number */
  NEVER,    /* it changes from one instruction to the next */
  ONE,      /* to one: entry, row, trip … */
  POSITIVE, /* to 1 or more */
  NOTHING,  /* to 0 */
} fixing;
typedef enum sharing { ALONE, FACTORS, INDICES } sharing;
typedef struct role {
  uint32_t place;
  const char *what;
  fixing fixing;
  int64_t one;     /* ONE: the number */
  sharing sharing; /* with others of the same kind */
  uint32_t number; /* of the (index …) */
} role;
enum { ROLES = 160 };
typedef struct places {
  hw_reader *r;
  const tarn_hw *h;
  const tarn_hw_instruction *x;
  uint32_t n;
  role role[ROLES];
} places;

static void add(places *p, uint32_t place, const char *what, fixing f, int64_t one) {
  if (place == TARN_NONE || p->n == ROLES) return;
  p->role[p->n++] = (role){.place = place, .what = what, .fixing = f, .one = one};
}
static void add_shared(places *p, uint32_t place, const char *what, fixing f, sharing s,
                       uint32_t number) {
  uint32_t n = p->n;
  add(p, place, what, f, 0);
  if (p->n == n) return;
  p->role[n].sharing = s;
  p->role[n].number = number;
}
static void of_move(places *p) {
  const tarn_hw_instruction *x = p->x;
  static const char *const pads[] = {"zeros before rows", "zeros behind rows", "zeros before a row",
                                     "zeros behind a row"};
  add(p, x->local, "the place in a memory", NEVER, 0);
  add(p, x->main, "the place in main memory", NEVER, 0);
  add(p, x->entries, "the entries of a row", ONE, x->units);
  add(p, x->rows, "the rows", ONE, 1);
  add(p, x->stride, "the stride", ANY, 0);
  add(p, x->block, "the block-stride", ANY, 0);
  add(p, x->immediate, "an immediate", ANY, 0);
  for (uint32_t i = 0; i < 4; i++) add(p, x->pad[i], pads[i], NOTHING, 0);
}
static void of_run(places *p) {
  const tarn_hw_instruction *x = p->x;
  add(p, x->begin, "the first micro-op", NEVER, 0);
  add(p, x->end, "the end of the micro-ops", NEVER, 0);
  add(p, x->clear, "the flag that clears", ANY, 0);
  add(p, x->accumulate, "the flag that accumulates", ANY, 0);
  add(p, x->immediate, "an immediate", ANY, 0);
  for (uint32_t k = 0; k < x->nloop; k++) add(p, x->loop[k], "the trips of a loop", POSITIVE, 0);
  for (uint32_t i = 0; i < x->nindex; i++) {
    if (x->step == TARN_NONE)
      add_shared(p, x->index[i].field, "the entry of an operand", NEVER, INDICES, i);
    for (uint32_t k = 0; k < x->nloop; k++)
      add_shared(p, x->index[i].factor[k], "a factor", ANY, FACTORS, i);
  }
}
static void of_all(places *p) {
  const tarn_hw_instruction *x = p->x;
  for (uint32_t i = 0; i < x->npop; i++) add(p, x->pop[i].field, "the flag of a token", NEVER, 0);
  for (uint32_t i = 0; i < x->npush; i++) add(p, x->push[i].field, "the flag of a token", NEVER, 0);
}
/* A place of the instruction as (is …) names it. */
static const char *name_of(const places *p, uint32_t place) {
  if (!tarn_hw_is_register(place)) return p->h->format[p->x->format].field[place].name;
  return tarn_format(p->r->cx, "(register %s)", p->h->reg[place & ~TARN_HW_REGISTER].name);
}
static void check_fixed(const places *p, const role *a) {
  tarn_hw_range r = tarn_hw_range_of(p->h, p->x, a->place, 0);
  const char *but = a->fixing == NEVER      ? "which changes"
                    : a->fixing == ONE      ? "which can only be fixed to one"
                    : a->fixing == POSITIVE ? "which are 1 at least"
                                            : "which can only be fixed to none";
  bool ok = a->fixing == ANY || (a->fixing == ONE && r.lo == a->one) ||
            (a->fixing == POSITIVE && r.lo > 0) || (a->fixing == NOTHING && !r.lo);
  if (r.lo == r.hi && !ok)
    tarn_sx_error(p->r->cx, p->x->source, "instruction %s: (is %s %lld), but there it has %s, %s",
                  p->x->name, name_of(p, a->place), (long long)r.lo, a->what, but);
  if ((a->fixing == ONE && r.hi < a->one) || (a->fixing == POSITIVE && r.hi < 1))
    tarn_sx_error(p->r->cx, p->x->source, "instruction %s: %s is too narrow for %s: it holds %lld",
                  p->x->name, name_of(p, a->place), a->what, (long long)r.hi);
}
/* The result replaces that operand: both lie in one memory. */
static bool replaces(const places *p, uint32_t i, uint32_t k) {
  const tarn_hw_intrinsic *n = &p->h->intrin[p->x->intrinsic];
  uint32_t a = p->x->index[i].operand;
  uint32_t b = p->x->index[k].operand;
  const char *in = n->op[a].memory;
  const char *of = n->op[b].memory;
  bool result = a + 1u == n->nop || b + 1u == n->nop;
  return result && in && of && !strcmp(in, of);
}
static void check_shared(const places *p, const role *a, const role *b) {
  bool may = a->sharing == b->sharing && a->sharing == FACTORS;
  if (a->sharing == INDICES && b->sharing == INDICES) may = replaces(p, a->number, b->number);
  if (a->place == b->place && !may)
    tarn_sx_error(p->r->cx, p->x->source, "instruction %s: %s has both %s and %s", p->x->name,
                  name_of(p, a->place), b->what, a->what);
}
/* The same of the fields of micro-ops. */
static void check_micro(const places *p) {
  const tarn_hw_instruction *x = p->x;
  for (uint32_t i = 0; i < x->nindex && x->step != TARN_NONE; i++)
    for (uint32_t k = 0; k < i; k++)
      if (x->index[i].field == x->index[k].field && !replaces(p, i, k))
        tarn_sx_error(p->r->cx, x->source,
                      "instruction %s: field %s has the entries of operands %s and %s", x->name,
                      p->h->format[x->step].field[x->index[i].field].name,
                      p->h->intrin[x->intrinsic].op[x->index[k].operand].name,
                      p->h->intrin[x->intrinsic].op[x->index[i].operand].name);
}
/* What comes alone in the stream: nothing sets registers for it. */
static void check_alone(const places *p) {
  const tarn_hw_instruction *x = p->x;
  for (uint32_t i = 0; i < x->nis; i++)
    if (tarn_hw_is_register(x->is[i].field) && (x->does == TARN_HW_SETS || x->does == TARN_HW_ENDS))
      tarn_sx_error(p->r->cx, x->source,
                    "instruction %s: (is %s %lld): only what moves or runs depends on registers",
                    x->name, name_of(p, x->is[i].field), (long long)x->is[i].value);
}
static void check_stride(const places *p) {
  const tarn_hw_instruction *x = p->x;
  if (x->does != TARN_HW_MOVES || x->stride == TARN_NONE) return;
  const tarn_hw_transfer *t = &p->h->transfer[x->transfer];
  tarn_hw_range r = tarn_hw_range_of(p->h, x, x->stride, 0);
  int64_t each = x->stride_bytes ? tarn_hw_transfer_bytes(p->h, t) : 1;
  if (r.lo == r.hi && (r.lo % each || r.lo / each > t->stride))
    tarn_sx_error(p->r->cx, x->source, "instruction %s: (is %s %lld) is no stride of %s", x->name,
                  name_of(p, x->stride), (long long)r.lo, t->name);
}
void hw_check_places(hw_reader *r, const tarn_hw *h, const tarn_hw_instruction *x) {
  places p = {.r = r, .h = h, .x = x};
  if (x->does == TARN_HW_MOVES) of_move(&p);
  if (x->does == TARN_HW_RUNS) of_run(&p);
  of_all(&p);
  for (uint32_t i = 0; i < p.n; i++) {
    check_fixed(&p, &p.role[i]);
    for (uint32_t k = 0; k < i; k++) check_shared(&p, &p.role[i], &p.role[k]);
  }
  check_micro(&p);
  check_alone(&p);
  check_stride(&p);
}
