#include "launcher/detached/steered_watch.h"

#include <algorithm>
#include <chrono>

#include "launcher/process/proc_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(300);

}  // namespace

Steering ParseSteering(std::string_view text) {
  Steering steering;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t blank = line.find(' ');
    if (blank == line.npos) continue;
    const std::string_view verb = line.substr(0, blank), value = line.substr(blank + 1);
    if (verb == "limit") steering.limit = ParseWhole<uint32_t>(value).value_or(steering.limit);
    if (verb == "drain") steering.drained.emplace(value);
  }
  return steering;
}

std::string SteeringText(const Steering& steering) {
  std::string text;
  if (steering.limit > 0) text += Format("limit {}\n", steering.limit);
  for (const std::string& host : steering.drained) text += "drain " + host + "\n";
  return text;
}

HostAnswer Steered(const HostAnswer& answer, const Steering& steering) {
  HostAnswer steered = answer;
  std::erase_if(steered.hosts,
                [&](const HostSlots& host) { return steering.drained.contains(host.host); });
  if (steering.limit == 0) return steered;
  uint32_t left = steering.limit;
  for (HostSlots& host : steered.hosts) {
    host.slots = std::min(host.slots, left);
    if (host.max_slots) host.max_slots = std::min(*host.max_slots, host.slots);
    left -= host.slots;
  }
  std::erase_if(steered.hosts, [](const HostSlots& host) { return host.slots == 0; });
  return steered;
}

void SteeredWatch::Start(std::function<void(const HostAnswer&)> on_answer) {
  on_answer_ = std::move(on_answer);
  steering_ = ParseSteering(ReadSmallFile(file_));
  hosts_->Start([this](const HostAnswer& answer) {
    last_ = answer;
    Answer();
  });
  Look();
}

void SteeredWatch::Stop() {
  hosts_->Stop();
  timer_.cancel();
}

void SteeredWatch::Answer() { on_answer_(Steered(*last_, steering_)); }

void SteeredWatch::Look() {
  timer_.expires_after(kLookEvery);
  timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    const Steering wanted = ParseSteering(ReadSmallFile(file_));
    if (wanted != steering_) {
      steering_ = wanted;
      if (last_) Answer();
    }
    Look();
  });
}

}  // namespace hvd
