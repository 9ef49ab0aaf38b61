// Variables that the user gives to the workers: --env-file and -x. Pure, but for the lookup that is
// passed in.
#ifndef HVD_LAUNCHER_AGENT_ENVIRONMENT_ENV_FILE_H_
#define HVD_LAUNCHER_AGENT_ENVIRONMENT_ENV_FILE_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

struct GivenVariable {
  std::string name, value;
  std::string origin;  // "-x", or "job.env:3"

  std::string entry() const { return name + "=" + value; }
};

// One NAME=value a line. Empty lines and lines that begin with "#" are nothing, "export " in front
// of a name is nothing. A value may be 'taken as it is' or "with \n, \t, \r, \", \\ and \$"; both
// go on over line ends. Without quotes it ends at " #" or at the end of the line, blanks around it
// are dropped. Names and values are bytes: nothing is replaced, nothing is run. Errors name file
// and line.
Result<std::vector<GivenVariable>> ParseEnvFile(std::string_view text,
                                                const std::string& file_name);

// Reads the file first. Not pure.
Result<std::vector<GivenVariable>> ReadEnvFile(const std::string& path);

// Each "NAME=value", or "NAME" for the value that `lookup` has.
Result<std::vector<GivenVariable>> ParsePassed(
    const std::vector<std::string>& passed,
    const std::function<std::optional<std::string>(const char*)>& lookup);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_ENV_FILE_H_
