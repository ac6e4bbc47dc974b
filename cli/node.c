/* Folders that were compiled for WebAssembly. A process of node loads model.mjs; tensors go to it
 * and back through files. */
#include "cli/node.h"
#include "base/child.h"
#include <string.h>
#include <unistd.h>

extern const tarn_embedded cli_node_js[];

bool cli_is_wasm(tarn_ctx *cx, const char *dir) {
  return !access(tarn_format(cx, "%s/model.wasm", dir), F_OK);
}

/* [[inputs' dims], [outputs' dims]] */
static const char *dims_text(tarn_ctx *cx, const tarn_program *p) {
  tarn_buf b = {.cx = cx};
  for (int out = 0; out < 2; out++) {
    const tarn_port *port;
    uint32_t n = cli_ports(p, out, &port);
    tarn_buf_str(&b, out ? "],[" : "[[");
    for (uint32_t i = 0; i < n; i++) {
      tarn_buf_str(&b, i ? ",[" : "[");
      for (uint32_t d = 0; d < port[i].n; d++)
        tarn_buf_fmt(&b, "%s%lld", d ? "," : "", (long long)port[i].dim[d]);
      tarn_buf_str(&b, "]");
    }
  }
  tarn_buf_str(&b, "]]");
  return b.p;
}
static size_t bytes_of(const tarn_tensor *t) {
  return (size_t)tarn_tensor_count(t) * tarn_dtype_size(t->dtype);
}
static tarn_tensor **read_outputs(tarn_ctx *cx, const tarn_program *p, const char *path) {
  const tarn_port *port;
  uint32_t n = cli_ports(p, true, &port);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, n + 1);
  size_t have, at = 0;
  const char *got = tarn_read_file(cx, path, &have);
  for (uint32_t i = 0; i < n; i++) {
    out[i] = tarn_tensor_new(cx, port[i].dtype, port[i].n, port[i].dim);
    if (at + bytes_of(out[i]) > have) tarn_raise(cx, TARN_INTERNAL, "node: outputs are missing");
    memcpy(out[i]->data, got + at, bytes_of(out[i]));
    at += bytes_of(out[i]);
  }
  return out;
}
tarn_tensor **cli_node_run(tarn_ctx *cx, const char *dir, const tarn_program *p,
                           tarn_tensor *const *in) {
  static const char *const names[] = {"node", "nodejs"};
  const char *scratch = cli_scratch_folder(cx, dir);
  const char *given = tarn_format(cx, "%s/given", scratch),
             *got = tarn_format(cx, "%s/got", scratch);
  tarn_buf b = {.cx = cx};
  tarn_child child;
  tarn_buf_str(&b, "");
  for (uint32_t i = 0; i < p->nin; i++) tarn_buf_add(&b, in[i]->data, bytes_of(in[i]));
  tarn_write_file(cx, given, b.p, b.n);
  const char *argv[] = {"node", "-e", cli_node_js[0].text, dir, given, got, dims_text(cx, p), NULL};
  if (!tarn_child_run(cx, names, 2, argv, &child))
    tarn_raise(cx, TARN_IO, "%s: node, which runs WebAssembly, is not installed", dir);
  child.text[strcspn(child.text, "\n")] = 0;
  if (!child.ok) tarn_raise(cx, TARN_BAD_INPUT, "%s: in node: %s", dir, child.text);
  return read_outputs(cx, p, got);
}
