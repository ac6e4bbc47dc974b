/* Applies matches: conditions, right sides, unions with their reasons. */
#include "egraph/apply.h"

#include <string.h>

static bool fixed_head(const tarn_eg_pat *p, const eg_tnode *t) {
  return p->op_how == TARN_EG_EXACT && p->payload_how == TARN_EG_EXACT && !t->segs;
}

static bool resolve_heads(eg_applier *ap) {
  tarn_egraph *g = ap->g;
  ap->heads.n = ap->heads_at.n = 0;
  for (uint32_t i = 0; i < ap->rs->n; i++) {
    const eg_rule *r = &ap->rs->rule[i];
    if (!eg_push(&g->mem, &ap->heads_at, (uint32_t)ap->heads.n)) return false;
    for (uint32_t t = 0; t < r->n_tnode; t++) {
      const tarn_eg_pat *p = r->tnode[t].pat;
      uint32_t h = NONE;
      if (fixed_head(p, &r->tnode[t])) {
        h = eg_intern_head(g, p->op, p->payload, r->tnode[t].n_ref);
        if (h == NONE) return false;
      }
      if (!eg_push(&g->mem, &ap->heads, h)) return false;
    }
  }
  return true;
}

static bool simple_var(const tarn_eg_rules *rs, const eg_rule *r, uint32_t v) {
  if (r->bare || r->var[v].atom == NONE || r->var[v].slot == SLOT_SELF) return true;
  const eg_test *t = &rs->test[r->atom[r->var[v].atom].test];
  return !t->segs && t->n <= 2 && r->var[v].slot >= 0 && r->var[v].slot < 2;
}

bool eg_is_bulk(const eg_applier *ap, uint32_t rule) {
  const eg_rule *r = &ap->rs->rule[rule];
  if (r->n_cond || r->apply || r->n_segs || r->subsume) return false;
  for (uint32_t v = 0; v < r->n_vars; v++)
    if (!simple_var(ap->rs, r, v)) return false;
  for (uint32_t t = 0; t < r->n_tnode; t++)
    if (ap->heads.p[ap->heads_at.p[rule] + t] == NONE || r->tnode[t].n_ref > 2) return false;
  return true;
}

bool eg_applier_init(eg_applier *ap, tarn_egraph *g, const tarn_eg_rules *rs) {
  ap->g = g, ap->rs = rs;
  if (g->reasons && (ap->set = eg_keep_rules(g, rs)) == NONE) return false;
  ap->ids.n = 0;
  return eg_reader_init(&ap->reader, &g->mem, rs) && resolve_heads(ap) &&
         eg_vec_reserve(&g->mem, &ap->ids, rs->max_tnodes + 1u) &&
         eg_vec_reserve(&g->mem, &ap->block_ids, EG_BLOCK * ((size_t)rs->max_tnodes + 1));
}

void eg_applier_free(eg_applier *ap) {
  eg_mem *m = &ap->g->mem;
  eg_reader_free(&ap->reader, m);
  eg_vec_free(m, &ap->ids), eg_vec_free(m, &ap->kids);
  eg_vec_free(m, &ap->block_ids);
  eg_vec_free(m, &ap->heads), eg_vec_free(m, &ap->heads_at);
}

/* The class of a variable as the matched nodes hold it. */
static uint32_t var_id(const tarn_egraph *g, const eg_rule *r, uint32_t var,
                       const uint32_t *tuple) {
  return r->bare ? tuple[0] : eg_src_class(g, r, r->var[var], tuple);
}

/* ---- conditions ---- */

static eg_outcome conditions(const eg_rule *r, tarn_egraph *g, const tarn_eg_match *m) {
  for (uint32_t i = 0; i < r->n_cond; i++) {
    bool was = g->making;
    g->making = true; /* a condition may not change the graph */
    bool ok = r->cond[i].holds(r->cond[i].user, g, m);
    g->making = was;
    if (!ok) return r->cond[i].reads ? EG_HELD : EG_DROPPED;
  }
  return EG_APPLIED;
}

/* The same of what needs only the nodes. */
static eg_outcome conditions_on_nodes(const eg_rule *r, const uint32_t *tuple) {
  for (uint32_t i = 0; i < r->n_cond; i++)
    if (r->cond[i].may && !r->cond[i].may(r->cond[i].user, tuple))
      return r->cond[i].reads ? EG_HELD : EG_DROPPED;
  return EG_APPLIED;
}

/* ---- right sides ---- */

static bool gather_kids(eg_applier *ap, const eg_rule *r, const eg_tnode *t, const uint32_t *tuple,
                        const tarn_eg_match *m) {
  tarn_egraph *g = ap->g;
  ap->kids.n = 0;
  if (!eg_vec_reserve(&g->mem, &ap->kids, t->n_ref)) return false;
  for (uint32_t i = 0; i < t->n_ref; i++) {
    eg_ref ref = r->ref[t->ref + i];
    if (ref.kind == REF_SEG) {
      tarn_eg_slice s = m->segs[ref.i];
      if (!eg_vec_reserve(&g->mem, &ap->kids, s.n + (size_t)t->n_ref)) return false;
      if (s.n) memcpy(ap->kids.p + ap->kids.n, s.kids, s.n * sizeof *s.kids);
      ap->kids.n += s.n;
      continue;
    }
    ap->kids.p[ap->kids.n++] = ref.kind == REF_VAR ? var_id(g, r, ref.i, tuple) : ap->ids.p[ref.i];
  }
  return true;
}

bool eg_refused(eg_applier *ap) {
  if (ap->g->mem.st != TARN_BAD_INPUT || ap->g->has_conflict) return false;
  tarn_eg_clear_status(ap->g);
  ap->refused++;
  return true;
}

static eg_outcome refused(eg_applier *ap) { return eg_refused(ap) ? EG_DROPPED : EG_STOPPED; }

static eg_outcome make_nodes(eg_applier *ap, uint32_t rule, const uint32_t *tuple,
                             const tarn_eg_match *m) {
  tarn_egraph *g = ap->g;
  const eg_rule *r = &ap->rs->rule[rule];
  const uint32_t *heads = ap->heads.p + ap->heads_at.p[rule];
  for (uint32_t i = 0; i < r->n_tnode; i++) {
    const eg_tnode *t = &r->tnode[i];
    uint32_t head = heads[i], payload = t->pat->payload;
    if (!gather_kids(ap, r, t, tuple, m)) return EG_STOPPED;
    if (head == NONE) {
      if (t->pat->payload_how == TARN_EG_BIND) payload = m->payloads[payload];
      uint32_t op = t->pat->op_how == TARN_EG_BIND ? m->ops[t->pat->op] : t->pat->op;
      uint32_t *number = t->pat->payload_how == TARN_EG_COMPUTED ? &payload
                         : t->pat->op_how == TARN_EG_COMPUTED    ? &op
                                                                 : NULL;
      if (number && !t->pat->compute(t->pat->user, g, m, number))
        return g->mem.st == TARN_OK ? EG_DROPPED : EG_STOPPED;
      head = eg_intern_head(g, op, payload, (uint32_t)ap->kids.n);
      if (head == NONE) return EG_STOPPED;
    }
    uint32_t id = eg_add_head(g, head, ap->kids.p, (uint32_t)ap->kids.n, false);
    if (id == NONE) return refused(ap);
    ap->ids.p[i] = id;
  }
  return EG_APPLIED;
}

/* ---- unions ---- */

/* The record of a union by a rule: what internal.h says, the tuple, the ids of the right-side
 * nodes. See explain.c. */
bool eg_log_rule(eg_applier *ap, uint32_t rule, uint32_t part, const uint32_t *tuple,
                 const uint32_t *made, uint32_t n_made) {
  tarn_egraph *g = ap->g;
  uint32_t words = ap->rs->rule[rule].n_words, n = 1 + words + n_made;
  uint32_t code = part == PART_FUNCTION ? LOG_FUNCTION : part < LOG_FUNCTION ? part : UINT32_MAX;
  bool small = n < 1u << 8 && code != UINT32_MAX && rule < 1u << 12 && ap->set < 1u << 6;
  if (!small) n += 3;
  if (!eg_log_reserve(g, n)) return false;
  uint32_t *p = g->log.p + g->log.n;
  g->log.n += n;
  if (small) *p++ = LOG_RULE | n << 2 | code << 10 | rule << 14 | ap->set << 26;
  else p[0] = LOG_RULE, p[1] = n, p[2] = ap->set, p[3] = rule | part << 20, p += 4;
  for (uint32_t i = 0; i < words; i++) *p++ = tuple[i];
  for (uint32_t i = 0; i < n_made; i++) *p++ = made[i];
  return true;
}

eg_outcome eg_join_ids(eg_applier *ap, uint32_t rule, uint32_t part, const uint32_t *tuple,
                       const uint32_t *made, uint32_t n_made, uint32_t from, uint32_t to) {
  tarn_egraph *g = ap->g;
  bool same = eg_find_mut(g, from) == eg_find_mut(g, to);
  if (same && (g->reasons != TARN_EG_REASONS_ALL || from == to)) return EG_APPLIED;
  size_t at = g->log.n;
  if (g->reasons && !eg_log_rule(ap, rule, part, tuple, made, n_made)) return EG_STOPPED;
  int j = same ? 0 : eg_join(g, from, to, ap->rs->rule[rule].id, 0);
  if (j < 0) {
    eg_log_take_back(g, at);
    return EG_STOPPED;
  }
  ap->unions += (uint64_t)j;
  return EG_APPLIED;
}

static eg_outcome join_part(eg_applier *ap, uint32_t rule, uint32_t k, const uint32_t *tuple) {
  tarn_egraph *g = ap->g;
  const eg_rule *r = &ap->rs->rule[rule];
  const eg_part *part = &r->part[k];
  uint32_t to = part->result.kind == REF_NODE ? ap->ids.p[part->result.i]
                                              : var_id(g, r, part->result.i, tuple);
  uint32_t from = part->atom != NONE  ? tuple[part->atom]
                  : part->var == NONE ? tuple[0]
                                      : var_id(g, r, part->var, tuple);
  return eg_join_ids(ap, rule, k, tuple, ap->ids.p, r->n_tnode, from, to);
}

static eg_outcome apply_function(eg_applier *ap, uint32_t rule, const uint32_t *tuple,
                                 const tarn_eg_match *m) {
  tarn_egraph *g = ap->g;
  const eg_rule *r = &ap->rs->rule[rule];
  uint32_t result = NONE;
  int n = r->apply(r->user, g, m, &result);
  if (n < 0 || g->mem.st != TARN_OK) {
    if (g->mem.st == TARN_OK) eg_fail(&g->mem, TARN_BAD_INPUT, "egraph: rule %s failed", r->name);
    return refused(ap);
  }
  ap->unions += (uint64_t)n;
  if (result == NONE) return EG_APPLIED;
  if (result >= g->n_ids) {
    eg_fail(&g->mem, TARN_USAGE, "egraph: rule %s returned no id", r->name);
    return EG_STOPPED;
  }
  return eg_join_ids(ap, rule, PART_FUNCTION, tuple, &result, 1, tuple[0], result);
}

eg_outcome eg_apply(eg_applier *ap, uint32_t rule, const uint32_t *tuple) {
  tarn_egraph *g = ap->g;
  const eg_rule *r = &ap->rs->rule[rule];
  tarn_eg_match m = {0};
  eg_outcome o = conditions_on_nodes(r, tuple);
  if (o != EG_APPLIED) return o;
  if (r->n_cond || r->apply || r->n_segs || r->n_payloads || r->n_ops || r->n_tnode > 0) {
    bool plain = !r->n_cond && !r->apply && !r->n_segs && !r->n_payloads && !r->n_ops;
    for (uint32_t t = 0; plain && t < r->n_tnode; t++)
      plain = ap->heads.p[ap->heads_at.p[rule] + t] != NONE;
    if (!plain && !eg_read(&ap->reader, g, r, rule, tuple, &m)) return EG_STOPPED;
  }
  o = conditions(r, g, &m);
  if (o != EG_APPLIED) return o;
  if (r->apply) {
    o = apply_function(ap, rule, tuple, &m);
  } else {
    o = make_nodes(ap, rule, tuple, &m);
    for (uint32_t k = 0; o == EG_APPLIED && k < r->n_part; k++) o = join_part(ap, rule, k, tuple);
  }
  if (o == EG_APPLIED && r->subsume && !r->bare) tarn_eg_subsume(g, tuple[0]);
  return o;
}
