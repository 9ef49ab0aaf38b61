#include "runtime/base/test_env.h"

#include "runtime/base/env.h"
#include "runtime/base/text/number_text.h"

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
  const int value = ParseWhole<int>(GetTestEnv(name).value_or("")).value_or(0);
  return value > 0 ? value : usual;
}

}  // namespace hvd
