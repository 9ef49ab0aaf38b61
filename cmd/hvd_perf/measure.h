// The measuring loops of hvd_perf. A header, so that the benchmark's peer programs time their
// library in just the same way.
//
// One figure = the time of a loop of {write the whole input, run the collective, read the whole
// result} minus the time of the same loop without the collective, per round, median of several such
// loops. Without read-back the reading is left out on both sides. Every result is verified once per
// loop.
#ifndef HVD_CMD_HVD_PERF_MEASURE_H_
#define HVD_CMD_HVD_PERF_MEASURE_H_

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/quantile.h"
#include "runtime/base/text/number_text.h"

namespace hvd_perf {

struct Options {
  std::string collective = "allreduce";
  std::vector<size_t> sizes = {8,     64,      1024,     8192,
                               65536, 1 << 20, 16 << 20, 64 << 20};  // bytes, float32
  bool registered = false;
  bool private_memory = false;  // neither given: both
  bool pin = false;             // this rank to the allowed core of its number
  bool json = false;
  bool cuda = false;               // see cuda_perf.h
  std::vector<std::string> steps;  // see cuda_perf.cc
  bool verify = false;  // every element of every round, in a loop of its own that is not timed
  int loops = 5;        // the median of so many
  int most_rounds = 1 << 30;  // of a loop; by size it may be fewer
};

inline bool IsCollective(const std::string& name) {
  return name == "allreduce" || name == "broadcast" || name == "barrier" || name == "allgather" ||
         name == "alltoall" || name == "reducescatter";
}

// A library under test, on one rank.
struct Library {
  // From `in` with `count` elements to `out`: allgather, alltoall and reducescatter (sum) with
  // equal shares.
  using Apart = std::function<void(const float* in, float* out, size_t count)>;

  int rank = 0;
  int size = 1;
  std::function<void(float*, size_t)> allreduce;  // in place, sum
  std::function<void(float*, size_t)> broadcast;  // in place, from rank 0
  std::function<void()> barrier;
  Apart allgather, alltoall, reducescatter;
  std::function<float*(size_t bytes, bool registered)> allocate;
  std::function<void(float*, bool registered)> free;
};

struct Figure {
  double us = 0;  // per call, median over loops
  bool correct = true;
};

// Values that sum exactly in float32 for up to 64 ranks.
inline float InputAt(size_t i, int rank, int round) {
  return static_cast<float>((i % 251) + static_cast<size_t>(rank) + static_cast<size_t>(round % 7));
}

// Write and Read are never inlined: how a compiler merges them with the loops around them changes
// what the loop without the collective takes, and so the figures, by a factor of two.
[[gnu::noinline]] inline void Write(float* data, size_t count, int rank, int round) {
  for (size_t i = 0, k = 0; i < count; ++i, k = k == 250 ? 0 : k + 1) {
    data[i] = static_cast<float>(k + static_cast<size_t>(rank) + static_cast<size_t>(round % 7));
  }
}

// Eight vectors of sums, so that reading is limited by memory and not by the latency of an
// addition.
[[gnu::noinline]] inline float Read(const float* data, size_t count) {
  using Vector = float __attribute__((vector_size(16)));
  constexpr size_t kLanes = 4, kSums = 8;
  Vector sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
    Vector in[kSums];
    std::memcpy(in, data + i, sizeof in);
    for (size_t k = 0; k < kSums; ++k) sums[k] += in[k];
  }
  float sum = 0;
  for (; i < count; ++i) sum += data[i];
  for (const Vector& part : sums) sum += part[0] + part[1] + part[2] + part[3];
  return sum;
}

inline int RoundsFor(size_t bytes) {
  if (bytes <= 1024) return 10000;
  if (bytes <= 8192) return 3000;
  if (bytes <= 65536) return 600;
  if (bytes <= (1 << 20)) return 60;
  return bytes <= (16 << 20) ? 8 : 3;
}

inline double Seconds() {
  return std::chrono::duration<double>(hvd::SteadyNow().time_since_epoch()).count();
}

class Loop {
 public:
  Loop(const Library& library, const Options& options, size_t bytes, bool registered,
       bool read_back)
      : library_(library), options_(options), count_(bytes / sizeof(float)), read_back_(read_back) {
    const auto ranks = static_cast<size_t>(library.size);
    const std::string& what = options_.collective;
    if (what == "alltoall" || what == "reducescatter") {
      count_ = std::max<size_t>(1, (count_ + ranks - 1) / ranks) * ranks;  // equal shares
    }
    share_ = count_ / ranks;
    output_count_ = what == "allgather"       ? count_ * ranks
                    : what == "reducescatter" ? share_
                                              : count_;
    registered_ = registered;
    data_ = library_.allocate(std::max<size_t>(count_, 1) * sizeof(float), registered);
    output_ = data_;
    if (Apart()) {
      output_ = library_.allocate(std::max<size_t>(output_count_, 1) * sizeof(float), registered);
    }
  }
  ~Loop() {
    if (output_ != data_) library_.free(output_, registered_);
    library_.free(data_, registered_);
  }
  Loop(const Loop&) = delete;

  Figure Measure() {
    const int rounds = std::min(options_.most_rounds, RoundsFor(count_ * sizeof(float)));
    Time(std::max(1, rounds / 10), true);  // warm-up
    std::vector<double> figures;
    Figure figure;
    for (int loop = 0; loop < options_.loops; ++loop) {
      double without = Time(rounds, false);
      double with = Time(rounds, true);
      figure.correct = figure.correct && Correct(rounds - 1);
      figures.push_back(std::max(0.0, with - without) / rounds * 1e6);
    }
    if (options_.verify) figure.correct = figure.correct && EveryRoundCorrect(std::min(rounds, 50));
    figure.us = hvd::Median(std::move(figures));
    return figure;
  }

 private:
  double Time(int rounds, bool with_collective) {
    library_.barrier();
    double start = Seconds();
    float sum = 0;
    for (int round = 0; round < rounds; ++round) {
      if (options_.collective != "barrier") Write(data_, count_, library_.rank, round);
      asm volatile(""
                   :
                   : "r"(data_)
                   : "memory");  // the compiler keeps every write, also without a collective
      if (with_collective) Run();
      if (read_back_) sum += Read(output_, output_count_);
    }
    library_.barrier();  // else the root of a broadcast is measured by how far it runs ahead
    double seconds = Seconds() - start;
    volatile float sink = sum;
    (void)sink;
    return seconds;
  }

  bool Apart() const {
    const std::string& what = options_.collective;
    return what == "allgather" || what == "alltoall" || what == "reducescatter";
  }

  void Run() {
    const std::string& what = options_.collective;
    if (what == "allreduce")
      library_.allreduce(data_, count_);
    else if (what == "broadcast")
      library_.broadcast(data_, count_);
    else if (what == "allgather")
      library_.allgather(data_, output_, count_);
    else if (what == "alltoall")
      library_.alltoall(data_, output_, count_);
    else if (what == "reducescatter")
      library_.reducescatter(data_, output_, count_);
    else
      library_.barrier();
  }

  bool EveryRoundCorrect(int rounds) {
    bool correct = true;
    for (int round = 0; round < rounds; ++round) {
      Write(data_, count_, library_.rank, round);
      Run();
      correct = Correct(round) && correct;
    }
    return correct;
  }

  float ExpectedAt(size_t i, int round) const {
    const std::string& what = options_.collective;
    const auto own = static_cast<size_t>(library_.rank) * share_;
    if (what == "broadcast") return InputAt(i, 0, round);
    if (what == "allgather") return InputAt(i % count_, static_cast<int>(i / count_), round);
    if (what == "alltoall") return InputAt(own + i % share_, static_cast<int>(i / share_), round);
    float sum = 0;
    for (int r = 0; r < library_.size; ++r) {
      sum += InputAt(what == "reducescatter" ? own + i : i, r, round);
    }
    return sum;
  }

  bool Correct(int round) const {
    if (options_.collective == "barrier") return true;
    for (size_t i = 0; i < output_count_; ++i) {
      const float expected = ExpectedAt(i, round);
      if (output_[i] != expected) {
        std::fprintf(stderr, "WRONG: rank %d, %s of %zu floats, element %zu is %g, expected %g\n",
                     library_.rank, options_.collective.c_str(), count_, i,
                     static_cast<double>(output_[i]), static_cast<double>(expected));
        return false;
      }
    }
    return true;
  }

  const Library& library_;
  const Options& options_;
  size_t count_;
  bool read_back_;
  bool registered_;
  size_t share_ = 0, output_count_ = 0;  // elements
  float* data_;
  float* output_;  // where the result is; data_ itself for what works in place
};

inline void Print(const Options& options, const Library& library, size_t bytes, bool registered,
                  bool read_back, const Figure& figure) {
  // The bytes that a ring would carry of one rank's input; of an allgather, of all inputs.
  const double others = library.size - 1.0;
  const double bus = options.collective == "allreduce"   ? 2.0 * others / library.size
                     : options.collective == "allgather" ? others
                     : options.collective == "broadcast" ? 1.0
                                                         : others / library.size;
  const double gb_per_s = figure.us > 0 ? static_cast<double>(bytes) / figure.us / 1e3 : 0;
  if (options.json) {
    std::printf(
        "{\"collective\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"registered\": %s, "
        "\"read_back\": %s, \"us\": %.3f, \"correct\": %s}\n",
        options.collective.c_str(), library.size, bytes, registered ? "true" : "false",
        read_back ? "true" : "false", figure.us, figure.correct ? "true" : "false");
  } else {
    std::printf("%-13s %10zu B  %-10s  %-9s  %12.2f us  algbw %7.2f  busbw %7.2f GB/s  %s\n",
                options.collective.c_str(), bytes, registered ? "registered" : "private",
                read_back ? "read-back" : "", figure.us, gb_per_s, gb_per_s * bus,
                figure.correct ? "verified" : "WRONG");
  }
  std::fflush(stdout);
}

// The n-th core this process may use, counted round: a launcher's own binding to one core stays as
// it is.
inline void PinToAllowedCore(int n) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int skip = n % std::max(1, CPU_COUNT(&allowed));
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// Everything that was asked for; false if a result was wrong.
inline bool RunAll(const Library& library, const Options& options) {
  if (options.pin) PinToAllowedCore(library.rank);
  bool correct = true;
  for (size_t bytes : options.collective == "barrier" ? std::vector<size_t>{0} : options.sizes) {
    for (bool registered : {true, false}) {
      bool asked = registered ? options.registered : options.private_memory;
      if ((options.registered || options.private_memory) && !asked) continue;
      for (bool read_back : {true, false}) {
        Figure figure = Loop(library, options, bytes, registered, read_back).Measure();
        correct = correct && figure.correct;
        if (library.rank == 0) Print(options, library, bytes, registered, read_back, figure);
      }
    }
  }
  return correct;
}

// Reads the command line; exits with 2 and one sentence on bad input.
inline Options ParseArguments(int argc, char** argv, const char* program) {
  Options options;
  auto fail = [&](const std::string& what) {
    std::fprintf(stderr,
                 "%s: %s; usage: %s [--collective allreduce|allgather|alltoall|barrier|broadcast|"
                 "reducescatter] [--sizes BYTES,...] [--registered] [--private] [--pin] [--verify] "
                 "[--json] [--loops N] [--most-rounds N] [--device cpu|cuda] "
                 "[--steps SET,...]\n",
                 program, what.c_str(), program);
    std::exit(2);
  };
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      std::printf(
          "usage: %s [options], as the command of a launcher: hvdrun -np 2 hvd_perf --pin\n"
          "Measures time and bandwidth of a collective by size, and verifies every result.\n\n"
          "  --collective NAME  allreduce (default), allgather, alltoall, barrier, broadcast or\n"
          "                     reducescatter\n"
          "  --sizes BYTES,...  of each rank's input, multiples of 4\n"
          "  --registered       memory of hvd_alloc only; without it and --private: both\n"
          "  --private          memory of malloc only\n"
          "  --pin              put each rank on the allowed core of its number\n"
          "  --verify           also check every element, in a loop that is not timed\n"
          "  --loops N          the median is that of N loops (default 5)\n"
          "  --most-rounds N    at most N calls in a loop (3 to 10000 by size)\n"
          "  --json             one JSON object per line\n"
          "  --device cuda      allreduces on GPUs, with raw NCCL beside them (default cpu)\n"
          "  --steps SET,...    with it: steps of ResNet-50, GPT-2, small, as JSON\n"
          "  -h, --help         print this text, then exit\n\n"
          "Exit code: 1 when a result was wrong, 2 for a wrong argument.\n",
          program);
      std::exit(0);
    }
    auto value = [&]() -> std::string {
      if (i + 1 >= argc) fail(flag + " needs a value");
      return argv[++i];
    };
    if (flag == "--collective") {
      options.collective = value();
      if (!IsCollective(options.collective)) {
        fail("unknown collective '" + options.collective + "'");
      }
    } else if (flag == "--sizes") {
      options.sizes.clear();
      std::string list = value();
      for (const char* at = list.c_str(); *at != '\0';) {
        char* end = nullptr;
        unsigned long long size = std::strtoull(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || size % 4 != 0 || size > (1ull << 34)) {
          fail("--sizes '" + list + "' is not a list of multiples of 4");
        }
        options.sizes.push_back(size);
        at = *end == ',' ? end + 1 : end;
      }
    } else if (flag == "--loops") {
      options.loops = hvd::ParseWhole<int>(value()).value_or(0);
      if (options.loops < 1 || options.loops > 1000) fail("--loops takes 1 to 1000");
    } else if (flag == "--most-rounds") {
      options.most_rounds = hvd::ParseWhole<int>(value()).value_or(0);
      if (options.most_rounds < 1) fail("--most-rounds takes a positive number");
    } else if (flag == "--device") {
      const std::string device = value();
      if (device != "cpu" && device != "cuda") fail("unknown device '" + device + "'");
      options.cuda = device == "cuda";
    } else if (flag == "--steps") {
      const std::string list = value() + ",";
      for (size_t at = 0; at < list.size(); at = list.find(',', at) + 1)
        options.steps.push_back(list.substr(at, list.find(',', at) - at));
    } else if (flag == "--registered") {
      options.registered = true;
    } else if (flag == "--private") {
      options.private_memory = true;
    } else if (flag == "--verify") {
      options.verify = true;
    } else if (flag == "--pin") {
      options.pin = true;
    } else if (flag == "--json") {
      options.json = true;
    } else {
      fail("unknown argument '" + flag + "'");
    }
  }
  return options;
}

}  // namespace hvd_perf

#endif  // HVD_CMD_HVD_PERF_MEASURE_H_
