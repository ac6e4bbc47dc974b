/* The vocabulary, third part: what derived rules ask. Of a nest and a call they find out whether
 * the nest is the product that the call's meaning has tiles of, and by which index maps the tiles
 * are read and written.
 *
 * Own loops of the nest are rows (only $0 depends on them), columns (only $1 does) or shared; each
 * sort is taken as one loop, in order, as the reduce loops are. Where a size is no multiple of the
 * tile, reads outside give what the reduction ignores, and results outside are not read. */
#include "kernel/edit.h"
#include "rules/lang/vocab.h"
#include <string.h>

enum { SHARED, ROWS, COLUMNS, REDUCED, SORTS };

typedef struct fit {
  tarn_lang *L;
  const tarn_call_def *d;
  tarn_hw_form f;
  const tarn_nest *nest;
  const tarn_stage *s;
  uint32_t nloop;
  uint8_t sort[2 * TARN_MAX_DIMS]; /* of each loop, own ones first */
  int64_t extent[2 * TARN_MAX_DIMS];
  int64_t size[SORTS], tile[SORTS]; /* of all loops of a sort together; of the call */
} fit;

static void sort_loops(fit *t) {
  uint32_t a = map_uses(t->L, t->s->read[0].map), b = map_uses(t->L, t->s->read[1].map);
  for (uint32_t i = 0; i < SORTS; i++) t->size[i] = 1;
  for (uint32_t i = 0; i < t->nloop; i++) {
    bool own = i < t->s->nown, in_a = a >> i & 1, in_b = b >> i & 1;
    t->extent[i] = own ? t->s->own[i] : t->s->red[i - t->s->nown];
    t->sort[i] = !own ? REDUCED : in_a == in_b ? SHARED : in_a ? ROWS : COLUMNS;
    t->size[t->sort[i]] *= t->extent[i];
  }
}

/* Is the nest (a[0]) a product, whatever its epilogue, of the same function as the call (a[1])? */
static bool fits(renv *e, const rv *a, fit *t) {
  tarn_lang *L = e->L;
  const tarn_nest *n = tarn_nest_get(L, a[0].id);
  *t = (fit){.L = L, .d = tarn_call_find(L, a[1].name), .nest = n, .s = n->stage};
  if (!t->d || n->nstage != 1 || n->depth || n->nchild < 2) return false;
  tarn_hw_meaning m = {.call = t->d->name,
                       .term = t->d->meaning,
                       .nin = t->d->nin,
                       .in = t->d->in,
                       .acc = t->d->acc};
  const tarn_func *f = tarn_fn_get(L, t->s->fn);
  if (!tarn_hw_form_of(L, &m, &t->f) || !t->f.product || f->nops != 2 || f->body != t->f.body ||
      f->red != t->f.red)
    return false;
  t->nloop = (uint32_t)t->s->nown + t->s->nred;
  sort_loops(t);
  const int64_t tile[] = {1, t->f.m, t->f.n, t->f.k};
  memcpy(t->tile, tile, sizeof tile);
  return t->size[SHARED] && t->size[ROWS] && t->size[COLUMNS] && t->size[REDUCED];
}

/* Does it do nothing but add one more operand to the product? */
static bool adds(const fit *t) {
  const tarn_func *f = tarn_fn_get(t->L, t->s->fn);
  if (f->nepi != 1 || !t->f.chains || t->nest->nchild != 3) return false;
  uint32_t merge = tarn_reducer_get(t->L, t->f.red)->merge[0],
           swapped[] = {tarn_fx_hole(t->L, 1), tarn_fx_hole(t->L, 0)};
  return f->epi == merge || f->epi == tarn_fx_subst(t->L, merge, swapped, 2);
}

static int64_t tiles(const fit *t, uint32_t sort) {
  return (t->size[sort] + t->tile[sort] - 1) / t->tile[sort];
}
static const tarn_type *operand(const fit *t, uint32_t i) {
  return tarn_term_type(t->L, t->d->in[i]);
}

/* ---------------------------------------------------------------- from tiles to loops */

/* A map under construction whose dims are (shared, row tiles, column tiles[, reduced tiles]) and
 * then those of a tile. */
typedef struct tiled {
  const fit *t;
  tarn_imap m;
  uint32_t lead;
  uint32_t at[SORTS]; /* the index along all loops of a sort */
} tiled;

static void start(tiled *x, const fit *t, uint32_t lead, const tarn_type *tile,
                  const tarn_hw_role *role) {
  static const tarn_hw_role in_tile[] = {TARN_HW_UNIT, TARN_HW_M, TARN_HW_N, TARN_HW_K};
  *x = (tiled){.t = t,
               .lead = lead,
               .m = {.ns = (uint8_t)lead, .n = (uint8_t)(lead + tile->n), .fill = TARN_NONE}};
  for (uint32_t i = 0; i < lead; i++) x->m.dim[i] = tiles(t, i);
  memcpy(x->m.dim + lead, tile->dim, tile->n * sizeof *tile->dim);
  for (uint32_t sort = 0; sort < lead; sort++) {
    x->at[sort] = tarn_ix_scale(t->L, tarn_ix_var(t->L, sort, x->m.dim), t->tile[sort], x->m.dim);
    for (uint32_t i = 0; i < tile->n && sort; i++)
      if (role[i] == in_tile[sort])
        x->at[sort] =
            tarn_ix_add(t->L, x->at[sort], tarn_ix_var(t->L, lead + i, x->m.dim), x->m.dim);
  }
}

/* The view of a read through tiles; sorts that the tile does not hold are 0. wanted: bit set of
 * those it does. */
static bool finish(tiled *x, uint32_t read, uint32_t nloop, unsigned wanted, uint32_t fill,
                   rv *out) {
  const fit *t = x->t;
  tarn_lang *L = t->L;
  int64_t stride[SORTS] = {1, 1, 1, 1};
  x->m.nin = (uint8_t)nloop;
  for (uint32_t i = nloop; i-- > 0;) {
    uint32_t sort = t->sort[i];
    x->m.in[i] = t->extent[i];
    x->m.e[i] = wanted >> sort & 1
                    ? tarn_ix_mod(L, tarn_ix_div(L, x->at[sort], stride[sort], x->m.dim),
                                  t->extent[i], x->m.dim)
                    : tarn_ix_const(L, 0);
    stride[sort] *= t->extent[i];
  }
  for (uint32_t sort = 0; sort < SORTS; sort++)
    if ((wanted >> sort & 1) && t->size[sort] % t->tile[sort])
      x->m.guard[x->m.nguard++] = (tarn_guard){x->at[sort], 0, t->size[sort]};
  x->m.fill = x->m.nguard ? fill : TARN_NONE;
  uint32_t map = tarn_map_compose(L, tarn_map_intern(L, &x->m), read);
  *out = (rv){.kind = 'm', .id = map};
  return map != TARN_NONE;
}

/* Child i of the nest as the tiles that the call reads; i = 2: what the accumulator begins with. */
static bool f_operand(renv *e, const rv *a, rv *out) {
  fit t;
  tiled x;
  if (a[2].i < 0 || a[2].i > 2 || !fits(e, a, &t)) return false;
  uint32_t i = (uint32_t)a[2].i;
  if ((i == 2 && !adds(&t)) || t.s->read[i].src != i) return false;
  const tarn_type *type = operand(&t, i == 2 ? t.d->nin - 1 : t.f.operand[i]);
  start(&x, &t, i == 2 ? 3 : 4, type, t.f.role[i]);
  unsigned wanted = i == 0   ? 1u << SHARED | 1u << ROWS | 1u << REDUCED
                    : i == 1 ? 1u << SHARED | 1u << COLUMNS | 1u << REDUCED
                             : 1u << SHARED | 1u << ROWS | 1u << COLUMNS;
  uint32_t fill =
      i == 2 ? tarn_fx_zero(e->L, type->dtype) : tarn_hw_filler(e->L, &t.f, type->dtype);
  return fill != TARN_NONE &&
         finish(&x, t.s->read[i].map, i == 2 ? t.s->nown : t.nloop, wanted, fill, out);
}

/* Dims of the calls' results: shared, row tiles, column tiles, without an accumulator reduced tiles
 * too; those of a tile. */
static bool f_tiles(renv *e, const rv *a, rv *out) {
  fit t;
  int64_t dim[TARN_MAX_DIMS];
  if (!fits(e, a, &t)) return false;
  const tarn_type *y = tarn_term_type(e->L, t.d->meaning);
  uint32_t lead = t.d->acc ? 3 : 4;
  if (lead + y->n > TARN_MAX_DIMS) return false;
  for (uint32_t i = 0; i < lead; i++) dim[i] = tiles(&t, i);
  memcpy(dim + lead, y->dim, y->n * sizeof *dim);
  *out = (rv){.kind = 's', .id = tarn_type_tensor(e->L, TARN_F32, lead, lead + y->n, dim)};
  return true;
}

/* The nest that adds up (in general: reduces) the calls' results over their reduced tiles. */
static bool f_sum(renv *e, const rv *a, rv *out) {
  fit t;
  rv shape;
  if (!fits(e, a, &t) || !f_tiles(e, a, &shape)) return false;
  tarn_type y = *tarn_type_get(e->L, shape.id);
  uint32_t type = tarn_type_tensor(e->L, tarn_reducer_get(e->L, t.f.red)->dtype, y.ns, y.n, y.dim);
  tarn_payload p = {.kind = TARN_P_FOLD, .n = 1, .ints = (int64_t[]){REDUCED}, .value = t.f.red};
  *out = (rv){.kind = 'n',
              .id = tarn_nest_of(e->L, TARN_OP_FOLD, tarn_payload_intern(e->L, &p), &type, 1)};
  return !t.d->acc;
}

/* The nest's result as a view of the calls' results. */
static bool f_back(renv *e, const rv *a, rv *out) {
  fit t;
  if (!fits(e, a, &t)) return false;
  tarn_lang *L = e->L;
  const tarn_type *y = tarn_term_type(L, t.d->meaning);
  tarn_imap m = {
      .ns = t.nest->out_ns, .n = t.s->nown, .nin = (uint8_t)(3 + y->n), .fill = TARN_NONE};
  memcpy(m.dim, t.s->own, t.s->nown * sizeof *m.dim);
  uint32_t at[SORTS];
  int64_t stride[SORTS] = {1, 1, 1, 1};
  for (uint32_t i = 0; i < SORTS; i++) at[i] = tarn_ix_const(L, 0);
  for (uint32_t i = t.s->nown; i-- > 0; stride[t.sort[i]] *= t.extent[i])
    at[t.sort[i]] =
        tarn_ix_add(L, at[t.sort[i]],
                    tarn_ix_scale(L, tarn_ix_var(L, i, m.dim), stride[t.sort[i]], m.dim), m.dim);
  for (uint32_t i = 0; i < 3; i++)
    m.in[i] = tiles(&t, i), m.e[i] = tarn_ix_div(L, at[i], t.tile[i], m.dim);
  for (uint32_t i = 0; i < y->n; i++) {
    tarn_hw_role r = t.f.role[2][i];
    uint32_t sort = r == TARN_HW_M ? ROWS : COLUMNS;
    m.in[3 + i] = y->dim[i];
    m.e[3 + i] =
        r == TARN_HW_UNIT ? tarn_ix_const(L, 0) : tarn_ix_mod(L, at[sort], t.tile[sort], m.dim);
  }
  *out = (rv){.kind = 'm', .id = tarn_map_intern(L, &m)};
  return true;
}

/* The epilogue as a nest of its own: of the product, and of the children that only the epilogue
 * reads. */
static bool f_after(renv *e, const rv *a, rv *out) {
  fit t;
  if (!fits(e, a, &t)) return false;
  const tarn_func *f = tarn_fn_get(e->L, t.s->fn);
  if (f->epi == TARN_NONE || f->nepi + 1u > TARN_MAX_DIMS) return false;
  tarn_read r[TARN_MAX_DIMS] = {{.map = TARN_NONE}};
  int64_t own[TARN_MAX_DIMS];
  memcpy(own, t.s->own, t.s->nown * sizeof *own);
  r[0].map = tarn_map_identity(e->L, tarn_type_tensor(e->L, TARN_F32, t.s->nown, t.s->nown, own));
  for (uint32_t i = 0; i < f->nepi; i++) {
    r[i + 1] = t.s->read[2 + i];
    if (r[i + 1].src < 2) return false; /* the product reads it too */
    r[i + 1].src--;
  }
  tarn_stage s = {
      .nown = t.s->nown,
      .fn = tarn_fn_map(e->L, f->epi, f->nepi + 1u),
      .read = r,
      .out = true,
  };
  memcpy(s.own, own, t.s->nown * sizeof *own);
  tarn_nest n = {.out_ns = t.nest->out_ns, .nstage = 1, .nchild = t.nest->nchild - 1, .stage = &s};
  *out = (rv){.kind = 'n', .id = tarn_nest_intern(e->L, &n)};
  return true;
}
static bool f_no_epilogue(renv *e, const rv *a, rv *out) {
  const tarn_nest *n = tarn_nest_get(e->L, a[0].id);
  const tarn_func *f = tarn_fn_get(e->L, n->stage[0].fn);
  return rv_bool(out, n->nstage == 1 && f->epi == TARN_NONE && !f->nepi);
}

/* The nest marked with the call's intrinsic as the unit that computes its product: the children are
 * of the types that the meaning has. */
static bool f_unit(renv *e, const rv *a, rv *out) {
  fit t;
  if (!fits(e, a, &t) || t.s->unit) return false;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t type = e->host->nest.type(e->host->nest.user, e->cls[a[2 + i].id]);
    if (t.s->read[i].stage || t.s->read[i].src != i ||
        tarn_type_get(e->L, type)->dtype != operand(&t, t.f.operand[i])->dtype)
      return false;
  }
  tarn_stage s = *t.s;
  s.unit = tarn_name_intern(e->L, t.d->name) + 1;
  tarn_nest n = *t.nest;
  n.stage = &s;
  *out = (rv){.kind = 'n', .id = tarn_nest_intern(e->L, &n)};
  return true;
}

/* A constant, the same everywhere, within bounds. */
static bool f_within(renv *e, const rv *a, rv *out) {
  uint32_t u = e->host->uniform(e->host->user, e->cls[a[0].id]);
  if (u == TARN_NONE) return rv_bool(out, false);
  const tarn_fx *x = tarn_fx_get(e->L, u);
  double v = tarn_dtype_is_float(x->dtype) ? x->value : (double)x->ivalue;
  return rv_bool(out, v >= (double)a[1].i && v <= (double)a[2].i);
}

/* 0: shared loops, 1: rows, 2: columns, 3: reduced. */
static bool f_size(renv *e, const rv *a, rv *out) {
  fit t;
  return a[2].i >= 0 && a[2].i < SORTS && fits(e, a, &t) && rv_int(out, t.size[a[2].i]);
}

/* Element type of a term. */
static bool f_element(renv *e, const rv *a, rv *out) {
  const tarn_type *t = tarn_type_get(e->L, e->host->nest.type(e->host->nest.user, e->cls[a[0].id]));
  return rv_bool(out, !t->tuple && strcmp(tarn_dtype_name(t->dtype), a[1].name) == 0);
}

/* The result type of a call. */
static bool f_result(renv *e, const rv *a, rv *out) {
  const tarn_type *s = tarn_type_get(e->L, a[1].id);
  tarn_dtype t;
  if (!tarn_dtype_parse(a[0].name, &t)) return false;
  *out = (rv){.kind = 't', .id = tarn_type_tensor(e->L, t, s->ns, s->n, s->dim)};
  return true;
}

const rfun rfun_call_table[] = {
    {"element", "cy:b", f_element, 0, "has it elements of this type?"},
    {"result", "ys:t", f_result, 0, "the result type of a call: an element type and a shape"},
    {"within", "cii:b", f_within, R_READS_FACTS,
     "is it a constant, the same everywhere, from the one number to the other?"},
    {"call-unit", "nycc:n", f_unit, 0,
     "the nest marked with the call's intrinsic as the unit of its product; of two children of the "
     "types that it multiplies"},
    {"call-size", "nyi:i", f_size, 0,
     "how many shared, row, column, reduced points the nest has, as a product that the call has "
     "tiles of"},
    {"call-operand", "nyi:m", f_operand, 0, "a child of the nest as tiles that the call reads"},
    {"call-tiles", "ny:s", f_tiles, 0, "the dims of the calls' results"},
    {"call-sum", "ny:n", f_sum, 0, "the reduction of the calls' results over their reduced tiles"},
    {"call-after", "ny:n", f_after, 0,
     "the epilogue of the nest, as a nest of the product and of what else it reads"},
    {"no-epilogue", "n:b", f_no_epilogue, 0, "one stage that ends with its reduction"},
    {"call-back", "ny:m", f_back, 0, "the nest's result as a view of the calls' results"},
};
const uint32_t rfun_call_count = sizeof rfun_call_table / sizeof *rfun_call_table;
