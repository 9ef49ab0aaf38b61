// Runs or starts collectives on CPU tensors in one Python call.
//
// A ctypes call costs a microsecond, and querying a tensor's type, shape and address another one:
// several times what a small collective takes. A runner is a native Python function that gets these
// facts from the framework in one C call (DLPack). It is optional: the package has a fallback for
// arguments that it does not support and for frameworks without this exchange.
#ifndef HVD_RUNTIME_API_FROM_PYTHON_RUNNER_H_
#define HVD_RUNTIME_API_FROM_PYTHON_RUNNER_H_

#include <cstdint>
#include <string>

#include "runtime/api/from_python/interpreter.h"

namespace hvd {

struct RunnerOptions {
  int32_t collective = 0;  // hvd_collective
  std::string operation;   // collectives are named "OPERATION.NAME"
  int64_t slice_ms = 0;    // a call returns after this time, done or not; 0: it only starts
};

// A new reference to a Python function (see private_entries.h), or null if this process has no
// usable Python or the tensor type does not support the exchange. The type and the options are kept
// forever. Call with the GIL held; leaves no exception set.
PyObject* MakeRunner(PyObject* tensor_type, RunnerOptions options);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_FROM_PYTHON_RUNNER_H_
