// The C ABI: finds the session, calls it, keeps the error text. No logic; `translate` reads and
// writes the structs.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/api/backend_list.h"
#include "runtime/api/callback_thread.h"
#include "runtime/api/from_python/runner.h"
#include "runtime/api/private_entries.h"
#include "runtime/api/runtime.h"
#include "runtime/api/translate.h"

namespace hvd {
namespace {

static_assert(static_cast<int>(Code::kOk) == HVD_OK);
static_assert(static_cast<int>(Code::kInProgress) == HVD_IN_PROGRESS);
static_assert(static_cast<int>(Code::kDuplicateName) == HVD_DUPLICATE_NAME);
static_assert(static_cast<int>(Code::kAborted) == HVD_ABORTED);
static_assert(static_cast<int>(Code::kForked) == HVD_FORKED);
static_assert(static_cast<int>(Code::kInternal) == HVD_INTERNAL);
static_assert(static_cast<int>(Code::kDismissed) == HVD_DISMISSED);
static_assert(static_cast<int>(kUpdateRemoved) == HVD_UPDATE_REMOVED);
static_assert(static_cast<int>(kUpdateAdded) == HVD_UPDATE_ADDED);
static_assert(static_cast<int>(kUpdateStop) == HVD_UPDATE_STOP);
static_assert(static_cast<int>(DType::kFloat8E5m2) == HVD_FLOAT8_E5M2);
static_assert(static_cast<int>(Collective::kJoin) == HVD_JOIN);
static_assert(static_cast<int>(ReduceOp::kProduct) == HVD_PRODUCT);

// True in a child forked from an initialised process, which has no runtime. A plain flag, so that
// the check costs nothing.
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

// A callback that shut down its own world would wait for itself.
Status CheckNotCalledBack(const char* function) {
  if (!CallbackThread::IsCalling()) return Status::Ok();
  return InvalidArgument(std::string(function) +
                         " was called by an on_done callback; call it in a thread of the program");
}

// Between worlds, handles of a world that was shut down are not the caller's error.
Status NoWorldFor(hvd_handle handle) {
  return Runtime::Get().IsOver(handle) ? WorldIsOver(handle) : NotInitialized();
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

// No exception (in practice, out of memory) leaves the library.
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

// A number that the engine knows; -1 when not initialised.
template <typename Body>
int32_t QueryEngine(Body body) noexcept {
  try {
    if (Runtime::Get().forked()) return -1;
    SessionRef session;
    return session ? body(session->engine()) : -1;
  } catch (...) {
    return -1;
  }
}

// Writes as many as fit and returns how many there are.
template <typename Number>
int32_t CopyOut(const std::vector<Number>& numbers, int32_t* place, int32_t capacity) {
  const auto room = static_cast<size_t>(place == nullptr ? 0 : std::max(0, capacity));
  std::copy_n(numbers.begin(), std::min(room, numbers.size()), place);
  return static_cast<int32_t>(numbers.size());
}

template <typename Field>
int32_t QuerySession(Field field) noexcept {
  if (Runtime::Get().forked()) return -1;
  SessionRef session;
  return session ? static_cast<int32_t>(field(*session)) : -1;
}

// Also valid in a forked child: the World never changes after it is created, and is in private
// memory.
template <typename Field>
int32_t Query(Field field) noexcept {
  SessionRef session;
  return session ? static_cast<int32_t>(field(session->world())) : -1;
}

const BackendRow* BackendOf(const char* feature) {
  return feature == nullptr ? nullptr : FindBackend(feature);
}

// The outputs of a wait that requested the result.
Status WaitForResult(Session& session, hvd_handle handle, int64_t timeout_ms, hvd_result* result) {
  OperationResult finished;
  Status waited = session.engine().Wait(handle, std::chrono::milliseconds(timeout_ms), &finished);
  if (waited.ok()) Store(std::move(finished), Runtime::Get().heap(), result);
  return waited;
}

Status WaitForSet(Session& session, Result<Engine::Handle> handle, OperationResult* result) {
  if (!handle.ok()) return handle.status();
  return session.engine().Wait(*handle, Duration(-1), result);
}

}  // namespace
}  // namespace hvd

using hvd::CopyOut;
using hvd::Engine;
using hvd::Guarded;
using hvd::Query;
using hvd::QueryEngine;
using hvd::QuerySession;
using hvd::Result;
using hvd::Runtime;
using hvd::Session;
using hvd::SessionRef;
using hvd::Status;
using hvd::World;

extern "C" {

int32_t hvd_abi_version(void) { return HVD_ABI_VERSION; }

const char* hvd_version_string(void) { return HVD_VERSION; }

const char* hvd_last_error(void) { return hvd::LastError().c_str(); }

const char* hvd_status_name(int32_t status) {
  static constexpr const char* kNames[] = {"HVD_OK",
                                           "HVD_IN_PROGRESS",
                                           "HVD_INVALID_ARGUMENT",
                                           "HVD_NOT_INITIALIZED",
                                           "HVD_DUPLICATE_NAME",
                                           "HVD_MISMATCH",
                                           "HVD_ABORTED",
                                           "HVD_UNSUPPORTED",
                                           "HVD_OUT_OF_MEMORY",
                                           "HVD_FORKED",
                                           "HVD_INTERNAL",
                                           "HVD_DISMISSED"};
  return status >= 0 && status <= HVD_DISMISSED ? kNames[status] : "unknown status";
}

int32_t hvd_built(const char* feature) {
  const hvd::BackendRow* backend = hvd::BackendOf(feature);
  return backend == nullptr ? 0 : backend->built();
}

int32_t hvd_enabled(const char* feature) {
  const hvd::BackendRow* backend = hvd::BackendOf(feature);
  return QuerySession([&](const Session& session) {
    return backend != nullptr && backend->used(session.backend_facts());
  });
}

int32_t hvd_init(const hvd_init_options* options) {
  return Guarded([&]() -> Status {
    HVD_RETURN_IF_ERROR(hvd::CheckNotCalledBack("hvd_init"));
    hvd::InitOptions read;
    HVD_RETURN_IF_ERROR(hvd::ReadInitOptions(options, &read));
    return Runtime::Get().Init(read);
  });
}

int32_t hvd_shutdown(void) {
  return Guarded([]() -> Status {
    HVD_RETURN_IF_ERROR(hvd::CheckNotCalledBack("hvd_shutdown"));
    Runtime::Get().Shutdown();
    return Status::Ok();
  });
}

int32_t hvd_give_up(void) {
  return Guarded([]() -> Status {
    if (SessionRef session; session) session->GiveUp();
    return Status::Ok();
  });
}

int32_t hvd_start_timeline(const char* path, int32_t mark_cycles) {
  return Guarded([&]() -> Status {
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    if (path == nullptr || *path == '\0') return hvd::InvalidArgument("the timeline has no path");
    return session->StartTimeline(path, mark_cycles != 0);
  });
}

int32_t hvd_stop_timeline(void) {
  return Guarded([]() -> Status {
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    session->StopTimeline();
    return Status::Ok();
  });
}

int32_t hvd_note_stacks(int32_t signal, int32_t fd) {
  return Guarded([=]() -> Status {
    if (signal < 0 || fd < 0)
      return hvd::InvalidArgument("hvd_note_stacks was given a negative number");
    const auto number = static_cast<uint32_t>(signal), file = static_cast<uint32_t>(fd);
    Runtime::Get().NoteStacks(number, file);
    SessionRef session;
    if (session) session->NoteStacks(number, file);
    return Status::Ok();
  });
}

int32_t hvd_note_step(void) {
  if (Runtime::Get().forked()) return HVD_OK;
  SessionRef session;
  if (session) session->engine().NoteStep();
  return HVD_OK;
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
int64_t hvd_generation(void) {
  SessionRef session;
  return session ? static_cast<int64_t>(session->world().generation) : -1;
}

int64_t hvd_epoch(void) { return hvd_generation(); }

int32_t hvd_elastic(void) {
  return Query([](const World& w) { return w.ranks_change ? 1 : 0; });
}

int32_t hvd_commit(int64_t timeout_ms, int32_t* update) {
  return Guarded([&]() -> Status {
    if (update == nullptr)
      return hvd::InvalidArgument("hvd_commit was called without a place for the answer");
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    Result<uint32_t> answer = session->commits().Commit(std::chrono::milliseconds(timeout_ms));
    if (!answer.ok()) return answer.status();
    session->engine().NoteCommit();
    *update = static_cast<int32_t>(*answer);
    return Status::Ok();
  });
}

int32_t hvd_update_pending(void) {
  return QuerySession([](const Session& session) { return session.commits().pending() ? 1 : 0; });
}

int32_t hvd_should_stop(void) {
  return QuerySession([](const Session& session) { return session.commits().stopping() ? 1 : 0; });
}

int64_t hvd_stop_grace_ms(void) {
  if (Runtime::Get().forked()) return -1;
  SessionRef session;
  if (!session || !session->commits().stopping()) return -1;
  return session->commits().stop_grace().count();
}

int32_t hvd_process_set_size(int32_t process_set) {
  return QueryEngine([&](Engine& e) { return e.ProcessSetSize(process_set); });
}
int32_t hvd_process_set_rank(int32_t process_set) {
  return QueryEngine([&](Engine& e) { return e.ProcessSetRank(process_set); });
}

int32_t hvd_add_process_set(const int32_t* ranks, int32_t count, int32_t* id) {
  return Guarded([&]() -> Status {
    if (id == nullptr || count < 0 || (ranks == nullptr && count > 0)) {
      return hvd::InvalidArgument(
          "hvd_add_process_set was called without ranks or a place for the id");
    }
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    const std::vector<uint32_t> members(ranks, ranks + count);
    hvd::OperationResult result;
    Status added =
        hvd::WaitForSet(*session, session->engine().SubmitAddProcessSet(members), &result);
    if (added.ok()) *id = result.process_set;
    return added;
  });
}

int32_t hvd_remove_process_set(int32_t id) {
  return Guarded([&]() -> Status {
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    return hvd::WaitForSet(*session, session->engine().SubmitRemoveProcessSet(id), nullptr);
  });
}

int32_t hvd_process_set_ids(int32_t* ids, int32_t capacity) {
  return QueryEngine([&](Engine& e) { return CopyOut(e.ProcessSetIds(), ids, capacity); });
}

int32_t hvd_process_set_ranks(int32_t id, int32_t* ranks, int32_t capacity) {
  return QueryEngine([&](Engine& e) {
    std::optional<std::vector<uint32_t>> members = e.ProcessSetRanks(id);
    return members ? CopyOut(*members, ranks, capacity) : -1;
  });
}

int32_t hvd_submit(const hvd_request* request, hvd_handle* handle) {
  return Guarded([&]() -> Status {
    const bool calls_back = hvd::HasCallback(request);
    if (handle == nullptr && !calls_back)
      return hvd::InvalidArgument("hvd_submit was called without a place for the handle");
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    hvd::RequestSpec spec;
    hvd::RequestMemory memory;
    HVD_RETURN_IF_ERROR(hvd::ReadRequest(request, &memory, &spec));
    if (calls_back) {
      if (handle != nullptr) *handle = 0;
      return session->callbacks().Submit(spec, *request);
    }
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
    if (!session && Runtime::Get().IsOver(handle)) {
      *done = 1;
      return Status::Ok();
    }
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
    if (!session) return hvd::NoWorldFor(handle);
    return session->engine().Wait(handle, std::chrono::milliseconds(timeout_ms));
  });
}

int32_t hvd_wait_us(hvd_handle handle, int64_t timeout_us) {
  return Guarded([&]() -> Status {
    SessionRef session;
    if (!session) return hvd::NoWorldFor(handle);
    return session->engine().Wait(handle, std::chrono::microseconds(timeout_us));
  });
}

int32_t hvd_wait_result(hvd_handle handle, int64_t timeout_ms, hvd_result* result) {
  return Guarded([&]() -> Status {
    HVD_RETURN_IF_ERROR(hvd::CheckResult(result));
    SessionRef session;
    if (!session) return hvd::NoWorldFor(handle);
    return hvd::WaitForResult(*session, handle, timeout_ms, result);
  });
}

int32_t hvd_run_for(const hvd_request* request, int64_t timeout_ms, hvd_handle* handle) {
  return Guarded([&]() -> Status {
    if (handle != nullptr) *handle = 0;
    if (handle == nullptr && timeout_ms >= 0)
      return hvd::InvalidArgument(
          "hvd_run_for was called with a limit and without a place for the handle");
    if (hvd::HasCallback(request))
      return hvd::InvalidArgument("on_done is for hvd_submit; hvd_run and hvd_run_for wait");
    SessionRef session;
    if (!session) return hvd::NotInitialized();
    hvd::RequestSpec spec;
    hvd::RequestMemory memory;
    HVD_RETURN_IF_ERROR(hvd::ReadRequest(request, &memory, &spec));
    return session->engine().Run(spec, std::chrono::milliseconds(timeout_ms), handle);
  });
}

int32_t hvd_run(const hvd_request* request) { return hvd_run_for(request, -1, nullptr); }

void* hvd_python_runner(void* tensor_type, int32_t collective, const char* operation,
                        int64_t slice_ms) {
  PyObject* runner = nullptr;
  Guarded([&]() -> Status {
    runner =
        hvd::MakeRunner(static_cast<PyObject*>(tensor_type), {collective, operation, slice_ms});
    return Status::Ok();
  });
  return runner;
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

// A process that exits without hvd_shutdown() still says goodbye, so that its exit is not taken for
// a death.
__attribute__((destructor)) static void LeaveAtExit() {
  Runtime* runtime = Runtime::Existing();
  if (runtime != nullptr && !runtime->forked()) runtime->Shutdown();
}
