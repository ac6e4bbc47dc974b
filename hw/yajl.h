/* Reading a JSON file. What has to be there and is not raises TARN_BAD_INPUT with the file and the
 * key. */
#ifndef TARN_HW_YAJL_H
#define TARN_HW_YAJL_H
#include "base/base.h"
#include <yajl/yajl_tree.h>

/* n bytes of text; freed at the end of the enclosing protected call. */
TARN_API yajl_val tarn_yajl_parse(tarn_ctx *cx, const char *file, const char *text, size_t n);
/* file: "key": what is wrong */
TARN_NORETURN TARN_API void tarn_yajl_refuse(tarn_ctx *cx, const char *file, const char *key,
                                             const char *what);
TARN_API bool tarn_yajl_has(yajl_val in, const char *key);
TARN_API int64_t tarn_yajl_whole(tarn_ctx *cx, const char *file, yajl_val in, const char *key,
                                 int64_t least, int64_t most);
/* In the arena. */
TARN_API const char *tarn_yajl_string(tarn_ctx *cx, const char *file, yajl_val in, const char *key);
/* How many items, and where they are. */
TARN_API uint32_t tarn_yajl_list(tarn_ctx *cx, const char *file, yajl_val in, const char *key,
                                 yajl_val **item);
/* The same of what may be absent: NULL, 0 or no items then. */
TARN_API yajl_val tarn_yajl_get(yajl_val in, const char *key, yajl_type type);
TARN_API double tarn_yajl_number(yajl_val in, const char *key);
TARN_API uint32_t tarn_yajl_items(yajl_val in, const char *key, yajl_val **item);
#endif
