/* Changes the computation of a nest: loads it, stores it in one form, reorders loops. */
#include "kernel/edit.h"
#include <string.h>

/* ---------------------------------------------------------------- expressions */

bool fx_walk(const tarn_lang *L, uint32_t f, fxwalk *w) {
  return tarn_fx_postorder(L, f, K_FX, w->id, w->kid, &w->n);
}

uint32_t fx_replace(tarn_lang *L, uint32_t f, const uint32_t *node, const uint32_t *with,
                    uint32_t n) {
  fxwalk w;
  uint32_t now[K_FX];
  if (!fx_walk(L, f, &w)) return TARN_NONE;
  for (uint32_t i = 0; i < w.n; i++) {
    tarn_fx x = *tarn_fx_get(L, w.id[i]);
    uint32_t kid[3] = {0};
    for (uint32_t a = 0; a < tarn_fx_arity(x.op); a++) kid[a] = now[w.kid[i].at[a]];
    now[i] = tarn_fx_arity(x.op) ? tarn_fx_rebuild(L, &x, kid) : w.id[i];
    for (uint32_t j = 0; j < n; j++)
      if (w.id[i] == node[j]) now[i] = with[j];
  }
  return now[w.n - 1];
}

/* ---------------------------------------------------------------- parts of a nest */
uint32_t kern_leaf(kern *k, uint32_t id) {
  for (uint32_t i = 0; i < k->nleaf; i++)
    if (k->leaf[i] == id) return i;
  if (k->nleaf == K_LEAVES) return TARN_NONE;
  k->leaf[k->nleaf] = id;
  return k->nleaf++;
}

const tarn_type *kern_leaf_type(const kern *k, uint32_t leaf) {
  return tarn_type_get(k->L, k->host->type(k->host->user, k->leaf[leaf]));
}

uint32_t kern_dims(const kern *k, const kstage *s, bool body, int64_t *dim) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < k->depth; i++) dim[n++] = k->shared[i];
  for (uint32_t i = 0; i < s->nown; i++) dim[n++] = s->own[i];
  for (uint32_t i = 0; body && i < s->nred; i++) dim[n++] = s->red[i];
  return n;
}

uint32_t kern_out(const kern *k, int64_t *dim) {
  return kern_dims(k, &k->stage[k->nstage - 1], false, dim);
}

kstage *kern_last(kern *k) { return &k->stage[k->nstage - 1]; }
bool kern_single(const kern *k) { return k->nstage == 1; }
bool kern_is_map(const kern *k) { return k->nstage == 1 && k->stage[0].reducer == TARN_NONE; }

bool kern_has_reduction(const kern *k) {
  for (uint32_t i = 0; i < k->nstage; i++)
    if (k->stage[i].reducer != TARN_NONE) return true;
  return false;
}

bool kern_is_product(const kern *k, tarn_dtype sum) {
  const kstage *st = &k->stage[0];
  if (!kern_single(k) || k->depth || st->reducer == TARN_NONE || st->nb != 2) return false;
  const tarn_reducer *r = tarn_reducer_get(k->L, st->reducer);
  const tarn_fx *x = tarn_fx_get(k->L, st->body);
  if (r->kind != TARN_RED_SUM || r->dtype != sum || x->op != TARN_FX_MUL || x->kid[0] == x->kid[1])
    return false;
  for (uint32_t i = 0; i < 2; i++)
    if (tarn_fx_get(k->L, x->kid[i])->op != TARN_FX_HOLE || st->read[i].stage) return false;
  return true;
}

uint32_t kern_outputs(const kern *k) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < k->nstage; i++) n += k->stage[i].out;
  return n;
}

uint32_t kern_add_read(kstage *s, bool body, tarn_read r) {
  uint32_t n = s->nb + s->ne;
  if (n == K_READS) return TARN_NONE;
  if (!body) {
    s->read[n] = r;
    return s->ne++;
  }
  memmove(s->read + s->nb + 1, s->read + s->nb, s->ne * sizeof *s->read);
  s->read[s->nb] = r;
  return s->nb++;
}

/* ---------------------------------------------------------------- loading */
static bool load_stage(kern *k, kstage *to, const tarn_stage *from) {
  const tarn_func *f = tarn_fn_get(k->L, from->fn);
  if ((uint32_t)f->nops + f->nepi > K_READS || f->ntuple || from->nlook) return false;
  to->nown = from->nown;
  to->nred = from->nred;
  memcpy(to->own, from->own, sizeof to->own);
  memcpy(to->red, from->red, sizeof to->red);
  to->body = f->body;
  to->reducer = f->red;
  to->epi = f->epi;
  to->nb = f->nops;
  to->ne = f->nepi;
  memcpy(to->read, from->read, ((uint32_t)f->nops + f->nepi) * sizeof *to->read);
  to->out = from->out;
  return true;
}

/* The shared loops of a single stage are its own. */
static void unshare(kern *k) {
  kstage *s = &k->stage[0];
  if (k->nstage != 1 || k->depth == 0) return;
  memmove(s->own + k->depth, s->own, s->nown * sizeof *s->own);
  memcpy(s->own, k->shared, k->depth * sizeof *s->own);
  s->nown += k->depth;
  k->depth = 0;
}

bool kern_load(kern *k, const kern_host *host, uint32_t nest, const uint32_t *leaf, uint32_t n) {
  const tarn_nest *x = tarn_nest_get(host->L, nest);
  uint32_t at[K_LEAVES];
  if (x->nstage > K_STAGES || n > K_LEAVES) return false;
  k->host = host;
  k->L = host->L;
  k->depth = x->depth;
  k->out_ns = x->out_ns;
  memcpy(k->shared, x->shared, sizeof k->shared);
  k->nstage = x->nstage;
  k->nleaf = 0;
  k->wide = false;
  for (uint32_t i = 0; i < n; i++) at[i] = kern_leaf(k, leaf[i]);
  for (uint32_t i = 0; i < x->nstage; i++) {
    kstage *s = &k->stage[i];
    if (!load_stage(k, s, &x->stage[i])) return false;
    for (uint32_t r = 0; r < s->nb + s->ne; r++)
      if (!s->read[r].stage) s->read[r].src = at[s->read[r].src];
  }
  unshare(k);
  return true;
}

/* ---------------------------------------------------------------- one form */
typedef struct renumber {
  uint32_t n, with[K_READS + 1];
  tarn_read read[K_READS];
} renumber;

/* The reads that f uses, in the order of its walk, each once; first: the number of the first read's
 * hole. */
static bool order_reads(const kern *k, uint32_t f, uint32_t first, const tarn_read *read,
                        uint32_t n, renumber *out) {
  fxwalk w;
  if (!fx_walk(k->L, f, &w)) return false;
  out->n = 0;
  for (uint32_t i = 0; i < first + n; i++) out->with[i] = TARN_NONE;
  for (uint32_t i = 0; i < w.n; i++) {
    const tarn_fx *x = tarn_fx_get(k->L, w.id[i]);
    if (x->op != TARN_FX_HOLE || x->hole < first) continue;
    tarn_read r = read[x->hole - first];
    uint32_t j = 0;
    while (j < out->n && memcmp(&out->read[j], &r, sizeof r)) j++;
    if (j == out->n) out->read[out->n++] = r;
    out->with[x->hole] = tarn_fx_hole(k->L, j + first);
  }
  return true;
}

static bool settle_reads(kern *k, kstage *s) {
  renumber b, e = {0};
  for (uint32_t i = 0; i < s->nb + s->ne; i++) { /* no padding bytes with other values */
    tarn_read r = s->read[i];
    memset(&s->read[i], 0, sizeof r);
    s->read[i].stage = r.stage, s->read[i].src = r.src, s->read[i].map = r.map;
  }
  if (!order_reads(k, s->body, 0, s->read, s->nb, &b)) return false;
  if (s->epi != TARN_NONE && !order_reads(k, s->epi, 1, s->read + s->nb, s->ne, &e)) return false;
  if (b.n == 0) b.read[b.n++] = s->read[0]; /* a function has at least one operand */
  s->body = tarn_fx_subst(k->L, s->body, b.with, s->nb);
  if (s->epi != TARN_NONE) s->epi = tarn_fx_subst(k->L, s->epi, e.with, s->ne + 1);
  if (s->epi != TARN_NONE && s->epi == tarn_fx_hole(k->L, 0)) s->epi = TARN_NONE;
  s->nb = b.n;
  s->ne = e.n;
  memcpy(s->read, b.read, b.n * sizeof *b.read);
  memcpy(s->read + b.n, e.read, e.n * sizeof *e.read);
  return true;
}

/* A reduction whose value the epilogue does not use is the epilogue alone. */
static void drop_sum(const kern *k, kstage *s) {
  uint32_t with[K_READS + 1];
  if (s->reducer == TARN_NONE || s->epi == TARN_NONE || !s->ne) return;
  if (tarn_reducer_get(k->L, s->reducer)->ns > 1 || tarn_fx_uses(k->L, s->epi, 0)) return;
  for (uint32_t i = 0; i <= s->ne; i++) with[i] = tarn_fx_hole(k->L, i ? i - 1 : 0);
  s->body = tarn_fx_subst(k->L, s->epi, with, s->ne + 1);
  s->reducer = s->epi = TARN_NONE;
  memmove(s->read, s->read + s->nb, s->ne * sizeof *s->read);
  s->nb = s->ne;
  s->ne = s->nred = 0;
}

/* Stages that are read, or are outputs, from the last to the first. */
static void drop_stages(kern *k) {
  bool used[K_STAGES] = {false};
  uint32_t to[K_STAGES], n = 0;
  for (uint32_t i = k->nstage; i-- > 0;) {
    const kstage *s = &k->stage[i];
    used[i] |= s->out;
    for (uint32_t r = 0; used[i] && r < s->nb + s->ne; r++)
      if (s->read[r].stage) used[s->read[r].src] = true;
  }
  for (uint32_t i = 0; i < k->nstage; i++) {
    if (!used[i]) continue;
    to[i] = n;
    if (n != i) k->stage[n] = k->stage[i];
    for (uint32_t r = 0; r < k->stage[n].nb + k->stage[n].ne; r++)
      if (k->stage[n].read[r].stage) k->stage[n].read[r].src = to[k->stage[n].read[r].src];
    n++;
  }
  k->nstage = n;
}

static void drop_leaves(kern *k) {
  uint32_t to[K_LEAVES], had[K_LEAVES], n = 0;
  memcpy(had, k->leaf, k->nleaf * sizeof *had);
  for (uint32_t i = 0; i < k->nleaf; i++) to[i] = TARN_NONE;
  for (uint32_t i = 0; i < k->nstage; i++)
    for (uint32_t r = 0; r < k->stage[i].nb + k->stage[i].ne; r++) {
      tarn_read *x = &k->stage[i].read[r];
      if (x->stage) continue;
      if (to[x->src] == TARN_NONE) to[x->src] = n, k->leaf[n++] = had[x->src];
      x->src = to[x->src];
    }
  k->nleaf = n;
}

static bool store_stage(kern *k, const kstage *from, tarn_stage *to) {
  if (k->depth + from->nown + from->nred > TARN_MAX_DIMS) return false;
  *to = (tarn_stage){.nown = (uint8_t)from->nown,
                     .nred = (uint8_t)from->nred,
                     .read = from->read,
                     .out = from->out};
  memcpy(to->own, from->own, sizeof to->own);
  memcpy(to->red, from->red, sizeof to->red);
  to->fn = tarn_fn_intern(k->L, &(tarn_func){.nops = (uint8_t)from->nb,
                                             .nepi = (uint8_t)from->ne,
                                             .body = from->body,
                                             .red = from->reducer,
                                             .epi = from->epi});
  return true;
}

bool kern_fits(const kern *k) {
  bool fits = k->nleaf <= TARN_MAX_OPERANDS;
  for (uint32_t i = 0; i < k->nstage; i++)
    fits &= k->stage[i].nb + k->stage[i].ne <= TARN_MAX_OPERANDS;
  return fits;
}

bool kern_tidy(kern *k) {
  for (uint32_t i = 0; i < k->nstage; i++) drop_sum(k, &k->stage[i]);
  drop_stages(k);
  for (uint32_t i = 0; i < k->nstage; i++)
    if (!settle_reads(k, &k->stage[i])) return false;
  drop_leaves(k);
  return true;
}

bool kern_payload(kern *k, uint32_t *payload) {
  tarn_stage stage[K_STAGES];
  if (!kern_tidy(k)) return false;
  if (!k->wide && !kern_fits(k)) return false;
  unshare(k);
  for (uint32_t i = 0; i < k->nstage; i++)
    if (!store_stage(k, &k->stage[i], &stage[i])) return false;
  tarn_nest n = {.depth = (uint8_t)k->depth,
                 .out_ns = (uint8_t)k->out_ns,
                 .nstage = k->nstage,
                 .nchild = k->nleaf,
                 .stage = stage};
  memcpy(n.shared, k->shared, sizeof n.shared);
  *payload = tarn_payload_of(k->L, TARN_P_NEST, tarn_nest_intern(k->L, &n));
  return true;
}

uint32_t kern_store(kern *k) {
  uint32_t payload;
  if (!kern_payload(k, &payload)) return TARN_NONE;
  return k->host->mk(k->host->user, TARN_OP_NEST, payload, k->leaf, k->nleaf);
}

typedef struct part { /* over the chosen loops, of which the last are reduced */
  const int64_t *dim;
  uint32_t ndim, naxis, nred, reducer, epi;
  const uint32_t *axis;
} part;
static uint32_t part_of(const kern *k, part p, uint32_t f, const tarn_read *read, uint32_t n) {
  kern c = {.host = k->host, .L = k->L, .nstage = 1, .out_ns = p.naxis - p.nred};
  kstage *st = &c.stage[0];
  *st = (kstage){
      .nown = c.out_ns,
      .nred = p.nred,
      .body = f,
      .reducer = p.reducer,
      .epi = p.epi,
      .nb = n,
      .out = true,
  };
  for (uint32_t i = 0; i < p.naxis; i++)
    *(i < st->nown ? &st->own[i] : &st->red[i - st->nown]) = p.dim[p.axis[i]];
  uint32_t in = map_embed(k->L, p.dim, p.ndim, p.axis, p.naxis);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t map = tarn_map_compose(k->L, in, read[i].map);
    uint32_t leaf = map == TARN_NONE ? map : kern_leaf(&c, k->leaf[read[i].src]);
    if (leaf == TARN_NONE) return TARN_NONE;
    st->read[i] = (tarn_read){.src = leaf, .map = map};
  }
  return kern_store(&c);
}
uint32_t kern_part(const kern *k, const int64_t *dim, uint32_t ndim, const uint32_t *axis,
                   uint32_t naxis, uint32_t f, const tarn_read *read, uint32_t n) {
  const part p = {dim, ndim, naxis, 0, TARN_NONE, TARN_NONE, axis};
  return part_of(k, p, f, read, n);
}
uint32_t kern_reduced(const kern *k, const int64_t *dim, uint32_t ndim, const uint32_t *axis,
                      uint32_t nown, uint32_t nred, uint32_t reducer, uint32_t f, uint32_t epi,
                      tarn_read read) {
  const part p = {dim, ndim, nown + nred, nred, reducer, epi, axis};
  return part_of(k, p, f, &read, 1);
}
uint32_t kern_of_tensor(const kern *k, uint32_t id, uint32_t map, uint32_t f) {
  const tarn_type *t = tarn_type_get(k->L, k->host->type(k->host->user, id));
  kern c = {.host = k->host, .L = k->L, .nleaf = 1, .leaf = {id}};
  uint32_t axis[TARN_MAX_DIMS];
  const tarn_read r = {.map = map == TARN_NONE ? map_same(k->L, t->dim, t->n) : map};
  const tarn_imap *m = tarn_imap_get(k->L, r.map);
  for (uint32_t a = 0; a < m->n; a++) axis[a] = a;
  return kern_part(&c, m->dim, m->n, axis, m->n, f, &r, 1);
}

/* ---------------------------------------------------------------- loops reordered */
uint32_t kern_free_loops(const kern *k) {
  return k->nstage == 1 ? k->depth + k->stage[0].nown : k->depth;
}

/* From the loops as they will be to the loops as they are. */
static tarn_imap permutation(tarn_lang *L, const int64_t *dim, const uint32_t *to, uint32_t n) {
  tarn_imap m = {.ns = (uint8_t)n, .n = (uint8_t)n, .nin = (uint8_t)n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < n; i++) m.in[i] = dim[i], m.dim[i] = dim[to[i]];
  for (uint32_t i = 0; i < n; i++) m.e[to[i]] = tarn_ix_var(L, i, m.dim);
  return m;
}

/* The first loops become what `to` says of them; buffers of stages have got its loops from d on in
 * front. */
static bool lead_reads(kern *k, kstage *s, const tarn_imap *to, uint32_t d) {
  for (uint32_t r = 0; r < s->nb + s->ne; r++) {
    tarn_imap m = *tarn_imap_get(k->L, s->read[r].map);
    if (!imap_lead(k->L, &m, to)) return false;
    if (s->read[r].stage && !imap_deepen(k->L, &m, d, to->n - d)) return false;
    s->read[r].map = tarn_map_intern_derived(k->L, &m);
    if (s->read[r].map == TARN_NONE) return false;
  }
  return true;
}

bool kern_own_as(kern *k, uint32_t map) {
  tarn_imap to = *tarn_imap_get(k->L, map);
  kstage *s = &k->stage[0];
  if (!kern_single(k) || k->depth || !lead_reads(k, s, &to, to.n)) return false;
  s->nown = to.n;
  memcpy(s->own, to.dim, to.n * sizeof *s->own);
  return true;
}

bool kern_reorder(kern *k, const uint32_t *to, uint32_t d) {
  unshare(k);
  uint32_t nfree = kern_free_loops(k);
  int64_t was[TARN_MAX_DIMS];
  bool one = k->nstage == 1;
  memcpy(was, one ? k->stage[0].own : k->shared, nfree * sizeof *was);
  tarn_imap order = permutation(k->L, was, to, nfree);
  for (uint32_t i = 0; i < k->nstage; i++)
    if (!lead_reads(k, &k->stage[i], &order, d)) return false;
  for (uint32_t i = 0; i < k->nstage; i++) {
    kstage *s = &k->stage[i];
    uint32_t keep = one ? 0 : s->nown;
    if (nfree - d + keep > TARN_MAX_DIMS) return false;
    memmove(s->own + nfree - d, s->own, keep * sizeof *s->own);
    for (uint32_t j = d; j < nfree; j++) s->own[j - d] = was[to[j]];
    s->nown = nfree - d + keep;
  }
  for (uint32_t j = 0; j < d; j++) k->shared[j] = was[to[j]];
  k->depth = d;
  return true;
}

/* ---------------------------------------------------------------- nests joined */
bool kern_append(kern *k, const kern *more) {
  uint32_t base = k->nstage;
  if (base + more->nstage > K_STAGES) return false;
  for (uint32_t i = 0; i < more->nstage; i++) {
    kstage *s = &k->stage[k->nstage++];
    *s = more->stage[i];
    for (uint32_t r = 0; r < s->nb + s->ne; r++) {
      tarn_read *x = &s->read[r];
      if (x->stage) x->src += base;
      else if ((x->src = kern_leaf(k, more->leaf[x->src])) == TARN_NONE) return false;
    }
  }
  return true;
}

/* Does this loop choose in no read of a child anything but what its dims from `axis` on, n of them,
 * say? */
static bool only_along(const kern *k, uint32_t loop, uint32_t axis, uint32_t n) {
  bool only = true;
  for (uint32_t i = 0; i < k->nstage; i++)
    for (uint32_t r = 0; r < k->stage[i].nb + k->stage[i].ne; r++) {
      const tarn_imap *m = tarn_imap_get(k->L, k->stage[i].read[r].map);
      for (uint32_t d = 0; d < m->nin && !k->stage[i].read[r].stage; d++)
        only &= (d >= axis && d < axis + n) || !(tarn_ix_dims(k->L, m->e[d]) >> loop & 1);
    }
  return only;
}
uint32_t kern_samples(const kern *k, uint32_t axis, uint32_t n) {
  uint32_t i = 0, most = kern_free_loops(k);
  if (most > k->out_ns) most = k->out_ns;
  while (i < most && only_along(k, i, axis, n)) i++;
  return i;
}

/* The loops as they are, the first n shared. */
static bool share_first(kern *k, uint32_t n) {
  uint32_t as_is[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < kern_free_loops(k); i++) as_is[i] = i;
  return kern_reorder(k, as_is, n);
}
bool kern_beside(kern *k, kern *p, uint32_t n) {
  int64_t a[2 * TARN_MAX_DIMS], b[2 * TARN_MAX_DIMS];
  if (k->out_ns != p->out_ns || kern_outputs(k) != 1 || kern_outputs(p) != 1) return false;
  kern_out(k, a), kern_out(p, b);
  for (uint32_t i = 0; i < n; i++)
    if (a[i] != b[i]) return false;
  return share_first(k, n) && share_first(p, n) && kern_append(k, p);
}

/* ---------------------------------------------------------------- opening */
typedef struct opening {
  kern *k;
  const kern_host *host;
  uint32_t most;
  bool (*fits)(const kern *k);
} opening;

static bool try_open(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n) {
  const opening *o = arg;
  return n <= o->most &&
         kern_load(o->k, o->host, tarn_payload_get(o->host->L, payload)->id, kid, n) &&
         o->fits(o->k);
}

bool kern_open(kern *k, const kern_host *host, uint32_t id, uint32_t most,
               bool (*fits)(const kern *k), uint32_t *payload, const uint32_t **kid, uint32_t *n) {
  opening o = {k, host, most, fits};
  if (!host->open(host->user, id, TARN_OP_NEST, try_open, &o, payload, kid, n)) return false;
  return kern_load(k, host, tarn_payload_get(host->L, *payload)->id, *kid, *n);
}
