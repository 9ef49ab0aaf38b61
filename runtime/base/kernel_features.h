// Kernel features that tests can disable one by one, so that the fallbacks are tested on every
// kernel.
#ifndef HVD_RUNTIME_BASE_KERNEL_FEATURES_H_
#define HVD_RUNTIME_BASE_KERNEL_FEATURES_H_

#include <string_view>

namespace hvd {

// True if HVD_TEST_WITHOUT, a comma-separated list, contains the feature: cgroup, pidfd, memfd,
// close_range or futex_waitv. The variable is read once.
bool Without(std::string_view means);

// Whether the comma-separated `list` contains `word`. Pure.
bool ListHolds(std::string_view list, std::string_view word);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_KERNEL_FEATURES_H_
