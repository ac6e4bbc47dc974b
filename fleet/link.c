/* See link.h. */
#include "fleet/link.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DAY  86400
#define WAIT 2000 /* milliseconds for an answer of the server */

/* ---- what goes wrong ---- */
void fleet_say(tarn_fleet *f, const char *fmt, ...) {
  va_list ap;
  if (!f->o.say) return;
  va_start(ap, fmt);
  f->o.say(f->o.user, tarn_vformat(f->cx, fmt, ap));
  va_end(ap);
}
/* The server is away, or busy with starting. */
static bool passes_by(natsStatus s, jsErrCode e) {
  switch (s) {
  case NATS_TIMEOUT:
  case NATS_NO_RESPONDERS:
  case NATS_CONNECTION_DISCONNECTED:
  case NATS_STALE_CONNECTION:
  case NATS_IO_ERROR:
  case NATS_NO_SERVER: return true;
  default: return e == JSClusterNotAvailErr || e == JSClusterNoPeersErr;
  }
}
static const char *reason(tarn_fleet *f, natsStatus s, jsErrCode e) {
  natsStatus last;
  const char *text = nats_GetLastError(&last), *behind = text ? strstr(text, "): ") : NULL;
  if (text && *text == '(' && behind) text = behind + 3; /* where in the library it was noticed */
  if (e == JSInsufficientResourcesErr || e == JSStorageResourcesExceededErr ||
      (text && strstr(text, "insufficient resources")))
    return "the server has no room left for JetStream";
  if (s == NATS_CONNECTION_AUTH_FAILED) return "wrong user, password or credentials";
  if (s == NATS_NO_SERVER) return "no server answers";
  if (s == NATS_CONNECTION_CLOSED) return "the connection is closed";
  return tarn_shown(f->cx, text && last == s ? text : natsStatus_GetText(s));
}
/* A server answers nothing to what a user may not say, and tells the connection why. */
static void may_not(tarn_fleet *f, const char *what) {
  const char *text = NULL;
  if (f->nc && natsConnection_GetLastError(f->nc, &text) == NATS_NOT_PERMITTED)
    tarn_raise(f->cx, TARN_IO, "%s: %s: this user may not: %s", f->shown, what,
               tarn_shown(f->cx, text ? text : ""));
}
bool fleet_passed(tarn_fleet *f, const char *what, natsStatus s, jsErrCode e) {
  if (s == NATS_OK) {
    if (f->told) fleet_say(f, "%s answers again", f->shown);
    f->away = 0, f->told = false;
    return true;
  }
  if (!passes_by(s, e))
    tarn_raise(f->cx, s == NATS_NO_MEMORY ? TARN_MEMORY : TARN_IO, "%s: %s: %s", f->shown, what,
               reason(f, s, e));
  may_not(f, what);
  double now = tarn_now();
  if (!(f->away > 0)) f->away = now;
  if (f->o.patience > 0 && now - f->away > f->o.patience)
    tarn_raise(f->cx, TARN_IO, "%s: %s: no answer of JetStream (nats-server needs --jetstream)",
               f->shown, what);
  if (!f->told && !(f->o.patience > 0) && now - f->away > 3) {
    fleet_say(f, "%s: %s: no answer of JetStream; waiting for it", f->shown, what);
    f->told = true;
  }
  usleep(100000);
  if (f->stops && f->stops(f->stops_of))
    tarn_raise(f->cx, TARN_IO, "%s: %s: no answer of JetStream; stopped", f->shown, what);
  return false;
}

/* ---- connecting ---- */
static const char *host_of(const char *url) {
  const char *at = strstr(url, "://"), *host = at ? at + 3 : url, *user = strchr(host, '@');
  return user ? user + 1 : host;
}
static const char *without_user(tarn_ctx *cx, const char *url) {
  const char *at = strstr(url, "://");
  return tarn_shown(cx, tarn_format(cx, "%.*s%s", at ? (int)(at + 3 - url) : 0, url, host_of(url)));
}
static bool loopback(const char *url) {
  static const char *const here[] = {"localhost", "127.", "[::1]"};
  const char *h = host_of(url);
  for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
    size_t n = strlen(here[i]);
    if (strncasecmp(h, here[i], n) != 0) continue;
    /* all of the name, or the first of four numbers */
    size_t rest = i == 1 ? n + strspn(h + n, "0123456789.") : n;
    if (!h[rest] || h[rest] == ':' || h[rest] == '/') return true;
  }
  return false;
}
static void check_url(tarn_fleet *f) {
  const char *u = f->o.url;
  bool tls = !strncmp(u, "tls://", 6);
  if (!tls && strncmp(u, "nats://", 7) != 0)
    tarn_raise(f->cx, TARN_USAGE, "%s: nats://HOST or tls://HOST is expected", f->shown);
  if (strchr(u, ',')) tarn_raise(f->cx, TARN_USAGE, "%s: one server is expected", f->shown);
  if (!tls && !f->o.tlsca && !f->o.insecure && !loopback(u))
    tarn_raise(f->cx, TARN_USAGE,
               "%s: in the clear to another machine: give tls:// or --tlsca FILE, or --insecure",
               f->shown);
}
/* NATS does not say which file it is that it cannot read. */
static void readable(tarn_fleet *f, const char *path) {
  size_t n;
  if (path) (void)tarn_read_file(f->cx, path, &n);
}
static natsStatus set_up(tarn_fleet *f) {
  natsStatus s = natsOptions_Create(&f->opts);
  if (s == NATS_OK) s = natsOptions_SetURL(f->opts, f->o.url);
  if (s == NATS_OK) s = natsOptions_SetName(f->opts, "tarn");
  if (s == NATS_OK) s = natsOptions_SetMaxReconnect(f->opts, -1);
  if (s == NATS_OK) s = natsOptions_SetReconnectWait(f->opts, 200);
  if (s == NATS_OK) s = natsOptions_SetReconnectJitter(f->opts, 100, 100);
  if (s == NATS_OK) s = natsOptions_SetTimeout(f->opts, 5000);
  if (s == NATS_OK) s = natsOptions_SetPingInterval(f->opts, 5000);
  if (s == NATS_OK && (f->o.tlsca || !strncmp(f->o.url, "tls://", 6)))
    s = natsOptions_SetSecure(f->opts, true);
  if (s == NATS_OK && f->o.tlsca) s = natsOptions_LoadCATrustedCertificates(f->opts, f->o.tlsca);
  if (s == NATS_OK && f->o.creds)
    s = natsOptions_SetUserCredentialsFromFiles(f->opts, f->o.creds, NULL);
  return s;
}
static void close_fleet(void *arg) {
  tarn_fleet *f = arg;
  kvStore_Destroy(f->workers), kvStore_Destroy(f->aside);
  jsCtx_Destroy(f->js);
  natsConnection_Destroy(f->nc);
  natsOptions_Destroy(f->opts);
}
static void connect_now(tarn_fleet *f) {
  natsStatus s = set_up(f);
  if (s == NATS_OK) s = natsConnection_Connect(&f->nc, f->opts);
  if (s == NATS_OK) {
    jsOptions o;
    jsOptions_Init(&o);
    o.Wait = WAIT;
    s = natsConnection_JetStream(&f->js, f->nc, &o);
  }
  if (s != NATS_OK) tarn_raise(f->cx, TARN_IO, "%s: %s", f->shown, reason(f, s, 0));
}
static void open_bucket(tarn_fleet *f, kvStore **kv, const char *name, int size, int64_t seconds) {
  kvConfig c;
  natsStatus s;
  do {
    s = js_KeyValue(kv, f->js, name);
    if (s != NATS_NOT_FOUND) continue;
    kvConfig_Init(&c);
    c.Bucket = name, c.MaxValueSize = size, c.History = 1, c.TTL = seconds * 1000000000ll;
    s = js_CreateKeyValue(kv, f->js, &c);
  } while (!fleet_passed(f, name, s, 0));
}
tarn_fleet *tarn_fleet_open(tarn_ctx *cx, const tarn_fleet_options *o) {
  tarn_fleet *f = TARN_NEW(cx, tarn_fleet);
  *f = (tarn_fleet){.cx = cx, .o = *o, .shown = without_user(cx, o->url)};
  if (!(f->o.silence > 0)) f->o.silence = 30;
  check_url(f);
  readable(f, o->creds), readable(f, o->tlsca);
  tarn_defer(cx, close_fleet, f);
  connect_now(f);
  double patience = f->o.patience;
  if (!(patience > 0)) f->o.patience = 3; /* nothing has begun yet: a line is better */
  open_bucket(f, &f->workers, "tarn-workers", 2 * FLEET_ANSWER, DAY);
  open_bucket(f, &f->aside, "tarn-aside", 2 * FLEET_ANSWER, 30 * DAY);
  f->o.patience = patience;
  return f;
}

/* ---- names ---- */
const char *fleet_hw(tarn_ctx *cx, const char *key) {
  return tarn_format(cx, "%016llx", (unsigned long long)tarn_hash_bytes(key, strlen(key), 0));
}
const char *fleet_jobs(tarn_ctx *cx, const char *hw) {
  return tarn_format(cx, "tarn-jobs-%d-%s", FLEET_VERSION, hw);
}
const char *fleet_job_subject(tarn_ctx *cx, const char *hw, const char *store, const char *name) {
  return tarn_format(cx, "tarn.%d.job.%s.%s.%s", FLEET_VERSION, hw, store, name);
}
const char *fleet_answers(tarn_ctx *cx) {
  return tarn_format(cx, FLEET_ANSWERS "-%d", FLEET_VERSION);
}
const char *fleet_answer_subject(tarn_ctx *cx, const char *store, const char *name) {
  return tarn_format(cx, "tarn.%d.answer.%s.%s", FLEET_VERSION, store, name);
}

/* ---- streams and queues ---- */
/* A queue: each message once for each subject, until it is acknowledged. */
static void make_stream(tarn_fleet *f, const char *name, const char *subject, int32_t most) {
  jsStreamConfig c;
  jsStreamInfo *si = NULL;
  jsErrCode e = 0;
  natsStatus s;
  do {
    s = js_GetStreamInfo(&si, f->js, name, NULL, &e);
    if (s == NATS_NOT_FOUND) {
      jsStreamConfig_Init(&c);
      c.Name = name, c.Subjects = &subject, c.SubjectsLen = 1;
      c.Retention = js_WorkQueuePolicy, c.Storage = js_FileStorage;
      c.MaxMsgSize = most, c.MaxMsgsPerSubject = 1;
      c.MaxAge = 30 * DAY * 1000000000ll; /* of stores and hardware that never come again */
      c.Discard = js_DiscardNew, c.DiscardNewPerSubject = true;
      s = js_AddStream(&si, f->js, &c, NULL, &e);
      if (s != NATS_OK && e == JSStreamNameExistErr) s = NATS_OK; /* another was faster */
    }
  } while (!fleet_passed(f, name, s, e));
  jsStreamInfo_Destroy(si);
}
/* Returns up to which message all are acknowledged. Where nothing waits for that these are all that
 * were handed out, whatever a server says that was killed. */
static uint64_t make_queue(tarn_fleet *f, const char *stream, const char *name,
                           const char *filter) {
  jsConsumerConfig c;
  jsConsumerInfo *ci = NULL;
  jsErrCode e = 0;
  natsStatus s;
  do {
    s = js_GetConsumerInfo(&ci, f->js, stream, name, NULL, &e);
    if (s == NATS_NOT_FOUND) {
      jsConsumerConfig_Init(&c);
      c.Durable = name, c.FilterSubject = filter, c.AckPolicy = js_AckExplicit;
      c.AckWait = (int64_t)(1e9 * f->o.silence), c.MaxAckPending = 1 << 16, c.MaxWaiting = 1 << 14;
      s = js_AddConsumer(&ci, f->js, stream, &c, NULL, &e);
    }
  } while (!fleet_passed(f, stream, s, e));
  uint64_t all = !ci ? 0 : ci->NumAckPending ? ci->AckFloor.Stream : ci->Delivered.Stream;
  jsConsumerInfo_Destroy(ci);
  return all;
}
static void remove_until(tarn_fleet *f, const char *stream, const char *filter, uint64_t last) {
  jsOptions o;
  jsErrCode e = 0;
  natsStatus s;
  jsOptions_Init(&o);
  o.Stream.Purge.Subject = filter, o.Stream.Purge.Sequence = last + 1;
  do s = js_PurgeStream(f->js, stream, &o, &e);
  while (s != NATS_NOT_FOUND && !fleet_passed(f, stream, s, e));
}
static void remove_queue(tarn_fleet *f, const char *stream, const char *name) {
  jsErrCode e = 0;
  natsStatus s;
  do s = js_DeleteConsumer(f->js, stream, name, NULL, &e);
  while (s != NATS_NOT_FOUND && !fleet_passed(f, stream, s, e));
}
/* A server that is killed may keep an acknowledgement and not the removal. It never delivers such a
 * message again, which would count as waiting and refuse another one of its subject. Or it keeps
 * acknowledgements of messages that it has lost: then it would not deliver the next ones, which get
 * their numbers, so the queue begins anew. What is delivered twice changes nothing. */
static void make_whole_queue(tarn_fleet *f, const char *stream, const char *name, const char *only,
                             const char *filter) {
  uint64_t acknowledged = make_queue(f, stream, name, only);
  jsStreamInfo *si =
      NULL; /* read behind: messages before may come, and be acknowledged, meanwhile */
  jsErrCode e = 0;
  natsStatus s;
  do s = js_GetStreamInfo(&si, f->js, stream, NULL, &e);
  while (s != NATS_NOT_FOUND && !fleet_passed(f, stream, s, e));
  if (!si) return;
  uint64_t first = si->State.FirstSeq, last = si->State.LastSeq;
  jsStreamInfo_Destroy(si);
  if (acknowledged > last) {
    remove_queue(f, stream, name);
    make_queue(f, stream, name, only);
  } else if (first <= acknowledged) remove_until(f, stream, filter, acknowledged);
}
void fleet_make(tarn_fleet *f, const char *hw, const char *store) {
  tarn_ctx *cx = f->cx;
  const char *jobs = fleet_jobs(cx, hw), *answers = fleet_answers(cx), *filter;
  f->hw = hw, f->store = store;
  filter = tarn_format(cx, "tarn.%d.job.%s.*.*", FLEET_VERSION, hw);
  make_stream(f, jobs, filter, FLEET_JOB);
  make_whole_queue(f, jobs, FLEET_CONSUMER, NULL, filter);
  make_stream(f, answers, tarn_format(cx, "tarn.%d.answer.*.*", FLEET_VERSION), FLEET_ANSWER);
  if (!store) return;
  filter = fleet_answer_subject(cx, store, "*");
  make_whole_queue(f, answers, store, filter, filter);
}
static bool there_already(natsStatus s) {
  natsStatus last;
  const char *text = nats_GetLastError(&last);
  return s != NATS_OK && text && strstr(text, "maximum messages per subject exceeded");
}
void fleet_put(tarn_fleet *f, const char *subject, const tarn_buf *b) {
  jsErrCode e = 0;
  natsStatus s;
  do {
    s = js_Publish(NULL, f->js, subject, b->p, (int)b->n, NULL, &e);
    if (there_already(s)) s = NATS_OK;
    if (s == NATS_NO_RESPONDERS)
      fleet_make(f, f->hw, f->store); /* the server has lost the stream */
  } while (!fleet_passed(f, "handing out", s, e));
}
static void drop_pull(void *arg) { natsSubscription_Destroy(arg); }
natsSubscription *fleet_pull(tarn_fleet *f, const char *stream, const char *queue) {
  jsSubOptions o;
  jsErrCode e = 0;
  natsStatus s;
  natsSubscription *sub = NULL;
  jsSubOptions_Init(&o);
  o.Stream = stream, o.Consumer = queue, o.ManualAck = true;
  do s = js_PullSubscribe(&sub, f->js, NULL, queue, NULL, &o, &e);
  while (!fleet_passed(f, stream, s, e));
  tarn_defer(f->cx, drop_pull, sub);
  return sub;
}
