#include "cmd/hvd_perf/cuda_perf.h"

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmd/hvd_perf/cuda_side.h"
#include "cmd/hvd_perf/cuda_steps.h"
#include "hvd/hvd.h"

namespace hvd_perf {
namespace {

// The median of the loops, of which the first one more warms up.
Times Measured(Gpu& gpu, int rounds, int loops, const std::function<void()>& call) {
  std::vector<double> all, host;
  for (int loop = -1; loop < loops; ++loop) {
    const Times times = TimeOf(gpu, rounds, call);
    if (loop < 0) continue;
    all.push_back(times.us);
    host.push_back(times.host_us);
  }
  return {hvd::Median(std::move(all)), hvd::Median(std::move(host))};
}

bool SumIsCorrect(Gpu& gpu, size_t count) {
  gpu.CopyOut(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    float expected = 0;
    for (int r = 0; r < hvd_size(); ++r) expected += InputAt(i, r, 0);
    if (gpu.host()[i] == expected) continue;
    std::fprintf(stderr, "WRONG: rank %d, element %zu of %zu is %g, expected %g\n", hvd_rank(), i,
                 count, static_cast<double>(gpu.host()[i]), static_cast<double>(expected));
    return false;
  }
  return true;
}

void Print(const Options& options, size_t bytes, const Times& ours,
           const std::optional<Times>& nccl, bool correct) {
  if (options.json) {
    std::printf(
        "{\"collective\": \"allreduce\", \"device\": \"cuda\", \"ranks\": %d, \"bytes\": %zu, "
        "\"us\": %.3f, \"host_us\": %.3f, ",
        hvd_size(), bytes, ours.us, ours.host_us);
    if (nccl) std::printf("\"nccl_us\": %.3f, \"nccl_host_us\": %.3f, ", nccl->us, nccl->host_us);
    std::printf("\"by_nccl\": %s, \"correct\": %s}\n", hvd_enabled("nccl") == 1 ? "true" : "false",
                correct ? "true" : "false");
  } else {
    std::printf("allreduce %12zu B  %10.2f us, host %8.2f us", bytes, ours.us, ours.host_us);
    if (nccl) std::printf("   raw NCCL %10.2f us, host %8.2f us", nccl->us, nccl->host_us);
    std::printf("   %s\n", correct ? "verified" : "WRONG");
  }
  std::fflush(stdout);
}

bool MeasureSize(Gpu& gpu, RawNccl& nccl, const Options& options, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  const auto extent = static_cast<int64_t>(count);
  gpu.Allocate(std::max<size_t>(bytes, sizeof(float)));
  hvd_tensor tensor{.struct_size = sizeof tensor,
                    .dtype = HVD_FLOAT32,
                    .input = gpu.device(),
                    .output = gpu.device(),
                    .shape = &extent,
                    .ndim = 1,
                    .device_kind = HVD_DEVICE_CUDA,
                    .device_index = gpu.index(),
                    .stream = gpu.stream()};
  const hvd_request request = RequestFor(&tensor, HVD_ALLREDUCE, "perf.cuda");
  for (size_t i = 0; i < count; ++i) gpu.host()[i] = InputAt(i, hvd_rank(), 0);
  gpu.CopyIn(bytes);
  CheckHvd(hvd_run(&request), request.name);
  const bool correct = SumIsCorrect(gpu, count);
  const int rounds = std::max(5, RoundsFor(bytes) / 10);
  const Times ours =
      Measured(gpu, rounds, options.loops, [&] { CheckHvd(hvd_run(&request), request.name); });
  std::optional<Times> raw;
  if (nccl.ok()) {
    raw = Measured(gpu, rounds, options.loops,
                   [&] { nccl.AllReduce(gpu.device(), count, gpu.stream()); });
  }
  if (hvd_rank() == 0) Print(options, bytes, ours, raw, correct);
  gpu.Free();
  return correct;
}

}  // namespace

bool RunOnCuda(const Options& options) {
  if (options.collective != "allreduce")
    FailHere("--device cuda measures --collective allreduce only");
  Gpu gpu;
  RawNccl nccl;
  if (!nccl.ok() && hvd_rank() == 0)
    std::fprintf(stderr,
                 "hvd_perf: raw NCCL is left out: it is not there, or refuses these ranks\n");
  if (!options.steps.empty()) return RunSteps(gpu, nccl, options);
  bool correct = true;
  for (size_t bytes : options.sizes) correct = MeasureSize(gpu, nccl, options, bytes) && correct;
  return correct;
}

}  // namespace hvd_perf
