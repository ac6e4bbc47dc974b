/* rules: what reads the parts of a rule, for language.c and the notation of loops. patterns.c */
#ifndef TARN_RULES_READER_H
#define TARN_RULES_READER_H
#include "rules/lang/lang.h"

typedef struct reader {
  tarn_ruleset *rs;
  tarn_ctx *cx;
  rule *r;
  bool left; /* reading a left side: unknown variables are bound, elsewhere they are errors */
} reader;
bool reader_starts(const tarn_sx *s, const char *prefix);
/* The variable of an attribute; new ones are bound on the left. */
uint32_t reader_attribute(reader *rd, const tarn_sx *s, char kind);
/* The variable of a class. */
uint32_t reader_class(reader *rd, const tarn_sx *s);
/* A new expression, written at s. */
rx *reader_rx(reader *rd, const tarn_sx *s);
rx *reader_expression(reader *rd, const tarn_sx *s);
rpat *reader_pattern(reader *rd, const tarn_sx *s);
/* The payload elements of a left side that are expressions, when everything is bound. */
void reader_deferred(reader *rd, rpat *p);
/* The loop, or row of loops, of this name; TARN_NONE. */
uint32_t reader_loop(const reader *rd, const tarn_sx *s);
/* A side of a rule that may be (let ((?name TERM)…) TERM), with its names replaced by what they
 * stand for; any other as it is. Raises. names.c */
const tarn_sx *names_written_out(const tarn_ruleset *rs, const tarn_sx *whole, const tarn_sx *side);
#endif
