// The promises of every InterHostComm (inter_host_comm.h), written as what one leader does and
// sees. A program enrols an implementation by saying how a world of leaders is opened and where
// their code runs: in threads of one process, or in processes that all run every test.
#ifndef HVD_TEST_CONTRACT_RUNTIME_INTER_HOST_CONTRACT_H_
#define HVD_TEST_CONTRACT_RUNTIME_INTER_HOST_CONTRACT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/inter_host_comm.h"
#include "test/support/deadline.h"

namespace hvd::test {

// One leader and what it knows of the others.
struct Leader {
  InterHostComm& comm;
  const std::vector<uint32_t>& ranks;  // of all leaders, in their order
  uint32_t index;                      // of this one

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  uint32_t rank() const { return ranks[index]; }
  uint32_t next() const { return ranks[(index + 1) % size()]; }
  uint32_t previous() const { return ranks[(index + size() - 1) % size()]; }
  // Of all leaders.
  InterHostCall Call(uint64_t tag = 1) const {
    return {.group = {ranks, index}, .tag = tag, .idle_limit = kDeadline};
  }
};

class LeaderWorld {
 public:
  virtual ~LeaderWorld() = default;
  // Runs the body for every leader that lives in this process, beside each other, and returns when
  // it has ended for all of them.
  virtual void Run(const std::function<void(const Leader&)>& body) = 0;
};

struct InterHostImplementation {
  std::string name;
  std::function<std::vector<uint32_t>()> sizes;  // of the worlds that it is asked for
  std::function<std::unique_ptr<LeaderWorld>(uint32_t size)> open;
};

class InterHostContract : public ::testing::TestWithParam<InterHostImplementation> {
 protected:
  // In a world of each size of at least `least` leaders.
  void InWorlds(uint32_t least, const std::function<void(const Leader&)>& body) {
    bool any = false;
    for (uint32_t size : GetParam().sizes()) {
      if (size < least) continue;
      any = true;
      GetParam().open(size)->Run(body);
    }
    if (!any) GTEST_SKIP() << "it takes " << least << " leaders";
  }
};

inline std::string NameOfImplementation(
    const ::testing::TestParamInfo<InterHostImplementation>& info) {
  return info.param.name;
}

}  // namespace hvd::test

#endif  // HVD_TEST_CONTRACT_RUNTIME_INTER_HOST_CONTRACT_H_
