#include "launcher/agent/environment/host_login.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/env.h"

namespace hvd {
namespace {

std::optional<std::string> ValueIn(const std::vector<std::string>& environment,
                                   const std::string& name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

bool IsUsable(const std::string& path, bool own) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  return ::access(path.c_str(), W_OK | X_OK) == 0 && (!own || info.st_uid == ::geteuid());
}

}  // namespace

HostLogin LoginOf(const std::vector<std::string>& driver, const LoginFacts& facts) {
  HostLogin login;
  const auto set = [&](const char* name, const std::string& value) {
    if (value.empty()) return login.absent.emplace_back(name), void();
    login.variables.push_back(std::string(name) + "=" + value);
  };
  const auto own_or = [&](const char* name, const std::string& otherwise) {
    return facts.variable(name).value_or(otherwise);
  };
  set("HOME", own_or("HOME", facts.home));
  set("USER", own_or("USER", facts.user));
  set("LOGNAME", own_or("LOGNAME", facts.user));
  if (ValueIn(driver, "HOSTNAME")) set("HOSTNAME", facts.host_name);
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const std::optional<std::string> inherited = ValueIn(driver, name);
    const bool own = std::string(name) == "XDG_RUNTIME_DIR";
    const std::string here = own_or(name, "");
    if (inherited && (here.empty() || !own) && facts.usable_directory(*inherited, own)) continue;
    if (inherited || !here.empty())
      set(name, !here.empty() && facts.usable_directory(here, own) ? here : "");
  }
  return login;
}

HostLogin LoginHere(const std::vector<std::string>& driver) {
  LoginFacts facts;
  facts.variable = [](const char* name) { return GetEnv(name); };
  if (const passwd* user = ::getpwuid(::geteuid()); user != nullptr) {
    facts.home = user->pw_dir;
    facts.user = user->pw_name;
  }
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) == 0) facts.host_name = name;
  facts.usable_directory = IsUsable;
  return LoginOf(driver, facts);
}

}  // namespace hvd
