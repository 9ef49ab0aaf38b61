#include "launcher/generation/generation_page.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "configs/message_text.h"

namespace hvd {
namespace {

// The bytes that the agent writes once, before the page is shared.
constexpr size_t kFactBytes = offsetof(PageHeader, broken);

}  // namespace

Result<std::unique_ptr<GenerationPage>> GenerationPage::Make(
    uint64_t generation, uint32_t local_size, std::function<void(uint32_t)> on_death,
    std::function<void(uint32_t)> on_damage) {
  size_t bytes = JobPage::BytesFor(local_size);
  Result<UniqueFd> fd = CreateSharedMemory("hvd-page", bytes);
  if (!fd.ok()) return fd.status();
  HVD_RETURN_IF_ERROR(ReservePages(fd->get(), bytes));
  HVD_RETURN_IF_ERROR(SealSize(fd->get()));
  Result<Mapping> mapping = Mapping::Map(fd->get(), bytes);
  if (!mapping.ok()) return mapping.status();
  std::unique_ptr<GenerationPage> made(new GenerationPage);
  made->fd_ = std::make_shared<UniqueFd>(std::move(*fd));
  made->mapping_ = std::move(*mapping);
  made->page_ = JobPage::Format(made->mapping_.data(), local_size, generation);
  made->generation_ = generation;
  made->facts_.assign(made->mapping_.data(), made->mapping_.data() + kFactBytes);
  made->watch_.emplace(made->page_, std::move(on_death), std::move(on_damage));
  return made;
}

bool GenerationPage::HeaderIsSound() const {
  return page_.header().broken.load(std::memory_order_acquire) == (broken_ ? 1U : 0U) &&
         std::memcmp(facts_.data(), mapping_.data(), facts_.size()) == 0;
}

void GenerationPage::RepairHeader() {
  std::memcpy(mapping_.data(), facts_.data(), facts_.size());
  page_.header().broken.store(0, std::memory_order_release);
}

// The page's own Break relies on the header.
void GenerationPage::Break(std::string_view sentence) {
  if (std::exchange(broken_, true)) return;
  RepairHeader();
  page_.Break(sentence);
}

std::string GenerationPage::LastCollectiveText(uint32_t local_rank) const {
  const LastCollective& last = page_.rank(local_rank).last;
  if (last.sequence.load(std::memory_order_acquire) == 0) return "";
  // A dying rank may have left the name half written; it is only for display.
  std::string name(last.name, ::strnlen(last.name, sizeof last.name));
  if (name.empty() || Printable(name) != name) return "";  // overwritten
  bool waiting = last.waiting.load(std::memory_order_acquire) != 0;
  return (waiting ? " while it waited for '" : "; its last collective was '") + name + "'";
}

bool GenerationPage::HadFailed(uint32_t local_rank) const {
  return page_.rank(local_rank).last.failed.load(std::memory_order_acquire) != 0;
}

uint64_t GenerationPage::HoldCommits() {
  page_.HoldCommits();
  return page_.MostCommits();
}

void GenerationPage::ActAt(uint64_t commit, uint32_t update, uint32_t grace_ms) {
  page_.ActAt(commit, update, grace_ms);
}

}  // namespace hvd
