/* Programs as text, and their large constants as .npy files beside it.
 *
 *   (program (inputs (NAME SHAPE DTYPE)…) [(let (%a TERM)…)] (outputs (NAME TERM)…))
 *
 * The text gives the type of a file's array. */
#include "access/parse.h"
#include <string.h>

typedef struct tarn_constants {
  const char *dir;
  tarn_map *known; /* interned name -> payload + 1 */
} constants;

/* ---------------------------------------------------------------- files of constants */
/* DIR/NAME.npy; what is unusual in a file name becomes %XX. */
static char *file_of(tarn_ctx *cx, const char *dir, const char *name) {
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "%s/", dir);
  for (const char *s = name; *s; s++) {
    unsigned char c = (unsigned char)*s;
    bool usual = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-' || (c == '.' && s != name);
    if (usual) tarn_buf_add(&b, s, 1);
    else tarn_buf_fmt(&b, "%%%02X", c);
  }
  tarn_buf_str(&b, ".npy");
  return b.p;
}

static tarn_tensor *read_constant(tarn_lang *L, const tarn_sx *at, const char *path,
                                  const tarn_type *t) {
  size_t n;
  const char *file = tarn_read_file(L->cx, path, &n);
  tarn_tensor *v = tarn_tensor_as(L->cx, tarn_npy_read_bytes(L->cx, file, n, path), t->dtype);
  bool same = v->dtype == t->dtype && v->n == t->n;
  for (uint32_t d = 0; same && d < v->n; d++) same = v->dim[d] == t->dim[d];
  if (!same)
    tarn_sx_error(L->cx, at, "%s is %s, not %s", path,
                  tarn_dims_text(L->cx, v->dtype, v->n, v->dim),
                  tarn_dims_text(L->cx, t->dtype, t->n, t->dim));
  return v;
}

uint32_t tarn_const_load(tarn_lang *L, const tarn_sx *at, const char *name, uint32_t type) {
  if (!L->constants->dir) tarn_sx_error(L->cx, at, "the constant %s has no folder to lie in", name);
  if (type == TARN_NONE) tarn_sx_error(L->cx, at, "the constant %s needs its type", name);
  uint64_t *known = tarn_map_get(L->constants->known, tarn_name_intern(L, name));
  if (known && *known) return (uint32_t)(*known - 1);
  tarn_payload p = {.kind = TARN_P_CONST, .name = name, .type = type};
  const char *path = file_of(L->cx, L->constants->dir, name);
  p.tensor = read_constant(L, at, path, tarn_type_get(L, type));
  uint32_t id = tarn_payload_intern(L, &p);
  *tarn_map_at(L->constants->known, tarn_name_intern(L, name), NULL) = id + (uint64_t)1;
  return id;
}

/* ---------------------------------------------------------------- reading */
static tarn_io *read_inputs(tarn_lang *L, const tarn_sx *s, uint32_t *n) {
  if (!tarn_sx_is(s, "inputs")) tarn_sx_error(L->cx, s, "(inputs (NAME SHAPE DTYPE)…) is expected");
  tarn_io *in = TARN_ARRAY(L->cx, tarn_io, s->n - 1);
  for (*n = 0; *n < s->n - 1; ++*n) {
    const tarn_sx *i = s->kid[*n + 1];
    if (i->kind != TARN_SX_LIST || i->n != 3)
      tarn_sx_error(L->cx, i, "(NAME SHAPE DTYPE) is expected");
    tarn_io *io = &in[*n];
    io->name = tarn_name_parse(L, i->kid[0]);
    io->type = tarn_type_parse(L, i->kid[1], tarn_dtype_read(L, i->kid[2]));
    io->term = tarn_input(L, io->name, io->type);
    for (uint32_t k = 0; k < *n; k++)
      if (strcmp(in[k].name, io->name) == 0)
        tarn_sx_error(L->cx, i, "the input %s is given twice", io->name);
  }
  return in;
}

static tarn_io *read_outputs(tarn_lang *L, const tarn_sx *s, tarn_map *env, uint32_t *n) {
  if (!tarn_sx_is(s, "outputs")) tarn_sx_error(L->cx, s, "(outputs (NAME TERM)…) is expected");
  tarn_io *out = TARN_ARRAY(L->cx, tarn_io, s->n - 1);
  for (*n = 0; *n < s->n - 1; ++*n) {
    const tarn_sx *o = s->kid[*n + 1];
    if (o->kind != TARN_SX_LIST || o->n != 2) tarn_sx_error(L->cx, o, "(NAME TERM) is expected");
    tarn_io *io = &out[*n];
    io->name = tarn_name_parse(L, o->kid[0]);
    io->term = tarn_term_read(L, o->kid[1], env);
    io->type = tarn_term_get(L, io->term)->type;
    if (tarn_type_get(L, io->type)->tuple)
      tarn_sx_error(L->cx, o, "the output %s is a tuple", io->name);
  }
  return out;
}

/* Every input that a term reads is among the program's. */
static void check_inputs(tarn_lang *L, const tarn_sx *s, const tarn_program *p) {
  for (uint32_t o = 0; o < p->nout; o++) {
    const tarn_term *terms;
    uint32_t n = tarn_term_reachable(L, &p->out[o].term, 1, &terms), k;
    for (uint32_t i = 0; i < n; i++) {
      const tarn_node *x = tarn_term_get(L, terms[i]);
      if (x->op != TARN_OP_INPUT) continue;
      for (k = 0; k < p->nin && p->in[k].term != terms[i]; k++) continue;
      if (k == p->nin)
        tarn_sx_error(L->cx, s, "the output %s reads %s, which is no such input", p->out[o].name,
                      tarn_payload_get(L, x->payload)->name);
    }
  }
}

static void forget_constants(void *arg) { ((tarn_lang *)arg)->constants = NULL; }

tarn_program *tarn_program_parse(tarn_lang *L, const tarn_sx *s, const char *dir) {
  tarn_map *env = tarn_map_new(L->cx);
  constants c = {dir, tarn_map_new(L->cx)};
  tarn_program *p = TARN_NEW(L->cx, tarn_program);
  bool let = s->n == 4;
  if (!tarn_sx_is(s, "program") || s->n < 3 || s->n > 4)
    tarn_sx_error(L->cx, s, "(program (inputs …) [(let …)] (outputs …)) is expected");
  L->constants = tarn_copy(L->cx, &c, sizeof c);
  tarn_defer(L->cx, forget_constants, L);
  p->L = L;
  p->in = read_inputs(L, s->kid[1], &p->nin);
  if (let && !tarn_sx_is(s->kid[2], "let"))
    tarn_sx_error(L->cx, s->kid[2], "(let (%%a TERM)…) is expected");
  if (let) tarn_bind(L, s->kid[2], 1, env, NULL);
  p->out = read_outputs(L, s->kid[let ? 3 : 2], env, &p->nout);
  check_inputs(L, s, p);
  L->constants = NULL;
  return p;
}

/* ---------------------------------------------------------------- printing */
static void print_inputs(const tarn_program *p, tarn_buf *b) {
  tarn_buf_str(b, "(program\n (inputs");
  for (uint32_t i = 0; i < p->nin; i++) {
    const tarn_type *t = tarn_type_get(p->L, p->in[i].type);
    tarn_buf_str(b, "\n  (");
    tarn_name_print(b, p->in[i].name);
    tarn_buf_str(b, " ");
    tarn_shape_print(b, t);
    tarn_buf_fmt(b, " %s)", tarn_dtype_name(t->dtype));
  }
  tarn_buf_str(b, ")\n");
}

void tarn_program_print(const tarn_program *p, tarn_buf *b) {
  tarn_lang *L = p->L;
  const tarn_term *ids;
  tarn_term *root = TARN_ARRAY(L->cx, tarn_term, p->nout);
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  uint32_t n = tarn_term_reachable(L, root, p->nout, &ids);
  tarn_lets l = tarn_lets_choose(L, n, ids, tarn_term_kids, root, p->nout);
  print_inputs(p, b);
  if (l.nbound) tarn_buf_str(b, " (let");
  for (uint32_t i = 0; i < n; i++) {
    if (l.label[i] == TARN_NONE) continue;
    tarn_buf_fmt(b, "\n  (%%%u ", l.label[i]);
    tarn_term_node_print(L, b, &l, l.id[i]);
    tarn_buf_str(b, ")");
  }
  tarn_buf_str(b, l.nbound ? ")\n (outputs" : " (outputs");
  for (uint32_t i = 0; i < p->nout; i++) {
    tarn_buf_str(b, "\n  (");
    tarn_name_print(b, p->out[i].name);
    tarn_buf_str(b, " ");
    tarn_term_ref_print(L, b, &l, p->out[i].term);
    tarn_buf_str(b, ")");
  }
  tarn_buf_str(b, "))\n");
}
