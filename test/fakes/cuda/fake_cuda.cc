#include "test/fakes/cuda/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/device/cuda/cuda_calls.h"
#include "runtime/device/cuda/driver_loader.h"
#include "test/fakes/cuda/play_kernels.h"

namespace hvd::test {
namespace {

// The piece of `memory` in which the range lies.
std::optional<uint64_t> PieceWith(const std::map<uint64_t, size_t>& memory, uint64_t address,
                                  uint64_t bytes) {
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return std::nullopt;
  const auto& [begin, size] = *std::prev(after);
  const bool holds = address - begin <= size && bytes <= size - (address - begin);
  return holds ? std::optional(begin) : std::nullopt;
}

constexpr int kFirstDevice = 100;  // no ordinal may be taken for a device

CuContext ContextOf(CuDevice device) {
  return reinterpret_cast<CuContext>(static_cast<uintptr_t>(device));
}
// Null below 0.
CuContext ContextOfOrdinal(int ordinal) {
  return ordinal < 0 ? nullptr : ContextOf(ordinal + kFirstDevice);
}

bool Overlap(const FakeRange& a, uint64_t begin, uint64_t bytes) {
  return a.begin < begin + bytes && begin < a.begin + a.bytes;
}

uint64_t Address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

void* Allocate(size_t bytes) { return std::aligned_alloc(256, (bytes + 255) / 256 * 256); }

// In a thread of the usual mode.
bool BreaksCaptures(const std::string& symbol) {
  for (const char* unsafe :
       {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuModuleLoadData",
        "cuModuleUnload", "cuEventQuery", "cuStreamSynchronize"}) {
    if (symbol == unsafe) return true;
  }
  return false;
}

// ---- the driver's functions, in the order of HVD_CUDA_DRIVER_CALLS

#define HVD_FAKE_ENTER(symbol)     \
  FakeCuda& fake = FakeCuda::It(); \
  if (CuResult ordered = fake.Enter(symbol); ordered != 0) return ordered
#define HVD_FAKE_ENTER_ANYWHERE(symbol) \
  FakeCuda& fake = FakeCuda::It();      \
  if (CuResult ordered = fake.Enter(symbol, false); ordered != 0) return ordered
// For calls that give something back, whatever they answer.
#define HVD_FAKE_ENTER_END(symbol) \
  FakeCuda& fake = FakeCuda::It(); \
  const CuResult ordered = fake.Enter(symbol)

CuResult Init(unsigned) {
  HVD_FAKE_ENTER_ANYWHERE("cuInit");
  fake.started = true;
  return 0;
}
CuResult DriverGetVersion(int* version) {
  HVD_FAKE_ENTER_ANYWHERE("cuDriverGetVersion");
  *version = 13000;
  return 0;
}
CuResult GetErrorName(CuResult error, const char** name) {
  static thread_local std::string text;
  text = "CUDA_ERROR_NUMBER_" + std::to_string(error);
  *name = text.c_str();
  return 0;
}
CuResult GetErrorString(CuResult error, const char** words) {
  static thread_local std::string text;
  text = "the words of " + std::to_string(error);
  *words = text.c_str();
  return 0;
}
CuResult DeviceGetCount(int* count) {
  HVD_FAKE_ENTER_ANYWHERE("cuDeviceGetCount");
  *count = fake.devices;
  return 0;
}
CuResult DeviceGet(CuDevice* device, int ordinal) {
  HVD_FAKE_ENTER_ANYWHERE("cuDeviceGet");
  if (ordinal < 0 || ordinal >= fake.devices) return 101;
  *device = ordinal + kFirstDevice;
  return 0;
}
CuResult DeviceGetName(char* name, int bytes, CuDevice device) {
  HVD_FAKE_ENTER_ANYWHERE("cuDeviceGetName");
  if (device < kFirstDevice) return 101;
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return 0;
}
CuResult DeviceGetAttribute(int* value, int attribute, CuDevice device) {
  HVD_FAKE_ENTER_ANYWHERE("cuDeviceGetAttribute");
  if (device < kFirstDevice) return 101;
  *value = attribute == kCudaComputeCapabilityMajor ? 9
           : attribute == kCudaPciBus               ? (fake.same_place ? 7 : device)
                                                    : 0;
  return 0;
}
CuResult PrimaryCtxRetain(CuContext* context, CuDevice device) {
  HVD_FAKE_ENTER_ANYWHERE("cuDevicePrimaryCtxRetain");
  fake.retained += 1;
  *context = ContextOf(device);
  return 0;
}
CuResult PrimaryCtxRelease(CuDevice) {
  FakeCuda& fake = FakeCuda::It();
  const CuResult ordered = fake.Enter("cuDevicePrimaryCtxRelease_v2", false);
  fake.retained -= 1;
  return ordered;
}
CuResult CtxPushCurrent(CuContext context) {
  FakeCuda& fake = FakeCuda::It();
  const CuResult ordered = fake.Enter("cuCtxPushCurrent_v2", false);
  if (LeavesContextUnusable(ordered)) fake.Break(context);
  if (ordered != 0) return ordered;
  if (fake.retained == 0) fake.Complain("a context is made current that nobody retains");
  fake.current.push_back(context);
  return 0;
}
CuResult CtxPopCurrent(CuContext* context) {
  HVD_FAKE_ENTER_END("cuCtxPopCurrent_v2");
  *context = fake.current.back();
  fake.current.pop_back();
  return ordered;
}
CuResult CtxSynchronize() {
  HVD_FAKE_ENTER_END("cuCtxSynchronize");
  if (fake.Captures()) fake.Complain("the processor waits for a context that has a capture");
  if (!fake.Run()) fake.Complain("the processor waits for a stream that waits for ever");
  return ordered;
}
CuResult CtxGetStreamPriorityRange(int* least, int* greatest) {
  HVD_FAKE_ENTER("cuCtxGetStreamPriorityRange");
  *least = 0;
  *greatest = -5;
  return 0;
}
CuResult StreamCreate(CuStream* stream, unsigned flags, int priority) {
  HVD_FAKE_ENTER("cuStreamCreateWithPriority");
  if (flags != kCudaStreamNonBlocking) fake.Complain("a stream waits for the default stream");
  if (priority != -5) fake.Complain("a stream has not the highest priority");
  *stream = fake.AddStream(fake.Current());
  (*stream)->ours = true;
  fake.Own(Address(*stream));
  return 0;
}
CuResult StreamDestroy(CuStream stream) {
  HVD_FAKE_ENTER_END("cuStreamDestroy_v2");
  if (stream->destroyed) fake.Complain("a stream is destroyed twice");
  if (stream->capturing != nullptr) fake.Complain("a stream is destroyed that captures");
  if (!stream->work.empty()) fake.Complain("a stream is destroyed that has work");
  stream->destroyed = true;
  return ordered;
}
CuResult StreamWaitEvent(CuStream stream, CuEvent event, unsigned) {
  HVD_FAKE_ENTER("cuStreamWaitEvent");
  if (event->destroyed) fake.Complain("a stream waits for an event that is destroyed");
  if (event->recorded == 0) fake.Complain("a stream waits for an event that was never recorded");
  fake.CheckNotCaptured(stream);
  fake.Submit(stream, {.awaits = event, .round = event->recorded});
  return 0;
}
CuResult StreamSynchronize(CuStream stream) {
  HVD_FAKE_ENTER_END("cuStreamSynchronize");
  if (stream->capturing != nullptr) fake.Complain("the processor waits for a capture");
  fake.Run();
  if (!stream->work.empty()) fake.Complain("the processor waits for a stream that waits for ever");
  return ordered;
}
CuResult StreamIsCapturing(CuStream stream, int* status) {
  HVD_FAKE_ENTER("cuStreamIsCapturing");
  if (stream == nullptr && fake.default_stream.captured) return kCudaCaptureImplicit;
  *status = stream != nullptr && stream->captured ? 1 : kCudaCaptureNone;
  return 0;
}
CuResult ExchangeCaptureMode(int* mode) {
  HVD_FAKE_ENTER("cuThreadExchangeStreamCaptureMode");
  std::swap(*mode, FakeCuda::capture_mode);
  return 0;
}
CuResult EventCreate(CuEvent* event, unsigned flags) {
  HVD_FAKE_ENTER("cuEventCreate");
  if (flags != kCudaEventDisableTiming) fake.Complain("an event takes times");
  fake.events.push_back(std::make_unique<CuEventObject>());
  fake.events.back()->context = fake.Current();
  *event = fake.events.back().get();
  fake.Own(Address(*event));
  return 0;
}
CuResult EventDestroy(CuEvent event) {
  HVD_FAKE_ENTER_END("cuEventDestroy_v2");
  if (event->destroyed) fake.Complain("an event is destroyed twice");
  event->destroyed = true;
  return ordered;
}
CuResult EventRecord(CuEvent event, CuStream stream) {
  HVD_FAKE_ENTER("cuEventRecord");
  if (event->destroyed) fake.Complain("an event is recorded that is destroyed");
  if (event->context != fake.Current()) fake.Complain("an event of another device is recorded");
  fake.CheckNotCaptured(stream);
  event->recorded += 1;
  fake.Submit(stream, {.signals = event, .round = event->recorded});
  return 0;
}
CuResult EventQuery(CuEvent event) {
  HVD_FAKE_ENTER("cuEventQuery");
  if (event->destroyed) fake.Complain("an event is asked for that is destroyed");
  return event->Done(event->recorded) ? 0 : kCudaNotReady;
}
CuResult MemAlloc(CuAddress* address, size_t bytes) {
  HVD_FAKE_ENTER("cuMemAlloc_v2");
  if (bytes == 0) return 1;
  void* memory = Allocate(bytes);
  fake.AddMemory(Address(memory), bytes);
  fake.Own(Address(memory));
  *address = Address(memory);
  return 0;
}
CuResult MemFree(CuAddress address) {
  HVD_FAKE_ENTER_END("cuMemFree_v2");
  auto found = fake.device_memory.find(address);
  if (found == fake.device_memory.end()) return 1;
  fake.CheckIdle("cuMemFree_v2", address, found->second);
  fake.device_memory.erase(found);
  std::free(reinterpret_cast<void*>(static_cast<uintptr_t>(address)));
  return ordered;
}
CuResult MemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  HVD_FAKE_ENTER("cuMemHostAlloc");
  if (flags != kCudaHostPortable) fake.Complain("memory is pinned for one context only");
  *memory = Allocate(bytes);
  fake.pinned[Address(*memory)] = bytes;
  fake.Own(Address(*memory));
  return 0;
}
CuResult MemFreeHost(void* memory) {
  HVD_FAKE_ENTER_END("cuMemFreeHost");
  auto found = fake.pinned.find(Address(memory));
  if (found == fake.pinned.end()) return 1;
  fake.CheckIdle("cuMemFreeHost", found->first, found->second);
  fake.pinned.erase(found);
  std::free(memory);
  return ordered;
}
CuResult MemcpyToDevice(CuAddress to, const void* from, size_t bytes, CuStream stream) {
  HVD_FAKE_ENTER("cuMemcpyHtoDAsync_v2");
  fake.CheckDeviceRange("cuMemcpyHtoDAsync_v2", to, bytes);
  if (!PieceWith(fake.pinned, Address(from), bytes))
    fake.Complain("a copy is not of pinned memory");
  fake.Submit(stream, {.run = [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); },
                       .touches = {{to, bytes}, {Address(from), bytes}}});
  return 0;
}
CuResult MemcpyToHost(void* to, CuAddress from, size_t bytes, CuStream stream) {
  HVD_FAKE_ENTER("cuMemcpyDtoHAsync_v2");
  fake.CheckDeviceRange("cuMemcpyDtoHAsync_v2", from, bytes);
  if (!PieceWith(fake.pinned, Address(to), bytes)) fake.Complain("a copy is not to pinned memory");
  fake.Submit(stream, {.run = [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); },
                       .touches = {{from, bytes}, {Address(to), bytes}}});
  return 0;
}
CuResult ModuleLoadData(CuModule* module, const void* image) {
  HVD_FAKE_ENTER("cuModuleLoadData");
  if (image == nullptr) fake.Complain("a module is loaded from nowhere");
  const std::string& taken = fake.taken_image;
  if (std::memcmp(image, taken.data(), taken.size()) != 0) return kCudaNoBinaryForGpu;
  fake.modules[fake.Current()] += 1;
  *module = reinterpret_cast<CuModule>(uintptr_t{1});
  return 0;
}
CuResult ModuleUnload(CuModule) {
  HVD_FAKE_ENTER_END("cuModuleUnload");
  fake.modules[fake.Current()] -= 1;
  return ordered;
}
CuResult ModuleGetFunction(CuFunction* function, CuModule, const char* name) {
  HVD_FAKE_ENTER("cuModuleGetFunction");
  const uintptr_t handle = HandleOfKernel(name);
  *function = reinterpret_cast<CuFunction>(handle);
  return handle == 0 ? 500 : 0;  // CUDA_ERROR_NOT_FOUND
}

uint64_t BytesOf(KernelElement element) {
  switch (element) {
    case KernelElement::kFloat64: return 8;
    case KernelElement::kFloat32: return 4;
    case KernelElement::kFloat16:
    case KernelElement::kBfloat16: return 2;
    default: return 1;
  }
}

// The bytes that a batch reads or writes.
std::vector<FakeRange> Touched(const BatchArguments<kLargeBatch>& batch) {
  const uint64_t from_bytes = BytesOf(batch.head.from), to_bytes = BytesOf(batch.head.to);
  std::vector<FakeRange> ranges;
  for (Word32 i = 0; i < batch.head.segments; ++i) {
    const BatchSegment& segment = batch.segment[i];
    ranges.push_back({segment.from, segment.elements * from_bytes});
    ranges.push_back({segment.to, segment.elements * to_bytes});
  }
  return ranges;
}

// The bytes that a kernel of Adasum reads or writes.
std::vector<FakeRange> Touched(const AdasumLaunch& launch) {
  const AdasumArguments& a = launch.arguments;
  const uint64_t triangle = adasum::PairsOf(a.count) * sizeof(double);
  const auto vectors = [&] {
    std::vector<FakeRange> ranges;
    for (Word32 i = 0; i < a.count; ++i)
      ranges.push_back({a.first + i * a.stride, a.elements * BytesOf(a.element)});
    return ranges;
  };
  std::vector<FakeRange> ranges;
  switch (launch.kernel) {
    case AdasumKernel::kDots:
      ranges = vectors();
      ranges.push_back({a.partials, a.chunks * triangle});
      break;
    case AdasumKernel::kFold:
      ranges = {{a.partials, a.chunks * triangle}, {a.products, triangle}};
      break;
    case AdasumKernel::kWeigh:
      for (Word64 i = 0; i < a.triangle_count; ++i)
        ranges.push_back({a.triangles + i * a.triangle_stride, triangle});
      ranges.push_back({a.products, triangle});
      ranges.push_back({a.weights, a.count * sizeof(double)});
      break;
    case AdasumKernel::kSum:
      ranges = vectors();
      ranges.push_back({a.weights, a.count * sizeof(double)});
      ranges.push_back({a.output, a.elements * BytesOf(a.element)});
      break;
  }
  return ranges;
}

CuResult LaunchAdasum(const AdasumLaunch& launch, unsigned threads, CuStream stream) {
  FakeCuda& fake = FakeCuda::It();
  std::vector<FakeRange> touches = Touched(launch);
  for (const FakeRange& range : touches)
    fake.CheckDeviceRange("cuLaunchKernel", range.begin, range.bytes);
  fake.Submit(stream, {.run = [launch, threads] { PlayAdasum(launch, threads); },
                       .touches = std::move(touches)});
  return 0;
}

CuResult LaunchKernel(CuFunction function, unsigned blocks, unsigned blocks_y, unsigned,
                      unsigned threads, unsigned, unsigned, unsigned, CuStream stream,
                      void** parameters, void**) {
  HVD_FAKE_ENTER("cuLaunchKernel");
  const auto most = reinterpret_cast<uintptr_t>(function);
  if (IsAdasumHandle(most)) {
    return LaunchAdasum({AdasumOfHandle(most), blocks, blocks_y,
                         *static_cast<const AdasumArguments*>(parameters[0])},
                        threads, stream);
  }
  // As the driver does: the parameters that the kernel declares are copied now.
  auto batch = std::make_shared<BatchArguments<kLargeBatch>>();
  std::memcpy(batch.get(), parameters[0], sizeof(BatchHead) + most * sizeof(BatchSegment));
  if (batch->head.segments > most) fake.Complain("a launch has more segments than its argument");
  std::vector<FakeRange> touches = Touched(*batch);
  for (const FakeRange& range : touches) {
    fake.CheckDeviceRange("cuLaunchKernel", range.begin, range.bytes);
  }
  auto run = [batch, blocks, threads] { PlayBatch(batch->head, batch->segment, blocks, threads); };
  fake.Submit(stream, {.run = std::move(run), .touches = std::move(touches)});
  return 0;
}

CuResult StreamBeginCapture(CuStream stream, int mode) {
  HVD_FAKE_ENTER("cuStreamBeginCapture_v2");
  if (mode != kCudaCaptureRelaxed) fake.Complain("a capture keeps other threads from their calls");
  if (stream->capturing != nullptr) fake.Complain("a stream captures twice");
  fake.graphs.push_back(std::make_unique<CuGraphObject>());
  stream->capturing = fake.graphs.back().get();
  fake.Own(Address(stream->capturing));
  return 0;
}
CuResult StreamEndCapture(CuStream stream, CuGraph* graph) {
  FakeCuda& fake = FakeCuda::It();
  if (stream->capturing == nullptr) fake.Complain("the end of a capture that nobody has begun");
  *graph = std::exchange(stream->capturing, nullptr);
  const CuResult ordered = fake.Enter("cuStreamEndCapture", /*needs_context=*/false);
  if (ordered != 0) std::exchange(*graph, nullptr)->destroyed = true;  // it was invalid
  return ordered;
}
CuResult GraphInstantiate(CuGraphExec* made, CuGraph graph, unsigned long long flags) {
  HVD_FAKE_ENTER("cuGraphInstantiateWithFlags");
  if (graph->destroyed || flags != 0) fake.Complain("no graph, or one with flags");
  fake.execs.push_back(std::make_unique<CuGraphExecObject>());
  fake.execs.back()->nodes = graph->nodes;
  *made = fake.execs.back().get();
  fake.Own(Address(*made));
  return 0;
}
CuResult GraphDestroy(CuGraph graph) {
  FakeCuda& fake = FakeCuda::It();
  const CuResult ordered = fake.Enter("cuGraphDestroy", /*needs_context=*/false);
  if (std::exchange(graph->destroyed, true)) fake.Complain("a graph is destroyed twice");
  return ordered;
}
CuResult GraphLaunch(CuGraphExec graph, CuStream stream) {
  HVD_FAKE_ENTER("cuGraphLaunch");
  if (graph->destroyed) fake.Complain("a graph is launched that is destroyed");
  if (stream->capturing != nullptr) fake.Complain("a graph is launched into a capture");
  for (const FakeNode& node : graph->nodes) node.give(stream);
  return 0;
}
CuResult GraphExecDestroy(CuGraphExec graph) {
  FakeCuda& fake = FakeCuda::It();
  const CuResult ordered = fake.Enter("cuGraphExecDestroy", /*needs_context=*/false);
  if (std::exchange(graph->destroyed, true)) fake.Complain("a graph is destroyed twice");
  return ordered;
}

struct NamedEntry {
  const char* symbol;
  void* function;
};

const std::vector<NamedEntry>& Entries() {
  const CudaDriver names;
  static const std::vector<NamedEntry> entries = {
      {names.init.symbol, reinterpret_cast<void*>(&Init)},
      {names.driver_get_version.symbol, reinterpret_cast<void*>(&DriverGetVersion)},
      {names.get_error_name.symbol, reinterpret_cast<void*>(&GetErrorName)},
      {names.get_error_string.symbol, reinterpret_cast<void*>(&GetErrorString)},
      {names.device_get_count.symbol, reinterpret_cast<void*>(&DeviceGetCount)},
      {names.device_get.symbol, reinterpret_cast<void*>(&DeviceGet)},
      {names.device_get_name.symbol, reinterpret_cast<void*>(&DeviceGetName)},
      {names.device_get_attribute.symbol, reinterpret_cast<void*>(&DeviceGetAttribute)},
      {names.primary_ctx_retain.symbol, reinterpret_cast<void*>(&PrimaryCtxRetain)},
      {names.primary_ctx_release.symbol, reinterpret_cast<void*>(&PrimaryCtxRelease)},
      {names.ctx_push_current.symbol, reinterpret_cast<void*>(&CtxPushCurrent)},
      {names.ctx_pop_current.symbol, reinterpret_cast<void*>(&CtxPopCurrent)},
      {names.ctx_synchronize.symbol, reinterpret_cast<void*>(&CtxSynchronize)},
      {names.ctx_get_stream_priority_range.symbol,
       reinterpret_cast<void*>(&CtxGetStreamPriorityRange)},
      {names.stream_create.symbol, reinterpret_cast<void*>(&StreamCreate)},
      {names.stream_destroy.symbol, reinterpret_cast<void*>(&StreamDestroy)},
      {names.stream_wait_event.symbol, reinterpret_cast<void*>(&StreamWaitEvent)},
      {names.stream_synchronize.symbol, reinterpret_cast<void*>(&StreamSynchronize)},
      {names.stream_is_capturing.symbol, reinterpret_cast<void*>(&StreamIsCapturing)},
      {names.exchange_capture_mode.symbol, reinterpret_cast<void*>(&ExchangeCaptureMode)},
      {names.event_create.symbol, reinterpret_cast<void*>(&EventCreate)},
      {names.event_destroy.symbol, reinterpret_cast<void*>(&EventDestroy)},
      {names.event_record.symbol, reinterpret_cast<void*>(&EventRecord)},
      {names.event_query.symbol, reinterpret_cast<void*>(&EventQuery)},
      {names.mem_alloc.symbol, reinterpret_cast<void*>(&MemAlloc)},
      {names.mem_free.symbol, reinterpret_cast<void*>(&MemFree)},
      {names.mem_host_alloc.symbol, reinterpret_cast<void*>(&MemHostAlloc)},
      {names.mem_free_host.symbol, reinterpret_cast<void*>(&MemFreeHost)},
      {names.memcpy_to_device.symbol, reinterpret_cast<void*>(&MemcpyToDevice)},
      {names.memcpy_to_host.symbol, reinterpret_cast<void*>(&MemcpyToHost)},
      {names.module_load_data.symbol, reinterpret_cast<void*>(&ModuleLoadData)},
      {names.module_unload.symbol, reinterpret_cast<void*>(&ModuleUnload)},
      {names.module_get_function.symbol, reinterpret_cast<void*>(&ModuleGetFunction)},
      {names.launch_kernel.symbol, reinterpret_cast<void*>(&LaunchKernel)},
      {names.stream_begin_capture.symbol, reinterpret_cast<void*>(&StreamBeginCapture)},
      {names.stream_end_capture.symbol, reinterpret_cast<void*>(&StreamEndCapture)},
      {names.graph_instantiate.symbol, reinterpret_cast<void*>(&GraphInstantiate)},
      {names.graph_destroy.symbol, reinterpret_cast<void*>(&GraphDestroy)},
      {names.graph_launch.symbol, reinterpret_cast<void*>(&GraphLaunch)},
      {names.graph_exec_destroy.symbol, reinterpret_cast<void*>(&GraphExecDestroy)},
  };
  return entries;
}

}  // namespace

FakeCuda::FakeCuda() {
  if (it_ != nullptr) std::abort();
  it_ = this;
}

FakeCuda::~FakeCuda() {
  for (const auto* memory : {&device_memory, &pinned}) {
    for (const auto& [address, bytes] : *memory) std::free(reinterpret_cast<void*>(address));
  }
  it_ = nullptr;
}

void* FakeCuda::Find(const std::string& symbol) const {
  if (lacking.contains(symbol)) return nullptr;
  for (const NamedEntry& entry : Entries()) {
    if (symbol == entry.symbol) return entry.function;
  }
  return nullptr;
}

CudaDriver FakeCuda::Driver() const {
  Result<CudaDriver> driver = FillCudaDriver("the fake", [this](const char* s) { return Find(s); });
  if (!driver.ok() || !StartCudaDriver(*driver).ok()) std::abort();
  return *driver;
}

std::vector<std::string> FakeCuda::Symbols() {
  std::vector<std::string> symbols;
  CudaDriver driver;
  ForEachEntry(driver, [&](auto& entry) { symbols.emplace_back(entry.symbol); });
  return symbols;
}

std::vector<std::string> FakeCuda::GraphSymbols() {
  std::vector<std::string> symbols;
  CudaDriver driver;
  ForEachGraphEntry(driver, [&](auto& entry) { symbols.emplace_back(entry.symbol); });
  return symbols;
}

std::vector<std::string> FakeCuda::AllSymbols() {
  std::vector<std::string> symbols = Symbols();
  const std::vector<std::string> of_graphs = GraphSymbols();
  symbols.insert(symbols.end(), of_graphs.begin(), of_graphs.end());
  return symbols;
}

CuStream FakeCuda::MakeStream(int device) { return AddStream(ContextOfOrdinal(device)); }

CuStream FakeCuda::AddStream(CuContext context) {
  streams.push_back(std::make_unique<CuStreamObject>());
  streams.back()->context = context;
  return streams.back().get();
}

void FakeCuda::AddMemory(uint64_t address, size_t bytes) {
  device_memory[address] = bytes;
  homes_[address] = Current();
}

void FakeCuda::Give(CuStream stream, std::function<void()> work) {
  It().Submit(stream, {.run = std::move(work)});
}

bool FakeCuda::Run() {
  bool progress = true, left = false;
  while (progress) {
    progress = left = false;
    for (size_t i = 0; i <= streams.size(); ++i) {
      CuStreamObject& stream = i == 0 ? default_stream : *streams[i - 1];
      while (RunFront(stream)) progress = true;
      left = left || !stream.work.empty();
    }
  }
  return !left;
}

void FakeCuda::Run(CuStream stream) {
  while (RunFront(*stream)) {
  }
}

bool FakeCuda::RunFront(CuStreamObject& stream) {
  if (stream.work.empty()) return false;
  const FakeWork& front = stream.work.front();
  if (front.awaits != nullptr && !front.awaits->Done(front.round)) return false;
  if (front.may_run && !front.may_run()) return false;
  const FakeWork work = std::move(stream.work.front());
  stream.work.pop_front();
  if (work.run) work.run();
  if (work.signals != nullptr) work.signals->Signal(work.round);
  return true;
}

uint64_t FakeCuda::MakeMemory(size_t bytes, int device) {
  backing_.push_back(std::make_unique<std::byte[]>(bytes + 256));
  const uint64_t address = (Address(backing_.back().get()) + 255) / 256 * 256;
  framework_memory[address] = bytes;
  homes_[address] = ContextOfOrdinal(device);
  return address;
}

int FakeCuda::Count(const std::string& symbol) const {
  auto found = counts_.find(symbol);
  return found == counts_.end() ? 0 : found->second;
}

int FakeCuda::Entered(const std::string& symbol) const {
  auto found = entered_.find(symbol);
  return found == entered_.end() ? 0 : found->second;
}

bool FakeCuda::IsOfUsable(uint64_t address) const {
  const auto owner = owners_.find(address);
  return owner == owners_.end() || !unusable_.contains(owner->second);
}

size_t FakeCuda::Left(const std::map<uint64_t, size_t>& memory) const {
  return static_cast<size_t>(
      std::ranges::count_if(memory, [this](const auto& piece) { return IsOfUsable(piece.first); }));
}

std::vector<std::string> FakeCuda::Leaks() const {
  std::vector<std::string> leaks;
  auto note = [&](size_t count, const char* what) {
    if (count > 0) leaks.push_back(std::to_string(count) + " " + what);
  };
  const auto left = [this](const auto& objects) {
    return static_cast<size_t>(std::ranges::count_if(objects, [this](const auto& object) {
      return !object->destroyed && IsOfUsable(Address(object.get()));
    }));
  };
  note(left(events), "events");
  const auto ours = [this](const auto& stream) {
    return stream->ours && !stream->destroyed && IsOfUsable(Address(stream.get()));
  };
  note(static_cast<size_t>(std::ranges::count_if(streams, ours)), "streams");
  note(left(graphs) + left(execs), "graphs");
  note(Left(device_memory), "pieces of device memory");
  note(Left(pinned), "pieces of pinned memory");
  size_t loaded = 0;
  for (const auto& [context, count] : modules)
    if (!unusable_.contains(context)) loaded += static_cast<size_t>(count);
  note(loaded, "modules");
  note(static_cast<size_t>(retained), "retained contexts");
  note(current.size(), "current contexts");
  note(capture_mode == 0 ? 0 : 1, "threads in another mode of capture");
  return leaks;
}

CuResult FakeCuda::Ordered(const std::string& symbol) {
  const int call = entered_[symbol]++;
  if (once_.result != 0 && once_.symbol == symbol && once_.call == call)
    return std::exchange(once_.result, 0);
  const auto found = failures_.find(symbol);
  return found == failures_.end() ? 0 : found->second;
}

CuResult FakeCuda::Enter(const char* symbol, bool needs_context) {
  const std::string name = symbol;
  if (!started && name != "cuInit") Complain(name + " before cuInit");
  if (needs_context && current.empty()) Complain(name + " without a current context");
  // By these something ends; they answer with the error, too.
  static const std::set<std::string> allowed = {"cuDevicePrimaryCtxRelease_v2",
                                                "cuCtxPushCurrent_v2",
                                                "cuCtxPopCurrent_v2",
                                                "cuThreadExchangeStreamCaptureMode",
                                                "cuCtxSynchronize",
                                                "cuMemFree_v2",
                                                "cuStreamEndCapture",
                                                "cuGraphDestroy",
                                                "cuGraphExecDestroy",
                                                "cuStreamSynchronize",
                                                "cuEventDestroy_v2",
                                                "cuStreamDestroy_v2",
                                                "cuModuleUnload",
                                                "cuMemFreeHost"};
  const bool harmless = allowed.contains(name);
  if (program_captures && capture_mode != kCudaCaptureRelaxed && BreaksCaptures(name))
    Complain(name + " breaks a capture of the program");
  if (unusable_.contains(Current()) && !harmless) Complain(name + " in a context that is unusable");
  if (const CuResult ordered = Ordered(name); ordered != 0) {
    if (LeavesContextUnusable(ordered) && !current.empty()) unusable_.insert(Current());
    return ordered;
  }
  counts_[name] += 1;
  return 0;
}

void FakeCuda::Submit(CuStream stream, FakeWork work) {
  CuStreamObject& target = stream == nullptr ? default_stream : *stream;
  if (target.destroyed) Complain("work is given to a stream that is destroyed");
  if (target.context != nullptr && !current.empty() && target.context != Current())
    Complain("work is given to a stream of another device");
  if (target.capturing == nullptr) {
    target.work.push_back(std::move(work));
    return;
  }
  if (work.signals != nullptr || work.awaits != nullptr)
    Complain("an event of outside becomes a part of a capture");
  Keep(stream, {[this, work](CuStream launched) {
         for (const FakeRange& range : work.touches)
           CheckDeviceRange("cuGraphLaunch", range.begin, range.bytes);
         Submit(launched, work);
       }});
}

void FakeCuda::Keep(CuStream stream, FakeNode node) {
  stream->capturing->nodes.push_back(std::move(node));
}

bool FakeCuda::HasGraphOf(const void* owner) const {
  const auto has = [owner](const auto& graph) {
    return !graph->destroyed && std::ranges::any_of(graph->nodes, [owner](const FakeNode& node) {
      return node.owner == owner;
    });
  };
  return std::ranges::any_of(graphs, has) || std::ranges::any_of(execs, has);
}

bool FakeCuda::Captures() const {
  return std::ranges::any_of(streams, [](const auto& s) { return s->capturing != nullptr; });
}

void FakeCuda::CheckNotCaptured(CuStream stream) {
  const CuStreamObject& target = stream == nullptr ? default_stream : *stream;
  if (target.captured) Complain("a call becomes a part of a capture of the program");
}

void FakeCuda::CheckDeviceRange(const char* symbol, uint64_t address, uint64_t bytes) {
  std::optional<uint64_t> piece = PieceWith(device_memory, address, bytes);
  if (!piece) piece = PieceWith(framework_memory, address, bytes);
  if (!piece) return Complain(std::string(symbol) + " with memory that the device has not");
  const CuContext home = homes_[*piece];
  if (bytes > 0 && home != nullptr && !current.empty() && home != Current())
    Complain(std::string(symbol) + " with memory of another device");
}

void FakeCuda::CheckIdle(const char* symbol, uint64_t begin, uint64_t bytes) {
  for (size_t i = 0; i <= streams.size(); ++i) {
    const CuStreamObject& stream = i == 0 ? default_stream : *streams[i - 1];
    for (const FakeWork& work : stream.work) {
      for (const FakeRange& range : work.touches) {
        if (Overlap(range, begin, bytes)) {
          Complain(std::string(symbol) + " of memory that waiting work will touch");
        }
      }
    }
  }
}

}  // namespace hvd::test
