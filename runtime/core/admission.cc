#include "runtime/core/admission.h"

#include <string>

#include "runtime/base/text/format.h"
#include "runtime/core/request/request_text.h"

namespace hvd {

Result<Operation*> Admission::Admit(const RequestSpec& spec, uint64_t call) {
  Result<ProcessSet*> set = SetOf(spec);
  if (!set.ok()) return set.status();
  const bool average = spec.collective == Collective::kAllreduce && spec.op == ReduceOp::kAverage;
  if (!average_of_active_ || !average) return AdmitNamed(*set, spec, call);
  RequestSpec active = spec;
  active.op = ReduceOp::kActiveAverage;
  return AdmitNamed(*set, active, call);
}

// Under the name that the engine makes if the caller gave none, or a name of its own for a join.
Result<Operation*> Admission::AdmitNamed(ProcessSet* set, const RequestSpec& spec, uint64_t call) {
  const bool join = spec.collective == Collective::kJoin;
  if (!spec.unnamed && !join) return AdmitOn(set, spec, call);
  RequestSpec named = spec;
  std::string name;
  if (spec.unnamed) {
    name = Format("{}.noname.{}", NameOf(spec.collective), set->unnamed);
    named.name = name;
  }
  if (join) {
    HVD_RETURN_IF_ERROR(CheckRequest(named, set->group));
    named.name = NameTable::kJoinName;  // so that only one is in flight
  }
  return AdmitOn(set, named, call);
}

// The set whose members take part; an error if this rank cannot use it.
Result<ProcessSet*> Admission::SetOf(const RequestSpec& spec) const {
  ProcessSet* world = &sets_.world();
  if (spec.collective == Collective::kAddProcessSet) {
    HVD_RETURN_IF_ERROR(sets_.CheckNew(spec.members));
    return world;
  }
  ProcessSet* set = sets_.Find(spec.process_set);
  if (spec.collective == Collective::kRemoveProcessSet && set == world) {
    return InvalidArgument("process set 0 is the world and cannot be removed");
  }
  if (set == nullptr || set->removing) {
    return InvalidArgument(Format(
        "process set {}{}{}; use one that hvd.add_process_set() gave", spec.process_set,
        set == nullptr ? " is unknown on rank " : " is being removed on rank ", world_rank()));
  }
  if (spec.collective == Collective::kRemoveProcessSet) return world;
  if (spec.collective == Collective::kJoin && set != world) {
    return InvalidArgument(
        Format("join is possible on the world only, not on process set {}", spec.process_set));
  }
  if (!set->member) {
    return InvalidArgument(Format("rank {} is no member of process set {}, whose ranks are {}",
                                  world_rank(), spec.process_set, RanksText(set->group.ranks)));
  }
  return set;
}

Result<Operation*> Admission::AdmitOn(ProcessSet* set, const RequestSpec& spec, uint64_t call) {
  const int32_t domain = NameTable::DomainOf(spec.collective, spec.process_set);
  // A name that does not recur has no place in the order of those that do.
  TensorName* name =
      spec.unnamed ? names_.Find(domain, spec.name) : names_.FindOwn(domain, spec.name);
  // A training step repeats the requests of the previous one: their details were checked and sent
  // to the peers then.
  const bool repeated = name != nullptr && name->own_detail_known &&
                        Describes(name->own_detail, spec, set->group.size());
  Status checked = repeated ? CheckRepeated(spec, set->group) : CheckRequest(spec, set->group);
  if (!checked.ok()) return checked;
  if (joins_.self()) return Joined();
  if (name == nullptr) name = names_.Add(domain, set, spec.name);
  if (name->operation != nullptr || name->kept) return AlreadyInFlight(*name);
  name->once = spec.unnamed;
  if (!repeated) Describe(name, spec);
  return Adopt(name, spec, call);
}

Operation* Admission::Adopt(TensorName* name, const RequestSpec& spec, uint64_t call) {
  Operation* op = operations_.Add();
  op->collective = spec.collective;
  op->name = name;
  op->set = name->set;
  op->call = call;
  return op;
}

void Admission::Commit(Operation* op, const RequestSpec& spec) {
  op->name->operation = op;
  ++op->set->in_flight;
  // Not before: a refusal may concern only this rank, and the ranks have to count alike.
  if (spec.unnamed) ++op->set->unnamed;
}

void Admission::Cancel(Operation* op) {
  operations_.Release(op);
  names_.ForgetIfUnused(op->name);
}

// The name has a new detail from now on.
void Admission::Describe(TensorName* name, const RequestSpec& spec) const {
  const Group& group = name->set->group;
  name->own_detail = DetailOf(spec, group.size());
  name->own_detail_known = name->hosts_know_names = false;
  name->trace.Change();
  name->agreed = false;
  // Every rank refuses such a detail: the ranks announce it and do nothing else.
  name->refusal = Status::Ok();
  if (!IsControl(spec.collective))
    name->refusal = CheckAgreed(name->text, name->own_detail, devices_);
  name->calls = CallsOf(name->own_detail, group);
  name->express = TensorName::Express::kUnknown;
  if (!name->refusal.ok()) name->calls.assign(name->calls.size(), {.group = &group});
}

Status Admission::AlreadyInFlight(const TensorName& name) const {
  const std::string on = Format(" on rank {}", world_rank());
  if (name.domain == NameTable::kSetsDomain) {
    return {Code::kDuplicateName, "a change of the process sets is already in flight" + on +
                                      "; they go one after the other"};
  }
  return {Code::kDuplicateName, "tensor " + Quoted(name.text) + " is already in flight" + on +
                                    "; wait for it, or give each tensor a name of its own"};
}

Status Admission::Joined() const {
  return InvalidArgument(Format(
      "rank {} has joined and submits nothing more until all ranks have; call hvd.join() last",
      world_rank()));
}

uint32_t Admission::world_rank() const {
  const Group& world = sets_.world().group;
  return world.ranks[world.index];
}

}  // namespace hvd
