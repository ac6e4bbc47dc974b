/* Names on right sides: (let ((?m TERM)…) TERM). What reads a right side gets it with each name
 * replaced by the text that it stands for, one copy in memory however often it is used; so all
 * kinds of rules have names, and none knows of them. */
#include "rules/lang/reader.h"
#include <string.h>

enum { MOST_PARTS = 10000 }; /* of a right side, written out */

typedef struct local {
  const char *name;
  const tarn_sx *at;
  tarn_sx *term;
  uint64_t parts;
  bool used;
} local;
typedef struct locals {
  tarn_ctx *cx;
  local *p;
  uint32_t n;
} locals;

/* In a free set `let` may be an operator, but no operand is a list that begins with a list. */
static bool is_let(const tarn_ruleset *rs, const tarn_sx *s) {
  if (!tarn_sx_is(s, "let") || !rs->theory) return tarn_sx_is(s, "let");
  const tarn_sx *names = s->n > 1 ? s->kid[1] : s;
  return names != s && names->kind == TARN_SX_LIST &&
         (names->n == 0 || names->kid[0]->kind == TARN_SX_LIST);
}

static local *find(const locals *l, const tarn_sx *s) {
  for (uint32_t i = 0; s->kind == TARN_SX_ATOM && i < l->n; i++)
    if (strcmp(l->p[i].name, s->text) == 0) return &l->p[i];
  return NULL;
}

/* The text with names replaced; adds how many atoms and lists it has, written out. */
static tarn_sx *written_out(locals *l, tarn_sx *s, uint64_t *parts) {
  local *is = find(l, s);
  *parts += is ? is->parts : 1;
  if (*parts > MOST_PARTS)
    tarn_sx_error(l->cx, s, "the right side has more than %d parts, written out", MOST_PARTS);
  if (is) return is->used = true, is->term;
  if (s->kind != TARN_SX_LIST) return s;
  tarn_sx *copy = TARN_NEW(l->cx, tarn_sx);
  *copy = *s;
  copy->kid = TARN_ARRAY(l->cx, tarn_sx *, s->n ? s->n : 1);
  for (uint32_t i = 0; i < s->n; i++) copy->kid[i] = written_out(l, s->kid[i], parts);
  return copy;
}

static bool occurs(const tarn_sx *s, const char *name, const tarn_sx *but) {
  bool does = tarn_sx_atom_is(s, name);
  for (uint32_t i = 0; s != but && !does && i < s->n; i++) does = occurs(s->kid[i], name, but);
  return does;
}

/* (?m TERM) of the let `side` of a rule */
static void bind(locals *l, const tarn_sx *s, const tarn_sx *whole, const tarn_sx *side) {
  if (s->kind != TARN_SX_LIST || s->n != 2 || !reader_starts(s->kid[0], "?") ||
      reader_starts(s->kid[0], "?*"))
    tarn_sx_error(l->cx, s, "expected (?name TERM)");
  local new = {.name = s->kid[0]->text, .at = s};
  if (find(l, s->kid[0])) tarn_sx_error(l->cx, s, "%s is bound already", new.name);
  if (occurs(whole, new.name, side))
    tarn_sx_error(l->cx, s, "%s is used elsewhere in the rule; a name of the right side is not",
                  new.name);
  new.term = written_out(l, s->kid[1], &new.parts);
  l->p[l->n++] = new;
}

const tarn_sx *names_written_out(const tarn_ruleset *rs, const tarn_sx *whole,
                                 const tarn_sx *side) {
  if (!is_let(rs, side)) return side;
  if (side->n != 3 || side->kid[1]->kind != TARN_SX_LIST || side->kid[1]->n == 0)
    tarn_sx_error(rs->cx, side, "expected (let ((?name TERM)…) TERM)");
  const tarn_sx *names = side->kid[1];
  locals l = {.cx = rs->cx, .p = TARN_ARRAY(rs->cx, local, names->n)};
  for (uint32_t i = 0; i < names->n; i++) bind(&l, names->kid[i], whole, side);
  uint64_t parts = 0;
  const tarn_sx *all = written_out(&l, side->kid[2], &parts);
  for (uint32_t i = 0; i < l.n; i++)
    if (!l.p[i].used) tarn_sx_error(rs->cx, l.p[i].at, "%s is not used", l.p[i].name);
  return all;
}
