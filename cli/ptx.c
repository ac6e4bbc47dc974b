/* Folders that were compiled for a GPU. */
#include "cli/ptx.h"
#include "sim/ptx.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_is_ptx(tarn_ctx *cx, const char *dir) {
  return !access(tarn_format(cx, "%s/launch.json", dir), F_OK);
}

/* ---------------------------------------------------------------- tarn sim */
static double share(int64_t a, int64_t b) { return b ? (double)a / (double)b : 1; }
static void show_json(tarn_ctx *cx, const tarn_ptx_program *p) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "hw", p->hw, "ok", (bool)true);
  tarn_json_open(j, "launches", '[');
  for (uint32_t i = 0; i < p->nstep; i++) {
    const tarn_ptx_step *s = &p->step[i];
    const tarn_ptx_counts *c = &s->counts;
    if (s->does == TARN_PTX_COPIES) continue;
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "kernel", s->kernel, "host", (bool)(s->does == TARN_PTX_CALLS), "blocks",
                  s->grid, "threads", s->block, "warp_instructions", c->instructions,
                  "thread_instructions", c->threads);
    tarn_json_put(j, "matrix_instructions", c->matrix, "global_requests", c->requests, "sectors",
                  c->sectors, "sector_bytes_used", c->used, "shared_requests", c->shared,
                  "wavefronts", c->wavefronts);
    tarn_json_put(j, "fewest_wavefronts", c->fewest, "local_requests", c->locals, "barriers",
                  c->barriers, "divergent_branches", c->divergent);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  cli_json_print(j);
}
static void show_text(const tarn_ptx_program *p) {
  printf("%12s %8s %12s %6s %12s %8s %9s  kernel\n", "warp instr.", "lanes", "sectors", "used",
         "wavefronts", "/ fewest", "barriers");
  for (uint32_t i = 0; i < p->nstep; i++) {
    const tarn_ptx_step *s = &p->step[i];
    const tarn_ptx_counts *c = &s->counts;
    if (s->does == TARN_PTX_COPIES) continue;
    if (s->does == TARN_PTX_CALLS) {
      printf("%74s %s, on the host\n", "", s->kernel);
      continue;
    }
    printf("%12lld %8.1f %12lld %5.0f%% %12lld %8.2f %9lld  %s\n", (long long)c->instructions,
           32 * share(c->threads, 32 * c->instructions), (long long)c->sectors,
           100 * share(c->used, 32 * c->sectors), (long long)c->wavefronts,
           share(c->wavefronts, c->fewest), (long long)c->barriers, s->kernel);
  }
}
static void write_outputs(tarn_ctx *cx, uint32_t n, const tarn_port *port, tarn_tensor *const *out,
                          const char *to) {
  if (mkdir(to, 0777) && errno != EEXIST) tarn_raise(cx, TARN_IO, "%s: %s", to, strerror(errno));
  for (uint32_t i = 0; i < n; i++) {
    const char *name = port[i].name;
    if (!*name || strchr(name, '/'))
      tarn_raise(cx, TARN_BAD_INPUT, "output %s: its name is no file's", tarn_shown(cx, name));
    tarn_tensor_write(cx, tarn_format(cx, "%s/%s.npy", to, name), out[i]);
  }
}
void cli_ptx_sim(tarn_ctx *cx, const char *dir, const cli_list *given, const char *to, bool check,
                 bool json) {
  cli_compile c = {0};
  const tarn_port *port;
  cli_folder(cx, dir, &c);
  tarn_executed *x = tarn_execute_load(cx, dir);
  uint32_t nin = tarn_execute_ports(x, false, &port);
  tarn_tensor **in = cli_inputs(cx, &c, nin, port, given, 0);
  uint32_t nout = tarn_execute_ports(x, true, &port);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, nout + 1);
  for (uint32_t i = 0; i < nout; i++)
    out[i] = tarn_tensor_new(cx, port[i].dtype, port[i].n, port[i].dim);
  tarn_execute_run(x, (const tarn_tensor *const *)in, out);
  if (to) write_outputs(cx, nout, port, out, to);
  const tarn_ptx_program *p = tarn_execute_program(x);
  if (json) show_json(cx, p);
  else if (check) printf("ok: %u steps\n", p->nstep);
  else show_text(p);
}
