#include "launcher/elastic_hosts/script_trouble.h"

#include <string_view>

#include "configs/message_text.h"
#include "discovery/words.h"
#include "launcher/output/text/seconds_text.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using How = ScriptOutcome::How;

std::string ScriptText(const std::string& command) {
  return "the discovery script " + Quoted(command, kMaxShownPath);
}

// ", which said 'no such cluster'": the last line that has text.
std::string LastWords(std::string_view said) {
  std::string_view last;
  LineReader lines(said);
  while (const auto line = lines.Next()) {
    if (const std::string_view text = Trimmed(*line); !text.empty()) last = text;
  }
  return last.empty() ? "" : ", and said " + Quoted(last, kMaxShownPath);
}

}  // namespace

std::optional<SourceTrouble> TroubleOf(const std::string& command, const ScriptOutcome& outcome,
                                       const ScriptLimits& limits) {
  const std::string script = ScriptText(command);
  switch (outcome.how) {
    case How::kNotStarted:
      return SourceTrouble{"not started", script + " cannot be started: " + outcome.reason};
    case How::kTooSlow:
      return SourceTrouble{"too slow", script + " took longer than " + SecondsText(limits.time) +
                                           " and was ended" + LastWords(outcome.said)};
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
  return SourceTrouble{end, script + " ended with " + end + LastWords(outcome.said), hopeless};
}

SourceTrouble BadOutput(const std::string& command, const std::string& reason) {
  return {"bad output", ScriptText(command) + " printed no list of hosts: " + reason};
}

}  // namespace hvd
