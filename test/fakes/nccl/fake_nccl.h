// FakeNccl: an NCCL that records its calls, for all members of a communicator in one process. It
// stands on FakeCuda: its calls become work in the streams, which waits there for the other members
// and then really moves and reduces the bytes.
//
// A GPU has room for the kernel of one communicator of a process, so communicators whose kernels
// begin in different orders on two members wait for each other for ever.
//
// It notes broken rules (Complaints): a communicator used before it is ready, while it is at work,
// after an error or after its end, groups that are not balanced, members that call different
// things, memory that the device has not, operations of another communicator. It lacks symbols, has
// any version, answers with errors and answers late on request.
//
// One at a time, like FakeCuda, and one thread for all that touches streams. Abort and questions
// for errors come from any thread.
#ifndef HVD_TEST_FAKES_NCCL_FAKE_NCCL_H_
#define HVD_TEST_FAKES_NCCL_FAKE_NCCL_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/backends/nccl/nccl_loader.h"
#include "runtime/backends/nccl/nccl_plan.h"
#include "runtime/device/dtype.h"
#include "test/fakes/cuda/fake_cuda.h"

namespace hvd {

namespace test {

struct FakeNcclWorld;

// A call of all members, or a send with its receive.
struct FakeMeeting {
  // By rank; of a send and its receive, by 0 and 1.
  std::map<int, NcclCall> calls;
  std::map<int, double> factors;          // of pre-multiplied sums
  std::map<int, CuEventObject> released;  // tells the rank's stream that its part is done
  size_t needed = 0, arrived = 0;
  uint64_t capture = 0;  // see NcclCommObject::captures
};

struct FakePreMultiply {
  DType dtype;
  double factor;
};

// A call on its way into a stream.
struct FakeGiven {
  NcclCall call;
  std::optional<FakePreMultiply> factor;  // of its operation, which may be gone when it is launched
  uint64_t capture = 0;                   // 0: it is not of a graph
};

}  // namespace test

struct NcclCommObject {
  test::FakeNcclWorld* world = nullptr;
  int rank = 0;
  CuContext context = nullptr;  // of its device
  const void* process = nullptr;
  bool finalized = false, destroyed = false, aborted = false;
  bool failed = false;  // a call of it answered an error: its abort is all that may follow
  bool stuck = false;   // is in progress for ever
  // Answers to ncclCommGetAsyncError that are kNcclInProgress before what is waiting is given.
  int polls_left = 0;
  std::vector<std::pair<NcclCall, CuStream>> waiting;
  NcclResult async_error = kNcclSuccess;  // the test sets it
  std::map<NcclReduceOp, test::FakePreMultiply> operations;
  std::set<void*> registered;
  uint64_t captures = 0;     // calls of it in CUDA graphs so far: the same one is launched by all
  uint64_t collectives = 0;  // given so far
  std::map<std::pair<int, int>, uint64_t> pairs;  // sends and receives so far, by source and target
  std::vector<std::pair<std::shared_ptr<test::FakeMeeting>, int>> meetings;  // and the key there
};

namespace test {

struct FakeNcclWorld {
  std::vector<NcclCommHandle> members;  // null: has not come
  std::map<std::tuple<int, int, uint64_t>, std::shared_ptr<FakeMeeting>> meetings;
};

class FakeNccl {
 public:
  explicit FakeNccl(FakeCuda& cuda);
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  // ---- what a loader sees
  void* Find(const std::string& symbol) const;
  NcclLibrary Library() const;
  Result<NcclLibrary> TryLibrary() const;
  // Of the calls that every version has, but for those that give words.
  static std::vector<std::string> Symbols();
  static std::vector<std::string> OptionalSymbols();
  static std::vector<std::string> AllSymbols();  // kAsyncError among them

  // ---- what the test decides
  std::set<std::string> lacking;
  int version = 23007;
  std::string last_error;
  // How many questions a call is in progress for before it is in its stream.
  int slowness = 0;
  // As NCCL does: an abort frees memory, and returns when the device has left the kernels of all
  // communicators, also of those that nobody has aborted.
  bool aborts_wait = false;
  // An abort returns only when LetAbortsReturn is called.
  bool aborts_hang = false;
  void LetAbortsReturn();
  // From its `after`-th call on (0: the first) the call answers `result` and does nothing.
  void Fail(const std::string& symbol, NcclResult result, int after = 0);
  // Once: number `call` of the calls that are still to come, from 0 on, answers so, and does
  // nothing unless it gives something back. kAsyncError: so does the question for errors.
  void FailOnce(const std::string& symbol, int call, NcclResult result);
  // Once: the communicator of that call is in progress from then on, for ever.
  void HangOnce(const std::string& symbol, int call);
  // The call of FailOnce or HangOnce was made.
  bool failed_once() const { return !once_.set; }
  static constexpr char kAsyncError[] = "an error that comes later";

  // ---- what happened
  int Count(const std::string& symbol) const;  // without those that failed
  int Entered(const std::string& symbol) const;
  const std::vector<std::string>& Complaints() const { return complaints_; }
  // Communicators, operations and groups that are still there.
  std::vector<std::string> Leaks() const;

  // ---- for NCCL's functions, which hold the mutex
  static FakeNccl& It() { return *it_; }
  NcclResult Enter(const char* symbol);
  // The same for a call of a communicator.
  NcclResult Enter(const char* symbol, NcclCommHandle comm);
  void Complain(const std::string& what) { complaints_.push_back(what); }
  // Not null and not ended; otherwise noted.
  bool Alive(const char* symbol, NcclCommHandle comm);
  bool Ready(const char* symbol, NcclCommHandle comm);
  NcclResult Init(NcclCommHandle* comm, int ranks, const NcclUniqueId& id, int rank);
  NcclResult Ask(NcclCommHandle comm);
  NcclResult GroupEnd();
  NcclResult Call(const char* symbol, const NcclCall& call, NcclCommHandle comm, CuStream stream);
  void CheckNoGraph(const char* symbol, NcclCommHandle comm);
  void End(NcclCommHandle comm, bool abort);
  void AwaitIdle(NcclCommHandle aborted, std::unique_lock<std::recursive_mutex>& lock);

  std::recursive_mutex mutex;
  std::condition_variable_any aborted;  // some communicator was
  std::condition_variable_any unhung;   // aborts_hang changed
  std::vector<std::unique_ptr<NcclCommObject>>
      comms;  // in the order they were made; ended ones too
  std::map<std::thread::id, int> group_depth;
  std::set<void*> own_memory;  // of ncclMemAlloc

 private:
  struct Once {
    std::string symbol;
    int call = 0;
    NcclResult result = kNcclSuccess;
    bool hangs = false, set = false;
  };
  struct Given {
    NcclCall call;
    NcclCommHandle comm;
    CuStream stream;
  };

  NcclResult Ordered(const std::string& symbol);
  void NoteHang(NcclCommHandle comm) { comm->stuck = comm->stuck || std::exchange(hangs_, false); }
  NcclCommHandle MakeComm(FakeNcclWorld* world, int rank);
  NcclResult Give(const std::vector<Given>& calls);
  void GiveToStream(NcclCommHandle comm);
  FakeGiven MakeGiven(const NcclCall& call, NcclCommHandle comm);
  void GiveToStream(NcclCommHandle comm, CuStream stream, const std::vector<FakeGiven>& calls);
  void Meet(const FakeGiven& given, NcclCommHandle comm);
  static void Arrive(FakeMeeting& meeting, NcclCommHandle comm);
  static bool HasKernels(const NcclCommObject& comm);
  void CheckAlike(const NcclCall& first, const NcclCall& second);
  void CheckRanges(const char* symbol, const NcclCall& call, NcclCommHandle comm);

  static inline FakeNccl* it_ = nullptr;
  FakeCuda& cuda_;
  std::map<std::string, std::pair<NcclResult, int>> failures_;
  std::map<std::string, int> counts_, entered_;
  Once once_;
  bool hangs_ = false;  // the communicator of the call that is being made
  std::map<std::pair<CuContext, const void*>, const void*>
      kernel_on_gpu_;  // of a group of calls; null: the GPU is free
  std::vector<std::string> complaints_;
  std::map<std::string, std::unique_ptr<FakeNcclWorld>> worlds_;  // by their id
  std::vector<Given> group_;
  NcclResult group_failure_ = kNcclSuccess;
};

}  // namespace test
}  // namespace hvd

#endif  // HVD_TEST_FAKES_NCCL_FAKE_NCCL_H_
