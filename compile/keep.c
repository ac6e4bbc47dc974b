/* What stays of a program of one size, or of a family. Each is compiled within a scope of the
 * language, and with the scope goes all that was only looked at: terms, the kernel graph, prices. A
 * family has one of its own. Programs of one size have many kernels in common, and follow one
 * another in a scope with their prices until it has become large. */
#include "compile/sizes.h"

#define MOST_BYTES ((size_t)256 << 20) /* of a scope in which one more program begins */

void comp_scopes_begin(comp_sizes *z) {
  z->rules = comp_rules(z->base, true), z->plain = comp_rules(z->base, false);
  z->steps = TARN_EXTRACT_STEPS;
  z->solvers = TARN_ARRAY(z->cx, tarn_solver *, TARN_EXTRACT_SOLVERS);
  z->ground = tarn_lang_ground(z->base->L);
}
static void forget(comp_sizes *z) {
  if (z->scope) tarn_scope_free(z->scope);
  z->scope = NULL;
}
void comp_scopes_end(void *z) { forget(z); }
static void enter_new(comp_sizes *z) {
  forget(z);
  z->scope = tarn_scope_new(z->base->L, &z->ground);
  for (uint32_t i = 0; i < TARN_EXTRACT_SOLVERS; i++) z->solvers[i] = NULL;
  tarn_scope_enter(z->scope);
}
void comp_scope_enter(comp_sizes *z, bool family) {
  bool another = family || !z->scope || tarn_ctx_bytes(tarn_scope_ctx(z->scope)) > MOST_BYTES;
  if (another) enter_new(z);
  else tarn_scope_enter(z->scope);
}

/* ---- reports ---- */
static tarn_model_report keep_import(tarn_ctx *cx, const tarn_model_report *r) {
  tarn_model_report c = *r;
  tarn_opaque_use *use = tarn_copy(cx, r->opaque, r->nopaque * sizeof *use);
  for (uint32_t i = 0; i < r->nopaque; i++) {
    use[i].node = tarn_strdup(cx, use[i].node);
    use[i].op = tarn_strdup(cx, use[i].op);
  }
  c.opaque = use;
  c.format = tarn_strdup(cx, r->format);
  c.producer = tarn_strdup(cx, r->producer);
  return c;
}
static const tarn_sat_report *keep_rewriting(tarn_ctx *cx, const tarn_sat_report *r) {
  tarn_sat_report *c = tarn_copy(cx, r, sizeof *r);
  tarn_sat_idle *idle = tarn_copy(cx, r->idle, r->nidle * sizeof *idle);
  for (uint32_t i = 0; i < r->nidle; i++) idle[i].why = tarn_strdup(cx, idle[i].why);
  c->idle = idle;
  c->rule = tarn_copy(cx, r->rule, r->nrule * sizeof *r->rule);
  return c;
}
static tarn_kgraph_report keep_choice(tarn_ctx *cx, const tarn_kgraph_report *r) {
  tarn_kgraph_report c = *r;
  tarn_ways *ways = tarn_copy(cx, r->ways, r->nways * sizeof *ways);
  for (uint32_t i = 0; i < r->nways; i++) ways[i].kernel = tarn_strdup(cx, ways[i].kernel);
  c.ways = ways;
  c.unmeasured = tarn_copy(cx, r->unmeasured, r->nunmeasured * sizeof *r->unmeasured);
  return c;
}

/* ---- programs ---- */
/* Its inputs and outputs; not what is computed. */
static tarn_program *keep_ports(tarn_ctx *cx, const tarn_program *p) {
  tarn_program *c = TARN_NEW(cx, tarn_program);
  *c = (tarn_program){.L = p->L, .nin = p->nin, .nout = p->nout};
  c->in = tarn_copy(cx, p->in, p->nin * sizeof *p->in);
  c->out = tarn_copy(cx, p->out, p->nout * sizeof *p->out);
  for (uint32_t i = 0; i < p->nin + p->nout; i++) {
    tarn_io *x = i < p->nin ? &c->in[i] : &c->out[i - p->nin];
    x->name = tarn_strdup(cx, x->name);
    x->term = TARN_NONE;
  }
  return c;
}
/* kernels: those that were kept. */
static tarn_compiled *keep(comp_sizes *z, const tarn_compiled *of, tarn_kprog *kernels) {
  tarn_ctx *cx = z->cx;
  tarn_compiled *c = tarn_copy(cx, of, sizeof *of);
  c->o = tarn_copy(cx, of->o, sizeof *of->o);
  c->name = tarn_strdup(cx, of->name);
  c->import = keep_import(cx, &of->import);
  c->rewriting = keep_rewriting(cx, of->rewriting);
  c->choice = keep_choice(cx, &of->choice);
  c->program = keep_ports(cx, of->program);
  c->range = tarn_copy(cx, of->range, of->program->nin * sizeof *of->range);
  c->kernels = kernels;
  c->saturation = NULL;
  c->picks = NULL;
  c->layers = NULL;
  c->family = NULL;
  c->solvers = NULL;
  c->left = NULL;
  c->counted = NULL;
  return c;
}
tarn_compiled *comp_keep(comp_sizes *z, const tarn_compiled *c) {
  tarn_scope_leave(z->scope);
  return keep(z, c, tarn_kprog_keep(c->kernels, z->scope));
}
comp_sized comp_keep_family(comp_sizes *z, const tarn_compiled *largest,
                            const tarn_lower_family *family) {
  tarn_scope_leave(z->scope);
  tarn_lower_family *f = tarn_copy(z->cx, family, sizeof *family);
  tarn_kprog **p = TARN_ARRAY(z->cx, tarn_kprog *, f->at.n);
  for (uint32_t i = 0; i < f->at.n; i++) p[i] = tarn_kprog_keep(family->sample[i], z->scope);
  f->sample = p;
  return (comp_sized){.c = keep(z, largest, p[f->at.n - 1]), .family = f};
}
