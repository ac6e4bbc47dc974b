/* Options of a compile: from a dictionary of Python's to the library's. */
#include "run.h"
#include <string.h>

static PyObject *word(PyObject *words, const char *key) { /* borrowed; NULL: not given */
  PyObject *v = PyDict_GetItemString(words, key);
  return v == Py_None ? NULL : v;
}
static bool text(PyObject *words, const char *key, const char **out) {
  PyObject *v = word(words, key);
  if (v) *out = PyUnicode_AsUTF8AndSize(v, NULL);
  return !v || *out;
}
static bool take_integer(PyObject *words, const char *key, uint64_t most, uint64_t *out) {
  PyObject *v = word(words, key);
  if (v) *out = PyLong_AsUnsignedLongLong(v);
  if (v && !PyErr_Occurred() && *out > most)
    PyErr_Format(PyExc_OverflowError, "%s: the number is too large", key);
  return !PyErr_Occurred();
}
static bool real(PyObject *words, const char *key, double *out) {
  PyObject *v = word(words, key);
  if (v) *out = PyFloat_AsDouble(v);
  return !PyErr_Occurred();
}
static bool truth(PyObject *words, const char *key, bool *out) {
  PyObject *v = word(words, key);
  int is = v ? PyObject_IsTrue(v) : 0;
  *out = is > 0;
  return is >= 0;
}
/* A list of texts. */
static bool list(PyObject *words, const char *key, tarn_texts *out) {
  PyObject *v = word(words, key);
  Py_ssize_t n = v ? PyList_Size(v) : 0;
  if (n < 0) return false;
  const char **p = PyMem_Calloc((size_t)n + 1, sizeof *p);
  if (!p) return PyErr_NoMemory() != NULL;
  *out = (tarn_texts){(uint32_t)n, p};
  for (Py_ssize_t i = 0; i < n; i++) {
    p[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(v, i), NULL);
    if (!p[i]) return false;
  }
  return true;
}
static bool numerics(PyObject *words, tarn_compile_options *o) {
  const char *name = NULL;
  if (!text(words, "numerics", &name)) return false;
  if (!name || tarn_rule_class_parse(name, &o->numerics)) return true;
  PyErr_Format(PyExc_ValueError, "numerics: exact, reassoc or approx is expected, not %s", name);
  return false;
}
static bool numbers(PyObject *words, tarn_compile_options *o) {
  uint64_t threads = 0, iters = 0;
  bool read = take_integer(words, "threads", 1024, &threads) &&
              take_integer(words, "iterations", UINT32_MAX, &iters) &&
              take_integer(words, "nodes", UINT64_MAX, &o->nodes) &&
              real(words, "rtol", &o->rtol) && real(words, "seconds", &o->seconds);
  o->threads = (uint32_t)threads;
  o->iters = (uint32_t)iters;
  return read;
}
static bool caches(PyObject *words, tarn_compile_options *o) {
  uint64_t rows = 0;
  bool read =
      list(words, "caches", &o->caches) && take_integer(words, "cache_rows", INT64_MAX, &rows);
  o->cache_rows = (int64_t)rows;
  return read;
}
static bool source(PyObject *words, tarn_compile_options *o) {
  PyObject *t = word(words, "text"), *onnx = word(words, "onnx");
  Py_ssize_t n = 0;
  char *bytes = NULL;
  if (t) o->text = PyUnicode_AsUTF8AndSize(t, &n);
  if (t && !o->text) return false;
  o->text_n = (size_t)n;
  if (onnx && PyBytes_AsStringAndSize(onnx, &bytes, &n)) return false;
  o->onnx = bytes;
  o->onnx_n = bytes ? (size_t)n : 0;
  return text(words, "model", &o->model) && text(words, "def", &o->def) &&
         text(words, "output", &o->dir);
}
bool options_read(options *x, PyObject *words) {
  memset(x, 0, sizeof *x);
  tarn_compile_options *o = &x->o;
  *o = tarn_compile_defaults();
  x->hw = "host";
  x->progress = word(words, "progress");
  return source(words, o) && numbers(words, o) && caches(words, o) && numerics(words, o) &&
         text(words, "hw", &x->hw) && text(words, "db", &x->db) &&
         truth(words, "allow_copies", &o->allow_copies) && truth(words, "learned", &x->learned) &&
         list(words, "shapes", &o->shapes) && list(words, "sets", &o->sets) &&
         list(words, "outputs", &o->outputs) && list(words, "rules", &o->rules) &&
         list(words, "no_rules", &o->no_rules) && list(words, "only_rules", &o->only_rules);
}
void options_free(options *x) {
  const tarn_texts *all[] = {&x->o.shapes,     &x->o.sets,   &x->o.rules,  &x->o.no_rules,
                             &x->o.only_rules, &x->o.caches, &x->o.outputs};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) PyMem_Free((void *)(uintptr_t)all[i]->text);
}
