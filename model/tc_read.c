/* Tensor comprehensions: text to trees. */
#include "model/tc.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 200 /* expressions within one another */

typedef enum tk_kind { TK_END, TK_NAME, TK_INT, TK_REAL, TK_PUNCT } tk_kind;
typedef struct token {
  tk_kind kind;
  const char *p; /* in the text */
  size_t n;
  tc_at at;
  bool close; /* nothing stands between the token before and this one */
  int64_t i;
  double r;
} token;
typedef struct reader {
  tc_text *t;
  tarn_ctx *cx;
  const char *p, *end, *line; /* where we are, and where its line begins */
  uint32_t row, depth;
  token now, next;
} reader;

void tc_bad(const tc_text *t, tc_at at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *what = tarn_vformat(t->cx, fmt, ap);
  va_end(ap);
  tarn_raise(t->cx, TARN_BAD_INPUT, "%s:%u:%u: %s", t->file, at.line, at.col, what);
}

/* ---------------------------------------------------------------- tokens */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static tc_at here(const reader *r) { return (tc_at){r->row, (uint32_t)(r->p - r->line) + 1}; }

static void skip(reader *r) {
  while (r->p < r->end) {
    bool comment = *r->p == '#' || (r->end - r->p > 1 && r->p[0] == '/' && r->p[1] == '/');
    if (comment) {
      while (r->p < r->end && *r->p != '\n') r->p++;
    } else if (is_space(*r->p)) {
      bool newline = *r->p++ == '\n';
      r->row += newline;
      if (newline) r->line = r->p;
    } else {
      return;
    }
  }
}

/* A run of letters and digits, which is a number where all of it is one: 2LUT is a name. */
static void word(reader *r, token *k) {
  const char *p = r->p;
  while (p < r->end && is_word(*p)) p++;
  k->n = (size_t)(p - r->p);
  k->kind = TK_NAME;
}

/* Where a number ends that begins here; NULL: none does. */
static const char *number_end(const reader *r) {
  const char *p = r->p;
  while (p < r->end && is_digit(*p)) p++;
  if (p < r->end && *p == '.') p++;
  while (p < r->end && is_digit(*p)) p++;
  const char *e = p;
  if (e < r->end && (*e == 'e' || *e == 'E')) {
    e++;
    if (e < r->end && (*e == '+' || *e == '-')) e++;
    const char *digits = e;
    while (e < r->end && is_digit(*e)) e++;
    if (e > digits) p = e;
  }
  if (p < r->end && *p == 'f' && !(p + 1 < r->end && is_word(p[1]))) return p;
  return p < r->end && is_word(*p) ? NULL : p;
}

/* A whole number of few digits, which most numbers are, without a copy of its text. */
static bool small(token *k) {
  int64_t v = 0;
  for (size_t i = 0; i < k->n; i++) {
    if (i == 9 || !is_digit(k->p[i])) return false;
    v = 10 * v + (k->p[i] - '0');
  }
  k->kind = TK_INT;
  k->i = v;
  k->r = (double)v;
  return true;
}

static bool read_number(reader *r, token *k) {
  const char *end = number_end(r);
  if (!end) return false;
  k->n = (size_t)(end - r->p);
  if (small(k)) return true;
  char *text = tarn_strndup(r->cx, r->p, k->n);
  k->kind = strcspn(text, ".eE") == k->n ? TK_INT : TK_REAL;
  errno = 0;
  if (k->kind == TK_INT) k->i = strtoll(text, NULL, 10);
  if (k->kind == TK_INT && errno) tc_bad(r->t, k->at, "%s is too large", text);
  k->r = strtod(text, NULL);
  if (isinf(k->r)) tc_bad(r->t, k->at, "%s is too large", text);
  if (end < r->end && *end == 'f') k->n++, k->kind = TK_REAL;
  return true;
}

static bool is_two(const char *p) {
  bool assigns = p[1] == '=' && strchr("+-*=!<>", p[0]);
  return assigns || (p[0] == '-' && p[1] == '>') || (p[0] == p[1] && (*p == '&' || *p == '|'));
}
static void punctuation(reader *r, token *k) {
  k->kind = TK_PUNCT;
  k->n = r->end - r->p > 1 && is_two(r->p) ? 2 : 1;
  if (k->n == 2 || (*r->p && strchr("(){},:;=+-*/%<>!?.", *r->p))) return;
  size_t seen = tarn_visible(r->p, (size_t)(r->end - r->p));
  tc_bad(r->t, k->at, "'%.*s' is not of this language", (int)(seen ? seen : 1), r->p);
}

static bool after_name(const reader *r, const token *k) {
  return k->close && r->next.kind == TK_NAME;
}

static token lex(reader *r) {
  const char *before = r->p;
  skip(r);
  token k = {.p = r->p, .at = here(r), .close = before == r->p};
  if (r->p == r->end) return k;
  bool dot = *r->p == '.' && r->end - r->p > 1 && is_digit(r->p[1]) && !after_name(r, &k);
  bool is_number = (is_digit(*r->p) || dot) && read_number(r, &k);
  if (!is_number && is_word(*r->p)) word(r, &k);
  else if (!is_number) punctuation(r, &k);
  r->p += k.n;
  return k;
}

static token step(reader *r) {
  token was = r->now;
  r->now = r->next;
  r->next = lex(r);
  return was;
}

static bool is(const token *k, const char *text) {
  return (k->kind == TK_PUNCT || k->kind == TK_NAME) && k->n == strlen(text) &&
         !memcmp(k->p, text, k->n);
}

static bool take(reader *r, const char *text) {
  if (!is(&r->now, text)) return false;
  step(r);
  return true;
}

static const char *shown_token(const reader *r, const token *k) {
  return k->kind == TK_END ? "the end of the text" : tarn_format(r->cx, "'%.*s'", (int)k->n, k->p);
}

_Noreturn static void expected(reader *r, const char *what) {
  tc_bad(r->t, r->now.at, "%s is expected, not %s", what, shown_token(r, &r->now));
}

static tc_at need(reader *r, const char *text) {
  tc_at at = r->now.at;
  if (!take(r, text)) expected(r, tarn_format(r->cx, "'%s'", text));
  return at;
}

static bool is_keyword(const token *k) { return is(k, "def") || is(k, "where"); }

static tc_name need_name(reader *r, const char *what) {
  if (r->now.kind != TK_NAME || is_keyword(&r->now)) expected(r, what);
  token k = step(r);
  return (tc_name){tarn_strndup(r->cx, k.p, k.n), k.at};
}

/* ---------------------------------------------------------------- expressions */

static const struct {
  const char *text;
  int precedence;
} binary[] = {
#define TC_ROW(ID, text, precedence) {text, precedence},
    TC_BINARY(TC_ROW)
#undef TC_ROW
};
#define BINARY (sizeof binary / sizeof *binary)

const char *tc_op_text(tc_op op) {
  return op < BINARY ? binary[op].text : op == TC_NEG ? "-" : op == TC_NOT ? "!" : "?";
}

static tc_expr *node(reader *r, tc_kind kind, tc_at at) {
  tc_expr *e = TARN_NEW(r->cx, tc_expr);
  e->kind = kind;
  e->at = at;
  return e;
}

static tc_expr *op_node(reader *r, tc_op op, tc_at at, uint32_t n, tc_expr *const *kid) {
  tc_expr *e = node(r, TC_OP, at);
  e->op = op;
  e->n = n;
  e->kid = tarn_copy(r->cx, kid, n * sizeof *kid);
  return e;
}

static tc_expr *expression(reader *r);

typedef TARN_VEC(tc_expr *) expr_list;

/* After '(': expressions up to ')'. */
static void arguments(reader *r, tc_expr *e) {
  expr_list v = {0};
  while (!is(&r->now, ")")) {
    tarn_push(r->cx, &v, expression(r));
    if (!take(r, ",")) break;
  }
  need(r, ")");
  e->n = v.n;
  e->kid = v.p;
}

static tc_expr *of_name(reader *r) {
  tc_name name = need_name(r, "an expression");
  tc_expr *e = node(r, TC_NAME, name.at);
  e->name = name.name;
  if (take(r, "(")) {
    e->kind = TC_APPLY;
    arguments(r, e);
  } else if (is(&r->now, ".") && r->next.kind == TK_INT) {
    step(r);
    e->kind = TC_EXTENT;
    e->i = step(r).i;
  }
  return e;
}

static tc_expr *primary(reader *r) {
  if (r->now.kind == TK_INT || r->now.kind == TK_REAL) {
    tc_expr *e = node(r, r->now.kind == TK_INT ? TC_INT : TC_REAL, r->now.at);
    e->i = r->now.i;
    e->r = r->now.r;
    step(r);
    return e;
  }
  if (take(r, "(")) {
    tc_expr *e = expression(r);
    need(r, ")");
    return e;
  }
  return of_name(r);
}

static void deeper(reader *r) {
  if (++r->depth > DEEPEST) tc_bad(r->t, r->now.at, "this expression is nested too deeply");
}

static tc_expr *unary(reader *r) {
  tc_at at = r->now.at;
  bool neg = is(&r->now, "-");
  if (!neg && !is(&r->now, "!")) return primary(r);
  step(r);
  deeper(r);
  tc_expr *kid = unary(r);
  r->depth--;
  return op_node(r, neg ? TC_NEG : TC_NOT, at, 1, &kid);
}

static tc_op operator_at(const reader *r, int lowest) {
  if (r->now.kind != TK_PUNCT || strchr("(),;{}", *r->now.p)) return TC_OPS;
  for (size_t i = 0; i < BINARY; i++)
    if (binary[i].precedence >= lowest && is(&r->now, binary[i].text)) return (tc_op)i;
  return TC_OPS;
}

static tc_expr *operators(reader *r, int lowest) {
  tc_expr *e = unary(r);
  for (tc_op op; (op = operator_at(r, lowest)) != TC_OPS;) {
    tc_at at = step(r).at;
    tc_expr *kid[] = {e, operators(r, binary[op].precedence + 1)};
    e = op_node(r, op, at, 2, kid);
  }
  return e;
}

static tc_expr *expression(reader *r) {
  deeper(r);
  tc_expr *kid[3] = {operators(r, 1)};
  tc_at at = r->now.at;
  if (take(r, "?")) {
    kid[1] = expression(r);
    need(r, ":");
    kid[2] = expression(r);
    kid[0] = op_node(r, TC_CHOOSE, at, 3, kid);
  }
  r->depth--;
  return kid[0];
}

/* ---------------------------------------------------------------- definitions */

static const struct {
  const char *name;
  tarn_dtype type;
} type_names[] = {
    {"float", TARN_F32},   {"double", TARN_F64},  {"half", TARN_F16},    {"int", TARN_I32},
    {"long", TARN_I64},    {"short", TARN_I16},   {"byte", TARN_I8},     {"char", TARN_I8},
    {"float32", TARN_F32}, {"float64", TARN_F64}, {"float16", TARN_F16}, {"bfloat16", TARN_BF16},
    {"int8", TARN_I8},     {"int16", TARN_I16},   {"int32", TARN_I32},   {"int64", TARN_I64},
    {"uint8", TARN_U8},    {"uint16", TARN_U16},  {"uint32", TARN_U32},  {"uint64", TARN_U64}};

bool tc_type_named(const char *name, tarn_dtype *t) {
  for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
    if (!strcmp(type_names[i].name, name)) {
      *t = type_names[i].type;
      return true;
    }
  return tarn_dtype_parse(name, t);
}

static tc_param parameter(reader *r) {
  tc_param p = {0};
  expr_list v = {0};
  tc_name type = need_name(r, "a parameter's type");
  if (!tc_type_named(type.name, &p.type))
    tc_bad(r->t, type.at, "there is no type %s: float, double, half, int, bool … are types",
           type.name);
  if (take(r, "(")) {
    do { tarn_push(r->cx, &v, operators(r, 5)); } while (take(r, ","));
    need(r, ")");
  }
  p.of = need_name(r, "a parameter's name");
  if (v.n > TARN_MAX_DIMS)
    tc_bad(r->t, p.of.at, "%s has more than %d dims", p.of.name, TARN_MAX_DIMS);
  p.n = v.n;
  p.extent = (const tc_expr *const *)v.p;
  return p;
}

typedef TARN_VEC(tc_name) name_list;
static void names(reader *r, name_list *v, const char *what) {
  need(r, "(");
  while (!is(&r->now, ")")) {
    tarn_push(r->cx, v, need_name(r, what));
    if (!take(r, ",")) break;
  }
  need(r, ")");
}

/* How the left side is written. */
static void assignment(reader *r, tc_stmt *s) {
  static const char *const text[] = {"=", "+=", "-=", "*=", "max", "min"};
  s->how_at = r->now.at;
  for (int i = TC_SET; i <= TC_MIN; i++) {
    if (!is(&r->now, text[i])) continue;
    bool word = i >= TC_MAX;
    if (word && !(is(&r->next, "=") && r->next.close)) continue;
    if (word) step(r);
    step(r);
    s->how = (tc_assign)i;
    s->fresh = i != TC_SET && is(&r->now, "!") && r->now.close;
    if (s->fresh) step(r);
    return;
  }
  expected(r, "=, or one of += -= *= max= min=, perhaps with ! behind it,");
}

static tc_where condition(reader *r) {
  tc_where w = {.at = r->now.at};
  if (take(r, "exists")) {
    w.lo = expression(r);
    return w;
  }
  w.name = need_name(r, "an index, or 'exists',").name;
  need(r, "in");
  w.lo = operators(r, 1);
  need(r, ":");
  w.hi = operators(r, 1);
  return w;
}

static tc_stmt statement(reader *r) {
  tc_stmt s = {0};
  name_list index = {0};
  TARN_VEC(tc_where) where = {0};
  s.left = need_name(r, "a statement, NAME(indices) = …,");
  if (is(&r->now, "(")) names(r, &index, "an index");
  assignment(r, &s);
  s.value = expression(r);
  if (take(r, "where")) do {
      tarn_push(r->cx, &where, condition(r));
    } while (take(r, ","));
  take(r, ";");
  s.index = index.p;
  s.nindex = index.n;
  s.where = where.p;
  s.nwhere = where.n;
  return s;
}

static tc_def definition(reader *r) {
  tc_def d = {0};
  TARN_VEC(tc_param) param = {0};
  TARN_VEC(tc_stmt) stmt = {0};
  name_list result = {0};
  need(r, "def");
  d.of = need_name(r, "the definition's name");
  need(r, "(");
  while (!is(&r->now, ")")) {
    tarn_push(r->cx, &param, parameter(r));
    if (!take(r, ",")) break;
  }
  need(r, ")");
  need(r, "->");
  names(r, &result, "a result's name");
  tc_at body = need(r, "{");
  while (!is(&r->now, "}")) tarn_push(r->cx, &stmt, statement(r));
  need(r, "}");
  if (!stmt.n) tc_bad(r->t, body, "%s has no statement", d.of.name);
  if (!result.n) tc_bad(r->t, d.of.at, "%s has no result", d.of.name);
  d.param = param.p, d.nparam = param.n;
  d.result = result.p, d.nresult = result.n;
  d.stmt = stmt.p, d.nstmt = stmt.n;
  return d;
}

tc_text *tc_read(tarn_ctx *cx, const char *text, size_t n, const char *file) {
  tc_text *t = TARN_NEW(cx, tc_text);
  reader r = {.t = t, .cx = cx, .p = text, .end = text + n, .line = text, .row = 1};
  TARN_VEC(tc_def) def = {0};
  *t = (tc_text){.cx = cx, .file = tarn_shown(cx, file)};
  step(&r);
  step(&r);
  do {
    tc_def d = definition(&r);
    for (uint32_t i = 0; i < def.n; i++)
      if (!strcmp(def.p[i].of.name, d.of.name))
        tc_bad(t, d.of.at, "%s is defined twice", d.of.name);
    tarn_push(cx, &def, d);
  } while (r.now.kind != TK_END);
  t->n = def.n;
  t->def = def.p;
  return t;
}
