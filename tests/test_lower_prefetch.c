/* lower/prefetch.c: prefetches of results, prefetches from main memory, and non-temporal stores. */
#include "tests/lower_setup.h"

#include "base/base.h"
#include "price/internal.h"
#include "lower/lower.h"
#include "lower/nest.h"
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>

/* A host with three caches of so many bytes, and what a core reads a cycle and waits for from
 * memory. */
typedef struct caches {
  tarn_hw on;
  tarn_hw_memory mem[4];
} caches;
static const tarn_hw *with_caches(caches *c, uint64_t first, uint64_t second, uint64_t third,
                                  double read, double latency) {
  c->mem[0] = (tarn_hw_memory){
      .name = "l1", .capacity = first, .instances = 1, .line = 64, .read = 128, .latency = 5};
  c->mem[1] = (tarn_hw_memory){
      .name = "l2", .capacity = second, .instances = 1, .line = 64, .read = 32, .latency = 15};
  c->mem[2] = (tarn_hw_memory){
      .name = "l3", .capacity = third, .instances = 1, .line = 64, .read = 16, .latency = 60};
  c->mem[3] = (tarn_hw_memory){.name = "dram", .line = 64, .read = read, .latency = latency};
  c->on = *hw, c->on.nmem = 4, c->on.mem = c->mem;
  return &c->on;
}

/* Prefetches in the code: of lines to write, and all. */
#define TO_WRITE ", i32 1, i32 3, i32 1)"
#define ANY      "call void @llvm.prefetch"
/* Rows of a power by one stage, written squared by another. */
static void light_writer_case(kit_case *k, int64_t wide) {
  const int64_t dim[] = {9, wide};
  tarn_imap x = {.ns = 2, .n = 2, .nin = 2, .fill = TARN_NONE, .dim = {9, wide}, .in = {9, wide}},
            y = x;
  x.e[0] = tarn_ix_var(L, 0, dim), x.e[1] = tarn_ix_var(L, 1, dim), y.nin = 1, y.in[0] = wide,
  y.e[0] = tarn_ix_var(L, 1, dim);
  tarn_read read[2] = {{.map = tarn_map_intern(L, &x)},
                       {.stage = true, .map = tarn_map_intern(L, &y)}};
  tarn_func fn[2] = {{.nops = 1, .red = TARN_NONE, .epi = TARN_NONE},
                     {.nops = 1, .red = TARN_NONE, .epi = TARN_NONE}};
  fn[0].body = tarn_fx_hole(L, 0);
  for (int i = 0; i < 8; i++)
    fn[0].body = tarn_fx_op(L, TARN_FX_MUL, fn[0].body, tarn_fx_hole(L, 0), 0);
  fn[1].body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 0), 0);
  tarn_stage st[2] = {{.nown = 1, .own = {wide}, .read = read},
                      {.nown = 1, .own = {wide}, .read = read + 1, .out = true}};
  for (uint32_t i = 0; i < 2; i++) st[i].fn = tarn_fn_intern(L, &fn[i]);
  tarn_nest n = {.depth = 1, .shared = {9}, .out_ns = 1, .nstage = 2, .nchild = 1, .stage = st};
  *k = (kit_case){.nest = tarn_nest_intern(L, &n),
                  .nin = 1,
                  .nout = 1,
                  .in_type = {TARN_F32},
                  .out_type = {TARN_F32}};
  k->in[0] = k->out[0] = tarn_layout_row_major(2, dim),
  k->value[0] = kit_tensor(cx, TARN_F32, 2, dim, 1);
  k->sched = TARN_NEW(cx, tarn_schedule);
  *k->sched = (tarn_schedule){.nshared = 1, .shared = {{0, TARN_SERIAL, 1}}, .nstage = 2};
  k->sched->stage = TARN_ARRAY(cx, tarn_stage_sched, 2);
  for (uint32_t i = 0; i < 2; i++)
    k->sched->stage[i] = (tarn_stage_sched){
        .nlevel = 3,
        .acc = 3,
        .level = {{1, TARN_SERIAL, 32}, {1, TARN_UNROLL, 16}, {1, TARN_VECTOR, 1}}};
}
/* The busy stage prefetches the result of a stage with too little work to hide the latency. It does
 * not if the last-level cache holds the result, or L2 where a vector is less than a line, or a
 * cache that has room where lines are not read before they are written. */
static void light_writer_job(tarn_ctx *c, void *arg) {
  (void)arg;
  caches host;
  const tarn_hw *on = with_caches(&host, 2048, 16384, 65536, 6, 300);
  kit_case k;
  light_writer_case(&k, 248);
  host.on.vector_bits = 512;
  if (kit_prefetches_result(L, on, &k))
    tarn_raise(c, TARN_NO, "lines in the last-level cache are prefetched");
  host.on.vector_bits = 256,
  host.mem[1].capacity = 20000; /* stores of half a line wait for it: beyond the second cache */
  if (kit_prefetches_result(L, on, &k)) tarn_raise(c, TARN_NO, "lines in L2 are prefetched");
  host.mem[1].capacity = 9000;
  if (!kit_prefetches_result(L, on, &k))
    tarn_raise(c, TARN_NO, "lines of half-line stores are not prefetched");
  host.on.vector_bits = 512, host.mem[1].capacity = 16384,
  host.mem[3].write = 6; /* no line is read before it is written */
  if (kit_prefetches_result(L, on, &k))
    tarn_raise(c, TARN_NO, "lines for which the last-level cache has room are prefetched");
  host.mem[2].capacity = 50000;
  if (!kit_prefetches_result(L, on, &k))
    tarn_raise(c, TARN_NO, "lines that crowd the last-level cache are not prefetched");
  host.mem[2].capacity = 9000, host.mem[3].write = 0;
  if (!kit_prefetches_result(L, on, &k))
    tarn_raise(c, TARN_NO, "the next row to write is not prefetched");
  kit_reference(L, &k, TARN_STRICT);
  kit_run(L, on, &k, 1, true, 1);
  double e = kit_error(k.want[0], k.got[0]);
  if (!(e >= 0 && e < 1e-5)) tarn_raise(c, TARN_NO, "a row written by another stage: %g", e);
}

/* A result that no cache holds is stored by non-temporal stores, at any alignment. A result that a
 * cache holds is not, nor rows that are not whole lines. */
static void past_job(tarn_ctx *c, void *arg) {
  const int64_t *lanes = arg; /* half a line: two vectors that follow one another are one */
  caches host;
  const tarn_hw *on = with_caches(&host, 2048, 16384, 65536, 6, 300);
  kit_case k;
  light_writer_case(&k, 256);
  k.sched->stage[1].level[1].step = *lanes;
  if (kit_streams(L, on, &k))
    tarn_raise(c, TARN_NO, "non-temporal stores of a result that fits the last-level cache");
  host.mem[2].capacity = 9000;
  if (!kit_streams(L, on, &k))
    tarn_raise(c, TARN_NO, "no non-temporal stores of a result that no cache holds");
  if (kit_prefetches_result(L, on, &k))
    tarn_raise(c, TARN_NO, "prefetches of a result with non-temporal stores");
  kit_reference(L, &k, TARN_STRICT);
  for (int64_t at = 0; at < 16; at++) {
    k.out[0].offset = at;
    kit_run(L, on, &k, 1, true, 1);
    double e = kit_error(k.want[0], k.got[0]);
    if (!(e >= 0 && e < 1e-5))
      tarn_raise(c, TARN_NO, "non-temporal stores %d elements on: %g", (int)at, e);
  }
  /* one vector a trip: halves of a line wait for each other from trip to trip */
  k.out[0].offset = 0,
  k.sched->stage[1] = (tarn_stage_sched){
      .nlevel = 2, .acc = 2, .level = {{1, TARN_SERIAL, *lanes}, {1, TARN_VECTOR, 1}}};
  if (!kit_streams(L, on, &k))
    tarn_raise(c, TARN_NO, "no non-temporal stores of vectors that fill lines trip by trip");
  kit_run(L, on, &k, 1, true, 1);
  if (!(kit_error(k.want[0], k.got[0]) < 1e-5))
    tarn_raise(c, TARN_NO, "non-temporal stores trip by trip: wrong");
  light_writer_case(&k, 248);
  if (kit_streams(L, on, &k))
    tarn_raise(c, TARN_NO, "non-temporal stores of rows that are not whole lines");
}

/* A sum of products over the last of three dims, of what two maps read. */
static void product_case(kit_case *k, const tarn_imap *a, const tarn_imap *b, tarn_tensor *x,
                         tarn_tensor *y) {
  tarn_read read[2] = {{.map = tarn_map_intern(L, a)}, {.src = 1, .map = tarn_map_intern(L, b)}};
  tarn_func fn = {.nops = 2, .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32), .epi = TARN_NONE};
  fn.body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  tarn_stage st = {.nown = 2,
                   .nred = 1,
                   .own = {a->dim[0], a->dim[1]},
                   .red = {a->dim[2]},
                   .read = read,
                   .out = true};
  st.fn = tarn_fn_intern(L, &fn);
  tarn_nest n = {.out_ns = 2, .nstage = 1, .nchild = 2, .stage = &st};
  *k = (kit_case){.nest = tarn_nest_intern(L, &n),
                  .nin = 2,
                  .nout = 1,
                  .in_type = {TARN_F32, TARN_F32},
                  .out_type = {TARN_F32},
                  .value = {x, y},
                  .in = {tarn_layout_row_major(x->n, x->dim), tarn_layout_row_major(y->n, y->dim)},
                  .out = {tarn_layout_row_major(2, st.own)}};
}
/* A product of filters by 64 rows of 2048 places, a page and more apart: blocks of places, some
 * filters and some rows at a time. */
static void places_case(kit_case *k, int64_t filters, int64_t block, int64_t some, int64_t deep) {
  const int64_t dim[] = {filters, 2048, 64}, filter[] = {filters, 64}, image[] = {64, 2048};
  tarn_imap w = {.ns = 2,
                 .n = 3,
                 .nin = 2,
                 .fill = TARN_NONE,
                 .dim = {filters, 2048, 64},
                 .in = {filters, 64}},
            x = w;
  w.e[0] = tarn_ix_var(L, 0, dim), w.e[1] = tarn_ix_var(L, 2, dim);
  x.in[0] = 64, x.in[1] = 2048, x.e[0] = tarn_ix_var(L, 2, dim), x.e[1] = tarn_ix_var(L, 1, dim);
  product_case(k, &w, &x, kit_tensor(cx, TARN_F32, 2, filter, 1),
               kit_tensor(cx, TARN_F32, 2, image, 1));
  tarn_stage_sched *s = TARN_NEW(cx, tarn_stage_sched);
  *s = (tarn_stage_sched){
      .nlevel = 3,
      .acc = 2,
      .level = {{1, TARN_SERIAL, block}, {0, TARN_SERIAL, some}, {2, TARN_SERIAL, deep}}};
  if (deep > 1) s->level[s->nlevel++] = (tarn_level){2, TARN_UNROLL, 1};
  s->level[s->nlevel++] = (tarn_level){0, TARN_UNROLL, 1};
  s->level[s->nlevel++] = (tarn_level){1, TARN_UNROLL, 16};
  s->level[s->nlevel++] = (tarn_level){1, TARN_VECTOR, 1};
  k->sched = TARN_NEW(cx, tarn_schedule);
  *k->sched = (tarn_schedule){.nstage = 1, .stage = s};
}
/* An image larger than L2 is prefetched block by block while the block before is in use. One that
 * fits is not, because 32 terms are too short a run: most data that far ahead is another run's. The
 * result is the same. */
static void far_image_job(tarn_ctx *c, void *arg) {
  (void)arg;
  caches host;
  const tarn_hw *on = with_caches(&host, 32768, 2 << 20, 8 << 20, 6, 300);
  kit_case k;
  places_case(&k, 32, 32, 4, 1);
  kit_reference(L, &k, TARN_STRICT);
  uint32_t places[2];
  for (int i = 0; i < 2; i++) {
    places[i] = kit_lines(L, on, &k, ANY);
    kit_run(L, on, &k, 1, true, 1);
    double e = kit_error(k.want[0], k.got[0]);
    if (!(e >= 0 && e < 1e-5)) tarn_raise(c, TARN_NO, "product: %g", e);
    host.mem[1].capacity = 1 << 17; /* the image has 512 KB */
  }
  if (!places[1] || places[0]) tarn_raise(c, TARN_NO, "%u and %u places", places[0], places[1]);
}

/* 16 matrices of 8 by 64, each used once, for one row: sums of eight terms are too short to be
 * prefetched alone, but all of them together are not. apart: one of so many matrices is used; then
 * they are not walked from end to end. */
static void matrices_case(kit_case *k, int64_t apart) {
  const int64_t dim[] = {16, 64, 8}, row[] = {16, 8}, matrices[] = {16 * apart * 512};
  tarn_imap w = {.ns = 3,
                 .n = 3,
                 .nin = 1,
                 .fill = TARN_NONE,
                 .dim = {16, 64, 8},
                 .in = {matrices[0]}},
            x = w;
  w.e[0] = tarn_ix_scale(L, tarn_ix_var(L, 0, dim), apart * 512, dim);
  w.e[0] = tarn_ix_add(L, w.e[0], tarn_ix_scale(L, tarn_ix_var(L, 2, dim), 64, dim), dim);
  w.e[0] = tarn_ix_add(L, w.e[0], tarn_ix_var(L, 1, dim), dim);
  x.nin = 2, x.in[0] = 16, x.in[1] = 8, x.e[0] = tarn_ix_var(L, 0, dim),
  x.e[1] = tarn_ix_var(L, 2, dim);
  product_case(k, &w, &x, kit_tensor(cx, TARN_F32, 1, matrices, 1),
               kit_tensor(cx, TARN_F32, 2, row, 1));
  tarn_stage_sched *s = TARN_NEW(cx, tarn_stage_sched);
  *s = (tarn_stage_sched){
      .nlevel = 4,
      .acc = 1,
      .level = {
          {0, TARN_SERIAL, 1}, {2, TARN_SERIAL, 1}, {1, TARN_UNROLL, 16}, {1, TARN_VECTOR, 1}}};
  k->sched = TARN_NEW(cx, tarn_schedule);
  *k->sched = (tarn_schedule){.nstage = 1, .stage = s};
}
static void short_sums_job(tarn_ctx *c, void *arg) {
  (void)arg;
  caches host;
  const tarn_hw *on = with_caches(&host, 2048, 65536, 1 << 20, 32, 40);
  for (int64_t apart = 1; apart <= 2; apart++) {
    kit_case k;
    matrices_case(&k, apart);
    uint32_t places = kit_lines(L, on, &k, ANY);
    if ((places > 0) != (apart == 1))
      tarn_raise(c, TARN_NO, "matrices %lld apart: %u places", (long long)apart, places);
    kit_reference(L, &k, TARN_STRICT);
    kit_run(L, on, &k, 1, true, 1);
    double e = kit_error(k.want[0], k.got[0]);
    if (!(e >= 0 && e < 1e-5)) tarn_raise(c, TARN_NO, "products: %g", e);
  }
}

/* An image that the last-level cache holds: pieces of its rows are prefetched evenly, one line in a
 * trip of the innermost loop if its trips are up to twice as many as the lines. Not if L2 holds
 * them with the data in use meanwhile. */
static void even_asks_job(tarn_ctx *c, void *arg) {
  (void)arg;
  caches host;
  const tarn_hw *on = with_caches(&host, 32768, 131072, 1 << 20, 6, 300);
  for (int64_t tile = 8; tile <= 13;
       tile += 5) { /* four tiles of 64 trips for 64 rows of two lines; three */
    kit_case k;
    places_case(&k, 32, 32, tile, 1);
    kit_reference(L, &k, TARN_STRICT);
    kit_run(L, on, &k, 1, true, 1);
    double e = kit_error(k.want[0], k.got[0]);
    if (!(e >= 0 && e < 1e-5)) tarn_raise(c, TARN_NO, "product: %g", e);
    uint32_t lines = kit_lines(L, on, &k, ANY), even = kit_lines(L, on, &k, "lshr");
    if (!lines || even < 2) /* a trip's share, and two parts of a row */
      tarn_raise(c, TARN_NO, "tiles of %d: %u places, %u of them even", (int)tile, lines, even);
  }
}

/* ---- which lines ---- */
static struct {
  const char *at[1 << 16];
  uint32_t n;
} heard;
static void hear(const char *at, int32_t write, int32_t near, int32_t data) {
  (void)write, (void)near, (void)data;
  if (heard.n < 1 << 16) heard.at[heard.n++] = at;
}
static void replace(char *text, const char *what, const char *by) { /* no longer; blanks fill up */
  for (char *at = text; (at = strstr(at, what)); at += strlen(what)) {
    memset(at, ' ', strlen(what));
    memcpy(at, by, strlen(by));
  }
}
/* Runs a case's kernel with hear() instead of the prefetch instruction. */
static void listen(const tarn_hw *on, kit_case *c, const float *a, const float *b, float *out) {
  const char *dir = kit_compile(kit_program(L, on, c, 1), true, TARN_EMIT_LL);
  size_t n;
  char *text = tarn_read_file(cx, tarn_format(cx, "%s/model.ll", dir), &n), *why = NULL;
  kit_remove(cx, dir);
  replace(text, "@llvm.prefetch.p0(", "@hear(");
  replace(text, " immarg", ""),
      replace(text, "define internal void @model.n0(", "define void @model.n0(");
  LLVMLinkInMCJIT(), LLVMInitializeNativeTarget(), LLVMInitializeNativeAsmPrinter();
  LLVMContextRef lc = LLVMContextCreate();
  LLVMModuleRef m;
  LLVMExecutionEngineRef e;
  LLVMMemoryBufferRef from = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, n, "heard");
  if (LLVMParseIRInContext(lc, from, &m, &why) ||
      LLVMCreateMCJITCompilerForModule(&e, m, NULL, 0, &why))
    tarn_raise(cx, TARN_INTERNAL, "%s", why);
  LLVMAddGlobalMapping(e, LLVMGetNamedFunction(m, "hear"), (void *)(uintptr_t)hear);
  typedef void kernel(void *scratch, void *pool, const float *a, const float *b, float *out);
  kernel *run = (kernel *)(uintptr_t)LLVMGetFunctionAddress(e, "model.n0");
  heard.n = 0;
  run(NULL, NULL, a, b, out);
  LLVMDisposeExecutionEngine(e), LLVMContextDispose(lc);
}
/* Every line of the image is prefetched while the block of places before its own is in use: none of
 * the first block, all of the others, whether or not trips divide the rows, a loop's last trip does
 * less, or a row has several parts. */
static void lines_job(tarn_ctx *c, void *arg) {
  static const int64_t loops[][4] = {
      {32, 32, 4, 1}, {32, 32, 13, 1}, {36, 64, 6, 4}, {36, 64, 6, 5}, {36, 64, 6, 7}};
  caches host;
  const tarn_hw *on = with_caches(&host, 32768, 131072, 1 << 20, 6, 300);
  (void)arg;
  float *a = aligned_alloc(64, 36 * 64 * 4), *image = aligned_alloc(64, 64 * 8192),
        *out = aligned_alloc(64, 36 * 8192);
  if (!a || !image || !out) tarn_raise(c, TARN_MEMORY, "out of memory");
  memset(a, 0, 36 * 64 * 4), memset(image, 0, 64 * 8192);
  for (uint32_t i = 0; i < sizeof loops / sizeof *loops; i++) {
    const int64_t *l = loops[i];
    uint32_t first = 0, missed = 0;
    bool asked[64][128] = {0}, early[64][128] = {0};
    kit_case k;
    places_case(&k, l[0], l[1], l[2], l[3]);
    listen(on, &k, a, image, out);
    for (uint32_t j = 0; j < heard.n; j++) {
      int64_t at = heard.at[j] - (const char *)image;
      if (at < 0 || at >= 64 * 8192) continue;
      asked[at / 8192][at % 8192 / 64] = true;
      if (4 * j < heard.n)
        early[at / 8192][at % 8192 / 64] = true; /* behind a row's end the next one begins */
    }
    for (int64_t r = 0; r < 64; r++)
      for (int64_t x = 0; x < 128; x++) {
        if (x < l[1] * 4 / 64) first += early[r][x];
        else missed += !asked[r][x];
      }
    if (first || missed)
      tarn_raise(c, TARN_NO, "loops %u: %u lines of the first block prefetched, %u of others not",
                 i, first, missed);
  }
  free(a), free(image), free(out);
}

/* Taps of a window along the lanes: 1 x 3 over rows of 32 places, of sixteen channels 4 KB apart,
 * and two rows of it. */
static const char taps[] = "(kernel (nest (stages (children 2) (shared) (split 3) (stage (own 4 8 "
                           "32) (reduce 3 16) (red sum (mul $0 $1)) (child 1"
                           " (index ((4 8 32) (3 16)) (192) ((+ (* 48 d0) (* 16 d3) d4)))) (child "
                           "0 (index ((4 8 32) (3 16)) (16384)"
                           " ((+ (* 64 d1) d2 d3 (* 1024 d4))))) out)))(in f32 (16384) (1))(const "
                           "f32 (192) (1))(out f32 (4 8 32) (256 32 1)))";
static const char by_two[] = "(schedule (stage (acc 3) (serial 0 4) (serial 1 2) (serial 2 32) "
                             "(serial 4 1) (unroll 3 1) (unroll 0 1) (unroll 1 1)"
                             " (unroll 2 16) (vector 2 1)))";
/* A trip prefetches each line once, however many taps of the window read it. */
static void once_job(tarn_ctx *c, void *arg) {
  caches host;
  const tarn_hw *on = with_caches(&host, 2048, 1 << 20, 4 << 20, 6, 20);
  kit_case e = kit_case_text(L, taps, by_two);
  (void)arg;
  float *x = aligned_alloc(64, 16384 * 4), *w = aligned_alloc(64, 192 * 4),
        *out = aligned_alloc(64, 1024 * 4);
  if (!x || !w || !out) tarn_raise(c, TARN_MEMORY, "out of memory");
  memset(x, 0, 16384 * 4), memset(w, 0, 192 * 4);
  listen(on, &e, x, w, out);
  enum { TRIPS = 4 * 16, LINES = 4 }; /* pairs of rows by channels; of a trip */
  if (heard.n != TRIPS * LINES)
    tarn_raise(c, TARN_NO, "%u lines are prefetched, not %d", heard.n, TRIPS * LINES);
  for (uint32_t i = 0; i < heard.n; i++)
    for (uint32_t j = i - i % LINES; j < i; j++)
      if (heard.at[i] == heard.at[j]) tarn_raise(c, TARN_NO, "trip %u prefetches twice", i / LINES);
  free(x), free(w), free(out);
}

/* ---- what the price is told ---- */
/* A product with weights; a window over an image; sums of a matrix's columns. */
static const char *const priced[] = {
    "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 196 512) (reduce 256) (red "
    "sum (mul $0 $1)) (child 1"
    " (index ((196 512) (256)) (131072) ((+ d1 (* 512 d2))))) (child 0 (index ((196 512) (256)) "
    "(50176) ((+ (* 256 d0) d2))))"
    " out)))(in f32 (50176) (1))(const f32 (131072) (1))(out f32 (196 512) (512 1)))",
    "(kernel (nest (stages (children 1) (shared) (split 3) (stage (own 28 28 64) (reduce 3 3) "
    "reduceMax (child 0 (index"
    " ((28 28 64) (3 3)) (200704) ((+ (* 7168 d0) (* 128 d1) d2 (* 3584 d3) (* 64 d4) -3648)) "
    "(fill -inf ((+ (* 2 d0) d3) 1"
    " 57) ((+ (* 2 d1) d4) 1 57)))) out)))(in f32 (200704) (1))(out f32 (28 28 64) (1792 64 1)))",
    "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 60 1024) (reduce 96) (red "
    "sum (mul $0 $1)) (child 1"
    " (index ((60 1024) (96)) (98304) ((+ d1 (* 1024 d2))))) (child 0 (index ((60 1024) (96)) "
    "(5760) ((+ (* 96 d0) d2)))) out)"
    "))(in f32 (5760) (1))(in f32 (98304) (1))(out f32 (60 1024) (1024 1)))"};
typedef struct told {
  const tarn_hw *on;
  const tarn_ksig *k;
  uint32_t seen, prefetches, writes, none;
} told;
static float how(const char *who, const float *f) {
  const char *name = tarn_format(cx, "how the %s is asked for ahead", who);
  for (uint32_t i = 0; i < TARN_FEATURES; i++)
    if (!strncmp(tarn_feature_name(i), name, strlen(name))) return f[i];
  tarn_raise(cx, TARN_INTERNAL, "no feature '%s'", name);
}
static bool same_prefetch(const tarn_prefetch *a, const tarn_prefetch *b) {
  return a->of == b->of && a->walk == b->walk && a->first == b->first && a->step == b->step &&
         a->rows == b->rows && a->row == b->row && a->parts == b->parts && a->units == b->units &&
         a->trips == b->trips && a->level == b->level && a->at == b->at && a->into_l1 == b->into_l1;
}
/* Are the prefetches of tarn_work_walks() those of the emitted nest? */
static bool same_prefetches(const told *t, const tarn_schedule *s) {
  tarn_ksig k = *t->k;
  tarn_walks *w = tarn_work_walks(cx, t->on, tarn_work_of(L, t->on, &k), s);
  tarn_plan_operand in[4] = {0}, out[2] = {0};
  tarn_choose_prefetches(w);
  tarn_ksig_block(L, &k, &s, NULL);
  for (uint32_t i = 0; i < k.nin; i++) in[i].dtype = k.in_type[i], in[i].layout = k.in[i];
  for (uint32_t i = 0; i < k.nout; i++) out[i].dtype = k.out_type[i], out[i].layout = k.out[i];
  tarn_plan_nest *N = tarn_plan_make(L, t->on, false, tarn_nest_get(L, k.nest), s, in, out);
  uint32_t prefetches = 0, found = 0;
  bool same = true;
  for (uint32_t i = 0; i < N->nstage; i++) {
    const tarn_plan_stage *st = &N->stage[i];
    for (uint32_t r = 0; r <= st->f->nops; r++) {
      const tarn_plan_access *a = r < st->f->nops ? &st->read[r] : &st->result;
      same &= a->prefetch_by == w->stage[i].walk[r].prefetch_by &&
              a->into_l2 == w->stage[i].walk[r].into_l2;
    }
    prefetches += st->prefetch.n;
    for (uint32_t x = 0; x < st->prefetch.n; x++)
      for (uint32_t y = 0; y < w->prefetch.n; y++)
        found += same_prefetch(&st->prefetch.p[x].k, &w->prefetch.p[y]);
  }
  return same && prefetches == w->prefetch.n && found == prefetches;
}
static void one_schedule(void *arg, const tarn_schedule *s, double seconds) {
  told *t = arg;
  float f[TARN_FEATURES];
  tarn_ksig k = *t->k;
  tarn_cost c;
  uint32_t lane;
  (void)seconds;
  if (!same_prefetches(t, s))
    tarn_raise(cx, TARN_NO, "%s: prefetched otherwise", tarn_schedule_text(cx, s));
  if (!tarn_schedule_tile(s->stage, &lane) || t->seen++ % 41)
    return; /* guarded loads are not prefetched by latency */
  tarn_cost_of(L, t->on, &k, s, 1, &c);
  tarn_features(L, t->on, &k, s, 1, &c, f);
  bool reads = how("constant", f) > 0 || how("input", f) > 0, writes = how("result", f) > 0;
  tarn_ksig_block(L, &k, &s, NULL);
  kit_case e = kit_case_of(cx, &k, s);
  uint32_t to_write = kit_lines(L, t->on, &e, TO_WRITE), any = kit_lines(L, t->on, &e, ANY);
  if ((to_write > 0) != writes || (any > to_write) != reads)
    tarn_raise(cx, TARN_NO, "%s: told %s, %s; %u of %u lines to write", tarn_schedule_text(cx, s),
               reads ? "reads" : "-", writes ? "writes" : "-", to_write, any);
  t->prefetches += reads, t->writes += writes, t->none += !reads && !writes;
}
/* The price knows what the code prefetches, also of constants packed by the tile. */
static void told_job(tarn_ctx *c, void *arg) {
  caches host;
  const tarn_hw *on = with_caches(&host, 8192, 131072, 4 << 20, 6, 300);
  told all = {0};
  (void)arg;
  for (uint32_t i = 0; i < sizeof priced / sizeof *priced; i++) {
    tarn_ksig k;
    tarn_ksig_parse(L, priced[i], strlen(priced[i]), &k);
    told t = {.on = on, .k = &k};
    if (!tarn_schedules(tarn_solver_new(L, on, 1), &k, one_schedule, &t))
      tarn_raise(c, TARN_INTERNAL, "no schedules");
    all.prefetches += t.prefetches, all.writes += t.writes, all.none += t.none;
  }
  if (all.prefetches < 5 || all.writes < 5 || all.none < 5)
    tarn_raise(c, TARN_NO, "%u read, %u write, %u nothing", all.prefetches, all.writes, all.none);
}

static void must(tarn_fn *f, void *arg) {
  tarn_status st = tarn_protect(cx, f, arg);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
START_TEST(prefetches_result) { must(light_writer_job, NULL); }
END_TEST
START_TEST(past_the_caches) {
  must(past_job, &(int64_t){16});
  must(past_job, &(int64_t){8});
}
END_TEST
START_TEST(far_image) { must(far_image_job, NULL); }
END_TEST
START_TEST(short_sums) { must(short_sums_job, NULL); }
END_TEST
START_TEST(even_asks) { must(even_asks_job, NULL); }
END_TEST
START_TEST(lines) { must(lines_job, NULL); }
END_TEST
START_TEST(once) { must(once_job, NULL); }
END_TEST
START_TEST(price_is_told) { must(told_job, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("ahead");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, prefetches_result);
  tcase_add_test(t, past_the_caches);
  tcase_add_test(t, far_image);
  tcase_add_test(t, short_sums);
  tcase_add_test(t, even_asks);
  tcase_add_test(t, lines);
  tcase_add_test(t, once);
  tcase_add_test(t, price_is_told);
  return run_checks("lower_ahead", t);
}
