// A rank of an elastic job that reduces without end. It says "ready PID", and for each world that
// it is in
//   world GENERATION RANK SIZE PID FIRST LAST
// where FIRST is when its first allreduce there was done and verified, and LAST when its last one
// before that was (0: none), both in ns of the wall clock, which all hosts of one machine share.
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "hvd/hvd.h"

namespace {

constexpr int64_t kCount = 16384;  // 64 KiB
constexpr int kStopped = 75;

int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * INT64_C(1'000'000'000) + now.tv_nsec;
}

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "elastic_perf: %s: %s\n", what, hvd_last_error());
  std::exit(1);
}

// False: the world broke.
bool Allreduce(std::vector<float>& data) {
  const auto size = static_cast<float>(hvd_size());
  for (float& value : data) value = 1;
  hvd_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.dtype = HVD_FLOAT32;
  tensor.input = data.data();
  tensor.output = data.data();
  tensor.shape = &kCount;
  tensor.ndim = 1;
  hvd_request request{};
  request.struct_size = sizeof request;
  request.collective = HVD_ALLREDUCE;
  request.name = "sum";
  request.tensor = &tensor;
  request.reduce_op = HVD_SUM;
  request.prescale = request.postscale = 1.0;
  const int32_t status = hvd_run(&request);
  if (status == HVD_ABORTED) return false;
  if (status != HVD_OK) Fail("allreduce");
  for (const float value : data) {
    if (value != size) {
      std::fprintf(stderr, "elastic_perf: WRONG: a sum of %g in a world of %g\n", value, size);
      std::exit(2);
    }
  }
  return true;
}

// Reduces until the world is to change.
void Train(std::vector<float>& data, int64_t& last) {
  for (bool first = true; Allreduce(data); first = false) {
    const int64_t now = Now();
    if (first) {
      std::printf("world %" PRId64 " %d %d %d %" PRId64 " %" PRId64 "\n", hvd_generation(),
                  hvd_rank(), hvd_size(), getpid(), now, last);
      std::fflush(stdout);
    }
    last = now;
    int32_t update = 0;
    const int32_t status = hvd_commit(-1, &update);
    if (status == HVD_OK && (update & HVD_UPDATE_STOP) != 0) {
      hvd_shutdown();
      std::exit(kStopped);
    }
    if (status == HVD_ABORTED || update != 0) return;
    if (status != HVD_OK) Fail("commit");
  }
}

}  // namespace

int main() {
  std::vector<float> data(kCount);
  int64_t last = 0;
  std::printf("ready %d\n", getpid());
  std::fflush(stdout);
  for (;;) {
    const int32_t status = hvd_init(nullptr);
    if (status == HVD_DISMISSED) return 0;
    if (status == HVD_OK) Train(data, last);
    if (status != HVD_OK && status != HVD_ABORTED) Fail("init");
    hvd_shutdown();
  }
}
