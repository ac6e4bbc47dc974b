/* json_get [PATH…] < FILE: fails unless standard input is one JSON document; prints what stands at
 * each path. A path is keys and indices with dots between; # is how many there are: iterations.#,
 * iterations.0.nodes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

static yajl_val step(yajl_val v, const char *key) {
  if (YAJL_IS_ARRAY(v)) {
    char *end;
    size_t i = strtoul(key, &end, 10);
    return *end || i >= YAJL_GET_ARRAY(v)->len ? NULL : YAJL_GET_ARRAY(v)->values[i];
  }
  if (!YAJL_IS_OBJECT(v)) return NULL;
  for (size_t i = 0; i < YAJL_GET_OBJECT(v)->len; i++)
    if (!strcmp(YAJL_GET_OBJECT(v)->keys[i], key)) return YAJL_GET_OBJECT(v)->values[i];
  return NULL;
}
static void show(yajl_val v) {
  if (YAJL_IS_STRING(v)) puts(v->u.string);
  else if (YAJL_IS_NUMBER(v)) puts(v->u.number.r);
  else
    puts(YAJL_IS_TRUE(v)    ? "true"
         : YAJL_IS_FALSE(v) ? "false"
         : YAJL_IS_NULL(v)  ? "null"
                            : "composite");
}
static int get(yajl_val v, char *path) {
  for (char *key = strtok(path, "."); key; key = strtok(NULL, ".")) {
    if (!strcmp(key, "#") && (YAJL_IS_ARRAY(v) || YAJL_IS_OBJECT(v))) {
      printf("%zu\n", YAJL_IS_ARRAY(v) ? YAJL_GET_ARRAY(v)->len : YAJL_GET_OBJECT(v)->len);
      return 0;
    }
    v = step(v, key);
    if (!v) return fprintf(stderr, "json_get: no %s\n", key), 1;
  }
  show(v);
  return 0;
}

int main(int argc, char **argv) {
  static char text[64 << 20], error[512];
  size_t n = fread(text, 1, sizeof text - 1, stdin);
  yajl_val v = n + 1 < sizeof text ? yajl_tree_parse(text, error, sizeof error) : NULL;
  int bad = 0;
  if (!v) return fprintf(stderr, "json_get: %s\n", error), 1;
  for (int i = 1; i < argc; i++) bad |= get(v, argv[i]);
  yajl_tree_free(v);
  return bad;
}
