/* Moves the stream of a model compiled with --name digits: ./a.out BASE <stream.bin >moved.bin.
 * Fails, with the stream as it was, where it cannot be moved there. */
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  static unsigned char stream[1 << 20], moved[1 << 20];
  size_t n = fread(stream, 1, sizeof stream, stdin);
  if (argc != 2 || n % DIGITS_INSTRUCTION_BYTES ||
      n / DIGITS_INSTRUCTION_BYTES != DIGITS_INSTRUCTIONS)
    return 3;
  memcpy(moved, stream, n);
  int failed = digits_relocate(moved, DIGITS_INSTRUCTIONS, strtoull(argv[1], NULL, 0));
  if (failed) return memcmp(moved, stream, n) ? 2 : 1;
  return fwrite(moved, 1, n, stdout) != n;
}
