/* Compiling rules: pattern trees to atoms, plans and templates. */
#include "egraph/pattern.h"

#include <string.h>

typedef struct eg_chunk {
  struct eg_chunk *next;
  size_t size;
  max_align_t data[];
} eg_chunk;

/* Zeroed; lives as long as the set. */
static void *rs_new(tarn_eg_rules *rs, size_t count, size_t each) {
  size_t bytes = sizeof(eg_chunk) + (count ? count : 1) * each;
  eg_chunk *c = eg_resize(&rs->mem, NULL, 0, bytes);
  if (!c) return NULL;
  memset(c, 0, bytes);
  c->next = rs->chunks, c->size = bytes;
  rs->chunks = c;
  return c->data;
}

tarn_eg_rules *tarn_eg_rules_new(const tarn_allocator *allocator) {
  eg_mem m;
  eg_mem_init(&m, allocator);
  tarn_eg_rules *rs = eg_resize(&m, NULL, 0, sizeof *rs);
  if (!rs) return NULL;
  memset(rs, 0, sizeof *rs);
  rs->mem = m;
  atomic_init(&rs->refs, 1);
  return rs;
}

void tarn_eg_rules_free(tarn_eg_rules *rs) {
  if (!rs || atomic_fetch_sub(&rs->refs, 1) != 1) return;
  eg_mem *m = &rs->mem;
  for (eg_chunk *c = rs->chunks, *next; c; c = next) {
    next = c->next;
    eg_release(m, c, c->size);
  }
  eg_release(m, rs->rule, rs->rule_cap * sizeof *rs->rule);
  eg_release(m, rs->test, rs->test_cap * sizeof *rs->test);
  tarn_allocator a = m->a;
  a.realloc(a.user, rs, sizeof *rs, 0);
}

uint32_t eg_keep_rules(tarn_egraph *g, const tarn_eg_rules *rs) {
  for (uint32_t i = 0; i < g->n_sets; i++)
    if (g->sets[i] == rs) return i;
  if (!eg_grow(&g->mem, (void **)&g->sets, &g->sets_cap, g->n_sets + 1u, sizeof *g->sets))
    return NONE;
  tarn_eg_rules *keep = (tarn_eg_rules *)(uintptr_t)rs; /* only the count of owners changes */
  atomic_fetch_add(&keep->refs, 1);
  g->sets[g->n_sets] = keep;
  return g->n_sets++;
}

const char *tarn_eg_rules_message(const tarn_eg_rules *rs) {
  return rs->mem.st == TARN_OK ? "" : rs->mem.msg;
}
tarn_status tarn_eg_rules_status(const tarn_eg_rules *rs) { return rs->mem.st; }
uint32_t tarn_eg_rules_count(const tarn_eg_rules *rs) { return rs->n; }
const char *tarn_eg_rule_name(const tarn_eg_rules *rs, uint32_t rule) {
  return rs->rule[rule].name;
}

/* ---- checking and counting ---- */

enum { MAX_DEPTH = 200, MAX_VAR = 1 << 16, MAX_KIDS = 1 << 20 };

typedef struct build {
  tarn_eg_rules *rs;
  const tarn_eg_rule *in;
  eg_rule *r;
  uint32_t n_elem;
  /* while making one plan: where variables are known from; atom NONE = not yet */
  eg_src *var, *seg;
  uint32_t *payload, *op;
  eg_instr *code;
  uint32_t n_code;
  uint32_t n_ref, n_place;
} build;

#define COMPLAIN(b, ...) eg_fail(&(b)->rs->mem, TARN_USAGE, __VA_ARGS__)
#define REFUSE(b, ...)   (COMPLAIN(b, __VA_ARGS__), false)

static bool note_var(build *b, uint32_t *count, uint32_t v) {
  if (v >= MAX_VAR) return REFUSE(b, "rule %s: variable number %u is too big", b->r->name, v);
  if (v >= *count) *count = v + 1;
  return true;
}

static bool count_left(build *b, const tarn_eg_pat *p, uint32_t depth) {
  eg_rule *r = b->r;
  if (!p || depth > MAX_DEPTH) return REFUSE(b, "rule %s: pattern missing or too deep", r->name);
  if (p->kind == TARN_EG_PAT_VAR) return note_var(b, &r->n_vars, p->var);
  if (p->kind == TARN_EG_PAT_SEG)
    return depth ? note_var(b, &r->n_segs, p->var)
                 : REFUSE(b, "rule %s: a segment is no root", r->name);
  if (p->payload_how == TARN_EG_COMPUTED || p->op_how == TARN_EG_COMPUTED ||
      p->op_how == TARN_EG_ANY)
    return REFUSE(b, "rule %s: this op or payload cannot be on a left side", r->name);
  if (p->var != NONE && !note_var(b, &r->n_vars, p->var)) return false;
  if (p->op_how == TARN_EG_BIND && !note_var(b, &r->n_ops, p->op)) return false;
  if (p->payload_how == TARN_EG_BIND && !note_var(b, &r->n_payloads, p->payload)) return false;
  if (p->n > MAX_KIDS) return REFUSE(b, "rule %s: too many kids", r->name);
  r->n_atoms++, b->n_elem += p->n;
  for (uint32_t i = 0; i < p->n; i++) {
    if (!count_left(b, p->kids[i], depth + 1)) return false;
    if (i && p->kids[i]->kind == TARN_EG_PAT_SEG && p->kids[i - 1]->kind == TARN_EG_PAT_SEG)
      return REFUSE(b, "rule %s: two segments side by side", r->name);
  }
  return true;
}

/* ---- atoms ---- */

static uint32_t share_test(build *b, const tarn_eg_pat *p, uint32_t fixed, bool segs) {
  tarn_eg_rules *rs = b->rs;
  eg_test t = {.op_how = p->op_how,
               .payload_how = p->payload_how,
               .test = p->test,
               .user = p->user,
               .n = fixed,
               .segs = segs};
  t.op = p->op_how == TARN_EG_EXACT ? p->op : 0;
  t.payload = p->payload_how == TARN_EG_EXACT ? p->payload : 0;
  t.ops = t.op_how == TARN_EG_EXACT ? eg_op_bit(t.op) : ANY_OP;
  for (uint32_t i = 0; i < rs->n_tests; i++) {
    const eg_test *u = &rs->test[i];
    if (u->op_how == t.op_how && u->payload_how == t.payload_how && u->op == t.op &&
        u->payload == t.payload && u->test == t.test && u->user == t.user && u->n == t.n &&
        u->segs == t.segs)
      return i;
  }
  if (!eg_grow(&rs->mem, (void **)&rs->test, &rs->test_cap, rs->n_tests + 1u, sizeof t))
    return NONE;
  rs->test[rs->n_tests] = t;
  return rs->n_tests++;
}

static int32_t slot_code(const tarn_eg_pat *p, uint32_t i, uint32_t before, uint32_t segs) {
  if (!before) return (int32_t)i;
  if (before == segs) return SLOT_END - (int32_t)(p->n - 1 - i);
  return SLOT_ELEM + (int32_t)i;
}

static bool fill_atom(build *b, const tarn_eg_pat *p, uint32_t parent, int32_t slot,
                      uint32_t block) {
  eg_rule *r = b->r;
  uint32_t me = r->n_atoms++;
  eg_atom *a = &r->atom[me];
  uint32_t segs = 0, before = 0, fixed = 0;
  for (uint32_t i = 0; i < p->n; i++) segs += p->kids[i]->kind == TARN_EG_PAT_SEG;
  *a = (eg_atom){.parent = parent,
                 .slot = slot,
                 .block = block,
                 .n_segs = segs,
                 .n_fixed = p->n - segs,
                 .choice = NONE,
                 .elem = b->n_elem,
                 .n_elem = p->n};
  a->test = share_test(b, p, p->n - segs, segs > 0);
  if (a->test == NONE) return false;
  if (segs > 1) a->choice = r->n_words, r->n_words += segs - 1;
  b->n_elem += p->n;
  uint32_t first = a->elem;
  for (uint32_t i = 0; i < p->n; i++) {
    const tarn_eg_pat *k = p->kids[i];
    r->elem[first + i] = (eg_elem){k->kind, k->var, fixed, before};
    if (k->kind == TARN_EG_PAT_NODE) {
      r->elem[first + i].ref = r->n_atoms;
      if (!fill_atom(b, k, me, slot_code(p, i, before, segs), block)) return false;
    }
    if (k->kind == TARN_EG_PAT_SEG) before++;
    else fixed++;
  }
  return true;
}

/* ---- plans ---- */

static bool is_leaf(const build *b, uint32_t atom) {
  const eg_test *t = &b->rs->test[b->r->atom[atom].test];
  return t->n == 0 && !t->segs && t->op_how == TARN_EG_EXACT && t->payload_how == TARN_EG_EXACT;
}

static void emit(build *b, eg_opcode code, uint32_t a, eg_src x, eg_src y) {
  b->code[b->n_code++] = (eg_instr){.code = code, .a = a, .x = x, .y = y};
}

static void meet_var(build *b, uint32_t v, eg_src here) {
  if (b->var[v].atom == NONE) b->var[v] = here;
  else emit(b, I_EQ, 0, b->var[v], here);
}

static void meet_number(build *b, uint32_t *known, eg_opcode code, uint32_t atom) {
  eg_src x = {*known, 0}, y = {atom, 0};
  if (*known == NONE) *known = atom;
  else emit(b, code, 0, x, y);
}

static void plan_atom(build *b, const tarn_eg_pat *p, uint32_t atom) {
  const eg_rule *r = b->r;
  const eg_atom *a = &r->atom[atom];
  eg_src none = {0, 0};
  if (p->op_how == TARN_EG_BIND) meet_number(b, &b->op[p->op], I_OP, atom);
  if (p->payload_how == TARN_EG_BIND) meet_number(b, &b->payload[p->payload], I_PAYLOAD, atom);
  if (a->n_segs > 1) emit(b, I_SPLIT, atom, none, none);
  uint32_t before = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const tarn_eg_pat *k = p->kids[i];
    eg_src here = {atom, slot_code(p, i, before, a->n_segs)}, elem = {atom, (int32_t)i};
    if (k->kind == TARN_EG_PAT_VAR) meet_var(b, k->var, here);
    if (k->kind == TARN_EG_PAT_NODE && k->var != NONE) meet_var(b, k->var, here);
    if (k->kind != TARN_EG_PAT_SEG) continue;
    before++;
    if (b->seg[k->var].atom == NONE) b->seg[k->var] = elem;
    else emit(b, I_SEG, 0, b->seg[k->var], elem);
  }
  for (int leaves = 1; leaves >= 0; leaves--)
    for (uint32_t i = 0; i < p->n; i++) {
      const eg_elem *e = &r->elem[a->elem + i];
      if (e->kind != TARN_EG_PAT_NODE || is_leaf(b, e->ref) != (bool)leaves) continue;
      eg_src from = {atom, r->atom[e->ref].slot};
      emit(b, leaves ? I_LEAF : I_ENUM, e->ref, from, none);
      plan_atom(b, p->kids[i], e->ref);
    }
}

/* Moves the first equality on a kid of an atom just enumerated into the enumeration. */
static void fuse_keys(build *b) {
  uint32_t to = 0;
  for (uint32_t i = 0; i < b->n_code; i++) {
    eg_instr in = b->code[i];
    eg_instr *last = to ? &b->code[to - 1] : NULL;
    if (in.code == I_EQ && last && last->code == I_ENUM) {
      const eg_test *t = &b->rs->test[b->r->atom[last->a].test];
      bool y = in.y.atom == last->a && in.x.atom != last->a;
      eg_src kid = y ? in.y : in.x, other = y ? in.x : in.y;
      if (kid.atom == last->a && other.atom != last->a && (kid.slot == 0 || kid.slot == 1) &&
          !t->segs && t->n <= 2) {
        last->code = I_KEYED, last->key = (uint32_t)kid.slot, last->y = other;
        continue;
      }
    }
    b->code[to++] = in;
  }
  b->n_code = to;
}

static bool is_near(const build *b, eg_src s) {
  if (s.atom >= b->r->n_atoms || (s.slot != 0 && s.slot != 1)) return false;
  const eg_test *t = &b->rs->test[b->r->atom[s.atom].test];
  return t->n <= 2 && !t->segs;
}

static void note_near(build *b) {
  for (uint32_t i = 0; i < b->n_code; i++) {
    eg_instr *in = &b->code[i];
    in->x_near = is_near(b, in->x), in->y_near = is_near(b, in->y);
  }
}

/* See eg_rule.group_by. */
static int32_t group_by(const build *b, uint32_t root) {
  const eg_test *t = &b->rs->test[b->r->atom[root].test];
  for (uint32_t i = 0; i < b->n_code && t->n <= 2 && !t->segs; i++) {
    const eg_instr *in = &b->code[i];
    if (in->code == I_KEYED && in->x.atom == root && (in->x.slot == 0 || in->x.slot == 1))
      return in->x.slot;
  }
  return -1;
}

static uint32_t root_atom(const eg_rule *r, uint32_t block) {
  for (uint32_t a = 0; a < r->n_atoms; a++)
    if (r->atom[a].block == block && r->atom[a].parent == NONE) return a;
  return NONE;
}

static void forget(build *b) {
  const eg_rule *r = b->r;
  for (uint32_t i = 0; i < r->n_vars; i++) b->var[i].atom = NONE;
  for (uint32_t i = 0; i < r->n_segs; i++) b->seg[i].atom = NONE;
  for (uint32_t i = 0; i < r->n_payloads; i++) b->payload[i] = NONE;
  for (uint32_t i = 0; i < r->n_ops; i++) b->op[i] = NONE;
  b->n_code = 0;
}

/* All atoms of the only root, from it downwards. */
static void plan_tree(build *b) {
  const tarn_eg_root *root = &b->in->lhs[0];
  eg_src self = {0, SLOT_SELF};
  emit(b, I_ROOT, 0, self, self);
  if (root->var != NONE) meet_var(b, root->var, self);
  if (root->pat->var != NONE && root->pat->var != root->var) meet_var(b, root->pat->var, self);
  plan_atom(b, root->pat, 0);
  fuse_keys(b);
  note_near(b);
}

/* ---- of several roots: each atom by itself ----
 * What is met has a number: variables, the classes of inner nodes that have no name, payloads,
 * operators, segments. */

static uint32_t class_name(const build *b, const tarn_eg_pat *p, uint32_t atom) {
  return p->var != NONE ? p->var : b->r->n_vars + atom;
}

static void meet(build *b, eg_opcode how, uint32_t what, eg_src here) {
  emit(b, I_MEET, what, here, here);
  b->code[b->n_code - 1].key = how;
}

static void meet_class(build *b, uint32_t v, eg_src here) {
  eg_rule *r = b->r;
  meet(b, I_EQ, v, here);
  if (here.slot == SLOT_SELF || (here.slot >= 0 && here.slot < SLOT_ELEM))
    r->place[b->n_place++] = (eg_place){v, here.slot};
  if (v < r->n_vars && b->var[v].atom == NONE) b->var[v] = here;
}

static void meet_kids(build *b, const tarn_eg_pat *p, uint32_t atom) {
  const eg_rule *r = b->r;
  const eg_atom *a = &r->atom[atom];
  uint32_t segs = r->n_vars + r->n_atoms + r->n_payloads + r->n_ops, before = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const tarn_eg_pat *k = p->kids[i];
    eg_src here = {atom, slot_code(p, i, before, a->n_segs)}, elem = {atom, (int32_t)i};
    if (k->kind == TARN_EG_PAT_VAR) meet_class(b, k->var, here);
    if (k->kind == TARN_EG_PAT_NODE)
      meet_class(b, class_name(b, k, r->elem[a->elem + i].ref), here);
    if (k->kind != TARN_EG_PAT_SEG) continue;
    before++;
    meet(b, I_SEG, segs + k->var, elem);
    if (b->seg[k->var].atom == NONE) b->seg[k->var] = elem;
  }
}

static void join_head(build *b, const tarn_eg_pat *p, uint32_t atom) {
  uint32_t payloads = b->r->n_vars + b->r->n_atoms, ops = payloads + b->r->n_payloads;
  eg_src here = {atom, 0};
  if (p->op_how == TARN_EG_BIND) {
    meet(b, I_OP, ops + p->op, here);
    if (b->op[p->op] == NONE) b->op[p->op] = atom;
  }
  if (p->payload_how == TARN_EG_BIND) {
    meet(b, I_PAYLOAD, payloads + p->payload, here);
    if (b->payload[p->payload] == NONE) b->payload[p->payload] = atom;
  }
}

static bool keep_plan(build *b, uint32_t plan) {
  eg_instr *code = rs_new(b->rs, b->n_code, sizeof *code);
  if (!code) return false;
  memcpy(code, b->code, b->n_code * sizeof *code);
  b->r->plan[plan] = code, b->r->plan_len[plan] = b->n_code;
  return true;
}

static bool plan_join(build *b, const tarn_eg_pat *p, uint32_t atom) {
  const eg_rule *r = b->r;
  const eg_atom *a = &r->atom[atom];
  eg_src self = {atom, SLOT_SELF};
  uint32_t root = a->parent == NONE ? b->in->lhs[a->block].var : NONE;
  b->n_code = 0;
  r->place_at[atom] = b->n_place;
  emit(b, I_ROOT, atom, self, self);
  if (root != NONE) meet_class(b, root, self);
  if (p->var != root || a->parent != NONE)
    if (p->var != NONE || a->parent != NONE) meet_class(b, class_name(b, p, atom), self);
  join_head(b, p, atom);
  if (a->n_segs > 1) emit(b, I_SPLIT, atom, self, self);
  meet_kids(b, p, atom);
  bool ok = keep_plan(b, atom);
  r->place_at[atom + 1] = b->n_place;
  for (uint32_t i = 0; ok && i < p->n; i++)
    if (p->kids[i]->kind == TARN_EG_PAT_NODE)
      ok = plan_join(b, p->kids[i], r->elem[a->elem + i].ref);
  return ok;
}

static bool plan_joined(build *b) {
  eg_rule *r = b->r;
  uint32_t n = b->in->n_lhs;
  r->place = rs_new(b->rs, 2 * r->n_atoms + b->n_elem, sizeof *r->place);
  r->place_at = rs_new(b->rs, r->n_atoms + 1u, sizeof *r->place_at);
  r->n_met = r->n_vars + r->n_atoms + r->n_payloads + r->n_ops + r->n_segs;
  if (!r->place || !r->place_at) return false;
  for (uint32_t k = 0; k < n; k++)
    if (!plan_join(b, b->in->lhs[k].pat, root_atom(r, k))) return false;
  return true;
}

static bool make_plans(build *b) {
  tarn_eg_rules *rs = b->rs;
  eg_rule *r = b->r;
  uint32_t max = 4 * (r->n_atoms + b->in->n_lhs) + 2 * b->n_elem + 4;
  r->joined = b->in->n_lhs > 1;
  r->n_plans = r->joined ? r->n_atoms : 1;
  b->var = rs_new(rs, r->n_vars, sizeof *b->var), b->seg = rs_new(rs, r->n_segs, sizeof *b->seg);
  b->payload = rs_new(rs, r->n_payloads, sizeof *b->payload),
  b->op = rs_new(rs, r->n_ops, sizeof *b->op);
  b->code = rs_new(rs, max, sizeof *b->code);
  r->plan = rs_new(rs, r->n_plans, sizeof *r->plan);
  r->plan_len = rs_new(rs, r->n_plans, sizeof *r->plan_len);
  if (!b->var || !b->seg || !b->payload || !b->op || !b->code || !r->plan || !r->plan_len)
    return false;
  forget(b);
  r->group_by = -1;
  if (!r->joined) {
    plan_tree(b);
    r->group_by = group_by(b, 0);
  }
  if (r->joined ? !plan_joined(b) : !keep_plan(b, 0)) return false;
  r->var = b->var, r->seg = b->seg, r->payload = b->payload, r->op = b->op;
  return true;
}

static bool make_left(build *b) {
  tarn_eg_rules *rs = b->rs;
  eg_rule *r = b->r;
  const tarn_eg_rule *in = b->in;
  for (uint32_t i = 0; i < in->n_lhs; i++) {
    if (!count_left(b, in->lhs[i].pat, 0)) return false;
    if (in->lhs[i].var != NONE && !note_var(b, &r->n_vars, in->lhs[i].var)) return false;
    if (in->lhs[i].pat->kind == TARN_EG_PAT_VAR && (in->n_lhs > 1 || in->lhs[i].var != NONE))
      return REFUSE(b, "rule %s: a bare variable must be the only root", r->name);
  }
  if (in->lhs[0].pat->kind == TARN_EG_PAT_VAR) {
    r->bare = true, r->n_words = 1;
    r->var = rs_new(rs, r->n_vars, sizeof *r->var);
    if (!r->var) return false;
    for (uint32_t i = 0; i < r->n_vars; i++) r->var[i].atom = NONE;
    r->var[in->lhs[0].pat->var] = (eg_src){0, SLOT_SELF};
    return true;
  }
  r->atom = rs_new(rs, r->n_atoms, sizeof *r->atom);
  r->elem = rs_new(rs, b->n_elem, sizeof *r->elem);
  r->root_var = rs_new(rs, in->n_lhs, sizeof *r->root_var);
  if (!r->atom || !r->elem || !r->root_var) return false;
  for (uint32_t i = 0; i < in->n_lhs; i++)
    r->root_var[i] = in->lhs[i].var != NONE ? in->lhs[i].var : in->lhs[i].pat->var;
  r->n_words = r->n_atoms;
  r->n_atoms = b->n_elem = 0;
  for (uint32_t i = 0; i < in->n_lhs; i++)
    if (!fill_atom(b, in->lhs[i].pat, NONE, 0, i)) return false;
  return make_plans(b);
}

/* ---- right sides ---- */

static bool bound_var(const build *b, uint32_t v) {
  return v < b->r->n_vars && b->r->var[v].atom != NONE;
}

static bool count_right(build *b, const tarn_eg_pat *p, uint32_t depth) {
  eg_rule *r = b->r;
  if (!p || depth > MAX_DEPTH) return REFUSE(b, "rule %s: right side missing or too deep", r->name);
  if (p->kind == TARN_EG_PAT_VAR)
    return bound_var(b, p->var) ||
           REFUSE(b, "rule %s: variable %u of the right side is not bound", r->name, p->var);
  if (p->kind == TARN_EG_PAT_SEG)
    return (depth && p->var < r->n_segs && !r->bare && r->seg[p->var].atom != NONE) ||
           REFUSE(b, "rule %s: segment %u of the right side is not bound", r->name, p->var);
  if (p->op_how == TARN_EG_BIND && (p->op >= r->n_ops || r->op[p->op] == NONE))
    return REFUSE(b, "rule %s: op variable %u of the right side is not bound", r->name, p->op);
  if (p->payload_how == TARN_EG_BIND &&
      (p->payload >= r->n_payloads || r->payload[p->payload] == NONE))
    return REFUSE(b, "rule %s: payload variable %u of the right side is not bound", r->name,
                  p->payload);
  bool op = p->op_how == TARN_EG_COMPUTED, payload = p->payload_how == TARN_EG_COMPUTED;
  if (p->op_how == TARN_EG_ANY || p->payload_how == TARN_EG_ANY || (op && payload))
    return REFUSE(b, "rule %s: this op or payload cannot be on a right side", r->name);
  if ((op || payload) && !p->compute)
    return REFUSE(b, "rule %s: a computed op or payload without a function", r->name);
  r->n_tnode++, b->n_ref += p->n;
  for (uint32_t i = 0; i < p->n; i++)
    if (!count_right(b, p->kids[i], depth + 1)) return false;
  return true;
}

static eg_ref fill_right(build *b, const tarn_eg_pat *p, tarn_eg_pat *copies) {
  eg_rule *r = b->r;
  if (p->kind != TARN_EG_PAT_NODE)
    return (eg_ref){p->kind == TARN_EG_PAT_VAR ? REF_VAR : REF_SEG, p->var};
  uint32_t first = b->n_ref;
  bool segs = false;
  b->n_ref += p->n;
  for (uint32_t i = 0; i < p->n; i++) {
    r->ref[first + i] = fill_right(b, p->kids[i], copies);
    segs |= r->ref[first + i].kind == REF_SEG;
  }
  uint32_t t = r->n_tnode++;
  copies[t] = *p;
  copies[t].kids = NULL;
  r->tnode[t] = (eg_tnode){&copies[t], first, p->n, segs};
  return (eg_ref){REF_NODE, t};
}

static uint32_t left_root_of(const build *b, uint32_t var) {
  if (b->r->bare) return NONE;
  if (var == NONE) return root_atom(b->r, 0);
  for (uint32_t i = 0; i < b->in->n_lhs; i++)
    if (b->in->lhs[i].var == var || b->in->lhs[i].pat->var == var) return root_atom(b->r, i);
  return NONE;
}

static bool make_right(build *b) {
  tarn_eg_rules *rs = b->rs;
  eg_rule *r = b->r;
  const tarn_eg_rule *in = b->in;
  for (uint32_t i = 0; i < in->n_rhs; i++) {
    if (!count_right(b, in->rhs[i].pat, 0)) return false;
    if (in->rhs[i].var != NONE && !bound_var(b, in->rhs[i].var))
      return REFUSE(b, "rule %s: variable %u of the right side is not bound", r->name,
                    in->rhs[i].var);
  }
  tarn_eg_pat *copies = rs_new(rs, r->n_tnode, sizeof *copies);
  r->tnode = rs_new(rs, r->n_tnode, sizeof *r->tnode);
  r->ref = rs_new(rs, b->n_ref, sizeof *r->ref);
  r->part = rs_new(rs, in->n_rhs, sizeof *r->part);
  if (!copies || !r->tnode || !r->ref || !r->part) return false;
  r->n_tnode = b->n_ref = 0;
  for (uint32_t i = 0; i < in->n_rhs; i++)
    r->part[i] = (eg_part){in->rhs[i].var, fill_right(b, in->rhs[i].pat, copies),
                           left_root_of(b, in->rhs[i].var)};
  r->n_part = in->n_rhs;
  return true;
}

/* ---- */

static bool copy_rest(build *b) {
  eg_rule *r = b->r;
  const tarn_eg_rule *in = b->in;
  const char *name = in->name ? in->name : "";
  char *copy = rs_new(b->rs, strlen(name) + 1, 1);
  r->cond = rs_new(b->rs, in->n_conditions, sizeof *r->cond);
  if (!copy || !r->cond) return false;
  memcpy(copy, name, strlen(name) + 1);
  if (in->n_conditions) memcpy(r->cond, in->conditions, in->n_conditions * sizeof *r->cond);
  r->name = copy, r->id = in->id, r->n_cond = in->n_conditions;
  r->apply = in->apply, r->user = in->user;
  r->match_limit = in->match_limit, r->ban_length = in->ban_length;
  r->subsume = in->subsume, r->again = in->again;
  return true;
}

static void raise_to(uint32_t *max, uint32_t n) {
  if (n > *max) *max = n;
}

uint32_t tarn_eg_rules_add(tarn_eg_rules *rs, const tarn_eg_rule *rule) {
  rs->mem.st = TARN_OK;
  eg_rule r = {.name = rule->name ? rule->name : ""};
  build b = {.rs = rs, .in = rule, .r = &r};
  if (!rule->n_lhs || (!rule->n_rhs && !rule->apply) || (rule->n_rhs && rule->apply) ||
      rule->id >> 31) {
    COMPLAIN(&b, "rule %s: needs a left side, and a right side or a function; ids are below 2^31",
             r.name);
    return NONE;
  }
  if (!eg_grow(&rs->mem, (void **)&rs->rule, &rs->rule_cap, rs->n + 1u, sizeof r)) return NONE;
  if (!copy_rest(&b) || !make_left(&b) || !make_right(&b)) return NONE;
  raise_to(&rs->max_words, r.n_words), raise_to(&rs->max_vars, r.n_vars);
  raise_to(&rs->max_met, r.n_met);
  raise_to(&rs->max_payloads, r.n_payloads), raise_to(&rs->max_ops, r.n_ops);
  raise_to(&rs->max_segs, r.n_segs), raise_to(&rs->max_tnodes, r.n_tnode);
  rs->rule[rs->n] = r;
  return rs->n++;
}
