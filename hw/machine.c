/* The forms of accelerators: queues and tokens, transfers, formats, instructions, limits, quirks.
 * They name one another and memories and intrinsics in any order, so that they are read when all
 * of the description has been seen. */
#include "hw/internal.h"
#include <string.h>

/* ---------------------------------------------------------------- names */
/* The number of what is called s among n parts of that size, each with its name first. */
static uint32_t find(hw_reader *r, const tarn_sx *s, const void *parts, uint32_t n, size_t each,
                     const char *what) {
  if (s->kind == TARN_SX_LIST) tarn_sx_error(r->cx, s, "the name of a %s is expected", what);
  for (uint32_t i = 0; i < n; i++)
    if (!strcmp(*(const char *const *)((const char *)parts + i * each), s->text)) return i;
  tarn_sx_error(r->cx, s, "there is no %s %s", what, s->text);
}
#define FIND(r, s, parts, n, what) find(r, s, parts, n, sizeof *(parts), what)

static void is_new(hw_reader *r, const tarn_sx *s, const char *name, const void *parts, uint32_t n,
                   size_t each) {
  for (uint32_t i = 0; i < n; i++)
    if (!strcmp(*(const char *const *)((const char *)parts + i * each), name))
      tarn_sx_error(r->cx, s, "%s %s is described twice", s->kid[0]->text, name);
}
/* A form with n values at least and, unless more is 0, that many more. */
static void values(hw_reader *r, const tarn_sx *s, uint32_t n, uint32_t more, const char *what) {
  if (s->n < n + 1 || s->n > n + more + 1)
    tarn_sx_error(r->cx, s, "(%s %s) is expected", s->kid[0]->text, what);
}
static void unknown(hw_reader *r, const tarn_sx *in, const tarn_sx *f) {
  const char *name = in->n > 1 ? in->kid[1]->text : "";
  if (f->kind != TARN_SX_LIST || !f->n || f->kid[0]->kind == TARN_SX_LIST)
    tarn_sx_error(r->cx, f, "a form (name value…) is expected");
  tarn_sx_error(r->cx, f, "%s %s: unknown form %s", in->kid[0]->text, name, f->kid[0]->text);
}

/* ---------------------------------------------------------------- queues, tokens, transfers */
static tarn_hw_queue read_queue(hw_reader *r, const tarn_sx *s) {
  static const hw_form forms[] = {{"depth", F_U32, offsetof(tarn_hw_queue, depth)}, {0}};
  tarn_hw_queue q = {.name = hw_name_of(r, s)};
  for (uint32_t i = 2; i < s->n; i++)
    if (!hw_store_form(r, forms, s, s->kid[i], &q)) unknown(r, s, s->kid[i]);
  return q;
}

static tarn_hw_token read_token(hw_reader *r, const tarn_sx *s, const tarn_hw *h) {
  static const hw_form forms[] = {{"capacity", F_U32, offsetof(tarn_hw_token, capacity)}, {0}};
  tarn_hw_token t = {.name = hw_name_of(r, s), .from = TARN_NONE, .to = TARN_NONE};
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (hw_store_form(r, forms, s, f, &t)) continue;
    hw_once(r, s, f);
    if (tarn_sx_is(f, "from")) t.from = FIND(r, hw_value(r, f), h->queue, h->nqueue, "queue");
    else if (tarn_sx_is(f, "to")) t.to = FIND(r, hw_value(r, f), h->queue, h->nqueue, "queue");
    else unknown(r, s, f);
  }
  if (t.from == TARN_NONE || t.to == TARN_NONE)
    tarn_sx_error(r->cx, s, "token %s: (from QUEUE) and (to QUEUE) are needed", t.name);
  if (t.from == t.to)
    tarn_sx_error(r->cx, s, "token %s: it goes from queue %s to itself", t.name,
                  h->queue[t.from].name);
  return t;
}

static const hw_form transfer_forms[] = {
    {"rank", F_U32, offsetof(tarn_hw_transfer, rank)},
    {"stride", F_I64, offsetof(tarn_hw_transfer, stride)},
    {"pad", F_I64, offsetof(tarn_hw_transfer, pad)},
    {"most-rows", F_I64, offsetof(tarn_hw_transfer, most_rows)},
    {"row-bytes", F_I64, offsetof(tarn_hw_transfer, row_bytes)},
    {"startup", F_NUM, offsetof(tarn_hw_transfer, startup)},
    {"row", F_NUM, offsetof(tarn_hw_transfer, row)},
    {"entry", F_POS, offsetof(tarn_hw_transfer, entry)},
    {"row-latency", F_FLAG, offsetof(tarn_hw_transfer, row_latency)},
    {0}};
static tarn_hw_transfer read_transfer(hw_reader *r, const tarn_sx *s, const tarn_hw *h) {
  tarn_hw_transfer t = {.name = hw_name_of(r, s),
                        .from = TARN_NONE,
                        .to = TARN_NONE,
                        .intrinsic = TARN_NONE,
                        .rank = 1};
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (hw_store_form(r, transfer_forms, s, f, &t)) continue;
    hw_once(r, s, f);
    if (tarn_sx_is(f, "from")) t.from = FIND(r, hw_value(r, f), h->mem, h->nmem, "memory");
    else if (tarn_sx_is(f, "to")) t.to = FIND(r, hw_value(r, f), h->mem, h->nmem, "memory");
    else if (tarn_sx_is(f, "intrinsic"))
      t.intrinsic = FIND(r, hw_value(r, f), h->intrin, h->nintrin, "intrinsic");
    else unknown(r, s, f);
  }
  if (t.from == TARN_NONE || t.to == TARN_NONE || t.entry <= 0)
    tarn_sx_error(r->cx, s, "transfer %s: (from MEMORY), (to MEMORY) and (entry CYCLES) are needed",
                  t.name);
  return t;
}

/* ---------------------------------------------------------------- formats */
static tarn_hw_field read_field(hw_reader *r, const tarn_sx *s, uint32_t bits) {
  values(r, s, 3, 1, "NAME POSITION WIDTH [signed]");
  tarn_hw_field f = {.name = hw_name_of(r, s)};
  f.at = (uint32_t)tarn_sx_whole(r->cx, s, 2, 0, bits - 1);
  f.width = (uint32_t)tarn_sx_whole(r->cx, s, 3, 1, 62);
  f.is_signed = s->n == 5;
  if (s->n == 5 && !tarn_sx_atom_is(s->kid[4], "signed"))
    tarn_sx_error(r->cx, s->kid[4], "field %s: signed, or nothing, is expected", f.name);
  if (f.at + f.width > bits)
    tarn_sx_error(r->cx, s, "field %s: bits %u to %u of %u", f.name, f.at, f.at + f.width - 1,
                  bits);
  return f;
}
static void apart(hw_reader *r, const tarn_sx *s, const tarn_hw_field *a, const tarn_hw_field *b) {
  if (!strcmp(a->name, b->name)) tarn_sx_error(r->cx, s, "field %s is given twice", b->name);
  if (a->at < b->at + b->width && b->at < a->at + a->width)
    tarn_sx_error(r->cx, s, "fields %s (bits %u to %u) and %s (bits %u to %u) overlap", a->name,
                  a->at, a->at + a->width - 1, b->name, b->at, b->at + b->width - 1);
}
static tarn_hw_format read_format(hw_reader *r, const tarn_sx *s) {
  tarn_hw_format f = {.name = hw_name_of(r, s)};
  tarn_hw_field *field = TARN_ARRAY(r->cx, tarn_hw_field, s->n);
  f.field = field;
  for (uint32_t i = 2; i < s->n; i++)
    if (tarn_sx_is(s->kid[i], "bits"))
      hw_once(r, s, s->kid[i]), f.bits = (uint32_t)hw_integer(r, s->kid[i], 8, 1024);
  if (!f.bits || f.bits % 8)
    tarn_sx_error(r->cx, s, "format %s: (bits N), a multiple of 8, is needed", f.name);
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *k = s->kid[i];
    if (tarn_sx_is(k, "bits")) continue;
    if (!tarn_sx_is(k, "field")) unknown(r, s, k);
    field[f.nfield] = read_field(r, k, f.bits);
    for (uint32_t o = 0; o < f.nfield; o++) apart(r, k, &field[o], &field[f.nfield]);
    f.nfield++;
  }
  return f;
}

static tarn_hw_register read_register(hw_reader *r, const tarn_sx *s) {
  tarn_hw_register x = {.name = hw_name_of(r, s)};
  for (uint32_t i = 2; i < s->n; i++) {
    if (!tarn_sx_is(s->kid[i], "bits")) unknown(r, s, s->kid[i]);
    hw_once(r, s, s->kid[i]), x.bits = (uint32_t)hw_integer(r, s->kid[i], 1, 62);
  }
  if (!x.bits) tarn_sx_error(r->cx, s, "register %s: (bits N) is needed", x.name);
  return x;
}

/* ---------------------------------------------------------------- instructions */
typedef struct reading {
  hw_reader *r;
  const tarn_hw *h;
  const tarn_hw_format *format;
  tarn_hw_instruction *x;
  TARN_VEC(tarn_hw_is) is;
  TARN_VEC(tarn_hw_flag) pop;
  TARN_VEC(tarn_hw_flag) push;
  TARN_VEC(tarn_hw_set) set;
} reading;

static uint32_t field(reading *g, const tarn_sx *s) {
  return FIND(g->r, s, g->format->field, g->format->nfield, "field");
}
/* A field, or (register NAME). */
static uint32_t place(reading *g, const tarn_sx *s) {
  if (!tarn_sx_is(s, "register")) return field(g, s);
  return TARN_HW_REGISTER | FIND(g->r, hw_value(g->r, s), g->h->reg, g->h->nregister, "register");
}
static uint32_t one_place(reading *g, const tarn_sx *s) {
  if (s->n != 2) tarn_sx_error(g->r->cx, s, "(%s FIELD) is expected", s->kid[0]->text);
  return place(g, s->kid[1]);
}
static uint32_t flag_field(reading *g, const tarn_sx *s) {
  uint32_t f = place(g, s), bits = tarn_hw_place_bits(g->h, g->format, f);
  bool reg = tarn_hw_is_register(f);
  if (bits != 1)
    tarn_sx_error(g->r->cx, s, "%s %s has %u bits, a flag has one", reg ? "register" : "field",
                  reg ? g->h->reg[f & ~TARN_HW_REGISTER].name : g->format->field[f].name, bits);
  return f;
}

static tarn_hw_flag flag(reading *g, const tarn_sx *s, bool pops) {
  values(g->r, s, 2, 0, "FIELD TOKEN");
  const tarn_hw *h = g->h;
  tarn_hw_flag f = {flag_field(g, s->kid[1]), FIND(g->r, s->kid[2], h->token, h->ntoken, "token")};
  uint32_t queue = pops ? h->token[f.token].to : h->token[f.token].from;
  if (g->x->queue != queue)
    tarn_sx_error(g->r->cx, s, "instruction %s: queue %s does not %s token %s, %s does", g->x->name,
                  h->queue[g->x->queue].name, pops ? "pop" : "push", h->token[f.token].name,
                  h->queue[queue].name);
  return f;
}
static tarn_hw_is fixed(reading *g, const tarn_sx *s) {
  values(g->r, s, 2, 0, "FIELD VALUE");
  tarn_hw_is f = {.field = place(g, s->kid[1])};
  uint32_t bits = tarn_hw_place_bits(g->h, g->format, f.field);
  f.value = tarn_sx_whole(g->r->cx, s, 2, 0, ((int64_t)1 << bits) - 1);
  return f;
}
static tarn_hw_set set(reading *g, const tarn_sx *s) {
  values(g->r, s, 2, 0, "REGISTER FIELD");
  const tarn_hw *h = g->h;
  tarn_hw_set x = {FIND(g->r, s->kid[1], h->reg, h->nregister, "register"), field(g, s->kid[2])};
  uint32_t bits = tarn_hw_place_bits(h, g->format, x.field);
  if (bits > h->reg[x.reg].bits)
    tarn_sx_error(g->r->cx, s, "register %s has %u bits, field %s has %u", h->reg[x.reg].name,
                  h->reg[x.reg].bits, g->format->field[x.field].name, bits);
  return x;
}

static void pads(reading *g, const tarn_sx *s) {
  values(g->r, s, 4, 0, "TOP BOTTOM LEFT RIGHT");
  for (uint32_t i = 0; i < 4; i++) g->x->pad[i] = place(g, s->kid[i + 1]);
}
/* (main FIELD [bytes]), (stride FIELD [bytes]) */
static bool in_bytes(reading *g, const tarn_sx *s, uint32_t *at) {
  values(g->r, s, 1, 1, "FIELD [bytes]");
  *at = place(g, s->kid[1]);
  if (s->n == 3 && !tarn_sx_atom_is(s->kid[2], "bytes"))
    tarn_sx_error(g->r->cx, s->kid[2], "bytes, or nothing, is expected");
  return s->n == 3;
}
static uint32_t operand(reading *g, const tarn_sx *s, uint32_t intrinsic, bool immediate) {
  const tarn_hw_intrinsic *n = &g->h->intrin[intrinsic];
  uint32_t o = FIND(g->r, s, n->op, n->nop, "operand");
  if (n->op[o].immediate != immediate)
    tarn_sx_error(g->r->cx, s, "operand %s of intrinsic %s is %s immediate", n->op[o].name, n->name,
                  immediate ? "no" : "an");
  return o;
}
static void immediate(reading *g, const tarn_sx *s, uint32_t intrinsic) {
  values(g->r, s, 2, 0, "OPERAND FIELD");
  if (intrinsic == TARN_NONE) tarn_sx_error(g->r->cx, s, "there is no intrinsic with an immediate");
  operand(g, s->kid[1], intrinsic, true);
  g->x->immediate = place(g, s->kid[2]);
}
static void entries(reading *g, const tarn_sx *s) {
  values(g->r, s, 1, 1, "FIELD [PARTS]");
  g->x->entries = place(g, s->kid[1]);
  if (s->n == 3) g->x->units = tarn_sx_whole(g->r->cx, s, 2, 1, 1 << 20);
}
static void moves(reading *g, const tarn_sx *s) {
  const tarn_hw *h = g->h;
  tarn_hw_instruction *x = g->x;
  x->does = TARN_HW_MOVES;
  x->transfer = FIND(g->r, hw_arg(g->r, s, 1), h->transfer, h->ntransfer, "transfer");
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (f->kind == TARN_SX_LIST && f->n) hw_once(g->r, s, f);
    if (tarn_sx_is(f, "local")) x->local = one_place(g, f);
    else if (tarn_sx_is(f, "main")) x->bytes = in_bytes(g, f, &x->main);
    else if (tarn_sx_is(f, "rows")) x->rows = one_place(g, f);
    else if (tarn_sx_is(f, "entries")) entries(g, f);
    else if (tarn_sx_is(f, "stride")) x->stride_bytes = in_bytes(g, f, &x->stride);
    else if (tarn_sx_is(f, "block-stride")) x->block = one_place(g, f);
    else if (tarn_sx_is(f, "immediate")) immediate(g, f, h->transfer[x->transfer].intrinsic);
    else if (tarn_sx_is(f, "pad")) pads(g, f);
    else unknown(g->r, s, f);
  }
  if (x->local == TARN_NONE || x->main == TARN_NONE || x->entries == TARN_NONE)
    tarn_sx_error(g->r->cx, s,
                  "move %s: (local FIELD), (main FIELD) and (entries FIELD) are needed",
                  h->transfer[x->transfer].name);
}

static void loops(reading *g, const tarn_sx *s) {
  values(g->r, s, 1, TARN_HW_LOOPS - 1, "FIELD…");
  for (uint32_t i = 1; i < s->n; i++) g->x->loop[g->x->nloop++] = place(g, s->kid[i]);
}
static void steps(reading *g, const tarn_sx *s) {
  const tarn_hw *h = g->h;
  values(g->r, s, 4, 0, "MEMORY BEGIN END FORMAT");
  g->x->steps = FIND(g->r, s->kid[1], h->mem, h->nmem, "memory");
  g->x->begin = place(g, s->kid[2]), g->x->end = place(g, s->kid[3]);
  g->x->step = FIND(g->r, s->kid[4], h->format, h->nformat, "format");
}
/* (index OPERAND FIELD FACTOR…), a factor for each loop */
static tarn_hw_index index_of(reading *g, const tarn_sx *s) {
  values(g->r, s, 2 + g->x->nloop, 0, "OPERAND FIELD FACTOR…");
  tarn_hw_index x = {.operand = operand(g, s->kid[1], g->x->intrinsic, false)};
  if (g->x->step == TARN_NONE) x.field = place(g, s->kid[2]);
  else {
    const tarn_hw_format *step = &g->h->format[g->x->step];
    x.field = FIND(g->r, s->kid[2], step->field, step->nfield, "field");
  }
  for (uint32_t i = 0; i < g->x->nloop; i++) x.factor[i] = place(g, s->kid[i + 3]);
  return x;
}
static void runs_form(reading *g, const tarn_sx *s, const tarn_sx *f) {
  tarn_hw_instruction *x = g->x;
  if (tarn_sx_is(f, "steps")) hw_once(g->r, s, f), steps(g, f);
  else if (tarn_sx_is(f, "loops")) hw_once(g->r, s, f), loops(g, f);
  else if (tarn_sx_is(f, "clear"))
    hw_once(g->r, s, f), x->clear = flag_field(g, hw_arg(g->r, f, 1));
  else if (tarn_sx_is(f, "accumulate"))
    hw_once(g->r, s, f), x->accumulate = flag_field(g, hw_arg(g->r, f, 1));
  else if (tarn_sx_is(f, "immediate")) hw_once(g->r, s, f), immediate(g, f, x->intrinsic);
  else if (!tarn_sx_is(f, "index")) unknown(g->r, s, f);
}
static void runs(reading *g, const tarn_sx *s) {
  tarn_hw_instruction *x = g->x;
  TARN_VEC(tarn_hw_index) index = {0};
  x->does = TARN_HW_RUNS;
  x->intrinsic = FIND(g->r, hw_arg(g->r, s, 1), g->h->intrin, g->h->nintrin, "intrinsic");
  for (uint32_t i = 2; i < s->n; i++) runs_form(g, s, s->kid[i]);
  for (uint32_t i = 2; i < s->n; i++)
    if (tarn_sx_is(s->kid[i], "index")) tarn_push(g->r->cx, &index, index_of(g, s->kid[i]));
  x->index = index.p, x->nindex = index.n;
}

static void instruction_form(reading *g, const tarn_sx *s, const tarn_sx *f) {
  static const char *const doing[] = {"move", "run", "end"};
  tarn_ctx *cx = g->r->cx;
  if (tarn_sx_is(f, "is")) {
    tarn_hw_is x = fixed(g, f);
    for (uint32_t i = 0; i < g->is.n; i++)
      if (g->is.p[i].field == x.field)
        tarn_sx_error(cx, f, "instruction %s: (is …) of one field twice", g->x->name);
    tarn_push(cx, &g->is, x);
  } else if (tarn_sx_is(f, "pop")) tarn_push(cx, &g->pop, flag(g, f, true));
  else if (tarn_sx_is(f, "push")) tarn_push(cx, &g->push, flag(g, f, false));
  else if (tarn_sx_is(f, "set")) tarn_push(cx, &g->set, set(g, f));
  else if (!tarn_sx_is(f, "format") && !tarn_sx_is(f, "queue")) {
    uint32_t does = 0;
    while (does < 3 && !tarn_sx_is(f, doing[does])) does++;
    if (does == 3) unknown(g->r, s, f);
    if (g->x->does != TARN_HW_SETS)
      tarn_sx_error(cx, f, "instruction %s: one of move, run, end is expected", g->x->name);
    if (does == 0) moves(g, f);
    else if (does == 1) runs(g, f);
    else g->x->does = TARN_HW_ENDS;
  }
}
static tarn_hw_instruction nothing(hw_reader *r, const tarn_sx *s) {
  const uint32_t no = TARN_NONE;
  return (tarn_hw_instruction){.name = hw_name_of(r, s),
                               .source = s,
                               .format = no,
                               .queue = no,
                               .does = TARN_HW_SETS,
                               .units = 1,
                               .block = no,
                               .accumulate = no,
                               .transfer = no,
                               .local = no,
                               .main = no,
                               .rows = no,
                               .entries = no,
                               .stride = no,
                               .pad = {no, no, no, no},
                               .intrinsic = no,
                               .steps = no,
                               .begin = no,
                               .end = no,
                               .step = no,
                               .immediate = no,
                               .clear = no};
}
static tarn_hw_instruction read_instruction(hw_reader *r, const tarn_sx *s, const tarn_hw *h) {
  tarn_hw_instruction x = nothing(r, s);
  reading g = {.r = r, .h = h, .x = &x};
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (tarn_sx_is(f, "format"))
      hw_once(r, s, f), x.format = FIND(r, hw_value(r, f), h->format, h->nformat, "format");
    else if (tarn_sx_is(f, "queue"))
      hw_once(r, s, f), x.queue = FIND(r, hw_value(r, f), h->queue, h->nqueue, "queue");
  }
  if (h->nqueue == 1 && h->in_order) x.queue = 0;
  if (x.format == TARN_NONE || x.queue == TARN_NONE)
    tarn_sx_error(r->cx, s, "instruction %s: (format NAME) and (queue NAME) are needed", x.name);
  g.format = &h->format[x.format];
  for (uint32_t i = 2; i < s->n; i++) instruction_form(&g, s, s->kid[i]);
  if (x.does == TARN_HW_SETS && !g.set.n)
    tarn_sx_error(r->cx, s, "instruction %s: one of move, run, end, set is needed", x.name);
  x.set = g.set.p, x.nset = g.set.n;
  x.is = g.is.p, x.nis = g.is.n;
  x.pop = g.pop.p, x.npop = g.pop.n;
  x.push = g.push.p, x.npush = g.push.n;
  return x;
}

/* ---------------------------------------------------------------- limits, quirks, hazards */
static void read_limits(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  static const hw_form forms[] = {{"instructions", F_I64, offsetof(tarn_hw, instructions)},
                                  {"buffer", F_I64, offsetof(tarn_hw, buffer)},
                                  {"address-bits", F_U32, offsetof(tarn_hw, address_bits)},
                                  {0}};
  for (uint32_t i = 1; i < s->n; i++)
    if (!hw_store_form(r, forms, s, s->kid[i], h))
      tarn_sx_error(r->cx, s->kid[i], "limits: unknown form %s", s->kid[i]->kid[0]->text);
  if (h->address_bits > 62)
    tarn_sx_error(r->cx, s, "limits: %u bits of an address, 62 at most", h->address_bits);
}
static void read_quirks(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  static const struct {
    const char *name;
    tarn_hw_quirk quirk;
  } known[] = {{"store-needs-compute-write", TARN_HW_STORE_NEEDS_COMPUTE},
               {"reset-before-accumulation", TARN_HW_CLEAR_BEFORE_ACCUMULATE}};
  for (uint32_t i = 1; i < s->n; i++) {
    uint32_t k = 0;
    while (k < 2 && strcmp(known[k].name, s->kid[i]->text)) k++;
    if (k == 2)
      tarn_sx_error(r->cx, s->kid[i], "quirks: there is no quirk %s; there are %s, %s",
                    s->kid[i]->text, known[0].name, known[1].name);
    h->quirks |= known[k].quirk;
  }
}
static void read_hazards(hw_reader *r, const tarn_sx *s, tarn_hw *h) {
  if (!tarn_sx_atom_is(hw_value(r, s), "hardware"))
    tarn_sx_error(r->cx, s, "hazards: hardware is expected; tokens are described by (token …)");
  h->hazards = true;
}

bool hw_part(hw_reader *r, const tarn_sx *list, const tarn_sx *s, tarn_hw *h, hw_parts *parts) {
  struct {
    const char *name;
    hw_list *list;
  } kept[] = {{"queue", &parts->queue},       {"token", &parts->token},
              {"transfer", &parts->transfer}, {"format", &parts->format},
              {"register", &parts->reg},      {"instruction", &parts->instruction}};
  for (uint32_t i = 0; i < sizeof kept / sizeof *kept; i++)
    if (tarn_sx_is(s, kept[i].name)) {
      tarn_push(r->cx, kept[i].list, s);
      return true;
    }
  if (tarn_sx_is(s, "limits")) hw_once(r, list, s), read_limits(r, s, h);
  else if (tarn_sx_is(s, "quirks")) hw_once(r, list, s), read_quirks(r, s, h);
  else if (tarn_sx_is(s, "hazards")) hw_once(r, list, s), read_hazards(r, s, h);
  else return false;
  return true;
}

/* Reads the parts of one kind into an array of the description, each by READ. */
#define READ_ALL(kind, list_, array, count, READ)                                                  \
  do {                                                                                             \
    kind *all = TARN_ARRAY(r->cx, kind, (list_).n);                                                \
    h->array = all;                                                                                \
    for (uint32_t i = 0; i < (list_).n; i++) {                                                     \
      const tarn_sx *s = (list_).p[i];                                                             \
      all[i] = READ;                                                                               \
      is_new(r, s, all[i].name, all, i, sizeof *all);                                              \
      h->count = i + 1;                                                                            \
    }                                                                                              \
  } while (0)

/* A machine that does one instruction after another. */
static void one_queue(hw_reader *r, tarn_hw *h) {
  tarn_hw_queue *q = TARN_NEW(r->cx, tarn_hw_queue);
  q->name = h->name;
  h->queue = q, h->nqueue = 1, h->in_order = true;
}
void hw_read_parts(hw_reader *r, tarn_hw *h, const hw_parts *parts) {
  READ_ALL(tarn_hw_queue, parts->queue, queue, nqueue, read_queue(r, s));
  if (!h->nqueue && parts->instruction.n) one_queue(r, h);
  READ_ALL(tarn_hw_token, parts->token, token, ntoken, read_token(r, s, h));
  READ_ALL(tarn_hw_transfer, parts->transfer, transfer, ntransfer, read_transfer(r, s, h));
  READ_ALL(tarn_hw_format, parts->format, format, nformat, read_format(r, s));
  READ_ALL(tarn_hw_register, parts->reg, reg, nregister, read_register(r, s));
  READ_ALL(tarn_hw_instruction, parts->instruction, instruction, ninstruction,
           read_instruction(r, s, h));
}
