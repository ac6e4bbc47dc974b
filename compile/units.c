/* Coarse units: instructions whose meaning is neither a product of matrices nor a map, such as an
 * attention or the pointwise part of an LSTM cell. What the rules find to be equal to a meaning and
 * one nest over its operands is noted with the instruction: kernels of the model, which the same
 * rules made, are compared with that (plan/unit_whole.c). */
#include "compile/internal.h"
#include "compile/target.h"

static bool is_coarse(tarn_lang *L, const tarn_hw *hw, uint32_t i) {
  tarn_hw_form form;
  const tarn_hw_meaning m = tarn_hw_meaning_of(L, hw, i);
  return !m.acc && !m.immediate && hw->intrin[i].nop > 1 && !tarn_hw_form_of(L, &m, &form);
}
/* The operand whose class it is; TARN_NONE: of none. */
static tarn_term operand_of(const tarn_saturation *s, const tarn_hw_meaning *m, uint32_t cls) {
  const tarn_egraph *g = tarn_sat_egraph(s);
  for (uint32_t i = 0; i < m->nin; i++) {
    uint32_t c = tarn_sat_class(s, m->in[i]);
    if (c != TARN_NONE && tarn_eg_find(g, c) == tarn_eg_find(g, cls)) return m->in[i];
  }
  return TARN_NONE;
}
typedef TARN_VEC(tarn_term) terms;
static void add_nest(tarn_lang *L, const tarn_saturation *s, const tarn_hw_meaning *m,
                     const tarn_eg_node *e, terms *out) {
  tarn_term kid[TARN_MAX_OPERANDS];
  if (e->op != TARN_OP_NEST || e->n > TARN_MAX_OPERANDS) return;
  for (uint32_t i = 0; i < e->n; i++) {
    kid[i] = operand_of(s, m, e->kids[i]);
    if (kid[i] == TARN_NONE) return;
  }
  tarn_push(tarn_lang_ctx(L), out, tarn_mk(L, TARN_OP_NEST, e->payload, kid, e->n));
}
static terms nests_of(const tarn_compiled *c, const tarn_ruleset *rs, const tarn_hw_meaning *m) {
  tarn_lang *L = c->L;
  terms out = {0};
  tarn_program p = {.L = L, .nin = m->nin, .nout = 1};
  tarn_sat_options so = comp_saturation(c);
  p.in = TARN_ARRAY(tarn_lang_ctx(L), tarn_io, m->nin + 1);
  for (uint32_t i = 0; i < m->nin; i++)
    p.in[i] = (tarn_io){tarn_payload_get(L, tarn_term_get(L, m->in[i])->payload)->name, m->in[i],
                        tarn_term_get(L, m->in[i])->type};
  p.out = &(tarn_io){"result", m->term, tarn_term_get(L, m->term)->type};
  tarn_saturation *s = tarn_saturate(&p, rs, &so);
  const tarn_egraph *g = tarn_sat_egraph(s);
  uint32_t root = tarn_sat_root(s, 0);
  TARN_EG_NODES(g, root, n) {
    tarn_eg_node e = tarn_eg_node_at(g, n);
    add_nest(L, s, m, &e, &out);
  }
  return out;
}
const tarn_hw *tarn_compile_units(tarn_lang *L, const tarn_compile_options *o) {
  const tarn_hw *hw = o->hw;
  const tarn_compiled *c = &(tarn_compiled){.L = L, .o = o};
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_ruleset *rs = NULL;
  tarn_hw *with = tarn_copy(cx, hw, sizeof *hw);
  if (tarn_hw_traits_of(hw).any_nest) return hw;
  tarn_hw_intrinsic *x = TARN_ARRAY(cx, tarn_hw_intrinsic, hw->nintrin + 1);
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    x[i] = hw->intrin[i];
    if (!is_coarse(c->L, hw, i)) continue;
    const tarn_hw_meaning m = tarn_hw_meaning_of(c->L, hw, i);
    if (!rs) rs = comp_rules(c, true);
    terms whole = nests_of(c, rs, &m);
    x[i].nwhole = whole.n;
    x[i].whole = whole.p;
  }
  with->intrin = x;
  return rs ? with : hw;
}
