/* hw/: descriptions read, checked, printed and read again; every refusal says where; what is asked
 * of a machine. */
#include "tests/folder.h"
#include "tests/terms.h"

#include "base/base.h"
#include "hw/hw.h"

/* ---------------------------------------------------------------- reading */
typedef struct reading {
  const char *text;
  const tarn_hw *hw;
} reading;
static void parse(tarn_ctx *c, void *arg) {
  reading *r = arg;
  r->hw = tarn_hw_parse(L, tarn_sx_read(c, r->text, strlen(r->text), "m.hw"));
}
static const tarn_hw *machine(const char *text) {
  reading r = {.text = text};
  must(parse, &r);
  return r.hw;
}

#define MEMORY "(memory l1 (capacity 32768) (read 64) (write 32)) (memory dram (read 8) (write 4))"
#define CPU    "(kind cpu) (triple \"x86_64\") (clock 2e9)"

static const char whole[] =
    "(hw all (kind dsa) (triple \"t\") (cpu \"c\") (features \"+f\") (clock 1.5e9) (units 3)\n"
    "  (vector (bits 256) (registers 16) (spreads)) (trip 0.5)\n"
    "  (core (overlap 12) (far 4) (streams 16) (page 8192) (pages 1024) (restart 9))\n"
    "  (memory acc (capacity 1024) (instances 2) (line 64) (ways 4) (align 32) (banks 8) (read 64) "
    "(write 32.5)\n"
    "    (latency 4) (hidden 0.95) (managed) (entry 16) (keep out bias))\n"
    "  (memory shadow (capacity 512) (read 1) (write 2) (shadow-of acc))\n"
    "  (memory dram (serves 3) (read 8) (write 4))\n"
    "  (intrinsic gemm (meaning (compute (reduceSum (mul $0 $1)) ?a ?b))\n"
    "    (operand a (type i8) (memory acc) (dims 1 16)) (operand b (type i8) (dims 16 16))\n"
    "    (operand y (type i32) (memory acc) (dims 1 16))\n"
    "    (latency 5) (throughput 0.5) (ops 256) (encoding \"gemm\") (reuse-distance 4) "
    "(startup 2))\n"
    "  (intrinsic add (meaning ?a) (operand a (type f32)) (operand y (type f32)))\n"
    "  (cycles (exp 12) (div 7.5)) (launch 1e-6) (barrier 2e-6) (hazards hardware)\n"
    "  (limits (instructions 7) (buffer 64) (address-bits 32)) (quirks store-needs-compute-write))";

static void check_fields(const tarn_hw *h) {
  ck_assert_str_eq(h->name, "all");
  ck_assert_int_eq(h->kind, TARN_HW_DSA);
  ck_assert_str_eq(h->triple, "t");
  ck_assert_str_eq(h->features, "+f");
  ck_assert(h->clock == 1.5e9 && h->units == 3 && h->launch == 1e-6 && h->barrier == 2e-6);
  ck_assert(h->vector_bits == 256 && h->vector_regs == 16 && h->nmem == 3 && h->nintrin == 2);
  ck_assert(h->spreads && h->trip == 0.5);
  ck_assert(h->core.overlap == 12 && h->core.far == 4 && h->core.streams == 16);
  ck_assert(h->core.page == 8192 && h->core.pages == 1024 && h->core.restart == 9);
  const tarn_hw_memory *m = tarn_hw_memory_find(h, "acc");
  ck_assert(m == &h->mem[0] && m->capacity == 1024 && m->instances == 2 && m->serves == 2 &&
            m->line == 64 && m->align == 32);
  ck_assert(m->ways == 4 && tarn_hw_way(m) == 256 && tarn_hw_ways(m) == 4 &&
            tarn_hw_ways(&h->mem[1]) == 12);
  ck_assert(tarn_hw_way(&(tarn_hw_memory){.capacity = 48 << 10}) == 4096 &&
            tarn_hw_ways(&(tarn_hw_memory){.ways = 16}) == 12);
  ck_assert(m->banks == 8 && m->read == 64 && m->write == 32.5 && m->latency == 4 && m->managed &&
            m->entry == 16);
  ck_assert(m->hidden == 0.95 && h->mem[2].hidden == 0.8);
  ck_assert(m->nkeep == 2 && !strcmp(m->keep[1], "bias") && !m->shadow_of);
  ck_assert_str_eq(h->mem[1].shadow_of, "acc");
  ck_assert(h->mem[2].capacity == 0 && h->mem[2].instances == 1 && h->mem[2].serves == 3 &&
            h->mem[2].line == 1 && !h->mem[2].managed);
  ck_assert_ptr_null(tarn_hw_memory_find(h, "l1"));
  const tarn_hw_intrinsic *n = &h->intrin[0];
  ck_assert(n->nop == 3 && n->latency == 5 && n->throughput == 0.5 && n->ops == 256);
  ck_assert_str_eq(n->encoding, "gemm");
  ck_assert(tarn_sx_is(n->meaning, "compute") && n->op[0].dtype == TARN_I8 &&
            n->op[2].dtype == TARN_I32);
  ck_assert(n->op[1].n == 2 && n->op[1].dim[0] == 16 && !strcmp(n->op[1].memory, "") &&
            !strcmp(n->op[2].memory, "acc"));
  ck_assert(n->reuse == 4 && n->startup == 2 && h->hazards);
  ck_assert(h->instructions == 7 && h->buffer == 64 && h->address_bits == 32);
  ck_assert_uint_eq(h->quirks, TARN_HW_STORE_NEEDS_COMPUTE);
}
START_TEST(every_form) { check_fields(machine(whole)); }
END_TEST

START_TEST(round_trip) {
  const tarn_hw *h = machine(whole);
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  tarn_hw_print(h, &a);
  const tarn_hw *again = machine(a.p);
  check_fields(again);
  tarn_hw_print(again, &b);
  ck_assert_str_eq(a.p, b.p);
}
END_TEST

/* ---------------------------------------------------------------- accelerators */
#define VECTOR                                                                                     \
  "(memory acc (capacity 64) (entry 16) (read 1) (write 1))\n"                                     \
  "(memory uop (capacity 16) (entry 4) (read 1) (write 1)) (memory dram (read 1) (write 1))\n"
#define DOUBLED                                                                                    \
  "(intrinsic add (meaning (compute (map (add $0 $1)) ?a (broadcast ((4) ()) ?b)))\n"              \
  "(operand a (type i32) (memory acc) (dims 4)) (operand b (type i32) (dims 1) (immediate -8 "     \
  "7))\n"                                                                                          \
  "(operand c (type i32) (memory acc) (dims 4)))\n"
#define PATHS                                                                                      \
  "(transfer in (from dram) (to acc) (rank 2) (stride 15) (pad 3) (row-bytes 32) (startup 1)\n"    \
  "(row 2) (entry 3) (row-latency)) (transfer ops (from dram) (to uop) (entry 1))\n"               \
  "(transfer out (from acc) (to dram) (entry 1))\n"
#define QUEUES                                                                                     \
  "(queue io (depth 4)) (queue alu) (token go (from io) (to alu) (capacity 2))\n"                  \
  "(token back (from alu) (to io))\n"
#define FORMATS                                                                                    \
  "(format word (bits 32) (field op 0 2) (field pop 2 1) (field push 3 1) (field at 4 2)\n"        \
  "(field main 8 8) (field n 16 2) (field rows 18 2) (field stride 20 4) (field top 24 2)\n"       \
  "(field bottom 26 2) (field left 28 2) (field right 30 2))\n"                                    \
  "(format sum (bits 32) (field op 0 2) (field pop 2 1) (field push 3 1) (field clear 4 1)\n"      \
  "(field begin 8 2) (field end 10 3) (field times 13 3) (field step 16 2)\n"                      \
  "(field imm 24 4 signed)) (format micro (bits 32) (field dst 0 2))\n"
/* An instruction that moves, with something in it. */
#define FIXED(is)                                                                                  \
  HEAD VECTOR DOUBLED PATHS QUEUES FORMATS                                                         \
      "(instruction in (format word) (queue io) " is                                               \
      " (move in (local at) (main main) (entries n) "                                              \
      "(rows rows) (stride stride) (pad top bottom left right))))"
#define IN                                                                                         \
  "(instruction in (format word) (queue io) (is op 0) (pop pop back) (push push go) (move in\n"    \
  "(local at) (main main bytes) (entries n) (rows rows) (stride stride)\n"                         \
  "(pad top bottom left right)))\n"
#define ADD                                                                                        \
  "(instruction add (format sum) (queue alu) (is op 1) (pop pop go) (push push back) (run add\n"   \
  "(steps uop begin end micro) (loops times) (clear clear) (index a dst step) (index c dst "       \
  "step)\n"                                                                                        \
  "(immediate b imm)))\n"
#define STOP      "(instruction stop (format word) (queue alu) (is op 3) (end))"
#define HEAD      "(hw m (kind dsa) (clock 1e9)\n"
#define MACHINE_A HEAD VECTOR DOUBLED PATHS QUEUES FORMATS IN ADD STOP

START_TEST(accelerator) {
  const tarn_hw *h = machine(MACHINE_A ")");
  ck_assert(h->nqueue == 2 && h->queue[0].depth == 4 && h->queue[1].depth == 0);
  ck_assert(h->ntoken == 2 && h->token[0].from == 0 && h->token[0].to == 1 &&
            h->token[0].capacity == 2);
  const tarn_hw_transfer *t = &h->transfer[0];
  ck_assert(h->ntransfer == 3 && t->from == 2 && t->to == 0 && t->rank == 2 && t->stride == 15);
  ck_assert(t->pad == 3 && t->row_bytes == 32 && t->startup == 1 && t->row == 2 && t->entry == 3 &&
            t->row_latency && t->intrinsic == TARN_NONE);
  ck_assert(h->nformat == 3 && h->format[1].nfield == 9 && h->format[1].field[8].is_signed);
  const tarn_hw_instruction *in = &h->instruction[0], *add = &h->instruction[1];
  ck_assert(h->ninstruction == 3 && in->does == TARN_HW_MOVES && in->bytes && in->pad[3] == 11);
  ck_assert(add->does == TARN_HW_RUNS && add->nloop == 1 && add->nindex == 2 && add->steps == 1);
  ck_assert(add->npop == 1 && add->pop[0].token == 0 && add->push[0].token == 1 &&
            add->is[0].value == 1);
  ck_assert(h->instruction[2].does == TARN_HW_ENDS && h->intrin[0].op[1].immediate);
  ck_assert(h->intrin[0].op[1].lo == -8 && h->intrin[0].op[1].hi == 7);
}
END_TEST

/* ---------------------------------------------------------------- what is asked of a machine */
START_TEST(questions) {
  const tarn_hw *h =
      machine("(hw m " CPU " (units 4) (vector (bits 256) (registers 16)) " MEMORY
              "(intrinsic fma (meaning ?a) (operand a (type f32)) (operand y (type f32)) "
              "(throughput 2) (ops 8))"
              "(intrinsic slow (meaning ?a) (operand a (type f32)) (operand y (type f32)) (ops 4))"
              "(cycles (exp 12)))");
  ck_assert_uint_eq(tarn_hw_lanes(h, TARN_F32), 8);
  ck_assert_uint_eq(tarn_hw_lanes(h, TARN_F64), 4);
  ck_assert_uint_eq(tarn_hw_lanes(h, TARN_I8), 32);
  ck_assert_double_eq(tarn_hw_peak(h, TARN_F32, 1), 16 * 2e9);
  ck_assert_double_eq(tarn_hw_peak(h, TARN_F32, 9), 4 * 16 * 2e9);
  ck_assert_double_eq(tarn_hw_peak(h, TARN_F64, 2), 2 * 4 * 2e9);
  ck_assert_double_eq(tarn_hw_fx_cycles(h, TARN_FX_EXP), 12);
  ck_assert_double_eq(tarn_hw_fx_cycles(h, TARN_FX_ADD), 1);
  int64_t tile[4] = {0};
  ck_assert_uint_eq(tarn_hw_tiles(L, h, TARN_F32, tile, 4), 3);
  ck_assert(tile[0] == 8 && tile[1] == 16 && tile[2] == 32);
  ck_assert(!tarn_hw_wants_products(L, h));
  const tarn_hw *product = machine("(hw p (kind dsa) (clock 1e9) " MEMORY
                                   "(intrinsic mm (meaning (compute dotProd (cartProd (access 1 ?a)"
                                   " (access 1 ?b)))) (operand a (type f32) (dims 1 16)) (operand "
                                   "b (type f32) (dims 4 16)) (operand y (type f32) "
                                   "(dims 1 4))))");
  ck_assert_uint_eq(tarn_hw_tiles(L, product, TARN_F32, tile, 4), 2);
  ck_assert(tile[0] == 4 && tile[1] == 16 && tarn_hw_wants_products(L, product));
  ck_assert_uint_eq(tarn_hw_tiles(L, product, TARN_I8, tile, 4),
                    2); /* no lanes: 2 and 4 elements */
  const tarn_hw *scalar = machine("(hw m " CPU MEMORY ")");
  ck_assert_uint_eq(tarn_hw_lanes(scalar, TARN_F32), 1);
  ck_assert_double_eq(tarn_hw_peak(scalar, TARN_F32, 1), 2e9);
}
END_TEST

/* ---------------------------------------------------------------- refusals: where and why */
#define GPU(MORE)                                                                                  \
  "(hw m (kind gpu) (clock 1e9) (warps (lanes 32) (resident 64) (block 1024) (registers "          \
  "65536) " MORE ") "
#define FRAGMENT(ROW)                                                                              \
  " (intrinsic i (meaning (compute (map (mul $0 $1)) ?a ?b))\n(operand a (type f32) (dims 8 4)\n"  \
  "(fragment (index ((32 1 1) ()) (8 4) (" ROW                                                     \
  " (div d0 8))))) (operand b (type f32) (dims 8 4)) "                                             \
  "(latency 1) (throughput 1) (ops 32)))"
static const struct refusal {
  const char *text, *at, *why;
} refusals[] = {
    {"", "m.hw:1:1", "a description (hw NAME …)"},
    {"x", "m.hw:1:1", "a description (hw NAME …)"},
    {"(machine m)", "m.hw:1:1", "a description (hw NAME …)"},
    {"(hw a) (hw b)", "m.hw:1:1", "a description (hw NAME …)"},
    {"(hw)", "m.hw:1:1", "(hw …) needs a value"},
    {"(hw (m))", "m.hw:1:5", "a word"},
    {"(hw \"\")", "m.hw:1:1", "a name"},
    {"(hw m (kind cpu)", "m.hw:1:1", ""},
    {"(hw m x)", "m.hw:1:7", "a form (name value…)"},
    {"(hw m\n ())", "m.hw:2:2", "a form (name value…)"},
    {"(hw m\n ((a)))", "m.hw:2:2", "a form (name value…)"},
    {"(hw m (triple \"t\") (clock 1)" MEMORY ")", "m.hw:1:1", "(kind cpu|gpu|dsa)"},
    {GPU("(integers 16)") MEMORY ")", "m.hw:1:30", "(integers 16): 32 or 64 bits"},
    {GPU("(shared 4096) (dynamic 2048)") MEMORY ")", "m.hw:1:30", "more than the (shared 4096)"},
    {GPU("(dynamic 2048)") MEMORY ")", "m.hw:1:30", "(dynamic 2048)"},
    {GPU("(shared 4096) (dynamic 65536)") MEMORY ")", "m.hw:1:1", "no room for a block's 65536"},
    {GPU("(matrix 8)") MEMORY ")", "m.hw:1:30", "rows of 16 bytes"},
    {GPU("") MEMORY FRAGMENT("(mod d0 9)"), "m.hw:3:1", "operand a: index map: index 0 leaves"},
    {GPU("") MEMORY FRAGMENT("(mod d0 4)"), "m.hw:2:1", "no bijection: element 0 0"},
    {"(hw m " CPU "\n (memory l1 (capacity 64) (read 1) (write 1) (hidden 1.5)) (memory dram (read "
     "1) (write 1)))",
     "m.hw:2:2", "(hidden S) is a share"},
    {"(hw m (kind tpu))", "m.hw:1:7", "cpu, gpu or dsa"},
    {"(hw m (kind))", "m.hw:1:7", "needs a value"},
    {"(hw m (kind cpu) (kind cpu))", "m.hw:1:18", "twice"},
    {"(hw m (kind cpu) (triple \"t\")" MEMORY ")", "m.hw:1:1", "(clock HZ)"},
    {"(hw m (kind cpu) (triple \"t\") (clock 1e9))", "m.hw:1:1", "at least one (memory …)"},
    {"(hw m (kind cpu) (clock 1e9)" MEMORY ")", "m.hw:1:1", "(triple …)"},
    {"(hw m (clock 0))", "m.hw:1:14", "out of range"},
    {"(hw m (clock -1))", "m.hw:1:14", "out of range"},
    {"(hw m (clock nan))", "m.hw:1:14", "out of range"},
    {"(hw m (clock inf))", "m.hw:1:14", "out of range"},
    {"(hw m (clock fast))", "m.hw:1:14", "a number"},
    {"(hw m (clock))", "m.hw:1:7", "needs a value"},
    {"(hw m (clock 1 2))", "m.hw:1:16", "one value"},
    {"(hw m (clock 1) (clock 2))", "m.hw:1:17", "twice"},
    {"(hw m (cpu a b))", "m.hw:1:14", "one value"},
    {"(hw m (cpu (a)))", "m.hw:1:12", "a word"},
    {"(hw m (units 0))", "m.hw:1:14", "an integer from 1"},
    {"(hw m (units 1.5))", "m.hw:1:14", "an integer from 1"},
    {"(hw m (units 4294967296))", "m.hw:1:14", "an integer from 1 to 4294967295"},
    {"(hw m (launch -1e-6))", "m.hw:1:15", "out of range"},
    {"(hw m (vector 256))", "m.hw:1:15",
     "(bits N), (registers N), (spreads), (moves) or (flushes)"},
    {"(hw m (vector (bits 96)))", "m.hw:1:7", "a power of two"},
    {"(hw m (vector (bits 0)))", "m.hw:1:21", "an integer from 8"},
    {"(hw m (vector (bits 131072)))", "m.hw:1:21", "to 65536"},
    {"(hw m (vector (registers 0)))", "m.hw:1:26", "an integer from 1"},
    {"(hw m (cycles exp))", "m.hw:1:15", "(OPERATOR NUMBER)"},
    {"(hw m (cycles (expo 3)))", "m.hw:1:15", "no scalar operator expo"},
    {"(hw m (cycles (exp -3)))", "m.hw:1:20", "out of range"},
    {"(hw m (memory))", "m.hw:1:7", "needs a value"},
    {"(hw m (memory l1 (read 1)))", "m.hw:1:7", "(read B) and (write B)"},
    {"(hw m (memory l1 (read 0)))", "m.hw:1:24", "out of range"},
    {"(hw m (memory l1 (capacity -1)))", "m.hw:1:28", "an integer from 0"},
    {"(hw m (memory l1 (capacity 9223372036854775807)))", "m.hw:1:28", "an integer from 0"},
    {"(hw m (memory l1 (line 0)))", "m.hw:1:24", "an integer from 1"},
    {"(hw m (memory l1 (size 4)))", "m.hw:1:18", "unknown form size"},
    {"(hw m (memory l1 (managed 1)))", "m.hw:1:27", "no value"},
    {"(hw m (memory l1 big))", "m.hw:1:18", "a form (name value…)"},
    {"(hw m (memory l1 (line 4) (line 4)))", "m.hw:1:27", "twice"},
    {"(hw m " CPU " (memory a (read 1) (write 1)) (memory b (read 1) (write 1)))", "m.hw:1:1",
     "memory a has no (capacity …)"},
    {"(hw m " CPU " (memory a (capacity 4) (read 1) (write 1)) (memory a (read 1) (write 1)))",
     "m.hw:1:1", "described twice"},
    {"(hw m " CPU " (memory a (read 1) (write 1) (shadow-of b)))", "m.hw:1:1", "shadows unknown b"},
    {"(hw m (intrinsic))", "m.hw:1:7", "needs a value"},
    {"(hw m (intrinsic f))", "m.hw:1:7", "(meaning TERM)"},
    {"(hw m (intrinsic f (meaning)))", "m.hw:1:20", "needs a value"},
    {"(hw m (intrinsic f (meaning ?a)))", "m.hw:1:7", "at least one operand"},
    {"(hw m (intrinsic f (operand a (type f31))))", "m.hw:1:31", "unknown type f31"},
    {"(hw m (intrinsic f (operand a (dims 4))))", "m.hw:1:20", "(type T)"},
    {"(hw m (intrinsic f (operand a (dims 0))))", "m.hw:1:31", "positive integers"},
    {"(hw m (intrinsic f (operand a (dims 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1))))", "m.hw:1:31",
     "at most 16"},
    {"(hw m (intrinsic f (operand a (shape 4))))", "m.hw:1:31", "unknown form"},
    {"(hw m (intrinsic f (operand a b)))", "m.hw:1:31", "unknown form"},
    {"(hw m (intrinsic f (throughput 0)))", "m.hw:1:32", "out of range"},
    {"(hw m " CPU MEMORY
     "(intrinsic f (meaning ?a) (operand a (type f32) (memory l9)) (operand y (type f32))))",
     "m.hw:1:1", "operand a lives in unknown memory l9"},
    {"(hw m (queues a b))", "m.hw:1:7", "unknown form queues"},
    {"(hw m (intrinsic f (widths 1 2)))", "m.hw:1:20", "unknown form widths"},
    {"(hw m (intrinsic f (operand a (immediate 3 1))))", "m.hw:1:44", "out of range"},
    {"(hw m (quirks store-needs-compute-write lazy))", "m.hw:1:41", "there is no quirk lazy"},
    {"(hw m (limits (instructions 4) (depth 3)))", "m.hw:1:32", "unknown form depth"},
    {"(hw m (hazards software))", "m.hw:1:7", "hardware is expected"},
    {HEAD "(memory a (capacity 64) (entry 24) (read 1) (write 1)) (memory d (read 1) (write 1)))",
     "m.hw:2:1", "capacity 64 is no multiple of its entry, 24 bytes"},
    {HEAD
     "(memory a (capacity 64) (entry 16) (read 1) (write 1))\n(memory b (capacity 64) (entry 8) "
     "(read 1) (write 1) (shadow-of a)) (memory d (read 1) (write 1)))",
     "m.hw:3:1", "b has 8 entries, a, which it shadows, has 4"},
    {HEAD "(memory acc (capacity 8) (read 1) (write 1)) (memory dram (read 1) (write 1))\n" DOUBLED
          ")",
     "m.hw:3:1", "operand a has 16 bytes, its memory acc has 8"},
    {HEAD VECTOR DOUBLED "(transfer out (from acc) (to dram) (entry 1)))", "m.hw:4:1",
     "operand a: no path to its memory acc from dram"},
    {HEAD VECTOR DOUBLED "(transfer in (from dram) (to acc) (entry 1)))", "m.hw:4:1",
     "operand c: no path from its memory acc to dram"},
    {HEAD VECTOR "(transfer t (from acc) (to uop) (entry 1)))", "m.hw:4:1", "one side"},
    {HEAD VECTOR "(transfer t (from acc) (to dram)))", "m.hw:4:1", "(entry CYCLES)"},
    {HEAD VECTOR "(transfer t (from acc) (to disk) (entry 1)))", "m.hw:4:28", "no memory disk"},
    {HEAD VECTOR "(transfer t (from acc) (to dram) (entry 1) (rank 3)))", "m.hw:4:1", "rank 3"},
    {HEAD VECTOR "(transfer t (from acc) (to dram) (entry 1) (width 3)))", "m.hw:4:44",
     "unknown form width"},
    {HEAD VECTOR "(queue a) (token t (from a) (to b)))", "m.hw:4:33", "there is no queue b"},
    {HEAD VECTOR "(queue a) (token t (from a) (to a)))", "m.hw:4:11", "to itself"},
    {HEAD VECTOR "(queue a) (queue a))", "m.hw:4:11", "queue a is described twice"},
    {HEAD VECTOR "(format f (bits 12)))", "m.hw:4:1", "a multiple of 8"},
    {HEAD VECTOR "(format f (bits 16) (field a 0 8) (field b 7 2)))", "m.hw:4:35",
     "fields a (bits 0 to 7) and b (bits 7 to 8) overlap"},
    {HEAD VECTOR "(format f (bits 16) (field a 12 8)))", "m.hw:4:21", "bits 12 to 19 of 16"},
    {HEAD VECTOR DOUBLED PATHS QUEUES "(format word (bits 32) (field op 0 2) (field at 4 1) (field "
                                      "main 8 8) (field n 16 2))\n(instruction out (format word) "
                                      "(queue io) (move out (local at) (main main) (entries n))))",
     "m.hw:13:1", "field at has 1 bits, too narrow for 3, of acc"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format word) (queue io) (end)) (instruction b (format sum) (queue alu) "
     "(is op 1) (end)))",
     "m.hw:18:48", "tells instruction b from a"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS IN STOP ")", "m.hw:10:34",
     "token go: no instruction pops"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format word) (queue io) (pop pop go) (end)))",
     "m.hw:18:41", "queue io does not pop token go, alu does"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format sum) (queue alu) (run add (steps uop begin end micro))))",
     "m.hw:18:1", "nothing tells where it has operand a"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS "(instruction a (format sum) (queue alu)))",
     "m.hw:18:1", "one of move, run, end"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format sum) (queue alu) (is op 4) (end)))",
     "m.hw:18:48", "out of range"},
    {"(hw m (memory l1 (keep a b) (keep a b c d e f)))", "m.hw:1:29", "(keep …) is given twice"},
    {"(hw m (memory l1 (keep a (b))))", "m.hw:1:26", "a word is expected"},
    {"(hw m (intrinsic f (meaning ?a) (meaning ?b)))", "m.hw:1:33", "twice"},
    {"(hw m (intrinsic f (operand a (type f32) (dims 4) (dims 4))))", "m.hw:1:51", "twice"},
    {"(hw m (vector (bits 64) (bits 128)))", "m.hw:1:25", "twice"},
    {HEAD VECTOR "(queue a) (queue b) (token t (from a) (to b) (to a)))", "m.hw:4:46", "twice"},
    {HEAD VECTOR "(transfer t (from acc) (from uop) (to dram) (entry 1)))", "m.hw:4:24", "twice"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format word) (queue io) (is op 1) (is op 2) (end)))",
     "m.hw:18:51", "of one field twice"},
    {HEAD VECTOR "(register r))", "m.hw:4:1", "register r: (bits N) is needed"},
    {HEAD VECTOR "(register r (bits 63)))", "m.hw:4:19", "an integer from 1 to 62"},
    {HEAD VECTOR "(register r (bits 6) (wide)))", "m.hw:4:22", "unknown form wide"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(register r (bits 7)) (instruction a (format word) (queue io) (set r main)))",
     "m.hw:18:63", "register r has 7 bits, field main has 8"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(register r (bits 1)) (instruction a (format word) (queue io) (move out (local (register r)) "
     "(main main) (entries n))))",
     "m.hw:18:23", "register r has 1 bits, too narrow for 3, of acc"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(register r (bits 2)) (instruction a (format sum) (queue alu) (run add (clear (register "
     "r)))))",
     "m.hw:18:79", "register r has 2 bits, a flag has one"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(register r (bits 2)) (instruction a (format word) (queue io) (is (register r) 1) (move out "
     "(local at) (main main) (entries n)))\n"
     "(instruction b (format word) (queue io) (is op 1) (end)))",
     "m.hw:19:1", "tells instruction b from a"},
    /* what is fixed, and what two numbers share */
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(register r (bits 2)) (instruction a (format word) (queue io) (is (register r) 1) (end)))",
     "m.hw:18:23", "only what moves or runs depends on registers"},
    {FIXED("(is at 1)"), "m.hw:18:1", "(is at 1), but there it has the place in a memory, which"},
    {FIXED("(is main 0)"), "m.hw:18:1", "the place in main memory, which changes"},
    {FIXED("(is n 2)"), "m.hw:18:1", "the entries of a row, which can only be fixed to one"},
    {FIXED("(is rows 0)"), "m.hw:18:1", "the rows, which can only be fixed to one"},
    {FIXED("(is left 1)"), "m.hw:18:1", "zeros before a row, which can only be fixed to none"},
    {FIXED("(push at go)"), "m.hw:18:48", "field at has 2 bits, a flag has one"},
    {FIXED("(pop pop back) (push pop go)"), "m.hw:18:1", "pop has both the flag of a token and"},
    {FIXED("(pop pop back) (is pop 1)"), "m.hw:18:1", "(is pop 1), but there it has the flag of"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format word) (queue io) (move in (local at) (main main) (entries n) (rows n) "
     "(stride stride))))",
     "m.hw:18:1", "n has both the entries of a row and the rows"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format sum) (queue alu) (is begin 0) (run add (steps uop begin end micro) "
     "(loops times) (index a dst step) (index c dst step) (immediate b imm))))",
     "m.hw:18:1", "(is begin 0), but there it has the first micro-op, which changes"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format sum) (queue alu) (is times 0) (run add (steps uop begin end micro) "
     "(loops times) (index a dst step) (index c dst step) (immediate b imm))))",
     "m.hw:18:1", "(is times 0), but there it has the trips of a loop, which are 1 at least"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format sum) (queue alu) (run add (steps uop begin end micro) (loops step) "
     "(index a dst step) (index c dst step) (immediate b imm))))",
     "m.hw:18:1", "step has both the trips of a loop and a factor"},
    {HEAD VECTOR DOUBLED
     "(transfer in (from dram) (to acc) (rank 2) (stride 15) (row-bytes 8) (entry 3)))",
     "m.hw:7:1", "a row of 8 bytes, an entry has 16"},
    {HEAD VECTOR DOUBLED PATHS QUEUES FORMATS
     "(instruction a (format word) (queue io) (move in (local at) (main main) (entries n) (rows "
     "rows) (stride stride)\n(pad top bottom left right) (block-stride n))))",
     "m.hw:18:1", "without padding"},
    {HEAD VECTOR DOUBLED
     "(intrinsic low (meaning (compute (map (cast i8 $0)) ?a)) (operand a (type "
     "i32) (memory dram) (dims 4)) (operand b (type i8) (memory acc) (dims 4)))\n"
     "(transfer in (from dram) (to acc) (entry 1) (intrinsic low)))",
     "m.hw:8:1", "intrinsic low gives 4 bytes, an entry of acc has 16"},
};
START_TEST(refused) {
  const struct refusal *r = &refusals[_i];
  reading arg = {.text = r->text};
  ck_assert_msg(tarn_protect(cx, parse, &arg) == TARN_BAD_INPUT, "accepted: %s", r->text);
  const char *m = tarn_message(cx);
  size_t n = strlen(r->at);
  ck_assert_msg(!strncmp(m, r->at, n) && m[n] == ':', "%s\n  says  %s\n  not   %s", r->text, m,
                r->at);
  ck_assert_msg(strstr(m, r->why) && !strchr(m, '\n'), "%s\n  says  %s\n  not   %s", r->text, m,
                r->why);
}
END_TEST

/* ---------------------------------------------------------------- shipped descriptions */
typedef struct loading {
  const char *name;
  const tarn_hw *hw;
} loading;
static void load(tarn_ctx *c, void *arg) {
  (void)c;
  loading *l = arg;
  l->hw = tarn_hw_load(L, l->name);
}
START_TEST(shipped) {
  const char *names[32];
  uint32_t n = tarn_hw_shipped(names, 32), found = 0;
  ck_assert_uint_eq(n, tarn_hw_shipped(NULL, 0));
  ck_assert_uint_ge(n, 3);
  for (uint32_t i = 0; i < n && i < 32; i++) {
    loading l = {.name = names[i]}, file = {.name = tarn_format(cx, "hw/%s.hw", names[i])};
    must(load, &l), must(load, &file);
    tarn_buf a = {.cx = cx}, b = {.cx = cx};
    tarn_hw_print(l.hw, &a), tarn_hw_print(file.hw, &b);
    ck_assert_str_eq(a.p, b.p);
    ck_assert_str_eq(l.hw->name, names[i]);
    for (uint32_t m = 0; m + 1 < l.hw->nmem; m++) /* nearer memories are faster */
      ck_assert_msg(l.hw->mem[m].read >= l.hw->mem[m + 1].read, "%s: %s", names[i],
                    l.hw->mem[m].name);
    if (l.hw->kind == TARN_HW_CPU)
      ck_assert((tarn_hw_lanes(l.hw, TARN_F32) > 1 || !l.hw->vector_bits) && l.hw->nintrin > 0);
    ck_assert_msg(tarn_hw_wants_products(L, l.hw), "%s", names[i]);
    static const char *const expected[] = {"aarch64",      "riscv64",       "riscv64-v",
                                           "x86-64-v3",    "vta-pynq",      "gemmini-default",
                                           "systolic-f32", "vta-hls-timing"};
    for (uint32_t e = 0; e < sizeof expected / sizeof *expected; e++)
      found += !strcmp(names[i], expected[e]);
  }
  ck_assert_uint_eq(found, 8);
}
END_TEST

/* ---------------------------------------------------------------- (like NAME) */
/* The description as one that stands for itself, to be compared with what it comes to. */
static const struct likeness {
  const char *like, *as;
} likenesses[] = {
    {"(hw m (like base))", "(hw m (kind cpu) (triple \"x86_64\") (clock 2e9) " MEMORY ")"},
    {"(hw m (like base) (clock 3e9) (launch 1e-6))",
     "(hw m (kind cpu) (triple \"x86_64\") (clock 3e9) " MEMORY " (launch 1e-6))"},
    {"(hw m (like base) (memory l1 (write 8) (latency 2)))",
     "(hw m (kind cpu) (triple \"x86_64\") (clock 2e9) (memory l1 (capacity 32768) (read 64) "
     "(write "
     "8) (latency 2)) (memory dram (read 8) (write 4)))"},
    {"(hw m (like base) (memory l1 (without capacity) (capacity 1)) (without clock) (clock 1e9))",
     "(hw m (kind cpu) (triple \"x86_64\") (memory l1 (read 64) (write 32) (capacity 1)) (memory "
     "dram (read 8) (write 4)) (clock 1e9))"},
    {"(hw m (like base) (without memory l1))",
     "(hw m (kind cpu) (triple \"x86_64\") (clock 2e9) (memory dram (read 8) (write 4)))"},
    {"(hw m (like more) (memory l1 (read 32)) (cycles (exp 3) (log 4)))",
     "(hw m (kind cpu) (triple \"x86_64\") (clock 2e9) (memory l1 (capacity 32768) (read 32) "
     "(write "
     "32)) (memory dram (read 8) (write 4)) (cycles (div 9) (exp 3) (log 4)))"},
};
static const char *beside(const char *name, const char *text) {
  const char *path = in_folder(cx, tarn_format(cx, "%s.hw", name));
  tarn_write_file(cx, path, text, strlen(text));
  return path;
}
START_TEST(like_another) {
  beside("base", "(hw base " CPU " " MEMORY ")");
  beside("more", "(hw more (like ./base.hw) (cycles (div 9) (exp 2)))");
  const struct likeness *l = &likenesses[_i];
  tarn_buf text = {.cx = cx}, is = {.cx = cx}, as = {.cx = cx};
  const char *name = strchr(strstr(l->like, "like"), ' ') + 1, *end = strchr(name, ')');
  tarn_buf_fmt(&text, "%.*s./%.*s.hw%s", (int)(name - l->like), l->like, (int)(end - name), name,
               end);
  loading is_like = {.name = beside("m", text.p)};
  must(load, &is_like);
  tarn_hw_print(is_like.hw, &is);
  tarn_hw_print(machine(l->as), &as);
  ck_assert_str_eq(is.p, as.p);
}
END_TEST
static const struct likeness unlike[] = {
    {"(hw m (like ./m.hw))", "in a circle"},
    {"(hw m (like x86-64-v3) (without l4))", "has no such form"},
    {"(hw m (like x86-64-v3) (without memory l4))", "has no such form"},
    {"(hw m (like x86-64-v3) (memory l1 (without keep)))", "has no such form"},
    {"(hw m (like x86-64-v3 v4))", "takes one value"},
    {"(hw m (like x86-64-v3) clock)", "a form (name value"},
    {"(hw m (like nobody))", "/m.hw:1:7: nobody: no such description"},
    {"(hw m (like ./nobody.hw))", "/m.hw:1:7: "},
    {"(hw m (clock 1) (like x86-64-v3))", "unknown form like"},
};
START_TEST(unlike_another) {
  loading l = {.name = beside("m", unlike[_i].like)};
  ck_assert_int_eq(tarn_protect(cx, load, &l), TARN_BAD_INPUT);
  const char *m = tarn_message(cx);
  ck_assert_msg(strstr(m, unlike[_i].as) && !strchr(m, '\n'), "%s: %s", unlike[_i].like, m);
}
END_TEST

START_TEST(not_shipped) {
  loading l = {.name = "pdp11"};
  ck_assert_int_eq(tarn_protect(cx, load, &l), TARN_BAD_INPUT);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "aarch64"));
  l.name = "no/such.hw";
  ck_assert_int_eq(tarn_protect(cx, load, &l), TARN_IO);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "no/such.hw"));
}
END_TEST

int main(void) {
  const looped tests[] = {{every_form, 1},
                          {round_trip, 1},
                          {accelerator, 1},
                          {questions, 1},
                          {refused, COUNT(refusals)},
                          {shipped, 1},
                          {like_another, COUNT(likenesses)},
                          {unlike_another, COUNT(unlike)},
                          {not_shipped, 1}};
  if (!folder_make()) return 1;
  int failed = run_suite("hw", tests, sizeof tests / sizeof *tests);
  folder_drop();
  return failed;
}
