// A HostSource that answers what the test wrote down: one answer per call, the last one again and
// again.
#ifndef HVD_TEST_FAKES_SCRIPTED_HOSTS_H_
#define HVD_TEST_FAKES_SCRIPTED_HOSTS_H_

#include <utility>
#include <vector>

#include "discovery/host_source.h"

namespace hvd {

class ScriptedHosts final : public HostSource {
 public:
  using Answer = Result<std::vector<HostSlots>>;
  explicit ScriptedHosts(std::vector<Answer> answers) : answers_(std::move(answers)) {}

  Answer Hosts() override {
    const Answer& answer = answers_[next_];
    if (next_ + 1 < answers_.size()) ++next_;
    return answer;
  }

 private:
  std::vector<Answer> answers_;
  size_t next_ = 0;
};

}  // namespace hvd

#endif  // HVD_TEST_FAKES_SCRIPTED_HOSTS_H_
