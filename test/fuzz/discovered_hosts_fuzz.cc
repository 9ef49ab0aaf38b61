// Any text as the output of a discovery script: hosts within their limits, none twice, or one
// sentence that names a line; never a crash.
#include <set>

#include "discovery/discovered_hosts.h"
#include "discovery/host_item.h"
#include "discovery/host_range.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

bool IsOneSentence(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WriteSeeds(*argc, *argv,
             {"a:2\nb:4\n", "a\r\nb\r\n", "a:2 # words\n\n# c\nb slots=3\n",
              "[::1]::2\n[fe80::1%eth0]:2222:1\n", "node[01-16]:8\n", "a:2\na:4\na:0\n",
              "a slots=0\n", "bob@a:2\n", "a:two\n", "Error: no cluster\n",
              "\xef\xbb\xbf"
              "a:1\n",
              "a:1\nn[1-100001]\n"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> notes;
  const auto hosts = ParseDiscoveredHosts({reinterpret_cast<const char*>(data), size}, notes);
  for (const std::string& note : notes) Must(IsOneSentence(note));
  if (!hosts.ok()) {
    Must(hosts.status().message().starts_with("line ") && IsOneSentence(hosts.status().message()));
    return 0;
  }
  Must(hosts->size() <= kMaxHosts);
  std::set<std::pair<std::string, uint16_t>> seen;
  for (const HostSpec& host : *hosts) {
    Must(!host.name.empty() && host.name.front() != '-');
    Must(!host.slots || (*host.slots >= 1 && *host.slots <= kMaxSlots));
    Must(seen.insert({host.name, host.port}).second);
  }
  return 0;
}
