/* The loop program as text. */
#include "plan/unit_internal.h"

static const char *const what_name[] = {
    [TARN_UNIT_ROWS] = "rows",     [TARN_UNIT_COLUMNS] = "columns", [TARN_UNIT_SUMS] = "sums",
    [TARN_UNIT_RESULT] = "result", [TARN_UNIT_ADDEND] = "addend",   [TARN_UNIT_ONE] = "identity",
    [TARN_UNIT_ONTO] = "onto",     [TARN_UNIT_TAP] = "tap",         [TARN_UNIT_COPY] = "copy"};
static void indent(tarn_buf *b, uint32_t n) { tarn_buf_fmt(b, "\n%*s", (int)(2 * n + 2), ""); }
void tarn_unit_name(const tarn_unit_plan *p, uint32_t tensor, tarn_buf *b) {
  const tarn_unit_tensor *x = &p->tensor[tensor];
  if (x->read != TARN_NONE) tarn_buf_fmt(b, "%s %u", what_name[x->what], x->read);
  else tarn_buf_str(b, what_name[x->what]);
}
static void print_tensor(const tarn_unit_plan *p, uint32_t t, const char *verb, uint32_t depth,
                         tarn_buf *b) {
  const tarn_unit_tensor *x = &p->tensor[t];
  int64_t entries[TARN_UNIT_TENSORS];
  int64_t first[TARN_UNIT_TENSORS];
  uint32_t memory;
  int64_t needs;
  tarn_unit_places(p, entries, first, &memory, &needs);
  indent(b, depth);
  tarn_buf_fmt(b, "(%s ", verb);
  tarn_unit_name(p, t, b);
  tarn_buf_fmt(b, " %s %lld entries", p->hw->mem[x->memory].name, (long long)entries[t]);
  if (x->slots > 1) tarn_buf_fmt(b, " x %u slots", x->slots);
  tarn_buf_str(b, ")");
}
/* What is filled where so many loops are open. */
static void fills(const tarn_unit_plan *p, uint32_t loops, uint32_t depth, tarn_buf *b) {
  bool comes = p->way == TARN_UNIT_FILLS;
  for (uint32_t t = 0; t < p->sums; t++)
    if (p->tensor[t].at_loop == loops) print_tensor(p, t, "fill", depth, b);
  bool begins = p->way == TARN_UNIT_WHOLE || p->way == TARN_UNIT_JOINS;
  if (p->tensor[p->sums].at_loop == loops && !begins)
    print_tensor(p, p->sums, comes ? "fill" : "clear", depth, b);
}
static void finish(const tarn_unit_plan *p, uint32_t depth, tarn_buf *b) {
  for (uint32_t t = p->sums; t < p->ntensor; t++)
    if (p->tensor[t].what == TARN_UNIT_ADDEND)
      print_tensor(p, t, p->tensor[t].source == TARN_NONE ? "fill" : "load", depth, b);
  for (uint32_t i = 0; i < p->nstep; i++) {
    const tarn_unit_step *s = &p->step[i];
    indent(b, depth);
    tarn_buf_fmt(b, "(%s ", p->hw->intrin[s->intrinsic].name);
    tarn_unit_name(p, s->to, b);
    tarn_buf_str(b, " ");
    if (s->from == TARN_NONE) tarn_buf_fmt(b, "%lld", (long long)s->immediate);
    else tarn_unit_name(p, s->from, b);
    tarn_buf_str(b, ")");
  }
  print_tensor(p, p->result, "leave", depth, b);
}
void tarn_unit_print(const tarn_unit_plan *p, tarn_buf *b) {
  uint32_t sums = p->tensor[p->sums].at_loop;
  tarn_buf_fmt(b, "(plan %s", p->hw->name);
  fills(p, 0, 0, b);
  for (uint32_t i = 0; i < p->nloop; i++) {
    indent(b, i);
    tarn_buf_fmt(b, "(loop d%u %lld %lld", p->loop[i].dim, (long long)p->dim[p->loop[i].dim],
                 (long long)p->loop[i].step);
    fills(p, i + 1, i + 1, b);
  }
  indent(b, p->nloop);
  if (p->way == TARN_UNIT_MULTIPLIES)
    tarn_buf_fmt(b, "(%s sums rows columns)", p->hw->intrin[p->product].name);
  if (p->way == TARN_UNIT_FOLDS)
    tarn_buf_fmt(b, "(each tap: load rows, %s sums)", p->hw->intrin[p->fold].name);
  if (p->way == TARN_UNIT_JOINS)
    tarn_buf_fmt(b, "(each tap: %s sums rows)", p->hw->intrin[p->fold].name);
  if (p->way == TARN_UNIT_WHOLE) tarn_buf_fmt(b, "(%s)", p->hw->intrin[p->product].name);
  if (p->way == TARN_UNIT_LOADS) tarn_buf_str(b, "(load rows)");
  bool parts = p->tensor[p->result].at_loop > sums; /* each when its last product is added */
  if (parts) finish(p, p->nloop, b);
  for (uint32_t i = p->nloop; i > sums; i--) tarn_buf_str(b, ")");
  if (!parts) finish(p, sums, b);
  for (uint32_t i = sums; i > 0; i--) tarn_buf_str(b, ")");
  tarn_buf_str(b, ")\n");
}
