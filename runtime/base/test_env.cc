#include "runtime/base/test_env.h"

#include <charconv>

#include "runtime/base/env.h"

namespace hvd {
namespace {

#ifdef HVD_TESTING_FAULTS
constexpr bool kKnown = true;
#else
constexpr bool kKnown = false;
#endif

}  // namespace

std::optional<std::string> GetTestEnv(const char* name) {
  return kKnown ? GetEnv(name) : std::nullopt;
}

int TestNumber(const char* name, int usual) {
  const std::string text = GetTestEnv(name).value_or("");
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 ? value : usual;
}

}  // namespace hvd
