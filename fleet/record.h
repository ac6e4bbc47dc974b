/* What travels: jobs to workers, answers to tuners, and what each worker says of itself, each one
 * s-expression (docs/fleet.md). What comes from the network is bounded, and read or refused whole:
 * a record of another version, with a field missing, or longer than its kind may be. */
#ifndef TARN_FLEET_RECORD_H
#define TARN_FLEET_RECORD_H
#include "tune/jobs.h"

/* Of the records and of what a measurement is: it grows with either. */
#define FLEET_VERSION 7
_Static_assert(TARN_STORE_VERSION == 6, "a measurement is another one now: so is FLEET_VERSION");
#define FLEET_JOB    (512 << 10) /* most bytes of a job; servers refuse more than 1 MiB */
#define FLEET_ANSWER 2048        /* most bytes of an answer, and of what a worker says of itself */
#define FLEET_NAME   64          /* most characters of a name */

/* A trial to be measured. store: whom the answer is for; seed: see tarn_measure(). The kernel's
 * text says its numerics: of a strict one sums keep their order, and products are not fused into
 * them. */
typedef struct fleet_job {
  char name[TARN_JOB_NAME];
  const char *store, *kernel, *schedule;
  uint32_t threads, seed;
  bool second; /* it was set aside, and is tried once more */
} fleet_job;
void fleet_job_print(tarn_buf *b, const fleet_job *j);
void fleet_job_read(tarn_ctx *cx, const char *text, size_t n, fleet_job *j);

void fleet_answer_print(tarn_buf *b, const tarn_answer *x);
void fleet_answer_read(tarn_ctx *cx, const char *text, size_t n, tarn_answer *x);

/* A worker. */
typedef struct fleet_worker {
  const char *name, *hw, *program; /* hw: tarn_hw_key(); program: its version, for people */
  uint32_t version;                /* of its records: those of other versions are read this far */
  bool simulates;
  uint32_t done, failed, drifted, dropped; /* jobs; malformed ones */
  double calibration, at_first;            /* seconds of the calibration kernel; 0: not yet */
  const char *job;                         /* what it does; "": nothing */
} fleet_worker;
void fleet_worker_print(tarn_buf *b, const fleet_worker *w);
void fleet_worker_read(tarn_ctx *cx, const char *text, size_t n, fleet_worker *w);

/* Is it 1 to FLEET_NAME letters, digits, - and _: what names in subjects may be? */
bool fleet_is_name(const char *s);
#endif
