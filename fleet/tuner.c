/* The tuner's side: a batch of trials becomes jobs of the store, which are handed out, answered,
 * stored and only then acknowledged. */
#include "fleet/link.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define AT_ONCE 256        /* answers of one transaction */
#define MOMENT  300        /* milliseconds that answers are waited for */
#define LOOK    1.0        /* seconds between two looks at the queue */
#define SECOND  (1u << 30) /* turns of jobs that were set aside, and are tried once more */
#define ALIVE   11.0       /* seconds since a worker was heard, which tells every five */
#define LONELY                                                                                     \
  5 /* looks without any worker, or with nothing under way, before that is acted on                \
     */

typedef struct tuner {
  tarn_fleet *f;
  tarn_store *s;
  const char *key, *hw, *name; /* of the hardware in words and as a number, of the store */
  natsSubscription *answers;
  tarn_map *asked; /* hash of a trial -> how often it was asked for */
  void (*watch)(void *user, const tarn_fleet_view *v);
  void *user;
  tarn_fleet_view v;
  double begin, looked;
  uint32_t waiting, lonely, stuck; /* waiting: workers that ask for jobs, a little rounded up */
  bool warned;
} tuner;
typedef struct batch {
  uint32_t n, left;
  tarn_job *job;
  bool *answered;
  double *seconds;
  bool *unsure;
} batch;

/* ---- jobs ---- */
static uint32_t turn_of(tuner *t, const tarn_record *r) {
  bool fresh;
  uint64_t h = tarn_hash_mix(tarn_hash_mix(r->kernel, r->schedule), r->threads);
  uint64_t *times = tarn_map_at(t->asked, h, &fresh);
  if (fresh) *times = 0;
  return (uint32_t)(*times)++;
}
static void make_jobs(tuner *t, const tarn_record *r, batch *b) {
  for (uint32_t i = 0; i < b->n; i++) b->job[i] = tarn_job_of(t->key, &r[i], turn_of(t, &r[i]));
  tarn_jobs_ask(t->s, t->key, b->job, b->n);
}
static void hand_out_one(tuner *t, const tarn_job *j);
/* A job that was set aside is handed out once more: machines that are shut off at any moment may
 * have ended its workers. False: it was already. */
static bool once_more(tuner *t, tarn_job *j) {
  if (j->turn >= SECOND) return false;
  *j = tarn_job_of(t->key, &j->of, j->turn + SECOND);
  tarn_jobs_ask(t->s, t->key, j, 1);
  return true;
}
/* Jobs that have an answer by now, perhaps one that another tuner stored. */
static void look_up(tuner *t, batch *b) {
  tarn_answer a;
  for (uint32_t i = 0; i < b->n; i++) {
    if (b->answered[i] || !tarn_jobs_answer(t->s, b->job[i].name, &a)) continue;
    if (a.aside && once_more(t, &b->job[i])) {
      if (!tarn_jobs_answer(t->s, b->job[i].name, &a)) {
        hand_out_one(t, &b->job[i]);
        continue;
      }
    }
    b->answered[i] = true, b->left--;
    b->seconds[i] = a.seconds, b->unsure[i] = a.drifted;
    t->v.answers++;
  }
  t->v.answered = b->n - b->left;
}
static void hand_out_one(tuner *t, const tarn_job *x) {
  tarn_mark m = tarn_arena_mark(t->f->cx);
  tarn_buf text = {.cx = t->f->cx};
  fleet_job j = {.store = t->name,
                 .kernel = x->of.kernel_text,
                 .schedule = x->of.schedule_text,
                 .threads = x->of.threads,
                 .seed = TARN_MEASURE_SEED + x->turn,
                 .second = x->turn >= SECOND};
  memcpy(j.name, x->name, sizeof j.name);
  fleet_job_print(&text, &j);
  if (text.n > FLEET_JOB)
    tarn_raise(t->f->cx, TARN_BAD_INPUT, "a kernel of %zu bytes as text: a job has at most %d",
               text.n, FLEET_JOB);
  fleet_put(t->f, fleet_job_subject(t->f->cx, t->hw, t->name, j.name), &text);
  tarn_release(t->f->cx, m);
}
static void hand_out(tuner *t, const batch *b) {
  for (uint32_t i = 0; i < b->n; i++)
    if (!b->answered[i]) hand_out_one(t, &b->job[i]);
}

/* ---- answers ---- */
typedef struct received {
  const natsMsg *m;
  tarn_answer *out;
} received;
static void read_answer(tarn_ctx *cx, void *arg) {
  received *r = arg;
  fleet_answer_read(cx, natsMsg_GetData(r->m), (size_t)natsMsg_GetDataLength(r->m), r->out);
}
static void settle(tuner *t, const natsMsgList *list) {
  tarn_answer x[AT_ONCE];
  uint32_t n = 0;
  for (int i = 0; i < list->Count && i < AT_ONCE; i++) {
    received r = {list->Msgs[i], &x[n]};
    n += tarn_tried(t->f->cx, read_answer, &r);
  }
  tarn_settled s = tarn_jobs_settle(t->s, x, n);
  t->v.dropped += (uint32_t)list->Count - n + s.unknown;
}
static void free_list(void *list) { natsMsgList_Destroy(list); }
/* One transaction for all that is there; then they are acknowledged. True when something came. */
static bool collect(tuner *t) {
  natsMsgList *list = TARN_NEW(t->f->cx, natsMsgList);
  jsErrCode e = 0;
  natsStatus s = natsSubscription_Fetch(list, t->answers, AT_ONCE, MOMENT, &e);
  if (s != NATS_OK) return false; /* looks at the queue say what is the matter */
  tarn_defer(t->f->cx, free_list, list);
  settle(t, list);
  for (int i = 0; i < list->Count; i++) natsMsg_Ack(list->Msgs[i], NULL);
  natsConnection_FlushTimeout(t->f->nc, MOMENT); /* lost, they come again and change nothing */
  return true;
}
typedef struct collecting {
  tuner *t;
  bool came;
} collecting;
static void collect_here(tarn_ctx *cx, void *arg) {
  (void)cx;
  collecting *c = arg;
  c->came = collect(c->t);
}

static bool collect_some(tuner *t) {
  tarn_mark m = tarn_arena_mark(t->f->cx);
  collecting c = {t, false};
  tarn_status st = tarn_protect(t->f->cx, collect_here, &c);
  if (st != TARN_OK) tarn_reraise(t->f->cx, st);
  tarn_release(t->f->cx, m);
  return c.came;
}

/* ---- looks at the queue ---- */
static bool info(tuner *t, const char *stream, const char *queue, jsConsumerInfo **ci) {
  jsErrCode e = 0;
  natsStatus s;
  do s = js_GetConsumerInfo(ci, t->f->js, stream, queue, NULL, &e);
  while (s != NATS_NOT_FOUND && !fleet_passed(t->f, stream, s, e));
  return s == NATS_OK;
}
/* Jobs, workers; false: the queue is gone, with what was in it. */
static bool look_at_jobs(tuner *t) {
  jsConsumerInfo *ci;
  if (!info(t, fleet_jobs(t->f->cx, t->hw), FLEET_CONSUMER, &ci)) return false;
  t->v.queued = ci->NumPending;
  t->v.busy = (uint32_t)ci->NumAckPending, t->waiting = (uint32_t)ci->NumWaiting;
  jsConsumerInfo_Destroy(ci);
  return true;
}
static bool look_at_answers(tuner *t, uint64_t *under_way) {
  jsConsumerInfo *ci;
  if (!info(t, fleet_answers(t->f->cx), t->name, &ci)) return false;
  *under_way = ci->NumPending + (uint64_t)ci->NumAckPending;
  jsConsumerInfo_Destroy(ci);
  return true;
}
static void warn_of_nobody(tuner *t) {
  const tarn_fleet_state *st = tarn_fleet_look(t->f);
  uint32_t other = 0, old = 0, version = 0;
  for (uint32_t i = 0; i < st->nworker; i++) {
    const tarn_fleet_worker *w = &st->worker[i];
    if (w->heard > 60) continue;
    if (w->version != FLEET_VERSION) old++, version = w->version;
    else if (strcmp(w->hw, t->key) != 0) other++;
    else if (w->heard < ALIVE) return; /* between two jobs at each look */
  }
  if (old)
    fleet_say(t->f, "no worker has this tuner's version, %d: %u have others, as %u", FLEET_VERSION,
              old, version);
  else
    fleet_say(t->f, "no worker for \"%s\" is there, %u for other hardware: start tarn worker",
              t->key, other);
  t->warned = true;
}
/* Once a second. What nobody has and nobody answers any more is handed out again. */
static void look(tuner *t, const batch *b) {
  uint64_t under_way = 0;
  double now = tarn_now();
  if (now < t->looked + LOOK) return;
  t->looked = now;
  t->v.seconds = (uint64_t)(now - t->begin + 0.5);
  bool there = look_at_jobs(t) && look_at_answers(t, &under_way);
  bool stuck = !there || !(t->v.queued + t->v.busy + under_way);
  t->stuck = stuck ? t->stuck + 1 : 0;
  t->lonely = t->v.busy + t->waiting ? 0 : t->lonely + 1;
  if (!there || t->stuck >= LONELY) {
    fleet_make(t->f, t->hw, t->name);
    hand_out(t, b), t->stuck = 0;
  }
  if (t->lonely >= LONELY && !t->warned) warn_of_nobody(t);
  if (t->watch) t->watch(t->user, &t->v);
}

/* ---- a batch ---- */
static void await(tuner *t, batch *b) {
  tarn_ctx *cx = t->f->cx;
  look_up(t, b);
  if (b->left) hand_out(t, b);
  while (b->left) {
    bool came = collect_some(t);
    tarn_mark m = tarn_arena_mark(cx);
    if (came || tarn_now() > t->looked + LOOK) look_up(t, b); /* or another tuner stored it */
    if (b->left) look(t, b);
    tarn_release(cx, m);
  }
}
static void fleet_measure(const tarn_measurer *m, const tarn_record *r, uint32_t n, double *seconds,
                          bool *unsure) {
  tuner *t = m->user;
  batch b = {.n = n, .left = n, .seconds = seconds, .unsure = unsure};
  b.job = TARN_ARRAY(t->f->cx, tarn_job, n + 1);
  b.answered = TARN_ARRAY(t->f->cx, bool, n + 1);
  make_jobs(t, r, &b);
  t->v.jobs = n;
  await(t, &b);
}
static void measure(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_trial *x, uint32_t n,
                    uint32_t threads, double *seconds, bool *unsure) {
  tarn_record *r = TARN_ARRAY(tarn_lang_ctx(L), tarn_record, n + 1);
  (void)hw;
  for (uint32_t i = 0; i < n; i++) r[i] = tarn_record_of(L, x[i].sig, x[i].sched, threads);
  fleet_measure(&(tarn_measurer){user, measure}, r, n, seconds, unsure);
}
/* tarn_fleet_measurer() by the key of a hardware; and what that does with trials, of records. */
static const tarn_measurer *fleet_measurer_of(tarn_fleet *f, tarn_store *s, const char *key,
                                              void (*watch)(void *user, const tarn_fleet_view *v),
                                              void *user) {
  tuner *t = TARN_NEW(f->cx, tuner);
  tarn_measurer *m = TARN_NEW(f->cx, tarn_measurer);
  *t = (tuner){.f = f, .s = s, .key = key, .watch = watch, .user = user, .begin = tarn_now()};
  t->name = tarn_store_name(s), t->hw = fleet_hw(f->cx, key), t->asked = tarn_map_new(f->cx);
  fleet_make(f, t->hw, t->name);
  t->answers = fleet_pull(f, fleet_answers(f->cx), t->name);
  while (collect_some(t)) continue; /* what came after an earlier tuner had ended */
  *m = (tarn_measurer){t, measure};
  return m;
}
const tarn_measurer *tarn_fleet_measurer(tarn_fleet *f, tarn_store *s, const tarn_hw *hw,
                                         void (*watch)(void *user, const tarn_fleet_view *v),
                                         void *user) {
  return fleet_measurer_of(f, s, tarn_hw_key(hw, f->cx), watch, user);
}
