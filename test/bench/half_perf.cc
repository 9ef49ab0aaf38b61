// The time of an allreduce of float16 and bfloat16 beside one of float32 at equal elements, through
// the C interface: the three types take turns in every round. For hvdrun -np 2 half_perf [ROUNDS].
// Every rank writes its whole input before each operation and reads the whole result, outside of
// the clock; the figure is the best round, and the ratio that of the best rounds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cmd/hvd_perf/measure.h"
#include "hvd/hvd.h"

namespace {

struct Type {
  const char* name;
  hvd_dtype dtype;
  size_t bytes;
  uint32_t one, two;  // the bits of 1 and of 2
};
constexpr Type kTypes[] = {{"float32", HVD_FLOAT32, 4, 0x3f800000u, 0x40000000u},
                           {"float16", HVD_FLOAT16, 2, 0x3c00u, 0x4000u},
                           {"bfloat16", HVD_BFLOAT16, 2, 0x3f80u, 0x4000u}};

void Check(int32_t status, const char* what) {
  if (status == HVD_OK) return;
  std::fprintf(stderr, "half_perf: %s failed: %s\n", what, hvd_last_error());
  std::exit(1);
}

// Calls visit(data) with the type of the bits. The loops over it use wide vectors, as those of the
// sums do: after some 0.7 ms without any, some processors need 10 us and more to wake these units,
// which would be counted as time of the next sum.
template <typename Visitor>
void WithBits(void* data, const Type& type, Visitor visit) {
  if (type.bytes == sizeof(uint32_t)) return visit(static_cast<uint32_t*>(data));
  visit(static_cast<uint16_t*>(data));
}

void Fill(void* data, const Type& type, size_t count) {
  WithBits(data, type, [&](auto* bits) {
    for (size_t i = 0; i < count; ++i) bits[i] = type.one;
  });
}

bool IsTwo(void* data, const Type& type, size_t count) {
  uint32_t wrong = 0;
  WithBits(data, type, [&](const auto* bits) {
    for (size_t i = 0; i < count; ++i) wrong |= bits[i] ^ type.two;
  });
  return wrong == 0;
}

void Allreduce(void* data, const Type& type, size_t count) {
  const auto extent = static_cast<int64_t>(count);
  hvd_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.dtype = type.dtype;
  tensor.input = data;
  tensor.output = data;
  tensor.shape = &extent;
  tensor.ndim = 1;
  hvd_request request{};
  request.struct_size = sizeof request;
  request.collective = HVD_ALLREDUCE;
  request.name = type.name;
  request.tensor = &tensor;
  request.reduce_op = HVD_SUM;
  request.prescale = request.postscale = 1.0;
  Check(hvd_run(&request), type.name);
}

void Barrier() {
  hvd_request request{};
  request.struct_size = sizeof request;
  request.collective = HVD_BARRIER;
  request.name = "half_perf.barrier";
  Check(hvd_run(&request), request.name);
}

// The best time of an operation, in seconds; a wrong result ends the program.
std::vector<double> Measure(size_t count, bool registered, int rounds) {
  std::vector<void*> memory;
  for (const Type& type : kTypes) {
    const size_t bytes = count * type.bytes;
    memory.push_back(registered ? hvd_alloc(bytes) : std::malloc(bytes));
    if (memory.back() == nullptr) Check(HVD_OUT_OF_MEMORY, "allocating");
  }
  std::vector<double> best(std::size(kTypes), 1e9);
  for (int round = 0; round < rounds; ++round) {
    for (size_t t = 0; t < std::size(kTypes); ++t) {
      Fill(memory[t], kTypes[t], count);
      Barrier();
      const double start = hvd_perf::Seconds();
      Allreduce(memory[t], kTypes[t], count);
      best[t] = std::min(best[t], hvd_perf::Seconds() - start);
      if (!IsTwo(memory[t], kTypes[t], count)) {
        std::fprintf(stderr, "half_perf: WRONG: %zu elements of %s\n", count, kTypes[t].name);
        std::exit(1);
      }
    }
  }
  for (void* at : memory) {
    if (registered)
      hvd_free(at);
    else
      std::free(at);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  Check(hvd_init(nullptr), "hvd_init");
  if (hvd_size() != 2) {
    std::fprintf(stderr, "half_perf: it compares two ranks: hvdrun -np 2 half_perf\n");
    return 2;
  }
  hvd_perf::PinToAllowedCore(hvd_rank());
  for (bool registered : {true, false}) {
    for (size_t kib : {16, 64, 256, 1024, 4096, 16384}) {
      const int some = kib > 1024 ? std::max(1, rounds / 10) : rounds;
      const std::vector<double> best = Measure(kib * 256, registered, some);
      if (hvd_rank() != 0) continue;
      std::printf(
          "%-10s %6zu KiB of float32 %9.2f us | float16 %9.2f us %.2f | "
          "bfloat16 %9.2f us %.2f\n",
          registered ? "registered" : "private", kib, best[0] * 1e6, best[1] * 1e6,
          best[1] / best[0], best[2] * 1e6, best[2] / best[0]);
      std::fflush(stdout);
    }
  }
  Check(hvd_shutdown(), "hvd_shutdown");
}
