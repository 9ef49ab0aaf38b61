// Environment variables. The only file that calls getenv.
#ifndef HVD_RUNTIME_BASE_ENV_H_
#define HVD_RUNTIME_BASE_ENV_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hvd {

// A copy of the variable, nullopt if unset. An empty value counts as set.
std::optional<std::string> GetEnv(const char* name);

// All variables of this process in order, as (name, value).
std::vector<std::pair<std::string, std::string>> AllEnv();

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_ENV_H_
