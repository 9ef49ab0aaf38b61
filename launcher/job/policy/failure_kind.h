// Why a worker of an elastic job ended: the cost of a failure depends on it. Pure.
#ifndef HVD_LAUNCHER_JOB_POLICY_FAILURE_KIND_H_
#define HVD_LAUNCHER_JOB_POLICY_FAILURE_KIND_H_

#include <map>
#include <string>
#include <string_view>

#include "launcher/process/process_end.h"

namespace hvd {

enum class FailureKind {
  kUserError,     // its script raises: a new worker would do the same, so the job ends
  kCrash,         // a signal, or an exit code without a reason that Python gave
  kOutOfMemory,   // ended by the kernel for lack of memory
  kHostLost,      // with its host
  kPreempted,     // its host told it to go: free
  kAskedToLeave,  // hvdrun told it to go: free
  kConsequence,   // others were lost, and it did not survive: counts only where nothing else does
};

// The facts about the end of a worker that did not end well.
struct WorkerEndFacts {
  ProcessEnd end = {};
  bool out_of_memory = false;
  bool host_lost = false;
  bool asked_to_leave = false;
  bool preempted = false;
  bool is_consequence = false;  // its collectives had failed because of others
  bool had_committed = false;   // any rank of the job had, so that the script is known to work
  std::string place = {};       // of the worker: host and slot
  std::string_view last_stderr = {};
};

// The text that identifies the exception that ended a Python program: the last line of its last
// traceback, with every number replaced by 0; empty: there is none. "ValueError: rank 0 has no
// data".
std::string ExceptionSignature(std::string_view last_stderr);

// Whether such an exception reports the loss of peers rather than an error of the script.
bool IsPeerLoss(std::string_view signature);

// Classifies ends, and remembers exceptions: one that workers in two places raise is the script's.
class FailureKinds {
 public:
  FailureKind KindOf(const WorkerEndFacts& facts);

  // All that changes, for the record of a takeover (takeover/job_record.h).
  static void RecordFields(auto& f, auto& m) { f(m.places_); }

 private:
  FailureKind KindOfException(const WorkerEndFacts& facts, const std::string& signature);

  std::map<std::string, std::string> places_;  // by signature: where it was raised first
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_POLICY_FAILURE_KIND_H_
