/* --outputs: of an output its last row alone. What computes the others goes when rules move the
 * slice to what the output is made of. */
#include "model/import.h"
#include <string.h>

enum { ROWS = 3 }; /* dims of an output that "last" by itself takes: batch, rows, columns */

static const tarn_type *type_of(const tarn_program *p, const tarn_io *out) {
  return tarn_type_get(p->L, out->type);
}
/* Along the dim before the last. */
static void keep_last(const tarn_program *p, tarn_io *out, const char *file, const char *word) {
  const tarn_type *t = type_of(p, out);
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  if (t->n < 2 || !t->dim[t->n - 2])
    tarn_raise(cx, TARN_BAD_INPUT, "%s: --outputs %s: the output %s has no rows: it is %s", file,
               word, out->name, tarn_dims_text(cx, t->dtype, t->n, t->dim));
  int64_t rows = t->dim[t->n - 2];
  if (rows == 1) return;
  out->term = tarn_slice(p->L, t->n - 2, rows - 1, rows, 1, out->term);
  out->type = tarn_term_get(p->L, out->term)->type;
}
/* The name of NAME=last; NULL: "last". */
static const char *named(tarn_ctx *cx, const char *word) {
  const char *eq = strrchr(word, '=');
  bool known = !strcmp(eq ? eq + 1 : word, "last");
  if (!known || eq == word)
    tarn_raise(cx, TARN_USAGE, "--outputs %s: last or NAME=last is expected", word);
  return eq ? tarn_strndup(cx, word, (size_t)(eq - word)) : NULL;
}
static bool is_meant(const tarn_program *p, const tarn_io *out, const char *name) {
  return name ? tarn_is_called(tarn_lang_ctx(p->L), name, out->name) : type_of(p, out)->n == ROWS;
}
void im_last_rows(tarn_program *p, const char *file, const tarn_model_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  for (uint32_t i = 0; i < o->nlast; i++) {
    const char *name = named(cx, o->last[i]);
    bool found = false;
    for (uint32_t k = 0; k < p->nout; k++) {
      if (!is_meant(p, &p->out[k], name)) continue;
      found = true;
      keep_last(p, &p->out[k], file, o->last[i]);
    }
    if (!found)
      tarn_raise(cx, TARN_BAD_INPUT, "%s: --outputs %s: %s", file, o->last[i],
                 name ? "the model has no such output"
                      : "no output has three dims (batch, rows, columns); NAME=last names one");
  }
}
