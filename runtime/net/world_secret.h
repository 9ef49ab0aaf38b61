// The secret of a job that hvdrun did not start: a value known to its ranks only, if its launcher
// or its user provides one. The first of these that exists:
//
//   HVD_WORLD_SECRET_FILE                  a file of the user's, the same on all hosts
//   HVD_WORLD_SECRET                       a variable of the user's
//   OMPI_MCA_orte_precondition_transports  mpirun of Open MPI 4: 128 random bits, made for each job
//
// srun, mpirun of MPICH, a stock rendezvous and a plain environment give none.
#ifndef HVD_RUNTIME_NET_WORLD_SECRET_H_
#define HVD_RUNTIME_NET_WORLD_SECRET_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr const char* kSecretFile = "HVD_WORLD_SECRET_FILE";
inline constexpr const char* kSecretVariable = "HVD_WORLD_SECRET";
inline constexpr size_t kLeastSecret = 16, kMostSecret = 1024;  // bytes

// The secret, or "" if there is none. kInvalidArgument with a message if it is too short or too
// long, or its file cannot be read, or another user owns it or may read or write it.
Result<std::string> FindWorldSecret(
    const std::function<std::optional<std::string>(const char* name)>& env);
// The same in the environment of this process. Any thread.
Result<std::string> FindWorldSecret();

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_WORLD_SECRET_H_
