// hvdrun status JOB: the state of a detached job, or how it ended.
#include <algorithm>
#include <ctime>

#include "cmd/hvdrun/verbs.h"
#include "launcher/detached/follow.h"
#include "launcher/live/view_client.h"
#include "launcher/live/view_json.h"
#include "launcher/live/view_server.h"
#include "runtime/base/clock.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/printable_text.h"

namespace hvd {
namespace {

constexpr Duration kViewLimit = std::chrono::seconds(3);
constexpr size_t kMostLine = 80;

// The view of a running job; empty: its hvdrun does not answer.
std::string ViewOf(const DetachedJob& job) {
  std::string line;
  Result<ViewClient> client = ViewClient::Ask(job.id, kAskTop);
  if (!client.ok()) return line;
  const TimePoint limit = SteadyNow() + kViewLimit;
  while (!client->PopLine(&line)) {
    const Status came = client->Receive(limit - SteadyNow());
    if (!came.ok()) return "";
  }
  return line;
}

std::string TimeText(int64_t at) {
  const auto seconds = static_cast<std::time_t>(at);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char room[32];
  std::strftime(room, sizeof room, "%Y-%m-%d %H:%M:%S", &parts);
  return room;
}

// The clock may have been set back.
std::string Age(int64_t seconds) {
  seconds = std::max<int64_t>(seconds, 0);
  return Format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string RanksText(const DetachedJob& job, const std::string& view_line) {
  std::string text;
  std::map<uint32_t, std::pair<std::string, std::string>> known;  // host and state by rank
  if (const Result<JobView> view = ParseViewJson(view_line); view.ok()) {
    std::set<std::string> hosts;
    for (const RankView& rank : view->ranks) {
      hosts.insert(rank.host);
      known[rank.rank] = {rank.host, rank.state};
    }
    text += Format("generation {}: {} {} on {} {}\n", view->generation, view->size,
                   view->size == 1 ? "rank" : "ranks", hosts.size(),
                   hosts.size() == 1 ? "host" : "hosts");
  } else if (!job.end) {
    text += "hvdrun does not answer; the job may be about to end, or be stopped\n";
  }
  const std::map<uint32_t, std::string> folders = RankFolders(job);
  text += "RANK  HOST              STATE      LAST OUTPUT\n";
  for (const auto& [rank, folder] : folders) {
    const bool live = known.contains(rank);
    const std::string last = LastLineOf(folder);
    if (!live && last.empty() && !job.end) continue;  // of an elastic job: never used
    text += Format("{:>4}  {:<16}  {:<9}  {}\n", rank, live ? known[rank].first : "-",
                   live ? known[rank].second : "-", Printable(last, kMostLine));
  }
  return text;
}

std::string StatusText(const DetachedJob& job, const std::string& view) {
  const int64_t until = job.end ? job.end->at : WallSeconds();
  std::string text = "job " + job.name + " ";
  if (job.end) {
    text += Format("{} with exit code {} at {}, after {}\n", DetachedState(job), job.end->exit_code,
                   TimeText(job.end->at), Age(until - job.started_at));
    if (!job.end->reason.empty()) text += job.end->reason + "\n";
  } else {
    text +=
        Format("runs since {}, for {}\n", TimeText(job.started_at), Age(until - job.started_at));
  }
  text += Format("id {}, hvdrun was started as process {} on {}\n", job.id, job.driver,
                 Printable(job.host));
  text += "command: " + job.command + "\n" + RanksText(job, view);
  return text + ReportOf(job);
}

}  // namespace

int StatusVerb(const std::vector<std::string>& all_args) {
  std::vector<std::string> args = all_args;
  const bool json = std::erase(args, "--json") > 0;
  if (args.size() > 1 || (!args.empty() && args[0].starts_with('-')))
    return FailVerb("status", "takes the name of one detached job, and --json");
  const Result<DetachedJob> job = FindDetached(args.empty() ? "" : args[0]);
  if (!job.ok()) return FailVerb("status", job.status().message());
  const std::string view = job->end ? "" : ViewOf(*job);
  return PrintText(json ? DetachedStatusJson(*job, view) : StatusText(*job, view));
}

}  // namespace hvd
