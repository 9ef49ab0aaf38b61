#include "runtime/frameworks/tensorflow/collective_kernel.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "runtime/frameworks/tensorflow/node_call.h"

namespace hvd::tf {
namespace {

// The calling thread waits for eager calls; polling here saves a thread switch.
constexpr int64_t kEagerWaitUs = 5000;

// Concurrent iterations of a loop have different numbers; all ranks use the same one for the same
// iteration. Few, so that names recur.
constexpr int64_t kIterations = 256;

const char* PrefixOf(hvd_collective collective) {
  switch (collective) {
    case HVD_ALLREDUCE: return "allreduce.";
    case HVD_ALLGATHER: return "allgather.";
    case HVD_BROADCAST: return "broadcast.";
    case HVD_ALLTOALL: return "alltoall.";
    case HVD_REDUCESCATTER: return "reducescatter.";
    default: return "";
  }
}

std::string StringAttribute(Construction* construction, const char* name, Status* status) {
  int32_t list = 0, total = 0;
  api().OpKernelConstruction_GetAttrSize(construction, name, &list, &total, status);
  if (api().GetCode(status) != kOk || total <= 0) return "";
  std::vector<char> text(static_cast<size_t>(total) + 1);
  api().OpKernelConstruction_GetAttrString(construction, name, text.data(),
                                           static_cast<size_t>(total), status);
  return {text.data(), static_cast<size_t>(total)};
}

}  // namespace

CollectiveKernel* CollectiveKernel::Create(Construction* construction, hvd_collective collective) {
  auto kernel = std::make_unique<CollectiveKernel>();
  kernel->collective_ = collective;
  Status* const status = api().NewStatus();
  const bool read = kernel->Read(construction, status);
  if (!read) api().OpKernelConstruction_Failure(construction, status);
  api().DeleteStatus(status);
  return read ? kernel.release() : nullptr;
}

// tensor_name: "" in a graph, where the node's own name is used, which is the same on all ranks and
// different for each call of a function; "?" if the runtime chooses the name.
bool CollectiveKernel::Read(Construction* construction, Status* status) {
  const auto read = [&] { return api().GetCode(status) == kOk; };
  if (collective_ == HVD_JOIN) return true;
  std::string name = StringAttribute(construction, "tensor_name", status);
  unsigned char ignore_scope = 0, eager = 0;
  if (read())
    api().OpKernelConstruction_GetAttrBool(construction, "ignore_name_scope", &ignore_scope,
                                           status);
  if (read()) api().OpKernelConstruction_GetAttrBool(construction, "eager", &eager, status);
  if (read())
    api().OpKernelConstruction_GetAttrInt32(construction, "process_set_id", &process_set_, status);
  if (read() && (collective_ == HVD_ALLREDUCE || collective_ == HVD_REDUCESCATTER)) {
    api().OpKernelConstruction_GetAttrInt32(construction, "reduce_op", &reduce_op_, status);
    if (read())
      prescale_ = std::strtod(StringAttribute(construction, "prescale", status).c_str(), nullptr);
    if (read())
      postscale_ = std::strtod(StringAttribute(construction, "postscale", status).c_str(), nullptr);
  }
  if (read() && collective_ == HVD_BROADCAST)
    api().OpKernelConstruction_GetAttrInt32(construction, "root_rank", &root_rank_, status);
  if (!read()) return false;
  wait_us_ = eager != 0 ? kEagerWaitUs : 0;
  unnamed_ = name == "?";
  if (eager == 0) {
    const StringView node = api().OpKernelConstruction_GetName(construction);
    name.assign(node.data, node.length);
  }
  if (ignore_scope != 0 && !unnamed_) name = name.substr(name.rfind('/') + 1);
  if (!unnamed_) name_ = PrefixOf(collective_) + name;
  return true;
}

void CollectiveKernel::ComputeAsync(Context* context, DoneArgument* done) const {
  auto* call = new NodeCall(context, done, collective_);
  hvd_request& request = call->request();
  request.process_set = process_set_;
  request.reduce_op = reduce_op_;
  request.root_rank = root_rank_;
  request.prescale = prescale_;
  request.postscale = postscale_;
  request.on_done_wait_us = wait_us_;
  call->name() = name_;
  const int64_t iteration = api().GetIterId == nullptr ? 0 : api().GetIterId(context);
  if (!unnamed_ && iteration > 0)
    call->name().append(":").append(std::to_string(iteration % kIterations));
  if (collective_ != HVD_JOIN) call->AddTensors();
  if (collective_ == HVD_ALLTOALL) call->AddSplits(1);
  call->Submit();
}

}  // namespace hvd::tf
