#include "launcher/external/places/place_holder.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/external/places/place.h"
#include "launcher/output/output.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/links/pass_descriptors.h"
#include "launcher/process/process_end.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/link.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {
namespace {

constexpr int kNoRank = 1;
// The agent was notified before this process was started, but over another connection.
constexpr Duration kAgentLimit = std::chrono::seconds(30);
constexpr int kMostWaitMs = 20;

int Fail(const std::string& sentence) {
  WriteAll(STDERR_FILENO, "hvdrun worker: " + sentence + "\n");
  return kNoRank;
}

Result<UniqueFd> ConnectToAgent(const std::string& job_id, uint32_t hosts) {
  const TimePoint until = SteadyNow() + kAgentLimit;
  for (int wait_ms = 1;; wait_ms = std::min(2 * wait_ms, kMostWaitMs)) {
    for (uint32_t host = 0; host < hosts; ++host) {
      Result<UniqueFd> agent = ConnectLinkIfAny(PlaceAddress(AgentJobId(job_id, host)));
      if (!agent.ok() || agent->valid()) return agent;
    }
    if (SteadyNow() >= until) return Aborted("no agent of job " + job_id + " is on this host");
    ::poll(nullptr, 0, wait_ms);
  }
}

Result<UniqueFd> OwnEnvironment() {
  std::string bytes;
  for (const auto& [name, value] : AllEnv()) (bytes += name + "=" + value).push_back('\0');
  Result<UniqueFd> file = CreateSharedMemory("hvd-place", bytes.size());
  if (!file.ok()) return file;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote =
        ::pwrite(file->get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return SystemError("the environment cannot be written", errno);
    done += static_cast<size_t>(wrote);
  }
  return file;
}

// The PMI connection that MPICH and its derivatives opened for the rank.
UniqueFd AdoptPmi() {
  const int fd = ParseWhole<int>(GetEnv("PMI_FD").value_or("")).value_or(-1);
  return fd > STDERR_FILENO ? UniqueFd(fd) : UniqueFd();
}

// Nothing: the agent has gone without a message.
std::optional<ProcessEnd> WaitForEnd(int agent) {
  for (;;) {
    pollfd waiting{agent, POLLIN, 0};
    if (::poll(&waiting, 1, -1) < 0 && errno != EINTR) return std::nullopt;
    if (std::optional<PassedDescriptors> reply = ReceiveDescriptors(agent))
      return ParsePlaceEnd(reply->bytes);
  }
}

int EndAs(const ProcessEnd& end) {
  if (!end.by_signal) return end.value;
  const rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);  // the rank has written its own, if at all
  ::signal(end.value, SIG_DFL);
  ::raise(end.value);
  return kSignalBase + end.value;
}

}  // namespace

int HoldPlace(const std::string& job_id, uint32_t hosts) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // without its launcher there is no place to hold
  for (int signal : {SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);  // the agent forwards them
  const std::optional<PlaceNumber> number =
      PlaceNumberOf([](const char* name) { return GetEnv(name); });
  if (!number) {
    Fail("started by mpirun or jsrun for hvdrun --mpi; none of these has given it a rank");
    return kUsageError;
  }
  Result<UniqueFd> agent = ConnectToAgent(job_id, hosts);
  if (!agent.ok()) return Fail(agent.status().message());
  std::optional<ProcessEnd> end;
  {
    Result<UniqueFd> environment = OwnEnvironment();
    if (!environment.ok()) return Fail(environment.status().message());
    const UniqueFd pmi = AdoptPmi();
    std::vector<int> passed = {environment->get()};
    if (pmi.valid()) passed.push_back(pmi.get());
    if (Status sent = PassDescriptors(agent->get(), PlaceText(*number), passed); !sent.ok())
      return Fail(sent.message());
  }  // the rank alone has them now
  end = WaitForEnd(agent->get());
  return end ? EndAs(*end) : kNoRank;
}

}  // namespace hvd
