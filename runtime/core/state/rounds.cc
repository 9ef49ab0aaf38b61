#include "runtime/core/state/rounds.h"

#include <algorithm>

namespace hvd {

Status Rounds::Agree(TensorName* name) {
  if (name->agreed && !joins_.any()) return Status::Ok();
  const Group& group = name->set->group;
  compared_.clear();
  for (uint32_t i = 0; i < group.local_size(); ++i) {
    const uint32_t rank = name->set->rank_of_member(i);
    if (i == group.local_index) {
      compared_.push_back({rank, &name->own_detail});
    } else if (name->here[i] != 0) {
      compared_.push_back({rank, &name->details[i]});
    }
  }
  Status verdict = CompareDetails(name->text, compared_);
  if (verdict.ok()) verdict = name->refusal;
  if (verdict.ok() && compared_.size() < group.local_size() && group.on_one_host()) {
    verdict = joins_.CheckAbsent(*name);
  }
  name->agreed = verdict.ok() && compared_.size() == group.local_size();
  return verdict;
}

MemberInputs Rounds::InputsOf(const TensorName& name, size_t part) {
  const Operation& op = *name.operation;
  const size_t members = name.here.size();
  const uint32_t own = op.set->group.local_index;
  MemberInputs inputs{name.descriptors, {}, {}};
  if (part != 0) {
    descriptors_.assign(members, {});
    for (size_t i = 0; i < members; ++i) {
      if (name.here[i] != 0) descriptors_[i] = name.more_descriptors[i][part - 1];
    }
    descriptors_[own] = op.parts[part].descriptor;
    inputs.descriptors = descriptors_;
  }
  if (op.collective == Collective::kAllgather || op.collective == Collective::kAlltoall) {
    extents_.clear();
    for (size_t i = 0; i < members; ++i) {
      if (i != own && name.here[i] == 0) {  // has joined
        extents_.push_back({});
        continue;
      }
      const TensorDetail& detail = (i == own ? name.own_detail : name.details[i]).parts[part];
      extents_.push_back({detail.rows(), detail.splits});
    }
    inputs.extents = extents_;
  }
  if (!joins_.any()) return inputs;
  absent_.assign(members, 0);
  for (size_t i = 0; i < members; ++i) absent_[i] = i != own && name.here[i] == 0 ? 1 : 0;
  if (joins_.AbsentMembers(name) != 0) inputs.joined = absent_;
  return inputs;
}

void Rounds::DiscardIfOver(TensorName* name) {
  if (!joins_.self() || name->operation != nullptr || name->arrived == 0) return;
  const uint32_t others = static_cast<uint32_t>(name->here.size()) - 1;
  if (name->arrived + joins_.AbsentMembers(*name) != others) return;
  name->ClearRound();
  names_.ForgetIfUnused(name);
}

bool Rounds::SetsAreChanging(uint32_t peer) const {
  const TensorName* name = names_.Find(NameTable::kSetsDomain, NameTable::kSetsName);
  if (name == nullptr) return false;
  // With other hosts a change takes a while after its last announcement here.
  if (name->operation != nullptr && name->operation->started && !name->operation->done) return true;
  return name->here[name->member_of(peer)] != 0 && !Unsatisfiable(*name);
}

void Rounds::NoteGone(uint32_t peer) {
  if (std::find(gone_.begin(), gone_.end(), peer) == gone_.end()) gone_.push_back(peer);
}

bool Rounds::Lacks(const TensorName& name, uint32_t peer) const {
  const uint32_t member = name.member_of(peer);
  if (member == ProcessSet::kNotHere || name.here[member] != 0) return false;
  return !joins_.Has(peer) || name.domain == NameTable::kJoinDomain;
}

bool Rounds::Unsatisfiable(const TensorName& name) const {
  return std::any_of(gone_.begin(), gone_.end(), [&](uint32_t peer) { return Lacks(name, peer); });
}

std::vector<uint32_t> Rounds::MissingRanks(const TensorName& name) const {
  std::vector<uint32_t> ranks;
  if (name.operation == nullptr || name.operation->started) return ranks;
  for (uint32_t member = 0; member < name.here.size(); ++member) {
    const uint32_t peer = name.set->group.local[member];
    if (peer == self_ || !Lacks(name, peer)) continue;
    ranks.push_back(name.set->rank_of_member(member));
  }
  return ranks;
}

}  // namespace hvd
