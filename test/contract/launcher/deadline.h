// How long a contract test waits for anything before it fails: far more than a busy machine needs.
#ifndef HVD_TEST_CONTRACT_LAUNCHER_DEADLINE_H_
#define HVD_TEST_CONTRACT_LAUNCHER_DEADLINE_H_

#include <chrono>

namespace hvd {

inline constexpr auto kDeadline = std::chrono::seconds(60);

}  // namespace hvd

#endif  // HVD_TEST_CONTRACT_LAUNCHER_DEADLINE_H_
