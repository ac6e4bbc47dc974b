/* Whether a file's bytes are a shared object, which is linked by its path. */
#ifndef TARN_SHARED_H
#define TARN_SHARED_H
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool tarn_is_shared_object(const char *code, size_t n) {
  const size_t at = EI_NIDENT; /* the type: 16 bits in the file's own order */
  return n > at + 1 && !memcmp(code, ELFMAG, SELFMAG) &&
         code[at] + code[at + 1] == ET_DYN; /* one of them is 0 */
}
#endif
