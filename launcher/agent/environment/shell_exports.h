// The output of `hvdrun env`: the exports by which a shell finds this installation. Pure.
#ifndef HVD_LAUNCHER_AGENT_ENVIRONMENT_SHELL_EXPORTS_H_
#define HVD_LAUNCHER_AGENT_ENVIRONMENT_SHELL_EXPORTS_H_

#include <functional>
#include <optional>
#include <string>

namespace hvd {

// PATH with the folder of `executable` and PYTHONPATH with the folder of its horovod package, each
// prepended to its current value from `variable`, without duplicates. Valid in sh, bash, zsh and
// fish for any path.
std::string ShellExports(
    const std::string& executable,
    const std::function<std::optional<std::string>(const char* name)>& variable);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_SHELL_EXPORTS_H_
