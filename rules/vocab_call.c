/* The vocabulary, third part: what derived rules ask. */
#include "rules/vocab.h"

/* The result type of a call. */
static bool f_result(renv *e, const rv *a, rv *out) {
  const tarn_type *s = tarn_type_get(e->L, a[1].id);
  tarn_dtype t;
  if (!tarn_dtype_parse(a[0].name, &t)) return false;
  *out = (rv){.kind = 't', .id = tarn_type_tensor(e->L, t, s->ns, s->n, s->dim)};
  return true;
}

const rfun rfun_call_table[] = {
    {"result", "ys:t", f_result, 0, "the result type of a call: an element type and a shape"},
};
const uint32_t rfun_call_count = sizeof rfun_call_table / sizeof *rfun_call_table;
