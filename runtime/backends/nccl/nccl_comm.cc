#include "runtime/backends/nccl/nccl_comm.h"

#include <optional>
#include <utility>

#include "runtime/backends/nccl/nccl_features.h"
#include "runtime/backends/nccl/nccl_id.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::string Seconds(Duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count() / 100;
  return Format("{}.{} s", tenths / 10, tenths % 10);
}

}  // namespace

NcclComm::NcclComm(const NcclLibrary& library, KvStore& store, NcclCommOptions options,
                   TimePoint now)
    : library_(library),
      options_(std::move(options)),
      store_(store),
      deadline_(now + options_.start_limit) {}

std::unique_ptr<NcclComm> NcclComm::Begin(const NcclLibrary& library, KvStore& store,
                                          NcclCommOptions options, TimePoint now) {
  return std::unique_ptr<NcclComm>(new NcclComm(library, store, std::move(options), now));
}

NcclComm::~NcclComm() {
  (void)Abort(Aborted(NameOf(options_.member) + ": the communicator was dropped before its end"));
}

Result<bool> NcclComm::Advance(TimePoint now) {
  HVD_RETURN_IF_ERROR(AdvanceId());
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  const Result<bool> done = AdvanceStage();
  if (!done.ok() || *done || now < deadline_) return done;
  return Fail(Aborted(NameOf(options_.member) + ": " + Late()));
}

// The store may block, so the mutex is not held meanwhile.
Status NcclComm::AdvanceId() {
  {
    MutexLock lock(mutex_);
    if (stage_ != Stage::kId || !failure_.ok()) return failure_;
  }
  const Result<std::optional<NcclUniqueId>> id =
      ObtainNcclId(library_.api, options_.member, store_, options_.key, options_.store_wait);
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (!id.ok()) return Fail(id.status());
  if (!id->has_value()) return Status::Ok();
  NcclConfig config;
  const auto& init = library_.api.comm_init_rank_config;
  const NcclAnswer answer{init.symbol, init(&handle_, static_cast<int>(options_.member.size), **id,
                                            static_cast<int>(options_.member.index), &config)};
  stage_ = Stage::kInit;
  return Check(answer);
}

Result<bool> NcclComm::AdvanceStage() {
  switch (stage_) {
    case Stage::kId: return false;
    case Stage::kInit: {
      const Result<bool> done = AskForErrors();
      if (done.ok() && *done) stage_ = Stage::kReady;
      return done;
    }
    case Stage::kFinalize: {
      const Result<bool> done = AskForErrors();
      if (!done.ok() || !*done) return done;
      const auto& destroy = library_.api.comm_destroy;
      stage_ = Stage::kClosed;
      const NcclAnswer answer{destroy.symbol, destroy(std::exchange(handle_, nullptr))};
      HVD_RETURN_IF_ERROR(Check(answer));
      return true;
    }
    case Stage::kReady:
    case Stage::kClosed: return true;
  }
  return false;
}

Result<bool> NcclComm::AskForErrors() {
  NcclResult error = kNcclSuccess;
  const auto& ask = library_.api.comm_get_async_error;
  HVD_RETURN_IF_ERROR(Check({ask.symbol, ask(handle_, &error)}));
  if (error == kNcclInProgress) return false;
  HVD_RETURN_IF_ERROR(Check({ask.symbol, error}));
  return true;
}

Status NcclComm::Use(
    const std::function<NcclAnswer(const NcclApi& api, NcclCommHandle comm)>& calls) {
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(NotReady());
  return Check(calls(library_.api, handle_));
}

Result<bool> NcclComm::Settled() {
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(NotReady());
  return AskForErrors();
}

Status NcclComm::Watch() {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  return stage_ == Stage::kReady ? AskForErrors().status() : Status::Ok();
}

Status NcclComm::Register(void* memory, size_t bytes) {
  HVD_RETURN_IF_ERROR(CheckNcclFeature(library_, NcclFeature::kRegister));
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(NotReady());
  void* registration = nullptr;
  const auto& call = library_.api.comm_register;
  Status status = Check({call.symbol, call(handle_, memory, bytes, &registration)});
  // Null: NCCL decided that registration does not help here.
  if (status.ok() && registration != nullptr) registered_.push_back(registration);
  return status;
}

Status NcclComm::Close(TimePoint now) {
  MutexLock lock(mutex_);
  if (failure_.ok() && stage_ == Stage::kClosed) return Status::Ok();
  HVD_RETURN_IF_ERROR(NotReady());
  const NcclApi& api = library_.api;
  for (void* registration : std::exchange(registered_, {})) {
    Status status = Check({api.comm_deregister.symbol, api.comm_deregister(handle_, registration)});
    if (!status.ok()) return status;
  }
  stage_ = Stage::kFinalize;
  deadline_ = now + options_.close_limit;
  return Check({api.comm_finalize.symbol, api.comm_finalize(handle_)});
}

Status NcclComm::Abort(const Status& why) {
  MutexLock lock(mutex_);
  if (stage_ == Stage::kClosed) return Status::Ok();
  if (failure_.ok()) failure_ = why;
  stage_ = Stage::kClosed;
  return AbortHandle();
}

Status NcclComm::AbortHandle() {
  registered_.clear();
  NcclCommHandle handle = std::exchange(handle_, nullptr);
  if (handle == nullptr) return Status::Ok();
  const NcclAnswer answer{library_.api.comm_abort.symbol, library_.api.comm_abort(handle)};
  if (!answer.failed()) return Status::Ok();
  return NcclFailure(library_.api, options_.member, answer, nullptr);
}

Status NcclComm::Check(const NcclAnswer& answer) {
  if (!answer.failed()) return Status::Ok();
  return Fail(NcclFailure(library_.api, options_.member, answer, handle_));
}

Status NcclComm::Fail(Status failure) {
  if (failure_.ok()) failure_ = std::move(failure);
  return failure_;
}

Status NcclComm::NotReady() const {
  if (!failure_.ok()) return failure_;
  if (stage_ == Stage::kReady) return Status::Ok();
  return Internal(NameOf(options_.member) + ": the communicator of NCCL is used " +
                  (stage_ == Stage::kFinalize || stage_ == Stage::kClosed ? "after its end"
                                                                          : "before it is ready"));
}

std::string NcclComm::Late() const {
  switch (stage_) {
    case Stage::kId:
      return "member 0 has put no id of NCCL under '" + options_.key + "' within " +
             Seconds(options_.start_limit) + "; look whether it lives and has a GPU";
    case Stage::kInit:
      return Format(
          "ncclCommInitRankConfig has not ended within {}: some of the {} members have not come or "
          "cannot reach each other; look at the others, and at NCCL_SOCKET_IFNAME",
          Seconds(options_.start_limit), options_.member.size);
    default:
      return "ncclCommFinalize has not ended within " + Seconds(options_.close_limit) +
             ": a member has not closed the communicator or has work under way; look at the others";
  }
}

}  // namespace hvd
