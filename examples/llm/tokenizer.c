/* The tokenizer that a GGUF file holds: byte pairs in the manner of GPT-2. The file is mapped, and
 * texts point into it. */
#include "tokenizer.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- tables from texts to numbers ---- */
static uint32_t slot_of(const table *t, text k) {
  uint64_t h = 14695981039346656037u;
  for (uint64_t i = 0; i < k.n; i++) h = (h ^ (unsigned char)k.p[i]) * 1099511628211u;
  uint32_t at = (uint32_t)(h ^ h >> 32) & t->mask;
  while (t->key[at].p && (t->key[at].n != k.n || memcmp(t->key[at].p, k.p, k.n) != 0))
    at = (at + 1) & t->mask;
  return at;
}
static table table_of(const text *key, uint32_t n) {
  table t = {.mask = 1};
  while (t.mask < 2 * n) t.mask = 2 * t.mask + 1;
  t.key = calloc(t.mask + 1u, sizeof *t.key);
  t.value = calloc(t.mask + 1u, sizeof *t.value);
  if (!t.key || !t.value) die("memory", "there is no more");
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = slot_of(&t, key[i]);
    if (t.key[at].p) continue;
    t.key[at] = key[i];
    t.value[at] = i;
  }
  return t;
}
static uint32_t find(const table *t, text k) {
  uint32_t at = slot_of(t, k);
  return t->key[at].p ? t->value[at] : UINT32_MAX;
}

/* ---- the tokenizer of a GGUF file ---- */
enum { TEXT = 8, ARRAY = 9, CONTROL = 3 }; /* types of values; of a token */
typedef struct reader {
  const char *path, *at, *end;
} reader;

static text bytes(reader *r, uint64_t n) {
  if ((uint64_t)(r->end - r->at) < n) die(r->path, "is truncated");
  text t = {r->at, n};
  r->at += n;
  return t;
}
static uint64_t number(reader *r, unsigned size) {
  uint64_t v = 0;
  memcpy(&v, bytes(r, size).p, size); /* little-endian, as this machine */
  return v;
}
static text value(reader *r, uint64_t type) {
  static const uint8_t size[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (type >= sizeof size || type == ARRAY) die(r->path, "has a value of an unknown type");
  return bytes(r, type == TEXT ? number(r, 8) : size[type]);
}
static text *array(reader *r, uint64_t *n) {
  uint64_t type = number(r, 4);
  *n = number(r, 8);
  if (*n > (uint64_t)(r->end - r->at)) die(r->path, "is truncated");
  text *t = malloc(*n * sizeof *t + 1);
  for (uint64_t i = 0; t && i < *n; i++) t[i] = value(r, type);
  return t ? t : (die("memory", "there is no more"), NULL);
}
static bool is(text t, const char *s) { return t.n == strlen(s) && !memcmp(t.p, s, t.n); }
static void read_key(reader *r, tokenizer *t) {
  text key = value(r, TEXT);
  uint64_t type = number(r, 4), n = 0;
  text *all = type == ARRAY ? array(r, &n) : NULL;
  text one = all ? (text){0} : value(r, type);
  if (is(key, "tokenizer.ggml.model") && !is(one, "gpt2"))
    die(r->path, "its tokenizer is not that of GPT-2");
  if (is(key, "tokenizer.ggml.pre") && !is(one, "gpt-2") && !is(one, "smollm") &&
      !is(one, "default"))
    die(r->path, "its words are not those of GPT-2: chat.py knows them");
  if (is(key, "tokenizer.ggml.eos_token_id") && one.n == 4) memcpy(&t->end, one.p, 4);
  if (is(key, "tokenizer.ggml.tokens")) t->token = all, t->tokens = n;
  else if (is(key, "tokenizer.ggml.merges")) t->merge = all, t->merges = n;
  else if (is(key, "tokenizer.ggml.token_type")) t->kind = all, t->kinds = n;
  else free(all);
}
/* Tokens are written in letters: a byte that is none is one from 256 on. */
static void set_letters(tokenizer *t) {
  uint16_t others = 256;
  for (unsigned b = 0; b < 256; b++) {
    bool printed = (b > 32 && b < 127) || (b > 160 && b != 173);
    t->letter[b] = (uint16_t)(printed ? b : others++);
    t->byte[t->letter[b]] = (uint8_t)b;
  }
}
tokenizer read_tokenizer(const char *path) {
  tokenizer t = {.end = UINT32_MAX};
  struct stat st;
  int f = open(path, O_RDONLY);
  if (f < 0 || fstat(f, &st)) die(path, strerror(errno));
  char *all =
      mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, f, 0); /* texts point into it */
  if (all == MAP_FAILED) die(path, strerror(errno));
  close(f);
  reader r = {path, all, all + st.st_size};
  if (memcmp(bytes(&r, 4).p, "GGUF", 4) != 0) die(path, "is no GGUF file");
  bytes(&r, 12); /* version, number of tensors */
  for (uint64_t n = number(&r, 8); n > 0; n--) read_key(&r, &t);
  if (!t.tokens || t.tokens > INT32_MAX || t.merges > INT32_MAX) die(path, "has no tokenizer");
  set_letters(&t);
  t.id = table_of(t.token, (uint32_t)t.tokens);
  t.rank = table_of(t.merge, (uint32_t)t.merges);
  return t;
}

/* ---- texts as tokens ---- */
void print_token(const tokenizer *t, uint32_t id) {
  if (id >= t->tokens) return;
  const unsigned char *p = (const unsigned char *)t->token[id].p;
  for (uint64_t i = 0; i < t->token[id].n; i++) {
    bool two = p[i] >= 0xC0 && p[i] < 0xE0 && i + 1 < t->token[id].n;
    putchar((int)t->byte[two ? (p[i] & 31u) << 6 | (p[i + 1] & 63u) : p[i]]);
    i += two;
  }
  fflush(stdout);
}
/* What kind of character s begins with, and of how many bytes. Outside of ASCII, signs and pictures
 * are told from letters by their ranges. */
static int kind_of(const char *s, size_t *n) {
  const unsigned char *c = (const unsigned char *)s;
  bool letter = (*c | 32) >= 'a' && (*c | 32) <= 'z';
  bool sign = *c == 0xC2 || (*c == 0xE2 && c[1] < 0xB0) || (*c == 0xE3 && c[1] == 0x80) ||
              (*c == 0xF0 && c[1] == 0x9F);
  *n = 1;
  if (*c && strchr(" \t\n\v\f\r", *c)) return ' ';
  if (*c < 0x80) return letter ? 'a' : *c >= '0' && *c <= '9' ? '0' : '.';
  while ((c[*n] & 0xC0) == 0x80) ++*n;
  return sign ? '.' : 'a';
}
/* The length of the word that s begins with: GPT-2's rule. */
static size_t word_of(const char *s) {
  static const char *const cut[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
  for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
    if (!strncmp(s, cut[i], strlen(cut[i]))) return strlen(cut[i]);
  size_t length;
  size_t n = *s == ' ' && s[1] && kind_of(s + 1, &length) != ' ';
  int kind = kind_of(s + n, &length);
  size_t begin = n;
  while (s[n] && kind_of(s + n, &length) == kind) n += length;
  bool between = kind == ' ' && s[n] && n > begin + 1;
  return between ? n - 1 : n; /* the last space belongs to the next word */
}
/* Joins the pair of neighbours that was learned first, as long as there is one. */
static uint32_t encode_word(const tokenizer *t, const char *s, size_t n, uint32_t *out) {
  char *w = malloc(4 * n + 1);
  text *piece = malloc(n * sizeof *piece);
  if (!w || !piece) die("memory", "there is no more");
  char *end = w, *pair = w + 2 * n;
  for (size_t i = 0; i < n; i++) {
    unsigned c = t->letter[(unsigned char)s[i]];
    piece[i].p = end;
    if (c >= 128) *end++ = (char)(0xC0 | c >> 6), *end++ = (char)(0x80 | (c & 63));
    else *end++ = (char)c;
    piece[i].n = (uint64_t)(end - piece[i].p);
  }
  for (uint32_t best = 0; best != UINT32_MAX;) {
    size_t at = 0;
    best = UINT32_MAX;
    for (size_t i = 0; i + 1 < n; i++) {
      text a = piece[i], b = piece[i + 1];
      memcpy(pair, a.p, a.n), pair[a.n] = ' ', memcpy(pair + a.n + 1, b.p, b.n);
      uint32_t rank = find(&t->rank, (text){pair, a.n + 1 + b.n});
      if (rank < best) best = rank, at = i;
    }
    if (best == UINT32_MAX) break;
    piece[at].n += piece[at + 1].n;
    n--;
    memmove(piece + at + 1, piece + at + 2, (n - at - 1) * sizeof *piece);
  }
  for (size_t i = 0; i < n; i++)
    if ((out[i] = find(&t->id, piece[i])) == UINT32_MAX) die(s, "a letter of it is no token");
  free(piece), free(w);
  return (uint32_t)n;
}
/* A control token that s begins with, such as <|im_start|>. */
static uint32_t control(const tokenizer *t, const char *s) {
  for (uint32_t i = 0; *s == '<' && i < t->kinds && i < t->tokens; i++) {
    text k = t->token[i];
    if (t->kind[i].n == 4 && *t->kind[i].p == CONTROL && k.n && !strncmp(s, k.p, k.n)) return i;
  }
  return UINT32_MAX;
}
uint32_t encode(const tokenizer *t, const char *s, uint32_t *out) {
  uint32_t n = 0;
  while (*s) {
    uint32_t id = control(t, s);
    size_t length = id == UINT32_MAX ? word_of(s) : t->token[id].n;
    for (size_t i = 1; i < length && id == UINT32_MAX; i++)
      if (control(t, s + i) != UINT32_MAX) length = i;
    if (id != UINT32_MAX) out[n++] = id;
    else n += encode_word(t, s, length, out + n);
    s += length;
  }
  return n;
}
