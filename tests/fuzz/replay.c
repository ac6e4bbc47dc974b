/* Runs a fuzz target on every file of the folders given: what `make check` does in place of
 * libFuzzer. Each file is also tried cut short at 16 places and with 64 single bits flipped, the
 * same ones every time. */
#include <dirent.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static uint8_t *slurp(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  FUZZ_CHECK(f);
  FUZZ_CHECK(fseek(f, 0, SEEK_END) == 0);
  long size = ftell(f);
  FUZZ_CHECK(size >= 0 && fseek(f, 0, SEEK_SET) == 0);
  *n = (size_t)size;
  uint8_t *p = malloc(*n + 1);
  FUZZ_CHECK(p && fread(p, 1, *n, f) == *n);
  fclose(f);
  return p;
}

static void replay(const char *path) {
  size_t n;
  uint8_t *p = slurp(path, &n);
  LLVMFuzzerTestOneInput(p, n);
  for (size_t i = 0; i < 16; i++) LLVMFuzzerTestOneInput(p, n * i / 16);
  uint64_t r = 1;
  for (int i = 0; i < 64 && n; i++) {
    r = r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    size_t bit = (size_t)((r >> 16) % (8 * n));
    p[bit / 8] ^= (uint8_t)(1u << bit % 8);
    LLVMFuzzerTestOneInput(p, n);
    p[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  free(p);
}

int main(int argc, char **argv) {
  int count = 0;
  for (int i = 1; i < argc; i++) {
    DIR *d = opendir(argv[i]);
    FUZZ_CHECK(d);
    for (struct dirent *e; (e = readdir(d));) {
      if (e->d_name[0] == '.') continue;
      char path[4096];
      snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
      replay(path);
      count++;
    }
    closedir(d);
  }
  printf("%d files\n", count);
  return count ? 0 : 1;
}
