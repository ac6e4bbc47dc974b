/* Reducers and functions of compute. */
#include "access/internal.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- reducers */
static const tarn_fxop steps[] = {[TARN_RED_SUM] = TARN_FX_ADD,
                                  [TARN_RED_PROD] = TARN_FX_MUL,
                                  [TARN_RED_MAX] = TARN_FX_MAX,
                                  [TARN_RED_MIN] = TARN_FX_MIN};

static uint32_t least(tarn_lang *L, tarn_dtype t) {
  if (tarn_dtype_is_float(t)) return tarn_fx_const(L, t, -INFINITY);
  bool sign = tarn_dtype_is_signed(t);
  return tarn_fx_iconst(L, t, sign ? (int64_t)((uint64_t)1 << (tarn_dtype_bits(t) - 1)) : 0);
}

static uint32_t greatest(tarn_lang *L, tarn_dtype t) {
  if (tarn_dtype_is_float(t)) return tarn_fx_const(L, t, INFINITY);
  unsigned drop = tarn_dtype_is_signed(t) ? 65 - tarn_dtype_bits(t) : 64 - tarn_dtype_bits(t);
  return tarn_fx_iconst(L, t, (int64_t)(UINT64_MAX >> drop));
}

/* The start of a sum is +0: then a running sum is never -0, and adding zeros anywhere changes
 * nothing. */
static uint32_t start_of(tarn_lang *L, tarn_red_kind k, tarn_dtype t) {
  switch (k) {
  case TARN_RED_PROD: return tarn_fx_const(L, t, 1);
  case TARN_RED_MAX: return least(L, t);
  case TARN_RED_MIN: return greatest(L, t);
  default: return tarn_fx_const(L, t, 0);
  }
}

/* The type of the state: a sum or a product of 16-bit floats is rounded to their type once, at its
 * end. */
static tarn_dtype state_of(tarn_red_kind k, tarn_dtype t) {
  return k == TARN_RED_SUM || k == TARN_RED_PROD ? tarn_dtype_accumulator(t) : t;
}
static uint32_t in_type(tarn_lang *L, uint32_t f, tarn_dtype from, tarn_dtype to) {
  return from == to ? f : tarn_fx_cast(L, to, f);
}

static tarn_reducer builtin(tarn_lang *L, tarn_red_kind k, tarn_dtype t) {
  tarn_dtype st = state_of(k, t);
  uint32_t s = tarn_fx_hole(L, 0), x = tarn_fx_hole(L, 1);
  return (tarn_reducer){.kind = k,
                        .dtype = t,
                        .ns = 1,
                        .init = {start_of(L, k, st)},
                        .step = {tarn_fx_op(L, steps[k], s, in_type(L, x, t, st), 0)},
                        .merge = {tarn_fx_op(L, steps[k], s, x, 0)},
                        .result = in_type(L, s, st, t),
                        .identity = start_of(L, k, t),
                        .commutative = true};
}

/* A custom reducer that is a built-in one in all but name gets the name. */
static tarn_reducer canonical(tarn_lang *L, const tarn_reducer *r) {
  for (tarn_red_kind k = TARN_RED_SUM; k < TARN_RED_CUSTOM && r->ns == 1; k++) {
    tarn_reducer b = builtin(L, k, r->dtype);
    if (r->init[0] == b.init[0] && r->step[0] == b.step[0] && r->result == b.result) return b;
  }
  tarn_reducer c = *r;
  c.kind = TARN_RED_CUSTOM;
  c.identity = TARN_NONE;
  for (uint32_t i = r->ns; i < TARN_MAX_STATE; i++) c.init[i] = c.step[i] = c.merge[i] = 0;
  return c;
}

static bool arity_fits(const tarn_lang *L, const tarn_reducer *r) {
  uint32_t ns = r->ns;
  if (tarn_fx_holes(L, r->result) > ns) return false;
  for (uint32_t i = 0; i < ns; i++) {
    if (tarn_fx_get(L, r->init[i])->op != TARN_FX_CONST) return false;
    if (tarn_fx_holes(L, r->step[i]) > ns + 2) return false;
    if ((r->merge[i] == TARN_NONE) != (r->merge[0] == TARN_NONE)) return false;
    if (r->merge[i] != TARN_NONE && tarn_fx_holes(L, r->merge[i]) > 2 * ns) return false;
  }
  return true;
}

uint32_t tarn_reducer_intern(tarn_lang *L, const tarn_reducer *given) {
  tarn_reducer r = *given;
  if (r.kind == TARN_RED_NONE || r.kind > TARN_RED_CUSTOM)
    tarn_raise(L->cx, TARN_BAD_INPUT, "reducer: unknown kind %d", (int)r.kind);
  if (r.kind == TARN_RED_CUSTOM) {
    if (r.ns == 0 || r.ns > TARN_MAX_STATE || !arity_fits(L, &r))
      tarn_raise(L->cx, TARN_BAD_INPUT,
                 "reducer: initial values must be constants, and its "
                 "expressions may use only the state, the element and its index");
    r = canonical(L, &r);
  } else r = builtin(L, r.kind, r.dtype);
  tarn_key_begin(L);
  tarn_key(L,
           (uint64_t)r.kind << 24 | (uint64_t)r.dtype << 16 | (uint64_t)r.ns << 8 | r.commutative);
  tarn_key(L, r.result);
  for (uint32_t i = 0; i < r.ns; i++) {
    tarn_key(L, (uint64_t)r.init[i] << 32 | r.step[i]);
    tarn_key(L, r.merge[i]);
  }
  uint32_t id = tarn_table_find(L, &L->reducer);
  return id != TARN_NONE ? id
                         : tarn_table_add(L, &L->reducer, tarn_copy(L->reducer.cx, &r, sizeof r));
}

uint32_t tarn_reducer_of(tarn_lang *L, tarn_red_kind k, tarn_dtype t) {
  return tarn_reducer_intern(L, &(tarn_reducer){.kind = k, .dtype = t});
}

const tarn_reducer *tarn_reducer_get(const tarn_lang *L, uint32_t id) {
  return tarn_table_get(&L->reducer, id);
}

uint32_t tarn_reducer_identity(const tarn_lang *L, uint32_t id) {
  return tarn_reducer_get(L, id)->identity;
}

/* Do these expressions over holes of these types give the state's types back? */
static bool gives_state(tarn_lang *L, const char *part, const uint32_t *f, const tarn_dtype *holes,
                        uint32_t nholes, const tarn_dtype *state, uint32_t ns) {
  for (uint32_t i = 0; i < ns; i++) {
    tarn_dtype t;
    if (!tarn_fx_type(L, f[i], holes, nholes, &t)) return false;
    if (t == state[i]) continue;
    tarn_set_message(L->cx, "reducer: %s %u gives %s where the state is %s", part, i,
                     tarn_dtype_name(t), tarn_dtype_name(state[i]));
    return false;
  }
  return true;
}

bool tarn_reducer_type(tarn_lang *L, uint32_t red, tarn_dtype *state, tarn_dtype *result) {
  const tarn_reducer *r = tarn_reducer_get(L, red);
  tarn_dtype holes[2 * TARN_MAX_STATE + 2];
  uint32_t ns = r->ns;
  for (uint32_t i = 0; i < ns; i++) state[i] = holes[i] = tarn_fx_get(L, r->init[i])->dtype;
  holes[ns] = r->dtype;
  holes[ns + 1] = TARN_I64;
  if (!gives_state(L, "step", r->step, holes, ns + 2, state, ns)) return false;
  for (uint32_t i = 0; i < ns; i++) holes[ns + i] = state[i];
  if (r->merge[0] != TARN_NONE && !gives_state(L, "merge", r->merge, holes, 2 * ns, state, ns))
    return false;
  return tarn_fx_type(L, r->result, state, ns, result);
}

/* ---------------------------------------------------------------- functions */
static void check_fn(tarn_lang *L, const tarn_func *f) {
  uint32_t values = f->ntuple ? f->ntuple : f->nops, holes = tarn_fx_holes(L, f->body);
  if (f->nops == 0 || (f->ntuple && f->nops != 1))
    tarn_raise(L->cx, TARN_BAD_INPUT, "function: %u operands%s", f->nops,
               f->ntuple ? " in tuple form" : "");
  if (holes > values)
    tarn_raise(L->cx, TARN_BAD_INPUT, "function: $%u, but there are %u values", holes - 1, values);
  if (f->red != TARN_NONE && f->red >= tarn_table_count(&L->reducer))
    tarn_raise(L->cx, TARN_INTERNAL, "function: no reducer has the number %u", f->red);
  if (f->ntuple && f->red == TARN_NONE && f->nepi)
    tarn_raise(L->cx, TARN_BAD_INPUT, "function: a map in tuple form takes no epilogue operands");
  if (f->epi == TARN_NONE ? f->nepi > 0 : tarn_fx_holes(L, f->epi) > f->nepi + 1u)
    tarn_raise(L->cx, TARN_BAD_INPUT, "function: %u epilogue operands do not fit the epilogue",
               f->nepi);
}

/* An epilogue of an elementwise function is a part of its body. */
static tarn_func fold_epilogue(tarn_lang *L, const tarn_func *f) {
  tarn_func g = *f;
  uint32_t with[UINT8_MAX + 1];
  if (f->red != TARN_NONE || f->epi == TARN_NONE) return g;
  if (f->nops + f->nepi > UINT8_MAX)
    tarn_raise(L->cx, TARN_BAD_INPUT, "function: too many operands");
  with[0] = f->body;
  for (uint32_t i = 0; i < f->nepi; i++) with[i + 1] = tarn_fx_hole(L, f->nops + i);
  g.body = tarn_fx_subst(L, f->epi, with, f->nepi + 1u);
  g.nops = (uint8_t)(f->nops + f->nepi);
  g.nepi = 0;
  g.epi = TARN_NONE;
  return g;
}

uint32_t tarn_fn_intern(tarn_lang *L, const tarn_func *given) {
  check_fn(L, given);
  tarn_func f = fold_epilogue(L, given);
  if (f.nepi == 0 && f.epi == tarn_fx_hole(L, 0)) f.epi = TARN_NONE;
  tarn_key_begin(L);
  tarn_key(L, (uint64_t)f.ntuple << 16 | (uint64_t)f.nops << 8 | f.nepi);
  tarn_key(L, (uint64_t)f.body << 32 | f.red);
  tarn_key(L, f.epi);
  uint32_t id = tarn_table_find(L, &L->fn);
  return id != TARN_NONE ? id : tarn_table_add(L, &L->fn, tarn_copy(L->fn.cx, &f, sizeof f));
}

const tarn_func *tarn_fn_get(const tarn_lang *L, uint32_t id) { return tarn_table_get(&L->fn, id); }

uint32_t tarn_fn_reduce(tarn_lang *L, uint32_t body, uint32_t nops, uint32_t red) {
  if (nops > UINT8_MAX) tarn_raise(L->cx, TARN_BAD_INPUT, "function: %u operands", nops);
  return tarn_fn_intern(
      L, &(tarn_func){.nops = (uint8_t)nops, .body = body, .red = red, .epi = TARN_NONE});
}

uint32_t tarn_fn_map(tarn_lang *L, uint32_t body, uint32_t nops) {
  return tarn_fn_reduce(L, body, nops, TARN_NONE);
}

tarn_func tarn_fn_product(tarn_lang *L, tarn_dtype t) {
  tarn_dtype acc = state_of(TARN_RED_SUM, t);
  uint32_t h0 = tarn_fx_hole(L, 0), a = in_type(L, h0, t, acc),
           b = in_type(L, tarn_fx_hole(L, 1), t, acc);
  return (tarn_func){.nops = 2,
                     .body = tarn_fx_op(L, TARN_FX_MUL, a, b, 0),
                     .red = tarn_reducer_of(L, TARN_RED_SUM, acc),
                     .epi = acc == t ? TARN_NONE : tarn_fx_cast(L, t, h0)};
}

uint32_t tarn_fn_dot(tarn_lang *L, tarn_dtype t) {
  tarn_func f = tarn_fn_product(L, t);
  f.ntuple = 2;
  f.nops = 1;
  return tarn_fn_intern(L, &f);
}

uint32_t tarn_fn_widened(tarn_lang *L, uint32_t id) {
  tarn_func f = *tarn_fn_get(L, id);
  if (f.red == TARN_NONE) return id;
  const tarn_reducer *r = tarn_reducer_get(L, f.red);
  tarn_dtype t = r->dtype, acc = state_of(r->kind, t);
  if (acc == t) return id;
  uint32_t rounded = tarn_fx_cast(L, t, tarn_fx_hole(L, 0));
  f.body = tarn_fx_cast(L, acc, f.body);
  f.red = tarn_reducer_of(L, r->kind, acc);
  f.epi = f.epi == TARN_NONE ? rounded : tarn_fx_subst(L, f.epi, &rounded, 1);
  return tarn_fn_intern(L, &f);
}

/* Hole i, or its cast to t. */
static bool is_factor(const tarn_lang *L, uint32_t f, uint32_t i, tarn_dtype t) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (x->op == TARN_FX_CAST && x->dtype == t) x = tarn_fx_get(L, x->kid[0]);
  return x->op == TARN_FX_HOLE && x->hole == i;
}

bool tarn_fn_is_dot(const tarn_lang *L, uint32_t id) {
  const tarn_func *f = tarn_fn_get(L, id);
  const tarn_reducer *r = f->red == TARN_NONE ? NULL : tarn_reducer_get(L, f->red);
  if (!r || r->kind != TARN_RED_SUM || (f->ntuple ? f->ntuple : f->nops) != 2) return false;
  const tarn_fx *x = tarn_fx_get(L, f->body);
  if (x->op != TARN_FX_MUL) return false;
  bool forth = is_factor(L, x->kid[0], 0, r->dtype) && is_factor(L, x->kid[1], 1, r->dtype);
  return forth || (is_factor(L, x->kid[0], 1, r->dtype) && is_factor(L, x->kid[1], 0, r->dtype));
}

/* ---------------------------------------------------------------- typing */
static bool reduced_type(tarn_lang *L, uint32_t red, tarn_dtype element, tarn_dtype *out) {
  tarn_dtype state[TARN_MAX_STATE];
  if (tarn_reducer_get(L, red)->dtype != element) {
    tarn_set_message(L->cx, "the reducer takes %s, the body gives %s",
                     tarn_dtype_name(tarn_reducer_get(L, red)->dtype), tarn_dtype_name(element));
    return false;
  }
  return tarn_reducer_type(L, red, state, out);
}

bool tarn_fn_type(tarn_lang *L, uint32_t fn, const tarn_dtype *dt, uint32_t ndt, tarn_dtype *out) {
  const tarn_func *f = tarn_fn_get(L, fn);
  tarn_dtype holes[UINT8_MAX + 1];
  if (ndt != (uint32_t)f->nops + f->nepi) {
    tarn_set_message(L->cx, "the function takes %u operands, not %u", f->nops + f->nepi, ndt);
    return false;
  }
  uint32_t values = f->ntuple ? f->ntuple : f->nops;
  for (uint32_t i = 0; i < values; i++) holes[i] = dt[f->ntuple ? 0 : i];
  if (!tarn_fx_type(L, f->body, holes, values, out)) return false;
  if (f->red != TARN_NONE && !reduced_type(L, f->red, *out, out)) return false;
  if (f->epi == TARN_NONE) return true;
  holes[0] = *out;
  for (uint32_t i = 0; i < f->nepi; i++) holes[i + 1] = dt[f->nops + i];
  return tarn_fx_type(L, f->epi, holes, f->nepi + 1u, out);
}
