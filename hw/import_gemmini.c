/* The header of parameters that Gemmini's generator writes (#define NAME NUMBER, typedef TYPE
 * elem_t) as a description. */
#include "hw/internal.h"
#include <stdlib.h>
#include <string.h>

typedef struct importing {
  tarn_ctx *cx;
  const char *file, *text;
} importing;

/* What follows a word pair such as "#define DIM" at the beginning of a line; NULL: none does. */
static const char *after(const importing *m, const char *head, const char *name) {
  for (const char *line = m->text; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    const char *p = line + strlen(head);
    if (strncmp(line, head, strlen(head))) continue;
    p += strspn(p, " \t");
    size_t n = strcspn(p, " \t\r\n");
    if (n == strlen(name) && !strncmp(p, name, n)) return p + n;
  }
  return NULL;
}
static long long number(const importing *m, const char *name, long long most) {
  const char *p = after(m, "#define", name);
  if (!p) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: #define %s NUMBER is not there", m->file, name);
  p += strspn(p, " \t(");
  char *end;
  long long v = strtoll(p, &end, 10);
  if (end == p || v < 1 || v > most)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: #define %s: a whole number from 1 to %lld is expected",
               m->file, name, most);
  return v;
}
/* Products of 8-bit integers in 32-bit sums are what the meanings below say. */
static void is_type(const importing *m, const char *c, const char *name) {
  const char *p = after(m, "typedef", c);
  size_t n = p ? strspn(p, " \t") : 0;
  if (!p || strncmp(p + n, name, strlen(name)) || p[n + strlen(name)] != ';')
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: typedef %s %s; is expected", m->file, c, name);
}

static void put_intrinsics(tarn_buf *b, long long dim) {
  tarn_buf_fmt(b,
               "\n  (intrinsic matmul"
               "\n    (meaning (systolicArrayAcc %lld %lld"
               "\n      (compute (map (cast i32 $0)) (access 1 ?a))"
               "\n      (compute (map (cast i32 $0)) (access 0 ?b))"
               "\n      (access 2 ?c)))"
               "\n    (operand a (type i8) (memory spad) (dims %lld %lld))"
               "\n    (operand b (type i8) (memory spad) (dims %lld %lld))"
               "\n    (operand c (type i32) (memory acc) (dims %lld %lld))"
               "\n    (latency %lld) (throughput %.17g) (ops %lld))",
               dim, dim, dim, dim, dim, dim, dim, dim, 3 * dim, 1.0 / (double)dim, dim * dim * dim);
  tarn_buf_fmt(b,
               "\n  (intrinsic mvout"
               "\n    (meaning (compute (map (cast i8 (round (mul (cast f32 $0) $1)))) ?c "
               "(broadcast ((%lld %lld) ()) ?scale)))"
               "\n    (operand c (type i32) (memory acc) (dims %lld %lld)) "
               "(operand scale (type f32) (dims 1 1))"
               "\n    (operand y (type i8) (memory dram) (dims %lld %lld))"
               "\n    (latency %lld) (throughput %.17g) (ops %lld))",
               dim, dim, dim, dim, dim, dim, dim, 1.0 / (double)dim, dim * dim);
}
static void put_transfers(tarn_buf *b, long long dim, long long row) {
  static const struct {
    const char *name, *from, *to;
    int size;
  } t[] = {{"mvin", "dram", "spad", 1},
           {"mvin-acc", "dram", "acc", 4},
           {"mvout-spad", "spad", "dram", 1},
           {"mvout-acc", "acc", "dram", 4}};
  for (uint32_t i = 0; i < 4; i++)
    tarn_buf_fmt(b,
                 "\n  (transfer %s (from %s) (to %s) (rank 2) (stride %lld) (row-bytes %lld) "
                 "(entry %lld))",
                 t[i].name, t[i].from, t[i].to, 0xffffffffll / (dim * t[i].size), row,
                 (long long)tarn_ceildiv(dim * t[i].size, 16));
}

const char *tarn_hw_import_gemmini(tarn_ctx *cx, const char *text, size_t n, const char *file) {
  importing m = {cx, file, tarn_strndup(cx, text, n)};
  long long dim = number(&m, "DIM", 1024), banks = number(&m, "BANK_NUM", 4096);
  long long rows = number(&m, "BANK_ROWS", 1 << 24), acc = number(&m, "ACC_ROWS", 1 << 24);
  long long burst = number(&m, "MAX_BYTES", 1 << 20);
  is_type(&m, "int8_t", "elem_t"), is_type(&m, "int32_t", "acc_t");
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b,
               "(hw gemmini\n  (kind dsa) (clock 1e9) (units 1)"
               "\n  (memory acc (capacity %lld) (entry %lld) (banks 2) (managed) (read %lld) "
               "(write %lld) (latency 2) (keep sum bias))"
               "\n  (memory spad (capacity %lld) (entry %lld) (banks %lld) (managed) (read %lld) "
               "(write %lld) (latency 2) (keep activation weight))"
               "\n  (memory dram (read 16) (write 16) (latency 100) (align 16))",
               acc * dim * 4, dim * 4, dim * 4, dim * 4, banks * rows * dim, dim, banks, dim * 4,
               dim * 4);
  put_intrinsics(&b, dim), put_transfers(&b, dim, burst);
  tarn_buf_str(&b, "\n  (hazards hardware))\n");
  return b.p;
}
