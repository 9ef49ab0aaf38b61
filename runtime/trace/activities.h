// The activities of an operation, as in Horovod's timeline, and how they are done. The numbers are
// part of the format of the trace ring.
#ifndef HVD_RUNTIME_TRACE_ACTIVITIES_H_
#define HVD_RUNTIME_TRACE_ACTIVITIES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

enum class TraceActivity : uint8_t {
  kNone = 0,          // ends the previous activity
  kCopyIn = 1,        // into memory that other ranks read, or into a fused message
  kCopyOut = 2,       // out of it
  kWaitForHosts = 3,  // ready on this host, not yet on all
  kQueue = 4,         // ready on all hosts, queued behind earlier work with other hosts
  kHostReduce = 5,    // the tensors of this host are combined
  kExchange = 6,      // between the leaders of hosts
  kGloo = 7,          // the exchange, by libhvd_gloo.so
  kMpi = 8,           // the exchange, by libhvd_mpi.so
  kHandOut = 9,       // from the leader of the host into the output of this rank
};

enum class TraceAlgorithm : uint8_t {
  kUnknown = 0,
  kAnnouncement = 1,  // the data are in the announcement, each rank combines them itself
  kInPlace = 2,       // combined in place, in shared memory
  kCopied = 3,        // in a copy in shared memory
  kAlone = 4,         // without shared memory, each rank by itself
  kDirect = 5,        // each leader gets everything
  kSliced = 6,        // each leader combines a slice, then slices are gathered
  kTree = 7,
};

// "MEMCPY_IN_FUSION_BUFFER" and so on. `collective`: hvd_collective that the hosts carry out, as in
// "GLOO_ALLREDUCE". Empty for kNone and for numbers without a name.
std::string ActivityName(TraceActivity activity, uint8_t collective);
// "sliced" and so on; empty for kUnknown and for numbers without a name.
std::string_view AlgorithmName(TraceAlgorithm algorithm);

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_ACTIVITIES_H_
