/* Payloads as rows of attributes, which patterns write between an operator and its terms. */
#include "rules/lang/lang.h"
#include <string.h>

const char *r_payload_spec(uint32_t op, uint32_t *least) {
  *least = tarn_op_info(op)->min_attrs;
  return tarn_op_info(op)->attrs;
}

int64_t *r_ints(renv *e, uint32_t n) {
  if (n > R_POOL - e->used) return NULL;
  e->used += n;
  return e->pool + e->used - n;
}

/* What a missing optional element means. windows: dilations of 1; slice: step 1; the rest 0. */
static rv missing(renv *e, uint32_t op, uint32_t n) {
  if (op != TARN_OP_WINDOWS) return (rv){.kind = 'i', .i = op == TARN_OP_SLICE};
  int64_t *one = r_ints(e, n);
  for (uint32_t i = 0; one && i < n; i++) one[i] = 1;
  return (rv){.kind = 'l', .n = one ? n : 0, .p = one};
}

static uint32_t split_lists(const tarn_payload *p, uint32_t lists, rv *out) {
  uint32_t each = p->n / lists;
  for (uint32_t i = 0; i < lists; i++)
    out[i] = (rv){.kind = 'l', .n = each, .p = p->ints + i * each};
  return lists;
}

static uint32_t split_ints(renv *e, const tarn_payload *p, uint32_t op, rv *out) {
  uint32_t n = (uint32_t)strlen(tarn_op_info(op)->attrs);
  if (op == TARN_OP_TRANSPOSE) return split_lists(p, 1, out);
  if (op == TARN_OP_WINDOWS) return split_lists(p, 3, out);
  for (uint32_t i = 0; i < n; i++)
    out[i] = i < p->n ? (rv){.kind = 'i', .i = p->ints[i]} : missing(e, op, 0);
  return n;
}

uint32_t r_payload_split(renv *e, uint32_t op, uint32_t payload, rv *out) {
  const tarn_payload *p = tarn_payload_get(e->L, payload);
  switch (p->kind) {
  case TARN_P_NONE: return 0;
  case TARN_P_INTS: return split_ints(e, p, op, out);
  case TARN_P_SHAPE:
  case TARN_P_MAP:
  case TARN_P_FN:
  case TARN_P_NEST: out[0] = (rv){.kind = tarn_op_info(op)->attrs[0], .id = p->id}; return 1;
  case TARN_P_PADV:
    out[0] = (rv){.kind = 'i', .i = p->ints[0]};
    out[1] = (rv){.kind = 'x', .id = p->value};
    out[2] = (rv){.kind = 'i', .i = p->ints[1]};
    out[3] = (rv){.kind = 'i', .i = p->ints[2]};
    return 4;
  case TARN_P_FOLD:
    out[0] = (rv){.kind = 'r', .id = p->value};
    out[1] = (rv){.kind = 'i', .i = p->ints[0]};
    return 2;
  case TARN_P_CALL:
    out[0] = (rv){.kind = 'y', .name = p->name};
    out[1] = (rv){.kind = 'l', .n = p->n, .p = p->ints};
    out[2] = (rv){.kind = 't', .id = p->type};
    return 3;
  default: out[0] = (rv){.kind = 'p', .id = payload}; return 1;
  }
}

static uint32_t join_ints(renv *e, uint32_t op, const rv *v, uint32_t n) {
  int64_t ints[3 * TARN_MAX_DIMS];
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t more = v[i].kind == 'l' ? v[i].n : 1;
    if (more > TARN_MAX_DIMS) return TARN_NONE;
    if (v[i].kind == 'l') memcpy(ints + k, v[i].p, more * sizeof *ints);
    else ints[k] = v[i].i;
    k += more;
  }
  if (op == TARN_OP_WINDOWS && (v[0].n != v[1].n || v[0].n != v[2].n)) return TARN_NONE;
  if (op == TARN_OP_INSERT_AXIS && ints[1] == 0) k = 1;
  return tarn_payload_ints(e->L, k, ints);
}

uint32_t r_payload_join(renv *e, uint32_t op, const rv *given, uint32_t n) {
  rv v[4];
  uint32_t all = (uint32_t)strlen(tarn_op_info(op)->attrs);
  for (uint32_t i = 0; i < all; i++) v[i] = i < n ? given[i] : missing(e, op, n ? given[0].n : 0);
  for (uint32_t i = 0; i < all; i++)
    if (v[i].kind != tarn_op_info(op)->attrs[i]) return TARN_NONE;
  switch (tarn_op_info(op)->payload) {
  case TARN_P_NONE: return 0;
  case TARN_P_INTS: return join_ints(e, op, v, all);
  case TARN_P_SHAPE:
  case TARN_P_MAP:
  case TARN_P_FN:
  case TARN_P_NEST: return tarn_payload_of(e->L, tarn_op_info(op)->payload, v[0].id);
  case TARN_P_PADV:
    return tarn_payload_intern(e->L, &(tarn_payload){.kind = TARN_P_PADV,
                                                     .n = 3,
                                                     .value = v[1].id,
                                                     .ints = (int64_t[]){v[0].i, v[2].i, v[3].i}});
  case TARN_P_FOLD:
    return tarn_payload_intern(
        e->L, &(tarn_payload){
                  .kind = TARN_P_FOLD, .n = 1, .value = v[0].id, .ints = (int64_t[]){v[1].i}});
  case TARN_P_CALL:
    return tarn_payload_intern(
        e->L,
        &(tarn_payload){
            .kind = TARN_P_CALL, .name = v[0].name, .n = v[1].n, .ints = v[1].p, .type = v[2].id});
  default: return v[0].id;
  }
}
