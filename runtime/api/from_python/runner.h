// Collectives on tensors of the processor, run or started in one call of Python.
//
// By ctypes a call costs a microsecond, and asking a tensor for its type, shape and address another
// one: several times what a small collective takes. A runner is a function of the interpreter
// itself, and gets those facts from the framework in one call of C (DLPack). It is an extra: for
// whatever it cannot take, and under frameworks without that exchange, the package has its own way.
#ifndef HVD_RUNTIME_API_FROM_PYTHON_RUNNER_H_
#define HVD_RUNTIME_API_FROM_PYTHON_RUNNER_H_

#include <cstdint>
#include <string>

#include "runtime/api/from_python/interpreter.h"

namespace hvd {

struct RunnerOptions {
  int32_t collective = 0;  // hvd_collective
  std::string operation;   // "OPERATION.NAME" is the name of a collective
  int64_t slice_ms = 0;    // a call returns after this time, done or not; 0: it only starts
};

// A new reference to a Python function (see private_entries.h), or null: this process
// has no Python that can be used, or the tensors of this type are not shown. The type and the
// options are kept for good. The interpreter lock is held; no exception is left set.
PyObject* MakeRunner(PyObject* tensor_type, RunnerOptions options);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_FROM_PYTHON_RUNNER_H_
