/* Folders that were compiled for several sizes: what is known of each program, and which one is
 * selected. */
#include "cli/cli.h"
#include "hw/yajl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is known of a program ---- */
void cli_read_program(tarn_ctx *cx, yajl_val v, cli_program *p) {
  yajl_val numerics = tarn_yajl_get(v, "numerics", yajl_t_string), *item;
  p->numerics = TARN_RULE_REASSOC;
  if (numerics) tarn_rule_class_parse(YAJL_GET_STRING(numerics), &p->numerics);
  p->bound = tarn_yajl_number(v, "bound");
  for (uint32_t i = 0, n = tarn_yajl_items(v, "inputs", &item); i < n; i++) {
    tarn_domain range = {(int64_t)tarn_yajl_number(item[i], "low"),
                         (int64_t)tarn_yajl_number(item[i], "high")};
    tarn_push(cx, &p->in, range);
  }
  for (uint32_t i = 0, n = tarn_yajl_items(v, "program", &item); i < n; i++) {
    cli_work w = {tarn_yajl_number(item[i], "flop"), tarn_yajl_number(item[i], "slots"),
                  tarn_yajl_number(item[i], "products"), tarn_yajl_number(item[i], "read_bytes"),
                  tarn_yajl_number(item[i], "write_bytes")};
    if (!w.slots) w.slots = w.flop / 2; /* of an older report */
    tarn_push(cx, &p->work, w);
  }
}
static void read_size(tarn_ctx *cx, yajl_val v, uint32_t n, cli_compile *c) {
  cli_program p = {0};
  int64_t *size = TARN_ARRAY(cx, int64_t, n + 1);
  yajl_val *item;
  for (uint32_t i = 0, m = tarn_yajl_items(v, "size", &item); i < m && i < n; i++)
    size[i] = (int64_t)YAJL_GET_DOUBLE(item[i]);
  p.size = size;
  cli_read_program(cx, v, &p);
  tarn_push(cx, &c->programs, p);
}
void cli_read_sizes(tarn_ctx *cx, yajl_val report, cli_compile *c) {
  yajl_val v = tarn_yajl_get(report, "sizes", yajl_t_object), *item;
  if (!v) return;
  cli_read_texts(cx, v, "names", &c->size_names);
  for (uint32_t i = 0, n = tarn_yajl_items(v, "programs", &item); i < n; i++)
    read_size(cx, item[i], c->size_names.n, c);
}
void cli_take_program(tarn_ctx *cx, const tarn_compiled *r, cli_program *p) {
  tarn_domain *range = TARN_ARRAY(cx, tarn_domain, r->program->nin + 1);
  for (uint32_t i = 0; i < r->kernels->nker; i++) {
    const tarn_kernel *x = &r->kernels->ker[i];
    cli_work w = {x->flops, x->slots, x->products, x->reads, x->writes};
    tarn_push(cx, &p->work, w);
  }
  p->numerics = r->o->numerics;
  p->bound = r->rewriting->bound;
  tarn_input_domains(r->program, tarn_opaque_index, range);
  for (uint32_t i = 0; i < r->program->nin; i++) tarn_push(cx, &p->in, range[i]);
}
void cli_take_sizes(tarn_ctx *cx, const tarn_compiled *r, cli_compile *c) {
  for (uint32_t i = 0; i < r->sizes->n; i++) tarn_push(cx, &c->size_names, r->sizes->name[i]);
  for (uint32_t i = 0; i < r->sizes->nprogram; i++) {
    cli_program p = {.size = r->sizes->program[i].size};
    cli_take_program(cx, r->programs[i], &p);
    tarn_push(cx, &c->programs, p);
  }
  c->asked = (cli_list){0};
}

/* ---- selecting ---- */
static void describe(cli_compile *c, const tarn_loaded *m) {
  uint32_t i = tarn_loaded_program(m);
  if (i < c->programs.n) c->is = c->programs.p[i];
  c->is.size = tarn_loaded_size(m);
}
void cli_select(tarn_ctx *cx, tarn_loaded *m, cli_compile *c, const int64_t *size) {
  tarn_buf b = {.cx = cx};
  if (tarn_loaded_select(m, size)) {
    describe(c, m);
    return;
  }
  for (uint32_t i = 0; i < c->size_names.n; i++)
    tarn_buf_fmt(&b, "%s%s=%lld", i ? " " : "", c->size_names.p[i], (long long)size[i]);
  tarn_raise(cx, TARN_USAGE, "%s: not compiled for %s; model.h says for which sizes", c->dir, b.p);
}
static uint32_t size_number(tarn_ctx *cx, const cli_compile *c, const char *name) {
  uint32_t i = 0;
  while (i < c->size_names.n && !tarn_is_called(cx, name, c->size_names.p[i])) i++;
  return i;
}
/* --shape batch=4 of a folder. */
static void take_word(tarn_ctx *cx, const cli_compile *c, const char *word, int64_t *size) {
  const char *eq = strrchr(word, '=');
  uint32_t i = eq ? size_number(cx, c, tarn_strndup(cx, word, (size_t)(eq - word))) : 0;
  char *end = NULL;
  errno = 0;
  long long v = eq ? strtoll(eq + 1, &end, 10) : 0;
  if (!eq || end == eq + 1 || *end || errno || v < 0 || i == c->size_names.n)
    tarn_raise(cx, TARN_USAGE, "--shape %s: NAME=NUMBER of a size that %s is compiled for", word,
               c->dir);
  size[i] = v;
}
/* The first program for what is asked; what is not asked for is free. */
static void select_words(tarn_ctx *cx, tarn_loaded *m, cli_compile *c) {
  int64_t *asked = TARN_ARRAY(cx, int64_t, c->size_names.n);
  for (uint32_t i = 0; i < c->size_names.n; i++) asked[i] = -1;
  for (uint32_t i = 0; i < c->asked.n; i++) take_word(cx, c, c->asked.p[i], asked);
  for (uint32_t i = 0; i < c->programs.n; i++) {
    int64_t *size = tarn_copy(cx, c->programs.p[i].size, c->size_names.n * sizeof *size);
    for (uint32_t k = 0; k < c->size_names.n; k++)
      if (asked[k] >= 0) size[k] = asked[k];
    if (!tarn_loaded_select(m, size)) continue;
    describe(c, m);
    return;
  }
  for (uint32_t i = 0; i < c->size_names.n; i++)
    if (asked[i] < 0) asked[i] = c->programs.p[0].size[i];
  cli_select(cx, m, c, asked); /* which says that there is none */
}
static void select_inputs(tarn_ctx *cx, tarn_loaded *m, cli_compile *c, const cli_list *given) {
  const tarn_port *port;
  const char *file;
  uint32_t n = tarn_loaded_ports(m, false, &port);
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, n + 1);
  for (uint32_t i = 0; i < given->n; i++) {
    uint32_t k = cli_input_of(cx, n, port, given->p[i], &file);
    if (k < n) in[k] = tarn_tensor_read(cx, file);
  }
  if (!tarn_loaded_select_for(m, in))
    tarn_raise(cx, TARN_BAD_INPUT,
               "%s: not compiled for inputs of these shapes; model.h says for "
               "which sizes",
               c->dir);
  describe(c, m);
}
bool cli_select_asked(tarn_ctx *cx, tarn_loaded *m, cli_compile *c, const cli_list *given) {
  if (!m || !c->programs.n) return false;
  if (c->asked.n) select_words(cx, m, c);
  else if (given->n) select_inputs(cx, m, c, given);
  else {
    describe(c, m);
    return false;
  }
  return true;
}

/* ---- sizes to try ---- */
/* Of a program: the least, the largest, then some at random. */
static const int64_t *size_at(tarn_ctx *cx, const tarn_loaded *m, uint32_t program, uint32_t i,
                              uint64_t seed) {
  uint32_t n = tarn_loaded_sizes(m);
  int64_t *size = TARN_ARRAY(cx, int64_t, n);
  for (uint32_t k = 0; k < n; k++) {
    tarn_size_range r = tarn_loaded_range(m, program, k);
    uint64_t count = (uint64_t)((r.hi - r.lo) / r.step) + 1;
    uint64_t drawn = tarn_hash_mix(tarn_hash_mix(seed, program), i * n + k) % count;
    size[k] = i == 0 ? r.lo : i == 1 ? r.hi : r.lo + (int64_t)drawn * r.step;
  }
  return size;
}
static bool is_one(const tarn_loaded *m, uint32_t program) {
  bool one = true;
  for (uint32_t k = 0; k < tarn_loaded_sizes(m); k++) {
    tarn_size_range r = tarn_loaded_range(m, program, k);
    one &= r.lo == r.hi;
  }
  return one;
}
#define TRIED 8 /* of a program at most */
uint32_t cli_some_sizes(tarn_ctx *cx, const tarn_loaded *m, uint32_t most, uint64_t seed,
                        const int64_t ***size) {
  uint32_t n = tarn_loaded_programs(m);
  uint32_t each = (uint32_t)tarn_min(TRIED, most / n);
  const int64_t **v = TARN_ARRAY(cx, const int64_t *, most + 2 * n);
  uint32_t got = 0;
  if (each < 2) each = 2;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < (is_one(m, i) ? 1 : each); k++) v[got++] = size_at(cx, m, i, k, seed);
  *size = v;
  return got;
}
const char *cli_size_text(tarn_ctx *cx, const tarn_loaded *m) {
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < tarn_loaded_sizes(m); i++)
    tarn_buf_fmt(&b, "%s%s=%lld", i ? " " : "", tarn_shown(cx, tarn_loaded_size_name(m, i)),
                 (long long)tarn_loaded_size(m)[i]);
  return b.p;
}
void cli_size_json(tarn_json *j, const tarn_loaded *m) {
  tarn_json_open(j, "size", '{');
  for (uint32_t i = 0; i < tarn_loaded_sizes(m); i++)
    tarn_json_int(j, tarn_loaded_size_name(m, i), tarn_loaded_size(m)[i]);
  tarn_json_close(j, '}');
}
