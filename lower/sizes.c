/* Programs of several sizes in one module: NAME_run takes the sizes and chooses, NAME_workspace
 * says how much the one of these sizes needs, NAME_sizes has tables of them (runtime/rt.h).
 *
 * Where one size is a number of rows, programs for some numbers of rows compute all of them, part
 * by part: at each step the smallest program that takes all that is left, if there are so many rows
 * in all, else the largest that fits. Where it takes more than is left it begins earlier: rows are
 * computed twice then, to the same values. The program of one row is for one row alone: a model may
 * mean something else by a dim of 1.
 *
 * A family's program (family.c) is told which of its sizes it is. */
#include "lower/family.h"
#include "runtime/rt.h"

typedef struct chooser {
  low_module *M;
  const tarn_lower_sizes *s;
  const low_ready *ready;
  LLVMValueRef fn;
} chooser;

static LLVMBasicBlockRef block(const chooser *c, const char *name) {
  return LLVMAppendBasicBlockInContext(c->M->lc, c->fn, name);
}
static void go_to(const chooser *c, LLVMBasicBlockRef b) { LLVMPositionBuilderAtEnd(c->M->b, b); }

int64_t low_last_size(const tarn_lower_program *p, uint32_t k) {
  const tarn_lower_family *f = p->family;
  return p->size[k] + (f && f->open == k ? f->step * (f->count - 1) : 0);
}
static bool same_family(const tarn_lower_family *a, const tarn_lower_family *b) {
  if (!a || !b) return a == b;
  return a->open == b->open && a->step == b->step && a->count == b->count;
}
/* Programs first … first + n - 1 differ in the number of rows alone; without rows each by itself.
 */
static uint32_t group_of(const tarn_lower_sizes *s, uint32_t first) {
  uint32_t n = 1;
  for (; s->rows < s->n && first + n < s->nprogram; n++) {
    if (!same_family(s->program[first].family, s->program[first + n].family)) return n;
    for (uint32_t i = 0; i < s->n; i++)
      if (i != s->rows && s->program[first].size[i] != s->program[first + n].size[i]) return n;
  }
  return n;
}
static LLVMValueRef size_at(const chooser *c, uint32_t i) {
  low_module *M = c->M;
  LLVMValueRef at = low_i64(M, i);
  LLVMValueRef p = LLVMBuildInBoundsGEP2(M->b, M->i64, LLVMGetParam(c->fn, 0), &at, 1, "");
  return LLVMBuildLoad2(M->b, M->i64, p, "");
}
/* Is it one of lo, lo + step, … hi? */
static LLVMValueRef is_between(const chooser *c, LLVMValueRef v, int64_t lo, int64_t hi,
                               int64_t step) {
  low_module *M = c->M;
  LLVMValueRef is = LLVMBuildICmp(M->b, LLVMIntSGE, v, low_i64(M, lo), "");
  LLVMValueRef below = LLVMBuildICmp(M->b, LLVMIntSLE, v, low_i64(M, hi), "");
  is = LLVMBuildAnd(M->b, is, below, "");
  if (step == 1) return is;
  LLVMValueRef rest = LLVMBuildSub(M->b, v, low_i64(M, lo), "");
  rest = LLVMBuildURem(M->b, rest, low_i64(M, step), "");
  return LLVMBuildAnd(M->b, is, LLVMBuildIsNull(M->b, rest, ""), "");
}
/* Are the sizes those of the group that begins at this program? */
static LLVMValueRef is_group(const chooser *c, const LLVMValueRef *size, uint32_t first) {
  low_module *M = c->M;
  const tarn_lower_sizes *s = c->s;
  LLVMValueRef all = LLVMConstInt(M->i1, 1, 0);
  const tarn_lower_program *p = &s->program[first];
  for (uint32_t i = 0; i < s->n; i++) {
    LLVMValueRef is;
    if (i == s->rows) is = is_between(c, size[i], s->lo, s->hi, 1);
    else if (p->family && i == p->family->open)
      is = is_between(c, size[i], p->size[i], low_last_size(p, i), p->family->step);
    else is = LLVMBuildICmp(M->b, LLVMIntEQ, size[i], low_i64(M, p->size[i]), "");
    all = LLVMBuildAnd(M->b, all, is, "");
  }
  return all;
}

/* Runs program i on these, and the pool; its code. */
static LLVMValueRef call_program(const chooser *c, uint32_t i, LLVMValueRef in, LLVMValueRef out) {
  const tarn_lower_family *f = c->s->program[i].family;
  LLVMValueRef run = c->ready[i].run;
  LLVMValueRef a[5] = {in, out, LLVMGetParam(c->fn, 3), LLVMGetParam(c->fn, 4)};
  if (f) a[4] = size_at(c, f->open);
  return LLVMBuildCall2(c->M->b, LLVMGlobalGetValueType(run), run, a, f ? 5 : 4, "");
}

/* ---- rows ---- */
typedef struct parts {
  const chooser *c;
  uint32_t first, n; /* programs */
  LLVMValueRef rows, left;
  LLVMValueRef index, take; /* the program, and its rows */
} parts;
static int64_t rows_of(const parts *p, uint32_t i) {
  return p->c->s->program[p->first + i].size[p->c->s->rows];
}
static void choose_part(parts *p) {
  low_module *M = p->c->M;
  LLVMValueRef over = low_i64(M, p->n - 1), under = low_i64(M, 0);
  LLVMValueRef over_rows = low_i64(M, rows_of(p, p->n - 1)), under_rows = low_i64(M, rows_of(p, 0));
  for (uint32_t i = p->n - 1; i-- > 0;) {
    LLVMValueRef rows = low_i64(M, rows_of(p, i));
    LLVMValueRef is = LLVMBuildICmp(M->b, LLVMIntSGE, rows, p->left, "");
    if (rows_of(p, i) == 1)
      is = LLVMBuildAnd(M->b, is, LLVMBuildICmp(M->b, LLVMIntEQ, rows, p->rows, ""), "");
    over = LLVMBuildSelect(M->b, is, low_i64(M, i), over, "");
    over_rows = LLVMBuildSelect(M->b, is, rows, over_rows, "");
  }
  for (uint32_t i = 1; i < p->n; i++) {
    LLVMValueRef rows = low_i64(M, rows_of(p, i));
    LLVMValueRef is = LLVMBuildICmp(M->b, LLVMIntSLE, rows, p->left, "");
    under = LLVMBuildSelect(M->b, is, low_i64(M, i), under, "");
    under_rows = LLVMBuildSelect(M->b, is, rows, under_rows, "");
  }
  LLVMValueRef fits = LLVMBuildICmp(M->b, LLVMIntSLE, over_rows, p->rows, "");
  p->index = LLVMBuildSelect(M->b, fits, over, under, "");
  p->take = LLVMBuildSelect(M->b, fits, over_rows, under_rows, "");
}
/* Of buffer b; NULL: none. A family's rows grow with its size. */
static LLVMValueRef bytes_of_row(const parts *p, uint32_t b) {
  const chooser *c = p->c;
  const tarn_lower_program *x = &c->s->program[p->first];
  const tarn_lower_family *f = x->family;
  int64_t row = tarn_buffer_bytes(&x->p->buf[b]) / rows_of(p, 0);
  if (!f) return row ? low_i64(c->M, row) : NULL;
  int64_t *v = TARN_ARRAY(c->M->cx, int64_t, 2 * f->n), *size = v + f->n;
  low_growth g;
  for (uint32_t i = 0; i < f->n; i++) {
    v[i] = tarn_buffer_bytes(&f->sample[i]->buf[b]) / rows_of(p, 0);
    size[i] = f->from + f->step * f->at[i];
  }
  if (!low_growth_of(size, v, f->n, &g))
    tarn_raise(c->M->cx, TARN_INTERNAL, "lower: a row's bytes grow as no polynomial");
  return low_growth_emit(c->M->b, &g, size_at(c, f->open), c->M->i64);
}
/* Pointers to row `at` of what has rows. */
static void move_pointers(const parts *p, LLVMValueRef from, LLVMValueRef to, LLVMValueRef at,
                          const uint32_t *list, uint32_t n, const uint8_t *has) {
  low_module *M = p->c->M;
  for (uint32_t i = 0; i < n; i++) {
    LLVMValueRef slot = low_i64(M, i);
    LLVMValueRef x = LLVMBuildInBoundsGEP2(M->b, M->ptr, from, &slot, 1, "");
    x = LLVMBuildLoad2(M->b, M->ptr, x, "");
    LLVMValueRef row = has[i] ? bytes_of_row(p, list[i]) : NULL;
    LLVMValueRef bytes = row ? LLVMBuildMul(M->b, at, row, "") : NULL;
    if (row) x = LLVMBuildGEP2(M->b, M->i8, x, &bytes, 1, "");
    LLVMBuildStore(M->b, x, LLVMBuildInBoundsGEP2(M->b, M->ptr, to, &slot, 1, ""));
  }
}
/* Runs program p->index; its code. */
static LLVMValueRef call_part(const parts *p, LLVMValueRef in, LLVMValueRef out) {
  const chooser *c = p->c;
  low_module *M = c->M;
  LLVMBasicBlockRef from = LLVMGetInsertBlock(M->b), done = block(c, "computed");
  go_to(c, done);
  LLVMValueRef code = LLVMBuildPhi(M->b, M->i32, "");
  LLVMBasicBlockRef first = NULL;
  LLVMValueRef choice = NULL;
  for (uint32_t i = 0; i < p->n; i++) {
    LLVMBasicBlockRef b = block(c, "part");
    go_to(c, b);
    LLVMValueRef st = call_program(c, p->first + i, in, out);
    LLVMAddIncoming(code, &st, &b, 1);
    LLVMBuildBr(M->b, done);
    if (i) {
      LLVMAddCase(choice, low_i64(M, i), b);
      continue;
    }
    first = b;
    go_to(c, from);
    choice = LLVMBuildSwitch(M->b, p->index, first, p->n);
  }
  go_to(c, done);
  return code;
}
/* At the begin of a trip: `at` rows are done. Returns how many are after it; *code: of the part. */
static LLVMValueRef run_part(parts *p, LLVMValueRef at, LLVMValueRef in, LLVMValueRef out,
                             LLVMValueRef *code) {
  const chooser *c = p->c;
  low_module *M = c->M;
  const tarn_lower_program *k = &c->s->program[p->first];
  p->left = LLVMBuildSub(M->b, p->rows, at, "");
  choose_part(p);
  LLVMValueRef last = LLVMBuildSub(M->b, p->rows, p->take, "");
  LLVMValueRef early = LLVMBuildICmp(M->b, LLVMIntSLT, last, at, "");
  LLVMValueRef begin = LLVMBuildSelect(M->b, early, last, at, "");
  move_pointers(p, LLVMGetParam(c->fn, 1), in, begin, k->p->in, k->p->nin, c->s->in_rows);
  move_pointers(p, LLVMGetParam(c->fn, 2), out, begin, k->p->out, k->p->nout, c->s->out_rows);
  *code = call_part(p, in, out);
  return LLVMBuildAdd(M->b, begin, p->take, "");
}
static LLVMValueRef pointers(const chooser *c, uint32_t n) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(c->M->b);
  LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(c->fn);
  LLVMPositionBuilderBefore(c->M->b, LLVMGetFirstInstruction(entry));
  LLVMValueRef v = LLVMBuildArrayAlloca(c->M->b, c->M->ptr, low_i64(c->M, n ? n : 1), "");
  go_to(c, here);
  return v;
}
/* for (at = 0; at < rows;) … */
static void run_rows(parts *p) {
  const chooser *c = p->c;
  low_module *M = c->M;
  const tarn_kprog *k = c->s->program[p->first].p;
  LLVMValueRef in = pointers(c, k->nin), out = pointers(c, k->nout), code;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(M->b), head = block(c, "rows");
  LLVMBasicBlockRef body = block(c, "some"), ok = block(c, "ok"), failed = block(c, "failed");
  LLVMBuildBr(M->b, head);
  go_to(c, head);
  LLVMValueRef at = LLVMBuildPhi(M->b, M->i64, ""), zero = low_i64(M, 0);
  LLVMAddIncoming(at, &zero, &before, 1);
  LLVMBuildCondBr(M->b, LLVMBuildICmp(M->b, LLVMIntSLT, at, p->rows, ""), body, ok);
  go_to(c, body);
  LLVMValueRef next = run_part(p, at, in, out, &code);
  LLVMBasicBlockRef behind = LLVMGetInsertBlock(M->b);
  LLVMAddIncoming(at, &next, &behind, 1);
  LLVMBuildCondBr(M->b, LLVMBuildIsNull(M->b, code, ""), head, failed);
  go_to(c, failed);
  LLVMBuildRet(M->b, code);
  go_to(c, ok);
  LLVMBuildRet(M->b, LLVMConstInt(M->i32, TARN_REF_OK, 0));
}

/* ---- the functions ---- */
static void run_group(const chooser *c, const LLVMValueRef *size, uint32_t first, uint32_t n) {
  low_module *M = c->M;
  if (c->s->rows < c->s->n) {
    run_rows(&(parts){.c = c, .first = first, .n = n, .rows = size[c->s->rows]});
    return;
  }
  LLVMBuildRet(M->b, call_program(c, first, LLVMGetParam(c->fn, 1), LLVMGetParam(c->fn, 2)));
}
typedef void group_fn(const chooser *c, const LLVMValueRef *size, uint32_t first, uint32_t n);
/* One group after the other, until the sizes are its own; none: `otherwise` is returned. */
static void choose(chooser *c, group_fn *then, LLVMValueRef otherwise) {
  low_module *M = c->M;
  LLVMValueRef *size = TARN_ARRAY(M->cx, LLVMValueRef, c->s->n);
  go_to(c, block(c, ""));
  for (uint32_t i = 0; i < c->s->n; i++) size[i] = size_at(c, i);
  for (uint32_t first = 0, n; first < c->s->nprogram; first += n) {
    n = group_of(c->s, first);
    LLVMBasicBlockRef yes = block(c, "these"), no = block(c, "others");
    LLVMBuildCondBr(M->b, is_group(c, size, first), yes, no);
    go_to(c, yes);
    then(c, size, first, n);
    go_to(c, no);
  }
  LLVMBuildRet(M->b, otherwise);
}
/* int NAME_run(const int64_t *size, in, out, workspace, pool) */
static LLVMValueRef emit_run(chooser *c) {
  low_module *M = c->M;
  LLVMTypeRef t[5] = {M->ptr, M->ptr, M->ptr, M->ptr, M->ptr};
  c->fn = LLVMAddFunction(M->m, low_symbol(M, "run"), LLVMFunctionType(M->i32, t, 5, 0));
  choose(c, run_group, LLVMConstInt(M->i32, TARN_REF_SIZE, 0));
  return c->fn;
}
/* Of a group: what the program that needs most needs. */
static void bytes_of_group(const chooser *c, const LLVMValueRef *size, uint32_t first, uint32_t n) {
  low_module *M = c->M;
  int64_t most = 0;
  (void)size;
  for (uint32_t i = first; i < first + n; i++)
    if (c->s->program[i].plan->bytes > most) most = c->s->program[i].plan->bytes;
  LLVMBuildRet(M->b, low_workspace(M, LLVMGetParam(c->fn, 1), most));
}
/* size_t NAME_workspace(const int64_t *size, unsigned threads) */
static LLVMValueRef emit_workspace(chooser *c) {
  low_module *M = c->M;
  LLVMTypeRef t[2] = {M->ptr, M->i32};
  c->fn = LLVMAddFunction(M->m, low_symbol(M, "workspace"), LLVMFunctionType(M->size, t, 2, 0));
  choose(c, bytes_of_group, LLVMConstAllOnes(M->size));
  return c->fn;
}

/* ---- the tables ---- */
static LLVMValueRef program_table(const chooser *c) {
  low_module *M = c->M;
  LLVMTypeRef t[3] = {M->ptr, M->ptr, M->ptr}, row = LLVMStructTypeInContext(M->lc, t, 3, 0);
  LLVMValueRef *v = TARN_ARRAY(M->cx, LLVMValueRef, c->s->nprogram);
  for (uint32_t i = 0; i < c->s->nprogram; i++) {
    LLVMValueRef m[3] = {low_i64_table(M, c->s->program[i].size, c->s->n), c->ready[i].model,
                         c->ready[i].family};
    v[i] = LLVMConstStructInContext(M->lc, m, 3, 0);
  }
  return low_table(M, row, v, c->s->nprogram);
}
static LLVMValueRef name_table(const chooser *c) {
  LLVMValueRef *v = TARN_ARRAY(c->M->cx, LLVMValueRef, c->s->n);
  for (uint32_t i = 0; i < c->s->n; i++) v[i] = low_text(c->M, c->s->name[i]);
  return low_table(c->M, c->M->ptr, v, c->s->n);
}
static LLVMValueRef dim_table(const chooser *c, const uint8_t *dim, uint32_t n) {
  LLVMValueRef *v = TARN_ARRAY(c->M->cx, LLVMValueRef, n + 1);
  for (uint32_t i = 0; i < n; i++) v[i] = LLVMConstInt(c->M->i8, dim ? dim[i] : 0, 0);
  return low_table(c->M, c->M->i8, v, n);
}
void low_sizes(low_module *M, const tarn_lower_sizes *s, const low_ready *ready) {
  chooser c = {.M = M, .s = s, .ready = ready};
  const tarn_kprog *p = s->program[0].p;
  LLVMValueRef run = emit_run(&c), workspace = emit_workspace(&c);
  LLVMValueRef v[] = {LLVMConstInt(M->i32, TARN_RT_VERSION, 0),
                      LLVMConstInt(M->i32, s->n, 0),
                      LLVMConstInt(M->i32, s->nprogram, 0),
                      LLVMConstInt(M->i32, s->rows, 0),
                      low_i64(M, s->lo),
                      low_i64(M, s->hi),
                      name_table(&c),
                      program_table(&c),
                      run,
                      workspace,
                      dim_table(&c, s->in_rows, p->nin),
                      dim_table(&c, s->out_rows, p->nout)};
  LLVMValueRef all = LLVMConstStructInContext(M->lc, v, sizeof v / sizeof *v, 0);
  LLVMValueRef g = LLVMAddGlobal(M->m, LLVMTypeOf(all), low_symbol(M, "sizes"));
  LLVMSetInitializer(g, all);
  LLVMSetGlobalConstant(g, true);
  LLVMSetLinkage(LLVMAddAlias2(M->m, LLVMTypeOf(all), 0, g, "tarn_sizes"), LLVMWeakAnyLinkage);
}
