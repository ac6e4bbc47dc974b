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
static long long defined_as(const importing *m, const char *name, long long most) {
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

/* Texts in which @ stands for the rows and columns of the array. */
static const char on_the_way[] =
    "\n  (intrinsic mvout"
    "\n    (meaning (compute (map (cast i8 (min (max (round (mul (cast f32 $0) $1)) -128.0) "
    "127.0))) ?c (broadcast ((1 @) ()) ?scale)))"
    "\n    (operand c (type i32) (memory acc) (dims 1 @)) (operand scale (type f32) (dims 1 1) "
    "(immediate 0 1024))"
    "\n    (operand y (type i8) (memory dram) (dims 1 @))"
    "\n    (latency @) (throughput 1) (ops @))"
    "\n  (intrinsic mvout-relu"
    "\n    (meaning (compute (map (cast i8 (min (max (round (mul (cast f32 $0) $1)) 0.0) 127.0))) "
    "?c (broadcast ((1 @) ()) ?scale)))"
    "\n    (operand c (type i32) (memory acc) (dims 1 @)) (operand scale (type f32) (dims 1 1) "
    "(immediate 0 1024))"
    "\n    (operand y (type i8) (memory dram) (dims 1 @))"
    "\n    (latency @) (throughput 1) (ops @))"
    "\n  (intrinsic mvin-add"
    "\n    (meaning (compute (map (add $0 $1)) ?x ?c))"
    "\n    (operand x (type i32) (memory dram) (dims 1 @)) (operand c (type i32) (memory acc) "
    "(dims 1 @)) (ops @))"
    "\n  (intrinsic mvin-wide"
    "\n    (meaning (compute (map (cast i32 $0)) ?x))"
    "\n    (operand x (type i8) (memory dram) (dims 1 @)) (operand c (type i32) (memory acc) (dims "
    "1 @)) (ops @))"
    "\n  (intrinsic mvin-wide-add"
    "\n    (meaning (compute (map (add (cast i32 $0) $1)) ?x ?c))"
    "\n    (operand x (type i8) (memory dram) (dims 1 @)) (operand c (type i32) (memory acc) (dims "
    "1 @)) (ops @))";
static const char commands[] =
    "\n  (queue load (depth 8)) (queue execute (depth 16)) (queue store (depth 4))"
    "\n  (hazards hardware)"
    "\n  (register ld0-stride (bits 32)) (register ld0-block (bits 16))"
    "\n  (register ld1-stride (bits 32)) (register ld1-block (bits 16))"
    "\n  (register ld2-stride (bits 32)) (register ld2-block (bits 16))"
    "\n  (register ld2-narrow (bits 1)) (register st-stride (bits 32)) (register st-scale (bits "
    "32)) (register st-relu (bits 2))"
    "\n  (register b (bits 29)) (register c (bits 29)) (register c-accumulate (bits 1)) (register "
    "stationary (bits 1))"
    "\n  (format config-ex (bits 160)"
    "\n    (field opcode 0 7) (field xs2 12 1) (field xs1 13 1) (field code 25 7)"
    "\n    (field kind 32 2) (field stationary 34 1) (field a-stride 48 16) (field c-stride 144 "
    "16))"
    "\n  (format config-ld (bits 160)"
    "\n    (field opcode 0 7) (field xs2 12 1) (field xs1 13 1) (field code 25 7)"
    "\n    (field kind 32 2) (field narrow 34 1) (field state 35 2) (field block 48 16) (field "
    "scale 64 32) (field stride 96 32))"
    "\n  (format config-st (bits 160)"
    "\n    (field opcode 0 7) (field xs2 12 1) (field xs1 13 1) (field code 25 7)"
    "\n    (field kind 32 2) (field relu 34 2) (field stride 96 32) (field scale 128 32))"
    "\n  (format move (bits 160)"
    "\n    (field opcode 0 7) (field xs2 12 1) (field xs1 13 1) (field code 25 7)"
    "\n    (field dram 32 48) (field row 96 29) (field full 125 1) (field accumulate 126 1) (field "
    "acc 127 1) (field columns 128 16) (field rows 144 16))"
    "\n  (format preload (bits 160)"
    "\n    (field opcode 0 7) (field xs2 12 1) (field xs1 13 1) (field code 25 7)"
    "\n    (field b 32 29) (field b-acc 63 1) (field b-columns 64 16) (field b-rows 80 16)"
    "\n    (field c 96 29) (field c-accumulate 126 1) (field c-acc 127 1) (field c-columns 128 16) "
    "(field c-rows 144 16))"
    "\n  (format compute (bits 160)"
    "\n    (field opcode 0 7) (field xs2 12 1) (field xs1 13 1) (field code 25 7)"
    "\n    (field a 32 29) (field a-acc 63 1) (field a-columns 64 16) (field a-rows 80 16) (field "
    "d 96 32) (field d-columns 128 16) (field d-rows 144 16))"
    "\n  (format flush (bits 160) (field opcode 0 7) (field xs2 12 1) (field xs1 13 1) (field code "
    "25 7))"
    "\n  (instruction config-ex (format config-ex) (queue execute) (is opcode 123) (is xs1 1) (is "
    "xs2 1) (is code 0)"
    "\n    (is kind 0) (is a-stride 1) (is c-stride 1) (set stationary stationary))"
    "\n  (instruction config-ld0 (format config-ld) (queue load) (is opcode 123) (is xs1 1) (is "
    "xs2 1) (is code 0)"
    "\n    (is kind 1) (is state 0) (is narrow 0) (is scale 1065353216) (set ld0-stride stride) "
    "(set ld0-block block))"
    "\n  (instruction config-ld1 (format config-ld) (queue load) (is opcode 123) (is xs1 1) (is "
    "xs2 1) (is code 0)"
    "\n    (is kind 1) (is state 1) (is narrow 0) (is scale 1065353216) (set ld1-stride stride) "
    "(set ld1-block block))"
    "\n  (instruction config-ld2 (format config-ld) (queue load) (is opcode 123) (is xs1 1) (is "
    "xs2 1) (is code 0)"
    "\n    (is kind 1) (is state 2) (is scale 1065353216) (set ld2-stride stride) (set ld2-block "
    "block) (set ld2-narrow narrow))"
    "\n  (instruction config-st (format config-st) (queue store) (is opcode 123) (is xs1 1) (is "
    "xs2 1) (is code 0)"
    "\n    (is kind 2) (set st-stride stride) (set st-scale scale) (set st-relu relu))"
    "\n  (instruction mvin (format move) (queue load) (is opcode 123) (is xs1 1) (is xs2 1) (is "
    "code 2)"
    "\n    (is acc 0)"
    "\n    (move mvin (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register ld0-stride) bytes) (block-stride (register ld0-block))))"
    "\n  (instruction mvin2 (format move) (queue load) (is opcode 123) (is xs1 1) (is xs2 1) (is "
    "code 1)"
    "\n    (is acc 0)"
    "\n    (move mvin (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register ld1-stride) bytes) (block-stride (register ld1-block))))"
    "\n  (instruction mvin-acc (format move) (queue load) (is opcode 123) (is xs1 1) (is xs2 1) "
    "(is code 14)"
    "\n    (is acc 1) (is accumulate 0) (is (register ld2-narrow) 0)"
    "\n    (move mvin-acc (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register ld2-stride) bytes) (block-stride (register ld2-block))))"
    "\n  (instruction mvin-add (format move) (queue load) (is opcode 123) (is xs1 1) (is xs2 1) "
    "(is code 14)"
    "\n    (is acc 1) (is accumulate 1) (is (register ld2-narrow) 0)"
    "\n    (move mvin-add (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register ld2-stride) bytes) (block-stride (register ld2-block))))"
    "\n  (instruction mvin-wide (format move) (queue load) (is opcode 123) (is xs1 1) (is xs2 1) "
    "(is code 14)"
    "\n    (is acc 1) (is accumulate 0) (is (register ld2-narrow) 1)"
    "\n    (move mvin-wide (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register ld2-stride) bytes) (block-stride (register ld2-block))))"
    "\n  (instruction mvin-wide-add (format move) (queue load) (is opcode 123) (is xs1 1) (is xs2 "
    "1) (is code 14)"
    "\n    (is acc 1) (is accumulate 1) (is (register ld2-narrow) 1)"
    "\n    (move mvin-wide-add (local row) (main dram bytes) (rows rows) (entries columns @) "
    "(stride (register ld2-stride) bytes) (block-stride (register ld2-block))))"
    "\n  (instruction mvout-spad (format move) (queue store) (is opcode 123) (is xs1 1) (is xs2 1) "
    "(is code 3)"
    "\n    (is acc 0)"
    "\n    (move mvout-spad (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register st-stride) bytes)))"
    "\n  (instruction mvout-acc (format move) (queue store) (is opcode 123) (is xs1 1) (is xs2 1) "
    "(is code 3)"
    "\n    (is acc 1) (is full 1)"
    "\n    (move mvout-acc (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register st-stride) bytes)))"
    "\n  (instruction mvout (format move) (queue store) (is opcode 123) (is xs1 1) (is xs2 1) (is "
    "code 3)"
    "\n    (is acc 1) (is full 0) (is (register st-relu) 0)"
    "\n    (move mvout (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register st-stride) bytes) (immediate scale (register st-scale))))"
    "\n  (instruction mvout-relu (format move) (queue store) (is opcode 123) (is xs1 1) (is xs2 1) "
    "(is code 3)"
    "\n    (is acc 1) (is full 0) (is (register st-relu) 1)"
    "\n    (move mvout-relu (local row) (main dram bytes) (rows rows) (entries columns @) (stride "
    "(register st-stride) bytes) (immediate scale (register st-scale))))"
    "\n  (instruction preload (format preload) (queue execute) (is opcode 123) (is xs1 1) (is xs2 "
    "1) (is code 6)"
    "\n    (is b-acc 0) (is b-columns @) (is b-rows @) (is c-acc 1) (is c-columns @) (is c-rows @)"
    "\n    (set b b) (set c c) (set c-accumulate c-accumulate))"
    "\n  (instruction compute (format compute) (queue execute) (is opcode 123) (is xs1 1) (is xs2 "
    "1) (is code 4)"
    "\n    (is (register stationary) 1) (is a-acc 0) (is a-columns @) (is a-rows @) (is d "
    "4294967295) (is d-columns @) (is d-rows @)"
    "\n    (run matmul (accumulate (register c-accumulate)) (index a a) (index b (register b)) "
    "(index c (register c))))"
    "\n  (instruction flush (format flush) (queue execute) (is opcode 123) (is xs1 1) (is xs2 1) "
    "(is code 7) (end)))";
static void put_text(tarn_buf *b, const char *text, long long dim) {
  for (; *text; text++)
    if (*text == '@') tarn_buf_fmt(b, "%lld", dim);
    else tarn_buf_add(b, text, 1);
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
}
static void put_transfers(tarn_buf *b, long long dim, long long row) {
  static const struct {
    const char *name, *from, *to;
    int size; /* bytes of an element in main memory */
    bool computes, one;
  } t[] = {{"mvin", "dram", "spad", 1, false, false},
           {"mvin-acc", "dram", "acc", 4, false, false},
           {"mvin-add", "dram", "acc", 4, true, false},
           {"mvin-wide", "dram", "acc", 1, true, false},
           {"mvin-wide-add", "dram", "acc", 1, true, false},
           {"mvout-spad", "spad", "dram", 1, false, true},
           {"mvout-acc", "acc", "dram", 4, false, true},
           {"mvout", "acc", "dram", 1, true, true},
           {"mvout-relu", "acc", "dram", 1, true, true}};
  for (uint32_t i = 0; i < sizeof t / sizeof *t; i++) {
    tarn_buf_fmt(b, "\n  (transfer %s (from %s) (to %s)", t[i].name, t[i].from, t[i].to);
    if (t[i].computes) tarn_buf_fmt(b, " (intrinsic %s)", t[i].name);
    tarn_buf_fmt(b, " (rank 2) (stride %lld) (most-rows %lld) (row-bytes %lld) (entry %lld))",
                 0xffffffffll / (dim * t[i].size), dim, t[i].one ? dim * t[i].size : row,
                 (long long)tarn_ceildiv(dim * t[i].size, 16));
  }
}

const char *tarn_hw_import_gemmini(tarn_ctx *cx, const char *text, size_t n, const char *file) {
  importing m = {cx, file, tarn_strndup(cx, text, n)};
  long long dim = defined_as(&m, "DIM", 1024), banks = defined_as(&m, "BANK_NUM", 4096);
  long long rows = defined_as(&m, "BANK_ROWS", 1 << 24), acc = defined_as(&m, "ACC_ROWS", 1 << 24);
  long long burst = defined_as(&m, "MAX_BYTES", 1 << 20);
  is_type(&m, "int8_t", "elem_t"), is_type(&m, "int32_t", "acc_t");
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b,
               "(hw gemmini\n  (kind dsa) (host riscv64) (clock 1e9) (units 1)"
               "\n  (memory acc (capacity %lld) (entry %lld) (banks 2) (managed) (read %lld) "
               "(write %lld) (latency 2) (keep sum bias))"
               "\n  (memory spad (capacity %lld) (entry %lld) (banks %lld) (managed) (read %lld) "
               "(write %lld) (latency 2) (keep activation weight))"
               "\n  (memory dram (read 16) (write 16) (latency 100) (align 16))",
               acc * dim * 4, dim * 4, dim * 4, dim * 4, banks * rows * dim, dim, banks, dim * 4,
               dim * 4);
  put_intrinsics(&b, dim), put_text(&b, on_the_way, dim);
  put_transfers(&b, dim, burst);
  put_text(&b, commands, dim), tarn_buf_str(&b, "\n");
  return b.p;
}
