#include "launcher/reach_proof.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "runtime/net/mesh.h"

namespace hvd {
namespace {

constexpr uint32_t kAllPairs = 16;  // up to so many hosts everybody proves everybody
constexpr Duration kConnectLimit = std::chrono::seconds(10);
constexpr Duration kLimit = std::chrono::seconds(20);
constexpr Duration kTurn = std::chrono::milliseconds(100);
constexpr MeshTag kHello{1, 0};

// Short enough for one line of a report.
std::string FirstTroubles(const std::vector<std::string>& troubles) {
  constexpr size_t kMost = 3;
  std::string text;
  for (size_t i = 0; i < std::min(troubles.size(), kMost); ++i)
    text += (text.empty() ? "" : "; ") + troubles[i];
  if (troubles.size() > kMost) text += "; and " + std::to_string(troubles.size() - kMost) + " more";
  return text;
}

}  // namespace

std::vector<uint32_t> ProofPartners(uint32_t host, uint32_t hosts) {
  std::vector<uint32_t> partners;
  if (hosts <= kAllPairs) {
    for (uint32_t other = 0; other < hosts; ++other) {
      if (other != host) partners.push_back(other);
    }
    return partners;
  }
  for (uint32_t step = 1; step <= hosts / 2; step *= 2) {
    partners.push_back((host + step) % hosts);
    partners.push_back((host + hosts - step) % hosts);
  }
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  return partners;
}

ReachProof::ReachProof(ProveReach question, Owner owner)
    : question_(std::move(question)), owner_(std::move(owner)), thread_([this] { Run(); }) {}

ReachProof::~ReachProof() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ReachProof::GiveValue(const std::string& key, const std::string& value) {
  {
    std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
}

Status ReachProof::Put(const std::string& key, const std::string& value) {
  owner_.put(key, value);
  return Status::Ok();
}

Result<std::string> ReachProof::Get(const std::string& key, Duration timeout) {
  std::unique_lock lock(mutex_);
  if (auto [entry, asked] = values_.try_emplace(key, ""); asked) owner_.want(key);
  changed_.wait_for(lock, timeout, [&] { return stopping_ || !values_[key].empty(); });
  if (stopping_) return Aborted("the host gave up");
  if (values_[key].empty()) return Status(Code::kInProgress, "not known yet");
  return values_[key];
}

bool ReachProof::stopping() {
  std::lock_guard lock(mutex_);
  return stopping_;
}

void ReachProof::Run() {
  ReachProven answer = Prove();
  if (!stopping()) owner_.done(std::move(answer));
}

ReachProven ReachProof::Prove() {
  MeshOptions options;
  options.rank = question_.host;
  options.job_key = question_.job_key;
  options.connect_timeout = kConnectLimit;
  options.listen = {{}, question_.first_port, question_.last_port};
  Result<std::vector<std::string>> addresses = AddressesOfInterfaces(question_.interfaces);
  if (!addresses.ok()) return {addresses.status().message(), {}};
  options.listen.addresses = std::move(*addresses);
  options.name = [this](uint32_t host) {
    auto at = std::find(question_.others.begin(), question_.others.end(), host);
    auto index = static_cast<size_t>(at - question_.others.begin());
    return index < question_.names.size() ? question_.names[index] : std::string("it");
  };
  Result<std::unique_ptr<Mesh>> mesh = Mesh::Open(std::move(options), *this);
  if (!mesh.ok()) return {mesh.status().message(), {}};

  std::array<std::byte, 1> word{}, heard{};
  std::vector<MeshHandle> out, in;
  for (uint32_t other : question_.others) {
    out.push_back((*mesh)->Send(other, kHello, word));
    in.push_back((*mesh)->Receive(other, kHello, heard));
  }
  const TimePoint deadline = SteadyNow() + kLimit;
  std::vector<std::string> troubles;
  for (size_t i = 0; i < out.size(); ++i) {
    for (MeshHandle* handle : {&out[i], &in[i]}) {
      Status status;
      do {
        status = (*mesh)->Wait(*handle, std::min(deadline, SteadyNow() + kTurn));
      } while (status.code() == Code::kInProgress && SteadyNow() < deadline && !stopping());
      if (status.ok()) continue;
      troubles.push_back(status.code() == Code::kInProgress
                             ? question_.names[i] + " does not reach it"
                             : status.message());
      break;
    }
  }
  ReachProven answer{FirstTroubles(troubles), {}};
  for (uint32_t other : question_.others) answer.addresses.push_back((*mesh)->AddressOf(other));
  return answer;
}

}  // namespace hvd
