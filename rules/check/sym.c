/* A rule over symbolic sizes. An instance says of what rank its terms are and which axes its
 * attributes name; sizes become variables. What typing and conditions say of them is assumed, and
 * every size is compared with the instance's. */
#include "rules/check/sym.h"
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- attributes */
/* What the attributes of an operator are: a an axis or a count of axes, z a size, . something else.
 */
static const char *roles(uint32_t op) {
  switch (op) {
  case TARN_OP_ACCESS:
  case TARN_OP_TRANSPOSE:
  case TARN_OP_SQUEEZE:
  case TARN_OP_CONCAT:
  case TARN_OP_CART_PROD: return "a";
  case TARN_OP_INSERT_AXIS: return "aa";
  case TARN_OP_WINDOWS: return "zzz";
  case TARN_OP_SLICE: return "azza";
  case TARN_OP_PAD: return "a.zz";
  case TARN_OP_RESHAPE:
  case TARN_OP_BROADCAST: return "z";
  default: return "....";
  }
}
static void find_axes(prover *p, const rpat *t) {
  if (t->kind != RP_NODE) return;
  const char *role = roles(t->op);
  for (uint32_t i = 0; i < t->npay && i < strlen(role); i++)
    if (t->pay[i]->kind == RX_VAR && role[i] == 'a' && t->pay[i]->var < 32)
      p->axis |= 1u << t->pay[i]->var;
  for (uint32_t i = 0; i < t->n; i++) find_axes(p, t->kid[i]);
}
static sv ints(prover *p, char kind, uint32_t n) {
  return (sv){.kind = kind, .n = n, .p = TARN_ARRAY(p->cx, poly, n + 1)};
}
static sv one(prover *p, poly x) {
  sv v = ints(p, 'i', 1);
  v.p[0] = x;
  return v;
}
/* The instance's value; symbolic: its integers as new sizes. */
static sv lifted(prover *p, const rv *v, bool symbolic) {
  const tarn_type *t = v->kind == 's' ? tarn_type_get(p->g->L, v->id) : NULL;
  uint32_t n = v->kind == 'i' ? 1 : v->kind == 'l' ? v->n : t ? t->n : 0;
  sv x = ints(p, v->kind, n);
  x.given = *v, x.ns = t ? t->ns : 0;
  for (uint32_t i = 0; i < n; i++) {
    int64_t c = v->kind == 'i' ? v->i : t ? t->dim[i] : v->p[i];
    if (!symbolic || c < 0) x.p[i] = poly_int(c);
    else x.p[i] = poly_var(&p->s, poly_size(&p->s, c, 0));
  }
  return x;
}

/* ---------------------------------------------------------------- terms: types */
static const tarn_type *type_of(const prover *p, uint32_t term) { return type_at(p->g, term); }
static st *new_term(prover *p, uint32_t op, uint32_t term) {
  st *t = TARN_NEW(p->cx, st);
  const tarn_type *y = type_of(p, term);
  *t = (st){.op = op, .term = term, .leaf = TARN_NONE, .tuple = y->tuple};
  if (!y->tuple) t->ns = y->ns, t->n = y->n, t->dim = TARN_ARRAY(p->cx, poly, y->n + 1);
  return t;
}
static st *leaf_of(prover *p, uint32_t var, uint32_t seg, uint32_t term) {
  st *t = new_term(p, TARN_OP_INPUT, term);
  if (t->tuple) poly_stuck(&p->s, "a variable stands for a tuple");
  t->leaf = var, t->seg = seg;
  for (uint32_t i = 0; i < t->n; i++)
    t->dim[i] = poly_var(&p->s, poly_size(&p->s, type_of(p, term)->dim[i], 1));
  return t;
}
static int64_t integer_at(prover *p, const sv *v, uint32_t i) {
  int64_t c;
  poly x = poly_now(&p->s, &v->p[i]);
  if (v->kind != 'i' && v->kind != 'l') poly_stuck(&p->s, "an attribute of another kind");
  if (!poly_constant(&x, &c)) poly_stuck(&p->s, "the number of an axis depends on sizes");
  return c;
}
static poly product(prover *p, const poly *d, uint32_t n) {
  poly x = poly_int(1);
  for (uint32_t i = 0; i < n; i++) x = poly_mul(&p->s, &x, &d[i]);
  return x;
}
static void same(prover *p, const poly *a, const poly *b) { poly_assume_equal(&p->s, a, b); }
static void type_windows(prover *p, st *t) {
  const st *k = t->kid[0];
  uint32_t nc = k->n - k->ns;
  poly minus = poly_int(1);
  for (uint32_t i = 0; i < nc; i++) {
    const poly *w = &t->pay[0].p[i], *step = &t->pay[1].p[i], *d = &t->pay[2].p[i];
    poly reach = poly_add(&p->s, w, &minus, -1);
    reach = poly_mul(&p->s, &reach, d);
    poly room = poly_add(&p->s, &k->dim[k->ns + i], &reach, -1);
    room = poly_add(&p->s, &room, &minus, -1);
    poly many = poly_div(&p->s, &room, step);
    t->dim[k->ns + i] = poly_add(&p->s, &many, &minus, 1);
    t->dim[k->n + i] = *w;
  }
  memcpy(t->dim, k->dim, k->ns * sizeof *t->dim);
}
static void type_slice(prover *p, st *t) {
  int64_t axis = integer_at(p, &t->pay[0], 0), step = integer_at(p, &t->pay[3], 0),
          by = llabs(step);
  bool back = step < 0;
  const poly *low = t->pay[back ? 2 : 1].p, *high = t->pay[back ? 1 : 2].p;
  poly more = poly_int(by - 1), steps = poly_int(by), one = poly_int(back);
  memcpy(t->dim, t->kid[0]->dim, t->n * sizeof *t->dim);
  poly length = poly_add(&p->s, high, low, -1),
       room = poly_add(&p->s, &t->kid[0]->dim[axis], high, -1);
  room = poly_add(&p->s, &room, &one, -1);
  poly_assume_natural(&p->s, &room);
  poly_assume_natural(&p->s, &length);
  length = poly_add(&p->s, &length, &more, 1);
  t->dim[axis] = by == 1 ? length : poly_div(&p->s, &length, &steps);
}
static void type_broadcast(prover *p, st *t) {
  const st *k = t->kid[0];
  poly unit = poly_int(1);
  for (uint32_t i = 0; i < t->n; i++) {
    t->dim[i] = t->pay[0].p[i];
    bool stretched = type_of(p, t->term)->dim[i] != type_of(p, k->term)->dim[i];
    same(p, &k->dim[i], stretched ? &unit : &t->dim[i]);
  }
}
static void type_products(prover *p, st *t, bool cart) {
  const st *a = t->kid[0], *b = t->kid[1];
  uint32_t k = cart && t->npay ? (uint32_t)integer_at(p, &t->pay[0], 0) : 0, at = 0;
  uint32_t nc = a->n - a->ns;
  for (uint32_t i = 0; i < nc; i++) same(p, &a->dim[a->ns + i], &b->dim[b->ns + i]);
  for (uint32_t i = 0; i < (cart ? k : a->ns); i++) same(p, &a->dim[i], &b->dim[i]);
  for (uint32_t i = 0; i < a->ns; i++) t->dim[at++] = a->dim[i];
  for (uint32_t i = k; cart && i < b->ns; i++) t->dim[at++] = b->dim[i];
  t->dim[at++] = poly_int(2);
  for (uint32_t i = 0; i < nc; i++) t->dim[at++] = a->dim[a->ns + i];
}
static void type_compute(prover *p, st *t) {
  const tarn_func *f = tarn_fn_get(p->g->L, t->pay[0].given.id);
  const st *k = t->kid[0];
  uint32_t skip = f->ntuple ? 1 : 0, at = 0;
  for (uint32_t i = 0; i < k->ns; i++) t->dim[at++] = k->dim[i];
  for (uint32_t i = k->ns + skip; i < k->n && f->red == TARN_NONE; i++) t->dim[at++] = k->dim[i];
  for (uint32_t j = 1; j < t->nkid; j++)
    for (uint32_t i = 0; i < t->kid[j]->n; i++) same(p, &k->dim[i], &t->kid[j]->dim[i]);
  if (at != t->n) poly_stuck(&p->s, "a function with several results");
}
static void type_concat(prover *p, st *t) {
  int64_t axis = integer_at(p, &t->pay[0], 0);
  memcpy(t->dim, t->kid[0]->dim, t->n * sizeof *t->dim);
  for (uint32_t j = 1; j < t->nkid; j++)
    for (uint32_t i = 0; i < t->n; i++) {
      if ((int64_t)i != axis) same(p, &t->dim[i], &t->kid[j]->dim[i]);
      else t->dim[i] = poly_add(&p->s, &t->dim[i], &t->kid[j]->dim[i], 1);
    }
}
static void type_view(prover *p, st *t) {
  const st *k = t->kid[0];
  uint32_t at = 0;
  int64_t axis = t->npay && t->pay[0].kind == 'i' ? integer_at(p, &t->pay[0], 0) : 0;
  poly unit = poly_int(1);
  for (uint32_t i = 0; i < t->n; i++) switch (t->op) {
    case TARN_OP_ACCESS:
    case TARN_OP_MATERIALISE: t->dim[i] = k->dim[i]; break;
    case TARN_OP_TRANSPOSE: t->dim[i] = k->dim[integer_at(p, &t->pay[0], i)]; break;
    case TARN_OP_PAD:
      t->dim[i] = k->dim[i];
      for (uint32_t x = 2; x < 4 && (int64_t)i == axis; x++)
        t->dim[i] = poly_add(&p->s, &t->dim[i], t->pay[x].p, 1);
      break;
    case TARN_OP_SQUEEZE: at += (int64_t)at == axis, t->dim[i] = k->dim[at++]; break;
    case TARN_OP_INSERT_AXIS: t->dim[i] = (int64_t)i == axis ? unit : k->dim[at++]; break;
    default: t->dim[i] = t->pay[0].p[i]; /* reshape */
    }
  if (t->op == TARN_OP_SQUEEZE) same(p, &k->dim[axis], &unit);
}
static void type_flatten(prover *p, st *t) {
  const st *k = t->kid[0];
  uint32_t at = 0;
  if (k->ns) t->dim[at++] = product(p, k->dim, k->ns);
  if (k->n > k->ns) t->dim[at++] = product(p, k->dim + k->ns, k->n - k->ns);
}
static void type_node(prover *p, st *t) {
  switch (t->op) {
  case TARN_OP_WINDOWS: type_windows(p, t); break;
  case TARN_OP_SLICE: type_slice(p, t); break;
  case TARN_OP_BROADCAST: type_broadcast(p, t); break;
  case TARN_OP_PAIR:
  case TARN_OP_CART_PROD: type_products(p, t, t->op == TARN_OP_CART_PROD); break;
  case TARN_OP_COMPUTE: type_compute(p, t); break;
  case TARN_OP_CONCAT: type_concat(p, t); break;
  case TARN_OP_FLATTEN: type_flatten(p, t); break;
  case TARN_OP_ACCESS:
  case TARN_OP_MATERIALISE:
  case TARN_OP_TRANSPOSE:
  case TARN_OP_PAD:
  case TARN_OP_SQUEEZE:
  case TARN_OP_INSERT_AXIS:
  case TARN_OP_RESHAPE: type_view(p, t); break;
  default: poly_stuck(&p->s, "an operator that has no symbolic form");
  }
  const tarn_type *y = type_of(p, t->term);
  for (uint32_t i = 0; i < t->n; i++) poly_check(&p->s, &t->dim[i], y->dim[i]);
}

/* ---------------------------------------------------------------- functions of attributes */
static sv eval(prover *p, const rx *x);
static sv list_of(prover *p, const st *t, uint32_t from, uint32_t to) {
  sv v = ints(p, 'l', to - from);
  memcpy(v.p, t->dim + from, v.n * sizeof *v.p);
  return v;
}
static st *term_of(prover *p, const rx *x) {
  st *t = x->kind == RX_CLASS ? p->cls[x->var] : NULL;
  if (!t) poly_stuck(&p->s, "a term that is no variable");
  return t;
}
static bool of_term(prover *p, const rx *x, sv *out) {
  const char *f = x->fun->name;
  if (!x->n || x->kid[0]->type != 'c') return false;
  const st *t = term_of(p, x->kid[0]);
  if (!strcmp(f, "ns")) *out = one(p, poly_int(t->ns));
  else if (!strcmp(f, "nc")) *out = one(p, poly_int(t->n - t->ns));
  else if (!strcmp(f, "rank")) *out = one(p, poly_int(t->n));
  else if (!strcmp(f, "dims")) *out = list_of(p, t, 0, t->n);
  else if (!strcmp(f, "sdims")) *out = list_of(p, t, 0, t->ns);
  else if (!strcmp(f, "cdims")) *out = list_of(p, t, t->ns, t->n);
  else if (!strcmp(f, "shape-of")) *out = list_of(p, t, 0, t->n), out->kind = 's', out->ns = t->ns;
  else if (!strcmp(f, "dim") || !strcmp(f, "cdim")) {
    sv i = eval(p, x->kid[1]);
    int64_t at = integer_at(p, &i, 0) + (f[0] == 'c' ? t->ns : 0);
    if (at < 0 || at >= (int64_t)t->n) poly_stuck(&p->s, "there is no such axis");
    *out = one(p, t->dim[at]);
  } else return false;
  return true;
}
static bool of_ints(prover *p, const char *f, const sv *a, sv *out) {
  polys *s = &p->s;
  if (!strcmp(f, "+")) *out = one(p, poly_add(s, a[0].p, a[1].p, 1));
  else if (!strcmp(f, "-")) *out = one(p, poly_add(s, a[0].p, a[1].p, -1));
  else if (!strcmp(f, "*")) *out = one(p, poly_mul(s, a[0].p, a[1].p));
  else if (!strcmp(f, "/")) *out = one(p, poly_div(s, a[0].p, a[1].p));
  else return false;
  return true;
}
static bool of_list(prover *p, const char *f, const sv *a, sv *out) {
  uint32_t n = a[0].n, k = 0;
  bool counted = !strcmp(f, "at") || !strcmp(f, "take") || !strcmp(f, "drop");
  bool changed = !strcmp(f, "set") || !strcmp(f, "insert") || !strcmp(f, "remove");
  if (counted || changed) k = (uint32_t)integer_at(p, &a[1], 0);
  if ((counted || changed) && k > n) poly_stuck(&p->s, "a list is too short");
  if (!strcmp(f, "len")) *out = one(p, poly_int(n));
  else if (!strcmp(f, "product")) *out = one(p, product(p, a[0].p, n));
  else if (!strcmp(f, "at")) {
    if (k == n) poly_stuck(&p->s, "a list is too short");
    *out = one(p, a[0].p[k]);
  } else if (!strcmp(f, "take")) *out = a[0], out->n = k;
  else if (!strcmp(f, "drop")) *out = a[0], out->n = n - k, out->p += k;
  else if (!strcmp(f, "append")) {
    *out = ints(p, 'l', n + a[1].n);
    memcpy(out->p, a[0].p, n * sizeof *out->p);
    memcpy(out->p + n, a[1].p, a[1].n * sizeof *out->p);
  } else if (!strcmp(f, "shift")) {
    *out = ints(p, 'l', n);
    for (uint32_t i = 0; i < n; i++) out->p[i] = poly_add(&p->s, &a[0].p[i], a[1].p, 1);
  } else if (changed) {
    uint32_t in = f[0] != 'r', over = f[0] != 'i';
    if (over && k == n) poly_stuck(&p->s, "a list is too short");
    *out = ints(p, 'l', n + in - over);
    memcpy(out->p, a[0].p, k * sizeof *out->p);
    if (in) out->p[k] = a[2].p[0];
    memcpy(out->p + k + in, a[0].p + k + over, (n - k - over) * sizeof *out->p);
  } else return false;
  return true;
}
/* Of numbers of axes alone: as the instance has it. */
static bool of_axes(prover *p, const rx *x, const sv *a, sv *out) {
  rv v;
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t k = 0; k < a[i].n; k++) {
      int64_t c;
      poly now = poly_now(&p->s, &a[i].p[k]);
      if (a[i].kind == 's' || !poly_constant(&now, &c)) return false;
    }
  for (uint32_t i = 0; i < x->n; i++)
    if (!strchr("il", x->kid[i]->type)) return false;
  if (!rx_eval(&p->g->e, x, &v)) return false;
  *out = lifted(p, &v, false);
  return true;
}
static sv call_of(prover *p, const rx *x) {
  sv a[8], out;
  if (of_term(p, x, &out)) return out;
  if (x->n > 8) poly_stuck(&p->s, "a function of many arguments");
  for (uint32_t i = 0; i < x->n; i++) a[i] = eval(p, x->kid[i]);
  const char *f = x->fun->name;
  if (!strcmp(f, "list")) {
    out = ints(p, 'l', x->n);
    for (uint32_t i = 0; i < x->n; i++) out.p[i] = a[i].p[0];
    return out;
  }
  if (!strcmp(f, "shape")) {
    out = ints(p, 's', a[0].n + a[1].n);
    out.ns = a[0].n;
    memcpy(out.p, a[0].p, a[0].n * sizeof *out.p);
    memcpy(out.p + out.ns, a[1].p, a[1].n * sizeof *out.p);
    return out;
  }
  if (x->n == 2 && a[0].kind == 'i' && a[1].kind == 'i' && of_ints(p, f, a, &out)) return out;
  if (x->n && a[0].kind == 'l' && of_list(p, f, a, &out)) return out;
  if (of_axes(p, x, a, &out)) return out;
  poly_stuck(&p->s, tarn_format(p->cx, "the function %s has no symbolic form", f));
}
static sv eval(prover *p, const rx *x) {
  switch (x->kind) {
  case RX_LIT: return lifted(p, &x->lit, false);
  case RX_VAR: return p->attr[x->var];
  case RX_CALL: return call_of(p, x);
  default: poly_stuck(&p->s, "an attribute of another kind");
  }
}

/* ---------------------------------------------------------------- both sides */
static void attributes(prover *p, const rpat *t, st *x) {
  const char *spec = tarn_op_info(t->op)->attrs;
  rv given[4];
  uint32_t n = r_payload_split(&p->g->e, t->op, tarn_term_get(p->g->L, x->term)->payload, given);
  x->npay = n;
  for (uint32_t i = 0; i < n; i++) {
    x->pay[i] = i < t->npay ? eval(p, t->pay[i]) : lifted(p, &given[i], false);
    if (x->pay[i].kind != spec[i]) poly_stuck(&p->s, "an attribute of another kind");
    for (uint32_t k = 0; k < x->pay[i].n && spec[i] != 's'; k++)
      poly_check(&p->s, &x->pay[i].p[k], spec[i] == 'i' ? given[i].i : given[i].p[k]);
  }
}
static st *node_of(prover *p, const rpat *t, uint32_t term, bool left) {
  st *x = new_term(p, t->op, term);
  const tarn_node *node = tarn_term_get(p->g->L, term);
  uint32_t at = 0, nkid = node->n;
  if (node->op != t->op) poly_stuck(&p->s, "the instance was simplified");
  const tarn_term *kid = tarn_copy(p->cx, node->kid, nkid * sizeof *kid);
  x->kid = TARN_ARRAY(p->cx, st *, nkid + 1);
  for (uint32_t i = 0; i < t->n; i++) {
    const rpat *k = t->kid[i];
    bool row = k->kind == RP_SEG || k->kind == RP_EACH;
    uint32_t many = row ? p->g->e.seg[k->var].n : 1;
    if ((!row && k->kind != RP_VAR && k->kind != RP_NODE) || at + many > nkid)
      poly_stuck(&p->s, "operands that are counted");
    for (uint32_t j = 0; j < many; j++, at++) {
      if (k->kind == RP_EACH) p->cls[k->item] = p->seg[k->var][j];
      x->kid[at] = k->kind == RP_SEG ? p->seg[k->var][j]
                   : left            ? sym_left(p, k)
                                     : sym_right(p, row ? k->kid[0] : k, kid[at]);
    }
  }
  x->nkid = at;
  attributes(p, t, x);
  if (!x->tuple) type_node(p, x);
  else poly_stuck(&p->s, "a tuple");
  return x;
}
st *sym_left(prover *p, const rpat *t) {
  if (t->kind == RP_VAR) return p->cls[t->var];
  if (t->kind != RP_NODE) poly_stuck(&p->s, "a left side of another kind");
  return node_of(p, t, p->g->e.node[t->var], true);
}
st *sym_right(prover *p, const rpat *t, uint32_t term) {
  if (t->kind == RP_VAR) return p->cls[t->var];
  if (t->kind != RP_NODE) poly_stuck(&p->s, "a right side that is built");
  return node_of(p, t, term, false);
}

/* ---------------------------------------------------------------- what is assumed */
static bool bound_here(const rule *r, uint32_t var) {
  for (uint32_t i = 0; i < r->nwhere; i++)
    if (r->where_var[i] == var) return false;
  return true;
}
void sym_begin(prover *p) {
  const rule *r = p->g->r;
  const renv *e = &p->g->e;
  for (uint32_t i = 0; i < r->nlhs; i++) find_axes(p, r->lhs[i].pat);
  for (uint32_t i = 0; i < r->nattr; i++)
    if (e->attr[i].kind && bound_here(r, i)) {
      p->attr[i] = lifted(p, &e->attr[i], !(i < 32 && p->axis >> i & 1));
      p->attr[i].free = true, p->attr[i].var = i;
    }
  for (uint32_t i = 0; i < r->ncls; i++)
    if (e->cls[i] != TARN_NONE) p->cls[i] = leaf_of(p, i, TARN_NONE, e->cls[i]);
  for (uint32_t i = 0; i < r->nseg; i++) {
    uint32_t n = e->seg[i].n == UINT32_MAX ? 0 : e->seg[i].n;
    p->seg[i] = TARN_ARRAY(p->cx, st *, n + 1);
    for (uint32_t k = 0; k < n; k++) p->seg[i][k] = leaf_of(p, r->ncls + i, k, e->seg[i].id[k]);
  }
  for (uint32_t i = 0; i < r->nwhere; i++) {
    bool each = r->where_each[i];
    p->attr[r->where_var[i]] =
        each ? lifted(p, &e->attr[r->where_var[i]], false) : eval(p, r->where[i]);
  }
}
typedef struct assuming {
  prover *p;
  const rx *c;
} assuming;
static void assume(tarn_ctx *cx, void *arg) {
  const assuming *x = arg;
  prover *p = x->p;
  const char *f = x->c->kind == RX_CALL ? x->c->fun->name : "";
  (void)cx;
  bool equal = !strcmp(f, "="), most = !strcmp(f, "<=") || !strcmp(f, "<"),
       least = !strcmp(f, ">=") || !strcmp(f, ">");
  if (!equal && !most && !least) return;
  sv a = eval(p, x->c->kid[0]), b = eval(p, x->c->kid[1]);
  if (equal)
    for (uint32_t i = 0; i < a.n && a.n == b.n; i++) poly_assume_equal(&p->s, &a.p[i], &b.p[i]);
  if (equal) return;
  poly d = most ? poly_add(&p->s, b.p, a.p, -1) : poly_add(&p->s, a.p, b.p, -1);
  poly strict = poly_int(f[1] ? 0 : 1);
  d = poly_add(&p->s, &d, &strict, -1);
  poly_assume_natural(&p->s, &d);
}
/* A condition that says nothing of sizes holds in the instance's case, or is not needed. */
void sym_conditions(prover *p) {
  const rule *r = p->g->r;
  for (uint32_t i = 0; i < r->ncond; i++) {
    assuming x = {p, r->cond[i]};
    if (i == p->g->skip) continue;
    tarn_status got = tarn_protect(p->cx, assume, &x);
    if (got && got != TARN_NO_RESULT) tarn_reraise(p->cx, got);
  }
}
/* What sizes are is a case's own only as far as equations say so. */
static uint64_t mix_polys(prover *p, uint64_t h, const poly *d, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    poly x = poly_now(&p->s, &d[i]);
    h = tarn_hash_mix(h, x.n);
    for (uint32_t k = 0; k < x.n; k++) {
      h = tarn_hash_mix(h, (uint64_t)x.m[k].c);
      for (uint32_t q = 0; q < x.m[k].n; q++) h = tarn_hash_mix(h, x.m[k].v[q] + 1u);
    }
  }
  return h;
}
static uint64_t mix_term(prover *p, uint64_t h, const st *t) {
  return mix_polys(p, tarn_hash_mix(h, t->n * 64 + t->ns), t->dim, t->n);
}
uint64_t sym_case(prover *p) {
  const rule *r = p->g->r;
  uint64_t h = 0;
  for (uint32_t i = 0; i < r->ncls; i++)
    if (p->cls[i]) h = mix_term(p, h, p->cls[i]);
  for (uint32_t i = 0; i < r->nseg; i++)
    for (uint32_t k = 0; k < p->g->e.seg[i].n && p->g->e.seg[i].n != UINT32_MAX; k++)
      h = mix_term(p, h, p->seg[i][k]);
  for (uint32_t i = 0; i < r->nattr; i++) {
    const sv *a = &p->attr[i];
    h = mix_polys(p, tarn_hash_mix(h, a->n * 64 + a->ns), a->p, a->n);
    if (a->kind != 'f') continue;
    const tarn_func *f = tarn_fn_get(p->g->L, a->given.id);
    h = tarn_hash_mix(h, (f->red != TARN_NONE) + 2u * f->ntuple + 64u * f->nops + 4096u * f->nepi);
  }
  return h;
}
bool sym_same_type(prover *p, const st *a, const st *b) {
  if (a->n != b->n || a->ns != b->ns) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!poly_equal(&p->s, &a->dim[i], &b->dim[i])) return false;
  return true;
}
