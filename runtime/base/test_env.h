// Variables HVD_TEST_..., with which tests simulate an older or failing system. Only builds with
// HVD_TESTING_FAULTS read them.
#ifndef HVD_RUNTIME_BASE_TEST_ENV_H_
#define HVD_RUNTIME_BASE_TEST_ENV_H_

#include <optional>
#include <string>

namespace hvd {

// As GetEnv; always nullopt in builds without HVD_TESTING_FAULTS.
std::optional<std::string> GetTestEnv(const char* name);

// The variable as a number above 0; `usual` if not set to one.
int TestNumber(const char* name, int usual);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEST_ENV_H_
