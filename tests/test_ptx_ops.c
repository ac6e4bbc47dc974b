/* sim/ptx: hand-written PTX for each opcode and shape of matrix, with the results that the manual
 * gives. */
#include "tests/ptx_kit.h"

/* ---------------------------------------------------------------- opcodes */
/* %X1, %X2, %X3 hold a, b, c in every class of registers X; %X0 is the result. */
static const struct opcode {
  const char *op;
  uint64_t a, b, c, d;
} opcodes[] = {
    {"add.s32 %r0, %r1, %r2", 3, 0xffffffff, 0, 2},
    {"add.u64 %d0, %d1, %d2", UINT64_MAX, 2, 0, 1},
    {"add.s16 %h0, %h1, %h2", 0xffff, 2, 0, 1},
    {"add.f32 %r0, %r1, %r2", 0x3f800000, 0x40000000, 0, 0x40400000},
    {"add.rn.f64 %d0, %d1, %d2", 0x3ff0000000000000, 0x3ff0000000000000, 0, 0x4000000000000000},
    {"add.rn.f16 %h0, %h1, %h2", 0x3c00, 0x4000, 0, 0x4200},
    {"add.f16x2 %r0, %r1, %r2", 0x3c004000, 0x40003c00, 0, 0x42004200},
    {"add.ftz.f32 %r0, %r1, %r2", 1, 0x3f800000, 0, 0x3f800000},
    {"add.sat.f32 %r0, %r1, %r2", 0x3f800000, 0x40000000, 0, 0x3f800000},
    {"sub.s32 %r0, %r1, %r2", 3, 5, 0, 0xfffffffe},
    {"sub.s32 %r0, 10, %r1", 3, 0, 0, 7},
    {"sub.f32 %r0, %r1, 0f3F800000", 0x40400000, 0, 0, 0x40000000},
    {"mul.lo.s32 %r0, %r1, %r2", 0x10001, 0x10001, 0, 0x20001},
    {"mul.hi.u32 %r0, %r1, %r2", 0xffffffff, 0xffffffff, 0, 0xfffffffe},
    {"mul.hi.s32 %r0, %r1, %r2", 0xffffffff, 0xffffffff, 0, 0},
    {"mul.wide.s32 %d0, %r1, %r2", 0xffffffff, 2, 0, (uint64_t)-2},
    {"mul.wide.u32 %d0, %r1, %r2", 0xffffffff, 2, 0, 0x1fffffffe},
    {"mul.wide.u16 %r0, %h1, %h2", 0xffff, 0xffff, 0, 0xfffe0001},
    {"mul.lo.s64 %d0, %d1, %d2", (uint64_t)-3, 5, 0, (uint64_t)-15},
    {"mul.hi.s64 %d0, %d1, %d2", (uint64_t)-3, 5, 0, UINT64_MAX},
    {"mad.lo.s32 %r0, %r1, %r2, %r3", 3, 4, 5, 17},
    {"mad.lo.s64 %d0, %d1, %d2, %d3", 3, 4, 5, 17},
    {"mad.wide.s32 %d0, %r1, %r2, %d3", 0xffffffff, 4, 5, 1},
    {"fma.rn.f32 %r0, %r1, %r2, %r3", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
    {"fma.rn.f64 %d0, %d1, %d2, %d3", 0x4000000000000000, 0x4000000000000000, 0x3ff0000000000000,
     0x4014000000000000},
    {"fma.rn.f16 %h0, %h1, %h2, %h3", 0x4000, 0x4000, 0x3c00, 0x4500},
    {"add.rp.f32 %r0, %r1, %r2", 0x3f800000, 1, 0, 0x3f800001},
    {"add.rm.f32 %r0, %r1, %r2", 0x3f800000, 0x80000001, 0, 0x3f7fffff},
    {"mul.rz.f64 %d0, %d1, %d2", 0x3fefffffffffffff, 0x3fefffffffffffff, 0, 0x3feffffffffffffe},
    {"mad.rn.f32 %r0, %r1, %r2, %r3", 0x40000000, 0x40000000, 0x3f800000, 0x40a00000},
    {"div.s32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, (uint32_t)-3},
    {"div.u32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, 0x7ffffffc},
    {"div.s32 %r0, %r1, %r2", 0x80000000, 0xffffffff, 0, 0x80000000},
    {"rem.s32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, (uint32_t)-1},
    {"rem.u64 %d0, %d1, %d2", 17, 5, 0, 2},
    {"div.s64 %d0, %d1, %d2", (uint64_t)-17, 5, 0, (uint64_t)-3},
    {"div.rn.f32 %r0, %r1, %r2", 0x3f800000, 0x40400000, 0, 0x3eaaaaab},
    {"div.full.f32 %r0, %r1, %r2", 0x40c00000, 0x40400000, 0, 0x40000000},
    {"min.s32 %r0, %r1, %r2", 0xffffffff, 1, 0, 0xffffffff},
    {"min.u32 %r0, %r1, %r2", 0xffffffff, 1, 0, 1},
    {"max.s16 %h0, %h1, %h2", 0xffff, 1, 0, 1},
    {"max.s64 %d0, %d1, %d2", UINT64_MAX, 1, 0, 1},
    {"max.f32 %r0, %r1, %r2", 0x7fc00000, 0x3f800000, 0, 0x3f800000},
    {"max.NaN.f32 %r0, %r1, %r2", 0x7fc00000, 0x3f800000, 0, 0x7fc00000},
    {"max.f32 %r0, %r1, %r2", 0x80000000, 0, 0, 0},
    {"min.f32 %r0, %r1, %r2", 0, 0x80000000, 0, 0x80000000},
    {"abs.s32 %r0, %r1", (uint32_t)-7, 0, 0, 7},
    {"abs.f32 %r0, %r1", 0xbf800000, 0, 0, 0x3f800000},
    {"neg.s32 %r0, %r1", 7, 0, 0, (uint32_t)-7},
    {"neg.f64 %d0, %d1", 0x3ff0000000000000, 0, 0, 0xbff0000000000000},
    {"and.b32 %r0, %r1, 255", 0x1234, 0, 0, 0x34},
    {"or.b64 %d0, %d1, %d2", 1, 2, 0, 3},
    {"xor.b16 %h0, %h1, %h2", 3, 5, 0, 6},
    {"not.b32 %r0, %r1", 0, 0, 0, 0xffffffff},
    {"shl.b32 %r0, %r1, %r2", 3, 4, 0, 48},
    {"shl.b32 %r0, %r1, %r2", 3, 32, 0, 0},
    {"shr.u32 %r0, %r1, %r2", 0x80000000, 31, 0, 1},
    {"shr.s32 %r0, %r1, %r2", 0x80000000, 40, 0, 0xffffffff},
    {"shr.s64 %d0, %d1, 4", (uint64_t)-256, 0, 0, (uint64_t)-16},
    {"shf.l.wrap.b32 %r0, %r1, %r2, %r3", 0x80000000, 1, 1, 3},
    {"shf.r.wrap.b32 %r0, %r1, %r2, %r3", 2, 1, 1, 0x80000001},
    {"bfe.u32 %r0, %r1, %r2, %r3", 0x12345678, 8, 8, 0x56},
    {"bfe.s32 %r0, %r1, %r2, %r3", 0x0000f000, 12, 4, 0xffffffff},
    {"bfe.s64 %d0, %d1, %r2, 8", 0xff00000000, 32, 0, UINT64_MAX},
    {"bfi.b32 %r0, %r1, %r2, %r3, 4", 0xf, 0x12345678, 8, 0x12345f78},
    {"bfi.b64 %d0, %d1, %d2, %r3, 32", 5, 7, 32, 0x500000007},
    {"popc.b32 %r0, %r1", 0xff01, 0, 0, 9},
    {"clz.b32 %r0, %r1", 1, 0, 0, 31},
    {"clz.b64 %r0, %d1", 1, 0, 0, 63},
    {"brev.b32 %r0, %r1", 1, 0, 0, 0x80000000},
    {"prmt.b32 %r0, %r1, %r2, %r3", 0x33221100, 0x77665544, 0x7531, 0x77553311},
    {"sad.u32 %r0, %r1, %r2, %r3", 5, 9, 1, 5},
    {"sad.s32 %r0, %r1, %r2, %r3", (uint32_t)-3, 4, 10, 17},
    {"sad.u64 %d0, %d1, %d2, %d3", 5, UINT64_C(1) << 40, 1, (UINT64_C(1) << 40) - 4},
    {"dp4a.s32.s32 %r0, %r1, %r2, %r3", 0xff020304, 0x01010101, 10, 18},
    {"dp4a.u32.u32 %r0, %r1, %r2, %r3", 0xff020304, 0x01010101, 10, 274},
    {"copysign.f32 %r0, %r1, %r2", 0x80000000, 0x3f800000, 0, 0xbf800000},
    {"sqrt.rn.f32 %r0, %r1", 0x40800000, 0, 0, 0x40000000},
    {"rcp.approx.ftz.f64 %d0, %d1", 0x40080000ffffffff, 0, 0, 0x3fd5555500000000},
    {"rsqrt.approx.ftz.f64 %d0, %d1", 0x4010000000000000, 0, 0, 0x3fe0000000000000},
    {"rsqrt.approx.f32 %r0, %r1", 0x40800000, 0, 0, 0x3f000000},
    {"rcp.rn.f32 %r0, %r1", 0x40800000, 0, 0, 0x3e800000},
    {"sin.approx.f32 %r0, %r1", 0, 0, 0, 0},
    {"cos.approx.f32 %r0, %r1", 0, 0, 0, 0x3f800000},
    {"ex2.approx.f32 %r0, %r1", 0x40400000, 0, 0, 0x41000000},
    {"ex2.approx.ftz.f32 %r0, %r1", 0xc3160000, 0, 0, 0},
    {"lg2.approx.f32 %r0, %r1", 0x41000000, 0, 0, 0x40400000},
    {"tanh.approx.f32 %r0, %r1", 0, 0, 0, 0},
    {"mov.u32 %r0, %r1", 7, 0, 0, 7},
    {"mov.b64 %d0, {%r1, %r2}", 7, 8, 0, 0x800000007},
    {"mov.b32 %r0, {%h1, %h2}", 7, 8, 0, 0x80007},
    {"mov.b64 {%r4, %r0}, %d1", 0x800000007, 0, 0, 8},
    {"mov.f32 %f0, 0f40000000; mov.b32 %r0, %f0", 0, 0, 0, 0x40000000},
    {"mov.f64 %g0, 0d4000000000000000; mov.b64 %d0, %g0", 0, 0, 0, 0x4000000000000000},
    {"selp.b32 %r0, %r1, %r2, %p3", 7, 8, 1, 7},
    {"selp.f64 %d0, %d1, %d2, %p3", 7, 8, 0, 8},
    {"testp.infinite.f32 %p0, %r1", 0xff800000, 0, 0, 1},
    {"testp.finite.f32 %p0, %r1", 0x7f800000, 0, 0, 0},
    {"testp.number.f32 %p0, %r1", 0x7fc00001, 0, 0, 0},
    {"testp.notanumber.f64 %p0, %d1", 0x7ff8000000000000, 0, 0, 1},
    {"testp.normal.f32 %p0, %r1", 0x80000000, 0, 0, 1},
    {"testp.subnormal.f64 %p0, %d1", 1, 0, 0, 1},
    {"setp.lt.s32 %p0, %r1, %r2", 0xffffffff, 0, 0, 1},
    {"setp.lo.u32 %p0, %r1, %r2", 0xffffffff, 0, 0, 0},
    {"setp.lt.and.s32 %p0, %r1, %r2, %p3", 1, 2, 0, 0},
    {"setp.lt.or.s32 %p0, %r1, %r2, !%p3", 3, 2, 0, 1},
    {"setp.lt.s32 %p4|%p0, %r1, %r2", 1, 2, 0, 0},
    {"setp.ne.f32 %p0, %r1, %r2", 0x7fc00000, 0, 0, 0},
    {"setp.neu.f32 %p0, %r1, %r2", 0x7fc00000, 0, 0, 1},
    {"setp.equ.f32 %p0, %r1, %r2", 0x7fc00000, 0, 0, 1},
    {"setp.gtu.f32 %p0, %r1, %r2", 0x7fc00000, 0, 0, 1},
    {"setp.num.f32 %p0, %r1, %r2", 0x7fc00000, 0, 0, 0},
    {"setp.nan.f32 %p0, %r1, %r2", 0x7fc00000, 0, 0, 1},
    {"setp.gt.f64 %p0, %d1, %d2", 0x4000000000000000, 0x3ff0000000000000, 0, 1},
    {"setp.gt.f16 %p0, %h1, %h2", 0x4000, 0x3c00, 0, 1},
    {"and.pred %p0, %p1, %p2", 1, 0, 0, 0},
    {"or.pred %p0, %p1, %p2", 1, 0, 0, 1},
    {"xor.pred %p0, %p1, %p2", 1, 1, 0, 0},
    {"not.pred %p0, %p1", 0, 0, 0, 1},
    {"cvt.u64.u32 %d0, %r1", 0xffffffff, 0, 0, 0xffffffff},
    {"cvt.s64.s32 %d0, %r1", 0xffffffff, 0, 0, UINT64_MAX},
    {"cvt.u32.u64 %r0, %d1", 0x100000005, 0, 0, 5},
    {"cvt.s32.s8 %r0, %r1", 0x1ff, 0, 0, 0xffffffff},
    {"cvt.u32.u16 %r0, %h1", 0xffff, 0, 0, 0xffff},
    {"cvt.u16.u32 %h0, %r1", 0x12345, 0, 0, 0x2345},
    {"cvt.sat.s8.s32 %r0, %r1", 300, 0, 0, 127},
    {"cvt.sat.u8.s32 %r0, %r1", (uint32_t)-3, 0, 0, 0},
    {"cvt.rn.f32.s32 %r0, %r1", (uint32_t)-2, 0, 0, 0xc0000000},
    {"cvt.rn.f32.u64 %r0, %d1", 16777219, 0, 0, 0x4b800002},
    {"cvt.rzi.s32.f32 %r0, %r1", 0xc0200000, 0, 0, (uint32_t)-2},
    {"cvt.rni.s32.f32 %r0, %r1", 0x40200000, 0, 0, 2},
    {"cvt.rmi.s32.f32 %r0, %r1", 0xc0200000, 0, 0, (uint32_t)-3},
    {"cvt.rpi.f32.f32 %r0, %r1", 0x40200000, 0, 0, 0x40400000},
    {"cvt.rzi.u32.f32 %r0, %r1", 0xc0200000, 0, 0, 0},
    {"cvt.rzi.s32.f32 %r0, %r1", 0x7f800000, 0, 0, 0x7fffffff},
    {"cvt.rzi.s32.f32 %r0, %r1", 0x7fc00000, 0, 0, 0},
    {"cvt.f64.f32 %d0, %r1", 0x3f800000, 0, 0, 0x3ff0000000000000},
    {"cvt.rn.f32.f64 %r0, %d1", 0x3ff0000000000001, 0, 0, 0x3f800000},
    {"cvt.f32.f16 %r0, %h1", 0x3c00, 0, 0, 0x3f800000},
    {"cvt.rn.f16.f32 %h0, %r1", 0x3f801000, 0, 0, 0x3c00},
    {"cvt.rn.bf16.f32 %h0, %r1", 0x3f808000, 0, 0, 0x3f80},
    {"cvt.rn.f16x2.f32 %r0, %r1, %r2", 0x3f800000, 0x40000000, 0, 0x3c004000},
    {"cvt.rna.tf32.f32 %r0, %r1", 0x3f801000, 0, 0, 0x3f802000},
    {"mov.u32 %r0, %laneid; add.s32 %r0, %r0, %ntid.x", 0, 0, 0, 1},
    {"st.shared.v2.u32 [sh+8], {%r1, %r2}; ld.shared.u64 %d0, [sh+8]", 7, 8, 0, 0x800000007},
    {"st.shared.u8 [sh], %r1; ld.shared.s8 %r0, [sh]", 0xff, 0, 0, 0xffffffff},
    {"cvta.shared.u64 %d4, 16; st.u32 [%d4], %r1; ld.shared.u32 %r0, [sh+16]", 9, 0, 0, 9},
    {"st.shared.u32 [sh], %r1; atom.shared.add.u32 %r4, [sh], %r2; bar.sync 0; ld.shared.u32 %r0, "
     "[sh]",
     7, 1, 0, 8},
    {"st.shared.u32 [sh], %r1; atom.shared.cas.b32 %r0, [sh], %r1, %r2", 7, 1, 0, 7},
    {"red.shared.max.s32 [sh], %r1; bar.sync 0; ld.shared.u32 %r0, [sh]", 7, 1, 0, 7},
    {"activemask.b32 %r0", 0, 0, 0, 1},
    {"vote.sync.ballot.b32 %r0, %p1, 1", 1, 0, 0, 1},
};

/* Moves the result to %d0. */
static const char *result(const char *op) {
  for (const char *kind = "dhrp"; *kind; kind++) {
    if (!strstr(op, tarn_format(cx, "%%%c0", *kind))) continue;
    if (*kind == 'd') return "";
    if (*kind == 'p') return "selp.b64 %d0, 1, 0, %p0;";
    return tarn_format(cx, "cvt.u64.u%d %%d0, %%%c0;", *kind == 'h' ? 16 : 32, *kind);
  }
  return "";
}
START_TEST(opcode) {
  const struct opcode *o = &opcodes[_i];
  uint64_t out = 0, in[3] = {o->a, o->b, o->c};
  const char *body =
      "ld.global.u64 %d1, [%d9]; ld.global.u64 %d2, [%d9+8]; ld.global.u64 %d3, [%d9+16];\n"
      "cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2; cvt.u32.u64 %r3, %d3;\n"
      "cvt.u16.u64 %h1, %d1; cvt.u16.u64 %h2, %d2; cvt.u16.u64 %h3, %d3;\n"
      "setp.ne.s64 %p1, %d1, 0; setp.ne.s64 %p2, %d2, 0; setp.ne.s64 %p3, %d3, 0;\n";
  if (strstr(o->op, "red.")) body = tarn_format(cx, "%s st.shared.u32 [sh], 0;\n", body);
  body = tarn_format(cx, "%s %s; %s st.global.u64 [%%d8], %%d0;", body, o->op, result(o->op));
  job j = {.text = kernel(body), .block = {1}, .a = {{&out, 8, TARN_PTX_UNDEFINED}}};
  j.a[1] = (array){in, 24, TARN_PTX_CONSTANT};
  right(&j);
  ck_assert_msg(out == o->d, "%s gives 0x%llx, not 0x%llx", o->op, (unsigned long long)out,
                (unsigned long long)o->d);
}
END_TEST

/* ---------------------------------------------------------------- matrices */
/* Words of fragments: lane l holds rows l / 4 and l / 4 + 8, words l % 4 and l % 4 + 4. */
static const struct product {
  const char *op;
  int k, each; /* the sum, elements of a word */
} products[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 2},        {"m16n8k8.row.col.f32.f16.f16.f32", 8, 2},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 8, 1},        {"m16n8k4.row.col.f32.tf32.tf32.f32", 4, 1},
    {"m16n8k32.row.col.s32.s8.s8.s32", 32, 4},          {"m16n8k16.row.col.s32.s8.s8.s32", 16, 4},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 32, 4}};
static uint32_t word_of(const int *v, int each) {
  uint32_t w = 0;
  static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200};
  for (int e = 0; e < each; e++) {
    float f = (float)v[e];
    if (each == 1) memcpy(&w, &f, 4);
    else if (each == 2) w |= (uint32_t)(v[e] < 0 ? 0x8000 | halves[-v[e]] : halves[v[e]]) << 16 * e;
    else w |= (uint32_t)(uint8_t)v[e] << 8 * e;
  }
  return w;
}
START_TEST(product) {
  const struct product *p = &products[_i];
  int a[16][32], b[8][32], regs = p->k / p->each / 2;
  static uint32_t in[32 * 16], out[32 * 4];
  uint64_t seed = 5;
  for (int i = 0; i < 16; i++)
    for (int k = 0; k < 32; k++) a[i][k] = (int)(tarn_random(&seed) % 7) - 3;
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 32; k++) b[i][k] = (int)(tarn_random(&seed) % 7) - 3;
  for (int l = 0; l < 32; l++)
    for (int i = 0; i < 4; i++) {
      in[i * 32 + l] = word_of(&a[l / 4 + 8 * (i & 1)][(l % 4 + 4 * (i >> 1)) * p->each], p->each);
      in[(4 + i) * 32 + l] = word_of(&b[l / 4][(l % 4 + 4 * (i & 1)) * p->each], p->each);
    }
  tarn_buf t = {.cx = cx};
  for (int i = 0; i < 6; i++) tarn_buf_fmt(&t, "ld.global.u32 %%r%d, [%%d11+%d];\n", i, i * 128);
  tarn_buf_fmt(&t, "mov.u32 %%r10, 0; mma.sync.aligned.%s {%%r11,%%r12,%%r13,%%r14}, {", p->op);
  for (int i = 0; i < regs; i++) tarn_buf_fmt(&t, "%s%%r%d", i ? "," : "", i);
  tarn_buf_str(&t, regs == 4 ? "}, {%r4,%r5}" : "}, {%r4}");
  tarn_buf_str(&t, ", {%r10,%r10,%r10,%r10};\n");
  for (int i = 0; i < 4; i++)
    tarn_buf_fmt(&t, "st.global.u32 [%%d10+%d], %%r%d;\n", i * 128, 11 + i);
  job j = {.text = kernel(t.p),
           .a = {{out, sizeof out, TARN_PTX_UNDEFINED}, {in, sizeof in, TARN_PTX_CONSTANT}}};
  right(&j);
  for (int l = 0; l < 32; l++)
    for (int i = 0; i < 4; i++) {
      int row = l / 4 + 8 * (i >> 1), col = l % 4 * 2 + (i & 1), sum = 0;
      for (int k = 0; k < p->k; k++) sum += a[row][k] * b[col][k];
      float f;
      memcpy(&f, &out[i * 32 + l], 4);
      ck_assert_int_eq(p->each == 4 ? (int)out[i * 32 + l] : (int)f, sum);
    }
  ck_assert_int_eq(j.counts.matrix, 1);
}
END_TEST
START_TEST(matrices_loaded) {
  static uint32_t in[128], out[128];
  for (int i = 0; i < 2; i++) {
    for (uint32_t k = 0; k < 128; k++) in[k] = (2 * k + 1) << 16 | 2 * k; /* halves 0, 1, … */
    const char *body =
        tarn_format(cx,
                    "shl.b32 %%r1, %%r8, 4; shl.b32 %%r2, %%r8, 4; cvt.u64.u32 %%d1, %%r2;\n"
                    "add.s64 %%d1, %%d9, %%d1; ld.global.v4.u32 {%%r2,%%r3,%%r4,%%r5}, [%%d1];\n"
                    "st.shared.v4.u32 [%%r1], {%%r2,%%r3,%%r4,%%r5}; bar.sync 0;\n"
                    "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%%r2,%%r3,%%r4,%%r5}, [%%r1];\n"
                    "st.global.u32 [%%d10], %%r2; st.global.u32 [%%d10+128], %%r3;\n"
                    "st.global.u32 [%%d10+256], %%r4; st.global.u32 [%%d10+384], %%r5;",
                    i ? ".trans" : "");
    job j = {.text = kernel(body), BOTH(128)};
    right(&j);
    for (uint32_t m = 0; m < 4; m++)
      for (uint32_t l = 0; l < 32; l++) {
        uint32_t row = l / 4, col = l % 4 * 2;
        uint32_t first = 64 * m + (i ? col * 8 + row : row * 8 + col);
        ck_assert_uint_eq(out[32 * m + l], (first + (i ? 8 : 1)) << 16 | first);
      }
  }
}
END_TEST

int main(void) {
  const looped tests[] = {{opcode, N(opcodes)}, {product, N(products)}, {matrices_loaded, 1}};
  return run_looped("ptx_ops", setup, teardown, tests, N(tests));
}
