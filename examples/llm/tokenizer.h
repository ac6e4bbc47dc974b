/* The tokenizer that a GGUF file holds: byte pairs in the manner of GPT-2. What is wrong
 * ends the program with a line. */
#ifndef TOKENIZER_H
#define TOKENIZER_H
#include <stdbool.h>
#include <stdint.h>

typedef struct text {
  const char *p;
  uint64_t n;
} text;
typedef struct table {
  uint32_t mask; /* slots - 1 */
  text *key;
  uint32_t *value;
} table;

typedef struct tokenizer {
  text *token, *merge, *kind; /* kind: numbers of 4 bytes */
  uint64_t tokens, merges, kinds;
  table id, rank;
  uint16_t letter[256]; /* that stands for a byte */
  uint8_t byte[512];
  uint32_t end; /* ends a text; UINT32_MAX: no token does */
} tokenizer;

_Noreturn void die(const char *what, const char *why);
tokenizer read_tokenizer(const char *path);
/* How many tokens the text has; out: room for as many as it has bytes. Control tokens, such as
 * <|im_start|>, are written in it as they are. */
uint32_t encode(const tokenizer *t, const char *s, uint32_t *out);
void print_token(const tokenizer *t, uint32_t id);
#endif
