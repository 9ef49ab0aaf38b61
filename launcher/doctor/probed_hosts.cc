#include "launcher/doctor/probed_hosts.h"

#include <algorithm>

#include "configs/message_text.h"
#include "launcher/agent/inspection/pair_probe.h"
#include "launcher/wire/probe_partners.h"

namespace hvd {

void ProbedHosts::Add(uint32_t host) { hosts_.push_back(host); }

void ProbedHosts::Clear() { hosts_.clear(); }

uint32_t ProbedHosts::NumberOf(uint32_t host) const {
  auto at = std::ranges::find(hosts_, host);
  return at == hosts_.end() ? 0 : static_cast<uint32_t>(at - hosts_.begin());
}

std::vector<uint32_t> ProbedHosts::PartnersOf(uint32_t host) const {
  return ProbePartners(NumberOf(host), size());
}

void ProbedHosts::Note(uint32_t host, const ConnectivityProbed& answer) {
  const std::vector<uint32_t> partners = PartnersOf(host);
  for (size_t i = 0; i < std::min(partners.size(), answer.addresses.size()); ++i) {
    const std::pair<uint32_t, uint32_t> way{host, hosts_[partners[i]]};
    if (!answer.addresses[i].empty()) reached_.insert(way);
    if (i < answer.reasons.size() && !answer.reasons[i].empty()) {
      reasons_[way] = Printable(answer.reasons[i], 1000);
    }
  }
}

std::string ProbedHosts::ReasonFor(uint32_t from, uint32_t to) const {
  auto reason = reasons_.find({from, to});
  return reason == reasons_.end() ? "" : reason->second;
}

bool ProbedHosts::MissedLostOnly(uint32_t host,
                                 const std::function<bool(uint32_t)>& is_lost) const {
  bool some_lost = false;
  for (uint32_t number : PartnersOf(host)) {
    const uint32_t partner = hosts_[number];
    if (is_lost(partner)) {
      some_lost = true;
    } else if (!Reached(host, partner)) {
      return false;
    }
  }
  return some_lost;
}

namespace {

constexpr uint64_t kProofGeneration = 0;

}  // namespace

ProbeDirectories::ProbeDirectories() {
  proof_.Begin(kProofGeneration);
  pairs_.Begin(PairProbe::kGeneration);
}

KvTable* ProbeDirectories::Of(uint64_t generation) {
  if (generation == kProofGeneration) return &proof_;
  return generation == PairProbe::kGeneration ? &pairs_ : nullptr;
}

std::vector<ProbeDirectories::Answer> ProbeDirectories::Put(const PutKey& put) {
  std::vector<Answer> answers;
  KvTable* directory = Of(put.generation);
  if (directory == nullptr) return answers;
  for (uint32_t reader : directory->Put(put.key, put.value)) {
    answers.emplace_back(reader, KeyValue{put.generation, put.key, put.value});
  }
  return answers;
}

std::vector<ProbeDirectories::Answer> ProbeDirectories::Want(uint32_t host, const WantKey& want) {
  KvTable* directory = Of(want.generation);
  if (directory == nullptr) return {};
  const std::string* value = directory->Find(want.key);
  if (value != nullptr) return {{host, KeyValue{want.generation, want.key, *value}}};
  directory->Await(host, want.key);
  return {};
}

}  // namespace hvd
