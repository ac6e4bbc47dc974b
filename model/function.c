/* Functions of a model: found by domain, name and overload, and called with names of their own. An
 * input that is left out stands for nothing there; an attribute comes from the call, else from the
 * function's defaults.
 *
 * Defaults and overloads are younger than the messages that are unpacked: they are read from the
 * fields that are left over. Source: onnx.proto as of IR version 10. */
#include "model/import.h"
#include "model/onnx.h"
#include <string.h>

enum { NODE_OVERLOAD = 8, FUNCTION_DEFAULT = 11, FUNCTION_OVERLOAD = 13 };

struct im_function {
  const Onnx__FunctionProto *p;
  const char *domain, *name, *overload;
  uint32_t ndefault;
  const Onnx__AttributeProto **with; /* defaults */
};

/* ---------------------------------------------------------------- fields that are left over */

/* The bytes of a field with a length, which stands in front of them. */
static const uint8_t *field_bytes(const ProtobufCMessageUnknownField *f, size_t *n) {
  size_t at = 0;
  if (f->wire_type != 2) return NULL;
  while (at < f->len && f->data[at] & 0x80) at++;
  if (at >= f->len) return NULL;
  *n = f->len - at - 1;
  return f->data + at + 1;
}

/* The last of that number, as a text; "" when there is none. */
static const char *text_field(tarn_ctx *cx, const ProtobufCMessage *m, uint32_t number) {
  for (unsigned i = m->n_unknown_fields; i-- > 0;) {
    const ProtobufCMessageUnknownField *f = &m->unknown_fields[i];
    size_t n;
    const uint8_t *p = f->tag == number ? field_bytes(f, &n) : NULL;
    if (p) return tarn_strndup(cx, (const char *)p, n);
  }
  return "";
}

static void read_defaults(im *m, im_function *f) {
  const ProtobufCMessage *base = &f->p->base;
  f->with = TARN_ARRAY(m->cx, const Onnx__AttributeProto *, base->n_unknown_fields + 1);
  for (unsigned i = 0; i < base->n_unknown_fields; i++) {
    const ProtobufCMessageUnknownField *u = &base->unknown_fields[i];
    size_t n;
    const uint8_t *p = u->tag == FUNCTION_DEFAULT ? field_bytes(u, &n) : NULL;
    if (!p) continue;
    ProtobufCMessage *a = im_unpack(m->cx, &onnx__attribute_proto__descriptor, p, n, m->file);
    f->with[f->ndefault++] = (const Onnx__AttributeProto *)a;
  }
}

void im_functions(im *m) {
  size_t n = m->model->n_functions;
  m->function = TARN_ARRAY(m->cx, im_function, n + 1);
  for (size_t i = 0; i < n; i++) {
    im_function *f = &m->function[i];
    const Onnx__FunctionProto *p = m->model->functions[i];
    *f = (im_function){.p = p, .domain = im_domain(p->domain), .name = tarn_onnx_text(p->name)};
    f->overload = text_field(m->cx, &p->base, FUNCTION_OVERLOAD);
    read_defaults(m, f);
  }
}

/* ---------------------------------------------------------------- which one */

static const char *full_name(tarn_ctx *cx, const im_function *f) {
  const char *plain = *f->domain ? tarn_format(cx, "%s.%s", f->domain, f->name) : f->name;
  return *f->overload ? tarn_format(cx, "%s:%s", plain, f->overload) : plain;
}

const im_function *im_find_function(const im_node *n) {
  const char *domain = im_domain(n->p->domain), *overload = NULL;
  const im_function *other = NULL;
  for (size_t i = 0; i < n->m->model->n_functions; i++) {
    const im_function *f = &n->m->function[i];
    if (strcmp(f->name, n->op) != 0 || strcmp(f->domain, domain) != 0) continue;
    if (!overload) overload = text_field(n->cx, &n->p->base, NODE_OVERLOAD);
    if (strcmp(f->overload, overload) == 0) return f;
    other = f;
  }
  if (other) {
    const char *name = *domain ? tarn_format(n->cx, "%s.%s", domain, n->op) : n->op;
    im_bad(n, "no function %s has the overload %s", name, overload);
  }
  return NULL;
}

/* The scope of the function that holds this one; NULL in the model's own graph. */
const im_scope *im_function_scope(const im_scope *s) {
  while (s && !s->function) s = s->parent;
  return s;
}

const char *im_function_name(tarn_ctx *cx, const im_scope *s) {
  const im_scope *f = im_function_scope(s);
  return f ? full_name(cx, f->function) : NULL;
}

const Onnx__AttributeProto *im_function_default(const im_function *f, const char *name) {
  for (uint32_t i = 0; i < f->ndefault; i++)
    if (f->with[i]->name && strcmp(f->with[i]->name, name) == 0) return f->with[i];
  return NULL;
}

/* ---------------------------------------------------------------- calls */

/* A function is not called while it runs: the standard has no recursion. */
static void refuse_recursion(const im_node *n, const im_function *f) {
  const im_scope *s = im_function_scope(n->scope);
  const char *chain = full_name(n->cx, f);
  for (; s; s = im_function_scope(s->caller->scope)) {
    chain = tarn_format(n->cx, "%s, %s", full_name(n->cx, s->function), chain);
    if (s->function == f) im_bad(n, "the function calls itself: %s", chain);
  }
}

void im_call_function(im_node *n, const im_function *f) {
  const Onnx__FunctionProto *p = f->p;
  refuse_recursion(n, f);
  if (n->nin > p->n_input) im_bad(n, "%u inputs where the function has %zu", n->nin, p->n_input);
  im_scope *s = im_enter(n, NULL);
  s->function = f;
  s->opset = (const Onnx__OperatorSetIdProto *const *)p->opset_import;
  s->nopset = p->n_opset_import;
  for (uint32_t i = 0; i < p->n_input; i++) {
    const im_val *given = i < n->nin ? n->in[i] : NULL;
    *im_define(n->m, s, tarn_onnx_text(p->input[i])) = given ? *given : (im_val){.t = IM_ABSENT};
  }
  im_run_nodes(n->m, s, p->node, p->n_node);
  im_take_results(n, s, p->output, p->n_output);
}
