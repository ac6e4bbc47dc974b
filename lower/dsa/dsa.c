/* The folder of a program for an accelerator. */
#include "lower/dsa/dsa.h"
#include "base/json.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct segment {
  uint32_t kernel; /* its first */
  uint32_t instructions;
} segment;
typedef struct program {
  const tarn_kprog *p;
  const tarn_lower_options *o;
  tarn_ctx *cx;
  dsa_image image;
  dsa_stream *s;
  TARN_VEC(segment) segment;
  uint32_t *first; /* instruction of each kernel; TARN_NONE: the host's */
  uint32_t *count;
} program;

static bool on_device(const program *g, uint32_t k) {
  return k < g->p->nker && g->p->machines.hw[g->p->ker[k].machine] == g->image.hw;
}

/* ---------------------------------------------------------------- the stream */
static void emit_stream(program *g) {
  dsa_emitter e = {.image = &g->image, .hw = g->image.hw};
  g->s = dsa_stream_new(g->cx, g->image.hw, g->image.port_base + g->image.port_bytes);
  e.s = g->s;
  for (uint32_t k = 0; k < g->p->nker; k++) {
    g->first[k] = TARN_NONE;
    if (!on_device(g, k)) continue;
    if (!k || !on_device(g, k - 1)) {
      dsa_segment(g->s);
      dsa_begin(&e);
      tarn_push(g->cx, &g->segment, ((segment){.kernel = k}));
    }
    g->first[k] = g->s->x.n;
    dsa_kernel(&e, k);
    g->count[k] = g->s->x.n - g->first[k];
    if (on_device(g, k + 1)) continue;
    dsa_end(g->s);
    g->segment.p[g->segment.n - 1].instructions = g->s->x.n - g->s->first;
  }
}
static int64_t base_of(const program *g, dsa_part part) {
  const dsa_image *m = &g->image;
  int64_t base = m->port_base + m->port_bytes;
  if (part == DSA_MICRO) base += tarn_round_up((int64_t)m->constants.n, m->align);
  return base;
}
/* Places of constants and micro-ops, now that their sizes are known. */
static void fix_up(program *g) {
  for (uint32_t i = 0; i < g->image.fixup.n; i++) {
    const dsa_fixup *f = &g->image.fixup.p[i];
    dsa_instruction *x = &g->s->x.p[f->instruction];
    x->field[f->field] += base_of(g, f->part) / f->entry;
  }
}

/* ---------------------------------------------------------------- memory.json, dram.bin */
static void buffer(tarn_json *j, const char *name, const char *role, int64_t base, int64_t bytes,
                   tarn_dtype type, uint32_t n, const int64_t *dim, const char *layout) {
  tarn_json_open(j, NULL, '{');
  tarn_json_put(j, "name", name, "role", role, "base", base, "bytes", bytes, "type",
                tarn_dtype_name(type));
  tarn_json_open(j, "shape", '[');
  for (uint32_t i = 0; i < n; i++) tarn_json_int(j, NULL, dim[i]);
  tarn_json_close(j, ']');
  tarn_json_str(j, "layout", layout);
  tarn_json_close(j, '}');
}
static void bytes_buffer(tarn_json *j, const char *name, const char *role, int64_t base,
                         int64_t bytes) {
  if (bytes) buffer(j, name, role, base, bytes, TARN_U8, 1, &bytes, "bytes");
}
static void ports(const program *g, tarn_json *j) {
  for (uint32_t b = 0; b < g->p->nbuf; b++) {
    const tarn_buffer *x = &g->p->buf[b];
    if (g->image.port[b] < 0) continue;
    buffer(j, x->name, x->kind == TARN_BUF_INPUT ? "input" : "output", dsa_storage(&g->image, b),
           tarn_buffer_bytes(x), x->dtype, x->layout.n, x->layout.dim, "row-major");
  }
}
static void write_memory(program *g) {
  tarn_json *j = tarn_json_new(g->cx, 1);
  size_t n;
  tarn_json_put(j, "hw", "machine.hw", "entry", 0, "instructions", g->s->x.n);
  tarn_json_open(j, "segments", '[');
  for (uint32_t i = 0; i < g->segment.n; i++)
    tarn_json_object(j, NULL, "name", g->p->ker[g->segment.p[i].kernel].name, "instructions",
                     g->segment.p[i].instructions);
  tarn_json_close(j, ']');
  tarn_json_open(j, "kernels", '[');
  for (uint32_t k = 0; k < g->p->nker; k++) {
    if (g->first[k] == TARN_NONE) continue;
    tarn_json_open(j, NULL, '{');
    tarn_json_put(j, "name", g->p->ker[k].name, "first", g->first[k], "count", g->count[k]);
    tarn_json_open(j, "places", '[');
    dsa_places(&g->image, k, j);
    tarn_json_close(j, ']');
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  tarn_json_open(j, "buffers", '[');
  bytes_buffer(j, "workspace", "scratch", 0, g->image.plan->bytes);
  ports(g, j);
  bytes_buffer(j, "constants", "constant", base_of(g, DSA_CONSTANTS),
               (int64_t)g->image.constants.n);
  bytes_buffer(j, "micro-ops", "constant", base_of(g, DSA_MICRO), (int64_t)g->image.micro.n);
  tarn_json_close(j, ']');
  const char *text = tarn_json_text(j, &n);
  tarn_write_file(g->cx, tarn_format(g->cx, "%s/memory.json", g->o->dir), text, n);
}
static void write_image(program *g) {
  const dsa_image *m = &g->image;
  int64_t size = base_of(g, DSA_MICRO) + (int64_t)m->micro.n;
  char *image = tarn_new(g->cx, (size_t)size + 1);
  if (m->hw->buffer && size > m->hw->buffer)
    tarn_raise(g->cx, TARN_BAD_INPUT, "%s: %lld bytes of main memory, its limit is %lld",
               m->hw->name, (long long)size, (long long)m->hw->buffer);
  memcpy(image + base_of(g, DSA_CONSTANTS), m->constants.p ? m->constants.p : "", m->constants.n);
  memcpy(image + base_of(g, DSA_MICRO), m->micro.p ? m->micro.p : "", m->micro.n);
  tarn_write_file(g->cx, tarn_format(g->cx, "%s/dram.bin", g->o->dir), image, (size_t)size);
}
/* A description as a file of the folder. A host that is a file itself comes beside it. */
static void write_machine(program *g, const tarn_hw *hw, const char *name) {
  tarn_sx *s = tarn_copy(g->cx, hw->source, sizeof *s);
  const char *host = tarn_format(g->cx, "host-%s", name);
  tarn_buf b = {.cx = g->cx};
  s->kid = tarn_copy(g->cx, s->kid, s->n * sizeof *s->kid);
  for (uint32_t i = 0; i < s->n; i++) {
    if (!tarn_sx_is(s->kid[i], "host") || !strpbrk(s->kid[i]->kid[1]->text, "./")) continue;
    s->kid[i] = tarn_copy(g->cx, s->kid[i], sizeof *s);
    s->kid[i]->kid = tarn_copy(g->cx, s->kid[i]->kid, 2 * sizeof *s->kid);
    s->kid[i]->kid[1] = tarn_copy(g->cx, s->kid[i]->kid[1], sizeof *s);
    s->kid[i]->kid[1]->text = host;
    s->kid[i]->kid[1]->len = strlen(host);
    write_machine(g, hw->host, host);
  }
  tarn_sx_print(&b, s, 100);
  tarn_write_file(g->cx, tarn_format(g->cx, "%s/%s", g->o->dir, name), b.p, b.n);
}
static void write_stream(program *g) {
  tarn_buf bits = {.cx = g->cx};
  tarn_buf text = {.cx = g->cx};
  dsa_encode(g->s, &bits);
  dsa_text(g->s, &text);
  tarn_write_file(g->cx, tarn_format(g->cx, "%s/stream.bin", g->o->dir), bits.p, bits.n);
  tarn_write_file(g->cx, tarn_format(g->cx, "%s/stream.txt", g->o->dir), text.p, text.n);
  write_machine(g, g->image.hw, "machine.hw");
}

/* ---------------------------------------------------------------- the host */
/* The host's program: kernels of the device are segments that it starts. */
static void emit_host(const program *g) {
  tarn_kprog host = *g->p;
  tarn_kernel *k = tarn_copy(g->cx, g->p->ker, g->p->nker * sizeof *k);
  uint32_t s = 0;
  host.ker = k;
  for (uint32_t i = 0; i < host.nker; i++) {
    if (!on_device(g, i)) continue;
    k[i].kind = TARN_K_DEVICE;
    k[i].payload = TARN_NONE; /* it runs with the first of its segment */
    if (s < g->segment.n && g->segment.p[s].kernel == i) k[i].payload = s++;
  }
  tarn_lower_options o = *g->o;
  o.emit = TARN_EMIT_SO | TARN_EMIT_O;
  o.header = dsa_relocation(g->s, o.name);
  if (o.here) {
    const char *from = tarn_format(g->cx, "%s/model.so", o.dir);
    host.hw = o.here;
    for (uint32_t i = 0; i < host.nker; i++) k[i].plan = NULL;
    tarn_kprog_plan(tarn_planner_new(g->p->L, o.contract, o.here), &host);
    tarn_lower_cpu(&host, g->image.plan, &o);
    if (!access(from, F_OK) && rename(from, tarn_format(g->cx, "%s/here.so", o.dir)))
      tarn_raise(g->cx, TARN_IO, "%s: %s", from, strerror(errno));
  }
  host.hw = g->p->machines.hw[0];
  for (uint32_t i = 0; i < host.nker; i++) k[i].plan = g->p->ker[i].plan;
  tarn_lower_cpu(&host, g->image.plan, &o);
}

void tarn_lower_dsa(const tarn_kprog *p, const tarn_memory_plan *plan,
                    const tarn_lower_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  program g = {.p = p, .o = o, .cx = cx};
  if (p->machines.n < 2)
    tarn_raise(cx, TARN_BAD_INPUT, "%s hangs on no host: programs need one", p->hw->name);
  if (!p->hw->ninstruction)
    tarn_raise(cx, TARN_BAD_INPUT, "%s describes no instructions: none can be emitted",
               p->hw->name);
  dsa_image_open(&g.image, p, plan, p->hw);
  g.first = TARN_ARRAY(cx, uint32_t, p->nker + 1);
  g.count = TARN_ARRAY(cx, uint32_t, p->nker + 1);
  emit_stream(&g);
  fix_up(&g);
  write_stream(&g);
  write_image(&g);
  write_memory(&g);
  emit_host(&g);
}
