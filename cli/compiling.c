/* Options of a compile, as words on a command line and as the library takes them. */
#include "cli/cli.h"
#include "tune/tune.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_opt *cli_compile_options(tarn_ctx *cx, cli_compile *c) {
  const cli_opt t[] = {
      {"--output", "-o", CLI_STR, &c->dir, "DIR",
       "output folder (default: MODEL's name without its ending)"},
      {"--name", NULL, CLI_STR, &c->name, "PREFIX",
       "prefix of the C symbols: PREFIX_run … (default: from MODEL's name)"},
      {"--hw", NULL, CLI_STR, &c->hw, "NAME|FILE",
       "hardware: host (default), a shipped description, a file"},
      {"--numerics", NULL, CLI_STR, &c->numerics, "exact|reassoc|approx", "default: reassoc"},
      {"--rules", NULL, CLI_LIST, &c->rules, "FILE|FAMILY",
       "add the rules of a file, or a shipped family over access patterns"},
      {"--no-rules", NULL, CLI_LIST, &c->no_rules, "FAMILY", "leave out a family or a rule"},
      {"--only-rules", NULL, CLI_LIST, &c->only_rules, "FILE|FAMILY",
       "these rules instead of the shipped ones"},
      {"--rtol", NULL, CLI_REAL, &c->rtol, "X",
       "approx: the largest error bound of a rule (default 5e-4)"},
      {"--nodes", NULL, CLI_UINT, &c->nodes, "N", "limit of e-nodes"},
      {"--iters", NULL, CLI_U32, &c->iters, "N", "limit of iterations"},
      {"--seconds", NULL, CLI_REAL, &c->seconds, "S", "time limit of all of it (default: none)"},
      {"--threads", NULL, CLI_THREADS, &c->threads, "T",
       "threads of the compiled program (default: all)"},
      {"--seed", NULL, CLI_UINT, &c->seed, "K", "seed of all random choices"},
      {"--emit", NULL, CLI_STR, &c->emit, "KIND",
       "so (default), o, ll; of a GPU so, ptx, ll; wasm; o where there are no shared objects"},
      {"--constants", NULL, CLI_STR, &c->constants, "WHERE",
       "object (default), or file: model.weights, whose address the program is given"},
      {"--shape", NULL, CLI_LIST, &c->shapes, "NAME=DIMS",
       "bind a dynamic shape; NAME=1,4,16 and NAME=1..64:2@8: one artefact for all sizes"},
      {"--ram", NULL, CLI_STR, &c->ram, "BYTES",
       "the workspace takes at most BYTES (256K, 1M); 1M,256K: a table, and the last one"},
      CLI_CACHE(*c),
      CLI_SET(*c),
      CLI_OUTPUTS(*c),
      {"--price", NULL, CLI_STR, &c->price_file, "FILE",
       "a learned price, or analytic (default: the shipped one, if it fits)"},
      {"--db", NULL, CLI_STR, &c->db, "FILE",
       "use the schedules and times that tarn tune --db FILE measured"},
      {"--schedule", NULL, CLI_STR, &c->schedule, "FILE",
       "give kernels the schedules in FILE, as --dump schedules prints them"},
      {"--explain", NULL, CLI_STR, &c->explain, "FILE", "write the chain of rewrites"},
      {"--html", NULL, CLI_STR, &c->html, "PAGE",
       "write what was compiled, as tarn report shows it"},
      {"--dump", NULL, CLI_STR, &c->dump, "LIST",
       "print terms,form,phases,graph,schedules,plan,offload, or some of them"},
      {"--json", NULL, CLI_FLAG, &c->json, NULL, "print the report as JSON"},
      {0}};
  c->rtol = TARN_RTOL;
  return tarn_copy(cx, t, sizeof t);
}

/* The newest description that runs on this machine's GPU; without one the oldest. */
static const tarn_hw *gpu(tarn_lang *L) {
  static const struct {
    uint32_t architecture;
    const char *name;
  } known[] = {{90, "cuda-sm90"}, {80, "cuda-sm80"}};
  const char *why;
  const tarn_rt_cuda_info *here = tarn_gpu_here(tarn_lang_ctx(L), &why);
  for (uint32_t i = 0; here && i < sizeof known / sizeof *known; i++)
    if (here->architecture >= known[i].architecture) return tarn_hw_load(L, known[i].name);
  return tarn_hw_load(L, "cuda");
}
const tarn_hw *cli_hardware(tarn_lang *L, const char *name) {
  if (!name || !strcmp(name, "host")) return tarn_hw_host(L, false);
  if (!strcmp(name, "cuda")) return gpu(L);
  return tarn_hw_load(L, name);
}

const tarn_hw *cli_hosted(tarn_lang *L, const tarn_hw *hw) {
  if (tarn_hw_traits_of(hw).any_nest || hw->host) return hw;
  tarn_hw *with = tarn_copy(tarn_lang_ctx(L), hw, sizeof *hw);
  with->host = tarn_hw_host(L, false);
  return with;
}

/* ---- as the library takes them ---- */
/* "1M,256K,65536" */
static const int64_t *bytes_of(tarn_ctx *cx, const char *words, uint32_t *n) {
  TARN_VEC(int64_t) v = {0};
  for (const char *at = words; at; at = *at ? at + 1 : NULL) {
    char *end;
    errno = 0;
    long long x = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : -1;
    int shift = x < 0 ? 0 : *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    if (x < 0 || errno || x > INT64_MAX >> shift || (end[shift > 0] && end[shift > 0] != ','))
      tarn_raise(cx, TARN_USAGE, "--ram %s: bytes are expected, as 65536, 256K or 1M", words);
    tarn_push(cx, &v, (int64_t)x << shift);
    at = end + (shift > 0);
  }
  *n = v.n;
  return v.p;
}
/* NULL: the default */
static tarn_rule_class numerics(tarn_ctx *cx, const char *word) {
  tarn_rule_class c = TARN_RULE_REASSOC;
  if (word && !tarn_rule_class_parse(word, &c))
    tarn_raise(cx, TARN_USAGE, "--numerics %s: exact, reassoc or approx is expected", word);
  return c;
}
/* --price: of a file, or the shipped one that fits; NULL, said on stderr if a file was given: the
 * analytic one. */
static const tarn_price *learned(tarn_ctx *cx, const char *file, const tarn_hw *hw) {
  const char *why;
  if (file && !strcmp(file, "analytic")) return NULL;
  const tarn_price *p = tarn_learned(cx, hw, file, &why);
  if (!p && file) fprintf(stderr, "tarn: %s; the analytic price is used\n", why);
  return p;
}
static const tarn_price *price_of(tarn_lang *L, cli_compile *c, const tarn_hw *hw) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  if (c->price) return c->price;
  c->learned = learned(cx, c->price_file, hw);
  if (!c->db) return c->learned;
  if (access(c->db, R_OK)) tarn_raise(cx, TARN_IO, "%s: %s", c->db, strerror(errno));
  uint32_t threads = c->threads ? (uint32_t)c->threads : hw->units;
  return tarn_measured(L, hw, c->db, threads, c->learned, c->explores);
}
static void print_dump(void *user, const char *name, const char *text, size_t n) {
  (void)user;
  printf(";; %s\n", name);
  fwrite(text, 1, n, stdout);
}
static tarn_texts texts_of(const cli_list *l) { return (tarn_texts){l->n, l->p}; }

const tarn_compile_options *cli_options(tarn_lang *L, cli_compile *c) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_compile_options *o = TARN_NEW(cx, tarn_compile_options);
  *o = tarn_compile_defaults();
  o->numerics = numerics(cx, c->numerics);
  o->dump = tarn_dump_parse(cx, c->dump);
  o->hw = cli_hosted(L, cli_hardware(L, c->hw));
  if (o->hw->host || tarn_target_of(cx, o->hw)->away) o->here = tarn_hw_host(L, false);
  o->model = c->model;
  o->shapes = texts_of(&c->shapes);
  o->sets = texts_of(&c->sets);
  o->outputs = texts_of(&c->last);
  o->def = c->def;
  o->ram = bytes_of(cx, c->ram, &o->nram);
  o->caches = texts_of(&c->caches);
  o->cache_rows = (int64_t)c->cache_rows;
  o->allow_copies = c->copies;
  o->threads = (uint32_t)c->threads;
  if (tarn_hw_traits_of(o->hw).any_nest) o->price = price_of(L, c, o->hw);
  o->rtol = c->rtol;
  o->rules = texts_of(&c->rules);
  o->no_rules = texts_of(&c->no_rules);
  o->only_rules = texts_of(&c->only_rules);
  o->nodes = c->nodes;
  o->iters = (uint32_t)c->iters;
  o->seconds = c->seconds;
  cli_limit(cx, c->seconds);
  o->emit = c->emit;
  o->name = c->name;
  o->constants = c->constants;
  o->dir = c->dir;
  o->explain = c->explain;
  o->sink = print_dump;
  o->folders = &cli_folders;
  if (c->schedule) {
    size_t n;
    const char *text = tarn_read_file(cx, c->schedule, &n);
    o->ngiven = tarn_given_read(L, tarn_compile_units(L, o), text, n, c->schedule, &o->given);
  }
  return o;
}
tarn_program *cli_reload(tarn_lang *L, const cli_compile *c) {
  tarn_compile_options o = tarn_compile_defaults();
  o.model = c->model;
  o.shapes = texts_of(&c->shapes);
  o.sets = texts_of(&c->sets);
  o.outputs = texts_of(&c->last);
  o.def = c->def;
  o.allow_copies = c->copies;
  if (c->is.size) o.shapes = tarn_compile_shapes_at(L, &o, c->is.size);
  return tarn_compile_import(L, &o, NULL);
}
