/* Changes of the texts of proofs, in all their dialects: numbers, names, words, lines, and what is
 * said of constants. Most make nonsense; the others make a proof of something else, or a forged
 * one. Nothing is promised of the result but that it is text. */
#ifndef TARN_TESTS_MUTATE_H
#define TARN_TESTS_MUTATE_H
#include "base/base.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct mutating {
  tarn_ctx *cx;
  const char *text;
  uint64_t *rng;
} mutating;
typedef struct mutate_span {
  const char *at; /* NULL: there is none */
  size_t n;
} mutate_span;
typedef bool mutate_fits(mutate_span s);

static inline size_t mutate_below(mutating *m, size_t n) {
  return (size_t)(tarn_random(m->rng) % n);
}
/* The text with other text at a place. */
static inline const char *mutate_splice(mutating *m, mutate_span s, const char *now) {
  if (!s.at || !now) return NULL;
  return tarn_format(m->cx, "%.*s%s%s", (int)(s.at - m->text), m->text, now, s.at + s.n);
}
static inline char *mutate_copy(mutating *m, mutate_span s) {
  return s.at ? tarn_strndup(m->cx, s.at, s.n) : NULL;
}

/* ---------------------------------------------------------------- tokens */

static inline bool mutate_number(mutate_span s) {
  char c = s.at[0] == '-' && s.n > 1 ? s.at[1] : s.at[0];
  return isdigit((unsigned char)c);
}
static inline bool mutate_name(mutate_span s) { return s.at[0] == '%' && s.n > 1; }
static inline bool mutate_word(mutate_span s) { return isalpha((unsigned char)s.at[0]); }
static inline bool mutate_string(mutate_span s) { return s.at[0] == '"' && s.n > 2; }
static inline bool mutate_shape(mutate_span s) { return isdigit((unsigned char)s.at[0]); }
static inline bool mutate_any(mutate_span s) { return s.n > 0; }

/* A random token that fits in the text from s to end. */
static inline mutate_span mutate_token_in(mutating *m, const char *s, const char *end,
                                          mutate_fits *fits) {
  mutate_span found = {0};
  size_t seen = 0;
  for (; s < end; s += !!*s) {
    s += strspn(s, " ()\n");
    if (*s == ';') s += strcspn(s, "\n");
    mutate_span t = {s, strcspn(s, " ()\n")};
    if (s >= end || !t.n) continue;
    if (fits(t) && mutate_below(m, ++seen) == 0) found = t;
    s += t.n - 1;
  }
  return found;
}
static inline mutate_span mutate_token(mutating *m, mutate_fits *fits) {
  return mutate_token_in(m, m->text, m->text + strlen(m->text), fits);
}
static inline size_t mutate_list(const char *s) { /* the length of the list that begins here */
  int depth = 0;
  size_t n = 0;
  do depth += (s[n] == '(') - (s[n] == ')');
  while (s[n++] && depth);
  return n;
}
/* A random list that begins so. */
static inline mutate_span mutate_form(mutating *m, const char *head) {
  mutate_span found = {0};
  size_t seen = 0;
  for (const char *s = m->text; (s = strstr(s, head)); s++)
    if (mutate_below(m, ++seen) == 0) found = (mutate_span){s, mutate_list(s)};
  return found;
}
/* A token of such a list, behind its head. */
static inline mutate_span mutate_in(mutating *m, const char *head, mutate_fits *fits) {
  mutate_span f = mutate_form(m, head);
  return f.at ? mutate_token_in(m, f.at + strlen(head), f.at + f.n, fits) : f;
}
static inline const char *mutate_other_number(mutating *m, mutate_span s) {
  if (!s.at) return NULL;
  char *old = mutate_copy(m, s);
  double v = strtod(old, NULL);
  size_t way = mutate_below(m, 7);
  if (way == 6) return mutate_copy(m, mutate_token(m, mutate_number));
  double now[] = {v + 1, v - 1, 0, 2 * v, -v, v * 0.75};
  if (strpbrk(old, ".e")) return tarn_format(m->cx, "%.17g", now[way]);
  return tarn_format(m->cx, "%lld", (long long)now[way]);
}

/* ---------------------------------------------------------------- kinds of changes */

static inline const char *mutate_a_number(mutating *m) {
  mutate_span s = mutate_token(m, mutate_number);
  return mutate_splice(m, s, mutate_other_number(m, s));
}
static inline const char *mutate_a_name(mutating *m) {
  mutate_span s = mutate_token(m, mutate_name);
  return mutate_splice(m, s, mutate_copy(m, mutate_token(m, mutate_name)));
}
static inline const char *mutate_a_word(mutating *m) {
  mutate_span s = mutate_token(m, mutate_word);
  return mutate_splice(m, s, mutate_copy(m, mutate_token(m, mutate_word)));
}
/* One token becomes another wherever it stands. */
static inline const char *mutate_everywhere(mutating *m) {
  mutate_span s = mutate_token(m, mutate_any);
  if (!s.at) return NULL;
  mutate_fits *kind = mutate_number(s) ? mutate_number : mutate_word(s) ? mutate_word : mutate_any;
  const char *now =
      kind == mutate_number ? mutate_other_number(m, s) : mutate_copy(m, mutate_token(m, kind));
  tarn_buf b = {.cx = m->cx};
  for (const char *t = m->text; *t;) {
    size_t gap = strspn(t, " ()\n"), n = strcspn(t + gap, " ()\n");
    tarn_buf_add(&b, t, gap);
    bool same = n == s.n && memcmp(t + gap, s.at, n) == 0;
    tarn_buf_add(&b, same ? now : t + gap, same ? strlen(now) : n);
    t += gap + n;
  }
  return b.p;
}
/* The last brackets of a line close what stands around it, and stay. */
static inline mutate_span mutate_step(mutating *m) { return mutate_form(m, "(step "); }
static inline const char *mutate_dropped(mutating *m) {
  return mutate_splice(m, mutate_step(m), "");
}
static inline const char *mutate_swapped(mutating *m) {
  mutate_span a = mutate_step(m), b = mutate_step(m);
  if (!a.at || a.at == b.at) return NULL;
  if (b.at < a.at) { /* b is the later one */
    mutate_span c = a;
    a = b, b = c;
  }
  return tarn_format(m->cx, "%.*s%.*s%.*s%.*s%s", (int)(a.at - m->text), m->text, (int)b.n, b.at,
                     (int)(b.at - a.at - (ptrdiff_t)a.n), a.at + a.n, (int)a.n, a.at, b.at + b.n);
}
static inline const char *mutate_doubled(mutating *m) {
  mutate_span s = mutate_step(m);
  char *twice = s.at ? tarn_format(m->cx, "%.*s %.*s", (int)s.n, s.at, (int)s.n, s.at) : NULL;
  return mutate_splice(m, s, twice);
}
static inline const char *mutate_turned(mutating *m) {
  static const char *const way[] = {" -> ", " <- ", " forward ", " backward "};
  size_t k = mutate_below(m, 4);
  mutate_span s = mutate_form(m, way[k]);
  s.n = strlen(way[k]);
  return mutate_splice(m, s, way[k ^ 1]);
}
static inline const char *mutate_theorem(mutating *m) {
  mutate_span s = mutate_in(m, "(theorem ", mutate_name);
  return mutate_splice(m, s, mutate_copy(m, mutate_token(m, mutate_name)));
}
static inline const char *mutate_bound(mutating *m) { /* what a variable stands for */
  mutate_span s = mutate_in(m, "(where ", mutate_number);
  return mutate_splice(m, s, mutate_other_number(m, s));
}

/* ---------------------------------------------------------------- what is said of constants */

static inline const char *mutate_range(mutating *m) {
  mutate_span s = mutate_in(m, "(range ", mutate_number);
  return mutate_splice(m, s, mutate_other_number(m, s));
}
static inline const char *mutate_hash(mutating *m) {
  mutate_span s = mutate_in(m, "(hash ", mutate_string);
  char *now = mutate_copy(m, s);
  if (mutate_below(m, 2))
    return mutate_splice(m, s, mutate_copy(m, mutate_in(m, "(hash ", mutate_string)));
  if (now) now[1 + mutate_below(m, s.n - 2)] = "0123456789abcdef"[mutate_below(m, 16)];
  return mutate_splice(m, s, now);
}
static inline const char *mutate_value(mutating *m) {
  mutate_span s = mutate_in(m, mutate_below(m, 2) ? "(fill " : "(const ", mutate_number);
  return mutate_splice(m, s, mutate_other_number(m, s));
}
static inline const char *mutate_byte(mutating *m) {
  mutate_span f = mutate_form(m, "(bytes \""), s = {0};
  if (f.at) s = (mutate_span){strchr(f.at + 8, '"') + 3, 1};
  if (f.at) s.at += mutate_below(m, f.n - (size_t)(s.at - f.at) - 2);
  return mutate_splice(m, s, tarn_format(m->cx, "%x", (unsigned)mutate_below(m, 16)));
}
/* Its type or its extents. */
static inline const char *mutate_declared(mutating *m) {
  const char *head = mutate_below(m, 3) ? "(tensor " : "(input ";
  bool number = mutate_below(m, 2);
  mutate_span s = mutate_in(m, head, number ? mutate_shape : mutate_word);
  const char *const types[] = {"f32", "f64", "i32", "i64", "u8", "i8", "bool", "f16"};
  return mutate_splice(m, s, number ? mutate_other_number(m, s) : types[mutate_below(m, 8)]);
}
/* A constant becomes a mere input, or one that is filled, or a parameter gets a range. */
static inline const char *mutate_made(mutating *m) {
  bool input = mutate_below(m, 2);
  mutate_span f = mutate_form(m, input ? "(input const:" : "(tensor ");
  if (!f.at) return NULL;
  tarn_sx *s = tarn_sx_read(m->cx, f.at, f.n, "form")->kid[0];
  tarn_buf b = {.cx = m->cx};
  bool known = s->n == 6 && s->kid[4]->n == 2;
  if (s->n < (input ? 4 : 5) || (!input && !known)) return NULL;
  tarn_buf_str(&b, input                ? "(tensor \"p\" "
                   : mutate_below(m, 2) ? "(input \"const:"
                                        : "(tensor c ");
  bool filled = b.p[1] == 't';
  if (!input && !filled) tarn_buf_fmt(&b, "%s\" ", s->kid[4]->kid[1]->text);
  const tarn_sx *shape = s->kid[input ? 2 : 3];
  const char *type = s->kid[input ? 3 : 2]->text;
  if (filled) tarn_buf_fmt(&b, "%s ", type);
  tarn_sx_print(&b, shape, 0);
  if (input) tarn_buf_fmt(&b, " (hash \"%s\") (range 0 1))", s->kid[1]->text + strlen("const:"));
  else if (filled) tarn_buf_str(&b, " (fill 1))");
  else tarn_buf_fmt(&b, " %s)", type);
  return mutate_splice(m, f, b.p);
}

/* Another text, and what was done; NULL: what was tried does not occur in it. */
static inline const char *mutate(tarn_ctx *cx, const char *text, uint64_t *rng, const char **what) {
  static const struct {
    const char *what;
    const char *(*change)(mutating *m);
  } kinds[] = {{"a number", mutate_a_number},      {"a term's name", mutate_a_name},
               {"a word", mutate_a_word},          {"a token everywhere", mutate_everywhere},
               {"a step dropped", mutate_dropped}, {"steps swapped", mutate_swapped},
               {"a step doubled", mutate_doubled}, {"a step turned", mutate_turned},
               {"the theorem", mutate_theorem},    {"a variable", mutate_bound},
               {"a range", mutate_range},          {"a fingerprint", mutate_hash},
               {"a value", mutate_value},          {"a byte", mutate_byte},
               {"a type", mutate_declared},        {"a constant", mutate_made}};
  mutating m = {cx, text, rng};
  size_t k = mutate_below(&m, sizeof kinds / sizeof *kinds);
  *what = kinds[k].what;
  const char *now = kinds[k].change(&m);
  return now && strcmp(now, text) ? now : NULL;
}
#endif
