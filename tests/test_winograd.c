/* rules/winograd.rules: the convolutions it applies to, equality of the result, and the
 * bound of its error in f32 against real arithmetic. */
#include "model/model.h"
#include "plan/work.h"
#include "rules/rules.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include "tests/context.h"

#define RULES 4
static const char *const rules[RULES] = {"winograd-tiles-2", "winograd-tiles-4", "winograd-rows-2",
                                         "winograd-rows-4"};
/* The same for two taps a dim. */
static const char *const two_taps[RULES] = {"winograd-tiles-2-of-2", "winograd-tiles-4-of-2",
                                            "winograd-rows-2-of-2", "winograd-rows-4-of-2"};
static const double bounds[RULES] = {5e-5, 2e-4, 5e-5, 2e-4};

/* takes: by tiles of 2x2, by tiles of 4x4 (bits 0 and 1). */
typedef struct conv {
  const char *name, *text;
  unsigned takes;
} conv;
static const conv convs[] = {
    {"padded",
     "in x f32 1,5,8,8\nrand w 4,5,3,3\nrand b 4\nnode Conv c x w b -> t : pads=1,1,1,1\nnode Relu "
     "r t -> y\nout y\n",
     3},
    {"not padded", "in x f32 2,3,10,6\nrand w 4,3,3,3\nnode Conv c x w -> y\nout y\n", 3},
    {"tiles pass the end, a residual is added",
     "in x f32 1,6,7,9\nrand w 6,6,3,3\nnode Conv c x w -> t : pads=1,1,1,1\nnode Add a t x -> "
     "u\nnode Relu r u -> y\nout y\n",
     3},
    {"padded unevenly, two blocks of channels",
     "in x f32 1,32,6,5\nrand w 17,32,3,3\nnode Conv c x w -> y : pads=2,0,1,1\nout y\n", 3},
    {"two blocks of results",
     "in x f32 1,9,6,5\nrand w 32,9,3,3\nnode Conv c x w -> y : pads=1,1,1,1\nout y\n", 3},
    {"in groups",
     "in x f32 1,6,6,6\nrand w 8,3,3,3\nnode Conv c x w -> y : pads=1,1,1,1 group=2\nout y\n", 3},
    {"three rows of results",
     "in x f32 1,4,3,7\nrand w 3,4,3,3\nnode Conv c x w -> y : pads=1,1,1,1\nout y\n", 1},
    {"one row of results", "in x f32 1,4,3,9\nrand w 3,4,3,3\nnode Conv c x w -> y\nout y\n", 0},
    {"steps of two",
     "in x f32 1,4,9,9\nrand w 3,4,3,3\nnode Conv c x w -> y : strides=2,2\nout y\n", 0},
    {"dilated", "in x f32 1,4,9,9\nrand w 3,4,3,3\nnode Conv c x w -> y : dilations=2,2\nout y\n",
     0},
    {"five by five", "in x f32 1,4,9,9\nrand w 3,4,5,5\nnode Conv c x w -> y\nout y\n", 0},
    {"depthwise",
     "in x f32 1,4,8,8\nrand w 4,1,3,3\nnode Conv c x w -> y : pads=1,1,1,1 group=4\nout y\n", 0},
    {"weights that are an input",
     "in x f32 1,4,8,8\nin w f32 3,4,3,3\nnode Conv c x w -> y\nout y\n", 0},
    {"two by two",
     "in x f32 1,5,9,8\nrand w 4,5,2,2\nrand b 4\nnode Conv c x w b -> t\nnode Relu r t -> y\nout "
     "y\n",
     3},
    {"two by two, padded unevenly",
     "in x f32 2,3,5,6\nrand w 17,3,2,2\nnode Conv c x w -> y : pads=1,0,0,1\nout y\n", 3},
    {"two by two, three columns of results",
     "in x f32 1,4,7,4\nrand w 3,4,2,2\nnode Conv c x w -> y\nout y\n", 1},
    {"two by two, steps of two",
     "in x f32 1,4,8,8\nrand w 3,4,2,2\nnode Conv c x w -> y : strides=2,2\nout y\n", 0},
    {"two by three", "in x f32 1,4,8,8\nrand w 3,4,2,3\nnode Conv c x w -> y\nout y\n", 0},
    {"transposed",
     "in x f32 1,6,5,8\nrand w 6,7,4,4\nrand b 7\nnode ConvTranspose c x w b -> t : strides=2,2 "
     "pads=1,1,1,1\n"
     "node Relu r t -> y\nout y\n",
     3},
    {"transposed, a batch and not padded",
     "in x f32 2,3,4,4\nrand w 3,18,4,4\nnode ConvTranspose c x w -> y : strides=2,2\nout y\n", 3},
    {"transposed, three places of each part",
     "in x f32 1,6,3,3\nrand w 6,4,4,4\nnode ConvTranspose c x w -> y : strides=2,2 "
     "pads=1,1,1,1\nout y\n",
     1},
    {"transposed, three taps of each part",
     "in x f32 1,5,4,6\nrand w 5,3,6,6\nnode ConvTranspose c x w -> y : strides=2,2 "
     "pads=2,2,2,2\nout y\n",
     3},
    {"transposed in threes",
     "in x f32 1,5,4,5\nrand w 5,3,6,6\nnode ConvTranspose c x w -> y : strides=3,3 "
     "pads=1,1,2,2\nout y\n",
     3},
    {"many channels",
     "in x f32 1,64,12,12\nrand w 12,64,3,3\nrand b 12\nnode Conv c x w b -> y : pads=1,1,1,1\nout "
     "y\n",
     3},
};

enum { ALL = -1, NONE = -2, FAR = INT32_MAX };
static tarn_saturation *saturate(tarn_program *p, int only) {
  tarn_ruleset *rs = tarn_ruleset_new(p->L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  for (int i = 0; i < RULES; i++)
    if (only != ALL && i != only)
      tarn_ruleset_drop(rs, rules[i]), tarn_ruleset_drop(rs, two_taps[i]);
  tarn_sat_options o = tarn_sat_defaults();
  o.numerics = TARN_RULE_APPROX;
  o.reasons = TARN_EG_REASONS_ALL;
  tarn_saturation *s = tarn_saturate(p, rs, &o);
  kit_prove(s, rs);
  ck_assert_str_eq(tarn_sat_result(s)->stop, "saturated");
  return s;
}
static void run(void (*fn)(tarn_ctx *cx, void *arg), const conv *c) {
  in_context_of(c->name, fn, c);
}

/* ---------------------------------------------------------------- classes */

static void classes(tarn_ctx *cx, void *arg) {
  const conv *c = arg;
  kit_classes k = {.s = saturate(kit_model(tarn_lang_new(cx), c->text), ALL), .seed = 11};
  for (int i = 0; i < RULES; i++)
    ck_assert_msg((kit_fired(k.s, rules[i]) || kit_fired(k.s, two_taps[i])) ==
                      (c->takes >> (i & 1) & 1),
                  "%s: %s", c->name, rules[i]);
  kit_check(&k);
}
START_TEST(test_classes) { run(classes, &convs[_i]); }
END_TEST

/* ---------------------------------------------------------------- the bound */

typedef struct chain {
  kit_classes k;
  tarn_binding *in;
  uint32_t nin;
  tarn_term *term;
  uint32_t *away; /* by class */
  bool found;
} chain;

/* Does a node transform results back: a kernel whose last stage multiplies three operands? */
static bool is_tiles(const chain *c, uint32_t node) {
  tarn_eg_node y = tarn_eg_node_at(c->k.g, node);
  if (y.op != TARN_OP_NEST && y.op != TARN_OP_COMPUTE) return false;
  uint32_t fn = tarn_payload_get(c->k.L, y.payload)->id;
  const tarn_nest *k = y.op == TARN_OP_NEST ? tarn_nest_get(c->k.L, fn) : NULL;
  return tarn_fn_get(c->k.L, k ? k->stage[k->nstage - 1u].fn : fn)->nops == 3;
}
/* How many views a node is away from one that does. */
static uint32_t away(const chain *c, uint32_t node) {
  if (is_tiles(c, node)) return 0;
  tarn_eg_node x = tarn_eg_node_at(c->k.g, node);
  uint32_t kid = x.op == TARN_OP_VIEW ? c->away[tarn_eg_find(c->k.g, x.kids[0])] : FAR;
  return kid == FAR ? FAR : kid + 1;
}
static void find_tiles(chain *c) {
  uint32_t n = tarn_eg_id_count(c->k.g);
  c->away = TARN_ARRAY(tarn_lang_ctx(c->k.L), uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) c->away[i] = FAR;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t x = tarn_eg_next_node(c->k.g, i, TARN_NONE); x != TARN_NONE;
           x = tarn_eg_next_node(c->k.g, i, x))
        if (away(c, x) < c->away[i]) c->away[i] = away(c, x), more = true;
  }
}
/* The term that the rule made: what is the fewest views away from tiles, and otherwise the first of
 * each class. */
static tarn_term term_of(chain *c, uint32_t cls) {
  tarn_egraph *g = c->k.g;
  cls = tarn_eg_find(g, cls);
  if (c->term[cls] != TARN_NONE) return c->term[cls];
  uint32_t pick = TARN_NONE;
  for (uint32_t n = tarn_eg_next_node(g, cls, TARN_NONE); n != TARN_NONE;
       n = tarn_eg_next_node(g, cls, n))
    if (pick == TARN_NONE || away(c, n) < away(c, pick)) pick = n;
  c->found |= is_tiles(c, pick);
  tarn_eg_node x = tarn_eg_node_at(g, pick);
  uint32_t op = x.op, payload = x.payload, n = x.n,
           *kids = tarn_copy(tarn_lang_ctx(c->k.L), x.kids, (x.n + 1u) * sizeof *x.kids);
  tarn_term *kid = TARN_ARRAY(tarn_lang_ctx(c->k.L), tarn_term, n + 1u);
  for (uint32_t i = 0; i < n; i++) kid[i] = term_of(c, kids[i]);
  return c->term[cls] = tarn_mk(c->k.L, op, payload, kid, n);
}

/* What rule i makes of the program. */
static tarn_term made_by(tarn_program *p, int i) {
  chain x = {.k = {.s = saturate(p, i)}};
  x.k.g = tarn_sat_egraph(x.k.s), x.k.L = p->L;
  x.term = TARN_ARRAY(tarn_lang_ctx(p->L), tarn_term, tarn_eg_id_count(x.k.g) + 1);
  memset(x.term, 0xff, tarn_eg_id_count(x.k.g) * sizeof *x.term);
  find_tiles(&x);
  tarn_term t = term_of(&x, tarn_sat_root(x.k.s, 0));
  ck_assert_msg(x.found, "not what the rule made");
  return t;
}
static void error_of(tarn_ctx *cx, void *arg) {
  const conv *c = arg;
  for (int i = 0; i < RULES; i++) {
    if (!(c->takes >> (i & 1) & 1)) continue;
    tarn_program *p = kit_model(tarn_lang_new(cx), c->text);
    tarn_binding in[2];
    tarn_tensor *wide, *made;
    uint64_t seed = 5 + (uint64_t)i;
    for (uint32_t j = 0; j < p->nin; j++)
      in[j] =
          (tarn_binding){p->in[j].name, kit_values(cx, tarn_type_get(p->L, p->in[j].type), &seed)};
    tarn_term t = made_by(p, i);
    tarn_eval(p->L, &p->out[0].term, 1, in, p->nin, TARN_WIDE, NULL, &wide);
    tarn_eval(p->L, &t, 1, in, p->nin, TARN_STRICT, NULL, &made);
    double d = kit_distance(wide, made);
    ck_assert_msg(d <= bounds[i], "%s, %s: %g", c->name, rules[i], d);
  }
}
START_TEST(test_bound) { run(error_of, &convs[_i]); }
END_TEST

/* Without approx, nothing of it. */
static void left_out(tarn_ctx *cx, void *arg) {
  const conv *c = arg;
  tarn_program *p = kit_model(tarn_lang_new(cx), c->text);
  tarn_ruleset *rs = tarn_ruleset_new(p->L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  o.reasons = TARN_EG_REASONS_ALL;
  tarn_saturation *s = tarn_saturate(p, rs, &o);
  kit_prove(s, rs);
  for (int i = 0; i < RULES; i++) ck_assert(!kit_fired(s, rules[i]) && !kit_fired(s, two_taps[i]));
}
START_TEST(test_left_out) { run(left_out, &convs[0]); }
END_TEST

/* ---------------------------------------------------------------- compiled */

/* All that the small matrices weigh is in the register tile, where lower/ does it dim by dim; in
 * one stage at least: the rules may walk a narrow image itself instead of its tiles' columns. */
static void tiles_are_whole(tarn_lang *L, const tarn_kprog *p) {
  uint32_t found = 0;
  for (uint32_t k = 0; k < p->nker; k++)
    for (uint32_t i = 0; p->ker[k].kind == TARN_K_NEST && i < p->ker[k].sched->nstage; i++) {
      const tarn_nest *n = tarn_nest_get(L, p->ker[k].nest);
      const tarn_stage_sched *s = &p->ker[k].sched->stage[i];
      bool whole = tarn_fn_get(L, n->stage[i].fn)->nops == 3;
      for (uint32_t l = 0; l < s->nlevel; l++)
        if (s->level[l].dim >= n->depth + n->stage[i].nown)
          whole &= l >= s->acc && s->level[l].kind == TARN_UNROLL;
      found += whole;
    }
  ck_assert_uint_ge(found, 1);
}

/* Every matrix is known to what is measured, as it lies in the program. */
static void numbers_are_known(tarn_lang *L, const tarn_kprog *p) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_ksig *k = p->ker[i].sig;
    uint64_t m = k ? tarn_ksig_matrices(L, k) : 0;
    ck_assert(!k || tarn_ksig_complete(L, k));
    for (; m; m &= m - 1, found++) {
      uint32_t j = (uint32_t)__builtin_ctzll(m);
      const tarn_buffer *b = &p->buf[p->ker[i].in[j]];
      tarn_tensor *t;
      tarn_eval(L, &b->term, 1, NULL, 0, TARN_STRICT, NULL, &t);
      bool plain = tarn_layout_elems(&b->layout) == tarn_tensor_count(t);
      for (int64_t e = 0, at[2]; plain && e < tarn_tensor_count(t); e++) {
        at[0] = e / t->dim[1], at[1] = e % t->dim[1];
        ck_assert(k->in_numbers[j][tarn_layout_at(&b->layout, at)] == ((const float *)t->data)[e]);
      }
    }
  }
  ck_assert_uint_ge(found, 2);
}

/* Each form alone, as code: lanes, blocks and what passes the end. */
static void compiled(tarn_ctx *cx, void *arg) {
  const conv *c = arg;
  tarn_buf text = pipeline_host(cx);
  for (int i = 0; i < RULES; i++) {
    if (!(c->takes >> (i & 1) & 1)) continue;
    tarn_program *p = kit_model(tarn_lang_new(cx), c->text);
    tarn_term direct = p->out[0].term;
    p->out[0].term = made_by(p, i);
    pipeline r = {.program = p,
                  .hw = tarn_hw_parse(p->L, tarn_sx_read(cx, text.p, text.n, "host")),
                  .sat = saturate(p, NONE)};
    uint32_t root = tarn_sat_root(r.sat, 0);
    tarn_kgraph_input in = {.L = p->L,
                            .g = tarn_sat_egraph(r.sat),
                            .type_of = pipeline_type,
                            .is_constant = pipeline_constant,
                            .left_out = pipeline_left_out,
                            .user = r.sat,
                            .nroot = 1,
                            .root = &root,
                            .program = p};
    tarn_kgraph_options o = {.hw = r.hw};
    r.kprog = tarn_extract(&in, &o, &r.report, NULL);
    tiles_are_whole(p->L, r.kprog), numbers_are_known(p->L, r.kprog);
    tarn_binding b = {p->in[0].name, NULL};
    uint64_t seed = 17;
    b.value = kit_values(cx, tarn_type_get(p->L, p->in[0].type), &seed);
    tarn_tensor *wide, *made;
    pipeline_run(pipeline_compile(&r, pipeline_folder(cx)), p, &b, &made);
    tarn_eval(p->L, &direct, 1, &b, 1, TARN_WIDE, NULL, &wide);
    double d = kit_distance(wide, made);
    ck_assert_msg(d <= bounds[i], "%s, %s: %g", c->name, rules[i], d);
  }
}
START_TEST(test_compiled) { run(compiled, &convs[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("rules");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_classes, 0, sizeof convs / sizeof *convs);
  tcase_add_loop_test(t, test_bound, 0, sizeof convs / sizeof *convs);
  tcase_add_loop_test(t, test_compiled, 0, sizeof convs / sizeof *convs);
  tcase_add_test(t, test_left_out);
  return run_checks("winograd", t);
}
