// Any text as a list of hosts and as a host file: specs within their limits or one sentence, never a crash.
#include "discovery/host_spec.h"
#include "test/fuzz/seeds.h"

namespace {

void Check(const hvd::Result<std::vector<hvd::HostSpec>>& hosts) {
  if (!hosts.ok()) {
    hvd::Must(hosts.status().message().find('\n') == std::string::npos);
    return;
  }
  for (const hvd::HostSpec& host : *hosts) {
    hvd::Must(!host.name.empty() && host.name.front() != '-');
    hvd::Must(!host.slots || (*host.slots >= 1 && *host.slots <= hvd::kMaxSlots));
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  hvd::WriteSeeds(
      *argc, *argv,
      {"a:4,b", "localhost", "[::1]:2,::1", "a slots=4 max_slots=8\n# words\n\nb:2\nc\n", ":2",
       "a:two", "user@a:1", "a:65536", "a:65537", "a:0"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(hvd::ParseHostList(text));
  Check(hvd::ParseHostFile(text, "hosts.txt"));
  return 0;
}
