/* tarn json: one JSON object as text, in the order in which it is written. Everything raises
 * TARN_MEMORY; the text lies in the context's arena. */
#ifndef TARN_JSON_H
#define TARN_JSON_H
#include "base/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_json tarn_json;
/* Opens the object, with the number of its "schema" as its first member. */
TARN_API tarn_json *tarn_json_new(tarn_ctx *cx, int schema);
/* kind: '{' or '['; key: NULL inside an array, as below. Closed with '}' or ']'. */
TARN_API void tarn_json_open(tarn_json *j, const char *key, char kind);
TARN_API void tarn_json_close(tarn_json *j, char kind);
TARN_API void tarn_json_str(tarn_json *j, const char *key, const char *v); /* NULL: null */
TARN_API void tarn_json_num(tarn_json *j, const char *key, double v); /* infinite and NaN: null */
TARN_API void tarn_json_int(tarn_json *j, const char *key, int64_t v);
TARN_API void tarn_json_bool(tarn_json *j, const char *key, bool v);
TARN_API const char *tarn_json_text(tarn_json *j, size_t *n); /* closes the object */

#ifdef __cplusplus
}
#endif
#endif
