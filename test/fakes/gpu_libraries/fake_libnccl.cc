// A libnccl.so.2 whose members are processes of one host; see README.md.
//
// Each member sends to each other one through a channel in shared memory. The calls of a group
// travel together, in the thread that plays the stream.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/backends/nccl/nccl_api.h"
#include "test/fakes/gpu_libraries/stream_work.h"
#include "test/fakes/nccl/fake_nccl_data.h"

namespace {

using hvd::CuStream;
using hvd::DType;
using hvd::NcclCall;
using hvd::NcclCallKind;
using hvd::NcclConfig;
using hvd::NcclDataType;
using hvd::NcclReduceOp;
using hvd::NcclResult;
using hvd::NcclUniqueId;
using hvd::test::FakeMeeting;

constexpr size_t kChannelBytes = 64 * 1024;

struct Channel {
  std::atomic<uint64_t> written, read;
  char bytes[kChannelBytes];
};

// Zeroed when it is made.
struct Shared {
  std::atomic<int> attached;
  Channel channels[];  // from member to member
};

struct Comm {
  Shared* shared = nullptr;
  size_t bytes = 0;
  int ranks = 0, rank = 0;
  std::string name;
  std::atomic<bool> aborted{false};
  std::atomic<int> under_way{0};
  std::map<NcclReduceOp, double> factors;

  Channel& channel(int from, int to) const { return shared->channels[from * ranks + to]; }
};

struct Transfer {
  char* memory = nullptr;
  uint64_t bytes = 0, moved = 0;
};

// The factor is that of the call's operation, which may be gone when a graph is launched.
struct Given {
  NcclCall call;
  Comm* comm;
  CuStream stream;
  std::optional<double> factor;
};

// FAKE_NCCL_START_FAILS: "2 some text": the start of member 2 fails, and that is NCCL's last error.
const char* WhyStartFails(int rank) {
  const char* wanted = std::getenv("FAKE_NCCL_START_FAILS");
  const char* text = wanted == nullptr ? nullptr : std::strchr(wanted, ' ');
  return text != nullptr && std::atoi(wanted) == rank ? text + 1 : nullptr;
}

thread_local const char* last_error = "";

thread_local int group_depth = 0;
thread_local std::vector<Given> group;

char* At(uint64_t address) { return reinterpret_cast<char*>(address); }

// The work of one stream for one group for one communicator.
class Work {
 public:
  explicit Work(Comm* comm) : comm_(comm), out_(comm->ranks), in_(comm->ranks) {}

  void Add(const Given& given) {
    const NcclCall& call = given.call;
    const auto ranges = hvd::test::RangesOf(call, comm_->rank, static_cast<size_t>(comm_->ranks));
    const uint64_t bytes = ranges[0].bytes;
    if (call.kind == NcclCallKind::kSend) return Send(call.peer, ranges[0].begin, bytes);
    if (call.kind == NcclCallKind::kRecv) return Receive(call.peer, ranges[0].begin, bytes);
    Step& step = steps_.emplace_back();
    step.meeting.needed = static_cast<size_t>(comm_->ranks);
    for (int r = 0; r < comm_->ranks; ++r) {
      const bool sends = call.kind != NcclCallKind::kBroadcast || call.peer == r;
      if (sends && r == comm_->rank) {
        for (int to = 0; to < comm_->ranks; ++to) Send(to, call.from, bytes);
      }
      auto& input = step.inputs.emplace_back(sends ? bytes : 0);
      if (sends) Receive(r, reinterpret_cast<uint64_t>(input.data()), bytes);
      NcclCall part = call;
      part.from = reinterpret_cast<uint64_t>(input.data());
      if (r != comm_->rank) {
        auto& nowhere = step.outputs.emplace_back(bytes * static_cast<uint64_t>(comm_->ranks));
        part.to = reinterpret_cast<uint64_t>(nowhere.data());
      }
      if (given.factor.has_value()) step.meeting.factors[r] = *given.factor;
      step.meeting.calls[r] = part;
    }
  }

  static void Run(void* given) {
    const std::unique_ptr<Work> work(static_cast<Work*>(given));
    Comm& comm = *work->comm_;
    while (!comm.aborted && !work->Advance()) std::this_thread::yield();
    for (Step& step : work->steps_) {
      if (!comm.aborted) hvd::test::MoveData(step.meeting);
    }
    --comm.under_way;
  }

 private:
  struct Step {
    FakeMeeting meeting;
    std::deque<std::vector<char>> inputs, outputs;
  };

  void Send(int to, uint64_t from, uint64_t bytes) { out_[to].push_back({At(from), bytes}); }
  void Receive(int from, uint64_t to, uint64_t bytes) { in_[from].push_back({At(to), bytes}); }

  // True when all is moved.
  bool Advance() {
    bool done = true;
    for (int r = 0; r < comm_->ranks; ++r) {
      Channel& to = comm_->channel(comm_->rank, r);
      while (!out_[r].empty() && Write(to, out_[r].front())) out_[r].pop_front();
      Channel& from = comm_->channel(r, comm_->rank);
      while (!in_[r].empty() && Read(from, in_[r].front())) in_[r].pop_front();
      done = done && out_[r].empty() && in_[r].empty();
    }
    return done;
  }

  static bool Write(Channel& channel, Transfer& transfer) {
    while (transfer.moved < transfer.bytes) {
      const uint64_t written = channel.written.load(std::memory_order_relaxed);
      const uint64_t room =
          kChannelBytes - (written - channel.read.load(std::memory_order_acquire));
      const uint64_t at = written % kChannelBytes;
      const uint64_t bytes = std::min({room, kChannelBytes - at, transfer.bytes - transfer.moved});
      if (bytes == 0) return false;
      std::memcpy(channel.bytes + at, transfer.memory + transfer.moved, bytes);
      transfer.moved += bytes;
      channel.written.store(written + bytes, std::memory_order_release);
    }
    return true;
  }
  static bool Read(Channel& channel, Transfer& transfer) {
    while (transfer.moved < transfer.bytes) {
      const uint64_t read = channel.read.load(std::memory_order_relaxed);
      const uint64_t there = channel.written.load(std::memory_order_acquire) - read;
      const uint64_t at = read % kChannelBytes;
      const uint64_t bytes = std::min({there, kChannelBytes - at, transfer.bytes - transfer.moved});
      if (bytes == 0) return false;
      std::memcpy(transfer.memory + transfer.moved, channel.bytes + at, bytes);
      transfer.moved += bytes;
      channel.read.store(read + bytes, std::memory_order_release);
    }
    return true;
  }

  Comm* const comm_;
  std::vector<std::deque<Transfer>> out_, in_;  // by member
  std::deque<Step> steps_;
};

using Calls = std::vector<Given>;  // of one communicator, for one stream

void Launch(void* calls, CuStream stream) {
  const auto& given = *static_cast<Calls*>(calls);
  auto* work = new Work(given[0].comm);
  for (const Given& one : given) work->Add(one);
  ++given[0].comm->under_way;
  fake_gpu_submit(stream, &Work::Run, work);
}

void DropCalls(void* calls) { delete static_cast<Calls*>(calls); }

void GiveGroup() {
  std::map<std::pair<Comm*, CuStream>, Calls> works;
  for (const Given& given : group) works[{given.comm, given.stream}].push_back(given);
  group.clear();
  for (auto& [key, calls] : works) {
    auto kept = std::make_unique<Calls>(calls);
    if (fake_gpu_keep(key.second, &Launch, kept.get(), &DropCalls)) {
      (void)kept.release();
    } else {
      Launch(&calls, key.second);
    }
  }
}

NcclResult Give(const NcclCall& call, Comm* comm, CuStream stream) {
  const auto found = comm->factors.find(call.op);
  const bool scales = found != comm->factors.end();
  group.push_back({call, comm, stream, scales ? std::optional(found->second) : std::nullopt});
  if (group_depth == 0) GiveGroup();
  return hvd::kNcclSuccess;
}

void Close(Comm* comm) {
  while (comm->under_way > 0) std::this_thread::yield();
  ::munmap(comm->shared, comm->bytes);
  delete comm;
}

double FactorOf(const void* scalar, NcclDataType type) {
  uint16_t half = 0;
  std::memcpy(&half, scalar, sizeof half);
  if (type == hvd::kNcclFloat64) return *static_cast<const double*>(scalar);
  if (type == hvd::kNcclFloat32) return static_cast<double>(*static_cast<const float*>(scalar));
  if (type == hvd::kNcclFloat16) return static_cast<double>(__builtin_bit_cast(_Float16, half));
  return static_cast<double>(__builtin_bit_cast(float, static_cast<uint32_t>(half) << 16));
}

uint64_t Address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

}  // namespace

#define FAKE_NCCL extern "C" __attribute__((visibility("default"))) NcclResult

FAKE_NCCL ncclGetVersion(int* version) {
  const char* wanted = std::getenv("FAKE_NCCL_VERSION");
  *version = wanted == nullptr ? 22809 : std::atoi(wanted);
  return 0;
}
extern "C" __attribute__((visibility("default"))) const char* ncclGetErrorString(NcclResult) {
  return "an error of the fake NCCL";
}
extern "C" __attribute__((visibility("default"))) const char* ncclGetLastError(Comm*) {
  return last_error;
}
FAKE_NCCL ncclGetUniqueId(NcclUniqueId* id) {
  static std::atomic<int> made{0};
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->bytes, sizeof id->bytes, "/fake-nccl-%d-%d", ::getpid(), made++);
  return 0;
}
FAKE_NCCL ncclCommInitRankConfig(Comm** made, int ranks, NcclUniqueId id, int rank,
                                 NcclConfig* config) {
  if (config == nullptr || config->blocking != 0) return hvd::kNcclInvalidArgument;
  if (const char* why = WhyStartFails(rank)) {
    last_error = why;
    return hvd::kNcclSystemError;
  }
  auto* comm = new Comm;
  comm->ranks = ranks;
  comm->rank = rank;
  comm->name = id.bytes;
  comm->bytes = sizeof(Shared) + sizeof(Channel) * static_cast<size_t>(ranks * ranks);
  const int fd = ::shm_open(id.bytes, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(comm->bytes)) != 0) return hvd::kNcclSystemError;
  void* memory = ::mmap(nullptr, comm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return hvd::kNcclSystemError;
  comm->shared = static_cast<Shared*>(memory);
  if (++comm->shared->attached == ranks) ::shm_unlink(id.bytes);
  *made = comm;
  return hvd::kNcclInProgress;
}
FAKE_NCCL ncclCommInitRank(Comm** made, int ranks, NcclUniqueId id, int rank) {
  NcclConfig config;
  const NcclResult begun = ncclCommInitRankConfig(made, ranks, id, rank, &config);
  if (begun != hvd::kNcclInProgress) return begun;
  while ((*made)->shared->attached < ranks) std::this_thread::yield();
  return hvd::kNcclSuccess;
}
FAKE_NCCL ncclCommGetAsyncError(Comm* comm, NcclResult* error) {
  *error = comm->shared->attached < comm->ranks ? hvd::kNcclInProgress : hvd::kNcclSuccess;
  return 0;
}
FAKE_NCCL ncclCommFinalize(Comm*) { return 0; }
FAKE_NCCL ncclCommDestroy(Comm* comm) {
  Close(comm);
  return 0;
}
FAKE_NCCL ncclCommAbort(Comm* comm) {
  comm->aborted = true;
  ::shm_unlink(comm->name.c_str());  // if not all have come
  Close(comm);
  return 0;
}
FAKE_NCCL ncclGroupStart() {
  ++group_depth;
  return 0;
}
FAKE_NCCL ncclGroupEnd() {
  if (--group_depth == 0) GiveGroup();
  return 0;
}
FAKE_NCCL ncclAllReduce(const void* from, void* to, size_t count, NcclDataType type,
                        NcclReduceOp op, Comm* comm, CuStream stream) {
  return Give({NcclCallKind::kAllReduce, Address(from), Address(to), count, type, op}, comm,
              stream);
}
FAKE_NCCL ncclReduce(const void* from, void* to, size_t count, NcclDataType type, NcclReduceOp op,
                     int root, Comm* comm, CuStream stream) {
  return Give({NcclCallKind::kReduce, Address(from), Address(to), count, type, op, root}, comm,
              stream);
}
FAKE_NCCL ncclBroadcast(const void* from, void* to, size_t count, NcclDataType type, int root,
                        Comm* comm, CuStream stream) {
  return Give({NcclCallKind::kBroadcast, Address(from), Address(to), count, type, 0, root}, comm,
              stream);
}
FAKE_NCCL ncclAllGather(const void* from, void* to, size_t count, NcclDataType type, Comm* comm,
                        CuStream stream) {
  return Give({NcclCallKind::kAllGather, Address(from), Address(to), count, type}, comm, stream);
}
FAKE_NCCL ncclReduceScatter(const void* from, void* to, size_t count, NcclDataType type,
                            NcclReduceOp op, Comm* comm, CuStream stream) {
  return Give({NcclCallKind::kReduceScatter, Address(from), Address(to), count, type, op}, comm,
              stream);
}
FAKE_NCCL ncclSend(const void* from, size_t count, NcclDataType type, int peer, Comm* comm,
                   CuStream stream) {
  return Give({NcclCallKind::kSend, Address(from), 0, count, type, 0, peer}, comm, stream);
}
FAKE_NCCL ncclRecv(void* to, size_t count, NcclDataType type, int peer, Comm* comm,
                   CuStream stream) {
  return Give({NcclCallKind::kRecv, 0, Address(to), count, type, 0, peer}, comm, stream);
}
FAKE_NCCL ncclRedOpCreatePreMulSum(NcclReduceOp* op, void* scalar, NcclDataType type, int,
                                   Comm* comm) {
  static std::atomic<int> next{100};
  *op = next++;
  comm->factors[*op] = FactorOf(scalar, type);
  return 0;
}
// Work that was given with it has its factor.
FAKE_NCCL ncclRedOpDestroy(NcclReduceOp op, Comm* comm) {
  comm->factors.erase(op);
  return 0;
}
