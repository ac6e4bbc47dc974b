/* Sequences and optional values: lists of values that exist during import alone. How many elements
 * there are, and which one is meant, must be known then. */
#include "model/import.h"
#include "model/onnx.h"
#include <string.h>

#define MOST_ELEMENTS 65536

/* ---------------------------------------------------------------- lists */

static const char *const takers[] = {"Identity",
                                     "If",
                                     "Loop",
                                     "Optional",
                                     "OptionalGetElement",
                                     "SequenceAt",
                                     "SequenceMap",
                                     "SequenceInsert",
                                     "SequenceErase",
                                     "SequenceLength",
                                     "ConcatFromSequence",
                                     "OptionalHasElement"};

void im_list_check(im_node *n) {
  for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
    if (strcmp(takers[i], n->op) == 0) return;
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i] && n->in[i]->list)
      im_bad(n, "input %u is %s: only a tensor is supported", i,
             n->in[i]->list->optional ? "an empty optional" : "a sequence");
}

/* Stands for a term, which nothing computes. */
static im_val value_of(im_node *n, const im_list *list) {
  im_val v = {im_scalar(n, TARN_BOOL, 0, 0), NULL, true, 0, list};
  for (uint32_t i = 0; i < list->n; i++) v.fixed &= list->v[i].fixed;
  return v;
}

static im_list *new_list(im_node *n, int64_t count) {
  if (count > MOST_ELEMENTS) im_bad(n, "a sequence of %lld elements", (long long)count);
  im_list *l = TARN_NEW(n->cx, im_list);
  *l = (im_list){.n = (uint32_t)count, .v = TARN_ARRAY(n->cx, im_val, count + 1)};
  return l;
}

static const im_list *list_arg(im_node *n) {
  if (!n->nin || !n->in[0] || !n->in[0]->list || n->in[0]->list->optional)
    im_bad(n, "its first input is no sequence");
  return n->in[0]->list;
}

/* A tensor, as it came in. */
static im_val element(im_node *n, uint32_t i) {
  if (i >= n->nin || !n->in[i] || n->in[i]->list) im_bad(n, "input %u is no tensor", i);
  return *n->in[i];
}

/* Input i as a position among so many; the last one where it is left out. */
static uint32_t position(im_node *n, uint32_t i, uint32_t count) {
  int64_t at = im_opt(n, i) == TARN_NONE ? (int64_t)count - 1 : im_int(n, i, "the position");
  int64_t from = at < 0 ? at + count : at;
  if (from < 0 || from >= count)
    im_bad(n, "position %lld of a sequence of %u", (long long)at, count);
  return (uint32_t)from;
}

/* ---------------------------------------------------------------- sequences */

void im_do_sequence_construct(im_node *n) {
  im_list *l = new_list(n, n->nin);
  for (uint32_t i = 0; i < n->nin; i++) l->v[i] = element(n, i);
  n->out[0] = value_of(n, l);
}

void im_do_sequence_empty(im_node *n) {
  im_attr_ignore(n, "dtype");
  n->out[0] = value_of(n, new_list(n, 0));
}

/* The element at a position of the run. */
static im_val element_of_run(im_node *n, const im_list *l) {
  tarn_term *each = TARN_ARRAY(n->cx, tarn_term, l->n + 1), at = im_arg(n, 1);
  im_dims d = im_shape(n, at);
  if (im_count(&d) != 1) im_bad(n, "the position is not one number");
  for (uint32_t i = 0; i < l->n; i++) {
    each[i] = l->v[i].t;
    if (!im_same_kind(n, &l->v[0], &l->v[i]))
      im_bad(n, "the shape depends on the position: bind what decides %s with --set",
             tarn_onnx_text(n->p->input[1]));
  }
  if (!l->n) im_bad(n, "a position of the run in a sequence of none");
  tarn_term t = im_gather(n, im_stack(n, 0, each, l->n), 0, im_reshape(n, at, 0, d.d));
  return (im_val){t, NULL, false, l->v[0].stored, NULL};
}

void im_do_sequence_at(im_node *n) {
  const im_list *l = list_arg(n);
  n->out[0] = im_is_known(n, 1) ? l->v[position(n, 1, l->n)] : element_of_run(n, l);
}

void im_do_sequence_insert(im_node *n) {
  const im_list *l = list_arg(n);
  bool last = im_opt(n, 2) == TARN_NONE;
  int64_t at = last ? (int64_t)l->n : im_int(n, 2, "the position");
  int64_t from = at < 0 ? at + l->n : at;
  if (from < 0 || from > l->n) im_bad(n, "position %lld of a sequence of %u", (long long)at, l->n);
  im_list *to = new_list(n, (int64_t)l->n + 1);
  memcpy(to->v, l->v, (size_t)from * sizeof *to->v);
  to->v[from] = element(n, 1);
  memcpy(to->v + from + 1, l->v + from, ((size_t)l->n - (size_t)from) * sizeof *to->v);
  n->out[0] = value_of(n, to);
}

void im_do_sequence_erase(im_node *n) {
  const im_list *l = list_arg(n);
  uint32_t at = position(n, 1, l->n);
  im_list *to = new_list(n, (int64_t)l->n - 1);
  memcpy(to->v, l->v, at * sizeof *to->v);
  memcpy(to->v + at, l->v + at + 1, (l->n - 1 - at) * sizeof *to->v);
  n->out[0] = value_of(n, to);
}

void im_do_sequence_length(im_node *n) {
  tarn_tensor *t = im_new(n, TARN_I64, 0, NULL);
  tarn_tensor_set(t, 0, (tarn_value){.i = list_arg(n)->n});
  im_set_tensor(n, 0, t);
}

/* Along an axis that there is, or a new one. */
void im_do_concat_from_sequence(im_node *n) {
  const im_list *l = list_arg(n);
  bool fresh = im_attr_int(n, "new_axis", 0);
  int64_t axis = im_attr_int(n, "axis", 0);
  if (!l->n) im_bad(n, "the sequence is empty");
  tarn_term *part = TARN_ARRAY(n->cx, tarn_term, l->n + 1);
  for (uint32_t i = 0; i < l->n; i++) part[i] = l->v[i].t;
  uint32_t rank = im_shape(n, part[0]).n, at = im_axis(n, axis, rank + fresh);
  im_set(n, 0, fresh ? im_stack(n, at, part, l->n) : im_concat(n, at, part, l->n));
  n->out[0].fixed = n->in[0]->fixed;
  n->out[0].stored = l->v[0].stored;
}

/* Lengths of the parts: given, all alike but for the last, or 1. */
static const int64_t *parts_of(im_node *n, int64_t extent, uint32_t *count) {
  if (im_opt(n, 1) != TARN_NONE && im_shape(n, im_arg(n, 1)).n == 1)
    return im_ints(n, 1, "split", count);
  int64_t each = im_opt(n, 1) == TARN_NONE ? 1 : im_int(n, 1, "split");
  if (each < 1) im_bad(n, "parts of %lld", (long long)each);
  int64_t parts = extent / each + (extent % each != 0);
  if (parts > MOST_ELEMENTS) im_bad(n, "a sequence of %lld elements", (long long)parts);
  int64_t *len = TARN_ARRAY(n->cx, int64_t, parts + 1);
  for (int64_t i = 0; i < parts; i++) len[i] = i < parts - 1 ? each : extent - i * each;
  *count = (uint32_t)parts;
  return len;
}

void im_do_split_to_sequence(im_node *n) {
  im_val x = element(n, 0);
  im_dims d = im_shape(n, x.t);
  uint32_t count, axis = im_axis(n, im_attr_int(n, "axis", 0), d.n);
  bool keep = im_attr_int(n, "keepdims", 1) || im_opt(n, 1) != TARN_NONE;
  const int64_t *len = parts_of(n, d.d[axis], &count);
  im_list *l = new_list(n, count);
  int64_t at = 0;
  for (uint32_t i = 0; i < count; at += len[i++]) {
    if (len[i] < 0 || len[i] > d.d[axis] - at) break;
    tarn_term part = im_cut(n, x.t, axis, at, at + len[i], 1);
    l->v[i] = (im_val){keep ? part : im_drop(n, part, axis), NULL, x.fixed, x.stored, NULL};
  }
  if (at != d.d[axis]) im_bad(n, "the lengths do not add up to %lld", (long long)d.d[axis]);
  n->out[0] = value_of(n, l);
}

/* The body for each element; further inputs are sequences of as many, or the same for all. */
void im_do_sequence_map(im_node *n) {
  const Onnx__AttributeProto *a = im_attr(n, "body");
  const im_list *first = list_arg(n);
  im_val *in = TARN_ARRAY(n->cx, im_val, n->nin + 1);
  im_list **to = TARN_ARRAY(n->cx, im_list *, n->nout + 1);
  if (!a || !a->g || a->g->n_output < n->nout) im_bad(n, "its body does not fit");
  for (uint32_t k = 0; k < n->nout; k++) to[k] = new_list(n, first->n);
  for (uint32_t i = 0; i < first->n; i++) {
    for (uint32_t j = 0; j < n->nin; j++) {
      const im_list *l = n->in[j] ? n->in[j]->list : NULL;
      if (!n->in[j] || (l && l->n != first->n)) im_bad(n, "input %u differs in length", j);
      in[j] = l ? l->v[i] : *n->in[j];
    }
    const im_val *out = im_run_body(n, a->g, in, n->nin);
    for (uint32_t k = 0; k < n->nout; k++) to[k]->v[i] = out[k];
  }
  n->inner = true;
  for (uint32_t k = 0; k < n->nout; k++) n->out[k] = value_of(n, to[k]);
}

/* ---------------------------------------------------------------- optional values */

static bool is_empty(const im_node *n) {
  return !n->nin || !n->in[0] || (n->in[0]->list && n->in[0]->list->optional);
}

/* A value that is there is no other than itself. */
void im_do_optional(im_node *n) {
  im_attr_ignore(n, "type");
  im_list *none = new_list(n, 0);
  none->optional = true;
  n->out[0] = is_empty(n) ? value_of(n, none) : *n->in[0];
}

void im_do_optional_has(im_node *n) {
  tarn_tensor *t = im_new(n, TARN_BOOL, 0, NULL);
  tarn_tensor_set(t, 0, (tarn_value){.i = !is_empty(n)});
  im_set_tensor(n, 0, t);
}

void im_do_optional_get(im_node *n) {
  if (is_empty(n)) im_bad(n, "the optional value is empty");
  n->out[0] = *n->in[0];
}
