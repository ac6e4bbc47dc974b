/* Hashing, interning and a u64 map. Both tables are open addressing over u32 slots into a dense
 * array, at most half full; a slot holds the dense index plus one, 0 when free. Order of insertion
 * is order of iteration. */
#include "base/internal.h"

#include <endian.h>
#include <string.h>

/* n: at most 8 */
static uint64_t load_le(const unsigned char *p, size_t n) {
  uint64_t x = 0;
  memcpy(&x, p, n);
  return le64toh(x);
}

static uint64_t scramble(uint64_t h) {
  return tarn_hash_mix(tarn_hash_mix(h, h >> 29), 0x2545F491u);
}

uint64_t tarn_hash_bytes(const void *data, size_t n, uint64_t seed) {
  const unsigned char *p = data;
  uint64_t h = tarn_hash_mix(seed, n);
  for (; n >= 8; p += 8, n -= 8) h = tarn_hash_mix(h, load_le(p, 8));
  if (n) h = tarn_hash_mix(h, load_le(p, n));
  return scramble(h);
}

/* ---- slots ---- */

typedef struct slots {
  uint32_t *at;
  uint32_t mask; /* count of slots - 1; at is NULL while mask is 0 */
} slots;

/* Is there room for one more than n entries? */
static bool slots_full(const slots *s, uint32_t n) { return !s->at || n >= s->mask / 2; }

static void slots_put(slots *s, uint64_t hash, uint32_t index) {
  uint32_t i = (uint32_t)hash & s->mask;
  while (s->at[i]) i = (i + 1) & s->mask;
  s->at[i] = index + 1;
}

static slots slots_wider(tarn_ctx *cx, const slots *s) {
  if (s->mask > UINT32_MAX / 2) tarn_raise_memory(cx);
  uint32_t count = s->at ? 2 * (s->mask + 1) : 16;
  if (count == 0) tarn_raise_memory(cx);
  return (slots){TARN_ARRAY(cx, uint32_t, count), count - 1};
}

/* ---- interning ---- */

typedef struct intern_entry {
  const void *key;
  size_t n;
  uint64_t hash;
} intern_entry;

struct tarn_intern {
  tarn_ctx *cx;
  slots s;
  TARN_VEC(intern_entry) e;
};

tarn_intern *tarn_intern_new(tarn_ctx *cx) {
  tarn_intern *t = TARN_NEW(cx, tarn_intern);
  t->cx = cx;
  return t;
}

static uint32_t intern_lookup(const tarn_intern *t, const void *key, size_t n, uint64_t hash) {
  if (!t->s.at) return TARN_NONE;
  for (uint32_t i = (uint32_t)hash & t->s.mask; t->s.at[i]; i = (i + 1) & t->s.mask) {
    const intern_entry *e = &t->e.p[t->s.at[i] - 1];
    if (e->hash == hash && e->n == n && (n == 0 || memcmp(e->key, key, n) == 0))
      return t->s.at[i] - 1;
  }
  return TARN_NONE;
}

uint32_t tarn_intern_find(const tarn_intern *t, const void *key, size_t n) {
  return intern_lookup(t, key, n, tarn_hash_bytes(key, n, 0));
}

uint32_t tarn_intern_add(tarn_intern *t, const void *key, size_t n) {
  uint64_t hash = tarn_hash_bytes(key, n, 0);
  uint32_t id = intern_lookup(t, key, n, hash);
  if (id != TARN_NONE) return id;
  const void *copy = tarn_strndup(t->cx, key, n);
  if (slots_full(&t->s, t->e.n)) {
    slots wide = slots_wider(t->cx, &t->s);
    for (uint32_t i = 0; i < t->e.n; i++) slots_put(&wide, t->e.p[i].hash, i);
    t->s = wide;
  }
  tarn_push(t->cx, &t->e, ((intern_entry){copy, n, hash}));
  slots_put(&t->s, hash, t->e.n - 1);
  return t->e.n - 1;
}

tarn_intern *tarn_intern_fork(tarn_ctx *cx, const tarn_intern *t, uint32_t n) {
  tarn_intern *f = tarn_intern_new(cx);
  f->e.p = tarn_copy(cx, t->e.p, n * sizeof *f->e.p);
  f->e.n = f->e.cap = n;
  while (slots_full(&f->s, n)) f->s = slots_wider(cx, &f->s);
  for (uint32_t i = 0; i < n; i++) slots_put(&f->s, f->e.p[i].hash, i);
  return f;
}

const void *tarn_intern_key(const tarn_intern *t, uint32_t id, size_t *n) {
  if (n) *n = t->e.p[id].n;
  return t->e.p[id].key;
}

uint32_t tarn_intern_count(const tarn_intern *t) { return t->e.n; }

/* ---- map ---- */

typedef struct map_entry {
  uint64_t key, value;
} map_entry;

struct tarn_map {
  tarn_ctx *cx;
  slots s;
  TARN_VEC(map_entry) e;
};

tarn_map *tarn_map_new(tarn_ctx *cx) {
  tarn_map *m = TARN_NEW(cx, tarn_map);
  m->cx = cx;
  return m;
}

static uint64_t map_hash(uint64_t key) { return scramble(tarn_hash_mix(0, key)); }

uint64_t *tarn_map_get(const tarn_map *m, uint64_t key) {
  if (!m->s.at) return NULL;
  for (uint32_t i = (uint32_t)map_hash(key) & m->s.mask; m->s.at[i]; i = (i + 1) & m->s.mask) {
    map_entry *e = &m->e.p[m->s.at[i] - 1];
    if (e->key == key) return &e->value;
  }
  return NULL;
}

uint64_t *tarn_map_at(tarn_map *m, uint64_t key, bool *fresh) {
  uint64_t *known = tarn_map_get(m, key);
  if (fresh) *fresh = known == NULL;
  if (known) return known;
  if (slots_full(&m->s, m->e.n)) {
    slots wide = slots_wider(m->cx, &m->s);
    for (uint32_t i = 0; i < m->e.n; i++) slots_put(&wide, map_hash(m->e.p[i].key), i);
    m->s = wide;
  }
  tarn_push(m->cx, &m->e, ((map_entry){key, 0}));
  slots_put(&m->s, map_hash(key), m->e.n - 1);
  return &m->e.p[m->e.n - 1].value;
}

tarn_map *tarn_map_fork(tarn_ctx *cx, const tarn_map *m, uint32_t n) {
  tarn_map *f = tarn_map_new(cx);
  f->e.p = tarn_copy(cx, m->e.p, n * sizeof *f->e.p);
  f->e.n = f->e.cap = n;
  while (slots_full(&f->s, n)) f->s = slots_wider(cx, &f->s);
  for (uint32_t i = 0; i < n; i++) slots_put(&f->s, map_hash(f->e.p[i].key), i);
  return f;
}

uint32_t tarn_map_count(const tarn_map *m) { return m->e.n; }

uint64_t *tarn_map_item(const tarn_map *m, uint32_t i, uint64_t *key) {
  if (key) *key = m->e.p[i].key;
  return &m->e.p[i].value;
}
