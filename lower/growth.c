/* Numbers that grow with a size: polynomials of degree 2 in the size itself, of rational
 * coefficients in lowest terms. So the same number has the same form in every family that has it,
 * whatever its first size and its step are: a trip count of tiles of four is (n - 1) / 4 for all
 * sizes that leave 1. */
#include "lower/family.h"

__extension__ typedef __int128 wide;
#define MOST ((wide)1 << 62)

static wide magnitude(wide x) { return x < 0 ? -x : x; }
static wide divisor(wide a, wide b) {
  while (b) {
    wide r = a % b;
    a = b;
    b = r;
  }
  return magnitude(a);
}
/* c[0] + c[1]·n + c[2]·n² over *div, through two or three points (Lagrange). */
static void through(const int64_t *x, const int64_t *v, uint32_t n, wide c[3], wide *div) {
  c[0] = c[1] = c[2] = 0;
  *div = 1;
  if (n == 1) c[0] = v[0];
  if (n == 2) {
    *div = x[1] - x[0];
    c[1] = (wide)v[1] - v[0];
    c[0] = v[0] * *div - c[1] * x[0];
  }
  if (n < 3) return;
  *div = (wide)(x[1] - x[0]) * (x[2] - x[0]) * (x[2] - x[1]);
  for (uint32_t i = 0; i < 3; i++) {
    int64_t a = x[(i + 1) % 3], b = x[(i + 2) % 3];
    wide w = (wide)v[i] * (b - a);
    c[0] += w * a * b;
    c[1] -= w * (a + b);
    c[2] += w;
  }
}
/* Every step fits, at every size up to n: (c2·n + c1)·n + c0. */
static bool fits(const wide c[3], wide div, int64_t n) {
  wide most = magnitude(c[2]) * n;
  if (div >= MOST || most >= MOST) return false;
  most = (most + magnitude(c[1])) * n;
  return most < MOST && most + magnitude(c[0]) < MOST;
}
bool low_growth_of(const int64_t *size, const int64_t *v, uint32_t n, low_growth *g) {
  wide c[3], div;
  for (uint32_t i = 0; i < n; i++)
    if (size[i] < 0 || size[i] >= 1 << 24 || magnitude(v[i]) >= (wide)1 << 48) return false;
  through(size, v, n < 3 ? n : 3, c, &div);
  wide d = divisor(divisor(c[0], c[1]), divisor(c[2], div));
  for (int i = 0; i < 3; i++) c[i] /= d;
  div /= d;
  if (!fits(c, div, size[n - 1])) return false;
  for (int i = 0; i < 3; i++) g->c[i] = (int64_t)c[i];
  g->div = (int64_t)div;
  for (uint32_t i = 0; i < n; i++)
    if (low_growth_at(g, size[i]) != v[i]) return false;
  return true;
}
int64_t low_growth_at(const low_growth *g, int64_t size) {
  return ((g->c[2] * size + g->c[1]) * size + g->c[0]) / g->div;
}
/* x·by + more, without what changes nothing. */
static LLVMValueRef step(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef by, int64_t more) {
  LLVMTypeRef t = LLVMTypeOf(by);
  if (x && LLVMIsAConstantInt(x) && LLVMConstIntGetSExtValue(x) == 1) x = by;
  else if (x) x = LLVMBuildMul(b, x, by, "");
  LLVMValueRef add = LLVMConstInt(t, (unsigned long long)more, true);
  if (!x) return more ? add : NULL;
  return more ? LLVMBuildAdd(b, x, add, "") : x;
}
LLVMValueRef low_growth_emit(LLVMBuilderRef b, const low_growth *g, LLVMValueRef size,
                             LLVMTypeRef type) {
  LLVMTypeRef t = LLVMTypeOf(size);
  LLVMValueRef v = NULL;
  for (int i = 3; i-- > 0;) v = step(b, v, size, g->c[i]);
  if (!v) v = LLVMConstNull(t);
  if (g->div != 1)
    v = LLVMBuildExactSDiv(b, v, LLVMConstInt(t, (unsigned long long)g->div, true), "");
  return LLVMBuildIntCast2(b, v, type, true, "");
}
