/* tarn._code: the module. It links LLVM; tarn._lab does not. */
#include "run.h"

const code_state *code_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static PyObject *add(PyObject *module, PyType_Spec *spec, const char *name) {
  return tp_add_type(module, spec) ? PyObject_GetAttrString(module, name) : NULL;
}
static int exec(PyObject *module) {
  code_state *s = PyModule_GetState(module);
  s->tensor = add(module, &tensor_spec, "Tensor");
  s->call = add(module, &call_spec, "Call");
  bool rest = tp_add_type(module, &program_spec) && tp_add_type(module, &cache_spec);
  return s->tensor && s->call && rest ? 0 : -1;
}
static void release(void *module) {
  code_state *s = PyModule_GetState(module);
  if (!s) return;
  Py_CLEAR(s->tensor);
  Py_CLEAR(s->call);
}
static PyMethodDef functions[] = {
    {"signature", code_signature, METH_VARARGS, "name, parameters and results of a definition"},
    {0}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, exec}, {0}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,  .m_name = "_code", .m_size = sizeof(code_state),
    .m_methods = functions, .m_slots = slots,  .m_free = release};
PyMODINIT_FUNC PyInit__code(void) { return PyModuleDef_Init(&definition); }
