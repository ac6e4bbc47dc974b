/* Merges products that share an operand into slices of one (R67, R68): X·Wa, X·Wb = slices of
 * X·[Wa Wb].
 *
 * All operands except the shared one must be constant. Then no product can depend on another, and
 * the concatenation costs nothing at run time. In C because it finds the other users of an operand,
 * of any number, and the left sides of the notation of loops are a nest and one kernel that it
 * reads. */
#include "rules/algorithms/build.h"
#include <string.h>

enum { GROUP = 8 };

typedef struct group {
  uint32_t n, id[GROUP]; /* members as nodes, in order */
  kern k[GROUP];
  uint32_t loop; /* the own loop along which they are joined */
} group;

static bool joinable(const kern *k) {
  return k->nstage == 1 && k->stage[0].reducer != TARN_NONE && k->stage[0].nred > 0;
}

/* The child that is not constant, if there is just one; its leaf number. */
static uint32_t shared_leaf(rsite *s, const kern *k) {
  uint32_t found = TARN_NONE;
  for (uint32_t i = 0; i < k->nleaf; i++) {
    if (site_const(s, k->leaf[i])) continue;
    if (found != TARN_NONE) return TARN_NONE;
    found = i;
  }
  return found;
}

/* The last own loop that the shared operand does not use. */
static uint32_t free_loop(const kern *k, uint32_t leaf) {
  const kstage *st = &k->stage[0];
  uint32_t used = 0, at = 0;
  for (const tarn_read *r; (r = slot_read(k, leaf, &at));) used |= map_uses(k->L, r->map);
  for (uint32_t i = st->nown; i-- > 0;)
    if (!(used >> i & 1) && st->own[i] > 1) return i;
  return TARN_NONE;
}

bool loop_along(const tarn_lang *L, uint32_t map, uint32_t loop, uint32_t *dim) {
  const tarn_imap *m = tarn_imap_get(L, map);
  *dim = TARN_NONE;
  for (uint32_t i = 0; i < m->nguard; i++)
    if (tarn_ix_dims(L, m->guard[i].e) >> loop & 1) return false;
  for (uint32_t i = 0; i < m->nin; i++) {
    if (!(tarn_ix_dims(L, m->e[i]) >> loop & 1)) continue;
    if (ix_loop(L, m->e[i]) != loop || m->in[i] != m->dim[loop] || *dim != TARN_NONE) return false;
    *dim = i;
  }
  return true;
}

uint32_t map_stretched(tarn_lang *L, uint32_t map, uint32_t loop, int64_t extent, uint32_t dim) {
  tarn_imap m = *tarn_imap_get(L, map);
  m.dim[loop] = extent;
  if (dim != TARN_NONE) {
    m.in[dim] = extent;
    m.e[dim] = tarn_ix_var(L, loop, m.dim);
  }
  return tarn_map_intern(L, &m);
}

typedef struct axis_test {
  tarn_lang *L;
  uint32_t axis;
} axis_test;

static bool along_axis(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n) {
  const axis_test *x = arg;
  (void)kid;
  (void)n;
  return tarn_payload_get(x->L, payload)->ints[0] == x->axis;
}

/* Joined already: joining it again would never end. */
static bool is_joined(rsite *s, uint32_t id, uint32_t axis) {
  const rhost *h = s->e->host;
  axis_test x = {s->e->L, axis};
  uint32_t payload, n;
  const uint32_t *kid;
  return h->nest.open(h->nest.user, id, TARN_OP_CONCAT, along_axis, &x, &payload, &kid, &n);
}

/* Do two members differ in nothing but their constants and the loop's extent? */
static bool alike(rsite *s, const group *g, const kern *a, const kern *b) {
  const kstage *x = &a->stage[0], *y = &b->stage[0];
  uint32_t walked = 0; /* constants that the loop walks along */
  if (x->body != y->body || x->reducer != y->reducer || x->epi != y->epi || x->nb != y->nb ||
      x->ne != y->ne || x->nown != y->nown || x->nred != y->nred || a->out_ns != b->out_ns ||
      memcmp(x->red, y->red, x->nred * sizeof *x->red))
    return false;
  for (uint32_t i = 0; i < x->nown; i++)
    if (i != g->loop && x->own[i] != y->own[i]) return false;
  for (uint32_t r = 0; r < x->nb + x->ne; r++) {
    uint32_t da, db, la = a->leaf[x->read[r].src], lb = b->leaf[y->read[r].src];
    if (!loop_along(a->L, x->read[r].map, g->loop, &da) ||
        !loop_along(a->L, y->read[r].map, g->loop, &db) || da != db)
      return false;
    if (map_stretched(a->L, x->read[r].map, g->loop, 1, da) !=
        map_stretched(a->L, y->read[r].map, g->loop, 1, da))
      return false;
    walked += da != TARN_NONE;
    if (da == TARN_NONE ? la != lb : site_const(s, la) != site_const(s, lb)) return false;
    if (da != TARN_NONE && (!site_const(s, la) || is_joined(s, la, da) || is_joined(s, lb, da)))
      return false;
  }
  return walked > 0;
}

/* ---------------------------------------------------------------- members */

/* A nest like the root. */
static bool add_member(rsite *s, group *g, const kern *root, uint32_t payload, const uint32_t *kid,
                       uint32_t n) {
  kern *k = &g->k[g->n];
  if (g->n == GROUP ||
      !kern_load(k, &s->e->host->nest, tarn_payload_get(s->e->L, payload)->id, kid, n) ||
      !joinable(k) || shared_leaf(s, k) == TARN_NONE || !alike(s, g, root, k))
    return false;
  g->id[g->n] = site_mk(s, TARN_OP_NEST, payload, kid, n);
  for (uint32_t i = 0; i < g->n; i++)
    if (g->id[i] == g->id[g->n]) return false;
  g->n += g->id[g->n] != TARN_NONE;
  return true;
}

/* In a graph: the users of the shared operand, in the order of their payloads and children. */
static void find_members(rsite *s, group *g, const kern *root, uint32_t shared) {
  const rhost *h = s->e->host;
  uint32_t payload, n;
  const uint32_t *kid;
  for (uint32_t i = 0;
       h->user_at && i < 256 && h->user_at(h->user, shared, TARN_OP_NEST, i, &payload, &kid, &n);
       i++)
    add_member(s, g, root, payload, kid, n);
}

static bool members(rsite *s, group *g) {
  uint32_t shared;
  kern k;
  g->n = 0;
  if (!site_root(s, &k) || !joinable(&k)) return false;
  if ((shared = shared_leaf(s, &k)) == TARN_NONE) return false;
  if ((g->loop = free_loop(&k, shared)) == TARN_NONE || !alike(s, g, &k, &k)) return false;
  if (s->e->host->graph) find_members(s, g, &k, k.leaf[shared]);
  for (uint32_t i = 0; i < s->nextra && !s->e->host->graph; i++) {
    const tarn_node *x = tarn_term_get(s->e->L, s->extra[i]);
    if (x->op != TARN_OP_NEST || !add_member(s, g, &k, x->payload, x->kid, x->n)) return false;
  }
  return g->n > 1;
}

bool when_merge(rsite *s) {
  group g;
  return members(s, &g);
}

/* ---------------------------------------------------------------- the joined product */

static uint32_t joined_leaf(rsite *s, const group *g, uint32_t r, uint32_t dim) {
  uint32_t part[GROUP];
  for (uint32_t i = 0; i < g->n; i++) part[i] = g->k[i].leaf[g->k[i].stage[0].read[r].src];
  return site_concat(s, dim, part, g->n);
}

static uint32_t joined(rsite *s, const group *g, int64_t total) {
  kern d = g->k[0];
  kstage *st = &d.stage[0];
  for (uint32_t r = 0; r < st->nb + st->ne; r++) {
    uint32_t dim;
    loop_along(d.L, st->read[r].map, g->loop, &dim);
    if (dim != TARN_NONE) {
      uint32_t id = joined_leaf(s, g, r, dim);
      if (id == TARN_NONE || (st->read[r].src = kern_leaf(&d, id)) == TARN_NONE) return TARN_NONE;
    }
    st->read[r].map = map_stretched(d.L, st->read[r].map, g->loop, total, dim);
  }
  st->own[g->loop] = total;
  return kern_store(&d);
}

uint32_t build_merge(rsite *s) {
  group of, *g = &of;
  const rhost *h = s->e->host;
  if (!members(s, g)) return TARN_NONE;
  uint32_t me = r_site_left(s), at = 0;
  int64_t total = 0, from = 0;
  while (at < g->n && g->id[at] != me) at++;
  if (at == g->n) return TARN_NONE;
  for (uint32_t i = 0; i < g->n; i++) {
    if (i == at) from = total;
    total += g->k[i].stage[0].own[g->loop];
  }
  uint32_t d = joined(s, g, total);
  if (d == TARN_NONE) return TARN_NONE;
  for (uint32_t i = 0; i < g->n; i++) s->extra[i] = g->id[i];
  s->nextra = g->n;
  const tarn_type *t = tarn_type_get(s->e->L, h->nest.type(h->nest.user, d));
  uint32_t view = map_range(s->e->L, t->dim, t->n, g->loop, from, g->k[at].stage[0].own[g->loop]);
  view = map_with_split(s->e->L, view, t->ns);
  return seen_as(s, d, view);
}
