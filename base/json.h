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
/* Members, up to ten, each a key and a value of any of these types, and an object of them. A truth
 * value has to be a bool: true and comparisons are of type int.
 *
 *   tarn_json_put(j, "name", k->name, "price", k->price, "copies", k->copies);
 *   tarn_json_object(j, "shape", "rows", m, "columns", n); */
#define tarn_json_put(j, ...)                                                                      \
  TARN_JSON_BY(__VA_ARGS__, TARN_JSON_10, 0, TARN_JSON_9, 0, TARN_JSON_8, 0, TARN_JSON_7, 0,       \
               TARN_JSON_6, 0, TARN_JSON_5, 0, TARN_JSON_4, 0, TARN_JSON_3, 0, TARN_JSON_2, 0,     \
               TARN_JSON_1, 0)                                                                     \
  (j, __VA_ARGS__)
#define tarn_json_object(j, key, ...)                                                              \
  (tarn_json_open(j, key, '{'), tarn_json_put(j, __VA_ARGS__), tarn_json_close(j, '}'))
TARN_API const char *tarn_json_text(tarn_json *j, size_t *n); /* closes the object */

#define TARN_JSON_1(j, key, value)                                                                 \
  _Generic((value),                                                                                \
      bool: tarn_json_bool,                                                                        \
      float: tarn_json_num,                                                                        \
      double: tarn_json_num,                                                                       \
      char *: tarn_json_str,                                                                       \
      const char *: tarn_json_str,                                                                 \
      default: tarn_json_int)(j, key, value)
#define TARN_JSON_2(j, key, value, ...)  TARN_JSON_1(j, key, value), TARN_JSON_1(j, __VA_ARGS__)
#define TARN_JSON_3(j, key, value, ...)  TARN_JSON_1(j, key, value), TARN_JSON_2(j, __VA_ARGS__)
#define TARN_JSON_4(j, key, value, ...)  TARN_JSON_1(j, key, value), TARN_JSON_3(j, __VA_ARGS__)
#define TARN_JSON_5(j, key, value, ...)  TARN_JSON_1(j, key, value), TARN_JSON_4(j, __VA_ARGS__)
#define TARN_JSON_6(j, key, value, ...)  TARN_JSON_1(j, key, value), TARN_JSON_5(j, __VA_ARGS__)
#define TARN_JSON_7(j, key, value, ...)  TARN_JSON_1(j, key, value), TARN_JSON_6(j, __VA_ARGS__)
#define TARN_JSON_8(j, key, value, ...)  TARN_JSON_1(j, key, value), TARN_JSON_7(j, __VA_ARGS__)
#define TARN_JSON_9(j, key, value, ...)  TARN_JSON_1(j, key, value), TARN_JSON_8(j, __VA_ARGS__)
#define TARN_JSON_10(j, key, value, ...) TARN_JSON_1(j, key, value), TARN_JSON_9(j, __VA_ARGS__)
/* The macro behind so many pairs. */
#define TARN_JSON_BY(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, by, ...) by

#ifdef __cplusplus
}
#endif
#endif
