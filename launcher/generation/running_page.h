// RunningPage: the page of the generation that runs on this host, if any: delivers deaths detected
// by its threads on the io_context, and checks its header once a second.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_GENERATION_RUNNING_PAGE_H_
#define HVD_LAUNCHER_GENERATION_RUNNING_PAGE_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "launcher/generation/generation_page.h"
#include "runtime/base/status.h"

namespace hvd {

class RunningPage {
 public:
  // Run from the io_context. The page may be gone by then, so they pass its generation.
  struct Hooks {
    // As GenerationPage's.
    std::function<void(uint32_t local_rank, uint64_t generation)> on_death, on_damage;
    // Another process has written into the header.
    std::function<void()> on_header_damage;
  };

  // `io` outlives this object, and runs no more after it.
  RunningPage(asio::io_context& io, Hooks hooks);

  // Replaces the previous page, which is dropped in any case. `local_size`: number of ranks, at
  // least one. Errors as in GenerationPage::Make.
  Status Make(uint64_t generation, uint32_t local_size);
  void Drop();

  // Null: there is none.
  const GenerationPage* get() const { return page_.get(); }
  // 0: there is none.
  uint64_t generation() const { return page_ ? page_->generation() : 0; }
  // Null: another generation runs, or none.
  GenerationPage* Of(uint64_t generation) const;

  // Marks the page as broken. False when another generation runs, or it was broken before.
  bool Break(uint64_t generation, std::string_view reason);
  // As GenerationPage's; nothing happens when another generation runs. Returns 0 where this host
  // has no part in it.
  uint64_t HoldCommits(uint64_t generation);
  void ActAt(uint64_t generation, uint64_t commit, uint32_t update, uint32_t grace_ms);

 private:
  void WatchHeader();

  asio::io_context& io_;
  const Hooks hooks_;
  std::unique_ptr<GenerationPage> page_;
  asio::steady_timer header_timer_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_GENERATION_RUNNING_PAGE_H_
