/* The folder of a program: memory.json, stream.bin, dram.bin. */
#include "hw/yajl.h"
#include "sim/internal.h"
#include <string.h>

typedef struct loading {
  tarn_ctx *cx;
  const char *dir, *file;
  tarn_sim_program *p;
  const tarn_sim_files *in;
} loading;

static int64_t read_integer(const loading *l, yajl_val in, const char *key) {
  return tarn_yajl_whole(l->cx, l->file, in, key, 0, INT64_MAX);
}
static const char *text(const loading *l, yajl_val in, const char *key) {
  return tarn_yajl_string(l->cx, l->file, in, key);
}

static void read_shape(loading *l, yajl_val v, tarn_sim_buffer *b) {
  yajl_val *dim;
  uint32_t n = tarn_yajl_list(l->cx, l->file, v, "shape", &dim);
  int64_t left = b->bytes;
  if (n > TARN_MAX_DIMS)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: buffer %s: more than %d dims", l->file, b->name,
               TARN_MAX_DIMS);
  b->array.n = n;
  for (uint32_t d = 0; d < n; d++) {
    int64_t extent = YAJL_IS_INTEGER(dim[d]) ? YAJL_GET_INTEGER(dim[d]) : 0;
    if (extent < 1 || left % extent)
      tarn_raise(l->cx, TARN_BAD_INPUT, "%s: buffer %s: its shape does not make %lld bytes",
                 l->file, b->name, (long long)b->bytes);
    b->array.dim[d] = extent, left /= extent;
  }
  if (left != (int64_t)tarn_dtype_size(b->array.dtype))
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: buffer %s: its shape does not make %lld bytes", l->file,
               b->name, (long long)b->bytes);
}
static tarn_sim_buffer read_buffer(loading *l, yajl_val v) {
  static const char *const roles[] = {"input", "output", "constant", "scratch"};
  tarn_sim_buffer b = {.name = text(l, v, "name"), .layout = text(l, v, "layout")};
  const char *role = text(l, v, "role"), *type = text(l, v, "type");
  uint32_t k = 0;
  while (k < 4 && strcmp(role, roles[k])) k++;
  if (k == 4)
    tarn_raise(l->cx, TARN_BAD_INPUT,
               "%s: buffer %s: role %s: input, output, constant or scratch is expected", l->file,
               tarn_shown(l->cx, b.name), tarn_shown(l->cx, role));
  b.role = (tarn_sim_role)k;
  b.base = read_integer(l, v, "base"), b.bytes = read_integer(l, v, "bytes");
  if (!tarn_dtype_parse(type, &b.array.dtype))
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: buffer %s: unknown type %s", l->file,
               tarn_shown(l->cx, b.name), tarn_shown(l->cx, type));
  if (b.base % 64)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: buffer %s: base %lld is no multiple of 64", l->file,
               b.name, (long long)b.base);
  if (b.bytes > l->p->size || b.base > l->p->size - b.bytes)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: buffer %s: %lld bytes from byte %lld, dram.bin has %lld",
               l->file, b.name, (long long)b.bytes, (long long)b.base, (long long)l->p->size);
  int64_t most = l->p->hw->buffer;
  if (most && b.bytes > most)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: buffer %s: %lld bytes, %s has buffers of %lld", l->file,
               b.name, (long long)b.bytes, l->p->hw->name, (long long)most);
  b.array.data = l->p->dram + b.base;
  read_shape(l, v, &b);
  return b;
}
static void read_buffers(loading *l, yajl_val tree) {
  yajl_val *item;
  uint32_t n = tarn_yajl_list(l->cx, l->file, tree, "buffers", &item);
  tarn_sim_program *p = l->p;
  p->buffer = TARN_ARRAY(l->cx, tarn_sim_buffer, n);
  for (uint32_t i = 0; i < n; i++) {
    tarn_sim_buffer b = read_buffer(l, item[i]);
    for (uint32_t k = 0; k < p->nbuffer; k++) {
      const tarn_sim_buffer *o = &p->buffer[k];
      if (!strcmp(o->name, b.name) || (b.base < o->base + o->bytes && o->base < b.base + b.bytes))
        tarn_raise(l->cx, TARN_BAD_INPUT, "%s: buffers %s and %s have one name or overlap", l->file,
                   o->name, b.name);
    }
    p->buffer[p->nbuffer++] = b;
  }
}

static void check_machine(loading *l) {
  const tarn_hw *hw = l->p->hw;
  if (!hw->ninstruction)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: %s has no instructions in its description", l->dir,
               hw->name);
  if (hw->nqueue > TARN_SIM_QUEUES || hw->ntoken > TARN_SIM_QUEUES * TARN_SIM_QUEUES)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: %s: more than %d queues are not simulated", l->dir,
               hw->name, TARN_SIM_QUEUES);
  if (hw->address_bits && l->p->size > (int64_t)1 << hw->address_bits)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s/dram.bin: %lld bytes, %s has addresses of %u bits",
               l->dir, (long long)l->p->size, hw->name, hw->address_bits);
}
static void read_stream(loading *l, yajl_val tree) {
  tarn_sim_program *p = l->p;
  int64_t entry = read_integer(l, tree, "entry"), count = read_integer(l, tree, "instructions");
  int64_t each = p->hw->format[p->hw->instruction[0].format].bits / 8;
  size_t n = l->in->nstream;
  if (count < 1 || count > (int64_t)n / each || entry != (int64_t)n - count * each)
    tarn_raise(l->cx, TARN_BAD_INPUT,
               "%s/stream.bin: %zu bytes, memory.json has %lld instructions of %lld bytes from "
               "byte %lld",
               l->dir, n, (long long)count, (long long)each, (long long)entry);
  if (count > UINT32_MAX / 2)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s/stream.bin: %lld instructions are too many", l->dir,
               (long long)count);
  p->stream = (const uint8_t *)l->in->stream + entry, p->count = (uint32_t)count;
}
/* Consecutive, of all instructions; none named: one. */
static void read_segments(loading *l, yajl_val tree) {
  tarn_sim_program *p = l->p;
  yajl_val *item;
  int64_t first = 0;
  if (!tarn_yajl_has(tree, "segments")) return;
  uint32_t n = tarn_yajl_list(l->cx, l->file, tree, "segments", &item);
  tarn_sim_segment *all = TARN_ARRAY(l->cx, tarn_sim_segment, n);
  for (uint32_t i = 0; i < n; i++) {
    yajl_val v = item[i];
    int64_t count = read_integer(l, v, "instructions");
    const char *name = text(l, v, "name");
    if (count < 1 || count > p->count - first)
      tarn_raise(l->cx, TARN_BAD_INPUT, "%s: segment %s: instructions %lld to %lld of %u", l->file,
                 tarn_shown(l->cx, name), (long long)first, (long long)first + (long long)count - 1,
                 p->count);
    all[i] = (tarn_sim_segment){name, (uint32_t)first, (uint32_t)count};
    first += count;
  }
  if (first != p->count)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: the segments have %lld instructions, the program has %u",
               l->file, (long long)first, p->count);
  p->segment = all, p->nsegment = n;
}
/* Where a kernel keeps its tiles; may be left out. */
static void read_places(loading *l, yajl_val v, tarn_sim_kernel *k) {
  const tarn_hw *hw = l->p->hw;
  yajl_val *item;
  if (!tarn_yajl_has(v, "places")) return;
  uint32_t n = tarn_yajl_list(l->cx, l->file, v, "places", &item);
  tarn_sim_place *all = TARN_ARRAY(l->cx, tarn_sim_place, n);
  for (uint32_t i = 0; i < n; i++) {
    yajl_val x = item[i];
    const char *memory = text(l, x, "memory");
    tarn_sim_place p = {.name = text(l, x, "name"), .first = read_integer(l, x, "first")};
    p.entries = read_integer(l, x, "entries"), p.slots = read_integer(l, x, "slots");
    while (p.memory + 1 < hw->nmem && strcmp(hw->mem[p.memory].name, memory)) p.memory++;
    if (p.memory + 1 >= hw->nmem)
      tarn_raise(l->cx, TARN_BAD_INPUT, "%s: kernel %s: %s has no memory %s beside main memory",
                 l->file, tarn_shown(l->cx, k->name), hw->name, tarn_shown(l->cx, memory));
    all[i] = p;
  }
  k->place = all, k->nplace = n;
  const char *fault = sim_places_fault(l->cx, hw, k);
  if (fault)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: kernel %s: %s", l->file, tarn_shown(l->cx, k->name),
               fault);
}
/* Parts of the stream with names; ascending, apart. */
static void read_kernels(loading *l, yajl_val tree) {
  tarn_sim_program *p = l->p;
  yajl_val *item;
  int64_t end = 0;
  if (!tarn_yajl_has(tree, "kernels")) return;
  uint32_t n = tarn_yajl_list(l->cx, l->file, tree, "kernels", &item);
  tarn_sim_kernel *all = TARN_ARRAY(l->cx, tarn_sim_kernel, n);
  for (uint32_t i = 0; i < n; i++) {
    yajl_val v = item[i];
    int64_t first = read_integer(l, v, "first"), count = read_integer(l, v, "count");
    const char *name = text(l, v, "name");
    if (first < end || count < 1 || first > p->count || count > p->count - first)
      tarn_raise(
          l->cx, TARN_BAD_INPUT,
          "%s: kernel %s: %lld instructions from %lld on, of %u; those before it end at %lld",
          l->file, tarn_shown(l->cx, name), (long long)count, (long long)first, p->count,
          (long long)end);
    all[i] = (tarn_sim_kernel){.name = name, .first = (uint32_t)first, .count = (uint32_t)count};
    read_places(l, v, &all[i]);
    end = first + count;
  }
  p->kernel = all, p->nkernel = n;
}
static void check_length(loading *l) {
  const tarn_sim_program *p = l->p;
  for (uint32_t i = 0; i < tarn_sim_segments(p); i++) {
    uint32_t count = p->nsegment ? p->segment[i].count : p->count;
    if (p->hw->instructions && count > p->hw->instructions)
      tarn_raise(l->cx, TARN_BAD_INPUT, "%s/stream.bin: %u instructions, %s has at most %lld",
                 l->dir, count, p->hw->name, (long long)p->hw->instructions);
  }
}
static void read_image(loading *l) {
  size_t n = l->in->ndram;
  l->p->dram = tarn_new_aligned(l->cx, n + 64, 64);
  memset(l->p->dram + n, 0, 64);
  memcpy(l->p->dram, l->in->dram, n);
  l->p->size = (int64_t)n;
}

tarn_sim_program *tarn_sim_read(tarn_lang *L, const tarn_sim_files *files, const char *hw) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  loading l = {.cx = cx, .dir = files->dir, .in = files};
  l.file = tarn_format(cx, "%s/memory.json", files->dir);
  l.p = TARN_NEW(cx, tarn_sim_program);
  yajl_val tree = tarn_yajl_parse(cx, l.file, files->memory, files->nmemory);
  const char *named = text(&l, tree, "hw");
  if (strpbrk(named, "./") && *named != '/') named = tarn_format(cx, "%s/%s", l.dir, named);
  l.p->dir = l.dir;
  l.p->hw = tarn_hw_load(L, hw ? hw : named);
  read_image(&l), check_machine(&l), read_stream(&l, tree), read_buffers(&l, tree);
  read_segments(&l, tree), read_kernels(&l, tree), check_length(&l);
  return l.p;
}
tarn_sim_program *tarn_sim_load(tarn_lang *L, const char *dir, const char *hw) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_sim_files f = {.dir = dir};
  f.memory = tarn_read_file(cx, tarn_format(cx, "%s/memory.json", dir), &f.nmemory);
  f.stream = tarn_read_file(cx, tarn_format(cx, "%s/stream.bin", dir), &f.nstream);
  f.dram = tarn_read_file(cx, tarn_format(cx, "%s/dram.bin", dir), &f.ndram);
  return tarn_sim_read(L, &f, hw);
}
