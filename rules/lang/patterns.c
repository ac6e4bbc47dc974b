/* Reading what a rule is made of: its variables, expressions, literals and patterns. */
#include "rules/lang/loops.h"
#include <string.h>

bool reader_starts(const tarn_sx *s, const char *prefix) {
  return s->kind == TARN_SX_ATOM && strncmp(s->text, prefix, strlen(prefix)) == 0;
}

/* ---------------------------------------------------------------- variables */

static uint32_t name_in(const char *const *names, uint32_t n, const char *s) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(names[i], s) == 0) return i;
  return TARN_NONE;
}

/* In which other space is the name taken? NULL: in none. */
static const char *taken(const rule *r, const char *s, const char *space) {
  if (strcmp(space, "class") && name_in(r->cls_name, r->ncls, s) != TARN_NONE) return "a term";
  if (strcmp(space, "attribute") && name_in(r->attr_name, r->nattr, s) != TARN_NONE)
    return "an attribute";
  if (strcmp(space, "segment") && name_in(r->seg_name, r->nseg, s) != TARN_NONE)
    return "a row of terms";
  if (strcmp(space, "operator") && name_in(r->opvar_name, r->nopvar, s) != TARN_NONE)
    return "an operator";
  return NULL;
}

static uint32_t variable(reader *rd, const tarn_sx *s, const char *space, const char **names,
                         uint32_t *n, uint32_t most) {
  if (s->kind != TARN_SX_ATOM) tarn_sx_error(rd->cx, s, "expected a variable");
  uint32_t i = name_in((const char *const *)names, *n, s->text);
  if (i != TARN_NONE) return i;
  const char *other = taken(rd->r, s->text, space);
  if (other) tarn_sx_error(rd->cx, s, "%s stands for %s elsewhere in the rule", s->text, other);
  if (!rd->left) tarn_sx_error(rd->cx, s, "%s is not bound by the left side", s->text);
  if (*n == most) tarn_sx_error(rd->cx, s, "more than %u %s variables", most, space);
  names[*n] = tarn_strdup(rd->cx, s->text);
  return (*n)++;
}

uint32_t reader_class(reader *rd, const tarn_sx *s) {
  return variable(rd, s, "class", rd->r->cls_name, &rd->r->ncls, R_CLASSES);
}
static uint32_t seg_variable(reader *rd, const tarn_sx *s) {
  return variable(rd, s, "segment", rd->r->seg_name, &rd->r->nseg, R_SEGS);
}

/* What a letter of rv.kind stands for. */
static const char *kind_name(char kind) {
  static const char *const name[] = {"i an integer",
                                     "l a list of integers",
                                     "x a scalar expression",
                                     "f a function",
                                     "m an index map",
                                     "n a nest",
                                     "s a shape",
                                     "r a reducer",
                                     "t a result type",
                                     "p an operator's attributes",
                                     "c a term",
                                     "g a row of operands",
                                     "b a condition",
                                     "y a name"};
  for (size_t i = 0; i < sizeof name / sizeof *name; i++)
    if (name[i][0] == kind) return name[i] + 2;
  return "something else";
}
uint32_t reader_attribute(reader *rd, const tarn_sx *s, char kind) {
  rule *r = rd->r;
  uint32_t before = r->nattr;
  uint32_t i = variable(rd, s, "attribute", r->attr_name, &r->nattr, R_ATTRS);
  if (i == before) r->attr_type[i] = kind;
  else if (r->attr_type[i] != kind)
    tarn_sx_error(rd->cx, s, "%s is %s here and %s elsewhere", s->text, kind_name(kind),
                  kind_name(r->attr_type[i]));
  return i;
}

/* ---------------------------------------------------------------- expressions */

rx *reader_rx(reader *rd, const tarn_sx *s) {
  rx *x = TARN_NEW(rd->cx, rx);
  x->at = s;
  return x;
}

static rx *variable_use(reader *rd, const tarn_sx *s) {
  const rule *r = rd->r;
  rx *x = reader_rx(rd, s);
  if ((x->var = name_in(r->attr_name, r->nattr, s->text)) != TARN_NONE) {
    x->kind = RX_VAR;
    x->type = r->attr_type[x->var];
  } else if ((x->var = name_in(r->cls_name, r->ncls, s->text)) != TARN_NONE) {
    x->kind = RX_CLASS;
    x->type = 'c';
  } else if ((x->var = name_in(r->seg_name, r->nseg, s->text)) != TARN_NONE) {
    x->kind = RX_SEG;
    x->type = 'g';
  } else tarn_sx_error(rd->cx, s, "%s is not bound by the left side", s->text);
  return x;
}

static rx *call(reader *rd, const tarn_sx *s) {
  rx *x = reader_rx(rd, s);
  char kinds[16];
  bool known;
  if (s->n == 0 || s->kid[0]->kind != TARN_SX_ATOM)
    tarn_sx_error(rd->cx, s, "expected (FUNCTION ARGUMENT…)");
  if (s->n - 1 >= sizeof kinds) tarn_sx_error(rd->cx, s, "too many arguments");
  x->kind = RX_CALL;
  x->n = s->n - 1;
  x->kid = TARN_ARRAY(rd->cx, rx *, x->n);
  for (uint32_t i = 0; i < x->n; i++) {
    x->kid[i] = reader_expression(rd, s->kid[i + 1]);
    kinds[i] = x->kid[i]->type;
  }
  kinds[x->n] = 0;
  x->fun = rfun_find(s->kid[0]->text, kinds, &known);
  if (!known) tarn_sx_error(rd->cx, s, "no function is called %s", s->kid[0]->text);
  if (!x->fun)
    tarn_sx_error(rd->cx, s, "%s takes no arguments of kinds \"%s\"", s->kid[0]->text, kinds);
  x->type = strchr(x->fun->sig, ':')[1];
  return x;
}

uint32_t reader_loop(const reader *rd, const tarn_sx *s) {
  const rule *r = rd->r;
  uint32_t i =
      s->kind == TARN_SX_ATOM && r->loops ? name_in(r->attr_name, r->nattr, s->text) : TARN_NONE;
  return i != TARN_NONE && r->attr_type[i] == 'o' ? i : TARN_NONE;
}

rx *reader_expression(reader *rd, const tarn_sx *s) {
  if (reader_starts(s, "?") || reader_loop(rd, s) != TARN_NONE) return variable_use(rd, s);
  if (s->kind == TARN_SX_LIST) return call(rd, s);
  rx *x = reader_rx(rd, s);
  x->kind = RX_LIT;
  if (s->kind == TARN_SX_INT) x->lit = (rv){.kind = x->type = 'i', .i = s->i};
  else if (s->kind == TARN_SX_REAL && !rd->rs->theory)
    x->lit = (rv){.kind = x->type = 'x', .id = tarn_fx_const(rd->rs->L, TARN_F32, s->r)};
  else x->lit = (rv){.kind = x->type = 'y', .name = s->text};
  return x;
}

/* ---------------------------------------------------------------- literals of payloads */

static rv int_list(reader *rd, const tarn_sx *s) {
  int64_t *p = TARN_ARRAY(rd->cx, int64_t, s->n ? s->n : 1);
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->kid[i]->kind != TARN_SX_INT) tarn_sx_error(rd->cx, s->kid[i], "expected an integer");
    p[i] = s->kid[i]->i;
  }
  return (rv){.kind = 'l', .n = s->n, .p = p};
}

static bool is_call(const tarn_sx *s) {
  bool known = false;
  if (s->kind == TARN_SX_LIST && s->n && s->kid[0]->kind == TARN_SX_ATOM)
    rfun_find(s->kid[0]->text, NULL, &known);
  return known;
}

static uint32_t reducer_literal(reader *rd, const tarn_sx *s, uint32_t op, const tarn_sx *node);
static rv literal(reader *rd, const tarn_sx *s, char kind, uint32_t op, const tarn_sx *node) {
  tarn_lang *L = rd->rs->L;
  uint32_t used;
  switch (kind) {
  case 'i':
    if (s->kind != TARN_SX_INT) tarn_sx_error(rd->cx, s, "expected an integer");
    return (rv){.kind = 'i', .i = s->i};
  case 'l':
    if (s->kind != TARN_SX_LIST) tarn_sx_error(rd->cx, s, "expected a list of integers");
    return int_list(rd, s);
  case 'x': return (rv){.kind = 'x', .id = tarn_fx_parse(L, s, TARN_F32)};
  case 's': {
    uint32_t t = tarn_type_parse(L, s, TARN_F32);
    return (rv){.kind = 's', .id = t};
  }
  case 'f':
  case 'm':
  case 'n':
    return (rv){.kind = kind,
                .id = tarn_payload_get(L, tarn_payload_parse(L, op, node, &used))->id};
  case 't':
    return (rv){.kind = kind,
                .id = tarn_payload_get(L, tarn_payload_parse(L, op, node, &used))->type};
  case 'y':
    if (s->kind == TARN_SX_LIST) tarn_sx_error(rd->cx, s, "expected a name");
    return (rv){.kind = kind, .name = tarn_strdup(rd->cx, s->text)};
  case 'r': return (rv){.kind = 'r', .id = reducer_literal(rd, s, op, node)};
  default: tarn_sx_error(rd->cx, s, "a variable must stand here");
  }
}

/* ---------------------------------------------------------------- patterns */

static rpat *new_pat(reader *rd, const tarn_sx *s) {
  rpat *p = TARN_NEW(rd->cx, rpat);
  p->at = s;
  p->opvar = TARN_NONE;
  return p;
}

/* How many elements after the operator are payload. */
static uint32_t payload_length(reader *rd, const tarn_sx *s, uint32_t op) {
  uint32_t least, most = (uint32_t)strlen(r_payload_spec(op, &least)), n = s->n - 1;
  const tarn_opinfo *info = tarn_op_info(op);
  if (info->max_kids != info->min_kids) {
    if (n < most) tarn_sx_error(rd->cx, s, "%s needs its payload", info->text);
    return most;
  }
  uint32_t kids = (uint32_t)info->min_kids;
  if (n < kids + least || n > kids + most)
    tarn_sx_error(rd->cx, s, "%s has %u terms and %u to %u payload elements", info->text, kids,
                  least, most);
  return n - kids;
}

/* ((TYPE SHAPE)), the result of a call, of which SHAPE is an expression? */
static bool computed_result(const tarn_sx *s) {
  if (s->kind != TARN_SX_LIST || s->n != 1 || s->kid[0]->kind != TARN_SX_LIST || s->kid[0]->n != 2)
    return false;
  return reader_starts(s->kid[0]->kid[1], "?") || is_call(s->kid[0]->kid[1]);
}

static rx *payload_expression(reader *rd, const tarn_sx *s, char kind) {
  rx *x;
  if (kind == 't' && computed_result(s)) {
    bool known;
    x = reader_rx(rd, s);
    *x = (rx){
        .kind = RX_CALL, .type = 't', .n = 2, .at = s, .fun = rfun_find("result", "ys", &known)};
    x->kid = TARN_ARRAY(rd->cx, rx *, 2);
    for (uint32_t i = 0; i < 2; i++) x->kid[i] = reader_expression(rd, s->kid[0]->kid[i]);
    if (x->kid[0]->type == 'y' && x->kid[1]->type == 's') return x;
    tarn_sx_error(rd->cx, s, "expected ((TYPE SHAPE))");
  }
  x = reader_expression(rd, s);
  if (x->type != kind)
    tarn_sx_error(rd->cx, s, "this is %s; %s is needed", kind_name(x->type), kind_name(kind));
  return x;
}

static rx *payload_element(reader *rd, const tarn_sx *node, uint32_t i, char kind, uint32_t op) {
  const tarn_sx *s = node->kid[i + 1];
  if (rd->left && reader_starts(s, "?")) {
    uint32_t v = reader_attribute(rd, s, kind);
    rx *x = reader_rx(rd, s);
    *x = (rx){.kind = RX_VAR, .type = kind, .var = v, .at = s};
    return x;
  }
  if (reader_starts(s, "?") || (kind != 'r' && is_call(s)) || (kind == 't' && computed_result(s)))
    return rd->left
               ? NULL
               : payload_expression(rd, s, kind); /* left: later, when all variables are bound */
  rx *x = reader_rx(rd, s);
  *x = (rx){.kind = RX_LIT, .type = kind, .lit = literal(rd, s, kind, op, node), .at = s};
  return x;
}

static void kids(reader *rd, rpat *p, const tarn_sx *s, uint32_t from) {
  p->n = s->n - from;
  p->kid = TARN_ARRAY(rd->cx, rpat *, p->n ? p->n : 1);
  for (uint32_t i = 0; i < p->n; i++) p->kid[i] = reader_pattern(rd, s->kid[from + i]);
}

/* Constants and memory spaces spelled out: the payload as one literal. False: there is a variable
 * or a function. */
static bool whole_payload(reader *rd, rpat *p, const tarn_sx *s) {
  uint32_t used = 0;
  if ((p->op != TARN_OP_CONST && p->op != TARN_OP_PLACE) || s->n < 2 ||
      reader_starts(s->kid[1], "?") || is_call(s->kid[1]))
    return false;
  uint32_t id = tarn_payload_parse(rd->rs->L, p->op, s, &used);
  p->npay = 1;
  p->pay = TARN_ARRAY(rd->cx, rx *, 1);
  p->pay[0] = reader_rx(rd, s);
  *p->pay[0] = (rx){.kind = RX_LIT, .type = 'p', .lit = {.kind = 'p', .id = id}, .at = s};
  kids(rd, p, s, 1 + used);
  return true;
}

/* (fold RED …): the reducer, by way of a payload that has it. */
static uint32_t reducer_literal(reader *rd, const tarn_sx *s, uint32_t op, const tarn_sx *node) {
  tarn_sx axis = {.kind = TARN_SX_INT, .text = "0"}, form = *node;
  tarn_sx *kid[3] = {node->kid[0], (tarn_sx *)(uintptr_t)s, &axis};
  uint32_t used;
  form.kid = kid, form.n = 3;
  return tarn_payload_get(rd->rs->L, tarn_payload_parse(rd->rs->L, op, &form, &used))->value;
}

/* (call NAME TERM…) of a kernel written by hand: the type follows from the operands. A call of an
 * intrinsic has integers and a type before them. */
static bool calls_written(reader *rd, const tarn_sx *s) {
  if (!tarn_sx_is(s, "call") || s->n < 3 || s->kid[1]->kind != TARN_SX_ATOM ||
      reader_starts(s->kid[1], "?"))
    return false;
  const tarn_sx *first = s->kid[2];
  bool term = first->kind == TARN_SX_LIST
                  ? first->n && first->kid[0]->kind == TARN_SX_ATOM && !is_call(first)
                  : name_in(rd->r->cls_name, rd->r->ncls, first->text) != TARN_NONE;
  if (!term) return false;
  if (rd->left) tarn_sx_error(rd->cx, s, "a kernel is called on right sides only");
  return true;
}
static void note_written(reader *rd, tarn_written *w) {
  rule *r = rd->r;
  for (uint32_t i = 0; i < r->nwritten; i++)
    if (r->written[i] == w) return;
  tarn_written **more = TARN_ARRAY(rd->cx, tarn_written *, r->nwritten + 1);
  for (uint32_t i = 0; i < r->nwritten; i++) more[i] = r->written[i];
  more[r->nwritten++] = w;
  r->written = more;
}
static rpat *written_node(reader *rd, const tarn_sx *s) {
  rpat *p = new_pat(rd, s);
  tarn_written *w = tarn_written_find(rd->rs->L, s->kid[1]->text);
  if (!w)
    tarn_sx_error(rd->cx, s->kid[1], "no (kernel %s …) stands before this rule", s->kid[1]->text);
  note_written(rd, w);
  *p = (rpat){.kind = RP_NODE, .op = TARN_OP_CALL, .opvar = TARN_NONE, .npay = 1, .at = s};
  p->pay = TARN_ARRAY(rd->cx, rx *, 1);
  p->pay[0] = reader_rx(rd, s);
  *p->pay[0] = (rx){.kind = RX_LIT, .type = 'y', .lit = {.kind = 'y', .name = w->name}, .at = s};
  kids(rd, p, s, 2);
  bool several = false;
  for (uint32_t i = 0; i < p->n; i++)
    several |= p->kid[i]->kind == RP_SEG || p->kid[i]->kind == RP_FOR || p->kid[i]->kind == RP_EACH;
  if (!several && p->n != w->nin)
    tarn_sx_error(rd->cx, s, "the kernel %s has %u operands", w->name, w->nin);
  return p;
}

static rpat *typed_node(reader *rd, const tarn_sx *s) {
  if (calls_written(rd, s)) return written_node(rd, s);
  rpat *p = new_pat(rd, s);
  p->kind = RP_NODE;
  p->op = tarn_op_find(s->kid[0]->text);
  if (p->op == TARN_NONE) tarn_sx_error(rd->cx, s, "no operator is called %s", s->kid[0]->text);
  if (rd->left) p->var = rd->r->nnode++;
  if (rd->left && p->var >= R_CLASSES) tarn_sx_error(rd->cx, s, "the pattern is too large");
  uint32_t least;
  const char *spec = r_payload_spec(p->op, &least);
  if (whole_payload(rd, p, s)) return p;
  p->npay = payload_length(rd, s, p->op);
  p->pay = TARN_ARRAY(rd->cx, rx *, p->npay ? p->npay : 1);
  /* cartProd's shared dims may be left out, at the front */
  for (uint32_t i = 0; i < p->npay; i++) p->pay[i] = payload_element(rd, s, i, spec[i], p->op);
  kids(rd, p, s, 1 + p->npay);
  return p;
}

static rpat *free_node(reader *rd, const tarn_sx *s) {
  rpat *p = new_pat(rd, s);
  const tarn_sx *head = s->kind == TARN_SX_LIST ? s->kid[0] : s;
  p->kind = RP_NODE;
  if (rd->left) p->var = rd->r->nnode++;
  if (rd->left && p->var >= R_CLASSES) tarn_sx_error(rd->cx, s, "the pattern is too large");
  if (reader_starts(head, "?")) {
    p->op = TARN_NONE;
    p->opvar = variable(rd, head, "operator", rd->r->opvar_name, &rd->r->nopvar, R_SEGS);
  } else p->op = rd->rs->theory->symbol(rd->rs, head->text, head->len);
  if (s->kind == TARN_SX_LIST) kids(rd, p, s, 1);
  return p;
}

static rpat *build_node(reader *rd, const tarn_sx *s) {
  rpat *p = new_pat(rd, s);
  p->kind = RP_BUILD;
  if (s->n < 2 || s->n > 3 || s->kid[1]->kind != TARN_SX_ATOM)
    tarn_sx_error(rd->cx, s, "expected (build NAME) or (build NAME ARGUMENT)");
  p->build = rd->rs->builder(s->kid[1]->text);
  if (!p->build) tarn_sx_error(rd->cx, s, "no builder is called %s", s->kid[1]->text);
  if (s->n == 3) p->arg = reader_expression(rd, s->kid[2]);
  const char *kind = strchr(p->build->name, ':');
  if ((p->arg ? p->arg->type : 0) != (kind ? kind[1] : 0))
    tarn_sx_error(rd->cx, s, kind ? "%s takes an argument of kind '%c'" : "%s takes no argument",
                  s->kid[1]->text, kind ? kind[1] : 0);
  return p;
}

/* (each ?*xs ?x PATTERN) */
static rpat *each_node(reader *rd, const tarn_sx *s) {
  rpat *p = new_pat(rd, s);
  if (s->n != 4 || !reader_starts(s->kid[1], "?*") || !reader_starts(s->kid[2], "?"))
    tarn_sx_error(rd->cx, s, "expected (each ?*xs ?x PATTERN)");
  p->kind = RP_EACH;
  p->var = seg_variable(rd, s->kid[1]);
  rd->left = true; /* the item's name is new here */
  p->item = reader_class(rd, s->kid[2]);
  rd->left = false;
  p->n = 1;
  p->kid = TARN_ARRAY(rd->cx, rpat *, 1);
  p->kid[0] = reader_pattern(rd, s->kid[3]);
  return p;
}

/* (for ?i COUNT PATTERN…) */
static rpat *for_node(reader *rd, const tarn_sx *s) {
  rpat *p = new_pat(rd, s);
  if (s->n < 4 || !reader_starts(s->kid[1], "?"))
    tarn_sx_error(rd->cx, s, "expected (for ?i COUNT PATTERN…)");
  p->kind = RP_FOR;
  p->npay = 1;
  p->pay = TARN_ARRAY(rd->cx, rx *, 1);
  p->pay[0] = reader_expression(rd, s->kid[2]);
  if (p->pay[0]->type != 'i')
    tarn_sx_error(rd->cx, s->kid[2], "expected an integer, not kind '%c'", p->pay[0]->type);
  rd->left = true; /* the number's name is new here */
  p->var = reader_attribute(rd, s->kid[1], 'i');
  rd->left = false;
  kids(rd, p, s, 3);
  return p;
}

/* (:value EXPRESSION), (:fresh PREFIX), (:add PATTERN…), (:delete PATTERN…), (:set ANALYSIS PATTERN
 * EXPRESSION) on the right of a free rule */
static rpat *free_form(reader *rd, const tarn_sx *s) {
  rpat *p = new_pat(rd, s);
  if (tarn_sx_is(s, ":value") && s->n == 2) {
    p->kind = RP_VALUE;
    p->value = rd->rs->theory->computed(rd->rs, rd->r, s->kid[1]);
  } else if (tarn_sx_is(s, ":fresh") && s->n == 2 && s->kid[1]->kind != TARN_SX_LIST) {
    p->kind = RP_FRESH;
    p->name = s->kid[1]->text;
  } else if ((tarn_sx_is(s, ":add") || tarn_sx_is(s, ":delete")) && s->n > 1) {
    p->kind = RP_ADD;
    p->deletes = tarn_sx_is(s, ":delete");
    kids(rd, p, s, 1);
  } else if (tarn_sx_is(s, ":set") && s->n == 4 && s->kid[1]->kind == TARN_SX_ATOM) {
    p->kind = RP_ADD, p->sets = true, p->name = s->kid[1]->text;
    p->kid = TARN_ARRAY(rd->cx, rpat *, 1);
    p->kid[0] = reader_pattern(rd, s->kid[2]), p->n = 1;
    p->value = rd->rs->theory->computed(rd->rs, rd->r, s->kid[3]);
  } else
    tarn_sx_error(rd->cx, s,
                  "expected (:value EXPRESSION), (:fresh PREFIX), (:add PATTERN…), (:delete "
                  "PATTERN…) or (:set ANALYSIS PATTERN EXPRESSION)");
  return p;
}

rpat *reader_pattern(reader *rd, const tarn_sx *s) {
  if (reader_starts(s, "?*")) {
    rpat *p = new_pat(rd, s);
    p->kind = RP_SEG;
    p->var = seg_variable(rd, s);
    return p;
  }
  if (reader_starts(s, "?")) {
    rpat *p = new_pat(rd, s);
    p->kind = RP_VAR;
    p->var = reader_class(rd, s);
    return p;
  }
  if (!rd->left && tarn_sx_is(s, "build") && !rd->rs->theory) return build_node(rd, s);
  if (!rd->left && tarn_sx_is(s, "each")) return each_node(rd, s);
  if (!rd->left && tarn_sx_is(s, "for") && !rd->rs->theory) return for_node(rd, s);
  if (rd->rs->theory) {
    if (s->kind == TARN_SX_LIST && (s->n == 0 || s->kid[0]->kind == TARN_SX_LIST))
      tarn_sx_error(rd->cx, s, "expected an operator");
    if (!rd->left && s->kind == TARN_SX_LIST && reader_starts(s->kid[0], ":"))
      return free_form(rd, s);
    return free_node(rd, s);
  }
  if (s->kind != TARN_SX_LIST || s->n == 0 || s->kid[0]->kind != TARN_SX_ATOM)
    tarn_sx_error(rd->cx, s, "expected a variable or (OPERATOR …)");
  return typed_node(rd, s);
}

void reader_deferred(reader *rd, rpat *p) {
  uint32_t least;
  for (uint32_t i = 0; i < p->npay; i++) {
    if (p->pay[i]) continue;
    p->pay[i] = payload_expression(rd, p->at->kid[i + 1], r_payload_spec(p->op, &least)[i]);
  }
  for (uint32_t i = 0; i < p->n; i++) reader_deferred(rd, p->kid[i]);
}
