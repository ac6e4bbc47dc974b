/* tune/: out of memory at every allocation: nothing leaks, and the status says so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hw/hw.h"
#include "tests/alloc.h"
#include "tests/folder.h"
#include "tune/search.h"
#include "tune/tune.h"

static const char *const text[] = {
    "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 24 32) (reduce 16) (red sum "
    "(mul $0 $1)) (child 0"
    " (index ((24 32) (16)) (384) ((+ (* 16 d0) d2)))) (child 1 (index ((24 32) (16)) (512) ((+ d1 "
    "(* 32 d2))))) out)))"
    "(in f32 (384) (1))(const f32 (512) (1))(out f32 (24 32) (32 1)))",
    "(kernel (nest (stages (children 1) (shared) (split 1) (stage (own 20) (reduce 30) reduceSum "
    "(child 0 (index ((20) (30))"
    " (600) ((+ (* 30 d0) d1)))) out)))(in f32 (600) (1))(out f32 (20) (1)))"};

/* What is measured of two kernels is kept and read back; the next ones are looked for and picked,
 * with what was kept. */
static void keep_and_search(tarn_ctx *cx, void *arg) {
  const char *path = in_folder(cx, "a.db");
  (void)arg;
  unlink(path), unlink(tarn_format(cx, "%s-wal", path)), unlink(tarn_format(cx, "%s-shm", path));
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_store *store = tarn_store_open(cx, path);
  const tarn_schedule *s[30];
  uint32_t found = 0;
  for (uint32_t i = 0; i < sizeof text / sizeof *text; i++) {
    tarn_ksig k;
    tarn_ksig_parse(L, text[i], strlen(text[i]), &k);
    search_task *t = search_new(L, hw, tarn_solver_new(L, hw, 1), &k, 1, 7, 8);
    tarn_record r[30];
    uint32_t n = search_spread(t, 10, s);
    for (uint32_t j = 0; j < n; j++) {
      r[j] = tarn_record_of(L, &k, s[j], 1), r[j].seconds = 1e-6 * (1 + j);
      search_note(t, s[j], r[j].seconds);
    }
    tarn_store_add(store, "this", r, n);
    found += n + search_next(t, NULL, 4, s);
  }
  const tarn_record *r;
  const tarn_sample *x;
  uint32_t n = tarn_store_read(store, "this", &r);
  if (n != 20 || found != 28 || tarn_samples(L, hw, r, n, &x) != n)
    tarn_raise(cx, TARN_NO, "%u kept, %u found", n, found);
}
START_TEST(every_allocation) {
  uint64_t bad, tried = tarn_test_fail_each(keep_and_search, NULL, 1, &bad);
  ck_assert_msg(!bad, "allocation %llu", (unsigned long long)bad);
  ck_assert_uint_ge(tried, 10);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("memory");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, every_allocation);
  return run_in_folder("tune_memory", t);
}
