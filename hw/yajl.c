/* JSON files of which each part has to be there. */
#include "hw/yajl.h"
#include <string.h>

static void drop(void *v) { yajl_tree_free(v); }
yajl_val tarn_yajl_parse(tarn_ctx *cx, const char *file, const char *text, size_t n) {
  char error[160];
  yajl_val tree = yajl_tree_parse(tarn_strndup(cx, text, n), error, sizeof error);
  if (!tree) {
    error[strcspn(error, "\n")] = 0;
    tarn_raise(cx, TARN_BAD_INPUT, "%s: no JSON: %s", file, tarn_shown(cx, error));
  }
  tarn_defer(cx, drop, tree);
  return tree;
}
void tarn_yajl_refuse(tarn_ctx *cx, const char *file, const char *key, const char *what) {
  tarn_raise(cx, TARN_BAD_INPUT, "%s: \"%s\": %s", file, key, what);
}
yajl_val tarn_yajl_get(yajl_val in, const char *key, yajl_type type) {
  return yajl_tree_get(in, (const char *[]){key, NULL}, type);
}
double tarn_yajl_number(yajl_val in, const char *key) {
  yajl_val v = tarn_yajl_get(in, key, yajl_t_number);
  return v ? YAJL_GET_DOUBLE(v) : 0;
}
uint32_t tarn_yajl_items(yajl_val in, const char *key, yajl_val **item) {
  yajl_val v = tarn_yajl_get(in, key, yajl_t_array);
  *item = v ? YAJL_GET_ARRAY(v)->values : NULL;
  return v ? (uint32_t)YAJL_GET_ARRAY(v)->len : 0;
}
static yajl_val member(tarn_ctx *cx, const char *file, yajl_val in, const char *key, yajl_type type,
                       const char *what) {
  yajl_val v = tarn_yajl_get(in, key, type);
  if (!v) tarn_yajl_refuse(cx, file, key, tarn_format(cx, "%s is expected", what));
  return v;
}
bool tarn_yajl_has(yajl_val in, const char *key) {
  return tarn_yajl_get(in, key, yajl_t_any) != NULL;
}
int64_t tarn_yajl_whole(tarn_ctx *cx, const char *file, yajl_val in, const char *key, int64_t least,
                        int64_t most) {
  yajl_val v = tarn_yajl_get(in, key, yajl_t_number);
  if (!v || !YAJL_IS_INTEGER(v) || YAJL_GET_INTEGER(v) < least || YAJL_GET_INTEGER(v) > most)
    tarn_yajl_refuse(cx, file, key,
                     tarn_format(cx, "a whole number from %lld to %lld is expected",
                                 (long long)least, (long long)most));
  return YAJL_GET_INTEGER(v);
}
const char *tarn_yajl_string(tarn_ctx *cx, const char *file, yajl_val in, const char *key) {
  return tarn_strdup(cx, YAJL_GET_STRING(member(cx, file, in, key, yajl_t_string, "a string")));
}
uint32_t tarn_yajl_list(tarn_ctx *cx, const char *file, yajl_val in, const char *key,
                        yajl_val **item) {
  member(cx, file, in, key, yajl_t_array, "a list");
  return tarn_yajl_items(in, key, item);
}
