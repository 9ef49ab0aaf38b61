// Any text as known_hosts, its first line as a host: every line is an entry or left out, a question
// about one host has one answer, and a line that we write is read back.
#include <algorithm>

#include "discovery/known_hosts.h"
#include "discovery/ssh_key.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

constexpr const char* kKey = "AAAAC3NzaC1lZDI1NTE5AAAAIP5aadBEf9luB7hLjNxCz4K8gq0U03fNyKjIveigQwh8";

void CheckAnswer(const KnownHosts& known, const KnownHosts& lines, std::string_view host,
                 uint16_t port, const std::string& key) {
  HostKeyCheck check = CheckHostKey(known, host, port, key);
  Must(check == CheckHostKey(lines, host, port, key));
  Must((check.verdict == HostKeyVerdict::kUnknown) == (check.line == 0));
  auto types = KnownTypes(known, host, port);
  Must(types == KnownTypes(lines, host, port));
  if (check.verdict == HostKeyVerdict::kMatch || check.verdict == HostKeyVerdict::kChanged)
    Must(std::find(types.begin(), types.end(), check.known_type) != types.end());
}

void CheckWritten(std::string_view host, uint16_t port, const std::string& key) {
  for (const std::string& line : {KnownHostsLine(host, port, key),
                                  HashedKnownHostsLine(host, port, key, std::string(20, 's'))}) {
    if (line.empty()) continue;
    Must(std::count(line.begin(), line.end(), '\n') == 1);
    KnownHosts known;
    known.Add(line, "written");
    Must(known.skipped.empty());
    Must(CheckHostKey(known, host, port, key).verdict == HostKeyVerdict::kMatch);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::string key = " ssh-ed25519 " + std::string(kKey) + "\n";
  WriteSeeds(*argc, *argv,
             {"a\na,b*,!c?" + key, "a\n[a]:2222" + key, "a\n@revoked *" + key,
              "a\n@cert-authority *" + key + "a" + key, "a\n# words\n\nx\na 1024 35 123\n",
              "host.example\n|1|kDq80zbE1yF3EryzaegU9u/ab60=|AJ+UFo60luXF0rnFYE/H3dVASaU=" + key});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string_view host = text.substr(0, text.find('\n'));
  KnownHosts known;
  known.Add(text, "known_hosts");
  for (const std::string& sentence : known.skipped) Must(sentence.find('\n') == std::string::npos);
  std::vector<std::string> keys = {DecodeBase64(kKey).value()};
  for (const KnownHost& entry : known.entries) {
    Must(KeyTypeOf(entry.key) == entry.key_type && entry.line > 0);
    Must(DecodeBase64(EncodeBase64(entry.key)) == entry.key);
    if (keys.size() < 4) keys.push_back(entry.key);
  }
  for (uint16_t port : {0, 22, 2222}) {
    KnownHosts lines = LinesOf(known, host, port);
    for (const std::string& key : keys) {
      CheckAnswer(known, lines, host, port, key);
      CheckWritten(host, port, key);
    }
  }
  return 0;
}
