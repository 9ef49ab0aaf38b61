#include "launcher/external/adopt/external_stalls.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

// Writes to the stderr of a rank that another launcher started. An adopting agent has no stderr of
// its own: a launcher that waits for the end of its pipes would wait for the agent.
//
// The text goes to wherever the process writes its errors: a pipe, a file or a terminal. Never
// blocks. False if nothing was written: the process is gone or belongs to another user, its stderr
// is a socket, or its reader is behind.
bool WriteToStderrOf(pid_t pid, const std::string& text) {
  const std::string path = Format("/proc/{}/fd/2", pid);
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return file.valid() && ::write(file.get(), text.data(), text.size()) > 0;
}

// Where all ranks of the world are. Hosts other than `own` have no name.
Plan PlanOf(const HostWorld& world, uint32_t own) {
  Plan plan;
  Result<std::vector<RankPlace>> places = PlacesOf(world.layout, world.size);
  if (!places.ok()) return plan;
  for (uint32_t rank = 0; rank < world.size; ++rank) {
    const uint32_t host = (*places)[rank].host;
    if (plan.hosts.size() <= host) plan.hosts.resize(host + 1);
    plan.ranks.push_back({.rank = rank, .host = host});
  }
  if (own < plan.hosts.size()) plan.hosts[own] = world.host;
  return plan;
}

}  // namespace

ExternalStalls::ExternalStalls(asio::io_context& io, const Clock& clock, Endless endless)
    : clock_(clock),
      endless_(std::move(endless)),
      examiner_(io, clock, [this](const ToDriver& message) { Handle(message); }),
      rounds_([this](uint32_t host, const ExamineRanks& question) {
        if (host == own_host_) examiner_.Answer(question);
      }),
      limit_timer_(io) {}

void ExternalStalls::Watch(const HostGenerations& generations) {
  generations_ = &generations;
  examiner_.Watch(generations, /*reports_idle=*/false);
}

void ExternalStalls::Handle(const ToDriver& message) {
  const TimePoint now = clock_.Now();
  if (const auto* seen = std::get_if<StallReport>(&message)) {
    const HostWorld& world = generations_->world();
    own_host_ = world.slots.empty() ? 0 : world.slots[0].host;
    plan_ = PlanOf(world, own_host_);
    waiting_ = seen->waiting;
    if (!plan_.ranks.empty()) rounds_.Begin(plan_, *seen, now);
  } else if (const auto* answer = std::get_if<RanksExamined>(&message)) {
    if (Status taken = rounds_.Handle(plan_, own_host_, *answer); !taken.ok())
      LogError(taken.message());
  }
  Conclude();
}

void ExternalStalls::Conclude() {
  if (const std::optional<StallExplained> stall = rounds_.Result(plan_, clock_.Now())) {
    std::string situation =
        Format("{} {}\n{}", stall->generation, stall->verdict.never_ends, stall->verdict.situation);
    if (std::exchange(reported_, situation) != situation) Report(*stall);
    if (stall->verdict.never_ends) endless_(stall->generation, EndlessText(stall->verdict));
  }
  if (rounds_.NextTick() == TimePoint::max()) return;
  limit_timer_.expires_at(rounds_.NextTick());
  limit_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) Conclude();
  });
}

// Reports to the rank that waits: the one that hangs may have closed everything.
void ExternalStalls::Report(const StallExplained& stall) const {
  const std::string text = "[hvdrun agent] " + StallText(stall.verdict) + "\n";
  for (uint32_t slot = 0; slot < generations_->slots().size(); ++slot) {
    if (generations_->world().RankOf(slot) == waiting_)
      (void)WriteToStderrOf(generations_->PidOf(slot), text);
  }
}

}  // namespace hvd
