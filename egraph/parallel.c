/* Searching with several threads.
 *
 * While a graph is searched nothing in it changes, so threads need only scratch of their own.  The
 * caller's thread takes the pieces of a search from the first on and writes where one thread alone
 * would; the others take them from the last on and keep what they find, which comes behind in the
 * order of the pieces: the result is that of one thread. Threads are started before it is known
 * what there is to search, as a processor that sleeps takes a millisecond to come, and look again
 * and again whether they may begin. Memory comes from the graph's allocator, one thread at a time;
 * time is asked for by the caller's thread only. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "egraph/match.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_THREADS = 64 };

typedef struct share { /* what a helper found for one rule in one piece: up to there in its lists */
  uint64_t count;
  size_t found, known;
  bool full;
} share;

typedef struct worker {
  struct eg_team *t;
  pthread_t thread;
  bool caller;
  eg_vec *list; /* a helper's: found and known of each rule */
  size_t lists;
} worker;

struct eg_team {
  eg_searcher *s;
  const eg_search_job *j;
  eg_sink *sinks;
  eg_sink *before; /* as they were */
  share *share;    /* pieces × rules */
  worker **owner;  /* per piece; NULL: the caller */
  size_t before_cap, share_cap, owner_cap;
  pthread_mutex_t lock;
  uint32_t low, high; /* pieces from low on and below high are left */
  atomic_bool stop, failed;
  atomic_int go; /* 0: wait, 1: search, -1: there is nothing to do */
  unsigned workers;
  worker w[MOST_THREADS];
};
typedef eg_team team;

/* The graph's own memory behind a lock; limits and counts are kept there. */
static void *locked_realloc(void *user, void *p, size_t old, size_t n) {
  team *t = user;
  pthread_mutex_lock(&t->lock);
  void *q = NULL;
  if (n) q = eg_resize(t->s->mem, p, old, n);
  else eg_release(t->s->mem, p, old);
  pthread_mutex_unlock(&t->lock);
  return q;
}

static bool give_up(void *user) {
  worker *w = user;
  team *t = w->t;
  if (w->caller && t->s->hurry && t->s->hurry(t->s->user)) atomic_store(&t->stop, true);
  return atomic_load(&t->stop);
}

/* The next piece, or NONE. */
static uint32_t claim(worker *w) {
  team *t = w->t;
  uint32_t k = NONE;
  pthread_mutex_lock(&t->lock);
  if (t->low < t->high && !atomic_load(&t->stop)) k = w->caller ? t->low++ : --t->high;
  if (k != NONE) t->owner[k] = w->caller ? NULL : w;
  pthread_mutex_unlock(&t->lock);
  return k;
}

static bool search_piece(worker *w, eg_searcher *own, eg_sink *part, uint32_t k) {
  team *t = w->t;
  uint32_t n = t->j->n;
  for (size_t a = 0; a < own->keyed_cap; a++) own->keyed[a].at = NULL;
  if (w->caller) return eg_search_piece(own, t->j, t->sinks, k);
  for (uint32_t i = 0; i < n; i++) {
    const eg_sink *b = &t->before[i];
    part[i] = (eg_sink){.found = b->found ? &w->list[2 * i] : NULL,
                        .known = b->known ? &w->list[2 * i + 1] : NULL,
                        .seen = b->seen,
                        .limit = b->full ? 0 : b->limit - b->count,
                        .full = b->full};
    if (b->limit == UINT64_MAX) part[i].limit = UINT64_MAX;
  }
  bool ok = eg_search_piece(own, t->j, part, k);
  for (uint32_t i = 0; i < n; i++)
    t->share[(size_t)k * n + i] =
        (share){part[i].count, w->list[2 * i].n, w->list[2 * i + 1].n, part[i].full};
  return ok;
}

static void search_pieces(worker *w) {
  team *t = w->t;
  eg_mem mem = {.a = {locked_realloc, t}};
  eg_searcher own = *t->s;
  own.mem = &mem, own.hurry = give_up, own.user = w, own.gave_up = false, own.patience = 0;
  own.tuple = own.fixed = NULL, own.mode = NULL, own.keyed = NULL;
  own.tuple_cap = own.fixed_cap = own.mode_cap = own.keyed_cap = 0;
  own.kinds = (eg_kinds){0};
  own.done = NULL, own.met = NULL, own.trail = NULL;
  own.done_cap = own.met_cap = own.trail_cap = 0;
  own.pairs = own.pairs2 = NULL, own.pairs_cap = own.pairs2_cap = 0;
  eg_sink *part = NULL;
  size_t parts = 0;
  bool ok =
      eg_scratch_prepare(&own) && eg_grow(&mem, (void **)&part, &parts, t->j->n, sizeof *part);
  for (uint32_t k; ok && (k = claim(w)) != NONE;) ok = search_piece(w, &own, part, k);
  if (!ok) atomic_store(&t->failed, true), atomic_store(&t->stop, true);
  eg_release(&mem, part, parts * sizeof *part);
  eg_scratch_free(&own);
}

static void *work(void *arg) {
  worker *w = arg;
  int go;
  while (!(go = atomic_load(&w->t->go))) sched_yield();
  if (go > 0) search_pieces(w);
  return NULL;
}

/* ---- putting together ---- */

static bool append(eg_mem *m, eg_vec *to, const eg_vec *from, size_t first, size_t end) {
  if (!to || first == end) return true;
  if (!eg_vec_reserve(m, to, end - first)) return false;
  memcpy(to->p + to->n, from->p + first, (end - first) * sizeof *from->p);
  to->n += end - first;
  return true;
}

/* What a helper found in a piece begins where the piece that it took before ends, which is the next
 * one that it owns. */
static share share_before(const team *t, uint32_t k, uint32_t i) {
  for (uint32_t next = k + 1; next < t->j->pieces; next++)
    if (t->owner[next] == t->owner[k]) return t->share[(size_t)next * t->j->n + i];
  return (share){0};
}

/* The caller gets the list itself, once all its spans are known. */
static bool hand_over(eg_mem *m, eg_lot *l, eg_vec *list) {
  if (!list->n) return true;
  if (!eg_grow(m, (void **)&l->list, &l->list_cap, l->n_list + 1, sizeof *l->list)) return false;
  l->list[l->n_list++] = *list;
  *list = (eg_vec){0};
  return true;
}

static bool add_span(eg_mem *m, eg_lot *l, const eg_vec *from, size_t first, size_t end) {
  if (first == end) return true;
  if (!eg_grow(m, (void **)&l->span, &l->span_cap, l->n_span + 1, sizeof *l->span)) return false;
  l->span[l->n_span++] = (eg_span){from->p + first, end - first};
  return true;
}

static bool take_found(eg_mem *m, const eg_sink *s, const eg_vec *from, size_t first, size_t end) {
  return s->lot && s->found ? add_span(m, s->lot, from, first, end)
                            : append(m, s->found, from, first, end);
}

static bool gather(team *t) {
  eg_mem *m = t->s->mem;
  for (uint32_t k = t->high; k < t->j->pieces; k++)
    for (uint32_t i = 0; i < t->j->n; i++) {
      eg_sink *s = &t->sinks[i];
      share part = t->share[(size_t)k * t->j->n + i], from = share_before(t, k, i);
      const eg_vec *list = &t->owner[k]->list[2 * i];
      if (s->full) continue;
      s->count += part.count;
      s->full = part.full || s->count > s->limit;
      if (s->full && s->count <= s->limit) s->count = s->limit + 1;
      if (!take_found(m, s, &list[0], from.found, part.found) ||
          !append(m, s->known, &list[1], from.known, part.known))
        return false;
    }
  bool ok = true;
  for (unsigned w = 1; w < t->workers; w++)
    for (uint32_t i = 0; ok && t->w[w].list && i < t->j->n; i++)
      if (t->sinks[i].lot) ok = hand_over(m, t->sinks[i].lot, &t->w[w].list[2 * i]);
  return ok;
}

void eg_lot_free(eg_mem *m, eg_lot *l) {
  for (size_t i = 0; i < l->n_list; i++) eg_vec_free(m, &l->list[i]);
  eg_release(m, l->list, l->list_cap * sizeof *l->list);
  eg_release(m, l->span, l->span_cap * sizeof *l->span);
  *l = (eg_lot){0};
}

/* ---- a team's life ---- */

/* A new thread must not begin where the caller is at work: Linux may leave it waiting there for
 * milliseconds. */
static pthread_attr_t *apart(pthread_attr_t *a) {
#if defined(__linux__)
  cpu_set_t set;
  int here = sched_getcpu();
  if (here < 0 || sched_getaffinity(0, sizeof set, &set) || !CPU_ISSET(here, &set) ||
      CPU_COUNT(&set) < 2)
    return NULL;
  CPU_CLR(here, &set);
  if (pthread_attr_init(a)) return NULL;
  if (!pthread_attr_setaffinity_np(a, sizeof set, &set)) return a;
  pthread_attr_destroy(a);
#else
  (void)a;
#endif
  return NULL;
}

eg_team *eg_team_start(eg_searcher *s) {
  team *t = eg_resize(s->mem, NULL, 0, sizeof *t);
  if (!t) return NULL;
  memset(t, 0, sizeof *t);
  t->s = s;
  pthread_mutex_init(&t->lock, NULL);
  unsigned n = s->threads < MOST_THREADS ? s->threads : MOST_THREADS;
  t->w[0] = (worker){.t = t, .caller = true};
  pthread_attr_t space, *attr = n > 1 ? apart(&space) : NULL;
  for (t->workers = 1; t->workers < n;
       t->workers++) { /* those that cannot be started are done without */
    worker *w = &t->w[t->workers];
    *w = (worker){.t = t};
    if (pthread_create(&w->thread, attr, work, w)) break;
  }
  if (attr) pthread_attr_destroy(attr);
  return t;
}

static void join_all(team *t, int go) {
  atomic_store(&t->go, go);
  if (go > 0) search_pieces(&t->w[0]);
  for (unsigned i = 1; i < t->workers; i++) pthread_join(t->w[i].thread, NULL);
}

static void dismiss(team *t) {
  eg_mem *m = t->s->mem;
  for (unsigned i = 1; i < t->workers; i++) {
    for (size_t k = 0; t->w[i].list && k < t->w[i].lists; k++) eg_vec_free(m, &t->w[i].list[k]);
    eg_release(m, t->w[i].list, t->w[i].lists * sizeof *t->w[i].list);
  }
  pthread_mutex_destroy(&t->lock);
  eg_release(m, t->before, t->before_cap * sizeof *t->before);
  eg_release(m, t->share, t->share_cap * sizeof *t->share);
  eg_release(m, t->owner, t->owner_cap * sizeof *t->owner);
  eg_release(m, t, sizeof *t);
}

void eg_team_send_home(eg_team *t) {
  if (!t) return;
  join_all(t, -1);
  dismiss(t);
}

/* Memory for as much as will likely be found. */
static bool expect(eg_mem *m, eg_vec *v, size_t words) {
  enum { WORTH = 1 << 16 };
  if (words < WORTH || (m->limit && m->bytes + words * sizeof *v->p > m->limit / 2)) return true;
  return eg_vec_reserve(m, v, words);
}

/* The caller touches large lists that the others will write to: its processor has pages at hand
 * that were freed just now, while another would be given ones that a virtual machine's host has
 * taken back, and wait for them. */
static void touch(const eg_vec *v) {
  enum { PAGE = 1 << 10, LARGE = 1 << 20 }; /* words */
  for (size_t i = 0; v->cap >= LARGE && i < v->cap; i += PAGE) ((volatile uint32_t *)v->p)[i] = 0;
}

static bool prepare_lists(team *t, double more) {
  eg_mem *m = t->s->mem;
  uint32_t n = t->j->n;
  for (unsigned k = 0; k < t->workers; k++) {
    worker *w = &t->w[k];
    void *p = NULL;
    if (k && !eg_grow(m, &p, &w->lists, 2 * (size_t)n, sizeof *w->list)) return false;
    if (k) w->list = p, memset(p, 0, w->lists * sizeof *w->list);
    for (uint32_t i = 0; i < n; i++) {
      eg_vec *list = k ? &w->list[2 * i] : t->sinks[i].found;
      double words = (double)t->sinks[i].last * more * 2 /
                     t->workers; /* twice its part: graphs grow faster than that */
      if (t->sinks[i].found && !expect(m, list, (size_t)words)) return false;
      if (k) touch(list);
    }
  }
  return true;
}

bool eg_team_search(eg_team *t, const eg_search_job *j, eg_sink *sinks, double more) {
  eg_searcher *s = t->s;
  t->j = j, t->sinks = sinks, t->high = j->pieces;
  bool ok = eg_grow(s->mem, (void **)&t->before, &t->before_cap, j->n, sizeof *t->before) &&
            eg_grow(s->mem, (void **)&t->share, &t->share_cap, (size_t)j->pieces * j->n,
                    sizeof *t->share) &&
            eg_grow(s->mem, (void **)&t->owner, &t->owner_cap, j->pieces, sizeof *t->owner) &&
            prepare_lists(t, more);
  if (ok) memcpy(t->before, sinks, j->n * sizeof *sinks);
  join_all(t, ok ? 1 : -1);
  if (ok) {
    s->gave_up = atomic_load(&t->stop);
    ok = !atomic_load(&t->failed) && gather(t);
  }
  dismiss(t);
  return ok;
}
