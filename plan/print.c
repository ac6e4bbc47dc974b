/* Prints a plan: for each region the levels, what its stages compute on which operands, and the
 * statements of its loop program. l0, l1 … are level counters; an offset is a sum over them, in
 * elements. */
#include "plan/plan.h"

typedef struct printer {
  const tarn_plan_nest *N;
  const tarn_unit_plan *unit; /* instead, of a machine whose memories the program manages */
  tarn_buf *b;
  uint32_t depth;            /* of indentation */
  const tarn_plan_stage *st; /* of the statements */
} printer;

static void line(printer *p) {
  tarn_buf_str(p->b, "\n");
  for (uint32_t i = 0; i < p->depth; i++) tarn_buf_str(p->b, "  ");
}
/* ---------------------------------------------------------------- index expressions */
static void print_lin(tarn_buf *b, const tarn_plan_lin *a);
static void print_term(tarn_buf *b, const tarn_plan_term *t) {
  if (t->coef != 1) tarn_buf_fmt(b, "(* %lld ", (long long)t->coef);
  if (t->kind == TARN_IX_VAR) tarn_buf_fmt(b, "l%u", t->var);
  else if (t->kind == TARN_PLAN_ROW) {
    tarn_buf_fmt(b, "(row %u ", t->var);
    print_lin(b, t->arg);
    tarn_buf_str(b, ")");
  } else {
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
  if (a->prefetch_by)
    tarn_buf_fmt(p->b, " (prefetch %lld %s)", (long long)a->prefetch_by, a->into_l2 ? "L2" : "L1");
  if (a->streaming) tarn_buf_str(p->b, " (non-temporal)");
  if (a->wide > 1 && !a->held) tarn_buf_fmt(p->b, " (load %u)", a->wide);
  tarn_buf_str(p->b, ")");
}
/* What a block's threads hold of an operand, and how they copy it there. */
static void print_held(printer *p, const tarn_plan_stage *st, const tarn_plan_list *list) {
  for (uint32_t i = 0; i < st->nheld; i++) {
    const tarn_plan_held *h = &st->held[i];
    line(p);
    tarn_buf_fmt(p->b, "(held %u (byte %lld) %u x %lld (copy", h->read, (long long)h->at, st->nslot,
                 (long long)h->elems);
    for (uint32_t k = 0; k < h->n; k++)
      tarn_buf_fmt(p->b, " l%u %lld", h->var[k], (long long)h->count[k]);
    tarn_buf_fmt(p->b, ") (%u at once%s%s) (from ", h->wide, h->async ? ", asynchronous" : "",
                 h->border ? ", borders filled" : "");
    print_access(p, list, &h->from);
    tarn_buf_str(p->b, " (to ");
    print_lin(p->b, h->to);
    tarn_buf_str(p->b, ")");
    if (st->read[h->read].wide > 1) tarn_buf_fmt(p->b, " (load %u)", st->read[h->read].wide);
    tarn_buf_str(p->b, ")");
  }
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

/* ---------------------------------------------------------------- stages */
static void print_fx(printer *p, const char *head, uint32_t f) {
  line(p);
  tarn_buf_fmt(p->b, "(%s ", head);
  tarn_fx_print(p->N->L, p->b, f);
  tarn_buf_str(p->b, ")");
}
static void print_prefetches(printer *p, const tarn_plan_stage *st) {
  for (uint32_t i = 0; i < st->prefetch.n; i++) {
    const tarn_prefetch *k = &st->prefetch.p[i].k;
    line(p);
    tarn_buf_fmt(
        p->b, "(prefetch (in l%u) (stage %u) (operand %u) first %lld rows %lld of %lld bytes %s)",
        k->at, k->of, k->walk, (long long)k->first, (long long)k->rows, (long long)k->step,
        k->into_l1 ? "L1" : "L2");
  }
}
static void print_accumulators(printer *p, const tarn_plan_stage *st) {
  line(p);
  tarn_buf_fmt(p->b, "(accumulators %lld lanes %u", (long long)st->slots, st->max_lanes);
  if (st->chains > 1) tarn_buf_fmt(p->b, " chains %lld", (long long)st->chains);
  if (st->red_lanes > 1) tarn_buf_fmt(p->b, " partial-lanes %u", st->red_lanes);
  if (st->in_memory) tarn_buf_str(p->b, " in-memory");
  if (st->start == TARN_NONE) tarn_buf_str(p->b, " (begin identity)");
  else tarn_buf_fmt(p->b, " (begin (epilogue-operand %u))", st->start + 1);
  if (st->order < TARN_MAX_LEVELS && st->order_read != TARN_NONE)
    tarn_buf_fmt(p->b, " (copies-in-order-of (operand %u))", st->order_read);
  if (st->halves) tarn_buf_str(p->b, " (lane-order halves)");
  tarn_buf_str(p->b, ")");
}
static void print_units(printer *p, const tarn_plan_stage *st) {
  for (uint32_t i = 0; i < st->nfactor; i++) {
    const tarn_plan_factor *f = &st->factor[i];
    line(p);
    tarn_buf_fmt(p->b, "(constant-matrix %u (operand %u) %u x %u, %u shared pairs)", i, f->read,
                 f->rows, f->cols, f->npair);
  }
  for (uint32_t i = 0; i < st->ndot; i++) {
    line(p);
    tarn_buf_fmt(p->b, "(intrinsic %s lanes %lld k %lld", st->dot[i].intrinsic->name,
                 (long long)st->dot[i].lanes, (long long)st->dot[i].k);
    for (uint32_t r = 0; r < 2; r++)
      if (st->dot[i].widens[r])
        tarn_buf_fmt(p->b, " (widens %u %s)", r,
                     tarn_dtype_name(st->dot[i].intrinsic->op[st->dot[i].operand[r]].dtype));
    tarn_buf_str(p->b, ")");
  }
}
static void print_matrices(printer *p, const tarn_plan_stage *st) {
  for (uint32_t o = 0; o < 2 && st->unit; o++) {
    if (st->scattered[o]) {
      line(p);
      tarn_buf_fmt(p->b, "(scattered (operand %u))", st->unit_read[o]);
    }
    if (st->pair[o]) {
      line(p);
      tarn_buf_fmt(p->b, "(pairs (operand %u))", st->unit_read[o]);
    }
    if (!st->matrices[o]) continue;
    line(p);
    tarn_buf_fmt(p->b, "(matrices (operand %u) %lld registers at once)", st->unit_read[o],
                 (long long)st->matrices[o]);
  }
}
/* What the stage's leaves compute, on what. */
static void print_stage(printer *p, uint32_t i) {
  const tarn_plan_stage *st = &p->N->stage[i];
  line(p);
  tarn_buf_fmt(p->b, "(stage %u", i);
  p->depth++;
  print_operands(p, &p->N->list[1 + i], st);
  print_held(p, st, &p->N->list[1 + i]);
  print_matrices(p, st);
  if (st->red) print_accumulators(p, st);
  if (st->rows) {
    line(p);
    tarn_buf_fmt(p->b, "(register-transpose l%u)", st->rows->var);
  }
  print_units(p, st);
  print_prefetches(p, st);
  print_fx(p, "compute", st->f->body);
  if (st->red) print_fx(p, "finish", st->red->result);
  if (st->f->epi != TARN_NONE) print_fx(p, "epilogue", st->f->epi);
  tarn_buf_str(p->b, ")");
  p->depth--;
}

/* ---------------------------------------------------------------- statements */
#define TEXT(OP, name, text) [TARN_PLAN_##OP] = text,
static const char *const op_names[TARN_PLAN_OPS] = {TARN_PLAN_OP_TABLE(TEXT)}; /* NULL: the phase */
static const char *const phase_names[TARN_PLAN_PHASES] = {
    [TARN_PLAN_MAP] = "map",   [TARN_PLAN_BEGIN] = "begin", [TARN_PLAN_RESUME] = "resume",
    [TARN_PLAN_STEP] = "step", [TARN_PLAN_LEAVE] = "leave", [TARN_PLAN_FINISH] = "finish"};

static const char *const opens[] = {"", " on", " over", " on over"};
static void print_counter(printer *p, const tarn_plan_stmt *s) {
  long long lo = s->lo;
  long long hi = s->hi;
  if (s->op == TARN_PLAN_CASE && s->by)
    tarn_buf_fmt(p->b, " to %lld by %lld", hi, (long long)s->by);
  else if (s->op == TARN_PLAN_CASE && s->below) tarn_buf_fmt(p->b, " < %lld", (long long)s->below);
  else if (s->op == TARN_PLAN_CASE) tarn_buf_fmt(p->b, " = %lld", lo);
  else if (s->op == TARN_PLAN_LANES && lo > 1) tarn_buf_fmt(p->b, " %lld rows of %lld", hi + 1, lo);
  else if (s->op == TARN_PLAN_LANES) tarn_buf_fmt(p->b, " %lld", hi + 1);
  else if (s->by)
    tarn_buf_fmt(p->b, " %lld to %lld by %lld%s", lo, hi, (long long)s->by, opens[s->open]);
  else if (lo == hi) tarn_buf_fmt(p->b, " = %lld", lo);
  else tarn_buf_fmt(p->b, " %lld to %lld", lo, hi);
}
static void print_fields(printer *p, const tarn_plan_stmt *s) {
  switch ((tarn_plan_op)s->op) {
  case TARN_PLAN_STAGE: tarn_buf_fmt(p->b, " %u", s->var); break;
  case TARN_PLAN_PARALLEL: tarn_buf_fmt(p->b, " l%u", s->var); break;
  case TARN_PLAN_LOOP:
  case TARN_PLAN_MEMBER:
  case TARN_PLAN_MERGE:
  case TARN_PLAN_COPIES:
  case TARN_PLAN_LANES:
    tarn_buf_fmt(p->b, " l%u", s->var);
    print_counter(p, s);
    break;
  case TARN_PLAN_CASE: print_counter(p, s); break;
  case TARN_PLAN_TEAM: tarn_buf_fmt(p->b, " items %lld", (long long)s->hi + 1); break;
  case TARN_PLAN_EITHER:
    for (uint32_t i = 0; i < s->n; i++)
      tarn_buf_fmt(p->b, " (l%u = %lld)", s->test[i].var, (long long)s->test[i].is);
    break;
  case TARN_PLAN_GUARD:
    if (s->read < p->st->nread) tarn_buf_fmt(p->b, " %u (operand %u)", s->guard, s->read);
    else tarn_buf_fmt(p->b, " %u (result)", s->guard);
    break;
  case TARN_PLAN_PIPELINE:
    tarn_buf_fmt(p->b, " l%u trips %lld slots %u", s->var, (long long)s->hi + 1, s->n);
    break;
  case TARN_PLAN_COPY:
  case TARN_PLAN_FILL: tarn_buf_fmt(p->b, " (operand %u)", s->read); break;
  case TARN_PLAN_UNIT: tarn_buf_fmt(p->b, " %s", p->st->unit->name); break;
  case TARN_PLAN_AWAIT: tarn_buf_fmt(p->b, " %u", s->n); break;
  case TARN_PLAN_COMPUTE:
    if (s->value != TARN_NONE) tarn_buf_fmt(p->b, " v%u", s->value);
    break;
  case TARN_PLAN_TAKE: tarn_buf_fmt(p->b, " v%u (operand %u)", s->value, s->read); break;
  case TARN_PLAN_TIMES:
    tarn_buf_fmt(p->b, " v%u (constant-matrix %u)", s->value, s->factor);
    for (uint32_t i = 0; i < s->n; i++)
      tarn_buf_fmt(p->b, s->from[i] == TARN_NONE ? " 0" : " v%u", s->from[i]);
    break;
  case TARN_PLAN_ADDRESS: tarn_buf_fmt(p->b, " l%u", s->var); break;
  case TARN_PLAN_PREFETCH: tarn_buf_fmt(p->b, " %u", s->n); break;
  default: break;
  }
}
/* Of a machine whose memories the program manages: tensors by their names. */
static void print_tensor(printer *p, uint32_t tensor) {
  tarn_buf_str(p->b, " ");
  tarn_unit_name(p->unit, tensor, p->b);
}
static void print_issue(printer *p, const tarn_plan_stmt *s) {
  const tarn_unit_plan *u = p->unit;
  bool taps = u->way == TARN_UNIT_FOLDS || u->way == TARN_UNIT_JOINS;
  tarn_buf_fmt(p->b, " %s", u->hw->intrin[taps ? u->fold : u->product].name);
  print_tensor(p, s->read);
  if (s->read != u->sums) print_tensor(p, u->tensor[s->read].source);
  for (uint32_t t = 0; t < u->sums && s->read == u->sums; t++) print_tensor(p, t);
  if (taps) tarn_buf_str(p->b, " each-tap");
}
static void print_step(printer *p, const tarn_unit_step *s) {
  tarn_buf_fmt(p->b, " %s", p->unit->hw->intrin[s->intrinsic].name);
  print_tensor(p, s->to);
  if (s->from == TARN_NONE) tarn_buf_fmt(p->b, " %lld", (long long)s->immediate);
  else print_tensor(p, s->from);
}
static void print_unit_fields(printer *p, const tarn_plan_stmt *s) {
  switch ((tarn_plan_op)s->op) {
  case TARN_PLAN_LOOP:
    tarn_buf_fmt(p->b, " l%u", s->var);
    print_counter(p, s);
    break;
  case TARN_PLAN_EITHER:
    for (uint32_t i = 0; i < s->n; i++)
      tarn_buf_fmt(p->b, " (l%u %s)", s->test[i].var, s->test[i].is ? "last" : "first");
    break;
  case TARN_PLAN_PHASE:
    if (s->phase != TARN_PLAN_BEGIN) break;
    print_tensor(p, s->read);
    if (s->n) tarn_buf_str(p->b, " zero");
    break;
  case TARN_PLAN_COPY: print_tensor(p, s->read); break;
  case TARN_PLAN_UNIT: print_issue(p, s); break;
  case TARN_PLAN_COMPUTE: print_step(p, &p->unit->step[s->value]); break;
  default: break;
  }
}
/* On the line of what holds it: the only statement in copies or lanes. */
static bool goes_on(const tarn_plan_stmt *s) {
  bool few = s->op == TARN_PLAN_COPIES || s->op == TARN_PLAN_LANES || s->op == TARN_PLAN_PHASE;
  return few && s->size > 1 && s[1].size == s->size - 1 && s[1].op != TARN_PLAN_LOOP;
}
static void print_stmt(printer *p, const tarn_plan_stmt *s) {
  const char *name = op_names[s->op];
  if (s->op == TARN_PLAN_STAGE) p->st = &p->N->stage[s->var];
  if (p->unit && s->op == TARN_PLAN_COMPUTE) name = "compute";
  tarn_buf_fmt(p->b, "(%s", name ? name : phase_names[s->phase]);
  if (p->unit) print_unit_fields(p, s);
  else print_fields(p, s);
  bool same_line = goes_on(s);
  p->depth++;
  for (const tarn_plan_stmt *in = s + 1; in < s + s->size; in += in->size) {
    if (same_line) tarn_buf_str(p->b, " ");
    else line(p);
    print_stmt(p, in);
  }
  p->depth--;
  tarn_buf_str(p->b, ")");
}

/* ---------------------------------------------------------------- the whole */
static const char *const kinds[] = {
    [TARN_SERIAL] = "serial", [TARN_PARALLEL] = "thread", [TARN_UNROLL] = "unroll",
    [TARN_VECTOR] = "lane",   [TARN_DOT] = "unit",        [TARN_TEAM] = "team"};
static void print_levels(printer *p, uint32_t list) {
  const tarn_plan_list *ll = &p->N->list[list];
  for (uint32_t i = 0; i < ll->n; i++) {
    const tarn_plan_level *l = &ll->level[i];
    line(p);
    tarn_buf_fmt(p->b, "(level l%u %s d%u step %lld trips %lld)", l->var, kinds[l->kind], l->dim,
                 (long long)l->step, (long long)l->trips);
  }
}
static void print_region(printer *p, uint32_t r) {
  const tarn_plan_nest *N = p->N;
  const tarn_plan_code *c = N->code[r];
  line(p);
  tarn_buf_fmt(p->b, "(region %u items %lld", r, (long long)tarn_plan_items(N, r));
  if (tarn_plan_narrow(N, r)) tarn_buf_str(p->b, " index 32");
  p->depth++;
  print_levels(p, 0);
  for (uint32_t i = 0; i < N->nstage; i++) {
    if (N->split && i != r) continue;
    print_levels(p, 1 + i);
    print_stage(p, i);
  }
  for (const tarn_plan_stmt *s = c->p; s < c->p + c->n; s += s->size) {
    line(p);
    print_stmt(p, s);
  }
  tarn_buf_str(p->b, ")");
  p->depth--;
}
void tarn_plan_print(const tarn_plan_nest *N, tarn_buf *b) {
  printer p = {.N = N, .b = b, .depth = 1};
  tarn_buf_str(b, "(plan");
  for (uint32_t r = 0; r < tarn_plan_regions(N); r++) print_region(&p, r);
  tarn_buf_str(b, ")\n");
}

/* ---------------------------------------------------------------- where the program manages
 * memories */
static void print_tile(printer *p, uint32_t t, int64_t entries) {
  const tarn_unit_tensor *x = &p->unit->tensor[t];
  line(p);
  tarn_buf_str(p->b, "(held");
  print_tensor(p, t);
  tarn_buf_fmt(p->b, " %s %lld entries", p->unit->hw->mem[x->memory].name, (long long)entries);
  if (x->slots > 1) tarn_buf_fmt(p->b, " x %u slots", x->slots);
  tarn_buf_str(p->b, ")");
}
void tarn_unit_print(const tarn_unit_plan *u, tarn_buf *b) {
  printer p = {.unit = u, .b = b, .depth = 1};
  tarn_unit_place at;
  tarn_unit_places(u, &at);
  tarn_buf_fmt(b, "(plan %s", u->hw->name);
  for (uint32_t i = 0; i < u->nloop; i++) {
    line(&p);
    tarn_buf_fmt(b, "(level l%u d%u step %lld of %lld)", i, u->loop[i].dim,
                 (long long)u->loop[i].step, (long long)u->dim[u->loop[i].dim]);
  }
  for (uint32_t t = 0; t < u->ntensor; t++) print_tile(&p, t, at.entries[t]);
  for (const tarn_plan_stmt *s = u->code.p; s < u->code.p + u->code.n; s += s->size) {
    line(&p);
    print_stmt(&p, s);
  }
  tarn_buf_str(b, ")\n");
}
