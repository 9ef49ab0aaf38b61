#include "runtime/core/solo_bootstrap.h"

namespace hvd {

Result<World> SoloBootstrap::Join(Duration) {
  World world;
  world.epoch = ++epoch_;
  const size_t bytes = JobPage::BytesFor(1);
  Result<UniqueFd> fd = CreateSharedMemory("hvd-page", bytes);
  if (!fd.ok()) return fd.status();
  Result<Mapping> memory = Mapping::Map(fd->get(), bytes);
  if (!memory.ok()) return memory.status();
  world.page = JobPage::Format(memory->data(), 1, world.epoch);
  world.page_memory = std::move(*memory);
  world.page_fd = std::move(*fd);
  return world;
}

}  // namespace hvd
