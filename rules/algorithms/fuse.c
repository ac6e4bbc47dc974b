/* Builders of the fusion family: they join kernels by substituting index maps and scalar
 * expressions.
 *
 * epilogue   a map of a kernel's result becomes the last step of the kernel
 * place      a kernel becomes an earlier stage of its reader's nest, inside the loops they share
 * outputs    a kernel and a map of its result become one nest that writes both
 *
 * In C because the kernel that is read has any number of stages, which become stages of the result:
 * in the notation of loops it is a map.
 *
 * Loop placement as a value: Ragan-Kelley et al., Halide (PLDI 2013). */
#include "kernel/maps.h"
#include "rules/algorithms/build.h"
#include <string.h>

/* ---------------------------------------------------------------- sites */

typedef struct choice {
  rsite *s;
  kern *k;
  double (*score)(const kern *k, void *arg);
  void *arg;
  double best;
  uint32_t payload, n;
  uint32_t kid[R_KIDS];
} choice;

static bool weigh(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n) {
  choice *c = arg;
  if (n > R_KIDS ||
      !kern_load(c->k, &c->s->e->host->nest, tarn_payload_get(c->s->e->L, payload)->id, kid, n))
    return false;
  double x = c->score(c->k, c->arg);
  if (x < 0 ||
      (c->payload != TARN_NONE && (x > c->best || (x == c->best && payload >= c->payload))))
    return false;
  c->best = x;
  c->payload = payload;
  c->n = n;
  if (n) memcpy(c->kid, kid, n * sizeof *kid);
  return false;
}

/* Opens kid i: the nest with the least score (below 0: never), then the least payload. */
static bool site_choose(rsite *s, uint32_t i, kern *k, double (*score)(const kern *k, void *arg),
                        void *arg) {
  rkid *c = &s->kid[i];
  choice x = {.s = s, .k = k, .score = score, .arg = arg, .payload = TARN_NONE};
  uint32_t payload, n;
  const uint32_t *kid;
  s->e->host->nest.open(s->e->host->nest.user, c->id, TARN_OP_NEST, weigh, &x, &payload, &kid, &n);
  if (x.payload == TARN_NONE) return false;
  c->op = TARN_OP_NEST;
  c->payload = x.payload;
  c->leaf = tarn_copy(tarn_lang_ctx(s->e->L), x.kid, (x.n ? x.n : 1) * sizeof *x.kid);
  c->n = x.n;
  return kern_load(k, &s->e->host->nest, tarn_payload_get(s->e->L, x.payload)->id, c->leaf, c->n);
}

/* ---------------------------------------------------------------- epilogue */

/* Sums of an accelerator that leave it as a narrower type: their readers may be other kernels. */
static bool leaves_narrower(const rsite *s, const kern *p) {
  uint32_t red = p->stage[p->nstage - 1].reducer;
  return red != TARN_NONE &&
         site_narrows(s, s->kid[s->slot].id, tarn_reducer_get(p->L, red)->dtype);
}

/* The aligned map k as the last thing that p does. */
static bool append_epilogue(kern *p, const kern *k, uint32_t slot) {
  kstage *ps = kern_last(p);
  const kstage *ks = &k->stage[0];
  bool body = ps->reducer == TARN_NONE;
  uint32_t with[K_READS], value = body                   ? ps->body
                                  : ps->epi == TARN_NONE ? tarn_fx_hole(p->L, 0)
                                                         : ps->epi;
  for (uint32_t r = 0; r < ks->nb; r++) {
    if (reads_slot(slot, &ks->read[r])) {
      with[r] = value;
      continue;
    }
    uint32_t leaf = kern_leaf(p, k->leaf[ks->read[r].src]);
    if (leaf == TARN_NONE) return false;
    uint32_t at = kern_add_read(ps, body, (tarn_read){.src = leaf, .map = ks->read[r].map});
    if (at == TARN_NONE) return false;
    with[r] = tarn_fx_hole(p->L, at + !body);
  }
  uint32_t f = tarn_fx_subst(p->L, ks->body, with, ks->nb);
  if (body) ps->body = f;
  else ps->epi = f;
  return true;
}

/* Every other child is no longer to be inlined first, or has a kernel of its own to be read from.
 */
static bool settled(const rsite *s, const kern *k, uint32_t but) {
  for (uint32_t i = 0; i < k->nleaf; i++)
    if (i != but && site_inlinable(s, k->leaf[i]) && !(site_facts(s, k->leaf[i]) & R_HAS_RED))
      return false;
  return true;
}

/* Another kernel that only the root needs could do it. */
static bool better_host(const rsite *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    unsigned has = i == s->slot || site_const(s, s->kid[i].id) ? 0 : site_facts(s, s->kid[i].id);
    if ((has & R_HAS_RED) && !(has & R_SHARED)) return true;
  }
  return false;
}

/* A kernel whose result others read too would be computed twice: only where no other can do it. */
bool when_epilogue(rsite *s) {
  kern k;
  uint32_t id = s->kid[s->slot].id;
  if (site_const(s, id) || ((site_facts(s, id) & R_SHARED) && better_host(s)) || !site_root(s, &k))
    return false;
  return settled(s, &k, slot_leaf(&k, s));
}

/* A single-stage kernel p with the loops of its result replaced by those of a bijective view of it.
 */
static bool kern_reloop(kern *p, uint32_t map) {
  const tarn_imap *m = tarn_imap_get(p->L, map);
  if (kern_single(p) && !p->depth && tarn_map_is_identity(p->L, map) && m->n == p->stage[0].nown)
    return true;
  return tarn_map_invert(p->L, map, 0) != TARN_NONE && kern_own_as(p, map);
}

/* p in the loops of k, where it is read through map; or k in the loops of p. *seen: the map through
 * which k's result is then seen, TARN_NONE for directly. */
static bool same_loops(kern *k, kern *p, uint32_t map, uint32_t *seen) {
  *seen = TARN_NONE;
  if (kern_reloop(p, map)) {
    p->out_ns = k->out_ns;
    return true;
  }
  if (tarn_map_is_identity(k->L, map)) return p->out_ns = k->out_ns, true;
  *seen = map;
  uint32_t inv = tarn_map_invert(k->L, map, tarn_imap_get(k->L, map)->nin);
  return inv != TARN_NONE && kern_own_as(k, inv);
}

uint32_t build_epilogue(rsite *s) {
  kern k, p;
  if (!site_root(s, &k) || !site_kid(s, s->slot, &p) || !kern_is_map(&k) || kern_is_map(&p) ||
      kern_outputs(&p) != 1)
    return TARN_NONE;
  uint32_t slot = slot_leaf(&k, s), map = kern_only_map(&k, slot), ns = k.out_ns, seen;
  bool stops = leaves_narrower(s, &p);
  if (map == TARN_NONE || !same_loops(&k, &p, map, &seen) || !append_epilogue(&p, &k, slot))
    return TARN_NONE;
  uint32_t id = kern_store(&p);
  s->worse = id != TARN_NONE && s->e->host->graph && !stops &&
             !(site_facts(s, s->kid[s->slot].id) & R_SHARED);
  return seen == TARN_NONE ? id : seen_through(s, id, seen, ns);
}

/* ---------------------------------------------------------------- place */

enum { MOST_STAGES = 6 };

typedef struct sharing {
  uint32_t n, k[TARN_MAX_DIMS], p[TARN_MAX_DIMS];
} sharing; /* loops of consumer, of producer */

/* Is dim j of the producer the consumer's loop i in this read? Extents of 1 match each other. */
static bool same_loop(const tarn_imap *m, const tarn_lang *L, uint32_t j, uint32_t i) {
  if (m->in[j] != m->dim[i]) return false;
  return m->in[j] == 1 || ix_loop(L, m->e[j]) == i;
}

static bool all_reads_share(const kern *k, uint32_t slot, uint32_t j, uint32_t i) {
  uint32_t at = 0;
  for (const tarn_read *x; (x = slot_read(k, slot, &at));)
    if (!same_loop(tarn_imap_get(k->L, x->map), k->L, j, i)) return false;
  return true;
}

static void find_sharing(const kern *k, uint32_t slot, const kern *p, sharing *out) {
  uint32_t free_k = kern_free_loops(k), free_p = kern_free_loops(p), used = 0;
  out->n = 0;
  for (uint32_t i = 0; i < free_k; i++)
    for (uint32_t j = 0; j < free_p; j++) {
      if ((used >> j & 1) || !all_reads_share(k, slot, j, i)) continue;
      used |= 1u << j;
      out->k[out->n] = i;
      out->p[out->n++] = j;
      break;
    }
}

/* The loops of `shared` first, the other free ones after them. */
static void order_of(uint32_t *to, const uint32_t *first, uint32_t n, uint32_t nfree) {
  uint32_t used = 0, at = n;
  for (uint32_t i = 0; i < n; i++) to[i] = first[i], used |= 1u << first[i];
  for (uint32_t i = 0; i < nfree; i++)
    if (!(used >> i & 1)) to[at++] = i;
}

/* A read of the producer's result (k already reordered): of its local buffer, the shared dims left
 * out. */
static uint32_t local_read(const kern *k, const uint32_t *to, uint32_t nfree, uint32_t d,
                           uint32_t map) {
  const tarn_imap *m = tarn_imap_get(k->L, map);
  tarn_imap r = *m;
  uint32_t n = 0;
  for (uint32_t i = d; i < m->nin; i++) {
    uint32_t j = i < nfree ? to[i] : i;
    r.in[n] = m->in[j];
    r.e[n++] = m->e[j];
  }
  r.nin = (uint8_t)n;
  return tarn_map_intern(k->L, &r);
}

static bool append_stages(kern *p, const kern *k, uint32_t slot, const uint32_t *to,
                          uint32_t nfree) {
  uint32_t base = p->nstage, id = k->leaf[slot];
  if (base + k->nstage > MOST_STAGES || !kern_append(p, k)) return false;
  for (uint32_t i = base; i < p->nstage; i++)
    for (uint32_t r = 0; r < p->stage[i].nb + p->stage[i].ne; r++) {
      tarn_read *x = &p->stage[i].read[r];
      if (!x->stage && p->leaf[x->src] == id)
        *x = (tarn_read){
            .stage = true, .src = base - 1, .map = local_read(k, to, nfree, p->depth, x->map)};
    }
  return true;
}

/* Elements that a local buffer may have. */
static int64_t buffer_limit(const rsite *s) {
  return (s->e->hw ? tarn_hw_between_of(s->e->hw).whole : 1 << 17) / 4;
}

static uint32_t heavy_stages(const kern *k) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < k->nstage; i++) {
    const kstage *s = &k->stage[i];
    n += s->reducer != TARN_NONE && s->nb > 1 && points(s->red, s->nred) > 1;
  }
  return n;
}

/* p's stages before k's, in the loops that they share; false when there are none worth it. */
static bool join(rsite *s, kern *p, kern *k, uint32_t slot, bool keep, uint32_t *order_k) {
  sharing sh;
  uint32_t order_p[TARN_MAX_DIMS], free_k = kern_free_loops(k), free_p = kern_free_loops(p);
  find_sharing(k, slot, p, &sh);
  order_of(order_k, sh.k, sh.n, free_k);
  order_of(order_p, sh.p, sh.n, free_p);
  if (!kern_reorder(k, order_k, sh.n) || !kern_reorder(p, order_p, sh.n)) return false;
  const kstage *last = kern_last(p);
  if (s->e->host->graph &&
      (points(p->shared, sh.n) <= 1 || points(last->own, last->nown) > buffer_limit(s)))
    return false;
  for (uint32_t i = 0; keep && i < free_p; i++)
    if (order_p[i] != i) return false; /* its result would come out permuted */
  kern_last(p)->out = keep;
  return append_stages(p, k, slot, order_p, free_p);
}

/* The dims of a nest whose loops were put into this order, as they were: a view of it. */
static uint32_t restored(rsite *s, const kern *k, const uint32_t *order, uint32_t nfree,
                         uint32_t id, uint32_t ns) {
  int64_t dim[2 * TARN_MAX_DIMS];
  uint32_t n = kern_out(k, dim);
  tarn_imap m = {.ns = (uint8_t)ns, .n = (uint8_t)n, .nin = (uint8_t)n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < n; i++) m.in[i] = dim[i];
  for (uint32_t i = 0; i < n; i++) m.dim[i < nfree ? order[i] : i] = dim[i];
  for (uint32_t i = 0; i < n; i++) m.e[i] = tarn_ix_var(k->L, i < nfree ? order[i] : i, m.dim);
  return seen_through(s, id, tarn_map_intern(k->L, &m), ns);
}

/* In how many stages is slot read? */
static uint32_t reading_stages(const kern *k, uint32_t slot) {
  uint32_t stages = 0, at = 0;
  while (slot_read(k, slot, &at)) stages |= 1u << (at - 1) / K_READS;
  return (uint32_t)__builtin_popcount(stages);
}

/* Every child is no longer to be inlined, has a kernel of its own, or is read in several stages. */
static bool settled_light(const rsite *s, const kern *k) {
  for (uint32_t i = 0; i < k->nleaf; i++)
    if (site_inlinable(s, k->leaf[i]) && !(site_facts(s, k->leaf[i]) & R_HAS_RED) &&
        reading_stages(k, i) < 2 && k->nstage > 1)
      return false;
  return true;
}

typedef struct fitting {
  rsite *s;
  const kern *k;
  uint32_t slot;
  bool heavy;
} fitting;

/* Is a product of it one of operands that are rounded for an instruction (tf32)? */
static bool rounds_operands(const kern *k) {
  bool any = false;
  for (uint32_t i = 0; i < k->nstage; i++) {
    const tarn_fx *x = tarn_fx_get(k->L, k->stage[i].body);
    if (x->op != TARN_FX_MUL || k->stage[i].reducer == TARN_NONE) continue;
    any |= tarn_fx_get(k->L, x->kid[0])->op == TARN_FX_TF32 ||
           tarn_fx_get(k->L, x->kid[1])->op == TARN_FX_TF32;
  }
  return any;
}
/* Does each of a sum's two operands have loops of its own? An instruction may then multiply them.
 */
static bool is_matrix(const kern *k) {
  const kstage *st = &k->stage[k->nstage - 1];
  uint32_t dims[2], own = (1u << (k->depth + st->nown)) - 1;
  if (st->nb != 2) return false;
  for (uint32_t r = 0; r < 2; r++)
    dims[r] = imap_dims(k->L, tarn_imap_get(k->L, st->read[r].map)) & own;
  return (dims[0] & ~dims[1]) && (dims[1] & ~dims[0]);
}
/* Of a product in two precisions the rounded one is placed where an instruction may compute it, and
 * the reader's product is rounded, if it has one. */
static bool wants_rounded(const kern *p, const kern *k) {
  return is_matrix(p) && (!heavy_stages(k) || rounds_operands(k));
}

/* Operands that the consumer does not have yet: fewer is better. */
static double place_score(const kern *p, void *arg) {
  const fitting *f = arg;
  const rsite *s = f->s;
  uint32_t heavy = heavy_stages(p);
  if (kern_outputs(p) != 1 || (heavy > 0) != f->heavy || !settled(s, p, TARN_NONE)) return -1;
  if (heavy + heavy_stages(f->k) > 2 || p->nstage + f->k->nstage > MOST_STAGES) return -1;
  if (kern_is_map(p) && reading_stages(f->k, f->slot) < 2) return -1; /* inlining does as well */
  if (kern_is_map(p) && (site_facts(s, f->k->leaf[f->slot]) & R_HAS_RED))
    return -1; /* rather what ends in that map */
  if (heavy && heavy_stages(f->k) && !feeds_reduction(f->k, f->slot))
    return -1; /* two products side by side */
  kern k = *f->k, q = *p;
  uint32_t order[TARN_MAX_DIMS];
  if (!join(f->s, &q, &k, f->slot, false, order)) return -1;
  return (double)site_fresh(s, f->k, p) + 0.5 * (rounds_operands(p) != wants_rounded(p, f->k));
}

/* What others read too is written anyway, unless all who read it are in the nest. */
static bool wants_place(rsite *s, const kern *k, uint32_t i) {
  unsigned has = site_facts(s, k->leaf[i]);
  if (site_const(s, k->leaf[i]) || !(has & (R_HAS_RED | R_HAS_MAP))) return false;
  return reading_stages(k, i) > 1 || ((has & R_HAS_RED) && !(has & R_SHARED));
}

/* The kid that a proof says the site is about, opened. */
static bool given_kid(rsite *s, kern *k, kern *p) {
  return site_root(s, k) && s->slot < s->n && site_kid(s, s->slot, p) && kern_outputs(p) == 1;
}

/* The first child to be placed: light ones before products, so that a kernel has one way to grow.
 */
static bool find_place(rsite *s, kern *k, kern *p) {
  if (!s->e->host->graph) return given_kid(s, k, p) && kern_outputs(k) == 1;
  if (!site_root(s, k) || kern_outputs(k) != 1 || !settled_light(s, k)) return false;
  for (int heavy = 0; heavy < 2; heavy++)
    for (uint32_t i = 0; i < k->nleaf; i++) {
      fitting f = {s, k, i, heavy};
      if (!wants_place(s, k, i)) continue;
      for (uint32_t c = 0; c < s->n; c++)
        if (s->kid[c].id == k->leaf[i]) s->slot = c;
      if (site_choose(s, s->slot, p, place_score, &f)) return true;
    }
  return false;
}

bool when_place(rsite *s) {
  kern k, p;
  return find_place(s, &k, &p);
}

uint32_t build_place(rsite *s) {
  kern k, p;
  uint32_t order[TARN_MAX_DIMS];
  if (!find_place(s, &k, &p)) return TARN_NONE;
  uint32_t nfree = kern_free_loops(&k), ns = k.out_ns;
  if (!join(s, &p, &k, slot_leaf(&k, s), false, order)) return TARN_NONE;
  bool same = true;
  for (uint32_t i = 0; i < nfree; i++) same &= order[i] == i;
  p.out_ns = same ? ns : 0;
  uint32_t id = kern_store(&p);
  return same || id == TARN_NONE ? id : restored(s, &p, order, nfree, id, ns);
}

/* ---------------------------------------------------------------- several outputs */

/* Reads of slot become reads at the loops as they are: slot now has the consumer's dims. */
static void kern_identity_read(kern *k, uint32_t slot) {
  kstage *st = &k->stage[0];
  for (uint32_t r = 0; r < st->nb; r++)
    if (reads_slot(slot, &st->read[r])) st->read[r].map = map_same(k->L, st->own, st->nown);
}

static double outputs_score(const kern *p, void *arg) {
  const rsite *s = arg;
  return kern_outputs(p) == 1 && kern_has_reduction(p) && settled(s, p, TARN_NONE)
             ? (double)p->nleaf
             : -1;
}

/* A map of one kernel's result that others need as well. */
static bool find_outputs(rsite *s, kern *k, kern *p) {
  if (!s->e->host->graph) return given_kid(s, k, p) && kern_is_map(k);
  uint32_t found = TARN_NONE;
  if (!site_root(s, k) || !kern_is_map(k)) return false;
  for (uint32_t i = 0; i < s->n; i++) {
    unsigned has = site_const(s, s->kid[i].id) ? 0 : site_facts(s, s->kid[i].id);
    if (!(has & R_HAS_RED)) continue;
    if (found != TARN_NONE || !(has & R_SHARED))
      return false; /* rather the epilogue of the other */
    found = i;
  }
  if (found == TARN_NONE || !settled(s, k, TARN_NONE)) return false;
  s->slot = found;
  return site_choose(s, found, p, outputs_score, s);
}

bool when_outputs(rsite *s) {
  kern k, p;
  return find_outputs(s, &k, &p);
}

/* Two equations: the root is the second output; the opened kernel is the first. The second one is
 * made by a site of its own (outputs-raw), so that each is an instance of a rule. */
uint32_t build_outputs(rsite *s) {
  kern k, p;
  uint32_t order[TARN_MAX_DIMS], seen;
  if (!find_outputs(s, &k, &p)) return TARN_NONE;
  uint32_t slot = slot_leaf(&k, s), ns = p.out_ns, map = kern_only_map(&k, slot);
  if (map == TARN_NONE || !same_loops(&k, &p, map, &seen) || seen != TARN_NONE) return TARN_NONE;
  if (!tarn_map_is_identity(k.L, map)) kern_identity_read(&k, slot);
  uint32_t both = join(s, &p, &k, slot, true, order) ? kern_store(&p) : TARN_NONE;
  if (both == TARN_NONE) return TARN_NONE;
  const rkid *c = &s->kid[s->slot];
  uint32_t inv = tarn_map_invert(s->e->L, map, ns), first = site_nth(s, both, 0);
  uint32_t raw = site_mk(s, TARN_OP_NEST, c->payload, c->leaf, c->n);
  if (inv == TARN_NONE || first == TARN_NONE || raw == TARN_NONE) return TARN_NONE;
  s->also[0] = raw;
  s->also[1] = seen_through(s, first, inv, ns);
  return site_nth(s, both, 1);
}
