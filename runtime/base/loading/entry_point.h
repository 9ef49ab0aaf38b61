// Entry points of libraries loaded on demand: a table is a struct of EntryPoints, resolved by
// symbol name. Tests fill it with their own functions.
#ifndef HVD_RUNTIME_BASE_LOADING_ENTRY_POINT_H_
#define HVD_RUNTIME_BASE_LOADING_ENTRY_POINT_H_

#include <functional>
#include <string>
#include <utility>

namespace hvd {

template <typename Function>
struct EntryPoint;

template <typename Returned, typename... Arguments>
struct EntryPoint<Returned(Arguments...)> {
  const char* symbol;
  Returned (*function)(Arguments...) = nullptr;

  Returned operator()(Arguments... arguments) const { return function(arguments...); }
  explicit operator bool() const { return function != nullptr; }
};

// The address of a symbol, or null.
using FindSymbol = std::function<void*(const char* symbol)>;

// Resolves entries and collects the names of missing symbols.
class EntryFiller {
 public:
  explicit EntryFiller(FindSymbol find) : find_(std::move(find)) {}

  template <typename Returned, typename... Arguments>
  void operator()(EntryPoint<Returned(Arguments...)>& entry) {
    entry.function = reinterpret_cast<Returned (*)(Arguments...)>(find_(entry.symbol));
    if (entry.function == nullptr)
      missing_ += (missing_.empty() ? "" : ", ") + std::string(entry.symbol);
  }
  // "cuInit, cuMemAlloc_v2"; "" if all were found.
  const std::string& missing() const { return missing_; }

 private:
  FindSymbol find_;
  std::string missing_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_LOADING_ENTRY_POINT_H_
