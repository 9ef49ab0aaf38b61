#include "runtime/backends/cuda/hosts_agreement.h"

namespace hvd {

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
  CrossHostRequest asked = *parts.cross_host;
  asked.note = note;
  MemberInputs inputs = parts;
  inputs.cross_host = &asked;
  return host_.Start(call_, state_.get(), inputs).status();
}

}  // namespace hvd
