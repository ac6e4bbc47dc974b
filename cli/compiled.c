/* Compiled folders and models, loaded to be run, and the tensors of their inputs and outputs. */
#include "cli/ptx.h"
#include "hw/yajl.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- compiled folders ---- */
void cli_read_texts(tarn_ctx *cx, yajl_val object, const char *key, cli_list *to) {
  yajl_val *item;
  for (uint32_t i = 0, n = tarn_yajl_items(object, key, &item); i < n; i++) {
    const char *text = YAJL_GET_STRING(item[i]);
    if (text) tarn_push(cx, to, tarn_strdup(cx, text));
  }
}
static void take_text(tarn_ctx *cx, yajl_val object, const char *key, const char **to) {
  yajl_val v = tarn_yajl_get(object, key, yajl_t_string);
  if (v) *to = tarn_strdup(cx, YAJL_GET_STRING(v));
}
static void from_report(tarn_ctx *cx, const char *path, cli_compile *c) {
  size_t n;
  const char *report = tarn_read_file(cx, path, &n);
  yajl_val v = tarn_yajl_parse(cx, path, report, n);
  yajl_val several = tarn_yajl_get(v, "sizes", yajl_t_object);
  take_text(cx, v, "model", &c->model), take_text(cx, v, "hw", &c->hw);
  take_text(cx, v, "triple", &c->triple), take_text(cx, v, "def", &c->def);
  if (several) c->asked = c->shapes, c->shapes = (cli_list){0};
  cli_read_texts(cx, several ? several : v, several ? "given" : "shapes", &c->shapes);
  cli_read_texts(cx, v, "set", &c->sets);
  cli_read_texts(cx, v, "outputs", &c->last);
  c->copies = tarn_yajl_get(v, "allow_copies", yajl_t_true) != NULL;
  cli_read_program(cx, v, &c->is);
  cli_read_sizes(cx, v, c);
  if (!c->model) tarn_raise(cx, TARN_BAD_INPUT, "%s: no \"model\" in it", path);
}
const char *cli_folder(tarn_ctx *cx, const char *what, cli_compile *c) {
  struct stat st;
  if (stat(what, &st)) tarn_raise(cx, TARN_IO, "%s: %s", what, strerror(errno));
  if (S_ISDIR(st.st_mode)) {
    if (c->sets.n)
      tarn_raise(cx, TARN_USAGE, "--set %s: %s is compiled already", c->sets.p[0], what);
    if (c->last.n)
      tarn_raise(cx, TARN_USAGE, "--outputs %s: %s is compiled already", c->last.p[0], what);
    if (c->hw) tarn_raise(cx, TARN_USAGE, "--hw %s: %s is compiled already", c->hw, what);
    from_report(cx, tarn_format(cx, "%s/report.json", what), c);
    return c->dir = what;
  }
  c->model = what;
  c->dir = cli_scratch_folder(cx, what);
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_compile_options *o = cli_options(L, c);
  const tarn_compiled *r = tarn_compile(L, o);
  if (o->hw->triple && *o->hw->triple) c->triple = tarn_strdup(cx, o->hw->triple);
  cli_take_program(cx, r, &c->is);
  if (r->sizes) cli_take_sizes(cx, r, c);
  return c->dir;
}

/* By the first word of the triple. */
static bool is_foreign(tarn_ctx *cx, const char *triple) {
  const char *ours = tarn_hw_host(tarn_lang_new(cx), false)->triple;
  size_t n = strcspn(ours, "-");
  return n != strcspn(triple, "-") || strncmp(ours, triple, n);
}
tarn_loaded *cli_load(tarn_ctx *cx, const char *what, cli_compile *c) {
  return cli_load_folder(cx, cli_folder(cx, what, c), c);
}
tarn_loaded *cli_load_folder(tarn_ctx *cx, const char *dir, const cli_compile *c) {
  if (cli_is_ptx(cx, dir)) return tarn_load(cx, dir);
  if (tarn_has_stream(cx, dir)) return tarn_load_simulated(cx, dir);
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
  c->is.in.n = 0;
  for (uint32_t i = 0; i < p->nin; i++) tarn_push(cx, &c->is.in, r[i]);
}
/* Both NAME and FILE may have = in them. */
uint32_t cli_input_of(tarn_ctx *cx, uint32_t n, const tarn_port *ports, const char *given,
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
  tarn_tensor *t = tarn_tensor_read_as(cx, file, p->dtype);
  bool same = t->n == p->n && t->dtype == p->dtype;
  for (uint32_t d = 0; same && d < t->n; d++) same = t->dim[d] == p->dim[d];
  if (!same)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: input %s expects shape and type %s, given %s", file,
               p->name, tarn_dims_text(cx, p->dtype, p->n, p->dim),
               tarn_dims_text(cx, t->dtype, t->n, t->dim));
  return t;
}
static tarn_domain domain_of(const cli_compile *c, uint32_t i) {
  return i < c->is.in.n ? c->is.in.p[i] : (tarn_domain){0, 1};
}
tarn_tensor **cli_inputs(tarn_ctx *cx, const cli_compile *c, uint32_t n, const tarn_port *ports,
                         const cli_list *given, uint64_t seed) {
  tarn_tensor **t = TARN_ARRAY(cx, tarn_tensor *, n + 1);
  const char **from = TARN_ARRAY(cx, const char *, n + 1), *file;
  for (uint32_t g = 0; g < given->n; g++) {
    uint32_t i = cli_input_of(cx, n, ports, given->p[g], &file);
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
