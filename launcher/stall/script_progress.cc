#include "launcher/stall/script_progress.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

constexpr uint64_t kTicksPerSecond = 100, kFewTicks = 5;

int64_t MsSince(TimePoint since, TimePoint now) {
  return (now - since) / std::chrono::milliseconds(1);
}

uint64_t Growth(uint64_t before, uint64_t after) { return after - std::min(before, after); }

}  // namespace

void ScriptProgress::NoteSign(TimePoint now) { sign_ = now; }

void ScriptProgress::AddReading(ScriptReading reading, TimePoint now) {
  const bool first = readings_.empty();
  const ScriptReading* last = first ? nullptr : &readings_.back().second;
  if (first || last->pid != reading.pid) {
    if (first) sign_ = now;
    readings_.clear();
    still_since_ = now;
    call_.reset();
    asked_ = false;
  } else if (last->sleeps != reading.sleeps) {
    still_since_ = now;
  }
  readings_.emplace_back(now, std::move(reading));
  // Keeps one reading that is at least half of the warning time old.
  while (readings_.size() > 2 && now - readings_[1].first >= warning_ / 2) readings_.pop_front();
}

bool ScriptProgress::WantsStacks(TimePoint now) const {
  if (readings_.empty() || !IsSilent(now)) return false;
  // A thread that has not woken up since is still at the same place.
  if (call_ && sampled_ >= still_since_ && readings_.back().second.state != "R") return false;
  return !asked_ || now - sampled_ >= warning_;
}

void ScriptProgress::NoteStacks(const ForeignCall& call, TimePoint now) {
  const bool same =
      call_ && call_->call == call.call && call_->site == call.site && sign_ <= same_since_;
  if (!same) same_since_ = now;
  call_ = call;
  trouble_.clear();
  asked_ = true;
  sampled_ = now;
}

void ScriptProgress::NoteTrouble(std::string trouble, TimePoint now) {
  call_.reset();
  trouble_ = std::move(trouble);
  asked_ = true;
  sampled_ = now;
}

ScriptObservation ScriptProgress::Observe(uint32_t worker, TimePoint now) const {
  ScriptObservation seen;
  seen.worker = worker;
  if (readings_.empty()) return seen;
  const auto& [first_at, first] = readings_.front();
  const auto& [last_at, last] = readings_.back();
  seen.pid = last.pid;
  seen.state = last.state;
  seen.blocked_in = last.blocked_in;
  seen.silent_ms = MsSince(sign_, now);
  seen.still_ms = MsSince(still_since_, last_at);
  const auto window = static_cast<uint64_t>(std::max<int64_t>(MsSince(first_at, last_at), 1));
  const uint64_t ticks = Growth(first.cpu_ticks, last.cpu_ticks);
  // Library threads use a tick now and then.
  const uint64_t cpu_ms = ticks < kFewTicks ? 0 : ticks * 1000 / kTicksPerSecond;
  seen.cpu_permille = static_cast<uint32_t>(std::min<uint64_t>(cpu_ms * 1000 / window, 1'000'000));
  seen.bytes_moved = Growth(first.bytes_moved, last.bytes_moved);
  seen.trouble = trouble_;
  if (!call_) return seen;
  seen.sampled = 1;
  seen.sample_ms = MsSince(sampled_, last_at);
  seen.same_ms = MsSince(same_since_, sampled_);
  seen.call = call_->is_ours ? "" : call_->call;
  seen.may_compute = call_->may_compute ? 1 : 0;
  seen.once = call_->once ? 1 : 0;
  seen.site = call_->site;
  seen.inside = call_->inside;
  return seen;
}

}  // namespace hvd
