/* Copying a graph. */
#include "egraph/pattern.h"
#include "egraph/table.h"

#include <string.h>

/* A copy of n of the items, with room for as many; NULL stays NULL. */
static bool dup(eg_mem *m, void **to, size_t *cap, const void *from, size_t n, size_t each) {
  *to = NULL, *cap = 0;
  if (!n) return true;
  if (!(*to = eg_resize(m, NULL, 0, n * each))) return false;
  *cap = n;
  memcpy(*to, from, n * each);
  return true;
}

#define DUP(field, count)                                                                          \
  dup(m, (void **)&c->field, &c->field##_cap, g->field, (count), sizeof *g->field)

static bool dup_vec(eg_mem *m, eg_vec *to, const eg_vec *from) {
  void *p;
  bool ok = dup(m, &p, &to->cap, from->p, from->n, sizeof *from->p);
  to->p = p, to->n = ok ? from->n : 0;
  return ok;
}

static bool dup_ids(tarn_egraph *c, const tarn_egraph *g, eg_mem *m) {
  size_t n = g->n_ids;
  c->ids_cap = n;
  return DUP(rec, n) && DUP(link, n) && DUP(uf, n) && DUP(stamp, n) && DUP(mask, n) &&
         DUP(lost, (n + 31) / 32) && DUP(wkid, g->n_wide) && DUP(wnext, g->n_wide) &&
         DUP(wowner, g->n_wide) && DUP(heads, g->n_heads);
}

static bool dup_tables(tarn_egraph *c, const tarn_egraph *g, eg_mem *m) {
  size_t none, heads = g->head_slots ? g->head_mask + (size_t)1 : 0;
  return dup(m, (void **)&c->head_slots, &none, g->head_slots, heads, sizeof *g->head_slots) &&
         eg_table_copy(c, g);
}

static bool dup_logs(tarn_egraph *c, const tarn_egraph *g, eg_mem *m) {
  if (!dup_vec(m, &c->log, &g->log) || !dup_vec(m, &c->origin, &g->origin) ||
      !dup_vec(m, &c->refused, &g->refused))
    return false;
  for (uint32_t i = 0; i < g->n_sets; i++)
    if (eg_keep_rules(c, g->sets[i]) == NONE) return false;
  return true;
}

static bool dup_analyses(tarn_egraph *c, const tarn_egraph *g, eg_mem *m) {
  for (uint32_t a = 0; a < g->n_analyses; a++) {
    if (tarn_eg_add_analysis(c, &g->analyses[a]) == NONE) return false;
    if (!dup(m, (void **)&c->data[a], &c->data_cap[a], g->data[a], g->n_ids, sizeof(uint64_t)))
      return false;
    if (g->reasons &&
        !dup(m, (void **)&c->cause[a], &c->cause_cap[a], g->cause[a], g->n_ids, sizeof(uint32_t)))
      return false;
    c->data_version[a] = g->data_version[a];
  }
  return true;
}

static void copy_numbers(tarn_egraph *c, const tarn_egraph *g) {
  c->reasons = g->reasons, c->max_nodes = g->max_nodes;
  c->n_ids = g->n_ids, c->n_wide = g->n_wide;
  c->n_heads = g->n_heads, c->head_mask = g->head_mask;
  memcpy(c->recent, g->recent, sizeof c->recent);
  c->now = g->now, c->now_used = g->now_used, c->epoch = g->epoch;
  c->live = g->live, c->classes = g->classes, c->n_gone = g->n_gone, c->version = g->version;
  c->conflict = g->conflict, c->has_conflict = g->has_conflict, c->conflict_how = g->conflict_how;
  c->cur_rule = g->cur_rule, c->cur_note = g->cur_note;
}

tarn_egraph *tarn_eg_copy(const tarn_egraph *g) {
  if (g->dirty || g->queued.n) return NULL;
  tarn_egraph *c = tarn_eg_new(&g->mem.a, NULL);
  if (!c) return NULL;
  eg_mem *m = &c->mem;
  eg_table_free(c);
  c->reasons = g->reasons;
  if (dup_analyses(c, g, m) && dup_ids(c, g, m) && dup_tables(c, g, m) && dup_logs(c, g, m)) {
    copy_numbers(c, g);
    m->limit = g->mem.limit;
    return c;
  }
  c->head_mask = g->head_mask; /* the size that freeing needs */
  tarn_eg_free(c);
  return NULL;
}
