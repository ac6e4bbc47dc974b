/* Reading scalar expressions, functions, payloads and terms from s-expressions; the inverse of
 * print.c. */
#include "access/fx_internal.h"
#include "access/parse.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- scalar expressions */
typedef struct fx_env { /* what let has named, innermost first */
  const char *name;
  uint32_t f;
  const struct fx_env *outer;
} fx_env;

static uint32_t fx_read(tarn_lang *L, const tarn_sx *s, tarn_dtype literal, const fx_env *env);

static uint32_t fx_constant(tarn_lang *L, const tarn_sx *s, tarn_dtype t) {
  tarn_value v = tarn_number_parse(L, s, t);
  return tarn_dtype_is_float(t) ? tarn_fx_const(L, t, v.d) : tarn_fx_iconst(L, t, v.i);
}

static uint32_t fx_atom(tarn_lang *L, const tarn_sx *s, tarn_dtype literal, const fx_env *env) {
  char *end;
  if (s->kind == TARN_SX_INT || s->kind == TARN_SX_REAL) return fx_constant(L, s, literal);
  if (tarn_sx_atom_is(s, "true") || tarn_sx_atom_is(s, "false"))
    return fx_constant(L, s, TARN_BOOL);
  if (s->kind == TARN_SX_ATOM && s->text[0] == '$' && s->text[1] >= '0' && s->text[1] <= '9') {
    unsigned long i = strtoul(s->text + 1, &end, 10);
    if (!*end && i < UINT16_MAX) return tarn_fx_hole(L, (uint32_t)i);
  }
  for (; s->kind == TARN_SX_ATOM && env; env = env->outer)
    if (strcmp(env->name, s->text) == 0) return env->f;
  tarn_sx_error(L->cx, s, "a scalar expression is expected ($0, a number, true, (add …) …)");
}

static uint32_t fx_let(tarn_lang *L, const tarn_sx *s, tarn_dtype literal, const fx_env *env) {
  const tarn_sx *names = tarn_sx_at(L, s, 1, "the named expressions");
  if (s->n != 3 || names->kind != TARN_SX_LIST)
    tarn_sx_error(L->cx, s, "(let ((%%a E)…) E) is expected");
  for (uint32_t i = 0; i < names->n; i++) {
    const tarn_sx *name = tarn_sx_at(L, names->kid[i], 0, "a name");
    fx_env *e = TARN_NEW(L->cx, fx_env);
    if (name->kind != TARN_SX_ATOM || name->text[0] != '%' || names->kid[i]->n != 2)
      tarn_sx_error(L->cx, names->kid[i], "(%%a E) is expected");
    *e = (fx_env){name->text, fx_read(L, names->kid[i]->kid[1], literal, env), env};
    env = e;
  }
  return fx_read(L, s->kid[2], literal, env);
}

static uint32_t fx_read(tarn_lang *L, const tarn_sx *s, tarn_dtype literal, const fx_env *env) {
  tarn_dtype t;
  uint32_t kid[3] = {0};
  if (s->kind != TARN_SX_LIST) return fx_atom(L, s, literal, env);
  const tarn_sx *head = tarn_sx_at(L, s, 0, "an operator");
  if (tarn_sx_atom_is(head, "let")) return fx_let(L, s, literal, env);
  if (tarn_dtype_parse(head->text, &t) && s->n == 2) return fx_constant(L, s->kid[1], t);
  uint32_t op = head->kind == TARN_SX_ATOM ? tarn_fx_find(head->text) : TARN_NONE;
  if (op == TARN_NONE) tarn_sx_error(L->cx, head, "no scalar operator is called %s", head->text);
  uint32_t first = op == TARN_FX_CAST ? 2 : 1, arity = tarn_fx_info(op)->arity;
  if (s->n != first + arity)
    tarn_sx_error(L->cx, s, "%s takes %u operand%s", head->text, arity, arity == 1 ? "" : "s");
  for (uint32_t i = 0; i < arity; i++) kid[i] = fx_read(L, s->kid[first + i], literal, env);
  if (op == TARN_FX_CAST) return tarn_fx_cast(L, tarn_dtype_read(L, s->kid[1]), kid[0]);
  return tarn_fx_op(L, (tarn_fxop)op, kid[0], kid[1], kid[2]);
}

uint32_t tarn_fx_parse(tarn_lang *L, const tarn_sx *s, tarn_dtype literal) {
  return fx_read(L, s, literal, NULL);
}

/* ---------------------------------------------------------------- reducers */
static uint32_t find_name(const char *const *names, const char *s) {
  for (uint32_t k = TARN_RED_SUM; k < TARN_RED_CUSTOM; k++)
    if (strcmp(names[k], s) == 0) return k;
  return TARN_RED_NONE;
}

/* NAME or (NAME dtype): its name, "" when it is neither; dtype f32 unless given */
static const char *name_with_dtype(tarn_lang *L, const tarn_sx *s, tarn_dtype *t) {
  *t = TARN_F32;
  if (s->kind == TARN_SX_ATOM) return s->text;
  if (s->kind != TARN_SX_LIST || s->n != 2 || s->kid[0]->kind != TARN_SX_ATOM) return "";
  if (s->kid[1]->kind != TARN_SX_ATOM || !tarn_dtype_parse(s->kid[1]->text, t)) return "";
  *t = tarn_dtype_read(L, s->kid[1]);
  return s->kid[0]->text;
}

static void custom_state(tarn_lang *L, const tarn_sx *s, tarn_reducer *r) {
  if (!tarn_sx_is(s, "state") || s->n < 2 || s->n > TARN_MAX_STATE + 1)
    tarn_sx_error(L->cx, s, "(state (INIT STEP [MERGE])…) with at most %d parts is expected",
                  TARN_MAX_STATE);
  r->ns = (uint8_t)(s->n - 1);
  for (uint32_t i = 0; i < r->ns; i++) {
    const tarn_sx *part = s->kid[i + 1];
    r->init[i] = tarn_fx_parse(L, tarn_sx_at(L, part, 0, "the initial value"), TARN_F32);
    r->step[i] = tarn_fx_parse(L, tarn_sx_at(L, part, 1, "the step"), TARN_F32);
    r->merge[i] = part->n > 2 ? tarn_fx_parse(L, part->kid[2], TARN_F32) : TARN_NONE;
    if (part->n > 3) tarn_sx_error(L->cx, part, "(INIT STEP [MERGE]) is expected");
  }
}

static uint32_t custom_reducer(tarn_lang *L, const tarn_sx *s) {
  tarn_reducer r = {.kind = TARN_RED_CUSTOM};
  if (s->n < 4 || s->n > 5 || (s->n == 5 && !tarn_sx_atom_is(s->kid[4], "commutative")))
    tarn_sx_error(L->cx, s, "(reducer DTYPE (state …) RESULT [commutative]) is expected");
  r.dtype = tarn_dtype_read(L, s->kid[1]);
  custom_state(L, s->kid[2], &r);
  r.result = tarn_fx_parse(L, s->kid[3], TARN_F32);
  r.commutative = s->n == 5;
  uint32_t id = tarn_reducer_intern(L, &r);
  tarn_dtype state[TARN_MAX_STATE], out;
  if (!tarn_reducer_type(L, id, state, &out)) tarn_sx_error(L->cx, s, "%s", tarn_message(L->cx));
  return id;
}

static uint32_t read_reducer(tarn_lang *L, const tarn_sx *s) {
  tarn_dtype t;
  if (tarn_sx_is(s, "reducer")) return custom_reducer(L, s);
  uint32_t k = find_name(tarn_red_names, name_with_dtype(L, s, &t));
  if (k == TARN_RED_NONE)
    tarn_sx_error(L->cx, s, "a reducer (sum, prod, max, min, (sum f64), (reducer …)) is expected");
  return tarn_reducer_of(L, (tarn_red_kind)k, t);
}

/* ---------------------------------------------------------------- functions */
/* The (ops N) or (tuple N) at the end, if any. */
static void fn_options(tarn_lang *L, const tarn_sx *s, uint32_t at, tarn_func *f) {
  if (at >= s->n) return;
  const tarn_sx *o = s->kid[at];
  bool ops = tarn_sx_is(o, "ops"), tuple = tarn_sx_is(o, "tuple");
  if ((!ops && !tuple) || o->n != 2 || at + 1 < s->n)
    tarn_sx_error(L->cx, o, "(ops N) or (tuple N) is expected");
  int64_t n = tarn_int_parse(L, o->kid[1]);
  if (n < 1 || n > UINT8_MAX) tarn_sx_error(L->cx, o, "the number is out of range");
  if (tuple) f->ntuple = (uint8_t)n;
  f->nops = ops ? (uint8_t)n : 1;
}

/* (map BODY …) or (red RED BODY …) */
static tarn_func fn_body(tarn_lang *L, const tarn_sx *s) {
  bool red = tarn_sx_is(s, "red");
  uint32_t at = red ? 2 : 1;
  tarn_func f = {.red = TARN_NONE, .epi = TARN_NONE};
  if (red) f.red = read_reducer(L, tarn_sx_at(L, s, 1, "a reducer"));
  f.body = tarn_fx_parse(L, tarn_sx_at(L, s, at, "the body"), TARN_F32);
  uint32_t holes = tarn_fx_holes(L, f.body);
  if (holes > UINT8_MAX) tarn_sx_error(L->cx, s, "more than %d operands", UINT8_MAX);
  f.nops = holes ? (uint8_t)holes : 1;
  fn_options(L, s, at + 1, &f);
  if (holes > (f.ntuple ? f.ntuple : f.nops)) tarn_sx_error(L->cx, s, "the body uses more values");
  return f;
}

static uint32_t fn_named(tarn_lang *L, const tarn_sx *s) {
  tarn_dtype t;
  const char *name = name_with_dtype(L, s, &t);
  if (strcmp(name, "dotProd") == 0) return tarn_fn_dot(L, t);
  uint32_t k = find_name(tarn_reduce_names, name);
  if (k == TARN_RED_NONE)
    tarn_sx_error(L->cx, s,
                  "a function is expected: dotProd, reduceSum, reduceMax, (map …), "
                  "(red …), (epi …)");
  uint32_t red = tarn_reducer_of(L, (tarn_red_kind)k, t);
  return tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, red);
}

/* (epi E F [(ops N)]) */
static uint32_t fn_epilogue(tarn_lang *L, const tarn_sx *s) {
  const tarn_sx *inner = tarn_sx_at(L, s, 2, "the function");
  if (tarn_sx_is(inner, "epi")) tarn_sx_error(L->cx, inner, "an epilogue of an epilogue");
  tarn_func f = *tarn_fn_get(L, tarn_fn_parse(L, inner)), options = {0};
  uint32_t last = f.epi; /* that of a short name */
  f.epi = tarn_fx_parse(L, s->kid[1], TARN_F32);
  uint32_t holes = tarn_fx_holes(L, f.epi);
  if (holes > UINT8_MAX) tarn_sx_error(L->cx, s, "more than %d operands", UINT8_MAX);
  f.nepi = holes ? (uint8_t)(holes - 1) : 0;
  if (s->n > 3) {
    fn_options(L, s, 3, &options);
    if (options.ntuple || options.nops < f.nepi) tarn_sx_error(L->cx, s, "too few operands");
    f.nepi = options.nops;
  }
  if (last != TARN_NONE) f.epi = tarn_fx_subst(L, f.epi, &last, 1);
  return tarn_fn_intern(L, &f);
}

uint32_t tarn_fn_parse(tarn_lang *L, const tarn_sx *s) {
  if (tarn_sx_is(s, "epi")) return fn_epilogue(L, s);
  if (!tarn_sx_is(s, "map") && !tarn_sx_is(s, "red")) return fn_named(L, s);
  tarn_func f = fn_body(L, s);
  return tarn_fn_intern(L, &f);
}

/* ---------------------------------------------------------------- payloads: integers */
typedef struct cursor { /* the next element of a form to be read */
  tarn_lang *L;
  const tarn_sx *s;
  uint32_t i;
} cursor;

static const tarn_sx *next(cursor *c, const char *what) {
  return tarn_sx_at(c->L, c->s, c->i++, what);
}

static bool more_ints(const cursor *c) {
  return c->i < c->s->n && c->s->kid[c->i]->kind == TARN_SX_INT;
}

static uint32_t bare_ints(cursor *c, uint32_t op) {
  int64_t v[4] = {0, 0, 0, 1}; /* a slice's step is 1, a cartProd shares no dims */
  const tarn_opinfo *f = tarn_op_info(op);
  uint32_t n = 0;
  while (n < f->min_ints) v[n++] = tarn_int_parse(c->L, next(c, "an integer"));
  while (n < f->max_ints && more_ints(c)) v[n++] = tarn_int_parse(c->L, next(c, "an integer"));
  return tarn_payload_ints(c->L, f->kept_ints ? f->kept_ints : n, v);
}

/* Is the next form a list of integers? */
static bool more_lists(const cursor *c) {
  if (c->i >= c->s->n || c->s->kid[c->i]->kind != TARN_SX_LIST) return false;
  const tarn_sx *list = c->s->kid[c->i];
  for (uint32_t i = 0; i < list->n; i++)
    if (list->kid[i]->kind != TARN_SX_INT) return false;
  return true;
}

static uint32_t windows_ints(cursor *c) {
  int64_t v[3 * TARN_MAX_DIMS];
  uint32_t m = tarn_ints_parse(c->L, next(c, "the window"), TARN_MAX_DIMS, v);
  for (uint32_t k = 1; k < 3; k++) {
    const tarn_sx *at = c->i < c->s->n ? c->s->kid[c->i] : c->s;
    if (k == 2 && !more_lists(c)) {
      for (uint32_t i = 0; i < m; i++) v[2 * m + i] = 1;
      break;
    }
    if (tarn_ints_parse(c->L, next(c, "the strides"), TARN_MAX_DIMS, v + k * m) != m)
      tarn_sx_error(c->L->cx, at, "%u integers are expected", m);
  }
  return tarn_payload_ints(c->L, 3 * m, v);
}

static uint32_t read_ints(cursor *c, uint32_t op) {
  int64_t v[TARN_MAX_DIMS];
  if (op == TARN_OP_WINDOWS) return windows_ints(c);
  if (op != TARN_OP_TRANSPOSE) return bare_ints(c, op);
  uint32_t n = tarn_ints_parse(c->L, next(c, "the axes"), TARN_MAX_DIMS, v);
  return tarn_payload_ints(c->L, n, v);
}

/* ---------------------------------------------------------------- payloads: constants */
static void read_element(tarn_lang *L, const tarn_sx *s, tarn_tensor *t, int64_t i) {
  bool special = s->kind == TARN_SX_ATOM && strncmp(s->text, "nan:", 4) == 0;
  if (!special || !tarn_dtype_is_float(t->dtype)) {
    tarn_tensor_set(t, i, tarn_number_parse(L, s, t->dtype));
    return;
  }
  size_t size = tarn_dtype_size(t->dtype);
  uint64_t bits = strtoull(s->text + 4, NULL, 16);
  memcpy((char *)t->data + (size_t)i * size, &bits, size);
}

static uint32_t inline_const(cursor *c, tarn_dtype dt) {
  tarn_payload p = {.kind = TARN_P_CONST, .name = ""};
  p.type = tarn_type_parse(c->L, next(c, "the shape"), dt);
  const tarn_type *t = tarn_type_get(c->L, p.type);
  int64_t n = tarn_type_count(t);
  if (n > (int64_t)(c->s->n - c->i))
    tarn_sx_error(c->L->cx, c->s, "%lld elements are expected", (long long)n);
  tarn_tensor *v = tarn_tensor_new(c->L->cx, dt, t->n, t->dim);
  for (int64_t i = 0; i < n; i++) read_element(c->L, next(c, "an element"), v, i);
  if (c->i < c->s->n && c->s->kid[c->i]->kind != TARN_SX_LIST)
    tarn_sx_error(c->L->cx, c->s->kid[c->i], "more than %lld elements", (long long)n);
  p.tensor = v;
  return tarn_payload_intern(c->L, &p);
}

static uint32_t read_const(cursor *c) {
  tarn_dtype dt;
  const tarn_sx *s = next(c, "an element type or a name");
  if (s->kind == TARN_SX_ATOM && tarn_dtype_parse(s->text, &dt)) return inline_const(c, dt);
  const char *name = tarn_name_parse(c->L, s);
  uint32_t type = TARN_NONE;
  if (c->i < c->s->n) {
    dt = tarn_dtype_read(c->L, next(c, "an element type"));
    type = tarn_type_parse(c->L, next(c, "the shape"), dt);
  }
  uint32_t id =
      c->L->constants ? tarn_const_load(c->L, s, name, type) : tarn_const_find(c->L, name);
  if (id == TARN_NONE) tarn_sx_error(c->L->cx, s, "no constant is called %s", name);
  if (type != TARN_NONE && tarn_payload_get(c->L, id)->type != type)
    tarn_sx_error(c->L->cx, s, "the constant %s is of another type", name);
  return id;
}

/* ---------------------------------------------------------------- payloads: names */
/* (dtype shape), and (tuple T…) */
static uint32_t read_type(tarn_lang *L, const tarn_sx *s) {
  if (!tarn_sx_is(s, "tuple")) {
    tarn_dtype dt = tarn_dtype_read(L, tarn_sx_at(L, s, 0, "an element type"));
    return tarn_type_parse(L, tarn_sx_at(L, s, 1, "a shape"), dt);
  }
  uint32_t *elem = TARN_ARRAY(L->cx, uint32_t, s->n);
  for (uint32_t i = 1; i < s->n; i++) elem[i - 1] = read_type(L, s->kid[i]);
  return tarn_type_tuple(L, s->n - 1, elem);
}

static uint32_t read_results(cursor *c) {
  const tarn_sx *list = next(c, "the result types");
  if (list->kind != TARN_SX_LIST || list->n == 0)
    tarn_sx_error(c->L->cx, list, "a list of result types ((DTYPE SHAPE)…) is expected");
  uint32_t *elem = TARN_ARRAY(c->L->cx, uint32_t, list->n);
  for (uint32_t i = 0; i < list->n; i++) elem[i] = read_type(c->L, list->kid[i]);
  return list->n == 1 ? elem[0] : tarn_type_tuple(c->L, list->n, elem);
}

static void attr_list(tarn_lang *L, const tarn_sx *s, tarn_attr *a) {
  bool ints = tarn_sx_is(s, "ints");
  if (!ints && !tarn_sx_is(s, "reals"))
    tarn_sx_error(L->cx, s, "(ints …) or (reals …) is expected");
  int64_t *is = TARN_ARRAY(L->cx, int64_t, s->n);
  double *rs = TARN_ARRAY(L->cx, double, s->n);
  for (uint32_t i = 1; i < s->n; i++) {
    if (ints) is[i - 1] = tarn_int_parse(L, s->kid[i]);
    else rs[i - 1] = tarn_number_parse(L, s->kid[i], TARN_F64).d;
  }
  a->kind = ints ? TARN_A_INTS : TARN_A_REALS;
  a->n = s->n - 1;
  a->is = is;
  a->rs = rs;
}

static tarn_attr read_attr(tarn_lang *L, const tarn_sx *s) {
  const tarn_sx *v = tarn_sx_at(L, s, 1, "the attribute's value");
  tarn_attr a = {.name = tarn_name_parse(L, s->kid[0])};
  if (s->n != 2) tarn_sx_error(L->cx, s, "(NAME VALUE) is expected");
  switch (v->kind) {
  case TARN_SX_INT: a.kind = TARN_A_INT, a.i = v->i; break;
  case TARN_SX_REAL: a.kind = TARN_A_REAL, a.r = v->r; break;
  case TARN_SX_LIST: attr_list(L, v, &a); break;
  default: a.kind = TARN_A_STR, a.s = tarn_name_parse(L, v);
  }
  return a;
}

static uint32_t read_opaque(cursor *c, tarn_payload *p) {
  tarn_attr *attr = TARN_ARRAY(c->L->cx, tarn_attr, c->s->n);
  while (c->i < c->s->n) {
    const tarn_sx *s = c->s->kid[c->i];
    if (s->kind != TARN_SX_LIST || s->n == 0 || s->kid[0]->kind == TARN_SX_LIST) break;
    attr[p->nattr++] = read_attr(c->L, s);
    c->i++;
  }
  p->attr = attr;
  p->type = read_results(c);
  return tarn_payload_intern(c->L, p);
}

static uint32_t read_named(cursor *c, tarn_payload_kind kind) {
  tarn_payload p = {.kind = kind};
  int64_t theta[64];
  p.name = tarn_name_parse(c->L, next(c, "a name"));
  if (kind == TARN_P_OPAQUE) return read_opaque(c, &p);
  if (kind == TARN_P_NAME) {
    const tarn_sx *shape = next(c, "the shape");
    p.type = tarn_type_parse(c->L, shape, tarn_dtype_read(c->L, next(c, "the element type")));
  }
  if (kind == TARN_P_CALL) {
    p.n = tarn_ints_parse(c->L, next(c, "the call's integers"), 64, theta);
    p.ints = theta;
    p.type = read_results(c);
  }
  return tarn_payload_intern(c->L, &p);
}

/* pad: axis value before after; fold: reducer axis */
static uint32_t read_valued(cursor *c, tarn_payload_kind kind) {
  tarn_payload p = {.kind = kind, .n = kind == TARN_P_PADV ? 3 : 1};
  int64_t v[3];
  if (kind == TARN_P_FOLD) p.value = read_reducer(c->L, next(c, "the reducer"));
  v[0] = tarn_int_parse(c->L, next(c, "the axis"));
  if (kind == TARN_P_PADV) {
    p.value = tarn_fx_parse(c->L, next(c, "the padding's value"), TARN_F32);
    v[1] = tarn_int_parse(c->L, next(c, "the padding before"));
    v[2] = tarn_int_parse(c->L, next(c, "the padding after"));
  }
  p.ints = v;
  return tarn_payload_intern(c->L, &p);
}

static uint32_t read_payload(cursor *c, uint32_t op) {
  tarn_lang *L = c->L;
  tarn_payload_kind kind = tarn_op_info(op)->payload;
  switch (kind) {
  case TARN_P_NONE: return 0;
  case TARN_P_INTS: return read_ints(c, op);
  case TARN_P_SHAPE:
    return tarn_payload_of(L, kind, tarn_type_parse(L, next(c, "the shape"), TARN_F32));
  case TARN_P_MAP: return tarn_payload_of(L, kind, tarn_imap_parse(L, next(c, "the index map")));
  case TARN_P_FN: return tarn_payload_of(L, kind, tarn_fn_parse(L, next(c, "the function")));
  case TARN_P_NEST: return tarn_payload_of(L, kind, tarn_nest_parse(L, next(c, "the stages")));
  case TARN_P_CONST: return read_const(c);
  case TARN_P_PADV:
  case TARN_P_FOLD: return read_valued(c, kind);
  default: return read_named(c, kind);
  }
}

typedef struct payload_job {
  cursor c;
  uint32_t op, id;
} payload_job;

static void do_payload(tarn_ctx *cx, void *arg) {
  payload_job *j = arg;
  (void)cx;
  j->id = read_payload(&j->c, j->op);
}

/* What interning refuses is told without a place; here it gets the form's. */
_Noreturn static void raise_at(tarn_lang *L, const tarn_sx *s, tarn_status st) {
  const char *why = tarn_message(L->cx);
  size_t n = s->file ? strlen(s->file) : 0;
  bool placed = n && strncmp(why, s->file, n) == 0 && why[n] == ':';
  if (st != TARN_BAD_INPUT || placed) tarn_reraise(L->cx, st);
  tarn_sx_error(L->cx, s, "%s", why);
}

uint32_t tarn_payload_parse(tarn_lang *L, uint32_t op, const tarn_sx *s, uint32_t *used) {
  payload_job j = {{L, s, 1}, op, 0};
  tarn_status st = tarn_protect(L->cx, do_payload, &j);
  if (st != TARN_OK) raise_at(L, s, st);
  *used = j.c.i - 1;
  return j.id;
}

/* ---------------------------------------------------------------- terms */
/* Names are looked up by their interned number; a binding hides an outer one until its let ends. */
tarn_term tarn_term_read(tarn_lang *L, const tarn_sx *s, tarn_map *env) {
  if (s->kind == TARN_SX_ATOM && s->text[0] == '%') {
    const uint64_t *at = tarn_map_get(env, tarn_name_intern(L, s->text));
    if (at && *at) return (tarn_term)(*at - 1);
    tarn_sx_error(L->cx, s, "no let binds %s", s->text);
  }
  if (tarn_sx_is(s, "let")) return tarn_let_read(L, s, env);
  const tarn_sx *head = tarn_sx_at(L, s, 0, "an operator");
  uint32_t op = head->kind == TARN_SX_ATOM ? tarn_op_find(head->text) : TARN_NONE, used = 0;
  if (op == TARN_NONE) tarn_sx_error(L->cx, head, "no operator is called %s", head->text);
  uint32_t payload = tarn_payload_parse(L, op, s, &used), first = 1 + used;
  tarn_term *kid = TARN_ARRAY(L->cx, tarn_term, s->n - first);
  for (uint32_t i = first; i < s->n; i++) kid[i - first] = tarn_term_read(L, s->kid[i], env);
  return tarn_mk_at(L, s, op, payload, kid, s->n - first);
}

/* As tarn_mk, with the place in the text in front of what is wrong. */
tarn_term tarn_mk_at(tarn_lang *L, const tarn_sx *s, uint32_t op, uint32_t payload,
                     const tarn_term *kid, uint32_t n) {
  uint32_t *types = TARN_ARRAY(L->cx, uint32_t, n);
  for (uint32_t i = 0; i < n; i++) types[i] = tarn_term_get(L, kid[i])->type;
  if (tarn_type_of(L, op, payload, types, n) == TARN_NONE)
    tarn_sx_error(L->cx, s, "%s", tarn_message(L->cx));
  return tarn_mk(L, op, payload, kid, n);
}

/* Binds (NAME TERM)… of s from element `from`; what each hid goes to hidden, when that is given. */
void tarn_bind(tarn_lang *L, const tarn_sx *s, uint32_t from, tarn_map *env, uint64_t *hidden) {
  for (uint32_t i = from; i < s->n; i++) {
    const tarn_sx *name = tarn_sx_at(L, s->kid[i], 0, "a name");
    const tarn_sx *value = tarn_sx_at(L, s->kid[i], 1, "a term");
    if (name->kind != TARN_SX_ATOM || name->text[0] != '%' || s->kid[i]->n != 2)
      tarn_sx_error(L->cx, s->kid[i], "(%%a TERM) is expected");
    tarn_term t = tarn_term_read(L, value, env);
    uint64_t *at = tarn_map_at(env, tarn_name_intern(L, name->text), NULL);
    if (hidden) hidden[i - from] = *at;
    *at = t + (uint64_t)1;
  }
}

tarn_term tarn_let_read(tarn_lang *L, const tarn_sx *s, tarn_map *env) {
  const tarn_sx *names = tarn_sx_at(L, s, 1, "the named terms");
  if (s->n != 3 || names->kind != TARN_SX_LIST)
    tarn_sx_error(L->cx, s, "(let ((%%a TERM)…) TERM) is expected");
  uint64_t *hidden = TARN_ARRAY(L->cx, uint64_t, names->n);
  tarn_bind(L, names, 0, env, hidden);
  tarn_term t = tarn_term_read(L, s->kid[2], env);
  for (uint32_t i = names->n; i-- > 0;)
    *tarn_map_at(env, tarn_name_intern(L, names->kid[i]->kid[0]->text), NULL) = hidden[i];
  return t;
}

tarn_term tarn_term_parse(tarn_lang *L, const tarn_sx *s) {
  return tarn_term_read(L, s, tarn_map_new(L->cx));
}
