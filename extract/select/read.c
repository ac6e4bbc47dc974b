/* egraph-serialize JSON, read as a stream.
 *
 * Ids of nodes and names of classes share one table of symbols, as many files name a class after a
 * node. A symbol gets its number when first looked up, which for a node may be as a child before
 * its definition; so children are kept as symbols and turned into classes, in place, at the end. A
 * large table is nowhere near the processor: texts wait, so that the memory of many lookups is
 * asked for at once. Bytes a node: 24 of arrays, 12 of symbols and up to 24 of table, the id's
 * text; growing arrays add half.
 */
#include "extract/select/scan.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct slot {
  uint32_t hash, symbol;
} slot; /* symbol + 1; 0 = free */

typedef struct symbol {
  uint32_t text, node, cls; /* the last two NONE when it is not the name of one */
} symbol;

/* What a text that waits is. */
typedef enum { A_NODE, A_CLASS, THE_SAME_CLASS, A_CHILD, A_ROOT, A_LET } meaning;
enum { WAITING = 64, WAITING_TEXT = 1 << 17, LONGEST = 65536, LAST = 64 };
typedef struct waiting {
  uint32_t hash, text, n,
      at; /* text at, in units of 4 bytes; its length; number of node, child or root */
  meaning is;
} waiting;

typedef struct reader {
  tarn_ctx *cx;
  tarn_sel_graph *g;
  const tarn_sel_read_options *o;
  sel_scan scan;
  bool seen_nodes;
  symbol *sym;
  slot *slot; /* open addressing */
  uint32_t n_syms, cap_syms, n_slots;
  uint32_t *sym_of; /* by node */
  uint32_t cap_sym_of;
  sel_u32s roots, lets; /* symbols; lets: classes that "class_data" gives a name */
  bool by_class;        /* children are written as numbers: of classes */
  char number[32];      /* an id that is one */
  char keys[128];       /* of the document, that are not known */
  uint32_t n_waiting, waiting_text;
  waiting wait[WAITING];
  uint32_t *wait_text;
  char last[LAST]; /* the class met last, by name and number */
  size_t n_last;
  uint32_t last_class;
  sel_pool mem;
} reader;

/* ---- symbols ---- */
/* Are two texts the same? Both fill their last unit with zeros, of which there is at least one. */
static bool same_text(const uint32_t *a, const char *b, uint32_t n) {
  for (uint32_t i = 0; i <= n / 4; i++) {
    uint32_t unit;
    memcpy(&unit, b + 4 * (size_t)i, 4);
    if (unit != a[i]) return false;
  }
  return true;
}

/* Of a text with its zeros. */
static uint32_t hash_of(const uint32_t *text, uint32_t units) {
  uint64_t h = units;
  for (uint32_t i = 0; i < units; i++) h = tarn_hash_mix(h, text[i]);
  return (uint32_t)(h >> 32);
}

/* The slot of a symbol, or the free one where it belongs. Most lookups see one line of slots, and
 * one text. */
static slot *find_slot(reader *r, const waiting *w) {
  for (uint32_t i = w->hash & (r->n_slots - 1);; i = (i + 1) & (r->n_slots - 1)) {
    slot *p = &r->slot[i];
    if (!p->symbol) return p;
    if (p->hash == w->hash &&
        same_text(r->wait_text + w->text, sel_text(r->g, r->sym[p->symbol - 1].text), w->n))
      return p;
  }
}

static void more_slots(reader *r) {
  uint32_t old = r->n_slots, n = old ? 2 * old : 1024;
  slot *wide = sel_grow(r->cx, NULL, 0, n, sizeof *wide);
  memset(wide, 0, n * sizeof *wide);
  for (uint32_t i = 0; i < old; i++) {
    uint32_t at = r->slot[i].hash & (n - 1);
    if (!r->slot[i].symbol) continue;
    while (wide[at].symbol) at = (at + 1) & (n - 1);
    wide[at] = r->slot[i];
  }
  sel_drop(r->cx, r->slot, old, sizeof *r->slot);
  r->slot = wide, r->n_slots = n;
}

/* Makes room for element n of an array that grows by half. */
static void *room(reader *r, void *p, uint32_t n, uint32_t *cap, size_t each) {
  if (n < *cap) return p;
  uint64_t want = (uint64_t)*cap + *cap / 2 + 1024;
  if (want >= UINT32_MAX) tarn_raise(r->cx, TARN_MEMORY, "%s: more than 2^32 ids", r->scan.file);
  p = sel_grow(r->cx, p, *cap, want, each);
  *cap = (uint32_t)want;
  return p;
}

static uint32_t find_symbol(reader *r, const waiting *w) {
  if (r->n_syms >= r->n_slots / 4 * 3) more_slots(r);
  slot *at = find_slot(r, w);
  if (at->symbol) return at->symbol - 1;
  uint32_t id = r->n_syms;
  r->sym = room(r, r->sym, id, &r->cap_syms, sizeof *r->sym);
  r->sym[id] =
      (symbol){sel_text_add(r->g, (const char *)(r->wait_text + w->text), w->n), NONE, NONE};
  *at = (slot){w->hash, ++r->n_syms};
  return id;
}

static const char *sym_text(reader *r, uint32_t s) { return sel_text(r->g, r->sym[s].text); }

static uint32_t class_of(reader *r, uint32_t sym) {
  if (r->sym[sym].cls != NONE) return r->sym[sym].cls;
  tarn_sel_graph *g = r->g;
  uint32_t c = g->n_classes++;
  g->class_name = room(r, g->class_name, c, &g->cap_class_names, sizeof *g->class_name);
  g->class_name[c] = r->sym[sym].text;
  return r->sym[sym].cls = c;
}

/* ---- texts that wait ---- */
static void ask_for_memory(const reader *r) {
  const waiting *end = r->wait + r->n_waiting;
  uint32_t mask = r->n_slots - 1;
  for (const waiting *w = r->wait; w < end; w++) __builtin_prefetch(&r->slot[w->hash & mask]);
  for (const waiting *w = r->wait; w < end; w++)
    if (r->slot[w->hash & mask].symbol)
      __builtin_prefetch(&r->sym[r->slot[w->hash & mask].symbol - 1]);
  for (const waiting *w = r->wait; w < end; w++) {
    const slot *p = &r->slot[w->hash & mask];
    if (p->hash == w->hash && p->symbol)
      __builtin_prefetch(sel_text(r->g, r->sym[p->symbol - 1].text));
  }
}

static void define(reader *r, uint32_t sym, uint32_t v) {
  if (r->sym[sym].node != NONE)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: node %s: defined twice", r->scan.file, sym_text(r, sym));
  r->sym[sym].node = v;
  r->sym_of[v] = sym;
}

static void serve_one(reader *r, const waiting *w) {
  if (w->is == THE_SAME_CLASS) {
    r->g->node_class[w->at] = r->last_class;
    return;
  }
  uint32_t sym = find_symbol(r, w);
  if (w->is == A_CHILD) r->g->kid[w->at] = sym;
  else if (w->is == A_NODE) define(r, sym, w->at);
  else if (w->is == A_CLASS) r->g->node_class[w->at] = r->last_class = class_of(r, sym);
  else (w->is == A_LET ? &r->lets : &r->roots)->p[w->at] = sym;
}

/* Looks up all that wait, in their order. */
static void serve(reader *r) {
  if (r->n_slots) ask_for_memory(r);
  for (uint32_t i = 0; i < r->n_waiting; i++) serve_one(r, &r->wait[i]);
  r->n_waiting = r->waiting_text = 0;
}

static void look_up_later(reader *r, meaning is, uint32_t at, const char *s, size_t n) {
  if (n > LONGEST)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: an id of more than %d bytes", r->scan.file, LONGEST);
  uint32_t units = (uint32_t)n / 4 + 1;
  if (r->n_waiting == WAITING || r->waiting_text + units > WAITING_TEXT / 4) serve(r);
  waiting *w = &r->wait[r->n_waiting++];
  *w = (waiting){.text = r->waiting_text, .n = (uint32_t)n, .at = at, .is = is};
  if (is == THE_SAME_CLASS) return;
  uint32_t *to = r->wait_text + w->text;
  to[units - 1] = 0;
  memcpy(to, s, n);
  w->hash = hash_of(to, units);
  r->waiting_text += units;
}

/* ---- one node ---- */
/* Raises, of the node being read. */
_Noreturn static void odd(reader *r, const char *what) {
  serve(r);
  uint32_t sym = r->sym_of[r->g->n_nodes];
  sel_scan_error(&r->scan, tarn_format(r->cx, "node %s: %s", sym_text(r, sym), what));
}

static const char *a_string(reader *r, size_t *n) {
  if (sel_scan_peek(&r->scan) != '"') odd(r, "a string is missing");
  return sel_scan_string(&r->scan, n);
}

/* A string, or a whole number, which is the text of it; NULL: neither is there. */
static const char *an_id(reader *r, size_t *n) {
  int c = sel_scan_peek(&r->scan);
  if (c == '"') return sel_scan_string(&r->scan, n);
  if (c < '0' || c > '9') return NULL;
  double x = sel_scan_number(&r->scan);
  if (!(x < 0x1p53) || x != floor(x)) return NULL;
  *n = (size_t)snprintf(r->number, sizeof r->number, "%.0f", x);
  return r->number;
}

static void read_class(reader *r) {
  size_t n;
  const char *s = an_id(r, &n);
  if (!s) odd(r, "a class is a string or a whole number");
  if (n == r->n_last && !memcmp(s, r->last, n)) {
    look_up_later(r, THE_SAME_CLASS, r->g->n_nodes, NULL, 0);
    return;
  }
  r->n_last = n <= LAST ? n : SIZE_MAX;
  if (n <= LAST) memcpy(r->last, s, n);
  look_up_later(r, A_CLASS, r->g->n_nodes, s, n);
}

static void read_cost(reader *r) {
  tarn_sel_graph *g = r->g;
  int c = sel_scan_peek(&r->scan);
  double cost = INFINITY;
  if (c == 'n') sel_scan_skip(&r->scan);
  else if (c == '-' || (c >= '0' && c <= '9')) cost = sel_scan_number(&r->scan);
  else odd(r, "a cost is a number or null");
  if (!(cost > -INFINITY)) odd(r, "a cost is too far below 0");
  g->cost[g->n_nodes] = cost;
}

static void read_children(reader *r) {
  tarn_sel_graph *g = r->g;
  bool first = true;
  if (sel_scan_peek(&r->scan) != '[') odd(r, "children are a list");
  r->scan.p++;
  while (sel_scan_more(&r->scan, ']', &first)) {
    size_t n;
    bool number = sel_scan_peek(&r->scan) != '"';
    const char *s = an_id(r, &n);
    if (!s) odd(r, "a child is a string or a whole number");
    r->by_class |= number;
    g->kid = room(r, g->kid, g->n_kids, &g->cap_kids, sizeof *g->kid);
    look_up_later(r, A_CHILD, g->n_kids++, s, n);
  }
}

/* A subsumed node is equal to its class and never chosen. */
static bool read_subsumed(reader *r) {
  int c = sel_scan_peek(&r->scan);
  if (c != 't' && c != 'f') odd(r, "subsumed is true or false");
  sel_scan_skip(&r->scan);
  return c == 't';
}

static bool is(const char *key, const char *s, size_t n) {
  return strlen(key) == n && !memcmp(key, s, n);
}

/* Operators and other numbers, where they were asked for. */
static void read_op(reader *r) {
  tarn_sel_graph *g = r->g;
  size_t n;
  const char *s = a_string(r, &n);
  g->node_op[g->n_nodes] = sel_text_add(g, s, n);
}
static uint32_t value_named(const reader *r, const char *key, size_t n) {
  for (uint32_t i = 0; r->o && i < r->o->n_values; i++)
    if (is(r->o->values[i], key, n)) return i;
  return NONE;
}
static void read_value(reader *r, uint32_t i) {
  tarn_sel_graph *g = r->g;
  int c = sel_scan_peek(&r->scan);
  double x = INFINITY;
  if (c == 'n') sel_scan_skip(&r->scan);
  else if (c == '-' || (c >= '0' && c <= '9')) x = sel_scan_number(&r->scan);
  else odd(r, tarn_format(r->cx, "%s is a number or null", r->o->values[i]));
  if (!(x >= 0)) odd(r, tarn_format(r->cx, "negative %s %g", r->o->values[i], x));
  g->value[(size_t)g->n_nodes * g->n_values + i] = x;
}
static void begin_extras(reader *r, uint32_t v) {
  tarn_sel_graph *g = r->g;
  if (!r->o) return;
  if (r->o->ops) {
    g->node_op = room(r, g->node_op, v, &g->cap_node_ops, sizeof *g->node_op);
    g->node_op[v] = 0;
  }
  g->n_values = r->o->n_values;
  for (uint32_t i = 0; i < g->n_values; i++) {
    uint32_t at = v * g->n_values + i;
    g->value = room(r, g->value, at, &g->cap_values, sizeof *g->value);
    g->value[at] = is(r->o->values[i], "cost", 4);
  }
}
static void begin_node(reader *r, const char *id, size_t n) {
  tarn_sel_graph *g = r->g;
  uint32_t v = g->n_nodes;
  g->node_class = room(r, g->node_class, v, &g->cap_nodes, sizeof *g->node_class);
  g->kid_first = room(r, g->kid_first, v + 1, &g->cap_first, sizeof *g->kid_first);
  g->cost = room(r, g->cost, v, &g->cap_cost, sizeof *g->cost);
  r->sym_of = room(r, r->sym_of, v, &r->cap_sym_of, sizeof *r->sym_of);
  g->kid_first[v] = g->n_kids;
  g->cost[v] = 1;
  look_up_later(r, A_NODE, v, id, n);
  begin_extras(r, v);
}

static void read_node(reader *r) {
  tarn_sel_graph *g = r->g;
  bool first = true, has_class = false, has_kids = false, subsumed = false;
  if (sel_scan_peek(&r->scan) != '{') odd(r, "an object is missing");
  r->scan.p++;
  while (sel_scan_more(&r->scan, '}', &first)) {
    size_t n;
    const char *key = a_string(r, &n);
    int what = is("children", key, n)   ? 1
               : is("eclass", key, n)   ? 2
               : is("cost", key, n)     ? 3
               : is("subsumed", key, n) ? 4
                                        : 0;
    uint32_t value = value_named(r, key, n);
    if (!what && r->o && r->o->ops && is("op", key, n)) what = 5;
    sel_scan_colon(&r->scan);
    if ((what == 1 && has_kids) || (what == 2 && has_class)) odd(r, "a key given twice");
    if (what == 1) read_children(r), has_kids = true;
    else if (what == 2) read_class(r), has_class = true;
    else if (what == 5) read_op(r);
    else if (value != NONE && what != 3 && what != 4) read_value(r, value);
    else if (what == 3) {
      read_cost(r);
      if (value != NONE) g->value[(size_t)g->n_nodes * g->n_values + value] = g->cost[g->n_nodes];
    } else if (what == 4) {
      subsumed = read_subsumed(r);
      if (value != NONE) g->value[(size_t)g->n_nodes * g->n_values + value] = subsumed;
    } else sel_scan_skip(&r->scan);
  }
  if (!has_class) odd(r, "no eclass");
  if (subsumed) g->cost[g->n_nodes] = INFINITY;
  g->kid_first[++g->n_nodes] = g->n_kids;
}

/* ---- the document ---- */
static void read_nodes(reader *r) {
  bool first = true;
  if (r->seen_nodes) sel_scan_error(&r->scan, "\"nodes\" given twice");
  if (sel_scan_peek(&r->scan) != '{')
    sel_scan_error(&r->scan,
                   "\"nodes\" is no object: this is JSON of another dialect than egraph-serialize");
  r->scan.p++;
  r->seen_nodes = true;
  while (sel_scan_more(&r->scan, '}', &first)) {
    size_t n;
    if (sel_scan_peek(&r->scan) != '"') sel_scan_error(&r->scan, "the id of a node is missing");
    const char *id = sel_scan_string(&r->scan, &n);
    begin_node(r, id, n);
    sel_scan_colon(&r->scan);
    read_node(r);
  }
}

static void add_root(reader *r, meaning is, const char *s, size_t n) {
  sel_u32s *v = is == A_LET ? &r->lets : &r->roots;
  v->p = room(r, v->p, v->n, &v->cap, sizeof *v->p);
  look_up_later(r, is, v->n++, s, n);
}
static void read_roots(reader *r) {
  bool first = true;
  if (sel_scan_peek(&r->scan) != '[') sel_scan_error(&r->scan, "\"root_eclasses\" is no list");
  r->scan.p++;
  while (sel_scan_more(&r->scan, ']', &first)) {
    size_t n;
    const char *s = an_id(r, &n);
    if (!s) sel_scan_error(&r->scan, "a root is a string or a whole number");
    add_root(r, A_ROOT, s, n);
  }
}

/* What is known of one class; egglog names those that a program has bound: "let". */
static bool has_let(reader *r) {
  bool first = true, let = false;
  if (sel_scan_peek(&r->scan) != '{') {
    sel_scan_skip(&r->scan);
    return false;
  }
  r->scan.p++;
  while (sel_scan_more(&r->scan, '}', &first)) {
    size_t n;
    if (sel_scan_peek(&r->scan) != '"') sel_scan_error(&r->scan, "a key is missing");
    const char *key = sel_scan_string(&r->scan, &n);
    let |= is("let", key, n);
    sel_scan_colon(&r->scan);
    sel_scan_skip(&r->scan);
  }
  return let;
}
static void read_class_data(reader *r) {
  bool first = true;
  if (sel_scan_peek(&r->scan) != '{') {
    sel_scan_skip(&r->scan);
    return;
  }
  r->scan.p++;
  while (sel_scan_more(&r->scan, '}', &first)) {
    size_t n;
    if (sel_scan_peek(&r->scan) != '"') sel_scan_error(&r->scan, "the name of a class is missing");
    const char *s = sel_scan_string(&r->scan, &n);
    if (n > LONGEST) sel_scan_error(&r->scan, "the name of a class is too long");
    char *cls = tarn_strndup(r->cx, s, n);
    sel_scan_colon(&r->scan);
    if (has_let(r)) add_root(r, A_LET, cls, n);
  }
}

/* The first keys that are not ours, for a message. */
static void note_key(reader *r, const char *key, size_t n) {
  size_t at = strlen(r->keys);
  if (r->seen_nodes || at + 24 > sizeof r->keys) return;
  for (size_t i = 0; i < n && i < 16; i++)
    if (!tarn_visible(key + i, 1)) return;
  snprintf(r->keys + at, sizeof r->keys - at, "%s %.*s", at ? "," : "", n < 16 ? (int)n : 16, key);
}
static void read_document(reader *r) {
  bool first = true;
  int c = sel_scan_peek(&r->scan);
  if (c != '{') sel_scan_error(&r->scan, c < 0 ? "nothing in it" : "no object");
  r->scan.p++;
  while (sel_scan_more(&r->scan, '}', &first)) {
    size_t n;
    if (sel_scan_peek(&r->scan) != '"') sel_scan_error(&r->scan, "a key is missing");
    const char *key = sel_scan_string(&r->scan, &n);
    bool nodes = is("nodes", key, n), roots = is("root_eclasses", key, n);
    bool data = is("class_data", key, n);
    if (!nodes && !roots && !data) note_key(r, key, n);
    sel_scan_colon(&r->scan);
    if (nodes) read_nodes(r);
    else if (roots) read_roots(r);
    else if (data) read_class_data(r);
    else sel_scan_skip(&r->scan);
  }
  if (sel_scan_peek(&r->scan) >= 0) sel_scan_error(&r->scan, "something follows the end");
  if (!r->seen_nodes && *r->keys)
    tarn_raise(r->cx, TARN_BAD_INPUT,
               "%s: no \"nodes\": this is JSON of another dialect than egraph-serialize (it has%s)",
               r->scan.file, r->keys);
}

/* ---- the end: symbols become classes ---- */
_Noreturn static void dangling(reader *r, uint32_t i) {
  uint32_t v = 0;
  while (r->g->kid_first[v + 1] <= i) v++;
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s: node %s: child %s is not a node", r->scan.file,
             sym_text(r, r->sym_of[v]), sym_text(r, r->g->kid[i]));
}

/* Children name nodes, as egraph-serialize has it; in other programs' files they are classes: where
 * they are written as numbers, or where one is no node and all are classes. */
static bool are_classes(const reader *r) {
  const tarn_sel_graph *g = r->g;
  bool all = true, some = r->by_class;
  for (uint32_t i = 0; i < g->n_kids; i++) {
    const symbol *s = &r->sym[g->kid[i]];
    all &= s->cls != NONE, some |= s->node == NONE;
  }
  return all && some;
}
static void resolve(reader *r) {
  tarn_sel_graph *g = r->g;
  for (uint32_t v = 0; v < g->n_nodes; v++) r->sym[r->sym_of[v]].node = g->node_class[v];
  bool by_class = are_classes(r);
  for (uint32_t i = 0; i < g->n_kids; i++) {
    const symbol *s = &r->sym[g->kid[i]];
    uint32_t c = by_class ? s->cls : s->node;
    if (c == NONE) dangling(r, i);
    g->kid[i] = c;
  }
}

static void resolve_roots(reader *r) {
  tarn_sel_graph *g = r->g;
  for (uint32_t i = 0; i < r->roots.n; i++) {
    uint32_t c = r->sym[r->roots.p[i]].cls;
    const char *name = sym_text(r, r->roots.p[i]);
    if (c == NONE && !(r->o && r->o->skip_missing_roots))
      tarn_raise(r->cx, TARN_BAD_INPUT, "%s: root %s names no class", r->scan.file, name);
    if (c == NONE) tarn_warn(r->cx, "%s: root %s names no class: skipped", r->scan.file, name);
    else
      g->root = room(r, g->root, g->n_roots, &g->cap_roots, sizeof *g->root),
      g->root[g->n_roots++] = c;
  }
  if (!g->n_roots && !(r->o && r->o->no_roots))
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: no roots", r->scan.file);
}

/* The roots that were asked for instead. */
static void other_roots(reader *r) {
  r->roots.n = 0;
  for (uint32_t i = 0; i < r->o->n_roots; i++) {
    r->roots.p = room(r, r->roots.p, r->roots.n, &r->roots.cap, sizeof *r->roots.p);
    look_up_later(r, A_ROOT, r->roots.n++, r->o->roots[i], strlen(r->o->roots[i]));
  }
  serve(r);
}

static void finish(reader *r) {
  tarn_sel_graph *g = r->g;
  serve(r);
  if (r->o && r->o->roots) other_roots(r);
  else if (!r->roots.n && r->lets.n) {
    sel_u32s none = r->roots;
    r->roots = r->lets, r->lets = none;
  }
  if (!g->n_nodes) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: no nodes", r->scan.file);
  sel_drop(r->cx, r->slot, r->n_slots, sizeof *r->slot);
  r->slot = NULL, r->n_slots = 0;
  resolve(r);
  resolve_roots(r);
  for (uint32_t v = 0; v < g->n_nodes; v++) r->sym_of[v] = r->sym[r->sym_of[v]].text;
  g->node_name = r->sym_of, g->cap_node_names = r->cap_sym_of;
  r->sym_of = NULL, r->cap_sym_of = 0;
}

static void reader_close(void *arg) {
  reader *r = arg;
  sel_drop(r->cx, r->slot, r->n_slots, sizeof *r->slot);
  sel_drop(r->cx, r->sym, r->cap_syms, sizeof *r->sym);
  sel_drop(r->cx, r->sym_of, r->cap_sym_of, sizeof *r->sym_of);
  sel_drop(r->cx, r->roots.p, r->roots.cap, sizeof *r->roots.p);
  sel_drop(r->cx, r->lets.p, r->lets.cap, sizeof *r->lets.p);
}

static void open_reader(reader *r) {
  tarn_defer(r->cx, reader_close, r);
  sel_pool_open(&r->mem, r->cx);
  r->scan.cx = r->cx, r->scan.mem = &r->mem;
  r->wait_text = sel_resize(&r->mem, NULL, WAITING_TEXT, 1);
  r->n_last = SIZE_MAX;
  size_t n = strlen(r->scan.file) + 1;
  r->g->file = sel_grow(r->cx, NULL, 0, n, 1);
  memcpy(r->g->file, r->scan.file, n);
}

typedef struct source {
  reader r;
  const char *text;
  size_t n;
} source;

static void close_file(void *f) { fclose(f); }

static void read_file(tarn_ctx *cx, void *arg) {
  source *s = arg;
  FILE *f = fopen(s->r.scan.file, "rb");
  if (!f) tarn_raise(cx, TARN_IO, "%s: %s", s->r.scan.file, strerror(errno));
  tarn_defer(cx, close_file, f);
  open_reader(&s->r);
  sel_scan_file(&s->r.scan, f);
  read_document(&s->r);
  finish(&s->r);
}

static void read_text(tarn_ctx *cx, void *arg) {
  (void)cx;
  source *s = arg;
  open_reader(&s->r);
  sel_scan_text(&s->r.scan, s->text, s->n);
  read_document(&s->r);
  finish(&s->r);
}

static tarn_status read_with(tarn_ctx *cx, source *s, tarn_fn *body, tarn_sel_graph **out) {
  tarn_status st = tarn_sel_graph_new(cx, &s->r.g);
  if (st) return st;
  st = tarn_protect(cx, body, s);
  if (st) tarn_sel_graph_free(s->r.g);
  else *out = s->r.g;
  return st;
}

tarn_status tarn_sel_read_json(tarn_ctx *cx, const char *path, const tarn_sel_read_options *o,
                               tarn_sel_graph **out) {
  source s = {.r = {.cx = cx, .o = o, .scan.file = path}};
  return read_with(cx, &s, read_file, out);
}

tarn_status tarn_sel_parse_json(tarn_ctx *cx, const char *text, size_t n, const char *file,
                                const tarn_sel_read_options *o, tarn_sel_graph **out) {
  source s = {.r = {.cx = cx, .o = o, .scan.file = file}, .text = text, .n = n};
  return read_with(cx, &s, read_text, out);
}
