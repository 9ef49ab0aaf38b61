// The best figures of this machine, measured in the same run as the collectives beside which it is
// printed: JSON on stdout. bench.py derives the limits of an allreduce from it (allreduce_limit_us
// there).
//   calibrate            everything
//   calibrate --fixed    only the fixed loop: tells whether the machine was as fast at two moments
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cmd/hvd_perf/measure.h"

extern char** environ;

namespace {

using hvd_perf::Seconds;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void PinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

// Runs work(0) and work(1) on two threads, each pinned to its core.
void OnTwo(int core0, int core1, const std::function<void(int)>& work) {
  std::thread other([&] {
    PinTo(core1);
    work(1);
  });
  std::thread self([&] {
    PinTo(core0);
    work(0);
  });
  self.join();
  other.join();
}

// A spin barrier of two; each side counts its own line.
class SpinBarrier {
 public:
  void Wait(int side) {
    uint64_t turn = lines_[side].count.load(std::memory_order_relaxed) + 1;
    lines_[side].count.store(turn, std::memory_order_release);
    while (lines_[1 - side].count.load(std::memory_order_acquire) < turn) Pause();
  }

 private:
  struct alignas(128) Line {
    std::atomic<uint64_t> count{0};
  };
  Line lines_[2];
};

// Shared memory, so that its pages are those of the job's segments.
class Shared {
 public:
  explicit Shared(size_t bytes) : bytes_(bytes) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("calibrate: mmap");
      std::exit(1);
    }
    data_ = static_cast<float*>(memory);
    std::memset(memory, 1, bytes);
  }
  ~Shared() { ::munmap(data_, bytes_); }
  Shared(const Shared&) = delete;
  float* data() const { return data_; }

 private:
  size_t bytes_;
  float* data_;
};

// One way of a ping-pong over one cache line.
double LineLatencyNs(int core0, int core1) {
  struct alignas(128) Line {
    std::atomic<uint64_t> turn{0};
  } line;
  constexpr uint64_t kTurns = 20000;
  constexpr int kSlices = 9;
  std::vector<double> slices;
  OnTwo(core0, core1, [&](int side) {
    uint64_t turn = 0;
    for (int slice = 0; slice < kSlices; ++slice) {
      double start = Seconds();
      for (uint64_t i = 0; i < kTurns; ++i, turn += 2) {
        while (line.turn.load(std::memory_order_acquire) != turn + static_cast<uint64_t>(side)) {
        }
        line.turn.store(turn + static_cast<uint64_t>(side) + 1, std::memory_order_release);
      }
      if (side == 0) slices.push_back((Seconds() - start) / kTurns / 2 * 1e9);
    }
  });
  return Median(slices);
}

// Bytes per second that a core reads which just have been written, by the other core (from = 1) or
// by itself (from = 0), both cores reading at once.
double ReadGbPerS(int core0, int core1, size_t bytes, int from) {
  Shared buffers[2] = {Shared(bytes), Shared(bytes)};
  const size_t count = bytes / sizeof(float);
  const int rounds = bytes <= (1 << 20) ? 200 : bytes <= (16 << 20) ? 10 : 5;
  SpinBarrier barrier;
  std::vector<double> speeds[2];
  OnTwo(core0, core1, [&](int side) {
    for (int round = 0; round < rounds; ++round) {
      float* own = buffers[side].data();
      for (size_t i = 0; i < count; ++i) own[i] = static_cast<float>(round);
      barrier.Wait(side);
      double start = Seconds();
      volatile float sink = hvd_perf::Read(buffers[side ^ from].data(), count);
      (void)sink;
      speeds[side].push_back(static_cast<double>(bytes) / (Seconds() - start) / 1e9);
      barrier.Wait(side);
    }
  });
  return (Median(speeds[0]) + Median(speeds[1])) / 2;
}

// Payload per second of memcpy on each of two cores at once (each payload byte is one read and one
// write).
double MemcpyGbPerS(int core0, int core1, size_t bytes) {
  SpinBarrier barrier;
  double speeds[2] = {};
  const int slices = bytes <= (1 << 20) ? 15 : 5;
  const int rounds = bytes <= (1 << 20) ? 200 : 1;
  OnTwo(core0, core1, [&](int side) {
    std::vector<char> from(bytes, 1), to(bytes, 2);
    std::vector<double> figures;
    for (int slice = 0; slice < slices; ++slice) {
      barrier.Wait(side);
      double start = Seconds();
      for (int round = 0; round < rounds; ++round) {
        std::memcpy(to.data(), from.data(), bytes);
        asm volatile("" : : "r"(to.data()) : "memory");
      }
      figures.push_back(static_cast<double>(bytes) * rounds / (Seconds() - start) / 1e9);
    }
    speeds[side] = Median(figures);
  });
  return (speeds[0] + speeds[1]) / 2;
}

// Payload per second of changing floats in place, on each of two cores at once (each byte is read
// and written).
double UpdateGbPerS(int core0, int core1, size_t bytes) {
  Shared buffers[2] = {Shared(bytes), Shared(bytes)};
  const size_t count = bytes / sizeof(float);
  const int slices = bytes <= (1 << 20) ? 101 : 7;
  SpinBarrier barrier;
  double speeds[2] = {};
  OnTwo(core0, core1, [&](int side) {
    float* own = buffers[side].data();
    std::vector<double> figures;
    for (int slice = 0; slice < slices; ++slice) {
      barrier.Wait(side);
      double start = Seconds();
      for (size_t i = 0; i < count; ++i) own[i] += 1;
      asm volatile("" : : "r"(own) : "memory");
      figures.push_back(static_cast<double>(bytes) / (Seconds() - start) / 1e9);
    }
    speeds[side] = Median(figures);
  });
  return (speeds[0] + speeds[1]) / 2;
}

// One switch from thread to thread by sched_yield, both on one core.
double YieldNs(int core) {
  std::atomic<uint64_t> turn{0};
  constexpr uint64_t kTurns = 5000;
  double seconds = 0;
  OnTwo(core, core, [&](int side) {
    double start = Seconds();
    for (uint64_t i = static_cast<uint64_t>(side); i < kTurns; i += 2) {
      while (turn.load(std::memory_order_acquire) != i) ::sched_yield();
      turn.store(i + 1, std::memory_order_release);
    }
    if (side == 0) seconds = Seconds() - start;
  });
  return seconds / kTurns * 1e9;
}

// posix_spawn, exec and exit of /bin/true; `batch` of them started before the first is awaited.
double SpawnUs(int batch, int slices) {
  char name[] = "true";
  char* argv[] = {name, nullptr};
  std::vector<double> figures;
  std::vector<pid_t> children(static_cast<size_t>(batch));
  for (int slice = 0; slice < slices; ++slice) {
    double start = Seconds();
    for (pid_t& child : children) {
      if (::posix_spawn(&child, "/bin/true", nullptr, nullptr, argv, environ) != 0) return -1;
    }
    for (pid_t child : children) ::waitpid(child, nullptr, 0);
    figures.push_back((Seconds() - start) / batch * 1e6);
  }
  return Median(figures);
}

// Always the same work on both cores, as a mean: time taken away by others shows.
double FixedLoopMs(int core0, int core1) {
  constexpr size_t kBytes = 64 << 10;
  SpinBarrier barrier;
  double ms[2] = {};
  OnTwo(core0, core1, [&](int side) {
    std::vector<char> from(kBytes, 1), to(kBytes, 2);
    for (int part = 0; part < 2; ++part) {  // the first part warms up
      barrier.Wait(side);
      double start = Seconds();
      for (int round = 0; round < 10000; ++round) {
        std::memcpy(to.data(), from.data(), kBytes);
        asm volatile("" : : "r"(to.data()) : "memory");
      }
      uint64_t state = 1;
      for (int i = 0; i < 50'000'000; ++i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        asm volatile("" : "+r"(state));
      }
      ms[side] = (Seconds() - start) * 1e3;
    }
  });
  return std::max(ms[0], ms[1]);
}

void PrintBySize(const char* key, const std::function<double(size_t)>& measure) {
  std::printf(", \"%s\": {", key);
  const char* comma = "";
  for (size_t kib : {8, 64, 1 << 10, 16 << 10, 64 << 10}) {
    std::printf("%s\"%zu\": %.2f", comma, kib << 10, measure(kib << 10));
    comma = ", ";
  }
  std::printf("}");
}

}  // namespace

int main(int argc, char** argv) {
  const bool only_fixed = argc == 2 && std::string(argv[1]) == "--fixed";
  if (argc > 1 && !only_fixed) {
    std::fprintf(stderr, "calibrate: unknown argument '%s'; usage: calibrate [--fixed]\n", argv[1]);
    return 2;
  }
  std::vector<int> cores = AllowedCores();
  if (cores.size() < 2) {
    std::fprintf(stderr, "calibrate: needs two cores, may use %zu\n", cores.size());
    return 1;
  }
  const int a = cores[0], b = cores[1];
  std::printf("{\"fixed_loop_ms\": %.3f", FixedLoopMs(a, b));
  if (!only_fixed) {
    std::printf(", \"line_one_way_ns\": %.1f", LineLatencyNs(a, b));
    PrintBySize("pull_gb_per_s", [&](size_t bytes) { return ReadGbPerS(a, b, bytes, 1); });
    PrintBySize("read_own_gb_per_s", [&](size_t bytes) { return ReadGbPerS(a, b, bytes, 0); });
    PrintBySize("memcpy_gb_per_s", [&](size_t bytes) { return MemcpyGbPerS(a, b, bytes); });
    PrintBySize("update_gb_per_s", [&](size_t bytes) { return UpdateGbPerS(a, b, bytes); });
    std::printf(", \"yield_ns\": %.1f, \"spawn_us\": %.1f, \"spawn_in_batch_us\": %.1f", YieldNs(a),
                SpawnUs(1, 101), SpawnUs(32, 9));
  }
  std::printf("}\n");
  return 0;
}
