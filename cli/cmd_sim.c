/* tarn sim DIR */
#include "cli/sim.h"
#include "cli/ptx.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static tarn_sim_buffer *find(tarn_ctx *cx, const tarn_sim_program *p, const char *name, size_t n) {
  for (uint32_t i = 0; i < p->nbuffer; i++)
    if (strlen(p->buffer[i].name) == n && !strncmp(p->buffer[i].name, name, n))
      return &p->buffer[i];
  tarn_raise(cx, TARN_USAGE, "%s has no buffer %.*s", p->dir, (int)n, name);
}
/* NAME=FILE: an array of the buffer's type and as many elements, as they lie in its layout. */
static void fill(tarn_ctx *cx, const tarn_sim_program *p, const char *given) {
  const char *eq = strchr(given, '=');
  if (!eq) tarn_raise(cx, TARN_USAGE, "-i %s: NAME=FILE is expected", given);
  tarn_sim_buffer *b = find(cx, p, given, (size_t)(eq - given));
  tarn_tensor *t = tarn_tensor_read(cx, eq + 1);
  if (b->role != TARN_SIM_INPUT)
    tarn_raise(cx, TARN_USAGE, "-i %s: %s is no input", given, b->name);
  if (t->dtype != b->array.dtype || tarn_tensor_count(t) != tarn_tensor_count(&b->array))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %s of %lld elements, %s is %s of %lld", eq + 1,
               tarn_dtype_name(t->dtype), (long long)tarn_tensor_count(t), b->name,
               tarn_dtype_name(b->array.dtype), (long long)tarn_tensor_count(&b->array));
  memcpy(b->array.data, t->data, (size_t)b->bytes);
}
static void write_outputs(tarn_ctx *cx, const tarn_sim_program *p, const char *dir) {
  if (mkdir(dir, 0777) && errno != EEXIST) tarn_raise(cx, TARN_IO, "%s: %s", dir, strerror(errno));
  for (uint32_t i = 0; i < p->nbuffer; i++) {
    const tarn_sim_buffer *b = &p->buffer[i];
    if (b->role != TARN_SIM_OUTPUT) continue;
    if (strchr(b->name, '/'))
      tarn_raise(cx, TARN_BAD_INPUT, "%s: output %s: its name is no file's", p->dir, b->name);
    tarn_tensor_write(cx, tarn_format(cx, "%s/%s.npy", dir, b->name), &b->array);
  }
}
static const char *segment_name(const tarn_sim_program *p, uint32_t i) {
  return p->nsegment ? p->segment[i].name : "";
}
static void json_queues(tarn_json *j, const tarn_sim_program *p, const tarn_sim_result *v) {
  tarn_json_open(j, "queues", '[');
  for (uint32_t q = 0; q < p->hw->nqueue; q++) {
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "name", p->hw->queue[q].name, "instructions", v->queue[q].instructions,
                  "busy_cycles", v->queue[q].busy);
    tarn_json_open(j, "waits", '{');
    for (uint32_t k = 0; k < p->hw->nqueue; k++)
      if (v->queue[q].wait[k] > 0) tarn_json_num(j, p->hw->queue[k].name, v->queue[q].wait[k]);
    tarn_json_close(j, '}');
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
static void json_segments(tarn_json *j, const tarn_sim_program *p, const tarn_sim_result *each) {
  tarn_json_open(j, "segments", '[');
  for (uint32_t i = 0; i < tarn_sim_segments(p); i++)
    tarn_json_object(j, NULL, "name", segment_name(p, i), "cycles", each[i].cycles,
                     "compute_cycles", each[i].compute_cycles, "dram_read_bytes", each[i].read,
                     "dram_write_bytes", each[i].written);
  tarn_json_close(j, ']');
}
static void show(tarn_ctx *cx, const tarn_sim_program *p, const tarn_sim_result *each, bool check,
                 bool json) {
  tarn_sim_result v = {0};
  for (uint32_t i = 0; i < tarn_sim_segments(p); i++) v = tarn_sim_add(v, each[i]);
  if (!json && check) {
    printf("ok: %u instructions\n", p->count);
    return;
  }
  if (!json) {
    printf("%s: %u instructions, %.0f cycles, %.0f of products (%.1f %%)\n", p->hw->name, p->count,
           v.cycles, v.compute_cycles, 100 * v.utilisation);
    for (uint32_t i = 0; i < p->nsegment; i++)
      printf("  %s: %.0f cycles, %.0f of products (%.1f %%), %lld bytes read, %lld written\n",
             tarn_shown(cx, p->segment[i].name), each[i].cycles, each[i].compute_cycles,
             100 * each[i].utilisation, (long long)each[i].read, (long long)each[i].written);
    for (uint32_t q = 0; q < p->hw->nqueue; q++) {
      printf("queue %s: %.0f cycles at work", p->hw->queue[q].name, v.queue[q].busy);
      for (uint32_t k = 0; k < p->hw->nqueue; k++)
        if (v.queue[q].wait[k] > 0)
          printf(", %.0f waiting for %s", v.queue[q].wait[k], p->hw->queue[k].name);
      printf("\n");
    }
    printf("main memory: %lld bytes read, %lld written, at least %lld\n", (long long)v.read,
           (long long)v.written, (long long)v.bound);
    return;
  }
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "hw", p->hw->name, "ok", (bool)true, "instructions", p->count, "cycles",
                v.cycles, "compute_cycles", v.compute_cycles, "utilisation", v.utilisation,
                "dram_read_bytes", v.read, "dram_write_bytes", v.written, "dram_bound_bytes",
                v.bound, "unread_bytes", v.unread);
  json_queues(j, p, &v), json_segments(j, p, each);
  cli_json_print(j);
}

static void write_trace(tarn_ctx *cx, tarn_lang *L, const tarn_sim_program *p, const char *path) {
  tarn_buf b = {.cx = cx};
  tarn_sim_chrome(L, p, &b);
  FILE *f = cli_open(cx, path);
  fwrite(b.p, 1, b.n, f);
  cli_close(cx, f, path);
}

int tarn_cmd_sim(tarn_ctx *cx, int argc, char **argv) {
  cli_list words = {0}, given = {0};
  const char *out = NULL, *hw = NULL, *trace = NULL, *html = NULL;
  double latency = -1;
  bool disassemble = false, check = false, json = false;
  const char *usage = "sim DIR [-i N=FILE]… [-o DIR] [--hw HW] [--latency N] [--trace|--html F] "
                      "[--disassemble|--check] [--json]";
  const cli_opt opts[] = {
      {"--input", "-i", CLI_LIST, &given, "NAME=FILE",
       ".npy or TensorProto for an input, in its buffer's layout (default: what dram.bin holds)"},
      {"--output", "-o", CLI_STR, &out, "DIR", "write the outputs as .npy files there"},
      {"--hw", NULL, CLI_STR, &hw, "NAME|FILE", "this description instead of memory.json's"},
      {"--latency", NULL, CLI_REAL, &latency, "N", "cycles of main memory, instead of described"},
      {"--trace", NULL, CLI_STR, &trace, "FILE",
       "write when each instruction ran, for a browser's trace viewer"},
      {"--html", NULL, CLI_STR, &html, "FILE",
       "write a page: queues over time, memories over time and addresses"},
      {"--disassemble", NULL, CLI_FLAG, &disassemble, NULL, "print the instructions, run nothing"},
      {"--check", NULL, CLI_FLAG, &check, NULL, "say ok, or what is wrong, without figures"},
      {"--json", NULL, CLI_FLAG, &json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (latency < 0 && latency != -1)
    tarn_raise(cx, TARN_USAGE, "--latency %g: 0 or more is expected", latency);
  if (words.n != 1) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  if (cli_is_ptx(cx, words.p[0])) {
    if (hw || latency >= 0 || trace || html || disassemble)
      tarn_raise(cx, TARN_USAGE, "%s holds PTX: -i, -o, --check and --json are for it", words.p[0]);
    cli_ptx_sim(cx, words.p[0], &given, out, check, json);
    return 0;
  }
  tarn_lang *L = tarn_lang_new(cx);
  tarn_sim_program *p = tarn_sim_load(L, words.p[0], hw);
  if (disassemble) {
    tarn_buf b = {.cx = cx};
    tarn_sim_disassemble(L, p, &b);
    printf("%s", b.p);
    return 0;
  }
  for (uint32_t i = 0; i < given.n; i++) fill(cx, p, given.p[i]);
  if (trace || html) tarn_sim_traced(L, p);
  tarn_sim_result *each = TARN_ARRAY(cx, tarn_sim_result, tarn_sim_segments(p));
  for (uint32_t i = 0; i < tarn_sim_segments(p); i++)
    each[i] = tarn_sim_run_segment(L, p, i, latency);
  if (out) write_outputs(cx, p, out);
  if (trace) write_trace(cx, L, p, trace);
  if (html) cli_sim_page(cx, p, each, html);
  show(cx, p, each, check, json);
  return 0;
}
