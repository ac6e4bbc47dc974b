/* VTA's configuration (a JSON object of whole numbers) as a description.
 * Source of the encoding: hw_spec.h and the decoder of the accelerator's C++ model. */
#include "hw/yajl.h"
#include "hw/internal.h"
#include <string.h>

typedef struct importing {
  tarn_ctx *cx;
  const char *file, *target;
  yajl_val tree;
  tarn_buf b;
  int64_t batch, block;               /* log2 */
  int64_t width[3], size[3], bits[3]; /* INP WGT ACC: log2 of bits and bytes, bits of an index */
  int64_t uop;                        /* bits of an index of micro-ops */
} importing;
enum { INP, WGT, ACC };

static void parse(importing *m, const char *text, size_t n) {
  m->tree = tarn_yajl_parse(m->cx, m->file, text, n);
  if (!YAJL_IS_OBJECT(m->tree))
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: an object of VTA's parameters is expected", m->file);
}
static int64_t parameter(const importing *m, const char *key, int64_t lo, int64_t hi) {
  return tarn_yajl_whole(m->cx, m->file, m->tree, key, lo, hi);
}
static void positive(const importing *m, const char *what, int64_t bits) {
  if (bits < 1 || bits > 16)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: %s: log2 of its depth is %lld, 1 to 16 is expected",
               m->file, what, (long long)bits);
}

static void read_sizes(importing *m) {
  static const char *const name[] = {"INP", "WGT", "ACC"};
  m->batch = parameter(m, "LOG_BATCH", 0, 8);
  m->block = parameter(m, "LOG_BLOCK", 1, 8);
  const int64_t entry[] = {m->batch + m->block, 2 * m->block, m->batch + m->block};
  for (uint32_t i = 0; i < 3; i++) {
    int64_t narrow = i == ACC ? 5 : 3;
    m->width[i] = parameter(m, tarn_format(m->cx, "LOG_%s_WIDTH", name[i]), narrow, narrow);
    m->size[i] = parameter(m, tarn_format(m->cx, "LOG_%s_BUFF_SIZE", name[i]), 1, 40);
    m->bits[i] = m->size[i] - entry[i] - m->width[i] + 3;
    positive(m, name[i], m->bits[i]);
  }
  m->uop = parameter(m, "LOG_UOP_BUFF_SIZE", 3, 40) - 5 + 3;
  positive(m, "UOP", m->uop);
}
/* What does not fit the words of the encoding is another machine. */
static void check_fits(const importing *m) {
  long long index = m->bits[INP] + m->bits[WGT] + m->bits[ACC];
  if (index > 32)
    tarn_raise(m->cx, TARN_BAD_INPUT,
               "%s: indices of %lld (ACC), %lld (INP) and %lld (WGT) bits: a micro-op has 32, "
               "these are %lld",
               m->file, (long long)m->bits[ACC], (long long)m->bits[INP], (long long)m->bits[WGT],
               index);
  if (m->uop > 13)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: %lld bits of a micro-op's index, the encoding has 13",
               m->file, (long long)m->uop);
  if (m->bits[ACC] > 11)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: %lld bits of an index of ACC, the encoding has 11",
               m->file, (long long)m->bits[ACC]);
}

/* ---------------------------------------------------------------- the text */
static long long entry(const importing *m, uint32_t i) {
  int64_t log = (i == WGT ? m->block : m->batch) + m->block + m->width[i] - 3;
  return 1ll << log;
}
static void put_memory(importing *m, const char *name, long long size, long long each,
                       long long read, long long write, const char *more) {
  tarn_buf_fmt(&m->b,
               "\n  (memory %s (capacity %lld) (entry %lld) (managed) (read %lld) (write %lld) "
               "(latency 1)%s)",
               name, size, each, read, write, more);
}
static void put_memories(importing *m, long long bus) {
  long long acc = 1ll << m->size[ACC], out = acc >> 2;
  put_memory(m, "wgt", 1ll << m->size[WGT], entry(m, WGT), entry(m, WGT), bus, " (keep weight)");
  put_memory(m, "acc", acc, entry(m, ACC), entry(m, ACC), entry(m, ACC), " (keep sum bias)");
  put_memory(m, "inp", 1ll << m->size[INP], entry(m, INP), entry(m, INP), bus,
             " (keep activation)");
  put_memory(m, "out", out, entry(m, INP), bus, entry(m, INP), " (shadow-of acc) (keep result)");
  put_memory(m, "uop", 4ll << m->uop, 4, bus, bus, " (keep micro-op)");
  tarn_buf_fmt(&m->b, "\n  (memory dram (read %lld) (write %lld) (latency 30) (align 64))", bus,
               bus);
}
static void put_row(importing *m, const char *name, const char *type, const char *memory) {
  tarn_buf_fmt(&m->b, "\n    (operand %s (type %s) (memory %s) (dims %lld %lld))", name, type,
               memory, 1ll << m->batch, 1ll << m->block);
}
static void put_product(importing *m) {
  long long block = 1ll << m->block;
  tarn_buf_str(&m->b, "\n  (intrinsic gemm"
                      "\n    (meaning (compute"
                      "\n      (epi (add $1 $0) (red (sum i32) (mul (cast i32 $0) (cast i32 $1)) "
                      "(tuple 2)))"
                      "\n      (cartProd (access 1 ?a) (access 1 ?b)) ?c))");
  put_row(m, "a", "i8", "inp");
  tarn_buf_fmt(&m->b, "\n    (operand b (type i8) (memory wgt) (dims %lld %lld))", block, block);
  put_row(m, "c", "i32", "acc");
  tarn_buf_fmt(&m->b, "\n    (latency 3) (throughput 1) (ops %lld) (startup 6) (reuse-distance 3))",
               (1ll << m->batch) * block * block);
}
static void put_vector(importing *m, const char *op, bool immediate, int lo, int hi) {
  long long batch = 1ll << m->batch, block = 1ll << m->block;
  tarn_buf_fmt(&m->b, "\n  (intrinsic %s%s\n    (meaning (compute (map (%s $0 $1)) ?a ", op,
               immediate ? "-imm" : "", op);
  if (immediate) tarn_buf_fmt(&m->b, "(broadcast ((%lld %lld) ()) ?b)))", batch, block);
  else tarn_buf_str(&m->b, "?b))");
  put_row(m, "a", "i32", "acc");
  if (immediate)
    tarn_buf_fmt(&m->b, " (operand b (type i32) (dims 1 1) (immediate %d %d))", lo, hi);
  else put_row(m, "b", "i32", "acc");
  put_row(m, "c", "i32", "acc");
  tarn_buf_fmt(&m->b,
               "\n    (latency 3) (throughput %s) (ops %lld) (startup 6) (reuse-distance 3))",
               immediate ? "1" : "0.5", batch * block);
}
static void put_intrinsics(importing *m) {
  static const char *const op[] = {"add", "max", "min"};
  put_product(m);
  for (uint32_t i = 0; i < 3; i++)
    put_vector(m, op[i], false, 0, 0), put_vector(m, op[i], true, -32768, 32767);
  put_vector(m, "shr", true, 0, 15);
  tarn_buf_str(&m->b, "\n  (intrinsic store\n    (meaning (compute (map (cast i8 $0)) ?a))");
  put_row(m, "a", "i32", "acc"), put_row(m, "y", "i8", "out");
  tarn_buf_fmt(&m->b, "\n    (latency 2) (throughput 0.5) (ops %lld))",
               (1ll << m->batch) << m->block);
}
static void put_transfers(importing *m, long long bus) {
  const struct {
    const char *name, *more;
    long long bytes;
  } in[] = {{"inp", " (rank 2) (stride 65535) (pad 15)", entry(m, INP)},
            {"wgt", " (rank 2) (stride 65535)", entry(m, WGT)},
            {"acc", " (rank 2) (stride 65535) (pad 15)", entry(m, ACC)},
            {"uop", "", 4}};
  for (uint32_t i = 0; i < 4; i++)
    tarn_buf_fmt(&m->b, "\n  (transfer load-%s (from dram) (to %s)%s (entry %lld))", in[i].name,
                 in[i].name, in[i].more, (long long)tarn_ceildiv(in[i].bytes, bus));
  tarn_buf_fmt(&m->b,
               "\n  (transfer store (from out) (to dram) (intrinsic store) (rank 2) "
               "(stride 65535) (entry %lld))",
               (long long)tarn_ceildiv(entry(m, INP), bus));
}
static void put_queues(importing *m) {
  static const char *const queue[] = {"load", "compute", "store"};
  static const char *const token[][3] = {{"l2c", "load", "compute"},
                                         {"c2l", "compute", "load"},
                                         {"c2s", "compute", "store"},
                                         {"s2c", "store", "compute"}};
  for (uint32_t i = 0; i < 3; i++) tarn_buf_fmt(&m->b, "\n  (queue %s (depth 512))", queue[i]);
  for (uint32_t i = 0; i < 4; i++)
    tarn_buf_fmt(&m->b, "\n  (token %s (from %s) (to %s) (capacity 512))", token[i][0], token[i][1],
                 token[i][2]);
}

typedef struct row {
  const char *name;
  int64_t width;
} row;
static void put_fields(importing *m, int64_t at, const row *f, uint32_t n) {
  for (uint32_t i = 0; i < n; at += f[i++].width)
    tarn_buf_fmt(&m->b, "\n    (field %s %lld %lld)", f[i].name, (long long)at,
                 (long long)f[i].width);
}
static void open_format(importing *m, const char *name) {
  static const row flags[] = {
      {"opcode", 3}, {"pop-prev", 1}, {"pop-next", 1}, {"push-prev", 1}, {"push-next", 1}};
  tarn_buf_fmt(&m->b, "\n  (format %s (bits 128)", name);
  put_fields(m, 0, flags, 5);
}
/* Word 0 of what computes, and in word 1 the factors of destination and source. */
static void open_compute(importing *m, const char *name, int64_t src) {
  const row low[] = {{"reset", 1}, {"begin", m->uop}, {"end", m->uop + 1}, {"out", 14}, {"in", 14}};
  const row high[] = {
      {"dst-out", m->bits[ACC]}, {"dst-in", m->bits[ACC]}, {"src-out", src}, {"src-in", src}};
  open_format(m, name);
  put_fields(m, 7, low, 5), put_fields(m, 64, high, 4);
}
static void put_formats(importing *m) {
  static const row low[] = {{"memory", 3}, {"sram", 16}, {"dram", 32}};
  static const row high[] = {{"y-size", 16},    {"x-size", 16},  {"x-stride", 16}, {"pad-top", 4},
                             {"pad-bottom", 4}, {"pad-left", 4}, {"pad-right", 4}};
  const int64_t *bits = m->bits;
  open_format(m, "memory");
  put_fields(m, 7, low, 3), put_fields(m, 64, high, 7), tarn_buf_str(&m->b, ")");
  const row wgt[] = {{"wgt-out", bits[WGT]}, {"wgt-in", bits[WGT]}};
  open_compute(m, "gemm", bits[INP]);
  put_fields(m, 64 + 2 * (bits[ACC] + bits[INP]), wgt, 2), tarn_buf_str(&m->b, ")");
  const row alu[] = {{"operation", 3}, {"use-imm", 1}};
  open_compute(m, "alu", bits[ACC]);
  put_fields(m, 64 + 4 * bits[ACC], alu, 2);
  tarn_buf_fmt(&m->b, "\n    (field imm %lld 16 signed))", (long long)(68 + 4 * bits[ACC]));
  const row uop[] = {{"dst", bits[ACC]}, {"src", bits[INP]}, {"wgt", bits[WGT]}};
  tarn_buf_str(&m->b, "\n  (format micro-op (bits 32)");
  put_fields(m, 0, uop, 3), tarn_buf_str(&m->b, ")");
}

static const char to_load[] = "\n    (pop pop-next c2l) (push push-next l2c)";
static const char to_compute[] =
    "\n    (pop pop-prev l2c) (pop pop-next s2c) (push push-prev c2l) (push push-next c2s)";
static const char to_store[] = "\n    (pop pop-prev c2s) (push push-prev s2c)";
static void put_moves(importing *m) {
  static const struct {
    const char *name, *queue, *tokens, *is, *more;
    int opcode, memory;
  } move[] = {
      {"load-uop", "compute", to_compute, " (is y-size 1)", "", 0, 0},
      {"load-wgt", "load", to_load, "", " (rows y-size) (stride x-stride)", 0, 1},
      {"load-inp", "load", to_load, "",
       " (rows y-size) (stride x-stride) (pad pad-top pad-bottom pad-left pad-right)", 0, 2},
      {"load-acc", "compute", to_compute, "",
       " (rows y-size) (stride x-stride) (pad pad-top pad-bottom pad-left pad-right)", 0, 3},
      {"store", "store", to_store, "", " (rows y-size) (stride x-stride)", 1, 4}};
  for (uint32_t i = 0; i < 5; i++)
    tarn_buf_fmt(&m->b,
                 "\n  (instruction %s (format memory) (queue %s) (is opcode %d) (is memory %d)%s%s"
                 "\n    (move %s (local sram) (main dram) (entries x-size)%s))",
                 move[i].name, move[i].queue, move[i].opcode, move[i].memory, move[i].is,
                 move[i].tokens, move[i].name, move[i].more);
}
static void put_alu(importing *m, const char *op, int code, bool immediate) {
  const char *suffix = immediate ? "-imm" : "";
  tarn_buf_fmt(&m->b,
               "\n  (instruction %s%s (format alu) (queue compute) (is opcode 4) (is operation "
               "%d) (is use-imm %d)%s\n    (run %s%s (steps uop begin end micro-op) (loops out in)"
               "\n      (index a dst dst-out dst-in) %s (index c dst dst-out dst-in)))",
               op, suffix, code, immediate, to_compute, op, suffix,
               immediate ? "(immediate b imm)" : "(index b src src-out src-in)");
}
static void put_instructions(importing *m) {
  static const char *const op[] = {"min", "max", "add"};
  put_moves(m);
  tarn_buf_fmt(&m->b,
               "\n  (instruction gemm (format gemm) (queue compute) (is opcode 2)%s"
               "\n    (run gemm (steps uop begin end micro-op) (loops out in) (clear reset)"
               "\n      (index c dst dst-out dst-in) (index a src src-out src-in) "
               "(index b wgt wgt-out wgt-in)))"
               "\n  (instruction finish (format gemm) (queue compute) (is opcode 3)%s (end))",
               to_compute, to_compute);
  for (int i = 0; i < 3; i++) put_alu(m, op[i], i, false), put_alu(m, op[i], i, true);
  put_alu(m, "shr", 3, true);
}

const char *tarn_hw_import_vta(tarn_ctx *cx, const char *text, size_t n, const char *file) {
  importing m = {.cx = cx, .file = file, .b = {.cx = cx}};
  parse(&m, text, n);
  m.target = tarn_yajl_string(cx, m.file, m.tree, "TARGET");
  read_sizes(&m), check_fits(&m);
  bool wide = !strcmp(m.target, "ultra96") || !strcmp(m.target, "zcu104");
  long long bus = wide ? 16 : 8;
  tarn_buf_str(&m.b, "(hw ");
  tarn_sx_name(&m.b, tarn_format(cx, "vta-%s", m.target), strlen(m.target) + 4);
  tarn_buf_fmt(&m.b, "\n  (kind dsa) (host %s) (clock %s) (units 1)",
               wide ? "aarch64" : "cortex-a9", wide ? "3.33e8" : "1e8");
  put_memories(&m, bus), put_intrinsics(&m), put_transfers(&m, bus), put_queues(&m);
  put_formats(&m), put_instructions(&m);
  tarn_buf_str(&m.b, "\n  (limits (buffer 33554432) (address-bits 32))"
                     "\n  (quirks store-needs-compute-write reset-before-accumulation))\n");
  return m.b.p;
}
