/* A worker: pulls one job at a time, measures it, puts the answer, and acknowledges the job behind
 * that. */
#include "fleet/bench.h"
#include "fleet/link.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define TELL   5.0 /* seconds between two words of what it does */
#define MOMENT 500 /* milliseconds that a job is waited for */

/* A job that ended so many workers is given up: three, in a fleet whose workers do not end
 * otherwise. Where they often do, as they are shut off at any moment, a job may have met that
 * each time: so many that this would be once in a million. The second time three are enough. */
#define DEATHS      3
#define MOST_DEATHS 20
#define CHANCE      1e-6
#define SOME        20 /* deliveries without a death that are supposed before there are any */

typedef struct worker {
  tarn_fleet *f;
  tarn_ctx *cx;
  const tarn_worker_options *o;
  const char *key, *hw, *name;
  fleet_bench bench;
  fleet_worker self;
  tarn_worker_report r;
  natsMsg *now;                   /* the job that is measured */
  double told, beat, every, last; /* last: when there was a job */
} worker;

/* ---- signs of life ---- */
static void tell(worker *w) {
  tarn_mark m = tarn_arena_mark(w->cx);
  tarn_buf b = {.cx = w->cx};
  w->self.done = w->r.done, w->self.failed = w->r.failed, w->self.drifted = w->r.drifted;
  w->self.dropped = w->r.dropped, w->self.at_first = w->bench.at_first[w->bench.hw->units];
  fleet_worker_print(&b, &w->self);
  kvStore_Put(NULL, w->f->workers, w->name, b.p, (int)b.n); /* the next one may come through */
  w->told = tarn_now();
  tarn_release(w->cx, m);
}
static bool stops(const worker *w) { return w->o->stop && w->o->stop(w->o->stop_user); }
static bool tick(void *user) {
  worker *w = user;
  double now = tarn_now();
  if (w->now && now > w->beat + w->every) {
    natsMsg_InProgress(w->now, NULL);
    w->beat = now;
  }
  if (now > w->told + TELL) tell(w);
  return !stops(w);
}

/* ---- a job that ends workers ---- */
static bool gives_up(worker *w, uint64_t deaths, bool second) {
  jsConsumerInfo *ci;
  jsErrCode e = 0;
  natsStatus s;
  if (deaths < DEATHS) return false;
  if (second) return true;
  do s = js_GetConsumerInfo(&ci, w->f->js, fleet_jobs(w->cx, w->hw), FLEET_CONSUMER, NULL, &e);
  while (!fleet_passed(w->f, "the queue", s, e));
  double all = (double)ci->Delivered.Consumer, own = (double)deaths,
         others = fmax(0, all - (double)ci->Delivered.Stream - own);
  jsConsumerInfo_Destroy(ci);
  double rate = (others + 2 * sqrt(others)) / (all - own + SOME); /* more than that is unlikely */
  return deaths >= MOST_DEATHS || pow(rate, own) < CHANCE;
}
static void set_aside(worker *w, const fleet_job *j, uint64_t deaths, tarn_answer *x) {
  x->seconds = INFINITY, x->aside = true;
  x->reason = tarn_format(w->cx, "it ended %" PRIu64 " workers", deaths);
  kvStore_PutString(NULL, w->f->aside, j->name,
                    tarn_format(w->cx, "%s, the last before %s", x->reason, w->name));
  fleet_say(w->f, "job %s is set aside: %s", j->name, x->reason);
  w->r.aside++;
}

/* ---- a job ---- */
typedef struct reading {
  const natsMsg *m;
  fleet_job *j;
} reading;
static void read_job(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  fleet_job_read(cx, natsMsg_GetData(r->m), (size_t)natsMsg_GetDataLength(r->m), r->j);
}
static uint64_t deaths_of(natsMsg *m) {
  jsMsgMetaData *d = NULL;
  if (natsMsg_GetMetaData(&d, m) != NATS_OK) return 0;
  uint64_t n = d->NumDelivered;
  jsMsgMetaData_Destroy(d);
  return n > 0 ? n - 1 : 0;
}
static void count(worker *w, const tarn_answer *x) {
  w->r.done++;
  w->r.failed += !(x->seconds < INFINITY);
  w->r.drifted += x->drifted;
  if (x->calibration > 0) w->self.calibration = x->calibration;
}
/* The answer is in its stream before the job is acknowledged: dead in between, another measures
 * again, and the store takes the first. */
static void answer(worker *w, natsMsg *m, const fleet_job *j, const tarn_answer *x) {
  tarn_buf b = {.cx = w->cx};
  jsErrCode e = 0;
  fleet_answer_print(&b, x);
  fleet_put(w->f, fleet_answer_subject(w->cx, j->store, j->name), &b);
  natsMsg_AckSync(m, NULL, &e); /* lost, it is handed out again */
}
static void do_job(worker *w, natsMsg *m) {
  fleet_job j;
  reading r = {m, &j};
  uint64_t deaths = deaths_of(m);
  if (!tarn_tried(w->cx, read_job, &r)) {
    w->r.dropped++;
    fleet_say(w->f, "a malformed job is dropped: %s", tarn_shown(w->cx, tarn_message(w->cx)));
    natsMsg_Term(m, NULL);
    return;
  }
  tarn_answer x = {.worker = w->name};
  memcpy(x.name, j.name, sizeof x.name);
  w->now = m, w->beat = tarn_now(), w->self.job = j.name;
  if (gives_up(w, deaths, j.second)) set_aside(w, &j, deaths, &x);
  else if (!fleet_bench_measure(&w->bench, &j, &x)) natsMsg_Nak(m, NULL), x.name[0] = 0;
  w->now = NULL, w->self.job = "";
  if (!x.name[0]) return; /* stopped: another takes it */
  answer(w, m, &j, &x);
  count(w, &x);
}

/* ---- one after another ---- */
typedef struct turn {
  worker *w;
  natsSubscription *jobs;
} turn;
static void free_list(void *list) { natsMsgList_Destroy(list); }
static void take_one(tarn_ctx *cx, void *arg) {
  turn *t = arg;
  worker *w = t->w;
  natsMsgList *list = TARN_NEW(cx, natsMsgList);
  jsErrCode e = 0;
  natsStatus s = natsSubscription_Fetch(list, t->jobs, 1, MOMENT, &e);
  if (s == NATS_NO_RESPONDERS || s == NATS_NOT_FOUND) fleet_make(w->f, w->hw, NULL);
  else if (s != NATS_TIMEOUT && !fleet_passed(w->f, "a job", s, e)) return;
  if (s != NATS_OK) return;
  tarn_defer(cx, free_list, list);
  if (list->Count > 0) {
    do_job(w, list->Msgs[0]);
    w->last = tarn_now();
  }
}
static void loop(worker *w) {
  turn t = {w, fleet_pull(w->f, fleet_jobs(w->cx, w->hw), FLEET_CONSUMER)};
  w->last = tarn_now();
  while (tick(w)) {
    tarn_mark m = tarn_arena_mark(w->cx);
    tarn_status st = tarn_protect(w->cx, take_one, &t);
    if (st != TARN_OK) tarn_reraise(w->cx, st);
    tarn_release(w->cx, m);
    if (w->o->jobs && w->r.done >= w->o->jobs) break;
    if (w->o->idle > 0 && tarn_now() > w->last + w->o->idle) break;
  }
  tell(w);
}

/* ---- the beginning ---- */
/* A sign of life after a third of the silence that the queue allows. */
static double beats(worker *w) {
  jsConsumerInfo *ci;
  jsErrCode e = 0;
  natsStatus s;
  do s = js_GetConsumerInfo(&ci, w->f->js, fleet_jobs(w->cx, w->hw), FLEET_CONSUMER, NULL, &e);
  while (!fleet_passed(w->f, "the queue", s, e));
  double silence = (double)ci->Config->AckWait / 1e9;
  jsConsumerInfo_Destroy(ci);
  return silence / 3;
}
static const char *own_name(tarn_ctx *cx, const char *given) {
  char host[FLEET_NAME / 2] = "worker";
  if (given && !fleet_is_name(given))
    tarn_raise(cx, TARN_USAGE, "--name %s: letters, digits, - and _ are expected", given);
  if (given) return given;
  gethostname(host, sizeof host - 1);
  for (char *p = host; *p; p++)
    if (!fleet_is_name((char[]){*p, 0})) *p = '-';
  return tarn_format(cx, "%s-%ld", host, (long)getpid());
}
tarn_worker_report tarn_worker_run(tarn_fleet *f, tarn_lang *L, const tarn_hw *hw,
                                   const tarn_worker_options *o) {
  tarn_ctx *cx = f->cx;
  worker *w = TARN_NEW(cx, worker);
  *w = (worker){.f = f, .cx = cx, .o = o, .key = tarn_hw_key(hw, cx)};
  w->hw = fleet_hw(cx, w->key), w->name = own_name(cx, o->name);
  w->bench = (fleet_bench){.L = L, .hw = hw, .o = o, .tick = tick, .user = w};
  w->self = (fleet_worker){.name = w->name,
                           .hw = w->key,
                           .program = TARN_VERSION,
                           .version = FLEET_VERSION,
                           .simulates = o->simulate,
                           .job = ""};
  f->stops = o->stop, f->stops_of = o->stop_user;
  fleet_bench_open(&w->bench);
  fleet_make(f, w->hw, NULL);
  w->every = beats(w);
  fleet_say(f, "worker %s for \"%s\": %s", w->name, w->key,
            o->simulate ? "simulates" : "runs kernels of its fleet");
  loop(w);
  return w->r;
}
