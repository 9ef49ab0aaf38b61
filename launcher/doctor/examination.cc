#include "launcher/doctor/examination.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kMargin = std::chrono::seconds(2);

}  // namespace

Examination::Examination(ExaminationOptions options)
    : options_(std::move(options)),
      hosts_(report_, options_.hosts.size(), options_.stage_limits, options_.wall_minus_steady_ns),
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
  now_ = now;
  hosts_.Begin(now);
}

void Examination::Entered(uint32_t host, HostStage stage, TimePoint now) {
  now_ = now;
  if (hosts_.IsConnecting(host)) hosts_.Enter(host, stage, now);
}

void Examination::Troubled(uint32_t host, const HostTrouble& trouble, TimePoint now) {
  now_ = now;
  if (hosts_.IsConnecting(host)) hosts_.Trouble(host, trouble, now);
}

void Examination::Receive(uint32_t host, const ToDriver& message, TimePoint now) {
  now_ = now;
  std::visit(
      [&](const auto& m) {
        using Message = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<Message, PutKey>) {
          SendEach(directories_.Put(m));
        } else if constexpr (std::is_same_v<Message, WantKey>) {
          SendEach(directories_.Want(host, m));
        } else if constexpr (std::is_same_v<Message, PairMeasured>) {
          pairs_.Receive(host, m);
        } else if constexpr (requires { this->On(host, m); }) {
          this->On(host, m);
        }  // the others belong to a run
      },
      message);
  GoOn();
}

void Examination::On(uint32_t host, const AgentReady& ready) {
  ExaminedHost& h = hosts_[host];
  HostReport& report = report_.hosts[host];
  if (!hosts_.IsConnecting(host)) return;
  h.greeted = true;
  h.identity = ready.identity;
  report.version = Printable(ready.version);
  report.took = now_ - hosts_.begun();
  if (ready.version != options_.version) {
    return Fail(host, "it has hvdrun " + report.version + " and this is hvdrun " +
                          options_.version + "; install the same version there");
  }
  hosts_.Enter(host, HostStage::kThere, now_);
  h.exam_until = now_ + kExamLimit + kMargin;
  h.examining = true;
  Send(host, h.clock.Ask(now_));
}

void Examination::On(uint32_t host, const TimeReply& reply) {
  ClockQuestions& clock = hosts_[host].clock;
  if (report_.hosts[host].same_as || !clock.Receive(reply, now_)) return;
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
  hosts_.Fail(host, trouble, now_);
  NoteFailures();
}

// Gives up hosts that have failed while being connected.
void Examination::NoteFailures() {
  for (uint32_t host : hosts_.NoteFailures(now_)) End(host);
}

void Examination::Ended(uint32_t host, const std::string& reason, TimePoint now) {
  now_ = now;
  ExaminedHost& h = hosts_[host];
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
  if (phase_ < Phase::kFinishing) hosts_.ForgiveTheLost(probed_);
  GoOn();
}

void Examination::Tick(TimePoint now) {
  now_ = now;
  if (phase_ < Phase::kFinishing) {
    hosts_.Expire(now);
    NoteFailures();
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
  hosts_.Interrupt(now);
  pairs_.Interrupt();
  Finish();
  GoOn();
}

// ---- the order of the stages

void Examination::GoOn() {
  if (phase_ == Phase::kReaching) {
    if (hosts_.AnyConnecting()) return;
    phase_ = Phase::kProving;
    hosts_.MergeNames(now_);
    Prove();
  }
  if (phase_ == Phase::kProving) {
    if (hosts_.Any(&ExaminedHost::proving)) return;
    phase_ = Phase::kExamining;
  }
  if (phase_ == Phase::kExamining) {
    // Waits for examinations before measuring pairs: programs that run meanwhile would disturb the
    // measurement.
    if (hosts_.Any(&ExaminedHost::examining)) return;
    phase_ = Phase::kMeasuring;
    OpenProbes();
  }
  while (phase_ == Phase::kMeasuring && pairs_.RoundIsOver()) {
    if (pairs_.AllRoundsBegan()) {
      Finish();
    } else {
      SendEach(pairs_.BeginRound([this](uint32_t host) { return hosts_.IsLost(host); }, now_));
    }
  }
  if (phase_ == Phase::kFinishing && !hosts_.Any(&ExaminedHost::open)) phase_ = Phase::kOver;
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

void Examination::Prove() {
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    if (hosts_.CanAsk(host)) probed_.Add(host);
  }
  if (!report_.pairs_wanted || probed_.size() < 2) {
    for (uint32_t host : probed_.hosts()) hosts_.Enter(host, HostStage::kReady, now_);
    probed_.Clear();
    return;
  }
  for (uint32_t host : probed_.hosts()) {
    hosts_[host].proving = true;
    hosts_.Enter(host, HostStage::kProof, now_);
    Send(host, QuestionFor<ProbeConnectivity>(host));
  }
}

void Examination::On(uint32_t host, const ConnectivityProbed& proven) {
  ExaminedHost& h = hosts_[host];
  if (!h.proving) return;
  h.proving = false;
  probed_.Note(host, proven);
  if (!proven.trouble.empty()) {
    Fail(host, Printable(proven.trouble, 1000));
    return hosts_.ForgiveTheLost(probed_);
  }
  hosts_.Enter(host, HostStage::kReady, now_);
}

// ---- pairs

void Examination::OpenProbes() {
  if (probed_.size() < 2) return;
  for (uint32_t host : probed_.hosts()) Send(host, QuestionFor<OpenProbe>(host));
  pairs_.Plan();
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

std::vector<ExaminationAction> Examination::PopActions() { return std::exchange(actions_, {}); }

std::optional<TimePoint> Examination::NextTick() const {
  if (phase_ == Phase::kOver) return std::nullopt;
  if (phase_ == Phase::kFinishing) return finish_until_;
  const std::optional<TimePoint> next = hosts_.NextExpiry();
  if (phase_ != Phase::kMeasuring) return next;
  return next ? std::min(*next, pairs_.deadline()) : pairs_.deadline();
}

std::string Examination::Progress() const {
  switch (phase_) {
    case Phase::kReaching: return hosts_.Counts();
    case Phase::kProving: return "the hosts look for each other";
    case Phase::kExamining: {
      const size_t waiting = hosts_.Count(&ExaminedHost::examining);
      return Format("waiting for what {}{}", waiting, waiting == 1 ? " host has" : " hosts have");
    }
    case Phase::kMeasuring: return "measuring pairs of hosts: " + pairs_.Progress();
    case Phase::kFinishing:
    case Phase::kOver: return "";
  }
  return "";
}

std::string Examination::PopSlow(TimePoint now) { return hosts_.PopSlow(now); }

}  // namespace hvd
