#include "runtime/api/runtime.h"

#include <pthread.h>
#include <sched.h>

#include <optional>
#include <utility>

#include "runtime/api/engine_options.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/core/adopt_door.h"
#include "runtime/core/agent_bootstrap.h"
#include "runtime/core/launch_choice.h"
#include "runtime/core/refused_bootstrap.h"
#include "runtime/core/solo_bootstrap.h"

namespace hvd {
namespace {

std::unique_ptr<Bootstrap> ChooseBootstrap() {
  Result<LaunchChoice> choice = ChooseLaunch(GetEnv);
  if (!choice.ok()) return std::make_unique<RefusedBootstrap>(choice.status());
  if (auto* agent = std::get_if<AgentAddress>(&*choice))
    return std::make_unique<AgentBootstrap>(std::move(*agent));
  if (auto* rank = std::get_if<ForeignRank>(&*choice)) {
    return std::make_unique<AgentBootstrap>(
        std::make_unique<AdoptDoor>(std::move(*rank), GetEnv("HVD_HVDRUN").value_or("")));
  }
  return std::make_unique<SoloBootstrap>();
}

std::atomic<Runtime*> existing{nullptr};

std::string LogName() {
  std::optional<std::string> slot = GetEnv("HVD_SLOT");
  return slot ? "hvd slot " + *slot : "hvd";
}

}  // namespace

Runtime& Runtime::Get() {
  static Runtime* runtime = [] {
    SetLog(ParseLogLevel(GetEnv("HOROVOD_LOG_LEVEL").value_or(""), LogLevel::kWarning), LogName());
    auto* made = new Runtime(ChooseBootstrap());
    ::pthread_atfork([] { Get().PrepareFork(); }, [] { Get().AfterForkInParent(); },
                     [] { Get().AfterForkInChild(); });
    existing.store(made, std::memory_order_release);
    return made;
  }();
  return *runtime;
}

Runtime* Runtime::Existing() { return existing.load(std::memory_order_acquire); }

Runtime::Runtime(std::unique_ptr<Bootstrap> bootstrap)
    : bootstrap_(std::move(bootstrap)), heap_(bootstrap_->segments()) {}

Status Runtime::Init(const InitOptions& options) {
  std::lock_guard lock(mutex_);
  if (owned_ != nullptr) return Status::Ok();
  Result<EngineOptions> engine = EngineOptionsFromEnv();
  if (!engine.ok()) return engine.status();
  Result<World> world = bootstrap_->Join(options.timeout);
  if (!world.ok()) return world.status();
  Result<std::unique_ptr<Session>> session =
      Session::Open(std::move(*world), *bootstrap_, heap_, *engine);
  if (!session.ok()) return session.status();
  // Leaves the world again where a set cannot be.
  if (Status sets = (*session)->AddProcessSets(options.process_sets); !sets.ok()) return sets;
  owned_ = std::move(*session);
  session_.store(owned_.get(), std::memory_order_seq_cst);
  return Status::Ok();
}

void Runtime::Shutdown() {
  std::lock_guard lock(mutex_);
  if (owned_ == nullptr) return;
  session_.store(nullptr, std::memory_order_seq_cst);
  owned_->FailPending();
  while (users_.load(std::memory_order_seq_cst) != 0) ::sched_yield();
  owned_.reset();
}

// Nobody is inside the memory lists while the process is copied.
void Runtime::PrepareFork() {
  if (forked()) return;
  mutex_.lock();
  heap_.LockForFork();
  if (owned_ != nullptr) owned_->peer_memory().LockForFork();
}

void Runtime::AfterForkInParent() {
  if (!forked()) UnlockAfterFork();
}

void Runtime::UnlockAfterFork() {
  if (owned_ != nullptr) owned_->peer_memory().UnlockAfterFork();
  heap_.UnlockAfterFork();
  mutex_.unlock();
}

// The child keeps reading what it inherited, but in private memory, and says nothing to the agent.
void Runtime::AfterForkInChild() {
  if (forked()) return;
  heap_.MakePrivateAfterFork();
  if (owned_ != nullptr) {
    owned_->peer_memory().MakePrivateAfterFork();
    owned_->world().page_memory.MakePrivate(owned_->world().page_fd.get());
  }
  bootstrap_->CloseAfterFork();
  forked_.store(true, std::memory_order_relaxed);
  UnlockAfterFork();
}

}  // namespace hvd
