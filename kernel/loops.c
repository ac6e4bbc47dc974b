/* A kernel's loops and layouts: opening, the edits, closing. */
#include "kernel/loops.h"
#include <string.h>

/* n zeroed bytes that last as long as w. */
static void *scratch(knest *w, size_t n) {
  n = (n + 15) / 16 * 16;
  if (n > KNEST_ROOM - w->used) return tarn_new(tarn_lang_ctx(w->L), n);
  void *p = memset(w->room + w->used, 0, n);
  w->used += n;
  return p;
}

/* ---- opening and closing ---- */
static void open_stage(knest *w, knest_stage *s, const tarn_stage *from) {
  const tarn_func *f = tarn_fn_get(w->L, from->fn);
  s->s = *from;
  s->nread = tarn_stage_reads(w->L, from);
  s->read = scratch(w, s->nread * sizeof *s->read);
  for (uint32_t r = 0; r < s->nread; r++) {
    const tarn_read *x = &from->read[r];
    bool epi = r >= f->nops && r < s->nread - from->nlook;
    s->read[r] = (knest_read){x->stage, epi, x->src, *tarn_imap_get(w->L, x->map), x->row};
  }
}

void knest_open(knest *w, tarn_lang *L, const tarn_ksig *k) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  uint32_t out = 0;
  w->L = L, w->used = 0;
  w->depth = n->depth, w->nstage = n->nstage, w->nin = k->nin;
  memcpy(w->shared, n->shared, sizeof w->shared);
  memcpy(w->in, k->in, k->nin * sizeof *k->in);
  w->stage = scratch(w, n->nstage * sizeof *w->stage);
  for (uint32_t i = 0; i < n->nstage; i++) {
    open_stage(w, &w->stage[i], &n->stage[i]);
    if (n->stage[i].out) w->stage[i].out = k->out[out++];
  }
}

void knest_close(knest *w, tarn_ksig *k) {
  tarn_stage *st = scratch(w, w->nstage * sizeof *st);
  uint32_t total = TARN_MAX_DIMS, out = 0;
  for (uint32_t i = 0; i < w->nstage; i++) {
    knest_stage *s = &w->stage[i];
    tarn_read *rd = scratch(w, s->nread * sizeof *rd);
    for (uint32_t r = 0; r < s->nread; r++) {
      rd[r].stage = s->read[r].stage, rd[r].src = s->read[r].src, rd[r].row = s->read[r].row;
      rd[r].map = tarn_map_intern_derived(w->L, &s->read[r].m);
    }
    st[i] = s->s, st[i].read = rd;
    if (!s->s.out) continue;
    k->out[out++] = s->out;
    if (knest_acc(w, s) < total) total = knest_acc(w, s);
  }
  tarn_nest n = {.depth = w->depth,
                 .out_ns = (uint8_t)total,
                 .nstage = w->nstage,
                 .nchild = w->nin,
                 .stage = st};
  memcpy(n.shared, w->shared, sizeof n.shared);
  memcpy(k->in, w->in, w->nin * sizeof *k->in);
  k->nin = w->nin;
  k->nest = tarn_nest_intern(w->L, &n);
}

/* ---- dims ---- */
uint32_t knest_acc(const knest *w, const knest_stage *s) { return (uint32_t)w->depth + s->s.nown; }

uint32_t knest_dims(const knest *w, const knest_stage *s, int64_t *dim) {
  memcpy(dim, w->shared, w->depth * sizeof *dim);
  memcpy(dim + w->depth, s->s.own, s->s.nown * sizeof *dim);
  memcpy(dim + knest_acc(w, s), s->s.red, s->s.nred * sizeof *dim);
  return knest_acc(w, s) + s->s.nred;
}

knest_list knest_where(const knest *w, const knest_stage *s, uint32_t d) {
  return d < w->depth ? KNEST_SHARED : d < knest_acc(w, s) ? KNEST_OWN : KNEST_RED;
}

bool knest_read_later(const knest *w, const knest_stage *s) {
  for (uint32_t i = (uint32_t)(s - w->stage) + 1; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++)
      if (w->stage[i].read[r].stage && &w->stage[w->stage[i].read[r].src] == s) return true;
  return false;
}

bool knest_fixed(const knest *w, const knest_stage *s, uint32_t d) {
  return knest_where(w, s, d) == KNEST_OWN && (!s->s.out || knest_read_later(w, s));
}

static bool blocks_dim(const knest_stage *s, uint32_t d) {
  return s->s.out && s->out.block && s->out.baxis == d;
}

/* Shared dims are dims of every result. */
bool knest_blocked(const knest *w, const knest_stage *s, uint32_t d) {
  knest_list in = knest_where(w, s, d);
  bool any = false;
  for (uint32_t i = 0; i < w->nstage && in == KNEST_SHARED; i++) any |= blocks_dim(&w->stage[i], d);
  return any || (in == KNEST_OWN && blocks_dim(s, d));
}

/* The blocked axis keeps its block in the inner half; not where several results share it. */
bool knest_may_split(const knest *w, const knest_stage *s, uint32_t d, int64_t f) {
  int64_t dim[TARN_MAX_DIMS + 2];
  if (knest_dims(w, s, dim) >= TARN_MAX_DIMS) return false;
  if (!knest_blocked(w, s, d)) return true;
  return w->nstage == 1 && f % s->out.block == 0;
}

/* ---- splitting, joining and dropping dims ---- */
static void subst(knest *w, knest_stage *s, const uint32_t *sub, uint32_t acc, uint32_t n,
                  const int64_t *dim) {
  for (uint32_t r = 0; r < s->nread; r++)
    imap_subst(w->L, &s->read[r].m, sub, s->read[r].epi ? acc : n, dim);
}

static void list_replace(int64_t *list, uint8_t *n, uint32_t at, uint32_t remove, uint32_t insert,
                         const int64_t *v) {
  memmove(list + at + insert, list + at + remove, (*n - at - remove) * sizeof *list);
  for (uint32_t i = 0; i < insert; i++) list[at + i] = v[i];
  *n = (uint8_t)(*n - remove + insert);
  memset(list + *n, 0, (TARN_MAX_DIMS - *n) * sizeof *list);
}

/* Dims [d, d+remove) of one stage become `insert` new ones with extents v.
 * split (1 -> 2): d = d0*v[1] + d1; join (2 -> 1): d0 = d / e1, d1 = d mod e1; drop (1 -> 0): 0. */
static void stage_replace(knest *w, knest_stage *s, uint32_t d, uint32_t remove, uint32_t insert,
                          const int64_t *v) {
  int64_t old[TARN_MAX_DIMS + 2] = {0}, dim[TARN_MAX_DIMS + 2] = {0};
  uint32_t n = knest_dims(w, s, old), acc = knest_acc(w, s), sub[TARN_MAX_DIMS + 2];
  for (uint32_t i = 0; i < d; i++) dim[i] = old[i];
  for (uint32_t i = 0; i < insert; i++) dim[d + i] = v[i];
  for (uint32_t i = d + remove; i < n; i++) dim[i - remove + insert] = old[i];
  for (uint32_t i = 0; i < n; i++)
    if (i < d || i >= d + remove) sub[i] = tarn_ix_var(w->L, i < d ? i : i - remove + insert, dim);
  if (remove == 1 && insert == 2)
    sub[d] = tarn_ix_add(w->L, tarn_ix_scale(w->L, tarn_ix_var(w->L, d, dim), v[1], dim),
                         tarn_ix_var(w->L, d + 1, dim), dim);
  if (remove == 2) {
    int64_t inner = old[d + 1] ? old[d + 1] : 1; /* of nothing, nothing is walked */
    sub[d] = tarn_ix_div(w->L, tarn_ix_var(w->L, d, dim), inner, dim);
    sub[d + 1] = tarn_ix_mod(w->L, tarn_ix_var(w->L, d, dim), inner, dim);
  }
  if (insert == 0) sub[d] = tarn_ix_const(w->L, 0);
  subst(w, s, sub, d < acc ? acc - remove + insert : acc, n - remove + insert, dim);
}

static void out_replace(knest_stage *s, uint32_t d, uint32_t remove, uint32_t insert,
                        const int64_t *v) {
  tarn_layout *l = &s->out;
  int64_t stride[2] = {0, 0};
  bool blocked = l->block && l->baxis == d;
  if (insert == 2) stride[0] = l->stride[d] * v[1], stride[1] = l->stride[d];
  if (insert == 2 && blocked) stride[0] = v[1] / l->block * l->stride[d];
  if (remove == 2) stride[0] = l->stride[d + 1];
  if (l->block && l->baxis > d) l->baxis = (uint8_t)(l->baxis - remove + insert);
  if (blocked && insert == 2) l->baxis = (uint8_t)(d + 1);
  uint8_t n = l->n;
  list_replace(l->stride, &n, d, remove, insert, stride);
  list_replace(l->dim, &l->n, d, remove, insert, v);
}

static void replace(knest *w, knest_stage *s, uint32_t d, uint32_t remove, uint32_t insert,
                    const int64_t *v) {
  knest_list in = knest_where(w, s, d);
  for (uint32_t i = 0; i < w->nstage; i++) {
    knest_stage *t = &w->stage[i];
    if (in != KNEST_SHARED && t != s) continue;
    stage_replace(w, t, d, remove, insert, v);
    if (in != KNEST_RED && t->s.out) out_replace(t, d, remove, insert, v);
  }
  uint32_t own = d - w->depth, red = d - knest_acc(w, s);
  if (in == KNEST_SHARED) list_replace(w->shared, &w->depth, d, remove, insert, v);
  if (in == KNEST_OWN) list_replace(s->s.own, &s->s.nown, own, remove, insert, v);
  if (in == KNEST_RED) list_replace(s->s.red, &s->s.nred, red, remove, insert, v);
}

void knest_split(knest *w, knest_stage *s, uint32_t d, int64_t inner) {
  int64_t dim[TARN_MAX_DIMS + 2];
  knest_dims(w, s, dim);
  replace(w, s, d, 1, 2, (int64_t[]){dim[d] / inner, inner});
}

void knest_join(knest *w, knest_stage *s, uint32_t d) {
  int64_t dim[TARN_MAX_DIMS + 2];
  knest_dims(w, s, dim);
  replace(w, s, d, 2, 1, (int64_t[]){dim[d] * dim[d + 1]});
}

void knest_drop(knest *w, knest_stage *s, uint32_t d) { replace(w, s, d, 1, 0, NULL); }

/* ---- the order of dims, and whose they are ---- */
void knest_permute(knest *w, knest_stage *s, const uint8_t *from) {
  int64_t old[TARN_MAX_DIMS + 2] = {0}, dim[TARN_MAX_DIMS + 2] = {0};
  uint32_t n = knest_dims(w, s, old), acc = knest_acc(w, s), sub[TARN_MAX_DIMS + 2] = {0};
  tarn_layout l = s->out;
  for (uint32_t i = 0; i < n; i++) dim[i] = old[from[i]];
  for (uint32_t i = 0; i < n; i++) sub[from[i]] = tarn_ix_var(w->L, i, dim);
  subst(w, s, sub, acc, n, dim);
  for (uint32_t i = w->depth; i < n; i++)
    if (i < acc) s->s.own[i - w->depth] = dim[i];
    else s->s.red[i - acc] = dim[i];
  for (uint32_t i = 0; i < acc && s->s.out; i++) {
    s->out.dim[i] = l.dim[from[i]], s->out.stride[i] = l.stride[from[i]];
    if (l.block && from[i] == l.baxis) s->out.baxis = (uint8_t)i;
  }
}

void knest_permute_shared(knest *w, const uint8_t *from) {
  int64_t was[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < w->nstage; i++) {
    uint8_t all[TARN_MAX_DIMS + 2];
    for (uint32_t d = 0; d < TARN_MAX_DIMS + 2; d++) all[d] = d < w->depth ? from[d] : (uint8_t)d;
    knest_permute(w, &w->stage[i], all);
  }
  memcpy(was, w->shared, sizeof was);
  for (uint32_t d = 0; d < w->depth; d++) w->shared[d] = was[from[d]];
}

/* Dims of a stage are shared, own, reduce: their numbers stay. */
bool knest_own(knest *w, uint32_t n) {
  uint32_t first = w->depth - n;
  for (uint32_t i = 0; i < w->nstage; i++) {
    knest_stage *s = &w->stage[i];
    if (s->s.nown + n > TARN_MAX_DIMS) return false;
    for (uint32_t r = 0; r < s->nread; r++)
      if (s->read[r].stage && !imap_deepen(w->L, &s->read[r].m, first, n)) return false;
  }
  for (uint32_t i = 0; i < w->nstage; i++) {
    tarn_stage *s = &w->stage[i].s;
    list_replace(s->own, &s->nown, 0, 0, n, w->shared + first);
  }
  list_replace(w->shared, &w->depth, first, n, 0, NULL);
  return true;
}

void knest_share(knest *w, uint32_t n) {
  tarn_stage *s = &w->stage->s;
  memcpy(w->shared, s->own, n * sizeof *w->shared);
  list_replace(s->own, &s->nown, 0, n, 0, NULL);
  w->depth = (uint8_t)n;
}

bool knest_own_as(knest *w, const tarn_imap *inv) {
  knest_stage *s = w->stage;
  for (uint32_t r = 0; r < s->nread; r++)
    if (!imap_lead(w->L, &s->read[r].m, inv)) return false;
  list_replace(s->s.own, &s->s.nown, 0, s->s.nown, inv->n, inv->dim);
  return true;
}

/* ---- children ---- */
void knest_flatten(knest *w, uint32_t child) {
  tarn_layout *l = &w->in[child];
  int64_t before = tarn_layout_before(l), elems = tarn_layout_elems(l) + before;
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++) {
      knest_read *x = &w->stage[i].read[r];
      if (x->stage || x->src != child) continue;
      if (x->row.by) x->row.pitch *= l->stride[0]; /* of one dim */
      x->m.e[0] = imap_address(w->L, &x->m, l);
      x->m.nin = 1;
      x->m.in[0] = elems;
    }
  int64_t offset = l->offset - before;
  *l = tarn_layout_row_major(1, &elems);
  l->offset = offset;
}

bool knest_through(knest *w, uint32_t child, uint32_t view) {
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++) {
      knest_read *x = &w->stage[i].read[r];
      if (x->stage || x->src != child) continue;
      bool steps = tarn_map_is_identity(w->L, view) && !w->in[child].block;
      if (x->row.by && !steps) return false; /* rows would not lie evenly apart */
      uint32_t m = tarn_map_compose(w->L, tarn_map_intern_derived(w->L, &x->m), view);
      if (m == TARN_NONE) return false;
      x->m = *tarn_imap_get(w->L, m);
    }
  return true;
}

void knest_add_read(knest *w, knest_stage *s, const knest_read *r) {
  knest_read *all = scratch(w, (s->nread + 1) * sizeof *all);
  memcpy(all, s->read, s->nread * sizeof *all);
  all[s->nread++] = *r;
  s->read = all;
}

uint32_t knest_add_child(knest *w, const tarn_layout *l) {
  if (w->nin == TARN_MAX_OPERANDS) return TARN_NONE;
  w->in[w->nin] = *l;
  return w->nin++;
}

void knest_drop_children(knest *w, uint32_t to[TARN_MAX_OPERANDS]) {
  bool used[TARN_MAX_OPERANDS] = {false};
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++)
      if (!w->stage[i].read[r].stage) used[w->stage[i].read[r].src] = true;
  for (uint32_t j = 0; j < w->nin; j++) {
    to[j] = used[j] ? n : TARN_NONE;
    if (used[j]) w->in[n++] = w->in[j];
  }
  w->nin = n;
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++) {
      knest_read *x = &w->stage[i].read[r];
      if (!x->stage) x->src = to[x->src];
    }
}

/* ---- a stage that copies ---- */
/* Room for one more stage at `at`. */
static void insert_stage(knest *w, uint32_t at) {
  knest_stage *was = w->stage;
  w->stage = scratch(w, (w->nstage + 1) * sizeof *was);
  memcpy(w->stage, was, at * sizeof *was);
  memcpy(w->stage + at + 1, was + at, (w->nstage - at) * sizeof *was);
  w->nstage++;
  for (uint32_t i = at + 1; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nread; r++) {
      knest_read *x = &w->stage[i].read[r];
      if (x->stage && x->src >= at) x->src++;
    }
}

/* The dims of a stage in `set` that lie in a list, added to by[0 … n-1]; their number then. */
static uint32_t dims_in(const knest *w, const knest_stage *s, knest_list in, uint32_t set,
                        uint32_t *by, uint32_t n) {
  for (uint32_t d = w->depth; d < knest_acc(w, s) + s->s.nred; d++)
    if ((set >> d & 1) && knest_where(w, s, d) == in) by[n++] = d;
  return n;
}

void knest_copy(knest *w, uint32_t at, uint32_t r, uint32_t first) {
  insert_stage(w, at);
  knest_stage *c = &w->stage[at], *s = &w->stage[at + 1];
  knest_read *x = &s->read[r];
  tarn_imap m = x->m;
  uint32_t by[TARN_MAX_DIMS], sub[TARN_MAX_DIMS], used = imap_dims(w->L, &m), n = 0;
  int64_t dim[TARN_MAX_DIMS] = {0};
  n = dims_in(w, s, KNEST_OWN, used & first, by, n);
  n = dims_in(w, s, KNEST_RED, used, by, n);
  n = dims_in(w, s, KNEST_OWN, used & ~first, by, n);
  uint32_t all = w->depth + n;
  c->s = (tarn_stage){.nown = (uint8_t)n};
  c->s.fn = tarn_fn_map(w->L, tarn_fx_hole(w->L, 0), 1);
  memcpy(dim, w->shared, w->depth * sizeof *dim);
  for (uint32_t i = 0; i < n; i++) dim[w->depth + i] = c->s.own[i] = m.dim[by[i]];
  for (uint32_t d = 0; d < m.n; d++)
    sub[d] = d < w->depth ? tarn_ix_var(w->L, d, dim) : tarn_ix_const(w->L, 0);
  for (uint32_t i = 0; i < n; i++) sub[by[i]] = tarn_ix_var(w->L, w->depth + i, dim);
  c->nread = 1, c->read = scratch(w, sizeof *c->read);
  *c->read = (knest_read){.src = x->src, .m = m};
  imap_subst(w->L, &c->read->m, sub, all, dim);
  x->stage = true, x->src = at;
  x->m.nin = (uint8_t)n;
  memcpy(x->m.in, c->s.own, sizeof x->m.in);
  for (uint32_t i = 0; i < n; i++) x->m.e[i] = tarn_ix_var(w->L, by[i], m.dim);
}
