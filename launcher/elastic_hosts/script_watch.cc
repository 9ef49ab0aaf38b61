#include "launcher/elastic_hosts/script_watch.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "configs/message_text.h"
#include "discovery/discovered_hosts.h"
#include "discovery/words.h"
#include "launcher/elastic_hosts/answer_history.h"
#include "launcher/elastic_hosts/script_run.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using How = ScriptOutcome::How;

std::string ScriptText(const std::string& command) {
  return "the discovery script " + Quoted(command, kMaxShownPath);
}

// ", which said 'no such cluster'": the last line that has text.
std::string LastOutput(std::string_view said) {
  std::string_view last;
  LineReader lines(said);
  while (const auto line = lines.Next()) {
    if (const std::string_view text = Trimmed(*line); !text.empty()) last = text;
  }
  return last.empty() ? "" : ", and said " + Quoted(last, kMaxShownPath);
}

// Describes in words how a run of a discovery script failed. Pure.
// Nothing when the script ended with 0; its output may still be no list of hosts.
std::optional<SourceTrouble> TroubleOf(const std::string& command, const ScriptOutcome& outcome,
                                       const ScriptLimits& limits) {
  const std::string script = ScriptText(command);
  switch (outcome.how) {
    case How::kNotStarted:
      return SourceTrouble{"not started", script + " cannot be started: " + outcome.reason};
    case How::kTooSlow:
      return SourceTrouble{"too slow", script + " took longer than " + SecondsText(limits.time) +
                                           " and was ended" + LastOutput(outcome.said)};
    case How::kTooMuch:
      return SourceTrouble{
          "too much", Format("{} printed more than {} bytes and was ended", script, limits.output)};
    case How::kExited: break;
  }
  if (outcome.end.ok()) return std::nullopt;
  const std::string end =
      (outcome.end.by_signal ? "signal " : "exit code ") + std::to_string(outcome.end.value);
  // As a shell says that there is no such program, or none that may be run.
  const bool hopeless =
      !outcome.end.by_signal && (outcome.end.value == 126 || outcome.end.value == 127);
  return SourceTrouble{end, script + " ended with " + end + LastOutput(outcome.said), hopeless};
}

// Of output that is no list of hosts. `reason`: of ParseDiscoveredHosts().
SourceTrouble BadOutput(const std::string& command, const std::string& reason) {
  return {"bad output", ScriptText(command) + " printed no list of hosts: " + reason};
}

}  // namespace

ScriptWatch::ScriptWatch(asio::io_context& io, Script script, WatchParts parts,
                         std::shared_ptr<LocalFamily> family, ScriptWatchTimes times)
    : ScriptWatch(io, std::move(script), std::move(parts), std::move(family), times,
                  ParseDiscoveredHosts, {}) {}

ScriptWatch::ScriptWatch(asio::io_context& io, Script script, WatchParts parts,
                         std::shared_ptr<LocalFamily> family, ScriptWatchTimes times,
                         ReadHosts read, std::vector<HostSpec> known)
    : io_(io),
      script_(std::move(script)),
      parts_(std::move(parts)),
      family_(std::move(family)),
      times_(times),
      read_(std::move(read)),
      known_(std::move(known)),
      pause_(io),
      named_(io, parts_) {}

void ScriptWatch::Start(std::function<void(const HostAnswer&)> on_answer) {
  on_answer_ = std::move(on_answer);
  watching_ = std::make_shared<const bool>(true);
  if (known_.empty()) return Run();
  TellHosts(std::move(known_));
}

void ScriptWatch::Stop() {
  watching_.reset();
  pause_.cancel();
  named_.Forget();
  run_.reset();
}

void ScriptWatch::Run() {
  run_ = std::make_unique<ScriptRun>(io_, family_, times_.limits,
                                     [this](ScriptOutcome outcome) { OnOutcome(outcome); });
  run_->Start(script_);
}

void ScriptWatch::RunLater() {
  pause_.expires_after(times_.pause);
  pause_.async_wait([this, watching = std::weak_ptr(watching_)](const asio::error_code& error) {
    if (!error && !watching.expired()) Run();
  });
}

void ScriptWatch::OnOutcome(const ScriptOutcome& outcome) {
  if (auto trouble = TroubleOf(script_.command, outcome, times_.limits))
    return Tell(history_.Bad(*trouble));
  std::vector<std::string> notes;
  auto specs = read_(outcome.output, notes);
  if (!specs.ok()) return Tell(history_.Bad(BadOutput(script_.command, specs.status().message())));
  NoteOnce(notes);
  TellHosts(std::move(*specs));
}

void ScriptWatch::TellHosts(std::vector<HostSpec> specs) {
  named_.Resolve(std::move(specs),
                 [this](std::vector<HostSlots> hosts) { Tell(history_.Good(std::move(hosts))); });
}

void ScriptWatch::Tell(const std::optional<HostAnswer>& answer) {
  RunLater();
  if (answer) on_answer_(*answer);  // which may stop us
}

void ScriptWatch::NoteOnce(const std::vector<std::string>& notes) {
  if (notes == noted_) return;
  noted_ = notes;
  for (const std::string& note : notes) parts_.note("the discovery script: " + note);
}

}  // namespace hvd
