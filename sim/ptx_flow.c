/* Where lanes that part at a branch meet again: its immediate post-dominator.
 *
 * Source: Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm", 2001, on the reversed
 * graph: blocks are numbered, the end is the last number, and the immediate post-dominators are
 * iterated to their fixed point in an order in which successors come first. */
#include "sim/ptx_internal.h"

typedef struct flow {
  tarn_ctx *cx;
  ptx_entry *e;
  uint32_t n;                    /* blocks, without the end */
  uint32_t *of, *first;          /* block of an op; first op of a block */
  uint32_t *next;                /* two for each block, n: the end, PTX_NOWHERE: none */
  uint32_t *at, *before;         /* the same, reversed */
  uint32_t *order, norder, *nth; /* reached blocks, the end last; place of a block in it */
  uint32_t *dom;
} flow;

static bool ends(const ptx_op *x) { return x->what == PTX_DO_BRANCH || x->what == PTX_DO_EXIT; }
static void blocks(flow *f) {
  const ptx_entry *e = f->e;
  bool *head = TARN_ARRAY(f->cx, bool, e->nop + 1);
  head[0] = true;
  for (uint32_t i = 0; i < e->nop; i++) {
    if (e->op[i].what == PTX_DO_BRANCH) head[e->op[i].offset] = true;
    if (ends(&e->op[i])) head[i + 1] = true;
  }
  f->of = TARN_ARRAY(f->cx, uint32_t, e->nop + 1);
  f->first = TARN_ARRAY(f->cx, uint32_t, e->nop + 2);
  for (uint32_t i = 0; i < e->nop; i++) {
    if (head[i]) f->first[f->n++] = i;
    f->of[i] = f->n - 1;
  }
  f->first[f->n] = e->nop;
  f->of[e->nop] = f->n;
}
static void edges(flow *f) {
  f->next = TARN_ARRAY(f->cx, uint32_t, 2 * f->n + 2);
  for (uint32_t b = 0; b < f->n; b++) {
    const ptx_op *x = &f->e->op[f->first[b + 1] - 1];
    uint32_t *to = &f->next[2 * (size_t)b];
    to[0] = b + 1, to[1] = PTX_NOWHERE;
    if (x->what == PTX_DO_BRANCH) {
      to[0] = f->of[x->offset];
      if (x->guarded) to[1] = b + 1;
    }
    if (x->what == PTX_DO_EXIT) {
      to[0] = f->n;
      if (x->guarded) to[1] = b + 1;
    }
  }
}
/* Who comes before a block: from before[at[b]] on. */
static void reverse(flow *f) {
  f->at = TARN_ARRAY(f->cx, uint32_t, f->n + 2);
  f->before = TARN_ARRAY(f->cx, uint32_t, 2 * f->n + 1);
  for (uint32_t i = 0; i < 2 * f->n; i++)
    if (f->next[i] != PTX_NOWHERE) f->at[f->next[i] + 1]++;
  for (uint32_t b = 0; b <= f->n; b++) f->at[b + 1] += f->at[b];
  uint32_t *fill = tarn_copy(f->cx, f->at, (f->n + 2) * sizeof *fill);
  for (uint32_t i = 0; i < 2 * f->n; i++)
    if (f->next[i] != PTX_NOWHERE) f->before[fill[f->next[i]]++] = i / 2;
}
/* Depth first from the end along the reversed edges; loops that never end are not reached. */
static void visit(flow *f) {
  uint32_t *stack = TARN_ARRAY(f->cx, uint32_t, f->n + 1), depth = 0;
  uint32_t *seen = tarn_copy(f->cx, f->at, (f->n + 2) * sizeof *seen);
  bool *reached = TARN_ARRAY(f->cx, bool, f->n + 1);
  f->order = TARN_ARRAY(f->cx, uint32_t, f->n + 1);
  f->nth = TARN_ARRAY(f->cx, uint32_t, f->n + 1);
  stack[depth++] = f->n, reached[f->n] = true;
  while (depth) {
    uint32_t b = stack[depth - 1];
    if (seen[b] < f->at[b + 1]) {
      uint32_t to = f->before[seen[b]++];
      if (!reached[to]) stack[depth++] = to, reached[to] = true;
      continue;
    }
    f->nth[b] = f->norder, f->order[f->norder++] = b, depth--;
  }
}
static uint32_t common(const flow *f, uint32_t a, uint32_t b) {
  while (a != b) {
    while (f->nth[a] < f->nth[b]) a = f->dom[a];
    while (f->nth[b] < f->nth[a]) b = f->dom[b];
  }
  return a;
}
static bool improve(flow *f, uint32_t b) {
  uint32_t best = PTX_NOWHERE;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t to = f->next[2 * (size_t)b + i];
    if (to == PTX_NOWHERE || f->dom[to] == PTX_NOWHERE) continue;
    best = best == PTX_NOWHERE ? to : common(f, best, to);
  }
  if (best == f->dom[b]) return false;
  f->dom[b] = best;
  return true;
}

void ptx_meets(tarn_ctx *cx, ptx_entry *e) {
  tarn_mark m = tarn_arena_mark(cx);
  flow f = {.cx = cx, .e = e};
  blocks(&f), edges(&f), reverse(&f), visit(&f);
  f.dom = TARN_ARRAY(cx, uint32_t, f.n + 1);
  for (uint32_t b = 0; b < f.n; b++) f.dom[b] = PTX_NOWHERE;
  f.dom[f.n] = f.n;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = f.norder - 1; i-- > 0;) more |= improve(&f, f.order[i]);
  }
  for (uint32_t i = 0; i < e->nop; i++) {
    uint32_t to = f.dom[f.of[i]];
    e->op[i].meet = to < f.n ? f.first[to] : e->nop;
  }
  tarn_release(cx, m);
}
