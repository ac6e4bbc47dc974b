/* Searching with several threads.
 *
 * While a graph is searched nothing in it changes, so threads need only scratch of their own.  The pieces of a search
 * are taken one by one; what each finds is kept apart and put together in the order of the pieces, so that the result is
 * that of one thread.  Memory comes from the graph's allocator, one thread at a time; time is asked for by the caller's
 * thread only. */
#include "egraph/match.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct team {
  eg_searcher *s;
  const eg_search_job *j;
  const eg_sink *sinks;
  eg_sink *part;  /* pieces × rules */
  eg_vec *tuples; /* found and known of each */
  pthread_mutex_t lock;
  atomic_uint next;
  atomic_bool stop, failed;
} team;

typedef struct worker {
  team *t;
  pthread_t thread;
  bool caller;
} worker;

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

typedef struct pulse {
  team *t;
  bool caller;
} pulse;

static bool give_up(void *user) {
  pulse *p = user;
  if (p->caller && p->t->s->hurry && p->t->s->hurry(p->t->s->user)) atomic_store(&p->t->stop, true);
  return atomic_load(&p->t->stop);
}

static bool search_piece(team *t, eg_searcher *own, uint32_t k) {
  eg_sink *part = t->part + (size_t)k * t->j->n;
  eg_vec *v = t->tuples + 2 * (size_t)k * t->j->n;
  for (uint32_t i = 0; i < t->j->n; i++) {
    const eg_sink *whole = &t->sinks[i];
    part[i] = (eg_sink){.found = whole->found ? &v[2 * i] : NULL, .known = whole->known ? &v[2 * i + 1] : NULL,
                        .seen = whole->seen, .limit = whole->full ? 0 : whole->limit - whole->count, .full = whole->full};
  }
  for (size_t a = 0; a < own->keyed_cap; a++) own->keyed[a].at = NULL;
  return eg_search_piece(own, t->j, part, k);
}

static void *work(void *arg) {
  worker *w = arg;
  team *t = w->t;
  eg_mem mem = {.a = {locked_realloc, t}};
  pulse p = {t, w->caller};
  eg_searcher own = *t->s;
  own.mem = &mem, own.hurry = give_up, own.user = &p, own.gave_up = false, own.patience = 0;
  own.tuple = own.fixed = NULL, own.mode = NULL, own.keyed = NULL;
  own.tuple_cap = own.fixed_cap = own.mode_cap = own.keyed_cap = 0;
  own.pairs = own.pairs2 = NULL, own.pairs_cap = own.pairs2_cap = 0;
  bool ok = eg_scratch_prepare(&own);
  for (uint32_t k; ok && !atomic_load(&t->stop) && (k = atomic_fetch_add(&t->next, 1)) < t->j->pieces;)
    ok = search_piece(t, &own, k);
  if (!ok) atomic_store(&t->failed, true), atomic_store(&t->stop, true);
  eg_scratch_free(&own);
  return NULL;
}

/* ---- putting together ---- */

static bool append(eg_mem *m, eg_vec *to, const eg_vec *from) {
  if (!to || !from->n) return true;
  if (!eg_vec_reserve(m, to, from->n)) return false;
  memcpy(to->p + to->n, from->p, from->n * sizeof *from->p);
  to->n += from->n;
  return true;
}

static bool gather(team *t, eg_sink *sinks) {
  for (uint32_t k = 0; k < t->j->pieces; k++)
    for (uint32_t i = 0; i < t->j->n; i++) {
      const eg_sink *part = &t->part[(size_t)k * t->j->n + i];
      eg_vec *v = t->tuples + 2 * ((size_t)k * t->j->n + i);
      if (sinks[i].full) continue;
      sinks[i].count += part->count;
      sinks[i].full = part->full || sinks[i].count > sinks[i].limit;
      if (sinks[i].full && sinks[i].count <= sinks[i].limit) sinks[i].count = sinks[i].limit + 1;
      if (!append(t->s->mem, sinks[i].found, &v[0]) || !append(t->s->mem, sinks[i].known, &v[1])) return false;
      eg_vec_free(t->s->mem, &v[0]), eg_vec_free(t->s->mem, &v[1]);
    }
  return true;
}

/* The caller works too; threads that cannot be started are done without. */
static void run_team(team *t) {
  enum { MOST = 64 };
  worker w[MOST];
  unsigned n = t->s->threads < MOST ? t->s->threads : MOST, started = 1;
  w[0] = (worker){.t = t, .caller = true};
  for (; started < n; started++) {
    w[started] = (worker){.t = t};
    if (pthread_create(&w[started].thread, NULL, work, &w[started])) break;
  }
  work(&w[0]);
  for (unsigned i = 1; i < started; i++) pthread_join(w[i].thread, NULL);
}

bool eg_search_parallel(eg_searcher *s, const eg_search_job *j, eg_sink *sinks) {
  team t = {.s = s, .j = j, .sinks = sinks};
  size_t n = (size_t)j->pieces * j->n, parts = 0, vecs = 0;
  bool ok = eg_grow(s->mem, (void **)&t.part, &parts, n, sizeof *t.part) &&
            eg_grow(s->mem, (void **)&t.tuples, &vecs, 2 * n, sizeof *t.tuples);
  if (ok) {
    memset(t.part, 0, n * sizeof *t.part), memset(t.tuples, 0, 2 * n * sizeof *t.tuples);
    pthread_mutex_init(&t.lock, NULL);
    run_team(&t);
    pthread_mutex_destroy(&t.lock);
    ok = !atomic_load(&t.failed) && gather(&t, sinks);
    s->gave_up = atomic_load(&t.stop);
    for (size_t i = 0; i < 2 * n; i++) eg_vec_free(s->mem, &t.tuples[i]);
  }
  eg_release(s->mem, t.part, parts * sizeof *t.part);
  eg_release(s->mem, t.tuples, vecs * sizeof *t.tuples);
  return ok;
}
