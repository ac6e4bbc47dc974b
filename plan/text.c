/* Programs and schedules as text, and the check of a schedule. */
#include "plan/internal.h"
#include <string.h>

const char *const tarn_plan_level_names[PLAN_LEVEL_KINDS] = {
    "serial", "parallel", "unroll", "vector", "block", "thread", "dot"};

static void print_levels(tarn_buf *b, const tarn_level *l, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    tarn_buf_fmt(b, " (%s %u %lld)", tarn_plan_level_names[l[i].kind], l[i].dim,
                 (long long)l[i].step);
}
void tarn_schedule_print(const tarn_lang *L, tarn_buf *b, const tarn_nest *n,
                         const tarn_schedule *s) {
  (void)L, (void)n;
  tarn_buf_str(b, "(schedule");
  if (s->nshared) {
    tarn_buf_str(b, " (shared");
    print_levels(b, s->shared, s->nshared);
    tarn_buf_str(b, ")");
  }
  for (uint32_t i = 0; i < s->nstage; i++) {
    tarn_buf_fmt(b, " (stage (acc %u)", s->stage[i].acc);
    print_levels(b, s->stage[i].level, s->stage[i].nlevel);
    tarn_buf_str(b, ")");
  }
  tarn_buf_str(b, ")");
}

/* Each dim in [from, to) covered by levels of falling steps that divide one another, down to 1. */
static void check_levels(tarn_ctx *cx, const tarn_level *l, uint32_t n, uint32_t from, uint32_t to,
                         uint32_t stage) {
  int64_t last[TARN_MAX_DIMS * 2] = {0};
  for (uint32_t i = 0; i < n; i++) {
    if (l[i].dim < from || l[i].dim >= to)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: stage %u: level %u walks dim %u, which is not its own", stage, i,
                 l[i].dim);
    if (l[i].step < 1 || (last[l[i].dim] && last[l[i].dim] % l[i].step))
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: stage %u: the steps of dim %u do not divide one another", stage,
                 l[i].dim);
    last[l[i].dim] = l[i].step;
  }
  for (uint32_t d = from; d < to; d++)
    if (last[d] != 1)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: dim %u is not covered", stage, d);
}
void tarn_schedule_check(tarn_lang *L, const tarn_nest *n, const tarn_schedule *s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  if (s->nstage != n->nstage)
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: %u stages for a nest of %u", s->nstage, n->nstage);
  check_levels(cx, s->shared, s->nshared, 0, n->depth, TARN_NONE);
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *st = &n->stage[i];
    uint32_t acc = (uint32_t)n->depth + st->nown;
    check_levels(cx, s->stage[i].level, s->stage[i].nlevel, n->depth, acc + st->nred, i);
    if (s->stage[i].acc > s->stage[i].nlevel)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: stage %u: acc beyond its levels", i);
  }
}

const char *tarn_schedule_text(const tarn_lang *L, tarn_ctx *cx, const tarn_nest *n,
                               const tarn_schedule *s) {
  tarn_buf b = {.cx = cx};
  tarn_schedule_print(L, &b, n, s);
  return b.p;
}

/* ---- reading a schedule ---- */
typedef struct reader {
  tarn_lang *L;
  tarn_ctx *cx;
} reader;

static const tarn_sx *kid(reader *r, const tarn_sx *s, uint32_t i, tarn_sx_kind kind,
                          const char *what) {
  if (i >= s->n || s->kid[i]->kind != kind)
    tarn_sx_error(r->cx, i < s->n ? s->kid[i] : s, "%s is expected", what);
  return s->kid[i];
}
static int64_t whole(reader *r, const tarn_sx *s, uint32_t i, int64_t lo, int64_t hi) {
  int64_t v = kid(r, s, i, TARN_SX_INT, "a number")->i;
  if (v < lo || v > hi) tarn_sx_error(r->cx, s->kid[i], "%lld is out of range", (long long)v);
  return v;
}
static uint32_t get_levels(reader *r, const tarn_sx *s, uint32_t from, tarn_level *level) {
  if (s->n - from > TARN_MAX_LEVELS) tarn_sx_error(r->cx, s, "too many levels");
  for (uint32_t i = from; i < s->n; i++) {
    const tarn_sx *l = kid(r, s, i, TARN_SX_LIST, "a level");
    uint32_t kind = 0;
    while (kind < PLAN_LEVEL_KINDS && !tarn_sx_is(l, tarn_plan_level_names[kind])) kind++;
    if (kind == PLAN_LEVEL_KINDS) tarn_sx_error(r->cx, l, "no level");
    level[i - from] = (tarn_level){(uint8_t)whole(r, l, 1, 0, TARN_MAX_DIMS - 1), (uint8_t)kind,
                                   whole(r, l, 2, 1, INT64_C(1) << 40)};
  }
  return s->n - from;
}
const tarn_schedule *tarn_schedule_parse(tarn_lang *L, const tarn_nest *nest, const char *text,
                                         size_t n) {
  reader r = {L, tarn_lang_ctx(L)};
  const tarn_sx *all = tarn_sx_read(r.cx, text, n, "schedule"),
                *s = kid(&r, all, 0, TARN_SX_LIST, "a schedule");
  tarn_schedule *out = TARN_NEW(r.cx, tarn_schedule);
  if (!tarn_sx_is(s, "schedule")) tarn_sx_error(r.cx, s, "no schedule");
  uint32_t at = s->n > 1 && tarn_sx_is(s->kid[1], "shared") ? 2 : 1;
  if (at == 2) out->nshared = get_levels(&r, s->kid[1], 1, out->shared);
  if (s->n - at != nest->nstage)
    tarn_sx_error(r.cx, s, "%u stages for a nest of %u", s->n - at, nest->nstage);
  out->stage = TARN_ARRAY(r.cx, tarn_stage_sched, nest->nstage + 1);
  for (; at < s->n; at++) {
    const tarn_sx *st = kid(&r, s, at, TARN_SX_LIST, "a stage"),
                  *acc = kid(&r, st, 1, TARN_SX_LIST, "acc");
    tarn_stage_sched *q = &out->stage[out->nstage++];
    q->acc = (uint32_t)whole(&r, acc, 1, 0, TARN_MAX_LEVELS),
    q->nlevel = get_levels(&r, st, 2, q->level);
  }
  tarn_schedule_check(L, nest, out);
  return out;
}

static const char *const kinds[] = {"input", "output", "const", "temp"};
static void print_ints(tarn_buf *b, const char *head, const int64_t *v, uint32_t n) {
  tarn_buf_fmt(b, " (%s", head);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, " %lld", (long long)v[i]);
  tarn_buf_str(b, ")");
}
static void print_layout(tarn_buf *b, const tarn_layout *l) {
  print_ints(b, "dims", l->dim, l->n);
  print_ints(b, "strides", l->stride, l->n);
  if (l->offset) tarn_buf_fmt(b, " (offset %lld)", (long long)l->offset);
  if (l->block) tarn_buf_fmt(b, " (block %u %lld)", l->baxis, (long long)l->block);
}
static void print_kernel(const tarn_kprog *p, tarn_buf *b, const tarn_kernel *k) {
  tarn_buf_str(b, "\n  (kernel ");
  tarn_sx_name(b, k->name, strlen(k->name));
  tarn_buf_str(b, "\n    (in");
  for (uint32_t i = 0; i < k->nin; i++) tarn_buf_fmt(b, " b%u", k->in[i]);
  tarn_buf_str(b, ") (out");
  for (uint32_t i = 0; i < k->nout; i++) tarn_buf_fmt(b, " b%u", k->out[i]);
  tarn_buf_str(b, ") (price ");
  tarn_buf_double(b, k->price);
  tarn_buf_str(b, k->copy ? ") (copy)" : ")");
  if (k->kind == TARN_K_NEST) {
    tarn_buf_str(b, "\n    ");
    tarn_payload_print(p->L, b, TARN_OP_NEST, tarn_payload_of(p->L, TARN_P_NEST, k->nest));
    for (uint32_t i = 0; i < k->nin; i++) {
      tarn_buf_str(b, "\n    (operand");
      print_layout(b, &k->in_layout[i]);
      tarn_buf_str(b, ")");
    }
    for (uint32_t i = 0; i < k->nout; i++) {
      tarn_buf_str(b, "\n    (result");
      print_layout(b, &k->out_layout[i]);
      tarn_buf_str(b, ")");
    }
    tarn_buf_str(b, "\n    ");
    tarn_schedule_print(p->L, b, tarn_nest_get(p->L, k->nest), k->sched);
  } else {
    tarn_buf_str(b, "\n    ");
    tarn_payload_print(p->L, b, TARN_OP_OPAQUE, k->payload);
  }
  tarn_buf_str(b, ")");
}
void tarn_kprog_print(const tarn_kprog *p, tarn_buf *b) {
  tarn_buf_str(b, "(kernels (hw ");
  tarn_sx_name(b, p->hw->name, strlen(p->hw->name));
  tarn_buf_str(b, ")\n  (inputs");
  for (uint32_t i = 0; i < p->nin; i++) tarn_buf_fmt(b, " b%u", p->in[i]);
  tarn_buf_str(b, ") (outputs");
  for (uint32_t i = 0; i < p->nout; i++) tarn_buf_fmt(b, " b%u", p->out[i]);
  tarn_buf_str(b, ")");
  for (uint32_t i = 0; i < p->nbuf; i++) {
    const tarn_buffer *x = &p->buf[i];
    tarn_buf_fmt(b, "\n  (buffer b%u %s %s", i, kinds[x->kind], tarn_dtype_name(x->dtype));
    if (x->name) {
      tarn_buf_str(b, " (name ");
      tarn_sx_string(b, x->name, strlen(x->name));
      tarn_buf_str(b, ")");
    }
    if (x->parent != TARN_NONE) tarn_buf_fmt(b, " (in b%u)", x->parent);
    print_layout(b, &x->layout);
    tarn_buf_str(b, ")");
  }
  for (uint32_t i = 0; i < p->nker; i++) print_kernel(p, b, &p->ker[i]);
  tarn_buf_str(b, ")\n");
}
