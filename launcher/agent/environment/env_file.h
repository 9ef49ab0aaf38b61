// Variables that the user passes to the workers: --env-file and -x. Pure, except for the lookup
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

// One NAME=value per line. Ignores empty lines, lines that begin with "#", and "export " before a
// name. A value may be in 'single quotes' (literal) or "double quotes" with \n, \t, \r, \", \\ and
// \$; both may span lines. An unquoted value ends at " #" or at the end of the line, and blanks
// around it are dropped. Nothing is expanded or executed. Errors name file and line.
Result<std::vector<GivenVariable>> ParseEnvFile(std::string_view text,
                                                const std::string& file_name);

// Reads the file first. Not pure.
Result<std::vector<GivenVariable>> ReadEnvFile(const std::string& path);

// Each is "NAME=value", or "NAME" for the value from `lookup`.
Result<std::vector<GivenVariable>> ParsePassed(
    const std::vector<std::string>& passed,
    const std::function<std::optional<std::string>(const char*)>& lookup);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_ENV_FILE_H_
