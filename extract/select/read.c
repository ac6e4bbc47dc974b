/* egraph-serialize JSON, read as a stream with yajl.
 *
 * Ids of nodes and names of classes share one table of symbols, as many files name a class after a node. A symbol gets
 * its number when first seen, which for a node may be as a child before its definition; so children are kept as symbols
 * and turned into classes, in place, at the end. Bytes a node: 24 of arrays, 12 of symbols and up to 24 of
 * table, the id's text; growing arrays add half.
 */
#include "extract/select/internal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

/* Where in the document we are. */
typedef enum { AT_START, AT_TOP, AT_NODES, AT_NODE, AT_KIDS, AT_ROOTS, AT_END } place;
/* What the value that follows a key is. */
typedef enum { IS_OTHER, IS_NODES, IS_ROOTS, IS_NODE, IS_KIDS, IS_CLASS, IS_COST } meaning;

typedef struct slot {
  uint32_t hash, symbol;
} slot; /* symbol + 1; 0 = free */

/* Children wait here, so that the memory of many lookups is asked for at once. */
enum { WAITING = 64, WAITING_TEXT = 4096 };
typedef struct waiting {
  uint32_t hash, text, n, kid; /* text at, of length n; place in the graph's kid */
} waiting;

typedef struct reader {
  tarn_ctx *cx;
  tarn_sel_graph *g;
  const tarn_sel_read_options *o;
  const char *file;
  yajl_handle y;
  place at;
  meaning next;
  uint32_t skip; /* depth inside a value that is skipped */
  bool seen_nodes;
  uint64_t line; /* newlines before the present chunk */
  /* symbols */
  uint32_t n_syms, cap_syms;
  uint32_t *text, *node_of, *class_of; /* by symbol */
  slot *slot;                          /* open addressing */
  uint32_t n_slots;
  uint32_t cap_text, cap_node_of, cap_class_of;
  /* the node being read */
  uint32_t sym, cls, n_kids;
  double cost;
  sel_u32s roots; /* symbols */
  uint32_t n_waiting, waiting_text;
  waiting wait[WAITING];
  char wait_text[WAITING_TEXT];
  uint32_t cap_sym_of;
  uint32_t *sym_of; /* by node */
  char why[256];
  sel_pool mem; /* yajl's, and the chunk */
} reader;

/* ---- symbols ---- */
/* The slot of a symbol, or the free one where it belongs. Most lookups see one line of slots, and one text. */
static slot *find_slot(reader *r, const char *s, size_t n, uint32_t hash) {
  for (uint32_t i = hash & (r->n_slots - 1);; i = (i + 1) & (r->n_slots - 1)) {
    slot *p = &r->slot[i];
    if (!p->symbol) return p;
    if (p->hash != hash) continue;
    const char *t = sel_text(r->g, r->text[p->symbol - 1]);
    if (!strncmp(t, s, n) && !t[n]) return p;
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
static uint32_t *room(reader *r, uint32_t *p, uint32_t n, uint32_t *cap) {
  if (n < *cap) return p;
  uint64_t want = (uint64_t)*cap + *cap / 2 + 1024;
  if (want >= UINT32_MAX) tarn_raise(r->cx, TARN_MEMORY, "%s: more than 2^32 ids", r->file);
  p = sel_grow(r->cx, p, *cap, want, sizeof *p);
  *cap = (uint32_t)want;
  return p;
}

static uint32_t hash_of(const char *s, size_t n) { return (uint32_t)(tarn_hash_bytes(s, n, 0) >> 32); }

static uint32_t hashed_symbol(reader *r, const char *s, size_t n, uint32_t hash) {
  if (memchr(s, 0, n)) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: an id holds a zero byte", r->file);
  if (n > 65536) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: an id of %zu bytes: at most 65536", r->file, n);
  if (r->n_syms >= r->n_slots / 4 * 3) more_slots(r);
  slot *at = find_slot(r, s, n, hash);
  if (at->symbol) return at->symbol - 1;
  uint32_t id = r->n_syms;
  r->text = room(r, r->text, id, &r->cap_text);
  r->node_of = room(r, r->node_of, id, &r->cap_node_of);
  r->class_of = room(r, r->class_of, id, &r->cap_class_of);
  r->text[id] = sel_text_add(r->g, s, n);
  r->node_of[id] = r->class_of[id] = NONE;
  *at = (slot){hash, ++r->n_syms};
  return id;
}

static uint32_t symbol(reader *r, const char *s, size_t n) { return hashed_symbol(r, s, n, hash_of(s, n)); }

/* Looks up the children that wait. */
static void serve(reader *r) {
  const waiting *w = r->wait, *end = w + r->n_waiting;
  if (r->n_slots) {
    uint32_t mask = r->n_slots - 1;
    for (w = r->wait; w < end; w++) __builtin_prefetch(&r->slot[w->hash & mask]);
    for (w = r->wait; w < end; w++)
      if (r->slot[w->hash & mask].symbol) __builtin_prefetch(&r->text[r->slot[w->hash & mask].symbol - 1]);
    for (w = r->wait; w < end; w++)
      if (r->slot[w->hash & mask].hash == w->hash && r->slot[w->hash & mask].symbol)
        __builtin_prefetch(sel_text(r->g, r->text[r->slot[w->hash & mask].symbol - 1]));
  }
  for (w = r->wait; w < end; w++) r->g->kid[w->kid] = hashed_symbol(r, r->wait_text + w->text, w->n, w->hash);
  r->n_waiting = r->waiting_text = 0;
}

static const char *sym_text(reader *r, uint32_t s) { return sel_text(r->g, r->text[s]); }

static uint32_t class_of(reader *r, uint32_t sym) {
  if (r->class_of[sym] != NONE) return r->class_of[sym];
  uint32_t c = r->g->n_classes++;
  tarn_sel_graph *g = r->g;
  g->class_name = room(r, g->class_name, c, &g->cap_class_names);
  g->class_name[c] = r->text[sym];
  return r->class_of[sym] = c;
}

/* ---- events ---- */
static void begin_node(reader *r) {
  r->cls = NONE, r->n_kids = 0, r->cost = 1;
  if (r->node_of[r->sym] != NONE) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: node %s: defined twice", r->file, sym_text(r, r->sym));
}

static void end_node(reader *r) {
  tarn_sel_graph *g = r->g;
  if (r->cls == NONE) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: node %s: no eclass", r->file, sym_text(r, r->sym));
  if (!(r->cost >= 0))
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: node %s: negative cost %g; costs must be at least 0", r->file, sym_text(r, r->sym),
               r->cost);
  uint32_t v = g->n_nodes, cap = g->cap_cost;
  g->node_class = room(r, g->node_class, v, &g->cap_nodes);
  g->kid_first = room(r, g->kid_first, v + 1, &g->cap_first);
  r->sym_of = room(r, r->sym_of, v, &r->cap_sym_of);
  if (v == cap) {
    cap = cap + cap / 2 + 1024;
    g->cost = sel_grow(r->cx, g->cost, g->cap_cost, cap, sizeof *g->cost);
    g->cap_cost = cap;
  }
  g->node_class[v] = r->cls;
  g->cost[v] = r->cost;
  g->kid_first[0] = 0;
  g->kid_first[v + 1] = g->n_kids;
  r->node_of[r->sym] = v;
  r->sym_of[v] = r->sym;
  g->n_nodes++;
}

static void add_kid(reader *r, const char *s, size_t n) {
  tarn_sel_graph *g = r->g;
  uint32_t at = g->n_kids;
  g->kid = room(r, g->kid, at, &g->cap_kids);
  g->n_kids++;
  if (r->n_waiting == WAITING || r->waiting_text + n > WAITING_TEXT) serve(r);
  if (n > WAITING_TEXT) {
    g->kid[at] = symbol(r, s, n);
    return;
  }
  memcpy(r->wait_text + r->waiting_text, s, n);
  r->wait[r->n_waiting++] = (waiting){hash_of(s, n), r->waiting_text, (uint32_t)n, at};
  r->waiting_text += (uint32_t)n;
}

static void add_root_name(reader *r, const char *s, size_t n) {
  uint32_t k = symbol(r, s, n);
  r->roots.p = room(r, r->roots.p, r->roots.n, &r->roots.cap);
  r->roots.p[r->roots.n++] = k;
}

typedef struct event {
  reader *r;
  enum { E_STRING, E_KEY, E_NUMBER, E_NULL, E_OPEN_MAP, E_CLOSE_MAP, E_OPEN_LIST, E_CLOSE_LIST, E_BOOL } kind;
  const char *s;
  size_t n;
} event;

_Noreturn static void odd(reader *r, const char *what) {
  bool in_node = r->at == AT_NODE || r->at == AT_KIDS;
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s: %s%s%s%s", r->file, in_node ? "node " : "", in_node ? sym_text(r, r->sym) : "",
             in_node ? ": " : "", what);
}

static bool key_is(const event *e, const char *k) { return e->n == strlen(k) && !memcmp(e->s, k, e->n); }

static void on_key(reader *r, const event *e) {
  static const struct {
    place at;
    const char *key;
    meaning is;
  } known[] = {{AT_TOP, "nodes", IS_NODES},
               {AT_TOP, "root_eclasses", IS_ROOTS},
               {AT_NODE, "children", IS_KIDS},
               {AT_NODE, "eclass", IS_CLASS},
               {AT_NODE, "cost", IS_COST}};
  r->next = IS_OTHER;
  if (r->at == AT_NODES) {
    r->next = IS_NODE;
    r->sym = symbol(r, e->s, e->n);
    return;
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].at == r->at && key_is(e, known[i].key)) r->next = known[i].is;
}

static void on_open_map(reader *r) {
  if (r->at == AT_START) r->at = AT_TOP;
  else if (r->at == AT_TOP && r->next == IS_NODES) {
    if (r->seen_nodes) odd(r, "\"nodes\" given twice");
    r->at = AT_NODES, r->seen_nodes = true;
  } else if (r->at == AT_NODES) begin_node(r), r->at = AT_NODE;
  else if (r->next == IS_OTHER && (r->at == AT_TOP || r->at == AT_NODE)) r->skip = 1;
  else odd(r, "an object where none belongs");
}

static void on_close_map(reader *r) {
  if (r->at == AT_NODE) end_node(r), r->at = AT_NODES;
  else if (r->at == AT_NODES) r->at = AT_TOP;
  else r->at = AT_END;
}

static void on_open_list(reader *r) {
  if (r->at == AT_TOP && r->next == IS_ROOTS) r->at = AT_ROOTS;
  else if (r->at == AT_NODE && r->next == IS_KIDS) r->at = AT_KIDS;
  else if (r->next == IS_OTHER && (r->at == AT_TOP || r->at == AT_NODE)) r->skip = 1;
  else odd(r, "a list where none belongs");
}

static void on_close_list(reader *r) { r->at = r->at == AT_KIDS ? AT_NODE : AT_TOP; }

static void on_string(reader *r, const event *e) {
  if (r->at == AT_KIDS) add_kid(r, e->s, e->n);
  else if (r->at == AT_ROOTS) add_root_name(r, e->s, e->n);
  else if (r->at == AT_NODE && r->next == IS_CLASS) r->cls = class_of(r, symbol(r, e->s, e->n));
  else if (r->next != IS_OTHER || r->at == AT_START || r->at == AT_NODES) odd(r, "a string where none belongs");
}

static double number(const char *s, size_t n) {
  char buf[64], *b = buf;
  if (n >= sizeof buf) n = sizeof buf - 1;
  memcpy(b, s, n);
  b[n] = 0;
  return strtod(b, NULL);
}

static void on_scalar(reader *r, const event *e) {
  bool cost = r->at == AT_NODE && r->next == IS_COST;
  if (cost && e->kind == E_NUMBER) r->cost = number(e->s, e->n);
  else if (cost && e->kind == E_NULL) r->cost = INFINITY;
  else if (r->next != IS_OTHER || (r->at != AT_TOP && r->at != AT_NODE)) odd(r, "a value of the wrong kind");
}

static void on_event(reader *r, const event *e) {
  switch (e->kind) {
  case E_KEY: on_key(r, e); break;
  case E_STRING: on_string(r, e); break;
  case E_OPEN_MAP: on_open_map(r); break;
  case E_CLOSE_MAP: on_close_map(r); break;
  case E_OPEN_LIST: on_open_list(r); break;
  case E_CLOSE_LIST: on_close_list(r); break;
  default: on_scalar(r, e); break;
  }
}

static bool skipped(reader *r, const event *e) {
  if (!r->skip) return false;
  if (e->kind == E_OPEN_MAP || e->kind == E_OPEN_LIST) r->skip++;
  if (e->kind == E_CLOSE_MAP || e->kind == E_CLOSE_LIST) r->skip--;
  return true;
}

static int feed(event e) {
  if (!skipped(e.r, &e)) on_event(e.r, &e);
  return 1;
}

static int y_null(void *u) { return feed((event){u, E_NULL, "", 0}); }
static int y_bool(void *u, int b) { return (void)b, feed((event){u, E_BOOL, "", 0}); }
static int y_number(void *u, const char *s, size_t n) { return feed((event){u, E_NUMBER, s, n}); }
static int y_string(void *u, const unsigned char *s, size_t n) { return feed((event){u, E_STRING, (const char *)s, n}); }
static int y_open(void *u) { return feed((event){u, E_OPEN_MAP, "", 0}); }
static int y_key(void *u, const unsigned char *s, size_t n) { return feed((event){u, E_KEY, (const char *)s, n}); }
static int y_close(void *u) { return feed((event){u, E_CLOSE_MAP, "", 0}); }
static int y_open_list(void *u) { return feed((event){u, E_OPEN_LIST, "", 0}); }
static int y_close_list(void *u) { return feed((event){u, E_CLOSE_LIST, "", 0}); }

static const yajl_callbacks callbacks = {.yajl_null = y_null,
                                         .yajl_boolean = y_bool,
                                         .yajl_number = y_number,
                                         .yajl_string = y_string,
                                         .yajl_start_map = y_open,
                                         .yajl_map_key = y_key,
                                         .yajl_end_map = y_close,
                                         .yajl_start_array = y_open_list,
                                         .yajl_end_array = y_close_list};

/* yajl does not look whether it got memory, so a failure is raised through its frames; they hold nothing but memory of
 * the pool, and the handle is not used again. */
static void *y_realloc(void *u, void *p, size_t n) { return sel_resize(&((reader *)u)->mem, p, n, 1); }
static void *y_malloc(void *u, size_t n) { return y_realloc(u, NULL, n); }
static void y_free(void *u, void *p) { sel_free(&((reader *)u)->mem, p); }

_Noreturn static void malformed(reader *r, const unsigned char *chunk, size_t n) {
  size_t used = yajl_get_bytes_consumed(r->y);
  for (size_t i = 0; i < used && i < n; i++) r->line += chunk[i] == '\n';
  unsigned char *e = yajl_get_error(r->y, 0, chunk, n);
  snprintf(r->why, sizeof r->why, "%s", e ? (char *)e : "parse error");
  if (e) yajl_free_error(r->y, e);
  r->why[strcspn(r->why, "\n")] = 0;
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s:%" PRIu64 ": %s", r->file, r->line + 1, r->why);
}

static void parse_chunk(reader *r, const unsigned char *chunk, size_t n) {
  if (yajl_parse(r->y, chunk, n) != yajl_status_ok) malformed(r, chunk, n);
  for (const unsigned char *p = chunk; (p = memchr(p, '\n', (size_t)(chunk + n - p))); p++) r->line++;
}

/* ---- the end: symbols become classes ---- */
static void resolve(reader *r) {
  tarn_sel_graph *g = r->g;
  uint32_t v = 0;
  for (uint32_t i = 0; i < g->n_kids; i++) {
    while (g->kid_first[v + 1] <= i) v++;
    uint32_t kid = r->node_of[g->kid[i]];
    if (kid == NONE)
      tarn_raise(r->cx, TARN_BAD_INPUT, "%s: node %s: child %s is not a node", r->file, sym_text(r, r->sym_of[v]),
                 sym_text(r, g->kid[i]));
    g->kid[i] = g->node_class[kid];
  }
}

static void resolve_roots(reader *r) {
  tarn_sel_graph *g = r->g;
  for (uint32_t i = 0; i < r->roots.n; i++) {
    uint32_t c = r->class_of[r->roots.p[i]];
    const char *name = sym_text(r, r->roots.p[i]);
    if (c == NONE && !(r->o && r->o->skip_missing_roots))
      tarn_raise(r->cx, TARN_BAD_INPUT, "%s: root %s names no class", r->file, name);
    if (c == NONE) tarn_warn(r->cx, "%s: root %s names no class: skipped", r->file, name);
    else g->root = room(r, g->root, g->n_roots, &g->cap_roots), g->root[g->n_roots++] = c;
  }
  if (!g->n_roots) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: no roots", r->file);
}

static void finish(reader *r) {
  tarn_sel_graph *g = r->g;
  if (yajl_complete_parse(r->y) != yajl_status_ok) malformed(r, (const unsigned char *)"", 0);
  if (r->at != AT_END) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: not an object", r->file);
  if (!g->n_nodes) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: no nodes", r->file);
  serve(r);
  sel_drop(r->cx, r->slot, r->n_slots, sizeof *r->slot);
  r->slot = NULL, r->n_slots = 0;
  resolve(r);
  resolve_roots(r);
  for (uint32_t v = 0; v < g->n_nodes; v++) r->sym_of[v] = r->text[r->sym_of[v]];
  g->node_name = r->sym_of, g->cap_node_names = r->cap_sym_of;
  r->sym_of = NULL, r->cap_sym_of = 0;
}

static void reader_close(void *arg) {
  reader *r = arg;
  sel_drop(r->cx, r->slot, r->n_slots, sizeof *r->slot);
  sel_drop(r->cx, r->text, r->cap_text, sizeof *r->text);
  sel_drop(r->cx, r->node_of, r->cap_node_of, sizeof *r->node_of);
  sel_drop(r->cx, r->class_of, r->cap_class_of, sizeof *r->class_of);
  sel_drop(r->cx, r->sym_of, r->cap_sym_of, sizeof *r->sym_of);
  sel_drop(r->cx, r->roots.p, r->roots.cap, sizeof *r->roots.p);
}

static void open_reader(reader *r) {
  tarn_defer(r->cx, reader_close, r);
  sel_pool_open(&r->mem, r->cx);
  yajl_alloc_funcs mem = {y_malloc, y_realloc, y_free, r};
  r->y = yajl_alloc(&callbacks, &mem, r);
  yajl_config(r->y, yajl_dont_validate_strings, 1);
  size_t n = strlen(r->file) + 1;
  r->g->file = sel_grow(r->cx, NULL, 0, n, 1);
  memcpy(r->g->file, r->file, n);
}

typedef struct source {
  reader r;
  const char *text;
  size_t n;
  FILE *f;
} source;

static void close_file(void *f) { fclose(f); }

static void read_file(tarn_ctx *cx, void *arg) {
  enum { CHUNK = 1 << 17 };
  source *s = arg;
  s->f = fopen(s->r.file, "rb");
  if (!s->f) tarn_raise(cx, TARN_IO, "%s: %s", s->r.file, strerror(errno));
  tarn_defer(cx, close_file, s->f);
  open_reader(&s->r);
  unsigned char *buf = sel_resize(&s->r.mem, NULL, CHUNK, 1);
  for (size_t n; (n = fread(buf, 1, CHUNK, s->f));) parse_chunk(&s->r, buf, n);
  if (ferror(s->f)) tarn_raise(cx, TARN_IO, "%s: %s", s->r.file, strerror(errno));
  finish(&s->r);
}

static void read_text(tarn_ctx *cx, void *arg) {
  (void)cx;
  source *s = arg;
  open_reader(&s->r);
  parse_chunk(&s->r, (const unsigned char *)s->text, s->n);
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

tarn_status tarn_sel_read_json(tarn_ctx *cx, const char *path, const tarn_sel_read_options *o, tarn_sel_graph **out) {
  source s = {.r = {.cx = cx, .o = o, .file = path}};
  return read_with(cx, &s, read_file, out);
}

tarn_status tarn_sel_parse_json(tarn_ctx *cx, const char *text, size_t n, const char *file, const tarn_sel_read_options *o,
                                tarn_sel_graph **out) {
  source s = {.r = {.cx = cx, .o = o, .file = file}, .text = text, .n = n};
  return read_with(cx, &s, read_text, out);
}
