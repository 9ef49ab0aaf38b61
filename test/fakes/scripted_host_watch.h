// A HostWatch whose answers are given by the test: at once, from the call itself.
#ifndef HVD_TEST_FAKES_SCRIPTED_HOST_WATCH_H_
#define HVD_TEST_FAKES_SCRIPTED_HOST_WATCH_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/elastic_hosts/host_watch.h"

namespace hvd {

class ScriptedHostWatch final : public HostWatch {
 public:
  void Start(std::function<void(const HostAnswer&)> on_answer) override {
    on_answer_ = std::move(on_answer);
  }
  void Stop() override { on_answer_ = nullptr; }
  bool watched() const { return on_answer_ != nullptr; }

  // Plays an answer of the source; passed on like an answer of a real one, so not if it is known
  // already.
  void Say(std::vector<HostSlots> hosts) { Tell(history_.Good(std::move(hosts))); }
  void Fail(const std::string& kind, const std::string& sentence) {
    Tell(history_.Bad({kind, sentence}));
  }

 private:
  void Tell(const std::optional<HostAnswer>& answer) {
    if (answer && on_answer_) on_answer_(*answer);
  }

  std::function<void(const HostAnswer&)> on_answer_;
  AnswerHistory history_;
};

}  // namespace hvd

#endif  // HVD_TEST_FAKES_SCRIPTED_HOST_WATCH_H_
