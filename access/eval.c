/* The reference interpreter: terms.  Every reachable term of the normal forms is computed once, in
 * the order of the ids (kids first); a view is a map beside its base's buffer; a buffer is freed
 * after its last use. */
#include "access/eval.h"
#include "access/fx_internal.h"
#include "base/limit.h"
#include <string.h>

/* ---------------------------------------------------------------- memory */
struct tarn_evblock {
  tarn_evblock *next, *prev;
  tarn_ev *owner;
  void *raw;
  size_t bytes;
};
#define ALIGN 64

void *tarn_ev_alloc(tarn_ev *e, size_t n) {
  const tarn_allocator *a = tarn_ctx_allocator(e->cx);
  size_t bytes = n + sizeof(tarn_evblock) + ALIGN;
  char *raw = bytes > n ? a->realloc(a->user, NULL, 0, bytes) : NULL;
  if (!raw) tarn_raise(e->cx, TARN_MEMORY, "eval: no memory for %zu bytes", n);
  uintptr_t at = ((uintptr_t)raw + sizeof(tarn_evblock) + ALIGN - 1) / ALIGN * ALIGN;
  char *data = raw + (at - (uintptr_t)raw);
  tarn_evblock *b = (tarn_evblock *)(void *)(data - sizeof(tarn_evblock));
  *b = (tarn_evblock){.next = e->blocks, .owner = e, .raw = raw, .bytes = bytes};
  if (e->blocks) e->blocks->prev = b;
  e->blocks = b;
  return data;
}

void tarn_ev_free(tarn_ev *e, void *p) {
  const tarn_allocator *a = tarn_ctx_allocator(e->cx);
  if (!p) return;
  tarn_evblock *b = (tarn_evblock *)(void *)((char *)p - sizeof(tarn_evblock));
  if (b->prev) b->prev->next = b->next;
  else b->owner->blocks = b->next;
  if (b->next) b->next->prev = b->prev;
  a->realloc(a->user, b->raw, b->bytes, 0);
}

static void free_all(void *arg) {
  tarn_ev *e = arg;
  while (e->blocks) tarn_ev_free(e, (char *)e->blocks + sizeof(tarn_evblock));
}

/* ---------------------------------------------------------------- values */
typedef struct buffer {
  uint32_t uses;
  tarn_dtype store;
  void *data;
  bool owned;
} buffer;

typedef struct value {
  buffer *b;
  uint32_t map;  /* its dims -> the buffer's; TARN_NONE: the same */
  uint32_t type; /* of this value */
  uint32_t n;    /* members of a tuple */
  struct value *member;
} value;

typedef struct run {
  tarn_ev e;
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_binding *in;
  uint32_t nin;
  tarn_opaque_fn *opaque;
  value *val;        /* by term */
  uint32_t *uses;    /* by term: uses to come */
  struct run *other; /* NULL, or of noise that is apart: the same with other roundings */
} run;

static int64_t count_of(const run *r, uint32_t type) {
  return tarn_type_count(tarn_type_get(r->L, type));
}

static value new_value(run *r, uint32_t type, tarn_dtype store, void *data) {
  const tarn_type *t = tarn_type_get(r->L, type);
  value v = {.b = TARN_NEW(r->cx, buffer), .map = TARN_NONE, .type = type};
  *v.b = (buffer){.uses = 1, .store = store, .data = data, .owned = !data};
  if (!data) v.b->data = tarn_ev_alloc(&r->e, (size_t)tarn_type_count(t) * tarn_dtype_size(store));
  return v;
}

/* Uninitialised, stored as kernels store it. */
static value fresh_value(run *r, uint32_t type) {
  return new_value(r, type, tarn_ev_store(&r->e, tarn_type_get(r->L, type)->dtype), NULL);
}

static value share(run *r, value v) {
  value w = v;
  if (v.b) v.b->uses++;
  if (v.n) w.member = TARN_ARRAY(r->cx, value, v.n);
  for (uint32_t i = 0; i < v.n; i++) w.member[i] = share(r, v.member[i]);
  return w;
}

static void drop(run *r, value *v) {
  for (uint32_t i = 0; i < v->n; i++) drop(r, &v->member[i]);
  if (v->b && --v->b->uses == 0 && v->b->owned) tarn_ev_free(&r->e, v->b->data);
  v->b = NULL;
  v->n = 0;
}

static value tuple_value(run *r, uint32_t type, uint32_t n) {
  return (value){.map = TARN_NONE, .type = type, .n = n, .member = TARN_ARRAY(r->cx, value, n)};
}

static tarn_evarg arg_of(const run *r, const value *v) {
  return (tarn_evarg){v->b->data, v->b->store, tarn_type_get(r->L, v->type)->dtype, v->map};
}

/* The same value in a buffer of its own order and storage; to be dropped. */
static value plain(run *r, const value *v) {
  if (v->map == TARN_NONE &&
      v->b->store == tarn_ev_store(&r->e, tarn_type_get(r->L, v->type)->dtype))
    return share(r, *v);
  value out = fresh_value(r, v->type);
  tarn_evarg a = arg_of(r, v);
  tarn_ev_nest(&r->e, tarn_nest_of(r->L, TARN_OP_MATERIALISE, 0, &v->type, 1), &a, &out.b->data);
  return out;
}

/* ---------------------------------------------------------------- operators */
static value eval_INPUT(run *r, const tarn_node *x, value *const *kid) {
  const tarn_payload *p = tarn_payload_get(r->L, x->payload);
  const tarn_type *t = tarn_type_get(r->L, x->type);
  (void)kid;
  for (uint32_t i = 0; i < r->nin; i++) {
    const tarn_tensor *v = r->in[i].value;
    if (strcmp(r->in[i].name, p->name) != 0) continue;
    bool same =
        v->n == t->n && (v->dtype == t->dtype || v->dtype == tarn_ev_store(&r->e, t->dtype));
    for (uint32_t d = 0; same && d < t->n; d++) same = v->dim[d] == t->dim[d];
    if (!same)
      tarn_raise(r->cx, TARN_BAD_INPUT, "input %s: expects %s, given %s", p->name,
                 tarn_dims_text(r->cx, t->dtype, t->n, t->dim),
                 tarn_dims_text(r->cx, v->dtype, v->n, v->dim));
    return new_value(r, x->type, v->dtype, v->data);
  }
  tarn_raise(r->cx, TARN_BAD_INPUT, "input %s: no value given", p->name);
}

static value eval_CONST(run *r, const tarn_node *x, value *const *kid) {
  const tarn_tensor *t = tarn_payload_get(r->L, x->payload)->tensor;
  (void)kid;
  return new_value(r, x->type, t->dtype, t->data);
}

static value eval_VIEW(run *r, const tarn_node *x, value *const *kid) {
  uint32_t map = tarn_payload_get(r->L, x->payload)->id;
  uint32_t whole = kid[0]->map == TARN_NONE ? map : tarn_map_compose(r->L, map, kid[0]->map);
  value v = whole == TARN_NONE ? plain(r, kid[0]) : share(r, *kid[0]);
  v.map = whole == TARN_NONE ? map : whole;
  v.type = x->type;
  return v;
}

static value eval_loops(run *r, const tarn_node *x, value *const *kid) {
  uint32_t *types = TARN_ARRAY(r->cx, uint32_t, x->n);
  tarn_evarg *arg = TARN_ARRAY(r->cx, tarn_evarg, x->n);
  value *held = TARN_ARRAY(r->cx, value, x->n);
  for (uint32_t i = 0; i < x->n; i++) types[i] = kid[i]->type;
  const tarn_nest *n = tarn_nest_get(r->L, tarn_nest_of(r->L, x->op, x->payload, types, x->n));
  for (uint32_t i = 0; i < x->n; i++) held[i] = share(r, *kid[i]);
  for (uint32_t s = 0; s < n->nstage;
       s++) { /* what cannot be read through one map is copied first */
    for (uint32_t k = 0; k < tarn_stage_reads(r->L, &n->stage[s]); k++) {
      const tarn_read *rd = &n->stage[s].read[k];
      if (rd->stage || held[rd->src].map == TARN_NONE) continue;
      if (!rd->row.by && tarn_map_compose(r->L, rd->map, held[rd->src].map) != TARN_NONE) continue;
      value p = plain(r, &held[rd->src]);
      drop(r, &held[rd->src]);
      held[rd->src] = p;
    }
  }
  for (uint32_t i = 0; i < x->n; i++) arg[i] = arg_of(r, &held[i]);
  const tarn_type *t = tarn_type_get(r->L, x->type);
  value out = t->tuple ? tuple_value(r, x->type, t->nelem) : fresh_value(r, x->type);
  void **data = TARN_ARRAY(r->cx, void *, out.n + 1);
  if (!t->tuple) data[0] = out.b->data;
  for (uint32_t i = 0; i < out.n; i++) {
    out.member[i] = fresh_value(r, t->elem[i]);
    data[i] = out.member[i].b->data;
  }
  tarn_ev_nest(&r->e, tarn_nest_of(r->L, x->op, x->payload, types, x->n), arg, data);
  for (uint32_t i = 0; i < x->n; i++) drop(r, &held[i]);
  return out;
}
#define eval_COMPUTE      eval_loops
#define eval_NEST         eval_loops
#define eval_FOLD         eval_loops
#define eval_SYSTOLIC     eval_loops
#define eval_SYSTOLIC_ACC eval_loops

static value eval_same(run *r, const tarn_node *x, value *const *kid) {
  (void)x;
  return share(r, *kid[0]);
}
#define eval_MATERIALISE eval_same
#define eval_PLACE       eval_same

static value eval_CONCAT(run *r, const tarn_node *x, value *const *kid) {
  uint32_t axis = (uint32_t)tarn_payload_get(r->L, x->payload)->ints[0];
  const tarn_type *t = tarn_type_get(r->L, x->type);
  value out = fresh_value(r, x->type);
  size_t item = tarn_dtype_size(out.b->store), row = item, at = 0;
  int64_t outer = 1;
  for (uint32_t i = 0; i < axis; i++) outer *= t->dim[i];
  for (uint32_t i = axis; i < t->n; i++) row *= (size_t)t->dim[i];
  for (uint32_t k = 0; k < x->n; k++) {
    const tarn_type *kt = tarn_type_get(r->L, kid[k]->type);
    value p = plain(r, kid[k]);
    size_t part = item;
    for (uint32_t i = axis; i < kt->n; i++) part *= (size_t)kt->dim[i];
    for (int64_t o = 0; part && o < outer; o++)
      memcpy((char *)out.b->data + (size_t)o * row + at, (char *)p.b->data + (size_t)o * part,
             part);
    at += part;
    drop(r, &p);
  }
  return out;
}

/* Blocks of `inner` bytes: of each of `outer` times `extent`, those at the n indices. */
static void gather_into(run *r, const value *from, const value *index, int64_t outer,
                        int64_t extent, size_t inner, char *to) {
  int64_t n = count_of(r, index->type);
  for (int64_t o = 0; inner && o < outer; o++)
    for (int64_t k = 0; k < n; k++, to += inner) {
      int64_t i = tarn_data_get(index->b->data, index->b->store, k).i, j;
      if (!tarn_index_in(index->b->store, i, extent, &j))
        tarn_raise(r->cx, TARN_BAD_INPUT, "gather: index %lld, the axis has %lld elements",
                   (long long)i, (long long)extent);
      memcpy(to, (const char *)from->b->data + (size_t)(o * extent + j) * inner, inner);
    }
}

static value eval_GATHER(run *r, const tarn_node *x, value *const *kid) {
  uint32_t axis = (uint32_t)tarn_payload_get(r->L, x->payload)->ints[0];
  const tarn_type *t = tarn_type_get(r->L, kid[0]->type);
  value a = plain(r, kid[0]), index = plain(r, kid[1]), out = fresh_value(r, x->type);
  int64_t outer = 1;
  size_t inner = tarn_dtype_size(out.b->store);
  for (uint32_t i = 0; i < axis; i++) outer *= t->dim[i];
  for (uint32_t i = axis + 1; i < t->n; i++) inner *= (size_t)t->dim[i];
  gather_into(r, &a, &index, outer, t->dim[axis], inner, out.b->data);
  drop(r, &a);
  drop(r, &index);
  return out;
}

static value eval_TUPLE(run *r, const tarn_node *x, value *const *kid) {
  value v = tuple_value(r, x->type, x->n);
  for (uint32_t i = 0; i < x->n; i++) v.member[i] = share(r, *kid[i]);
  return v;
}

static value eval_NTH(run *r, const tarn_node *x, value *const *kid) {
  return share(r, kid[0]->member[tarn_payload_get(r->L, x->payload)->ints[0]]);
}

/* A tensor over the value's elements in its own type; *held is to be dropped afterwards. */
static tarn_tensor *as_tensor(run *r, const value *v, value *held) {
  const tarn_type *t = tarn_type_get(r->L, v->type);
  tarn_tensor *x = TARN_NEW(r->cx, tarn_tensor);
  *held = v->map == TARN_NONE && v->b->store == t->dtype ? share(r, *v) : plain(r, v);
  if (held->b->store != t->dtype) {
    value native = new_value(r, v->type, t->dtype, NULL);
    tarn_tensor to = {.dtype = t->dtype, .data = native.b->data};
    for (int64_t i = 0, n = count_of(r, v->type); i < n; i++)
      tarn_tensor_set(&to, i, tarn_data_get(held->b->data, held->b->store, i));
    drop(r, held);
    *held = native;
  }
  *x = (tarn_tensor){.dtype = t->dtype, .n = t->n, .data = held->b->data};
  memcpy(x->dim, t->dim, t->n * sizeof *t->dim);
  return x;
}

static value eval_OPAQUE(run *r, const tarn_node *x, value *const *kid) {
  const tarn_payload *p = tarn_payload_get(r->L, x->payload);
  const tarn_type *t = tarn_type_get(r->L, x->type);
  uint32_t nout = t->tuple ? t->nelem : 1;
  const tarn_tensor **in = TARN_ARRAY(r->cx, const tarn_tensor *, x->n);
  tarn_tensor **out = TARN_ARRAY(r->cx, tarn_tensor *, nout);
  value *held = TARN_ARRAY(r->cx, value, x->n), none;
  if (!r->opaque)
    tarn_raise(r->cx, TARN_BAD_INPUT, "eval: no reference kernel for the operator %s", p->name);
  for (uint32_t i = 0; i < x->n; i++) in[i] = as_tensor(r, kid[i], &held[i]);
  value v = tuple_value(r, x->type, nout);
  for (uint32_t i = 0; i < nout; i++) {
    uint32_t type = t->tuple ? t->elem[i] : x->type;
    tarn_dtype store = tarn_type_get(r->L, type)->dtype;
    v.member[i] = new_value(r, type, store, NULL);
    memset(v.member[i].b->data, 0, (size_t)count_of(r, type) * tarn_dtype_size(store));
    out[i] = as_tensor(r, &v.member[i], &none);
    drop(r, &none);
  }
  r->opaque(r->cx, p, in, x->n, out, nout);
  for (uint32_t i = 0; i < x->n; i++) drop(r, &held[i]);
  return t->tuple ? v : v.member[0];
}

/* ---- calls of kernels written by hand ---- */
typedef struct calling {
  run *r;
  const tarn_written *w;
  uint32_t ns; /* access dims */
  tarn_written_arg arg[TARN_MAX_OPERANDS + 1];
  int64_t dim[TARN_MAX_OPERANDS + 1][TARN_MAX_DIMS], stride[TARN_MAX_OPERANDS + 1][TARN_MAX_DIMS];
} calling;
/* Memory for one point of an operand, in the order that the function wants. */
static void lay_out(calling *c, uint32_t i, const tarn_written_port *p, const tarn_tensor *t) {
  int64_t count = 1;
  for (uint32_t k = p->n; k-- > 0;) {
    uint32_t d = p->order[k];
    c->dim[i][d] = t->dim[c->ns + d];
    c->stride[i][d] = count;
    count *= c->dim[i][d];
  }
  size_t bytes = (size_t)(count ? count : 1) * tarn_dtype_size(p->dtype);
  void *data = TARN_ARRAY(c->r->cx, char, bytes);
  c->arg[i] = (tarn_written_arg){p->dtype, p->n, c->dim[i], c->stride[i], data};
}
/* One point between a tensor and that memory. */
static void move(const calling *c, uint32_t i, tarn_tensor *t, int64_t point, bool store) {
  const tarn_written_arg *a = &c->arg[i];
  tarn_tensor flat = {.dtype = a->dtype, .data = a->data};
  int64_t idx[TARN_MAX_DIMS] = {0}, n = 1;
  for (uint32_t d = 0; d < a->n; d++) n *= a->dim[d];
  for (int64_t k = 0; k < n; k++) {
    int64_t at = 0;
    for (uint32_t d = 0; d < a->n; d++) at += idx[d] * a->stride[d];
    if (store) tarn_tensor_set(t, point * n + k, tarn_tensor_get(&flat, at));
    else tarn_tensor_set(&flat, at, tarn_tensor_get(t, point * n + k));
    for (uint32_t d = a->n; d-- > 0 && ++idx[d] == a->dim[d];) idx[d] = 0;
  }
}
static void call_points(calling *c, tarn_tensor *const *in, tarn_tensor *out) {
  int64_t points = 1;
  for (uint32_t d = 0; d < c->ns; d++) points *= out->dim[d];
  for (uint32_t i = 0; i < c->w->nin; i++) lay_out(c, i, &c->w->in[i], in[i]);
  lay_out(c, c->w->nin, &c->w->out, out);
  for (int64_t p = 0; p < points; p++) {
    for (uint32_t i = 0; i < c->w->nin; i++) move(c, i, in[i], p, false);
    c->w->run(c->r->cx, c->w, c->arg, &c->arg[c->w->nin]);
    move(c, c->w->nin, out, p, true);
  }
}
static value eval_CALL(run *r, const tarn_node *x, value *const *kid) {
  const char *name = tarn_payload_get(r->L, x->payload)->name;
  calling *c = TARN_NEW(r->cx, calling);
  *c = (calling){.r = r, .w = tarn_written_find(r->L, name)};
  if (!c->w)
    tarn_raise(r->cx, TARN_BAD_INPUT,
               "eval: (call %s) has no meaning without its hardware description", name);
  if (!c->w->run)
    tarn_raise(r->cx, TARN_NO_RESULT, "eval: the function %s of (call %s) is not loaded",
               c->w->symbol, name);
  const tarn_type *t = tarn_type_get(r->L, x->type);
  tarn_tensor *in[TARN_MAX_OPERANDS], *out;
  value held[TARN_MAX_OPERANDS], none, v = new_value(r, x->type, t->dtype, NULL);
  c->ns = t->ns;
  for (uint32_t i = 0; i < x->n; i++) in[i] = as_tensor(r, kid[i], &held[i]);
  out = as_tensor(r, &v, &none);
  drop(r, &none);
  call_points(c, in, out);
  for (uint32_t i = 0; i < x->n; i++) drop(r, &held[i]);
  return v;
}

/* The normal form has none of these. */
static value eval_gone(run *r, const tarn_node *x, value *const *kid) {
  (void)kid;
  tarn_raise(r->cx, TARN_INTERNAL, "eval: %s in a normal form", tarn_op_info(x->op)->text);
}
#define eval_ACCESS      eval_gone
#define eval_TRANSPOSE   eval_gone
#define eval_WINDOWS     eval_gone
#define eval_SLICE       eval_gone
#define eval_PAD         eval_gone
#define eval_SQUEEZE     eval_gone
#define eval_INSERT_AXIS eval_gone
#define eval_BROADCAST   eval_gone
#define eval_FLATTEN     eval_gone
#define eval_RESHAPE     eval_gone
#define eval_PAIR        eval_gone
#define eval_CART_PROD   eval_gone

typedef value eval_fn(run *r, const tarn_node *x, value *const *kid);
static eval_fn *const rules[] = {
#define OP(ID, ...) [TARN_OP_##ID] = eval_##ID,
#include "access/ops.def"
#undef OP
};

/* ---------------------------------------------------------------- the whole */
/* Counts uses; terms above `top` do not occur. */
static void count_uses(run *r, uint32_t top) {
  for (uint32_t t = top + 1; t-- > 0;) {
    if (!r->uses[t]) continue;
    const tarn_node *x = tarn_term_get(r->L, t);
    for (uint32_t i = 0; i < x->n; i++) r->uses[x->kid[i]]++;
  }
}

typedef bool fx_is(uint32_t op);
static bool has_fx(const tarn_lang *L, uint32_t fx, fx_is *is) {
  const uint32_t *id;
  if (fx == TARN_NONE) return false;
  for (uint32_t i = 0, n = tarn_fx_reachable(L, fx, &id); i < n; i++)
    if (is(tarn_fx_get(L, id[i])->op)) return true;
  return false;
}
/* Does a function of loops have such an operator? */
static bool loops_have(tarn_lang *L, const tarn_node *x, const uint32_t *types, fx_is *is) {
  const tarn_nest *n = tarn_nest_get(L, tarn_nest_of(L, x->op, x->payload, types, x->n));
  for (uint32_t s = 0; s < n->nstage; s++) {
    const tarn_func *f = tarn_fn_get(L, n->stage[s].fn);
    if (has_fx(L, f->body, is) || has_fx(L, f->epi, is)) return true;
  }
  return false;
}
/* Numbers that are compared are the same number for all who read them: what is the largest of them
 * is equal to one of them. */
static bool may_be_apart(const run *r, const tarn_node *x) {
  uint32_t types[TARN_MAX_OPERANDS];
  if (rules[x->op] != eval_loops || x->n < 2 || x->n > TARN_MAX_OPERANDS) return false;
  for (uint32_t i = 0; i < x->n; i++) types[i] = r->val[x->kid[i]].type;
  return !loops_have(r->L, x, types, tarn_fx_gives_bool);
}
static bool is_step(uint32_t op) {
  int error = tarn_fx_info(op)->error;
  return error == TARN_FXE_STEP || error == TARN_FXE_MODULO;
}
bool tarn_ev_steps(tarn_lang *L, tarn_term root) {
  tarn_term top = tarn_normalise(L, tarn_call_expand(L, root));
  uint32_t types[TARN_MAX_OPERANDS];
  bool *used = TARN_ARRAY(tarn_lang_ctx(L), bool, top + (size_t)1);
  used[top] = true;
  for (tarn_term t = top + 1; t-- > 0;) {
    if (!used[t]) continue;
    const tarn_node *x = tarn_term_get(L, t);
    for (uint32_t i = 0; i < x->n; i++) used[x->kid[i]] = true;
    if (rules[x->op] != eval_loops || x->n > TARN_MAX_OPERANDS) continue;
    for (uint32_t i = 0; i < x->n; i++) types[i] = tarn_term_get(L, x->kid[i])->type;
    if (loops_have(L, x, types, is_step)) return true;
  }
  return false;
}
/* Every second operand, but in half of the runs not what is the first one too: of Min(x, x) both
 * runs would make the same number. */
static bool from_other(const run *r, const tarn_node *x, uint32_t i) {
  return i % 2 && (x->kid[i] != x->kid[0] || r->e.noise.seed % 2);
}
static void eval_term(run *r, tarn_term t) {
  const tarn_node *x = tarn_term_get(r->L, t);
  value **kid = TARN_ARRAY(r->cx, value *, x->n);
  bool apart = r->other && may_be_apart(r, x) && !tarn_ev_skips(&r->e);
  for (uint32_t i = 0; i < x->n; i++)
    kid[i] = &(apart && from_other(r, x, i) ? r->other : r)->val[x->kid[i]];
  r->val[t] = rules[x->op](r, x, kid);
}
static void used(run *r, tarn_term t) {
  const tarn_node *x = tarn_term_get(r->L, t);
  for (uint32_t i = 0; i < x->n; i++)
    if (--r->uses[x->kid[i]] == 0) drop(r, &r->val[x->kid[i]]);
}

/* The result, floats of wide mode as f64. */
static tarn_tensor *output(run *r, const value *v) {
  const tarn_type *t = tarn_type_get(r->L, v->type);
  value p = plain(r, v);
  tarn_tensor *out = tarn_tensor_new(r->cx, p.b->store, t->n, t->dim);
  size_t bytes = (size_t)tarn_type_count(t) * tarn_dtype_size(p.b->store);
  if (bytes) memcpy(out->data, p.b->data, bytes);
  drop(r, &p);
  return out;
}

static void begin(run *r, const tarn_term *normal, uint32_t nroot, uint32_t top) {
  r->uses = tarn_ev_alloc(&r->e, (top + (size_t)1) * sizeof *r->uses);
  r->val = tarn_ev_alloc(&r->e, (top + (size_t)1) * sizeof *r->val);
  memset(r->uses, 0, (top + (size_t)1) * sizeof *r->uses);
  memset(r->val, 0, (top + (size_t)1) * sizeof *r->val);
  for (uint32_t i = 0; i < nroot; i++) r->uses[normal[i]]++;
  count_uses(r, top);
}
static void finish(run *r) {
  free_all(&r->e);
  tarn_keep(r->cx, &r->e); /* the caller may release the arena before its protected call ends */
}

void tarn_ev_roots(const tarn_ev *like, const tarn_term *root, uint32_t nroot,
                   const tarn_binding *in, uint32_t nin, tarn_opaque_fn *opaque,
                   tarn_tensor **out) {
  tarn_lang *L = like->L;
  tarn_ctx *cx = like->cx;
  uint32_t runs = like->noise.apart ? 2 : 1;
  run *r = TARN_ARRAY(cx, run, 2);
  tarn_term *normal = TARN_ARRAY(cx, tarn_term, nroot), top = 0;
  for (uint32_t i = 0; i < nroot; i++) {
    normal[i] = tarn_normalise(L, tarn_call_expand(L, root[i]));
    if (normal[i] > top) top = normal[i];
    if (tarn_term_type(L, root[i])->tuple) tarn_raise(cx, TARN_INTERNAL, "eval: a root is a tuple");
  }
  for (uint32_t k = 0; k < runs; k++) {
    r[k] = (run){.e = *like, .L = L, .cx = cx, .in = in, .nin = nin, .opaque = opaque};
    r[k].e.random += k;
    if (runs > 1) r[k].other = &r[1 - k];
    tarn_defer(cx, free_all, &r[k].e);
    begin(&r[k], normal, nroot, top);
  }
  for (tarn_term t = 0; nroot && t <= top; t++) {
    if (!r->uses[t]) continue;
    tarn_go_on(cx);
    for (uint32_t k = 0; k < runs; k++) eval_term(&r[k], t);
    for (uint32_t k = 0; k < runs; k++) used(&r[k], t);
  }
  for (uint32_t i = 0; i < nroot; i++) out[i] = output(r, &r->val[normal[i]]);
  for (uint32_t k = 0; k < runs; k++) finish(&r[k]);
}

void tarn_eval(tarn_lang *L, const tarn_term *root, uint32_t nroot, const tarn_binding *in,
               uint32_t nin, tarn_mode mode, tarn_opaque_fn *opaque, tarn_tensor **out) {
  tarn_ev e = {.L = L, .cx = tarn_lang_ctx(L), .mode = mode};
  tarn_ev_roots(&e, root, nroot, in, nin, opaque, out);
}
