// A world whose ranks are threads of the test: real engines over one job page in ordinary memory,
// or over the inproc model. The same tests run on both.
#ifndef HVD_TEST_FAKES_WORLD_OF_THREADS_H_
#define HVD_TEST_FAKES_WORLD_OF_THREADS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "runtime/backends/shm/shm_backend.h"
#include "runtime/backends/shm/shm_peers.h"
#include "runtime/core/engine.h"
#include "runtime/segment/job_page.h"
#include "test/fakes/inproc/inproc_backend.h"
#include "test/fakes/inproc/inproc_peers.h"

namespace hvd::test {

enum class Transport { kShm, kInproc };

// The name of a test on this transport with this many ranks: "Shm2".
inline std::string NameOf(const std::tuple<Transport, uint32_t>& tested) {
  const auto [transport, size] = tested;
  return (transport == Transport::kShm ? "Shm" : "Inproc") + std::to_string(size);
}

class WorldOfThreads {
 public:
  // The options of an engine, by rank. Without a wait policy it gets this machine's.
  using OptionsOf = std::function<EngineOptions(uint32_t rank)>;

  // A backend that is used in place of the given one, which outlives it.
  using Wrap = std::function<std::unique_ptr<Backend>(Backend&)>;

  WorldOfThreads(Transport transport, uint32_t size, const OptionsOf& options_of = nullptr,
                 const Wrap& wrap = nullptr)
      : transport_(transport), size_(size), group_(size, 64) {
    auto fd = CreateSharedMemory("hvd-test", JobPage::BytesFor(size));
    auto memory = Mapping::Map(fd->get(), JobPage::BytesFor(size));
    memory_ = std::move(*memory);
    page_ = JobPage::Format(memory_.data(), size, 1);
    for (uint32_t r = 0; r < size; ++r) {
      const EngineOptions options = options_of ? options_of(r) : EngineOptions{};
      ranks_.push_back(std::make_unique<Rank>(*this, r, options, wrap));
    }
  }

  uint32_t size() const { return size_; }
  Engine& engine(uint32_t rank) { return *ranks_[rank]->engine; }
  SharedHeap& heap(uint32_t rank) { return ranks_[rank]->heap; }
  JobPage page() const { return page_; }

  // Runs `body(rank)` on one thread per rank and waits for all of them.
  void Run(const std::function<void(uint32_t)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < size_; ++r) threads.emplace_back([&, r] { body(r); });
    for (std::thread& thread : threads) thread.join();
  }

  // The agent's work when a rank is gone.
  void Break(const std::string& text) {
    page_.Break(text);
    group_.Break(text);
  }
  // A rank's work when it shuts down.
  void Leave(uint32_t rank) {
    ranks_[rank]->engine->Close("left");
    page_.rank(rank).state.store(static_cast<uint32_t>(RankState::kLeft));
    if (transport_ == Transport::kInproc) ranks_[rank].reset();
  }

 private:
  struct Rank {
    Rank(WorldOfThreads& world, uint32_t rank, EngineOptions options, const Wrap& wrap)
        : heap(world.segments_), peer_memory(world.segments_) {
      if (world.transport_ == Transport::kShm) {
        peers = std::make_unique<ShmPeers>(world.page_, rank);
        backend = std::make_unique<ShmBackend>(heap, peer_memory, /*chunk_kib=*/0,
                                               &world.page_.header().tuned, peers.get(),
                                               /*ring_from=*/0, /*stream_from=*/0);
      } else {
        peers = std::make_unique<InprocPeers>(world.group_, rank);
        backend = std::make_unique<InprocBackend>(heap);
      }
      options.tuned = &world.page_.header().tuned;
      if (options.wait.spins == 0 && options.wait.yields == 0) {
        options.wait = ChooseWaitPolicy(world.size_, std::thread::hardware_concurrency());
      }
      if (wrap) wrapped = wrap(*backend);
      engine = std::make_unique<Engine>(*peers, wrapped ? *wrapped : *backend, heap,
                                        WorldOnOneHost(rank, world.size_), options);
    }
    SharedHeap heap;
    SharedMemoryMap peer_memory;
    std::unique_ptr<Peers> peers;
    std::unique_ptr<Backend> backend, wrapped;
    std::unique_ptr<Engine> engine;
  };

  Transport transport_;
  uint32_t size_;
  LocalSegmentSource segments_;
  InprocGroup group_;
  Mapping memory_;
  JobPage page_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// A request for one tensor. It views its arguments: they must outlive its use.
template <typename T>
RequestSpec AllreduceOf(std::string_view name, const std::vector<T>& in, std::vector<T>& out,
                        DType dtype, const std::vector<int64_t>& shape) {
  RequestSpec spec;
  spec.collective = Collective::kAllreduce;
  spec.name = name;
  spec.op = ReduceOp::kSum;
  spec.tensor = {dtype, in.data(), out.data(), shape};
  return spec;
}

// Submits and waits without limit.
inline Status RunOne(Engine& engine, const RequestSpec& spec) {
  Result<Engine::Handle> handle = engine.Submit(spec);
  if (!handle.ok()) return handle.status();
  return engine.Wait(*handle, Duration(-1));
}

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_WORLD_OF_THREADS_H_
