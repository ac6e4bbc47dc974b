/* Whatever bytes come from a fleet, they are a record that prints to the same bytes as what is read
 * from these, or a message that names the kind says why not. */
#include <string.h>

#include "fleet/record.h"
#include "tests/fuzz/fuzz.h"

static void same(const tarn_buf *a, const tarn_buf *b) {
  FUZZ_CHECK(a->n == b->n && memcmp(a->p, b->p, a->n) == 0);
}
static void job(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  fleet_job j;
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  fleet_job_read(cx, in->bytes, in->n, &j);
  fleet_job_print(&a, &j);
  if (a.n > FLEET_JOB) return; /* escapes take more room */
  fleet_job_read(cx, a.p, a.n, &j);
  fleet_job_print(&b, &j);
  same(&a, &b);
}
static void answer(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_answer x;
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  fleet_answer_read(cx, in->bytes, in->n, &x);
  fleet_answer_print(&a, &x);
  if (a.n > FLEET_ANSWER) return;
  fleet_answer_read(cx, a.p, a.n, &x);
  fleet_answer_print(&b, &x);
  same(&a, &b);
}
static void worker(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  fleet_worker w;
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  fleet_worker_read(cx, in->bytes, in->n, &w);
  fleet_worker_print(&a, &w);
  if (a.n > FLEET_ANSWER) return;
  fleet_worker_read(cx, a.p, a.n, &w);
  fleet_worker_print(&b, &w);
  same(&a, &b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, job, NULL, "job:");
  fuzz_read(data, n, NULL, answer, NULL, "answer:");
  fuzz_read(data, n, NULL, worker, NULL, "worker:");
  return 0;
}
