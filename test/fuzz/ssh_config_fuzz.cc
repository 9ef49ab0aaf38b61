// Any text as what `ssh -G` printed: a configuration with a host to connect to, or one sentence.
#include "discovery/ssh_config.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WriteSeeds(
      *argc, *argv,
      {"host a\nhostname a.example\nport 22\nuser bob\n",
       "hostname a\nidentityfile ~/.ssh/id_%h\nidentityfile ${HOME}/x\nidentityfile none\n",
       "hostname a\nproxycommand nc %h %p\nproxyjump j1,u@j2:2200\n",
       "hostname a\nuserknownhostsfile /k h/a ~/b\nglobalknownhostsfile none\n",
       "hostname a\nstricthostkeychecking accept-new\nhostkeyalias al\nhostkeyalgorithms x,y\n",
       "hostname a\nidentityagent $A\nconnecttimeout 5\nsetenv A=b\n"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  SshLocal local{.home = "/home/bob",
                 .user = "bob",
                 .host_name = "here.example",
                 .variable = [](const std::string& name) -> std::optional<std::string> {
                   if (name.size() > 4) return std::nullopt;
                   return "value";
                 }};
  auto config = ParseSshConfig({reinterpret_cast<const char*>(data), size}, local);
  if (!config.ok()) {
    Must(config.status().message().find('\n') == std::string::npos);
    return 0;
  }
  Must(!config->hostname.empty() && !config->host.empty() && config->port != 0);
  Must(!NameInKnownHosts(*config).host.empty());
  for (const std::string& path : config->identity_files) Must(!path.empty());
  for (const std::string& sentence : config->ignored)
    Must(sentence.find('\n') == std::string::npos);
  return 0;
}
