/* Values of free rule sets: numbers, names; and the functions that conditions and analyses
 * may use. */
#include "lab/free.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */
static bool fraction(int64_t p, int64_t q, fval *out) {
  if (q == 0 || p == INT64_MIN || q == INT64_MIN) return false;
  int64_t d = tarn_gcd(p, q);
  if (q < 0) d = -d;
  *out = (fval){.kind = FV_FRACTION, .p = p / d, .q = q / d};
  return true;
}

/* ---- fractions of any size, where 64 bits are not enough ---- */
static big small(int64_t i, uint64_t *limb) {
  *limb = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
  return (big){limb, i < 0 ? -1 : i > 0};
}
static bool is_exact(const fval *v) { return v->kind == FV_FRACTION || v->kind == FV_BIG; }
/* limb: room for two */
static bigrat wide_of(const fval *v, uint64_t *limb) {
  return v->kind == FV_BIG ? *v->big : (bigrat){small(v->p, limb), small(v->q, limb + 1)};
}
static bool narrow(tarn_ctx *cx, const bigrat *q, fval *out) {
  fval v = {.kind = FV_FRACTION};
  if (!big_fits(&q->num, &v.p) || !big_fits(&q->den, &v.q) || v.p == INT64_MIN) {
    bigrat *own = TARN_NEW(cx, bigrat);
    *own = *q;
    v = (fval){.kind = FV_BIG, .big = own};
  }
  *out = v;
  return true;
}
static bool wide(const fenv *e, char op, const fval *a, const fval *b, fval *out) {
  uint64_t limb[4];
  bigrat x = wide_of(a, limb), y = wide_of(b, limb + 2), r;
  return bigrat_apply(e->f->cx, op, &x, &y, &r) && narrow(e->f->cx, &r, out);
}
/* Of whole numbers. */
static bool wide_whole(const fenv *e, char op, const fval *a, const fval *b, fval *out) {
  uint64_t limb[4], one = 1;
  bigrat x = wide_of(a, limb), y = wide_of(b, limb + 2), r = {.den = {&one, 1}};
  if (x.den.n != 1 || x.den.p[0] != 1 || y.den.n != 1 || y.den.p[0] != 1) return false;
  if (!big_apply(e->f->cx, op, &x.num, &y.num, &r.num)) return false;
  r.den = big_from(e->f->cx, 1);
  return narrow(e->f->cx, &r, out);
}
/* DIGITS or DIGITS/DIGITS */
static bool parse_wide(const free_state *f, const char *s, size_t n, fval *out) {
  const char *slash = f->numbers == FREE_RATIONAL ? memchr(s, '/', n) : NULL;
  bigrat q = {.den = big_from(f->cx, 1)}, r;
  size_t head = slash ? (size_t)(slash - s) : n;
  return big_parse(f->cx, s, head, &q.num) &&
         (!slash || big_parse(f->cx, slash + 1, n - head - 1, &q.den)) &&
         bigrat_make(f->cx, &q.num, &q.den, &r) && narrow(f->cx, &r, out);
}

fval free_parse(const free_state *f, const char *s, size_t n) {
  char buf[64], *end;
  fval v = {0};
  if (free_parse_many(f, s, n, &v)) return v;
  if (!n || !strpbrk(s, "0123456789")) return v;
  if (n >= sizeof buf) return f->numbers == FREE_REAL || !parse_wide(f, s, n, &v) ? (fval){0} : v;
  memcpy(buf, s, n);
  buf[n] = 0;
  errno = 0;
  if (f->numbers == FREE_REAL) {
    v.x = strtod(buf, &end);
    if (!*end && !strpbrk(buf, "xXnN") && isfinite(v.x)) v.kind = FV_REAL;
    if (v.x == 0) v.x = 0; /* no minus zero */
    return v;
  }
  int64_t p = strtoll(buf, &end, 10), q = 1;
  if (end != buf && *end == '/' && f->numbers == FREE_RATIONAL) q = strtoll(end + 1, &end, 10);
  if (errno) return parse_wide(f, s, n, &v) ? v : (fval){0};
  if (*end || !fraction(p, q, &v)) v.kind = FV_NONE;
  return v;
}

fval free_value_of(const free_state *f, uint32_t symbol) {
  return symbol < f->value.n ? f->value.p[symbol] : (fval){0};
}

void free_put_value(const free_state *f, tarn_buf *b, const fval *v) {
  if (v->kind == FV_TEXT || v->kind == FV_BAG) {
    free_put_many(f, b, v);
  } else if (v->kind == FV_REAL) {
    tarn_buf_double(b, v->x);
  } else if (v->kind == FV_BIG) {
    big_print(b, &v->big->num);
    if (v->big->den.n != 1 || v->big->den.p[0] != 1) {
      tarn_buf_str(b, "/");
      big_print(b, &v->big->den);
    }
  } else if (v->q == 1) tarn_buf_fmt(b, "%lld", (long long)v->p);
  else tarn_buf_fmt(b, "%lld/%lld", (long long)v->p, (long long)v->q);
}
uint32_t free_value_symbol(free_state *f, const fval *v) {
  if (v->kind == FV_NAME) return v->symbol;
  tarn_buf b = {.cx = f->cx};
  free_put_value(f, &b, v);
  return free_symbol(f, b.p, b.n);
}

static int compare_texts(const fval *a, const fval *b) {
  int c = memcmp(a->text, b->text, (size_t)tarn_min(a->p, b->p));
  if (!c) c = a->p < b->p ? -1 : a->p > b->p;
  return c < 0 ? -1 : c > 0;
}
int free_compare(const fval *a, const fval *b) {
  if (is_exact(a) && is_exact(b) && a->kind + b->kind != 2 * FV_FRACTION) {
    uint64_t limb[4];
    bigrat x = wide_of(a, limb), y = wide_of(b, limb + 2);
    return bigrat_compare(&x, &y);
  }
  if (a->kind != b->kind || a->kind == FV_NONE) return 2;
  if (a->kind == FV_NAME) return a->symbol == b->symbol ? 0 : 2;
  if (a->kind == FV_BAG) return free_bags_equal(a, b) ? 0 : 2;
  if (a->kind == FV_TEXT) return compare_texts(a, b);
  if (a->kind == FV_REAL) return a->x < b->x ? -1 : a->x > b->x;
  __extension__ typedef __int128 twice;
  twice l = (twice)a->p * b->q, r = (twice)b->p * a->q;
  return l < r ? -1 : l > r;
}

/* ---- arguments ---- */
static bool is_number(const fval *v) { return v->kind == FV_REAL || is_exact(v); }
static bool two(const fenv *e, const fexpr *x, fval *a, fval *b) {
  if (!free_arg(e, x, 0, a) || !free_arg(e, x, 1, b)) return false;
  return is_number(a) && (a->kind == b->kind || is_exact(b));
}
static bool real(double x, fval *out) {
  if (!isfinite(x)) return false;
  *out = (fval){.kind = FV_REAL, .x = x == 0 ? 0 : x};
  return true;
}
static bool truth(bool b, fval *out) {
  *out = (fval){.kind = FV_NONE, .p = b};
  return true;
}

/* Both in 64 bits. */
static bool are_small(const fval *a, const fval *b) {
  return a->kind == FV_FRACTION && b->kind == FV_FRACTION;
}

/* ---- arithmetic; a fraction of more than BIG_LIMBS has no value ---- */
static bool sum(const fenv *e, const fexpr *x, bool minus, fval *out) {
  fval a, b;
  int64_t l, r, p, q;
  if (!two(e, x, &a, &b)) return false;
  if (a.kind == FV_REAL) return real(minus ? a.x - b.x : a.x + b.x, out);
  bool fits = are_small(&a, &b) && !__builtin_mul_overflow(a.p, b.q, &l) &&
              !__builtin_mul_overflow(b.p, a.q, &r) && !__builtin_mul_overflow(a.q, b.q, &q) &&
              !(minus ? __builtin_sub_overflow(l, r, &p) : __builtin_add_overflow(l, r, &p)) &&
              fraction(p, q, out);
  return fits || wide(e, minus ? '-' : '+', &a, &b, out);
}
static bool f_add(const fenv *e, const fexpr *x, fval *out) { return sum(e, x, false, out); }
static bool f_sub(const fenv *e, const fexpr *x, fval *out) { return sum(e, x, true, out); }
static bool f_neg(const fenv *e, const fexpr *x, fval *out) {
  if (!free_arg(e, x, 0, out) || !is_number(out)) return false;
  if (out->kind == FV_BIG) {
    bigrat minus = bigrat_negate(e->f->cx, out->big);
    return narrow(e->f->cx, &minus, out);
  }
  out->p = -out->p, out->x = 0 - out->x;
  return true;
}
static bool product(const fenv *e, const fval *a, const fval *b, fval *out) {
  int64_t p, q;
  fval x = *a, y = *b;
  if (a->kind == FV_REAL) return real(a->x * b->x, out);
  bool fits = are_small(a, b) && !__builtin_mul_overflow(a->p, b->p, &p) &&
              !__builtin_mul_overflow(a->q, b->q, &q) && fraction(p, q, out);
  return fits || wide(e, '*', &x, &y, out);
}
static bool f_mul(const fenv *e, const fexpr *x, fval *out) {
  fval a, b;
  return two(e, x, &a, &b) && product(e, &a, &b, out);
}
/* Of whole numbers: truncated. By zero: no value. */
static bool f_div(const fenv *e, const fexpr *x, fval *out) {
  fval a, b;
  int64_t p, q;
  if (!two(e, x, &a, &b)) return false;
  if (a.kind == FV_REAL) return b.x != 0 && real(a.x / b.x, out);
  if (b.kind == FV_FRACTION && b.p == 0) return false;
  if (e->f->numbers == FREE_INTEGER && !are_small(&a, &b)) return wide_whole(e, '/', &a, &b, out);
  if (e->f->numbers == FREE_INTEGER) return fraction(a.p / b.p, 1, out);
  bool fits = are_small(&a, &b) && !__builtin_mul_overflow(a.p, b.q, &p) &&
              !__builtin_mul_overflow(a.q, b.p, &q) && fraction(p, q, out);
  return fits || wide(e, '/', &a, &b, out);
}
/* The sign of the divisor. */
static bool f_mod(const fenv *e, const fexpr *x, fval *out) {
  fval a, b;
  if (!two(e, x, &a, &b)) return false;
  if (a.kind == FV_REAL) return b.x != 0 && real(a.x - b.x * floor(a.x / b.x), out);
  if (!are_small(&a, &b)) { /* the remainder has the sign of a */
    fval r, zero = {.kind = FV_FRACTION, .q = 1};
    if (!wide_whole(e, '%', &a, &b, &r)) return false;
    int sign = free_compare(&r, &zero);
    bool turn = sign && (sign < 0) != (free_compare(&b, &zero) < 0);
    if (turn) return wide(e, '+', &r, &b, out);
    *out = r;
    return true;
  }
  if (b.p == 0 || a.q != 1 || b.q != 1) return false;
  int64_t r = a.p % b.p;
  return fraction(r && (r < 0) != (b.p < 0) ? r + b.p : r, 1, out);
}
/* Of fractions: to a whole exponent of at most 1,000. */
static bool f_pow(const fenv *e, const fexpr *x, fval *out) {
  fval a, b;
  if (!two(e, x, &a, &b)) return false;
  if (a.kind == FV_REAL) return real(pow(a.x, b.x), out);
  bool down = b.kind == FV_BIG ? b.big->num.n < 0 : b.p < 0;
  if (down && e->f->numbers == FREE_INTEGER) return false;
  if (!are_small(&a, &b) || (b.q == 1 && (b.p < -64 || b.p > 64))) return wide(e, 'p', &a, &b, out);
  if (b.q != 1 || b.p < -64 || b.p > 64 || (b.p < 0 && e->f->numbers == FREE_INTEGER)) return false;
  if (b.p < 0 && !fraction(a.q, a.p, &a)) return false;
  *out = (fval){.kind = FV_FRACTION, .p = 1, .q = 1};
  for (int64_t i = b.p < 0 ? -b.p : b.p; i > 0; i--)
    if (!product(e, out, &a, out)) return false;
  return true;
}
static bool pick(const fenv *e, const fexpr *x, fval *out, int want) {
  fval a, b;
  if (!free_arg(e, x, 0, &a) || !free_arg(e, x, 1, &b)) return false;
  int c = free_compare(&a, &b);
  *out = c == want ? a : b;
  return c != 2 && a.kind != FV_NAME;
}
static bool f_min(const fenv *e, const fexpr *x, fval *out) { return pick(e, x, out, -1); }
static bool f_max(const fenv *e, const fexpr *x, fval *out) { return pick(e, x, out, 1); }
static bool f_abs(const fenv *e, const fexpr *x, fval *out) {
  if (!free_arg(e, x, 0, out) || !is_number(out)) return false;
  if (out->kind == FV_BIG && out->big->num.n < 0) {
    bigrat minus = bigrat_negate(e->f->cx, out->big);
    return narrow(e->f->cx, &minus, out);
  }
  out->p = out->p < 0 ? -out->p : out->p, out->x = fabs(out->x);
  return true;
}
static bool f_sqrt(const fenv *e, const fexpr *x, fval *out) {
  return free_arg(e, x, 0, out) && out->kind == FV_REAL && out->x >= 0 && real(sqrt(out->x), out);
}
static bool f_floor(const fenv *e, const fexpr *x, fval *out) {
  if (!free_arg(e, x, 0, out) || !is_number(out)) return false;
  if (out->kind == FV_REAL) return real(floor(out->x), out);
  if (out->kind == FV_BIG) {
    bigrat down = bigrat_round(e->f->cx, 'f', out->big);
    return narrow(e->f->cx, &down, out);
  }
  return fraction(out->p / out->q - (out->p % out->q < 0), 1, out);
}
/* ---- bits of whole numbers, which go on to the left as their sign ---- */
static bool bits(const fenv *e, const fexpr *x, char op, fval *out) {
  fval a, b;
  return two(e, x, &a, &b) && is_exact(&a) && wide_whole(e, op, &a, &b, out);
}
static bool f_bitand(const fenv *e, const fexpr *x, fval *out) { return bits(e, x, '&', out); }
static bool f_bitor(const fenv *e, const fexpr *x, fval *out) { return bits(e, x, '|', out); }
static bool f_bitxor(const fenv *e, const fexpr *x, fval *out) { return bits(e, x, '^', out); }
static bool f_shl(const fenv *e, const fexpr *x, fval *out) { return bits(e, x, '<', out); }
static bool f_shr(const fenv *e, const fexpr *x, fval *out) { return bits(e, x, '>', out); }
/* (choose COND A B) */
static bool f_choose(const fenv *e, const fexpr *x, fval *out) {
  return free_arg(e, x, free_holds(e, x->kid[0]) ? 1 : 2, out);
}
/* (truth COND): the name true or false. Where it is about values that are not known: none. */
static bool known(const fenv *e, const fexpr *x) {
  fval v;
  for (uint32_t i = 0; i < x->n; i++) {
    const fexpr *k = x->kid[i];
    if (strchr(k->fun->sig, ':')[1] == 'v' ? !k->fun->fn(e, k, &v) : !known(e, k)) return false;
  }
  return true;
}
static bool f_truth(const fenv *e, const fexpr *x, fval *out) {
  if (!known(e, x->kid[0])) return false;
  const char *name = free_holds(e, x->kid[0]) ? "true" : "false";
  *out = (fval){.kind = FV_NAME,
                .symbol = tarn_intern_find(free_of(e->f->rs)->symbol, name, strlen(name))};
  return true;
}
static bool f_literal(const fenv *e, const fexpr *x, fval *out) {
  (void)e;
  *out = x->lit;
  return true;
}
static bool f_variable(const fenv *e, const fexpr *x, fval *out) {
  bool lattice = x->analysis != TARN_NONE;
  if (e->term_value) return !lattice && e->term_value(e, x->var, out);
  uint64_t v = tarn_eg_data(e->g, lattice ? x->analysis : e->f->constants, e->cls[x->var]);
  if (!v) return false;
  *out = free_value_of(e->f, (uint32_t)(v - 1));
  return true;
}

/* ?old or ?new of a merge. */
static bool f_slot(const fenv *e, const fexpr *x, fval *out) {
  *out = e->slot[x->var];
  return true;
}

/* ---- comparisons: false where a value is not known ---- */
static int compare(const fenv *e, const fexpr *x) {
  fval a, b;
  return free_arg(e, x, 0, &a) && free_arg(e, x, 1, &b) ? free_compare(&a, &b) : 3;
}
static bool f_eq(const fenv *e, const fexpr *x, fval *out) {
  return truth(compare(e, x) == 0, out);
}
static bool f_lt(const fenv *e, const fexpr *x, fval *out) {
  return truth(compare(e, x) == -1, out);
}
static bool f_le(const fenv *e, const fexpr *x, fval *out) {
  int c = compare(e, x);
  return truth(c == -1 || c == 0, out);
}
static bool f_not(const fenv *e, const fexpr *x, fval *out) {
  return truth(!free_holds(e, x->kid[0]), out);
}
static bool f_and(const fenv *e, const fexpr *x, fval *out) {
  return truth(free_holds(e, x->kid[0]) && free_holds(e, x->kid[1]), out);
}
static bool f_or(const fenv *e, const fexpr *x, fval *out) {
  return truth(free_holds(e, x->kid[0]) || free_holds(e, x->kid[1]), out);
}

/* ---- conditions on classes ---- */
static bool f_constant(const fenv *e, const fexpr *x, fval *out) {
  fval v;
  if (e->term_value) return truth(e->term_value(e, x->kid[0]->var, &v), out);
  return truth(tarn_eg_data(e->g, e->f->constants, e->cls[x->kid[0]->var]) != 0, out);
}
/* Is a leaf that is no value in it? */
static bool f_symbol(const fenv *e, const fexpr *x, fval *out) {
  uint32_t c = tarn_eg_find(e->g, e->cls[x->kid[0]->var]);
  TARN_EG_NODES(e->g, c, n) {
    tarn_eg_node v = tarn_eg_node_at(e->g, n);
    if (v.n == 0 && free_value_of(e->f, v.op).kind == FV_NONE) return truth(true, out);
  }
  return truth(false, out);
}
static bool f_same(const fenv *e, const fexpr *x, fval *out) {
  return truth(tarn_eg_find(e->g, e->cls[x->kid[0]->var]) ==
                   tarn_eg_find(e->g, e->cls[x->kid[1]->var]),
               out);
}
static bool f_in(const fenv *e, const fexpr *x, fval *out) {
  uint64_t set = tarn_eg_data(e->g, x->analysis, e->cls[x->kid[1]->var]);
  return truth(free_set_has(e->f, e->g, set, e->cls[x->kid[0]->var]), out);
}
typedef struct below {
  const fenv *e;
  uint32_t on, top;
  bool found;
} below;
static void look_below(tarn_ctx *cx, void *user) {
  below *b = user;
  TARN_VEC(uint32_t) todo = {0};
  const tarn_egraph *g = b->e->g;
  tarn_mark mark = tarn_arena_mark(cx);
  tarn_map *seen = tarn_map_new(cx);
  bool fresh;
  for (tarn_push(cx, &todo, b->top); todo.n && !b->found;) {
    uint32_t c = todo.p[--todo.n];
    b->found = c == b->on;
    tarn_map_at(seen, c, &fresh);
    if (!fresh) continue;
    TARN_EG_NODES(g, c, n) {
      tarn_eg_node v = tarn_eg_node_at(g, n);
      for (uint32_t i = 0; i < v.n; i++) tarn_push(cx, &todo, tarn_eg_find(g, v.kids[i]));
    }
  }
  tarn_release(cx, mark);
}
/* (acyclic ?on ?x): no term of ?x contains one of ?on. */
static bool f_acyclic(const fenv *e, const fexpr *x, fval *out) {
  below b = {e, tarn_eg_find(e->g, e->cls[x->kid[0]->var]),
             tarn_eg_find(e->g, e->cls[x->kid[1]->var]), false};
  tarn_status st = tarn_protect(e->f->cx, look_below, &b);
  if (st) e->f->failed = st;
  return truth(!b.found && !st, out);
}
static bool f_equal(const fenv *e, const fexpr *x, fval *out) {
  uint32_t a = free_look_up(e, x->pat[0]), b = free_look_up(e, x->pat[1]);
  return truth(a != TARN_NONE && b != TARN_NONE && tarn_eg_find(e->g, a) == tarn_eg_find(e->g, b),
               out);
}
static bool f_present(const fenv *e, const fexpr *x, fval *out) {
  return truth(free_look_up(e, x->pat[0]) != TARN_NONE, out);
}

/* ---- sets ---- */
static bool set_is(uint64_t set, fval *out) {
  *out = (fval){.p = (int64_t)set};
  return true;
}
static uint64_t set_of(const fenv *e, const fexpr *x) {
  fval v = {0};
  x->fun->fn(e, x, &v);
  return (uint64_t)v.p;
}
static bool f_of(const fenv *e, const fexpr *x, fval *out) {
  return set_is(tarn_eg_data(e->g, x->analysis, e->cls[x->var]), out);
}
static bool f_none(const fenv *e, const fexpr *x, fval *out) {
  (void)e, (void)x;
  return set_is(0, out);
}
static bool f_one(const fenv *e, const fexpr *x, fval *out) {
  return set_is(free_set_one(e->f, tarn_eg_find(e->g, e->cls[x->kid[0]->var])), out);
}
static bool f_without(const fenv *e, const fexpr *x, fval *out) {
  return set_is(free_set_merge(e->f, set_of(e, x->kid[0]),
                               tarn_eg_find(e->g, e->cls[x->kid[1]->var]), SET_WITHOUT),
                out);
}
static bool f_union(const fenv *e, const fexpr *x, fval *out) {
  return set_is(free_set_merge(e->f, set_of(e, x->kid[0]), set_of(e, x->kid[1]), SET_UNION), out);
}
static bool f_both(const fenv *e, const fexpr *x, fval *out) {
  return set_is(free_set_merge(e->f, set_of(e, x->kid[0]), set_of(e, x->kid[1]), SET_BOTH), out);
}
static bool f_class(const fenv *e, const fexpr *x, fval *out) {
  (void)e, (void)x;
  return set_is(0, out);
}

#define COUNT(a) (sizeof(a) / sizeof *(a))
/* Without a name: what stands for itself. */
static const ffun functions[] = {
    {"", ":v", f_literal, 0, 0},
    {"", "c:v", f_variable, FREE_READS, FREE_READS},
    {"", "n:v", f_slot, 0, 0},
    {"", "c:s", f_of, FREE_READS, FREE_READS},
    {"", "c:c", f_class, 0, 0},
    {"add", "vv:v", f_add, 0, 0},
    {"sub", "vv:v", f_sub, 0, 0},
    {"mul", "vv:v", f_mul, 0, 0},
    {"div", "vv:v", f_div, 0, 0},
    {"mod", "vv:v", f_mod, 0, 0},
    {"pow", "vv:v", f_pow, 0, 0},
    {"min", "vv:v", f_min, 0, 0},
    {"max", "vv:v", f_max, 0, 0},
    {"bitand", "vv:v", f_bitand, 0, 0},
    {"bitor", "vv:v", f_bitor, 0, 0},
    {"bitxor", "vv:v", f_bitxor, 0, 0},
    {"shl", "vv:v", f_shl, 0, 0},
    {"shr", "vv:v", f_shr, 0, 0},
    {"neg", "v:v", f_neg, 0, 0},
    {"abs", "v:v", f_abs, 0, 0},
    {"sqrt", "v:v", f_sqrt, 0, 0},
    {"floor", "v:v", f_floor, 0, 0},
    {"choose", "bvv:v", f_choose, 0, 0},
    {"truth", "b:v", f_truth, 0, 0},
    {"eq", "vv:b", f_eq, 0, 0},
    {"lt", "vv:b", f_lt, 0, 0},
    {"le", "vv:b", f_le, 0, 0},
    {"not", "b:b", f_not, 0, 0},
    {"and", "bb:b", f_and, 0, 0},
    {"or", "bb:b", f_or, 0, 0},
    {"constant", "c:b", f_constant, FREE_READS, FREE_READS},
    {"symbol", "c:b", f_symbol, TARN_EG_READS_GRAPH, 0},
    {"same", "cc:b", f_same, TARN_EG_READS_GRAPH, 0},
    {"in", "cac:b", f_in, FREE_READS, FREE_READS},
    {"acyclic", "cc:b", f_acyclic, TARN_EG_READS_GRAPH, TARN_EG_READS_GRAPH},
    {"equal", "pp:b", f_equal, TARN_EG_READS_GRAPH, 0},
    {"present", "p:b", f_present, TARN_EG_READS_GRAPH, 0},
    {"none", ":s", f_none, 0, 0},
    {"one", "c:s", f_one, 0, 0},
    {"without", "sc:s", f_without, 0, 0},
    {"union", "ss:s", f_union, 0, 0},
    {"both", "ss:s", f_both, 0, 0},
};

const ffun *free_function(const char *name, const char *sig, char kind) {
  for (size_t i = 0; i < COUNT(functions) + free_n_many; i++) {
    const ffun *f = i < COUNT(functions) ? &functions[i] : &free_many[i - COUNT(functions)];
    if (strcmp(f->name, name) || (sig && strcmp(f->sig, sig))) continue;
    if (!kind || strchr(f->sig, ':')[1] == kind) return f;
  }
  return NULL;
}

bool free_holds(const fenv *e, const fexpr *x) {
  fval v = {0};
  return x->fun->fn(e, x, &v) && v.p;
}

uint64_t free_reads(const free_state *f, const fexpr *x, bool yes) {
  uint64_t bits = yes ? x->fun->yes : x->fun->no;
  bool turn = !strcmp(x->fun->name, "not");
  if (bits == FREE_READS)
    bits = UINT64_C(1) << (x->analysis != TARN_NONE ? x->analysis : f->constants);
  bool either =
      strchr(x->fun->sig, ':')[1] == 'v'; /* a value may go up and down with a condition in it */
  for (uint32_t i = 0; i < x->n; i++) {
    bits |= free_reads(f, x->kid[i], turn ? !yes : yes);
    if (either) bits |= free_reads(f, x->kid[i], !yes);
  }
  return bits;
}
