#include "runtime/segment/commit_point.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

constexpr Duration kLongestSleep = std::chrono::milliseconds(100);

}  // namespace

Result<uint32_t> CommitPoint::Commit(Duration timeout) {
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(CheckWorld());
  uint64_t commit = std::exchange(waiting_at_, 0);
  // Before `hold` is read, in the total order shared with HoldCommits.
  if (commit == 0) commit = page_.rank(rank_).commits.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (page_.header().hold.load(std::memory_order_seq_cst) == 0) return 0U;
  return Answer(commit, timeout.count() < 0 ? TimePoint::max() : SteadyNow() + timeout);
}

Result<uint32_t> CommitPoint::Answer(uint64_t commit, TimePoint deadline) {
  const PageHeader& header = page_.header();
  for (;;) {
    HVD_RETURN_IF_ERROR(CheckWorld());
    const uint64_t act_at = header.act_at.load(std::memory_order_acquire);
    if (act_at > commit) return 0U;
    if (act_at != 0) {
      const uint32_t update = header.update.load(std::memory_order_relaxed);
      if ((update & kUpdateStop) != 0) stopping_.store(true, std::memory_order_release);
      return update;
    }
    if (header.hold.load(std::memory_order_seq_cst) == 0) return 0U;
    if (SteadyNow() >= deadline) {
      waiting_at_ = commit;
      return Status(Code::kInProgress, "the launcher has not said yet at which commit to act");
    }
    SleepUntilDecided(deadline);
  }
}

Status CommitPoint::CheckWorld() const {
  if (closed_.load(std::memory_order_acquire)) return Aborted(why_closed_);
  if (page_.broken()) return Aborted(page_.broken_text());
  return Status::Ok();
}

bool CommitPoint::Decided() const {
  const PageHeader& header = page_.header();
  return header.act_at.load(std::memory_order_acquire) != 0 ||
         header.hold.load(std::memory_order_acquire) == 0 || page_.broken() ||
         closed_.load(std::memory_order_acquire);
}

void CommitPoint::SleepUntilDecided(TimePoint deadline) {
  Doorbell& bell = page_.rank(rank_).bell;
  const uint32_t word = bell.word.load(std::memory_order_acquire);
  bell.sleeping.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in Ring
  if (!Decided()) {
    const Duration left = std::min<Duration>(deadline - SteadyNow(), kLongestSleep);
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    if (ns > 0) SleepOn(bell, word, ns);
  }
  bell.sleeping.fetch_sub(1, std::memory_order_relaxed);
}

void CommitPoint::Close(std::string_view sentence) {
  if (closing_.exchange(true, std::memory_order_acq_rel)) return;
  why_closed_ = sentence;
  closed_.store(true, std::memory_order_release);
  Ring(page_.rank(rank_).bell);
}

}  // namespace hvd
