#include "cmd/hvd_perf/cuda_perf.h"

#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmd/hvd_perf/cuda_side.h"
#include "cmd/hvd_perf/measure.h"
#include "hvd/hvd.h"
#include "runtime/base/align.h"
#include "runtime/base/quantile.h"
#include "runtime/base/text/format.h"

namespace hvd_perf {
namespace {

// --steps SETS: the exchange of one training step, as many tensors as a model has parameters, by
// three methods in turn: by hvdrun, each tensor submitted by itself; by NCCL alone, all in one
// group in a fixed order; by NCCL alone, packed, one call, unpacked.

// 64 x 3 x 49 and so on: the parameters in order.
std::vector<size_t> ResNet50() {
  std::vector<size_t> sizes = {64 * 3 * 49, 64, 64};
  const struct { size_t width, blocks; } stages[] = {{64, 3}, {128, 4}, {256, 6}, {512, 3}};
  size_t channels = 64;
  for (const auto& [w, blocks] : stages) {
    for (size_t block = 0; block < blocks; ++block) {
      const std::vector<size_t> three = {channels * w, w,     w,    w * w * 9, w, w,
                                         4 * w * w,    4 * w, 4 * w};
      sizes.insert(sizes.end(), three.begin(), three.end());
      if (block == 0) sizes.insert(sizes.end(), {channels * 4 * w, 4 * w, 4 * w});
      channels = 4 * w;
    }
  }
  sizes.insert(sizes.end(), {2048 * 1000, 1000});
  return sizes;
}

std::vector<size_t> Gpt2() {
  constexpr size_t w = 768;
  std::vector<size_t> sizes = {50257 * w, 1024 * w};
  for (int block = 0; block < 12; ++block) {
    sizes.insert(sizes.end(),
                 {w, w, 3 * w * w, 3 * w, w * w, w, w, w, 4 * w * w, 4 * w, 4 * w * w, w});
  }
  sizes.insert(sizes.end(), {w, w});
  return sizes;
}

// Elements of each tensor: "ResNet-50", "GPT-2" or "small" (161 tensors of 64 bytes); empty for
// other names.
std::vector<size_t> GradientSet(const std::string& name) {
  if (name == "ResNet-50") return ResNet50();
  if (name == "GPT-2") return Gpt2();
  if (name == "small") return std::vector<size_t>(161, 16);
  return {};
}

// The tensors of a set in one allocation of GPU memory, with a second one to pack them into.
class Step {
 public:
  Step(Gpu& gpu, RawNccl& nccl, std::vector<size_t> sizes)
      : gpu_(gpu), nccl_(nccl), sizes_(std::move(sizes)) {
    for (size_t size : sizes_) {
      places_.push_back(floats_);
      floats_ += hvd::RoundUp(size, 64);
      packed_ += size;
    }
    gpu_.Allocate((floats_ + packed_) * sizeof(float));
    for (size_t i = 0; i < floats_; ++i) gpu_.host()[i] = InputAt(i, hvd_rank(), 0);
    gpu_.CopyIn(floats_ * sizeof(float));
    Describe();
  }
  ~Step() { gpu_.Free(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  size_t tensors() const { return sizes_.size(); }
  size_t bytes() const { return packed_ * sizeof(float); }

  void Ours() {
    for (size_t i = 0; i < requests_.size(); ++i)
      CheckHvd(hvd_submit(&requests_[i], &handles_[i]), names_[i].c_str());
    for (size_t i = 0; i < requests_.size(); ++i)
      CheckHvd(hvd_wait(handles_[i], -1), names_[i].c_str());
  }
  void Raw() {
    nccl_.Group([&] {
      for (size_t i = 0; i < sizes_.size(); ++i) nccl_.AllReduce(At(i), sizes_[i], gpu_.stream());
    });
  }
  void Packed() {
    float* buffer = static_cast<float*>(gpu_.device()) + floats_;
    Move(buffer,
         [&](size_t i, float* place) { gpu_.Copy(place, At(i), sizes_[i] * sizeof(float)); });
    nccl_.AllReduce(buffer, packed_, gpu_.stream());
    Move(buffer,
         [&](size_t i, float* place) { gpu_.Copy(At(i), place, sizes_[i] * sizeof(float)); });
  }

  // Checks the result after one of the above on fresh inputs.
  bool SumsAreCorrect() {
    gpu_.CopyOut(floats_ * sizeof(float));
    for (size_t i = 0; i < sizes_.size(); ++i) {
      for (size_t k = places_[i]; k < places_[i] + sizes_[i]; ++k) {
        float expected = 0;
        for (int r = 0; r < hvd_size(); ++r) expected += InputAt(k, r, 0);
        if (gpu_.host()[k] == expected) continue;
        std::fprintf(stderr, "WRONG: rank %d, tensor %zu, element %zu is %g, expected %g\n",
                     hvd_rank(), i, k - places_[i], static_cast<double>(gpu_.host()[k]),
                     static_cast<double>(expected));
        return false;
      }
    }
    return true;
  }

 private:
  float* At(size_t i) const { return static_cast<float*>(gpu_.device()) + places_[i]; }
  template <typename Each>
  void Move(float* buffer, Each each) const {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      each(i, buffer);
      buffer += sizes_[i];
    }
  }
  void Describe() {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      names_.push_back(hvd::Format("perf.step.{}", i));
      extents_.push_back(static_cast<int64_t>(sizes_[i]));
    }
    for (size_t i = 0; i < sizes_.size(); ++i) {
      tensors_.push_back({.struct_size = sizeof(hvd_tensor),
                          .dtype = HVD_FLOAT32,
                          .input = At(i),
                          .output = At(i),
                          .shape = &extents_[i],
                          .ndim = 1,
                          .device_kind = HVD_DEVICE_CUDA,
                          .device_index = gpu_.index(),
                          .stream = gpu_.stream()});
    }
    for (size_t i = 0; i < sizes_.size(); ++i)
      requests_.push_back(RequestFor(&tensors_[i], HVD_ALLREDUCE, names_[i].c_str()));
    handles_.resize(sizes_.size());
  }

  Gpu& gpu_;
  RawNccl& nccl_;
  const std::vector<size_t> sizes_;
  std::vector<size_t> places_;
  size_t floats_ = 0, packed_ = 0;
  std::vector<std::string> names_;
  std::vector<int64_t> extents_;
  std::vector<hvd_tensor> tensors_;
  std::vector<hvd_request> requests_;
  std::vector<hvd_handle> handles_;
};

// Medians over the loops; each loop runs all methods in turn.
class MethodTimes {
 public:
  void Add(const Times& times) {
    us_.push_back(times.us);
    host_us_.push_back(times.host_us);
  }
  std::string Text(const std::string& way) const {
    char text[128];
    std::snprintf(text, sizeof text, "\"%sus\": %.3f, \"%shost_us\": %.3f, ", way.c_str(),
                  hvd::Median(us_), way.c_str(), hvd::Median(host_us_));
    return text;
  }

 private:
  std::vector<double> us_, host_us_;
};

bool RunStep(Gpu& gpu, RawNccl& nccl, const Options& options, const std::string& name) {
  Step step(gpu, nccl, GradientSet(name));
  step.Ours();
  const bool correct = step.SumsAreCorrect();
  const int rounds = std::min(options.most_rounds, step.bytes() > (100 << 20) ? 5 : 20);
  MethodTimes ours, raw, packed;
  for (int loop = -1; loop < options.loops; ++loop) {  // the first one is a warm-up
    const Times of_ours = TimeOf(gpu, rounds, [&] { step.Ours(); });
    if (loop >= 0) ours.Add(of_ours);
    if (!nccl.ok()) continue;
    const Times of_raw = TimeOf(gpu, rounds, [&] { step.Raw(); });
    const Times of_packed = TimeOf(gpu, rounds, [&] { step.Packed(); });
    if (loop >= 0) raw.Add(of_raw);
    if (loop >= 0) packed.Add(of_packed);
  }
  if (hvd_rank() != 0) return correct;
  const std::string raw_text = nccl.ok() ? raw.Text("nccl_") + packed.Text("nccl_packed_") : "";
  std::printf(
      "{\"step\": \"%s\", \"device\": \"cuda\", \"ranks\": %d, \"tensors\": %zu, \"bytes\": %zu, "
      "%s%s\"by_nccl\": %s, \"correct\": %s}\n",
      name.c_str(), hvd_size(), step.tensors(), step.bytes(), ours.Text("").c_str(),
      raw_text.c_str(), hvd_enabled("nccl") == 1 ? "true" : "false", correct ? "true" : "false");
  std::fflush(stdout);
  return correct;
}

bool RunSteps(Gpu& gpu, RawNccl& nccl, const Options& options) {
  bool correct = true;
  for (const std::string& name : options.steps) {
    if (GradientSet(name).empty()) FailHere("there is no set '" + name + "' of --steps");
    correct = RunStep(gpu, nccl, options, name) && correct;
  }
  return correct;
}

// The median of the loops; one more loop before them is a warm-up.
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
