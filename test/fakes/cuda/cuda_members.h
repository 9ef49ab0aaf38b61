// Members of one group, or of several on several hosts, with a CudaBackend each, over FakeCuda and
// FakeNccl, in one thread: a seeded scheduler moves one member of one operation at a time, or the
// GPUs, so that every order can happen and every run can be repeated.
//
// It is as unkind as a program may be: an input is there only once the caller's stream has come to
// it, and is overwritten by that stream as soon as the operation is done for its owner, and so is
// the output, after it was read.
//
// Over several hosts the members stand on a HostsBackend each, whose threads agree in their own
// time.
#ifndef HVD_TEST_FAKES_CUDA_CUDA_MEMBERS_H_
#define HVD_TEST_FAKES_CUDA_CUDA_MEMBERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/backends/cuda/cuda_backend.h"
#include "runtime/backends/cuda/cuda_router.h"
#include "runtime/backends/hosts/hosts_backend.h"
#include "runtime/backends/shm/shm_backend.h"
#include "runtime/device/cuda/driver_loader.h"
#include "test/fakes/cuda/fake_cuda.h"
#include "test/fakes/inproc/inproc_inter_host_comm.h"
#include "test/fakes/memory_kv_store.h"
#include "test/fakes/nccl/fake_nccl.h"

namespace hvd::test {

using Bytes = std::vector<std::byte>;

// One member's part of one operation.
struct CudaPart {
  enum class Stage { kNew, kPrepared, kStarted, kDone };
  Group group;
  CollectiveCall call;
  CollectiveResult result;
  std::unique_ptr<OpState> state;
  BufferDescriptor descriptor;
  Bytes payload;
  std::vector<int64_t> splits;
  Bytes input;   // what the caller's stream will put into call.input
  Bytes output;  // what it found at the end
  size_t output_bytes = 0;
  Stage stage = Stage::kNew;
  Status status;
};

struct CudaOperation {
  std::vector<CudaPart> parts;  // by member
  std::vector<uint8_t> joined;
  // Over several hosts: its name, and the members of its process set; empty: all of them.
  std::string name = "x";
  std::vector<std::string> detail_of;  // by member, where they disagree
  std::vector<uint32_t> set;

  bool Has(size_t m) const { return set.empty() || std::ranges::find(set, m) != set.end(); }
  bool Takes(size_t m) const { return Has(m) && (joined.empty() || joined[m] == 0); }
  bool Done() const {
    for (size_t m = 0; m < parts.size(); ++m) {
      if (Takes(m) && parts[m].stage != CudaPart::Stage::kDone) return false;
    }
    return true;
  }
};

class CudaMembers {
 public:
  struct Options {
    uint32_t members = 2;
    uint32_t devices_of_each = 1;
    bool nccl = true;      // the members have it
    bool one_gpu = false;  // all are on one
    int slowness = 0;      // of NCCL
    bool waits_for_gpu = false;
    bool registers_buffers = false;
    bool is_world = false;               // the members are all ranks, on one host
    std::vector<uint32_t> keeps_graphs;  // members that do
    std::vector<uint32_t> host_of;       // by member; empty: one host
    std::vector<uint32_t> without_nccl;  // members that have none
    size_t packing_bytes = size_t{256} << 10;
    Duration start_limit = std::chrono::seconds(30);
    Duration abort_limit = std::chrono::seconds(30);
  };

  explicit CudaMembers(const Options& options) : options_(options) {
    cuda.devices = static_cast<int>(options.members * options.devices_of_each);
    cuda.same_place = options.one_gpu;
    nccl.slowness = options.slowness;
    for (uint32_t m = 0; m < options.members; ++m) {
      members_.push_back(std::make_unique<Member>(segments_));
      for (int device = 0; device < cuda.devices; ++device)
        members_[m]->streams.push_back(cuda.MakeStream(device));
      if (over_hosts()) OpenHost(m);
      Open(m);
    }
  }
  // Rank 0 arranges the work of all hosts, so it goes last.
  ~CudaMembers() {
    for (uint32_t m = size(); m-- > 0;) {
      members_[m]->backend.reset();
      members_[m]->hosts.reset();
    }
  }

  bool over_hosts() const { return !options_.host_of.empty(); }
  bool is_world() const { return over_hosts() || options_.is_world; }
  // In the world, which has ranks that are no members where these are not all of it.
  uint32_t RankOf(uint32_t m) const { return is_world() ? m : 2 * m + 1; }

  // As a rank does in a world, and again in the next one.
  void Open(uint32_t m) {
    CudaBackendOptions options;
    options.rank = RankOf(m);
    options.host = &members_[m]->host;
    if (over_hosts()) options.host = members_[m]->hosts.get();
    options.several_hosts = over_hosts();
    options.heap = &members_[m]->heap;
    options.peer_memory = &members_[m]->peer_memory;
    options.store = store.get();
    options.clock = time;
    options.wake_peers = [this] { ++wakes; };
    options.warn = [this](const std::string& sentence) { said.push_back(sentence); };
    options.start_limit = options_.start_limit;
    options.abort_limit = options_.abort_limit;
    options.end_process = [this](const std::string& why) {
      ended.push_back(why);
      nccl.LetAbortsReturn();
    };
    options.waits_for_gpu = options_.waits_for_gpu;
    options.registers_buffers = options_.registers_buffers;
    options.packing_bytes = options_.packing_bytes;
    options.keeps_graphs =
        std::ranges::find(options_.keeps_graphs, m) != options_.keeps_graphs.end();
    Result<NcclLibrary> library = Unsupported("NCCL cannot be used because there is none");
    const bool without = std::ranges::find(options_.without_nccl, m) != options_.without_nccl.end();
    if (options_.nccl && !without) library = nccl.TryLibrary();
    const Result<CudaDriver> driver =
        FillCudaDriver("libcuda.so.1", [this](const char* symbol) { return cuda.Find(symbol); });
    const auto open = [driver, library](const CudaBackendOptions& given, Status* why) {
      *why = driver.ok() ? StartCudaDriver(*driver) : driver.status();
      return why->ok()
                 ? std::make_unique<CudaBackend>(CudaParts{*driver, library, &kKernels}, given)
                 : nullptr;
    };
    members_[m]->backend = std::make_unique<CudaRouter>(std::move(options), open);
  }

  uint32_t size() const { return static_cast<uint32_t>(members_.size()); }
  CudaRouter& backend(uint32_t m) { return *members_[m]->backend; }
  bool has_backend(uint32_t m) const { return members_[m]->backend != nullptr; }
  SharedHeap& heap(uint32_t m) { return members_[m]->heap; }
  void Drop(uint32_t m) { members_[m]->backend.reset(); }

  // The first of those that are meant for the member.
  int OwnDevice(uint32_t m) const { return static_cast<int>(m * options_.devices_of_each); }

  // Gives the part, on a device, its input and, unless `made`, its output.
  void Give(uint32_t m, int device, CudaPart* part, Bytes input, size_t output_bytes, bool in_place,
            bool made) {
    CollectiveCall& call = part->call;
    call.device = DeviceKind::kCuda;
    call.device_index = device;
    call.stream = members_[m]->streams[static_cast<size_t>(device)];
    part->input = std::move(input);
    const size_t bytes = std::max(part->input.size(), in_place ? output_bytes : 0);
    call.input = Memory(bytes, device);
    call.output = made       ? nullptr
                  : in_place ? const_cast<void*>(call.input)
                             : Memory(output_bytes, device);
    std::memset(const_cast<void*>(call.input), 0x77, bytes);
  }

  // Runs all operations to their ends, or gives up where a step fails.
  void Run(std::vector<CudaOperation>& operations, uint32_t seed) {
    std::mt19937 random(seed);
    for (int step = 0; !AllDone(operations); ++step) {
      ASSERT_LT(step, over_hosts() ? 100'000'000 : 2'000'000) << "no end, seed " << seed;
      if (over_hosts()) std::this_thread::yield();
      if (random() % 4 == 0) {
        RunSome(random);
        continue;
      }
      CudaOperation& operation = operations[random() % operations.size()];
      const auto m = static_cast<uint32_t>(random() % size());
      if (operation.Takes(m)) Step(operation, m);
    }
    EXPECT_TRUE(cuda.Run()) << "work is left that waits for ever";
  }

  // One step of one member's part; a failure is its end.
  void Step(CudaOperation& operation, uint32_t m) {
    CudaPart& part = operation.parts[m];
    cuda.process = members_[m].get();
    Result<bool> done = false;
    switch (part.stage) {
      case CudaPart::Stage::kNew: done = Prepare(operation, m); break;
      case CudaPart::Stage::kPrepared: done = Start(operation, m); break;
      case CudaPart::Stage::kStarted: done = backend(m).Advance(part.call, part.state.get()); break;
      case CudaPart::Stage::kDone: return;
    }
    if (!done.ok()) {
      part.status = done.status();
      GiveUp(part, m);
    } else if (*done) {
      Finish(part);
    }
  }

  // As the engine does: an error that not all members have ends the world.
  static bool IsOfAll(const Status& status) {
    return status.code() == Code::kUnsupported || status.code() == Code::kInvalidArgument;
  }
  void GiveUp(CudaPart& part, uint32_t m) {
    const bool peers_may_work = !IsOfAll(part.status);
    backend(m).Abandon(std::move(part.state), peers_may_work);
    void* made = std::exchange(part.result.made_output, nullptr);
    if (made != nullptr && !peers_may_work) heap(m).Free(made);
    part.stage = CudaPart::Stage::kDone;
  }

  // Frees the results of the members of the operation, once the GPUs have done all.
  void Free(std::vector<CudaOperation>& operations) {
    for (CudaOperation& operation : operations) {
      for (uint32_t m = 0; m < size(); ++m) {
        void* made = operation.parts[m].result.made_output;
        EXPECT_TRUE(made == nullptr || heap(m).Free(made));
      }
    }
  }

  // Nothing is left, and no rule was broken.
  void ExpectClean() {
    for (auto& member : members_) member->backend.reset();
    EXPECT_TRUE(nccl.Leaks().empty()) << nccl.Leaks().front();
    EXPECT_TRUE(nccl.Complaints().empty()) << nccl.Complaints().front();
    EXPECT_TRUE(cuda.Leaks().empty()) << cuda.Leaks().front();
    EXPECT_TRUE(cuda.Complaints().empty()) << cuda.Complaints().front();
  }

  FakeCuda cuda;
  FakeNccl nccl{cuda};
  ManualClock clock;
  const Clock* time = &clock;  // of members that are opened from now on
  std::unique_ptr<MemoryKvStore> store = std::make_unique<MemoryKvStore>();
  std::vector<std::string> said;
  std::vector<std::string> ended;  // why a member's process would have ended itself
  int wakes = 0;

 private:
  struct Member {
    explicit Member(SegmentSource& segments)
        : heap(segments), peer_memory(segments), host(heap, peer_memory) {}
    SharedHeap heap;
    SharedMemoryMap peer_memory;
    ShmBackend host;
    std::unique_ptr<InprocInterHostComm> comm;
    std::unique_ptr<HostsBackend> hosts;
    std::unique_ptr<CudaRouter> backend;
    std::vector<CuStream> streams;  // of the member's program, one on each device
  };

  void OpenHost(uint32_t m) {
    HostLeaderOptions options;
    options.map = {options_.host_of, m};
    options.cause_grace = std::chrono::milliseconds(1);
    options.compare = [](std::string_view name, std::span<const HostDetail> details) {
      for (const HostDetail& d : details) {
        if (d.detail != details[0].detail) return Mismatch(std::string(name) + " differs");
      }
      return Status::Ok();
    };
    options.wake_host = [] {};
    options.broken = [] { return std::nullopt; };
    members_[m]->comm = std::make_unique<InprocInterHostComm>(hub_, m);
    members_[m]->hosts = std::make_unique<HostsBackend>(
        members_[m]->host, members_[m]->heap, members_[m]->peer_memory, *members_[m]->comm,
        HostsBackend::Options{std::move(options), [] {}});
  }

  // As member m sees it.
  Group GroupOf(const CudaOperation& operation, uint32_t m) const {
    Group group;
    group.id = is_world() && operation.set.empty() ? 0 : 1;
    for (uint32_t k = 0; k < size(); ++k) {
      if (!operation.Has(k)) continue;
      const auto index = static_cast<uint32_t>(group.ranks.size());
      if (k == m) group.index = index;
      group.ranks.push_back(RankOf(k));
      if (over_hosts() && options_.host_of[k] != options_.host_of[m]) continue;
      if (k == m) group.local_index = group.local_size();
      group.local.push_back(RankOf(k));
      group.local_to_group.push_back(index);
    }
    return group;
  }

  static bool AllDone(const std::vector<CudaOperation>& operations) {
    return std::ranges::all_of(operations, [](const CudaOperation& op) { return op.Done(); });
  }

  static CuStream StreamOf(const CudaPart& part) { return static_cast<CuStream>(part.call.stream); }

  void* Memory(size_t bytes, int device) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(cuda.MakeMemory(bytes + 1, device)));
  }

  // One stream, or all.
  void RunSome(std::mt19937& random) {
    const size_t which = random() % (cuda.streams.size() + 1);
    if (which == cuda.streams.size()) {
      cuda.Run();
    } else if (!cuda.streams[which]->destroyed) {
      cuda.Run(cuda.streams[which].get());
    }
  }

  Result<bool> Prepare(CudaOperation& operation, uint32_t m) {
    CudaPart& part = operation.parts[m];
    part.group = GroupOf(operation, m);
    part.call.group = &part.group;
    part.call.result = &part.result;
    part.call.splits = part.splits.empty() ? nullptr : part.splits.data();
    FakeCuda::Give(StreamOf(part), [&part] {
      if (part.input.empty()) return;
      std::memcpy(const_cast<void*>(part.call.input), part.input.data(), part.input.size());
    });
    Status prepared = backend(m).Prepare(part.call, &part.state, &part.descriptor);
    if (!prepared.ok()) return prepared;
    part.payload.assign(part.descriptor.payload.begin(), part.descriptor.payload.end());
    part.stage = CudaPart::Stage::kPrepared;
    return false;
  }

  Result<bool> Start(CudaOperation& operation, uint32_t m) {
    CudaPart& part = operation.parts[m];
    const Collective collective = part.call.collective;
    const bool uneven = collective == Collective::kAllgather || collective == Collective::kAlltoall;
    std::vector<BufferDescriptor> descriptors;
    std::vector<Extent> extents;
    std::vector<uint8_t> joined;
    for (uint32_t k = 0; k < size(); ++k) {
      const bool here = !over_hosts() || options_.host_of[k] == options_.host_of[m];
      if (!here || !operation.Has(k)) continue;
      CudaPart& other = operation.parts[k];
      const bool takes = operation.Takes(k);
      if (takes && other.stage == CudaPart::Stage::kNew) return false;
      BufferDescriptor& descriptor = descriptors.emplace_back();
      if (uneven) extents.push_back({other.call.rows, other.splits});
      if (!operation.joined.empty()) joined.push_back(takes ? 0 : 1);
      if (!takes) continue;
      descriptor.words = other.descriptor.words;
      if (!other.payload.empty()) descriptor.payload = other.payload;
    }
    if (std::ranges::find(joined, 1) == joined.end()) joined.clear();
    part.stage = CudaPart::Stage::kStarted;
    const std::string detail = operation.detail_of.empty() ? "" : operation.detail_of[m];
    const InterHostRequest inter_host{
        .domain = part.group.id, .name = operation.name, .detail = detail};
    MemberInputs inputs{descriptors, extents, joined};
    if (!part.group.on_one_host()) inputs.inter_host = &inter_host;
    return backend(m).Start(part.call, part.state.get(), inputs);
  }

  // The caller's stream reads the output at once, and then has other things in both.
  static void Finish(CudaPart& part) {
    part.state.reset();
    part.stage = CudaPart::Stage::kDone;
    const CollectiveCall& call = part.call;
    const bool all =
        call.collective == Collective::kAllreduce || call.collective == Collective::kBroadcast;
    part.output_bytes =
        all ? call.bytes() : static_cast<size_t>(part.result.rows) * call.row_bytes();
    FakeCuda::Give(StreamOf(part), [&part] {
      void* output = part.call.output != nullptr ? part.call.output : part.result.made_output;
      part.output.resize(part.output_bytes);
      if (part.output_bytes != 0) {
        std::memcpy(part.output.data(), output, part.output_bytes);
        std::memset(output, 0xa5, part.output_bytes);
      }
      if (!part.input.empty())
        std::memset(const_cast<void*>(part.call.input), 0x5a, part.input.size());
    });
  }

  static constexpr int kKernels = 0;  // stands for the fat binary
  const Options options_;
  LocalSegmentSource segments_;
  InprocInterHostHub hub_{[](uint32_t, size_t) {}};
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_CUDA_CUDA_MEMBERS_H_
