/* Folders that were compiled for a GPU. */
#include "cli/ptx.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_is_ptx(tarn_ctx *cx, const char *dir) {
  return !access(tarn_format(cx, "%s/launch.json", dir), F_OK);
}
cli_ptx *cli_ptx_load(tarn_ctx *cx, const char *dir) {
  cli_ptx *x = TARN_NEW(cx, cli_ptx);
  x->L = tarn_lang_new(cx);
  x->p = tarn_ptx_load(cx, dir);
  const tarn_hw *hw = tarn_hw_load(x->L, x->p->hw);
  const char *path = tarn_format(cx, "%s/program.tarn", dir);
  const tarn_sx *all = tarn_sx_read_file(cx, path);
  x->kernels = tarn_kprog_parse(x->L, hw, all->n == 1 ? all->kid[0] : all);
  if (x->kernels->nbuf != x->p->nbuffer)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %u buffers, launch.json has %u", path, x->kernels->nbuf,
               x->p->nbuffer);
  return x;
}
uint32_t cli_ptx_ports(tarn_ctx *cx, const cli_ptx *x, bool outputs, const tarn_port **ports) {
  uint32_t n = outputs ? x->p->nout : x->p->nin;
  const tarn_ptx_port *from = outputs ? x->p->out : x->p->in;
  tarn_port *to = TARN_ARRAY(cx, tarn_port, n + 1);
  for (uint32_t i = 0; i < n; i++)
    to[i] = (tarn_port){from[i].name, from[i].dtype, from[i].n, from[i].dim};
  *ports = to;
  return n;
}

/* ---------------------------------------------------------------- kernels on the host */
static int64_t elements_of(const tarn_kprog *p, uint32_t root) {
  int64_t n = 0;
  for (uint32_t b = 0; b < p->nbuf; b++) {
    uint32_t r = b;
    while (p->buf[r].parent != TARN_NONE) r = p->buf[r].parent;
    if (r == root) n = tarn_max(n, tarn_layout_elems(&p->buf[b].layout) + p->buf[b].layout.offset);
  }
  return n;
}
static void on_host(void *user, const char *kernel, void *const *buffer, int64_t *written) {
  const cli_ptx *x = user;
  const tarn_kprog *p = x->kernels;
  tarn_ctx *cx = tarn_lang_ctx(x->L);
  uint32_t k = 0;
  while (k < p->nker && strcmp(p->ker[k].name, kernel)) k++;
  if (k == p->nker)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: program.tarn has no kernel %s", x->p->dir, kernel);
  tarn_tensor **mem = TARN_ARRAY(cx, tarn_tensor *, p->nbuf);
  for (uint32_t b = 0; b < p->nbuf; b++) {
    if (p->buf[b].parent != TARN_NONE || !buffer[b]) continue;
    mem[b] = TARN_NEW(cx, tarn_tensor);
    *mem[b] = (tarn_tensor){.dtype = p->buf[b].dtype, .n = 1, .data = buffer[b]};
    mem[b]->dim[0] = elements_of(p, b);
  }
  tarn_kprog_step(p, k, mem, TARN_STRICT, tarn_opaque_eval);
  for (uint32_t i = 0; i < p->ker[k].nout; i++) {
    uint32_t b = p->ker[k].out[i];
    while (p->buf[b].parent != TARN_NONE) b = p->buf[b].parent;
    written[b] = elements_of(p, b) * (int64_t)tarn_dtype_size(p->buf[b].dtype);
  }
}
void cli_ptx_run(cli_ptx *x, tarn_tensor *const *in, tarn_tensor *const *out) {
  tarn_ptx_program_run(tarn_lang_ctx(x->L), x->p, (const tarn_tensor *const *)in, out, on_host, x);
}

/* ---------------------------------------------------------------- tarn sim */
static double share(int64_t a, int64_t b) { return b ? (double)a / (double)b : 1; }
static void show_json(tarn_ctx *cx, const cli_ptx *x) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_str(j, "hw", x->p->hw), tarn_json_bool(j, "ok", true);
  tarn_json_open(j, "launches", '[');
  for (uint32_t i = 0; i < x->p->nstep; i++) {
    const tarn_ptx_step *s = &x->p->step[i];
    const tarn_ptx_counts *c = &s->counts;
    if (s->does == TARN_PTX_COPIES) continue;
    tarn_json_open(j, NULL, '{');
    tarn_json_str(j, "kernel", s->kernel);
    tarn_json_bool(j, "host", s->does == TARN_PTX_CALLS);
    tarn_json_int(j, "blocks", s->grid), tarn_json_int(j, "threads", s->block);
    tarn_json_int(j, "warp_instructions", c->instructions);
    tarn_json_int(j, "thread_instructions", c->threads);
    tarn_json_int(j, "matrix_instructions", c->matrix);
    tarn_json_int(j, "global_requests", c->requests), tarn_json_int(j, "sectors", c->sectors);
    tarn_json_int(j, "sector_bytes_used", c->used);
    tarn_json_int(j, "shared_requests", c->shared), tarn_json_int(j, "wavefronts", c->wavefronts);
    tarn_json_int(j, "fewest_wavefronts", c->fewest);
    tarn_json_int(j, "local_requests", c->locals), tarn_json_int(j, "barriers", c->barriers);
    tarn_json_int(j, "divergent_branches", c->divergent);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  cli_json_print(j);
}
static void show_text(const cli_ptx *x) {
  printf("%12s %8s %12s %6s %12s %8s %9s  kernel\n", "warp instr.", "lanes", "sectors", "used",
         "wavefronts", "/ fewest", "barriers");
  for (uint32_t i = 0; i < x->p->nstep; i++) {
    const tarn_ptx_step *s = &x->p->step[i];
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
  cli_ptx *x = cli_ptx_load(cx, dir);
  uint32_t nin = cli_ptx_ports(cx, x, false, &port);
  tarn_tensor **in = cli_inputs(cx, &c, nin, port, given, 0);
  uint32_t nout = cli_ptx_ports(cx, x, true, &port);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, nout + 1);
  for (uint32_t i = 0; i < nout; i++)
    out[i] = tarn_tensor_new(cx, port[i].dtype, port[i].n, port[i].dim);
  cli_ptx_run(x, in, out);
  if (to) write_outputs(cx, nout, port, out, to);
  if (json) show_json(cx, x);
  else if (check) printf("ok: %u steps\n", x->p->nstep);
  else show_text(x);
}
