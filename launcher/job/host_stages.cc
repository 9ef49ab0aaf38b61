#include "launcher/job/host_stages.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "configs/message_text.h"
#include "launcher/text/seconds_text.h"
#include "launcher/text/sentence_end.h"

namespace hvd {
namespace {

using std::chrono::seconds;

struct StageWords {
  const char* name;  // as --stage-timeouts says it
  const char* text;
  Duration limit;
  const char* advice;  // when the limit has passed
};

constexpr StageWords kWords[kHostStages] = {
    {"resolve", "resolving its name", seconds(20), "does the name server answer?"},
    {"connect", "connecting", seconds(10),
     "is the host up, and does a firewall let the port of ssh through?"},
    {"kex", "agreeing on keys", seconds(10), "is its sshd overloaded?"},
    {"hostkey", "checking its host key", seconds(10), "is its sshd overloaded?"},
    {"login", "logging in", seconds(20), "does its sshd wait for a directory service?"},
    {"exec", "starting the agent", seconds(20), "does a start-up file of its shell wait?"},
    {"bundle", "receiving hvdrun", seconds(60), "is the way to it stuck, or its disk?"},
    {"hello", "waiting for the agent's first word", seconds(30), "is the host overloaded?"},
    {"proof", "looking for an address at which the hosts reach each other", seconds(30),
     "does a firewall drop what goes between the hosts?"},
};

// Of a stage that has a limit.
const StageWords& WordsOf(HostStage stage) {
  return kWords[std::min(static_cast<size_t>(stage), kHostStages - 1)];
}

bool InFlight(HostStage stage) { return stage < HostStage::kThere; }

}  // namespace

HostStage StageOf(ChannelStage stage) {
  switch (stage) {
    case ChannelStage::kResolve: return HostStage::kResolve;
    case ChannelStage::kConnect: return HostStage::kConnect;
    case ChannelStage::kKeyExchange: return HostStage::kKeyExchange;
    case ChannelStage::kHostKey: return HostStage::kHostKey;
    case ChannelStage::kLogin: return HostStage::kLogin;
    case ChannelStage::kExec: return HostStage::kExec;
    case ChannelStage::kRunning:
    case ChannelStage::kClosed: return HostStage::kHello;
  }
  return HostStage::kHello;
}

const char* StageName(HostStage stage) {
  return stage < HostStage::kThere ? WordsOf(stage).name : StageText(stage);
}

const char* StageText(HostStage stage) {
  if (stage == HostStage::kThere || stage == HostStage::kReady) return "ready";
  return stage == HostStage::kFailed ? "failed" : WordsOf(stage).text;
}

StageLimits StageLimits::Default() {
  StageLimits limits;
  for (size_t i = 0; i < kHostStages; ++i) limits.of[i] = kWords[i].limit;
  return limits;
}

Result<StageLimits> StageLimits::Parse(std::string_view text) {
  constexpr uint32_t kMost = 86'400;
  StageLimits limits = Default();
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    size_t equals = std::min(item.find('='), item.size());
    auto words = std::find_if(std::begin(kWords), std::end(kWords), [&](const StageWords& w) {
      return item.substr(0, equals) == w.name;
    });
    std::string_view number = item.substr(std::min(item.size(), equals + 1));
    uint32_t value = 0;
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    bool whole = error == std::errc() && end == number.data() + number.size();
    if (words == std::end(kWords) || !whole || value < 1 || value > kMost) {
      std::string names;
      for (const StageWords& w : kWords) names += (names.empty() ? "" : ", ") + std::string(w.name);
      return InvalidArgument("in --stage-timeouts " + Quoted(item) +
                             " is no stage with seconds from 1 to " + std::to_string(kMost) +
                             "; the stages are " + names + "; try --stage-timeouts connect=20");
    }
    limits.of[static_cast<size_t>(words - kWords)] = seconds(value);
  }
  return limits;
}

HostStages::HostStages(size_t hosts, StageLimits limits) : limits_(limits), hosts_(hosts) {
  counts_[static_cast<size_t>(HostStage::kResolve)] = hosts;
}

void HostStages::Begin(TimePoint now) {
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].since = hosts_[i].began = now;
    Schedule(i);
  }
}

void HostStages::Move(uint32_t host, HostStage stage) {
  Host& h = hosts_[host];
  --counts_[static_cast<size_t>(h.stage)];
  h.stage = stage;
  ++counts_[static_cast<size_t>(h.stage)];
}

// A host that has not come further for so long is named.
Duration HostStages::SlowAfter(const Host& host) {
  if (IsTriedAgain(host)) return kTroubled;
  return host.stage == HostStage::kBundle ? kSending : kSlow;
}

// When something is to be said or done about this host next.
void HostStages::Schedule(uint32_t host) {
  Host& h = hosts_[host];
  due_.erase({h.due, host});
  h.due = TimePoint::max();
  if (!InFlight(h.stage)) return;
  h.due = h.since + LimitOf(h);
  if (!h.named) h.due = std::min(h.due, h.began + SlowAfter(h));
  due_.emplace(h.due, host);
}

void HostStages::Enter(uint32_t host, HostStage stage, TimePoint now) {
  Host& h = hosts_[host];
  if (h.stage == HostStage::kFailed) return;
  const bool moves = stage == HostStage::kBundle && h.stage == stage;
  const bool tries = !h.trouble.empty() && stage <= HostStage::kConnect;
  const bool again = moves || tries;
  if (!tries) h.trouble.clear();
  Move(host, stage);
  h.since = now;
  if (!again) {
    h.began = now;
    h.named = false;
  }
  Schedule(host);
}

void HostStages::Trouble(uint32_t host, HostStage stage, std::string reason) {
  Host& h = hosts_[host];
  if (h.stage == HostStage::kFailed) return;
  h.trouble = std::move(reason);
  h.troubled_in = stage;
  h.since = h.began;
  Move(host, stage);
  Schedule(host);
}

void HostStages::Fail(uint32_t host, std::string reason, TimePoint now) {
  Host& h = hosts_[host];
  if (h.stage == HostStage::kFailed) return;
  h.failed_in = h.stage;
  h.reason = std::move(reason);
  Move(host, HostStage::kFailed);
  Schedule(host);
  if (settle_at_) return;
  settle_at_ = now + kSettle;
  first_failed_ = host;
}

void HostStages::Shift(Duration away) {
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].since += away;
    hosts_[i].began += away;
    Schedule(i);
  }
  if (settle_at_) *settle_at_ += away;
}

// A limit of "for ever" must not overflow.
Duration HostStages::LimitOf(const Host& host) const {
  return std::min<Duration>(limits_.at(host.stage), std::chrono::hours(24 * 365));
}

void HostStages::Add(TimePoint now) {
  standing_alone_ = true;
  hosts_.emplace_back();
  hosts_.back().since = hosts_.back().began = now;
  ++counts_[static_cast<size_t>(HostStage::kResolve)];
  Schedule(static_cast<uint32_t>(hosts_.size() - 1));
}

void HostStages::Expire(TimePoint now) {
  if (!standing_alone_ && settle_at_ && now >= *settle_at_) GiveUpTries(now);
  if (due_.empty() || now < due_.begin()->first) return;
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    if (!InFlight(host.stage) || now < host.since + LimitOf(host)) continue;
    const StageWords& words = WordsOf(host.stage);
    const std::string limit = SecondsText(limits_.at(host.stage));
    const std::string what = IsTriedAgain(host)
                                 ? host.trouble + "; it was tried again for " + limit + ", and"
                                 : "it took longer than " + limit + "; " + words.advice;
    Fail(i, what + " --stage-timeouts " + words.name + "=N allows more seconds", now);
  }
}

// Some other host has failed for good, so nothing will come of further tries.
void HostStages::GiveUpTries(TimePoint now) {
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].stage != HostStage::kFailed && IsTriedAgain(hosts_[i]))
      Fail(i, hosts_[i].trouble, now);
  }
}

bool HostStages::Lost(TimePoint now) const {
  if (!settle_at_) return false;
  return now >= *settle_at_ || NoneInFlight();
}

std::optional<TimePoint> HostStages::deadline() const {
  std::optional<TimePoint> next = NextExpiry();
  if (settle_at_ && (!next || *settle_at_ < *next)) next = settle_at_;
  return next;
}

std::optional<TimePoint> HostStages::NextExpiry() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

// Of a host that is named as slow; empty: it is sent hvdrun.
std::string HostStages::SlowText(const Host& host) {
  if (host.stage == HostStage::kBundle) return "";
  const bool unresolved = IsTriedAgain(host) && host.stage == HostStage::kResolve;
  return (unresolved ? "no DNS answer yet" : StageText(host.stage)) + std::string(" for ") +
         SecondsText(SlowAfter(host));
}

std::string HostStages::TakeSlow(const std::vector<std::string>& names, TimePoint now) {
  if (due_.empty() || now < due_.begin()->first) return "";
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // what is said, of whom
  for (size_t stage = 0; stage < kHostStages; ++stage) {
    for (size_t i = 0; i < hosts_.size(); ++i) {
      Host& host = hosts_[i];
      bool here = host.stage == static_cast<HostStage>(stage);
      if (!here || host.named || now < host.began + SlowAfter(host)) continue;
      host.named = true;
      Schedule(static_cast<uint32_t>(i));
      const std::string state = SlowText(host);
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
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " +
            StageText(static_cast<HostStage>(stage));
  }
  return text;
}

std::string HostStages::StateOf(const Host& host) const {
  if (host.stage == HostStage::kFailed)
    return std::string(StageText(host.failed_in)) + ": " + host.reason;
  if (!InFlight(host.stage)) return "ready";
  return std::string("still ") + StageText(host.stage);
}

std::string HostStages::Report(const std::vector<std::string>& names) const {
  if (hosts_.size() == 1) {
    return WithStop("host " + names[0] +
                    " cannot be used, so nothing was started: " + StateOf(hosts_[0])) +
           "\n";
  }
  // Failed ones first, in the order of the hosts.
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (bool failed : {true, false}) {
    for (size_t i = 0; i < hosts_.size(); ++i) {
      if ((hosts_[i].stage == HostStage::kFailed) != failed) continue;
      std::string trouble = StateOf(hosts_[i]);
      auto known = std::find_if(groups.begin(), groups.end(),
                                [&](const auto& group) { return group.first == trouble; });
      if (known == groups.end()) known = groups.insert(groups.end(), {trouble, {}});
      known->second.push_back(names[i]);
    }
  }
  std::string text = std::to_string(Count(HostStage::kFailed)) + " of " +
                     std::to_string(hosts_.size()) +
                     " hosts cannot be used, so nothing was started.\n";
  for (const auto& [trouble, who] : groups) text += "  " + HostNames(who) + ": " + trouble + "\n";
  return text;
}

std::string HostNames(const std::vector<std::string>& names) {
  constexpr size_t kMost = 16;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

}  // namespace hvd
