/* Attention and rotary embedding: ONNX's, and those of com.microsoft, as products, masks and
 * softmax.
 *
 * Queries are (batch, heads of keys, queries per key, positions, size), keys and values (batch,
 * heads, positions, size): a head of keys that several heads of queries share is not copied.
 * Sources: the operator specifications of ONNX 1.23 (Attention-23 to -25: the cap comes before the
 * masks, a causal mask counts what was there before, a row that is masked as a whole gives zeros),
 * and ONNX Runtime's docs/ContribOperators.md. */
#include "model/import.h"
#include <math.h>
#include <string.h>

typedef struct attention {
  im_node *n;
  tarn_term q, k, v; /* (B,K,G,S,D), (B,K,T,D), (B,K,T,E) */
  int64_t b, heads, group, s, t;
  double scale, cap;
  tarn_term allowed; /* bool, broadcasts to the scores; TARN_NONE: all */
  tarn_term bias;    /* is added to the scores; TARN_NONE: nothing */
  tarn_term sink;    /* a score more for each head, of no key: (1,K,G,1,1); TARN_NONE: none */
  bool surely;       /* no row is masked as a whole */
  tarn_term raw, capped, biased, weights; /* scores on their way */
} attention;

/* ---------------------------------------------------------------- heads */

/* (B,S,H·D) -> (B,H,S,D) */
static tarn_term split_heads(im_node *n, tarn_term t, int64_t heads) {
  im_dims d = im_shape(n, t);
  static const uint32_t order[] = {0, 2, 1, 3};
  if (d.n == 4) return t;
  if (d.n != 3 || heads < 1 || d.d[2] % heads)
    im_bad(n, "an operand of %u dims does not have %lld heads", d.n, (long long)heads);
  int64_t dim[] = {d.d[0], d.d[1], heads, d.d[2] / heads};
  return im_permute(n, im_reshape(n, t, 4, dim), order);
}

static void set_operands(attention *a, tarn_term q, tarn_term k, tarn_term v) {
  im_node *n = a->n;
  im_dims dq = im_shape(n, q), dk = im_shape(n, k), dv = im_shape(n, v);
  if (dq.n != 4 || dk.n != 4 || dv.n != 4) im_bad(n, "queries, keys and values differ in dims");
  if (dk.d[1] < 1 || dq.d[1] % dk.d[1] || dv.d[1] != dk.d[1] || dq.d[0] != dk.d[0] ||
      dv.d[0] != dk.d[0] || dq.d[3] != dk.d[3] || dv.d[2] != dk.d[2])
    im_bad(n, "queries, keys and values do not fit");
  a->b = dq.d[0], a->heads = dk.d[1], a->group = dq.d[1] / dk.d[1], a->s = dq.d[2];
  a->t = dk.d[2];
  int64_t dim[] = {a->b, a->heads, a->group, a->s, dq.d[3]};
  a->q = im_reshape(n, q, 5, dim), a->k = k, a->v = v;
  if (a->scale == 0) a->scale = 1 / sqrt((double)dq.d[3]);
}

/* Scores as they go out: (B,H,S,T). */
static tarn_term ungrouped(const attention *a, tarn_term t) {
  int64_t dim[] = {a->b, a->heads * a->group, a->s, a->t};
  return im_reshape(a->n, t, 4, dim);
}

/* ---------------------------------------------------------------- masks */

/* What broadcasts to (B,H,S,T), by numpy's rule, as what broadcasts to (B,K,G,S,T). */
static tarn_term grouped_mask(const attention *a, tarn_term m) {
  im_node *n = a->n;
  im_dims d = im_shape(n, m);
  int64_t dim[5] = {1, 1, 1, 1, 1};
  if (d.n > 4) im_bad(n, "a mask of %u dims", d.n);
  for (uint32_t i = 0; i < d.n; i++) {
    uint32_t at = 4 - d.n + i;
    bool heads = at == 1 && d.d[i] != 1;
    if (heads && d.d[i] != a->heads * a->group)
      im_bad(n, "a mask of %lld heads for %lld", (long long)d.d[i],
             (long long)(a->heads * a->group));
    if (heads) dim[1] = a->heads, dim[2] = a->group;
    else dim[at == 0 ? 0 : at + 1] = d.d[i];
  }
  return im_reshape(n, m, 5, dim);
}

static void allow(attention *a, tarn_term mask) {
  a->allowed = a->allowed == TARN_NONE ? mask : im_el(a->n, "(and $0 $1)", 2, a->allowed, mask);
}

/* A bool mask, or numbers that are added; what it does not reach of the last axis is masked. */
static void add_mask(attention *a, tarn_term m) {
  im_node *n = a->n;
  im_dims d = im_shape(n, m);
  int64_t reach = d.n ? d.d[d.n - 1] : 1;
  bool flags = im_type(n, m) == TARN_BOOL;
  if (!flags && !tarn_dtype_is_float(im_type(n, m))) im_bad(n, "a mask of integers");
  if (reach != 1 && reach < a->t) m = im_pad(n, m, d.n - 1, flags ? 0 : -INFINITY, 0, a->t - reach);
  else if (reach != 1 && reach > a->t) m = im_cut(n, m, d.n - 1, 0, a->t, 1);
  m = grouped_mask(a, m);
  a->surely = false;
  if (flags) allow(a, m);
  else a->bias = a->bias == TARN_NONE ? m : im_el(n, "(add $0 $1)", 2, a->bias, m);
}

/* 0, 1, … along one of the five axes. */
static tarn_term positions(const attention *a, uint32_t axis, int64_t count) {
  int64_t dim[5] = {1, 1, 1, 1, 1};
  dim[axis] = count;
  return im_reshape(a->n, im_iota(a->n, TARN_I64, count), 5, dim);
}

/* One number, or one for each batch, as what broadcasts to the scores. */
static tarn_term per_batch(im_node *n, tarn_term t) {
  im_dims d = im_shape(n, t);
  int64_t dim[5] = {im_count(&d), 1, 1, 1, 1};
  return im_cast(n, im_reshape(n, t, 5, dim), TARN_I64);
}

/* Where the first query stands among the keys, as what broadcasts to the scores. */
static tarn_term offset_number(const attention *a, int64_t at) {
  int64_t dim[5] = {1, 1, 1, 1, 1};
  return im_reshape(a->n, im_scalar(a->n, TARN_I64, 0, at), 5, dim);
}

static void mask_causal(attention *a, tarn_term offset) {
  tarn_term s = positions(a, 3, a->s), t = positions(a, 4, a->t);
  allow(a, im_el(a->n, "(le $0 (add $1 $2))", 3, t, s, offset));
}

/* The first query stands behind so many keys; one that is behind all of them is shown no mask. */
static void mask_causal_from(attention *a, int64_t at) {
  if (at + 1 < a->t) mask_causal(a, offset_number(a, at));
}

/* Keys that lie more than so many positions before or behind a query; below 0: no bound. */
static void mask_window(attention *a, tarn_term offset, int64_t left, int64_t right) {
  tarn_term s = positions(a, 3, a->s), t = positions(a, 4, a->t);
  im_param p[] = {{"left", 0, left}, {"right", 0, right}};
  if (left >= 0) allow(a, im_elp(a->n, "(le (add $1 $2) (add $0 left))", p, 2, 3, t, s, offset));
  if (right >= 0) allow(a, im_elp(a->n, "(le $0 (add (add $1 $2) right))", p, 2, 3, t, s, offset));
  if (left >= 0 || right >= 0) a->surely = false;
}

/* ---------------------------------------------------------------- the operator itself */

/* Rows without a single key get zeros in place of what 0/0 gives. */
static tarn_term without_masked_rows(attention *a, tarn_term weights) {
  im_node *n = a->n;
  tarn_term bias = a->bias;
  uint32_t last = 1u << 4;
  if (a->surely) return weights;
  im_param none = {"none", -INFINITY, 0};
  tarn_dtype t = im_type(n, weights);
  if (a->allowed != TARN_NONE && bias == TARN_NONE)
    bias = im_map(n, im_formula(n, "(select $0 0 none)", t, &none, 1), &a->allowed, 1);
  else if (a->allowed != TARN_NONE) {
    tarn_term both[] = {a->allowed, bias};
    bias = im_map(n, im_formula(n, "(select $0 $1 none)", t, &none, 1), both, 2);
  }
  if (im_shape(n, bias).d[4] == 1) last = 0;
  tarn_term most = last ? im_reduce(n, bias, last, TARN_NONE, TARN_RED_MAX, true) : bias;
  return im_elp(n, "(select (eq $1 none) 0 $0)", &none, 1, 2, weights, most);
}

/* Softmax with one score more in the sum, whose weight goes nowhere. */
static tarn_term softmax_with_sink(const attention *a, tarn_term s) {
  im_node *n = a->n;
  uint32_t keys = 1u << 4;
  tarn_term most = im_reduce(n, s, keys, TARN_NONE, TARN_RED_MAX, true);
  most = im_el(n, "(max $0 $1)", 2, most, a->sink);
  tarn_term e = im_el(n, "(exp (sub $0 $1))", 2, s, most);
  tarn_term sum = im_reduce(n, e, keys, TARN_NONE, TARN_RED_SUM, true);
  return im_el(n, "(div $0 (add $1 (exp (sub $2 $3))))", 4, e, sum, a->sink, most);
}

static tarn_term weights_of(attention *a, tarn_term scores) {
  if (a->sink != TARN_NONE) return softmax_with_sink(a, scores);
  return without_masked_rows(a, im_softmax(a->n, scores, 1u << 4));
}

/* The result: (B,H,S,E). */
static tarn_term attend(attention *a) {
  im_node *n = a->n;
  enum { B = 1, K, G, S, T, D, E };
  static const uint8_t q[] = {B, K, G, S, D}, k[] = {B, K, T, D}, v[] = {B, K, T, E},
                       p[] = {B, K, G, S, T}, y[] = {B, K, G, S, E};
  im_param by[] = {{"scale", a->scale, 0}, {"cap", a->cap, 0}, {"none", -INFINITY, 0}};
  tarn_term s = im_contract(n, a->q, q, a->k, k, p, 5);
  s = a->raw = im_elp(n, "(mul $0 scale)", by, 1, 1, s);
  if (a->cap > 0) s = im_elp(n, "(mul cap (tanh (div $0 cap)))", by, 2, 1, s);
  a->capped = s;
  if (a->bias != TARN_NONE) s = im_el(n, "(add $0 $1)", 2, s, a->bias);
  if (a->allowed != TARN_NONE) s = im_elp(n, "(select $1 $0 none)", by, 3, 2, s, a->allowed);
  a->biased = s;
  a->weights = weights_of(a, s);
  tarn_term r = im_contract(n, a->weights, p, a->v, v, y, 5);
  int64_t dim[] = {a->b, a->heads * a->group, a->s, im_shape(n, a->v).d[3]};
  return im_reshape(n, r, 4, dim);
}

/* (B,H,S,E) -> (B,S,H·E) */
static tarn_term joined_heads(im_node *n, tarn_term t) {
  static const uint32_t order[] = {0, 2, 1, 3};
  im_dims d = im_shape(n, t);
  int64_t dim[] = {d.d[0], d.d[2], d.d[1] * d.d[3]};
  return im_reshape(n, im_permute(n, t, order), 3, dim);
}

static tarn_term behind(im_node *n, tarn_term past, tarn_term now) {
  tarn_term both[] = {past, now};
  return past == TARN_NONE ? now : im_concat(n, 2, both, 2);
}

static attention begin(im_node *n) {
  return (attention){.n = n,
                     .scale = im_attr_real(n, "scale", 0),
                     .allowed = TARN_NONE,
                     .bias = TARN_NONE,
                     .sink = TARN_NONE,
                     .surely = true};
}

/* ---------------------------------------------------------------- ONNX's Attention */

static void set_scores(attention *a) {
  int64_t mode = im_attr_int(a->n, "qk_matmul_output_mode", 0);
  tarn_term which[] = {a->raw, a->capped, a->biased, a->weights};
  if (mode < 0 || mode > 3)
    im_bad(a->n, "qk_matmul_output_mode %lld does not exist", (long long)mode);
  if (a->n->nout > 3) im_set(a->n, 3, ungrouped(a, which[mode]));
}

void im_do_attention(im_node *n) {
  attention a = begin(n);
  tarn_term q = im_arg(n, 0), past_k = im_opt(n, 4), past_v = im_opt(n, 5), filled = im_opt(n, 6);
  bool flat = im_shape(n, q).n == 3;
  int64_t heads = im_attr_int(n, "q_num_heads", 0), keys = im_attr_int(n, "kv_num_heads", heads);
  im_attr_ignore(n, "softmax_precision"); /* never below f32 here */
  a.cap = im_attr_real(n, "softcap", 0);
  tarn_term k = behind(n, past_k, split_heads(n, im_arg(n, 1), keys));
  tarn_term v = behind(n, past_v, split_heads(n, im_arg(n, 2), keys));
  set_operands(&a, split_heads(n, q, heads), k, v);
  im_set(n, 1, k);
  im_set(n, 2, v);
  im_param len = {"s", 0, a.s};
  int64_t past = past_k == TARN_NONE ? 0 : im_shape(n, past_k).d[2];
  tarn_term offset = offset_number(&a, past);
  if (filled != TARN_NONE) {
    filled = per_batch(n, im_within(n, filled, 0, a.t));
    allow(&a, im_el(n, "(lt $0 $1)", 2, positions(&a, 4, a.t), filled));
    if (past_k == TARN_NONE) offset = im_elp(n, "(sub $0 s)", &len, 1, 1, filled);
    a.surely = false;
  }
  if (im_opt(n, 3) != TARN_NONE) add_mask(&a, im_arg(n, 3));
  bool causal = im_attr_int(n, "is_causal", 0) != 0;
  if (causal && filled == TARN_NONE) mask_causal_from(&a, past);
  else if (causal) mask_causal(&a, offset);
  mask_window(&a, offset, im_attr_int(n, "left_window_size", -1),
              im_attr_int(n, "right_window_size", -1));
  tarn_term y = attend(&a);
  im_set(n, 0, flat ? joined_heads(n, y) : y);
  set_scores(&a);
}

/* ---------------------------------------------------------------- rotary embedding */

typedef struct rotation {
  tarn_term cosine, sine; /* (B or 1, S, half) */
  int64_t width;          /* elements that are turned; 0: all */
  bool interleaved;
} rotation;

/* x (B,H,S,D); pairs of elements, as a complex number, times cosine + i·sine. */
static tarn_term rotated(im_node *n, tarn_term x, const rotation *r) {
  im_dims d = im_shape(n, x), c = im_shape(n, r->cosine), s = im_shape(n, r->sine);
  int64_t width = r->width ? r->width : d.d[3], half = width / 2;
  if (width < 2 || width % 2 || width > d.d[3] || c.n != 3 || c.d[2] < half || s.n != 3 ||
      s.d[2] < half)
    im_bad(n, "%lld elements of %lld are turned, the cache has %lld", (long long)width,
           (long long)d.d[3], (long long)(c.n ? c.d[c.n - 1] : 0));
  int64_t dim[] = {c.d[0], 1, c.d[1], half};
  tarn_term cosine = im_reshape(n, im_cut(n, r->cosine, 2, 0, half, 1), 4, dim);
  tarn_term sine = im_reshape(n, im_cut(n, r->sine, 2, 0, half, 1), 4, dim);
  int64_t step = r->interleaved ? 2 : 1, second = r->interleaved ? 1 : half;
  tarn_term x1 = im_cut(n, x, 3, 0, r->interleaved ? width : half, step);
  tarn_term x2 = im_cut(n, x, 3, second, width, step);
  tarn_term part[] = {im_el(n, "(sub (mul $0 $1) (mul $2 $3))", 4, cosine, x1, sine, x2),
                      im_el(n, "(add (mul $0 $1) (mul $2 $3))", 4, sine, x1, cosine, x2),
                      width < d.d[3] ? im_cut(n, x, 3, width, d.d[3], 1) : TARN_NONE};
  if (!r->interleaved) return im_concat(n, 3, part, width < d.d[3] ? 3 : 2);
  tarn_term pairs = im_stack(n, 4, part, 2);
  d.d[3] = width;
  part[1] = im_reshape(n, pairs, 4, d.d);
  return part[2] == TARN_NONE ? part[1] : im_concat(n, 3, part + 1, 2);
}

/* Rows of a cache (positions, half) by position, or the cache itself (B,S,half). */
static tarn_term cached(im_node *n, tarn_term cache, tarn_term at) {
  return at == TARN_NONE ? cache : im_rows(n, cache, at);
}

static void rotate_input(im_node *n, tarn_term at, uint32_t cosine, uint32_t sine) {
  tarn_term x = im_arg(n, 0);
  bool flat = im_shape(n, x).n == 3;
  rotation r = {cached(n, im_arg(n, cosine), at), cached(n, im_arg(n, sine), at),
                im_attr_int(n, "rotary_embedding_dim", 0), im_attr_int(n, "interleaved", 0) != 0};
  int64_t heads = im_attr_int(n, "num_heads", 0);
  if (flat && !heads) /* com.microsoft: as the cache says */
    heads = im_shape(n, x).d[2] / (2 * im_shape(n, r.cosine).d[2]);
  x = rotated(n, split_heads(n, x, heads), &r);
  im_set(n, 0, flat ? joined_heads(n, x) : x);
}

void im_do_rotary(im_node *n) { rotate_input(n, im_opt(n, 3), 1, 2); }

/* The positions 0, 1, … behind a first one, for each batch: (B or 1, S). */
static tarn_term counted(im_node *n, tarn_term first, int64_t length) {
  im_dims d = im_shape(n, first);
  int64_t column[] = {im_count(&d), 1}, row[] = {1, length};
  tarn_term steps = im_reshape(n, im_iota(n, TARN_I64, length), 2, row);
  return im_el(n, "(add $0 $1)", 2, im_cast(n, im_reshape(n, first, 2, column), TARN_I64), steps);
}

void im_do_rotary_microsoft(im_node *n) {
  im_dims d = im_shape(n, im_arg(n, 0)), p = im_shape(n, im_arg(n, 1));
  im_attr_ignore(n, "is_packed_batching"); /* each token has its position all the same */
  im_attr_ignore(n, "scale");              /* of caches that a kernel would make anew */
  int64_t length = d.n == 4 ? d.d[2] : d.d[1];
  rotate_input(n, p.n == 2 ? im_arg(n, 1) : counted(n, im_arg(n, 1), length), 2, 3);
}

/* ---------------------------------------------------------------- com.microsoft's attention */

/* Queries, keys and values behind one another in one operand: (B,S,(H+2K)·D). */
static void unpack(im_node *n, int64_t heads, int64_t keys, tarn_term part[3]) {
  part[0] = im_arg(n, 0), part[1] = im_opt(n, 1), part[2] = im_opt(n, 2);
  if (part[1] != TARN_NONE && part[2] != TARN_NONE) return;
  im_dims d = im_shape(n, part[0]);
  int64_t all = heads + 2 * keys;
  if (d.n != 3 || d.d[2] % all)
    im_bad(n, "the packed operand does not have %lld heads", (long long)all);
  int64_t size = d.d[2] / all, q = heads * size, k = keys * size;
  tarn_term x = part[0];
  part[0] = im_cut(n, x, 2, 0, q, 1);
  part[1] = im_cut(n, x, 2, q, q + k, 1);
  part[2] = im_cut(n, x, 2, q + k, q + 2 * k, 1);
}

/* ---------------------------------------------------------------- grouped queries */

typedef struct grouped {
  im_node *n;
  tarn_term q, k, v;         /* (B,H,S,D), (B,K,S,D) */
  tarn_term past_k, past_v;  /* (B,K,P,D); TARN_NONE where P is 0 */
  tarn_term last;            /* (B): the position of each text's last token */
  tarn_term before;          /* (B): how many are before the first of the new ones */
  int64_t b, s, p, total, t; /* t: rows of the present keys */
  bool first;                /* the new ones are written from the start, whatever the lengths are */
  bool behind;               /* all old rows are filled, and the new ones lie behind them */
} grouped;

/* Old rows up to `before` of each text, then its new ones, then zeros: T rows. */
static tarn_term present(const grouped *g, tarn_term past, tarn_term now) {
  im_node *n = g->n;
  static const uint32_t rows_first[] = {0, 2, 1, 3}, back[] = {0, 2, 1, 3};
  if (g->behind) return behind(n, past, now);
  im_dims d = im_shape(n, now);
  int64_t rows = g->p + g->s, flat[] = {d.d[0] * rows, d.d[1], d.d[3]}, column[] = {d.d[0], 1};
  int64_t row[] = {1, g->t}, each[] = {d.d[0], 1, g->t, 1};
  tarn_term all = im_reshape(n, im_permute(n, behind(n, past, now), rows_first), 3, flat);
  tarn_term at = im_reshape(n, im_iota(n, TARN_I64, g->t), 2, row);
  tarn_term base = im_reshape(n, im_iota(n, TARN_I64, d.d[0]), 2, column);
  tarn_term before = im_reshape(n, g->before, 2, column);
  im_param by[] = {{"p", 0, g->p}, {"last", 0, rows - 1}, {"rows", 0, rows}, {"s", 0, g->s}};
  static const char of[] =
      "(add (mul $2 rows) (select (lt $0 $1) $0 (min last (add p (sub $0 $1)))))";
  tarn_term index = im_elp(n, of, by, 3, 3, at, before, base);
  tarn_term filled = im_elp(n, "(lt $0 (add $1 s))", by, 4, 2, at, before);
  all = im_permute(n, im_gather(n, all, 0, index), back);
  return im_el(n, "(select $1 $0 0)", 2, all,
               im_reshape(n, im_broadcast(n, filled, &(im_dims){2, {d.d[0], g->t}}), 4, each));
}

/* What ONNX Runtime's CPU kernel does not have either. */
static void refuse_quantised_caches(im_node *n) {
  static const char *const type[] = {"k_quant_type", "v_quant_type"};
  for (uint32_t i = 0; i < 2; i++)
    if (!im_attr_is(n, type[i], "NONE", "NONE") || im_opt(n, 12 + i) != TARN_NONE)
      im_bad(n, "quantised caches are not supported");
  im_attr_ignore(n, "kv_cache_bit_width");
  if (im_attr_int(n, "sliding_window_cache", 0)) im_bad(n, "a cache of a window is not supported");
  if (im_opt(n, 16) != TARN_NONE) im_bad(n, "query_seqlens is not supported");
}

static void set_lengths(grouped *g) {
  im_node *n = g->n;
  im_dims dq = im_shape(n, g->q), dl = im_shape(n, im_arg(n, 5));
  g->b = dq.d[0], g->s = dq.d[2];
  g->p = g->past_k == TARN_NONE ? 0 : im_shape(n, g->past_k).d[2];
  g->total = im_int(n, 6, "total_sequence_length");
  if (g->total < 1 || g->total > IM_MAX_EXTENT) im_bad(n, "total_sequence_length is out of range");
  if (im_count(&dl) != g->b) im_bad(n, "seqlens_k is not one number for each text");
  g->t = g->p > g->total ? g->p : g->total;
  g->first = g->s == g->total;
  /* total_sequence_length is the longest of all texts: with one text, its length. */
  g->behind = g->p == 0 ? g->first : g->b == 1 && g->p + g->s == g->total;
  int64_t least = g->first ? 0 : g->behind ? g->t - 1 : g->s - 1;
  g->last = im_within(n, im_reshape(n, im_arg(n, 5), 1, &g->b), least, g->t - 1);
  im_param by[] = {{"s", 0, g->s}, {"zero", 0, 0}};
  g->before = im_elp(n, g->first ? "(mul zero $0)" : "(sub (add $0 1) s)", by, 2, 1, g->last);
}

static tarn_term normed_heads(im_node *n, tarn_term x, tarn_term weight, const char *epsilon) {
  double eps = im_attr_real(n, epsilon, im_attr_real(n, "qk_norm_epsilon", 1e-6f));
  return im_rms_norm(n, x, 1u << 3, eps, weight);
}

/* Where the new tokens stand. Of a prompt only the first position is looked at. */
static tarn_term token_positions(const grouped *g) {
  im_node *n = g->n;
  tarn_term at = im_opt(n, 9);
  if (at == TARN_NONE) return counted(n, g->before, g->s);
  im_dims d = im_shape(n, at);
  int64_t one = 1;
  at = im_cut(n, im_reshape(n, at, 1, (int64_t[]){im_count(&d)}), 0, 0, g->first ? 1 : im_count(&d),
              1);
  return g->first ? counted(n, im_reshape(n, at, 1, &one), g->s) : im_arg(n, 9);
}

static void rotate_grouped(grouped *g) {
  im_node *n = g->n;
  tarn_term qw = im_opt(n, 14), kw = im_opt(n, 15);
  bool interleaved = im_attr_int(n, "rotary_interleaved", 0) != 0;
  if ((qw == TARN_NONE) != (kw == TARN_NONE)) im_bad(n, "one norm of queries and keys is missing");
  if (qw != TARN_NONE) {
    g->q = normed_heads(n, g->q, qw, "q_norm_epsilon");
    g->k = normed_heads(n, g->k, kw, "k_norm_epsilon");
  }
  if (!im_attr_int(n, "do_rotary", 0)) return;
  tarn_term at = token_positions(g);
  rotation r = {im_rows(n, im_arg(n, 7), at), im_rows(n, im_arg(n, 8), at), 0, interleaved};
  r.width = 2 * im_shape(n, r.cosine).d[2];
  g->q = rotated(n, g->q, &r), g->k = rotated(n, g->k, &r);
}

/* A score of 0, or one given for each head. */
static void set_sink(attention *a) {
  im_node *n = a->n;
  int64_t dim[] = {1, a->heads, a->group, 1, 1};
  if (im_attr_int(n, "smooth_softmax", 0) > 0) a->sink = im_scalar(n, im_type(n, a->q), 0, 0);
  if (im_opt(n, 11) != TARN_NONE) a->sink = im_reshape(n, im_arg(n, 11), 5, dim);
}

static void mask_grouped(attention *a, const grouped *g) {
  im_node *n = a->n;
  int64_t window = im_attr_int(n, "local_window_size", -1);
  tarn_term offset = per_batch(n, g->before);
  if (im_attr_int(n, "causal", 1)) mask_causal(a, offset);
  else allow(a, im_el(n, "(le $0 $1)", 2, positions(a, 4, a->t), per_batch(n, g->last)));
  if (window > 0) mask_window(a, offset, window - 1, -1);
  if (im_opt(n, 10) != TARN_NONE) add_mask(a, im_arg(n, 10));
  a->surely = im_opt(n, 10) == TARN_NONE; /* a query sees itself */
}

/* Scores before (1) or behind (2) the softmax; 0 of keys that are not seen. */
static void set_grouped_scores(attention *a) {
  int64_t which = im_attr_int(a->n, "qk_output", 0);
  if (which < 0 || which > 2) im_bad(a->n, "qk_output %lld does not exist", (long long)which);
  tarn_term s = which == 2 ? a->weights : im_el(a->n, "(select $1 $0 0)", 2, a->biased, a->allowed);
  if (which && a->n->nout > 3) im_set(a->n, 3, ungrouped(a, s));
}

void im_do_group_query_attention(im_node *n) {
  attention a = begin(n);
  grouped g = {.n = n, .past_k = im_opt(n, 3), .past_v = im_opt(n, 4)};
  int64_t heads = im_attr_int(n, "num_heads", 0), keys = im_attr_int(n, "kv_num_heads", heads);
  tarn_term part[3];
  if (heads < 1 || keys < 1) im_bad(n, "num_heads and kv_num_heads are needed");
  refuse_quantised_caches(n);
  a.cap = im_attr_real(n, "softcap", 0);
  unpack(n, heads, keys, part);
  g.q = split_heads(n, part[0], heads);
  g.k = split_heads(n, part[1], keys), g.v = split_heads(n, part[2], keys);
  set_lengths(&g);
  rotate_grouped(&g);
  tarn_term k = present(&g, g.past_k, g.k), v = present(&g, g.past_v, g.v);
  im_set(n, 1, k);
  im_set(n, 2, v);
  set_operands(&a, g.q, k, v);
  set_sink(&a);
  mask_grouped(&a, &g);
  tarn_term y = joined_heads(n, attend(&a));
  set_grouped_scores(&a);
  int64_t each[] = {g.b, 1, 1};
  tarn_term right = im_el(n, "(le 0 $0)", 1, im_reshape(n, g.last, 3, each));
  if (g.first) y = im_el(n, "(select $1 $0 0)", 2, y, right);
  im_set(n, 0, y);
}

/* A part of the bias (3·H·D) added to an operand (B,S,H·D). */
static tarn_term with_bias(im_node *n, tarn_term x, int64_t from) {
  im_dims d = im_shape(n, x);
  if (im_opt(n, 3) == TARN_NONE || d.n != 3) return x;
  return im_el(n, "(add $0 $1)", 2, x, im_cut(n, im_arg(n, 3), 0, from, from + d.d[2], 1));
}

void im_do_multi_head_attention(im_node *n) {
  attention a = begin(n);
  int64_t heads = im_attr_int(n, "num_heads", 0);
  double filter = im_attr_real(n, "mask_filter_value", -10000);
  tarn_term q = im_arg(n, 0), k = im_opt(n, 1), v = im_opt(n, 2), mask = im_opt(n, 4);
  if (heads < 1) im_bad(n, "num_heads is needed");
  if (k == TARN_NONE || v == TARN_NONE || im_shape(n, q).n != 3)
    im_bad(n, "packed queries, keys and values are not supported");
  int64_t width = im_shape(n, q).d[2];
  q = split_heads(n, with_bias(n, q, 0), heads);
  k = behind(n, im_opt(n, 6), split_heads(n, with_bias(n, k, width), heads));
  v = behind(n, im_opt(n, 7), split_heads(n, with_bias(n, v, 2 * width), heads));
  im_set(n, 1, k);
  im_set(n, 2, v);
  set_operands(&a, q, k, v);
  if (mask != TARN_NONE) {
    im_dims d = im_shape(n, mask);
    int64_t dim[] = {d.d[0], 1, 1, a.t};
    if (d.n != 2 || d.d[1] != a.t) im_bad(n, "only a key_padding_mask (batch, keys)");
    im_param p = {"filter", filter, 0};
    uint32_t f = im_formula(n, "(select (eq $0 (cast i32 0)) filter 0)", im_type(n, q), &p, 1);
    mask = im_cast(n, mask, TARN_I32);
    add_mask(&a, im_reshape(n, im_map(n, f, &mask, 1), 4, dim));
  }
  if (im_opt(n, 5) != TARN_NONE) add_mask(&a, im_arg(n, 5));
  if (im_attr_int(n, "unidirectional", 0)) mask_causal_from(&a, a.t - a.s);
  a.surely = true; /* as ONNX Runtime: no row is looked at */
  im_set(n, 0, joined_heads(n, attend(&a)));
}

/* ---------------------------------------------------------------- projections and attention in one
 */

/* 0 where a key is seen, the filter where it is not, from what mask_index may be: how many keys of
 * each batch, their ends and then their beginnings, or a flag for each key, or for each query too.
 */
static tarn_term seen_keys(const attention *a, tarn_term m) {
  im_node *n = a->n;
  im_dims d = im_shape(n, m);
  tarn_term t = positions(a, 4, a->t);
  int64_t flags[] = {d.d[0], 1, 1, d.n == 3 ? d.d[1] : 1, d.n ? d.d[d.n - 1] : 1};
  bool fits = flags[4] == a->t && (d.n == 2 || d.d[1] == a->s);
  if (d.n == 1) m = im_within(n, m, 0, a->t);
  if (d.n == 1 && d.d[0] == a->b) return im_el(n, "(lt $0 $1)", 2, t, per_batch(n, m));
  if (d.n == 1 && d.d[0] == 2 * a->b)
    return im_el(n, "(and (lt $0 $1) (le $2 $0))", 3, t, per_batch(n, im_cut(n, m, 0, 0, a->b, 1)),
                 per_batch(n, im_cut(n, m, 0, a->b, 2 * a->b, 1)));
  if (d.n < 2 || d.n > 3 || !fits || d.d[0] != a->b) im_bad(n, "its mask is of no known shape");
  return im_el(n, "(lt 0 $0)", 1, im_cast(n, im_reshape(n, m, 5, flags), TARN_I64));
}

static void filter_keys(attention *a, tarn_term mask) {
  im_param p[] = {{"filter", im_attr_real(a->n, "mask_filter_value", -10000), 0}};
  if (mask == TARN_NONE) return;
  mask = seen_keys(a, mask);
  uint32_t f = im_formula(a->n, "(select $0 0 filter)", im_type(a->n, a->q), p, 1);
  a->bias = im_map(a->n, f, &mask, 1);
}

/* all: queries, keys and values behind one another, as projected (B,S,(2·H·D + H·E)); past and the
 * second output: keys and values before one another, (2,B,H,T,D). */
static void attend_projected(im_node *n, tarn_term all, tarn_term mask, tarn_term past) {
  attention a = begin(n);
  int64_t heads = im_attr_int(n, "num_heads", 0), whole = im_shape(n, all).d[2];
  uint32_t sizes;
  const int64_t *size = im_attr_ints(n, "qkv_hidden_sizes", &sizes);
  int64_t third[] = {whole / 3, whole / 3, whole / 3}, from = 0;
  if (size && sizes != 3) im_bad(n, "qkv_hidden_sizes has %u entries, 3 are needed", sizes);
  if (!size) size = third;
  if (size[0] < 1 || size[1] != size[0] || size[2] < 1 || whole - size[0] - size[1] != size[2])
    im_bad(n, "%lld columns are no queries, keys and values", (long long)whole);
  tarn_term part[3];
  for (uint32_t i = 0; i < 3; from += size[i++])
    part[i] = split_heads(n, im_cut(n, all, 2, from, from + size[i], 1), heads);
  for (uint32_t i = 1; i < 3; i++)
    if (past != TARN_NONE) part[i] = behind(n, im_pick(n, past, 0, i - 1), part[i]);
  set_operands(&a, part[0], part[1], part[2]);
  filter_keys(&a, mask);
  if (im_attr_int(n, "unidirectional", 0)) mask_causal_from(&a, a.t - a.s);
  if (n->nout > 1) im_set(n, 1, im_stack(n, 0, part + 1, 2));
  a.surely = true; /* as ONNX Runtime: no row is looked at */
  if (im_opt(n, 5) != TARN_NONE && strcmp(n->op, "Attention") == 0) {
    add_mask(&a, im_arg(n, 5));
    a.surely = true;
  }
  im_set(n, 0, joined_heads(n, attend(&a)));
}

void im_do_attention_microsoft(im_node *n) {
  tarn_term in[] = {im_arg(n, 0), im_arg(n, 1)}, y = im_apply(n, "MatMul", 13, in, 2)->t;
  if (im_attr_int(n, "do_rotary", 0) || im_attr_int(n, "past_present_share_buffer", 0))
    im_bad(n, "rotary embedding and shared buffers are not supported");
  if (im_opt(n, 2) != TARN_NONE) y = im_el(n, "(add $0 $1)", 2, y, im_arg(n, 2));
  attend_projected(n, y, im_opt(n, 3), im_opt(n, 4));
}

/* The projection is a product of bytes. */
void im_do_quantised_attention(im_node *n) {
  tarn_term y = im_byte_product(n, im_arg(n, 0), im_opt(n, 6), im_arg(n, 1), im_opt(n, 7));
  tarn_term bias = im_arg(n, 2), scale = im_el(n, "(mul $0 $1)", 2, im_arg(n, 3), im_arg(n, 4));
  if (im_attr_int(n, "do_rotary", 0) || im_attr_int(n, "past_present_share_buffer", 0))
    im_bad(n, "rotary embedding and shared buffers are not supported");
  y = im_el(n, "(add (mul $0 $1) $2)", 3, im_cast(n, y, im_type(n, bias)), scale, bias);
  attend_projected(n, y, im_opt(n, 5), im_opt(n, 8));
}
