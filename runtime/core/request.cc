#include "runtime/core/request.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>

#include "runtime/base/bytes.h"
#include "runtime/device/host_reduce.h"

namespace hvd {
namespace {

std::string Quoted(std::string_view name) {
  constexpr size_t kShown = 200;
  if (name.size() > kShown) return "'" + std::string(name.substr(0, kShown)) + "...'";
  return "'" + std::string(name) + "'";
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  // All digits only where the usual ones do not tell the value.
  if (std::strtod(text, nullptr) != value) std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

Status CountElements(const RequestSpec& spec, size_t* count) {
  const size_t limit = std::numeric_limits<int64_t>::max() / SizeOf(spec.dtype);
  for (int64_t extent : spec.shape) {
    if (extent < 0) {
      return InvalidArgument("tensor " + Quoted(spec.name) + " has the negative extent " +
                             std::to_string(extent));
    }
  }
  const bool empty = std::find(spec.shape.begin(), spec.shape.end(), 0) != spec.shape.end();
  size_t product = empty ? 0 : 1;
  for (int64_t extent : spec.shape) {
    if (empty) break;
    if (product > limit / static_cast<size_t>(extent)) {
      return InvalidArgument("tensor " + Quoted(spec.name) +
                             " has more elements than memory can hold");
    }
    product *= static_cast<size_t>(extent);
  }
  *count = product;
  return Status::Ok();
}

Status CheckName(std::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return Status::Ok();
  return InvalidArgument("a tensor name has " + std::to_string(name.size()) + " bytes; 1 to " +
                         std::to_string(kMaxNameBytes) + " are possible");
}

Status CheckCollective(const RequestSpec& spec) {
  switch (spec.collective) {
    case Collective::kAllreduce:
    case Collective::kBroadcast:
    case Collective::kBarrier: return Status::Ok();
    default:
      return Unsupported("the collective " + std::string(NameOf(spec.collective)) +
                         " is not available in this release");
  }
}

Status CheckReduction(const RequestSpec& spec) {
  if (spec.op > ReduceOp::kProduct) {
    return InvalidArgument("unknown reduce operation " + std::to_string(static_cast<int>(spec.op)) +
                           " for tensor " + Quoted(spec.name));
  }
  if (spec.op == ReduceOp::kAdasum) {
    return Unsupported("the reduce operation Adasum is not available in this release");
  }
  if (!CanReduce(spec.dtype)) {
    return InvalidArgument("tensor " + Quoted(spec.name) + " has the type " +
                           std::string(NameOf(spec.dtype)) + ", which cannot be reduced");
  }
  return Status::Ok();
}

Status CheckTensor(const RequestSpec& spec, size_t* count) {
  if (static_cast<int>(spec.dtype) >= kDTypeCount) {
    return InvalidArgument("unknown element type " + std::to_string(static_cast<int>(spec.dtype)) +
                           " of tensor " + Quoted(spec.name));
  }
  if (spec.device != DeviceKind::kHost) {
    return Unsupported(
        "tensor " + Quoted(spec.name) +
        " is on a CUDA device; this release reduces host memory only: copy it to the CPU");
  }
  if (spec.shape.size() > kMaxDimensions) {
    return InvalidArgument("tensor " + Quoted(spec.name) + " has " +
                           std::to_string(spec.shape.size()) +
                           " dimensions; at most 8 are possible");
  }
  if (Status counted = CountElements(spec, count); !counted.ok()) return counted;
  if (*count != 0 && (spec.input == nullptr || spec.output == nullptr)) {
    return InvalidArgument("tensor " + Quoted(spec.name) + " has elements but no memory");
  }
  return Status::Ok();
}

// Calls text(r) for each rank and says who differs from rank 0 first.
Status CompareField(std::string_view name, std::string_view field, size_t ranks,
                    const std::function<std::string(size_t)>& text) {
  const std::string first = text(0);
  for (size_t r = 1; r < ranks; ++r) {
    std::string other = text(r);
    if (other == first) continue;
    return Mismatch("tensor " + Quoted(name) + ": ranks disagree about its " + std::string(field) +
                    ": rank 0 has " + first + ", rank " + std::to_string(r) + " has " + other +
                    "; submit the same " + std::string(field) + " on every rank");
  }
  return Status::Ok();
}

}  // namespace

std::string_view NameOf(Collective collective) {
  constexpr std::string_view kNames[] = {"allreduce",     "allgather", "broadcast", "alltoall",
                                         "reducescatter", "barrier",   "join"};
  auto index = static_cast<size_t>(collective);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

std::string_view NameOf(ReduceOp op) {
  constexpr std::string_view kNames[] = {"Average", "Sum", "Adasum", "Min", "Max", "Product"};
  auto index = static_cast<size_t>(op);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

Status CheckRequest(const RequestSpec& spec, uint32_t size, size_t* count) {
  *count = 0;
  Status checked = CheckName(spec.name);
  if (checked.ok()) checked = CheckCollective(spec);
  if (!checked.ok()) return checked;
  if (spec.process_set != 0) {
    return InvalidArgument("process set " + std::to_string(spec.process_set) +
                           " is unknown; this release has only set 0, the world");
  }
  if (spec.collective == Collective::kBarrier) return Status::Ok();
  if (Status tensor = CheckTensor(spec, count); !tensor.ok()) return tensor;
  if (spec.collective == Collective::kAllreduce) return CheckReduction(spec);
  if (spec.root >= size) {
    return InvalidArgument("broadcast of tensor " + Quoted(spec.name) + " from rank " +
                           std::to_string(static_cast<int32_t>(spec.root)) +
                           ": ranks of this world are 0 to " + std::to_string(size - 1));
  }
  return Status::Ok();
}

Detail DetailOf(const RequestSpec& spec) {
  return {spec.collective, spec.op,        spec.dtype,
          spec.device,     spec.root,      spec.process_set,
          spec.prescale,   spec.postscale, {spec.shape.begin(), spec.shape.end()}};
}

bool Describes(const Detail& d, const RequestSpec& spec) {
  return d.collective == spec.collective && d.op == spec.op && d.dtype == spec.dtype &&
         d.device == spec.device && d.root == spec.root && d.process_set == spec.process_set &&
         d.prescale == spec.prescale && d.postscale == spec.postscale &&
         std::equal(d.shape.begin(), d.shape.end(), spec.shape.begin(), spec.shape.end());
}

std::string EncodeDetail(const Detail& d, std::string_view name) {
  ByteWriter writer;
  writer.PutString(name).Put(d.collective).Put(d.op).Put(d.dtype).Put(d.device);
  writer.Put(d.root).Put(d.process_set);
  writer.Put(std::bit_cast<uint64_t>(d.prescale)).Put(std::bit_cast<uint64_t>(d.postscale));
  writer.Put(static_cast<uint8_t>(d.shape.size()));
  for (int64_t extent : d.shape) writer.Put(extent);
  return writer.Take();
}

Status DecodeDetail(std::string_view bytes, Detail* d, std::string_view* name) {
  ByteReader reader(bytes);
  *name = reader.GetString();
  d->collective = reader.Get<Collective>();
  d->op = reader.Get<ReduceOp>();
  d->dtype = reader.Get<DType>();
  d->device = reader.Get<DeviceKind>();
  d->root = reader.Get<uint32_t>();
  d->process_set = reader.Get<int32_t>();
  d->prescale = std::bit_cast<double>(reader.Get<uint64_t>());
  d->postscale = std::bit_cast<double>(reader.Get<uint64_t>());
  auto dimensions = reader.Get<uint8_t>();
  const bool known = d->collective <= Collective::kJoin && d->op <= ReduceOp::kProduct &&
                     static_cast<int>(d->dtype) < kDTypeCount && d->device <= DeviceKind::kCuda;
  if (!reader.ok() || !known || dimensions > kMaxDimensions) {
    return InvalidArgument("a damaged request");
  }
  d->shape.resize(dimensions);
  for (int64_t& extent : d->shape) extent = reader.Get<int64_t>();
  if (!reader.AtEnd()) return InvalidArgument("a damaged request");
  return Status::Ok();
}

Status CompareDetails(std::string_view name, std::span<const Detail* const> details) {
  auto same_as_first = [&](const Detail* d) { return *d == *details[0]; };
  if (std::all_of(details.begin(), details.end(), same_as_first)) return Status::Ok();
  using Text = std::function<std::string(size_t)>;
  struct Field {
    std::string_view name;
    Text text;
  };
  const Field fields[] = {
      {"collective", [&](size_t r) { return std::string(NameOf(details[r]->collective)); }},
      {"process set", [&](size_t r) { return std::to_string(details[r]->process_set); }},
      {"element type", [&](size_t r) { return std::string(NameOf(details[r]->dtype)); }},
      {"shape", [&](size_t r) { return ShapeText(details[r]->shape); }},
      {"reduce operation", [&](size_t r) { return std::string(NameOf(details[r]->op)); }},
      {"root rank", [&](size_t r) { return std::to_string(details[r]->root); }},
      {"device",
       [&](size_t r) { return details[r]->device == DeviceKind::kHost ? "cpu" : "cuda"; }},
      {"prescale factor", [&](size_t r) { return NumberText(details[r]->prescale); }},
      {"postscale factor", [&](size_t r) { return NumberText(details[r]->postscale); }},
  };
  for (const Field& field : fields) {
    Status same = CompareField(name, field.name, details.size(), field.text);
    if (!same.ok()) return same;
  }
  return Status::Ok();
}

}  // namespace hvd
