// CommitPoint: a rank's commits, and the work that all ranks of the world do together at one of
// them.
//
// Each rank counts its commits in the page. As long as nothing has happened, a commit costs one
// atomic addition and one load, and no message. When something has (hosts came or went, the job is
// to stop), the agents of all hosts raise `hold`, the driver chooses a number above every count,
// and each rank acts at its commit of that number. So all ranks act at the same commit, although
// each of them only looks into the memory of its own host. SEGMENT.md has the argument.
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

// Thread-safe; threads that commit at the same time commit one after the other.
class CommitPoint {
 public:
  // `page` outlives this; `local_rank` is the rank that commits.
  CommitPoint(JobPage page, uint32_t local_rank) : page_(page), rank_(local_rank) {}

  // Counts one commit of the rank. The answer is 0 (go on) or the CommitUpdate bits by which all
  // ranks act at this commit or acted at an earlier one. Blocks while the number is being chosen,
  // at most `timeout` (< 0: no limit of its own): kInProgress then, and the next Commit goes on
  // with this commit instead of counting another. kAborted with the reason when the world is
  // broken, or Close was called.
  Result<uint32_t> Commit(Duration timeout);

  // Makes a Commit that waits fail with this sentence, and later ones too. From any thread; the
  // first sentence wins.
  void Close(std::string_view sentence);

  // True while the launcher has something at which all ranks will act at a commit to come.
  bool pending() const { return page_.header().hold.load(std::memory_order_acquire) != 0; }
  // True from the commit on at which the ranks agreed to stop.
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  // While stopping: how long the job waits for the ranks to end. Zero: no limit.
  std::chrono::milliseconds stop_grace() const {
    return std::chrono::milliseconds(page_.header().stop_grace_ms.load(std::memory_order_relaxed));
  }

 private:
  Result<uint32_t> Answer(uint64_t commit, TimePoint deadline) HVD_REQUIRES(mutex_);
  Status CheckWorld() const;
  // The answer is there, or none is needed.
  bool Decided() const;
  void SleepUntilDecided(TimePoint deadline);

  const JobPage page_;
  const uint32_t rank_;
  std::atomic<bool> closing_{false};  // a thread writes why_closed_, or has written it
  std::atomic<bool> closed_{false};   // why_closed_ is complete
  std::string why_closed_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  uint64_t waiting_at_ HVD_GUARDED_BY(mutex_) = 0;  // the commit that ran out of its time; 0: none
};

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_COMMIT_POINT_H_
