#include "runtime/backends/cuda/member_facts.h"

#include <algorithm>

#include "runtime/backends/nccl/nccl_adasum.h"
#include "runtime/backends/nccl/nccl_loader.h"
#include "runtime/base/hash.h"
#include "runtime/base/text/format.h"
#include "runtime/device/cuda/batch_plan.h"

namespace hvd {
namespace {

bool Reduces(const CollectiveCall& call) {
  return call.collective == Collective::kAllreduce || call.collective == Collective::kReducescatter;
}

// Why NCCL cannot serve these members of one host at all; "" if it can.
std::string RefusalOfMembers(std::span<const MemberFacts> facts, std::span<const uint32_t> ranks) {
  for (uint32_t m = 0; m < facts.size(); ++m) {
    if (facts[m].nccl_version == 0) return NoNcclReason(ranks[m]);
    if (facts[m].nccl_version != facts[0].nccl_version) {
      return Format("rank {} has NCCL {}, rank {} NCCL {}", ranks[0],
                    NcclVersionText(facts[0].nccl_version), ranks[m],
                    NcclVersionText(facts[m].nccl_version));
    }
    for (uint32_t other = 0; other < m; ++other) {
      if (facts[other].place != facts[m].place) continue;
      return Format("ranks {} and {} are on one GPU, which NCCL refuses", ranks[other], ranks[m]);
    }
  }
  return "";
}

// Why NCCL cannot execute the operation; "" if it can.
std::string RefusalOfCall(const CollectiveCall& call, const NcclAbilities& abilities) {
  if (!Reduces(call)) return "";
  if (call.collective == Collective::kAllreduce && call.op == ReduceOp::kAdasum)
    return CheckAdasum(call.dtype, call.group->size()).message();
  return StepsOfReduction(ReductionOf(call), abilities).status().message();
}

int LeastCapability(std::span<const MemberFacts> facts) {
  int least = facts.empty() ? 0 : facts[0].compute_capability;
  for (const MemberFacts& each : facts) least = std::min(least, each.compute_capability);
  return least;
}

}  // namespace

BufferDescriptor DescriptorOf(const MemberFacts& facts) {
  BufferDescriptor descriptor;
  descriptor.words = {static_cast<uint64_t>(facts.nccl_version) << 32 |
                          static_cast<uint32_t>(facts.compute_capability),
                      facts.place,
                      static_cast<uint64_t>(facts.call_number) << 32 | facts.control.segment,
                      facts.control.offset};
  return descriptor;
}

MemberFacts FactsIn(const BufferDescriptor& descriptor) {
  const auto& words = descriptor.words;
  return {.nccl_version = static_cast<int>(words[0] >> 32),
          .compute_capability = static_cast<int>(words[0] & 0xffffffff),
          .place = words[1],
          .control = {static_cast<uint32_t>(words[2]), words[3]},
          .call_number = static_cast<uint32_t>(words[2] >> 32)};
}

CudaChoice ChooseRoute(const CollectiveCall& call, std::span<const MemberFacts> facts,
                       std::span<const uint8_t> joined) {
  CudaChoice choice;
  if (call.group->size() == 1) {
    const double scale = Reduces(call) ? call.prescale * call.postscale : 1.0;
    // Adasum scales in float64.
    const bool adds = call.op != ReduceOp::kAdasum || scale == 1.0;
    const bool moves = BatchElementsOf({call.dtype, call.dtype, scale}).ok();
    if (adds && moves) choice.route = CudaRoute::kAlone;
    return choice;
  }
  if (!joined.empty()) {
    const auto first = std::find(joined.begin(), joined.end(), 1) - joined.begin();
    choice.why = Format("rank {} has joined, and NCCL needs all ranks",
                        call.group->ranks[static_cast<size_t>(first)]);
    return choice;
  }
  choice.abilities = {facts[0].nccl_version, LeastCapability(facts)};
  choice.why = RefusalOfMembers(facts, call.group->ranks);
  if (choice.why.empty()) choice.why = RefusalOfCall(call, choice.abilities);
  if (choice.why.empty()) choice.route = CudaRoute::kNccl;
  return choice;
}

HostNote NoteOfHost(std::span<const MemberFacts> facts, std::span<const uint32_t> ranks) {
  HostNote note;
  if (facts.empty()) return note;
  note.nccl_version = facts[0].nccl_version;
  note.compute_capability = LeastCapability(facts);
  uint64_t places = kHashStart;
  for (const MemberFacts& each : facts) {
    places = HashOf({reinterpret_cast<const char*>(&each.place), sizeof each.place}, places);
  }
  note.places = places;
  note.why = RefusalOfMembers(facts, ranks);
  return note;
}

Result<CudaChoice> ChooseRouteAcrossHosts(const CollectiveCall& call,
                                          std::span<const HostNote> notes, uint32_t participants) {
  CudaChoice choice;
  choice.abilities = {notes[0].nccl_version, notes[0].compute_capability};
  for (const HostNote& note : notes) {
    if (note.refuses) return Unsupported(note.why);
    if (choice.why.empty()) choice.why = note.why;
    choice.abilities.compute_capability =
        std::min(choice.abilities.compute_capability, note.compute_capability);
  }
  for (const HostNote& note : notes) {
    if (!choice.why.empty() || note.nccl_version == notes[0].nccl_version) continue;
    choice.why = Format("a host has NCCL {}, another NCCL {}",
                        NcclVersionText(notes[0].nccl_version), NcclVersionText(note.nccl_version));
  }
  if (participants < call.group->size()) choice.why = "a rank has joined, and NCCL needs all ranks";
  if (choice.why.empty()) choice.why = RefusalOfCall(call, choice.abilities);
  if (choice.why.empty()) choice.route = CudaRoute::kNccl;
  return choice;
}

std::string NoNcclReason(uint32_t rank) { return Format("rank {} has no usable NCCL", rank); }

NcclReduction ReductionOf(const CollectiveCall& call) {
  const uint32_t size = call.group->size();
  return {call.op, call.dtype, call.prescale, call.postscale, size, size};
}

}  // namespace hvd
