// Which collective of another library (torch.distributed over NCCL, Gloo or MPI) a Python stack
// stands in, and at which line of the user's script. Pure.
#ifndef HVD_LAUNCHER_STALL_VERDICT_FOREIGN_CALL_H_
#define HVD_LAUNCHER_STALL_VERDICT_FOREIGN_CALL_H_

#include <string>
#include <string_view>
#include <vector>

#include "launcher/stall/verdict/python_site.h"

namespace hvd {

struct ForeignCall {
  std::string call;          // "all_reduce"; empty: it is in none
  bool may_compute = false;  // it waits for other ranks, or computes: backward(), synchronize()
  bool once = false;         // no loop calls it: init_process_group()
  bool is_ours = false;      // one of this runtime, whose waits are watched otherwise
  std::string site;          // "file:line in function" of the user's script; empty: no stack
  std::string inside;        // the library's function that this line called, and its file
};

// `frames`: of the main thread, the innermost one first.
ForeignCall ForeignCallIn(const std::vector<PythonFrame>& frames);

// The function of mpi4py that a line of a script calls, as in "total = comm.allreduce(n)": they are
// C, so no stack shows them. Empty where the line calls none, or anything else that may take long.
std::string_view MpiCallIn(std::string_view line);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_FOREIGN_CALL_H_
