/* What there is in a fleet: see tarn_fleet_look(). */
#include "fleet/link.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MANY 100000 /* entries of a bucket that are looked at */

/* ---- buckets ---- */
typedef struct entry {
  const char *key, *value;
  size_t n;
  double age;
} entry;
static void free_keys(void *list) { kvKeysList_Destroy(list); }
static uint32_t entries(tarn_fleet *f, kvStore *kv, const entry **out) {
  TARN_VEC(entry) v = {0};
  kvKeysList *keys = TARN_NEW(f->cx, kvKeysList);
  natsStatus s;
  do s = kvStore_Keys(keys, kv, NULL);
  while (s != NATS_NOT_FOUND && !fleet_passed(f, "what workers say", s, 0));
  if (s == NATS_OK) tarn_defer(f->cx, free_keys, keys);
  for (int i = 0; s == NATS_OK && i < keys->Count && i < MANY; i++) {
    kvEntry *e;
    if (kvStore_Get(&e, kv, keys->Keys[i]) != NATS_OK) continue; /* gone meanwhile */
    entry x = {.key = tarn_shown(f->cx, keys->Keys[i]), .n = (size_t)kvEntry_ValueLen(e)};
    x.value = x.n ? tarn_strndup(f->cx, kvEntry_Value(e), x.n) : "";
    x.age = (double)time(NULL) - (double)kvEntry_Created(e) / 1e9;
    tarn_push(f->cx, &v, x);
    kvEntry_Destroy(e);
  }
  *out = v.p;
  return v.n;
}

/* ---- workers ---- */
typedef struct reading {
  const entry *e;
  fleet_worker *w;
} reading;
static void read_worker(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  fleet_worker_read(cx, r->e->value, r->e->n, r->w);
}
static void workers(tarn_fleet *f, tarn_fleet_state *st) {
  const entry *e;
  uint32_t n = entries(f, f->workers, &e);
  tarn_fleet_worker *out = TARN_ARRAY(f->cx, tarn_fleet_worker, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    fleet_worker w;
    reading r = {&e[i], &w};
    if (!tarn_tried(f->cx, read_worker, &r)) continue;
    tarn_fleet_worker *o = &out[st->nworker++];
    *o = (tarn_fleet_worker){.name = w.name,
                             .hw = tarn_shown(f->cx, w.hw),
                             .program = tarn_shown(f->cx, w.program),
                             .job = tarn_shown(f->cx, w.job),
                             .version = w.version,
                             .done = w.done,
                             .failed = w.failed,
                             .drifted = w.drifted,
                             .dropped = w.dropped,
                             .calibration = w.calibration,
                             .heard = e[i].age,
                             .simulates = w.simulates};
    o->drift = w.at_first > 0 ? w.calibration / w.at_first : 0;
  }
  st->worker = out;
}
/* ---- queues ---- */
static bool consumer(tarn_fleet *f, const char *stream, const char *name, jsConsumerInfo **ci) {
  jsErrCode e = 0;
  natsStatus s;
  do s = js_GetConsumerInfo(ci, f->js, stream, name, NULL, &e);
  while (s != NATS_NOT_FOUND && !fleet_passed(f, stream, s, e));
  return s == NATS_OK;
}
static const char *words_for(tarn_fleet *f, const tarn_fleet_state *st, const char *hw) {
  for (uint32_t i = 0; i < st->nworker; i++)
    if (!strcmp(fleet_hw(f->cx, st->worker[i].hw), hw)) return st->worker[i].hw;
  return "";
}
static void queue_of(tarn_fleet *f, const char *stream, const char *hw, tarn_fleet_queue *q) {
  jsConsumerInfo *ci;
  if (!consumer(f, stream, FLEET_CONSUMER, &ci)) return;
  *q = (tarn_fleet_queue){.hw = hw,
                          .queued = ci->NumPending,
                          .busy = (uint64_t)ci->NumAckPending,
                          .handed_out = ci->Delivered.Stream};
  if (ci->Delivered.Consumer > ci->Delivered.Stream)
    q->again = ci->Delivered.Consumer - ci->Delivered.Stream;
  jsConsumerInfo_Destroy(ci);
}
static void free_names(void *list) { jsStreamNamesList_Destroy(list); }
static void queues(tarn_fleet *f, tarn_fleet_state *st) {
  const char *head = fleet_jobs(f->cx, "");
  jsStreamNamesList *list = NULL;
  jsErrCode e = 0;
  natsStatus s;
  do s = js_StreamNames(&list, f->js, NULL, &e);
  while (s != NATS_NOT_FOUND && !fleet_passed(f, "the queues", s, e));
  if (s != NATS_OK) return;
  tarn_defer(f->cx, free_names, list);
  tarn_fleet_queue *out = TARN_ARRAY(f->cx, tarn_fleet_queue, list->Count + 1);
  for (int i = 0; i < list->Count; i++) {
    if (strncmp(list->List[i], head, strlen(head)) != 0) continue;
    const char *hw = tarn_strdup(f->cx, list->List[i] + strlen(head));
    queue_of(f, list->List[i], hw, &out[st->nqueue]);
    out[st->nqueue].name = words_for(f, st, hw);
    st->nqueue += out[st->nqueue].hw != NULL;
  }
  st->queue = out;
}
/* What the queues of stores have yet to hand out, and what nobody has acknowledged. */
static void waiting_answers(tarn_fleet *f, tarn_fleet_state *st) {
  jsConsumerInfoList *list = NULL;
  jsErrCode e = 0;
  natsStatus s;
  do s = js_Consumers(&list, f->js, fleet_answers(f->cx), NULL, &e);
  while (s != NATS_NOT_FOUND && !fleet_passed(f, "answers", s, e));
  if (s != NATS_OK) return;
  for (int i = 0; i < list->Count; i++)
    st->answers += list->List[i]->NumPending + (uint64_t)list->List[i]->NumAckPending;
  jsConsumerInfoList_Destroy(list);
}
typedef struct looking {
  tarn_fleet *f;
  tarn_fleet_state *st;
} looking;
static void look(tarn_ctx *cx, void *arg) {
  looking *l = arg;
  tarn_fleet_state *st = l->st;
  const entry *e;
  workers(l->f, st);
  qsort((void *)(uintptr_t)st->worker, st->nworker, sizeof *st->worker, tarn_by_text);
  queues(l->f, st), waiting_answers(l->f, st);
  st->naside = entries(l->f, l->f->aside, &e);
  tarn_fleet_aside *a = TARN_ARRAY(cx, tarn_fleet_aside, st->naside + 1);
  for (uint32_t i = 0; i < st->naside; i++)
    a[i] = (tarn_fleet_aside){e[i].key, tarn_shown(cx, e[i].value)};
  st->aside = a;
}
/* What NATS hands out is given back when it has been read, however that ends. */
const tarn_fleet_state *tarn_fleet_look(tarn_fleet *f) {
  looking l = {f, TARN_NEW(f->cx, tarn_fleet_state)};
  tarn_status st = tarn_protect(f->cx, look, &l);
  if (st != TARN_OK) tarn_reraise(f->cx, st);
  return l.st;
}
