/* Kernel form: turns every computation into a nest over buffers that holds the views of its reads.
 */
#include "kernel/edit.h"
#include <string.h>

/* ---------------------------------------------------------------- the host of terms */

static uint32_t term_type(void *user, uint32_t id) { return tarn_term_get(user, id)->type; }

static uint32_t term_mk(void *user, uint32_t op, uint32_t payload, const uint32_t *kid,
                        uint32_t n) {
  tarn_lang *L = user;
  uint32_t few[KERN_KIDS], *type = n <= KERN_KIDS ? few : TARN_ARRAY(tarn_lang_ctx(L), uint32_t, n);
  for (uint32_t i = 0; i < n; i++) type[i] = tarn_term_get(L, kid[i])->type;
  if (tarn_type_of(L, op, payload, type, n) == TARN_NONE) return TARN_NONE;
  return tarn_mk(L, op, payload, kid, n);
}

static bool term_open(void *user, uint32_t id, uint32_t op,
                      bool (*test)(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n),
                      void *arg, uint32_t *payload, const uint32_t **kid, uint32_t *n) {
  const tarn_node *x = tarn_term_get(user, id);
  if (x->op != op || !test(arg, x->payload, x->kid, x->n)) return false;
  *payload = x->payload, *kid = x->kid, *n = x->n;
  return true;
}

kern_host kern_term_host(tarn_lang *L) {
  return (kern_host){.L = L, .user = L, .type = term_type, .mk = term_mk, .open = term_open};
}

/* ---------------------------------------------------------------- absorbing views */

/* Reads of a child that is a view (map) of base become reads of base; false: some map cannot be
 * composed. */
static bool absorb(kern *k, uint32_t leaf, uint32_t map, uint32_t base) {
  uint32_t to = 0; /* where base stands already, else in the place of the leaf */
  while (to < k->nleaf && k->leaf[to] != base) to++;
  if (to == k->nleaf) to = leaf;
  for (int pass = 0; pass < 2; pass++) /* first: is it possible at all? */
    for (uint32_t i = 0; i < k->nstage; i++)
      for (uint32_t r = 0; r < k->stage[i].nb + k->stage[i].ne; r++) {
        tarn_read *x = &k->stage[i].read[r];
        if (x->stage || x->src != leaf) continue;
        uint32_t m = tarn_map_compose(k->L, x->map, map);
        if (m == TARN_NONE) return false;
        if (pass) x->map = m, x->src = to;
      }
  if (to == leaf) k->leaf[leaf] = base;
  return true;
}

/* ---------------------------------------------------------------- terms */

/* A view that no index map can be composed with (two paddings of different values) is computed: a
 * copy of what it shows. */
static tarn_term computed_view(tarn_lang *L, tarn_term view) {
  return tarn_mk(L, TARN_OP_MATERIALISE, 0, &view, 1);
}

_Noreturn static void too_wide(tarn_lang *L, const tarn_node *x) {
  tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT,
             "a %s of %u operands cannot be taken apart into kernels of at most %d",
             tarn_op_info(x->op)->text, x->n, TARN_MAX_OPERANDS);
}

static tarn_term kernel_of(const kern_host *host, const tarn_node *x, const tarn_term *kid) {
  tarn_lang *L = host->L;
  uint32_t *type = TARN_ARRAY(tarn_lang_ctx(L), uint32_t, x->n ? x->n : 1);
  kern k;
  for (uint32_t i = 0; i < x->n; i++) type[i] = tarn_term_get(L, kid[i])->type;
  uint32_t nest = tarn_nest_of(L, x->op, x->payload, type, x->n);
  if (!kern_load(&k, host, nest, kid, x->n)) {
    if (!tarn_nest_emittable(L, nest)) too_wide(L, x);
    return tarn_mk(L, x->op, x->payload, kid, x->n);
  }
  for (uint32_t i = 0; i < k.nleaf; i++) {
    const tarn_node *v = tarn_term_get(L, k.leaf[i]);
    if (v->op == TARN_OP_VIEW && !absorb(&k, i, tarn_payload_get(L, v->payload)->id, v->kid[0]))
      k.leaf[i] = computed_view(L, k.leaf[i]);
  }
  if (!kern_fits(&k) && !kern_take_apart(&k)) too_wide(L, x);
  tarn_term t = kern_store(&k);
  return t == TARN_NONE ? tarn_mk(L, x->op, x->payload, kid, x->n) : t;
}

/* What has no elements is known: kernels meet an extent of 0 only in constants. */
static tarn_term nothing(tarn_lang *L, const tarn_type *t) {
  const tarn_tensor *x = tarn_tensor_new(tarn_lang_ctx(L), t->dtype, t->n, t->dim);
  return tarn_constant(L, "empty", x, t->ns);
}

/* A memory space asked for has no meaning to kernels, whose buffers are placed by the memory plan.
 */
static tarn_term rebuilt(const kern_host *host, tarn_term t, const tarn_term *kid) {
  tarn_node x = *tarn_term_get(host->L, t);
  const tarn_type *type = tarn_type_get(host->L, x.type);
  if (!type->tuple && tarn_type_count(type) == 0) return nothing(host->L, type);
  if (tarn_op_info(x.op)->kernel == TARN_OPK_NEST) return kernel_of(host, &x, kid);
  if (x.op == TARN_OP_PLACE) return kid[0];
  tarn_term v = kern_view(host->L, &x, kid);
  if (v == TARN_NONE) v = tarn_mk(host->L, x.op, x.payload, kid, x.n);
  tarn_node y = *tarn_term_get(host->L, v);
  if (y.op != TARN_OP_VIEW || tarn_term_get(host->L, y.kid[0])->op != TARN_OP_VIEW) return v;
  tarn_term below = computed_view(host->L, y.kid[0]);
  return tarn_mk(host->L, TARN_OP_VIEW, y.payload, &below, 1);
}

tarn_term kern_form(const kern_host *host, tarn_map *memo, tarn_term root) {
  tarn_lang *L = host->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  TARN_VEC(tarn_term) todo = {0};
  root = tarn_normalise(L, root);
  tarn_push(cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node *x = tarn_term_get(L, t);
    tarn_term *kid = TARN_ARRAY(cx, tarn_term, x->n ? x->n : 1);
    uint32_t have = todo.n;
    for (uint32_t i = 0; i < x->n; i++) {
      uint64_t *k = tarn_map_get(memo, x->kid[i]);
      if (k) kid[i] = (tarn_term)(*k - 1);
      else tarn_push(cx, &todo, x->kid[i]);
    }
    if (todo.n > have) continue;
    todo.n--;
    uint64_t *done = tarn_map_get(memo, t);
    if (!done) *tarn_map_at(memo, t, NULL) = (uint64_t)rebuilt(host, t, kid) + 1;
  }
  return (tarn_term)(*tarn_map_get(memo, root) - 1);
}

tarn_term tarn_kernel_form(tarn_lang *L, tarn_term root) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  kern_host host = kern_term_host(L);
  return kern_form(&host, tarn_map_new(cx), root);
}
