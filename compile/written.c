/* Kernels written by hand that the rules of a compile call. */
#include "compile/internal.h"
#include <string.h>

static bool seen(const tarn_ruleset *rs, tarn_written *w, uint32_t before) {
  uint32_t number;
  for (uint32_t i = 0; i < before; i++)
    if (tarn_ruleset_written(rs, i, &number) == w) return true;
  return false;
}
/* A function of C runs on CPUs; it is linked with what is emitted. */
void comp_written(const tarn_compiled *c) {
  tarn_written *w;
  uint32_t number;
  for (uint32_t i = 0; (w = tarn_ruleset_written(c->rules, i, &number)); i++) {
    tarn_ctx *cx = tarn_lang_ctx(c->L);
    tarn_rule_info r = tarn_ruleset_at(c->rules, number);
    if (!tarn_hw_traits_of(c->o->hw).links)
      tarn_raise(cx, TARN_BAD_INPUT, "%s:%u: rule %s calls the function %s, and %s (%s) takes none",
                 r.file, r.line, r.name, w->symbol, c->o->hw->name, c->target->name);
    if (!w->link && (c->emission->emit & TARN_EMIT_SO))
      tarn_sx_error(cx, w->at, "the kernel %s has no (link FILE): --emit o alone goes without",
                    w->name);
    if (!seen(c->rules, w, i)) tarn_written_verify(cx, w);
  }
}

/* ---- the report ---- */
static const tarn_written *called(const tarn_kprog *p, const tarn_kernel *k) {
  if (k->kind != TARN_K_OPAQUE || k->term == TARN_NONE) return NULL;
  const tarn_node *x = tarn_term_get(p->L, k->term);
  if (x->op != TARN_OP_CALL) return NULL;
  return tarn_written_find(p->L, tarn_payload_get(p->L, x->payload)->name);
}
const char *const *comp_written_files(const tarn_kprog *p, uint32_t *n) {
  const char **file = TARN_ARRAY(tarn_lang_ctx(p->L), const char *, p->nker + 1);
  *n = 0;
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_written *w = called(p, &p->ker[i]);
    bool known = !w || !w->link;
    for (uint32_t k = 0; k < *n && !known; k++) known = !strcmp(file[k], w->link);
    if (!known) file[(*n)++] = w->link;
  }
  return file;
}
/* Each kernel that is a call. What it computes is given, not proved. */
void comp_put_written(tarn_json *j, const tarn_kprog *p) {
  tarn_json_open(j, "given", '[');
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_written *w = called(p, &p->ker[i]);
    if (!w) continue;
    const tarn_layout *out = &p->ker[i].out_layout[0];
    int64_t points = 1;
    for (uint32_t d = 0; d + w->out.n < out->n; d++) points *= out->dim[d];
    tarn_json_object(j, NULL, "kernel", p->ker[i].name, "calls", w->name, "symbol", w->symbol,
                     "link", w->link, "times", points, "price", p->ker[i].price);
  }
  tarn_json_close(j, ']');
}
