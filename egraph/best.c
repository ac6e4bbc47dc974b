/* The least term of each class: costs from the leaves up, recomputed where a kid became cheaper. */
#include "egraph/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct tarn_eg_best {
  eg_mem mem;
  const tarn_egraph *g;
  tarn_eg_cost_fn *fn;
  void *user;
  uint32_t n;     /* ids */
  double *cost;   /* per class, INFINITY: none known yet */
  uint32_t *pick; /* per class */
  bool *waits;    /* per class: it is in the queue */
  eg_vec queue;
  double *kid; /* scratch */
  size_t kid_cap;
};

static double count(void *user, const tarn_egraph *g, const tarn_eg_node *node, const double *kid) {
  (void)user, (void)g;
  double sum = 1;
  for (uint32_t i = 0; i < node->n; i++) sum += kid[i];
  return sum;
}

/* The node may be what its class costs least by. */
static bool consider(tarn_eg_best *b, uint32_t node) {
  tarn_eg_node e = tarn_eg_node_at(b->g, node);
  uint32_t cls = tarn_eg_find(b->g, node);
  if (!eg_grow(&b->mem, (void **)&b->kid, &b->kid_cap, e.n + (size_t)1, sizeof *b->kid))
    return false;
  for (uint32_t i = 0; i < e.n; i++) {
    b->kid[i] = b->cost[tarn_eg_find(b->g, e.kids[i])];
    if (!(b->kid[i] < INFINITY)) return true;
  }
  double c = b->fn(b->user, b->g, &e, b->kid);
  if (!(c < b->cost[cls])) return true;
  b->cost[cls] = c, b->pick[cls] = node;
  if (b->waits[cls]) return true;
  b->waits[cls] = true;
  return eg_push(&b->mem, &b->queue, cls);
}

static bool find_all(tarn_eg_best *b) {
  const tarn_egraph *g = b->g;
  TARN_EG_CLASSES(g, c)
    TARN_EG_NODES(g, c, n)
      if (!tarn_eg_node_at(g, n).n && !consider(b, n)) return false;
  for (size_t i = 0; i < b->queue.n; i++) {
    uint32_t cls = b->queue.p[i];
    b->waits[cls] = false;
    tarn_eg_use u = tarn_eg_uses(g, cls);
    while (tarn_eg_next_use(g, &u))
      if (!consider(b, u.node)) return false;
  }
  eg_vec_free(&b->mem, &b->queue);
  return true;
}

static bool make_room(tarn_eg_best *b) {
  size_t n = b->n ? b->n : 1;
  b->cost = eg_resize(&b->mem, NULL, 0, n * sizeof *b->cost);
  b->pick = eg_resize(&b->mem, NULL, 0, n * sizeof *b->pick);
  b->waits = eg_resize(&b->mem, NULL, 0, n * sizeof *b->waits);
  if (!b->cost || !b->pick || !b->waits) return false;
  for (uint32_t i = 0; i < b->n; i++) b->cost[i] = INFINITY;
  memset(b->pick, 0xFF, n * sizeof *b->pick);
  memset(b->waits, 0, n * sizeof *b->waits);
  return true;
}

tarn_eg_best *tarn_eg_best_new(tarn_egraph *g, tarn_eg_cost_fn *cost, void *user) {
  if (tarn_eg_rebuild(g) != TARN_OK) return NULL;
  tarn_eg_best *b = eg_resize(&g->mem, NULL, 0, sizeof *b);
  if (!b) return NULL;
  g->mem.bytes -= sizeof *b; /* it counts for itself */
  memset(b, 0, sizeof *b);
  eg_mem_init(&b->mem, &g->mem.a);
  b->g = g, b->fn = cost ? cost : count, b->user = user, b->n = tarn_eg_id_count(g);
  if (make_room(b) && find_all(b)) return b;
  eg_fail(&g->mem, b->mem.st, "%s", b->mem.msg);
  tarn_eg_best_free(b);
  return NULL;
}

void tarn_eg_best_free(tarn_eg_best *b) {
  if (!b) return;
  size_t n = b->n ? b->n : 1;
  eg_release(&b->mem, b->cost, n * sizeof *b->cost);
  eg_release(&b->mem, b->pick, n * sizeof *b->pick);
  eg_release(&b->mem, b->waits, n * sizeof *b->waits);
  eg_release(&b->mem, b->kid, b->kid_cap * sizeof *b->kid);
  eg_vec_free(&b->mem, &b->queue);
  tarn_allocator a = b->mem.a;
  a.realloc(a.user, b, sizeof *b, 0);
}

double tarn_eg_best_cost(const tarn_eg_best *b, uint32_t cls) {
  uint32_t c = tarn_eg_find(b->g, cls);
  return c < b->n ? b->cost[c] : INFINITY;
}

uint32_t tarn_eg_best_node(const tarn_eg_best *b, uint32_t cls) {
  uint32_t c = tarn_eg_find(b->g, cls);
  return c < b->n ? b->pick[c] : NONE;
}

/* ---- as text ---- */

typedef struct output {
  char *buf;
  size_t n, at; /* at >= n: it does not fit */
} output;

static void say(output *o, const char *s) {
  for (; *s && o->at < o->n; s++) o->buf[o->at++] = *s;
}

static void say_op(output *o, const tarn_eg_names *names, const tarn_eg_node *e) {
  bool is_number = e->op == names->number && e->payload;
  char number[16];
  snprintf(number, sizeof number, "%u", is_number ? e->payload - 1 : 0);
  if (e->n) say(o, "(");
  say(o, is_number ? number : tarn_eg_op_name(names, e->op));
}

/* The open terms are pairs (node, kids said so far); false: out of memory. */
static bool say_term(const tarn_eg_best *b, const tarn_eg_names *names, output *o, uint32_t node,
                     eg_mem *m, eg_vec *open) {
  bool ok = eg_push(m, open, node) && eg_push(m, open, 0);
  while (ok && open->n && o->at < o->n) {
    tarn_eg_node e = tarn_eg_node_at(b->g, open->p[open->n - 2]);
    uint32_t i = open->p[open->n - 1]++;
    if (!i) say_op(o, names, &e);
    if (i == e.n) {
      if (e.n) say(o, ")");
      open->n -= 2;
      continue;
    }
    say(o, " ");
    ok = eg_push(m, open, tarn_eg_best_node(b, e.kids[i])) && eg_push(m, open, 0);
  }
  return ok;
}

bool tarn_eg_best_text(const tarn_eg_best *b, const tarn_eg_names *names, uint32_t cls, char *buf,
                       size_t n) {
  output o = {buf, n, 0};
  uint32_t node = tarn_eg_best_node(b, cls);
  eg_mem m;
  eg_vec open = {0};
  eg_mem_init(&m, &b->mem.a);
  bool ok = node == NONE || say_term(b, names, &o, node, &m, &open);
  eg_vec_free(&m, &open);
  if (n) buf[o.at < n ? o.at : n - 1] = 0;
  return ok && o.at < n && node != NONE;
}
