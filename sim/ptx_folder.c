/* A compiled folder: which kernels run in which order, and where their operands lie. */
#include "hw/yajl.h"
#include "sim/ptx.h"
#include <string.h>

typedef struct loading {
  tarn_ctx *cx;
  const char *file;
  tarn_ptx_program *p;
} loading;

/* ---------------------------------------------------------------- JSON */
TARN_NORETURN static void refuse(const loading *l, const char *key, const char *what) {
  tarn_yajl_refuse(l->cx, l->file, key, what);
}
static int64_t read_integer(const loading *l, yajl_val in, const char *key, int64_t most) {
  return tarn_yajl_whole(l->cx, l->file, in, key, 0, most);
}

/* ---------------------------------------------------------------- parts */
#define MOST_BYTES (INT64_C(1) << 40)
static tarn_ptx_port read_port(const loading *l, yajl_val v) {
  tarn_ptx_port p = {.name = tarn_yajl_string(l->cx, l->file, v, "name"),
                     .bytes = read_integer(l, v, "bytes", MOST_BYTES)};
  yajl_val *dim;
  if (!tarn_dtype_parse(tarn_yajl_string(l->cx, l->file, v, "type"), &p.dtype))
    refuse(l, "type", "no such type");
  p.n = tarn_yajl_list(l->cx, l->file, v, "shape", &dim);
  if (p.n > TARN_MAX_DIMS) refuse(l, "shape", "too many dims");
  int64_t bytes = (int64_t)tarn_dtype_size(p.dtype);
  for (uint32_t d = 0; d < p.n; d++) {
    p.dim[d] = YAJL_IS_INTEGER(dim[d]) ? YAJL_GET_INTEGER(dim[d]) : -1;
    if (p.dim[d] < 0 || (p.dim[d] && bytes > MOST_BYTES / p.dim[d]))
      refuse(l, "shape", "extents are expected");
    bytes *= p.dim[d];
  }
  if (bytes > p.bytes) refuse(l, "bytes", "fewer than its shape has");
  return p;
}
static const tarn_ptx_port *read_ports(const loading *l, yajl_val in, const char *key,
                                       uint32_t *n) {
  yajl_val *item;
  *n = tarn_yajl_list(l->cx, l->file, in, key, &item);
  tarn_ptx_port *p = TARN_ARRAY(l->cx, tarn_ptx_port, *n + 1);
  for (uint32_t i = 0; i < *n; i++) p[i] = read_port(l, item[i]);
  return p;
}
/* The bytes of what a place lies in. */
static int64_t extent(const tarn_ptx_program *p, const tarn_ptx_place *x) {
  switch (x->at) {
  case TARN_PTX_INPUT: return p->in[x->index].bytes;
  case TARN_PTX_OUTPUT: return p->out[x->index].bytes;
  case TARN_PTX_WEIGHTS: return p->weights;
  case TARN_PTX_WORKSPACE: return p->workspace;
  case TARN_PTX_FLAGS: return p->flags;
  default: return 0;
  }
}
static tarn_ptx_place read_place(const loading *l, yajl_val v) {
  static const char *const names[] = {"input",     "output",  "weights",
                                      "workspace", "nowhere", "flags"};
  const char *at = tarn_yajl_string(l->cx, l->file, v, "at");
  uint32_t k = 0;
  while (k < 6 && strcmp(at, names[k])) k++;
  if (k == 6) refuse(l, "at", "input, output, weights, workspace, nowhere or flags is expected");
  tarn_ptx_place x = {.at = (tarn_ptx_where)k};
  x.offset = read_integer(l, v, "offset", MOST_BYTES);
  if (k < 2) {
    uint32_t n = k ? l->p->nout : l->p->nin;
    if (!n) refuse(l, "at", "there is none");
    x.index = (uint32_t)read_integer(l, v, "index", n - 1);
  }
  if (x.offset > extent(l->p, &x)) refuse(l, "offset", "behind the end");
  return x;
}
static tarn_ptx_place *read_places(const loading *l, yajl_val in, const char *key, uint32_t *n) {
  yajl_val *item;
  *n = tarn_yajl_list(l->cx, l->file, in, key, &item);
  tarn_ptx_place *x = TARN_ARRAY(l->cx, tarn_ptx_place, *n + 1);
  for (uint32_t i = 0; i < *n; i++) x[i] = read_place(l, item[i]);
  return x;
}

/* ---------------------------------------------------------------- steps */
static bool is_flag(const loading *l, const tarn_ptx_place *x) {
  return x->at == TARN_PTX_FLAGS && x->offset % TARN_PTX_FLAG == 0 &&
         x->offset + TARN_PTX_FLAG <= l->p->flags;
}
static void read_launch(const loading *l, yajl_val v, tarn_ptx_step *s) {
  const char *entry = tarn_yajl_string(l->cx, l->file, v, "entry");
  s->entry = tarn_ptx_find(l->p->ptx, entry);
  if (s->entry == TARN_NONE)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: kernel %s is not in model.ptx", l->file,
               tarn_shown(l->cx, entry));
  s->grid = (uint32_t)read_integer(l, v, "grid", INT32_MAX),
  s->block = (uint32_t)read_integer(l, v, "block", 1024);
  if (tarn_yajl_has(v, "shared")) s->shared = (uint32_t)read_integer(l, v, "shared", 1 << 20);
  s->arg = read_places(l, v, "arguments", &s->narg);
  s->looks = tarn_yajl_has(v, "rows");
  if (s->looks) s->rows = (uint32_t)read_integer(l, v, "rows", UINT32_MAX);
  if (s->looks && (!s->narg || !is_flag(l, &s->arg[s->narg - 1])))
    refuse(l, "rows", "the last argument is no flag");
  for (uint32_t i = 0; i + s->looks < s->narg; i++)
    if (s->arg[i].at == TARN_PTX_FLAGS) refuse(l, "at", "a flag of a launch without rows");
  const tarn_ptx_entry *e = tarn_ptx_entry_at(l->p->ptx, s->entry);
  bool addresses = e->nparam == s->narg;
  for (uint32_t i = 0; addresses && i < e->nparam; i++) addresses = e->param[i].bytes == 8;
  if (!addresses)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: kernel %s takes %u addresses, not %u", l->file, e->name,
               e->nparam, s->narg);
}
static void read_copy(const loading *l, yajl_val v, tarn_ptx_step *s) {
  tarn_ptx_place *x = TARN_ARRAY(l->cx, tarn_ptx_place, 2);
  if (!l->p->nout) refuse(l, "output", "there is none");
  s->does = TARN_PTX_COPIES, s->narg = 2, s->arg = x;
  s->bytes = read_integer(l, v, "copy", MOST_BYTES);
  x[0] = read_place(l, v);
  x[1] =
      (tarn_ptx_place){TARN_PTX_OUTPUT, (uint32_t)read_integer(l, v, "output", l->p->nout - 1), 0};
  for (uint32_t i = 0; i < 2; i++)
    if (extent(l->p, &x[i]) - x[i].offset < s->bytes)
      refuse(l, "copy", "more bytes than there are");
}
static tarn_ptx_step read_step(const loading *l, yajl_val v) {
  tarn_ptx_step s = {.does = TARN_PTX_LAUNCHES};
  if (tarn_yajl_has(v, "copy")) {
    read_copy(l, v, &s);
    return s;
  }
  s.kernel = tarn_yajl_string(l->cx, l->file, v, "kernel");
  if (tarn_yajl_has(v, "host")) s.does = TARN_PTX_CALLS;
  else read_launch(l, v, &s);
  return s;
}
static void read_all(const loading *l, yajl_val tree) {
  tarn_ptx_program *p = l->p;
  yajl_val *item;
  p->hw = tarn_yajl_string(l->cx, l->file, tree, "hw");
  p->workspace = read_integer(l, tree, "workspace", MOST_BYTES);
  p->weights = read_integer(l, tree, "weights", MOST_BYTES);
  if (tarn_yajl_has(tree, "flags")) p->flags = read_integer(l, tree, "flags", MOST_BYTES);
  p->in = read_ports(l, tree, "inputs", &p->nin), p->out = read_ports(l, tree, "outputs", &p->nout);
  p->buffer = read_places(l, tree, "buffers", &p->nbuffer);
  p->nstep = tarn_yajl_list(l->cx, l->file, tree, "launches", &item);
  p->step = TARN_ARRAY(l->cx, tarn_ptx_step, p->nstep + 1);
  for (uint32_t i = 0; i < p->nstep; i++) p->step[i] = read_step(l, item[i]);
}
tarn_ptx_program *tarn_ptx_load(tarn_ctx *cx, const char *dir) {
  loading l = {cx, tarn_format(cx, "%s/launch.json", dir), TARN_NEW(cx, tarn_ptx_program)};
  const char *path = tarn_format(cx, "%s/model.ptx", dir);
  size_t n;
  const char *ptx = tarn_read_file(cx, path, &n);
  l.p->dir = dir;
  l.p->ptx = tarn_ptx_read(cx, ptx, n, path);
  const char *launches = tarn_read_file(cx, l.file, &n);
  read_all(&l, tarn_yajl_parse(cx, l.file, launches, n));
  return l.p;
}

/* ---------------------------------------------------------------- a run */
typedef struct memory {
  uint8_t *data;
  uint64_t at;
} memory;
typedef struct run {
  tarn_ctx *cx;
  tarn_ptx_program *p;
  tarn_ptx_device *d;
  memory *in, *out, weights, workspace, flags;
} run;
static const memory *of(const run *r, const tarn_ptx_place *x) {
  switch (x->at) {
  case TARN_PTX_INPUT: return &r->in[x->index];
  case TARN_PTX_OUTPUT: return &r->out[x->index];
  case TARN_PTX_WEIGHTS: return &r->weights;
  case TARN_PTX_FLAGS: return &r->flags;
  default: return &r->workspace;
  }
}
static memory map(run *r, const char *name, void *data, int64_t bytes, tarn_ptx_state state) {
  memory m = {.data = data};
  m.at = tarn_ptx_map(r->d, name, data, bytes, state);
  return m;
}
static void *room(run *r, int64_t bytes) {
  uint8_t *p = tarn_new_aligned(r->cx, (size_t)bytes + 64, 256);
  memset(p, 0, (size_t)bytes + 64);
  return p;
}
static void map_all(run *r, const tarn_tensor *const *in, tarn_tensor *const *out) {
  tarn_ptx_program *p = r->p;
  size_t n = 0;
  const char *path = tarn_format(r->cx, "%s/weights.bin", p->dir);
  char *weights = tarn_read_file(r->cx, path, &n);
  if ((int64_t)n != p->weights)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: %zu bytes, launch.json says %lld", path, n,
               (long long)p->weights);
  r->in = TARN_ARRAY(r->cx, memory, p->nin + 1), r->out = TARN_ARRAY(r->cx, memory, p->nout + 1);
  for (uint32_t i = 0; i < p->nin; i++) {
    const char *name = tarn_format(r->cx, "input %s", tarn_shown(r->cx, p->in[i].name));
    void *data = room(r, p->in[i].bytes);
    memcpy(data, in[i]->data, (size_t)tarn_tensor_count(in[i]) * tarn_dtype_size(p->in[i].dtype));
    r->in[i] = map(r, name, data, p->in[i].bytes, TARN_PTX_CONSTANT);
  }
  for (uint32_t i = 0; i < p->nout; i++) {
    const char *name = tarn_format(r->cx, "output %s", tarn_shown(r->cx, p->out[i].name));
    r->out[i] = map(r, name, out[i]->data, p->out[i].bytes, TARN_PTX_UNDEFINED);
  }
  r->weights = map(r, "weights", weights, p->weights, TARN_PTX_CONSTANT);
  r->flags = map(r, "flags", room(r, p->flags), p->flags, TARN_PTX_WRITTEN);
  r->workspace = map(r, "workspace", room(r, p->workspace), p->workspace, TARN_PTX_UNDEFINED);
}
static void check_lookups(const run *r, const tarn_ptx_step *s) {
  uint32_t flag = 0;
  if (!s->looks) return;
  memcpy(&flag, r->flags.data + s->arg[s->narg - 1].offset, sizeof flag);
  if (!flag) return;
  const char *axis = tarn_format(r->cx, ", the axis has %u elements", s->rows);
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s: an index is out of range%s", tarn_shown(r->cx, s->kernel),
             s->rows ? axis : "");
}
static void launch(run *r, tarn_ptx_step *s) {
  const tarn_ptx_entry *e = tarn_ptx_entry_at(r->p->ptx, s->entry);
  char *param = TARN_ARRAY(r->cx, char, e->param_bytes + 8);
  for (uint32_t i = 0; i < s->narg; i++) {
    uint64_t at = of(r, &s->arg[i])->at + (uint64_t)s->arg[i].offset;
    memcpy(param + e->param[i].offset, &at, sizeof at);
  }
  tarn_ptx_launch l = {.entry = s->entry, .grid = {s->grid, 1, 1}, .block = {s->block, 1, 1}};
  l.param = param, l.shared = s->shared;
  tarn_ptx_run(r->d, &l, &s->counts);
  check_lookups(r, s);
}
static void call(run *r, const tarn_ptx_step *s, tarn_ptx_host *host, void *user) {
  tarn_ptx_program *p = r->p;
  void **buffer = TARN_ARRAY(r->cx, void *, p->nbuffer + 1);
  int64_t *written = TARN_ARRAY(r->cx, int64_t, p->nbuffer + 1);
  if (!host)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: kernel %s runs on the host", p->dir,
               tarn_shown(r->cx, s->kernel));
  for (uint32_t b = 0; b < p->nbuffer; b++)
    if (p->buffer[b].at != TARN_PTX_NOWHERE)
      buffer[b] = of(r, &p->buffer[b])->data + p->buffer[b].offset;
  host(user, s->kernel, buffer, written);
  for (uint32_t b = 0; b < p->nbuffer; b++)
    if (written[b])
      tarn_ptx_mark(r->d, of(r, &p->buffer[b])->at + (uint64_t)p->buffer[b].offset, written[b],
                    TARN_PTX_WRITTEN);
}
void tarn_ptx_program_run(tarn_ctx *cx, tarn_ptx_program *p, const tarn_tensor *const *in,
                          tarn_tensor *const *out, tarn_ptx_host *host, void *user) {
  run r = {.cx = cx, .p = p, .d = tarn_ptx_device_new(cx, p->ptx)};
  map_all(&r, in, out);
  for (uint32_t i = 0; i < p->nstep; i++) {
    tarn_ptx_step *s = &p->step[i];
    s->counts = (tarn_ptx_counts){0};
    if (s->does == TARN_PTX_LAUNCHES) launch(&r, s);
    else if (s->does == TARN_PTX_CALLS) call(&r, s, host, user);
    else
      memcpy(of(&r, &s->arg[1])->data, of(&r, &s->arg[0])->data + s->arg[0].offset,
             (size_t)s->bytes);
  }
}
