/* A process that does some work and hands back numbers, within limits: kernels of strangers, and of
 * ours that may crash or hang, run in such a one. */
#ifndef TARN_TUNE_CHILD_H
#define TARN_TUNE_CHILD_H
#include "base/base.h"
#include <sched.h>
#include <sys/types.h>

typedef struct tarn_limits {
  uint64_t memory;        /* bytes of addresses; 0: no limit */
  const cpu_set_t *cores; /* NULL: any */
  uid_t uid;              /* whom it becomes where this process is root; 0: nobody else */
  gid_t gid;
  bool offline; /* without a network, where the kernel allows it */
} tarn_limits;

#define TARN_CHILD_WHY 200
typedef struct tarn_child {
  tarn_ctx *cx;
  tarn_fn *work;
  void *arg;
  double *out; /* n numbers, which the work writes in the child, and the parent gets */
  uint32_t n;
  const tarn_limits *limits; /* NULL: none */
  char why[TARN_CHILD_WHY];  /* what the work raised, or that it was ended for a system call
                                (tarn_child_close); "": neither */
  pid_t pid;
  int from;
} tarn_child;
/* Starts the work; the child is killed when this process dies. Raises when there is no process to
 * be had. */
TARN_API void tarn_child_begin(tarn_child *c);
/* Waits until that moment (tarn_now()); false when the numbers have not come by then, or not at
 * all. */
TARN_API bool tarn_child_wait(tarn_child *c, double until);
/* Reads what has come, without waiting for longer than `seconds`: 1 all of it, 0 not yet, -1 it
 * never will. */
TARN_API int tarn_child_look(tarn_child *c, double seconds);
/* Ends it, and every process that it started, and collects it. */
TARN_API void tarn_child_end(tarn_child *c);

/* In the child, once it has all it needs: from now on it may use memory, threads, time and what it
 * has opened. It is ended when it asks the system for anything else, such as a file or a socket.
 * Raises where the system has no filter of system calls. */
TARN_API void tarn_child_close(tarn_ctx *cx);

/* A new folder /tmp/tarn-KIND-PID-…: the process that makes it stands in its name, so that the next
 * one of its kind removes what a killed one left. Raises. */
#define TARN_FOLDER 64
TARN_API void tarn_folder_make(tarn_ctx *cx, const char *kind, char path[TARN_FOLDER]);
TARN_API void tarn_folder_remove(const char *path);
/* From now on such folders go when this process ends, however it ends: a small process waits for
 * that. To be called while there is one thread. */
TARN_API void tarn_folder_watch(tarn_ctx *cx);
#endif
