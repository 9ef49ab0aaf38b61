#include "runtime/segment/mapped_page.h"

#include <utility>

namespace hvd {

Result<MappedPage> MapPage(int fd, size_t bytes) {
  Result<Mapping> memory = Mapping::Map(fd, bytes);
  if (!memory.ok()) return memory.status();
  Result<JobPage> page = JobPage::View(memory->data(), memory->size());
  if (!page.ok()) return page.status();
  return MappedPage{std::move(*memory), *page};
}

}  // namespace hvd
