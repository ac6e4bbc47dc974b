/* Products: MatMul with numpy's broadcasting, Gemm, Einsum; all are sums of products of labelled
 * dims. */
#include "model/import.h"
#include <string.h>

/* ---------------------------------------------------------------- MatMul */

/* Labels: batch dims count from the end (1, 2, …); rows, columns, summed have their own. An
 * operand's batch dim of extent 1 against a larger one is dropped. */
enum { ROWS = 100, COLUMNS, SUMMED };

static tarn_term batch_labels(im_node *n, tarn_term t, const im_dims *other, uint8_t *label) {
  im_dims d = im_shape(n, t);
  uint32_t k = 0;
  int64_t kept[TARN_MAX_DIMS];
  for (uint32_t i = 0; i + 2 < d.n; i++) {
    uint32_t from_end = d.n - 2 - i;
    bool theirs = from_end + 2 <= other->n;
    int64_t o = theirs ? other->d[other->n - 2 - from_end] : 1;
    if (theirs && d.d[i] != 1 && o != 1 && o != d.d[i])
      im_bad(n, "batch extents %lld and %lld differ", (long long)d.d[i], (long long)o);
    if (d.d[i] == 1 && theirs && o != 1) continue;
    label[k] = (uint8_t)from_end;
    kept[k++] = d.d[i];
  }
  kept[k] = d.d[d.n - 2];
  kept[k + 1] = d.d[d.n - 1];
  return im_reshape(n, t, k + 2, kept);
}

/* A vector operand becomes a matrix; *vector says so. */
static tarn_term as_matrix(im_node *n, tarn_term t, bool left, bool *vector) {
  im_dims d = im_shape(n, t);
  if (d.n == 0) im_bad(n, "an operand is a scalar");
  *vector = d.n == 1;
  int64_t row[] = {1, d.d[0]}, column[] = {d.d[0], 1};
  return *vector ? im_reshape(n, t, 2, left ? row : column) : t;
}

static tarn_term matmul(im_node *n, tarn_term a, tarn_term b) {
  bool va, vb;
  a = as_matrix(n, a, true, &va);
  b = as_matrix(n, b, false, &vb);
  im_dims da = im_shape(n, a), db = im_shape(n, b);
  if (da.d[da.n - 1] != db.d[db.n - 2])
    im_bad(n, "%lld columns against %lld rows", (long long)da.d[da.n - 1],
           (long long)db.d[db.n - 2]);
  uint8_t la[TARN_MAX_DIMS], lb[TARN_MAX_DIMS], lo[TARN_MAX_DIMS];
  tarn_term x = batch_labels(n, a, &db, la), y = batch_labels(n, b, &da, lb);
  uint32_t na = im_shape(n, x).n, nb = im_shape(n, y).n, k = 0,
           batch = (da.n > db.n ? da.n : db.n) - 2;
  la[na - 2] = ROWS;
  la[na - 1] = lb[nb - 2] = SUMMED;
  lb[nb - 1] = COLUMNS;
  for (uint32_t i = batch; i > 0; i--) lo[k++] = (uint8_t)i;
  if (!va) lo[k++] = ROWS;
  if (!vb) lo[k++] = COLUMNS;
  if (va) x = im_reshape(n, x, 1, &da.d[1]), la[0] = SUMMED; /* a vector has no batch dims */
  if (vb) y = im_reshape(n, y, 1, &db.d[0]), lb[0] = SUMMED;
  return im_contract(n, x, la, y, lb, lo, k);
}

void im_do_matmul(im_node *n) {
  tarn_term a = im_arg(n, 0), b = im_arg(n, 1);
  im_alike(n, 0, 1);
  im_set(n, 0, matmul(n, a, b));
}

/* ---------------------------------------------------------------- Gemm */

static tarn_term scaled(im_node *n, tarn_term t, double by) {
  im_param p = {"s", by, (int64_t)by};
  return by == 1 ? t : im_elp(n, "(mul $0 s)", &p, 1, 1, t);
}

void im_do_gemm(im_node *n) {
  tarn_term a = im_arg(n, 0), b = im_arg(n, 1), c = im_opt(n, 2);
  im_dims da = im_shape(n, a), db = im_shape(n, b);
  im_alike(n, 0, 1);
  im_alike(n, 0, 2);
  bool ta = im_attr_int(n, "transA", 0), tb = im_attr_int(n, "transB", 0);
  if (da.n != 2 || db.n != 2) im_bad(n, "operands have %u and %u dims, 2 are needed", da.n, db.n);
  if (da.d[!ta] != db.d[tb])
    im_bad(n, "%lld columns against %lld rows", (long long)da.d[!ta], (long long)db.d[tb]);
  uint8_t la[] = {ROWS, SUMMED}, lat[] = {SUMMED, ROWS}, lb[] = {SUMMED, COLUMNS},
          lbt[] = {COLUMNS, SUMMED};
  uint8_t lo[] = {ROWS, COLUMNS};
  tarn_term y = im_contract(n, a, ta ? lat : la, b, tb ? lbt : lb, lo, 2);
  y = scaled(n, y, im_attr_real(n, "alpha", 1));
  double beta = im_attr_real(n, "beta", 1);
  if (c != TARN_NONE && beta != 0) {
    im_dims d = im_shape(n, y);
    y = im_el(n, "(add $0 $1)", 2, y, im_broadcast(n, scaled(n, c, beta), &d));
  }
  im_set(n, 0, y);
}

/* ---------------------------------------------------------------- Einsum */

#define MAX_TERMS 32
typedef struct einsum {
  im_node *n;
  uint32_t nterm;
  uint8_t label[MAX_TERMS][TARN_MAX_DIMS];
  tarn_term t[MAX_TERMS];
  uint32_t rank[MAX_TERMS];
  uint8_t out[TARN_MAX_DIMS];
  uint32_t nout, ellipsis; /* dims that … stands for, at most */
  int64_t extent[256];     /* of a label; 1: not seen, or broadcast */
} einsum;

/* Letters are their own labels; the dims of an ellipsis are 1, 2, … from the last. */
static uint32_t read_labels(einsum *e, const char **text, uint8_t *label, int rank) {
  uint32_t k = 0, dots = 0, letters = 0;
  for (const char *s = *text; *s && *s != ',' && *s != '-'; s++)
    letters += (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
  if (rank >= 0 && (uint32_t)rank >= letters) dots = (uint32_t)rank - letters;
  if (rank < 0) dots = e->ellipsis;
  const char *s = *text;
  for (; *s && *s != ',' && *s != '-'; s++) {
    if (*s == ' ') continue;
    bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
    if (!letter && strncmp(s, "...", 3) != 0) im_bad(e->n, "equation: '%c' is not understood", *s);
    uint32_t add = letter ? 1 : dots;
    if (k + add > TARN_MAX_DIMS) im_bad(e->n, "equation: more than %d labels", TARN_MAX_DIMS);
    for (uint32_t i = 0; i < add; i++) label[k++] = letter ? (uint8_t)*s : (uint8_t)(dots - i);
    if (!letter) s += 2;
  }
  if (rank < 0 ? false : k != (uint32_t)rank)
    im_bad(e->n, "equation: %u labels for %d dims", k, rank);
  *text = s;
  if (rank >= 0 && dots > e->ellipsis) e->ellipsis = dots;
  return k;
}

/* Without "->": the ellipsis, then the letters that occur once, in order. */
static void implicit_output(einsum *e) {
  uint32_t count[256] = {0};
  for (uint32_t i = 0; i < e->nterm; i++)
    for (uint32_t k = 0; k < e->rank[i]; k++) count[e->label[i][k]]++;
  for (uint32_t i = e->ellipsis; i > 0; i--) e->out[e->nout++] = (uint8_t)i;
  for (uint32_t c = 'A'; c <= 'z'; c++) {
    if (count[c] != 1) continue;
    if (e->nout == TARN_MAX_DIMS) im_bad(e->n, "equation: more than %d dims", TARN_MAX_DIMS);
    e->out[e->nout++] = (uint8_t)c;
  }
}

static void read_equation(einsum *e) {
  const char *s = im_attr_str(e->n, "equation", "");
  if (e->n->nin > MAX_TERMS) im_bad(e->n, "more than %d operands", MAX_TERMS);
  for (; e->nterm < e->n->nin; e->nterm++) {
    uint32_t i = e->nterm;
    e->t[i] = im_arg(e->n, i);
    e->rank[i] = read_labels(e, &s, e->label[i], (int)im_shape(e->n, e->t[i]).n);
    if (i + 1 < e->n->nin && *s++ != ',') im_bad(e->n, "equation: fewer terms than operands");
  }
  if (*s == ',') im_bad(e->n, "equation: more terms than operands");
  if (*s && strncmp(s, "->", 2) != 0) im_bad(e->n, "equation: '%s' is not understood", s);
  if (!*s) implicit_output(e);
  else {
    s += 2;
    e->nout = read_labels(e, &s, e->out, -1);
    if (*s) im_bad(e->n, "equation: '%s' is not understood", s);
  }
}

static bool has(const uint8_t *l, uint32_t n, uint8_t label) { return n && memchr(l, label, n); }

/* A label twice in one term: the diagonal, as a view. */
static void take_diagonals(einsum *e, uint32_t i) {
  im_dims d = im_shape(e->n, e->t[i]);
  tarn_imap m = {.nin = (uint8_t)d.n, .fill = TARN_NONE};
  uint8_t distinct[TARN_MAX_DIMS];
  uint32_t k = 0, at[TARN_MAX_DIMS];
  for (uint32_t j = 0; j < d.n; j++) {
    const uint8_t *seen = k ? memchr(distinct, e->label[i][j], k) : NULL;
    at[j] = seen ? (uint32_t)(seen - distinct) : k;
    m.in[j] = d.d[j];
    if (seen && m.dim[at[j]] != d.d[j]) im_bad(e->n, "a repeated label has two extents");
    if (!seen) m.dim[k] = d.d[j], distinct[k++] = e->label[i][j];
  }
  if (k == d.n) return;
  m.n = m.ns = (uint8_t)k;
  for (uint32_t j = 0; j < d.n; j++) m.e[j] = tarn_ix_var(e->n->L, at[j], m.dim);
  e->t[i] = tarn_view(e->n->L, tarn_map_intern(e->n->L, &m), e->t[i]);
  memcpy(e->label[i], distinct, k);
  e->rank[i] = k;
}

/* Extent-1 dims of a label that is larger elsewhere broadcast: they are dropped. */
static void unify_extents(einsum *e) {
  for (uint32_t i = 0; i < 256; i++) e->extent[i] = 1;
  for (uint32_t i = 0; i < e->nterm; i++) {
    im_dims d = im_shape(e->n, e->t[i]);
    for (uint32_t k = 0; k < e->rank[i]; k++) {
      int64_t *x = &e->extent[e->label[i][k]];
      if (*x != 1 && d.d[k] != 1 && d.d[k] != *x)
        im_bad(e->n, "a label has the extents %lld and %lld", (long long)*x, (long long)d.d[k]);
      if (*x == 1) *x = d.d[k];
    }
  }
  for (uint32_t i = 0; i < e->nterm; i++) {
    im_dims d = im_shape(e->n, e->t[i]);
    uint32_t k = 0;
    for (uint32_t j = 0; j < d.n; j++) {
      if (d.d[j] == 1 && e->extent[e->label[i][j]] != 1) continue;
      d.d[k] = d.d[j];
      e->label[i][k++] = e->label[i][j];
    }
    e->t[i] = im_reshape(e->n, e->t[i], k, d.d);
    e->rank[i] = k;
  }
}

/* Sums out what only this term has and the output lacks. */
static void sum_private(einsum *e, uint32_t i) {
  uint32_t mask = 0, k = 0;
  for (uint32_t j = 0; j < e->rank[i]; j++) {
    bool wanted = has(e->out, e->nout, e->label[i][j]);
    for (uint32_t o = 0; o < e->nterm; o++)
      wanted |= o != i && has(e->label[o], e->rank[o], e->label[i][j]);
    if (!wanted) mask |= 1u << j;
    else e->label[i][k++] = e->label[i][j];
  }
  if (mask) e->t[i] = im_reduce(e->n, e->t[i], mask, TARN_NONE, TARN_RED_SUM, false);
  e->rank[i] = k;
}

/* Term 0 := term 0 × term i, keeping the labels that later terms or the output need. */
static void multiply_in(einsum *e, uint32_t i) {
  uint8_t keep[2 * TARN_MAX_DIMS];
  uint32_t k = 0;
  const uint32_t of[2] = {0, i};
  for (uint32_t side = 0; side < 2; side++)
    for (uint32_t j = 0; j < e->rank[of[side]]; j++) {
      uint8_t l = e->label[of[side]][j];
      bool wanted = has(e->out, e->nout, l);
      for (uint32_t o = i + 1; o < e->nterm; o++) wanted |= has(e->label[o], e->rank[o], l);
      if (wanted && !has(keep, k, l)) keep[k++] = l;
    }
  if (k > TARN_MAX_DIMS)
    im_bad(e->n, "an intermediate product has more than %d dims", TARN_MAX_DIMS);
  e->t[0] = im_contract(e->n, e->t[0], e->label[0], e->t[i], e->label[i], keep, k);
  memcpy(e->label[0], keep, k);
  e->rank[0] = k;
  e->rank[i] = 0;
}

void im_do_einsum(im_node *n) {
  einsum e = {.n = n};
  read_equation(&e);
  for (uint32_t i = 0; i < e.nterm; i++) take_diagonals(&e, i);
  unify_extents(&e);
  for (uint32_t i = 0; i < e.nterm; i++) sum_private(&e, i);
  for (uint32_t i = 1; i < e.nterm; i++) multiply_in(&e, i);
  uint32_t p[TARN_MAX_DIMS];
  if (e.nout != e.rank[0])
    im_bad(n, "equation: the output has %u labels, the product %u", e.nout, e.rank[0]);
  for (uint32_t i = 0; i < e.nout; i++) {
    const uint8_t *at = e.nout ? memchr(e.label[0], e.out[i], e.rank[0]) : NULL;
    if (!at) im_bad(n, "equation: the output has a label that no operand has, or one twice");
    p[i] = (uint32_t)(at - e.label[0]);
  }
  im_set(n, 0, im_permute(n, e.t[0], p));
}
