// The work on the data of an operation, and the way in which it is done. Horovod's timeline has
// them as activities. The numbers are part of the format of the trace ring.
#ifndef HVD_TIMELINE_ACTIVITIES_H_
#define HVD_TIMELINE_ACTIVITIES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

enum class TraceActivity : uint8_t {
  kNone = 0,          // the one before is over
  kCopyIn = 1,        // into memory that other ranks read, or into one message with other tensors
  kCopyOut = 2,       // out of it
  kWaitForHosts = 3,  // ready on this host, not yet on all
  kQueue = 4,         // ready on all hosts, behind the work with other hosts that came before
  kHostReduce = 5,    // the tensors of this host are combined
  kExchange = 6,      // between the leaders of hosts
  kGloo = 7,          // the same by libhvd_gloo.so
  kMpi = 8,           // the same by libhvd_mpi.so
  kHandOut = 9,       // from the leader of the host into the output of this rank
};

enum class TraceAlgorithm : uint8_t {
  kUnsaid = 0,
  kAnnouncement = 1,  // the data travel in the announcement, each rank combines them for itself
  kInPlace = 2,       // combined where they lie, in shared memory
  kCopied = 3,        // in a copy in shared memory
  kAlone = 4,         // without shared memory, each rank for itself
  kDirect = 5,        // each leader gets everything
  kSliced = 6,        // each leader combines a slice, then slices are gathered
  kTree = 7,
};

// "MEMCPY_IN_FUSION_BUFFER" and so on. `collective`: hvd_collective that the hosts carry out, as in
// "GLOO_ALLREDUCE". Empty for kNone and for numbers without a name.
std::string ActivityName(TraceActivity activity, uint8_t collective);
// "sliced" and so on; empty for kUnsaid and for numbers without a name.
std::string_view AlgorithmName(TraceAlgorithm algorithm);

}  // namespace hvd

#endif  // HVD_TIMELINE_ACTIVITIES_H_
