// FakeCuda: a CUDA driver that records its calls. Streams are queues of work that nothing does
// until the test says Run, so that whatever is used before it is ready is found wrong. It notes
// broken rules (Complaints), such as memory or streams of one device in the context of another,
// lacks symbols and answers with errors on request. Kernels do what
// kernels.cu does.
//
// One at a time, since the driver's functions have no argument that could tell two apart; one
// thread.
#ifndef HVD_TEST_FAKES_CUDA_FAKE_CUDA_H_
#define HVD_TEST_FAKES_CUDA_FAKE_CUDA_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/cuda/driver_api.h"

namespace hvd {

// A range of memory that waiting work will touch.
struct FakeRange {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

struct CuEventObject {
  uint64_t recorded = 0, done = 0;  // how often; all rounds until `done`, and those in `early`,
  std::set<uint64_t> early;         // which another stream came to first
  CuContext context = nullptr;
  bool destroyed = false;

  bool Done(uint64_t round) const { return round <= done || early.contains(round); }
  void Signal(uint64_t round) {
    early.insert(round);
    while (early.erase(done + 1) != 0) ++done;
  }
};

struct FakeWork {
  std::function<void()> run;
  CuEvent signals = nullptr, awaits = nullptr;
  uint64_t round = 0;  // of the event
  std::vector<FakeRange> touches;
  std::function<bool()> may_run = nullptr;  // null: always
};

// A piece of captured work: gives itself to a stream, anew with each launch.
struct FakeNode {
  std::function<void(CuStream stream)> give;
  const void* owner = nullptr;  // a communicator of NCCL, which waits for the end of the graph
};

struct CuGraphObject {
  std::vector<FakeNode> nodes;
  bool destroyed = false;
};
struct CuGraphExecObject : CuGraphObject {};

struct CuStreamObject {
  std::deque<FakeWork> work;
  CuContext context = nullptr;  // of its device; null: of any
  bool destroyed = false;
  bool ours = false;            // made by the driver's call
  bool captured = false;        // by the program
  CuGraph capturing = nullptr;  // by us
};

namespace test {

class FakeCuda {
 public:
  FakeCuda();
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  // ---- what a loader sees
  void* Find(const std::string& symbol) const;
  CudaDriver Driver() const;
  static std::vector<std::string> Symbols();       // that a driver has to have
  static std::vector<std::string> GraphSymbols();  // without which there are no CUDA graphs
  static std::vector<std::string> AllSymbols();

  // ---- what the test decides
  std::set<std::string> lacking;
  int devices = 2;
  bool same_place = false;  // all of them are one GPU
  // The only kernels that are taken, by how they begin; empty: all are.
  std::string taken_image;
  // From now on the call answers `result`, and does nothing unless that is 0.
  void Fail(const std::string& symbol, CuResult result) { failures_[symbol] = result; }
  // The same for one call only: number `call` of those that are still to come, from 0 on. A call
  // that gives something back does so even then, as the driver's do.
  void FailOnce(const std::string& symbol, int call, CuResult result) {
    once_ = {symbol, entered_[symbol] + call, result};
  }
  void Disarm() { once_.result = 0; }
  // The call of FailOnce was made.
  bool failed_once() const { return once_.result == 0; }
  // Another thread captures in the usual mode, which some calls of ours would break.
  bool program_captures = false;
  // A stream of the framework's on this device (below 0: on any), and work in it.
  CuStream MakeStream(int device = -1);
  static void Give(CuStream stream, std::function<void()> work);
  // Does all work that waits for nothing; false if some is left.
  bool Run();
  // Does the work of one stream only, as far as it waits for nothing.
  void Run(CuStream stream);
  // Memory of this device (below 0: of any) as the framework has it.
  uint64_t MakeMemory(size_t bytes, int device = -1);

  // ---- what happened
  int Count(const std::string& symbol) const;  // without those that failed
  int Entered(const std::string& symbol) const;
  // Calls that made the processor wait.
  int Waits() const { return Count("cuStreamSynchronize") + Count("cuCtxSynchronize"); }
  const std::vector<std::string>& Complaints() const { return complaints_; }
  // The objects that were made by the driver's calls and are still there. Those of a context that
  // is unusable are the driver's, which takes them back when the process ends.
  std::vector<std::string> Leaks() const;
  size_t CurrentContexts() const { return current.size(); }

  // ---- for the driver's functions
  static FakeCuda& It() { return *it_; }
  // The answer that was ordered for this call, or 0.
  CuResult Enter(const char* symbol, bool needs_context = true);
  // Belongs to the current context from now on.
  void Own(uint64_t address) { owners_[address] = Current(); }
  // No call in it does anything any more.
  void Break(CuContext context) { unusable_.insert(context); }
  void Complain(const std::string& what) { complaints_.push_back(what); }
  CuContext Current() const { return current.empty() ? nullptr : current.back(); }
  CuStream AddStream(CuContext context);
  // Of the device whose context is current.
  void AddMemory(uint64_t address, size_t bytes);
  void Submit(CuStream stream, FakeWork work);
  // Work of a stream that captures.
  void Keep(CuStream stream, FakeNode node);
  bool HasGraphOf(const void* owner) const;
  bool Captures() const;
  void CheckNotCaptured(CuStream stream);
  void CheckDeviceRange(const char* symbol, uint64_t address, uint64_t bytes);
  void CheckIdle(const char* symbol, uint64_t begin, uint64_t bytes);

  std::vector<CuContext> current;
  const void* process = nullptr;  // that makes the calls; as the test says
  int retained = 0;
  std::map<CuContext, int> modules;
  bool started = false;
  std::vector<std::unique_ptr<CuStreamObject>> streams;  // destroyed ones, too
  std::vector<std::unique_ptr<CuEventObject>> events;
  std::vector<std::unique_ptr<CuGraphObject>> graphs;
  std::vector<std::unique_ptr<CuGraphExecObject>> execs;
  std::map<uint64_t, size_t> device_memory, framework_memory, pinned;
  CuStreamObject default_stream;
  static inline thread_local int capture_mode = 0;

 private:
  struct Once {
    std::string symbol;
    int call = 0;
    CuResult result = 0;  // 0: it has come, or there is none
  };

  CuResult Ordered(const std::string& symbol);
  bool IsOfUsable(uint64_t address) const;
  size_t Left(const std::map<uint64_t, size_t>& memory) const;
  bool RunFront(CuStreamObject& stream);

  static inline FakeCuda* it_ = nullptr;
  std::map<std::string, CuResult> failures_;
  std::map<std::string, int> counts_, entered_;
  Once once_;
  std::map<uint64_t, CuContext> owners_;  // of objects and memory
  std::vector<std::string> complaints_;
  std::vector<std::unique_ptr<std::byte[]>> backing_;
  std::map<uint64_t, CuContext> homes_;  // of pieces of memory; null: any device's
  std::set<CuContext> unusable_;
};

}  // namespace test
}  // namespace hvd

#endif  // HVD_TEST_FAKES_CUDA_FAKE_CUDA_H_
