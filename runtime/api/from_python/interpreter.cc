#include "runtime/api/from_python/interpreter.h"

#include <dlfcn.h>

#include <optional>

namespace hvd {
namespace {

std::optional<Interpreter> FindInterpreter() {
  Interpreter found;
  const FindSymbol find = [](const char* symbol) { return ::dlsym(RTLD_DEFAULT, symbol); };
  found.none = static_cast<PyObject*>(find("_Py_NoneStruct"));
  EntryFiller fill(find);
  ForEachEntry(found, fill);
  if (found.none == nullptr || !fill.missing().empty()) return std::nullopt;
  return found;
}

}  // namespace

const Interpreter* Interpreter::OfThisProcess() {
  static const std::optional<Interpreter> found = FindInterpreter();
  return found ? &*found : nullptr;
}

}  // namespace hvd
