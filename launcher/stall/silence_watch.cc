#include "launcher/stall/silence_watch.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "launcher/process/proc_file.h"
#include "launcher/process/process_tree.h"
#include "launcher/process/thread_state.h"
#include "launcher/stall/stack_reader.h"
#include "launcher/stall/verdict/foreign_call.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// The variables of one launcher: the rank, and what distinguishes its world from others.
struct Names {
  std::string_view rank;
  std::array<std::string_view, 4> world;
};
constexpr auto kLaunchers = std::to_array<Names>({
    {"OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "", ""}},
    {"PMI_RANK", {"PMI_SIZE", "", "", ""}},
    {"RANK", {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"}},
});

// Empty where it has none.
std::string PlaceIn(std::string_view environment, const Names& names) {
  const std::optional<std::string> rank = VariableIn(environment, names.rank);
  if (!rank) return "";
  std::string place = *rank;
  for (const std::string_view name : names.world)
    place += "\n" + VariableIn(environment, name).value_or("");
  return place;
}

std::optional<uint32_t> GuestRankIn(std::string_view environment, std::string_view of_worker) {
  for (const Names& names : kLaunchers) {
    const std::string place = PlaceIn(environment, names);
    if (!place.empty() && place != PlaceIn(of_worker, names))
      return ParseWhole<uint32_t>(std::string_view(place).substr(0, place.find('\n')));
  }
  return std::nullopt;
}

}  // namespace

std::vector<GuestRank> GuestsBelow(pid_t worker, const std::vector<ProcessInfo>& all,
                                   const std::function<std::string(pid_t)>& environment_of) {
  std::vector<GuestRank> guests;
  const std::string of_worker = environment_of(worker);
  std::deque<pid_t> next{worker};
  for (; !next.empty(); next.pop_front()) {
    for (const ProcessInfo& process : all) {
      if (process.parent != next.front() || process.state == 'Z') continue;
      if (const auto rank = GuestRankIn(environment_of(process.pid), of_worker))
        guests.push_back({*rank, process.pid});
      else
        next.push_back(process.pid);
    }
  }
  return guests;
}

namespace {

constexpr Duration kShortestLook = std::chrono::milliseconds(250);
constexpr Duration kLongestLook = std::chrono::seconds(5);
// At the same time.
constexpr size_t kMostReaders = 8;
constexpr Duration kReaderLimit = std::chrono::seconds(5);

// Whether its processes have loaded a library whose collectives wait for other ranks.
bool HasCollectives(pid_t pid) {
  const std::string maps = ReadProcFile(pid, "maps");
  const auto has = [&](std::string_view name) { return maps.find(name) != maps.npos; };
  return has("/libtorch_cpu.so") || has("/libmpi.so") || has("/libmpich.so") ||
         has("/libmpi_abi.so") || has("/libnccl.so");
}

// The source line at which the process is, as the process sees the file.
std::string SourceLineOf(pid_t pid, const PythonFrame& frame) {
  const std::string folder =
      Format("/proc/{}/{}/", pid, frame.file.starts_with('/') ? "root" : "cwd");
  std::istringstream source(ReadSmallFile(folder + std::string(frame.file)));
  const auto number = ParseWhole<uint32_t>(frame.line).value_or(0);
  std::string line;
  for (uint32_t i = 0; i < number && std::getline(source, line); ++i) continue;
  return source ? line : "";
}

// mpi4py is written in C, where Python stacks end.
ForeignCall CallOf(pid_t pid, const std::vector<PythonFrame>& frames) {
  ForeignCall call = ForeignCallIn(frames);
  const bool may_be_mpi = call.call.empty() && !frames.empty() &&
                          ReadProcFile(pid, "maps").find("/mpi4py/MPI") != std::string::npos;
  if (may_be_mpi) call.call = MpiCallIn(SourceLineOf(pid, frames.front()));
  return call;
}

ScriptReading ReadingOf(pid_t worker, pid_t python, const std::vector<ProcessInfo>& all) {
  const ThreadState state = ReadThreadState(python);
  ScriptReading reading;
  reading.pid = python;
  reading.state = state.state;
  reading.blocked_in = state.blocked_in;
  reading.sleeps = ReadSleeps(python);
  const auto add = [&](pid_t pid) {
    const ProcessUse use = ReadProcessUse(pid);
    reading.cpu_ticks += use.cpu_ticks;
    reading.bytes_moved += use.bytes_moved;
  };
  add(worker);
  for (const ProcessInfo& process : DescendantsOf(worker, all)) add(process.pid);
  return reading;
}

}  // namespace

void SilenceWatch::Begin(Duration warning) {
  warning_ = warning;
  if (warning_ > Duration{}) LookAgain();
}

void SilenceWatch::NoteOutput(uint32_t worker) {
  if (warning_ > Duration{}) output_[worker] = clock_.Now();
}

void SilenceWatch::LookAgain() {
  Look(clock_.Now());
  look_timer_.expires_after(std::clamp(warning_ / 8, kShortestLook, kLongestLook));
  look_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) LookAgain();
  });
}

void SilenceWatch::Look(TimePoint now) {
  const Workers workers = hooks_.workers();
  for (const auto& [worker, pid] : workers) output_.try_emplace(worker, now);
  const bool any_moves = std::ranges::any_of(
      workers, [&](const auto& worker) { return now - output_[worker.first] < warning_ / 4; });
  if (any_moves || workers.empty() || hooks_.in_world()) {
    watched_.clear();
  } else {
    Read(workers, now);
    ReadStacks(now);
  }
  Report(now);
}

void SilenceWatch::Read(const Workers& workers, TimePoint now) {
  const std::vector<ProcessInfo> all = ListProcesses();
  std::map<Subject, pid_t> subjects;
  for (const auto& [worker, pid] : workers) {
    const std::vector<GuestRank> guests =
        GuestsBelow(pid, all, [](pid_t process) { return ReadProcFile(process, "environ"); });
    for (const GuestRank& guest : guests) subjects[{worker, guest.rank}] = guest.pid;
    if (guests.empty()) subjects[{worker, std::nullopt}] = pid;
  }
  std::erase_if(watched_, [&](const auto& entry) { return !subjects.contains(entry.first); });
  for (const auto& [subject, pid] : subjects) {
    Watched& watched = watched_.try_emplace(subject, warning_).first->second;
    watched.python = PythonBelow(pid, all, RunsPython);
    watched.progress.AddReading(ReadingOf(pid, watched.python, all), now);
    watched.progress.NoteSign(output_[subject.worker]);
  }
}

// Checks for the libraries only when stacks are wanted, because both are costly.
void SilenceWatch::ReadStacks(TimePoint now) {
  if (reading_stacks_) return;
  std::vector<Subject> wanted;
  std::vector<pid_t> pids;
  for (auto& [subject, watched] : watched_) {
    if (!watched.progress.WantsStacks(now)) continue;
    watched.uses_collectives = watched.uses_collectives || HasCollectives(watched.python);
    wanted.push_back(subject);
  }
  const bool any_uses = std::ranges::any_of(
      watched_, [](const auto& entry) { return entry.second.uses_collectives; });
  if (wanted.size() > kMostReaders) wanted.resize(kMostReaders);
  if (wanted.empty() || !any_uses) return;
  for (const Subject& subject : wanted) pids.push_back(watched_.at(subject).python);
  reading_stacks_ = true;
  outside_.Ask(
      pids,
      [this, wanted, now](const OutsideStacks::Texts& texts) { HandleStacks(wanted, texts, now); },
      kReaderLimit, OutsideStacks::Errors::kKept);
}

void SilenceWatch::HandleStacks(const std::vector<Subject>& subjects,
                                const OutsideStacks::Texts& texts, TimePoint asked) {
  reading_stacks_ = false;
  const bool installed = OutsideStacks::IsInstalled();
  for (const Subject& subject : subjects) {
    const auto found = watched_.find(subject);
    if (found == watched_.end()) continue;
    Watched& watched = found->second;
    const auto text = texts.find(watched.python);
    const std::string* stacks = text == texts.end() ? nullptr : &text->second;
    if (std::string why = WhyNoStacks(stacks, installed); !why.empty()) {
      watched.progress.NoteTrouble(std::move(why), asked);
    } else {
      watched.progress.NoteStacks(CallOf(watched.python, PySpyFrames(*stacks, watched.python)),
                                  asked);
    }
  }
}

void SilenceWatch::Report(TimePoint now) {
  const bool silent =
      std::ranges::any_of(watched_, [](const auto& e) { return e.second.uses_collectives; }) &&
      std::ranges::all_of(watched_, [&](const auto& e) { return e.second.progress.IsSilent(now); });
  if (!silent && !reported_) return;
  reported_ = silent;
  ScriptObserved observed;
  for (const auto& [subject, watched] : watched_) {
    if (!silent) break;
    ScriptObservation& seen =
        observed.ranks.emplace_back(watched.progress.Observe(subject.worker, now));
    seen.is_guest = subject.guest ? 1 : 0;
    seen.guest = subject.guest.value_or(0);
  }
  hooks_.send(observed);
}

}  // namespace hvd
