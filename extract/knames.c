/* Names kernels after the model's nodes that they compute, between what they read and what they
 * write.
 *
 * A term of the program belongs to the node that made it (tarn_origin): the node's own result, and
 * what lies below it down to the results of other nodes. What a chosen kernel computes is found by
 * walking the program from the terms of the kernel's class down to the terms of the classes that it
 * reads. A class that rules made has no terms: a kernel that reads it stops at what it was made of,
 * and its own kernel takes the names of its readers. Where a rule has split what one machine does
 * from the rest, for another, the first takes the nodes up to the first operator that it has not,
 * the rest those from there on. Nodes that only move data, and constants, give a name only if no
 * other node does. */
#include "extract/kgraph.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define CHAIN     48 /* bytes of a chain; of a longer one the first node and the last are shown */
#define PIECE     40 /* bytes of one node's name: the last ones */
#define MAX_VIEWS 4  /* steps from a class that rules made to the program's views of it */

typedef struct namer {
  kgraph *k;
  const uint32_t *choice;
  const tarn_program *p;
  uint32_t nterm, *owner;          /* per term: 1 + the origin that it belongs to; 0: none */
  uint32_t *same;                  /* per origin: 1 + the next one of the same term; 0: none */
  bool *moves;                     /* per origin: it computes nothing */
  uint32_t *group;                 /* per term: that of its class, or TARN_NONE */
  bool *constant;                  /* per term */
  uint32_t *first, *next;          /* terms by group: first + 1, next + 1 */
  uint32_t *seen, epoch;           /* per term: the walk that met it */
  bool *late;                      /* per term: it is part of the rest of a split */
  uint64_t **base, **stop, **name; /* per AND/OR class: groups, groups, origins */
  bool *known;                     /* per AND/OR class: it has terms */
  TARN_VEC(uint32_t) order;        /* AND/OR classes, each after those that it reads */
  uint64_t *made;                  /* groups that some kernel makes */
} namer;

/* ---------------------------------------------------------------- sets */
static uint64_t *new_set(const namer *s, uint32_t n) {
  return TARN_ARRAY(s->k->cx, uint64_t, n / 64 + 1);
}
static void put(uint64_t *set, uint32_t i) { set[i / 64] |= UINT64_C(1) << i % 64; }
static bool has(const uint64_t *set, uint32_t i) { return set[i / 64] >> i % 64 & 1; }
static void join(uint64_t *to, const uint64_t *from, uint32_t n) {
  for (uint32_t i = 0; i < n / 64 + 1; i++) to[i] |= from[i];
}
static bool is_empty(const uint64_t *set, uint32_t n) {
  uint64_t any = 0;
  for (uint32_t i = 0; i < n / 64 + 1; i++) any |= set[i];
  return !any;
}

/* ---------------------------------------------------------------- terms */
static bool is_leaf(uint32_t op) { return op == TARN_OP_CONST || op == TARN_OP_INPUT; }
static bool only_moves(uint32_t op) {
  return tarn_op_is_view(op) || is_leaf(op) || op == TARN_OP_NTH;
}
/* What lies below origin o and belongs to none yet is its own. */
static void claim(namer *s, uint32_t o) {
  tarn_term root = s->p->origin[o].term;
  TARN_VEC(tarn_term) todo = {0};
  if (root >= s->nterm) return;
  if (s->owner[root]) {
    uint32_t *at = &s->owner[root];
    if (s->p->origin[*at - 1].term != root) return;
    while (*at) at = &s->same[*at - 1];
    *at = o + 1;
    return;
  }
  s->moves[o] = true;
  tarn_push(s->k->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    const tarn_node *x = tarn_term_get(s->k->L, t);
    if (s->owner[t] || (t != root && x->op == TARN_OP_INPUT)) continue;
    s->owner[t] = o + 1;
    s->moves[o] &= only_moves(x->op);
    for (uint32_t i = 0; i < x->n; i++) tarn_push(s->k->cx, &todo, x->kid[i]);
  }
}
static void place_term(namer *s, tarn_term t) {
  kgraph *k = s->k;
  uint32_t cls = k->in->class_of(k->in->user, t);
  uint32_t c = cls == TARN_NONE ? TARN_NONE : kg_class(k, cls);
  s->group[t] = TARN_NONE;
  s->constant[t] = tarn_term_get(k->L, t)->op == TARN_OP_CONST;
  if (cls != TARN_NONE) s->constant[t] |= k->in->is_constant(k->in->user, k->g, cls);
  if (c == TARN_NONE || s->constant[t]) return;
  s->group[t] = k->cls.p[c].group;
  s->next[t] = s->first[s->group[t]];
  s->first[s->group[t]] = t + 1;
}
/* Every term below the outputs. */
static void place_terms(namer *s) {
  TARN_VEC(tarn_term) todo = {0};
  s->epoch++;
  for (uint32_t i = 0; i < s->p->nout; i++) tarn_push(s->k->cx, &todo, s->p->out[i].term);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    const tarn_node *x = tarn_term_get(s->k->L, t);
    if (s->seen[t] == s->epoch) continue;
    s->seen[t] = s->epoch;
    place_term(s, t);
    for (uint32_t i = 0; i < x->n; i++) tarn_push(s->k->cx, &todo, x->kid[i]);
  }
}

/* What is computed between these terms and the groups where the walk stops. False: it met an input
 * that is none of these. */
static bool walk(namer *s, const uint64_t *tops, const uint64_t *stop, uint64_t *name) {
  uint64_t *weak = new_set(s, s->p->norigin);
  TARN_VEC(tarn_term) todo = {0};
  bool closed = true;
  s->epoch++;
  for (uint32_t g = 0; g < s->k->group.n; g++)
    for (uint32_t t = has(tops, g) ? s->first[g] : 0; t; t = s->next[t - 1])
      tarn_push(s->k->cx, &todo, t - 1);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    const tarn_node *x = tarn_term_get(s->k->L, t);
    if (s->seen[t] == s->epoch) continue;
    s->seen[t] = s->epoch;
    if (s->group[t] != TARN_NONE && has(stop, s->group[t])) continue;
    closed &= x->op != TARN_OP_INPUT || s->constant[t];
    uint32_t o = s->owner[t];
    bool strong = !s->constant[t] && !only_moves(x->op);
    for (; o && (strong || s->moves[o - 1]); o = s->same[o - 1]) put(strong ? name : weak, o - 1);
    for (uint32_t i = 0; i < x->n && !s->constant[t]; i++) tarn_push(s->k->cx, &todo, x->kid[i]);
  }
  if (is_empty(name, s->p->norigin)) join(name, weak, s->p->norigin);
  return closed;
}

/* ---------------------------------------------------------------- kernels */
static const kcand *chosen(const namer *s, uint32_t ag) { return &s->k->cand.p[s->choice[ag]]; }
static void in_order(namer *s, uint32_t ag) {
  if (s->base[ag]) return;
  s->base[ag] = new_set(s, s->k->group.n);
  const kcand *c = chosen(s, ag);
  for (uint32_t j = 0; j < c->nchild; j++)
    if (c->child[j] != TARN_NONE) in_order(s, c->child[j]);
  tarn_push(s->k->cx, &s->order, ag);
}
/* The groups of the program's views of a class. */
static void views_of(const namer *s, uint32_t cls, uint32_t depth, uint64_t *to) {
  const kgraph *k = s->k;
  tarn_eg_use u = tarn_eg_uses(k->g, cls);
  while (tarn_eg_next_use(k->g, &u)) {
    uint32_t c = kg_class(k, u.node);
    if (tarn_eg_node_at(k->g, u.node).op != TARN_OP_VIEW || c == TARN_NONE) continue;
    uint32_t group = k->cls.p[c].group;
    if (k->cls.p[c].constant || has(to, group)) continue;
    if (s->first[group]) put(to, group);
    else if (depth) views_of(s, k->cls.p[c].cls, depth - 1, to);
  }
}
/* The groups with terms whose values the class holds, but for those that it is made of. */
static uint64_t *tops_of(const namer *s, uint32_t ag) {
  const kgraph *k = s->k;
  uint64_t *tops = new_set(s, k->group.n);
  uint32_t group = k->cls.p[chosen(s, ag)->kcls].group;
  if (s->first[group]) {
    put(tops, group);
    return tops;
  }
  for (uint32_t c = 0; c < k->cls.n; c++)
    if (k->cls.p[c].group == group && !k->cls.p[c].constant)
      views_of(s, k->cls.p[c].cls, MAX_VIEWS, tops);
  for (uint32_t i = 0; i < k->group.n / 64 + 1; i++) tops[i] &= ~s->stop[ag][i];
  return tops;
}
/* Groups with terms that the kernel's operands are, or come from. */
static void find_stops(namer *s, uint32_t ag) {
  const kgraph *k = s->k;
  const kcand *c = chosen(s, ag);
  uint64_t *stop = s->stop[ag] = new_set(s, k->group.n);
  for (uint32_t j = 0; j < c->nchild; j++)
    if (c->child[j] != TARN_NONE) join(stop, s->base[c->child[j]], k->group.n);
  if (c->node == TARN_NONE) return;
  tarn_eg_node e = tarn_eg_node_at(k->g, c->node);
  for (uint32_t j = 0; j < e.n; j++) {
    uint32_t kid = kg_class(k, e.kids[j]);
    if (kg_looked_up(c->look, j)) continue;
    if (kid != TARN_NONE && !k->cls.p[kid].constant) put(stop, k->cls.p[kid].group);
  }
}
/* A copy between orders of one buffer: the nodes that only move data, from the class on down. */
static void name_copy(const namer *s, uint32_t ag) {
  const kgraph *k = s->k;
  const kclass *c = &k->cls.p[chosen(s, ag)->kcls];
  uint32_t at = s->first[c->group];
  while (at && k->in->class_of(k->in->user, at - 1) != c->cls) at = s->next[at - 1];
  for (const tarn_node *x; at; at = tarn_op_is_view(x->op) ? x->kid[0] + 1 : 0) {
    uint32_t o = s->owner[at - 1];
    x = tarn_term_get(k->L, at - 1);
    if (o && s->moves[o - 1]) put(s->name[ag], o - 1);
  }
}
/* ---------------------------------------------------------------- splits */
static void note_ops(const tarn_lang *L, uint32_t f, bool *ops) {
  if (f == TARN_NONE) return;
  const tarn_fx *x = tarn_fx_get(L, f);
  ops[x->op] = true;
  for (uint32_t i = 0; i < tarn_fx_arity(x->op); i++) note_ops(L, x->kid[i], ops);
}
static void ops_of(const tarn_lang *L, uint32_t fn, bool *ops) {
  const tarn_func *f = tarn_fn_get(L, fn);
  note_ops(L, f->body, ops);
  note_ops(L, f->epi, ops);
  if (f->red != TARN_NONE) note_ops(L, tarn_reducer_get(L, f->red)->merge[0], ops);
}
/* The term has no operator but these. */
static bool made_of(const tarn_lang *L, const tarn_node *x, const bool *has) {
  bool ops[TARN_FX_COUNT] = {false};
  bool all = x->op == TARN_OP_COMPUTE;
  if (tarn_op_info(x->op)->values != TARN_OPV_NEW) return true;
  if (all) ops_of(L, tarn_payload_get(L, x->payload)->id, ops);
  ops[TARN_FX_HOLE] = ops[TARN_FX_CONST] = ops[TARN_FX_CAST] = false;
  for (uint32_t i = 0; i < TARN_FX_COUNT; i++) all = all && (!ops[i] || has[i]);
  return all;
}
typedef struct split {
  const uint64_t *stop;
  bool ops[TARN_FX_COUNT];  /* of the first kernel */
  uint64_t *before, *after; /* origins */
} split;
/* Notes the nodes of a term, whose operands are known: it is part of the rest when it has an
 * operator of the rest, or an operand that is. */
static void note_term(namer *s, const split *w, tarn_term t) {
  const tarn_node *x = tarn_term_get(s->k->L, t);
  bool strong = !only_moves(x->op), late = strong && !made_of(s->k->L, x, w->ops);
  for (uint32_t i = 0; i < x->n; i++) late |= s->late[x->kid[i]];
  for (uint32_t o = strong ? s->owner[t] : 0; o; o = s->same[o - 1])
    put(late ? w->after : w->before, o - 1);
  s->late[t] = late;
}
/* The same of all terms down to the groups where the walk stops, operands first. */
static void note_terms(namer *s, const split *w, tarn_term root) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(s->k->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node *x = tarn_term_get(s->k->L, t);
    uint32_t n = todo.n;
    bool stops = s->constant[t] || (s->group[t] != TARN_NONE && has(w->stop, s->group[t]));
    if (s->seen[t] != s->epoch) {
      s->seen[t] = s->epoch;
      s->late[t] = false;
      for (uint32_t i = 0; i < x->n && !stops; i++)
        if (s->seen[x->kid[i]] != s->epoch) tarn_push(s->k->cx, &todo, x->kid[i]);
      if (todo.n > n) continue;
    }
    todo.n--;
    if (!stops) note_term(s, w, t);
  }
}
/* The names of a kernel, for it and for the one, on another machine, whose result it goes on with.
 * False: nothing tells them apart. */
static bool share_names(namer *s, uint32_t ag, const uint64_t *tops, uint32_t first) {
  const kgraph *k = s->k;
  const kcand *c = chosen(s, first);
  uint32_t n = s->p->norigin;
  while ((c->copy || c->kind == KC_MOVE) && c->child[0] != TARN_NONE) c = chosen(s, c->child[0]);
  if (c->machine == chosen(s, ag)->machine || c->copy || c->kind != KC_NEST) return false;
  split w = {.stop = s->stop[ag], .before = new_set(s, n), .after = new_set(s, n)};
  const tarn_nest *nest = tarn_nest_get(k->L, c->nest);
  for (uint32_t i = 0; i < nest->nstage; i++) ops_of(k->L, nest->stage[i].fn, w.ops);
  s->epoch++;
  for (uint32_t g = 0; g < k->group.n; g++)
    for (uint32_t t = has(tops, g) ? s->first[g] : 0; t; t = s->next[t - 1])
      if (s->seen[t - 1] != s->epoch) note_terms(s, &w, t - 1);
  for (uint32_t i = 0; i < n / 64 + 1; i++) {
    w.before[i] &= s->name[ag][i];
    w.after[i] &= s->name[ag][i];
  }
  if (is_empty(w.before, n) || is_empty(w.after, n)) return false;
  join(s->name[first], w.before, n);
  s->name[ag] = w.after;
  return true;
}
static void name_class(namer *s, uint32_t ag, const uint64_t *tops) {
  const kgraph *k = s->k;
  const kcand *c = chosen(s, ag);
  if (s->known[ag] && c->kind != KC_INPUT) {
    uint64_t *name = new_set(s, s->p->norigin), *stop = new_set(s, k->group.n);
    if (!walk(s, tops, s->stop[ag], name)) { /* what others make is theirs */
      name = new_set(s, s->p->norigin);
      for (uint32_t i = 0; i < k->group.n / 64 + 1; i++)
        stop[i] = (s->made[i] & ~tops[i]) | s->stop[ag][i];
      walk(s, tops, stop, name);
    }
    s->name[ag] = name;
    if (c->copy && is_empty(name, s->p->norigin)) name_copy(s, ag);
  }
  for (uint32_t j = 0; j < c->nchild; j++)
    if (c->child[j] != TARN_NONE && !s->known[c->child[j]] &&
        !(s->known[ag] && share_names(s, ag, tops, c->child[j])))
      join(s->name[c->child[j]], s->name[ag], s->p->norigin);
}

/* ---------------------------------------------------------------- words */
/* Does part s of a path only say what operator follows: "conv1" before Conv, "bn1" before
 * BatchNormalization? */
static bool says(const char *s, size_t n, const char *op) {
  size_t initials = 0, nop = strlen(op);
  if (n >= nop && !strncasecmp(s, op, nop)) return true;
  for (const char *c = op; *c; c++) {
    if (!isupper((unsigned char)*c)) continue;
    if (initials == n || s[initials] != tolower((unsigned char)*c)) return false;
    initials++;
  }
  return initials > 1;
}
/* The parts of a path with dots between them: one that the next repeats ("layer1/layer1.0") is left
 * out, and so is an operator after a part that says it. */
static const char *label_of(tarn_ctx *cx, const tarn_origin *o) {
  tarn_buf b = {.cx = cx};
  const char *last = "";
  size_t nlast = 0;
  tarn_buf_str(&b, "");
  for (const char *s = o->node; *s;) {
    size_t n = strcspn(s, "/");
    const char *next = s + n + strspn(s + n, "/");
    bool repeated = strcspn(next, "/") > n && !strncmp(next, s, n) && next[n] == '.';
    bool op = !*next && n == strlen(o->op) && !strncmp(s, o->op, n) && says(last, nlast, o->op);
    if (n && !repeated && !op) tarn_buf_fmt(&b, "%s%.*s", b.n ? "." : "", (int)n, s);
    last = s, nlast = n, s = next;
  }
  if (!b.n) tarn_buf_str(&b, o->op);
  for (size_t i = 0; i < b.n; i++)
    if (!isalnum((unsigned char)b.p[i]) && !strchr("._-", b.p[i])) b.p[i] = '_';
  return b.n > PIECE ? b.p + b.n - PIECE : b.p;
}
/* Without the part, up to a dot, that it has in common with the first name. */
static const char *beside(const char *first, const char *label) {
  size_t dot = 0;
  for (size_t i = 0; label[i] && label[i] == first[i]; i++)
    if (label[i] == '.') dot = i + 1;
  return label[dot] ? label + dot : label;
}
/* The nodes from the first on, every one or the first and the last alone. */
static const char *chain(tarn_ctx *cx, const tarn_program *p, tarn_nodes nodes, bool whole) {
  tarn_buf b = {.cx = cx};
  const char *first = NULL;
  uint32_t n = nodes.n;
  for (uint32_t i = 0; i < n; i++) {
    if (i && i + 1 < n && !whole) continue;
    const char *label = label_of(cx, &p->origin[nodes.at[i]]);
    if (i && n > 2 && !whole) tarn_buf_fmt(&b, "+%umore", n - 2);
    tarn_buf_fmt(&b, "%s%s", i ? "+" : "", first ? beside(first, label) : label);
    if (!first) first = label;
  }
  return b.p;
}
const char *tarn_nodes_label(tarn_ctx *cx, const tarn_program *p, tarn_nodes nodes) {
  const char *whole = nodes.n <= CHAIN / 2 ? chain(cx, p, nodes, true) : NULL;
  return whole && strlen(whole) <= CHAIN ? whole : chain(cx, p, nodes, false);
}

static tarn_nodes nodes_of(const namer *s, const uint64_t *name) {
  uint32_t *at = TARN_ARRAY(s->k->cx, uint32_t, s->p->norigin + 1);
  tarn_nodes n = {.at = at};
  for (uint32_t o = 0; o < s->p->norigin; o++)
    if (has(name, o)) at[n.n++] = o;
  return n;
}

static void prepare(namer *s) {
  const kgraph *k = s->k;
  tarn_ctx *cx = k->cx;
  for (uint32_t i = 0; i < s->p->nout; i++)
    if (s->p->out[i].term >= s->nterm) s->nterm = s->p->out[i].term + 1;
  s->owner = TARN_ARRAY(cx, uint32_t, s->nterm);
  s->same = TARN_ARRAY(cx, uint32_t, s->p->norigin);
  s->moves = TARN_ARRAY(cx, bool, s->p->norigin);
  s->group = TARN_ARRAY(cx, uint32_t, s->nterm);
  s->constant = TARN_ARRAY(cx, bool, s->nterm);
  s->next = TARN_ARRAY(cx, uint32_t, s->nterm);
  s->seen = TARN_ARRAY(cx, uint32_t, s->nterm);
  s->late = TARN_ARRAY(cx, bool, s->nterm);
  s->first = TARN_ARRAY(cx, uint32_t, k->group.n);
  s->base = TARN_ARRAY(cx, uint64_t *, k->nag);
  s->stop = TARN_ARRAY(cx, uint64_t *, k->nag);
  s->name = TARN_ARRAY(cx, uint64_t *, k->nag);
  s->known = TARN_ARRAY(cx, bool, k->nag);
  s->made = new_set(s, k->group.n);
  for (uint32_t o = 0; o < s->p->norigin; o++) claim(s, o);
  place_terms(s);
}

void kg_names(kgraph *k, const uint32_t *choice) {
  namer s = {.k = k, .choice = choice, .p = k->in->program};
  k->label = TARN_ARRAY(k->cx, const char *, k->nag);
  k->nodes = TARN_ARRAY(k->cx, tarn_nodes, k->nag);
  if (!k->in->class_of || !s.p || !s.p->norigin) return;
  prepare(&s);
  for (uint32_t i = 0; i < k->in->nroot; i++) in_order(&s, k->root_class[i]);
  uint64_t **tops = TARN_ARRAY(k->cx, uint64_t *, k->nag);
  for (uint32_t i = 0; i < s.order.n; i++) {
    uint32_t ag = s.order.p[i];
    find_stops(&s, ag);
    tops[ag] = tops_of(&s, ag);
    s.known[ag] = !is_empty(tops[ag], k->group.n);
    join(s.base[ag], s.known[ag] ? tops[ag] : s.stop[ag], k->group.n);
    join(s.made, tops[ag], k->group.n);
    s.name[ag] = new_set(&s, s.p->norigin);
  }
  for (uint32_t i = s.order.n; i-- > 0;) {
    uint32_t ag = s.order.p[i];
    name_class(&s, ag, tops[ag]);
    if (is_empty(s.name[ag], s.p->norigin)) continue;
    k->nodes[ag] = nodes_of(&s, s.name[ag]);
    k->label[ag] = tarn_nodes_label(k->cx, s.p, k->nodes[ag]);
  }
}
