/* The e-graph engine on one workload: engine NAME [NODES [SECONDS [THREADS [TIMES]]]] prints what
 * it took as one line of JSON: of TIMES runs, each on a graph of its own, the first, the shortest
 * ("ms", the parts too) and the median.
 *
 * assocN, pure-sN, pure-bN, math7-sN, diff-sN, diff-bN and so on are a start with its rules, a
 * scheduler (s simple, b backoff) and a number of iterations (0: until a limit); with -why behind
 * them reasons are kept, with -all also those of unions that joined nothing.  add, rebuild, match,
 * idle and premises [FOLDER] are about parts of the engine.  run.py compares what is printed with
 * what other engines take. */
#define _GNU_SOURCE
#include "tests/egraph_math.h"

#include <sys/mman.h>
#include <time.h>

static lab L;
static math_cond conds[72];

static double max_seconds;
static unsigned threads; /* 0: one, not asked for */

/* The thread's time on the processor, as others may be at work here; when threads are compared, the
 * clock's. */
static double now(void) {
  struct timespec t;
  clock_gettime(threads ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const char *why) {
  fprintf(stderr, "engine: %s\n", why);
  return 1;
}

/* ---- growing ---- */

/* The peak of the process's memory: getrusage()'s would be that of the program that started this
 * one, if larger. */
static unsigned long long resident(void) {
  char line[256];
  unsigned long long kib = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmHWM: %llu", &kib) == 1) break;
  if (f) fclose(f);
  return kib * 1024;
}

enum { MOST_TIMES = 99 };
static double took[MOST_TIMES]; /* milliseconds of each run */

typedef struct growth {                     /* what a run came to */
  double ms, search, apply, rebuild, least; /* least: of the second half of the iterations */
  tarn_eg_stop stop;
  uint32_t iterations;
  uint64_t matches;
} growth;

static bool grow(growth *out, tarn_eg_scheduler s, uint32_t iterations) {
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {
      .scheduler = s, .max_iterations = iterations, .max_seconds = max_seconds, .threads = threads};
  double t = now();
  *out = (growth){.stop = r ? tarn_eg_run(r, &c) : TARN_EG_STOP_MEMORY, .least = 1e9};
  out->ms = (now() - t) * 1e3;
  if (out->stop == TARN_EG_STOP_MEMORY || out->stop == TARN_EG_STOP_ERROR) return false;
  uint32_t n = out->iterations = tarn_eg_iteration_count(r);
  for (uint32_t i = 0; i < n; i++) {
    tarn_eg_iteration it = tarn_eg_iteration_at(r, i);
    double all = it.search + it.apply + it.rebuild;
    if (i > n / 2 && all < out->least) out->least = all;
    out->matches += it.matches, out->search += it.search, out->apply += it.apply,
        out->rebuild += it.rebuild;
  }
  tarn_eg_runner_free(r);
  return true;
}

static const struct {
  const char *name;
  int root; /* of lab_math7; -1: all of them */
} starts[] = {{"math7", -1}, {"ints", 2}, {"diff", 4}, {"poly", 5}, {"five", 6}};

static int start(const char *name, size_t n, const tarn_eg_config *config) {
  if (n == 4 && !memcmp(name, "pure", 4)) {
    if (!lab_open(&L, config)) return fail("out of memory");
    lab_load_pure(&L);
    return 0;
  }
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    if (strlen(starts[i].name) != n || memcmp(name, starts[i].name, n) != 0) continue;
    if (!math_open(&L, config, conds)) return fail("out of memory");
    for (int r = 0; r < 7; r++)
      if (starts[i].root < 0 || starts[i].root == r) lab_add(&L, lab_math7[r]);
    return 0;
  }
  return fail("no such start");
}

/* A new graph with the start and the rules that name says. */
static int open_named(const char *name, size_t n, uint64_t nodes) {
  bool why = strstr(name, "-why"), every = strstr(name, "-all");
  tarn_eg_config config = {every ? TARN_EG_REASONS_ALL
                           : why ? TARN_EG_REASONS_FIRST
                                 : TARN_EG_REASONS_NONE,
                           nodes, 0};
  if (strncmp(name, "assoc", 5) != 0) return start(name, n, &config);
  if (!lab_open(&L, &config)) return fail("out of memory");
  lab_load_assoc(&L, atoi(name + 5));
  return 0;
}

static int workload(const char *name, uint64_t nodes, int times) {
  bool assoc = !strncmp(name, "assoc", 5);
  size_t n = strcspn(name, "-");
  if (!assoc && (!name[n] || !strchr("sb", name[n + 1]))) return fail("what is NAME?");
  tarn_eg_scheduler s = !assoc && name[n + 1] == 'b' ? TARN_EG_BACKOFF : TARN_EG_SIMPLE;
  growth best = {0};
  double first = 0;
  uint64_t peak = 0;
  for (int i = 0; i < times; i++) {
    growth got;
    if (i) lab_close(&L);
    if (open_named(name, n, nodes)) return 1;
    if (!grow(&got, s, assoc ? 0 : (uint32_t)atoi(name + n + 2))) return fail(tarn_eg_message(L.g));
    took[i] = got.ms;
    if (!i) first = got.ms, peak = tarn_eg_peak_bytes(L.g);
    if (!i || got.ms < best.ms) best = got;
  }
  qsort(took, (size_t)times, sizeof *took, tarn_by_double);
  printf("{\"ms\":%.4f,\"first\":%.4f,\"median\":%.4f,\"stop\":\"%s\",\"idle_us\":%.1f,\"search\":%"
         ".4f,\"apply\":%.4f,"
         "\"rebuild\":%.4f,\"iterations\":%u,\"matches\":%llu,\"nodes\":%u,\"classes\":%u,\"peak\":"
         "%llu,\"rss\":%llu}\n",
         best.ms, first, took[times / 2], tarn_eg_stop_name(best.stop), best.least * 1e6,
         best.search * 1e3, best.apply * 1e3, best.rebuild * 1e3, best.iterations,
         (unsigned long long)best.matches, tarn_eg_node_count(L.g), tarn_eg_class_count(L.g),
         (unsigned long long)peak, resident());
  return 0;
}

/* ---- parts ---- */

static uint32_t lcg(uint64_t *s) {
  *s = *s * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*s >> 33);
}

enum { LEAVES = 256, MANY = 1000000, UNIONS = 10000 };

/* A million random binary nodes; the second time all are known. */
static double add_all(uint32_t *id) {
  uint64_t s = 1;
  double t = now();
  for (uint32_t i = 0; i < MANY; i++) {
    uint32_t have = LEAVES + i, op = lcg(&s) % 8, k[2];
    k[0] = id[lcg(&s) % have], k[1] = id[lcg(&s) % have];
    id[have] = tarn_eg_add(L.g, op, 0, k, 2);
  }
  return (now() - t) * 1e9 / (double)MANY;
}

/* The same in batches; what a batch has made is named by its place in it. */
static double add_batches(uint32_t *id) {
  enum { BATCH = 256 };
  uint32_t k[BATCH][2];
  tarn_eg_node node[BATCH];
  uint64_t s = 1;
  double t = now();
  for (uint32_t first = 0; first < MANY; first += BATCH) {
    uint32_t n = MANY - first < BATCH ? MANY - first : BATCH, done = LEAVES + first;
    for (uint32_t i = 0; i < n; i++) {
      node[i] = (tarn_eg_node){lcg(&s) % 8, 0, 2, k[i]};
      for (int j = 0; j < 2; j++) {
        uint32_t x = lcg(&s) % (done + i);
        k[i][j] = x < done ? id[x] : TARN_EG_ITEM(x - done);
      }
    }
    tarn_eg_add_all(L.g, node, n, id + done);
  }
  return (now() - t) * 1e9 / (double)MANY;
}

/* The same loop with nothing in it but a read of one line of 8 MiB, where the kids and the operator
 * say: what looking a node up in a hash table of 4 bytes a node costs here at least. */
static double read_lines(const uint32_t *id) {
  enum { WORDS = 1 << 21, HUGE = 1 << 21 };
  uint32_t *at = aligned_alloc(HUGE, sizeof(uint32_t) * WORDS), sum = 0;
  if (!at) return 0;
  madvise(at, sizeof(uint32_t) * WORDS, MADV_HUGEPAGE);
  memset(at, 1, sizeof(uint32_t) * WORDS);
  uint64_t s = 1;
  double t = now();
  for (uint32_t i = 0; i < MANY; i++) {
    uint32_t have = LEAVES + i;
    uint64_t h = lcg(&s) % 8 + 1;
    h = (h ^ id[lcg(&s) % have]) * 0x9E3779B97F4A7C15u;
    h = (h ^ id[lcg(&s) % have]) * 0x9E3779B97F4A7C15u;
    sum += at[(h >> 32) % WORDS];
  }
  t = (now() - t) * 1e9 / (double)MANY;
  volatile uint32_t used = sum;
  (void)used;
  free(at);
  return t;
}

static bool open_leaves(uint32_t *id) {
  if (!lab_open(&L, NULL)) return false;
  for (uint32_t i = 0; i < LEAVES; i++) id[i] = tarn_eg_add(L.g, 100 + i, 0, NULL, 0);
  return true;
}

static int add(void) {
  static uint32_t id[LEAVES + MANY];
  if (!open_leaves(id)) return fail("out of memory");
  double fresh_all = add_batches(id), hit_all = add_batches(id);
  lab_close(&L);
  if (!open_leaves(id)) return fail("out of memory");
  double fresh = add_all(id), hit = add_all(id), line = read_lines(id), t = now();
  tarn_eg_rebuild(L.g);
  double rebuild = now() - t;
  uint64_t s = 7;
  t = now();
  for (uint32_t i = 0; i < UNIONS; i++) {
    uint32_t a = lcg(&s) % (LEAVES + MANY), b = lcg(&s) % (LEAVES + MANY);
    tarn_eg_union(L.g, id[a], id[b], TARN_EG_RULE_GIVEN, 0);
  }
  double unions = (now() - t) / (double)UNIONS;
  t = now();
  tarn_eg_rebuild(L.g);
  printf("{\"batch_fresh_ns\":%.1f,\"batch_hit_ns\":%.1f,\"fresh_ns\":%.1f,\"hit_ns\":%.1f,\"line_"
         "ns\":%.1f,\"rebuild_ms\":%."
         "4f,\"union_ns\":%."
         "1f,\"rebuild_unions_ms\":%.4f,"
         "\"nodes\":%u,\"classes\":%u}\n",
         fresh_all, hit_all, fresh, hit, line, rebuild * 1e3, unions * 1e9, (now() - t) * 1e3,
         tarn_eg_node_count(L.g), tarn_eg_class_count(L.g));
  return 0;
}

/* A thousand chains of a thousand that become one chain. */
static int rebuild(void) {
  enum { CHAINS = 1000, LENGTH = 1000 };
  if (!lab_open(&L, NULL)) return fail("out of memory");
  uint32_t first = TARN_NONE;
  for (uint32_t c = 0; c < CHAINS; c++) {
    uint32_t leaf = tarn_eg_add(L.g, 100 + c, 0, NULL, 0), x = leaf;
    for (int i = 0; i < LENGTH; i++) x = tarn_eg_add(L.g, 1, 0, &x, 1);
    if (first == TARN_NONE) first = leaf;
    else tarn_eg_union(L.g, first, leaf, TARN_EG_RULE_GIVEN, 0);
  }
  double t = now();
  tarn_eg_rebuild(L.g);
  printf("{\"congruence_ns\":%.1f,\"nodes\":%u,\"classes\":%u}\n",
         (now() - t) * 1e9 / (double)((CHAINS - 1) * LENGTH), tarn_eg_node_count(L.g),
         tarn_eg_class_count(L.g));
  return 0;
}

/* An iteration that finds nothing, in a graph where all is found: the least of five. */
static double idle_for(tarn_eg_scheduler scheduler) {
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.scheduler = scheduler, .match_limit = 1u << 30};
  tarn_eg_run(r, &c);
  double best = 1e9;
  c.max_iterations = 1;
  for (int i = 0; i < 5; i++) {
    double t = now();
    tarn_eg_run(r, &c);
    t = now() - t;
    if (t < best) best = t;
  }
  tarn_eg_runner_free(r);
  return best * 1e6;
}

static int idle(void) {
  if (!lab_open(&L, NULL)) return fail("out of memory");
  lab_load_assoc(&L, 11);
  double simple = idle_for(TARN_EG_SIMPLE), backoff = idle_for(TARN_EG_BACKOFF);
  printf("{\"simple_us\":%.1f,\"backoff_us\":%.1f,\"nodes\":%u}\n", simple, backoff,
         tarn_eg_node_count(L.g));
  return 0;
}

/* ---- long rules that never match ---- */

static const char *folder = "bench/egraph";

/* A file without its comments; the caller frees it. */
static char *read_text(const char *name) {
  enum { MOST = 1 << 16 };
  char path[4096], line[1024], *text = malloc(MOST);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "r");
  size_t n = 0;
  while (f && text && fgets(line, sizeof line, f)) {
    size_t more = strcspn(line, ";\n");
    if (n + more + 2 > MOST) break;
    memcpy(text + n, line, more);
    text[n + more] = ' ', n += more + 1;
  }
  if (text) text[n] = 0;
  if (f) fclose(f);
  return text;
}

/* Behind a term. */
static const char *behind(const char *s) {
  int depth = 0;
  for (s = lab_skip(s);; s++) {
    depth += *s == '(', depth -= *s == ')';
    if (depth == 0) return *s == ')' ? s + 1 : s + lab_word(s);
    if (!*s) return s;
  }
}

/* (rule NAME LEFT => RIGHT)… */
static bool load_rules(const char *name) {
  char *text = read_text(name);
  const char *s = text ? text : "", *left, *right;
  bool ok = text && *lab_skip(s);
  for (; ok && *(s = lab_skip(s)); s = lab_skip(behind(right)) + 1) {
    left = lab_skip(s + strlen("(rule "));
    left += lab_word(left);
    right = lab_skip(behind(left));
    ok = !strncmp(s, "(rule ", 6) && !strncmp(right, "=>", 2);
    right += 2;
    if (ok) ok = lab_rule(&L, "rule", left, right) != TARN_NONE;
  }
  free(text);
  return ok;
}

static bool load_term(const char *name) {
  char *text = read_text(name);
  const char *s = text;
  bool ok = text && lab_term(&L, &s, false) != TARN_NONE;
  free(text);
  return ok;
}

/* A graph of tensor terms grown to the end, without and with four rules of fourteen premises, and
 * idle iterations of it. */
static int premises(void) {
  growth got[2];
  double idle = 0;
  for (int with = 0; with < 2; with++) {
    if (with) lab_close(&L);
    if (!lab_open(&L, NULL) || !load_rules("tensor.rules") ||
        (with && !load_rules("premises.rules")) || !load_term("tensor.term"))
      return fail("cannot read the rules or the term");
    if (!grow(&got[with], TARN_EG_SIMPLE, 0)) return fail(tarn_eg_message(L.g));
  }
  idle = idle_for(TARN_EG_SIMPLE);
  printf("{\"without_ms\":%.2f,\"ms\":%.2f,\"idle_us\":%.2f,\"nodes\":%u,\"same\":%s}\n", got[0].ms,
         got[1].ms, idle, tarn_eg_node_count(L.g),
         got[0].matches == got[1].matches ? "true" : "false");
  return 0;
}

/* The left sides of PURE on the graph after ten iterations: the least of five times, rule by rule.
 */
static int match(void) {
  if (!lab_open(&L, NULL)) return fail("out of memory");
  lab_load_pure(&L);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.max_iterations = 10};
  tarn_eg_run(r, &c);
  tarn_eg_runner_free(r);
  double sum = 0;
  uint64_t matches = 0;
  printf("{\"rules\":{");
  for (uint32_t rule = 0; rule < 24; rule++) {
    double best = 1e9;
    uint64_t n = 0;
    for (int i = 0; i < 5; i++) {
      double t = now();
      n = tarn_eg_search(L.g, L.rules, rule, NULL, NULL);
      t = now() - t;
      if (t < best) best = t;
    }
    sum += best, matches += n;
    printf("%s\"%s\":[%.3f,%llu]", rule ? "," : "", tarn_eg_rule_name(L.rules, rule), best * 1e3,
           (unsigned long long)n);
  }
  printf("},\"ms\":%.4f,\"matches\":%llu}\n", sum * 1e3, (unsigned long long)matches);
  return 0;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(void);
  } parts[] = {
      {"add", add}, {"rebuild", rebuild}, {"match", match}, {"idle", idle}, {"premises", premises}};
  if (argc < 2 || argc > 6) return fail("usage: engine NAME [NODES [SECONDS [THREADS [TIMES]]]]");
  if (argc > 2) folder = argv[2];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strcmp(argv[1], parts[i].name)) return parts[i].run();
  max_seconds = argc > 3 ? atof(argv[3]) : 0;
  threads = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
  int times = argc > 5 ? atoi(argv[5]) : 1;
  if (times < 1 || times > MOST_TIMES) return fail("TIMES is 1 to 99");
  return workload(argv[1], argc > 2 ? (uint64_t)atoll(argv[2]) : 0, times);
}
