#include "launcher/agent/inspection/connectivity_probe.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "runtime/net/mesh/mesh.h"

namespace hvd {
namespace {

constexpr Duration kConnectLimit = std::chrono::seconds(8);  // for four attempts of TCP
constexpr Duration kLimit = std::chrono::seconds(20);
constexpr Duration kTurn = std::chrono::milliseconds(100);
constexpr MeshTag kHello{1, 0};

}  // namespace

ConnectivityProbe::ConnectivityProbe(ProbeConnectivity question, Owner owner)
    : question_(std::move(question)),
      owner_(std::move(owner)),
      directory_(owner_.put, owner_.want),
      thread_([this] { Run(); }) {}

ConnectivityProbe::~ConnectivityProbe() {
  stopping_ = true;
  directory_.Stop();
  if (thread_.joinable()) thread_.join();
  mesh_.reset();  // it asks this directory
}

void ConnectivityProbe::Run() {
  ConnectivityProbed answer = Prove();
  if (!stopping_) owner_.done(std::move(answer));
}

ConnectivityProbed ConnectivityProbe::Prove() {
  MeshOptions options;
  options.rank = question_.host;
  options.job_key = question_.job_key;
  options.connect_timeout = kConnectLimit;
  options.listen = {{}, question_.first_port, question_.last_port};
  options.proves_routes = true;
  Result<std::vector<std::string>> addresses = AddressesOfInterfaces(question_.interfaces);
  if (!addresses.ok()) return {addresses.status().message(), {}, {}};
  options.listen.addresses = std::move(*addresses);
  options.name = [this](uint32_t host) {
    auto at = std::find(question_.others.begin(), question_.others.end(), host);
    auto index = static_cast<size_t>(at - question_.others.begin());
    return index < question_.names.size() ? question_.names[index] : std::string("it");
  };
  Result<std::unique_ptr<Mesh>> mesh = Mesh::Open(std::move(options), directory_);
  if (!mesh.ok()) return {mesh.status().message(), {}, {}};
  mesh_ = std::move(*mesh);

  // This proves only the route from here. The route back is another connection, which the other
  // host proves.
  std::array<std::byte, 1> word{};
  std::vector<MeshHandle> words;
  for (uint32_t other : question_.others) words.push_back(mesh_->Send(other, kHello, word));
  const TimePoint deadline = SteadyNow() + kLimit;
  ConnectivityProbed answer;
  for (size_t i = 0; i < words.size(); ++i) {
    Status status;
    do {
      status = mesh_->Wait(words[i], std::min(deadline, SteadyNow() + kTurn));
    } while (status.code() == Code::kInProgress && SteadyNow() < deadline && !stopping_);
    const bool late = status.code() == Code::kInProgress;
    answer.addresses.push_back(status.ok() ? mesh_->AddressOf(question_.others[i]) : "");
    answer.reasons.push_back(late ? "it cannot reach " + question_.names[i] + " (no answer in time)"
                                  : status.message());
  }
  return answer;
}

}  // namespace hvd
