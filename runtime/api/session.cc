#include "runtime/api/session.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/segment/alive.h"

namespace hvd {
namespace {

constexpr int64_t kLookAgainNs = 100'000'000;
constexpr int64_t kLookSoonNs = 1'000'000;

// A whole number from the environment; nothing when it is unset, no number or out of range.
std::optional<long> NumberFromEnv(const char* name, long least, long most) {
  std::string text = GetEnv(name).value_or("");
  char* end = nullptr;
  long number = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < least || number > most) return std::nullopt;
  return number;
}

// The cores that the ranks of this host may use together: the affinity mask, not the machine. A launcher that binds each
// rank to its own cores hands the number down, since the mask is our part only.
uint32_t AllowedCores() {
  if (std::optional<long> told = NumberFromEnv("HVD_HOST_CORES", 1, 1'000'000)) {
    return static_cast<uint32_t>(*told);
  }
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

Duration StallWarning() {
  if (GetEnv("HOROVOD_STALL_CHECK_DISABLE").value_or("0") == "1") return Duration::zero();
  return std::chrono::seconds(
      NumberFromEnv("HOROVOD_STALL_CHECK_TIME_SECONDS", 0, 1'000'000).value_or(60));
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Open(World world, Bootstrap& bootstrap,
                                               SharedHeap& heap) {
  if (world.local_size != world.size) {
    bootstrap.Leave(world.epoch);
    return Unsupported("this world has " + std::to_string(world.size) +
                       " ranks on several hosts; " + "this release connects the ranks of one host");
  }
  return std::unique_ptr<Session>(new Session(std::move(world), bootstrap, heap));
}

Session::Session(World world, Bootstrap& bootstrap, SharedHeap& heap)
    : world_(std::move(world)),
      bootstrap_(bootstrap),
      peer_memory_(bootstrap.segments()),
      peers_(world_.page, world_.local_rank),
      backend_(world_.local_rank, world_.local_size, heap, peer_memory_),
      engine_(peers_, backend_,
              {ChooseWaitPolicy(world_.local_size, AllowedCores()), StallWarning()}) {
  RankBlock& block = world_.page.rank(world_.local_rank);
  block.pid.store(static_cast<uint32_t>(::getpid()), std::memory_order_relaxed);
  block.state.store(static_cast<uint32_t>(RankState::kIn), std::memory_order_release);
  if (bootstrap_.watched()) runtime_thread_ = std::thread([this] { RunRuntimeThread(); });
}

Session::~Session() {
  FailPending();
  RankBlock& block = world_.page.rank(world_.local_rank);
  block.state.store(static_cast<uint32_t>(RankState::kLeft), std::memory_order_release);
  peers_.WakeAll();
  stopping_.store(true, std::memory_order_release);
  Ring(block.runtime_bell);
  if (runtime_thread_.joinable()) runtime_thread_.join();
  bootstrap_.Leave(world_.epoch);
}

// Holds the mark by which our death is noticed, listens to the agent, and keeps peers from being held up by us.
void Session::RunRuntimeThread() {
  RankBlock& block = world_.page.rank(world_.local_rank);
  AliveMark alive;
  if (Status held = alive.Hold(block.alive); !held.ok()) LogWarning(held.message());
  block.runtime_bell.sleeping.store(1, std::memory_order_relaxed);
  while (!stopping_.load(std::memory_order_acquire)) {
    uint32_t word = block.runtime_bell.word.load(std::memory_order_acquire);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in Ring
    if (stopping_.load(std::memory_order_acquire)) break;
    if (Status agent = bootstrap_.Attend(); !agent.ok()) engine_.Close(agent.message());
    bool unsent = engine_.Tend();
    SleepOn(block.runtime_bell, word, unsent ? kLookSoonNs : kLookAgainNs);
  }
  alive.Release();
}

}  // namespace hvd
