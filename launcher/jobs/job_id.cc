#include "launcher/jobs/job_id.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/base/text/hex_text.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

std::string RandomHex(size_t bytes) {
  std::string random(bytes, '\0');
  for (size_t have = 0; have < bytes;) {
    ssize_t got = ::getrandom(random.data() + have, bytes - have, 0);
    if (got < 0 && errno != EINTR) std::abort();  // no kernel of the floor does this
    if (got > 0) have += static_cast<size_t>(got);
  }
  return HexOf(random);
}

}  // namespace

std::string MakeJobId() { return RandomHex(8); }

std::optional<uint64_t> ParseJobId(const std::string& id) {
  return id.size() == 16 ? ParseWhole<uint64_t>(id, 16) : std::nullopt;
}

std::string AgentJobId(const std::string& job_id, uint32_t host) {
  return HexOf(ParseJobId(job_id).value_or(0) + host);
}

std::optional<uint32_t> HostOfAgent(const std::string& job_id, const std::string& agent_job_id) {
  const std::optional<uint64_t> job = ParseJobId(job_id), agent = ParseJobId(agent_job_id);
  if (!job || !agent || *agent - *job >= UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*agent - *job);
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
