// RefusedBootstrap: for an invalid environment. Every init fails with the reason.
#ifndef HVD_RUNTIME_BOOTSTRAP_REFUSED_BOOTSTRAP_H_
#define HVD_RUNTIME_BOOTSTRAP_REFUSED_BOOTSTRAP_H_

#include <string>
#include <utility>

#include "runtime/bootstrap/bootstrap.h"

namespace hvd {

class RefusedBootstrap final : public Bootstrap, private KvStore {
 public:
  explicit RefusedBootstrap(Status why) : why_(std::move(why)) {}

  Result<World> Join(Duration) override { return why_; }
  void Leave(uint64_t, TimePoint) override {}
  SegmentSource& segments() override { return segments_; }
  KvStore& directory() override { return *this; }
  Status PollAgent() override { return Status::Ok(); }
  bool watched() const override { return false; }
  void CloseAfterFork() override {}

 private:
  Status Put(const std::string&, const std::string&) override { return why_; }
  Result<std::string> Get(const std::string&, Duration) override { return why_; }

  const Status why_;
  LocalSegmentSource segments_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_REFUSED_BOOTSTRAP_H_
