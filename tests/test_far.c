/* Constants in a far section: the same results for each kind of linker input. --all: 2.25 GiB of
 * them. */
#include "model/model.h"
#include "tests/onnx_text.h"
#include "tests/pipeline.h"
#include "tests/context.h"
#include <elf.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static bool all;

static const char text[] = "in i i64 3\n"
                           "init w f32 4,8 : 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 "
                           "22 23 24 25 26 27 28 29 30 31 32\n"
                           "init m f32 8,5 : 1 2 1 4 1 6 1 8 1 10 1 12 1 14 1 16 1 2 1 3 2 1 4 5 6 "
                           "7 8 9 1 2 3 4 5 6 7 8 9 1 1 1\n"
                           "init b f32 5 : 1 2 3 4 5\n"
                           "node Gather g w i -> g\n"
                           "node MatMul p g m -> p\n"
                           "node Add s p b -> s\n"
                           "node Relu r s -> y\n"
                           "out y\n";

static pipeline *small_model(tarn_ctx *cx, const char *hw) {
  tarn_lang *L = tarn_lang_new(cx);
  size_t n;
  const uint8_t *bytes = onnx_model(cx, text, &n);
  tarn_program *p = tarn_model_load_bytes(L, bytes, n, "far", NULL, NULL, NULL);
  return pipeline_optimise(p, hw ? tarn_hw_load(L, hw) : tarn_hw_host(L, false));
}
static void emit(pipeline *r, const char *dir, unsigned kinds, int64_t near) {
  tarn_lower_options o = {
      .emit = kinds, .dir = dir, .name = "model", .contract = true, .opt = 2, .near = near};
  tarn_lower_cpu(planned_program(r->kprog, o.contract), tarn_memory_plan_make(r->kprog, 64), &o);
}
/* The flags of a section of DIR/model.o; 0: there is none. */
static uint64_t section_flags(tarn_ctx *cx, const char *dir, const char *name) {
  size_t n;
  const char *o = tarn_read_file(cx, tarn_format(cx, "%s/model.o", dir), &n);
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)o;
  const Elf64_Shdr *s = (const Elf64_Shdr *)(o + h->e_shoff);
  const char *names = o + s[h->e_shstrndx].sh_offset;
  for (uint32_t i = 1; i < h->e_shnum; i++)
    if (!strcmp(names + s[i].sh_name, name)) return s[i].sh_flags;
  return 0;
}
static const float *run_small(tarn_ctx *cx, pipeline *r, const char *dir) {
  tarn_tensor *out, *i = tarn_tensor_new(cx, TARN_I64, 1, (const int64_t[]){3});
  for (int64_t k = 0; k < 3; k++) tarn_tensor_set(i, k, (tarn_value){.i = k * 3 % 4});
  pipeline_run(tarn_load(cx, dir), r->program, &(tarn_binding){"i", i}, &out);
  return out->data;
}
static void near_and_far(tarn_ctx *cx, void *arg) {
  (void)arg;
  pipeline *r = small_model(cx, NULL);
  const char *dir[] = {pipeline_folder(cx), pipeline_folder(cx)};
  for (int far = 0; far < 2; far++) emit(r, dir[far], TARN_EMIT_SO | TARN_EMIT_O, far ? 1 : 0);
  ck_assert_uint_ne(section_flags(cx, dir[0], ".rodata.tarn_consts"), 0);
#if defined(__x86_64__)
  ck_assert_uint_eq(section_flags(cx, dir[1], ".lrodata.tarn_consts"),
                    SHF_ALLOC | 0x10000000u /* SHF_X86_64_LARGE */);
#endif
  ck_assert_uint_ne(section_flags(cx, dir[1], ".data.rel.ro.tarn_consts"), 0);
  const float *y = run_small(cx, r, dir[0]), *z = run_small(cx, r, dir[1]);
  ck_assert_int_eq(memcmp(y, z, 15 * sizeof *y), 0);
  ck_assert(y[0] > 0 && y[5] != y[0]);
}
START_TEST(near_and_far_constants_give_the_same) { in_context(near_and_far, NULL); }
END_TEST

/* For other machines: they link. */
static void others(tarn_ctx *cx, void *arg) {
  const char *hw = arg, *dir = pipeline_folder(cx), *o = tarn_format(cx, "%s/model.o", dir);
  emit(small_model(cx, hw), dir, TARN_EMIT_O, 1);
  ck_assert_uint_ne(section_flags(cx, dir, ".data.rel.ro.tarn_consts"), 0);
  ck_assert_int_eq(system(tarn_format(cx, "/usr/lib/llvm-19/bin/ld.lld -shared %s -o %s.so", o, o)),
                   0);
}
START_TEST(other_machines_link_far_constants) {
  static char hw[][8] = {"aarch64", "riscv64"};
  in_context(others, hw[_i]);
}
END_TEST

/* Rows of a table of 2.25 GiB, doubled. The file has holes. */
enum { ROWS = 147456, COLUMNS = 4096 };
static const char large[] =
    "in i i64 3\ndata w f32 147456,4096 w.bin 0 2415919104\ninit two f32 1 : 2\n"
    "node Gather g w i -> g\nnode Mul m g two -> y\nout y\n";
static void write_table(tarn_ctx *cx, const char *dir) {
  FILE *f = fopen(tarn_format(cx, "%s/w.bin", dir), "wb");
  float row[COLUMNS];
  ck_assert_ptr_nonnull(f);
  for (int k = 0; k < COLUMNS; k++) row[k] = (float)k;
  ck_assert_int_eq(fwrite(row, sizeof row, 1, f), 1);
  ck_assert_int_eq(fseek(f, (long)(ROWS - 1) * (long)sizeof row, SEEK_SET), 0);
  ck_assert_int_eq(fwrite(row, sizeof row, 1, f), 1);
  ck_assert_int_eq(fclose(f), 0);
}
static void gigabytes(tarn_ctx *cx, void *arg) {
  (void)arg;
  const char *dir = pipeline_folder(cx), *model = tarn_format(cx, "%s/large.onnx", dir),
             *to = pipeline_folder(cx);
  size_t n;
  const uint8_t *bytes = onnx_model(cx, large, &n);
  tarn_write_file(cx, model, bytes, n);
  write_table(cx, dir);
  ck_assert_int_eq(
      system(tarn_format(cx, TARN_BUILD "/tarn compile %s -o %s 2>/dev/null", model, to)), 0);
  tarn_tensor *i = tarn_tensor_new(cx, TARN_I64, 1, (const int64_t[]){3});
  for (int64_t k = 0; k < 3; k++) tarn_tensor_set(i, k, (tarn_value){.i = k * (ROWS - 1) / 2});
  tarn_tensor *y = tarn_tensor_new(cx, TARN_F32, 2, (const int64_t[]){3, COLUMNS});
  tarn_loaded_run(tarn_load(cx, to), (const tarn_tensor *const[]){i}, &y, 1);
  for (int64_t k = 0; k < 3 * COLUMNS; k++)
    ck_assert_double_eq(tarn_tensor_get(y, k).d,
                        k / COLUMNS == 1 ? 0 : 2.0 * (double)(k % COLUMNS));
}
START_TEST(gigabytes_link_and_run) {
  if ((double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) < 8e9) return;
  in_context(gigabytes, NULL);
}
END_TEST

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "--all");
  TCase *t = tcase_create("far");
  tcase_set_timeout(t, all ? 600 : 60);
  tcase_add_test(t, near_and_far_constants_give_the_same);
  tcase_add_loop_test(t, other_machines_link_far_constants, 0, 2);
  if (all) tcase_add_test(t, gigabytes_link_and_run);
  return run_checks("far", t);
}
