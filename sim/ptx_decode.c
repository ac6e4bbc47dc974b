/* From statements to ops: what each opcode does, which row of the table of lanes it is, and what
 * its words and operands may be. */
#include "sim/ptx_decode.h"
#include <string.h>

/* ---------------------------------------------------------------- words of an opcode */
static const char *const rounds[] = {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"};
enum { RN, RZ, RM, RP, RNI };
static bool ignored(const char *w) {
  static const char *const list[] = {"approx",   "full",    "rn",   "sync", "aligned", "uni",
                                     "volatile", "relaxed", "weak", "gpu",  "cta",     "sys"};
  for (uint32_t i = 0; i < sizeof list / sizeof *list; i++)
    if (!strcmp(w, list[i])) return true;
  return false;
}
static bool tells_rows_apart(const char *w) {
  static const char *const list[] = {"lo", "hi", "wide", "NaN", "l", "r", "wrap", "clamp"};
  for (uint32_t i = 0; i < sizeof list / sizeof *list; i++)
    if (!strcmp(w, list[i])) return true;
  return false;
}
static void add_type(ptx_decoder *d, ptx_type t) {
  if (d->ntype == 4) ptx_wrong(d, "too many types");
  d->type[d->ntype++] = t;
}
static void unknown(const ptx_decoder *d, const char *w) {
  ptx_refuse(d->cx, d->b->p->file, d->st->line, "%s: .%s is not simulated", d->st->op, w);
}
/* For arithmetic: types, flags and the key. */
static void read_words(ptx_decoder *d) {
  tarn_buf key = {.cx = d->cx};
  tarn_buf_str(&key, d->st->word[0]);
  for (uint32_t i = 1; i < d->st->nword; i++) {
    const char *w = d->st->word[i];
    ptx_type t = ptx_type_named(w);
    if (t) add_type(d, t);
    else if (!strcmp(w, "ftz")) d->x.flags |= PTX_FTZ;
    else if (!strcmp(w, "sat")) d->x.flags |= PTX_SAT;
    else if (!strcmp(w, "rz")) d->x.round = RZ;
    else if (!strcmp(w, "rm")) d->x.round = RM;
    else if (!strcmp(w, "rp")) d->x.round = RP;
    else if (tells_rows_apart(w)) tarn_buf_fmt(&key, ".%s", w);
    else if (!ignored(w)) unknown(d, w);
  }
  if (!d->ntype) ptx_wrong(d, "a type is expected");
  d->key = key.p;
}
static uint32_t find_row(ptx_decoder *d) {
  static const ptx_type same[][2] = {{PTX_U16, PTX_B16}, {PTX_U32, PTX_B32}, {PTX_U64, PTX_B64}};
  ptx_type t = d->type[0];
  bool fuses = !strcmp(d->key, "mad") && ptx_type_float(t);
  const char *key = tarn_format(d->cx, "%s.", fuses ? "fma" : d->key);
  uint32_t bytes = ptx_type_bytes(t), row;
  const char *more = "";
  static const char *const names[PTX_TYPES] = {
      [PTX_B16] = "b16",     [PTX_B32] = "b32",       [PTX_B64] = "b64",  [PTX_U16] = "u16",
      [PTX_U32] = "u32",     [PTX_U64] = "u64",       [PTX_S16] = "s16",  [PTX_S32] = "s32",
      [PTX_S64] = "s64",     [PTX_F16] = "f16",       [PTX_F32] = "f32",  [PTX_F64] = "f64",
      [PTX_F16X2] = "f16x2", [PTX_BF16X2] = "bf16x2", [PTX_BF16] = "bf16"};
  if (d->ntype == 2 && names[d->type[1]]) more = tarn_format(d->cx, ".%s", names[d->type[1]]);
  if (!names[t] || d->ntype > 2) return TARN_NONE;
  row = ptx_alu_find(tarn_format(d->cx, "%s%s%s", key, names[t], more));
  bool moves = !strcmp(d->key, "mov");
  if (row != TARN_NONE || (ptx_type_float(t) && !moves)) return row;
  for (uint32_t i = 0; i < 2 && row == TARN_NONE; i++) {
    uint32_t k = bytes == 2 ? 0 : bytes == 4 ? 1 : 2;
    row = ptx_alu_find(tarn_format(d->cx, "%s%s%s", key, names[same[k][i]], more));
  }
  return row;
}
/* The type that operand i of a row has, for numbers in the text. */
static ptx_type operand_type(const ptx_decoder *d, uint32_t bytes) {
  ptx_type t = d->type[0];
  if (ptx_type_float(t) && ptx_type_bytes(t) == bytes) return t;
  return bytes == 2 ? PTX_B16 : bytes == 4 ? PTX_B32 : PTX_B64;
}

/* ---------------------------------------------------------------- arithmetic */
enum { LOGIC_AND, LOGIC_OR, LOGIC_XOR, LOGIC_NOT, LOGIC_MOV };
static void logic(ptx_decoder *d) {
  static const char *const names[] = {"and", "or", "xor", "not", "mov"};
  uint16_t code = 0;
  while (code < 5 && strcmp(names[code], d->st->word[0])) code++;
  if (code == 5) ptx_wrong(d, "not for predicates");
  ptx_count(d, code < LOGIC_NOT ? 3 : 2, code < LOGIC_NOT ? 3 : 2);
  d->x.what = PTX_DO_LOGIC, d->x.code = code;
  d->x.a = ptx_predicate(d, 1);
  if (d->st->operand[1].negated && d->st->operand[1].kind == PTX_REGISTER) d->x.mode = 1;
  d->x.b = code < LOGIC_NOT ? ptx_predicate(d, 2) : d->x.a;
  d->x.not_c =
      d->st->noperand > 2 && d->st->operand[2].negated && d->st->operand[2].kind == PTX_REGISTER;
  d->x.d = ptx_dest_predicate(d, 0);
}
static void pack(ptx_decoder *d, const ptx_operand *parts, uint32_t whole_at, bool packs) {
  uint32_t bytes = ptx_type_bytes(d->type[0]), *v = TARN_ARRAY(d->cx, uint32_t, 8);
  if (parts->n != 2 && parts->n != 4) ptx_wrong(d, "two or four parts are expected");
  d->x.what = packs ? PTX_DO_PACK : PTX_DO_UNPACK;
  d->x.n = (uint8_t)parts->n, d->x.wide_d = (uint8_t)bytes;
  d->x.wide_a = (uint8_t)(bytes / parts->n);
  if (d->x.wide_a < 2) ptx_wrong(d, "parts of 8 bits are not simulated");
  ptx_type t = d->x.wide_a == 2 ? PTX_B16 : PTX_B32;
  for (uint32_t i = 0; i < parts->n; i++)
    v[i] = packs ? ptx_part_of(d, &parts->part[i], t)
                 : ptx_dest_of(d, &parts->part[i], d->x.wide_a, false);
  d->x.v = v;
  if (packs) d->x.d = ptx_dest_of(d, &d->st->operand[whole_at], bytes, false);
  else d->x.a = ptx_source(d, whole_at, d->type[0]);
}
/* rcp and rsqrt of half a double: such a row has no flags. */
static void tell_gross(ptx_decoder *d) {
  bool gross = d->type[0] == PTX_F64 && d->x.flags == PTX_FTZ && ptx_has(d, "approx");
  if (!gross || (strcmp(d->key, "rcp") && strcmp(d->key, "rsqrt"))) return;
  d->key = tarn_format(d->cx, "%s.approx", d->key);
  d->x.flags = 0;
}
static void alu(ptx_decoder *d) {
  read_words(d);
  tell_gross(d);
  if (d->type[0] == PTX_PRED) {
    logic(d);
    return;
  }
  bool moves = !strcmp(d->key, "mov");
  if (moves && d->st->noperand == 2) {
    const ptx_operand *o = d->st->operand;
    if (o[0].kind == PTX_VECTOR || o[1].kind == PTX_VECTOR) {
      pack(d, o[1].kind == PTX_VECTOR ? &o[1] : &o[0], o[1].kind == PTX_VECTOR ? 0 : 1,
           o[1].kind == PTX_VECTOR);
      return;
    }
  }
  uint32_t row = find_row(d);
  if (row == TARN_NONE) ptx_wrong(d, "no such instruction is simulated");
  if (d->x.round && d->type[0] < PTX_F32) ptx_wrong(d, "rounds to nearest only, for this type");
  if (d->x.flags && d->type[0] != PTX_F32) ptx_wrong(d, ".ftz and .sat are simulated of f32 only");
  const uint8_t *bytes = ptx_alu_bytes(row);
  uint32_t n = 1, *to[5] = {&d->x.d, &d->x.a, &d->x.b, &d->x.c, &d->x.d2};
  while (n < 5 && bytes[n]) n++;
  ptx_count(d, n, n);
  d->x.what = PTX_DO_ALU, d->x.code = (uint16_t)row;
  for (uint32_t i = 1; i < n; i++) *to[i] = ptx_source(d, i, operand_type(d, bytes[i]));
  d->x.d = ptx_dest_of(d, &d->st->operand[0], bytes[0], false);
}
static void testp(ptx_decoder *d) {
  for (uint32_t i = 1; i < d->st->nword; i++) {
    ptx_type t = ptx_type_named(d->st->word[i]);
    if (t) add_type(d, t);
    else if (d->x.n || !ptx_test_named(d->st->word[i], &d->x.n)) unknown(d, d->st->word[i]);
  }
  if (!d->x.n || d->ntype != 1 || (d->type[0] != PTX_F32 && d->type[0] != PTX_F64))
    ptx_wrong(d, "not understood");
  ptx_count(d, 2, 2);
  d->x.what = PTX_DO_SETP, d->x.type = (uint8_t)d->type[0];
  d->x.a = ptx_source(d, 1, d->type[0]);
  d->x.d = ptx_dest_predicate(d, 0);
}
static void setp(ptx_decoder *d) {
  bool compared = false;
  for (uint32_t i = 1; i < d->st->nword; i++) {
    const char *w = d->st->word[i];
    ptx_type t = ptx_type_named(w);
    if (t) add_type(d, t);
    else if (!compared && ptx_compare_named(w, &d->x.code)) compared = true;
    else if (!strcmp(w, "and")) d->x.mode = 1;
    else if (!strcmp(w, "or")) d->x.mode = 2;
    else if (!strcmp(w, "xor")) d->x.mode = 3;
    else if (strcmp(w, "ftz")) unknown(d, w);
  }
  if (!compared || d->ntype != 1 || ptx_type_bytes(d->type[0]) < 2) ptx_wrong(d, "not understood");
  if (d->type[0] == PTX_F16X2 || d->type[0] == PTX_BF16X2) unknown(d, "f16x2");
  ptx_count(d, d->x.mode ? 4 : 3, d->x.mode ? 4 : 3);
  d->x.what = PTX_DO_SETP, d->x.type = (uint8_t)d->type[0];
  d->x.a = ptx_source(d, 1, d->type[0]), d->x.b = ptx_source(d, 2, d->type[0]);
  if (d->x.mode) d->x.c = ptx_predicate(d, 3), d->x.not_c = d->st->operand[3].negated;
  d->x.d = ptx_dest_predicate(d, 0);
  d->x.d2 = d->st->operand[0].also;
  if (d->x.d2 != TARN_NONE) d->x.d2 = ptx_predicate_of(d, d->x.d2, true);
}
static void selp(ptx_decoder *d) {
  read_words(d);
  ptx_count(d, 4, 4);
  uint32_t bytes = ptx_type_bytes(d->type[0]);
  if (bytes < 2) ptx_wrong(d, "no such type");
  d->x.what = PTX_DO_SELP, d->x.wide_d = (uint8_t)bytes;
  d->x.a = ptx_source(d, 1, d->type[0]), d->x.b = ptx_source(d, 2, d->type[0]);
  d->x.c = ptx_predicate(d, 3), d->x.not_c = d->st->operand[3].negated;
  d->x.d = ptx_dest_of(d, &d->st->operand[0], bytes, false);
}
static void cvt(ptx_decoder *d) {
  for (uint32_t i = 1; i < d->st->nword; i++) {
    const char *w = d->st->word[i];
    ptx_type t = ptx_type_named(w);
    uint8_t k = 0;
    while (k < 8 && strcmp(w, rounds[k])) k++;
    if (t) add_type(d, t);
    else if (k < 8) d->x.round = k;
    else if (!strcmp(w, "ftz")) d->x.flags |= PTX_FTZ;
    else if (!strcmp(w, "sat")) d->x.flags |= PTX_SAT;
    else if (!strcmp(w, "rna")) d->x.round = RN;
    else unknown(d, w);
  }
  if (d->ntype != 2) ptx_wrong(d, "two types are expected");
  ptx_type to = d->type[0], from = d->type[1];
  bool two = to == PTX_F16X2 || to == PTX_BF16X2;
  ptx_count(d, two ? 3 : 2, two ? 3 : 2);
  if (from == PTX_F16X2 || from == PTX_BF16X2 || !ptx_type_bytes(to) || !ptx_type_bytes(from))
    ptx_wrong(d, "no such conversion is simulated");
  d->x.what = PTX_DO_CVT, d->x.type = (uint8_t)to, d->x.from = (uint8_t)from;
  const ptx_operand *o = &d->st->operand[1];
  bool number_given = o->kind != PTX_REGISTER;
  d->x.wide_a = (uint8_t)(number_given ? ptx_register_bytes(from) : ptx_bytes_at(d, 1));
  d->x.a =
      number_given ? ptx_source(d, 1, from) : ptx_reg(d, o->no, ptx_register_bytes(from), true);
  if (two) d->x.b = ptx_source(d, 2, from);
  d->x.d = ptx_dest_of(d, &d->st->operand[0], ptx_register_bytes(to), true);
  d->x.wide_d = (uint8_t)ptx_bytes_at(d, 0);
  if (!d->x.wide_d) d->x.wide_d = (uint8_t)ptx_register_bytes(to);
}
static void cvta(ptx_decoder *d) {
  ptx_space s = PTX_GENERIC;
  for (uint32_t i = 1; i < d->st->nword; i++)
    if (ptx_space_named(d->st->word[i])) s = ptx_space_named(d->st->word[i]);
  ptx_count(d, 2, 2);
  uint64_t by = ptx_window(s);
  d->x.what = PTX_DO_ALU, d->x.code = (uint16_t)ptx_alu_find("add.u64");
  d->x.a = ptx_source(d, 1, PTX_B64);
  d->x.b = ptx_constant(d, ptx_has(d, "to") ? 0 - by : by, 8);
  d->x.d = ptx_dest_of(d, &d->st->operand[0], 8, false);
}

/* ---------------------------------------------------------------- memory */
static void note_granule(ptx_decoder *d, uint32_t bytes) {
  if (d->x.space != PTX_PARAM && bytes < d->b->p->granule) d->b->p->granule = bytes;
}
static bool hint(const char *w) {
  static const char *const list[] = {
      "ca",   "cg",  "cs",  "lu",  "cv",      "wb",      "wt",      "nc",   "volatile", "relaxed",
      "weak", "gpu", "cta", "sys", "acquire", "release", "acq_rel", "sync", "aligned",  "noftz"};
  for (uint32_t i = 0; i < sizeof list / sizeof *list; i++)
    if (!strcmp(w, list[i])) return true;
  return !strncmp(w, "L1::", 4) || !strncmp(w, "L2::", 4);
}
static void read_memory_words(ptx_decoder *d, const char **what) {
  for (uint32_t i = 1; i < d->st->nword; i++) {
    const char *w = d->st->word[i];
    ptx_type t = ptx_type_named(w);
    if (t) add_type(d, t);
    else if (ptx_space_named(w)) d->x.space = (uint8_t)ptx_space_named(w);
    else if (!strcmp(w, "v2")) d->x.n = 2;
    else if (!strcmp(w, "v4")) d->x.n = 4;
    else if (!strcmp(w, "v8")) d->x.n = 8;
    else if (what && !*what) *what = w;
    else if (!hint(w)) unknown(d, w);
  }
  if (!d->x.n) d->x.n = 1;
  if (d->ntype != 1 || !ptx_type_bytes(d->type[0])) ptx_wrong(d, "one type is expected");
  d->x.type = (uint8_t)d->type[0];
}
static void load(ptx_decoder *d) {
  read_memory_words(d, NULL);
  ptx_count(d, 2, 2);
  d->x.what = PTX_DO_LOAD;
  ptx_address(d, 1, d->x.space, &d->x.a, &d->x.wide_a, &d->x.offset);
  note_granule(d, ptx_type_bytes(d->type[0]) * d->x.n);
  d->x.v = ptx_elements(d, &d->st->operand[0], true);
}
static void store(ptx_decoder *d) {
  read_memory_words(d, NULL);
  ptx_count(d, 2, 2);
  d->x.what = PTX_DO_STORE;
  if (d->x.space == PTX_PARAM || d->x.space == PTX_CONST) ptx_wrong(d, "is not written to");
  ptx_address(d, 0, d->x.space, &d->x.a, &d->x.wide_a, &d->x.offset);
  note_granule(d, ptx_type_bytes(d->type[0]) * d->x.n);
  d->x.v = ptx_elements(d, &d->st->operand[1], false);
}
/* red has no result: its operands are one place to the left. */
static void atom(ptx_decoder *d) {
  static const char *const names[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas"};
  const char *what = NULL;
  bool red = !strcmp(d->st->word[0], "red");
  for (uint32_t i = 1; i < d->st->nword; i++) {
    const char *w = d->st->word[i];
    uint16_t k = 0;
    while (k < 8 && strcmp(w, names[k])) k++;
    if (k < 8) what = w, d->x.code = k;
    else if (ptx_type_named(w)) add_type(d, ptx_type_named(w));
    else if (ptx_space_named(w)) d->x.space = (uint8_t)ptx_space_named(w);
    else if (!hint(w)) unknown(d, w);
  }
  if (!what || d->ntype != 1) ptx_wrong(d, "no such instruction is simulated");
  uint32_t bytes = ptx_type_bytes(d->type[0]);
  bool plain = !ptx_type_float(d->type[0]) || (d->type[0] >= PTX_F32 && !d->x.code);
  if (bytes < 4 || !plain) ptx_wrong(d, "no such type is simulated");
  uint32_t n = 3 - red + (d->x.code == 7);
  ptx_count(d, n, n);
  d->x.what = PTX_DO_ATOM, d->x.type = (uint8_t)d->type[0], d->x.wide_d = (uint8_t)bytes;
  ptx_address(d, 1 - red, d->x.space, &d->x.a, &d->x.wide_a, &d->x.offset);
  d->x.b = ptx_source(d, 2 - red, d->type[0]);
  d->x.c = d->x.code == 7 ? ptx_source(d, 3 - red, d->type[0]) : d->x.b;
  d->x.d = red ? ptx_room_for(d->b->e, bytes * PTX_LANES)
               : ptx_dest_of(d, &d->st->operand[0], bytes, false);
}
static void copies(ptx_decoder *d) {
  if (ptx_has(d, "commit_group")) {
    ptx_count(d, 0, 0);
    d->x.what = PTX_DO_COMMIT;
    return;
  }
  if (ptx_has(d, "wait_group") || ptx_has(d, "wait_all")) {
    ptx_count(d, ptx_has(d, "wait_group"), ptx_has(d, "wait_group"));
    d->x.what = PTX_DO_WAIT;
    d->x.offset = ptx_has(d, "wait_group") ? ptx_literal(d, 0, 0, 1 << 20) : -1;
    return;
  }
  if (!ptx_has(d, "async") || ptx_has(d, "bulk") || ptx_has(d, "mbarrier"))
    ptx_wrong(d, "no such copy is simulated");
  ptx_count(d, 3, 4);
  d->x.what = PTX_DO_COPY, d->x.n = (uint8_t)ptx_literal(d, 2, 4, 16);
  if (d->x.n & (d->x.n - 1)) ptx_wrong(d, "4, 8 or 16 bytes are expected");
  ptx_address(d, 0, PTX_SHARED, &d->x.a, &d->x.wide_a, &d->x.offset);
  int64_t *from = TARN_NEW(d->cx, int64_t);
  ptx_address(d, 1, PTX_GLOBAL, &d->x.b, &d->x.wide_d, from);
  uint32_t *v = TARN_ARRAY(d->cx, uint32_t, 2);
  v[0] = ptx_constant(d, (uint64_t)*from, 8);
  v[1] = d->st->noperand == 4 ? ptx_source(d, 3, PTX_B32) : ptx_constant(d, d->x.n, 4);
  d->x.v = v;
}

/* ---------------------------------------------------------------- control */
static void branch(ptx_decoder *d) {
  ptx_count(d, 1, 1);
  const ptx_operand *o = &d->st->operand[0];
  uint32_t id =
      o->kind == PTX_NAME ? tarn_intern_find(d->b->labels, o->name, strlen(o->name)) : TARN_NONE;
  if (id == TARN_NONE || ptx_has(d, "idx")) ptx_wrong(d, "a label is expected");
  d->x.what = PTX_DO_BRANCH, d->x.offset = d->b->label.p[id];
}
static void leave(ptx_decoder *d) {
  ptx_count(d, 0, 0);
  d->x.what = PTX_DO_EXIT;
}
static void nothing(ptx_decoder *d) { d->x.what = PTX_DO_NOTHING; }
static void barrier(ptx_decoder *d) {
  if (ptx_has(d, "warp")) {
    d->x.what = PTX_DO_WARP_BARRIER;
    return;
  }
  if (!ptx_has(d, "sync") || ptx_has(d, "red") || ptx_has(d, "cluster"))
    ptx_wrong(d, "no such barrier is simulated");
  if (d->st->noperand != 1) ptx_wrong(d, "barriers of a part of the threads are not simulated");
  d->x.what = PTX_DO_BARRIER, d->x.offset = ptx_literal(d, 0, 0, 15);
}

/* ---------------------------------------------------------------- warps */
static uint32_t also(ptx_decoder *d) {
  uint32_t no = d->st->operand[0].also;
  return no == TARN_NONE ? TARN_NONE : ptx_predicate_of(d, no, true);
}
static void shuffle(ptx_decoder *d) {
  static const char *const names[] = {"up", "down", "bfly", "idx"};
  uint16_t k = 0;
  while (k < 4 && !ptx_has(d, names[k])) k++;
  if (k == 4 || !ptx_has(d, "sync")) ptx_wrong(d, "no such instruction is simulated");
  ptx_count(d, 5, 5);
  d->x.what = PTX_DO_SHUFFLE, d->x.code = k;
  uint32_t *v = TARN_ARRAY(d->cx, uint32_t, 1);
  d->x.a = ptx_source(d, 1, PTX_B32), d->x.b = ptx_source(d, 2, PTX_B32),
  d->x.c = ptx_source(d, 3, PTX_B32);
  v[0] = ptx_source(d, 4, PTX_B32), d->x.v = v;
  d->x.d2 = also(d);
  d->x.d = ptx_dest_of(d, &d->st->operand[0], 4, false);
}
static void vote(ptx_decoder *d) {
  static const char *const names[] = {"all", "any", "uni", "ballot"};
  uint16_t k = 0;
  if (!strcmp(d->st->word[0], "activemask")) {
    ptx_count(d, 1, 1);
    d->x.what = PTX_DO_VOTE, d->x.code = 4, d->x.d = ptx_dest_of(d, &d->st->operand[0], 4, false);
    return;
  }
  while (k < 4 && !ptx_has(d, names[k])) k++;
  if (k == 4 || !ptx_has(d, "sync")) ptx_wrong(d, "no such instruction is simulated");
  ptx_count(d, 3, 3);
  d->x.what = PTX_DO_VOTE, d->x.code = k;
  d->x.a = ptx_predicate(d, 1), d->x.not_c = d->st->operand[1].negated;
  d->x.d = k == 3 ? ptx_dest_of(d, &d->st->operand[0], 4, false) : ptx_dest_predicate(d, 0);
}
static void ldmatrix(ptx_decoder *d) {
  d->x.n = ptx_has(d, "x4") ? 4 : ptx_has(d, "x2") ? 2 : 1;
  if (!ptx_has(d, "m8n8") || !ptx_has(d, "b16")) ptx_wrong(d, "no such shape is simulated");
  ptx_count(d, 2, 2);
  d->x.what = PTX_DO_LDMATRIX, d->x.mode = ptx_has(d, "trans"), d->x.space = PTX_SHARED;
  ptx_address(d, 1, PTX_SHARED, &d->x.a, &d->x.wide_a, &d->x.offset);
  d->type[0] = PTX_B32;
  const ptx_operand *o = &d->st->operand[0];
  d->x.v = ptx_elements(d, d->x.n == 1 && o->kind == PTX_VECTOR && o->n == 1 ? o->part : o, true);
}
/* d = a · b + c of 16 × 8 results; k: so many elements of the sum. */
static void mma(ptx_decoder *d) {
  static const struct {
    const char *shape;
    uint8_t k;
  } shapes[] = {{"m16n8k4", 4}, {"m16n8k8", 8}, {"m16n8k16", 16}, {"m16n8k32", 32}};
  for (uint32_t i = 1; i < d->st->nword; i++) {
    ptx_type t = ptx_type_named(d->st->word[i]);
    if (t) add_type(d, t);
    if (!strcmp(d->st->word[i], "satfinite")) d->x.flags |= PTX_SAT;
  }
  for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (ptx_has(d, shapes[i].shape)) d->x.n = shapes[i].k;
  ptx_type a = d->type[1], sum = d->type[0];
  uint32_t each = ptx_type_bytes(a);
  bool floats =
      (a == PTX_F16 || a == PTX_BF16 || a == PTX_TF32) && d->type[2] == a && sum == PTX_F32;
  bool ints = each == 1 && ptx_type_bytes(d->type[2]) == 1 && sum == PTX_S32;
  uint32_t regs =
      each ? d->x.n * each / 8 : 0; /* of a: two rows of 8 by so many words of four lanes */
  if (d->ntype != 4 || d->type[3] != sum || !(floats || ints) || regs < 2 || regs > 4 ||
      !ptx_has(d, "row") || !ptx_has(d, "col"))
    ptx_wrong(d, "no such product is simulated");
  ptx_count(d, 4, 4);
  uint32_t *v = TARN_ARRAY(d->cx, uint32_t, 14);
  if ((d->x.flags & PTX_SAT) && !ints) unknown(d, "satfinite");
  d->x.what = PTX_DO_MMA, d->x.type = (uint8_t)a, d->x.from = (uint8_t)d->type[2];
  d->x.mode = (uint8_t)regs;
  ptx_fragment(d, 1, regs, PTX_B32, false, v + 4),
      ptx_fragment(d, 2, regs / 2, PTX_B32, false, v + 8);
  ptx_fragment(d, 3, 4, sum, false, v + 10), ptx_fragment(d, 0, 4, sum, true, v);
  d->x.v = v;
}

/* ---------------------------------------------------------------- all of it */
typedef struct opcode {
  const char *name;
  void (*decode)(ptx_decoder *);
} opcode;
static const opcode opcodes[] = {
    {"setp", setp},      {"testp", testp},   {"selp", selp},        {"cvt", cvt},
    {"cvta", cvta},      {"ld", load},       {"ldu", load},         {"st", store},
    {"atom", atom},      {"red", atom},      {"cp", copies},        {"bra", branch},
    {"ret", leave},      {"exit", leave},    {"bar", barrier},      {"barrier", barrier},
    {"membar", nothing}, {"fence", nothing}, {"prefetch", nothing}, {"nanosleep", nothing},
    {"shfl", shuffle},   {"vote", vote},     {"activemask", vote},  {"ldmatrix", ldmatrix},
    {"mma", mma},
};
static void decode_one(ptx_decoder *d) {
  const ptx_statement *st = d->st;
  d->x.line = st->line, d->x.name = st->op;
  d->x.guarded = st->guard != TARN_NONE, d->x.guard_not = st->guard_not;
  if (d->x.guarded) d->x.guard = d->b->reg.p[st->guard].at;
  for (uint32_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
    if (!strcmp(opcodes[i].name, st->word[0])) {
      opcodes[i].decode(d);
      return;
    }
  alu(d);
}
static void check_registers(ptx_body *b) {
  for (uint32_t i = 0; i < b->reg.n; i++) {
    const ptx_register *r = &b->reg.p[i];
    if (r->written) continue;
    if (r->read)
      ptx_refuse(b->cx, b->p->file, b->e->line, "kernel %s: register %s is read and never written",
                 b->e->p.name, r->name);
    if (!r->packed) continue;
    ptx_number ones = {r->at, ptx_register_bytes(r->type), UINT64_MAX};
    tarn_push(b->cx, &b->e->number, ones);
  }
}
static void check_labels(ptx_body *b) {
  for (uint32_t i = 0; i < b->label.n; i++) {
    if (b->label.p[i] != TARN_NONE) continue;
    ptx_refuse(b->cx, b->p->file, b->e->line, "kernel %s: a label stands nowhere", b->e->p.name);
  }
}
void ptx_decode(ptx_body *b) {
  ptx_entry *e = b->e;
  e->file = 8 * PTX_LANES; /* for operands that are not there */
  for (uint32_t i = 0; i < b->reg.n; i++) {
    uint32_t bytes = ptx_register_bytes(b->reg.p[i].type);
    b->reg.p[i].at = ptx_room_for(e, b->reg.p[i].type == PTX_PRED ? 4 : bytes * PTX_LANES);
  }
  check_labels(b);
  e->op = TARN_ARRAY(b->cx, ptx_op, b->statement.n + 1);
  for (uint32_t i = 0; i < b->statement.n; i++) {
    ptx_decoder d = {.b = b, .cx = b->cx, .st = &b->statement.p[i]};
    d.x.d2 = TARN_NONE;
    decode_one(&d);
    e->op[e->nop++] = d.x;
  }
  e->op[e->nop++] = (ptx_op){.what = PTX_DO_EXIT, .line = e->line, .name = "}"};
  check_registers(b);
  e->p.registers = b->reg.n, e->p.instructions = b->statement.n;
}
