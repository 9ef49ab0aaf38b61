// EpochPage: the agent's hold on the shared page of one epoch: makes it, watches it for deaths, lets go of it.
#ifndef HVD_LAUNCHER_EPOCH_PAGE_H_
#define HVD_LAUNCHER_EPOCH_PAGE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/unique_fd.h"
#include "runtime/segment/alive.h"
#include "runtime/segment/job_page.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {

class EpochPage {
 public:
  // `on_death(local rank)` runs on a thread of the watch, within a millisecond of the death.
  static Result<std::unique_ptr<EpochPage>> Make(uint64_t epoch, uint32_t local_size,
                                                 std::function<void(uint32_t)> on_death);

  uint64_t epoch() const { return page_.header().epoch; }
  size_t bytes() const { return mapping_.size(); }
  const std::shared_ptr<UniqueFd>& fd() const { return fd_; }
  const JobPage& page() const { return page_; }
  // "; its last collective was 'x'", or nothing when it had none.
  std::string LastCollectiveText(uint32_t local_rank) const;
  // A collective of the rank had failed because of other ranks.
  bool HadFailed(uint32_t local_rank) const;

 private:
  EpochPage() = default;

  std::shared_ptr<UniqueFd> fd_;
  Mapping mapping_;
  JobPage page_;
  std::optional<DeathWatch> watch_;  // last: it reads the mapping and must end first
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EPOCH_PAGE_H_
