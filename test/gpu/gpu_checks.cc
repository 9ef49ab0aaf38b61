#include "test/gpu/gpu_checks.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "runtime/device/cuda/batch_plan.h"
#include "test/fakes/cuda/play_kernels.h"
#include "test/gpu/adasum_checks.h"
#include "test/gpu/two_sides.h"

namespace hvd::test {
namespace {

// The work of the grids of a move, done by the processor.
void RunOnHost(const BatchSpec& spec, const std::vector<BatchItem>& items) {
  const Result<std::vector<BatchLaunch>> launches = PlanBatch(spec, items);
  for (const BatchLaunch& launch : *launches)
    PlayBatch(launch.head, launch.segments.data(), launch.tiles, 1);
}

// Hundreds of pieces at odd places of one half of a buffer, to the other half.
struct Scatter {
  size_t half_bytes = 0;
  std::vector<BatchItem> offsets;  // instead of addresses
};

Scatter MakeScatter(const BatchSpec& spec, size_t pieces, bool aligned, std::mt19937& random) {
  Scatter scatter;
  uint64_t from = 0, to = 0;
  for (size_t i = 0; i < pieces; ++i) {
    const uint64_t elements = i % 7 == 0 ? 0 : random() % (i % 50 == 1 ? 40000 : 300);
    scatter.offsets.push_back({from, to, elements});
    const uint64_t grain = aligned ? 32 : 1;
    from += (elements + random() % 3 + grain - 1) / grain * grain * SizeOf(spec.from);
    to += (elements + random() % 3 + grain - 1) / grain * grain * SizeOf(spec.to);
  }
  scatter.half_bytes = (std::max(from, to) + 511) / 256 * 256;
  return scatter;
}

std::vector<BatchItem> At(const std::vector<BatchItem>& offsets, uint64_t base, size_t half_bytes) {
  std::vector<BatchItem> items = offsets;
  for (BatchItem& item : items) {
    item.from += base;
    item.to += base + half_bytes;
  }
  return items;
}

// The device and the processor do the same with the same data.
Status CompareMove(Device& device, const BatchSpec& spec, bool aligned, size_t pieces,
                   const GpuCheckOptions& options) {
  std::mt19937 random(options.seed);
  const Scatter scatter = MakeScatter(spec, pieces, aligned, random);
  const size_t bytes = 2 * scatter.half_bytes;
  TwoSides sides(device, bytes);
  if (!sides.status().ok()) return sides.status();
  FillFinite(sides.staging(), bytes, SizeOf(spec.from) == 1, random);
  HostCopy copy(sides);
  std::byte* expected = copy.memory();
  RunOnHost(spec, At(scatter.offsets, reinterpret_cast<uint64_t>(expected), scatter.half_bytes));
  Status status = sides.CopyIn();
  if (status.ok()) {
    status = device.Move(spec, At(scatter.offsets, sides.address(), scatter.half_bytes));
  }
  if (status.ok()) status = sides.CopyOut();
  if (status.ok()) status = AwaitAll(device, options);
  if (!status.ok()) return status;
  return copy.Compare();
}

std::string NameOfMove(const BatchSpec& spec, bool aligned, size_t pieces) {
  return std::string(NameOf(spec.from)) + " to " + std::string(NameOf(spec.to)) + " times " +
         std::to_string(spec.scale) + (aligned ? ", aligned, " : ", unaligned, ") +
         std::to_string(pieces) + " pieces";
}

// The default stream and the queue take turns; nobody waits but the last.
Status TakeTurns(Device& device, const GpuCheckOptions& options) {
  TwoSides sides(device, 4096);
  if (!sides.status().ok()) return sides.status();
  std::memset(sides.staging(), 0x3f, 4096);
  Status status = sides.CopyIn();
  for (int turn = 0; status.ok() && turn < 100; ++turn) {
    status = device.LetFollow(nullptr);
    if (status.ok()) status = device.BeginAfter(nullptr);
    const std::vector<BatchItem> items = {{sides.address(), sides.address(), 1024}};
    if (status.ok()) status = device.Move({DType::kFloat32, DType::kFloat32, 1.5}, items);
    if (status.ok()) status = device.Move({DType::kFloat32, DType::kFloat32, 1 / 1.5}, items);
  }
  return status.ok() ? AwaitAll(device, options) : status;
}

Result<GpuFigure> MeasureMove(Device& device, const std::string& name, const BatchSpec& spec,
                              size_t pieces, const GpuCheckOptions& options) {
  const uint64_t elements = options.figure_bytes / pieces / 8;
  TwoSides sides(device, 2 * options.figure_bytes);
  if (!sides.status().ok()) return sides.status();
  std::vector<BatchItem> items;
  for (uint64_t i = 0; i < pieces; ++i) {
    items.push_back({sides.address() + i * elements * 8,
                     sides.address() + options.figure_bytes + i * elements * 8, elements});
  }
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < options.figure_rounds; ++round) {
    const double begin = options.now();
    for (int move = 0; move < options.moves_in_a_round; ++move)
      HVD_RETURN_IF_ERROR(device.Move(spec, items));
    if (Status status = AwaitAll(device, options); !status.ok()) return status;
    best = std::min(best, options.now() - begin);
  }
  const double bytes = static_cast<double>(elements * pieces) *
                       static_cast<double>(SizeOf(spec.from) + SizeOf(spec.to));
  return GpuFigure{name, options.moves_in_a_round * bytes / best / 1e9};
}

// In quotation marks; control characters become spaces.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return quoted + "\"";
}

std::string FiguresText(const std::vector<GpuFigure>& figures, double unit) {
  std::string text;
  for (const GpuFigure& figure : figures) {
    text += (text.empty() ? "" : ", ") + Quoted(figure.name) + ": " +
            std::to_string(figure.gigabytes_per_second / unit);
  }
  return text;
}

}  // namespace

std::vector<GpuCheck> RunGpuChecks(Device& device, const GpuCheckOptions& options) {
  const std::vector<DType> floats = {DType::kFloat32, DType::kFloat16, DType::kBfloat16,
                                     DType::kFloat8E4m3, DType::kFloat8E5m2};
  std::vector<BatchSpec> specs = {{DType::kUint8, DType::kUint8, 1.0},
                                  {DType::kInt64, DType::kInt64, 1.0},
                                  {DType::kFloat64, DType::kFloat64, 0.3}};
  for (DType from : floats) {
    for (DType to : floats) specs.push_back({from, to, 0.3});
  }
  std::vector<GpuCheck> checks;
  for (const BatchSpec& spec : specs) {
    for (bool aligned : {true, false}) {
      for (size_t pieces : {size_t{100}, size_t{1500}}) {  // both kernels, and two launches
        checks.push_back({NameOfMove(spec, aligned, pieces),
                          CompareMove(device, spec, aligned, pieces, options).message()});
      }
    }
  }
  for (GpuCheck& check : RunAdasumChecks(device, options)) checks.push_back(std::move(check));
  checks.push_back(
      {"the default stream and the queue take turns", TakeTurns(device, options).message()});
  return checks;
}

Result<std::vector<GpuFigure>> MeasureGpu(Device& device, const GpuCheckOptions& options) {
  const struct {
    const char* name;
    BatchSpec spec;
    size_t pieces;
  } moves[] = {
      {"copy of one piece", {DType::kInt64, DType::kInt64, 1.0}, 1},
      {"copy of 300 pieces", {DType::kInt64, DType::kInt64, 1.0}, 300},
      {"float32 to float16, 300 pieces", {DType::kFloat32, DType::kFloat16, 1.0}, 300},
      {"bfloat16 to float32, scaled, 300 pieces", {DType::kBfloat16, DType::kFloat32, 0.5}, 300},
      {"float32 to float8_e4m3, 300 pieces", {DType::kFloat32, DType::kFloat8E4m3, 1.0}, 300},
  };
  std::vector<GpuFigure> figures;
  for (const auto& move : moves) {
    Result<GpuFigure> figure = MeasureMove(device, move.name, move.spec, move.pieces, options);
    if (!figure.ok()) return figure.status();
    figures.push_back(std::move(*figure));
  }
  Result<GpuFigure> adasum = MeasureAdasum(device, options);
  if (!adasum.ok()) return adasum.status();
  figures.push_back(std::move(*adasum));
  return figures;
}

std::string GpuSummary(const std::string& device, const std::vector<GpuCheck>& checks,
                       const std::vector<GpuFigure>& figures, double most) {
  std::string json = "{\"device\": " + Quoted(device) + ", \"checks\": {";
  for (size_t i = 0; i < checks.size(); ++i) {
    json += (i == 0 ? "" : ", ") + Quoted(checks[i].name) + ": " +
            (checks[i].failure.empty() ? "\"ok\"" : Quoted(checks[i].failure));
  }
  json += "}, \"gigabytes_per_second\": {" + FiguresText(figures, 1) + "}";
  if (most > 0) {
    json += ", \"memory_gigabytes_per_second\": " + std::to_string(most) +
            ", \"share_of_memory_bandwidth\": {" + FiguresText(figures, most) + "}";
  }
  return json + "}";
}

}  // namespace hvd::test
