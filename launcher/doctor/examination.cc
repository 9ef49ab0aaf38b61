#include "launcher/doctor/examination.h"

#include <algorithm>
#include <utility>

#include "configs/message_text.h"
#include "launcher/agent/pair_probe.h"
#include "launcher/text/seconds_text.h"
#include "launcher/wire/probe_partners.h"

namespace hvd {
namespace {

constexpr uint32_t kTimes = 5;  // the quickest answer has the truest time
constexpr Duration kMargin = std::chrono::seconds(2);
constexpr uint64_t kProofGeneration = 0;

}  // namespace

Examination::Examination(ExaminationOptions options)
    : options_(std::move(options)),
      stages_(options_.hosts.size(), options_.stage_limits),
      hosts_(options_.hosts.size()) {
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
  proof_directory_.Begin(kProofGeneration);
  probe_directory_.Begin(PairProbe::kGeneration);
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
  AskTime(host);
}

void Examination::AskTime(uint32_t host) {
  hosts_[host].time_asked = now_;
  hosts_[host].asked_time = true;
  Send(host, hvd::AskTime{hosts_[host].times});
}

void Examination::On(uint32_t host, const TimeTold& told) {
  Host& h = hosts_[host];
  if (!h.asked_time || told.number != h.times || report_.hosts[host].same_as) return;
  h.asked_time = false;
  // The answer was given at some time in between.
  const Duration half = (now_ - h.time_asked) / 2;
  const int64_t here =
      (h.time_asked + half).time_since_epoch().count() + options_.wall_minus_steady_ns;
  std::optional<ClockSkew>& clock = report_.hosts[host].clock;
  if (!clock || half < clock->uncertainty)
    clock = ClockSkew{std::chrono::nanoseconds(told.wall_ns - here), half};
  if (++h.times < kTimes) return AskTime(host);
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
  GiveUpPairsOf(host, report.name + " was lost");
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
    if (phase_ == Phase::kMeasuring && now >= round_until_) {
      for (const auto& [host, index] : std::exchange(awaited_, {})) {
        PairReport& pair = report_.pairs[index];
        if (pair.trouble.empty())
          pair.trouble =
              report_.hosts[host].name + " did not measure it in time; is it overloaded?";
      }
    }
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
  for (const auto& [host, index] : std::exchange(awaited_, {}))
    report_.pairs[index].trouble = "was interrupted";
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
    if (std::any_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.proving; })) return;
    phase_ = Phase::kExamining;
  }
  if (phase_ == Phase::kExamining) {
    // Before the pairs: programs that run meanwhile would disturb the measurement.
    if (std::any_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.examining; }))
      return;
    phase_ = Phase::kMeasuring;
    OpenProbes();
  }
  while (phase_ == Phase::kMeasuring && awaited_.empty()) {
    if (round_ == rounds_.size()) {
      Finish();
    } else {
      NextRound();
    }
  }
  if (phase_ == Phase::kFinishing &&
      std::none_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.open; })) {
    phase_ = Phase::kOver;
  }
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
  question.host = hosts_[host].number;
  question.others = ProbePartners(hosts_[host].number, static_cast<uint32_t>(taking_part_.size()));
  for (uint32_t other : question.others)
    question.names.push_back(report_.hosts[taking_part_[other]].name);
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
    if (!Takes(host)) continue;
    hosts_[host].number = static_cast<uint32_t>(taking_part_.size());
    taking_part_.push_back(host);
  }
  if (!report_.pairs_wanted || taking_part_.size() < 2) {
    for (uint32_t host : taking_part_) {
      stages_.Enter(host, HostStage::kReady, now_);
      report_.hosts[host].stage = HostStage::kReady;
    }
    taking_part_.clear();
    return;
  }
  for (uint32_t host : taking_part_) {
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
  std::vector<uint32_t> others =
      ProbePartners(h.number, static_cast<uint32_t>(taking_part_.size()));
  for (size_t i = 0; i < std::min(others.size(), proven.addresses.size()); ++i) {
    if (!proven.addresses[i].empty()) h.reached.insert(taking_part_[others[i]]);
    if (i < proven.reasons.size() && !proven.reasons[i].empty())
      h.not_reached[taking_part_[others[i]]] = Printable(proven.reasons[i], 1000);
  }
  if (!proven.trouble.empty()) {
    Fail(host, Printable(proven.trouble, 1000));
    return ForgiveTheLost();
  }
  stages_.Enter(host, HostStage::kReady, now_);
  report_.hosts[host].stage = HostStage::kReady;
}

// A host that fails to reach one that was lost meanwhile, and no other, is not to blame.
void Examination::ForgiveTheLost() {
  for (uint32_t host : taking_part_) {
    HostReport& report = report_.hosts[host];
    if (!hosts_[host].open || report.trouble.empty() || report.stage != HostStage::kProof) continue;
    bool some_lost = false, all_lost = true;
    for (uint32_t number :
         ProbePartners(hosts_[host].number, static_cast<uint32_t>(taking_part_.size()))) {
      const uint32_t other = taking_part_[number];
      some_lost = some_lost || !hosts_[other].open;
      all_lost = all_lost && (!hosts_[other].open || hosts_[host].reached.contains(other));
    }
    if (!some_lost || !all_lost) continue;
    report.trouble.clear();
    report.stage = HostStage::kReady;
  }
}

// ---- pairs

void Examination::OpenProbes() {
  const auto count = static_cast<uint32_t>(taking_part_.size());
  if (count < 2) return;
  const std::vector<HostPair> pairs = PairsOf(count);
  report_.all_pairs = pairs.size() == size_t{count} * (count - 1) / 2;
  for (uint32_t host : taking_part_) Send(host, QuestionFor<OpenProbe>(host));
  rounds_ = RoundsOf(pairs);
}

void Examination::NextRound() {
  const auto number = static_cast<uint32_t>(round_ + 1);
  round_until_ = now_ + PairProbe::kAnswerLimit + kMargin;
  for (const auto& [first, second] : rounds_[round_++]) {
    const uint32_t a = taking_part_[first], b = taking_part_[second];
    PairReport& pair = report_.pairs.emplace_back();
    pair.a = a;
    pair.b = b;
    const auto index = static_cast<uint32_t>(report_.pairs.size() - 1);
    for (uint32_t host : {a, b}) {
      if (pair.trouble.empty() && !hosts_[host].open)
        pair.trouble = report_.hosts[host].name + " was lost";
    }
    const bool a_reaches = hosts_[a].reached.contains(b), b_reaches = hosts_[b].reached.contains(a);
    if (pair.trouble.empty() && !(a_reaches && b_reaches)) {
      const uint32_t who = a_reaches ? b : a, whom = a_reaches ? a : b;
      auto reason = hosts_[who].not_reached.find(whom);
      pair.trouble = report_.hosts[who].name + (reason == hosts_[who].not_reached.end()
                                                    ? " does not reach " + report_.hosts[whom].name
                                                    : ": " + reason->second);
    }
    if (!pair.trouble.empty()) continue;
    Send(a, MeasurePair{number, second, 1});
    Send(b, MeasurePair{number, first, 0});
    awaited_.insert({a, index});
    awaited_.insert({b, index});
  }
}

void Examination::On(uint32_t host, const PairMeasured& measured) {
  if (measured.number != round_ || measured.peer >= taking_part_.size()) return;
  const uint32_t peer = taking_part_[measured.peer];
  auto awaited = std::find_if(awaited_.begin(), awaited_.end(), [&](const auto& entry) {
    const PairReport& pair = report_.pairs[entry.second];
    return entry.first == host && (pair.a == peer || pair.b == peer);
  });
  if (awaited == awaited_.end()) return;
  PairReport& pair = report_.pairs[awaited->second];
  awaited_.erase(awaited);
  const bool leads = pair.a == host;
  (leads ? pair.address_b : pair.address_a) = Printable(measured.address);
  (leads ? pair.a_to_b : pair.b_to_a) = static_cast<double>(measured.bytes_a_second);
  if (leads) pair.latency = std::chrono::nanoseconds(measured.latency_ns);
  // The leading host knows better why it failed.
  if (!measured.trouble.empty() && (leads || pair.trouble.empty()))
    pair.trouble = Printable(measured.trouble, 500);
}

void Examination::GiveUpPairsOf(uint32_t host, const std::string& why) {
  std::set<uint32_t> indices;
  for (const auto& [who, index] : awaited_) {
    if (report_.pairs[index].a == host || report_.pairs[index].b == host) indices.insert(index);
  }
  for (uint32_t index : indices) {
    report_.pairs[index].trouble = why;
    std::erase_if(awaited_, [&](const auto& entry) { return entry.second == index; });
  }
}

// ---- the directories

KvTable* Examination::DirectoryOf(uint64_t generation) {
  if (generation == kProofGeneration) return &proof_directory_;
  return generation == PairProbe::kGeneration ? &probe_directory_ : nullptr;
}

void Examination::On(uint32_t, const PutKey& put) {
  KvTable* directory = DirectoryOf(put.generation);
  if (directory == nullptr) return;
  for (uint32_t reader : directory->Put(put.key, put.value))
    Send(reader, KeyValue{put.generation, put.key, put.value});
}

void Examination::On(uint32_t host, const WantKey& want) {
  KvTable* directory = DirectoryOf(want.generation);
  if (directory == nullptr) return;
  if (const std::string* value = directory->Find(want.key)) {
    Send(host, KeyValue{want.generation, want.key, *value});
  } else {
    directory->Await(host, want.key);
  }
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

std::vector<ExaminationAction> Examination::TakeActions() { return std::exchange(actions_, {}); }

std::optional<TimePoint> Examination::NextTick() const {
  if (phase_ == Phase::kOver) return std::nullopt;
  if (phase_ == Phase::kFinishing) return finish_until_;
  std::optional<TimePoint> next = stages_.NextExpiry();
  auto also = [&next](TimePoint at) { next = next ? std::min(*next, at) : at; };
  for (const Host& host : hosts_) {
    if (host.examining) also(host.exam_until);
  }
  if (phase_ == Phase::kMeasuring) also(round_until_);
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
    case Phase::kMeasuring:
      return "measuring pairs of hosts: round " + std::to_string(round_) + " of " +
             std::to_string(rounds_.size());
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
