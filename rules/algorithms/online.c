/* Sums weighted by exponentials, over parts of their axis at a time (R64, R65). In C because its
 * left side is any number of stages in their roles, and that of the notation of loops is one stage.
 *
 * A nest takes the maximum m of x over an axis, multiplies by exp(x - m) and sums along that axis,
 * what a row has one of being multiplied or divided by: softmax behind a product is one such nest,
 * attention another. Each part of the axis has a maximum m_c and sums s_c of its own, and
 *
 *   m = max_c m_c      s = sum_c exp(m_c - m) s_c
 *
 * so that one nest over (rows, parts) gives all m_c and s_c, with local buffers as long as a part,
 * and a small second one combines them. A fully masked part has m_c = -inf: its
 * weights are taken against the lowest number instead, and are 0. Where all parts are, exp(m_c - m)
 * is NaN, as is exp(x - m). Milakov and Gimelshein, "Online normalizer calculation for softmax"
 * (2018); Dao et al., "FlashAttention" (NeurIPS 2022); the parts side by side: Dao et al.,
 * "Flash-Decoding for long-context inference" (2023). */
#include "rules/algorithms/build.h"
#include <float.h>
#include <string.h>

enum {
  MOST_FACTORS = 4,
  MOST_SUMS = 3,
  SHARE = 4
}; /* sums: beside the maximum, results of one kernel */

/* What a stage is in it: not behind the maximum; the maximum; exp(x - m); these times a row's
 * value; a sum of them; a row's value made of such sums. */
typedef enum { BEFORE, TOP, WEIGHT, SCALED, SUM, AFTER } role;
typedef struct factors { /* row values (stages) that a weight is multiplied or divided by, once its
                            sum is taken */
  uint32_t n, stage[MOST_FACTORS];
  bool divide[MOST_FACTORS];
} factors;
typedef struct online {
  kern *k;
  int64_t keys, parts;
  uint32_t top, at; /* the maximum's stage; the parts' loop stands before the shared loop `at` */
  uint32_t key[K_STAGES];   /* the axis among the dims of a stage; TARN_NONE */
  uint32_t base[K_STAGES];  /* WEIGHT, SCALED: the stage of the exponentials */
  uint32_t body[K_STAGES];  /* SUM: what is summed, row values taken out */
  factors factor[K_STAGES]; /* SCALED, SUM */
  role role[K_STAGES];
} online;

/* ---------------------------------------------------------------- the axis in every stage */

/* The axis goes from stage to stage with what they read of each other. */
static bool spread_key(online *o, uint32_t i, const tarn_read *r) {
  const kern *k = o->k;
  const tarn_imap *m = tarn_imap_get(k->L, r->map);
  bool any = false;
  for (uint32_t p = 0; r->stage && p < m->nin; p++) {
    uint32_t d = ix_loop(k->L, m->e[p]), own = k->depth + p;
    if (d == TARN_NONE || m->in[p] != m->dim[d]) continue;
    if (o->key[r->src] == own && o->key[i] == TARN_NONE) o->key[i] = d, any = true;
    if (o->key[i] == d && o->key[r->src] == TARN_NONE) o->key[r->src] = own, any = true;
  }
  return any;
}

/* Is the axis read by itself where a buffer lies along it, and not at all elsewhere? */
static bool key_kept(const online *o, uint32_t i, const tarn_read *r) {
  const tarn_imap *m = tarn_imap_get(o->k->L, r->map);
  if (!r->stage) return true;
  for (uint32_t p = 0; p < m->nin; p++) {
    bool along = o->key[r->src] == o->k->depth + p;
    if (along && (o->key[i] == TARN_NONE || ix_loop(o->k->L, m->e[p]) != o->key[i])) return false;
    if (!along && o->key[i] != TARN_NONE && (tarn_ix_dims(o->k->L, m->e[p]) >> o->key[i] & 1))
      return false;
  }
  return m->nguard == 0;
}

static bool find_keys(online *o) {
  const kern *k = o->k;
  for (uint32_t i = 0; i < k->nstage; i++)
    o->key[i] = i == o->top || kern_is_weight(k, o->top, &k->stage[i]) ? k->depth : TARN_NONE;
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < k->nstage; i++)
      for (uint32_t r = 0; r < k->stage[i].nb + k->stage[i].ne; r++)
        again |= spread_key(o, i, &k->stage[i].read[r]);
  }
  for (uint32_t i = 0; i < k->nstage; i++) {
    const kstage *s = &k->stage[i];
    int64_t dim[3 * TARN_MAX_DIMS];
    uint32_t n = kern_dims(k, s, true, dim), d = o->key[i];
    if (d != TARN_NONE && (d < k->depth || d >= n || dim[d] != o->keys)) return false;
    for (uint32_t r = 0; r < s->nb + s->ne; r++)
      if (!key_kept(o, i, &s->read[r])) return false;
  }
  return true;
}

/* ---------------------------------------------------------------- what each stage is */

/* Is the axis one of the stage's own dims (1), its one reduced dim (0), or neither (-1)? */
static int lies(const online *o, uint32_t i) {
  const kstage *s = &o->k->stage[i];
  if (o->key[i] == TARN_NONE) return -1;
  return o->key[i] < o->k->depth + s->nown ? 1 : s->nred == 1 ? 0 : -1;
}
static bool weighs(const online *o, const tarn_read *r) {
  return r->stage && (o->role[r->src] == WEIGHT || o->role[r->src] == SCALED);
}
/* A row's value, from a stage behind the maximum that has nothing but the shared loops. */
static bool of_row(const online *o, const tarn_read *r) {
  return r->stage && o->role[r->src] >= SUM && o->k->stage[r->src].nown == 0;
}
/* Does f read nothing that comes behind the maximum? */
static bool plain(const online *o, const kstage *s, uint32_t f) {
  fxwalk w;
  if (!fx_walk(o->k->L, f, &w)) return false;
  for (uint32_t i = 0; i < w.n; i++) {
    const tarn_fx *x = tarn_fx_get(o->k->L, w.id[i]);
    if (x->op == TARN_FX_HOLE && s->read[x->hole].stage && o->role[s->read[x->hole].src] != BEFORE)
      return false;
  }
  return true;
}
static bool add_factor(factors *to, uint32_t stage, bool divide) {
  if (to->n == MOST_FACTORS) return false;
  to->stage[to->n] = stage;
  to->divide[to->n++] = divide;
  return true;
}

/* f, which is a weight times other things, with what a row has one of taken out; the base of the
 * weight. TARN_NONE: it is not that. */
static uint32_t taken_out(online *o, const kstage *s, uint32_t f, factors *out, uint32_t *base) {
  tarn_lang *L = o->k->L;
  const tarn_fx x = *tarn_fx_get(L, f);
  if (x.op == TARN_FX_HOLE && weighs(o, &s->read[x.hole])) {
    const factors *had = &o->factor[s->read[x.hole].src];
    *base = o->base[s->read[x.hole].src];
    for (uint32_t i = 0; i < had->n; i++)
      if (!add_factor(out, had->stage[i], had->divide[i])) return TARN_NONE;
    return f;
  }
  for (uint32_t side = 0; side < (x.op == TARN_FX_MUL   ? 2u
                                  : x.op == TARN_FX_DIV ? 1u
                                                        : 0u);
       side++) {
    uint32_t of = taken_out(o, s, x.kid[side], out, base), other = x.kid[!side];
    if (of == TARN_NONE) continue;
    const tarn_fx *y = tarn_fx_get(L, other);
    if (y->op == TARN_FX_HOLE && of_row(o, &s->read[y->hole]))
      return add_factor(out, s->read[y->hole].src, x.op == TARN_FX_DIV) ? of : TARN_NONE;
    if (!plain(o, s, other)) return TARN_NONE;
    return side ? op2(L, (tarn_fxop)x.op, other, of) : op2(L, (tarn_fxop)x.op, of, other);
  }
  return TARN_NONE;
}

static bool behind(const online *o, const kstage *s) {
  for (uint32_t r = 0; r < s->nb + s->ne; r++)
    if (s->read[r].stage && o->role[s->read[r].src] != BEFORE) return true;
  return false;
}
/* Everything read is: no weight; and nothing from before the maximum, which the second nest does
 * not have. */
static bool may_follow(const online *o, const kstage *s, uint32_t from) {
  for (uint32_t r = from; r < s->nb + s->ne; r++)
    if (s->read[r].stage && (weighs(o, &s->read[r]) || o->role[s->read[r].src] == BEFORE))
      return false;
  return true;
}

static bool give_role(online *o, uint32_t i) {
  const kstage *s = &o->k->stage[i];
  tarn_lang *L = o->k->L;
  o->factor[i].n = 0;
  o->base[i] = i;
  if (i == o->top) return o->role[i] = TOP, true;
  if (!behind(o, s)) return o->role[i] = BEFORE, o->key[i] == TARN_NONE || lies(o, i) == 1;
  if (o->key[i] == TARN_NONE) return o->role[i] = AFTER, may_follow(o, s, 0);
  if (lies(o, i) == 1) {
    if (s->reducer != TARN_NONE || s->epi != TARN_NONE) return false;
    if (kern_is_weight(o->k, o->top, s)) return o->role[i] = WEIGHT, true;
    o->role[i] = SCALED;
    uint32_t f = s->nown == 1 ? taken_out(o, s, s->body, &o->factor[i], &o->base[i]) : TARN_NONE;
    return f != TARN_NONE && tarn_fx_get(L, f)->op == TARN_FX_HOLE;
  }
  o->role[i] = SUM;
  if (lies(o, i) != 0 || s->reducer != tarn_reducer_of(L, TARN_RED_SUM, TARN_F32)) return false;
  o->body[i] = taken_out(o, s, s->body, &o->factor[i], &o->base[i]);
  return o->body[i] != TARN_NONE && may_follow(o, s, s->nb);
}

/* The one maximum whose weights are summed, and everything else by it. */
static bool find_roles(online *o) {
  uint32_t sums = 0;
  const kern *k = o->k;
  if (kern_outputs(k) != 1 || k->depth == TARN_MAX_DIMS) return false;
  for (o->top = 0; o->top < k->nstage && !kern_is_top(k, o->top); o->top++) continue;
  if (o->top == k->nstage) return false;
  o->keys = k->stage[o->top].red[0];
  if (o->keys % o->parts || o->keys / o->parts < 2 || !find_keys(o)) return false;
  for (uint32_t i = 0; i < k->nstage; i++) {
    if (!give_role(o, i)) return false;
    sums += o->role[i] == SUM;
  }
  role last = o->role[k->nstage - 1];
  return sums && sums <= MOST_SUMS && last >= SUM;
}

/* ---------------------------------------------------------------- where the parts' loop goes, and
 * how many parts */

/* Elements of an operand for one element of the axis and one trip of the shared loops; 0: it does
 * not lie along the axis. */
static int64_t per_key(const online *o, uint32_t i, const tarn_read *r) {
  int64_t dim[3 * TARN_MAX_DIMS], n = 1;
  uint32_t uses = map_uses(o->k->L, r->map), all = kern_dims(o->k, &o->k->stage[i], true, dim);
  if (r->stage || o->key[i] == TARN_NONE || !(uses >> o->key[i] & 1)) return 0;
  for (uint32_t d = o->k->depth; d < all; d++)
    if (d != o->key[i] && (uses >> d & 1)) n *= dim[d];
  return n;
}
/* Outside of the shared loops along which the large operands (keys, values) stay as they are: a
 * part of them is then read by all rows while it is cached. */
static int64_t place_parts(online *o) {
  const kern *k = o->k;
  int64_t sum = 0;
  o->at = 0;
  for (uint32_t i = 0; i < k->nstage; i++)
    for (uint32_t r = 0; r < k->stage[i].nb; r++) {
      int64_t n = per_key(o, i, &k->stage[i].read[r]);
      uint32_t uses = map_uses(k->L, k->stage[i].read[r].map);
      sum += n;
      for (uint32_t d = 0; d < k->depth && n > 1; d++)
        if ((uses >> d & 1) && d >= o->at) o->at = d + 1;
    }
  return sum;
}
/* What a part's operands and one row's scores may take: a quarter of L2, or a
 * quarter of that. Of the numbers of parts there are, the least that keeps to it. */
static bool wanted(const renv *e, const online *o, int64_t each) {
  int64_t most = l2_capacity(e) / 4, bytes = 4 * (each + 2) * (o->keys / o->parts);
  for (int i = 0; i < 2; i++, most /= SHARE)
    if (bytes <= most && 2 * bytes > most) return true;
  return false;
}

/* ---------------------------------------------------------------- the nest over parts */

/* A read of stage i as the nest over parts has it. */
static bool in_parts(const online *o, uint32_t i, bool body, tarn_read *r) {
  tarn_lang *L = o->k->L;
  int64_t dim[3 * TARN_MAX_DIMS], len = o->keys / o->parts;
  uint32_t n = kern_dims(o->k, &o->k->stage[i], body, dim), key = o->key[i];
  tarn_imap m = {
      .ns = (uint8_t)(n + 1), .n = (uint8_t)(n + 1), .nin = (uint8_t)n, .fill = TARN_NONE};
  if (n >= TARN_MAX_DIMS) return false;
  for (uint32_t d = 0; d < n; d++)
    m.in[d] = dim[d], m.dim[d + (d >= o->at)] = d == key ? len : dim[d];
  m.dim[o->at] = o->parts;
  for (uint32_t d = 0; d < n; d++) m.e[d] = tarn_ix_var(L, d + (d >= o->at), m.dim);
  if (key < n)
    m.e[key] =
        tarn_ix_add(L, tarn_ix_scale(L, tarn_ix_var(L, o->at, m.dim), len, m.dim), m.e[key], m.dim);
  if ((r->map = tarn_map_compose(L, tarn_map_intern(L, &m), r->map)) == TARN_NONE) return false;
  if (!r->stage || o->key[r->src] == TARN_NONE) return true;
  uint32_t p = o->key[r->src] - o->k->depth; /* a buffer along the axis is now as long as a part */
  if (p >= o->k->stage[r->src].nown) return true;
  m = *tarn_imap_get(L, r->map);
  m.in[p] = len;
  m.e[p] = tarn_ix_var(L, key + 1, m.dim);
  r->map = tarn_map_intern(L, &m);
  return true;
}

/* The lowest number instead of a maximum of -inf. */
static uint32_t guarded(tarn_lang *L, uint32_t m) {
  return op2(L, TARN_FX_MAX, m, tarn_fx_const(L, TARN_F32, -FLT_MAX));
}

static bool part_stage(const online *o, uint32_t i, kern *a) {
  kstage *s = &a->stage[i];
  int64_t len = o->keys / o->parts;
  tarn_lang *L = a->L;
  if (o->role[i] == SUM || o->role[i] == AFTER) s->epi = TARN_NONE, s->ne = 0;
  if (o->role[i] == SUM) s->body = o->body[i];
  if (o->role[i] == WEIGHT) {
    const tarn_fx d = *tarn_fx_get(L, tarn_fx_get(L, s->body)->kid[0]);
    s->body = tarn_fx_op(L, TARN_FX_EXP, op2(L, TARN_FX_SUB, d.kid[0], guarded(L, d.kid[1])), 0, 0);
  }
  for (uint32_t r = 0; r < s->nb + s->ne; r++) {
    if (weighs(o, &s->read[r])) s->read[r].src = o->base[s->read[r].src];
    if (!in_parts(o, i, r < s->nb, &s->read[r])) return false;
  }
  if (lies(o, i) == 1) s->own[o->key[i] - o->k->depth] = len;
  if (lies(o, i) == 0) s->red[0] = len;
  s->out = o->role[i] == TOP || o->role[i] == SUM;
  return true;
}

/* The maximum and the sums of each part, results in the order of the stages. */
static bool over_parts(const online *o, kern *a) {
  *a = *o->k;
  for (uint32_t i = 0; i < a->nstage; i++)
    if (!part_stage(o, i, a)) return false;
  while (a->nstage && o->role[a->nstage - 1] != SUM) a->nstage--;
  memmove(a->shared + o->at + 1, a->shared + o->at, (a->depth - o->at) * sizeof *a->shared);
  a->shared[o->at] = o->parts;
  a->out_ns = ++a->depth;
  return true;
}

/* ---------------------------------------------------------------- put together */

/* A result of the parts, of which own are the stage's own dims, where the parts' loop is dim c of
 * the n dims there. */
static uint32_t of_part(const online *o, const int64_t *dim, uint32_t n, uint32_t c, uint32_t own) {
  uint32_t axis[TARN_MAX_DIMS + 1], m = 0;
  for (uint32_t d = 0; d < o->k->depth + own; d++) {
    if (d == o->at) axis[m++] = c;
    axis[m++] = d;
  }
  if (o->at == o->k->depth + own) axis[m++] = c;
  return map_project(o->k->L, dim, n, axis, m);
}

static void no_stage(kstage *s) {
  memset(s, 0, sizeof *s), s->reducer = s->epi = s->space = TARN_NONE;
}

typedef struct joining {
  const online *o;
  kern *b;
  uint32_t leaf[K_STAGES]; /* by stage: the child that is its result for each part */
  uint32_t to[K_STAGES];   /* and where it now is; TARN_NONE: nowhere */
} joining;

/* The largest maximum, then what each part's sums are multiplied by. */
static void add_top(joining *j) {
  const online *o = j->o;
  kern *b = j->b;
  kstage *m = &b->stage[0], *w = &b->stage[1];
  int64_t dim[TARN_MAX_DIMS + 1];
  uint32_t n = b->depth, row, part;
  no_stage(m), no_stage(w);
  memcpy(dim, b->shared, n * sizeof *dim);
  dim[n] = o->parts;
  row = map_project(b->L, dim, n + 1, NULL, 0);
  part = of_part(o, dim, n + 1, n, 0);
  m->nred = w->nown = m->nb = 1;
  m->red[0] = w->own[0] = o->parts;
  m->reducer = o->k->stage[o->top].reducer;
  m->body = tarn_fx_hole(b->L, 0);
  m->read[0] = w->read[0] = (tarn_read){.src = j->leaf[o->top], .map = part};
  w->read[1] = (tarn_read){.stage = true, .map = row};
  w->nb = 2;
  w->body = op2(b->L, TARN_FX_SUB, tarn_fx_hole(b->L, 0), tarn_fx_hole(b->L, 1));
  w->body = tarn_fx_op(b->L, TARN_FX_EXP, w->body, 0, 0);
  b->nstage = 2;
}

static void renumbered(const joining *j, kstage *s) {
  for (uint32_t r = 0; r < s->nb + s->ne; r++)
    if (s->read[r].stage) s->read[r].src = j->to[s->read[r].src];
}

/* Sum i of all parts, then what was taken out of its terms, then its own epilogue. */
static bool add_sum(joining *j, uint32_t i) {
  const online *o = j->o;
  const kstage *was = &o->k->stage[i];
  kern *b = j->b;
  kstage *s = &b->stage[b->nstage];
  int64_t dim[2 * TARN_MAX_DIMS];
  uint32_t n, c, with[K_READS + 1], value = tarn_fx_hole(b->L, 0);
  *s = *was;
  s->ne = 0;
  s->nb = 2;
  s->nred = 1;
  s->red[0] = o->parts;
  n = kern_dims(b, s, true, dim), c = n - 1;
  if (n > TARN_MAX_DIMS || b->depth + 1 + s->nown > TARN_MAX_DIMS) return false;
  s->read[0] = (tarn_read){.src = j->leaf[i], .map = of_part(o, dim, n, c, s->nown)};
  s->read[1] = (tarn_read){.stage = true, .src = 1, .map = map_project(b->L, dim, n, &c, 1)};
  s->body = op2(b->L, TARN_FX_MUL, tarn_fx_hole(b->L, 0), tarn_fx_hole(b->L, 1));
  for (uint32_t r = 0; r < was->ne; r++) {
    tarn_read x = was->read[was->nb + r];
    if (x.stage) x.src = j->to[x.src];
    with[r + 1] = tarn_fx_hole(b->L, kern_add_read(s, false, x) + 1);
  }
  for (uint32_t f = 0; f < o->factor[i].n; f++) {
    tarn_read x = {.stage = true,
                   .src = j->to[o->factor[i].stage[f]],
                   .map = map_project(b->L, dim, n - 1, NULL, 0)};
    uint32_t at = kern_add_read(s, false, x);
    if (at == TARN_NONE) return false;
    value = op2(b->L, o->factor[i].divide[f] ? TARN_FX_DIV : TARN_FX_MUL, value,
                tarn_fx_hole(b->L, at + 1));
  }
  with[0] = value;
  s->epi = was->epi == TARN_NONE ? value : tarn_fx_subst(b->L, was->epi, with, was->ne + 1);
  return true;
}

/* The nest over the results of the parts. */
static bool put_together(joining *j) {
  const online *o = j->o;
  add_top(j);
  for (uint32_t i = 0; i < o->k->nstage; i++) {
    j->to[i] = i == o->top ? 0 : TARN_NONE;
    if (o->role[i] < SUM) continue;
    if (j->b->nstage == K_STAGES) return false;
    if (o->role[i] == SUM && !add_sum(j, i)) return false;
    if (o->role[i] == AFTER) {
      j->b->stage[j->b->nstage] = o->k->stage[i];
      renumbered(j, &j->b->stage[j->b->nstage]);
    }
    kstage *s = &j->b->stage[j->b->nstage];
    s->out = o->k->stage[i].out;
    j->to[i] = j->b->nstage++;
  }
  return true;
}

/* ---------------------------------------------------------------- the builders */

uint32_t build_online(rsite *s) {
  int64_t parts = s->arg.i;
  kern k, a, b;
  online o = {.k = &k, .parts = parts};
  joining j = {.o = &o, .b = &b};
  if (!site_root(s, &k) || k.nstage < 3 || !find_roles(&o)) return TARN_NONE;
  int64_t each = place_parts(&o);
  if (s->e->host->graph && !wanted(s->e, &o, each)) return TARN_NONE;
  if (!over_parts(&o, &a)) return TARN_NONE;
  uint32_t tuple = kern_store(&a), result = 0;
  if (tuple == TARN_NONE) return TARN_NONE;
  b = k;
  for (uint32_t i = 0; i < k.nstage; i++) {
    if (o.role[i] != TOP && o.role[i] != SUM) continue;
    uint32_t id = site_nth(s, tuple, result++);
    if (id == TARN_NONE || (j.leaf[i] = kern_leaf(&b, id)) == TARN_NONE) return TARN_NONE;
  }
  return put_together(&j) ? kern_store(&b) : TARN_NONE;
}
