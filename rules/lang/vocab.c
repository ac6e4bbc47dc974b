/* The vocabulary of conditions and right sides: one table, one line a function.
 *
 * Signature letters: i integer, l list of integers, x scalar constant, f function of compute, m
 * index map, s shape, c term, b truth; after the colon the result. Functions on compute are in
 * vocab_fn.c. A function that has no value (an axis out of range) returns false, and the rule does
 * not apply. */
#include "kernel/kernel.h"
#include "rules/lang/range.h"
#include "rules/lang/vocab.h"
#include <string.h>

static uint32_t id_of(renv *e, const rv *a) { return e->cls[a->id]; }

bool rv_int(rv *out, int64_t i) { return *out = (rv){.kind = 'i', .i = i}, true; }
bool rv_bool(rv *out, bool b) { return *out = (rv){.kind = 'b', .i = b}, true; }
bool rv_func_made(renv *e, rv *out, const tarn_func *f) {
  return *out = (rv){.kind = 'f', .id = tarn_fn_intern(e->L, f)}, true;
}
bool rv_list(renv *e, rv *out, const int64_t *p, uint32_t n) {
  int64_t *q = r_ints(e, n);
  if (!q) return false;
  if (n) memcpy(q, p, n * sizeof *q);
  *out = (rv){.kind = 'l', .n = n, .p = q};
  return true;
}

/* ---------------------------------------------------------------- integers */
#define INT2(name, expr)                                                                           \
  static bool name(renv *e, const rv *v, rv *out) {                                                \
    (void)e;                                                                                       \
    int64_t a = v[0].i, b = v[1].i, r;                                                             \
    return (expr) && rv_int(out, r);                                                               \
  }
#define CMP2(name, expr)                                                                           \
  static bool name(renv *e, const rv *v, rv *out) {                                                \
    (void)e;                                                                                       \
    int64_t a = v[0].i, b = v[1].i;                                                                \
    return rv_bool(out, (expr));                                                                   \
  }
INT2(f_add, !__builtin_add_overflow(a, b, &r))
INT2(f_sub, !__builtin_sub_overflow(a, b, &r))
INT2(f_mul, !__builtin_mul_overflow(a, b, &r))
INT2(f_div, b > 0 && a >= 0 && (r = a / b, true))
INT2(f_mod, b > 0 && (r = ((a % b) + b) % b, true))
INT2(f_min, (r = a < b ? a : b, true))
INT2(f_max, (r = a > b ? a : b, true))
CMP2(f_lt, a < b)
CMP2(f_le, a <= b)
CMP2(f_gt, a > b)
CMP2(f_ge, a >= b)
CMP2(f_divides, a > 0 && b % a == 0)

static bool f_eq(renv *e, const rv *a, rv *out) {
  (void)e;
  return rv_bool(out, rv_equal(&a[0], &a[1]));
}
static bool f_ne(renv *e, const rv *a, rv *out) {
  (void)e;
  return rv_bool(out, !rv_equal(&a[0], &a[1]));
}
static bool f_and(renv *e, const rv *a, rv *out) {
  (void)e;
  return rv_bool(out, a[0].i && a[1].i);
}
static bool f_or(renv *e, const rv *a, rv *out) {
  (void)e;
  return rv_bool(out, a[0].i || a[1].i);
}
static bool f_not(renv *e, const rv *a, rv *out) {
  (void)e;
  return rv_bool(out, !a[0].i);
}

/* ---------------------------------------------------------------- lists */
static bool f_list(renv *e, const rv *a, rv *out) {
  int64_t v[8];
  uint32_t n = 0;
  while (a[n].kind == 'i' && n < 8) v[n] = a[n].i, n++;
  return rv_list(e, out, v, n);
}
static bool f_len(renv *e, const rv *a, rv *out) {
  (void)e;
  return rv_int(out, a[0].n);
}
static bool f_at(renv *e, const rv *a, rv *out) {
  (void)e;
  return a[1].i >= 0 && a[1].i < a[0].n && rv_int(out, a[0].p[a[1].i]);
}
static bool f_index_of(renv *e, const rv *a, rv *out) {
  (void)e;
  for (uint32_t i = 0; i < a[0].n; i++)
    if (a[0].p[i] == a[1].i) return rv_int(out, i);
  return false;
}
static bool splice(renv *e, rv *out, rv a, rv b) {
  int64_t *q = r_ints(e, a.n + b.n);
  if (!q) return false;
  for (uint32_t i = 0; i < a.n + b.n; i++) q[i] = i < a.n ? a.p[i] : b.p[i - a.n];
  *out = (rv){.kind = 'l', .n = a.n + b.n, .p = q};
  return true;
}
static bool f_append(renv *e, const rv *a, rv *out) { return splice(e, out, a[0], a[1]); }
static bool f_take(renv *e, const rv *a, rv *out) {
  (void)e;
  if (a[1].i < 0 || a[1].i > a[0].n) return false;
  *out = (rv){.kind = 'l', .n = (uint32_t)a[1].i, .p = a[0].p};
  return true;
}
static bool f_drop(renv *e, const rv *a, rv *out) {
  (void)e;
  if (a[1].i < 0 || a[1].i > a[0].n) return false;
  *out = (rv){.kind = 'l', .n = a[0].n - (uint32_t)a[1].i, .p = a[0].p + a[1].i};
  return true;
}
static bool f_set(renv *e, const rv *a, rv *out) {
  if (a[1].i < 0 || a[1].i >= a[0].n || !rv_list(e, out, a[0].p, a[0].n)) return false;
  ((int64_t *)(uintptr_t)out->p)[a[1].i] = a[2].i;
  return true;
}
static bool f_insert(renv *e, const rv *a, rv *out) {
  rv k = a[1], head, one, tail, left;
  return f_take(e, (rv[]){a[0], k}, &head) && f_drop(e, (rv[]){a[0], k}, &tail) &&
         rv_list(e, &one, &a[2].i, 1) && splice(e, &left, head, one) && splice(e, out, left, tail);
}
static bool f_remove(renv *e, const rv *a, rv *out) {
  rv k = a[1], next = k, head, tail;
  next.i++;
  return f_take(e, (rv[]){a[0], k}, &head) && f_drop(e, (rv[]){a[0], next}, &tail) &&
         splice(e, out, head, tail);
}
static bool f_iota(renv *e, const rv *a, rv *out) {
  int64_t v[TARN_MAX_DIMS];
  uint32_t n = 0;
  if (a[1].i - a[0].i > TARN_MAX_DIMS) return false;
  for (int64_t i = a[0].i; i < a[1].i; i++) v[n++] = i;
  return rv_list(e, out, v, n);
}
static bool f_ones(renv *e, const rv *a, rv *out) {
  int64_t v[TARN_MAX_DIMS];
  if (a[0].i < 0 || a[0].i > TARN_MAX_DIMS) return false;
  for (uint32_t i = 0; i < a[0].i; i++) v[i] = 1;
  return rv_list(e, out, v, (uint32_t)a[0].i);
}
static bool f_product(renv *e, const rv *a, rv *out) {
  (void)e;
  int64_t p = 1;
  for (uint32_t i = 0; i < a[0].n; i++)
    if (__builtin_mul_overflow(p, a[0].p[i], &p)) return false;
  return rv_int(out, p);
}
static bool f_shift(renv *e, const rv *a, rv *out) { /* every element plus k */
  if (!rv_list(e, out, a[0].p, a[0].n)) return false;
  for (uint32_t i = 0; i < out->n; i++) ((int64_t *)(uintptr_t)out->p)[i] += a[1].i;
  return true;
}

/* ---------------------------------------------------------------- permutations */
static bool is_permutation(const rv *p) {
  uint64_t seen = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    if (p->p[i] < 0 || p->p[i] >= p->n || p->n > 64 || (seen >> p->p[i] & 1)) return false;
    seen |= UINT64_C(1) << p->p[i];
  }
  return true;
}
static bool f_compose_perm(renv *e, const rv *a, rv *out) { /* r[i] = p[q[i]] */
  if (a[0].n != a[1].n || !is_permutation(&a[0]) || !rv_list(e, out, a[0].p, a[0].n)) return false;
  for (uint32_t i = 0; i < a[0].n; i++) ((int64_t *)(uintptr_t)out->p)[i] = a[1].p[a[0].p[i]];
  return true;
}
static bool f_invert_perm(renv *e, const rv *a, rv *out) {
  if (!is_permutation(&a[0]) || !rv_list(e, out, a[0].p, a[0].n)) return false;
  for (uint32_t i = 0; i < a[0].n; i++) ((int64_t *)(uintptr_t)out->p)[a[0].p[i]] = i;
  return true;
}
static bool fixes(const rv *p, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++)
    if (p->p[i] != i) return false;
  return true;
}
static bool f_identity(renv *e, const rv *a, rv *out) {
  (void)e;
  return rv_bool(out, fixes(&a[0], 0, a[0].n));
}
static bool f_fixes_prefix(renv *e, const rv *a, rv *out) {
  (void)e;
  return a[1].i >= 0 && a[1].i <= a[0].n && rv_bool(out, fixes(&a[0], 0, a[1].i));
}
static bool f_fixes_suffix(renv *e, const rv *a, rv *out) {
  (void)e;
  return a[1].i >= 0 && a[1].i <= a[0].n && rv_bool(out, fixes(&a[0], a[1].i, a[0].n));
}

/* ---------------------------------------------------------------- types of terms */
static bool f_ns(renv *e, const rv *a, rv *out) { return rv_int(out, rv_type(e, a)->ns); }
static bool f_rank(renv *e, const rv *a, rv *out) { return rv_int(out, rv_type(e, a)->n); }
static bool f_nc(renv *e, const rv *a, rv *out) {
  const tarn_type *t = rv_type(e, a);
  return rv_int(out, t->n - t->ns);
}
static bool f_dim(renv *e, const rv *a, rv *out) {
  const tarn_type *t = rv_type(e, a);
  return a[1].i >= 0 && a[1].i < t->n && rv_int(out, t->dim[a[1].i]);
}
static bool f_cdim(renv *e, const rv *a, rv *out) {
  const tarn_type *t = rv_type(e, a);
  return a[1].i >= 0 && a[1].i < t->n - t->ns && rv_int(out, t->dim[t->ns + a[1].i]);
}
static bool f_dims(renv *e, const rv *a, rv *out) {
  const tarn_type *t = rv_type(e, a);
  return rv_list(e, out, t->dim, t->n);
}
static bool f_sdims(renv *e, const rv *a, rv *out) {
  const tarn_type *t = a->kind == 's' ? tarn_type_get(e->L, a->id) : rv_type(e, a);
  return rv_list(e, out, t->dim, t->ns);
}
static bool f_cdims(renv *e, const rv *a, rv *out) {
  const tarn_type *t = a->kind == 's' ? tarn_type_get(e->L, a->id) : rv_type(e, a);
  return rv_list(e, out, t->dim + t->ns, t->n - t->ns);
}
static bool f_shape(renv *e, const rv *a, rv *out) {
  int64_t dim[TARN_MAX_DIMS];
  uint32_t n = a[0].n + a[1].n;
  if (n > TARN_MAX_DIMS) return false;
  for (uint32_t i = 0; i < n; i++) {
    dim[i] = i < a[0].n ? a[0].p[i] : a[1].p[i - a[0].n];
    if (dim[i] < 0) return false;
  }
  *out = (rv){.kind = 's', .id = tarn_type_tensor(e->L, TARN_F32, a[0].n, n, dim)};
  return true;
}
static bool f_shape_of(renv *e, const rv *a, rv *out) {
  const tarn_type *t = rv_type(e, a);
  *out = (rv){.kind = 's', .id = tarn_type_tensor(e->L, TARN_F32, t->ns, t->n, t->dim)};
  return !t->tuple;
}
static bool f_same_type(renv *e, const rv *a, rv *out) {
  const rhost *h = e->host;
  return rv_bool(out, h->nest.type(h->nest.user, id_of(e, a)) ==
                          h->nest.type(h->nest.user, id_of(e, a + 1)));
}
static bool f_is_float(renv *e, const rv *a, rv *out) {
  return rv_bool(out, tarn_dtype_is_float(rv_type(e, a)->dtype));
}

/* ---------------------------------------------------------------- facts about terms */
static bool f_is_const(renv *e, const rv *a, rv *out) {
  return rv_bool(out, e->host->is_const(e->host->user, id_of(e, a)));
}
static bool f_finite(renv *e, const rv *a, rv *out) {
  tarn_range r = e->host->range(e->host->user, id_of(e, a));
  return rv_bool(out, r.finite && !r.nan);
}
static bool f_nonneg(renv *e, const rv *a, rv *out) {
  tarn_range r = e->host->range(e->host->user, id_of(e, a));
  return rv_bool(out, r.lo >= 0 && !r.nan);
}
static bool f_wide(renv *e, const rv *a, rv *out) {
  tarn_dtype t = rv_type(e, a)->dtype;
  return rv_bool(out, tarn_dtype_accumulator(t) == t);
}
static tarn_range range_at(renv *e, const rv *a) {
  return e->host->range(e->host->user, id_of(e, a));
}
/* Run-time products are as large as the program makes them; constants are multiplied once and for
 * all. */
static bool f_folds(renv *e, const rv *a, rv *out) {
  tarn_range x = range_at(e, a), by = range_at(e, a + 1);
  bool both = e->host->is_const(e->host->user, id_of(e, a)) &&
              e->host->is_const(e->host->user, id_of(e, a + 1));
  return rv_bool(out, !both || vrange_folds(rv_type(e, a)->dtype, x, by));
}
static bool f_rounds(renv *e, const rv *a, rv *out) {
  return rv_bool(out, vrange_rounds(rv_type(e, a)->dtype, range_at(e, a), range_at(e, a + 1)));
}
static bool f_apart(renv *e, const rv *a, rv *out) {
  return rv_bool(out, vrange_apart(range_at(e, a), range_at(e, a + 1)));
}
static bool f_acyclic(renv *e, const rv *a, rv *out) {
  return rv_bool(out, !e->host->depends(e->host->user, id_of(e, a), id_of(e, a + 1)));
}
/* An axis that is worth splitting for the description's widest intrinsic, and where. */
static bool f_tile_size(renv *e, const rv *a, rv *out) {
  const tarn_type *t = rv_type(e, a);
  if (a[1].i < 0 || a[1].i >= t->n) return false;
  int64_t k = e->hw ? (int64_t)tarn_hw_lanes(e->hw, t->dtype) : 2;
  return rv_int(out, k);
}

/* ---------------------------------------------------------------- index maps */
static bool f_compose_map(renv *e, const rv *a, rv *out) {
  *out = (rv){.kind = 'm', .id = tarn_map_compose(e->L, a[0].id, a[1].id)};
  return out->id != TARN_NONE;
}
static bool f_identity_map(renv *e, const rv *a, rv *out) {
  const tarn_imap *m = tarn_imap_get(e->L, a[0].id);
  return rv_bool(out, tarn_map_is_identity(e->L, a[0].id) && m->ns == rv_type(e, a + 1)->ns);
}

#define HERE(name, sig, fn, doc)                                                                   \
  { name, sig, fn, 0, doc }
static const rfun funs[] = {
    HERE("+", "ii:i", f_add, "sum; none on overflow"),
    HERE("-", "ii:i", f_sub, "difference"),
    HERE("*", "ii:i", f_mul, "product"),
    HERE("/", "ii:i", f_div, "quotient of naturals, rounded down"),
    HERE("mod", "ii:i", f_mod, "remainder, never negative"),
    HERE("min", "ii:i", f_min, ""),
    HERE("max", "ii:i", f_max, ""),
    HERE("<", "ii:b", f_lt, ""),
    HERE("<=", "ii:b", f_le, ""),
    HERE(">", "ii:b", f_gt, ""),
    HERE(">=", "ii:b", f_ge, ""),
    HERE("divides", "ii:b", f_divides, "is the second a multiple of the first (> 0)?"),
    HERE("=", "ii:b", f_eq, ""),
    HERE("=", "ll:b", f_eq, ""),
    HERE("=", "xx:b", f_eq, "same constant, bit for bit"),
    HERE("=", "ff:b", f_eq, ""),
    HERE("=", "ss:b", f_eq, ""),
    HERE("!=", "ii:b", f_ne, ""),
    HERE("!=", "ll:b", f_ne, ""),
    HERE("and", "bb:b", f_and, ""),
    HERE("or", "bb:b", f_or, ""),
    HERE("not", "b:b", f_not, ""),
    HERE("list", ":l", f_list, "a list of up to six integers"),
    HERE("list", "i:l", f_list, ""),
    HERE("list", "ii:l", f_list, ""),
    HERE("list", "iii:l", f_list, ""),
    HERE("list", "iiii:l", f_list, ""),
    HERE("list", "iiiii:l", f_list, ""),
    HERE("list", "iiiiii:l", f_list, ""),
    HERE("len", "l:i", f_len, ""),
    HERE("at", "li:i", f_at, "element, from 0; none when out of range"),
    HERE("index-of", "li:i", f_index_of, "where it stands; none when it does not"),
    HERE("append", "ll:l", f_append, ""),
    HERE("take", "li:l", f_take, "the first k"),
    HERE("drop", "li:l", f_drop, "all but the first k"),
    HERE("set", "lii:l", f_set, "element k replaced"),
    HERE("insert", "lii:l", f_insert, "a new element before k"),
    HERE("remove", "li:l", f_remove, "without element k"),
    HERE("iota", "ii:l", f_iota, "from the first up to, not including, the second"),
    HERE("ones", "i:l", f_ones, "that many ones"),
    HERE("product", "l:i", f_product, ""),
    HERE("shift", "li:l", f_shift, "every element plus k"),
    HERE("compose-perm", "ll:l", f_compose_perm, "(compose-perm q p): i -> p[q[i]]"),
    HERE("invert-perm", "l:l", f_invert_perm, ""),
    HERE("identity-perm", "l:b", f_identity, ""),
    HERE("fixes-prefix", "li:b", f_fixes_prefix, "does it leave the first k axes in place?"),
    HERE("fixes-suffix", "li:b", f_fixes_suffix, "does it leave axes k and up in place?"),
    HERE("ns", "c:i", f_ns, "number of access dims"),
    HERE("nc", "c:i", f_nc, "number of compute dims"),
    HERE("rank", "c:i", f_rank, ""),
    HERE("dim", "ci:i", f_dim, "extent of an axis"),
    HERE("cdim", "ci:i", f_cdim, "extent of a compute axis, from 0"),
    HERE("dims", "c:l", f_dims, ""),
    HERE("sdims", "c:l", f_sdims, "access dims"),
    HERE("sdims", "s:l", f_sdims, ""),
    HERE("cdims", "c:l", f_cdims, "compute dims"),
    HERE("cdims", "s:l", f_cdims, ""),
    HERE("shape", "ll:s", f_shape, "from access dims and compute dims"),
    HERE("shape-of", "c:s", f_shape_of, ""),
    HERE("same-type", "cc:b", f_same_type, ""),
    HERE("is-float", "c:b", f_is_float, ""),
    {"is-const", "c:b", f_is_const, R_READS_FACTS, "known at compile time"},
    {"finite", "c:b", f_finite, R_READS_FACTS, "no element is Inf or NaN"},
    {"nonneg", "c:b", f_nonneg, R_READS_FACTS, "no element is below 0"},
    {"wide", "c:b", f_wide, 0, "sums of its elements are taken in its type: no f16, no bf16"},
    {"apart", "cc:b", f_apart, R_READS_FACTS,
     "no element of one cancels one of the other, so that sums are as large as they are"},
    {"folds", "cc:b", f_folds, R_READS_FACTS,
     "where both are constants, sums of their products are numbers of the type"},
    {"rounds", "cc:b", f_rounds, R_READS_FACTS,
     "not both hold whole numbers of the type, whose products and sums may be exact"},
    {"acyclic", "cc:b", f_acyclic, TARN_EG_READS_GRAPH, "the second does not depend on the first"},
    HERE("tile-size", "ci:i", f_tile_size,
         "extent that the description's intrinsics want of an axis"),
    HERE("compose-map", "mm:m", f_compose_map, "a view of a view; none when it is no single map"),
    HERE("identity-map", "mc:b", f_identity_map, "is the view of this term the term itself?"),
};

const rfun *rfun_find(const char *name, const char *kinds, bool *known) {
  *known = false;
  const rfun *const tables[] = {funs,
                                rfun_fn_table,
                                rfun_call_table,
                                rfun_make_table,
                                rfun_loops_table,
                                rfun_units_table,
                                rfun_slice_table,
                                rfun_fusion_table};
  const uint32_t counts[] = {(uint32_t)(sizeof funs / sizeof *funs),
                             rfun_fn_count,
                             rfun_call_count,
                             rfun_make_count,
                             rfun_loops_count,
                             rfun_units_count,
                             rfun_slice_count,
                             rfun_fusion_count};
  for (int table = 0; table < 8; table++) {
    const rfun *f = tables[table];
    for (uint32_t i = 0; i < counts[table]; i++) {
      if (strcmp(f[i].name, name)) continue;
      *known = true;
      size_t k = kinds ? strlen(kinds) : 0;
      if (kinds && strncmp(f[i].sig, kinds, k) == 0 && f[i].sig[k] == ':') return &f[i];
    }
  }
  return NULL;
}

bool rv_equal(const rv *a, const rv *b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
  case 'i':
  case 'b': return a->i == b->i;
  case 'l': return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n * sizeof *a->p) == 0);
  case 'y': return strcmp(a->name, b->name) == 0;
  default: return a->id == b->id;
  }
}

uint64_t rx_reads(const rx *x) {
  uint64_t bits = x->kind == RX_CALL ? x->fun->reads : 0;
  for (uint32_t i = 0; i < x->n; i++) bits |= rx_reads(x->kid[i]);
  return bits;
}

bool rx_eval(renv *e, const rx *x, rv *out) {
  rv arg[16] = {{0}};
  switch (x->kind) {
  case RX_LIT: return *out = x->lit, true;
  case RX_VAR: return *out = e->attr[x->var], out->kind != 0;
  case RX_CLASS: return *out = (rv){.kind = 'c', .id = x->var}, true;
  case RX_SEG: return *out = (rv){.kind = 'g', .id = x->var}, true;
  case RX_CALL:
    for (uint32_t i = 0; i < x->n; i++)
      if (!rx_eval(e, x->kid[i], &arg[i])) return false;
    return x->fun->fn(e, arg, out);
  case RX_FREE: break; /* free.c */
  }
  return false;
}
