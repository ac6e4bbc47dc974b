/* Equal layers are compiled once: between import and saturation, and after selection. */
#include "compile/layers_unfold.h"
#include <stdlib.h>
#include <string.h>

/* A proof shows every step of the whole model, and so a user's rules are counted. */
static bool asks_for_all(const tarn_compiled *c) {
  const tarn_compile_options *o = c->o;
  return o->explain || o->reasons || o->rules.n || o->only_rules.n || c->family;
}
/* Are caches asked for in every block, or in none? And by patterns, which the folded model has too,
 * as it has their inputs unless they are without rows. */
static bool caches_alike(const tarn_compiled *c, const comp_layers *l) {
  const tarn_in_place *at;
  uint32_t n = comp_in_place(c, &at);
  for (uint32_t i = 0; i < c->o->caches.n; i++)
    if (strcmp(c->o->caches.text[i], "none") != 0 && !strchr(c->o->caches.text[i], '*'))
      return false;
  tarn_map *found = tarn_map_new(l->cx);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t node = lay_number(l, c->program->in[at[i].in].term);
    if (node == TARN_NONE) return false;
    if (l->node.p[node].chain == TARN_NONE) continue;
    (*tarn_map_at(found, (uint64_t)l->node.p[node].chain << 32 | l->node.p[node].ref, NULL))++;
  }
  for (uint32_t i = 0; i < tarn_map_count(found); i++) {
    uint64_t key;
    if (*tarn_map_item(found, i, &key) != l->chain.p[key >> 32].n) return false;
  }
  return true;
}
void comp_fold(tarn_compiled *c) {
  c->layers = NULL;
  if (asks_for_all(c)) return;
  comp_layers *l = TARN_NEW(tarn_lang_ctx(c->L), comp_layers);
  *l = (comp_layers){.L = c->L, .cx = tarn_lang_ctx(c->L), .whole = c->program};
  lay_find(l);
  if (!l->chain.n || !caches_alike(c, l) || !lay_fold(l)) return;
  c->layers = l;
  c->program = l->folded;
}
const tarn_program *comp_whole(const tarn_compiled *c) {
  return c->layers ? c->layers->whole : c->program;
}
void comp_stand_ins(const tarn_compiled *c, tarn_sat_options *o) {
  if (!c->layers) return;
  o->nstand = c->layers->leaf.n;
  o->stand = c->layers->stand;
}

/* ---------------------------------------------------------------- the program */
static lay_program open_program(const comp_layers *l, const tarn_kprog *p) {
  lay_program o = {0};
  for (uint32_t i = 0; i < p->nbuf; i++) {
    tarn_push(l->cx, &o.buf, p->buf[i]);
    tarn_push(l->cx, &o.first, i);
  }
  for (uint32_t i = 0; i < p->nker; i++) {
    tarn_kernel k = p->ker[i];
    uint32_t *at = TARN_ARRAY(l->cx, uint32_t, k.nodes.n + 1);
    for (uint32_t j = 0; j < k.nodes.n; j++) at[j] = l->origin[k.nodes.at[j]];
    k.nodes.at = at;
    tarn_push(l->cx, &o.ker, k);
  }
  for (uint32_t i = 0; i < p->nout; i++) {
    tarn_push(l->cx, &o.out, p->out[i]);
    tarn_push(l->cx, &o.out_of, l->out[i]);
  }
  return o;
}
static const char *unfold_chains(const comp_layers *l, const tarn_compiled *c, lay_program *p) {
  for (uint32_t i = 0; i < l->chain.n; i++) {
    unfolding u = {.l = c->layers, .c = &l->chain.p[i], .number = i};
    lay_program *to = TARN_NEW(l->cx, lay_program), *from = tarn_copy(l->cx, p, sizeof *p);
    u.x = c->extraction, u.s = c->saturation, u.p = from;
    const char *why = lay_match(&u);
    if (why) return why;
    if (!lay_repeat(&u, to)) return "kernels of a layer do not follow one another";
    *p = *to;
  }
  return NULL;
}

/* ---------------------------------------------------------------- names */
/* "k7_copy" with another number. */
static const char *renumbered(tarn_ctx *cx, const char *name, uint32_t number) {
  const char *rest = strchr(name, '_');
  return tarn_format(cx, "k%u%s", number, rest ? rest : "");
}
static void rename_inputs(const comp_layers *l, tarn_kernel *k) {
  const tarn_node x = *tarn_term_get(l->L, k->term);
  tarn_term *kid = TARN_ARRAY(l->cx, tarn_term, x.n + 1);
  for (uint32_t i = 0; i < x.n; i++)
    kid[i] = tarn_input(l->L, tarn_format(l->cx, "%s.%u", k->name, i),
                        tarn_term_get(l->L, x.kid[i])->type);
  k->term = tarn_mk(l->L, x.op, x.payload, kid, x.n);
}
static void rename_ways(tarn_compiled *c, const char *old, const char *name) {
  tarn_ways *ways = (tarn_ways *)(uintptr_t)c->choice.ways;
  for (uint32_t i = 0; i < c->choice.nways; i++)
    if (ways[i].kernel == old) ways[i].kernel = name;
}
static void name_kernels(tarn_compiled *c, lay_program *p) {
  const comp_layers *l = c->layers;
  for (uint32_t i = 0; i < p->ker.n; i++) {
    tarn_kernel *k = &p->ker.p[i];
    const char *had = k->name;
    k->name = renumbered(l->cx, had, i);
    if (k->nodes.n)
      k->name = tarn_format(l->cx, "k%u_%s%s", i, k->copy ? "copy_" : "",
                            tarn_nodes_label(l->cx, l->whole, k->nodes));
    if (k->term != TARN_NONE) rename_inputs(l, k);
    rename_ways(c, had, k->name);
  }
}

/* ---------------------------------------------------------------- inputs and outputs */
static uint32_t input_buffer(const comp_layers *l, lay_program *p, const tarn_io *io) {
  for (uint32_t i = 0; i < p->buf.n; i++)
    if (p->buf.p[i].kind == TARN_BUF_INPUT && !strcmp(p->buf.p[i].name, io->name)) return i;
  const tarn_type *t = tarn_type_get(l->L, io->type); /* that no output needs */
  tarn_buffer b = {.kind = TARN_BUF_INPUT,
                   .name = io->name,
                   .dtype = t->dtype,
                   .layout = tarn_layout_row_major(t->n, t->dim),
                   .parent = TARN_NONE,
                   .term = io->term};
  tarn_push(l->cx, &p->buf, b);
  return p->buf.n - 1;
}
/* False: an output is missing. */
static bool close_program(const comp_layers *l, lay_program *p, tarn_kprog *k) {
  uint32_t nin = l->whole->nin, nout = l->whole->nout;
  k->in = TARN_ARRAY(l->cx, uint32_t, nin + 1), k->out = TARN_ARRAY(l->cx, uint32_t, nout + 1);
  k->nin = nin, k->nout = nout;
  memset(k->out, 0xff, nout * sizeof *k->out);
  for (uint32_t i = 0; i < nin; i++) k->in[i] = input_buffer(l, p, &l->whole->in[i]);
  for (uint32_t i = 0; i < p->out.n; i++) k->out[p->out_of.p[i]] = p->out.p[i];
  for (uint32_t i = 0; i < nout; i++)
    if (k->out[i] == TARN_NONE) return false;
  k->nbuf = p->buf.n, k->buf = p->buf.p;
  k->nker = p->ker.n, k->ker = p->ker.p;
  return true;
}
bool comp_unfold(tarn_compiled *c) {
  comp_layers *l = c->layers;
  lay_program p = open_program(l, c->kernels);
  tarn_kprog *k = tarn_copy(l->cx, c->kernels, sizeof *k);
  c->program = l->whole;
  l->why = unfold_chains(l, c, &p);
  if (!l->why && !close_program(l, &p, k)) l->why = "an output is missing";
  if (l->why) return false;
  name_kernels(c, &p);
  c->kernels = k;
  c->choice.price += p.price, c->choice.tree_price += p.price;
  c->choice.price_bound += p.price; /* the gap is that of the selection */
  c->choice.kernels += p.kernels, c->choice.copies += p.copies;
  return true;
}
void comp_put_layers(tarn_json *j, const tarn_compiled *c) {
  const comp_layers *l = c->layers;
  tarn_json_open(j, "layers", '[');
  for (uint32_t i = 0; l && i < l->chain.n; i++)
    tarn_json_object(j, NULL, "equal", l->chain.p[i].n, "compiled", LAY_KEPT);
  tarn_json_close(j, ']');
}
