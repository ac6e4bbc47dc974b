/* Which machine runs a compiled model. */
#include "cli/subject.h"
#include "cli/node.h"
#include "tune/tune.h"

static bool in_executor(tarn_ctx *cx, const char *dir, cli_where where) {
  const char *why;
  if (!cli_is_ptx(cx, dir) || where == CLI_SIMULATED) return true;
  bool there = tarn_gpu_here(cx, &why) != NULL;
  if (!there && where == CLI_DEVICE)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %s; --simulate runs it without one", dir, why);
  return !there;
}
cli_subject cli_open_subject(tarn_ctx *cx, const char *what, cli_compile *c, cli_where where) {
  const char *dir = cli_folder(cx, what, c);
  bool ptx = cli_is_ptx(cx, dir), executed = in_executor(cx, dir, where);
  if (ptx && executed) return (cli_subject){.x = tarn_execute_load(cx, dir)};
  if (cli_is_wasm(cx, dir) && where != CLI_SIMULATED)
    return (cli_subject){.wasm = dir, .p = cli_reload(tarn_lang_new(cx), c)};
  if (where == CLI_SIMULATED && !tarn_has_stream(cx, dir))
    tarn_raise(cx, TARN_USAGE, "--simulate: %s is a CPU's program, which runs as it is", what);
  return (cli_subject){.m = cli_load_folder(cx, dir, c)};
}
uint32_t cli_subject_ports(const cli_subject *s, bool outputs, const tarn_port **ports) {
  if (s->wasm) return cli_ports(s->p, outputs, ports);
  return s->x ? tarn_execute_ports(s->x, outputs, ports) : tarn_loaded_ports(s->m, outputs, ports);
}
tarn_tensor **cli_subject_run(tarn_ctx *cx, const cli_subject *s, tarn_tensor *const *in,
                              uint32_t threads) {
  const tarn_port *p;
  if (s->wasm) return cli_node_run(cx, s->wasm, s->p, in);
  uint32_t n = cli_subject_ports(s, true, &p);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, n + 1);
  for (uint32_t i = 0; i < n; i++) out[i] = tarn_tensor_new(cx, p[i].dtype, p[i].n, p[i].dim);
  if (s->x) tarn_execute_run(s->x, (const tarn_tensor *const *)in, out);
  else tarn_loaded_run(s->m, (const tarn_tensor *const *)in, out, threads);
  return out;
}
