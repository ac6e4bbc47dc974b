/* Domains whose operators are no scalar operators: texts, and what a caller brings along.
 *
 * A text is written 'abc, the empty one '. It is its own number: eight bytes in n, seven more in d,
 * so nothing has to be kept for it; longer ones are too large to say. */
#include "lab/meaning.h"
#include <string.h>

static const mval none = {0, M_NONE}, unknown = {0, M_UNKNOWN};
static mval truth(bool x) { return (mval){x, 1}; }

/* ---------------------------------------------------------------- texts */

enum { LONGEST = 15 };
typedef struct text {
  size_t n;
  char p[2 * LONGEST + 2];
} text;
static text text_of(mval v) {
  text t = {0};
  uint64_t rest = (uint64_t)(v.d - 1);
  memcpy(t.p, &v.n, sizeof v.n);
  for (int i = 0; i < 7; i++) t.p[8 + i] = (char)(rest >> 8 * i & 0xFF);
  t.n = strlen(t.p);
  return t;
}
static mval value_of(const text *t) {
  mval v = {0, 1};
  if (t->n > LONGEST) return unknown;
  memcpy(&v.n, t->p, sizeof v.n);
  uint64_t rest = 0;
  for (int i = 0; i < 7; i++) rest |= (uint64_t)(uint8_t)t->p[8 + i] << 8 * i;
  v.d = (int64_t)rest + 1;
  return v;
}
static mval value_from(const char *p, size_t n) {
  text t = {.n = n};
  if (n > LONGEST) return unknown;
  memcpy(t.p, p, n);
  return value_of(&t);
}

enum { CONCAT, REVERSE, UPPER, LOWER, HEAD, TAIL, EMPTY, PREFIX, WITHIN };
static const tarn_own_op text_ops[] = {
    {"concat", 2, false}, {"reverse", 1, false}, {"upper", 1, false},
    {"lower", 1, false},  {"head", 1, false},    {"tail", 1, false},
    {"empty", 1, true},   {"prefix", 2, true},   {"within", 2, true},
};
static char turned(uint32_t op, const text *x, size_t i) {
  char c = x->p[op == REVERSE ? x->n - 1 - i : i];
  if (op == UPPER && c >= 'a' && c <= 'z') return (char)(c - 'a' + 'A');
  if (op == LOWER && c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
  return c;
}
static mval text_apply(uint32_t op, const mval *a) {
  text x = text_of(a[0]), y = {0}, out = {.n = x.n};
  if (op == CONCAT || op >= PREFIX) y = text_of(a[1]);
  switch (op) {
  case EMPTY: return truth(!x.n);
  case PREFIX: return truth(!strncmp(x.p, y.p, x.n));
  case WITHIN: return truth(strstr(y.p, x.p) != NULL);
  case CONCAT: memcpy(out.p, x.p, x.n), memcpy(out.p + x.n, y.p, y.n), out.n += y.n; break;
  case HEAD: return x.n ? value_from(x.p, 1) : none;
  case TAIL: return x.n ? value_from(x.p + 1, x.n - 1) : none;
  default:
    for (size_t i = 0; i < x.n; i++) out.p[i] = turned(op, &x, i);
  }
  return value_of(&out);
}
static const char *const text_corners[] = {"", "a", "b", "ab", "A", "ba", "aab", "Bc"};
/* Three of them joined can be said. */
static mval text_random(uint64_t *state) {
  char b[LONGEST / 3];
  size_t n = (size_t)(tarn_random(state) % (sizeof b + 1));
  for (size_t i = 0; i < n; i++) b[i] = "aabcAB"[tarn_random(state) % 6];
  return value_from(b, n);
}

/* ---------------------------------------------------------------- either */

static mval own_value(tarn_own_answer how, int64_t x) {
  return how == TARN_OWN_VALUE ? (mval){x, 1} : how == TARN_OWN_NONE ? none : unknown;
}
const tarn_own_op *mown_op(const meaning *m, const char *name, uint32_t *number) {
  bool texts = m->domain == M_STRING;
  uint32_t n = texts ? sizeof text_ops / sizeof *text_ops : m->own->n_op;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_own_op *o = texts ? &text_ops[i] : &m->own->op[i];
    *number = i;
    if (!strcmp(o->name, name)) return o;
  }
  return NULL;
}
mval mown_apply(const meaning *m, uint32_t op, const mval *a) {
  int64_t arg[3], out = 0;
  if (m->domain == M_STRING) return text_apply(op, a);
  for (uint32_t i = 0; i < m->own->op[op].arity; i++) arg[i] = a[i].n;
  tarn_own_answer how = m->own->apply(m->own->user, op, arg, &out);
  return own_value(how, m->own->op[op].truth ? out != 0 : out);
}
bool mown_read(const meaning *m, const char *s, mval *out) {
  if (m->domain == M_STRING) {
    if (s[0] != '\'') return false;
    *out = value_from(s + 1, strlen(s + 1));
    return m_has(*out);
  }
  *out = (mval){0, 1};
  return m->own->read && m->own->read(m->own->user, s, &out->n);
}
void mown_show(const meaning *m, mval v, tarn_buf *b) {
  char out[256] = "";
  if (m->domain == M_STRING) {
    text t = text_of(v);
    tarn_buf_fmt(b, "'%s", t.p);
  } else if (m->own->show) {
    m->own->show(m->own->user, v.n, out, sizeof out);
    out[sizeof out - 1] = 0;
    tarn_buf_str(b, out);
  } else tarn_buf_fmt(b, "%lld", (long long)v.n);
}
bool mown_corner(const meaning *m, uint32_t i, mval *out) {
  enum { CORNERS = sizeof text_corners / sizeof *text_corners };
  *out = (mval){0, 1};
  if (m->domain != M_STRING) return m->own->corner && m->own->corner(m->own->user, i, &out->n);
  if (i >= CORNERS) return false;
  *out = value_from(text_corners[i], strlen(text_corners[i]));
  return true;
}
mval mown_random(const meaning *m, uint64_t *state) {
  if (m->domain == M_STRING) return text_random(state);
  return (mval){m->own->random(m->own->user, tarn_random(state)), 1};
}
void tarn_free_domain(tarn_ruleset *rs, const tarn_own_domain *d) { free_of(rs)->domain = d; }
