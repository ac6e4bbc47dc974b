/* Bindings of a rule's variables in a step: stated in the proof, compared with the match of the
 * left side. */
#include "rules/proof/proof.h"
#include <string.h>

static uint32_t named(const char *const *names, uint32_t n, const char *s) {
  uint32_t i = 0;
  while (i < n && strcmp(names[i], s) != 0) i++;
  return i < n ? i : TARN_NONE;
}

pf_bind *pf_bindings(const renv *e, const rule *r, uint32_t *n) {
  tarn_ctx *cx = tarn_lang_ctx(e->L);
  pf_bind *b = TARN_ARRAY(cx, pf_bind, r->ncls + r->nseg + r->nattr + 1u);
  uint32_t k = 0;
  for (uint32_t i = 0; i < r->ncls; i++)
    if (e->cls[i] != TARN_NONE)
      b[k++] = (pf_bind){r->cls_name[i], 'c', 1, tarn_copy(cx, &e->cls[i], sizeof e->cls[i]), NULL};
  for (uint32_t i = 0; i < r->nseg; i++) {
    rseg s = e->seg[i];
    if (s.n == UINT32_MAX) continue;
    b[k++] = (pf_bind){r->seg_name[i], 'g', s.n,
                       tarn_copy(cx, s.n ? s.id : &k, (s.n ? s.n : 1) * sizeof *s.id), NULL};
  }
  for (uint32_t i = 0; i < r->nattr; i++) {
    const rv *v = &e->attr[i];
    if (v->kind == 'i')
      b[k++] = (pf_bind){r->attr_name[i], 'i', 1, NULL, tarn_copy(cx, &v->i, sizeof v->i)};
    if (v->kind != 'l') continue;
    int64_t *p = TARN_ARRAY(cx, int64_t, v->n + 1u);
    for (uint32_t d = 0; d < v->n; d++) p[d] = v->p[d];
    b[k++] = (pf_bind){r->attr_name[i], 'l', v->n, NULL, p};
  }
  *n = k;
  return b;
}

static bool agrees(const renv *e, const rule *r, const pf_bind *b) {
  uint32_t i;
  if (b->kind == 'c')
    return (i = named(r->cls_name, r->ncls, b->name)) != TARN_NONE && e->cls[i] == b->term[0];
  if (b->kind == 'g') {
    i = named(r->seg_name, r->nseg, b->name);
    return i != TARN_NONE && e->seg[i].n == b->n &&
           (b->n == 0 || memcmp(e->seg[i].id, b->term, b->n * sizeof *b->term) == 0);
  }
  i = named(r->attr_name, r->nattr, b->name);
  if (i == TARN_NONE || e->attr[i].kind != b->kind) return false;
  if (b->kind == 'i') return e->attr[i].i == b->value[0];
  return e->attr[i].n == b->n &&
         (b->n == 0 || memcmp(e->attr[i].p, b->value, b->n * sizeof *b->value) == 0);
}

bool pf_bindings_agree(const renv *e, const rule *r, const pf_step *s) {
  for (uint32_t i = 0; i < s->nbind; i++)
    if (!agrees(e, r, &s->bind[i])) return false;
  return true;
}
