// Variables that are specific to a login on a host (HOME, USER, LOGNAME, HOSTNAME, XDG_RUNTIME_DIR,
// TMPDIR), so that the values of hvdrun's machine are wrong on another one or for another user.
#ifndef HVD_LAUNCHER_AGENT_ENVIRONMENT_HOST_LOGIN_H_
#define HVD_LAUNCHER_AGENT_ENVIRONMENT_HOST_LOGIN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

struct HostLogin {
  std::vector<std::string> variables = {};  // "NAME=value"
  std::vector<std::string> absent = {};     // variables to unset on this host
};

// Facts of a host about the agent's login.
struct LoginFacts {
  std::function<std::optional<std::string>(const char* name)> variable;  // of the agent
  std::string home, user;  // from the user database; empty: unknown user
  std::string host_name;
  // Whether the agent can write to this directory; `own`: and it belongs to the user.
  std::function<bool(const std::string& path, bool own)> usable_directory;
};

// `driver`: the environment of hvdrun, "NAME=value". Keeps hvdrun's XDG_RUNTIME_DIR and TMPDIR if
// usable, and sets HOSTNAME if hvdrun has it. Pure.
HostLogin LoginOf(const std::vector<std::string>& driver, const LoginFacts& facts);

// LoginOf with the facts of this host.
HostLogin LoginHere(const std::vector<std::string>& driver);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_HOST_LOGIN_H_
