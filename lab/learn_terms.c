/* Small typed terms, all of them, and which are equal: same type, same values on random whole
 * numbers (in f64, where the sums and products of so small tensors are exact, so that order does
 * not matter). */
#include "lab/learn_terms.h"
#include "base/limit.h"
#include "lab/meaning.h"
#include <string.h>

enum { LT_BATCH = 200, LT_TERMS = 3000000 };

bool lt_late(const lt *l) {
  return tarn_late(l->cx) || (l->deadline > 0 && tarn_now() > l->deadline);
}

/* ---------------------------------------------------------------- what is declared */

static void read_leaf(lt *l, const tarn_sx *s, uint64_t *seed) {
  tarn_dtype dt;
  if (s->kind != TARN_SX_LIST || s->n != 3 || !tarn_dtype_parse(s->kid[1]->text, &dt))
    tarn_sx_error(l->cx, s, "expected (NAME TYPE SHAPE)");
  if (l->nleaf == LT_LEAVES) tarn_sx_error(l->cx, s, "at most %d leaves", LT_LEAVES);
  uint32_t type = tarn_type_parse(l->L, s->kid[2], dt);
  tarn_term t = tarn_input(l->L, s->kid[0]->text, type);
  const tarn_type *ty = tarn_type_get(l->L, type);
  tarn_tensor *v = tarn_tensor_new(l->cx, dt, ty->n, ty->dim);
  for (int64_t i = 0; i < tarn_tensor_count(v); i++) {
    int64_t x = (int64_t)(tarn_random(seed) % 401) - 200;
    tarn_tensor_set(v, i,
                    tarn_dtype_is_float(dt) ? (tarn_value){.d = (double)x} : (tarn_value){.i = x});
  }
  l->leaf[l->nleaf] = t;
  l->in[l->nleaf++] = (tarn_binding){s->kid[0]->text, v};
}
static uint32_t arity_of(const lt *l, uint32_t op, uint32_t payload) {
  const tarn_opinfo *info = tarn_op_info(op);
  if (op == TARN_OP_COMPUTE) {
    const tarn_func *f = tarn_fn_get(l->L, tarn_payload_get(l->L, payload)->id);
    return f->nops + f->nepi;
  }
  return info->min_kids == info->max_kids ? (uint32_t)info->min_kids : 2;
}
static void read_op(lt *l, const tarn_sx *s) {
  uint32_t used = 0;
  lt_op o = {.op = s->kind == TARN_SX_LIST && s->n ? tarn_op_find(s->kid[0]->text) : TARN_NONE};
  if (o.op == TARN_NONE || o.op == TARN_OP_INPUT || o.op == TARN_OP_CONST)
    tarn_sx_error(l->cx, s, "expected (OPERATOR PAYLOAD…)");
  o.payload = tarn_payload_parse(l->L, o.op, s, &used);
  if (used + 1 != s->n) tarn_sx_error(l->cx, s, "only the payload stands here, no terms");
  o.arity = arity_of(l, o.op, o.payload);
  if (o.arity < 1 || o.arity > 2)
    tarn_sx_error(l->cx, s, "operators of one or two operands are enumerated");
  tarn_push(l->cx, &l->op, o);
}
static void read_all(lt *l, const tarn_sx *s) {
  uint64_t seed = tarn_hash_mix(l->o->seed, 11);
  l->most = 3;
  for (uint32_t i = 1; i < s->n; i++) {
    const tarn_sx *k = s->kid[i];
    if (tarn_sx_is(k, "leaves"))
      for (uint32_t j = 1; j < k->n; j++) read_leaf(l, k->kid[j], &seed);
    else if (tarn_sx_is(k, "operators"))
      for (uint32_t j = 1; j < k->n; j++) read_op(l, k->kid[j]);
    else if (tarn_sx_atom_is(k, ":size") && i + 1 < s->n && s->kid[i + 1]->kind == TARN_SX_INT &&
             s->kid[i + 1]->i > 0 && s->kid[i + 1]->i <= LT_SIZE)
      l->most = (uint32_t)s->kid[++i]->i;
    else
      tarn_sx_error(l->cx, k, "expected (leaves …), (operators …) or :size and a number of 1 to %d",
                    LT_SIZE);
  }
  if (l->o->size > LT_SIZE)
    tarn_raise(l->cx, TARN_USAGE, "rules learn: terms of at most %d operators", LT_SIZE);
  if (l->o->size) l->most = l->o->size;
  if (!l->nleaf || !l->op.n) tarn_sx_error(l->cx, s, "leaves and operators are needed");
}

/* ---------------------------------------------------------------- terms and their values */

static void mark(lt *l, tarn_term t, uint32_t value, uint32_t size) {
  while (l->value.n <= t) {
    tarn_push(l->cx, &l->value, 0);
    tarn_push(l->cx, &l->size, 0);
  }
  l->value.p[t] = value, l->size.p[t] = size;
}
static void file(lt *l, tarn_term t, const tarn_tensor *v) {
  size_t bytes = tarn_tensor_bytes(v);
  uint64_t key[3] = {tarn_term_get(l->L, t)->type, tarn_hash_bytes(v->data, bytes, 1),
                     tarn_hash_bytes(v->data, bytes, 2)};
  uint32_t id = tarn_intern_add(l->values, key, sizeof key);
  l->value.p[t] = id + 1;
  tarn_push(l->cx, &l->all, t);
  if (id == l->of_value.n) {
    tarn_push(l->cx, &l->of_value, t);
    tarn_push(l->cx, &l->small, t);
    return;
  }
  lt_equation e = {t, l->of_value.p[id], l->size.p[t] + l->size.p[l->of_value.p[id]]};
  tarn_push(l->cx, &l->equation, e);
}
static void evaluate_batch(lt *l) {
  tarn_tensor *out[LT_BATCH];
  if (l->batch.n) tarn_eval(l->L, l->batch.p, l->batch.n, l->in, l->nleaf, TARN_WIDE, NULL, out);
  for (uint32_t i = 0; i < l->batch.n; i++) file(l, l->batch.p[i], out[i]);
  l->batch.n = 0;
}
static void consider(lt *l, const lt_op *o, const tarn_term *kid, uint32_t size) {
  uint32_t type[2];
  for (uint32_t i = 0; i < o->arity; i++) type[i] = tarn_term_get(l->L, kid[i])->type;
  if (tarn_type_of(l->L, o->op, o->payload, type, o->arity) == TARN_NONE) return;
  tarn_term t = tarn_mk(l->L, o->op, o->payload, kid, o->arity);
  const tarn_type *ty = tarn_term_type(l->L, t);
  if (ty->tuple || tarn_type_count(ty) == 0 || ty->n > 6 || (t < l->size.n && l->size.p[t])) return;
  mark(l, t, 0, size);
  tarn_push(l->cx, &l->batch, t);
  if (l->batch.n == LT_BATCH) evaluate_batch(l);
}
/* Operands have size - 1 operators together; a leaf has none. */
static void terms_of(lt *l, uint32_t size) {
  for (uint32_t i = 0; i < l->op.n; i++) {
    lt_op o = l->op.p[i];
    for (uint32_t s = 0; s < size && !lt_late(l); s++) {
      if (o.arity == 1 && s + 1 < size) continue;
      for (uint32_t a = l->first[s]; a < l->first[s + 1]; a++) {
        tarn_term kid[2] = {l->small.p[a]};
        uint32_t from = o.arity == 1 ? 0 : l->first[size - 1 - s],
                 to = o.arity == 1 ? 1 : l->first[size - s];
        for (uint32_t b = from; b < to && l->all.n < LT_TERMS; b++) {
          kid[1] = l->small.p[b];
          consider(l, &o, kid, size);
        }
      }
    }
  }
}
void lt_enumerate(lt *l, const tarn_sx *terms) {
  read_all(l, terms);
  l->values = tarn_intern_new(l->cx);
  for (uint32_t i = 0; i < l->nleaf; i++) {
    mark(l, l->leaf[i], 0, 0);
    tarn_push(l->cx, &l->batch, l->leaf[i]);
  }
  evaluate_batch(l);
  l->first[1] = l->small.n;
  for (uint32_t size = 1; size <= l->most && !lt_late(l); size++) {
    terms_of(l, size);
    evaluate_batch(l);
    l->first[size + 1] = l->small.n;
  }
  l->report.terms = l->all.n, l->report.values = l->of_value.n, l->report.equations = l->equation.n;
}

void lt_print(const lt *l, tarn_buf *b, tarn_term t) {
  const tarn_node *x = tarn_term_get(l->L, t);
  if (x->op == TARN_OP_INPUT) {
    tarn_buf_fmt(b, "?%s", tarn_payload_get(l->L, x->payload)->name);
    return;
  }
  tarn_buf_fmt(b, "(%s", tarn_op_info(x->op)->text);
  tarn_payload_print(l->L, b, x->op, x->payload);
  for (uint32_t i = 0, n = x->n; i < n; i++)
    tarn_buf_str(b, " "), lt_print(l, b, tarn_term_get(l->L, t)->kid[i]);
  tarn_buf_str(b, ")");
}
