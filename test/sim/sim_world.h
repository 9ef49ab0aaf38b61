// Engines of many ranks on one or several hosts in one thread, driven through a random program by a
// seeded scheduler. Tests only.
#ifndef HVD_TEST_SIM_SIM_WORLD_H_
#define HVD_TEST_SIM_SIM_WORLD_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/core/engine.h"
#include "test/sim/late_backend.h"
#include "test/sim/program.h"
#include "test/sim/seeded_threads.h"
#include "test/sim/sim_hosts.h"
#include "test/sim/sim_peers.h"

namespace hvd::test {

// Each look at it takes a nanosecond, so that waits come to their end.
class TickingClock final : public Clock {
 public:
  TimePoint Now() const override { return now_ += Duration(1); }
  void Advance(Duration d) { now_ += d; }

 private:
  mutable TimePoint now_{};
};

// An event that may happen to the world, at a moment that the seed decides.
enum class Fault { kNone, kLeave, kBreak };

class SimWorld {
 public:
  // The host of each rank, ascending from 0.
  SimWorld(SimProgram program, std::vector<uint32_t> host_of, Fault fault, uint64_t seed);

  // Runs until every rank is through; "" or what went wrong.
  std::string Run();
  // Equal for equal runs.
  uint64_t fingerprint() const { return threads_ ? threads_->fingerprint() : 0; }

 private:
  // One submission of a rank. The buffers of its tensors live here.
  struct Flight {
    const SimOp* op = nullptr;  // null: a change of sets, or a join
    const SimStep* step = nullptr;
    Engine::Handle handle = 0;
    std::vector<std::vector<int64_t>> inputs, outputs;
    std::vector<std::vector<int64_t>> shapes;
  };
  struct Rank {
    std::vector<std::unique_ptr<Flight>> flights;  // whose memory the engine uses to its end
    std::unique_ptr<SimPeers> peers;
    std::unique_ptr<LateBackend> backend;
    std::unique_ptr<Engine> engine;
    size_t step = 0;
    std::deque<const SimOp*> to_submit;  // of this step, in program order
    bool fence = false;                  // the step's own submission is under way
    bool stopped = false;                // by a fault
    bool through = false;                // nothing more to do, or gone
    bool gone = false;
  };
  // How one operation ended on the ranks that have it behind them.
  struct Verdict {
    Status status;
    uint32_t rank = 0;
  };

  void Turn(uint32_t rank);
  void EnterStep(Rank& rank, uint32_t number);
  bool SubmitSomething(uint32_t number);
  void SubmitOp(uint32_t number, const SimOp& op);
  void Submit(uint32_t number, std::unique_ptr<Flight> flight, const RequestSpec& spec);
  void SubmitAndWait(uint32_t number, std::unique_ptr<Flight> flight, const RequestSpec& spec);
  void SubmitFence(uint32_t number, const SimStep& step);
  void LookAtFlight(uint32_t number);
  void Finish(uint32_t number, Flight& flight);
  void CheckOp(uint32_t number, const Flight& flight, const Status& status,
               const OperationResult& result);
  void CheckOutputs(uint32_t number, const Flight& flight, const OperationResult& result);
  void CheckVerdict(uint32_t number, const Flight& flight, const Status& status);
  Code ExpectedCode(const SimOp& op) const;
  void StrikeFault();
  void Stop(uint32_t number);
  bool AllThrough() const;
  bool StandsStill();
  bool MovedBy(int sweeps);
  uint64_t Events() const;
  void Notify(uint32_t rank);
  bool MayBeCutShort(const SimOp& op) const;
  SimNet& NetOf(uint32_t rank) { return *nets_[hosts_.host_of(rank)]; }
  std::string WhereAll() const;
  void Fail(std::string what);

  // Of the backends between hosts. Outlives them.
  std::unique_ptr<SeededThreads> threads_;
  SimProgram program_;
  const Fault fault_;
  std::mt19937_64 random_;
  TickingClock clock_;
  LocalSegmentSource segments_;
  SharedHeap heap_{segments_};
  SimHosts hosts_;
  std::vector<std::unique_ptr<SimNet>> nets_;  // by host
  std::vector<Rank> ranks_;
  uint64_t turns_ = 0, fault_turn_ = 0;
  std::optional<uint32_t> victim_;  // of a leave that has happened
  bool broken_ = false;
  uint64_t done_ = 0;  // submissions and completions
  std::map<const SimOp*, Verdict> verdicts_;
  std::map<const SimStep*, int32_t> last_joined_;
  std::string failure_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_SIM_WORLD_H_
