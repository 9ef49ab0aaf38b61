// A backend whose operations take a while: each is complete after a number of looks that the seed
// decides. Tests only.
#ifndef HVD_TEST_SIM_LATE_BACKEND_H_
#define HVD_TEST_SIM_LATE_BACKEND_H_

#include <memory>
#include <random>

#include "test/fakes/inproc/inproc_backend.h"

namespace hvd::test {

class LateBackend final : public Backend {
 public:
  // Both outlive the backend.
  LateBackend(SharedHeap& heap, std::mt19937_64& random) : inner_(heap), random_(random) {}

  std::string_view name() const override { return "late"; }

  Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                 BufferDescriptor* descriptor) override {
    auto late = std::make_unique<Late>();
    if (random_() % 2 == 0) late->looks = random_() % 6;
    *state = std::move(late);
    return inner_.Prepare(call, nullptr, descriptor);
  }
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     const MemberInputs& parts) override {
    Result<bool> started = inner_.Start(call, nullptr, parts);
    if (!started.ok()) return started;
    return static_cast<Late*>(state)->looks == 0;
  }
  Result<bool> Advance(const CollectiveCall&, OpState* state) override {
    return --static_cast<Late*>(state)->looks == 0;
  }
  bool Needs(const CollectiveCall&, const OpState*, uint32_t) const override { return false; }
  std::string Awaits(const CollectiveCall&, const OpState*) const override { return ""; }
  void Withdraw(const CollectiveCall&, const OpState*, std::string) override {}
  void Abandon(std::unique_ptr<OpState>, bool) override {}
  void Abort(const Status&) override {}

 private:
  struct Late final : OpState {
    uint64_t looks = 0;
  };
  InprocBackend inner_;
  std::mt19937_64& random_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_LATE_BACKEND_H_
