/* Shipped descriptions and what is asked of a description. */
#include "access/fx_internal.h"
#include "hw/internal.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

const tarn_hw *tarn_hw_load(tarn_lang *L, const char *name) {
  return hw_parse(L, hw_text(L, name, NULL), 0);
}
static const tarn_sx *description(const tarn_sx *file) {
  bool one = file->kind == TARN_SX_LIST && file->n == 1 && file->kid[0]->kind == TARN_SX_LIST;
  return one ? file->kid[0] : file;
}
_Noreturn static void unknown(tarn_ctx *cx, const char *name, const tarn_sx *by) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "");
  for (const tarn_embedded *e = tarn_hw_embedded; e->name; e++) tarn_buf_fmt(&b, " %s", e->name);
  const char *why = tarn_format(
      cx, "%s: no such description; shipped are host cuda%s, or give a file", name, b.p);
  if (by) tarn_sx_error(cx, by, "%s", why);
  tarn_raise(cx, TARN_BAD_INPUT, "--hw %s", why);
}
const tarn_sx *hw_text(tarn_lang *L, const char *name, const tarn_sx *by) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  if (!strcmp(name, "cuda"))
    name = "cuda-sm80"; /* the oldest that is described runs on the others */
  for (const tarn_embedded *e = tarn_hw_embedded; e->name; e++)
    if (!strcmp(e->name, name))
      return description(tarn_sx_read(cx, e->text, e->n, tarn_format(cx, "%s.hw", name)));
  if (!strpbrk(name, "./")) unknown(cx, name, by);
  if (by && access(name, R_OK)) tarn_sx_error(cx, by, "%s: %s", name, strerror(errno));
  return description(tarn_sx_read_file(cx, name));
}

uint32_t tarn_hw_shipped(const char **names, uint32_t max) {
  uint32_t n = 0;
  for (const tarn_embedded *e = tarn_hw_embedded; e->name; e++, n++)
    if (n < max) names[n] = e->name;
  return n;
}

int64_t tarn_hw_way(const tarn_hw_memory *m) {
  int64_t way = 1, ways = m->ways ? m->ways : TARN_HW_WAYS;
  while (way * 2 * ways <= m->capacity && way < 1 << 30) way *= 2;
  return way;
}
uint32_t tarn_hw_ways(const tarn_hw_memory *m) {
  return m->ways && m->ways < TARN_HW_WAYS ? m->ways : TARN_HW_WAYS;
}

const tarn_hw_memory *tarn_hw_memory_find(const tarn_hw *hw, const char *name) {
  for (uint32_t i = 0; i < hw->nmem; i++)
    if (!strcmp(hw->mem[i].name, name)) return &hw->mem[i];
  return NULL;
}

int64_t tarn_hw_depth(const tarn_hw_memory *m) { return m->capacity / m->entry; }
int64_t tarn_hw_operand_bytes(const tarn_hw_operand *o) {
  int64_t n = (int64_t)tarn_dtype_size(o->dtype);
  for (uint32_t i = 0; i < o->n; i++)
    n = o->dim[i] && n > INT64_MAX / o->dim[i] ? INT64_MAX : n * o->dim[i];
  return n;
}

/* The operand that goes through a transfer. */
static const tarn_hw_operand *moved(const tarn_hw_intrinsic *n) {
  uint32_t k = 0;
  while (n->op[k].immediate && k + 2 < n->nop) k++;
  return &n->op[k];
}
int64_t tarn_hw_transfer_bytes(const tarn_hw *hw, const tarn_hw_transfer *t) {
  bool out = t->to == hw->nmem - 1;
  if (t->intrinsic == TARN_NONE) return hw->mem[out ? t->from : t->to].entry;
  const tarn_hw_intrinsic *n = &hw->intrin[t->intrinsic];
  return tarn_hw_operand_bytes(out ? &n->op[n->nop - 1] : moved(n));
}
uint32_t tarn_hw_place_bits(const tarn_hw *hw, const tarn_hw_format *f, uint32_t place) {
  if (tarn_hw_is_register(place)) return hw->reg[place & ~TARN_HW_REGISTER].bits;
  return f->field[place].width - f->field[place].is_signed;
}

tarn_hw_range tarn_hw_range_of(const tarn_hw *hw, const tarn_hw_instruction *x, uint32_t place,
                               int64_t absent) {
  if (place == TARN_NONE) return (tarn_hw_range){absent, absent};
  for (uint32_t i = 0; i < x->nis; i++)
    if (x->is[i].field == place) return (tarn_hw_range){x->is[i].value, x->is[i].value};
  const tarn_hw_format *f = &hw->format[x->format];
  int64_t end = (int64_t)1 << tarn_hw_place_bits(hw, f, place);
  bool negative = !tarn_hw_is_register(place) && f->field[place].is_signed;
  return (tarn_hw_range){negative ? -end : 0, end - 1};
}

uint32_t tarn_hw_lanes(const tarn_hw *hw, tarn_dtype t) {
  uint32_t bits = (uint32_t)tarn_dtype_size(t) * 8;
  return hw->vector_bits > bits ? hw->vector_bits / bits : 1;
}

const tarn_hw *tarn_hw_exact(tarn_ctx *cx, const tarn_hw *hw) {
  const tarn_hw *host = hw->host ? tarn_hw_exact(cx, hw->host) : NULL;
  if (host == hw->host && !hw->flushes) return hw;
  tarn_hw *h = tarn_copy(cx, hw, sizeof *hw);
  h->host = host;
  if (hw->flushes) h->vector_bits = 0, h->nintrin = 0;
  return h;
}

/* An intrinsic serves a type when its first operand has it. */
double tarn_hw_peak(const tarn_hw *hw, tarn_dtype t, uint32_t units) {
  double best = 0;
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    const tarn_hw_intrinsic *n = &hw->intrin[i];
    double rate = n->ops * n->throughput;
    if (n->op[0].dtype == t && rate > best) best = rate;
  }
  if (best == 0) best = tarn_hw_lanes(hw, t); /* one vector operation a cycle */
  return best * hw->clock * (units < hw->units ? units : hw->units);
}

double tarn_hw_fx_cycles(const tarn_hw *hw, tarn_fxop op) {
  const tarn_fxinfo *row = tarn_fx_info(op);
  for (uint32_t i = 0; i < hw->nlatency; i++)
    if (!strcmp(hw->latency[i].fx, row->text)) return hw->latency[i].cycles;
  return row->cycles;
}

tarn_hw_traits tarn_hw_traits_of(const tarn_hw *hw) {
  static const tarn_hw_traits of[] = {
      [TARN_HW_CPU] = {.any_nest = true, .calls = true, .links = true, .lookups = true},
      [TARN_HW_GPU] = {.any_nest = true,
                       .calls = true,
                       .lookups = true,
                       .pads = true,
                       .blocks = true,
                       .hides = true,
                       .hosted = true},
      [TARN_HW_DSA] = {.pads = true}};
  tarn_hw_traits t = of[hw->kind];
  bool named = hw->host && t.hosted; /* the host calls, and is no implied one */
  t.calls = t.calls && !named;
  t.hosted = t.hosted && !named;
  return t;
}

bool tarn_hw_mixes_lanes(const tarn_hw *hw) {
  return hw->triple && !strncmp(hw->triple, "x86_64", 6);
}

bool tarn_hw_loads_shared(const tarn_hw *hw) {
  static const char *const systems[] = {"linux", "bsd", "-fuchsia", "-haiku", "-hurd", "-solaris"};
  if (!hw->triple || !*hw->triple) return true;
  for (uint32_t i = 0; i < sizeof systems / sizeof *systems; i++)
    if (strstr(hw->triple, systems[i])) return true;
  return false;
}

/* Cycles of an expression per vector on this hardware; shared subexpressions once. */
static double fx_cycles(tarn_lang *L, const tarn_hw *hw, uint32_t f, tarn_map *seen) {
  bool fresh;
  tarn_map_at(seen, f, &fresh);
  if (!fresh) return 0;
  const tarn_fx x = *tarn_fx_get(L, f);
  double c = tarn_hw_fx_cycles(hw, x.op);
  for (uint32_t i = 0; i < tarn_fx_arity(x.op); i++) c += fx_cycles(L, hw, x.kid[i], seen);
  return c;
}

double tarn_fx_cycles(tarn_lang *L, const tarn_hw *hw, uint32_t f) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_mark scratch = tarn_arena_mark(cx);
  double cycles = fx_cycles(L, hw, f, tarn_map_new(cx));
  tarn_release(cx, scratch);
  return cycles;
}

int64_t tarn_hw_block_memory(const tarn_hw *hw) {
  const tarn_hw_warps *w = &hw->warps;
  int64_t most = w->dynamic > w->shared ? w->dynamic : w->shared;
  return most ? most : tarn_hw_mem(hw, TARN_HW_L1)->capacity;
}
const tarn_hw_memory *tarn_hw_mem(const tarn_hw *hw, tarn_hw_level role) {
  uint32_t n = hw->nmem;
  uint32_t at[] = {[TARN_HW_L1] = 0,
                   [TARN_HW_L2] = 1,
                   [TARN_HW_BEHIND_L2] = n > 2 ? 2 : 1,
                   [TARN_HW_LLC] = n > 2 ? n - 2 : n,
                   [TARN_HW_MAIN] = n - 1};
  return n && at[role] < n ? &hw->mem[at[role]] : NULL;
}
/* Of a CPU a block's buffers stay in L1, or in L2, where larger ones were measured not to pay. A
 * GPU keeps them in a block's memory, and each of its units has two blocks, or one. */
tarn_hw_between tarn_hw_between_of(const tarn_hw *hw) {
  bool gpu = tarn_hw_traits_of(hw).blocks;
  tarn_hw_between b = {.least = {1, 1}, .whole = 1 << 17};
  if (hw->nmem > 2) b.whole = tarn_hw_mem(hw, gpu ? TARN_HW_L1 : TARN_HW_BEHIND_L2)->capacity / 2;
  for (uint32_t i = 0; i < 2 && hw->nmem > 1; i++) {
    if (gpu) b.block[i] = tarn_hw_block_memory(hw);
    else b.block[i] = tarn_hw_mem(hw, i ? TARN_HW_L2 : TARN_HW_L1)->capacity / (i ? 4 : 2);
    if (gpu) b.least[i] = (2 - (int64_t)i) * hw->units;
  }
  if (gpu && hw->nmem > 1) b.held = tarn_hw_block_memory(hw);
  return b;
}
/* The threads of a GPU's warp do; with more results than this each unit has enough of them. */
int64_t tarn_hw_shares_sums(const tarn_hw *hw) {
  enum { EACH = 128 };
  return hw->warps.lanes ? (int64_t)hw->units * EACH : 0;
}
