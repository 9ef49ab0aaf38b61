// The variables that belong to the login on a host: those of hvdrun's machine are wrong on another
// one, and for another user (HOME, USER, LOGNAME, HOSTNAME, XDG_RUNTIME_DIR, TMPDIR).
#ifndef HVD_LAUNCHER_AGENT_ENVIRONMENT_HOST_LOGIN_H_
#define HVD_LAUNCHER_AGENT_ENVIRONMENT_HOST_LOGIN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

struct HostLogin {
  std::vector<std::string> variables = {};  // "NAME=value"
  std::vector<std::string> absent = {};     // names without a value on this host
};

// The facts of a host about the login that the agent has there.
struct LoginFacts {
  std::function<std::optional<std::string>(const char* name)> variable;  // of the agent
  std::string home, user;  // by the user database; empty: it does not know the user
  std::string host_name;
  // Whether the agent can write into this directory; `own`: it also belongs to the user.
  std::function<bool(const std::string& path, bool own)> usable_directory;
};

// `driver`: the environment of hvdrun, "NAME=value". XDG_RUNTIME_DIR and TMPDIR of hvdrun's stay
// where they can be used, and HOSTNAME is set where hvdrun has it. Pure.
HostLogin LoginOf(const std::vector<std::string>& driver, const LoginFacts& facts);

// By the facts of this host.
HostLogin LoginHere(const std::vector<std::string>& driver);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_HOST_LOGIN_H_
