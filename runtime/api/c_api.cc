// The C ABI: checks arguments, turns C structs into the engine's types, keeps the error text. No logic.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "hvd/hvd.h"
#include "runtime/api/runtime.h"

namespace hvd {
namespace {

static_assert(static_cast<int>(Code::kOk) == HVD_OK);
static_assert(static_cast<int>(Code::kInProgress) == HVD_IN_PROGRESS);
static_assert(static_cast<int>(Code::kDuplicateName) == HVD_DUPLICATE_NAME);
static_assert(static_cast<int>(Code::kAborted) == HVD_ABORTED);
static_assert(static_cast<int>(Code::kForked) == HVD_FORKED);
static_assert(static_cast<int>(Code::kInternal) == HVD_INTERNAL);
static_assert(static_cast<int>(DType::kFloat8E5m2) == HVD_FLOAT8_E5M2);
static_assert(static_cast<int>(Collective::kJoin) == HVD_JOIN);
static_assert(static_cast<int>(ReduceOp::kProduct) == HVD_PRODUCT);

// A child forked from an initialised process has no runtime; a plain flag, so that the check costs nothing.
Status CheckNotForked() {
  if (!Runtime::Get().forked()) return Status::Ok();
  return {
      Code::kForked,
      "this process was forked from one that uses horovod, and holds nothing of its world; call "
      "collectives in the process that called hvd.init(), or start workers with 'spawn'"};
}

Status NotInitialized() {
  return {Code::kNotInitialized,
          "Horovod has not been initialized on this rank; call hvd.init() first"};
}

std::string& LastError() {
  thread_local std::string text;
  return text;
}

int32_t Report(const Status& status) {
  if (status.ok()) return HVD_OK;
  if (status.code() != Code::kInProgress) LastError() = status.message();
  return static_cast<int32_t>(status.code());
}

// Nothing that throws (memory, in practice) leaves the library.
template <typename Body>
int32_t Guarded(Body body) noexcept {
  try {
    if (Status forked = CheckNotForked(); !forked.ok()) return Report(forked);
    return Report(body());
  } catch (const std::bad_alloc&) {
    return HVD_OUT_OF_MEMORY;
  } catch (...) {
    return HVD_INTERNAL;
  }
}

template <typename Field>
int32_t Query(Field field) noexcept {
  if (Runtime::Get().forked()) return -1;
  SessionRef session;
  return session ? static_cast<int32_t>(field(session->world())) : -1;
}

// Turns a request of the ABI into the engine's; views stay views.
Status Translate(const hvd_request* request, std::string* made_name, RequestSpec* spec) {
  if (request == nullptr) return InvalidArgument("hvd_submit was called without a request");
  if (request->struct_size < sizeof(hvd_request)) {
    return InvalidArgument("the request has " + std::to_string(request->struct_size) +
                           " bytes, fewer than version 1 of hvd.h; rebuild the caller");
  }
  if (request->collective < 0 || request->collective > HVD_JOIN) {
    return InvalidArgument("unknown collective " + std::to_string(request->collective));
  }
  if (request->reduce_op < 0 || request->reduce_op > HVD_PRODUCT) {
    return InvalidArgument("unknown reduce operation " + std::to_string(request->reduce_op));
  }
  spec->collective = static_cast<Collective>(request->collective);
  spec->op = static_cast<ReduceOp>(request->reduce_op);
  spec->root = static_cast<uint32_t>(request->root_rank);
  spec->process_set = request->process_set;
  spec->prescale = request->prescale;
  spec->postscale = request->postscale;
  if (request->name != nullptr) {
    spec->name = request->name;
  } else {
    *made_name = std::string(NameOf(spec->collective)) + ".noname." +
                 std::to_string(Runtime::Get().NextUnnamed());
    spec->name = *made_name;
  }
  const hvd_tensor* tensor = request->tensor;
  if (tensor == nullptr) {
    if (spec->collective == Collective::kBarrier) return Status::Ok();
    return InvalidArgument("'" + std::string(spec->name) + "' was submitted without a tensor");
  }
  if (tensor->struct_size < sizeof(hvd_tensor)) {
    return InvalidArgument("the tensor struct has " + std::to_string(tensor->struct_size) +
                           " bytes, fewer than version 1 of hvd.h; rebuild the caller");
  }
  if (tensor->dtype < 0 || tensor->dtype >= kDTypeCount) {
    return InvalidArgument("unknown element type " + std::to_string(tensor->dtype));
  }
  if (tensor->ndim < 0 || (tensor->ndim > 0 && tensor->shape == nullptr)) {
    return InvalidArgument("tensor '" + std::string(spec->name) + "' has no usable shape");
  }
  spec->dtype = static_cast<DType>(tensor->dtype);
  spec->input = tensor->input;
  spec->output = tensor->output;
  spec->shape = {tensor->shape, static_cast<size_t>(tensor->ndim)};
  spec->device = tensor->device_kind == HVD_DEVICE_HOST ? DeviceKind::kHost : DeviceKind::kCuda;
  return Status::Ok();
}

}  // namespace
}  // namespace hvd

using hvd::Guarded;
using hvd::Query;
using hvd::Result;
using hvd::Runtime;
using hvd::SessionRef;
using hvd::Status;
using hvd::World;

extern "C" {

int32_t hvd_abi_version(void) { return HVD_ABI_VERSION; }

const char* hvd_version_string(void) { return HVD_VERSION; }

const char* hvd_last_error(void) { return hvd::LastError().c_str(); }

const char* hvd_status_name(int32_t status) {
  static const char* const kNames[] = {"HVD_OK",
                                       "HVD_IN_PROGRESS",
                                       "HVD_INVALID_ARGUMENT",
                                       "HVD_NOT_INITIALIZED",
                                       "HVD_DUPLICATE_NAME",
                                       "HVD_MISMATCH",
                                       "HVD_ABORTED",
                                       "HVD_UNSUPPORTED",
                                       "HVD_OUT_OF_MEMORY",
                                       "HVD_FORKED",
                                       "HVD_INTERNAL"};
  return status >= 0 && status <= HVD_INTERNAL ? kNames[status] : "unknown status";
}

int32_t hvd_built(const char* feature) {
  return feature != nullptr && std::strcmp(feature, "shm") == 0 ? 1 : 0;
}

int32_t hvd_init(const hvd_init_options* options) {
  return Guarded([&]() -> Status {
    int64_t timeout_ms = 0;
    if (options != nullptr) {
      if (options->struct_size < sizeof(hvd_init_options)) {
        return hvd::InvalidArgument(
            "the options of hvd_init are of an unknown version; rebuild the caller");
      }
      timeout_ms = options->timeout_ms;
    }
    return Runtime::Get().Init(std::chrono::milliseconds(timeout_ms));
  });
}

int32_t hvd_shutdown(void) {
  return Guarded([]() -> Status {
    Runtime::Get().Shutdown();
    return Status::Ok();
  });
}

int32_t hvd_is_initialized(void) {
  return Query([](const World&) { return 1; }) == 1 ? 1 : 0;
}

int32_t hvd_rank(void) {
  return Query([](const World& w) { return w.rank; });
}
int32_t hvd_size(void) {
  return Query([](const World& w) { return w.size; });
}
int32_t hvd_local_rank(void) {
  return Query([](const World& w) { return w.local_rank; });
}
int32_t hvd_local_size(void) {
  return Query([](const World& w) { return w.local_size; });
}
int32_t hvd_cross_rank(void) {
  return Query([](const World& w) { return w.cross_rank; });
}
int32_t hvd_cross_size(void) {
  return Query([](const World& w) { return w.cross_size; });
}
int32_t hvd_is_homogeneous(void) {
  return Query([](const World& w) { return w.homogeneous ? 1 : 0; });
}
int64_t hvd_epoch(void) {
  if (Runtime::Get().forked()) return -1;
  SessionRef session;
  return session ? static_cast<int64_t>(session->world().epoch) : -1;
}

int32_t hvd_process_set_size(int32_t process_set) { return process_set == 0 ? hvd_size() : -1; }
int32_t hvd_process_set_rank(int32_t process_set) { return process_set == 0 ? hvd_rank() : -1; }

int32_t hvd_submit(const hvd_request* request, hvd_handle* handle) {
  return Guarded([&]() -> Status {
    if (handle == nullptr)
      return hvd::InvalidArgument("hvd_submit was called without a place for the handle");
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    hvd::RequestSpec spec;
    std::string made_name;
    if (Status bad = hvd::Translate(request, &made_name, &spec); !bad.ok()) return bad;
    Result<hvd_handle> submitted = session->engine().Submit(spec);
    if (!submitted.ok()) return submitted.status();
    *handle = *submitted;
    return Status::Ok();
  });
}

int32_t hvd_poll(hvd_handle handle, int32_t* done) {
  return Guarded([&]() -> Status {
    if (done == nullptr)
      return hvd::InvalidArgument("hvd_poll was called without a place for the answer");
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    Result<bool> polled = session->engine().Poll(handle);
    if (!polled.ok()) return polled.status();
    *done = *polled ? 1 : 0;
    return Status::Ok();
  });
}

int32_t hvd_wait(hvd_handle handle, int64_t timeout_ms) {
  return Guarded([&]() -> Status {
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    return session->engine().Wait(handle, std::chrono::milliseconds(timeout_ms));
  });
}

int32_t hvd_run(const hvd_request* request) {
  return Guarded([&]() -> Status {
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    hvd::RequestSpec spec;
    std::string made_name;
    if (Status bad = hvd::Translate(request, &made_name, &spec); !bad.ok()) return bad;
    return session->engine().Run(spec);
  });
}

void* hvd_alloc(size_t bytes) {
  void* memory = nullptr;
  int32_t status = Guarded([&]() -> Status {
    Status why;
    memory = Runtime::Get().heap().Allocate(bytes, /*zeroed=*/true, &why);
    return memory == nullptr ? why : Status::Ok();
  });
  return status == HVD_OK ? memory : nullptr;
}

int32_t hvd_free(void* memory) {
  return Guarded([&]() -> Status {
    if (memory == nullptr || Runtime::Get().heap().Free(memory)) return Status::Ok();
    return hvd::InvalidArgument("hvd_free was given memory that hvd_alloc did not give, or twice");
  });
}

int32_t hvd_is_registered(const void* memory, size_t bytes) {
  if (Runtime::Get().forked()) return 0;
  return Runtime::Get().heap().Locate(memory, bytes).has_value() ? 1 : 0;
}

}  // extern "C"

// A process that ends without hvd_shutdown() still says goodbye, so that its end is not taken for a death.
__attribute__((destructor)) static void LeaveAtExit() {
  Runtime* runtime = Runtime::Existing();
  if (runtime != nullptr && !runtime->forked()) runtime->Shutdown();
}
