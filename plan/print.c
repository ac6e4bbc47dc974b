/* A plan as text: regions, stages, the levels of each as nested loops, what lies in the register
 * tile, and how each operand is walked. l0, l1 … are level counters; an offset is a sum over them,
 * in elements. */
#include "plan/plan.h"

typedef struct printer {
  const tarn_plan_nest *N;
  tarn_buf *b;
  uint32_t depth; /* of indentation */
  uint32_t open;  /* loops to be closed */
} printer;

static void line(printer *p) {
  tarn_buf_str(p->b, "\n");
  for (uint32_t i = 0; i < p->depth; i++) tarn_buf_str(p->b, "  ");
}
static const char *const kinds[] = {[TARN_SERIAL] = "serial",
                                    [TARN_PARALLEL] = "thread",
                                    [TARN_UNROLL] = "unroll",
                                    [TARN_VECTOR] = "lane",
                                    [TARN_DOT] = "unit"};

/* ---------------------------------------------------------------- index expressions */
static void print_lin(tarn_buf *b, const tarn_plan_lin *a);
static void print_term(tarn_buf *b, const tarn_plan_term *t) {
  if (t->coef != 1) tarn_buf_fmt(b, "(* %lld ", (long long)t->coef);
  if (t->kind == TARN_IX_VAR) tarn_buf_fmt(b, "l%u", t->var);
  else {
    tarn_buf_str(b, t->kind == TARN_IX_DIV ? "(/ " : "(mod ");
    print_lin(b, t->arg);
    tarn_buf_fmt(b, " %lld)", (long long)t->by);
  }
  if (t->coef != 1) tarn_buf_str(b, ")");
}
static void print_lin(tarn_buf *b, const tarn_plan_lin *a) {
  bool sum = a->n + (a->c != 0) > 1;
  if (a->n == 0) {
    tarn_buf_fmt(b, "%lld", (long long)a->c);
    return;
  }
  if (sum) tarn_buf_str(b, "(+");
  for (uint32_t i = 0; i < a->n; i++) {
    if (sum) tarn_buf_str(b, " ");
    print_term(b, &a->t[i]);
  }
  if (a->c) tarn_buf_fmt(b, " %lld", (long long)a->c);
  if (sum) tarn_buf_str(b, ")");
}

/* ---------------------------------------------------------------- operands */
/* How the lanes of a list's vector levels walk an access. */
static void print_lanes(printer *p, const tarn_plan_list *list, const tarn_plan_access *a) {
  for (uint32_t i = 0; i < list->n; i++) {
    const tarn_plan_level *l = &list->level[i];
    int64_t by;
    if (l->kind != TARN_VECTOR) continue;
    if (!tarn_plan_moves_by(a->off, l->var, &by)) tarn_buf_str(p->b, " (lanes gather)");
    else if (by == 0) tarn_buf_str(p->b, " (lanes broadcast)");
    else tarn_buf_fmt(p->b, " (lanes step %lld)", (long long)by);
  }
}
static void print_access(printer *p, const tarn_plan_list *list, const tarn_plan_access *a) {
  tarn_buf_fmt(p->b, "%s (at ", tarn_dtype_name(a->dtype));
  print_lin(p->b, a->off);
  tarn_buf_str(p->b, ")");
  print_lanes(p, list, a);
  for (uint32_t g = 0; g < a->nguard; g++) {
    tarn_buf_str(p->b, " (guard ");
    print_lin(p->b, a->guard[g].e);
    tarn_buf_fmt(p->b, " %lld %lld)", (long long)a->guard[g].lo, (long long)a->guard[g].hi);
  }
  if (a->nguard) {
    tarn_buf_str(p->b, " (fill ");
    tarn_fx_print(p->N->L, p->b, a->fill);
    tarn_buf_str(p->b, ")");
  }
  if (a->few) tarn_buf_str(p->b, " (numbers)");
  if (a->along) tarn_buf_str(p->b, " (moved along the lanes)");
  if (a->ahead)
    tarn_buf_fmt(p->b, " (prefetch %lld %s)", (long long)a->ahead, a->second ? "L2" : "L1");
  if (a->past) tarn_buf_str(p->b, " (non-temporal)");
  tarn_buf_str(p->b, ")");
}
static void print_operands(printer *p, const tarn_plan_list *list, const tarn_plan_stage *st) {
  for (uint32_t r = 0; r < st->nread; r++) {
    const tarn_read *from = &st->s->read[r];
    line(p);
    tarn_buf_fmt(p->b, "(%s %u (%s %u) ", r < st->f->nops ? "operand" : "epilogue-operand",
                 r < st->f->nops ? r : r - st->f->nops + 1, from->stage ? "stage" : "buffer",
                 from->src);
    print_access(p, list, &st->read[r]);
  }
  line(p);
  if (st->s->out) tarn_buf_fmt(p->b, "(result (buffer %u) ", st->out_no);
  else tarn_buf_fmt(p->b, "(result (local %lld) ", (long long)st->local_bytes);
  print_access(p, list, &st->result);
}

/* ---------------------------------------------------------------- levels */
static void print_prefetches(printer *p, const tarn_plan_stage *st, const tarn_plan_level *l) {
  for (uint32_t i = 0; i < st->prefetch.n; i++) {
    const tarn_ask *k = &st->prefetch.p[i].k;
    if (k->at != l->var) continue;
    line(p);
    tarn_buf_fmt(p->b, "(prefetch (stage %u) (operand %u) first %lld rows %lld of %lld bytes %s)",
                 k->of, k->walk, (long long)k->first, (long long)k->rows, (long long)k->step,
                 k->near ? "L1" : "L2");
  }
}
static void open_level(printer *p, const tarn_plan_level *l) {
  line(p);
  tarn_buf_fmt(p->b, "(%s l%u d%u step %lld trips %lld", kinds[l->kind], l->var, l->dim,
               (long long)l->step, (long long)l->trips);
  p->depth++;
  p->open++;
}
static void print_fx(printer *p, const char *head, uint32_t f) {
  line(p);
  tarn_buf_fmt(p->b, "(%s ", head);
  tarn_fx_print(p->N->L, p->b, f);
  tarn_buf_str(p->b, ")");
}
static void open_tile(printer *p, const tarn_plan_stage *st) {
  line(p);
  tarn_buf_fmt(p->b, "(tile accumulators %lld lanes %u", (long long)st->slots, st->max_lanes);
  if (st->chains > 1) tarn_buf_fmt(p->b, " chains %lld", (long long)st->chains);
  if (st->red_lanes > 1) tarn_buf_fmt(p->b, " partial-lanes %u", st->red_lanes);
  if (st->in_memory) tarn_buf_str(p->b, " in-memory");
  p->depth++;
  p->open++;
  line(p);
  if (st->start != TARN_NONE) tarn_buf_fmt(p->b, "(begin (epilogue-operand %u))", st->start + 1);
  else tarn_buf_str(p->b, "(begin identity)");
  if (st->order < TARN_MAX_LEVELS && st->order_read != TARN_NONE) {
    line(p);
    tarn_buf_fmt(p->b, "(copies-in-order-of (operand %u))", st->order_read);
  }
  if (st->rows) {
    line(p);
    tarn_buf_fmt(p->b, "(register-transpose l%u)", st->rows->var);
  }
  if (st->crossed) line(p), tarn_buf_str(p->b, "(lane-order halves)");
}
static void print_body(printer *p, const tarn_plan_stage *st) {
  for (uint32_t i = 0; i < st->nfactor; i++) {
    const tarn_plan_factor *f = &st->factor[i];
    line(p);
    tarn_buf_fmt(p->b, "(constant-matrix (operand %u) %u x %u, %u shared pairs)", f->read, f->rows,
                 f->cols, f->npair);
  }
  for (uint32_t i = 0; i < st->ndot; i++) {
    line(p);
    tarn_buf_fmt(p->b, "(intrinsic %s lanes %lld k %lld)", st->dot[i].intrinsic->name,
                 (long long)st->dot[i].lanes, (long long)st->dot[i].k);
  }
  print_fx(p, "compute", st->f->body);
}
static void close(printer *p, uint32_t to) {
  for (; p->open > to; p->open--, p->depth--) tarn_buf_str(p->b, ")");
}
static void print_stage(printer *p, uint32_t i) {
  const tarn_plan_stage *st = &p->N->stage[i];
  const tarn_plan_list *list = &p->N->list[1 + i];
  uint32_t before = p->open, tile = TARN_NONE;
  line(p);
  tarn_buf_fmt(p->b, "(stage %u", i);
  p->depth++;
  print_operands(p, list, st);
  for (uint32_t l = 0; l <= list->n; l++) {
    if (st->red && l == st->acc) {
      tile = p->open;
      open_tile(p, st);
    }
    if (l == list->n) continue;
    open_level(p, &list->level[l]);
    print_prefetches(p, st, &list->level[l]);
  }
  print_body(p, st);
  if (tile != TARN_NONE) close(p, tile);
  if (st->red) print_fx(p, "finish", st->red->result);
  if (st->f->epi != TARN_NONE) print_fx(p, "epilogue", st->f->epi);
  close(p, before);
  tarn_buf_str(p->b, ")");
  p->depth--;
}

void tarn_plan_print(const tarn_plan_nest *N, tarn_buf *b) {
  printer p = {.N = N, .b = b, .depth = 1};
  tarn_buf_str(b, "(plan");
  for (uint32_t r = 0; r < tarn_plan_regions(N); r++) {
    line(&p);
    tarn_buf_fmt(b, "(region %u items %lld", r, (long long)tarn_plan_items(N, r));
    p.depth++;
    for (uint32_t l = 0; l < N->list[0].n && !N->split; l++) open_level(&p, &N->list[0].level[l]);
    for (uint32_t i = 0; i < N->nstage; i++)
      if (!N->split || i == r) print_stage(&p, i);
    close(&p, 0);
    tarn_buf_str(b, ")");
    p.depth--;
  }
  tarn_buf_str(b, ")\n");
}
