// GenerationPage: the agent's mapping of the shared page of one generation: creates it, watches it
// for deaths, releases it. A rank may overwrite any part of the page by mistake, so the agent
// relies on its own copy of what it wrote.
#ifndef HVD_LAUNCHER_GENERATION_GENERATION_PAGE_H_
#define HVD_LAUNCHER_GENERATION_GENERATION_PAGE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "runtime/segment/alive.h"
#include "runtime/segment/job_page.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {

class GenerationPage {
 public:
  // Both run on a thread of the watch: `on_death(local rank)` within a millisecond of the death,
  // `on_damage(local rank)` when another writer has overwritten that rank's liveness mark.
  static Result<std::unique_ptr<GenerationPage>> Make(uint64_t generation, uint32_t local_size,
                                                      std::function<void(uint32_t)> on_death,
                                                      std::function<void(uint32_t)> on_damage = {});

  uint64_t generation() const { return generation_; }
  // As JobPage's, by this process's own memory: the content of the page may have been overwritten.
  bool broken() const { return broken_; }
  void Break(std::string_view sentence);
  // True if only this process has written to the page's header.
  bool HeaderIsSound() const;
  size_t bytes() const { return mapping_.size(); }
  const std::shared_ptr<UniqueFd>& fd() const { return fd_; }
  const JobPage& page() const { return page_; }
  // "; its last collective was 'x'", or empty.
  std::string LastCollectiveText(uint32_t local_rank) const;
  // A collective of the rank had failed because of other ranks.
  bool HadFailed(uint32_t local_rank) const;

  // Holds all ranks at their next commit; returns the highest number of commits passed.
  uint64_t HoldCommits();
  // As JobPage's: all ranks act at this commit.
  void ActAt(uint64_t commit, uint32_t update, uint32_t grace_ms);
  // Number of commits that the rank has passed in this generation.
  uint64_t Commits(uint32_t local_rank) const { return page_.Commits(local_rank); }

 private:
  GenerationPage() = default;

  void RepairHeader();

  std::shared_ptr<UniqueFd> fd_;
  Mapping mapping_;
  JobPage page_;
  uint64_t generation_ = 0;
  bool broken_ = false;
  std::vector<std::byte> facts_;     // the header up to `broken`, as it was made
  std::optional<DeathWatch> watch_;  // last: it reads the mapping and must end first
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_GENERATION_GENERATION_PAGE_H_
