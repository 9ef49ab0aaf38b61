// The loop of cross_perf and cross_mpi_perf: one allreduce after a barrier, each side of the
// benchmark timed alike. For each size it prints "bytes microseconds": the median over the rounds
// of the mean over the ranks.
#ifndef HVD_TEST_BENCH_CROSS_MEASURE_H_
#define HVD_TEST_BENCH_CROSS_MEASURE_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "runtime/base/clock.h"

namespace cross_perf {

using Allreduce = std::function<void(float*, size_t)>;  // in place, sum

inline int RoundsFor(size_t bytes) {
  return bytes <= (1 << 17) ? 200 : bytes <= (4 << 20) ? 40 : 8;
}

inline void Measure(uint32_t rank, uint32_t size, size_t bytes, const Allreduce& allreduce) {
  size_t count = bytes / sizeof(float);
  std::vector<float> data(count);
  std::vector<float> times;
  for (int round = -3; round < RoundsFor(bytes); ++round) {
    std::fill(data.begin(), data.end(), 1.0f);
    float barrier = 1;
    allreduce(&barrier, 1);
    hvd::TimePoint start = hvd::SteadyNow();
    allreduce(data.data(), count);
    std::chrono::duration<float, std::micro> took = hvd::SteadyNow() - start;
    float sum = static_cast<float>(size);
    if (data.front() != sum || data.back() != sum) {
      std::fprintf(stderr, "a wrong sum of %zu bytes\n", bytes);
      std::_Exit(1);
    }
    if (round >= 0) times.push_back(took.count());
  }
  allreduce(times.data(), times.size());
  auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  if (rank == 0) std::printf("%zu %.1f\n", bytes, *middle / static_cast<float>(size));
}

inline std::vector<size_t> SizesFrom(int argc, char** argv, int first) {
  std::vector<size_t> sizes;
  for (int i = first; i < argc; ++i) sizes.push_back(static_cast<size_t>(std::atoll(argv[i])));
  if (sizes.empty()) sizes = {4, 4096, 65536, 1 << 20, 8 << 20, 64 << 20};
  return sizes;
}

}  // namespace cross_perf

#endif  // HVD_TEST_BENCH_CROSS_MEASURE_H_
