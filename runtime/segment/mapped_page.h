// A job page together with its mapping.
#ifndef HVD_RUNTIME_SEGMENT_MAPPED_PAGE_H_
#define HVD_RUNTIME_SEGMENT_MAPPED_PAGE_H_

#include <cstddef>

#include "runtime/base/status.h"
#include "runtime/segment/job_page.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {

// The page is valid as long as `memory` is mapped, also after a move. Empty by default.
struct MappedPage {
  Mapping memory;
  JobPage page;
};

// Maps and checks the page of `bytes` bytes behind `fd`, which may be closed afterwards. An error
// if it cannot be mapped or is not a page of this layout (JobPage::View).
Result<MappedPage> MapPage(int fd, size_t bytes);

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_MAPPED_PAGE_H_
