/* A program that was made in a scope of the language, for what is around it (access/access.h): a
 * copy that points to nothing of the scope. What kernels share, schedules and signatures, they
 * share in the copy as well. */
#include "plan/schedule.h"
#include <string.h>

typedef struct keep {
  tarn_scope *s;
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_map *known; /* what was copied -> its copy */
} keep;

/* The copy of p; NULL: it was not copied yet. */
static void *known(const keep *k, const void *p) {
  const uint64_t *at = tarn_map_get(k->known, (uint64_t)(uintptr_t)p);
  return at ? (void *)(uintptr_t)*at : NULL;
}
static void note(keep *k, const void *p, const void *copy) {
  *tarn_map_at(k->known, (uint64_t)(uintptr_t)p, NULL) = (uint64_t)(uintptr_t)copy;
}

/* ---- signatures ---- */
static const tarn_ksig *keep_sig(keep *k, const tarn_ksig *sig) {
  tarn_ksig *c = sig ? known(k, sig) : NULL;
  if (!sig || c) return c;
  c = tarn_copy(k->cx, sig, sizeof *sig);
  c->nest = tarn_scope_nest(k->s, sig->nest);
  for (uint32_t j = 0; j < sig->nin; j++)
    if (sig->in_numbers[j])
      c->in_numbers[j] =
          tarn_copy(k->cx, sig->in_numbers[j],
                    (size_t)tarn_layout_elems(&sig->in[j]) * sizeof *sig->in_numbers[j]);
  note(k, sig, c);
  return c;
}

/* ---- schedules ---- */
static void keep_holds(keep *k, tarn_stage_sched *st) {
  tarn_hold *h = tarn_copy(k->cx, st->hold, st->nhold * sizeof *h);
  for (uint32_t i = 0; i < st->nhold; i++) h[i].memory = tarn_strdup(k->cx, h[i].memory);
  st->hold = h;
  if (!st->unit) return;
  tarn_unit *u = tarn_copy(k->cx, st->unit, sizeof *u);
  u->name = tarn_strdup(k->cx, u->name);
  st->unit = u;
}
static const tarn_ahead *keep_ahead(keep *k, const tarn_ahead *a, uint32_t nest) {
  if (!a) return NULL;
  const tarn_nest *n = tarn_nest_get(k->L, nest);
  tarn_ahead *c = tarn_copy(k->cx, a, sizeof *a);
  size_t accesses = 0; /* reads of the bodies, and results */
  for (uint32_t i = 0; i < n->nstage; i++) accesses += tarn_fn_get(k->L, n->stage[i].fn)->nops + 1u;
  c->access = tarn_copy(k->cx, a->access, accesses * sizeof *a->access);
  c->prefetch = tarn_copy(k->cx, a->prefetch, a->n * sizeof *a->prefetch);
  return c;
}
/* nest: the kept one that it is a schedule of. */
static const tarn_schedule *keep_schedule(keep *k, const tarn_schedule *s, uint32_t nest) {
  tarn_schedule *c = s ? known(k, s) : NULL;
  if (!s || c) return c;
  c = tarn_copy(k->cx, s, sizeof *s);
  c->stage = tarn_copy(k->cx, s->stage, s->nstage * sizeof *s->stage);
  for (uint32_t i = 0; i < s->nstage; i++) keep_holds(k, &c->stage[i]);
  c->ahead = keep_ahead(k, s->ahead, nest);
  note(k, s, c);
  return c;
}

/* ---- kernels and buffers ---- */
static void keep_kernel(keep *k, tarn_kernel *x) {
  x->name = tarn_strdup(k->cx, x->name);
  x->nodes.at = tarn_copy(k->cx, x->nodes.at, x->nodes.n * sizeof *x->nodes.at);
  if (x->kind == TARN_K_NEST) x->nest = tarn_scope_nest(k->s, x->nest);
  if (x->kind == TARN_K_OPAQUE) x->payload = tarn_scope_payload(k->s, x->payload);
  x->term = tarn_scope_term(k->s, x->term);
  x->in = tarn_copy(k->cx, x->in, x->nin * sizeof *x->in);
  x->out = tarn_copy(k->cx, x->out, x->nout * sizeof *x->out);
  x->in_layout = tarn_copy(k->cx, x->in_layout, x->nin * sizeof *x->in_layout);
  x->out_layout = tarn_copy(k->cx, x->out_layout, x->nout * sizeof *x->out_layout);
  x->sig = keep_sig(k, x->sig);
  x->unfit = keep_sig(k, x->unfit);
  x->chosen = keep_schedule(k, x->chosen, x->sig ? x->sig->nest : x->nest);
  x->sched = keep_schedule(k, x->sched, x->nest);
  x->plan = NULL;
}
static void keep_buffer(keep *k, tarn_buffer *b) {
  if (b->name) b->name = tarn_strdup(k->cx, b->name);
  b->term = tarn_scope_term(k->s, b->term);
  b->value = NULL; /* computed from the term when it is needed */
}
tarn_kprog *tarn_kprog_keep(const tarn_kprog *p, tarn_scope *s) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  keep k = {.s = s, .L = p->L, .cx = cx, .known = tarn_map_new(cx)};
  tarn_kprog *c = tarn_copy(cx, p, sizeof *p);
  c->buf = tarn_copy(cx, p->buf, p->nbuf * sizeof *p->buf);
  c->ker = tarn_copy(cx, p->ker, p->nker * sizeof *p->ker);
  c->in = tarn_copy(cx, p->in, p->nin * sizeof *p->in);
  c->out = tarn_copy(cx, p->out, p->nout * sizeof *p->out);
  for (uint32_t i = 0; i < p->nbuf; i++) keep_buffer(&k, &c->buf[i]);
  for (uint32_t i = 0; i < p->nker; i++) keep_kernel(&k, &c->ker[i]);
  return c;
}
