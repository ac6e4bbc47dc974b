/* Control flow that is decided during import: a branch is chosen, a loop is written out trip by
 * trip.  A condition of the run chooses among the values of both branches. */
#include "model/import.h"
#include "model/onnx.h"
#include <string.h>

static const Onnx__GraphProto *subgraph(im_node *n, const char *name) {
  const Onnx__AttributeProto *a = im_attr(n, name);
  if (!a || !a->g) im_bad(n, "its attribute %s is no graph", name);
  return a->g;
}

/* ---------------------------------------------------------------- If */

/* The values of a branch that counts when that bool holds. */
static im_val *branch(im_node *n, const Onnx__GraphProto *g, tarn_term when) {
  for (uint32_t k = 0; k < n->nout; k++) n->out[k] = (im_val){.t = TARN_NONE};
  im_run_subgraph(n, g, when);
  return tarn_copy(n->cx, n->out, n->nout * sizeof *n->out);
}

static const char *value_text(im_node *n, const im_val *v) {
  if (v->list) return v->list->optional ? "an empty optional" : "a sequence";
  const tarn_type *t = tarn_term_type(n->L, v->t);
  return tarn_dims_text(n->cx, t->dtype, t->n, t->dim);
}

bool im_same_kind(const im_node *n, const im_val *a, const im_val *b) {
  const tarn_type *s = tarn_term_type(n->L, a->t), *t = tarn_term_type(n->L, b->t);
  if (a->list || b->list || a->stored != b->stored || s->dtype != t->dtype || s->n != t->n)
    return false;
  return memcmp(s->dim, t->dim, s->n * sizeof *s->dim) == 0;
}

/* Of the branch that the condition takes: an element of the other one, whatever it is, has no part
 * in it. */
static im_val chosen(im_node *n, uint32_t k, tarn_term condition, const im_val *yes,
                     const im_val *no) {
  const char *name = tarn_onnx_text(n->p->output[k]);
  if (!*name) return *yes;
  if (yes->t == no->t && yes->list == no->list) {
    im_val same = *yes;
    same.fixed &= no->fixed;
    return same;
  }
  const char *condition_name = tarn_onnx_text(n->p->input[0]);
  if (yes->list || no->list)
    im_bad(n, "its output %s is %s, on a condition of the run: bind what decides %s with --set",
           name, value_text(n, yes->list ? yes : no), condition_name);
  if (!im_same_kind(n, yes, no))
    im_bad(n,
           "its output %s is %s or %s, on a condition of the run: bind what decides %s with --set",
           name, value_text(n, yes), value_text(n, no), condition_name);
  tarn_term t = im_el(n, "(select $2 $0 $1)", 3, yes->t, no->t, condition);
  return (im_val){t, NULL, false, yes->stored, NULL};
}

/* Both branches, and a selection for each output. */
static void select_branch(im_node *n, const Onnx__GraphProto *yes, const Onnx__GraphProto *no) {
  tarn_term c = im_arg(n, 0);
  im_dims d = im_shape(n, c);
  if (im_count(&d) != 1 || im_type(n, c) != TARN_BOOL)
    im_bad(n, "the condition is %s, not one bool", value_text(n, n->in[0]));
  c = im_reshape(n, c, 0, d.d);
  const im_val *a = branch(n, yes, c), *b = branch(n, no, im_el(n, "(not $0)", 1, c));
  for (uint32_t k = 0; k < n->nout; k++) n->out[k] = chosen(n, k, c, &a[k], &b[k]);
}

void im_do_if(im_node *n) {
  const Onnx__GraphProto *yes = subgraph(n, "then_branch"), *no = subgraph(n, "else_branch");
  if (!im_is_known(n, 0)) select_branch(n, yes, no);
  else im_run_subgraph(n, im_real(n, 0, "the condition") != 0 ? yes : no, TARN_NONE);
}

/* ---------------------------------------------------------------- trips */

typedef TARN_VEC(tarn_term) terms;

/* What the trips leave, one value after the other. */
typedef struct trips {
  im_node *n;
  const Onnx__GraphProto *g;
  uint32_t states; /* handed from trip to trip */
  uint32_t scans;  /* values that every trip adds to a list */
  uint32_t from;   /* of the body's outputs, the first state */
  im_val *state;   /* as they are now */
  terms *list;
  int32_t *stored;
  bool *fixed; /* of the lists */
} trips;

static im_val kept(im_node *n, uint32_t i) {
  if (i >= n->nin || !n->in[i]) im_bad(n, "input %u is missing", i);
  return *n->in[i];
}

static trips begin(im_node *n, const Onnx__GraphProto *g, uint32_t states, uint32_t from) {
  trips t = {.n = n, .g = g, .states = states, .from = from};
  if (g->n_output < from + states) im_bad(n, "its body has %zu outputs", g->n_output);
  t.scans = (uint32_t)g->n_output - from - states;
  t.state = TARN_ARRAY(n->cx, im_val, states + 1);
  t.list = tarn_new(n->cx, (t.scans + 1) * sizeof *t.list);
  memset(t.list, 0, (t.scans + 1) * sizeof *t.list);
  t.fixed = TARN_ARRAY(n->cx, bool, t.scans + 1);
  t.stored = TARN_ARRAY(n->cx, int32_t, t.scans + 1);
  for (uint32_t k = 0; k < t.scans; k++) t.fixed[k] = true;
  return t;
}

/* One trip; returns the body's outputs. */
static const im_val *trip(trips *t, const im_val *in, size_t nin) {
  const im_val *out = im_run_body(t->n, t->g, in, nin);
  memcpy(t->state, out + t->from, t->states * sizeof *out);
  for (uint32_t k = 0; k < t->scans; k++) {
    const im_val *v = &out[t->from + t->states + k];
    if (v->list) im_bad(t->n, "output %u of its body is not a tensor", k);
    tarn_push(t->n->cx, &t->list[k], v->t);
    t->fixed[k] &= v->fixed;
    t->stored[k] = v->stored;
  }
  return out;
}

/* A list of no trips has the shape that the body declares. */
static tarn_term empty_list(trips *t, uint32_t k, uint32_t axis) {
  int64_t dim[TARN_MAX_DIMS + 1];
  uint32_t rank;
  tarn_dtype type;
  const Onnx__ValueInfoProto *v = t->g->output[t->from + t->states + k];
  if (!im_declared_type(v, &type, &rank, dim) || rank == TARN_MAX_DIMS || axis > rank)
    im_bad(t->n, "makes no trip, and its body does not declare the shape of its output %u", k);
  memmove(dim + axis + 1, dim + axis, (rank - axis) * sizeof *dim);
  dim[axis] = 0;
  return im_const(t->n, im_new(t->n, type, rank + 1, dim));
}

/* A list along a new axis, the first trip last if it is reversed. */
static im_val listed(trips *t, uint32_t k, int64_t axis, bool reversed) {
  uint32_t count = t->list[k].n;
  if (!count) return (im_val){empty_list(t, k, (uint32_t)axis), NULL, true, 0, NULL};
  uint32_t rank = im_shape(t->n, t->list[k].p[0]).n;
  tarn_term *part = TARN_ARRAY(t->n->cx, tarn_term, count + 1);
  for (uint32_t i = 0; i < count; i++) part[i] = t->list[k].p[reversed ? count - 1 - i : i];
  return (im_val){im_stack(t->n, im_axis(t->n, axis, rank + 1), part, count), NULL, t->fixed[k],
                  t->stored[k], NULL};
}

/* ---------------------------------------------------------------- Loop */

static bool holds(im_node *n, im_val *v) {
  if (!v->fixed)
    im_bad(n, "the condition depends on the inputs of the model: bind what decides it with --set");
  const tarn_tensor *x = im_known(n, v, "the condition");
  if (tarn_tensor_count(x) != 1) im_bad(n, "the condition is not a single value");
  return tarn_tensor_get(x, 0).i != 0;
}

static int64_t trip_count(im_node *n) {
  if (im_opt(n, 0) == TARN_NONE) return INT64_MAX;
  if (!im_is_known(n, 0))
    im_bad(n, "the trip count depends on the inputs of the model: bind what decides it with --set");
  return im_int(n, 0, "the trip count");
}

static im_val constant_of(im_node *n, tarn_dtype t, int64_t v) {
  return (im_val){im_scalar(n, t, (double)v, v), NULL, true, 0, NULL};
}

void im_do_loop(im_node *n) {
  const Onnx__GraphProto *g = subgraph(n, "body");
  if (n->nin < 2) im_bad(n, "%u inputs, needs 2", n->nin);
  uint32_t states = n->nin - 2;
  int64_t most = trip_count(n);
  trips t = begin(n, g, states, 1);
  im_val *in = TARN_ARRAY(n->cx, im_val, n->nin + 1);
  im_val go = im_opt(n, 1) == TARN_NONE ? constant_of(n, TARN_BOOL, 1) : *n->in[1];
  for (uint32_t i = 0; i < states; i++) t.state[i] = kept(n, 2 + i);
  for (int64_t i = 0; i < most && holds(n, &go); i++) {
    in[0] = constant_of(n, TARN_I64, i);
    in[1] = go;
    memcpy(in + 2, t.state, states * sizeof *in);
    go = trip(&t, in, n->nin)[0];
  }
  n->inner = true;
  for (uint32_t k = 0; k < n->nout && k < states; k++) n->out[k] = t.state[k];
  for (uint32_t k = states; k < n->nout && k < states + t.scans; k++)
    n->out[k] = listed(&t, k - states, 0, false);
}

/* ---------------------------------------------------------------- Scan */

/* Axes and directions; all 0 where they are not given. */
static const int64_t *per_value(im_node *n, const char *name, uint32_t count) {
  uint32_t k;
  const int64_t *given = im_attr_ints(n, name, &k);
  if (given && k != count) im_bad(n, "%s has %u entries, %u are needed", name, k, count);
  return given ? given : TARN_ARRAY(n->cx, int64_t, count + 1);
}

typedef struct scan {
  const Onnx__GraphProto *g;
  uint32_t states, scans, results;
  const int64_t *in_axis, *in_back, *out_axis, *out_back;
} scan;

static scan read_scan(im_node *n, uint32_t nin) {
  scan s = {.g = subgraph(n, "body")};
  int64_t scans = im_attr_int(n, "num_scan_inputs", 0);
  if (scans < 1 || scans > nin) im_bad(n, "%lld scan inputs of %u", (long long)scans, nin);
  s.scans = (uint32_t)scans, s.states = nin - s.scans;
  if (s.g->n_output < s.states) im_bad(n, "its body has %zu outputs", s.g->n_output);
  s.results = (uint32_t)s.g->n_output - s.states;
  s.in_axis = per_value(n, "scan_input_axes", s.scans);
  s.in_back = per_value(n, n->version < 9 ? "directions" : "scan_input_directions", s.scans);
  s.out_axis = per_value(n, "scan_output_axes", s.results);
  s.out_back = per_value(n, "scan_output_directions", s.results);
  return s;
}

/* in: states, then what is scanned; out: states, then lists. */
static void run_scan(im_node *n, const scan *s, const im_val *in, im_val *out) {
  int64_t length = -1;
  trips t = begin(n, s->g, s->states, 0);
  uint32_t axis[64];
  if (s->scans > 64) im_bad(n, "more than 64 scan inputs");
  memcpy(t.state, in, s->states * sizeof *in);
  for (uint32_t k = 0; k < s->scans; k++) {
    im_dims d = im_shape(n, in[s->states + k].t);
    axis[k] = im_axis(n, s->in_axis[k], d.n);
    if (length >= 0 && d.d[axis[k]] != length) im_bad(n, "the scan inputs differ in length");
    length = d.d[axis[k]];
  }
  im_val *arg = TARN_ARRAY(n->cx, im_val, s->states + s->scans + 1);
  for (int64_t i = 0; i < length; i++) {
    memcpy(arg, t.state, s->states * sizeof *arg);
    for (uint32_t k = 0; k < s->scans; k++) {
      const im_val *v = &in[s->states + k];
      int64_t at = s->in_back[k] ? length - 1 - i : i;
      arg[s->states + k] = (im_val){im_pick(n, v->t, axis[k], at), NULL, v->fixed, v->stored, NULL};
    }
    trip(&t, arg, s->states + s->scans);
  }
  memcpy(out, t.state, s->states * sizeof *out);
  for (uint32_t k = 0; k < s->results; k++)
    out[s->states + k] = listed(&t, k, s->out_axis[k], s->out_back[k] != 0);
}

/* Operator set 8: every value has the batch first. */
static void scan_batch(im_node *n) {
  uint32_t nin = n->nin - 1;
  scan s = read_scan(n, nin);
  uint32_t nout = s.states + s.results;
  if (im_opt(n, 0) != TARN_NONE) im_bad(n, "sequence lengths are not supported");
  int64_t batch = im_shape(n, im_arg(n, 1)).d[0];
  if (batch < 1 || batch > IM_MAX_NODES) im_bad(n, "a batch of %lld", (long long)batch);
  im_val *in = TARN_ARRAY(n->cx, im_val, nin + 1), *out = TARN_ARRAY(n->cx, im_val, nout + 1);
  tarn_term *part = TARN_ARRAY(n->cx, tarn_term, (size_t)batch * (nout + 1));
  for (int64_t b = 0; b < batch; b++) {
    for (uint32_t i = 0; i < nin; i++) {
      im_val v = kept(n, 1 + i);
      im_dims d = im_shape(n, v.t);
      if (d.n < 1 || d.d[0] != batch)
        im_bad(n, "input %u has no batch of %lld", 1 + i, (long long)batch);
      in[i] = (im_val){im_pick(n, v.t, 0, b), NULL, v.fixed, v.stored, NULL};
    }
    run_scan(n, &s, in, out);
    for (uint32_t k = 0; k < nout; k++) part[k * (size_t)batch + (size_t)b] = out[k].t;
  }
  for (uint32_t k = 0; k < nout && k < n->nout; k++)
    n->out[k] =
        (im_val){im_stack(n, 0, part + k * (size_t)batch, (uint32_t)batch), NULL, false, 0, NULL};
}

void im_do_scan(im_node *n) {
  n->inner = true;
  if (n->version < 9) {
    scan_batch(n);
    return;
  }
  scan s = read_scan(n, n->nin);
  uint32_t nout = s.states + s.results;
  im_val *in = TARN_ARRAY(n->cx, im_val, n->nin + 1), *out = TARN_ARRAY(n->cx, im_val, nout + 1);
  for (uint32_t i = 0; i < n->nin; i++) in[i] = kept(n, i);
  run_scan(n, &s, in, out);
  for (uint32_t k = 0; k < nout && k < n->nout; k++) n->out[k] = out[k];
}

/* ---------------------------------------------------------------- what there is not */

void im_do_unsupported(im_node *n) { im_bad(n, "operators on strings are not supported"); }

void im_do_random(im_node *n) {
  im_bad(n, "random operators are not supported: a program gives one result per input");
}
