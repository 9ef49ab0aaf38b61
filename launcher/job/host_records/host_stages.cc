#include "launcher/job/host_records/host_stages.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "configs/message_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

using std::chrono::seconds;

constexpr const auto& kTexts = kStageTexts;

}  // namespace

StageLimits StageLimits::Default() {
  StageLimits limits;
  for (size_t i = 0; i < kHostStages; ++i) limits.of[i] = kTexts[i].limit;
  return limits;
}

Result<StageLimits> StageLimits::Parse(std::string_view text) {
  constexpr uint32_t kMost = 86'400;
  StageLimits limits = Default();
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    size_t equals = std::min(item.find('='), item.size());
    auto words = std::find_if(std::begin(kTexts), std::end(kTexts), [&](const StageTexts& w) {
      return item.substr(0, equals) == w.name;
    });
    std::string_view number = item.substr(std::min(item.size(), equals + 1));
    const uint32_t value = ParseWhole<uint32_t>(number).value_or(0);
    if (words == std::end(kTexts) || value < 1 || value > kMost) {
      std::string names;
      for (const StageTexts& w : kTexts) names += (names.empty() ? "" : ", ") + std::string(w.name);
      return InvalidArgument(
          Format("in --stage-timeouts {} is no stage with seconds from 1 to {}; the stages are {}; "
                 "try --stage-timeouts connect=20",
                 Quoted(item), kMost, names));
    }
    limits.of[static_cast<size_t>(words - kTexts)] = seconds(value);
  }
  return limits;
}

HostStages::HostStages(size_t hosts, StageLimits limits) : limits_(limits), hosts_(hosts) {
  counts_[static_cast<size_t>(HostStage::kResolve)] = hosts;
}

void HostStages::Begin(TimePoint now) {
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].progress.Begin(now);
    Schedule(i);
  }
}

// When this host is next to be reported or given up.
void HostStages::Schedule(uint32_t host) {
  Host& h = hosts_[host];
  due_.erase({h.due, host});
  h.due = h.progress.NextDue(LimitOf(h.progress));
  if (h.due != TimePoint::max()) due_.emplace(h.due, host);
}

// The host has moved on from stage `from`.
void HostStages::NoteMove(uint32_t host, HostStage from) {
  --counts_[static_cast<size_t>(from)];
  ++counts_[static_cast<size_t>(stage(host))];
  Schedule(host);
}

void HostStages::Enter(uint32_t host, HostStage stage, TimePoint now) {
  const HostStage from = this->stage(host);
  hosts_[host].progress.Enter(stage, now);
  NoteMove(host, from);
}

void HostStages::Trouble(uint32_t host, HostTrouble trouble, TimePoint now) {
  const HostStage from = stage(host);
  hosts_[host].progress.Trouble(std::move(trouble), now);
  NoteMove(host, from);
}

void HostStages::Fail(uint32_t host, std::string reason, TimePoint now) {
  const HostStage from = stage(host);
  if (from == HostStage::kFailed) return;
  hosts_[host].progress.Fail(std::move(reason));
  NoteMove(host, from);
  if (settle_at_) return;
  settle_at_ = now + kSettle;
  first_failed_ = host;
}

void HostStages::Shift(Duration away) {
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].progress.Shift(away);
    Schedule(i);
  }
  if (settle_at_) *settle_at_ += away;
}

// A limit of "for ever" must not overflow. Zero: the stage has no limit.
Duration HostStages::LimitOf(const HostProgress& progress) const {
  if (!InFlight(progress.stage())) return {};
  const bool unknown = progress.stage() == HostStage::kResolve && progress.tried_again();
  if (unknown && limits_.unknown_name) return *limits_.unknown_name;
  return std::min<Duration>(limits_.at(progress.stage()), std::chrono::hours(24 * 365));
}

void HostStages::Add(TimePoint now) {
  standing_alone_ = true;
  hosts_.emplace_back();
  hosts_.back().progress.Begin(now);
  ++counts_[static_cast<size_t>(HostStage::kResolve)];
  Schedule(static_cast<uint32_t>(hosts_.size() - 1));
}

void HostStages::Expire(TimePoint now) {
  if (!standing_alone_ && settle_at_ && now >= *settle_at_) GiveUpTries(now);
  if (due_.empty() || now < due_.begin()->first) return;
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    const HostProgress& progress = hosts_[i].progress;
    if (!progress.IsOver(LimitOf(progress), now)) continue;
    Fail(i, progress.OverText(LimitOf(progress)), now);
  }
}

// Another host has failed for good, so further attempts are pointless.
void HostStages::GiveUpTries(TimePoint now) {
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    const HostProgress& progress = hosts_[i].progress;
    if (!progress.failed() && progress.tried_again()) Fail(i, progress.trouble(), now);
  }
}

bool HostStages::Lost(TimePoint now) const {
  if (!settle_at_) return false;
  return now >= *settle_at_ || NoneInFlight();
}

std::optional<TimePoint> HostStages::deadline() const {
  std::optional<TimePoint> next = NextExpiry();
  if (!standing_alone_ && settle_at_ && (!next || *settle_at_ < *next)) next = settle_at_;
  return next;
}

std::optional<TimePoint> HostStages::NextExpiry() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

std::string HostStages::PopSlow(const std::vector<std::string>& names, TimePoint now) {
  if (due_.empty() || now < due_.begin()->first) return "";
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // text and hosts
  for (size_t stage = 0; stage < kHostStages; ++stage) {
    for (size_t i = 0; i < hosts_.size(); ++i) {
      HostProgress& progress = hosts_[i].progress;
      bool here = progress.stage() == static_cast<HostStage>(stage);
      if (!here || !progress.IsSlow(now)) continue;
      const std::string state = progress.PopSlow();
      Schedule(static_cast<uint32_t>(i));
      if (groups.empty() || groups.back().first != state) groups.push_back({state, {}});
      groups.back().second.push_back(names[i]);
    }
  }
  std::string text;
  for (const auto& [state, slow] : groups) {
    text += text.empty() ? "" : "; ";
    text += state.empty() ? "hvdrun is being sent to " + HostNames(slow)
                          : HostNames(slow) + ": " + state;
  }
  return text;
}

std::string HostStages::Counts() const {
  std::string text;
  for (int stage = static_cast<int>(HostStage::kFailed); stage >= 0; --stage) {
    size_t count = Count(static_cast<HostStage>(stage));
    if (count == 0) continue;
    text += Format("{}{} {}", text.empty() ? "" : ", ", count,
                   StageText(static_cast<HostStage>(stage)));
  }
  return text;
}

std::string HostStages::Report(const std::vector<std::string>& names) const {
  if (hosts_.size() == 1) {
    return WithStop("host " + names[0] +
                    " cannot be used, so nothing was started: " + TroubleOf(0)) +
           "\n";
  }
  // Failed ones first, in the order of the hosts.
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (bool failed : {true, false}) {
    for (size_t i = 0; i < hosts_.size(); ++i) {
      if (hosts_[i].progress.failed() != failed) continue;
      std::string trouble = hosts_[i].progress.StateText();
      auto known = std::find_if(groups.begin(), groups.end(),
                                [&](const auto& group) { return group.first == trouble; });
      if (known == groups.end()) known = groups.insert(groups.end(), {trouble, {}});
      known->second.push_back(names[i]);
    }
  }
  std::string text = Format("{} of {} hosts cannot be used, so nothing was started.\n",
                            Count(HostStage::kFailed), hosts_.size());
  for (const auto& [trouble, who] : groups) text += "  " + HostNames(who) + ": " + trouble + "\n";
  return text;
}

std::string HostNames(const std::vector<std::string>& names) {
  constexpr size_t kMost = 16;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMost) text += Format(" and {} more", names.size() - kMost);
  return text;
}

}  // namespace hvd
