// hvdrun env: prints the exports that let a shell, and a python started by it, find this
// installation.
#include "runtime/base/env.h"

#include <unistd.h>

#include "cmd/hvdrun/verbs.h"
#include "launcher/environment/shell_exports.h"
#include "launcher/output/output.h"

namespace hvd {

int EnvVerb(const std::vector<std::string>& args) {
  if (!args.empty()) {
    WriteAll(STDERR_FILENO, "hvdrun env: takes no arguments; try eval \"$(hvdrun env)\"\n");
    return kUsageError;
  }
  return PrintText(ShellExports(OwnPath(), [](const char* name) { return GetEnv(name); }));
}

}  // namespace hvd
