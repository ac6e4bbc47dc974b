/* Elementwise operators: those that are a formula in ops.def, and the few that need more. */
#include "model/import.h"
#include <math.h>
#include <string.h>
#include <strings.h>

enum { PLAIN, WIDE };
static const struct row {
  const char *name, *text;
  uint32_t inputs;
  bool wide;
  struct {
    const char *attr;
    double otherwise;
  } a[3];
} rows[] = {
#define ONNX(...)
#define ATTRIBUTES(...)                                                                            \
  { __VA_ARGS__ }
#define FORMULA(name, from, to, inputs, floats, text, attributes)                                  \
  {#name, text, inputs, floats == WIDE, ATTRIBUTES attributes},
#include "model/ops.def"
#undef ONNX
};
/* No operators, but functions that others end with. */
static const struct row ends[] = {
    {"Affine", "(add (mul alpha $0) beta)", 1, false, {{"alpha", 1}, {"beta", 0}}},
    {"ScaledTanh", "(mul alpha (tanh (mul beta $0)))", 1, false, {{"alpha", 1}, {"beta", 1}}},
    {"Clip", "(min (max $0 alpha) beta)", 1, false, {{"alpha", 0}, {"beta", 0}}}};
#define ROWS (sizeof rows / sizeof *rows)

/* The value of each attribute where none is given. */
static uint32_t defaults(const struct row *r, im_param *p) {
  uint32_t n = 0;
  for (; n < 3 && r->a[n].attr; n++)
    p[n] = (im_param){r->a[n].attr, r->a[n].otherwise, (int64_t)r->a[n].otherwise};
  return n;
}

static const struct row *row_of(const char *name) {
  const struct row *r = rows;
  while (r < rows + ROWS && strcasecmp(r->name, name) != 0) r++;
  return r < rows + ROWS ? r : NULL;
}

bool im_is_elementary(const char *name) { return row_of(name) != NULL; }

bool im_activation_find(const char *name, im_activation *a) {
  const struct row *r = row_of(name);
  for (size_t i = 0; !r && i < sizeof ends / sizeof *ends; i++)
    if (strcasecmp(ends[i].name, name) == 0) r = &ends[i];
  if (!r || r->inputs != 1) return false;
  a->text = r->text, a->np = defaults(r, a->p);
  return true;
}

uint32_t im_elementary(tarn_lang *L, const char *name, tarn_dtype t, uint32_t *inputs, bool *wide) {
  const struct row *r = row_of(name);
  im_param p[3];
  const im_node n = {.L = L, .cx = tarn_lang_ctx(L)};
  *inputs = r->inputs;
  *wide = r->wide;
  return im_formula(&n, r->text, t, p, defaults(r, p));
}

void im_do_formula(im_node *n) {
  const struct row *r = rows;
  while (strcmp(r->name, n->op) != 0) r++;
  im_param p[3];
  uint32_t np = 0;
  for (; np < 3 && r->a[np].attr; np++) {
    double v = im_attr_real(n, r->a[np].attr, r->a[np].otherwise);
    p[np] = (im_param){r->a[np].attr, v, fabs(v) < 1e9 ? (int64_t)v : 0};
  }
  tarn_term t[2] = {im_arg(n, 0), im_opt(n, 1)};
  im_alike(n, 0, 1);
  im_set(n, 0,
         im_map(n, im_formula(n, r->text, im_type(n, t[0]), p, np), t, t[1] == TARN_NONE ? 1 : 2));
}

void im_do_gelu(im_node *n) {
  static const char by_erf[] = "(mul (mul 0.5 $0) (add 1 (erf (mul $0 r))))";
  static const char by_tanh[] =
      "(mul (mul 0.5 $0) (add 1 (tanh (mul c (add $0 (mul 0.044715 (mul $0 (mul $0 $0))))))))";
  bool tanh_form = im_attr_is(n, "approximate", "tanh", "none");
  im_param p[] = {{"r", sqrt(0.5), 0}, {"c", sqrt(2 / acos(-1.0)), 0}};
  im_set(n, 0, im_elp(n, tanh_form ? by_tanh : by_erf, p, 2, 1, im_arg(n, 0)));
}

void im_do_bit_shift(im_node *n) {
  bool left = im_attr_is(n, "direction", "LEFT", "");
  if (!left && !im_attr_is(n, "direction", "RIGHT", ""))
    im_bad(n, "direction is neither LEFT nor RIGHT");
  im_set(n, 0, im_el(n, left ? "(shl $0 $1)" : "(shr $0 $1)", 2, im_arg(n, 0), im_arg(n, 1)));
}

/* to, or stored as the type of that number. */
static void cast(im_node *n, tarn_dtype to, int32_t stored) {
  tarn_term x = im_arg(n, 0);
  bool saturate = im_attr_int(n, "saturate", 1) != 0;
  im_attr_is(n, "round_mode", "up", "up"); /* concerns float8e8m0 only */
  if (n->in[0]->stored && n->in[0]->stored != stored) x = im_stored_read(n, x, n->in[0]->stored);
  else if (n->in[0]->stored) stored = 0, to = im_type(n, x), n->out[0].stored = n->in[0]->stored;
  if (stored) n->out[0].stored = stored;
  im_set(n, 0, stored ? im_stored_write(n, x, stored, saturate) : im_cast(n, x, to));
}

void im_do_cast(im_node *n) {
  tarn_dtype to;
  int32_t stored;
  int64_t code = im_attr_int(n, "to", 0);
  if (code < 0 || code > 100 || !im_carrier((int32_t)code, &to, &stored))
    im_bad(n, "casts to %s are not supported",
           im_onnx_dtype_name(code < 0 || code > 100 ? -1 : (int32_t)code));
  cast(n, to, stored);
}

/* Between integers of as many bits a cast keeps the bits. */
void im_do_bit_cast(im_node *n) {
  tarn_term x = im_arg(n, 0);
  tarn_dtype from = im_type(n, x), to;
  int64_t code = im_attr_int(n, "to", 0);
  if (n->in[0]->stored || code < 0 || code > 100 || !im_dtype((int32_t)code, &to))
    im_bad(n, "the type %lld is not supported", (long long)code);
  if (tarn_dtype_size(from) != tarn_dtype_size(to)) im_bad(n, "the types differ in size");
  bool real = tarn_dtype_is_float(from) || tarn_dtype_is_float(to);
  if (from != to && (real || to == TARN_BOOL))
    im_bad(n, "only integers are seen as integers of another sign");
  im_set(n, 0, im_cast(n, x, to));
}

void im_do_cast_like(im_node *n) {
  tarn_dtype to = im_type(n, im_arg(n, 1));
  cast(n, to, n->in[1]->stored);
}

/* A bound that is no number does not bind: ONNX's text is x < min ? min : x. */
static double binding(double bound, double none) { return isnan(bound) ? none : bound; }

void im_do_clip_by_attributes(im_node *n) {
  double lo = im_attr_real(n, "min", -3.402823466385288598e+38),
         hi = im_attr_real(n, "max", 3.402823466385288598e+38);
  im_param p[] = {{"lo", binding(lo, -INFINITY), 0}, {"hi", binding(hi, INFINITY), 0}};
  im_set(n, 0, im_elp(n, "(min (max $0 lo) hi)", p, 2, 1, im_arg(n, 0)));
}

/* A bound that is known goes into the expression, whatever it is made of. */
static tarn_term bound(im_node *n, uint32_t i, double none) {
  tarn_term t = im_opt(n, i);
  im_param p = {"none", none, 0};
  if (t == TARN_NONE) return t;
  im_dims d = im_shape(n, t);
  bool real = tarn_dtype_is_float(im_type(n, t));
  if (im_count(&d) != 1) im_bad(n, "a bound is not a scalar");
  im_alike(n, 0, i);
  t = im_reshape(n, t, 0, d.d);
  if (!n->in[i]->fixed) return real ? im_elp(n, "(select (isnan $0) none $0)", &p, 1, 1, t) : t;
  const tarn_tensor *x = im_known(n, n->in[i], "a bound");
  tarn_value v = tarn_tensor_get(x, 0);
  return im_scalar(n, x->dtype, real ? binding(v.d, none) : v.d, v.i);
}

void im_do_clip(im_node *n) {
  tarn_term x = im_arg(n, 0), lo = bound(n, 1, -INFINITY), hi = bound(n, 2, INFINITY);
  if (lo != TARN_NONE && hi != TARN_NONE) x = im_el(n, "(min (max $0 $1) $2)", 3, x, lo, hi);
  else if (lo != TARN_NONE) x = im_el(n, "(max $0 $1)", 2, x, lo);
  else if (hi != TARN_NONE) x = im_el(n, "(min $0 $1)", 2, x, hi);
  im_set(n, 0, x);
}

void im_do_is_inf(im_node *n) {
  bool negative = im_attr_int(n, "detect_negative", 1),
       positive = im_attr_int(n, "detect_positive", 1);
  const char *text = negative && positive ? "(isinf $0)"
                     : negative           ? "(and (isinf $0) (lt $0 0))"
                     : positive           ? "(and (isinf $0) (lt 0 $0))"
                                          : "(and (isinf $0) false)";
  im_set(n, 0, im_el(n, text, 1, im_arg(n, 0)));
}

/* Max, Min, Sum of any number of operands: one map per further operand. */
static tarn_term over_all(im_node *n, const char *text) {
  tarn_term t = im_arg(n, 0);
  for (uint32_t i = 1; i < n->nin; i++) {
    im_alike(n, 0, i);
    t = im_el(n, text, 2, t, im_arg(n, i));
  }
  return t;
}

void im_do_variadic(im_node *n) {
  static const struct {
    const char *op, *text;
  } by[] = {{"Max", "(max $0 $1)"}, {"Min", "(min $0 $1)"}, {"Sum", "(add $0 $1)"}};
  for (size_t i = 0; i < 3; i++)
    if (strcmp(by[i].op, n->op) == 0) im_set(n, 0, over_all(n, by[i].text));
}

void im_do_mean_of(im_node *n) {
  im_param count = {"n", n->nin, n->nin};
  im_set(n, 0, im_elp(n, "(div $0 n)", &count, 1, 1, over_all(n, "(add $0 $1)")));
}

void im_do_mod(im_node *n) {
  bool c = im_attr_int(n, "fmod", 0);
  im_alike(n, 0, 1);
  im_set(n, 0, im_el(n, c ? "(fmod $0 $1)" : "(mod $0 $1)", 2, im_arg(n, 0), im_arg(n, 1)));
}

/* Base and exponent may differ in type; the result has the base's. In f64 where the one would not
 * hold the other: an integer to a real power, a real number to a power that is a large integer (its
 * parity counts). */
void im_do_pow(im_node *n) {
  tarn_term x = im_arg(n, 0), y = im_arg(n, 1);
  tarn_dtype tx = im_type(n, x), ty = im_type(n, y);
  bool fx = tarn_dtype_is_float(tx), fy = tarn_dtype_is_float(ty);
  bool large = fx && !fy && tarn_dtype_size(ty) >= 4 && !im_is_known(n, 1);
  tarn_dtype in = large || (!fx && fy) ? TARN_F64 : tx;
  im_set(n, 0, im_cast(n, im_el(n, "(pow $0 $1)", 2, im_cast(n, x, in), im_cast(n, y, in)), tx));
}

void im_do_where(im_node *n) {
  im_alike(n, 1, 2);
  im_set(n, 0, im_el(n, "(select $0 $1 $2)", 3, im_arg(n, 0), im_arg(n, 1), im_arg(n, 2)));
}
