/* Rows of functions by their arguments, and what becomes of them when terms are united.
 *
 * A row is an e-node (FUNCTION ARG… VALUE). The table finds it by the classes of its arguments as
 * they are now; after unions its places are wrong until egg_settle() has made it anew, which also
 * merges rows whose arguments have become equal. */
#include "lab/egg.h"
#include <string.h>

void egg_graph_failed(tarn_egg *E) {
  tarn_status st = tarn_eg_status(E->g);
  tarn_raise(E->cx, st ? st : TARN_BAD_INPUT, "%s", tarn_eg_message(E->g));
}

/* ---- the table ---- */
static uint64_t hash_of(const tarn_egg *E, const uint32_t *arg, uint32_t n) {
  uint64_t h = n;
  for (uint32_t i = 0; i < n; i++) h = tarn_hash_mix(h, tarn_eg_find(E->g, arg[i]));
  return h;
}
static bool same_args(const tarn_egg *E, uint32_t node, const uint32_t *arg, uint32_t n) {
  tarn_eg_node row = tarn_eg_node_at(E->g, node);
  for (uint32_t i = 0; i < n; i++)
    if (tarn_eg_find(E->g, row.kids[i]) != tarn_eg_find(E->g, arg[i])) return false;
  return true;
}
/* The place of the row with these arguments, or the free one where it belongs. */
static uint32_t *place(const tarn_egg *E, const egg_decl *d, const uint32_t *arg) {
  const egg_table *t = &d->table;
  for (uint64_t i = hash_of(E, arg, d->n) & (t->n_slots - 1);; i = (i + 1) & (t->n_slots - 1)) {
    if (!t->slot[i]) return &t->slot[i];
    uint32_t node = t->row.p[t->slot[i] - 1].node;
    if (node != TARN_NONE && same_args(E, node, arg, d->n)) return &t->slot[i];
  }
}
static void fill(tarn_egg *E, egg_decl *d) {
  egg_table *t = &d->table;
  memset(t->slot, 0, t->n_slots * sizeof *t->slot);
  for (uint32_t i = 0; i < t->row.n; i++)
    if (t->row.p[i].node != TARN_NONE)
      *place(E, d, tarn_eg_node_at(E->g, t->row.p[i].node).kids) = i + 1;
}
static void room(tarn_egg *E, egg_decl *d) {
  egg_table *t = &d->table;
  if (2 * (t->row.n + 1) <= t->n_slots) return;
  t->n_slots = t->n_slots ? 2 * t->n_slots : 16;
  t->slot = TARN_ARRAY(E->cx, uint32_t, t->n_slots);
  fill(E, d);
}
egg_table egg_table_copy(tarn_ctx *cx, const egg_table *t) {
  egg_table c = *t;
  c.row.p = tarn_copy(cx, t->row.p, t->row.n * sizeof *t->row.p);
  c.row.cap = t->row.n;
  c.slot = tarn_copy(cx, t->slot, t->n_slots * sizeof *t->slot);
  return c;
}

/* ---- rows ---- */
static uint32_t row_of(tarn_egg *E, egg_decl *d, const uint32_t *arg) {
  return d->table.n_slots ? *place(E, d, arg) : 0;
}
static uint32_t value_of(const tarn_egg *E, const egg_decl *d, uint32_t node) {
  return tarn_eg_find(E->g, tarn_eg_node_at(E->g, node).kids[d->n]);
}
uint32_t egg_look_up(tarn_egg *E, egg_decl *d, const uint32_t *arg) {
  uint32_t row = row_of(E, d, arg);
  return row ? value_of(E, d, d->table.row.p[row - 1].node) : TARN_NONE;
}
static uint32_t add_row(tarn_egg *E, const egg_decl *d, const uint32_t *arg, uint32_t out) {
  uint32_t few[EGG_FEW], *kid = egg_room(E, few, d->n + 1);
  if (d->n) memcpy(kid, arg, d->n * sizeof *kid);
  kid[d->n] = out;
  uint32_t id = tarn_eg_add(E->g, d->op, 0, kid, d->n + 1);
  if (id == TARN_NONE) egg_graph_failed(E);
  return id;
}
/* What two values of one row become. */
static uint32_t merged(tarn_egg *E, const egg_decl *d, uint32_t old, uint32_t new, int *changes) {
  if (!d->merge) {
    tarn_buf b = {.cx = E->cx};
    if (!egg_is_term(E, d->out)) {
      tarn_buf_str(&b, ": ");
      egg_print_value(E, &b, egg_value_at(E, old));
      tarn_buf_str(&b, " and ");
      egg_print_value(E, &b, egg_value_at(E, new));
    }
    tarn_raise(E->cx, TARN_NO, "function %s has two values for the same arguments%s", d->name,
               b.p ? b.p : "");
  }
  uint32_t slot[2] = {egg_id(E, d->out, old), egg_id(E, d->out, new)};
  return egg_class(E, d->out, egg_eval(E, d->merge, slot, changes));
}
void egg_set(tarn_egg *E, egg_decl *d, const uint32_t *arg, uint32_t out, int *changes) {
  room(E, d);
  uint32_t *at = place(E, d, arg);
  if (!*at) {
    egg_row r = {add_row(E, d, arg, out)};
    tarn_push(E->cx, &d->table.row, r);
    *at = d->table.row.n;
    d->table.live++, ++*changes;
    return;
  }
  uint32_t row = *at - 1, node = d->table.row.p[row].node, old = value_of(E, d, node);
  if (old == tarn_eg_find(E->g, out)) return;
  out = merged(E, d, old, out, changes);
  if (old == tarn_eg_find(E->g, out)) return;
  tarn_eg_remove(E->g, node);
  d->table.row.p[row].node = add_row(E, d, arg, out);
  ++*changes;
}
void egg_remove_row(tarn_egg *E, egg_decl *d, const uint32_t *arg, int *changes) {
  if (d->kind == EGG_FUNCTION) {
    uint32_t row = row_of(E, d, arg);
    if (!row) return;
    tarn_eg_remove(E->g, d->table.row.p[row - 1].node);
    d->table.row.p[row - 1].node = TARN_NONE;
    d->table.live--;
    fill(E, d);
  } else {
    uint32_t node = tarn_eg_lookup(E->g, d->op, 0, arg, d->n);
    if (node == TARN_NONE) return;
    tarn_eg_remove(E->g, node);
  }
  ++*changes;
}

/* ---- after unions ---- */
static void pack(egg_decl *d) {
  egg_table *t = &d->table;
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->row.n; i++)
    if (t->row.p[i].node != TARN_NONE) t->row.p[n++] = t->row.p[i];
  t->row.n = n;
}
/* A row whose arguments another one has: the first one stays, with the value of both. */
static bool join_rows(tarn_egg *E, egg_decl *d, uint32_t first, uint32_t second) {
  egg_table *t = &d->table;
  uint32_t a = t->row.p[first].node, b = t->row.p[second].node;
  uint32_t old = value_of(E, d, a), new = value_of(E, d, b);
  uint32_t few[EGG_FEW], *arg = egg_room(E, few, d->n);
  int changes = 0;
  t->row.p[second].node = TARN_NONE;
  t->live--;
  if (old == new) return false;
  if (d->n) memcpy(arg, tarn_eg_node_at(E->g, a).kids, d->n * sizeof *arg);
  uint32_t out = merged(E, d, old, new, &changes);
  if (tarn_eg_find(E->g, out) != new) tarn_eg_remove(E->g, b);
  if (tarn_eg_find(E->g, out) != old) {
    tarn_eg_remove(E->g, a);
    t->row.p[first].node = add_row(E, d, arg, out);
  }
  return true;
}
static bool settle_table(tarn_egg *E, egg_decl *d) {
  egg_table *t = &d->table;
  bool any = false;
  pack(d);
  if (!t->n_slots) return false;
  memset(t->slot, 0, t->n_slots * sizeof *t->slot);
  for (uint32_t i = 0; i < t->row.n; i++) {
    uint32_t *at = place(E, d, tarn_eg_node_at(E->g, t->row.p[i].node).kids);
    if (*at) any |= join_rows(E, d, *at - 1, i);
    else *at = i + 1;
  }
  return any;
}
void egg_settle(tarn_egg *E) {
  if (tarn_eg_rebuild(E->g)) egg_graph_failed(E);
  while (E->dirty) {
    E->dirty = false;
    for (uint32_t i = 0; i < E->decl.n; i++)
      if (E->decl.p[i]->kind == EGG_FUNCTION && E->decl.p[i]->moves)
        E->dirty |= settle_table(E, E->decl.p[i]);
    if (tarn_eg_rebuild(E->g)) egg_graph_failed(E);
  }
}
