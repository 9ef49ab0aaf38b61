#include "runtime/net/mesh/mesh_resolver.h"

#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr std::string_view kKeyPrefix = "mesh.";

// Time for one lookup; then it is the next peer's turn.
constexpr Duration kTurn = std::chrono::milliseconds(100);

}  // namespace

std::string MeshKvKey(uint32_t rank) { return std::string(kKeyPrefix) + std::to_string(rank); }

std::optional<uint32_t> RankOfMeshKey(std::string_view key) {
  if (!key.starts_with(kKeyPrefix)) return std::nullopt;
  const auto rank = ParseWhole<uint32_t>(key.substr(kKeyPrefix.size()));
  return rank && MeshKvKey(*rank) == key ? rank : std::nullopt;
}

void MeshResolver::Ask(uint32_t rank, TimePoint deadline) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  questions_.push_back({rank, deadline});
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_one();
}

void MeshResolver::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void MeshResolver::Run() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() HVD_REQUIRES(mutex_) { return stopping_ || !questions_.empty(); });
    if (stopping_) return;
    Question question = questions_.front();
    questions_.pop_front();
    lock.unlock();
    bool answered = TryOne(question);
    lock.lock();
    if (!answered) questions_.push_back(question);
  }
}

bool MeshResolver::TryOne(const Question& question) {
  Result<std::string> text = directory_.Get(MeshKvKey(question.rank), kTurn);
  if (!text.ok() && text.status().code() == Code::kInProgress) {
    if (SteadyNow() < question.deadline) return false;
    answer_(question.rank, Aborted(Format("rank {} has not said in time where it listens; it has "
                                          "not come as far as this rank, or it hangs",
                                          question.rank)));
    return true;
  }
  answer_(question.rank, text.ok() ? DecodeMeshRecord(*text) : Result<MeshRecord>(text.status()));
  return true;
}

}  // namespace hvd
