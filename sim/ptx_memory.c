/* Memory: where an address lies, who touched it last, how many sectors and wavefronts a request
 * takes.
 *
 * A granule remembers who wrote it last and who read it, and when: an epoch is the time between two
 * barriers of one block. Two threads of a block order what they do by a barrier, so two of one
 * epoch do not; two of different blocks of a launch never do. */
#include "sim/ptx_internal.h"
#include <stdlib.h>
#include <string.h>

#define GAP (1 << 20) /* between parts, so that what runs over an end is seen */

/* ---------------------------------------------------------------- parts */
static uint32_t granules(const tarn_ptx *p, int64_t bytes) {
  return (uint32_t)tarn_ceildiv(bytes, p->granule);
}
static void mark(const tarn_ptx_device *d, ptx_part *part, int64_t from, int64_t bytes,
                 uint32_t epoch) {
  uint32_t end = granules(d->p, from + bytes);
  for (uint32_t g = (uint32_t)(from / d->p->granule); g < end; g++)
    part->wrote[g] = (ptx_touch){.epoch = epoch};
}
static void add_part(tarn_ptx_device *d, ptx_part *part, tarn_ptx_state state) {
  if (part->bytes / d->p->granule >= UINT32_MAX - 1)
    tarn_raise(d->cx, TARN_BAD_INPUT, "%s: %lld bytes are too many", part->name,
               (long long)part->bytes);
  if (state != TARN_PTX_CONSTANT) {
    uint32_t n = granules(d->p, part->bytes);
    part->wrote = TARN_ARRAY(d->cx, ptx_touch, n), part->read = TARN_ARRAY(d->cx, ptx_touch, n);
    if (state == TARN_PTX_WRITTEN) mark(d, part, 0, part->bytes, 1);
  }
  tarn_push(d->cx, &d->part, *part);
}
tarn_ptx_device *tarn_ptx_device_new(tarn_ctx *cx, tarn_ptx *p) {
  tarn_ptx_device *d = TARN_NEW(cx, tarn_ptx_device);
  *d = (tarn_ptx_device){.cx = cx, .p = p, .next = p->end, .epoch = PTX_FIRST};
  for (uint32_t i = 0; i < p->variable.n; i++) {
    const ptx_variable *v = p->variable.p[i];
    if (v->space == PTX_SHARED) continue;
    ptx_part part = {.name = v->name, .at = v->at, .bytes = v->bytes};
    part.data = tarn_new_aligned(cx, (size_t)v->bytes + 16, 64);
    memset(part.data, 0, (size_t)v->bytes + 16); /* without contents it is 0, as the manual says */
    if (v->data) memcpy(part.data, v->data, (size_t)v->bytes);
    add_part(d, &part, v->space == PTX_CONST ? TARN_PTX_CONSTANT : TARN_PTX_WRITTEN);
  }
  return d;
}
uint64_t tarn_ptx_map(tarn_ptx_device *d, const char *name, void *data, int64_t bytes,
                      tarn_ptx_state state) {
  uint64_t at = (d->next + GAP + 255) / 256 * 256;
  ptx_part part = {.name = name, .at = at, .bytes = bytes, .data = data};
  add_part(d, &part, state);
  d->next = at + (uint64_t)bytes;
  return at;
}
static ptx_part *part_at(const tarn_ptx_device *d, uint64_t at) {
  uint32_t lo = 0, hi = d->part.n;
  while (hi - lo > 1) {
    uint32_t mid = (lo + hi) / 2;
    *(d->part.p[mid].at <= at ? &lo : &hi) = mid;
  }
  return hi && d->part.p[lo].at <= at ? &d->part.p[lo] : NULL;
}
void tarn_ptx_mark(tarn_ptx_device *d, uint64_t at, int64_t bytes, tarn_ptx_state state) {
  ptx_part *part = part_at(d, at);
  int64_t from = part ? (int64_t)(at - part->at) : 0;
  if (!part || !part->wrote || from >= part->bytes) return;
  mark(d, part, from, tarn_min(bytes, part->bytes - from), state == TARN_PTX_WRITTEN);
}
void tarn_ptx_unmap(tarn_ptx_device *d, uint64_t at) {
  ptx_part *part = part_at(d, at);
  if (!part || part->at != at) return;
  part->name = "memory that was freed";
  part->bytes = 0;
}
void *tarn_ptx_data(const tarn_ptx_device *d, uint64_t at) {
  const ptx_part *part = part_at(d, at);
  return part && at - part->at <= (uint64_t)part->bytes ? part->data + (at - part->at) : NULL;
}

/* ---------------------------------------------------------------- where an address lies */
static ptx_space space_of(ptx_space s, uint64_t *at) {
  if (s != PTX_GENERIC) return s == PTX_CONST ? PTX_GLOBAL : s;
  if (*at >= PTX_LOCAL_AT && *at < PTX_LOCAL_AT + PTX_WINDOW) {
    *at -= PTX_LOCAL_AT;
    return PTX_LOCAL;
  }
  if (*at >= PTX_SHARED_AT && *at < PTX_SHARED_AT + PTX_WINDOW) {
    *at -= PTX_SHARED_AT;
    return PTX_SHARED;
  }
  return PTX_GLOBAL;
}
static ptx_part *find(ptx_run *r, ptx_space s, uint64_t at) {
  if (s == PTX_SHARED) return &r->shared;
  if (s == PTX_LOCAL) return &r->local;
  uint32_t *hint = &r->hint[r->x - r->e->op];
  ptx_part *p = *hint < r->d->part.n ? &r->d->part.p[*hint] : NULL;
  if (p && at >= p->at && at - p->at < (uint64_t)p->bytes) return p;
  p = part_at(r->d, at);
  if (p) *hint = (uint32_t)(p - r->d->part.p);
  return p;
}
TARN_NORETURN static void outside(const ptx_run *r, uint32_t lane, const ptx_part *p, uint64_t at,
                                  uint32_t bytes) {
  const ptx_part *all = r->d->part.p, *next = p ? p + 1 : all;
  bool global = p != &r->shared && p != &r->local;
  if (global && next < all + r->d->part.n && next->at - at <= GAP / 2)
    ptx_fault(r, lane, "%lld bytes before %s", (long long)(next->at - at), next->name);
  if (!p || (global && at >= p->at + (uint64_t)p->bytes + GAP))
    ptx_fault(r, lane, "%u bytes at address 0x%llx, which is not allocated", bytes,
              (unsigned long long)at);
  ptx_fault(r, lane, "bytes %lld to %lld of %s, which has %lld", (long long)(at - p->at),
            (long long)(at - p->at + bytes), p->name, (long long)p->bytes);
}

/* ---------------------------------------------------------------- races */
/* Of one granule that thread `me` accesses. */
typedef struct toucher {
  ptx_run *r;
  const ptx_part *p;
  uint32_t lane, epoch;
  uint16_t me, sync;
  int64_t byte;
} toucher;
TARN_NORETURN static void race(const toucher *t, const char *what, const ptx_touch *other) {
  const char *who = "several threads";
  if (other->thread <= PTX_THREADS)
    who = tarn_format(t->r->cx, "thread %u%s", other->thread - 1u,
                      other->epoch < t->r->began ? " of another block" : "");
  if (other->thread == PTX_BLOCKS) who = "threads of other blocks";
  if (other->thread == PTX_ATOMIC) who = "an atomic operation";
  ptx_fault(t->r, t->lane, "byte %lld of %s %s %s with no barrier between", (long long)t->byte,
            t->p->name, what, who);
}
/* Is the other touch ordered before this one? */
static inline bool ordered(const toucher *t, const ptx_touch *o) {
  if (o->epoch < t->r->launch) return true;
  if (o->epoch < t->r->began) return !t->p->at; /* shared and local memory begin anew */
  if (o->thread == PTX_BLOCKS) return false;
  if (o->epoch != t->epoch || o->thread == t->me) return true;
  bool warp = o->thread <= PTX_THREADS && (o->thread - 1) / PTX_LANES == (t->me - 1) / PTX_LANES;
  return warp && o->sync != t->sync;
}
static void reads(const toucher *t, ptx_touch *wrote, ptx_touch *read) {
  if (wrote->thread == PTX_PENDING && wrote->epoch >= t->r->began)
    ptx_fault(t->r, t->lane, "byte %lld of %s: an asynchronous copy to it has not been waited for",
              (long long)t->byte, t->p->name);
  if (wrote->epoch == 0 || (t->p->at == 0 && wrote->epoch < t->r->began))
    ptx_fault(t->r, t->lane, "byte %lld of %s is read, nothing has written it", (long long)t->byte,
              t->p->name);
  if (!ordered(t, wrote)) race(t, "is read here and written by", wrote);
  if (read->epoch == t->epoch && read->thread != t->me) {
    if (read->thread != PTX_BLOCKS) read->thread = PTX_MANY;
    return;
  }
  bool others = read->epoch >= t->r->launch && read->epoch < t->r->began;
  others |= read->thread == PTX_BLOCKS && read->epoch >= t->r->launch;
  others &= t->p->at != 0;
  *read = (ptx_touch){t->epoch, t->sync, others ? PTX_BLOCKS : t->me};
}
static void writes(const toucher *t, ptx_touch *wrote, const ptx_touch *read, ptx_access how) {
  bool both = how == PTX_UPDATE && wrote->thread == PTX_ATOMIC;
  if (wrote->thread == PTX_PENDING && wrote->epoch >= t->r->began)
    ptx_fault(t->r, t->lane, "byte %lld of %s: an asynchronous copy to it has not been waited for",
              (long long)t->byte, t->p->name);
  bool again = !both && wrote->epoch && !ordered(t, wrote);
  if (again && how == PTX_WRITE && t->r->l->agreed) t->r->doubtful |= UINT32_C(1) << t->lane;
  else if (again) race(t, "is written here and by", wrote);
  if (read->epoch && !ordered(t, read)) race(t, "is written here and read by", read);
  uint16_t who = how == PTX_UPDATE ? PTX_ATOMIC : how == PTX_BEGIN_COPY ? PTX_PENDING : t->me;
  *wrote = (ptx_touch){t->epoch, t->sync, who};
}
/* Written by an earlier launch, or before a barrier by a thread of this block. */
static inline bool is_settled(const toucher *t, const ptx_touch *wrote) {
  if (wrote->epoch < t->r->launch) return wrote->epoch && t->p->at;
  return wrote->epoch >= t->r->began && wrote->epoch < t->epoch && wrote->thread <= PTX_THREADS;
}
/* A whole granule that is settled, and that this epoch has read already: as nearly always. False:
 * not so. */
static inline bool read_again(const toucher *t, uint64_t from, uint32_t bytes) {
  uint32_t each = t->r->d->p->granule;
  if (bytes != each) return false;
  const ptx_touch *wrote = &t->p->wrote[from / each];
  ptx_touch *read = &t->p->read[from / each];
  if (read->epoch != t->epoch || !is_settled(t, wrote)) return false;
  if (read->thread != t->me && read->thread != PTX_BLOCKS) read->thread = PTX_MANY;
  return true;
}
static void touch(const toucher *t, uint64_t from, uint32_t bytes, ptx_access how) {
  uint32_t each = t->r->d->p->granule;
  toucher u = *t;
  for (uint64_t g = from / each; g * each < from + bytes; g++) {
    u.byte = (int64_t)(g * each);
    if (how == PTX_READ) reads(&u, &t->p->wrote[g], &t->p->read[g]);
    else writes(&u, &t->p->wrote[g], &t->p->read[g], how);
  }
}
void ptx_arrives(ptx_run *r, const ptx_copy *c) {
  uint32_t each = r->d->p->granule;
  for (uint64_t g = c->at / each; g * each < c->at + c->bytes; g++)
    r->shared.wrote[g] =
        (ptx_touch){r->d->epoch, r->w->sync, (uint16_t)(r->w->first + c->lane + 1)};
  memcpy(r->shared.data + c->at, c->data, c->bytes);
}

/* ---------------------------------------------------------------- what a request takes */
/* Distinct numbers, most of them in rising order. */
static uint32_t distinct(uint64_t *v, uint32_t n) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = k;
    while (j > 0 && v[j - 1] > v[i]) j--;
    if (j > 0 && v[j - 1] == v[i]) continue;
    uint64_t x = v[i];
    memmove(&v[j + 1], &v[j], (k - j) * sizeof *v);
    v[j] = x, k++;
  }
  return k;
}
/* Aligned accesses of at most 32 bytes: each lies in one sector. */
static void count_sectors(ptx_run *r, const uint64_t *at, uint32_t n, uint32_t bytes) {
  uint32_t sectors = 1, places = 1;
  bool rising = true;
  for (uint32_t i = 1; i < n; i++) {
    rising &= at[i] >= at[i - 1];
    places += at[i] != at[i - 1];
    sectors += at[i] / 32 != at[i - 1] / 32;
  }
  if (!rising) {
    uint64_t v[PTX_LANES];
    memcpy(v, at, n * sizeof *v);
    places = distinct(v, n);
    for (uint32_t i = 0; i < places; i++) v[i] /= 32;
    sectors = distinct(v, places);
  }
  r->n->requests++;
  r->n->sectors += sectors;
  r->n->used += (int64_t)places * bytes;
}
/* Words that the banks are asked for; each gives one at a time. */
typedef struct banks {
  uint8_t n[32], most;
  uint64_t word[32][PTX_LANES];
} banks;
static bool wants(banks *b, uint64_t word) {
  uint32_t at = word % 32, n = b->n[at];
  for (uint32_t i = n; i-- > 0;)
    if (b->word[at][i] == word) return false;
  b->word[at][n] = word;
  b->n[at] = (uint8_t)(n + 1);
  if (b->n[at] > b->most) b->most = b->n[at];
  return true;
}
/* Requests of 8 and 16 bytes a lane go by halves and quarters of a warp. */
static void count_wavefronts(ptx_run *r, const uint64_t *at, uint32_t n, uint32_t bytes) {
  uint32_t words = bytes < 4 ? 1 : bytes / 4, group = PTX_LANES / words, all = 0, places = 0;
  uint64_t first[PTX_LANES];
  for (uint32_t from = 0; from < n; from += group) {
    banks b;
    b.most = 0;
    memset(b.n, 0, sizeof b.n);
    for (uint32_t i = from; i < n && i < from + group; i++)
      for (uint32_t w = 0; w < words; w++) places += wants(&b, at[i] / 4 + w);
    all += b.most;
  }
  if (bytes != 4) {
    memcpy(first, at, n * sizeof *first);
    places = distinct(first, n);
  }
  r->n->shared++, r->n->wavefronts += all;
  r->n->fewest += ((int64_t)places * bytes + 127) / 128;
}

/* ---------------------------------------------------------------- a warp's request */
static uint8_t *one(ptx_run *r, ptx_space s, uint64_t at, uint32_t lane, uint32_t bytes,
                    ptx_access how) {
  ptx_part *p = find(r, s, at);
  if (!p || at - p->at >= (uint64_t)p->bytes || (uint64_t)p->bytes - (at - p->at) < bytes)
    outside(r, lane, p, at, bytes);
  if (at % bytes)
    ptx_fault(r, lane, "address 0x%llx of %s is no multiple of %u", (unsigned long long)at, p->name,
              bytes);
  if (p->wrote) {
    toucher t = {.r = r, .p = p, .lane = lane, .epoch = r->d->epoch};
    t.me = (uint16_t)(r->w->first + lane + 1), t.sync = r->w->sync;
    if (how != PTX_READ || !read_again(&t, at - p->at, bytes)) touch(&t, at - p->at, bytes, how);
  } else if (how != PTX_READ) ptx_fault(r, lane, "%s is constant and written to", p->name);
  return p->data + (at - p->at);
}
/* Local memory: each thread has its own. */
static uint8_t *own(ptx_run *r, uint64_t at, uint32_t lane, uint32_t bytes, ptx_access how) {
  uint32_t each = r->e->p.local;
  if (at >= each || each - at < bytes)
    ptx_fault(r, lane, "bytes %llu to %llu of local memory, which has %u", (unsigned long long)at,
              (unsigned long long)at + bytes, each);
  return one(r, PTX_LOCAL, at + (uint64_t)(r->w->first + lane) * each, lane, bytes, how);
}
/* All lanes read global memory within one part, as nearly always. False: not so. */
static bool together(ptx_run *r, ptx_space space, const uint64_t *at, uint32_t mask, uint32_t bytes,
                     uint8_t **where) {
  uint64_t list[PTX_LANES], lo = UINT64_MAX, hi = 0, low = 0;
  uint32_t n = 0;
  if (space != PTX_GLOBAL && space != PTX_GENERIC && space != PTX_CONST) return false;
  for (uint32_t m = mask; m; m &= m - 1) list[n++] = at[__builtin_ctz(m)];
  for (uint32_t i = 0; i < n; i++) {
    lo = list[i] < lo ? list[i] : lo, hi = list[i] > hi ? list[i] : hi;
    low |= list[i];
  }
  if (hi >= PTX_SHARED_AT || (low & (bytes - 1))) return false;
  const ptx_part *p = find(r, PTX_GLOBAL, lo);
  if (!p || hi - p->at > (uint64_t)p->bytes || (uint64_t)p->bytes - (hi - p->at) < bytes)
    return false;
  toucher t = {.r = r, .p = p, .epoch = r->d->epoch, .sync = r->w->sync};
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    where[l] = p->data + (at[l] - p->at);
    if (!p->wrote) continue;
    t.lane = l, t.me = (uint16_t)(r->w->first + l + 1);
    if (!read_again(&t, at[l] - p->at, bytes)) touch(&t, at[l] - p->at, bytes, PTX_READ);
  }
  count_sectors(r, list, n, bytes);
  return true;
}
void ptx_touches(ptx_run *r, ptx_space space, const uint64_t *at, uint32_t mask, uint32_t bytes,
                 ptx_access how, uint8_t **where) {
  uint64_t global[PTX_LANES], shared[PTX_LANES];
  uint32_t nglobal = 0, nshared = 0, nlocal = 0;
  if (how == PTX_READ && together(r, space, at, mask, bytes, where)) return;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    uint64_t a = at[l];
    ptx_space s = space_of(space, &a);
    if (s == PTX_LOCAL) where[l] = own(r, a, l, bytes, how), nlocal++;
    else where[l] = one(r, s, a, l, bytes, how);
    if (s == PTX_GLOBAL) global[nglobal++] = a;
    else if (s == PTX_SHARED) shared[nshared++] = a;
  }
  if (nglobal) count_sectors(r, global, nglobal, bytes);
  if (nshared) count_wavefronts(r, shared, nshared, bytes);
  r->n->locals += nlocal > 0;
}
