/* Sums of the rows of a table that indices in memory name (gatherSum): one loop over the results,
 * in it one over a row, as many lanes as divide it, and one over what is summed, whose accumulators
 * stay in registers. */
#include "lower/calls.h"
#include "runtime/ref.h"
#include <string.h>

#define VECTORS 4 /* of accumulators side by side */

typedef struct rows {
  low_step *s;
  LLVMValueRef table, index, out, outside; /* outside: i1 in memory */
  tarn_layout lt, li, lo;
  tarn_dtype type, index_type;
  uint32_t kept, summed, row; /* dims */
  uint32_t lanes;
  int64_t ahead; /* rows that are prefetched before they are read; 0: none */
  LLVMValueRef acc, at[2 * TARN_MAX_DIMS]; /* kept, summed, row */
} rows;

/* The dims of a layout from d on are one run of memory. */
static bool is_run(const tarn_layout *l, uint32_t from) {
  int64_t n = 1;
  for (uint32_t d = l->n; d-- > from;) {
    if (l->block && d == l->baxis) return false;
    if (l->dim[d] != 1 && l->stride[d] != n) return false;
    n *= l->dim[d];
  }
  return true;
}

/* Elements of a row, as one dim where they are a run in both. */
static int64_t run_of(const rows *r) {
  int64_t n = 1;
  if (!is_run(&r->lt, 1) || !is_run(&r->lo, r->kept)) return 0;
  for (uint32_t d = 1; d < r->lt.n; d++) n *= r->lt.dim[d];
  return n;
}

static uint32_t lanes_of(const rows *r, int64_t run) {
  uint32_t n = VECTORS * r->s->M->regs.bits / (8 * (uint32_t)tarn_dtype_size(r->type));
  n = n ? n : 1;
  while (n & (n - 1)) n &= n - 1;
  while (run % n) n /= 2;
  return n;
}

/* for (at = 0; at < n; at += step) body */
typedef void body_fn(rows *r, uint32_t d);
static void loop(rows *r, uint32_t d, int64_t n, int64_t step, body_fn *body, uint32_t next) {
  low_module *M = r->s->M;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(M->b), in = low_step_block(r->s);
  LLVMBasicBlockRef after = low_step_block(r->s);
  if (n == 0) {
    LLVMDeleteBasicBlock(in);
    LLVMDeleteBasicBlock(after);
    return;
  }
  LLVMBuildBr(M->b, in);
  LLVMPositionBuilderAtEnd(M->b, in);
  LLVMValueRef i = r->at[d] = LLVMBuildPhi(M->b, M->i64, "");
  body(r, next);
  LLVMValueRef then = LLVMBuildNUWAdd(M->b, i, low_i64(M, step), "");
  LLVMAddIncoming(i, (LLVMValueRef[]){low_i64(M, 0), then},
                  (LLVMBasicBlockRef[]){before, LLVMGetInsertBlock(M->b)}, 2);
  LLVMBuildCondBr(M->b, LLVMBuildICmp(M->b, LLVMIntULT, then, low_i64(M, n), ""), in, after);
  LLVMPositionBuilderAtEnd(M->b, after);
}

/* As a row lies in memory; accumulators of 16-bit floats are wider. */
static LLVMTypeRef vector(const rows *r, bool memory) {
  LLVMTypeRef t = memory ? low_memory_type(r->s->M, r->type) : low_compute_type(r->s->M, r->type);
  return r->lanes > 1 ? LLVMVectorType(t, r->lanes) : t;
}

/* The place of the current index among all, which are one run. */
static LLVMValueRef place_of(const rows *r) {
  low_module *M = r->s->M;
  LLVMValueRef at = low_i64(M, 0);
  for (uint32_t d = 0; d < r->kept + r->summed; d++)
    at = LLVMBuildAdd(M->b, LLVMBuildMul(M->b, at, low_i64(M, r->li.dim[d]), ""), r->at[d], "");
  return at;
}
/* The lines of a later row that this trip of the loop over a row will read: any index may be there,
 * as nothing is read. The last ones ask for the last row again. */
static void prefetch_row(rows *r) {
  low_module *M = r->s->M;
  int64_t last = tarn_layout_elems(&r->li) - 1, size = (int64_t)tarn_dtype_size(r->type),
          bytes = size * r->lanes, line = M->regs.line > 0 ? M->regs.line : bytes;
  LLVMTypeRef type = low_memory_type(M, r->index_type);
  LLVMValueRef at = LLVMBuildAdd(M->b, place_of(r), low_i64(M, r->ahead), "");
  at = LLVMBuildSelect(M->b, LLVMBuildICmp(M->b, LLVMIntULT, at, low_i64(M, last), ""), at,
                       low_i64(M, last), "");
  at = LLVMBuildAdd(M->b, at, low_i64(M, r->li.offset), "");
  LLVMValueRef i = LLVMBuildLoad2(M->b, type, LLVMBuildGEP2(M->b, type, r->index, &at, 1, ""), "");
  LLVMSetAlignment(i, (unsigned)tarn_dtype_size(r->index_type));
  LLVMValueRef idx[] = {LLVMBuildIntCast2(M->b, i, M->i64, tarn_dtype_is_signed(r->index_type), ""),
                        r->at[r->kept + r->summed]};
  LLVMValueRef p = low_step_address(r->s, r->table, &r->lt, r->type, idx);
  for (int64_t by = 0; by < bytes; by += line) low_prefetch(M, p, low_i64(M, by), false, 3);
}
static void add_row(rows *r) {
  low_module *M = r->s->M;
  LLVMValueRef idx[TARN_MAX_DIMS];
  if (r->ahead) prefetch_row(r);
  LLVMValueRef p = low_step_address(r->s, r->index, &r->li, r->index_type, r->at);
  LLVMValueRef i = LLVMBuildLoad2(M->b, low_memory_type(M, r->index_type), p, "");
  LLVMSetAlignment(i, (unsigned)tarn_dtype_size(r->index_type));
  idx[0] = low_index_inside(M, i, r->index_type, r->lt.dim[0], r->outside);
  memcpy(idx + 1, r->at + r->kept + r->summed, r->row * sizeof *idx);
  LLVMValueRef x = LLVMBuildLoad2(M->b, vector(r, true),
                                  low_step_address(r->s, r->table, &r->lt, r->type, idx), "");
  LLVMSetAlignment(x, (unsigned)tarn_dtype_size(r->type));
  x = low_from_memory(M, r->type, x);
  LLVMValueRef was = LLVMBuildLoad2(M->b, vector(r, false), r->acc, "");
  bool real = tarn_dtype_is_float(r->type);
  LLVMBuildStore(M->b, real ? LLVMBuildFAdd(M->b, was, x, "") : LLVMBuildAdd(M->b, was, x, ""),
                 r->acc);
}

static void summed_dims(rows *r, uint32_t d) {
  if (d == r->summed) add_row(r);
  else loop(r, r->kept + d, r->li.dim[r->kept + d], 1, summed_dims, d + 1);
}

static void one_result(rows *r) {
  low_module *M = r->s->M;
  LLVMValueRef idx[2 * TARN_MAX_DIMS];
  LLVMBuildStore(M->b, LLVMConstNull(vector(r, false)), r->acc);
  summed_dims(r, 0);
  memcpy(idx, r->at, r->kept * sizeof *idx);
  memcpy(idx + r->kept, r->at + r->kept + r->summed, r->row * sizeof *idx);
  LLVMValueRef v = LLVMBuildLoad2(M->b, vector(r, false), r->acc, "");
  v = low_to_memory(M, r->type, v);
  LLVMValueRef s = LLVMBuildStore(M->b, v, low_step_address(r->s, r->out, &r->lo, r->type, idx));
  LLVMSetAlignment(s, (unsigned)tarn_dtype_size(r->type));
}

static void row_dims(rows *r, uint32_t d) {
  uint32_t at = r->kept + r->summed + d;
  if (d == r->row) one_result(r);
  else loop(r, at, r->lt.dim[1 + d], d + 1 == r->row ? r->lanes : 1, row_dims, d + 1);
}

static void kept_dims(rows *r, uint32_t d) {
  if (d == r->kept) row_dims(r, 0);
  else loop(r, d, r->li.dim[d], 1, kept_dims, d + 1);
}

/* A row that is a run is one dim. */
static void flatten(rows *r) {
  int64_t run = run_of(r);
  if (!run || !r->row) return;
  r->lanes = lanes_of(r, run);
  r->row = 1;
  r->lt.n = 2, r->lt.dim[1] = run, r->lt.stride[1] = 1;
  r->lo.n = (uint8_t)(r->kept + 1), r->lo.dim[r->kept] = run, r->lo.stride[r->kept] = 1;
}

static rows pair(low_step *s, const tarn_node *n, uint32_t i, const LLVMValueRef *in,
                 const LLVMValueRef *out) {
  low_module *M = s->M;
  rows r = {.s = s, .table = in[2 * i], .index = in[2 * i + 1], .out = out[i], .lanes = 1};
  r.lt = low_step_layout(s, false, 2 * i);
  r.li = low_step_layout(s, false, 2 * i + 1);
  r.lo = low_step_layout(s, true, i);
  r.type = low_step_dtype(s, false, 2 * i);
  r.index_type = low_step_dtype(s, false, 2 * i + 1);
  r.summed = (uint32_t)tarn_payload_get(s->p->L, n->payload)->ints[0];
  if (r.summed > r.li.n || !r.lt.n || r.lo.n != r.li.n - r.summed + r.lt.n - 1)
    tarn_raise(M->cx, TARN_INTERNAL, "lower: %s: sums of other dims", s->k->name);
  r.kept = r.li.n - r.summed;
  r.row = r.lt.n - 1u;
  flatten(&r);
  int64_t size = (int64_t)tarn_dtype_size(r.type);
  if (r.row == 1 && r.lt.stride[1] == 1 && is_run(&r.li, 0))
    r.ahead = tarn_rows_ahead(M->hw, tarn_layout_elems(&r.lt) * size, r.lanes * size);
  r.acc = LLVMBuildAlloca(M->b, vector(&r, false), "");
  return r;
}

void low_gather_sum(low_step *s, const tarn_node *n, LLVMValueRef pool, const LLVMValueRef *in,
                    const LLVMValueRef *out) {
  low_module *M = s->M;
  uint32_t pairs = s->k->nout;
  rows *r = TARN_ARRAY(M->cx, rows, pairs);
  LLVMValueRef outside = LLVMBuildAlloca(M->b, M->i1, "");
  for (uint32_t i = 0; i < pairs; i++) r[i] = pair(s, n, i, in, out);
  LLVMBuildStore(M->b, LLVMConstInt(M->i1, 0, 0), outside);
  for (uint32_t i = 0; i < pairs; i++) {
    r[i].outside = outside;
    if (!tarn_layout_elems(&r[i].lo)) continue;
    if (r[i].lt.dim[0] || !tarn_layout_elems(&r[i].li)) kept_dims(&r[i], 0);
    else LLVMBuildStore(M->b, LLVMConstInt(M->i1, 1, 0), outside);
  }
  low_step_check(s, pool, LLVMBuildLoad2(M->b, M->i1, outside, ""));
}
