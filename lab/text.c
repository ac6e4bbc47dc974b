#include "lab/text.h"
#include <string.h>

const char *text_find(const char *s, size_t n, const char *what, size_t k) {
  return k ? memmem(s, n, what, k) : NULL;
}
static size_t character(const char *s, size_t n) {
  size_t k = n > 0;
  while (k < n && (s[k] & 0xC0) == 0x80) k++;
  return k;
}
uint32_t text_length(const char *s, size_t n) {
  uint32_t count = 0;
  for (size_t k; n; s += k, n -= k, count++) k = character(s, n);
  return count;
}
uint32_t text_count(const char *s, size_t n, const char *what, size_t k) {
  const char *end = s + n;
  uint32_t count = 0;
  if (!k) return text_length(s, n) + 1;
  for (; (s = text_find(s, (size_t)(end - s), what, k)); s += k) count++;
  return count;
}
void text_replace(tarn_buf *b, const char *s, size_t n, const char *what, size_t k, const char *by,
                  size_t m) {
  const char *end = s + n, *at;
  for (size_t c; !k && s < end; s += c) { /* before each character */
    c = character(s, (size_t)(end - s));
    tarn_buf_add(b, by, m);
    tarn_buf_add(b, s, c);
  }
  for (; (at = text_find(s, (size_t)(end - s), what, k)); s = at + k) {
    tarn_buf_add(b, s, (size_t)(at - s));
    tarn_buf_add(b, by, m);
  }
  tarn_buf_add(b, s, (size_t)(end - s));
  if (!k) tarn_buf_add(b, by, m);
}
