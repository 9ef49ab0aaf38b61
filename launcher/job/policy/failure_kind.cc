#include "launcher/job/policy/failure_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace hvd {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr size_t kMostSignature = 300;
constexpr size_t kMostSignatures = 1000;  // for scripts whose every error has a different text

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::string_view PopLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// "ValueError: text", "package.Error": the line that begins with the name of a class.
bool IsExceptionLine(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  return !name.empty() && !IsDigit(name.front()) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80;
         });
}

// Ranks, ports and addresses differ from worker to worker.
std::string WithoutNumbers(std::string_view line) {
  std::string plain;
  for (size_t at = 0; at < line.size() && plain.size() < kMostSignature;) {
    if (!IsDigit(line[at])) {
      plain += line[at++];
      continue;
    }
    plain += '0';
    const bool hex = line.substr(at).starts_with("0x");
    at += hex ? 2 : 0;
    while (at < line.size() && (hex ? IsHexDigit(line[at]) : IsDigit(line[at]))) ++at;
  }
  return plain;
}

}  // namespace

std::string ExceptionSignature(std::string_view last_stderr) {
  const size_t last = last_stderr.rfind(kTraceback);
  if (last == std::string_view::npos) return "";
  std::string_view rest = last_stderr.substr(last);
  PopLine(rest);
  // The frames are indented, and the first line that is not names the exception.
  while (!rest.empty()) {
    const std::string_view line = PopLine(rest);
    if (line.empty() || line.front() == ' ' || line.front() == '\t') continue;
    return IsExceptionLine(line) ? WithoutNumbers(line) : "";
  }
  return "";
}

bool IsPeerLoss(std::string_view signature) {
  // The ranks' own requests contradict each other; no rank was lost.
  if (signature.find("ranks disagree about") != std::string_view::npos) return false;
  constexpr std::array kSigns = {
      std::string_view("HorovodInternalError"),
      std::string_view("HostsUpdatedInterrupt"),
      // torch.distributed
      std::string_view("DistNetworkError"),
      std::string_view("DistBackendError"),
      std::string_view("DistStoreError"),
      std::string_view("Connection closed by peer"),
      std::string_view("Connection reset by peer"),
      std::string_view("Connection refused"),
      std::string_view("Broken pipe"),
      std::string_view("NCCL communicator was aborted"),
      std::string_view("remote process exited"),
      std::string_view("Timed out waiting"),
  };
  return std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view sign) {
    return signature.find(sign) != std::string_view::npos;
  });
}

FailureKind FailureKinds::KindOf(const WorkerEndFacts& facts) {
  if (facts.host_lost) return FailureKind::kHostLost;
  if (facts.asked_to_leave) return FailureKind::kAskedToLeave;
  if (facts.preempted) return FailureKind::kPreempted;
  if (facts.out_of_memory) return FailureKind::kOutOfMemory;
  if (!facts.end.by_signal && facts.end.value != 0) {
    const std::string signature = ExceptionSignature(facts.last_stderr);
    if (!signature.empty()) return KindOfException(facts, signature);
  }
  return facts.is_consequence ? FailureKind::kConsequence : FailureKind::kCrash;
}

FailureKind FailureKinds::KindOfException(const WorkerEndFacts& facts,
                                          const std::string& signature) {
  if (facts.is_consequence || IsPeerLoss(signature)) return FailureKind::kConsequence;
  if (!facts.had_committed) return FailureKind::kUserError;
  if (places_.size() < kMostSignatures) places_.try_emplace(signature, facts.place);
  const auto first = places_.find(signature);
  const bool elsewhere = first != places_.end() && first->second != facts.place;
  return elsewhere ? FailureKind::kUserError : FailureKind::kCrash;
}

}  // namespace hvd
