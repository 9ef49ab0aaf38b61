#include "launcher/driver/connectivity_round.h"

#include <algorithm>

#include "runtime/net/mesh/mesh_address.h"

namespace hvd {

ProbeConnectivity ConnectivityRound::QuestionFor(uint32_t host) const {
  ProbeConnectivity question;
  question.job_key = options_.job_key;
  question.host = tree_.NumberOf(host);
  for (uint32_t other : tree_.ProbePartnersOf(host)) {
    question.others.push_back(tree_.NumberOf(other));
    question.names.push_back(NameOf(other));
  }
  question.interfaces = options_.interfaces;
  question.first_port = options_.first_port;
  question.last_port = options_.last_port;
  question.passes_on = tree_.HasChildren(host) ? 1 : 0;
  return question;
}

ConnectivityRound::Answer ConnectivityRound::Handle(uint32_t host,
                                                    const ConnectivityProbed& probed) {
  const std::vector<uint32_t> others = tree_.ProbePartnersOf(host);
  tree_.NoteRecord(host, probed.tree_record);
  Answer answer{{host, probed.trouble, {}}, {}};
  for (size_t i = 0; i < std::min(others.size(), probed.addresses.size()); ++i) {
    if (!AddAddress(others[i], probed.addresses[i])) continue;
    answer.notes.push_back("host " + NameOf(others[i]) + " is reached at " + probed.addresses[i] +
                           " by " + NameOf(host));
  }
  for (size_t i = 0; i < std::min(others.size(), probed.reasons.size()); ++i) {
    if (probed.reasons[i].empty()) continue;
    answer.event.blocked.push_back({host, others[i], probed.reasons[i], {}, false});
    answer.notes.push_back("host " + NameOf(host) + ": " + probed.reasons[i]);
  }
  return answer;
}

bool ConnectivityRound::AddAddress(uint32_t host, const std::string& address) {
  std::vector<std::string>& known = hosts_[host].addresses;
  if (address.empty() || std::find(known.begin(), known.end(), address) != known.end())
    return false;
  known.push_back(address);
  return true;
}

void ConnectivityRound::Finish(uint32_t master_port) {
  const std::vector<std::string>& first = hosts_[0].addresses;
  // Which host answers first is chance, and scripts that listen there may know IPv4 only.
  const auto ipv4 = std::ranges::find_if(
      first, [](const std::string& address) { return address.find(':') == std::string::npos; });
  hosts_.set_master({first.empty()         ? NameOf(0)
                     : ipv4 != first.end() ? *ipv4
                                           : first[0],
                     master_port});
  for (uint32_t host = 0; host < hosts_.count(); ++host) {
    if (hosts_[host].addresses.empty()) hosts_[host].addresses = {kLoopbackAddress};
  }
}

std::string ConnectivityRound::AddressesText() const {
  std::vector<std::string> places;
  for (uint32_t host : tree_.hosts()) {
    const std::vector<std::string>& known = hosts_[host].addresses;
    places.push_back(NameOf(host) + (known.empty() ? "" : " at " + known.front()));
  }
  return HostNames(places);
}

}  // namespace hvd
