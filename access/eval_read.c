/* Where operands' elements lie. An element's number is a sum of a part that only the result decides
 * (lane), a part that only the reduction step decides, and, rarely, of divisions that mix both. */
#include "access/eval.h"
#include "access/ix.h"
#include <string.h>

static void sum_add(const tarn_lang *L, tarn_evsum *s, uint32_t nlane, int64_t k, uint32_t ix) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  s->c += k * x->c;
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_ixterm *t = &x->t[i];
    if (t->kind == TARN_IX_VAR) {
      s->coef[t->arg] += k * t->coef;
      continue;
    }
    tarn_evatom *a = &s->atom[s->natom++];
    *a = (tarn_evatom){.coef = k * t->coef, .t = *t, .dims = tarn_ix_dims(L, t->arg)};
    if (a->dims & ((1u << nlane) - 1)) a->uses |= TARN_EV_LANE;
    if (a->dims >> nlane) a->uses |= TARN_EV_RED_DIMS;
  }
}

static int64_t atom_value(const tarn_lang *L, const tarn_evatom *a, const int64_t *x) {
  int64_t v = tarn_ix_eval(L, a->t.arg, x);
  return a->coef *
         (a->t.kind == TARN_IX_DIV ? tarn_floordiv(v, a->t.by) : tarn_floormod(v, a->t.by));
}

static int64_t sum_value(const tarn_lang *L, const tarn_evsum *s, uint32_t n, const int64_t *x) {
  int64_t v = s->c;
  for (uint32_t d = 0; d < n; d++) v += s->coef[d] * x[d];
  for (uint32_t i = 0; i < s->natom; i++) v += atom_value(L, &s->atom[i], x);
  return v;
}

static void decompose(const tarn_evloops *l, uint32_t d0, uint32_t d1, int64_t at, int64_t *x) {
  for (uint32_t d = d1; d-- > d0; at /= l->ext[d]) x[d] = at % l->ext[d];
}

static void next_row(const tarn_evloops *l, uint32_t d0, uint32_t d1, int64_t *x) {
  for (uint32_t d = d1; d-- > d0; x[d] = 0)
    if (++x[d] < l->ext[d]) return;
}

/* The lane part (with the constant) or the reduce part of a sum, for `count` consecutive indices.
 */
static void sum_fill(const tarn_lang *L, const tarn_evsum *s, const tarn_evloops *l, bool red,
                     int64_t start, uint32_t count, int64_t *out) {
  uint32_t d0 = red ? l->nlane : 0, d1 = red ? l->nall : l->nlane;
  int uses = red ? TARN_EV_RED_DIMS : TARN_EV_LANE;
  int64_t x[TARN_MAX_DIMS] = {0};
  decompose(l, d0, d1, start, x);
  for (uint32_t done = 0; done < count;) {
    int64_t base = red ? 0 : s->c, k = d1 > d0 ? s->coef[d1 - 1] : 0,
            first = d1 > d0 ? x[d1 - 1] : 0;
    int64_t row = d1 > d0 ? l->ext[d1 - 1] - first : 1;
    uint32_t n = row < count - done ? (uint32_t)row : count - done;
    for (uint32_t d = d0; d < d1; d++) base += s->coef[d] * x[d];
    for (uint32_t j = 0; j < n; j++) out[done + j] = base + (int64_t)j * k;
    for (uint32_t i = 0; i < s->natom; i++) {
      if (s->atom[i].uses != uses) continue;
      for (uint32_t j = 0; j < n; j++) {
        if (d1 > d0) x[d1 - 1] = first + j;
        out[done + j] += atom_value(L, &s->atom[i], x);
      }
    }
    if (d1 > d0) x[d1 - 1] = first + n - 1;
    next_row(l, d0, d1, x);
    done += n;
  }
}

/* ---------------------------------------------------------------- reads */
static uint32_t count_atoms(const tarn_lang *L, uint32_t ix) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->n; i++) n += x->t[i].kind != TARN_IX_VAR;
  return n;
}

static bool mixed_atom(const tarn_evatom *a) {
  return a->uses == (TARN_EV_LANE | TARN_EV_RED_DIMS);
}

static bool mixes(const tarn_evsum *s) {
  for (uint32_t i = 0; i < s->natom; i++)
    if (mixed_atom(&s->atom[i])) return true;
  return false;
}

static int64_t *lanes(tarn_ev *e) { return tarn_ev_alloc(e, TARN_EV_LANES * sizeof(int64_t)); }
static int64_t *steps(tarn_ev *e) { return tarn_ev_alloc(e, TARN_EV_RED * sizeof(int64_t)); }

/* Takes the mixed atoms of a sum apart; false when one holds another. */
static bool take_apart(tarn_ev *e, tarn_evsum *s, uint32_t nlane) {
  for (uint32_t i = 0; i < s->natom; i++) {
    tarn_evatom *a = &s->atom[i];
    if (!mixed_atom(a)) continue;
    a->arg = (tarn_evsum){.atom = TARN_ARRAY(e->cx, tarn_evatom, count_atoms(e->L, a->t.arg))};
    sum_add(e->L, &a->arg, nlane, 1, a->t.arg);
    if (mixes(&a->arg)) return false;
    a->shift = -1;
    for (int k = 0; k < 62; k++)
      if (a->t.by == (int64_t)1 << k) a->shift = k;
    a->lane = lanes(e);
    a->red = steps(e);
  }
  return true;
}

static void free_apart(tarn_ev *e, tarn_evsum *s) {
  for (uint32_t i = 0; i < s->natom; i++) {
    tarn_ev_free(e, s->atom[i].lane);
    tarn_ev_free(e, s->atom[i].red);
  }
}

/* Fills the lane (or reduce) parts of a sum and of what stands in its mixed atoms. */
static void fill_parts(const tarn_evread *r, tarn_evsum *s, bool red, int64_t start, uint32_t n,
                       int64_t *out) {
  sum_fill(r->L, s, r->loops, red, start, n, out);
  for (uint32_t i = 0; i < s->natom; i++) {
    tarn_evatom *a = &s->atom[i];
    if (mixed_atom(a)) sum_fill(r->L, &a->arg, r->loops, red, start, n, red ? a->red : a->lane);
  }
}

/* The values of a sum whose mixed atoms are taken apart. */
static void sum_run(const tarn_evsum *s, const int64_t *lane, int64_t k, uint32_t step, uint32_t n,
                    int64_t *out) {
  for (uint32_t v = 0; v < n; v++) out[v] = lane[v] + k;
  for (uint32_t i = 0; i < s->natom; i++) {
    const tarn_evatom *a = &s->atom[i];
    if (!mixed_atom(a)) continue;
    int64_t rest = a->red[step], by = a->t.by;
    bool div = a->t.kind == TARN_IX_DIV;
    for (uint32_t v = 0; v < n; v++) {
      int64_t x = a->lane[v] + rest;
      int64_t q = a->shift >= 0 ? x >> a->shift : tarn_floordiv(x, by);
      out[v] += a->coef * (div ? q : x - q * by);
    }
  }
}

void tarn_evread_init(tarn_ev *e, tarn_evread *r, const tarn_evloops *loops, uint32_t map,
                      const void *data, tarn_dtype store) {
  const tarn_imap *m = tarn_imap_get(e->L, map);
  uint32_t natom = 0;
  int64_t stride = 1;
  *r = (tarn_evread){
      .e = e, .L = e->L, .loops = loops, .data = data, .store = store, .nguard = m->nguard};
  for (uint32_t i = 0; i < m->nin; i++) natom += count_atoms(e->L, m->e[i]);
  r->at.atom = TARN_ARRAY(e->cx, tarn_evatom, natom);
  for (uint32_t i = m->nin; i-- > 0; stride *= m->in[i])
    sum_add(e->L, &r->at, loops->nlane, stride, m->e[i]);
  r->mixed = mixes(&r->at);
  r->guard = TARN_ARRAY(e->cx, tarn_evguard, m->nguard);
  for (uint32_t i = 0; i < m->nguard; i++) {
    tarn_evguard *g = &r->guard[i];
    *g = (tarn_evguard){
        .lo = m->guard[i].lo, .hi = m->guard[i].hi, .lane = lanes(e), .red = steps(e)};
    g->e.atom = TARN_ARRAY(e->cx, tarn_evatom, count_atoms(e->L, m->guard[i].e));
    sum_add(e->L, &g->e, loops->nlane, 1, m->guard[i].e);
    r->mixed |= mixes(&g->e);
  }
  if (m->nguard) r->fill = tarn_fx_value(e->L, m->fill);
  r->lane = lanes(e);
  r->red = steps(e);
  r->deep = !take_apart(e, &r->at, loops->nlane);
  for (uint32_t i = 0; i < m->nguard && !r->deep; i++)
    r->deep = !take_apart(e, &r->guard[i].e, loops->nlane);
}

void tarn_evread_free(tarn_ev *e, tarn_evread *r) {
  for (uint32_t i = 0; i < r->nguard; i++) {
    tarn_ev_free(e, r->guard[i].lane);
    tarn_ev_free(e, r->guard[i].red);
    free_apart(e, &r->guard[i].e);
  }
  free_apart(e, &r->at);
  tarn_ev_free(e, r->lane);
  tarn_ev_free(e, r->red);
}

void tarn_evread_run(tarn_evread *r, int64_t start, uint32_t n) {
  r->start = start;
  if (r->deep) return;
  fill_parts(r, &r->at, false, start, n, r->lane);
  for (uint32_t v = 0; r->origin && v < n; v++) r->lane[v] -= r->origin;
  r->dense = r->same = !r->mixed;
  for (uint32_t v = 1; v < n; v++) {
    r->dense &= r->lane[v] == r->lane[0] + (int64_t)v;
    r->same &= r->lane[v] == r->lane[0];
  }
  for (uint32_t i = 0; i < r->nguard; i++) {
    tarn_evguard *g = &r->guard[i];
    fill_parts(r, &g->e, false, start, n, g->lane);
    g->least = g->most = g->lane[0];
    for (uint32_t v = 1; v < n; v++) {
      if (g->lane[v] < g->least) g->least = g->lane[v];
      if (g->lane[v] > g->most) g->most = g->lane[v];
    }
  }
}

void tarn_evread_reduce(tarn_evread *r, int64_t start, uint32_t n) {
  r->red_start = start;
  if (r->deep) return;
  fill_parts(r, &r->at, true, start, n, r->red);
  for (uint32_t i = 0; i < r->nguard; i++)
    fill_parts(r, &r->guard[i].e, true, start, n, r->guard[i].red);
}

void tarn_evread_where(const tarn_evread *r, uint32_t step, uint32_t n, int64_t *at, bool *ok) {
  for (uint32_t v = 0; v < n; v++) ok[v] = true;
  for (uint32_t i = 0; i < r->nguard; i++) {
    const tarn_evguard *g = &r->guard[i];
    sum_run(&g->e, g->lane, g->red[step], step, n, at);
    for (uint32_t v = 0; v < n; v++) ok[v] &= at[v] >= g->lo && at[v] < g->hi;
  }
  sum_run(&r->at, r->lane, r->red[step], step, n, at);
}

tarn_evinside tarn_evread_inside(const tarn_evread *r, uint32_t step) {
  tarn_evinside in = TARN_EV_ALL;
  for (uint32_t i = 0; i < r->nguard; i++) {
    const tarn_evguard *g = &r->guard[i];
    int64_t k = g->red[step];
    if (g->most + k < g->lo || g->least + k >= g->hi) return TARN_EV_NONE;
    if (g->least + k < g->lo || g->most + k >= g->hi) in = TARN_EV_SOME;
  }
  return in;
}

uint32_t tarn_evread_dims(const tarn_evread *r) {
  uint32_t set = 0;
  for (uint32_t i = 0; i <= r->nguard; i++) {
    const tarn_evsum *s = i < r->nguard ? &r->guard[i].e : &r->at;
    for (uint32_t d = 0; d < r->loops->nall; d++) set |= (uint32_t)(s->coef[d] != 0) << d;
    for (uint32_t j = 0; j < s->natom; j++) set |= s->atom[j].dims;
  }
  return set;
}

/* ---------------------------------------------------------------- elements */
void tarn_ev_put(void *data, tarn_dtype store, int64_t at, uint32_t n, const tarn_value *v) {
  if (store == TARN_F32)
    for (uint32_t i = 0; i < n; i++) ((float *)data)[at + i] = (float)v[i].d;
  else if (store == TARN_F64)
    for (uint32_t i = 0; i < n; i++) ((double *)data)[at + i] = v[i].d;
  else
    for (uint32_t i = 0; i < n; i++) tarn_data_set(data, store, at + i, v[i]);
}

#define LOADER(name, type)                                                                         \
  static void name(const tarn_evread *r, int64_t k, uint32_t n, tarn_value *out) {                 \
    const type *p = r->data;                                                                       \
    const int64_t *at = r->lane;                                                                   \
    if (r->dense)                                                                                  \
      for (uint32_t v = 0; v < n; v++) out[v].d = (double)p[at[0] + k + (int64_t)v];               \
    else                                                                                           \
      for (uint32_t v = 0; v < n; v++) out[v].d = (double)p[at[v] + k];                            \
  }
LOADER(load_f32, float)
LOADER(load_f64, double)

static void spread(tarn_value x, uint32_t n, tarn_value *out) {
  for (uint32_t v = 0; v < n; v++) out[v] = x;
}

/* Everything evaluated for each element. */
static void deep_where(const tarn_evread *r, uint32_t step, uint32_t n, int64_t *at, bool *ok) {
  const tarn_evloops *l = r->loops;
  int64_t x[TARN_MAX_DIMS] = {0};
  decompose(l, l->nlane, l->nall, r->red_start + step, x);
  decompose(l, 0, l->nlane, r->start, x);
  for (uint32_t v = 0; v < n; v++, next_row(l, 0, l->nlane, x)) {
    ok[v] = true;
    for (uint32_t i = 0; ok[v] && i < r->nguard; i++) {
      int64_t k = sum_value(r->L, &r->guard[i].e, l->nall, x);
      ok[v] = k >= r->guard[i].lo && k < r->guard[i].hi;
    }
    at[v] = sum_value(r->L, &r->at, l->nall, x) - r->origin;
  }
}

/* Where each element lies, lane by lane. */
static void where(const tarn_evread *r, uint32_t step, uint32_t n, int64_t *at, bool *ok) {
  if (r->deep) deep_where(r, step, n, at, ok);
  else tarn_evread_where(r, step, n, at, ok);
}
static void load_mixed(const tarn_evread *r, uint32_t step, uint32_t n, tarn_value *out) {
  int64_t at[TARN_EV_LANES];
  bool ok[TARN_EV_LANES];
  where(r, step, n, at, ok);
  for (uint32_t v = 0; v < n; v++)
    out[v] = ok[v] ? tarn_data_get(r->data, r->store, at[v]) : r->fill;
}

/* The number of a row, of values of an integer type. */
static int64_t row_of(const tarn_evread *r, tarn_value v) {
  int64_t at;
  if (!tarn_index_in(r->by->store, v.i, r->row.extent, &at))
    tarn_raise(r->e->cx, TARN_BAD_INPUT, "lookup: index %lld, the axis has %lld elements",
               (long long)v.i, (long long)r->row.extent);
  return at;
}
static void load_rows(const tarn_evread *r, uint32_t step, uint32_t n, tarn_value *out) {
  tarn_value row[TARN_EV_LANES];
  int64_t at[TARN_EV_LANES];
  bool ok[TARN_EV_LANES];
  tarn_evread_load(r->by, step, n, row);
  where(r, step, n, at, ok);
  for (uint32_t v = 0; v < n; v++)
    out[v] = ok[v] ? tarn_data_get(r->data, r->store, at[v] + r->row.pitch * row_of(r, row[v]))
                   : r->fill;
}

void tarn_evread_load(const tarn_evread *r, uint32_t step, uint32_t n, tarn_value *out) {
  if (r->by) {
    load_rows(r, step, n, out);
    return;
  }
  if (r->mixed) {
    load_mixed(r, step, n, out);
    return;
  }
  tarn_evinside in = tarn_evread_inside(r, step);
  int64_t k = r->red[step];
  if (in == TARN_EV_NONE) spread(r->fill, n, out);
  else if (in == TARN_EV_SOME)
    for (uint32_t v = 0; v < n; v++)
      out[v] =
          tarn_evread_ok(r, step, v) ? tarn_data_get(r->data, r->store, r->lane[v] + k) : r->fill;
  else if (r->same) spread(tarn_data_get(r->data, r->store, r->lane[0] + k), n, out);
  else if (r->store == TARN_F32) load_f32(r, k, n, out);
  else if (r->store == TARN_F64) load_f64(r, k, n, out);
  else
    for (uint32_t v = 0; v < n; v++) out[v] = tarn_data_get(r->data, r->store, r->lane[v] + k);
}
