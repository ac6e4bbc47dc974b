/* Terms of free sets, each once: a table of operators over terms.
 *
 * A term is made after its operands, so that its value and its size are known at once; sets are
 * computed when they are asked for, from the operands up, with a list of what is still to be done.
 * A file may be a chain of 10,000 brackets, or names (node NAME TERM) that nest without end. */
#include "lab/free_terms.h"
#include <string.h>

enum { PRINT_SIZE = 1000 };

fterms *free_terms_new(free_state *f) {
  fterms *x = TARN_NEW(f->cx, fterms);
  *x = (fterms){.f = f, .cx = f->cx};
  x->head = tarn_intern_new(f->cx);
  x->key = tarn_intern_new(f->cx);
  x->name = tarn_intern_new(f->cx);
  return f->terms = x;
}

/* ---- values ---- */
typedef struct args {
  tarn_sx *const *t;
} args;
static bool kid_value(const fenv *e, uint32_t var, fval *out) {
  return free_term_value(((const args *)e->terms)->t[var], out);
}
static bool fits(const fclause *c, uint32_t op, const tarn_sx *t) {
  fval have;
  if (c->op != op || c->n != free_arity(t)) return false;
  for (uint32_t j = 0; j < c->n; j++)
    if (c->fixed[j] &&
        (!free_term_value(t->kid[j + 1], &have) || free_compare(&have, &c->want[j]) != 0))
      return false;
  return true;
}
static uint32_t symbol_of(const free_state *f, const tarn_sx *t) {
  const tarn_sx *h = free_head(t);
  return tarn_intern_find(free_of(f->rs)->symbol, h->text, h->len);
}
static fval value_of(const free_state *f, const tarn_sx *t) {
  fval v = {0};
  uint32_t op = symbol_of(f, t);
  if (f->constants == TARN_NONE) return v;
  if (!free_arity(t)) {
    v = free_parse(f, t->text, t->len);
    if (v.kind == FV_NONE && op != TARN_NONE) v = free_value_of(f, op);
    if (v.kind != FV_NONE) return v;
  }
  const fanalysis *a = f->analysis.p[f->constants];
  args k = {free_arity(t) ? t->kid + 1 : NULL};
  fenv e = {.f = (free_state *)(uintptr_t)f, .terms = &k, .term_value = kid_value};
  for (uint32_t i = 0; i < a->clause.n && op != TARN_NONE; i++)
    if (fits(&a->clause.p[i], op, t) && a->clause.p[i].x->fun->fn(&e, a->clause.p[i].x, &v))
      return v;
  return (fval){0};
}

/* ---- making ---- */
static tarn_sx atom(fterms *x, const char *s, size_t n) {
  return (tarn_sx){.kind = tarn_sx_is_atom(s, n) ? TARN_SX_ATOM : TARN_SX_STRING,
                   .text = tarn_strndup(x->cx, s, n),
                   .len = n};
}
static void fill(fterms *x, fterm *t, const char *head, size_t len, const tarn_sx *const *kid,
                 uint32_t n) {
  uint64_t size = 1;
  if (n) {
    tarn_sx *h = TARN_NEW(x->cx, tarn_sx);
    *h = atom(x, head, len);
    t->sx = (tarn_sx){.kind = TARN_SX_LIST, .text = "", .n = n + 1};
    t->sx.kid = TARN_ARRAY(x->cx, tarn_sx *, n + 1);
    t->sx.kid[0] = h;
  } else {
    t->sx = atom(x, head, len);
  }
  for (uint32_t i = 0; i < n; i++) {
    t->sx.kid[i + 1] = (tarn_sx *)(uintptr_t)kid[i];
    size += free_term_of(kid[i])->size;
  }
  t->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}
const tarn_sx *free_term_make(fterms *x, const char *head, size_t len, const tarn_sx *const *kid,
                              uint32_t n) {
  x->words.n = 0;
  tarn_push(x->cx, &x->words, tarn_intern_add(x->head, head, len));
  for (uint32_t i = 0; i < n; i++) tarn_push(x->cx, &x->words, free_term_of(kid[i])->number);
  uint32_t id = tarn_intern_add(x->key, x->words.p, x->words.n * sizeof *x->words.p);
  if (id < x->all.n) return &x->all.p[id]->sx;
  x->changes++;
  fterm *t = TARN_NEW(x->cx, fterm);
  t->number = id;
  fill(x, t, head, len, kid, n);
  t->value = value_of(x->f, &t->sx);
  tarn_push(x->cx, &x->all, t);
  return &t->sx;
}

/* ---- as they are read ---- */
typedef struct frame {
  const tarn_sx *s;
  uint32_t done; /* operands that lie on the stack of results */
} frame;
static const tarn_sx *leaf(fterms *x, const tarn_sx *s) {
  uint32_t name =
      s->kind == TARN_SX_STRING ? TARN_NONE : tarn_intern_find(x->name, s->text, s->len);
  if (name != TARN_NONE) return x->named.p[name];
  return free_term_make(x, s->text, s->len, NULL, 0);
}
static void check_list(const fterms *x, const tarn_sx *s) {
  if (s->kind == TARN_SX_LIST && (!s->n || s->kid[0]->kind == TARN_SX_LIST))
    tarn_sx_error(x->cx, s, "expected an operator");
}
const tarn_sx *free_term(fterms *x, const tarn_sx *s) {
  TARN_VEC(frame) open = {0};
  TARN_VEC(const tarn_sx *) done = {0};
  frame top = {s, 0};
  for (tarn_push(x->cx, &open, top); open.n;) {
    frame *at = &open.p[open.n - 1];
    uint32_t n = free_arity(at->s);
    check_list(x, at->s);
    if (at->done < n) {
      frame next = {at->s->kid[++at->done], 0};
      tarn_push(x->cx, &open, next);
      continue;
    }
    const tarn_sx *h = free_head(at->s), *t;
    done.n -= n;
    t = n ? free_term_make(x, h->text, h->len, done.p + done.n, n) : leaf(x, h);
    tarn_push(x->cx, &done, t);
    open.n--;
  }
  return done.p[0];
}
void free_term_name(fterms *x, const tarn_sx *form) {
  if (form->n != 3 || form->kid[1]->kind != TARN_SX_ATOM)
    tarn_sx_error(x->cx, form, "expected (node NAME TERM)");
  const tarn_sx *t = free_term(x, form->kid[2]), *name = form->kid[1];
  if (tarn_intern_find(x->name, name->text, name->len) != TARN_NONE)
    tarn_sx_error(x->cx, name, "%s is named already", name->text);
  tarn_intern_add(x->name, name->text, name->len);
  tarn_push(x->cx, &x->named, t);
}

/* ---- looking into them ---- */
bool free_term_holds(fterms *x, const tarn_sx *t, const tarn_sx *part) {
  uint32_t least = free_term_of(part)->number; /* what holds it was made later */
  bool found = false;
  x->round++, x->changes++;
  x->todo.n = 0;
  for (tarn_push(x->cx, &x->todo, t); x->todo.n && !found;) {
    const tarn_sx *s = x->todo.p[--x->todo.n];
    fterm *at = x->all.p[free_term_of(s)->number];
    found = s == part;
    if (at->round == x->round || at->number < least) continue;
    at->round = x->round;
    for (uint32_t i = 1; i <= free_arity(s); i++) tarn_push(x->cx, &x->todo, s->kid[i]);
  }
  return found;
}
void free_term_print(tarn_buf *b, const tarn_sx *t) {
  if (free_term_of(t)->size <= PRINT_SIZE) tarn_sx_print(b, t, 0);
  else tarn_buf_fmt(b, "(a term of %u operators)", free_term_of(t)->size);
}

/* ---- sets ---- */
typedef enum { IN_EITHER, IN_BOTH, IN_FIRST } which;
static fmembers merge(fterms *x, fmembers a, fmembers b, which want) {
  uint32_t *to = TARN_ARRAY(x->cx, uint32_t, a.n + (size_t)b.n + 1), n = 0;
  for (uint32_t i = 0, k = 0; i < a.n || k < b.n;) {
    bool first = k == b.n || (i < a.n && a.p[i] <= b.p[k]);
    bool second = i == a.n || (k < b.n && b.p[k] <= a.p[i]);
    uint32_t m = first ? a.p[i] : b.p[k];
    i += first, k += second;
    if (want == IN_EITHER || (want == IN_BOTH ? first && second : first && !second)) to[n++] = m;
  }
  return (fmembers){to, n, true};
}
static fmembers single(fterms *x, const tarn_sx *t) {
  return (fmembers){tarn_copy(x->cx, &free_term_of(t)->number, sizeof(uint32_t)), 1, true};
}
static fmembers known_set(uint32_t analysis, const tarn_sx *t) {
  return free_term_of(t)->set[analysis];
}
static fmembers set_by(fterms *x, const fexpr *e, tarn_sx *const *kid) {
  const char *name = e->fun->name;
  if (!*name) return known_set(e->analysis, kid[e->var]);
  if (!strcmp(name, "none")) return (fmembers){NULL, 0, true};
  if (!strcmp(name, "one")) return single(x, kid[e->kid[0]->var]);
  fmembers a = set_by(x, e->kid[0], kid);
  if (!strcmp(name, "without")) return merge(x, a, single(x, kid[e->kid[1]->var]), IN_FIRST);
  fmembers b = set_by(x, e->kid[1], kid);
  return merge(x, a, b, !strcmp(name, "both") ? IN_BOTH : IN_EITHER);
}
static fmembers compute(fterms *x, uint32_t analysis, const tarn_sx *t) {
  const fanalysis *a = x->f->analysis.p[analysis];
  fmembers out = {NULL, 0, true};
  uint32_t op = symbol_of(x->f, t);
  if (!free_arity(t)) return out;
  for (uint32_t i = 0; i < a->clause.n; i++)
    if (fits(&a->clause.p[i], op, t)) return set_by(x, a->clause.p[i].x, t->kid + 1);
  for (uint32_t i = 1; i <= free_arity(t); i++)
    out = merge(x, out, known_set(analysis, t->kid[i]), IN_EITHER);
  return out;
}
static fterm *with_sets(fterms *x, const tarn_sx *t) {
  fterm *at = x->all.p[free_term_of(t)->number];
  if (!at->set) at->set = TARN_ARRAY(x->cx, fmembers, x->f->analysis.n + 1);
  return at;
}
fmembers free_term_set(fterms *x, uint32_t analysis, const tarn_sx *t) {
  x->changes++;
  x->todo.n = 0;
  for (tarn_push(x->cx, &x->todo, t); x->todo.n;) {
    const tarn_sx *s = x->todo.p[x->todo.n - 1];
    uint32_t before = x->todo.n;
    for (uint32_t i = 1; i <= free_arity(s); i++)
      if (!with_sets(x, s->kid[i])->set[analysis].known) tarn_push(x->cx, &x->todo, s->kid[i]);
    if (x->todo.n > before) continue;
    fterm *at = with_sets(x, s);
    if (!at->set[analysis].known) at->set[analysis] = compute(x, analysis, s);
    x->todo.n--;
  }
  return known_set(analysis, t);
}
