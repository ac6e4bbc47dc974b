/* Texts as bytes, for both kinds of programs that have them. */
#ifndef TARN_LAB_TEXT_H
#define TARN_LAB_TEXT_H
#include "base/base.h"

/* Where `what`, which is not empty, stands first; NULL: nowhere. */
const char *text_find(const char *s, size_t n, const char *what, size_t k);
uint32_t text_length(const char *s, size_t n); /* in characters of UTF-8 */
/* How often it stands there, from left to right without overlap; nothing stands before each
 * character and at the end. */
uint32_t text_count(const char *s, size_t n, const char *what, size_t k);
/* The text with these replaced. */
void text_replace(tarn_buf *b, const char *s, size_t n, const char *what, size_t k, const char *by,
                  size_t m);
#endif
