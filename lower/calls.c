/* Kernels that are not nests: gather (an index read from memory),
 * reference kernels of libtarn-rt; those written by hand are in written.c. */
#include "lower/calls.h"
#include "runtime/ref.h"
#include <string.h>

typedef low_step step;

tarn_layout low_step_layout(const low_step *s, bool out, uint32_t i) {
  const tarn_layout *given = out ? s->k->out_layout : s->k->in_layout;
  return given ? given[i] : s->p->buf[out ? s->k->out[i] : s->k->in[i]].layout;
}
tarn_dtype low_step_dtype(const low_step *s, bool out, uint32_t i) {
  return s->p->buf[out ? s->k->out[i] : s->k->in[i]].dtype;
}

LLVMBasicBlockRef low_step_block(const low_step *s) {
  return LLVMAppendBasicBlockInContext(s->M->lc, s->fn, "");
}

/* ---------------------------------------------------------------- the pool, and failures */
LLVMValueRef low_pool_member(const low_step *s, LLVMValueRef pool,
                             unsigned i) { /* run, opaque, message, threads, device, its user
                                              and program */
  low_module *M = s->M;
  LLVMTypeRef face[7] = {M->ptr, M->ptr, M->ptr, M->i32, M->ptr, M->ptr, M->ptr},
              type = LLVMStructTypeInContext(M->lc, face, 7, 0);
  return LLVMBuildLoad2(M->b, M->ptr, LLVMBuildStructGEP2(M->b, type, pool, i, ""), "");
}

void low_step_fail(const low_step *s, LLVMValueRef pool, int code, const char *why) {
  low_module *M = s->M;
  LLVMBasicBlockRef tell = low_step_block(s), end = low_step_block(s);
  size_t n = strlen(why);
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, pool, ""), end, tell);
  LLVMPositionBuilderAtEnd(M->b, tell);
  if (n >= TARN_REF_MESSAGE) n = TARN_REF_MESSAGE - 1;
  char *text = tarn_strndup(M->cx, why, n);
  LLVMBuildMemCpy(M->b, low_pool_member(s, pool, 2), 1, low_text(M, text), 1,
                  low_i64(M, (int64_t)n + 1));
  LLVMBuildBr(M->b, end);
  LLVMPositionBuilderAtEnd(M->b, end);
  LLVMBuildRet(M->b, LLVMConstInt(M->i32, (unsigned)code, 0));
}

/* Ends the step where an index was out of range. extent: of the axis; LOW_SEVERAL: they differ. */
static void check(const low_step *s, LLVMValueRef pool, LLVMValueRef outside, int64_t extent) {
  low_module *M = s->M;
  LLVMBasicBlockRef bad = low_step_block(s), good = low_step_block(s);
  const char *axis = tarn_format(M->cx, ", the axis has %lld elements", (long long)extent);
  LLVMBuildCondBr(M->b, outside, bad, good);
  LLVMPositionBuilderAtEnd(M->b, bad);
  low_step_fail(s, pool, TARN_REF_INDEX,
                tarn_format(M->cx, "%s: an index is out of range%s", s->k->name,
                            extent == LOW_SEVERAL ? "" : axis));
  LLVMPositionBuilderAtEnd(M->b, good);
}
void low_check_lookups(low_module *M, LLVMValueRef fn, const tarn_kprog *p, const tarn_kernel *k,
                       LLVMValueRef outside) {
  LLVMValueRef set = LLVMBuildLoad2(M->b, M->i8, outside, "");
  LLVMValueRef any = LLVMBuildICmp(M->b, LLVMIntNE, set, LLVMConstNull(M->i8), "");
  check(&(step){M, fn, p, k}, LLVMGetParam(fn, 3), any, low_lookup_rows(M->L, k));
}

/* ---------------------------------------------------------------- gather
 * An index out of range is read as 0 and noted in a flag, which is looked at once, at the end. */
typedef struct gather {
  step *s;
  LLVMValueRef base[3]; /* data, index, out */
  tarn_layout l[3];
  tarn_dtype data_type, index_type;
  uint32_t axis;
  LLVMValueRef at[TARN_MAX_DIMS]; /* counters of the output's dims */
  LLVMValueRef outside;           /* i1 in memory */
} gather;

LLVMValueRef low_step_address(const low_step *s, LLVMValueRef base, const tarn_layout *l,
                              tarn_dtype t, const LLVMValueRef *idx) {
  low_module *M = s->M;
  LLVMValueRef o = low_i64(M, l->offset);
  for (uint32_t d = 0; d < l->n; d++) {
    LLVMValueRef i = idx[d];
    if (l->block && d == l->baxis) {
      o = LLVMBuildAdd(M->b, o, LLVMBuildURem(M->b, i, low_i64(M, l->block), ""), "");
      i = LLVMBuildUDiv(M->b, i, low_i64(M, l->block), "");
    }
    o = LLVMBuildAdd(M->b, o, LLVMBuildMul(M->b, i, low_i64(M, l->stride[d]), ""), "");
  }
  return LLVMBuildGEP2(M->b, low_memory_type(M, t), base, &o, 1, "");
}
static LLVMValueRef address(const gather *g, uint32_t which, const LLVMValueRef *idx,
                            tarn_dtype t) {
  return low_step_address(g->s, g->base[which], &g->l[which], t, idx);
}

/* The index at the current place. */
static LLVMValueRef picked(gather *g) {
  low_module *M = g->s->M;
  LLVMTypeRef t = low_memory_type(M, g->index_type);
  LLVMValueRef i = LLVMBuildLoad2(M->b, t, address(g, 1, g->at + g->axis, g->index_type), "");
  LLVMSetAlignment(i, (unsigned)tarn_dtype_size(g->index_type));
  return low_index_inside(M, i, g->index_type, g->l[0].dim[g->axis], g->outside);
}

/* Are the dims behind the axis one run of memory in data and result? Elements of it, or 0. */
static int64_t run_length(const gather *g) {
  uint32_t from[2] = {g->axis + 1, g->axis + g->l[1].n};
  int64_t n[2] = {1, 1};
  for (uint32_t w = 0; w < 2; w++) {
    const tarn_layout *l = &g->l[w ? 2 : 0];
    for (uint32_t d = l->n; d-- > from[w];) {
      if (l->block && d == l->baxis) return 0;
      if (l->dim[d] != 1 && l->stride[d] != n[w]) return 0;
      n[w] *= l->dim[d];
    }
  }
  return n[0];
}

static void element(gather *g, int64_t run) {
  low_module *M = g->s->M;
  LLVMValueRef idx[TARN_MAX_DIMS];
  uint32_t ni = g->l[1].n, n = g->l[0].n;
  for (uint32_t d = 0; d < n; d++)
    idx[d] = d < g->axis ? g->at[d] : d == g->axis ? picked(g) : g->at[d + ni - 1];
  LLVMValueRef from = address(g, 0, idx, g->data_type), to = address(g, 2, g->at, g->data_type);
  int64_t bytes = (run ? run : 1) * (int64_t)tarn_dtype_size(g->data_type);
  LLVMBuildMemCpy(M->b, to, 1, from, 1, low_i64(M, bytes));
}

static void loops(gather *g, uint32_t d, uint32_t n, int64_t run) {
  low_module *M = g->s->M;
  const tarn_layout *out = &g->l[2];
  for (uint32_t k = n; d == n && k < out->n; k++) g->at[k] = low_i64(M, 0);
  if (d == n) {
    element(g, run);
    return;
  }
  if (out->dim[d] == 0) return;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(M->b), body = low_step_block(g->s),
                    after = low_step_block(g->s);
  LLVMBuildBr(M->b, body);
  LLVMPositionBuilderAtEnd(M->b, body);
  LLVMValueRef i = g->at[d] = LLVMBuildPhi(M->b, M->i64, "");
  loops(g, d + 1, n, run);
  LLVMValueRef next = LLVMBuildNUWAdd(M->b, i, low_i64(M, 1), "");
  LLVMAddIncoming(i, (LLVMValueRef[]){low_i64(M, 0), next},
                  (LLVMBasicBlockRef[]){before, LLVMGetInsertBlock(M->b)}, 2);
  LLVMBuildCondBr(M->b, LLVMBuildICmp(M->b, LLVMIntULT, next, low_i64(M, out->dim[d]), ""), body,
                  after);
  LLVMPositionBuilderAtEnd(M->b, after);
}

static void emit_gather(step *s, const tarn_node *n, LLVMValueRef pool, const LLVMValueRef *in,
                        const LLVMValueRef *out) {
  low_module *M = s->M;
  gather g = {.s = s, .base = {in[0], in[1], out[0]}};
  g.l[0] = low_step_layout(s, false, 0), g.l[1] = low_step_layout(s, false, 1),
  g.l[2] = low_step_layout(s, true, 0);
  g.data_type = low_step_dtype(s, false, 0), g.index_type = low_step_dtype(s, false, 1);
  g.axis = (uint32_t)tarn_payload_get(s->p->L, n->payload)->ints[0];
  if (g.l[2].n + 1 != g.l[0].n + g.l[1].n || g.axis >= g.l[0].n)
    tarn_raise(s->M->cx, TARN_INTERNAL, "lower: %s: a gather of other dims", s->k->name);
  int64_t extent = g.l[0].dim[g.axis], run = run_length(&g);
  if (!tarn_layout_elems(&g.l[2])) return;
  g.outside = LLVMBuildAlloca(M->b, M->i1, "");
  LLVMBuildStore(M->b, LLVMConstInt(M->i1, extent == 0, 0), g.outside);
  if (extent) loops(&g, 0, run ? g.axis + g.l[1].n : g.l[2].n, run);
  check(s, pool, LLVMBuildLoad2(M->b, M->i1, g.outside, ""), extent);
}

/* ---------------------------------------------------------------- reference kernels */
LLVMTypeRef low_tensor_type(const low_module *M) {
  LLVMTypeRef t[5] = {M->i32, M->i32, M->ptr, M->ptr, M->ptr};
  return LLVMStructTypeInContext(M->lc, t, 5, 0);
}
/* Numbers in memory; those of a family are of its size. */
static LLVMValueRef numbers(low_module *M, const int64_t *v, uint32_t n) {
  if (!M->sample) return low_i64_table(M, v, n);
  LLVMValueRef all = LLVMBuildArrayAlloca(M->b, M->i64, low_i64(M, n ? n : 1), "");
  for (uint32_t i = 0; i < n; i++) {
    LLVMValueRef at = low_i64(M, i);
    LLVMBuildStore(M->b, low_i64(M, v[i]), LLVMBuildGEP2(M->b, M->i64, all, &at, 1, ""));
  }
  return all;
}
void low_tensor_store(low_module *M, LLVMValueRef all, uint32_t i, tarn_dtype t, uint32_t n,
                      const int64_t *dim, LLVMValueRef data, const int64_t *stride) {
  LLVMTypeRef type = low_tensor_type(M);
  LLVMValueRef no = low_i64(M, i), at = LLVMBuildGEP2(M->b, type, all, &no, 1, "");
  LLVMValueRef v[5] = {LLVMConstInt(M->i32, t, 0), LLVMConstInt(M->i32, n, 0), numbers(M, dim, n),
                       data, stride ? numbers(M, stride, n) : LLVMConstNull(M->ptr)};
  for (uint32_t m = 0; m < 5; m++)
    LLVMBuildStore(M->b, v[m], LLVMBuildStructGEP2(M->b, type, at, m, ""));
}

static LLVMValueRef tensors(step *s, bool out, uint32_t n, const LLVMValueRef *data) {
  low_module *M = s->M;
  LLVMValueRef all = LLVMBuildArrayAlloca(M->b, low_tensor_type(M), low_i64(M, n ? n : 1), "");
  for (uint32_t i = 0; i < n; i++) {
    tarn_layout l = low_step_layout(s, out, i), flat = tarn_layout_row_major(l.n, l.dim);
    flat.offset = l.offset;
    if (!tarn_layout_equal(&l, &flat))
      tarn_raise(M->cx, TARN_INTERNAL,
                 "lower: %s: operand %u of a reference kernel is not row-major", s->k->name, i);
    tarn_dtype t = low_step_dtype(s, out, i);
    LLVMValueRef at = low_i64(M, l.offset * (int64_t)tarn_dtype_size(t));
    low_tensor_store(M, all, i, t, l.n, l.dim, LLVMBuildGEP2(M->b, M->i8, data[i], &at, 1, ""),
                     NULL);
  }
  return all;
}

static LLVMValueRef attributes(step *s, const tarn_payload *p) {
  low_module *M = s->M;
  LLVMTypeRef t[7] = {M->ptr, M->i64, M->f64, M->ptr, M->i32, M->ptr, M->ptr};
  LLVMTypeRef type = LLVMStructTypeInContext(M->lc, t, 7, 0);
  LLVMValueRef *row = TARN_ARRAY(M->cx, LLVMValueRef, p->nattr + 1), null = LLVMConstNull(M->ptr);
  for (uint32_t i = 0; i < p->nattr; i++) {
    const tarn_attr *a = &p->attr[i];
    LLVMValueRef *rs = TARN_ARRAY(M->cx, LLVMValueRef, a->n + 1);
    for (uint32_t k = 0; a->kind == TARN_A_REALS && k < a->n; k++)
      rs[k] = LLVMConstReal(M->f64, a->rs[k]);
    bool list = a->kind == TARN_A_INTS || a->kind == TARN_A_REALS;
    LLVMValueRef v[7] = {low_text(M, a->name),
                         low_i64(M, a->i),
                         LLVMConstReal(M->f64, a->r),
                         a->kind == TARN_A_STR ? low_text(M, a->s) : null,
                         LLVMConstInt(M->i32, list ? a->n : 0, 0),
                         a->kind == TARN_A_INTS ? low_i64_table(M, a->is, a->n) : null,
                         a->kind == TARN_A_REALS ? low_table(M, M->f64, rs, a->n) : null};
    row[i] = LLVMConstStructInContext(M->lc, v, 7, 0);
  }
  return low_table(M, type, row, p->nattr);
}

/* pool ? pool->opaque(name, attributes, in, out, pool->message) : TARN_REF_FAILED */
static LLVMValueRef emit_opaque(step *s, LLVMValueRef pool, const LLVMValueRef *in,
                                const LLVMValueRef *out) {
  low_module *M = s->M;
  const tarn_payload *p = tarn_payload_get(M->L, s->k->payload);
  LLVMBasicBlockRef yes = low_step_block(s), no = low_step_block(s);
  M->pooled = true;
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, pool, ""), no, yes);
  LLVMPositionBuilderAtEnd(M->b, no);
  LLVMBuildRet(M->b, LLVMConstInt(M->i32, TARN_REF_FAILED, 0));
  LLVMPositionBuilderAtEnd(M->b, yes);
  LLVMTypeRef t[8] = {M->ptr, M->ptr, M->i32, M->ptr, M->i32, M->ptr, M->i32, M->ptr};
  LLVMValueRef f = low_pool_member(s, pool, 1), message = low_pool_member(s, pool, 2);
  LLVMValueRef a[8] = {low_text(M, p->name),
                       attributes(s, p),
                       LLVMConstInt(M->i32, p->nattr, 0),
                       tensors(s, false, s->k->nin, in),
                       LLVMConstInt(M->i32, s->k->nin, 0),
                       tensors(s, true, s->k->nout, out),
                       LLVMConstInt(M->i32, s->k->nout, 0),
                       message};
  return LLVMBuildCall2(M->b, LLVMFunctionType(M->i32, t, 8, 0), f, a, 8, "");
}

/* ---------------------------------------------------------------- accelerators, GPUs */
/* A GPU's pool holds one model's program. */
static void check_program(const step *s, LLVMValueRef pool) {
  low_module *M = s->M;
  LLVMBasicBlockRef other = low_step_block(s), ours = low_step_block(s);
  LLVMValueRef same = LLVMBuildICmp(M->b, LLVMIntEQ, low_pool_member(s, pool, 6), M->gpu, "");
  LLVMBuildCondBr(M->b, same, ours, other);
  LLVMPositionBuilderAtEnd(M->b, other);
  low_step_fail(s, pool, TARN_REF_FAILED, "the pool was made for another model");
  LLVMPositionBuilderAtEnd(M->b, ours);
}
/* pool && pool->device ? pool->device(user, segment, in, out, workspace, message) : failed */
LLVMValueRef low_device(low_module *M, LLVMValueRef fn, const tarn_kprog *p, const tarn_kernel *k) {
  step s = {M, fn, p, k};
  LLVMValueRef pool = LLVMGetParam(fn, 3);
  LLVMValueRef failed = LLVMConstInt(M->i32, TARN_REF_FAILED, 0);
  if (k->payload == TARN_NONE) return LLVMConstInt(M->i32, 0, 0);
  LLVMBasicBlockRef has_pool = low_step_block(&s), ask = low_step_block(&s),
                    no = low_step_block(&s);
  M->pooled = true;
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, pool, ""), no, has_pool);
  LLVMPositionBuilderAtEnd(M->b, has_pool);
  LLVMValueRef f = low_pool_member(&s, pool, 4), user = low_pool_member(&s, pool, 5);
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, f, ""), no, ask);
  LLVMPositionBuilderAtEnd(M->b, no);
  LLVMBuildRet(M->b, failed);
  LLVMPositionBuilderAtEnd(M->b, ask);
  if (M->gpu) check_program(&s, pool);
  LLVMTypeRef t[6] = {M->ptr, M->i32, M->ptr, M->ptr, M->ptr, M->ptr};
  LLVMValueRef a[6] = {user,
                       LLVMConstInt(M->i32, k->payload, 0),
                       LLVMGetParam(fn, 0),
                       LLVMGetParam(fn, 1),
                       LLVMGetParam(fn, 2),
                       low_pool_member(&s, pool, 2)};
  return LLVMBuildCall2(M->b, LLVMFunctionType(M->i32, t, 6, 0), f, a, 6, "");
}

LLVMValueRef low_other(low_module *M, LLVMValueRef fn, const tarn_kprog *p, const tarn_kernel *k,
                       LLVMValueRef pool, const LLVMValueRef *in, const LLVMValueRef *out) {
  step s = {M, fn, p, k};
  const tarn_node *n = k->term < tarn_term_count(M->L) ? tarn_term_get(M->L, k->term) : NULL;
  if (n && n->op == TARN_OP_GATHER) {
    emit_gather(&s, n, pool, in, out);
    return NULL;
  }
  if (n && n->op == TARN_OP_CALL) return low_written(&s, pool, in, out);
  if (tarn_payload_get(M->L, k->payload)->kind != TARN_P_OPAQUE)
    tarn_raise(M->cx, TARN_INTERNAL, "lower: %s: a kernel of unknown kind", k->name);
  return emit_opaque(&s, pool, in, out);
}
