/* Writing JSON. */
#include "base/json.h"
#include <math.h>
#include <string.h>

struct tarn_json {
  tarn_buf b;
  int depth;
  bool first; /* in the innermost object or list */
};
static void new_line(tarn_json *j) { tarn_buf_fmt(&j->b, "\n%*s", 2 * j->depth, ""); }
static void quoted(tarn_json *j, const char *s) {
  tarn_buf_str(&j->b, "\"");
  tarn_buf_as(&j->b, TARN_AS_JSON, s, strlen(s));
  tarn_buf_str(&j->b, "\"");
}
/* What stands before a value. */
static void begin(tarn_json *j, const char *key) {
  if (!j->first) tarn_buf_str(&j->b, ",");
  j->first = false;
  new_line(j);
  if (!key) return;
  quoted(j, key);
  tarn_buf_str(&j->b, ": ");
}
tarn_json *tarn_json_new(tarn_ctx *cx, int schema) {
  tarn_json *j = TARN_NEW(cx, tarn_json);
  *j = (tarn_json){.b = {.cx = cx}, .depth = 1, .first = true};
  tarn_buf_str(&j->b, "{");
  tarn_json_int(j, "schema", schema);
  return j;
}
void tarn_json_open(tarn_json *j, const char *key, char kind) {
  begin(j, key);
  tarn_buf_add(&j->b, &kind, 1);
  j->depth++;
  j->first = true;
}
void tarn_json_close(tarn_json *j, char kind) {
  j->depth--;
  if (!j->first) new_line(j);
  tarn_buf_add(&j->b, &kind, 1);
  j->first = false;
}
void tarn_json_str(tarn_json *j, const char *key, const char *v) {
  begin(j, key);
  if (v) quoted(j, v);
  else tarn_buf_str(&j->b, "null");
}
void tarn_json_num(tarn_json *j, const char *key, double v) {
  begin(j, key);
  if (isfinite(v)) tarn_buf_double(&j->b, v);
  else tarn_buf_str(&j->b, "null");
}
void tarn_json_int(tarn_json *j, const char *key, int64_t v) {
  begin(j, key);
  tarn_buf_fmt(&j->b, "%lld", (long long)v);
}
void tarn_json_bool(tarn_json *j, const char *key, bool v) {
  begin(j, key);
  tarn_buf_str(&j->b, v ? "true" : "false");
}
const char *tarn_json_text(tarn_json *j, size_t *n) {
  tarn_json_close(j, '}');
  tarn_buf_str(&j->b, "\n");
  *n = j->b.n;
  return j->b.p;
}
