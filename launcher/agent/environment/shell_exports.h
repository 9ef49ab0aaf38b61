// The output of `hvdrun env`: the exports that let a shell find this installation. Pure.
#ifndef HVD_LAUNCHER_AGENT_ENVIRONMENT_SHELL_EXPORTS_H_
#define HVD_LAUNCHER_AGENT_ENVIRONMENT_SHELL_EXPORTS_H_

#include <functional>
#include <optional>
#include <string>

namespace hvd {

// PATH with the folder of `executable` and PYTHONPATH with the folder of its horovod package, each
// in front of what `variable` says it has now, and once only. The lines are understood by sh, bash,
// zsh and fish, whatever is in the paths.
std::string ShellExports(
    const std::string& executable,
    const std::function<std::optional<std::string>(const char* name)>& variable);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_SHELL_EXPORTS_H_
