#include "runtime/api/from_python/runner.h"

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "hvd/hvd.h"
#include "runtime/api/from_python/dlpack.h"
#include "runtime/api/from_python/shown_tensor.h"

namespace hvd {
namespace {

constexpr char kSelfName[] = "horovod.runner";

// Never freed: its function may be called until the process exits.
struct Runner {
  const Interpreter& python;
  const PyObject* tensor_type;
  int (*show)(void* tensor, dlpack::Tensor* shown);
  RunnerOptions options;

  bool Read(PyObject* object, ShownTensor* tensor) const;
  bool ReadInteger(PyObject* object, int32_t* value) const;
  bool ReadNumber(PyObject* object, double* value) const;
  bool ReadName(PyObject* object, std::string* room, const char** name) const;
  // A handle, 0 if it is done, or a negative status.
  int64_t RunOrStart(const hvd_request& request) const;
};

// The arguments of a runner, in this order.
enum Argument : size_t {
  kInput,
  kOutput,
  kName,
  kReduceOp,
  kRootRank,
  kProcessSet,
  kPrescale,
  kPostscale,
  kArguments,
};

bool Runner::Read(PyObject* object, ShownTensor* tensor) const {
  // Exact type only: a subclass's framework may give its memory another meaning.
  PyObject* type = python.object_type(object);
  python.dec_ref(type);  // the object holds it
  if (type != tensor_type) return false;
  dlpack::Tensor shown{};
  if (show(object, &shown) == 0) return tensor->Read(shown);
  python.err_clear();
  return false;
}

bool Runner::ReadInteger(PyObject* object, int32_t* value) const {
  const auto read = python.long_as_long(object);
  if (read == -1 && python.err_occurred() != nullptr) {
    python.err_clear();
    return false;
  }
  *value = static_cast<int32_t>(read);
  return *value == read;
}

bool Runner::ReadNumber(PyObject* object, double* value) const {
  *value = python.float_as_double(object);
  if (*value != -1 || python.err_occurred() == nullptr) return true;
  python.err_clear();
  return false;
}

bool Runner::ReadName(PyObject* object, std::string* room, const char** name) const {
  *name = nullptr;
  if (object == python.none) return true;
  ssize_t bytes = 0;
  const char* given = python.unicode_as_utf8(object, &bytes);
  if (given == nullptr) {
    python.err_clear();
    return false;
  }
  room->assign(options.operation).append(1, '.').append(given, static_cast<size_t>(bytes));
  *name = room->c_str();
  return true;
}

int64_t Runner::RunOrStart(const hvd_request& request) const {
  hvd_handle handle = 0;
  PythonThread* thread = python.save_thread();
  const int32_t status = options.slice_ms == 0 ? hvd_submit(&request, &handle)
                                               : hvd_run_for(&request, options.slice_ms, &handle);
  python.restore_thread(thread);
  if (status == HVD_OK || status == HVD_IN_PROGRESS) return static_cast<int64_t>(handle);
  return -status;
}

std::optional<int64_t> Call(const Runner& runner, PyObject* const* arguments, ssize_t count) {
  if (count != kArguments) return std::nullopt;
  ShownTensor input;
  ShownTensor output;
  thread_local std::string name;
  hvd_request request{};
  const bool taken = runner.Read(arguments[kInput], &input) &&
                     runner.ReadName(arguments[kName], &name, &request.name) &&
                     runner.ReadInteger(arguments[kReduceOp], &request.reduce_op) &&
                     runner.ReadInteger(arguments[kRootRank], &request.root_rank) &&
                     runner.ReadInteger(arguments[kProcessSet], &request.process_set) &&
                     runner.ReadNumber(arguments[kPrescale], &request.prescale) &&
                     runner.ReadNumber(arguments[kPostscale], &request.postscale);
  if (!taken) return std::nullopt;
  if (arguments[kOutput] != arguments[kInput]) {
    if (!runner.Read(arguments[kOutput], &output)) return std::nullopt;
    input.tensor().output = output.tensor().output;
  }
  request.struct_size = sizeof request;
  request.flags = HVD_EXACT_SCALES;
  request.collective = runner.options.collective;
  request.tensor = &input.tensor();
  request.tensor_count = 1;
  return runner.RunOrStart(request);
}

PyObject* CallFromPython(PyObject* self, PyObject* const* arguments, ssize_t count) {
  const Interpreter& python = *Interpreter::OfThisProcess();
  const auto* runner = static_cast<const Runner*>(python.capsule_pointer(self, kSelfName));
  if (runner == nullptr) return nullptr;  // with Python's exception
  std::optional<int64_t> done;
  try {
    done = Call(*runner, arguments, count);
  } catch (const std::bad_alloc&) {  // no memory for the name: the package's fallback may report it
  }
  if (done) return python.long_from(*done);
  python.inc_ref(python.none);
  return python.none;
}

// The functions of DLPack version 1 in a framework's chain; null if it has none.
const dlpack::ExchangeApi* Exchange(const Interpreter& python, PyObject* tensor_type) {
  PyObject* capsule = python.get_attribute(tensor_type, dlpack::kAttribute);
  if (capsule == nullptr) return nullptr;
  auto* header =
      static_cast<dlpack::ExchangeHeader*>(python.capsule_pointer(capsule, dlpack::kCapsuleName));
  python.dec_ref(capsule);  // the functions live as long as the process
  while (header != nullptr && header->major > dlpack::kMajorVersion) header = header->earlier;
  if (header == nullptr || header->major != dlpack::kMajorVersion) return nullptr;
  return reinterpret_cast<const dlpack::ExchangeApi*>(header);
}

// A new reference to a function that holds this runner; null if Python has no memory.
PyObject* FunctionOf(std::unique_ptr<Runner> runner) {
  static PythonMethod method{"run", CallFromPython, PythonMethod::kFastCall, nullptr};
  const Interpreter& python = runner->python;
  PyObject* self = python.capsule_new(runner.get(), kSelfName, nullptr);
  if (self == nullptr) return nullptr;
  PyObject* function = python.function_new(&method, self, nullptr);
  python.dec_ref(self);                                          // the function holds it
  if (function != nullptr) static_cast<void>(runner.release());  // never freed
  return function;
}

}  // namespace

PyObject* MakeRunner(PyObject* tensor_type, RunnerOptions options) {
  const Interpreter* python = Interpreter::OfThisProcess();
  if (python == nullptr) return nullptr;
  PyObject* function = nullptr;
  const dlpack::ExchangeApi* exchange = Exchange(*python, tensor_type);
  if (exchange != nullptr && exchange->show != nullptr) {
    function = FunctionOf(
        std::make_unique<Runner>(Runner{*python, tensor_type, exchange->show, std::move(options)}));
  }
  if (function != nullptr) python->inc_ref(tensor_type);  // never freed, like the runner
  python->err_clear();
  return function;
}

}  // namespace hvd
