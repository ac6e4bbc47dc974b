/* Values of intrinsics: what their meanings say, on entries as they lie in memories. */
#include "sim/internal.h"
#include <string.h>

/* Elements between neighbours along each role of an operand; false when a dim has no role. */
static bool steps_of(const tarn_hw_operand *o, const tarn_hw_role *role, int64_t *step) {
  int64_t size = 1;
  for (uint32_t d = o->n; d-- > 0; size *= o->dim[d]) {
    if (o->dim[d] == 1) continue;
    if (role[d] == TARN_HW_UNIT) return false;
    step[role[d] - TARN_HW_M] = size;
  }
  return true;
}
/* The sum of products of `in` in type `out`, added to the accumulator: most of all work. */
static bool adds_products(tarn_lang *L, const sim_unit *u, tarn_dtype in, tarn_dtype out) {
  uint32_t a = tarn_fx_hole(L, 0), b = tarn_fx_hole(L, 1);
  if (in != out) a = tarn_fx_cast(L, out, a), b = tarn_fx_cast(L, out, b);
  return u->f.body == tarn_fx_op(L, TARN_FX_MUL, a, b, 0) && u->f.chains &&
         u->f.red == tarn_reducer_of(L, TARN_RED_SUM, out) &&
         u->n->op[u->f.operand[0]].dtype == in && u->n->op[u->f.operand[1]].dtype == in &&
         u->n->op[u->n->nop - 1].dtype == out;
}
sim_unit *sim_unit_of(sim_run *r, uint32_t intrinsic) {
  sim_unit *u = &r->unit[intrinsic];
  u->n = &r->hw->intrin[intrinsic];
  if (u->made) return u;
  tarn_hw_meaning m = tarn_hw_meaning_of(r->L, r->hw, intrinsic);
  bool ok = tarn_hw_form_of(r->L, &m, &u->f);
  if (ok && u->f.product) {
    const uint32_t op[] = {u->f.operand[0], u->f.operand[1], u->n->nop - 1};
    for (uint32_t i = 0; i < 3 && ok; i++)
      ok = steps_of(&u->n->op[op[i]], u->f.role[i], u->step[i]);
    ok = ok && tarn_reducer_identity(r->L, u->f.red) != TARN_NONE;
    u->bytes = ok && adds_products(r->L, u, TARN_I8, TARN_I32);
    u->floats = ok && adds_products(r->L, u, TARN_F32, TARN_F32);
  }
  u->whole = !ok;
  u->m = m;
  if (u->whole && (m.acc || m.immediate))
    sim_refuse(r,
               "intrinsic %s is neither a product nor a map, and accumulates or has an immediate",
               u->n->name);
  u->reads_result = u->f.product && ok ? u->f.epi != TARN_NONE : m.acc;
  u->made = true;
  return u;
}

static tarn_value get(const tarn_hw_operand *o, const uint8_t *at, int64_t i) {
  tarn_tensor t = {.dtype = o->dtype, .data = (void *)(uintptr_t)at};
  return tarn_tensor_get(&t, i);
}
static void set(const tarn_hw_operand *o, uint8_t *at, int64_t i, tarn_value v) {
  tarn_tensor t = {.dtype = o->dtype, .data = at};
  tarn_tensor_set(&t, i, v);
}

tarn_value sim_immediate(sim_run *r, const tarn_hw_intrinsic *n, int64_t bits) {
  uint32_t k = 0;
  while (k < n->nop && !n->op[k].immediate) k++;
  if (k == n->nop) return (tarn_value){0};
  tarn_tensor t = {.dtype = n->op[k].dtype, .data = &bits};
  tarn_value v = tarn_dtype_is_float(t.dtype) ? tarn_tensor_get(&t, 0) : (tarn_value){.i = bits};
  double at = tarn_dtype_is_float(t.dtype) ? v.d : (double)v.i;
  if (!(at >= (double)n->op[k].lo && at <= (double)n->op[k].hi))
    sim_refuse(r, "immediate %.9g, %s takes %lld to %lld", at, n->name, (long long)n->op[k].lo,
               (long long)n->op[k].hi);
  return v;
}
static void run_map(sim_run *r, const sim_unit *u, uint8_t *const *at, tarn_value immediate) {
  const tarn_hw_intrinsic *n = u->n;
  tarn_value hole[16];
  tarn_dtype type[16];
  const tarn_hw_operand *y = &n->op[n->nop - 1];
  int64_t count = tarn_hw_operand_bytes(y) / (int64_t)tarn_dtype_size(y->dtype);
  for (uint32_t k = 0; k < n->nop; k++) type[k] = n->op[k].dtype;
  for (int64_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < n->nop; k++) hole[k] = at[k] ? get(&n->op[k], at[k], i) : immediate;
    set(y, at[n->nop - 1], i, tarn_fx_eval(r->L, u->f.body, hole, type, TARN_STRICT));
  }
}
static void run_bytes(const sim_unit *u, uint8_t *const *at) {
  const int8_t *a = (const int8_t *)at[u->f.operand[0]], *b = (const int8_t *)at[u->f.operand[1]];
  uint32_t *y = (uint32_t *)(void *)at[u->n->nop - 1];
  const int64_t(*s)[3] = u->step;
  for (int64_t m = 0; m < u->f.m; m++)
    for (int64_t n = 0; n < u->f.n; n++) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < u->f.k; k++)
        sum +=
            (uint32_t)(a[m * s[0][0] + k * s[0][2]] * b[m * s[1][0] + n * s[1][1] + k * s[1][2]]);
      y[m * s[2][0] + n * s[2][1]] += sum;
    }
}
/* Every step rounded, as reduced() does. */
static void run_floats(sim_run *r, const sim_unit *u, uint8_t *const *at) {
  const float *a = (const float *)(const void *)at[u->f.operand[0]];
  const float *b = (const float *)(const void *)at[u->f.operand[1]];
  float *y = (float *)(void *)at[u->n->nop - 1];
  const tarn_reducer *red = tarn_reducer_get(r->L, u->f.red);
  float first = (float)tarn_fx_eval(r->L, red->identity, NULL, NULL, TARN_STRICT).d;
  const int64_t(*s)[3] = u->step;
  for (int64_t m = 0; m < u->f.m; m++)
    for (int64_t n = 0; n < u->f.n; n++) {
      float sum = first;
      for (int64_t k = 0; k < u->f.k; k++)
        sum += a[m * s[0][0] + k * s[0][2]] * b[m * s[1][0] + n * s[1][1] + k * s[1][2]];
      y[m * s[2][0] + n * s[2][1]] += sum;
    }
}
static tarn_value reduced(sim_run *r, const sim_unit *u, uint8_t *const *at, int64_t m, int64_t n) {
  tarn_lang *L = r->L;
  const tarn_reducer *red = tarn_reducer_get(L, u->f.red);
  const tarn_hw_operand *a = &u->n->op[u->f.operand[0]], *b = &u->n->op[u->f.operand[1]];
  const tarn_dtype types[] = {a->dtype, b->dtype}, both[] = {red->dtype, red->dtype};
  tarn_value sum = tarn_fx_eval(L, red->identity, NULL, NULL, TARN_STRICT);
  const int64_t(*s)[3] = u->step;
  for (int64_t k = 0; k < u->f.k; k++) {
    tarn_value in[] = {get(a, at[u->f.operand[0]], m * s[0][0] + n * s[0][1] + k * s[0][2]),
                       get(b, at[u->f.operand[1]], m * s[1][0] + n * s[1][1] + k * s[1][2])};
    tarn_value two[] = {sum, tarn_fx_eval(L, u->f.body, in, types, TARN_STRICT)};
    sum = tarn_fx_eval(L, red->merge[0], two, both, TARN_STRICT);
  }
  return sum;
}
static void run_product(sim_run *r, const sim_unit *u, uint8_t *const *at) {
  const tarn_hw_operand *y = &u->n->op[u->n->nop - 1];
  const tarn_dtype types[] = {tarn_reducer_get(r->L, u->f.red)->dtype, y->dtype};
  for (int64_t m = 0; m < u->f.m; m++)
    for (int64_t n = 0; n < u->f.n; n++) {
      int64_t i = m * u->step[2][0] + n * u->step[2][1];
      tarn_value v[] = {reduced(r, u, at, m, n), get(y, at[u->n->nop - 1], i)};
      if (u->f.epi != TARN_NONE) v[0] = tarn_fx_eval(r->L, u->f.epi, v, types, TARN_STRICT);
      set(y, at[u->n->nop - 1], i, v[0]);
    }
}
/* Operands as the interpreter has them. What the first run interns stays. */
static void run_whole(sim_run *r, sim_unit *u, uint8_t *const *at) {
  tarn_mark scratch = tarn_arena_mark(r->cx);
  tarn_binding bind[16];
  tarn_tensor *in = TARN_ARRAY(r->cx, tarn_tensor, u->n->nop);
  tarn_tensor *out;
  uint32_t last = u->n->nop - 1;
  for (uint32_t k = 0; k < last; k++) {
    const tarn_hw_operand *o = &u->n->op[k];
    in[k] = (tarn_tensor){.dtype = o->dtype, .n = o->n, .data = at[k]};
    memcpy(in[k].dim, o->dim, o->n * sizeof *o->dim);
    bind[k] = (tarn_binding){o->name, &in[k]};
  }
  tarn_eval(r->L, &u->m.term, 1, bind, last, TARN_STRICT, NULL, &out);
  memcpy(at[last], out->data, (size_t)tarn_hw_operand_bytes(&u->n->op[last]));
  if (u->ran) tarn_release(r->cx, scratch);
  u->ran = true;
}
void sim_unit_run(sim_run *r, sim_unit *u, uint8_t *const *at, tarn_value immediate) {
  if (u->whole) run_whole(r, u, at);
  else if (!u->f.product) run_map(r, u, at, immediate);
  else if (u->bytes) run_bytes(u, at);
  else if (u->floats) run_floats(r, u, at);
  else run_product(r, u, at);
}
