/* The loops that are timed, for vectors of BYTES bytes. Included once for each width (loops.c):
 * compilers take a vector that is wider than the registers apart in memory, and time that.
 * Undefines BYTES and TARGET. */
#define PASTE_(a, b) a##_##b
#define PASTE(a, b)  PASTE_(a, b)
#define NAME(what)   PASTE(what, BYTES)
#define VEC          NAME(vec)
#define IVEC         NAME(ivec)
#define LANES        (BYTES / 4)
#define AT(p, i)     (*(const VEC *)(const void *)((p) + (i)*LANES))
#define PUT(p, i)    (*(VEC *)(void *)((p) + (i)*LANES))

typedef float VEC __attribute__((vector_size(BYTES), aligned(BYTES)));
typedef unsigned IVEC __attribute__((vector_size(BYTES), aligned(BYTES)));

/* Built with -ffp-contract=fast (hw/CMakeLists.txt): each line is one wide multiply-add, twelve
 * chains at once. */
TARGET static float NAME(fma)(float *out, size_t n, size_t times) {
  (void)n;
  VEC b = {0}, c = {0};
  for (int j = 0; j < LANES; j++) b[j] = out[0] + 0.999f, c[j] = out[1] + 1e-3f;
  VEC a0 = b, a1 = a0 + c, a2 = a1 + c, a3 = a2 + c, a4 = a3 + c, a5 = a4 + c, a6 = a5 + c,
      a7 = a6 + c;
  VEC a8 = a7 + c, a9 = a8 + c, a10 = a9 + c, a11 = a10 + c;
  for (size_t k = 0; k < times; k++) {
    a0 = a0 * b + c, a1 = a1 * b + c, a2 = a2 * b + c, a3 = a3 * b + c;
    a4 = a4 * b + c, a5 = a5 * b + c, a6 = a6 * b + c, a7 = a7 * b + c;
    a8 = a8 * b + c, a9 = a9 * b + c, a10 = a10 * b + c, a11 = a11 * b + c;
  }
  VEC s = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  return s[0];
}
/* Multiply-adds and integer operations in turn: cores that do the latter on further ports take more
 * of both. */
TARGET static float NAME(mixed)(float *out, size_t n, size_t times) {
  (void)n;
  VEC b = {0}, c = {0};
  for (int j = 0; j < LANES; j++) b[j] = out[0] + 0.999f, c[j] = out[1] + 1e-3f;
  VEC a0 = b, a1 = a0 + c, a2 = a1 + c, a3 = a2 + c, a4 = a3 + c, a5 = a4 + c, a6 = a5 + c,
      a7 = a6 + c;
  IVEC x = (IVEC)b, y = (IVEC)c, i0 = x, i1 = x + y, i2 = i1 + y, i3 = i2 + y;
  for (size_t k = 0; k < times; k++) {
    a0 = a0 * b + c, a1 = a1 * b + c, a2 = a2 * b + c, a3 = a3 * b + c;
    i0 = (i0 ^ x) + y, i1 = (i1 ^ x) + y;
    a4 = a4 * b + c, a5 = a5 * b + c, a6 = a6 * b + c, a7 = a7 * b + c;
    i2 = (i2 ^ x) + y, i3 = (i3 ^ x) + y;
  }
  VEC s = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7;
  IVEC i = i0 + i1 + i2 + i3;
  return s[0] + (float)(i[0] & 1);
}

/* Each goes over n floats (a multiple of TARN_HOST_STEP) so many times. The asm keeps passes from
 * being merged. */
TARGET static float NAME(read)(float *p, size_t n, size_t times) {
  VEC a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (size_t r = 0; r < times; r++) {
    for (const float *q = p, *end = p + n; q < end; q += 8 * LANES) {
      a += AT(q, 0), b += AT(q, 1), c += AT(q, 2), d += AT(q, 3);
      e += AT(q, 4), f += AT(q, 5), g += AT(q, 6), h += AT(q, 7);
    }
    __asm__ volatile("" : "+r"(p) : : "memory");
  }
  a += b + c + d + e + f + g + h;
  return a[0];
}
TARGET static float NAME(write)(float *p, size_t n, size_t times) {
  VEC v = {0};
  for (size_t r = 0; r < times; r++) {
    v += (float)r;
    for (float *q = p, *end = p + n; q < end; q += 8 * LANES) {
      PUT(q, 0) = v, PUT(q, 1) = v, PUT(q, 2) = v, PUT(q, 3) = v;
      PUT(q, 4) = v, PUT(q, 5) = v, PUT(q, 6) = v, PUT(q, 7) = v;
    }
    __asm__ volatile("" : "+r"(p) : : "memory");
  }
  return p[0];
}
/* From one half to the other, times a number: a plain copy would become a call of memcpy. */
TARGET static float NAME(copy)(float *p, size_t n, size_t times) {
  VEC h = {0};
  h += 0.5f;
  for (size_t r = 0; r < times; r++) {
    const float *from = p;
    for (float *q = p + n / 2, *end = p + n; q < end; q += 8 * LANES, from += 8 * LANES) {
      PUT(q, 0) = AT(from, 0) * h, PUT(q, 1) = AT(from, 1) * h, PUT(q, 2) = AT(from, 2) * h,
             PUT(q, 3) = AT(from, 3) * h;
      PUT(q, 4) = AT(from, 4) * h, PUT(q, 5) = AT(from, 5) * h, PUT(q, 6) = AT(from, 6) * h,
             PUT(q, 7) = AT(from, 7) * h;
    }
    __asm__ volatile("" : "+r"(p) : : "memory");
  }
  return p[n - 1];
}
static const tarn_host_loops NAME(loops) = {
    LANES, NAME(fma), NAME(mixed), {NAME(read), NAME(write), NAME(copy)}};

#undef PASTE_
#undef PASTE
#undef NAME
#undef VEC
#undef IVEC
#undef LANES
#undef AT
#undef PUT
#undef BYTES
#undef TARGET
