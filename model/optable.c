/* The table of operators, from ops.def. */
#include "model/import.h"
#include <string.h>

#define ONNX(name, lo, hi, handler, min, max) im_handler im_do_##handler;
#include "model/ops.def"
#undef ONNX

static const im_op table[] = {
#define ONNX(name, lo, hi, handler, min, max) {#name, lo, hi, im_do_##handler, min, max},
#include "model/ops.def"
#undef ONNX
};

bool im_op_plain(const char *name) {
  static const char *const plain[] = {
#define PLAIN(name) #name,
#include "model/ops.def"
#undef PLAIN
  };
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (strcmp(plain[i], name) == 0) return true;
  return false;
}

const im_op *im_op_find(const char *name, int64_t version, bool *known) {
  *known = false;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(table[i].name, name) != 0) continue;
    *known = true;
    if (version >= table[i].lo && version <= table[i].hi) return &table[i];
  }
  return NULL;
}
