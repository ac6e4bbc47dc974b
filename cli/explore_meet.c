/* What two e-graphs have in common: a class for each two classes, one of each, that hold a common
 * term, with the nodes that both have over such classes. Two terms are equal in it where both
 * graphs say so. Source: Gulwani, Tiwari, Necula, Join algorithms for the theory of uninterpreted
 * functions, 2004. */
#include "cli/explore_lab.h"
#include <string.h>

typedef struct meeting {
  lab *l;
  tarn_egraph *g;
  const lab_file *f[2];
  tarn_map *pair;                  /* class of the first << 32 | of the second -> 1 + id */
  TARN_VEC(uint64_t) fresh;        /* pairs whose users are to be looked at */
  uint32_t *use_first[2], *use[2]; /* by class: kids (as positions) that are of it */
} meeting;

static uint64_t key(uint32_t a, uint32_t b) { return (uint64_t)a << 32 | b; }
static void find_uses(meeting *m, int i) {
  const lab_file *f = m->f[i];
  uint32_t n = lab_file_kids(f), *first = TARN_ARRAY(m->l->cx, uint32_t, lab_file_classes(f) + 2);
  m->use[i] = TARN_ARRAY(m->l->cx, uint32_t, n + 1), m->use_first[i] = first;
  for (uint32_t k = 0; k < n; k++) first[lab_file_kid_class(f, k) + 1]++;
  for (uint32_t c = 0; c < lab_file_classes(f); c++) first[c + 1] += first[c];
  for (uint32_t k = n; k-- > 0;) m->use[i][--first[lab_file_kid_class(f, k) + 1]] = k;
  memmove(first, first + 1, lab_file_classes(f) * sizeof *first);
  first[lab_file_classes(f)] = n;
}
/* Two nodes of one operator: a node of both where all pairs of their kids are there. */
static void meet_nodes(meeting *m, lab_node a, lab_node b) {
  if (a.op != b.op || a.n != b.n) return;
  uint32_t *kid = TARN_ARRAY(m->l->cx, uint32_t, a.n + 1);
  for (uint32_t i = 0; i < a.n; i++) {
    const uint64_t *id = tarn_map_get(m->pair, key(lab_file_kid_class(m->f[0], a.first + i),
                                                   lab_file_kid_class(m->f[1], b.first + i)));
    if (!id) return;
    kid[i] = (uint32_t)(*id - 1);
  }
  uint32_t id = tarn_eg_add(m->g, a.op, 0, kid, a.n);
  bool fresh = false;
  uint64_t *at = tarn_map_at(m->pair, key(a.cls, b.cls), &fresh);
  if (id == TARN_NONE ||
      (!fresh && tarn_eg_union(m->g, id, (uint32_t)(*at - 1), TARN_EG_RULE_GIVEN, 0) < 0))
    tarn_raise(m->l->cx, tarn_eg_status(m->g), "explore: %s", tarn_eg_message(m->g));
  if (!fresh) return;
  *at = 1 + (uint64_t)id;
  tarn_push(m->l->cx, &m->fresh, key(a.cls, b.cls));
}
static void meet_users(meeting *m, uint64_t pair) {
  uint32_t a = (uint32_t)(pair >> 32), b = (uint32_t)pair;
  for (uint32_t i = m->use_first[0][a]; i < m->use_first[0][a + 1]; i++)
    for (uint32_t k = m->use_first[1][b]; k < m->use_first[1][b + 1]; k++) {
      lab_node x = lab_file_user(m->f[0], m->use[0][i]), y = lab_file_user(m->f[1], m->use[1][k]);
      if (m->use[0][i] - x.first == m->use[1][k] - y.first) meet_nodes(m, x, y);
    }
}
const uint32_t *lab_meet_graphs(lab *l, tarn_egraph *g, const lab_file *a, const lab_file *b,
                                uint32_t *n_roots) {
  meeting m = {.l = l, .g = g, .f = {a, b}, .pair = tarn_map_new(l->cx)};
  TARN_VEC(uint32_t) root = {0};
  for (int i = 0; i < 2; i++) find_uses(&m, i);
  for (uint32_t i = 0; i < lab_file_nodes(a); i++)
    for (uint32_t k = 0; !lab_file_node(a, i).n && k < lab_file_nodes(b); k++)
      if (!lab_file_node(b, k).n) meet_nodes(&m, lab_file_node(a, i), lab_file_node(b, k));
  for (uint32_t i = 0; i < m.fresh.n; i++) meet_users(&m, m.fresh.p[i]);
  for (uint32_t i = 0; i < tarn_map_count(m.pair); i++) {
    uint64_t k, *id = tarn_map_item(m.pair, i, &k);
    if (!lab_file_is_root(a, (uint32_t)(k >> 32)) || !lab_file_is_root(b, (uint32_t)k)) continue;
    uint32_t r = (uint32_t)(*id - 1);
    tarn_push(l->cx, &root, r);
  }
  *n_roots = root.n;
  return root.p;
}
