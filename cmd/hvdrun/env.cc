// hvdrun env: prints the exports that let a shell, and a python started by it, find this
// installation.
#include "runtime/base/env.h"

#include "cmd/hvdrun/verbs.h"
#include "launcher/agent/environment/shell_exports.h"

namespace hvd {

int EnvVerb(const std::vector<std::string>& args) {
  if (!args.empty()) {
    return FailVerb("env", "takes no arguments; try eval \"$(hvdrun env)\"");
  }
  return PrintText(ShellExports(OwnPath(), [](const char* name) { return GetEnv(name); }));
}

}  // namespace hvd
