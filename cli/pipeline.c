/* Model in, program out: import, saturate, extract, lower, report. */
#include "cli/cli.h"
#include "tune/tune.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

const cli_opt *cli_compile_options(tarn_ctx *cx, cli_compile *c) {
  const cli_opt t[] = {
      {"--output", "-o", CLI_STR, &c->dir, "DIR",
       "folder to write (default: MODEL's name without its ending)"},
      {"--name", NULL, CLI_STR, &c->name, "PREFIX",
       "of the symbols in C: PREFIX_run … (default: from MODEL's name)"},
      {"--hw", NULL, CLI_STR, &c->hw, "NAME|FILE",
       "hardware: host (default), a shipped description, a file"},
      {"--numerics", NULL, CLI_STR, &c->numerics, "CLASS", "exact, reassoc (default) or approx"},
      {"--rules", NULL, CLI_LIST, &c->rules, "FILE", "add the rules of a file"},
      {"--no-rules", NULL, CLI_LIST, &c->no_rules, "FAMILY", "leave out a family or a rule"},
      {"--only-rules", NULL, CLI_LIST, &c->only_rules, "FILE",
       "these rules instead of the shipped ones"},
      {"--rtol", NULL, CLI_REAL, &c->rtol, "X",
       "approx: the largest error bound of a rule (default 1e-3)"},
      {"--nodes", NULL, CLI_UINT, &c->nodes, "N", "limit of e-nodes"},
      {"--iters", NULL, CLI_U32, &c->iters, "N", "limit of iterations"},
      {"--seconds", NULL, CLI_REAL, &c->seconds, "S",
       "limit of time for saturation and for selection"},
      {"--threads", NULL, CLI_THREADS, &c->threads, "T",
       "threads the program will have (default: all)"},
      {"--seed", NULL, CLI_UINT, &c->seed, "K", "seed of everything random"},
      {"--emit", NULL, CLI_STR, &c->emit, "KIND", "so (default), o, ll"},
      {"--shape", NULL, CLI_LIST, &c->shapes, "NAME=DIMS", "bind a dynamic shape"},
      CLI_SET(c->sets),
      {"--price", NULL, CLI_STR, &c->price_file, "FILE",
       "a learned price, or analytic (default: the shipped one, if it fits)"},
      {"--db", NULL, CLI_STR, &c->db, "FILE",
       "use the schedules and times that tarn tune --db FILE measured"},
      {"--explain", NULL, CLI_STR, &c->explain, "FILE", "write the chain of rewrites"},
      {"--dump", NULL, CLI_STR, &c->dump, "LIST",
       "print terms,form,phases,graph,schedules,plan, or some of them"},
      {"--json", NULL, CLI_FLAG, &c->json, NULL, "print the report as JSON"},
      {0}};
  c->rtol = TARN_RTOL;
  return tarn_copy(cx, t, sizeof t);
}

const tarn_hw *cli_hardware(tarn_lang *L, const char *name) {
  if (!name || !strcmp(name, "host")) return tarn_hw_host(L, false);
  return tarn_hw_load(L, name);
}

/* ---- optimise ---- */
static tarn_rule_class numerics_of(tarn_ctx *cx, const char *s) {
  tarn_rule_class c = TARN_RULE_REASSOC;
  if (s && !tarn_rule_class_parse(s, &c))
    tarn_raise(cx, TARN_USAGE, "--numerics %s: exact, reassoc or approx is expected", s);
  return c;
}
static tarn_ruleset *rules_of(cli_compiled *r, const cli_compile *c) {
  tarn_ruleset *rs = tarn_ruleset_new(r->L);
  if (!c->only_rules.n) tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  for (uint32_t i = 0; i < c->only_rules.n; i++) tarn_ruleset_load(rs, c->only_rules.p[i]);
  for (uint32_t i = 0; i < c->rules.n; i++) tarn_ruleset_load(rs, c->rules.p[i]);
  for (uint32_t i = 0; i < c->no_rules.n; i++) tarn_ruleset_drop(rs, c->no_rules.p[i]);
  return rs;
}
static bool constant_class(void *user, const tarn_egraph *g, uint32_t cls) {
  (void)g;
  return tarn_sat_is_const(user, cls);
}
static bool left_out(void *user, uint32_t node) { return tarn_sat_left_out(user, node); }
static uint32_t class_of(void *user, tarn_term t) { return tarn_sat_class(user, t); }
static uint32_t type_class(void *user, uint32_t cls) { return tarn_sat_type(user, cls); }

tarn_program *cli_reload(tarn_lang *L, const cli_compile *c, tarn_model_report *r) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_shape_binding *b = TARN_ARRAY(cx, tarn_shape_binding, c->shapes.n + 1);
  for (uint32_t i = 0; i < c->shapes.n; i++) b[i] = tarn_shape_binding_parse(cx, c->shapes.p[i]);
  tarn_value_binding *v = TARN_ARRAY(cx, tarn_value_binding, c->sets.n + 1);
  for (uint32_t i = 0; i < c->sets.n; i++) v[i] = tarn_value_binding_parse(cx, c->sets.p[i]);
  tarn_model_options o = {.nshape = c->shapes.n, .shape = b, .nset = c->sets.n, .set = v};
  return tarn_model_load(L, c->model, &o, r);
}

static const tarn_price *learned_price(tarn_ctx *cx, const cli_compile *c, const tarn_hw *hw) {
  const char *why;
  if (c->price_file && !strcmp(c->price_file, "analytic")) return NULL;
  const tarn_price *p = tarn_learned(cx, hw, c->price_file, &why);
  if (!p && c->price_file) fprintf(stderr, "tarn: %s; the analytic price is used\n", why);
  return p;
}
static const tarn_price *price_of(cli_compiled *r, const cli_compile *c) {
  if (c->price) return c->price;
  tarn_ctx *cx = tarn_lang_ctx(r->L);
  r->price = learned_price(cx, c, r->hw);
  if (!c->db) return r->price;
  if (access(c->db, R_OK)) tarn_raise(cx, TARN_IO, "%s: %s", c->db, strerror(errno));
  return tarn_measured(r->L, r->hw, c->db, c->threads ? (uint32_t)c->threads : r->hw->units,
                       r->price, c->explores);
}

cli_compiled *cli_optimise(tarn_ctx *cx, const cli_compile *c) {
  cli_compiled *r = TARN_NEW(cx, cli_compiled);
  double t = tarn_now();
  r->numerics = numerics_of(cx, c->numerics);
  r->L = tarn_lang_new(cx);
  r->hw = cli_hardware(r->L, c->hw);
  if (r->hw->kind != TARN_HW_CPU)
    tarn_raise(cx, TARN_BAD_INPUT, "--hw %s: only CPUs can be emitted for", r->hw->name);
  r->program = cli_reload(r->L, c, &r->import);
  unsigned dump = cli_dump_parse(cx, c->dump);
  tarn_buf graph = {.cx = cx};
  cli_dump_program(r->program, dump);
  r->import_s = tarn_now() - t, t = tarn_now();

  tarn_sat_options so = tarn_sat_defaults();
  so.numerics = r->numerics, so.rtol = c->rtol, so.hw = r->hw, so.max_seconds = c->seconds;
  if (c->nodes) so.max_nodes = c->nodes;
  if (c->iters) so.max_iterations = (uint32_t)c->iters;
  so.reasons = c->explain ? TARN_EG_REASONS_ALL : TARN_EG_REASONS_NONE;
  bool phases = dump >> CLI_DUMP_PHASES & 1;
  if (phases) {
    printf(";; phases\n");
    so.after = cli_dump_iteration;
  }
  r->sat = tarn_saturate(r->program, rules_of(r, c), &so);
  if (phases) cli_dump_rules(tarn_sat_result(r->sat));
  r->saturate_s = tarn_now() - t, t = tarn_now();

  uint32_t n = tarn_sat_roots(r->sat), *root = TARN_ARRAY(cx, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) root[i] = tarn_sat_root(r->sat, i);
  tarn_kgraph_input in = {.L = r->L,
                          .g = tarn_sat_egraph(r->sat),
                          .type_of = type_class,
                          .is_constant = constant_class,
                          .left_out = left_out,
                          .class_of = class_of,
                          .user = r->sat,
                          .nroot = n,
                          .root = root,
                          .program = r->program};
  tarn_kgraph_options ko = {.hw = r->hw,
                            .price = price_of(r, c),
                            .threads = (uint32_t)c->threads,
                            .strict = r->numerics == TARN_RULE_EXACT,
                            .method = TARN_SEL_EXACT,
                            .seconds = c->seconds,
                            .graph = dump >> CLI_DUMP_GRAPH & 1 ? &graph : NULL};
  r->kprog = tarn_extract(&in, &ko, &r->graph, &r->picks);
  r->extract_s = tarn_now() - t;
  if (graph.n) printf(";; graph\n%s", graph.p);
  cli_dump_kernels(r->kprog, r->numerics != TARN_RULE_EXACT, dump);
  return r;
}

/* ---- report ---- */
static const char *full_path(tarn_ctx *cx, const char *path) {
  char *full = realpath(path, NULL);
  const char *kept = full ? tarn_strdup(cx, full) : path;
  free(full);
  return kept;
}
/* As it was given, files by their full paths: who checks the program stands elsewhere. */
static void put_sets(tarn_ctx *cx, tarn_json *j, const cli_list *sets) {
  tarn_json_open(j, "set", '[');
  for (uint32_t i = 0; i < sets->n; i++) {
    tarn_value_binding b = tarn_value_binding_parse(cx, sets->p[i]);
    const char *text = tarn_value_binding_file(&b) ? full_path(cx, b.text) : b.text;
    tarn_json_str(j, NULL, tarn_format(cx, "%s=%s", b.name, text));
  }
  tarn_json_close(j, ']');
}
/* What the inputs are drawn from when a program is tried. */
static void write_inputs(tarn_json *j, const tarn_program *p) {
  cli_compile c = {0};
  cli_domains(p, &c);
  tarn_json_open(j, "inputs", '[');
  for (uint32_t i = 0; i < p->nin; i++) {
    bool real = tarn_dtype_is_float(tarn_type_get(p->L, p->in[i].type)->dtype);
    tarn_json_open(j, NULL, '{');
    tarn_json_str(j, "name", p->in[i].name);
    tarn_json_int(j, "low", real ? -1 : c.in.p[i].lo);
    tarn_json_int(j, "high", real ? 1 : c.in.p[i].hi);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
static const char *report_of(tarn_ctx *cx, const cli_compile *c, const cli_compiled *r,
                             const char *name, size_t *n) {
  const tarn_sat_report *s = tarn_sat_result(r->sat);
  tarn_json *j = cli_json_new(cx);
  tarn_json_str(j, "model", full_path(cx, c->model));
  tarn_json_str(j, "name", name);
  tarn_json_open(j, "shapes", '[');
  for (uint32_t i = 0; i < c->shapes.n; i++) tarn_json_str(j, NULL, c->shapes.p[i]);
  tarn_json_close(j, ']');
  put_sets(cx, j, &c->sets);
  tarn_json_str(j, "hw", r->hw->name);
  tarn_json_str(j, "triple", r->hw->triple);
  tarn_json_str(j, "numerics", tarn_rule_class_name(r->numerics));
  tarn_json_str(j, "numerics_used", tarn_rule_class_name(s->used));
  tarn_json_num(j, "bound", s->bound);
  tarn_json_str(j, "stop", s->stop);
  tarn_json_int(j, "nodes", s->nodes);
  tarn_json_int(j, "classes", s->classes);
  tarn_json_int(j, "iterations", s->iterations);
  tarn_json_int(j, "kernels", r->graph.kernels);
  tarn_json_int(j, "copies", r->graph.copies);
  tarn_json_num(j, "price", r->graph.price);
  tarn_json_num(j, "price_bound", r->graph.price_bound);
  tarn_json_num(j, "price_tree", r->graph.tree_price);
  tarn_json_str(j, "price_model", r->graph.price_name);
  tarn_json_open(j, "kernel_graph", '{');
  tarn_json_int(j, "buffers", r->graph.buffers);
  tarn_json_int(j, "orders", r->graph.orders);
  tarn_json_int(j, "candidates", r->graph.candidates);
  tarn_json_int(j, "signatures", (int64_t)r->graph.signatures);
  tarn_json_int(j, "price_uses", (int64_t)r->graph.price_uses);
  tarn_json_int(j, "evaluations", (int64_t)r->graph.evaluations);
  tarn_json_int(j, "cut_views", r->graph.cut_views);
  tarn_json_int(j, "cut_orders", r->graph.cut_orders);
  tarn_json_close(j, '}');
  if (r->plan) {
    tarn_json_open(j, "memory", '{');
    tarn_json_int(j, "workspace", r->plan->bytes);
    tarn_json_int(j, "live_bound", r->plan->live_bound);
    tarn_json_int(j, "constants", r->plan->const_bytes);
    tarn_json_close(j, '}');
  }
  tarn_json_open(j, "seconds", '{');
  tarn_json_num(j, "import", r->import_s);
  tarn_json_num(j, "saturate", r->saturate_s);
  tarn_json_num(j, "extract", r->extract_s);
  tarn_json_num(j, "lower", r->lower_s);
  tarn_json_close(j, '}');
  tarn_json_open(j, "rules", '{');
  for (uint32_t i = 0; i < s->nrule; i++)
    if (s->rule[i].count.applied)
      tarn_json_int(j, s->rule[i].name, (int64_t)s->rule[i].count.applied);
  tarn_json_close(j, '}');
  write_inputs(j, r->program);
  tarn_json_open(j, "opaque", '[');
  for (uint32_t i = 0; i < r->import.nopaque; i++)
    tarn_json_str(j, NULL,
                  tarn_format(cx, "%s (%s)", r->import.opaque[i].node, r->import.opaque[i].op));
  tarn_json_close(j, ']');
  tarn_json_open(j, "im2col", '[');
  for (uint32_t i = 0; i < r->graph.nways; i++) {
    tarn_json_open(j, NULL, '{');
    tarn_json_str(j, "kernel", r->graph.ways[i].kernel);
    tarn_json_num(j, "implicit_us", r->graph.ways[i].implicit * 1e6);
    tarn_json_num(j, "materialised_us", r->graph.ways[i].materialised * 1e6);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  tarn_json_open(j, "program", '[');
  for (uint32_t i = 0; i < r->kprog->nker; i++) {
    tarn_json_open(j, NULL, '{');
    tarn_json_str(j, "name", r->kprog->ker[i].name);
    tarn_json_num(j, "price", r->kprog->ker[i].price);
    tarn_json_num(j, "flop", r->kprog->ker[i].flops);
    tarn_json_num(j, "slots", r->kprog->ker[i].slots);
    tarn_json_num(j, "products", r->kprog->ker[i].products);
    tarn_json_num(j, "read_bytes", r->kprog->ker[i].reads);
    tarn_json_num(j, "write_bytes", r->kprog->ker[i].writes);
    tarn_json_bool(j, "copy", r->kprog->ker[i].copy);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  return tarn_json_text(j, n);
}

static uint32_t chosen(void *picks, uint32_t cls) { return tarn_extract_pick(picks, cls); }

static unsigned emit_kinds(tarn_ctx *cx, const char *s) {
  if (!s || !strcmp(s, "so")) return TARN_EMIT_SO | TARN_EMIT_O;
  if (!strcmp(s, "o")) return TARN_EMIT_O;
  if (!strcmp(s, "ll")) return TARN_EMIT_LL;
  tarn_raise(cx, TARN_USAGE, "--emit %s: so, o or ll is expected for a CPU", s);
}

/* ---- folders ---- */
const char *cli_scratch_folder(tarn_ctx *cx) { return cli_folder_for_now(cx, "/tmp/tarn-XXXXXX"); }
/* What a compile may write, the report last; what this one does not write goes. */
static void move_files(tarn_ctx *cx, const char *from, const char *to) {
  static const char *const names[] = {"model.o", "model.so",     "model.ll",
                                      "model.h", "program.tarn", "report.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *old = tarn_format(cx, "%s/%s", from, names[i]),
               *new = tarn_format(cx, "%s/%s", to, names[i]);
    int failed = access(old, F_OK) ? unlink(new) && errno != ENOENT : rename(old, new);
    if (failed) tarn_raise(cx, TARN_IO, "%s: %s", new, strerror(errno));
  }
}
/* All of it is made elsewhere first, so that a compile that fails or is interrupted leaves things
 * as they were: in the folder, or, while there is none, beside it. */
static const char *workshop(tarn_ctx *cx, const char *dir) {
  struct stat st;
  size_t n = strlen(dir);
  while (n > 1 && dir[n - 1] == '/') n--;
  while (n && dir[n - 1] != '/') n--;
  bool there = !stat(dir, &st);
  if (!there && errno != ENOENT) tarn_raise(cx, TARN_IO, "%s: %s", dir, strerror(errno));
  if (there && !S_ISDIR(st.st_mode)) tarn_raise(cx, TARN_IO, "%s: %s", dir, strerror(ENOTDIR));
  return cli_folder_for_now(cx, there ? tarn_format(cx, "%s/.new-XXXXXX", dir)
                                      : tarn_format(cx, "%.*s.new-XXXXXX", (int)n, dir));
}
typedef struct finished {
  const char *from, *to, *explain;
  tarn_buf chain;
} finished;
static void put_in_place(tarn_ctx *cx, void *arg) {
  const finished *f = arg;
  if (f->explain) tarn_write_file(cx, f->explain, f->chain.p ? f->chain.p : "", f->chain.n);
  if (access(f->to, F_OK) && cli_folder_stays(f->from, f->to)) return;
  if (mkdir(f->to, 0777) && errno != EEXIST)
    tarn_raise(cx, TARN_IO, "%s: %s", f->to, strerror(errno));
  move_files(cx, f->from, f->to);
}
static const char *prefix_of(tarn_ctx *cx, const cli_compile *c) {
  if (!c->name) return tarn_lower_name(cx, c->model);
  if (!tarn_lower_name_ok(c->name))
    tarn_raise(cx, TARN_USAGE,
               "--name %s: a letter, then letters, digits and _ are expected; not tarn or tarn_…",
               c->name);
  return c->name;
}
cli_compiled *cli_build(tarn_ctx *cx, const cli_compile *c) {
  unsigned emit = emit_kinds(cx, c->emit);
  const char *name = prefix_of(cx, c), *dir = workshop(cx, c->dir);
  cli_compiled *r = cli_optimise(cx, c);
  double t = tarn_now();
  r->plan = tarn_memory_plan_make(r->kprog, 64);
  tarn_buf b = {.cx = cx};
  tarn_kprog_print(r->kprog, &b);
  tarn_write_file(cx, tarn_format(cx, "%s/program.tarn", dir), b.p, b.n);
  tarn_lower_options lo = {
      .emit = emit, .dir = dir, .name = name, .contract = r->numerics != TARN_RULE_EXACT, .opt = 3};
  tarn_lower_cpu(r->kprog, r->plan, &lo);
  r->lower_s = tarn_now() - t;
  finished f = {dir, c->dir, c->explain, {.cx = cx}};
  for (uint32_t i = 0; c->explain && i < r->kprog->nout; i++)
    tarn_sat_explain(r->sat, i, tarn_sat_term(r->sat, tarn_sat_root(r->sat, i), chosen, r->picks),
                     &f.chain);
  size_t n;
  const char *report = report_of(cx, c, r, name, &n);
  tarn_write_file(cx, tarn_format(cx, "%s/report.json", dir), report, n);
  cli_undisturbed(cx, put_in_place, &f);
  if (c->json) fwrite(report, 1, n, stdout);
  return r;
}

/* ---- compiled folders ---- */
static double number_of(yajl_val object, const char *key) {
  const char *path[] = {key, NULL};
  yajl_val v = yajl_tree_get(object, path, yajl_t_number);
  return v ? YAJL_GET_DOUBLE(v) : 0;
}
static void take_texts(tarn_ctx *cx, yajl_val object, const char *key, cli_list *to) {
  const char *path[] = {key, NULL};
  yajl_val s = yajl_tree_get(object, path, yajl_t_array);
  for (size_t i = 0; s && i < YAJL_GET_ARRAY(s)->len; i++) {
    const char *text = YAJL_GET_STRING(YAJL_GET_ARRAY(s)->values[i]);
    if (text) tarn_push(cx, to, tarn_strdup(cx, text));
  }
}
static void from_report(tarn_ctx *cx, const char *path, cli_compile *c) {
  size_t n;
  char error[256];
  yajl_val v = yajl_tree_parse(tarn_read_file(cx, path, &n), error, sizeof error);
  if (!v) tarn_raise(cx, TARN_BAD_INPUT, "%s: %s", path, error);
  static const char *const model[] = {"model", NULL}, *const hw[] = {"hw", NULL},
                           *const triple[] = {"triple", NULL},
                           *const used[] = {"numerics_used", NULL};
  yajl_val m = yajl_tree_get(v, (const char **)(uintptr_t)model, yajl_t_string);
  yajl_val h = yajl_tree_get(v, (const char **)(uintptr_t)hw, yajl_t_string);
  if (m) c->model = tarn_strdup(cx, YAJL_GET_STRING(m));
  yajl_val t = yajl_tree_get(v, (const char **)(uintptr_t)triple, yajl_t_string);
  if (h) c->hw = tarn_strdup(cx, YAJL_GET_STRING(h));
  if (t) c->triple = tarn_strdup(cx, YAJL_GET_STRING(t));
  take_texts(cx, v, "shapes", &c->shapes);
  take_texts(cx, v, "set", &c->sets);
  yajl_val u = yajl_tree_get(v, (const char **)(uintptr_t)used, yajl_t_string);
  c->used = TARN_RULE_REASSOC;
  if (u) tarn_rule_class_parse(YAJL_GET_STRING(u), &c->used);
  c->bound = number_of(v, "bound");
  static const char *const inputs[] = {"inputs", NULL}, *const program[] = {"program", NULL};
  yajl_val in = yajl_tree_get(v, (const char **)(uintptr_t)inputs, yajl_t_array);
  for (size_t i = 0; in && i < YAJL_GET_ARRAY(in)->len; i++) {
    yajl_val x = YAJL_GET_ARRAY(in)->values[i];
    tarn_domain range = {(int64_t)number_of(x, "low"), (int64_t)number_of(x, "high")};
    tarn_push(cx, &c->in, range);
  }
  yajl_val k = yajl_tree_get(v, (const char **)(uintptr_t)program, yajl_t_array);
  for (size_t i = 0; k && i < YAJL_GET_ARRAY(k)->len; i++) {
    yajl_val x = YAJL_GET_ARRAY(k)->values[i];
    cli_work w = {number_of(x, "flop"), number_of(x, "slots"), number_of(x, "products"),
                  number_of(x, "read_bytes"), number_of(x, "write_bytes")};
    if (!w.slots) w.slots = w.flop / 2; /* of an older report */
    tarn_push(cx, &c->work, w);
  }
  yajl_tree_free(v);
  if (!c->model) tarn_raise(cx, TARN_BAD_INPUT, "%s: no \"model\" in it", path);
}
const char *cli_folder(tarn_ctx *cx, const char *what, cli_compile *c) {
  struct stat st;
  if (stat(what, &st)) tarn_raise(cx, TARN_IO, "%s: %s", what, strerror(errno));
  if (S_ISDIR(st.st_mode)) {
    if (c->sets.n)
      tarn_raise(cx, TARN_USAGE, "--set %s: %s is compiled already", c->sets.p[0], what);
    from_report(cx, tarn_format(cx, "%s/report.json", what), c);
    return c->dir = what;
  }
  const char *dir = cli_scratch_folder(cx);
  c->model = what, c->dir = dir;
  bool json = c->json;
  c->json = false;
  const cli_compiled *r = cli_build(cx, c);
  for (uint32_t i = 0; i < r->kprog->nker; i++) {
    const tarn_kernel *x = &r->kprog->ker[i];
    cli_work w = {x->flops, x->slots, x->products, x->reads, x->writes};
    tarn_push(cx, &c->work, w);
  }
  c->json = json;
  c->used = tarn_sat_result(r->sat)->used;
  c->bound = tarn_sat_result(r->sat)->bound;
  cli_domains(r->program, c);
  return dir;
}

/* By the first word of the triple. */
static bool is_foreign(tarn_ctx *cx, const char *triple) {
  const char *ours = tarn_hw_host(tarn_lang_new(cx), false)->triple;
  size_t n = strcspn(ours, "-");
  return n != strcspn(triple, "-") || strncmp(ours, triple, n);
}
tarn_loaded *cli_load(tarn_ctx *cx, const char *what, cli_compile *c) {
  const char *dir = cli_folder(cx, what, c);
  if (c->triple && is_foreign(cx, c->triple))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: compiled for %s, which this machine is not", dir,
               c->triple);
  return tarn_load(cx, dir);
}

/* ---- tensors ---- */
void cli_domains(const tarn_program *p, cli_compile *c) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_domain *r = TARN_ARRAY(cx, tarn_domain, p->nin + 1);
  tarn_input_domains(p, tarn_opaque_index, r);
  c->in.n = 0;
  for (uint32_t i = 0; i < p->nin; i++) tarn_push(cx, &c->in, r[i]);
}
/* Which input NAME=FILE is for, and the file; n: none. Both NAME and FILE may have = in them. */
static uint32_t input_of(tarn_ctx *cx, uint32_t n, const tarn_port *ports, const char *given,
                         const char **file) {
  *file = given;
  if (!strchr(given, '=')) return n == 1 ? 0 : n;
  for (size_t k = strlen(given); k-- > 0;) {
    if (given[k] != '=') continue;
    const char *name = tarn_strndup(cx, given, k);
    *file = given + k + 1;
    for (uint32_t i = 0; i < n; i++)
      if (tarn_is_called(cx, name, ports[i].name)) return i;
  }
  return n;
}
static tarn_tensor *given_tensor(tarn_ctx *cx, const tarn_port *p, const char *file) {
  tarn_tensor *t = tarn_tensor_read(cx, file);
  bool same = t->n == p->n && t->dtype == p->dtype;
  for (uint32_t d = 0; same && d < t->n; d++) same = t->dim[d] == p->dim[d];
  if (!same)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: input %s expects shape and type %s, given %s", file,
               p->name, tarn_dims_text(cx, p->dtype, p->n, p->dim),
               tarn_dims_text(cx, t->dtype, t->n, t->dim));
  return t;
}
static tarn_domain domain_of(const cli_compile *c, uint32_t i) {
  return i < c->in.n ? c->in.p[i] : (tarn_domain){0, 1};
}
tarn_tensor **cli_inputs(tarn_ctx *cx, const cli_compile *c, uint32_t n, const tarn_port *ports,
                         const cli_list *given, uint64_t seed) {
  tarn_tensor **t = TARN_ARRAY(cx, tarn_tensor *, n + 1);
  const char **from = TARN_ARRAY(cx, const char *, n + 1), *file;
  for (uint32_t g = 0; g < given->n; g++) {
    uint32_t i = input_of(cx, n, ports, given->p[g], &file);
    if (i == n)
      tarn_raise(cx, TARN_USAGE, "-i %s: no such input; NAME=FILE is expected", given->p[g]);
    if (from[i])
      tarn_raise(cx, TARN_USAGE, "-i %s: input %s is given twice", given->p[g], ports[i].name);
    from[i] = file;
  }
  uint64_t s = seed;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_port *p = &ports[i];
    if (from[i]) t[i] = given_tensor(cx, p, from[i]);
    else t[i] = tarn_random_tensor(cx, p->dtype, p->n, p->dim, domain_of(c, i), &s);
  }
  return t;
}
tarn_tensor **cli_outputs(tarn_ctx *cx, const tarn_loaded *m) {
  const tarn_port *p;
  uint32_t n = tarn_loaded_ports(m, true, &p);
  tarn_tensor **t = TARN_ARRAY(cx, tarn_tensor *, n + 1);
  for (uint32_t i = 0; i < n; i++) t[i] = tarn_tensor_new(cx, p[i].dtype, p[i].n, p[i].dim);
  return t;
}
uint32_t cli_ports(const tarn_program *p, bool outputs, const tarn_port **ports) {
  uint32_t n = outputs ? p->nout : p->nin;
  tarn_port *q = TARN_ARRAY(tarn_lang_ctx(p->L), tarn_port, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_io *io = outputs ? &p->out[i] : &p->in[i];
    const tarn_type *t = tarn_type_get(p->L, io->type);
    q[i] = (tarn_port){io->name, t->dtype, t->n, t->dim};
  }
  *ports = q;
  return n;
}

tarn_term *cli_roots(const tarn_program *p) {
  tarn_term *root = TARN_ARRAY(tarn_lang_ctx(p->L), tarn_term, p->nout + 1);
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  return root;
}
tarn_binding *cli_bindings(const tarn_program *p, tarn_tensor *const *in) {
  tarn_binding *b = TARN_ARRAY(tarn_lang_ctx(p->L), tarn_binding, p->nin + 1);
  for (uint32_t i = 0; i < p->nin; i++) b[i] = (tarn_binding){p->in[i].name, in[i]};
  return b;
}
