/* tarn._lab.Graph: proofs, and the graph as text and as a page. */
#include "graph.h"
#include <lab/page.h>
#include <stdlib.h>
#include <string.h>

static graph *of(PyObject *self) { return (graph *)self; }

static const char *rule_of(void *user, uint32_t rule) {
  return tarn_free_rule_name(((graph *)user)->rs, rule);
}

/* ---------------------------------------------------------------- proofs */

typedef struct explaining {
  graph *s;
  uint32_t a, b;
  tarn_free_proof proof;
  tarn_buf text;
} explaining;
static _Noreturn void refuse(tarn_ctx *cx, graph *s) {
  tarn_status st = tarn_eg_status(s->g);
  const char *why = tarn_strdup(cx, tarn_eg_message(s->g));
  tarn_eg_clear_status(s->g);
  tarn_raise(cx, st, "%s", why);
}
static void explain(tarn_ctx *cx, void *arg) {
  explaining *x = arg;
  tarn_eg_proof *p = tarn_eg_explain(x->s->g, x->a, x->b);
  if (!p) refuse(cx, x->s);
  x->proof = tarn_free_proof_of(x->s->rs, x->s->g, p);
  x->text.cx = cx;
  tarn_free_proof_print(&x->text, &x->proof);
}
static PyObject *or_none(const char *s) {
  if (s) return tp_text(s, strlen(s));
  Py_RETURN_NONE;
}
/* A long chain has no whole terms, but what each step has made. */
static PyObject *steps(const tarn_chain *c) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < c->n; i++) {
    const tarn_chain_step *t = &c->step[i];
    PyObject *one = Py_BuildValue("(sONN)", t->rule, t->forward ? Py_True : Py_False,
                                  or_none(t->term), or_none(t->part));
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}
PyObject *graph_explain(PyObject *self, PyObject *args) {
  explaining x = {.s = of(self)};
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "OO", &a, &b) || !graph_id(x.s, a, &x.a) || !graph_id(x.s, b, &x.b))
    return NULL;
  if (!tp_call(&x.s->guard, explain, &x)) return NULL;
  const tarn_chain *c = &x.proof.chain;
  return Py_BuildValue("(NNNO)", or_none(c->from), steps(c), tp_text(x.text.p, x.text.n),
                       c->whole ? Py_True : Py_False);
}

/* Why a node is there: (rule or None, from, to) of each step, from what was added to it. */
typedef struct made_row {
  const char *rule, *from, *to;
} made_row;
typedef struct making {
  graph *s;
  const char *text; /* of a pattern */
  Py_ssize_t size;
  uint32_t id, n;
  made_row *row;
} making;
/* The oldest node that matches. */
static bool oldest(void *user, const tarn_eg_match *m) {
  making *k = user;
  if (m->nodes[0] < k->id) k->id = m->nodes[0];
  return true;
}
static void find_oldest(tarn_ctx *cx, making *m) {
  const tarn_sx *all = tarn_sx_read(cx, m->text, (size_t)m->size, "existence");
  if (all->n != 1) tarn_raise(cx, TARN_USAGE, "existence: one term is expected, not %u", all->n);
  graph_open(m->s);
  m->id = TARN_NONE;
  if (tarn_eg_search(m->s->g, tarn_free_pattern(m->s->rs, all->kid[0]), 0, oldest, m) == UINT64_MAX)
    tarn_raise(cx, TARN_MEMORY, "out of memory");
  if (m->id == TARN_NONE) tarn_raise(cx, TARN_NO, "existence: no term of the graph matches");
}
static tarn_eg_node term_at(const void *from, uint32_t id) { return tarn_eg_proof_term(from, id); }
static void free_proof(void *p) { tarn_eg_proof_free(p); }
static const char *term_text(tarn_ctx *cx, graph *s, const tarn_eg_proof *p, uint32_t term) {
  enum { MOST = 1 << 16 }; /* bytes */
  tarn_buf b = {.cx = cx};
  tarn_free_print_term(s->rs, &b, term_at, p, term, MOST);
  return b.p;
}
static void make(tarn_ctx *cx, void *arg) {
  making *m = arg;
  find_oldest(cx, m);
  tarn_eg_proof *p = tarn_eg_explain_existence(m->s->g, m->id, 0);
  if (!p) refuse(cx, m->s);
  tarn_defer(cx, free_proof, p);
  m->n = tarn_eg_proof_lemmas(p);
  m->row = TARN_ARRAY(cx, made_row, m->n + 1);
  for (uint32_t i = 0; i < m->n; i++) {
    tarn_eg_lemma l = tarn_eg_proof_lemma(p, i);
    m->row[i].from = term_text(cx, m->s, p, l.from);
    m->row[i].to = term_text(cx, m->s, p, l.to);
    if (l.n) m->row[i].rule = rule_of(m->s, tarn_eg_proof_step(p, l.first).rule);
  }
}
PyObject *graph_existence(PyObject *self, PyObject *args) {
  making m = {.s = of(self)};
  if (!PyArg_ParseTuple(args, "s#", &m.text, &m.size)) return NULL;
  if (!tp_call(&m.s->guard, make, &m)) return NULL;
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < m.n; i++) {
    const made_row *r = &m.row[i];
    PyObject *one = Py_BuildValue("(NNN)", or_none(r->rule), or_none(r->from), or_none(r->to));
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

typedef struct checking {
  graph *s;
  const char *text;
  size_t n;
  tarn_proof_result r;
} checking;
static void check(tarn_ctx *cx, void *arg) {
  checking *k = arg;
  k->r = tarn_free_proof_check(k->s->rs, tarn_sx_read(cx, k->text, k->n, "proof"));
}
PyObject *graph_check(PyObject *self, PyObject *args) {
  checking k = {.s = of(self)};
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "s#", &k.text, &n)) return NULL;
  k.n = (size_t)n;
  if (!tp_call(&k.s->guard, check, &k)) return NULL;
  PyObject *assumed = PyList_New(0);
  for (uint32_t i = 0; assumed && i < k.r.nassumed; i++) {
    PyObject *one = or_none(k.r.assumed[i]);
    if (!one || PyList_Append(assumed, one)) Py_CLEAR(assumed);
    Py_XDECREF(one);
  }
  if (!assumed) return NULL;
  return Py_BuildValue("(OsIN)", k.r.ok ? Py_True : Py_False, k.r.why ? k.r.why : "", k.r.steps,
                       assumed);
}

/* ---------------------------------------------------------------- graphs */

static void name_of(void *user, uint32_t op, uint32_t payload, char *buf, size_t n) {
  tarn_free_name(((graph *)user)->rs, op, payload, buf, n);
}
static void facts_of(void *user, uint32_t cls, tarn_buf *b) {
  tarn_free_facts(((graph *)user)->rs, ((graph *)user)->g, cls, b);
}

typedef struct writing {
  graph *s;
  uint32_t *root, *pick, n;
  unsigned most; /* classes */
  bool dot;
  char *p; /* the text */
  size_t used, cap;
} writing;
static bool put(void *user, const char *text, size_t n) {
  writing *w = user;
  if (w->used + n > w->cap) {
    size_t cap = 2 * w->cap + n;
    char *more = realloc(w->p, cap);
    if (!more) return false;
    w->p = more, w->cap = cap;
  }
  memcpy(w->p + w->used, text, n);
  w->used += n;
  return true;
}
/* The library's writer knows its own user: what it prints goes here, names come from the graph. */
static void name_in(void *user, uint32_t op, uint32_t payload, char *buf, size_t n) {
  name_of(((writing *)user)->s, op, payload, buf, n);
}
static void write_out(tarn_ctx *cx, void *arg) {
  writing *w = arg;
  graph_open(w->s);
  tarn_eg_writer to = {.write = put, .name = name_in, .user = w};
  tarn_status st = w->dot ? tarn_eg_write_dot(w->s->g, w->root, w->n, w->most, &to)
                          : tarn_eg_write_json(w->s->g, w->root, w->n, &to);
  if (st != TARN_OK)
    tarn_raise(cx, st, "the graph cannot be written: %s", tarn_eg_message(w->s->g));
}
static PyObject *written(PyObject *self, PyObject *args, bool dot) {
  writing w = {.s = of(self), .dot = dot};
  PyObject *ids;
  if (!PyArg_ParseTuple(args, "OI", &ids, &w.most) || !graph_ids(w.s, ids, &w.root, &w.n))
    return NULL;
  PyObject *text = tp_call(&w.s->guard, write_out, &w) ? tp_text(w.p, w.used) : NULL;
  PyMem_Free(w.root), free(w.p);
  return text;
}
PyObject *graph_json(PyObject *self, PyObject *args) { return written(self, args, false); }
PyObject *graph_dot(PyObject *self, PyObject *args) { return written(self, args, true); }

static void write_page(tarn_ctx *cx, void *arg) {
  writing *w = arg;
  tarn_buf b = {.cx = cx};
  tarn_page_graph p = {.g = w->s->g,
                       .root = w->root,
                       .n = w->n,
                       .pick = w->pick,
                       .classes = w->most,
                       .name = name_of,
                       .facts = facts_of,
                       .why = rule_of,
                       .user = w->s};
  tarn_buf_str(&b, tarn_page_graph_style());
  tarn_page_graph_print(&p, &b);
  put(w, b.p, b.n);
}
PyObject *graph_page(PyObject *self, PyObject *args) {
  writing w = {.s = of(self)};
  PyObject *ids;
  if (!PyArg_ParseTuple(args, "OI", &ids, &w.most) || !graph_ids(w.s, ids, &w.root, &w.n))
    return NULL;
  if (w.n) w.pick = graph_least(w.s, w.root, w.n);
  bool made = (!w.n || w.pick) && tp_call(&w.s->guard, write_page, &w);
  PyObject *text = made ? tp_text(w.p, w.used) : NULL;
  PyMem_Free(w.root), PyMem_Free(w.pick), free(w.p);
  return text;
}
