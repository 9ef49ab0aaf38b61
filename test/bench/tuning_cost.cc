// The cost of --autotune: processor time of the training thread of rank 0 for the records of a
// step, and of the agent for reading them and for choosing the settings of a window. A played
// rank 0 writes into a real trace ring, and the agent's tuner searches.
//   tuning_cost [COLLECTIVES]     of a step (161, as the gradients of a ResNet-50)
#include <time.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "autotune/search_space.h"
#include "launcher/tuning/job_tuner.h"
#include "runtime/segment/job_page.h"
#include "runtime/segment/shared_memory.h"
#include "runtime/trace/recorder.h"
#include "runtime/trace/tick_clock.h"

namespace {

constexpr double kStepMs = 20, kNoise = 0.03;
constexpr int kSteps = 300;

double ThreadMicroseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

void Print(const char* what, std::vector<double> us, double divisor) {
  if (us.empty()) return;
  std::sort(us.begin(), us.end());
  const auto at = [&](double part) {
    return us[static_cast<size_t>(part * static_cast<double>(us.size() - 1))] / divisor;
  };
  std::printf("| %s | %.2f | %.2f | %zu |\n", what, at(0.5), at(0.95), us.size());
}

// Rank 0 as its agent sees it.
class PlayedRank {
 public:
  explicit PlayedRank(std::byte* memory)
      : page_(hvd::JobPage::Format(memory, 2, 1)),
        recorder_(page_.trace(0), hvd::TraceClock::kSteadyNs) {}

  // The records of a step, whose length depends on the settings.
  void Step(uint32_t collectives) {
    const uint32_t chunk = page_.header().tuned.chunk_kib.load();
    const double gain = 0.05 * std::log2(chunk == 0 ? 1 : chunk / 128.0);
    const double ms = kStepMs * (1 - gain) * std::exp(kNoise * hvd::NormalRandom(noise_));
    const auto now = static_cast<uint64_t>(hvd::ReadTickPair().steady_ns);
    begun_ = std::max(begun_, now);
    for (uint32_t i = 1; i <= collectives; ++i) {
      recorder_.Write({.stamp = begun_ + static_cast<uint64_t>(ms * 1e6 * i / collectives),
                       .kind = hvd::TraceKind::kDone,
                       .id = i,
                       .bytes = i == collectives ? 8'000'000U : 100'000U});
    }
    begun_ += static_cast<uint64_t>(ms * 1e6);
  }

 private:
  hvd::JobPage page_;
  hvd::Recorder recorder_;
  std::mt19937_64 noise_{1};
  uint64_t begun_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const auto collectives = static_cast<uint32_t>(argc > 1 ? std::max(1, std::atoi(argv[1])) : 161);
  const size_t bytes = hvd::JobPage::BytesFor(2);
  hvd::UniqueFd fd = hvd::CreateSharedMemory("hvd-bench", bytes).value();
  hvd::Mapping memory = hvd::Mapping::Map(fd.get(), bytes).value();
  PlayedRank rank(memory.data());

  asio::io_context io;
  size_t windows = 0;
  hvd::JobTuner tuner(
      io, hvd::TuningMemory(""), [](const std::string& said) { std::puts(said.c_str()); },
      [&windows](std::span<const hvd::TraceRecord>) { ++windows; });
  tuner.Begin({.memory = false});
  tuner.UsePage(fd.get(), bytes, {.size = 2, .local_size = 2, .cores = 2}, 0, "");

  std::vector<double> writes, reads, choices;
  for (int step = 0; step < kSteps; ++step) {
    const double begun = ThreadMicroseconds();
    rank.Step(collectives);
    const double written = ThreadMicroseconds();
    const size_t before = windows;
    io.run_one();  // a poll: the steps since the last one
    const double read = ThreadMicroseconds();
    writes.push_back(written - begun);
    (windows == before ? reads : choices).push_back(read - written);
  }
  std::printf("\n| %u collectives a step | median | 95th percentile | of |\n|---|---|---|---|\n",
              collectives);
  Print("rank 0: its records of a step, us (also without --autotune)", writes, 1);
  Print("agent: reading a step, us", reads, 1);
  Print("agent: a step that ends a window, with the choice of the next, ms", choices, 1e3);
  return 0;
}
