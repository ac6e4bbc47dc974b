/* Reading a hardware description: a table of forms for the description and one for each of its
 * parts. */
#include "access/fx_internal.h"
#include "hw/internal.h"
#include <math.h>
#include <string.h>

const tarn_sx *hw_arg(hw_reader *r, const tarn_sx *s, uint32_t i) {
  if (s->n <= i) tarn_sx_error(r->cx, s, "(%s …) needs a value", s->kid[0]->text);
  return s->kid[i];
}
/* The one value of (NAME VALUE). */
const tarn_sx *hw_value(hw_reader *r, const tarn_sx *s) {
  if (s->n > 2) tarn_sx_error(r->cx, s->kid[2], "(%s …) takes one value", s->kid[0]->text);
  return hw_arg(r, s, 1);
}
static double hw_number(hw_reader *r, const tarn_sx *s, double lo) {
  const tarn_sx *v = hw_value(r, s);
  if (v->kind != TARN_SX_INT && v->kind != TARN_SX_REAL)
    tarn_sx_error(r->cx, v, "%s: a number is expected", s->kid[0]->text);
  if (!(v->r >= lo) || v->r > 1e18)
    tarn_sx_error(r->cx, v, "%s: %s is out of range (at least %g)", s->kid[0]->text, v->text, lo);
  return v->r;
}
int64_t hw_integer(hw_reader *r, const tarn_sx *s, int64_t lo, int64_t hi) {
  const tarn_sx *v = hw_value(r, s);
  if (v->kind != TARN_SX_INT || v->i < lo || v->i > hi)
    tarn_sx_error(r->cx, v, "%s: an integer from %lld to %lld is expected", s->kid[0]->text,
                  (long long)lo, (long long)hi);
  return v->i;
}
static const char *hw_word(hw_reader *r, const tarn_sx *s) {
  const tarn_sx *v = hw_arg(r, s, 1);
  if (v->kind == TARN_SX_LIST) tarn_sx_error(r->cx, v, "%s: a word is expected", s->kid[0]->text);
  return tarn_strdup(r->cx, v->text);
}
/* The words of (NAME WORD…). */
static const char *const *hw_words(hw_reader *r, const tarn_sx *s, uint32_t *n) {
  const char **word = TARN_ARRAY(r->cx, const char *, s->n);
  for (uint32_t k = 1; k < s->n; k++) {
    if (s->kid[k]->kind == TARN_SX_LIST)
      tarn_sx_error(r->cx, s->kid[k], "%s: a word is expected", s->kid[0]->text);
    word[(*n)++] = tarn_strdup(r->cx, s->kid[k]->text);
  }
  return word;
}
const char *hw_name_of(hw_reader *r, const tarn_sx *s) {
  const char *n = hw_word(r, s);
  if (!*n) tarn_sx_error(r->cx, s, "%s: a name is expected", s->kid[0]->text);
  return n;
}

/* ---- forms ---- */
static void store(hw_reader *r, const hw_form *f, const tarn_sx *s, void *base) {
  char *p = (char *)base + f->at;
  switch (f->kind) {
  case F_WORD: hw_value(r, s), *(const char **)p = hw_word(r, s); break;
  case F_NUM: *(double *)p = hw_number(r, s, 0); break;
  case F_POS: *(double *)p = hw_number(r, s, 1e-30); break;
  case F_U32: *(uint32_t *)p = (uint32_t)hw_integer(r, s, 1, UINT32_MAX); break;
  case F_I64: *(int64_t *)p = hw_integer(r, s, 0, (int64_t)1 << 60); break;
  case F_FLAG:
    if (s->n > 1) tarn_sx_error(r->cx, s->kid[1], "(%s) takes no value", s->kid[0]->text);
    *(bool *)p = true;
    break;
  }
}
/* A form may not stand twice among those of its list. */
void hw_once(hw_reader *r, const tarn_sx *list, const tarn_sx *s) {
  for (uint32_t i = 1; list->kid[i] != s; i++)
    if (tarn_sx_is(list->kid[i], s->kid[0]->text))
      tarn_sx_error(r->cx, s, "(%s …) is given twice", s->kid[0]->text);
}
bool hw_store_form(hw_reader *r, const hw_form *table, const tarn_sx *list, const tarn_sx *s,
                   void *base) {
  if (s->kind != TARN_SX_LIST || s->n == 0 || s->kid[0]->kind != TARN_SX_ATOM)
    tarn_sx_error(r->cx, s, "a form (name value…) is expected");
  for (const hw_form *f = table; f->name; f++)
    if (tarn_sx_is(s, f->name)) {
      hw_once(r, list, s);
      store(r, f, s, base);
      return true;
    }
  return false;
}

static const hw_form memory_forms[] = {{"capacity", F_I64, offsetof(tarn_hw_memory, capacity)},
                                       {"instances", F_U32, offsetof(tarn_hw_memory, instances)},
                                       {"serves", F_U32, offsetof(tarn_hw_memory, serves)},
                                       {"line", F_U32, offsetof(tarn_hw_memory, line)},
                                       {"align", F_U32, offsetof(tarn_hw_memory, align)},
                                       {"banks", F_U32, offsetof(tarn_hw_memory, banks)},
                                       {"ways", F_U32, offsetof(tarn_hw_memory, ways)},
                                       {"read", F_POS, offsetof(tarn_hw_memory, read)},
                                       {"write", F_POS, offsetof(tarn_hw_memory, write)},
                                       {"latency", F_NUM, offsetof(tarn_hw_memory, latency)},
                                       {"hidden", F_NUM, offsetof(tarn_hw_memory, hidden)},
                                       {"managed", F_FLAG, offsetof(tarn_hw_memory, managed)},
                                       {"entry", F_U32, offsetof(tarn_hw_memory, entry)},
                                       {"shadow-of", F_WORD, offsetof(tarn_hw_memory, shadow_of)},
                                       {0}};

static tarn_hw_memory read_memory(hw_reader *r, const tarn_sx *s) {
  tarn_hw_memory m = {.name = hw_name_of(r, s),
                      .instances = 1,
                      .line = 1,
                      .align = 1,
                      .banks = 1,
                      .entry = 1,
                      .hidden = TARN_HW_HIDDEN};
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (hw_store_form(r, memory_forms, s, f, &m)) continue;
    if (!tarn_sx_is(f, "keep"))
      tarn_sx_error(r->cx, f, "memory %s: unknown form %s", m.name, f->kid[0]->text);
    hw_once(r, s, f), m.keep = hw_words(r, f, &m.nkeep);
  }
  if (m.serves < m.instances) m.serves = m.instances;
  if (m.hidden > 1) tarn_sx_error(r->cx, s, "memory %s: (hidden S) is a share, 0 to 1", m.name);
  if (m.read <= 0 || m.write <= 0)
    tarn_sx_error(r->cx, s, "memory %s: (read B) and (write B), bytes a cycle, are needed", m.name);
  return m;
}

/* Does each element lie in one place of one register of one lane? */
static void check_fragment(hw_reader *r, const tarn_sx *s, const tarn_hw_operand *o) {
  const tarn_imap *m = tarn_imap_get(r->L, o->fragment);
  bool same = m->n == 3 && m->nin == o->n && o->n == 2 && !m->nguard;
  for (uint32_t i = 0; i < o->n && same; i++) same = m->in[i] == o->dim[i];
  if (!same || m->dim[0] * m->dim[1] * m->dim[2] != o->dim[0] * o->dim[1])
    tarn_sx_error(r->cx, s, "operand %s: a fragment maps (lane, register, place) to its two dims",
                  o->name);
  int64_t at[3] = {0};
  bool *seen = TARN_ARRAY(r->cx, bool, o->dim[0] * o->dim[1]);
  for (at[0] = 0; at[0] < m->dim[0]; at[0]++)
    for (at[1] = 0; at[1] < m->dim[1]; at[1]++)
      for (at[2] = 0; at[2] < m->dim[2]; at[2]++) {
        int64_t i = tarn_ix_eval(r->L, m->e[0], at);
        int64_t k = tarn_ix_eval(r->L, m->e[1], at);
        bool *is = &seen[i * o->dim[1] + k];
        if (*is)
          tarn_sx_error(r->cx, s,
                        "operand %s: the fragment is no bijection: element %lld %lld "
                        "lies in two places, one of them lane %lld, register %lld",
                        o->name, (long long)i, (long long)k, (long long)at[0], (long long)at[1]);
        *is = true;
      }
}

typedef struct reading {
  hw_reader *r;
  const tarn_sx *s;
  uint32_t map;
} reading;
static void read_map(tarn_ctx *cx, void *arg) {
  reading *m = arg;
  (void)cx;
  m->map = tarn_imap_parse(m->r->L, m->s);
}
static uint32_t read_fragment(hw_reader *r, const tarn_sx *f, const char *operand) {
  reading m = {.r = r, .s = hw_arg(r, f, 1)};
  tarn_status st = tarn_protect(r->cx, read_map, &m);
  if (st && strncmp(tarn_message(r->cx), "index map: ", 11)) tarn_reraise(r->cx, st);
  if (st)
    tarn_sx_error(r->cx, f, "operand %s: %s", operand, tarn_strdup(r->cx, tarn_message(r->cx)));
  return m.map;
}
static tarn_hw_operand read_operand(hw_reader *r, const tarn_sx *s) {
  tarn_hw_operand o = {
      .name = hw_name_of(r, s), .memory = "", .dtype = TARN_DTYPES, .fragment = TARN_NONE};
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (f->kind == TARN_SX_LIST && f->n && f->kid[0]->kind != TARN_SX_LIST) hw_once(r, s, f);
    if (tarn_sx_is(f, "memory")) {
      o.memory = hw_word(r, f);
    } else if (tarn_sx_is(f, "type")) {
      if (!tarn_dtype_parse(hw_word(r, f), &o.dtype))
        tarn_sx_error(r->cx, f, "operand %s: unknown type %s", o.name, hw_word(r, f));
    } else if (tarn_sx_is(f, "dims")) {
      for (uint32_t k = 1; k < f->n; k++) {
        if (f->kid[k]->kind != TARN_SX_INT || f->kid[k]->i < 1 || o.n == TARN_MAX_DIMS)
          tarn_sx_error(r->cx, f, "operand %s: dims are at most %d positive integers", o.name,
                        TARN_MAX_DIMS);
        o.dim[o.n++] = f->kid[k]->i;
      }
    } else if (tarn_sx_is(f, "immediate")) {
      o.lo = tarn_sx_whole(r->cx, f, 1, INT32_MIN, INT32_MAX);
      o.hi = tarn_sx_whole(r->cx, f, 2, o.lo, INT32_MAX);
      o.immediate = true;
    } else if (tarn_sx_is(f, "fragment")) {
      o.fragment = read_fragment(r, f, o.name);
    } else {
      tarn_sx_error(r->cx, f, "operand %s: unknown form", o.name);
    }
  }
  if (o.dtype == TARN_DTYPES) tarn_sx_error(r->cx, s, "operand %s: (type T) is needed", o.name);
  if (o.fragment != TARN_NONE) check_fragment(r, s, &o);
  return o;
}

static const hw_form intrinsic_forms[] = {
    {"latency", F_NUM, offsetof(tarn_hw_intrinsic, latency)},
    {"throughput", F_POS, offsetof(tarn_hw_intrinsic, throughput)},
    {"ops", F_NUM, offsetof(tarn_hw_intrinsic, ops)},
    {"startup", F_NUM, offsetof(tarn_hw_intrinsic, startup)},
    {"reuse-distance", F_U32, offsetof(tarn_hw_intrinsic, reuse)},
    {"encoding", F_WORD, offsetof(tarn_hw_intrinsic, encoding)},
    {0}};

static tarn_hw_intrinsic read_intrinsic(hw_reader *r, const tarn_sx *s) {
  tarn_hw_intrinsic n = {
      .name = hw_name_of(r, s), .throughput = 1, .latency = 1, .ops = 1, .source = s};
  TARN_VEC(tarn_hw_operand) op = {0};
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (hw_store_form(r, intrinsic_forms, s, f, &n)) continue;
    if (tarn_sx_is(f, "meaning")) hw_once(r, s, f), n.meaning = hw_arg(r, f, 1);
    else if (tarn_sx_is(f, "operand")) tarn_push(r->cx, &op, read_operand(r, f));
    else if (!tarn_sx_is(f, "constraint")) /* rules/derive reads those */
      tarn_sx_error(r->cx, f, "intrinsic %s: unknown form %s", n.name, f->kid[0]->text);
  }
  if (!n.meaning) tarn_sx_error(r->cx, s, "intrinsic %s: (meaning TERM) is needed", n.name);
  if (op.n < 2)
    tarn_sx_error(r->cx, s, "intrinsic %s: at least one operand and the result are needed", n.name);
  n.op = op.p, n.nop = op.n;
  return n;
}

static void read_kind(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  static const char *const kinds[] = {"cpu", "gpu", "dsa"};
  const char *w = hw_word(r, s);
  for (uint32_t i = 0; i < 3; i++)
    if (!strcmp(w, kinds[i])) {
      h->kind = (tarn_hw_kind)i;
      return;
    }
  tarn_sx_error(r->cx, s, "kind %s: cpu, gpu or dsa is expected", w);
}
static void read_vector(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  for (uint32_t i = 1; i < s->n; i++) {
    if (s->kid[i]->kind == TARN_SX_LIST && s->kid[i]->n) hw_once(r, s, s->kid[i]);
    if (tarn_sx_is(s->kid[i], "bits"))
      h->vector_bits = (uint32_t)hw_integer(r, s->kid[i], 8, 65536);
    else if (tarn_sx_is(s->kid[i], "registers"))
      h->vector_regs = (uint32_t)hw_integer(r, s->kid[i], 1, 65536);
    else if (tarn_sx_is(s->kid[i], "spreads")) h->spreads = true;
    else if (tarn_sx_is(s->kid[i], "moves")) h->moves = true;
    else if (tarn_sx_is(s->kid[i], "flushes")) h->flushes = true;
    else
      tarn_sx_error(r->cx, s->kid[i],
                    "vector: (bits N), (registers N), (spreads), (moves) or (flushes) is expected");
  }
  if (h->vector_bits & (h->vector_bits - 1))
    tarn_sx_error(r->cx, s, "vector: %u bits: a power of two is expected", h->vector_bits);
}
static const hw_form warps_forms[] = {{"lanes", F_U32, offsetof(tarn_hw_warps, lanes)},
                                      {"resident", F_U32, offsetof(tarn_hw_warps, resident)},
                                      {"block", F_U32, offsetof(tarn_hw_warps, block)},
                                      {"registers", F_U32, offsetof(tarn_hw_warps, registers)},
                                      {"integers", F_U32, offsetof(tarn_hw_warps, integers)},
                                      {"issue", F_U32, offsetof(tarn_hw_warps, issue)},
                                      {"own", F_U32, offsetof(tarn_hw_warps, own)},
                                      {"shared", F_U32, offsetof(tarn_hw_warps, shared)},
                                      {"dynamic", F_U32, offsetof(tarn_hw_warps, dynamic)},
                                      {"matrix", F_U32, offsetof(tarn_hw_warps, matrix)},
                                      {"async", F_U32, offsetof(tarn_hw_warps, async)},
                                      {"sector", F_U32, offsetof(tarn_hw_warps, sector)},
                                      {"reserved", F_U32, offsetof(tarn_hw_warps, reserved)},
                                      {0}};
static void read_warps(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  tarn_hw_warps *w = &h->warps;
  *w = (tarn_hw_warps){.integers = 32, .issue = 1, .sector = 32, .reserved = 1024};
  for (uint32_t i = 1; i < s->n; i++)
    if (!hw_store_form(r, warps_forms, s, s->kid[i], w))
      tarn_sx_error(r->cx, s->kid[i], "warps: unknown form %s", s->kid[i]->kid[0]->text);
  if (!w->lanes || !w->resident || !w->registers || !w->issue || w->block < w->lanes ||
      w->block % w->lanes)
    tarn_sx_error(r->cx, s,
                  "warps: (lanes N), (resident N), (registers N) and (block N), a multiple of the "
                  "lanes, are needed");
  if (w->registers < w->block || (w->own && w->own < w->registers / w->block))
    tarn_sx_error(r->cx, s, "warps: %u registers, %u of a thread: they hold no block of %u threads",
                  w->registers, w->own, w->block);
  if (w->integers != 32 && w->integers != 64)
    tarn_sx_error(r->cx, s, "warps: (integers %u): 32 or 64 bits are expected", w->integers);
  if (w->dynamic && (!w->shared || w->dynamic < w->shared))
    tarn_sx_error(r->cx, s, "warps: (dynamic %u): more than the (shared %u) bytes are expected",
                  w->dynamic, w->shared);
  if (w->matrix && (w->matrix != 16 || w->lanes != 32))
    tarn_sx_error(r->cx, s, "warps: (matrix %u): rows of 16 bytes, for 32 lanes, are expected",
                  w->matrix);
  if (w->async && (w->async < 4 || w->async > 16 || (w->async & (w->async - 1))))
    tarn_sx_error(r->cx, s, "warps: (async %u): 4, 8 or 16 bytes are expected", w->async);
}
static const hw_form core_forms[] = {{"overlap", F_POS, offsetof(tarn_hw_core, overlap)},
                                     {"far", F_POS, offsetof(tarn_hw_core, far)},
                                     {"streams", F_POS, offsetof(tarn_hw_core, streams)},
                                     {"page", F_U32, offsetof(tarn_hw_core, page)},
                                     {"pages", F_POS, offsetof(tarn_hw_core, pages)},
                                     {"restart", F_NUM, offsetof(tarn_hw_core, restart)},
                                     {0}};
static void read_core(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  for (uint32_t i = 1; i < s->n; i++)
    if (!hw_store_form(r, core_forms, s, s->kid[i], &h->core))
      tarn_sx_error(r->cx, s->kid[i], "core: unknown form %s", s->kid[i]->kid[0]->text);
}
static void read_cycles(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  tarn_hw_latency *v = TARN_ARRAY(r->cx, tarn_hw_latency, s->n);
  uint32_t n = 0;
  for (uint32_t i = 1; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (f->kind != TARN_SX_LIST || f->n != 2)
      tarn_sx_error(r->cx, f, "cycles: (OPERATOR NUMBER) is expected");
    if (tarn_fx_find(f->kid[0]->text) == TARN_NONE)
      tarn_sx_error(r->cx, f, "cycles: there is no scalar operator %s", f->kid[0]->text);
    v[n].fx = tarn_strdup(r->cx, f->kid[0]->text);
    v[n++].cycles = hw_number(r, f, 0);
  }
  h->latency = v, h->nlatency = n;
}

static const hw_form hw_forms[] = {{"triple", F_WORD, offsetof(tarn_hw, triple)},
                                   {"cpu", F_WORD, offsetof(tarn_hw, cpu)},
                                   {"features", F_WORD, offsetof(tarn_hw, features)},
                                   {"clock", F_POS, offsetof(tarn_hw, clock)},
                                   {"units", F_U32, offsetof(tarn_hw, units)},
                                   {"launch", F_NUM, offsetof(tarn_hw, launch)},
                                   {"barrier", F_NUM, offsetof(tarn_hw, barrier)},
                                   {"trip", F_NUM, offsetof(tarn_hw, trip)},
                                   {0}};

static const hw_form link_forms[] = {{"send", F_POS, offsetof(tarn_hw_link, send)},
                                     {"receive", F_POS, offsetof(tarn_hw_link, receive)},
                                     {"latency", F_NUM, offsetof(tarn_hw_link, latency)},
                                     {"start", F_NUM, offsetof(tarn_hw_link, start)},
                                     {0}};
static void read_link(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  for (uint32_t i = 1; i < s->n; i++)
    if (!hw_store_form(r, link_forms, s, s->kid[i], &h->link))
      tarn_sx_error(r->cx, s->kid[i], "link: unknown form %s", s->kid[i]->kid[0]->text);
  if (h->link.send <= 0 || h->link.receive <= 0)
    tarn_sx_error(r->cx, s, "link: (send B) and (receive B), bytes a second, are needed");
}
/* A shipped description, or a file whose name is relative to the one that names it; or none. */
static void read_host(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  const char *name = hw_name_of(r, s);
  hw_value(r, s);
  h->alone = !strcmp(name, "none");
  if (h->alone) return;
  if (r->guests + 2 > TARN_HW_MACHINES)
    tarn_sx_error(r->cx, s, "host %s: more than %d machines hang on one another", name,
                  TARN_HW_MACHINES);
  h->host = hw_parse(r->L, hw_text(r->L, hw_beside(r, s, name), s), r->guests + 1);
}

static void check_memories(hw_reader *r, const tarn_sx *s, const tarn_hw *h) {
  for (uint32_t i = 0; i < h->nmem; i++) {
    const tarn_hw_memory *m = &h->mem[i];
    for (uint32_t k = 0; k < i; k++)
      if (!strcmp(h->mem[k].name, m->name))
        tarn_sx_error(r->cx, s, "%s: memory %s is described twice", h->name, m->name);
    if (m->capacity == 0 && i + 1 < h->nmem)
      tarn_sx_error(r->cx, s, "%s: memory %s has no (capacity …); only the last may be unbounded",
                    h->name, m->name);
    if (m->shadow_of && !tarn_hw_memory_find(h, m->shadow_of))
      tarn_sx_error(r->cx, s, "%s: memory %s shadows unknown %s", h->name, m->name, m->shadow_of);
  }
}
static void check_host(hw_reader *r, const tarn_sx *s, const tarn_hw *h) {
  if (h->link.send > 0 && !h->host && h->kind != TARN_HW_GPU)
    tarn_sx_error(r->cx, s, "%s: a (link …) leads to a (host NAME), which is not given", h->name);
  if (h->host && h->host->kind != TARN_HW_CPU && !h->host->host)
    tarn_sx_error(r->cx, s, "%s: the host %s is no cpu, and has no host", h->name, h->host->name);
  if (h->alone && tarn_hw_traits_of(h).any_nest)
    tarn_sx_error(r->cx, s, "%s: (host none) is of accelerators alone", h->name);
  for (const tarn_hw *o = h->host; o; o = o->host)
    if (!strcmp(o->name, h->name))
      tarn_sx_error(r->cx, s, "%s: its host has the same name", h->name);
}
static void check_whole(hw_reader *r, const tarn_sx *s, const tarn_hw *h) {
  if (h->clock <= 0) tarn_sx_error(r->cx, s, "%s: (clock HZ) is needed", h->name);
  if (!h->nmem) tarn_sx_error(r->cx, s, "%s: at least one (memory …) is needed", h->name);
  if (h->kind == TARN_HW_CPU && !*h->triple)
    tarn_sx_error(r->cx, s, "%s: a cpu needs its (triple …)", h->name);
  if (h->warps.lanes && h->nmem && tarn_hw_block_memory(h) > tarn_hw_mem(h, TARN_HW_L1)->capacity)
    tarn_sx_error(r->cx, s, "%s: %s has no room for a block's %lld bytes", h->name,
                  tarn_hw_mem(h, TARN_HW_L1)->name, (long long)tarn_hw_block_memory(h));
  if ((h->kind == TARN_HW_GPU) != (h->warps.lanes > 0))
    tarn_sx_error(r->cx, s, "%s: a gpu needs its (warps …), and nothing else has them", h->name);
  check_memories(r, s, h);
  check_host(r, s, h);
  for (uint32_t i = 0; i < h->nintrin; i++)
    for (uint32_t k = 0; k < i; k++)
      if (!strcmp(h->intrin[i].name, h->intrin[k].name))
        tarn_sx_error(r->cx, h->intrin[i].source, "%s: intrinsic %s is described twice", h->name,
                      h->intrin[i].name);
  for (uint32_t i = 0; i < h->nintrin; i++)
    for (uint32_t k = 0; k < h->intrin[i].nop; k++) {
      const char *mem = h->intrin[i].op[k].memory;
      if (*mem && !tarn_hw_memory_find(h, mem))
        tarn_sx_error(r->cx, s, "%s: intrinsic %s: operand %s lives in unknown memory %s", h->name,
                      h->intrin[i].name, h->intrin[i].op[k].name, mem);
    }
}

const tarn_hw *tarn_hw_parse(tarn_lang *L, const tarn_sx *s) { return hw_parse(L, s, 0); }
const tarn_hw *hw_parse(tarn_lang *L, const tarn_sx *s, uint32_t guests) {
  hw_reader r = {L, tarn_lang_ctx(L), guests};
  if (s->kind == TARN_SX_LIST && s->n == 1 && s->kid[0]->kind == TARN_SX_LIST) s = s->kid[0];
  s = hw_like(&r, s);
  if (!tarn_sx_is(s, "hw")) tarn_sx_error(r.cx, s, "a description (hw NAME …) is expected");
  tarn_hw *h = TARN_NEW(r.cx, tarn_hw);
  *h = (tarn_hw){.name = hw_name_of(&r, s),
                 .triple = "",
                 .cpu = "",
                 .features = "",
                 .units = 1,
                 .trip = 1,
                 .core = TARN_HW_CORE,
                 .source = s};
  TARN_VEC(tarn_hw_memory) mem = {0};
  TARN_VEC(tarn_hw_intrinsic) in = {0};
  hw_parts parts = {0};
  bool kind = false;
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (hw_store_form(&r, hw_forms, s, f, h)) continue;
    if (tarn_sx_is(f, "kind")) hw_once(&r, s, f), read_kind(&r, f, h), kind = true;
    else if (tarn_sx_is(f, "vector")) hw_once(&r, s, f), read_vector(&r, f, h);
    else if (tarn_sx_is(f, "warps")) hw_once(&r, s, f), read_warps(&r, f, h);
    else if (tarn_sx_is(f, "core")) hw_once(&r, s, f), read_core(&r, f, h);
    else if (tarn_sx_is(f, "memory")) tarn_push(r.cx, &mem, read_memory(&r, f));
    else if (tarn_sx_is(f, "intrinsic")) tarn_push(r.cx, &in, read_intrinsic(&r, f));
    else if (tarn_sx_is(f, "host")) hw_once(&r, s, f), read_host(&r, f, h);
    else if (tarn_sx_is(f, "link")) hw_once(&r, s, f), read_link(&r, f, h);
    else if (tarn_sx_is(f, "cycles")) hw_once(&r, s, f), read_cycles(&r, f, h);
    else if (!hw_part(&r, s, f, h, &parts))
      tarn_sx_error(r.cx, f, "%s: unknown form %s", h->name, f->kid[0]->text);
  }
  h->mem = mem.p, h->nmem = mem.n, h->intrin = in.p, h->nintrin = in.n;
  if (!kind) tarn_sx_error(r.cx, s, "%s: (kind cpu|gpu|dsa) is needed", h->name);
  check_whole(&r, s, h);
  hw_read_parts(&r, h, &parts);
  hw_check_machine(&r, s, h);
  return h;
}

void tarn_hw_print(const tarn_hw *hw, tarn_buf *b) { tarn_sx_print(b, hw->source, 100); }
