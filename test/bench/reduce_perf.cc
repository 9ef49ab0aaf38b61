// The cost of sums of float16 and bfloat16 beside those of float32 at equal elements, in one
// thread, for every variant of the kernels that this processor has. All rows of a table take turns
// in every round; a figure is the best round, a ratio that of the best rounds.
//   reduce_perf [ROUNDS]     (15)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/device/host_kernel_variants.h"
#include "runtime/device/host_kernels.h"

namespace {

using hvd::DType;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBfloat16};

double Seconds() {
  return std::chrono::duration<double>(hvd::SteadyNow().time_since_epoch()).count();
}

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

// All inputs are ones of the type; a sum of them is exact in every type.
Memory Ones(DType dtype, size_t elements) {
  const size_t bytes = (elements * SizeOf(dtype) + 4095) / 4096 * 4096;
  Memory memory(std::aligned_alloc(4096, bytes));
  const float one = 1.0f;
  const uint16_t half = dtype == DType::kFloat16 ? 0x3c00 : 0x3f80;
  for (size_t i = 0; i < elements; ++i) {
    char* at = static_cast<char*>(memory.get()) + i * SizeOf(dtype);
    std::memcpy(at, dtype == DType::kFloat32 ? static_cast<const void*>(&one) : &half,
                SizeOf(dtype));
  }
  return memory;
}

// One type's inputs and outputs, and its best time.
struct Job {
  Job(DType the_dtype, size_t inputs, size_t outputs, size_t the_elements)
      : dtype(the_dtype), elements(the_elements) {
    for (size_t k = 0; k < inputs + outputs; ++k) {
      memory.push_back(Ones(dtype, elements));
      if (k < inputs)
        in.push_back(memory.back().get());
      else
        out.push_back(memory.back().get());
    }
  }

  void Run(const hvd::Kernels& kernels, size_t times) {
    const hvd::KernelArgs args{
        dtype,   hvd::Arithmetic::kSum, 1, 1, 1, in.data(), in.size(), out.data(), out.size(), 0,
        elements};
    const double start = Seconds();
    for (size_t i = 0; i < times; ++i) kernels.reduce(args);
    best = std::min(best, (Seconds() - start) / static_cast<double>(times));
  }

  const DType dtype;
  const size_t elements;
  std::vector<Memory> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  double best = 1e9;
};

void Measure(const hvd::Kernels& kernels, size_t inputs, size_t outputs, size_t bytes, int rounds) {
  const size_t elements = bytes / sizeof(float);
  std::vector<Job> jobs;
  for (DType dtype : kTypes) jobs.emplace_back(dtype, inputs, outputs, elements);
  const size_t times = std::max<size_t>(1, (size_t{4} << 20) / bytes);
  for (int round = 0; round < rounds; ++round) {
    for (Job& job : jobs) job.Run(kernels, times);
  }
  std::printf("%7zu KiB %6zu %7zu", bytes / 1024, inputs, outputs);
  for (const Job& job : jobs) {
    const double moved = static_cast<double>((inputs + outputs) * elements * SizeOf(job.dtype));
    std::printf(" | %9.2f us %6.1f GB/s", job.best * 1e6, moved / job.best / 1e9);
    if (job.dtype != DType::kFloat32) std::printf(" %5.2f", job.best / jobs[0].best);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  for (const hvd::KernelVariant& variant : hvd::RunnableKernelVariants()) {
    std::printf(
        "%s\n     float32  inputs outputs | float32                | float16, of float32's "
        "time      | bfloat16\n",
        variant.name.data());
    for (size_t kib : {16, 64, 256, 1024, 4096, 16384}) {
      for (auto [inputs, outputs] : {std::pair<size_t, size_t>{2, 1}, {2, 2}, {4, 1}})
        Measure(*variant.kernels, inputs, outputs, kib * 1024, rounds);
    }
  }
}
