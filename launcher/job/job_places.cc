#include "launcher/job/job_places.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/job/job_ending.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// When a rank fails, its launcher ends, too, and that may be reported first.
constexpr Duration kCauseGrace = std::chrono::seconds(2);

JobFailure FailureOf(std::string reason, int exit_code) {
  JobFailure failure;
  failure.kind = JobFailure::Kind::kLauncher;
  failure.exit_code = exit_code == 0 ? 1 : exit_code;
  failure.reason = std::move(reason);
  return failure;
}

void Fail(JobChange& change, std::string reason, int exit_code = 1) {
  std::string shown = reason;
  FailJob(change, FailureOf(std::move(reason), exit_code), std::move(shown));
}

const std::string& Name(const JobChange& change) { return change.state.options.launcher; }

// "started 1 of 4 ranks (0)", "started none of 4 ranks"
std::string StartedText(const JobState& state) {
  std::vector<uint32_t> here;
  for (uint32_t place = 0; place < state.places.hosts.size(); ++place) {
    if (state.places.hosts[place]) here.push_back(place);
  }
  const std::string of = Format(" of {} ranks", state.ranks.size());
  return "started " +
         (here.empty() ? "none" + of : Format("{}{} ({})", here.size(), of, RankRanges(here)));
}

// Why the place given to a rank cannot be used; empty: it can.
std::string TroubleWith(const JobState& state, const PlaceTaken& taken) {
  const size_t size = state.plan.ranks.size();
  if (taken.of == size && taken.place < size && !state.places.hosts[taken.place]) return "";
  return Format(
      "started a rank {} of {}, and this job has {}; leave -n and -np out of the arguments for it",
      taken.place, taken.of, size);
}

// Why the ranks cannot be where they were placed; empty: they can. The agents number the hosts in
// the order in which they probed each other's addresses, and every host must have a rank.
std::string TroubleWith(const Plan& planned, const Plan& placed) {
  const std::vector<uint32_t> hosts = planned.UsedHosts(), used = placed.UsedHosts();
  for (size_t at = 0; at < hosts.size(); ++at) {
    const std::string& host = planned.hosts[hosts[at]];
    if (std::find(used.begin(), used.end(), hosts[at]) == used.end())
      return Format(
          "started no rank on host {}, on which this job has {}; leave that host out of -H, or "
          "hosts and mappings out of the arguments for it",
          host, planned.OnHost(hosts[at]).size());
    if (used[at] != hosts[at])
      return "started its first ranks on the hosts in another order than this job has them, with " +
             placed.hosts[used[at]] + " before " + host +
             "; name the hosts in that order with -H, or leave rankfiles and hosts out of the "
             "arguments for it";
  }
  return "";
}

// All places are known. False: they cannot be used, and the job ends.
bool UsePlaces(JobChange& change) {
  JobState& state = change.state;
  std::vector<uint32_t> hosts;
  for (const std::optional<uint32_t>& host : state.places.hosts) hosts.push_back(*host);
  Plan placed = PlanOfPlaces(state.plan.hosts, hosts);
  if (placed.ranks == state.plan.ranks) return true;
  if (std::string trouble = TroubleWith(state.plan, placed); !trouble.empty()) {
    Fail(change, Name(change) + " " + trouble);
    return false;
  }
  state.plan = std::move(placed);
  change.Do(UsePlan{});
  return true;
}

// Ranks fail when their launcher ends, and their failure may be reported first.
bool OnlyARankFailed(const JobState& state) {
  return state.phase >= JobPhase::kStopping && state.interrupts == 0 && state.failure &&
         state.failure->kind == JobFailure::Kind::kRank;
}

std::string WhileRunning(const JobChange& change, const LauncherEnded& end) {
  return Name(change) + " " + end.reason + " while the ranks ran" +
         (end.output.empty() ? "" : ": " + end.output);
}

}  // namespace

bool AllPlacesTaken(JobChange& change) {
  if (Name(change).empty()) return true;
  LauncherPlaces& places = change.state.places;
  if (!places.asked) {
    places.asked = true;
    places.hosts.assign(change.state.ranks.size(), std::nullopt);
    change.state.deadline = change.now + change.state.options.start_timeout;
    change.Do(StartLauncher{});
    change.SetReason("all hosts are ready; starting " + Name(change));
  }
  return places.count == change.state.ranks.size() && UsePlaces(change);
}

bool HandlePlaceEvent(JobChange& change, const PlaceEvent& event) {
  LauncherPlaces& places = change.state.places;
  if (change.state.phase != JobPhase::kOpening || !places.asked) return false;
  if (const auto* refused = std::get_if<PlacesRefused>(&event.message)) {
    Fail(change, "host " + change.state.plan.hosts[event.host] + " cannot take ranks of " +
                     Name(change) + ": " + refused->reason);
    return false;
  }
  const PlaceTaken& taken = std::get<PlaceTaken>(event.message);
  if (std::string trouble = TroubleWith(change.state, taken); !trouble.empty()) {
    Fail(change, Name(change) + " " + trouble);
    return false;
  }
  places.hosts[taken.place] = event.host;
  ++places.count;
  return true;
}

void HandleLauncherEnd(JobChange& change, const LauncherEnded& event) {
  FailOfLostRank(change);
  if (event.by_signal && OnlyARankFailed(change.state)) {
    change.state.failure = FailureOf(WhileRunning(change, event), event.exit_code);
    return change.SetReason(change.state.failure->reason);
  }
  if (change.state.failure || change.state.phase >= JobPhase::kStopping) return;
  if (change.state.phase == JobPhase::kOpening)
    return Fail(change,
                Name(change) + " " + event.reason + " when it had " + StartedText(change.state) +
                    (event.output.empty() ? "" : ": " + event.output),
                event.exit_code);
  change.state.places.end = event;
  change.state.places.end_by = event.by_signal ? change.now : change.now + kCauseGrace;
  HandleLauncherDeadline(change);
}

bool HandleLauncherDeadline(JobChange& change) {
  LauncherPlaces& places = change.state.places;
  const auto& deadline = change.state.deadline;
  if (change.state.phase == JobPhase::kOpening && places.asked) {
    if (!deadline || change.now < *deadline) return false;
    change.state.deadline.reset();
    Fail(change, Name(change) + " has " + StartedText(change.state) + " within " +
                     SecondsText(change.state.options.start_timeout) +
                     ", and was ended; try again, or a longer --start-timeout");
    return true;
  }
  if (!places.end_by || change.now < *places.end_by) return false;
  places.end_by.reset();
  Fail(change, WhileRunning(change, *places.end), places.end->exit_code);
  return true;
}

}  // namespace hvd
