/* Operands of statements: where registers, numbers and special registers lie in a warp's file, what
 * an address names; which are read and which are written. */
#include "sim/ptx_decode.h"
#include <string.h>

void ptx_wrong(const ptx_decoder *d, const char *what) {
  ptx_refuse(d->cx, d->b->p->file, d->st->line, "%s: %s", d->st->op, what);
}
bool ptx_has(const ptx_decoder *d, const char *word) {
  for (uint32_t i = 1; i < d->st->nword; i++)
    if (!strcmp(d->st->word[i], word)) return true;
  return false;
}
void ptx_count(const ptx_decoder *d, uint32_t least, uint32_t most) {
  if (d->st->noperand < least || d->st->noperand > most) ptx_wrong(d, "wrong number of operands");
}

/* ---------------------------------------------------------------- registers and numbers */
uint32_t ptx_register_bytes(ptx_type t) {
  return t == PTX_PRED ? 4 : ptx_type_bytes(t) < 2 ? 2 : ptx_type_bytes(t);
}
uint32_t ptx_room_for(ptx_entry *e, uint32_t bytes) {
  uint32_t at = e->file;
  e->file += (bytes + 63) / 64 * 64;
  return at;
}
uint32_t ptx_constant(ptx_decoder *d, uint64_t bits, uint32_t bytes) {
  ptx_body *b = d->b;
  const struct { uint64_t bits, bytes; } key = {bits, bytes};
  uint32_t id = tarn_intern_add(b->numbers, &key, sizeof key);
  if (id == b->e->number.n) {
    ptx_number n = {ptx_room_for(b->e, bytes * PTX_LANES), bytes, bits};
    tarn_push(d->cx, &b->e->number, n);
  }
  return b->e->number.p[id].at;
}
static uint64_t bits_of(const ptx_decoder *d, const ptx_operand *o, ptx_type t) {
  uint64_t bits = (uint64_t)o->i;
  bool real = o->kind == PTX_REAL;
  double v = real ? o->f : (double)o->i;
  float f = (float)v;
  if (!real && !ptx_type_float(t)) return bits;
  if (t == PTX_F64 || (real && ptx_type_bytes(t) == 8)) memcpy(&bits, &v, sizeof v);
  else if (ptx_type_bytes(t) == 4) {
    uint32_t low;
    memcpy(&low, &f, sizeof low);
    bits = low;
  } else if (real) ptx_wrong(d, "a number with a point is expected of f32 and f64 only");
  return bits;
}
static uint32_t special(ptx_decoder *d, const char *name) {
  static const char *const names[PTX_SPECIAL_N] = {
#define QUOTED(s) s,
      PTX_SPECIALS(QUOTED)
#undef QUOTED
  };
  uint32_t *where = d->b->e->special;
  for (uint32_t i = 0; i < PTX_SPECIAL_N; i++)
    if (!strcmp(name, names[i])) {
      if (!where[i]) where[i] = ptx_room_for(d->b->e, 4 * PTX_LANES);
      return where[i];
    }
  ptx_refuse(d->cx, d->b->p->file, d->st->line, "%s: %s is not simulated", d->st->op, name);
}
uint32_t ptx_reg(ptx_decoder *d, uint32_t no, uint32_t bytes, bool wide) {
  ptx_register *r = &d->b->reg.p[no];
  uint32_t has_bytes = ptx_register_bytes(r->type);
  if (r->type == PTX_PRED || (wide ? has_bytes < bytes : has_bytes != bytes))
    ptx_refuse(d->cx, d->b->p->file, d->st->line, "%s: register %s is .%s", d->st->op, r->name,
               r->type == PTX_PRED ? "pred"
               : has_bytes == 2    ? "b16"
               : has_bytes == 4    ? "b32"
                                   : "b64");
  r->read = true;
  return r->at;
}
static uint64_t address_of(const ptx_decoder *d, const ptx_variable *v) {
  return v->dynamic ? d->b->shared_end : v->at;
}

/* ---------------------------------------------------------------- what is read and written */
/* Read: a register, a number, a special register, the address of a variable. */
static uint32_t source_of(ptx_decoder *d, const ptx_operand *o, ptx_type t) {
  uint32_t bytes = ptx_register_bytes(t);
  const ptx_variable *v;
  switch (o->kind) {
  case PTX_REGISTER:
    if (o->negated) ptx_wrong(d, "! is for predicates");
    return ptx_reg(d, o->no, bytes, false);
  case PTX_INTEGER:
  case PTX_REAL: return ptx_constant(d, bits_of(d, o, t), bytes);
  case PTX_SPECIAL:
    if (bytes != 4) ptx_wrong(d, "special registers have 32 bits");
    return special(d, o->name);
  case PTX_NAME:
    v = ptx_variable_of(d->b, o->name);
    if (!v || bytes < 4)
      ptx_refuse(d->cx, d->b->p->file, d->st->line, "%s: unknown name %s", d->st->op, o->name);
    return ptx_constant(d, address_of(d, v), bytes);
  default: ptx_wrong(d, "a register or a number is expected");
  }
}
uint32_t ptx_part_of(ptx_decoder *d, const ptx_operand *o, ptx_type t) {
  ptx_register *r = o->kind == PTX_REGISTER ? &d->b->reg.p[o->no] : NULL;
  bool read = r && r->read;
  uint32_t at = source_of(d, o, t);
  if (r) r->read = read, r->packed = true;
  return at;
}
uint32_t ptx_source(ptx_decoder *d, uint32_t i, ptx_type t) {
  return source_of(d, &d->st->operand[i], t);
}
uint32_t ptx_dest_of(ptx_decoder *d, const ptx_operand *o, uint32_t bytes, bool wide) {
  if (o->kind == PTX_SINK) return ptx_room_for(d->b->e, 8 * PTX_LANES);
  if (o->kind != PTX_REGISTER) ptx_wrong(d, "a register is expected");
  bool read = d->b->reg.p[o->no].read;
  uint32_t at = ptx_reg(d, o->no, bytes, wide);
  d->b->reg.p[o->no].read = read, d->b->reg.p[o->no].written = true;
  return at;
}
uint32_t ptx_predicate_of(ptx_decoder *d, uint32_t no, bool written) {
  ptx_register *r = no == TARN_NONE ? NULL : &d->b->reg.p[no];
  if (!r || r->type != PTX_PRED) ptx_wrong(d, "a predicate is expected");
  r->written |= written, r->read |= !written;
  return r->at;
}
uint32_t ptx_predicate(ptx_decoder *d, uint32_t i) {
  const ptx_operand *o = &d->st->operand[i];
  if (o->kind == PTX_INTEGER) return ptx_constant(d, o->i ? PTX_ALL : 0, 4);
  return ptx_predicate_of(d, o->kind == PTX_REGISTER ? o->no : TARN_NONE, false);
}
uint32_t ptx_dest_predicate(ptx_decoder *d, uint32_t i) {
  const ptx_operand *o = &d->st->operand[i];
  if (o->kind == PTX_SINK) return ptx_room_for(d->b->e, 4);
  return ptx_predicate_of(d, o->kind == PTX_REGISTER ? o->no : TARN_NONE, true);
}
uint32_t ptx_bytes_at(const ptx_decoder *d, uint32_t i) {
  const ptx_operand *o = &d->st->operand[i];
  return o->kind == PTX_REGISTER ? ptx_register_bytes(d->b->reg.p[o->no].type) : 0;
}

/* ---------------------------------------------------------------- addresses */
ptx_space ptx_space_named(const char *w) {
  if (!strcmp(w, "global")) return PTX_GLOBAL;
  if (!strncmp(w, "shared", 6)) return PTX_SHARED;
  if (!strcmp(w, "local")) return PTX_LOCAL;
  if (!strcmp(w, "const")) return PTX_CONST;
  if (!strncmp(w, "param", 5)) return PTX_PARAM;
  return PTX_GENERIC;
}
uint64_t ptx_window(ptx_space s) {
  return s == PTX_SHARED ? PTX_SHARED_AT : s == PTX_LOCAL ? PTX_LOCAL_AT : 0;
}
void ptx_address(ptx_decoder *d, uint32_t i, ptx_space space, uint32_t *base, uint8_t *bytes,
                 int64_t *offset) {
  const ptx_operand *o = &d->st->operand[i];
  if (o->kind != PTX_ADDRESS) ptx_wrong(d, "an address in brackets is expected");
  *offset = o->i, *bytes = 8;
  if (o->no != TARN_NONE) {
    *bytes = (uint8_t)ptx_register_bytes(d->b->reg.p[o->no].type);
    if (*bytes == 2) ptx_wrong(d, "an address of 16 bits");
    *base = ptx_reg(d, o->no, *bytes, false);
    return;
  }
  const ptx_variable *v = o->name ? ptx_variable_of(d->b, o->name) : NULL;
  if (o->name && !v)
    ptx_refuse(d->cx, d->b->p->file, d->st->line, "%s: unknown name %s", d->st->op, o->name);
  uint64_t at = v ? address_of(d, v) : 0;
  if (v && space == PTX_GENERIC) at += ptx_window(v->space);
  else if (v && v->space != space && !(space == PTX_GLOBAL && v->space == PTX_CONST))
    ptx_refuse(d->cx, d->b->p->file, d->st->line, "%s: %s lies in another memory", d->st->op,
               o->name);
  *base = ptx_constant(d, at, 8);
}
int64_t ptx_literal(ptx_decoder *d, uint32_t i, int64_t lo, int64_t hi) {
  const ptx_operand *o = &d->st->operand[i];
  if (o->kind != PTX_INTEGER || o->i < lo || o->i > hi)
    ptx_wrong(d, "such a number is not simulated");
  return o->i;
}

/* ---------------------------------------------------------------- several registers */
const uint32_t *ptx_elements(ptx_decoder *d, const ptx_operand *o, bool written) {
  uint32_t *v = TARN_ARRAY(d->cx, uint32_t, 8), n = d->x.n;
  const ptx_operand *part = n == 1 ? o : o->part;
  if (n > 1 && (o->kind != PTX_VECTOR || o->n != n)) ptx_wrong(d, "as many registers are expected");
  uint32_t least = ptx_register_bytes(d->type[0]);
  d->x.wide_d = (uint8_t)least;
  for (uint32_t i = 0; i < n; i++) {
    if (part[i].kind == PTX_REGISTER) {
      uint32_t wide = ptx_register_bytes(d->b->reg.p[part[i].no].type);
      if (i && wide != d->x.wide_d) ptx_wrong(d, "registers of different widths");
      d->x.wide_d = (uint8_t)wide;
    }
    if (written) v[i] = ptx_dest_of(d, &part[i], least, true);
    else if (part[i].kind == PTX_REGISTER) v[i] = ptx_reg(d, part[i].no, least, true);
    else v[i] = source_of(d, &part[i], d->type[0]);
  }
  return v;
}
void ptx_fragment(ptx_decoder *d, uint32_t i, uint32_t n, ptx_type t, bool written, uint32_t *v) {
  const ptx_operand *o = &d->st->operand[i];
  if (o->kind != PTX_VECTOR ? n != 1 : o->n != n) ptx_wrong(d, "as many registers are expected");
  const ptx_operand *part = o->kind == PTX_VECTOR ? o->part : o;
  for (uint32_t k = 0; k < n; k++)
    v[k] = written ? ptx_dest_of(d, &part[k], 4, false) : source_of(d, &part[k], t);
}
