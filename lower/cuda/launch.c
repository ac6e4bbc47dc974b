/* Launches of a GPU's program: on how many threads, with which addresses; launch.json. */
#include "base/json.h"
#include "lower/cuda/cuda.h"
#include <string.h>

cuda_program *cuda_program_new(tarn_ctx *cx, const tarn_kprog *p, const tarn_memory_plan *plan) {
  cuda_program *g = TARN_NEW(cx, cuda_program);
  *g = (cuda_program){.cx = cx, .p = p, .plan = plan};
  return g;
}

/* ---------------------------------------------------------------- places */
static tarn_rt_place at(uint32_t where, int64_t offset) {
  return (tarn_rt_place){where, 0, (uint64_t)offset};
}
tarn_rt_place cuda_place(const cuda_program *g, uint32_t buf, int64_t offset) {
  const tarn_kprog *p = g->p;
  uint32_t root = tarn_kprog_root(p, buf), port = TARN_NONE;
  tarn_buf_kind kind = p->buf[root].kind;
  tarn_rt_place x = at(TARN_RT_NOWHERE, 0); /* no kernel touches it */
  if (kind == TARN_BUF_INPUT && (port = low_port(p->in, p->nin, root)) != TARN_NONE)
    x = at(TARN_RT_INPUT, offset);
  else if (kind == TARN_BUF_OUTPUT && (port = low_port(p->out, p->nout, root)) != TARN_NONE)
    x = at(TARN_RT_OUTPUT, offset);
  else if (kind == TARN_BUF_CONST && g->plan->const_offset[root] >= 0)
    return at(TARN_RT_CONSTANTS, g->plan->const_offset[root] + offset);
  else if (kind == TARN_BUF_TEMP && g->plan->offset[root] >= 0)
    return at(TARN_RT_WORKSPACE, g->plan->offset[root] + offset);
  if (port != TARN_NONE) x.index = port;
  return x;
}
/* Is output i no buffer of its own? */
static bool cuda_copied(const cuda_program *g, uint32_t i) {
  uint32_t b = g->p->out[i];
  return g->p->buf[b].kind != TARN_BUF_OUTPUT || low_port(g->p->out, g->p->nout, b) != i;
}

/* ---------------------------------------------------------------- launches */
static tarn_rt_place operand(const cuda_program *g, uint32_t buf, const tarn_layout *l) {
  return cuda_place(g, buf, l->offset * (int64_t)tarn_dtype_size(g->p->buf[buf].dtype));
}
void cuda_launch(cuda_program *g, tarn_rt_launch l, int64_t grid, int64_t scratch,
                 const tarn_plan_operand *in, const tarn_plan_operand *out) {
  const tarn_kernel *k = &g->p->ker[l.kernel];
  tarn_rt_place *arg = TARN_ARRAY(g->cx, tarn_rt_place, k->nin + k->nout + 2);
  if (grid > INT32_MAX)
    tarn_raise(g->cx, TARN_BAD_INPUT, "kernel %s: %lld blocks of threads", k->name,
               (long long)grid);
  for (uint32_t i = 0; i < k->nin; i++) arg[l.narg++] = operand(g, k->in[i], &in[i].layout);
  for (uint32_t i = 0; i < k->nout; i++) arg[l.narg++] = operand(g, k->out[i], &out[i].layout);
  arg[l.narg++] = at(TARN_RT_WORKSPACE, scratch ? g->plan->bytes : 0);
  if (l.rows) arg[l.narg++] = at(TARN_RT_FLAGS, TARN_RT_FLAG * (int64_t)g->nflag++);
  l.grid = (uint32_t)grid;
  l.arg = arg;
  g->scratch = tarn_max(g->scratch, scratch);
  tarn_push(g->cx, &g->launch, l);
}

/* ---------------------------------------------------------------- launch.json */
static void put_place(tarn_json *j, const tarn_rt_place *x) {
  static const char *const name[] = {"input", "output", "weights", "workspace", "nowhere", "flags"};
  tarn_json_str(j, "at", name[x->at]);
  if (x->at == TARN_RT_INPUT || x->at == TARN_RT_OUTPUT) tarn_json_int(j, "index", x->index);
  tarn_json_int(j, "offset", (int64_t)x->offset);
}
static void put_buffer(const cuda_program *g, tarn_json *j, uint32_t buf) {
  tarn_rt_place x = cuda_place(g, buf, 0);
  put_place(j, &x);
}
static void put_launch(const cuda_program *g, tarn_json *j, const tarn_rt_launch *l) {
  tarn_json_open(j, NULL, '{');
  tarn_json_put(j, "kernel", g->p->ker[l->kernel].name, "entry", l->entry, "grid", l->grid, "block",
                l->block);
  if (l->shared) tarn_json_int(j, "shared", l->shared);
  if (l->rows) tarn_json_int(j, "rows", l->rows == TARN_RT_ANY_ROWS ? 0 : l->rows);
  tarn_json_open(j, "arguments", '[');
  for (uint32_t i = 0; i < l->narg; i++) {
    tarn_json_open(j, NULL, '{');
    put_place(j, &l->arg[i]);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  tarn_json_close(j, '}');
}
static void put_steps(const cuda_program *g, tarn_json *j) {
  uint32_t next = 0;
  tarn_json_open(j, "launches", '[');
  for (uint32_t k = 0; k < g->p->nker; k++) {
    for (; next < g->launch.n && g->launch.p[next].kernel == k; next++)
      put_launch(g, j, &g->launch.p[next]);
    if (g->p->ker[k].kind == TARN_K_NEST) continue;
    tarn_json_object(j, NULL, "kernel", g->p->ker[k].name, "host", (bool)true);
  }
  for (uint32_t i = 0; i < g->p->nout; i++) {
    if (!cuda_copied(g, i)) continue;
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "copy", tarn_buffer_bytes(&g->p->buf[g->p->out[i]]), "output", i);
    put_buffer(g, j, g->p->out[i]);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
static void put_ports(const cuda_program *g, tarn_json *j, const char *key, const uint32_t *list,
                      uint32_t n) {
  tarn_json_open(j, key, '[');
  for (uint32_t i = 0; i < n; i++) {
    const tarn_buffer *b = &g->p->buf[list[i]];
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "name", b->name ? b->name : "", "type", tarn_dtype_name(b->dtype));
    tarn_json_open(j, "shape", '[');
    for (uint32_t d = 0; d < b->layout.n; d++) tarn_json_int(j, NULL, b->layout.dim[d]);
    tarn_json_close(j, ']');
    tarn_json_int(j, "bytes", tarn_buffer_bytes(b));
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
/* Where each buffer lies, for kernels that run on the host. */
static void put_buffers(const cuda_program *g, tarn_json *j) {
  tarn_json_open(j, "buffers", '[');
  for (uint32_t b = 0; b < g->p->nbuf; b++) {
    tarn_json_open(j, NULL, '{');
    put_buffer(g, j, b);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
}
void cuda_write_launches(const cuda_program *g, const char *path) {
  tarn_json *j = tarn_json_new(g->cx, 1);
  size_t n;
  tarn_json_str(j, "hw", g->p->hw->name);
  put_ports(g, j, "inputs", g->p->in, g->p->nin), put_ports(g, j, "outputs", g->p->out, g->p->nout);
  put_buffers(g, j);
  put_steps(g, j);
  tarn_json_put(j, "workspace", g->plan->bytes + g->scratch, "weights", g->plan->const_bytes);
  if (g->nflag) tarn_json_int(j, "flags", TARN_RT_FLAG * (int64_t)g->nflag);
  const char *text = tarn_json_text(j, &n);
  tarn_write_file(g->cx, path, text, n);
}
