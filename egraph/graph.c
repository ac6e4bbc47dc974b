/* Nodes: interned heads, hash-consing, union-find lookups, iteration. */
#include "egraph/add.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- memory ---- */

enum { LARGE = 1 << 22 }; /* bytes */

void eg_mem_init(eg_mem *m, const tarn_allocator *a) {
  *m = (eg_mem){.a = a ? *a : tarn_malloc_allocator};
  m->pages = m->a.realloc == tarn_malloc_allocator.realloc;
}

void eg_fail(eg_mem *m, tarn_status st, const char *fmt, ...) {
  if (m->st != TARN_OK) return; /* the first reason is the one to show */
  m->st = st;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(m->msg, sizeof m->msg, fmt, ap);
  va_end(ap);
}

static inline void *reallocate(eg_mem *m, void *p, size_t old, size_t n) {
  return m->pages ? eg_pages(&m->a, p, old, n) : m->a.realloc(m->a.user, p, old, n);
}

void *eg_resize(eg_mem *m, void *p, size_t old, size_t n) {
  uint64_t limit = m->urgent ? m->limit : m->limit - m->limit / 8;
  if (m->limit && n > old && m->bytes + (n - old) > limit) {
    eg_fail(m, TARN_NO_RESULT, "egraph: the limit of %llu bytes is reached",
            (unsigned long long)m->limit);
    return NULL;
  }
  void *q = reallocate(m, p, old, n);
  if (!q) {
    eg_fail(m, TARN_MEMORY, "egraph: out of memory (%zu bytes asked)", n);
    return NULL;
  }
  m->bytes += n - old;
  if (m->bytes > m->peak) m->peak = m->bytes;
  return q;
}

void eg_release(eg_mem *m, void *p, size_t n) {
  if (!p) return;
  reallocate(m, p, n, 0);
  m->bytes -= n;
}

/* By half; when large by a quarter, or by an eighth where nothing is copied for it: then growing
 * costs little beside filling, and little room lies idle. */
static size_t roomier(const eg_mem *m, size_t cap, size_t need, size_t each) {
  size_t c = cap + (cap * each < LARGE ? cap / 2 : m->pages ? cap / 8 : cap / 4);
  return c < need ? need : c;
}

bool eg_grow(eg_mem *m, void **p, size_t *cap, size_t need, size_t each) {
  if (need <= *cap) return true;
  size_t c = roomier(m, *cap, need, each);
  if (c < 16) c = 16;
  void *q = eg_resize(m, *p, *cap * each, c * each);
  if (!q) return false;
  *p = q, *cap = c;
  return true;
}

bool eg_vec_reserve(eg_mem *m, eg_vec *v, size_t extra) {
  void *p = v->p;
  bool ok = eg_grow(m, &p, &v->cap, v->n + extra, sizeof *v->p);
  v->p = p;
  return ok;
}

bool eg_heap_put(eg_mem *m, eg_vec *h, uint32_t d, uint32_t id) {
  if (!eg_vec_reserve(m, h, 2)) return false;
  size_t i = h->n / 2;
  h->n += 2;
  for (size_t up; i && h->p[2 * (up = (i - 1) / 2)] > d; i = up)
    memcpy(h->p + 2 * i, h->p + 2 * up, 2 * sizeof *h->p);
  h->p[2 * i] = d, h->p[2 * i + 1] = id;
  return true;
}
uint32_t eg_heap_take(eg_vec *heap, uint32_t *d) {
  uint32_t *h = heap->p, id = h[1];
  *d = h[0];
  heap->n -= 2;
  size_t n = heap->n / 2, i = 0;
  uint32_t last[2] = {h[2 * n], h[2 * n + 1]};
  for (size_t k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && h[2 * (k + 1)] < h[2 * k]) k++;
    if (h[2 * k] >= last[0]) break;
    memcpy(h + 2 * i, h + 2 * k, 2 * sizeof *h);
  }
  memcpy(h + 2 * i, last, sizeof last);
  return id;
}

void eg_vec_free(eg_mem *m, eg_vec *v) {
  eg_release(m, v->p, v->cap * sizeof *v->p);
  *v = (eg_vec){0};
}

#define GROW(g, field, need)                                                                       \
  (eg_grow_field(&(g)->mem, (void **)&(g)->field, &(g)->field##_cap, (need), sizeof *(g)->field))
static inline bool eg_grow_field(eg_mem *m, void **p, size_t *cap, size_t need, size_t each) {
  return need <= *cap || eg_grow(m, p, cap, need, each);
}

/* ---- heads ---- */

static uint32_t head_hash(uint32_t op, uint32_t payload, uint32_t n) {
  uint64_t h = tarn_hash_mix(tarn_hash_mix(op, payload), n);
  return (uint32_t)(h >> 13);
}

static uint32_t head_slot(const tarn_egraph *g, uint32_t op, uint32_t payload, uint32_t n) {
  uint32_t i = head_hash(op, payload, n) & g->head_mask;
  for (;; i = (i + 1) & g->head_mask) {
    uint32_t h = g->head_slots[i];
    if (h == NONE) return i;
    const eg_head *e = &g->heads[h];
    if (e->op == op && e->payload == payload && e->n == n) return i;
  }
}

static uint32_t eg_find_head(const tarn_egraph *g, uint32_t op, uint32_t payload, uint32_t n) {
  return g->head_slots ? g->head_slots[head_slot(g, op, payload, n)] : NONE;
}

static bool heads_rehash(tarn_egraph *g) {
  uint32_t cap = g->head_slots ? (g->head_mask + 1) * 2 : 64;
  uint32_t *s = eg_resize(&g->mem, NULL, 0, cap * sizeof *s);
  if (!s) return false;
  if (g->head_slots) eg_release(&g->mem, g->head_slots, (g->head_mask + 1) * sizeof *s);
  memset(s, 0xFF, cap * sizeof *s);
  g->head_slots = s, g->head_mask = cap - 1;
  for (uint32_t h = 0; h < g->n_heads; h++)
    s[head_slot(g, g->heads[h].op, g->heads[h].payload, g->heads[h].n)] = h;
  return true;
}

uint32_t eg_intern_head(tarn_egraph *g, uint32_t op, uint32_t payload, uint32_t n) {
  uint32_t known = eg_recent_head(g, op, payload, n);
  if (known != NONE) return known;
  if (!g->head_slots || (g->n_heads + 1) * 2 > g->head_mask)
    if (!heads_rehash(g)) return NONE;
  uint32_t i = head_slot(g, op, payload, n);
  if (g->head_slots[i] == NONE) {
    if (g->n_heads >= HEAD_BITS) return NONE;
    if (!GROW(g, heads, g->n_heads + 1u)) return NONE;
    g->heads[g->n_heads] = (eg_head){op, payload, n, 0, eg_op_bit(op)};
    g->head_slots[i] = g->n_heads++;
  }
  uint32_t r = op % (sizeof g->recent / sizeof *g->recent);
  g->recent[r].op = op, g->recent[r].payload = payload, g->recent[r].n = n;
  return g->recent[r].head = g->head_slots[i];
}

/* ---- making one ---- */

/* Whether the processor has what wide.c is compiled for. */
static bool is_wide(void) {
#if defined(EG_WIDE)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

tarn_egraph *tarn_eg_new(const tarn_allocator *allocator, const tarn_eg_config *config) {
  eg_mem m;
  eg_mem_init(&m, allocator);
  tarn_egraph *g = eg_resize(&m, NULL, 0, sizeof *g);
  if (!g) return NULL;
  memset(g, 0, sizeof *g);
  g->mem = m;
  memset(g->recent, 0xFF, sizeof g->recent);
  g->now = 1;
  g->max_nodes = MAX_IDS;
  g->wide = is_wide();
  g->cur_rule = TARN_EG_RULE_GIVEN;
  if (config) {
    g->reasons = config->reasons;
    tarn_eg_set_limits(g, config->max_nodes, config->max_bytes);
  }
  if (!eg_table_reserve(g, 8)) {
    tarn_eg_free(g);
    return NULL;
  }
  return g;
}

void tarn_eg_set_limits(tarn_egraph *g, uint64_t max_nodes, uint64_t max_bytes) {
  g->max_nodes = max_nodes && max_nodes < MAX_IDS ? max_nodes : MAX_IDS;
  g->mem.limit = max_bytes;
}

static void free_analyses(tarn_egraph *g) {
  eg_mem *m = &g->mem;
  for (uint32_t a = 0; a < g->n_analyses; a++) {
    eg_release(m, g->data[a], g->data_cap[a] * sizeof(uint64_t));
    eg_release(m, g->cause[a], g->cause_cap[a] * sizeof(uint32_t));
    char *name = (char *)(uintptr_t)g->analyses[a].name;
    eg_release(m, name, strlen(name) + 1);
  }
  size_t n = g->analyses ? 32 : 0;
  eg_release(m, g->analyses, n * sizeof *g->analyses);
  eg_release(m, g->data, n * sizeof *g->data);
  eg_release(m, g->cause, n * sizeof *g->cause);
  eg_release(m, g->data_cap, n * sizeof *g->data_cap);
  eg_release(m, g->cause_cap, n * sizeof *g->cause_cap);
  eg_release(m, g->data_version, n * sizeof *g->data_version);
}

void tarn_eg_free(tarn_egraph *g) {
  if (!g) return;
  eg_mem *m = &g->mem;
  for (uint32_t i = 0; i < g->n_sets; i++) tarn_eg_rules_free(g->sets[i]);
  free_analyses(g);
  eg_release(m, g->sets, g->sets_cap * sizeof *g->sets);
  eg_release(m, g->rec, g->rec_cap * sizeof *g->rec);
  eg_release(m, g->link, g->link_cap * sizeof *g->link);
  eg_release(m, g->uf, g->uf_cap * sizeof *g->uf);
  eg_release(m, g->stamp, g->stamp_cap * sizeof *g->stamp);
  eg_release(m, g->mask, g->mask_cap * sizeof *g->mask);
  eg_release(m, g->lost, g->lost_cap * sizeof *g->lost);
  eg_release(m, g->wkid, g->wkid_cap * sizeof *g->wkid);
  eg_release(m, g->wnext, g->wnext_cap * sizeof *g->wnext);
  eg_release(m, g->wowner, g->wowner_cap * sizeof *g->wowner);
  eg_release(m, g->heads, g->heads_cap * sizeof *g->heads);
  if (g->head_slots) eg_release(m, g->head_slots, (g->head_mask + 1) * sizeof *g->head_slots);
  eg_table_free(g);
  eg_release(m, g->pending, g->pending_cap * sizeof *g->pending);
  eg_vec_free(m, &g->changed);
  eg_vec_free(m, &g->queued);
  eg_vec_free(m, &g->log);
  eg_vec_free(m, &g->origin);
  eg_vec_free(m, &g->origin_index);
  eg_vec_free(m, &g->refused);
  tarn_allocator a = m->a;
  a.realloc(a.user, g, sizeof *g, 0);
}

tarn_status tarn_eg_status(const tarn_egraph *g) { return g->mem.st; }
const char *tarn_eg_message(const tarn_egraph *g) { return g->mem.st == TARN_OK ? "" : g->mem.msg; }
void tarn_eg_clear_status(tarn_egraph *g) { g->mem.st = TARN_OK; }

/* ---- adding ---- */

static bool reserve_bits(tarn_egraph *g, size_t ids) {
  size_t had = g->lost_cap;
  if (!GROW(g, lost, ids / 32 + 1)) return false;
  memset(g->lost + had, 0, (g->lost_cap - had) * sizeof *g->lost);
  return true;
}

static bool reserve_ids(tarn_egraph *g, size_t need) {
  if (need <= g->ids_cap) return true;
  size_t c = roomier(&g->mem, g->ids_cap, need, sizeof *g->rec);
  if (c < 64) c = 64;
  bool ok = GROW(g, rec, c) && GROW(g, link, c) && GROW(g, uf, c) && GROW(g, stamp, c) &&
            GROW(g, mask, c) && reserve_bits(g, c);
  for (uint32_t a = 0; ok && a < g->n_analyses; a++) {
    ok = eg_grow(&g->mem, (void **)&g->data[a], &g->data_cap[a], c, sizeof(uint64_t));
    if (ok && g->reasons)
      ok = eg_grow(&g->mem, (void **)&g->cause[a], &g->cause_cap[a], c, sizeof(uint32_t));
  }
  if (ok) g->ids_cap = c;
  return ok;
}

static bool reserve_wide(tarn_egraph *g, size_t extra) {
  size_t need = g->n_wide + extra;
  if (need >= USE_END - USE_WIDE) {
    eg_fail(&g->mem, TARN_NO_RESULT, "egraph: too many kids");
    return false;
  }
  return GROW(g, wkid, need) && GROW(g, wnext, need) && GROW(g, wowner, need);
}

/* Makes position slot of node a use of its kid. */
static inline void use_push(tarn_egraph *g, uint32_t kid, uint32_t entry, uint32_t *next) {
  uint32_t w = g->uf[kid];
  *next = w & ~UF_ROOT;
  g->uf[kid] = UF_ROOT | entry;
}

static void store_kids(tarn_egraph *g, uint32_t id, const uint32_t *kids, uint32_t n) {
  eg_rec *r = &g->rec[id];
  r->k[0] = n > 0 ? kids[0] : 0, r->k[1] = n > 1 ? kids[1] : 0;
  g->link[id] = (eg_link){{USE_END, USE_END}};
  if (n <= 2) {
    for (uint32_t i = 0; i < n; i++) use_push(g, kids[i], 2 * id + i, &g->link[id].next[i]);
    return;
  }
  uint32_t base = (uint32_t)g->n_wide;
  r->k[0] = base, r->k[1] = 0;
  g->n_wide += n;
  for (uint32_t i = 0; i < n; i++) {
    g->wkid[base + i] = kids[i], g->wowner[base + i] = id;
    use_push(g, kids[i], USE_WIDE | (base + i), &g->wnext[base + i]);
  }
}

/* A new node in a class of its own; room is reserved. */
static uint32_t make_node(tarn_egraph *g, uint64_t h, uint32_t head, const uint32_t *kids,
                          uint32_t n) {
  uint32_t id = g->n_ids++;
  g->rec[id].head = head;
  g->rec[id].next = id;
  g->uf[id] = UF_ROOT | USE_END;
  g->stamp[id] = (uint16_t)g->now;
  g->now_used = true;
  g->mask[id] = g->heads[head].bit;
  store_kids(g, id, kids, n);
  g->heads[head].live++;
  g->live++, g->classes++, g->version++;
  eg_table_insert(g, h, id);
  return id;
}

static bool can_add(tarn_egraph *g) {
  if (g->making) {
    eg_fail(&g->mem, TARN_USAGE, "egraph: a make or join function may not change the graph");
    return false;
  }
  if (g->n_ids >= MAX_IDS) {
    eg_fail(&g->mem, TARN_NO_RESULT, "egraph: too many nodes were made");
    return false;
  }
  return true;
}

/* An id for a term whose node is known in another spelling: not a node of its own. */
static uint32_t add_alias(tarn_egraph *g, uint32_t id, uint32_t head, const uint32_t *given,
                          uint32_t n) {
  const uint32_t *have = eg_origin(g, id, n);
  if (!have && n) return NONE;
  if (!n || memcmp(have, given, n * sizeof *given) == 0) return id;
  if (!can_add(g) || !reserve_ids(g, g->n_ids + (size_t)1) || !eg_table_reserve(g, 1) ||
      (n > 2 && !reserve_wide(g, n)) || !eg_log_reserve(g, 2))
    return NONE;
  uint32_t a = g->n_ids++;
  g->rec[a] =
      (eg_rec){head | HEAD_HIDDEN | HEAD_DEAD, {n > 0 ? given[0] : 0, n > 1 ? given[1] : 0}, a};
  g->link[a] = (eg_link){{USE_END, USE_END}};
  if (n > 2) {
    g->rec[a].k[0] = (uint32_t)g->n_wide, g->rec[a].k[1] = 0;
    for (uint32_t i = 0; i < n; i++) {
      g->wkid[g->n_wide] = given[i], g->wowner[g->n_wide] = a, g->wnext[g->n_wide] = USE_END;
      g->n_wide++;
    }
  }
  eg_set_parent(g, a, eg_find(g, id));
  g->stamp[a] = 0, g->mask[a] = 0;
  eg_log_congruent(g, a, id);
  g->version++;
  return a;
}

/* When the key's hash h is known and the node is not there; kids are canonical. */
static uint32_t eg_add_fresh(tarn_egraph *g, uint64_t h, uint32_t head, const uint32_t *kids,
                             const uint32_t *given, uint32_t n) {
  if (!can_add(g)) return NONE;
  if (g->live >= g->max_nodes) {
    eg_fail(&g->mem, TARN_NO_RESULT, "egraph: the limit of %llu nodes is reached",
            (unsigned long long)g->max_nodes);
    return NONE;
  }
  if (!reserve_ids(g, g->n_ids + (size_t)1) || !eg_table_reserve(g, 1) ||
      (n > 2 && !reserve_wide(g, n)))
    return NONE;
  uint64_t value[32];
  if (g->n_analyses && !eg_make_all(g, head, kids, n, value)) return NONE;
  bool respelt = g->reasons && n && memcmp(kids, given, n * sizeof *kids) != 0;
  if (respelt && !eg_save_origin(g, g->n_ids, given, n)) return NONE;
  uint32_t id = make_node(g, h, head, kids, n);
  if (respelt) g->rec[id].head |= HEAD_SAVED;
  for (uint32_t a = 0; a < g->n_analyses; a++) {
    g->data[a][id] = value[a];
    if (g->reasons) g->cause[a][id] = id;
  }
  if (g->n_analyses) eg_modify_all(g, id);
  return id;
}

bool eg_reserve_nodes(tarn_egraph *g, uint32_t n) {
  return !g->making && !g->n_analyses && g->live + (uint64_t)n <= g->max_nodes &&
         g->n_ids + n < MAX_IDS && reserve_ids(g, g->n_ids + (size_t)n) && eg_table_reserve(g, n);
}

static uint32_t add_kids(tarn_egraph *g, uint32_t head, const uint32_t *given, uint32_t *kids,
                         uint32_t n, bool exact) {
  for (uint32_t i = 0; i < n; i++) kids[i] = eg_find_mut(g, given[i]);
  uint64_t h = eg_hash_node(head, kids, n);
  uint32_t id = eg_table_find(g, h, head, kids, n);
  if (id == NONE) return eg_add_fresh(g, h, head, kids, given, n);
  return exact && g->reasons ? add_alias(g, id, head, given, n) : id;
}

uint32_t eg_add_head(tarn_egraph *g, uint32_t head, const uint32_t *kids, uint32_t n, bool exact) {
  enum { SMALL = 16 };
  uint32_t given[SMALL], canon[SMALL];
  if (n <= SMALL) {
    for (uint32_t i = 0; i < n; i++) given[i] = kids[i];
    return add_kids(g, head, given, canon, n, exact);
  }
  size_t bytes = 2 * (size_t)n * sizeof *kids;
  uint32_t *tmp = eg_resize(&g->mem, NULL, 0, bytes);
  if (!tmp) return NONE;
  memcpy(tmp, kids, n * sizeof *kids);
  uint32_t id = add_kids(g, head, tmp, tmp + n, n, exact);
  eg_release(&g->mem, tmp, bytes);
  return id;
}

static uint32_t add_public(tarn_egraph *g, uint32_t op, uint32_t payload, const uint32_t *kids,
                           uint32_t n, bool exact) {
  for (uint32_t i = 0; i < n; i++)
    if (kids[i] >= g->n_ids) {
      eg_fail(&g->mem, TARN_USAGE, "egraph: kid %u of a node is no id", i);
      return NONE;
    }
  uint32_t head = eg_intern_head(g, op, payload, n);
  return head == NONE ? NONE : eg_add_head(g, head, kids, n, exact);
}

uint32_t eg_add_unknown2(tarn_egraph *g, uint32_t head, uint32_t k0, uint32_t k1) {
  const eg_table *t = &g->table;
  if (EG_RARE(k0 >= g->n_ids || k1 >= g->n_ids || !eg_is_root(g, k0) || !eg_is_root(g, k1)))
    return add_public(g, g->heads[head].op, g->heads[head].payload, (uint32_t[]){k0, k1}, 2, false);
  uint64_t h = eg_hash2(head, k0, k1);
  uint32_t bucket = EG_BUCKET * eg_slot_home(t, h), id = g->n_ids, kids[2] = {k0, k1};
  uint32_t empty = eg_slots_empty(t->slots + bucket);
  bool is_room = empty && !g->making && !g->n_analyses && g->live < g->max_nodes &&
                 id < g->ids_cap && id < MAX_IDS && t->used < t->room && id + 3 <= t->ids;
  if (!is_room) return eg_add_head(g, head, kids, 2, false);
  eg_put2(g, id, h, bucket + eg_lowest(empty), head, g->heads[head].bit, k0, k1, 2);
  eg_count_new(g, head, 1);
  return id;
}

uint32_t eg_add_any(tarn_egraph *g, uint32_t op, uint32_t payload, const uint32_t *kids,
                    uint32_t n) {
  return add_public(g, op, payload, kids, n, false);
}

uint32_t tarn_eg_add(tarn_egraph *g, uint32_t op, uint32_t payload, const uint32_t *kids,
                     uint32_t n) {
  return eg_add_short(g, op, payload, kids, n);
}

size_t tarn_eg_add_all(tarn_egraph *g, const tarn_eg_node *nodes, size_t n, uint32_t *ids) {
#if defined(EG_WIDE)
  if (g->wide) return eg_add_all_wide(g, nodes, n, ids);
#endif
  return eg_add_all(g, nodes, n, ids);
}

uint32_t tarn_eg_add_exact(tarn_egraph *g, uint32_t op, uint32_t payload, const uint32_t *kids,
                           uint32_t n) {
  return add_public(g, op, payload, kids, n, true);
}

/* Many kids, no allocation: hashes and compares through find. */
static uint32_t lookup_wide(const tarn_egraph *g, uint32_t head, const uint32_t *kids, uint32_t n) {
  if (n == 0 || !g->n_ids) return NONE;
  uint32_t root = eg_find(g, kids[0]);
  for (uint32_t e = eg_use_head(g, root); e != USE_END; e = *eg_use_next(g, e)) {
    uint32_t o = eg_use_owner(g, e), i = 0;
    if (eg_head_of(g, o) != head || (g->rec[o].head & HEAD_DEAD)) continue;
    const uint32_t *k = eg_kids(g, o, n);
    while (i < n && eg_find(g, k[i]) == eg_find(g, kids[i])) i++;
    if (i == n) return o;
  }
  return NONE;
}

uint32_t tarn_eg_lookup(const tarn_egraph *g, uint32_t op, uint32_t payload, const uint32_t *kids,
                        uint32_t n) {
  uint32_t head = eg_find_head(g, op, payload, n), canon[64];
  if (head == NONE) return NONE;
  for (uint32_t i = 0; i < n; i++)
    if (kids[i] >= g->n_ids) return NONE;
  if (n > 64) return lookup_wide(g, head, kids, n);
  for (uint32_t i = 0; i < n; i++) canon[i] = eg_find(g, kids[i]);
  return eg_table_find(g, eg_hash_node(head, canon, n), head, canon, n);
}

/* ---- reading ---- */

uint32_t tarn_eg_find(const tarn_egraph *g, uint32_t id) { return eg_find(g, id); }

tarn_eg_node tarn_eg_node_at(const tarn_egraph *g, uint32_t node) {
  const eg_head *h = &g->heads[eg_head_of(g, node)];
  return (tarn_eg_node){h->op, h->payload, h->n, eg_kids(g, node, h->n)};
}

uint32_t tarn_eg_node_count(const tarn_egraph *g) { return g->live; }
uint32_t tarn_eg_class_count(const tarn_egraph *g) { return g->classes; }
uint32_t tarn_eg_id_count(const tarn_egraph *g) { return g->n_ids; }
uint64_t tarn_eg_bytes(const tarn_egraph *g) { return g->mem.bytes; }
uint64_t tarn_eg_peak_bytes(const tarn_egraph *g) { return g->mem.peak; }
bool tarn_eg_is_rebuilt(const tarn_egraph *g) { return !g->dirty; }

uint32_t tarn_eg_next_class(const tarn_egraph *g, uint32_t cls) {
  for (uint32_t c = cls == NONE ? 0 : cls + 1; c < g->n_ids; c++)
    if (g->uf[c] & UF_ROOT) return c;
  return NONE;
}

uint32_t tarn_eg_next_node(const tarn_egraph *g, uint32_t cls, uint32_t node) {
  uint32_t root = eg_find(g, cls), n = node == NONE ? root : g->rec[node].next;
  if (node != NONE && n == root) return NONE;
  while (!eg_visible(g, n)) {
    n = g->rec[n].next;
    if (n == root) return NONE;
  }
  return n;
}

tarn_eg_use tarn_eg_uses(const tarn_egraph *g, uint32_t cls) {
  return (tarn_eg_use){NONE, 0, eg_use_head(g, eg_find(g, cls)), USE_END};
}

bool tarn_eg_next_use(const tarn_egraph *g, tarn_eg_use *u) {
  while (u->at != USE_END) {
    uint32_t e = u->at;
    u->at = *eg_use_next(g, e);
    u->node = eg_use_owner(g, e);
    if (!eg_visible(g, u->node)) continue;
    u->slot = eg_use_slot(g, e, u->node);
    return true;
  }
  return false;
}

void eg_hide(tarn_egraph *g, uint32_t id, uint32_t flags) {
  if (eg_visible(g, id)) {
    g->heads[eg_head_of(g, id)].live--;
    g->live--;
    g->version++;
  }
  g->rec[id].head |= HEAD_HIDDEN | flags;
  g->stamp[id] = 0;
}

uint32_t eg_advance(tarn_egraph *g) {
  if (!g->now_used) return g->now - 1;
  if (g->now < UINT16_MAX) {
    g->now_used = false;
    return g->now++;
  }
  for (uint32_t i = 0; i < g->n_ids; i++)
    if (g->stamp[i]) g->stamp[i] = 1;
  g->epoch++;
  g->now = 2;
  g->now_used = false;
  return 1;
}
