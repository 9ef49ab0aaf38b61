#include "runtime/core/request/request.h"

#include <algorithm>
#include <bit>

#include "runtime/base/bytes.h"
#include "runtime/base/text/format.h"
#include "runtime/core/request/request_text.h"
#include "runtime/device/host_reduce.h"

namespace hvd {
namespace {

Status CheckElements(const TensorSpec& tensor, std::string_view name) {
  int64_t bytes = static_cast<int64_t>(SizeOf(tensor.dtype));
  bool empty = false, too_many = false;
  for (int64_t extent : tensor.shape) {
    if (extent < 0) {
      return InvalidArgument(Format("tensor {} has the negative extent {}", Quoted(name), extent));
    }
    empty = empty || extent == 0;
    too_many = too_many || __builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (empty || !too_many) return Status::Ok();
  return InvalidArgument("tensor " + Quoted(name) + " has more elements than memory can hold");
}

Status CheckName(std::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return Status::Ok();
  return InvalidArgument(
      Format("a tensor name has {} bytes; 1 to {} are possible", name.size(), kMaxNameBytes));
}

// May be allocated by the backend, once the parts of all ranks are known.
bool OutputMayBeMissing(Collective collective) {
  return collective == Collective::kAllgather || collective == Collective::kAlltoall ||
         collective == Collective::kReducescatter;
}

bool LacksMemory(const RequestSpec& spec, const TensorSpec& tensor) {
  if (tensor.input != nullptr && tensor.output != nullptr) return false;
  const bool no_output = tensor.output == nullptr && !OutputMayBeMissing(spec.collective);
  return (tensor.input == nullptr || no_output) && ElementsOf(tensor.shape) != 0;
}

Status NoMemory(const RequestSpec& spec) {
  return InvalidArgument("tensor " + Quoted(spec.name) + " has elements but no memory");
}

bool CanScatter(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kAverage; }

Status CheckReduction(const RequestSpec& spec, const TensorSpec& tensor) {
  if (spec.op > ReduceOp::kActiveAverage) {
    return InvalidArgument(Format("unknown reduce operation {} for tensor {}",
                                  static_cast<int>(spec.op), Quoted(spec.name)));
  }
  // Checked for all ranks together by CheckAgreed, whatever the type.
  if (spec.collective == Collective::kReducescatter && !CanScatter(spec.op)) return Status::Ok();
  const bool averages = spec.op == ReduceOp::kAverage || spec.op == ReduceOp::kActiveAverage;
  const bool average = averages && !CanAverage(tensor.dtype);
  const bool adasum = spec.op == ReduceOp::kAdasum && !CanAdasum(tensor.dtype);
  if (!average && !adasum) return Status::Ok();
  return InvalidArgument("tensor " + Quoted(spec.name) + " has the type " +
                         std::string(NameOf(tensor.dtype)) + ", of which " +
                         (average ? "there is no average; reduce it with another operation"
                                  : "there is no Adasum; cast it to float32"));
}

Status CheckTensor(const RequestSpec& spec, const TensorSpec& tensor) {
  if (static_cast<int>(tensor.dtype) >= kDTypeCount) {
    return InvalidArgument(Format("unknown element type {} of tensor {}",
                                  static_cast<int>(tensor.dtype), Quoted(spec.name)));
  }
  if (tensor.shape.size() > kMaxDimensions) {
    return InvalidArgument(Format("tensor {} has {} dimensions; at most 8 are possible",
                                  Quoted(spec.name), tensor.shape.size()));
  }
  HVD_RETURN_IF_ERROR(CheckElements(tensor, spec.name));
  if (LacksMemory(spec, tensor)) return NoMemory(spec);
  const bool reduces =
      spec.collective == Collective::kAllreduce || spec.collective == Collective::kReducescatter;
  return reduces ? CheckReduction(spec, tensor) : Status::Ok();
}

Status CheckSplits(const RequestSpec& spec, const Group& group) {
  if (spec.tensor.shape.empty()) return Status::Ok();  // refused by CheckAgreed
  const int64_t rows = spec.tensor.shape[0];
  const auto refused = [&](const std::string& why) {
    return InvalidArgument("alltoall of tensor " + Quoted(spec.name) + ": " + why);
  };
  if (spec.splits.empty()) {
    if (rows % group.size() == 0) return Status::Ok();
    return refused(
        Format("dimension 0 has {} rows, which {} ranks cannot share equally; say with splits who "
               "gets how many",
               rows, group.size()));
  }
  if (spec.splits.size() != group.size()) {
    return refused(
        Format("splits has {} entries, the process set {} ranks; give one entry per rank",
               spec.splits.size(), group.size()));
  }
  int64_t sum = 0;
  for (int64_t split : spec.splits) {
    if (split < 0) return refused(Format("splits has the entry {}", split));
    if (split > rows - sum) {
      return refused(Format("splits hands out more rows than the {} of dimension 0", rows));
    }
    sum += split;
  }
  return Status::Ok();
}

Status CheckRoot(const RequestSpec& spec, const Group& group) {
  if (std::binary_search(group.ranks.begin(), group.ranks.end(), spec.root)) return Status::Ok();
  const std::string what = Format("broadcast of tensor {} from rank {}", Quoted(spec.name),
                                  static_cast<int32_t>(spec.root));
  if (group.id == 0) {
    return InvalidArgument(Format("{}: ranks of this world are 0 to {}", what, group.size() - 1));
  }
  return InvalidArgument(
      Format("{}: the ranks of process set {} are {}", what, group.id, RanksText(group.ranks)));
}

Status CheckCount(const RequestSpec& spec) {
  if (spec.group.size() > kMaxTensors) {
    return InvalidArgument(Format("group {} has {} tensors; at most {} are possible",
                                  Quoted(spec.name), spec.group.size(), kMaxTensors));
  }
  if (spec.collective == Collective::kAlltoall && !spec.group.empty()) {
    return InvalidArgument("alltoall " + Quoted(spec.name) + " takes one tensor, not a group");
  }
  return Status::Ok();
}

// The share of each member if the caller named none.
int64_t SplitOf(const RequestSpec& spec, size_t member, uint32_t members) {
  if (!spec.splits.empty()) return spec.splits[member];
  return spec.tensor.shape.empty() ? 0 : spec.tensor.shape[0] / members;
}

bool DescribesPart(const TensorDetail& part, const TensorSpec& tensor) {
  if (part.dtype != tensor.dtype || part.shape.size() != tensor.shape.size()) return false;
  for (size_t i = 0; i < part.shape.size(); ++i) {  // a call of memcmp takes longer
    if (part.shape[i] != tensor.shape[i]) return false;
  }
  return true;
}

bool DescribesSplits(const TensorDetail& part, const RequestSpec& spec, uint32_t members) {
  if (!spec.splits.empty() && spec.splits.size() != part.splits.size()) return false;
  for (size_t i = 0; i < part.splits.size(); ++i) {
    if (part.splits[i] != SplitOf(spec, i, members)) return false;
  }
  return part.splits.size() == members;
}

void EncodePart(const TensorDetail& part, ByteWriter* writer) {
  writer->Put(part.dtype).Put(static_cast<uint8_t>(part.shape.size()));
  for (int64_t extent : part.shape) writer->Put(extent);
  writer->Put(static_cast<uint32_t>(part.splits.size()));
  for (int64_t split : part.splits) writer->Put(split);
}

bool DecodePart(ByteReader* reader, TensorDetail* part) {
  part->dtype = reader->Get<DType>();
  auto dimensions = reader->Get<uint8_t>();
  if (static_cast<int>(part->dtype) >= kDTypeCount || dimensions > kMaxDimensions) return false;
  part->shape.resize(dimensions);
  for (int64_t& extent : part->shape) extent = reader->Get<int64_t>();
  auto splits = reader->Get<uint32_t>();
  part->splits.clear();
  for (uint32_t i = 0; i < splits && reader->ok(); ++i) {
    part->splits.push_back(reader->Get<int64_t>());
  }
  return reader->ok();
}

}  // namespace

size_t ElementsOf(std::span<const int64_t> shape) {
  size_t count = 1;
  for (int64_t extent : shape) {
    if (extent == 0) return 0;
    count *= static_cast<size_t>(extent);
  }
  return count;
}

Status CheckRequest(const RequestSpec& spec, const Group& group) {
  HVD_RETURN_IF_ERROR(CheckName(spec.name));
  if (spec.collective > Collective::kRemoveProcessSet) {
    return InvalidArgument(Format("unknown collective {}", static_cast<int>(spec.collective)));
  }
  HVD_RETURN_IF_ERROR(CheckCount(spec));
  for (const TensorSpec& tensor : spec.tensors()) {
    if (Status checked = CheckTensor(spec, tensor); !checked.ok()) return checked;
  }
  if (spec.collective == Collective::kAlltoall) return CheckSplits(spec, group);
  if (spec.collective == Collective::kBroadcast) return CheckRoot(spec, group);
  return Status::Ok();
}

Status CheckRepeated(const RequestSpec& spec, const Group& group) {
  for (const TensorSpec& tensor : spec.tensors()) {
    if (LacksMemory(spec, tensor)) return NoMemory(spec);
  }
  return spec.collective == Collective::kAlltoall ? CheckSplits(spec, group) : Status::Ok();
}

Status CheckAgreed(std::string_view name, const Detail& detail, bool devices) {
  const auto what = [&] {
    return std::string(NameOf(detail.collective)) + " of tensor " + Quoted(name);
  };
  if (detail.device == DeviceKind::kCuda && !devices) {
    return Unsupported(what() +
                       ": it is on a CUDA device; this runtime moves host memory only: copy it "
                       "to the CPU");
  }
  if (detail.collective == Collective::kReducescatter && !CanScatter(detail.op)) {
    return Mismatch(what() + " with " + std::string(NameOf(detail.op)) +
                    ": a reducescatter takes Sum and Average only");
  }
  if (!OutputMayBeMissing(detail.collective)) return Status::Ok();
  for (const TensorDetail& part : detail.parts) {
    if (part.shape.empty()) {
      return Mismatch(what() + ": it has no dimension to cut or to join; reshape it to [1]");
    }
  }
  return Status::Ok();
}

Detail DetailOf(const RequestSpec& spec, uint32_t members) {
  Detail detail{spec.collective,
                spec.op,
                spec.device,
                spec.root,
                spec.process_set,
                spec.prescale,
                spec.postscale,
                {spec.members.begin(), spec.members.end()},
                {},
                spec.names_hash,
                RecordString(spec.names)};
  for (const TensorSpec& tensor : spec.tensors()) {
    detail.parts.push_back({tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}, {}});
  }
  if (spec.collective != Collective::kAlltoall) return detail;
  for (uint32_t i = 0; i < members; ++i) {
    detail.parts[0].splits.push_back(SplitOf(spec, i, members));
  }
  return detail;
}

bool Describes(const Detail& d, const RequestSpec& spec, uint32_t members) {
  const std::span<const TensorSpec> tensors = spec.tensors();
  return d.collective == spec.collective && d.op == spec.op && d.device == spec.device &&
         d.root == spec.root && d.process_set == spec.process_set && d.prescale == spec.prescale &&
         d.postscale == spec.postscale && d.parts.size() == tensors.size() &&
         d.names_hash == spec.names_hash &&
         std::equal(d.parts.begin(), d.parts.end(), tensors.begin(), DescribesPart) &&
         std::equal(d.members.begin(), d.members.end(), spec.members.begin(), spec.members.end()) &&
         (d.collective != Collective::kAlltoall || DescribesSplits(d.parts[0], spec, members));
}

RecordVector<CollectiveCall> CallsOf(const Detail& detail, const Group& group) {
  const bool sets = IsControl(detail.collective) && detail.collective != Collective::kJoin;
  CollectiveCall call;
  call.collective = sets ? Collective::kBarrier : detail.collective;  // as far as a backend can see
  call.op = detail.op;
  call.prescale = detail.prescale;
  call.postscale = detail.postscale;
  call.device = detail.device;
  call.group = &group;
  if (detail.collective == Collective::kBroadcast) {
    const auto root = std::lower_bound(group.ranks.begin(), group.ranks.end(), detail.root);
    call.root = static_cast<uint32_t>(root - group.ranks.begin());
  }
  RecordVector<CollectiveCall> calls(std::max<size_t>(1, detail.parts.size()), call);
  for (size_t i = 0; i < detail.parts.size(); ++i) {
    const TensorDetail& part = detail.parts[i];
    const std::span<const int64_t> shape = part.shape;
    calls[i].dtype = part.dtype;
    calls[i].count = ElementsOf(shape);
    calls[i].rows = part.rows();
    calls[i].row_count = shape.empty() ? 1 : ElementsOf(shape.subspan(1));
    if (!part.splits.empty()) calls[i].splits = part.splits.data();
  }
  return calls;
}

std::string EncodeDetail(const Detail& d, std::string_view name, bool names) {
  ByteWriter writer;
  const std::string_view sent = names ? std::string_view(d.names) : std::string_view();
  writer.Reserve(name.size() + 80 + 4 * d.members.size() + 64 * d.parts.size() + sent.size());
  writer.PutString(name).Put(d.collective).Put(d.op).Put(d.device);
  writer.Put(d.root).Put(d.process_set);
  writer.Put(std::bit_cast<uint64_t>(d.prescale)).Put(std::bit_cast<uint64_t>(d.postscale));
  writer.Put(static_cast<uint32_t>(d.members.size()));
  for (uint32_t member : d.members) writer.Put(member);
  writer.Put(static_cast<uint32_t>(d.parts.size()));
  for (const TensorDetail& part : d.parts) EncodePart(part, &writer);
  writer.Put(d.names_hash).PutString(sent);
  return writer.Take();
}

Status DecodeDetail(std::string_view bytes, Detail* d, std::string_view* name) {
  const auto damaged = [] { return InvalidArgument("a damaged request"); };
  ByteReader reader(bytes);
  *name = reader.GetString();
  d->collective = reader.Get<Collective>();
  d->op = reader.Get<ReduceOp>();
  d->device = reader.Get<DeviceKind>();
  d->root = reader.Get<uint32_t>();
  d->process_set = reader.Get<int32_t>();
  d->prescale = std::bit_cast<double>(reader.Get<uint64_t>());
  d->postscale = std::bit_cast<double>(reader.Get<uint64_t>());
  const bool known = d->collective <= Collective::kRemoveProcessSet &&
                     d->op <= ReduceOp::kActiveAverage && d->device <= DeviceKind::kCuda;
  if (!reader.ok() || !known) return damaged();
  auto members = reader.Get<uint32_t>();
  d->members.clear();
  for (uint32_t i = 0; i < members && reader.ok(); ++i)
    d->members.push_back(reader.Get<uint32_t>());
  auto parts = reader.Get<uint32_t>();
  if (!reader.ok() || parts > kMaxTensors) return damaged();
  d->parts.clear();
  for (uint32_t i = 0; i < parts; ++i) {
    if (!DecodePart(&reader, &d->parts.emplace_back())) return damaged();
  }
  d->names_hash = reader.Get<uint64_t>();
  d->names = reader.GetString();
  return reader.AtEnd() ? Status::Ok() : damaged();
}

}  // namespace hvd
