/* Files that are no model we read: known by their first bytes, and named.
 *
 * Sources: the formats' own specifications, as each row says; for zip files the name of the first
 * entry, which begins 30 bytes into the file (APPNOTE.TXT 4.3.7). */
#include "model/import.h"
#include <string.h>

typedef struct signature {
  uint8_t at, n;
  const char *bytes;
  const char *what, *advice;
} signature;
#define BYTES(s) (sizeof(s) - 1), s
#define TO_ONNX  "convert it to ONNX"
static const signature signatures[] = {
    {4, BYTES("TFL3"), "a model of TensorFlow Lite", TO_ONNX " (tf2onnx --tflite)"},
    {4, BYTES("ORTM"), "a model in ONNX Runtime's own format",
     "give the ONNX file that it was made from"},
    {0, BYTES("\x93NUMPY"), "one tensor of NumPy", "give it to a model's input, -i NAME=FILE"},
    {0, BYTES("\x89HDF\r\n\x1a\n"), "HDF5, a model of Keras perhaps", TO_ONNX " (tf2onnx)"},
    {0, BYTES("ML\xefR"), "MLIR in its binary form", "give the ONNX file that it was made from"},
    {0, BYTES("\x80\x02"), "a pickle of Python, weights of PyTorch perhaps",
     "export the module (torch.onnx.export)"},
    {0, BYTES("\x80\x04"), "a pickle of Python", "export the module (torch.onnx.export)"},
    {0, BYTES("\x89PNG\r\n\x1a\n"), "a picture", "give it to a model's input, -i NAME=FILE"},
    {0, BYTES("\xff\xd8\xff"), "a picture", "convert it to PNG or PNM for -i NAME=FILE"},
    {0, BYTES("ggjt"), "weights of ggml before GGUF", "convert them to GGUF (llama.cpp)"},
    {0, BYTES("tjgg"), "weights of ggml before GGUF", "convert them to GGUF (llama.cpp)"},
    {0, BYTES("lmgg"), "weights of ggml before GGUF", "convert them to GGUF (llama.cpp)"},
    {0, BYTES("version https://git-lfs"), "a pointer of Git LFS and not the file itself",
     "run git lfs pull"},
    {0, BYTES("\x1f\x8b"), "compressed by gzip", "unpack it first"},
    {0,
     BYTES("\xfd"
           "7zXZ"),
     "compressed by xz", "unpack it first"},
    {0, BYTES("\x28\xb5\x2f\xfd"), "compressed by zstd", "unpack it first"},
    {0,
     BYTES("\x7f"
           "ELF"),
     "a compiled program or library", "give the model itself"},
    {0, BYTES("7767517\n"), "a model of ncnn", TO_ONNX},
};

/* ---- zip files, by the name of the first entry ---- */
static const struct {
  const char *ending, *what, *advice;
} entries[] = {
    {".npy", "an archive of NumPy's tensors", "give them to a model's inputs, -i FILE"},
    {"data.pkl", "a file of PyTorch", "export the module (torch.onnx.export)"},
    {"/version", "a file of PyTorch", "export the module (torch.onnx.export)"},
    {"archive_format", "an exported program of PyTorch", "export it as ONNX (torch.onnx.export)"},
    {"metadata.json", "a model of Keras", TO_ONNX " (tf2onnx)"},
    {"config.json", "a model of Keras", TO_ONNX " (tf2onnx)"},
    {"", "a zip file", "unpack it first"},
};
static bool ends(const uint8_t *s, size_t n, const char *with) {
  size_t k = strlen(with);
  return n >= k && memcmp(s + n - k, with, k) == 0;
}
static bool find_zip(const uint8_t *p, size_t n, signature *to) {
  if (n < 30 || memcmp(p, "PK\3\4", 4) != 0) return false;
  size_t name = (size_t)p[26] | (size_t)p[27] << 8, i = 0;
  if (name > n - 30) name = n - 30;
  while (!ends(p + 30, name, entries[i].ending)) i++;
  to->what = entries[i].what, to->advice = entries[i].advice;
  return true;
}

/* ---- those without a signature ---- */
/* A head of JSON behind its length in 8 bytes. */
static bool is_safetensors(const uint8_t *p, size_t n) {
  uint64_t head = 0;
  for (int i = 7; n > 9 && i >= 0; i--) head = head << 8 | p[i];
  return head > 1 && head <= n - 8 && p[8] == '{';
}
/* SavedModel: schema version 1, then a graph, which begins with what is said of it (MetaInfoDef);
 * an ONNX file has a text there. Source: tensorflow/core/protobuf/saved_model.proto. */
static bool is_saved_model(const uint8_t *p, size_t n) {
  size_t at = 3;
  if (n < 16 || p[0] != 0x08 || p[1] != 0x01 || p[2] != 0x12) return false;
  while (at < 8 && p[at] & 0x80) at++;
  return p[at + 1] == 0x0a;
}
/* GraphDef: nodes that begin with their name, then their operator; graph.proto. */
static bool is_graph_def(const uint8_t *p, size_t n) {
  if (n < 16 || p[0] != 0x0a) return false;
  size_t at = 1;
  while (at < 4 && p[at] & 0x80) at++;
  if (p[at + 1] != 0x0a) return false;
  size_t op = at + 3 + p[at + 2];
  return op < n && p[op] == 0x12;
}
/* The first words that are no remark. */
static bool begins(const uint8_t *p, size_t n, const char *const *word) {
  size_t at = 0;
  for (;;) {
    while (at < n && (p[at] == ' ' || p[at] == '\n' || p[at] == '\r' || p[at] == '\t')) at++;
    if (at + 1 >= n || p[at] != '/' || p[at + 1] != '/') break;
    while (at < n && p[at] != '\n') at++;
  }
  for (; *word; word++)
    if (n - at >= strlen(*word) && memcmp(p + at, *word, strlen(*word)) == 0) return true;
  return false;
}
static bool is_mlir(const uint8_t *p, size_t n) {
  static const char *const words[] = {"module {",   "module @",           "module attributes",
                                      "func.func ", "builtin.module",     "#map",
                                      "#loc",       "\"builtin.module\"", NULL};
  return begins(p, n, words);
}
static bool is_xml(const uint8_t *p, size_t n) {
  static const char *const words[] = {"<?xml", "<net ", NULL};
  return begins(p, n, words);
}
static bool is_html(const uint8_t *p, size_t n) {
  static const char *const words[] = {"<!DOCTYPE html", "<!doctype html", "<html", NULL};
  return begins(p, n, words);
}
static bool is_json(const uint8_t *p, size_t n) {
  static const char *const words[] = {"{\"", "{\n", "{ ", NULL};
  return begins(p, n, words);
}
static const struct {
  bool (*is)(const uint8_t *p, size_t n);
  const char *what, *advice;
} kinds[] = {
    {is_safetensors, "weights in safetensors, and no graph that computes with them",
     "give the ONNX model whose external data they are, or a GGUF file"},
    {is_saved_model, "a SavedModel of TensorFlow", TO_ONNX " (tf2onnx --saved-model)"},
    {is_graph_def, "a graph of TensorFlow", TO_ONNX " (tf2onnx --graphdef)"},
    {is_mlir, "MLIR as text", "give the ONNX file that it was made from"},
    {is_html, "a page for a browser, perhaps instead of a file that was to be downloaded",
     "give the model itself"},
    {is_xml, "XML, a model of OpenVINO perhaps", "give the ONNX file that it was made from"},
    {is_json, "JSON", "give the model itself"},
};

static bool find(const uint8_t *p, size_t n, signature *to) {
  for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
    const signature *s = &signatures[i];
    if (n < (size_t)s->at + s->n || memcmp(p + s->at, s->bytes, s->n) != 0) continue;
    *to = *s;
    return true;
  }
  if (find_zip(p, n, to)) return true;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!kinds[i].is(p, n)) continue;
    to->what = kinds[i].what, to->advice = kinds[i].advice;
    return true;
  }
  return false;
}
void im_refuse_format(tarn_ctx *cx, const void *bytes, size_t n, const char *name) {
  signature s;
  if (n == 0) tarn_raise(cx, TARN_BAD_INPUT, "%s: the file is empty", name);
  if (find(bytes, n, &s))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: not ONNX or GGUF but %s: %s", name, s.what, s.advice);
}
