/* Whatever text comes, each of its forms is a program or term that prints and reads back as itself,
 * or a placed message. */

#include "access/access.h"
#include "tests/fuzz/fuzz.h"

static const tarn_sx *first(tarn_ctx *cx, const tarn_buf *b) {
  return tarn_sx_read(cx, b->p, b->n, "again")->kid[0];
}

static void term_round(tarn_lang *L, const tarn_sx *s) {
  tarn_buf b = {.cx = tarn_lang_ctx(L)};
  tarn_term t = tarn_term_parse(L, s);
  tarn_term_print(L, &b, t);
  FUZZ_CHECK(tarn_term_parse(L, first(b.cx, &b)) == t);
}

static void program_round(tarn_lang *L, const tarn_sx *s) {
  tarn_buf b = {.cx = tarn_lang_ctx(L)};
  tarn_program *p = tarn_program_parse(L, s, NULL);
  tarn_program_print(p, &b);
  tarn_program *q = tarn_program_parse(L, first(b.cx, &b), NULL);
  FUZZ_CHECK(q->nin == p->nin && q->nout == p->nout);
  for (uint32_t i = 0; i < p->nout; i++) FUZZ_CHECK(q->out[i].term == p->out[i].term);
}

static void round_trip(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_sx *s = tarn_sx_read(cx, in->bytes, in->n, "input");
  for (uint32_t i = 0; i < s->n; i++)
    (tarn_sx_is(s->kid[i], "program") ? program_round : term_round)(L, s->kid[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, round_trip, NULL, "input:");
  return 0;
}
