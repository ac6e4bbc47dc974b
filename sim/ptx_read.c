/* The text of a PTX module, to names, registers and statements. */
#include "sim/ptx_internal.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SCOPES 64
#define MOST_BYTES  (INT64_C(1) << 28) /* of a variable */
typedef struct reader {
  tarn_ctx *cx;
  tarn_ptx *p;
  const char *s, *end; /* what is left */
  uint32_t line;       /* of the token */
  uint32_t now;        /* at s */
  const char *tok;
  size_t n;        /* 0: the end */
  ptx_body *body;  /* NULL: outside of kernels */
  ptx_body module; /* names of the module */
  uint32_t scope[MOST_SCOPES], nscope, scopes;
  int64_t bytes; /* of all variables */
} reader;

void ptx_refuse(tarn_ctx *cx, const char *file, uint32_t line, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *what = tarn_vformat(cx, fmt, ap);
  va_end(ap);
  tarn_raise(cx, TARN_BAD_INPUT, "%s:%u: %s", file, line, tarn_shown(cx, what));
}
#define REFUSE(r, ...) ptx_refuse((r)->cx, (r)->p->file, (r)->line, __VA_ARGS__)

/* ---------------------------------------------------------------- types */
static const struct {
  const char *name;
  uint8_t bytes;
} types[PTX_TYPES] = {
    [PTX_NOTYPE] = {"", 0},   [PTX_PRED] = {"pred", 0},   [PTX_B8] = {"b8", 1},
    [PTX_B16] = {"b16", 2},   [PTX_B32] = {"b32", 4},     [PTX_B64] = {"b64", 8},
    [PTX_U8] = {"u8", 1},     [PTX_U16] = {"u16", 2},     [PTX_U32] = {"u32", 4},
    [PTX_U64] = {"u64", 8},   [PTX_S8] = {"s8", 1},       [PTX_S16] = {"s16", 2},
    [PTX_S32] = {"s32", 4},   [PTX_S64] = {"s64", 8},     [PTX_F16] = {"f16", 2},
    [PTX_BF16] = {"bf16", 2}, [PTX_F16X2] = {"f16x2", 4}, [PTX_BF16X2] = {"bf16x2", 4},
    [PTX_TF32] = {"tf32", 4}, [PTX_F32] = {"f32", 4},     [PTX_F64] = {"f64", 8},
};
uint32_t ptx_type_bytes(ptx_type t) { return types[t].bytes; }
bool ptx_type_float(ptx_type t) { return t >= PTX_F16; }
bool ptx_type_signed(ptx_type t) { return t >= PTX_S8 && t <= PTX_S64; }
ptx_type ptx_type_named(const char *s) {
  for (uint32_t t = 1; t < PTX_TYPES; t++)
    if (!strcmp(s, types[t].name)) return (ptx_type)t;
  return PTX_NOTYPE;
}

/* ---------------------------------------------------------------- tokens */
static void skip_space(reader *r) {
  for (; r->s < r->end; r->s++) {
    if (*r->s == '\n') r->now++;
    if (isspace((unsigned char)*r->s)) continue;
    bool pair = r->end - r->s > 1 && *r->s == '/';
    if (pair && r->s[1] == '/') {
      while (r->s + 1 < r->end && r->s[1] != '\n') r->s++;
    } else if (pair && r->s[1] == '*') {
      for (r->s += 2; r->end - r->s > 1 && (r->s[0] != '*' || r->s[1] != '/'); r->s++)
        r->now += *r->s == '\n';
      if (r->end - r->s < 2) r->s = r->end - 1;
      else r->s++;
    } else return;
  }
}
static bool is_name(char c) { return isalnum((unsigned char)c) || strchr("_$%.", c); }
/* Names with their dots, numbers, strings, else one character. */
static void next(reader *r) {
  skip_space(r);
  r->line = r->now, r->tok = r->s, r->n = 0;
  if (r->s >= r->end) return;
  if (*r->s == '"') {
    for (r->s++; r->s < r->end && *r->s != '"' && *r->s != '\n'; r->s++) continue;
    if (r->s < r->end) r->s++;
  } else if (*r->s && is_name(*r->s)) {
    while (r->s < r->end && *r->s && is_name(*r->s)) r->s++;
  } else r->s++;
  r->n = (size_t)(r->s - r->tok);
}
static bool at(const reader *r, const char *s) {
  return r->n == strlen(s) && !memcmp(r->tok, s, r->n);
}
static const char *word(const reader *r) { return tarn_strndup(r->cx, r->tok, r->n); }
static bool take(reader *r, const char *s) {
  if (!at(r, s)) return false;
  next(r);
  return true;
}
static void expect(reader *r, const char *s) {
  if (!take(r, s)) REFUSE(r, "%.40s: %s is expected", r->n ? word(r) : "the end", s);
}
/* A name; of an opcode's parts, one that may begin with a digit. */
static const char *part(reader *r, bool digit) {
  if (!r->n || !is_name(*r->tok) || (!digit && isdigit((unsigned char)*r->tok)))
    REFUSE(r, "%.40s: a name is expected", r->n ? word(r) : "the end");
  const char *s = word(r);
  next(r);
  return s;
}
static const char *name(reader *r) { return part(r, false); }
/* Up to and with the semicolon. */
static void skip_statement(reader *r) {
  while (r->n && !at(r, ";")) next(r);
  expect(r, ";");
}

/* ---------------------------------------------------------------- numbers */
static bool hex_bits(const char *s, unsigned digits, uint64_t *bits) {
  char *stop;
  if (strlen(s) != digits) return false;
  *bits = strtoull(s, &stop, 16);
  return !*stop;
}
/* A number token, with its sign before it. False: it is none. */
static bool read_number(reader *r, bool minus, ptx_operand *o) {
  if (!r->n || !isdigit((unsigned char)*r->tok)) return false;
  const char *s = word(r);
  char *stop;
  uint64_t bits;
  *o = (ptx_operand){.kind = PTX_INTEGER, .no = TARN_NONE, .also = TARN_NONE};
  if ((s[1] == 'f' || s[1] == 'F') && s[0] == '0' && hex_bits(s + 2, 8, &bits)) {
    uint32_t half = (uint32_t)bits;
    float f;
    memcpy(&f, &half, sizeof f);
    o->kind = PTX_REAL, o->f = f, o->i = (int64_t)bits;
  } else if ((s[1] == 'd' || s[1] == 'D') && s[0] == '0' && hex_bits(s + 2, 16, &bits)) {
    o->kind = PTX_REAL;
    memcpy(&o->f, &bits, sizeof o->f);
  } else if (strchr(s, '.')) {
    o->kind = PTX_REAL, o->f = strtod(s, &stop);
    if (*stop) REFUSE(r, "%.40s: no number", s);
  } else {
    o->i = (int64_t)strtoull(s, &stop, 0);
    if (*stop == 'U') stop++;
    if (*stop) REFUSE(r, "%.40s: no number", s);
  }
  if (minus) o->f = -o->f, o->i = (int64_t)(0 - (uint64_t)o->i);
  next(r);
  return true;
}
static int64_t read_integer(reader *r, int64_t lo, int64_t hi) {
  ptx_operand o;
  uint32_t line = r->line;
  bool minus = take(r, "-");
  if (!read_number(r, minus, &o) || o.kind != PTX_INTEGER || o.i < lo || o.i > hi)
    ptx_refuse(r->cx, r->p->file, line, "a whole number from %lld to %lld is expected",
               (long long)lo, (long long)hi);
  return o.i;
}

/* ---------------------------------------------------------------- names */
static uint32_t name_key(ptx_body *b, uint32_t scope, const char *s, bool add) {
  char key[300];
  size_t n = strlen(s);
  if (n > 280) return TARN_NONE;
  memcpy(key, &scope, sizeof scope);
  memcpy(key + sizeof scope, s, n);
  n += sizeof scope;
  return add ? tarn_intern_add(b->names, key, n) : tarn_intern_find(b->names, key, n);
}
static void define(reader *r, ptx_body *b, const char *s, uint32_t what) {
  uint32_t scope = r->nscope ? r->scope[r->nscope - 1] : 0;
  uint32_t id = name_key(b, scope, s, true);
  if (id == TARN_NONE) REFUSE(r, "%.40s…: a name of more than 280 characters", s);
  if (id < b->named.n) REFUSE(r, "%s is defined twice", s);
  tarn_push(r->cx, &b->named, what);
}
#define VARIABLE 0x80000000u
static uint32_t look_up(const reader *r, ptx_body *b, const char *s) {
  for (uint32_t i = r->nscope; i-- > 0;) {
    uint32_t id = name_key(b, r->scope[i], s, false);
    if (id != TARN_NONE) return b->named.p[id];
  }
  return TARN_NONE;
}
const ptx_variable *ptx_variable_of(const ptx_body *b, const char *s) {
  for (uint32_t i = b->variable.n; i-- > 0;)
    if (!strcmp(b->variable.p[i]->name, s)) return b->variable.p[i];
  for (uint32_t i = 0; i < b->p->variable.n; i++)
    if (!strcmp(b->p->variable.p[i]->name, s)) return b->p->variable.p[i];
  return NULL;
}

/* ---------------------------------------------------------------- variables */
static void contents(reader *r, ptx_variable *v, ptx_type t, bool list) {
  uint32_t each = ptx_type_bytes(t);
  int64_t i = 0;
  uint8_t *data = tarn_new_array(r->cx, (size_t)v->bytes, 1);
  do {
    ptx_operand o;
    if (list && at(r, "}")) break;
    bool minus = take(r, "-");
    if (!read_number(r, minus, &o)) REFUSE(r, "%s: a number is expected", v->name);
    if ((i + 1) * each > v->bytes) REFUSE(r, "%s: more contents than bytes", v->name);
    float f = (float)o.f;
    const void *from = &o.i;
    if (t == PTX_F64) from = &o.f;
    else if (t == PTX_F32) from = &f;
    memcpy(data + i++ * each, from, each);
  } while (list && take(r, ","));
  v->data = data;
}
static uint64_t room(reader *r, uint32_t *end, const ptx_variable *v, int64_t most) {
  int64_t from = tarn_ceildiv(*end, v->align) * v->align;
  if (from + v->bytes > most)
    REFUSE(r, "%s: more than %lld bytes of such memory", v->name, (long long)most);
  *end = (uint32_t)(from + v->bytes);
  return (uint64_t)from;
}
/* What a launch asks for lies behind all other shared memory of a kernel, and begins the same for
 * each name. */
static void place_dynamic(reader *r, const ptx_variable *v) {
  if (r->body) REFUSE(r, "%s: memory of a launch is declared outside of kernels", v->name);
  r->p->dynamic = (uint32_t)tarn_max(r->p->dynamic, tarn_max(v->align, 16));
}
static void place(reader *r, ptx_variable *v) {
  ptx_body *b = r->body;
  if (v->dynamic) place_dynamic(r, v);
  else if (v->space == PTX_SHARED)
    v->at = room(r, b ? &b->shared_end : &r->module.shared_end, v, 1 << 20);
  else if (v->space == PTX_LOCAL && b) v->at = room(r, &b->local_end, v, 512 << 10);
  else if (v->space == PTX_LOCAL) REFUSE(r, "%s: local memory outside of a kernel", v->name);
  else if (v->space != PTX_SHARED) {
    v->at = (r->p->end + v->align + 255) / 256 * 256; /* not side by side */
    r->p->end = v->at + (uint64_t)v->bytes;
  }
  if (b) define(r, b, v->name, VARIABLE);
  if (b) tarn_push(r->cx, &b->variable, v);
  if (!b || v->space == PTX_GLOBAL || v->space == PTX_CONST) tarn_push(r->cx, &r->p->variable, v);
}
static ptx_type type_word(reader *r) {
  ptx_type t = r->n > 1 && *r->tok == '.' ? ptx_type_named(word(r) + 1) : PTX_NOTYPE;
  if (!t) REFUSE(r, "%.40s: a type is expected", r->n ? word(r) : "the end");
  next(r);
  return t;
}
/* [.align n] .type name[n] [= …] , … ; the space has been read. */
static void variables(reader *r, ptx_space space, bool external) {
  uint32_t align = 0, vector = 1;
  if (take(r, ".align")) {
    align = (uint32_t)read_integer(r, 1, 1024);
    if (align & (align - 1)) REFUSE(r, "an alignment of %u is no power of two", align);
  }
  if (take(r, ".v2")) vector = 2;
  else if (take(r, ".v4")) vector = 4;
  ptx_type t = type_word(r);
  uint32_t each = ptx_type_bytes(t) * vector;
  if (!each) REFUSE(r, "a predicate lies in no memory");
  do {
    ptx_variable *v = TARN_NEW(r->cx, ptx_variable);
    *v = (ptx_variable){.name = name(r), .space = space, .line = r->line, .bytes = each};
    v->align = align ? align : each;
    while (take(r, "[")) {
      v->bytes = at(r, "]") ? 0 : v->bytes * read_integer(r, 0, MOST_BYTES);
      if (v->bytes > MOST_BYTES) REFUSE(r, "%s: too many bytes", v->name);
      expect(r, "]");
    }
    r->bytes += v->bytes;
    if (r->bytes > 4 * MOST_BYTES) REFUSE(r, "%s: too many bytes of variables", v->name);
    v->dynamic = external && !v->bytes && space == PTX_SHARED;
    if (!v->bytes && !external) REFUSE(r, "%s: no bytes", v->name);
    if (take(r, "=")) {
      bool list = take(r, "{");
      contents(r, v, t, list);
      if (list) expect(r, "}");
    }
    place(r, v);
  } while (take(r, ","));
  expect(r, ";");
}
static bool space_word(const reader *r, ptx_space *space) {
  if (at(r, ".global")) *space = PTX_GLOBAL;
  else if (at(r, ".const")) *space = PTX_CONST;
  else if (at(r, ".shared")) *space = PTX_SHARED;
  else if (at(r, ".local")) *space = PTX_LOCAL;
  else return false;
  return true;
}

/* ---------------------------------------------------------------- registers */
static void add_register(reader *r, const char *s, ptx_type t) {
  ptx_register reg = {.name = s, .type = t};
  if (r->body->reg.n >= 1 << 20) REFUSE(r, "%s: more than a million registers", s);
  define(r, r->body, s, r->body->reg.n);
  tarn_push(r->cx, &r->body->reg, reg);
}
static void registers(reader *r) {
  ptx_type t = type_word(r);
  do {
    const char *s = name(r);
    if (!take(r, "<")) {
      add_register(r, s, t);
      continue;
    }
    int64_t n = read_integer(r, 0, 1 << 20);
    for (int64_t i = 0; i < n; i++)
      add_register(r, tarn_format(r->cx, "%s%lld", s, (long long)i), t);
    expect(r, ">");
  } while (take(r, ","));
  expect(r, ";");
}

/* ---------------------------------------------------------------- operands */
static void named_operand(reader *r, ptx_operand *o) {
  const char *s = name(r);
  uint32_t what = look_up(r, r->body, s);
  o->name = s;
  if (!strcmp(s, "_")) o->kind = PTX_SINK;
  else if (what != TARN_NONE && !(what & VARIABLE)) o->kind = PTX_REGISTER, o->no = what;
  else if (*s == '%') o->kind = PTX_SPECIAL;
  else o->kind = PTX_NAME;
}
static void simple(reader *r, ptx_operand *o) {
  *o = (ptx_operand){.no = TARN_NONE, .also = TARN_NONE};
  bool minus = take(r, "-");
  o->negated = !minus && take(r, "!");
  bool negated = o->negated;
  if (read_number(r, minus, o)) {
    if (negated) o->i = !o->i;
    return;
  }
  if (minus) REFUSE(r, "a number is expected behind -");
  named_operand(r, o);
}
static void address(reader *r, ptx_operand *o) {
  simple(r, o);
  if (o->kind == PTX_REAL || o->kind == PTX_SINK || o->kind == PTX_SPECIAL) REFUSE(r, "no address");
  if (o->kind != PTX_INTEGER && (at(r, "+") || at(r, "-"))) {
    ptx_operand by;
    bool minus = at(r, "-");
    next(r);
    minus ^= take(r, "-");
    if (!read_number(r, minus, &by) || by.kind != PTX_INTEGER) REFUSE(r, "an offset is expected");
    o->i = by.i;
  }
  o->kind = PTX_ADDRESS;
  expect(r, "]");
}
static void operand(reader *r, ptx_operand *o) {
  if (take(r, "[")) {
    address(r, o);
    return;
  }
  if (take(r, "{")) {
    *o = (ptx_operand){.kind = PTX_VECTOR, .no = TARN_NONE, .also = TARN_NONE};
    o->part = TARN_ARRAY(r->cx, ptx_operand, 8);
    do {
      if (o->n == 8) REFUSE(r, "a vector of more than 8 parts");
      simple(r, &o->part[o->n++]);
    } while (take(r, ","));
    expect(r, "}");
    return;
  }
  simple(r, o);
  if (!take(r, "|")) return;
  ptx_operand also;
  simple(r, &also);
  if (also.kind != PTX_REGISTER && also.kind != PTX_SINK)
    REFUSE(r, "a register is expected behind |");
  o->also = also.no;
}

/* ---------------------------------------------------------------- statements */
static void cut(reader *r, ptx_statement *st) {
  char *s = tarn_strdup(r->cx, st->op);
  for (; s; st->nword++) {
    if (st->nword == PTX_WORDS) REFUSE(r, "%.60s: more than %d parts", st->op, PTX_WORDS);
    char *dot = strchr(s, '.');
    st->word[st->nword] = s;
    if (dot) *dot++ = 0;
    s = dot;
    while (s && *s == ':') s++;
  }
}
static void label(reader *r, const char *s) {
  ptx_body *b = r->body;
  uint32_t id = tarn_intern_add(b->labels, s, strlen(s));
  while (b->label.n <= id) tarn_push(r->cx, &b->label, TARN_NONE);
  if (b->label.p[id] != TARN_NONE) REFUSE(r, "label %s stands twice", s);
  b->label.p[id] = b->statement.n;
}
/* mma.sync… .b32.s8::x and cp.async….L2::128B have colons in their opcodes. */
static void opcode(reader *r, ptx_statement *st) {
  tarn_buf b = {.cx = r->cx};
  tarn_buf_str(&b, name(r));
  while (at(r, ":") && r->s < r->end && *r->s == ':') {
    next(r), next(r);
    tarn_buf_str(&b, "::");
    tarn_buf_str(&b, part(r, true));
  }
  st->op = b.p;
  cut(r, st);
}
static void statement(reader *r) {
  ptx_statement st = {.line = r->line, .guard = TARN_NONE};
  if (take(r, "@")) {
    st.guard_not = take(r, "!");
    ptx_operand o;
    simple(r, &o);
    if (o.kind != PTX_REGISTER || r->body->reg.p[o.no].type != PTX_PRED)
      REFUSE(r, "a predicate is expected behind @");
    st.guard = o.no;
    r->body->reg.p[o.no].read = true;
    st.line = r->line;
  } else {
    const char *s = word(r), *from = r->s;
    uint32_t now = r->now;
    if (is_name(*r->tok) && *r->tok != '.') {
      next(r);
      if (at(r, ":") && (r->s >= r->end || *r->s != ':')) {
        next(r);
        label(r, s);
        return;
      }
      r->tok = s, r->n = strlen(s), r->s = from, r->now = now, r->line = st.line;
    }
  }
  opcode(r, &st);
  while (!at(r, ";")) {
    if (st.noperand == PTX_OPERANDS) REFUSE(r, "%s: too many operands", st.op);
    operand(r, &st.operand[st.noperand++]);
    if (!take(r, ",") && !at(r, ";")) REFUSE(r, "%s: ; is expected", st.op);
  }
  next(r);
  if (r->body->statement.n >= 1 << 22) REFUSE(r, "more than four million instructions");
  tarn_push(r->cx, &r->body->statement, st);
}
static void enter_scope(reader *r) {
  if (r->nscope == MOST_SCOPES) REFUSE(r, "more than %d braces within one another", MOST_SCOPES);
  r->scope[r->nscope++] = ++r->scopes;
}
static void body(reader *r) {
  enter_scope(r);
  while (r->nscope) {
    ptx_space space;
    if (!r->n) REFUSE(r, "the end in kernel %s: } is expected", r->body->e->p.name);
    if (take(r, "{")) enter_scope(r);
    else if (take(r, "}")) r->nscope--;
    else if (take(r, ".reg")) registers(r);
    else if (space_word(r, &space)) next(r), variables(r, space, false);
    else if (at(r, ".loc")) {
      uint32_t line = r->line;
      while (r->n && r->line == line) next(r);
    } else if (at(r, ".pragma")) skip_statement(r);
    else if (at(r, ";")) next(r);
    else if (*r->tok == '.') REFUSE(r, "%.40s is not simulated", word(r));
    else statement(r);
  }
}

/* ---------------------------------------------------------------- kernels */
static void params(reader *r, ptx_body *b) {
  TARN_VEC(tarn_ptx_param) list = {0};
  uint32_t end = 0;
  if (!take(r, "(")) return;
  while (!take(r, ")")) {
    ptx_variable *v = TARN_NEW(r->cx, ptx_variable);
    expect(r, ".param");
    uint32_t align = take(r, ".align") ? (uint32_t)read_integer(r, 1, 1024) : 0;
    uint32_t each = ptx_type_bytes(type_word(r));
    if (take(r, ".ptr")) {
      ptx_space space;
      if (space_word(r, &space)) next(r);
      if (take(r, ".align")) read_integer(r, 1, 1024);
    }
    *v = (ptx_variable){.name = name(r), .space = PTX_PARAM, .line = r->line, .bytes = each};
    v->align = align ? align : each;
    if (!each || (v->align & (v->align - 1))) REFUSE(r, "%s: no such parameter", v->name);
    if (take(r, "[")) v->bytes *= read_integer(r, 1, 4096), expect(r, "]");
    v->at = room(r, &end, v, 32 << 10);
    tarn_push(r->cx, &b->variable, v);
    tarn_ptx_param p = {v->name, (uint32_t)v->at, (uint32_t)v->bytes};
    tarn_push(r->cx, &list, p);
    if (!take(r, ",") && !at(r, ")")) REFUSE(r, ") is expected");
  }
  b->e->p.param = list.p, b->e->p.nparam = list.n, b->e->p.param_bytes = end;
}
static void dims(reader *r, uint32_t *d) {
  uint32_t n = 0;
  do {
    if (n == 3) REFUSE(r, "more than three dims");
    d[n++] = (uint32_t)read_integer(r, 1, PTX_THREADS);
  } while (take(r, ","));
  for (; n < 3; n++) d[n] = 1;
}
static void performance(reader *r, ptx_body *b) {
  while (r->n && *r->tok == '.') {
    if (take(r, ".maxntid")) dims(r, b->e->p.most);
    else if (take(r, ".reqntid")) dims(r, b->e->p.need);
    else if (take(r, ".minnctapersm") || take(r, ".maxnreg")) read_integer(r, 0, 1 << 20);
    else if (at(r, ".pragma")) skip_statement(r);
    else REFUSE(r, "%.40s is not simulated", word(r));
  }
}
static void entry(reader *r) {
  ptx_body b = {.cx = r->cx, .p = r->p, .e = TARN_NEW(r->cx, ptx_entry)};
  b.names = tarn_intern_new(r->cx), b.labels = tarn_intern_new(r->cx);
  b.numbers = tarn_intern_new(r->cx);
  b.shared_end = r->module.shared_end;
  b.e->line = r->line;
  b.e->p.name = name(r);
  if (tarn_ptx_find(r->p, b.e->p.name) != TARN_NONE)
    REFUSE(r, "kernel %s stands twice", b.e->p.name);
  r->body = &b;
  params(r, &b), performance(r, &b);
  expect(r, "{");
  body(r);
  r->body = NULL;
  if (r->p->dynamic) b.shared_end = (b.shared_end + r->p->dynamic - 1) & -r->p->dynamic;
  ptx_decode(&b);
  ptx_meets(r->cx, b.e);
  b.e->p.shared = b.shared_end, b.e->p.local = (b.local_end + 15) / 16 * 16;
  tarn_push(r->cx, &r->p->entry, b.e);
}
/* A declaration, or something that is not for running. */
static void directive(reader *r) {
  ptx_space space;
  bool external = false;
  while (at(r, ".visible") || at(r, ".extern") || at(r, ".weak") || at(r, ".common")) {
    external |= at(r, ".extern");
    next(r);
  }
  if (take(r, ".entry")) entry(r);
  else if (space_word(r, &space)) next(r), variables(r, space, external);
  else if (at(r, ".file")) {
    uint32_t line = r->line;
    while (r->n && r->line == line) next(r);
  } else if (at(r, ".section")) {
    while (r->n && !at(r, "}")) next(r);
    expect(r, "}");
  } else if (at(r, ".func")) REFUSE(r, ".func: functions that are called are not simulated");
  else REFUSE(r, "%.40s: no directive", r->n ? word(r) : "the end");
}
static void header(reader *r) {
  expect(r, ".version");
  next(r);
  expect(r, ".target");
  do name(r);
  while (take(r, ","));
  if (!take(r, ".address_size")) return;
  if (read_integer(r, 32, 64) != 64) REFUSE(r, "addresses of 64 bits only are simulated");
}

tarn_ptx *tarn_ptx_read(tarn_ctx *cx, const char *text, size_t n, const char *file) {
  tarn_ptx *p = TARN_NEW(cx, tarn_ptx);
  *p = (tarn_ptx){.cx = cx, .file = file, .granule = 4, .end = PTX_GLOBAL_AT};
  reader *r = TARN_NEW(cx, reader);
  *r = (reader){.cx = cx, .p = p, .s = text, .end = text + n, .now = 1};
  next(r);
  header(r);
  while (r->n) directive(r);
  return p;
}
uint32_t tarn_ptx_entries(const tarn_ptx *p) { return p->entry.n; }
const tarn_ptx_entry *tarn_ptx_entry_at(const tarn_ptx *p, uint32_t i) { return &p->entry.p[i]->p; }
uint32_t tarn_ptx_find(const tarn_ptx *p, const char *name) {
  for (uint32_t i = 0; i < p->entry.n; i++)
    if (!strcmp(p->entry.p[i]->p.name, name)) return i;
  return TARN_NONE;
}
