/* tarn inspect MODEL: what it holds, what to bind, what is not supported. */
#include "cli/cli.h"
#include <string.h>

/* A row of the table in docs/operators.md. */
static int print_table(tarn_ctx *cx) {
  static const char *const support[] = {
      [TARN_OP_AS_TERMS] = "",
      [TARN_OP_REFERENCE] = "reference kernel",
      [TARN_OP_CONSTANT] = "of constants only",
      [TARN_OP_REFUSED] = "refused",
  };
  const tarn_known_op *op;
  uint32_t n = tarn_known_ops(cx, &op);
  for (uint32_t i = 0; i < n; i++)
    printf("| %s%s`%s` | %s | %s |\n", op[i].domain, *op[i].domain ? " " : "", op[i].name,
           op[i].sets, support[op[i].support]);
  return 0;
}

/* ---- as text ---- */
static const char *bytes_text(tarn_ctx *cx, int64_t n) {
  static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double v = (double)n;
  uint32_t u = 0;
  for (; v >= 1024 && u + 1 < sizeof unit / sizeof *unit; u++) v /= 1024;
  return tarn_format(cx, u ? "%.1f %s" : "%.0f %s", v, unit[u]);
}
static void show_declared(tarn_ctx *cx, const char *what, uint32_t n, const tarn_declared *d) {
  printf("%s\n", what);
  for (uint32_t i = 0; i < n; i++)
    printf("  %-24s %s\n", tarn_shown(cx, d[i].name), tarn_shown(cx, d[i].type));
}
/* How --shape gives it. */
static const char *binding_text(tarn_ctx *cx, const tarn_open_size *s) {
  if (*s->name) return tarn_format(cx, "--shape %s=N", s->name);
  if (s->axis == TARN_NONE) return tarn_format(cx, "--shape %s=… (all its dims)", s->input);
  return tarn_format(cx, "--shape %s=… (dim %u)", s->input, s->axis);
}
static void show_sizes(tarn_ctx *cx, const tarn_inspection *x) {
  if (x->nsize) printf("sizes to bind\n");
  for (uint32_t i = 0; i < x->nsize; i++) {
    const tarn_open_size *s = &x->size[i];
    printf("  %-36s", tarn_shown(cx, binding_text(cx, s)));
    if (s->assumed) printf("%lld is assumed here", (long long)s->assumed);
    printf("\n");
  }
}
static void show_uses(tarn_ctx *cx, const tarn_inspection *x) {
  printf("operators\n");
  for (uint32_t i = 0; i < x->nop; i++) {
    const char *domain = x->op[i].domain;
    bool other = *domain && strcmp(domain, "tarn") != 0;
    printf("  %6u  %s%s%s\n", x->op[i].n, tarn_shown(cx, x->op[i].name), other ? " of " : "",
           other ? tarn_shown(cx, domain) : "");
  }
  const tarn_model_report *r = &x->report;
  if (r->nopaque) printf("as reference kernels, which no rule rewrites\n");
  for (uint32_t i = 0; i < r->nopaque; i++)
    printf("  node %s (%s)\n", tarn_shown(cx, r->opaque[i].node), r->opaque[i].op);
}
static void show_unsupported(tarn_ctx *cx, const tarn_inspection *x) {
  printf(x->nunsupported ? "not supported\n" : "everything in it is supported\n");
  for (uint32_t i = 0; i < x->nunsupported; i++) {
    const tarn_unsupported *u = &x->unsupported[i];
    const char *text = *u->op ? tarn_format(cx, "node %s (%s): %s", u->node, u->op, u->why)
                              : tarn_format(cx, "%s: %s", u->node, u->why);
    printf("  %s\n", tarn_shown(cx, text));
  }
  if (x->nunjudged)
    printf("not judged, as they read values that are not known: %u nodes\n", x->nunjudged);
}
static void show(tarn_ctx *cx, const char *path, const tarn_inspection *x) {
  const tarn_model_report *r = &x->report;
  printf("%s: %s", tarn_shown(cx, path), r->format);
  if (r->opset) printf(", operator set %lld", (long long)r->opset);
  if (*r->producer) printf(", made by %s", tarn_shown(cx, r->producer));
  if (r->nnode) printf(", %u nodes", r->nnode);
  printf("\n");
  show_declared(cx, "inputs", x->nin, x->in);
  show_declared(cx, "outputs", x->nout, x->out);
  show_sizes(cx, x);
  printf("weights\n  %s in %u tensors\n", bytes_text(cx, x->weight_bytes), x->nweight);
  if (x->most_bytes)
    printf("largest value\n  %s, which node %s makes\n", bytes_text(cx, x->most_bytes),
           tarn_shown(cx, x->most));
  show_uses(cx, x);
  show_unsupported(cx, x);
}

/* ---- as JSON ---- */
static void declared_json(tarn_json *j, const char *key, uint32_t n, const tarn_declared *d) {
  tarn_json_open(j, key, '[');
  for (uint32_t i = 0; i < n; i++) tarn_json_object(j, NULL, "name", d[i].name, "type", d[i].type);
  tarn_json_close(j, ']');
}
static void sizes_json(tarn_json *j, const tarn_inspection *x) {
  tarn_json_open(j, "sizes", '[');
  for (uint32_t i = 0; i < x->nsize; i++) {
    const tarn_open_size *s = &x->size[i];
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "name", *s->name ? s->name : NULL, "input", *s->input ? s->input : NULL);
    if (!*s->name && s->axis != TARN_NONE) tarn_json_int(j, "axis", s->axis);
    if (s->assumed) tarn_json_int(j, "assumed", s->assumed);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
static void nodes_json(tarn_json *j, const tarn_inspection *x) {
  tarn_json_open(j, "operators", '[');
  for (uint32_t i = 0; i < x->nop; i++)
    tarn_json_object(j, NULL, "domain", x->op[i].domain, "op", x->op[i].name, "count", x->op[i].n);
  tarn_json_close(j, ']');
  tarn_json_open(j, "opaque", '[');
  for (uint32_t i = 0; i < x->report.nopaque; i++)
    tarn_json_object(j, NULL, "node", x->report.opaque[i].node, "op", x->report.opaque[i].op);
  tarn_json_close(j, ']');
  tarn_json_open(j, "unsupported", '[');
  for (uint32_t i = 0; i < x->nunsupported; i++) {
    const tarn_unsupported *u = &x->unsupported[i];
    tarn_json_object(j, NULL, "node", u->node, "op", *u->op ? u->op : NULL, "reason", u->why);
  }
  tarn_json_close(j, ']');
  tarn_json_int(j, "unjudged", x->nunjudged);
}
static void print_json(tarn_ctx *cx, const char *path, const tarn_inspection *x) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "model", path, "format", x->report.format, "opset", x->report.opset, "producer",
                x->report.producer, "nodes", x->report.nnode);
  declared_json(j, "inputs", x->nin, x->in);
  declared_json(j, "outputs", x->nout, x->out);
  sizes_json(j, x);
  tarn_json_put(j, "weights", x->nweight, "weight_bytes", x->weight_bytes, "largest_bytes",
                x->most_bytes);
  nodes_json(j, x);
  cli_json_print(j);
}

int tarn_cmd_inspect(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0};
  bool table = false;
  const char *usage = "inspect MODEL [--shape NAME=DIMS]… [--json] | inspect --operators";
  const cli_opt opts[] = {
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS", "bind a dynamic shape"},
      CLI_SET(c),
      {"--operators", NULL, CLI_FLAG, &table, NULL,
       "the operators that tarn knows, as the table in docs/operators.md"},
      {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != !table) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  if (table) return print_table(cx);
  tarn_model_options o = {.def = c.def, .allow_copies = c.copies};
  tarn_shape_binding *shape = TARN_ARRAY(cx, tarn_shape_binding, c.shapes.n + 1);
  tarn_value_binding *set = TARN_ARRAY(cx, tarn_value_binding, c.sets.n + 1);
  for (; o.nshape < c.shapes.n; o.nshape++)
    shape[o.nshape] = tarn_shape_binding_parse(cx, c.shapes.p[o.nshape]);
  for (; o.nset < c.sets.n; o.nset++) set[o.nset] = tarn_value_binding_parse(cx, c.sets.p[o.nset]);
  o.shape = shape, o.set = set;
  const tarn_inspection *x = tarn_source_inspect(tarn_source_open(cx, words.p[0], NULL, 0), &o);
  if (c.json) print_json(cx, words.p[0], x);
  else show(cx, words.p[0], x);
  return x->nunsupported ? TARN_NO : 0;
}
