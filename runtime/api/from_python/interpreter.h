// The Python interpreter of this process: the functions of its stable ABI (docs.python.org, "C API
// Stability") that are used here, as a table filled by symbol name. Neither linked with Python nor
// built with its headers, so one library works with every version.
#ifndef HVD_RUNTIME_API_FROM_PYTHON_INTERPRETER_H_
#define HVD_RUNTIME_API_FROM_PYTHON_INTERPRETER_H_

#include <sys/types.h>

#include "runtime/base/loading/entry_point.h"

struct _object;  // NOLINT(bugprone-reserved-identifier): as in Python.h
using PyObject = _object;

namespace hvd {

struct PythonThread;
struct PythonMethod {  // PyMethodDef
  static constexpr int kFastCall = 0x0080;

  const char* name;
  PyObject* (*function)(PyObject* self, PyObject* const* arguments, ssize_t count);
  int flags;
  const char* doc;
};

// Call with the GIL held, except restore_thread.
#define HVD_PYTHON_CALLS(CALL)                                                                \
  CALL(void, inc_ref, "Py_IncRef", (PyObject*))                                               \
  CALL(void, dec_ref, "Py_DecRef", (PyObject*))                                               \
  CALL(PyObject*, err_occurred, "PyErr_Occurred", ())                                         \
  CALL(void, err_clear, "PyErr_Clear", ())                                                    \
  CALL(PyObject*, object_type, "PyObject_Type", (PyObject*))                                  \
  CALL(PyObject*, get_attribute, "PyObject_GetAttrString", (PyObject*, const char*))          \
  CALL(long, long_as_long, "PyLong_AsLong", (PyObject*))         /* NOLINT: as in Python.h */ \
  CALL(PyObject*, long_from, "PyLong_FromLongLong", (long long)) /* NOLINT: the same */       \
  CALL(double, float_as_double, "PyFloat_AsDouble", (PyObject*))                              \
  CALL(const char*, unicode_as_utf8, "PyUnicode_AsUTF8AndSize", (PyObject*, ssize_t*))        \
  CALL(void*, capsule_pointer, "PyCapsule_GetPointer", (PyObject*, const char*))              \
  CALL(PyObject*, capsule_new, "PyCapsule_New", (void*, const char*, void (*)(PyObject*)))    \
  CALL(PyObject*, function_new, "PyCFunction_NewEx",                                          \
       (PythonMethod*, PyObject * self, PyObject * module))                                   \
  CALL(PythonThread*, save_thread, "PyEval_SaveThread", ())                                   \
  CALL(void, restore_thread, "PyEval_RestoreThread", (PythonThread*))

struct Interpreter {
  PyObject* none = nullptr;
#define HVD_ENTRY(returned, field, symbol, arguments) EntryPoint<returned arguments> field{symbol};
  HVD_PYTHON_CALLS(HVD_ENTRY)
#undef HVD_ENTRY

  // Null if this process has no Python or its Python does not export these functions to loaded
  // libraries. Any thread.
  static const Interpreter* OfThisProcess();
};

template <typename Visitor>
void ForEachEntry(Interpreter& python, Visitor&& visit) {
#define HVD_VISIT(returned, field, symbol, arguments) visit(python.field);
  HVD_PYTHON_CALLS(HVD_VISIT)
#undef HVD_VISIT
}

}  // namespace hvd

#endif  // HVD_RUNTIME_API_FROM_PYTHON_INTERPRETER_H_
