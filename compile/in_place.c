/* Which inputs are to lie in outputs: those that --cache names, or without it the caches of a
 * decoder. A cache is recognised by its terms: an output concatenates an input with new rows,
 * nothing else reads the input, and something reads the concatenation. extract/kshared.c has the
 * condition under which that is possible. */
#include "compile/internal.h"
#include "compile/target.h"
#include <string.h>

/* ---- the caches of a decoder ---- */
typedef struct walk {
  const tarn_program *p;
  tarn_lang *L;
  TARN_VEC(tarn_term) todo;
  uint8_t *seen;
  uint32_t *readers; /* by term: operators but views that read it, or a view of it */
} walk;

static tarn_term unviewed(const walk *w, tarn_term t) {
  for (;;) {
    const tarn_node *x = tarn_term_get(w->L, t);
    if (!tarn_op_is_view(x->op)) return t;
    t = x->kid[0];
  }
}
static void visit(walk *w, tarn_term t) {
  if (w->seen[t]) return;
  w->seen[t] = 1;
  tarn_push(tarn_lang_ctx(w->L), &w->todo, t);
}
static walk walked(const tarn_program *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  uint32_t n = tarn_term_count(p->L) + 1;
  walk w = {.p = p, .L = p->L};
  w.seen = TARN_ARRAY(cx, uint8_t, n), w.readers = TARN_ARRAY(cx, uint32_t, n);
  for (uint32_t i = 0; i < p->nout; i++) visit(&w, p->out[i].term);
  while (w.todo.n) {
    const tarn_node *x = tarn_term_get(w.L, w.todo.p[--w.todo.n]);
    for (uint32_t k = 0; k < x->n; k++) {
      if (!tarn_op_is_view(x->op)) w.readers[unviewed(&w, x->kid[k])]++;
      visit(&w, x->kid[k]);
    }
  }
  return w;
}
/* The input that is the first part of the concatenation, which this output is; nin: there is none
 * that only it reads, or nothing reads on. */
static uint32_t cache_of(const walk *w, uint32_t out) {
  const tarn_program *p = w->p;
  tarn_term whole = unviewed(w, p->out[out].term);
  const tarn_node *x = tarn_term_get(w->L, whole);
  if (x->op != TARN_OP_CONCAT || x->n < 2 || !w->readers[whole]) return p->nin;
  tarn_term first = unviewed(w, x->kid[0]);
  uint32_t in = 0;
  while (in < p->nin && p->in[in].term != first) in++;
  return w->readers[first] == 1 ? in : p->nin;
}

/* ---- pairs ---- */
typedef struct pairs {
  const tarn_compiled *c;
  TARN_VEC(tarn_in_place) at;
} pairs;

static bool axis_of(const tarn_program *p, uint32_t in, uint32_t out, uint32_t *axis) {
  const tarn_type *a = tarn_type_get(p->L, p->in[in].type),
                  *b = tarn_type_get(p->L, p->out[out].type);
  return a->n == b->n && a->dtype == b->dtype && tarn_in_place_axis(a->n, a->dim, b->dim, axis);
}
static bool is_taken(const pairs *l, uint32_t in, uint32_t out) {
  for (uint32_t i = 0; i < l->at.n; i++)
    if (l->at.p[i].in == in || l->at.p[i].out == out) return true;
  return false;
}
static void add(pairs *l, uint32_t in, uint32_t out, uint32_t axis) {
  const tarn_program *p = l->c->program;
  int64_t filled = tarn_type_get(p->L, p->in[in].type)->dim[axis];
  int64_t all = tarn_type_get(p->L, p->out[out].type)->dim[axis], rows = l->c->o->cache_rows;
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  if (rows && rows < all)
    tarn_raise(cx, TARN_USAGE, "--cache-rows %lld: %s has %lld rows", (long long)rows,
               p->out[out].name, (long long)all);
  tarn_in_place x = {in, out, axis, rows ? rows : all, filled, all - filled};
  tarn_push(cx, &l->at, x);
}
static void of_decoder(pairs *l) {
  const tarn_program *p = l->c->program;
  walk w = walked(p);
  uint32_t axis = 0;
  for (uint32_t out = 0; out < p->nout; out++) {
    uint32_t in = cache_of(&w, out);
    if (in == p->nin || is_taken(l, in, out) || !axis_of(p, in, out, &axis)) continue;
    add(l, in, out, axis);
  }
}

/* ---- what is asked for ---- */
enum { MOST_STARS = 8 };
typedef struct star {
  const char *at;
  size_t n;
} star;
/* Does the name match the pattern? What each * stands for, the shortest that will do. */
static bool matches(const char *pattern, const char *name, star *s) {
  if (!*pattern) return !*name;
  if (*pattern != '*') return *pattern == *name && matches(pattern + 1, name + 1, s);
  for (size_t n = 0;; n++) {
    *s = (star){name, n};
    if (matches(pattern + 1, name + n, s + 1)) return true;
    if (!name[n]) return false;
  }
}
static uint32_t stars(const char *s) {
  uint32_t n = 0;
  for (; *s; s++) n += *s == '*';
  return n;
}
static const char *filled_in(tarn_ctx *cx, const char *pattern, const star *s) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "");
  for (; *pattern; pattern++) {
    if (*pattern != '*') tarn_buf_add(&b, pattern, 1);
    else tarn_buf_add(&b, s->at, s->n), s++;
  }
  return b.p;
}
static uint32_t output_called(tarn_ctx *cx, const tarn_program *p, const char *name) {
  uint32_t i = 0;
  while (i < p->nout && !tarn_is_called(cx, name, p->out[i].name)) i++;
  return i;
}
static void add_asked(pairs *l, const char *text, uint32_t in, const char *name) {
  const tarn_program *p = l->c->program;
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  uint32_t out = output_called(cx, p, name), axis = 0;
  if (out == p->nout)
    tarn_raise(cx, TARN_BAD_INPUT, "--cache %s: %s has no output %s for the input %s", text,
               l->c->o->model, name, p->in[in].name);
  if (is_taken(l, in, out))
    tarn_raise(cx, TARN_BAD_INPUT, "--cache %s: %s or %s is one of another pair", text,
               p->in[in].name, name);
  if (!axis_of(p, in, out, &axis))
    tarn_raise(
        cx, TARN_BAD_INPUT,
        "--cache %s: %s is not %s with more rows: their types or more than one of their dims "
        "differ",
        text, name, p->in[in].name);
  add(l, in, out, axis);
}
static void of_text(pairs *l, const char *text) {
  const tarn_program *p = l->c->program;
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const char *eq = strchr(text, '=');
  if (!eq || eq == text || !eq[1] || stars(text) > MOST_STARS)
    tarn_raise(cx, TARN_USAGE, "--cache %s: IN=OUT is expected, names or patterns with *", text);
  const char *pattern = tarn_strndup(cx, text, (size_t)(eq - text));
  star s[MOST_STARS + 1];
  uint32_t found = 0;
  if (stars(pattern) != stars(eq + 1))
    tarn_raise(cx, TARN_USAGE, "--cache %s: as many * are expected on both sides", text);
  for (uint32_t in = 0; in < p->nin; in++) {
    if (!matches(pattern, p->in[in].name, s)) continue;
    add_asked(l, text, in, filled_in(cx, eq + 1, s));
    found++;
  }
  if (!found)
    tarn_raise(cx, TARN_BAD_INPUT, "--cache %s: %s has no such input", text, l->c->o->model);
}

static bool asked(const tarn_compile_options *o) {
  return o->caches.n && strcmp(o->caches.text[0], "none") != 0;
}
uint32_t comp_in_place(const tarn_compiled *c, const tarn_in_place **at) {
  const tarn_compile_options *o = c->o;
  pairs l = {.c = c};
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  bool able = c->target->in_place;
  if (asked(o) && !able)
    tarn_raise(cx, TARN_USAGE, "--cache %s: a program for %s (%s) has none", o->caches.text[0],
               o->hw->name, c->target->name);
  if (asked(o))
    for (uint32_t i = 0; i < o->caches.n; i++) of_text(&l, o->caches.text[i]);
  else if (able && !o->caches.n && (!c->left || o->cache_rows)) of_decoder(&l);
  *at = l.at.p;
  return l.at.n;
}
void comp_in_place_made(const tarn_compiled *c) {
  const tarn_in_place *at;
  tarn_in_place is;
  if (!asked(c->o)) return;
  for (uint32_t i = 0, n = comp_in_place(c, &at); i < n; i++)
    if (!tarn_kprog_in_place(c->kernels, false, at[i].in, &is))
      tarn_raise(tarn_lang_ctx(c->L), TARN_BAD_INPUT,
                 "--cache: output %s is no concatenation of the input %s, as it is, with new rows "
                 "behind it",
                 c->program->out[at[i].out].name, c->program->in[at[i].in].name);
}
