/* tarn fleet: measuring on other machines, over NATS with JetStream (libtarn-fleet).
 *
 *   tarn_fleet *f = tarn_fleet_open(cx, &(tarn_fleet_options){.url = "nats://host"});
 *   tarn_tune_options o = {.by = tarn_fleet_measurer(f, store, hw, NULL, NULL)};
 *   tarn_tune(L, hw, …, &o);                    measures on workers: tarn_worker_run()
 *
 * JetStream keeps jobs and answers and hands them out again when nobody acknowledges them; the
 * store (tune/jobs.h) keeps what was answered. docs/fleet.md describes streams, records and what
 * happens when something dies.
 *
 * Functions here raise: TARN_USAGE where the library was built without NATS, TARN_IO what the
 * server refuses. A server that goes away and comes back is waited for. */
#ifndef TARN_FLEET_H
#define TARN_FLEET_H
#include "tune/tune.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_fleet_options {
  const char *url;   /* nats://[USER:PASSWORD@]HOST[:PORT] or tls://… */
  const char *creds; /* a file of credentials, as NATS has them; NULL: none */
  const char *tlsca; /* certificates of authorities: speaks TLS and trusts these; NULL: none */
  bool insecure;     /* in the clear to other machines too */
  double silence;    /* seconds after which a worker that is not heard has died; 0: 30. Of a queue
                        that is there already its own count */
  double patience;   /* seconds without the server that are waited for; 0: any number */
  void (*say)(void *user, const char *line); /* NULL, or what a person should know meanwhile */
  void *user;
} tarn_fleet_options;
typedef struct tarn_fleet tarn_fleet;
/* Connects; closed when the enclosing protected call ends. */
TARN_API tarn_fleet *tarn_fleet_open(tarn_ctx *cx, const tarn_fleet_options *o);

/* ---- the tuner's side ---- */
typedef struct tarn_fleet_view { /* while a batch is measured */
  uint32_t jobs, answered;       /* of the batch */
  uint64_t answers, seconds;     /* of all batches until now; that they took, rounded */
  uint64_t queued;               /* jobs of this hardware that no worker has yet, of any tuner */
  uint32_t busy;                 /* jobs that workers have */
  uint32_t dropped;              /* answers that were malformed or not asked for */
} tarn_fleet_view;
/* Measures on the fleet's workers of this hardware, and stores every answer before it is
 * acknowledged. Lives as long as f; watch: NULL, or called about once a second. */
TARN_API const tarn_measurer *
tarn_fleet_measurer(tarn_fleet *f, tarn_store *s, const tarn_hw *hw,
                    void (*watch)(void *user, const tarn_fleet_view *v), void *user);

/* ---- a worker ---- */
typedef struct tarn_worker_options {
  const char *name;       /* letters, digits, - and _; NULL: host and process */
  const char *cores;      /* "0-3,8"; NULL: any */
  const char *user;       /* that kernels run as where this process is root; NULL: nobody */
  bool simulate;          /* the analytic price, or a simulator, instead of a measurement */
  double pace;            /* … that takes so many seconds */
  uint64_t memory;        /* bytes that a job may have; 0: 16 GiB, of a GPU no limit */
  double limit;           /* seconds that a job may take; 0: 60 */
  double idle;            /* ends after so many seconds without a job; 0: never */
  uint32_t jobs;          /* ends after so many; 0: never */
  bool (*stop)(void *of); /* NULL, or asked several times a second, of stop_user */
  void *stop_user;
} tarn_worker_options;
typedef struct tarn_worker_report {
  uint32_t done, failed, drifted, aside, dropped;
} tarn_worker_report;
TARN_API tarn_worker_report tarn_worker_run(tarn_fleet *f, tarn_lang *L, const tarn_hw *hw,
                                            const tarn_worker_options *o);

/* ---- what there is ---- */
typedef struct tarn_fleet_worker {
  const char *name, *hw, *program, *job;
  uint32_t version, done, failed, drifted, dropped;
  double calibration, drift; /* seconds; of them over those at its start, 0: none yet */
  double heard;              /* seconds ago */
  bool simulates;
} tarn_fleet_worker;
typedef struct tarn_fleet_queue { /* of a hardware */
  const char *hw;                 /* the number that stands for it */
  const char *name;               /* in words, where a worker says it; else "" */
  uint64_t queued, busy;          /* jobs that wait, that are measured */
  uint64_t handed_out, again;     /* jobs, and how often one was handed out again */
} tarn_fleet_queue;
typedef struct tarn_fleet_aside {
  const char *job, *reason;
} tarn_fleet_aside;
typedef struct tarn_fleet_state {
  uint32_t nworker, nqueue, naside;
  const tarn_fleet_worker *worker;
  const tarn_fleet_queue *queue;
  const tarn_fleet_aside *aside; /* jobs that were given up */
  uint64_t answers;              /* that wait for a tuner */
} tarn_fleet_state;
TARN_API const tarn_fleet_state *tarn_fleet_look(tarn_fleet *f);

#ifdef __cplusplus
}
#endif
#endif
