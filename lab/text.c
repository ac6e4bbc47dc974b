#include "lab/text.h"
#include <string.h>

const char *text_find(const char *s, size_t n, const char *what, size_t k) {
  return k ? memmem(s, n, what, k) : NULL;
}
uint32_t text_count(const char *s, size_t n, const char *what, size_t k) {
  const char *end = s + n;
  uint32_t count = 0;
  for (; (s = text_find(s, (size_t)(end - s), what, k)); s += k) count++;
  return count;
}
void text_replace(tarn_buf *b, const char *s, size_t n, const char *what, size_t k, const char *by,
                  size_t m) {
  const char *end = s + n, *at;
  for (; (at = text_find(s, (size_t)(end - s), what, k)); s = at + k) {
    tarn_buf_add(b, s, (size_t)(at - s));
    tarn_buf_add(b, by, m);
  }
  tarn_buf_add(b, s, (size_t)(end - s));
}
