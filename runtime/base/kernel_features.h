// Means of the kernel that tests switch off one by one, so that their substitutes are tested on
// every kernel.
#ifndef HVD_RUNTIME_BASE_KERNEL_FEATURES_H_
#define HVD_RUNTIME_BASE_KERNEL_FEATURES_H_

#include <string_view>

namespace hvd {

// True when HVD_TEST_WITHOUT, a list with commas, names this one: cgroup, pidfd, memfd, close_range
// or futex_waitv. The variable is read once.
bool Without(std::string_view means);

// Whether `list`, with commas, holds `word`. Pure.
bool ListHolds(std::string_view list, std::string_view word);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_KERNEL_FEATURES_H_
