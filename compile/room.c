/* Budgets of memory: for each, the program that fits and takes the least time. The selection counts
 * the bytes that live at once; where their places leave gaps, it is asked for as many less. */
#include "compile/internal.h"
#include "compile/target.h"

enum { TRIES = 4 };

void comp_room_refuse(const tarn_compiled *c) {
  const tarn_compile_options *o = c->o;
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  if (!o->nram) return;
  if (!c->target->budget)
    tarn_raise(cx, TARN_USAGE, "--ram: a program for %s (%s) has no budget", o->hw->name,
               c->target->name);
  for (uint32_t i = 0; i < o->nram; i++)
    if (o->ram[i] < 0)
      tarn_raise(cx, TARN_USAGE, "--ram: %lld bytes: a number of bytes is expected",
                 (long long)o->ram[i]);
}
static tarn_budgeted measured(const tarn_compiled *c, int64_t budget) {
  tarn_budgeted r = {.budget = budget, .bytes = c->memory->bytes};
  for (uint32_t k = 0; k < c->kernels->nker; k++) {
    const tarn_kernel *x = &c->kernels->ker[k];
    r.seconds += x->price;
    r.traffic += x->reads + x->writes;
    r.flops += x->flops;
  }
  return r;
}
/* at: where most lives. */
static tarn_budgeted within(tarn_compiled *c, int64_t budget, const char **at) {
  int64_t asked = budget;
  tarn_budgeted r = {0};
  for (uint32_t i = 0; i < TRIES; i++) {
    tarn_room found;
    bool fits = tarn_extract_within(c->extraction, asked, c->target->align, &found);
    *at = found.kernel;
    c->kernels = tarn_extract_program(c->extraction, &c->picks);
    c->memory = c->target->memory(c->kernels, c->target->align);
    r = measured(c, budget);
    if (!fits || r.bytes <= budget) break;
    asked -= r.bytes - budget;
  }
  return r;
}
void comp_fit(tarn_compiled *c) {
  const tarn_compile_options *o = c->o;
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  double t = tarn_now();
  const char *at = NULL;
  if (!o->nram) return;
  c->budget = TARN_ARRAY(cx, tarn_budgeted, o->nram);
  for (uint32_t i = 0; i < o->nram; i++) c->budget[c->nbudget++] = within(c, o->ram[i], &at);
  c->seconds.extract += tarn_now() - t;
  const tarn_budgeted *last = &c->budget[c->nbudget - 1];
  if (last->bytes > last->budget)
    tarn_raise(
        cx, TARN_NO_RESULT,
        "%s: no program was found that needs at most %lld bytes: the least is %lld, %lld too "
        "many, most of them at kernel %s",
        o->model, (long long)last->budget, (long long)last->bytes,
        (long long)(last->bytes - last->budget), at);
}
void comp_put_room(const tarn_compiled *c, tarn_json *j) {
  if (!c->nbudget) return;
  tarn_json_open(j, "ram", '[');
  for (uint32_t i = 0; i < c->nbudget; i++) {
    const tarn_budgeted *r = &c->budget[i];
    tarn_json_object(j, NULL, "budget", r->budget, "workspace", r->bytes, "price", r->seconds,
                     "traffic", r->traffic, "flops", r->flops);
  }
  tarn_json_close(j, ']');
}
