/* Whatever text comes, each of its forms is a program or term that prints and reads back as itself,
 * or a placed message. */
#include <stdlib.h>
#include <string.h>

#include "access/access.h"
#include "tests/fuzz/fuzz.h"

typedef struct input {
  const char *text;
  size_t n;
} input;

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
  input *in = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_sx *s = tarn_sx_read(cx, in->text, in->n, "input");
  for (uint32_t i = 0; i < s->n; i++)
    (tarn_sx_is(s->kid[i], "program") ? program_round : term_round)(L, s->kid[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  char *exact = malloc(n ? n : 1);
  FUZZ_CHECK(exact);
  if (n) memcpy(exact, data, n);
  tarn_ctx *cx = tarn_ctx_new(NULL);
  FUZZ_CHECK(cx);
  input in = {exact, n};
  tarn_status st = tarn_protect(cx, round_trip, &in);
  FUZZ_CHECK(st == TARN_OK ||
             (st == TARN_BAD_INPUT && strncmp(tarn_message(cx), "input:", 6) == 0));
  tarn_ctx_free(cx);
  free(exact);
  return 0;
}
