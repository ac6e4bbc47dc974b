/* Recursion with a stack of its own. */
#include "base/internal.h"

#include <pthread.h>

typedef struct call {
  void (*fn)(void *arg);
  void *arg;
} call;

static void *run(void *user) {
  call *c = user;
  c->fn(c->arg);
  return NULL;
}

bool tarn_deep(size_t bytes, void (*fn)(void *arg), void *arg) {
  call c = {fn, arg};
  pthread_attr_t a;
  pthread_t thread;
  if (pthread_attr_init(&a)) return false;
  bool ok = !pthread_attr_setstacksize(&a, bytes) && !pthread_create(&thread, &a, run, &c);
  pthread_attr_destroy(&a);
  return ok && !pthread_join(thread, NULL);
}
