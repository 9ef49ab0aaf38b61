#include "launcher/doctor/examined_hosts.h"

#include <algorithm>
#include <utility>

namespace hvd {

void ExaminedHosts::Begin(TimePoint now) {
  begun_ = now;
  stages_.Begin(now);
}

void ExaminedHosts::Enter(uint32_t host, HostStage stage, TimePoint now) {
  stages_.Enter(host, stage, now);
  report_.hosts[host].stage = stage;
}

void ExaminedHosts::Trouble(uint32_t host, const HostTrouble& trouble, TimePoint now) {
  stages_.Trouble(host, trouble, now);
  report_.hosts[host].stage = trouble.stage;
}

void ExaminedHosts::Fail(uint32_t host, const std::string& trouble, TimePoint now) {
  stages_.Fail(host, trouble, now);
}

void ExaminedHosts::Expire(TimePoint now) {
  stages_.Expire(now);
  for (ExaminedHost& host : hosts_) {
    if (now >= host.exam_until) host.examining = false;
  }
}

std::optional<TimePoint> ExaminedHosts::NextExpiry() const {
  std::optional<TimePoint> next = stages_.NextExpiry();
  for (const ExaminedHost& host : hosts_) {
    if (host.examining) next = next ? std::min(*next, host.exam_until) : host.exam_until;
  }
  return next;
}

std::vector<uint32_t> ExaminedHosts::NoteFailures(TimePoint now) {
  std::vector<uint32_t> given_up;
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    HostReport& report = report_.hosts[host];
    if (stages_.stage(host) != HostStage::kFailed || hosts_[host].failure_noted) continue;
    hosts_[host].failure_noted = true;
    if (!report.trouble.empty()) continue;
    report.stage = stages_.failed_in(host);
    report.trouble = stages_.TroubleOf(host);
    if (report.stage == HostStage::kProof) {
      hosts_[host].proving = false;
      continue;  // its agent can still report the facts of the host
    }
    report.took = now - begun_;
    hosts_[host].examining = false;
    given_up.push_back(host);
  }
  return given_up;
}

void ExaminedHosts::Interrupt(TimePoint now) {
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    HostReport& report = report_.hosts[host];
    if (hosts_[host].greeted || !report.trouble.empty()) continue;
    report.took = now - begun_;
    report.trouble = std::string(StageText(report.stage)) + ": was interrupted";
  }
}

void ExaminedHosts::MergeNames(TimePoint now) {
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    for (uint32_t first = 0; first < host && !report_.hosts[host].same_as; ++first) {
      const bool remote = report_.hosts[first].remote || report_.hosts[host].remote;
      if (!remote || !CanAsk(first) || !CanAsk(host) || hosts_[host].identity.empty() ||
          hosts_[first].identity != hosts_[host].identity)
        continue;
      report_.hosts[host].same_as = first;
      hosts_[host].examining = false;
      stages_.Enter(host, HostStage::kReady, now);
    }
  }
}

void ExaminedHosts::ForgiveTheLost(const ProbedHosts& probed) {
  for (uint32_t host : probed.hosts()) {
    HostReport& report = report_.hosts[host];
    if (!hosts_[host].open || report.trouble.empty() || report.stage != HostStage::kProof) continue;
    if (!probed.MissedLostOnly(host, [this](uint32_t other) { return IsLost(other); })) continue;
    report.trouble.clear();
    report.stage = HostStage::kReady;
  }
}

bool ExaminedHosts::IsConnecting(uint32_t host) const {
  return !hosts_[host].greeted && stages_.stage(host) != HostStage::kFailed;
}

bool ExaminedHosts::AnyConnecting() const {
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    const HostStage stage = stages_.stage(host);
    if (stage != HostStage::kThere && stage != HostStage::kFailed) return true;
  }
  return false;
}

bool ExaminedHosts::CanAsk(uint32_t host) const {
  return hosts_[host].open && hosts_[host].greeted && !report_.hosts[host].same_as &&
         (stages_.stage(host) != HostStage::kFailed ||
          stages_.failed_in(host) == HostStage::kProof);
}

size_t ExaminedHosts::Count(bool ExaminedHost::*is) const {
  return static_cast<size_t>(
      std::ranges::count_if(hosts_, [is](const ExaminedHost& host) { return host.*is; }));
}

std::string ExaminedHosts::PopSlow(TimePoint now) {
  std::vector<std::string> names;
  for (const HostReport& host : report_.hosts) names.push_back(host.name);
  return stages_.PopSlow(names, now);
}

AskTime ClockQuestions::Ask(TimePoint now) {
  open_ = true;
  asked_ = now;
  return AskTime{answered_};
}

bool ClockQuestions::Receive(const TimeReply& reply, TimePoint now) {
  if (!open_ || reply.number != answered_) return false;
  open_ = false;
  ++answered_;
  const Duration half = (now - asked_) / 2;
  const int64_t here = (asked_ + half).time_since_epoch().count() + wall_minus_steady_ns_;
  if (!skew_ || half < skew_->uncertainty) {
    skew_ = ClockSkew{std::chrono::nanoseconds(reply.wall_ns - here), half};
  }
  return true;
}

}  // namespace hvd
