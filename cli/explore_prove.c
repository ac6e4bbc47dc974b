/* Proofs of free terms: the chain from one term to another, and lemmas for what conditions of its
 * rules ask to be equal. */
#include "lab/lab.h"
#include "cli/explore_lab.h"
#include <string.h>

enum { PROOF_STEPS = 100000, MOST_LEMMAS = 200 };

static void free_proof(void *arg) { tarn_eg_proof_free(arg); }
static tarn_eg_node proof_at(const void *from, uint32_t id) { return tarn_eg_proof_term(from, id); }

/* ---- one chain ---- */
/* Whole terms of a chain take so many bytes at most, a subterm in place of one so many. */
enum { WHOLE_TEXT = 1 << 18, PART_TEXT = 200 };
typedef struct keeping {
  lab *l;
  const tarn_eg_proof *p;
  const tarn_eg_flat *step;
  explore_chain chain;
  bool named;                 /* terms are named, as there are too many to be written out */
  uint32_t *name;             /* by term of the proof; 0: none yet */
  uint32_t names;             /* of them there is room for */
  tarn_buf nodes, text;       /* text: what was written out so far */
  TARN_VEC(uint32_t) todo;
} keeping;

static const char *written_out(keeping *k, uint32_t term) {
  tarn_buf b = {.cx = k->l->cx};
  lab_print(k->l, &b, proof_at, k->p, term, WHOLE_TEXT);
  k->text.n += b.n;
  return b.p;
}
static void more_names(keeping *k, uint32_t n) {
  if (n <= k->names) return;
  uint32_t most = n + n / 2 + 64, *wide = TARN_ARRAY(k->l->cx, uint32_t, most);
  if (k->names) memcpy(wide, k->name, k->names * sizeof *wide);
  memset(wide + k->names, 0, (most - k->names) * sizeof *wide);
  k->name = wide, k->names = most;
}
static void put_name(keeping *k, tarn_buf *b, uint32_t term) {
  tarn_eg_node e = proof_at(k->p, term);
  if (e.n) tarn_buf_fmt(b, "%%%u", k->name[term]);
  else tarn_free_print(k->l->rs, b, e.op);
}
static void put_node(keeping *k, uint32_t term) {
  tarn_eg_node e = proof_at(k->p, term);
  char name[16];
  do snprintf(name, sizeof name, "%%%u", ++k->l->x->n_names);
  while (tarn_free_known(k->l->rs, name));
  k->name[term] = k->l->x->n_names;
  tarn_buf_fmt(&k->nodes, "(node %s (", name);
  tarn_free_print(k->l->rs, &k->nodes, e.op);
  for (uint32_t i = 0; i < e.n; i++)
    tarn_buf_str(&k->nodes, " "), put_name(k, &k->nodes, e.kids[i]);
  tarn_buf_str(&k->nodes, "))\n");
}
/* The name of a term, whose subterms are named before it; of a leaf, itself. */
static const char *name_of(keeping *k, uint32_t term) {
  tarn_buf b = {.cx = k->l->cx};
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
static const char *place(tarn_ctx *cx, const tarn_eg_flat *step) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "");
  for (uint32_t i = 0; i < step->n_path; i++)
    tarn_buf_fmt(&b, i ? ".%u" : "%u", step->path[i] + 1);
  return b.p;
}
static void keep(tarn_ctx *cx, void *arg) {
  keeping *k = arg;
  explore_step s = {.rule = lab_rule_name(k->l, k->step->rule), .forward = k->step->forward};
  if (k->named) {
    tarn_buf part = {.cx = cx};
    lab_print(k->l, &part, proof_at, k->p, k->step->after, PART_TEXT);
    s.part = part.p, s.at = place(cx, k->step), s.name = name_of(k, k->step->whole);
  } else if (k->text.n <= WHOLE_TEXT) {
    s.term = written_out(k, k->step->whole);
  }
  tarn_push(cx, &k->chain.step, s);
}
/* Called from inside the engine, which must not be jumped out of. */
static bool keep_step(void *user, const tarn_eg_proof *p, const tarn_eg_flat *step) {
  keeping *k = user;
  k->p = p, k->step = step;
  k->l->failed = tarn_protect(k->l->cx, keep, k);
  return !k->l->failed;
}
static void unfold(keeping *k, tarn_eg_proof *p, uint32_t lemma) {
  k->chain.step.n = 0;
  k->chain.whole =
      tarn_eg_proof_flatten_lemma(p, lemma, PROOF_STEPS, keep_step, k) != UINT64_MAX;
  if (k->l->failed) tarn_reraise(k->l->cx, k->l->failed);
}
static explore_chain chain_of(lab *l, tarn_eg_proof *p, uint32_t lemma) {
  keeping k = {.l = l, .p = p, .nodes = {.cx = l->cx}};
  uint32_t from = tarn_eg_proof_lemma(p, lemma).from;
  k.chain.from = written_out(&k, from);
  unfold(&k, p, lemma);
  if (k.text.n <= WHOLE_TEXT) return k.chain;
  k.named = true;
  tarn_buf b = {.cx = l->cx};
  lab_print(l, &b, proof_at, p, from, PART_TEXT);
  k.chain.from = b.p;
  k.chain.from_name = name_of(&k, from);
  unfold(&k, p, lemma);
  tarn_buf_str(&k.nodes, "");
  k.chain.nodes = k.nodes.p;
  return k.chain;
}

/* ---- what it asks for ---- */
typedef struct showing {
  lab *l;
  tarn_egraph *g;
  TARN_VEC(const char *) asked; /* (equal A B), each once */
} showing;
static void show_needs(showing *s, const explore_chain *c);

/* Marks the lemmas that are chains of their own: for the other roots of rules, in what a marked
 * lemma unfolds to. Those that a lemma needs have smaller numbers. */
static void mark_premises(const tarn_eg_proof *p, bool *own, uint32_t *part_of) {
  for (uint32_t l = tarn_eg_proof_lemmas(p); l-- > 0;) {
    tarn_eg_lemma lemma = tarn_eg_proof_lemma(p, l);
    for (uint32_t i = 0; (own[l] || part_of[l]) && i < lemma.n; i++) {
      tarn_eg_step t = tarn_eg_proof_step(p, lemma.first + i);
      uint32_t n = t.lemmas ? tarn_eg_proof_term(p, t.before).n : 0;
      for (uint32_t k = 0; k < n; k++)
        if (t.lemmas[k] != TARN_NONE) part_of[t.lemmas[k]] = 1;
      for (uint32_t k = 0; k < t.n_premises; k++) own[t.premises[k]] = true;
    }
  }
}
/* The chain of the last lemma, after lemmas for the other roots of the rules in it, each once, and
 * for what its conditions ask. */
static bool put_chains(showing *s, tarn_eg_proof *p) {
  uint32_t n = tarn_eg_proof_lemmas(p), *part_of = TARN_ARRAY(s->l->cx, uint32_t, n);
  bool *own = TARN_ARRAY(s->l->cx, bool, n), whole = true;
  explore_chain c = {0};
  own[n - 1] = true;
  mark_premises(p, own, part_of);
  for (uint32_t l = 0; whole && l < n; l++) {
    if (!own[l]) continue;
    c = chain_of(s->l, p, l);
    whole = c.whole;
    if (whole) show_needs(s, &c);
    if (l + 1 < n) tarn_push(s->l->cx, &s->l->x->lemma, c);
  }
  s->l->x->chain = c;
  return whole;
}
/* Shorter, into x->chain and the lemmas before it. */
static bool put_proof(showing *s, tarn_eg_proof *p) {
  tarn_defer(s->l->cx, free_proof, p);
  tarn_free_shorten(s->l->rs, p);
  return put_chains(s, p);
}
static void show_equal(showing *s, const char *text) {
  lab *l = s->l;
  const tarn_sx *t = tarn_sx_read(l->cx, text, strlen(text), "condition")->kid[0];
  if (t->n != 3) return;
  uint32_t a = tarn_free_add(l->rs, s->g, t->kid[1]), b = tarn_free_add(l->rs, s->g, t->kid[2]);
  if (tarn_eg_rebuild(s->g) || tarn_eg_find(s->g, a) != tarn_eg_find(s->g, b)) return;
  tarn_eg_proof *p = tarn_eg_explain(s->g, a, b);
  if (p && put_proof(s, p)) tarn_push(l->cx, &l->x->lemma, l->x->chain);
}
/* The checker says what is not shown; a lemma comes after those that it needs itself. What is in
 * need of itself stays assumed. */
static void show_needs(showing *s, const explore_chain *c) {
  tarn_ctx *cx = s->l->cx;
  tarn_buf b = {.cx = cx};
  explore_print_chain(&b, "proof", c);
  tarn_proof_result r = tarn_free_proof_check(s->l->rs, tarn_sx_read(cx, b.p, b.n, "proof"));
  for (uint32_t i = 0; i < r.nassumed && s->asked.n < MOST_LEMMAS; i++) {
    bool asked = strncmp(r.assumed[i], "(equal ", 7) || strstr(r.assumed[i], "...") ||
                 strstr(r.assumed[i], "(a term of ");
    for (uint32_t j = 0; j < s->asked.n; j++) asked |= !strcmp(s->asked.p[j], r.assumed[i]);
    if (asked) continue;
    tarn_push(cx, &s->asked, r.assumed[i]);
    show_equal(s, r.assumed[i]);
  }
}

void lab_keep_proof(lab *l, tarn_egraph *g, tarn_eg_proof *p) {
  showing s = {.l = l, .g = g};
  l->x->lemma.n = 0;
  if (!put_proof(&s, p))
    tarn_warn(l->cx, "the proof has more than %d steps; the first of them are shown", PROOF_STEPS);
}
void lab_prove(lab *l, tarn_egraph *g, uint32_t from, uint32_t to) {
  tarn_eg_proof *p = tarn_eg_explain(g, from, to);
  if (!p) tarn_raise(l->cx, tarn_eg_status(g), "explore: %s", tarn_eg_message(g));
  lab_keep_proof(l, g, p);
}
