/* Storage orders of concatenations and of their parts.
 *
 * A part can be computed right where the whole wants it. Where concatenations hold one another, as
 * in a dense block, all of them lie in the largest: a concatenation that is a part of another, or
 * whose parts follow one another in another, is a stretch of it. */
#include "extract/kgraph.h"
#include <string.h>

tarn_layout kg_part(const tarn_layout *whole, const tarn_type *part, uint32_t axis, int64_t at) {
  tarn_layout l = *whole;
  for (uint32_t d = 0; d < part->n; d++) l.dim[d] = part->dim[d];
  l.offset += at * l.stride[axis];
  return l;
}

/* ---- parts that are views of something larger ---- */
/* A part that leaves out the ends of a larger buffer, as results of whole tiles of which the last
 * pass the end: with these extents instead of its own it would be all of that buffer. *back: from
 * there to the part with these extents. */
static bool overhang(kgraph *k, uint32_t part, const kview *v, int64_t *extent, uint32_t *back) {
  const kclass *kc = &k->cls.p[part];
  tarn_imap m = *tarn_imap_get(k->L, v->map);
  const kgroup *g = &k->group.p[v->group];
  uint32_t var[TARN_MAX_DIMS];
  if (v->group == kc->group || g->input || !g->produced || m.nguard) return false;
  for (uint32_t d = 0; d < m.n; d++) extent[d] = 1;
  for (uint32_t a = 0; a < m.nin; a++)
    for (uint32_t d = 0; d < m.n; d++)
      if (tarn_ix_dims(k->L, m.e[a]) >> d & 1) extent[d] *= m.in[a];
  bool more = false;
  for (uint32_t d = 0; d < m.n; d++) {
    if (extent[d] < m.dim[d]) return false;
    more |= extent[d] > m.dim[d];
  }
  if (!more) return false;
  for (uint32_t d = 0; d < m.n; d++) var[d] = tarn_ix_var(k->L, d, extent);
  for (uint32_t a = 0; a < m.nin; a++) m.e[a] = tarn_ix_subst(k->L, m.e[a], var, extent);
  memcpy(m.dim, extent, m.n * sizeof *extent);
  for (uint32_t a = 0; a < m.nin; a++) {
    int64_t lo, hi;
    tarn_ix_range(k->L, m.e[a], extent, &lo, &hi);
    if (lo < 0 || hi >= m.in[a]) return false;
  }
  *back = tarn_map_invert(k->L, tarn_map_intern_derived(k->L, &m), 0);
  return *back != TARN_NONE;
}
/* Dims of more than one element by falling step. */
static uint32_t by_step(const tarn_layout *l, uint32_t *order) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < l->n; d++) {
    if (l->dim[d] == 1) continue;
    uint32_t at = n++;
    for (; at && l->stride[order[at - 1]] < l->stride[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  return n;
}
/* Do so many elements of each dim have places of their own? */
static bool has_room(const tarn_layout *l, const int64_t *extent) {
  uint32_t order[TARN_MAX_DIMS], n = by_step(l, order);
  for (uint32_t i = 1; i < n; i++)
    if (l->stride[order[i]] * extent[order[i]] > l->stride[order[i - 1]]) return false;
  return true;
}
static bool make_room(tarn_layout *l, const int64_t *extent) {
  uint32_t order[TARN_MAX_DIMS], n = by_step(l, order);
  int64_t step = 1, dense = 1;
  while (n-- > 0) {
    uint32_t d = order[n];
    if (l->stride[d] != dense) return false;
    dense *= l->dim[d], l->stride[d] = step, step *= extent[d];
  }
  return step > dense;
}
bool kg_part_with_more(kgraph *k, uint32_t part, const kview *v, const tarn_layout *whole,
                       uint32_t axis, int64_t at, tarn_layout *over) {
  int64_t extent[TARN_MAX_DIMS];
  uint32_t back;
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[part].type);
  if (!overhang(k, part, v, extent, &back) || extent[axis] != t->dim[axis]) return false;
  extent[axis] = whole->dim[axis];
  tarn_layout l = kg_part(whole, t, axis, at);
  return has_room(whole, extent) && kg_layout_over(k, &l, back, over);
}
/* Storage orders in which rows lie as far apart as such parts need. */
void kg_concat_room(kgraph *k) {
  for (uint32_t i = 0; i < k->cls.n; i++) {
    if (k->cls.p[i].constant) continue;
    EACH_NODE(k, k->cls.p[i].cls, n) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      if (e.op != TARN_OP_CONCAT) continue;
      const tarn_type *t = tarn_type_get(k->L, k->cls.p[i].type);
      kgroup *out = &k->group.p[k->cls.p[i].group];
      if (out->root) continue; /* nothing may be written beyond it */
      uint32_t axis = (uint32_t)tarn_payload_get(k->L, e.payload)->ints[0], back;
      int64_t most[TARN_MAX_DIMS], extent[TARN_MAX_DIMS];
      memcpy(most, t->dim, sizeof most);
      for (uint32_t j = 0; j < e.n; j++) {
        kview v[KG_MAX_VIEWS];
        uint32_t kid = kg_class(k, e.kids[j]), nv = kg_views(k, kid, TARN_NONE, v);
        for (uint32_t y = 0; y < nv; y++) {
          if (!overhang(k, kid, &v[y], extent, &back) ||
              extent[axis] != tarn_type_get(k->L, k->cls.p[kid].type)->dim[axis])
            continue;
          for (uint32_t d = 0; d < t->n; d++)
            if (d != axis && extent[d] > most[d]) most[d] = extent[d];
        }
      }
      back = kg_from_rep(k, i);
      for (uint32_t l = 0, nl = out->nlayout; l < nl && back != TARN_NONE; l++) {
        tarn_layout whole, over;
        if (kg_layout_over(k, &out->layout[l], k->cls.p[i].to_rep, &whole) &&
            make_room(&whole, most) && kg_layout_over(k, &whole, back, &over))
          kg_add_order(k, out, &over, TARN_NONE, KG_MAX_LAYOUTS);
      }
    }
  }
}

/* ---- parts in their places ---- */
/* A class that lies so, over its own dims, in the whole being looked at. */
typedef struct spot {
  uint32_t cls;
  tarn_layout at;
} spot;
typedef struct whole { /* a concatenation */
  uint32_t node, cls, axis;
  uint32_t n, *part; /* classes; parts that are concatenations along the axis are taken apart */
  uint32_t next;     /* that begins with the same class, TARN_NONE */
} whole;
typedef struct parts {
  TARN_VEC(whole) all;
  tarn_map *by_first; /* class -> 1 + the first of those that begin with it */
  tarn_map *by_node;  /* e-node -> 1 + its number */
  uint8_t *inside;    /* per class: it lies in another concatenation */
  TARN_VEC(spot) todo;
} parts;

static uint32_t axis_of(const kgraph *k, const tarn_eg_node *e) {
  return (uint32_t)tarn_payload_get(k->L, e->payload)->ints[0];
}
/* The first e-node of the class that concatenates along the axis, TARN_NONE. */
static uint32_t joins(const kgraph *k, uint32_t cls, uint32_t axis) {
  EACH_NODE(k, k->cls.p[cls].cls, n) {
    tarn_eg_node e = tarn_eg_node_at(k->g, n);
    if (e.op == TARN_OP_CONCAT && e.n && axis_of(k, &e) == axis) return n;
  }
  return TARN_NONE;
}
/* Takes parts apart from the front on, at most MOST times: a class may hold itself. */
static void take_apart(kgraph *k, whole *w) {
  enum { MOST = 256 };
  TARN_VEC(uint32_t) todo = {0}, done = {0};
  tarn_eg_node e = tarn_eg_node_at(k->g, w->node);
  for (uint32_t j = e.n; j-- > 0;) tarn_push(k->cx, &todo, kg_class(k, e.kids[j]));
  for (uint32_t times = 0; todo.n;) {
    uint32_t c = todo.p[--todo.n], node = joins(k, c, w->axis);
    if (node == TARN_NONE || k->cls.p[c].constant || ++times > MOST) {
      tarn_push(k->cx, &done, c);
      continue;
    }
    e = tarn_eg_node_at(k->g, node);
    for (uint32_t j = e.n; j-- > 0;) tarn_push(k->cx, &todo, kg_class(k, e.kids[j]));
  }
  w->n = done.n, w->part = done.p;
}
static void add_whole(kgraph *k, parts *p, uint32_t cls, uint32_t node, const tarn_eg_node *e) {
  whole w = {.node = node, .cls = cls, .axis = axis_of(k, e)};
  bool fresh;
  take_apart(k, &w);
  uint64_t *at = tarn_map_at(p->by_first, w.part[0], &fresh);
  w.next = fresh ? TARN_NONE : (uint32_t)*at - 1;
  tarn_push(k->cx, &p->all, w);
  *at = p->all.n;
  *tarn_map_at(p->by_node, node, &fresh) = p->all.n;
  for (uint32_t j = 0; j < e->n; j++) p->inside[kg_class(k, e->kids[j])] = 1;
}
static void find_wholes(kgraph *k, parts *p) {
  p->by_first = tarn_map_new(k->cx), p->by_node = tarn_map_new(k->cx);
  p->inside = TARN_ARRAY(k->cx, uint8_t, k->cls.n);
  for (uint32_t i = 0; i < k->cls.n; i++) {
    if (k->cls.p[i].constant) continue;
    EACH_NODE(k, k->cls.p[i].cls, n) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      if (e.op == TARN_OP_CONCAT && e.n) add_whole(k, p, i, n, &e);
    }
  }
}
/* Are the parts of w those of `of` from number j on, and not all of them? */
static bool follow(const whole *w, const whole *of, uint32_t j) {
  return w->n < of->n && w->n <= of->n - j && w->axis == of->axis &&
         memcmp(w->part, of->part + j, w->n * sizeof *w->part) == 0;
}
/* Concatenations whose parts follow one another in `of` from number j on. */
static void stretches(kgraph *k, parts *p, const whole *of, uint32_t j,
                      void each(kgraph *, parts *, uint32_t, const void *), const void *user) {
  const uint64_t *at = tarn_map_get(p->by_first, of->part[j]);
  for (uint32_t w = at ? (uint32_t)*at - 1 : TARN_NONE; w != TARN_NONE; w = p->all.p[w].next)
    if (follow(&p->all.p[w], of, j)) each(k, p, p->all.p[w].cls, user);
}
static void mark_inside(kgraph *k, parts *p, uint32_t cls, const void *user) {
  (void)k, (void)user;
  p->inside[cls] = 1;
}
/* One more storage order of the class's buffer; false: it has it already, or can have no more. */
static bool put(kgraph *k, uint32_t cls, const tarn_layout *l, uint32_t part_of) {
  const kclass *c = &k->cls.p[cls];
  kgroup *in = &k->group.p[c->group];
  uint32_t back = kg_from_rep(k, cls);
  uint32_t before = in->nlayout;
  tarn_layout over;
  if (c->constant || in->input || !in->produced || back == TARN_NONE ||
      c->group == part_of / KG_MAX_LAYOUTS || !kg_layout_over(k, l, back, &over))
    return false;
  return kg_add_order(k, in, &over, part_of, KG_MAX_LAYOUTS) && in->nlayout > before;
}
typedef struct place {
  const tarn_layout *in; /* the whole's */
  uint32_t axis, part_of;
  int64_t at;
} place;
static void put_part(kgraph *k, parts *p, uint32_t cls, const void *user) {
  const place *x = user;
  tarn_layout l = kg_part(x->in, tarn_type_get(k->L, k->cls.p[cls].type), x->axis, x->at);
  if (put(k, cls, &l, x->part_of)) tarn_push(k->cx, &p->todo, ((spot){cls, l}));
}
/* A part that is a view of something larger: that in the place of the part. */
static void put_larger(kgraph *k, uint32_t cls, const place *x) {
  kview v[KG_MAX_VIEWS];
  uint32_t nv = kg_views(k, cls, TARN_NONE, v);
  tarn_layout over;
  for (uint32_t y = 0; y < nv && !k->group.p[x->part_of / KG_MAX_LAYOUTS].root; y++)
    if (kg_part_with_more(k, cls, &v[y], x->in, x->axis, x->at, &over))
      kg_add_order(k, &k->group.p[v[y].group], &over, x->part_of, KG_MAX_LAYOUTS);
}
static int64_t length(const kgraph *k, uint32_t cls, uint32_t axis) {
  return tarn_type_get(k->L, k->cls.p[cls].type)->dim[axis];
}
/* Stretches of the concatenation that are others. */
static void put_stretches(kgraph *k, parts *p, uint32_t node, place x) {
  whole of = p->all.p[*tarn_map_get(p->by_node, node) - 1];
  for (uint32_t j = 0; j < of.n; x.at += length(k, of.part[j++], x.axis))
    stretches(k, p, &of, j, put_part, &x);
}
/* What the class holds side by side, at its places in `in`. deep: also what these hold. */
static void put_parts(kgraph *k, parts *p, uint32_t cls, const tarn_layout *in, uint32_t part_of,
                      bool deep, bool outermost) {
  EACH_NODE(k, k->cls.p[cls].cls, n) {
    tarn_eg_node e = tarn_eg_node_at(k->g, n);
    if (e.op != TARN_OP_CONCAT || !e.n) continue;
    place x = {in, axis_of(k, &e), part_of, 0};
    if (deep) put_stretches(k, p, n, x);
    for (uint32_t j = 0; j < e.n; j++) {
      uint32_t kid = kg_class(k, e.kids[j]);
      if (outermost) put_larger(k, kid, &x);
      put_part(k, p, kid, &x);
      x.at += length(k, kid, x.axis);
    }
  }
}
static void put_all(kgraph *k, parts *p, uint32_t cls, bool deep) {
  uint32_t og = k->cls.p[cls].group, nl = k->group.p[og].nlayout;
  if (k->group.p[og].input) return; /* nothing is written into it */
  for (uint32_t li = 0; li < nl; li++) {
    tarn_layout in;
    if (k->group.p[og].part_of[li] != TARN_NONE) continue;
    if (!kg_layout_over(k, &k->group.p[og].layout[li], k->cls.p[cls].to_rep, &in)) continue;
    put_parts(k, p, cls, &in, og * KG_MAX_LAYOUTS + li, deep, true);
    for (; deep && p->todo.n;) {
      spot s = p->todo.p[--p->todo.n];
      put_parts(k, p, s.cls, &s.at, og * KG_MAX_LAYOUTS + li, true, false);
    }
    p->todo.n = 0;
  }
}
/* The outermost first: a buffer has only so many storage orders. */
void kg_concat_parts(kgraph *k) {
  parts p = {0};
  find_wholes(k, &p);
  for (uint32_t w = 0; w < p.all.n; w++) {
    whole of = p.all.p[w];
    for (uint32_t j = 0; j < of.n; j++) stretches(k, &p, &of, j, mark_inside, NULL);
  }
  for (uint32_t inside = 0; inside < 2; inside++)
    for (uint32_t w = 0; w < p.all.n; w++) {
      uint32_t c = p.all.p[w].cls;
      if (p.inside[c] != inside || (w && p.all.p[w - 1].cls == c)) continue;
      put_all(k, &p, c, !inside);
    }
}
