// The loops over host memory as two ranks use them, for every variant that this processor has: they
// read inputs that another core has just written, and write outputs that it has just read.
// GB/s of the bytes of one input; memcpy stands beside. All columns take turns, in an order that
// moves on, and a figure is the median.
//   core_perf [ROUNDS]     (200, fewer of large sizes; needs two cores)
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "cmd/hvd_perf/measure.h"
#include "runtime/base/relax.h"
#include "runtime/device/host_kernel_variants.h"
#include "runtime/device/host_kernels.h"

namespace {

constexpr size_t kMost = 32 << 20;  // bytes of an input
constexpr size_t kInputs = 4, kOutputs = 2;
constexpr size_t kLine = 64;

struct FreeMemory {
  void operator()(float* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<float, FreeMemory>;

Memory Zeros() {
  Memory memory(static_cast<float*>(std::aligned_alloc(4096, kMost)));
  std::memset(memory.get(), 0, kMost);
  return memory;
}

// Another core, which writes all inputs but the first and reads all outputs when told.
class OtherCore {
 public:
  OtherCore(const std::vector<Memory>& inputs, const std::vector<Memory>& outputs)
      : thread_([&] {
          hvd_perf::PinToAllowedCore(1);
          for (;;) {
            while (bytes_.load(std::memory_order_acquire) == 0) hvd::Relax();
            const size_t bytes = bytes_.load(std::memory_order_relaxed);
            if (bytes == kEnd) return;
            for (size_t k = 1; k < inputs.size(); ++k) Touch(inputs[k].get(), bytes, true);
            for (const Memory& output : outputs) Touch(output.get(), bytes, false);
            bytes_.store(0, std::memory_order_release);
          }
        }) {}
  ~OtherCore() {
    bytes_.store(kEnd);
    thread_.join();
  }
  void Use(size_t bytes) {
    bytes_.store(bytes, std::memory_order_release);
    while (bytes_.load(std::memory_order_acquire) != 0) hvd::Relax();
  }

 private:
  static constexpr size_t kEnd = ~size_t{0};
  static void Touch(float* memory, size_t bytes, bool write) {
    volatile float* at = memory;
    for (size_t i = 0; i < bytes / sizeof(float); i += kLine / sizeof(float)) {
      const float was = at[i];
      if (write) at[i] = was;
    }
  }

  std::atomic<size_t> bytes_{0};
  std::thread thread_;
};

struct Column {
  std::string name;
  std::function<void(size_t bytes)> run;
  std::vector<double> seconds;
};

// They use `in` and `out` whenever they run.
std::vector<Column> Columns(const std::vector<const void*>& in, const std::vector<void*>& out) {
  std::vector<Column> columns;
  columns.push_back({"memcpy", [&](size_t bytes) { std::memcpy(out[0], in[1], bytes); }, {}});
  for (const hvd::KernelVariant& variant : hvd::RunnableKernelVariants()) {
    const std::string name(variant.name);
    const hvd::Kernels& kernels = *variant.kernels;
    columns.push_back(
        {name + " copy", [&](size_t bytes) { kernels.copy(out[0], in[1], bytes); }, {}});
    for (auto [from, to, divisor] :
         {std::tuple{2ul, 1ul, 1.0}, {2ul, 2ul, 1.0}, {2ul, 2ul, 2.0}, {4ul, 1ul, 1.0}}) {
      hvd::KernelArgs args{hvd::DType::kFloat32,
                           hvd::Arithmetic::kSum,
                           1,
                           1,
                           divisor,
                           in.data(),
                           from,
                           out.data(),
                           to,
                           0,
                           0};
      columns.push_back({name + " " + std::to_string(from) + " to " + std::to_string(to) +
                             (divisor == 1 ? "" : " mean"),
                         [&kernels, args](size_t bytes) mutable {
                           args.count = bytes / sizeof(float);
                           kernels.reduce(args);
                         },
                         {}});
    }
  }
  return columns;
}

void Measure(std::vector<Column>& columns, OtherCore& other, size_t bytes, size_t rounds) {
  for (Column& column : columns) column.seconds.clear();
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t k = 0; k < columns.size(); ++k) {
      Column& column = columns[(round + k) % columns.size()];
      other.Use(bytes);
      const double start = hvd_perf::Seconds();
      column.run(bytes);
      column.seconds.push_back(hvd_perf::Seconds() - start);
    }
  }
  std::printf("%6zu KiB", bytes / 1024);
  for (Column& column : columns) {
    std::sort(column.seconds.begin(), column.seconds.end());
    std::printf(" | %*.2f", static_cast<int>(column.name.size()),
                static_cast<double>(bytes) / column.seconds[rounds / 2] / 1e9);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const size_t most = argc > 1 ? static_cast<size_t>(std::max(1, std::atoi(argv[1]))) : 200;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) {
    std::fprintf(stderr, "core_perf: only one core is allowed here, and it needs two\n");
    return 1;
  }
  std::vector<Memory> inputs, outputs;
  for (size_t k = 0; k < kInputs; ++k) inputs.push_back(Zeros());
  for (size_t k = 0; k < kOutputs; ++k) outputs.push_back(Zeros());
  OtherCore other(inputs, outputs);
  hvd_perf::PinToAllowedCore(0);
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Memory& input : inputs) in.push_back(input.get());
  for (const Memory& output : outputs) out.push_back(output.get());
  std::vector<Column> columns = Columns(in, out);
  std::printf("%10s", "GB/s");
  for (const Column& column : columns) std::printf(" | %s", column.name.c_str());
  std::printf("\n");
  for (size_t kib : {4, 8, 32, 128, 512, 4096, 32768}) {
    Measure(columns, other, kib << 10, std::clamp<size_t>((256 << 10) / kib, 7, most));
  }
}
