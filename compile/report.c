/* report.json: what was compiled, how, and what came of it. */
#include "compile/target.h"
#include "compile/internal.h"
#include <stdlib.h>

static const char *full_path(tarn_ctx *cx, const char *path) {
  char *full = realpath(path, NULL);
  const char *kept = full ? tarn_strdup(cx, full) : path;
  free(full);
  return kept;
}
/* As it was given, files by their full paths: who checks the program stands elsewhere. */
static void put_sets(tarn_ctx *cx, tarn_json *j, const tarn_texts *sets) {
  tarn_json_open(j, "set", '[');
  for (uint32_t i = 0; i < sets->n; i++) {
    tarn_value_binding b = tarn_value_binding_parse(cx, sets->text[i]);
    const char *text = tarn_value_binding_file(&b) ? full_path(cx, b.text) : b.text;
    tarn_json_str(j, NULL, tarn_format(cx, "%s=%s", b.name, text));
  }
  tarn_json_close(j, ']');
}
/* What the inputs are drawn from when a program is tried. */
static void put_inputs(tarn_json *j, const tarn_compiled *c) {
  const tarn_program *p = c->program;
  tarn_json_open(j, "inputs", '[');
  for (uint32_t i = 0; i < p->nin; i++) {
    bool real = tarn_dtype_is_float(tarn_type_get(p->L, p->in[i].type)->dtype);
    tarn_json_object(j, NULL, "name", p->in[i].name, "low", real ? -1 : c->range[i].lo, "high",
                     real ? 1 : c->range[i].hi);
  }
  tarn_json_close(j, ']');
}
/* Inputs that lie in outputs; rows: for which the buffer has room, along the axis. */
static void put_in_place(tarn_json *j, const tarn_compiled *c) {
  const tarn_program *p = c->program;
  tarn_in_place x;
  tarn_json_open(j, "in_place", '[');
  for (uint32_t i = 0; i < p->nin; i++) {
    if (!tarn_kprog_in_place(c->kernels, false, i, &x)) continue;
    tarn_json_object(j, NULL, "input", p->in[i].name, "output", p->out[x.out].name, "axis", x.axis,
                     "rows", x.rows, "filled", x.filled, "added", x.added, "bytes",
                     tarn_buffer_bytes(&c->kernels->buf[c->kernels->out[x.out]]));
  }
  tarn_json_close(j, ']');
}
static void put_texts(tarn_json *j, const char *key, const tarn_texts *t) {
  tarn_json_open(j, key, '[');
  for (uint32_t i = 0; i < t->n; i++) tarn_json_str(j, NULL, t->text[i]);
  tarn_json_close(j, ']');
}
static void put_saturation(tarn_json *j, const tarn_compiled *c) {
  const tarn_sat_report *s = c->rewriting;
  tarn_json_put(j, "numerics", tarn_rule_class_name(c->o->numerics), "numerics_used",
                tarn_rule_class_name(s->used), "bound", s->bound, "stop", s->stop);
  if (c->o->rules.n) tarn_json_bool(j, "without_rules", c->without_rules);
  if (c->o->rules.n) tarn_json_num(j, "price_with_rules", c->price_with_rules);
  tarn_json_put(j, "nodes", s->nodes, "classes", s->classes, "iterations", s->iterations);
  if (!s->surface.stop) return;
  tarn_json_object(j, "surface", "stop", s->surface.stop, "iterations", s->surface.iterations,
                   "nodes", s->surface.nodes, "nodes_with_forms", s->surface.forms);
}
static void put_choice(tarn_json *j, const tarn_kgraph_report *g) {
  tarn_json_put(j, "kernels", g->kernels, "copies", g->copies, "price", g->price, "price_bound",
                g->price_bound, "price_tree", g->tree_price, "price_model", g->price_name);
  tarn_json_object(j, "kernel_graph", "buffers", g->buffers, "orders", g->orders, "candidates",
                   g->candidates, "signatures", (int64_t)g->signatures, "price_uses",
                   (int64_t)g->price_uses, "evaluations", (int64_t)g->evaluations, "cut_views",
                   g->cut_views, "cut_orders", g->cut_orders);
}
static void put_memory(tarn_json *j, const tarn_memory_plan *m) {
  tarn_json_object(j, "memory", "workspace", m->bytes, "live_bound", m->live_bound, "constants",
                   m->const_bytes);
}
static void put_seconds(tarn_json *j, const tarn_compiled *c) {
  tarn_json_object(j, "seconds", "import", c->seconds.import, "saturate", c->seconds.saturate,
                   "extract", c->seconds.extract, "lower", c->seconds.lower);
}
static void put_rules(tarn_json *j, const tarn_sat_report *s) {
  tarn_json_open(j, "rules", '{');
  for (uint32_t i = 0; i < s->nrule; i++)
    if (s->rule[i].count.applied)
      tarn_json_int(j, s->rule[i].name, (int64_t)s->rule[i].count.applied);
  tarn_json_close(j, '}');
}
static const char *idle_why(const tarn_sat_report *s, uint32_t number) {
  for (uint32_t i = 0; i < s->nidle; i++)
    if (s->idle[i].number == number) return s->idle[i].why;
  return NULL;
}
static const tarn_sat_rule *row_of(const tarn_sat_report *s, uint32_t number) {
  for (uint32_t i = 0; i < s->nrule; i++)
    if (s->rule[i].number == number) return &s->rule[i];
  return NULL;
}
/* Of a rule that was asked for and is in the program. */
static void put_trust(tarn_json *j, const tarn_compiled *c, uint32_t rule) {
  if (!c->trust || !c->uses[rule].steps) return;
  tarn_json_str(j, "trust", tarn_rule_trust_name(c->trust[rule]));
  if (c->trust[rule] == TARN_RULE_SAMPLED) tarn_json_str(j, "unproved", c->doubt[rule]);
  tarn_json_put(j, "replayed", c->uses[rule].replayed, "not_replayed",
                c->uses[rule].skipped + c->uses[rule].left);
}
/* Rules that matched, and those that were asked for. */
static void put_rule_counts(tarn_json *j, const tarn_compiled *c) {
  const tarn_sat_report *s = c->rewriting;
  tarn_json_open(j, "rule_counts", '[');
  for (uint32_t i = 0; i < tarn_ruleset_count(c->rules); i++) {
    tarn_rule_info r = tarn_ruleset_at(c->rules, i);
    const tarn_sat_rule *row = row_of(s, i);
    if (!r.asked && (!row || !row->count.matches)) continue;
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "name", r.name, "family", r.family, "level",
                  r.level == TARN_RULE_KERNEL ? "kernel" : "surface", "matches",
                  row ? (int64_t)row->count.matches : 0, "applied",
                  row ? (int64_t)row->count.applied : 0, "joined",
                  row ? (int64_t)row->count.unions : 0);
    if (c->uses) tarn_json_int(j, "chosen", c->uses[i].steps);
    else tarn_json_str(j, "chosen", NULL);
    if (r.asked) put_trust(j, c, i);
    if (r.asked) tarn_json_str(j, "idle", idle_why(s, i));
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
static void put_opaque(tarn_ctx *cx, tarn_json *j, const tarn_model_report *m) {
  tarn_json_open(j, "opaque", '[');
  for (uint32_t i = 0; i < m->nopaque; i++)
    tarn_json_str(j, NULL, tarn_format(cx, "%s (%s)", m->opaque[i].node, m->opaque[i].op));
  tarn_json_close(j, ']');
}
static void put_ways(tarn_json *j, const tarn_kgraph_report *g) {
  tarn_json_open(j, "im2col", '[');
  for (uint32_t i = 0; i < g->nways; i++)
    tarn_json_object(j, NULL, "kernel", g->ways[i].kernel, "implicit_us", g->ways[i].implicit * 1e6,
                     "materialised_us", g->ways[i].materialised * 1e6);
  tarn_json_close(j, ']');
}
/* Of a kernel that is not timed here: what its price says takes longest; and how much of the price
 * the machine needs at least, for its products or for bytes to and from main memory. */
static void put_bound(tarn_json *j, const tarn_kprog *p, const tarn_kernel *k) {
  const tarn_hw *hw = p->hw;
  const tarn_hw_memory *main = tarn_hw_mem(hw, TARN_HW_MAIN);
  tarn_cost cost;
  if (k->kind != TARN_K_NEST || !k->sig || !k->chosen || !k->sig->nin || !(k->price > 0)) return;
  tarn_target_find(hw)->price(p->L, hw, k->sig, k->chosen, 1, &cost);
  double products = k->products / tarn_hw_peak(hw, k->sig->in_type[0], hw->units);
  double bytes = (k->reads + k->writes) / (main->read * hw->clock * hw->units);
  tarn_json_str(j, "binds", cost.binds ? cost.binds : "");
  if (cost.registers > 0)
    tarn_json_put(j, "registers", (int64_t)cost.registers, "resident_warps", (int64_t)cost.warps,
                  "shared_bytes", (int64_t)cost.shared);
  tarn_json_num(j, "roofline", (products > bytes ? products : bytes) / k->price);
}
static void put_kernels(tarn_json *j, const tarn_kprog *p, const tarn_memory_plan *m,
                        const comp_offload *f) {
  tarn_json_open(j, "program", '[');
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_kernel *k = &p->ker[i];
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "name", k->name, "price", k->price, "flop", k->flops, "slots", k->slots,
                  "products", k->products, "read_bytes", k->reads, "write_bytes", k->writes, "copy",
                  k->copy);
    if (m && m->live) tarn_json_int(j, "live_bytes", m->live[i]);
    if (tarn_hw_traits_of(p->hw).blocks) put_bound(j, p, k);
    if (f) comp_kernel_json(f, i, j);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
/* What a GPU's program copies because kernels run on the host. */
static void put_host_copies(tarn_json *j, const tarn_kprog *p) {
  const tarn_host_copies *all = tarn_kprog_copies(p);
  tarn_json_open(j, "host_copies", '[');
  for (uint32_t i = 0; i < all->copy.n; i++) {
    const tarn_host_copy *c = &all->copy.p[i];
    if (c->port) continue;
    tarn_json_object(j, NULL, "kernel", c->kernel < p->nker ? p->ker[c->kernel].name : NULL, "to",
                     c->send ? "device" : "host", "bytes", c->bytes, "price",
                     tarn_hw_link_seconds(&p->hw->link, c->send, (double)c->bytes));
  }
  tarn_json_close(j, ']');
}
/* Of a program for several sizes: each with its sizes. What stands outside of this list is of the
 * largest, the last one. */
static void put_size(tarn_json *j, const tarn_compiled *of, uint32_t number) {
  const tarn_compiled *c = of->programs[number];
  tarn_json_open(j, NULL, '{');
  tarn_json_open(j, "size", '[');
  for (uint32_t i = 0; i < of->sizes->n; i++)
    tarn_json_int(j, NULL, of->sizes->program[number].size[i]);
  tarn_json_close(j, ']');
  const tarn_lower_family *f = of->sizes->program[number].family;
  if (f) { /* the rest is of its largest size */
    tarn_json_open(j, "range", '[');
    for (uint32_t i = 0; i < of->sizes->n; i++)
      tarn_json_object(j, NULL, "low", f->at.lo[i], "high", f->at.hi[i], "step", f->at.step[i]);
    tarn_json_close(j, ']');
  }
  put_texts(j, "shapes", &c->o->shapes);
  put_saturation(j, c);
  put_choice(j, &c->choice);
  put_memory(j, c->memory);
  put_seconds(j, c);
  put_inputs(j, c);
  put_in_place(j, c);
  put_kernels(j, c->kernels, c->memory, NULL);
  if (tarn_hw_traits_of(c->kernels->hw).hosted) put_host_copies(j, c->kernels);
  tarn_json_close(j, '}');
}
static void put_sizes(tarn_json *j, const tarn_compiled *c) {
  const tarn_lower_sizes *s = c->sizes;
  tarn_json_open(j, "sizes", '{');
  put_texts(j, "given", c->given);
  tarn_json_open(j, "names", '[');
  for (uint32_t i = 0; i < s->n; i++) tarn_json_str(j, NULL, s->name[i]);
  tarn_json_close(j, ']');
  tarn_json_open(j, "programs", '[');
  for (uint32_t i = 0; i < s->nprogram; i++) put_size(j, c, i);
  tarn_json_close(j, ']');
  tarn_json_close(j, '}');
}
void comp_report(tarn_compiled *c, const comp_offload *f) {
  const tarn_compile_options *o = c->o;
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  tarn_json *j = tarn_json_new(cx, TARN_REPORT_SCHEMA);
  tarn_json_put(j, "model", full_path(cx, o->model), "name", c->name);
  put_texts(j, "shapes", &o->shapes);
  put_sets(cx, j, &o->sets);
  if (o->outputs.n) put_texts(j, "outputs", &o->outputs);
  if (o->def) tarn_json_str(j, "def", o->def);
  if (o->allow_copies) tarn_json_bool(j, "allow_copies", true);
  tarn_json_put(j, "hw", o->hw->name, "triple", tarn_hw_machines(o->hw).hw[0]->triple);
  put_saturation(j, c);
  put_choice(j, &c->choice);
  put_memory(j, c->memory);
  comp_put_room(c, j);
  put_seconds(j, c);
  put_rules(j, c->rewriting);
  put_rule_counts(j, c);
  put_inputs(j, c);
  put_in_place(j, c);
  put_opaque(cx, j, &c->import);
  comp_put_layers(j, c);
  comp_put_written(j, c->kernels);
  put_ways(j, &c->choice);
  if (f) comp_offload_json(f, j);
  put_kernels(j, c->kernels, c->memory, f);
  if (tarn_hw_traits_of(c->kernels->hw).hosted) put_host_copies(j, c->kernels);
  if (c->sizes) put_sizes(j, c);
  c->report = tarn_json_text(j, &c->report_n);
}
