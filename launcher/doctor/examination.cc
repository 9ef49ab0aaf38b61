#include "launcher/doctor/examination.h"

#include <algorithm>
#include <utility>

#include "configs/message_text.h"
#include "launcher/text/seconds_text.h"

namespace hvd {
namespace {

constexpr Duration kMargin = std::chrono::seconds(2);

}  // namespace

Examination::Examination(ExaminationOptions options)
    : options_(std::move(options)),
      stages_(options_.hosts.size(), options_.stage_limits),
      hosts_(options_.hosts.size(), Host(options_.wall_minus_steady_ns)),
      pairs_(report_, probed_) {
  size_t remote = 0;
  for (const ExaminationHost& host : options_.hosts) {
    HostReport& report = report_.hosts.emplace_back();
    report.name = host.name;
    report.remote = host.remote;
    remote += host.remote ? 1 : 0;
  }
  report_.pairs_wanted = remote > 0 && options_.hosts.size() > 1;  // as in a run
  report_.directory = options_.directory;
  report_.interpreter = options_.interpreter;
}

void Examination::Begin(TimePoint now) {
  begun_ = now_ = now;
  stages_.Begin(now);
}

void Examination::Entered(uint32_t host, HostStage stage, TimePoint now) {
  now_ = now;
  if (hosts_[host].greeted || stages_.stage(host) == HostStage::kFailed) return;
  stages_.Enter(host, stage, now);
  report_.hosts[host].stage = stage;
}

void Examination::Troubled(uint32_t host, HostStage stage, const std::string& reason,
                           TimePoint now) {
  now_ = now;
  if (hosts_[host].greeted || stages_.stage(host) == HostStage::kFailed) return;
  stages_.Trouble(host, stage, reason);
  report_.hosts[host].stage = stage;
}

void Examination::Receive(uint32_t host, const ToDriver& message, TimePoint now) {
  now_ = now;
  std::visit([&](const auto& m) { On(host, m); }, message);
  GoOn();
}

void Examination::On(uint32_t host, const AgentReady& ready) {
  Host& h = hosts_[host];
  HostReport& report = report_.hosts[host];
  if (h.greeted || stages_.stage(host) == HostStage::kFailed) return;
  h.greeted = true;
  h.identity = ready.identity;
  report.version = Printable(ready.version);
  report.took = now_ - begun_;
  if (ready.version != options_.version) {
    return Fail(host, "it has hvdrun " + report.version + " and this is hvdrun " +
                          options_.version + "; install the same version there");
  }
  stages_.Enter(host, HostStage::kThere, now_);
  report.stage = HostStage::kThere;
  h.exam_until = now_ + kExamLimit + kMargin;
  h.examining = true;
  Send(host, h.clock.Ask(now_));
}

void Examination::On(uint32_t host, const TimeTold& told) {
  ClockQuestions& clock = hosts_[host].clock;
  if (report_.hosts[host].same_as || !clock.Receive(told, now_)) return;
  report_.hosts[host].clock = clock.skew();
  if (!clock.over()) return Send(host, clock.Ask(now_));
  ExamineHost question;
  question.directory = options_.directory;
  question.interpreter = options_.interpreter;
  question.environment = options_.environment;
  question.limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(kExamLimit).count();
  if (options_.hosts[host].remote) question.silence_limit_ms = options_.silence_limit_ms;
  Send(host, std::move(question));
}

void Examination::On(uint32_t host, const HostExam& exam) {
  if (!hosts_[host].examining) return;
  hosts_[host].examining = false;
  std::vector<std::string> lines;  // whatever an agent says is shown on a terminal
  for (const std::string& line : exam.facts) lines.push_back(Printable(line, 2 * kMaxShownPath));
  report_.hosts[host].facts = ReadHostFacts(lines);
  report_.hosts[host].examined = !lines.empty();
}

void Examination::Fail(uint32_t host, const std::string& trouble) {
  stages_.Fail(host, trouble, now_);
  NoteFailures();
}

// Failures that the stages know of, in the report. A host that has failed on its way is given up.
void Examination::NoteFailures() {
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    HostReport& report = report_.hosts[host];
    if (stages_.stage(host) != HostStage::kFailed || hosts_[host].failure_noted) continue;
    hosts_[host].failure_noted = true;
    if (!report.trouble.empty()) continue;
    report.stage = stages_.failed_in(host);
    report.trouble = stages_.TroubleOf(host);
    if (report.stage == HostStage::kProof) {
      hosts_[host].proving = false;
      continue;  // its agent can still say what the host has
    }
    report.took = now_ - begun_;
    hosts_[host].examining = false;
    End(host);
  }
}

void Examination::Ended(uint32_t host, const std::string& reason, TimePoint now) {
  now_ = now;
  Host& h = hosts_[host];
  h.open = h.examining = h.proving = false;
  HostReport& report = report_.hosts[host];
  if (phase_ < Phase::kFinishing && report.trouble.empty()) {
    std::string why = reason.empty() ? "its agent ended" : reason;
    if (!h.greeted) {
      Fail(host, why);
    } else {
      report.trouble = "it was lost while it was examined: " + why +
                       "; is the host up, and does something there end processes?";
    }
  }
  pairs_.GiveUp(host, report.name + " was lost");
  if (phase_ < Phase::kFinishing) ForgiveTheLost();
  GoOn();
}

void Examination::Tick(TimePoint now) {
  now_ = now;
  if (phase_ < Phase::kFinishing) {
    stages_.Expire(now);
    NoteFailures();
    for (Host& h : hosts_) {
      if (h.examining && now >= h.exam_until) h.examining = false;
    }
    if (phase_ == Phase::kMeasuring) pairs_.Tick(now);
  } else if (phase_ == Phase::kFinishing && now >= finish_until_) {
    if (cut_) {
      phase_ = Phase::kOver;
      return;
    }
    cut_ = true;
    finish_until_ = now + kFinishLimit;
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      if (hosts_[host].open) actions_.emplace_back(EndHost{host});
    }
  }
  GoOn();
}

void Examination::Stop(TimePoint now) {
  now_ = now;
  if (phase_ >= Phase::kFinishing) {
    finish_until_ = now;
    return Tick(now);
  }
  report_.interrupted = true;
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    HostReport& report = report_.hosts[host];
    if (hosts_[host].greeted || !report.trouble.empty()) continue;
    report.took = now - begun_;
    report.trouble = std::string(StageText(report.stage)) + ": was interrupted";
  }
  pairs_.Interrupt();
  Finish();
  GoOn();
}

// ---- what comes after what

void Examination::GoOn() {
  if (phase_ == Phase::kReaching) {
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      HostStage stage = stages_.stage(host);
      if (stage != HostStage::kThere && stage != HostStage::kFailed) return;
    }
    phase_ = Phase::kProving;
    MergeNames();
    Prove();
  }
  if (phase_ == Phase::kProving) {
    if (AnyHost(&Host::proving)) return;
    phase_ = Phase::kExamining;
  }
  if (phase_ == Phase::kExamining) {
    // Before the pairs: programs that run meanwhile would disturb the measurement.
    if (AnyHost(&Host::examining)) return;
    phase_ = Phase::kMeasuring;
    OpenProbes();
  }
  while (phase_ == Phase::kMeasuring && pairs_.RoundIsOver()) {
    if (pairs_.AllRoundsBegan()) {
      Finish();
    } else {
      SendEach(pairs_.BeginRound([this](uint32_t host) { return IsLost(host); }, now_));
    }
  }
  if (phase_ == Phase::kFinishing && !AnyHost(&Host::open)) phase_ = Phase::kOver;
}

bool Examination::AnyHost(bool Host::*is) const {
  return std::ranges::any_of(hosts_, [is](const Host& host) { return host.*is; });
}

// The host says what the others ask, and has an agent for the next question.
bool Examination::Takes(uint32_t host) const {
  return hosts_[host].open && hosts_[host].greeted && !report_.hosts[host].same_as &&
         (stages_.stage(host) != HostStage::kFailed ||
          stages_.failed_in(host) == HostStage::kProof);
}

template <typename Question>
Question Examination::QuestionFor(uint32_t host) const {
  Question question;
  question.job_key = options_.job_key;
  question.host = probed_.NumberOf(host);
  question.others = probed_.PartnersOf(host);
  for (uint32_t other : question.others) {
    question.names.push_back(report_.hosts[probed_.hosts()[other]].name);
  }
  question.interfaces = options_.interfaces;
  question.first_port = options_.first_port;
  question.last_port = options_.last_port;
  return question;
}

// As a run merges them (final_plan.h): two names of one host are one host.
void Examination::MergeNames() {
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    for (uint32_t first = 0; first < host && !report_.hosts[host].same_as; ++first) {
      const bool remote = report_.hosts[first].remote || report_.hosts[host].remote;
      if (!remote || !Takes(first) || !Takes(host) || hosts_[host].identity.empty() ||
          hosts_[first].identity != hosts_[host].identity)
        continue;
      report_.hosts[host].same_as = first;
      hosts_[host].examining = false;
      stages_.Enter(host, HostStage::kReady, now_);
    }
  }
}

void Examination::Prove() {
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    if (Takes(host)) probed_.Add(host);
  }
  if (!report_.pairs_wanted || probed_.size() < 2) {
    for (uint32_t host : probed_.hosts()) {
      stages_.Enter(host, HostStage::kReady, now_);
      report_.hosts[host].stage = HostStage::kReady;
    }
    probed_.Clear();
    return;
  }
  for (uint32_t host : probed_.hosts()) {
    hosts_[host].proving = true;
    stages_.Enter(host, HostStage::kProof, now_);
    report_.hosts[host].stage = HostStage::kProof;
    Send(host, QuestionFor<ProbeConnectivity>(host));
  }
}

void Examination::On(uint32_t host, const ConnectivityProbed& proven) {
  Host& h = hosts_[host];
  if (!h.proving) return;
  h.proving = false;
  probed_.Note(host, proven);
  if (!proven.trouble.empty()) {
    Fail(host, Printable(proven.trouble, 1000));
    return ForgiveTheLost();
  }
  stages_.Enter(host, HostStage::kReady, now_);
  report_.hosts[host].stage = HostStage::kReady;
}

// A host that fails to reach one that was lost meanwhile, and no other, is not to blame.
void Examination::ForgiveTheLost() {
  for (uint32_t host : probed_.hosts()) {
    HostReport& report = report_.hosts[host];
    if (!hosts_[host].open || report.trouble.empty() || report.stage != HostStage::kProof) continue;
    if (!probed_.MissedLostOnly(host, [this](uint32_t other) { return IsLost(other); })) continue;
    report.trouble.clear();
    report.stage = HostStage::kReady;
  }
}

// ---- pairs

void Examination::OpenProbes() {
  if (probed_.size() < 2) return;
  for (uint32_t host : probed_.hosts()) Send(host, QuestionFor<OpenProbe>(host));
  pairs_.Plan();
}

// ---- the directories

void Examination::On(uint32_t, const PutKey& put) { SendEach(directories_.Put(put)); }

void Examination::On(uint32_t host, const WantKey& want) {
  SendEach(directories_.Want(host, want));
}

// ---- the end

void Examination::Finish() {
  phase_ = Phase::kFinishing;
  finish_until_ = now_ + kFinishLimit;
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    if (!hosts_[host].open) continue;
    if (hosts_[host].greeted) {
      Send(host, FinishJob{});
    } else {
      End(host);
    }
  }
}

void Examination::End(uint32_t host) {
  if (!hosts_[host].open || std::exchange(hosts_[host].ending, true)) return;
  actions_.emplace_back(EndHost{host});
}

void Examination::Send(uint32_t host, ToAgent message) {
  actions_.emplace_back(SendToHost{host, std::move(message)});
}

template <typename Messages>
void Examination::SendEach(Messages messages) {
  for (auto& [host, message] : messages) Send(host, std::move(message));
}

std::vector<ExaminationAction> Examination::TakeActions() { return std::exchange(actions_, {}); }

std::optional<TimePoint> Examination::NextTick() const {
  if (phase_ == Phase::kOver) return std::nullopt;
  if (phase_ == Phase::kFinishing) return finish_until_;
  std::optional<TimePoint> next = stages_.NextExpiry();
  auto also = [&next](TimePoint at) { next = next ? std::min(*next, at) : at; };
  for (const Host& host : hosts_) {
    if (host.examining) also(host.exam_until);
  }
  if (phase_ == Phase::kMeasuring) also(pairs_.deadline());
  return next;
}

std::string Examination::Progress() const {
  switch (phase_) {
    case Phase::kReaching: return stages_.Counts();
    case Phase::kProving: return "the hosts look for each other";
    case Phase::kExamining: {
      auto waiting = std::count_if(hosts_.begin(), hosts_.end(),
                                   [](const Host& host) { return host.examining; });
      return "waiting for what " + std::to_string(waiting) +
             (waiting == 1 ? " host has" : " hosts have");
    }
    case Phase::kMeasuring: return "measuring pairs of hosts: " + pairs_.Progress();
    case Phase::kFinishing:
    case Phase::kOver: return "";
  }
  return "";
}

std::string Examination::TakeSlow(TimePoint now) {
  std::vector<std::string> names;
  for (const HostReport& host : report_.hosts) names.push_back(host.name);
  return stages_.TakeSlow(names, now);
}

}  // namespace hvd
