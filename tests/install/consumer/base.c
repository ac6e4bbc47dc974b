/* A consumer of libtarn alone: reads an s-expression and prints it. */
#include <base/base.h>
#include <stdio.h>
#include <string.h>

static const char text[] = "(compute dotProd ; a comment\n (access 1 a) 0.50)";

static void show(tarn_ctx *cx, void *arg) {
  tarn_buf *b = arg;
  tarn_sx *s = tarn_sx_read(cx, text, strlen(text), "text");
  tarn_sx_print(b, s->kid[0], 0);
}

int main(void) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  if (!cx) return 1;
  tarn_buf b = {.cx = cx};
  tarn_status st = tarn_protect(cx, show, &b);
  if (st == TARN_OK) puts(b.p);
  else fprintf(stderr, "%s\n", tarn_message(cx));
  int wrong = st != TARN_OK || strcmp(b.p, "(compute dotProd (access 1 a) 0.50)") != 0;
  tarn_ctx_free(cx);
  return wrong;
}
