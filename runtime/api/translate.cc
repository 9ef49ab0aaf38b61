#include "runtime/api/translate.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// The structs of the first version of hvd.h.
constexpr size_t kFirstRequest = offsetof(hvd_request, tensor_count);
constexpr size_t kFirstOptions = offsetof(hvd_init_options, process_set_ranks);

// *given if its caller knows the whole struct; else a copy in *room of the part it knows, with the
// rest zeroed.
template <typename Struct>
Result<const Struct*> Known(const Struct* given, size_t least, std::string_view what,
                            Struct* room) {
  if (given->struct_size >= sizeof *room) return given;
  if (given->struct_size < least) {
    return InvalidArgument(
        Format("{} has {} bytes, fewer than the {} of the first version of hvd.h; set struct_size, "
               "or rebuild the caller",
               what, given->struct_size, least));
  }
  *room = {};
  std::memcpy(room, given, given->struct_size);
  return static_cast<const Struct*>(room);
}

Status ReadTensor(const hvd_tensor* given, const RequestSpec& request, TensorSpec* tensor,
                  DeviceKind* device) {
  hvd_tensor room;
  Result<const hvd_tensor*> read = Known(given, sizeof room, "a tensor", &room);
  if (!read.ok()) return read.status();
  const hvd_tensor& known = **read;
  if (known.dtype < 0 || known.dtype >= kDTypeCount) {
    return InvalidArgument(
        Format("unknown element type {} of tensor '{}'", known.dtype, request.name));
  }
  if (known.ndim < 0 || (known.ndim > 0 && known.shape == nullptr)) {
    return InvalidArgument("tensor '" + std::string(request.name) + "' has no usable shape");
  }
  tensor->dtype = static_cast<DType>(known.dtype);
  tensor->input = known.input;
  tensor->output = known.output;
  tensor->shape = {known.shape, static_cast<size_t>(known.ndim)};
  tensor->device_index = known.device_index;
  tensor->stream = known.stream;
  *device = known.device_kind == HVD_DEVICE_HOST ? DeviceKind::kHost : DeviceKind::kCuda;
  return Status::Ok();
}

// The distance between tensors is the struct_size of the first one.
Status ReadGroup(const hvd_request& request, RequestMemory* memory, RequestSpec* spec) {
  const auto* at = reinterpret_cast<const std::byte*>(request.tensor);
  const size_t stride = request.tensor->struct_size;
  memory->group.resize(static_cast<size_t>(request.tensor_count));
  for (size_t i = 0; i < memory->group.size(); ++i, at += stride) {
    DeviceKind device = DeviceKind::kHost;
    Status read =
        ReadTensor(reinterpret_cast<const hvd_tensor*>(at), *spec, &memory->group[i], &device);
    if (!read.ok()) return read;
    if (i == 0) spec->device = device;
    const bool same_index = device == DeviceKind::kHost ||
                            memory->group[i].device_index == memory->group[0].device_index;
    if (device == spec->device && same_index) continue;
    return InvalidArgument("the tensors of group '" + std::string(spec->name) +
                           "' are on different devices; put them on one, or submit them apart");
  }
  spec->group = memory->group;
  return Status::Ok();
}

std::string Named(const RequestSpec& spec) { return "'" + std::string(spec.name) + "'"; }

Status ReadTensors(const hvd_request& request, RequestMemory* memory, RequestSpec* spec) {
  if (request.tensor_count < 0) {
    return InvalidArgument(
        Format("{} was submitted with {} tensors", Named(*spec), request.tensor_count));
  }
  const bool takes_none =
      spec->collective == Collective::kBarrier || spec->collective == Collective::kJoin;
  if (takes_none) {
    if (request.tensor_count <= 1) return Status::Ok();
    return InvalidArgument(std::string(NameOf(spec->collective)) + " " + Named(*spec) +
                           " takes no group of tensors");
  }
  if (request.tensor == nullptr)
    return InvalidArgument(Named(*spec) + " was submitted without a tensor");
  if (request.tensor_count > 1) return ReadGroup(request, memory, spec);
  return ReadTensor(request.tensor, *spec, &spec->tensor, &spec->device);
}

Status ReadSplits(const hvd_request& request, RequestSpec* spec) {
  if (request.splits_count == 0 || spec->collective != Collective::kAlltoall) return Status::Ok();
  if (request.splits_count < 0 || request.splits == nullptr) {
    return InvalidArgument(Format("alltoall '{}' was submitted with {} splits and no place of them",
                                  spec->name, request.splits_count));
  }
  spec->splits = {request.splits, static_cast<size_t>(request.splits_count)};
  return Status::Ok();
}

void StoreOutput(const OperationResult::Output& output, size_t room, void* place) {
  hvd_output known{};
  known.struct_size = static_cast<uint32_t>(room);
  known.ndim = static_cast<int32_t>(output.shape.size());
  known.data = output.made;
  std::copy(output.shape.begin(), output.shape.end(), known.shape);
  std::memcpy(place, &known, std::min(room, sizeof known));
}

Status ReadWorldRanks(const hvd_init_options& known, InitOptions* read) {
  if (known.rank_count == 0) return Status::Ok();
  if (known.rank_count < 0 || known.ranks == nullptr) {
    return InvalidArgument(
        Format("hvd_init was given {} ranks of the world and no place of them", known.rank_count));
  }
  if (known.mpi_comm != nullptr) {
    return InvalidArgument(
        "hvd_init was given both a communicator and the ranks of the world; give one of them");
  }
  for (int32_t i = 0; i < known.rank_count; ++i) {
    if (known.ranks[i] < 0) {
      return InvalidArgument(Format("hvd_init was given a world with rank {}", known.ranks[i]));
    }
    read->ranks.push_back(static_cast<uint32_t>(known.ranks[i]));
  }
  std::ranges::sort(read->ranks);
  const auto twice = std::ranges::adjacent_find(read->ranks);
  if (twice == read->ranks.end()) return Status::Ok();
  return InvalidArgument(Format("hvd_init was given a world with rank {} twice", *twice));
}

}  // namespace

Status ReadRequest(const hvd_request* request, RequestMemory* memory, RequestSpec* spec) {
  if (request == nullptr) return InvalidArgument("a collective was submitted without a request");
  hvd_request room;
  Result<const hvd_request*> read = Known(request, kFirstRequest, "the request", &room);
  if (!read.ok()) return read.status();
  const hvd_request& known = **read;
  if (known.collective < 0 || known.collective > HVD_JOIN) {
    return InvalidArgument(Format("unknown collective {}", known.collective));
  }
  if (known.reduce_op < 0 || known.reduce_op > HVD_PRODUCT) {
    return InvalidArgument(Format("unknown reduce operation {}", known.reduce_op));
  }
  spec->collective = static_cast<Collective>(known.collective);
  spec->op = static_cast<ReduceOp>(known.reduce_op);
  spec->root = static_cast<uint32_t>(known.root_rank);
  spec->process_set = known.process_set;
  const bool exact = (known.flags & HVD_EXACT_SCALES) != 0;
  spec->prescale = exact || known.prescale != 0 ? known.prescale : 1;
  spec->postscale = exact || known.postscale != 0 ? known.postscale : 1;
  if (known.name != nullptr) {
    spec->name = known.name;
  } else {
    spec->unnamed = true;
  }
  spec->names_hash = known.members_hash;
  if (known.members_hash != 0 && known.members != nullptr) spec->names = known.members;
  HVD_RETURN_IF_ERROR(ReadTensors(known, memory, spec));
  return ReadSplits(known, spec);
}

bool HasCallback(const hvd_request* request) {
  return request != nullptr && request->struct_size >= sizeof(hvd_request) &&
         request->on_done != nullptr;
}

Status ReadInitOptions(const hvd_init_options* options, InitOptions* read) {
  if (options == nullptr) return Status::Ok();
  hvd_init_options room;
  Result<const hvd_init_options*> given =
      Known(options, kFirstOptions, "the options of hvd_init", &room);
  if (!given.ok()) return given.status();
  const hvd_init_options& known = **given;
  read->mpi_comm = known.mpi_comm;
  HVD_RETURN_IF_ERROR(ReadWorldRanks(known, read));
  read->timeout = std::chrono::milliseconds(known.timeout_ms);
  const bool sets = known.process_set_count > 0;
  if (known.process_set_count < 0 ||
      (sets && (known.process_set_ranks == nullptr || known.process_set_sizes == nullptr))) {
    return InvalidArgument(Format("hvd_init was given {} process sets and no place of their ranks",
                                  known.process_set_count));
  }
  const int32_t* ranks = known.process_set_ranks;
  for (int32_t i = 0; i < known.process_set_count; ++i) {
    const int32_t size = known.process_set_sizes[i];
    if (size < 0) return InvalidArgument("hvd_init was given a process set of negative size");
    read->process_sets.emplace_back(ranks, ranks + size);
    ranks += size;
  }
  return Status::Ok();
}

Status CheckResult(const hvd_result* result) {
  if (result == nullptr) {
    return InvalidArgument("hvd_wait_result was called without a place for the result");
  }
  if (result->struct_size < sizeof(hvd_result)) {
    return InvalidArgument(
        Format("the result has {} bytes, fewer than the first version of hvd.h; set struct_size",
               result->struct_size));
  }
  const bool outputs = result->outputs != nullptr && result->output_count > 0;
  if (outputs && result->outputs->struct_size < sizeof(hvd_output)) {
    return InvalidArgument(Format(
        "the first output has {} bytes, fewer than the first version of hvd.h; set struct_size",
        result->outputs->struct_size));
  }
  return Status::Ok();
}

void Store(OperationResult result, SharedHeap& heap, hvd_result* place) {
  const auto room = static_cast<size_t>(
      place->outputs == nullptr ? 0 : std::max<int32_t>(0, place->output_count));
  const size_t stride = room == 0 ? 0 : place->outputs->struct_size;
  auto* at = reinterpret_cast<std::byte*>(place->outputs);
  for (size_t i = 0; i < result.outputs.size(); ++i, at += stride) {
    if (i < room) {
      StoreOutput(result.outputs[i], stride, at);
    } else if (result.outputs[i].made != nullptr) {
      heap.Free(result.outputs[i].made);
    }
  }
  const auto splits_room = static_cast<size_t>(std::max<int32_t>(0, place->received_splits_count));
  if (place->received_splits != nullptr) {
    std::copy_n(result.received_splits.begin(),
                std::min(splits_room, result.received_splits.size()), place->received_splits);
  }
  place->output_count = static_cast<int32_t>(result.outputs.size());
  place->received_splits_count = static_cast<int32_t>(result.received_splits.size());
  place->last_joined_rank = result.last_joined_rank;
}

}  // namespace hvd
