// Finds the collective of another library (torch.distributed over NCCL, Gloo or MPI) in a Python
// stack, and the line of the user's script. Pure.
#ifndef HVD_LAUNCHER_STALL_VERDICT_FOREIGN_CALL_H_
#define HVD_LAUNCHER_STALL_VERDICT_FOREIGN_CALL_H_

#include <string>
#include <string_view>
#include <vector>

#include "launcher/stall/verdict/python_site.h"

namespace hvd {

struct ForeignCall {
  std::string call;          // "all_reduce"; empty: none
  bool may_compute = false;  // it may wait for other ranks or compute: backward(), synchronize()
  bool once = false;         // called once, not in a loop: init_process_group()
  bool is_ours = false;      // of this runtime, whose waits are watched by other means
  std::string site;          // "file:line in function" of the user's script; empty: no stack
  std::string inside;        // the library function called by that line, and its file
};

// `frames`: of the main thread, innermost first.
ForeignCall ForeignCallIn(const std::vector<PythonFrame>& frames);

// The mpi4py function called in a line of a script, as in "total = comm.allreduce(n)": a C
// function, so stacks do not show it. Empty if the line calls none, or also something else that may
// take long.
std::string_view MpiCallIn(std::string_view line);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_FOREIGN_CALL_H_
