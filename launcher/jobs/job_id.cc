#include "launcher/jobs/job_id.h"

#include <sys/random.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>

namespace hvd {
namespace {

std::string Hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned char byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string RandomHex(size_t bytes) {
  std::string random(bytes, '\0');
  for (size_t have = 0; have < bytes;) {
    ssize_t got = ::getrandom(random.data() + have, bytes - have, 0);
    if (got < 0 && errno != EINTR) std::abort();  // no kernel of the floor does this
    if (got > 0) have += static_cast<size_t>(got);
  }
  return Hex(random);
}

}  // namespace

std::string MakeJobId() { return RandomHex(8); }

std::optional<uint64_t> ParseJobId(const std::string& id) {
  uint64_t value = 0;
  const char* end = id.data() + id.size();
  auto [stopped, error] = std::from_chars(id.data(), end, value, 16);
  if (id.size() != 16 || error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::string AgentJobId(const std::string& job_id, uint32_t host) {
  uint64_t value = ParseJobId(job_id).value_or(0) + host;
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return Hex(bytes);
}

std::string MakeJobKey() { return RandomHex(32); }

bool SameKey(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

std::string MakeLinkAddress(const std::string& job_id) {
  return "hvd-" + job_id + "-" + RandomHex(4);
}

}  // namespace hvd
