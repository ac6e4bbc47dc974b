/* For tests of the PTX executor: a run of one hand-written kernel over some arrays, and what it
 * must give or report. */
#ifndef TARN_TESTS_PTX_KIT_H
#define TARN_TESTS_PTX_KIT_H
#include "base/base.h"
#include "sim/ptx.h"
#include "tests/suite.h"
#include <string.h>

static tarn_ctx *cx;
static inline void setup(void) { cx = tarn_ctx_new(NULL); }
static inline void teardown(void) { tarn_ctx_free(cx); }

/* A run of the only kernel, or of one by name, over some arrays; parameters: their addresses, then
 * up to two words. */
#define ARRAYS 5
typedef struct array {
  void *p;
  int64_t bytes;
  tarn_ptx_state state;
} array;
typedef struct job {
  const char *text, *kernel;
  size_t n;
  uint32_t grid, block[2], extra;
  array a[ARRAYS];
  bool words_first, agreed;
  uint32_t word[2];
  tarn_ptx_counts counts;
} job;
static inline void run(tarn_ctx *c, void *arg) {
  job *j = arg;
  char param[64] = {0};
  tarn_ptx *p = tarn_ptx_read(c, j->text, j->n ? j->n : strlen(j->text), "t.ptx");
  tarn_ptx_device *d = tarn_ptx_device_new(c, p);
  uint32_t k = j->kernel ? tarn_ptx_find(p, j->kernel) : 0, a = 0, w = 0;
  const tarn_ptx_entry *e = tarn_ptx_entry_at(p, k);
  for (uint32_t i = 0; i < e->nparam; i++)
    if (e->param[i].bytes == 8) {
      const char *name = tarn_format(c, "array %u", a);
      uint64_t at = tarn_ptx_map(d, name, j->a[a].p, j->a[a].bytes, j->a[a].state);
      memcpy(param + e->param[i].offset, &at, 8), a++;
    } else memcpy(param + e->param[i].offset, &j->word[w++], 4);
  tarn_ptx_launch l = {.entry = k, .param = param, .shared = j->extra, .limit = 1 << 22};
  l.agreed = j->agreed;
  memcpy(l.grid, (uint32_t[3]){j->grid ? j->grid : 1, 1, 1}, sizeof l.grid);
  memcpy(l.block, (uint32_t[3]){j->block[0] ? j->block[0] : 32, j->block[1] ? j->block[1] : 1, 1},
         sizeof l.block);
  tarn_ptx_run(d, &l, &j->counts);
}
static inline void right(job *j) {
  tarn_status st = tarn_protect(cx, run, j);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
}
static inline void reported(job *j, const char *why) {
  tarn_status st = tarn_protect(cx, run, j);
  const char *m = st ? tarn_message(cx) : "nothing";
  ck_assert_msg(st == TARN_BAD_INPUT && strstr(m, why) && !strncmp(m, "t.ptx:", 6) &&
                    !strchr(m, '\n'),
                "says %s\n  not  %s", m, why);
}

#define HEAD ".version 7.0\n.target sm_80\n.address_size 64\n"
static inline const char *kernel(const char *body) {
  return tarn_format(cx,
                     HEAD
                     ".visible .entry k(.param .u64 A, .param .u64 B, .param .u32 N) {\n"
                     ".reg .pred %%p<8>; .reg .b16 %%h<8>; .reg .b32 %%r<24>; .reg .f32 %%f<8>;\n"
                     ".reg .b64 %%d<12>; .reg .f64 %%g<4>;\n"
                     ".shared .align 16 .b8 sh[1024];\n"
                     "ld.param.u64 %%d8, [A]; ld.param.u64 %%d9, [B]; ld.param.u32 %%r9, [N];\n"
                     "cvta.to.global.u64 %%d8, %%d8; cvta.to.global.u64 %%d9, %%d9;\n"
                     "mov.u32 %%r8, %%tid.x; mul.wide.u32 %%d10, %%r8, 4;\n"
                     "add.s64 %%d11, %%d9, %%d10; add.s64 %%d10, %%d8, %%d10;\n"
                     "%s\nret; }\n",
                     body);
}
#define BOTH(n) .a = {{out, 4 * (n), TARN_PTX_UNDEFINED}, {in, 4 * (n), TARN_PTX_CONSTANT}}
#define N(x)    ((int)(sizeof(x) / sizeof *(x)))
#endif
