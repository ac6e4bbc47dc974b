/* sim/ptx: how lanes, warps and blocks run a kernel, what is counted, and planted faults, each
 * reported; texts that are not understood. test_ptx_ops.c has the opcodes. */
#include "tests/ptx_kit.h"

/* ---------------------------------------------------------------- control */
START_TEST(divergence) {
  static int32_t in[64], out[64];
  for (int i = 0; i < 64; i++) in[i] = i + 1;
  job j = {.text = kernel("ld.global.u32 %r1, [%d11]; mov.u32 %r2, 0;\n"
                          "L: setp.eq.s32 %p1, %r1, 1; @%p1 bra E;\n"
                          "and.b32 %r3, %r1, 1; setp.eq.s32 %p2, %r3, 0; @%p2 bra H;\n"
                          "mad.lo.s32 %r1, %r1, 3, 1; bra.uni J;\n"
                          "H: shr.u32 %r1, %r1, 1;\n"
                          "J: add.s32 %r2, %r2, 1; bra L;\n"
                          "E: bar.sync 0; st.global.u32 [%d10], %r2;"),
           .block = {64},
           BOTH(64)};
  right(&j);
  for (int i = 0; i < 64; i++) {
    int v = i + 1, n = 0;
    for (; v != 1; n++) v = v & 1 ? 3 * v + 1 : v / 2;
    ck_assert_int_eq(out[i], n);
  }
  ck_assert_int_eq(j.counts.barriers, 1);
  ck_assert_int_gt(j.counts.divergent, 10);
}
END_TEST
START_TEST(early_return) {
  static int32_t in[40], out[40];
  for (int i = 0; i < 40; i++) in[i] = i, out[i] = -1;
  job j = {.text = kernel("setp.ge.u32 %p1, %r8, %r9; @%p1 ret;\n"
                          "ld.global.u32 %r1, [%d11]; st.global.u32 [%d10], %r1;"),
           .block = {64},
           .word = {40},
           BOTH(40)};
  right(&j);
  for (int i = 0; i < 40; i++) ck_assert_int_eq(out[i], i);
}
END_TEST
START_TEST(shuffles) {
  static int32_t in[32], out[32];
  static const struct {
    const char *how;
    int by;
    const char *c;
  } kinds[] = {{"bfly", 1, "31"}, {"down", 2, "31"}, {"up", 3, "0"}, {"idx", 5, "31"}};
  for (int k = 0; k < 4; k++) {
    for (int i = 0; i < 32; i++) in[i] = 100 + i;
    const char *body =
        tarn_format(cx,
                    "ld.global.u32 %%r1, [%%d11]; shfl.sync.%s.b32 %%r2|%%p1, %%r1, %d, %s, -1;\n"
                    "selp.b32 %%r2, %%r2, 0, %%p1; st.global.u32 [%%d10], %%r2;",
                    kinds[k].how, kinds[k].by, kinds[k].c);
    job j = {.text = kernel(body), BOTH(32)};
    right(&j);
    for (int i = 0; i < 32; i++) {
      int from = k == 0 ? i ^ 1 : k == 1 ? i + 2 : k == 2 ? i - 3 : 5;
      ck_assert_int_eq(out[i], from < 0 || from > 31 ? 0 : 100 + from);
    }
  }
}
END_TEST

/* ---------------------------------------------------------------- counters */
static const struct counted {
  const char *body;
  int64_t requests, sectors, shared, wavefronts, fewest;
} counted[] = {
    {"ld.global.u32 %r1, [%d11];", 1, 4, 0, 0, 0},
    {"ld.global.u32 %r1, [%d9];", 1, 1, 0, 0, 0},
    {"mul.wide.u32 %d1, %r8, 32; add.s64 %d1, %d9, %d1; ld.global.u32 %r1, [%d1];", 1, 32, 0, 0, 0},
    {"mul.wide.u32 %d1, %r8, 16; add.s64 %d1, %d9, %d1; ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%d1];",
     1, 16, 0, 0, 0},
    {"shl.b32 %r1, %r8, 2; st.shared.u32 [%r1], %r8;", 0, 0, 1, 1, 1},
    {"shl.b32 %r1, %r8, 3; st.shared.u32 [%r1], %r8;", 0, 0, 1, 2, 1},
    {"mul.lo.s32 %r1, %r8, 32; st.shared.u32 [%r1], %r8;", 0, 0, 1, 8, 1},
    {"mul.lo.s32 %r1, %r8, 16; st.shared.v4.u32 [%r1], {%r8,%r8,%r8,%r8};", 0, 0, 1, 4, 4},
};
START_TEST(counters) {
  const struct counted *c = &counted[_i];
  static int32_t in[256], out[256];
  job j = {.text = kernel(c->body), BOTH(256)};
  right(&j);
  ck_assert_int_eq(j.counts.requests, c->requests);
  ck_assert_int_eq(j.counts.sectors, c->sectors);
  ck_assert_int_eq(j.counts.shared, c->shared);
  ck_assert_int_eq(j.counts.wavefronts, c->wavefronts);
  ck_assert_int_eq(j.counts.fewest, c->fewest);
}
END_TEST

/* ---------------------------------------------------------------- faults */
#define REVERSE                                                                                    \
  "shl.b32 %r1, %r8, 2; ld.global.u32 %r2, [%d11]; st.shared.u32 [%r1], %r2;\n"                    \
  "%s\n"                                                                                           \
  "sub.s32 %r3, 252, %r1; ld.shared.u32 %r4, [%r3]; st.global.u32 [%d10], %r4;"
#define ASYNC                                                                                      \
  "shl.b32 %r1, %r8, 2; cvt.u64.u32 %d1, %r1; cp.async.ca.shared.global [%d1], [%d11], 4;\n"       \
  "cp.async.commit_group; %s ld.shared.u32 %r4, [%r1]; st.global.u32 [%d10], %r4;"
static const struct fault {
  const char *body, *part, *why;
} faults[] = {
    {REVERSE, "bar.sync 0;", NULL},
    {REVERSE, "", "is read, nothing has written it"},
    {REVERSE, "bar.warp.sync -1;", "is read, nothing has written it"},
    {"st.shared.u32 [sh], %r8; %s", "", "is written here and by thread 0 with no barrier"},
    {"shl.b32 %r1, %r8, 2; st.shared.u32 [%r1], %r8; bar.sync 0; ld.shared.u32 %r2, [sh]; "
     "st.shared.u32 [%r1], %r2; %s",
     "", "is written here and read by"},
    {"shl.b32 %r1, %r8, 2; st.shared.u32 [%r1], %r8; %s ld.shared.u32 %r2, [%r1];", "", NULL},
    {"ld.global.u32 %r1, [%d11+4]; %s", "", "bytes 256 to 260 of array 1, which has 256"},
    {"ld.global.u32 %r1, [%d11+-4]; %s", "", "4 bytes before array 1"},
    {"ld.global.u32 %r1, [%d11+1]; %s", "", "is no multiple of 4"},
    {"ld.global.u32 %r1, [16]; %s", "", "which is not allocated"},
    {"ld.global.u32 %r1, [%d10]; %s", "", "byte 0 of array 0 is read, nothing has written it"},
    {"st.global.u32 [%d11], %r8; %s", "", "array 1 is constant and written to"},
    {"st.global.u32 [%d8], %r8; %s", "", "is written here and by thread 0"},
    {"ld.shared.u32 %r1, [sh+1024]; %s", "", "of shared memory, which has 1024"},
    {"ld.shared.u32 %r1, [sh]; %s", "", "byte 0 of shared memory is read"},
    {"setp.lt.u32 %p1, %r8, 16; @%p1 bar.sync 0; %s", "", "does not reach the barrier"},
    {"setp.lt.u32 %p1, %r8, 32; @%p1 bar.sync 0; %s", "", "which has ended"},
    {"setp.lt.u32 %p1, %r8, 8; @%p1 ret; bar.sync 0; %s", "", "this thread has ended"},
    {"setp.lt.u32 %p1, %r8, 32; @%p1 bra L; bar.sync 1; bra E; L: bar.sync 0; E: %s", "",
     "which waits at another barrier"},
    {"setp.lt.u32 %p1, %r8, 8; @%p1 shfl.sync.bfly.b32 %r1, %r8, 1, 31, -1; %s", "",
     "waits for lanes 0xffffffff"},
    {"ld.param.u32 %r1, [N+4]; %s", "", "of the parameters, which have 20"},
    {ASYNC, "cp.async.wait_group 0;", NULL},
    {ASYNC, "cp.async.wait_group 1;", "an asynchronous copy to it has not been waited for"},
    {ASYNC, "cp.async.wait_group 1048576;", "an asynchronous copy to it has not been waited for"},
    {ASYNC, "", "an asynchronous copy to it has not been waited for"},
    {"shl.b32 %r1, %r8, 2; cvt.u64.u32 %d1, %r1;\n"
     "cp.async.ca.shared.global.L2::128B [%d1], [%d11], 4; cp.async.wait_all; %s\n"
     "ld.shared.u32 %r4, [%r1];",
     "", NULL},
    {"red.global.add.u32 [%d10], %r8; %s", "", NULL},
    {"mov.u64 %d1, sh; st.shared.u32 [%d1+512], %r8; %s ret;", "", "is written here and by"},
};
START_TEST(fault) {
  const struct fault *f = &faults[_i];
  static int32_t in[64], out[64];
  for (int i = 0; i < 64; i++) in[i] = 3 * i;
  const char *at = strstr(f->body, "%s");
  const char *body = tarn_format(cx, "%.*s%s%s", (int)(at - f->body), f->body, f->part, at + 2);
  job j = {.text = kernel(body), .block = {64}, BOTH(64)};
  if (f->why) {
    reported(&j, f->why);
    return;
  }
  right(&j);
  if (strstr(f->body, "252"))
    for (int i = 0; i < 64; i++) ck_assert_int_eq(out[i], in[63 - i]);
}
END_TEST
/* What the launch asks for begins behind the kernel's own memory, aligned; nothing lies behind it.
 */
START_TEST(dynamic_memory) {
  static int32_t in[64], out[64];
  const char *text = tarn_format(
      cx, "%s",
      HEAD ".extern .shared .align 16 .b8 more[];\n.extern .shared .align 4 .b32 same[];\n"
           ".visible .entry k(.param .u64 A, .param .u64 B, .param .u32 N) {\n"
           ".reg .b32 %r<6>; .reg .b64 %d<6>; .shared .b8 own[3];\n"
           "ld.param.u64 %d1, [A]; ld.param.u64 %d2, [B]; ld.param.u32 %r5, [N];\n"
           "mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4; mov.u64 %d4, more;\n"
           "st.shared.u8 [own+2], 1; add.s64 %d4, %d4, %d3; add.s64 %d2, %d2, %d3;\n"
           "ld.global.u32 %r2, [%d2]; st.shared.u32 [%d4], %r2; bar.sync 0;\n"
           "ld.shared.u32 %r3, [same+4]; cvt.u32.u64 %r4, %d4; add.u32 %r3, %r3, %r4;\n"
           "add.s64 %d1, %d1, %d3; st.global.u32 [%d1], %r3; ret; }\n");
  for (int i = 0; i < 64; i++) in[i] = 100 * i;
  job j = {.text = text, .block = {64}, .extra = 256, .agreed = true, BOTH(64)};
  right(&j);
  for (int i = 0; i < 64; i++) ck_assert_int_eq(out[i], 100 + 16 + 4 * i);
  j.extra = 252;
  reported(&j, "of shared memory, which has 268");
}
END_TEST
/* Threads that write the same bytes, where that is allowed; not other bytes. */
START_TEST(agreed_writes) {
  static int32_t in[64], out[64];
  job j = {.text = kernel("mov.u32 %r1, 7; st.shared.u32 [sh], %r1; bar.sync 0;\n"
                          "ld.shared.u32 %r2, [sh]; st.global.u32 [%d10], %r2;"),
           .block = {64},
           BOTH(64)};
  reported(&j, "is written here and by thread 0 with no barrier");
  j.agreed = true;
  right(&j);
  ck_assert_int_eq(out[63], 7);
  j.text = kernel("st.shared.u32 [sh], %r8; bar.sync 0;");
  reported(&j, "other bytes than another thread wrote with no barrier between");
}
END_TEST
START_TEST(blocks_race) {
  static int32_t in[32], out[32];
  job j = {.text = kernel("st.global.u32 [%d10], %r8;"), .grid = 2, BOTH(32)};
  reported(&j, "is written here and by thread 0 of another block");
  j.text = kernel("mov.u32 %r1, %ctaid.x; setp.eq.s32 %p1, %r1, 0; @%p1 bra L;\n"
                  "st.global.u32 [%d8], %r8; bra E; L: ld.global.u32 %r2, [%d8]; E:");
  j.block[0] = 1, j.a[0].state = TARN_PTX_WRITTEN;
  reported(&j, "is written here and read by thread 0 of another block");
}
END_TEST

/* ---------------------------------------------------------------- text */
static const struct text {
  const char *body, *why;
} texts[] = {
    {"add.s32 %r1, %r2;", "t.ptx:12: add.s32: wrong number of operands"},
    {"add.s32 %r1, %r8, %r19;", "register %r19 is read and never written"},
    {"mov.b32 %r1, {%h6, %h7}; add.s16 %h1, %h6, 1;", "register %h6 is read and never written"},
    {"add.s32 %r1, %r8, %d8;", "add.s32: register %d8 is .b64"},
    {"frob.s32 %r1, %r8;", "frob.s32: no such instruction is simulated"},
    {"add.rz.f16 %h1, 1, 1;", "add.rz.f16: rounds to nearest only"},
    {"bra L;", "bra: a label is expected"},
    {"L: L:", "label L stands twice"},
    {"ld.global.u32 %r1, [foo];", "ld.global.u32: unknown name foo"},
    {"mov.u32 %r1, %clock;", "%clock is not simulated"},
    {"@%r1 bra L;", "a predicate is expected behind @"},
    {"call foo;", "call: "},
    {"ld.global.v4.u32 {%r1, %r2}, [%d9];", "as many registers are expected"},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0}, {%d1}, {%d2}, {%d3};",
     "no such product is simulated"},
    {"{ { ", "} is expected"},
    {"cp.async.wait_group 1048577;", "such a number is not simulated"},
    {"cp.async.ca.shared.global.L2:128B [%d8], [%d11], 4;", "128B: a name is expected"},
    {"mov.u32 %r1, 0x;", "no number"},
    {".reg .b32 %r1;", "%r1 is defined twice"},
    {"mov.u32 %r1", "; is expected"},
};
START_TEST(text) {
  static int32_t in[32], out[32];
  const char *s = kernel(texts[_i].body);
  const char *cut = strstr(texts[_i].why, "; is") ? strstr(s, "\nret;") : NULL;
  job j = {.text = s, .n = cut ? (size_t)(cut - s) : 0, BOTH(32)};
  reported(&j, texts[_i].why);
}
END_TEST
/* A part that nothing writes may be there, where its bits are masked off; if they are not, it
 * shows.
 */
START_TEST(undefined_part) {
  static int32_t in[32], out[32];
  for (int i = 0; i < 32; i++) in[i] = 0x10001 * i;
  for (int masked = 0; masked < 2; masked++) {
    const char *body = tarn_format(
        cx,
        "ld.global.u32 %%r1, [%%d11]; mov.b32 {%%h1, %%h2}, %%r1; mov.b32 %%r2, {%%h5, %%h2};\n"
        "%s st.global.u32 [%%d10], %%r2;",
        masked ? "and.b32 %r2, %r2, -65536;" : "");
    job j = {.text = kernel(body), BOTH(32)};
    right(&j);
    for (int i = 0; i < 32; i++) ck_assert_int_eq(out[i], (i << 16) + (masked ? 0 : 0xffff));
  }
}
END_TEST
START_TEST(every_cut) {
  static int32_t in[32], out[32];
  const char *s = kernel(".shared .align 4 .f32 q[3];\n@%p1 bra L; L: mov.b64 {%r1, %r2}, %d8;"
                         "setp.eq.s32 %p1|%p2, %r1, -3;"
                         "cp.async.ca.shared.global.L2::128B [%d8], [%d11], 4;");
  for (size_t n = strlen(HEAD) + 1; n < strlen(s) - 2; n++) {
    job j = {.text = s, .n = n, BOTH(32)};
    tarn_status st = tarn_protect(cx, run, &j);
    ck_assert_msg(st == TARN_BAD_INPUT, "%.*s", (int)n, s);
    ck_assert_msg(!strncmp(tarn_message(cx), "t.ptx:", 6), "%s", tarn_message(cx));
  }
}
END_TEST

int main(void) {
  const looped tests[] = {{divergence, 1},        {early_return, 1},  {shuffles, 1},
                          {counters, N(counted)}, {fault, N(faults)}, {dynamic_memory, 1},
                          {agreed_writes, 1},     {blocks_race, 1},   {text, N(texts)},
                          {every_cut, 1},         {undefined_part, 1}};
  return run_looped("ptx", setup, teardown, tests, N(tests));
}
