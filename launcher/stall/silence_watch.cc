#include "launcher/stall/silence_watch.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "launcher/process/proc_file.h"
#include "launcher/process/process_tree.h"
#include "launcher/process/thread_state.h"
#include "launcher/stall/stack_reader.h"
#include "launcher/stall/verdict/foreign_call.h"

namespace hvd {
namespace {

constexpr Duration kShortestLook = std::chrono::milliseconds(250);
constexpr Duration kLongestLook = std::chrono::seconds(5);
// At one time.
constexpr size_t kMostReaders = 8;
constexpr Duration kReaderLimit = std::chrono::seconds(5);

// Its processes have a library in memory whose collectives wait for other ranks.
bool HasCollectives(pid_t pid) {
  const std::string maps = ReadProcFile(pid, "maps");
  const auto has = [&](std::string_view name) { return maps.find(name) != maps.npos; };
  return has("/libtorch_cpu.so") || has("/libmpi.so") || has("/libnccl.so");
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
  std::erase_if(watched_, [&](const auto& entry) {
    return std::ranges::find(workers, entry.first, &Workers::value_type::first) == workers.end();
  });
  for (const auto& [worker, pid] : workers) {
    Watched& watched = watched_.try_emplace(worker, warning_).first->second;
    watched.python = PythonBelow(pid, all, RunsPython);
    watched.progress.Take(ReadingOf(pid, watched.python, all), now);
    watched.progress.NoteSign(output_[worker]);
  }
}

// The libraries are looked for when the stacks are wanted, since both cost something.
void SilenceWatch::ReadStacks(TimePoint now) {
  if (reading_stacks_) return;
  std::vector<uint32_t> wanted;
  std::vector<pid_t> pids;
  for (auto& [worker, watched] : watched_) {
    if (!watched.progress.WantsStacks(now)) continue;
    watched.uses_collectives = watched.uses_collectives || HasCollectives(watched.python);
    wanted.push_back(worker);
  }
  const bool any_uses = std::ranges::any_of(
      watched_, [](const auto& entry) { return entry.second.uses_collectives; });
  if (wanted.size() > kMostReaders) wanted.resize(kMostReaders);
  if (wanted.empty() || !any_uses) return;
  for (uint32_t worker : wanted) pids.push_back(watched_.at(worker).python);
  reading_stacks_ = true;
  outside_.Ask(
      pids,
      [this, wanted, now](const OutsideStacks::Texts& texts) { HandleStacks(wanted, texts, now); },
      kReaderLimit, OutsideStacks::Errors::kKept);
}

void SilenceWatch::HandleStacks(const std::vector<uint32_t>& workers,
                                const OutsideStacks::Texts& texts, TimePoint asked) {
  reading_stacks_ = false;
  const bool installed = OutsideStacks::IsInstalled();
  for (uint32_t worker : workers) {
    const auto found = watched_.find(worker);
    if (found == watched_.end()) continue;
    Watched& watched = found->second;
    const auto text = texts.find(watched.python);
    const std::string* stacks = text == texts.end() ? nullptr : &text->second;
    if (std::string why = WhyNoStacks(stacks, installed); !why.empty()) {
      watched.progress.TakeTrouble(std::move(why), asked);
    } else {
      watched.progress.TakeStacks(ForeignCallIn(PySpyFrames(*stacks, watched.python)), asked);
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
  for (const auto& [worker, watched] : watched_) {
    if (silent) observed.ranks.push_back(watched.progress.Observe(worker, now));
  }
  hooks_.send(observed);
}

}  // namespace hvd
