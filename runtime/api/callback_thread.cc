#include "runtime/api/callback_thread.h"

#include <chrono>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/api/translate.h"

namespace hvd {
namespace {

thread_local bool calling = false;

DoneCallback CallbackOf(const hvd_request& request) {
  return {reinterpret_cast<void (*)()>(request.on_done), request.on_done_arg};
}

}  // namespace

bool CallbackThread::IsCalling() { return calling; }

Status CallbackThread::Submit(const RequestSpec& spec, const hvd_request& request) {
  HVD_RETURN_IF_ERROR(Start());
  Result<Engine::Handle> handle = engine_.Submit(spec);
  if (!handle.ok()) return handle.status();
  if (request.on_done_wait_us > 0) {
    OperationResult result;
    const Status waited =
        engine_.Wait(*handle, std::chrono::microseconds(request.on_done_wait_us), &result);
    if (waited.code() != Code::kInProgress) {
      Call(CallbackOf(request), waited, std::move(result));
      return Status::Ok();
    }
  }
  engine_.SetCallback(*handle, CallbackOf(request));
  submitted_.fetch_add(1, std::memory_order_release);
  submitted_.notify_one();
  return Status::Ok();
}

Status CallbackThread::Start() {
  if (started_.load(std::memory_order_acquire)) return Status::Ok();
  MutexLock lock(mutex_);
  if (started_.load(std::memory_order_relaxed)) return Status::Ok();
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return {Code::kInternal,
            std::string("cannot start the thread that calls on_done: ") + error.what()};
  }
  started_.store(true, std::memory_order_release);
  return Status::Ok();
}

void CallbackThread::Stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  submitted_.fetch_add(1, std::memory_order_release);
  submitted_.notify_one();
  thread_.join();
}

void CallbackThread::Run() {
  for (;;) {
    const uint32_t seen = submitted_.load(std::memory_order_acquire);
    const bool last = stopping_.load(std::memory_order_acquire);
    while (std::optional<EndedOperation> ended = engine_.PopEnded())
      Call(ended->callback, ended->status, std::move(ended->result));
    if (last) return;
    submitted_.wait(seen, std::memory_order_acquire);
  }
}

void CallbackThread::Call(DoneCallback callback, const Status& status, OperationResult result) {
  const auto function = reinterpret_cast<hvd_done_function>(callback.function);
  const bool nested = std::exchange(calling, true);
  if (status.ok()) {
    std::vector<hvd_output> outputs(result.outputs.size());
    for (hvd_output& output : outputs) output.struct_size = sizeof output;
    std::vector<int64_t> splits(result.received_splits.size());
    hvd_result given{};
    given.struct_size = sizeof given;
    given.outputs = outputs.data();
    given.output_count = static_cast<int32_t>(outputs.size());
    given.received_splits = splits.data();
    given.received_splits_count = static_cast<int32_t>(splits.size());
    Store(std::move(result), heap_, &given);
    function(callback.arg, HVD_OK, "", &given);
  } else {
    function(callback.arg, static_cast<int32_t>(status.code()), status.message().c_str(), nullptr);
  }
  calling = nested;
}

}  // namespace hvd
