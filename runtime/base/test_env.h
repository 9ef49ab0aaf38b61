// Variables HVD_TEST_..., by which tests make a process act as on an older or a failing system.
// Only a build with HVD_TESTING_FAULTS knows them; without their variable they do nothing there
// either.
#ifndef HVD_RUNTIME_BASE_TEST_ENV_H_
#define HVD_RUNTIME_BASE_TEST_ENV_H_

#include <optional>
#include <string>

namespace hvd {

// As GetEnv; always nothing in a build without HVD_TESTING_FAULTS.
std::optional<std::string> GetTestEnv(const char* name);

// The variable as a number above 0; `usual` where there is none.
int TestNumber(const char* name, int usual);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEST_ENV_H_
