/* The module around the kernels: one step a kernel, the run, the tables that describe the model
 * (runtime/rt.h). */
#include "base/progress.h"
#include "lower/program.h"
#include "lower/calls.h"
#include "lower/family.h"
#include "runtime/rt.h"
#include <ctype.h>
#include <string.h>

uint32_t low_port(const uint32_t *list, uint32_t n, uint32_t buf) {
  for (uint32_t i = 0; i < n; i++)
    if (list[i] == buf) return i;
  return TARN_NONE;
}
const char *low_symbol(const low_module *M, const char *what) {
  return tarn_format(M->cx, "%s_%s", M->o->name, what);
}
static const char *prefix_of(const low_module *M) {
  return M->sample ? M->sample->prefix : M->o->name;
}
/* One of several programs is reached by a table, and leaves the name to the module's own. */
static const char *symbol_of(const low_job *g, const char *what) {
  return g->inner ? tarn_format(g->M->cx, "%s.%s", prefix_of(g->M), what) : low_symbol(g->M, what);
}
static void keep_inside(const low_job *g, LLVMValueRef v) {
  if (g->inner) LLVMSetLinkage(v, LLVMInternalLinkage);
}

/* ---------------------------------------------------------------- pointers of buffers */

static LLVMValueRef from_list(low_module *M, LLVMValueRef list, uint32_t i) {
  LLVMValueRef at = low_i64(M, i);
  return LLVMBuildLoad2(M->b, M->ptr, LLVMBuildInBoundsGEP2(M->b, M->ptr, list, &at, 1, ""), "");
}
static LLVMValueRef advance(low_module *M, LLVMValueRef p, int64_t bytes) {
  LLVMValueRef at = low_i64(M, bytes);
  return bytes ? LLVMBuildGEP2(M->b, M->i8, p, &at, 1, "") : p;
}

/* Constants that do not lie near are reached by an address in memory. */
static LLVMValueRef constants(const low_job *g) {
  low_module *M = g->M;
  return g->at ? LLVMBuildLoad2(M->b, M->ptr, g->at, "") : g->consts;
}

/* Where the storage of a buffer begins, in a step function f. */
static LLVMValueRef storage(const low_job *g, LLVMValueRef f, uint32_t buf) {
  low_module *M = g->M;
  uint32_t root = tarn_kprog_root(g->p, buf), port;
  const tarn_buffer *b = &g->p->buf[root];
  if (b->kind == TARN_BUF_INPUT && (port = low_port(g->p->in, g->p->nin, root)) != TARN_NONE)
    return from_list(M, LLVMGetParam(f, 0), port);
  if (b->kind == TARN_BUF_OUTPUT && (port = low_port(g->p->out, g->p->nout, root)) != TARN_NONE)
    return from_list(M, LLVMGetParam(f, 1), port);
  if (b->kind == TARN_BUF_CONST && g->plan->const_offset[root] >= 0)
    return advance(M, constants(g), g->plan->const_offset[root]);
  if (b->kind == TARN_BUF_TEMP && g->plan->offset[root] >= 0)
    return advance(M, LLVMGetParam(f, 2), g->plan->offset[root]);
  tarn_raise(M->cx, TARN_INTERNAL, "lower: buffer %u has no place", buf);
}

/* ---------------------------------------------------------------- steps */
/* A name of a kernel as part of a symbol. */
const char *low_as_symbol(const low_module *M, const char *name) {
  char *s = tarn_strdup(M->cx, name);
  for (char *p = s; *p; p++)
    if (!isalnum((unsigned char)*p)) *p = '_';
  return s;
}
static LLVMValueRef begin_step(low_job *g, const char *name) {
  low_module *M = g->M;
  const char *symbol = tarn_format(M->cx, "%s.%s", prefix_of(M), low_as_symbol(M, name));
  LLVMValueRef f = LLVMAddFunction(M->m, symbol, g->step_type);
  LLVMSetLinkage(f, LLVMInternalLinkage);
  low_size_name(M, f);
  LLVMPositionBuilderAtEnd(M->b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
  g->step[g->nstep] = f, g->step_name[g->nstep++] = name;
  return f;
}

static const low_kernel *function_of(low_job *g, const tarn_kernel *k) {
  low_module *M = g->M;
  LLVMBasicBlockRef here = LLVMGetInsertBlock(M->b);
  const low_kernel *fn =
      M->sample ? low_sample_kernel(M, (uint32_t)(k - g->p->ker), k) : low_kernel_nest(M, k);
  LLVMPositionBuilderAtEnd(M->b, here);
  return fn;
}
/* Operands of a nest: the layouts that the kernel walks, or the buffers' own. */
static void nest_step(low_job *g, const tarn_kernel *k, LLVMValueRef f) {
  low_module *M = g->M;
  tarn_plan_operand in[TARN_MAX_OPERANDS], out[8];
  LLVMValueRef a[TARN_MAX_OPERANDS + 12];
  uint32_t n = 0;
  if (k->nin > TARN_MAX_OPERANDS || k->nout > 8)
    tarn_raise(M->cx, TARN_INTERNAL, "lower: %s: too many operands", k->name);
  tarn_plan_operands(g->p, k, in, out);
  const low_kernel *fn = function_of(g, k);
  a[n++] = advance(M, LLVMGetParam(f, 2), g->plan->bytes);
  a[n++] = LLVMGetParam(f, 3);
  for (uint32_t i = 0; i < k->nin + k->nout; i++) {
    bool is_in = i < k->nin;
    uint32_t buf = is_in ? k->in[i] : k->out[i - k->nin];
    const tarn_layout *l = is_in ? &in[i].layout : &out[i - k->nin].layout;
    a[n++] =
        advance(M, storage(g, f, buf), l->offset * (int64_t)tarn_dtype_size(g->p->buf[buf].dtype));
  }
  LLVMValueRef outside = NULL;
  if (low_kernel_operands(M, k) > k->nin + k->nout) {
    outside = a[n++] = LLVMBuildAlloca(M->b, M->i8, "");
    LLVMBuildStore(M->b, LLVMConstInt(M->i8, 0, 0), outside);
  }
  if (n < LLVMCountParams(fn->fn)) n = low_size_arg(M, f, a, n);
  LLVMBuildCall2(M->b, fn->type, fn->fn, a, n, "");
  if (outside) low_check_lookups(M, f, g->p, k, outside);
  LLVMBuildRet(M->b, LLVMConstInt(M->i32, 0, 0));
}

static void other_step(low_job *g, const tarn_kernel *k, LLVMValueRef f) {
  low_module *M = g->M;
  LLVMValueRef *in = TARN_ARRAY(M->cx, LLVMValueRef, k->nin + 1),
               *out = TARN_ARRAY(M->cx, LLVMValueRef, k->nout + 1);
  for (uint32_t i = 0; i < k->nin; i++) in[i] = storage(g, f, k->in[i]);
  for (uint32_t i = 0; i < k->nout; i++) out[i] = storage(g, f, k->out[i]);
  LLVMValueRef st = low_other(M, f, g->p, k, LLVMGetParam(f, 3), in, out);
  LLVMBuildRet(M->b, st ? st : LLVMConstInt(M->i32, 0, 0));
}

/* Outputs of the model that are no buffer of their own: an input or constant handed through, one
 * value under two names. */
static void copy_step(low_job *g) {
  low_module *M = g->M;
  LLVMValueRef f = NULL;
  for (uint32_t i = 0; i < g->p->nout; i++) {
    uint32_t b = g->p->out[i];
    if (g->p->buf[b].kind == TARN_BUF_OUTPUT && low_port(g->p->out, g->p->nout, b) == i) continue;
    if (!f) f = begin_step(g, "copy_outputs");
    LLVMBuildMemCpy(M->b, from_list(M, LLVMGetParam(f, 1), i), 1, storage(g, f, b), 1,
                    low_i64(M, tarn_buffer_bytes(&g->p->buf[b])));
  }
  if (f) LLVMBuildRet(M->b, LLVMConstInt(M->i32, 0, 0));
}

/* The program may have set no address. */
static void check_weights(const low_job *g, LLVMValueRef f) {
  low_module *M = g->M;
  LLVMBasicBlockRef missing = LLVMAppendBasicBlockInContext(M->lc, f, "missing"),
                    there = LLVMAppendBasicBlockInContext(M->lc, f, "there");
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, constants(g), ""), missing, there);
  LLVMPositionBuilderAtEnd(M->b, missing);
  low_step_fail(&(low_step){.M = M, .fn = f, .p = g->p}, LLVMGetParam(f, 3), TARN_REF_FAILED,
                tarn_format(M->cx, "%s is not set", low_symbol(M, "constants")));
  LLVMPositionBuilderAtEnd(M->b, there);
}
static void emit_run(low_job *g) {
  low_module *M = g->M;
  LLVMValueRef f = LLVMAddFunction(M->m, symbol_of(g, "run"), g->step_type), a[5];
  g->run = f;
  keep_inside(g, f);
  low_size_name(M, f);
  LLVMBasicBlockRef bad = NULL;
  LLVMValueRef code = NULL;
  LLVMPositionBuilderAtEnd(M->b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
  for (unsigned i = 0; i < 4; i++) a[i] = LLVMGetParam(f, i);
  uint32_t n = low_size_arg(M, f, a, 4);
  if (M->place == LOW_APART) check_weights(g, f);
  for (uint32_t k = 0; k < g->nstep; k++) {
    LLVMValueRef st = LLVMBuildCall2(M->b, g->step_type, g->step[k], a, n, "");
    const tarn_kernel *ker = k < g->p->nker ? &g->p->ker[k] : NULL;
    if (ker && ker->kind == TARN_K_NEST && low_kernel_operands(M, ker) == ker->nin + ker->nout)
      continue;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(M->b),
                      next = LLVMAppendBasicBlockInContext(M->lc, f, "");
    if (!bad) {
      bad = LLVMAppendBasicBlockInContext(M->lc, f, "failed");
      LLVMPositionBuilderAtEnd(M->b, bad);
      code = LLVMBuildPhi(M->b, M->i32, "");
      LLVMBuildRet(M->b, code);
      LLVMPositionBuilderAtEnd(M->b, here);
    }
    LLVMAddIncoming(code, &st, &here, 1);
    LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, st, ""), next, bad);
    LLVMPositionBuilderAtEnd(M->b, next);
  }
  LLVMBuildRet(M->b, LLVMConstInt(M->i32, 0, 0));
}

/* ---------------------------------------------------------------- tables */
LLVMValueRef low_table(low_module *M, LLVMTypeRef elem, LLVMValueRef *v, uint32_t n) {
  LLVMValueRef g = LLVMAddGlobal(M->m, LLVMArrayType2(elem, n), "");
  LLVMSetInitializer(g, LLVMConstArray2(elem, v, n));
  LLVMSetLinkage(g, LLVMPrivateLinkage), LLVMSetGlobalConstant(g, true);
  return g;
}
LLVMValueRef low_text(low_module *M, const char *s) {
  LLVMValueRef c = LLVMConstStringInContext2(M->lc, s, strlen(s), false);
  LLVMValueRef g = LLVMAddGlobal(M->m, LLVMTypeOf(c), "");
  LLVMSetInitializer(g, c);
  LLVMSetLinkage(g, LLVMPrivateLinkage), LLVMSetGlobalConstant(g, true),
      LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
  return g;
}
LLVMValueRef low_i64_table(low_module *M, const int64_t *v, uint32_t n) {
  LLVMValueRef *c = TARN_ARRAY(M->cx, LLVMValueRef, n + 1);
  for (uint32_t i = 0; i < n; i++) c[i] = low_i64(M, v[i]);
  return low_table(M, M->i64, c, n);
}

/* Of a family, those of its largest sizes. */
static LLVMValueRef port_table(low_job *g, bool out) {
  low_module *M = g->M;
  const tarn_kprog *p = g->p;
  const uint32_t *list = out ? p->out : p->in;
  uint32_t n = out ? p->nout : p->nin;
  LLVMTypeRef t[] = {M->ptr, M->i32, M->i32, M->ptr, M->i64, M->i32, M->i32, M->i64},
              port = LLVMStructTypeInContext(M->lc, t, 8, 0);
  LLVMValueRef *row = TARN_ARRAY(M->cx, LLVMValueRef, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_buffer *b = &p->buf[list[i]];
    tarn_in_place x;
    bool pair = tarn_kprog_in_place(p, out, i, &x);
    if (!pair) x = (tarn_in_place){0};
    int64_t bytes = tarn_buffer_bytes(pair ? &p->buf[p->out[x.out]] : b);
    LLVMValueRef c[] = {low_text(M, b->name ? b->name : ""),
                        LLVMConstInt(M->i32, b->dtype, 0),
                        LLVMConstInt(M->i32, b->layout.n, 0),
                        low_i64_table(M, b->layout.dim, b->layout.n),
                        low_i64(M, bytes),
                        LLVMConstInt(M->i32, pair ? 1 + (out ? x.in : x.out) : 0, 0),
                        LLVMConstInt(M->i32, x.axis, 0),
                        low_i64(M, x.rows)};
    row[i] = LLVMConstStructInContext(M->lc, c, 8, 0);
  }
  return low_table(M, port, row, n);
}

static void emit_model(low_job *g) {
  low_module *M = g->M;
  LLVMValueRef *name = TARN_ARRAY(M->cx, LLVMValueRef, g->nstep + 1);
  LLVMValueRef none = LLVMConstNull(M->ptr);
  for (uint32_t k = 0; k < g->nstep; k++) name[k] = low_text(M, g->step_name[k]);
  LLVMValueRef c[] = {LLVMConstInt(M->i32, TARN_RT_VERSION, 0),
                      LLVMConstInt(M->i32, g->p->nin, 0),
                      LLVMConstInt(M->i32, g->p->nout, 0),
                      LLVMConstInt(M->i32, g->nstep, 0),
                      low_i64(M, g->plan->bytes),
                      low_i64(M, (int64_t)M->per_thread),
                      port_table(g, false),
                      port_table(g, true),
                      low_table(M, M->ptr, name, g->nstep),
                      g->family ? none : low_table(M, M->ptr, g->step, g->nstep),
                      g->family ? none : g->run,
                      g->consts ? g->consts : none,
                      low_i64(M, g->plan->const_bytes),
                      M->gpu ? M->gpu : none,
                      g->consts ? none : g->at};
  LLVMValueRef model = LLVMConstStructInContext(M->lc, c, sizeof c / sizeof *c, 0);
  LLVMValueRef v = LLVMAddGlobal(M->m, LLVMTypeOf(model), symbol_of(g, "model"));
  g->model = v;
  LLVMSetInitializer(v, model), LLVMSetGlobalConstant(v, true);
  keep_inside(g, v);
  if (g->inner) return;
  LLVMSetLinkage(LLVMAddAlias2(M->m, LLVMTypeOf(model), 0, v, "tarn_model"), LLVMWeakAnyLinkage);
}

/* size_t NAME_workspace(unsigned threads) */
static void emit_workspace(low_job *g) {
  low_module *M = g->M;
  LLVMValueRef f =
      LLVMAddFunction(M->m, low_symbol(M, "workspace"), LLVMFunctionType(M->size, &M->i32, 1, 0));
  LLVMPositionBuilderAtEnd(M->b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
  LLVMBuildRet(M->b, low_workspace(M, LLVMGetParam(f, 0), g->plan->bytes));
}
LLVMValueRef low_workspace(const low_module *M, LLVMValueRef threads, int64_t bytes) {
  LLVMValueRef n = LLVMBuildZExtOrBitCast(M->b, threads, M->size, "");
  n = LLVMBuildMul(M->b, n, LLVMConstInt(M->size, M->per_thread, 0), "");
  LLVMValueRef more = LLVMConstInt(M->size, (unsigned long long)bytes, 0);
  return LLVMBuildAdd(M->b, n, more, "");
}

static void kernel_step(low_job *g, const tarn_kernel *k) {
  low_module *M = g->M;
  LLVMValueRef f = begin_step(g, k->name);
  if (k->kind == TARN_K_NEST) nest_step(g, k, f);
  else if (k->kind == TARN_K_DEVICE) LLVMBuildRet(M->b, low_device(M, f, g->p, k));
  else other_step(g, k, f);
}
static void declare_constants(low_job *g) {
  g->consts = low_blob(g->M);
  g->at = low_blob_address(g->M);
}
void low_steps(low_job *g) {
  low_module *M = g->M;
  LLVMTypeRef t[5] = {M->ptr, M->ptr, M->ptr, M->ptr};
  g->step_type = LLVMFunctionType(M->i32, t, low_size_type(M, t, 4), 0);
  declare_constants(g);
  g->step = TARN_ARRAY(M->cx, LLVMValueRef, g->p->nker + 1);
  g->step_name = TARN_ARRAY(M->cx, const char *, g->p->nker + 1);
  for (uint32_t k = 0; k < g->p->nker; k++) {
    tarn_progress(M->cx, "generating code", k, g->p->nker, "kernels");
    kernel_step(g, &g->p->ker[k]);
  }
  copy_step(g);
  emit_run(g);
}

/* Who calls the programs does so in one way. */
static void same_pairs(const low_module *M, const tarn_kprog *p, const tarn_kprog *q) {
  for (uint32_t i = 0; i < p->nin; i++) {
    tarn_in_place a, b;
    bool of_p = tarn_kprog_in_place(p, false, i, &a), of_q = tarn_kprog_in_place(q, false, i, &b);
    if (of_p == of_q && (!of_p || (a.out == b.out && a.axis == b.axis && a.rows == b.rows)))
      continue;
    tarn_raise(M->cx, TARN_BAD_INPUT,
               "input %s lies in an output, or with so many rows, at some of the sizes alone",
               p->buf[p->in[i]].name);
  }
}
/* Tables behind the kernels of all programs: how much scratch a thread needs is known then. */
void low_program(low_module *M, const tarn_lower_sizes *s) {
  low_job *g = TARN_ARRAY(M->cx, low_job, s->nprogram);
  low_ready *ready = TARN_ARRAY(M->cx, low_ready, s->nprogram);
  declare_constants(&(low_job){.M = M});
  if (M->device) M->gpu = low_gpu_table(M, M->device->gpu);
  for (uint32_t i = 0; i < s->nprogram; i++) {
    const tarn_lower_program *x = &s->program[i];
    g[i] = (low_job){.M = M, .p = x->p, .plan = x->plan, .family = x->family, .inner = s->n > 0};
    declare_constants(&g[i]);
    if (x->family) low_family(&g[i], i);
    else low_steps(&g[i]);
  }
  for (uint32_t i = 0; i < s->nprogram; i++) {
    const tarn_lower_family *f = s->program[i].family;
    same_pairs(M, s->program[0].p, s->program[i].p);
    for (uint32_t k = 0; f && k < f->at.n; k++) same_pairs(M, s->program[0].p, f->sample[k]);
  }
  for (uint32_t i = 0; i < s->nprogram; i++) {
    emit_model(&g[i]);
    ready[i] = (low_ready){g[i].run, g[i].model, low_family_table(&g[i])};
  }
  if (s->n) low_sizes(M, s, ready);
  else emit_workspace(&g[0]);
}
