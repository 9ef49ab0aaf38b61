// Any text as a list of hosts, as a host file and as a range: specs within their limits or one
// sentence, never a crash.
#include "discovery/host_range.h"
#include "discovery/host_spec.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

bool IsOneSentence(const Status& status) {
  return !status.message().empty() && status.message().find('\n') == std::string::npos;
}

// Whether the word may begin a word of ssh's command line.
bool IsSafe(const std::string& word) {
  return word.find_first_of(" \t\n\r;|&$`'\"\\<>()*?[]{}#!~") == std::string::npos &&
         word.find('\0') == std::string::npos && (word.empty() || word.front() != '-');
}

void Check(const Result<std::vector<HostSpec>>& hosts) {
  if (!hosts.ok()) return Must(IsOneSentence(hosts.status()));
  Must(!hosts->empty() && hosts->size() <= kMaxHosts);
  for (const HostSpec& host : *hosts) {
    Must(!host.name.empty() && host.name.size() <= 253 && IsSafe(host.name) && IsSafe(host.user));
    Must(!host.slots || (*host.slots >= 1 && *host.slots <= kMaxSlots));
    Must(!host.max_slots || *host.max_slots >= host.slots.value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WriteSeeds(*argc, *argv,
             {"a:4,b",
              "localhost",
              "[::1]:2222:2,::1,[fe80::1%eth0]",
              "a slots=4 max_slots=8\n# words\n\nb:2\nc\n",
              ":2",
              "a:two",
              "user@a:1",
              "a:65536",
              "a:65537",
              "a:0",
              "node[01-16]:8,n[1-3,7]-ib[0-1]",
              "n[1-100001]",
              "bob@[node[1-2]]:2222:8",
              "[::1]:4",
              "a user=bob port=2222\n",
              "a slots = 2 // words\nb count=3 max-slots=4",
              "^a",
              "+n0",
              "-x:2",
              "ssh://a"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(ParseHostList(text));
  Check(ParseHostFile(text, "hosts.txt"));
  constexpr size_t kLimit = 50;
  auto names = ExpandHostRange(text, kLimit);
  Must(names.ok() ? !names->empty() && names->size() <= kLimit : IsOneSentence(names.status()));
  return 0;
}
