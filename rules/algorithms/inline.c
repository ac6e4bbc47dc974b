/* The builder `inline`: computes a map where it is read, by substituting index maps and scalar
 * expressions, and decides when that is useful. In C because it opens a nest that another reads, of
 * which the notation of loops knows nothing but its values. */
#include "rules/algorithms/build.h"

/* A constant c such that body is `want` where every operand is c (or its own fill): then the guard
 * can move inside. */
static bool fixpoint(kern *k, const kern *p, uint32_t want, uint32_t *fill) {
  static const double tries[] = {0, 1, -1.0 / 0.0, 1.0 / 0.0};
  const kstage *ps = &p->stage[0];
  for (uint32_t t = 0; t < 5; t++) {
    for (uint32_t j = 0; j < ps->nb; j++) {
      const tarn_imap *m = tarn_imap_get(k->L, ps->read[j].map);
      tarn_dtype dt = kern_leaf_type(p, ps->read[j].src)->dtype;
      const tarn_fx *w = tarn_fx_get(k->L, want);
      if (m->nguard) fill[j] = m->fill;
      else if (t == 0 && w->dtype == dt) fill[j] = want;
      else fill[j] = tarn_fx_const(k->L, dt, tries[t ? t - 1 : 0]);
    }
    if (tarn_fx_subst(k->L, ps->body, fill, ps->nb) == want) return true;
  }
  return false;
}

/* A read that is true where the guards of map hold, over no tensor: a scalar under those guards. */
static bool mask_read(kern *k, uint32_t map, tarn_read *out) {
  tarn_imap m = *tarn_imap_get(k->L, map);
  const kern_host *h = k->host;
  tarn_ctx *cx = tarn_lang_ctx(k->L);
  tarn_tensor *yes = tarn_tensor_new(cx, TARN_BOOL, 0, NULL);
  tarn_tensor_set(yes, 0, (tarn_value){.i = 1});
  uint32_t type = tarn_type_tensor(k->L, TARN_BOOL, 0, 0, NULL);
  uint32_t p = tarn_payload_intern(
      k->L, &(tarn_payload){.kind = TARN_P_CONST, .name = "true", .type = type, .tensor = yes});
  uint32_t id = h->mk(h->user, TARN_OP_CONST, p, NULL, 0),
           leaf = id == TARN_NONE ? id : kern_leaf(k, id);
  if (leaf == TARN_NONE) return false;
  m.nin = 0;
  m.fill = tarn_fx_iconst(k->L, TARN_BOOL, 0);
  *out = (tarn_read){.src = leaf, .map = tarn_map_intern(k->L, &m)};
  return true;
}

/* The producer's expression where the consumer reads it through map; its operands become reads of
 * s. */
static uint32_t inlined(kern *k, kstage *s, bool body, const kern *p, uint32_t map) {
  const kstage *ps = &p->stage[0];
  const tarn_imap *m = tarn_imap_get(k->L, map);
  uint32_t fill[K_READS], with[K_READS], want = m->fill;
  bool guard = m->nguard > 0, fix = guard && fixpoint(k, p, want, fill);
  tarn_read mask = {0};
  if (guard && !fix && !mask_read(k, map, &mask)) return TARN_NONE;
  for (uint32_t j = 0; j < ps->nb; j++) {
    const tarn_imap *in = tarn_imap_get(k->L, ps->read[j].map);
    tarn_dtype dt = kern_leaf_type(p, ps->read[j].src)->dtype;
    uint32_t f = fix ? fill[j] : in->nguard ? in->fill : tarn_fx_const(k->L, dt, 0);
    uint32_t c = tarn_map_compose(k->L, guard ? map_with_fill(k->L, map, f) : map, ps->read[j].map);
    uint32_t leaf = c == TARN_NONE ? c : kern_leaf(k, p->leaf[ps->read[j].src]);
    if (leaf == TARN_NONE) return TARN_NONE;
    uint32_t at = kern_add_read(s, body, (tarn_read){.src = leaf, .map = c});
    if (at == TARN_NONE) return TARN_NONE;
    with[j] = tarn_fx_hole(k->L, at + !body);
  }
  uint32_t f = tarn_fx_subst(k->L, ps->body, with, ps->nb);
  if (!guard || fix) return f;
  uint32_t at = kern_add_read(s, body, mask);
  return at == TARN_NONE ? at
                         : tarn_fx_op(k->L, TARN_FX_SEL, tarn_fx_hole(k->L, at + !body), f, want);
}

/* Replaces the reads of slot in the body (or epilogue) of a stage. */
static bool inline_part(kern *k, kstage *s, bool body, uint32_t slot, const kern *p) {
  uint32_t with[K_READS + 1], n = body ? s->nb : s->ne, holes = n + !body;
  uint32_t *f = body ? &s->body : &s->epi;
  for (uint32_t i = 0; i < holes; i++) with[i] = TARN_NONE;
  for (uint32_t i = 0; i < n; i++) {
    tarn_read r = s->read[body ? i : s->nb + i];
    if (!reads_slot(slot, &r)) continue;
    if ((with[i + !body] = inlined(k, s, body, p, r.map)) == TARN_NONE) return false;
  }
  if (n && *f != TARN_NONE) *f = tarn_fx_subst(k->L, *f, with, holes);
  return true;
}

static bool kern_inline(kern *k, uint32_t slot, const kern *p) {
  for (uint32_t i = 0; i < k->nstage; i++)
    if (!inline_part(k, &k->stage[i], true, slot, p) ||
        !inline_part(k, &k->stage[i], false, slot, p))
      return false;
  return true;
}

/* ---------------------------------------------------------------- what may be inlined */

uint32_t kern_only_map(const kern *k, uint32_t slot) {
  uint32_t map = TARN_NONE, at = 0;
  for (const tarn_read *x; (x = slot_read(k, slot, &at)); map = x->map)
    if (map != TARN_NONE && map != x->map) return TARN_NONE;
  return map;
}

/* Not what several uses read and another kernel can write: reading it again costs no more than its
 * operands. */
bool site_inlinable(const rsite *s, uint32_t id) {
  unsigned has = site_facts(s, id);
  bool written = (has & R_SHARED) && (has & R_EPILOGUE);
  return (has & R_HAS_MAP) && !written && !site_const(s, id);
}

/* A kernel of its own can do map p: it reads the result of one that others do not need, element by
 * element. */
static bool hosted(const rsite *s, const kern *p) {
  for (uint32_t r = 0; r < p->stage[0].nb; r++) {
    const tarn_read *x = &p->stage[0].read[r];
    uint32_t id = p->leaf[x->src];
    unsigned has = site_facts(s, id);
    if (!site_const(s, id) && (has & (R_HAS_RED | R_EPILOGUE)) && !(has & R_SHARED) &&
        tarn_map_invert(p->L, x->map, 0) != TARN_NONE)
      return true;
  }
  return false;
}

/* A map that alone reads the kid, each element once. */
static bool reads_once(const rsite *s, const kern *k, uint32_t slot) {
  uint32_t map = kern_only_map(k, slot);
  if (!kern_is_map(k) || (site_facts(s, k->leaf[slot]) & R_SHARED) || map == TARN_NONE)
    return false;
  return tarn_map_invert(k->L, map, 0) != TARN_NONE;
}

/* And nothing else that is not constant: it need not stand without what it reads in it. With
 * several operands, which of them becomes whose epilogue is a choice. */
static bool next_in_line(const rsite *s, const kern *k, uint32_t slot) {
  for (uint32_t i = 0; i < k->nleaf; i++)
    if (i != slot && !site_const(s, k->leaf[i])) return false;
  return reads_once(s, k, slot);
}
/* Is what p makes of a type with fewer bytes than something that it reads, or (back) the other way
 * round? An accelerator may store the narrower one, or has stored it. */
static bool narrows(const rsite *s, uint32_t id, const kern *p, bool back) {
  const kern_host *h = &s->e->host->nest;
  bool does = false;
  for (uint32_t i = 0; i < p->nleaf; i++) {
    uint32_t to = back ? p->leaf[i] : id, from = back ? id : p->leaf[i];
    does |= !site_const(s, p->leaf[i]) &&
            site_narrows(s, to, tarn_type_get(p->L, h->type(h->user, from))->dtype);
  }
  return does;
}

/* ---------------------------------------------------------------- many operands
 * A sum of n terms has n(n-1)/2 nests, one for each way to begin and to end. Of those with many
 * operands only the longest stand, where no other kernel could do what is inlined; and the small
 * maps that they read, the terms, are inlined all at once. */
enum { MANY = 16, FEW = 4 };

static bool crowded(const kern *k) { return k->nleaf > MANY || k->stage[0].nb > MANY; }

/* A map of few operands. */
static bool is_small(const kern *k) {
  return kern_is_map(k) && k->nleaf <= FEW && k->stage[0].nb <= FEW;
}

/* Distinct reads, of which there are as many as tensors read, or more; and those whose small map
 * was looked for, so that each is opened once. */
typedef struct readset {
  uint32_t n, id[TARN_MAX_OPERANDS + 1], map[TARN_MAX_OPERANDS + 1];
} readset;
typedef struct crowd {
  readset all, opened;
} crowd;

static bool has_read(const readset *c, uint32_t id, uint32_t map) {
  uint32_t i = 0;
  while (i < c->n && (c->id[i] != id || c->map[i] != map)) i++;
  return i < c->n;
}
/* False: there is no room. */
static bool add_read(readset *c, uint32_t id, uint32_t map) {
  if (has_read(c, id, map)) return true;
  if (c->n > TARN_MAX_OPERANDS) return false;
  c->id[c->n] = id, c->map[c->n] = map;
  return ++c->n <= TARN_MAX_OPERANDS;
}

/* A read through map: of what a small map reads, where it is of one. */
static bool crowd_add_read(rsite *s, crowd *c, uint32_t id, uint32_t map) {
  kern p;
  if (has_read(&c->opened, id, map)) return true;
  add_read(&c->opened, id, map);
  uint32_t payload, n;
  const uint32_t *kid;
  bool small = site_inlinable(s, id) &&
               kern_open(&p, &s->e->host->nest, id, FEW, is_small, &payload, &kid, &n);
  if (!small) return add_read(&c->all, id, map);
  for (uint32_t j = 0; j < p.stage[0].nb; j++) {
    const tarn_read *r = &p.stage[0].read[j];
    uint32_t all = tarn_map_compose(p.L, map, r->map);
    if (!add_read(&c->all, p.leaf[r->src], all)) return false;
  }
  return true;
}

/* Is there room for p in k where it reads `id`, and for the small maps that they read? */
static bool has_room(rsite *s, const kern *k, uint32_t id, const kern *p) {
  crowd c;
  const kstage *ks = &k->stage[0], *ps = &p->stage[0];
  bool room = true;
  if (k->nleaf + p->nleaf <= MANY && ks->nb + ps->nb <= MANY) return true;
  c.all.n = c.opened.n = 0;
  for (uint32_t i = 0; i < ks->nb && room; i++) {
    const tarn_read *r = &ks->read[i];
    uint32_t from = k->leaf[r->src];
    if (from != id) room = crowd_add_read(s, &c, from, r->map);
    for (uint32_t j = 0; from == id && j < ps->nb && room; j++) {
      uint32_t all = tarn_map_compose(k->L, r->map, ps->read[j].map);
      room = all == TARN_NONE || crowd_add_read(s, &c, p->leaf[ps->read[j].src], all);
    }
  }
  return room;
}

/* Opens kid i of the site: a small map that the root alone reads, that reads no more such maps and
 * that no other kernel can do. */
static bool open_term(rsite *s, uint32_t i, const kern *k, uint32_t leaf, kern *q) {
  rkid had = s->kid[i];
  bool term = site_inlinable(s, had.id) && reads_once(s, k, leaf) && site_open(s, i, q, is_small) &&
              !hosted(s, q);
  for (uint32_t j = 0; term && j < q->nleaf; j++) term = !site_inlinable(s, q->leaf[j]);
  if (!term) s->kid[i] = had;
  return term;
}

/* The other terms of a crowded map; in a proof those that were opened. */
static bool inline_terms(rsite *s, kern *k) {
  bool graph = s->e->host->graph;
  for (uint32_t i = 0; i < s->n; i++) {
    kern q;
    uint32_t leaf = leaf_at(k, s->kid[i].id);
    if (i == s->slot || leaf == TARN_NONE) continue;
    bool opened = graph ? open_term(s, i, k, leaf, &q) : site_kid(s, i, &q);
    if (opened && !kern_inline(k, leaf, &q)) return false;
  }
  return true;
}

/* ---------------------------------------------------------------- inlined */

static uint32_t inline_slot(rsite *s, bool wide) {
  kern k, p;
  if (!site_root(s, &k) || !site_kid(s, s->slot, &p) || !kern_is_map(&p)) return TARN_NONE;
  uint32_t slot = slot_leaf(&k, s);
  bool graph = s->e->host->graph,
       line = graph && next_in_line(s, &k, slot) && !narrows(s, s->kid[s->slot].id, &p, false);
  bool lone = graph && !line && reads_once(s, &k, slot) && !hosted(s, &p);
  bool terms = !wide && (!graph || (lone && crowded(&k) && is_small(&p)));
  k.wide = wide;
  if (!kern_inline(&k, slot, &p) || (terms && !inline_terms(s, &k))) return TARN_NONE;
  uint32_t id = kern_store(&k);
  s->replaced = id != TARN_NONE && (line || (lone && crowded(&k)));
  return id;
}
uint32_t build_inline(rsite *s) { return inline_slot(s, false); }
/* However many terms it has: when they are products over a window, they become one. */
uint32_t build_inline_sum(rsite *s) { return inline_slot(s, true); }

/* ---------------------------------------------------------------- when to inline */

/* What several read is computed in each of them only if that takes few operations: in a recurrence
 * each step would have a form for each number of steps before it. */
static bool long_and_shared(const rsite *s, uint32_t id, const kern *p) {
  enum { SHORT = 12 };
  return (site_facts(s, id) & R_SHARED) && tarn_fx_size(p->L, p->stage[0].body) > SHORT;
}

/* Is k, with p where it now reads `slot`, wanted? Not when k reads other results too, p brings in
 * more, and p can be the last thing that a kernel of its own does: sums of many branches would have
 * a form for each subset of them. */
static bool wants_inline(rsite *s, const kern *k, uint32_t id, const kern *p) {
  uint32_t others = 0;
  if (!site_inlinable(s, id) || long_and_shared(s, id, p) || !has_room(s, k, id, p)) return false;
  for (uint32_t i = 0; i < k->nleaf; i++) others += k->leaf[i] != id && !site_const(s, k->leaf[i]);
  return others == 0 || site_fresh(s, k, p) == 0 || !hosted(s, p) || narrows(s, id, p, true);
}

/* Into a map: the first child that can be, so that chains and trees give one node for each prefix
 * of the walk, not one for each subset. */
bool when_inline_map(rsite *s) {
  kern k, p;
  uint32_t id = s->kid[s->slot].id;
  bool wanted = site_inlinable(s, id) && site_root(s, &k) && site_kid(s, s->slot, &p) &&
                wants_inline(s, &k, id, &p);
  for (uint32_t i = 0; i < s->slot && wanted; i++) {
    rkid had = s->kid[i];
    wanted = !site_inlinable(s, had.id) || !site_open(s, i, &p, kern_is_map) ||
             !wants_inline(s, &k, had.id, &p);
    s->kid[i] = had;
  }
  return wanted;
}

/* Points of the consumer's loops for one element of the producer: how often it would be computed.
 */
static double repeats(const kern *k, uint32_t slot) {
  double most = 0;
  uint32_t at = 0;
  for (const tarn_read *x; (x = slot_read(k, slot, &at));) {
    const tarn_imap *m = tarn_imap_get(k->L, x->map);
    double points = 1, elements = 1;
    for (uint32_t d = 0; d < m->n; d++) points *= (double)m->dim[d];
    for (uint32_t d = 0; d < m->nin; d++) elements *= (double)m->in[d];
    if (elements > 0 && points / elements > most) most = points / elements;
  }
  return most;
}

/* Into a reduction: a producer whose own operands need no further inlining, and either it is read
 * once an element, or it could not be the epilogue of another kernel instead. */
bool when_inline_reduction(rsite *s) {
  kern k, p;
  uint32_t id = s->kid[s->slot].id;
  if (!site_inlinable(s, id) || !site_root(s, &k) || !site_kid(s, s->slot, &p) ||
      long_and_shared(s, id, &p))
    return false;
  bool after_reduction = false;
  for (uint32_t i = 0; i < p.nleaf; i++) {
    if (site_inlinable(s, p.leaf[i])) return false;
    after_reduction |= !site_const(s, p.leaf[i]) && (site_facts(s, p.leaf[i]) & R_HAS_RED);
  }
  return !after_reduction || repeats(&k, slot_leaf(&k, s)) <= 1;
}

static double bytes_of(const tarn_type *t) {
  return (double)tarn_type_count(t) * (double)tarn_dtype_size(t->dtype);
}
/* Into the reduction that reads it, or into the constant map behind it, so that a constant that is
 * made in several steps is made in one. */
bool when_inline_stored(rsite *s) {
  kern k, p;
  uint32_t id = s->kid[s->slot].id;
  if (s->e->host->graph && !site_const(s, id)) return false;
  if (!site_root(s, &k) || !site_kid(s, s->slot, &p) || !kern_is_map(&p)) return false;
  bool made_here = true;
  for (uint32_t i = 0; i < k.nleaf; i++) made_here &= site_const(s, k.leaf[i]);
  if (s->e->host->graph && made_here != kern_is_map(&k)) return false;
  const kern_host *h = &s->e->host->nest;
  double made = bytes_of(tarn_type_get(k.L, h->type(h->user, id))), stored = 0;
  for (uint32_t i = 0; i < p.nleaf; i++) stored += bytes_of(kern_leaf_type(&p, i));
  return r_is_stored(s->e, made, stored, repeats(&k, slot_leaf(&k, s)));
}

/* Into the reduction that reads it: what computes something, no padding of what units read. */
bool when_inline_rest(rsite *s) {
  kern p;
  return site_kid(s, s->slot, &p) && kern_is_map(&p) &&
         tarn_fx_get(p.L, p.stage[0].body)->op != TARN_FX_HOLE && when_inline_reduction(s);
}
