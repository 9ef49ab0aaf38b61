#include "runtime/bootstrap/solo_bootstrap.h"

namespace hvd {

Result<World> SoloBootstrap::Join(Duration) {
  World world;
  world.generation = ++generation_;
  const size_t bytes = JobPage::BytesFor(1);
  Result<UniqueFd> fd = CreateSharedMemory("hvd-page", bytes);
  if (!fd.ok()) return fd.status();
  Result<Mapping> memory = Mapping::Map(fd->get(), bytes);
  if (!memory.ok()) return memory.status();
  world.page = JobPage::Format(memory->data(), 1, world.generation);
  world.page_memory = std::move(*memory);
  world.page_fd = std::move(*fd);
  return world;
}

void SoloBootstrap::Leave(uint64_t, TimePoint) {
  MutexLock lock(mutex_);
  values_.clear();
}

Status SoloBootstrap::Put(const std::string& key, const std::string& value) {
  HVD_RETURN_IF_ERROR(CheckKvKey(key));
  MutexLock lock(mutex_);
  values_[key] = value;
  return Status::Ok();
}

Result<std::string> SoloBootstrap::Get(const std::string& key, Duration) {
  HVD_RETURN_IF_ERROR(CheckKvKey(key));
  MutexLock lock(mutex_);
  auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  return Status(Code::kInProgress, "no rank has put '" + key + "' into the directory");
}

}  // namespace hvd
