/* The text of an architecture: what is computed with the weights of a GGUF file.
 *
 * Forms are those of docs/language-models.md: values are numbers, texts, lists and tensors of the
 * graph; a form whose head begins with a capital letter is an operator of ONNX and becomes a node.
 * decoder.arch is read before each architecture. */
#include "model/gguf/gguf.h"
#include "model/import.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

extern const tarn_embedded tarn_architectures_embedded[];

enum { DEEPEST = 200, MOST_STEPS = 10000000, MOST_ITEMS = 1 << 20, MOST_OPERANDS = 32 };

typedef struct binding {
  const char *name;
  gg_value value;
} binding;
typedef struct run {
  tarn_ctx *cx;
  const gguf_file *f;
  const char *architecture;
  gg_graph *g;
  TARN_VEC(binding) names;
  uint32_t globals, base; /* names of the text itself; where those of the running function begin */
  TARN_VEC(const tarn_sx *) functions;
  const char *prefix; /* of the nodes of a loop's turn */
  bool *key_used;
  uint32_t depth, steps, loops, nodes;
} run;

static gg_value eval(run *r, const tarn_sx *s);

_Noreturn static void bad(const run *r, const tarn_sx *at, const char *fmt, ...) TARN_PRINTF(3, 4);
static void bad(const run *r, const tarn_sx *at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *what = tarn_vformat(r->cx, fmt, ap);
  va_end(ap);
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s: %s:%u:%u: %s", r->f->name, at->file, at->line, at->col,
             what);
}

/* ---------------------------------------------------------------- values */

static gg_value integer_value(int64_t i) {
  return (gg_value){.kind = GG_WHOLE, .i = i, .r = (double)i};
}
static gg_value real(double x) { return (gg_value){.kind = GG_REAL, .r = x}; }
static gg_value text(const char *s) { return (gg_value){.kind = GG_TEXT, .text = s}; }

static const char *kind_name(const gg_value *v) {
  static const char *const names[] = {"nothing", "an integer", "a number",
                                      "a text",  "a list",     "a tensor"};
  return names[v->kind];
}
static bool is_number(const gg_value *v) { return v->kind == GG_WHOLE || v->kind == GG_REAL; }

static const tarn_sx *part(const run *r, const tarn_sx *s, uint32_t i) {
  bool named = s->n && s->kid[0]->kind == TARN_SX_ATOM;
  if (i >= s->n) bad(r, s, "%s needs more parts", named ? s->kid[0]->text : "this");
  return s->kid[i];
}
static gg_value read_number(run *r, const tarn_sx *s) {
  gg_value v = eval(r, s);
  if (!is_number(&v)) bad(r, s, "a number is expected, it is %s", kind_name(&v));
  return v;
}
static int64_t integer(run *r, const tarn_sx *s, int64_t lo, int64_t hi) {
  gg_value v = eval(r, s);
  if (v.kind != GG_WHOLE || v.i < lo || v.i > hi)
    bad(r, s, "an integer from %lld to %lld is expected, it is %s", (long long)lo, (long long)hi,
        v.kind == GG_WHOLE ? tarn_format(r->cx, "%lld", (long long)v.i) : kind_name(&v));
  return v.i;
}
static const char *string(run *r, const tarn_sx *s) {
  gg_value v = eval(r, s);
  if (v.kind != GG_TEXT) bad(r, s, "a text is expected, it is %s", kind_name(&v));
  return v.text;
}
static bool holds(run *r, const tarn_sx *s) {
  gg_value v = read_number(r, s);
  return v.r != 0;
}

/* ---------------------------------------------------------------- names */

static const gg_value *value_of(const run *r, const char *name, size_t n) {
  for (uint32_t i = r->names.n; i-- > 0;) {
    if (i < r->base && i >= r->globals) continue;
    const char *is = r->names.p[i].name;
    if (strncmp(is, name, n) == 0 && !is[n]) return &r->names.p[i].value;
  }
  return NULL;
}

static void bind(run *r, const tarn_sx *to, gg_value v) {
  if (to->kind == TARN_SX_ATOM) {
    tarn_push(r->cx, &r->names, ((binding){to->text, v}));
    return;
  }
  if (to->kind != TARN_SX_LIST || v.kind != GG_LIST || v.n != to->n)
    bad(r, to, "the value is no list of %u", to->n);
  for (uint32_t i = 0; i < to->n; i++) bind(r, to->kid[i], v.item[i]);
}

static gg_value atom(const run *r, const tarn_sx *s) {
  const gg_value *v = value_of(r, s->text, s->len);
  tarn_dtype t;
  if (v) return *v;
  if (strcmp(s->text, "none") == 0) return (gg_value){.kind = GG_ABSENT};
  if (tarn_dtype_parse(s->text, &t)) return integer_value(tarn_onnx_dtype(t));
  bad(r, s, "%s is no name here", s->text);
}

/* {NAME} in a text stands for the value of the name. */
static gg_value interpolated(const run *r, const tarn_sx *s) {
  tarn_buf b = {.cx = r->cx};
  const char *p = s->text;
  tarn_buf_str(&b, "");
  for (const char *open; (open = strchr(p, '{')) != NULL;) {
    const char *end = strchr(open, '}');
    const gg_value *v = end ? value_of(r, open + 1, (size_t)(end - open - 1)) : NULL;
    if (!v || (v->kind != GG_TEXT && v->kind != GG_WHOLE))
      bad(r, s, "%s is no name of a text or an integer here", open);
    tarn_buf_add(&b, p, (size_t)(open - p));
    if (v->kind == GG_TEXT) tarn_buf_str(&b, v->text);
    else tarn_buf_fmt(&b, "%lld", (long long)v->i);
    p = end + 1;
  }
  tarn_buf_str(&b, p);
  return text(b.p);
}

/* ---------------------------------------------------------------- control */

static gg_value block(run *r, const tarn_sx *s, uint32_t i) {
  gg_value v = {.kind = GG_ABSENT};
  for (; i < s->n; i++) v = eval(r, s->kid[i]);
  return v;
}
static gg_value scoped(run *r, const tarn_sx *s, uint32_t i) {
  uint32_t mark = r->names.n;
  gg_value v = block(r, s, i);
  r->names.n = mark;
  return v;
}
static gg_value form_begin(run *r, const tarn_sx *s) { return scoped(r, s, 1); }

static gg_value node(run *r, const tarn_sx *s, uint32_t nout);
static bool is_operator(const tarn_sx *s) {
  return s->kind == TARN_SX_LIST && s->n && s->kid[0]->kind == TARN_SX_ATOM &&
         (isupper((unsigned char)s->kid[0]->text[0]) || strchr(s->kid[0]->text, ':'));
}
static gg_value form_let(run *r, const tarn_sx *s) {
  const tarn_sx *to = part(r, s, 1), *from = part(r, s, 2);
  bool several = to->kind == TARN_SX_LIST && is_operator(from);
  bind(r, to, several ? node(r, from, to->n) : eval(r, from));
  bool outermost = r->depth == 1 && r->base == 0;
  if (outermost) r->globals = r->names.n;
  return (gg_value){.kind = GG_ABSENT};
}
static gg_value form_if(run *r, const tarn_sx *s) {
  if (holds(r, part(r, s, 1))) return eval(r, part(r, s, 2));
  return s->n > 3 ? eval(r, s->kid[3]) : (gg_value){.kind = GG_ABSENT};
}
static gg_value form_require(run *r, const tarn_sx *s) {
  if (!holds(r, part(r, s, 1)))
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: architecture %s: %s", r->f->name, r->architecture,
               string(r, part(r, s, 2)));
  return (gg_value){.kind = GG_ABSENT};
}
static gg_value form_define(run *r, const tarn_sx *s) {
  const tarn_sx *head = part(r, s, 1);
  if (head->kind != TARN_SX_LIST || !head->n || head->kid[0]->kind != TARN_SX_ATOM)
    bad(r, s, "(define (NAME PARAMETER…) FORM…)");
  tarn_push(r->cx, &r->functions, s);
  return (gg_value){.kind = GG_ABSENT};
}
static gg_value form_range(run *r, const tarn_sx *s) {
  uint32_t n = (uint32_t)integer(r, part(r, s, 1), 0, MOST_ITEMS);
  gg_value *item = TARN_ARRAY(r->cx, gg_value, n + 1);
  for (uint32_t i = 0; i < n; i++) item[i] = integer_value(i);
  return (gg_value){.kind = GG_LIST, .n = n, .item = item};
}
static gg_value form_list(run *r, const tarn_sx *s) {
  gg_value *item = TARN_ARRAY(r->cx, gg_value, s->n);
  for (uint32_t i = 1; i < s->n; i++) item[i - 1] = eval(r, s->kid[i]);
  return (gg_value){.kind = GG_LIST, .n = s->n - 1, .item = item};
}
static gg_value list_of(run *r, const tarn_sx *s) {
  gg_value v = eval(r, s);
  if (v.kind != GG_LIST) bad(r, s, "a list is expected, it is %s", kind_name(&v));
  return v;
}
/* Item I of a list; of what is no list, itself. */
static gg_value form_item(run *r, const tarn_sx *s) {
  gg_value v = eval(r, part(r, s, 1));
  if (v.kind != GG_LIST) return v;
  if (v.n == 0) bad(r, s, "the list is empty");
  return v.item[integer(r, part(r, s, 2), 0, v.n - 1)];
}

typedef struct turn {
  const char *prefix;
  uint32_t nodes, mark;
} turn;
/* Nodes of a turn have names that are the same in each but for the value of its name. */
static turn enter(run *r, const gg_value *v) {
  turn was = {r->prefix, r->nodes, r->names.n};
  if (v->kind == GG_WHOLE) r->prefix = tarn_format(r->cx, "%s%lld.", r->prefix, (long long)v->i);
  r->nodes = 0;
  r->loops++;
  return was;
}
static void leave(run *r, turn was) {
  r->prefix = was.prefix;
  r->nodes = was.nodes;
  r->names.n = was.mark;
  r->loops--;
}
/* (each (NAME LIST) FORM…): the list of the values. */
static gg_value form_each(run *r, const tarn_sx *s) {
  const tarn_sx *over = part(r, s, 1);
  gg_value list = list_of(r, part(r, over, 1));
  gg_value *item = TARN_ARRAY(r->cx, gg_value, list.n + 1);
  for (uint32_t i = 0; i < list.n; i++) {
    turn was = enter(r, &list.item[i]);
    bind(r, over->kid[0], list.item[i]);
    item[i] = block(r, s, 2);
    leave(r, was);
  }
  return (gg_value){.kind = GG_LIST, .n = list.n, .item = item};
}
/* (fold (NAME FIRST) (NAME LIST) FORM…): each value becomes that of the first name; the last. */
static gg_value form_fold(run *r, const tarn_sx *s) {
  const tarn_sx *state = part(r, s, 1), *over = part(r, s, 2);
  gg_value v = eval(r, part(r, state, 1)), list = list_of(r, part(r, over, 1));
  for (uint32_t i = 0; i < list.n; i++) {
    turn was = enter(r, &list.item[i]);
    bind(r, state->kid[0], v);
    bind(r, over->kid[0], list.item[i]);
    v = block(r, s, 3);
    leave(r, was);
  }
  return v;
}

/* ---------------------------------------------------------------- the file */

static gg_value key_item(const run *r, const gguf_key *k, uint64_t i) {
  int64_t v;
  if (gguf_is_text(k)) return text(gguf_text(r->f, k));
  if (gguf_is_real(k)) return real(gguf_real(k, i));
  if (!gguf_whole(k, i, &v))
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: %s: a number of more than 63 bits", r->f->name,
               tarn_shown(r->cx, k->name));
  return integer_value(v);
}
static gg_value key_value(const run *r, const tarn_sx *at, const gguf_key *k) {
  if (!k->array) return key_item(r, k, 0);
  if (gguf_is_text(k) || k->count > MOST_ITEMS) bad(r, at, "it is a long list, or one of texts");
  gg_value *item = TARN_ARRAY(r->cx, gg_value, k->count + 1);
  for (uint64_t i = 0; i < k->count; i++) item[i] = key_item(r, k, i);
  return (gg_value){.kind = GG_LIST, .n = (uint32_t)k->count, .item = item};
}
static const gguf_key *key_called(const run *r, const char *name) {
  const gguf_key *k = gguf_key_find(r->f, tarn_format(r->cx, "%s.%s", r->architecture, name));
  if (k) r->key_used[k - r->f->key] = true;
  return k;
}
/* (meta NAME [OTHERWISE]): the value of the key ARCHITECTURE.NAME. */
static gg_value form_meta(run *r, const tarn_sx *s) {
  const char *name = string(r, part(r, s, 1));
  const gguf_key *k = key_called(r, name);
  if (k) return key_value(r, s, k);
  if (s->n > 2) return eval(r, s->kid[2]);
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s: key %s.%s is missing", r->f->name, r->architecture,
             tarn_shown(r->cx, name));
}
/* (ignore NAME…): keys of which nothing that is computed depends. */
static gg_value form_ignore(run *r, const tarn_sx *s) {
  for (uint32_t i = 1; i < s->n; i++) (void)key_called(r, string(r, s->kid[i]));
  return (gg_value){.kind = GG_ABSENT};
}
static gg_value form_has(run *r, const tarn_sx *s) {
  return integer_value(gguf_tensor_find(r->f, string(r, part(r, s, 1))) != NULL);
}
static const gguf_tensor *tensor_called(run *r, const tarn_sx *s) {
  const char *name = string(r, s);
  const gguf_tensor *t = gguf_tensor_find(r->f, name);
  if (!t)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: tensor %s is missing", r->f->name,
               tarn_shown(r->cx, name));
  return t;
}
static gg_value form_weight(run *r, const tarn_sx *s) {
  return gg_weight(r->g, tensor_called(r, part(r, s, 1)));
}
/* (rows WEIGHT INDEX) */
static gg_value form_rows(run *r, const tarn_sx *s) {
  const gguf_tensor *t = tensor_called(r, part(r, s, 1));
  return gg_rows(r->g, t, eval(r, part(r, s, 2)));
}
/* (extent WEIGHT I): of its I-th dim, the outermost first. */
static gg_value form_extent(run *r, const tarn_sx *s) {
  const gguf_tensor *t = tensor_called(r, part(r, s, 1));
  return integer_value(t->dim[integer(r, part(r, s, 2), 0, t->n - 1)]);
}

/* ---------------------------------------------------------------- the graph */

/* (input NAME TYPE DIM…): a dim is an integer or the name of a size. */
static gg_value form_input(run *r, const tarn_sx *s) {
  const char *name = string(r, part(r, s, 1));
  int32_t type = (int32_t)integer(r, part(r, s, 2), 0, 100);
  gg_value *dim = TARN_ARRAY(r->cx, gg_value, s->n);
  for (uint32_t i = 3; i < s->n; i++) {
    dim[i - 3] = eval(r, s->kid[i]);
    if (dim[i - 3].kind != GG_TEXT) (void)integer(r, s->kid[i], 0, IM_MAX_EXTENT);
  }
  if (!gg_input(r->g, name, type, dim, s->n - 3)) bad(r, s, "the input %s occurs twice", name);
  return (gg_value){.kind = GG_TENSOR, .text = name};
}
static gg_value form_output(run *r, const tarn_sx *s) {
  const char *name = string(r, part(r, s, 1));
  gg_output(r->g, name, eval(r, part(r, s, 2)), r->loops == 0);
  return (gg_value){.kind = GG_ABSENT};
}

/* (OPERATOR OPERAND… :ATTRIBUTE VALUE…); :node is the node's name. */
static gg_value node(run *r, const tarn_sx *s, uint32_t nout) {
  gg_value in[MOST_OPERANDS];
  gg_attribute a[MOST_OPERANDS];
  uint32_t nin = 0, na = 0;
  const char *op = s->kid[0]->text, *name = NULL;
  if (s->n > MOST_OPERANDS) bad(r, s, "more than %d operands", MOST_OPERANDS - 1);
  for (uint32_t i = 1; i < s->n; i++) {
    bool attribute = s->kid[i]->kind == TARN_SX_ATOM && s->kid[i]->text[0] == ':';
    if (!attribute) in[nin++] = eval(r, s->kid[i]);
    else if (strcmp(s->kid[i]->text, ":node") == 0) name = string(r, part(r, s, ++i));
    else {
      a[na].name = s->kid[i]->text + 1;
      a[na++].value = eval(r, part(r, s, ++i));
    }
  }
  if (!name) name = tarn_format(r->cx, "%s%s.%u", r->prefix, op, r->nodes++);
  return gg_node(r->g, op, name, in, nin, a, na, nout);
}

/* ---------------------------------------------------------------- numbers */

typedef double real_fn(double a, double b);
static double f_add(double a, double b) { return a + b; }
static double f_sub(double a, double b) { return a - b; }
static double f_mul(double a, double b) { return a * b; }
static double f_div(double a, double b) { return a / b; }
static double f_max(double a, double b) { return tarn_fmax(a, b); }
static double f_min(double a, double b) { return tarn_fmin(a, b); }
static double f_lt(double a, double b) { return a < b; }
static double f_le(double a, double b) { return a <= b; }
static double f_eq(double a, double b) { return a == b; }
static double f_and(double a, double b) { return a != 0 && b != 0; }
static double f_or(double a, double b) { return a != 0 || b != 0; }
static double f_not(double a, double b) { return (a == 0) + 0 * b; }
static double f_sqrt(double a, double b) { return sqrt(a) + 0 * b; }
static double f_log(double a, double b) { return log(a) + 0 * b; }
/* whole: integers give an integer, which must be exact. */
static const struct {
  const char *name;
  uint32_t arity;
  real_fn *run;
  bool whole;
} arithmetic[] = {{"add", 2, f_add, true}, {"sub", 2, f_sub, true},    {"mul", 2, f_mul, true},
                  {"div", 2, f_div, true}, {"max", 2, f_max, true},    {"min", 2, f_min, true},
                  {"lt", 2, f_lt, true},   {"le", 2, f_le, true},      {"eq", 2, f_eq, true},
                  {"and", 2, f_and, true}, {"or", 2, f_or, true},      {"not", 1, f_not, true},
                  {"pow", 2, pow, false},  {"sqrt", 1, f_sqrt, false}, {"log", 1, f_log, false}};

static gg_value compare_texts(run *r, const tarn_sx *s, const gg_value *a) {
  return integer_value(strcmp(a->text, string(r, part(r, s, 2))) == 0);
}
static bool arithmetic_of(run *r, const tarn_sx *s, gg_value *v) {
  size_t k = 0, n = sizeof arithmetic / sizeof *arithmetic;
  while (k < n && strcmp(arithmetic[k].name, s->kid[0]->text) != 0) k++;
  if (k == n) return false;
  gg_value a = eval(r, part(r, s, 1)), b = integer_value(0);
  if (a.kind == GG_TEXT && arithmetic[k].run == f_eq) {
    *v = compare_texts(r, s, &a);
    return true;
  }
  if (!is_number(&a)) bad(r, s, "a number is expected, it is %s", kind_name(&a));
  if (arithmetic[k].arity == 2) b = read_number(r, part(r, s, 2));
  double x = arithmetic[k].run(a.r, b.r);
  bool exact = arithmetic[k].whole && a.kind == GG_WHOLE && b.kind == GG_WHOLE;
  if (exact && (x != floor(x) || fabs(x) > 0x1p53))
    bad(r, s, "%s of %lld and %lld is no integer", arithmetic[k].name, (long long)a.i,
        (long long)b.i);
  *v = exact ? integer_value((int64_t)x) : real(x);
  return true;
}
static gg_value form_real(run *r, const tarn_sx *s) {
  return real(read_number(r, part(r, s, 1)).r);
}

/* ---------------------------------------------------------------- forms */

static const struct {
  const char *name;
  gg_value (*run)(run *r, const tarn_sx *s);
} forms[] = {{"begin", form_begin},   {"define", form_define},   {"each", form_each},
             {"extent", form_extent}, {"fold", form_fold},       {"has", form_has},
             {"if", form_if},         {"ignore", form_ignore},   {"input", form_input},
             {"item", form_item},     {"let", form_let},         {"list", form_list},
             {"meta", form_meta},     {"output", form_output},   {"range", form_range},
             {"real", form_real},     {"require", form_require}, {"rows", form_rows},
             {"weight", form_weight}};

static gg_value call(run *r, const tarn_sx *s, const tarn_sx *function) {
  const tarn_sx *head = function->kid[1];
  if (s->n != head->n) bad(r, s, "%s has %u parameters", head->kid[0]->text, head->n - 1);
  gg_value *arg = TARN_ARRAY(r->cx, gg_value, s->n + 1);
  for (uint32_t i = 1; i < s->n; i++) arg[i] = eval(r, s->kid[i]);
  uint32_t base = r->base, mark = r->names.n;
  for (uint32_t i = 1; i < s->n; i++) bind(r, head->kid[i], arg[i]);
  r->base = mark;
  gg_value v = block(r, function, 2);
  r->base = base;
  r->names.n = mark;
  return v;
}
static const tarn_sx *function_called(const run *r, const char *name) {
  for (uint32_t i = r->functions.n; i-- > 0;)
    if (strcmp(r->functions.p[i]->kid[1]->kid[0]->text, name) == 0) return r->functions.p[i];
  return NULL;
}
static gg_value list(run *r, const tarn_sx *s) {
  gg_value v;
  if (!s->n || s->kid[0]->kind != TARN_SX_ATOM) bad(r, s, "a form begins with a name");
  if (is_operator(s)) return node(r, s, 1);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (strcmp(forms[i].name, s->kid[0]->text) == 0) return forms[i].run(r, s);
  if (arithmetic_of(r, s, &v)) return v;
  const tarn_sx *function = function_called(r, s->kid[0]->text);
  if (!function) bad(r, s, "there is no form %s", s->kid[0]->text);
  return call(r, s, function);
}
static gg_value eval(run *r, const tarn_sx *s) {
  if (++r->steps > MOST_STEPS) bad(r, s, "the text takes more than %d steps", MOST_STEPS);
  switch (s->kind) {
  case TARN_SX_INT: return integer_value(s->i);
  case TARN_SX_REAL: return real(s->r);
  case TARN_SX_STRING: return interpolated(r, s);
  case TARN_SX_ATOM: return atom(r, s);
  default: break;
  }
  if (r->depth >= DEEPEST) bad(r, s, "forms are nested too deeply");
  r->depth++;
  gg_value v = list(r, s);
  r->depth--;
  return v;
}

/* ---------------------------------------------------------------- architectures */

static const char decoder[] = "decoder";

static const tarn_sx *shipped(tarn_ctx *cx, const char *name) {
  for (const tarn_embedded *e = tarn_architectures_embedded; e->name; e++)
    if (strcmp(e->name, name) == 0)
      return tarn_sx_read(cx, e->text, e->n, tarn_format(cx, "%s.arch", name));
  return NULL;
}
/* Names lead to files: letters, digits and hyphens alone. */
static bool is_plain(const char *name) {
  size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
  return n && !name[n] && n < 100;
}
_Noreturn static void refuse(tarn_ctx *cx, const gguf_file *f, const char *name, const char *path) {
  tarn_buf b = {.cx = cx};
  for (const tarn_embedded *e = tarn_architectures_embedded; e->name; e++)
    if (strcmp(e->name, decoder) != 0) tarn_buf_fmt(&b, "%s%s", b.n ? ", " : "", e->name);
  tarn_raise(
      cx, TARN_BAD_INPUT,
      "%s: architecture '%s' is not known; known are %s, and what a text describes that lies "
      "in %s (docs/language-models.md)",
      f->name, tarn_shown(cx, name), b.p, path);
}
static const tarn_sx *text_of(tarn_ctx *cx, const gguf_file *f, const char *name, const char *dir) {
  const tarn_sx *s = strcmp(name, decoder) == 0 ? NULL : shipped(cx, name);
  const char *file = is_plain(name) ? tarn_format(cx, "%s.arch", name) : "NAME.arch";
  const char *path = dir ? tarn_format(cx, "%s/%s", dir, file) : file;
  if (s) return s;
  if (!dir || !is_plain(name) || access(path, F_OK) != 0) refuse(cx, f, name, tarn_shown(cx, path));
  return tarn_sx_read_file(cx, path);
}

/* What a key says may change what is computed: the text must have asked for each of its own. */
static void check_keys(const run *r) {
  size_t n = strlen(r->architecture);
  for (uint32_t i = 0; i < r->f->nkey; i++) {
    const char *name = r->f->key[i].name;
    if (!r->key_used[i] && strncmp(name, r->architecture, n) == 0 && name[n] == '.')
      tarn_raise(r->cx, TARN_BAD_INPUT,
                 "%s: architecture %s knows no key %s: the file is of a variant that it does not "
                 "describe",
                 r->f->name, r->architecture, tarn_shown(r->cx, name));
  }
}

static void check_parts(const gguf_file *f) {
  const gguf_key *k = gguf_key_find(f, "split.count");
  int64_t count = 1;
  if (k && !k->array && gguf_whole(k, 0, &count) && count > 1)
    tarn_raise(f->cx, TARN_BAD_INPUT,
               "%s: one of %lld parts of a model; merge them (llama-gguf-split --merge)", f->name,
               (long long)count);
}

Onnx__ModelProto *gguf_model(tarn_ctx *cx, const void *bytes, size_t n, const char *name,
                             const char *dir) {
  const gguf_file *f = gguf_read(cx, bytes, n, name);
  const gguf_key *k = gguf_key_find(f, "general.architecture");
  check_parts(f);
  if (!k || !gguf_is_text(k) || k->array)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: key general.architecture is missing", f->name);
  run r = {.cx = cx, .f = f, .architecture = gguf_text(f, k), .prefix = ""};
  const tarn_sx *s = text_of(cx, f, r.architecture, dir), *common = shipped(cx, decoder);
  r.g = gg_new(f);
  r.key_used = TARN_ARRAY(cx, bool, f->nkey + 1);
  (void)block(&r, common, 0);
  (void)block(&r, s, 0);
  check_keys(&r);
  return gg_finish(r.g, r.architecture);
}
