// A wait that takes too long, on a clock of its own: when it is said, and how it ends the world on
// all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/core/engine.h"
#include "test/fakes/inproc/inproc_backend.h"
#include "test/sim/sim_peers.h"

namespace hvd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Each look takes a second.
class TickingClock final : public Clock {
 public:
  TimePoint Now() const override { return now_ += std::chrono::seconds(1); }

 private:
  mutable TimePoint now_{};
};

class EngineStall : public ::testing::Test {
 protected:
  Engine EngineOf(test::SimPeers& peers, Duration shutdown) {
    EngineOptions options;
    options.stall_warning = std::chrono::seconds(10);
    options.stall_shutdown = shutdown;
    options.clock = &clock_;
    options.report_ending = [this](EndCause cause, const std::string& reason) {
      EXPECT_EQ(cause, EndCause::kStall);
      told_.push_back(reason);
    };
    return Engine(peers, backend_, heap_, WorldOnOneHost(peers.rank(), peers.size()), options);
  }
  RequestSpec Barrier(const char* name) {
    RequestSpec spec;
    spec.collective = Collective::kBarrier;
    spec.name = name;
    return spec;
  }

  TickingClock clock_;
  std::vector<std::string> told_;  // to the launcher, of all engines
  LocalSegmentSource segments_;
  SharedHeap heap_{segments_};
  InprocBackend backend_{heap_};
  test::SimNet net_{3, 100, 1000};
  test::SimPeers first_{net_, 0}, second_{net_, 1};
};

TEST_F(EngineStall, IsSaidWithTheRanksThatAreMissing) {
  Engine engine = EngineOf(first_, Duration(0));
  Result<Engine::Handle> handle = engine.Submit(Barrier("sync"));
  ASSERT_TRUE(handle.ok());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(engine.Wait(*handle, std::chrono::seconds(35)).code(), Code::kInProgress);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("rank 0 has waited "));
  EXPECT_THAT(said, HasSubstr(" s in 'sync' for rank 1, 2 to submit it"));
}

TEST_F(EngineStall, BeyondItsLimitEndsTheWorldOnAllRanksWithOneSentence) {
  Engine engine = EngineOf(first_, std::chrono::seconds(100));
  Engine other = EngineOf(second_, Duration(0));
  Result<Engine::Handle> handle = engine.Submit(Barrier("sync"));
  ASSERT_TRUE(handle.ok());
  ::testing::internal::CaptureStderr();
  Status ended = engine.Wait(*handle, Duration(-1));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(ended.code(), Code::kAborted);
  EXPECT_THAT(ended.message(),
              AllOf(HasSubstr("in 'sync' for rank 1, 2 to submit it"),
                    HasSubstr("longer than HOROVOD_STALL_SHUTDOWN_TIME_SECONDS allows")));
  EXPECT_EQ(told_, std::vector{ended.message()});
  EXPECT_EQ(engine.Submit(Barrier("next")).status().message(), ended.message());
  net_.DeliverAll();
  other.TryProgress();
  EXPECT_EQ(other.Submit(Barrier("sync")).status().message(), ended.message());
}

}  // namespace
}  // namespace hvd
