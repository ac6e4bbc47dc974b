/* A language model compiled by tarn, as a program: a prompt in, text out.
 *
 *   tarn compile model.gguf --shape batch_size=1 --shape sequence_length=1 -o step \
 *     --shape past_sequence_length=0..1023@256 --cache-rows 1024 \
 *     --cache 'past_key_values.*=present.*'
 *   cc -O2 chat.c tokenizer.c $(pkg-config --cflags --libs tarn-rt) -lm -o chat
 *   ./chat step/model.so model.gguf "Once upon a time"
 *
 * The model may also be an ONNX export with the same inputs. A step takes as many of the tokens to
 * come as the program has sizes for: `sequence_length=1,16` reads a prompt 16 tokens at a time. */
#include "tokenizer.h"
#include <dlfcn.h>
#include <math.h>
#include <runtime/rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Noreturn void die(const char *what, const char *why) {
  fprintf(stderr, "chat: %s: %s\n", what, why);
  exit(1);
}
static void *new (uint64_t bytes) {
  void *p = tarn_rt_workspace_new(bytes ? bytes : 1);
  return p ? p : (die("memory", "there is no more"), NULL);
}

/* ---- the compiled model ---- */
enum { MOST = 4 }; /* sizes that a program may have */
typedef struct model {
  const tarn_rt_sizes *sizes;
  tarn_rt_pool *pool;
  uint32_t nin, nout;
  int new, past; /* which sizes say how many tokens; -1: one is new */
  const tarn_rt_port *in_port;
  void **in, **out, *workspace;
  int64_t *ids, *position, *mask, words, filled;
  float *logits;
} model;

static int size_named(const tarn_rt_sizes *s, const char *name) {
  for (uint32_t i = 0; i < s->nsize; i++)
    if (!strcmp(s->name[i], name)) return (int)i;
  return -1;
}
static void set_inputs(model *m) {
  for (uint32_t i = 0; i < m->nin; i++) {
    const tarn_rt_port *p = &m->in_port[i];
    if (p->pair) m->in[i] = m->out[p->pair - 1]; /* a cache */
    else m->in[i] = new (p->bytes);
    if (!strcmp(p->name, "input_ids")) m->ids = m->in[i];
    else if (!strcmp(p->name, "position_ids")) m->position = m->in[i];
    else if (!strcmp(p->name, "attention_mask")) m->mask = m->in[i];
    else if (!p->pair) die(p->name, "is an input that is neither tokens nor a cache in place");
  }
  if (!m->ids) die("input_ids", "the program has no such input");
}
static model load(const char *path, unsigned threads) {
  model m = {0};
  void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!so) die(path, dlerror());
  m.sizes = dlsym(so, "tarn_sizes");
  if (!m.sizes || m.sizes->version != TARN_RT_VERSION) die(path, "is no program of several sizes");
  m.new = size_named(m.sizes, "sequence_length"),
  m.past = size_named(m.sizes, "past_sequence_length");
  if (m.past < 0) die("past_sequence_length", "is no open size of the program");
  uint64_t most = 0;
  for (uint32_t i = 0; i < m.sizes->nprogram; i++) {
    const tarn_rt_model *p = m.sizes->program[i].model;
    most = most > p->workspace + threads * p->per_thread ? most
                                                         : p->workspace + threads * p->per_thread;
  }
  const tarn_rt_model *largest = m.sizes->program[m.sizes->nprogram - 1].model;
  m.nin = largest->nin, m.nout = largest->nout, m.in_port = largest->in;
  m.in = new (m.nin * sizeof *m.in), m.out = new (m.nout * sizeof *m.out);
  m.workspace = new (most);
  for (uint32_t i = 0; i < m.nout; i++) {
    m.out[i] = new (largest->out[i].bytes);
    if (strcmp(largest->out[i].name, "logits") != 0) continue;
    m.logits = m.out[i];
    m.words = largest->out[i].dim[largest->out[i].n - 1];
  }
  if (!m.logits) die("logits", "the program has no such output");
  set_inputs(&m);
  m.pool = tarn_rt_pool_new(threads);
  return m.pool ? m : (die("memory", "there is no more"), m);
}
/* The sizes of a step with n new tokens; false: the program has none. */
static bool sizes_of(const model *m, int64_t n, int64_t size[static MOST]) {
  if (m->new >= 0) size[m->new] = n;
  size[m->past] = m->filled;
  return (m->new >= 0 || n == 1) && m->sizes->workspace(size, m->pool->threads) != (size_t)-1;
}
/* The logits behind the last of these tokens; NULL: the context is full. */
static const float *step(model *m, const uint32_t *token, uint32_t count) {
  const float *last = NULL;
  for (int64_t n; count; count -= (uint32_t)n, token += n) {
    int64_t size[MOST] = {0};
    for (n = count; n && !sizes_of(m, n, size);) n--;
    if (!n) return NULL;
    for (int64_t i = 0; i < n; i++) {
      m->ids[i] = token[i];
      if (m->position) m->position[i] = m->filled + i;
    }
    for (int64_t i = 0; m->mask && i < m->filled + n; i++) m->mask[i] = 1;
    int failed = m->sizes->run(size, (const void *const *)m->in, m->out, m->workspace, m->pool);
    if (failed) die("a step failed", m->pool->message);
    m->filled += n;
    last = m->logits + (n - 1) * m->words;
  }
  return last;
}

/* ---- the next token ---- */
typedef struct choice {
  float p;
  uint32_t id;
} choice;
static int likelier(const void *a, const void *b) {
  float x = ((const choice *)a)->p, y = ((const choice *)b)->p;
  return x > y ? -1 : x < y;
}
static double drawn(uint64_t *seed) { /* 0 … 1; xorshift64* */
  *seed ^= *seed >> 12, *seed ^= *seed << 25, *seed ^= *seed >> 27;
  return (double)((*seed * 2685821657736338717u) >> 11) / 9007199254740992.0;
}
static uint32_t best_of(const float *logits, int64_t n) {
  uint32_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (logits[i] > logits[best]) best = (uint32_t)i;
  return best;
}
/* One of the likeliest tokens, which together have the probability top. */
static uint32_t sample(const float *logits, int64_t n, float temperature, float top,
                       uint64_t *seed) {
  uint32_t best = best_of(logits, n), kept = 0, used = 0;
  choice *c = malloc((size_t)n * sizeof *c);
  if (!c) die("memory", "there is no more");
  double all = 0, sum = 0;
  for (int64_t i = 0; i < n; i++) all += c[i].p = expf((logits[i] - logits[best]) / temperature);
  for (int64_t i = 0; i < n; i++) /* n tokens below this have less than 1 - top */
    if (c[i].p >= (1 - top) / (double)n * all) c[kept++] = (choice){c[i].p, (uint32_t)i};
  qsort(c, kept, sizeof *c, likelier);
  while (used < kept && sum < top * all) sum += c[used++].p;
  double at = drawn(seed) * sum;
  uint32_t k = 0;
  while (k + 1 < used && (at -= c[k].p) > 0) k++;
  best = used ? c[k].id : best;
  free(c);
  return best;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  double option[128] = {['n'] = 128, ['p'] = 0.95, ['s'] = 1, ['j'] = 1};
  for (int c; (c = getopt(argc, argv, "n:t:p:s:j:")) != -1;)
    if (c == '?') return 2;
    else option[c] = atof(optarg);
  if (argc - optind != 3 || option['j'] < 1) {
    fprintf(stderr, "usage: chat [-n TOKENS] [-t TEMPERATURE] [-p TOP_P] [-s SEED] [-j THREADS] "
                    "MODEL.so MODEL.gguf PROMPT\n");
    return 2;
  }
  const char *prompt = argv[optind + 2];
  tokenizer t = read_tokenizer(argv[optind + 1]);
  uint32_t *token = malloc((strlen(prompt) + 1) * sizeof *token);
  if (!token) die("memory", "there is no more");
  uint32_t n = encode(&t, prompt, token), told = 0, limit = (uint32_t)option['n'];
  if (!n) die("the prompt", "is empty");
  model m = load(argv[optind], (unsigned)option['j']);
  uint64_t seed = (uint64_t)option['s'] * 2654435769u + 1;

  double begin = now();
  const float *logits = step(&m, token, n);
  double read = now();
  if (!logits) die("the prompt", "is longer than the program has sizes for");
  for (; logits && told < limit; told++) {
    uint32_t next = option['t'] > 0
                        ? sample(logits, m.words, (float)option['t'], (float)option['p'], &seed)
                        : best_of(logits, m.words);
    if (next == t.end) break;
    print_token(&t, next);
    logits = step(&m, &next, 1);
  }
  printf("\n");
  fprintf(stderr, "prompt: %u tokens, %.1f a second; %u more, %.1f a second%s\n", n,
          n / (read - begin), told, told / (now() - read), logits ? "" : "; the context is full");
  tarn_rt_pool_free(m.pool);
  return 0;
}
