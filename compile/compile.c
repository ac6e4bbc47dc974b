/* The pipeline: import, saturate, select, lower, report. */
#include "base/progress.h"
#include "compile/internal.h"
#include <string.h>

tarn_compile_options tarn_compile_defaults(void) {
  return (tarn_compile_options){.numerics = TARN_RULE_REASSOC, .rtol = TARN_RTOL};
}

/* ---- load ---- */
tarn_model_options comp_model_options(tarn_ctx *cx, const tarn_compile_options *o) {
  tarn_shape_binding *shape = TARN_ARRAY(cx, tarn_shape_binding, o->shapes.n + 1);
  tarn_value_binding *set = TARN_ARRAY(cx, tarn_value_binding, o->sets.n + 1);
  for (uint32_t i = 0; i < o->shapes.n; i++)
    shape[i] = tarn_shape_binding_parse(cx, o->shapes.text[i]);
  for (uint32_t i = 0; i < o->sets.n; i++) set[i] = tarn_value_binding_parse(cx, o->sets.text[i]);
  return (tarn_model_options){.nshape = o->shapes.n,
                              .shape = shape,
                              .nset = o->sets.n,
                              .set = set,
                              .nlast = o->outputs.n,
                              .last = o->outputs.text,
                              .def = o->def,
                              .allow_copies = o->allow_copies};
}
const tarn_source *comp_source(tarn_ctx *cx, const tarn_compile_options *o) {
  if (o->onnx) return tarn_source_onnx(cx, o->onnx, o->onnx_n, o->model);
  return tarn_source_open(cx, o->model, o->text, o->text_n);
}
tarn_program *tarn_compile_import(tarn_lang *L, const tarn_compile_options *o,
                                  tarn_model_report *r) {
  tarn_model_options m = comp_model_options(tarn_lang_ctx(L), o);
  return tarn_source_load(L, comp_source(tarn_lang_ctx(L), o), &m, r);
}
const char *tarn_compile_key(tarn_ctx *cx, const tarn_compile_options *o) {
  tarn_model_options m = comp_model_options(cx, o);
  return tarn_comprehension_key(cx, o->text, o->text_n, o->model, &m);
}

static const char *prefix_of(tarn_ctx *cx, const tarn_compile_options *o) {
  if (!o->name) return tarn_lower_name(cx, o->model);
  if (!tarn_lower_name_ok(o->name))
    tarn_raise(cx, TARN_USAGE,
               "--name %s: a letter, then letters, digits and _ are expected; not tarn or tarn_…",
               o->name);
  return o->name;
}
static bool apart(tarn_ctx *cx, const tarn_target *t, const char *word) {
  if (!word || !strcmp(word, "object")) return false;
  if (strcmp(word, "file") != 0)
    tarn_raise(cx, TARN_USAGE, "--constants %s: object or file is expected", word);
  if (!t->apart) tarn_raise(cx, TARN_USAGE, "--constants file: not of a %s's program", t->name);
  return true;
}
/* Options, before anything is made. */
tarn_compiled *comp_begin(tarn_lang *L, const tarn_compile_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_compiled *c = TARN_NEW(cx, tarn_compiled);
  if (!o->model) tarn_raise(cx, TARN_USAGE, "compile: no model is given");
  if (!o->hw) tarn_raise(cx, TARN_USAGE, "compile: no description of hardware is given");
  *c = (tarn_compiled){.L = L, .o = o, .target = tarn_target_of_program(cx, o->hw)};
  c->emission = tarn_target_emission(cx, c->target, c->target->program, o->emit);
  c->apart = apart(cx, c->target, o->constants);
  c->name = prefix_of(cx, o);
  tarn_compile_options *with = tarn_copy(cx, o, sizeof *o);
  if (o->numerics == TARN_RULE_EXACT) with->hw = tarn_hw_exact(cx, o->hw);
  with->hw = tarn_compile_units(L, with);
  c->o = with;
  comp_room_refuse(c);
  return c;
}
void comp_import(tarn_compiled *c, const tarn_source *s) {
  double t = tarn_now();
  tarn_progress(tarn_lang_ctx(c->L), "reading the model", 0, 0, NULL);
  tarn_model_options m = comp_model_options(tarn_lang_ctx(c->L), c->o);
  c->program = tarn_source_load(c->L, s, &m, &c->import);
  comp_dump_program(c);
  c->seconds.import = tarn_now() - t;
}
/* The options' limit, within the context's. */
static void limit(tarn_ctx *cx, const tarn_compile_options *o) {
  tarn_limit l = tarn_limit_get(cx);
  if (!l.asked) l.asked = o->interrupted, l.user = o->user;
  tarn_limit_set(cx, l);
  if (o->seconds > 0) tarn_limit_until(cx, tarn_now() + o->seconds);
}
tarn_compiled *tarn_compile_load(tarn_lang *L, const tarn_compile_options *o) {
  limit(tarn_lang_ctx(L), o);
  tarn_compiled *c = comp_begin(L, o);
  comp_import(c, comp_source(tarn_lang_ctx(L), o));
  return c;
}

/* ---- time ---- */
_Noreturn static void no_time(const tarn_compiled *c) {
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  const char *limit = c->o->seconds > 0 ? tarn_format(cx, "%g seconds", c->o->seconds)
                                        : "the limit of time"; /* of the caller's context */
  tarn_raise(cx, TARN_NO_RESULT, "%s: no program within %s", c->o->model, limit);
}
void comp_go_on(const tarn_compiled *c) {
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  if (!tarn_late(cx)) return;
  if (tarn_interrupted(cx)) tarn_raise(cx, TARN_NO_RESULT, "%s: interrupted", c->o->model);
  no_time(c);
}
/* From now on there is this share of what is left of the limit, `whole`; of a program of several
 * sizes its part of that. */
static void allow(const tarn_compiled *c, tarn_limit whole, double share) {
  double now = tarn_now();
  if (whole.until <= 0) return;
  if (c->left) share /= c->parts;
  whole.until = now + share * tarn_fmax(0, whole.until - now);
  tarn_limit_set(tarn_lang_ctx(c->L), whole);
}

/* ---- saturate ---- */
/* Nests are marked with the units of accelerators that compute their products. */
static void mark_units(tarn_ruleset *rs, const tarn_hw *hw) {
  const tarn_machines m = tarn_hw_machines(hw);
  for (uint32_t i = 0; i < m.n; i++)
    if (!tarn_hw_traits_of(m.hw[i]).any_nest) tarn_ruleset_derive_units(rs, m.hw[i]);
}
tarn_ruleset *comp_rules(const tarn_compiled *c, bool own) {
  const tarn_compile_options *o = c->o;
  tarn_ruleset *rs = tarn_ruleset_new(c->L);
  if (!o->only_rules.n) tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  if (!o->only_rules.n && o->hw) mark_units(rs, o->hw);
  for (uint32_t i = 0; i < o->only_rules.n; i++) tarn_ruleset_add(rs, o->only_rules.text[i]);
  for (uint32_t i = 0; i < o->rules.n && own; i++) tarn_ruleset_add(rs, o->rules.text[i]);
  for (uint32_t i = 0; i < o->no_rules.n; i++) tarn_ruleset_drop(rs, o->no_rules.text[i]);
  return rs;
}
typedef struct watch {
  tarn_buf phases;
  const tarn_compile_options *o;
} watch;
static void after_iteration(void *user, tarn_egraph *g, const tarn_eg_iteration *it) {
  (void)g;
  comp_dump_iteration(&((watch *)user)->phases, it);
}
tarn_sat_options comp_saturation(const tarn_compiled *c) {
  const tarn_compile_options *o = c->o;
  tarn_sat_options so = tarn_sat_defaults();
  so.numerics = o->numerics;
  so.rtol = o->rtol;
  so.hw = o->hw;
  so.surface_first = true;
  if (o->nodes) so.max_nodes = so.max_own_nodes = o->nodes;
  if (o->iters) so.max_iterations = o->iters;
  so.reasons = TARN_EG_REASONS_NONE;
  return so;
}
static void saturate(tarn_compiled *c, const tarn_ruleset *rules, unsigned dump) {
  const tarn_compile_options *o = c->o;
  double t = tarn_now();
  watch w = {{.cx = tarn_lang_ctx(c->L)}, o};
  tarn_sat_options so = comp_saturation(c);
  bool asked = o->rules.n || o->only_rules.n; /* the report says which are in the program */
  so.reasons = o->explain || o->reasons || asked ? TARN_EG_REASONS_ALL : TARN_EG_REASONS_NONE;
  comp_stand_ins(c, &so);
  so.proof_of_program = true;
  so.after = dump & TARN_DUMP_PHASES ? after_iteration : NULL;
  so.user = &w;
  c->saturation = tarn_saturate(c->program, rules, &so);
  c->rewriting = tarn_sat_result(c->saturation);
  if (so.after) comp_dump_rules(&w.phases, c->rewriting);
  if (so.after) comp_dump(c, TARN_DUMP_PHASES, &w.phases);
  c->seconds.saturate += tarn_now() - t;
}

/* ---- select ---- */
static bool constant_class(void *user, const tarn_egraph *g, uint32_t cls) {
  (void)g;
  return tarn_sat_is_const(user, cls);
}
static bool left_out(void *user, uint32_t node) { return tarn_sat_left_out(user, node); }
static uint32_t class_of(void *user, tarn_term t) { return tarn_sat_class(user, t); }
static uint32_t type_class(void *user, uint32_t cls) { return tarn_sat_type(user, cls); }

/* What kernels of the host copy, which the bound has as far as it is certain. */
static void price_copies(tarn_compiled *c) {
  double t = tarn_kprog_copy_seconds(c->kernels, tarn_kprog_copies(c->kernels));
  c->choice.price += t;
  c->choice.tree_price += t;
}
/* Programs of several sizes share the steps of one: each takes a part of what is left. */
static uint64_t steps_of(const tarn_compiled *c) {
  enum { LEAST = 3000000 };
  if (!c->left) return TARN_EXTRACT_STEPS;
  return *c->left / c->parts > LEAST ? *c->left / c->parts : LEAST;
}
/* 0: all that it wants. A time limit leaves half of it to what follows the selection. */
static double seconds_left(const tarn_ctx *cx) {
  double until = tarn_limit_get(cx).until;
  return until > 0 ? tarn_fmax(1e-3, (until - tarn_now()) / 2) : 0;
}
/* few: one storage order of a buffer, so that there is little to price. */
static tarn_extraction *choose(tarn_compiled *c, tarn_kgraph_report *report, tarn_buf *graph,
                               bool few) {
  const tarn_compile_options *o = c->o;
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  tarn_kgraph_input *in = TARN_NEW(cx, tarn_kgraph_input);
  tarn_kgraph_options *ko = TARN_NEW(cx, tarn_kgraph_options);
  uint32_t n = tarn_sat_roots(c->saturation);
  uint32_t *root = TARN_ARRAY(cx, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) root[i] = tarn_sat_root(c->saturation, i);
  *in = (tarn_kgraph_input){.L = c->L,
                            .g = tarn_sat_egraph(c->saturation),
                            .type_of = type_class,
                            .is_constant = constant_class,
                            .left_out = left_out,
                            .class_of = class_of,
                            .user = c->saturation,
                            .nroot = n,
                            .root = root,
                            .program = c->program,
                            .whole = comp_whole(c)};
  in->nplace = comp_in_place(c, &in->place);
  *ko = (tarn_kgraph_options){.hw = o->hw,
                              .price = o->price,
                              .solver = tarn_target_solver,
                              .solvers = c->solvers,
                              .threads = o->threads,
                              .strict = o->numerics == TARN_RULE_EXACT,
                              .max_views = few,
                              .max_orders = few,
                              .method = TARN_SEL_EXACT,
                              .seconds = seconds_left(tarn_lang_ctx(c->L)),
                              .steps = steps_of(c),
                              .ngiven = o->ngiven,
                              .given = comp_given(c),
                              .family = c->family,
                              .at = c->at,
                              .graph = comp_dumps(c, TARN_DUMP_GRAPH) ? graph : NULL};
  return tarn_extract_choose(in, ko, report);
}
/* ---- with the caller's rules and without ---- */
/* More rules never make a program worse. Of the same limits, those of the caller take a part that
 * the others then lack, so the program is also made without them, and the cheaper one stays. A
 * kernel that several attempts have is scheduled once. */
typedef struct attempt {
  tarn_compiled *c;
  const tarn_ruleset *rules;
  tarn_limit whole; /* of which it has the share */
  double share;
  unsigned dump;
  bool as_imported; /* whatever is in its way, there is no better reason than the time */
  bool done;
  /* what c has of it then */
  tarn_saturation *saturation;
  const tarn_sat_report *rewriting;
  tarn_kgraph_report *choice;
  tarn_extraction *extraction;
  tarn_buf graph;
} attempt;

static void make_attempt(tarn_ctx *cx, void *arg) {
  attempt *a = arg;
  tarn_compiled *c = a->c;
  a->choice = TARN_NEW(cx, tarn_kgraph_report), a->graph.cx = cx;
  allow(c, a->whole, a->share / 2);
  saturate(c, a->rules, a->dump);
  a->saturation = c->saturation, a->rewriting = c->rewriting;
  allow(c, a->whole, a->share);
  comp_go_on(c);
  double t = tarn_now();
  a->extraction = choose(c, a->choice, &a->graph, a->as_imported);
  if (c->left) *c->left -= *c->left < a->choice->steps ? *c->left : a->choice->steps;
  c->seconds.extract += tarn_now() - t;
  a->done = true;
  tarn_keep(cx, a->saturation);
}
static void free_saturation(void *s) { tarn_sat_free(s); }
/* Only the limit of time may be in the way. */
static void run_attempt(attempt *a) {
  tarn_ctx *cx = tarn_lang_ctx(a->c->L);
  tarn_status st = tarn_protect(cx, make_attempt, a);
  bool late = st == TARN_NO_RESULT && tarn_late(cx) && !tarn_interrupted(cx);
  tarn_limit_set(cx, a->whole);
  if (st && !late && !(a->as_imported && st == TARN_BAD_INPUT)) tarn_reraise(cx, st);
  if (!st) tarn_defer(cx, free_saturation, a->saturation);
}
static bool rules_did_something(const attempt *a) {
  const tarn_sat_report *s = a->rewriting;
  for (uint32_t i = 0; i < s->nrule; i++)
    if (s->rule[i].count.unions && tarn_ruleset_at(a->rules, s->rule[i].number).asked) return true;
  return false;
}
static void adopt(tarn_compiled *c, const attempt *a, const attempt *full) {
  c->saturation = a->saturation, c->extraction = a->extraction;
  c->counted = a->choice, c->choice = *a->choice;
  c->rewriting = full->done ? full->rewriting : a->rewriting;
  c->price_with_rules = full->done ? full->choice->price : INFINITY;
  c->without_rules = a != full;
  if (a->graph.n) comp_dump(c, TARN_DUMP_GRAPH, (tarn_buf *)&a->graph);
  if (!c->without_rules) return;
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  if (!c->o->rules.n)
    tarn_warn(cx, "the program is as it was imported: nothing better was found within the limit "
                  "of time");
  else if (full->done)
    tarn_warn(cx, "the program without the rules of --rules is chosen: %.4g ms, with them %.4g ms",
              1e3 * a->choice->price, 1e3 * full->choice->price);
  else
    tarn_warn(cx, "the program without the rules of --rules is chosen: with them there is none "
                  "within the limit of time");
}
static void choose_whole(tarn_compiled *c) {
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  tarn_limit whole = tarn_limit_get(cx);
  tarn_solver **shared = c->solvers;
  bool both = c->o->rules.n && !c->o->only_rules.n && !c->family;
  comp_go_on(c);
  if (!shared) c->solvers = TARN_ARRAY(cx, tarn_solver *, TARN_EXTRACT_SOLVERS);
  if (!c->rules) c->rules = comp_rules(c, true);
  comp_written(c);
  attempt full = {.c = c,
                  .rules = c->rules,
                  .whole = whole,
                  .share = both ? 0.4 : 0.6,
                  .dump = c->o->sink ? c->o->dump : 0},
          plain = full;
  run_attempt(&full);
  if (both && (!full.done || rules_did_something(&full))) {
    if (!c->plain) c->plain = comp_rules(c, false);
    plain.rules = c->plain, plain.share = 0.7, plain.dump = 0;
    run_attempt(&plain);
  }
  if (!full.done && !plain.done) { /* the program as it was imported */
    plain.rules = tarn_ruleset_new(c->L), plain.share = 0.7, plain.dump = 0;
    plain.as_imported = true;
    run_attempt(&plain);
  }
  if (!full.done && !plain.done) no_time(c);
  c->solvers = shared;
  bool less = plain.done && (!full.done || plain.choice->price < full.choice->price);
  adopt(c, less ? &plain : &full, &full);
}
void comp_choose(tarn_compiled *c) {
  if (!c->o->nram) comp_fold(c); /* what lives at once is seen in all of the program */
  choose_whole(c);
}
static void make_program(tarn_compiled *c) {
  c->kernels = tarn_extract_program(c->extraction, &c->picks);
  c->choice = *c->counted;
}
/* Where equal layers are not computed alike after all, each is looked at. */
static void unfold(tarn_compiled *c) {
  if (!c->layers || comp_unfold(c)) return;
  tarn_sat_free(c->saturation);
  c->layers = NULL;
  choose_whole(c);
  make_program(c);
}
static const tarn_domain *ranges_of(const tarn_compiled *c) {
  tarn_domain *range = TARN_ARRAY(tarn_lang_ctx(c->L), tarn_domain, c->program->nin + 1);
  tarn_input_domains(c->program, tarn_opaque_index, range);
  return range;
}
void comp_take(tarn_compiled *c) {
  double t = tarn_now();
  make_program(c);
  unfold(c);
  c->extraction = NULL;
  c->range = ranges_of(c);
  if (tarn_hw_traits_of(c->o->hw).hosted) price_copies(c);
  c->seconds.extract += tarn_now() - t;
  comp_in_place_made(c);
  comp_given_used(c);
  comp_refuse_host(c);
  if (comp_dumps(c, TARN_DUMP_PLAN)) comp_plan(c);
  comp_dump_kernels(c);
}
tarn_planner *comp_planner(const tarn_compiled *c) {
  return tarn_planner_new(c->L, c->o->numerics != TARN_RULE_EXACT, NULL);
}
void comp_plan(tarn_compiled *c) { tarn_kprog_plan(comp_planner(c), c->kernels); }
static uint32_t chosen(void *picks, uint32_t cls) { return tarn_extract_pick(picks, cls); }
void tarn_compile_explain(tarn_compiled *c, tarn_buf *out) {
  for (uint32_t i = 0; i < c->kernels->nout; i++) {
    uint32_t root = tarn_sat_root(c->saturation, i);
    tarn_sat_explain(c->saturation, i, tarn_sat_term(c->saturation, root, chosen, c->picks), out);
  }
}

/* Of rules that are steps of the program and were asked for: are they proved? */
static void trust(tarn_compiled *c) {
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  uint32_t n = tarn_ruleset_count(c->rules);
  c->trust = TARN_ARRAY(cx, tarn_rule_trust, n + 1);
  c->doubt = TARN_ARRAY(cx, const char *, n + 1);
  for (uint32_t i = 0; i < n; i++)
    if (c->uses[i].steps && tarn_ruleset_at(c->rules, i).asked)
      c->trust[i] = tarn_rule_trusted(c->rules, i, &c->doubt[i]);
}
/* Which rules are steps of the chains from the outputs to what was chosen. What a user's rules did
 * there is evaluated, on values that are random, rise or fall. */
static void count_steps(tarn_compiled *c) {
  const tarn_compile_options *o = c->o;
  bool asked = o->rules.n || o->only_rules.n;
  tarn_proof_options replay = {.samples = 3, .max_work = 40000000, .opaque = tarn_opaque_eval};
  if (!o->explain && !o->reasons && !asked) return;
  c->uses = TARN_ARRAY(tarn_lang_ctx(c->L), tarn_sat_use, tarn_ruleset_count(c->rules) + 1);
  for (uint32_t i = 0; i < c->kernels->nout; i++) {
    uint32_t root = tarn_sat_root(c->saturation, i);
    tarn_term t = tarn_sat_term(c->saturation, root, chosen, c->picks);
    tarn_sat_uses(c->saturation, i, t, asked ? &replay : NULL, c->uses);
  }
  if (asked) trust(c);
  if (tarn_interrupted(tarn_lang_ctx(c->L))) comp_go_on(c);
}
void tarn_compile_optimise(tarn_compiled *c) {
  comp_choose(c);
  comp_fit(c);
  comp_take(c);
  comp_go_on(c);
  count_steps(c);
}

/* ---- emit ---- */
tarn_lower_options comp_lower_options(const tarn_compiled *c, const char *dir) {
  return (tarn_lower_options){.emit = c->emission->emit,
                              .dir = dir,
                              .name = c->name,
                              .contract = c->o->numerics != TARN_RULE_EXACT,
                              .opt = 3,
                              .apart = c->apart,
                              .here = c->o->here};
}
static void emit_into(tarn_compiled *c, const char *dir) {
  const tarn_compile_options *o = c->o;
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  double t = tarn_now();
  tarn_buf program = {.cx = cx};
  tarn_buf chain = {.cx = cx};
  tarn_buf offload = {.cx = cx};
  c->memory = c->target->memory(c->kernels, c->target->align);
  comp_plan(c);
  tarn_kprog_print(c->kernels, &program);
  tarn_write_file(cx, tarn_format(cx, "%s/program.tarn", dir), program.p, program.n);
  tarn_lower_options lo = comp_lower_options(c, dir);
  lo.link = comp_written_files(c->kernels, &lo.nlink);
  c->target->emit(c->kernels, c->memory, &lo);
  const comp_offload *f = comp_offload_of(c, dir);
  c->seconds.lower = tarn_now() - t;
  if (f && comp_dumps(c, TARN_DUMP_OFFLOAD)) comp_offload_text(f, &offload);
  comp_dump(c, TARN_DUMP_OFFLOAD, &offload);
  if (o->explain) tarn_compile_explain(c, &chain);
  comp_report(c, f);
  tarn_write_file(cx, tarn_format(cx, "%s/report.json", dir), c->report, c->report_n);
  comp_finish(c, dir, &chain);
}
static void emit(tarn_ctx *cx, void *arg) {
  tarn_compiled *c = arg;
  emit_into(c, comp_workshop(cx, c->o));
}
void tarn_compile_emit(tarn_compiled *c) {
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  tarn_status st = tarn_protect(cx, emit, c);
  if (st != TARN_OK) tarn_reraise(cx, st);
}

/* The workshop first: whether files can be written there is known before the work is done. */
static void all(tarn_ctx *cx, void *arg) {
  tarn_compiled **c = arg;
  const tarn_compile_options *o = (*c)->o;
  const char *dir = comp_workshop(cx, o);
  const tarn_source *s = comp_source(cx, o);
  comp_sizes *sizes = comp_sizes_of(cx, o, s);
  if (sizes) {
    if (o->nram) tarn_raise(cx, TARN_USAGE, "--ram: a budget of several sizes: bind each to one");
    *c = comp_compile_sizes(*c, s, sizes, dir);
    return;
  }
  comp_import(*c, s);
  tarn_compile_optimise(*c);
  emit_into(*c, dir);
}
const tarn_compiled *tarn_compile(tarn_lang *L, const tarn_compile_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_limit had = tarn_limit_get(cx);
  limit(cx, o);
  tarn_compiled *c = comp_begin(L, o);
  tarn_status st = tarn_protect(cx, all, &c);
  tarn_progress_end(cx);
  tarn_limit_set(cx, had);
  if (st != TARN_OK) tarn_reraise(cx, st);
  return c;
}

tarn_loaded *tarn_compile_loaded(tarn_lang *L, const tarn_compile_options *o) {
  tarn_compile_options in_memory = *o;
  in_memory.dir = NULL;
  in_memory.emit = "so";
  const tarn_compiled *c = tarn_compile(L, &in_memory);
  const tarn_artefact *so = c->artefact;
  while (so < c->artefact + c->nartefact && strcmp(so->name, "model.so") != 0) so++;
  if (so == c->artefact + c->nartefact)
    tarn_raise(tarn_lang_ctx(L), TARN_USAGE, "compile: %s has no code for this process",
               o->hw->name);
  return tarn_load_bytes(tarn_lang_ctx(L), so->data, so->n, o->model);
}

const tarn_kprog *tarn_compile_kernels(tarn_lang *L, const tarn_hw *hw, const tarn_hw *here,
                                       const tarn_plan_choice *k, uint32_t n, bool exact,
                                       unsigned emits, const char *dir) {
  const tarn_target *t = tarn_target_of(tarn_lang_ctx(L), hw);
  tarn_kprog *p = tarn_plan_program(L, hw, k, n);
  tarn_kprog_plan(tarn_planner_new(L, !exact, NULL), p);
  tarn_lower_options o = {
      .emit = emits, .dir = dir, .name = "kernels", .contract = !exact, .opt = 3, .here = here};
  t->emit(p, t->memory(p, t->align), &o);
  return p;
}
