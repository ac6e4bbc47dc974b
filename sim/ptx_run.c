/* Blocks one after the other, their warps in turn from barrier to barrier. */
#include "sim/ptx_internal.h"
#include <string.h>

void ptx_fault(const ptx_run *r, uint32_t lane, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *what = tarn_vformat(r->cx, fmt, ap);
  va_end(ap);
  uint32_t t = r->w->first + lane;
  const uint32_t *n = r->l->block, *b = r->block;
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s:%u: %s: %s (kernel %s, block %u,%u,%u, thread %u,%u,%u)",
             r->d->p->file, r->x->line, r->x->name, what, r->e->p.name, b[0], b[1], b[2], t % n[0],
             t / n[0] % n[1], t / n[0] / n[1]);
}

/* ---------------------------------------------------------------- branches */
static void branch(ptx_run *r, const ptx_op *x, uint32_t taken) {
  ptx_warp *w = r->w;
  ptx_level *top = &w->level[w->depth - 1];
  uint32_t rest = top->mask & w->live & ~taken, pc = top->pc;
  if (!rest || !taken) {
    top->pc = rest ? pc + 1 : (uint32_t)x->offset;
    return;
  }
  r->n->divergent++;
  if (w->depth + 2 > PTX_DEPTH)
    ptx_fault(r, (uint32_t)__builtin_ctz(taken), "branches part lanes %d deep", PTX_DEPTH);
  uint32_t meet = x->meet;
  if (top->meet == meet) w->depth--; /* what waits there already does */
  else top->pc = meet;
  if (pc + 1 != meet) w->level[w->depth++] = (ptx_level){pc + 1, meet, rest};
  if (x->offset != meet) w->level[w->depth++] = (ptx_level){(uint32_t)x->offset, meet, taken};
}
static uint32_t threads_of(const ptx_run *r, const ptx_warp *w) {
  uint32_t left = r->threads - w->first;
  return left >= PTX_LANES ? PTX_ALL : (1u << left) - 1;
}
static void barrier(ptx_run *r, uint32_t mask) {
  ptx_warp *w = r->w;
  if (mask != w->live)
    ptx_fault(r, (uint32_t)__builtin_ctz(w->live & ~mask),
              "this thread does not reach the barrier that others of its warp wait at");
  uint32_t all = threads_of(r, w);
  if (w->live != all)
    ptx_fault(r, (uint32_t)__builtin_ctz(all & ~w->live),
              "this thread has ended, others of its warp wait at the barrier");
  w->waits = (uint32_t)(r->x - r->e->op);
}
static void leave(ptx_run *r, uint32_t mask) {
  ptx_warp *w = r->w;
  w->live &= ~mask;
  w->level[w->depth - 1].pc++;
}

/* ---------------------------------------------------------------- ops */
static void setp(const ptx_op *x, char *file, uint32_t mask) {
  uint32_t m = ptx_setp(x, file), other = ~m, *d = ptx_u32(file, x->d);
  uint32_t c = x->mode ? *ptx_u32(file, x->c) : 0;
  if (x->not_c) c = ~c;
  if (x->mode == 1) m &= c, other &= c;
  if (x->mode == 2) m |= c, other |= c;
  if (x->mode == 3) m ^= c, other ^= c;
  *d = (*d & ~mask) | (m & mask);
  if (x->d2 == TARN_NONE) return;
  uint32_t *d2 = ptx_u32(file, x->d2);
  *d2 = (*d2 & ~mask) | (other & mask);
}
static void logic(const ptx_op *x, char *file, uint32_t mask) {
  uint32_t a = *ptx_u32(file, x->a), b = *ptx_u32(file, x->b), *d = ptx_u32(file, x->d), v;
  if (x->mode) a = ~a;
  if (x->not_c) b = ~b;
  switch (x->code) {
  case 0: v = a & b; break;
  case 1: v = a | b; break;
  case 2: v = a ^ b; break;
  case 3: v = ~a; break;
  default: v = a;
  }
  *d = (*d & ~mask) | (v & mask);
}
static void selp(const ptx_op *x, char *file, uint32_t mask) {
  uint32_t p = *ptx_u32(file, x->c);
  if (x->not_c) p = ~p;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    ptx_put(file, x->d, x->wide_d, l, ptx_get(file, p >> l & 1 ? x->a : x->b, x->wide_d, l));
  }
}
static void pack(const ptx_op *x, char *file, uint32_t mask) {
  uint32_t bits = 8 * x->wide_a;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    uint64_t v = x->what == PTX_DO_UNPACK ? ptx_get(file, x->a, x->wide_d, l) : 0;
    for (uint32_t i = 0; i < x->n; i++)
      if (x->what == PTX_DO_PACK) v |= ptx_get(file, x->v[i], x->wide_a, l) << (i * bits);
      else ptx_put(file, x->v[i], x->wide_a, l, v >> (i * bits));
    if (x->what == PTX_DO_PACK) ptx_put(file, x->d, x->wide_d, l, v);
  }
}
static void execute(ptx_run *r, const ptx_op *x, uint32_t mask) {
  char *file = r->w->file;
  switch ((ptx_what)x->what) {
  case PTX_DO_ALU: ptx_alu(x, file, mask); break;
  case PTX_DO_SETP: setp(x, file, mask); break;
  case PTX_DO_SELP: selp(x, file, mask); break;
  case PTX_DO_LOGIC: logic(x, file, mask); break;
  case PTX_DO_CVT: ptx_cvt(x, file, mask); break;
  case PTX_DO_PACK:
  case PTX_DO_UNPACK: pack(x, file, mask); break;
  case PTX_DO_LOAD: ptx_load(r, x, mask); break;
  case PTX_DO_STORE: ptx_store(r, x, mask); break;
  case PTX_DO_ATOM: ptx_atom(r, x, mask); break;
  case PTX_DO_COPY: ptx_copy_begin(r, x, mask); break;
  case PTX_DO_COMMIT: r->w->group++; break;
  case PTX_DO_WAIT: ptx_copy_wait(r, x); break;
  case PTX_DO_WARP_BARRIER: r->w->sync++; break;
  case PTX_DO_SHUFFLE: ptx_shuffle(r, x, mask); break;
  case PTX_DO_VOTE: ptx_vote(r, x, mask); break;
  case PTX_DO_LDMATRIX: ptx_ldmatrix(r, x, mask); break;
  case PTX_DO_MMA: ptx_mma(r, x, mask); break;
  default: break;
  }
}

/* ---------------------------------------------------------------- a warp */
static void count(ptx_run *r, uint32_t mask) {
  r->n->instructions++;
  r->n->threads += __builtin_popcount(mask);
  if (r->l->limit && r->n->instructions > r->l->limit)
    tarn_raise(r->cx, TARN_NO_RESULT, "%s: kernel %s: more than %lld instructions", r->d->p->file,
               r->e->p.name, (long long)r->l->limit);
}
/* One op of the lanes on top. False: the warp waits. */
static bool step(ptx_run *r, ptx_level *top, uint32_t mask) {
  const ptx_op *x = r->x = &r->e->op[top->pc];
  if (x->guarded) {
    uint32_t p = *ptx_u32(r->w->file, x->guard);
    mask &= x->guard_not ? ~p : p;
  }
  count(r, mask);
  if (x->what == PTX_DO_BRANCH) {
    branch(r, x, mask);
    return true;
  }
  if (!mask) {
    top->pc++;
    return true;
  }
  if (x->what == PTX_DO_EXIT) {
    leave(r, mask);
    return true;
  }
  top->pc++;
  if (x->what == PTX_DO_BARRIER) {
    barrier(r, mask);
    return false;
  }
  execute(r, x, mask);
  return true;
}
static void run_warp(ptx_run *r, ptx_warp *w) {
  r->w = w;
  while (w->depth) {
    ptx_level *top = &w->level[w->depth - 1];
    uint32_t mask = top->mask & w->live;
    if (!mask || top->pc == top->meet) w->depth--;
    else if (!step(r, top, mask)) return;
  }
}

/* ---------------------------------------------------------------- a block */
static void fill(char *file, uint32_t at, uint32_t v) {
  for (uint32_t l = 0; l < PTX_LANES; l++) ptx_u32(file, at)[l] = v;
}
static void special(const ptx_run *r, const ptx_warp *w) {
  const uint32_t *s = r->e->special, *n = r->l->block;
  for (uint32_t d = 0; d < 3; d++) {
    if (s[PTX_NTID + d]) fill(w->file, s[PTX_NTID + d], n[d]);
    if (s[PTX_CTAID + d]) fill(w->file, s[PTX_CTAID + d], r->block[d]);
    if (s[PTX_NCTAID + d]) fill(w->file, s[PTX_NCTAID + d], r->l->grid[d]);
  }
  for (uint32_t l = 0; l < PTX_LANES; l++) {
    uint32_t t = w->first + l, bit = 1u << l;
    const uint32_t v[PTX_SPECIAL_N] = {[PTX_TID] = t % n[0],
                                       [PTX_TID + 1] = t / n[0] % n[1],
                                       [PTX_TID + 2] = t / n[0] / n[1],
                                       [PTX_LANEID] = l,
                                       [PTX_LANEID + 1] = w->first / PTX_LANES,
                                       [PTX_LANEID + 2] = bit,
                                       [PTX_LANEID + 3] = bit - 1,
                                       [PTX_LANEID + 4] = bit | (bit - 1)};
    for (uint32_t i = 0; i < PTX_SPECIAL_N; i++)
      if (s[i] && (i < PTX_NTID || i >= PTX_LANEID)) ptx_u32(w->file, s[i])[l] = v[i];
  }
}
static void begin_warp(const ptx_run *r, ptx_warp *w) {
  w->live = threads_of(r, w);
  w->depth = 1, w->waits = PTX_NOWHERE, w->copy.n = 0, w->group = 0;
  w->level[0] = (ptx_level){0, r->e->nop, w->live};
  special(r, w);
}
/* All wait at one barrier, or all have ended. */
static bool go_on(ptx_run *r) {
  ptx_warp *at = NULL, *away = NULL;
  for (uint32_t i = 0; i < r->nwarp; i++) {
    ptx_warp *w = &r->warp[i];
    if (w->waits == PTX_NOWHERE) away = w;
    else if (!at) at = w;
    else if (r->e->op[at->waits].offset != r->e->op[w->waits].offset) away = w;
  }
  if (!at) return false;
  r->w = at, r->x = &r->e->op[at->waits];
  if (away)
    ptx_fault(r, (uint32_t)__builtin_ctz(at->live), "waits for thread %u, which %s", away->first,
              away->waits == PTX_NOWHERE ? "has ended" : "waits at another barrier");
  return true;
}
static void next_epoch(ptx_run *r) {
  if (++r->d->epoch == UINT32_MAX)
    tarn_raise(r->cx, TARN_NO_RESULT, "%s: too many barriers", r->d->p->file);
}
static void run_block(ptx_run *r) {
  next_epoch(r);
  r->began = r->d->epoch;
  for (uint32_t i = 0; i < r->nwarp; i++) begin_warp(r, &r->warp[i]);
  for (;;) {
    for (uint32_t i = 0; i < r->nwarp; i++) run_warp(r, &r->warp[i]);
    if (!go_on(r)) return;
    for (uint32_t i = 0; i < r->nwarp; i++) r->warp[i].waits = PTX_NOWHERE;
    r->n->barriers++;
    next_epoch(r);
  }
}

/* ---------------------------------------------------------------- a launch */
static ptx_part memory(tarn_ptx_device *d, const char *name, int64_t bytes) {
  ptx_part p = {.name = name, .bytes = bytes};
  if (!bytes) return p;
  uint32_t n = (uint32_t)tarn_ceildiv(bytes, d->p->granule);
  p.data = TARN_ARRAY(d->cx, uint8_t, bytes + 16);
  p.wrote = TARN_ARRAY(d->cx, ptx_touch, n), p.read = TARN_ARRAY(d->cx, ptx_touch, n);
  return p;
}
static void check(const ptx_run *r) {
  const tarn_ptx_launch *l = r->l;
  const tarn_ptx_entry *e = &r->e->p;
  uint64_t threads = 1;
  for (uint32_t d = 0; d < 3; d++) {
    threads *= l->block[d];
    if (!l->grid[d] || !l->block[d] || l->block[d] > PTX_THREADS)
      tarn_raise(r->cx, TARN_BAD_INPUT, "%s: kernel %s: no such grid of blocks", r->d->p->file,
                 e->name);
    if (e->need[0] && e->need[d] != l->block[d])
      tarn_raise(r->cx, TARN_BAD_INPUT, "%s: kernel %s: blocks of %u,%u,%u threads are needed",
                 r->d->p->file, e->name, e->need[0], e->need[1], e->need[2]);
  }
  uint64_t most = e->most[0] ? (uint64_t)e->most[0] * e->most[1] * e->most[2] : PTX_THREADS;
  if (threads > most || threads > PTX_THREADS)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: kernel %s: %llu threads of a block, at most %llu",
               r->d->p->file, e->name, (unsigned long long)threads, (unsigned long long)most);
}
static void make_warps(ptx_run *r) {
  r->nwarp = (r->threads + PTX_LANES - 1) / PTX_LANES;
  r->warp = TARN_ARRAY(r->cx, ptx_warp, r->nwarp);
  for (uint32_t i = 0; i < r->nwarp; i++) {
    ptx_warp *w = &r->warp[i];
    w->first = i * PTX_LANES;
    w->file = tarn_new_aligned(r->cx, r->e->file, 64);
    memset(w->file, 0, r->e->file);
    for (uint32_t k = 0; k < r->e->number.n; k++) {
      const ptx_number *n = &r->e->number.p[k];
      for (uint32_t l = 0; l < PTX_LANES; l++) ptx_put(w->file, n->at, n->bytes, l, n->bits);
    }
  }
}
void tarn_ptx_run(tarn_ptx_device *d, const tarn_ptx_launch *l, tarn_ptx_counts *counts) {
  tarn_mark mark = tarn_arena_mark(d->cx);
  ptx_run r = {.cx = d->cx, .d = d, .l = l, .n = counts, .e = d->p->entry.p[l->entry]};
  check(&r);
  r.threads = l->block[0] * l->block[1] * l->block[2];
  r.shared = memory(d, "shared memory", (int64_t)r.e->p.shared + l->shared);
  r.local = memory(d, "local memory", (int64_t)r.e->p.local * r.threads);
  r.hint = TARN_ARRAY(d->cx, uint32_t, r.e->nop);
  make_warps(&r);
  next_epoch(&r);
  r.launch = d->epoch;
  uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
  for (uint64_t i = 0; i < (l->run ? l->nrun : blocks); i++) {
    uint64_t b = l->run ? l->run[i] : i;
    r.block[0] = (uint32_t)(b % l->grid[0]), r.block[1] = (uint32_t)(b / l->grid[0] % l->grid[1]);
    r.block[2] = (uint32_t)(b / l->grid[0] / l->grid[1]);
    run_block(&r);
  }
  tarn_release(d->cx, mark);
}
