/* Private to extract/select/: JSON (RFC 8259) scanned where it lies, a chunk of the file at a time.
 * The caller names the token it expects next; strings are not looked at as text, so any
 * bytes from 0x20 on may stand in them. */
#ifndef TARN_SELECT_SCAN_H
#define TARN_SELECT_SCAN_H

#include "extract/select/internal.h"
#include <stdio.h>

typedef struct sel_scan {
  tarn_ctx *cx;
  sel_pool *mem;
  const char *file;   /* for messages */
  FILE *f;            /* NULL: all of the document is there */
  unsigned char *buf; /* of a file; what is there begins here */
  size_t cap;
  const unsigned char *start, *p, *end; /* what is there; the cursor */
  const unsigned char *keep;            /* a token that must stay when more is read, or NULL */
  uint64_t lines;                       /* newlines before start */
  char *text;                           /* of a string with escapes */
  size_t cap_text;
} sel_scan;

void sel_scan_file(sel_scan *s, FILE *f);
void sel_scan_text(sel_scan *s, const char *text, size_t n);
/* Raises "FILE:LINE: why". */
_Noreturn void sel_scan_error(sel_scan *s, const char *why);
/* The next byte that is no white space, not taken; -1 at the end. */
int sel_scan_past_blanks(sel_scan *s);
static inline int sel_scan_peek(sel_scan *s) {
  return s->p<s->end && * s->p> ' ' ? *s->p : sel_scan_past_blanks(s);
}
/* The string that begins at the cursor, which is at a quote; valid until the next call. */
const char *sel_scan_string(sel_scan *s, size_t *n);
/* The number that begins at the cursor. Too large a one is infinite. */
double sel_scan_number(sel_scan *s);
/* Takes a colon, after white space. */
void sel_scan_colon(sel_scan *s);
/* In an object or list that `close` ends: is there one more? *first is true before the first. Takes
 * commas and the end. */
bool sel_scan_more(sel_scan *s, char close, bool *first);
/* Takes a value of any kind. */
void sel_scan_skip(sel_scan *s);

#endif
