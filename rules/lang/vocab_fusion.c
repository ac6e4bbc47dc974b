/* The vocabulary of rules that compute a kernel where its result is read, (anywhere (= ?y (for
 * (?*i) ?e))): is it worth it for the nest that reads it, and is no other place better? ?y is the
 * read, ?e what is computed. */
#include "rules/lang/loops.h"
#include "rules/lang/site.h"
#include "rules/lang/vocab.h"
#include <math.h>

/* The nest, the kernel that it reads, and its result. */
typedef struct joint {
  rsite s; /* for what it says of classes */
  const kern *k, *p;
  uint32_t slot, id;
} joint;

/* False: the rule is none of two nests. */
static bool joint_of(renv *e, joint *j) {
  const lmatch *m = e->loops;
  if (!e->rule->loops || !e->rule->loops->inner) return false;
  *j = (joint){.s = {.e = e}, .k = &m->k, .p = m->inner, .slot = m->slot};
  j->id = j->k->leaf[j->slot];
  return true;
}

#define ASK(name, answer)                                                                          \
  static bool name(renv *e, const rv *a, rv *out) {                                                \
    joint j;                                                                                       \
    return (void)a, joint_of(e, &j) && rv_bool(out, answer);                                       \
  }

/* Does the map read such a tensor? */
static bool any_read(const joint *j, bool (*is)(const rsite *s, uint32_t id)) {
  bool any = false;
  for (uint32_t i = 0; i < j->p->nleaf; i++) any |= is(&j->s, j->p->leaf[i]);
  return any;
}
static bool has_reduction(const rsite *s, uint32_t id) { return site_facts(s, id) & R_HAS_RED; }
static bool is_reduced(const rsite *s, uint32_t id) {
  return !site_const(s, id) && has_reduction(s, id);
}
static bool is_of_floats(const rsite *s, uint32_t id) {
  const kern_host *h = &s->e->host->nest;
  return tarn_dtype_is_float(tarn_type_get(s->e->L, h->type(h->user, id))->dtype);
}

/* ---------------------------------------------------------------- the nest */

static bool f_is_map(renv *e, const rv *a, rv *out) {
  return (void)a, rv_bool(out, kern_is_map(&e->loops->k));
}
static bool f_one_stage(renv *e, const rv *a, rv *out) {
  return (void)a, rv_bool(out, e->loops->k.nstage == 1);
}

/* ---------------------------------------------------------------- who else could do it */

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

ASK(f_hosted, hosted(&j.s, j.p))
ASK(f_inlinable, site_inlinable(&j.s, j.id))
ASK(f_reads_inlinable, any_read(&j, site_inlinable))
ASK(f_reads_reduced, any_read(&j, is_reduced))
ASK(f_of_reduction, any_read(&j, has_reduction))
ASK(f_moves_dims, tarn_map_invert(e->L, j.p->stage[0].read[0].map, 0) != TARN_NONE)
ASK(f_shared, site_facts(&j.s, j.id) & R_SHARED)

/* ---------------------------------------------------------------- what else the nest reads */

static bool f_alone(renv *e, const rv *a, rv *out) {
  joint j;
  bool alone = true;
  (void)a;
  if (!joint_of(e, &j)) return false;
  for (uint32_t i = 0; i < j.k->nleaf; i++)
    alone &= j.k->leaf[i] == j.id || site_const(&j.s, j.k->leaf[i]);
  return rv_bool(out, alone);
}
ASK(f_brings_in, site_fresh(&j.s, j.k, j.p) > 0)
/* A map that alone reads the kid, each element once. */
static bool reads_once(const rsite *s, const kern *k, uint32_t slot) {
  uint32_t map = kern_only_map(k, slot);
  if (!kern_is_map(k) || (site_facts(s, k->leaf[slot]) & R_SHARED) || map == TARN_NONE)
    return false;
  return tarn_map_invert(k->L, map, 0) != TARN_NONE;
}

ASK(f_read_once, reads_once(&j.s, j.k, j.slot))
ASK(f_feeds_reduction, feeds_reduction(j.k, j.slot))
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
static bool f_repeats(renv *e, const rv *a, rv *out) {
  joint j;
  return (void)a, joint_of(e, &j) && rv_int(out, (int64_t)ceil(repeats(j.k, j.slot)));
}

/* ---------------------------------------------------------------- types */

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
ASK(f_narrows, narrows(&j.s, j.id, j.p, false))
ASK(f_was_narrowed, narrows(&j.s, j.id, j.p, true))
static bool f_is_float(renv *e, const rv *a, rv *out) {
  joint j;
  return (void)a,
         joint_of(e, &j) && rv_bool(out, tarn_dtype_is_float(kern_leaf_type(j.k, j.slot)->dtype));
}
ASK(f_of_integers, !any_read(&j, is_of_floats))
static double bytes_of(const tarn_type *t) {
  return (double)tarn_type_count(t) * (double)tarn_dtype_size(t->dtype);
}
static bool f_made_of_less(renv *e, const rv *a, rv *out) {
  joint j;
  double of = 0;
  (void)a;
  if (!joint_of(e, &j)) return false;
  for (uint32_t i = 0; i < j.p->nleaf; i++) of += bytes_of(kern_leaf_type(j.p, i));
  double made = bytes_of(kern_leaf_type(j.k, j.slot));
  return rv_bool(out, r_is_stored(e, made, of, repeats(j.k, j.slot)));
}
/* Is it made of at most half its bytes, and multiplied by bytes that are no constant? */
static bool weighs_bytes(const joint *j) {
  const kstage *st = &j->k->stage[0];
  double of = 0;
  bool any = false;
  for (uint32_t i = 0; i < j->p->nleaf; i++) of += bytes_of(kern_leaf_type(j->p, i));
  for (uint32_t r = 0; r < st->nb && st->reducer != TARN_NONE; r++) {
    const tarn_read *x = &st->read[r];
    if (x->stage || site_const(&j->s, j->k->leaf[x->src])) continue;
    tarn_dtype t = kern_leaf_type(j->k, x->src)->dtype;
    any |= t == TARN_I8 || t == TARN_U8;
  }
  return any && tarn_hw_traits_of(j->s.e->hw).any_nest &&
         2 * of <= bytes_of(kern_leaf_type(j->k, j->slot));
}
ASK(f_weighs_bytes, weighs_bytes(&j))
/* Does the map but widen what a unit multiplies as it is stored, for a sum of products? */
static bool unit_widens(const joint *j) {
  const kstage *st = &j->k->stage[0], *of = &j->p->stage[0];
  const tarn_fx *x = tarn_fx_get(j->k->L, st->body), *cast = tarn_fx_get(j->p->L, of->body);
  if (st->reducer == TARN_NONE || x->op != TARN_FX_MUL || cast->op != TARN_FX_CAST) return false;
  if (cast->dtype != x->dtype || tarn_fx_get(j->p->L, cast->kid[0])->op != TARN_FX_HOLE)
    return false;
  tarn_dtype t = kern_leaf_type(j->p, of->read[0].src)->dtype;
  uint32_t body = units_product(j->k->L, x->dtype);
  return units_sum(j->s.e, j->k, x->dtype, body, (tarn_dtype[]){t, t});
}
ASK(f_unit_widens, unit_widens(&j))
static bool f_size(renv *e, const rv *a, rv *out) {
  return a->id != TARN_NONE && rv_int(out, tarn_fx_size(e->L, a->id));
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
static bool crowd_add_read(const rsite *s, crowd *c, uint32_t id, uint32_t map) {
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
static bool has_room(const rsite *s, const kern *k, uint32_t id, const kern *p) {
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
ASK(f_has_room, has_room(&j.s, j.k, j.id, j.p))
static bool f_crowded(renv *e, const rv *a, rv *out) {
  return (void)a, rv_bool(out, crowded(&e->loops->k));
}
static bool f_makes_crowded(renv *e, const rv *a, rv *out) {
  const kern *made = e->loops->made;
  return (void)a, made && rv_bool(out, crowded(made));
}
ASK(f_few, is_small(j.p))

/* ---------------------------------------------------------------- sums of sums */

/* Terms of the expression that are a product as it stands, each read once an element. */
static uint32_t bare_products(const rsite *s, const kern *k) {
  uint32_t term[R_TAPS], n = 0, found = 0;
  const kstage *st = &k->stage[0];
  if (!sum_terms(k->L, st->body, term, &n)) return 0;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_fx *x = tarn_fx_get(k->L, term[i]);
    const tarn_read *r = x->op == TARN_FX_HOLE ? &st->read[x->hole] : NULL;
    if (!r || r->stage || site_const(s, k->leaf[r->src]) ||
        !(site_facts(s, k->leaf[r->src]) & R_HAS_RED))
      continue;
    found += tarn_map_invert(k->L, r->map, 0) != TARN_NONE;
  }
  return found;
}

/* The first two products that k reads are of one form and read a tensor each in its own place: the
 * terms may be those of a window. */
static bool may_be_window(const rsite *s, const kern *k) {
  kern p[2];
  uint32_t n = 0, payload, nkid;
  const uint32_t *kid;
  for (uint32_t i = 0; i < k->nleaf && n < 2; i++)
    n += !site_const(s, k->leaf[i]) &&
         kern_open(&p[n], &s->e->host->nest, k->leaf[i], K_TERM_OPERANDS, is_sum_of_products,
                   &payload, &kid, &nkid);
  if (n < 2 || !same_form(&p[0], &p[1])) return false;
  for (uint32_t j = 0; j < p[0].stage[0].nb; j++) {
    const tarn_read *a = &p[0].stage[0].read[j], *b = &p[1].stage[0].read[j];
    if (p[0].leaf[a->src] == p[1].leaf[b->src] && a->map != b->map) return true;
  }
  return false;
}

/* Where the sum of both reads more than a kernel may, only a window can still become one. */
static bool sum_fits(const rsite *s, const kern *k, const kern *p) {
  uint32_t n = k->nleaf - 1;
  for (uint32_t i = 0; i < p->nleaf; i++) n += leaf_at(k, p->leaf[i]) == TARN_NONE;
  return n <= TARN_MAX_OPERANDS || may_be_window(s, p) || may_be_window(s, k);
}

/* Is it one term of a sum, each element once, and a sum itself, and are two of all terms products?
 */
static bool f_term_of_products(renv *e, const rv *a, rv *out) {
  joint j;
  uint32_t term[R_TAPS], n = 0, at = TARN_NONE;
  (void)a;
  if (!joint_of(e, &j)) return false;
  const kstage *st = &j.k->stage[0];
  if (tarn_fx_get(e->L, j.p->stage[0].body)->op != TARN_FX_ADD || !bare_products(&j.s, j.p) ||
      !sum_terms(e->L, st->body, term, &n))
    return rv_bool(out, false);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_fx *x = tarn_fx_get(e->L, term[i]);
    if (x->op != TARN_FX_HOLE || !reads_slot(j.slot, &st->read[x->hole])) continue;
    if (at != TARN_NONE) return rv_bool(out, false);
    at = x->hole;
  }
  return rv_bool(out, at != TARN_NONE && tarn_map_invert(e->L, st->read[at].map, 0) != TARN_NONE &&
                          bare_products(&j.s, j.k) + bare_products(&j.s, j.p) > 1 &&
                          sum_fits(&j.s, j.k, j.p));
}

#define HERE(name, sig, fn, doc)                                                                   \
  { name, sig, fn, 0, doc }
/* Asked again whenever the graph changes: of what several kernels may do. */
#define ASKS(name, sig, fn, doc)                                                                   \
  { name, sig, fn, TARN_EG_READS_GRAPH, doc }
const rfun rfun_fusion_table[] = {
    HERE("is-map", ":b", f_is_map, "the nest is one elementwise stage"),
    HERE("one-stage", ":b", f_one_stage, "the nest has one stage"),
    HERE("crowded", ":b", f_crowded, "the nest has more than 16 operands"),
    HERE("makes-crowded", ":b", f_makes_crowded,
         "what becomes of the nest has; of :subsume alone, else without a value"),
    HERE("size", "e:i", f_size, "operators and operands of the expression"),
    ASKS("inlinable", "e:b", f_inlinable,
         "what a map makes, no constant; nothing that several read and another kernel can write"),
    ASKS("shared", "e:b", f_shared, "several kernels read the tensor"),
    ASKS("hosted", "e:b", f_hosted,
         "the map can be the last thing that a kernel does whose result nothing else needs"),
    ASKS("reads-inlinable", "e:b", f_reads_inlinable, "the map reads what is inlinable itself"),
    ASKS("reads-reduced", "e:b", f_reads_reduced, "the map reads what a reduction makes"),
    ASKS("of-reduction", "e:b", f_of_reduction, "a reduction makes the tensor, or one of those"),
    HERE("moves-dims", "e:b", f_moves_dims, "the view has each element once"),
    ASKS("alone", "e:b", f_alone, "all else that the nest reads is constant"),
    ASKS("brings-in", "e:b", f_brings_in, "the map reads what the nest does not, no constant"),
    ASKS("read-once", "e:b", f_read_once,
         "the nest, a map, alone reads the tensor, each element once"),
    HERE("feeds-reduction", "e:b", f_feeds_reduction, "a reduction of the nest goes over it"),
    HERE("repeats", "e:i", f_repeats, "how often the nest reads an element, rounded up"),
    ASKS("narrows", "e:b", f_narrows,
         "of a smaller type than something that it is made of, which an accelerator may store"),
    ASKS("was-narrowed", "e:b", f_was_narrowed,
         "made of something of a smaller type, which an accelerator may have stored"),
    HERE("is-float", "e:b", f_is_float, "the tensor is one of floats"),
    HERE("of-integers", "e:b", f_of_integers, "the map reads integers alone"),
    HERE("made-of-less", "e:b", f_made_of_less,
         "no constant for L2, made of less than half its bytes, and read at most four times"),
    HERE("weighs-bytes", "e:b", f_weighs_bytes,
         "made of at most half its bytes, in a product with bytes that are no constant"),
    HERE("unit-widens", "e:b", f_unit_widens,
         "widened elements of a type that a unit multiplies as they are, in a sum of products"),
    ASKS("has-room", "e:b", f_has_room,
         "the nest has at most 16 operands with those of the map and of small maps that it reads"),
    HERE("few-operands", "e:b", f_few, "the map has at most four"),
    ASKS("term-of-products", "e:b", f_term_of_products,
         "a sum that is a term of the nest's sum, each element once; two terms are products"),
};
const uint32_t rfun_fusion_count = sizeof rfun_fusion_table / sizeof *rfun_fusion_table;
