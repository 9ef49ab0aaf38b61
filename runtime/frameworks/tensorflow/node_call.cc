#include "runtime/frameworks/tensorflow/node_call.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "runtime/base/mutex.h"

namespace hvd::tf {
namespace {

// A name may be in flight only once, but a node can be started again before its previous call has
// ended: by another iteration of a loop, or another thread that runs the function. Later calls wait
// here. Never destroyed: calls end while the process exits.
struct NamesInFlight {
  Mutex mutex;
  std::unordered_map<std::string, std::deque<NodeCall*>> waiting HVD_GUARDED_BY(mutex);
};

NamesInFlight& Names() {
  static auto* names = new NamesInFlight;
  return *names;
}

// -1 for a type that no collective supports.
int32_t TypeOf(DataType type) {
  constexpr std::pair<DataType, hvd_dtype> kTypes[] = {
      {1, HVD_FLOAT32},   {2, HVD_FLOAT64}, {3, HVD_INT32},   {4, HVD_UINT8},
      {5, HVD_INT16},     {6, HVD_INT8},    {9, HVD_INT64},   {10, HVD_BOOL},
      {14, HVD_BFLOAT16}, {17, HVD_UINT16}, {19, HVD_FLOAT16}};
  for (const auto& [theirs, ours] : kTypes)
    if (theirs == type) return ours;
  return -1;
}

int CodeOf(int32_t status) {
  switch (status) {
    case HVD_INVALID_ARGUMENT:
    case HVD_DUPLICATE_NAME: return kInvalidArgument;
    case HVD_NOT_INITIALIZED:
    case HVD_MISMATCH:
    case HVD_FORKED: return kFailedPrecondition;
    case HVD_UNSUPPORTED: return kUnimplemented;
    case HVD_OUT_OF_MEMORY: return kResourceExhausted;
    case HVD_INTERNAL: return kInternal;
    default: return kUnknown;  // the world broke
  }
}

void Free(void* data, size_t, void*) { runtime().free(data); }

}  // namespace

NodeCall::NodeCall(Context* context, DoneArgument* done, hvd_collective collective)
    : context_(context), done_(done), collective_(collective), status_(api().NewStatus()) {
  request_.collective = collective;
  request_.on_done = &OnDone;
  request_.on_done_arg = this;
  request_.flags = HVD_EXACT_SCALES;
}

NodeCall::~NodeCall() {
  for (Tensor* tensor : held_) api().DeleteTensor(tensor);
  api().DeleteStatus(status_);
}

// The last input of every operation is the token.
void NodeCall::AddTensors() {
  const int inputs = api().NumInputs(context_) - (collective_ == HVD_ALLTOALL ? 2 : 1);
  tensors_.reserve(static_cast<size_t>(inputs));
  shapes_.reserve(static_cast<size_t>(inputs));
  for (int i = 0; i < inputs && !failed(); ++i) AddTensor(i);
  request_.tensor = tensors_.data();
  request_.tensor_count = inputs;
}

void NodeCall::AddTensor(int index) {
  Tensor* input = nullptr;
  api().GetInput(context_, index, &input, status_);
  if (failed()) return;
  const DataType type = api().TensorType(input);
  std::vector<int64_t> shape(static_cast<size_t>(api().NumDims(input)));
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = api().Dim(input, static_cast<int>(i));
  hvd_tensor tensor = HVD_TENSOR_INIT;
  tensor.dtype = TypeOf(type);
  if (!makes_output()) {
    // An input is forwarded if there is no other reference to it.
    api().DeleteTensor(std::exchange(input, nullptr));
    int forwarded = -1;
    Tensor* const output =
        api().ForwardInputOrAllocateOutput(context_, &index, 1, index, shape.data(),
                                           static_cast<int>(shape.size()), &forwarded, status_);
    if (failed()) return;
    held_.push_back(output);
    tensor.output = api().TensorData(output);
    tensor.input = tensor.output;
    if (forwarded < 0) api().GetInput(context_, index, &input, status_);
    if (failed()) return;
  }
  if (input != nullptr) {
    held_.push_back(input);
    tensor.input = api().TensorData(input);
  }
  shapes_.push_back(std::move(shape));
  types_.push_back(type);
  tensor.shape = shapes_.back().data();
  tensor.ndim = static_cast<int32_t>(shapes_.back().size());
  tensors_.push_back(tensor);
}

void NodeCall::AddSplits(int input) {
  Tensor* given = nullptr;
  if (!failed()) api().GetInput(context_, input, &given, status_);
  if (failed()) return;
  held_.push_back(given);
  if (api().NumDims(given) != 1) {
    api().SetStatus(status_, kInvalidArgument,
                    "alltoall takes splits as a vector, one entry for each rank of the set");
    return;
  }
  const auto* numbers = static_cast<const int32_t*>(api().TensorData(given));
  splits_.assign(numbers, numbers + api().Dim(given, 0));
  request_.splits = splits_.data();
  request_.splits_count = static_cast<int32_t>(splits_.size());
}

void NodeCall::Submit() {
  if (failed()) {
    End(HVD_OK, "", nullptr);
    return;
  }
  request_.name = name_.empty() ? nullptr : name_.c_str();
  if (!name_.empty()) {
    NamesInFlight& names = Names();
    MutexLock lock(names.mutex);
    const auto [found, added] = names.waiting.try_emplace(name_);
    if (!added) {
      found->second.push_back(this);
      return;
    }
  }
  Start();
}

void NodeCall::Start() {
  const int32_t status = runtime().submit(&request_, nullptr);
  if (status != HVD_OK) End(status, runtime().last_error(), nullptr);
}

void NodeCall::OnDone(void* arg, int32_t status, const char* sentence, hvd_result* result) {
  static_cast<NodeCall*>(arg)->End(status, sentence, result);
}

void NodeCall::End(int32_t status, const char* sentence, hvd_result* result) {
  NodeCall* next = nullptr;
  if (request_.name != nullptr) {
    NamesInFlight& names = Names();
    MutexLock lock(names.mutex);
    const auto found = names.waiting.find(name_);
    if (found->second.empty()) {
      names.waiting.erase(found);
    } else {
      next = found->second.front();
      found->second.pop_front();
    }
  }
  if (status != HVD_OK) api().SetStatus(status_, CodeOf(status), sentence);
  if (result != nullptr) Give(*result);
  if (failed()) api().OpKernelContext_Failure(context_, status_);
  // TensorFlow must be the only owner of the outputs before it continues with them.
  for (Tensor* tensor : held_) api().DeleteTensor(tensor);
  held_.clear();
  done_.Run();
  delete this;
  if (next != nullptr) next->Start();
}

void NodeCall::Give(const hvd_result& result) {
  if (collective_ == HVD_JOIN) {
    Tensor* const last = api().AllocateOutput(context_, 0, kInt32, nullptr, 0, 4, status_);
    if (failed()) return;
    *static_cast<int32_t*>(api().TensorData(last)) = result.last_joined_rank;
    held_.push_back(last);
    return;
  }
  if (makes_output()) {
    const auto* at = reinterpret_cast<const char*>(result.outputs);
    for (int i = 0; i < result.output_count; ++i, at += result.outputs->struct_size)
      SetMadeOutput(i, *reinterpret_cast<const hvd_output*>(at));
  }
  if (collective_ != HVD_ALLTOALL || failed()) return;
  const int64_t count = result.received_splits_count;
  Tensor* const splits =
      api().AllocateOutput(context_, 1, kInt32, &count, 1, static_cast<size_t>(count) * 4, status_);
  if (failed()) return;
  auto* const numbers = static_cast<int32_t*>(api().TensorData(splits));
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<int32_t>(result.received_splits[i]);
  held_.push_back(splits);
}

void NodeCall::SetMadeOutput(int index, hvd_output output) {
  const DataType type = types_[static_cast<size_t>(index)];
  size_t bytes = api().DataTypeSize(type);
  for (int i = 0; i < output.ndim; ++i) bytes *= static_cast<size_t>(output.shape[i]);
  Tensor* tensor = nullptr;
  if (output.data == nullptr) {
    if (!failed())
      tensor =
          api().AllocateOutput(context_, index, type, output.shape, output.ndim, bytes, status_);
  } else {
    tensor = api().NewTensor(type, output.shape, output.ndim, output.data, bytes, &Free, nullptr);
    if (!failed()) api().SetOutput(context_, index, tensor, status_);
  }
  if (tensor != nullptr) held_.push_back(tensor);
}

}  // namespace hvd::tf
