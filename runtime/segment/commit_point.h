// CommitPoint: counts a rank's commits and makes all ranks of the world act at the same one.
//
// Each rank counts its commits in the page. Normally a commit costs one atomic addition and one
// load, and no message. When something has happened (hosts were added or removed, the job is to
// stop), the agents of all hosts raise `hold`, the driver chooses a number above every count, and
// each rank acts at its commit of that number. So all ranks act at the same commit, although each
// only reads the memory of its own host. SEGMENT.md has the proof.
//
// All ranks must commit at the same points of the program.
#ifndef HVD_RUNTIME_SEGMENT_COMMIT_POINT_H_
#define HVD_RUNTIME_SEGMENT_COMMIT_POINT_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/segment/job_page.h"

namespace hvd {

// Thread-safe; concurrent commits are serialised.
class CommitPoint {
 public:
  // `page` outlives this; `local_rank` is the rank that commits.
  CommitPoint(JobPage page, uint32_t local_rank) : page_(page), rank_(local_rank) {}

  // Counts one commit of the rank. Returns 0 (continue) or the CommitUpdate bits on which all ranks
  // act at this commit or acted at an earlier one. Blocks while the number is being chosen, at most
  // `timeout` (< 0: no limit of its own): kInProgress then, and the next Commit continues this
  // commit instead of counting another. kAborted with the reason if the world is broken or Close
  // was called.
  Result<uint32_t> Commit(Duration timeout);

  // Makes waiting and later Commits fail with this reason. From any thread; the first reason wins.
  void Close(std::string_view sentence);

  // True while the launcher has an update on which all ranks will act at a later commit.
  bool pending() const { return page_.header().hold.load(std::memory_order_acquire) != 0; }
  // True from the commit at which the ranks agreed to stop.
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  // While stopping: how long the job waits for the ranks to exit. Zero: no limit.
  std::chrono::milliseconds stop_grace() const {
    return std::chrono::milliseconds(page_.header().stop_grace_ms.load(std::memory_order_relaxed));
  }

 private:
  Result<uint32_t> Answer(uint64_t commit, TimePoint deadline) HVD_REQUIRES(mutex_);
  Status CheckWorld() const;
  // The answer is available, or none is needed.
  bool Decided() const;
  void SleepUntilDecided(TimePoint deadline);

  const JobPage page_;
  const uint32_t rank_;
  std::atomic<bool> closing_{false};  // why_closed_ is being written or has been written
  std::atomic<bool> closed_{false};   // why_closed_ is complete
  std::string why_closed_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  uint64_t waiting_at_ HVD_GUARDED_BY(mutex_) = 0;  // the commit that timed out; 0: none
};

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_COMMIT_POINT_H_
