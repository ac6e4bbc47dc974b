/* Attributes of a node. An attribute that the handler did not read is an error in
 * im_attr_finish(), because an unknown attribute could change the meaning of the node. */
#include "model/import.h"
#include <string.h>

static const Onnx__AttributeProto *named(Onnx__AttributeProto *const *list, size_t n,
                                         const char *name) {
  for (size_t i = 0; i < n; i++)
    if (list[i]->name && strcmp(list[i]->name, name) == 0) return list[i];
  return NULL;
}

/* In a function's body an attribute may stand for one of the call, which may stand for one of a
 * call around it; where no call gives it, it is the function's default, or absent. */
static const Onnx__AttributeProto *resolve(const im_node *n, const im_scope *s,
                                           const Onnx__AttributeProto *a) {
  if (!a || !a->ref_attr_name || !*a->ref_attr_name) return a;
  s = im_function_scope(s);
  if (!s)
    im_bad(n, "attribute %s refers to an attribute outside a function", a->name ? a->name : "");
  const Onnx__NodeProto *call = s->caller->p;
  const Onnx__AttributeProto *given = named(call->attribute, call->n_attribute, a->ref_attr_name);
  given = resolve(n, s->caller->scope, given);
  return given ? given : im_function_default(s->function, a->ref_attr_name);
}

const Onnx__AttributeProto *im_attr(im_node *n, const char *name) {
  for (size_t i = 0; i < n->p->n_attribute; i++) {
    const Onnx__AttributeProto *a = n->p->attribute[i];
    if (!a->name || strcmp(a->name, name) != 0) continue;
    n->attr_used[i] = 1;
    return resolve(n, n->scope, a);
  }
  return NULL;
}

/* Files before IR version 2 leave `type` out. */
static bool is(const Onnx__AttributeProto *a, Onnx__AttributeProto__AttributeType t, bool has) {
  return a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED ? a->type == t
                                                                                    : has;
}

int64_t im_attr_int(im_node *n, const char *name, int64_t otherwise) {
  const Onnx__AttributeProto *a = im_attr(n, name);
  if (!a) return otherwise;
  if (!is(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, a->has_i))
    im_bad(n, "attribute %s is not an integer", name);
  return a->i;
}

double im_attr_real(im_node *n, const char *name, double otherwise) {
  const Onnx__AttributeProto *a = im_attr(n, name);
  if (!a) return otherwise;
  if (!is(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, a->has_f))
    im_bad(n, "attribute %s is not a number", name);
  return (double)a->f;
}

const char *im_attr_str(im_node *n, const char *name, const char *otherwise) {
  const Onnx__AttributeProto *a = im_attr(n, name);
  if (!a) return otherwise;
  if (!is(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, a->has_s))
    im_bad(n, "attribute %s is not a string", name);
  return tarn_strndup(n->cx, a->s.len ? (const char *)a->s.data : "", a->s.len);
}

const int64_t *im_attr_ints(im_node *n, const char *name, uint32_t *count) {
  const Onnx__AttributeProto *a = im_attr(n, name);
  *count = 0;
  if (!a) return NULL;
  if (!is(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, a->n_ints != 0))
    im_bad(n, "attribute %s is not a list of integers", name);
  *count = (uint32_t)a->n_ints;
  static const int64_t none[1] = {0};
  return a->n_ints ? a->ints : none;
}

void im_attr_list(im_node *n, const char *name, int64_t *to, uint32_t count, int64_t otherwise,
                  int64_t least, int64_t most) {
  uint32_t k;
  const int64_t *v = im_attr_ints(n, name, &k);
  if (v && k != count) im_bad(n, "%s has %u entries, %u are needed", name, k, count);
  for (uint32_t i = 0; i < count; i++) {
    to[i] = v ? v[i] : otherwise;
    if (to[i] < least || to[i] > most)
      im_bad(n, "%s: %lld is out of range", name, (long long)to[i]);
  }
}

bool im_attr_is(im_node *n, const char *name, const char *text, const char *otherwise) {
  return strcmp(im_attr_str(n, name, otherwise), text) == 0;
}

void im_attr_ignore(im_node *n, const char *name) { im_attr(n, name); }

void im_attr_finish(im_node *n) {
  for (size_t i = 0; i < n->p->n_attribute; i++) {
    const Onnx__AttributeProto *a = n->p->attribute[i];
    if (!n->attr_used[i] && resolve(n, n->scope, a))
      im_bad(n, "attribute %s is not supported", a->name ? a->name : "without a name");
  }
}
