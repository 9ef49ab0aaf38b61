// Admission: validates a request of the application and turns it into an operation of this rank.
//
// Admit creates the operation and the detail of its name; once the backend has prepared it, Commit
// binds it to the name, otherwise Cancel discards it. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_ADMISSION_H_
#define HVD_RUNTIME_CORE_ADMISSION_H_

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/core/request/process_set.h"
#include "runtime/core/request/request.h"
#include "runtime/core/state/joins.h"
#include "runtime/core/state/name_table.h"
#include "runtime/core/state/operation.h"

namespace hvd {

class Admission {
 public:
  // `average_of_active`: see EngineOptions; `devices`: see CheckAgreed.
  Admission(const ProcessSetTable& sets, NameTable& names, OperationTable& operations,
            const Joins& joins, bool average_of_active, bool devices)
      : sets_(sets),
        names_(names),
        operations_(operations),
        joins_(joins),
        average_of_active_(average_of_active),
        devices_(devices) {}

  // `call`: sequence number of the application's call. Errors leave everything unchanged:
  // kInvalidArgument, kUnsupported, or kDuplicateName while the name is in flight.
  Result<Operation*> Admit(const RequestSpec& spec, uint64_t call);
  // The same for a request that matches its name's detail and has already been announced.
  Operation* Adopt(TensorName* name, const RequestSpec& spec, uint64_t call);
  void Commit(Operation* op, const RequestSpec& spec);
  void Cancel(Operation* op);

 private:
  Result<Operation*> AdmitNamed(ProcessSet* set, const RequestSpec& spec, uint64_t call);
  Result<Operation*> AdmitOn(ProcessSet* set, const RequestSpec& spec, uint64_t call);
  Result<ProcessSet*> SetOf(const RequestSpec& spec) const;
  Status AlreadyInFlight(const TensorName& name) const;
  Status Joined() const;
  void Describe(TensorName* name, const RequestSpec& spec) const;
  uint32_t world_rank() const;

  const ProcessSetTable& sets_;
  NameTable& names_;
  OperationTable& operations_;
  const Joins& joins_;
  const bool average_of_active_;
  const bool devices_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_ADMISSION_H_
