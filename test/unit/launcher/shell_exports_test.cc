#include "launcher/agent/environment/shell_exports.h"

#include <gtest/gtest.h>

#include <map>

namespace hvd {
namespace {

using Variables = std::map<std::string, std::string>;

std::string Exports(const std::string& executable, const Variables& variables) {
  return ShellExports(executable, [&](const char* name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(ShellExports, PutsThisInstallationInFront) {
  EXPECT_EQ(Exports("/p/bin/hvdrun", {{"PATH", "/usr/bin:/bin"}}),
            "export PATH='/p/bin:/usr/bin:/bin'\n"
            "export PYTHONPATH='/p/lib/hvdrun/python'\n");
}

TEST(ShellExports, SaysItOnce) {
  EXPECT_EQ(Exports("/p/bin/hvdrun", {{"PATH", "/bin:/p/bin::/usr/bin:/p/bin"},
                                      {"PYTHONPATH", "/p/lib/hvdrun/python:/mine"}}),
            "export PATH='/p/bin:/bin:/usr/bin'\n"
            "export PYTHONPATH='/p/lib/hvdrun/python:/mine'\n");
}

TEST(ShellExports, QuotesForEveryShell) {
  EXPECT_EQ(Exports("/it's $a\\b/bin/hvdrun", {}),
            "export PATH='/it'\"'\"'s $a'\"\\\\\"'b/bin'\n"
            "export PYTHONPATH='/it'\"'\"'s $a'\"\\\\\"'b/lib/hvdrun/python'\n");
}

}  // namespace
}  // namespace hvd
