/* What the tests of extract/select share: a context, a graph, and a result. */
#ifndef TARN_TESTS_SELECT_KIT_H
#define TARN_TESTS_SELECT_KIT_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extract/select.h"
#include "tests/alloc.h"
#include "tests/suite.h"

#define SHARED "tests/data/select/shared.json"

static tarn_ctx *cx;
static tarn_sel_graph *g;
static tarn_sel_result r;

static inline void setup(void) {
  cx = tarn_ctx_new(NULL);
  g = NULL;
  r = (tarn_sel_result){0};
}
static inline void teardown(void) {
  tarn_sel_result_free(&r);
  tarn_sel_graph_free(g);
  tarn_ctx_free(cx);
}

static inline void parse(const char *text) {
  ck_assert_msg(tarn_sel_parse_json(cx, text, strlen(text), "t.json", NULL, &g) == TARN_OK, "%s",
                tarn_message(cx));
}
#endif
