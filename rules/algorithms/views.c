/* The builder `split-concat`: a map of a concatenation is the concatenation of maps (R22). In C
 * because it opens a concatenation of any number of parts, and makes a nest of each. */
#include "rules/algorithms/build.h"
#include <string.h>

/* The loop that walks along the concatenated axis in every read of slot, or TARN_NONE. */
static uint32_t concat_loop(const kern *k, uint32_t slot, uint32_t axis) {
  uint32_t loop = TARN_NONE, at = 0;
  for (const tarn_read *r; (r = slot_read(k, slot, &at));) {
    uint32_t l = ix_loop(k->L, tarn_imap_get(k->L, r->map)->e[axis]), dim;
    if (l == TARN_NONE || (loop != TARN_NONE && loop != l)) return TARN_NONE;
    if (!loop_along(k->L, r->map, l, &dim) || dim != axis) return TARN_NONE;
    loop = l;
  }
  return loop;
}

/* k restricted to loop in [from, from + n), reading part instead of slot. */
static uint32_t part_of(const kern *whole, uint32_t slot, uint32_t axis, uint32_t loop,
                        int64_t from, int64_t n, uint32_t part) {
  kern k = *whole;
  kstage *st = &k.stage[0];
  uint32_t in = map_range(k.L, st->own, st->nown, loop, from, n), leaf = kern_leaf(&k, part);
  if (leaf == TARN_NONE) return TARN_NONE;
  st->own[loop] = n;
  for (uint32_t r = 0; r < st->nb; r++) {
    tarn_read *x = &st->read[r];
    if ((x->map = tarn_map_compose(k.L, in, x->map)) == TARN_NONE) return TARN_NONE;
    if (reads_slot(slot, x))
      *x = (tarn_read){.src = leaf, .map = map_stretched(k.L, x->map, loop, n, axis)};
  }
  return kern_store(&k);
}

/* Wanted where the parts are results of kernels, which can then do the map themselves; not where
 * the kernel of another operand can do it whole. */
bool when_split_concat(rsite *s) {
  const rkid *c = &s->kid[s->slot];
  for (uint32_t i = 0; i < s->n; i++)
    if (i != s->slot && !site_const(s, s->kid[i].id) &&
        (site_facts(s, s->kid[i].id) & (R_HAS_RED | R_HAS_MAP)))
      return false;
  for (uint32_t i = 0; i < c->n; i++)
    if (site_facts(s, c->leaf[i]) & (R_HAS_RED | R_HAS_MAP)) return true;
  return false;
}

uint32_t build_split_concat(rsite *s) {
  kern k;
  const rhost *h = s->e->host;
  const rkid *c = &s->kid[s->slot];
  uint32_t parts[R_KIDS];
  if (!site_root(s, &k) || !kern_is_map(&k)) return TARN_NONE;
  uint32_t axis = (uint32_t)tarn_payload_get(k.L, c->payload)->ints[0], slot = slot_leaf(&k, s);
  uint32_t loop = concat_loop(&k, slot, axis);
  int64_t from = 0;
  if (loop == TARN_NONE) return TARN_NONE;
  for (uint32_t i = 0; i < c->n; i++) {
    int64_t n = tarn_type_get(k.L, h->nest.type(h->nest.user, c->leaf[i]))->dim[axis];
    if ((parts[i] = part_of(&k, slot, axis, loop, from, n, c->leaf[i])) == TARN_NONE)
      return TARN_NONE;
    from += n;
  }
  return site_concat(s, loop, parts, c->n);
}
