#include "launcher/epoch_page.h"

#include <cstring>

namespace hvd {

Result<std::unique_ptr<EpochPage>> EpochPage::Make(uint64_t epoch, uint32_t local_size,
                                                   std::function<void(uint32_t)> on_death) {
  size_t bytes = JobPage::BytesFor(local_size);
  Result<UniqueFd> fd = CreateSharedMemory("hvd-page", bytes);
  if (!fd.ok()) return fd.status();
  if (Status status = ReservePages(fd->get(), bytes); !status.ok()) return status;
  if (Status status = SealSize(fd->get()); !status.ok()) return status;
  Result<Mapping> mapping = Mapping::Map(fd->get(), bytes);
  if (!mapping.ok()) return mapping.status();
  std::unique_ptr<EpochPage> made(new EpochPage);
  made->fd_ = std::make_shared<UniqueFd>(std::move(*fd));
  made->mapping_ = std::move(*mapping);
  made->page_ = JobPage::Format(made->mapping_.data(), local_size, epoch);
  made->watch_.emplace(made->page_, std::move(on_death));
  return made;
}

std::string EpochPage::LastCollectiveText(uint32_t local_rank) const {
  const LastCollective& last = page_.rank(local_rank).last;
  if (last.sequence.load(std::memory_order_acquire) == 0) return "";
  // A dying rank may have left the name half written; it is for reading only.
  std::string name(last.name, ::strnlen(last.name, sizeof last.name));
  if (name.empty()) return "";
  bool waiting = last.waiting.load(std::memory_order_acquire) != 0;
  return (waiting ? " while it waited for '" : "; its last collective was '") + name + "'";
}

bool EpochPage::HadFailed(uint32_t local_rank) const {
  return page_.rank(local_rank).last.failed.load(std::memory_order_acquire) != 0;
}

}  // namespace hvd
