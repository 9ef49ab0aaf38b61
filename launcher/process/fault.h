// Fault injection: HVD_TEST_FAULT names what is to fail, for tests of hvdrun's messages
// (test_env.h).
#ifndef HVD_LAUNCHER_PROCESS_FAULT_H_
#define HVD_LAUNCHER_PROCESS_FAULT_H_

#include <string_view>

#include "runtime/base/test_env.h"

namespace hvd {

inline bool FaultAsked(std::string_view name) {
  return GetTestEnv("HVD_TEST_FAULT").value_or("") == name;
}

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_FAULT_H_
