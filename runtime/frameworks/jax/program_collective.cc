#include "runtime/frameworks/jax/program_collective.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/base/mutex.h"

namespace hvd::jax {
namespace {

// How long a handler itself waits for the other ranks before it returns its thread.
constexpr int64_t kWaitUs = 50;
constexpr int kMaxDimensions = 8;

struct LastFailure {
  Mutex mutex;
  Failure failure HVD_GUARDED_BY(mutex);
};

LastFailure& GetLastFailure() {
  static auto* const last = new LastFailure;  // callbacks may come while the process exits
  return *last;
}

void NoteFailure(const Failure& failure) {
  LastFailure& last = GetLastFailure();
  MutexLock lock(last.mutex);
  last.failure = failure;
}

struct Type {
  int32_t dtype;  // -1: not a type of the runtime
  int64_t size;
};

// Unsigned 32 and 64-bit numbers are sent as signed ones; Python passes only operations whose
// result has the same bits.
Type TypeOf(int dtype) {
  switch (dtype) {
    case xla::kPred: return {HVD_BOOL, 1};
    case xla::kS8: return {HVD_INT8, 1};
    case xla::kS16: return {HVD_INT16, 2};
    case xla::kS32:
    case xla::kU32: return {HVD_INT32, 4};
    case xla::kS64:
    case xla::kU64: return {HVD_INT64, 8};
    case xla::kU8: return {HVD_UINT8, 1};
    case xla::kU16: return {HVD_UINT16, 2};
    case xla::kF16: return {HVD_FLOAT16, 2};
    case xla::kF32: return {HVD_FLOAT32, 4};
    case xla::kF64: return {HVD_FLOAT64, 8};
    case xla::kBf16: return {HVD_BFLOAT16, 2};
    case xla::kF8E5M2: return {HVD_FLOAT8_E5M2, 1};
    case xla::kF8E4M3Fn: return {HVD_FLOAT8_E4M3, 1};
    default: return {-1, 0};
  }
}

int64_t BytesOf(const xla::Buffer& buffer) {
  int64_t bytes = TypeOf(buffer.dtype).size;
  for (int64_t i = 0; i < buffer.rank; ++i) bytes *= buffer.dims[i];
  return bytes;
}

// The runtime's limit: beyond eight dimensions the last ones are merged.
std::vector<int64_t> ShapeOf(const xla::Buffer& buffer) {
  std::vector<int64_t> shape(buffer.dims, buffer.dims + buffer.rank);
  while (shape.size() > kMaxDimensions) {
    const int64_t last = shape.back();
    shape.pop_back();
    shape.back() *= last;
  }
  return shape;
}

std::vector<const xla::Buffer*> WithoutTokens(const xla::Buffers& buffers) {
  std::vector<const xla::Buffer*> data;
  for (int64_t i = 0; i < buffers.size; ++i) {
    if (buffers.values[i]->dtype != xla::kToken) data.push_back(buffers.values[i]);
  }
  return data;
}

bool HasFutures(const xla::CallFrame& frame) {
  return frame.api->struct_size >= offsetof(xla::FfiApi, future_set_error) + sizeof(void*) &&
         frame.struct_size >= offsetof(xla::CallFrame, future) + sizeof(void*);
}

int CodeOf(int32_t status) {
  switch (status) {
    case HVD_INVALID_ARGUMENT:
    case HVD_DUPLICATE_NAME:
    case HVD_NOT_INITIALIZED: return xla::kInvalidArgument;
    case HVD_MISMATCH: return xla::kFailedPrecondition;
    case HVD_ABORTED: return xla::kAborted;
    default: return xla::kInternal;
  }
}

}  // namespace

Failure PopFailure() {
  LastFailure& last = GetLastFailure();
  MutexLock lock(last.mutex);
  return std::exchange(last.failure, Failure{});
}

ProgramCollective::ProgramCollective(xla::CallFrame* frame, const RuntimeFunctions& runtime)
    : runtime_(runtime), api_(frame->api) {}

xla::Error* ProgramCollective::Start(xla::CallFrame* frame, const RuntimeFunctions& runtime) {
  auto* const call = new ProgramCollective(frame, runtime);
  bool waits = true;
  if (HasFutures(*frame)) {
    xla::FutureCreateArgs args{sizeof(args), nullptr, nullptr};
    if (xla::Error* error = frame->api->future_create(&args)) {
      delete call;
      return error;
    }
    frame->future = call->future_ = args.future;
    waits = false;
  }
  call->failure_.sentence = call->Describe(*frame);
  if (!call->failure_.sentence.empty()) {
    call->failure_.status = HVD_INVALID_ARGUMENT;
  } else {
    call->request_.on_done = &ProgramCollective::OnDone;
    call->request_.on_done_arg = call;
    call->request_.on_done_wait_us = kWaitUs;
    const int32_t status = runtime.submit(&call->request_, nullptr);
    // From here on the call may be gone, unless it waits or could not be submitted.
    if (status == HVD_OK && !waits) return nullptr;
    if (status != HVD_OK) call->failure_ = {status, runtime.last_error()};
    if (status == HVD_OK) call->ended_.wait(0);
  }
  const std::unique_ptr<ProgramCollective> owned(call);
  if (call->failure_.status != HVD_OK) NoteFailure(call->failure_);
  if (!waits) {
    call->Complete();
    return nullptr;
  }
  return call->failure_.status == HVD_OK ? nullptr : call->MakeError();
}

std::string ProgramCollective::Describe(const xla::CallFrame& frame) {
  ReadAttributes(frame.attributes);
  request_.flags = HVD_EXACT_SCALES;
  request_.name = name_.c_str();
  if (request_.collective == HVD_BARRIER) return "";
  return AddTensors(frame);
}

std::string ProgramCollective::AddTensors(const xla::CallFrame& frame) {
  const std::vector<const xla::Buffer*> inputs = WithoutTokens(frame.args);
  const std::vector<const xla::Buffer*> outputs = WithoutTokens(frame.results);
  if (inputs.size() != outputs.size() || inputs.empty()) {
    return "a collective of a compiled program has other results than tensors";
  }
  tensors_.resize(inputs.size(), hvd_tensor HVD_TENSOR_INIT);
  shapes_.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int32_t dtype = TypeOf(inputs[i]->dtype).dtype;
    if (dtype < 0) return "a collective of a compiled program has a tensor of an unknown type";
    shapes_.push_back(ShapeOf(*inputs[i]));
    outputs_.push_back(outputs[i]->data);
    output_bytes_.push_back(BytesOf(*outputs[i]));
    element_bytes_.push_back(TypeOf(inputs[i]->dtype).size);
    tensors_[i].dtype = dtype;
    tensors_[i].input = inputs[i]->data;
    tensors_[i].output = MakesOutputs() ? nullptr : outputs[i]->data;
    tensors_[i].shape = shapes_[i].data();
    tensors_[i].ndim = static_cast<int32_t>(shapes_[i].size());
  }
  request_.tensor = tensors_.data();
  request_.tensor_count = static_cast<int32_t>(tensors_.size());
  return "";
}

void ProgramCollective::ReadAttributes(const xla::Attributes& attributes) {
  const auto read = [&](int64_t i, auto* to) {
    std::memcpy(to, static_cast<const xla::Scalar*>(attributes.values[i])->value, sizeof(*to));
  };
  for (int64_t i = 0; i < attributes.size; ++i) {
    const std::string_view name(attributes.names[i]->ptr, attributes.names[i]->len);
    if (name == "collective") {
      read(i, &request_.collective);
    } else if (name == "name") {
      const auto* const text = static_cast<const xla::ByteSpan*>(attributes.values[i]);
      name_.assign(text->ptr, text->len);
    } else if (name == "op") {
      read(i, &request_.reduce_op);
    } else if (name == "postscale") {
      read(i, &request_.postscale);
    } else if (name == "prescale") {
      read(i, &request_.prescale);
    } else if (name == "process_set") {
      read(i, &request_.process_set);
    } else if (name == "root_rank") {
      read(i, &request_.root_rank);
    }
  }
}

bool ProgramCollective::MakesOutputs() const {
  return request_.collective == HVD_ALLGATHER || request_.collective == HVD_ALLTOALL ||
         request_.collective == HVD_REDUCESCATTER;
}

void ProgramCollective::OnDone(void* arg, int32_t status, const char* sentence,
                               hvd_result* result) {
  auto* const call = static_cast<ProgramCollective*>(arg);
  if (status != HVD_OK) {
    call->failure_ = {status, sentence};
  } else if (result != nullptr && call->MakesOutputs()) {
    call->CopyOutputs(*result);
  }
  if (call->future_ == nullptr) {
    call->ended_.store(1);
    call->ended_.notify_one();
    return;
  }
  const std::unique_ptr<ProgramCollective> owned(call);
  if (call->failure_.status != HVD_OK) NoteFailure(call->failure_);
  call->Complete();
}

void ProgramCollective::CopyOutputs(const hvd_result& result) {
  const auto* at = reinterpret_cast<const char*>(result.outputs);
  for (int32_t i = 0; i < result.output_count; ++i, at += result.outputs->struct_size) {
    const auto& output = *reinterpret_cast<const hvd_output*>(at);
    int64_t bytes = element_bytes_[i];
    for (int32_t d = 0; d < output.ndim; ++d) bytes *= output.shape[d];
    if (bytes != output_bytes_[i]) {
      failure_ = {HVD_MISMATCH,
                  "the ranks gave " + name_ +
                      " tensors of different sizes, which a compiled program cannot take: its "
                      "results have fixed shapes; call it outside of jit, or make the sizes equal"};
    } else if (bytes > 0) {
      std::memcpy(outputs_[i], output.data, bytes);
    }
    if (output.data != nullptr) runtime_.free(output.data);
  }
}

void ProgramCollective::Complete() {
  if (failure_.status == HVD_OK) {
    xla::FutureSetAvailableArgs args{sizeof(args), nullptr, future_};
    api_->future_set_available(&args);
    return;
  }
  xla::FutureSetErrorArgs args{sizeof(args), nullptr, future_, MakeError()};
  api_->future_set_error(&args);
}

xla::Error* ProgramCollective::MakeError() const {
  xla::ErrorCreateArgs args{sizeof(args), nullptr, failure_.sentence.c_str(),
                            CodeOf(failure_.status)};
  return api_->error_create(&args);
}

}  // namespace hvd::jax
