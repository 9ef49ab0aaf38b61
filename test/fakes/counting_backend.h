// Passes every call on to another backend and counts the operations that were prepared: those that
// did not take the engine's fast path.
#ifndef HVD_TEST_FAKES_COUNTING_BACKEND_H_
#define HVD_TEST_FAKES_COUNTING_BACKEND_H_

#include <memory>
#include <string>
#include <utility>

#include "runtime/backends/backend.h"

namespace hvd::test {

class CountingBackend final : public Backend {
 public:
  // Both outlive this object. The count is changed with the engine's lock held.
  CountingBackend(Backend& inner, int* prepared) : inner_(inner), prepared_(*prepared) {}

  std::string_view name() const override { return inner_.name(); }
  Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                 BufferDescriptor* descriptor) override {
    ++prepared_;
    return inner_.Prepare(call, state, descriptor);
  }
  bool IsExchange(const CollectiveCall& call) const override { return inner_.IsExchange(call); }
  Attendance* attendance() override { return inner_.attendance(); }
  AwaitedRanks AwaitedBy(const CollectiveCall& call, const OpState* state) const override {
    return inner_.AwaitedBy(call, state);
  }
  void WorkAhead(const CollectiveCall& call, OpState* state) override {
    inner_.WorkAhead(call, state);
  }
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     const MemberInputs& parts) override {
    return inner_.Start(call, state, parts);
  }
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override {
    return inner_.Advance(call, state);
  }
  bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const override {
    return inner_.Needs(call, state, peer);
  }
  std::string Awaits(const CollectiveCall& call, const OpState* state) const override {
    return inner_.Awaits(call, state);
  }
  void Withdraw(const CollectiveCall& call, const OpState* state, std::string why) override {
    inner_.Withdraw(call, state, std::move(why));
  }
  void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) override {
    inner_.Abandon(std::move(state), peers_may_work);
  }
  void Abort(const Status& why) override { inner_.Abort(why); }

 private:
  Backend& inner_;
  int& prepared_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_COUNTING_BACKEND_H_
