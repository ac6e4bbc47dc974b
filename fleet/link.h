/* A connection to NATS, and the names of what is kept there. */
#ifndef TARN_FLEET_LINK_H
#define TARN_FLEET_LINK_H
#include "fleet/fleet.h"
#include "fleet/record.h"
#include <nats/nats.h>

struct tarn_fleet {
  tarn_ctx *cx;
  tarn_fleet_options o;
  const char *shown; /* the URL without user and password */
  natsOptions *opts;
  natsConnection *nc;
  jsCtx *js;
  kvStore *workers, *aside;
  const char *hw, *store;  /* of fleet_make() */
  bool (*stops)(void *of); /* NULL, or asked while the server is waited for, of stops_of */
  void *stops_of;
  double away; /* since when the server does not answer (tarn_now()); 0: it does */
  bool told;
};

/* Of a call to NATS: true when it went well, false when it is to be tried again, after a moment.
 * Raises "URL: what: reason" when it never will, or patience is at its end. */
bool fleet_passed(tarn_fleet *f, const char *what, natsStatus s, jsErrCode e);
void fleet_say(tarn_fleet *f, const char *fmt, ...) TARN_PRINTF(2, 3);

/* ---- names ---- */
#define FLEET_CONSUMER "workers"
const char *fleet_hw(tarn_ctx *cx, const char *key);  /* the number of a hardware, 16 digits */
const char *fleet_jobs(tarn_ctx *cx, const char *hw); /* the stream of its jobs */
const char *fleet_job_subject(tarn_ctx *cx, const char *hw, const char *store, const char *name);
#define FLEET_ANSWERS "tarn-answers"
const char *fleet_answers(tarn_ctx *cx); /* the stream of answers */
const char *fleet_answer_subject(tarn_ctx *cx, const char *store, const char *name);

/* ---- what is kept ---- */
/* Makes the streams, the queue of the workers of a hardware and, unless store is NULL, the queue of
 * answers of a store, as far as they are not there; removes what they hold that is acknowledged. */
void fleet_make(tarn_fleet *f, const char *hw, const char *store);
/* Puts a message into a stream. One that is there already is not put there twice. */
void fleet_put(tarn_fleet *f, const char *subject, const tarn_buf *b);
/* What is to be pulled from a queue. Destroyed when the enclosing protected call ends. */
natsSubscription *fleet_pull(tarn_fleet *f, const char *stream, const char *queue);

#endif
