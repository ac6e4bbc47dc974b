/* A WebAssembly module and what a page or node needs to run it: model.mjs, which is a description
 * of the tensors before web.js, and its types. */
#include "lower/internal.h"
#include <string.h>

extern const tarn_embedded low_web_js[];

/* ---- the description ---- */
static const char *const view[TARN_DTYPES] = {
    [TARN_F32] = "Float32Array", [TARN_F64] = "Float64Array",  [TARN_F16] = "Uint16Array",
    [TARN_BF16] = "Uint16Array", [TARN_I8] = "Int8Array",      [TARN_U8] = "Uint8Array",
    [TARN_I16] = "Int16Array",   [TARN_U16] = "Uint16Array",   [TARN_I32] = "Int32Array",
    [TARN_U32] = "Uint32Array",  [TARN_I64] = "BigInt64Array", [TARN_U64] = "BigUint64Array",
    [TARN_BOOL] = "Uint8Array"};

/* Of an input that lies in an output: the rows that there is room for. */
static void port(tarn_buf *b, const tarn_kprog *p, bool out, uint32_t i) {
  tarn_in_place x;
  bool pair = tarn_kprog_in_place(p, out, i, &x);
  const tarn_buffer *own = &p->buf[out ? p->out[i] : p->in[i]],
                    *lies = pair ? &p->buf[p->out[x.out]] : own;
  tarn_buf_str(b, "    { name: \"");
  if (own->name) tarn_buf_as(b, TARN_AS_JSON, own->name, strlen(own->name));
  tarn_buf_fmt(b, "\", type: \"%s\", dims: [", tarn_dtype_name(own->dtype));
  for (uint32_t d = 0; d < own->layout.n; d++) {
    bool rows = pair && d == x.axis;
    tarn_buf_fmt(b, "%s%lld", d ? ", " : "", (long long)(rows ? x.rows : own->layout.dim[d]));
  }
  tarn_buf_fmt(b, "], bytes: %lld", (long long)tarn_buffer_bytes(lies));
  if (pair && !out) tarn_buf_fmt(b, ", inside: %u", x.out);
  tarn_buf_str(b, " },\n");
}
static void ports(tarn_buf *b, const tarn_kprog *p, bool out) {
  tarn_buf_fmt(b, "  %s: [\n", out ? "outputs" : "inputs");
  for (uint32_t i = 0; i < (out ? p->nout : p->nin); i++) port(b, p, out, i);
  tarn_buf_str(b, "  ],\n");
}
static void write_script(low_module *M, const tarn_kprog *p, int64_t constants) {
  tarn_buf b = {.cx = M->cx};
  tarn_buf_str(&b, "// A model compiled by tarn for ");
  tarn_buf_as(&b, TARN_AS_C, M->hw->name, strlen(M->hw->name));
  tarn_buf_fmt(&b, ".\nconst description = {\n  prefix: \"%s\",\n  constants: %lld,\n", M->o->name,
               (long long)constants);
  ports(&b, p, false), ports(&b, p, true);
  tarn_buf_str(&b, "};\n\n");
  tarn_buf_str(&b, low_web_js[0].text);
  tarn_write_file(M->cx, low_path(M, "mjs"), b.p, b.n);
  low_wrote(M, "mjs");
}

/* ---- types ---- */
static void tuple(tarn_buf *b, const tarn_kprog *p, bool out, const char *format) {
  for (uint32_t i = 0; i < (out ? p->nout : p->nin); i++) {
    tarn_buf_str(b, i ? ", " : "");
    tarn_buf_fmt(b, "%s<%s>", format, view[p->buf[out ? p->out[i] : p->in[i]].dtype]);
  }
}
static void write_types(low_module *M, const tarn_kprog *p) {
  static const char head[] =
      "/** A tensor in the module's memory, row-major. f16, bf16: their bits. */\n"
      "export interface Port<View> {\n"
      "  readonly name: string;\n"
      "  readonly type: string;\n"
      "  readonly dims: readonly number[];\n"
      "  readonly bytes: number;\n"
      "  /** The output that this input lies in: both have one memory. */\n"
      "  readonly inside?: number;\n"
      "  readonly data: View;\n"
      "}\n"
      "export interface Model {\n";
  tarn_buf b = {.cx = M->cx};
  tarn_buf_str(&b, head);
  tarn_buf_str(&b, "  readonly inputs: readonly [");
  tuple(&b, p, false, "Port");
  tarn_buf_str(&b, "];\n  readonly outputs: readonly [");
  tuple(&b, p, true, "Port");
  tarn_buf_str(&b, "];\n  /** Copies what is given to the first inputs, and computes. The outputs "
                   "are the model's own: the next run changes them. */\n  run(");
  for (uint32_t i = 0; i < p->nin; i++) {
    tarn_dtype t = p->buf[p->in[i]].dtype;
    tarn_buf_fmt(&b, "%sx%u?: ArrayLike<%s>", i ? ", " : "", i,
                 t == TARN_I64 || t == TARN_U64 ? "bigint" : "number");
  }
  tarn_buf_str(&b, "): readonly [");
  for (uint32_t i = 0; i < p->nout; i++)
    tarn_buf_fmt(&b, "%s%s", i ? ", " : "", view[p->buf[p->out[i]].dtype]);
  tarn_buf_str(&b, "];\n}\n"
                   "/** An address is relative to model.mjs. weights: where the constants lie in a "
                   "file of their own. */\n"
                   "export function load(\n"
                   "  source?: string | URL | BufferSource | WebAssembly.Module,\n"
                   "  weights?: string | URL | ArrayBuffer | Uint8Array,\n"
                   "): Promise<Model>;\n");
  tarn_write_file(M->cx, low_path(M, "d.mts"), b.p, b.n);
  low_wrote(M, "d.mts");
}

void low_web(low_module *M, const tarn_lower_sizes *s) {
  const tarn_kprog *p = s->program[0].p;
  if (M->pooled)
    tarn_raise(M->cx, TARN_BAD_INPUT,
               "%s: the model has operators that run in libtarn-rt, which is not part of a "
               "WebAssembly module",
               M->hw->name);
  if (!low_link_wasm(M)) return;
  low_wrote(M, "wasm");
  write_script(M, p, M->place == LOW_APART ? s->program[0].plan->const_bytes : 0);
  write_types(M, p);
}
