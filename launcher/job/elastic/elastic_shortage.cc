#include "launcher/job/elastic/elastic_shortage.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/job/elastic/elastic_generations.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/output/text/counted.h"
#include "launcher/output/text/seconds_text.h"

namespace hvd {
namespace {

constexpr Duration kFirstReport = std::chrono::seconds(10);
constexpr Duration kLaterReports = std::chrono::seconds(30);

// A host that is tried again is another one in the list: its last reason counts.
std::string HostTroubles(const std::vector<ElasticHost>& hosts) {
  std::string text;
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    const bool again = std::any_of(host + 1, hosts.end(), [&](const ElasticHost& later) {
      return later.listing.host == host->listing.host && (later.ready || !later.trouble.empty());
    });
    if (!host->trouble.empty() && host->listed && !again)
      text += "; host " + host->listing.host + ": " + host->trouble;
  }
  return text;
}

std::string ShortageText(const ElasticChange& change, size_t have, uint32_t need) {
  std::string text = Counted(have, "rank is there", "ranks are there") + ", " +
                     Counted(need, "is needed", "are needed");
  std::vector<std::string> late;
  for (uint32_t worker : change.AliveWorkers()) {
    const RankRecord& record = change.state.ranks[worker];
    if (record.running() && !record.waiting()) late.push_back(change.WorkerText(worker));
  }
  if (!late.empty()) {
    text += "; " + HostNames(late) + (late.size() == 1 ? " has" : " have") +
            " not called hvd.init()" + (change.state.generation > 0 ? " again" : "");
  }
  text += HostTroubles(change.elastic.hosts);
  if (change.elastic.listed_once && change.elastic.listing.empty()) text += "; no hosts are listed";
  if (!change.elastic.source_trouble.empty()) text += "; " + change.elastic.source_trouble;
  if (!change.elastic.lost_cause.empty()) text += "; before that, " + change.elastic.lost_cause;
  return text;
}

// The wait that is going on, and its limit. Slots that are missing and ranks that are slow are two
// things: a short limit for the one must not end a job whose ranks import for a while.
struct PendingWait {
  TimePoint until;
  Duration limit;
  const char* setting;
  const char* what;
};

std::optional<PendingWait> WaitOf(const ElasticState& elastic) {
  const ElasticLimits& limits = elastic.limits;
  if (elastic.short_since)
    return PendingWait{*elastic.short_since + limits.elastic_timeout, limits.elastic_timeout,
                       "--elastic-timeout", "too few ranks could take part within the "};
  if (!elastic.late_since) return std::nullopt;
  // A worker that was started meanwhile has all of the time.
  return PendingWait{std::max(*elastic.late_since, elastic.started_at) + limits.init_timeout,
                     limits.init_timeout, "--init-timeout",
                     "ranks have not called hvd.init() within the "};
}

void ReportShortage(ElasticChange& change, const PendingWait& wait, const std::string& text) {
  change.Tell("waiting for ranks: " + text + "; the job ends in " +
              SecondsText(std::max(wait.until - change.now, Duration{})) + " (" + wait.setting +
              ")");
}

void BeginWait(std::optional<TimePoint>& wait, std::optional<TimePoint>& other,
               ElasticChange& change) {
  if (!wait && !other) change.elastic.next_report = change.now + kFirstReport;
  if (!wait) wait = change.now;
  other.reset();
}

}  // namespace

void WatchShortage(ElasticChange& change) {
  ElasticState& elastic = change.elastic;
  if (elastic.running || elastic.any_finished || elastic.restart) {
    elastic.short_since.reset();
    elastic.late_since.reset();
    return;
  }
  const size_t have = change.StayingWorkers().size();
  const uint32_t need = change.Needed();
  // Ranks that all said goodbye keep nobody waiting: they save something, or are done.
  const bool keep_waiting =
      change.elastic.broken && change.elastic.any_joined && !SurvivorsWait(change);
  const bool late = change.state.counts.waiting > 0 || keep_waiting;
  if (have < need) {
    BeginWait(elastic.short_since, elastic.late_since, change);
  } else if (late) {
    BeginWait(elastic.late_since, elastic.short_since, change);
  } else {
    elastic.short_since.reset();
    elastic.late_since.reset();
    return;
  }
  const PendingWait wait = *WaitOf(elastic);
  const bool over = change.now >= wait.until;
  if (!over && change.now < elastic.next_report) return;
  const std::string text = ShortageText(change, have, need);
  elastic.next_report = change.now + kLaterReports;
  ReportShortage(change, wait, text);
  if (over)
    change.FailJob(wait.what + SecondsText(wait.limit) + " of " + wait.setting + ": " + text);
}

std::optional<TimePoint> NextShortageReport(const ElasticState& elastic) {
  const std::optional<PendingWait> wait = WaitOf(elastic);
  if (!wait) return std::nullopt;
  return std::min(elastic.next_report, wait->until);
}

}  // namespace hvd
