/* Canonical kernels.
 *
 * Every child becomes a flat buffer: its layout is composed into the maps, which then give element
 * addresses (the layout's offset stays outside). Iteration dims are split where an address divides
 * by a factor of their extent, dropped when their extent is 1, and merged with their neighbour when
 * every address, guard and result walks both as one. */
#include "kernel/kernel.h"
#include <string.h>

/* A nest being rewritten: stages with maps open for change. dims of a stage: shared ++ own ++ red.
 */
typedef struct work_read {
  bool stage, epi;
  uint32_t src;
  tarn_imap m; /* children: nin = 1 */
} work_read;
typedef struct work_stage {
  tarn_stage s;
  uint32_t nread;
  work_read *read;
  tarn_layout out; /* over shared ++ own, output stages */
  uint32_t out_no;
} work_stage;
#define ROOM                                                                                       \
  12288 /* bytes: most nests, opened and closed again; what is opened in the arena would stay      \
           there */
typedef struct work {
  tarn_lang *L;
  tarn_ctx *cx;
  size_t used; /* of the room */
  uint8_t depth;
  int64_t shared[TARN_MAX_DIMS];
  uint32_t nstage;
  work_stage *stage;
  uint32_t out_ns;
  _Alignas(16) char room[ROOM];
} work;

static void begin(work *w, tarn_lang *L) { w->L = L, w->cx = tarn_lang_ctx(L), w->used = 0; }
/* n zeroed bytes that last as long as w. */
static void *scratch(work *w, size_t n) {
  n = (n + 15) / 16 * 16;
  if (n > ROOM - w->used) return tarn_new(w->cx, n);
  void *p = memset(w->room + w->used, 0, n);
  w->used += n;
  return p;
}

static uint32_t stage_dims(const work *w, const work_stage *s, int64_t *dim) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->depth; i++) dim[n++] = w->shared[i];
  for (uint32_t i = 0; i < s->s.nown; i++) dim[n++] = s->s.own[i];
  for (uint32_t i = 0; i < s->s.nred; i++) dim[n++] = s->s.red[i];
  return n;
}

/* The address of a child's element as one expression over the map's dims, from the first element
 * on. */
static uint32_t address(tarn_lang *L, const tarn_imap *m, const tarn_layout *l) {
  uint32_t at = tarn_ix_const(L, tarn_layout_before(l));
  for (uint32_t a = 0; a < m->nin; a++) {
    uint32_t t;
    if (l->block && a == l->baxis) {
      uint32_t hi =
          tarn_ix_scale(L, tarn_ix_div(L, m->e[a], l->block, m->dim), l->stride[a], m->dim);
      t = tarn_ix_add(L, hi, tarn_ix_mod(L, m->e[a], l->block, m->dim), m->dim);
    } else {
      t = tarn_ix_scale(L, m->e[a], l->stride[a], m->dim);
    }
    at = tarn_ix_add(L, at, t, m->dim);
  }
  return at;
}

/* Which children become flat buffers: close_nest() is told the same. */
typedef enum { NONE, VARIABLES, ALL } flat_children;
static bool is_flat(const tarn_ksig *k, uint32_t child, flat_children f) {
  return f > NONE && (f == ALL || !k->in_const[child]);
}
static void open_nest(work *w, const tarn_ksig *k, flat_children flat) {
  const tarn_nest *n = tarn_nest_get(w->L, k->nest);
  w->depth = n->depth, w->out_ns = n->out_ns, w->nstage = n->nstage;
  memcpy(w->shared, n->shared, sizeof w->shared);
  w->stage = scratch(w, n->nstage * sizeof *w->stage);
  uint32_t out = 0;
  for (uint32_t i = 0; i < n->nstage; i++) {
    work_stage *s = &w->stage[i];
    s->s = n->stage[i];
    const tarn_func *f = tarn_fn_get(w->L, s->s.fn);
    s->nread = (uint32_t)(f->nops + f->nepi);
    s->read = scratch(w, s->nread * sizeof *s->read);
    for (uint32_t r = 0; r < s->nread; r++) {
      const tarn_read *from = &s->s.read[r];
      work_read *to = &s->read[r];
      *to = (work_read){from->stage, r >= f->nops, from->src, *tarn_imap_get(w->L, from->map)};
      if (from->stage || !is_flat(k, from->src, flat)) continue;
      int64_t before = tarn_layout_before(&k->in[from->src]);
      to->m.e[0] = address(w->L, &to->m, &k->in[from->src]);
      to->m.nin = 1;
      to->m.in[0] = tarn_layout_elems(&k->in[from->src]) + before;
    }
    if (s->s.out) s->out_no = out, s->out = k->out[out++];
  }
}

/* ---- substituting dims ---- */
/* Rewrites every map of a stage: old dim i of the stage becomes sub[i] over the new dims. */
static void subst_stage(work *w, work_stage *s, const uint32_t *sub, uint32_t nnew_acc,
                        uint32_t nnew, const int64_t *dim) {
  for (uint32_t r = 0; r < s->nread; r++) {
    tarn_imap *m = &s->read[r].m;
    uint32_t n = s->read[r].epi ? nnew_acc : nnew;
    for (uint32_t a = 0; a < m->nin; a++) m->e[a] = tarn_ix_subst(w->L, m->e[a], sub, dim);
    for (uint32_t g = 0; g < m->nguard; g++)
      m->guard[g].e = tarn_ix_subst(w->L, m->guard[g].e, sub, dim);
    m->n = (uint8_t)n, m->ns = (uint8_t)n;
    memset(m->dim, 0, sizeof m->dim);
    memcpy(m->dim, dim, n * sizeof *dim);
  }
}

/* Which list of a stage a position lies in. */
typedef enum { SHARED, OWN, RED } where;
typedef struct pos {
  where in;
  uint32_t at;
} pos;
static pos locate(const work *w, const work_stage *s, uint32_t d) {
  if (d < w->depth) return (pos){SHARED, d};
  d -= w->depth;
  return d < s->s.nown ? (pos){OWN, d} : (pos){RED, d - s->s.nown};
}

static void list_replace(int64_t *list, uint8_t *n, uint32_t at, uint32_t remove, uint32_t insert,
                         const int64_t *v) {
  memmove(list + at + insert, list + at + remove, (*n - at - remove) * sizeof *list);
  for (uint32_t i = 0; i < insert; i++) list[at + i] = v[i];
  *n = (uint8_t)(*n - remove + insert);
  memset(list + *n, 0, (TARN_MAX_DIMS - *n) * sizeof *list);
}

/* Replaces dims [d, d+remove) of one stage by `insert` new ones with extents v; sub is made here:
 * split (1 -> 2): d = d0*v[1] + d1; merge (2 -> 1): d0 = d / e1, d1 = d mod e1; drop (1 -> 0): 0.
 */
static void stage_replace(work *w, work_stage *s, uint32_t d, uint32_t remove, uint32_t insert,
                          const int64_t *v) {
  int64_t old[TARN_MAX_DIMS + 2] = {0}, dim[TARN_MAX_DIMS + 2] = {0};
  uint32_t n = stage_dims(w, s, old);
  uint32_t acc = (uint32_t)(w->depth + s->s.nown), nnew = n - remove + insert;
  uint32_t nnew_acc = d < acc ? acc - remove + insert : acc;
  for (uint32_t i = 0; i < d; i++) dim[i] = old[i];
  for (uint32_t i = 0; i < insert; i++) dim[d + i] = v[i];
  for (uint32_t i = d + remove; i < n; i++) dim[i - remove + insert] = old[i];
  uint32_t sub[TARN_MAX_DIMS + 2];
  for (uint32_t i = 0; i < n; i++)
    if (i < d || i >= d + remove) sub[i] = tarn_ix_var(w->L, i < d ? i : i - remove + insert, dim);
  if (remove == 1 && insert == 2)
    sub[d] = tarn_ix_add(w->L, tarn_ix_scale(w->L, tarn_ix_var(w->L, d, dim), v[1], dim),
                         tarn_ix_var(w->L, d + 1, dim), dim);
  if (remove == 2 && insert == 1) {
    int64_t inner = old[d + 1] ? old[d + 1] : 1; /* of nothing, nothing is walked */
    sub[d] = tarn_ix_div(w->L, tarn_ix_var(w->L, d, dim), inner, dim);
    sub[d + 1] = tarn_ix_mod(w->L, tarn_ix_var(w->L, d, dim), inner, dim);
  }
  if (remove == 1 && insert == 0) sub[d] = tarn_ix_const(w->L, 0);
  subst_stage(w, s, sub, nnew_acc, nnew, dim);
}

static void out_replace(work_stage *s, uint32_t d, uint32_t remove, uint32_t insert,
                        const int64_t *v) {
  tarn_layout *l = &s->out;
  int64_t stride[2] = {0, 0};
  if (remove == 1 && insert == 2) stride[0] = l->stride[d] * v[1], stride[1] = l->stride[d];
  if (remove == 2 && insert == 1) stride[0] = l->stride[d + 1];
  if (l->block && l->baxis > d) l->baxis = (uint8_t)(l->baxis - remove + insert);
  uint8_t n = l->n, n2 = l->n;
  list_replace(l->dim, &n, d, remove, insert, v);
  list_replace(l->stride, &n2, d, remove, insert, stride);
  l->n = n;
}

/* The same change in every stage it concerns. */
static void replace(work *w, work_stage *s, uint32_t d, uint32_t remove, uint32_t insert,
                    const int64_t *v) {
  pos p = locate(w, s, d);
  for (uint32_t i = 0; i < w->nstage; i++) {
    work_stage *t = &w->stage[i];
    if (p.in != SHARED && t != s) continue;
    stage_replace(w, t, d, remove, insert, v);
    if (p.in != RED && t->s.out) out_replace(t, d, remove, insert, v);
  }
  if (p.in == SHARED) list_replace(w->shared, &w->depth, p.at, remove, insert, v);
  if (p.in == OWN) list_replace(s->s.own, &s->s.nown, p.at, remove, insert, v);
  if (p.in == RED) list_replace(s->s.red, &s->s.nred, p.at, remove, insert, v);
  if (p.in != RED && s->s.out && w->out_ns > d) w->out_ns = w->out_ns - remove + insert;
}

/* A buffer's own dims are named by the maps of the later stages that read it: leave them as they
 * are. */
static bool read_later(const work *w, const work_stage *s) {
  for (uint32_t i = (uint32_t)(s - w->stage) + 1; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++)
      if (w->stage[i].read[r].stage && &w->stage[w->stage[i].read[r].src] == s) return true;
  return false;
}
static bool fixed_dim(const work *w, const work_stage *s, uint32_t d) {
  return locate(w, s, d).in == OWN && (!s->s.out || read_later(w, s));
}
/* Does the result depend on the order in which the reduction goes? */
static bool ordered(const work *w, const work_stage *s) {
  const tarn_func *f = tarn_fn_get(w->L, s->s.fn);
  if (f->red == TARN_NONE) return false;
  const tarn_reducer *r = tarn_reducer_get(w->L, f->red);
  bool index = false;
  for (uint32_t i = 0; i < r->ns; i++) index |= tarn_fx_uses(w->L, r->step[i], r->ns + 1u);
  return index || !r->commutative;
}

/* ---- split ---- */
/* A factor by which dim d should be split because some expression divides it: 0 when none. */
static int64_t factor_in(const work *w, uint32_t e, uint32_t d, int64_t extent) {
  const tarn_ix *x = tarn_ix_get(w->L, e);
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_ixterm *t = &x->t[i];
    if (t->kind == TARN_IX_VAR) continue;
    const tarn_ix *y = tarn_ix_get(w->L, t->arg);
    for (uint32_t k = 0; k < y->n; k++) {
      if (y->t[k].kind != TARN_IX_VAR || y->t[k].arg != d) continue;
      int64_t c = y->t[k].coef < 0 ? -y->t[k].coef : y->t[k].coef;
      if (c == 0 || t->by % c) continue;
      int64_t f = t->by / c;
      if (f > 1 && f < extent && extent % f == 0) return f;
    }
    int64_t f = factor_in(w, t->arg, d, extent);
    if (f) return f;
  }
  return 0;
}
static bool blocks_dim(const work_stage *s, uint32_t d) {
  return s->s.out && s->out.block && s->out.baxis == d;
}
/* Is an access dim of the stage blocked in a result? Shared dims are dims of every result. */
static bool blocked_dim(const work *w, const work_stage *s, uint32_t d) {
  pos p = locate(w, s, d);
  bool any = false;
  for (uint32_t i = 0; i < w->nstage && p.in == SHARED; i++) any |= blocks_dim(&w->stage[i], d);
  return any || (p.in == OWN && blocks_dim(s, d));
}
/* The blocked axis keeps its block in the inner half; not where several results share it. */
static bool may_split(const work *w, const work_stage *s, uint32_t d, int64_t f) {
  if (!blocked_dim(w, s, d)) return true;
  return w->nstage == 1 && f % s->out.block == 0;
}
static bool split_once(work *w) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    work_stage *s = &w->stage[i];
    int64_t dim[TARN_MAX_DIMS + 2];
    uint32_t n = stage_dims(w, s, dim);
    if (n >= TARN_MAX_DIMS) continue;
    for (uint32_t r = 0; r < s->nread; r++) {
      const tarn_imap *m = &s->read[r].m;
      for (uint32_t d = 0; d < n; d++) {
        if (fixed_dim(w, s, d)) continue;
        int64_t f = 0;
        for (uint32_t a = 0; a < m->nin && !f; a++) f = factor_in(w, m->e[a], d, dim[d]);
        for (uint32_t g = 0; g < m->nguard && !f; g++) f = factor_in(w, m->guard[g].e, d, dim[d]);
        if (!f || !may_split(w, s, d, f)) continue;
        int64_t v[2] = {dim[d] / f, f};
        bool blocked = blocked_dim(w, s, d);
        int64_t block = s->out.block, bs = s->out.stride[d];
        replace(w, s, d, 1, 2, v);
        if (blocked)
          s->out.stride[d] = f / block * bs, s->out.stride[d + 1] = bs,
          s->out.baxis = (uint8_t)(d + 1);
        return true;
      }
    }
  }
  return false;
}

/* ---- drop and merge ---- */
static bool drop_once(work *w) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    work_stage *s = &w->stage[i];
    int64_t dim[TARN_MAX_DIMS + 2];
    uint32_t n = stage_dims(w, s, dim);
    for (uint32_t d = 0; d < n; d++) {
      if (dim[d] != 1 || fixed_dim(w, s, d) || blocked_dim(w, s, d)) continue;
      replace(w, s, d, 1, 0, NULL);
      return true;
    }
  }
  return false;
}
static bool walks_as_one(const work *w, uint32_t e, uint32_t d, int64_t e1) {
  const tarn_ix *x = tarn_ix_get(w->L, e);
  for (uint32_t i = 0; i < x->n; i++)
    if (x->t[i].kind != TARN_IX_VAR) {
      /* dims hidden in a division are left alone */
      const tarn_ix *y = tarn_ix_get(w->L, x->t[i].arg);
      for (uint32_t k = 0; k < y->n; k++)
        if (y->t[k].kind != TARN_IX_VAR || y->t[k].arg == d || y->t[k].arg == d + 1) return false;
    }
  return tarn_ix_coef(w->L, e, d) == e1 * tarn_ix_coef(w->L, e, d + 1);
}
static bool stage_merges(const work *w, const work_stage *s, uint32_t d, int64_t e1) {
  uint32_t acc = (uint32_t)(w->depth + s->s.nown);
  for (uint32_t r = 0; r < s->nread; r++) {
    if (s->read[r].epi && d >= acc) continue;
    const tarn_imap *m = &s->read[r].m;
    for (uint32_t a = 0; a < m->nin; a++)
      if (!walks_as_one(w, m->e[a], d, e1)) return false;
    for (uint32_t g = 0; g < m->nguard; g++)
      if (!walks_as_one(w, m->guard[g].e, d, e1)) return false;
  }
  if (d >= acc || !s->s.out) return true;
  const tarn_layout *l = &s->out;
  bool blocked = l->block && (l->baxis == d || l->baxis == d + 1);
  return !blocked && l->stride[d] == e1 * l->stride[d + 1];
}
static bool merge_once(work *w) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    work_stage *s = &w->stage[i];
    int64_t dim[TARN_MAX_DIMS + 2];
    uint32_t n = stage_dims(w, s, dim);
    for (uint32_t d = 0; d + 1 < n; d++) {
      pos a = locate(w, s, d), b = locate(w, s, d + 1);
      if (a.in != b.in || fixed_dim(w, s, d) || dim[d + 1] == 0) continue;
      bool ok = true;
      for (uint32_t k = 0; k < w->nstage && ok; k++)
        if (a.in == SHARED || k == i) ok = stage_merges(w, &w->stage[k], d, dim[d + 1]);
      if (!ok) continue;
      int64_t v = dim[d] * dim[d + 1];
      replace(w, s, d, 2, 1, &v);
      return true;
    }
  }
  return false;
}

/* ---- order ----
 * Own dims of an output in the order of its strides; reduce dims (unless strict) those of guards
 * first, then in the order of their largest step in any operand: what lies together is walked
 * together, and neighbours can merge. */
static void permute(work *w, work_stage *s, const uint8_t *from) { /* new dim i was from[i] */
  int64_t old[TARN_MAX_DIMS + 2] = {0}, dim[TARN_MAX_DIMS + 2] = {0};
  uint32_t n = stage_dims(w, s, old), acc = (uint32_t)(w->depth + s->s.nown),
           sub[TARN_MAX_DIMS + 2] = {0};
  tarn_layout l = s->out;
  for (uint32_t i = 0; i < n; i++) dim[i] = old[from[i]];
  for (uint32_t i = 0; i < n; i++) sub[from[i]] = tarn_ix_var(w->L, i, dim);
  subst_stage(w, s, sub, acc, n, dim);
  for (uint32_t i = w->depth; i < n; i++)
    if (i < acc) s->s.own[i - w->depth] = dim[i];
    else s->s.red[i - acc] = dim[i];
  if (!s->s.out) return;
  for (uint32_t i = 0; i < acc; i++)
    s->out.dim[i] = l.dim[from[i]], s->out.stride[i] = l.stride[from[i]];
  for (uint32_t i = 0; i < acc && l.block; i++)
    if (from[i] == l.baxis) s->out.baxis = (uint8_t)i;
}
static bool in_guard(const work *w, const tarn_imap *m, uint32_t d) {
  for (uint32_t g = 0; g < m->nguard; g++)
    if (tarn_ix_coef(w->L, m->guard[g].e, d)) return true;
  return false;
}
#define GUARDED                                                                                    \
  ((int64_t)1                                                                                      \
   << 48) /* dims that decide whether an element exists go outside: the rest runs unguarded */
static int64_t step_of(const work *w, const work_stage *s, uint32_t d) {
  int64_t best = 0;
  for (uint32_t r = 0; r < s->nread; r++) {
    if (s->read[r].epi || s->read[r].stage) continue;
    if (in_guard(w, &s->read[r].m, d) && best < GUARDED) best += GUARDED;
    int64_t c = tarn_ix_coef(w->L, s->read[r].m.e[0], d);
    if (c < 0) c = -c;
    if (c > best % GUARDED) best = best / GUARDED * GUARDED + c;
  }
  return best;
}
static void sort_dims(work *w, work_stage *s, bool strict) {
  uint8_t from[TARN_MAX_DIMS + 2];
  int64_t key[TARN_MAX_DIMS + 2], dim[TARN_MAX_DIMS + 2];
  uint32_t n = stage_dims(w, s, dim), acc = (uint32_t)(w->depth + s->s.nown);
  bool moved = false, named = !s->s.out || read_later(w, s);
  strict = strict || ordered(w, s);
  for (uint32_t i = 0; i < n; i++) {
    from[i] = (uint8_t)i;
    key[i] = i < w->depth ? INT64_MAX
             : i < acc    ? (named ? 0 : s->out.stride[i])
             : strict     ? 0
                          : step_of(w, s, i);
  }
  for (uint32_t i = w->depth + 1u; i < n; i++)
    for (uint32_t k = i; k > w->depth && k != acc && key[from[k - 1]] < key[from[k]]; k--) {
      uint8_t t = from[k];
      from[k] = from[k - 1], from[k - 1] = t, moved = true;
    }
  if (moved) permute(w, s, from);
}

/* ---- closing ---- */
static void close_nest(work *w, tarn_ksig *k, flat_children flat) {
  const tarn_nest *old = tarn_nest_get(w->L, k->nest);
  tarn_stage *st = scratch(w, w->nstage * sizeof *st);
  for (uint32_t i = 0; i < w->nstage; i++) {
    work_stage *s = &w->stage[i];
    tarn_read *rd = scratch(w, s->nread * sizeof *rd);
    for (uint32_t r = 0; r < s->nread; r++)
      rd[r] = (tarn_read){s->read[r].stage, s->read[r].src,
                          tarn_map_intern_derived(w->L, &s->read[r].m)};
    st[i] = s->s, st[i].read = rd;
    if (s->s.out) k->out[s->out_no] = s->out;
  }
  uint32_t total = TARN_MAX_DIMS;
  for (uint32_t i = 0; i < w->nstage; i++)
    if (w->stage[i].s.out && w->depth + w->stage[i].s.nown < total)
      total = w->depth + w->stage[i].s.nown;
  tarn_nest n = {.depth = w->depth,
                 .out_ns = (uint8_t)total,
                 .nstage = w->nstage,
                 .nchild = old->nchild,
                 .stage = st};
  memcpy(n.shared, w->shared, sizeof n.shared);
  for (uint32_t i = 0; i < k->nin; i++) {
    if (!is_flat(k, i, flat)) continue;
    int64_t before = tarn_layout_before(&k->in[i]), elems = tarn_layout_elems(&k->in[i]) + before,
            offset = k->in[i].offset - before;
    k->in[i] = tarn_layout_row_major(1, &elems);
    k->in[i].offset = offset;
  }
  k->nest = tarn_nest_intern(w->L, &n);
}

void tarn_ksig_canonical(tarn_lang *L, tarn_ksig *k) {
  work w;
  begin(&w, L);
  open_nest(&w, k, ALL);
  while (drop_once(&w)) continue;
  for (int i = 0; i < 64 && split_once(&w); i++) continue;
  while (drop_once(&w)) continue;
  for (uint32_t i = 0; i < w.nstage; i++) sort_dims(&w, &w.stage[i], k->strict);
  while (merge_once(&w)) continue;
  close_nest(&w, k, ALL);
}
void tarn_ksig_split(tarn_lang *L, tarn_ksig *k) {
  work w;
  begin(&w, L);
  open_nest(&w, k, NONE);
  for (int i = 0; i < 64 && split_once(&w); i++) continue;
  close_nest(&w, k, NONE);
}
void tarn_ksig_merge(tarn_lang *L, tarn_ksig *k) {
  work w;
  begin(&w, L);
  open_nest(&w, k, VARIABLES);
  while (drop_once(&w)) continue;
  while (merge_once(&w)) continue;
  close_nest(&w, k, VARIABLES);
}

/* ---- blocks of shared loops ----
 * A shared loop cut in (blocks, within a block), the inner part becoming the first own loop of
 * every stage: then a local buffer holds a block of results, and each stage computes it with loops
 * of its own. */
static void put_shared_last(work *w, const uint8_t *from) {
  int64_t was[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < w->nstage; i++) {
    uint8_t all[TARN_MAX_DIMS + 2];
    int64_t dim[TARN_MAX_DIMS + 2];
    uint32_t n = stage_dims(w, &w->stage[i], dim);
    for (uint32_t d = 0; d < n; d++) all[d] = d < w->depth ? from[d] : (uint8_t)d;
    permute(w, &w->stage[i], all);
  }
  memcpy(was, w->shared, sizeof was);
  for (uint32_t d = 0; d < w->depth; d++) w->shared[d] = was[from[d]];
}
/* The last n shared loops become own loops. Dims of a stage are shared, own, reduce: their numbers
 * stay. */
static bool own_last(work *w, uint32_t n) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    work_stage *s = &w->stage[i];
    if (s->s.nown + n > TARN_MAX_DIMS) return false;
    for (uint32_t r = 0; r < s->nread; r++) {
      tarn_imap *m = &s->read[r].m;
      if (!s->read[r].stage) continue;
      if (m->nin + n > TARN_MAX_DIMS) return false;
      memmove(m->e + n, m->e, m->nin * sizeof *m->e);
      memmove(m->in + n, m->in, m->nin * sizeof *m->in);
      for (uint32_t k = 0; k < n; k++) {
        m->e[k] = tarn_ix_var(w->L, w->depth - n + k, m->dim);
        m->in[k] = w->shared[w->depth - n + k];
      }
      m->nin = (uint8_t)(m->nin + n);
    }
  }
  for (uint32_t i = 0; i < w->nstage; i++) {
    tarn_stage *s = &w->stage[i].s;
    memmove(s->own + n, s->own, s->nown * sizeof *s->own);
    memcpy(s->own, w->shared + w->depth - n, n * sizeof *s->own);
    s->nown = (uint8_t)(s->nown + n);
  }
  w->depth = (uint8_t)(w->depth - n);
  memset(w->shared + w->depth, 0, n * sizeof *w->shared);
  return true;
}
/* The first n own loops of local buffers behind the others: the buffer then lies along them. */
static void own_behind(work *w, uint32_t n) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    work_stage *s = &w->stage[i];
    if (s->s.out) continue;
    uint8_t from[TARN_MAX_DIMS + 2], nown = s->s.nown;
    int64_t dim[TARN_MAX_DIMS + 2];
    uint32_t all = stage_dims(w, s, dim);
    for (uint32_t d = 0; d < all; d++) from[d] = (uint8_t)d;
    for (uint32_t d = 0; d < nown; d++) from[w->depth + d] = (uint8_t)(w->depth + (d + n) % nown);
    permute(w, s, from);
    for (uint32_t k = i + 1; k < w->nstage; k++)
      for (uint32_t r = 0; r < w->stage[k].nread; r++) {
        work_read *x = &w->stage[k].read[r];
        tarn_imap was = x->m;
        if (!x->stage || x->src != i) continue;
        for (uint32_t d = 0; d < nown; d++)
          x->m.e[d] = was.e[(d + n) % nown], x->m.in[d] = was.in[(d + n) % nown];
      }
  }
}
bool tarn_ksig_cut(tarn_lang *L, tarn_ksig *k, const int64_t *block, bool behind) {
  work w;
  begin(&w, L);
  uint8_t from[TARN_MAX_DIMS + 1];
  uint32_t cut = 0, at = 0;
  open_nest(&w, k, NONE);
  int64_t size[TARN_MAX_DIMS + 1];
  for (uint32_t d = 0, all = w.depth; all--; d++, block++) {
    size[d] = *block;
    if (*block < 1 || w.shared[d] % *block) return false;
    if (*block == 1 || *block == w.shared[d]) continue;
    bool room = w.depth < TARN_MAX_DIMS && !blocked_dim(&w, &w.stage[0], d);
    for (uint32_t i = 0; i < w.nstage; i++)
      room &= w.depth + w.stage[i].s.nown + w.stage[i].s.nred < TARN_MAX_DIMS;
    if (!room) return false;
    replace(&w, &w.stage[0], d, 1, 2, (int64_t[]){w.shared[d] / *block, *block});
    size[d] = 1, size[++d] = *block;
  }
  for (uint32_t d = 0; d < w.depth; d++)
    if (size[d] == 1) from[at++] = (uint8_t)d;
  for (uint32_t d = 0; d < w.depth; d++)
    if (size[d] > 1) from[at++] = (uint8_t)d, cut++;
  if (!cut) return false;
  put_shared_last(&w, from);
  if (!own_last(&w, cut)) return false;
  if (behind) own_behind(&w, cut);
  close_nest(&w, k, NONE);
  return true;
}

/* ---- operands gathered once ----
 * A stage whose buffer lies along a dim along which it reads an operand in steps would gather that
 * operand anew for each point of its other dims: a stage in front of it lays the operand out as the
 * buffer lies. */
#define GATHERED 8 /* points that read the same element, from which on that is worth a stage */
static bool gathers(tarn_lang *L, const tarn_ksig *k, const tarn_nest *n, const tarn_stage *s,
                    const tarn_read *r) {
  const tarn_imap *m = tarn_imap_get(L, r->map);
  uint32_t lane = (uint32_t)n->depth + s->nown - 1u, used = 0;
  int64_t again = 1;
  if (r->stage || s->out || !s->nown || !s->nred || m->nguard || k->in_const[r->src]) return false;
  for (uint32_t a = 0; a < m->nin; a++) used |= tarn_ix_dims(L, m->e[a]);
  for (uint32_t d = 0; d < s->nown; d++)
    if (!(used >> (n->depth + d) & 1)) again *= s->own[d];
  if (!(used >> lane & 1) || again < GATHERED) return false;
  uint32_t at = address(L, m, &k->in[r->src]);
  return tarn_ix_affine(L, at) && tarn_ix_coef(L, at, lane) != 1;
}
/* The stage that copies what r reads: its own dims are the reduced ones and the own ones that r
 * depends on, those of `first` in front. r becomes a read of it. */
static tarn_stage gathered(tarn_lang *L, const tarn_nest *n, const tarn_stage *s, tarn_read *r,
                           uint32_t number, uint32_t first) {
  tarn_imap m = *tarn_imap_get(L, r->map), new = m, back = m;
  uint32_t acc = (uint32_t)n->depth + s->nown, all = m.n, used = 0, by[TARN_MAX_DIMS],
           sub[TARN_MAX_DIMS], own = 0;
  tarn_stage c = {.fn = tarn_fn_map(L, tarn_fx_hole(L, 0), 1), .space = TARN_NONE};
  tarn_read *read = TARN_NEW(tarn_lang_ctx(L), tarn_read);
  for (uint32_t a = 0; a < m.nin; a++) used |= tarn_ix_dims(L, m.e[a]);
  for (uint32_t d = n->depth; d < acc; d++)
    if ((used & first) >> d & 1) by[own++] = d;
  for (uint32_t d = acc; d < all; d++)
    if (used >> d & 1) by[own++] = d;
  for (uint32_t d = n->depth; d < acc; d++)
    if ((used & ~first) >> d & 1) by[own++] = d;
  c.nown = (uint8_t)own;
  memset(new.dim, 0, sizeof new.dim);
  memcpy(new.dim, n->shared, n->depth * sizeof *new.dim);
  for (uint32_t i = 0; i < own; i++) new.dim[n->depth + i] = c.own[i] = m.dim[by[i]];
  new.n = new.ns = (uint8_t)(n->depth + own);
  for (uint32_t d = 0; d < all; d++)
    sub[d] = d < n->depth ? tarn_ix_var(L, d, new.dim) : tarn_ix_const(L, 0);
  for (uint32_t i = 0; i < own; i++) sub[by[i]] = tarn_ix_var(L, n->depth + i, new.dim);
  for (uint32_t a = 0; a < m.nin; a++) new.e[a] = tarn_ix_subst(L, m.e[a], sub, new.dim);
  *read = (tarn_read){false, r->src, tarn_map_intern_derived(L, &new)};
  c.read = read;
  back.nin = (uint8_t)own;
  memset(back.in, 0, sizeof back.in);
  for (uint32_t i = 0; i < own; i++)
    back.in[i] = c.own[i], back.e[i] = tarn_ix_var(L, by[i], m.dim);
  *r = (tarn_read){true, number, tarn_map_intern_derived(L, &back)};
  return c;
}
bool tarn_ksig_gather(tarn_lang *L, tarn_ksig *k) {
  tarn_nest n = *tarn_nest_get(L, k->nest);
  tarn_ctx *cx = tarn_lang_ctx(L);
  uint32_t to[TARN_MAX_DIMS], most = 0, at = 0;
  if (n.nstage < 2 || n.nstage > TARN_MAX_DIMS) return false;
  for (uint32_t i = 0; i < n.nstage; i++) most += 1u + tarn_fn_get(L, n.stage[i].fn)->nops;
  tarn_stage *st = TARN_ARRAY(cx, tarn_stage, most);
  for (uint32_t i = 0; i < n.nstage; i++) {
    tarn_stage s = n.stage[i];
    const tarn_func *f = tarn_fn_get(L, s.fn);
    uint32_t nread = (uint32_t)f->nops + f->nepi, nops = f->nops;
    tarn_read *rd = tarn_copy(cx, s.read, nread * sizeof *rd);
    for (uint32_t r = 0; r < nread; r++) {
      if (rd[r].stage) rd[r].src = to[rd[r].src];
      else if (r < nops && nops > 1 && gathers(L, k, &n, &s, &rd[r]))
        st[at] = gathered(L, &n, &s, &rd[r], at, 0), at++;
    }
    s.read = rd;
    to[i] = at;
    st[at++] = s;
  }
  if (at == n.nstage) return false;
  n.nstage = at, n.stage = st;
  k->nest = tarn_nest_intern(L, &n);
  return true;
}

/* ---- operands packed block by block ----
 * What an operand holds of a block of columns, which all rows of a product go over, is copied into
 * a local buffer by a stage in front of it, panel after panel of as many columns as a register tile
 * takes: what lay far apart then follows one another. */
static bool depends(const work *w, const work_read *r, uint32_t d) {
  uint32_t used = 0;
  for (uint32_t a = 0; a < r->m.nin; a++) used |= tarn_ix_dims(w->L, r->m.e[a]);
  return used >> d & 1;
}
/* Of the only stage, the own loops that r depends on become shared, all but n from dim d on. The
 * number of d afterwards. */
static uint32_t share_blocks(work *w, const work_read *r, uint32_t d, uint32_t n) {
  work_stage *s = w->stage;
  uint8_t from[TARN_MAX_DIMS + 2], at = 0, depth = 0, nown = s->s.nown;
  uint32_t now = 0;
  for (uint8_t e = 0; e < nown; e++)
    if ((e < d || e >= d + n) && depends(w, r, e)) from[at++] = e, depth++;
  for (uint8_t e = 0; e < nown + s->s.nred; e++) {
    if (e == d) now = at;
    if (e >= nown || (e >= d && e < d + n) || !depends(w, r, e)) from[at++] = e;
  }
  permute(w, s, from);
  memcpy(w->shared, s->s.own, depth * sizeof *w->shared);
  list_replace(s->s.own, &s->s.nown, 0, depth, 0, NULL);
  w->depth = depth;
  return now;
}
bool tarn_ksig_pack(tarn_lang *L, tarn_ksig *k, uint32_t read, uint32_t d, int64_t block,
                    int64_t panel) {
  work w;
  begin(&w, L);
  const tarn_nest *was = tarn_nest_get(L, k->nest);
  if (was->nstage != 1 || was->depth || !was->stage->out || d >= was->stage->nown) return false;
  open_nest(&w, k, NONE);
  work_stage *s = w.stage;
  int64_t extent = s->s.own[d];
  if (read >= s->nread || s->read[read].epi || s->read[read].m.nguard || block < 1 ||
      extent % block || panel < 1 || block % panel)
    return false;
  if (s->s.nown + s->s.nred + 2 > TARN_MAX_DIMS || blocked_dim(&w, s, d) ||
      !depends(&w, &s->read[read], d))
    return false;
  replace(&w, s, d, 1, 2, (int64_t[]){extent / block, block});
  if (panel < block) replace(&w, s, d + 1, 1, 2, (int64_t[]){block / panel, panel});
  uint32_t panels = share_blocks(&w, &s->read[read], d + 1, panel < block ? 2 : 1);
  close_nest(&w, k, NONE);
  tarn_nest n = *tarn_nest_get(L, k->nest);
  tarn_stage *st = TARN_ARRAY(w.cx, tarn_stage, 2);
  st[1] = n.stage[0];
  const tarn_func *f = tarn_fn_get(L, st[1].fn);
  tarn_read *rd = tarn_copy(w.cx, st[1].read, ((size_t)f->nops + f->nepi) * sizeof *rd);
  st[0] = gathered(L, &n, &st[1], &rd[read], 0, panel < block ? 1u << panels : 0);
  st[1].read = rd;
  n.nstage = 2, n.stage = st;
  k->nest = tarn_nest_intern(L, &n);
  return true;
}

static uint64_t hash_layout(uint64_t h, const tarn_layout *l) {
  h = tarn_hash_mix(h, l->n);
  h = tarn_hash_bytes(l->dim, l->n * sizeof(int64_t), h);
  h = tarn_hash_bytes(l->stride, l->n * sizeof(int64_t), h);
  return tarn_hash_mix(tarn_hash_mix(h, (uint64_t)l->block), l->block ? l->baxis : 0);
}
uint64_t tarn_ksig_hash(tarn_lang *L, const tarn_ksig *k) {
  (void)L;
  uint64_t h = tarn_hash_mix(0x7461726e + k->strict, k->nest);
  for (uint32_t i = 0; i < k->nin; i++) {
    h = hash_layout(h, &k->in[i]);
    h = tarn_hash_mix(h, (uint64_t)k->in_type[i] * 2 + k->in_const[i]);
  }
  for (uint32_t i = 0; i < k->nout; i++)
    h = tarn_hash_mix(hash_layout(h, &k->out[i]), k->out_type[i]);
  return h;
}
