/* tarn quantize MODEL -i DIR -o FILE.onnx */
#include "cli/cli.h"
#include "quantize/quantize.h"
#include <string.h>

static void show_json(tarn_ctx *cx, const tarn_quantized *q, const char *file) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "file", file, "form",
                q->scales    ? "scaled"
                : q->machine ? "integer"
                             : "qdq",
                "samples", q->nsample, "products", q->products);
  tarn_json_open(j, "left", '[');
  for (uint32_t i = 0; i < q->nleft; i++)
    tarn_json_object(j, NULL, "node", q->left[i].node, "op", q->left[i].op, "why", q->left[i].why);
  tarn_json_close(j, ']');
  tarn_json_open(j, "outputs", '[');
  for (uint32_t i = 0; i < q->nout; i++) {
    const tarn_quantized_output *o = &q->out[i];
    tarn_json_open(j, NULL, '{');
    tarn_json_str(j, "name", o->name);
    if (o->classes) tarn_json_put(j, "vectors", o->vectors, "argmax_agree", o->agree);
    tarn_json_put(j, "relative_error", o->error, "max_abs", o->largest);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  cli_json_print(j);
}

static void show(tarn_ctx *cx, const tarn_quantized *q, const char *file) {
  printf("%s: %u products in bytes, %s, on %u samples\n", tarn_shown(cx, file), q->products,
         q->scales    ? "scaled sums"
         : q->machine ? "shifts"
                      : "QuantizeLinear and DequantizeLinear",
         q->nsample);
  printf("%-24s %16s %15s %12s\n", "output", "same argmax", "relative error", "largest");
  for (uint32_t i = 0; i < q->nout; i++) {
    const tarn_quantized_output *o = &q->out[i];
    const char *same =
        o->classes ? tarn_format(cx, "%lld of %lld", (long long)o->agree, (long long)o->vectors)
                   : "-";
    printf("%-24s %16s %15.3g %12.3g\n", tarn_shown(cx, o->name), same, o->error, o->largest);
  }
  for (uint32_t i = 0; i < q->nleft; i++)
    printf("left in f32: node %s (%s): %s\n", tarn_shown(cx, q->left[i].node),
           tarn_shown(cx, q->left[i].op), q->left[i].why);
}

/* ---- the models compiled for this machine, in a folder that goes with the command ---- */
static void *load(void *user, tarn_ctx *cx, const char *bytes, size_t n) {
  const cli_list *shapes = user;
  const char *dir = cli_scratch_folder(cx, "the model"),
             *rules = tarn_format(cx, "%s/none.rules", dir);
  cli_compile c = {
      .model = tarn_format(cx, "%s/m.onnx", dir), .shapes = *shapes, .rtol = TARN_RTOL};
  tarn_lang *L = tarn_lang_new(cx);
  tarn_write_file(cx, c.model, bytes, n);
  tarn_write_file(cx, rules, "; none\n", 7); /* all values are outputs: little could be rewritten */
  tarn_push(cx, &c.only_rules, rules);
  c.dir = dir;
  tarn_compile(L, cli_options(L, &c));
  return tarn_load(cx, dir);
}
static void run_once(void *model, const tarn_tensor *const *in, tarn_tensor *const *out) {
  tarn_loaded_run(model, in, out, 0);
}

int tarn_cmd_quantize(tarn_ctx *cx, int argc, char **argv) {
  cli_list words = {0}, shapes = {0};
  tarn_quantize_options o = {0};
  const char *hw = NULL;
  bool json = false;
  const char *usage = "quantize MODEL -i DIR -o FILE.onnx [--hw NAME|FILE] [--shape NAME=DIMS] "
                      "[--json]";
  const cli_opt opts[] = {
      {"--input", "-i", CLI_STR, &o.samples, "DIR",
       "samples: *.npy of a model with one input, else K/NAME.npy"},
      {"--output", "-o", CLI_STR, &o.output, "FILE", "the quantised model"},
      {"--hw", NULL, CLI_STR, &hw, "NAME|FILE", "for this machine (default: a CPU)"},
      {"--shape", NULL, CLI_LIST, &shapes, "NAME=DIMS",
       "bind a dynamic shape while the samples run"},
      {"--json", NULL, CLI_FLAG, &json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1 || !o.samples || !o.output) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  tarn_lang *L = tarn_lang_new(cx);
  tarn_shape_binding *shape = TARN_ARRAY(cx, tarn_shape_binding, shapes.n + 1);
  for (uint32_t i = 0; i < shapes.n; i++) shape[i] = tarn_shape_binding_parse(cx, shapes.p[i]);
  o.model = words.p[0];
  o.hw = hw ? cli_hardware(L, hw) : NULL;
  o.nshape = shapes.n;
  o.shape = shape;
  const tarn_quantize_engine engine = {&shapes, load, run_once};
  o.engine = &engine;
  const tarn_quantized *q = tarn_quantize(L, &o);
  if (json) show_json(cx, q, o.output);
  else show(cx, q, o.output);
  return 0;
}
