/* Quantised networks on an accelerator for integers: after saturation every convolution, product,
 * pooling and residual add is, in some e-node of its class, a nest of one stage that the machine's
 * units compute, requantisation and all. */
#include "tests/rules_kit.h"
#include "tests/suite.h"
#include <string.h>

/* Requantisation as the machine does it: clip((sum + bias) * 2^-k + 1/2), rounded down. */
#define NUMBERS                                                                                    \
  "init s f64 - : 0.001953125\ninit h f64 - : 0.5\ninit lo f64 - : -128\ninit hi f64 - : 127\n"    \
  "init zero f64 - : 0\ninit lo32 i32 - : -128\ninit hi32 i32 - : 127\n"                           \
  "init zero32 i32 - : 0\n"
#define FLOORED(n, sum, bias, y)                                                                   \
  "node Add A" n " " sum " " bias " -> a" n "\nnode Cast C" n " a" n " -> c" n " : to=11\n"        \
  "node Mul M" n " c" n " s -> m" n "\nnode Add H" n " m" n " h -> h" n "\nnode Floor F" n " h" n  \
  " -> " y "\n"
#define REQUANTISED(n, sum, bias, lo, y)                                                           \
  FLOORED(n, sum, bias, "f" n)                                                                     \
  "node Clip L" n " f" n " " lo " hi -> l" n "\nnode Cast Q" n " l" n " -> " y " : to=3\n"

typedef struct net {
  const char *name, *text;
  tarn_rule_class numerics;
  bool whole;        /* all of it is the machine's */
  uint32_t products; /* classes that a product of the machine computes, at least */
} net;
static const net nets[] = {
    {"a convolution of 1x1",
     NUMBERS "in x i8 1,16,5,7\nbytes w i8 24,16,1,1\nbytes t i32 1,24,1,1\n"
             "node ConvInteger g x w -> p\n" REQUANTISED("1", "p", "t", "lo", "y") "out y\n",
     TARN_RULE_EXACT, true, 1},
    {"one of 3x3, padded, and a relu",
     NUMBERS "in x i8 1,16,6,6\nbytes w i8 8,16,3,3\nbytes t i32 1,8,1,1\n"
             "node ConvInteger g x w -> p : pads=1,1,1,1\n" REQUANTISED(
                 "1", "p", "t", "lo", "q") "node Relu r q -> y\nout y\n",
     TARN_RULE_EXACT, true, 1},
    {"steps of two, zero points of 0",
     NUMBERS "in x i8 1,16,7,9\nbytes w i8 8,16,3,3\nbytes t i32 1,8,1,1\ninit z i8 - : 0\n"
             "node ConvInteger g x w z z -> p : pads=1,1,1,1 strides=2,2\n" REQUANTISED(
                 "1", "p", "t", "zero", "y") "out y\n",
     TARN_RULE_EXACT, true, 1},
    {"fully connected",
     NUMBERS "in x i8 3,64\nbytes w i8 64,45\nbytes t i32 45\n"
             "node MatMulInteger g x w -> p\n" REQUANTISED("1", "p", "t", "lo", "y") "out y\n",
     TARN_RULE_EXACT, true, 1},
    {"a residual add",
     NUMBERS
     "in x i8 1,16,5,5\nbytes w i8 16,16,1,1\nbytes v i8 16,16,3,3\nbytes t i32 1,16,1,1\n"
     "node ConvInteger g x w -> p\n" REQUANTISED(
         "1", "p", "t", "zero",
         "q") "node ConvInteger g2 q v -> p2 : pads=1,1,1,1\n" FLOORED("2", "p2", "t",
                                                                       "q2") "node Cast d q2 -> d "
                                                                             ": to=6\nnode Cast e "
                                                                             "q -> e : to=6\nnode "
                                                                             "Add r d e -> r\n"
                                                                             "node Clip k r zero32 "
                                                                             "hi32 -> k\nnode Cast "
                                                                             "o k -> y : to=3\nout "
                                                                             "y\n",
     TARN_RULE_EXACT, true, 2},
    {"a shortcut that is a convolution too",
     NUMBERS "in x i8 1,16,5,5\nbytes w i8 16,16,1,1\nbytes v i8 16,16,3,3\nbytes t i32 1,16,1,1\n"
             "node ConvInteger g x w -> p\n" FLOORED(
                 "1", "p", "t", "q") "node ConvInteger g2 x v -> p2 : "
                                     "pads=1,1,1,1\n" REQUANTISED("2", "p2", "t", "lo",
                                                                  "q2") "node Cast d q2 -> d : "
                                                                        "to=6\nnode Cast e q -> "
                                                                        "e : to=6\nnode Add r d "
                                                                        "e -> r\n"
                                                                        "node Clip k r zero32 "
                                                                        "hi32 -> k\nnode Cast o "
                                                                        "k -> y : to=3\nout y\n",
     TARN_RULE_EXACT, true, 2},
    {"a residual add of two tensors of bytes",
     NUMBERS "in x i8 1,16,5,5\nin z i8 1,16,5,5\n"
             "node Cast d x -> d : to=6\nnode Cast e z -> e : to=6\nnode Add r d e -> r\n"
             "node Clip k r lo32 hi32 -> k\nnode Cast o k -> y : to=3\nout y\n",
     TARN_RULE_EXACT, true, 0},
    {"pooling",
     NUMBERS "in x i8 1,16,8,8\nnode MaxPool m x -> y : kernel_shape=2,2 strides=2,2\nout y\n",
     TARN_RULE_EXACT, true, 0},
    {"a sum that f32 holds",
     NUMBERS "in x i8 3,64\nbytes w i8 64,45\ninit s32 f32 - : 0.0078125\ninit h32 f32 - : 0.5\n"
             "init l32 f32 - : -128\ninit u32 f32 - : 127\n"
             "node MatMulInteger g x w -> p\nnode Cast c p -> c : to=1\nnode Mul m c s32 -> m\n"
             "node Add a m h32 -> a\nnode Floor f a -> f\nnode Clip k f l32 u32 -> k\n"
             "node Cast o k -> y : to=3\nout y\n",
     TARN_RULE_EXACT, true, 1},
    {"scales that are powers of two",
     "in x i8 3,64\nbytes w i8 64,45\ninit s f32 - : 0.125\ninit t f32 - : 0.0625\n"
     "init z i8 - : 0\nnode QLinearMatMul g x s z w t z s z -> y\nout y\n",
     TARN_RULE_APPROX, true, 1},
    {"dequantised by powers of two, biases too, with a residual",
     "in x i8 1,16,6,6\nbytes w i8 16,16,3,3\nbytes b i32 16\nbytes w2 i8 16,16,1,1\n"
     "init sx f32 - : 0.125\ninit sw f32 - : 0.0078125\ninit sb f32 - : 0.0009765625\n"
     "init sy f32 - : 0.25\ninit z i8 - : 0\ninit zi i32 - : 0\n"
     "node DequantizeLinear dx x sx z -> fx\nnode DequantizeLinear dw w sw z -> fw\n"
     "node DequantizeLinear db b sb zi -> fb\nnode Conv c fx fw fb -> fy : pads=1,1,1,1\n"
     "node Relu r fy -> ry\nnode QuantizeLinear q ry sy z -> y1\n"
     "node DequantizeLinear d1 y1 sy z -> fy1\nnode DequantizeLinear dw2 w2 sw z -> fw2\n"
     "node Conv c2 fy1 fw2 -> fy2\nnode Add ad fy2 fy1 -> fa\nnode QuantizeLinear q2 fa sy z -> y\n"
     "out y\n",
     TARN_RULE_APPROX, true, 2},
    {"one layer of u8 after another, by powers of two",
     "in x u8 1,16,6,6\nbytes w i8 16,16,3,3\nbytes b i32 16\ninit sx f32 - : 0.125\n"
     "init sw f32 - : 0.0078125\ninit sy f32 - : 0.25\ninit z u8 - : 128\ninit v i8 - : 0\n"
     "node QLinearConv c x sx z w sw v sy z b -> y1 : pads=1,1,1,1\n"
     "node QLinearConv d y1 sy z w sw v sy z b -> y : pads=1,1,1,1\nout y\n",
     TARN_RULE_APPROX, false, 2},
    {"an average of powers of two",
     NUMBERS "in x i8 1,16,4,4\ninit q f32 - : 0.125\ninit i f32 - : 8\nnode Cast c x -> c : to=1\n"
             "node Mul d c q -> d\nnode GlobalAveragePool g d -> g\nnode Cast e g -> e : to=11\n"
             "init u f64 - : 16\nnode Mul m e u -> m\nnode Add a m h -> a\nnode Floor f a -> f\n"
             "node Clip k f lo hi -> k\nnode Cast o k -> y : to=3\nout y\n",
     TARN_RULE_EXACT, true, 0},
    {"one of u8 and i8", "in x u8 3,64\nbytes w i8 64,45\nnode MatMulInteger g x w -> y\nout y\n",
     TARN_RULE_EXACT, false, 1},
    {"two of u8, with zero points",
     "in x u8 3,64\nbytes w u8 64,45\ninit z u8 - : 131\ninit v u8 - : 7\n"
     "node MatMulInteger g x w z v -> y\nout y\n",
     TARN_RULE_EXACT, false, 1},
    {"dequantised",
     "in x u8 3,64\nbytes w i8 64,45\ninit s f32 - : 0.037\ninit z u8 - : 128\ninit t f32 - : "
     "0.011\ninit v i8 - : 0\ninit r f32 - : 0.9\n"
     "node DequantizeLinear d x s z -> d\nnode DequantizeLinear e w t v -> e\n"
     "node MatMul m d e -> m\nnode QuantizeLinear q m r z -> y\nout y\n",
     TARN_RULE_REASSOC, false, 1},
    {"steps of two and a group for each channel",
     NUMBERS "in x i8 1,32,7,7\nbytes w i8 32,1,3,3\nbytes t i32 1,32,1,1\n"
             "node ConvInteger g x w -> p : pads=1,1,1,1 strides=2,2 group=32\n" REQUANTISED(
                 "1", "p", "t", "lo", "y") "out y\n",
     TARN_RULE_EXACT, true, 1},
    {"groups of some channels",
     NUMBERS
     "in x i8 1,24,5,5\nbytes w i8 12,4,3,3\nbytes t i32 1,12,1,1\n"
     "node ConvInteger g x w -> p : group=6\n" REQUANTISED("1", "p", "t", "lo", "y") "out y\n",
     TARN_RULE_EXACT, false, 1},
    {"channels that fill no entries",
     NUMBERS
     "in x i8 1,24,5,5\nbytes w i8 16,24,3,3\nbytes t i32 1,16,1,1\n"
     "node ConvInteger g x w -> p : pads=1,1,1,1\n" REQUANTISED("1", "p", "t", "lo", "y") "out y\n",
     TARN_RULE_EXACT, false, 1},
    {"padded pooling after a relu",
     NUMBERS "in x i8 1,16,8,8\nnode Relu r x -> q\n"
             "node MaxPool m q -> y : kernel_shape=3,3 strides=2,2 pads=1,1,1,1\nout y\n",
     TARN_RULE_EXACT, true, 0},
    {"padded with a zero point",
     NUMBERS "in x i8 1,16,6,6\nbytes w i8 8,16,3,3\nbytes t i32 1,8,1,1\ninit z i8 - : -7\n"
             "node ConvInteger g x w z -> p : pads=1,1,1,1\n" REQUANTISED("1", "p", "t", "lo",
                                                                          "y") "out y\n",
     TARN_RULE_EXACT, false, 1},
    {"padded, of u8",
     NUMBERS "in x u8 1,16,6,6\nbytes w i8 8,16,3,3\nnode ConvInteger g x w -> y : "
             "pads=1,1,1,1\nout y\n",
     TARN_RULE_EXACT, false, 1},
};
#define NETS (int)(sizeof nets / sizeof *nets)

/* ---------------------------------------------------------------- what the units compute */

typedef struct unit {
  tarn_saturation *s;
  tarn_lang *L;
  const tarn_dtype *hole; /* types of what an expression reads */
  uint32_t *known;        /* by class: 0 not known, 1 the machine's, 2 not, 3 being looked at */
  uint32_t *pick;         /* the node that is */
} unit;

static bool is_cast(const unit *u, uint32_t f, tarn_dtype to, tarn_dtype from) {
  const tarn_fx *x = tarn_fx_get(u->L, f);
  if (x->op != TARN_FX_CAST || x->dtype != to) return false;
  const tarn_fx *h = tarn_fx_get(u->L, x->kid[0]);
  return h->op == TARN_FX_HOLE && u->hole[h->hole] == from;
}
/* Sums, bounds and shifts by a number of i32, over tensors of i32 and of i8. */
static bool vector_unit(const unit *u, uint32_t f) {
  const tarn_fx x = *tarn_fx_get(u->L, f);
  switch (x.op) {
  case TARN_FX_HOLE: return u->hole[x.hole] == TARN_I32;
  case TARN_FX_CONST: return x.dtype == TARN_I32;
  case TARN_FX_CAST: return is_cast(u, f, TARN_I32, TARN_I8);
  case TARN_FX_ADD:
  case TARN_FX_MIN:
  case TARN_FX_MAX: return vector_unit(u, x.kid[0]) && vector_unit(u, x.kid[1]);
  case TARN_FX_SHR:
    return vector_unit(u, x.kid[0]) && tarn_fx_get(u->L, x.kid[1])->op == TARN_FX_CONST;
  default: return false;
  }
}
/* The last thing that is done: what is stored is the low byte of i32. */
static bool stored(const unit *u, uint32_t f) {
  const tarn_fx *x = tarn_fx_get(u->L, f);
  return x->op == TARN_FX_CAST && x->dtype == TARN_I8 && vector_unit(u, x->kid[0]);
}
/* A loop of the reduction that fills a row of the unit, which both operands follow. */
static bool fills(const unit *u, const tarn_stage *st) {
  for (uint32_t d = 0; d < st->nred; d++) {
    bool both = st->red[d] % 16 == 0;
    for (uint32_t i = 0; i < 2 && both; i++) {
      const tarn_imap *m = tarn_imap_get(u->L, st->read[i].map);
      bool any = false;
      for (uint32_t a = 0; a < m->nin; a++)
        any |= tarn_ix_dims(u->L, m->e[a]) >> (st->nown + d) & 1;
      both = any;
    }
    if (both) return true;
  }
  return false;
}
static bool product(const unit *u, const tarn_stage *st) {
  const tarn_func *fn = tarn_fn_get(u->L, st->fn);
  const tarn_fx *x = tarn_fx_get(u->L, fn->body);
  return fn->nops == 2 && x->op == TARN_FX_MUL && is_cast(u, x->kid[0], TARN_I32, TARN_I8) &&
         is_cast(u, x->kid[1], TARN_I32, TARN_I8) && x->kid[0] != x->kid[1] &&
         fn->red == tarn_reducer_of(u->L, TARN_RED_SUM, TARN_I32) && fills(u, st);
}
/* What is read beside a tensor is 0 in a product. */
static bool zeros(const unit *u, const tarn_stage *st, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const tarn_imap *m = tarn_imap_get(u->L, st->read[i].map);
    if (m->nguard && tarn_fx_get(u->L, m->fill)->ivalue != 0) return false;
  }
  return true;
}
/* A nest of one stage; multiplies: only products, whatever becomes of the sums. */
static bool one_kernel(unit *u, uint32_t node, bool multiplies) {
  tarn_eg_node x = tarn_eg_node_at(tarn_sat_egraph(u->s), node);
  tarn_dtype body[64], epi[65] = {TARN_I32};
  if (x.op != TARN_OP_NEST || tarn_sat_left_out(u->s, node)) return false;
  const tarn_nest *nest = tarn_nest_get(u->L, tarn_payload_get(u->L, x.payload)->id);
  const tarn_stage *st = nest->stage;
  const tarn_func *fn = tarn_fn_get(u->L, st->fn);
  if (nest->nstage != 1 || nest->depth || fn->nops > 64 || fn->nepi > 64) return false;
  for (uint32_t i = 0; i < fn->nops + fn->nepi; i++) {
    uint32_t c = tarn_eg_find(tarn_sat_egraph(u->s), x.kids[st->read[i].src]);
    tarn_dtype t = tarn_type_get(u->L, tarn_sat_type(u->s, c))->dtype;
    *(i < fn->nops ? &body[i] : &epi[i - fn->nops + 1]) = t;
  }
  u->hole = body;
  bool is = product(u, st) && zeros(u, st, fn->nops);
  if (is) ck_assert_str_eq(st->unit ? tarn_name_get(u->L, st->unit - 1) : "", "vta-pynq.gemm");
  if (multiplies) return is;
  if (!is && fn->red == TARN_NONE) return stored(u, fn->body);
  if (!is && !vector_unit(u, fn->body)) return false;
  tarn_red_kind kind = tarn_reducer_get(u->L, fn->red)->kind;
  u->hole = epi;
  return (kind == TARN_RED_SUM || kind == TARN_RED_MAX) && fn->epi != TARN_NONE &&
         stored(u, fn->epi);
}

/* Can units compute the class, from inputs and constants on? */
static bool mapped(unit *u, uint32_t cls);
static bool node_mapped(unit *u, uint32_t node) {
  tarn_eg_node x = tarn_eg_node_at(tarn_sat_egraph(u->s), node);
  if (x.op != TARN_OP_INPUT && x.op != TARN_OP_VIEW && !one_kernel(u, node, false)) return false;
  for (uint32_t i = 0; i < x.n; i++)
    if (!mapped(u, tarn_eg_find(tarn_sat_egraph(u->s), x.kids[i]))) return false;
  return true;
}
static bool mapped(unit *u, uint32_t cls) {
  tarn_egraph *g = tarn_sat_egraph(u->s);
  bool is = tarn_sat_is_const(u->s, cls);
  if (u->known[cls]) return u->known[cls] == 1;
  u->known[cls] = 3;
  for (uint32_t n = tarn_eg_next_node(g, cls, TARN_NONE); n != TARN_NONE && !is;
       n = tarn_eg_next_node(g, cls, n))
    if ((is = node_mapped(u, n))) u->pick[cls] = n;
  u->known[cls] = is ? 1 : 2;
  return is;
}
static uint32_t products(unit *u) {
  tarn_egraph *g = tarn_sat_egraph(u->s);
  uint32_t count = 0;
  for (uint32_t c = tarn_eg_next_class(g, TARN_NONE); c != TARN_NONE;
       c = tarn_eg_next_class(g, c)) {
    bool any = false;
    for (uint32_t n = tarn_eg_next_node(g, c, TARN_NONE); n != TARN_NONE;
         n = tarn_eg_next_node(g, c, n))
      any |= one_kernel(u, n, true);
    count += any;
  }
  return count;
}

/* ---------------------------------------------------------------- networks */

/* The text of a marked nest means the same nest. */
static void same_text(const unit *u, tarn_term t) {
  tarn_ctx *cx = tarn_lang_ctx(u->L);
  tarn_buf b = {.cx = cx};
  tarn_term_print(u->L, &b, t);
  ck_assert_msg(strstr(b.p, "(unit vta-pynq.gemm)"), "%.2000s", b.p);
  ck_assert_uint_eq(tarn_term_parse(u->L, tarn_sx_read(cx, b.p, b.n, "term")->kid[0]), t);
}

/* From the output as imported to what the units compute, by the checker. */
static void prove(const unit *u, const tarn_ruleset *rs, bool marked) {
  tarn_ctx *cx = tarn_lang_ctx(u->L);
  tarn_buf b = {.cx = cx};
  tarn_proof_options o = {0};
  tarn_term t = tarn_sat_term(u->s, tarn_sat_root(u->s, 0), kit_picked, u->pick);
  tarn_sat_explain(u->s, 0, t, &b);
  if (marked) {
    same_text(u, t);
    ck_assert_msg(strstr(b.p, "vta-pynq.gemm-nest-unit"), "%.3000s", b.p);
  }
  tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(cx, b.p, b.n, "proof"), &o);
  ck_assert_msg(r.ok, "step %u: %s\n%.3000s", r.bad, r.why, b.p);
}

static void try_net(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  o.hw = tarn_hw_load(L, "vta-pynq");
  ck_assert_uint_eq(tarn_ruleset_derive_units(rs, o.hw), 1);
  o.numerics = n->numerics;
  o.rtol = n->numerics == TARN_RULE_APPROX ? 0.008 : TARN_RTOL;
  o.reasons = TARN_EG_REASONS_ALL;
  unit u = {.s = tarn_saturate(kit_model_of_bytes(L, n->text), rs, &o), .L = L};
  u.known = TARN_ARRAY(cx, uint32_t, tarn_eg_id_count(tarn_sat_egraph(u.s)) + 1);
  u.pick = kit_picks(u.s);
  bool whole = mapped(&u, tarn_sat_root(u.s, 0));
  ck_assert_msg(whole == n->whole, "%s: %s", n->name, whole ? "all mapped" : "not all mapped");
  ck_assert_msg(products(&u) >= n->products, "%s: %u products", n->name, products(&u));
  kit_classes k = {.s = u.s, .seed = 5};
  if (n->numerics != TARN_RULE_APPROX) kit_check(&k);
  prove(&u, rs, n->whole && n->products);
}
START_TEST(test_networks) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  net n = nets[_i];
  tarn_status st = tarn_protect(cx, try_net, &n);
  ck_assert_msg(st == TARN_OK, "%s: %s", n.name, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("mapping");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_networks, 0, NETS);
  return run_checks("mapping", t);
}
