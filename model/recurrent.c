/* RNN, GRU and LSTM, written out step by step: one product of the whole sequence with the weights
 * of the input, then for each step one with the state.  Gates in the order iofc (LSTM) and zrh
 * (GRU), peepholes iof; biases Wb then Rb.  Source: ONNX's equations.
 *
 * Sequences of more than MOST_STEPS stay an opaque kernel: see opaque.c. */
#include "model/import.h"
#include <string.h>

enum { MOST_STEPS = 2048 }; /* of all directions */

typedef enum kind { RNN, GRU, LSTM } kind;
static const struct {
  const char *op;
  int64_t gates;
  uint32_t functions;
  const char *usual[3];
} kinds[] = {{"RNN", 1, 1, {"Tanh"}},
             {"GRU", 3, 2, {"Sigmoid", "Tanh"}},
             {"LSTM", 4, 3, {"Sigmoid", "Tanh", "Tanh"}}};

/* A matrix (rows, in) of numbers; or of bytes (in, rows), with a scale and a zero point for each
 * row or for all, which multiplies what is quantised then. */
typedef struct matrix {
  tarn_term t, scale, zero; /* zero and, of numbers, scale: TARN_NONE */
} matrix;

/* One direction. */
typedef struct cell {
  im_node *n;
  kind kind;
  int64_t steps, batch, hidden, gates;
  matrix w, r;  /* of gates · hidden rows */
  tarn_term rb; /* GRU: the bias that goes with the product with the state; TARN_NONE: none */
  tarn_term p;  /* peepholes, (3 · hidden) */
  bool linear_first, couple;
  double clip;
  im_activation act[3];
  tarn_term h, c; /* the state: (batch, hidden) */
  tarn_term fed;  /* h as bytes are made of it: 0 of sequences that have ended */
} cell;

/* ---------------------------------------------------------------- activations */

/* Numbers that functions with such a parameter take in turn, whatever others stand between them. */
typedef struct given {
  const char *parameter;
  const Onnx__AttributeProto *list;
  size_t used;
} given;
static void take_parameter(given *g, im_activation *a) {
  for (uint32_t i = 0; i < a->np; i++)
    if (strcmp(a->p[i].name, g->parameter) == 0 && g->list && g->used < g->list->n_floats)
      a->p[i].r = (double)g->list->floats[g->used++];
}

/* Those of direction d. */
static void read_activations(cell *c, uint32_t d) {
  uint32_t per = kinds[c->kind].functions;
  const Onnx__AttributeProto *a = im_attr(c->n, "activations");
  given alpha = {"alpha", im_attr(c->n, "activation_alpha"), 0};
  given beta = {"beta", im_attr(c->n, "activation_beta"), 0};
  for (uint32_t at = 0; at < (d + 1) * per; at++) { /* those of the direction before come first */
    const char *name = kinds[c->kind].usual[at % per];
    im_activation *f = &c->act[at % per];
    if (a && a->n_strings && at >= a->n_strings) im_bad(c->n, "an activation is missing");
    if (a && a->n_strings)
      name = tarn_strndup(c->n->cx, (const char *)a->strings[at].data, a->strings[at].len);
    if (!im_activation_find(name, f)) im_bad(c->n, "activation %s is unknown", name);
    take_parameter(&alpha, f), take_parameter(&beta, f);
  }
}

static tarn_term activated(const cell *c, uint32_t which, tarn_term x) {
  const im_activation *a = &c->act[which];
  return im_elp(c->n, a->text, a->p, a->np, 1, x);
}

static tarn_term clipped(const cell *c, tarn_term x) {
  im_param p[] = {{"most", c->clip, 0}};
  return c->clip > 0 ? im_elp(c->n, "(min (max $0 (neg most)) most)", p, 1, 1, x) : x;
}

/* ---------------------------------------------------------------- one step */

static tarn_term add(im_node *n, tarn_term a, tarn_term b) {
  return im_el(n, "(add $0 $1)", 2, a, b);
}

/* Part g of what has one for each gate, along the last axis. */
static tarn_term part(const cell *c, tarn_term t, int64_t g) {
  uint32_t last = im_shape(c->n, t).n - 1;
  return im_cut(c->n, t, last, g * c->hidden, (g + 1) * c->hidden, 1);
}

/* (…, in) · (rows, in)ᵀ, quantised as a whole: the input once, up to the end of the longest
 * sequence, and the state in each step. ONNX Runtime does so on one thread; on several it quantises
 * each thread's part of the batch. */
static tarn_term byte_product(im_node *n, tarn_term x, const matrix *m) {
  const im_val *q = im_apply(n, "DynamicQuantizeLinear", 11, &x, 1);
  tarn_term bytes = q[0].t, scale = q[1].t, zero = q[2].t;
  tarn_term sum = im_byte_product(n, bytes, zero, m->t, m->zero);
  return im_el(n, "(mul $0 (mul $1 $2))", 3, im_cast(n, sum, im_type(n, x)), scale, m->scale);
}

/* (…, in) · (rows, in)ᵀ */
static tarn_term product(im_node *n, tarn_term x, const matrix *m) {
  enum { SUM = TARN_MAX_DIMS, ROW };
  static const uint8_t lm[] = {ROW, SUM};
  uint32_t rank = im_shape(n, x).n, last = rank - 1;
  uint8_t lx[TARN_MAX_DIMS], lo[TARN_MAX_DIMS];
  if (m->scale != TARN_NONE) return byte_product(n, x, m);
  for (uint32_t i = 0; i < rank; i++) lo[i] = lx[i] = (uint8_t)i;
  lx[last] = SUM, lo[last] = ROW;
  return im_contract(n, x, lx, m->t, lm, lo, rank);
}

static matrix rows_of(im_node *n, const matrix *m, int64_t lo, int64_t hi) {
  return (matrix){im_cut(n, m->t, 0, lo, hi, 1), TARN_NONE, TARN_NONE};
}

/* A gate before its activation: with its peephole g at the cell state s. */
static tarn_term peeping(const cell *c, tarn_term z, int64_t g, tarn_term s) {
  if (c->p == TARN_NONE) return clipped(c, z);
  return clipped(c, im_el(c->n, "(add $0 (mul $1 $2))", 3, z, part(c, c->p, g), s));
}

static void step_lstm(cell *c, tarn_term z) {
  im_node *n = c->n;
  z = add(n, z, product(n, c->fed, &c->r));
  tarn_term in = activated(c, 0, peeping(c, part(c, z, 0), 0, c->c));
  tarn_term forget = c->couple ? im_el(n, "(sub 1 $0)", 1, in)
                               : activated(c, 0, peeping(c, part(c, z, 2), 2, c->c));
  tarn_term next = activated(c, 1, clipped(c, part(c, z, 3)));
  c->c = im_el(n, "(add (mul $0 $1) (mul $2 $3))", 4, forget, c->c, in, next);
  tarn_term out = activated(c, 0, peeping(c, part(c, z, 1), 1, c->c));
  c->h = im_el(n, "(mul $0 $1)", 2, out, activated(c, 2, c->c));
}

static void step_gru(cell *c, tarn_term z) {
  im_node *n = c->n;
  matrix both = rows_of(n, &c->r, 0, 2 * c->hidden);
  matrix last = rows_of(n, &c->r, 2 * c->hidden, 3 * c->hidden);
  tarn_term inner, zr = product(n, c->h, c->linear_first ? &c->r : &both);
  tarn_term update = activated(c, 0, clipped(c, add(n, part(c, z, 0), part(c, zr, 0))));
  tarn_term reset = activated(c, 0, clipped(c, add(n, part(c, z, 1), part(c, zr, 1))));
  inner =
      c->linear_first ? part(c, zr, 2) : product(n, im_el(n, "(mul $0 $1)", 2, reset, c->h), &last);
  if (c->rb != TARN_NONE) inner = add(n, inner, part(c, c->rb, 2));
  if (c->linear_first) inner = im_el(n, "(mul $0 $1)", 2, reset, inner);
  tarn_term next = activated(c, 1, clipped(c, add(n, part(c, z, 2), inner)));
  c->h = im_el(n, "(add (mul (sub 1 $0) $1) (mul $0 $2))", 3, update, next, c->h);
}

static void step(cell *c, tarn_term z) {
  if (c->kind == LSTM) step_lstm(c, z);
  else if (c->kind == GRU) step_gru(c, z);
  else c->h = activated(c, 0, clipped(c, add(c->n, z, product(c->n, c->h, &c->r))));
}

/* ---------------------------------------------------------------- a sequence */

/* x (steps, batch, in) times the weights, with the biases that every gate has: (steps, batch,
 * rows).
 */
static tarn_term projected(cell *c, tarn_term x, tarn_term b) {
  im_node *n = c->n;
  tarn_term z = product(n, x, &c->w);
  int64_t rows = c->gates * c->hidden;
  if (b == TARN_NONE) return z;
  tarn_term wb = im_cut(n, b, 0, 0, rows, 1), rb = im_cut(n, b, 0, rows, 2 * rows, 1);
  if (c->kind != GRU) return add(n, z, add(n, wb, rb));
  c->rb = rb; /* of the last gate; the others' join Wb */
  tarn_term joined[] = {im_cut(n, rb, 0, 0, 2 * c->hidden, 1),
                        im_fill(n, im_scalar(n, im_type(n, rb), 0, 0), 1, &c->hidden)};
  return add(n, z, add(n, wb, im_concat(n, 0, joined, 2)));
}

/* Where a sequence has ended the state stays, and the result is 0. */
static tarn_term ended(cell *c, tarn_term length, int64_t t, tarn_term was, tarn_term *is) {
  int64_t column[] = {c->batch, 1};
  im_param p[] = {{"t", 0, t}};
  tarn_term live = im_elp(c->n, "(lt t $0)", p, 1, 1, im_reshape(c->n, length, 2, column));
  tarn_term now = *is;
  if (was != TARN_NONE) *is = im_el(c->n, "(select $0 $1 $2)", 3, live, now, was);
  return im_elp(c->n, "(select $1 $0 0)", p, 0, 2, now, live);
}

/* The results of all steps (steps, batch, hidden); h and c are the state after them. */
static tarn_term run(cell *c, tarn_term z, tarn_term length, bool backwards) {
  im_node *n = c->n;
  tarn_term *y = TARN_ARRAY(n->cx, tarn_term, (size_t)c->steps + 1);
  if (backwards && length != TARN_NONE) z = im_reversed(n, z, length, 0);
  for (int64_t k = 0; k < c->steps; k++) {
    int64_t t = backwards && length == TARN_NONE ? c->steps - 1 - k : k;
    tarn_term h = c->h, s = c->c;
    step(c, im_pick(n, z, 0, t));
    y[t] = c->h;
    if (length != TARN_NONE) {
      y[t] = ended(c, length, t, h, &c->h);
      if (c->kind == LSTM) ended(c, length, t, s, &c->c);
    }
    if (c->kind == LSTM) c->c = im_settled(n, c->c);
    if (c->kind != LSTM || length != TARN_NONE) c->h = im_settled(n, c->h);
    if (length == TARN_NONE) y[t] = c->h;
    c->fed = length != TARN_NONE && c->r.scale != TARN_NONE ? y[t] : c->h;
  }
  tarn_term all = im_stack(n, 0, y, (uint32_t)c->steps);
  return backwards && length != TARN_NONE ? im_reversed(n, all, length, 0) : all;
}

/* ---------------------------------------------------------------- the operator */

/* Part d of an operand with one for each direction; TARN_NONE when it is left out. */
static tarn_term of_direction(im_node *n, uint32_t i, uint32_t axis, uint32_t d, int64_t count,
                              int64_t dirs) {
  tarn_term t = im_opt(n, i);
  if (t == TARN_NONE) return t;
  im_dims x = im_shape(n, t);
  if (x.n <= axis || x.d[axis] != dirs || im_count(&x) != count * dirs)
    im_bad(n, "input %u has the wrong shape", i);
  return im_pick(n, t, axis, d);
}

static tarn_term state(cell *c, uint32_t i, uint32_t d, int64_t dirs, bool batch_first) {
  im_node *n = c->n;
  int64_t dim[] = {c->batch, c->hidden};
  tarn_term t = of_direction(n, i, batch_first, d, c->batch * c->hidden, dirs);
  if (t != TARN_NONE) return im_reshape(n, t, 2, dim);
  return im_fill(n, im_scalar(n, im_type(n, im_arg(n, 0)), 0, 0), 2, dim);
}

/* Part d of inputs: weights, and if they are bytes their scales and zero points. */
static matrix matrix_of(im_node *n, uint32_t i, uint32_t scale, uint32_t d) {
  matrix m = {im_pick(n, im_arg(n, i), 0, d), TARN_NONE, TARN_NONE};
  if (scale) m.scale = im_pick(n, im_arg(n, scale), 0, d);
  if (scale && im_opt(n, scale + 1) != TARN_NONE) m.zero = im_pick(n, im_arg(n, scale + 1), 0, d);
  return m;
}

static bool of_bytes(const im_node *n) { return strcmp(n->op, "DynamicQuantizeLSTM") == 0; }

static cell cell_of(im_node *n, kind k, uint32_t d, int64_t dirs, bool batch_first) {
  bool bytes = of_bytes(n);
  cell c = {.n = n, .kind = k, .gates = kinds[k].gates, .rb = TARN_NONE, .p = TARN_NONE};
  im_dims x = im_shape(n, im_arg(n, 0));
  c.steps = x.d[batch_first ? 1 : 0], c.batch = x.d[batch_first ? 0 : 1];
  c.hidden = im_shape(n, im_arg(n, 2)).d[bytes ? 1 : 2];
  c.w = matrix_of(n, 1, bytes ? 8 : 0, d), c.r = matrix_of(n, 2, bytes ? 10 : 0, d);
  c.linear_first = im_attr_int(n, "linear_before_reset", 0) != 0;
  c.couple = im_attr_int(n, "input_forget", 0) != 0;
  c.clip = im_attr_real(n, "clip", 0);
  c.h = state(&c, 5, d, dirs, batch_first);
  c.fed = c.h;
  c.c = k == LSTM ? state(&c, 6, d, dirs, batch_first) : TARN_NONE;
  if (k == LSTM) c.p = of_direction(n, 7, 0, d, 3 * c.hidden, dirs);
  read_activations(&c, d);
  return c;
}

/* x (steps, batch, in) with 0 behind the longest sequence. */
static tarn_term up_to_longest(im_node *n, tarn_term x, tarn_term length) {
  tarn_term most = im_reduce(n, length, 1, TARN_NONE, TARN_RED_MAX, false);
  tarn_term live = im_el(n, "(lt $0 $1)", 2, im_steps(n, 0, 3, im_shape(n, x).d[0]), most);
  return im_el(n, "(select $1 $0 0)", 2, x, live);
}

static void set_joined(im_node *n, uint32_t k, tarn_term const *part, uint32_t axis, int64_t dirs,
                       bool batch_first) {
  static const uint32_t of_all[] = {2, 0, 1, 3}, of_last[] = {1, 0, 2};
  tarn_term t = im_stack(n, axis, part, (uint32_t)dirs);
  im_set(n, k, batch_first ? im_permute(n, t, k ? of_last : of_all) : t);
}

static void written_out(im_node *n, kind k, int64_t dirs) {
  static const uint32_t turn[] = {1, 0, 2};
  bool batch_first = im_attr_int(n, "layout", 0) != 0;
  bool reverse = im_attr_is(n, "direction", "reverse", "forward");
  tarn_term x = im_arg(n, 0), length = im_opt(n, 4), y[2], h[2], s[2];
  if (batch_first) x = im_permute(n, x, turn);
  if (length != TARN_NONE) length = im_within(n, length, 0, im_shape(n, x).d[0]);
  if (of_bytes(n) && length != TARN_NONE) x = up_to_longest(n, x, length);
  for (uint32_t d = 0; d < dirs; d++) {
    cell c = cell_of(n, k, d, dirs, batch_first);
    tarn_term b = of_direction(n, 3, 0, d, 2 * c.gates * c.hidden, dirs);
    tarn_term z = projected(&c, x, b);
    y[d] = run(&c, z, length, reverse || d == 1);
    h[d] = c.h, s[d] = c.c;
  }
  set_joined(n, 0, y, 1, dirs, batch_first);
  set_joined(n, 1, h, 0, dirs, batch_first);
  if (k == LSTM) set_joined(n, 2, s, 0, dirs, batch_first);
}

void im_do_recurrent(im_node *n) {
  kind k = strcmp(n->op, "RNN") == 0 ? RNN : strcmp(n->op, "GRU") == 0 ? GRU : LSTM;
  int64_t dirs = im_recurrent_check(n, kinds[k].gates);
  im_dims x = im_shape(n, im_arg(n, 0));
  int64_t steps = x.d[im_attr_int(n, "layout", 0) ? 1 : 0];
  if (steps * dirs > MOST_STEPS || im_count(&x) == 0) im_do_opaque(n);
  else written_out(n, k, dirs);
}

/* ---------------------------------------------------------------- com.microsoft */

/* Weights of bytes (directions, in, gates · hidden). */
static void check_bytes(im_node *n, int64_t dirs) {
  im_dims x = im_shape(n, im_arg(n, 0)), w = im_shape(n, im_arg(n, 1)),
          r = im_shape(n, im_arg(n, 2));
  int64_t rows = r.n == 3 ? 4 * r.d[1] : -1;
  if (x.n != 3 || w.n != 3 || r.n != 3 || w.d[0] != dirs || r.d[0] != dirs || w.d[1] != x.d[2] ||
      w.d[2] != rows || r.d[2] != rows || im_attr_int(n, "hidden_size", r.d[1]) != r.d[1])
    im_bad(n, "the weights do not have the shapes of 4 gates of %lld", (long long)r.d[1]);
  for (uint32_t i = 8; i < 12; i++) {
    if (im_opt(n, i) == TARN_NONE) continue;
    im_dims d = im_shape(n, im_arg(n, i));
    if (d.n < 1 || d.n > 2 || d.d[0] != dirs || (d.n == 2 && d.d[1] != rows))
      im_bad(n, "input %u has the wrong shape", i);
  }
}

void im_do_dynamic_quantize_lstm(im_node *n) {
  int64_t dirs = im_attr_is(n, "direction", "bidirectional", "forward") ? 2 : 1;
  check_bytes(n, dirs);
  im_dims x = im_shape(n, im_arg(n, 0));
  if (x.d[0] * dirs > MOST_STEPS || im_count(&x) == 0)
    im_bad(n, "%lld steps, at least 1 and at most %d are supported", (long long)(x.d[0] * dirs),
           MOST_STEPS);
  written_out(n, LSTM, dirs);
}
