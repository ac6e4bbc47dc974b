/* Rules that follow from the intrinsics of a description, written in the rule language.
 *
 * Of each intrinsic, its meaning becomes a call of it (NAME); a product becomes calls over tiles,
 * padded up to whole tiles with what the reduction ignores (NAME-tiles; NAME-nest on the kernel
 * level, where every computation is a nest); a map becomes calls over pieces of the flattened
 * tensor (NAME-pieces), an immediate being a constant of its range.
 *
 * For machines whose schedules say how a unit walks a nest, a product is only marked with its unit
 * (NAME-nest-unit).
 *
 * A call types only over the intrinsic's shapes and element types, so that no rule needs a
 * condition for them; (constraint CONDITION) in the description says when rules are wanted.
 * docs/hardware.md has the sizes that it may name.
 *
 * Source of the mapping: rows R45, R46, R49 of the rule table; tiles as reshapes (R34), padding as
 * R15. */
#include "rules/lang/lang.h"
#include <string.h>

typedef struct deriving {
  tarn_ruleset *rs;
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_hw_intrinsic *n;
  tarn_hw_meaning m;
  tarn_hw_form f;
  tarn_buf *b;
  uint32_t fill; /* product: fx constant that pads both operands; TARN_NONE: nothing can */
} deriving;

static const tarn_type *operand_type(const deriving *d, uint32_t i) {
  return tarn_term_type(d->L, d->m.in[i]);
}
static const tarn_type *result_type(const deriving *d) { return tarn_term_type(d->L, d->m.term); }
static const char *fx_text(const deriving *d, uint32_t fx) {
  tarn_buf b = {.cx = d->cx};
  tarn_fx_print(d->L, &b, fx);
  return b.p;
}
static const char *fn_text(const deriving *d, const tarn_func *f) {
  tarn_buf b = {.cx = d->cx};
  tarn_payload_print(d->L, &b, TARN_OP_COMPUTE,
                     tarn_payload_of(d->L, TARN_P_FN, tarn_fn_intern(d->L, f)));
  return b.p; /* starts with a space */
}
static void put_ints(tarn_buf *b, uint32_t n, const int64_t *v) {
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, "%s%lld", i ? " " : "", (long long)v[i]);
}
/* An expression for a list; (list …) itself takes at most four. */
static const char *list_text(const deriving *d, uint32_t n, const int64_t *v) {
  tarn_buf b = {.cx = d->cx};
  tarn_buf_str(&b, n > 4 ? "(append (list " : "(list ");
  put_ints(&b, n > 4 ? 4 : n, v);
  tarn_buf_str(&b, ")");
  if (n > 4) tarn_buf_fmt(&b, " %s)", list_text(d, n - 4, v + 4));
  return b.p;
}

/* ---------------------------------------------------------------- adding */
/* The text of one rule, with the description's constraints; they keep their places for messages. */
/* doc: what it does, %s being the intrinsic. */
static void finish(deriving *d, const char *class, const char *doc, bool constrained) {
  const char *at = strstr(doc, "%s");
  tarn_buf_fmt(d->b, " :class %s :doc \"%.*s%s%s\"))", class, (int)(at - doc), doc, d->m.call,
               at + 2);
  tarn_sx *all =
      tarn_sx_read(d->cx, d->b->p, d->b->n, tarn_format(d->cx, "%s (derived)", d->m.call));
  tarn_sx *family = all->kid[0], *r = family->kid[family->n - 1], *word;
  tarn_sx **kid = TARN_ARRAY(d->cx, tarn_sx *, r->n + 2 * d->n->source->n);
  memcpy(kid, r->kid, r->n * sizeof *kid);
  r->kid = kid;
  for (uint32_t i = 2; constrained && i < d->n->source->n; i++) {
    tarn_sx *c = d->n->source->kid[i];
    if (!tarn_sx_is(c, "constraint")) continue;
    if (c->n != 2) tarn_sx_error(d->cx, c, "(constraint CONDITION) is expected");
    word = tarn_copy(d->cx, kid[1], sizeof *word);
    word->text = ":when", word->len = 5;
    kid[r->n++] = word, kid[r->n++] = c->kid[1];
  }
  r_read_all(d->rs, all, "derived");
}

static void head(deriving *d, const char *suffix) {
  *d->b = (tarn_buf){.cx = d->cx};
  tarn_buf_fmt(d->b, "(family mapping (rule %s%s ", d->m.call, suffix);
}
/* (call NAME θ ((T SHAPE)) */
static void open_call(deriving *d, const char *steps, const char *shape) {
  tarn_buf_fmt(d->b, "(call %s (%s) ((%s %s))", d->m.call, steps,
               tarn_dtype_name(result_type(d)->dtype), shape);
}

/* Typing asks for it; said all the same, so that nothing is made in vain. */
static void put_element(deriving *d, const char *var, tarn_dtype t) {
  if (t != TARN_F32) tarn_buf_fmt(d->b, " :when (element ?%s %s)", var, tarn_dtype_name(t));
}

/* ---------------------------------------------------------------- the meaning itself (R49) */
static bool has_let(const tarn_sx *s) {
  bool any = tarn_sx_is(s, "let");
  for (uint32_t i = 0; i < s->n && !any; i++) any = has_let(s->kid[i]);
  return any;
}
/* Operators of a meaning, each where it is written. A pattern of more is none. */
static uint32_t operators(const tarn_sx *s) {
  uint32_t n = s->kind == TARN_SX_LIST && s->n && s->kid[0]->kind == TARN_SX_ATOM &&
               tarn_op_find(s->kid[0]->text) != TARN_NONE;
  for (uint32_t i = 0; i < s->n; i++) n += operators(s->kid[i]);
  return n;
}
/* Does ?name stand anywhere but under (access …), perhaps transposed, so that its own split
 * matters? */
static bool bare(const tarn_sx *s, const char *var) {
  if (s->kind != TARN_SX_LIST) return tarn_sx_atom_is(s, var);
  const tarn_sx *of = s;
  while ((tarn_sx_is(of, "access") || (of != s && tarn_sx_is(of, "transpose"))) && of->n == 3)
    of = of->kid[2];
  if (of != s && tarn_sx_atom_is(of, var)) return false;
  for (uint32_t i = 0; i < s->n; i++)
    if (bare(s->kid[i], var)) return true;
  return false;
}
/* The type of t when the input has another one; TARN_NONE: it has none. */
static uint32_t type_with(const deriving *d, tarn_term t, tarn_term input, uint32_t type) {
  const tarn_node *x = tarn_term_get(d->L, t);
  uint32_t kid[16];
  if (t == input || x->n > 16) return type;
  for (uint32_t i = 0; i < x->n; i++)
    if ((kid[i] = type_with(d, x->kid[i], input, type)) == TARN_NONE) return TARN_NONE;
  return tarn_type_of(d->L, x->op, x->payload, kid, x->n);
}
/* Might the operand be split otherwise and the meaning still be a term, then of something else? */
static bool split_is_free(const deriving *d, uint32_t i) {
  const tarn_type *t = operand_type(d, i);
  bool any = false;
  if (!bare(d->n->meaning, tarn_format(d->cx, "?%s", d->n->op[i].name))) return false;
  for (uint32_t ns = 0; ns < t->n && !any; ns++)
    any = type_with(d, d->m.term, d->m.in[i], tarn_type_tensor(d->L, t->dtype, ns, t->n, t->dim)) !=
          TARN_NONE;
  return any;
}

static void derive_meaning(deriving *d) {
  const tarn_sx *s = d->n->meaning;
  tarn_buf shape = {.cx = d->cx};
  if (s->kind != TARN_SX_LIST || has_let(s) || operators(s) > R_CLASSES) return;
  tarn_buf_str(&shape, "(() (");
  put_ints(&shape, result_type(d)->n, result_type(d)->dim);
  head(d, "");
  tarn_sx_print(d->b, s, 0);
  tarn_buf_fmt(d->b, " => (access %u ", result_type(d)->ns);
  open_call(d, "", tarn_format(d->cx, "%s))", shape.p));
  for (uint32_t i = 0; i < d->m.nin; i++) tarn_buf_fmt(d->b, " (access 0 ?%s)", d->n->op[i].name);
  tarn_buf_str(d->b, "))");
  for (uint32_t i = 0; i < d->m.nin; i++) {
    const tarn_type *t = operand_type(d, i);
    put_element(d, d->n->op[i].name, t->dtype);
    tarn_buf_fmt(d->b, " :when (= (dims ?%s) %s)", d->n->op[i].name, list_text(d, t->n, t->dim));
    if (split_is_free(d, i)) tarn_buf_fmt(d->b, " :if (= (ns ?%s) %u)", d->n->op[i].name, t->n);
  }
  finish(d, "exact", "%s computes its meaning", false);
}

/* ---------------------------------------------------------------- maps */
static bool reads_all(const deriving *d) {
  for (uint32_t i = 0; i < d->m.nin; i++)
    if (!tarn_fx_uses(d->L, d->f.body, i)) return false;
  return true;
}

/* An operand's elements in one row, padded to whole pieces, ((?et),(tile)). */
static void put_pieces(deriving *d, uint32_t i) {
  tarn_dtype t = operand_type(d, i)->dtype;
  uint32_t zero = tarn_dtype_is_float(t) ? tarn_fx_const(d->L, t, 0) : tarn_fx_iconst(d->L, t, 0);
  tarn_buf_fmt(d->b,
               " (access 1 (reshape (shape (append (list ?et) ?tile) (list)) (pad 0 %s 0 (- (* ?et "
               "?piece) ?e)"
               " (reshape (shape (list ?e) (list)) (access (rank ?x%u) ?x%u)))))",
               fx_text(d, zero), i, i);
}

/* An immediate: the one number of a constant, for each piece. */
static void put_number(deriving *d, uint32_t i) {
  const tarn_type *t = operand_type(d, i);
  const char *dims = list_text(d, t->n, t->dim);
  tarn_buf_fmt(
      d->b,
      " (access 1 (broadcast (shape (append (list ?et) %s) (list)) (reshape (shape (append "
      "(list 1) %s) (list)) (slice 0 0 1 (reshape (shape (list ?e) (list)) (access (rank "
      "?x%u) ?x%u))))))",
      dims, dims, i, i);
}
static bool is_immediate(const deriving *d, uint32_t i) { return d->m.immediate >> i & 1; }

static void derive_map(deriving *d) {
  const tarn_type *y = result_type(d);
  tarn_func f = {.nops = (uint8_t)d->m.nin, .body = d->f.body, .red = TARN_NONE, .epi = TARN_NONE};
  if (!reads_all(d) || is_immediate(d, 0)) return;
  head(d, "-pieces");
  tarn_buf_fmt(d->b, "(compute%s", fn_text(d, &f));
  for (uint32_t i = 0; i < d->m.nin; i++) tarn_buf_fmt(d->b, " ?x%u", i);
  tarn_buf_fmt(d->b,
               ") => (access (ns ?x0) (reshape (shape (dims ?x0) (list)) (slice 0 0 ?e"
               " (reshape (shape (list (* ?et ?piece)) (list)) (access %u ",
               1u + y->n);
  open_call(d, "", "(shape (list ?et) ?tile)");
  for (uint32_t i = 0; i < d->m.nin; i++)
    if (is_immediate(d, i)) put_number(d, i);
    else put_pieces(d, i);
  tarn_buf_fmt(
      d->b,
      ")))))) :where (?tile %s) :where (?piece (product ?tile)) :where (?e (product (dims ?x0)))"
      " :where (?et (/ (+ ?e (- ?piece 1)) ?piece))",
      list_text(d, y->n, y->dim));
  for (uint32_t i = 0; i < d->m.nin; i++)
    put_element(d, tarn_format(d->cx, "x%u", i), operand_type(d, i)->dtype);
  for (uint32_t i = 0; i < d->m.nin; i++)
    if (is_immediate(d, i))
      tarn_buf_fmt(d->b, " :if (within ?x%u %lld %lld)", i, (long long)d->n->op[i].lo,
                   (long long)d->n->op[i].hi);
  finish(d, "exact", "A map is %s on pieces of its operands", true);
}

/* ---------------------------------------------------------------- products */
/* A side of the product as tiles: ((?d ?mt ?ot ?kt),(dims of the operand)). side 0: rows ?m of ?a;
 * 1: columns ?o of ?b. */
typedef struct side {
  char var, count, tiles; /* of the term, its size, its number of tiles: a m m | b o o */
  int64_t tile;
  tarn_hw_role role;
} side;

static uint32_t place_of(const tarn_hw_role *role, uint32_t n, tarn_hw_role r) {
  uint32_t i = 0;
  while (i < n && role[i] != r) i++;
  return i; /* n: nowhere */
}

/* The dims ?d, tiles, [tile], ?kt, [tile of K] of the padded operand. */
static void put_split(deriving *d, const side *s, bool own, bool k) {
  tarn_buf_fmt(d->b, "(reshape (shape (append (list ?d ?%ct", s->tiles);
  if (own) tarn_buf_fmt(d->b, " %lld", (long long)s->tile);
  tarn_buf_fmt(d->b, " ?kt) (list");
  if (k) tarn_buf_fmt(d->b, " %lld", (long long)d->f.k);
  tarn_buf_str(d->b, ")) (list)) ");
  if (d->f.k > 1)
    tarn_buf_fmt(d->b, "(pad 2 %s 0 (- (* ?kt %lld) ?k) ", fx_text(d, d->fill), (long long)d->f.k);
  if (s->tile > 1)
    tarn_buf_fmt(d->b, "(pad 1 %s 0 (- (* ?%ct %lld) ?%c) ", fx_text(d, d->fill), s->tiles,
                 (long long)s->tile, s->count);
  tarn_buf_fmt(d->b, "(access 3 (reshape (shape (list ?d ?%c) (list ?k)) ?%c))", s->count, s->var);
  tarn_buf_str(d->b, s->tile > 1 ? d->f.k > 1 ? "))" : ")" : d->f.k > 1 ? ")" : "");
  tarn_buf_str(d->b, ")");
}

static void put_side(deriving *d, uint32_t which) {
  const side sides[] = {{'a', 'm', 'm', d->f.m, TARN_HW_M}, {'b', 'o', 'o', d->f.n, TARN_HW_N}};
  const side *s = &sides[which];
  const tarn_type *t = operand_type(d, d->f.operand[which]);
  const tarn_hw_role *role = d->f.role[which];
  bool own = s->tile > 1, k = d->f.k > 1;
  uint32_t kdim = 3u + own, lead = which ? 1 : 2, unit[TARN_MAX_DIMS], nunit = 0;
  for (uint32_t i = 0; i < t->n; i++)
    if (role[i] == TARN_HW_UNIT) unit[nunit++] = i;
  tarn_buf_fmt(d->b, " (access 4 (broadcast (shape (append (list ?d ?mt ?ot ?kt) %s) (list)) ",
               list_text(d, t->n, t->dim));
  for (uint32_t i = nunit; i-- > 0;) tarn_buf_fmt(d->b, "(insertAxis %u ", 4 + unit[i]);
  tarn_buf_fmt(d->b, "(insertAxis %u (transpose (0 1 %u", lead, 2u + own);
  for (uint32_t i = 0; i < t->n; i++)
    if (role[i] != TARN_HW_UNIT) tarn_buf_fmt(d->b, " %u", role[i] == TARN_HW_K ? kdim : 2);
  tarn_buf_str(d->b, ") ");
  put_split(d, s, own, k);
  tarn_buf_str(d->b, "))");
  for (uint32_t i = 0; i < nunit; i++) tarn_buf_str(d->b, ")");
  tarn_buf_str(d->b, "))");
}

/* ?p, of the product's shape, as tiles of the accumulator: ((?d ?mt ?ot),(dims of the result)). */
static void put_accumulator(deriving *d) {
  const tarn_type *y = result_type(d);
  const tarn_hw_role *role = d->f.role[2];
  tarn_dtype t = y->dtype;
  uint32_t zero = tarn_dtype_is_float(t) ? tarn_fx_const(d->L, t, 0) : tarn_fx_iconst(d->L, t, 0);
  tarn_buf_fmt(d->b,
               " (access 3 (reshape (shape (append (list ?d ?mt ?ot) %s) (list)) (transpose (0 1 3",
               list_text(d, y->n, y->dim));
  uint32_t m = place_of(role, y->n, TARN_HW_M), n = place_of(role, y->n, TARN_HW_N);
  tarn_buf_str(d->b, n < m ? " 4 2" : " 2 4");
  tarn_buf_fmt(d->b,
               ") (reshape (shape (append (list ?d ?mt %lld ?ot) (list %lld)) (list)) (pad 2 %s 0 "
               "(- (* ?ot %lld) ?o)"
               " (pad 1 %s 0 (- (* ?mt %lld) ?m) (reshape (shape (list ?d ?m ?o) (list)) (access "
               "(rank ?p) ?p))))))))",
               (long long)d->f.m, (long long)d->f.n, fx_text(d, zero), (long long)d->f.n,
               fx_text(d, zero), (long long)d->f.m);
}

/* The calls' results put together: from ((?d ?mt ?ot …),(dims of the result)) to the shape of the
 * product. */
static void put_gather(deriving *d) {
  const tarn_hw_role *role = d->f.role[2];
  uint32_t n = result_type(d)->n, m_at = place_of(role, n, TARN_HW_M),
           n_at = place_of(role, n, TARN_HW_N);
  tarn_buf_str(d->b, "(reshape (shape (append (sdims ?a) (drop (sdims ?b) ?s)) (list)) ");
  if (d->f.n > 1) tarn_buf_str(d->b, "(slice 2 0 ?o ");
  if (d->f.m > 1) tarn_buf_str(d->b, "(slice 1 0 ?m ");
  tarn_buf_fmt(d->b, "(reshape (shape (list ?d (* ?mt %lld) (* ?ot %lld)) (list)) (transpose (0 1",
               (long long)d->f.m, (long long)d->f.n);
  if (m_at < n) tarn_buf_fmt(d->b, " %u", 3 + m_at);
  tarn_buf_str(d->b, " 2");
  if (n_at < n) tarn_buf_fmt(d->b, " %u", 3 + n_at);
  for (uint32_t i = 0; i < n; i++)
    if (role[i] == TARN_HW_UNIT) tarn_buf_fmt(d->b, " %u", 3 + i);
  tarn_buf_fmt(d->b, ") (access %u ", 3 + n);
}
static void close_gather(deriving *d) {
  tarn_buf_str(d->b, d->f.n > 1 && d->f.m > 1   ? "))))))"
                     : d->f.n > 1 || d->f.m > 1 ? ")))))"
                                                : "))))");
}

static void put_where(deriving *d) {
  static const char tiles[] = "mok";
  const int64_t tile[] = {d->f.m, d->f.n, d->f.k};
  tarn_buf_str(
      d->b, " :where (?d (product (take (sdims ?a) ?s))) :where (?m (product (drop (sdims ?a) ?s)))"
            " :where (?o (product (drop (sdims ?b) ?s))) :where (?k (product (cdims ?a)))");
  for (uint32_t i = 0; i < 3; i++) {
    if (tile[i] == 1) tarn_buf_fmt(d->b, " :where (?%ct ?%c)", tiles[i], tiles[i]);
    else
      tarn_buf_fmt(d->b, " :where (?%ct (/ (+ ?%c %lld) %lld))", tiles[i], tiles[i],
                   (long long)tile[i] - 1, (long long)tile[i]);
  }
}

/* Sums of integers wrap, so that their order is free; an extreme has none. */
static const char *product_class(const deriving *d) {
  const tarn_reducer *r = tarn_reducer_get(d->L, d->f.red);
  bool exact = !tarn_dtype_is_float(r->dtype) || r->kind == TARN_RED_MAX || r->kind == TARN_RED_MIN;
  return exact ? "exact" : "reassoc";
}

/* With start: the product and something added to it, which the accumulator begins with. */
static void derive_product(deriving *d, bool start) {
  tarn_func f = {.ntuple = 2, .nops = 1, .body = d->f.body, .red = d->f.red, .epi = TARN_NONE};
  tarn_func plus = {.nops = 2,
                    .body = tarn_reducer_get(d->L, d->f.red)->merge[0],
                    .red = TARN_NONE,
                    .epi = TARN_NONE};
  head(d, start ? "-tiles-onto" : "-tiles");
  if (start) tarn_buf_fmt(d->b, "(compute%s ", fn_text(d, &plus));
  tarn_buf_fmt(d->b, "(compute%s (cartProd ?s ?a ?b))%s => ", fn_text(d, &f), start ? " ?p)" : "");
  put_gather(d);
  if (!d->m.acc) {
    tarn_payload fold = {.kind = TARN_P_FOLD, .n = 1, .ints = (int64_t[]){3}, .value = d->f.red};
    tarn_buf_str(d->b, "(fold");
    tarn_payload_print(d->L, d->b, TARN_OP_FOLD, tarn_payload_intern(d->L, &fold));
    tarn_buf_str(d->b, " ");
  }
  open_call(d, d->m.acc ? "1" : "",
            tarn_format(d->cx, "(shape (list ?d ?mt ?ot%s) %s)", d->m.acc ? "" : " ?kt",
                        list_text(d, result_type(d)->n, result_type(d)->dim)));
  bool swap = d->f.operand[0] > d->f.operand[1];
  put_side(d, swap);
  put_side(d, !swap);
  if (start) put_accumulator(d);
  tarn_buf_str(d->b, d->m.acc ? ")" : "))");
  close_gather(d);
  put_where(d);
  put_element(d, "a", operand_type(d, d->f.operand[0])->dtype);
  put_element(d, "b", operand_type(d, d->f.operand[1])->dtype);
  if (start) put_element(d, "p", result_type(d)->dtype);
  finish(d, product_class(d),
         start ? "A sum of products and a tensor is %s on tiles that begin with the tensor"
               : "A product is %s on its tiles",
         true);
}

/* Can the rule language say it? Both operands of one type, nothing but a chain after the reduction,
 * padding. */
static bool product_fits(deriving *d) {
  tarn_dtype a = operand_type(d, d->f.operand[0])->dtype,
             b = operand_type(d, d->f.operand[1])->dtype;
  bool whole = d->m.nin == 2u + d->m.acc && (d->m.acc ? d->f.chains : d->f.epi == TARN_NONE);
  d->fill = a == b && whole ? tarn_hw_filler(d->L, &d->f, a) : TARN_NONE;
  return d->fill != TARN_NONE && result_type(d)->dtype == tarn_reducer_get(d->L, d->f.red)->dtype;
}

/* ---------------------------------------------------------------- nests of the kernel level */
typedef enum {
  ALONE,
  ONTO,
  THEN
} ending; /* the product; added to ?p, the accumulator's start; and its epilogue as a nest */

static void put_nest_call(deriving *d, ending how) {
  bool swap = d->f.operand[0] > d->f.operand[1];
  const char *call = d->m.call;
  tarn_buf_fmt(d->b, "(view (call-back ?nest %s) ", call);
  if (!d->m.acc) tarn_buf_fmt(d->b, "(nest (call-sum ?nest %s) ", call);
  open_call(d, d->m.acc ? "1" : "", tarn_format(d->cx, "(call-tiles ?nest %s)", call));
  for (uint32_t i = 0; i < 2; i++)
    tarn_buf_fmt(d->b, " (view (call-operand ?nest %s %u) ?%c)", call, swap ? 1 - i : i,
                 "ab"[swap ? 1 - i : i]);
  if (how == ONTO) tarn_buf_fmt(d->b, " (view (call-operand ?nest %s 2) ?p)", call);
  tarn_buf_str(d->b, d->m.acc ? "))" : ")))");
}

/* The same product as a nest over buffers: the maps of its tiles are composed with those of its
 * reads. */
static void derive_nest(deriving *d, ending how) {
  static const char *const suffix[] = {"", "-onto", "-then"}, *const more[] = {"", " ?p",
                                                                               " ?*more"};
  static const char *const docs[] = {
      "A nest that is a product runs %s on its tiles",
      "A nest that adds a product to a tensor runs %s on tiles that begin with the tensor",
      "A nest of a product and an epilogue runs %s on its tiles, then a nest of the epilogue"};
  const char *call = d->m.call;
  *d->b = (tarn_buf){.cx = d->cx};
  tarn_buf_fmt(d->b, "(family mapping :level kernel (rule %s-nest%s (nest ?nest ?a ?b%s) => ", call,
               suffix[how], more[how]);
  if (how == THEN) tarn_buf_fmt(d->b, "(nest (call-after ?nest %s) ", call);
  put_nest_call(d, how);
  if (how == THEN) tarn_buf_str(d->b, " ?*more)");
  static const char sizes[] = "dmok";
  const int64_t tile[] = {1, d->f.m, d->f.n, d->f.k};
  for (uint32_t i = 0; i < 4; i++)
    tarn_buf_fmt(d->b, " :where (?%c (call-size ?nest %s %u))", sizes[i], call, i);
  for (uint32_t i = 1; i < 4; i++)
    tarn_buf_fmt(d->b, " :where (?%ct (/ (+ ?%c %lld) %lld))", sizes[i], sizes[i],
                 (long long)tile[i] - 1, (long long)tile[i]);
  if (how == ALONE) tarn_buf_str(d->b, " :if (no-epilogue ?nest)");
  finish(d, product_class(d), docs[how], true);
}

/* The same nest, marked: what follows of it is a matter of its schedule. */
static void derive_unit(deriving *d) {
  const char *call = d->m.call;
  *d->b = (tarn_buf){.cx = d->cx};
  tarn_buf_fmt(d->b,
               "(family mapping :level kernel (rule %s-nest-unit (nest ?nest ?a ?b ?*more) => "
               "(nest (call-unit ?nest %s ?a ?b) ?a ?b ?*more)",
               call, call);
  put_element(d, "a", operand_type(d, d->f.operand[0])->dtype);
  put_element(d, "b", operand_type(d, d->f.operand[1])->dtype);
  finish(d, "exact", "A nest that is a product, whatever its epilogue, is one that %s computes",
         true);
  d->rs->rule.p[d->rs->rule.n - 1]->subsumes = true;
}

/* ---------------------------------------------------------------- all */
static void derive_one(deriving *d, const tarn_hw *hw, uint32_t i, bool units) {
  d->n = &hw->intrin[i];
  d->m = tarn_hw_meaning_of(d->L, hw, i);
  bool form = tarn_hw_form_of(d->L, &d->m, &d->f);
  if (units) {
    if (form && d->f.product && product_fits(d)) derive_unit(d);
    return;
  }
  if (form && !d->f.product) {
    derive_map(d);
    return;
  }
  if (d->m.immediate) return; /* of maps alone */
  derive_meaning(d);
  if (!form || !product_fits(d)) return;
  derive_product(d, false), derive_nest(d, ALONE), derive_nest(d, THEN);
  if (d->m.acc) derive_product(d, true), derive_nest(d, ONTO);
}

static uint32_t derive(tarn_ruleset *rs, const tarn_hw *hw, bool units) {
  uint32_t before = rs->rule.n;
  tarn_buf b = {.cx = rs->cx};
  deriving d = {.rs = rs, .L = rs->L, .cx = rs->cx, .b = &b};
  rs->deriving = hw;
  for (uint32_t i = 0; i < hw->nintrin; i++) derive_one(&d, hw, i, units);
  rs->deriving = NULL;
  return rs->rule.n - before;
}
uint32_t tarn_ruleset_derive(tarn_ruleset *rs, const tarn_hw *hw) { return derive(rs, hw, false); }
uint32_t tarn_ruleset_derive_units(tarn_ruleset *rs, const tarn_hw *hw) {
  return derive(rs, hw, true);
}
