#include "launcher/job/elastic/elastic_shortage.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/job/elastic/elastic_generations.h"
#include "launcher/job/hosts/host_stages.h"
#include "launcher/text/counted.h"
#include "launcher/text/seconds_text.h"

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
    if (!change.state.ranks[worker].waiting &&
        change.state.ranks[worker].phase == RankPhase::kRunning)
      late.push_back(change.WorkerText(worker));
  }
  if (!late.empty()) {
    text += "; " + HostNames(late) + (late.size() == 1 ? " has" : " have") +
            " not called hvd.init()" + (change.state.generation > 0 ? " again" : "");
  }
  text += HostTroubles(change.elastic.hosts);
  if (change.elastic.listed_once && change.elastic.listing.empty()) text += "; no hosts are listed";
  if (!change.elastic.source_trouble.empty()) text += "; " + change.elastic.source_trouble;
  return text;
}

void ReportShortage(ElasticChange& change, size_t have, uint32_t need) {
  const Duration left =
      *change.elastic.short_since + change.elastic.limits.elastic_timeout - change.now;
  change.Tell("waiting for ranks: " + ShortageText(change, have, need) + "; the job ends in " +
              SecondsText(std::max(left, Duration{})) + " (--elastic-timeout)");
}

}  // namespace

void WatchShortage(ElasticChange& change) {
  if (change.elastic.running || change.elastic.any_finished || change.elastic.restart) {
    change.elastic.short_since.reset();
    return;
  }
  const size_t have = change.StayingWorkers().size();
  const uint32_t need = change.Needed();
  // Ranks that all said goodbye keep nobody waiting: they save something, or are done.
  const bool keep_waiting =
      change.elastic.broken && change.elastic.any_joined && !SurvivorsWait(change);
  const bool late = change.state.counts.waiting > 0 || keep_waiting;
  if (have >= need && !late) {
    change.elastic.short_since.reset();
    return;
  }
  if (!change.elastic.short_since) {
    change.elastic.short_since = change.now;
    change.elastic.next_report = change.now + kFirstReport;
  }
  if (change.now >= *change.elastic.short_since + change.elastic.limits.elastic_timeout) {
    ReportShortage(change, have, need);
    return change.FailJob("too few ranks could take part within the " +
                          SecondsText(change.elastic.limits.elastic_timeout) +
                          " of --elastic-timeout: " + ShortageText(change, have, need));
  }
  if (change.now < change.elastic.next_report) return;
  change.elastic.next_report = change.now + kLaterReports;
  ReportShortage(change, have, need);
}

std::optional<TimePoint> NextShortageReport(const ElasticState& elastic) {
  if (!elastic.short_since) return std::nullopt;
  return std::min(elastic.next_report, *elastic.short_since + elastic.limits.elastic_timeout);
}

}  // namespace hvd
