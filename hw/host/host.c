/* This machine, as text in the language of descriptions. */
#include "hw/host/internal.h"
#include <hwloc.h>
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct cache {
  size_t size;
  unsigned line, count, ways; /* ways: 0 where the system does not say */
} cache;
typedef struct machine {
  unsigned cores;
  double clock;   /* as the machine states it */
  cache level[4]; /* data or unified caches 1 to 3 */
} machine;

/* The first number in MHz that hwloc finds, or the one in the processor's name ("… @ 2.60GHz"); 3
 * GHz when there is none. Nothing is timed, so that one machine always gives one description, and
 * one model one program. */
static double stated_clock(hwloc_topology_t t) {
  static const char *const infos[] = {"FrequencyMaxMHz", "FrequencyBaseMHz"};
  struct hwloc_info_s *info;
  unsigned n;
  if (hwloc_cpukinds_get_info(t, 0, NULL, NULL, &n, &info, 0) == 0)
    for (unsigned i = 0; i < sizeof infos / sizeof *infos; i++)
      for (unsigned k = 0; k < n; k++)
        if (!strcmp(info[k].name, infos[i]) && atof(info[k].value) > 0)
          return 1e6 * atof(info[k].value);
  hwloc_obj_t o = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
  const char *model = o ? hwloc_obj_get_info_by_name(o, "CPUModel") : NULL,
             *at = model ? strchr(model, '@') : NULL;
  return at && atof(at + 1) > 0 ? 1e9 * atof(at + 1) : 3e9;
}

static void discover(tarn_ctx *cx, machine *m) {
  hwloc_topology_t t;
  if (hwloc_topology_init(&t) < 0) tarn_raise(cx, TARN_IO, "host: hwloc cannot start");
  if (hwloc_topology_load(t) < 0) {
    hwloc_topology_destroy(t);
    tarn_raise(cx, TARN_IO, "host: hwloc cannot read this machine's topology");
  }
  static const hwloc_obj_type_t type[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
  int cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
  m->cores = cores > 0 ? (unsigned)cores : 1;
  m->clock = stated_clock(t);
  for (int i = 0; i < 3; i++) {
    hwloc_obj_t o = hwloc_get_obj_by_type(t, type[i], 0);
    if (!o) continue;
    int n = hwloc_get_nbobjs_by_type(t, type[i]);
    int ways = o->attr->cache.associativity; /* -1: one set */
    m->level[i] = (cache){o->attr->cache.size, o->attr->cache.linesize, n > 0 ? (unsigned)n : 1,
                          ways > 0 ? (unsigned)ways : 0};
  }
  hwloc_topology_destroy(t);
}

/* A whole word of the feature list: +avx512fp16 may stand before +avx512f. */
static bool has(const char *features, const char *feature) {
  size_t n = strlen(feature);
  for (const char *at = features; (at = strstr(at, feature)); at += n)
    if (at[n] == ',' || at[n] == 0) return true;
  return false;
}

tarn_host_isa tarn_host_vectors(const char *features) {
  static const tarn_host_isa known[] = {{"+avx512f", 512, 32, false}, {"+avx2", 256, 16, true},
                                        {"+avx", 256, 16, true},      {"+sse2", 128, 16, true},
                                        {"+sve", 128, 32, false},     {"+neon", 128, 32, false},
                                        {"+v", 128, 32, false}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (has(features, known[i].feature)) return known[i];
  return (tarn_host_isa){"", 64, 16, false};
}

/* LLVM goes by the model's number, which a virtual machine may set to an older one's. */
const char *tarn_host_core(const char *name, const char *features) {
  static const char *const older[] = {"skylake-avx512", "cascadelake",    "cooperlake",
                                      "cannonlake",     "icelake-client", "icelake-server",
                                      "tigerlake",      "rocketlake"};
  for (size_t i = 0; i < sizeof older / sizeof *older; i++)
    if (!strcmp(name, older[i]) && has(features, "+avx512fp16")) return "sapphirerapids";
  return name;
}

/* A third cache has a slice for each core; main memory serves so many cores before its channels are
 * full (a usual figure; two cores of the machine of bench/notes/performance.md get about twice what
 * one gets of either). */
#define CHANNELS 4
#define WAY_TO_L1                                                                                  \
  38.4 /* bytes a cycle from the second cache at most, where vectors are wide enough */
/* Of the last cache, at most so much a core: few processors have more (some with stacked caches
 * 48), but a virtual machine tells of a whole socket's, which others use too (two cores that were
 * told of 480 MB found 64 to 80 there, bench/notes/performance.md). */
#define LAST_SHARE ((size_t)32 << 20)
static void memory_text(tarn_buf *b, const char *name, const cache *c, unsigned serves, double read,
                        double write, double latency, double hidden) {
  tarn_buf_fmt(b, "\n  (memory %s (capacity %zu) (instances %u) (serves %u) (line %u)", name,
               c->size, c->count, serves, c->line ? c->line : 64);
  if (c->ways) tarn_buf_fmt(b, " (ways %u)", c->ways);
  tarn_buf_fmt(b, " (read %.4g) (write %.4g) (latency %g)", read, write, latency);
  if (hidden != TARN_HW_HIDDEN) tarn_buf_fmt(b, " (hidden %g)", hidden);
  tarn_buf_fmt(b, ")");
}

/* Instructions that sum products of a group of k elements in each lane, the widest first. Rates are
 * usual figures, those of bf16 as measured on Sapphire Rapids. */
typedef struct dot {
  const char *feature, *name, *a, *b, *sum;
  unsigned lanes, k;
  double latency, throughput;
  const char *encoding;
} dot;
static void dots(tarn_buf *b, const char *features) {
  static const dot known[] = {
      {"+avx512vnni", "vpdpbusd", "u8", "i8", "i32", 16, 4, 5, 2, "llvm.x86.avx512.vpdpbusd.512"},
      {"+avx512vnni", "vpdpbusd-256", "u8", "i8", "i32", 8, 4, 5, 2,
       "llvm.x86.avx512.vpdpbusd.256"},
      {"+avx512vnni", "vpdpbusd-128", "u8", "i8", "i32", 4, 4, 5, 2,
       "llvm.x86.avx512.vpdpbusd.128"},
      {"+avxvnni", "vpdpbusd-vex-256", "u8", "i8", "i32", 8, 4, 5, 2,
       "llvm.x86.avx512.vpdpbusd.256"},
      {"+avxvnni", "vpdpbusd-vex-128", "u8", "i8", "i32", 4, 4, 5, 2,
       "llvm.x86.avx512.vpdpbusd.128"},
      {"+avx512bf16", "vdpbf16ps", "bf16", "bf16", "f32", 16, 2, 6, 0.5,
       "llvm.x86.avx512bf16.dpbf16ps.512"},
      {"+avx512bf16", "vdpbf16ps-256", "bf16", "bf16", "f32", 8, 2, 6, 0.5,
       "llvm.x86.avx512bf16.dpbf16ps.256"},
      {"+avx512bf16", "vdpbf16ps-128", "bf16", "bf16", "f32", 4, 2, 6, 0.5,
       "llvm.x86.avx512bf16.dpbf16ps.128"},
      {"+dotprod", "sdot", "i8", "i8", "i32", 4, 4, 3, 2, "llvm.aarch64.neon.sdot"},
      {"+dotprod", "udot", "u8", "u8", "i32", 4, 4, 3, 2, "llvm.aarch64.neon.udot"},
      {"+i8mm", "usdot", "u8", "i8", "i32", 4, 4, 3, 2, "llvm.aarch64.neon.usdot"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const dot *d = &known[i];
    if (!has(features, d->feature) || (i >= 3 && i < 5 && has(features, known[0].feature)))
      continue;
    tarn_buf_fmt(b,
                 "\n  (intrinsic %s (meaning (compute (epi (add $1 $0) (red (sum %s) (mul (cast %s "
                 "$0) (cast %s $1))))"
                 " (access 1 ?a) (access 1 ?b) ?c))"
                 "\n    (operand a (type %s) (dims %u %u)) (operand b (type %s) (dims %u %u)) "
                 "(operand c (type %s) (dims %u))"
                 "\n    (latency %g) (throughput %g) (ops %u) (encoding \"%s\"))",
                 d->name, d->sum, d->sum, d->sum, d->a, d->lanes, d->k, d->b, d->lanes, d->k,
                 d->sum, d->lanes, d->latency, d->throughput, d->k * d->lanes, d->encoding);
  }
}

/* Usual figures: what lies behind the second cache, in bytes a cycle of one core, and the cost of a
 * loop. Most processors read a line before it is written: main memory takes writes at half of its
 * rate. These do not where all of a line is written at once (bench/notes/zen4.md, zen5.md: there
 * reads of 44 GB/s too, and of 130 of the last cache). A Zen 4 whose vectors are narrowed to 256
 * bits counts its loops beside them (bench/notes/avx2.md). */
typedef struct usual {
  const char *cpu;
  unsigned bits;            /* of its vectors; 0: of any */
  double l3, dram, written; /* bytes a cycle */
  double trip, hidden;      /* see hw.h; of the second cache */
  bool moves;               /* see hw.h */
} usual;
static const usual usual_of[] = {{"znver5", 0, 16, 10, 10, 1, TARN_HW_HIDDEN, true},
                                 {"znver4", 256, 16, 8, 8, 0, 0.95, false},
                                 {"znver4", 0, 8, 4, 4, 1, TARN_HW_HIDDEN, false},
                                 {NULL, 0, 8, 4, 2, 1, TARN_HW_HIDDEN, false}};
static usual usual_figures(const char *cpu, unsigned bits) {
  const usual *u = usual_of;
  while (u->cpu && (strcmp(cpu, u->cpu) || (u->bits && u->bits != bits))) u++;
  return *u;
}

const tarn_hw *tarn_hw_host(tarn_lang *L, bool measure) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  machine m = {0};
  discover(cx, &m);
  char *triple = LLVMGetDefaultTargetTriple(), *cpu = LLVMGetHostCPUName(),
       *features = LLVMGetHostCPUFeatures();
  tarn_host_isa v = tarn_host_vectors(features);
  double clock = measure ? tarn_host_clock() : m.clock, vb = v.bits / 8.0;
  usual far = usual_figures(cpu, v.bits);
  double l1 = 2 * vb, l2 = fmin(vb, WAY_TO_L1), l3 = far.l3, dram = far.dram;
  if (measure) {
    l1 = tarn_host_read_rate(cx, m.level[0].size / 2) / clock;
    l2 = tarn_host_read_rate(cx, m.level[1].size / 2) / clock;
    size_t big = m.level[2].size ? m.level[2].size : m.level[1].size;
    l3 = tarn_host_read_rate(cx, m.level[1].size * 4) / clock;
    dram = tarn_host_read_rate(cx, big < ((size_t)64 << 20) ? big * 4 : big + big / 2) / clock;
  }
  tarn_buf b = {.cx = cx};
  double written = dram * (far.written / far.dram);
  tarn_buf_fmt(&b,
               "(hw host (kind cpu) (triple \"%s\") (cpu \"%s\") (features \"%s\")\n  (clock %.4g) "
               "(units %u)"
               " (vector (bits %u) (registers %u)%s%s)",
               triple, tarn_host_core(cpu, features), features, clock, m.cores, v.bits, v.regs,
               v.spreads ? " (spreads)" : "", far.moves ? " (moves)" : "");
  tarn_buf sums = {.cx = cx};
  tarn_buf_str(&sums, "");
  dots(&sums, features);
  LLVMDisposeMessage(triple), LLVMDisposeMessage(cpu), LLVMDisposeMessage(features);
  if (m.level[0].size) memory_text(&b, "l1", &m.level[0], m.cores, l1, vb, 5, TARN_HW_HIDDEN);
  if (m.level[1].size) memory_text(&b, "l2", &m.level[1], m.cores, l2, l2 / 2, 14, far.hidden);
  if (m.level[2].size > LAST_SHARE * m.cores) m.level[2].size = LAST_SHARE * m.cores;
  if (m.level[2].size) memory_text(&b, "l3", &m.level[2], m.cores, l3, l3 / 2, 60, TARN_HW_HIDDEN);
  tarn_buf_fmt(
      &b,
      "\n  (memory dram (capacity 0) (serves %u) (line 64) (read %.4g) (write %.4g) (latency 300))",
      m.cores < CHANNELS ? m.cores : CHANNELS, dram, written);
  unsigned lanes = v.bits / 32;
  double issue = measure ? tarn_host_fma_peak() / (2.0 * lanes * clock) : 2;
  tarn_buf_fmt(&b,
               "\n  (intrinsic fma (meaning (compute (map (add $2 (mul $0 $1))) ?a ?b ?c))"
               "\n    (operand a (type f32) (dims %u)) (operand b (type f32) (dims %u)) (operand c "
               "(type f32) (dims %u))"
               "\n    (latency 4) (throughput %.4g) (ops %u))",
               lanes, lanes, lanes, issue, lanes);
  tarn_buf_add(&b, sums.p, sums.n);
  if (far.trip != 1) tarn_buf_fmt(&b, "\n  (trip %g)", far.trip);
  tarn_buf_str(&b, "\n  (cycles (div 8) (sqrt 10) (exp 12) (log 16) (tanh 20) (erf 20) (sin 25) "
                   "(cos 25) (pow 40))"
                   "\n  (launch 2e-7) (barrier 1.5e-6))\n");
  return tarn_hw_parse(L, tarn_sx_read(cx, b.p, b.n, "host"));
}

/* ---- peaks ---- */
tarn_host_rate tarn_host_rate_at(const tarn_host_peaks *p, double bytes) {
  const tarn_host_rate *r = p->rate;
  uint32_t i = 0;
  while (i + 2 < p->nrate && r[i + 1].bytes < bytes) i++;
  if (p->nrate < 2 || bytes <= r[i].bytes) return r[i];
  double at =
      bytes < r[i + 1].bytes ? log(bytes / r[i].bytes) / log(r[i + 1].bytes / r[i].bytes) : 1;
  return (tarn_host_rate){bytes, r[i].read + at * (r[i + 1].read - r[i].read),
                          r[i].write + at * (r[i + 1].write - r[i].write),
                          r[i].copy + at * (r[i + 1].copy - r[i].copy)};
}

/* Fine steps as far as the second level is felt and where the last cache ends, which is shared with
 * others; coarse ones between, and beyond it as far as main memory. */
#define FINE   1.25
#define COARSE 2.0
/* Main memory: so many times the last cache, of less much stays in it from one time to the next;
 * but of a large one, as virtual machines tell of a whole socket's, less, so that measuring takes
 * neither seconds nor the memory. */
#define BEYOND 4.0
#define LEAST  1.5
#define ENOUGH (256 << 20) /* bytes of one thread */
/* Bytes of one thread, from `least` to `most`, of which `fine` in fine steps; stops behind what is
 * needed. */
static uint32_t sizes(double least, double fine, double most, double last, double need,
                      size_t *bytes) {
  uint32_t n = 0;
  for (double b = least; b < last && n + 1 < TARN_HOST_RATES;
       b *= b < fine || (2 * b >= most && b < LEAST * most) ? FINE : COARSE) {
    bytes[n++] = (size_t)b / 4096 * 4096;
    if (b >= need) return n;
  }
  bytes[n++] = (size_t)last;
  return n;
}
static void time_sizes(tarn_ctx *cx, uint32_t n, const size_t *bytes, tarn_host_peaks *out) {
  double rate[TARN_HOST_RATES][TARN_HOST_WAYS];
  if (!tarn_host_rates(cx, out->threads, n, bytes, rate))
    tarn_raise(cx, TARN_MEMORY, "measuring: no %u threads to be had", out->threads);
  out->nrate = n;
  for (uint32_t i = 0; i < n; i++)
    out->rate[i] = (tarn_host_rate){(double)bytes[i] * out->threads, rate[i][TARN_HOST_READ],
                                    rate[i][TARN_HOST_WRITE], rate[i][TARN_HOST_COPY]};
}
void tarn_host_measure(tarn_ctx *cx, uint32_t threads, size_t reach, tarn_host_peaks *out) {
  static const char *const name[] = {"l1", "l2", "l3"};
  machine m = {0};
  discover(cx, &m);
  if (!threads || threads > m.cores) threads = m.cores;
  *out = (tarn_host_peaks){.threads = threads};
  if (!tarn_host_flops(cx, threads, &out->flops, &out->slots))
    tarn_raise(cx, TARN_MEMORY, "measuring: no %u threads to be had", threads);
  /* of one thread: its share of each level, and the size at which that is timed, which the level
   * before must not hold */
  double share[4] = {0}, at[4] = {0};
  for (int i = 0; i < 3; i++) {
    const cache *c = &m.level[i];
    if (!c->size) continue;
    uint32_t k = out->nlevel++;
    unsigned instances = c->count < threads ? c->count : threads;
    out->level[k] = (tarn_host_level){.name = name[i], .capacity = c->size * instances};
    share[k] = (double)out->level[k].capacity / threads;
    at[k] = k && share[k] > 8 * share[k - 1] ? 4 * share[k - 1] : share[k] / 2;
  }
  uint32_t last = out->nlevel++;
  out->level[last] = (tarn_host_level){.name = "dram", .capacity = SIZE_MAX};
  at[last] =
      last ? fmax(LEAST * share[last - 1], fmin(BEYOND * share[last - 1], ENOUGH)) : 64 << 20;
  uint32_t top = 0; /* the level from which `reach` bytes come when much of what is nearer has been
                       driven out */
  while (top < last && reach > out->level[top].capacity / 2) top++;
  double need = (double)reach / threads > at[top] ? (double)reach / threads : at[top];
  size_t bytes[TARN_HOST_RATES];
  uint32_t n = sizes(last ? at[0] : at[last], 4 * share[last > 1], last ? share[last - 1] : 0,
                     at[last], need, bytes);
  time_sizes(cx, n, bytes, out);
  for (uint32_t k = 0; k <= top; k++) {
    tarn_host_rate r = tarn_host_rate_at(out, at[k] * threads);
    out->level[k].read = r.read, out->level[k].write = r.write, out->level[k].copy = r.copy;
  }
}
