#include "launcher/doctor/probe_directories.h"

#include "launcher/agent/inspection/pair_probe.h"

namespace hvd {
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
