/* The site of a match: the nest, its children, which of them are opened. */
#include "rules/lang/site.h"
#include <string.h>

bool site_root(rsite *s, kern *k) {
  uint32_t leaf[R_KIDS];
  for (uint32_t i = 0; i < s->n; i++) leaf[i] = s->kid[i].id;
  return kern_load(k, &s->e->host->nest, tarn_payload_get(s->e->L, s->payload)->id, leaf, s->n);
}

bool site_kid(rsite *s, uint32_t i, kern *k) {
  const rkid *c = &s->kid[i];
  return c->payload != TARN_NONE &&
         kern_load(k, &s->e->host->nest, tarn_payload_get(s->e->L, c->payload)->id, c->leaf, c->n);
}

bool site_open(rsite *s, uint32_t i, kern *k, bool (*fits)(const kern *k)) {
  rkid *c = &s->kid[i];
  uint32_t payload;
  if (c->payload != TARN_NONE) return site_kid(s, i, k) && fits(k);
  if (!s->e->host->graph) return false; /* in a proof the kids that are opened are given */
  if (!kern_open(k, &s->e->host->nest, c->id, K_LEAVES, fits, &payload, &c->leaf, &c->n))
    return false;
  c->op = TARN_OP_NEST;
  c->payload = payload;
  return true;
}

uint32_t site_mk(rsite *s, uint32_t op, uint32_t payload, const uint32_t *kid, uint32_t n) {
  return s->e->host->nest.mk(s->e->host->nest.user, op, payload, kid, n);
}
uint32_t site_nth(rsite *s, uint32_t tuple, int64_t i) {
  return site_mk(s, TARN_OP_NTH, tarn_payload_ints(s->e->L, 1, &i), &tuple, 1);
}
uint32_t site_concat(rsite *s, uint32_t axis, const uint32_t *part, uint32_t n) {
  return site_mk(s, TARN_OP_CONCAT, tarn_payload_ints(s->e->L, 1, &(int64_t){axis}), part, n);
}
unsigned site_facts(const rsite *s, uint32_t id) { return s->e->host->facts(s->e->host->user, id); }
bool site_const(const rsite *s, uint32_t id) { return s->e->host->is_const(s->e->host->user, id); }

uint32_t site_fresh(const rsite *s, const kern *k, const kern *p) {
  uint32_t fresh = 0;
  for (uint32_t i = 0; i < p->nleaf; i++)
    fresh += !site_const(s, p->leaf[i]) && leaf_at(k, p->leaf[i]) == TARN_NONE;
  return fresh;
}

uint32_t leaf_at(const kern *k, uint32_t id) {
  for (uint32_t i = 0; i < k->nleaf; i++)
    if (k->leaf[i] == id) return i;
  return TARN_NONE;
}
uint32_t slot_leaf(const kern *k, const rsite *s) { return leaf_at(k, s->kid[s->slot].id); }

const tarn_read *slot_read(const kern *k, uint32_t slot, uint32_t *at) {
  while (*at < k->nstage * K_READS) {
    const kstage *s = &k->stage[*at / K_READS];
    uint32_t r = (*at)++ % K_READS;
    if (r < s->nb + s->ne && reads_slot(slot, &s->read[r])) return &s->read[r];
  }
  return NULL;
}

int64_t points(const int64_t *extent, uint32_t n) {
  int64_t p = 1;
  for (uint32_t i = 0; i < n; i++)
    if (__builtin_mul_overflow(p, extent[i], &p)) return INT64_MAX;
  return p;
}

bool feeds_reduction(const kern *k, uint32_t slot) {
  for (uint32_t i = 0; i < k->nstage; i++)
    for (uint32_t r = 0; k->stage[i].reducer != TARN_NONE && r < k->stage[i].nb; r++)
      if (reads_slot(slot, &k->stage[i].read[r])) return true;
  return false;
}

bool site_narrows(const rsite *s, uint32_t id, tarn_dtype from) {
  const rhost *h = s->e->host;
  const tarn_machines m = s->e->hw ? tarn_hw_machines(s->e->hw) : (tarn_machines){0};
  tarn_dtype to = tarn_type_get(s->e->L, h->nest.type(h->nest.user, id))->dtype;
  bool accelerated = false;
  for (uint32_t i = 0; i < m.n; i++) accelerated |= !tarn_hw_traits_of(m.hw[i]).any_nest;
  return accelerated && tarn_dtype_size(to) < tarn_dtype_size(from);
}
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

/* ---------------------------------------------------------------- sums */

bool is_sum_of_products(const kern *k) {
  const kstage *s = &k->stage[0];
  if (k->nstage != 1 || s->reducer == TARN_NONE || s->epi != TARN_NONE || s->nb > K_TERM_OPERANDS)
    return false;
  for (uint32_t r = 0; r < s->nb; r++)
    if (s->read[r].stage) return false;
  return tarn_reducer_get(k->L, s->reducer)->kind == TARN_RED_SUM;
}

bool same_form(const kern *a, const kern *b) {
  const kstage *x = &a->stage[0], *y = &b->stage[0];
  return x->body == y->body && x->reducer == y->reducer && x->nb == y->nb && x->nown == y->nown &&
         x->nred == y->nred && memcmp(x->own, y->own, x->nown * sizeof *x->own) == 0 &&
         memcmp(x->red, y->red, x->nred * sizeof *x->red) == 0;
}

bool sum_terms(const tarn_lang *L, uint32_t f, uint32_t *term, uint32_t *n) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (x->op == TARN_FX_ADD)
    return sum_terms(L, x->kid[0], term, n) && sum_terms(L, x->kid[1], term, n);
  if (*n == R_TAPS) return false;
  term[(*n)++] = f;
  return true;
}
