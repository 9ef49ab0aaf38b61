#include "runtime/api/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <optional>
#include <string>
#include <utility>

#include "runtime/api/engine_options.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/launcher_detection.h"

namespace hvd {
namespace {

std::atomic<Runtime*> existing{nullptr};

std::string LogName() {
  std::optional<std::string> slot = GetEnv("HVD_SLOT");
  return slot ? "hvd slot " + *slot : "hvd";
}

void LeaveBeforeFinalize() { Runtime::Get().Shutdown(); }

void FinishAtExit(int code, void*) { Runtime::Get().Finish(code); }

// The agents of hvdrun tune; agents that adopt ranks have no job settings.
void WarnOfAutotune(const World& world) {
  if (world.rank != 0 || GetEnv("HOROVOD_AUTOTUNE") != "1" || GetEnv("HVD_AGENT")) return;
  LogWarning(
      "HOROVOD_AUTOTUNE has no effect, because hvdrun did not start these ranks; "
      "'hvdrun --autotune -np 2 python train.py' tunes a job");
}

// Renews the environment variables from which scripts and other libraries read their rank and the
// size of the world, in an elastic world; in other worlds they stay as the launcher set them. Only
// variables that change are touched. The launcher sets all of them at the start, so that setenv
// does not reallocate the environment while another thread reads it.
void RenewEnvironment(const World& world) {
  if (!world.ranks_change) return;
  const struct {
    const char* name;
    uint32_t value;
  } variables[] = {
      {"HOROVOD_RANK", world.rank},
      {"HOROVOD_SIZE", world.size},
      {"HOROVOD_LOCAL_RANK", world.local_rank},
      {"HOROVOD_LOCAL_SIZE", world.local_size},
      {"HOROVOD_CROSS_RANK", world.cross_rank},
      {"HOROVOD_CROSS_SIZE", world.cross_size},
  };
  for (const auto& variable : variables) {
    const std::string value = std::to_string(variable.value);
    if (GetEnv(variable.name) != value) (void)::setenv(variable.name, value.c_str(), 1);
  }
}

}  // namespace

Runtime& Runtime::Get() {
  static Runtime* runtime = [] {
    SetLog(
        {ParseLogLevel(GetEnv("HOROVOD_LOG_LEVEL").value_or(""), LogLevel::kWarning), LogName()});
    auto* made = new Runtime;
    ::pthread_atfork([] { Get().PrepareFork(); }, [] { Get().AfterForkInParent(); },
                     [] { Get().AfterForkInChild(); });
    existing.store(made, std::memory_order_release);
    return made;
  }();
  return *runtime;
}

Runtime* Runtime::Existing() { return existing.load(std::memory_order_acquire); }

Runtime::Runtime()
    : joiner_(DetectLaunch(GetEnv), {&LeaveBeforeFinalize, &FinishAtExit}),
      heap_(joiner_.segments()) {}

Status Runtime::Init(const InitOptions& options) {
  MutexLock lock(mutex_);
  if (owned_ != nullptr) return Status::Ok();
  Result<EngineOptions> engine = EngineOptionsFromEnv();
  if (!engine.ok()) return engine.status();
  for (;;) {
    Status opened = OpenSession(options, *engine);
    if (opened.code() != Code::kInProgress) return opened;
    LogInfo(opened.message() + "; joining the next one");
  }
}

Status Runtime::OpenSession(const InitOptions& options, EngineOptions engine) {
  engine.handles_given = handles_given_.load(std::memory_order_relaxed);
  joiner_.Update(DetectLaunch(GetEnv));
  Result<Membership> member = joiner_.Join(options);
  if (member.status().code() == Code::kDismissed)
    LogInfo("the job goes on without this process: " + member.status().message());
  if (!member.ok()) return member.status();
  // Every rank of the last world has left it, or its process is gone (SEGMENT.md, Fencing).
  if (member->world.ranks_change) heap_.ReclaimWorld();
  Result<std::unique_ptr<Session>> session =
      Session::Open(std::move(*member), joiner_.bootstrap(), heap_, engine);
  if (!session.ok()) return session.status();
  (*session)->NoteStacks(stack_signal_.load(std::memory_order_relaxed),
                         stack_fd_.load(std::memory_order_relaxed));
  {
    MutexLock state(state_);
    owned_ = std::move(*session);
  }
  Status sets = owned_->AddProcessSets(options.process_sets);
  // Leaves the world again if a process set cannot be added.
  if (!sets.ok()) {
    CloseSession();
    return sets;
  }
  RenewEnvironment(owned_->world());
  WarnOfAutotune(owned_->world());
  session_.store(owned_.get(), std::memory_order_seq_cst);
  return Status::Ok();
}

void Runtime::Shutdown() {
  if (forked() || CallbackThread::IsCalling()) return;  // exit() inside a callback
  MutexLock lock(mutex_);
  if (owned_ == nullptr) return;
  session_.store(nullptr, std::memory_order_seq_cst);
  owned_->FailPending();
  while (users_.load(std::memory_order_seq_cst) != 0) ::sched_yield();
  // Without state_, which a fork acquires: a callback may wait for the thread that forks.
  owned_->callbacks().Stop();
  CloseSession();
}

void Runtime::CloseSession() {
  MutexLock state(state_);
  const std::string failure = joiner_.uses_mpi() ? owned_->Failure() : "";
  handles_given_.store(owned_->engine().handles_given(), std::memory_order_release);
  owned_.reset();
  if (!failure.empty()) joiner_.NoteFailure(failure);
}

void Runtime::Finish(int code) {
  if (forked()) return;
  Shutdown();
  MutexLock lock(mutex_);
  joiner_.Finish(code);
}

// No thread is inside the memory lists while the process is copied.
void Runtime::PrepareFork() {
  if (forked()) return;
  state_.lock();
  joiner_.LockForFork();
  heap_.LockForFork();
  if (owned_ != nullptr) owned_->peer_memory().LockForFork();
}

void Runtime::AfterForkInParent() {
  if (!forked()) UnlockAfterFork();
}

void Runtime::UnlockAfterFork() {
  if (owned_ != nullptr) owned_->peer_memory().UnlockAfterFork();
  heap_.UnlockAfterFork();
  joiner_.UnlockAfterFork();
  state_.unlock();
}

// The child can still read the memory it inherited, but as private memory, and does not report to
// the agent.
void Runtime::AfterForkInChild() {
  if (forked()) return;
  heap_.MakePrivateAfterFork();
  if (owned_ != nullptr) {
    owned_->peer_memory().MakePrivateAfterFork();
    owned_->world().page_memory.MakePrivate(owned_->world().page_fd.get());
  }
  joiner_.CloseAfterFork();
  forked_.store(true, std::memory_order_relaxed);
  UnlockAfterFork();
}

}  // namespace hvd
