#include "runtime/api/timeline_session.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "runtime/api/hosts_session.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/trace/ticks.h"

namespace hvd {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(20);
constexpr size_t kMostRecords = 4096;
// Time between the two readings that give the rate of the processor's counter.
constexpr auto kCalibration = std::chrono::milliseconds(2);

bool IsSwitchedOn(const std::string& text) { return !text.empty() && text != "0"; }

// World ranks of the ranks on this host, by local rank.
std::vector<uint32_t> RanksHere(const World& world) {
  const Group group = WorldGroup(world);
  std::vector<uint32_t> ranks;
  for (uint32_t index : group.local_to_group) ranks.push_back(group.ranks[index]);
  return ranks;
}

}  // namespace

TimelineChoice TimelineChoiceFromEnv() {
  TimelineChoice choice;
  const std::string value = GetEnv("HOROVOD_TIMELINE").value_or("");
  const bool launcher = GetEnv("HVD_TIMELINE").value_or("") == "launcher";
  choice.may_start = !value.empty() || launcher;
  choice.mark_cycles = IsSwitchedOn(GetEnv("HOROVOD_TIMELINE_MARK_CYCLES").value_or(""));
  if (value != "DYNAMIC" && !launcher) choice.path = value;
  return choice;
}

TimelineSession::TimelineSession(const World& world) : world_(world) {}

Status TimelineSession::Start(const std::string& path, bool mark_cycles) {
  if (world_.rank != 0) return Status::Ok();
  MutexLock starting(thread_mutex_);
  {
    MutexLock lock(mutex_);
    if (writer_ != nullptr && writer_->path() == path) return Status::Ok();
  }
  const int64_t now_ns = SteadyNanoseconds();
  auto writer = TimelineWriter::Create({path, now_ns, WallNanoseconds() / 1000, 0});
  if (!writer.ok()) return writer.status();
  MutexLock lock(mutex_);
  Close();
  writer_ = std::move(*writer);
  const uint32_t bits = uint32_t{kTraceForProcess} | (mark_cycles ? uint32_t{kTraceCycles} : 0U);
  const std::vector<uint32_t> ranks = RanksHere(world_);
  clock_.Add(ReadTickPair());
  for (uint32_t local = 0; local < ranks.size(); ++local) {
    readers_.push_back({ranks[local], RingReader(world_.page.trace(local))});
    readers_.back().ring.SkipToNow();
    readers_.back().ring.Want(bits);
    writer_->BeginRank(ranks[local], "this host", world_.generation, now_ns);
  }
  if (thread_.joinable()) return Status::Ok();
  stopping_ = false;
  // Signals are for the threads of the application.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return Status::Ok();
}

void TimelineSession::Run() {
  MutexLock lock(mutex_);
  changed_.wait_for(mutex_, kCalibration);
  while (!stopping_) {
    Drain();
    changed_.wait_for(mutex_, kEvery);
  }
}

void TimelineSession::Drain() {
  if (writer_ == nullptr) return;
  clock_.Add(ReadTickPair());
  for (Reader& reader : readers_) {
    const bool ticks = reader.ring.clock() == TraceClock::kTsc;
    if (ticks && !clock_.ToSteadyNs(0)) return;  // too early
    while (reader.ring.HasMore()) {
      records_.clear();
      const uint64_t lost = reader.ring.Read(&records_, kMostRecords);
      StampInSteadyNs(records_, reader.ring.clock(), clock_);
      writer_->Add(reader.rank, records_, lost);
    }
  }
  if (Status written = writer_->Flush(); !written.ok())
    LogWarning(written.message() + "; training goes on without it");
}

void TimelineSession::Close() {
  if (writer_ == nullptr) return;
  Drain();
  for (Reader& reader : readers_)
    reader.ring.WantNoMore(uint32_t{kTraceForProcess} | uint32_t{kTraceCycles});
  readers_.clear();
  writer_->Finish();
  writer_.reset();
}

void TimelineSession::Stop() {
  MutexLock stopping(thread_mutex_);
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    // A timeline shorter than the calibration.
    if (!clock_.ToSteadyNs(0)) changed_.wait_for(mutex_, kCalibration);
    Close();
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

}  // namespace hvd
