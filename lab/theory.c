/* The theory of free rule sets: what their files may declare, and what reading their rules asks. */
#include "lab/free.h"
#include "lab/meaning.h"
#include <string.h>

static void read_learn(tarn_ruleset *rs, const tarn_sx *s) { free_of(rs)->learn = s; }
static const struct {
  const char *head;
  void (*read)(tarn_ruleset *rs, const tarn_sx *s);
} forms[] = {{"interpretation", meaning_read},
             {"learn", read_learn},
             {"analysis", free_read_analysis},
             {"predicate", free_read_predicate}};
static bool form(tarn_ruleset *rs, const tarn_sx *s) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (!tarn_sx_is(s, forms[i].head)) continue;
    forms[i].read(rs, s);
    return true;
  }
  return false;
}
static uint32_t symbol(tarn_ruleset *rs, const char *name, size_t n) {
  return free_written(free_of(rs), name, n, true);
}

static void size(const tarn_ruleset *rs, tarn_ruleset_mark *m) {
  const free_state *f = free_of(rs);
  m->analyses = f->analysis.n;
  m->predicates = f->predicate.n;
  m->names = f->named.n;
  m->constants = f->constants;
  m->numbers = (int)f->numbers;
}
static void shrink(tarn_ruleset *rs, const tarn_ruleset_mark *to) {
  free_state *f = free_of(rs);
  f->analysis.n = to->analyses;
  f->predicate.n = to->predicates;
  f->named.n = to->names;
  f->constants = to->constants;
  f->numbers = (free_numbers)to->numbers;
}

const rtheory free_theory = {.forms =
                                 ", (phases …), (analysis …), (predicate …) or (interpretation …)",
                             .form = form,
                             .symbol = symbol,
                             .condition = free_try_condition,
                             .computed = free_computed,
                             .size = size,
                             .shrink = shrink,
                             .check = free_check};

static const rbuild *no_builder(const char *name) {
  (void)name;
  return NULL;
}
tarn_ruleset *tarn_free_ruleset_new(tarn_lang *L) {
  tarn_ruleset *rs = tarn_r_ruleset(L, &free_theory, no_builder);
  free_state *f = TARN_NEW(rs->cx, free_state);
  *f = (free_state){
      .rs = rs, .cx = rs->cx, .symbol = tarn_intern_new(rs->cx), .constants = TARN_NONE};
  f->set = tarn_intern_new(rs->cx);
  f->fresh_of = tarn_intern_new(rs->cx);
  tarn_intern_add(f->set, "", 0);
  rs->declared = f;
  return rs;
}
