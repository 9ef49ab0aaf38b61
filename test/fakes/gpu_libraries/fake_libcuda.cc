// A libcuda.so.1 without a GPU; see README.md.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "test/fakes/cuda/play_kernels.h"
#include "test/fakes/gpu_libraries/stream_work.h"

namespace hvd {

struct CuEventObject {
  uint64_t recorded = 0, done = 0;  // how often; all rounds until `done`, and those in `early`,
  std::set<uint64_t> early;         // which another stream came to first

  bool Done(uint64_t round) const { return round <= done || early.contains(round); }
  void Signal(uint64_t round) {
    early.insert(round);
    while (early.erase(done + 1) != 0) ++done;
  }
};

// Captured work: each piece gives itself to a stream.
struct CuGraphObject {
  std::vector<std::function<void(CuStream stream)>> nodes;
};
struct CuGraphExecObject : CuGraphObject {};

struct CuStreamObject {
  CuGraphObject* capturing = nullptr;
  std::deque<std::function<void()>> work;
  bool busy = false, ending = false;
  std::thread thread;
};

namespace {

// Of all streams and events. Never destroyed, since threads outlive static destructors.
struct Machine {
  std::mutex mutex;
  std::condition_variable changed;
  CuStreamObject default_stream;
  std::deque<CuStreamObject*> streams;
};
Machine& TheMachine() {
  static auto* machine = new Machine;
  return *machine;
}

int Number(const char* name, int usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::atoi(text);
}

void RunStream(CuStreamObject* stream) {
  Machine& machine = TheMachine();
  const std::chrono::microseconds delay(Number("FAKE_GPU_DELAY_US", 0));
  std::unique_lock lock(machine.mutex);
  for (;;) {
    machine.changed.wait(lock, [&] { return stream->ending || !stream->work.empty(); });
    if (stream->work.empty()) return;
    std::function<void()> work = std::move(stream->work.front());
    stream->work.pop_front();
    stream->busy = true;
    lock.unlock();
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    work();
    lock.lock();
    stream->busy = false;
    machine.changed.notify_all();
  }
}

void Submit(CuStream given, std::function<void()> work) {
  Machine& machine = TheMachine();
  std::lock_guard lock(machine.mutex);
  CuStreamObject* stream = given == nullptr ? &machine.default_stream : given;
  if (stream->capturing != nullptr) {
    stream->capturing->nodes.emplace_back(
        [work = std::move(work)](CuStream launched) { Submit(launched, work); });
    return;
  }
  if (!stream->thread.joinable()) stream->thread = std::thread(RunStream, stream);
  stream->work.push_back(std::move(work));
  machine.changed.notify_all();
}

bool IsIdle(const CuStreamObject& stream) { return stream.work.empty() && !stream.busy; }

void WaitFor(CuStream given) {
  Machine& machine = TheMachine();
  std::unique_lock lock(machine.mutex);
  const CuStreamObject* stream = given == nullptr ? &machine.default_stream : given;
  machine.changed.wait(lock, [&] { return IsIdle(*stream); });
}

// FAKE_GPU_LAUNCHES: a file that gets a line for each launch of a graph.
void NoteLaunch(size_t nodes) {
  const char* path = std::getenv("FAKE_GPU_LAUNCHES");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%zu\n", nodes);
  std::fclose(file);
}

thread_local int current_contexts = 0;

template <unsigned kSegments>
void Launch(CuStream stream, unsigned blocks, unsigned threads, void* argument) {
  auto batch = std::make_shared<BatchArguments<kSegments>>();
  std::memcpy(batch.get(), argument, sizeof(BatchHead));
  std::memcpy(batch->segment, static_cast<BatchArguments<kSegments>*>(argument)->segment,
              batch->head.segments * sizeof(BatchSegment));
  Submit(stream, [batch, blocks, threads] {
    test::PlayBatch(batch->head, batch->segment, blocks, threads);
  });
}

void LaunchAdasum(CuStream stream, const AdasumLaunch& launch, unsigned threads) {
  Submit(stream, [launch, threads] { test::PlayAdasum(launch, threads); });
}

void* At(CuAddress address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

}  // namespace
}  // namespace hvd

using hvd::CuAddress;
using hvd::CuContext;
using hvd::CuDevice;
using hvd::CuEvent;
using hvd::CuFunction;
using hvd::CuGraph;
using hvd::CuGraphExec;
using hvd::CuModule;
using hvd::CuResult;
using hvd::CuStream;
using hvd::TheMachine;

#define FAKE_CUDA extern "C" __attribute__((visibility("default"))) CuResult
#define FAKE_NEEDS_CONTEXT                       \
  if (hvd::current_contexts == 0) {              \
    return 201; /* CUDA_ERROR_INVALID_CONTEXT */ \
  }

extern "C" __attribute__((visibility("default"))) void fake_gpu_submit(CuStream stream,
                                                                       void (*run)(void* work),
                                                                       void* work) {
  hvd::Submit(stream, [run, work] { run(work); });
}

extern "C" __attribute__((visibility("default"))) bool fake_gpu_keep(
    CuStream stream, void (*launch)(void* node, CuStream stream), void* node,
    void (*drop)(void* node)) {
  std::lock_guard lock(TheMachine().mutex);
  if (stream == nullptr || stream->capturing == nullptr) return false;
  stream->capturing->nodes.emplace_back([launch, kept = std::shared_ptr<void>(node, drop)](
                                            CuStream launched) { launch(kept.get(), launched); });
  return true;
}

FAKE_CUDA cuInit(unsigned) { return 0; }
FAKE_CUDA cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
FAKE_CUDA cuGetErrorName(CuResult, const char** name) {
  *name = "CUDA_ERROR_OF_THE_FAKE";
  return 0;
}
FAKE_CUDA cuGetErrorString(CuResult, const char** words) {
  *words = "an error of the fake driver";
  return 0;
}
FAKE_CUDA cuDeviceGetCount(int* count) {
  *count = hvd::Number("FAKE_GPU_COUNT", 8);
  return 0;
}
FAKE_CUDA cuDeviceGet(CuDevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= hvd::Number("FAKE_GPU_COUNT", 8)) return 101;
  *device = ordinal;
  return 0;
}
FAKE_CUDA cuDeviceGetName(char* name, int bytes, CuDevice) {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return 0;
}
FAKE_CUDA cuDeviceGetAttribute(int* value, int attribute, CuDevice device) {
  const bool shared = hvd::Number("FAKE_GPU_SHARED", 0) != 0;
  *value = attribute == hvd::kCudaComputeCapabilityMajor ? 9
           : attribute == hvd::kCudaPciBus               ? (shared ? 7 : device + 10)
                                                         : 0;
  return 0;
}
FAKE_CUDA cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  *context = reinterpret_cast<CuContext>(static_cast<uintptr_t>(device) + 1);
  return 0;
}
FAKE_CUDA cuDevicePrimaryCtxRelease_v2(CuDevice) { return 0; }
FAKE_CUDA cuCtxPushCurrent_v2(CuContext) {
  ++hvd::current_contexts;
  return 0;
}
FAKE_CUDA cuCtxPopCurrent_v2(CuContext* context) {
  FAKE_NEEDS_CONTEXT
  --hvd::current_contexts;
  *context = nullptr;
  return 0;
}
FAKE_CUDA cuCtxSynchronize() {
  FAKE_NEEDS_CONTEXT
  hvd::Machine& machine = TheMachine();
  std::unique_lock lock(machine.mutex);
  machine.changed.wait(lock, [&] {
    for (const auto* stream : machine.streams) {
      if (!hvd::IsIdle(*stream)) return false;
    }
    return hvd::IsIdle(machine.default_stream);
  });
  return 0;
}
FAKE_CUDA cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  FAKE_NEEDS_CONTEXT
  *least = 0;
  *greatest = -5;
  return 0;
}
FAKE_CUDA cuStreamCreateWithPriority(CuStream* stream, unsigned, int) {
  FAKE_NEEDS_CONTEXT
  *stream = new hvd::CuStreamObject;
  std::lock_guard lock(TheMachine().mutex);
  TheMachine().streams.push_back(*stream);
  return 0;
}
FAKE_CUDA cuStreamDestroy_v2(CuStream stream) {
  FAKE_NEEDS_CONTEXT {
    std::lock_guard lock(TheMachine().mutex);
    stream->ending = true;
    std::erase(TheMachine().streams, stream);
    TheMachine().changed.notify_all();
  }
  if (stream->thread.joinable()) stream->thread.join();
  delete stream;
  return 0;
}
FAKE_CUDA cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned) {
  FAKE_NEEDS_CONTEXT
  std::unique_lock lock(TheMachine().mutex);
  const uint64_t round = event->recorded;
  lock.unlock();
  hvd::Submit(stream, [event, round] {
    std::unique_lock waiting(TheMachine().mutex);
    TheMachine().changed.wait(waiting, [&] { return event->Done(round); });
  });
  return 0;
}
FAKE_CUDA cuStreamSynchronize(CuStream stream) {
  FAKE_NEEDS_CONTEXT
  hvd::WaitFor(stream);
  return 0;
}
// FAKE_GPU_CAPTURED=1: the streams of the program are.
FAKE_CUDA cuStreamIsCapturing(CuStream, int* status) {
  FAKE_NEEDS_CONTEXT
  *status = hvd::Number("FAKE_GPU_CAPTURED", 0);
  return 0;
}
FAKE_CUDA cuThreadExchangeStreamCaptureMode(int*) { return 0; }
FAKE_CUDA cuEventCreate(CuEvent* event, unsigned) {
  FAKE_NEEDS_CONTEXT
  *event = new hvd::CuEventObject;
  return 0;
}
// Work may still name it, as the real driver allows.
FAKE_CUDA cuEventDestroy_v2(CuEvent) {
  FAKE_NEEDS_CONTEXT
  return 0;
}
FAKE_CUDA cuEventRecord(CuEvent event, CuStream stream) {
  FAKE_NEEDS_CONTEXT
  std::unique_lock lock(TheMachine().mutex);
  const uint64_t round = ++event->recorded;
  lock.unlock();
  hvd::Submit(stream, [event, round] {
    std::lock_guard done(TheMachine().mutex);
    event->Signal(round);
    TheMachine().changed.notify_all();
  });
  return 0;
}
FAKE_CUDA cuEventQuery(CuEvent event) {
  FAKE_NEEDS_CONTEXT
  std::lock_guard lock(TheMachine().mutex);
  return event->Done(event->recorded) ? 0 : hvd::kCudaNotReady;
}
FAKE_CUDA cuMemAlloc_v2(CuAddress* address, size_t bytes) {
  FAKE_NEEDS_CONTEXT
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  *address = reinterpret_cast<uintptr_t>(memory);
  return memory == nullptr ? hvd::kCudaOutOfMemory : 0;
}
FAKE_CUDA cuMemFree_v2(CuAddress address) {
  FAKE_NEEDS_CONTEXT
  std::free(hvd::At(address));
  return 0;
}
FAKE_CUDA cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  FAKE_NEEDS_CONTEXT
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return 0;
}
FAKE_CUDA cuMemFreeHost(void* memory) {
  FAKE_NEEDS_CONTEXT
  std::free(memory);
  return 0;
}
FAKE_CUDA cuMemcpyHtoDAsync_v2(CuAddress to, const void* from, size_t bytes, CuStream stream) {
  FAKE_NEEDS_CONTEXT
  hvd::Submit(stream, [=] { std::memcpy(hvd::At(to), from, bytes); });
  return 0;
}
FAKE_CUDA cuMemcpyDtoHAsync_v2(void* to, CuAddress from, size_t bytes, CuStream stream) {
  FAKE_NEEDS_CONTEXT
  hvd::Submit(stream, [=] { std::memcpy(to, hvd::At(from), bytes); });
  return 0;
}
FAKE_CUDA cuMemcpyDtoDAsync_v2(CuAddress to, CuAddress from, size_t bytes, CuStream stream) {
  FAKE_NEEDS_CONTEXT
  hvd::Submit(stream, [=] { std::memcpy(hvd::At(to), hvd::At(from), bytes); });
  return 0;
}
FAKE_CUDA cuModuleLoadData(CuModule* module, const void* image) {
  FAKE_NEEDS_CONTEXT
  const bool refuses = hvd::Number("FAKE_GPU_REFUSES_KERNELS", 0) != 0;
  if (refuses && std::memcmp(image, "FAKE CUBIN", 10) != 0) return hvd::kCudaUnsupportedPtx;
  *module = reinterpret_cast<CuModule>(uintptr_t{1});
  return 0;
}
FAKE_CUDA cuModuleUnload(CuModule) {
  FAKE_NEEDS_CONTEXT
  return 0;
}
FAKE_CUDA cuModuleGetFunction(CuFunction* function, CuModule, const char* name) {
  FAKE_NEEDS_CONTEXT
  const uintptr_t handle = hvd::test::HandleOfKernel(name);
  *function = reinterpret_cast<CuFunction>(handle);
  return handle == 0 ? 500 : 0;  // CUDA_ERROR_NOT_FOUND
}
FAKE_CUDA cuLaunchKernel(CuFunction function, unsigned blocks, unsigned blocks_y, unsigned,
                         unsigned threads, unsigned, unsigned, unsigned, CuStream stream,
                         void** parameters, void**) {
  FAKE_NEEDS_CONTEXT
  const auto handle = reinterpret_cast<uintptr_t>(function);
  if (hvd::test::IsAdasumHandle(handle)) {
    hvd::LaunchAdasum(stream,
                      {hvd::test::AdasumOfHandle(handle), blocks, blocks_y,
                       *static_cast<hvd::AdasumArguments*>(parameters[0])},
                      threads);
  } else if (handle == hvd::kSmallBatch) {
    hvd::Launch<hvd::kSmallBatch>(stream, blocks, threads, parameters[0]);
  } else {
    hvd::Launch<hvd::kLargeBatch>(stream, blocks, threads, parameters[0]);
  }
  return 0;
}
FAKE_CUDA cuStreamBeginCapture_v2(CuStream stream, int) {
  FAKE_NEEDS_CONTEXT
  std::lock_guard lock(TheMachine().mutex);
  if (stream->capturing != nullptr) return 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  stream->capturing = new hvd::CuGraphObject;
  return 0;
}
FAKE_CUDA cuStreamEndCapture(CuStream stream, CuGraph* graph) {
  FAKE_NEEDS_CONTEXT
  std::lock_guard lock(TheMachine().mutex);
  *graph = std::exchange(stream->capturing, nullptr);
  return *graph == nullptr ? 901 : 0;  // CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
}
// NOLINTNEXTLINE(google-runtime-int): as in cuda.h
FAKE_CUDA cuGraphInstantiateWithFlags(CuGraphExec* made, CuGraph graph, unsigned long long) {
  FAKE_NEEDS_CONTEXT
  *made = new hvd::CuGraphExecObject;
  (*made)->nodes = graph->nodes;
  return 0;
}
FAKE_CUDA cuGraphDestroy(CuGraph graph) {
  FAKE_NEEDS_CONTEXT
  delete graph;
  return 0;
}
FAKE_CUDA cuGraphLaunch(CuGraphExec graph, CuStream stream) {
  FAKE_NEEDS_CONTEXT
  hvd::NoteLaunch(graph->nodes.size());
  for (const auto& node : graph->nodes) node(stream);
  return 0;
}
// Work that is in a stream goes on to its end.
FAKE_CUDA cuGraphExecDestroy(CuGraphExec graph) {
  FAKE_NEEDS_CONTEXT
  delete graph;
  return 0;
}
