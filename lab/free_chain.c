/* Proofs of free terms as text: the chain from one term to another, and lemmas for what conditions
 * and the other roots of its rules ask to be equal.
 *
 * Each step has the whole term after it, as long as these do not take too much room. Then a step
 * has what it has made and the way there from the step before, and subterms are named, so that a
 * chain takes what its steps change and not the square of its length. */
#include "lab/free.h"
#include <stdio.h>
#include <string.h>

enum { PROOF_STEPS = 100000, MOST_LEMMAS = 200 };
/* Whole terms of a chain take so many bytes at most, a subterm in place of one so many. */
enum { WHOLE_TEXT = 1 << 18, PART_TEXT = 200 };

/* ---- terms ---- */
typedef struct printing {
  uint32_t id, next; /* the kid that comes next */
} printing;
void tarn_free_print_term(const tarn_ruleset *rs, tarn_buf *b, tarn_free_node_at *at,
                          const void *from, uint32_t id, size_t most) {
  TARN_VEC(printing) open = {0};
  size_t start = b->n;
  printing top = {id, 0};
  for (tarn_push(rs->cx, &open, top); open.n;) {
    printing *p = &open.p[open.n - 1];
    tarn_eg_node e = at(from, p->id);
    if (!p->next) tarn_buf_str(b, e.n ? "(" : ""), tarn_free_print(rs, b, e.op);
    if (most && b->n - start > most) {
      tarn_buf_str(b, " …");
      return;
    }
    if (p->next == e.n) {
      tarn_buf_str(b, e.n ? ")" : "");
      open.n--;
      continue;
    }
    tarn_buf_str(b, " ");
    printing kid = {e.kids[p->next++], 0};
    tarn_push(rs->cx, &open, kid);
  }
}
static tarn_eg_node proof_at(const void *from, uint32_t id) { return tarn_eg_proof_term(from, id); }

const char *tarn_free_rule_name(const tarn_ruleset *rs, uint32_t id) {
  if (id == TARN_EG_RULE_GIVEN) return "given";
  if (id == TARN_EG_RULE_ANALYSIS) return "analysis";
  if (id == TARN_EG_RULE_CONGRUENCE) return "congruence";
  return rs->rule.p[id]->name;
}

/* ---- one chain ---- */
typedef struct showing { /* a proof with its lemmas, as they are found */
  const tarn_ruleset *rs;
  tarn_ctx *cx;
  tarn_egraph *g;
  tarn_chain chain;
  TARN_VEC(tarn_chain) lemma;
  TARN_VEC(const char *) asked; /* (equal A B), each once */
  uint32_t names;
  tarn_status failed;
} showing;
typedef struct keeping {
  showing *s;
  const tarn_eg_proof *p;
  const tarn_eg_flat *step;
  tarn_chain chain;
  TARN_VEC(tarn_chain_step) steps;
  bool named;              /* terms are named, as there are too many to be written out */
  TARN_VEC(uint32_t) path; /* of the last step */
  uint32_t *name;          /* by term of the proof; 0: none yet */
  uint32_t n_name;         /* of them there is room for */
  size_t written;          /* bytes of whole terms so far */
  tarn_buf nodes;
  TARN_VEC(uint32_t) todo;
} keeping;

static const char *text_of(keeping *k, uint32_t term, size_t most) {
  tarn_buf b = {.cx = k->s->cx};
  tarn_free_print_term(k->s->rs, &b, proof_at, k->p, term, most);
  k->written += b.n;
  return b.p;
}
static void more_names(keeping *k, uint32_t n) {
  if (n <= k->n_name) return;
  uint32_t most = n + n / 2 + 64, *wide = TARN_ARRAY(k->s->cx, uint32_t, most);
  if (k->n_name) memcpy(wide, k->name, k->n_name * sizeof *wide);
  memset(wide + k->n_name, 0, (most - k->n_name) * sizeof *wide);
  k->name = wide, k->n_name = most;
}
static void put_name(keeping *k, tarn_buf *b, uint32_t term) {
  tarn_eg_node e = proof_at(k->p, term);
  if (e.n) tarn_buf_fmt(b, "%%%u", k->name[term]);
  else tarn_free_print(k->s->rs, b, e.op);
}
static void put_node(keeping *k, uint32_t term) {
  tarn_eg_node e = proof_at(k->p, term);
  char name[16];
  do snprintf(name, sizeof name, "%%%u", ++k->s->names);
  while (tarn_free_known(k->s->rs, name));
  k->name[term] = k->s->names;
  tarn_buf_fmt(&k->nodes, "(node %s (", name);
  tarn_free_print(k->s->rs, &k->nodes, e.op);
  for (uint32_t i = 0; i < e.n; i++) {
    tarn_buf_str(&k->nodes, " ");
    put_name(k, &k->nodes, e.kids[i]);
  }
  tarn_buf_str(&k->nodes, "))\n");
}
/* The name of a term, whose subterms are named before it; of a leaf, itself. */
static const char *name_of(keeping *k, uint32_t term) {
  tarn_buf b = {.cx = k->s->cx};
  more_names(k, tarn_eg_proof_terms(k->p));
  for (tarn_push(b.cx, &k->todo, term); k->todo.n;) {
    uint32_t t = k->todo.p[k->todo.n - 1], had = k->todo.n;
    tarn_eg_node e = proof_at(k->p, t);
    for (uint32_t i = 0; !k->name[t] && i < e.n; i++)
      if (!k->name[e.kids[i]] && proof_at(k->p, e.kids[i]).n) tarn_push(b.cx, &k->todo, e.kids[i]);
    if (k->todo.n > had) continue;
    if (e.n && !k->name[t]) put_node(k, t);
    k->todo.n--;
  }
  put_name(k, &b, term);
  return b.p;
}
/* So many levels up from the last step, then down by these operands. */
static const char *way(keeping *k, const tarn_eg_flat *step) {
  tarn_buf b = {.cx = k->s->cx};
  uint32_t same = 0;
  while (same < k->path.n && same < step->n_path && k->path.p[same] == step->path[same]) same++;
  tarn_buf_fmt(&b, "%u", k->path.n - same);
  k->path.n = same;
  for (uint32_t i = same; i < step->n_path; i++) {
    tarn_buf_fmt(&b, " %u", step->path[i] + 1);
    tarn_push(b.cx, &k->path, step->path[i]);
  }
  return b.p;
}
static void keep(tarn_ctx *cx, void *arg) {
  keeping *k = arg;
  const tarn_eg_flat *f = k->step;
  tarn_chain_step s = {.rule = tarn_free_rule_name(k->s->rs, f->rule), .forward = f->forward};
  if (k->named) {
    s.part = text_of(k, f->after, PART_TEXT);
    s.name = name_of(k, f->after);
    s.way = way(k, f);
    s.depth = f->n_path;
  } else {
    s.term = text_of(k, f->whole, WHOLE_TEXT);
  }
  tarn_push(cx, &k->steps, s);
}
/* Called from inside the engine, which must not be jumped out of. */
static bool keep_step(void *user, const tarn_eg_proof *p, const tarn_eg_flat *step) {
  keeping *k = user;
  k->p = p, k->step = step;
  k->s->failed = tarn_protect(k->s->cx, keep, k);
  return !k->s->failed && (k->named || k->written <= WHOLE_TEXT);
}
static void unfold(keeping *k, tarn_eg_proof *p, uint32_t lemma) {
  k->steps.n = 0;
  k->chain.whole =
      tarn_eg_proof_flatten_lemma(p, lemma, !k->named, PROOF_STEPS, keep_step, k) != UINT64_MAX;
  if (k->s->failed) tarn_reraise(k->s->cx, k->s->failed);
  k->chain.step = k->steps.p, k->chain.n = k->steps.n;
}
static tarn_chain chain_of(showing *s, tarn_eg_proof *p, uint32_t lemma) {
  keeping k = {.s = s, .p = p, .nodes = {.cx = s->cx}};
  uint32_t from = tarn_eg_proof_lemma(p, lemma).from;
  k.chain.from = text_of(&k, from, WHOLE_TEXT);
  unfold(&k, p, lemma);
  if (k.written <= WHOLE_TEXT) return k.chain;
  k.named = true;
  k.chain.from = text_of(&k, from, PART_TEXT);
  k.chain.from_name = name_of(&k, from);
  unfold(&k, p, lemma);
  tarn_buf_str(&k.nodes, "");
  k.chain.nodes = k.nodes.p;
  return k.chain;
}

/* ---- what it asks for ---- */
static void show_needs(showing *s, const tarn_chain *c);

/* Marks the lemmas that are chains of their own: for the other roots of rules, in what a marked
 * lemma unfolds to. Those that a lemma needs have smaller numbers. */
static void mark_premises(const tarn_eg_proof *p, bool *own, bool *part) {
  for (uint32_t l = tarn_eg_proof_lemmas(p); l-- > 0;) {
    tarn_eg_lemma lemma = tarn_eg_proof_lemma(p, l);
    for (uint32_t i = 0; (own[l] || part[l]) && i < lemma.n; i++) {
      tarn_eg_step t = tarn_eg_proof_step(p, lemma.first + i);
      uint32_t n = t.lemmas ? tarn_eg_proof_term(p, t.before).n : 0;
      for (uint32_t k = 0; k < n; k++)
        if (t.lemmas[k] != TARN_NONE) part[t.lemmas[k]] = true;
      for (uint32_t k = 0; k < t.n_premises; k++) own[t.premises[k]] = true;
    }
  }
}
/* The chain of the last lemma, after lemmas for the other roots of the rules in it, each once, and
 * for what its conditions ask. */
static void put_chains(showing *s, tarn_eg_proof *p) {
  uint32_t n = tarn_eg_proof_lemmas(p);
  bool *own = TARN_ARRAY(s->cx, bool, n), whole = true;
  tarn_chain c = {0};
  own[n - 1] = true;
  mark_premises(p, own, TARN_ARRAY(s->cx, bool, n));
  for (uint32_t l = 0; whole && l < n; l++) {
    if (!own[l]) continue;
    c = chain_of(s, p, l);
    whole = c.whole;
    if (whole) show_needs(s, &c);
    if (whole && l + 1 < n) tarn_push(s->cx, &s->lemma, c);
  }
  s->chain = c;
}
static void free_proof(void *arg) { tarn_eg_proof_free(arg); }
static void put_proof(showing *s, tarn_eg_proof *p) {
  tarn_defer(s->cx, free_proof, p);
  tarn_free_shorten(s->rs, p);
  put_chains(s, p);
}
static void show_equal(showing *s, const char *text) {
  const tarn_sx *t = tarn_sx_read(s->cx, text, strlen(text), "condition")->kid[0];
  if (t->n != 3) return;
  uint32_t a = tarn_free_add(s->rs, s->g, t->kid[1]), b = tarn_free_add(s->rs, s->g, t->kid[2]);
  if (tarn_eg_rebuild(s->g) || tarn_eg_find(s->g, a) != tarn_eg_find(s->g, b)) return;
  tarn_eg_proof *p = tarn_eg_explain(s->g, a, b);
  if (!p) return;
  put_proof(s, p);
  if (s->chain.whole) tarn_push(s->cx, &s->lemma, s->chain);
}
/* The checker says what is not shown; a lemma comes after those that it needs itself. What is in
 * need of itself stays assumed. */
static void show_needs(showing *s, const tarn_chain *c) {
  tarn_buf b = {.cx = s->cx};
  tarn_chain_print(&b, "proof", c);
  tarn_proof_result r = tarn_free_proof_check(s->rs, tarn_sx_read(s->cx, b.p, b.n, "proof"));
  for (uint32_t i = 0; i < r.nassumed && s->asked.n < MOST_LEMMAS; i++) {
    bool asked = strncmp(r.assumed[i], "(equal ", 7) || strstr(r.assumed[i], "...") ||
                 strstr(r.assumed[i], "(a term of ");
    for (uint32_t j = 0; j < s->asked.n; j++) asked |= !strcmp(s->asked.p[j], r.assumed[i]);
    if (asked) continue;
    tarn_push(s->cx, &s->asked, r.assumed[i]);
    show_equal(s, r.assumed[i]);
  }
}

tarn_free_proof tarn_free_proof_of(const tarn_ruleset *rs, tarn_egraph *g, tarn_eg_proof *p) {
  showing s = {.rs = rs, .cx = rs->cx, .g = g};
  put_proof(&s, p);
  return (tarn_free_proof){s.chain, s.lemma.p, s.lemma.n};
}
void tarn_chain_print(tarn_buf *b, const char *word, const tarn_chain *c) {
  if (c->nodes) tarn_buf_str(b, c->nodes);
  tarn_buf_fmt(b, "(%s %s", word, c->nodes ? c->from_name : c->from);
  for (uint32_t i = 0; i < c->n; i++) {
    const tarn_chain_step *s = &c->step[i];
    tarn_buf_fmt(b, "\n  (step %s %s ", s->rule, s->forward ? "forward" : "backward");
    if (c->nodes) tarn_buf_fmt(b, "%s %s)", s->name, s->way);
    else tarn_buf_fmt(b, "%s)", s->term);
  }
  tarn_buf_str(b, ")\n");
}
void tarn_free_proof_print(tarn_buf *b, const tarn_free_proof *p) {
  for (uint32_t i = 0; i < p->n_lemma; i++) tarn_chain_print(b, "lemma", &p->lemma[i]);
  tarn_chain_print(b, "proof", &p->chain);
}
