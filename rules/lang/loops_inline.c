/* Rules over what another kernel computes, (anywhere (for (?*i) ?e)): every read of its result is
 * replaced, by index maps and scalar expressions that are substituted. What is read beside the
 * result is its fill: the guard goes inside where the expression of some fills is that, else a
 * selection says which. */
#include "rules/lang/loops.h"
#include "rules/lang/site.h"
#include <string.h>

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

uint32_t loops_inlined(kern *k, kstage *s, bool body, const kern *p, uint32_t map) {
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

/* ---------------------------------------------------------------- every read */

/* Those in the body (or epilogue) of a stage. */
static bool replace_in(renv *e, const lx *by, uint32_t stage, bool body) {
  lmatch *m = e->loops;
  kstage *s = &m->k.stage[stage];
  uint32_t with[K_READS + 1], n = body ? s->nb : s->ne, holes = n + !body;
  uint32_t *f = body ? &s->body : &s->epi;
  for (uint32_t i = 0; i < holes; i++) with[i] = TARN_NONE;
  for (uint32_t i = 0; i < n; i++) {
    tarn_read r = s->read[body ? i : s->nb + i];
    if (!reads_slot(m->slot, &r)) continue;
    loops_at_read(m, stage, body, i);
    if ((with[i + !body] = loops_in_place(e, by)) == TARN_NONE) return false;
  }
  if (n && *f != TARN_NONE) *f = tarn_fx_subst(m->k.L, *f, with, holes);
  return true;
}
static bool replace_reads(renv *e, const rule *r) {
  for (uint32_t i = 0; i < 2 * e->loops->k.nstage; i++)
    if (!replace_in(e, r->loops->right, i / 2, i % 2 == 0)) return false;
  return true;
}
static bool is_true(renv *e, const rx *c) {
  rv v;
  return c && rx_eval(e, c, &v) && v.i;
}

/* ---------------------------------------------------------------- further kernels */

typedef struct also {
  renv *e;
  const rule *r;
} also;
static bool goes_along(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n) {
  also *a = arg;
  kern *p = a->e->loops->inner;
  return kern_load(p, &a->e->host->nest, tarn_payload_get(a->e->L, payload)->id, kid, n) &&
         kern_is_map(p) && loops_bind_inner(a->e, a->r) &&
         (!a->e->host->graph || is_true(a->e, a->r->others));
}
/* Opens another kernel that the nest reads and that is to go the same way; in a proof one that was
 * opened. */
static bool open_along(rsite *s, const rule *r, rkid *k) {
  renv *e = s->e;
  const kern_host *h = &e->host->nest;
  also a = {e, r};
  if (!e->host->graph) return k->payload != TARN_NONE && goes_along(&a, k->payload, k->leaf, k->n);
  return h->open(h->user, k->id, TARN_OP_NEST, goes_along, &a, &k->payload, &k->leaf, &k->n) &&
         goes_along(&a, k->payload, k->leaf, k->n);
}
static bool replace_others(rsite *s, const rule *r) {
  lmatch *m = s->e->loops;
  for (uint32_t i = 0; i < s->n; i++) {
    rkid *k = &s->kid[i], had = *k;
    m->slot = leaf_at(&m->k, k->id);
    if (i == s->slot || m->slot == TARN_NONE) continue;
    if (!open_along(s, r, k)) *k = had;
    else if (k->op = TARN_OP_NEST, !replace_reads(s->e, r)) return false;
  }
  return true;
}

uint32_t loops_replace_inner(rsite *s, const rule *r) {
  renv *e = s->e;
  lmatch *m = e->loops;
  kern was = m->k, inner = *m->inner;
  uint32_t slot = m->slot;
  rv saved[R_ATTRS];
  memcpy(saved, e->attr, sizeof saved);
  bool graph = e->host->graph, others = r->along && (!graph || is_true(e, r->along));
  m->k.wide = r->wide;
  bool made = replace_reads(e, r) && (!others || replace_others(s, r));
  uint32_t id = made ? kern_store(&m->k) : TARN_NONE;
  kern now = m->k;
  m->k = was, *m->inner = inner, m->slot = slot, m->made = &now;
  memcpy(e->attr, saved, sizeof saved);
  s->replaced = r->subsumes || (graph && id != TARN_NONE && is_true(e, r->subsumes_if));
  m->made = NULL;
  return id;
}
