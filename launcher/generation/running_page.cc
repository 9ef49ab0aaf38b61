#include "launcher/generation/running_page.h"

#include <asio/post.hpp>
#include <chrono>
#include <utility>

namespace hvd {
namespace {

constexpr auto kHeaderLook = std::chrono::seconds(1);

}  // namespace

RunningPage::RunningPage(asio::io_context& io, Hooks hooks)
    : io_(io), hooks_(std::move(hooks)), header_timer_(io) {}

Status RunningPage::Make(uint64_t generation, uint32_t local_size) {
  Drop();
  auto on_death = [this, generation](uint32_t local_rank) {
    asio::post(io_, [=, this] { hooks_.on_death(local_rank, generation); });
  };
  auto on_damage = [this, generation](uint32_t local_rank) {
    asio::post(io_, [=, this] { hooks_.on_damage(local_rank, generation); });
  };
  Result<std::unique_ptr<GenerationPage>> page =
      GenerationPage::Make(generation, local_size, on_death, on_damage);
  if (!page.ok()) return page.status();
  page_ = std::move(*page);
  WatchHeader();
  return Status::Ok();
}

void RunningPage::Drop() {
  header_timer_.cancel();
  page_.reset();
}

void RunningPage::WatchHeader() {
  header_timer_.expires_after(kHeaderLook);
  header_timer_.async_wait([this](const asio::error_code& error) {
    if (error || !page_) return;
    if (!page_->HeaderIsSound()) return hooks_.on_header_damage();
    WatchHeader();
  });
}

GenerationPage* RunningPage::Of(uint64_t generation) const {
  return page_ && page_->generation() == generation ? page_.get() : nullptr;
}

bool RunningPage::Break(uint64_t generation, std::string_view reason) {
  GenerationPage* page = Of(generation);
  if (page == nullptr || page->broken()) return false;
  page->Break(reason);
  return true;
}

uint64_t RunningPage::HoldCommits(uint64_t generation) {
  GenerationPage* page = Of(generation);
  return page == nullptr ? 0 : page->HoldCommits();
}

void RunningPage::ActAt(uint64_t generation, uint64_t commit, uint32_t update, uint32_t grace_ms) {
  if (GenerationPage* page = Of(generation)) page->ActAt(commit, update, grace_ms);
}

}  // namespace hvd
