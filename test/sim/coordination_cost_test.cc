// The costs of agreeing between hosts: messages and bytes of one training step, for each rank and
// for the process of rank 0, where the coordinator is. The coordinator and the encoding are the
// real ones; leaders answer at once. The cost of the exchange of the data itself is not in it.
#include <gtest/gtest.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/backends/hosts/coordination/coordinator.h"

namespace hvd {
namespace {

struct Cost {
  uint64_t messages = 0, bytes = 0;  // that reach or leave the coordinator
};

class StepOfTraining {
 public:
  StepOfTraining(uint32_t ranks, uint32_t ranks_per_host)
      : coordinator_(MapOf(ranks, ranks_per_host), SameDetails, CoordinatorOptions{}) {
    for (uint32_t rank = 0; rank < ranks; rank += ranks_per_host) leaders_.push_back(rank);
  }

  // One host after the other submits its gradients: `tensors` of 64 KiB, which fuse.
  Cost Run(uint64_t tensors) {
    for (uint32_t leader : leaders_) {
      for (uint64_t i = 0; i < tensors; ++i) {
        ReadyMessage ready;
        ready.ticket = i + 1;
        ready.name = "allreduce.layer." + std::to_string(i) + ".weight";
        ready.collective = Collective::kAllreduce;
        ready.detail = std::string(24, 'x');
        ready.fusion_key = 1;
        ready.parts = {{uint64_t{64} << 10, {}}};
        Say(leader, std::move(ready));
      }
    }
    return cost_;
  }

 private:
  static HostMap MapOf(uint32_t ranks, uint32_t ranks_per_host) {
    HostMap map;
    for (uint32_t rank = 0; rank < ranks; ++rank) map.host_of.push_back(rank / ranks_per_host);
    return map;
  }
  static Status SameDetails(std::string_view, std::span<const HostDetail>) { return Status::Ok(); }

  void Count(const Coordination& message) {
    ++cost_.messages;
    cost_.bytes += EncodeCoordination(message).size();
  }

  void Say(uint32_t leader, Coordination message) {
    Count(message);
    Coordinator::Answers answers;
    ASSERT_TRUE(coordinator_.Receive(leader, std::move(message), TimePoint{}, &answers).ok());
    std::vector<uint64_t> done;
    for (const Coordinator::Answer& answer : answers) {
      Count(answer.msg);
      const auto* run = std::get_if<RunMessage>(&answer.msg);
      if (run != nullptr && answer.to == leaders_[0]) done.push_back(run->number);
    }
    for (uint64_t number : done) Say(leaders_[0], DoneMessage{number});
  }

  Coordinator coordinator_;
  std::vector<uint32_t> leaders_;
  Cost cost_;
};

TEST(CoordinationCost, OfAStepByNumberOfRanks) {
  constexpr uint64_t kTensors = 161;
  std::printf(
      "a step of %llu tensors | for each rank: messages, bytes | at rank 0: messages, "
      "bytes\n",
      static_cast<unsigned long long>(kTensors));
  for (uint32_t ranks_per_host : {1u, 8u}) {
    double least = 0;
    for (uint32_t ranks : {64u, 256u, 1024u}) {
      StepOfTraining step(ranks, ranks_per_host);
      const Cost cost = step.Run(kTensors);
      const double messages = static_cast<double>(cost.messages) / ranks;
      std::printf("%5u ranks, %u a host | %8.1f %10.0f | %8llu %12llu\n", ranks, ranks_per_host,
                  messages, static_cast<double>(cost.bytes) / ranks,
                  static_cast<unsigned long long>(cost.messages),
                  static_cast<unsigned long long>(cost.bytes));
      if (least == 0) least = messages;
      EXPECT_LT(messages, least * 1.1) << "messages of a rank do not grow with their number";
    }
  }
}

}  // namespace
}  // namespace hvd
