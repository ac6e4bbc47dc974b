/* The table of reference kernels, the call, and access to elements of any type. */
#include "runtime/ref/ref_internal.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *op;
  tarn_ref_kernel *run;
} kernels[] = {
#define REF(name, function) {#name, function},
    TARN_REF_KERNELS(REF)
#undef REF
};

tarn_ref_kernel *tarn_ref_find(const char *op) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (strcmp(kernels[i].op, op) == 0) return kernels[i].run;
  return NULL;
}

#define MAX_SLOTS 32

int tarn_ref_run(const char *op, const tarn_ref_attr *attr, uint32_t nattr,
                 const tarn_ref_tensor *in, uint32_t nin, const tarn_ref_tensor *out, uint32_t nout,
                 char message[TARN_REF_MESSAGE]) {
  tarn_ref_call c = {.attr = attr, .nattr = nattr, .nin = nin, .nout = nout, .in = in, .out = out};
  tarn_ref_tensor by_slot[MAX_SLOTS] = {{0}};
  const tarn_ref_attr *slots = ref_attr(&c, "slots");
  tarn_ref_kernel *run = tarn_ref_find(op);
  int bad = run ? TARN_REF_OK : TARN_REF_FAILED;
  if (!run) ref_fail(&c, "no kernel of that name");
  if (!bad && slots) {
    for (uint32_t i = 0; i < nin && !bad; i++) {
      bad = i >= slots->n || slots->is[i] < 0 || slots->is[i] >= MAX_SLOTS;
      if (!bad) by_slot[slots->is[i]] = in[i];
    }
    if (bad) ref_fail(&c, "the attribute slots does not fit the inputs");
    c.in = by_slot;
    c.nin = MAX_SLOTS;
  }
  if (!bad) bad = run(&c);
  memcpy(message, c.message, TARN_REF_MESSAGE);
  return bad;
}

int ref_fail(tarn_ref_call *c, const char *why) {
  snprintf(c->message, sizeof c->message, "%s", why);
  return TARN_REF_FAILED;
}

int ref_outside(tarn_ref_call *c, const char *what) {
  snprintf(c->message, sizeof c->message, "%s is out of range", what);
  return TARN_REF_INDEX;
}

const tarn_ref_attr *ref_attr(const tarn_ref_call *c, const char *name) {
  for (uint32_t i = 0; i < c->nattr; i++)
    if (strcmp(c->attr[i].name, name) == 0) return &c->attr[i];
  return NULL;
}

int64_t ref_int(const tarn_ref_call *c, const char *name, int64_t otherwise) {
  const tarn_ref_attr *a = ref_attr(c, name);
  return a ? a->i : otherwise;
}

double ref_real(const tarn_ref_call *c, const char *name, double otherwise) {
  const tarn_ref_attr *a = ref_attr(c, name);
  return a ? a->r : otherwise;
}

const char *ref_str(const tarn_ref_call *c, const char *name, const char *otherwise) {
  const tarn_ref_attr *a = ref_attr(c, name);
  return a && a->s ? a->s : otherwise;
}

const tarn_ref_tensor *ref_in(const tarn_ref_call *c, uint32_t i) {
  return i < c->nin && c->in[i].data ? &c->in[i] : NULL;
}

int64_t ref_span(const tarn_ref_tensor *t, int32_t from, int32_t to) {
  int64_t count = 1;
  for (int32_t i = from; i < to; i++) count *= t->dim[i];
  return count;
}

int64_t ref_count(const tarn_ref_tensor *t) { return ref_span(t, 0, t->n); }

int32_t ref_axis(const tarn_ref_call *c, int64_t otherwise, int32_t rank) {
  int64_t a = ref_int(c, "axis", otherwise);
  if (a < 0) a += rank;
  return a >= 0 && a < rank ? (int32_t)a : -1;
}

bool ref_index(const tarn_ref_tensor *index, int64_t i, int64_t extent, int64_t *at) {
  *at = ref_get_int(index, i);
  if (*at < 0 && index->dtype != TARN_REF_U64) *at += extent;
  return *at >= 0 && *at < extent;
}

/* ---------------------------------------------------------------- elements */

static const uint8_t sizes[] = {4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1};

size_t ref_size(int32_t dtype) { return dtype >= 0 && dtype <= TARN_REF_BOOL ? sizes[dtype] : 0; }

static double from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return (double)f;
}

static double from_half(uint16_t h) {
  int e = h >> 10 & 31, m = h & 1023;
  double v = e == 31 ? (m ? (double)NAN : (double)INFINITY)
             : e     ? ldexp(1024 + m, e - 25)
                     : ldexp(m, -24);
  return h >> 15 ? -v : v;
}

static uint16_t to_half(double v) {
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  double a = fabs(v);
  if (isnan(v)) return 0x7e00;
  if (a >= 65520) return (uint16_t)(sign | 0x7c00);
  int e;
  frexp(a, &e);
  int shift = e - 1 < -14 ? -24 : e - 11; /* the unit in the last place */
  double m = nearbyint(ldexp(a, -shift));
  if (shift == -24)
    return (uint16_t)(sign |
                      (uint16_t)m); /* a carry out of the subnormals lands on the least normal */
  if (m >= 2048) m /= 2, shift++;
  return (uint16_t)(sign | ((shift + 25) << 10) | ((uint16_t)m - 1024));
}

/* By way of the float rounded to odd, so that v is rounded once (Boldo, Melquiond 2008). */
static uint16_t to_bfloat(double v) {
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  if (isnan(v)) return 0x7fc0;
  if ((double)f != v) bits = (bits - (fabs((double)f) > fabs(v))) | 1;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

int64_t ref_get_int(const tarn_ref_tensor *t, int64_t at) {
  const char *p = (const char *)t->data + (size_t)at * ref_size(t->dtype);
  switch (t->dtype) {
  case TARN_REF_I8: return *(const int8_t *)p;
  case TARN_REF_U8:
  case TARN_REF_BOOL: return *(const uint8_t *)p;
  case TARN_REF_I16: return *(const int16_t *)p;
  case TARN_REF_U16: return *(const uint16_t *)p;
  case TARN_REF_I32: return *(const int32_t *)p;
  case TARN_REF_U32: return *(const uint32_t *)p;
  case TARN_REF_I64:
  case TARN_REF_U64: return *(const int64_t *)p;
  default: return (int64_t)ref_get(t, at);
  }
}

double ref_get(const tarn_ref_tensor *t, int64_t at) {
  const char *p = (const char *)t->data + (size_t)at * ref_size(t->dtype);
  switch (t->dtype) {
  case TARN_REF_F32: return (double)*(const float *)p;
  case TARN_REF_F64: return *(const double *)p;
  case TARN_REF_F16: return from_half(*(const uint16_t *)p);
  case TARN_REF_BF16: return from_bits((uint32_t) * (const uint16_t *)p << 16);
  case TARN_REF_U64: return (double)*(const uint64_t *)p;
  default: return (double)ref_get_int(t, at);
  }
}

void ref_set_int(const tarn_ref_tensor *t, int64_t at, int64_t v) {
  memcpy((char *)t->data + (size_t)at * ref_size(t->dtype), &v,
         ref_size(t->dtype)); /* little-endian: the low bytes */
}

void ref_set(const tarn_ref_tensor *t, int64_t at, double v) {
  char *p = (char *)t->data + (size_t)at * ref_size(t->dtype);
  switch (t->dtype) {
  case TARN_REF_F32: *(float *)p = (float)v; break;
  case TARN_REF_F64: *(double *)p = v; break;
  case TARN_REF_F16: *(uint16_t *)p = to_half(v); break;
  case TARN_REF_BF16: *(uint16_t *)p = to_bfloat(v); break;
  default: ref_set_int(t, at, fabs(v) < 9e18 ? (int64_t)v : 0);
  }
}
