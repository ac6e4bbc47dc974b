/* Kernel form: splits nests with more operands than a kernel may have.
 *
 * A part of an expression becomes a kernel of its own, over the loops that it needs, and a read of
 * its result replaces it. This repeats until the rest fits: a sum of 100 terms becomes one of 32,
 * one of that and 31 more, and one of the rest. */
#include "kernel/edit.h"
#include <string.h>

enum { PART = TARN_MAX_OPERANDS / 2, WORDS = (K_READS + 63) / 64 };

typedef struct reads {
  uint64_t bit[WORDS];
  uint32_t n;
  bool mixed; /* with what only the stage itself has: another stage's result, its own reduction's */
} reads;

/* The body or the epilogue of a stage; a hole of the epilogue is one above its read. */
typedef struct side {
  kern *k;
  kstage *st;
  bool body;
  uint32_t first; /* number of its first read */
  fxwalk w;
  reads of[K_FX]; /* by walk number */
} side;

static uint32_t *expression(const side *p) { return p->body ? &p->st->body : &p->st->epi; }

static void add_bit(reads *r, uint32_t i) {
  r->n += !(r->bit[i / 64] >> i % 64 & 1);
  r->bit[i / 64] |= UINT64_C(1) << i % 64;
}

static void add_all(reads *r, const reads *x) {
  r->mixed |= x->mixed;
  r->n = 0;
  for (uint32_t i = 0; i < WORDS; i++) {
    r->bit[i] |= x->bit[i];
    r->n += (uint32_t)__builtin_popcountll(r->bit[i]);
  }
}

static bool walk_side(side *p) {
  tarn_lang *L = p->k->L;
  if (!fx_walk(L, *expression(p), &p->w)) return false;
  for (uint32_t i = 0; i < p->w.n; i++) {
    const tarn_fx *x = tarn_fx_get(L, p->w.id[i]);
    reads *r = &p->of[i];
    *r = (reads){0};
    for (uint32_t a = 0; a < tarn_fx_arity(x->op); a++) add_all(r, &p->of[p->w.kid[i].at[a]]);
    if (x->op != TARN_FX_HOLE) continue;
    if (!p->body && x->hole == 0) r->mixed = true;
    else add_bit(r, x->hole - !p->body);
    r->mixed |= r->n && p->st->read[p->first + x->hole - !p->body].stage;
  }
  return true;
}

/* Reads that the expression needs once node i is a read itself. */
static uint32_t left_without(const side *p, uint32_t i) {
  tarn_lang *L = p->k->L;
  fxwalk w;
  uint32_t n = 0, hole = tarn_fx_hole(L, K_READS + 1);
  uint32_t f = fx_replace(L, *expression(p), &p->w.id[i], &hole, 1);
  if (f == TARN_NONE || !fx_walk(L, f, &w)) return UINT32_MAX;
  for (uint32_t j = 0; j < w.n; j++) n += tarn_fx_get(L, w.id[j])->op == TARN_FX_HOLE;
  return n - !p->body;
}

/* The node with most reads, at most `most`, without which fewer are left; TARN_NONE. */
static uint32_t best_part(const side *p, uint32_t most) {
  const reads *all = &p->of[p->w.n - 1];
  for (uint32_t n = most; n > 1; n--)
    for (uint32_t i = 0; i < p->w.n - p->body; i++)
      if (p->of[i].n == n && !p->of[i].mixed && left_without(p, i) < all->n) return i;
  return TARN_NONE;
}

/* Node i as a kernel over the loops that its reads need; its result is read in place of one of
 * them. */
static bool take_part(side *p, uint32_t i) {
  kern *k = p->k;
  tarn_lang *L = k->L;
  int64_t dim[2 * TARN_MAX_DIMS];
  tarn_read read[K_READS];
  uint32_t ndim = kern_dims(k, p->st, p->body, dim), n = 0, set = 0, naxis = 0;
  uint32_t axis[TARN_MAX_DIMS], with[K_READS + 1];
  for (uint32_t j = 0; j <= K_READS; j++) with[j] = TARN_NONE;
  for (uint32_t j = 0; j < K_READS; j++) {
    if (!(p->of[i].bit[j / 64] >> j % 64 & 1)) continue;
    with[j + !p->body] = tarn_fx_hole(L, n);
    read[n++] = p->st->read[p->first + j];
    set |= map_uses(L, read[n - 1].map);
  }
  for (uint32_t d = 0; d < ndim; d++)
    if (set >> d & 1) axis[naxis++] = d;
  uint32_t f = tarn_fx_subst(L, p->w.id[i], with, K_READS + 1);
  uint32_t part = kern_part(k, dim, ndim, axis, naxis, f, read, n);
  uint32_t leaf = part == TARN_NONE ? part : kern_leaf(k, part);
  if (leaf == TARN_NONE) return false;
  tarn_read r = {.src = leaf, .map = map_project(L, dim, ndim, axis, naxis)};
  uint32_t at = kern_add_read(p->st, p->body, r);
  if (at == TARN_NONE) return false;
  uint32_t hole = tarn_fx_hole(L, at + !p->body), *all = expression(p);
  *all = fx_replace(L, *all, &p->w.id[i], &hole, 1);
  return *all != TARN_NONE;
}

/* One part of the longer side of a stage. */
static bool shorten(kern *k, kstage *st) {
  side *p = TARN_NEW(tarn_lang_ctx(k->L), side);
  bool body = st->nb >= st->ne || st->epi == TARN_NONE;
  *p = (side){.k = k, .st = st, .body = body, .first = body ? 0 : st->nb};
  if (!walk_side(p)) return false;
  uint32_t i = best_part(p, PART);
  if (i == TARN_NONE) i = best_part(p, TARN_MAX_OPERANDS);
  return i != TARN_NONE && take_part(p, i);
}

bool kern_take_apart(kern *k) {
  for (;;) {
    uint32_t most = 0;
    if (!kern_tidy(k)) return false;
    if (kern_fits(k)) return true;
    for (uint32_t i = 1; i < k->nstage; i++) {
      const kstage *a = &k->stage[i], *b = &k->stage[most];
      if (a->nb + a->ne > b->nb + b->ne) most = i;
    }
    if (!shorten(k, &k->stage[most])) return false;
  }
}
