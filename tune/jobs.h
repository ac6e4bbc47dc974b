/* tarn jobs: trials that others measure for a store, each a row of it, and each answered once
 * (libtarn-tune).
 *
 * A job is asked for before it is handed out; its answer is stored in one transaction with what
 * follows from it for the measurements of the store. Who delivers answers may do so several times
 * and may be killed at any moment: the second answer changes nothing, and what is not stored is
 * delivered again. A job is named by what is measured and by how often that was asked for before,
 * so that two programs that want the same of one store share it.
 *
 * A run is one search, by whatever name its caller gives it. What the store knew when it began is
 * remembered, so that a search that begins anew after a kill sees the same, asks for the same jobs
 * and finds those that are answered.
 *
 * Functions here raise. */
#ifndef TARN_JOBS_H
#define TARN_JOBS_H
#include "tune/tune.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TARN_JOB_NAME 33 /* 32 digits and a NUL */
typedef struct tarn_job {
  char name[TARN_JOB_NAME];
  uint32_t turn; /* 0: the first time that this is measured */
  tarn_record of;
} tarn_job;
/* The job's name follows from the rest. */
TARN_API tarn_job tarn_job_of(const char *hw, const tarn_record *r, uint32_t turn);

typedef struct tarn_answer {
  char name[TARN_JOB_NAME];
  double seconds;              /* INFINITY: it failed */
  double calibration;          /* seconds of the kernel that ran in turns with it; 0: none did */
  bool drifted;                /* the machine had changed its speed: told, but not learned from */
  bool aside;                  /* it was given up: it ended workers */
  const char *worker, *reason; /* reason: of a failure; NULL: none */
} tarn_answer;

/* A name that no other store has, of hexadecimal digits; made when it is first asked for. */
TARN_API const char *tarn_store_name(tarn_store *s);
/* Makes rows for those that have none. */
TARN_API void tarn_jobs_ask(tarn_store *s, const char *hw, const tarn_job *j, uint32_t n);
/* One transaction. The seconds of a measurement become the geometric mean of those of its jobs and
 * of what was known before them. Counts what was new, what had its answer already, and what nobody
 * asked for. */
typedef struct tarn_settled {
  uint32_t fresh, again, unknown;
} tarn_settled;
TARN_API tarn_settled tarn_jobs_settle(tarn_store *s, const tarn_answer *x, uint32_t n);
/* Its answer, in the arena of the store; false: it has none. */
TARN_API bool tarn_jobs_answer(tarn_store *s, const char *name, tarn_answer *out);
/* A new store at `path` with what this one knew of a hardware when the run began. */
TARN_API void tarn_jobs_begin(tarn_store *s, const char *run, const char *hw, const char *path);
/* Of all hardware. */
typedef struct tarn_jobs_sum {
  uint64_t asked, answered, failed, drifted, aside;
} tarn_jobs_sum;
TARN_API tarn_jobs_sum tarn_jobs_count(tarn_store *s);
/* How many were answered when, by bins of time. */
typedef struct tarn_jobs_bin {
  int64_t at; /* seconds since 1970 */
  uint32_t done, failed, drifted;
} tarn_jobs_bin;
TARN_API uint32_t tarn_jobs_history(tarn_store *s, int64_t bin_seconds, const tarn_jobs_bin **out);

#ifdef __cplusplus
}
#endif
#endif
