/* Nests: interning with the full check of their form, their type over children, and the nest that a
 * single kernel operator is. */
#include "access/internal.h"
#include <string.h>

const tarn_nest *tarn_nest_get(const tarn_lang *L, uint32_t id) {
  return tarn_table_get(&L->nest, id);
}

static uint32_t operands_of(const tarn_lang *L, const tarn_stage *s) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  return (uint32_t)f->nops + f->nepi;
}

uint32_t tarn_stage_reads(const tarn_lang *L, const tarn_stage *s) {
  return operands_of(L, s) + s->nlook;
}

bool tarn_nest_looks_up(const tarn_nest *n) {
  bool any = false;
  for (uint32_t i = 0; i < n->nstage; i++) any |= n->stage[i].nlook > 0;
  return any;
}

int64_t tarn_nest_rows(const tarn_lang *L, const tarn_nest *n, uint32_t child) {
  int64_t least = 0;
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *s = &n->stage[i];
    const tarn_read *look = s->read + operands_of(L, s);
    for (const tarn_read *r = s->read; r < look; r++)
      if (r->row.by && look[r->row.by - 1].src == child && (!least || r->row.extent < least))
        least = r->row.extent;
  }
  return least;
}

bool tarn_nest_emittable(const tarn_lang *L, uint32_t nest) {
  const tarn_nest *n = tarn_nest_get(L, nest);
  bool fits = n->nchild <= TARN_MAX_OPERANDS;
  for (uint32_t i = 0; i < n->nstage; i++)
    fits &= tarn_stage_reads(L, &n->stage[i]) <= TARN_MAX_OPERANDS;
  return fits;
}

/* ---------------------------------------------------------------- form */
_Noreturn static void bad(tarn_lang *L, uint32_t stage, const char *what) {
  tarn_raise(L->cx, TARN_BAD_INPUT, "nest: stage %u: %s", stage, what);
}

uint32_t tarn_nest_dims(const tarn_nest *n, const tarn_stage *s, int64_t *dim) {
  memcpy(dim, n->shared, n->depth * sizeof *dim);
  memcpy(dim + n->depth, s->own, s->nown * sizeof *dim);
  memcpy(dim + n->depth + s->nown, s->red, s->nred * sizeof *dim);
  return (uint32_t)n->depth + s->nown + s->nred;
}

/* Are the first n dims of the map the shared dims, then own, then (body) the reduce dims? */
static bool over_loops(const tarn_nest *n, const tarn_stage *s, bool body, const tarn_imap *m) {
  int64_t dim[3 * TARN_MAX_DIMS];
  uint32_t all = tarn_nest_dims(n, s, dim) - (body ? 0 : s->nred);
  return m->n == all && !memcmp(m->dim, dim, all * sizeof *dim);
}

/* The same by trying indices: of the first row, in a buffer that ends where its last row would
 * leave the buffer. */
static bool rows_tried(tarn_lang *L, const tarn_imap *m, int64_t least, int64_t most) {
  tarn_imap first = *m;
  first.in[0] = m->in[0] - most + least;
  first.e[0] = tarn_ix_add(L, m->e[0], tarn_ix_const(L, least), m->dim);
  return first.in[0] > 0 && tarn_imap_inside(L, &first);
}
bool tarn_rows_inside(tarn_lang *L, const tarn_imap *m, const tarn_row *row, bool at_length) {
  int64_t lo, hi, last, room = m->nin == 1 ? m->in[0] : 0;
  if (row->extent < 1 || __builtin_mul_overflow(row->extent - 1, row->pitch, &last)) return false;
  if (last <= -room || last >= room) return false;
  int64_t least = last < 0 ? last : 0, most = last > 0 ? last : 0;
  tarn_ix_range(L, m->e[0], m->dim, &lo, &hi);
  if (lo + least >= 0 && hi + most < room) return true;
  return at_length && rows_tried(L, m, least, most);
}
/* All rows lie in the buffer, and a lookup of what an epilogue reads is the same in all steps. */
static void check_row(tarn_lang *L, const tarn_nest *n, uint32_t at, const tarn_read *r) {
  const tarn_stage *s = &n->stage[at];
  const tarn_imap *m = tarn_imap_get(L, r->map);
  int64_t last;
  if (!r->row.by) return;
  if (r->row.by > s->nlook) bad(L, at, "a row by a lookup that is not there");
  if (r->stage || m->nin != 1) bad(L, at, "a row of what is no flat buffer");
  if (r->row.pitch == 0) bad(L, at, "rows in one place: what names them would not be checked");
  if (r->row.extent < 1 || __builtin_mul_overflow(r->row.extent - 1, r->row.pitch, &last))
    bad(L, at, "a row of none, or too many");
  if (!tarn_rows_inside(L, m, &r->row, true)) bad(L, at, "rows beyond the buffer");
  const tarn_imap *by = tarn_imap_get(L, s->read[operands_of(L, s) + r->row.by - 1].map);
  uint32_t dims = 0;
  for (uint32_t i = 0; i < by->nin; i++) dims |= tarn_ix_dims(L, by->e[i]);
  if (dims >> m->n) bad(L, at, "a row by a lookup over other loops");
}

static void check_read(tarn_lang *L, const tarn_nest *n, uint32_t at, uint32_t k) {
  const tarn_stage *s = &n->stage[at];
  const tarn_read *r = &s->read[k];
  if (r->map >= tarn_table_count(&L->map)) bad(L, at, "no such index map");
  const tarn_imap *m = tarn_imap_get(L, r->map);
  const tarn_func *f = tarn_fn_get(L, s->fn);
  bool look = k >= operands_of(L, s), body = look || k < f->nops;
  if (!over_loops(n, s, body, m)) bad(L, at, "a read's map is not over the loops of the stage");
  if (look && (r->stage || r->row.by || m->nguard))
    bad(L, at, "a lookup is of a child, unguarded and in no row");
  check_row(L, n, at, r);
  if (!r->stage) {
    if (r->src >= n->nchild) bad(L, at, "a read of a child that is not there");
    return;
  }
  if (r->src >= at) bad(L, at, "a read of a stage that is not before it");
  const tarn_stage *from = &n->stage[r->src];
  if (m->nin != from->nown) bad(L, at, "a read of a stage at another rank");
  for (uint32_t i = 0; i < m->nin; i++)
    if (m->in[i] != from->own[i]) bad(L, at, "a read of a stage at other extents");
}

static void check_dims(tarn_lang *L, const tarn_nest *n, const tarn_stage *s, uint32_t at) {
  int64_t all[3 * TARN_MAX_DIMS], count;
  uint32_t r = tarn_nest_dims(n, s, all);
  if (r > TARN_MAX_DIMS) bad(L, at, "too many loops");
  for (uint32_t i = 0; i < r; i++)
    if (all[i] < 0) bad(L, at, "a negative extent");
  if (!tarn_count_dims(r, all, &count)) bad(L, at, "the iteration count overflows");
}

static void check_stage(tarn_lang *L, const tarn_nest *n, uint32_t at) {
  const tarn_stage *s = &n->stage[at];
  if (s->fn >= tarn_table_count(&L->fn)) bad(L, at, "no such function");
  const tarn_func *f = tarn_fn_get(L, s->fn);
  if (f->ntuple) bad(L, at, "a function in tuple form");
  if (s->nlook > UINT8_MAX) bad(L, at, "too many lookups");
  if (f->red == TARN_NONE && s->nred) bad(L, at, "reduce loops without a reducer");
  if (s->out && n->out_ns > n->depth + s->nown) bad(L, at, "the split is beyond the rank");
  check_dims(L, n, s, at);
  for (uint32_t k = 0; k < tarn_stage_reads(L, s); k++) check_read(L, n, at, k);
}

static void check_nest(tarn_lang *L, const tarn_nest *n) {
  if (n->depth > TARN_MAX_DIMS) tarn_raise(L->cx, TARN_BAD_INPUT, "nest: too many shared loops");
  if (!n->nstage) tarn_raise(L->cx, TARN_BAD_INPUT, "nest: no stage");
  for (uint32_t i = 0; i < n->nstage; i++) check_stage(L, n, i);
  if (!n->stage[n->nstage - 1].out) bad(L, n->nstage - 1, "the last one must be an output");
}

/* ---------------------------------------------------------------- interning */
/* A read's map is split after the dims that the result has: one form for one reading. */
static uint32_t split_at(tarn_lang *L, uint32_t map, uint32_t ns) {
  const tarn_imap *m = tarn_imap_get(L, map);
  if (m->ns == ns) return map;
  tarn_imap r = *m;
  r.ns = (uint8_t)ns;
  return tarn_map_intern_derived(L, &r);
}

static tarn_nest *copy_nest(tarn_lang *L, const tarn_nest *n) {
  tarn_nest *c = tarn_copy(L->cx, n, sizeof *n);
  tarn_stage *s = tarn_copy(L->cx, n->stage, n->nstage * sizeof *s);
  for (uint32_t i = 0; i < n->nstage; i++) {
    uint32_t reads = tarn_stage_reads(L, &s[i]);
    tarn_read *r = TARN_ARRAY(L->cx, tarn_read, reads);
    for (uint32_t k = 0; k < reads; k++)
      r[k] = (tarn_read){s[i].read[k].stage, s[i].read[k].src,
                         split_at(L, s[i].read[k].map, n->depth + s[i].nown), s[i].read[k].row};
    s[i].read = r;
    s[i].fn = tarn_fn_widened(L, s[i].fn);
  }
  c->stage = s;
  return c;
}

static void nest_key(tarn_lang *L, const tarn_nest *n) {
  tarn_key_begin(L);
  tarn_key(L, (uint64_t)n->depth << 32 | n->out_ns);
  tarn_key(L, (uint64_t)n->nstage << 32 | n->nchild);
  for (uint32_t i = 0; i < n->depth; i++) tarn_key(L, (uint64_t)n->shared[i]);
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *s = &n->stage[i];
    tarn_key(L,
             (uint64_t)s->nlook << 48 | (uint64_t)s->nown << 32 | (uint64_t)s->nred << 16 | s->out);
    tarn_key(L, (uint64_t)s->unit << 32 | s->fn);
    for (uint32_t d = 0; d < s->nown; d++) tarn_key(L, (uint64_t)s->own[d]);
    for (uint32_t d = 0; d < s->nred; d++) tarn_key(L, (uint64_t)s->red[d]);
    for (uint32_t k = 0; k < tarn_stage_reads(L, s); k++) {
      tarn_key(L, (uint64_t)s->read[k].src << 1 | s->read[k].stage);
      tarn_key(L, s->read[k].map);
      tarn_key(L, s->read[k].row.by);
      if (!s->read[k].row.by) continue;
      tarn_key(L, (uint64_t)s->read[k].row.pitch);
      tarn_key(L, (uint64_t)s->read[k].row.extent);
    }
  }
}

uint32_t tarn_nest_intern(tarn_lang *L, const tarn_nest *n) {
  check_nest(L, n);
  nest_key(L, n); /* most are known, and already in the one form */
  uint32_t id = tarn_table_find(L, &L->nest);
  if (id != TARN_NONE) return id;
  tarn_nest *c = copy_nest(L, n);
  nest_key(L, c);
  id = tarn_table_find(L, &L->nest);
  return id != TARN_NONE ? id : tarn_table_add(L, &L->nest, c);
}

/* ---------------------------------------------------------------- types */
static uint32_t no(tarn_lang *L, uint32_t stage, const char *what) {
  tarn_set_message(L->cx, "stage %u: %s", stage, what);
  return TARN_NONE;
}

static bool child_fits(const tarn_imap *m, const tarn_type *t) {
  if (t->tuple || m->nin != t->n) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (m->in[i] != t->dim[i]) return false;
  return true;
}

static uint32_t output_type(tarn_lang *L, const tarn_nest *n, const tarn_stage *s, tarn_dtype dt) {
  int64_t dim[3 * TARN_MAX_DIMS];
  tarn_nest_dims(n, s, dim);
  return tarn_type_tensor(L, dt, n->out_ns, n->depth + (uint32_t)s->nown, dim);
}

/* The element type of a stage, given those before it. False with a message. */
static bool stage_dtype(tarn_lang *L, const tarn_nest *n, uint32_t at, const uint32_t *kid,
                        const tarn_dtype *before, tarn_dtype *out) {
  const tarn_stage *s = &n->stage[at];
  tarn_dtype in[2 * (UINT8_MAX + 1)];
  uint32_t reads = tarn_stage_reads(L, s);
  for (uint32_t k = 0; k < reads; k++) {
    const tarn_read *r = &s->read[k];
    const tarn_imap *m = tarn_imap_get(L, r->map);
    if (!r->stage && !child_fits(m, tarn_type_get(L, kid[r->src])))
      return no(L, at, "a read of a child of other dims"), false;
    in[k] = r->stage ? before[r->src] : tarn_type_get(L, kid[r->src])->dtype;
    if (m->nguard && tarn_fx_get(L, m->fill)->dtype != in[k])
      return no(L, at, "the fill of a read has another element type"), false;
    if (k >= reads - s->nlook && (tarn_dtype_is_float(in[k]) || in[k] == TARN_BOOL))
      return no(L, at, "a lookup of no integers"), false;
  }
  return tarn_fn_type(L, s->fn, in, reads - s->nlook, out);
}

/* Element types of the nest's stages; false and tarn_message when ill-typed. */
static bool stage_types(tarn_lang *L, uint32_t nest, const uint32_t *kid_types, tarn_dtype *out) {
  const tarn_nest *x = tarn_nest_get(L, nest);
  for (uint32_t i = 0; i < x->nstage; i++)
    if (!stage_dtype(L, x, i, kid_types, out, &out[i])) return false;
  return true;
}

uint32_t tarn_nest_type(tarn_lang *L, uint32_t nest, const uint32_t *kid_types, uint32_t n) {
  const tarn_nest *x = tarn_nest_get(L, nest);
  tarn_dtype few[32], *dt = x->nstage <= 32 ? few : TARN_ARRAY(L->cx, tarn_dtype, x->nstage);
  uint32_t fewer[32], *out = x->nstage <= 32 ? fewer : TARN_ARRAY(L->cx, uint32_t, x->nstage);
  uint32_t nout = 0;
  if (n != x->nchild) {
    tarn_set_message(L->cx, "%u operands for %u children", n, x->nchild);
    return TARN_NONE;
  }
  if (!stage_types(L, nest, kid_types, dt)) return TARN_NONE;
  for (uint32_t i = 0; i < x->nstage; i++)
    if (x->stage[i].out) out[nout++] = output_type(L, x, &x->stage[i], dt[i]);
  return nout == 1 ? out[0] : tarn_type_tuple(L, nout, out);
}

/* ---------------------------------------------------------------- one kernel as a nest */
/* One stage, no shared loops; reads are filled in by read_whole and the like. */
typedef struct single {
  tarn_lang *L;
  tarn_nest nest;
  tarn_stage stage;
  tarn_read read[2 * (UINT8_MAX + 1)];
} single;

static void single_init(single *s, tarn_lang *L, uint32_t nchild, uint32_t out_ns) {
  *s = (single){.L = L};
  s->nest = (tarn_nest){.out_ns = (uint8_t)out_ns, .nstage = 1, .nchild = nchild};
  s->stage = (tarn_stage){.out = true};
}

static uint32_t single_done(single *s) {
  s->stage.read = s->read;
  s->nest.stage = &s->stage;
  return tarn_nest_intern(s->L, &s->nest);
}

static void own_dims(single *s, const int64_t *dim, uint32_t n) {
  memcpy(s->stage.own + s->stage.nown, dim, n * sizeof *dim);
  s->stage.nown += (uint8_t)n;
}

static void red_dims(single *s, const int64_t *dim, uint32_t n) {
  memcpy(s->stage.red + s->stage.nred, dim, n * sizeof *dim);
  s->stage.nred += (uint8_t)n;
}

/* A map from the loops (all, or without the reduce loops) to a child: dim i of it is loop[i], or
 * the constant -1 - loop[i]. */
static uint32_t loop_map(single *s, bool body, const tarn_type *t, const int64_t *loop) {
  tarn_imap m = {.ns = s->stage.nown, .nin = t->n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < s->stage.nown; i++) m.dim[m.n++] = s->stage.own[i];
  for (uint32_t i = 0; body && i < s->stage.nred; i++) m.dim[m.n++] = s->stage.red[i];
  for (uint32_t i = 0; i < t->n; i++) {
    m.in[i] = t->dim[i];
    m.e[i] = loop[i] < 0 ? tarn_ix_const(s->L, -1 - loop[i])
                         : tarn_ix_var(s->L, (uint32_t)loop[i], m.dim);
  }
  return tarn_map_intern_derived(s->L, &m);
}

static const int64_t in_order[TARN_MAX_DIMS] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                8, 9, 10, 11, 12, 13, 14, 15};

/* Reads k … of whole children, loops in order. */
static void read_whole(single *s, bool body, uint32_t k, uint32_t child, uint32_t n,
                       const uint32_t *types) {
  for (uint32_t i = 0; i < n; i++)
    s->read[k + i] =
        (tarn_read){.src = child + i,
                    .map = loop_map(s, body, tarn_type_get(s->L, types[child + i]), in_order)};
}

static uint32_t nest_compute(tarn_lang *L, const tarn_payload *p, const uint32_t *types,
                             uint32_t n) {
  tarn_func f = *tarn_fn_get(L, p->id);
  const tarn_type *t = tarn_type_get(L, types[0]);
  uint32_t from = t->ns + (f.ntuple > 0), nc = t->n - from;
  single s;
  single_init(&s, L, n, t->ns);
  own_dims(&s, t->dim, t->ns);
  if (f.red == TARN_NONE) own_dims(&s, t->dim + from, nc);
  else red_dims(&s, t->dim + from, nc);
  if (!f.ntuple) read_whole(&s, true, 0, 0, f.nops, types);
  for (uint32_t k = 0; k < f.ntuple; k++) {
    int64_t loop[TARN_MAX_DIMS];
    for (uint32_t i = 0; i < t->n; i++)
      loop[i] = i < t->ns ? i : i == t->ns ? -1 - (int64_t)k : (int64_t)i - 1;
    s.read[k] = (tarn_read){.map = loop_map(&s, true, t, loop)};
  }
  read_whole(&s, false, f.ntuple ? f.ntuple : f.nops, f.nops, f.nepi, types);
  if (f.ntuple) f.nops = f.ntuple, f.ntuple = 0;
  s.stage.fn = tarn_fn_intern(L, &f);
  return single_done(&s);
}

/* The reducer runs over one access dim. */
static uint32_t nest_fold(tarn_lang *L, const tarn_payload *p, const uint32_t *types) {
  const tarn_type *t = tarn_type_get(L, types[0]);
  uint32_t axis = (uint32_t)p->ints[0];
  int64_t loop[TARN_MAX_DIMS];
  single s;
  single_init(&s, L, 1, t->ns - 1u);
  own_dims(&s, t->dim, axis);
  own_dims(&s, t->dim + axis + 1, t->n - axis - 1);
  red_dims(&s, t->dim + axis, 1);
  for (uint32_t i = 0; i < t->n; i++)
    loop[i] = i < axis ? i : i == axis ? t->n - 1 : (int64_t)i - 1;
  s.read[0] = (tarn_read){.map = loop_map(&s, true, t, loop)};
  s.stage.fn = tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, p->value);
  return single_done(&s);
}

static uint32_t nest_copy(tarn_lang *L, const uint32_t *types) {
  const tarn_type *t = tarn_type_get(L, types[0]);
  single s;
  single_init(&s, L, 1, t->ns);
  own_dims(&s, t->dim, t->n);
  read_whole(&s, true, 0, 0, 1, types);
  s.stage.fn = tarn_fn_map(L, tarn_fx_hole(L, 0), 1);
  return single_done(&s);
}

/* A ((M),(r)) times B ((),(r,c)) [plus P ((M,c),())]: the sum over r, then the addition to P. */
static uint32_t nest_systolic(tarn_lang *L, const uint32_t *types, uint32_t n) {
  const tarn_type *a = tarn_type_get(L, types[0]), *b = tarn_type_get(L, types[1]);
  tarn_func f = tarn_fn_product(L, a->dtype);
  uint32_t sum = f.epi == TARN_NONE ? tarn_fx_hole(L, 0) : f.epi;
  int64_t la[TARN_MAX_DIMS], lb[2];
  single s;
  single_init(&s, L, n, a->ns + 1u);
  own_dims(&s, a->dim, a->ns);
  own_dims(&s, b->dim + 1, 1);
  red_dims(&s, b->dim, 1);
  for (uint32_t i = 0; i < a->ns; i++) la[i] = i;
  la[a->ns] = lb[0] = a->ns + 1;
  lb[1] = a->ns;
  s.read[0] = (tarn_read){.map = loop_map(&s, true, a, la)};
  s.read[1] = (tarn_read){.src = 1, .map = loop_map(&s, true, b, lb)};
  read_whole(&s, false, 2, 2, n - 2, types);
  f.nepi = (uint8_t)(n - 2);
  if (n > 2) f.epi = tarn_fx_op(L, TARN_FX_ADD, tarn_fx_hole(L, 1), sum, 0);
  s.stage.fn = tarn_fn_intern(L, &f);
  return single_done(&s);
}

uint32_t tarn_nest_of(tarn_lang *L, uint32_t op, uint32_t payload, const uint32_t *types,
                      uint32_t n) {
  if (tarn_type_of(L, op, payload, types, n) == TARN_NONE) tarn_reraise(L->cx, TARN_BAD_INPUT);
  const tarn_payload *p = tarn_payload_get(L, payload);
  switch (op) {
  case TARN_OP_COMPUTE: return nest_compute(L, p, types, n);
  case TARN_OP_NEST: return p->id;
  case TARN_OP_FOLD: return nest_fold(L, p, types);
  case TARN_OP_MATERIALISE: return nest_copy(L, types);
  case TARN_OP_SYSTOLIC:
  case TARN_OP_SYSTOLIC_ACC: return nest_systolic(L, types, n);
  default:
    tarn_raise(L->cx, TARN_INTERNAL, "nest: %s is no kernel of loops", tarn_op_info(op)->text);
  }
}
