#include "runtime/backends/cuda/hosts_agreement.h"

#include <atomic>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// If no other host announces the operation, any name that is unique at the moment will do.
std::string NameHere(const Group& group) {
  static std::atomic<uint64_t> last{0};
  return Format("gpu {}.{}", group.ranks[group.index], ++last);
}

}  // namespace

HostsAgreement::HostsAgreement(Backend& host, const CollectiveCall& call, const HostsFacts* facts)
    : host_(host), call_(call) {
  call_.device = DeviceKind::kHost;
  call_.stream = nullptr;
  call_.input = facts;
  call_.output = nullptr;
  call_.result = &result_;
  call_.agreement = &agreed_;
}

Status HostsAgreement::Start(const MemberInputs& parts, const std::string& note) {
  InterHostRequest asked{.domain = call_.group->id};
  std::string name;
  if (parts.inter_host != nullptr) {
    asked = *parts.inter_host;
  } else {
    name = NameHere(*call_.group);
    asked.name = name;
  }
  asked.note = note;
  MemberInputs inputs = parts;
  inputs.inter_host = &asked;
  return host_.Start(call_, state_.get(), inputs).status();
}

}  // namespace hvd
