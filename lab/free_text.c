/* Texts and multisets as values of free rule sets.
 *
 * The leaf of a text is its bytes behind a ', that of a multiset its elements in order between
 * braces, with commas: {1,1,'a}. Within a multiset a \ stands before a comma, a brace or a \ of a
 * text or name, and before a name that would read as another value. Equal multisets have one such
 * name, so that they have one leaf. */
#include "lab/free.h"
#include "lab/text.h"
#include <string.h>

/* Of a leaf's name; elements of a multiset, with all in it; levels of multisets. */
enum { MOST_BYTES = 1 << 16, MOST_ELEMENTS = 1 << 12, MOST_LEVELS = 32 };

/* ---------------------------------------------------------------- texts */

static bool is_text(tarn_ctx *cx, const char *s, size_t n, fval *out) {
  if (n >= MOST_BYTES) return false;
  *out = (fval){.kind = FV_TEXT, .p = (int64_t)n, .text = tarn_strndup(cx, s, n)};
  return true;
}
static bool of_buf(const tarn_buf *b, fval *out) {
  *out = (fval){.kind = FV_TEXT, .p = (int64_t)b->n, .text = b->p};
  return b->n < MOST_BYTES;
}
static bool text_arg(const fenv *e, const fexpr *x, uint32_t i, fval *out) {
  return free_arg(e, x, i, out) && out->kind == FV_TEXT;
}
static bool integer_is(int64_t i, const fenv *e, fval *out) {
  *out = e->f->numbers == FREE_REAL ? (fval){.kind = FV_REAL, .x = (double)i}
                                    : (fval){.kind = FV_FRACTION, .p = i, .q = 1};
  return true;
}
static bool f_concat(const fenv *e, const fexpr *x, fval *out) {
  fval a, b;
  if (!text_arg(e, x, 0, &a) || !text_arg(e, x, 1, &b)) return false;
  tarn_buf all = {.cx = e->f->cx};
  tarn_buf_add(&all, a.text, (size_t)a.p);
  tarn_buf_add(&all, b.text, (size_t)b.p);
  return of_buf(&all, out);
}
/* In characters of UTF-8. */
static bool f_length(const fenv *e, const fexpr *x, fval *out) {
  fval a;
  return text_arg(e, x, 0, &a) && integer_is(text_length(a.text, (size_t)a.p), e, out);
}
/* (replace TEXT OLD NEW): all, from the left. */
static bool f_replace(const fenv *e, const fexpr *x, fval *out) {
  fval a, old, by;
  if (!text_arg(e, x, 0, &a) || !text_arg(e, x, 1, &old) || !text_arg(e, x, 2, &by)) return false;
  uint64_t times = text_count(a.text, (size_t)a.p, old.text, (size_t)old.p);
  if (times * (uint64_t)by.p >= MOST_BYTES) return false;
  tarn_buf b = {.cx = e->f->cx};
  text_replace(&b, a.text, (size_t)a.p, old.text, (size_t)old.p, by.text, (size_t)by.p);
  return of_buf(&b, out);
}
/* Of a number or a name. */
static bool f_text(const fenv *e, const fexpr *x, fval *out) {
  size_t n;
  if (!free_arg(e, x, 0, out) || out->kind == FV_BAG) return false;
  if (out->kind == FV_TEXT) return true;
  tarn_buf b = {.cx = e->f->cx};
  if (out->kind == FV_NAME) {
    const char *s = tarn_intern_key(e->f->symbol, out->symbol, &n);
    tarn_buf_add(&b, s, n);
  } else free_put_value(e->f, &b, out);
  return of_buf(&b, out);
}
static bool f_number(const fenv *e, const fexpr *x, fval *out) {
  fval a;
  if (!text_arg(e, x, 0, &a) || !a.p || !strchr("+-.0123456789", a.text[0])) return false;
  *out = free_parse(e->f, a.text, (size_t)a.p);
  return out->kind != FV_NONE;
}

/* ---------------------------------------------------------------- multisets */

/* In which multisets list their elements: numbers, names, texts, multisets. */
static int kind_order(const fval *v) {
  return v->kind == FV_NAME ? 1 : v->kind == FV_TEXT ? 2 : v->kind == FV_BAG ? 3 : 0;
}
static int bytes_order(const char *a, size_t n, const char *b, size_t m) {
  int c = memcmp(a, b, n < m ? n : m);
  return c ? c : n < m ? -1 : n > m;
}
static int order(const free_state *f, const fval *a, const fval *b);
static int bag_order(const free_state *f, const fbag *a, const fbag *b) {
  if (a == b) return 0;
  for (uint32_t i = 0; i < a->n && i < b->n; i++) {
    int c = order(f, &a->elem[i], &b->elem[i]);
    if (c) return c;
  }
  return a->n < b->n ? -1 : a->n > b->n;
}
static int order(const free_state *f, const fval *a, const fval *b) {
  size_t n, m;
  int c = kind_order(a) - kind_order(b);
  if (c) return c;
  if (a->kind == FV_BAG) return bag_order(f, a->bag, b->bag);
  if (a->kind == FV_TEXT) return bytes_order(a->text, (size_t)a->p, b->text, (size_t)b->p);
  if (a->kind != FV_NAME) return free_compare(a, b);
  if (a->symbol == b->symbol) return 0;
  const char *s = tarn_intern_key(f->symbol, a->symbol, &n);
  return bytes_order(s, n, tarn_intern_key(f->symbol, b->symbol, &m), m);
}
bool free_bags_equal(const fval *a, const fval *b) {
  if (a->bag == b->bag) return true;
  if (a->bag->n != b->bag->n || a->bag->bytes != b->bag->bytes) return false;
  for (uint32_t i = 0; i < a->bag->n; i++)
    if (free_compare(&a->bag->elem[i], &b->bag->elem[i])) return false;
  return true;
}
/* Room that an element takes in the name, at most. */
static uint64_t bytes_of(const free_state *f, const fval *v) {
  size_t n = 0;
  switch (v->kind) {
  case FV_NAME: return tarn_intern_key(f->symbol, v->symbol, &n), 2 * n + 2;
  case FV_TEXT: return 2 * (uint64_t)v->p + 2;
  case FV_BAG: return v->bag->bytes + 1;
  case FV_BIG: return MOST_BYTES; /* too long for an element */
  default: return 48;
  }
}
/* Of elements in order. */
static bool is_bag(const free_state *f, const fval *elem, uint32_t n, fval *out) {
  fbag is = {.n = n, .levels = 1, .all = n, .bytes = 2};
  for (uint32_t i = 0; i < n; i++) {
    is.bytes += bytes_of(f, &elem[i]);
    if (elem[i].kind != FV_BAG) continue;
    if (is.levels <= elem[i].bag->levels) is.levels = elem[i].bag->levels + 1;
    is.all += elem[i].bag->all;
  }
  if (is.all > MOST_ELEMENTS || is.bytes > MOST_BYTES || is.levels > MOST_LEVELS) return false;
  fval *own = TARN_ARRAY(f->cx, fval, n + 1);
  for (uint32_t i = 0; i < n; i++) own[i] = elem[i];
  is.elem = own;
  *out = (fval){.kind = FV_BAG, .bag = tarn_copy(f->cx, &is, sizeof is)};
  return true;
}
/* Where the first element stands that is not before v. */
static uint32_t place(const free_state *f, const fval *elem, uint32_t n, const fval *v) {
  uint32_t lo = 0;
  while (lo < n) {
    uint32_t mid = lo + (n - lo) / 2;
    if (order(f, &elem[mid], v) < 0) lo = mid + 1;
    else n = mid;
  }
  return lo;
}
static uint32_t count(const free_state *f, const fbag *b, const fval *v, uint32_t *first) {
  uint32_t at = place(f, b->elem, b->n, v), end = at;
  while (end < b->n && !order(f, &b->elem[end], v)) end++;
  *first = at;
  return end - at;
}
static void put_in(const free_state *f, fval *elem, uint32_t n, const fval *v) {
  uint32_t at = place(f, elem, n, v);
  memmove(elem + at + 1, elem + at, (n - at) * sizeof *elem);
  elem[at] = *v;
}
static bool bag_arg(const fenv *e, const fexpr *x, uint32_t i, fval *out) {
  return free_arg(e, x, i, out) && out->kind == FV_BAG;
}
static bool f_bag(const fenv *e, const fexpr *x, fval *out) {
  (void)x;
  return is_bag(e->f, NULL, 0, out);
}
static bool f_insert(const fenv *e, const fexpr *x, fval *out) {
  fval a, v;
  if (!bag_arg(e, x, 0, &a) || !free_arg(e, x, 1, &v)) return false;
  fval *elem = TARN_ARRAY(e->f->cx, fval, a.bag->n + 1);
  memcpy(elem, a.bag->elem, a.bag->n * sizeof *elem);
  put_in(e->f, elem, a.bag->n, &v);
  return is_bag(e->f, elem, a.bag->n + 1, out);
}
/* One of them, if there is any. */
static bool f_remove(const fenv *e, const fexpr *x, fval *out) {
  fval v;
  uint32_t at;
  if (!bag_arg(e, x, 0, out) || !free_arg(e, x, 1, &v)) return false;
  const fbag *b = out->bag;
  if (!count(e->f, b, &v, &at)) return true;
  fval *elem = tarn_copy(e->f->cx, b->elem, b->n * sizeof *elem);
  memmove(elem + at, elem + at + 1, (b->n - at - 1) * sizeof *elem);
  return is_bag(e->f, elem, b->n - 1, out);
}
/* How often an element is in the result that is in them a and b times: 's' a + b, 'u' the larger,
 * 'b' the smaller, 'd' a - b. */
static bool merged(const fenv *e, const fexpr *x, char how, fval *out) {
  fval a, b;
  if (!bag_arg(e, x, 0, &a) || !bag_arg(e, x, 1, &b)) return false;
  fval *to = TARN_ARRAY(e->f->cx, fval, a.bag->n + b.bag->n + 1);
  uint32_t n = 0, i = 0, k = 0;
  while (i < a.bag->n || k < b.bag->n) {
    int c = i == a.bag->n ? 1 : k == b.bag->n ? -1 : order(e->f, &a.bag->elem[i], &b.bag->elem[k]);
    const fval *v = c <= 0 ? &a.bag->elem[i] : &b.bag->elem[k];
    bool step = how == 's' && !c; /* the other one comes next */
    if (how == 'b' ? !c : how == 'd' ? c < 0 : true) to[n++] = *v;
    i += c <= 0, k += c > 0 || (!c && !step);
  }
  return is_bag(e->f, to, n, out);
}
static bool f_sum(const fenv *e, const fexpr *x, fval *out) { return merged(e, x, 's', out); }
static bool f_union(const fenv *e, const fexpr *x, fval *out) { return merged(e, x, 'u', out); }
static bool f_both(const fenv *e, const fexpr *x, fval *out) { return merged(e, x, 'b', out); }
static bool f_less(const fenv *e, const fexpr *x, fval *out) { return merged(e, x, 'd', out); }
static bool f_size(const fenv *e, const fexpr *x, fval *out) {
  fval a;
  return bag_arg(e, x, 0, &a) && integer_is(a.bag->n, e, out);
}
/* Of an element; of a text in a text. */
static bool f_count(const fenv *e, const fexpr *x, fval *out) {
  fval a, v;
  uint32_t at;
  if (!free_arg(e, x, 0, &a) || !free_arg(e, x, 1, &v)) return false;
  if (a.kind == FV_BAG) return integer_is(count(e->f, a.bag, &v, &at), e, out);
  if (a.kind != FV_TEXT || v.kind != FV_TEXT) return false;
  return integer_is(text_count(a.text, (size_t)a.p, v.text, (size_t)v.p), e, out);
}
static bool f_contains(const fenv *e, const fexpr *x, fval *out) {
  fval a, v;
  uint32_t at;
  bool is = free_arg(e, x, 0, &a) && free_arg(e, x, 1, &v);
  if (is && a.kind == FV_BAG) is = count(e->f, a.bag, &v, &at) > 0;
  else if (is && a.kind == FV_TEXT && v.kind == FV_TEXT)
    is = !v.p || text_find(a.text, (size_t)a.p, v.text, (size_t)v.p);
  else is = false;
  *out = (fval){.p = is};
  return true;
}

const ffun free_many[] = {
    {"concat", "vv:v", f_concat, 0, 0},     {"length", "v:v", f_length, 0, 0},
    {"replace", "vvv:v", f_replace, 0, 0},  {"text", "v:v", f_text, 0, 0},
    {"number", "v:v", f_number, 0, 0},      {"bag", ":v", f_bag, 0, 0},
    {"insert", "vv:v", f_insert, 0, 0},     {"remove", "vv:v", f_remove, 0, 0},
    {"sum", "vv:v", f_sum, 0, 0},           {"union", "vv:v", f_union, 0, 0},
    {"both", "vv:v", f_both, 0, 0},         {"less", "vv:v", f_less, 0, 0},
    {"size", "v:v", f_size, 0, 0},          {"count", "vv:v", f_count, 0, 0},
    {"contains", "vv:b", f_contains, 0, 0},
};
const size_t free_n_many = sizeof free_many / sizeof *free_many;

/* ---------------------------------------------------------------- names of leaves */

static void put_escaped(tarn_buf *b, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (strchr(",{}\\", s[i]) && s[i]) tarn_buf_str(b, "\\");
    tarn_buf_add(b, s + i, 1);
  }
}
static void put_element(const free_state *f, tarn_buf *b, const fval *v) {
  size_t n;
  if (v->kind == FV_TEXT) {
    tarn_buf_str(b, "'");
    put_escaped(b, v->text, (size_t)v->p);
  } else if (v->kind == FV_NAME) {
    const char *s = tarn_intern_key(f->symbol, v->symbol, &n);
    bool other = *s != '{' && free_parse(f, s, n).kind != FV_NONE;
    if (other) tarn_buf_str(b, "\\");
    put_escaped(b, s, n);
  } else free_put_value(f, b, v);
}
void free_put_many(const free_state *f, tarn_buf *b, const fval *v) {
  if (v->kind == FV_TEXT) {
    tarn_buf_str(b, "'");
    tarn_buf_add(b, v->text, (size_t)v->p);
    return;
  }
  tarn_buf_str(b, "{");
  for (uint32_t i = 0; i < v->bag->n; i++) {
    if (i) tarn_buf_str(b, ",");
    put_element(f, b, &v->bag->elem[i]);
  }
  tarn_buf_str(b, "}");
}

static bool parse_bag(const free_state *f, const char *s, size_t n, uint32_t level, fval *out);
static bool parse_element(const free_state *f, const char *s, size_t n, uint32_t level, fval *out) {
  if (n && *s == '{') return parse_bag(f, s, n, level + 1, out);
  tarn_buf b = {.cx = f->cx};
  tarn_buf_str(&b, "");
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '\\' && ++i == n) return false;
    tarn_buf_add(&b, s + i, 1);
  }
  if (n && *s == '\'') return is_text(f->cx, b.p + 1, b.n - 1, out);
  *out = n && *s != '\\' ? free_parse(f, b.p, b.n) : (fval){0};
  if (out->kind != FV_NONE && out->kind != FV_BIG) return true;
  uint32_t symbol = tarn_intern_find(f->symbol, b.p, b.n);
  for (uint32_t i = 0; i < f->named.n; i++)
    if (f->named.p[i] == symbol) return *out = (fval){.kind = FV_NAME, .symbol = symbol}, true;
  return false;
}
/* The comma or brace that ends the element at s[i]. */
static size_t element_end(const char *s, size_t n, size_t i) {
  uint32_t open = 0;
  for (; i < n; i++) {
    if (s[i] == '\\') i++;
    else if (!open && (s[i] == ',' || s[i] == '}')) break;
    else if (s[i] == '{') open++;
    else if (s[i] == '}') open--;
  }
  return i;
}
static bool parse_bag(const free_state *f, const char *s, size_t n, uint32_t level, fval *out) {
  TARN_VEC(fval) elem = {0};
  if (n == 2 && s[1] == '}') return is_bag(f, NULL, 0, out);
  if (n > MOST_BYTES || level > MOST_LEVELS) return false;
  for (size_t i = 1; i < n;) {
    size_t end = element_end(s, n, i);
    fval v;
    if (end >= n || (s[end] == '}') != (end + 1 == n) || elem.n == MOST_ELEMENTS) return false;
    if (!parse_element(f, s + i, end - i, level, &v)) return false;
    tarn_push(f->cx, &elem, v);
    put_in(f, elem.p, elem.n - 1, &v);
    i = end + 1;
  }
  return elem.n && is_bag(f, elem.p, elem.n, out);
}
bool free_parse_many(const free_state *f, const char *s, size_t n, fval *out) {
  if (n && *s == '\'') return is_text(f->cx, s + 1, n - 1, out);
  return n > 1 && *s == '{' && parse_bag(f, s, n, 1, out);
}
