#include "launcher/process/jobs/job_id.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/text/format.h"
#include "runtime/base/text/hex_text.h"
#include "runtime/base/text/number_text.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

// A sandbox may forbid getrandom(), and the device, too. Without random numbers there is no key,
// and nothing can continue.
[[noreturn]] void EndWithoutRandomNumbers(int error) {
  const std::string text = Format(
      "hvdrun: this process gets no random numbers (getrandom: {}), and so cannot make the keys of "
      "a "
      "job; does a seccomp filter, of a container for example, deny getrandom?\n",
      std::strerror(error));
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(1);
}

ssize_t RandomBytes(char* to, size_t bytes) {
  const ssize_t got = ::getrandom(to, bytes, 0);
  if (got >= 0 || errno == EINTR) return got;
  const int error = errno;
  const UniqueFd device(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  const ssize_t read = device.valid() ? ::read(device.get(), to, bytes) : -1;
  if (read <= 0) EndWithoutRandomNumbers(error);
  return read;
}

std::string RandomHex(size_t bytes) {
  std::string random(bytes, '\0');
  for (size_t have = 0; have < bytes;) {
    const ssize_t got = RandomBytes(random.data() + have, bytes - have);
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
